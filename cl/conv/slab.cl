/* cl/conv/slab.cl - convolution on CPUs, out of a slab that holds the source with its padding
 *
 *                     THR_N channels         A work-group is one work-item. A task is a box of pixels of
 *              +------------------+          some panels of output channels. For each block of channels
 *       steps  | sW               |          the source under the box is copied into local memory with
 *       (tap,  |                  |          zeros where it is padding: the slab. From then on each pixel
 *    channel)  +------------------+          is a place in the slab, each step (tap, channel) of the sum
 *              +------------------+          an offset from it, and a tile is a matrix product: THR_M
 *       THR_M  | sC               |          pixels, each element of which is broadcast, by THR_V vectors
 *      pixels  +------------------+          of channels from a panel of the filter, packed as in GEMM.
 *
 * Pixels of a tile are any pixels of the box: rows, images, strides and dilations cost no lanes. The slab
 * keeps the order of the source: with contiguous channels (NHWC) they are copied by vectors, else rows of
 * pixels are. A row may be copied past its end, which what is behind it overwrites. Likewise sums are stored
 * as vectors of channels where those are contiguous in the output, else transposed to vectors of pixels.
 *
 * Tasks are taken from a counter, since cores may begin late. Each sum runs over blocks of channels, and in
 * these over steps in the order in which the filter has them: the same on every device of one vector length.
 *
 * Parameters, from conv.tune: THR_M THR_V VEC (see cl/tile/cpu.h); BLK_K steps of a panel, which fit the
 * first-level cache; BLK_S elements of the slab and BLK_C sums, which fit the second.
 */
#define PIXELS_MOST (BLK_C / VEC)
#define STEPS_MOST  2048                        /* of a block of channels: lib/conv/slab.c has it, too */

/* A vector of elements in memory, in one load where a compiler splits vload. */
#if R_IS_T
UNALIGNED(RV, RV_LANES, T_BYTES);
#endif
DEVICE RV load_lanes(GLOBAL const T *p)
{
#if TYPE == TYPE_F16
    R v[VEC];

    for (int i = 0; i < VEC; i++)
        v[i] = LOAD_BITS(p, i);
    return VLOAD(VEC, v);
#elif R_IS_T
    return VLOAD_ALIGNED(RV_LANES, p);
#else
    return LOAD_VECTOR(VEC, p);
#endif
}

/* Transposes VEC vectors of VEC elements, by perfect shuffles. */
DEVICE void transpose_lanes(RV v[VEC])
{
    UNROLL for (int n = 1; n < VEC; n *= 2) {
        RV from[VEC];

        UNROLL for (int i = 0; i < VEC; i++)
            from[i] = v[i];
        UNROLL for (int i = 0; i < VEC / 2; i++)
            ZIP(v[2 * i], v[2 * i + 1], from[i], from[i + VEC / 2]);
    }
}

/* ---- the tile ------------------------------------------------------------------- */

/* sums[pixel][vector] += slab[pixel + step] b[step][vector], over `depth` steps, for `rows` pixels of which
 * the first `height` count; rows and vectors are constants at each call. first: from zero.              */
DEVICE void tile(const int rows, const int vectors, LOCAL RV *RESTRICT sums, LOCAL const R *RESTRICT slab,
                 LOCAL const int *RESTRICT pixel, int height, LOCAL const int *RESTRICT step, int depth,
                 LOCAL const RV *RESTRICT b, int first)
{
    LOCAL const R *a[THR_M];
    RV c[THR_M][THR_V];

    UNROLL for (int i = 0; i < THR_M; i++)
        if (i < rows)
            a[i] = slab + pixel[i < height ? i : height - 1];
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_V; j++)
        if (i < rows && j < vectors)
            c[i][j] = first ? (RV)(ZERO) : sums[(i < height ? i : height - 1) * vectors + j];
    NO_UNROLL for (int k = 0; k < depth; k++) {
        const INT64 at = step[k];
        RV rB[THR_V];

        UNROLL for (int j = 0; j < THR_V; j++)
            if (j < vectors)
                rB[j] = b[j];
        UNROLL for (int i = 0; i < THR_M; i++)
            if (i < rows) {
                const RV rA = (RV)(a[i][at]);

                UNROLL for (int j = 0; j < THR_V; j++)
                    if (j < vectors)
                        c[i][j] = FMA(rA, rB[j], c[i][j]);
            }
        b += vectors;
    }
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_V; j++)
        if (i < rows && j < vectors)
            sums[(i < height ? i : height - 1) * vectors + j] = c[i][j];
}

