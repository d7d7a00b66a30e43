/* cl/gemm/cpu.cl - C := act(alpha A B + beta C + bias), for CPUs
 *
 * There is one work-group, of one work-item, per core. Each takes a task, which is a block of C,
 * computes it, and takes the next until none is left. B is packed, BLK_K rows at a time, into
 * panels in local memory, which on a CPU is the cache; a panel serves all rows of the task.
 *
 *         PACKED                                  otherwise
 *               BLK_N                                    N
 *             +-+-+-+-+                               +-+-+-+-+-+-+-+
 *      BLK_K  |1|2|3|4|   in the cache         BLK_K  |1|2|3| ...       one panel in the cache
 *             +-+-+-+-+                               +-+-+-+-+-+-+-+
 *      +---+  +-+-+-+-+                        +---+  +-+-+-+-+-+-+-+
 *      | A |  |1|2|3|4|  THR_M                 | A |  |1|4|7|           THR_M (the register tile
 *      | A |  |5|6|7|8|                        | A |  |2|5|8|                  is cl/tile/cpu.h)
 *      | A |  |9| ...                          | A |  |3|6| ...
 *      +---+  +-+-+-+-+                        +---+  +-+-+-+-+-+-+-+
 *
 * With PACKED, `pack` has packed A into panels for all work-groups beforehand; with PACKED_B,
 * `pack_b` has packed B, and nothing is copied. Otherwise rows of A are packed in the cache when
 * the task first needs them; with DIRECT, they are read in place. Partial sums between blocks of K
 * stay in local memory, in blocks of BLK_N columns, or in C, where C can hold them.
 *
 * Decisions:
 *   - The inner loop of a tile runs at the peak, and a tile has a fixed cost on top: BLK_K is as
 *     long as the cache allows.
 *   - Whole tiles are stored from registers; C is prefetched in the last steps of k. Storing by way
 *     of local memory is for edges and for the epilogue.
 *   - The first tile of a panel of B packs it as it computes (B_FILL), which costs less than a copy
 *     of its own. A small B, which stays in the second-level cache, is read in place.
 *   - Packing A for all pays from memory only for large problems; DIRECT needs other rows of A
 *     to be prefetched while a tile computes.
 *   - Packing B for all (PACKED_B) pays where many rows, or many products, use it. It packs a few
 *     rows of B at a time for all panels, since panel after panel would touch a page for 128 bytes.
 *     The next block of it is prefetched in the last rows of tiles, where the cache holds two: a core
 *     that waits for each line of a block takes three times as long for the first row of tiles.
 *   - Tasks are scheduled statically first, then dynamically, since a core may begin late.
 *
 * Parameters, from gemm.tune: THR_M THR_V VEC BLK_M BLK_N BLK_K. The second-level cache holds, with
 * PACKED, (BLK_K + BLK_M) BLK_N elements; else BLK_M (BLK_K + BLK_N), or with DIRECT, BLK_M BLK_N.
 */
#if BLK_N % THR_N || BLK_M % THR_M
#error "a register tile must divide the work-group's"
#endif

#if PACKED
#define SPACE_A GLOBAL
#else
#define SPACE_A LOCAL
#endif
#if PACKED_B
#define SPACE_B GLOBAL
#else
#define SPACE_B LOCAL
#endif

CPU_PACK(pack_global, GLOBAL)
CPU_PACK(pack_local, LOCAL)
CPU_TILE(tile, SPACE_A, R, CPU_PANEL, SPACE_B)
#if DIRECT
CPU_TILE(tile_direct, GLOBAL, T, CPU_ROWS, LOCAL)
#endif

/* gP[panel][k][row], where s5 of vP is the step from panel to panel; B is passed transposed, so that its
 * columns are the rows here. A work-group packs `k_block` of K of `panels` panels, each WIDTH rows wide. */
