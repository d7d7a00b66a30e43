/* cl/cross_entropy/team.cl - cross-entropy of long rows of logits, each shared by work-groups in one launch
 *
 * As cl/softmax/team.cl: a part of a row lies in registers as it was read, and pairs are exchanged.  The
 * work-group that has the logit of the target writes the loss.
 *
 * Parameters, from cross_entropy.tune: ITEMS VALUES; constant of the problem: WHOLE.
 */

/* What a work-item finds in its values; base: as row_max() takes it. */
DEVICE void reduce_part(struct sums *out, LOCAL R *base, const UINT32 *u, const struct span *at, INDEX from,
                        int smooth)
{
    struct sums own = { LOWEST, ZERO, ZERO };

    EACH_RUN {
        R a[RUN];

        held_run(u + WORDS_OF(i), a);
        own.max = MAX(own.max, values_max(a, RUN, (R)1));
        if (smooth)
            UNROLL for (int o = 0; o < RUN; o++)
                own.all = own.all + (IS_IN(ELEMENT(at, from) + o, at->n) ? a[o] : ZERO);
    }
    out->max = row_max(base, 0, 0, at->k, own.max);
    EACH_RUN {
        R a[RUN];

        held_run(u + WORDS_OF(i), a);
        own.sum = own.sum + values_sum(a, RUN, (R)1, out->max, 0);
    }
    out->sum = row_sum(base, ROW_ROOM, 0, at->k, own.sum);
    out->all = smooth ? row_sum(base, 2 * ROW_ROOM, 0, at->k, own.all) : ZERO;
}

/* The sums of the row, of those of its parts; by one warp. */
DEVICE void merge_parts(GLOBAL const UINT64 *slots, int parts, int lane, int smooth, struct sums *s)
{
    R own = LOWEST, sum = ZERO, all = ZERO;

    for (int i = lane; i < parts; i += LANES) {
        UINT32 low, high;

        team_get(slots + i, &low, &high);

        const R max = MAX(own, BITS_FLOAT(low));

        sum = sum * power(own - max) + BITS_FLOAT(high) * power(BITS_FLOAT(low) - max);
        own = max;
        if (smooth) {
            team_get(slots + parts + i, &low, &high);
            all = all + BITS_FLOAT(high);
        }
    }
    s->max = team_max(own);
    s->sum = team_sum(sum * power(own - s->max));
    s->all = team_sum(all);
}

/* A row has `parts` parts, each of shape.s6 places, a multiple of RUN and at most CHUNK. */
KERNEL(ITEMS) void
cross_entropy(ARGUMENTS, GLOBAL UINT64 *gSlots, GLOBAL int *gTickets, int parts)
{
    LOCAL_ARRAY(R, sRow, 3 * ROW_ROOM);
    LOCAL_ARRAY(R, sSums, 3);
    LOCAL_ARRAY(int, sTicket, 1);

    const int k = LOCAL_ID(), lane = k % LANES, smooth = smoothing != ZERO;

    if (k == 0)
        sTicket[0] = team_ticket(gTickets, (int)shape.s0 * parts);
    BARRIER();

    const int ticket = sTicket[0], part = ticket % parts;
    const INDEX row = ticket / parts, n = (INDEX)shape.s1, from = part * (INDEX)shape.s6;
    GLOBAL UINT64 *const slots = gSlots + row * TEAM_SLOTS(parts);
    LINES(x, dx, row);
    const INDEX last = from + (INDEX)shape.s6 - skip, end = last < n ? last : n;
    UINT32 u[HELD_WORDS];
    struct target t;
    struct gradient g;
    struct sums s;

    find_target(&t, gTargets, shape, row);

    const struct span at = { end, t.state == IGNORED && !has_lse ? 0 : end, skip, k };
    const INDEX place = t.at + skip - from;
    const int is_owner = IS_IN(place, (INDEX)shape.s6) && k == (int)(place / RUN % ROW_ITEMS);
    const R at_target = is_owner ? LOAD(x.p, t.at * x.step) : ZERO;
    R weight = t.state == NOWHERE ? not_a_number() : (R)1;

    hold_line(&x, &at, u, from, -INFINITE);
    reduce_part(&s, sRow, u, &at, from, smooth);
    if (k < LANES) {
        if (k == 0) {
            team_put(slots + part, FLOAT_BITS(s.max), FLOAT_BITS(s.sum));
            if (smooth)
                team_put(slots + parts + part, 1, FLOAT_BITS(s.all));
        }
        merge_parts(slots, parts, lane, smooth, &s);
        if (k == 0) {
            sSums[0] = s.max;
            sSums[1] = s.sum;
            sSums[2] = s.all;
        }
    }
    BARRIER();
    s.max = sSums[0];
    s.sum = sSums[1];
    s.all = sSums[2];

    const R lse = lse_of(s.max, s.sum);

    if (has_weights)
        weight = weight * WEIGHT_OF(row);
    if (is_owner)
        WRITE_LOSS(row, t, s, weight, lse, at_target);
    find_gradient(&g, weight, lse, s.max, s.sum, n, smoothing, z_loss);
    if (has_dx)
        EACH_RUN {
            const INDEX e = from + RUN_AT(&at, i) - skip;
            R a[RUN];

            held_run(u + WORDS_OF(i), a);
            UNROLL for (int o = 0; o < RUN; o++)
                a[o] = t.state == IGNORED ? ZERO
                     : FMA(power(a[o] - s.max), g.factor, -(e + o == t.at ? g.others + g.hit : g.others));
            write_run(&dx, &at, a, e);
        }
    if (k < LANES)
        team_leave(slots, parts, lane);
}
