/* cl/gemm/bf16x3_rows.cl - gemm_bf16x3 where A has few rows, for NVIDIA's sm_90
 *
 * The sums of cl/gemm/bf16x3.cl, of the same parts in the same order.  But where A has few rows, splitting B
 * first (4 bytes of an element read, 6 written, 6 read) takes longer than multiplying.  Here TMA loads B as
 * it is, and its parts are made on the way to the tensor cores, which take their left operand out of
 * registers: so the rows of wgmma are columns of B, and its columns are rows of A.
 *
 *               BLK_M rows of A,                     A 64 x 16 piece of B's columns, in registers:
 *               in parts                             lanes i of a warp, which has 16 columns
 *              +----------+                              k  0 1  2 3  4 5  6 7 | 8 9 ...
 *       BLK_K  |    A'    |                          n  0   i=0  1    2    3   | 0
 *     +-----+  +----------+                             1   i=0  1    2    3   | 0
 *     |     |  |   C'     |  64 columns of B:           2   i=4  5    6    7   | 4
 *     |  B' |  |          |  warpgroup 0                3   i=4  5    6    7   | 4
 *     |     |  +----------+
 *     |     |  |          |  warpgroup 1             (to wgmma those two rows are i / 4 and i / 4 + 8)
 *     +-----+  +----------+
 *
 * A lane's two columns are adjacent, because then no two lanes of a half warp read the same bank, whether B
 * is K-major or N-major; and because their sums can be stored in pairs.  A warpgroup reads its elements of
 * the next slice, and makes their parts, while the tensor cores multiply the slice before: in other
 * registers, hence two slices at a time.
 *
 * The slices of all tiles, one tile after the other, are divided evenly (Stream-K): each work-group has a
 * work unit of them, for BLK_M rows of A, that may begin and end within a tile.  So all compute units work to
 * the end, however many tiles there are; loads go on while a tile is stored.
 *
 *     tile 0           tile 1           tile 2
 *     +----------------+----------------+----------------+---
 *     | unit 0       | unit 1       | unit 2       | unit 3
 *     +--------------+--------------+--------------+---------
 *
 * A tile that is all in one unit goes to C; partial sums go to the workspace, and `add_units` adds them in
 * their order.
 *
 * Parameters, from gemm.tune: BLK_M, STAGES; MN_MAJOR_B: 1 where B is N-major.
 * Method: cl/gemm/bf16x3.cl; the left operand in registers as in CUTLASS's mixed-input kernels.
 */
#define SPLIT_SPAN 16                         /* of K, of a work-group that splits */

LARGE_LOCAL(gemm_bf16x3_rows, STAGES * STAGE)

/* The parts of A, padded to an even number of slices. */
KERNEL(256) void
split(int rows, int K, int per, VIEW e, GLOBAL const T *RESTRICT g, VIEW v,
      GLOBAL uint4 *RESTRICT parts, VIEW p)
{
    bf16x3_split(GROUP_ID(0), SPLIT_SPAN, rows, K, 2 * BLK_K, per, e, g, v, parts, p);
}

/* By a warp, the map of B; room: 128 bytes.  A batch stride of 0 means one matrix for all. */
DEVICE void rows_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, GLOBAL const T *b, VIEW v,
                     int N, int K, int batches)
{
    struct tensor_map m;

    m.address = (UINT64)b;
    m.type = MAP_TYPE_F32;
    m.rank = 3;
    m.pixels = 0;
    m.extent[0] = MN_MAJOR_B ? N : K;
    m.extent[1] = MN_MAJOR_B ? K : N;
    m.extent[2] = v.s4 ? batches : 1;
    m.stride[0] = (UINT64)(MN_MAJOR_B ? v.s5 : v.s6) * 4;
    m.stride[1] = v.s4 ? (UINT64)v.s4 * 4 : 16;
    m.box[0] = BLK_K;
    m.box[1] = MN_MAJOR_B ? BLK_K : BLK_N;
    m.box[2] = m.step[0] = m.step[1] = m.step[2] = 1;
    map_keep(map, room, lane, m);
}