#define PACK(name, WIDTH)                                                                                   \
KERNEL(1) void                                                                                              \
name(int rows, int K, int k_block, int panels, VIEW e, GLOBAL const T *RESTRICT g, VIEW v,                  \
     GLOBAL R *RESTRICT gP, VIEW vP)                                                                        \
{                                                                                                           \
    const int k0 = GROUP_ID(0) * k_block, from = GROUP_ID(1) * panels, all = (rows + WIDTH - 1) / WIDTH;    \
    const int depth = K - k0 < k_block ? K - k0 : k_block,                                                  \
              end = all - from < panels ? all : from + panels;                                              \
    const INDEX row_step = (INDEX)v.s5, k_step = (INDEX)v.s6;                                               \
    const INDEX from0 = batch_offset(v, e, GROUP_ID(2)) + k0 * k_step;                                      \
    const INDEX to0 = batch_offset(vP, e, GROUP_ID(2)) + (INDEX)k0 * WIDTH;                                 \
                                                                                                            \
    for (int i = from; i < end; i++)                                                                        \
        pack_global(gP + to0 + i * (INDEX)vP.s5, WIDTH, WIDTH,                                              \
                    rows - i * WIDTH < WIDTH ? rows - i * WIDTH : WIDTH,                                    \
                    g + from0 + i * WIDTH * row_step, row_step, k_step, depth);                             \
}

PACK(pack, THR_M)
#if PACKED_B
PACK(pack_b, THR_N)
#endif

#if PACKED_B
/* The last `rows` rows of tiles, of which `left` are left, prefetch the panels of B of the next block of K,
 * or of the first one, with which a task of the rows below begins: each tile its share of a panel.        */
DEVICE struct stream prefetch_block(GLOBAL const R *b, int rows, int left, int depth)
{
    const INDEX lines = THR_N * (INDEX)sizeof(R) / (INDEX)sizeof(T);
    struct stream next = { (GLOBAL const T *)b, 0, 0 };

    if (left <= rows) {
        next.step = lines / rows;
        next.at = next.at + (rows - left) * depth * next.step;
        next.advance = 16 * next.step;
    }
    return next;
}
#endif

#if !PACKED
/* A task visits its tiles column by column. Those of the first column prefetch the rows of A that are packed
 * next, the last two of each column the columns of B that are packed next.                          */
DEVICE struct stream prefetch_next(int m, int n, int count, int width, GLOBAL const T *a, VIEW vA,
                                   GLOBAL const T *b, VIEW vB)
{
    const INDEX second = m + 1 < count ? 0 : 16;
    struct stream next = { b, 0, 0 };

    if (n == 0 && m + 1 < count && vA.s6 == 1) {
        next.at = a + THR_M * (INDEX)vA.s5;
        next.step = vA.s5;
        next.advance = 16;
    } else if (m + 2 >= count && n + 2 * THR_N <= width) {
        next.at = b + (THR_N + second) * (INDEX)vB.s6;
        next.step = vB.s6 == 1 ? vB.s5 : vB.s6;
        next.advance = vB.s6 == 1 ? 16 * (INDEX)vB.s5 : 16;
    }
    return next;
}
#endif

/* ---- tasks ----------------------------------------------------------------------- */

/* C is divided into blocks, and these into work units of THR_M rows by `unit` columns, which are numbered
 * along a row of tiles, then down the block, then block by block along the rows of C. A task is a range of
 * them: whole rows of tiles of one block or, at the end, units of one row. */
struct task { int at, units; };

/* The next task. The schedule is static at first, `quota` units per work-group; then guided, as in OpenMP: a
 * task is what is left, divided by `divisor`. So tasks are large as long as much is left, and all work-groups
 * finish at about the same time, also where some begin late or are slow. `taken` counts the units taken. */
DEVICE struct task next_task(GLOBAL int *taken, int all, int groups, int quota, int divisor,
                             int row_units, int most, int block)
{
    struct task t = { 0, 0 };

    while (t.at < all) {
        const int done = t.at % row_units, rest = block - t.at % block;
        int seen;

        t.units = t.at < quota * groups ? quota : (all - t.at) / divisor;
        t.units = t.units < 1 ? 1 : t.units > most ? most : t.units;
        t.units = t.units < rest ? t.units : rest;
        if (done)                               /* the first units of this row belong to another task */
            t.units = t.units < row_units - done ? t.units : row_units - done;
        else if (t.units > row_units)
            t.units -= t.units % row_units;
        seen = ATOMIC_CAS(taken, t.at, t.at + t.units);
        if (seen == t.at)
            return t;
        t.at = seen;
    }
    t.units = 0;
    return t;
}

/* The last work-group to leave resets the counters to 0. */
DEVICE void leave(GLOBAL int *taken, int all, int groups)
{
    if (ATOMIC_ADD(taken + 1, 1) == groups - 1) {
        ATOMIC_ADD(taken, -all);
        ATOMIC_ADD(taken + 1, -groups);
    }
}

