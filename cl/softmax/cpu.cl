/* cl/softmax/cpu.cl - softmax along each row, or its gradient, on CPUs (softmax.h has the formulas)
 *
 * A work-group is one work-item. It takes rows one after another, in vectors of VEC lanes:
 *
 *     lanes along the row                   lanes across rows, where rows are contiguous
 *
 *     row 0   v0 v0 v0 v0 v1 v1 v1 v1       row 0   v0 v1 v2 ...
 *     row 1   v0 v0 v0 v0 v1 v1 v1 v1       row 1   v0 v1 v2 ...
 *
 * Either way each lane reduces its own pair; lanes along a row are merged at its end.
 *
 * A row is processed in blocks, so that a block stays in the first-level cache from the search for
 * its maximum to its sum. Where T is R, y temporarily holds exp(z - max), with the maximum so far,
 * and the maximum of each block is noted: what remains is to scale y by exp(block's max - row's max)
 * / sum, so that each element costs one exponential.  Short rows keep them in private memory, and
 * y, where it outgrows the caches, is written past them, without being read into them first.
 *
 * With SPLIT several work-groups share a row: `partial` writes the pair of each split to the
 * workspace; `finish` merges the pairs of a row, in order, and writes the result.
 *
 * Parameters, from softmax.tune: VEC BLOCK (vectors); constants: FORM, of the problem; SPLIT, of the variant.
 */

#if BACKWARD                                   /* exponentials of the caller's numbers */
EXP_FUNCTION(exp_lanes, vector, BITS_LANES, LANES_BITS)
#else
EXP_BELOW_FUNCTION(exp_lanes, vector, BITS_LANES, LANES_BITS)
#endif

#define BLOCKS          256                    /* at most, per row: blocks grow to fit */
#define KEEPS           (!BACKWARD && (TYPE == TYPE_F32 || TYPE == TYPE_F64))

/* A row, or VEC rows with lanes across them: `count` vectors, of which the first `full` have all lanes,
 * and the others the first `tail`.                                                                */
struct row_view {
    GLOBAL const T *x, *w;
    GLOBAL T       *y;
    INDEX x_lane, w_lane, y_lane;              /* from one lane to the next */
    INDEX x_step, w_step, y_step;              /* from one vector to the next */
    INDEX full, count;
    int   tail;
    R     scale;
    int   is_log, has_w;
    int   plain;                               /* lanes are contiguous in memory; forward without w */
    int   streams;                             /* plain vectors of y are aligned, and y outgrows the caches */
};

/* ---- vectors ---------------------------------------------------------------- */

DEVICE int lanes_of(const struct row_view *it, INDEX j)
{
    return j < it->full ? VEC : it->tail;
}

/* `plain` is constant at each call, so that the loop around it has neither calls nor branches. */
DEVICE vector read_x(const struct row_view *it, INDEX j, int plain)
{
    GLOBAL const T *x = it->x + j * it->x_step;

    return plain ? LOAD_VECTOR(VEC, x) : read_lanes(x, it->x_lane, lanes_of(it, j));
}

DEVICE vector read_w(const struct row_view *it, INDEX j, int plain)
{
    GLOBAL const T *w = it->w + j * it->w_step;

    return plain ? LOAD_VECTOR(VEC, w) : read_lanes(w, it->w_lane, lanes_of(it, j));
}

DEVICE vector read_y(const struct row_view *it, INDEX j, int plain)
{
    GLOBAL const T *y = it->y + j * it->y_step;

    return plain ? LOAD_VECTOR(VEC, y) : read_lanes(y, it->y_lane, lanes_of(it, j));
}

DEVICE void write_y(const struct row_view *it, INDEX j, int plain, vector v)
{
    GLOBAL T *y = it->y + j * it->y_step;

    if (plain)
        STORE_LANES(y, v);
    else
        write_lanes(y, it->y_lane, lanes_of(it, j), v);
}

/* What is not read again here. */
DEVICE void write_last(const struct row_view *it, INDEX j, int plain, vector v)
{
    if (plain && it->streams)
        STORE_STREAM(VEC, it->y + j * it->y_step, v);
    else
        write_y(it, j, plain, v);
}

