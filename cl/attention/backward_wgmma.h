/* cl/attention/backward_wgmma.h - products, weights and tiles of the gradients of attention by wgmma
 *
 * A tile has 64 rows, keys or queries, of one head for each warpgroup; a block has KEYS_N queries, or
 * QUERIES_N keys, and the rows of d_out, or of values, that belong to them.
 *
 *     scores = rows block^T      both operands K-major; rows from local memory, or registers
 *     sums  += weights block     weights from registers, in the layout of scores; the block N-major
 *
 * Tiles are numbered by sections of heads, of which L2 holds what the tiles of a head share; those of a
 * section begin with the longest.
 *
 * Takes: boxes.h, cl/tile/accumulator.h; HEAD KEYS_N QUERIES_N TURNS CAUSAL; struct sight.
 * Gives: SUMS, BYTES_TILE, *_by_keys(), *_by_queries(), struct backward_tile.
 */
#define SUMS       (HEAD / 2)                   /* accumulators of a work-item: of a row of a head */
#define BYTES_TILE (BLK_M * HEAD * T_BYTES)
#define BYTES_ROWS(n) ((n) * HEAD * T_BYTES)    /* of a block */

/* ---- products ------------------------------------------------------------------------- */

/* A warpgroup hands them to the tensor cores: scores_NAME() of rows in local memory, scores_of_NAME() of rows
 * in registers, and sums_NAME(). */
#define BLOCK_PRODUCTS(name, n)                                                                         \
DEVICE void scores_##name(float *s, UINT32 rows, UINT32 block)                                          \
{                                                                                                       \
    wgmma_begin();                                                                                      \
    UNROLL for (int k = 0; k < HEAD / 16; k++)                                                          \
        WGMMA(n, OPERAND_KIND, WGMMA_MAJOR(0, 0), s, operand_product(rows, 0, BLK_M, k),                \
              operand_product(block, 0, n, k), k > 0);                                                  \
    wgmma_commit();                                                                                     \
}                                                                                                       \
DEVICE void scores_of_##name(float *s, const UINT32 *rows, UINT32 block)                                \
{                                                                                                       \
    wgmma_begin();                                                                                      \
    UNROLL for (int k = 0; k < HEAD / 16; k++)                                                          \
        WGMMA_RS(n, OPERAND_KIND, WGMMA_MAJOR_B(0), s, rows + 4 * k, operand_product(block, 0, n, k),   \
                 k > 0);                                                                                \
    wgmma_commit();                                                                                     \
}                                                                                                       \
DEVICE void sums_##name(float *sums, const UINT32 *weights, UINT32 block)                               \
{                                                                                                       \
    wgmma_begin();                                                                                      \
    UNROLL for (int k = 0; k < n / 16; k++)                                                             \
        WGMMA_RS(HEAD, OPERAND_KIND, WGMMA_MAJOR_B(1), sums, weights + 4 * k,                           \
                 operand_product(block, 1, n, k), 1);                                                   \
    wgmma_commit();                                                                                     \
}

BLOCK_PRODUCTS(by_keys, KEYS_N)
BLOCK_PRODUCTS(by_queries, QUERIES_N)

DEVICE void clear_sums(float *sums)
{
    UNROLL for (int i = 0; i < SUMS; i++)
        sums[i] = 0.0f;
}

/* As operands in registers, of the type. */
DEVICE void weights_of(UINT32 *weights, const float *s, const int columns)
{
    UNROLL for (int k = 0; k < columns / 16; k++)
        acc_to_fragment(weights + 4 * k, s, k);
}

/* Warpgroups may take turns in handing over: while the products of one run, the others are busy with
 * exponentials.  One begins with a turn, and takes one more at the end, which nobody else wants. */
#define TURN_ITEMS 256                          /* of the warpgroups that give a turn and wait for it */

DEVICE void take_turn(int team)
{
    if (TURNS)
        bar_sync(1 + team, TURN_ITEMS);
}

DEVICE void give_turn(int team)
{
    if (TURNS)
        bar_arrive(team == WARPGROUPS - 1 ? 1 : 2 + team, TURN_ITEMS);
}

/* ---- weights -------------------------------------------------------------------------- */

/* Whether any of the warp's 16 rows of keys, of which n is the lane's first, is hidden from any of the block
 * of queries from m on. */
DEVICE int hides_by_keys(const struct sight *sight, int n, int m)
{
    const int n0 = n - (int)(LOCAL_ID() % 32) / 4;

    return m + sight->offset < n0 + 15 ||
           (sight->window && m + KEYS_N - 1 + sight->offset - sight->window >= n0);
}

DEVICE void hide_by_keys(float *s, const struct sight *sight, int n, int m)
{
    UNROLL for (int below = 0; below < 2; below++) {
        const int from = n + 8 * below - sight->offset - m;
        const int behind = sight->window ? from + sight->window : 0x7fffffff;

        UNROLL for (int i = 2 * below; i < KEYS_N / 2; i += 4)
            UNROLL for (int e = i; e < i + 2; e++)
                if (ACC_COL(e) < from || ACC_COL(e) >= behind)
                    s[e] = -INFINITE;
    }
}

