/* cl/conv/slab.h - what convolution on CPUs needs that works out of a slab: a copy of the source under a box
 * of pixels, in local memory, with zeros where it is padding
 *
 * Each pixel is a place in the slab, each (tap, channel) an offset from it, and a tile a matrix product:
 * THR_M elements of the slab, each of which is broadcast, by THR_V vectors from a panel that is packed as in
 * GEMM. Forward and backward data sum over (tap, channel) for rows of pixels, backward filter over pixels for
 * rows of (tap, channel).
 *
 * The slab keeps the order of the source: with contiguous channels (NHWC) they are copied by vectors, else
 * rows of pixels are. A row may be copied past its end: what is behind it in its channel is copied later.
 * Likewise sums are stored as vectors of columns where those are contiguous in the output, else transposed to
 * vectors of rows.
 *
 * Takes  THR_M THR_V VEC BLK_C (a row of parameters); PACKED (panels are read from a filter that is packed in
 *        global memory, else from local memory); cl/conv/conv.h; cl/tile/cpu.h
 * Gives  tile_of(), find_axis() to fill_slab(), list_steps(), list_pixels(), find_places(), pack_panel(),
 *        store_rows()
 */
#define ROWS_MOST (BLK_C / VEC)
#define STEPS_MOST  2048                        /* of a block of channels: lib/conv/slab.h has it, too */

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

#if PACKED
#define PANEL GLOBAL
#else
#define PANEL LOCAL
#endif

/* sums[pixel][vector] += slab[pixel + step] b[step][vector], over `depth` steps, for `rows` pixels of which
 * the first `height` count; rows and vectors are constants at each call. first: from zero.              */
DEVICE void tile(const int rows, const int vectors, LOCAL RV *RESTRICT sums, LOCAL const R *RESTRICT slab,
                 LOCAL const int *RESTRICT pixel, int height, LOCAL const int *RESTRICT step, int depth,
                 PANEL const RV *RESTRICT b, int first)
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
                    LOCAL const int *step, int depth, PANEL const RV *b, int first)
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
#define ROW_STEP_MOST 3                         /* lib/conv/slab.h has it, too */
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
    step = step * images + 16;                  /* the last row of a channel may be copied past its end, */
    /* and places far apart by a power of two share a set of the cache */
    s->c_step = s->by_channel ? 1 : step % 128 ? step : step - 1;
}

/* Up to VEC - 1 zeros more than `count`. */
DEVICE void fill_zeros(LOCAL R *to, int count)
{
    for (int i = 0; i < count; i += VEC)
        CPU_STORE_PANEL(LOCAL, to + i, (RV)(ZERO));
}

/* Copies `count` elements `step` apart, and up to VEC - 1 more, but none from `limit` on. Those `ahead`
 * further are prefetched. */
DEVICE void copy_run(LOCAL R *to, GLOBAL const T *g, INDEX from, int count, INDEX step, INDEX ahead,
                     INDEX limit)
{
    int i = 0;

    if (step == 1)
        for (; i < count && from + i + VEC <= limit; i += VEC) {
            PREFETCH(g + from + i + ahead);
            CPU_STORE_PANEL(LOCAL, to + i, load_lanes(g + from + i));
        }
    for (; i < count; i++)
        to[i] = LOAD_BITS(g, from + i * step);
}

#define RUN_AHEAD 512                           /* elements of the channels that are prefetched */