/* The pairs of all batches, for each BLK_M rows, follow each other. */
KERNEL(128 * WARPGROUPS + 128) void
gemm_bf16x3_rows(int M, int N, int K, VIEW eC, R alpha,
                 GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
                 GLOBAL const uint4 *parts_a, VIEW pA, GLOBAL unsigned INT64 *gMaps, int first_map,
                 int kept, int batches, int each, int more, GLOBAL float *gSums, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int tile_m = GROUP_ID(0) % tiles_m, m0 = tile_m * BLK_M, unit = GROUP_ID(0) / tiles_m;
    const int pairs = (K + 2 * BLK_K - 1) / (2 * BLK_K);
    const int begin = unit_begins(unit, each, more), end = unit_begins(unit + 1, each, more);
    const int me = LOCAL_ID(), warp = this_warp();
    const UINT32 stages = warp_uniform(LOCAL_ADDRESS(sAB));
    GLOBAL unsigned INT64 *const map = gMaps + first_map * (MAP_BYTES / 8);
    struct pipeline p = pipe_at(barriers, STAGES);

    if (!kept && warp == 0)
        rows_map(map, (LOCAL UINT32 *)sAB, me, gB + vB.s0, vB, N, K, batches);
    else if (me == 32)
        pipe_init(p, STAGES, ROLE_WARPS);
    BARRIER();

    if (warp >= ROLE_WARPS) {
        role_give_registers(MOVES);
        if (warp == ROLE_WARPS && is_elected()) {
            map_acquire(map);
            for (int at = begin, here; at < end; at += here) {
                const int tile = at / pairs, first = at - tile * pairs, batch = tile / tiles_n;
                const int n0 = (tile - batch * tiles_n) * BLK_N;
                const INT64 panel = batch_offset(pA, eC, batch) + tile_m;
                GLOBAL const uint4 *a = parts_a + pA.s7 + (panel * pairs + first) * (2 * BYTES_A / 16);

                here = pairs - first < end - at ? pairs - first : end - at;
                for (int i = 0; i < 2 * here; i++) {
                    const UINT32 to = stages + p.stage * STAGE;

                    p = producer_acquire(p);
                    producer_expect(p, STAGE);
                    operand_load(to, map, MN_MAJOR_B, BLK_N, BLK_N, n0, (2 * first + i) * BLK_K,
                                 batch * (vB.s4 != 0), pipe_full(p));
                    copy_bytes(to + BYTES_B, a + (INT64)i * (BYTES_A / 16), BYTES_A, pipe_full(p));
                    p = pipe_next(p, STAGES);
                }
            }
        }
    } else {
        role_take_registers(MOVES);

        const int r = row_of_b(me), c = acc_first_col(me % 32);
        UINT32 even[PARTS_OF_B], odd[PARTS_OF_B];
        float d[ACCUMULATORS], sum[ACCUMULATORS], copy[ACCUMULATORS];

        UNROLL for (int i = 0; i < ACCUMULATORS; i++)
            d[i] = 0.0f;
        load_parts(even, p, sAB, me);
        for (int at = begin, here; at < end; at += here) {
            const int tile = at / pairs, first = at - tile * pairs, batch = tile / tiles_n;
            const int n = (tile - batch * tiles_n) * BLK_N + r;

            here = pairs - first < end - at ? pairs - first : end - at;
            UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                sum[i] = 0.0f;
            for (int i = 0; i < here; i++) {
                const struct pipeline other = pipe_next(p, STAGES);
                const int last = at + i + 1 == end;         /* of the unit: then `other` is read again */

                multiply(sum, d, p, even, other, odd, stages, sAB, me);
                p = pipe_next(other, STAGES);
                multiply(sum, d, other, odd, last ? other : p, even, stages, sAB, me);
            }

            /* To C, or to where partial sums of the tile are, [unit][batch][m][n]. */
            const int whole = here == pairs, before = whole ? 0 : unit - unit_of(tile * pairs, each, more);
            const struct output output = OUTPUT(batch);
            const INDEX row = whole ? output.row : N, col = whole ? output.col : 1;
            GLOBAL float *const to = whole ? output.c
                                           : gSums + ((INT64)before * batches + batch) * M * N;

            if (bf16x3_all_finite(sum, ACCUMULATORS)) {
                UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                    sum[i] *= BF16X3_UNSCALE;
                if (whole)
                    finish_across(&output, sum, ACCUMULATORS, m0 + c, n);
                store_pairs_across(to, 0, row, col, sum, ACCUMULATORS, m0 + c, n, M, N);
            } else {
                const int k0 = first * 2 * BLK_K, k1 = K < k0 + here * 2 * BLK_K ? K : k0 + here * 2 * BLK_K;
                GLOBAL const T *a = gA + batch_offset(vA, eC, batch) + k0 * (INDEX)vA.s6;
                GLOBAL const T *b = gB + batch_offset(vB, eC, batch) + k0 * (INDEX)vB.s5;

                UNROLL for (int i = 0; i < ACCUMULATORS; i++)
                    copy[i] = sum[i];           /* where a loop can index them: what follows is long */
                NO_UNROLL for (int i = 0; i < ACCUMULATORS; i++) {
                    const int m = m0 + c + ACC_COL(i), at_n = n + ACC_BELOW(i);

                    if (m < M && at_n < N) {
                        const R s = bf16x3_sum(copy[i], a + m * (INDEX)vA.s5, (INDEX)vA.s6,
                                               b + at_n * (INDEX)vB.s6, (INDEX)vB.s5, k1 - k0);

                        if (whole)
                            store_element(&output, m, at_n, s);
                        else
                            to[m * row + at_n * col] = s;
                    }
                }
            }
            warp_meet();
        }
    }
}

/* The tiles that are in several units: their partial sums, in order, to C.  A work-group has 8 rows of a
 * tile, a work-item 4 adjacent columns of a row. */
#define READS 4                                 /* in flight together */
#define R4    VECTOR(R, 4)

KERNEL(2 * BLK_N) void
add_units(int M, int N, int K, VIEW eC, R alpha, int batches, int each, int more,
          GLOBAL const float *RESTRICT gSums, OUTPUT_PARAMS)
{
    const int eighths = (M + 7) / 8, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int tile = GROUP_ID(0) / eighths, batch = batches == 1 ? 0 : tile / tiles_n;
    const int n = (tile - batch * tiles_n) * BLK_N + LOCAL_ID() % (BLK_N / 4) * 4;
    const int m = (GROUP_ID(0) - tile * eighths) * 8 + LOCAL_ID() / (BLK_N / 4);
    const int here = N - n < 4 ? N - n : 4;
    const int pairs = (K + 2 * BLK_K - 1) / (2 * BLK_K), first = tile * pairs;
    const int count = unit_of(first + pairs - 1, each, more) - unit_of(first, each, more) + 1;
    const INT64 step = (INT64)batches * M * N;
    GLOBAL const float *from = gSums + (INT64)batch * M * N + (INT64)m * N + n;
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

    const struct output c = OUTPUT(batch);

    store_vector(&c, m, n, sum, here);
}
