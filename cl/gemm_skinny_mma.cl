/* gemm_skinny_mma.cl - C := act(alpha A B + beta C + bias) in f32, f16 and bf16, where A has few
 * rows, by the matrix instructions of NVIDIA's sm_80 and up
 *
 * As gemm_skinny.cl, but a warp multiplies 16 columns of B by 8 rows of A at a time.  The numbers
 * go from memory to the registers in which mma.sync wants them, with no local memory between:
 * any order of K will do, if it is the same for A and B, and any order of columns, if they are
 * stored accordingly.  So each lane reads 16 bytes (a piece), and what it has read is its share: a
 * quad, which is 4 numbers along K of one column.
 *
 *     ALONG_K 1 (16-bit types)                   ALONG_K 0
 *            k: 8 a lane, 32 a step                     n: 8 a lane, 64 a warp
 *         +---+---+---+---+                          +---+---+---+ ...
 *     n   | 0 | 1 | 2 | 3 |  column 0 of 16      k   | 0 | 4 | 8 |       four rows a lane, so
 *         | 4 | 5 | 6 | 7 |  column 1                | 0 | 4 | 8 |       16 rows a step
 *         | ...           |                          | 0 ...
 *         and once more, 8 columns below             | 1 | 5 | 9 |
 *
 * f32 is split into three numbers of bf16, which hold all its bits; of the nine products of parts
 * the six larger ones are added up, 16 numbers of K at a time, from zero.  That sum goes to a sum
 * in f32, for the matrix instruction itself rounds towards zero.  What is left out is below 2^-25
 * of each product: the error is no larger than that of a sum by fused multiply-adds.  (Ootomo and
 * Yokota, "Recovering single precision accuracy from Tensor Cores", 2022, with parts in f16.)  A sum
 * that is no finite number is made again, without parts: infinity has none.
 *
 * Learnt on an H100: a warp's steps had better lie side by side, DEPTH of them, so that it reads
 * whole lines of 128 bytes in one go (46.2 us for 16 x 14336 x 4096 in f16, else 49.7); a second
 * launch to add parts of K costs more than it gains until there is less than a work-group of 8
 * warps for each unit; reads of B past the first-level cache gain 2 % to 4 %.
 *
 * Parameters, from gemm.tune: ITEMS; TILES, of 16 columns a warp (along K); DEPTH_K or DEPTH_N, as
 * DEPTH, steps under way; FILL is the host's.  Of the variant: ALONG_K, and THR_M, rows of A for a
 * work-group.
 */
#define TOKENS (THR_M / 8)                      /* tiles of 8 rows of A */
#define WARPS  (ITEMS / 32)
#define PASS   (TOKENS < 2 ? TOKENS : 2)        /* tiles that local memory holds at a time */

#if TYPE == 0
#define BITS  UINT32                            /* of a number as it is read */
#define PIECE 4
#define PARTS 3
#else
#define BITS  UINT16
#define PIECE 8
#define PARTS 1
#endif

#if ALONG_K
#define STEP      (4 * PIECE)                   /* of K, for one warp */
#define READS     (2 * TILES)                   /* pieces of B */
#define QUADS     (PIECE / 4)                   /* in a piece */
#define FRAGMENTS TILES                         /* of 16 columns */
#define PAD       4                             /* sums of a warp then lie in different banks */
#else
#define STEP      16
#define READS     4
#define QUADS     1
#define FRAGMENTS (PIECE / 2)
#define PAD       1
#endif
#define RUN       (DEPTH * STEP)                /* of K, that a warp takes at a time */
#define WIDE_WARP (16 * FRAGMENTS)

/* ---- quads ------------------------------------------------------------------------ */

/* Two pairs along K, of each part: what a lane has of one column for a matrix instruction. */
struct quad { UINT32 part[PARTS][2]; };

#if TYPE == 0
/* x and y in three parts each; infinities, NaNs, and what rounds up to infinity, become NaN. */
DEVICE void split(struct quad *q, int pair, UINT32 x_bits, UINT32 y_bits)
{
    float x = BITS_FLOAT(x_bits), y = BITS_FLOAT(y_bits);

    UNROLL for (int p = 0; p < 3; p++) {
        const UINT32 u = bf16_pair_of(x, y);

        q->part[p][pair] = u;
        x = x - BITS_FLOAT(u << 16);
        y = y - BITS_FLOAT(u & 0xffff0000u);
    }
}