/* The vectors of [from, to) before this index are plain. */
DEVICE INDEX plain_end(const struct row_view *it, INDEX from, INDEX to)
{
    const INDEX end = it->full < to ? it->full : to;

    return it->plain && from < end ? end : from;
}

/* LOOP(first, end, plain) over [from, to), the plain vectors first */
#define PLAIN_FIRST(from, to, LOOP)                              \
    {                                                            \
        const INDEX middle = plain_end(it, from, to);            \
                                                                 \
        LOOP(from, middle, 1)                                    \
        LOOP(middle, to, 0)                                      \
    }

/* ---- reducing and writing vectors [from, to) of a row ---------------------------- */

#if BACKWARD
DEVICE void reduce(const struct row_view *it, INDEX from, INDEX to, int keep, R *tops,
                   vector *max, vector *sum)
{
    vector s = *sum;

#define ADD(first, end, plain)                                  \
    for (INDEX j = first; j < end; j++)                         \
        s = FMA(read_x(it, j, plain), read_w(it, j, plain), s);
#define ADD_LOG(first, end, plain)                              \
    for (INDEX j = first; j < end; j++)                         \
        s = s + read_w(it, j, plain);

    if (it->is_log)
        PLAIN_FIRST(from, to, ADD_LOG)
    else
        PLAIN_FIRST(from, to, ADD)
    *sum = s;
}

DEVICE void write(const struct row_view *it, INDEX from, INDEX to, int kept, const R *tops,
                  vector max, vector sum)
{
    const vector scale = (vector)it->scale;

#define WRITE(first, end, plain)                                \
    for (INDEX j = first; j < end; j++)                         \
        write_last(it, j, plain, scale * (read_x(it, j, plain) * (read_w(it, j, plain) - sum)));
#define WRITE_LOG(first, end, plain)                            \
    for (INDEX j = first; j < end; j++)                         \
        write_last(it, j, plain, scale * (read_w(it, j, plain) - exp_lanes(read_x(it, j, plain)) * sum));

    if (it->is_log)
        PLAIN_FIRST(from, to, WRITE_LOG)
    else
        PLAIN_FIRST(from, to, WRITE)
}
#else
/* z; -infinity in missing lanes */
DEVICE vector read_z(const struct row_view *it, INDEX j, int plain)
{
    const vector x = read_x(it, j, plain), scale = (vector)it->scale;

    if (plain)
        return scale * x;

    const vector z = it->has_w ? FMA(scale, x, read_w(it, j, 0)) : scale * x;

    return j < it->full ? z : first_lanes(z, it->tail, -INFINITE);
}

DEVICE INDEX block_of(INDEX from, INDEX to)
{
    const INDEX least = (to - from + BLOCKS - 1) / BLOCKS;

    return least > BLOCK ? least : BLOCK;
}

/* keep: leaves exp(z - max) in y, and the maximum of each block in tops */
DEVICE void reduce(const struct row_view *it, INDEX from, INDEX to, int keep, R *tops,
                   vector *max, vector *sum)
{
    const INDEX block = block_of(from, to);

#define FIND_MAX(first, end, plain)                              \
    for (INDEX j = first; j < end; j++) {                        \
        const vector z = read_z(it, j, plain);                   \
                                                                 \
        top = MAX_LANES(top, z);                                 \
    }
#define ADD_KEEPING(first, end, plain)                           \
    for (INDEX j = first; j < end; j++) {                        \
        const vector e = exp_lanes(read_z(it, j, plain) - top);  \
                                                                 \
        s = s + e;                                               \
        write_y(it, j, plain, e);                                \
    }
#define ADD(first, end, plain)                                  \
    for (INDEX j = first; j < end; j++)                         \
        s = s + exp_lanes(read_z(it, j, plain) - top);

    for (INDEX first = from; first < to; first += block, tops += VEC) {
        const INDEX end = block < to - first ? first + block : to;
        vector top = *max, s = (vector)ZERO;

        PLAIN_FIRST(first, end, FIND_MAX)
        if (keep) {
            PLAIN_FIRST(first, end, ADD_KEEPING)
            VSTORE(VEC, tops, top);
        } else
            PLAIN_FIRST(first, end, ADD)
        *sum = *sum * exp_lanes(*max - top) + s;
        *max = top;
    }
}

