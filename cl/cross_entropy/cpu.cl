/* cl/cross_entropy/cpu.cl - cross-entropy of rows of logits, and its gradient, on CPUs (cross_entropy.h has
 * the formulas)
 *
 * A work-group is one work-item, which takes shape.s6 rows, each in vectors of VEC lanes: in blocks, so
 * that a block stays in the first-level cache from the search for its maximum to its sum.  Each lane reduces
 * its own pair; the pairs are merged at the row's end, and the row is read again for the gradient.
 *
 * Parameters, from cross_entropy.tune: VEC BLOCK (vectors).
 */
EXP_BELOW_FUNCTION(exp_lanes, vector, BITS_LANES, LANES_BITS)

/* A row, and how many of its vectors have all lanes; the last has `tail`, or 0. */
struct row_view { GLOBAL const T *x; INDEX step, full, count; int tail; };
struct sums     { R max, sum, all; };

/* Lanes past the end hold `none`. */
DEVICE vector read_x(const struct row_view *it, INDEX j, R none)
{
    GLOBAL const T *const x = it->x + j * VEC * it->step;

    return j < it->full ? read_lanes(x, it->step, VEC)
                        : first_lanes(read_lanes(x, it->step, it->tail), it->tail, none);
}

DEVICE void reduce_row(struct sums *out, const struct row_view *it, int smooth)
{
    vector max = (vector)LOWEST, sum = (vector)ZERO, all = (vector)ZERO;

    for (INDEX first = 0; first < it->count; first += BLOCK) {
        const INDEX end = BLOCK < it->count - first ? first + BLOCK : it->count;
        vector top = max, s = (vector)ZERO;

        for (INDEX j = first; j < end; j++) {
            const vector x = read_x(it, j, -INFINITE);

            top = MAX_LANES(top, x);
        }
        for (INDEX j = first; j < end; j++)
            s = s + exp_lanes(read_x(it, j, -INFINITE) - top);
        if (smooth)
            for (INDEX j = first; j < end; j++)
                all = all + read_x(it, j, ZERO);
        sum = sum * exp_lanes(max - top) + s;
        max = top;
    }

    out->max = lanes_max(max);
    out->sum = lanes_sum(sum * exp_lanes(max - (vector)out->max));
    out->all = lanes_sum(all);
}

DEVICE void write_gradient(const struct row_view *it, GLOBAL T *dx, INDEX step, R max,
                           const struct gradient *g, INDEX target, R at_target)
{
    for (INDEX j = 0; j < it->count; j++) {
        const vector e = exp_lanes(read_x(it, j, -INFINITE) - (vector)max);

        write_lanes(dx + j * VEC * step, step, j < it->full ? VEC : it->tail,
                    FMA(e, (vector)g->factor, (vector)-g->others));
    }
    STORE(dx, target * step, FMA(exp_below(at_target - max), g->factor, -(g->others + g->hit)));
}

KERNEL(1) void
cross_entropy(ARGUMENTS)
{
    const INDEX n = (INDEX)shape.s1, first = (INDEX)GROUP_ID(0) * (INDEX)shape.s6;
    const INDEX each = (INDEX)shape.s6, left = (INDEX)shape.s0 - first;
    const INDEX last = first + (each < left ? each : left);

    for (INDEX row = first; row < last; row++) {
        struct target t;
        struct gradient g;
        struct sums s;

        find_target(&t, gTargets, shape, row);

        const int is_ignored = t.state == IGNORED, reads = !is_ignored || has_lse;
        GLOBAL const T *const x = gX + (INDEX)x_view.s0 + row * (INDEX)x_view.s5;
        GLOBAL T *const dx = gDx + (INDEX)dx_view.s0 + row * (INDEX)dx_view.s5;
        const struct row_view it = {
            x, (INDEX)x_view.s6, n / VEC, reads ? (n + VEC - 1) / VEC : 0, (int)(n % VEC)
        };

        reduce_row(&s, &it, smoothing != ZERO);

        const R lse = lse_of(s.max, s.sum), at_target = LOAD(x, t.at * it.step);
        R weight = t.state == NOWHERE ? not_a_number() : (R)1;

        if (has_weights)
            weight = weight * gWeights[(INDEX)weights_view.s0 + row * (INDEX)weights_view.s6];
        gLoss[(INDEX)loss_view.s0 + row * (INDEX)loss_view.s6] =
            is_ignored ? ZERO : weight * loss_of(lse, at_target, s.all, n, smoothing, z_loss);
        if (has_lse)
            gLse[(INDEX)lse_view.s0 + row * (INDEX)lse_view.s6] = lse;
        find_gradient(&g, weight, lse, s.max, s.sum, n, smoothing, z_loss);
        if (has_dx && !is_ignored)
            write_gradient(&it, dx, (INDEX)dx_view.s6, s.max, &g, t.at, at_target);
        else if (has_dx)
            for (INDEX j = 0; j < n; j++)
                STORE(dx, j * (INDEX)dx_view.s6, ZERO);
    }
}
