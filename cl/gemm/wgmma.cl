/* wgmma.cl - C := act(alpha A B + beta C + bias) in 16-bit types, for NVIDIA's sm_90
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
 * As many work-groups as the device holds run through all tiles, so that the copies of a tile
 * go on while the one before is stored.
 *
 * The copy engine needs a map of each matrix.  Every work-group makes both for itself, in the
 * queue's workspace, so nothing is packed and no host library is asked.  A matrix may run
 * along K or across it (ACROSS_A, ACROSS_B); 128-byte lines are swizzled on the way.
 * Edges are the copy engine's: it fills with zeros what lies outside.
 *
 * PARTS: where C has few tiles, K is cut into parts, and each tile of each part is a tile of its
 * own; their sums are left in f32, for gemm_sum.cl to add in their order.
 *
 * Parameters, from gemm.tune: BLK_N (64, 128, 192 or 256), STAGES, WARPGROUPS, BAND.
 * Learnt on an H100 (f16 nt, OpenCL; microseconds):
 * - What is the same in a whole warp must be known to be so (same_in_warp, is_elected, NEXT_STAGE).  Places of operands that
 *   are worked out in each item are brought over before each product, and boxes that one of 32 items asks for are asked
 *   for in a loop: 400 cycles a slice, whatever the tile, where 64 x 64 takes 230 now and its products 128.
 * - In which order tiles are dealt out (BAND) counts where they are all made at the same time, for lines that several ask for
 *   together are cheap: 1024 x 1024 x 4096 in tiles of 64 x 128 takes 19.7 in bands of 16 rows of them, 14.1 in bands of 4.
 *   Large products want 16.  Work-groups that are at different places of K lose that: a slice of 64 x 128 takes 0.16
 *   in one round of tiles, 0.205 in several.
 * - Where C has few tiles, one work-group with 8 stages is faster than two with 4 each; and a warpgroup with 64 x 256 keeps the
 *   engine as busy as two with 64 x 128 each (2048 x 1024 x 8192: 47.6; 53.7 in tiles of 64 x 128, and of 128 x 256 there
 *   are 64 for 132 units).  288 tiles of 128 x 256 leave a quarter of three rounds idle, 384 of 128 x 192 fill them (3072 squared: 96
 *   and 117 then).  128 x 128 is nowhere best by more than 2 %.
 * - Clusters of two that copy B to both (multicast) gained nothing once it was persistent (CUDA: 4096 202, 200 without).
 *   NVIDIA's OpenCL takes the PTX directives for them, but launches work-groups one by one.
 * - What a small product waits for, in cycles of one work-group: 450 until it begins, 420 to describe the maps and 500 to copy
 *   them out, 500 to the first copy, 750 until that has arrived; at the end 1260 to store the sums of 64 x 128, 2280 of 64 x
 *   256.  Divisions that are 0 and barriers in between took 1100 more.
 * - Parts of K added by the launch that makes them (by whoever comes last; by all that are still there; by exchanges of pairs
 *   of sums, 3 us for each time that 64 x 128 of them are halved) gain nothing over a second launch of 3.15; shared out
 *   evenly, so that parts do not begin together (Stream-K), they lose: 2560 squared 71, 59 whole.
 * - Large products stand at the power cap, where what is left of idle time counts for little: sums stored by the copy engine
 *   during the next tile cost a stage and gain nothing, a tile of 256 x 192 takes a fifth less from the second-level cache
 *   and no less energy (0.94 of cuBLAS at 4096, where 128 x 256 had 1.05).
 * PADS: operands are laid apart meanwhile, by three more warps (pad.h).
 * ODD_LINES: lines of C that begin anywhere are stored 16 bytes at a time, numbers moved by up to 7 for that; in pairs,
 * 4095 squared takes 14 us more.
 * Method: warp-specialised producer and consumers, persistent grid, as in NVIDIA's
 * CUTLASS for Hopper.
 */
#if PADS
#define ITEMS   (128 * WARPGROUPS + 128)
#else
#define ITEMS   (128 * WARPGROUPS + 32)
#endif
#define SUMS    (BLK_N / 2)                     /* of an item */
#define WARPS   (4 * WARPGROUPS)                /* that multiply */

#if BLK_N == 256
#define WGMMA(d, a, b, add)  WGMMA_N256(d, a, b, add, FLAG_A, FLAG_B)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N256(d, open)
#elif BLK_N == 192
#define WGMMA(d, a, b, add)  WGMMA_N192(d, a, b, add, FLAG_A, FLAG_B)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N192(d, open)
#elif BLK_N == 128
#define WGMMA(d, a, b, add)  WGMMA_N128(d, a, b, add, FLAG_A, FLAG_B)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N128(d, open)
#elif BLK_N == 64
#define WGMMA(d, a, b, add)  WGMMA_N64(d, a, b, add, FLAG_A, FLAG_B)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N64(d, open)
#else
#error "BLK_N must be 64, 128, 192 or 256"
#endif

