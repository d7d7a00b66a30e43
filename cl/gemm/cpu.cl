/* cpu.cl - C := act(alpha A B + beta C + bias), for CPUs
 *
 * As many work-groups (of one work-item) as there are cores; each takes a piece of C, makes it, and takes
 * the next, until there are none.  B is copied, a stretch of BLK_K rows at a time, into panels in
 * local memory, which on a CPU is the cache; a panel is used for all rows of the piece.
 *
 *         PACKED                                  else
 *               BLK_N                                    N
 *             +-+-+-+-+                               +-+-+-+-+-+-+-+
 *      BLK_K  |1|2|3|4|   in the cache         BLK_K  |1|2|3| ...       one panel in the cache
 *             +-+-+-+-+                               +-+-+-+-+-+-+-+
 *      +---+  +-+-+-+-+                        +---+  +-+-+-+-+-+-+-+
 *      | A |  |1|2|3|4|  THR_M                 | A |  |1|4|7|           THR_M (see tile_cpu.h for
 *      | A |  |5|6|7|8|                        | A |  |2|5|8|                  the register tile)
 *      | A |  |9| ...                          | A |  |3|6| ...
 *      +---+  +-+-+-+-+                        +---+  +-+-+-+-+-+-+-+
 *
 * With PACKED, A was put into panels for everyone by `pack` beforehand; with PACKED_B, so was B by
 * `pack_b`, and nothing is copied.  Without, rows of A are made panels in the cache when the piece
 * first comes to them; DIRECT, they are read where they lie.  Sums that wait for more of K do so in the cache,
 * in blocks of BLK_N columns; or, where C can hold them, in C (1536 and 3072: 2 %).
 *
 * Learnt on a Zen 4 with 1 MiB of second-level cache, f32: the loop of a tile runs at the peak,
 * and a tile costs 120 cycles on top, so BLK_K is as long as the cache allows.  Packing A for
 * everyone costs 3 % at 1024 (to memory and back), in the cache 1 %, and not at all where a few
 * rows fit the first-level cache as they lie, at 256 and 512; it needs other rows of A to be asked for while
 * a tile computes.  Writing C cost 3 % at 256 and 512, 2 % at 1024, by way of sums that wait and 16 bytes
 * at a time; out of the registers, and asked for in the last steps of k, it costs 1 %.  Filling a panel of B
 * in the first tile costs a tenth of that tile, where a copy of its own cost 7 % at 1024; a B that lies in the
 * second-level cache is read as quickly without, and pieces can be small (192 and 256: 1 to 3 %).  Pieces for two
 * cores that are dealt beforehand cost 5 % at 256: one core begins late; but each piece reads B once more, so where
 * two make up C all but a 32nd is dealt evenly (512 and 768: 0.5 %), and of a B in place small pieces, a quarter of
 * a share, end closer to each other (256: 2 %).  Panels of B made for everyone beforehand cost more (they go to
 * memory and back) than they save, unless many rows use them: at 4096, where rows of B lie a page or more apart,
 * the tiles that fill a panel took four times as long as others, 4 % in all, and packing B 0.7 %; with blocks of
 * 240 rows and 1536 of k instead of 1032 and 1024 in that, it gains 3 %.  Or unless many products use them: then, of
 * the time of the best other way at 4096 x 4096, they take 0.9 at 4 rows (gemm_dot), 0.55 at 16, 0.62 at 24,
 * 0.9 at 64 and 128 (gemm_cpu), 0.98 at 1024.  B is packed 16 rows at a time, for all panels: panel after panel
 * reads 128 bytes of each page and takes twice as long.
 *
 * Parameters, from gemm.tune: THR_M THR_V VEC BLK_M BLK_N BLK_K.  In the second-level cache: with
 * PACKED, (BLK_K + BLK_M) BLK_N numbers; else BLK_M (BLK_K + BLK_N), or DIRECT, BLK_M BLK_N.
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

PACKING(pack_global, GLOBAL)
PACKING(pack_local, LOCAL)
TILE(tile, SPACE_A, R, PANEL, SPACE_B)
#if DIRECT
TILE(tile_direct, GLOBAL, T, ROWS, LOCAL)
#endif

/* gP[panel][k][line], s5 of vP being the step from panel to panel; B is given transposed.  A work-group makes
 * `deep` of K of so many panels.                                                                */
