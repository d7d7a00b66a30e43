/* cl/tile/store.h - accumulators to C
 *
 * d holds the `count` accumulators of a work-item (cl/tile/accumulator.h), of the rows m and m8 of C and of
 * columns from n on.
 *
 * Takes: epilogue.h, accumulator.h, store_row.h, store_f32.h.  VECTORS, where a kernel has it: 1 where rows
 *        of C, and of a residual that is a matrix, are known to be whole 16-byte vectors.
 * Gives: BIAS_ROW() prepare_tile(), prefetch_tile(); RESIDUAL_BYTES HELD() hold_tile(); FINISH_PIECE
 *        scale_piece(); finish_tile(), finish_tile_held(), finish_tile_added(), finish_across();
 *        ROWS_OF_VECTORS(), C_IN_VECTORS(), RESIDUAL_IN_VECTORS(), store_finished(), store_finished_odd(),
 *        store_finished_rows(), store_tile().
 */

/* ---- the epilogue, in registers ------------------------------------------------------------------ */

/* Whether rows of C, or of the residual, are whole 16-byte vectors; bytes: of an element. */
#define ROWS_OF_VECTORS(bytes, p, row, col, N) \
    ((col) == 1 && ((row) | (N)) % (16 / (bytes)) == 0 && (UINT64)(p) % 16 == 0)

#ifndef VECTORS
#define VECTORS 0
#endif
#define C_IN_VECTORS(o) (VECTORS || ROWS_OF_VECTORS(C_BYTES, (o)->c, (o)->row, (o)->col, (o)->N))
#define RESIDUAL_IN_VECTORS(o) \
    (VECTORS || ROWS_OF_VECTORS(RESIDUAL_BYTES, (o)->residual, (o)->residual_row, (o)->residual_col, (o)->N))

/* Accumulators are finished in pieces of so many, since what is loaded for a piece takes registers, too. */
#define FINISH_PIECE 16

/* Of an element of a residual that is a matrix; 0: it is none. */
#define RESIDUAL_BYTES (RESIDUAL > SAME_COLUMNS ? OF(BYTES, TYPE_RESIDUAL) : 0)

#if RESIDUAL && OF(BYTES, TYPE_RESIDUAL) == 2
/* A vector of rows m and m8 of the residual, of 16-bit elements, from the piece whose first column is n on.
 * As store_row_vectors(). */
DEVICE void load_row_vectors(unsigned int *u, const struct output *o, int m, int m8, int n, int lane)
{
    UNROLL for (int below = 0; below < 2; below++) {
        const int r = below ? m8 : m, at = n + lane % 4 * 8;

        load16(u + 4 * below, o->residual + (r < o->M ? r : 0) * o->residual_row + at,
               r < o->M && at < o->N);
    }
}

/* Adds `by` times these to a piece. */
DEVICE void add_row_vectors(float *d, unsigned int *u, R by, int lane)
{
    transpose4(u, 2, lane, 1);
    UNROLL for (int below = 0; below < 2; below++)
        UNROLL for (int j = 0; j < 4; j++) {
            float *const two = d + 4 * j + 2 * below;

            two[0] = FMA(by, OF(LOWER, TYPE_RESIDUAL)(u[4 * below + j]), two[0]);
            two[1] = FMA(by, OF(UPPER, TYPE_RESIDUAL)(u[4 * below + j]), two[1]);
        }
}
#elif RESIDUAL && OF(BYTES, TYPE_RESIDUAL) == 4
/* The same of f32 elements: two vectors of each row, as store_rows() has them. */
DEVICE void load_row_vectors(unsigned int *u, const struct output *o, int m, int m8, int n, int lane)
{
    UNROLL for (int i = 0; i < 4; i++) {
        const int r = i % 2 ? m8 : m, at = n + i / 2 * 16 + row_vector(lane) * 4;

        load16(u + 4 * i, o->residual + (r < o->M ? r : 0) * o->residual_row + at, r < o->M && at < o->N);
    }
}

DEVICE void add_row_vectors(float *d, unsigned int *u, R by, int lane)
{
    UNROLL for (int i = 0; i < 4; i++) {
        float *const pair = d + i / 2 * 8 + i % 2 * 2;

        exchange_pairs(u + 4 * i, lane);
        UNROLL for (int j = 0; j < 4; j++) {
            float *const x = pair + j / 2 * 4 + j % 2;

            *x = FMA(by, BITS_FLOAT(u[4 * i + j]), *x);
        }
    }
}
#endif

