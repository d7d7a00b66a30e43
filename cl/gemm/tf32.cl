/* tf32.cl - C := act(alpha A B + beta C + bias), f32 rounded to tf32, for NVIDIA's sm_90
 *
 * One warp copies slices ahead, WARPGROUPS groups of 128 items multiply 64 rows of
 * the tile by all its columns.  But tf32 operands in local memory must run along K, both, so
 * here one operand, whichever does, is the right one (B; or A, of C^T = B^T A^T), and the left one
 * goes through registers where it runs across (ACROSS_A).  `pack` is needed only where neither runs
 * along K, or lines do not begin at multiples of 16 bytes.
 *
 *     32 numbers of M are a line of 128 bytes; its 16-byte pieces     0 1 2 3 4 5 6 7   line k = 0
 *     are swizzled by k on the way.  Rows of the engine that are      1 0 3 2 5 4 7 6          1
 *     8 apart in its order are given pieces 4 apart, so that a        2 3 0 1 6 7 4 5          2
 *     warp's 32 reads fall into 32 banks.                             ...
 *
 * The engine ignores the lower 13 bits of a number.  The copy engine, told that its numbers are tf32,
 * rounds them to nearest on the way, so nothing is cut off.
 *
 * As many work-groups as the device holds run through all tiles, so that the copies of a tile go on
 * while the one before is stored; each makes its own maps of A and B, in the queue's workspace.
 *
 * Parameters, from gemm.tune: BLK_N (128 or 256), STAGES, WARPGROUPS, BAND.
 */
#define ITEMS   (128 * WARPGROUPS + 128)
#define SUMS    (BLK_N / 2)                     /* of an item */

#if BLK_N == 256
#define WGMMA(d, a, b)             WGMMA_TF32_N256(d, a, b)
#define WGMMA_REGISTERS(d, a, b)   WGMMA_TF32_REGISTERS_N256(d, a, b)
#define WGMMA_WAIT(d, open)        WGMMA_WAIT_N256(d, open)
#elif BLK_N == 128
#define WGMMA(d, a, b)             WGMMA_TF32_N128(d, a, b)
#define WGMMA_REGISTERS(d, a, b)   WGMMA_TF32_REGISTERS_N128(d, a, b)
#define WGMMA_WAIT(d, open)        WGMMA_WAIT_N128(d, open)
#else
#error "BLK_N must be 128 or 256"
#endif

/* Those that copy need few registers; with one warpgroup there are enough for all. */
#if WARPGROUPS == 1
#define FEW_REGISTERS()
#define MANY_REGISTERS()
#else
#define FEW_REGISTERS()  REGISTERS_DROP(40)
#define MANY_REGISTERS() REGISTERS_TAKE(232)
#endif

LARGE_LOCAL(gemm_tf32, STAGES * STAGE)

/* `lines` along K to lines along memory, by way of 32 x 32 in local memory. */
KERNEL(256) void
pack(int lines, int K, GLOBAL const T *RESTRICT from, VIEW vFrom, GLOBAL T *to, VIEW vTo)
{
    LOCAL_ARRAY(T, s, 32 * 33);
    const int across = vFrom.s5 < vFrom.s6;     /* neighbours read what lies side by side */
    const int tiles_k = (K + 31) / 32, tiles = (lines + 31) / 32 * tiles_k;
    const int matrix = GROUP_ID(0) / tiles, tile = GROUP_ID(0) % tiles;
    const int line0 = tile / tiles_k * 32, k0 = tile % tiles_k * 32, x = LOCAL_ID() % 32, y = LOCAL_ID() / 32;

    from += vFrom.s0 + matrix * vFrom.s4;
    to += vTo.s0 + matrix * vTo.s4;
    UNROLL for (int i = 0; i < 32; i += 8) {
        const int line = line0 + (across ? x : y + i), k = k0 + (across ? y + i : x);

        s[(line - line0) * 33 + k - k0] = from[(line < lines ? line : lines - 1) * vFrom.s5 +
                                               (k < K ? k : K - 1) * vFrom.s6];
    }
    BARRIER();
    UNROLL for (int i = 0; i < 32; i += 8)
        if (line0 + y + i < lines && k0 + x < K)
            to[(line0 + y + i) * vTo.s5 + k0 + x] = s[(y + i) * 33 + x];
}

/* This item's row of C in its group's 64: the first, and the other (which = 1). */
DEVICE int row_of(int me, int which)
{
    const int warp = me % 128 / 32, g = me % 32 / 4;

#if ACROSS_A
    return warp / 2 * 32 + g / 4 * 16 + warp % 2 * 8 + which * 4 + g % 4;
#else
    return warp * 16 + which * 8 + g;
#endif
}

