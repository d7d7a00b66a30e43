/* pipelined.cl - C := act(alpha A B + beta C + bias) in f32 and f64, for NVIDIA's sm_80 and up
 *
 * As gemm.cl, but slices of A and B go from device memory to local memory without passing
 * through registers, STAGES - 1 slices ahead; and from there to registers one k ahead of the
 * multiply-adds, across slices too: a slice's last products are made after the barrier that
 * comes before the next one, so nobody waits for the first numbers of a slice.
 *
 *     a warp: 4 x 8 items, in pairs        an item: blocks of 4 x 4, apart by what
 *     +--+--+--+--+--+--+--+--+            all the others of its warp need for one:
 *     | 0| 2| 4| 6| 8|10|12|14|               ++  ++
 *     | 1| 3| 5| 7| 9|11|13|15|               ++  ++
 *     |16|18| ...                             ++  ++
 *                                             ++  ++
 * so half a warp reads at most 128 different bytes at a time, which local memory gives at once.
 *
 * Sums run along K in order, one fused multiply-add each: the same bits as gemm.cl.  What is
 * left of K after whole slices comes last, by itself.  A tile at the edge of C with only a few
 * numbers in it has a loop of its own: else 4097 would cost as much as 4352.
 *
 * ACROSS_A, ACROSS_B: A's lines (B's) lie across K.  BY16_A, BY16_B: and are copied 16 bytes at a
 * time.  Lines along K are consecutive, and copied number by number: they are turned on the way.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K THR_M THR_N STAGES.
 *
 * Learnt on an H100, where each instruction that is no multiply-add takes the place of one: 2048 of
 * 2193 in the loop are, for a slice of 16.  Reading ahead was worth 15 to 20 %, slices of 16 instead
 * of 8 another 3 %, copies of 16 bytes instead of 4 another 3 to 5 %.  What is left seems to be the
 * 24 numbers that an item reads for 128 products: cuBLAS's kernel, at the same ratio, is no faster.
 * Keeping lines along K as they lie, to be read four k's at a time, was 10 % slower: the numbers of
 * one k then fall into one of two banks of registers; and for one operand alone, in whatever order, the
 * assembler makes three times the bank conflicts.  What gives it room: sums that need not be neighbours
 * (see the end), and copies spread over the products.  More in results/h100/notes.md.
 *
 * Method: the pipeline of NVIDIA's CUTLASS for plain multiply-adds.
 */
#define ITEMS_M (BLK_M / THR_M)
#define ITEMS_N (BLK_N / THR_N)
#define ITEMS   (ITEMS_M * ITEMS_N)
#define PITCH_A (BLK_M + 4)                     /* lines along K then begin in other banks */
#define PITCH_B (BLK_N + 4)
#define SLICE_A (BLK_K * PITCH_A)
#define SLICE   (SLICE_A + BLK_K * PITCH_B)
#define LOCAL_BYTES (STAGES * SLICE * BYTES)
#define FEW     4                               /* sums of an item, in a tile with few numbers */
#define BAND    8

/* How much of a line along K neighbours copy.  8 numbers of each of four lines fill 32 banks, for PITCH_A
 * keeps them apart; so do 16 of each of two, where rows k + 8 have each two of four neighbours swapped.   */
#if TYPE == 0 && !ACROSS_A && !ACROSS_B && BLK_K >= 16 && ITEMS % 64 == 0
#define RUN     16
#define TURN(k) ((k) / 8 % 2 * 2)               /* number x of row k lies at x ^ TURN(k) */
#else
#define RUN     (BLK_K < 8 ? BLK_K : 8)
#define TURN(k) 0
#endif

#if TYPE == 3
#define BYTES   8
#define FOUR    double4
#else
#define BYTES   4
#define FOUR    float4
#endif
#if BY16_A
#define BYTES_A 16                              /* of one copy */
#else
#define BYTES_A BYTES
#endif
#if BY16_B
#define BYTES_B 16
#else
#define BYTES_B BYTES
#endif
#define VEC_A   (BYTES_A / BYTES)
#define VEC_B   (BYTES_B / BYTES)
#define EACH_A  (BLK_M * BLK_K / VEC_A / ITEMS) /* copies of a slice that an item makes */
#define EACH_B  (BLK_N * BLK_K / VEC_B / ITEMS)
#define EACH    (EACH_A + EACH_B)

