/* mma.cl - C := act(alpha A B + beta C + bias) by the mma.sync of NVIDIA's sm_80 and up
 *
 * f16 and bf16 with accumulators in f32; f32 rounded to tf32 (VN_MATH_TF32); f64, whose products and sums
 * are fused multiply-adds as everywhere.  Slices of A and B go to local memory by cp.async, STAGES - 1
 * ahead; each warp multiplies WARP_M x WARP_N of the tile.
 *
 *             BLK_N
 *         +---+---+---+---+
 *   BLK_K |   |   |   |   |
 *         +---+---+---+---+
 *   +--+  +---+---+---+---+ WARP_M
 *   |  |  | w | a | r | p |
 *   +--+  +---+---+---+---+
 *   |  |  | s |   |   |   |
 *   +--+  +---+---+---+---+
 *
 * A's fragments of the next step of k are loaded ahead; B's are loaded again as soon as they are used.
 *
 * Whole slices have a loop without a branch, for products wait for a branch; copies are spread over the
 * products of the first step.  Edges are zeros that the copies write, and have a loop of their own.  A
 * tile of f64 at an edge, or of f32 that is mostly inside C, is moved to where it is all inside, and stores
 * only what no other tile does.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K WARP_M WARP_N STAGES, powers of two save STAGES, and the
 * instruction's MMA_M MMA_K (fragment.h).  Constants: MN_MAJOR_A MN_MAJOR_B.
 *
 * Method: multistage pipelines as in NVIDIA's CUTLASS for Ampere.
 */
#define RASTER    8

LARGE_LOCAL(gemm_mma, STAGES * STAGE)

/* The first row (column) of a tile at an edge: so far back that all of it is inside.  A tile of f32 is moved
 * where most of it is inside.  The 16-bit types leave out products that are outside instead.           */
DEVICE int moved_inside(int first, int width, int all)
{
    const int left = all - first, least = T_BYTES == 8 ? 0 : width / 2;

    return T_BYTES > 2 && left > least && left < width && all >= width ? all - width : first;
}

KERNEL(ITEMS) void
gemm_mma(int M, int N, int K, VIEW eC, R alpha,
         GLOBAL const T *RESTRICT gA, VIEW vA,
         GLOBAL const T *RESTRICT gB, VIEW vB, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);

    const struct tile t = tile_at(schedule_of(M, N, BLK_M, BLK_N, RASTER), GROUP_ID(0));
    const int m0 = moved_inside(t.m0, BLK_M, M), n0 = moved_inside(t.n0, BLK_N, N);
    const int m1 = (int)(ITEM / 32 / WARPS_N) * WARP_M, n1 = (int)(ITEM / 32 % WARPS_N) * WARP_N;
    const int slices = (K + BLK_K - 1) / BLK_K;
    const unsigned int stages = LOCAL_ADDRESS(sAB);
    const unsigned int start_a = fragment_start(MN_MAJOR_A, VECS_A, m1, 0);
    const unsigned int start_b = fragment_start(MN_MAJOR_B, VECS_B, n1, 1) + BYTES_A;
    const INDEX a_row = (INDEX)vA.s5, a_col = (INDEX)vA.s6, b_row = (INDEX)vB.s5, b_col = (INDEX)vB.s6;
    GLOBAL const T *const a0 = gA + batch_offset(vA, eC, t.batch);
    GLOBAL const T *const b0 = gB + batch_offset(vB, eC, t.batch);
#define ALIGNED_A(bytes) is_aligned(bytes, a0, a_col, a_row, m0, MN_MAJOR_A)
#define ALIGNED_B(bytes) is_aligned(bytes, b0, b_row, b_col, n0, MN_MAJOR_B)
    const int whole_a = ALIGNED_A(16), whole_b = ALIGNED_B(16);     /* one in parts, both in parts */
    const struct async_operand a = async_operand(a0, a_col, a_row, m0, MN_MAJOR_A, VECS_A,
                                                 whole_a && (whole_b || (T_BYTES == 2 && !ALIGNED_B(4))));
    const struct async_operand b = async_operand(b0, b_row, b_col, n0, MN_MAJOR_B, VECS_B,
                                                 whole_b && (whole_a || (T_BYTES == 2 && !ALIGNED_A(4))));
    FRAGMENT rA[BUFFERS_A][BLOCKS_M][FRAGMENT_REGS], rB[BLOCKS_N][FRAGMENT_REGS];
    R rC[BLOCKS_M][BLOCKS_N][2];
    unsigned int here = stages, there = stages;         /* the stages that are read and written */

    UNROLL for (int i = 0; i < BLOCKS_M; i++)
    UNROLL for (int j = 0; j < BLOCKS_N; j++)
        rC[i][j][0] = rC[i][j][1] = ZERO;

