/* cl/tile/held.h - rows in registers as they were read: two 16-bit elements in a word
 *
 * Takes  row.h, with ACROSS 0; T of 16 or 32 bits; load16_once() load_element() store16_once() ... anew()
 *        lowers_of() pair_of() LOWER_1 ... (atoms/nvidia/memory.h); from_lane() (warp.h)
 * Gives  HELD_WORDS RUN_WORDS; hold_run() hold_line() held_run(); part_of(); write_held() write_last(), or
 *        write_whole(), END_RUN HAS_END run_from()
 */
#define RUN_WORDS  4                            /* 16 bytes */
#define HELD_WORDS (VALUES / RUN * RUN_WORDS)

#define WORDS_OF(i) ((i) / RUN * RUN_WORDS)     /* where the run of value i begins */

#if TYPE == TYPE_F32
DEVICE void held_run(const UINT32 *u, R *r)
{
    UNROLL for (int j = 0; j < RUN_WORDS; j++)
        r[j] = BITS_FLOAT(u[j]);
}

DEVICE void run_words(UINT32 *u, const R *r)
{
    UNROLL for (int j = 0; j < RUN_WORDS; j++)
        u[j] = FLOAT_BITS(r[j]);
}
#else
DEVICE void held_run(const UINT32 *u, R *r)
{
    UNROLL for (int j = 0; j < RUN_WORDS; j++) {
        const UINT32 w = anew(u[j]);

        r[2 * j]     = OF(LOWER, TYPE)(w);
        r[2 * j + 1] = OF(UPPER, TYPE)(w);
    }
}

DEVICE void run_words(UINT32 *u, const R *r)
{
    UNROLL for (int j = 0; j < RUN_WORDS; j++)
        u[j] = pair_of(r[2 * j], r[2 * j + 1]);
}
#endif

/* The run of elements e to e + RUN - 1, one by one; `none` where there is none that is seen. */
DEVICE void hold_run(UINT32 *u, const struct line *l, const struct span *at, INDEX e, R none)
{
    R r[RUN];

    UNROLL for (int o = 0; o < RUN; o++) {
        r[o] = none;
        if (IS_IN(e + o, at->seen))
            r[o] = LOAD(l->p, (e + o) * l->step);
    }
    run_words(u, r);
}

/* The first element of the run that n elements end in, or n. */
#define LAST_RUN(at, n) (((n) + (at)->skip) / RUN * RUN - (at)->skip)

/* The work-item that has the run of element e in the chunk at place `from`; of no warp's where none has. */
DEVICE int owner_of_run(const struct span *at, INDEX from, INDEX e)
{
    const INDEX place = e + at->skip - from;

    return IS_IN(place, CHUNK) ? (int)(place / RUN) % ROW_ITEMS : -LANES;
}

DEVICE int is_warp_run(const struct span *at, INDEX from, INDEX e)
{
    return owner_of_run(at, from, e) / LANES == at->k / LANES;
}

/* Of two runs that may not be whole, from elements a and b on: lane o of the warp that has the first reads
 * its element o, lane RUN + o of the warp that has the other reads that one's.  So their loads are in flight
 * beside all others. */
DEVICE UINT32 hold_ends(const struct line *l, const struct span *at, INDEX from, INDEX a, INDEX b,
                        UINT32 none)
{
    const int lane = at->k % LANES;
    const INDEX run = lane < RUN ? a : b, e = run + lane % RUN;
    UINT32 u = none;

    load_element(&u, l->p + e, lane < 2 * RUN && IS_IN(e, at->seen) && is_warp_run(at, from, run));
    return u;
}

/* The run of which lanes from `lane` on have an element each. */
DEVICE void gather_run(UINT32 *u, UINT32 element, const int lane)
{
    UNROLL for (int j = 0; j < RUN_WORDS; j++) {
        const int from = lane + RUN / RUN_WORDS * j;

        u[j] = RUN == RUN_WORDS ? from_lane(element, from)
                                : lowers_of(from_lane(element, from), from_lane(element, from + 1));
    }
}

/* Of a row in parts of `span` places, the elements of part `part`. */
DEVICE struct span part_of(const struct span *row, int part, INDEX span)
{
    const INDEX end = (part + 1) * span - row->skip;
    struct span at = *row;

    at.n = end < at.n ? end : at.n;
    at.seen = end < at.seen ? end : at.seen;
    return at;
}

