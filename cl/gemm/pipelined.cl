/* pipelined.cl - C := act(alpha A B + beta C + bias) in f32 and f64, for NVIDIA's sm_80 and up
 *
 * As tiled.cl, but slices of A and B go from device memory to local memory by cp.async, STAGES - 1 slices
 * ahead; and from there to registers one k ahead of the multiply-adds, across slices, too: the last
 * products of a slice are made after the barrier that precedes the next one, so that no warp waits for its
 * first elements.
 *
 *     a warp: 4 x 8 threads, in pairs      a thread: blocks of 4 x 4, interleaved with those of
 *     +--+--+--+--+--+--+--+--+            the others of its warp:
 *     | 0| 2| 4| 6| 8|10|12|14|               ++  ++
 *     | 1| 3| 5| 7| 9|11|13|15|               ++  ++
 *     |16|18| ...                             ++  ++
 *                                             ++  ++
 * so that half a warp loads at most 128 different bytes at a time, which local memory delivers at once.
 *
 * Each element is a sum along K in order, by fused multiply-adds: the same bits as of tiled.cl.  What is
 * left of K after whole slices comes last.  A tile at the edge of C that has only a few elements has a loop
 * of its own, whose time is that of those elements.
 *
 * An instruction that is no multiply-add takes the issue slot of one.  Hence slices of 16; copies of 16
 * bytes where alignment allows, spread over the products; and K-major operands transposed on the way, for
 * loads of four k's at a time would put the elements of one k into the same banks of registers.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K THR_M THR_N STAGES.  Constants: MN_MAJOR_A, MN_MAJOR_B;
 * BY16_A, BY16_B: an MN-major operand is copied 16 bytes at a time.  K-major operands are copied element by
 * element.
 *
 * Method: the pipeline of NVIDIA's CUTLASS for plain multiply-adds.
 */
#define ITEMS_M (BLK_M / THR_M)
#define ITEMS_N (BLK_N / THR_N)
#define ITEMS   (ITEMS_M * ITEMS_N)
#define PITCH_A (BLK_M + 4)                     /* rows along K then begin in other banks */
#define PITCH_B (BLK_N + 4)
#define SLICE_A (BLK_K * PITCH_A)
#define SLICE   (SLICE_A + BLK_K * PITCH_B)
#define LOCAL_BYTES (STAGES * SLICE * T_BYTES)
#define FEW     4                               /* elements of a work-item, in a tile with few */
#define RASTER  8

/* How many elements of a K-major row adjacent work-items copy.  8 of each of four rows cover 32 banks, for
 * PITCH_A separates them; so do 16 of each of two, if in rows k + 8 the two pairs of four elements are
 * swapped. */
#if TYPE == TYPE_F32 && !MN_MAJOR_A && !MN_MAJOR_B && BLK_K >= 16 && ITEMS % 64 == 0
#define RUN     16
#define SWAP(k) ((k) / 8 % 2 * 2)               /* element x of row k is stored at x ^ SWAP(k) */
#else
#define RUN     (BLK_K < 8 ? BLK_K : 8)
#define SWAP(k) 0
#endif

#if BY16_A
#define BYTES_A 16                              /* of one copy */
#else
#define BYTES_A T_BYTES
#endif
#if BY16_B
#define BYTES_B 16
#else
#define BYTES_B T_BYTES
#endif
#define VEC_A   (BYTES_A / T_BYTES)
#define VEC_B   (BYTES_B / T_BYTES)
#define COPIES_A  (BLK_M * BLK_K / VEC_A / ITEMS) /* copies of a slice that a work-item makes */
#define COPIES_B  (BLK_N * BLK_K / VEC_B / ITEMS)
#define COPIES    (COPIES_A + COPIES_B)

#if THR_M % 4 || THR_N % 4 || ITEMS_M % 4 || ITEMS_N % 8 || BLK_K % 2
#error "a thread's tile is made of 4 x 4 blocks, a warp of 4 x 8 threads, a slice of pairs"
#endif
#if ITEMS / 32 * BLOCKS_ROOM > STAGES * SLICE
#error "blocks of each warp must fit local memory"
#endif
#if BLK_M * BLK_K % (ITEMS * VEC_A) || BLK_N * BLK_K % (ITEMS * VEC_B) || \
    BLK_M * RUN % ITEMS || BLK_N * RUN % ITEMS || BLK_K % RUN