#define STAGE_AFTER(at) ((at) == stages + (STAGES - 1) * STAGE ? stages : (at) + STAGE)
#define FROM_A(slice)   (a.from + (slice) * (BLK_K * (MN_MAJOR_A ? a.pitch : a.step)))
#define FROM_B(slice)   (b.from + (slice) * (BLK_K * (MN_MAJOR_B ? b.pitch : b.step)))
#define COPY_SLICE(slice)                                                                               \
    do {                                                                                                \
        if ((slice) < slices) {                                                                         \
            const int m_left = M - m0, n_left = N - n0, k_left = K - (slice) * BLK_K;                   \
                                                                                                        \
            copy_slice(&a, FROM_A(slice), there, MN_MAJOR_A, ROWS_A, VECS_A,                            \
                       MN_MAJOR_A ? k_left : m_left, MN_MAJOR_A ? m_left : k_left);                     \
            copy_slice(&b, FROM_B(slice), there + BYTES_A, MN_MAJOR_B, ROWS_B, VECS_B,                  \
                       MN_MAJOR_B ? k_left : n_left, MN_MAJOR_B ? n_left : k_left);                     \
        }                                                                                               \
        copies_commit();                        /* also when empty: groups are counted */               \
        there = STAGE_AFTER(there);                                                                     \
    } while (0)
#define LOAD_A(buffer, step)                                                                            \
    UNROLL for (int u = 0; u < BLOCKS_M / LOADED_A; u++)                                                \
        LOAD_FRAGMENT(rA[buffer], MN_MAJOR_A, VECS_A, here + start_a, u, step, 0)
#define LOAD_B(u, step) LOAD_FRAGMENT(rB, MN_MAJOR_B, VECS_B, here + start_b, u, step, 1)

    NO_UNROLL for (int i = 0; i < STAGES - 1; i++)
        COPY_SLICE(i);
    COPIES_WAIT(STAGES - 2);
    BARRIER();
    LOAD_A(0, 0);
    UNROLL for (int u = 0; u < LOADS_N; u++)
        LOAD_B(u, 0);

    /* Whole slices first, in vectors or in parts; then the others. */
    enum { IN_VECTORS, IN_PARTS, EDGES, WAYS };
#define PER(way)    ((way) == IN_PARTS ? VEC_PARTS : 1)
#define DUE(u, way) ((u) * (COPIES_A + COPIES_B) * PER(way) / LOADS_N)

    const int inside = M - m0 >= BLK_M && N - n0 >= BLK_N, last = K / BLK_K - (STAGES - 1);
    const int contiguous = inside && a.in_parts && b.in_parts && a.step == T_BYTES && b.step == T_BYTES;
    const int whole = inside && a.in_vectors && b.in_vectors;
    const int ends[WAYS] = { whole ? last : 0, contiguous ? last : 0, slices };
    const int rows = (M - m0 - m1 + 7) / 8, columns = N - n0 - n1;
    int slice = 0;

    UNROLL for (int way = 0; way < WAYS; way++)
    NO_UNROLL for (; slice < ends[way]; slice++) {
        GLOBAL const char *from_a = FROM_A(slice + STAGES - 1), *from_b = FROM_B(slice + STAGES - 1);

        UNROLL for (int step = 0; step < STEPS; step++) {
            const int now = step % BUFFERS_A, then = (step + 1) % BUFFERS_A, next = (step + 1) % STEPS;

            if (step == STEPS - 1) {            /* the next slice has arrived for all; this one is read */
                COPIES_WAIT(STEPS > 1 ? STAGES - 2 : STAGES - 3);
                BARRIER();
                here = STAGE_AFTER(here);
            }
            if (step == 0 && way == EDGES)      /* to where the previous slice was */
                COPY_SLICE(slice + STAGES - 1);
            if (BUFFERS_A == 2)
                LOAD_A(then, next);
            ROUND_FRAGMENT(rA[now], 0, BLOCKS_M);
            UNROLL for (int u = 0; u < LOADS_N; u++) {
                if (step == 0 && way != EDGES)
                    UNROLL for (int i = DUE(u, way); i < DUE(u + 1, way); i++) {
                        const int i_b = i - COPIES_A * PER(way);

                        if (i_b < 0)
                            copy_inside(&a, from_a, there + a.to, MN_MAJOR_A, VECS_A, i, way);
                        else
                            copy_inside(&b, from_b, there + BYTES_A + b.to, MN_MAJOR_B, VECS_B, i_b, way);
                    }
                ROUND_FRAGMENT(rB, u * LOADED_B, (u + 1) * LOADED_B);
                UNROLL for (int j = u * LOADED_B; j < (u + 1) * LOADED_B; j++) {
                    if (way != EDGES) {
                        MULTIPLY_BLOCK(rC, rA[now], rB, j, BLOCKS_M);
                    } else if (j * 8 < columns) {
                        MULTIPLY_BLOCK(rC, rA[now], rB, j, rows);
                    }
                }
                LOAD_B(u, next);
            }
            if (step == 0 && way != EDGES) {
                copies_commit();
                there = STAGE_AFTER(there);
            }
            if (BUFFERS_A == 1)
                LOAD_A(0, next);
        }
    }

    const struct output c = OUTPUT(t.batch);

    store_fragments(&c, m0 + m1, n0 + n1, t.m0, t.n0, ADD_SPLITS(rC), rC);
}