DEVICE void scale_kept(const struct row_view *it, INDEX from, INDEX to, const R *tops,
                       vector max, vector inverse)
{
    const INDEX block = block_of(from, to);

#define SCALE_EACH(first, end, plain)                           \
    for (INDEX j = first; j < end; j++)                         \
        write_y(it, j, plain, read_y(it, j, plain) * factor);

    for (INDEX first = from; first < to; first += block, tops += VEC) {
        const INDEX end = block < to - first ? first + block : to;
        const vector factor = exp_lanes(VLOAD(VEC, tops) - max) * inverse;

        PLAIN_FIRST(first, end, SCALE_EACH)
    }
}

/* factor: of_sum() of the sum of each lane */
DEVICE void write(const struct row_view *it, INDEX from, INDEX to, int kept, const R *tops,
                  vector max, vector factor)
{
#define WRITE(first, end, plain)                                \
    for (INDEX j = first; j < end; j++)                         \
        write_last(it, j, plain, exp_lanes(read_z(it, j, plain) - max) * factor);
#define WRITE_LOG(first, end, plain)                            \
    for (INDEX j = first; j < end; j++)                         \
        write_last(it, j, plain, read_z(it, j, plain) - max - factor);

    if (kept)
        scale_kept(it, from, to, tops, max, factor);
    else if (it->is_log)
        PLAIN_FIRST(from, to, WRITE_LOG)
    else
        PLAIN_FIRST(from, to, WRITE)
}
#endif

/* ---- lanes, rows ---------------------------------------------------------------- */

/* What `write` needs of a sum. */
DEVICE R of_sum(R sum, int is_log)
{
    return BACKWARD ? sum : is_log ? logarithm_of(sum) : inverse_of(sum);
}

DEVICE vector of_sums(vector sum, int is_log)
{
    R some[VEC];

    VSTORE(VEC, some, sum);
    for (int i = 0; i < VEC; i++)
        some[i] = of_sum(some[i], is_log);
    return VLOAD(VEC, some);
}

/* Merges the pairs of all lanes into one. */
DEVICE void merge_lanes(vector max, vector sum, R *row_max, R *row_sum)
{
#if !BACKWARD
    *row_max = lanes_max(max);
    sum = sum * exp_lanes(max - (vector)*row_max);
#endif
    *row_sum = lanes_sum(sum);
}

#if !BACKWARD && !SPLIT
/* All of a row of at most SHORT vectors, which is contiguous.  Its exponentials stay in the cache, and y is
 * written once; CHAINS maxima and sums run side by side, since each waits for itself.                     */
#define SHORT  2048
#define CHAINS 4

/* The sum of exp(z - max) over the kept z of a row.  It replaces z by exp(z - max); with is_log, which is a
 * constant, by z - max. */
