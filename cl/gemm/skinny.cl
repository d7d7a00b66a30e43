/* skinny.cl - C := act(alpha A B + beta C + bias), for GPUs, where A has few rows
 *
 * The decode step of a language model: B is large and each of its numbers is used M times, so
 * what counts is to read it once, 16 bytes (a piece) at a time, with many reads under way.  B goes
 * straight to registers; A is small, and comes out of the cache as often as it is wanted.
 *
 *     ALONG_K 1: columns of B run along memory         ALONG_K 0: rows of B do
 *
 *            k -->                                            n -->
 *     n  |  0 1 2 .. 7 | 0 1 2 ...    item (its           k  |  0 1 2 .. 15     item
 *        |  8 9 ..  15 | 8 9 ...      place along k,         |  16 17 .. 31
 *        |  ...                       8 first)               |  0 1 2 ..
 *     an item has THR_N columns, apart by what            an item has the columns of one piece,
 *     the others have, and every `across`-th piece        and every (ITEMS / across)-th row
 *
 * `across` items share a column; the host chooses it, so that there are enough work-groups.  Their
 * sums meet in local memory and are added in order.  Where that is still too few work-groups, K is
 * split over `parts` of them as well: they leave sums in the workspace, and gemm_sum adds those,
 * also in order.  So results are the same each time.
 *
 * Learnt on an H100: with M above 4 or so the reads of A out of the cache, not B, set the pace; there
 * a matrix engine, which shares them among lanes, is what pays (gemm_skinny_mma.cl).
 *
 * Parameters, from gemm.tune: ITEMS_K or ITEMS_N, as ITEMS; THR_N; DEPTH_K or DEPTH_N, as DEPTH, pieces
 * of each column under way (of a row: DEPTH times THR_N); FILL and LANES are the host's.  Of the variant:
 * ALONG_K, and THR_M, rows of A for a work-group.
 */
#if TYPE == 0
#define PIECE 4
#elif TYPE == 3
#define PIECE 2
#else
#define PIECE 8
#endif

#if ALONG_K
#define EACH THR_N                              /* columns of an item */
#else
#define EACH PIECE
#define ROWS_DEEP (DEPTH * THR_N)               /* rows under way: as many pieces as along K */
#endif

/* Sums that an item leaves in local memory at a time: 64 bytes of them. */
#if TYPE == 3
#define ROOM (8 / EACH)
#else
#define ROOM (16 / EACH)
#endif
#if ROOM < 1
#error "THR_N is too large"
#elif ROOM < THR_M
#define ROWS ROOM
#else
#define ROWS THR_M
#endif
#define PAD 4                                   /* sums of one column then lie in different banks */

/* ---- a piece ------------------------------------------------------------------ */

#if TYPE == 1
DEVICE R half_of(UINT32 bits)
{
    const UINT16 h = (UINT16)bits;

    return HALF_LOAD((const HALF *)&h, 0);
}
#endif

DEVICE void unpack(R *r, uint4 u)
{
#if TYPE == 0
    r[0] = BITS_FLOAT(u.x);
    r[1] = BITS_FLOAT(u.y);
    r[2] = BITS_FLOAT(u.z);
    r[3] = BITS_FLOAT(u.w);
#elif TYPE == 3
    r[0] = BITS_DOUBLE((UINT64)u.y << 32 | u.x);
    r[1] = BITS_DOUBLE((UINT64)u.w << 32 | u.z);
#else
    const UINT32 pair[4] = { u.x, u.y, u.z, u.w };

    UNROLL for (int i = 0; i < 4; i++) {
#if TYPE == 1
        r[2 * i]     = half_of(pair[i]);
        r[2 * i + 1] = half_of(pair[i] >> 16);
#else
        r[2 * i]     = BITS_FLOAT(pair[i] << 16);
        r[2 * i + 1] = BITS_FLOAT(pair[i] & 0xffff0000u);
#endif
    }
#endif
}

#define READ_PIECE(p) (*(GLOBAL const uint4 *)(p))

/* ---- sums of one item ------------------------------------------------------------ */

/* The operands as this item sees them: where its rows of A and columns of B begin.  Past an edge
 * it takes the first again, and what comes of that is stored nowhere.                          */
struct share {
    GLOBAL const T *a, *b;
    INDEX a_at[THR_M], b_at[EACH];
    INDEX a_col, b_row;
};

#if ALONG_K

