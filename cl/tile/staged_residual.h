/* cl/tile/staged_residual.h - a residual that TMA loads, through the stages of the operands
 *
 * Behind the slices of K of a tile the producer loads the tile's residual in blocks of 64 columns, as many to
 * a stage as it has room for.  Consumers add it to their accumulators out of local memory: no register waits
 * for it, and no lane exchanges it with another.
 *
 * It is staged where it is a matrix of 16-bit elements whose rows are 16-byte vectors.  Blocks at the edge of
 * a tile of BLK_N columns may have some of the next tile, which are not used.
 *
 * Takes: BLK_M BLK_N STAGES STAGE FINISHED; store.h, pipeline.h, operand.h, accumulator.h;
 *        atoms/nvidia/mma.h tma.h warp.h wgmma.h.
 * Gives: RESIDUAL_STAGES, struct staged, STAGED_MATRIX, STAGED_PIXELS, RESIDUAL_STEP, residual_map(),
 *        residual_acquire(), residual_load(), residual_add().
 */
#define STAGED_COLUMNS  64
#define STAGED_BLOCK    (BLK_M * 128)
#define STAGED_BLOCKS   ((BLK_N + STAGED_COLUMNS - 1) / STAGED_COLUMNS)         /* of a tile */
#define STAGED_AT_ONCE  (STAGE / STAGED_BLOCK)                                  /* in a stage */
#define RESIDUAL_STAGES ((STAGED_BLOCKS + STAGED_AT_ONCE - 1) / STAGED_AT_ONCE)

/* From row to row, and from matrix to matrix, in elements; batch 0: all have one. */
struct staged { GLOBAL const void *from; INDEX row, batch; };

/* That of a product, or of rows of pixels, where the host says that it is staged: lib/tensor.c knows when.
 * RESIDUAL_STEP: from batch to batch. */
#if RESIDUAL_BYTES == 2
#define STAGED_MATRIX { gR + vR.s0, (INDEX)vR.s5, (INDEX)vR.s4 }
#define STAGED_PIXELS { gR + vR.s0, (INDEX)vR.s6, 0 }
#define RESIDUAL_STEP (vR.s4 != 0)
#else
#define STAGED_MATRIX { 0, 0, 0 }
#define STAGED_PIXELS { 0, 0, 0 }
#define RESIDUAL_STEP 0
#endif

/* By a warp, its maps, among those of the kernel.  room: MAPS_ROOM. */
DEVICE void residual_map(GLOBAL unsigned INT64 *maps, LOCAL UINT32 *room, int lane, struct staged s, int rows,
                         int columns, int batches)
{
    struct tensor_map m;

    m.address = (UINT64)s.from;
    m.type = MAP_TYPE_F16;                      /* or bf16: nothing is computed with it */
    m.rank = 3;
    m.pixels = 0;
    m.extent[0] = columns;
    m.extent[1] = rows;
    m.extent[2] = s.batch ? batches : 1;
    m.stride[0] = (UINT64)s.row * 2;
    m.stride[1] = s.batch ? (UINT64)s.batch * 2 : 16;
    m.box[0] = STAGED_COLUMNS;
    m.box[1] = operand_rows(0, rows, BLK_M, 0);
    m.box[2] = m.step[0] = m.step[1] = m.step[2] = 1;
    operand_keep_maps(maps, room, lane, m, 2, operand_tail(0, rows, BLK_M));
}

/* The producer, before it loads. */
DEVICE void residual_acquire(GLOBAL const unsigned INT64 *maps, int rows)
{
    map_acquire(maps + MAP_OF(2));
    if (operand_tail(0, rows, BLK_M))
        map_acquire(maps + TAIL_OF(2));
}

/* ... that of the tile whose first element is (m0, n0), as much as there is of it. */
DEVICE struct pipeline residual_load(struct pipeline p, UINT32 stages, GLOBAL const unsigned INT64 *maps,
                                     int rows, int columns, int m0, int n0, int batch)
{
    const int seen = operand_rows(0, rows, BLK_M, m0), blocks = (columns - n0 - 1) / STAGED_COLUMNS + 1;
    GLOBAL const unsigned INT64 *const map =
        maps + (operand_is_tail(0, rows, BLK_M, seen) ? TAIL_OF(2) : MAP_OF(2));

    UNROLL for (int first = 0; first < STAGED_BLOCKS; first += STAGED_AT_ONCE) {
        const int most = STAGED_BLOCKS - first < STAGED_AT_ONCE ? STAGED_BLOCKS - first : STAGED_AT_ONCE;
        const int left = blocks - first, count = left < 0 ? 0 : left < most ? left : most;

        p = producer_acquire(p);
        producer_expect(p, count * seen * 128);
        UNROLL for (int i = 0; i < most; i++)
            if (i < count)
                copy_box_3d(stages + p.stage * STAGE + i * STAGED_BLOCK, map,
                            n0 + (first + i) * STAGED_COLUMNS, m0, batch, pipe_full(p));
        p = pipe_next(p, STAGES);
    }
    return p;
}

/* A warpgroup: scales the accumulators of a tile, whose first column is n0, and adds beta times the residual.
 * warp: its number among the consumers of the tile; barrier: a number that no other warpgroup uses; keeps:
 * the last stage is not released. */
DEVICE struct pipeline residual_add(float *d, struct pipeline p, UINT32 stages, const struct output *o, int m,
                                    int m8, int n0, int warp, int lane, int barrier, const int keeps)
{
#if RESIDUAL_BYTES == 2
    const UINT32 from = stages + (UINT32)(warp * 16 + lane % 16) * 128;

    UNROLL for (int i = 0; i < FINISHED; i += FINISH_PIECE)
        scale_piece(o, d + i, m, m8, n0 + ACC_COL(i), lane);
    UNROLL for (int first = 0; first < STAGED_BLOCKS; first += STAGED_AT_ONCE) {
        const UINT32 at = from + p.stage * STAGE;

        consumer_wait(p);
        UNROLL for (int i = 0; i < 4 * STAGED_AT_ONCE && 4 * first + i < FINISHED / 8; i++) {
            float *const x = d + (4 * first + i) * 8;           /* 16 columns, of two rows of each lane */
            UINT32 u[4];

            LOAD_TILES("", u[0], u[1], u[2], u[3],
                       at + i / 4 * STAGED_BLOCK + (UINT32)((i % 4 * 2 + lane / 16) ^ lane % 8) * 16);
            UNROLL for (int j = 0; j < 4; j++) {
                x[2 * j] = FMA(o->beta, OF(LOWER, TYPE_RESIDUAL)(u[j]), x[2 * j]);
                x[2 * j + 1] = FMA(o->beta, OF(UPPER, TYPE_RESIDUAL)(u[j]), x[2 * j + 1]);
            }
        }
        if (!keeps || first + STAGED_AT_ONCE < STAGED_BLOCKS) {
            fence_async_proxy();
            bar_sync(barrier, 128);             /* all have read */
            if (LOCAL_ID() % 128 == 0)
                consumer_release(p);
        }
        p = pipe_next(p, STAGES);
    }
#endif
    return p;
}
