/* gemm_async.cl - C := act(alpha A B + beta C + bias) in f32 and f64, for NVIDIA's sm_80 and up
 *
 * As gemm.cl, but slices of A and B go from device memory to local memory without passing
 * through registers, STAGES - 1 slices ahead, and are read from there four numbers at a time.
 *
 *     a warp: 4 x 8 items               an item: blocks of 4 x 4, apart by what
 *     +-+-+-+-+-+-+-+-+                  all the others need for one block each:
 *     | | | | | | | | |                     ++  ++
 *     +-+-+-+-+-+-+-+-+                     ++  ++
 *     | | | ...                             ++  ++
 *                                           ++  ++
 * so the reads of a warp fall into few words, and into different banks.
 *
 * Sums run along K in order, one fused multiply-add each: the same bits as gemm.cl.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K THR_M THR_N STAGES.
 */
#define ITEMS_M (BLK_M / THR_M)
#define ITEMS_N (BLK_N / THR_N)
#define ITEMS   (ITEMS_M * ITEMS_N)
#define EACH_A  (BLK_M * BLK_K / ITEMS)         /* numbers of a slice that an item brings */
#define EACH_B  (BLK_N * BLK_K / ITEMS)
#define PITCH_A (BLK_M + 4)                     /* lines along K then begin in other banks */
#define PITCH_B (BLK_N + 4)
#define SLICE   (BLK_K * (PITCH_A + PITCH_B))
#define BAND    8

#if THR_M % 4 || THR_N % 4 || ITEMS_M % 4 || ITEMS_N % 8
#error "an item's tile is made of 4 x 4 blocks, a warp of 4 x 8 items"
#endif
#if ITEMS * THR_N > STAGES * SLICE
#error "a row of each item's sums must fit local memory"
#endif
#if BLK_M * BLK_K % ITEMS || BLK_N * BLK_K % ITEMS
#error "the items must share a slice evenly"
#endif

#if TYPE == 3
#define BYTES     8
#define FOUR      double4
#else
#define BYTES     4
#define FOUR      float4
#endif
#define COPY(to, from, there) COPY_ASYNC_(BYTES, to, from, there)
#define COPY_ASYNC_(bytes, to, from, there) COPY_ASYNC(bytes, to, from, there)

/* Four neighbours; p is a multiple of 4 numbers from the start. */
#define READ4(r, p) \
    do { const FOUR v = *(LOCAL const FOUR *)(p); (r)[0] = v.x; (r)[1] = v.y; (r)[2] = v.z; (r)[3] = v.w; } while (0)

/* The place in a slice of the i-th number that this item brings: along k, or across. */
#define SLICE_K(i, along, width) ((along) ? (LOCAL_ID() + (i) * ITEMS) % BLK_K : (LOCAL_ID() + (i) * ITEMS) / (width))
#define SLICE_X(i, along, width) ((along) ? (LOCAL_ID() + (i) * ITEMS) / BLK_K : (LOCAL_ID() + (i) * ITEMS) % (width))

/* Bytes from the start of a matrix: 32 bits without a sign make the shortest addresses. */
#if WIDE
#define OFFSET INT64
#else
#define OFFSET unsigned int
#endif

/* What this item copies of an operand, the same in each slice: from where (at k0 = 0), and to
 * where in the slice.  Past the edge of M or N it takes the last line again: the sums that
 * come of it are stored nowhere.                                                          */
#define PLAN(each, from, to, along, width, pitch, x0, X, x_step, k_step)            \
    UNROLL for (int i = 0; i < each; i++) {                                         \
        const int x = SLICE_X(i, along, width), k = SLICE_K(i, along, width);       \
                                                                                    \
        from[i] = (OFFSET)(MIN_OF(x0 + x, X - 1) * x_step + k * k_step) * BYTES;    \
        to[i] = (k * pitch + x) * BYTES;                                            \
    }
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))

/* One slice of an operand; `left` of k, if not whole: zeros past the edge of K. */
#define BRING_WHOLE(each, to, from, start, g)                                       \
    UNROLL for (int i = 0; i < each; i++)                                           \
        COPY((start) + to[i], (GLOBAL const char *)(g) + from[i], 1)
#define BRING_LAST(each, to, from, start, g, along, width, left)                    \
    UNROLL for (int i = 0; i < each; i++) {                                         \
        const int there = SLICE_K(i, along, width) < (left);                        \
                                                                                    \
        COPY((start) + to[i], (GLOBAL const char *)(g) + (there ? from[i] : 0), there); \
    }