#if THR_M % 4 || THR_N % 4 || ITEMS_M % 4 || ITEMS_N % 8 || BLK_K % 2
#error "an item's tile is made of 4 x 4 blocks, a warp of 4 x 8 items, a slice of pairs"
#endif
#if ITEMS * THR_N > STAGES * SLICE
#error "a row of each item's sums must fit local memory"
#endif
#if BLK_M * BLK_K % (ITEMS * VEC_A) || BLK_N * BLK_K % (ITEMS * VEC_B) || \
    BLK_M * RUN % ITEMS || BLK_N * RUN % ITEMS || BLK_K % RUN
#error "the items must share a slice evenly"
#endif

/* Four neighbours of local memory, to registers; turn, a TURN: which of them comes first.  Volatile, so
 * that it stays where it is written: NVIDIA's assembler else moves it down to where its numbers are just
 * in time on an idle machine.                                                                         */
#if TYPE == 3
#define READ2(r, p) asm volatile("ld.volatile.shared.v2.f64 {%0, %1}, [%2];" \
                                 : "=d"((r)[0]), "=d"((r)[1]) : "r"(LOCAL_ADDRESS(p)) : "memory")
#define READ4(r, turn, p) do { READ2(r, p); READ2((r) + 2, (p) + 2); } while (0)
#else
#define READ4(r, turn, p)                                                                           \
    asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"                                \
                 : "=f"((r)[turn]), "=f"((r)[1 ^ (turn)]), "=f"((r)[2 ^ (turn)]), "=f"((r)[3 ^ (turn)]) \
                 : "r"(LOCAL_ADDRESS(p)) : "memory")
#endif

/* ---- copies ------------------------------------------------------------------------------------ */

#define ITEM ((unsigned int)LOCAL_ID())         /* no sign: dividing by a power of two is then a shift */

/* x along M or N, and k, in a slice, of the first number of an item's first copy; and how far
 * the i-th is from there.                                                                    */
#define FIRST_X(across, vec, blk)   (int)((across) ? ITEM * (vec) % (blk) : ITEM / RUN)
#define FIRST_K(across, vec, blk)   (int)((across) ? ITEM * (vec) / (blk) : ITEM % RUN)
#define STEP_X(i, across, vec, blk) ((across) ? (i) * ITEMS * (vec) % (blk) : (i) % RUNS(blk) * (ITEMS / RUN))
#define STEP_K(i, across, vec, blk) ((across) ? (i) * ITEMS * (vec) / (blk) : (i) / RUNS(blk) * RUN)
#define RUNS(blk) ((blk) * RUN / ITEMS)

#define STEP_X_A(i) STEP_X(i, ACROSS_A, VEC_A, BLK_M)
#define STEP_K_A(i) STEP_K(i, ACROSS_A, VEC_A, BLK_M)
#define STEP_X_B(i) STEP_X((i) - EACH_A, ACROSS_B, VEC_B, BLK_N)
#define STEP_K_B(i) STEP_K((i) - EACH_A, ACROSS_B, VEC_B, BLK_N)

/* In bytes of device memory: 32 bits without a sign make the shortest addresses. */
#if WIDE
#define OFFSET INT64
#else
#define OFFSET unsigned int
#endif

/* From where the i-th copy is, but for the runs of a line along K: those are as far apart there as
 * here.  Past the edge of M or N it takes the last numbers again: the sums of them are stored
 * nowhere.                                                                                     */
#define PLANS(each, across, blk) ((across) ? (each) : RUNS(blk))
#define PLAN(from, each, across, vec, blk, x0, X, x_step, k_step)                                   \
    UNROLL for (int i = 0; i < PLANS(each, across, blk); i++) {                                     \
        const int x = x0 + FIRST_X(across, vec, blk) + STEP_X(i, across, vec, blk);                 \
        const int k = FIRST_K(across, vec, blk) + STEP_K(i, across, vec, blk);                      \
                                                                                                    \
        from[i] = (OFFSET)((x < X - vec ? x : X - vec) * x_step + k * (across ? k_step : 1)) * BYTES; \
    }
