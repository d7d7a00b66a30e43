/* cpu_strip.cl - C := act(alpha A B + beta C + bias), for CPUs, where rows of B run along memory,
 * M is 1 to 4, and B is in the caches
 *
 * A strip of C, all rows and some vectors of columns, stays in registers for the whole of K; B is read
 * once, a stretch of each row at a time, and A where it lies: nothing is copied, nothing waits.
 *
 *                 N                       such a product takes a few microseconds, and so
 *           +---+===+---+                   - there are few arguments: each costs PoCL 0.05 us
 *         K |   | B |   |                     a launch, a view 0.1
 *           +---+===+---+                   - each thread takes the strips that it took last time,
 *     A --- +---+===+---+                     which are in its own second-level cache; then
 *       --- |   | C |   |  1 to 4 rows        what the others have left
 *           +---+===+---+
 *            strip
 *
 * Sums run along K in order, one fused multiply-add each: the same bits everywhere.
 *
 * Learnt on two cores of Zen 4, 512 x 512, beside gemm_rank: 1 row 10.2 us became 8.5, 2 rows 11.2 and
 * 8.9, 4 rows 15.2 and 13.0; of 1024 x 512, 18.5 and 15, 21.7 and 15.4, 28 and 23.  There is no
 * activation: compilers keep the constants of its polynomials in registers for all strips, and spill
 * sums (4 rows: 26 us).
 *
 * Parameters, from gemm.tune: VEC, and the vectors of a strip with 1 row, 2 rows, more: STRIP_1 STRIP_2
 * STRIP_4.  So many times the rows, and one for each row, must fit the registers.
 */
#define ROWS_MOST 4

#if STRIP_1 < STRIP_2 || STRIP_2 < STRIP_4
#error "with more rows a strip is no wider"
#endif

/* ---- who takes which strips ------------------------------------------------------ */

/* `seats`, in lines of a cache: the first counts threads that have a seat; then a slot for each hash of
 * a thread, with its seat; then for each seat how many of its strips are taken.               */
#define LINE  16
#define SLOTS 64

/* A thread of a CPU has local memory of its own: its address tells threads apart.  Two that have the same
 * hash share a seat, and are only slower.                                                         */
DEVICE int seat_of(GLOBAL int *seats, UINT32 thread, int count)
{
    GLOBAL int *const slot = seats + LINE * (1 + (int)(thread * 2654435761u / (1u << 26)));
    int seat = ATOMIC_ADD(slot, 0);

    if (!seat) {
        seat = 1 + ATOMIC_ADD(seats, 1);
        ATOMIC_ADD(slot, seat);
    }
    return (int)((UINT32)(seat - 1) % (UINT32)count);
}

/* ---- the product ------------------------------------------------------------------- */

/* sums := A B, `rows` x `vectors`, constants where this is expanded; past `height`, the last row again. */
DEVICE void multiply(const int rows, const int vectors, LOCAL RV *RESTRICT sums, GLOBAL const T *RESTRICT a,
                     INDEX across, INDEX along, int height, GLOBAL const T *RESTRICT b, INDEX row, int K)
{
    RV rC[ROWS_MOST][STRIP_1];

    UNROLL for (int i = 0; i < ROWS_MOST; i++)
    UNROLL for (int j = 0; j < STRIP_1; j++)
        rC[i][j] = (RV)(ZERO);
    for (int k = 0; k < K; k++) {
        RV rA[ROWS_MOST];

        UNROLL for (int i = 0; i < ROWS_MOST; i++)
            if (i < rows)
                rA[i] = (RV)(LOAD(a, (i < height ? i : height - 1) * across));
        UNROLL for (int j = 0; j < STRIP_1; j++)
            if (j < vectors) {
                const RV rB = LOAD_VECTOR(VEC, b + j * VEC);

                UNROLL for (int i = 0; i < ROWS_MOST; i++)
                    if (i < rows)
                        rC[i][j] = FMA(rA[i], rB, rC[i][j]);
            }
        a += along;
        b += row;
    }
    UNROLL for (int i = 0; i < ROWS_MOST; i++)
    UNROLL for (int j = 0; j < STRIP_1; j++)
        if (i < rows && j < vectors)
            sums[i * vectors + j] = rC[i][j];
}

/* The views hold, in this order:
 *     size  M, N, K, work-groups, vectors of a strip, where the seats begin
 *     vAB   A: start, row to row, along a row      B: start, row to row
 *     vC    C: start, row to row, along a row      bias: start, row to row, along a row, is there one  */
KERNEL(1) void
gemm_strip(VIEW size, VIEW vAB, VIEW vC, R alpha, R beta,
           GLOBAL const T *RESTRICT gA, GLOBAL const T *RESTRICT gB, GLOBAL T *RESTRICT gC,
           GLOBAL const T *RESTRICT gBias, GLOBAL int *RESTRICT counters)
{
    LOCAL_ARRAY(RV, sums, ROWS_MOST * STRIP_1);
    const int M = (int)size.s0, N = (int)size.s1, K = (int)size.s2, groups = (int)size.s3;
    const int vectors = (int)size.s4, cols = vectors * VEC, across = (N + cols - 1) / cols;
    const int all = (M + ROWS_MOST - 1) / ROWS_MOST * across;
    GLOBAL int *const seats = counters + size.s5;
    const int own = seat_of(seats, LOCAL_ADDRESS(sums), groups);

    for (int i = 0; i < groups; i++) {
        const int seat = own + i < groups ? own + i : own + i - groups;
        const int first = (int)((INT64)all * seat / groups);
        const int count = (int)((INT64)all * (seat + 1) / groups) - first;
        GLOBAL int *const taken = seats + LINE * (1 + SLOTS + seat);
        int mine;

        while ((mine = ATOMIC_ADD(taken, 1)) < count) {
            const int m0 = (first + mine) / across * ROWS_MOST, n0 = (first + mine) % across * cols;
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
                    const INDEX c = (INDEX)vC.s0 + (m0 + m) * (INDEX)vC.s1 + at * (INDEX)vC.s2;
                    const INDEX bias = (INDEX)vC.s3 + (m0 + m) * (INDEX)vC.s4 + at * (INDEX)vC.s5;

                    tile_store_row(sums + m * vectors + (at - n) / VEC, skip, VEC, gC, c, (INDEX)vC.s2, alpha,
                                   beta, (int)vC.s6, gBias, bias, (INDEX)vC.s5, 0);
                }
        }
        if (mine == count + groups - 1)         /* all have seen that there are no more: as it was */
            ATOMIC_ADD(taken, -(count + groups));
    }
}
