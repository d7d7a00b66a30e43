/* cl/tile/held.h - rows in registers as they were read: two 16-bit elements in a word
 *
 * Takes  row.h, with ACROSS 0; T of 16 or 32 bits; load16() anew() pair_of() LOWER_1 ...
 *        (atoms/nvidia/memory.h)
 * Gives  HELD_WORDS, RUN_WORDS; hold_line(), held_run()
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

/* Reads the values of the chunk at place `from`, as read_line() does.  All vectors are in flight at once: a
 * run that is not whole is read as the work-item's first whole one, and then again one by one. */
DEVICE void hold_line(const struct line *l, const struct span *at, UINT32 *u, INDEX from, R none)
{
    const INDEX e0 = from + RUN_AT(at, 0) - at->skip, own = e0 < 0 ? e0 + RUN * ROW_ITEMS : e0;

    if (l->in_runs && own + RUN <= at->seen)
        EACH_RUN {
            const INDEX e = from + RUN_AT(at, i) - at->skip;

            load16(u + WORDS_OF(i), l->p + (e >= own && e + RUN <= at->seen ? e : own), 1);
        }
    EACH_RUN {
        const INDEX e = from + RUN_AT(at, i) - at->skip;

        if (!(l->in_runs && own + RUN <= at->seen && e >= own && e + RUN <= at->seen))
            hold_run(u + WORDS_OF(i), l, at, e, none);
    }
}
