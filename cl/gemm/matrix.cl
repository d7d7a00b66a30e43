/* matrix.cl - C := act(alpha A B + beta C + bias), on the matrix engines of a wave
 *
 * A wave is what one matrix instruction runs in: AMD's wavefront, Intel's sub-group.  Slices
 * of A and B, BLK_K deep, go from device memory to registers to local memory, one slice ahead
 * of the one that is multiplied; there are two of each in local memory, so one barrier a
 * slice does.
 *
 *                     BLK_N             a wave makes WAVE_M x WAVE_N of the tile, in pieces of
 *                  +-----------+        MATRIX_M x MATRIX_N, the engine's own size: 2 x 2 here
 *            BLK_K |     B     |
 *                  +-----------+        +-----+-----+
 *         +-----+  +-----+-----+        |     |     |
 *         |     |  | wave| wave|        +-----+-----+
 *   BLK_M |  A  |  +-----+-----+        |     |     |  WAVE_M
 *         |     |  | wave| wave|        +-----+-----+
 *         +-----+  +-----+-----+            WAVE_N
 *
 * How a piece is read from local memory, where its numbers lie there, and which of its sums a
 * lane holds, are the family's atoms: matrix_offset, matrix_load_a, matrix_load_b,
 * MATRIX_MULTIPLY, matrix_row, matrix_column; MATRIX_FENCE keeps the compiler's order.
 *
 * All engines want neighbours along K together.  An item therefore brings squares of QUAD x QUAD
 * numbers: a matrix that runs across K is read along its rows and transposed in registers on the
 * way to local memory.
 *
 * Edges: the last tile along M (N) begins earlier, so as to end with C, and stores only what no
 * other does.  Where BLK_K does not divide K, the first slice is the odd one: it is read whole,
 * with zeros for what belongs to the second.  So all is read in vectors.  Where that cannot be,
 * since a matrix is smaller than a tile or runs neither way, a second loop brings the slices
 * number by number.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K WAVE_M WAVE_N, ENGINE (see the atoms), LANES of
 * a wave.  Their rows are modelled, not measured: as many sums as registers hold with one or two
 * waves on each unit, slices that fill half of local memory or less.
 *
 * Learnt from the instructions that compilers make of it: guards on each number inside the loop
 * cost so many hoisted addresses that registers spill; a branch there, even one that all take
 * alike, lets the compiler wait for all loads before it, and move products behind a wait.
 */
#define WAVES_N (BLK_N / WAVE_N)
#define ITEMS   (BLK_M / WAVE_M * WAVES_N * LANES)
#define TILES_M (WAVE_M / MATRIX_M)
#define TILES_N (WAVE_N / MATRIX_N)
#define SLICE_A (BLK_M * BLK_K)
#define SLICE   (SLICE_A + BLK_N * BLK_K)
#define BAND    8

#if TYPE == 0
#define QUAD    2
#define BITS    float
#define QUADS   float2
#elif TYPE == 3
#define QUAD    2
#define BITS    double
#define QUADS   double2
#else
#define QUAD    4
#define BITS    UINT16
#define QUADS   ushort4
#endif
#define EACH_A  (BLK_M * BLK_K / (QUAD * QUAD) / ITEMS)     /* squares of a slice that an item brings */
#define EACH_B  (BLK_N * BLK_K / (QUAD * QUAD) / ITEMS)

#if LANES != MATRIX_LANES
#error "LANES is not what the engine has"
#endif
#if BLK_M % WAVE_M || BLK_N % WAVE_N || WAVE_M % MATRIX_M || WAVE_N % MATRIX_N || BLK_K % MATRIX_K
#error "the engine's piece must divide a wave's tile, and that the work-group's"
#endif
#if EACH_A * ITEMS * QUAD * QUAD != BLK_M * BLK_K || EACH_B * ITEMS * QUAD * QUAD != BLK_N * BLK_K
#error "the items must share a slice evenly"
#endif
#if ITEMS * MATRIX_ACCUMULATORS > (QUAD == 4 ? 1 : 2) * SLICE
#error "a piece of each item's sums must fit local memory"
#endif

/* Bytes from the start of a matrix: 32 bits without a sign make the shortest addresses. */
#if WIDE
#define OFFSET INT64
#else
#define OFFSET unsigned int
#endif

/* A matrix from the tile's first number across K on, of which there are X.  How it can be read: */
enum { ALONG, ACROSS, ONE_BY_ONE };
struct operand { GLOBAL const BITS *g; INDEX x_step, k_step; int X, K, how; };

