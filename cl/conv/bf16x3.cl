/* cl/conv/bf16x3.cl - convolution and backward data, f32 by tensor cores for bf16, for NVIDIA's sm_90
 *
 * A product of pixels, as rows of wgmma, and filters, as its columns.  Its sum runs over taps and, within a
 * tap, channels: slices of 32 channels of one tap.  TMA brings the pixels of a slice as they are, f32, with
 * zeros outside of the image (cl/conv/im2col.h); their three bf16 parts are made on the way to the tensor
 * cores, and multiplied by those of the filter, which `split` made before (cl/gemm/bf16x3_rows.h).
 *
 *                  filters: 32 channels of a tap, in parts
 *                 +---------+
 *                 |         |
 *     +-------+   +---------+
 *     | n p q |   |         |  64 pixels: warpgroup 0
 *     |       |   |         |
 *     +-------+   +---------+
 *     |       |   |         |  64 pixels: warpgroup 1
 *     +-------+   +---------+
 *       32 channels
 *
 * Tiles are divided evenly among work-groups, for BLK_M filters each; where they are few, the slices of all
 * tiles, one tile after the other, are.  A tile that is in several work-groups has its sums added by
 * `add_units`, in their order.
 *
 * A filter of one tap that meets each pixel reads the pixels of NCHW images as they are, too: N-major, tiles
 * being of one image each.
 *
 * Backward data is the same product: of pixels of dy, whose offsets go down as taps go up, and of the filter
 * transposed; with strides, one launch for each phase of the pixels of dx (cl/conv/conv.h).
 *
 * FILLS is 1 where the filter has one column, and pixels of dx between those that it meets, none of which has
 * a product, are stored with the one before them.
 *
 * Views and extents are as in cl/conv/conv.h:
 *
 *     eGrid             s2 images, s3 filters; the pixels of the output, or of a phase of it; FILLS: s0
 *                       pixels that are stored for one, s1 those of a row of the output
 *     vFirst vStep      the source of the first pixel, and the step from pixel to pixel
 *     eTaps             s3 channels; the taps along each dimension
 *     vTaps, vOffsets   of the first tap: its number, its offset from vFirst; s1 to s3: steps from tap to tap
 *     eCut              s0 the share of a unit, in pairs of slices or in tiles, s1 how many units have one
 *                       more, s2 units, s3 the pairs of what is shared
 *     vX eX             the source as TMA reads it
 *     vIn eIn           the source as it is, eIn s2 its channels; s3 those of a pixel in a slice, which may
 *                       have several; s0 the w of the first pixel, s1 the step from pixel to pixel
 *
 * Parameters, from conv.tune: BLK_M, STAGES, WARPGROUPS; MN_MAJOR_B: 1 where pixels are N-major; FILLS.
 * Method: cl/gemm/bf16x3_rows.cl; implicit GEMM as in CUTLASS.
 */
#define CONSUMERS  (128 * WARPGROUPS)           /* work-items */
#define PRODUCERS  (MOVES ? 128 : 32)           /* only a whole warpgroup can give its registers up */
#define SPLIT_SPAN 16                           /* of channels, of a work-group that splits */
#define PIECE      (ACCUMULATORS < 16 ? ACCUMULATORS : 16)      /* accumulators that add_units adds at once */

LARGE_LOCAL(conv_bf16x3, STAGES * STAGE)

/* The parts of the filter: a matrix for each tap. */
KERNEL(256) void
split(int rows, int K, int per, VIEW e, GLOBAL const T *RESTRICT g, VIEW v,
      GLOBAL uint4 *RESTRICT parts, VIEW p)
{
    bf16x3_split(GROUP_ID(0), SPLIT_SPAN, rows, K, BLK_K, per, e, g, v, parts, p);
}

DEVICE int slices_of(VIEW eTaps)
{
    return (int)(eTaps.s4 * eTaps.s5 * eTaps.s6) * (((int)eTaps.s3 + BLK_K - 1) / BLK_K);
}

