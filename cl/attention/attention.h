/* cl/attention/attention.h - what the kernels of attention share: which keys a query sees, and scores
 *
 * out := softmax(s) V along the keys, where s = scale Q K^T; with a softcap, softcap tanh(s / softcap); then
 * plus the mask.  The keys are taken in blocks, with a running maximum and sum of each row: Milakov and
 * Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022.
 *
 * A maximum starts from LOWEST, not from -infinity, and drops NaN: the sum carries NaN, and becomes NaN where
 * the maximum is +infinity.  So a sum of 0 means that a query sees nothing.
 *
 * Takes  R ZERO (cl/types.h); INFINITE tanh_of() (cl/tile/activation.h); HAS_SOFTCAP
 * Gives  struct sight sight_begin() sight_end() capped() inverse_of() logarithm_of()
 */

/* Query i stands at the place of key i + offset; causal, it sees that key and those before, of which a window
 * above 0 leaves so many.                                                                              */
struct sight { int keys, causal, offset, window; };

/* The first key that query i sees, and the one behind the last; the same if it sees none. */
DEVICE int sight_begin(const struct sight *s, int i)
{
    const int from = i + s->offset + 1 - s->window;

    return s->causal && s->window && from > 0 ? from : 0;
}

DEVICE int sight_end(const struct sight *s, int i)
{
    const int end = i + s->offset + 1;

    return !s->causal || end > s->keys ? s->keys : end < 0 ? 0 : end;
}

DEVICE R capped(R s, R softcap)
{
#if HAS_SOFTCAP
    return softcap * tanh_of(s / softcap);
#else
    (void)softcap;
    return s;
#endif
}

/* The factor of a row of sums; and the logarithm of the sum of exponentials. */
DEVICE R inverse_of(R sum)          { return sum == ZERO ? ZERO : (R)1 / sum; }
DEVICE R logarithm_of(R max, R sum) { return sum == ZERO ? ZERO - INFINITE : max + LOG(sum); }
