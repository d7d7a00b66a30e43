/* cl/cross_entropy/team.cl - cross-entropy of long rows of logits, each shared by work-groups in one launch
 *
 * As cl/softmax/team.cl: a part of a row lies in registers as it was read, and sums are exchanged.  Each
 * work-item sums exponentials below its own maximum, so that none waits before it has summed; the first warp
 * merges the sums, exchanges them, and leaves what all need of the row.  The work-item that has the logit of
 * the target writes the loss.
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

/* Adds the sums of other values of the row. */
DEVICE void add_sums(struct sums *s, R max, R sum, R all)
{
    const R top = MAX(s->max, max);

    s->sum = s->sum * power(s->max - top) + sum * power(max - top);
    s->max = top;
    s->all = s->all + all;
}

/* The sums of a warp, of those of its lanes. */
DEVICE void warp_sums(struct sums *s, LOCAL R *base, int smooth)
{
    const R own = s->max;

    s->max = team_max(base, own);
    s->sum = team_sum(base, s->sum * power(own - s->max));
    if (smooth)
        s->all = team_sum(base, s->all);
}

/* Leaves those of a warp for merge_warps(): top, the largest logit of a work-item, own, its exponentials in
 * powers p, and all, its logits. */
DEVICE void leave_sums(LOCAL R *sums, int k, int smooth, R top, struct powers p, R own, R all)
{
    struct sums s = { top, own * p.base, all };

    warp_sums(&s, sums, smooth);
    if (k % LANES == 0) {
        LOCAL R *const out = sums + 3 * (k / LANES);

        out[0] = s.max;
        out[1] = s.sum;
        out[2] = s.all;
    }
}

DEVICE void merge_warps(struct sums *s, LOCAL R *sums, int lane, int smooth)
{
    const int there = lane < ROW_WARPS, at = there ? 3 * lane : 0;

    s->max = there ? sums[at] : LOWEST;
    s->sum = there ? sums[at + 1] : ZERO;
    s->all = there ? sums[at + 2] : ZERO;
    warp_sums(s, sums, smooth);
}

/* What another work-group would find in its part, which it has not announced, by the same operations. */
DEVICE void find_again(LOCAL R *sums, const struct line *x, const struct span *at, INDEX from, int smooth)
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

    const struct powers p = powers_of(top);

    NO_UNROLL for (int i = 0; i < VALUES; i += RUN) {
        hold_run(w, x, at, ELEMENT(at, from), -INFINITE);
        held_run(w, a);
        own = own + run_sum(p, a);
    }
    leave_sums(sums, at->k, smooth, top, p, own, all);
}

/* By the first warp: announces the sums s of part `found`, and makes them those of the row.  *missing is -1;
 * or else a part that has not been announced, and then they are worth nothing. */
DEVICE void exchange(struct sums *s, LOCAL R *base, LOCAL int *missing, GLOBAL UINT64 *slots, int lane,
                     int parts, int found, int is_own, int smooth)
{
    if (lane == 0) {
        if (smooth)
            team_put(slots + parts + found, 1, FLOAT_BITS(s->all), is_own);
        team_put(slots + found, FLOAT_BITS(s->max), FLOAT_BITS(s->sum), is_own);
        *missing = -1;
    }
    warp_meet();
    s->max = LOWEST;
    s->sum = s->all = ZERO;
    for (int i = lane; i < parts; i += LANES) {
        UINT32 low, high, all = 0;

        if (!team_get(slots + i, &low, &high) || (smooth && !team_get(slots + parts + i, &all, &all)))
            *missing = i;
        add_sums(s, BITS_FLOAT(low), BITS_FLOAT(high), BITS_FLOAT(all));
    }
    warp_sums(s, base, smooth);
}

/* What the first warp leaves for all. */
struct shared { struct sums s; struct gradient g; struct powers p; };

/* A run of the gradient. */
DEVICE void finish_run(R *a, const UINT32 *w, struct powers p, R factor, R others)
{
    held_run(w, a);
    UNROLL for (int o = 0; o < RUN; o++)
        a[o] = FMA(power_below(p, a[o]), factor, -others);
}

