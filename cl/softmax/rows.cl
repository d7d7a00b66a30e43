/* cl/softmax/rows.cl - softmax along each row, or its gradient (softmax.h has the formulas)
 *
 * Rows lie in registers as cl/tile/row.h says.  A row of one chunk is read once: its maximum is found, then
 * each element costs one exponential, and the sum of these gives the factor that all are scaled by; maxima
 * and sums are merged without exponentials.  A longer row is reduced chunk by chunk, each work-item against
 * its own maximum so far, and then read again.
 *
 * With SPLIT several work-groups share a row: `partial` writes the pair of each split to the
 * workspace; `finish` merges the pairs of a row, in order, and writes the result.
 *
 * Parameters, from softmax.tune: ITEMS ROW_ITEMS VALUES; constants: FORM WHOLE, of the problem; SPLIT
 * ACROSS, of the variant.
 */

/* ---- a chunk ------------------------------------------------------------------------------- */

#if BACKWARD
/* a: x, b: w; 0 where there is no element */
DEVICE void read_chunk(const struct row_view *it, R *a, R *b, INDEX from, const int once)
{
    read_line(&it->x, &it->at, a, from, ZERO, once);
    read_line(&it->w, &it->at, b, from, ZERO, once);
}
#else
/* factor x a is z, and -infinity where there is no element. */
DEVICE void read_chunk(const struct row_view *it, R *a, R *b, INDEX from, const int once)
{
    read_line(&it->x, &it->at, a, from, it->scale < ZERO ? INFINITE : -INFINITE, once);
    if (MASKED) {
        read_line(&it->w, &it->at, b, from, ZERO, 0);           /* other rows may have the same */
        EACH_VALUE
            a[i] = FMA(it->scale, a[i], b[i]);
    }
}
#endif

/* ---- a row, or a split of one ---------------------------------------------- */

/* The pair of the places [from, to).  held: they are one chunk, which stays in a and b for write_row(); this
 * may differ between the rows of a work-group, so that no barrier depends on it.            */
DEVICE void reduce_row(LOCAL R *base, int row, const struct row_view *it, R *a, R *b, INDEX from, INDEX to,
                       int held, R *max, R *sum)
{
    const INDEX seen = it->at.seen + it->at.skip, end = to < seen ? to : seen;
    R own = FIRST_MAX, s = ZERO;

#if BACKWARD
    *max = own;
    if (held) {
        read_chunk(it, a, b, from, 1);
        s = values_dot(it, a, b, VALUES);
    } else
        for (INDEX j = from; j < end; j += CHUNK) {
            read_chunk(it, a, b, j, 0);
            s = s + values_dot(it, a, b, VALUES);
        }
#else
    if (held) {
        read_chunk(it, a, b, from, 1);
        own = values_max(a, VALUES, it->factor);
    } else
        for (INDEX j = from; j < end; j += CHUNK) {
            R next;

            read_chunk(it, a, b, j, 0);
            next = MAX(own, values_max(a, VALUES, it->factor));
            s = s * power(own - next) + values_sum(a, VALUES, it->factor, next, 0);
            own = next;
        }
    *max = row_max(base, 0, row, it->at.k, own);
    s = held ? values_sum(a, VALUES, it->factor, *max, !it->is_log) : s * power(own - *max);
#endif
    *sum = row_sum(base, ROW_ROOM, row, it->at.k, s);
}

/* From the last chunk to the first, since what was read last is in the cache. */
DEVICE void write_row(const struct row_view *it, R *a, R *b, INDEX from, INDEX to, int held, R max, R sum)
{
    const INDEX all = it->at.n + it->at.skip, end = to < all ? to : all;
    const R     hidden = !BACKWARD & it->is_log ? -INFINITE : ZERO;
    const R     factor = factor_of(max, sum, it->is_log);

    for (INDEX j = from + (end - 1 - from) / CHUNK * CHUNK; from < end && j >= from; j -= CHUNK) {
        if (!held)
            read_chunk(it, a, b, j, 1);
        finish_values(it, a, b, VALUES, held && !it->is_log, max, sum, factor);
        if (it->at.seen < it->at.n)
            EACH_VALUE
                a[i] = ELEMENT(&it->at, j) < it->at.seen ? a[i] : hidden;
        write_line(&it->y, &it->at, a, j);
    }
}

#if SPLIT
#if ROWS != 1
#error "with SPLIT, ROW_ITEMS must be ITEMS"
#endif

/* A row has `splits` splits, each of shape.s7 places, a multiple of CHUNK. */
KERNEL(ITEMS) void
partial(ARGUMENTS, GLOBAL R *gPairs, int splits)
{
    LOCAL_ARRAY(R, sRow, 2 * ROW_ROOM);

    const INDEX span = (INDEX)shape.s7, row = GROUP_ID(0) / splits;
    const INDEX from = GROUP_ID(0) % splits * span;
    ROW_VIEW(it, row, LOCAL_ID(), 0);
    R a[VALUES], b[VALUES], max, sum;

    reduce_row(sRow, 0, &it, a, b, from, from + span, 0, &max, &sum);
    if (LOCAL_ID() == 0) {
        gPairs[2 * GROUP_ID(0)]     = max;
        gPairs[2 * GROUP_ID(0) + 1] = sum;
    }
}

/* From the last split to the first, since what was read last is in the cache. */
KERNEL(ITEMS) void
finish(ARGUMENTS, GLOBAL const R *gPairs, int splits)
{
    LOCAL_ARRAY(R, sRow, 2 * ROW_ROOM);

    const int at = (int)shape.s0 * splits - 1 - GROUP_ID(0), pairs = at / splits * splits;
    const INDEX span = (INDEX)shape.s7, row = at / splits, from = at % splits * span;
    ROW_VIEW(it, row, LOCAL_ID(), 0);
    R a[VALUES], b[VALUES], max = FIRST_MAX, sum = ZERO;

    for (int p = LOCAL_ID(); p < splits; p += ITEMS)
        merge(&max, &sum, gPairs[2 * (pairs + p)], gPairs[2 * (pairs + p) + 1]);
#if !BACKWARD
    const R own = max;

    max = row_max(sRow, 0, 0, LOCAL_ID(), own);
    sum = sum * power(own - max);
#endif
    sum = row_sum(sRow, ROW_ROOM, 0, LOCAL_ID(), sum);
    write_row(&it, a, b, from, from + span, 0, max, sum);
}
#else
KERNEL(ITEMS) void
softmax(ARGUMENTS)
{
    LOCAL_ARRAY(R, sRow, 2 * ROW_ROOM);

    const int far = LOCAL_ID() / (ACROSS ? ROWS : ROW_ITEMS);
    const int near = LOCAL_ID() - far * (ACROSS ? ROWS : ROW_ITEMS);
    const int me = ACROSS ? near : far, k = ACROSS ? far : near;
    const INDEX row = (INDEX)GROUP_ID(0) * ROWS + me;
    const int past = row >= (INDEX)shape.s0;
    ROW_VIEW(it, row, k, past);
    const int held = it.at.n + skip <= CHUNK;
    R a[VALUES], b[VALUES], max, sum;

    reduce_row(sRow, me, &it, a, b, 0, it.at.n + skip, held, &max, &sum);
    write_row(&it, a, b, 0, it.at.n + skip, held, max, sum);
}
#endif