/* Of a tile; a phase that no tap contributes to has one, of zeros. */
DEVICE int pairs_of(VIEW eTaps)
{
    const int slices = slices_of(eTaps);

    return slices ? (slices + 1) / 2 : 1;
}

/* A slice: taps by their order, and a channel. */
struct slice { int t, r, s, c; };

DEVICE struct slice slice_at(VIEW eTaps, int at)
{
    const int each = ((int)eTaps.s3 + BLK_K - 1) / BLK_K, tap = at / each, row = quotient(tap, (int)eTaps.s6);
    const int plane = quotient(row, (int)eTaps.s5);
    const struct slice i = { plane, row - plane * (int)eTaps.s5, tap - row * (int)eTaps.s6,
                             (at - tap * each) * BLK_K };

    return i;
}

DEVICE struct slice slice_next(VIEW eTaps, struct slice i)
{
    i.c += BLK_K;
    if (i.c >= (int)eTaps.s3) {
        i.c = 0;
        if (++i.s == (int)eTaps.s6) {
            i.s = 0;
            if (++i.r == (int)eTaps.s5) {
                i.r = 0;
                i.t++;
            }
        }
    }
    return i;
}

/* The sum of slices `first` up to `end` for filter k and pixel n, by multiply-adds. */
DEVICE R sum_of_slices(int first, int end, int k, int n, struct window win, VIEW eTaps, VIEW vTaps,
                       VIEW vOffsets, GLOBAL const T *gIn, VIEW vIn, VIEW eIn, GLOBAL const T *gW, VIEW vW)
{
    const struct pixel at = pixel_of(win, n);
    const int w0 = (int)eIn.s0 + n % win.count[0] * (int)eIn.s1;
    struct slice i = slice_at(eTaps, first);
    R sum = ZERO;

    NO_UNROLL for (; first < end; first++, i = slice_next(eTaps, i)) {
        const int d = at.d + (int)vOffsets.s4 + i.t * (int)vOffsets.s1;
        const int h = at.h + (int)vOffsets.s5 + i.r * (int)vOffsets.s2;

        NO_UNROLL for (int c = i.c; c < i.c + BLK_K && c < (int)eTaps.s3; c++) {
            const int across = c / (int)eIn.s3, channel = c - across * (int)eIn.s3;
            const int w = w0 + (int)vOffsets.s6 + i.s * (int)vOffsets.s3 + across;
            const INDEX s = (INDEX)vTaps.s6 + i.s * (INDEX)vTaps.s3 + across;

            if (channel < (int)eIn.s2 && d >= 0 && d < (int)eIn.s4 && h >= 0 && h < (int)eIn.s5 &&
                w >= 0 && w < (int)eIn.s6)
                sum = FMA(gIn[(INDEX)vIn.s0 + at.n * (INDEX)vIn.s2 + channel * (INDEX)vIn.s3 +
                              d * (INDEX)vIn.s4 + h * (INDEX)vIn.s5 + w * (INDEX)vIn.s6],
                          gW[(INDEX)vW.s0 + k * (INDEX)vW.s2 + channel * (INDEX)vW.s3 +
                             ((INDEX)vTaps.s4 + i.t * (INDEX)vTaps.s1) * (INDEX)vW.s4 +
                             ((INDEX)vTaps.s5 + i.r * (INDEX)vTaps.s2) * (INDEX)vW.s5 + s * (INDEX)vW.s6],
                          sum);
        }
    }
    return sum;
}

/* ---- pixels ---------------------------------------------------------------------------------------- */

/* The pixels of a tile: from n on, up to `end`. */
struct span { int n, end, image, in_image; };

DEVICE struct span pixels_of(VIEW eGrid, int tile)
{
    const int pixels = (int)(eGrid.s4 * eGrid.s5 * eGrid.s6), each = (pixels + BLK_N - 1) / BLK_N;
    const int image = MN_MAJOR_B ? tile / each : 0, first = (tile - image * each) * BLK_N;
    const struct span nchw = { image * pixels + first, (image + 1) * pixels, image, first };
    const struct span all = { tile * BLK_N, (int)eGrid.s2 * pixels, 0, 0 };

    return MN_MAJOR_B ? nchw : all;
}

