/* cl/cross_entropy/rows.cl - cross-entropy of rows of logits, and its gradient (cross_entropy.h has the
 * formulas)
 *
 * Rows lie in registers as cl/tile/row.h says, and are reduced as those of softmax.  A row of one chunk is
 * read once and its gradient written once; a longer one is read again for the gradient, from its end, since
 * what was read last is in the cache.
 *
 * Parameters, from cross_entropy.tune: ITEMS ROW_ITEMS VALUES; constant of the problem: WHOLE.
 */

DEVICE R values_plain_sum(const R *a)
{
    R s = ZERO;

    EACH_VALUE
        s = s + a[i];
    return s;
}

/* -infinity has no part in a sum of what is past the end. */
DEVICE R chunk_all(const struct line *x, const struct span *at, R *a, INDEX from)
{
    read_line(x, at, a, from, ZERO, 0);
    return values_plain_sum(a);
}

/* held: the row is one chunk, whose exponentials stay in a. */
DEVICE void reduce_row(struct sums *out, LOCAL R *base, int row, const struct line *x, const struct span *at,
                       R *a, int held, int smooth)
{
    const INDEX end = at->seen ? at->seen + at->skip : 0;
    struct sums own = { LOWEST, ZERO, ZERO };

    if (smooth)
        for (INDEX j = 0; j < end; j += CHUNK)
            own.all = own.all + chunk_all(x, at, a, j);
    if (held) {
        read_line(x, at, a, 0, -INFINITE, 1);
        own.max = values_max(a, VALUES, (R)1);
    } else
        for (INDEX j = 0; j < end; j += CHUNK) {
            R next;

            read_line(x, at, a, j, -INFINITE, 0);
            next = MAX(own.max, values_max(a, VALUES, (R)1));
            own.sum = own.sum * power(own.max - next) + values_sum(a, VALUES, (R)1, next, 0);
            own.max = next;
        }
    out->max = row_max(base, 0, row, at->k, own.max);
    own.sum = held ? values_sum(a, VALUES, (R)1, out->max, 1) : own.sum * power(own.max - out->max);
    out->sum = row_sum(base, ROW_ROOM, row, at->k, own.sum);
    out->all = ZERO;
    if (smooth)                                 /* of the problem: the same for all work-items */
        out->all = row_sum(base, 2 * ROW_ROOM, row, at->k, own.all);
}

DEVICE void write_gradient(const struct line *x, const struct line *dx, const struct span *at, R *a, int held,
                           R max, const struct gradient *g, const struct target *t)
{
    const INDEX end = at->n + at->skip;

    for (INDEX j = (end - 1) / CHUNK * CHUNK; end > 0 && j >= 0; j -= CHUNK) {
        if (t->state == IGNORED)
            EACH_VALUE
                a[i] = ZERO;
        else {
            if (!held) {
                read_line(x, at, a, j, -INFINITE, 1);
                values_sum(a, VALUES, (R)1, max, 1);
            }
            EACH_VALUE
                a[i] = FMA(a[i], g->factor, -(ELEMENT(at, j) == t->at ? g->others + g->hit : g->others));
        }
        write_line(dx, at, a, j);
    }
}

KERNEL(ITEMS) void
cross_entropy(ARGUMENTS)
{
    LOCAL_ARRAY(R, sRow, 3 * ROW_ROOM);

    const int me = LOCAL_ID() / ROW_ITEMS, k = LOCAL_ID() % ROW_ITEMS;
    const INDEX row = (INDEX)GROUP_ID(0) * ROWS + me, n = (INDEX)shape.s1;
    const int past = row >= (INDEX)shape.s0;
    const INDEX at_row = past ? 0 : row;
    LINES(x, dx, at_row);
    struct target t;
    struct gradient g;
    struct sums s;

    find_target(&t, gTargets, shape, at_row);

    const struct span at = { past ? 0 : n, past || (t.state == IGNORED && !has_lse) ? 0 : n, skip, k };
    const int held = at.n + skip <= CHUNK;
    /* One work-item alone reads the logit of the target, before it overwrites it, and writes the loss. */
    const int is_owner = !past && k == (int)((t.at + skip) / RUN % ROW_ITEMS);
    const R at_target = is_owner ? LOAD(x.p, t.at * x.step) : ZERO;
    R a[VALUES], weight = t.state == NOWHERE ? not_a_number() : (R)1;

    reduce_row(&s, sRow, me, &x, &at, a, held, smoothing != ZERO);

    const R lse = lse_of(s.max, s.sum);

    if (past)
        return;
    if (has_weights)
        weight = weight * WEIGHT_OF(row);
    if (is_owner)
        WRITE_LOSS(row, t, s, weight, lse, at_target);
    find_gradient(&g, weight, lse, s.max, s.sum, n, smoothing, z_loss);
    if (has_dx)
        write_gradient(&x, &dx, &at, a, held, s.max, &g, &t);
}
