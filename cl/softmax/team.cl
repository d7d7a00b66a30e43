/* cl/softmax/team.cl - softmax along long rows, or its gradient, each shared by work-groups in one launch
 *
 * A work-group holds one part of a row in registers, as it was read (cl/tile/held.h), so that a row is read
 * once; it exchanges the pair (max, sum) of its part with the others of the row (cl/tile/team.h) and writes.
 * Exponentials are taken twice: keeping them would take twice the registers in 16-bit types, and what hides
 * the wait for the others is the bytes that are in flight.
 *
 * Parameters, from softmax.tune: ITEMS VALUES; constants of the problem: FORM WHOLE.
 */

/* The values of the run of value i, as finish_values() takes them. */
DEVICE void run_values(const struct row_view *it, const UINT32 *u, const UINT32 *v, R *a, R *b)
{
    held_run(u, a);
    if (FORM == FORM_FORWARD)
        return;
    held_run(v, b);
    if (MASKED)
        UNROLL for (int o = 0; o < RUN; o++)
            a[o] = FMA(it->scale, a[o], b[o]);
}

/* The pair of the row, of those of its parts; by one warp. */
DEVICE void merge_parts(GLOBAL const UINT64 *slots, int parts, int lane, R *max, R *sum)
{
    R m = FIRST_MAX, s = ZERO;

    for (int i = lane; i < parts; i += LANES) {
        UINT32 low, high;

        team_get(slots + i, &low, &high);
        merge(&m, &s, BACKWARD ? ZERO : BITS_FLOAT(low), BITS_FLOAT(high));
    }
    *max = BACKWARD ? ZERO : team_max(m);
    *sum = team_sum(BACKWARD ? s : s * power(m - *max));
}

/* A row has `parts` parts, each of shape.s7 places, a multiple of RUN and at most CHUNK. */
KERNEL(ITEMS) void
softmax(ARGUMENTS, GLOBAL UINT64 *gSlots, GLOBAL int *gTickets, int parts)
{
    LOCAL_ARRAY(R, sRow, 2 * ROW_ROOM);
    LOCAL_ARRAY(R, sPair, 2);
    LOCAL_ARRAY(int, sTicket, 1);

    const int k = LOCAL_ID(), lane = k % LANES;

    if (k == 0)
        sTicket[0] = team_ticket(gTickets, (int)shape.s0 * parts);
    BARRIER();

    const int ticket = sTicket[0], part = ticket % parts;
    const INDEX row = ticket / parts, from = part * (INDEX)shape.s7;
    GLOBAL UINT64 *const slots = gSlots + row * TEAM_SLOTS(parts);
    ROW_VIEW(whole, row, k, 0);
    struct row_view it = whole;
    const INDEX end = from + (INDEX)shape.s7 - skip;
    UINT32 u[HELD_WORDS], v[FORM == FORM_FORWARD ? RUN_WORDS : HELD_WORDS];
    R max = FIRST_MAX, sum = ZERO;

    it.at.n = end < it.at.n ? end : it.at.n;
    it.at.seen = end < it.at.seen ? end : it.at.seen;
    hold_line(&it.x, &it.at, u, from, BACKWARD ? ZERO : it.scale < ZERO ? INFINITE : -INFINITE);
    if (FORM != FORM_FORWARD)
        hold_line(&it.w, &it.at, v, from, ZERO);

#define RUN_OF(a, b)                                                                        \
    R a[RUN], b[RUN];                                                                       \
    run_values(&it, u + WORDS_OF(i), v + (FORM == FORM_FORWARD ? 0 : WORDS_OF(i)), a, b)

#if BACKWARD
    EACH_RUN {
        RUN_OF(a, b);
        sum = sum + values_dot(&it, a, b, RUN);
    }
#else
    EACH_RUN {
        RUN_OF(a, b);
        max = MAX(max, values_max(a, RUN, it.factor));
    }
    max = row_max(sRow, 0, 0, k, max);
    EACH_RUN {
        RUN_OF(a, b);
        sum = sum + values_sum(a, RUN, it.factor, max, 0);
    }
#endif
    sum = row_sum(sRow, ROW_ROOM, 0, k, sum);

    if (k < LANES) {
        if (k == 0)
            team_put(slots + part, BACKWARD ? 1 : FLOAT_BITS(max), FLOAT_BITS(sum));
        merge_parts(slots, parts, lane, &max, &sum);
        if (k == 0) {
            sPair[0] = max;
            sPair[1] = sum;
        }
    }
    BARRIER();
    max = sPair[0];
    sum = sPair[1];

    const R factor = factor_of(max, sum, it.is_log), hidden = !BACKWARD & it.is_log ? -INFINITE : ZERO;

    EACH_RUN {
        const INDEX e = from + RUN_AT(&it.at, i) - skip;
        RUN_OF(a, b);

        finish_values(&it, a, b, RUN, 0, max, sum, factor);
        if (it.at.seen < it.at.n)
            UNROLL for (int o = 0; o < RUN; o++)
                a[o] = e + o < it.at.seen ? a[o] : hidden;
        write_run(&it.y, &it.at, a, e);
    }
    if (k < LANES)
        team_leave(slots, parts, lane);
}
