/* cl/gemm/boxes.h - what kernels share whose operands the copy engine brings in boxes: for NVIDIA's sm_90
 *
 * A tile of C has 64 rows for each warpgroup, and BLK_N columns.  A slice of K is as long as a line of 128 bytes.  Lines of A
 * (B) run along K: a box has one for each row of the tile; or across it (ACROSS_A, ACROSS_B): one for each k.
 */
#define BLK_M    (64 * WARPGROUPS)
#define LINES_A  (ACROSS_A ? BLK_K : BLK_M)
#define LINES_B  (ACROSS_B ? BLK_K : BLK_N)
#define BYTES_A  (BLK_M * 128)                  /* of a slice */
#define BYTES_B  (BLK_N * 128)
#define STAGE    (BYTES_A + BYTES_B)
#if TYPE == 0
#define BLK_K    32
#define MAP_KIND MAP_TF32
#elif TYPE == 2
#define BLK_K    64
#define MAP_KIND MAP_BF16
#else
#define BLK_K    64
#define MAP_KIND MAP_F16
#endif

/* Maps of both operands, by one warp, for this work-group.  A batch step of 0 means one matrix for all. */
DEVICE void describe(GLOBAL unsigned INT64 *maps, LOCAL unsigned INT64 *room, int lane, int M, int N, int K, int batches,
                     GLOBAL const T *gA, VIEW vA, GLOBAL const T *gB, VIEW vB)
{
    const int is_b = lane == 1, across = is_b ? ACROSS_B : ACROSS_A, wide = is_b ? N : M;
    const INDEX line = is_b ? (ACROSS_B ? vB.s5 : vB.s6) : (ACROSS_A ? vA.s6 : vA.s5), step = is_b ? vB.s4 : vA.s4;

    room[lane] = 0;
    warp_meet();
    if (lane < 2)                               /* both at the same time */
        MAP_DESCRIBE(LOCAL_ADDRESS(room) + lane * MAP_BYTES, MAP_KIND, is_b ? gB + vB.s0 : gA + vA.s0,
                     across ? wide : K, across ? K : wide, step ? batches : 1, 128 / BLK_K * line, step ? 128 / BLK_K * step : 16,
                     BLK_K, is_b ? LINES_B : LINES_A);
    warp_meet();
    map_release_own(maps, LOCAL_ADDRESS(room));
    map_release_own(maps + MAP_BYTES / 8, LOCAL_ADDRESS(room) + MAP_BYTES);
}

/* Where a tile lies, in bands of BAND rows of tiles, for what the second-level cache keeps; and which part of K goes into it. */
struct tile { int m0, n0, batch, part; };

DEVICE struct tile tile_at(int at, int tiles_m, int tiles_n, int batches)
{
    const int batch = quotient(at, tiles_m * tiles_n), in_batch = at - batch * (tiles_m * tiles_n);
    const int band = quotient(in_batch, BAND * tiles_n), in_band = in_batch - band * (BAND * tiles_n);
    const int rows = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const int column = rows == BAND ? in_band / BAND : in_band / rows;
    struct tile t = { (band * BAND + in_band - column * rows) * BLK_M, column * BLK_N, batch, 0 };

#if PARTS
    t.part = quotient(batch, batches);
    t.batch = batch - t.part * batches;
#endif
    return t;
}

/* The slice of K from k0 on, to the stage at `to`. */
DEVICE void copy_slice(unsigned int to, GLOBAL const unsigned INT64 *maps, int m0, int n0, int k0,
                       int batch_a, int batch_b, unsigned int full)
{
    barrier_arrive_expect(full, STAGE);
    copy_operand(to, maps, ACROSS_A, BLK_M / BLK_K, BLK_K, m0, k0, batch_a, full);
    copy_operand(to + BYTES_A, maps + MAP_BYTES / 8, ACROSS_B, BLK_N / BLK_K, BLK_K, n0, k0, batch_b, full);
}
