/* cl/gemm/wgmma.h - A and B of a product by wgmma: slices of K that TMA loads and warpgroups multiply
 *
 * A tile of C has 64 rows for each warpgroup, and BLK_N columns.  A slice of K is as long as a row of 128
 * bytes.  A stage has a slice of A, then one of B.
 *
 *                 BLK_N
 *              +---------+
 *      BLK_K   |    B    |
 *              +---------+
 *     +-----+  +---------+  64 rows: warpgroup 0
 *     |  A  |  |         |
 *     +-----+  +---------+
 *     |     |  |         |  64 rows: warpgroup 1
 *     +-----+  +---------+
 *
 * Work-groups make the tensor maps of A and B, so that the host needs no library: all of them the same,
 * where an earlier launch may have left them.  TMA fills with zeros what is outside of A and B, so edges need
 * no care; but tiles at the edge load no more rows than there are (operand_rows()), by maps of their own
 * where other tiles are whole.
 *
 * Takes: WARPGROUPS, BLK_N, STAGES; MN_MAJOR_A and MN_MAJOR_B, 1 where an operand is M-major (N-major).
 * Gives: BLK_M, BLK_K, BYTES_A, BYTES_B, STAGE, ACCUMULATORS, FINISHED, TILE_END(), MULTIPLY(),
 *        GEMM_PARAMS, GEMM_EARLY, GEMM_PREPARE(), struct boxes, GEMM_BOXES(), gemm_*(), turns_init(),
 *        turn_hand_over().
 */
#define BLK_M        (64 * WARPGROUPS)
#define BLK_K        OPERAND_ROW
#define BYTES_A      (BLK_M * 128)              /* of a slice */
#define BYTES_B      (BLK_N * 128)
#define STAGE        (BYTES_A + BYTES_B)
#define ACCUMULATORS (BLK_N / 2)                /* of a work-item */

/* The last piece of an epilogue (tile/store.h) may reach beyond the tile: the accumulators with it, and the
 * first column that a tile from n0 on must not store. */
#define FINISHED     ((ACCUMULATORS + FINISH_PIECE - 1) / FINISH_PIECE * FINISH_PIECE)
#define TILE_END(N, n0) (FINISHED > ACCUMULATORS && (N) > (n0) + BLK_N ? (n0) + BLK_N : (N))
#define MULTIPLY(d, a, b, add) \
    WGMMA(BLK_N, OPERAND_KIND, OPERAND_MAJOR(MN_MAJOR_A, MN_MAJOR_B), d, a, b, add)

/* A kernel's.  What the producer needs before its first slice comes first: parameters are fetched from memory
 * in lines of 256 bytes, each of which is waited for.  staged: whether the residual is. */
#define GEMM_PARAMS                                                                                 \
    int M, int N, int K, int groups, int tiles, R alpha, GLOBAL unsigned INT64 *gMaps,              \
    int first_map, int kept, GLOBAL const T *gA, GLOBAL const T *gB, int batches, int staged,       \
    VIEW vTiles, VIEW vA, VIEW vB, VIEW eC

/* Declares m, the map of A or of B, of arguments that the functions below have: its boxes are slices of K of
 * a tile.  A batch stride of 0 means one matrix for all. */
#define GEMM_MAP(m, is_b)                                                                           \
    const int mn_major = (is_b) ? MN_MAJOR_B : MN_MAJOR_A, wide = (is_b) ? N : M;                   \
    const int tile = (is_b) ? BLK_N : BLK_M;                                                        \
    const INDEX row = (is_b) ? (MN_MAJOR_B ? vB.s5 : vB.s6) : (MN_MAJOR_A ? vA.s6 : vA.s5);         \
    const INDEX step = (is_b) ? vB.s4 : vA.s4;                                                      \
    struct tensor_map m;                                                                            \
                                                                                                    \
    m.address = (UINT64)((is_b) ? gB + vB.s0 : gA + vA.s0);                                         \
    m.type = OPERAND_TYPE;                                                                          \
    m.rank = 3;                                                                                     \
    m.pixels = 0;                                                                                   \
    m.extent[0] = mn_major ? wide : K;                                                              \
    m.extent[1] = mn_major ? K : wide;                                                              \
    m.extent[2] = step ? batches : 1;                                                               \
    m.stride[0] = (UINT64)row * T_BYTES;                                                            \
    m.stride[1] = step ? (UINT64)step * T_BYTES : 16;                                               \
    m.box[0] = BLK_K;                                                                               \
    m.box[1] = mn_major ? BLK_K : operand_rows(0, wide, tile, 0);                                   \
    m.box[2] = m.step[0] = m.step[1] = m.step[2] = 1