#error "the work-items must share a slice evenly"
#endif

/* Four adjacent elements of local memory to registers; swap, a SWAP(): which of them comes first.  Volatile,
 * so that it stays where it is written: the assembler would move it down to its first use. */
#if TYPE == TYPE_F64
#define LOAD2(r, p) asm volatile("ld.volatile.shared.v2.f64 {%0, %1}, [%2];" \
                                 : "=d"((r)[0]), "=d"((r)[1]) : "r"(LOCAL_ADDRESS(p)) : "memory")
#define LOAD4(r, swap, p) do { LOAD2(r, p); LOAD2((r) + 2, (p) + 2); } while (0)
#else
#define LOAD4(r, swap, p)                                                                           \
    asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"                                \
                 : "=f"((r)[swap]), "=f"((r)[1 ^ (swap)]), "=f"((r)[2 ^ (swap)]), "=f"((r)[3 ^ (swap)]) \
                 : "r"(LOCAL_ADDRESS(p)) : "memory")
#endif

/* ---- copies ------------------------------------------------------------------------------------ */

#define ITEM ((unsigned int)LOCAL_ID())         /* no sign: dividing by a power of two is then a shift */

/* The x (m or n) and k, in a slice, of the first element of a work-item's first copy; and the distance of
 * its i-th copy from there.                                                                           */
#define FIRST_X(mn_major, vec, blk)   (int)((mn_major) ? ITEM * (vec) % (blk) : ITEM / RUN)
#define FIRST_K(mn_major, vec, blk)   (int)((mn_major) ? ITEM * (vec) / (blk) : ITEM % RUN)
#define STEP_X(i, mn_major, vec, blk) \
    ((mn_major) ? (i) * ITEMS * (vec) % (blk) : (i) % RUNS(blk) * (ITEMS / RUN))
#define STEP_K(i, mn_major, vec, blk) ((mn_major) ? (i) * ITEMS * (vec) / (blk) : (i) / RUNS(blk) * RUN)
#define RUNS(blk) ((blk) * RUN / ITEMS)

#define STEP_X_A(i) STEP_X(i, MN_MAJOR_A, VEC_A, BLK_M)
#define STEP_K_A(i) STEP_K(i, MN_MAJOR_A, VEC_A, BLK_M)
#define STEP_X_B(i) STEP_X((i) - COPIES_A, MN_MAJOR_B, VEC_B, BLK_N)
#define STEP_K_B(i) STEP_K((i) - COPIES_A, MN_MAJOR_B, VEC_B, BLK_N)

/* The addresses of the copies; those of the runs of one K-major row differ by constants.  Beyond the edge of
 * M or N nothing is read where all copies of a work-item have the same x, since many tiles that read the last
 * elements again would wait for the same cache lines; else those are.  The result is not stored.        */
#define ONE_X(mn_major, vec, blk) ((mn_major) && ITEMS * (vec) % (blk) == 0)
#define ADDRESSES(each, mn_major, blk) ((mn_major) ? (each) : RUNS(blk))
#define ADDRESSES_A ADDRESSES(COPIES_A, MN_MAJOR_A, BLK_M)
#define ADDRESSES_B ADDRESSES(COPIES_B, MN_MAJOR_B, BLK_N)
#define FIND_ADDRESSES(from, each, mn_major, vec, blk, x0, X, x_step, k_step)                       \
    UNROLL for (int i = 0; i < ADDRESSES(each, mn_major, blk); i++) {                               \
        const int x = x0 + FIRST_X(mn_major, vec, blk) + STEP_X(i, mn_major, vec, blk);             \
        const int k = FIRST_K(mn_major, vec, blk) + STEP_K(i, mn_major, vec, blk);                  \
                                                                                                    \
        from[i] = (BYTE_OFFSET)((x < X - vec ? x : X - vec) * x_step + k * (mn_major ? k_step : 1)) \
                * T_BYTES;                                                                          \
    }