#if PARTS
#define SPAN span
#else
#define SPAN slices
#endif
/* Runs along memory: K, or across it M (N).  The step in local memory for 16 of k, and
 * between stretches of 64 across.                                                      */
#if ACROSS_A
#define STEP_A   2048
#define FLAG_A   "1"
#else
#define STEP_A   32
#define FLAG_A   "0"
#endif
#if ACROSS_B
#define STEP_B   2048
#define FLAG_B   "1"
#else
#define STEP_B   32
#define FLAG_B   "0"
#endif

LARGE_LOCAL(gemm_wgmma, STAGES * STAGE)

/* Of how many slices it consists: each part of K has `tiles` of them. */
DEVICE int slices_at(int at, int tiles, int slices, int span)
{
#if PARTS
    const int left = slices - quotient(at, tiles) * span;

    return left < span ? left : span;
#else
    return slices;
#endif
}

/* An item's sums are pairs of columns: of row r and r + 8, 8 columns apart.  Four items of a
 * warp have a row's 8 columns; of four such blocks each gets one, so it stores 16 bytes.    */
DEVICE void store_blocks(GLOBAL T *row, const float *d, int below, R alpha, int lane, int left)
{
    UNROLL for (int i = 0; i < SUMS; i += 32) {
        unsigned int u[8];

        UNROLL for (int j = 0; j < 8; j++)
            u[j] = pair_of(alpha * d[i + 4 * j + 2 * below], alpha * d[i + 4 * j + 2 * below + 1]);
        transpose4(u, 2, lane, 1);
        UNROLL for (int h = 0; h < 2; h++) {
            const int n = (i + 16 * h) * 2 + lane % 4 * 8;

            store16(row + n, u + 4 * h, n < left);
        }
    }
}

#if PARTS
/* A tile's sums as they are, to row-major M x N at `to`; m, n: those of the item's first. */
DEVICE void store_sums(GLOBAL float *to, const float *d, int m, int n, int M, int N)
{
    const int in_pairs = N % 2 == 0 && (UINT64)to % 8 == 0;

    UNROLL for (int i = 0; i < SUMS; i += 2) {
        const int row = m + i / 2 % 2 * 8, col = n + i / 4 * 8;
        GLOBAL float *at = to + (INDEX)row * N + col;

        if (row < M && col < N && in_pairs) {
            STORE_F32_PAIR(at, d[i], d[i + 1]);
        } else if (row < M && col < N) {
            at[0] = d[i];
            if (col + 1 < N)
                at[1] = d[i + 1];
        }
    }
}
#endif

#if PADS
/* Where unit number `unit` is. */
DEVICE struct piece unit_at(int unit, struct pads p, struct operand a, struct operand b, int M, int N, int K)
{
    const int first = units_of(p, 0), rest = units_of(p, 1), each = p.chunk / UNIT;
    const int phase = unit >= first * p.chunks, in_phase = unit - phase * first * p.chunks;
    const int chunk = in_phase / (phase ? rest : first), in_chunk = in_phase - chunk * (phase ? rest : first);
    const int of_a = phase ? p.strips_a - p.first_a : p.first_a, strip = in_chunk / each, id = in_chunk - strip * each;
    const int is_a = strip < of_a, across = is_a ? ACROSS_A : ACROSS_B, wide = is_a ? M : N;
    const int mn = (is_a ? strip + phase * p.first_a : strip - of_a + phase * p.first_b) * STRIP;
    const int line = across ? chunk * p.chunk + id * UNIT : mn + id % (STRIP / UNIT) * UNIT;
    const int col = across ? mn : chunk * p.chunk + id / (STRIP / UNIT) * 512;

    return unit_of(is_a ? a : b, across ? K : wide, across ? wide : K, line, col, PAD_DONE + phase * PAD_CHUNKS + chunk);
}

/* Copies the piece at u, while the next one is read to v: of this unit, or the next.  At the end, that is
 * none: then nothing is copied.                                                                        */
#define PAD_STEP(u, v)                                                                  \
    do {                                                                                \
        const int ends = here.count <= PIECE;                                           \
                                                                                        \
        next = piece_after(here);                                                       \
        if (ends) {                                                                     \
            unit = (int)from_lane((UINT32)taken, 0);                                    \
            taken = take_unit(counters, lane);                                          \
            if (unit < units)                                                           \
                next = unit_at(unit, pads, a, b, M, N, K);                              \
        }                                                                               \
        load_piece(v, next, lane);                                                      \
        store_piece(u, here, lane);                                                     \
        if (ends)                                                                       \
            unit_done(counters, here.done, lane);                                       \
        here = next;                                                                    \
    } while (0)
