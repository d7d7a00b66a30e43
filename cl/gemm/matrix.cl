/* matrix.cl - C := act(alpha A B + beta C + bias), on the matrix engines of AMD's and Intel's GPUs
 *
 * A wave is what one matrix instruction runs in: AMD's wavefront, Intel's sub-group.  Slices of A and B,
 * BLK_K deep, go from device memory to registers to local memory, one slice ahead of the one that is
 * multiplied; local memory has two of each, so that a slice needs one barrier.
 *
 *                     BLK_N             a wave computes WAVE_M x WAVE_N of the tile, in blocks of
 *                  +-----------+        MATRIX_M x MATRIX_N, the size of an instruction: 2 x 2 here
 *            BLK_K |     B     |
 *                  +-----------+        +-----+-----+
 *         +-----+  +-----+-----+        |     |     |
 *         |     |  | wave| wave|        +-----+-----+
 *   BLK_M |  A  |  +-----+-----+        |     |     |  WAVE_M
 *         |     |  | wave| wave|        +-----+-----+
 *         +-----+  +-----+-----+            WAVE_N
 *
 * The family's atoms say how a block is loaded from local memory, how its elements are laid out there, and
 * which accumulators a lane holds: matrix_offset, matrix_load_a, matrix_load_b, MATRIX_MULTIPLY, matrix_row,
 * matrix_column; MATRIX_FENCE keeps the order of instructions.
 *
 * All engines want adjacent elements along K together.  A work-item therefore loads squares of QUAD x QUAD
 * elements: an MN-major matrix is read along its rows and transposed in registers on the way to local memory.
 *
 * Edges: the last tile along M (N) begins earlier, so as to end with C, and stores only what no other tile
 * does.  If BLK_K does not divide K, the first slice is the partial one: it is read whole, with zeros for
 * what belongs to the second.  So all is read in vectors.  If that cannot be, since a matrix is smaller than
 * a tile or contiguous in neither direction, a second loop loads the slices element by element.
 *
 * The first loop has no guards on elements, whose hoisted addresses would spill registers, and no branch, at
 * which a compiler would wait for all loads.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K WAVE_M WAVE_N, ENGINE (see the atoms), LANES of a wave.
 * Their rows are modelled, not measured: as many accumulators as registers hold with one or two waves on
 * each compute unit, slices that fill half of local memory or less.
 */
#define ITEMS   (BLK_M / WAVE_M * WAVES_N * LANES)
#define SLICE_A (BLK_M * BLK_K)
#define SLICE   (SLICE_A + BLK_N * BLK_K)
#define RASTER  8

#define EACH_A  (BLK_M * BLK_K / (QUAD * QUAD) / ITEMS)     /* squares of a slice that a work-item loads */
#define EACH_B  (BLK_N * BLK_K / (QUAD * QUAD) / ITEMS)

#if EACH_A * ITEMS * QUAD * QUAD != BLK_M * BLK_K || EACH_B * ITEMS * QUAD * QUAD != BLK_N * BLK_K
#error "the work-items must share a slice evenly"
#endif
#if ITEMS * MATRIX_ACCUMULATORS > (QUAD == 4 ? 1 : 2) * SLICE
#error "a block of each work-item's accumulators must fit local memory"
#endif

/* A matrix from the tile's first row (column) on, of which there are X; and how it can be read. */
enum { K_MAJOR, MN_MAJOR, BY_ELEMENT };
struct operand { GLOBAL const BITS *g; INDEX x_step, k_step; int X, K, how; };

DEVICE int how_to_read(INDEX x_step, INDEX k_step, int X, int K, int width)
{
    return K < BLK_K ? BY_ELEMENT : k_step == 1 ? K_MAJOR : x_step == 1 && X >= width ? MN_MAJOR : BY_ELEMENT;
}

/* Square i of this work-item begins at element (SQUARE_X, SQUARE_K) of a slice.  Its QUAD vectors are
 * adjacent; in a K-major matrix they are so far apart that adjacent work-items have adjacent rows.     */
