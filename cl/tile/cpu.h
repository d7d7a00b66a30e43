/* cl/tile/cpu.h - a tile of C = A B in vector registers, for CPUs
 *
 * A work-group is one work-item. It keeps THR_M x THR_N of C in registers, as THR_V vectors of
 * VEC elements per row, and reads two panels that are packed in the order in which they are read:
 *
 *     panel of A   K-major, THR_M wide     each element is broadcast to a vector
 *     panel of B   K-major, THR_N wide     read as vectors
 *
 * THR_M * THR_V accumulators, THR_V vectors of B and one of A must fit the registers: 12 x 2
 * of 16 floats with AVX-512 (32 registers), 6 x 2 of 8 with AVX2 (16). Panels are packed because
 * rows of a matrix are far apart in memory, and at a distance of a power of two would all fall
 * into one set of the cache. Method: Goto and van de Geijn, Anatomy of High-Performance Matrix
 * Multiplication, 2008.
 *
 * Sums run in order of k, one fused multiply-add each: bit-identical on every device.
 *
 * Takes  THR_M THR_V VEC (a row of parameters); T R R_IS_T LOAD LOAD_VECTOR (cl/types.h); struct output
 *        (cl/tile/epilogue.h)
 * Gives  THR_N RV; CPU_PACK, CPU_TILE, CPU_TILE_SIZED and CPU_TILE_FILL with struct stream and target,
 *        and the other CPU_*; transpose(), tile_store_row(), tile_keep_row()
 */
#define THR_N (VEC * THR_V)

typedef VECTOR(R, VEC) RV;

/* Stores a vector to C, whatever its alignment. */
#if TYPE_C == TYPE_F32 || TYPE_C == TYPE_F64
UNALIGNED(RV, RV_UNALIGNED, C_BYTES);
#define CPU_STORE(p, v) VSTORE_ALIGNED(RV_UNALIGNED, p, v)
#else
#define CPU_STORE(p, v) OF(STORE_VECTOR, TYPE_C)(VEC, p, v)
#endif

/* ... CPU_STREAM_VECTORS of them, to a multiple of CPU_STREAM_BYTES, past the caches.  Two vectors of 16
 * elements of 16 bits are one line, which is stored at once where it is one: halves of lines take up to five
 * times as long. */
#if TYPE_C == TYPE_F16
DEVICE VECTOR(UINT16, VEC) stream_bits(RV v)
{
    VECTOR(UINT16, VEC) u;

    VHALF_STORE_ALIGNED(VEC, (HALF *)&u, v);
    return u;
}
#elif TYPE_C == TYPE_BF16
#define stream_bits(v) BF16_VECTOR(VEC, v)
#endif

#if C_BYTES != 2
#define CPU_STREAM_VECTORS 1
#define CPU_STREAM(p, v) VSTORE_STREAM(RV, p, (v)[0])
#elif VEC != 16 || THR_V % 2
#define CPU_STREAM_VECTORS 1
#define CPU_STREAM(p, v) VSTORE_STREAM(VECTOR(UINT16, VEC), p, stream_bits((v)[0]))
#else
#define CPU_STREAM_VECTORS 2
DEVICE void stream_pair(GLOBAL TC *p, RV low, RV high)
{
    VECTOR(UINT32, 16) line;

    line.lo = AS(VECTOR(UINT32, 8), stream_bits(low));
    line.hi = AS(VECTOR(UINT32, 8), stream_bits(high));
    if ((UINT64)p % 64 == 0)
        VSTORE_STREAM(VECTOR(UINT32, 16), p, line);
    else {
        VSTORE_STREAM(VECTOR(UINT32, 8), p, line.lo);
        VSTORE_STREAM(VECTOR(UINT32, 8), p + VEC, line.hi);
    }
}
#define CPU_STREAM(p, v) stream_pair(p, (v)[0], (v)[1])
#endif
#define CPU_STREAM_BYTES (VEC * C_BYTES)

/* Stores a vector to a panel in one store, where a compiler splits vstore. */
UNALIGNED(RV, RV_PANEL, 4);
#define CPU_STORE_PANEL(SPACE, p, v) (*(SPACE RV_PANEL *)(p) = (v))

/* ---- panels -------------------------------------------------------------------------- */

/* Transposes 4 rows of VEC elements to VEC rows of 4. */
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

