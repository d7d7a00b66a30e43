/* cl/conv/wgmma.h - tiles of a convolution by wgmma: what the producer loads, which output rows are whose
 *
 * A tile of the output has BLK_M pixels and BLK_N channels; a slice of the sum is one tap and 128 bytes of
 * channels.  Backward data takes its pixels in phases, each of which meets its own taps: nothing is
 * multiplied by zeros of a stride.  All phases have the grid of the largest; what a smaller one lacks is not
 * stored.
 *
 * A tile's products are those of cl/gemm/wgmma.h, with A the pixels, K-major, and B the filter: K-major in
 * forward, N-major in backward data.
 *
 * Takes: DIRECTION; conv.h, im2col.h, tile/scheduler.h, gemm/wgmma.h.
 * Gives: MAP_NUMBER, struct phase, MOST_PHASES, CONV_PHASE(), slices_of(), CONV_TILE_OUTPUT(), conv_row(),
 *        conv_load_filter(), conv_load().
 */
#define MAP_NUMBER (TYPE == TYPE_BF16 ? MAP_TYPE_BF16 : MAP_TYPE_F16)

/* The phase of a tile: its pixels, and the taps of its sums. */
struct phase { int d, h, w; struct taps t, r, s; };

DEVICE int phase_taps(LOCAL const struct phase *f)
{
    return (int)(f->t.count * f->r.count * f->s.count);
}

/* The i-th in the order that phases are computed in: eGrid.s0 has four bits for each. */
#define MOST_PHASES 16
#define CONV_PHASE(f, i)                                                                            \
    do {                                                                                            \
        INDEX at_ = (INDEX)((UINT64)eGrid.s0 >> 4 * (i) & 15);                                      \
                                                                                                    \
        (f)->w = (int)divmod(&at_, phases_along((INDEX)eOut.s6, (INDEX)vStep.s6));                  \
        (f)->h = (int)divmod(&at_, phases_along((INDEX)eOut.s5, (INDEX)vStep.s5));                  \
        (f)->d = (int)at_;                                                                          \
        FIND_TAPS(&(f)->t, &(f)->r, &(f)->s, (f)->d, (f)->h, (f)->w);                               \
    } while (0)

/* Of a tile's slices, those of its part of a sum that is split; where there is none, one of zeros. */
DEVICE int slices_of(struct tile t, LOCAL const struct phase *phases, int span, int channels)
{
    const int left = phase_taps(&phases[t.batch]) * channels - t.part * span;

    return left < 1 ? 1 : left < span ? left : span;
}

/* The output as a matrix of pixels and channels, for cl/tile/store.h. */
#if RESIDUAL
#define CONV_TILE_RESIDUAL beta, gR + vR.s0, (INDEX)vR.s6, (INDEX)vR.s3
#else
#define CONV_TILE_RESIDUAL ZERO, 0, 0, 0
#endif
#if BIAS
#define CONV_TILE_BIAS     gBias + vBias.s0, (INDEX)vBias.s6, (INDEX)vBias.s3
#else
#define CONV_TILE_BIAS     0, 0, 0
#endif
#define CONV_TILE_OUTPUT(pixels, channels)                                                          \
    { pixels, channels, alpha, gC + vC.s0, (INDEX)vC.s6, (INDEX)vC.s3, 0, 0, 0,                     \
      CONV_TILE_RESIDUAL, CONV_TILE_BIAS }

/* The row of the output that has pixel m of a phase; `none` where there is none. */
DEVICE int conv_row(int m, LOCAL const struct phase *f, struct window win, VIEW eOut, VIEW vStep, int none)
{
    if (DIRECTION == 0 || (vStep.s4 == 1 && vStep.s5 == 1 && vStep.s6 == 1))
        return m < none ? m : none;

    const int row = m / win.count[0], plane = row / win.count[1], n = plane / win.count[2];
    const int w = (m - row * win.count[0]) * (int)vStep.s6 + f->w;
    const int h = (row - plane * win.count[1]) * (int)vStep.s5 + f->h;
    const int d = (plane - n * win.count[2]) * (int)vStep.s4 + f->d;

    if (n >= (int)eOut.s2 || w >= (int)eOut.s6 || h >= (int)eOut.s5 || d >= (int)eOut.s4)
        return none;
    return ((n * (int)eOut.s4 + d) * (int)eOut.s5 + h) * (int)eOut.s6 + w;
}

/* The filter's slice of a tap: BLK_N channels of the output, from n0 on, by 64 that are summed, from c on. */
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

/* The producer: `count` slices of a tile, from number `first` on, tap by tap; channels: so many slices of
 * them. */
DEVICE struct pipeline conv_load(struct pipeline p, UINT32 stages, GLOBAL const unsigned INT64 *maps,
                                 struct tile tile, LOCAL const struct phase *f, struct window win,
                                 int channels, int first, int count)
{
    struct pixel at = pixel_of(win, tile.m0);
    const int none = first >= phase_taps(f) * channels, taps_s = none ? 1 : (int)f->s.count;
    const int taps_r = none ? 1 : (int)f->r.count, tap = none ? 0 : quotient(first, channels);
    int c = none ? 0 : first - tap * channels, r = quotient(tap, taps_s), s = tap - r * taps_s;
    int t = quotient(r, taps_r);

    r -= t * taps_r;
    at.n = none ? win.images : at.n;            /* past all images, and all channels, are zeros */
    for (int i = 0; i < count; i++) {
        const UINT32 to = stages + p.stage * STAGE;

        p = producer_acquire(p);
        producer_expect(p, STAGE);
        im2col_load(to, maps, c * BLK_K, at, none ? 0 : (int)(f->s.shift + s * f->s.delta) - win.first[0],
                    none ? 0 : (int)(f->r.shift + r * f->r.delta) - win.first[1],
                    none ? 0 : (int)(f->t.shift + t * f->t.delta) - win.first[2], pipe_full(p));
        conv_load_filter(to + BYTES_A, maps + MAP_WORDS, tile.n0, none ? channels * BLK_K : c * BLK_K,
                         (int)(f->s.first + s * f->s.step), (int)(f->r.first + r * f->r.step),
                         (int)(f->t.first + t * f->t.step), pipe_full(p));
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
        }
    }
    return p;
}
