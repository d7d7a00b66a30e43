/* cl/conv/matrix.h - slices of a convolution for AMD's and Intel's matrix instructions: from device memory to
 * registers to local memory
 *
 * A slice is BLK_K elements of the sum, for BLK_M pixels (A) and BLK_N channels of the output (B).  A
 * work-item has the same 16-byte vector of each slice, of EACH_A pixels and EACH_B channels: so it has one
 * place in the sum, and of its elements all are of one tap.
 *
 *                BLK_K               work-items 0 to VECTORS - 1 have the vectors of row 0, the next ones
 *          +---+---+---+---+         those of row 1 ... and all together SHARE rows, EACH times
 *    SHARE | 0 | 1 | 2 | 3 |
 *          | 4 | 5 | 6 | 7 |         In backward data the contiguous elements of a filter are columns of B.
 *          +---+---+---+---+         There a work-item has, of its vector's 8 elements, 4 x 4 squares, which
 *    SHARE | 0 | 1 | 2 | 3 |         are transposed in registers.
 *          | 4 | 5 | 6 | 7 |
 *          +---+---+---+---+
 *
 * What lies in the padding, or past the end of the sum, is read where the tensor begins, and becomes zeros
 * on the way to local memory: loads are in no branch.  With TAIL, the channels that are summed do not fill
 * their last vector: what is behind them becomes zeros, too.
 *
 * Takes  DIRECTION 0 or 1; TAIL; gather.h, tile/matrix.h
 * Gives  ITEMS SLICE_A SLICE VECTOR_K EACH_A OWN_ROW() OWN_K; find_sum(); struct places, find_filters();
 *        struct pieces, load_slice(), store_slice()
 */
#define ITEMS    (BLK_M / WAVE_M * WAVES_N * LANES)
#define VECTOR_K 8                              /* elements */
#define VECTORS  (BLK_K / VECTOR_K)
#define SHARE    (ITEMS / VECTORS)
#define EACH_A   (BLK_M / SHARE)
#define EACH_B   (BLK_N / SHARE)
#define SLICE_A  (BLK_M * BLK_K)
#define SLICE    (SLICE_A + BLK_N * BLK_K)

#if SHARE * VECTORS != ITEMS || EACH_A * SHARE != BLK_M || EACH_B * SHARE != BLK_N || EACH_B % 2
#error "the work-items must share a slice evenly"
#endif

/* The i-th row of a work-item, and its first element of a slice. */
#define OWN_ROW(i) ((int)LOCAL_ID() / VECTORS + (i) * SHARE)
#define OWN_K      ((int)LOCAL_ID() % VECTORS * VECTOR_K)

/* Its squares: the first column of each, and the first of its vector's elements. */
#define SQUARE_N(i) (OWN_ROW(i) % (BLK_N / QUAD) * QUAD)
#define SQUARE_K(i) (OWN_ROW(i) / (BLK_N / QUAD) * QUAD)

#if DIRECTION == 1
#define PIECES_B (2 * EACH_B)
#define PIECE_B  ushort4
#else
#define PIECES_B EACH_B
#define PIECE_B  uint4
#endif

/* ---- where a work-item reads ---------------------------------------------------------------------- */

/* The sum of a phase.  In backward data three work-items find the taps, along one dimension each, and leave
 * them in s for all: scalar registers do not hold what all views say. */
DEVICE void find_sum(struct gather_sum *sum, LOCAL struct taps *s, const struct gather_grid *g, int channels,
                     VIEW eTaps, VIEW vStep, VIEW vPad, VIEW vMeet)
{
    struct taps d, h, w;

#if DIRECTION == 1
#define OWN_OF(d, h, w) (int)(i == 0 ? (d) : i == 1 ? (h) : (w))
    const int i = LOCAL_ID();

    if (i < 3) {
        conv_taps(&d, OWN_OF(eTaps.s4, eTaps.s5, eTaps.s6), OWN_OF(vStep.s1, vStep.s2, vStep.s3),
                  OWN_OF(vStep.s4, vStep.s5, vStep.s6), OWN_OF(vPad.s4, vPad.s5, vPad.s6),
                  OWN_OF(g->phase_d, g->phase_h, g->phase_w), OWN_OF(vMeet.s4, vMeet.s5, vMeet.s6),
                  OWN_OF(vMeet.s1, vMeet.s2, vMeet.s3),
                  (INT64)(i == 0 ? vPad.s1 : i == 1 ? vPad.s2 : vPad.s3));
        s[i] = d;
    }
    BARRIER();
    d = s[0];
    h = s[1];
    w = s[2];
#else
    (void)s;
    FIND_TAPS(&d, &h, &w, g->phase_d, g->phase_h, g->phase_w);
#endif
    gather_sum(sum, &d, &h, &w, channels);
}

/* What a work-item has of a slice: bit i of `inside` is set where a[i] is of a pixel that is no padding; of
 * its vector, the first `left` elements are of the sum. */
struct pieces { uint4 a[EACH_A]; PIECE_B b[PIECES_B]; int inside, left; };

