/* skinny_rows.cl - C := act(alpha A B + beta C + bias) in f16 and bf16, where A has few rows, and A and B
 * are K-major, by the mma.sync of NVIDIA's sm_80 and up
 *
 * The decode step of a language model: B is large, and nothing may stand between the launch and the loads of
 * B.  A work-group has 8 GROUPS columns and a split of K, of which its warps take runs of 128 bytes in turn:
 *
 *            k: 64 in a run                        a warp's stage in local memory
 *         +-------------+-------------+            +---------------+
 *     n   | warp 0      | warp 1      | ...        | THR_M rows    |  of A
 *         |             |             |            +---------------+
 *         +-------------+-------------+            | 8 GROUPS      |  of B; vector v (16 bytes) of column i
 *                                                  |       columns |  lies at v ^ i % 8, so that vector v of
 *                                                  +---------------+  eight columns covers all banks
 *
 * Each warp copies its own runs with cp.async, STAGES of them ahead, and multiplies them; no barrier is
 * needed until the partial sums of all warps are added in local memory, in order.  With split-K, two threads
 * with the same elements of two splits meet by one atomic exchange: the first leaves its partial sums and
 * ends, the second finds them.  That needs neither a second launch nor a fence and a counter.
 *
 * Eight lanes share a run of 128 bytes, for a copy costs a cycle for each run that a warp touches.  Rows of
 * A beyond M are not read: all work-groups would want the same row at the same time.
 *
 * Parameters, from gemm.tune: ITEMS; GROUPS; ROOM, KiB of local memory; FILL and SPLIT are the host's.
 * Constants: THR_M, rows of A in a work-group.
 */
#define WARPS   (ITEMS / 32)
#define COLUMNS (8 * GROUPS)
#define RUN     64                              /* of K: 128 bytes */
#define VEC     8                               /* elements of 16 bytes */
#define RUNS    (THR_M + COLUMNS)               /* of a warp: of A, then of B */
#define COPIES  (RUNS / 4)                      /* runs that eight lanes copy */
#define BLOCKS  ((THR_M + 15) / 16)             /* of 16 rows of A */

#define STAGE_BYTES (128 * RUNS)               /* of a warp */
#define FITTING     (1024 * ROOM / (STAGE_BYTES * WARPS))
#define STAGES      (FITTING < 2 ? 2 : FITTING > 8 ? 8 : FITTING)
#define WARP_BYTES  (STAGES * STAGE_BYTES)
#define LOCAL_BYTES (WARP_BYTES * WARPS)

/* A warp's partial sums, in place of its stages: pairs of eight rows then lie in different banks. */
#define PITCH ((COLUMNS + 31) / 32 * 32 + 8)
#if 4 * THR_M * PITCH > STAGES * STAGE_BYTES
#error "a warp's partial sums need more room than its stages"
#endif

LARGE_LOCAL(gemm_skinny_rows, LOCAL_BYTES)

/* ---- a run of each row and column: copies, and products ----------------------------------------- */

/* What this lane copies.  Beyond the edge of B it reads the first column again; that is not stored. */
struct operands {
    GLOBAL const BYTE *a, *b;                   /* its vector of the next run, of row and column 0 */
    OFFSET at[COPIES];                          /* its rows of A, then its columns of B */
    UINT32 rows;                                /* bit j: row j of A exists */
    int k, last;                                /* the k of its vector, and where K ends */
    UINT32 to[2];                               /* its vectors in local memory, of even and odd j */
};

DEVICE void copy_run(struct operands *s, int stage)
{
    const int bytes = s->k < s->last ? 16 : 0;

    UNROLL for (int j = 0; j < COPIES; j++) {
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

/* from: the warp's stage.  a_at, b_at: this lane's row addresses for ldmatrix, by steps of 16, of 32 of K. */
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

#define PAIRS (COLUMNS / 2)                     /* of elements in a row of C */

/* Each split is `span` of K.  gSlots: for each pair of elements of a tile, splits - 1 empty slots. */
KERNEL(ITEMS) void
gemm_skinny_rows(int M, int N, int K, int span, int splits, int batches, VIEW eC, R alpha,
                 GLOBAL const T *RESTRICT gA, VIEW vA,
                 GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL UINT64 *gSlots, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);

    const int warp = LOCAL_ID() / 32, lane = LOCAL_ID() % 32, run = lane / 8, vec = lane % 8;
    const UINT32 mine = LOCAL_ADDRESS(room) + warp * WARP_BYTES;
    struct task t;

    find_task(&t, M, N, K, 1, COLUMNS, COLUMNS, span, batches);

    struct operands s;
    const int k0 = t.first + warp * RUN;

    s.k = k0 + vec * VEC;
    s.last = t.last;
    s.a = (GLOBAL const BYTE *)(gA + start_of(vA, eC, t.batch) + s.k);
    s.b = (GLOBAL const BYTE *)(gB + start_of(vB, eC, t.batch) + s.k);
    s.to[0] = mine + run * 128 + (vec ^ run) * 16;
    s.to[1] = mine + run * 128 + (vec ^ run ^ 4) * 16;
    s.rows = 0;
    UNROLL for (int j = 0; j < COPIES; j++) {
        const int m = t.m0 + 4 * j + run, n = t.n0 + 4 * j - THR_M + run;

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
        a_at[q] = mine + lane % 16 % THR_M * 128 + ((2 * q + lane / 16) ^ vec) * 16;
    UNROLL for (int h = 0; h < 2; h++)
        b_at[h] = mine + (THR_M + vec) * 128 + ((4 * h + run) ^ vec) * 16;
    UNROLL for (int i = 0; i < BLOCKS; i++)
    UNROLL for (int j = 0; j < GROUPS; j++)
    UNROLL for (int e = 0; e < 4; e++)
        rC[i][j][e] = 0;

    /* A warp alone reads what it copies: no barrier is needed. */
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

    GLOBAL UINT64 *const slots = gSlots + GROUP_ID(0) * (splits - 1) * (THR_M * PAIRS);

    const struct output c = OUTPUT(t.batch);

    NO_UNROLL for (int i = LOCAL_ID(); i < THR_M * PAIRS; i += ITEMS) {
        const int row = i / PAIRS, column = 2 * (i % PAIRS), m = t.m0 + row, n = t.n0 + column;
        LOCAL const float *from = sums + row * PITCH + column;
        R sum[4] = { ZERO, ZERO, ZERO, ZERO };

        UNROLL for (int w = 0; w < WARPS; w++) {
            sum[0] = sum[0] + from[w * (WARP_BYTES / 4)];
            sum[1] = sum[1] + from[w * (WARP_BYTES / 4) + 1];
        }
        if (m < M && n < N && meet_in_slots(slots + i, THR_M * PAIRS, GROUP_ID(1), splits, sum, sum + 1))
            store_vector(&c, m, n, sum, N - n < 2 ? 1 : 2);
    }
}
