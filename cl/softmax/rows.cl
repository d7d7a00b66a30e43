/* cl/softmax/rows.cl - softmax along each row, or its gradient (softmax.h has the formulas)
 *
 * A work-group takes ROWS rows, with ROW_ITEMS work-items on each. A work-item holds VALUES
 * elements of its row in registers; ROW_ITEMS x VALUES elements are a chunk. A row of one chunk is
 * read once; a longer one is reduced chunk by chunk and then read again. Along a row a work-item
 * holds runs of RUN contiguous elements, which are one access where the row is aligned to it.
 *
 *     ACROSS 0: work-items along a row            ACROSS 1: work-items across rows
 *
 *     row 0   0000 1111 2222 3333 0000 ...        row 0   0 4 0 4 ...
 *     row 1   4444 5555 6666 7777 4444 ...        row 1   1 5 1 5 ...
 *                                                 row 2   2 6 2 6 ...
 *     coalesced where a row is contiguous         coalesced where rows are contiguous
 *
 * With SPLIT several work-groups share a row: `partial` writes the pair of each split to the
 * workspace; `finish` merges the pairs of a row, in order, and writes the result.
 *
 * Parameters, from softmax.tune: ITEMS ROW_ITEMS VALUES; constants of the variant: BACKWARD SPLIT
 * ACROSS.
 */

#define ROWS  (ITEMS / ROW_ITEMS)
#define CHUNK (ROW_ITEMS * VALUES)
#define RUN   (ACROSS ? 1 : 4)
#define RADIX 4                       /* of the tree that merges pairs */

#if ITEMS % ROW_ITEMS || VALUES % 4
#error "ROW_ITEMS must divide ITEMS, and VALUES must be a multiple of 4"
#endif

/* One row, and the index of the work-item on it. */
struct row_view {
    GLOBAL const T *x, *w;
    GLOBAL T       *y;
    INDEX x_step, w_step, y_step;
    INDEX visible;                       /* elements that the causal mask leaves */
    R     scale;
    int   is_log, has_w;
    int   in_runs;                    /* elements are contiguous, and runs aligned and whole */
    int   k;
};

/* The offset, from the start of the chunk, of the run that begins with value i of this work-item. */
#define RUN_AT(i) ((i) * ROW_ITEMS + it->k * RUN)

/* Iterates over the values of a work-item: i is the index of a value, ELEMENT its index in the row. */
#define EACH_VALUE UNROLL for (int i = 0; i < VALUES; i++)
#define ELEMENT    (from + RUN_AT(i / RUN * RUN) + i % RUN)

/* ---- a chunk -------------------------------------------------------------
 * Conditions that depend on the problem alone (has_w, is_log, kept) are tested outside the loops over
 * values, since not every compiler hoists them.                                            */

/* Reads the work-item's values of [from, to). Past the end the first element is read again: without a
 * branch around each, all loads are in flight at once.                                    */