/* The tile of `height` pixels. Pixels are divided evenly: unless they are few in all, they fill all rows
 * or all but one. */
#define TILE_ROWS(vectors)                                                                               \
    if (height == THR_M)                                                                                 \
        tile(THR_M, vectors, sums, slab, pixel, THR_M, step, depth, b, first);                           \
    else                                                                                                 \
        tile(THR_M - 1, vectors, sums, slab, pixel, height, step, depth, b, first)

DEVICE void tile_of(int vectors, LOCAL RV *sums, LOCAL const R *slab, LOCAL const int *pixel, int height,
                    LOCAL const int *step, int depth, LOCAL const RV *b, int first)
{
    if (vectors == THR_V) {
        TILE_ROWS(THR_V);
#if THR_V > 2
    } else if (vectors == 2) {
        TILE_ROWS(2);
#endif
    } else {
        TILE_ROWS(1);
    }
}

/* ---- the slab ------------------------------------------------------------------- */

/* One dimension of the slab. Place 0 is element `origin` of the source, and the next `step` further; from
 * pixel to pixel it is `pixel` places, from tap to tap `tap`, and the first tap of the first pixel is at
 * tap0. Of its `extent` the first `used` are needed, of which [low, high) are inside the source.        */
struct axis { INDEX origin, step; int pixel, tap, tap0, extent, used, low, high; };

/* What lies between the pixels is left out where a filter has one tap; but for near elements of a `row`. */
#define ROW_STEP_MOST 3                         /* lib/conv/slab.c has it, too */
DEVICE void find_axis(struct axis *a, const struct taps *t, INDEX stride, INDEX first, int box, int pixels,
                      INDEX inside, int row)
{
    const int apart = t->count > 1 || (row ? SOURCE_STEP(stride) <= ROW_STEP_MOST : 0);
    const int reach = t->count > 1 ? (int)((t->delta < 0 ? -t->delta : t->delta) * (t->count - 1)) : 0;

    a->step   = apart ? 1 : SOURCE_STEP(stride);
    a->pixel  = apart ? (int)SOURCE_STEP(stride) : 1;
    a->tap    = apart ? (int)t->delta : 0;
    a->tap0   = a->tap < 0 ? reach : 0;
    a->extent = (box - 1) * a->pixel + reach + 1;
    a->used   = (pixels - 1) * a->pixel + reach + 1;
    a->origin = first * SOURCE_STEP(stride) + t->shift - a->tap0;
    a->low    = (int)(a->origin < 0 ? imin(a->used, (a->step - 1 - a->origin) / a->step) : 0);
    a->high   = (int)(a->origin < inside ? imin(a->used, (inside - a->origin + a->step - 1) / a->step) : 0);
    a->high   = a->high < a->low ? a->low : a->high;
}

/* Steps of the slab along images, channels and its dimensions; by_channel: channels are contiguous. */
struct slab { struct axis d, h, w; int n_step, c_step, d_step, h_step, w_step, by_channel; };

DEVICE void find_steps(struct slab *s, int images, int channels)
{
    int step = s->by_channel ? channels : 1;

    s->w_step = step;
    s->h_step = step *= s->w.extent;
    s->d_step = step *= s->h.extent;
    s->n_step = step *= s->d.extent;
    step *= images;
    /* places far apart by a power of two share a set of the cache */
    s->c_step = s->by_channel ? 1 : step % 128 ? step : step + 16;
}