#endif

/* span: slices of K in a part, the last of which may have fewer; start: where sums begin. */
KERNEL(ITEMS) void
gemm_wgmma(int M, int N, int K, VIEW eC, R alpha, int groups, int tiles,
           GLOBAL const T *gA, VIEW vA, GLOBAL const T *gB, VIEW vB, GLOBAL unsigned INT64 *gMaps,
#if PADS
           GLOBAL const T *from_a, VIEW view_a, GLOBAL const T *from_b, VIEW view_b,
           int strips_a, int strips_b, int first_a, int first_b, int chunk, GLOBAL int *counters,
#endif
#if PARTS
           int span, GLOBAL float *RESTRICT gSums, int start)
#else
           R beta, GLOBAL T *RESTRICT gC, VIEW vC,
           int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
#endif
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, 2 * STAGES);
    LOCAL_ARRAY(unsigned INT64, room, 2 * MAP_BYTES / 8);
#if PADS
    LOCAL_ARRAY(uint4, pad_room, PAD_ROOM);
#endif

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int me = LOCAL_ID(), warp = this_warp();
    const int batches = (int)(eC.s1 * eC.s2 * eC.s3 * eC.s4);
    const unsigned int stages = same_in_warp(LOCAL_ADDRESS(sAB)), full = same_in_warp(LOCAL_ADDRESS(barriers));
    const unsigned int empty = full + 8 * STAGES;
    GLOBAL unsigned INT64 *maps = gMaps + GROUP_ID(0) * (2 * MAP_BYTES / 8);
    const int slices = (K + BLK_K - 1) / BLK_K;
    const int in_part = tiles_m * tiles_n * batches;       /* tiles */
    unsigned int s = 0, turn = 0;               /* the stage, and 1 in every second turn through all of them */
    struct tile t = { 0, 0, 0, 0 };
#if PADS
    const struct pads pads = { strips_a, strips_b, first_a, first_b, chunk, (K + chunk - 1) / chunk };