/* A consumer: where tile `at` is, and what its epilogue loads, in variables that the kernel has: t, c, m,
 * bias_row, held, staged, lane; r: the work-item's first row in a tile, `below` rows above its second.  For
 * its first tile that comes before the first slice is awaited (GEMM_EARLY), unless accumulators take most
 * registers. */
#define GEMM_EARLY (ACCUMULATORS < 128)
#define GEMM_PREPARE(below)                                                                         \
    {                                                                                               \
        t = tile_at(schedule, at);                                                                  \
                                                                                                    \
        const struct output tile_c_ = OUTPUT(t.batch);                                              \
                                                                                                    \
        c = tile_c_;                                                                                \
        c.N = TILE_END(N, t.n0);                                                                    \
        m = t.m0 + r;                                                                               \
        prepare_tile(bias_row, &c, FINISHED, t.n0, lane);                                           \
        if (HOLDS)                                                                                  \
            hold_tile(held, &c, FINISHED, m, m + (below), t.n0, lane);                              \
        else if (!staged)                                                                           \
            prefetch_tile(&c, FINISHED, m, m + (below), t.n0, lane);                                \
    }

/* By a warp, the maps of A or of B, which all work-groups share (tile/tensor_map.h); room: MAPS_ROOM. */
DEVICE void gemm_keep_map(GLOBAL unsigned INT64 *maps, LOCAL UINT32 *room, int lane, const int is_b, int M,
                          int N, int K, int batches, GLOBAL const T *gA, VIEW vA, GLOBAL const T *gB, VIEW vB)
{
    GEMM_MAP(m, is_b);

    operand_keep_maps(maps, room, lane, m, is_b, operand_tail(mn_major, wide, tile));
}

/* By the first two warps, of a kernel with GEMM_PARAMS. */
#define GEMM_KEEP_MAPS(maps, room, warp, lane)                                                      \
    do {                                                                                            \
        if ((warp) == 0)                                                                            \
            gemm_keep_map(maps, room, lane, 0, M, N, K, batches, gA, vA, gB, vB);                   \
        else if ((warp) == 1)                                                                       \
            gemm_keep_map(maps, room, lane, 1, M, N, K, batches, gA, vA, gB, vB);                   \
    } while (0)

/* The producer, before its first slice. */
DEVICE void gemm_acquire_maps(GLOBAL const unsigned INT64 *maps)
{
    map_acquire(maps + MAP_OF(0));
    map_acquire(maps + MAP_OF(1));
}

/* What is loaded of A and of B for a tile: so many rows; and whether the tile is the last, which has a map of
 * its own.  The producer computes it with the tile, ahead of its loads. */
struct boxes { int rows_a, rows_b, tail_a, tail_b; };

/* In a kernel with GEMM_PARAMS. */
#define GEMM_BOXES(boxes, t)                                                                        \
    do {                                                                                            \
        (boxes).rows_a = operand_rows(MN_MAJOR_A, M, BLK_M, (t).m0);                                \
        (boxes).rows_b = operand_rows(MN_MAJOR_B, N, BLK_N, (t).n0);                                \
        (boxes).tail_a = operand_is_tail(MN_MAJOR_A, M, BLK_M, (boxes).rows_a);                     \
        (boxes).tail_b = operand_is_tail(MN_MAJOR_B, N, BLK_N, (boxes).rows_b);                     \
    } while (0)

/* The producer: `count` slices of K, from number `first` on, of a tile; step_a, step_b: 0 if all batches
 * have one A (B). */
