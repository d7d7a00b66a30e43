/* cpu.cl - softmax along each row, or its gradient, on a CPU (softmax.h has the formulas)
 *
 * A work-group is one item, which takes rows one after another, in vectors of VEC lanes:
 *
 *     lanes along the row                   lanes across rows, where those lie side by side
 *
 *     row 0   v0 v0 v0 v0 v1 v1 v1 v1       row 0   v0 v1 v2 ...
 *     row 1   v0 v0 v0 v0 v1 v1 v1 v1       row 1   v0 v1 v2 ...
 *
 * Either way each lane folds its own pair; lanes along a row are merged at its end.
 *
 * A row goes block by block, so that a block is in the first cache from the search for its
 * maximum to its sum.  Where y is of the type that is computed in, it takes exp(z - max) of
 * that time on the way, and each block's maximum is noted: what is left is to scale y by
 * exp(block's max - row's max) / sum, and each element costs one exponential.
 *
 * With SPLIT several work-groups share a row: `partial` leaves the pair of each part in the
 * workspace, `finish` merges a row's pairs, in their order, and writes.
 *
 * Parameters, from softmax.tune: VEC BLOCK (vectors); of the variant: BACKWARD SPLIT.
 */

typedef VECTOR(R, VEC) vector;

#if TYPE == 3
#define LANES_BITS(v)  AS(VECTOR(UINT64, VEC), (v))
#define BITS_LANES(u)  AS(VECTOR(double, VEC), (u))
#else
#define LANES_BITS(v)  AS(VECTOR(UINT32, VEC), (v))
#define BITS_LANES(u)  AS(VECTOR(float, VEC), (u))
#endif
EXP_FUNCTION(exp_lanes, vector, BITS_LANES, LANES_BITS)

#define MAX_LANES(a, b) PICK(a, b, b, a)       /* drops a NaN of b; a is never one */
#define BLOCKS          256                    /* whose maxima are noted: blocks grow to fit */
#define KEEPS           (!BACKWARD && (TYPE == 0 || TYPE == 3))

/* A row, or VEC rows across: `count` vectors, of which the first `full` have all their lanes
 * and the others `tail`.                                                                   */
struct line {
    GLOBAL const T *x, *w;
    GLOBAL T       *y;
    INDEX x_lane, w_lane, y_lane;              /* from one lane to the next */
    INDEX x_step, w_step, y_step;              /* from one vector to the next */
    INDEX full, count;
    int   tail;
    R     scale;
    int   is_log, has_w;
    int   plain;                               /* lanes adjacent in memory; forward, no w */
};

/* ---- vectors ---------------------------------------------------------------- */

DEVICE vector read_lanes(GLOBAL const T *p, INDEX lane, int lanes)
{
    R some[VEC];

    if (lane == 1 && lanes == VEC)
        return LOAD_VECTOR(VEC, p);
    for (int i = 0; i < VEC; i++)
        some[i] = i < lanes ? LOAD(p, i * lane) : ZERO;
    return VLOAD(VEC, some);
}

DEVICE void write_lanes(GLOBAL T *p, INDEX lane, int lanes, vector v)
{
    R some[VEC];

    if (lane == 1 && lanes == VEC) {
        STORE_VECTOR(VEC, p, v);
        return;
    }
    VSTORE(VEC, some, v);
    for (int i = 0; i < lanes; i++)
        STORE(p, i * lane, some[i]);
}

DEVICE int lanes_of(const struct line *l, INDEX j)
{
    return j < l->full ? VEC : l->tail;
}

/* plain: known where this is written into a loop, which then has neither calls nor branches */
DEVICE vector read_x(const struct line *l, INDEX j, int plain)
{
    GLOBAL const T *x = l->x + j * l->x_step;

    return plain ? LOAD_VECTOR(VEC, x) : read_lanes(x, l->x_lane, lanes_of(l, j));
}

DEVICE vector read_w(const struct line *l, INDEX j, int plain)
{
    GLOBAL const T *w = l->w + j * l->w_step;

    return plain ? LOAD_VECTOR(VEC, w) : read_lanes(w, l->w_lane, lanes_of(l, j));
}