/* Whether two adjacent elements of a row, at an even column, can be loaded at once. */
#define SIDE_IN_PAIRS(which, TYPE_OF, p, row, col, N)                                           \
    ((col) == 1 && ((which) == SAME_ROWS || (row) % 2 == 0) && (N) % 2 == 0 &&                  \
     (UINT64)(p) % (2 * OF(BYTES, TYPE_OF)) == 0)

/* Applies STEP(x, y, side x, side y) to the pairs of a piece whose first column is n.  What is outside of C
 * is finished with elements from its edge.  in_pairs: SIDE_IN_PAIRS(). */
#define WITH_SIDE(which, TYPE_OF, p, row, col, in_pairs, STEP)                                  \
    UNROLL for (int i = 0; i < FINISH_PIECE; i += 2) {                                          \
        const int r_ = ACC_BELOW(i) ? m8 : m, c_ = n + ACC_COL(i);                              \
        const int in_r_ = r_ < M ? r_ : M - 1, in_c_ = c_ < N ? c_ : (N - 1) / 2 * 2;           \
        GLOBAL const OF(T_OF, TYPE_OF) *const at_ =                                          \
            (p) + SIDE_AT(which, row, col, in_r_, in_c_);                                       \
        float two_[2];                                                                          \
                                                                                                \
        if ((which) == SAME_COLUMNS)                                                            \
            two_[0] = two_[1] = OF(LOAD, TYPE_OF)(at_, 0);                                      \
        else if (in_pairs)                                                                      \
            VSTORE(2, two_, OF(LOAD_ALIGNED, TYPE_OF)(2, at_));                                 \
        else {                                                                                  \
            two_[0] = OF(LOAD, TYPE_OF)(at_, 0);                                                \
            two_[1] = OF(LOAD, TYPE_OF)(at_, c_ + 1 < N ? (col) : 0);                           \
        }                                                                                       \
        STEP(d[i], d[i + 1], two_[0], two_[1]);                                                 \
    }
#define SCALE_PAIR(x, y, a, b)    x = x * a; y = y * b
#define RESIDUAL_PAIR(x, y, a, b) x = FMA(o->beta, a, x); y = FMA(o->beta, b, y)
#define BIAS_PAIR(x, y, a, b)     x = x + a; y = y + b

/* A bias that is the same for all rows is loaded before the products, to registers: a warp has the columns of
 * its tile once, in pairs, and exchanges them when they are added.  They stay as they are in memory until
 * then, since a conversion would wait for them before the next products. */
#define BIAS_ROW(count) (BIAS == SAME_ROWS ? ((count) + 31) / 32 * 2 : 1)

/* Of words that prepare_tile() loaded, the pair that a lane has. */
DEVICE void bias_of_lane(float *x, float *y, const UINT32 *words, int lane)
{
#if OF(BYTES, TYPE_BIAS) == 2
    const UINT32 both = from_lane(words[0] | words[1] << 16, lane);

    *x = OF(LOWER, TYPE_BIAS)(both);
    *y = OF(UPPER, TYPE_BIAS)(both);
#else
    *x = BITS_FLOAT(from_lane(words[0], lane));
    *y = BITS_FLOAT(from_lane(words[1], lane));
#endif
}

DEVICE void prepare_tile(UINT32 *bias_row, const struct output *o, const int count, int n0, int lane)
{
#if BIAS == SAME_ROWS
    GLOBAL const OF(BITS_OF, TYPE_BIAS) *const words = (GLOBAL const OF(BITS_OF, TYPE_BIAS) *)o->bias;

    UNROLL for (int i = 0; i < BIAS_ROW(count); i++) {
        const int n = n0 + i / 2 * 64 + lane * 2 + i % 2;

        bias_row[i] = words[(n < o->N ? n : o->N - 1) * o->bias_col];
    }
#endif
}

/* Asks for the tile's part of the residual, while the tensor cores are busy. */
DEVICE void prefetch_tile(const struct output *o, const int count, int m, int m8, int n0, int lane)
{
#if RESIDUAL > SAME_COLUMNS
    const int line = 128 / OF(BYTES, TYPE_RESIDUAL);            /* elements of a line of the cache */

    if (o->residual_col == 1)
        UNROLL for (int i = 0; i < 2 * count; i += 4 * line) {
            const int at = i + lane % 4 * line, n = n0 + at;

            if (at < 2 * count && n < o->N && m < o->M)
                prefetch_global(o->residual + m * o->residual_row + n);
            if (at < 2 * count && n < o->N && m8 < o->M)
                prefetch_global(o->residual + m8 * o->residual_row + n);
        }
#endif
}

