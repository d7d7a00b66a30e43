/* gemm_wgmma.cl - C := act(alpha A B + beta C + bias) in 16-bit types, for NVIDIA's sm_90
 *
 * One warp copies boxes of A and B to local memory, STAGES slices of BLK_K ahead; WARPGROUPS
 * groups of 128 items each multiply 64 rows of the tile by all its BLK_N columns with wgmma,
 * which reads local memory by itself and adds in f32.
 *
 *                 BLK_N                    Each stage has two barriers: `full`, at which the
 *              +---------+                 bytes of its boxes arrive, and `empty`, at which the
 *      BLK_K   |    B    |                 warpgroups do when they have read it.
 *              +---------+
 *     +-----+  +---------+  64 rows: warpgroup 0
 *     |  A  |  |         |
 *     +-----+  +---------+
 *     |     |  |         |  64 rows: warpgroup 1
 *     +-----+  +---------+
 *
 * The copy engine needs a map of each matrix.  `describe` makes both, just before, in the
 * queue's workspace, so nothing is packed and no host library is asked.  A matrix may run
 * along K or across it (ACROSS_A, ACROSS_B); 128-byte lines are swizzled on the way.
 * Edges are the copy engine's: it fills with zeros what lies outside.
 *
 * Parameters, from gemm.tune: BLK_N (128 or 256), STAGES, WARPGROUPS.
 * Method: warp-specialised producer and consumers, as in NVIDIA's CUTLASS for Hopper.
 */
#define BLK_M   (64 * WARPGROUPS)
#define BLK_K   64
#define BYTES_A (BLK_M * BLK_K * 2)
#define BYTES_B (BLK_N * BLK_K * 2)
#define STAGE   (BYTES_A + BYTES_B)
#define ITEMS   (128 * WARPGROUPS + 32)
#define SUMS    (BLK_N / 2)                     /* of an item */
#define BAND    16

#if BLK_N == 256
#define WGMMA(d, a, b, x, y) WGMMA_N256(d, a, b, x, y)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N256(d, open)
#elif BLK_N == 128
#define WGMMA(d, a, b, x, y) WGMMA_N128(d, a, b, x, y)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N128(d, open)
#else
#error "BLK_N must be 128 or 256"
#endif

#if TYPE == 2
#define MAP_KIND MAP_BF16
#else
#define MAP_KIND MAP_F16
#endif

/* Runs along memory: K, or across it M (N).  The step in local memory for 16 of k, and
 * between stretches of 64 across.                                                      */
#if ACROSS_A
#define LINES_A  64
#define STEP_A   2048
#define FLAG_A   "1"
#else
#define LINES_A  BLK_M
#define STEP_A   32
#define FLAG_A   "0"
#endif
#if ACROSS_B
#define LINES_B  64
#define STEP_B   2048
#define FLAG_B   "1"
#else
#define LINES_B  BLK_N
#define STEP_B   32
#define FLAG_B   "0"
#endif

LARGE_LOCAL(STAGES * STAGE)

/* maps[0 ... 16) of A, maps[16 ... 32) of B.  A batch step of 0 means one matrix for all. */
KERNEL(32) void
describe(int M, int N, int K, int batches, GLOBAL const T *gA, VIEW vA, GLOBAL const T *gB, VIEW vB,
         GLOBAL unsigned INT64 *maps)
{
    LOCAL_ARRAY(unsigned INT64, s, 2 * MAP_BYTES / 8);
    const int me = LOCAL_ID();
    const unsigned int at = LOCAL_ADDRESS(s);

    s[me] = 0;
    BARRIER();
    if (me == 0) {
        MAP_DESCRIBE(at, MAP_KIND, gA + vA.s0, ACROSS_A ? M : K, ACROSS_A ? K : M, vA.s4 ? batches : 1,
                     2 * (ACROSS_A ? vA.s6 : vA.s5), 2 * (vA.s4 ? vA.s4 : 8), LINES_A);
        MAP_DESCRIBE(at + MAP_BYTES, MAP_KIND, gB + vB.s0, ACROSS_B ? N : K, ACROSS_B ? K : N, vB.s4 ? batches : 1,
                     2 * (ACROSS_B ? vB.s5 : vB.s6), 2 * (vB.s4 ? vB.s4 : 8), LINES_B);
    }
    BARRIER();
    maps[me] = s[me];
}

/* The slice of K from k0 on, to the stage at `to`. */
DEVICE void copy_slice(unsigned int to, GLOBAL const unsigned INT64 *maps, int m0, int n0, int k0,
                       int batch_a, int batch_b, unsigned int full)
{
    barrier_arrive_expect(full, STAGE);
#if ACROSS_A
    UNROLL for (int i = 0; i < BLK_M / 64; i++)
        copy_box(to + i * 8192, maps, m0 + i * 64, k0, batch_a, full);
#else
    copy_box(to, maps, k0, m0, batch_a, full);
#endif
#if ACROSS_B
    UNROLL for (int i = 0; i < BLK_N / 64; i++)
        copy_box(to + BYTES_A + i * 8192, maps + 16, n0 + i * 64, k0, batch_b, full);
#else
    copy_box(to + BYTES_A, maps + 16, k0, n0, batch_b, full);
#endif
}