#define PACK(name, WIDE)                                                                                         \
KERNEL(1) void                                                                                                   \
name(int lines, int K, int deep, int panels, VIEW e, GLOBAL const T *RESTRICT g, VIEW v,                         \
     GLOBAL R *RESTRICT gP, VIEW vP)                                                                             \
{                                                                                                                \
    const int k0 = GROUP_ID(0) * deep, from = GROUP_ID(1) * panels, all = (lines + WIDE - 1) / WIDE;             \
    const int depth = K - k0 < deep ? K - k0 : deep, end = all - from < panels ? all : from + panels;            \
    const INDEX across = (INDEX)v.s5, along = (INDEX)v.s6;                                                       \
    const INDEX from0 = batch_offset(v, e, GROUP_ID(2)) + k0 * along;                                            \
    const INDEX to0 = batch_offset(vP, e, GROUP_ID(2)) + (INDEX)k0 * WIDE;                                       \
                                                                                                                 \
    for (int i = from; i < end; i++)                                                                             \
        pack_global(gP + to0 + i * (INDEX)vP.s5, WIDE, WIDE, lines - i * WIDE < WIDE ? lines - i * WIDE : WIDE,  \
                    g + from0 + i * WIDE * across, across, along, depth);                                        \
}

PACK(pack, THR_M)
#if PACKED_B
PACK(pack_b, THR_N)
#endif

#if !PACKED
/* A piece goes down before it goes across.  Its first tiles ask for the rows of A that are packed next; the
 * last two of each column, for the columns of B that come next.                                 */
DEVICE struct ask ask_for(int m, int n, int count, int width, GLOBAL const T *lines, VIEW vA,
                          GLOBAL const T *columns, VIEW vB)
{
    const INDEX second = m + 1 < count ? 0 : 16;
    struct ask ask = { columns, 0, 0 };

    if (n == 0 && m + 1 < count && vA.s6 == 1) {
        ask.at = lines + THR_M * (INDEX)vA.s5;
        ask.step = vA.s5;
        ask.advance = 16;
    } else if (m + 2 >= count && n + 2 * THR_N <= width) {
        ask.at = columns + (THR_N + second) * (INDEX)vB.s6;
        ask.step = vB.s6 == 1 ? vB.s5 : vB.s6;
        ask.advance = vB.s6 == 1 ? 16 * (INDEX)vB.s5 : 16;
    }
    return ask;
}
#endif

/* ---- pieces ---------------------------------------------------------------------- */

/* Units of C, counted along a row of tiles, then down, then from block to block.  A piece is rows of
 * tiles of one block; or, at the end, units of one row.                                         */
struct piece { int at, units; };

/* The next piece: `even` for each work-group; then, of what nobody has taken yet, one of so many shares.  So
 * pieces are large as long as there is much to do, and all end at about the same time, also where some begin
 * late or are slow.                                                                             */
DEVICE struct piece take(GLOBAL int *taken, int all, int groups, int even, int shares,
                         int across, int most, int block)
{
    struct piece p = { 0, 0 };

    while (p.at < all) {
        const int done = p.at % across, rest = block - p.at % block;
        int seen;

        p.units = p.at < even * groups ? even : (all - p.at) / shares;
        p.units = p.units < 1 ? 1 : p.units > most ? most : p.units;
        p.units = p.units < rest ? p.units : rest;
        if (done)                               /* of a row that others have a part of */
            p.units = p.units < across - done ? p.units : across - done;
        else if (p.units > across)
            p.units -= p.units % across;
        seen = ATOMIC_CAS(taken, p.at, p.at + p.units);
        if (seen == p.at)
            return p;
        p.at = seen;
    }
    p.units = 0;
    return p;
}