/* The map of the source, by one warp; room: 128 bytes. */
DEVICE void source_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, GLOBAL const T *x, VIEW v,
                       VIEW e, struct window win)
{
    if (MN_MAJOR_B) {
        struct tensor_map m;

        m.address = (UINT64)x;
        m.type = MAP_TYPE_F32;
        m.rank = 3;
        m.pixels = 0;
        m.extent[0] = (int)e.s6;
        m.extent[1] = (int)e.s3;
        m.extent[2] = (int)e.s2;
        m.stride[0] = (UINT64)v.s3 * 4;
        m.stride[1] = (UINT64)v.s2 * 4;
        m.box[0] = m.box[1] = 32;
        m.box[2] = m.step[0] = m.step[1] = m.step[2] = 1;
        map_keep(map, room, lane, m);
    } else {
        im2col_map(map, room, lane, MAP_TYPE_F32, 4, x, v, e, win, BLK_N);
    }
}

/* Where pixel n of the grid is in a view. */
DEVICE INDEX pixel_offset(VIEW v, VIEW e, int n)
{
    const int row = n / (int)e.s6, plane = quotient(row, (int)e.s5);
    const int image = IMAGE_RANK == 5 ? plane / (int)e.s4 : plane;

    return (INDEX)v.s0 + image * (INDEX)v.s2 + (plane - image * (int)e.s4) * (INDEX)v.s4 +
           (row - plane * (int)e.s5) * (INDEX)v.s5 + (n - row * (int)e.s6) * (INDEX)v.s6;
}

/* ---- the output ----------------------------------------------------------------------------------- */

/* Where a lane's two pixels are, but for the filter; and from filter to filter.  there: how many of the two
 * are in the output. */
struct place { INDEX c[2], residual[2], bias[2], step_c, step_residual, step_bias; int there, fills[2]; };

/* How many pixels are stored for pixel n of the grid. */
DEVICE int fills_of(VIEW eGrid, int n)
{
    const int fill = (int)eGrid.s0, left = (int)eGrid.s1 - n % (int)eGrid.s6 * fill;

    return left < fill ? left : fill;
}

#define PLACE_OF(n, end)                                                                                \
    { { pixel_offset(vC, eGrid, LEAST(n, end)), pixel_offset(vC, eGrid, LEAST(n + 1, end)) },           \
      { pixel_offset(vR, eGrid, LEAST(n, end)), pixel_offset(vR, eGrid, LEAST(n + 1, end)) },           \
      { pixel_offset(vBias, eGrid, LEAST(n, end)), pixel_offset(vBias, eGrid, LEAST(n + 1, end)) },     \
      (INDEX)vC.s3, (INDEX)vR.s3, (INDEX)vBias.s3, (n) + 1 < (end) ? 2 : (n) < (end),                   \
      { FILLS ? fills_of(eGrid, LEAST(n, end)) : 1, FILLS ? fills_of(eGrid, LEAST(n + 1, end)) : 1 } }
#define LEAST(n, end) ((n) < (end) ? (n) : (end) - 1)

DEVICE R finish(const struct output *o, const struct place *p, int pixel, int k, R sum)
{
    return epilogue_at(o, p->residual[pixel] + k * p->step_residual, p->bias[pixel] + k * p->step_bias,
                       o->alpha * sum);
}

/* `count` accumulators, the first of which is of filter k, of M: in pairs of filters where those are
 * contiguous, of pixels where these are. */