DEVICE struct pipeline gemm_load(struct pipeline p, UINT32 stages, GLOBAL const unsigned INT64 *maps,
                                 struct boxes boxes, struct tile t, int first, int count, int step_a,
                                 int step_b)
{
    GLOBAL const unsigned INT64 *const a = maps + (boxes.tail_a ? TAIL_OF(0) : MAP_OF(0));
    GLOBAL const unsigned INT64 *const b = maps + (boxes.tail_b ? TAIL_OF(1) : MAP_OF(1));

    if (boxes.tail_a)
        map_acquire(a);
    if (boxes.tail_b)
        map_acquire(b);
    for (int i = 0; i < count; i++) {
        const UINT32 to = stages + p.stage * STAGE;

        p = producer_acquire(p);
        producer_expect(p, 128 * (boxes.rows_a + boxes.rows_b));
        operand_load(to, a, MN_MAJOR_A, BLK_M, boxes.rows_a, t.m0, (first + i) * BLK_K,
                     t.batch * step_a, pipe_full(p));
        operand_load(to + BYTES_A, b, MN_MAJOR_B, BLK_N, boxes.rows_b, t.n0, (first + i) * BLK_K,
                     t.batch * step_b, pipe_full(p));
        p = pipe_next(p, STAGES);
    }
    return p;
}

/* The descriptors of stage 0: of the 64 rows of A that a warp's warpgroup multiplies, and of B. */
DEVICE UINT32 gemm_a(UINT32 stages, int warp)
{
    return operand_descriptor(stages + warp / 4 * 8192, 64);
}

DEVICE UINT32 gemm_b(UINT32 stages)
{
    return operand_descriptor(stages + BYTES_A, 64);
}

/* A warpgroup: hands the products of a slice to the tensor cores; first: of a tile, so that d begins with
 * them. */
DEVICE void gemm_issue(float *d, struct pipeline p, UINT32 a, UINT32 b, const int first)
{
    a += p.stage * (STAGE / 16);
    b += p.stage * (STAGE / 16);
    consumer_wait(p);
    wgmma_begin();
    UNROLL for (int k = 0; k < 4; k++)
        MULTIPLY(d, operand_product(a, MN_MAJOR_A, BLK_M, k), operand_product(b, MN_MAJOR_B, BLK_N, k),
                 !first || k > 0);
    wgmma_commit();
}

/* Turns with the tensor cores: a barrier for each team, at which each warp of the team before arrives. */
DEVICE void turns_init(UINT32 turns, const int teams)
{
    for (int i = 0; i < teams; i++)
        barrier_init(turns + 8 * i, ROLE_WARPS);
    barrier_init_done();
}

/* A warp hands over the turn when the stages up to `behind` ones behind p are filled: a barrier tells only
 * one pass through the stages from the next, so no team may wait for a pass before the one before it is
 * there.  Each warp does: of one that has not yet seen its own turn, the next could come and go. */
DEVICE void turn_hand_over(struct pipeline p, UINT32 turn, int behind)
{
    for (; behind > 0; behind--) {
        p = pipe_next(p, STAGES);
        consumer_wait(p);
    }
    if (LOCAL_ID() % 32 == 0)
        barrier_arrive(turn);
}

/* ... after the first of a tile's slices, all others.  turn: 0, or the barrier of the team that is next, when
 * the last slice is handed over; behind: stages of the tile after these; keeps: the last is not released. */
DEVICE struct pipeline gemm_multiply_turn(float *d, struct pipeline p, UINT32 a, UINT32 b, int count,
                                          UINT32 turn, int behind, int keeps)
{
    const int releases = LOCAL_ID() % 128 == 0;

    if (turn && count == 1)
        turn_hand_over(p, turn, behind);
    for (int i = 1; i < count; i++) {
        const struct pipeline before = p;

        p = pipe_next(p, STAGES);
        gemm_issue(d, p, a, b, 0);
        if (turn && i == count - 1)
            turn_hand_over(p, turn, behind);
        WGMMA_WAIT(BLK_N, d, "1");              /* the slice before is read */
        if (releases)
            consumer_release(before);
    }
    WGMMA_WAIT(BLK_N, d, "0");
    if (releases && !keeps)
        consumer_release(p);
    return pipe_next(p, STAGES);
}

DEVICE struct pipeline gemm_multiply(float *d, struct pipeline p, UINT32 a, UINT32 b, int count)
{
    return gemm_multiply_turn(d, p, a, b, count, 0, 0, 0);
}