/* Or loads it to so many registers, where it is in 16-byte vectors. */
#define HELD(count) ((count) * RESIDUAL_BYTES / 4)

DEVICE void hold_tile(unsigned int *held, const struct output *o, const int count, int m, int m8, int n0,
                      int lane)
{
#if RESIDUAL_BYTES == 2 || RESIDUAL_BYTES == 4
    if (RESIDUAL_IN_VECTORS(o))
        UNROLL for (int piece = 0; piece < count; piece += FINISH_PIECE)
            load_row_vectors(held + HELD(piece), o, m, m8, n0 + ACC_COL(piece), lane);
    else
#endif
        prefetch_tile(o, count, m, m8, n0, lane);
}

/* A piece, whose first column is `first`, times alpha and the scale. */
DEVICE void scale_piece(const struct output *o, float *d, int m, int m8, int first, int lane)
{
    UNROLL for (int i = 0; i < FINISH_PIECE; i++)
        d[i] = o->alpha * d[i];
#if SCALE
    const int M = o->M, N = o->N, n = first + acc_first_col(lane);
    const int in_pairs = SIDE_IN_PAIRS(SCALE, TYPE_F32, o->scale, o->scale_row, o->scale_col, N);

    WITH_SIDE(SCALE, TYPE_F32, o->scale, o->scale_row, o->scale_col, in_pairs, SCALE_PAIR)
#endif
}

/* n0: the tile's first column.  What is outside of C becomes any value.  held: by hold_tile(); or 0.  added:
 * 1 where the accumulators are scaled and the residual is in them, by residual_add(). */
DEVICE void finish_tile_added(const struct output *o, float *all, const UINT32 *bias_row,
                              const unsigned int *held, int added, const int count, int m, int m8, int n0,
                              int lane)
{
    const int M = o->M, N = o->N;
#if RESIDUAL
    const int residual_in_pairs = SIDE_IN_PAIRS(RESIDUAL, TYPE_RESIDUAL, o->residual, o->residual_row,
                                                o->residual_col, N);
#if OF(BYTES, TYPE_RESIDUAL) == 2
    const int in_vectors = RESIDUAL > SAME_COLUMNS && RESIDUAL_IN_VECTORS(o);
    unsigned int next[8];

    if (in_vectors && !held && !added)
        load_row_vectors(next, o, m, m8, n0, lane);
#elif RESIDUAL_BYTES == 4
    const int in_vectors = held && RESIDUAL_IN_VECTORS(o);
#endif
#endif
#if BIAS > SAME_ROWS
    const int bias_in_pairs = SIDE_IN_PAIRS(BIAS, TYPE_BIAS, o->bias, o->bias_row, o->bias_col, N);
#endif

    UNROLL for (int piece = 0; piece < count; piece += FINISH_PIECE) {
        float *const d = all + piece;
        const int first = n0 + ACC_COL(piece), n = first + acc_first_col(lane);

        if (!added) {
            scale_piece(o, d, m, m8, first, lane);
#if RESIDUAL
#if OF(BYTES, TYPE_RESIDUAL) == 2
            if (in_vectors) {                   /* those of the next piece are on their way meanwhile */
                unsigned int here[8];

                UNROLL for (int i = 0; i < 8; i++)
                    here[i] = held ? held[piece / 2 + i] : next[i];
                if (!held && piece + FINISH_PIECE < count)
                    load_row_vectors(next, o, m, m8, first + ACC_COL(FINISH_PIECE), lane);
                add_row_vectors(d, here, o->beta, lane);
            } else
#elif RESIDUAL_BYTES == 4
            if (in_vectors) {
                unsigned int here[FINISH_PIECE];

                UNROLL for (int i = 0; i < FINISH_PIECE; i++)
                    here[i] = held[piece + i];
                add_row_vectors(d, here, o->beta, lane);
            } else
#endif
                WITH_SIDE(RESIDUAL, TYPE_RESIDUAL, o->residual, o->residual_row, o->residual_col,
                          residual_in_pairs, RESIDUAL_PAIR)
#endif
        }
#if BIAS == SAME_ROWS
        UNROLL for (int i = 0; i < FINISH_PIECE; i += 4) {
            const int block = (piece + i) / 4;
            float x, y;

            bias_of_lane(&x, &y, bias_row + block / 8 * 2, block % 8 * 4 + lane % 4);
            BIAS_PAIR(d[i], d[i + 1], x, y);
            BIAS_PAIR(d[i + 2], d[i + 3], x, y);
        }
#elif BIAS
        WITH_SIDE(BIAS, TYPE_BIAS, o->bias, o->bias_row, o->bias_col, bias_in_pairs, BIAS_PAIR)
#endif
        UNROLL for (int i = 0; i < FINISH_PIECE; i++)
            d[i] = activate(d[i]);
    }
}

