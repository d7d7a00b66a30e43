/* cpu.h - a tile of C = A B in vector registers, for CPUs
 *
 * One work-item is one work-group; it keeps THR_M x THR_N of C in registers, as THR_V
 * vectors of VEC numbers a row, and walks down two panels that lie in memory in just the
 * order of reading:
 *
 *     panel of A   k-major, THR_M wide     each number is broadcast over a vector
 *     panel of B   k-major, THR_N wide     read as vectors
 *
 * THR_M * THR_V accumulators, THR_V vectors of B and one of A must fit the registers: 12 x 2
 * of 16 floats with AVX-512 (32 registers), 6 x 2 of 8 with AVX2 (16).  The panels are what
 * makes it fast: rows of a matrix are far apart, and at a power of two would all fall
 * into one set of the cache.  Method: Goto and van de Geijn, Anatomy of High-Performance
 * Matrix Multiplication, 2008.
 *
 * Sums run along K in order, one fused multiply-add each: the same bits everywhere.
 */
#define THR_N (VEC * THR_V)

typedef VECTOR(R, VEC) RV;

/* A vector to global memory, wherever it begins there. */
#if R_IS_T
UNALIGNED(RV, RV_ANYWHERE, T_BYTES);
#define STORE_ANYWHERE(p, v) VSTORE_ALIGNED(RV_ANYWHERE, p, v)
#else
#define STORE_ANYWHERE(p, v) STORE_VECTOR(VEC, p, v)
#endif

/* A vector to a panel, in one store where vstore would be several. */
UNALIGNED(RV, RV_OF_PANEL, 4);
#define STORE_PANEL(SPACE, p, v) (*(SPACE RV_OF_PANEL *)(p) = (v))

/* ---- panels -------------------------------------------------------------------------- */

/* Four rows of VEC numbers as VEC groups of four. */
DEVICE void transpose(R out[4 * VEC], RV r0, RV r1, RV r2, RV r3)
{
    RV even[2], odd[2], v[4];

    ZIP(even[0], even[1], r0, r2);
    ZIP(odd[0], odd[1], r1, r3);
    ZIP(v[0], v[1], even[0], odd[0]);
    ZIP(v[2], v[3], even[1], odd[1]);
    UNROLL for (int i = 0; i < 4; i++)
        VSTORE(VEC, out + i * VEC, v[i]);
}

/* DEVICE void name(SPACE R *panel, int wide, int end, int width, g, INDEX across, INDEX along, int depth)
 * copies `width` numbers, the rows (or columns) of g, over `depth` of k to a panel `wide`
 * numbers wide; zeros from there to `end`.  `across` is g's step along the panel's width,
 * `along` that along k.                                                                   */
#define PACKING(name, SPACE)                                                               \
DEVICE void name(SPACE R *RESTRICT panel, const int wide, int end, int width, GLOBAL const T *RESTRICT g,    \
                 INDEX across, INDEX along, int depth)                                     \
{                                                                                          \
    const int fours = width / 4 * 4, whole = depth / VEC * VEC;                            \
                                                                                           \
    if (along == 1)                                                                        \
        for (int x = 0; x < fours; x += 4) {                                               \
            GLOBAL const T *from = g + x * across;                                         \
                                                                                           \
            for (int k = 0; k < whole; k += VEC) {                                         \
                SPACE R *to = panel + k * wide + x;                                        \
                R four[4 * VEC];                                                           \
                                                                                           \
                transpose(four, LOAD_VECTOR(VEC, from + k), LOAD_VECTOR(VEC, from + across + k),\
                          LOAD_VECTOR(VEC, from + 2 * across + k), LOAD_VECTOR(VEC, from + 3 * across + k));\
                UNROLL for (int i = 0; i < VEC; i++)                                       \
                    VSTORE(4, to + i * wide, VLOAD(4, four + 4 * i));                      \
            }                                                                              \
            for (int k = whole; k < depth; k++)                                            \
                for (int i = 0; i < 4; i++)                                                \
                    panel[k * wide + x + i] = LOAD(from, i * across + k);                  \
        }                                                                                  \
    else if (across == 1)                                                                  \
        for (int k = 0; k < depth; k++)                                                    \
        {                                                                                  \
            int x = 0;                                                                     \
                                                                                           \
            for (; x + VEC <= width; x += VEC)                                             \
                STORE_PANEL(SPACE, panel + k * wide + x, LOAD_VECTOR(VEC, g + k * along + x)); \
            for (; x < fours; x += 4)                                                      \
                VSTORE(4, panel + k * wide + x, LOAD_VECTOR(4, g + k * along + x));        \
            for (; x < end; x++)                                                           \
                panel[k * wide + x] = x < width ? LOAD(g, k * along + x) : ZERO;           \
        }                                                                                  \
    for (int x = along == 1 ? fours : across == 1 ? end : 0; x < end; x++)                 \
        for (int k = 0; k < depth; k++)                                                    \
            panel[k * wide + x] = x < width ? LOAD(g, x * across + k * along) : ZERO;      \
}

