/* cl/peak.cl - the roofs of a device's roofline, as kernels reach them:
 *
 *   fma_peak   fused multiply-adds in CHAINS independent chains, enough to hide their latency
 *   copy       reads and writes each element once
 *   reading    reads each element once, and writes nothing: products that read a matrix once do
 *
 * ITEMS       work-items per work-group; 1 on CPUs
 * FMA_WIDTH   elements per vector in fma_peak; COPY_WIDTH: in copy and reading
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

typedef VECTOR(R, COPY_WIDTH) copy_vector;

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

        VSTORE_ALIGNED(copy_vector, y + at, VLOAD_ALIGNED(copy_vector, x + at));
    }
}

/* As copy.  Nothing is stored unless a sum is what none should be: the compiler cannot know. */
KERNEL(ITEMS) void reading(GLOBAL const R *x, GLOBAL R *y, int rounds, int first)
{
    copy_vector sum = (copy_vector)(ZERO);
    R each[COPY_WIDTH];

    for (int r = 0; r < rounds; r++) {
        const INT64 at = (((INT64)(first + GROUP_ID(0)) * rounds + r) * ITEMS + LOCAL_ID()) * COPY_WIDTH;

        sum = sum + VLOAD_ALIGNED(copy_vector, x + at);
    }
    VSTORE(COPY_WIDTH, each, sum);
    UNROLL for (int i = 0; i < COPY_WIDTH; i++)
        if (each[i] == (R)(1.2345e30f))
            y[LOCAL_ID()] = each[i];
}
