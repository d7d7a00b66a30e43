/* cl/gemm/cpu_strip.cl - C := act(alpha A B + beta C + bias), for CPUs, where B is N-major and in
 * the caches, and M is 1 to 4
 *
 * A strip of C, all rows and a few vectors of columns, stays in registers for the whole of K. B is
 * read once, a few vectors of each row at a time, and A in place: nothing is copied, and no partial
 * sums are stored.
 *
 *                 N                       such a product takes a few microseconds, and so
 *           +---+===+---+                   - it has few arguments, since each costs time at
 *         K |   | B |   |                     every launch, views most
 *           +---+===+---+                   - each thread takes the strips that it took last time,
 *     A --- +---+===+---+                     which are in its own second-level cache; then
 *       --- |   | C |   |  1 to 4 rows        what the others have left
 *           +---+===+---+
 *            strip
 *
 * Sums run in order of k, one fused multiply-add each: bit-identical on every device.
 *
 * There is no activation: compilers would keep the constants of its polynomials in registers for
 * all strips, and spill accumulators.
 *
 * Parameters, from gemm.tune: VEC, and the vectors of a strip with 1 row, 2 rows, more: STRIP_1 STRIP_2
 * STRIP_4. That many times the rows, and one for each row, must fit the registers.
 */
#define ROWS_MOST 4

#if STRIP_1 < STRIP_2 || STRIP_2 < STRIP_4
#error "a strip with more rows must not be wider"
#endif

/* ---- the affinity of threads and strips ------------------------------------------- */

/* `workers` is an array of cache lines: the first counts the threads that have a worker number; then comes a
 * slot for each hash of a thread, which holds its number; then, for each worker, how many of its strips are
 * taken.                                                                                           */
#define CACHE_LINE 16                           /* ints */
#define SLOTS      64

/* The worker number of a thread. A thread of a CPU has local memory of its own, whose address identifies it.
 * Two threads with the same hash share a number, which is slower, but correct.                     */
DEVICE int worker_of(GLOBAL int *workers, UINT32 thread, int count)
{
    GLOBAL int *const slot = workers + CACHE_LINE * (1 + (int)(thread * 2654435761u / (1u << 26)));
    int worker = ATOMIC_ADD(slot, 0);

    if (!worker) {
        worker = 1 + ATOMIC_ADD(workers, 1);
        ATOMIC_ADD(slot, worker);
    }
    return (int)((UINT32)(worker - 1) % (UINT32)count);
}

/* ---- the product ------------------------------------------------------------------- */

/* sums := A B, for `rows` x `vectors`, which are constant at each call. Past `height` the last row is read
 * again.                                                                                           */
DEVICE void multiply(const int rows, const int vectors, LOCAL RV *RESTRICT sums, GLOBAL const T *RESTRICT a,
                     INDEX a_row, INDEX a_step, int height, GLOBAL const T *RESTRICT b, INDEX row, int K)
{
    RV rC[ROWS_MOST][STRIP_1];

    UNROLL for (int i = 0; i < ROWS_MOST; i++)
    UNROLL for (int j = 0; j < STRIP_1; j++)
        rC[i][j] = (RV)(ZERO);
    for (int k = 0; k < K; k++) {
        RV rA[ROWS_MOST];

        UNROLL for (int i = 0; i < ROWS_MOST; i++)
            if (i < rows)
                rA[i] = (RV)(LOAD(a, (i < height ? i : height - 1) * a_row));
        UNROLL for (int j = 0; j < STRIP_1; j++)
            if (j < vectors) {
                const RV rB = LOAD_VECTOR(VEC, b + j * VEC);

                UNROLL for (int i = 0; i < ROWS_MOST; i++)
                    if (i < rows)
                        rC[i][j] = FMA(rA[i], rB, rC[i][j]);
            }
        a += a_step;
        b += row;
    }
    UNROLL for (int i = 0; i < ROWS_MOST; i++)
    UNROLL for (int j = 0; j < STRIP_1; j++)
        if (i < rows && j < vectors)
            sums[i * vectors + j] = rC[i][j];
}

/* The views hold:
 *     size  M, N, K, work-groups, vectors of a strip, where `workers` begins in `counters`
 *     vAB   A: start, row to row, along a row      B: start, row to row  */
KERNEL(1) void
gemm_cpu_strip(VIEW size, VIEW vAB, VIEW eC, R alpha,
               GLOBAL const T *RESTRICT gA, GLOBAL const T *RESTRICT gB, GLOBAL int *RESTRICT counters,
               OUTPUT_PARAMS)
{
    LOCAL_ARRAY(RV, sums, ROWS_MOST * STRIP_1);
    const int M = (int)size.s0, N = (int)size.s1, K = (int)size.s2, groups = (int)size.s3;
    const int vectors = (int)size.s4, cols = vectors * VEC, row_strips = (N + cols - 1) / cols;
    const int all = (M + ROWS_MOST - 1) / ROWS_MOST * row_strips;
    GLOBAL int *const workers = counters + size.s5;
    const struct output c = OUTPUT(0);
    const int own = worker_of(workers, LOCAL_ADDRESS(sums), groups);

    for (int i = 0; i < groups; i++) {
        const int worker = own + i < groups ? own + i : own + i - groups;
        const int first = (int)((INT64)all * worker / groups);
        const int count = (int)((INT64)all * (worker + 1) / groups) - first;
        GLOBAL int *const taken = workers + CACHE_LINE * (1 + SLOTS + worker);
        int mine;

        while ((mine = ATOMIC_ADD(taken, 1)) < count) {
            const int m0 = (first + mine) / row_strips * ROWS_MOST, n0 = (first + mine) % row_strips * cols;
            const int height = M - m0 < ROWS_MOST ? M - m0 : ROWS_MOST, n = n0 + cols <= N ? n0 : N - cols;
            GLOBAL const T *const a = gA + (INDEX)vAB.s0 + m0 * (INDEX)vAB.s1;
            GLOBAL const T *const b = gB + (INDEX)vAB.s3 + n;
            const INDEX a_row = (INDEX)vAB.s1, a_step = (INDEX)vAB.s2, b_row = (INDEX)vAB.s4;

            if (vectors == 1)
                multiply(ROWS_MOST, 1, sums, a, a_row, a_step, height, b, b_row, K);
            else if (M == 1)
                multiply(1, STRIP_1, sums, a, a_row, a_step, 1, b, b_row, K);
            else if (M == 2)
                multiply(2, STRIP_2, sums, a, a_row, a_step, 2, b, b_row, K);
            else if (height < ROWS_MOST)
                multiply(ROWS_MOST - 1, STRIP_4, sums, a, a_row, a_step, height, b, b_row, K);
            else
                multiply(ROWS_MOST, STRIP_4, sums, a, a_row, a_step, height, b, b_row, K);
            for (int m = 0; m < height; m++)
                for (int at = n0 - (n0 - n) % VEC; at < n + cols; at += VEC) {
                    const int skip = at < n0 ? n0 - at : 0;

                    tile_store_row(sums + m * vectors + (at - n) / VEC, skip, VEC, &c, m0 + m, at, 0);
                }
        }
        if (mine == count + groups - 1)         /* every work-group has seen the end: reset to 0 */
            ATOMIC_ADD(taken, -(count + groups));
    }
}