/* Transposes VEC rows of VEC elements: in log2(VEC) steps, rows half of them apart are interleaved. */
DEVICE void transpose_square(RV r[VEC])
{
    UNROLL for (int step = 1; step < VEC; step *= 2) {
        RV s[VEC];

        UNROLL for (int i = 0; i < VEC / 2; i++)
            ZIP(s[2 * i], s[2 * i + 1], r[i], r[i + VEC / 2]);
        UNROLL for (int i = 0; i < VEC; i++)
            r[i] = s[i];
    }
}

/* CPU_PACK(name, SPACE) defines the function below. It packs `width` rows (or columns) of g, over `depth`
 * of k, into a panel of row pitch `pitch`, and fills that with zeros from `width` to `end`. x_step is the
 * step of g across the panel, k_step its step along K.                                             */
#define CPU_PACK(name, SPACE)                                                                        \
DEVICE void name(SPACE R *RESTRICT panel, const int pitch, int end, int width,                       \
                 GLOBAL const T *RESTRICT g, INDEX x_step, INDEX k_step, int depth)                  \
{                                                                                                    \
    const int squares = pitch < VEC ? 0 : width / VEC * VEC, fours = width / 4 * 4;                  \
    const int whole = depth / VEC * VEC;                                                             \
                                                                                                     \
    if (k_step == 1)                                                                                 \
        for (int x = 0; x < squares; x += VEC) {                                                     \
            for (int k = 0; k < whole; k += VEC) {                                                   \
                RV r[VEC];                                                                           \
                                                                                                     \
                UNROLL for (int i = 0; i < VEC; i++) {                                               \
                    PREFETCH(g + (x + i) * x_step + k + 4 * VEC);                                    \
                    r[i] = LOAD_VECTOR(VEC, g + (x + i) * x_step + k);                               \
                }                                                                                    \
                transpose_square(r);                                                                 \
                UNROLL for (int i = 0; i < VEC; i++)                                                 \
                    CPU_STORE_PANEL(SPACE, panel + (k + i) * pitch + x, r[i]);                       \
            }                                                                                        \
            for (int k = whole; k < depth; k++)                                                      \
                for (int i = 0; i < VEC; i++)                                                        \
                    panel[k * pitch + x + i] = LOAD(g, (x + i) * x_step + k);                        \
        }                                                                                            \
    if (k_step == 1)                                                                                 \
        for (int x = squares; x < fours; x += 4) {                                                   \
            GLOBAL const T *from = g + x * x_step;                                                   \
                                                                                                     \
            for (int k = 0; k < whole; k += VEC) {                                                   \
                SPACE R *to = panel + k * pitch + x;                                                 \
                R four[4 * VEC];                                                                     \
                                                                                                     \
                UNROLL for (int i = 0; i < 4; i++)                                                   \
                    PREFETCH(from + i * x_step + k + 4 * VEC);                                       \
                transpose(four, LOAD_VECTOR(VEC, from + k), LOAD_VECTOR(VEC, from + x_step + k),     \
                          LOAD_VECTOR(VEC, from + 2 * x_step + k),                                   \
                          LOAD_VECTOR(VEC, from + 3 * x_step + k));                                  \
                UNROLL for (int i = 0; i < VEC; i++)                                                 \
                    VSTORE(4, to + i * pitch, VLOAD(4, four + 4 * i));                               \
            }                                                                                        \
            for (int k = whole; k < depth; k++)                                                      \
                for (int i = 0; i < 4; i++)                                                          \
                    panel[k * pitch + x + i] = LOAD(from, i * x_step + k);                           \
        }                                                                                            \
    else if (x_step == 1)                                                                            \
        for (int k = 0; k < depth; k++)                                                              \
        {                                                                                            \
            int x = 0;                                                                               \
                                                                                                     \
            for (; x + VEC <= width; x += VEC)                                                       \
                CPU_STORE_PANEL(SPACE, panel + k * pitch + x, LOAD_VECTOR(VEC, g + k * k_step + x)); \
            for (; x < fours; x += 4)                                                                \
                VSTORE(4, panel + k * pitch + x, LOAD_VECTOR(4, g + k * k_step + x));                \
            for (; x < end; x++)                                                                     \
                panel[k * pitch + x] = x < width ? LOAD(g, k * k_step + x) : ZERO;                   \
        }                                                                                            \
    for (int x = k_step == 1 ? fours : x_step == 1 ? end : 0; x < end; x++)                          \
        for (int k = 0; k < depth; k++)                                                              \
            panel[k * pitch + x] = x < width ? LOAD(g, x * x_step + k * k_step) : ZERO;              \
}

