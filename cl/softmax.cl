/* softmax.cl - softmax along each row, or its gradient (softmax.h has the formulas)
 *
 * One work-group takes ROWS rows, with ROW_ITEMS items on each.  An item holds VALUES elements
 * of its row in registers; ROW_ITEMS x VALUES elements are a chunk.  A row of one chunk is read
 * once; a longer one is folded chunk by chunk and then read again.
 *
 *     ACROSS 0: items side by side on a row       ACROSS 1: items side by side on rows
 *
 *     row 0   0 1 2 3 0 1 2 3 ...                 row 0   0 4 0 4 ...
 *     row 1   4 5 6 7 4 5 6 7 ...                 row 1   1 5 1 5 ...
 *                                                 row 2   2 6 2 6 ...
 *     reads rows that are contiguous              reads rows that lie side by side
 *
 * With SPLIT several work-groups share a row: `partial` leaves the pair of each part in the
 * workspace, `finish` merges a row's pairs, in their order, and writes.
 *
 * Parameters, from softmax.tune: ITEMS ROW_ITEMS VALUES; of the variant: BACKWARD SPLIT ACROSS.
 */

#define ROWS  (ITEMS / ROW_ITEMS)
#define CHUNK (ROW_ITEMS * VALUES)
#define RADIX 4                       /* pairs merged in one step of the tree */

#if ITEMS % ROW_ITEMS
#error "ROW_ITEMS must divide ITEMS"
#endif

/* One row, and the item's place on it. */
struct line {
    GLOBAL const T *x, *w;
    GLOBAL T       *y;
    INDEX x_step, w_step, y_step;
    INDEX seen;                       /* by the causal mask: the elements before this */
    R     scale;
    int   is_log, has_w;
    int   k;
};

/* ---- a chunk ------------------------------------------------------------- */

#if BACKWARD
/* a: x, b: w; 0 past the end.  There the first is read, not nothing: without a branch all
 * loads are under way at once.                                                          */
DEVICE void read_chunk(const struct line *l, R *a, R *b, INDEX from, INDEX to)
{
    UNROLL for (int i = 0; i < VALUES; i++) {
        const INDEX j = from + i * ROW_ITEMS + l->k;
        const R x = LOAD(l->x, (j < to ? j : from) * l->x_step), w = LOAD(l->w, (j < to ? j : from) * l->w_step);

        a[i] = j < to ? x : ZERO;
        b[i] = j < to ? w : ZERO;
    }
}

DEVICE void fold_chunk(const struct line *l, R *a, R *b, INDEX size, int keep, R *max, R *sum)
{
    UNROLL for (int i = 0; i < VALUES; i++)
        *sum = l->is_log ? *sum + b[i] : FMA(a[i], b[i], *sum);
}

DEVICE R result(const struct line *l, R a, R b, int kept, R max, R sum, R factor)
{
    return l->scale * (l->is_log ? b - exp_of(a) * sum : a * (b - sum));
}
#else
/* a: z; -infinity past the end.  There the first is read, not nothing: without a branch all
 * loads are under way at once.                                                           */
DEVICE void read_chunk(const struct line *l, R *a, R *b, INDEX from, INDEX to)
{
    UNROLL for (int i = 0; i < VALUES; i++) {
        const INDEX j = from + i * ROW_ITEMS + l->k;

        a[i] = LOAD(l->x, (j < to ? j : from) * l->x_step);
    }
    UNROLL for (int i = 0; i < VALUES; i++) {
        const INDEX j = from + i * ROW_ITEMS + l->k;
        const R z = l->has_w ? FMA(l->scale, a[i], LOAD(l->w, (j < to ? j : from) * l->w_step)) : l->scale * a[i];

        a[i] = j < to ? z : -INFINITE;
    }
}