/* Fills the slab with `channels` channels of `images` images, the first of which begins at `base`. */
DEVICE void fill_slab(LOCAL R *slab, const struct slab *s, int images, int channels, GLOBAL const T *g,
                      INDEX base, VIEW v, INDEX limit)
{
    const INDEX w_step = s->w.step * (INDEX)v.s6;
    const INDEX ahead = (1 + RUN_AHEAD / s->w.used) * (INDEX)v.s3;
    const int low = s->w.low, high = s->w.high, used = s->w.used, lanes = s->w_step;

    for (int n = 0; n < images; n++)
    for (int d = 0; d < s->d.used; d++)
    for (int h = 0; h < s->h.used; h++) {
        LOCAL R *to = slab + n * s->n_step + d * s->d_step + h * s->h_step;
        INDEX from = base + n * (INDEX)v.s2 + (s->d.origin + d * s->d.step) * (INDEX)v.s4
                   + (s->h.origin + h * s->h.step) * (INDEX)v.s5
                   + (s->w.origin + low * s->w.step) * (INDEX)v.s6;
        const int inside = d >= s->d.low && d < s->d.high && h >= s->h.low && h < s->h.high;
        const int first = inside ? low : used, last = inside ? high : used;

        fill_zeros(to, s->by_channel ? first * lanes : 0);
        if (s->by_channel)
            for (int w = first; w < last; w++)
                copy_run(to + w * lanes, g, from + (w - low) * w_step, channels, 1, 2 * w_step, limit);
        else
            for (int c = 0; c < channels; c++, to += s->c_step, from += (INDEX)v.s3) {
                fill_zeros(to, first);
                copy_run(to + first, g, from, last - first, w_step, ahead, limit);
                fill_zeros(to + last, used - last);
            }
        fill_zeros(to + last * lanes, s->by_channel ? (used - last) * lanes : 0);
    }
}

/* ---- steps and the filter ---------------------------------------------------------- */

/* Lists the steps of a block of channels: their offsets in the slab and in a tensor of the filter's extents.
 * Of `run` channels there is one tap after the other. */
DEVICE int list_steps(LOCAL int *in_slab, LOCAL INDEX *in_filter, const struct slab *s, int channels,
                      const struct taps *td, const struct taps *th, const struct taps *tw, int run, VIEW vA)
{
    int k = 0;

    for (int c0 = 0; c0 < channels; c0 += run)
    for (int d = 0; d < td->count; d++)
    for (int h = 0; h < th->count; h++)
    for (int w = 0; w < tw->count; w++) {
        const int place = (s->d.tap0 + d * s->d.tap) * s->d_step + (s->h.tap0 + h * s->h.tap) * s->h_step
                        + (s->w.tap0 + w * s->w.tap) * s->w_step;
        const INDEX tap = (td->first + d * td->step) * (INDEX)vA.s4
                        + (th->first + h * th->step) * (INDEX)vA.s5
                        + (tw->first + w * tw->step) * (INDEX)vA.s6;

        for (int c = c0; c < c0 + run && c < channels; c++, k++) {
            in_slab[k] = place + c * s->c_step;
            in_filter[k] = tap + c * (INDEX)vA.s3;
        }
    }
    return k;
}

/* The run of channels with which steps have the order of the filter, so that it is read in runs. */
DEVICE int run_of(VIEW v, int channels)
{
    return (INDEX)v.s3 < (INDEX)v.s6 ? channels : 1;
}

/* Packs `depth` steps of `vectors` vectors of output channels, of which `rows` are, into a panel. Lanes past
 * the last row repeat it, for nobody stores them. Steps that follow each other in the filter are transposed,
 * up to VEC at a time; no element from `limit` on is read. Runs may be far apart: the next are prefetched. */