/* `depth` steps along K from k on: all reads of B first, so that they are under way together. */
DEVICE void fold_pieces(R rC[THR_M][EACH], const struct share *s, int k, int step, const int depth)
{
    uint4 pieces[DEPTH][EACH];

    UNROLL for (int d = 0; d < depth; d++)
    UNROLL for (int j = 0; j < EACH; j++)
        pieces[d][j] = READ_PIECE(s->b + s->b_at[j] + k + d * step);
    UNROLL for (int d = 0; d < depth; d++) {
        R rB[EACH][PIECE];

        UNROLL for (int j = 0; j < EACH; j++)
            unpack(rB[j], pieces[d][j]);
        UNROLL for (int i = 0; i < THR_M; i++) {
            R rA[PIECE];

            unpack(rA, READ_PIECE(s->a + s->a_at[i] + k + d * step));
            UNROLL for (int x = 0; x < PIECE; x++)
            UNROLL for (int j = 0; j < EACH; j++)
                rC[i][j] = FMA(rA[x], rB[j][x], rC[i][j]);
        }
    }
}

/* `count` numbers of each column, `step` apart. */
DEVICE void fold_numbers(R rC[THR_M][EACH], const struct share *s, int k, int step, const int count)
{
    R rB[PIECE][EACH];

    UNROLL for (int x = 0; x < count; x++)
    UNROLL for (int j = 0; j < EACH; j++)
        rB[x][j] = LOAD(s->b, s->b_at[j] + (k + x * step) * s->b_row);
    UNROLL for (int x = 0; x < count; x++)
    UNROLL for (int i = 0; i < THR_M; i++) {
        const R rA = LOAD(s->a, s->a_at[i] + (k + x * step) * s->a_col);

        UNROLL for (int j = 0; j < EACH; j++)
            rC[i][j] = FMA(rA, rB[x][j], rC[i][j]);
    }
}

/* Item `place` of `across` takes every across-th piece, or number, of [first, last). */
DEVICE void fold(R rC[THR_M][EACH], const struct share *s, int first, int last, int place, int across,
                 int aligned)
{
    int k = first + place;

    if (aligned) {
        const int step = across * PIECE;

        k = first + place * PIECE;
        for (; last - k >= (DEPTH - 1) * step + PIECE; k += DEPTH * step)
            fold_pieces(rC, s, k, step, DEPTH);
        for (; last - k >= PIECE; k += step)
            fold_pieces(rC, s, k, step, 1);
        k = last - (last - first) % PIECE + place;
    } else
        for (; last - k > (PIECE - 1) * across; k += PIECE * across)
            fold_numbers(rC, s, k, across, PIECE);
    for (; k < last; k += across)
        fold_numbers(rC, s, k, across, 1);
}

#else

/* `depth` rows of B, `step` apart. */
DEVICE void fold_rows(R rC[THR_M][EACH], const struct share *s, int k, int step, const int depth,
                      const int aligned)
{
    uint4 pieces[ROWS_DEEP];
    R rB[ROWS_DEEP][EACH];

    UNROLL for (int d = 0; d < depth; d++) {
        const INDEX row = (k + d * step) * s->b_row;

        if (aligned)
            pieces[d] = READ_PIECE(s->b + s->b_at[0] + row);
        else
            UNROLL for (int j = 0; j < EACH; j++)
                rB[d][j] = LOAD(s->b, s->b_at[j] + row);
    }
    UNROLL for (int d = 0; d < depth; d++) {
        if (aligned)
            unpack(rB[d], pieces[d]);
        UNROLL for (int i = 0; i < THR_M; i++) {
            const R rA = LOAD(s->a, s->a_at[i] + (k + d * step) * s->a_col);

            UNROLL for (int j = 0; j < EACH; j++)
                rC[i][j] = FMA(rA, rB[d][j], rC[i][j]);
        }
    }
}

/* Item `place` of `across` takes every across-th row of [first, last). */
DEVICE void fold(R rC[THR_M][EACH], const struct share *s, int first, int last, int place, int across,
                 int aligned)
{
    int k = first + place;

    if (aligned)
        for (; last - k > (ROWS_DEEP - 1) * across; k += ROWS_DEEP * across)
            fold_rows(rC, s, k, across, ROWS_DEEP, 1);
    else
        for (; last - k > across; k += 2 * across)
            fold_rows(rC, s, k, across, 2, 0);
    for (; k < last; k += across)
        fold_rows(rC, s, k, across, 1, 0);
}

#endif

/* ---- sums of one column, from all items that share it ------------------------------ */