/* The last work-group leaves the counters as it found them. */
DEVICE void leave(GLOBAL int *taken, int all, int groups)
{
    if (ATOMIC_ADD(taken + 1, 1) == groups - 1) {
        ATOMIC_ADD(taken, -all);
        ATOMIC_ADD(taken + 1, -groups);
    }
}

/* ---- the product ------------------------------------------------------------------- */

KERNEL(1) void
gemm_cpu(int M, int N, int K, int rows, int cols, int unit, int in_place, int in_c, int all,
         int groups, int even, int shares, GLOBAL int *RESTRICT taken, VIEW eC, R alpha,
         GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const R *RESTRICT gP, VIEW vP,
         GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL R *RESTRICT gQ, VIEW vQ, R beta,
         GLOBAL T *RESTRICT gC, VIEW vC,
         int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
#if !PACKED_B
    LOCAL_ARRAY(RV, sB, BLK_K * (PACKED ? BLK_N : THR_N) / VEC);
#endif
    LOCAL_ARRAY(RV, sC, BLK_M * BLK_N / VEC);   /* sums that wait, tile by tile */
#if !PACKED
    LOCAL_ARRAY(R, sA, BLK_K * (DIRECT ? THR_M : BLK_M));
#endif
    const int across = (cols + unit - 1) / unit, blocks = (N + cols - 1) / cols;
    const int down = (M + THR_M - 1) / THR_M * across;

    for (;;) {
        const struct piece p = take(taken, all, groups, even, shares, across, rows / THR_M * across, down);
        const int block = p.at / down, batch = block / blocks, left = p.at % across * unit;
        const int n0 = block % blocks * cols + left, most = cols - left < N - n0 ? cols - left : N - n0;
        const int width = p.units < across && p.units * unit < most ? p.units * unit : most;
        const int first = p.at % down / across * THR_M, count = p.units < across ? 1 : p.units / across;
        const int tiles = (width + THR_N - 1) / THR_N;
        int k0 = 0;

        if (!p.units)
            break;
        if (width <= 0)                         /* the last block is narrower */
            continue;

#if PACKED_B
        GLOBAL R *const batch_columns = gQ + batch_offset(vQ, eC, batch) + n0 / THR_N * (INDEX)vQ.s5;
#else
        const INDEX b0 = batch_offset(vB, eC, batch) + n0 * (INDEX)vB.s6;
        const int step = count > 1 ? THR_V : 0; /* nobody reads the panel again: no need to keep it */
#endif
        const INDEX c0 = batch_offset(vC, eC, batch) + n0 * (INDEX)vC.s6;
        const INDEX bias0 = batch_offset(vBias, eC, batch) + n0 * (INDEX)vBias.s6;
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
                const INDEX to = c0 + m0 * (INDEX)vC.s5 + n * (INDEX)vC.s6;
                LOCAL RV *waiting = K <= BLK_K || in_c ? sC : sC + m * THR_M * (BLK_N / VEC) + n / VEC * THR_M;
#if PACKED
                GLOBAL const R *panel = batch_panels + m0 / THR_M * (INDEX)vP.s5 + k0 * THR_M;
#else
                LOCAL R *panel = DIRECT ? sA : sA + m * THR_M * depth;
                GLOBAL const T *lines = gA + a0 + m0 * (INDEX)vA.s5 + k0 * (INDEX)vA.s6;
#endif
#if PACKED_B
                GLOBAL R *const at = batch_columns + n / THR_N * (INDEX)vQ.s5 + (INDEX)k0 * THR_N;
                GLOBAL RV *columns = (GLOBAL RV *)at;
                const struct ask ask = { gB, 0, 0 };
                const int fills = 0;
#else
                LOCAL RV *columns = PACKED ? sB + n / VEC * depth : sB;
                const struct ask from = { gB + b0 + k0 * (INDEX)vB.s5 + n * (INDEX)vB.s6, (INDEX)vB.s5, 0 };
                const int fills = (m == 0 || in_place) && vB.s6 == 1 && wide == THR_N;
#if PACKED
                const struct ask ask = { gB, 0, 0 };
#else
                const struct ask ask = ask_for(m, n, count, width, lines, vA, from.at, vB);
#endif
#endif

                const int is_whole = height == THR_M && wide == THR_N, stores = is_last || in_c;
                const int in_rows = stores && vC.s6 == 1;
                const int is_plain = in_rows && is_whole && !(is_last && (has_bias || act));
                const int turn = !fills && in_rows && !ask.step && depth > LAST ? depth - LAST : depth;
                const int start = k0 == 0 ? ZEROS : in_c && is_whole ? IN_C : WAITING;
                const R scale = is_last ? alpha : (R)1;
                const INDEX next = start != IN_C ? 0 : m + 1 < count ? THR_M * (INDEX)vC.s5 : THR_N - m * THR_M * (INDEX)vC.s5;
                const struct target target = { gC + to, gC + to + next + VEC - 1, (INDEX)vC.s5, turn, is_plain, scale, beta };

                if (in_rows && turn == depth && !in_place)
                    for (int j = 0; j < height; j++)
                        UNROLL for (int v = 0; v < THR_V; v++)
                            PREFETCH(gC + to + j * (INDEX)vC.s5 + (v + 1) * VEC - 1);
#if R_IS_T
                if (in_c && start == WAITING)
                    for (int j = 0; j < height; j++)
                        for (int x = 0; x < wide; x++)
                            ((LOCAL R *)waiting)[j * THR_N + x] = gC[to + j * (INDEX)vC.s5 + x];
#endif
#if !PACKED
                if (n == 0 && height < (DIRECT ? THR_M : THR_M + 1))
                    pack_local(panel, THR_M, height > ROWS_1 ? THR_M : ROWS_1, height, lines,
                               (INDEX)vA.s5, (INDEX)vA.s6, depth);
#endif
#if !PACKED_B
                if (m == 0 && !fills)
                    pack_local((LOCAL R *)columns, THR_N, THR_N, wide, from.at,
                               (INDEX)vB.s6, (INDEX)vB.s5, depth);
#if DIRECT
                if (height == THR_M && fills && in_place)
                    tile_direct(THR_M, THR_V, IN_PLACE, waiting, lines, (INDEX)vA.s5, columns, 0, from,
                                depth, start, target);
                else if (height == THR_M && fills)
                    tile_direct(THR_M, THR_V, FILLING, waiting, lines, (INDEX)vA.s5, columns, step, from,
                                depth, start, target);
                else if (height == THR_M)
                    tile_direct(THR_M, THR_V, FILLED, waiting, lines, (INDEX)vA.s5, columns, THR_V, ask,
                                depth, start, target);
                else
#endif
                if (fills)
                    TILE_FILLING(tile, height, waiting, panel, columns, step, from, depth, start, target);
                else
#endif
                    TILE_FITTED(tile, height, wide, waiting, panel, columns, ask, depth, start, target);
                if (stores && !is_plain)
                    for (int j = 0; j < height; j++)
                        tile_store_row(waiting + j * THR_V, 0, wide, gC, to + j * (INDEX)vC.s5, (INDEX)vC.s6,
                                       scale, beta, is_last && has_bias, gBias,
                                       bias0 + (m0 + j) * (INDEX)vBias.s5 + n * (INDEX)vBias.s6,
                                       (INDEX)vBias.s6, is_last ? act : 0);
            }
            k0 += depth;
        } while (k0 < K);
    }
    leave(taken, all, groups);
}