DEVICE int how_to_read(INDEX x_step, INDEX k_step, int X, int K, int width)
{
    return K < BLK_K ? ONE_BY_ONE : k_step == 1 ? ALONG : x_step == 1 && X >= width ? ACROSS : ONE_BY_ONE;
}

/* Square i of this item begins at number (SQUARE_X, SQUARE_K) of a slice.  Its QUAD lines are next
 * to each other, but along K so far apart that neighbouring items' are in neighbouring rows.    */
#define SQUARE(i)             ((unsigned int)LOCAL_ID() + (i) * ITEMS)
#define SQUARE_X(i, o, width) \
    ((int)((o)->how == ALONG ? SQUARE(i) / (BLK_K / QUAD) : SQUARE(i) % ((width) / QUAD) * QUAD))
#define SQUARE_K(i, o, width) \
    ((int)((o)->how == ALONG ? SQUARE(i) % (BLK_K / QUAD) : SQUARE(i) / ((width) / QUAD)) * QUAD)

/* Where the lines of this item's squares come from, at k0 = 0, and where in a slice they go to. */
DEVICE void plan(OFFSET *from, int *to, const struct operand *o, int each, int width)
{
    UNROLL for (int i = 0; i < each; i++)
    UNROLL for (int j = 0; j < QUAD; j++) {
        const int along = o->how == ALONG, x = SQUARE_X(i, o, width), k = SQUARE_K(i, o, width);
        const int x_to = along ? x + j * (width / QUAD) : x + j;
        const int x_from = !along ? x : x_to < o->X ? x_to : o->X - 1, k_from = along ? k : k + j;

        from[i * QUAD + j] = (OFFSET)(x_from * o->x_step + k_from * o->k_step) * sizeof(BITS);
        to[i * QUAD + j] = matrix_offset(x_to, k, width);
    }
}

/* The slice from k0 on, to registers. */
DEVICE void bring(QUADS *r, const OFFSET *from, const struct operand *o, int k0, int each)
{
    GLOBAL const char *g = (GLOBAL const char *)(o->g + k0 * o->k_step);

    UNROLL for (int i = 0; i < each * QUAD; i++)
        r[i] = VLOAD(QUAD, (GLOBAL const BITS *)(g + from[i]));
}

/* ... and from there to local memory.  What is chosen is the same for all items, and costs less
 * than a branch.                                                                             */
DEVICE void put(LOCAL T *s, const QUADS *r, const int *to, const struct operand *o, int each)
{
    const int across = o->how == ACROSS;

#define PICKED(x, y) (across ? (x) : (y))
    UNROLL for (int i = 0; i < each * QUAD; i += QUAD) {
        QUADS v[QUAD];

#if QUAD == 2
        v[0].x = r[i].x;                        v[0].y = PICKED(r[i + 1].x, r[i].y);
        v[1].x = PICKED(r[i].y, r[i + 1].x);    v[1].y = r[i + 1].y;
#else
        v[0].x = r[i].x;                        v[0].y = PICKED(r[i + 1].x, r[i].y);
        v[0].z = PICKED(r[i + 2].x, r[i].z);    v[0].w = PICKED(r[i + 3].x, r[i].w);
        v[1].x = PICKED(r[i].y, r[i + 1].x);    v[1].y = r[i + 1].y;
        v[1].z = PICKED(r[i + 2].y, r[i + 1].z); v[1].w = PICKED(r[i + 3].y, r[i + 1].w);
        v[2].x = PICKED(r[i].z, r[i + 2].x);    v[2].y = PICKED(r[i + 1].z, r[i + 2].y);
        v[2].z = r[i + 2].z;                    v[2].w = PICKED(r[i + 3].z, r[i + 2].w);
        v[3].x = PICKED(r[i].w, r[i + 3].x);    v[3].y = PICKED(r[i + 1].w, r[i + 3].y);
        v[3].z = PICKED(r[i + 2].w, r[i + 3].z); v[3].w = r[i + 3].w;
#endif
        UNROLL for (int j = 0; j < QUAD; j++)
            *(LOCAL QUADS *)(s + to[i + j]) = v[j];
    }
}