DEVICE void pack_panel(LOCAL RV *panel, int vectors, int rows, GLOBAL const T *g, INDEX from, INDEX row_step,
                        LOCAL const INDEX *at, int depth, INDEX limit)
{
    for (int k = 0, n; k < depth; k += n) {
        for (n = 1; n < VEC && k + n < depth && at[k + n] == at[k] + n; n++)
            ;

        const INDEX ahead = at[k + (row_step == 1 ? 8 : 2 * n) < depth ? k + (row_step == 1 ? 8 : 2 * n)
                                                                        : depth - 1] - at[k];

        for (int v = 0; v < vectors; v++) {
            const int last = rows - 1 - v * VEC < VEC - 1 ? rows - 1 - v * VEC : VEC - 1;
            const INDEX row = from + at[k] + v * VEC * row_step;

            if (row_step == 1 && row + VEC <= limit) {
                n = 1;
                panel[k * vectors + v] = load_lanes(g + row);
                PREFETCH(g + row + ahead);
            } else if (n > VEC / 4 && row + last * row_step + VEC <= limit) {
                RV lanes[VEC];

                UNROLL for (int i = 0; i < VEC; i++) {
                    lanes[i] = load_lanes(g + row + (i < last ? i : last) * row_step);
                    PREFETCH(g + row + (i < last ? i : last) * row_step + ahead);
                }
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

/* Lists the places of a box's pixels in the slab, for the first tap. */
DEVICE void list_pixels(LOCAL int *pixel, const struct slab *s, int images, int depth, int height, int width)
{
    int p = 0;

    for (int n = 0; n < images; n++)
    for (int d = 0; d < depth; d++)
    for (int h = 0; h < height; h++)
    for (int w = 0; w < width; w++)
        pixel[p++] = n * s->n_step + d * s->d.pixel * s->d_step + h * s->h.pixel * s->h_step
                   + w * s->w.pixel * s->w_step;
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

/* The distance from each place to the next, where that is the same for all; else 0. */
DEVICE INDEX distance_of(LOCAL const INDEX *place, int count)
{
    const INDEX first = count > 1 ? place[1] - place[0] : 0;
    int same = 1;

    for (int i = 2; i < count; i++)
        same &= place[i] - place[i - 1] == first;
    return same ? first : 0;
}

/* A vector of the residual or the bias; step: 1, or 0 where all have one element. */
#define SIDE_LANES(SIDE, p, at, step) \
    ((step) ? OF(LOAD_VECTOR, TYPE_##SIDE)(VEC, (p) + (at)) : (RV)(LOAD_##SIDE(p, at)))

/* Stores VEC contiguous elements through the epilogue; streams: past the caches, where they are aligned. */
DEVICE void store_lanes(const struct output *o, INDEX at, INDEX residual_at, INDEX residual_step,
                        INDEX bias_at, INDEX bias_step, int streams, RV v)
{
    v = (RV)(o->alpha) * v;
    if (RESIDUAL)
        v = FMA((RV)(o->beta), SIDE_LANES(RESIDUAL, o->residual, residual_at, residual_step), v);
    if (BIAS)
        v = v + SIDE_LANES(BIAS, o->bias, bias_at, bias_step);
    if (streams && (UINT64)(o->c + at) % (VEC * C_BYTES) == 0)
        OF(STORE_STREAM, TYPE_C)(VEC, o->c + at, activate_lanes(v));
    else
        CPU_STORE(o->c + at, activate_lanes(v));
}

/* The places of a box's pixels in the output, the residual and the bias; whether vectors are stored past the
 * caches. */
struct places { LOCAL const INDEX *c, *residual, *bias; int streams; };

/* Stores sums[pixel][vector] of `pixels` pixels and one vector of channels, of which there are `channels`,
 * the first of them at c_at, residual_at and bias_at. */
DEVICE void store_rows(const struct output *o, LOCAL const RV *sums, int vectors, int pixels, int channels,
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
                        bias_at + place.bias[p], bias_step, place.streams, sums[p * vectors]);
            continue;
        }
        UNROLL for (int i = 0; i < VEC; i++)
            v[i] = sums[(p + (i < count ? i : 0)) * vectors];
        transpose_lanes(v);

        const INDEX apart = distance_of(place.c + p, count);
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
                            bias + place.bias[p], bias_pixel, place.streams, v[c]);
                continue;
            }
            VSTORE(VEC, each, v[c]);
            if (count == VEC && apart)          /* unrolled, without a look-up for each */
                UNROLL for (int i = 0; i < VEC; i++)
                    STORE_C(o->c, to + place.c[p] + i * apart,
                            epilogue_at(o, residual + place.residual[p + i], bias + place.bias[p + i],
                                        o->alpha * each[i]));
            else for (int i = 0; i < count; i++)
                STORE_C(o->c, to + place.c[p + i],
                        epilogue_at(o, residual + place.residual[p + i], bias + place.bias[p + i],
                                    o->alpha * each[i]));
        }
    }
}