struct output {
    int M, N, parts;
    GLOBAL R *gP;
    R alpha, beta;
    GLOBAL T *gC;
    INDEX c0, c_row, c_col;
    int has_bias;
    GLOBAL const T *gBias;
    INDEX bias0, bias_row, bias_col;
    int act;
};

/* Out of the arguments of a kernel. */
#define OUTPUT(batch)                                                                   \
    { M, N, parts, gP, alpha, beta,                                                     \
      gC, start_of(vC, eC, batch), (INDEX)vC.s5, (INDEX)vC.s6,                          \
      has_bias, gBias, start_of(vBias, eC, batch), (INDEX)vBias.s5, (INDEX)vBias.s6, act }

DEVICE void store_sum(const struct output *o, int m, int n, R sum)
{
    const INDEX at = o->c0 + m * o->c_row + n * o->c_col;

    STORE(o->gC, at, epilogue(sum, o->alpha, o->beta, o->gC, at, o->has_bias, o->gBias,
                              o->bias0 + m * o->bias_row + n * o->bias_col, o->act));
}

/* `rows` rows of C, the task's from `from` on: sums[place * line + row * pitch + column], over the
 * places.                                                                                      */
DEVICE void add_places(const struct output *o, const struct task *t, LOCAL const R *sums, int places, int line,
                       int pitch, int from, int rows)
{
    NO_UNROLL for (int i = LOCAL_ID(); i < rows * t->wide; i += ITEMS) {
        const int row = row_of(t, i), column = i - row * t->wide;
        const int m = t->m0 + from + row, n = t->n0 + column;
        LOCAL const R *mine = sums + row * pitch + column;
        R sum = mine[0];

        for (int p = 1; p < places; p++)
            sum = sum + mine[p * line];
        if (m < o->M && n < o->N) {
            if (o->parts > 1)
                o->gP[((INDEX)t->part * o->M + m) * o->N + n] = sum;
            else
                store_sum(o, m, n, sum);
        }
    }
}

/* ---- kernels ------------------------------------------------------------------------- */

/* parts > 1: leaves sums in gP, for gemm_sum, each part being `span` of K. */
KERNEL(ITEMS) void
gemm_skinny(int M, int N, int K, int across, int wide, int aligned, int span, int parts, int batches, VIEW eC, R alpha,
            GLOBAL const T *RESTRICT gA, VIEW vA,
            GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL R *RESTRICT gP, R beta,
            GLOBAL T *RESTRICT gC, VIEW vC,
            int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(R, sums, ITEMS * (ROWS * EACH + PAD));

    const int apart = wide / EACH;              /* a power of two */
    struct task t;

    find_task(&t, M, N, K, across, wide, ITEMS * EACH, span, batches);

#if ALONG_K
    const int column = (LOCAL_ID() / 8) & (apart - 1);
    const int place = LOCAL_ID() / 8 * across / ITEMS * 8 + LOCAL_ID() % 8;
#define COLUMN(j) (column + (j) * apart)
#else
    const int column = LOCAL_ID() & (apart - 1), place = LOCAL_ID() * across / ITEMS;
#define COLUMN(j) (aligned ? column * PIECE + (j) : column + (j) * apart)
#endif
    struct share s = { gA, gB };
    R rC[THR_M][EACH];

    s.a += start_of(vA, eC, t.batch);
    s.b += start_of(vB, eC, t.batch);
    s.a_col = (INDEX)vA.s6;
    s.b_row = (INDEX)vB.s5;
    UNROLL for (int i = 0; i < THR_M; i++)
        s.a_at[i] = t.m0 + i < M ? (t.m0 + i) * (INDEX)vA.s5 : 0;
    UNROLL for (int j = 0; j < EACH; j++)
        s.b_at[j] = t.n0 + COLUMN(j) < N ? (t.n0 + COLUMN(j)) * (INDEX)vB.s6 : 0;
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < EACH; j++)
        rC[i][j] = ZERO;

    fold(rC, &s, t.first, t.last, place, across, aligned);

    const struct output out = OUTPUT(t.batch);
    const int line = t.wide * ROWS + PAD;       /* what all columns have from one place */

    UNROLL for (int i0 = 0; i0 < THR_M; i0 += ROWS) {
        BARRIER();
        UNROLL for (int i = 0; i < ROWS; i++)
        UNROLL for (int j = 0; j < EACH; j++)
            sums[place * line + i * t.wide + COLUMN(j)] = rC[i0 + i][j];
        BARRIER();
        add_places(&out, &t, sums, across, line, t.wide, i0, ROWS);
    }
}