DEVICE vector read_y(const struct line *l, INDEX j, int plain)
{
    GLOBAL const T *y = l->y + j * l->y_step;

    return plain ? LOAD_VECTOR(VEC, y) : read_lanes(y, l->y_lane, lanes_of(l, j));
}

DEVICE void write_y(const struct line *l, INDEX j, int plain, vector v)
{
    GLOBAL T *y = l->y + j * l->y_step;

    if (plain)
        STORE_VECTOR(VEC, y, v);
    else
        write_lanes(y, l->y_lane, lanes_of(l, j), v);
}

/* The vectors of [from, to) before this can be taken plainly. */
DEVICE INDEX plain_end(const struct line *l, INDEX from, INDEX to)
{
    const INDEX end = l->full < to ? l->full : to;

    return l->plain && from < end ? end : from;
}

/* LOOP(first, end, plain) over [from, to), what is plain first */
#define PLAIN_FIRST(from, to, LOOP)                             \
    {                                                           \
        const INDEX middle = plain_end(l, from, to);            \
                                                                \
        LOOP(from, middle, 1)                                   \
        LOOP(middle, to, 0)                                     \
    }

/* ---- folding and writing vectors [from, to) of a line -------------------------- */

#if BACKWARD
DEVICE void fold(const struct line *l, INDEX from, INDEX to, int keep, R *tops, vector *max, vector *sum)
{
    vector s = *sum;

#define ADD(first, end, plain)                                  \
    for (INDEX j = first; j < end; j++)                         \
        s = FMA(read_x(l, j, plain), read_w(l, j, plain), s);
#define ADD_LOG(first, end, plain)                              \
    for (INDEX j = first; j < end; j++)                         \
        s = s + read_w(l, j, plain);

    if (l->is_log)
        PLAIN_FIRST(from, to, ADD_LOG)
    else
        PLAIN_FIRST(from, to, ADD)
    *sum = s;
}

DEVICE void write(const struct line *l, INDEX from, INDEX to, int kept, const R *tops, vector max, vector sum)
{
    const vector scale = (vector)l->scale;

#define WRITE(first, end, plain)                                \
    for (INDEX j = first; j < end; j++)                         \
        write_y(l, j, plain, scale * (read_x(l, j, plain) * (read_w(l, j, plain) - sum)));
#define WRITE_LOG(first, end, plain)                            \
    for (INDEX j = first; j < end; j++)                         \
        write_y(l, j, plain, scale * (read_w(l, j, plain) - exp_lanes(read_x(l, j, plain)) * sum));

    if (l->is_log)
        PLAIN_FIRST(from, to, WRITE_LOG)
    else
        PLAIN_FIRST(from, to, WRITE)
}
#else
/* z; -infinity in lanes that are not there */
DEVICE vector read_z(const struct line *l, INDEX j, int plain)
{
    const vector x = read_x(l, j, plain), scale = (vector)l->scale;
    R some[VEC];

    if (plain)
        return scale * x;

    const vector z = l->has_w ? FMA(scale, x, read_w(l, j, 0)) : scale * x;

    if (j < l->full)
        return z;
    VSTORE(VEC, some, z);
    for (int i = l->tail; i < VEC; i++)
        some[i] = -INFINITE;
    return VLOAD(VEC, some);
}

DEVICE INDEX block_of(INDEX from, INDEX to)
{
    const INDEX least = (to - from + BLOCKS - 1) / BLOCKS;

    return least > BLOCK ? least : BLOCK;
}

