/* rows.cl - softmax along each row, or its gradient (softmax.h has the formulas)
 *
 * One work-group takes ROWS rows, with ROW_ITEMS items on each.  An item holds VALUES elements
 * of its row in registers; ROW_ITEMS x VALUES elements are a chunk.  A row of one chunk is read
 * once; a longer one is folded chunk by chunk and then read again.  Along a row an item holds
 * neighbours, RUN of them, so that one access brings them where the row is aligned to that.
 *
 *     ACROSS 0: items side by side on a row       ACROSS 1: items side by side on rows
 *
 *     row 0   0000 1111 2222 3333 0000 ...        row 0   0 4 0 4 ...
 *     row 1   4444 5555 6666 7777 4444 ...        row 1   1 5 1 5 ...
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
#define RUN   (ACROSS ? 1 : 4)
#define RADIX 4                       /* pairs merged in one step of the tree */

#if ITEMS % ROW_ITEMS || VALUES % 4
#error "ROW_ITEMS must divide ITEMS, and 4 VALUES"
#endif

/* One row, and the item's place on it. */
struct line {
    GLOBAL const T *x, *w;
    GLOBAL T       *y;
    INDEX x_step, w_step, y_step;
    INDEX seen;                       /* by the causal mask: the elements before this */
    R     scale;
    int   is_log, has_w;
    int   in_runs;                    /* elements are neighbours in memory, runs aligned and whole */
    int   k;
};

/* Where, after the first of the item's chunk, the run lies that begins with value i. */
#define RUN_AT(i) ((i) * ROW_ITEMS + l->k * RUN)

/* All values of an item, i being the number of each and j its element of the row. */
#define EACH_VALUE UNROLL for (int i = 0; i < VALUES; i++)
#define ELEMENT    (from + RUN_AT(i / RUN * RUN) + i % RUN)

/* ---- a chunk -------------------------------------------------------------
 * What depends on the problem alone (has_w, is_log, kept) is asked outside the loops over the
 * values, for not every compiler takes it out of them.                                     */

/* The item's values of [from, to).  Past the end the first is read, not nothing: without a
 * branch around each all loads are under way at once.                                     */
DEVICE void read_values(const struct line *l, GLOBAL const T *p, INDEX step, R *r, INDEX from, INDEX to)
{
    if (l->in_runs)
        UNROLL for (int i = 0; i < VALUES; i += 4) {
            const INDEX j = from + RUN_AT(i);

            VSTORE(4, r + i, LOAD_ALIGNED(4, p + (j < to ? j : from)));
        }
    else
        EACH_VALUE
            r[i] = LOAD(p, (ELEMENT < to ? ELEMENT : from) * step);
}

#if BACKWARD
/* a: x, b: w; 0 past the end */
DEVICE void read_chunk(const struct line *l, R *a, R *b, INDEX from, INDEX to)
{
    read_values(l, l->x, l->x_step, a, from, to);
    read_values(l, l->w, l->w_step, b, from, to);
    EACH_VALUE {
        a[i] = ELEMENT < to ? a[i] : ZERO;
        b[i] = ELEMENT < to ? b[i] : ZERO;
    }
}

DEVICE void fold_chunk(const struct line *l, R *a, R *b, INDEX size, int keep, R *max, R *sum)
{
    if (l->is_log)
        EACH_VALUE
            *sum = *sum + b[i];
    else
        EACH_VALUE
            *sum = FMA(a[i], b[i], *sum);
}

/* What to store, in a. */
DEVICE void finish_chunk(const struct line *l, R *a, R *b, int kept, R max, R sum, R factor)
{
    if (l->is_log)
        EACH_VALUE
            a[i] = l->scale * (b[i] - exp_of(a[i]) * sum);
    else
        EACH_VALUE
            a[i] = l->scale * (a[i] * (b[i] - sum));
}
#else
/* a: z; -infinity past the end */
DEVICE void read_chunk(const struct line *l, R *a, R *b, INDEX from, INDEX to)
{
    read_values(l, l->x, l->x_step, a, from, to);
    if (l->has_w) {
        read_values(l, l->w, l->w_step, b, from, to);
        EACH_VALUE
            a[i] = FMA(l->scale, a[i], b[i]);
    } else
        EACH_VALUE
            a[i] = l->scale * a[i];
    EACH_VALUE
        a[i] = ELEMENT < to ? a[i] : -INFINITE;
}