/* Where it reads: offsets in the buffers.  first_a and first_b are those of the operands, which can be read
 * in any case; the others count from there. */
struct places { struct gather_row row[EACH_A]; INDEX first_a, first_b, b[PIECES_B]; };

/* The filters' elements of the tile's columns, from n0 on; past the last column, any. */
DEVICE void find_filters(struct places *p, int n0, int N, VIEW v)
{
#if DIRECTION == 1
    UNROLL for (int i = 0; i < PIECES_B; i++) {
        const int n = n0 + SQUARE_N(i / QUAD);

        p->b[i] = (n < N ? n : 0) + (SQUARE_K(i / QUAD) + i % QUAD) * (INDEX)v.s3;
    }
#else
    UNROLL for (int i = 0; i < PIECES_B; i++) {
        const int n = n0 + OWN_ROW(i);

        p->b[i] = (n < N ? n : N - 1) * (INDEX)v.s2;
    }
#endif
}

/* ---- from device memory --------------------------------------------------------------------------- */

#define VECTOR_AT(V, g, at) VLOAD_ALIGNED(V, (GLOBAL const char *)(g) + (BYTE_OFFSET)(at) * 2)

/* The slice of place k; channels: those that are summed. */
DEVICE void load_slice(struct pieces *r, GLOBAL const UINT16 *gX, GLOBAL const UINT16 *gW,
                       const struct places *p, const struct gather_k *k, const struct gather_sum *sum,
                       int channels, VIEW vX, VIEW vW, VIEW eIn)
{
    const int there = gather_is_there(k, sum);
    const INDEX in_filter = gather_filter(k, sum, vW);
    struct gather_step step;

    gather_step(&step, k, sum, vX);
    r->inside = 0;
    r->left = there ? channels - k->channel : 0;
    UNROLL for (int i = 0; i < EACH_A; i++) {
        const int inside = there & gather_is_inside(&p->row[i], &step, eIn);

        r->inside |= inside << i;
        r->a[i] = VECTOR_AT(uint4, gX, p->first_a + (inside ? p->row[i].at + step.at : 0));
    }
#if DIRECTION == 1
    UNROLL for (int i = 0; i < PIECES_B; i++) {
        const int is = SQUARE_K(i / QUAD) + i % QUAD < r->left;

        r->b[i] = VECTOR_AT(ushort4, gW, p->first_b + (is ? p->b[i] + in_filter : 0));
    }
#else
    UNROLL for (int i = 0; i < PIECES_B; i++)
        r->b[i] = VECTOR_AT(uint4, gW, p->first_b + (there ? p->b[i] + in_filter : 0));
#endif
}

/* ---- to local memory ------------------------------------------------------------------------------- */

/* Words of two elements: those among the first `left`, and zeros. */
#define FIRST_OF(word, at) ((word) & (left > (at) + 1 ? 0xffffffffu : left > (at) ? 0xffffu : 0u))

DEVICE uint4 first_of(uint4 v, int left)
{
    if (TAIL)
        return (uint4)(FIRST_OF(v.x, 0), FIRST_OF(v.y, 2), FIRST_OF(v.z, 4), FIRST_OF(v.w, 6));
    return left > 0 ? v : (uint4)(0);
}

DEVICE void store_quad(LOCAL UINT16 *s, int n, int k, ushort4 v)
{
    *(LOCAL ushort4 *)(s + matrix_offset(n, k, BLK_N)) = v;
}

DEVICE void store_slice(LOCAL UINT16 *s, const struct pieces *r)
{
    UNROLL for (int i = 0; i < EACH_A; i++)
        *(LOCAL uint4 *)(s + matrix_offset(OWN_ROW(i), OWN_K, BLK_M)) =
            first_of(r->a[i], r->inside >> i & 1 ? r->left : 0);
    s += SLICE_A;
#if DIRECTION == 1
    UNROLL for (int i = 0; i < PIECES_B; i += QUAD) {
        const int n = SQUARE_N(i / QUAD), k = SQUARE_K(i / QUAD);
        ushort4 v[QUAD];

        UNROLL for (int j = 0; j < QUAD; j++)
            v[j] = k + j < r->left ? r->b[i + j] : (ushort4)(0);
        store_quad(s, n,     OWN_K + k, (ushort4)(v[0].x, v[1].x, v[2].x, v[3].x));
        store_quad(s, n + 1, OWN_K + k, (ushort4)(v[0].y, v[1].y, v[2].y, v[3].y));
        store_quad(s, n + 2, OWN_K + k, (ushort4)(v[0].z, v[1].z, v[2].z, v[3].z));
        store_quad(s, n + 3, OWN_K + k, (ushort4)(v[0].w, v[1].w, v[2].w, v[3].w));
    }
#else
    UNROLL for (int i = 0; i < PIECES_B; i++)
        *(LOCAL uint4 *)(s + matrix_offset(OWN_ROW(i), OWN_K, BLK_N)) = first_of(r->b[i], r->left);
#endif
}
