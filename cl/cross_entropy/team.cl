/* cl/cross_entropy/team.cl - cross-entropy of long rows of logits, each shared by work-groups in one launch
 *
 * As cl/softmax/team.cl: a part of a row lies in registers as it was read, and pairs are exchanged.  The
 * work-group that has the logit of the target writes the loss.
 *
 * Parameters, from cross_entropy.tune: ITEMS VALUES ROOM; constant of the problem: WHOLE.
 */

/* What values add to a sum of logits, which has no part in what is past the end; e: the first. */
DEVICE R plain_sum(const R *a, INDEX e, INDEX n)
{
    R s = ZERO;

    UNROLL for (int o = 0; o < RUN; o++)
        s = s + (IS_IN(e + o, n) ? a[o] : ZERO);
    return s;
}

/* The sums of a part, of what each of its work-items has: below the largest logit, top, in powers p.  base:
 * as row_max() takes it. */
DEVICE void set_sums(struct sums *out, LOCAL R *base, int k, int smooth, R top, struct powers p, R own, R all)
{
    out->max = top;
    out->sum = row_sum(base, ROW_ROOM, 0, k, own / p.at_top);
    out->all = smooth ? row_sum(base, 2 * ROW_ROOM, 0, k, all) : ZERO;
}

/* What another work-group would find in its part, which it has not announced, by the same operations. */
DEVICE void find_again(struct sums *out, LOCAL R *base, const struct line *x, const struct span *at,
                       INDEX from, int smooth)
{
    UINT32 w[RUN_WORDS];
    R top = LOWEST, own = ZERO, all = ZERO, a[RUN];

    NO_UNROLL for (int i = 0; i < VALUES; i += RUN) {
        hold_run(w, x, at, ELEMENT(at, from), -INFINITE);
        top = MAX(top, words_max(w, RUN_WORDS));
        held_run(w, a);
        if (smooth)
            all = all + plain_sum(a, ELEMENT(at, from), at->n);
    }
    top = row_max(base, 0, 0, at->k, top);

    const struct powers p = powers_of(top);

    NO_UNROLL for (int i = 0; i < VALUES; i += RUN) {
        hold_run(w, x, at, ELEMENT(at, from), -INFINITE);
        held_run(w, a);
        own = own + run_sum(p, a);
    }
    set_sums(out, base, at->k, smooth, top, p, own, all);
}

/* The sums of the row, of those of its parts, from base[first]. */
DEVICE void merge_parts(LOCAL R *base, int first, int parts, int lane, int smooth, struct sums *s)
{
    R own = LOWEST, sum = ZERO, all = ZERO;

    for (int i = lane; i < parts; i += LANES) {
        const R max = MAX(own, base[first + 3 * i]);

        sum = sum * power(own - max) + base[first + 3 * i + 1] * power(base[first + 3 * i] - max);
        own = max;
        if (smooth)
            all = all + base[first + 3 * i + 2];
    }
    s->max = team_max(base, own);
    s->sum = team_sum(base, sum * power(own - s->max));
    if (smooth)
        s->all = team_sum(base, all);
}

