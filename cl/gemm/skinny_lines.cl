/* skinny_lines.cl - C := act(alpha A B + beta C + bias) in f16 and bf16, where A has few rows and
 * lines of A and B run along K, by the matrix instructions of NVIDIA's sm_80 and up
 *
 * The decode step of a language model: B is large, and what counts is that nothing stands between the
 * launch and the reads of it.  A work-group has 8 GROUPS columns and a part of K, of which its warps take
 * lines of 128 bytes in turns:
 *
 *            k: 64 a line                          a warp's stage in local memory
 *         +-------------+-------------+            +---------------+
 *     n   | warp 0      | warp 1      | ...        | THR_M lines   |  of A
 *         |             |             |            +---------------+
 *         +-------------+-------------+            | 8 GROUPS      |  of B; the i-th line has its pieces of
 *                                                  |         lines |  16 bytes in places p ^ i % 8, so that
 *                                                  +---------------+  eight lines' p-th lie in all banks
 *
 * Each warp copies its own lines without waiting (cp.async), STAGES of them ahead, and multiplies them; no
 * barrier is needed before the sums of all warps meet in local memory, where they are added in order.  Where
 * K is in parts, two items with the same sums of two parts meet by one atomic exchange: the first leaves
 * its sums and is done, the second finds them.
 *
 * Learnt on an H100: a kernel that does nothing takes 1.7 us in a row of such, one that only reads 8 MB 3.2;
 * all else is what instructions cost once.  gemm_skinny_mma took 7.3 for 16 x 1024 x 4096: 0.7 to find its
 * tile by divisions, 0.8 to issue copies, which cost a cycle for each line of 128 bytes that a warp touches
 * (so eight lanes share one), 2.2 for parts of K, most of it a fence and a counter.  Where all work-groups
 * read one and the same row of A, 4096 x 4096 took 12 us, now 7.6.
 *
 * Parameters, from gemm.tune: ITEMS; GROUPS; ROOM, KiB of local memory; FILL and SPLIT are the host's.  Of
 * the variant: THR_M, rows of A for a work-group.
 */
#define WARPS   (ITEMS / 32)
#define COLUMNS (8 * GROUPS)
#define RUN     64                              /* of K, in a line */
#define PIECE   8                               /* numbers in 16 bytes */
#define LINES   (THR_M + COLUMNS)
#define COPIED  (LINES / 4)                     /* lines that eight lanes copy */
#define BLOCKS  ((THR_M + 15) / 16)             /* of 16 rows of A */

#define STAGE_BYTES (128 * LINES)               /* of a warp */
#define FITTING     (1024 * ROOM / (STAGE_BYTES * WARPS))
#define STAGES      (FITTING < 2 ? 2 : FITTING > 8 ? 8 : FITTING)
#define WARP_BYTES  (STAGES * STAGE_BYTES)
#define LOCAL_BYTES (WARP_BYTES * WARPS)

/* Sums of a warp, in place of its copies: eight rows' pairs then lie in different banks. */
#define PITCH ((COLUMNS + 31) / 32 * 32 + 8)
#if 4 * THR_M * PITCH > STAGES * STAGE_BYTES
#error "a warp's sums need more room than its copies"
#endif

LARGE_LOCAL(gemm_skinny_lines, LOCAL_BYTES)

/* ---- a line of each row and column: copies, and products ---------------------------------------- */

/* The operands as this lane sees them.  Past an edge of B it takes the first line again, and what comes of
 * that is stored nowhere; of A none, for all work-groups would want that line at the same time.           */
struct share {
    GLOBAL const BYTE *a, *b;                   /* this lane's pieces of what is copied next, of the first line */
    OFFSET at[COPIED];                          /* its lines: of A, then of B */
    UINT32 rows;                                /* bit j: the j-th is there, of A */
    int k, last;                                /* this lane's piece of K, and where K ends */
    UINT32 to[2];                               /* places of its pieces in local memory, of even and odd j */
};

DEVICE void copy_run(struct share *s, int stage)
{
    const int bytes = s->k < s->last ? 16 : 0;

    UNROLL for (int j = 0; j < COPIED; j++) {
        const UINT32 to = s->to[j % 2] + stage * STAGE_BYTES + j * 512;

        if (4 * j < THR_M) {
            COPY_ASYNC16_PART(to, s->a + s->at[j], s->rows >> j & 1 ? bytes : 0);
        } else {
            COPY_ASYNC16_ONCE(to, s->b + s->at[j], bytes);
        }
    }
    s->k += WARPS * RUN;
    s->a += 2 * WARPS * RUN;
    s->b += 2 * WARPS * RUN;
}