/* ---- the tile ------------------------------------------------------------------------ */

#define LAST  (16 * THR_V)                      /* of k: enough to ask for a tile of C */
#define AHEAD 32                                /* rows of B to ask for while one is used: the end of each vector, for rows may
                                                 * begin within a line (3000 squared: 0.77 of oneDNN, since 1.03) */

/* What the caches are asked for while a tile that fills no panel computes: for each 16 of k 16 lines,
 * `step` apart; then the next 16, `advance` on.                                                 */
struct ask { GLOBAL const T *at; INDEX step, advance; };

/* Rows of C, `step` apart.  Where they are plain, that is need no more than alpha and beta, a whole tile goes
 * there out of the registers.  Rows of C that are `wanted` are asked for from k = turn on.               */
struct target { GLOBAL T *at, *wanted; INDEX step; int turn, is_plain; R alpha, beta; };

/* Where sums are that a tile goes on with.  In C only those of whole tiles, and of numbers that lie there as
 * they are summed.                                                                                */
enum { ZEROS, WAITING, IN_C };

/* How a tile has its columns of B: from a panel that is filled already; from memory, in rows `ask.step`
 * apart, and keeps them in the panel b, where the next one lies `step` vectors on, so that the copy hides
 * behind the arithmetic; or from memory alone.                                                    */
enum { FILLED, FILLING, IN_PLACE };

/* waiting := A B over `depth` of k, added to the sums that it starts with; or, where C is
 * plain, C := alpha A B + beta C at once.  `rows` and `vectors` of the tile count; they and `how` are
 * constants where this is expanded.  READ is how A is read: from a panel, or, in rows `across` apart, where
 * it lies.                                                                                        */
#define PANEL(a, across, i) (a)[i]
#define NEXT_PANEL(a)       PREFETCH(a + 32 * THR_M); a += THR_M
#define ROWS(a, across, i)  LOAD(a, (i) * (across))
#define NEXT_ROWS(a)        a++

#define TILE(name, SPACE_A, A, READ, SPACE_B)                                              \
DEVICE void name(const int rows, const int vectors, const int how,                         \
                 LOCAL RV *RESTRICT waiting,                                              \
                 SPACE_A const A *RESTRICT a, INDEX across, SPACE_B RV *RESTRICT b, int step, struct ask ask,\
                 int depth, int start, struct target to)                                   \
{                                                                                          \
    RV rC[THR_M][THR_V];                                                                   \
                                                                                           \
    if (start == IN_C)                                                                     \
        UNROLL for (int i = 0; i < rows; i++)                                              \
        UNROLL for (int j = 0; j < vectors; j++)                                           \
            rC[i][j] = LOAD_VECTOR(VEC, to.at + i * to.step + j * VEC);                    \
    else                                                                                   \
        UNROLL for (int i = 0; i < THR_M; i++)                                             \
        UNROLL for (int j = 0; j < THR_V; j++)                                             \
            if (i < rows && j < vectors)                                                   \
                rC[i][j] = start == ZEROS ? (RV)(ZERO) : waiting[i * THR_V + j];           \
    NO_UNROLL for (int k = 0, end = to.turn; k < depth; end = depth) {                     \
        for (int at = 0; k < end; k++, at++) {                                             \
            RV rB[THR_V];                                                                  \
                                                                                           \
            if (how == FILLING)                                                            \
                UNROLL for (int j = 0; j < THR_V; j++)                                     \
                    PREFETCH(ask.at + AHEAD * ask.step + (j + 1) * VEC - 1);               \
            else if (how == FILLED)                                                        \
                PREFETCH(ask.at + at % 16 * ask.step + at / 16 * ask.advance);             \
            UNROLL for (int j = 0; j < THR_V; j++)                                         \
                if (how == FILLING)                                                        \
                    b[j] = rB[j] = LOAD_VECTOR(VEC, ask.at + j * VEC);                     \
                else if (how == IN_PLACE)                                                  \
                    rB[j] = LOAD_VECTOR(VEC, ask.at + j * VEC);                            \
                else if (j < vectors)                                                      \
                    rB[j] = b[j];                                                          \
            UNROLL for (int i = 0; i < THR_M; i++)                                         \
                if (i < rows) {                                                            \
                    const RV rA = (RV)(READ(a, across, i));                                \
                                                                                           \
                    UNROLL for (int j = 0; j < THR_V; j++)                                 \
                        if (j < vectors)                                                   \
                            rC[i][j] = FMA(rA, rB[j], rC[i][j]);                           \
                }                                                                          \
            NEXT_##READ(a);                                                                \
            b += step;                                                                     \
            if (how != FILLED)                                                             \
                ask.at += ask.step;                                                        \
        }                                                                                  \
        if (how == FILLED) {                                                               \
            ask.at      = to.wanted;                                                       \
            ask.step    = to.step;                                                         \
            ask.advance = VEC;                                                             \
        }                                                                                  \
    }                                                                                      \
    if (to.is_plain && rows == THR_M && vectors == THR_V) {                                \
        if (to.beta != ZERO)                                                               \
            UNROLL for (int i = 0; i < THR_M; i++)                                         \
            UNROLL for (int j = 0; j < THR_V; j++)                                         \
                rC[i][j] = FMA((RV)(to.beta), LOAD_VECTOR(VEC, to.at + i * to.step + j * VEC),\
                               (RV)(to.alpha) * rC[i][j]);                                 \
        else                                                                               \
            UNROLL for (int i = 0; i < THR_M; i++)                                         \
            UNROLL for (int j = 0; j < THR_V; j++)                                         \
                rC[i][j] = (RV)(to.alpha) * rC[i][j];                                      \
        UNROLL for (int i = 0; i < THR_M; i++)                                             \
        UNROLL for (int j = 0; j < THR_V; j++)                                             \
            STORE_ANYWHERE(to.at + i * to.step + j * VEC, rC[i][j]);                       \
        return;                                                                            \
    }                                                                                      \
    UNROLL for (int i = 0; i < THR_M; i++)                                                 \
    UNROLL for (int j = 0; j < THR_V; j++)                                                 \
        if (i < rows && j < vectors)                                                       \
            waiting[i * THR_V + j] = rC[i][j];                                             \
}