#define SQUARE(i)             ((unsigned int)LOCAL_ID() + (i) * ITEMS)
#define SQUARE_X(i, o, width) \
    ((int)((o)->how == K_MAJOR ? SQUARE(i) / (BLK_K / QUAD) : SQUARE(i) % ((width) / QUAD) * QUAD))
#define SQUARE_K(i, o, width) \
    ((int)((o)->how == K_MAJOR ? SQUARE(i) % (BLK_K / QUAD) : SQUARE(i) / ((width) / QUAD)) * QUAD)

/* The offsets of this work-item's vectors in the matrix, at k0 = 0, and in a slice. */
DEVICE void find_vectors(BYTE_OFFSET *from, int *to, const struct operand *o, int each, int width)
{
    UNROLL for (int i = 0; i < each; i++)
    UNROLL for (int j = 0; j < QUAD; j++) {
        const int k_major = o->how == K_MAJOR, x = SQUARE_X(i, o, width), k = SQUARE_K(i, o, width);
        const int x_to = k_major ? x + j * (width / QUAD) : x + j;
        const int x_from = !k_major ? x : x_to < o->X ? x_to : o->X - 1, k_from = k_major ? k : k + j;

        from[i * QUAD + j] = (BYTE_OFFSET)(x_from * o->x_step + k_from * o->k_step) * sizeof(BITS);
        to[i * QUAD + j] = matrix_offset(x_to, k, width);
    }
}

/* The slice from k0 on, to registers. */
DEVICE void load_slice(QUADS *r, const BYTE_OFFSET *from, const struct operand *o, int k0, int each)
{
    GLOBAL const char *g = (GLOBAL const char *)(o->g + k0 * o->k_step);

    UNROLL for (int i = 0; i < each * QUAD; i++)
        r[i] = VLOAD(QUAD, (GLOBAL const BITS *)(g + from[i]));
}