/* keep: leaves exp(z - max) in a. */
DEVICE void fold_chunk(const struct line *l, R *a, R *b, INDEX size, int keep, R *max, R *sum)
{
    R top = *max, s = ZERO;

    UNROLL for (int i = 0; i < VALUES; i++)
        top = MAX(top, a[i]);
    UNROLL for (int i = 0; i < VALUES; i++)
        if (i * ROW_ITEMS < size) {                   /* the same for all items of the row */
            const R e = exp_of(a[i] - top);

            s = s + e;
            a[i] = keep ? e : a[i];
        }
    *sum = *sum * exp_of(*max - top) + s;
    *max = top;
}

/* factor: of the sum, or its logarithm */
DEVICE R result(const struct line *l, R a, R b, int kept, R max, R sum, R factor)
{
    return l->is_log ? a - max - factor : (kept ? a : exp_of(a - max)) * factor;
}
#endif

DEVICE void write_chunk(const struct line *l, R *a, R *b, INDEX from, INDEX to, int kept, R max, R sum, R factor)
{
    UNROLL for (int i = 0; i < VALUES; i++) {
        const INDEX j = from + i * ROW_ITEMS + l->k;

        if (j < to)
            STORE(l->y, j * l->y_step, result(l, a[i], b[i], kept, max, sum, factor));
    }
}

/* ---- a row, or a part of one ---------------------------------------------- */

/* The pair of what this item sees in [from, to).  held: that is one chunk, which stays in
 * a and b for write_row.                                                                 */
DEVICE void fold_row(const struct line *l, R *a, R *b, INDEX from, INDEX to, int held, R *max, R *sum)
{
    const int keep = held && !l->is_log;
    const INDEX end = to < l->seen ? to : l->seen;

    *max = FIRST_MAX;
    *sum = ZERO;
    for (INDEX j = from; j < end; j += CHUNK) {
        read_chunk(l, a, b, j, end);
        fold_chunk(l, a, b, end - j, keep, max, sum);
    }
}

/* Merges the pairs of a row's items; each gets the row's. */
DEVICE void merge_row(LOCAL R *sMax, LOCAL R *sSum, int row, int k, R *max, R *sum)
{
    const int base = ACROSS ? row : row * ROW_ITEMS, step = ACROSS ? ROWS : 1;

    sMax[base + k * step] = *max;
    sSum[base + k * step] = *sum;
    BARRIER();
    for (int left = ROW_ITEMS; left > 1; ) {
        const int next = (left + RADIX - 1) / RADIX;

        if (k < next) {               /* writes below `next`; others read at `next` and above */
            for (int o = k + next; o < left; o += next)
                merge(max, sum, sMax[base + o * step], sSum[base + o * step]);
            sMax[base + k * step] = *max;
            sSum[base + k * step] = *sum;
        }
        left = next;
        BARRIER();
    }
    *max = sMax[base];
    *sum = sSum[base];
}

/* item_max: the maximum that fold_row gave this item, to which what it holds belongs */
DEVICE void write_row(const struct line *l, R *a, R *b, INDEX from, INDEX to, int held, R item_max, R max, R sum)
{
    const int kept = held && !l->is_log;
    const INDEX end = to < l->seen ? to : l->seen, hidden = from > l->seen ? from : l->seen;
    R factor = ZERO;

#if !BACKWARD
    factor = l->is_log ? logarithm_of(sum) : inverse_of(sum);
    if (kept)
        factor = factor * exp_of(item_max - max);
#endif
    for (INDEX j = from; j < end; j += CHUNK) {
        if (!held)
            read_chunk(l, a, b, j, end);
        write_chunk(l, a, b, j, end, kept, max, sum, factor);
    }
    for (INDEX j = hidden + l->k; j < to; j += ROW_ITEMS)
        STORE(l->y, j * l->y_step, l->is_log && !BACKWARD ? -INFINITE : ZERO);
}

#define ARGUMENTS                                                                     \
    VIEW shape, int is_log, int causal, R scale, GLOBAL const T *gX, VIEW x_view,     \
    GLOBAL const T *gW, VIEW w_view, int has_w, GLOBAL T *gY, VIEW y_view

