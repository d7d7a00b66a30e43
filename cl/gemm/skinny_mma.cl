/* skinny_mma.cl - C := act(alpha A B + beta C + bias) in f32, f16 and bf16, where A has few
 * rows, by the matrix instructions of NVIDIA's sm_80 and up
 *
 * As gemm_skinny.cl, but a warp multiplies 16 columns of B by 8 rows of A at a time.  Any order of K
 * will do, if it is the same for A and B, and any order of columns, if they are stored accordingly.
 * So each lane copies 16 bytes (a piece) at a time, and what it has copied is its own share: a quad,
 * which is 4 numbers along K of one column, is what mma.sync wants in its registers.
 *
 *     ALONG_K 1 (16-bit types)                   ALONG_K 0
 *            k: 8 a lane, 32 a step                     n: 8 a lane, 64 a warp
 *         +---+---+---+---+                          +---+---+---+ ...
 *     n   | 0 | 1 | 2 | 3 |  column 0 of 16      k   | 0 | 4 | 8 |       four rows a lane, so
 *         | 4 | 5 | 6 | 7 |  column 1                | 0 | 4 | 8 |       16 rows a step
 *         | ...           |                          | 0 ...
 *         and once more, 8 columns below             | 1 | 5 | 9 |
 *
 * Copies go to local memory without waiting (cp.async), as many steps as fit; a warp reads nothing
 * but its own, so there is no barrier.  A is copied likewise: as pieces, or where its rows do not
 * run along memory, number by number.
 *
 * f32 is split into three numbers of bf16, which hold all its bits; of the nine products of parts
 * the six larger ones are added up, 16 numbers of K at a time, from zero.  That sum goes to a sum
 * in f32, for the matrix instruction itself rounds towards zero.  What is left out is below 2^-25
 * of each product: the error is no larger than that of a sum by fused multiply-adds.  (Ootomo and
 * Yokota, "Recovering single precision accuracy from Tensor Cores", 2022, with parts in f16.)  A sum
 * that is no finite number is made again, without parts: infinity has none.
 *
 * Learnt on an H100: reads ahead into registers are worth little, for the assembler moves them down to
 * where they are used; copies to local memory stay where they are written, but cost twice as much where
 * eight lanes copy out of four lines of 128 bytes, not one or two.  A warp's steps had better lie side by
 * side, DEPTH of them, so that it reads whole lines.  Where K is in parts, items of two parts meet by an
 * atomic exchange (meet_in_slot): a second launch took 4 us, a last work-group that adds all parts 1.5.
 *
 * Parameters, from gemm.tune: ITEMS; TILES_16 or TILES_64, as TILES, of 16 columns a warp (along K);
 * ROOM, KiB of local memory; DEPTH_K or DEPTH_N, as DEPTH, steps side by side; FILL and SPLIT are
 * the host's.  Of the variant: ALONG_K, and THR_M, rows of A for a work-group.
 */
#define TOKENS (THR_M / 8)                      /* tiles of 8 rows of A */
#define WARPS  (ITEMS / 32)

#if TYPE == 0
#define BITS  UINT32                            /* of a number as it is read */
#define BYTES 4
#define PIECE 4
#define PARTS 3
#else
#define BITS  UINT16
#define BYTES 2
#define PIECE 8
#define PARTS 1
#endif

#if ALONG_K
#define STEP      (4 * PIECE)                   /* of K, for one warp */
#define PIECES_B  (2 * TILES)                   /* of each lane */
#define QUADS     (PIECE / 4)                   /* in a piece */
#define FRAGMENTS TILES                         /* of 16 columns */
#define PAD       4                             /* sums of a warp then lie in different banks */
#else
#define STEP      16
#define PIECES_B  4
#define QUADS     1
#define FRAGMENTS (PIECE / 2)
#define PAD       1
#endif
#define BYTES_A   (4 * QUADS * BYTES)           /* of A, as many numbers along K as of B */
#define RUN       (DEPTH * STEP)                /* of K, that a warp takes at a time */
#define WIDE_WARP (16 * FRAGMENTS)

#define STAGE     (PIECES_B + TOKENS)           /* pieces of a lane for one step */
#define STAGE_BYTES (16 * STAGE * ITEMS)
#define FITTING   (1024 * ROOM / STAGE_BYTES)
#define STAGES    (FITTING < 2 ? 2 : FITTING > 8 ? 8 : FITTING)
#define COPIES    (STAGES * STAGE_BYTES)
#define SUMS      (4 * THR_M * WARPS * (WIDE_WARP + PAD))
#define LOCAL_BYTES (COPIES > SUMS ? COPIES : SUMS)

LARGE_LOCAL(gemm_skinny_mma, LOCAL_BYTES)

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