/* ---- the tile ------------------------------------------------------------------------ */

#define CPU_PREFETCH_C (16 * THR_V)             /* steps of k before the end at which C is prefetched */
#define CPU_PREFETCH_B 32                       /* rows of B by which their prefetch runs ahead */

/* A stream of memory beside the panels. With B_PANEL it is prefetched: in each 16 steps of k 16 addresses,
 * `step` apart, and `advance` further in the next 16. Else it is B itself, whose rows are `step` apart. */
struct stream { GLOBAL const T *at; INDEX step, advance; };

/* Where a tile goes: rows of C, `step` apart. is_plain: it needs alpha only, so that a whole tile is
 * stored from registers; streams: past the caches, in vectors that are aligned. From k = prefetch_from
 * on, the rows of C at `prefetch` are prefetched.                                                    */
struct target { GLOBAL TC *at, *prefetch; INDEX step; int prefetch_from, is_plain; R alpha; int streams; };

/* What a tile starts from: zeros; partial sums in local memory; or partial sums in C, for whole tiles only,
 * and where R is T.                                                                               */
enum { FROM_ZERO, FROM_PARTIAL, FROM_C };

/* How a tile reads B: from a panel that is packed; from memory, packing the panel b (of row pitch `b_step`
 * vectors) as it goes, so that the copy is hidden by the arithmetic; or from memory without packing. Of rows
 * in memory the last element of each vector is prefetched, since rows may begin within a cache line. */
enum { B_PANEL, B_FILL, B_IN_PLACE };

/* CPU_TILE(name, SPACE_A, A, READ, SPACE_B) defines the function below:
 *
 *     partial := A B over `depth` of k, added to what `start` says; or, where the target is plain,
 *     C := alpha A B
 *
 * The first `rows` rows and `vectors` vectors of the tile count; they and `mode` are constants at each
 * call. READ is CPU_PANEL, where A is a packed panel, or CPU_ROWS, where A is read in place, in rows
 * a_row apart.                                                                                     */
#define CPU_PANEL(a, a_row, i) (a)[i]
#define CPU_PANEL_NEXT(a)      PREFETCH(a + 32 * THR_M); a += THR_M
#define CPU_ROWS(a, a_row, i)  LOAD(a, (i) * (a_row))
#define CPU_ROWS_NEXT(a)       a++