/* Up to VEC - 1 zeros more than `count`. */
DEVICE void fill_zeros(LOCAL R *to, int count)
{
    for (int i = 0; i < count; i += VEC)
        CPU_STORE_PANEL(LOCAL, to + i, (RV)(ZERO));
}

/* Copies `count` elements `step` apart, and up to VEC - 1 more, but none from `limit` on. */
DEVICE void copy_run(LOCAL R *to, GLOBAL const T *g, INDEX from, int count, INDEX step, INDEX limit)
{
    int i = 0;

    if (step == 1)
        for (; i < count && from + i + VEC <= limit; i += VEC)
            CPU_STORE_PANEL(LOCAL, to + i, load_lanes(g + from + i));
    for (; i < count; i++)
        to[i] = LOAD_BITS(g, from + i * step);
}

/* Fills the slab with `channels` channels of `images` images, the first of which begins at `base`. */
DEVICE void fill_slab(LOCAL R *slab, const struct slab *s, int images, int channels, GLOBAL const T *g,
                      INDEX base, VIEW v, INDEX limit)
{
    const INDEX w_step = s->w.step * (INDEX)v.s6;
    const int low = s->w.low, high = s->w.high, used = s->w.used, lanes = s->w_step;

    for (int c = 0; c < (s->by_channel ? 1 : channels); c++)
    for (int n = 0; n < images; n++)
    for (int d = 0; d < s->d.used; d++)
    for (int h = 0; h < s->h.used; h++) {
        LOCAL R *to = slab + c * s->c_step + n * s->n_step + d * s->d_step + h * s->h_step;
        const INDEX from = base + c * (INDEX)v.s3 + n * (INDEX)v.s2
                         + (s->d.origin + d * s->d.step) * (INDEX)v.s4
                         + (s->h.origin + h * s->h.step) * (INDEX)v.s5
                         + (s->w.origin + low * s->w.step) * (INDEX)v.s6;

        if (d < s->d.low || d >= s->d.high || h < s->h.low || h >= s->h.high)
            fill_zeros(to, used * lanes);
        else {
            fill_zeros(to, low * lanes);
            if (s->by_channel)
                for (int w = low; w < high; w++)
                    copy_run(to + w * lanes, g, from + (w - low) * w_step, channels, 1, limit);
            else
                copy_run(to + low, g, from, high - low, w_step, limit);
            fill_zeros(to + high * lanes, (used - high) * lanes);
        }
    }
}

/* ---- steps and the filter ---------------------------------------------------------- */

/* Lists the steps of a block of channels: their offsets in the slab and in the filter. */
DEVICE int list_steps(LOCAL int *in_slab, LOCAL INDEX *in_filter, const struct slab *s, int channels,
                      const struct taps *td, const struct taps *th, const struct taps *tw, VIEW vA)
{
    const INDEX c_step = (INDEX)vA.s3;
    const int taps = (int)(td->count * th->count * tw->count);
    const int by_tap = c_step < (INDEX)vA.s6;   /* in the order of the filter, so that it is read in runs */
    int t = 0;

    for (int d = 0; d < td->count; d++)
    for (int h = 0; h < th->count; h++)
    for (int w = 0; w < tw->count; w++, t++) {
        const int place = (s->d.tap0 + d * s->d.tap) * s->d_step + (s->h.tap0 + h * s->h.tap) * s->h_step
                        + (s->w.tap0 + w * s->w.tap) * s->w_step;
        const INDEX tap = (td->first + d * td->step) * (INDEX)vA.s4
                        + (th->first + h * th->step) * (INDEX)vA.s5
                        + (tw->first + w * tw->step) * (INDEX)vA.s6;

        for (int c = 0; c < channels; c++) {
            const int k = by_tap ? t * channels + c : c * taps + t;

            in_slab[k] = place + c * s->c_step;
            in_filter[k] = tap + c * c_step;
        }
    }
    return taps * channels;
}