#define FROM_A(i) (from_a[(i) % ADDRESSES_A] + (MN_MAJOR_A ? 0 : STEP_K_A(i) * T_BYTES))
#define FROM_B(i) (from_b[((i) - COPIES_A) % ADDRESSES_B] + (MN_MAJOR_B ? 0 : STEP_K_B(i) * T_BYTES))
#define TO_A(i)   (to_a + (STEP_K_A(i) * PITCH_A + STEP_X_A(i)) * T_BYTES)
#define TO_B(i)   (to_b + (STEP_K_B(i) * PITCH_B + STEP_X_B(i)) * T_BYTES)

/* Copy i of a slice, A's before B's, to the stage `to` from the operands a and b; none if go_a (of B's, go_b)
 * is 0.  COPY_IF expands the number of bytes.                                                            */
#define COPY_IF(go, bytes, to, from) COPY_ASYNC_IF(go, bytes, to, from)
#define COPY(i, go_a, go_b, to, a, b)                                  \
    do {                                                                \
        if ((i) < COPIES_A)                                               \
            COPY_IF(go_a, BYTES_A, (to) + TO_A(i), (a) + FROM_A(i));   \
        else if ((i) < COPIES)                                            \
            COPY_IF(go_b, BYTES_B, (to) + TO_B(i), (b) + FROM_B(i));   \
    } while (0)

/* Copies with each k of the first half of a slice; in small work-groups, of its first three. */
#define COPIES_PER_K \
    (ITEMS >= 256 ? (COPIES + BLK_K / 2 - 1) / (BLK_K / 2) : BLK_K < 6 ? COPIES : (COPIES + 2) / 3)

/* ---- products ---------------------------------------------------------------------------------- */

/* The i-th row and the j-th column of a thread, from its first on. */
#define ROW(i)  BLOCK_AT(i, 16)
#define COL(j)  BLOCK_AT(j, 32)

/* Row k of a slice to registers. */
#define LOAD_K(rA, rB, sA, sB, k)                                                    \
    do {                                                                            \
        UNROLL for (int i = 0; i < THR_M; i += 4)                                   \
            LOAD4((rA) + i, SWAP(k), (sA) + (k) * PITCH_A + ROW(i));                \
        UNROLL for (int j = 0; j < THR_N; j += 4)                                   \
            LOAD4((rB) + j, SWAP(k), (sB) + (k) * PITCH_B + COL(j));                \
    } while (0)

/* Back and forth along the shorter side, so that each product shares a factor with the one before. */
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

LARGE_LOCAL(gemm_pipelined, LOCAL_BYTES)

