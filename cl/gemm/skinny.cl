/* skinny.cl - C := act(alpha A B + beta C + bias), for GPUs, where A has few rows
 *
 * The decode step of a language model: B is large and each of its elements is used M times, so that the
 * time is that of reading B once, in 16-byte vectors, with many loads in flight.  B goes straight to
 * registers; A is small, and is read from the cache as often as it is needed.
 *
 *     K_MAJOR 1: columns of B are contiguous           K_MAJOR 0: rows of B are contiguous
 *
 *            k -->                                            n -->
 *     n  |  0 1 2 .. 7 | 0 1 2 ...    thread (its         k  |  0 1 2 .. 15     thread
 *        |  8 9 ..  15 | 8 9 ...      slice of K,            |  16 17 .. 31
 *        |  ...                       8 first)               |  0 1 2 ..
 *     a thread has THR_N columns, interleaved with        a thread has the columns of one vector,
 *     those of the others, and every `slices`-th          and every (ITEMS / slices)-th row
 *     vector of each
 *
 * Sliced-K: `slices` threads share a column; the host chooses their number so that there are enough
 * work-groups.  Their partial sums are added in local memory, in order.  If that still makes too few
 * work-groups, split-K: each of `splits` leaves partial sums in the workspace, and gemm_sum adds those,
 * in order, too.  So the result is deterministic.
 *
 * Parameters, from gemm.tune: ITEMS_K or ITEMS_N, as ITEMS; THR_N; DEPTH_K or DEPTH_N, as DEPTH, vectors
 * in flight of each column (of a row: DEPTH times THR_N); FILL and LANES are the host's.  Constants:
 * K_MAJOR, and THR_M, rows of A in a work-group.
 */
#if TYPE == 0
#define VEC 4
#elif TYPE == 3
#define VEC 2
#else
#define VEC 8
#endif

#if K_MAJOR
#define COLUMNS THR_N                           /* of a thread */
#else
#define COLUMNS VEC
#define ROWS_AHEAD (DEPTH * THR_N)              /* in flight: as many vectors as with K_MAJOR */
#endif

/* Rows of partial sums that a thread leaves in local memory at a time: 64 bytes. */
#if TYPE == 3
#define ROWS_IN_64 (8 / COLUMNS)
#else
#define ROWS_IN_64 (16 / COLUMNS)
#endif
#if ROWS_IN_64 < 1
#error "THR_N is too large"
#elif ROWS_IN_64 < THR_M
#define ROWS ROWS_IN_64
#else
#define ROWS THR_M
#endif
#define PAD 4                                   /* partial sums of a column then lie in different banks */

/* ---- 16-byte vectors --------------------------------------------------------- */

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

#define LOAD_VEC(p) (*(GLOBAL const uint4 *)(p))

/* ---- the partial sums of a thread ------------------------------------------------ */

/* Where this thread's rows of A and columns of B begin.  Beyond an edge it reads the first row or column
 * again, and the result is not stored.                                                                */
struct operands {
    GLOBAL const T *a, *b;
    INDEX a_at[THR_M], b_at[COLUMNS];
    INDEX a_col, b_row;
};

#if K_MAJOR

/* `depth` steps along K from k on.  All loads of B come first, so that they are in flight together. */
DEVICE void fold_vectors(R rC[THR_M][COLUMNS], const struct operands *s, int k, int step, const int depth)
{
    uint4 vectors[DEPTH][COLUMNS];

    UNROLL for (int d = 0; d < depth; d++)
    UNROLL for (int j = 0; j < COLUMNS; j++)
        vectors[d][j] = LOAD_VEC(s->b + s->b_at[j] + k + d * step);
    UNROLL for (int d = 0; d < depth; d++) {
        R rB[COLUMNS][VEC];

        UNROLL for (int j = 0; j < COLUMNS; j++)
            unpack(rB[j], vectors[d][j]);
        UNROLL for (int i = 0; i < THR_M; i++) {
            R rA[VEC];

            unpack(rA, LOAD_VEC(s->a + s->a_at[i] + k + d * step));
            UNROLL for (int x = 0; x < VEC; x++)
            UNROLL for (int j = 0; j < COLUMNS; j++)
                rC[i][j] = FMA(rA[x], rB[j][x], rC[i][j]);
        }
    }
}

