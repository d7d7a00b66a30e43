/* cl/conv/window_filter.cl - as cl/conv/wgmma_filter_splitk.cl, for 3x3 filters and steps of 1: x is loaded
 * once, and each tap's operand is a shifted view of it
 *
 * Rows of both images lie in local memory `pitch` places long: of x, first the zeros before its first pixel,
 * which are also those behind the last pixel of the row before; of dy, last as many zeros.  So with images,
 * and rows of zeros.  Then place i of dy meets place i + r pitch + s of x for tap r, s:
 *
 *     x   0 x x x x x         dy  y y y y y 0         tap 0, 0: y at x - 1
 *         0 x x x x x             y y y y y 0
 *         0 x x x x x
 *
 * A wgmma operand may begin at any row of 128 bytes, since the swizzle goes by the address; and those of 64
 * channels may be as far from each other as taps of a row.  So warpgroup r multiplies 64 filters by 64
 * channels of the three taps of row r, in one product.
 *
 * A place that is no pixel of dy is a zero; but there x may be infinite or NaN.  Sums that are not finite are
 * computed again, by fused multiply-adds.
 *
 * A chunk is some rows of dy of an image, or some whole images; behind its places are zeros up to a multiple
 * of 16.  Partial sums as there: a slice is a chunk.
 *
 * Parameters, from conv.tune: STAGES of PLACES of dy and WINDOW places of x.
 */
#define ITEMS    (128 * WARPGROUPS + 32)
#define BYTES_Y  (PLACES * 128)
#define STAGE    ((PLACES + WINDOW) * 128)
#define MAPS_AT  (STAGES * STAGE)
#define LOCAL_BYTES (MAPS_AT + 2 * MAP_BYTES)
#define SUB_N    (BLK_N / WARPGROUPS)
#define MULTIPLY(d, a, b, add) WGMMA(192, OPERAND_KIND, WGMMA_MAJOR(1, 1), d, a, b, add)

LARGE_LOCAL(conv_window_filter, LOCAL_BYTES)

/* By one warp: a map for boxes of 64 channels, and so many columns, rows and images. */
DEVICE void chunk_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, GLOBAL const T *g, VIEW v,
                      VIEW e, int pitch, int rows, int images)
{
    struct tensor_map m;

    m.address = (UINT64)(g + v.s0);
    m.type = OPERAND_TYPE;
    m.pixels = 0;
    m.box[0] = 128 / T_BYTES;
    m.box[1] = pitch;
    m.box[2] = rows;
    m.box[3] = images;
    m.step[0] = m.step[1] = m.step[2] = m.step[3] = 1;
    image_map(map, room, lane, m, T_BYTES, v, e);
}

/* Clears the places from `from` up to `end` of each stage, that no copy writes. */
DEVICE void clear_places(LOCAL unsigned char *room, int at, int from, int end)
{
    const uint4 zero = { 0, 0, 0, 0 };

    for (int s = 0; s < STAGES; s++)
        for (int i = from * 8 + LOCAL_ID(); i < end * 8; i += ITEMS)
            *(LOCAL uint4 *)(room + s * STAGE + at + i * 16) = zero;
}

/* The pixels of dy of a chunk. */
struct pixels { int first, end; };

DEVICE struct pixels chunk_pixels(int chunk, VIEW eChunk, VIEW eY)
{
    const int width = (int)eY.s6, image = (int)eY.s5 * width, rows = (int)eChunk.s5, images = (int)eChunk.s2;
    const int n = quotient(chunk, (int)eChunk.s3), h = (chunk - n * (int)eChunk.s3) * rows;
    const int left = (int)eY.s5 - h < rows ? (int)eY.s5 - h : rows;
    const int all = (int)eY.s2 - n * images < images ? (int)eY.s2 - n * images : images;
    const struct pixels p = { n * images * image + h * width, n * images * image + (all - 1) * image +
                              (h + left) * width };

    return p;
}

/* eChunk: s2 images, s3 their chunks, s4 rows of x, s5 rows of dy, s6 pitch.  vFirst: s5 and s6 the first row
 * and column of x, s1 and s2 the rows and columns of dy as prepared divisors.  vDilation: s5, s6. */