DEVICE struct quad quad_of(UINT32 k0, UINT32 k1, UINT32 k2, UINT32 k3)
{
    struct quad q;

    split(&q, 0, k0, k1);
    split(&q, 1, k2, k3);
    return q;
}

#define MULTIPLY(d, lower, upper, p, a, r) \
    MMA_16x8("m16n8k16.row.col.f32.bf16.bf16.f32", d, d + 2, (lower)->part[p], (upper)->part[p], (a)->part[r])

DEVICE void multiply(float *rC, const struct quad *lower, const struct quad *upper, const struct quad *a)
{
    float d[4] = { 0, 0, 0, 0 };

    MULTIPLY(d, lower, upper, 1, a, 1);         /* small ones first */
    MULTIPLY(d, lower, upper, 2, a, 0);
    MULTIPLY(d, lower, upper, 0, a, 2);
    MULTIPLY(d, lower, upper, 1, a, 0);
    MULTIPLY(d, lower, upper, 0, a, 1);
    MULTIPLY(d, lower, upper, 0, a, 0);
    UNROLL for (int e = 0; e < 4; e++)
        rC[e] = rC[e] + d[e];
}
#else
DEVICE struct quad quad_of(UINT32 k01, UINT32 k23)
{
    struct quad q;

    q.part[0][0] = k01;
    q.part[0][1] = k23;
    return q;
}

DEVICE void multiply(float *rC, const struct quad *lower, const struct quad *upper, const struct quad *a)
{
    MMA_F32(rC, rC + 2, lower->part[0], upper->part[0], a->part[0]);
}
#endif

/* ---- what a lane reads for one step --------------------------------------------------- */

/* Of A, as many numbers along K as of B: a piece, or 4 numbers. */
#if ALONG_K || TYPE == 0
#define PIECE_A uint4
#else
#define PIECE_A uint2
#endif

struct pieces { uint4 at[READS]; };

/* The operands as this lane sees them; past an edge it takes the first line again, and what comes
 * of that is stored nowhere.                                                                   */
struct share {
    GLOBAL const BITS *a, *b;
    INDEX a_at[TOKENS], b_at[READS];
    INDEX a_col, b_row;
};

#if ALONG_K
#define B_AT(j, k) (s->b + s->b_at[j] + (k))
#define B_K(j, k)  (k)
#else
#define B_AT(j, k) (s->b + s->b_at[0] + ((k) + j) * s->b_row)
#define B_K(j, k)  ((k) + j)
#endif

/* B is read once, and shall not drive A out of the cache. */
DEVICE struct pieces read_b(const struct share *s, int k)
{
    struct pieces r;

    UNROLL for (int j = 0; j < READS; j++)
        r.at[j] = read_once(B_AT(j, k));
    return r;
}

/* Zeros from `last` on. */
DEVICE struct pieces read_b_edge(const struct share *s, int k, int last)
{
    struct pieces r;

    UNROLL for (int j = 0; j < READS; j++) {
        r.at[j].x = r.at[j].y = r.at[j].z = r.at[j].w = 0;
        if (B_K(j, k) < last)
            r.at[j] = read_once(B_AT(j, k));
    }
    return r;
}

/* As many numbers of a row of A as fill 32 bits. */
DEVICE UINT32 read_word(const struct share *s, int i, int k, int last)
{
#if TYPE == 0
    return k < last ? s->a[s->a_at[i] + k * s->a_col] : 0;
#else
    const UINT32 low  = k     < last ? s->a[s->a_at[i] + k * s->a_col] : 0;
    const UINT32 high = k + 1 < last ? s->a[s->a_at[i] + (k + 1) * s->a_col] : 0;

    return low | high << 16;
#endif
}

/* whole: A is aligned, and there are pieces before `last`. */
DEVICE PIECE_A read_a(const struct share *s, int i, int k, int last, const int whole)
{
    enum { WORD = PIECE / 4 };                  /* numbers in 32 bits */
    PIECE_A r;

    if (whole)
        return *(GLOBAL const PIECE_A *)(s->a + s->a_at[i] + k);
    r.x = read_word(s, i, k, last);
    r.y = read_word(s, i, k + WORD, last);
#if ALONG_K || TYPE == 0
    r.z = read_word(s, i, k + 2 * WORD, last);
    r.w = read_word(s, i, k + 3 * WORD, last);
#endif
    return r;
}

