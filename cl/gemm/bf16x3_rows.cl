/* bf16x3_rows.cl - C := act(alpha A B + beta C + bias), f32 by bf16 matrix engines where A has few rows,
 * for NVIDIA's sm_90
 *
 * gemm_split.cl's sums, of the same parts in the same order.  But where A has few rows, splitting B first
 * (4 bytes of a number read, 6 written, 6 read) takes longer than multiplying.  Here B comes to local
 * memory as it is, and its parts are made on the way to the engine, which takes its left operand out of
 * registers: so the engine's rows are columns of B, and its columns are rows of A.
 *
 *               BLK_M rows of A,                     A 64 x 16 piece of B's columns, in registers:
 *               in parts                             items i of 32, 16 columns to a warp
 *              +----------+                              k  0 1  2 3  4 5  6 7 | 8 9 ...
 *       BLK_K  |    A'    |                          n  0   i=0  1    2    3   | 0
 *     +-----+  +----------+                             1   i=0  1    2    3   | 0
 *     |     |  |   C'     |  64 columns of B:           2   i=4  5    6    7   | 4
 *     |  B' |  |          |  warpgroup 0                3   i=4  5    6    7   | 4
 *     |     |  +----------+
 *     |     |  |          |  warpgroup 1             (the engine calls those two rows i / 4 and i / 4 + 8)
 *     +-----+  +----------+
 *
 * One item copies slices ahead: boxes of B by the copy engine, 128-byte lines swizzled on the way, and A's
 * parts as `split` wrote them.  A warpgroup reads its numbers of the next slice and makes their parts while
 * the engine multiplies the slice before.  The rows that an item has are neighbours, because then no two
 * items of a half warp read the same bank, whether B runs along K or across it (ACROSS_B); and because
 * their sums can be stored in pairs.
 *
 * Tiles, one after the other along K, are a line of slices, which is shared out evenly: each work-group has
 * a stretch of it (of each BLK_M rows of A), that may begin and end within a tile.  So all units work to the
 * end, however many tiles there are; copies go on while a tile is stored.
 *
 *     tile 0           tile 1           tile 2
 *     +----------------+----------------+----------------+---
 *     | share 0      | share 1      | share 2      | share 3
 *     +--------------+--------------+--------------+---------
 *
 * A tile that is all in one share goes to C; sums of a part of a tile go to the workspace, and `add_shares`
 * adds them in their order.
 *
 * Learnt on an H100 (OpenCL; cuBLAS's time over ours in brackets): 128 x 14336 x 4096 nt takes 0.134 ms
 * (2.8), where gemm_split took 0.369, or 0.163 with B packed; 128 x 4096 x 14336 0.138 (2.3), 128 x 4096 x
 * 4096 0.052 (2.2), 1024 x 14336 x 4096 0.90 (gemm_split: 1.16).  In tiles of 64, 64 x 14336 x 4096 takes
 * 0.105 (gemm_skinny_mma: 0.180), which is B at 2.2 TB/s; up to 24 rows gemm_skinny_mma is as quick.
 * - A slice's parts are made in other registers than the engine reads: with one set, copied each time, the
 *   assembler waits for every product before the next.  Hence two slices in turns.
 * - Assemblers move what makes a slice's parts behind the wait for the engine. It does no harm: kept before it
 *   (by a store that never happens), 2048 rows take 2 % more through OpenCL and 5 % less through CUDA, 128 more.
 * - `split` with 64 of K to a work-group takes 9 us where A is small, for most units have nothing to do; and
 *   divisions of 64 bits told where a share begins.  With 16 of K and two whole numbers instead, 1024 x 14336
 *   x 4096 went from 1.02 to 0.90 ms, 128 x 4096 x 4096 from 0.057 to 0.052.
 *
 * Parameters, from gemm.tune: BLK_M (64 or 128), STAGES.
 * Method: gemm_split.cl; the left operand in registers as in CUTLASS's mixed-input kernels.
 */