DEVICE void store_pixels(const struct output *o, const struct place *p, const float *d, const int count,
                         int k, int M)
{
    const int aligned = (UINT64)o->c % 8 == 0, even = p->c[0] % 2 == 0;
    const int by_filters = aligned && even && p->c[1] % 2 == 0 && p->step_c == 1;
    const int by_pixels = aligned && even && p->c[1] == p->c[0] + 1 && p->step_c % 2 == 0 && p->there == 2;

    UNROLL for (int i = 0; i < count; i += 4) {
        const int m = k + ACC_COL(i);
        R x[4];

        UNROLL for (int j = 0; j < 4; j++)
            x[j] = finish(o, p, j / 2, m + j % 2 < M ? m + j % 2 : M - 1, d[i + j]);
        UNROLL for (int j = 0; j < 2; j++) {
            GLOBAL TC *const to = o->c + p->c[j] + m * p->step_c;

            if (by_pixels) {
                if (m + j < M)
                    STORE_F32_PAIR(o->c + p->c[0] + (m + j) * p->step_c, x[j], x[2 + j]);
            } else if (j < p->there) {
                if (by_filters && m + 1 < M) {
                    STORE_F32_PAIR(to, x[2 * j], x[2 * j + 1]);
                } else {
                    if (m < M)
                        to[0] = x[2 * j];
                    if (m + 1 < M)
                        to[p->step_c] = x[2 * j + 1];
                }
            }
        }
    }
}

/* ... and what lies between pixels; the steps are from pixel to pixel. */
DEVICE void store_filled(const struct output *o, const struct place *p, const float *d, const int count,
                         int k, int M, INDEX step_c, INDEX step_residual, INDEX step_bias)
{
    const int in_pairs = step_c == 1 && p->step_c % 2 == 0 && (UINT64)o->c % 8 == 0;

    UNROLL for (int i = 0; i < count; i++) {
        const int m = k + ACC_COL(i), j = ACC_BELOW(i), fills = m < M && j < p->there ? p->fills[j] : 0;
        const INDEX at_r = p->residual[j] + m * p->step_residual, at_bias = p->bias[j] + m * p->step_bias;
        GLOBAL TC *const to = o->c + p->c[j] + m * p->step_c;

        if (fills == 2 && in_pairs && p->c[j] % 2 == 0) {
            STORE_F32_PAIR(to, epilogue_at(o, at_r, at_bias, o->alpha * d[i]),
                           epilogue_at(o, at_r + step_residual, at_bias + step_bias, ZERO));
        } else {
            NO_UNROLL for (int f = 0; f < fills; f++)
                to[f * step_c] = epilogue_at(o, at_r + f * step_residual, at_bias + f * step_bias,
                                             f ? ZERO : o->alpha * d[i]);
        }
    }
}

#define STORE_TILE(d, count, k)                                                                 \
    do {                                                                                        \
        if (FILLS)                                                                              \
            store_filled(&output, &place, d, count, k, M, (INDEX)(vC.s6 / eGrid.s0),            \
                         (INDEX)(vR.s6 / eGrid.s0), (INDEX)(vBias.s6 / eGrid.s0));              \
        else                                                                                    \
            store_pixels(&output, &place, d, count, k, M);                                      \
    } while (0)

/* Where the partial sums of a unit are: of the tile that it begins with, or of the one that it ends with. */
DEVICE GLOBAL float *sums_of(GLOBAL float *gSums, VIEW eCut, int tile_m, int unit, int slot)
{
    return gSums + ((INT64)(tile_m * (int)eCut.s2 + unit) * 2 + slot) * (BLK_M * BLK_N);
}

/* ---- the kernel -------------------------------------------------------------------------------------- */