/* Zeros for what is not among the first `count` numbers of the slice. */
DEVICE void keep(QUADS *r, int count, const struct operand *o, int each, int width)
{
    const int dx = o->how == ALONG, dj = !dx;

    UNROLL for (int i = 0; i < each; i++)
    UNROLL for (int j = 0; j < QUAD; j++) {
        const int k = SQUARE_K(i, o, width) + j * dj;
        QUADS v = r[i * QUAD + j];

        v.x = k < count ? v.x : (BITS)0;
        v.y = k + dx < count ? v.y : (BITS)0;
#if QUAD == 4
        v.z = k + 2 * dx < count ? v.z : (BITS)0;
        v.w = k + 3 * dx < count ? v.w : (BITS)0;
#endif
        r[i * QUAD + j] = v;
    }
}

DEVICE BITS number_of(const struct operand *o, int x, int k)
{
    const int there = x < o->X && k < o->K;
    const BITS v = o->g[there ? x * o->x_step + k * o->k_step : 0];

    return there ? v : (BITS)0;
}

/* The slice from k0 on, to local memory number by number, zeros past the edges. */
DEVICE void put_numbers(LOCAL T *s, const struct operand *o, int k0, int width)
{
    NO_UNROLL for (int i = LOCAL_ID(); i < width * (BLK_K / QUAD); i += ITEMS) {
        const int x = i / (BLK_K / QUAD), k = i % (BLK_K / QUAD) * QUAD;
        QUADS v;

        v.x = number_of(o, x, k0 + k);
        v.y = number_of(o, x, k0 + k + 1);
#if QUAD == 4
        v.z = number_of(o, x, k0 + k + 2);
        v.w = number_of(o, x, k0 + k + 3);
#endif
        *(LOCAL QUADS *)(s + matrix_offset(x, k, width)) = v;
    }
}

/* What the wave has to do with a slice. */
#define MULTIPLY_SLICE(sA, sB)                                                  \
    UNROLL for (int k = 0; k < BLK_K; k += MATRIX_K) {                          \
        matrix_fragment_a rA[TILES_M];                                          \
        matrix_fragment_b rB[TILES_N];                                          \
                                                                                \
        UNROLL for (int i = 0; i < TILES_M; i++)                                \
            rA[i] = matrix_load_a(sA, m1 + i * MATRIX_M, k, lane);              \
        UNROLL for (int j = 0; j < TILES_N; j++)                                \
            rB[j] = matrix_load_b(sB, n1 + j * MATRIX_N, k, lane);              \
        UNROLL for (int i = 0; i < TILES_M; i++)                                \
        UNROLL for (int j = 0; j < TILES_N; j++)                                \
            MATRIX_MULTIPLY(rC[i][j], rA[i], rB[j]);                            \
    }