#define WARPGROUPS 2
#define BLK_N   (64 * WARPGROUPS)
#define STEP_A  (BLK_M * 32 * PARTS)            /* bytes of 16 of k */
#define BYTES_A (BLK_K / 16 * STEP_A)
#define BYTES_B (BLK_N * BLK_K * 4)
#define STAGE   (BYTES_A + BYTES_B)             /* B first, for its boxes begin at multiples of 1024 */
#define ITEMS   (128 * WARPGROUPS + 128)
#define SPLIT_K 16                              /* of a work-group that splits */
#define SUMS    (BLK_M / 2)                     /* of an item */
#define NUMBERS (BLK_K / 16 * PARTS * 4)        /* pairs of them, in parts: an item's share of a slice of B */

/* Those that copy need few registers; with few sums there are enough for all. */
#if BLK_M == 64
#define FEW_REGISTERS()
#define MANY_REGISTERS()
#else
#define FEW_REGISTERS()  REGISTERS_DROP(40)
#define MANY_REGISTERS() REGISTERS_TAKE(232)
#endif

#if BLK_M == 128
#define WGMMA(d, a, b, add)  WGMMA_BF16_REGISTERS_N128(d, a, b, add)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N128(d, open)
#elif BLK_M == 64
#define WGMMA(d, a, b, add)  WGMMA_BF16_REGISTERS_N64(d, a, b, add)
#define WGMMA_WAIT(d, open)  WGMMA_WAIT_N64(d, open)
#else
#error "BLK_M must be 64 or 128"
#endif
#if BLK_K != 32
#error "BLK_K must be 32: a line of 128 bytes, where B runs along K"
#endif

LARGE_LOCAL(gemm_split_rows, STAGES * STAGE)

/* The parts of A, whose slices are made an even number; and, by the last work-group, the map of B.  A batch
 * step of 0 means one matrix for all.                                                                */
KERNEL(256) void
split(int lines, int K, int per, VIEW e, GLOBAL const T *RESTRICT g, VIEW v,
      GLOBAL uint4 *RESTRICT parts, VIEW p, int groups, int N, int batches, GLOBAL const T *gB, VIEW vB, GLOBAL unsigned INT64 *map)
{
    LOCAL_ARRAY(unsigned INT64, room, MAP_BYTES / 8);
    const int me = LOCAL_ID();
    const unsigned int at = LOCAL_ADDRESS(room);

    if (GROUP_ID(0) < groups) {
        split_lines(GROUP_ID(0), SPLIT_K, lines, K, 2 * BLK_K, per, e, g, v, parts, p);
        return;
    }
    if (me < MAP_BYTES / 8)
        room[me] = 0;
    BARRIER();
    if (me == 0) {
        MAP_DESCRIBE(at, MAP_F32, gB + vB.s0, ACROSS_B ? N : K, ACROSS_B ? K : N, vB.s4 ? batches : 1,
                     4 * (ACROSS_B ? vB.s5 : vB.s6), 4 * (vB.s4 ? vB.s4 : 4), 32, ACROSS_B ? BLK_K : BLK_N);
    }
    BARRIER();
    if (me < MAP_BYTES / 8)
        map[me] = room[me];
}

/* The slice of K from k0 on, of which A's parts lie at `a`, to the stage at `to`. */
DEVICE void copy_slice(unsigned int to, GLOBAL const uint4 *a, GLOBAL const unsigned INT64 *map,
                       int n0, int k0, int batch_b, unsigned int full)
{
    barrier_arrive_expect(full, STAGE);
    copy_operand(to, map, ACROSS_B, BLK_N / 32, 32, n0, k0, batch_b, full);
    copy_bytes(to + BYTES_B, a, BYTES_A, full);
}

/* The parts of two neighbours along K: u[0], u[4], ... */
DEVICE void split_pair(UINT32 *u, R x, R y)
{
    x *= SCALE;
    y *= SCALE;
    UNROLL for (int part = 0; part < PARTS; part++) {
        u[4 * part] = bf16_pair_of(x, y);
        x -= BITS_FLOAT(u[4 * part] << 16);
        y -= BITS_FLOAT(u[4 * part] & 0xffff0000u);
    }
}

