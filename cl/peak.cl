/* cl/peak.cl - the two roofs of a device's roofline, as kernels reach them:
 *
 *   fma_peak   fused multiply-adds in CHAINS independent chains, enough to hide their latency
 *   copy       reads and writes each element once
 *
 * ITEMS       work-items per work-group; 1 on CPUs
 * FMA_WIDTH   elements per vector in fma_peak; COPY_WIDTH: in copy
 * CHAINS      independent chains per work-item
 *
 * Method: S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009.
 */
#if FMA_WIDTH == 1
typedef R fma_vector;
#define STORE_FMA(p, v) (*(p) = (v))
#else
typedef VECTOR(R, FMA_WIDTH) fma_vector;
#define STORE_FMA(p, v) VSTORE(FMA_WIDTH, p, v)
#endif

/* With a below 1 and b small the chains stay finite and away from 0, and the compiler cannot fold them. */
KERNEL(ITEMS) void fma_peak(GLOBAL R *y, int rounds, R a, R b)
{
    const fma_vector va = (fma_vector)(a), vb = (fma_vector)(b);
    fma_vector c[CHAINS];

    UNROLL for (int i = 0; i < CHAINS; i++)
        c[i] = (fma_vector)((R)(LOCAL_ID() + i));
    for (int r = 0; r < rounds; r++)
        UNROLL for (int i = 0; i < CHAINS; i++)
            c[i] = FMA(c[i], va, vb);
    UNROLL for (int i = 1; i < CHAINS; i++)
        c[0] = c[0] + c[i];
    STORE_FMA(y + (GROUP_ID(0) * ITEMS + LOCAL_ID()) * FMA_WIDTH, c[0]);
}

/* first: the number of the first work-group's part. */
KERNEL(ITEMS) void copy(GLOBAL const R *x, GLOBAL R *y, int rounds, int first)
{
    for (int r = 0; r < rounds; r++) {
        const INT64 at = (((INT64)(first + GROUP_ID(0)) * rounds + r) * ITEMS + LOCAL_ID()) * COPY_WIDTH;

        VSTORE(COPY_WIDTH, y + at, VLOAD(COPY_WIDTH, x + at));
    }
}