/* keep: leaves exp(z - max) in a. */
DEVICE void fold_chunk(const struct line *l, R *a, R *b, INDEX size, int keep, R *max, R *sum)
{
    R top = *max, s = ZERO;

    EACH_VALUE
        top = MAX(top, a[i]);
    EACH_VALUE
        if (i / RUN * RUN * ROW_ITEMS < size) {       /* the same for all items of the row */
            const R e = exp_of(a[i] - top);

            s = s + e;
            a[i] = keep ? e : a[i];
        }
    *sum = *sum * exp_of(*max - top) + s;
    *max = top;
}

/* What to store, in a.  factor: of the sum, or its logarithm. */
DEVICE void finish_chunk(const struct line *l, R *a, R *b, int kept, R max, R sum, R factor)
{
    if (l->is_log)
        EACH_VALUE
            a[i] = a[i] - max - factor;
    else if (kept)
        EACH_VALUE
            a[i] = a[i] * factor;
    else
        EACH_VALUE
            a[i] = exp_of(a[i] - max) * factor;
}
#endif

DEVICE void write_chunk(const struct line *l, R *a, INDEX from, INDEX to)
{
    UNROLL for (int i = 0; i < VALUES; i += RUN) {
        const INDEX j = from + RUN_AT(i);

        if (l->in_runs && j + RUN <= to)
            STORE_ALIGNED(4, l->y + j, VLOAD(4, a + i));
        else
            UNROLL for (int o = 0; o < RUN; o++)
                if (j + o < to)
                    STORE(l->y, (j + o) * l->y_step, a[i + o]);
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
        finish_chunk(l, a, b, kept, max, sum, factor);
        write_chunk(l, a, j, end);
    }
    for (INDEX j = hidden + l->k; j < to; j += ROW_ITEMS)
        STORE(l->y, j * l->y_step, l->is_log && !BACKWARD ? -INFINITE : ZERO);
}

#define ARGUMENTS                                                                     \
    VIEW shape, int is_log, int causal, R scale, GLOBAL const T *gX, VIEW x_view,     \
    GLOBAL const T *gW, VIEW w_view, int has_w, GLOBAL T *gY, VIEW y_view

/* Whether runs of 4 are aligned on a row that begins at p. */
#define ALIGNED(p, step) ((step) == 1 && (UINT64)(p) % (4 * T_BYTES) == 0)

DEVICE int has_runs(GLOBAL const T *x, VIEW x_view, GLOBAL const T *w, VIEW w_view, int reads_w,
                    GLOBAL const T *y, VIEW y_view, VIEW shape)
{
    return !ACROSS && shape.s6 % 4 == 0 && ALIGNED(x, x_view.s6) && (!reads_w || ALIGNED(w, w_view.s6)) &&
           ALIGNED(y, y_view.s6);
}

/* A row past the last is given as one of no elements. */
#define LINE(l, row, k, past)                                                         \
    GLOBAL const T *const x_row = gX + ((past) ? 0 : row_at(x_view, shape, row));     \
    GLOBAL const T *const w_row = gW + ((past) ? 0 : row_at(w_view, shape, row));     \
    GLOBAL T *const y_row = gY + ((past) ? 0 : row_at(y_view, shape, row));           \
    const struct line l = {                                                           \
        x_row, w_row, y_row, (INDEX)x_view.s6, (INDEX)w_view.s6, (INDEX)y_view.s6,    \
        (past) ? 0 : row_seen(shape, row, causal), scale, is_log, has_w,              \
        has_runs(x_row, x_view, w_row, w_view, BACKWARD || has_w, y_row, y_view, shape), k \
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
    LINE(l, row, LOCAL_ID(), 0);
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
    LINE(l, row, LOCAL_ID(), 0);
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
    LINE(l, row, k, past);
    R a[VALUES], b[VALUES], max, sum;

    fold_row(&l, a, b, 0, n, held, &max, &sum);

    const R item_max = max;

    merge_row(sMax, sSum, me, k, &max, &sum);
    write_row(&l, a, b, 0, n, held, item_max, max, sum);
}
#endif
