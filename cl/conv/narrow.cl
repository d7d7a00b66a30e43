/* cl/conv/narrow.cl - convolution on CPUs whose output has few channels: register tiles of pixels
 *
 *     slab   0 0 0 0 0 0 0 0    A work-group is one work-item. It has a band of rows of an image: all
 *            0 a b c d 0 e f    phases of `rows` of them. The source of all is copied into a slab, one
 *            g h 0 . . .        channel after the other, in rows with their padding. So the source of a
 *                               pixel, for one tap, is at one distance from it in all of the band, and
 *     sums   o o o o - - o o    vectors run on from row to row: sums between rows (-) are not stored.
 *
 * A tile is CHANNELS channels by TILE_V vectors of pixels: each vector is loaded once for all channels, each
 * element of the filter once for all vectors.
 *
 * Channels of the source are copied `some` at a time, as many as fit; sums are kept in local memory between.
 *
 * Parameters, from conv.tune: REGS, vectors of a tile and of what it loads; VEC; BLK_S, elements of the slab;
 * BLK_C, of the sums. Constants: DIRECTION, 0 or 1, with steps of 1 where it is 0; CHANNELS, of the output.
 */
#define TILE_V       (REGS / (CHANNELS + 1))
#define HALF_V       ((TILE_V + 1) / 2)           /* of the last tile, where that is enough */
#define PIXELS       (TILE_V * VEC)
#define TAPS_MOST    256                        /* lib/conv/narrow.c has them, too */
#define PHASES_MOST  16

/* Taps: their places in the slab and in the filter, one phase after the other, from begin[phase] on. */
struct tap_list { int at[TAPS_MOST], begin[PHASES_MOST + 1]; INDEX filter[TAPS_MOST]; };

/* ---- the tile ------------------------------------------------------------------- */

/* sums[channel][pixel] += filter[channel, tap] slab[pixel + tap], over taps and `depth` channels of the
 * source. vectors is a constant at each call. first: from zero. */
DEVICE void narrow_tile(const int vectors, LOCAL R *RESTRICT sums, int sum_step, LOCAL const R *RESTRICT slab,
                        int slab_step, int depth, LOCAL const int *RESTRICT at,
                        LOCAL const INDEX *RESTRICT filter, int taps, GLOBAL const T *RESTRICT gA,
                        INDEX row_step, INDEX channel_step, int first)
{
    RV c[CHANNELS][TILE_V];

    UNROLL for (int m = 0; m < CHANNELS; m++)
    UNROLL for (int v = 0; v < TILE_V; v++)
        if (v < vectors)
            c[m][v] = first ? (RV)(ZERO) : VLOAD(VEC, sums + m * sum_step + v * VEC);
    NO_UNROLL for (int k = 0; k < depth; k++, slab += slab_step, gA += channel_step)
    NO_UNROLL for (int tap = 0; tap < taps; tap++) {
        LOCAL const R *const from = slab + at[tap];
        const INDEX to = filter[tap];
        RV rB[TILE_V];

        UNROLL for (int v = 0; v < TILE_V; v++)
            if (v < vectors)
                rB[v] = VLOAD(VEC, from + v * VEC);
        UNROLL for (int m = 0; m < CHANNELS; m++) {
            const RV rA = (RV)(LOAD_BITS(gA, to + m * row_step));

            UNROLL for (int v = 0; v < TILE_V; v++)
                if (v < vectors)
                    c[m][v] = FMA(rA, rB[v], c[m][v]);
        }
    }
    UNROLL for (int m = 0; m < CHANNELS; m++)
    UNROLL for (int v = 0; v < TILE_V; v++)
        if (v < vectors)
            VSTORE(VEC, sums + m * sum_step + v * VEC, c[m][v]);
}

/* ---- the slab, where channels of the source are contiguous ---------------------------- */

/* As fill_slab(), of one image of two dimensions: squares of pixels and channels are transposed. What is
 * stored past the end of a row is overwritten by the next one. */