KERNEL(CONSUMERS + PRODUCERS) void
conv_bf16x3(VIEW eGrid, VIEW vFirst, VIEW vStep, VIEW eTaps, VIEW vTaps, VIEW vOffsets, VIEW eCut,
            GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const uint4 *parts_a, VIEW pA,
            GLOBAL unsigned INT64 *gMaps, int first_map, int kept, GLOBAL float *gSums,
            GLOBAL const T *gIn, VIEW vIn, VIEW eIn, GLOBAL const T *gW, VIEW vW, R alpha, CONV_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));

    const int M = (int)eGrid.s3, tiles_m = (M + BLK_M - 1) / BLK_M, tile_m = GROUP_ID(0) % tiles_m;
    const int unit = GROUP_ID(0) / tiles_m, pairs = pairs_of(eTaps), slices = slices_of(eTaps);
    const int begin = unit_begins(unit, (int)eCut.s0, (int)eCut.s1) * (int)eCut.s3;
    const int end = unit_begins(unit + 1, (int)eCut.s0, (int)eCut.s1) * (int)eCut.s3;
    const int me = LOCAL_ID(), warp = this_warp();
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    const struct window win = window_of(eGrid, vFirst, vStep);
    GLOBAL unsigned INT64 *const map = gMaps + first_map * (MAP_BYTES / 8);
    struct pipeline p = pipe_at(barriers, STAGES);

    if (!kept && warp == 0)
        source_map(map, (LOCAL UINT32 *)sAB, me, gX + vX.s0, vX, eX, win);
    else if (me == 32)
        pipe_init(p, STAGES, ROLE_WARPS);
    BARRIER();

    if (warp >= ROLE_WARPS) {
        role_give_registers(MOVES);
        if (warp == ROLE_WARPS && is_elected()) {
            const int each = ((int)eTaps.s3 + BLK_K - 1) / BLK_K;

            map_acquire(map);
            for (int at = begin, here; at < end; at += here) {
                const int tile = at / pairs, first = at - tile * pairs;
                const struct span span = pixels_of(eGrid, tile);
                const struct pixel pixel = pixel_of(win, span.n);
                struct slice i = slice_at(eTaps, 2 * first);

                here = pairs - first < end - at ? pairs - first : end - at;
                for (int left = 2 * here, at_slice = 2 * first; left > 0; left--, at_slice++) {
                    const int is = at_slice < slices;       /* past the last one, zeros */
                    const int t = is ? i.t : 0, r = is ? i.r : 0, s = is ? i.s : 0;
                    const INT64 panel = ((INT64)vTaps.s4 + t * (int)vTaps.s1) * pA.s2 +
                                        ((INT64)vTaps.s5 + r * (int)vTaps.s2) * pA.s3 +
                                        ((INT64)vTaps.s6 + s * (int)vTaps.s3) * pA.s4 + tile_m;
                    GLOBAL const uint4 *const a =
                        parts_a + pA.s7 + (panel * each + (is ? i.c / BLK_K : 0)) * (BYTES_A / 16);
                    const UINT32 to = stages + p.stage * STAGE;

                    p = producer_acquire(p);
                    producer_expect(p, STAGE);
                    if (MN_MAJOR_B)
                        operand_load(to, map, 1, BLK_N, BLK_N, span.in_image, is ? i.c : each * BLK_K,
                                     span.image, pipe_full(p));
                    else
                        im2col_load(to, map, is ? i.c : each * BLK_K, pixel,
                                    is ? (int)vOffsets.s6 + s * (int)vOffsets.s3 : 0,
                                    is ? (int)vOffsets.s5 + r * (int)vOffsets.s2 : 0,
                                    is ? (int)vOffsets.s4 + t * (int)vOffsets.s1 : 0, pipe_full(p));
                    copy_bytes(to + BYTES_B, a, BYTES_A, pipe_full(p));
                    p = pipe_next(p, STAGES);
                    i = slice_next(eTaps, i);
                }
            }
        }
    } else {
        role_take_registers(MOVES);

        const int r = row_of_b(me), k = tile_m * BLK_M + acc_first_col(me % 32);
        const struct output output = CONV_OUTPUT;
        UINT32 even[PARTS_OF_B], odd[PARTS_OF_B];
        float d[ACCUMULATORS], sum[ACCUMULATORS], copy[ACCUMULATORS];

        UNROLL for (int i = 0; i < ACCUMULATORS; i++)
            d[i] = 0.0f;
        load_parts(even, p, sAB, me);
        for (int at = begin, here; at < end; at += here) {
            const int tile = at / pairs, first = at - tile * pairs;
            const struct span span = pixels_of(eGrid, tile);
            const int n = span.n + r;

            here = pairs - first < end - at ? pairs - first : end - at;
            UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                sum[i] = 0.0f;
            for (int i = 0; i < here; i++) {
                const struct pipeline other = pipe_next(p, STAGES);
                const int last = at + i + 1 == end;         /* of the unit: then `other` is read again */

                multiply(sum, d, p, even, other, odd, stages, sAB, me);
                p = pipe_next(other, STAGES);
                multiply(sum, d, other, odd, last ? other : p, even, stages, sAB, me);
            }

            const struct place place = PLACE_OF(n, span.end);
            GLOBAL float *const to = sums_of(gSums, eCut, tile_m, unit, at > begin) + me * 4;
            const int whole = here == pairs;

            if (bf16x3_all_finite(sum, ACCUMULATORS)) {
                UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                    sum[i] *= BF16X3_UNSCALE;
            } else {
                const int last = 2 * (first + here) < slices ? 2 * (first + here) : slices;

                UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                    copy[i] = sum[i];           /* where a loop can index them: what follows is long */
                NO_UNROLL for (int i = 0; i < ACCUMULATORS; i++) {
                    const int m = k + ACC_COL(i), at_n = n + ACC_BELOW(i);

                    if (ABS(copy[i]) <= BF16X3_LARGEST || m >= M || at_n >= span.end)
                        copy[i] *= BF16X3_UNSCALE;
                    else
                        copy[i] = sum_of_slices(2 * first, last, m, at_n, win, eTaps, vTaps, vOffsets, gIn,
                                                vIn, eIn, gW, vW);
                }
                UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                    sum[i] = copy[i];
            }
            if (whole)
                STORE_TILE(sum, ACCUMULATORS, k);
            else
                UNROLL for (int i = 0; i < ACCUMULATORS; i += 4) {
                    float4 v;

                    v.x = sum[i], v.y = sum[i + 1], v.z = sum[i + 2], v.w = sum[i + 3];
                    *(GLOBAL float4 *)(to + i * CONSUMERS) = v;
                }
            warp_meet();
        }
    }
}

