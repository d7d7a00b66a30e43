/* cl/conv/wgmma.h - tiles of a convolution by wgmma: what the producer loads, which output rows are whose
 *
 * A tile of the output has BLK_M pixels and BLK_N channels; a slice of the sum is one tap and 128 bytes of
 * channels.  Backward data takes its pixels in phases, each of which meets its own taps: nothing is
 * multiplied by zeros of a stride.  All phases have the grid of the largest; what a smaller one lacks is not
 * stored.
 *
 * A tile's products are those of cl/gemm/wgmma.h, with A the pixels, K-major, and B the filter: K-major in
 * forward; N-major in backward data, but for f32, whose filter is K-major there, too, in a copy.
 *
 * With TWINS images number `images` and on are twins of those before, of which the last row of taps reads.
 *
 * Takes: DIRECTION TWINS; conv.h, output.h, im2col.h, tile/scheduler.h, gemm/wgmma.h.
 * Gives: struct phase, MOST_PHASES, CONV_PHASE(), tiles_with_taps(), slices_of(), CONV_TILE_OUTPUT(),
 *        CONV_TILE_PARAMS, conv_row(), conv_load_filter(), conv_load().
 */
/* The phase of a tile: its pixels, and the taps of its sums. */
struct phase { int d, h, w; struct taps t, r, s; };

DEVICE int phase_taps(LOCAL const struct phase *f)
{
    return (int)(f->t.count * f->r.count * f->s.count);
}

/* The i-th in the order that phases are computed in: eGrid.s0, vFirst.s1 and vFirst.s0 have four
 * bits of w, h and d for each. */
#define MOST_PHASES 16
#define CONV_PHASE(f, i)                                                                            \
    do {                                                                                            \
        (f)->w = (int)((UINT64)eGrid.s0 >> 4 * (i) & 15);                                           \
        (f)->h = (int)((UINT64)vFirst.s1 >> 4 * (i) & 15);                                          \
        (f)->d = (int)((UINT64)vFirst.s0 >> 4 * (i) & 15);                                          \
        CONV_TAPS(&(f)->t, s4, s1, (f)->d);                                                         \
        CONV_TAPS(&(f)->r, s5, s2, (f)->h);                                                         \
        CONV_TAPS(&(f)->s, s6, s3, (f)->w);                                                         \
    } while (0)

/* The tiles of phases that meet taps, which are the first, or if none does of one phase; all: of a phase. */
DEVICE int tiles_with_taps(LOCAL const struct phase *phases, int count, int all)
{
    int with = 1;

    while (with < count && phase_taps(&phases[with]) > 0)
        with++;
    return with * all;
}

/* Of a tile's slices, those of its part of a sum that is split; where there is none, one of zeros. */
DEVICE int slices_of(struct tile t, LOCAL const struct phase *phases, int span, int channels)
{
    const int left = phase_taps(&phases[t.batch]) * channels - t.part * span;

    return left < 1 ? 1 : left < span ? left : span;
}

/* The row of the output that has pixel m of a phase; `none` where there is none. */
DEVICE int conv_row(int m, LOCAL const struct phase *f, struct window win, VIEW eOut, VIEW vStep, VIEW vC,
                    VIEW eX, int none)
{
    const int plain = DIRECTION == 0 || (vStep.s4 == 1 && vStep.s5 == 1 && vStep.s6 == 1);

    if (PIXELS_MAJOR) {
        const int n = divided(m, win.by[0]), p = m - n * win.count[0];

        return n < (int)eOut.s2 && p < (int)eX.s6
             ? ACROSS ? (int)(n * (INDEX)vC.s2 + p * (INDEX)vC.s6) : n * (int)eX.s6 + p : none;
    }
    if (!ACROSS && plain)
        return m < none ? m : none;

    const int row = divided(m, win.by[0]), plane = divided(row, win.by[1]), n = divided(plane, win.by[2]);
    const int w = (m - row * win.count[0]) * (plain ? 1 : (int)vStep.s6) + f->w;
    const int h = (row - plane * win.count[1]) * (plain ? 1 : (int)vStep.s5) + f->h;
    const int d = (plane - n * win.count[2]) * (plain ? 1 : (int)vStep.s4) + f->d;

    if (n >= (int)eOut.s2 || w >= (int)eOut.s6 || h >= (int)eOut.s5 || d >= (int)eOut.s4)
        return none;
    return ACROSS ? (int)(n * (INDEX)vC.s2 + d * (INDEX)vC.s4 + h * (INDEX)vC.s5 + w * (INDEX)vC.s6)
                  : ((n * (int)eOut.s4 + d) * (int)eOut.s5 + h) * (int)eOut.s6 + w;
}

/* A kernel's parameters, in the order that they are needed in, as GEMM_PARAMS of gemm/wgmma.h.  N: channels
 * of the output; from_channels: of the source; staged: whether the residual may be. */
#define CONV_TILE_PARAMS                                                                            \
    int groups, int tiles, int N, int from_channels, GLOBAL unsigned INT64 *gMaps, int first_map,   \
    int kept, GLOBAL const T *gX, GLOBAL const T *gW, int span, int staged, R alpha,                \
    VIEW eGrid, VIEW vFirst, VIEW vWindow, VIEW vTiles, VIEW eTaps, VIEW eOut, VIEW vStep,          \
    VIEW vPad, VIEW vMeet, VIEW eX, VIEW vX, VIEW vW, GLOBAL float *gSums