KERNEL(ITEMS) void
gemm_pipelined(int M, int N, int K, VIEW eC, R alpha,
               GLOBAL const T *RESTRICT gA, VIEW vA,
               GLOBAL const T *RESTRICT gB, VIEW vB, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(slices, LOCAL_BYTES);
    LOCAL R *const s = (LOCAL R *)slices;

    /* The whole tiles of a matrix come first; then the lower edge and the right one, whose short work fills
     * the gaps of the last wave.                                                                         */
    const struct schedule whole_tiles = { M / BLK_M, N / BLK_N, BLK_M, BLK_N, RASTER };
    const int full_m = whole_tiles.tiles_m, full_n = whole_tiles.tiles_n;
    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int batch = GROUP_ID(0) / (tiles_m * tiles_n);
    const int tile = GROUP_ID(0) - batch * (tiles_m * tiles_n);
    const int edge = tile - full_m * full_n, lower = (tiles_m - full_m) * tiles_n;
    int m0 = (edge < lower ? full_m : edge - lower) * BLK_M, n0 = (edge < lower ? edge : full_n) * BLK_N;

    if (edge < 0) {
        const struct tile t = tile_at(whole_tiles, tile);

        m0 = t.m0;
        n0 = t.n0;
    }

    const int rows = M - m0 < BLK_M ? M - m0 : BLK_M, cols = N - n0 < BLK_N ? N - n0 : BLK_N;
    const INDEX a_row = (INDEX)vA.s5, a_col = (INDEX)vA.s6, b_row = (INDEX)vB.s5, b_col = (INDEX)vB.s6;
    const struct output c = OUTPUT(batch);
    const int whole = K / BLK_K, left = K - whole * BLK_K;

    /* Copies: their addresses, and those of the next slice. */
    const unsigned int local_s = LOCAL_ADDRESS(s);
    const int x_a = FIRST_X(MN_MAJOR_A, VEC_A, BLK_M), k_a = FIRST_K(MN_MAJOR_A, VEC_A, BLK_M);
    const int x_b = FIRST_X(MN_MAJOR_B, VEC_B, BLK_N), k_b = FIRST_K(MN_MAJOR_B, VEC_B, BLK_N);
    const unsigned int to_a = (k_a * PITCH_A + (x_a ^ SWAP(k_a))) * T_BYTES;
    const unsigned int to_b = (SLICE_A + k_b * PITCH_B + (x_b ^ SWAP(k_b))) * T_BYTES;
    GLOBAL const char *a = (GLOBAL const char *)(gA + batch_offset(vA, eC, batch));
    GLOBAL const char *b = (GLOBAL const char *)(gB + batch_offset(vB, eC, batch));
    BYTE_OFFSET from_a[ADDRESSES_A], from_b[ADDRESSES_B];
    const int in_a = !ONE_X(MN_MAJOR_A, VEC_A, BLK_M) || x_a < rows;
    const int in_b = !ONE_X(MN_MAJOR_B, VEC_B, BLK_N) || x_b < cols;
    /* after slices before these, another is copied */
    const int last_a = in_a ? whole - (STAGES - 1) : -STAGES, last_b = in_b ? whole - (STAGES - 1) : -STAGES;
    unsigned int to = local_s;

    FIND_ADDRESSES(from_a, COPIES_A, MN_MAJOR_A, VEC_A, BLK_M, m0, M, a_row, a_col);
    FIND_ADDRESSES(from_b, COPIES_B, MN_MAJOR_B, VEC_B, BLK_N, n0, N, b_col, b_row);

#define STEP_A ((BYTE_OFFSET)(BLK_K * (MN_MAJOR_A ? a_col : 1)) * T_BYTES)
#define STEP_B ((BYTE_OFFSET)(BLK_K * (MN_MAJOR_B ? b_row : 1)) * T_BYTES)
#define NEXT_SLICE()                                                                                \
    do {                                                                                            \
        copies_commit();                        /* also when empty: groups are counted */           \
        a += STEP_A;                                                                                \
        b += STEP_B;                                                                                \
        to = to == local_s + (STAGES - 1) * SLICE * T_BYTES ? local_s : to + SLICE * T_BYTES;        \
    } while (0)

/* The slice that is not whole, to the first stage, once all others are read. */
#define COPY_LEFT()                                                                                \
    do {                                                                                            \
        a -= (STAGES - 1) * STEP_A;                                                                 \
        b -= (STAGES - 1) * STEP_B;                                                                 \
        BARRIER();                                                                                  \
        UNROLL for (int i = 0; i < COPIES; i++)                                                       \
            COPY(i, in_a && k_a + STEP_K_A(i) < left, in_b && k_b + STEP_K_B(i) < left, local_s, a, b); \
        copies_commit();                                                                            \
        COPIES_WAIT(0);                                                                             \
        BARRIER();                                                                                  \
    } while (0)

    UNROLL for (int stage = 0; stage < STAGES - 1; stage++) {
        UNROLL for (int i = 0; i < COPIES; i++)
            COPY(i, stage < last_a + STAGES - 1, stage < last_b + STAGES - 1, to, a, b);
        NEXT_SLICE();
    }

    int get = 0;                                /* the stage that is read */
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
        sum[e] = FMA(s[get + (k) * PITCH_A + (row[e] ^ SWAP(k))],                                   \
                     s[get + SLICE_A + (k) * PITCH_B + (col[e] ^ SWAP(k))], sum[e])
        NO_UNROLL for (int slice = 0; slice < whole; slice++) {
            COPIES_WAIT(STAGES - 2);
            BARRIER();                          /* this slice has arrived for all; the one before is read */
            UNROLL for (int i = 0; i < COPIES; i++)
                COPY(i, slice + STAGES - 1 < whole && x_a + STEP_X_A(i) < rows,
                      slice + STAGES - 1 < whole && x_b + STEP_X_B(i) < cols, to, a, b);
            NEXT_SLICE();
            UNROLL for (int e = 0; e < FEW; e++)
                if (e * ITEMS < rows * cols)
                    UNROLL for (int k = 0; k < BLK_K; k++)
                        ADD(k, e);
            get = NEXT(get);
        }
        if (left) {
            COPY_LEFT();
            get = 0;
            NO_UNROLL for (int k = 0; k < left; k++)
                UNROLL for (int e = 0; e < FEW; e++)
                    ADD(k, e);
        }
        UNROLL for (int e = 0; e < FEW; e++)
            if ((int)ITEM + e * ITEMS < rows * cols)
                store_element(&c, m0 + row[e], n0 + col[e], sum[e]);
        return;
    }

    const int warp = LOCAL_ID() / 32, lane = LOCAL_ID() % 32;
    const int below = lane / 16 * 2 + lane % 2, aside = lane / 2 % 8;   /* of the warp's 4 x 8 threads */
    const int m1 = warp / (ITEMS_N / 8) * (4 * THR_M) + below * 4;
    const int n1 = warp % (ITEMS_N / 8) * (8 * THR_N) + aside * 4;
    LOCAL const R *sA = s + m1, *sB = s + SLICE_A + n1;
    R rA[2][THR_M], rB[2][THR_N], rC[THR_M][THR_N];

    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++)
        rC[i][j] = ZERO;

    COPIES_WAIT(STAGES - 2);
    BARRIER();
    LOAD_K(rA[0], rB[0], sA, sB, 0);
    NO_UNROLL for (int slice = 0; slice < whole; slice++) {
        UNROLL for (int k = 0; k < BLK_K; k++) {
            if (k == BLK_K - 1) {
                COPIES_WAIT(STAGES - 2);
                BARRIER();                      /* the next slice has arrived for all; this one is read */
                get = NEXT(get);
                sA = s + m1 + get;
                sB = s + SLICE_A + n1 + get;
            }
            LOAD_K(rA[(k + 1) % 2], rB[(k + 1) % 2], sA, sB, (k + 1) % BLK_K);
            UNROLL for (int i = k * COPIES_PER_K; i < (k + 1) * COPIES_PER_K; i++)
                COPY(i, slice < last_a, slice < last_b, to, a, b);
            if (k == BLK_K - 2)
                NEXT_SLICE();
            MULTIPLY(rA[k % 2], rB[k % 2]);
        }
    }
    if (left) {
        COPY_LEFT();
        sA = s + m1;
        sB = s + SLICE_A + n1;
        NO_UNROLL for (int k = 0; k < left; k++) {
            UNROLL for (int i = 0; i < THR_M; i++)
                rA[0][i] = sA[k * PITCH_A + (ROW(i) ^ SWAP(k))];
            UNROLL for (int j = 0; j < THR_N; j++)
                rB[0][j] = sB[k * PITCH_B + (COL(j) ^ SWAP(k))];
            MULTIPLY(rA[0], rB[0]);
        }
    }

    m0 += m1;
    n0 += n1;
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_N; j++) {
        const int m = m0 + ROW(i), n = n0 + COL(j);

        rC[i][j] = epilogue(&c, m < M ? m : M - 1, n < N ? n : N - 1, rC[i][j]);
    }
    if (T_BYTES < 8 && blocks_are_aligned(&c)) {        /* of f64, vectors leave gaps, too */
        store_blocks(&c, m0, n0, &rC[0][0], THR_M, THR_N, 16, 32);
    } else {
        BARRIER();                              /* all have read the last slice */
        store_blocks_through(&c, m0 - below * 4, n0 - aside * 4, below, aside, lane, s + warp * BLOCKS_ROOM,
                             &rC[0][0], THR_M, THR_N, 16, 32);
    }
}
