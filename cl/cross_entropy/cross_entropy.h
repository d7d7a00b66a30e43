/* cl/cross_entropy/cross_entropy.h - what rows.cl and cpu.cl share: the formulas, and targets
 *
 * Of a row x of n logits with target t,
 *
 *     lse   = log sum exp x
 *     loss := weight (lse - (1 - smoothing) x[t] - smoothing / n sum x + z_loss lse^2)
 *     dx[j] = weight ((1 + 2 z_loss lse) exp(x[j] - lse) - smoothing / n - (1 - smoothing) [j = t])
 *
 * A row whose target is to be ignored has loss 0 and dx 0, whatever is in it; one whose target is no class
 * has NaN in both.
 */
#define KNOWN   0
#define IGNORED 1
#define NOWHERE 2

/* What all kernels begin with.  shape: rows in s0, classes in s1, where the integers begin in s2, their
 * stride in s3, words of 32 bits of each in s4, the one to be ignored in s5, rows of a work-group in s6.  */
#define ARGUMENTS                                                                         \
    VIEW shape, GLOBAL const T *gX, VIEW x_view, GLOBAL const UINT32 *gTargets,           \
    GLOBAL R *gLoss, VIEW loss_view, GLOBAL T *gDx, VIEW dx_view, int has_dx,             \
    GLOBAL const R *gWeights, VIEW weights_view, int has_weights,                         \
    GLOBAL R *gLse, VIEW lse_view, int has_lse, R smoothing, R z_loss

struct target { INDEX at; int state; };

/* Integers lie in memory with their lower half first. */
DEVICE void find_target(struct target *out, GLOBAL const UINT32 *p, VIEW shape, INDEX row)
{
    const INT64 i = (shape.s2 + row * shape.s3) * shape.s4;
    const INT64 t = shape.s4 == 1 ? (INT64)(int)p[i] : (INT64)((UINT64)p[i + 1] << 32 | p[i]);
    const int   is_class = t >= 0 && t < shape.s1;

    out->at = is_class ? (INDEX)t : 0;
    out->state = t == shape.s5 ? IGNORED : is_class ? KNOWN : NOWHERE;
}

DEVICE R not_a_number(void) { return INFINITE - INFINITE; }

/* What a row's gradient is made of: dx[j] = FMA(exp(x[j] - max), factor, -others), at the target
 * -(others + hit). */
struct gradient { R factor, others, hit; };

/* The loss of a row, of its pair, the sum of its logits and that of the target. */
DEVICE R loss_of(R lse, R at_target, R all, INDEX n, R smoothing, R z_loss)
{
    R loss = FMA(z_loss * lse, lse, lse - ((R)1 - smoothing) * at_target);

    if (smoothing != ZERO)
        loss = loss - smoothing / (R)n * all;
    return loss;
}

DEVICE void find_gradient(struct gradient *out, R weight, R lse, R max, R sum, INDEX n, R smoothing, R z_loss)
{
    out->factor = weight * FMA((R)2 * z_loss, lse, (R)1) / sum + (max - max);
    out->others = weight * smoothing / (R)n;
    out->hit = weight * ((R)1 - smoothing);
}

/* The logarithm of the sum; where the maximum is +infinity, NaN. */
DEVICE R lse_of(R max, R sum)
{
    return max + LOG(sum) + (max - max);
}