/* keep: leaves exp(z - max) in y, and the max of each block in tops */
DEVICE void fold(const struct line *l, INDEX from, INDEX to, int keep, R *tops, vector *max, vector *sum)
{
    const INDEX block = block_of(from, to);

#define FIND_MAX(first, end, plain)                             \
    for (INDEX j = first; j < end; j++) {                       \
        const vector z = read_z(l, j, plain);                   \
                                                                \
        top = MAX_LANES(top, z);                                \
    }
#define ADD_KEEPING(first, end, plain)                          \
    for (INDEX j = first; j < end; j++) {                       \
        const vector e = exp_lanes(read_z(l, j, plain) - top);  \
                                                                \
        s = s + e;                                              \
        write_y(l, j, plain, e);                                \
    }
#define ADD(first, end, plain)                                  \
    for (INDEX j = first; j < end; j++)                         \
        s = s + exp_lanes(read_z(l, j, plain) - top);

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

DEVICE void scale_kept(const struct line *l, INDEX from, INDEX to, const R *tops, vector max, vector inverse)
{
    const INDEX block = block_of(from, to);

#define SCALE(first, end, plain)                                \
    for (INDEX j = first; j < end; j++)                         \
        write_y(l, j, plain, read_y(l, j, plain) * factor);

    for (INDEX first = from; first < to; first += block, tops += VEC) {
        const INDEX end = block < to - first ? first + block : to;
        const vector factor = exp_lanes(VLOAD(VEC, tops) - max) * inverse;

        PLAIN_FIRST(first, end, SCALE)
    }
}

/* factor: of_sum() of each lane's sum */
DEVICE void write(const struct line *l, INDEX from, INDEX to, int kept, const R *tops, vector max, vector factor)
{
#define WRITE(first, end, plain)                                \
    for (INDEX j = first; j < end; j++)                         \
        write_y(l, j, plain, exp_lanes(read_z(l, j, plain) - max) * factor);
#define WRITE_LOG(first, end, plain)                            \
    for (INDEX j = first; j < end; j++)                         \
        write_y(l, j, plain, read_z(l, j, plain) - max - factor);

    if (kept)
        scale_kept(l, from, to, tops, max, factor);
    else if (l->is_log)
        PLAIN_FIRST(from, to, WRITE_LOG)
    else
        PLAIN_FIRST(from, to, WRITE)
}
#endif

/* ---- lanes, rows ---------------------------------------------------------------- */

/* What `write` needs to know of a sum. */
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

/* Merges the lanes' pairs into one, by halves. */
DEVICE void merge_lanes(vector max, vector sum, R *row_max, R *row_sum)
{
    R sums[VEC];

#if !BACKWARD
    R maxes[VEC];

    VSTORE(VEC, maxes, max);
    UNROLL for (int apart = VEC / 2; apart > 0; apart /= 2)
        UNROLL for (int i = 0; i < apart; i++)
            maxes[i] = MAX_LANES(maxes[i], maxes[i + apart]);
    *row_max = maxes[0];
    sum = sum * exp_lanes(max - (vector)maxes[0]);
#endif
    VSTORE(VEC, sums, sum);
    UNROLL for (int apart = VEC / 2; apart > 0; apart /= 2)
        UNROLL for (int i = 0; i < apart; i++)
            sums[i] = sums[i] + sums[i + apart];
    *row_sum = sums[0];
}

/* What the causal mask hides in elements [from, to) of a row. */
DEVICE void write_hidden(GLOBAL T *y, INDEX step, INDEX from, INDEX to, int is_log)
{
    for (INDEX j = from; j < to; j++)
        STORE(y, j * step, is_log && !BACKWARD ? -INFINITE : ZERO);
}

#define ARGUMENTS                                                                     \
    VIEW shape, int is_log, int causal, R scale, GLOBAL const T *gX, VIEW x_view,     \
    GLOBAL const T *gW, VIEW w_view, int has_w, GLOBAL T *gY, VIEW y_view

/* Of lanes along dimension d. */
#define PLAIN(d)                                                                      \
    (x_view.d == 1 && y_view.d == 1 && (BACKWARD ? w_view.d == 1 : !has_w))

/* Of a row whose elements from `seen` on are hidden. */
#define LINE_ALONG(row, seen)                                                         \
    {                                                                                 \
        gX + row_at(x_view, shape, row), gW + row_at(w_view, shape, row),             \
        gY + row_at(y_view, shape, row),                                              \
        (INDEX)x_view.s6,       (INDEX)w_view.s6,       (INDEX)y_view.s6,             \
        (INDEX)x_view.s6 * VEC, (INDEX)w_view.s6 * VEC, (INDEX)y_view.s6 * VEC,       \
        (seen) / VEC, ((seen) + VEC - 1) / VEC, (int)((seen) % VEC),                  \
        scale, is_log, has_w, PLAIN(s6)                                               \
    }

/* Of up to VEC rows from `row`. */
#define LINE_ACROSS(row, rows)                                                        \
    {                                                                                 \
        gX + row_at(x_view, shape, row), gW + row_at(w_view, shape, row),             \
        gY + row_at(y_view, shape, row),                                              \
        (INDEX)x_view.s5, (INDEX)w_view.s5, (INDEX)y_view.s5,                         \
        (INDEX)x_view.s6, (INDEX)w_view.s6, (INDEX)y_view.s6,                         \
        (rows) < VEC ? 0 : (INDEX)shape.s6, (INDEX)shape.s6, (int)(rows),             \
        scale, is_log, has_w, PLAIN(s5)                                               \
    }

#if SPLIT
/* parts: of a row, each of shape.s7 elements, a multiple of VEC */
KERNEL(1) void
partial(ARGUMENTS, GLOBAL R *gPairs, int parts)
{
    const INDEX span = (INDEX)shape.s7;
    const INDEX row = GROUP_ID(0) / parts, from = (GROUP_ID(0) - row * parts) * (span / VEC);
    const INDEX seen = row_seen(shape, row, causal);
    const struct line l = LINE_ALONG(row, seen);
    const INDEX to = span / VEC < l.count - from ? from + span / VEC : l.count;
    vector max = (vector)FIRST_MAX, sum = (vector)ZERO;
    R row_max = FIRST_MAX, row_sum = ZERO, none[VEC];

    fold(&l, from, to, 0, none, &max, &sum);
    merge_lanes(max, sum, &row_max, &row_sum);
    gPairs[2 * GROUP_ID(0)]     = row_max;
    gPairs[2 * GROUP_ID(0) + 1] = row_sum;
}

KERNEL(1) void
finish(ARGUMENTS, GLOBAL const R *gPairs, int parts)
{
    const INDEX span = (INDEX)shape.s7;
    const INDEX row = GROUP_ID(0) / parts, from = (GROUP_ID(0) - row * parts) * (span / VEC);
    const INDEX first = row * parts, n = (INDEX)shape.s6, seen = row_seen(shape, row, causal);
    const struct line l = LINE_ALONG(row, seen);
    const INDEX to = span / VEC < l.count - from ? from + span / VEC : l.count;
    const INDEX start = from * VEC, end = span < n - start ? start + span : n;
    R max = FIRST_MAX, sum = ZERO, none[VEC];

    for (int p = 0; p < parts; p++)
        merge(&max, &sum, gPairs[2 * (first + p)], gPairs[2 * (first + p) + 1]);
    write(&l, from, to, 0, none, (vector)max, (vector)of_sum(sum, is_log));
    write_hidden(l.y, l.y_lane, start > seen ? start : seen, end, is_log);
}
#else
/* A group takes shape.s7 rows; across: as many times up to VEC rows, which lie side by side. */
KERNEL(1) void
softmax(ARGUMENTS, int across)
{
    R tops[KEEPS ? BLOCKS * VEC : VEC];

    const INDEX sets = ((INDEX)shape.s5 + VEC - 1) / VEC;       /* of VEC rows side by side */
    const INDEX all = across ? (INDEX)shape.s0 / (INDEX)shape.s5 * sets : (INDEX)shape.s0;
    const INDEX each = (INDEX)shape.s7, first = GROUP_ID(0) * each, last = each < all - first ? first + each : all;
    const int keep = KEEPS && !is_log;

    for (INDEX i = first; i < last; i++) {
        vector max = (vector)FIRST_MAX, sum = (vector)ZERO;

        if (across) {
            const INDEX outer = i / sets, r = (i - outer * sets) * VEC, rows = (INDEX)shape.s5 - r;
            const struct line l = LINE_ACROSS(outer * (INDEX)shape.s5 + r, rows);

            fold(&l, 0, l.count, keep, tops, &max, &sum);
            write(&l, 0, l.count, keep, tops, max, of_sums(sum, is_log));
        } else {
            const INDEX seen = row_seen(shape, i, causal);
            const struct line l = LINE_ALONG(i, seen);
            R row_max = FIRST_MAX, row_sum = ZERO;

            fold(&l, 0, l.count, keep, tops, &max, &sum);
            merge_lanes(max, sum, &row_max, &row_sum);
            write(&l, 0, l.count, keep, tops, (vector)row_max, (vector)of_sum(row_sum, is_log));
            write_hidden(l.y, l.y_lane, seen, (INDEX)shape.s6, is_log);
        }
    }
}
#endif
