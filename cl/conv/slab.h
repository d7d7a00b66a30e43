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
 * With IN_PLACE the source itself is the slab: a filter of one tap meets no padding, so nothing is copied.
 *
 * Takes  THR_M THR_V VEC BLK_C (a row of parameters); PACKED (panels are read from a filter that is packed in
 *        global memory, else from local memory); IN_PLACE; cl/conv/conv.h; cl/tile/cpu.h
 * Gives  tile_of(), find_axis() to fill_slab(), list_steps(), list_pixels(), find_places(), pack_panel(),
 *        list_tiles(), store_rows()
 */
#define ROWS_MOST  (BLK_C / VEC)
#define PARTS_MOST (ROWS_MOST / (THR_M - 1) + 2)
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

/* Four of them. */
#if R_IS_T
UNALIGNED(VECTOR(R, 4), FOUR_LANES, T_BYTES);
#endif
DEVICE VECTOR(R, 4) load_four(GLOBAL const T *p)
{
#if TYPE == TYPE_F16
    return (VECTOR(R, 4))(LOAD_BITS(p, 0), LOAD_BITS(p, 1), LOAD_BITS(p, 2), LOAD_BITS(p, 3));
#elif R_IS_T
    return VLOAD_ALIGNED(FOUR_LANES, p);
#else
    return LOAD_VECTOR(4, p);
#endif
}

/* Of rows `step` apart the first four elements of every fourth one, in a vector. */
#define FOURS_4(g, step)  load_four(g)
#define FOURS_8(g, step)  (RV)(load_four(g), load_four((g) + 4 * (step)))
#define FOURS_16(g, step) (RV)(load_four(g), load_four((g) + 4 * (step)), load_four((g) + 8 * (step)), \
                               load_four((g) + 12 * (step)))
#define FOURS(g, step)    OF(FOURS, VEC)(g, step)

/* In every four lanes, interleaves the first two of a and b, and the last two: a shuffle within four. */
#define FIRST_OF_4(v)     (v).s01
#define FIRST_OF_8(v)     (v).s0145
#define FIRST_OF_16(v)    (v).s014589cd
#define LAST_OF_4(v)      (v).s23
#define LAST_OF_8(v)      (v).s2367
#define LAST_OF_16(v)     (v).s2367abef
#define ZIP_FOURS(first, last, a, b)                                          \
    ((first).even = OF(FIRST_OF, VEC)(a), (first).odd = OF(FIRST_OF, VEC)(b), \
     (last).even = OF(LAST_OF, VEC)(a), (last).odd = OF(LAST_OF, VEC)(b))

