/* gemm_cpu.cl - C := act(alpha A B + beta C + bias), for CPUs
 *
 * A work-group (one work-item) makes rows x cols of C, at most BLK_M x BLK_N.  B is copied, a stretch of
 * BLK_K rows at a time, into panels in local memory, which on a CPU is the cache; they are
 * used for all rows of the work-group.  With PACKED, A was put into panels for everyone by
 * `pack` beforehand; without, each panel is made in local memory just before it is used.  With
 * PACKED_B, so was B by `pack_b`, and nothing is copied.
 *
 *              BLK_N              Panels of B, and the sums that wait while K is longer than
 *            +-+-+-+-+            BLK_K, must fit the second-level cache:
 *     BLK_K  | | | | |              (BLK_K + BLK_M) BLK_N numbers.
 *            +-+-+-+-+
 *     +---+  +-+-+-+-+
 *     +---+  +-+-+-+-+  THR_M     (see tile_cpu.h for the register tile)
 *     +---+  +-+-+-+-+
 *
 * Learnt on a Zen 4 with 1 MiB of second-level cache, f32: the loop of a tile runs at the peak,
 * and a tile costs 120 cycles on top, so BLK_K is as long as the cache allows.  Filling a panel
 * of B in the first tile is nearly free, where a copy of its own cost 7 % at 1024.  Panels of B
 * made for everyone beforehand cost more (they go to memory and back) than they save, unless
 * many products use them: then, of the time of the best other way at 4096 x 4096, they take 0.9
 * at 4 rows (gemm_dot), 0.55 at 16, 0.62 at 24, 0.9 at 64 and 128 (gemm_cpu), 0.98 at 1024.
 *
 * Parameters, from gemm.tune: THR_M THR_V VEC BLK_M BLK_N BLK_K.
 */
#define PACK_K   1024                           /* of K, for one work-group of `pack` */

#if BLK_N % THR_N || BLK_M % THR_M
#error "a register tile must divide the work-group's"
#endif

#if PACKED
#define SPACE_A GLOBAL
#else
#define SPACE_A LOCAL
#endif
#if PACKED_B
#define SPACE_B GLOBAL
#else
#define SPACE_B LOCAL
#endif

PACKING(pack_global, GLOBAL)
PACKING(pack_local, LOCAL)
TILE(tile, SPACE_A, SPACE_B)

/* gP[panel][k][line], s5 of vP being the step from panel to panel; B is given transposed */
#define PACK(name, WIDE)                                                                                          \
KERNEL(1) void                                                                                                    \
name(int lines, int K, VIEW e, GLOBAL const T *RESTRICT g, VIEW v, GLOBAL R *RESTRICT gP, VIEW vP)                \
{                                                                                                                 \
    const int k0 = GROUP_ID(0) * PACK_K, first = GROUP_ID(1) * WIDE;                                              \
    const int depth = K - k0 < PACK_K ? K - k0 : PACK_K, width = lines - first < WIDE ? lines - first : WIDE;     \
    const INDEX across = (INDEX)v.s5, along = (INDEX)v.s6;                                                        \
                                                                                                                  \
    pack_global(gP + batch_offset(vP, e, GROUP_ID(2)) + GROUP_ID(1) * (INDEX)vP.s5 + (INDEX)k0 * WIDE, WIDE, WIDE, width, \
                g + batch_offset(v, e, GROUP_ID(2)) + first * across + k0 * along, across, along, depth);         \
}

PACK(pack, THR_M)
#if PACKED_B
PACK(pack_b, THR_N)
#endif

