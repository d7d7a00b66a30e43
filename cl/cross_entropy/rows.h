/* cl/cross_entropy/rows.h - what the kernels by rows share: where a row lies, and what is written of it
 *
 * Takes  cross_entropy.h; tile/row.h
 * Gives  struct sums; LINES WEIGHT_OF WRITE_LOSS, in a kernel of ARGUMENTS
 */
/* The sums of one row: of exp(x - max), and of x where labels are smoothed. */
struct sums { R max, sum, all; };

/* Defines the lines of logits and of their gradient, and `skip`. */
#define LINES(x, dx, row)                                                                         \
    GLOBAL const T *const x_row = gX + (INDEX)x_view.s0 + (row) * (INDEX)x_view.s5;               \
    GLOBAL const T *const dx_row = gDx + (INDEX)dx_view.s0 + (row) * (INDEX)dx_view.s5;           \
    const int skip = skip_of(x_row, (INDEX)x_view.s6);                                            \
    const struct line x = LINE(x_row, (INDEX)x_view.s6, skip), dx = LINE(dx_row, (INDEX)dx_view.s6, skip)

#define WEIGHT_OF(row) gWeights[(INDEX)weights_view.s0 + (row) * (INDEX)weights_view.s6]

/* The loss of a row, and where it is wanted the logarithm of its sum. */
#define WRITE_LOSS(row, t, s, weight, lse, at_target)                                             \
    do {                                                                                          \
        gLoss[(INDEX)loss_view.s0 + (row) * (INDEX)loss_view.s6] = (t).state == IGNORED           \
            ? ZERO : (weight) * loss_of(lse, at_target, (s).all, n, smoothing, z_loss);           \
        if (has_lse)                                                                              \
            gLse[(INDEX)lse_view.s0 + (row) * (INDEX)lse_view.s6] = lse;                          \
    } while (0)
