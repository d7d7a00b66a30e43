/* cl/gemm/tf32.h - products in tf32 whose left operand is M-major, and goes through registers
 *
 * wgmma takes tf32 from local memory only where it is K-major.  So while the tensor cores multiply a slice,
 * the next one's A is read to other registers.
 *
 *     32 elements of M are a row of 128 bytes; its 16-byte vectors    0 1 2 3 4 5 6 7   row k = 0
 *     are swizzled by k on the way.  Rows of the product that are     1 0 3 2 5 4 7 6         1
 *     8 apart for wgmma are given vectors 4 apart, so that a          2 3 0 1 6 7 4 5         2
 *     warp's 32 reads are in 32 banks.                                ...
 *
 * Takes: COLUMNS, of B and of a tile; BLK_K; STAGES; STAGE, its bytes, of which A comes first, 64 rows for
 *        each warpgroup; cl/tile/pipeline.h, operand.h; atoms/nvidia/wgmma.h.
 * Gives: tf32_first_row(), tf32_issue(), tf32_issue_next(), tf32_multiply(); tf32_transpose().
 */

/* This lane's first row of its warpgroup's 64, of an M-major A.  The other one is 4 below. */
DEVICE int tf32_first_row(int me)
{
    const int warp = me % 128 / 32, g = me % 32 / 4;

    return warp / 2 * 32 + g / 4 * 16 + warp % 2 * 8 + g % 4;
}

/* Issues the products of a slice, whose M-major A is at s + p.stage * STAGE: it comes to registers x. */
DEVICE void tf32_issue(float *d, unsigned int x[BLK_K / 2], struct pipeline p, LOCAL const unsigned char *s,
                       UINT32 b, int me, const int first)
{
    LOCAL const unsigned int *const from = (LOCAL const unsigned int *)(s + p.stage * STAGE);

    b += p.stage * (STAGE / 16);
    consumer_wait(p);
    UNROLL for (int i = 0; i < 4; i++) {
        const int m = tf32_first_row(me) + i % 2 * 4, k = me % 4 + i / 2 * 4;
        const int at = m / 32 * 1024 + k * 32 + ((m % 32 / 4) ^ k) * 4 + m % 4;

        UNROLL for (int j = 0; j < BLK_K / 8; j++)
            x[j * 4 + i] = from[at + j * 256];
    }
    wgmma_begin();
    UNROLL for (int k = 0; k < BLK_K / 8; k++)
        WGMMA_RS(COLUMNS, WGMMA_TF32, "", d, x + 4 * k, operand_product(b, 0, COLUMNS, k), !first || k > 0);
    wgmma_commit();
}

/* ... of the slice after p's, and releases that of p. */
DEVICE struct pipeline tf32_issue_next(float *d, unsigned int x[BLK_K / 2], struct pipeline p,
                                       LOCAL const unsigned char *s, UINT32 b, int me)
{
    const struct pipeline before = p;

    p = pipe_next(p, STAGES);
    tf32_issue(d, x, p, s, b, me, 0);
    WGMMA_WAIT(COLUMNS, d, "1");
    if (me % 32 == 0)                           /* each warp has read its part of A */
        consumer_release(before);
    return p;
}

/* The products of a tile after its first slice; count is even. */
DEVICE struct pipeline tf32_multiply(float *d, unsigned int even[BLK_K / 2], unsigned int odd[BLK_K / 2],
                                     struct pipeline p, LOCAL const unsigned char *s, UINT32 b, int me,
                                     int count)
{
    for (int i = 1; i + 1 < count; i += 2) {
        p = tf32_issue_next(d, odd, p, s, b, me);
        p = tf32_issue_next(d, even, p, s, b, me);
    }
    p = tf32_issue_next(d, odd, p, s, b, me);
    WGMMA_WAIT(COLUMNS, d, "0");
    if (me % 32 == 0)
        consumer_release(p);
    return pipe_next(p, STAGES);
}

/* By a warp: a swizzled block of 32 rows of 32 elements, at a multiple of 1024, becomes its transposed.  Rows
 * are read in one bank each lane; the vectors that 8 lanes store are in different ones. */
DEVICE void tf32_transpose(UINT32 at, int lane)
{
    UINT32 x[32];

    UNROLL for (int i = 0; i < 32; i++)
        LOAD_B32(x[i], at + i * 128 + ((lane / 4) ^ i % 8) * 16 + lane % 4 * 4);
    warp_meet();                                /* all have read */
    UNROLL for (int i = 0; i < 8; i++)
        STORE_B32X4(at + lane * 128 + (i ^ lane % 8) * 16, x[4 * i], x[4 * i + 1], x[4 * i + 2],
                    x[4 * i + 3]);
}