#define FROM_A(i) (from_a[(i) % PLANS(EACH_A, ACROSS_A, BLK_M)] + (ACROSS_A ? 0 : STEP_K_A(i) * BYTES))
#define FROM_B(i) (from_b[((i) - EACH_A) % PLANS(EACH_B, ACROSS_B, BLK_N)] + \
                   (ACROSS_B ? 0 : STEP_K_B(i) * BYTES))
#define TO_A(i)   (to_a + (STEP_K_A(i) * PITCH_A + STEP_X_A(i)) * BYTES)
#define TO_B(i)   (to_b + (STEP_K_B(i) * PITCH_B + STEP_X_B(i)) * BYTES)

#define COPY_IF(go, bytes, to, from) COPY_ASYNC_IF(go, bytes, to, from)

/* Copy i of a slice, first A's, then B's; `put`: where the slice begins, a and b: where its
 * numbers do.  Nothing where go_a (of B's, go_b) is 0.                                      */
#define BRING(i, go_a, go_b, put, a, b)                                 \
    do {                                                                \
        if ((i) < EACH_A)                                               \
            COPY_IF(go_a, BYTES_A, (put) + TO_A(i), (a) + FROM_A(i));   \
        else if ((i) < EACH)                                            \
            COPY_IF(go_b, BYTES_B, (put) + TO_B(i), (b) + FROM_B(i));   \
    } while (0)

/* How many to make with each k of the first half of a slice; in small work-groups, of its first three. */
#define AT_ONCE (ITEMS >= 256 ? (EACH + BLK_K / 2 - 1) / (BLK_K / 2) : BLK_K < 6 ? EACH : (EACH + 2) / 3)

/* ---- sums -------------------------------------------------------------------------------------- */

/* Where the i-th of an item's rows and the j-th of its columns are, from its first on. */
#define ROW(i)  ((i) / 4 * 16 + (i) % 4)
#define COL(j)  ((j) / 4 * 32 + (j) % 4)

/* Numbers k of a slice that begins at sA, sB, to registers. */
#define FETCH(rA, rB, sA, sB, k)                                                    \
    do {                                                                            \
        UNROLL for (int i = 0; i < THR_M; i += 4)                                   \
            READ4((rA) + i, TURN(k), (sA) + (k) * PITCH_A + ROW(i));                \
        UNROLL for (int j = 0; j < THR_N; j += 4)                                   \
            READ4((rB) + j, TURN(k), (sB) + (k) * PITCH_B + COL(j));                \
    } while (0)

/* To and fro along the shorter side: each product shares a factor with the one before. */
#if THR_M < THR_N
#define LONG        THR_N
#define SHORT       THR_M
#define SUM(l, s)   rC[s][l]
#define FACTOR(l)   rb[l]
#define OTHER(s)    ra[s]
#else
#define LONG        THR_M
#define SHORT       THR_N
#define SUM(l, s)   rC[l][s]
#define FACTOR(l)   ra[l]
#define OTHER(s)    rb[s]
#endif
#define MULTIPLY(rA, rB)                                                            \
    do {                                                                            \
        const R *const ra = (rA), *const rb = (rB);                                 \
                                                                                    \
        UNROLL for (int l = 0; l < LONG; l++)                                       \
        UNROLL for (int there = 0; there < SHORT; there++) {                        \
            const int s_ = l % 2 ? SHORT - 1 - there : there;                       \
                                                                                    \
            SUM(l, s_) = FMA(FACTOR(l), OTHER(s_), SUM(l, s_));                     \
        }                                                                           \
    } while (0)

LARGE_LOCAL(gemm_async, LOCAL_BYTES)

