/* cl/tile/row.h - rows of a matrix in registers: reading, writing, and sums over their work-items
 *
 * A work-group has ROWS rows, and ROW_ITEMS work-items on each, of which each holds VALUES elements: runs of
 * RUN contiguous ones, ROW_ITEMS runs side by side.  With ACROSS the rows are side by side instead, and a
 * run is one element.
 *
 *     ACROSS 0: work-items along a row            ACROSS 1: work-items across rows
 *
 *     row 0   0000 1111 2222 3333 0000 ...        row 0   0 4 0 4 ...
 *     row 1   4444 5555 6666 7777 4444 ...        row 1   1 5 1 5 ...
 *                                                 row 2   2 6 2 6 ...
 *     coalesced where a row is contiguous         coalesced where rows are contiguous
 *
 * A run is one 16-byte vector.  WHOLE says that all are: all rows begin at a multiple of 16 bytes, and
 * their extents are one.  Else runs are counted from the multiple before the row: element 0 is at place
 * `skip`, and only the first and the last run are not whole.
 *
 *     place     0 1 2 3   4 5 6 7   8 9 ...
 *     element         0   1 2 3 4   5 6 ...       skip 3
 *
 * Takes  ITEMS ROW_ITEMS VALUES ACROSS, powers of two but for VALUES, a multiple of VECTOR_RUN; WHOLE; LANES
 *        LANE_XOR VECTOR_RUN READ_VECTOR READ_VECTOR_ONCE WRITE_VECTOR (lanes.h or atoms/nvidia/lanes.h)
 * Gives  ROWS CHUNK RUN EACH_VALUE EACH_RUN RUN_AT ELEMENT; struct span, struct line, skip_of() LINE
 *        read_line() write_run() write_line(); ROW_ROOM row_max() row_sum()
 */
#define ROWS  (ITEMS / ROW_ITEMS)
#define CHUNK (ROW_ITEMS * VALUES)             /* elements of a row that its work-items hold */
#define RUN   (ACROSS ? 1 : VECTOR_RUN)

#if ITEMS % ROW_ITEMS || VALUES % VECTOR_RUN
#error "ROW_ITEMS must divide ITEMS, and VALUES must hold whole vectors"
#endif

/* ---- reading and writing -------------------------------------------------------------------- */

/* Where the n elements of a row are, as its work-item k sees them.  Of these `seen`, the first, have a
 * value. */
struct span { INDEX n, seen; int skip, k; };

/* The row in one tensor.  in_runs: elements are contiguous, and runs are aligned. */
struct line { GLOBAL const T *p; INDEX step; int in_runs; };

/* The place of the run that begins with value i, counted from the first of the chunk. */
#define RUN_AT(at, i) ((i) / RUN * RUN * ROW_ITEMS + (at)->k * RUN)

/* Iterates over the values of a work-item: i is the index of a value, ELEMENT(at, from) its index in the row
 * where the chunk begins at place `from`. */
#define EACH_VALUE        UNROLL for (int i = 0; i < VALUES; i++)
#define EACH_RUN          UNROLL for (int i = 0; i < VALUES; i += RUN)
#define ELEMENT(at, from) ((from) + RUN_AT(at, i) + i % RUN - (at)->skip)

#define IS_IN(e, n)       ((e) >= 0 && (e) < (n))

/* Elements from the multiple of 16 bytes before p to p. */
DEVICE int phase_of(GLOBAL const T *p)
{
    return (int)((UINT64)p % 16) / T_BYTES;
}

/* The same, where that makes runs aligned. */
DEVICE int skip_of(GLOBAL const T *p, INDEX step)
{
#if WHOLE || ACROSS
    return 0;
#else
    return step == 1 ? phase_of(p) : 0;
#endif
}

/* The initializer of a struct line. */
#define LINE(p, step, skip) { p, step, (step) == 1 && phase_of(p) == (skip) }

#define READ_RUN(r, p, once)         \
    do {                             \
        if (once)                    \
            READ_VECTOR_ONCE(r, p);  \
        else                         \
            READ_VECTOR(r, p);       \
    } while (0)

#if WHOLE
/* Reads the values of the chunk at place `from`; `none` where there is no element, or none that is seen.
 * once, a constant: they are not read again, and may leave the caches first.
 * Past the end, the work-item's first element is read again: without a branch around each, all loads are in
 * flight at once; and no other may be, since a result may take the place of its operand. */
DEVICE void read_line(const struct line *l, const struct span *at, R *r, INDEX from, R none, const int once)
{
    const INDEX first = from + RUN_AT(at, 0);

    if (first >= at->n) {
        EACH_VALUE
            r[i] = none;
        return;
    }
    EACH_RUN {
        const INDEX e = from + RUN_AT(at, i);

        READ_RUN(r + i, l->p + (e < at->n ? e : first), once);
    }
    if (at->seen < at->n)
        EACH_VALUE
            r[i] = ELEMENT(at, from) < at->seen ? r[i] : none;
    else
        EACH_VALUE
            r[i] = from + RUN_AT(at, i) < at->n ? r[i] : none;
}