#define CPU_TILE(name, SPACE_A, A, READ, SPACE_B)                                              \
DEVICE void name(const int rows, const int vectors, const int mode,                            \
                 LOCAL RV *RESTRICT partial,                                                   \
                 SPACE_A const A *RESTRICT a, INDEX a_row, SPACE_B RV *RESTRICT b, int b_step, \
                 struct stream stream, int depth, int start, struct target to)                 \
{                                                                                              \
    RV rC[THR_M][THR_V];                                                                       \
                                                                                               \
    if (start == FROM_C)                                                                       \
        UNROLL for (int i = 0; i < rows; i++)                                                  \
        UNROLL for (int j = 0; j < vectors; j++)                                               \
            rC[i][j] = OF(LOAD_VECTOR, TYPE_C)(VEC, to.at + i * to.step + j * VEC);            \
    else                                                                                       \
        UNROLL for (int i = 0; i < THR_M; i++)                                                 \
        UNROLL for (int j = 0; j < THR_V; j++)                                                 \
            if (i < rows && j < vectors)                                                       \
                rC[i][j] = start == FROM_ZERO ? (RV)(ZERO) : partial[i * THR_V + j];           \
    NO_UNROLL for (int k = 0, end = to.prefetch_from; k < depth; end = depth) {                \
        NO_UNROLL for (; k < end; ) {                                                          \
            const int run = mode == B_PANEL && k + 16 < end ? k + 16 : end;                    \
            GLOBAL const T *ahead = stream.at;                                                 \
                                                                                               \
            for (; k < run; k++) {                                                             \
                RV rB[THR_V];                                                                  \
                                                                                               \
                if (mode == B_FILL) {                                                          \
                    UNROLL for (int j = 0; j < THR_V; j++)                                     \
                        PREFETCH(stream.at + CPU_PREFETCH_B * stream.step + (j + 1) * VEC - 1);\
                } else if (mode == B_PANEL) {                                                  \
                    PREFETCH(ahead);                                                           \
                    ahead += stream.step;                                                      \
                }                                                                              \
                UNROLL for (int j = 0; j < THR_V; j++)                                         \
                    if (mode == B_FILL)                                                        \
                        b[j] = rB[j] = LOAD_VECTOR(VEC, stream.at + j * VEC);                  \
                    else if (mode == B_IN_PLACE)                                               \
                        rB[j] = LOAD_VECTOR(VEC, stream.at + j * VEC);                         \
                    else if (j < vectors)                                                      \
                        rB[j] = b[j];                                                          \
                UNROLL for (int i = 0; i < THR_M; i++)                                         \
                    if (i < rows) {                                                            \
                        const RV rA = (RV)(READ(a, a_row, i));                                 \
                                                                                               \
                        UNROLL for (int j = 0; j < THR_V; j++)                                 \
                            if (j < vectors)                                                   \
                                rC[i][j] = FMA(rA, rB[j], rC[i][j]);                           \
                    }                                                                          \
                READ##_NEXT(a);                                                                \
                b += b_step;                                                                   \
                if (mode != B_PANEL)                                                           \
                    stream.at += stream.step;                                                  \
            }                                                                                  \
            if (mode == B_PANEL)                                                               \
                stream.at += stream.advance;                                                   \
        }                                                                                      \
        if (mode == B_PANEL) {                                                                 \
            stream.at      = (GLOBAL const T *)to.prefetch;                                    \
            stream.step    = to.step;                                                          \
            stream.advance = VEC;                                                              \
        }                                                                                      \
    }                                                                                          \
    if (to.is_plain && rows == THR_M && vectors == THR_V) {                                    \
        if (to.streams)                                                                        \
            UNROLL for (int i = 0; i < THR_M; i++) {                                           \
                RV v[THR_V];                                                                   \
                                                                                               \
                UNROLL for (int j = 0; j < THR_V; j++)                                         \
                    v[j] = (RV)(to.alpha) * rC[i][j];                                          \
                UNROLL for (int j = 0; j < THR_V; j += CPU_STREAM_VECTORS)                         \
                    CPU_STREAM(to.at + i * to.step + j * VEC, v + j);                          \
            }                                                                                  \
        else                                                                                   \
            UNROLL for (int i = 0; i < THR_M; i++)                                             \
            UNROLL for (int j = 0; j < THR_V; j++)                                             \
                CPU_STORE(to.at + i * to.step + j * VEC, (RV)(to.alpha) * rC[i][j]);           \
        return;                                                                                \
    }                                                                                          \
    UNROLL for (int i = 0; i < THR_M; i++)                                                     \
    UNROLL for (int j = 0; j < THR_V; j++)                                                     \
        if (i < rows && j < vectors)                                                           \
            partial[i * THR_V + j] = rC[i][j];                                                 \
}

/* A call of `tile` sized for `height` rows and `count` columns, so that a tile at the edge of C costs
 * about what it holds; and the same with B_FILL.                                                   */
#define CPU_ROWS_2 ((2 * THR_M + 2) / 3)
#define CPU_ROWS_1 ((THR_M + 2) / 3)
#define CPU_TILE_SIZED(tile, height, count, partial, a, b, stream, depth, start, to)             \
    do {                                                                                         \
        if (THR_V > 1 && (count) <= THR_N - VEC)                                                 \
            tile(THR_M, THR_V > 1 ? THR_V - 1 : 1, B_PANEL, partial, a, 0, b, THR_V,             \
                 stream, depth, start, to);                                                      \
        else if ((height) > CPU_ROWS_2)                                                          \
            tile(THR_M, THR_V, B_PANEL, partial, a, 0, b, THR_V, stream, depth, start, to);      \
        else if ((height) > CPU_ROWS_1)                                                          \
            tile(CPU_ROWS_2, THR_V, B_PANEL, partial, a, 0, b, THR_V, stream, depth, start, to); \
        else                                                                                     \
            tile(CPU_ROWS_1, THR_V, B_PANEL, partial, a, 0, b, THR_V, stream, depth, start, to); \
    } while (0)