DEVICE R sum_kept(vector *kept, INDEX fours, INDEX count, R max, int is_log)
{
    vector sums[CHAINS];

#define ADD_KEPT(j, chain)                                       \
    {                                                            \
        const vector z = kept[j] - (vector)max, e = exp_lanes(z);\
                                                                 \
        sums[chain] = sums[chain] + e;                           \
        kept[j] = is_log ? z : e;                                \
    }

    UNROLL for (int i = 0; i < CHAINS; i++)
        sums[i] = (vector)ZERO;
    for (INDEX j = 0; j < fours; j += CHAINS)
        UNROLL for (int i = 0; i < CHAINS; i++)
            ADD_KEPT(j + i, i)
    for (INDEX j = fours; j < count; j++)
        ADD_KEPT(j, 0)
    return lanes_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

DEVICE void short_row(const struct row_view *it, vector *kept)
{
    const INDEX fours = it->full / CHAINS * CHAINS;
    vector tops[CHAINS];
    R max;

    UNROLL for (int i = 0; i < CHAINS; i++)
        tops[i] = (vector)FIRST_MAX;
    for (INDEX j = 0; j < fours; j += CHAINS)
        UNROLL for (int i = 0; i < CHAINS; i++) {
            kept[j + i] = read_z(it, j + i, 1);
            tops[i] = MAX_LANES(tops[i], kept[j + i]);
        }
    for (INDEX j = fours; j < it->count; j++) {
        kept[j] = read_z(it, j, 0);
        tops[0] = MAX_LANES(tops[0], kept[j]);
    }
    tops[0] = MAX_LANES(tops[0], tops[1]);
    tops[2] = MAX_LANES(tops[2], tops[3]);
    max = lanes_max(MAX_LANES(tops[0], tops[2]));

#define WRITE_FULL(STORE_EACH, value)                            \
    for (INDEX j = 0; j < it->full; j++)                         \
        STORE_EACH(it->y + j * it->y_step, value);
#define STREAM_LANES(p, v) STORE_STREAM(VEC, p, v)
#define WRITE_KEPT(value)                                        \
    {                                                            \
        if (it->streams)                                         \
            WRITE_FULL(STREAM_LANES, value)                      \
        else                                                     \
            WRITE_FULL(STORE_LANES, value)                       \
        for (INDEX j = it->full; j < it->count; j++)             \
            write_y(it, j, 0, value);                            \
    }

    if (it->is_log) {
        const vector less = (vector)logarithm_of(sum_kept(kept, fours, it->count, max, 1));

        WRITE_KEPT(kept[j] - less)
    } else {
        const vector factor = (vector)inverse_of(sum_kept(kept, fours, it->count, max, 0));

        WRITE_KEPT(kept[j] * factor)
    }
}
#endif

/* Writes elements [from, to) of a row, which the causal mask hides. */
DEVICE void write_hidden(GLOBAL T *y, INDEX step, INDEX from, INDEX to, int is_log)
{
    for (INDEX j = from; j < to; j++)
        STORE(y, j * step, is_log && !BACKWARD ? -INFINITE : ZERO);
}

#define ARGUMENTS                                                                     \
    VIEW shape, int is_log, int causal, R scale, GLOBAL const T *gX, VIEW x_view,     \
    GLOBAL const T *gW, VIEW w_view, int has_w, GLOBAL T *gY, VIEW y_view

/* Whether lanes along dimension d are plain. */
#define PLAIN(d)                                                                      \
    (x_view.d == 1 && y_view.d == 1 && (BACKWARD ? w_view.d == 1 : !has_w))

/* Whether the plain vectors of a row that begins at `at` are written past the caches: of a y that the
 * second-level caches of a few cores may hold, its reader has more than the store saves. */
#define STREAMED_BYTES (8 << 20)

#define STREAMS(d, at)                                                                \
    (PLAIN(d) && (INT64)shape.s0 * shape.s6 * T_BYTES >= STREAMED_BYTES &&            \
     ((UINT64)(gY + (at)) & (VEC * T_BYTES - 1)) == 0)

/* The view of a row, lanes along it, whose elements from `visible` on are hidden. */
#define VIEW_ALONG(row, visible)                                                           \
    {                                                                                      \
        gX + row_at(x_view, shape, row), gW + row_at(w_view, shape, row),                  \
        gY + row_at(y_view, shape, row),                                                   \
        (INDEX)x_view.s6,       (INDEX)w_view.s6,       (INDEX)y_view.s6,                  \
        (INDEX)x_view.s6 * VEC, (INDEX)w_view.s6 * VEC, (INDEX)y_view.s6 * VEC,            \
        (visible) / VEC, ((visible) + VEC - 1) / VEC, (int)((visible) % VEC),              \
        scale, is_log, has_w, PLAIN(s6), STREAMS(s6, row_at(y_view, shape, row))           \
    }

/* The view of up to VEC rows from `row` on, lanes across them. */
#define VIEW_ACROSS(row, rows)                                                        \
    {                                                                                 \
        gX + row_at(x_view, shape, row), gW + row_at(w_view, shape, row),             \
        gY + row_at(y_view, shape, row),                                              \
        (INDEX)x_view.s5, (INDEX)w_view.s5, (INDEX)y_view.s5,                         \
        (INDEX)x_view.s6, (INDEX)w_view.s6, (INDEX)y_view.s6,                         \
        (rows) < VEC ? 0 : (INDEX)shape.s6, (INDEX)shape.s6, (int)(rows),             \
        scale, is_log, has_w, PLAIN(s5), 0                                            \
    }

#if SPLIT
/* A row has `splits` splits, each of shape.s7 elements, a multiple of VEC. */
KERNEL(1) void
partial(ARGUMENTS, GLOBAL R *gPairs, int splits)
{
    const INDEX span = (INDEX)shape.s7;
    const INDEX row = GROUP_ID(0) / splits, from = (GROUP_ID(0) - row * splits) * (span / VEC);
    const INDEX visible = row_visible(shape, row, causal);
    const struct row_view it = VIEW_ALONG(row, visible);
    const INDEX to = span / VEC < it.count - from ? from + span / VEC : it.count;
    vector max = (vector)FIRST_MAX, sum = (vector)ZERO;
    R row_max = FIRST_MAX, row_sum = ZERO, none[VEC];

    reduce(&it, from, to, 0, none, &max, &sum);
    merge_lanes(max, sum, &row_max, &row_sum);
    gPairs[2 * GROUP_ID(0)]     = row_max;
    gPairs[2 * GROUP_ID(0) + 1] = row_sum;
}

KERNEL(1) void
finish(ARGUMENTS, GLOBAL const R *gPairs, int splits)
{
    const INDEX span = (INDEX)shape.s7;
    const INDEX row = GROUP_ID(0) / splits, from = (GROUP_ID(0) - row * splits) * (span / VEC);
    const INDEX first = row * splits, n = (INDEX)shape.s6, visible = row_visible(shape, row, causal);
    const struct row_view it = VIEW_ALONG(row, visible);
    const INDEX to = span / VEC < it.count - from ? from + span / VEC : it.count;
    const INDEX start = from * VEC, end = span < n - start ? start + span : n;
    R max = FIRST_MAX, sum = ZERO, none[VEC];

    for (int p = 0; p < splits; p++)
        merge(&max, &sum, gPairs[2 * (first + p)], gPairs[2 * (first + p) + 1]);
    write(&it, from, to, 0, none, (vector)max, (vector)of_sum(sum, is_log));
    write_hidden(it.y, it.y_lane, start > visible ? start : visible, end, is_log);
}
#else
/* A work-group takes shape.s7 rows; with `across`, shape.s7 sets of up to VEC contiguous rows. */
KERNEL(1) void
softmax(ARGUMENTS, int across)
{
    R tops[KEEPS ? BLOCKS * VEC : VEC];
#if !BACKWARD
    vector kept[SHORT];
#endif

    const INDEX sets = ((INDEX)shape.s5 + VEC - 1) / VEC;       /* of VEC rows */
    const INDEX all = across ? (INDEX)shape.s0 / (INDEX)shape.s5 * sets : (INDEX)shape.s0;
    const INDEX each = (INDEX)shape.s7, first = GROUP_ID(0) * each,
                last = each < all - first ? first + each : all;
    const int keep = KEEPS && !is_log;

    for (INDEX i = first; i < last; i++) {
        vector max = (vector)FIRST_MAX, sum = (vector)ZERO;

        if (across) {
            const INDEX outer = i / sets, r = (i - outer * sets) * VEC, rows = (INDEX)shape.s5 - r;
            const struct row_view it = VIEW_ACROSS(outer * (INDEX)shape.s5 + r, rows);

            reduce(&it, 0, it.count, keep, tops, &max, &sum);
            write(&it, 0, it.count, keep, tops, max, of_sums(sum, is_log));
        } else {
            const INDEX visible = row_visible(shape, i, causal);
            const struct row_view it = VIEW_ALONG(i, visible);
            R row_max = FIRST_MAX, row_sum = ZERO;

#if !BACKWARD
            if (it.plain && it.count <= SHORT)
                short_row(&it, kept);
            else
#endif
            {
                reduce(&it, 0, it.count, keep, tops, &max, &sum);
                merge_lanes(max, sum, &row_max, &row_sum);
                write(&it, 0, it.count, keep, tops, (vector)row_max, (vector)of_sum(row_sum, is_log));
            }
            write_hidden(it.y, it.y_lane, visible, (INDEX)shape.s6, is_log);
        }
    }
}
#endif