KERNEL(ITEMS) void
conv_window_filter(GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gY, VIEW vY, VIEW eY, VIEW eChunk,
                   VIEW vFirst, VIEW eW, VIEW vDilation, int tiles, int chunks, int parts,
                   GLOBAL unsigned INT64 *gMaps, int first_map, int kept,
                   GLOBAL float *RESTRICT gSums)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), pitch = (int)eChunk.s6;
    const int rows_x = (int)eChunk.s4, rows_y = (int)eChunk.s5, images = (int)eChunk.s2;
    const int places = images * rows_y * pitch, steps = (places + 15) / 16, row = pitch * (int)vDilation.s5;
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(room));
    const struct window x = { { (int)eY.s6, (int)eY.s5, 1 }, { (int)vFirst.s6, (int)vFirst.s5, 0 },
                              { 1, 1, 1 }, 0, { (INT64)vFirst.s2, (INT64)vFirst.s1, 0 } };
    LOCAL UINT32 *const described = (LOCAL UINT32 *)(room + MAPS_AT);
    GLOBAL unsigned INT64 *const maps = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES);
    struct share share;

    filter_share(&share, GROUP_ID(0), tiles, chunks, parts);
    if (!kept && warp == 0)
        chunk_map(maps, described, lane, gX, vX, eX, pitch, rows_x, images);
    else if (!kept && warp == 1)
        chunk_map(maps + MAP_WORDS, described + MAP_BYTES / 4, lane, gY, vY, eY, pitch, rows_y, images);
    else if (me == 64)
        pipe_init(p, STAGES, WARPGROUPS);
    clear_places(room, 0, places, steps * 16);
    clear_places(room, BYTES_Y, images * rows_x * pitch, steps * 16 + 2 * row + 2 * (int)vDilation.s6);
    fence_async_proxy();
    BARRIER();

    const int k0 = filter_of_tile(share.tile, eW);

    if (warp == ROLE_WARPS) {
        if (is_elected()) {
            const int in_image = (int)eChunk.s3;
            struct column_block b;

            filter_column_block(&b, block_of_tile(share.tile, 0, eW), eW);
            map_acquire(maps);
            map_acquire(maps + MAP_WORDS);
            for (int i = 0; i < share.count; i++) {
                const int chunk = share.first + i * parts, n = quotient(chunk, in_image);
                const int h = (chunk - n * in_image) * rows_y;
                const UINT32 to = stages + p.stage * STAGE;

                p = producer_acquire(p);
                producer_expect(p, images * (rows_x + rows_y) * pitch * 128);
                copy_box_4d(to, maps + MAP_WORDS, k0, 0, h, n * images, pipe_full(p));
                copy_box_4d(to + BYTES_Y, maps, b.c, (int)vFirst.s6, h + (int)vFirst.s5, n * images,
                            pipe_full(p));
                p = pipe_next(p, STAGES);
            }
        }
    } else {
        const int r = warp / 4, releases = me % 128 == 0, m = acc_first_row(warp % 4, lane);
        const int n = r * SUB_N + acc_first_col(lane);
        const UINT32 first_a = operand_descriptor(stages, 8);
        const UINT32 first_b = wgmma_descriptor(stages + BYTES_Y + r * row * 128, (int)vDilation.s6 * 128);
        float d[SUB_N / 2];

        for (int i = 0; i < share.count; i++) {
            UINT32 a = first_a + p.stage * (STAGE / 16), b = first_b + p.stage * (STAGE / 16);

            consumer_wait(p);
            wgmma_begin();
            NO_UNROLL for (int k = 0; k < steps; k++) {
                MULTIPLY(d, wgmma_at(a), wgmma_at(b), i + k > 0);
                a += 16 * 128 / 16;
                b += 16 * 128 / 16;
            }
            wgmma_commit();
            WGMMA_WAIT(192, d, "0");
            if (releases)
                consumer_release(p);
            p = pipe_next(p, STAGES);
        }
        if (!acc_finite(d, SUB_N / 2)) {
            float copy[SUB_N / 2];              /* where a loop can index them: what follows is long */

            UNROLL for (int i = 0; i < SUB_N / 2; i++)
                copy[i] = d[i];
            NO_UNROLL for (int i = 0; i < SUB_N / 2; i++) {
                const int k = k0 + m + ACC_ROW(i);
                struct column_block b;

                if (ABS(copy[i]) <= ACC_LARGEST || !filter_column(&b, share.tile, n + ACC_COL(i), eW) ||
                    k >= (int)eW.s2)
                    continue;
                copy[i] = ZERO;
                for (int j = share.first; j < chunks; j += parts) {
                    const struct pixels of = chunk_pixels(j, eChunk, eY);

                    copy[i] = filter_pixels(copy[i], of.first, of.end, k, b, x, vDilation, gX, vX, eX, gY,
                                            vY);
                }
            }
            UNROLL for (int i = 0; i < SUB_N / 2; i++)
                d[i] = copy[i];
        }
        store_pairs(gSums, (INDEX)GROUP_ID(0) * SLOT, BLK_N, 1, d, SUB_N / 2, m, m + 8, n, BLK_M,
                    BLK_N);
    }
}