/* Reads the values of the chunk at place `from`, as read_line() does, each element once, and all at once.  Of
 * the runs of a row that is aligned, only the first and the last that is seen may not be whole. */
DEVICE void hold_line(const struct line *l, const struct span *at, UINT32 *u, INDEX from, R none)
{
    const INDEX first = from + RUN_AT(at, 0) - at->skip, rest = LAST_RUN(at, at->seen);
    UINT32 some[RUN_WORDS];
    R nones[RUN];

#if !WHOLE
    if (!l->in_runs) {
        EACH_RUN
            hold_run(u + WORDS_OF(i), l, at, from + RUN_AT(at, i) - at->skip, none);
        return;
    }
#endif
    UNROLL for (int o = 0; o < RUN; o++)
        nones[o] = none;
    run_words(some, nones);

    const UINT32 ends = hold_ends(l, at, from, -at->skip, rest, some[0]);

    EACH_RUN {
        const INDEX e = from + RUN_AT(at, i) - at->skip;

        load16_once(u + WORDS_OF(i), l->p + e, some[0], (i > 0 || e >= 0) && e < rest);
    }
    if (rest < at->seen && is_warp_run(at, from, rest)) {
        gather_run(some, ends, RUN);
        EACH_RUN
            if (from + RUN_AT(at, i) - at->skip == rest)
                UNROLL for (int j = 0; j < RUN_WORDS; j++)
                    u[WORDS_OF(i) + j] = some[j];
    }
#if !WHOLE
    if (is_warp_run(at, from, -at->skip)) {
        gather_run(some, ends, 0);
        if (first < 0)
            UNROLL for (int j = 0; j < RUN_WORDS; j++)
                u[j] = some[j];
    }
#endif
}

DEVICE void write_once(GLOBAL T *p, const R *r)
{
    UINT32 u[RUN_WORDS];

    run_words(u, r);
    store16_once(p, u);
}

/* Writes the run of value i, whose first element is e, where runs are aligned.  Of the last run of a row, if
 * it is not whole, leaves the words in `last` for write_last(). */
DEVICE void write_held(const struct line *l, const struct span *at, const R *r, INDEX e, const int i,
                       UINT32 *last)
{
    GLOBAL T *const p = (GLOBAL T *)l->p;

#if WHOLE
    if (e < at->n)
        write_once(p + e, r);
#else
    if (e >= 0 && e + RUN <= at->n)
        write_once(p + e, r);
    else if (i == 0)
        UNROLL for (int o = 0; o < RUN; o++) {
            if (IS_IN(e + o, at->n))
                STORE(p, e + o, r[o]);
        }
    else if (e < at->n)
        run_words(last, r);
#endif
}

DEVICE void write_last(const struct line *l, const struct span *at, INDEX from, const UINT32 *last)
{
#if !WHOLE
    const INDEX e = LAST_RUN(at, at->n);

    if (e < at->n && e + at->skip - from >= RUN * ROW_ITEMS && owner_of_run(at, from, e) == at->k) {
        R r[RUN];

        held_run(last, r);
        UNROLL for (int o = 0; o < RUN; o++)
            if (e + o < at->n)
                STORE((GLOBAL T *)l->p, e + o, r[o]);
    }
#endif
}

/* Or, by a kernel that computes the ends of a row again, since a store without branches is shorter: writes
 * the run of value i, if it is whole. */
DEVICE void write_whole(const struct line *l, const struct span *at, const R *r, INDEX e, const int i)
{
    UINT32 u[RUN_WORDS];

    run_words(u, r);
    store16_once_if((GLOBAL T *)l->p + e, u, (WHOLE || i > 0 || e >= 0) && e < LAST_RUN(at, at->n));
}

/* The first element of the first run of a row, or of its last; whether that is not whole, and the
 * work-item's. */
#define END_RUN(at, last)          ((last) ? LAST_RUN(at, (at)->n) : -(at)->skip)
#define HAS_END(at, from, last, e) \
    (((last) ? (e) < (at)->n : (e) < 0) && owner_of_run(at, from, e) == (at)->k)

/* The words of the work-item's run that begins with element e. */
DEVICE void run_from(UINT32 *w, const UINT32 *u, const struct span *at, INDEX from, INDEX e)
{
    EACH_RUN
        if (from + RUN_AT(at, i) - at->skip == e)
            UNROLL for (int j = 0; j < RUN_WORDS; j++)
                w[j] = u[WORDS_OF(i) + j];
}