/* A row has `parts` parts, each of shape.s6 places, a multiple of RUN and at most CHUNK; at most ITEMS. */
KERNEL_ROOM(ITEMS, ROOM) void
cross_entropy(ARGUMENTS, GLOBAL UINT64 *gSlots, int parts)
{
    LOCAL_ARRAY(R, sSums, 3 * ROW_ROOM + 3 * ITEMS);
    LOCAL_ARRAY(int, sNext, 1);
    ROOM_FOR(ROOM);

    const int k = LOCAL_ID(), lane = k % LANES, smooth = smoothing != ZERO;
    const int group = GROUP_ID(0), part = group % parts;
    const INDEX row = group / parts, n = (INDEX)shape.s1, span = (INDEX)shape.s6, from = part * span;
    GLOBAL UINT64 *const slots = gSlots + row * TEAM_SLOTS(parts);
    LINES(x, dx, row);
    UINT32 u[HELD_WORDS], last[RUN_WORDS];
    struct target t;
    struct gradient g;
    struct sums s;

    find_target(&t, gTargets, shape, row);

    const struct span whole = { n, t.state == IGNORED && !has_lse ? 0 : n, skip, k };
    const struct span at = part_of(&whole, part, span);
    const INDEX place = t.at + skip - from;
    const int is_owner = IS_IN(place, span) && k == (int)(place / RUN % ROW_ITEMS);
    const R at_target = is_owner ? LOAD(x.p, t.at * x.step) : ZERO;

    hold_line(&x, &at, u, from, -INFINITE);

    R own = ZERO, all = ZERO, a[RUN];
    const R top = row_max(sSums, 0, 0, k, words_max(u, HELD_WORDS));
    struct powers p = powers_of(top);

    EACH_RUN {
        held_run(u + WORDS_OF(i), a);
        own = own + run_sum(p, a);
    }
    if (smooth)
        EACH_RUN {
            held_run(u + WORDS_OF(i), a);
            all = all + plain_sum(a, ELEMENT(&at, from), at.n);
        }
    set_sums(&s, sSums, k, smooth, top, p, own, all);

    for (int found = part;;) {
        if (k == 0) {
            if (smooth)
                team_put(slots + parts + found, 1, FLOAT_BITS(s.all), found == part);
            team_put(slots + found, FLOAT_BITS(s.max), FLOAT_BITS(s.sum), found == part);
            sNext[0] = -1;
        }
        warp_meet();
        if (k < LANES)
            for (int i = k; i < parts; i += LANES) {
                UINT32 low, high, all = 0;

                if (!team_get(slots + i, &low, &high) || (smooth && !team_get(slots + parts + i, &all, &all)))
                    sNext[0] = i;
                sSums[3 * (ROW_ROOM + i)] = BITS_FLOAT(low);
                sSums[3 * (ROW_ROOM + i) + 1] = BITS_FLOAT(high);
                sSums[3 * (ROW_ROOM + i) + 2] = BITS_FLOAT(all);
            }
        BARRIER();
        found = sNext[0];
        if (found < 0)
            break;

        const struct span other = part_of(&whole, found, span);

        find_again(&s, sSums, &x, &other, found * span, smooth);
    }
    merge_parts(sSums, 3 * ROW_ROOM, parts, lane, smooth, &s);

    const int left = k == 0 ? team_leave(slots, parts) : 0;
    const R lse = lse_of(s.max, s.sum);
    R weight = t.state == NOWHERE ? not_a_number() : (R)1;

    if (has_weights)
        weight = weight * WEIGHT_OF(row);
    if (is_owner)
        WRITE_LOSS(row, t, s, weight, lse, at_target);
    find_gradient(&g, weight, lse, s.max, s.sum, n, smoothing, z_loss);

    const R target_dx = FMA(power(at_target - s.max), g.factor, -(g.others + g.hit));

    p = powers_of(s.max);
    g.factor = g.factor / p.at_top;
    if (t.state == IGNORED) {                   /* zeros, whatever is in the row */
        g.factor = g.others = p.scale = p.shift = ZERO;
        UNROLL for (int j = 0; j < HELD_WORDS; j++)
            u[j] = 0;
    }

#define FINISH(WRITE)                                                    \
    EACH_RUN {                                                           \
        const INDEX e = from + RUN_AT(&at, i) - skip;                    \
                                                                         \
        held_run(u + WORDS_OF(i), a);                                    \
        UNROLL for (int o = 0; o < RUN; o++)                             \
            a[o] = FMA(power_below(p, a[o]), g.factor, -g.others);       \
        WRITE;                                                           \
    }

    if (has_dx && (WHOLE || dx.in_runs)) {
        FINISH(write_held(&dx, &at, a, e, i, last))
        write_last(&dx, &at, from, last);
    } else if (has_dx)
        FINISH(write_run(&dx, &at, a, e))
    if (has_dx && is_owner && t.state != IGNORED)       /* it wrote the run of this element */
        STORE((GLOBAL T *)dx.p, t.at * dx.step, target_dx);
    if (k == 0)
        team_clear(slots, parts, left);
}
