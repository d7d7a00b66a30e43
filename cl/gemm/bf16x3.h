/* bf16x3.h - f32 numbers in three parts of bf16, for the kernels that multiply those: gemm_split.cl says how
 *
 * What an operand's parts look like in memory, the order of the products, and what becomes of sums that
 * are not finite.
 */
#define PARTS   3

#define SCALE   65536.0f
#define UNSCALE (1.0f / 4294967296.0f)          /* of a product */
#define LARGEST 3.40282347e38f

/* Eight of k of one line; zeros where there are none.  Loads have no branch around them. */
DEVICE void load_eight(R x[8], GLOBAL const T *line, INDEX step, int k, int K, int there)
{
    if (step == 1 && k + 8 <= K && (unsigned INT64)(line + k) % 16 == 0) {
        GLOBAL const float4 *from = (GLOBAL const float4 *)(line + k);
        const float4 low = from[0], high = from[1];

        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
    } else {
        UNROLL for (int i = 0; i < 8; i++)
            x[i] = line[(k + i < K ? k + i : K - 1) * step];
    }
    UNROLL for (int i = 0; i < 8; i++)
        x[i] = there && k + i < K ? x[i] * SCALE : ZERO;
}

/* A has `lines` rows, its last stride along K, made whole multiples of `whole`; B is given transposed.
 * p: panels from batch to batch; s7: where the first begins, in 16 bytes.  256 items, of this group, make
 * `span` of K.                                                                                       */
DEVICE void
split_lines(int group, int span, int lines, int K, int whole, int per, VIEW e,
            GLOBAL const T *RESTRICT g, VIEW v, GLOBAL uint4 *RESTRICT parts, VIEW p)
{
    const int steps = (K + whole - 1) / whole * (whole / 16), columns = 2 * steps;
    const int panels = (lines + per - 1) / per, wide = span / 8, pieces = (columns + wide - 1) / wide;
    const int piece = group % pieces, panel = group / pieces % panels;
    const int batch = group / pieces / panels;
    const INDEX line_step = (INDEX)v.s5, k_step = (INDEX)v.s6;
    const int across = line_step < k_step;      /* neighbours read what lies side by side */

    g += batch_offset(v, e, batch);
    parts += p.s7 + (batch_offset(p, e, batch) + panel) * (INT64)steps * 6 * per;
    NO_UNROLL for (int i = LOCAL_ID(); i < per * wide; i += 256) {
        const int line = across ? i % per : i / (8 * wide) * 8 + i % 8;
        const int column = piece * wide + (across ? i / per : i / 8 % wide);
        const int at = panel * per + line;
        GLOBAL uint4 *to = parts + (column / 2 * 6 + column % 2) * (INT64)per + line;
        R x[8];

        if (column >= columns)
            continue;
        load_eight(x, g + (at < lines ? at : lines - 1) * line_step, k_step, column * 8, K, at < lines);
        UNROLL for (int part = 0; part < PARTS; part++) {
            unsigned int u[4];
            uint4 packed;

            UNROLL for (int j = 0; j < 4; j++) {
                u[j] = bf16_pair_of(x[2 * j], x[2 * j + 1]);
                x[2 * j] -= BITS_FLOAT(u[j] << 16);
                x[2 * j + 1] -= BITS_FLOAT(u[j] & 0xffff0000u);
            }
            packed.x = u[0], packed.y = u[1], packed.z = u[2], packed.w = u[3];
            to[part * 2 * per] = packed;
        }
    }
}

/* The chain of one slice: d = its products, the small ones first.  PRODUCT(k, i, j, add) is that of parts
 * i and j of the k-th 16 of K.                                                                       */
#define CHAIN()                                                     \
    do {                                                            \
        PRODUCT(0, 1, 1, "0");                                      \
        PRODUCT(0, 0, 2, "1");                                      \
        PRODUCT(0, 2, 0, "1");                                      \
        UNROLL for (int k = 1; k < BLK_K / 16; k++) {               \
            PRODUCT(k, 1, 1, "1");                                  \
            PRODUCT(k, 0, 2, "1");                                  \
            PRODUCT(k, 2, 0, "1");                                  \
        }                                                           \
        UNROLL for (int k = 0; k < BLK_K / 16; k++) {               \
            PRODUCT(k, 0, 1, "1");                                  \
            PRODUCT(k, 1, 0, "1");                                  \
        }                                                           \
        UNROLL for (int k = 0; k < BLK_K / 16; k++)                 \
            PRODUCT(k, 0, 0, "1");                                  \
    } while (0)

/* One element, as the other kernels compute it. */
DEVICE R plain_sum(GLOBAL const T *a, INDEX a_step, GLOBAL const T *b, INDEX b_step, int K)
{
    R sum = ZERO;

    NO_UNROLL for (int k = 0; k < K; k++)
        sum = FMA(a[k * a_step], b[k * b_step], sum);
    return sum;
}