/* Packs `depth` steps of `vectors` vectors of output channels, of which `rows` are, into a panel. Lanes past
 * the last row repeat it, for nobody stores them. Steps that follow each other in the filter are transposed,
 * up to VEC at a time; no element from `limit` on is read.                                              */
DEVICE void pack_filter(LOCAL RV *panel, int vectors, int rows, GLOBAL const T *g, INDEX from, INDEX row_step,
                        LOCAL const INDEX *at, int depth, INDEX limit)
{
    for (int k = 0, n; k < depth; k += n) {
        for (n = 1; n < VEC && k + n < depth && at[k + n] == at[k] + n; n++)
            ;
        for (int v = 0; v < vectors; v++) {
            const int last = rows - 1 - v * VEC < VEC - 1 ? rows - 1 - v * VEC : VEC - 1;
            const INDEX row = from + at[k] + v * VEC * row_step;

            if (row_step == 1 && row + VEC <= limit) {
                n = 1;
                panel[k * vectors + v] = load_lanes(g + row);
            } else if (n > VEC / 4 && row + last * row_step + VEC <= limit) {
                RV lanes[VEC];

                UNROLL for (int i = 0; i < VEC; i++)
                    lanes[i] = load_lanes(g + row + (i < last ? i : last) * row_step);
                transpose_lanes(lanes);
                for (int i = 0; i < n; i++)
                    panel[(k + i) * vectors + v] = lanes[i];
            } else
                for (int i = 0; i < VEC; i++)
                    for (int j = 0; j < n; j++)
                        ((LOCAL R *)(panel + (k + j) * vectors + v))[i] =
                            LOAD_BITS(g, row + (i < last ? i : last) * row_step + at[k + j] - at[k]);
        }
    }
}

/* ---- storing ---------------------------------------------------------------------- */

/* The offsets of the box's pixels in a tensor of the output's shape. */
DEVICE void find_places(LOCAL INDEX *place, int images, int depth, int height, int width, INDEX n0,
                        INDEX phase_d, INDEX phase_h, INDEX phase_w, INDEX d0, INDEX h0, INDEX w0,
                        VIEW vStep, VIEW v)
{
    int p = 0;

    for (int n = 0; n < images; n++)
    for (int d = 0; d < depth; d++)
    for (int h = 0; h < height; h++)
    for (int w = 0; w < width; w++)
        place[p++] = (n0 + n) * (INDEX)v.s2
                   + (phase_d + (d0 + d) * PIXEL_STEP((INDEX)vStep.s4)) * (INDEX)v.s4
                   + (phase_h + (h0 + h) * PIXEL_STEP((INDEX)vStep.s5)) * (INDEX)v.s5
                   + (phase_w + (w0 + w) * PIXEL_STEP((INDEX)vStep.s6)) * (INDEX)v.s6;
}

/* Whether the places of `count` pixels are the same, 0, or follow each other, 1; else -1. */
DEVICE int step_of(LOCAL const INDEX *place, int count)
{
    int same = 1, next = 1;

    for (int i = 1; i < count; i++) {
        same &= place[i] == place[0];
        next &= place[i] == place[0] + i;
    }
    return same ? 0 : next ? 1 : -1;
}