/* This item's numbers of the slice of B at s, in parts: u[(k * PARTS + part) * 4 ...] of the k-th 16 of K. */
DEVICE void load_parts(UINT32 u[NUMBERS], LOCAL const unsigned char *s, int me)
{
    const int n = me / 32 * 16 + me % 32 / 4 * 2, t = me % 4;

    UNROLL for (int k = 0; k < BLK_K / 16; k++)
        UNROLL for (int high = 0; high < 2; high++) {
            UINT32 *const to = u + k * PARTS * 4 + high * 2;
#if ACROSS_B
            const int line = k * 16 + high * 8 + t * 2;
            LOCAL const unsigned char *at = s + n / 32 * 4096 + n % 4 * 4;
            const int piece = n % 32 / 4;
            const float2 x = *(LOCAL const float2 *)(at + line * 128 + (piece ^ (line % 8)) * 16);
            const float2 y = *(LOCAL const float2 *)(at + line * 128 + 128 + (piece ^ (line % 8 + 1)) * 16);

            split_pair(to, x.x, y.x);
            split_pair(to + 1, x.y, y.y);
#else
            LOCAL const unsigned char *at = s + n * 128 + t % 2 * 8;
            const int piece = k * 4 + high * 2 + t / 2;
            const float2 x = *(LOCAL const float2 *)(at + (piece ^ (n % 8)) * 16);
            const float2 y = *(LOCAL const float2 *)(at + 128 + (piece ^ (n % 8 + 1)) * 16);

            split_pair(to, x.x, x.y);
            split_pair(to + 1, y.x, y.y);
#endif
        }
}

#define STAGE_OF(i) ((i) % STAGES)
#define LOAD_PARTS(i, u)                                                    \
    do {                                                                    \
        barrier_wait(full + 8 * STAGE_OF(i), (i) / STAGES & 1);             \
        load_parts(u, sAB + STAGE_OF(i) * STAGE, me);                       \
    } while (0)
#define PRODUCT(k, i, j, add) \
    WGMMA(d, (left + ((k) * PARTS + (i)) * 4), \
             wgmma_columns(a + (k) * STEP_A + (j) * (BLK_M * 32), BLK_M), add)
/* Slice i, whose numbers of B are in u; and meanwhile, from slice j to v. */
#define MULTIPLY(i, u, j, v)                                                \
    do {                                                                    \
        const unsigned int a = stages + STAGE_OF(i) * STAGE + BYTES_B;      \
        const UINT32 *const left = u;                                       \
                                                                            \
        wgmma_begin();                                                      \
        CHAIN();                                                            \
        wgmma_commit();                                                     \
        LOAD_PARTS(j, v);                                                   \
        WGMMA_WAIT(d, "0");                                                 \
        if (me % 32 == 0)                                                   \
            barrier_arrive(empty + 8 * STAGE_OF(i));                        \
        UNROLL for (int x = 0; x < SUMS; x++)                               \
            sum[x] += d[x];                                                 \
    } while (0)

/* The line of pairs of slices, shared out: the first `more` shares have each + 1, the others `each`.  Where
 * a share begins, and the share of pair `at`.                                                        */
DEVICE int share_begins(int share, int each, int more)
{
    return share * each + (share < more ? share : more);
}

DEVICE int share_of(int at, int each, int more)
{
    const int longer = more * (each + 1);

    return at < longer ? at / (each + 1) : more + (at - longer) / each;
}

