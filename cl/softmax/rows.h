/* cl/softmax/rows.h - what the kernels by rows share: a row, and what becomes of its values
 *
 * Conditions that depend on the problem alone (is_log, kept) are tested outside the loops over values, since
 * not every compiler hoists them.
 *
 * Takes  softmax.h; tile/row.h
 * Gives  MASKED; struct row_view, ROW_VIEW; values_dot() finish_values(); ARGUMENTS
 */
#define MASKED (FORM == FORM_MASKED)

/* One row; at: its elements, and what the causal mask leaves of them. */
struct row_view {
    struct line x, w, y;
    struct span at;
    R   scale, factor;                         /* of x; and of what read_chunk() leaves */
    int is_log;
};

#if BACKWARD
/* What values add to the sum of a row; count: a constant. */
DEVICE R values_dot(const struct row_view *it, const R *a, const R *b, const int count)
{
    R s = ZERO;

    if (it->is_log)
        UNROLL for (int i = 0; i < count; i++)
            s = s + b[i];
    else
        UNROLL for (int i = 0; i < count; i++)
            s = FMA(a[i], b[i], s);
    return s;
}

/* Leaves what to store in a; count: a constant. */
DEVICE void finish_values(const struct row_view *it, R *a, const R *b, const int count, int kept, R max,
                          R sum, R factor)
{
    if (it->is_log)
        UNROLL for (int i = 0; i < count; i++)
            a[i] = it->scale * (b[i] - exp_of(a[i]) * sum);
    else
        UNROLL for (int i = 0; i < count; i++)
            a[i] = it->scale * (a[i] * (b[i] - sum));
}
#else
/* Leaves what to store in a; count: a constant; factor: factor_of(). */
DEVICE void finish_values(const struct row_view *it, R *a, const R *b, const int count, int kept, R max,
                          R sum, R factor)
{
    if (it->is_log)
        UNROLL for (int i = 0; i < count; i++)
            a[i] = FMA(it->factor, a[i], -max) - factor;
    else if (kept)
        UNROLL for (int i = 0; i < count; i++)
            a[i] = a[i] * factor;
    else
        UNROLL for (int i = 0; i < count; i++)
            a[i] = power(FMA(it->factor, a[i], -max)) * factor;
}
#endif

#define ARGUMENTS                                                                     \
    VIEW shape, int is_log, int causal, R scale, GLOBAL const T *gX, VIEW x_view,     \
    GLOBAL const T *gW, VIEW w_view, int unused, GLOBAL T *gY, VIEW y_view

/* Defines the view `it` of a row; a row past the last has no elements. */
#define ROW_VIEW(it, row, k, past)                                                          \
    GLOBAL const T *const x_row = gX + ((past) ? 0 : row_at(x_view, shape, row));           \
    GLOBAL const T *const w_row = gW + ((past) ? 0 : row_at(w_view, shape, row));           \
    GLOBAL const T *const y_row = gY + ((past) ? 0 : row_at(y_view, shape, row));           \
    const int skip = skip_of(x_row, (INDEX)x_view.s6);                                      \
    const struct row_view it = {                                                            \
        LINE(x_row, (INDEX)x_view.s6, skip), LINE(w_row, (INDEX)w_view.s6, skip),           \
        LINE(y_row, (INDEX)y_view.s6, skip),                                                \
        { (past) ? 0 : (INDEX)shape.s6, (past) ? 0 : row_visible(shape, row, causal), skip, k }, \
        scale, MASKED ? (R)1 : scale, is_log                               \
    }
