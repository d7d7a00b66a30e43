/* cl/conv/wgmma_filter.h - a tile of the gradient of a filter by wgmma
 *
 * A product of filters x (tap, channel), summed over pixels.  Both operands lie in local memory pixel by
 * pixel: wgmma reads them transposed.  One warp loads slices of BLK_K pixels by TMA in im2col mode: dy as an
 * image for a filter of one tap, and x once for each column block, shifted by the block's tap.
 *
 *                        BLK_N: column blocks
 *                     +-----+-----+-----+
 *             BLK_K   |  x at its tap   |
 *            pixels   +-----+-----+-----+
 *            +-----+  +-----------------+
 *     BLK_M  |dy^T |  |                 |   WARPGROUPS_M x WARPGROUPS_N warpgroups, SUB_M x SUB_N each
 *            +-----+  +-----------------+
 *
 * Takes: SUB_M SUB_N WARPGROUPS_M WARPGROUPS_N BLK_K STAGES; BLK_M, BLK_N; im2col.h, filter_tiles.h.
 * Gives: ITEMS, LOCAL_BYTES, ACCUMULATORS, wgmma_filter_*().
 */
#define MOVE         (SUB_M * SUB_N > 64 * 192) /* consumers need more registers than their share */
#define ITEMS        (128 * WARPGROUPS + (MOVE ? 128 : 32))
#define BLOCKS_M     (BLK_M / 64)
#define BYTES_BLOCK  (BLK_K * 128)              /* of 64 channels, or filters, of a slice */
#define STAGE        ((BLOCKS_M + BLOCKS_N) * BYTES_BLOCK)
#define MAPS_AT      (STAGES * STAGE)
#define LOCAL_BYTES  (MAPS_AT + 2 * MAP_BYTES)
#define ACCUMULATORS (SUB_M / 64 * SUB_N / 2)   /* of a work-item: of each 64 filters together */
#define MULTIPLY(d, a, b, add) WGMMA(SUB_N, OPERAND_KIND, WGMMA_MAJOR(1, 1), d, a, b, add)

/* By all, before a BARRIER(): both maps, x first, and the barriers. */
DEVICE void wgmma_filter_prepare(GLOBAL unsigned INT64 *maps, int kept, LOCAL unsigned char *room,
                                 struct pipeline p, GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gY,
                                 VIEW vY, VIEW eY, struct window x)
{
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + MAPS_AT);
    const int me = LOCAL_ID(), warp = this_warp();

    if (!kept && warp == 0)
        im2col_map(maps, described, me, OPERAND_TYPE, T_BYTES, gX + vX.s0, vX, eX, x, BLK_K);
    else if (!kept && warp == 1)
        im2col_map(maps + MAP_WORDS, described + MAP_BYTES / 4, me - 32, OPERAND_TYPE, T_BYTES, gY + vY.s0,
                   vY, eY, filter_plain(x), BLK_K);
    else if (me == 64)
        pipe_init(p, STAGES, WARPGROUPS);
}

/* The producer: slices first, first + step ... of a tile. */
DEVICE void wgmma_filter_load(struct pipeline p, UINT32 stages, GLOBAL const unsigned INT64 *maps,
                              struct share share, int step, struct window x, VIEW eW, VIEW vDilation)
{
    const int last = filter_column_blocks(eW) - 1, at = block_of_tile(share.tile, 0, eW);
    const int k0 = filter_of_tile(share.tile, eW);
    struct column_block block[BLOCKS_N];
    int k[BLOCKS_M];

    /* Outside of dW, any block of it: nothing reads those sums. */
    UNROLL for (int j = 0; j < BLOCKS_N; j++)
        filter_column_block(&block[j], at + j < last ? at + j : last, eW);
    UNROLL for (int j = 0; j < BLOCKS_M; j++)
        k[j] = k0 + j * 64 < (int)eW.s2 ? k0 + j * 64 : k0;
    map_acquire(maps);
    map_acquire(maps + MAP_WORDS);
    for (int i = 0; i < share.count; i++) {
        const struct pixel out = pixel_of(filter_plain(x), (share.first + i * step) * BLK_K);
        const struct pixel in = filter_source(x, out);
        const UINT32 to = stages + p.stage * STAGE;

        p = producer_acquire(p);
        producer_expect(p, STAGE);
        UNROLL for (int j = 0; j < BLOCKS_M; j++)
            im2col_load(to + j * BYTES_BLOCK, maps + MAP_WORDS, k[j], out, 0, 0, 0, pipe_full(p));
        UNROLL for (int j = 0; j < BLOCKS_N; j++)
            im2col_load(to + (BLOCKS_M + j) * BYTES_BLOCK, maps, block[j].c, in,
                        block[j].s * (int)vDilation.s6, block[j].r * (int)vDilation.s5,
                        block[j].t * (int)vDilation.s4, pipe_full(p));
        p = pipe_next(p, STAGES);
    }
}

/* A warpgroup's first row and column of the tile. */
DEVICE int wgmma_filter_row(int warp)    { return warp / 4 / WARPGROUPS_N * SUB_M; }
DEVICE int wgmma_filter_column(int warp) { return warp / 4 % WARPGROUPS_N * SUB_N; }

/* A warpgroup: the sums of `count` slices. */
DEVICE void wgmma_filter_multiply(float d[ACCUMULATORS], struct pipeline p, UINT32 stages, int warp,
                                  int count)
{
    const int row = wgmma_filter_row(warp) / 64, column = wgmma_filter_column(warp) / 64;
    const UINT32 a = operand_descriptor(stages + row * BYTES_BLOCK, BLK_K);
    const UINT32 b = operand_descriptor(stages + (BLOCKS_M + column) * BYTES_BLOCK, BLK_K);
    const int releases = LOCAL_ID() % 128 == 0;
    struct pipeline before = p;

    for (int i = 0; i < count; i++) {
        const UINT32 at = p.stage * (STAGE / 16);

        consumer_wait(p);
        wgmma_begin();
        UNROLL for (int j = 0; j < SUB_M / 64; j++)
            UNROLL for (int k = 0; k < BLK_K / 16; k++)
                MULTIPLY(d + j * (SUB_N / 2), operand_product(a + at + j * (BYTES_BLOCK / 16), 1, BLK_K, k),
                         operand_product(b + at, 1, BLK_K, k), i + k > 0);
        wgmma_commit();
        UNROLL for (int j = 0; j < SUB_M / 64; j++)
            WGMMA_WAIT(SUB_N, d + j * (SUB_N / 2), "1");        /* the slice before is read */
        if (i > 0 && releases)
            consumer_release(before);
        before = p;
        p = pipe_next(p, STAGES);
    }
    UNROLL for (int j = 0; j < SUB_M / 64; j++)
        WGMMA_WAIT(SUB_N, d + j * (SUB_N / 2), "0");
}