KERNEL(ITEMS) void
gemm_wgmma(int M, int N, int K, VIEW eC, R alpha,
           GLOBAL const unsigned INT64 *maps, int step_a, int step_b, R beta,
           GLOBAL T *RESTRICT gC, VIEW vC,
           int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, 2 * STAGES);

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int batch = GROUP_ID(0) / (tiles_m * tiles_n);
    const int tile = GROUP_ID(0) % (tiles_m * tiles_n);
    const int band = tile / (BAND * tiles_n);
    const int band_rows = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const int m0 = (band * BAND + tile % (BAND * tiles_n) % band_rows) * BLK_M;
    const int n0 = tile % (BAND * tiles_n) / band_rows * BLK_N;
    const int me = LOCAL_ID(), group = me / 128, slices = (K + BLK_K - 1) / BLK_K;
    const unsigned int stages = LOCAL_ADDRESS(sAB), full = LOCAL_ADDRESS(barriers), empty = full + 8 * STAGES;
    float d[SUMS];

    if (me == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, WARPGROUPS);
        }
        barrier_init_done();
    }
    BARRIER();

    UNROLL for (int i = 0; i < SUMS; i++)
        d[i] = 0.0f;

    if (group == WARPGROUPS) {                  /* the warp that copies; one item of it does */
        if (me == 128 * WARPGROUPS) {
            map_acquire(maps);
            map_acquire(maps + 16);
            for (int i = 0; i < slices; i++) {
                const int s = i % STAGES;

                if (i >= STAGES)
                    barrier_wait(empty + 8 * s, (i / STAGES - 1) & 1);
                copy_slice(stages + s * STAGE, maps, m0, n0, i * BLK_K, batch * step_a, batch * step_b, full + 8 * s);
            }
        }
    } else {
        for (int i = 0; i < slices; i++) {
            const int s = i % STAGES;
            const unsigned int a = stages + s * STAGE + group * 8192, b = stages + s * STAGE + BYTES_A;

            barrier_wait(full + 8 * s, i / STAGES & 1);
            wgmma_begin();
            UNROLL for (int k = 0; k < BLK_K / 16; k++)
                WGMMA(d, wgmma_operand(a + k * STEP_A, 8192), wgmma_operand(b + k * STEP_B, 8192), FLAG_A, FLAG_B);
            wgmma_commit();
            WGMMA_WAIT(d, "1");                 /* the slice before is read */
            if (i > 0 && me % 128 == 0)
                barrier_arrive(empty + 8 * ((i - 1) % STAGES));
        }
        WGMMA_WAIT(d, "0");
    }

    /* An item's sums are pairs of columns: of row r and r + 8, 8 columns apart. */
    const INDEX c0 = batch_offset(vC, eC, batch), bias0 = batch_offset(vBias, eC, batch);
    const int r = group * 64 + me % 128 / 32 * 16 + me % 32 / 4, c = me % 4 * 2;

    if (beta == 0.0f && !has_bias && act == 0 && group < WARPGROUPS) {
        const int in_pairs = vC.s6 == 1 && (c0 | (INDEX)vC.s5) % 2 == 0;

        UNROLL for (int i = 0; i < SUMS; i += 2) {
            const int m = m0 + r + i / 2 % 2 * 8, n = n0 + c + i / 4 * 8;
            const INDEX at = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

            if (m < M && n + 1 < N && in_pairs) {
                ((GLOBAL unsigned int *)gC)[at / 2] = pair_of(alpha * d[i], alpha * d[i + 1]);
            } else if (m < M && n < N) {
                STORE(gC, at, alpha * d[i]);
                if (n + 1 < N)
                    STORE(gC, at + (INDEX)vC.s6, alpha * d[i + 1]);
            }
        }
    }
    if (beta == 0.0f && !has_bias && act == 0)
        return;
    BARRIER();                                  /* all slices are read: their memory takes the sums */
    LOCAL float *sums = (LOCAL float *)sAB;

    if (group < WARPGROUPS)
        UNROLL for (int i = 0; i < SUMS; i++)
            sums[(r + i / 2 % 2 * 8) * BLK_N + c + i / 4 * 8 + i % 2] = d[i];
    BARRIER();
    for (int i = me; i < BLK_M * BLK_N; i += ITEMS) {
        const int m = m0 + i / BLK_N, n = n0 + i % BLK_N;

        if (m < M && n < N) {
            const INDEX at = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

            STORE(gC, at, epilogue(sums[i], alpha, beta, gC, at, has_bias, gBias,
                                   bias0 + m * (INDEX)vBias.s5 + n * (INDEX)vBias.s6, act));
        }
    }
}