#endif

    if (warp == 0) {                            /* what must be done first, by a warp each */
        describe(maps, room, me, M, N, K, batches, gA, vA, gB, vB);
    } else if (me == 32) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, WARPGROUPS);
        }
        barrier_init_done();
    } else if (warp == WARPS) {
        t = tile_at(GROUP_ID(0), tiles_m, tiles_n, batches);
    }
    BARRIER();

    if (warp == WARPS) {                        /* the warp that copies; one item of it does */
        if (is_elected()) {
            const int step_a = vA.s4 != 0, step_b = vB.s4 != 0;
            int first = STAGES;                 /* slices that find their stage empty */
#if PADS
            int seen[2] = { 0, 0 };
#endif

            map_acquire_own(maps);
            map_acquire_own(maps + MAP_BYTES / 8);
            for (int at = GROUP_ID(0); at < tiles; at += groups) {
                const int count = slices_at(at, in_part, slices, SPAN);

                for (int i = 0; i < count; i++) {
#if PADS
                    if (i * BLK_K % chunk == 0)
                        wait_for_pads(counters, pads, phases_for(pads, t.m0 + BLK_M, t.n0 + BLK_N), i * BLK_K, seen);
#endif
                    if (first > 0)
                        first--;
                    else
                        barrier_wait(empty + 8 * s, turn ^ 1);
                    copy_slice(stages + s * STAGE, maps, t.m0, t.n0, (t.part * SPAN + i) * BLK_K,
                               t.batch * step_a, t.batch * step_b, full + 8 * s);
                    NEXT_STAGE(s, turn);
                }
                t = tile_at(at + groups, tiles_m, tiles_n, batches);
            }
        }
    } else if (warp < WARPS) {
        const int r = warp * 16 + me % 32 / 4, c = me % 4 * 2;
        const UINT32 place_a = wgmma_place(stages + warp / 4 * 8192, 8192);
        const UINT32 place_b = wgmma_place(stages + BYTES_A, 8192);
#if !PARTS
        const int plain = beta == 0.0f && !has_bias && act == 0;
        const int in_blocks = vC.s6 == 1 && (vC.s0 | vC.s1 | vC.s2 | vC.s3 | vC.s4 | vC.s5 | N) % 8 == 0 &&
                              (UINT64)gC % 16 == 0;
#endif

        for (int at = GROUP_ID(0); at < tiles; at += groups) {
            const int count = slices_at(at, in_part, slices, SPAN);
            unsigned int before = 0;            /* the stage of the slice before */
            float d[SUMS];

            for (int i = 0; i < count; i++) {
                const UINT32 a = place_a + s * (STAGE / 16), b = place_b + s * (STAGE / 16);

                barrier_wait(full + 8 * s, turn);
                wgmma_begin();
                UNROLL for (int k = 0; k < BLK_K / 16; k++)
                    WGMMA(d, wgmma_at(a + k * (STEP_A / 16)), wgmma_at(b + k * (STEP_B / 16)), i + k > 0);
                wgmma_commit();
                if (i == 0)                     /* while the engine is at work */
                    t = tile_at(at, tiles_m, tiles_n, batches);
                WGMMA_WAIT(d, "1");             /* the slice before is read */
                if (i > 0 && me % 128 == 0)
                    barrier_arrive(empty + 8 * before);
                before = s;
                NEXT_STAGE(s, turn);
            }
            WGMMA_WAIT(d, "0");
            if (me % 128 == 0)
                barrier_arrive(empty + 8 * before);

#if PARTS
            store_sums(gSums + start + (INDEX)(t.part * batches + t.batch) * M * N, d, t.m0 + r, t.n0 + c, M, N);
#else
            const INDEX c0 = batch_offset(vC, eC, t.batch);

            if (plain && in_blocks) {
                UNROLL for (int below = 0; below < 2; below++) {
                    const int m = t.m0 + r + 8 * below;

                    store_blocks(gC + c0 + (INDEX)(m < M ? m : 0) * (INDEX)vC.s5 + t.n0, d, below, alpha, me % 32,
                                 m < M ? N - t.n0 : 0);
                }
            } else if (plain && vC.s6 == 1) {   /* rows that begin anywhere, or end within a block */
                UNROLL for (int below = 0; below < 2; below++) {
                    const int m = t.m0 + r + 8 * below;

#if ODD_LINES
                    store_line16(gC + c0 + (INDEX)(m < M ? m : 0) * (INDEX)vC.s5 + t.n0, d, SUMS, below, alpha,
                                 me % 32, m < M ? N - t.n0 : 0);
#else
                    store_line(gC + c0 + (INDEX)(m < M ? m : 0) * (INDEX)vC.s5 + t.n0, d, SUMS, below, 1, alpha, 1.0f,
                               me % 32, m < M ? N - t.n0 : 0);
#endif
                }
            } else if (plain) {
                UNROLL for (int i = 0; i < SUMS; i++) {
                    const int m = t.m0 + r + i / 2 % 2 * 8, n = t.n0 + c + i / 4 * 8 + i % 2;

                    if (m < M && n < N)
                        STORE(gC, c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6, alpha * d[i]);
                }
            } else {
                const INDEX bias0 = batch_offset(vBias, eC, t.batch);
                float sums[SUMS];               /* where a loop can index them: the epilogue is long */

                UNROLL for (int i = 0; i < SUMS; i++)
                    sums[i] = d[i];
                NO_UNROLL for (int i = 0; i < SUMS; i++) {
                    const int m = t.m0 + r + i / 2 % 2 * 8, n = t.n0 + c + i / 4 * 8 + i % 2;

                    if (m < M && n < N) {
                        const INDEX to = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

                        STORE(gC, to, epilogue(sums[i], alpha, beta, gC, to, has_bias, gBias,
                                               bias0 + m * (INDEX)vBias.s5 + n * (INDEX)vBias.s6, act));
                    }
                }
            }
#endif
        }
#if PADS
    } else {                                    /* the warps that lay operands apart */
        const struct operand a = { from_a + view_a.s0, ACROSS_A ? (INDEX)view_a.s6 : (INDEX)view_a.s5,
                                   (GLOBAL T *)gA + vA.s0, ACROSS_A ? (INDEX)vA.s6 : (INDEX)vA.s5 };
        const struct operand b = { from_b + view_b.s0, ACROSS_B ? (INDEX)view_b.s5 : (INDEX)view_b.s6,
                                   (GLOBAL T *)gB + vB.s0, ACROSS_B ? (INDEX)vB.s5 : (INDEX)vB.s6 };
        const int units = (units_of(pads, 0) + units_of(pads, 1)) * pads.chunks, lane = me % 32;
        LOCAL uint4 *const even = pad_room + (me / 32 - 4 * WARPGROUPS - 1) * (2 * PIECE * PIECE_WIDE);
        LOCAL uint4 *const uneven = even + PIECE * PIECE_WIDE;
        int taken = take_unit(counters, lane), unit = (int)from_lane((UINT32)taken, 0);

        if (unit < units) {
            struct piece here = unit_at(unit, pads, a, b, M, N, K), next = here;

            taken = take_unit(counters, lane);
            load_piece(even, here, lane);
            while (unit < units) {
                PAD_STEP(even, uneven);
                if (unit < units)
                    PAD_STEP(uneven, even);
            }
        }
#endif
    }
#if PADS
    BARRIER();
    if (me == 0 && ATOMIC_ADD(counters + PAD_LEFT, 1) == groups - 1)
        for (int i = 0; i < PAD_COUNTERS; i++)  /* nobody counts any more */
            counters[i] = 0;
#endif
}