MATRIX_KERNEL(ITEMS) void
gemm_matrix(int M, int N, int K, VIEW eC, R alpha,
            GLOBAL const T *RESTRICT gA, VIEW vA,
            GLOBAL const T *RESTRICT gB, VIEW vB, R beta,
            GLOBAL T *RESTRICT gC, VIEW vC,
            int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(BITS, slices_of_both, 2 * SLICE);
    LOCAL T *s = (LOCAL T *)slices_of_both;

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int batch = GROUP_ID(0) / (tiles_m * tiles_n);
    const int tile = GROUP_ID(0) % (tiles_m * tiles_n);
    const int band = tile / (BAND * tiles_n);
    const int band_rows = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const int m_tile = (band * BAND + tile % (BAND * tiles_n) % band_rows) * BLK_M;
    const int n_tile = tile % (BAND * tiles_n) / band_rows * BLK_N;
    const int m0 = m_tile + BLK_M <= M ? m_tile : M < BLK_M ? 0 : M - BLK_M;     /* whole, if can be */
    const int n0 = n_tile + BLK_N <= N ? n_tile : N < BLK_N ? 0 : N - BLK_N;
    const int wave = LOCAL_ID() / LANES, lane = LOCAL_ID() % LANES;
    const int m1 = wave / WAVES_N * WAVE_M, n1 = wave % WAVES_N * WAVE_N;      /* this wave's, in the tile */
    const int slices = (K + BLK_K - 1) / BLK_K, first = K - (slices - 1) * BLK_K;
    const INDEX a_row = (INDEX)vA.s5, a_col = (INDEX)vA.s6, b_row = (INDEX)vB.s5, b_col = (INDEX)vB.s6;
    const struct operand a = { (GLOBAL const BITS *)gA + batch_offset(vA, eC, batch) + m0 * a_row,
                               a_row, a_col, M - m0, K, how_to_read(a_row, a_col, M, K, BLK_M) };
    const struct operand b = { (GLOBAL const BITS *)gB + batch_offset(vB, eC, batch) + n0 * b_col,
                               b_col, b_row, N - n0, K, how_to_read(b_col, b_row, N, K, BLK_N) };
    matrix_accumulators rC[TILES_M][TILES_N];

    UNROLL for (int i = 0; i < TILES_M; i++)
    UNROLL for (int j = 0; j < TILES_N; j++)
        rC[i][j] = (matrix_accumulators)(ZERO);

    if (a.how != ONE_BY_ONE && b.how != ONE_BY_ONE) {
        QUADS nextA[EACH_A * QUAD], nextB[EACH_B * QUAD];
        OFFSET fromA[EACH_A * QUAD], fromB[EACH_B * QUAD];
        int toA[EACH_A * QUAD], toB[EACH_B * QUAD];

        plan(fromA, toA, &a, EACH_A, BLK_M);
        plan(fromB, toB, &b, EACH_B, BLK_N);
        bring(nextA, fromA, &a, 0, EACH_A);
        bring(nextB, fromB, &b, 0, EACH_B);
        keep(nextA, first, &a, EACH_A, BLK_M);
        keep(nextB, first, &b, EACH_B, BLK_N);
        put(s, nextA, toA, &a, EACH_A);
        put(s + SLICE_A, nextB, toB, &b, EACH_B);
        BARRIER();

        NO_UNROLL for (int slice = 0; slice < slices; slice++) {
            LOCAL const T *now = s + slice % 2 * SLICE;
            LOCAL T *next = s + (slice + 1) % 2 * SLICE;
            const int k0 = slice + 1 < slices ? first + slice * BLK_K : 0;

            bring(nextA, fromA, &a, k0, EACH_A);        /* after the last, any: rather than a branch */
            bring(nextB, fromB, &b, k0, EACH_B);
            MATRIX_FENCE();
            MULTIPLY_SLICE(now, now + SLICE_A)
            MATRIX_FENCE();
            put(next, nextA, toA, &a, EACH_A);
            put(next + SLICE_A, nextB, toB, &b, EACH_B);
            BARRIER();                          /* the next slice is there, and this one is read */
        }
    } else {
        NO_UNROLL for (int slice = 0; slice < slices; slice++) {
            put_numbers(s, &a, slice * BLK_K, BLK_M);
            put_numbers(s + SLICE_A, &b, slice * BLK_K, BLK_N);
            BARRIER();
            MULTIPLY_SLICE(s, s + SLICE_A)
            BARRIER();
        }
    }

    const INDEX c0 = batch_offset(vC, eC, batch), bias0 = batch_offset(vBias, eC, batch);
    const int column = n0 + n1 + matrix_column(lane);     /* a neighbour tile may have the first of them */

    if (beta == ZERO && !has_bias && act == 0) {
        UNROLL for (int i = 0; i < TILES_M; i++)
        UNROLL for (int j = 0; j < TILES_N; j++)
        UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++) {
            const int m = m0 + m1 + i * MATRIX_M + matrix_row(e, lane), n = column + j * MATRIX_N;

            if (m >= m_tile && m < M && n >= n_tile && n < N)
                STORE(gC, c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6, alpha * rC[i][j][e]);
        }
        return;
    }

    /* A piece's sums, where a loop can index them: all slices are read. */
    LOCAL R *mine = (LOCAL R *)s + LOCAL_ID() * MATRIX_ACCUMULATORS;

    NO_UNROLL for (int piece = 0; piece < TILES_M * TILES_N; piece++) {
        UNROLL for (int i = 0; i < TILES_M; i++)
        UNROLL for (int j = 0; j < TILES_N; j++)
            if (piece == i * TILES_N + j)
                UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++)
                    mine[e] = rC[i][j][e];
        NO_UNROLL for (int e = 0; e < MATRIX_ACCUMULATORS; e++) {
            const int m = m0 + m1 + piece / TILES_N * MATRIX_M + matrix_row(e, lane);
            const int n = column + piece % TILES_N * MATRIX_N;
            const INDEX at = c0 + m * (INDEX)vC.s5 + n * (INDEX)vC.s6;

            if (m >= m_tile && m < M && n >= n_tile && n < N)
                STORE(gC, at, epilogue(mine[e], alpha, beta, gC, at, has_bias, gBias,
                                       bias0 + m * (INDEX)vBias.s5 + n * (INDEX)vBias.s6, act));
        }
    }
}