/* from: the warp's stage.  a_at, b_at: where this lane's lines of tiles of 8 x 8 lie, by steps of 16, of 32 of K. */
DEVICE void multiply(float rC[BLOCKS][GROUPS][4], UINT32 from, const UINT32 a_at[4], const UINT32 b_at[2])
{
    UNROLL for (int h = 0; h < 2; h++) {
        UINT32 low[2][BLOCKS][2], high[2][BLOCKS][2], b[GROUPS][4];

        UNROLL for (int q = 0; q < 2; q++)
        UNROLL for (int i = 0; i < BLOCKS; i++)
            LOAD_TILES("", low[q][i][0], high[q][i][0], low[q][i][1], high[q][i][1],
                       from + a_at[2 * h + q] + i * 2048);
        UNROLL for (int j = 0; j < GROUPS; j++)
            LOAD_TILES("", b[j][0], b[j][1], b[j][2], b[j][3], from + b_at[h] + j * 1024);
        UNROLL for (int q = 0; q < 2; q++)
        UNROLL for (int j = 0; j < GROUPS; j++)
        UNROLL for (int i = 0; i < BLOCKS; i++)
            MMA_F32(rC[i][j], rC[i][j] + 2, low[q][i], high[q][i], b[j] + 2 * q);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------ */

#define PAIRS (COLUMNS / 2)                     /* of a row's sums */

/* Each of `parts` is `span` of K; gSlots: of each pair of sums of a tile, one less than parts, and empty. */
KERNEL(ITEMS) void
gemm_skinny_lines(int M, int N, int K, int span, int parts, int batches, VIEW eC, R alpha,
                  GLOBAL const T *RESTRICT gA, VIEW vA,
                  GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL UINT64 *gSlots, R beta,
                  GLOBAL T *RESTRICT gC, VIEW vC,
                  int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);

    const int warp = LOCAL_ID() / 32, lane = LOCAL_ID() % 32, line = lane / 8, piece = lane % 8;
    const UINT32 mine = LOCAL_ADDRESS(room) + warp * WARP_BYTES;
    struct task t;

    find_task(&t, M, N, K, 1, COLUMNS, COLUMNS, span, batches);

    struct share s;
    const int k0 = t.first + warp * RUN;

    s.k = k0 + piece * PIECE;
    s.last = t.last;
    s.a = (GLOBAL const BYTE *)(gA + start_of(vA, eC, t.batch) + s.k);
    s.b = (GLOBAL const BYTE *)(gB + start_of(vB, eC, t.batch) + s.k);
    s.to[0] = mine + line * 128 + (piece ^ line) * 16;
    s.to[1] = mine + line * 128 + (piece ^ line ^ 4) * 16;
    s.rows = 0;
    UNROLL for (int j = 0; j < COPIED; j++) {
        const int m = t.m0 + 4 * j + line, n = t.n0 + 4 * j - THR_M + line;

        if (4 * j < THR_M) {
            s.at[j] = m < M ? m * (OFFSET)vA.s5 * 2 : 0;
            s.rows |= m < M ? (UINT32)1 << j : 0;
        } else
            s.at[j] = n < N ? n * (OFFSET)vB.s6 * 2 : 0;
    }
    UNROLL for (int i = 0; i < STAGES; i++) {
        if (k0 + i * WARPS * RUN < t.last)
            copy_run(&s, i);
        copies_commit();
    }

    UINT32 a_at[4], b_at[2];
    float rC[BLOCKS][GROUPS][4];

    UNROLL for (int q = 0; q < 4; q++)
        a_at[q] = mine + lane % 16 % THR_M * 128 + ((2 * q + lane / 16) ^ piece) * 16;
    UNROLL for (int h = 0; h < 2; h++)
        b_at[h] = mine + (THR_M + piece) * 128 + ((4 * h + line) ^ piece) * 16;
    UNROLL for (int i = 0; i < BLOCKS; i++)
    UNROLL for (int j = 0; j < GROUPS; j++)
    UNROLL for (int e = 0; e < 4; e++)
        rC[i][j][e] = 0;

    /* What a warp copies it alone reads, so that no barrier is needed. */
    for (int k = k0, stage = 0; k < t.last; k += WARPS * RUN) {
        COPIES_WAIT(STAGES - 1);
        warp_meet();
        multiply(rC, stage * STAGE_BYTES, a_at, b_at);
        warp_meet();
        if (k + STAGES * WARPS * RUN < t.last)
            copy_run(&s, stage);
        copies_commit();
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    COPIES_WAIT(0);
    warp_meet();

    LOCAL float *const sums = (LOCAL float *)room, *const own = sums + warp * (WARP_BYTES / 4);

    UNROLL for (int i = 0; i < BLOCKS; i++)
    UNROLL for (int j = 0; j < GROUPS; j++)
    UNROLL for (int e = 0; e < 4; e++)
        if (16 * i + 8 * (e / 2) < THR_M)
            own[(16 * i + 8 * (e / 2) + lane / 4) * PITCH + 8 * j + lane % 4 * 2 + e % 2] = rC[i][j][e];
    BARRIER();

    GLOBAL UINT64 *const slots = gSlots + GROUP_ID(0) * (parts - 1) * (THR_M * PAIRS);

    NO_UNROLL for (int i = LOCAL_ID(); i < THR_M * PAIRS; i += ITEMS) {
        const int row = i / PAIRS, column = 2 * (i % PAIRS), m = t.m0 + row, n = t.n0 + column;
        LOCAL const float *from = sums + row * PITCH + column;
        R sum[4] = { ZERO, ZERO, ZERO, ZERO };

        UNROLL for (int w = 0; w < WARPS; w++) {
            sum[0] = sum[0] + from[w * (WARP_BYTES / 4)];
            sum[1] = sum[1] + from[w * (WARP_BYTES / 4) + 1];
        }
        if (m < M && n < N && meet_in_slots(slots + i, THR_M * PAIRS, GROUP_ID(1), parts, sum, sum + 1))
            store_neighbours(sum, N - n < 2 ? 1 : 2, t.batch == 0, t.batch, m, n, eC, alpha, beta, gC, vC,
                             has_bias, gBias, vBias, act);
    }
}