/* The tile in which a unit begins, if that is the first to begin in it: its partial sums, in order, to the
 * output.  A work-group has PIECE accumulators of each lane. */
KERNEL(CONSUMERS) void
add_units(VIEW eGrid, VIEW eTaps, VIEW eCut, GLOBAL float *gSums, R alpha, CONV_PARAMS)
{
    const int M = (int)eGrid.s3, pieces = ACCUMULATORS / PIECE, tiles_m = (M + BLK_M - 1) / BLK_M;
    const int piece = GROUP_ID(0) % pieces, tile_m = GROUP_ID(0) / pieces % tiles_m;
    const int first = GROUP_ID(0) / pieces / tiles_m, each = (int)eCut.s0, more = (int)eCut.s1;
    const int pairs = pairs_of(eTaps), begin = unit_begins(first + 1, each, more), tile = begin / pairs;
    const struct span span = pixels_of(eGrid, tile);
    const int units = (int)eCut.s2, me = LOCAL_ID(), n = span.n + row_of_b(me);
    const int k = tile_m * BLK_M + acc_first_col(me % 32) + ACC_COL(PIECE) * piece;
    const struct output output = CONV_OUTPUT;
    float sum[PIECE];

    if (begin % pairs == 0 || unit_begins(first, each, more) > tile * pairs)
        return;
    UNROLL for (int i = 0; i < PIECE; i++)
        sum[i] = 0.0f;
    for (int unit = first; unit < units; unit++) {
        const int from = unit_begins(unit, each, more);

        if (from >= (tile + 1) * pairs)
            break;

        GLOBAL const float *const sums = sums_of(gSums, eCut, tile_m, unit, from < tile * pairs) + me * 4;

        UNROLL for (int i = 0; i < PIECE; i += 4) {
            const float4 v = *(GLOBAL const float4 *)(sums + (piece * PIECE + i) * CONSUMERS);

            sum[i] += v.x;
            sum[i + 1] += v.y;
            sum[i + 2] += v.z;
            sum[i + 3] += v.w;
        }
    }

    const struct place place = PLACE_OF(n, span.end);

    STORE_TILE(sum, PIECE, k);
}