/* The first four columns of VEC rows, `step` apart. */
DEVICE void load_columns(RV to[4], GLOBAL const T *g, INDEX step)
{
    const RV r0 = FOURS(g, step), r1 = FOURS(g + step, step), r2 = FOURS(g + 2 * step, step);
    const RV r3 = FOURS(g + 3 * step, step);
    RV even[2], odd[2];

    ZIP_FOURS(even[0], even[1], r0, r2);
    ZIP_FOURS(odd[0], odd[1], r1, r3);
    ZIP_FOURS(to[0], to[1], even[0], odd[0]);
    ZIP_FOURS(to[2], to[3], even[1], odd[1]);
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

/* Transposes VEC rows of VEC elements, `step` apart, of which those past `last` repeat it, to vectors `pitch`
 * vectors apart: the first n of them, and up to 3 more. Rows are prefetched, `ahead` elements further. */
DEVICE void transpose_rows(LOCAL RV *to, int pitch, int n, GLOBAL const T *g, INDEX step, int last,
                           INDEX ahead)
{
    RV lanes[VEC];

    if (last == VEC - 1) {
        UNROLL for (int i = 0; i < VEC; i++)
            PREFETCH(g + i * step + ahead);
        for (int k = 0; k < n; k += 4) {
            load_columns(lanes, g + k, step);
            UNROLL for (int j = 0; j < 4; j++)
                to[(k + j) * pitch] = lanes[j];
        }
        return;
    }
    UNROLL for (int i = 0; i < VEC; i++)
        lanes[i] = load_lanes(g + (i < last ? i : last) * step);
    transpose_lanes(lanes);
    for (int k = 0; k < n; k++)
        to[k * pitch] = lanes[k];
}

/* ---- the tile ------------------------------------------------------------------- */

#if PACKED
#define PANEL GLOBAL
#else
#define PANEL LOCAL
#endif
#if IN_PLACE
#define SLAB GLOBAL
#else
#define SLAB LOCAL
#endif

/* What is packed next, which tiles prefetch to the second-level cache: `each` lines for every CHUNK steps.
 * A step has `lines` of them, `apart` elements from each other. Of step k of `depth`, which are at at[],
 * `left` are to come, from `next` on. */
#define CHUNK 32
#define LINE  (64 / T_BYTES)
#define PREFETCH_SECOND(p) __builtin_prefetch((const void *)(UINT64)(p), 0, 2)
struct ahead {
    GLOBAL const T *g, *next;
    LOCAL const INDEX *at;
    INDEX apart;
    int lines, left, k, depth, each;
};

/* The first step after k that begins in another line. */
DEVICE int next_line(LOCAL const INDEX *at, int k, int depth)
{
    int n = k + 1;

    while (n < depth && at[n] >= at[k] && at[n] < at[k] + LINE)
        n++;
    return n;
}

/* After steps [k0, k1) of `rows` rows, the first of them at g: the next of their `steps`; or else, if `more`,
 * as many of the rows behind them. They are prefetched by `tiles` tiles. */
DEVICE void find_ahead(struct ahead *a, GLOBAL const T *g, INDEX row_step, int rows, LOCAL const INDEX *at,
                       int k0, int k1, int steps, int more, int tiles)
{
    const int chunks = tiles * ((k1 - k0 + CHUNK - 1) / CHUNK), is_last = k1 >= steps;
    int first, second;

    a->g = g + (is_last ? rows * row_step : 0);
    a->at = at + (is_last ? 0 : k1);
    a->depth = is_last ? k1 - k0 : (int)imin(k1 - k0, steps - k1);
    a->apart = row_step < LINE ? LINE : row_step;
    a->lines = row_step < LINE ? (rows * (int)row_step + LINE - 1) / LINE : rows;
    a->left = a->lines;
    a->k = a->each = 0;
    if (a->depth == 0 || (is_last && !more))
        return;
    first = next_line(a->at, 0, a->depth);
    second = first < a->depth ? next_line(a->at, first, a->depth) - first : 0;
    a->next = a->g + a->at[0];
    a->each = (a->lines * (1 + a->depth / (first > second ? first : second)) + chunks - 1) / chunks;
}

DEVICE void prefetch_ahead(struct ahead *a)
{
    for (int n = a->each, now; n > 0 && a->left; n -= now) {
        now = n < a->left ? n : a->left;
        for (int i = 0; i < now; i++, a->next += a->apart)
            PREFETCH_SECOND(a->next);
        a->left -= now;
        if (a->left)
            break;
        a->k = next_line(a->at, a->k, a->depth);
        if (a->k < a->depth) {
            a->next = a->g + a->at[a->k];
            a->left = a->lines;
        }
    }
}

/* sums[pixel][vector] += slab[pixel + step] b[step][vector], over `depth` steps, for `rows` pixels of which
 * the first `height` count; rows and vectors are constants at each call. first: from zero. PACKED: nothing is
 * prefetched. */
DEVICE void tile(const int rows, const int vectors, LOCAL RV *RESTRICT sums, SLAB const R *RESTRICT slab,
                 LOCAL const int *RESTRICT pixel, int height, LOCAL const int *RESTRICT step, int depth,
                 PANEL const RV *RESTRICT b, int first, struct ahead *ahead)
{
    SLAB const R *a[THR_M];
    RV c[THR_M][THR_V];

    UNROLL for (int i = 0; i < THR_M; i++)
        if (i < rows)
            a[i] = slab + pixel[i < height ? i : height - 1];
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_V; j++)
        if (i < rows && j < vectors)
            c[i][j] = first ? (RV)(ZERO) : sums[(i < height ? i : height - 1) * vectors + j];
    for (LOCAL const int *const last = step + depth, *end; step < last; ) {
        if (!PACKED)
            prefetch_ahead(ahead);
        end = PACKED || last - step < CHUNK ? last : step + CHUNK;
        NO_UNROLL for (; step < end; step++, b += vectors) {
            const INT64 at = *step;
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
        }
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
        tile(THR_M, vectors, sums, slab, pixel, THR_M, step, depth, b, first, ahead);                    \
    else                                                                                                 \
        tile(THR_M - 1, vectors, sums, slab, pixel, height, step, depth, b, first, ahead)

DEVICE void tile_of(int vectors, LOCAL RV *sums, SLAB const R *slab, LOCAL const int *pixel, int height,
                    LOCAL const int *step, int depth, PANEL const RV *b, int first,
                    struct ahead *ahead)
{
    if (vectors == THR_V) {
        TILE_ROWS(THR_V);
#if THR_V > 3
    } else if (vectors == 3) {
        TILE_ROWS(3);
#endif
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

/* IN_PLACE: the strides of the source v, and its pixels at steps of `stride`; there is one tap. */
DEVICE void find_source(struct slab *s, VIEW v, VIEW stride)
{
    const struct axis one = { 0, 1, 1, 0, 0, 1, 1, 0, 1 };

    s->d = s->h = s->w = one;
    s->d.pixel = (int)SOURCE_STEP((INDEX)stride.s4);
    s->h.pixel = (int)SOURCE_STEP((INDEX)stride.s5);
    s->w.pixel = (int)SOURCE_STEP((INDEX)stride.s6);
    s->n_step = (int)v.s2;
    s->c_step = (int)v.s3;
    s->d_step = (int)v.s4;
    s->h_step = (int)v.s5;
    s->w_step = (int)v.s6;
    s->by_channel = 0;
}

/* Up to VEC - 1 zeros more than `count`.  A few, as beside a row, are stored one by one: vectors there would
 * mostly be in two cache lines. */
DEVICE void fill_zeros(LOCAL R *to, int count)
{
    enum { FEW = 3 };

    if (count <= FEW) {
        for (int i = 0; i < count; i++)
            to[i] = ZERO;
        return;
    }
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

/* Packs steps [k, k + n) of a vector of rows, of which those behind `last` repeat it. */
DEVICE void pack_elements(LOCAL RV *panel, int pitch, int n, GLOBAL const T *g, INDEX row, INDEX row_step,
                          int last, LOCAL const INDEX *at)
{
    for (int i = 0; i < VEC; i++)
        for (int j = 0; j < n; j++)
            ((LOCAL R *)(panel + j * pitch))[i] =
                LOAD_BITS(g, row + (i < last ? i : last) * row_step + at[j]);
}

/* Packs `depth` steps of `vectors` vectors of output channels, of which `rows` are, into a panel. Lanes past
 * the last row repeat it, for nobody stores them. Steps that follow each other in the filter are transposed,
 * up to VEC at a time; no element from `limit` on is read. Runs may be far apart: the next are prefetched.
 * Rows whose distance is a power of two share a set of the cache, so each vector of them is packed whole. */
DEVICE void pack_panel(LOCAL RV *panel, int vectors, int rows, GLOBAL const T *g, INDEX from, INDEX row_step,
                       LOCAL const INDEX *at, int depth, INDEX limit)
{
    enum { AHEAD = 8 };

    for (int k = 0; row_step == 1 && k < depth; k++, panel += vectors)
        for (int v = 0; v < vectors; v++) {
            const INDEX row = from + v * VEC;

            if (row + at[k] + VEC <= limit) {
                panel[v] = load_lanes(g + row + at[k]);
                PREFETCH(g + row + at[k + AHEAD < depth ? k + AHEAD : depth - 1]);
            } else
                pack_elements(panel + v, vectors, 1, g, row, 1, (int)imin(rows - v * VEC, VEC) - 1, at + k);
        }
    for (int v = 0; row_step != 1 && v < vectors; v++) {
        const int last = (int)imin(rows - v * VEC, VEC) - 1;
        const INDEX row = from + v * VEC * row_step;

        for (int k = 0, n; k < depth; k += n) {
            for (n = 1; n < VEC && k + n < depth && at[k + n] == at[k] + n; n++)
                ;
            if (n > VEC / 4 && row + at[k] + last * row_step + VEC <= limit)
                transpose_rows(panel + k * vectors + v, vectors, n, g + row + at[k], row_step, last,
                               at[k + 2 * n < depth ? k + 2 * n : depth - 1] - at[k]);
            else
                pack_elements(panel + k * vectors + v, vectors, n, g, row, row_step, last, at + k);
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

/* ---- tiles of a box ------------------------------------------------------------------ */

/* A tile's first pixel, and the taps [from, to) along H at which it meets the source: at the others there is
 * padding alone. */
struct part { int pixel, from, to; };

DEVICE int meets(const struct axis *h, int row, int tap)
{
    const int place = row * h->pixel + h->tap0 + tap * h->tap;

    return place >= h->low && place < h->high;
}

/* Lists the tiles of `pixels` pixels, in rows of `width`, `height` of an image, and the end of the last;
 * returns how many. Where rows meet fewer than all `taps`, and fill tiles well, each tile is of one row. */
DEVICE int list_tiles(LOCAL struct part *part, const struct axis *h, int taps, int height, int width,
                      int pixels)
{
    const int across = (width + THR_M - 1) / THR_M;
    const int by_row = taps > 1 && across * (THR_M - 1) <= width && (h->low > 0 || h->high < h->used);
    const int tiles = by_row ? pixels / width * across : (pixels + THR_M - 1) / THR_M;

    for (int j = 0; j < tiles; j++) {
        const int row = j / across, y = row % height;

        part[j].pixel = by_row ? row * width + j % across * width / across : j * pixels / tiles;
        part[j].from = 0;
        part[j].to = taps;
        while (by_row && part[j].from < taps - 1 && !meets(h, y, part[j].from))
            part[j].from++;
        while (by_row && part[j].to > part[j].from + 1 && !meets(h, y, part[j].to - 1))
            part[j].to--;
    }
    part[tiles].pixel = pixels;
    return tiles;
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
 * caches; whether all places in the output follow each other, which is then not asked for each vector. */
struct places { LOCAL const INDEX *c, *residual, *bias; int streams, adjacent; };

/* Stores sums[pixel][vector] of `pixels` pixels and one vector of channels, of which there are `channels`,
 * the first of them at c_at, residual_at and bias_at. */
DEVICE void store_rows(const struct output *o, LOCAL const RV *sums, int vectors, int pixels, int channels,
                         struct places place, INDEX c_at, INDEX c_step, INDEX residual_at,
                         INDEX residual_step, INDEX bias_at, INDEX bias_step)
{
    const int by_channel = c_step == 1;
    const int whole = channels == VEC && residual_step < 2 && bias_step < 2;
    const int is_own = !RESIDUAL || (UINT64)o->residual != (UINT64)o->c;        /* C is not the residual */
    /* the last pixels are a whole vector, too, some of which is stored twice */
    const int twice = is_own && !by_channel && pixels >= VEC &&
                      (place.adjacent || step_of(place.c + pixels - VEC, VEC) == 1);

    for (int p = 0, count; p < pixels; p += count) {
        RV v[VEC];

        count = by_channel ? 1 : pixels - p < VEC ? pixels - p : VEC;
        if (twice && count < VEC) {
            p = pixels - VEC;
            count = VEC;
        }
        if (by_channel && whole) {
            store_lanes(o, c_at + place.c[p], residual_at + place.residual[p], residual_step,
                        bias_at + place.bias[p], bias_step, place.streams, sums[p * vectors]);
            continue;
        }
        UNROLL for (int i = 0; i < VEC; i++)
            v[i] = sums[(p + (i < count ? i : 0)) * vectors];
        transpose_lanes(v);

        int residual_pixel = RESIDUAL ? step_of(place.residual + p, count) : 0;
        int bias_pixel = BIAS ? step_of(place.bias + p, count) : 0;
        const int lanes = count == VEC && (place.adjacent || step_of(place.c + p, count) == 1) &&
                          residual_pixel >= 0 && bias_pixel >= 0;
        const INDEX apart = lanes ? 0 : distance_of(place.c + p, count);

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