KERNEL(ITEMS) void
gemm_async(int M, int N, int K, VIEW eC, R alpha,
           GLOBAL const T *RESTRICT gA, VIEW vA,
           GLOBAL const T *RESTRICT gB, VIEW vB, R beta,
           GLOBAL T *RESTRICT gC, VIEW vC,
           int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LARGE_LOCAL_ARRAY(slices, LOCAL_BYTES);
    LOCAL R *const s = (LOCAL R *)slices;

    /* Tiles are numbered batch by batch: first those in full, in bands of BAND rows, each walked
     * column by column; then the lower edge, and the right one: short work fills the gaps.      */
    const int full_m = M / BLK_M, full_n = N / BLK_N;
    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int batch = GROUP_ID(0) / (tiles_m * tiles_n);
    const int tile = GROUP_ID(0) - batch * (tiles_m * tiles_n);
    const int edge = tile - full_m * full_n, lower = (tiles_m - full_m) * tiles_n;
    int tile_m, tile_n;

    if (edge < 0) {
        const int band = tile / (BAND * full_n), in_band = tile - band * (BAND * full_n);
        const int rows = full_m - band * BAND < BAND ? full_m - band * BAND : BAND;

        tile_n = in_band / rows;
        tile_m = band * BAND + in_band - tile_n * rows;
    } else {
        tile_m = edge < lower ? full_m : edge - lower;
        tile_n = edge < lower ? edge : full_n;
    }

    int m0 = tile_m * BLK_M, n0 = tile_n * BLK_N;
    const int rows = M - m0 < BLK_M ? M - m0 : BLK_M, cols = N - n0 < BLK_N ? N - n0 : BLK_N;
    const INDEX a_row = (INDEX)vA.s5, a_col = (INDEX)vA.s6, b_row = (INDEX)vB.s5, b_col = (INDEX)vB.s6;
    const INDEX c0 = batch_offset(vC, eC, batch), bias0 = batch_offset(vBias, eC, batch);
    const int whole = K / BLK_K, left = K - whole * BLK_K;

    /* Copies: where from, where to, and the slice that is next. */
    const unsigned int local_s = LOCAL_ADDRESS(s);
    const int x_a = FIRST_X(ACROSS_A, VEC_A, BLK_M), k_a = FIRST_K(ACROSS_A, VEC_A, BLK_M);
    const int x_b = FIRST_X(ACROSS_B, VEC_B, BLK_N), k_b = FIRST_K(ACROSS_B, VEC_B, BLK_N);
    const unsigned int to_a = (k_a * PITCH_A + (x_a ^ TURN(k_a))) * BYTES;
    const unsigned int to_b = (SLICE_A + k_b * PITCH_B + (x_b ^ TURN(k_b))) * BYTES;
    GLOBAL const char *a = (GLOBAL const char *)(gA + batch_offset(vA, eC, batch));
    GLOBAL const char *b = (GLOBAL const char *)(gB + batch_offset(vB, eC, batch));
    OFFSET from_a[PLANS(EACH_A, ACROSS_A, BLK_M)], from_b[PLANS(EACH_B, ACROSS_B, BLK_N)];
    unsigned int put = local_s;

    PLAN(from_a, EACH_A, ACROSS_A, VEC_A, BLK_M, m0, M, a_row, a_col);
    PLAN(from_b, EACH_B, ACROSS_B, VEC_B, BLK_N, n0, N, b_col, b_row);

#define STEP_A ((OFFSET)(BLK_K * (ACROSS_A ? a_col : 1)) * BYTES)
#define STEP_B ((OFFSET)(BLK_K * (ACROSS_B ? b_row : 1)) * BYTES)
#define BRING_NEXT()                                                                                \
    do {                                                                                            \
        copies_commit();                        /* also when empty: groups are counted */           \
        a += STEP_A;                                                                                \
        b += STEP_B;                                                                                \
        put = put == local_s + (STAGES - 1) * SLICE * BYTES ? local_s : put + SLICE * BYTES;        \
    } while (0)

/* The slice that is not whole, once all others are read, to the start. */
#define BRING_LEFT()                                                                                \
    do {                                                                                            \
        a -= (STAGES - 1) * STEP_A;                                                                 \
        b -= (STAGES - 1) * STEP_B;                                                                 \
        BARRIER();                                                                                  \
        UNROLL for (int i = 0; i < EACH; i++)                                                       \
            BRING(i, k_a + STEP_K_A(i) < left, k_b + STEP_K_B(i) < left, local_s, a, b);     \
        copies_commit();                                                                            \
        COPIES_WAIT(0);                                                                             \
        BARRIER();                                                                                  \
    } while (0)

    UNROLL for (int stage = 0; stage < STAGES - 1; stage++) {
        UNROLL for (int i = 0; i < EACH; i++)
            BRING(i, stage < whole, stage < whole, put, a, b);
        BRING_NEXT();
    }

    int get = 0;                                /* where the slice that is multiplied begins */
#define NEXT(get) ((get) == (STAGES - 1) * SLICE ? 0 : (get) + SLICE)

    if (rows * cols <= FEW * ITEMS) {
        int row[FEW], col[FEW];
        R sum[FEW];

        UNROLL for (int e = 0; e < FEW; e++) {
            const int at = (int)ITEM + e * ITEMS;

            row[e] = at < rows * cols ? at / cols : 0;
            col[e] = at < rows * cols ? at - at / cols * cols : 0;
            sum[e] = ZERO;
        }
#define ADD(k, e)                                                                                   \
        sum[e] = FMA(s[get + (k) * PITCH_A + (row[e] ^ TURN(k))],                                   \
                     s[get + SLICE_A + (k) * PITCH_B + (col[e] ^ TURN(k))], sum[e])
        NO_UNROLL for (int slice = 0; slice < whole; slice++) {
            COPIES_WAIT(STAGES - 2);
            BARRIER();                          /* this slice is there for all; the one before is read */
            UNROLL for (int i = 0; i < EACH; i++)
                BRING(i, slice + STAGES - 1 < whole && x_a + STEP_X_A(i) < rows,
                      slice + STAGES - 1 < whole && x_b + STEP_X_B(i) < cols, put, a, b);
            BRING_NEXT();
            UNROLL for (int e = 0; e < FEW; e++)
                if (e * ITEMS < rows * cols)
                    UNROLL for (int k = 0; k < BLK_K; k++)
                        ADD(k, e);
            get = NEXT(get);
        }
        if (left) {
            BRING_LEFT();
            get = 0;
            NO_UNROLL for (int k = 0; k < left; k++)
                UNROLL for (int e = 0; e < FEW; e++)
                    ADD(k, e);
        }
        NO_UNROLL for (int e = 0; e < FEW; e++)
            if ((int)ITEM + e * ITEMS < rows * cols) {
                const int m = m0 + ((int)ITEM + e * ITEMS) / cols, n = n0 + ((int)ITEM + e * ITEMS) % cols;
                const INDEX at = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;
                const R one = e == 0 ? sum[0] : e == 1 ? sum[1] : e == 2 ? sum[2] : sum[3];

                STORE(gC, at, epilogue(one, alpha, beta, gC, at, has_bias, gBias,
                                       bias0 + m * (INDEX)vBias.s5 + n * (INDEX)vBias.s6, act));
            }
        return;
    }

    const int warp = LOCAL_ID() / 32, lane = LOCAL_ID() % 32;
    const int m1 = warp / (ITEMS_N / 8) * (4 * THR_M) + (lane / 16 * 2 + lane % 2) * 4;
    const int n1 = warp % (ITEMS_N / 8) * (8 * THR_N) + lane / 2 % 8 * 4;
    LOCAL const R *sA = s + m1, *sB = s + SLICE_A + n1;
    R rA[2][THR_M], rB[2][THR_N], rC[THR_M][THR_N];

    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        rC[i][j] = ZERO;

    COPIES_WAIT(STAGES - 2);
    BARRIER();
    FETCH(rA[0], rB[0], sA, sB, 0);
    NO_UNROLL for (int slice = 0; slice < whole; slice++) {
        const int more = slice + STAGES - 1 < whole;

        UNROLL for (int k = 0; k < BLK_K; k++) {
            if (k == BLK_K - 1) {
                COPIES_WAIT(STAGES - 2);
                BARRIER();                      /* the next slice is there for all; this one is read */
                get = NEXT(get);
                sA = s + m1 + get;
                sB = s + SLICE_A + n1 + get;
            }
            FETCH(rA[(k + 1) % 2], rB[(k + 1) % 2], sA, sB, (k + 1) % BLK_K);
            UNROLL for (int i = k * AT_ONCE; i < (k + 1) * AT_ONCE; i++)
                BRING(i, more, more, put, a, b);
            if (k == BLK_K - 2)
                BRING_NEXT();
            MULTIPLY(rA[k % 2], rB[k % 2]);
        }
    }
    if (left) {
        BRING_LEFT();
        sA = s + m1;
        sB = s + SLICE_A + n1;
        NO_UNROLL for (int k = 0; k < left; k++) {
            UNROLL for (int i = 0; i < THR_M; i++)
                rA[0][i] = sA[k * PITCH_A + (ROW(i) ^ TURN(k))];
            UNROLL for (int j = 0; j < THR_N; j++)
                rB[0][j] = sB[k * PITCH_B + (COL(j) ^ TURN(k))];
            MULTIPLY(rA[0], rB[0]);
        }
    }

    /* Sums as they are, where four of them are neighbours in C. */
#define STORE4(at, i0, j0, i1, j1, i2, j2, i3, j3)                                                  \
    do {                                                                                            \
        FOUR v;                                                                                     \
                                                                                                    \
        v.x = alpha * rC[i0][j0];                                                                   \
        v.y = alpha * rC[i1][j1];                                                                   \
        v.z = alpha * rC[i2][j2];                                                                   \
        v.w = alpha * rC[i3][j3];                                                                   \
        *(GLOBAL FOUR *)(gC + (at)) = v;                                                            \
    } while (0)

    const INDEX c_row = (INDEX)vC.s5, c_col = (INDEX)vC.s6;
    const int plain = beta == ZERO && !has_bias && act == 0;

    m0 += m1;
    n0 += n1;
    if (plain && c_col == 1 && ((c_row | c0 | N) & 3) == 0) {
        UNROLL for (int i = 0; i < THR_M; i++)
        UNROLL for (int j = 0; j < THR_N; j += 4)
            if (m0 + ROW(i) < M && n0 + COL(j) < N)
                STORE4(c0 + (m0 + ROW(i)) * c_row + n0 + COL(j), i, j, i, j + 1, i, j + 2, i, j + 3);
        return;
    }
    if (plain && c_row == 1 && ((c_col | c0 | M) & 3) == 0) {
        UNROLL for (int j = 0; j < THR_N; j++)
        UNROLL for (int i = 0; i < THR_M; i += 4)
            if (m0 + ROW(i) < M && n0 + COL(j) < N)
                STORE4(c0 + m0 + ROW(i) + (n0 + COL(j)) * c_col, i, j, i + 1, j, i + 2, j, i + 3, j);
        return;
    }

    /* A row of sums, where a loop can index it.  Volatile, so that they are stored one by one: four
     * at once need neighbouring registers, all of the loop long.                                */
    LOCAL volatile R *mine = s + LOCAL_ID() * THR_N;

    BARRIER();
    UNROLL for (int i = 0; i < THR_M; i++) {
        const int m = m0 + ROW(i);
        const INDEX at = c0 + m * c_row, bias_at = bias0 + m * (INDEX)vBias.s5;

        if (m < M && plain)
            UNROLL for (int j = 0; j < THR_N; j++) {
                const int n = n0 + COL(j);

                if (n < N)
                    STORE(gC, at + n * c_col, alpha * rC[i][j]);
            }
        else if (m < M) {
            UNROLL for (int j = 0; j < THR_N; j++)
                mine[j] = rC[i][j];
            NO_UNROLL for (int j = 0; j < THR_N; j++) {
                const int n = n0 + COL(j);

                if (n < N)
                    STORE(gC, at + n * c_col,
                          epilogue(mine[j], alpha, beta, gC, at + n * c_col,
                                   has_bias, gBias, bias_at + n * (INDEX)vBias.s6, act));
            }
        }
    }
}