/* ... and from there to local memory, transposed if it is MN-major: selections cost less than a branch. */
DEVICE void store_slice(LOCAL T *s, const QUADS *r, const int *to, const struct operand *o, int each)
{
    const int mn_major = o->how == MN_MAJOR;

#define PICKED(x, y) (mn_major ? (x) : (y))
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

/* Zeros for all but the first `count` k of the slice. */
DEVICE void keep_first(QUADS *r, int count, const struct operand *o, int each, int width)
{
    const int dx = o->how == K_MAJOR, dj = !dx;

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

DEVICE BITS element_of(const struct operand *o, int x, int k)
{
    const int there = x < o->X && k < o->K;
    const BITS v = o->g[there ? x * o->x_step + k * o->k_step : 0];

    return there ? v : (BITS)0;
}

/* The slice from k0 on, to local memory element by element, with zeros beyond the edges. */
DEVICE void copy_elements(LOCAL T *s, const struct operand *o, int k0, int width)
{
    NO_UNROLL for (int i = LOCAL_ID(); i < width * (BLK_K / QUAD); i += ITEMS) {
        const int x = i / (BLK_K / QUAD), k = i % (BLK_K / QUAD) * QUAD;
        QUADS v;

        v.x = element_of(o, x, k0 + k);
        v.y = element_of(o, x, k0 + k + 1);
#if QUAD == 4
        v.z = element_of(o, x, k0 + k + 2);
        v.w = element_of(o, x, k0 + k + 3);
#endif
        *(LOCAL QUADS *)(s + matrix_offset(x, k, width)) = v;
    }
}

MATRIX_KERNEL(ITEMS) void
gemm_matrix(int M, int N, int K, VIEW eC, R alpha,
            GLOBAL const T *RESTRICT gA, VIEW vA,
            GLOBAL const T *RESTRICT gB, VIEW vB, OUTPUT_PARAMS)
{
    LOCAL_ARRAY(BITS, slices_of_both, 2 * SLICE);
    LOCAL T *s = (LOCAL T *)slices_of_both;

    const struct tile t = tile_at(schedule_of(M, N, BLK_M, BLK_N, RASTER), GROUP_ID(0));
    const int m0 = t.m0 + BLK_M <= M ? t.m0 : M < BLK_M ? 0 : M - BLK_M;        /* whole, if possible */
    const int n0 = t.n0 + BLK_N <= N ? t.n0 : N < BLK_N ? 0 : N - BLK_N;
    const int wave = LOCAL_ID() / LANES, lane = LOCAL_ID() % LANES;
    const int m1 = wave / WAVES_N * WAVE_M, n1 = wave % WAVES_N * WAVE_N;      /* of this wave, in the tile */
    const int slices = (K + BLK_K - 1) / BLK_K, first = K - (slices - 1) * BLK_K;
    const INDEX a_row = (INDEX)vA.s5, a_col = (INDEX)vA.s6, b_row = (INDEX)vB.s5, b_col = (INDEX)vB.s6;
    const struct operand a = { (GLOBAL const BITS *)gA + batch_offset(vA, eC, t.batch) + m0 * a_row,
                               a_row, a_col, M - m0, K, how_to_read(a_row, a_col, M, K, BLK_M) };
    const struct operand b = { (GLOBAL const BITS *)gB + batch_offset(vB, eC, t.batch) + n0 * b_col,
                               b_col, b_row, N - n0, K, how_to_read(b_col, b_row, N, K, BLK_N) };
    matrix_accumulators rC[MATRIX_BLOCKS_M][MATRIX_BLOCKS_N];

    UNROLL for (int i = 0; i < MATRIX_BLOCKS_M; i++)
    UNROLL for (int j = 0; j < MATRIX_BLOCKS_N; j++)
        rC[i][j] = (matrix_accumulators)(ZERO);

    if (a.how != BY_ELEMENT && b.how != BY_ELEMENT) {
        QUADS nextA[EACH_A * QUAD], nextB[EACH_B * QUAD];
        BYTE_OFFSET fromA[EACH_A * QUAD], fromB[EACH_B * QUAD];
        int toA[EACH_A * QUAD], toB[EACH_B * QUAD];

        find_vectors(fromA, toA, &a, EACH_A, BLK_M);
        find_vectors(fromB, toB, &b, EACH_B, BLK_N);
        load_slice(nextA, fromA, &a, 0, EACH_A);
        load_slice(nextB, fromB, &b, 0, EACH_B);
        keep_first(nextA, first, &a, EACH_A, BLK_M);
        keep_first(nextB, first, &b, EACH_B, BLK_N);
        store_slice(s, nextA, toA, &a, EACH_A);
        store_slice(s + SLICE_A, nextB, toB, &b, EACH_B);
        BARRIER();

        NO_UNROLL for (int slice = 0; slice < slices; slice++) {
            LOCAL const T *now = s + slice % 2 * SLICE;
            LOCAL T *next = s + (slice + 1) % 2 * SLICE;
            const int k0 = slice + 1 < slices ? first + slice * BLK_K : 0;

            load_slice(nextA, fromA, &a, k0, EACH_A);        /* after the last, any: no branch */
            load_slice(nextB, fromB, &b, k0, EACH_B);
            MATRIX_FENCE();
            MULTIPLY_SLICE(now, now + SLICE_A)
            MATRIX_FENCE();
            store_slice(next, nextA, toA, &a, EACH_A);
            store_slice(next + SLICE_A, nextB, toB, &b, EACH_B);
            BARRIER();                          /* the next slice has arrived, and this one is read */
        }
    } else {
        NO_UNROLL for (int slice = 0; slice < slices; slice++) {
            copy_elements(s, &a, slice * BLK_K, BLK_M);
            copy_elements(s + SLICE_A, &b, slice * BLK_K, BLK_N);
            BARRIER();
            MULTIPLY_SLICE(s, s + SLICE_A)
            BARRIER();
        }
    }

    const struct output c = OUTPUT(t.batch);

    store_matrix(&c, rC, m0 + m1, n0 + n1, t.m0, t.n0, lane);
}