/* A row past the last is given as one of no elements. */
#define LINE(row, k, past)                                                            \
    {                                                                                 \
        gX + ((past) ? 0 : row_at(x_view, shape, row)),                               \
        gW + ((past) ? 0 : row_at(w_view, shape, row)),                               \
        gY + ((past) ? 0 : row_at(y_view, shape, row)),                               \
        (INDEX)x_view.s6, (INDEX)w_view.s6, (INDEX)y_view.s6,                         \
        (past) ? 0 : row_seen(shape, row, causal), scale, is_log, has_w, k            \
    }

#if SPLIT
#if ROWS != 1
#error "where rows are split, ROW_ITEMS must be ITEMS"
#endif

/* parts: of a row, each of shape.s7 elements */
KERNEL(ITEMS) void
partial(ARGUMENTS, GLOBAL R *gPairs, int parts)
{
    LOCAL_ARRAY(R, sMax, ITEMS);
    LOCAL_ARRAY(R, sSum, ITEMS);

    const INDEX row = GROUP_ID(0) / parts, n = (INDEX)shape.s6, span = (INDEX)shape.s7;
    const INDEX from = (GROUP_ID(0) - row * parts) * span, to = span < n - from ? from + span : n;
    const struct line l = LINE(row, LOCAL_ID(), 0);
    R a[VALUES], b[VALUES], max, sum;

    fold_row(&l, a, b, from, to, 0, &max, &sum);
    merge_row(sMax, sSum, 0, l.k, &max, &sum);
    if (l.k == 0) {
        gPairs[2 * GROUP_ID(0)]     = max;
        gPairs[2 * GROUP_ID(0) + 1] = sum;
    }
}

KERNEL(ITEMS) void
finish(ARGUMENTS, GLOBAL const R *gPairs, int parts)
{
    LOCAL_ARRAY(R, sMax, ITEMS);
    LOCAL_ARRAY(R, sSum, ITEMS);

    const INDEX row = GROUP_ID(0) / parts, n = (INDEX)shape.s6, span = (INDEX)shape.s7;
    const INDEX from = (GROUP_ID(0) - row * parts) * span, to = span < n - from ? from + span : n;
    const INDEX first = row * parts;
    const struct line l = LINE(row, LOCAL_ID(), 0);
    R a[VALUES], b[VALUES], max = FIRST_MAX, sum = ZERO;

    for (int p = l.k; p < parts; p += ITEMS)
        merge(&max, &sum, gPairs[2 * (first + p)], gPairs[2 * (first + p) + 1]);
    merge_row(sMax, sSum, 0, l.k, &max, &sum);
    write_row(&l, a, b, from, to, 0, max, max, sum);
}
#else
KERNEL(ITEMS) void
softmax(ARGUMENTS)
{
    LOCAL_ARRAY(R, sMax, ITEMS);
    LOCAL_ARRAY(R, sSum, ITEMS);

    const int far = LOCAL_ID() / (ACROSS ? ROWS : ROW_ITEMS);
    const int near = LOCAL_ID() - far * (ACROSS ? ROWS : ROW_ITEMS);
    const int me = ACROSS ? near : far, k = ACROSS ? far : near;
    const INDEX row = (INDEX)GROUP_ID(0) * ROWS + me;
    const int past = row >= (INDEX)shape.s0;
    const INDEX n = past ? 0 : (INDEX)shape.s6;
    const int held = n <= CHUNK;
    const struct line l = LINE(row, k, past);
    R a[VALUES], b[VALUES], max, sum;

    fold_row(&l, a, b, 0, n, held, &max, &sum);

    const R item_max = max;

    merge_row(sMax, sSum, me, k, &max, &sum);
    write_row(&l, a, b, 0, n, held, item_max, max, sum);
}
#endif