DEVICE void finish_tile_held(const struct output *o, float *all, const UINT32 *bias_row,
                             const unsigned int *held, const int count, int m, int m8, int n0, int lane)
{
    finish_tile_added(o, all, bias_row, held, 0, count, m, m8, n0, lane);
}

DEVICE void finish_tile(const struct output *o, float *all, const UINT32 *bias_row, const int count, int m,
                        int m8, int n0, int lane)
{
    finish_tile_held(o, all, bias_row, 0, count, m, m8, n0, lane);
}

/* ... of a d that is the transposed: the item's columns are n and the next one, its first row is m. */
DEVICE void finish_across(const struct output *o, float *d, const int count, int m, int n)
{
    UNROLL for (int i = 0; i < count; i++) {
        const int r = m + ACC_COL(i), c = n + ACC_BELOW(i);

        d[i] = epilogue(o, r < o->M ? r : o->M - 1, c < o->N ? c : o->N - 1, d[i]);
    }
}

/* ---- the store ----------------------------------------------------------------------------------- */

/* Of accumulators that are finished, where rows of C are no whole vectors.  unaligned, a constant: 1 where
 * those of 16-bit elements mostly begin at no multiple of 16 bytes. */
DEVICE void store_finished_odd(const struct output *o, const float *d, const int count, int m, int m8, int n0,
                               int lane, const int unaligned)
{
    const int n = n0 + acc_first_col(lane);

#if C_BYTES == 4
    store_pairs(o->c, 0, o->row, o->col, d, count, m, m8, n, o->M, o->N);
#else
    if (o->col == 1) {
        UNROLL for (int below = 0; below < 2; below++) {
            const int r = below ? m8 : m, left = r < o->M ? o->N - n0 : 0;
            GLOBAL TC *const to = o->c + (r < o->M ? r : 0) * o->row + n0;

            if (unaligned)
                store_row_shifted(to, d, count, below, lane, left);
            else
                store_row_pairs(to, d, count, below, lane, left);
        }
    } else {
        UNROLL for (int i = 0; i < count; i++) {
            const int r = ACC_BELOW(i) ? m8 : m, c = n + ACC_COL(i);

            if (r < o->M && c < o->N)
                STORE_C(o->c, r * o->row + c * o->col, d[i]);
        }
    }
#endif
}

DEVICE void store_finished(const struct output *o, const float *d, const int count, int m, int m8, int n0,
                           int lane, const int unaligned)
{
#if C_BYTES == 2
    if (C_IN_VECTORS(o)) {
        UNROLL for (int below = 0; below < 2; below++) {
            const int r = below ? m8 : m;

            store_row_vectors(o->c + (r < o->M ? r : 0) * o->row + n0, d, count, below, lane,
                              r < o->M ? o->N - n0 : 0);
        }
        return;
    }
#endif
    store_finished_odd(o, d, count, m, m8, n0, lane, unaligned);
}

/* The same, where f32 elements are mostly in rows of 16-byte vectors. */
DEVICE void store_finished_rows(const struct output *o, const float *d, const int count, int m, int m8,
                                int n0, int lane)
{
#if C_BYTES == 4
    if (C_IN_VECTORS(o)) {
        store_rows(o->c, o->row, d, count, m, m8, n0, lane, o->M, o->N);
        return;
    }
#endif
    store_finished(o, d, count, m, m8, n0, lane, 0);
}

DEVICE void store_tile(const struct output *o, float *d, const UINT32 *bias_row, const int count, int m,
                       int m8, int n0, int lane, const int unaligned)
{
    finish_tile(o, d, bias_row, count, m, m8, n0, lane);
    store_finished(o, d, count, m, m8, n0, lane, unaligned);
}