/* The slice's numbers of the left operand for this item, from the 64 rows at `s`. */
DEVICE void load_left(unsigned int x[BLK_K / 2], LOCAL const unsigned int *s, int me)
{
    const int t = me % 4;

    UNROLL for (int i = 0; i < 4; i++) {
        const int m = row_of(me, i % 2), k = t + i / 2 * 4;
        const int at = m / 32 * 1024 + k * 32 + ((m % 32 / 4) ^ k) * 4 + m % 4;

        UNROLL for (int j = 0; j < BLK_K / 8; j++)
            x[j * 4 + i] = s[at + j * 256];
    }
}

#if ACROSS_A
/* Where C's columns run along memory, as for C^T = B^T A^T.  Four items whose rows follow each other
 * have 8 of a column; each gets 4 of them, of one of two columns, so that two items store 32 bytes. */
DEVICE void store_columns(GLOBAL T *at, const float *d, R alpha, int r0, int c, int lane, int rows, int columns,
                          INDEX col_step)
{
    const int mine = lane / 4 % 4, m = r0 - mine + mine % 2 * 4;

    UNROLL for (int i = 0; i < SUMS; i += 4) {
        const int n = c + i / 4 * 8 + mine / 2;
        unsigned int u[4] = { FLOAT_BITS(alpha * d[i]),     FLOAT_BITS(alpha * d[i + 2]),
                              FLOAT_BITS(alpha * d[i + 1]), FLOAT_BITS(alpha * d[i + 3]) };

        transpose4(u, 1, lane, 4);
        if (m < rows && n < columns)
            store16(at + m + n * col_step, u, 1);
    }
}
#endif

KERNEL(ITEMS) void
gemm_tf32(int M, int N, int K, VIEW eC, R alpha, int groups, int tiles,
          GLOBAL const T *gA, VIEW vA, GLOBAL const T *gB, VIEW vB, GLOBAL unsigned INT64 *gMaps, R beta,
          GLOBAL T *RESTRICT gC, VIEW vC,
          int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, 2 * STAGES);
    LOCAL_ARRAY(unsigned INT64, room, 2 * MAP_BYTES / 8);

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int me = LOCAL_ID(), warp = this_warp(), group = warp / 4, batches = (int)(eC.s1 * eC.s2 * eC.s3 * eC.s4);
    const int slices = (K + 2 * BLK_K - 1) / (2 * BLK_K) * 2;   /* even: past the edge of K are zeros */
    const unsigned int stages = same_in_warp(LOCAL_ADDRESS(sAB)), full = same_in_warp(LOCAL_ADDRESS(barriers));
    const unsigned int empty = full + 8 * STAGES;
    GLOBAL unsigned INT64 *maps = gMaps + GROUP_ID(0) * (2 * MAP_BYTES / 8);
    unsigned int slice = 0;                     /* counted over all tiles */
    struct tile t = { 0, 0, 0, 0 };

    if (warp == 0) {                            /* what must be done first, by a warp each */
        describe(maps, room, me, M, N, K, batches, gA, vA, gB, vB);
    } else if (me == 32) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, 4 * WARPGROUPS);
        }
        barrier_init_done();
    } else if (warp == 4 * WARPGROUPS) {
        t = tile_at(GROUP_ID(0), tiles_m, tiles_n, batches);
    }
    BARRIER();

    if (group == WARPGROUPS) {                  /* the items that copy; one of them does */
        FEW_REGISTERS();
        if (warp == 4 * WARPGROUPS && is_elected()) {
            const int step_a = vA.s4 != 0, step_b = vB.s4 != 0;

            map_acquire_own(maps);
            map_acquire_own(maps + MAP_BYTES / 8);
            for (int at = GROUP_ID(0); at < tiles; at += groups) {
                for (int i = 0; i < slices; i++, slice++) {
                    const unsigned int s = slice % STAGES;

                    if (slice >= STAGES)
                        barrier_wait(empty + 8 * s, (slice / STAGES - 1) & 1);
                    copy_slice(stages + s * STAGE, maps, t.m0, t.n0, i * BLK_K, t.batch * step_a, t.batch * step_b,
                               full + 8 * s);
                }
                t = tile_at(at + groups, tiles_m, tiles_n, batches);
            }
        }
        return;
    }
    MANY_REGISTERS();

    const int r0 = group * 64 + row_of(me, 0), r1 = group * 64 + row_of(me, 1), c = me % 4 * 2;
    const int plain = beta == 0.0f && !has_bias && act == 0;

#define FULL_WAIT(i)    barrier_wait(full + 8 * ((i) % STAGES), (i) / STAGES & 1)
#define EMPTY_ARRIVE(i) do { if (me % 32 == 0) barrier_arrive(empty + 8 * ((i) % STAGES)); } while (0)
#if ACROSS_A
    /* While one slice is multiplied, the next one's left half comes to registers. */
    unsigned int even[BLK_K / 2], odd[BLK_K / 2];