/* ---- the product ------------------------------------------------------------------- */

/* A block of C is `tall` rows of tiles by `cols` columns, and a task at most `rows` rows of it; a work unit
 * is `unit` columns wide, and there are `all` of them, some below C where blocks do not divide it. in_place:
 * B is read in place. in_c: partial sums between blocks of K stay in C. streams: C is stored past the caches.
 * ahead_rows: rows of tiles that prefetch packed B. */
KERNEL(1) void
gemm_cpu(int M, int N, int K, int rows, int cols, int tall, int unit, int in_place, int in_c, int streams,
         int all, int ahead_rows, int groups, int quota, int divisor, GLOBAL int *RESTRICT taken,
         VIEW eC, R alpha, GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const R *RESTRICT gP, VIEW vP,
         GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL R *RESTRICT gQ, VIEW vQ, OUTPUT_PARAMS)
{
#if !PACKED_B
    LOCAL_ARRAY(RV, sB, BLK_K * (PACKED ? BLK_N : THR_N) / VEC);
#endif
    LOCAL_ARRAY(RV, sC, BLK_M * BLK_N / VEC);   /* partial sums, tile by tile */
#if !PACKED
    LOCAL_ARRAY(R, sA, BLK_K * (DIRECT ? THR_M : BLK_M));
#endif
    const int row_units = (cols + unit - 1) / unit, across = (N + cols - 1) / cols;
    const int block_units = tall * row_units, tiles_m = (M + THR_M - 1) / THR_M;
    const int blocks = (tiles_m + tall - 1) / tall * across;    /* of a matrix */

    for (;;) {
        const struct task t = next_task(taken, all, groups, quota, divisor, row_units,
                                        rows / THR_M * row_units, block_units);
        const int block = t.at / block_units, batch = block / blocks, col0 = t.at % row_units * unit;
        const int n0 = block % across * cols + col0, most = cols - col0 < N - n0 ? cols - col0 : N - n0;
        const int width = t.units < row_units && t.units * unit < most ? t.units * unit : most;
        const int top = block % blocks / across * tall + t.at % block_units / row_units;
        const int all_rows = t.units < row_units ? 1 : t.units / row_units, first = top * THR_M;
        const int count = all_rows < tiles_m - top ? all_rows : tiles_m - top;
        const int tiles = (width + THR_N - 1) / THR_N;
        int k0 = 0;

        if (!t.units)
            break;
        if (width <= 0 || count <= 0)           /* the last block is narrower, or lower */
            continue;

#if PACKED_B
        GLOBAL R *const batch_b = gQ + batch_offset(vQ, eC, batch) + n0 / THR_N * (INDEX)vQ.s5;
#else
        const INDEX b0 = batch_offset(vB, eC, batch) + n0 * (INDEX)vB.s6;
        const int step = count > 1 ? THR_V : 0; /* one row of tiles: the panel is not read again */
#endif
        const struct output c = OUTPUT(batch);
#if PACKED
        GLOBAL const R *batch_panels = gP + batch_offset(vP, eC, batch);
#else
        const INDEX a0 = batch_offset(vA, eC, batch);
#endif

        do {                                    /* once also when K is 0 */
            const int depth = K - k0 < BLK_K ? K - k0 : BLK_K;
            const int is_last = k0 + depth >= K;

            for (int i = 0; i < count * tiles; i++) {
#if PACKED
                const int m = i / tiles, n = i % tiles * THR_N;
#else
                const int m = i % count, n = i / count * THR_N;
#endif
                const int m0 = first + m * THR_M, height = M - m0 < THR_M ? M - m0 : THR_M;
                const int wide = width - n < THR_N ? width - n : THR_N;
                GLOBAL TC *const to = c.c + m0 * c.row + (n0 + n) * c.col;
                LOCAL RV *partial = K <= BLK_K || in_c ? sC
                                  : sC + m * THR_M * (BLK_N / VEC) + n / VEC * THR_M;
#if PACKED
                GLOBAL const R *a = batch_panels + m0 / THR_M * (INDEX)vP.s5 + k0 * THR_M;
#else
                LOCAL R *a = DIRECT ? sA : sA + m * THR_M * depth;
                GLOBAL const T *a_rows = gA + a0 + m0 * (INDEX)vA.s5 + k0 * (INDEX)vA.s6;
#endif
#if PACKED_B
                GLOBAL R *const at = batch_b + n / THR_N * (INDEX)vQ.s5 + (INDEX)k0 * THR_N;
                GLOBAL RV *b = (GLOBAL RV *)at;
                const struct stream ahead = prefetch_block(
                    at + (is_last ? -(INDEX)k0 : (INDEX)depth) * THR_N, ahead_rows, count - m, depth);
                const int fills = 0;
#else
                LOCAL RV *b = PACKED ? sB + n / VEC * depth : sB;
                const struct stream b_rows = { gB + b0 + k0 * (INDEX)vB.s5 + n * (INDEX)vB.s6,
                                               (INDEX)vB.s5, 0 };
                const int fills = (m == 0 || in_place) && vB.s6 == 1 && wide == THR_N;
#if PACKED
                const struct stream ahead = { gB, 0, 0 };
#else
                const struct stream ahead = prefetch_next(m, n, count, width, a_rows, vA, b_rows.at, vB);
#endif
#endif

                const int is_whole = height == THR_M && wide == THR_N, stores = is_last || in_c;
                const int in_rows = stores && c.col == 1;
                const int is_plain = in_rows && is_whole && (!is_last || IS_PLAIN);
                const int past = streams && in_rows &&
                                 ((UINT64)to | (UINT64)c.row * C_BYTES) % CPU_STREAM_BYTES == 0;
                const int prefetch_from = !fills && in_rows && !past && !ahead.step && depth > CPU_PREFETCH_C
                                        ? depth - CPU_PREFETCH_C : depth;
                const int start = k0 == 0 ? FROM_ZERO : in_c && is_whole ? FROM_C : FROM_PARTIAL;
                const R scale = is_last ? alpha : (R)1;
                const INDEX next = start != FROM_C ? 0 : m + 1 < count ? THR_M * c.row
                                 : THR_N - m * THR_M * c.row;
                const struct target target = { to, to + next + VEC - 1, c.row, prefetch_from, is_plain,
                                               scale, past };

                if (in_rows && !past && prefetch_from == depth && !in_place)
                    for (int j = 0; j < height; j++)
                        UNROLL for (int v = 0; v < THR_V; v++)
                            PREFETCH(to + j * c.row + (v + 1) * VEC - 1);
#if R_IS_T
                if (in_c && start == FROM_PARTIAL)
                    for (int j = 0; j < height; j++)
                        for (int x = 0; x < wide; x++)
                            ((LOCAL R *)partial)[j * THR_N + x] = LOAD_C(to, j * c.row + x);
#endif
#if !PACKED
                if (n == 0 && height < (DIRECT ? THR_M : THR_M + 1))
                    pack_local(a, THR_M, height > CPU_ROWS_1 ? THR_M : CPU_ROWS_1, height, a_rows,
                               (INDEX)vA.s5, (INDEX)vA.s6, depth);
#endif
#if !PACKED_B
                if (m == 0 && !fills)
                    pack_local((LOCAL R *)b, THR_N, THR_N, wide, b_rows.at,
                               (INDEX)vB.s6, (INDEX)vB.s5, depth);
#if DIRECT
                if (height == THR_M && fills && in_place)
                    tile_direct(THR_M, THR_V, B_IN_PLACE, partial, a_rows, (INDEX)vA.s5, b, 0, b_rows,
                                depth, start, target);
                else if (height == THR_M && fills)
                    tile_direct(THR_M, THR_V, B_FILL, partial, a_rows, (INDEX)vA.s5, b, step, b_rows,
                                depth, start, target);
                else if (height == THR_M)
                    tile_direct(THR_M, THR_V, B_PANEL, partial, a_rows, (INDEX)vA.s5, b, THR_V, ahead,
                                depth, start, target);
                else
#endif
                if (fills)
                    CPU_TILE_FILL(tile, height, partial, a, b, step, b_rows, depth, start, target);
                else
#endif
                    CPU_TILE_SIZED(tile, height, wide, partial, a, b, ahead, depth, start, target);
                if (is_last && !is_plain)
                    for (int j = 0; j < height; j++)
                        tile_store_row(partial + j * THR_V, 0, wide, &c, m0 + j, n0 + n, past);
                else if (stores && !is_plain)
                    for (int j = 0; j < height; j++)
                        tile_keep_row(partial + j * THR_V, wide, &c, m0 + j, n0 + n);
            }
            k0 += depth;
        } while (k0 < K);
    }
    leave(taken, all, groups);
}