/* A vector of the residual or the bias; step: 1, or 0 where all have one element. */
#define SIDE_LANES(SIDE, p, at, step) \
    ((step) ? OF(LOAD_VECTOR, TYPE_##SIDE)(VEC, (p) + (at)) : (RV)(LOAD_##SIDE(p, at)))

/* Stores VEC contiguous elements through the epilogue. */
DEVICE void store_lanes(const struct output *o, INDEX at, INDEX residual_at, INDEX residual_step,
                        INDEX bias_at, INDEX bias_step, RV v)
{
    v = (RV)(o->alpha) * v;
    if (RESIDUAL)
        v = FMA((RV)(o->beta), SIDE_LANES(RESIDUAL, o->residual, residual_at, residual_step), v);
    if (BIAS)
        v = v + SIDE_LANES(BIAS, o->bias, bias_at, bias_step);
    CPU_STORE(o->c + at, activate_lanes(v));
}

/* The places of a box's pixels in the output, the residual and the bias. */
struct places { LOCAL const INDEX *c, *residual, *bias; };

/* Stores sums[pixel][vector] of `pixels` pixels and one vector of channels, of which there are `channels`,
 * the first of them at c_at, residual_at and bias_at. */
DEVICE void store_pixels(const struct output *o, LOCAL const RV *sums, int vectors, int pixels, int channels,
                         struct places place, INDEX c_at, INDEX c_step, INDEX residual_at,
                         INDEX residual_step, INDEX bias_at, INDEX bias_step)
{
    const int by_channel = c_step == 1;
    const int whole = channels == VEC && residual_step < 2 && bias_step < 2;

    for (int p = 0, count; p < pixels; p += count) {
        RV v[VEC];

        count = by_channel ? 1 : pixels - p < VEC ? pixels - p : VEC;
        if (by_channel && whole) {
            store_lanes(o, c_at + place.c[p], residual_at + place.residual[p], residual_step,
                        bias_at + place.bias[p], bias_step, sums[p * vectors]);
            continue;
        }
        UNROLL for (int i = 0; i < VEC; i++)
            v[i] = sums[(p + (i < count ? i : 0)) * vectors];
        transpose_lanes(v);

        int residual_pixel = RESIDUAL ? step_of(place.residual + p, count) : 0;
        int bias_pixel = BIAS ? step_of(place.bias + p, count) : 0;
        const int lanes = count == VEC && step_of(place.c + p, count) == 1 && residual_pixel >= 0 &&
                          bias_pixel >= 0;

        for (int c = 0; c < channels; c++) {
            const INDEX to = c_at + c * c_step, residual = residual_at + c * residual_step;
            const INDEX bias = bias_at + c * bias_step;
            R each[VEC];

            if (lanes) {
                store_lanes(o, to + place.c[p], residual + place.residual[p], residual_pixel,
                            bias + place.bias[p], bias_pixel, v[c]);
                continue;
            }
            VSTORE(VEC, each, v[c]);
            for (int i = 0; i < count; i++)
                STORE_C(o->c, to + place.c[p + i],
                        epilogue_at(o, residual + place.residual[p + i], bias + place.bias[p + i],
                                    o->alpha * each[i]));
        }
    }
}

#define FIRST_CHANNEL(v, group, c) ((INDEX)(v).s0 + (group) * (INDEX)(v).s1 + (c) * (INDEX)(v).s3)

/* ---- forward and backward data --------------------------------------------------------- */

/* eBox: the extents of a box, s3 the panels of a task; eBoxes: how many there are, s3 of ranges of panels, s0
 * whether all ranges of a box come one after the other, or all boxes of a range. some: channels of a block.
 * `taken` counts the tasks, of which there are `all`, taken by `groups` work-groups. */
KERNEL(1) void
conv_slab(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
          CONV_PARAMS,
          VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
          R alpha, VIEW eBox, VIEW eBoxes, int some, int all, int groups, GLOBAL int *RESTRICT taken)
{
    LOCAL_ARRAY(R, sSlab, BLK_S + VEC);
    LOCAL_ARRAY(RV, sW, BLK_K * THR_V);
    LOCAL_ARRAY(RV, sC, BLK_C / VEC);
    LOCAL_ARRAY(int, sPixel, PIXELS_MOST);
    LOCAL_ARRAY(INDEX, sPlace, PIXELS_MOST);
    LOCAL_ARRAY(INDEX, sResidual, RESIDUAL ? PIXELS_MOST : 1);
    LOCAL_ARRAY(INDEX, sBias, BIAS ? PIXELS_MOST : 1);
    LOCAL_ARRAY(int, sStep, STEPS_MOST);
    LOCAL_ARRAY(INDEX, sFilter, STEPS_MOST);

    const int all_vectors = (int)((eOut.s3 + VEC - 1) / VEC), all_panels = (all_vectors + THR_V - 1) / THR_V;
    const INDEX channels = (INDEX)eTaps.s3;
    const struct output output = CONV_OUTPUT;
    const struct places places = { sPlace, RESIDUAL ? sResidual : sPlace, BIAS ? sBias : sPlace };

    for (int task = ATOMIC_ADD(taken, 1); task < all; task = ATOMIC_ADD(taken, 1)) {
        INDEX group = task;
        INDEX range = eBoxes.s0 ? divmod(&group, (INDEX)eBoxes.s3) : 0;
        const INDEX w0 = divmod(&group, (INDEX)eBoxes.s6) * (INDEX)eBox.s6;
        const INDEX h0 = divmod(&group, (INDEX)eBoxes.s5) * (INDEX)eBox.s5;
        const INDEX d0 = divmod(&group, (INDEX)eBoxes.s4) * (INDEX)eBox.s4;
        const INDEX n0 = divmod(&group, (INDEX)eBoxes.s2) * (INDEX)eBox.s2;
        const INDEX phase_w = divmod(&group, phases_along((INDEX)eOut.s6, (INDEX)vStep.s6));
        const INDEX phase_h = divmod(&group, phases_along((INDEX)eOut.s5, (INDEX)vStep.s5));
        const INDEX phase_d = divmod(&group, phases_along((INDEX)eOut.s4, (INDEX)vStep.s4));

        if (!eBoxes.s0)
            range = divmod(&group, (INDEX)eBoxes.s3);

        const int panel0 = (int)(range * (INDEX)eBox.s3);
        const int panel1 = (int)imin(all_panels, panel0 + (INDEX)eBox.s3);
        const INDEX depth = pixels_along((INDEX)eOut.s4, (INDEX)vStep.s4, phase_d);
        const INDEX height = pixels_along((INDEX)eOut.s5, (INDEX)vStep.s5, phase_h);
        const INDEX width = pixels_along((INDEX)eOut.s6, (INDEX)vStep.s6, phase_w);
        const int nw = (int)imin((INDEX)eBox.s6, width - w0), nh = (int)imin((INDEX)eBox.s5, height - h0);
        const int nd = (int)imin((INDEX)eBox.s4, depth - d0);
        const int nn = (int)imin((INDEX)eBox.s2, (INDEX)eOut.s2 - n0);
        const int pixels = nn * nd * nh * nw, tiles = (pixels + THR_M - 1) / THR_M;
        const int vector0 = (int)((INT64)panel0 * all_vectors / all_panels);
        struct taps t, r, s;
        struct slab slab;
        int listed = -1, steps = 0, first = 1, p = 0;

        if (nw <= 0 || nh <= 0 || nd <= 0)      /* a phase has fewer pixels than the first one */
            continue;
        FIND_TAPS(&t, &r, &s, phase_d, phase_h, phase_w);
        find_axis(&slab.d, &t, (INDEX)vStep.s4, d0, (int)eBox.s4, nd, (INDEX)eIn.s4, 0);
        find_axis(&slab.h, &r, (INDEX)vStep.s5, h0, (int)eBox.s5, nh, (INDEX)eIn.s5, 0);
        find_axis(&slab.w, &s, (INDEX)vStep.s6, w0, (int)eBox.s6, nw, (INDEX)eIn.s6, vB.s6 == 1);
        slab.by_channel = vB.s3 == 1 && slab.w.step * (INDEX)vB.s6 != 1;
        find_steps(&slab, (int)eBox.s2, some);
        for (int n = 0; n < nn; n++)
        for (int d = 0; d < nd; d++)
        for (int h = 0; h < nh; h++)
        for (int w = 0; w < nw; w++)
            sPixel[p++] = n * slab.n_step + d * slab.d.pixel * slab.d_step + h * slab.h.pixel * slab.h_step
                        + w * slab.w.pixel * slab.w_step;

        for (INDEX c0 = 0; c0 < channels && t.count * r.count * s.count; c0 += some) {
            const int count = (int)imin(some, channels - c0);

            fill_slab(sSlab, &slab, nn, count, gB, (INDEX)vB.s0 + group * (INDEX)vB.s1 + n0 * (INDEX)vB.s2 +
                      c0 * (INDEX)vB.s3, vB, (INDEX)eIn.s0);
            if (count != listed)
                steps = list_steps(sStep, sFilter, &slab, count, &t, &r, &s, vA);
            listed = count;
            for (int panel = panel0; panel < panel1; panel++) {
                const int v0 = (int)((INT64)panel * all_vectors / all_panels);
                const int vectors = (int)((INT64)(panel + 1) * all_vectors / all_panels) - v0;
                const int pieces = (steps + BLK_K - 1) / BLK_K;
                const INDEX w = (INDEX)vA.s0 + group * (INDEX)vA.s1 + v0 * VEC * (INDEX)vA.s2 +
                                c0 * (INDEX)vA.s3;

                for (int i = 0; i < pieces; i++) {
                    const int k0 = (int)((INT64)i * steps / pieces);
                    const int k1 = (int)((INT64)(i + 1) * steps / pieces);

                    pack_filter(sW, vectors, (int)imin(vectors * VEC, (INDEX)eOut.s3 - v0 * VEC), gA, w,
                                (INDEX)vA.s2, sFilter + k0, k1 - k0, (INDEX)vMeet.s0);
                    for (int j = 0; j < tiles; j++) {
                        const int p0 = j * pixels / tiles, p1 = (j + 1) * pixels / tiles;

                        tile_of(vectors, sC + (v0 - vector0) * pixels + p0 * vectors, sSlab, sPixel + p0,
                                p1 - p0, sStep + k0, k1 - k0, sW, first && i == 0);
                    }
                }
            }
            first = 0;
        }
        if (first)                              /* nothing to sum */
            for (int i = 0; i < BLK_C / VEC; i++)
                sC[i] = (RV)(ZERO);

        find_places(sPlace, nn, nd, nh, nw, n0, phase_d, phase_h, phase_w, d0, h0, w0, vStep, vC);
        if (RESIDUAL)
            find_places(sResidual, nn, nd, nh, nw, n0, phase_d, phase_h, phase_w, d0, h0, w0, vStep, vR);
        if (BIAS)
            find_places(sBias, nn, nd, nh, nw, n0, phase_d, phase_h, phase_w, d0, h0, w0, vStep, vBias);
        for (int panel = panel0; panel < panel1; panel++) {
            const int v0 = (int)((INT64)panel * all_vectors / all_panels);
            const int v1 = (int)((INT64)(panel + 1) * all_vectors / all_panels);

            for (int v = v0; v < v1; v++)
                store_pixels(&output, sC + (v0 - vector0) * pixels + v - v0, v1 - v0, pixels,
                             (int)imin(VEC, (INDEX)eOut.s3 - v * VEC), places,
                             FIRST_CHANNEL(vC, group, v * VEC), (INDEX)vC.s3,
                             FIRST_CHANNEL(vR, group, v * VEC), (INDEX)vR.s3,
                             FIRST_CHANNEL(vBias, group, v * VEC), (INDEX)vBias.s3);
        }
    }
    if (ATOMIC_ADD(taken + 1, 1) == groups - 1) {   /* the last one leaves the counters at 0 */
        ATOMIC_ADD(taken, -(all + groups));
        ATOMIC_ADD(taken + 1, -groups);
    }
}