KERNEL(ITEMS) void
gemm_async(int M, int N, int K, VIEW eC, R alpha,
           GLOBAL const T *RESTRICT gA, VIEW vA,
           GLOBAL const T *RESTRICT gB, VIEW vB, R beta,
           GLOBAL T *RESTRICT gC, VIEW vC,
           int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(R, s, STAGES * SLICE);

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int batch = GROUP_ID(0) / (tiles_m * tiles_n);
    const int tile = GROUP_ID(0) % (tiles_m * tiles_n);
    const int band = tile / (BAND * tiles_n);
    const int band_rows = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const int m0 = (band * BAND + tile % (BAND * tiles_n) % band_rows) * BLK_M;
    const int n0 = tile % (BAND * tiles_n) / band_rows * BLK_N;
    const int warp = LOCAL_ID() / 32, lane = LOCAL_ID() % 32;
    const int m1 = (warp / (ITEMS_N / 8) * 4 + lane / 8) * 4;       /* this item's first block */
    const int n1 = (warp % (ITEMS_N / 8) * 8 + lane % 8) * 4;
    const INDEX a_row = (INDEX)vA.s5, a_col = (INDEX)vA.s6, b_row = (INDEX)vB.s5, b_col = (INDEX)vB.s6;
    const int along_a = a_col < a_row, along_b = b_row < b_col;
    const int slices = (K + BLK_K - 1) / BLK_K;
    const unsigned int local_a = LOCAL_ADDRESS(s), local_b = local_a + BLK_K * PITCH_A * BYTES;
    OFFSET from_a[EACH_A], from_b[EACH_B];
    unsigned int to_a[EACH_A], to_b[EACH_B];
    R rC[THR_M][THR_N];

    gA += batch_offset(vA, eC, batch);
    gB += batch_offset(vB, eC, batch);
    PLAN(EACH_A, from_a, to_a, along_a, BLK_M, PITCH_A, m0, M, a_row, a_col);
    PLAN(EACH_B, from_b, to_b, along_b, BLK_N, PITCH_B, n0, N, b_col, b_row);

    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        rC[i][j] = ZERO;

#define BRING(slice)                                                                                \
    do {                                                                                            \
        const unsigned int at = (slice) % STAGES * SLICE * BYTES;                                   \
        const int left = K - (slice) * BLK_K;                                                       \
        GLOBAL const T *a = gA + (slice) * BLK_K * a_col, *b = gB + (slice) * BLK_K * b_row;        \
                                                                                                    \
        if ((slice) < K / BLK_K) {                                                                  \
            BRING_WHOLE(EACH_A, to_a, from_a, local_a + at, a);                                     \
            BRING_WHOLE(EACH_B, to_b, from_b, local_b + at, b);                                     \
        } else if ((slice) < slices) {                                                              \
            BRING_LAST(EACH_A, to_a, from_a, local_a + at, a, along_a, BLK_M, left);                \
            BRING_LAST(EACH_B, to_b, from_b, local_b + at, b, along_b, BLK_N, left);                \
        }                                                                                           \
        copies_commit();                        /* also when empty: groups are counted */           \
    } while (0)

    UNROLL for (int i = 0; i < STAGES - 1; i++)
        BRING(i);

    for (int slice = 0; slice < slices; slice++) {
        LOCAL const R *sA = s + slice % STAGES * SLICE, *sB = sA + BLK_K * PITCH_A;

        COPIES_WAIT(STAGES - 2);
        BARRIER();                              /* this slice is there for all; the one before is read */
        BRING(slice + STAGES - 1);

        UNROLL for (int k = 0; k < BLK_K; k++) {
            R rA[THR_M], rB[THR_N];

            UNROLL for (int i = 0; i < THR_M; i += 4)
                READ4(rA + i, sA + k * PITCH_A + m1 + i * ITEMS_M);
            UNROLL for (int j = 0; j < THR_N; j += 4)
                READ4(rB + j, sB + k * PITCH_B + n1 + j * ITEMS_N);
            UNROLL for (int i = 0; i < THR_M; i++)
            UNROLL for (int j = 0; j < THR_N; j++)
                rC[i][j] = FMA(rA[i], rB[j], rC[i][j]);
        }
    }

    const INDEX c0 = batch_offset(vC, eC, batch), bias0 = batch_offset(vBias, eC, batch);

    const int plain = beta == ZERO && !has_bias && act == 0;
    LOCAL R *mine = s + LOCAL_ID() * THR_N;     /* a row of sums, where a loop can index it */

    BARRIER();
    UNROLL for (int i = 0; i < THR_M; i++) {
        const int m = m0 + m1 + i / 4 * 4 * ITEMS_M + i % 4;
        const INDEX at = c0 + m * (INDEX)vC.s5, bias_at = bias0 + m * (INDEX)vBias.s5;

        if (m < M && plain)
            UNROLL for (int j = 0; j < THR_N; j++) {
                const int n = n0 + n1 + j / 4 * 4 * ITEMS_N + j % 4;

                if (n < N)
                    STORE(gC, at + n * (INDEX)vC.s6, alpha * rC[i][j]);
            }
        else if (m < M) {
            UNROLL for (int j = 0; j < THR_N; j++)
                mine[j] = rC[i][j];
            NO_UNROLL for (int j = 0; j < THR_N; j++) {
                const int n = n0 + n1 + j / 4 * 4 * ITEMS_N + j % 4;

                if (n < N)
                    STORE(gC, at + n * (INDEX)vC.s6,
                          epilogue(mine[j], alpha, beta, gC, at + n * (INDEX)vC.s6,
                                   has_bias, gBias, bias_at + n * (INDEX)vBias.s6, act));
            }
        }
    }
}
