/* cl/tile/store.h - accumulators to C
 *
 * d holds the `count` accumulators of a work-item (cl/tile/accumulator.h), of the rows m and m8 of C and of
 * columns from n on.
 *
 * Takes: epilogue.h, accumulator.h, store_row.h, store_f32.h.
 * Gives: OUTPUT_PARAMS, OUTPUT(), struct output, store_element(), STORE_TILE().
 */

/* What becomes of alpha A B: kernels end their parameters with these, and begin with M, N, ... eC, alpha.
 * unaligned, a constant: 1 where rows of C of 16-bit elements mostly begin at no multiple of 16 bytes. */
#define OUTPUT_PARAMS R beta, GLOBAL T *RESTRICT gC, VIEW vC, \
                      int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act
#define OUTPUT(unaligned) \
    output_of(M, N, eC, alpha, beta, gC, vC, has_bias, gBias, vBias, act, unaligned)

/* plain: C is alpha A B; aligned: its rows are whole 16-byte vectors of 16-bit elements. */
struct output {
    int M, N, plain, aligned, unaligned, has_bias, act;
    R alpha, beta;
    GLOBAL T *c;
    GLOBAL const T *bias;
    VIEW extents, c_view, bias_view;
};

DEVICE struct output output_of(int M, int N, VIEW eC, R alpha, R beta, GLOBAL T *gC, VIEW vC,
                               int has_bias, GLOBAL const T *gBias, VIEW vBias, int act, const int unaligned)
{
    const int plain = beta == ZERO && !has_bias && act == 0;
    const int aligned = vC.s6 == 1 && (vC.s0 | vC.s1 | vC.s2 | vC.s3 | vC.s4 | vC.s5 | N) % 8 == 0 &&
                        (UINT64)gC % 16 == 0;
    const struct output o = { M, N, plain, aligned, unaligned, has_bias, act, alpha, beta, gC, gBias, eC,
                              vC, vBias };

    return o;
}

/* One element, through the epilogue; c0, bias0: where the batch begins. */
DEVICE void store_element(struct output o, INDEX c0, INDEX bias0, int m, int n, R sum)
{
    const INDEX at = c0 + m * (INDEX)o.c_view.s5 + n * (INDEX)o.c_view.s6;

    STORE(o.c, at, epilogue(sum, o.alpha, o.beta, o.c, at, o.has_bias, o.bias,
                            bias0 + m * (INDEX)o.bias_view.s5 + n * (INDEX)o.bias_view.s6, o.act));
}

/* A tile of that batch; n0: its first column.  The epilogue is long, so a loop goes through a copy of d. */
#define STORE_TILE(o, d, count, batch, m, m8, n0, lane)                    \
    do {                                                                   \
        float copy_[count];                                                \
                                                                           \
        store_tile(o, d, copy_, count, batch, m, m8, n0, lane);            \
    } while (0)

DEVICE void store_tile(struct output o, const float *d, float *copy, const int count, int batch, int m,
                       int m8, int n0, int lane)
{
    const INDEX c0 = batch_offset(o.c_view, o.extents, batch);
    const INDEX row = (INDEX)o.c_view.s5, col = (INDEX)o.c_view.s6;
    const int n = n0 + acc_first_col(lane);

    if (o.plain && T_BYTES == 4) {
        store_pairs((GLOBAL float *)o.c, c0, row, col, d, count, o.alpha, m, m8, n, o.M, o.N);
    } else if (o.plain && o.aligned) {
        UNROLL for (int below = 0; below < 2; below++) {
            const int r = below ? m8 : m;

            store_row_vectors(o.c + c0 + (INDEX)(r < o.M ? r : 0) * row + n0, d, count, below, o.alpha,
                              lane, r < o.M ? o.N - n0 : 0);
        }
    } else if (o.plain && col == 1) {
        UNROLL for (int below = 0; below < 2; below++) {
            const int r = below ? m8 : m, left = r < o.M ? o.N - n0 : 0;
            GLOBAL T *const to = o.c + c0 + (INDEX)(r < o.M ? r : 0) * row + n0;

            if (o.unaligned)
                store_row_shifted(to, d, count, below, o.alpha, lane, left);
            else
                store_row_pairs(to, d, count, below, o.alpha, lane, left);
        }
    } else if (o.plain) {
        UNROLL for (int i = 0; i < count; i++) {
            const int r = ACC_BELOW(i) ? m8 : m, c = n + ACC_COL(i);

            if (r < o.M && c < o.N)
                STORE(o.c, c0 + r * row + c * col, o.alpha * d[i]);
        }
    } else {
        const INDEX bias0 = batch_offset(o.bias_view, o.extents, batch);

        UNROLL for (int i = 0; i < count; i++)
            copy[i] = d[i];
        NO_UNROLL for (int i = 0; i < count; i++) {
            const int r = ACC_BELOW(i) ? m8 : m, c = n + ACC_COL(i);

            if (r < o.M && c < o.N)
                store_element(o, c0, bias0, r, c, copy[i]);
        }
    }
}