/* `count` elements of each column, `step` apart. */
DEVICE void fold_elements(R rC[THR_M][COLUMNS], const struct operands *s, int k, int step, const int count)
{
    R rB[VEC][COLUMNS];

    UNROLL for (int x = 0; x < count; x++)
    UNROLL for (int j = 0; j < COLUMNS; j++)
        rB[x][j] = LOAD(s->b, s->b_at[j] + (k + x * step) * s->b_row);
    UNROLL for (int x = 0; x < count; x++)
    UNROLL for (int i = 0; i < THR_M; i++) {
        const R rA = LOAD(s->a, s->a_at[i] + (k + x * step) * s->a_col);

        UNROLL for (int j = 0; j < COLUMNS; j++)
            rC[i][j] = FMA(rA, rB[x][j], rC[i][j]);
    }
}

/* Slice `slice` of `slices`: every slices-th vector, or element, of [first, last). */
DEVICE void fold(R rC[THR_M][COLUMNS], const struct operands *s, int first, int last, int slice, int slices,
                 int aligned)
{
    int k = first + slice;

    if (aligned) {
        const int step = slices * VEC;

        k = first + slice * VEC;
        for (; last - k >= (DEPTH - 1) * step + VEC; k += DEPTH * step)
            fold_vectors(rC, s, k, step, DEPTH);
        for (; last - k >= VEC; k += step)
            fold_vectors(rC, s, k, step, 1);
        k = last - (last - first) % VEC + slice;
    } else
        for (; last - k > (VEC - 1) * slices; k += VEC * slices)
            fold_elements(rC, s, k, slices, VEC);
    for (; k < last; k += slices)
        fold_elements(rC, s, k, slices, 1);
}

#else

/* `depth` rows of B, `step` apart. */
DEVICE void fold_rows(R rC[THR_M][COLUMNS], const struct operands *s, int k, int step, const int depth,
                      const int aligned)
{
    uint4 vectors[ROWS_AHEAD];
    R rB[ROWS_AHEAD][COLUMNS];

    UNROLL for (int d = 0; d < depth; d++) {
        const INDEX row = (k + d * step) * s->b_row;

        if (aligned)
            vectors[d] = LOAD_VEC(s->b + s->b_at[0] + row);
        else
            UNROLL for (int j = 0; j < COLUMNS; j++)
                rB[d][j] = LOAD(s->b, s->b_at[j] + row);
    }
    UNROLL for (int d = 0; d < depth; d++) {
        if (aligned)
            unpack(rB[d], vectors[d]);
        UNROLL for (int i = 0; i < THR_M; i++) {
            const R rA = LOAD(s->a, s->a_at[i] + (k + d * step) * s->a_col);

            UNROLL for (int j = 0; j < COLUMNS; j++)
                rC[i][j] = FMA(rA, rB[d][j], rC[i][j]);
        }
    }
}

/* Slice `slice` of `slices`: every slices-th row of [first, last). */
DEVICE void fold(R rC[THR_M][COLUMNS], const struct operands *s, int first, int last, int slice, int slices,
                 int aligned)
{
    int k = first + slice;

    if (aligned)
        for (; last - k > (ROWS_AHEAD - 1) * slices; k += ROWS_AHEAD * slices)
            fold_rows(rC, s, k, slices, ROWS_AHEAD, 1);
    else
        for (; last - k > slices; k += 2 * slices)
            fold_rows(rC, s, k, slices, 2, 0);
    for (; k < last; k += slices)
        fold_rows(rC, s, k, slices, 1, 0);
}