DEVICE void fill_across(LOCAL R *slab, const struct slab *s, int channels, GLOBAL const T *g, INDEX base,
                        VIEW v)
{
    for (int h = 0; h < s->h.used; h++) {
        LOCAL R *const to = slab + h * s->h_step;
        const INDEX from = base + (s->h.origin + h) * (INDEX)v.s5 + s->w.origin * (INDEX)v.s6;
        const int inside = h >= s->h.low && h < s->h.high;
        const int first = inside ? s->w.low : s->w.used, last = inside ? s->w.high : s->w.used;

        for (int c = 0; c < channels; c++)
            fill_zeros(to + c * s->c_step, first);
        for (int w = first; w < last; w += VEC)
        for (int c = 0; c < channels; c += VEC) {
            const int pixels = last - w < VEC ? last - w : VEC;

            if (channels - c >= VEC) {
                RV lanes[VEC];

                UNROLL for (int i = 0; i < VEC; i++)
                    lanes[i] = load_lanes(g + from + (w + (i < pixels ? i : 0)) * (INDEX)v.s6 + c);
                transpose_lanes(lanes);
                UNROLL for (int i = 0; i < VEC; i++)
                    VSTORE(VEC, to + (c + i) * s->c_step + w, lanes[i]);
            } else
                for (int i = c; i < channels; i++)
                    for (int j = 0; j < pixels; j++)
                        to[i * s->c_step + w + j] = LOAD_BITS(g, from + (w + j) * (INDEX)v.s6 + i);
        }
        for (int c = 0; c < channels; c++)
            fill_zeros(to + c * s->c_step + last, s->w.used - last);
    }
}

/* ---- storing -------------------------------------------------------------------- */

/* A row of the output: element i is element i / step of phase i % step, and phases are `apart`. */
struct source { LOCAL const R *sums; int apart, step; };

DEVICE RV lanes_of(const struct source *s, int i, int count)
{
    LOCAL const R *const from = s->sums + i / s->step;
    R each[VEC];

    (void)count;
    if (s->step == 1)
        return VLOAD(VEC, from);
    if (s->step == 2) {
        RV low, high;

        if (i & 1)
            ZIP(low, high, VLOAD(VEC, from + s->apart), VLOAD(VEC, from + 1));
        else
            ZIP(low, high, VLOAD(VEC, from), VLOAD(VEC, from + s->apart));
        return low;
    }
    for (int j = 0; j < VEC; j++)
        each[j] = s->sums[(i + j) / s->step + (i + j) % s->step * s->apart];
    return VLOAD(VEC, each);
}

/* ---- the kernel ------------------------------------------------------------------ */

/* Lists the taps of all phases; low_h, low_w: the source of the first pixel's farthest taps. */
DEVICE void list_taps(LOCAL struct tap_list *list, int phases_h, int phases_w, INDEX low_h, INDEX low_w,
                      int pitch, VIEW vA, VIEW eTaps, VIEW vStep, VIEW vPad, VIEW vMeet)
{
    int n = 0;

    for (int phase = 0; phase < phases_h * phases_w; phase++) {
        struct taps t, r, s;

        list->begin[phase] = n;
        FIND_TAPS(&t, &r, &s, 0, phase / phases_w, phase % phases_w);
        for (INDEX i = 0; i < (t.count ? r.count : 0); i++)
        for (INDEX j = 0; j < s.count; j++, n++) {
            list->at[n] = (int)((r.shift + i * r.delta - low_h) * pitch + s.shift + j * s.delta - low_w);
            list->filter[n] = t.first * (INDEX)vA.s4 + (r.first + i * r.step) * (INDEX)vA.s5
                            + (s.first + j * s.step) * (INDEX)vA.s6;
        }
    }
    list->begin[phases_h * phases_w] = n;
}

/* vBand: s0 the rows of a band, of each phase; s1 the bands of an image; s2 channels of the source that are
 * copied at a time; s4 s5 where the source of the first pixel's farthest taps is, s6 how many rows and s7 how
 * many columns the taps of all phases reach beyond a pixel. */
