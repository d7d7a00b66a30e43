/* cl/gemm/bf16x3.h - f32 elements in three parts of bf16 (cl/gemm/bf16x3.cl says why)
 *
 * How the parts of an operand are laid out, the order of the products, and what becomes of sums that are not
 * finite.
 *
 * Takes: BLK_K; cl/tile/bf16_parts.h.
 * Gives: BF16X3_STEP() BF16X3_PART() BF16X3_CHAIN() BF16X3_CHAIN_OF(), bf16x3_load() bf16x3_split()
 *        bf16x3_sum()
 */
/* Bytes of 16 of K of a panel of so many rows; its parts are so far from each other. */
#define BF16X3_STEP(rows) ((rows) * 32 * BF16X3_PARTS)
#define BF16X3_PART(rows) ((rows) * 32)

/* Eight of k of one row; zeros where there are none.  Loads have no branch around them. */
DEVICE void bf16x3_load(R x[8], GLOBAL const T *row, INDEX step, int k, int K, int there)
{
    if (step == 1 && k + 8 <= K && (unsigned INT64)(row + k) % 16 == 0) {
        GLOBAL const float4 *from = (GLOBAL const float4 *)(row + k);
        const float4 low = from[0], high = from[1];

        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
    } else {
        UNROLL for (int i = 0; i < 8; i++)
            x[i] = row[(k + i < K ? k + i : K - 1) * step];
    }
    UNROLL for (int i = 0; i < 8; i++)
        x[i] = there && k + i < K ? x[i] * BF16X3_SCALE : ZERO;
}

/* Splits an operand given as A: its last stride is along K, which is padded to a multiple of `whole`, and
 * panels have `per` rows.  p: panels from batch to batch; s7: where the first begins, in 16 bytes.  256
 * work-items, of group number `group`, do `span` of K. */
DEVICE void
bf16x3_split(int group, int span, int rows, int K, int whole, int per, VIEW e,
             GLOBAL const T *RESTRICT g, VIEW v, GLOBAL uint4 *RESTRICT parts, VIEW p)
{
    const int steps = (K + whole - 1) / whole * (whole / 16), columns = 2 * steps;
    const int panels = (rows + per - 1) / per, wide = span / 8, pieces = (columns + wide - 1) / wide;
    const int piece = group % pieces, panel = group / pieces % panels;
    const int batch = group / pieces / panels;
    const INDEX row_step = (INDEX)v.s5, k_step = (INDEX)v.s6;
    const int m_major = row_step < k_step;      /* adjacent work-items read adjacent elements */

    g += batch_offset(v, e, batch);
    parts += p.s7 + (batch_offset(p, e, batch) + panel) * (INT64)steps * 6 * per;
    NO_UNROLL for (int i = LOCAL_ID(); i < per * wide; i += 256) {
        const int row = m_major ? i % per : i / (8 * wide) * 8 + i % 8;
        const int column = piece * wide + (m_major ? i / per : i / 8 % wide);
        const int at = panel * per + row;
        GLOBAL uint4 *to = parts + (column / 2 * 6 + column % 2) * (INT64)per + row;
        R x[8];

        if (column >= columns)
            continue;
        bf16x3_load(x, g + (at < rows ? at : rows - 1) * row_step, k_step, column * 8, K, at < rows);
        UNROLL for (int part = 0; part < BF16X3_PARTS; part++) {
            uint4 packed;

            packed.x = bf16x3_part(x, x + 1);
            packed.y = bf16x3_part(x + 2, x + 3);
            packed.z = bf16x3_part(x + 4, x + 5);
            packed.w = bf16x3_part(x + 6, x + 7);
            to[part * 2 * per] = packed;
        }
    }
}

/* The products of a slice of so many times 16 of K, the small ones first.  PRODUCT(k, i, j, add) is that of
 * parts i and j of the k-th 16 of K. */
#define BF16X3_CHAIN(PRODUCT) BF16X3_CHAIN_OF(BLK_K / 16, PRODUCT)
#define BF16X3_CHAIN_OF(steps, PRODUCT)                             \
    do {                                                            \
        PRODUCT(0, 1, 1, 0);                                        \
        PRODUCT(0, 0, 2, 1);                                        \
        PRODUCT(0, 2, 0, 1);                                        \
        UNROLL for (int k = 1; k < (steps); k++) {                  \
            PRODUCT(k, 1, 1, 1);                                    \
            PRODUCT(k, 0, 2, 1);                                    \
            PRODUCT(k, 2, 0, 1);                                    \
        }                                                           \
        UNROLL for (int k = 0; k < (steps); k++) {                  \
            PRODUCT(k, 0, 1, 1);                                    \
            PRODUCT(k, 1, 0, 1);                                    \
        }                                                           \
        UNROLL for (int k = 0; k < (steps); k++)                    \
            PRODUCT(k, 0, 0, 1);                                    \
    } while (0)

/* The sum of K products, which was computed; or, where that is not finite, as other kernels compute it. */
DEVICE R bf16x3_sum(R sum, GLOBAL const T *a, INDEX a_step, GLOBAL const T *b, INDEX b_step, int K)
{
    if (ABS(sum) <= BF16X3_LARGEST)
        return sum * BF16X3_UNSCALE;
    sum = ZERO;
    NO_UNROLL for (int k = 0; k < K; k++)
        sum = FMA(a[k * a_step], b[k * b_step], sum);
    return sum;
}