DEVICE void read_values(const struct row_view *it, GLOBAL const T *p, INDEX step, R *r, INDEX from, INDEX to)
{
    if (it->in_runs)
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
DEVICE void read_chunk(const struct row_view *it, R *a, R *b, INDEX from, INDEX to)
{
    read_values(it, it->x, it->x_step, a, from, to);
    read_values(it, it->w, it->w_step, b, from, to);
    EACH_VALUE {
        a[i] = ELEMENT < to ? a[i] : ZERO;
        b[i] = ELEMENT < to ? b[i] : ZERO;
    }
}

DEVICE void reduce_chunk(const struct row_view *it, R *a, R *b, INDEX size, int keep, R *max, R *sum)
{
    if (it->is_log)
        EACH_VALUE
            *sum = *sum + b[i];
    else
        EACH_VALUE
            *sum = FMA(a[i], b[i], *sum);
}

/* Leaves what to store in a. */
DEVICE void finish_chunk(const struct row_view *it, R *a, R *b, int kept, R max, R sum, R factor)
{
    if (it->is_log)
        EACH_VALUE
            a[i] = it->scale * (b[i] - exp_of(a[i]) * sum);
    else
        EACH_VALUE
            a[i] = it->scale * (a[i] * (b[i] - sum));
}
#else
/* a: z; -infinity past the end */
DEVICE void read_chunk(const struct row_view *it, R *a, R *b, INDEX from, INDEX to)
{
    read_values(it, it->x, it->x_step, a, from, to);
    if (it->has_w) {
        read_values(it, it->w, it->w_step, b, from, to);
        EACH_VALUE
            a[i] = FMA(it->scale, a[i], b[i]);
    } else
        EACH_VALUE
            a[i] = it->scale * a[i];
    EACH_VALUE
        a[i] = ELEMENT < to ? a[i] : -INFINITE;
}

/* keep: leaves exp(z - max) in a. */
DEVICE void reduce_chunk(const struct row_view *it, R *a, R *b, INDEX size, int keep, R *max, R *sum)
{
    R top = *max, s = ZERO;

    EACH_VALUE
        top = MAX(top, a[i]);
    EACH_VALUE
        if (i / RUN * RUN * ROW_ITEMS < size) {       /* uniform over the row */
            const R e = exp_of(a[i] - top);

            s = s + e;
            a[i] = keep ? e : a[i];
        }
    *sum = *sum * exp_of(*max - top) + s;
    *max = top;
}

/* Leaves what to store in a. factor: the inverse of the sum, or its logarithm. */
DEVICE void finish_chunk(const struct row_view *it, R *a, R *b, int kept, R max, R sum, R factor)
{
    if (it->is_log)
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

DEVICE void write_chunk(const struct row_view *it, R *a, INDEX from, INDEX to)
{
    UNROLL for (int i = 0; i < VALUES; i += RUN) {
        const INDEX j = from + RUN_AT(i);

        if (it->in_runs && j + RUN <= to)
            STORE_ALIGNED(4, it->y + j, VLOAD(4, a + i));
        else
            UNROLL for (int o = 0; o < RUN; o++)
                if (j + o < to)
                    STORE(it->y, (j + o) * it->y_step, a[i + o]);
    }
}

/* ---- a row, or a split of one ---------------------------------------------- */

/* The pair of this work-item's elements in [from, to). held: they are one chunk, which stays in a and b
 * for write_row.                                                                          */
DEVICE void reduce_row(const struct row_view *it, R *a, R *b, INDEX from, INDEX to, int held, R *max, R *sum)
{
    const int keep = held && !it->is_log;
    const INDEX end = to < it->visible ? to : it->visible;

    *max = FIRST_MAX;
    *sum = ZERO;
    for (INDEX j = from; j < end; j += CHUNK) {
        read_chunk(it, a, b, j, end);
        reduce_chunk(it, a, b, end - j, keep, max, sum);
    }
}

/* Merges the pairs of a row's work-items; each of them gets the row's pair. */
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

/* item_max: the maximum from reduce_row, to which the values that this work-item holds are relative. */
DEVICE void write_row(const struct row_view *it, R *a, R *b, INDEX from, INDEX to, int held,
                      R item_max, R max, R sum)
{
    const int kept = held && !it->is_log;
    const INDEX end = to < it->visible ? to : it->visible, hidden = from > it->visible ? from : it->visible;
    R factor = ZERO;

#if !BACKWARD
    factor = it->is_log ? logarithm_of(sum) : inverse_of(sum);
    if (kept)
        factor = factor * exp_of(item_max - max);
#endif
    for (INDEX j = from; j < end; j += CHUNK) {
        if (!held)
            read_chunk(it, a, b, j, end);
        finish_chunk(it, a, b, kept, max, sum, factor);
        write_chunk(it, a, j, end);
    }
    for (INDEX j = hidden + it->k; j < to; j += ROW_ITEMS)
        STORE(it->y, j * it->y_step, it->is_log && !BACKWARD ? -INFINITE : ZERO);
}

#define ARGUMENTS                                                                     \
    VIEW shape, int is_log, int causal, R scale, GLOBAL const T *gX, VIEW x_view,     \
    GLOBAL const T *gW, VIEW w_view, int has_w, GLOBAL T *gY, VIEW y_view

/* Whether runs of 4 are aligned in a row that begins at p. */
#define ALIGNED(p, step) ((step) == 1 && (UINT64)(p) % (4 * T_BYTES) == 0)

DEVICE int has_runs(GLOBAL const T *x, VIEW x_view, GLOBAL const T *w, VIEW w_view, int reads_w,
                    GLOBAL const T *y, VIEW y_view, VIEW shape)
{
    return !ACROSS && shape.s6 % 4 == 0 && ALIGNED(x, x_view.s6) && (!reads_w || ALIGNED(w, w_view.s6)) &&
           ALIGNED(y, y_view.s6);
}

/* Defines the view `it` of a row; a row past the last has no elements. */
#define ROW_VIEW(it, row, k, past)                                                         \
    GLOBAL const T *const x_row = gX + ((past) ? 0 : row_at(x_view, shape, row));          \
    GLOBAL const T *const w_row = gW + ((past) ? 0 : row_at(w_view, shape, row));          \
    GLOBAL T *const y_row = gY + ((past) ? 0 : row_at(y_view, shape, row));                \
    const struct row_view it = {                                                           \
        x_row, w_row, y_row, (INDEX)x_view.s6, (INDEX)w_view.s6, (INDEX)y_view.s6,         \
        (past) ? 0 : row_visible(shape, row, causal), scale, is_log, has_w,                \
        has_runs(x_row, x_view, w_row, w_view, BACKWARD || has_w, y_row, y_view, shape), k \
    }

#if SPLIT
#if ROWS != 1
#error "with SPLIT, ROW_ITEMS must be ITEMS"
#endif

/* A row has `splits` splits, each of shape.s7 elements. */
KERNEL(ITEMS) void
partial(ARGUMENTS, GLOBAL R *gPairs, int splits)
{
    LOCAL_ARRAY(R, sMax, ITEMS);
    LOCAL_ARRAY(R, sSum, ITEMS);

    const INDEX row = GROUP_ID(0) / splits, n = (INDEX)shape.s6, span = (INDEX)shape.s7;
    const INDEX from = (GROUP_ID(0) - row * splits) * span, to = span < n - from ? from + span : n;
    ROW_VIEW(it, row, LOCAL_ID(), 0);
    R a[VALUES], b[VALUES], max, sum;

    reduce_row(&it, a, b, from, to, 0, &max, &sum);
    merge_row(sMax, sSum, 0, it.k, &max, &sum);
    if (it.k == 0) {
        gPairs[2 * GROUP_ID(0)]     = max;
        gPairs[2 * GROUP_ID(0) + 1] = sum;
    }
}

KERNEL(ITEMS) void
finish(ARGUMENTS, GLOBAL const R *gPairs, int splits)
{
    LOCAL_ARRAY(R, sMax, ITEMS);
    LOCAL_ARRAY(R, sSum, ITEMS);

    const INDEX row = GROUP_ID(0) / splits, n = (INDEX)shape.s6, span = (INDEX)shape.s7;
    const INDEX from = (GROUP_ID(0) - row * splits) * span, to = span < n - from ? from + span : n;
    const INDEX first = row * splits;
    ROW_VIEW(it, row, LOCAL_ID(), 0);
    R a[VALUES], b[VALUES], max = FIRST_MAX, sum = ZERO;

    for (int p = it.k; p < splits; p += ITEMS)
        merge(&max, &sum, gPairs[2 * (first + p)], gPairs[2 * (first + p) + 1]);
    merge_row(sMax, sSum, 0, it.k, &max, &sum);
    write_row(&it, a, b, from, to, 0, max, max, sum);
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
    ROW_VIEW(it, row, k, past);
    R a[VALUES], b[VALUES], max, sum;

    reduce_row(&it, a, b, 0, n, held, &max, &sum);

    const R item_max = max;

    merge_row(sMax, sSum, me, k, &max, &sum);
    write_row(&it, a, b, 0, n, held, item_max, max, sum);
}
#endif
