/* softmax_cpu.cl - softmax along each row, or its gradient, on a CPU (softmax.h has the formulas)
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

DEVICE vector read_x(const struct line *l, INDEX j)
{
    return read_lanes(l->x + j * l->x_step, l->x_lane, lanes_of(l, j));
}

DEVICE vector read_w(const struct line *l, INDEX j)
{
    return read_lanes(l->w + j * l->w_step, l->w_lane, lanes_of(l, j));
}

DEVICE void write_y(const struct line *l, INDEX j, vector v)
{
    write_lanes(l->y + j * l->y_step, l->y_lane, lanes_of(l, j), v);
}

/* ---- folding and writing vectors [from, to) of a line -------------------------- */

#if BACKWARD
DEVICE void fold(const struct line *l, INDEX from, INDEX to, int keep, R *tops, vector *max, vector *sum)
{
    vector s = *sum;

    for (INDEX j = from; j < to; j++)
        s = l->is_log ? s + read_w(l, j) : FMA(read_x(l, j), read_w(l, j), s);
    *sum = s;
}

DEVICE void write(const struct line *l, INDEX from, INDEX to, int kept, const R *tops, vector max, vector sum)
{
    const vector scale = (vector)l->scale;

    for (INDEX j = from; j < to; j++) {
        const vector x = read_x(l, j), w = read_w(l, j);

        write_y(l, j, l->is_log ? scale * (w - exp_lanes(x) * sum) : scale * (x * (w - sum)));
    }
}
#else
/* z; -infinity in lanes that are not there */
DEVICE vector read_z(const struct line *l, INDEX j)
{
    const vector x = read_x(l, j), scale = (vector)l->scale;
    const vector z = l->has_w ? FMA(scale, x, read_w(l, j)) : scale * x;
    R some[VEC];

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

    for (INDEX first = from; first < to; first += block, tops += VEC) {
        const INDEX end = block < to - first ? first + block : to;
        vector top = *max, s = (vector)ZERO;

        for (INDEX j = first; j < end; j++) {
            const vector z = read_z(l, j);

            top = MAX_LANES(top, z);
        }
        for (INDEX j = first; j < end; j++) {
            const vector e = exp_lanes(read_z(l, j) - top);

            s = s + e;
            if (keep)
                write_y(l, j, e);
        }
        *sum = *sum * exp_lanes(*max - top) + s;
        *max = top;
        if (keep)
            VSTORE(VEC, tops, top);
    }
}

DEVICE vector each_lane(vector sum, int is_log)
{
    R some[VEC];

    VSTORE(VEC, some, sum);
    for (int i = 0; i < VEC; i++)
        some[i] = is_log ? logarithm_of(some[i]) : inverse_of(some[i]);
    return VLOAD(VEC, some);
}

DEVICE void scale_kept(const struct line *l, INDEX from, INDEX to, const R *tops, vector max, vector inverse)
{
    const INDEX block = block_of(from, to);

    for (INDEX first = from; first < to; first += block, tops += VEC) {
        const INDEX end = block < to - first ? first + block : to;
        const vector factor = exp_lanes(VLOAD(VEC, tops) - max) * inverse;

        for (INDEX j = first; j < end; j++)
            write_y(l, j, read_lanes(l->y + j * l->y_step, l->y_lane, lanes_of(l, j)) * factor);
    }
}

DEVICE void write(const struct line *l, INDEX from, INDEX to, int kept, const R *tops, vector max, vector sum)
{
    const vector factor = each_lane(sum, l->is_log);

    if (kept)
        scale_kept(l, from, to, tops, max, factor);
    else
        for (INDEX j = from; j < to; j++) {
            const vector z = read_z(l, j) - max;

            write_y(l, j, l->is_log ? z - factor : exp_lanes(z) * factor);
        }
}
#endif

/* ---- lanes, rows ---------------------------------------------------------------- */