KERNEL(1) void
gemm_cpu(int M, int N, int K, int rows, int cols, VIEW eC, R alpha,
         GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const R *RESTRICT gP, VIEW vP,
         GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL R *RESTRICT gQ, VIEW vQ, R beta,
         GLOBAL T *RESTRICT gC, VIEW vC,
         int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
#if !PACKED_B
    LOCAL_ARRAY(RV, sB, BLK_K * BLK_N / VEC);
#endif
    LOCAL_ARRAY(RV, sC, BLK_M * BLK_N / VEC);   /* sums that wait, tile by tile */
#if !PACKED
    LOCAL_ARRAY(R, sA, BLK_K * THR_M);
#endif
    const int n0 = GROUP_ID(0) * cols, batch = GROUP_ID(2);
    const int first = GROUP_ID(1) * rows, last = first + rows < M ? first + rows : M;
    const int width = N - n0 < cols ? N - n0 : cols;
#if PACKED_B
    GLOBAL R *const batch_columns = gQ + batch_offset(vQ, eC, batch) + n0 / THR_N * (INDEX)vQ.s5;
#else
    const INDEX b0 = batch_offset(vB, eC, batch) + n0 * (INDEX)vB.s6;
    const int step = last - first > THR_M ? THR_V : 0;      /* nobody reads the panel again: no need to keep it */
#endif
    const INDEX c0 = batch_offset(vC, eC, batch) + n0 * (INDEX)vC.s6;
    const INDEX bias0 = batch_offset(vBias, eC, batch) + n0 * (INDEX)vBias.s6;
#if PACKED
    GLOBAL const R *batch_panels = gP + batch_offset(vP, eC, batch);
#else
    const INDEX a0 = batch_offset(vA, eC, batch);
#endif
    int k0 = 0;

    do {                                        /* once also when K is 0 */
        const int depth = K - k0 < BLK_K ? K - k0 : BLK_K;
        const int is_last = k0 + depth >= K;

        for (int m0 = first; m0 < last; m0 += THR_M) {
            const int height = last - m0 < THR_M ? last - m0 : THR_M;
#if PACKED
            GLOBAL const R *panel = batch_panels + m0 / THR_M * (INDEX)vP.s5 + k0 * THR_M;
#else
            LOCAL R *panel = sA;

            pack_local(panel, THR_M, THR_M, height, gA + a0 + m0 * (INDEX)vA.s5 + k0 * (INDEX)vA.s6,
                       (INDEX)vA.s5, (INDEX)vA.s6, depth);
#endif
            for (int n = 0; n < width; n += THR_N) {
                LOCAL RV *waiting = K <= BLK_K ? sC : sC + (m0 - first) * (BLK_N / VEC) + n / VEC * THR_M;
                const int count = width - n < THR_N ? width - n : THR_N;
#if PACKED_B
                GLOBAL RV *columns = (GLOBAL RV *)(batch_columns + n / THR_N * (INDEX)vQ.s5 + (INDEX)k0 * THR_N);

                TILE_FITTED(tile, height, count, waiting, panel, columns, depth, k0 == 0);
#else
                LOCAL RV *columns = sB + n / VEC * depth;
                GLOBAL const T *from = gB + b0 + k0 * (INDEX)vB.s5 + n * (INDEX)vB.s6;

                if (m0 == first && vB.s6 == 1 && count == THR_N)
                    TILE_FILLING(tile, height, waiting, panel, columns, step, from, (INDEX)vB.s5, depth, k0 == 0);
                else {
                    if (m0 == first)
                        pack_local((LOCAL R *)columns, THR_N, THR_N, count, from, (INDEX)vB.s6, (INDEX)vB.s5, depth);
                    TILE_FITTED(tile, height, count, waiting, panel, columns, depth, k0 == 0);
                }
#endif
                if (is_last)
                    for (int i = 0; i < height; i++)
                        tile_store_row(waiting + i * THR_V, 0, count, gC,
                                       c0 + (m0 + i) * (INDEX)vC.s5 + n * (INDEX)vC.s6, (INDEX)vC.s6, alpha, beta, has_bias, gBias,
                                       bias0 + (m0 + i) * (INDEX)vBias.s5 + n * (INDEX)vBias.s6,
                                       (INDEX)vBias.s6, act);
            }
        }
        k0 += depth;
    } while (k0 < K);
}
