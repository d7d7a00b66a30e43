/* cl/gemm/bf16x3_rows.h - products in three bf16 parts whose left operand is split on the way
 *
 * TMA brings BLK_N rows of an f32 operand B, 128 bytes of K each, and panels of BLK_M rows of A in parts; the
 * parts of B are made in registers, from which wgmma takes its left operand (cl/gemm/bf16x3_rows.cl has a
 * drawing).  A lane has two adjacent rows of B, n and n + 1 of n = row_of_b(), and BLK_M / 2 accumulators:
 * those of its first row, and of the second, are where acc_*() of cl/tile/accumulator.h have the rows m and
 * m + 8.  Slices are multiplied in pairs, and pairs of all tiles are divided evenly among work units.
 *
 * Takes: BLK_M, BLK_K, STAGES, WARPGROUPS; MN_MAJOR_B: 1 where B is N-major; cl/gemm/bf16x3.h,
 *        cl/tile/pipeline.h, accumulator.h; atoms/nvidia/wgmma.h, memory.h.
 * Gives: BLK_N, BYTES_A, BYTES_B, STAGE, ACCUMULATORS, PARTS_OF_B, MOVES; row_of_b(), load_parts(),
 *        multiply(); unit_begins(), unit_of().
 */
#define BLK_N        (64 * WARPGROUPS)
#define BYTES_A      (BLK_K / 16 * BF16X3_STEP(BLK_M))
#define BYTES_B      (BLK_N * 128)
#define STAGE        (BYTES_A + BYTES_B)        /* B first: its rows begin at multiples of 1024 */
#define ACCUMULATORS (BLK_M / 2)                /* of a work-item, in each of the two sets */
#define PARTS_OF_B   (BLK_K / 16 * BF16X3_PARTS * 4)    /* pairs of elements of a slice, of a work-item */
#define MOVES        (BLK_M > 64 && WARPGROUPS > 1)     /* registers: else there are enough */

/* The parts of two elements, adjacent along K: u[0], u[4], ... */
DEVICE void split_pair(UINT32 *u, R x, R y)
{
    x *= BF16X3_SCALE;
    y *= BF16X3_SCALE;
    UNROLL for (int part = 0; part < BF16X3_PARTS; part++)
        u[4 * part] = bf16x3_part(&x, &y);
}

/* The first of a lane's two rows. */
DEVICE int row_of_b(int me)
{
    return me / 32 * 16 + me % 32 / 4 * 2;
}

/* This lane's elements of the slice of B at s, in parts: u[(k * 3 + part) * 4 ...] of the k-th 16 of K. */
DEVICE void load_parts(UINT32 u[PARTS_OF_B], struct pipeline p, LOCAL const unsigned char *s, int me)
{
    const int n = row_of_b(me), t = me % 4;

    consumer_wait(p);
    s += p.stage * STAGE;
    UNROLL for (int k = 0; k < BLK_K / 16; k++)
        UNROLL for (int high = 0; high < 2; high++) {
            UINT32 *const to = u + k * BF16X3_PARTS * 4 + high * 2;

            if (MN_MAJOR_B) {
                const int row = k * 16 + high * 8 + t * 2, vector = n % 32 / 4;
                LOCAL const unsigned char *at = s + n / 32 * 4096 + n % 4 * 4 + row * 128;
                const float2 x = *(LOCAL const float2 *)(at + (vector ^ (row % 8)) * 16);
                const float2 y = *(LOCAL const float2 *)(at + 128 + (vector ^ (row % 8 + 1)) * 16);

                split_pair(to, x.x, y.x);
                split_pair(to + 1, x.y, y.y);
            } else {
                const int vector = k * 4 + high * 2 + t / 2;
                LOCAL const unsigned char *at = s + n * 128 + t % 2 * 8;
                const float2 x = *(LOCAL const float2 *)(at + (vector ^ (n % 8)) * 16);
                const float2 y = *(LOCAL const float2 *)(at + 128 + (vector ^ (n % 8 + 1)) * 16);

                split_pair(to, x.x, x.y);
                split_pair(to + 1, y.x, y.y);
            }
        }
}

#define PRODUCT(k, i, j, add) \
    WGMMA_RS(BLK_M, WGMMA_BF16, WGMMA_MAJOR_B(0), d, u + ((k) * BF16X3_PARTS + (i)) * 4, \
             wgmma_columns(a + (k) * BF16X3_STEP(BLK_M) + (j) * BF16X3_PART(BLK_M), BLK_M), add)

/* sum += the slice at p, whose parts of B are in u; meanwhile, those of the slice at next come to v. */
DEVICE void multiply(float *sum, float *d, struct pipeline p, const UINT32 *u, struct pipeline next,
                     UINT32 *v, UINT32 stages, LOCAL const unsigned char *s, int me)
{
    const UINT32 a = stages + p.stage * STAGE + BYTES_B;

    wgmma_begin();
    BF16X3_CHAIN(PRODUCT);
    wgmma_commit();
    load_parts(v, next, s, me);
    WGMMA_WAIT(BLK_M, d, "0");
    if (me % 32 == 0)                           /* each warp has read its part of B */
        consumer_release(p);
    UNROLL for (int i = 0; i < ACCUMULATORS; i++)
        sum[i] += d[i];
}

/* Pairs of slices of a work unit: the first `more` units have each + 1, the others `each`.  The first pair
 * of a unit, and the unit of pair `at`. */
DEVICE int unit_begins(int unit, int each, int more)
{
    return unit * each + (unit < more ? unit : more);
}

DEVICE int unit_of(int at, int each, int more)
{
    const int longer = more * (each + 1);

    return at < longer ? at / (each + 1) : more + (at - longer) / each;
}