/* Writes a run, whose first element is e. */
DEVICE void write_run(const struct line *l, const struct span *at, const R *r, INDEX e)
{
    if (e < at->n)
        WRITE_VECTOR((GLOBAL T *)l->p + e, r);
}
#else
DEVICE void read_line(const struct line *l, const struct span *at, R *r, INDEX from, R none, const int once)
{
    const INDEX run = from + RUN_AT(at, 0) - at->skip, first = run < 0 ? 0 : run;

    if (first >= at->n) {
        EACH_VALUE
            r[i] = none;
        return;
    }
    EACH_RUN {
        const INDEX e = from + RUN_AT(at, i) - at->skip;

#if !ACROSS
        if (l->in_runs && e >= 0 && e + RUN <= at->n)
            READ_RUN(r + i, l->p + e, once);
        else
#endif
            UNROLL for (int o = 0; o < RUN; o++)
                r[i + o] = LOAD(l->p, (IS_IN(e + o, at->n) ? e + o : first) * l->step);
    }
    EACH_VALUE
        r[i] = IS_IN(ELEMENT(at, from), at->seen) ? r[i] : none;
}

DEVICE void write_run(const struct line *l, const struct span *at, const R *r, INDEX e)
{
    GLOBAL T *const p = (GLOBAL T *)l->p;

#if !ACROSS
    if (l->in_runs && e >= 0 && e + RUN <= at->n)
        WRITE_VECTOR(p + e, r);
    else
#endif
        UNROLL for (int o = 0; o < RUN; o++)
            if (IS_IN(e + o, at->n))
                STORE(p, (e + o) * l->step, r[o]);
}
#endif

DEVICE void write_line(const struct line *l, const struct span *at, const R *r, INDEX from)
{
    EACH_RUN
        write_run(l, at, r + i, from + RUN_AT(at, i) - at->skip);
}

/* ---- over the work-items of a row ------------------------------------------------------------
 * Each leaves its own and gets that of the row, in the same order each time.  `room` is ROW_ROOM elements of
 * local memory, used once between two barriers; base is what LANE_XOR may use.                   */

#define PLUS(a, b) ((a) + (b))

#if LANES > 1
#define ROW_WARPS (ROW_ITEMS / LANES)
#define ROW_ROOM  (ITEMS / LANES)

#define ROW_FUNCTION(name, OP)                                                         \
DEVICE R name(LOCAL R *base, int room, int row, int k, R x)                            \
{                                                                                      \
    UNROLL for (int apart = LANES / 2; apart > 0; apart /= 2)                          \
        if (apart < ROW_ITEMS)                                                         \
            x = OP(x, LANE_XOR(base, x, apart));                                       \
    if (ROW_WARPS > 1) {                                                               \
        if (k % LANES == 0)                                                            \
            base[room + row * ROW_WARPS + k / LANES] = x;                              \
        BARRIER();                                                                     \
        x = base[room + row * ROW_WARPS + k % (ROW_WARPS > 1 ? ROW_WARPS : 1)];        \
        UNROLL for (int apart = LANES / 2; apart > 0; apart /= 2)                      \
            if (apart < ROW_WARPS)                                                     \
                x = OP(x, LANE_XOR(base, x, apart));                                   \
    }                                                                                  \
    return x;                                                                          \
}
#else
#define ROW_ROOM ITEMS
#define RADIX    16                            /* of the tree */

#define ROW_FUNCTION(name, OP)                                                         \
DEVICE R name(LOCAL R *base, int room, int row, int k, R x)                            \
{                                                                                      \
    const int first = room + (ACROSS ? row : row * ROW_ITEMS), step = ACROSS ? ROWS : 1; \
                                                                                       \
    base[first + k * step] = x;                                                        \
    BARRIER();                                                                         \
    for (int left = ROW_ITEMS; left > 1; ) {                                           \
        const int next = (left + RADIX - 1) / RADIX;                                   \
                                                                                       \
        if (k < next) {               /* writes below `next`; others read at `next` and above */ \
            for (int o = k + next; o < left; o += next)                                \
                x = OP(x, base[first + o * step]);                                     \
            base[first + k * step] = x;                                                \
        }                                                                              \
        left = next;                                                                   \
        BARRIER();                                                                     \
    }                                                                                  \
    return base[first];                                                                \
}
#endif

ROW_FUNCTION(row_max, MAX)
ROW_FUNCTION(row_sum, PLUS)