/* The same for `height` rows and `count` columns: a tile at the edge of C costs about what is in it. */
#define ROWS_2 ((2 * THR_M + 2) / 3)
#define ROWS_1 ((THR_M + 2) / 3)
#define TILE_FITTED(tile, height, count, waiting, a, b, ask, depth, start, to)             \
    do {                                                                                   \
        if (THR_V > 1 && (count) <= THR_N - VEC)                                           \
            tile(THR_M, THR_V > 1 ? THR_V - 1 : 1, FILLED, waiting, a, 0, b, THR_V, ask, depth, start, to);\
        else if ((height) > ROWS_2)                                                        \
            tile(THR_M, THR_V, FILLED, waiting, a, 0, b, THR_V, ask, depth, start, to);       \
        else if ((height) > ROWS_1)                                                        \
            tile(ROWS_2, THR_V, FILLED, waiting, a, 0, b, THR_V, ask, depth, start, to);      \
        else                                                                               \
            tile(ROWS_1, THR_V, FILLED, waiting, a, 0, b, THR_V, ask, depth, start, to);      \
    } while (0)
#define TILE_FILLING(tile, height, waiting, a, b, step, ask, depth, start, to)             \
    do {                                                                                   \
        if ((height) > ROWS_2)                                                             \
            tile(THR_M, THR_V, FILLING, waiting, a, 0, b, step, ask, depth, start, to);        \
        else if ((height) > ROWS_1)                                                        \
            tile(ROWS_2, THR_V, FILLING, waiting, a, 0, b, step, ask, depth, start, to);       \
        else                                                                               \
            tile(ROWS_1, THR_V, FILLING, waiting, a, 0, b, step, ask, depth, start, to);       \
    } while (0)

/* To row[first ... end) of y, steps of `step` from `at`: one row of a tile. */
DEVICE void tile_store_row(LOCAL const RV *RESTRICT row, int first, int end, GLOBAL T *y, INDEX at, INDEX step,
                           R alpha, R beta, int has_bias, GLOBAL const T *bias, INDEX bias_at, INDEX bias_step, int act)
{
#ifdef STORE_VECTOR
    if (first == 0 && end == THR_N && step == 1 && act == 0 && (!has_bias || bias_step < 2)) {
        UNROLL for (int j = 0; j < THR_V; j++) {
            RV v = (RV)(alpha) * row[j];

            if (beta != ZERO)
                v = FMA((RV)(beta), LOAD_VECTOR(VEC, y + at + j * VEC), v);
            if (has_bias)
                v = v + (bias_step ? LOAD_VECTOR(VEC, bias + bias_at + j * VEC) : (RV)(LOAD(bias, bias_at)));
            STORE_ANYWHERE(y + at + j * VEC, v);
        }
        return;
    }
#endif
    LOCAL const R *sum = (LOCAL const R *)row;

    for (int n = first; n < end; n++)
        STORE(y, at + n * step, epilogue(sum[n], alpha, beta, y, at + n * step,
                                         has_bias, bias, bias_at + n * bias_step, act));
}