#define MULTIPLY(p, r)                                                      \
    UNROLL for (int i = 0; i < TOKENS; i++)                                 \
        MMA_16x8("m16n8k16.row.col.f32.bf16.bf16.f32", d[i], d[i] + 2,      \
                 lower->part[p], upper->part[p], a[i].part[r])

/* One product of all rows after the other: an instruction does not wait for the one before it. */
DEVICE void multiply(float rC[TOKENS][4], const struct quad *lower, const struct quad *upper,
                     const struct quad *a)
{
    float d[TOKENS][4];

    UNROLL for (int i = 0; i < TOKENS; i++)
    UNROLL for (int e = 0; e < 4; e++)
        d[i][e] = 0;
    MULTIPLY(1, 1);                             /* small ones first */
    MULTIPLY(2, 0);
    MULTIPLY(0, 2);
    MULTIPLY(1, 0);
    MULTIPLY(0, 1);
    MULTIPLY(0, 0);
    UNROLL for (int i = 0; i < TOKENS; i++)
    UNROLL for (int e = 0; e < 4; e++)
        rC[i][e] = rC[i][e] + d[i][e];
}
#else
DEVICE struct quad quad_of(UINT32 k01, UINT32 k23)
{
    struct quad q;

    q.part[0][0] = k01;
    q.part[0][1] = k23;
    return q;
}

DEVICE void multiply(float rC[TOKENS][4], const struct quad *lower, const struct quad *upper,
                     const struct quad *a)
{
    UNROLL for (int i = 0; i < TOKENS; i++)
        MMA_F32(rC[i], rC[i] + 2, lower->part[0], upper->part[0], a[i].part[0]);
}
#endif

/* ---- one step: copies of a lane's share to local memory, and products out of it ---------------- */

/* The operands as this lane sees them; past an edge it takes the first line again, and what comes
 * of that is stored nowhere.                                                                   */
struct share {
    GLOBAL const BYTE *a, *b;                   /* where what is copied next begins along K */
    OFFSET a_at[TOKENS], b_at[PIECES_B];        /* this lane's pieces */
    OFFSET a_step, b_step;                      /* from number to number along K */
    int k, last;                                /* what is copied next, and where K ends */
    int k_a, k_b;                               /* from k on to this lane's pieces */
    int aligned;                                /* A: lines begin at whole pieces */
    LOCAL uint4 *warp;                          /* its first piece of each 32; they are ITEMS apart */
};

/* As many numbers of a row of A as fill 32 bits, the w-th such; zeros from the end on. */
DEVICE void copy_word(const struct share *s, LOCAL UINT32 *to, int i, int w)
{
#if TYPE == 0
    COPY_ASYNC_PART(4, LOCAL_ADDRESS(to + w), s->a + w * s->a_step + s->a_at[i],
                    s->k + s->k_a + w < s->last ? 4 : 0);
#else
    GLOBAL const BYTE *low = s->a + 2 * w * s->a_step + s->a_at[i], *high = low + s->a_step;
    const int k = s->k + s->k_a + 2 * w;

    to[w] = (k     < s->last ? (UINT32)*(GLOBAL const BITS *)low : 0)
          | (k + 1 < s->last ? (UINT32)*(GLOBAL const BITS *)high : 0) << 16;
#endif
}

/* Where the j-th piece of B goes that a lane copies.  Along K, it is the lane's own.  Across K, eight
 * lanes copy a row of 128 bytes, and so that they find other banks when each then reads of four rows,
 * pieces change places.                                                                        */
#if ALONG_K
#define SLOT_B(j, lane) (lane)
#define K_OF_PIECE(j)   0
#else
#define SLOT_B(j, lane) ((lane) ^ 2 * (j))
#define K_OF_PIECE(j)   (4 * (j))
#endif

/* This lane's pieces, zeros from the end on.  B is read once, and shall not drive A out of the cache. */
DEVICE void copy_step(const struct share *s, int stage, int lane)
{
    LOCAL uint4 *to = s->warp + stage * STAGE * ITEMS, *to_a = to + PIECES_B * ITEMS + lane;
    const int left = s->last - s->k - s->k_a;
    const int there = left > 4 * QUADS ? BYTES_A : left > 0 ? left * BYTES : 0;

    UNROLL for (int j = 0; j < PIECES_B; j++)
        COPY_ASYNC16_ONCE(LOCAL_ADDRESS(to + j * ITEMS + SLOT_B(j, lane)), s->b + s->b_at[j],
                          s->k + s->k_b + K_OF_PIECE(j) < s->last ? 16 : 0);
    if (s->aligned)
        UNROLL for (int i = 0; i < TOKENS; i++)
            COPY_ASYNC_PART(BYTES_A, LOCAL_ADDRESS(to_a + i * ITEMS), s->a + s->a_at[i], there);
    else
        UNROLL for (int i = 0; i < TOKENS; i++)
            UNROLL for (int w = 0; w < BYTES_A / 4; w++)
                copy_word(s, (LOCAL UINT32 *)(to_a + i * ITEMS), i, w);
}

