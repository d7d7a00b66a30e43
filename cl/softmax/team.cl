/* cl/softmax/team.cl - softmax along long rows, or its gradient, each shared by work-groups in one launch
 *
 * A work-group holds one part of a row in registers, as it was read (cl/tile/held.h), so that a row is read
 * once; it exchanges the pair (max, sum) of its part with the others of the row (cl/tile/team.h) and writes.
 * Exponentials are taken twice: keeping them would take twice the registers in 16-bit types, and what hides
 * the wait for the others is the bytes that are in flight.  A row is read and written by streaming accesses,
 * so that a result does not displace the operands of other rows from the cache.
 *
 * Parameters, from softmax.tune: ITEMS VALUES ROOM; constants of the problem: FORM WHOLE.
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

/* The pair of the row, of those of its parts. */
DEVICE void merge_parts(LOCAL R *base, int first, int parts, int lane, R *max, R *sum)
{
    R m = FIRST_MAX, s = ZERO;

    for (int i = lane; i < parts; i += LANES)
        merge(&m, &s, BACKWARD ? ZERO : base[first + 2 * i], base[first + 2 * i + 1]);
    *max = BACKWARD ? ZERO : team_max(base, m);
    *sum = team_sum(base, BACKWARD ? s : s * power(m - *max));
}

#define NONE(it) (BACKWARD ? ZERO : (it)->scale < ZERO ? INFINITE : -INFINITE)

/* The values of the run of value i, read again. */
DEVICE void read_values(const struct row_view *it, INDEX from, int i, R *a, R *b)
{
    const INDEX e = from + RUN_AT(&it->at, i) - it->at.skip;
    UINT32 u[RUN_WORDS], v[RUN_WORDS];

    hold_run(u, &it->x, &it->at, e, NONE(it));
    if (FORM != FORM_FORWARD)
        hold_run(v, &it->w, &it->at, e, ZERO);
    run_values(it, u, v, a, b);
}

/* The pair of a part that another work-group has not announced, by the operations of the kernel below. */
DEVICE void find_pair(const struct row_view *it, LOCAL R *base, INDEX from, R *out_max, R *out_sum)
{
    R max = FIRST_MAX, sum = ZERO, a[RUN], b[RUN];

#if BACKWARD
    NO_UNROLL for (int i = 0; i < VALUES; i += RUN) {
        read_values(it, from, i, a, b);
        sum = sum + values_dot(it, a, b, RUN);
    }
#else
    NO_UNROLL for (int i = 0; i < VALUES; i += RUN) {
        read_values(it, from, i, a, b);
        max = MAX(max, values_max(a, RUN, it->factor));
    }
    max = row_max(base, 0, 0, it->at.k, max);
    NO_UNROLL for (int i = 0; i < VALUES; i += RUN) {
        read_values(it, from, i, a, b);
        sum = sum + values_sum(a, RUN, it->factor, max, 0);
    }
#endif
    *out_max = max;
    *out_sum = row_sum(base, ROW_ROOM, 0, it->at.k, sum);
}

/* Two operands take twice the registers. */
#define UNIT_ROOM (FORM == FORM_FORWARD ? ROOM : (ROOM + 1) / 2)

/* A row has `parts` parts, each of shape.s7 places, a multiple of RUN and at most CHUNK; at most ITEMS. */
KERNEL_ROOM(ITEMS, UNIT_ROOM) void
softmax(ARGUMENTS, GLOBAL UINT64 *gSlots, int parts)
{
    LOCAL_ARRAY(R, sPairs, 2 * ROW_ROOM + 2 * ITEMS);
    LOCAL_ARRAY(int, sNext, 1);
    ROOM_FOR(UNIT_ROOM);

    const int k = LOCAL_ID(), lane = k % LANES, group = GROUP_ID(0), part = group % parts;
    const INDEX row = group / parts, span = (INDEX)shape.s7, from = part * span;
    GLOBAL UINT64 *const slots = gSlots + row * TEAM_SLOTS(parts);
    ROW_VIEW(whole, row, k, 0);
    struct row_view it = whole;
    UINT32 u[HELD_WORDS], v[FORM == FORM_FORWARD ? RUN_WORDS : HELD_WORDS], last[RUN_WORDS];
    R max = FIRST_MAX, sum = ZERO;

    it.at = part_of(&whole.at, part, span);
    hold_line(&it.x, &it.at, u, from, NONE(&it));
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
    max = row_max(sPairs, 0, 0, k, max);
    EACH_RUN {
        RUN_OF(a, b);
        sum = sum + values_sum(a, RUN, it.factor, max, 0);
    }
#endif
    sum = row_sum(sPairs, ROW_ROOM, 0, k, sum);

    for (int found = part;;) {
        if (k == 0) {
            team_put(slots + found, BACKWARD ? 1 : FLOAT_BITS(max), FLOAT_BITS(sum), found == part);
            sNext[0] = -1;
        }
        warp_meet();
        if (k < LANES)
            for (int i = k; i < parts; i += LANES) {
                UINT32 low, high;

                if (!team_get(slots + i, &low, &high))
                    sNext[0] = i;
                sPairs[2 * (ROW_ROOM + i)] = BITS_FLOAT(low);
                sPairs[2 * (ROW_ROOM + i) + 1] = BITS_FLOAT(high);
            }
        BARRIER();
        found = sNext[0];
        if (found < 0)
            break;

        struct row_view other = whole;

        other.at = part_of(&whole.at, found, span);
        find_pair(&other, sPairs, found * span, &max, &sum);
    }
    merge_parts(sPairs, 2 * ROW_ROOM, parts, lane, &max, &sum);

    const int left = k == 0 ? team_leave(slots, parts) : 0;
    const R factor = factor_of(max, sum, it.is_log), hidden = !BACKWARD & it.is_log ? -INFINITE : ZERO;

#define FINISH(WRITE)                                                                       \
    EACH_RUN {                                                                              \
        const INDEX e = from + RUN_AT(&it.at, i) - skip;                                    \
        RUN_OF(a, b);                                                                       \
                                                                                            \
        finish_values(&it, a, b, RUN, 0, max, sum, factor);                                 \
        if (it.at.seen < it.at.n)                                                           \
            UNROLL for (int o = 0; o < RUN; o++)                                            \
                a[o] = e + o < it.at.seen ? a[o] : hidden;                                  \
        WRITE;                                                                              \
    }

    if (WHOLE || it.y.in_runs) {
        FINISH(write_held(&it.y, &it.at, a, e, i, last))
        write_last(&it.y, &it.at, from, last);
    } else
        FINISH(write_run(&it.y, &it.at, a, e))
    if (k == 0)
        team_clear(slots, parts, left);
}