/* ---- the source ------------------------------------------------------------------------ */

/* Its map.  PIXELS_MAJOR: images of one row of pixels, which are contiguous, in boxes of 64 of them; a tile's
 * boxes may be of different images, and each image begins a box. */
DEVICE void conv_source_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, GLOBAL const T *x,
                            VIEW v, VIEW e, struct window win)
{
    if (PIXELS_MAJOR) {
        struct tensor_map m;

        m.address = (UINT64)x;
        m.type = OPERAND_TYPE;
        m.rank = 3;
        m.pixels = 0;
        m.extent[0] = (int)e.s6;
        m.extent[1] = (int)e.s3;
        m.extent[2] = (int)e.s2;
        m.stride[0] = (UINT64)v.s3 * T_BYTES;
        m.stride[1] = (UINT64)v.s2 * T_BYTES;
        m.box[0] = m.box[1] = OPERAND_ROW;
        m.box[2] = m.step[0] = m.step[1] = m.step[2] = 1;
        map_keep(map, room, lane, m);
    } else {
        im2col_map(map, room, lane, OPERAND_TYPE, T_BYTES, x, v, e, win, BLK_M);
    }
}

/* The boxes of a tile, from channel c on. */
DEVICE void conv_load_boxes(UINT32 to, GLOBAL const unsigned INT64 *map, int c, struct pixel at,
                            struct window win, UINT32 full)
{
    UNROLL for (int i = 0; i < WARPGROUPS; i++) {
        copy_box_3d(to + i * OPERAND_ROW * 128, map, at.w, c, at.n, full);
        at.w += OPERAND_ROW;
        if (at.w == win.count[0]) {
            at.w = 0;
            at.n++;
        }
    }
}

/* The filter's slice of a tap: BLK_N channels of the output, from n0 on, by BLK_K that are summed, from c
 * on. */
DEVICE void conv_load_filter(UINT32 to, GLOBAL const unsigned INT64 *map, int n0, int c, int s, int r, int t,
                             UINT32 full)
{
    if (MN_MAJOR_B) {
        UNROLL for (int i = 0; i < BLK_N / OPERAND_ROW; i++)
            filter_load(to + i * OPERAND_ROW * 128, map, n0 + i * OPERAND_ROW, s, r, t, c, full);
    } else {
        filter_load(to, map, c, s, r, t, n0, full);
    }
}

/* A tap of a phase: where it reads the source, as offsets from a pixel, and the filter. */
struct tap { int s, r, t, of_s, of_r, of_t; };

DEVICE struct tap tap_at(LOCAL const struct phase *f, struct window win, int s, int r, int t)
{
    const struct tap tap = { (int)(f->s.shift + s * f->s.delta) - win.first[0],
                             (int)(f->r.shift + r * f->r.delta) - win.first[1],
                             (int)(f->t.shift + t * f->t.delta) - win.first[2],
                             (int)(f->s.first + s * f->s.step), (int)(f->r.first + r * f->r.step),
                             (int)(f->t.first + t * f->t.step) };

    return tap;
}

/* The producer: `count` slices of a tile, whose first pixel is `at`, from number `first` on, tap by tap;
 * channels: so many slices of them.  What a slice does not change is kept: the producer sets the pace of
 * small tiles. */
DEVICE struct pipeline conv_load(struct pipeline p, UINT32 stages, GLOBAL const unsigned INT64 *maps,
                                 struct tile tile, struct pixel at, LOCAL const struct phase *f,
                                 struct window win, int channels, int first, int count)
{
    const int none = first >= phase_taps(f) * channels, taps_s = none ? 1 : (int)f->s.count;
    const int taps_r = none ? 1 : (int)f->r.count, number = none ? 0 : quotient(first, channels);
    int c = none ? 0 : first - number * channels, r = quotient(number, taps_s), s = number - r * taps_s;
    int t = quotient(r, taps_r);
    struct tap tap;

    r -= t * taps_r;
    at.n = none ? (1 + TWINS) * win.images : at.n;      /* past all images, and all channels, are zeros */
    tap = tap_at(f, win, s, r, t);
    if (none)
        tap.s = tap.r = tap.t = 0;
    for (int i = 0; i < count; i++) {
        const UINT32 to = stages + p.stage * STAGE;
        struct pixel from = at;

        if (TWINS && r == taps_r - 1)
            from.n += win.images;

        p = producer_acquire(p);
        producer_expect(p, STAGE);
        if (PIXELS_MAJOR)
            conv_load_boxes(to, maps, c * BLK_K, at, win, pipe_full(p));
        else
            im2col_load(to, maps, c * BLK_K, from, tap.s, tap.r, tap.t, pipe_full(p));
        conv_load_filter(to + BYTES_A, maps + MAP_WORDS, tile.n0, none ? channels * BLK_K : c * BLK_K,
                         tap.of_s, tap.of_r, tap.of_t, pipe_full(p));
        p = pipe_next(p, STAGES);
        if (++c == channels) {
            c = 0;
            if (++s == taps_s) {
                s = 0;
                if (++r == taps_r) {
                    r = 0;
                    t++;
                }
            }
            tap = tap_at(f, win, s, r, t);
        }
    }
    return p;
}