/* A row has `parts` parts, each of shape.s6 places, a multiple of RUN and at most CHUNK; at most ITEMS. */
KERNEL_ROOM(ITEMS, ROOM) void
cross_entropy(ARGUMENTS, GLOBAL UINT64 *gSlots, int parts)
{
    LOCAL_ARRAY(R, sSums, 3 * ROW_ROOM);
    LOCAL_ARRAY(struct shared, sRow, 1);
    LOCAL_ARRAY(int, sMissing, 1);
    ROOM_FOR(ROOM);

    const int k = LOCAL_ID(), smooth = smoothing != ZERO;
    const int group = GROUP_ID(0), part = group % parts;
    const INDEX row = group / parts, n = (INDEX)shape.s1, span = (INDEX)shape.s6, from = part * span;
    GLOBAL UINT64 *const slots = gSlots + row * TEAM_SLOTS(parts);
    LINES(x, dx, row);
    UINT32 u[HELD_WORDS];
    struct target t;

    find_target(&t, gTargets, shape, row);

    const struct span whole = { n, t.state == IGNORED && !has_lse ? 0 : n, skip, k };
    const struct span at = part_of(&whole, part, span);
    const INDEX place = t.at + skip - from;
    const int is_owner = IS_IN(place, span) && k == (int)(place / RUN % ROW_ITEMS);
    const R at_target = is_owner ? LOAD(x.p, t.at * x.step) : ZERO;
    const R weight = (t.state == NOWHERE ? not_a_number() : (R)1) * (has_weights ? WEIGHT_OF(row) : (R)1);

    hold_line(&x, &at, u, from, -INFINITE);

    R own = ZERO, all = ZERO, a[RUN];
    const R top = words_max(u, HELD_WORDS);
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
    leave_sums(sSums, k, smooth, top, p, own, all);
    BARRIER();
    for (int found = part;;) {
        if (k < LANES) {
            struct shared it;

            merge_warps(&it.s, sSums, k, smooth);
            exchange(&it.s, sSums, sMissing, slots, k, parts, found, found == part, smooth);
            it.p = powers_of(it.s.max);
            find_gradient(&it.g, weight, lse_of(it.s.max, it.s.sum), it.s.max, it.s.sum, n, smoothing,
                          z_loss);
            if (k == 0)
                sRow[0] = it;
        }
        BARRIER();
        found = sMissing[0];
        if (found < 0)
            break;

        const struct span other = part_of(&whole, found, span);

        find_again(sSums, &x, &other, found * span, smooth);
        BARRIER();
    }

    const int left = k == 0 ? team_leave(slots, parts) : 0;
    R factor = sRow[0].g.factor * sRow[0].p.base, others = sRow[0].g.others;

    p = sRow[0].p;
    if (t.state == IGNORED) {                   /* zeros, whatever is in the row */
        factor = others = p.scale = p.shift = ZERO;
        UNROLL for (int j = 0; j < HELD_WORDS; j++)
            u[j] = 0;
    }
    if (has_dx && (WHOLE || dx.in_runs)) {
        EACH_RUN {
            finish_run(a, u + WORDS_OF(i), p, factor, others);
            write_whole(&dx, &at, a, ELEMENT(&at, from), i);
        }
        NO_UNROLL for (int last = WHOLE ? 2 : 0; last < 2; last++) {
            const INDEX e = END_RUN(&at, last);

            if (HAS_END(&at, from, last, e)) {
                UINT32 w[RUN_WORDS];

                run_from(w, u, &at, from, e);
                finish_run(a, w, p, factor, others);
                write_run(&dx, &at, a, e);
            }
        }
    } else if (has_dx)
        EACH_RUN {
            finish_run(a, u + WORDS_OF(i), p, factor, others);
            write_run(&dx, &at, a, ELEMENT(&at, from));
        }
    if (is_owner) {
        const struct sums s = sRow[0].s;
        const R lse = lse_of(s.max, s.sum);

        WRITE_LOSS(row, t, s, weight, lse, at_target);
        if (has_dx && t.state != IGNORED)       /* it wrote the run of this element; a share of 1 leaves 0 */
            STORE((GLOBAL T *)dx.p, t.at * dx.step,
                  FMA(power_below(p, at_target) * p.base, sRow[0].g.factor, -(others + sRow[0].g.hit)));
    }
    if (k == 0)
        team_clear(slots, parts, left);
}