KERNEL(1) void
conv_narrow(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
            CONV_PARAMS,
            VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
            R alpha, VIEW vBand)
{
    LOCAL_ARRAY(R, sSlab, BLK_S + PIXELS + VEC);
    LOCAL_ARRAY(R, sC, BLK_C + PIXELS);
    LOCAL_ARRAY(struct tap_list, sTaps, 1);

    const struct output output = CONV_OUTPUT;
    const INDEX channels = (INDEX)eTaps.s3;
    const int phases_h = (int)phases_along((INDEX)eOut.s5, (INDEX)vStep.s5);
    const int phases_w = (int)phases_along((INDEX)eOut.s6, (INDEX)vStep.s6);
    const int width = (int)pixels_along((INDEX)eOut.s6, (INDEX)vStep.s6, 0), pitch = width + (int)vBand.s7;
    INDEX image = GROUP_ID(0);
    const INDEX row0 = divmod(&image, (INDEX)vBand.s1) * (INDEX)vBand.s0;
    const int rows = (int)imin((INDEX)vBand.s0, pixels_along((INDEX)eOut.s5, (INDEX)vStep.s5, 0) - row0);
    const int span = (rows - 1) * pitch + width, step = (span + PIXELS - 1) / PIXELS * PIXELS;
    struct slab slab;

    slab.by_channel = 0;
    slab.d.origin = slab.d.low = 0;
    slab.d.step = slab.d.extent = slab.d.used = slab.d.high = 1;
    slab.h.origin = row0 + (INDEX)vBand.s4;
    slab.w.origin = (INDEX)vBand.s5;
    slab.h.step = slab.w.step = 1;
    slab.h.extent = slab.h.used = rows + (int)vBand.s6;
    slab.w.extent = slab.w.used = pitch;
    slab.h.low  = (int)imin(slab.h.used, imax(0, -slab.h.origin));
    slab.w.low  = (int)imin(slab.w.used, imax(0, -slab.w.origin));
    slab.h.high = (int)imax(slab.h.low, imin(slab.h.used, (INDEX)eIn.s5 - slab.h.origin));
    slab.w.high = (int)imax(slab.w.low, imin(slab.w.used, (INDEX)eIn.s6 - slab.w.origin));
    list_taps(sTaps, phases_h, phases_w, (INDEX)vBand.s4, (INDEX)vBand.s5, pitch, vA, eTaps, vStep, vPad,
              vMeet);

    for (INDEX c0 = 0; c0 < channels; c0 += (INDEX)vBand.s2) {
        const int count = (int)imin((INDEX)vBand.s2, channels - c0);
        const INDEX from = (INDEX)vB.s0 + image * (INDEX)vB.s2 + c0 * (INDEX)vB.s3;
        GLOBAL const T *const filter = gA + (INDEX)vA.s0 + c0 * (INDEX)vA.s3;

        find_steps(&slab, 1, count);
        /* Of what lies behind a channel, and behind the last one, sums are made, and not stored. */
        for (int c = 0; c < count; c++)
            fill_zeros(sSlab + c * slab.c_step + slab.n_step, slab.c_step - slab.n_step);
        fill_zeros(sSlab + count * slab.c_step, PIXELS);
        if (vB.s3 == 1 && vB.s6 != 1)
            fill_across(sSlab, &slab, count, gB, from, vB);
        else
            fill_slab(sSlab, &slab, 1, count, gB, from, vB, (INDEX)eIn.s0);
        for (int phase = 0; phase < phases_h * phases_w; phase++) {
            const int begin = sTaps->begin[phase], taps = sTaps->begin[phase + 1] - begin;

            for (int p = 0; p < span; p += PIXELS) {
                LOCAL R *const sums = sC + phase * CHANNELS * step + p;

                if (span - p > HALF_V * VEC)
                    narrow_tile(TILE_V, sums, step, sSlab + p, slab.c_step, count, sTaps->at + begin,
                                sTaps->filter + begin, taps, filter, (INDEX)vA.s2, (INDEX)vA.s3, c0 == 0);
                else
                    narrow_tile(HALF_V, sums, step, sSlab + p, slab.c_step, count, sTaps->at + begin,
                                sTaps->filter + begin, taps, filter, (INDEX)vA.s2, (INDEX)vA.s3, c0 == 0);
            }
        }
    }

    const int is_run = vC.s6 == 1;

    for (INDEX h = row0 * phases_h; h < imin((row0 + rows) * phases_h, (INDEX)eOut.s5); h++)
    for (int m = 0; m < CHANNELS; m++)
    for (int w = 0; w < (is_run ? 1 : (int)eOut.s6); w++) {
        const int row = (int)(h / phases_h - row0), phase = (int)(h % phases_h) * phases_w;
        const struct source source = { sC + (phase * CHANNELS + m) * step + row * pitch, CHANNELS * step,
                                       phases_w };
        const struct run run = { OFFSET(vC, 0, image, m, 0, h, w),
                                 OFFSET(vR, 0, image, m, 0, h, w), (INDEX)vR.s6,
                                 OFFSET(vBias, 0, image, m, 0, h, w), (INDEX)vBias.s6, (int)eOut.s6 };

        if (is_run)
            store_run(&output, &source, &run);
        else
            STORE_C(output.c, run.at, epilogue_at(&output, run.residual, run.bias,
                    output.alpha * source.sums[w / phases_w + w % phases_w * source.apart]));
    }
}