/* Merges the lanes' pairs into one. */
DEVICE void merge_lanes(vector max, vector sum, R *row_max, R *row_sum)
{
    R maxes[VEC], sums[VEC];

    VSTORE(VEC, maxes, max);
    for (int i = 0; i < VEC; i++)
        *row_max = MAX_LANES(*row_max, maxes[i]);
#if !BACKWARD
    sum = sum * exp_lanes(max - (vector)*row_max);
#endif
    VSTORE(VEC, sums, sum);
    for (int i = 0; i < VEC; i++)
        *row_sum = *row_sum + sums[i];
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

/* Of a row whose elements from `seen` on are hidden. */
#define LINE_ALONG(row, seen)                                                         \
    {                                                                                 \
        gX + row_at(x_view, shape, row), gW + row_at(w_view, shape, row),             \
        gY + row_at(y_view, shape, row),                                              \
        (INDEX)x_view.s6,       (INDEX)w_view.s6,       (INDEX)y_view.s6,             \
        (INDEX)x_view.s6 * VEC, (INDEX)w_view.s6 * VEC, (INDEX)y_view.s6 * VEC,       \
        (seen) / VEC, ((seen) + VEC - 1) / VEC, (int)((seen) % VEC),                  \
        scale, is_log, has_w                                                          \
    }

/* Of up to VEC rows from `row`. */
#define LINE_ACROSS(row, rows)                                                        \
    {                                                                                 \
        gX + row_at(x_view, shape, row), gW + row_at(w_view, shape, row),             \
        gY + row_at(y_view, shape, row),                                              \
        (INDEX)x_view.s5, (INDEX)w_view.s5, (INDEX)y_view.s5,                         \
        (INDEX)x_view.s6, (INDEX)w_view.s6, (INDEX)y_view.s6,                         \
        (rows) < VEC ? 0 : (INDEX)shape.s6, (INDEX)shape.s6, (int)(rows),             \
        scale, is_log, has_w                                                          \
    }

#if SPLIT
/* parts: of a row, each of shape.s7 elements, a multiple of VEC */
KERNEL(1) void
partial(ARGUMENTS, GLOBAL R *gPairs, int parts)
{
    const INDEX span = (INDEX)shape.s7;
    const INDEX row = GROUP_ID(0) / parts, from = GROUP_ID(0) % parts * (span / VEC);
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
    const INDEX row = GROUP_ID(0) / parts, from = GROUP_ID(0) % parts * (span / VEC);
    const INDEX first = row * parts, n = (INDEX)shape.s6, seen = row_seen(shape, row, causal);
    const struct line l = LINE_ALONG(row, seen);
    const INDEX to = span / VEC < l.count - from ? from + span / VEC : l.count;
    const INDEX start = from * VEC, end = span < n - start ? start + span : n;
    R max = FIRST_MAX, sum = ZERO, none[VEC];

    for (int p = 0; p < parts; p++)
        merge(&max, &sum, gPairs[2 * (first + p)], gPairs[2 * (first + p) + 1]);
    write(&l, from, to, 0, none, (vector)max, (vector)sum);
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
            const INDEX r = i % sets * VEC, rows = (INDEX)shape.s5 - r;
            const struct line l = LINE_ACROSS(i / sets * (INDEX)shape.s5 + r, rows);

            fold(&l, 0, l.count, keep, tops, &max, &sum);
            write(&l, 0, l.count, keep, tops, max, sum);
        } else {
            const INDEX seen = row_seen(shape, i, causal);
            const struct line l = LINE_ALONG(i, seen);
            R row_max = FIRST_MAX, row_sum = ZERO;

            fold(&l, 0, l.count, keep, tops, &max, &sum);
            merge_lanes(max, sum, &row_max, &row_sum);
            write(&l, 0, l.count, keep, tops, (vector)row_max, (vector)row_sum);
            write_hidden(l.y, l.y_lane, seen, (INDEX)shape.s6, is_log);
        }
    }
}
#endif