/* Scores become P.  Rows are keys, n that of the lane's first, columns queries, m that of the block's first;
 * of each of the lane's columns there is a shift.  scale: in powers of 2. */
DEVICE void weigh_by_keys(float *s, LOCAL const float *shift, float scale, const struct sight *sight, int n,
                          int m)
{
    if (CAUSAL && hides_by_keys(sight, n, m))
        hide_by_keys(s, sight, n, m + acc_first_col(LOCAL_ID() % 32));
    UNROLL for (int i = 0; i < KEYS_N / 2; i++)
        s[i] = ptx_exp2(FMA(s[i], scale, -shift[ACC_COL(i)]));
}

/* d, of V dO^T, becomes dS / scale. */
DEVICE void differ_by_keys(float *d, const float *p, LOCAL const float *delta)
{
    UNROLL for (int i = 0; i < KEYS_N / 2; i++)
        d[i] = p[i] * (d[i] - delta[ACC_COL(i)]);
}

/* Likewise where rows are queries, m that of the lane's first, and columns keys, n that of the block's first;
 * of each of the lane's two rows there is a shift. */
DEVICE void weigh_by_queries(float *s, const float *shift, float scale, const struct sight *sight, int m,
                             int n)
{
    const int lane = LOCAL_ID() % 32;

    if (online_hides(sight, m - lane / 4, n, QUERIES_N))
        online_hide(s, QUERIES_N / 2, sight, m, n + acc_first_col(lane));
    UNROLL for (int i = 0; i < QUERIES_N / 2; i++)
        s[i] = ptx_exp2(FMA(s[i], scale, -shift[ACC_BELOW(i)]));
}

DEVICE void differ_by_queries(float *d, const float *p, const float *delta)
{
    UNROLL for (int i = 0; i < QUERIES_N / 2; i++)
        d[i] = p[i] * (d[i] - delta[ACC_BELOW(i)]);
}

/* ---- tiles ---------------------------------------------------------------------------- */

/* The first row, its head and batch, and the blocks that are seen, at least one. */
struct backward_tile { int x0, head, batch, block, blocks; };

DEVICE struct backward_tile tile_of(int at, int rows, int heads, int batches, int section, int from_last)
{
    const int tiles = (rows + BLK_M - 1) / BLK_M, before = quotient(at, section * tiles) * section;
    const int all = heads * batches, in = at - before * tiles, left = all - before;
    const int here = left < section ? left : section, x = quotient(in, here);
    const int head = before + in - x * here, batch = quotient(head, heads);
    const struct backward_tile tile = { (from_last ? tiles - 1 - x : x) * BLK_M, head - batch * heads, batch,
                                        0, 0 };

    return tile;
}

DEVICE struct backward_tile tile_by_keys(int at, const struct sight *sight, int queries, int heads,
                                         int batches, int section)
{
    struct backward_tile tile = tile_of(at, sight->keys, heads, batches, section, 0);
    const int last = tile.x0 + BLK_M < sight->keys ? tile.x0 + BLK_M - 1 : sight->keys - 1;
    const int end = (sight_behind(sight, last, queries) + KEYS_N - 1) / KEYS_N;
    const int from = sight_first(sight, tile.x0) / KEYS_N;

    tile.block = from < end ? from : 0;
    tile.blocks = from < end ? end - from : 1;
    return tile;
}

DEVICE struct backward_tile tile_by_queries(int at, const struct sight *sight, int queries, int heads,
                                            int batches, int section)
{
    struct backward_tile tile = tile_of(at, queries, heads, batches, section, 1);
    const int last = tile.x0 + BLK_M < queries ? tile.x0 + BLK_M - 1 : queries - 1;
    const int end = (sight_end(sight, last) + QUERIES_N - 1) / QUERIES_N;
    const int from = sight_begin(sight, tile.x0) / QUERIES_N;

    tile.block = from < end ? from : 0;
    tile.blocks = from < end ? end - from : 1;
    return tile;
}

/* ---- the end of a tile ------------------------------------------------------------------ */

/* The lane's two rows, m and m + 8 of `rows`, of a head. */
DEVICE void store_gradient(GLOBAL T *g, VIEW v, int batch, int head, int m, int rows, int length,
                           float factor, float *sums, int lane)
{
    GLOBAL T *const to = g + (INDEX)v.s0 + batch * (INDEX)v.s3 + head * (INDEX)v.s4;

    UNROLL for (int below = 0; below < 2; below++) {
        const int at = m + 8 * below, there = at < rows;

        acc_scale_row(sums, SUMS, below, factor);
        store_row_vectors(to + (there ? at : 0) * (INDEX)v.s5, sums, SUMS, below, lane, there ? length : 0);
    }
}