/* Of a piece along K: its q-th quad. */
#if TYPE == 0
#define QUAD(u, q) quad_of((u).x, (u).y, (u).z, (u).w)
#elif ALONG_K
#define QUAD(u, q) ((q) ? quad_of((u).z, (u).w) : quad_of((u).x, (u).y))
#else
#define QUAD(u, q) quad_of((u).x, (u).y)
#endif

/* Of the j-th fragment: the quads of its lower and upper 8 columns. */
DEVICE void columns_of(struct quad *lower, struct quad *upper, const struct pieces *r, int j, int q)
{
#if ALONG_K
    *lower = QUAD(r->at[2 * j], q);
    *upper = QUAD(r->at[2 * j + 1], q);
#elif TYPE == 0
    *lower = j ? quad_of(r->at[0].z, r->at[1].z, r->at[2].z, r->at[3].z)
               : quad_of(r->at[0].x, r->at[1].x, r->at[2].x, r->at[3].x);
    *upper = j ? quad_of(r->at[0].w, r->at[1].w, r->at[2].w, r->at[3].w)
               : quad_of(r->at[0].y, r->at[1].y, r->at[2].y, r->at[3].y);
#else
    UINT32 u[4];

    UNROLL for (int i = 0; i < 4; i++)
        u[i] = j == 0 ? r->at[i].x : j == 1 ? r->at[i].y : j == 2 ? r->at[i].z : r->at[i].w;
    *lower = quad_of(lowers_of(u[0], u[1]), lowers_of(u[2], u[3]));
    *upper = quad_of(uppers_of(u[0], u[1]), uppers_of(u[2], u[3]));
#endif
}

/* One step: what was read of B, by A, which comes out of the cache. */
DEVICE void fold(float rC[FRAGMENTS][TOKENS][4], const struct pieces *b, const struct share *s, int k, int last,
                 const int whole)
{
    PIECE_A pieces[TOKENS];

    UNROLL for (int i = 0; i < TOKENS; i++)
        pieces[i] = read_a(s, i, k, last, whole);
    UNROLL for (int q = 0; q < QUADS; q++) {
        struct quad a[TOKENS];

        UNROLL for (int i = 0; i < TOKENS; i++)
            a[i] = QUAD(pieces[i], q);
        UNROLL for (int j = 0; j < FRAGMENTS; j++) {
            struct quad lower, upper;

            columns_of(&lower, &upper, b, j, q);
            UNROLL for (int i = 0; i < TOKENS; i++)
                multiply(rC[j][i], &lower, &upper, &a[i]);
        }
    }
}

#if TYPE == 0
/* What place p has of K, from the numbers as they are. */
DEVICE float plain_sum(GLOBAL const T *gA, INDEX a, INDEX a_col, GLOBAL const T *gB, INDEX b, INDEX b_row,
                       int k, int stride, int last)
{
    float sum = 0;

    for (; k < last; k += stride)
        for (int i = 0; i < RUN && k + i < last; i++)
            sum = FMA(LOAD(gA, a + (k + i) * a_col), LOAD(gB, b + (k + i) * b_row), sum);
    return sum;
}
#endif

/* ---- the kernel ------------------------------------------------------------------------ */