DEVICE void move_on(struct share *s, int k)
{
    s->k += k;
    s->a += (INT64)k * s->a_step;
    s->b += (INT64)k * s->b_step;
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
DEVICE void columns_of(struct quad *lower, struct quad *upper, const uint4 *r, int j, int q)
{
#if ALONG_K
    *lower = QUAD(r[2 * j], q);
    *upper = QUAD(r[2 * j + 1], q);
#elif TYPE == 0
    *lower = j ? quad_of(r[0].z, r[1].z, r[2].z, r[3].z) : quad_of(r[0].x, r[1].x, r[2].x, r[3].x);
    *upper = j ? quad_of(r[0].w, r[1].w, r[2].w, r[3].w) : quad_of(r[0].y, r[1].y, r[2].y, r[3].y);
#else
    UINT32 u[4];

    UNROLL for (int i = 0; i < 4; i++)
        u[i] = j == 0 ? r[i].x : j == 1 ? r[i].y : j == 2 ? r[i].z : r[i].w;
    *lower = quad_of(lowers_of(u[0], u[1]), lowers_of(u[2], u[3]));
    *upper = quad_of(uppers_of(u[0], u[1]), uppers_of(u[2], u[3]));
#endif
}

DEVICE void fold(float rC[FRAGMENTS][TOKENS][4], const struct share *s, int stage, int lane)
{
    LOCAL const uint4 *from = s->warp + stage * STAGE * ITEMS;
    uint4 b[PIECES_B], pieces[TOKENS];

    UNROLL for (int j = 0; j < PIECES_B; j++)
#if ALONG_K
        b[j] = from[j * ITEMS + lane];
#else
        b[j] = from[lane % 4 * ITEMS + SLOT_B(lane % 4, 8 * j + lane / 4)];
#endif
    UNROLL for (int i = 0; i < TOKENS; i++)
        pieces[i] = from[(PIECES_B + i) * ITEMS + lane];
    UNROLL for (int q = 0; q < QUADS; q++) {
        struct quad a[TOKENS];

        UNROLL for (int i = 0; i < TOKENS; i++)
            a[i] = QUAD(pieces[i], q);
        UNROLL for (int j = 0; j < FRAGMENTS; j++) {
            struct quad lower, upper;

            columns_of(&lower, &upper, b, j, q);
            multiply(rC[j], &lower, &upper, a);
        }
    }
}

/* ---- sums that are no finite numbers --------------------------------------------------------- */

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

/* The row and column, among the work-group's, of the v-th of a lane's sums; n1: where its warp's begin. */
#define SUM_ROW(v, low)          (8 * ((v) / 4 % TOKENS) + 2 * (low) + (v) % 2)
#if ALONG_K
#define SUM_COLUMN(v, n1, high)  ((n1) + 16 * ((v) / 4 / TOKENS) + 8 * ((v) % 4 / 2) + (high))
#else
#define SUM_COLUMN(v, n1, high)  ((n1) + PIECE * (high) + 2 * ((v) / 4 / TOKENS) + (v) % 4 / 2)
#endif

/* Each of `parts` is `span` of K; gSlots: of each pair of sums of a tile, one less than parts, and empty. */
KERNEL(ITEMS) void
gemm_skinny_mma(int M, int N, int K, int across, int wide, int aligned, int span, int parts, int batches,
                VIEW eC, R alpha,
                GLOBAL const T *RESTRICT gA, VIEW vA,
                GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL UINT64 *gSlots, R beta,
                GLOBAL T *RESTRICT gC, VIEW vC,
                int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);

    const int apart = wide / WIDE_WARP;         /* a power of two */
    struct task t;

    find_task(&t, M, N, K, across, wide, WARPS * WIDE_WARP, span, batches);

    const int warp = LOCAL_ID() / 32, lane = LOCAL_ID() % 32, high = lane / 4, low = lane % 4;
    const int place = warp * across / WARPS, n1 = (warp & (apart - 1)) * WIDE_WARP;
    const int stride = across * RUN, k0 = t.first + place * RUN;
    const INDEX a0 = start_of(vA, eC, t.batch), b0 = start_of(vB, eC, t.batch);
    struct share s;
    float rC[FRAGMENTS][TOKENS][4];
    int copied = 0;

    s.a = (GLOBAL const BYTE *)(gA + a0);
    s.b = (GLOBAL const BYTE *)(gB + b0);
    s.a_step = (OFFSET)(aligned ? 1 : vA.s6) * BYTES;
    s.b_step = (OFFSET)(ALONG_K ? 1 : vB.s5) * BYTES;
    s.k = 0;
    s.last = t.last;
    s.k_a = low * (STEP / 4);
    s.k_b = ALONG_K ? s.k_a : lane / 8;
    s.aligned = aligned;
    s.warp = (LOCAL uint4 *)room + warp * 32;
    UNROLL for (int i = 0; i < TOKENS; i++) {
        const int m = t.m0 + 8 * i + high;

        s.a_at[i] = (m < M ? m * (OFFSET)vA.s5 * BYTES : 0) + s.k_a * s.a_step;
    }
    UNROLL for (int j = 0; j < PIECES_B; j++) {
        const int n = t.n0 + n1 + (ALONG_K ? 8 * j + high : PIECE * (lane % 8)), k = s.k_b + K_OF_PIECE(j);

        s.b_at[j] = (n < N ? n * (ALONG_K ? (OFFSET)vB.s6 : 1) * BYTES : 0) + k * s.b_step;
    }
    move_on(&s, k0);
    UNROLL for (int j = 0; j < FRAGMENTS; j++)
    UNROLL for (int i = 0; i < TOKENS; i++)
    UNROLL for (int e = 0; e < 4; e++)
        rC[j][i][e] = 0;

    /* What a warp copies it alone reads, so that no barrier is needed.  Steps are the same in all its lanes,
     * for they multiply together.  STEP_AFTER: from the number-th to the one behind it.               */
#define STEP_AFTER(number) (((number) + 1) % DEPTH ? STEP : stride - (DEPTH - 1) * STEP)
#define COPY_NEXT(stage)                                            \
    if (s.k < t.last) {                                             \
        copy_step(&s, stage, lane);                                 \
        move_on(&s, STEP_AFTER(copied));                            \
        copied++;                                                   \
    }                                                               \
    copies_commit()

    NO_UNROLL for (int i = 0; i < STAGES - 1; i++) {
        COPY_NEXT(i);
    }
    for (int step = 0, k = k0, stage = 0; k < t.last; step++) {
        const int before = stage ? stage - 1 : STAGES - 1;

        COPIES_WAIT(STAGES - 2);
        warp_meet();
        COPY_NEXT(before);
        fold(rC, &s, stage, lane);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        k += STEP_AFTER(step);
    }
    COPIES_WAIT(0);

    const int pitch = t.wide + PAD, line = THR_M * pitch;
    LOCAL float *sums = (LOCAL float *)room, *mine = sums + place * line;
#if TYPE == 0
    float odd = 0;
#endif

    BARRIER();                                  /* all have read what was copied */
    UNROLL for (int j = 0; j < FRAGMENTS; j++)
    UNROLL for (int i = 0; i < TOKENS; i++)
    UNROLL for (int e = 0; e < 4; e++) {
        const int v = (j * TOKENS + i) * 4 + e;

        mine[SUM_ROW(v, low) * pitch + SUM_COLUMN(v, n1, high)] = rC[j][i][e];
#if TYPE == 0
        odd = FMA(rC[j][i][e], 0.0f, odd);      /* NaN, if one is no finite number */
#endif
    }
#if TYPE == 0
    if (odd != odd)
        NO_UNROLL for (int v = 0; v < FRAGMENTS * TOKENS * 4; v++) {
            const int row = SUM_ROW(v, low), column = SUM_COLUMN(v, n1, high);
            const int m = t.m0 + row, n = t.n0 + column;
            LOCAL float *sum = mine + row * pitch + column;

            if (!(ABS(*sum) < BITS_FLOAT(0x7f800000u)) && m < M && n < N)
                *sum = plain_sum(gA, a0 + m * (INDEX)vA.s5, (INDEX)vA.s6,
                                 gB, b0 + n * (INDEX)vB.s6, (INDEX)vB.s5, k0, stride, t.last);
        }
#endif
    BARRIER();

    const int pairs = THR_M * t.wide / 2;
    GLOBAL UINT64 *const slots = gSlots + GROUP_ID(0) * (parts - 1) * pairs;

    NO_UNROLL for (int i = LOCAL_ID(); i < pairs; i += ITEMS) {
        const int row = row_of(&t, 2 * i), column = 2 * i - row * t.wide, m = t.m0 + row, n = t.n0 + column;
        LOCAL const float *from = sums + row * pitch + column;
        R sum[4] = { ZERO, ZERO, ZERO, ZERO };

        for (int p = 0; p < across; p++) {
            sum[0] = sum[0] + from[p * line];
            sum[1] = sum[1] + from[p * line + 1];
        }
        if (m < M && n < N && meet_in_slots(slots + i, pairs, GROUP_ID(1), parts, sum, sum + 1))
            store_neighbours(sum, N - n < 2 ? 1 : 2, t.batch == 0, t.batch, m, n, eC, alpha, beta, gC, vC,
                             has_bias, gBias, vBias, act);
    }
}