/* The pairs of all batches, for each BLK_M rows, are one line. */
KERNEL(ITEMS) void
gemm_split_rows(int M, int N, int K, VIEW eC, R alpha,
                GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
                GLOBAL const uint4 *parts_a, VIEW pA, GLOBAL const unsigned INT64 *map, int step_b,
                int batches, int each, int more, GLOBAL float *gSums, int start, R beta,
                GLOBAL T *gC, VIEW vC,
                int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, 2 * STAGES);

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int tile_m = GROUP_ID(0) % tiles_m, m0 = tile_m * BLK_M, share = GROUP_ID(0) / tiles_m;
    const int pairs = (K + 2 * BLK_K - 1) / (2 * BLK_K);
    const int me = LOCAL_ID(), warp = this_warp(), group = warp / 4;
    const unsigned int stages = same_in_warp(LOCAL_ADDRESS(sAB)), full = same_in_warp(LOCAL_ADDRESS(barriers));
    const unsigned int empty = full + 8 * STAGES;

    if (me == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 4 * WARPGROUPS);
        }
        barrier_init_done();
    }
    BARRIER();

    if (group == WARPGROUPS) {                  /* the items that copy; one of them does */
        FEW_REGISTERS();
        if (warp == 4 * WARPGROUPS && is_elected()) {
            const int begin = share_begins(share, each, more), end = share_begins(share + 1, each, more);
            int slice = 0;

            map_acquire(map);
            for (int at = begin, here; at < end; at += here) {
                const int tile = at / pairs, first = at - tile * pairs, batch = tile / tiles_n;
                const int n0 = (tile - batch * tiles_n) * BLK_N;
                const INT64 panel = batch_offset(pA, eC, batch) + tile_m;
                GLOBAL const uint4 *a = parts_a + pA.s7 + (panel * pairs + first) * (2 * BYTES_A / 16);

                here = pairs - first < end - at ? pairs - first : end - at;
                for (int i = 0; i < 2 * here; i++, slice++) {
                    const int s = slice % STAGES;

                    if (slice >= STAGES)
                        barrier_wait(empty + 8 * s, (slice / STAGES - 1) & 1);
                    copy_slice(stages + s * STAGE, a + (INT64)i * (BYTES_A / 16), map,
                               n0, (2 * first + i) * BLK_K, batch * step_b, full + 8 * s);
                }
            }
        }
    } else {
        MANY_REGISTERS();

        const int begin = share_begins(share, each, more), end = share_begins(share + 1, each, more);
        const int r = me / 32 * 16 + me % 32 / 4 * 2, c = me % 4 * 2, slices = 2 * (end - begin);
        UINT32 even[NUMBERS], uneven[NUMBERS];
        float d[SUMS], sum[SUMS];
        int slice = 0;

        UNROLL for (int i = 0; i < SUMS; i++)
            d[i] = 0.0f;
        LOAD_PARTS(0, even);
        for (int at = begin, here; at < end; at += here) {
            const int tile = at / pairs, first = at - tile * pairs, batch = tile / tiles_n;
            const int n = (tile - batch * tiles_n) * BLK_N + r;

            here = pairs - first < end - at ? pairs - first : end - at;
            UNROLL for (int i = 0; i < SUMS; i++)
                sum[i] = 0.0f;
            for (int i = 0; i < here; i++, slice += 2) {
                const int next = slice + 2 < slices ? slice + 2 : slice + 1;    /* the last is read again */

                MULTIPLY(slice, even, slice + 1, uneven);
                MULTIPLY(slice + 1, uneven, next, even);
            }

            /* To C, or where the sums of this share of the tile are, [share][batch][m][n]. */
            const int whole = here == pairs, plain = !whole || (beta == 0.0f && !has_bias && act == 0);
            const INDEX c0 = batch_offset(vC, eC, batch);
            const INDEX row = whole ? (INDEX)vC.s5 : N, col = whole ? (INDEX)vC.s6 : 1;
            const int before = whole ? 0 : share - share_of(tile * pairs, each, more);
            GLOBAL T *to = whole ? gC + c0 : gSums + start + ((INT64)before * batches + batch) * M * N;
            const R factor = whole ? alpha : 1.0f;
            int finite = 1;

            UNROLL for (int i = 0; i < SUMS; i++)
                finite &= ABS(sum[i]) <= LARGEST;

            /* Of an item's sums, i and i + 2 are of columns n and n + 1 of C; i and i + 1 of two rows. */
            if (plain && finite) {
                const int in_pairs = col == 1 && row % 2 == 0 && (UINT64)to % 8 == 0 && n + 1 < N;

                UNROLL for (int pair = 0; pair < SUMS / 2; pair++) {
                    const int i = pair / 2 * 4 + pair % 2, m = m0 + c + pair / 2 * 8 + pair % 2;
                    GLOBAL T *const p = to + m * row + n * col;

                    if (m < M && in_pairs) {
                        STORE_PAIR(p, factor * (sum[i] * UNSCALE), factor * (sum[i + 2] * UNSCALE));
                    } else if (m < M && n < N) {
                        p[0] = factor * (sum[i] * UNSCALE);
                        if (n + 1 < N)
                            p[col] = factor * (sum[i + 2] * UNSCALE);
                    }
                }
            } else {
                const INDEX bias0 = batch_offset(vBias, eC, batch), bias_row = (INDEX)vBias.s5;
                const int k0 = first * 2 * BLK_K, k1 = K < k0 + here * 2 * BLK_K ? K : k0 + here * 2 * BLK_K;
                GLOBAL const T *a = gA + batch_offset(vA, eC, batch) + k0 * (INDEX)vA.s6;
                GLOBAL const T *b = gB + batch_offset(vB, eC, batch) + k0 * (INDEX)vB.s5;
                float sums[SUMS];               /* where a loop can index them: the epilogue is long */

                UNROLL for (int i = 0; i < SUMS; i++)
                    sums[i] = sum[i];
                NO_UNROLL for (int i = 0; i < SUMS; i++) {
                    const int m = m0 + c + i / 4 * 8 + i % 2, at_n = n + i / 2 % 2;

                    if (m < M && at_n < N) {
                        const INDEX at_c = m * row + at_n * col;
                        R s = sums[i] * UNSCALE;

                        if (!(ABS(sums[i]) <= LARGEST))
                            s = plain_sum(a + m * (INDEX)vA.s5, (INDEX)vA.s6,
                                          b + at_n * (INDEX)vB.s6, (INDEX)vB.s5, k1 - k0);
                        if (plain)
                            to[at_c] = factor * s;
                        else
                            STORE(to, at_c, epilogue(s, alpha, beta, to, at_c, has_bias, gBias,
                                                     bias0 + m * bias_row + at_n * (INDEX)vBias.s6, act));
                    }
                }
            }
            warp_meet();
        }
    }
}

