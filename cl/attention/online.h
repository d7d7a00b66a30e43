/* cl/attention/online.h - scores in the accumulators of tensor cores: hidden keys, and the running softmax
 *
 * A lane has, in the layout of cl/tile/accumulator.h, scores of a row and of the row 8 below.  Of both it
 * keeps the largest score so far, and its own share of the sum of exponentials; what it added up before a
 * larger score came has to be multiplied by `rescale`.
 *
 * Exponentials are 2^(s scale - m), where m is the largest s scale: one fused multiply-add each.  A maximum
 * begins at -infinity; as long as it is that, m is 0, so that hidden scores give 0 and not NaN.
 *
 * Of f32, and where EXACT_WEIGHTS is 1, the maximum is subtracted before the scale is applied: the weight of
 * the largest score is 1, however large that is.  Else all weights of a row, and their sum, have one factor
 * near 1, for the rounding of m; the quotient has not, but what should be 1 is rounded to 16 bits beside it.
 *
 * LAZY: the old maximum stays where no row of the warp has one that is more than 2^LAZY_LIMIT times larger.
 * Then sums need not be multiplied, and weights are at most 2^LAZY_LIMIT, which the types hold as well as 1.
 * From Shah et al., "FlashAttention-3", 2024, and its successor.
 *
 * Takes: T_BYTES; INFINITE, struct sight, sight_*() of attention.h; acc_*(); atoms/nvidia/math.h, warp.h;
 *        CAUSAL LAZY; EXACT_WEIGHTS may be defined.
 * Gives: online_hide(), online_hides(), online_update(), online_correction(), online_rescale().
 */
#define LAZY_LIMIT 8.0f

#ifndef EXACT_WEIGHTS
#define EXACT_WEIGHTS (T_BYTES != 2)
#endif

/* The exponent of a weight; m: the maximum, times the scale where that is applied first. */
#define ONLINE_SCALED(top, scale)      (!EXACT_WEIGHTS ? (top) * (scale) : (top))
#define ONLINE_EXPONENT(s, m, scale)   (!EXACT_WEIGHTS ? FMA(s, scale, -(m)) : ((s) - (m)) * (scale))

/* Whether a block of keys from n0 on hides any from the 64 rows from `row` on. */
DEVICE int online_hides(const struct sight *sight, int row, int n0, const int width)
{
    return n0 + width > sight_end(sight, row) || (CAUSAL && n0 < sight_begin(sight, row + 63));
}

/* row, n: of the lane's first score. */
DEVICE void online_hide(float *s, const int count, const struct sight *sight, int row, int n)
{
    UNROLL for (int below = 0; below < 2; below++) {
        const int m = row + 8 * below, begin = sight_begin(sight, m) - n, end = sight_end(sight, m) - n;

        UNROLL for (int i = 2 * below; i < count; i += 4)
            UNROLL for (int e = i; e < i + 2; e++)
                if (ACC_COL(e) >= end || (CAUSAL && ACC_COL(e) < begin))
                    s[e] = -INFINITE;
    }
}

/* The scores of a block become exponentials; scale is in powers of 2 and positive; is_first, a constant: of
 * a tile's first block.  Returns whether older sums must be multiplied.  */
DEVICE int online_update(float *s, const int count, float *max, float *sum, float *rescale, float scale,
                         const int is_first)
{
    float top[2], m[2];
    int grows = 1;

    UNROLL for (int below = 0; below < 2; below++)
        top[below] = MAX(is_first ? -INFINITE : max[below], acc_row_max(s, count, below));
#if LAZY
    if (!is_first) {
        grows = any_in_warp((top[0] - max[0]) * scale > LAZY_LIMIT || (top[1] - max[1]) * scale > LAZY_LIMIT);
        UNROLL for (int below = 0; below < 2; below++)
            top[below] = grows ? top[below] : max[below];
    }
#endif
    UNROLL for (int below = 0; below < 2; below++) {
        m[below] = top[below] == -INFINITE ? 0.0f : ONLINE_SCALED(top[below], scale);
        rescale[below] = is_first ? 1.0f
                       : ptx_exp2(!EXACT_WEIGHTS ? max[below] * scale - m[below]
                                                 : ONLINE_EXPONENT(max[below], m[below], scale));
        max[below] = top[below];
    }
    UNROLL for (int below = 0; below < 2; below++) {
        float even = 0.0f, odd = 0.0f;

        UNROLL for (int i = 2 * below; i < count; i += 4) {
            s[i] = ptx_exp2(ONLINE_EXPONENT(s[i], m[below], scale));
            s[i + 1] = ptx_exp2(ONLINE_EXPONENT(s[i + 1], m[below], scale));
            even = even + s[i];
            odd = odd + s[i + 1];
        }
        sum[below] = is_first ? even + odd : FMA(sum[below], rescale[below], even + odd);
    }
    return grows;
}

/* What exponentials relative to m are to be multiplied by, so that they are relative to max scale. */
DEVICE float online_correction(float max, float scale)
{
    return EXACT_WEIGHTS || max == -INFINITE ? 1.0f : ptx_exp2(FMA(-max, scale, max * scale));
}

DEVICE void online_rescale(float *d, const int count, const float *rescale, int grows)
{
    if (!LAZY || grows)
        UNROLL for (int below = 0; below < 2; below++)
            acc_scale_row(d, count, below, rescale[below]);
}