#endif

/* ---- reduction of sliced-K ----------------------------------------------------------- */

/* `rows` rows of C, from row `from` of the task on: the sum over slices of
 * sums[slice * slice_pitch + row * pitch + column].                                                   */
DEVICE void add_slices(const struct output *c, const struct task *t, int splits, GLOBAL R *gP,
                       LOCAL const R *sums, int slice_pitch, int pitch, int from, int rows)
{
    NO_UNROLL for (int i = LOCAL_ID(); i < rows * t->width; i += ITEMS) {
        const int row = row_of(t, i), column = i - row * t->width;
        const int m = t->m0 + from + row, n = t->n0 + column;
        LOCAL const R *mine = sums + row * pitch + column;
        R sum = mine[0];

        for (int slice = 1; slice < t->slices; slice++)
            sum = sum + mine[slice * slice_pitch];
        if (m < c->M && n < c->N) {
            if (splits > 1)
                gP[((INDEX)t->split * c->M + m) * c->N + n] = sum;
            else
                store_element(c, m, n, sum);
        }
    }
}

/* ---- the kernel ------------------------------------------------------------------------ */

/* splits > 1: partial sums go to gP, for gemm_sum; each split is `span` of K. */
KERNEL(ITEMS) void
gemm_skinny(int M, int N, int K, int slices, int width, int aligned, int span, int splits, int batches,
            VIEW eC, R alpha,
            GLOBAL const T *RESTRICT gA, VIEW vA,
            GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL R *RESTRICT gP, OUTPUT_PARAMS)
{
    LOCAL_ARRAY(R, sums, ITEMS * (ROWS * COLUMNS + PAD));

    const int step_n = width / COLUMNS;         /* a power of two */
    struct task t;

    find_task(&t, M, N, K, slices, width, ITEMS * COLUMNS, span, batches);

#if K_MAJOR
    const int column = (LOCAL_ID() / 8) & (step_n - 1);
    const int slice = LOCAL_ID() / 8 * slices / ITEMS * 8 + LOCAL_ID() % 8;
#define COLUMN_AT(j) (column + (j) * step_n)
#else
    const int column = LOCAL_ID() & (step_n - 1), slice = LOCAL_ID() * slices / ITEMS;
#define COLUMN_AT(j) (aligned ? column * VEC + (j) : column + (j) * step_n)
#endif
    struct operands s = { gA, gB };
    R rC[THR_M][COLUMNS];

    s.a += start_of(vA, eC, t.batch);
    s.b += start_of(vB, eC, t.batch);
    s.a_col = (INDEX)vA.s6;
    s.b_row = (INDEX)vB.s5;
    UNROLL for (int i = 0; i < THR_M; i++)
        s.a_at[i] = t.m0 + i < M ? (t.m0 + i) * (INDEX)vA.s5 : 0;
    UNROLL for (int j = 0; j < COLUMNS; j++)
        s.b_at[j] = t.n0 + COLUMN_AT(j) < N ? (t.n0 + COLUMN_AT(j)) * (INDEX)vB.s6 : 0;
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < COLUMNS; j++)
        rC[i][j] = ZERO;

    fold(rC, &s, t.first, t.last, slice, slices, aligned);

    const struct output c = OUTPUT(t.batch);
    const int slice_pitch = t.width * ROWS + PAD;

    UNROLL for (int i0 = 0; i0 < THR_M; i0 += ROWS) {
        BARRIER();
        UNROLL for (int i = 0; i < ROWS; i++)
        UNROLL for (int j = 0; j < COLUMNS; j++)
            sums[slice * slice_pitch + i * t.width + COLUMN_AT(j)] = rC[i0 + i][j];
        BARRIER();
        add_slices(&c, &t, splits, gP, sums, slice_pitch, t.width, i0, ROWS);
    }
}