/* parts > 1: leaves sums in gP, for gemm_sum, each part being `span` of K. */
KERNEL(ITEMS) void
gemm_skinny_mma(int M, int N, int K, int across, int aligned, int span, int parts, int batches, VIEW eC, R alpha,
                GLOBAL const T *RESTRICT gA, VIEW vA,
                GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL R *RESTRICT gP, R beta,
                GLOBAL T *RESTRICT gC, VIEW vC,
                int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LOCAL_ARRAY(float, sums, 8 * PASS * WARPS * (WIDE_WARP + PAD));

    const int apart = WARPS / across, wide = apart * WIDE_WARP;     /* the work-group's columns */
    const int tiles_m = (M + THR_M - 1) / THR_M, tiles_n = (N + wide - 1) / wide;
    const int tile_n = GROUP_ID(0) / tiles_m, part_at = tile_n / tiles_n, part = part_at / batches;
    const int m0 = (GROUP_ID(0) - tile_n * tiles_m) * THR_M, n0 = (tile_n - part_at * tiles_n) * wide;
    const int batch = part_at - part * batches;
    const int first = part * span, last = K - first < span ? K : first + span;
    const int warp = LOCAL_ID() / 32, lane = LOCAL_ID() % 32, high = lane / 4, low = lane % 4;
    const int place = warp / apart, n1 = warp % apart * WIDE_WARP;
    const int stride = across * RUN, mine = low * (STEP / 4);
    struct share s = { (GLOBAL const BITS *)(gA + batch_offset(vA, eC, batch)),
                       (GLOBAL const BITS *)(gB + batch_offset(vB, eC, batch)) };
    float rC[FRAGMENTS][TOKENS][4];
    int k = first + place * RUN;                /* the same in all lanes, for they multiply together */

    s.a_col = (INDEX)vA.s6;
    s.b_row = (INDEX)vB.s5;
    UNROLL for (int i = 0; i < TOKENS; i++)
        s.a_at[i] = m0 + 8 * i + high < M ? (m0 + 8 * i + high) * (INDEX)vA.s5 : 0;
#if ALONG_K
    UNROLL for (int j = 0; j < READS; j++)
        s.b_at[j] = n0 + n1 + 8 * j + high < N ? (n0 + n1 + 8 * j + high) * (INDEX)vB.s6 : 0;
#else
    s.b_at[0] = n0 + n1 + PIECE * high < N ? n0 + n1 + PIECE * high : 0;
#endif
    UNROLL for (int j = 0; j < FRAGMENTS; j++)
    UNROLL for (int i = 0; i < TOKENS; i++)
    UNROLL for (int e = 0; e < 4; e++)
        rC[j][i][e] = 0;

    if (aligned && last - k >= RUN) {
        struct pieces next[DEPTH];              /* under way while those before are multiplied */

        UNROLL for (int d = 0; d < DEPTH; d++)
            next[d] = read_b(&s, k + mine + d * STEP);
        for (; last - k - stride >= RUN; k += stride) {
            struct pieces now[DEPTH];

            UNROLL for (int d = 0; d < DEPTH; d++)
                now[d] = next[d];
            UNROLL for (int d = 0; d < DEPTH; d++)
                next[d] = read_b(&s, k + stride + mine + d * STEP);
            UNROLL for (int d = 0; d < DEPTH; d++)
                fold(rC, &now[d], &s, k + mine + d * STEP, last, 1);
        }
        UNROLL for (int d = 0; d < DEPTH; d++)
            fold(rC, &next[d], &s, k + mine + d * STEP, last, 1);
        k += stride;
    }
    for (; k < last; k += stride)
        for (int d = 0; d < DEPTH; d++) {
            const struct pieces now = read_b_edge(&s, k + mine + d * STEP, last);

            fold(rC, &now, &s, k + mine + d * STEP, last, 0);
        }

    const struct output out = OUTPUT(n0, wide);
    const int pitch = wide + PAD, line = 8 * PASS * pitch;

    UNROLL for (int i0 = 0; i0 < TOKENS; i0 += PASS) {
        BARRIER();
        UNROLL for (int j = 0; j < FRAGMENTS; j++)
        UNROLL for (int i = 0; i < PASS; i++)
        UNROLL for (int e = 0; e < 4; e++) {
#if ALONG_K
            const int n = n1 + 16 * j + 8 * (e / 2) + high;
#else
            const int n = n1 + PIECE * high + 2 * j + e / 2;
#endif
            sums[place * line + (8 * i + 2 * low + e % 2) * pitch + n] = rC[j][i0 + i][e];
        }
        BARRIER();
#if TYPE == 0
        for (int i = LOCAL_ID(); i < across * 8 * PASS * wide; i += ITEMS) {
            const int p = i / (8 * PASS * wide), row = i / wide % (8 * PASS), column = i % wide;
            const int m = m0 + 8 * i0 + row, n = n0 + column;
            LOCAL float *sum = sums + p * line + row * pitch + column;

            if (!(ABS(*sum) < BITS_FLOAT(0x7f800000u)) && m < M && n < N)
                *sum = plain_sum(gA, batch_offset(vA, eC, batch) + m * (INDEX)vA.s5, s.a_col,
                                 gB, batch_offset(vB, eC, batch) + n * (INDEX)vB.s6, s.b_row,
                                 first + p * RUN, stride, last);
        }
        BARRIER();
#endif
        add_places(&out, sums, across, line, pitch, 8 * PASS, m0 + 8 * i0);
    }
}