#define CPU_TILE_FILL(tile, height, partial, a, b, b_step, stream, depth, start, to)             \
    do {                                                                                         \
        if ((height) > CPU_ROWS_2)                                                               \
            tile(THR_M, THR_V, B_FILL, partial, a, 0, b, b_step, stream, depth, start, to);      \
        else if ((height) > CPU_ROWS_1)                                                          \
            tile(CPU_ROWS_2, THR_V, B_FILL, partial, a, 0, b, b_step, stream, depth, start, to); \
        else                                                                                     \
            tile(CPU_ROWS_1, THR_V, B_FILL, partial, a, 0, b, b_step, stream, depth, start, to); \
    } while (0)

EXP_FUNCTION(exp_lanes, RV, BITS_LANES, LANES_BITS)
TANH_FUNCTION(tanh_lanes, RV, exp_lanes)
ACTIVATION_FUNCTION(activate_lanes, RV, exp_lanes, tanh_lanes)

#define SIDE_IN_VECTORS(which, col) (!(which) || (which) == SAME_COLUMNS || (col) == 1)

/* A vector of the residual or the bias, for elements of C that follow each other. */
#define SIDE_VECTOR(which, TYPE_OF, p, at)                     \
    ((which) == SAME_COLUMNS ? (RV)(OF(LOAD, TYPE_OF)(p, at)) : OF(LOAD_VECTOR, TYPE_OF)(VEC, (p) + (at)))

/* Stores elements [first, end) of one row of a tile, which is of row m of C and of columns from n on, through
 * the epilogue: in vectors where whole ones begin it; streams: these past the caches. */
DEVICE void tile_store_row(LOCAL const RV *RESTRICT row, int first, int end, const struct output *o, int m,
                           int n, int streams)
{
    LOCAL const R *sum = (LOCAL const R *)row;
    const int in_vectors = first == 0 && o->col == 1 && SIDE_IN_VECTORS(SCALE, o->scale_col) &&
                           SIDE_IN_VECTORS(RESIDUAL, o->residual_col) && SIDE_IN_VECTORS(BIAS, o->bias_col);
    const int whole = in_vectors ? end / VEC : 0;
    RV v[THR_V];

    UNROLL for (int j = 0; j < THR_V; j++)
        if (j < whole) {
            v[j] = (RV)(o->alpha) * row[j];
            if (SCALE)
                v[j] = v[j] * (SCALE == SAME_COLUMNS ? (RV)(o->scale[SCALE_AT(o, m, n + j * VEC)])
                                                     : VLOAD(VEC, o->scale + SCALE_AT(o, m, n + j * VEC)));
            if (RESIDUAL)
                v[j] = FMA((RV)(o->beta), SIDE_VECTOR(RESIDUAL, TYPE_RESIDUAL, o->residual,
                                                      RESIDUAL_AT(o, m, n + j * VEC)), v[j]);
            if (BIAS)
                v[j] = v[j] + SIDE_VECTOR(BIAS, TYPE_BIAS, o->bias, BIAS_AT(o, m, n + j * VEC));
            v[j] = activate_lanes(v[j]);
        }
    if (streams && whole == THR_V)
        UNROLL for (int j = 0; j < THR_V; j += CPU_STREAM_VECTORS)
            CPU_STREAM(o->c + m * o->row + n + j * VEC, v + j);
    else
        UNROLL for (int j = 0; j < THR_V; j++)
            if (j < whole)
                CPU_STORE(o->c + m * o->row + n + j * VEC, v[j]);
    for (int i = whole ? whole * VEC : first; i < end; i++)
        store_element(o, m, n + i, sum[i]);
}

/* The same of partial sums, that C holds between blocks of K. */
DEVICE void tile_keep_row(LOCAL const RV *RESTRICT row, int end, const struct output *o, int m, int n)
{
    LOCAL const R *sum = (LOCAL const R *)row;
    const int whole = o->col == 1 ? end / VEC * VEC : 0;

    for (int i = 0; i < whole; i += VEC)
        CPU_STORE(o->c + m * o->row + n + i, row[i / VEC]);
    for (int i = whole; i < end; i++)
        STORE_C(o->c, m * o->row + (n + i) * o->col, sum[i]);
}