#define LOAD_LEFT(i, x)                                                                                   \
    do {                                                                                                  \
        FULL_WAIT(i);                                                                                     \
        load_left(x, (LOCAL const unsigned int *)(sAB + (i) % STAGES * STAGE + group * 8192), me);        \
    } while (0)
#define MULTIPLY(i, x)                                                                                    \
    do {                                                                                                  \
        const UINT32 b = wgmma_place(stages + (i) % STAGES * STAGE + BYTES_A, 0);                         \
                                                                                                          \
        wgmma_begin();                                                                                    \
        UNROLL for (int k = 0; k < BLK_K / 8; k++)                                                        \
            WGMMA_REGISTERS(d, (x + 4 * k), wgmma_at(b + 2 * k));                                         \
        wgmma_commit();                                                                                   \
    } while (0)
#endif

    for (int at = GROUP_ID(0); at < tiles; at += groups) {
        const unsigned int end = slice + slices;
        float d[SUMS];

        UNROLL for (int i = 0; i < SUMS; i++)
            d[i] = 0.0f;
#if ACROSS_A
        LOAD_LEFT(slice, even);
        MULTIPLY(slice, even);
        t = tile_at(at, tiles_m, tiles_n, batches);         /* while the engine is at work */
        for (slice++; slice + 1 < end; slice += 2) {
            LOAD_LEFT(slice, odd);
            MULTIPLY(slice, odd);
            WGMMA_WAIT(d, "1");                 /* the slice before is read */
            EMPTY_ARRIVE(slice - 1);
            LOAD_LEFT(slice + 1, even);
            MULTIPLY(slice + 1, even);
            WGMMA_WAIT(d, "1");
            EMPTY_ARRIVE(slice);
        }
        LOAD_LEFT(slice, odd);
        MULTIPLY(slice, odd);
        WGMMA_WAIT(d, "1");
        EMPTY_ARRIVE(slice - 1);
        slice++;
#else
        for (int i = 0; i < slices; i++, slice++) {
            const unsigned int s = stages + slice % STAGES * STAGE;
            const UINT32 a = wgmma_place(s + group * 8192, 0), b = wgmma_place(s + BYTES_A, 0);

            FULL_WAIT(slice);
            wgmma_begin();
            UNROLL for (int k = 0; k < BLK_K / 8; k++)
                WGMMA(d, wgmma_at(a + 2 * k), wgmma_at(b + 2 * k));
            wgmma_commit();
            if (i == 0)                         /* while the engine is at work */
                t = tile_at(at, tiles_m, tiles_n, batches);
            WGMMA_WAIT(d, "1");                 /* the slice before is read */
            if (i > 0)
                EMPTY_ARRIVE(slice - 1);
        }
#endif
        WGMMA_WAIT(d, "0");
        EMPTY_ARRIVE(end - 1);

        const INDEX c0 = batch_offset(vC, eC, t.batch);

#if ACROSS_A
        if (plain && vC.s5 == 1 && (c0 | (INDEX)vC.s6 | M) % 4 == 0 && (UINT64)gC % 16 == 0) {
            store_columns(gC + c0 + t.m0 + t.n0 * (INDEX)vC.s6, d, alpha, r0, c, me % 32, M - t.m0, N - t.n0, (INDEX)vC.s6);
            continue;
        }
#endif
        if (plain) {
            const int in_pairs = vC.s6 == 1 && (c0 | (INDEX)vC.s5) % 2 == 0;

            UNROLL for (int i = 0; i < SUMS; i += 2) {
                const int m = t.m0 + (i / 2 % 2 ? r1 : r0), n = t.n0 + c + i / 4 * 8;
                const INDEX to = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

                if (m < M && n + 1 < N && in_pairs) {
                    STORE_PAIR(gC + to, alpha * d[i], alpha * d[i + 1]);
                } else if (m < M && n < N) {
                    gC[to] = alpha * d[i];
                    if (n + 1 < N)
                        gC[to + (INDEX)vC.s6] = alpha * d[i + 1];
                }
            }
        } else {
            const INDEX bias0 = batch_offset(vBias, eC, t.batch);
            float sums[SUMS];                   /* where a loop can index them: the epilogue is long */

            UNROLL for (int i = 0; i < SUMS; i++)
                sums[i] = d[i];
            NO_UNROLL for (int i = 0; i < SUMS; i++) {
                const int m = t.m0 + (i / 2 % 2 ? r1 : r0), n = t.n0 + c + i / 4 * 8 + i % 2;

                if (m < M && n < N) {
                    const INDEX to = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

                    STORE(gC, to, epilogue(sums[i], alpha, beta, gC, to, has_bias, gBias,
                                           bias0 + m * (INDEX)vBias.s5 + n * (INDEX)vBias.s6, act));
                }
            }
        }
    }
}