/* The tiles that are in several shares: sums of these, in their order, to C.  A work-group has 8 rows of a
 * tile, an item 4 neighbours of a row.                                                               */
#define READS 4                                 /* under way together */
#define R4    VECTOR(R, 4)

KERNEL(2 * BLK_N) void
add_shares(int M, int N, int K, VIEW eC, R alpha, int batches, int each, int more,
           GLOBAL const float *RESTRICT gSums, int start, R beta, GLOBAL T *RESTRICT gC, VIEW vC,
           int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    const int eighths = (M + 7) / 8, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int tile = GROUP_ID(0) / eighths, batch = batches == 1 ? 0 : tile / tiles_n;
    const int n = (tile - batch * tiles_n) * BLK_N + LOCAL_ID() % (BLK_N / 4) * 4;
    const int m = (GROUP_ID(0) - tile * eighths) * 8 + LOCAL_ID() / (BLK_N / 4);
    const int here = N - n < 4 ? N - n : 4;
    const int pairs = (K + 2 * BLK_K - 1) / (2 * BLK_K), first = tile * pairs;
    const int count = share_of(first + pairs - 1, each, more) - share_of(first, each, more) + 1;
    const INT64 step = (INT64)batches * M * N;
    GLOBAL const float *from = gSums + start + (INT64)batch * M * N + (INT64)m * N + n;
    R sum[4] = { ZERO, ZERO, ZERO, ZERO };

    if (count == 1 || m >= M || here < 1)
        return;
    if (N % 4 == 0) {
        R4 all = (R4)(ZERO);

        for (int s = 0; s < count; s += READS) {
            R4 r[READS];

            UNROLL for (int i = 0; i < READS; i++)
                r[i] = VLOAD_ALIGNED(R4, from + (s + i < count ? s + i : s) * step);
            UNROLL for (int i = 0; i < READS; i++)
                if (s + i < count)
                    all = all + r[i];
        }
        VSTORE(4, sum, all);
    } else {
        for (int s = 0; s < count; s++)
            UNROLL for (int i = 0; i < 4; i++)
                if (i < here)
                    sum[i] = sum[i] + from[s * step + i];
    }

    store_neighbours(sum, here, batches == 1, batch, m, n, eC, alpha, beta, gC, vC, has_bias, gBias, vBias, act);
}
