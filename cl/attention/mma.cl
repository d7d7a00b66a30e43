/* cl/attention/mma.cl - attention in 16-bit types by the mma.sync of NVIDIA's sm_80 and up
 *
 * A work-group has a tile of queries of one head.  It takes the blocks of keys and values that the tile sees
 * from the last to the first, so that what causal attention hides comes first:
 *
 *              k: elements              n: keys                  n: elements
 *            +-----------+            +--------+               +-----------+
 *     WARP_M |  queries  |  keys^T -> | scores |  weights  x   |  values   |  -> WARP_M rows of sums
 *            +-----------+            +--------+               +-----------+
 *
 * Scores turn into weights in the registers that they are in.  Blocks of keys and of values come by turns to
 * a ring of STAGES blocks, by cp.async, STAGES - 1 ahead; a barrier before each says that it has arrived for
 * all, and that the one before is used.  Rows behind the last key are zeros that the copies write.
 *
 * Parameters, from attention.tune: HEAD, the size of a head at most; BLK_M BLK_N WARP_M STAGES; Q_REGISTERS,
 * 1 where queries are kept in registers; LAZY (cl/attention/online.h).  Constants: CAUSAL; FORM
 * (cl/attention/scores.h); LAYOUT (cl/attention/mma.h).
 * Method: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023.
 */
#define STRIPS      (WARP_M / 16)               /* 16 rows each, of a warp */
#define AHEAD       (STAGES - 1)
#define BYTES_Q     (BLK_M * VECTORS * 16)
#define BYTES_K     (BLK_N * VECTORS * 16)      /* and of values */
#define LOCAL_BYTES (BYTES_Q + STAGES * BYTES_K)
#define PAGED       (LAYOUT == PAGED_ROWS)

#if BLK_N % 16 || WARP_M % 16 || HEAD % 32 || STAGES < 2
#error "there is no such tile"
#endif
#if ITEMS % (VECTORS * VEC_PARTS) || BLK_M * VECTORS % ITEMS || BLK_N * VECTORS % ITEMS
#error "the work-items must share a tile evenly"
#endif

LARGE_LOCAL(attention_mma, LOCAL_BYTES)

/* ---- copies ------------------------------------------------------------------------------ */

/* Rows of a head to a tile or a stage at `to`: those from `row` on, rows_left of which are there, with so
 * many elements each. */
DEVICE void rows_copy(const struct async_operand *o, UINT32 to, const int rows, int row, int rows_left,
                      int elements)
{
    GLOBAL const char *const from = o->from + (BYTE_OFFSET)row * o->pitch;

#if LAYOUT == ANY_ROWS
    copy_slice(o, from, to, 0, rows, VECTORS, rows_left, elements);
#else
    copy_vectors(o, from, to + o->to, 0, rows, VECTORS, rows_left, elements);
#endif
}

/* The pages of a batch: the number of page i is at first + i step of the table. */
struct pages { GLOBAL const int *table; INDEX first, step; int page, count; };

/* The same of a block of keys or values in pages, which are `each` bytes from each other. */
DEVICE void rows_copy_paged(const struct async_operand *o, UINT32 to, int row, int rows_left,
                            int elements_left, const struct pages *p, BYTE_OFFSET each)
{
    const int mn_major = 0, vecs = VECTORS;
    GLOBAL const char *const from = o->from - o->row * o->pitch;

    to += o->to;
    UNROLL for (int i = 0; i < COPIES_OF(BLK_N, VECTORS); i++) {
        const int inside = INSIDE(i, 1), n = inside ? row + o->row + i * ROWS_APART(1) : 0, at = n / p->page;
        const int page = page_at(p->table, p->first + at * p->step, p->count);

        COPY_ASYNC16_PART(COPY_TO(i, 1), from + (page * each + (n - at * p->page) * o->pitch),
                          inside * T_BYTES);
    }
}

/* ---- products of a warp -------------------------------------------------------------------- */

/* The scores of its queries and a block of keys; q: the queries' fragments, where registers have them. */
DEVICE void mma_scores(float s[STRIPS][SCORES], FRAGMENT q[HEAD / 16][BLOCKS_M][FRAGMENT_REGS],
                       UINT32 queries, UINT32 keys)
{
    UNROLL for (int r = 0; r < STRIPS; r++)
    UNROLL for (int i = 0; i < SCORES; i++)
        s[r][i] = 0.0f;
    UNROLL for (int k = 0; k < HEAD / 16; k++) {
        FRAGMENT b[BLOCKS_N][FRAGMENT_REGS];

        if (!Q_REGISTERS)
            UNROLL for (int u = 0; u < STRIPS; u++)
                LOAD_FRAGMENT(q[k], 0, VECTORS, queries, u, k, 0);
        UNROLL for (int u = 0; u < BLOCKS_N / 2; u++) {
            LOAD_FRAGMENT(b, 0, VECTORS, keys, u, k, 1);
            UNROLL for (int j = 2 * u; j < 2 * u + 2; j++)
            UNROLL for (int r = 0; r < STRIPS; r++)
                MMA_F32(s[r] + 4 * j, s[r] + 4 * j + 2, q[k][2 * r], q[k][2 * r + 1], b[j]);
        }
    }
}

/* Adds its weights times a block of values. */
DEVICE void mma_sums(float sums[STRIPS][SUMS], float s[STRIPS][SCORES], UINT32 values)
{
    UNROLL for (int k = 0; k < BLK_N / 16; k++) {
        FRAGMENT p[BLOCKS_M][FRAGMENT_REGS], b[HEAD / 8][FRAGMENT_REGS];

        UNROLL for (int i = 0; i < BLOCKS_M; i++)
        UNROLL for (int h = 0; h < 2; h++) {
            const int at = 8 * k + 4 * h + i % 2 * 2;

            p[i][h] = pair_of(s[i / 2][at], s[i / 2][at + 1]);
        }
        UNROLL for (int u = 0; u < HEAD / 16; u++) {
            LOAD_FRAGMENT(b, 1, VECTORS, values, u, k, 1);
            UNROLL for (int j = 2 * u; j < 2 * u + 2; j++)
            UNROLL for (int r = 0; r < STRIPS; r++)
                MMA_F32(sums[r] + 4 * j, sums[r] + 4 * j + 2, p[2 * r], p[2 * r + 1], b[j]);
        }
    }
}

KERNEL(ITEMS) void
attention_mma(int queries, int keys, int D, int DV, int group, int causal, int offset, int window,
              R scale, R softcap,
              GLOBAL const T *RESTRICT gQ, VIEW vQ, GLOBAL const T *RESTRICT gK, VIEW vK,
              GLOBAL const T *RESTRICT gV, VIEW vV, GLOBAL T *RESTRICT gO, VIEW vO,
              GLOBAL const T *RESTRICT gMask, VIEW vMask, GLOBAL R *RESTRICT gLse, VIEW vLse, int has_lse,
              MORE_PARAMS, int batches, int heads, int section)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);

    const int lane = LOCAL_ID() % 32, warp = this_warp(), all_heads = batches * heads;
    ATTENTION_JOB(t, GROUP_ID(0));
    const int shared = t.head / group, stored = PAGED ? 0 : t.batch;
    const int row0 = t.m0 + warp * WARP_M, row = row0 + acc_first_row(0, lane), n = acc_first_col(lane);
    const float unit = GENERAL ? 1.0f : scale, factor = unit * LOG2_E;
    const UINT32 tile_q = LOCAL_ADDRESS(room), ring = tile_q + BYTES_Q;
    const UINT32 start_q = tile_q + fragment_start(0, VECTORS, warp * WARP_M, 0);
    const UINT32 start_k = fragment_start(0, VECTORS, 0, 1), start_v = fragment_start(1, VECTORS, 0, 1);
    FRAGMENT fragments[HEAD / 16][BLOCKS_M][FRAGMENT_REGS];
    float sums[STRIPS][SUMS], max[STRIPS][2], sum[STRIPS][2], rescale[STRIPS][2];
    const int n_first = t.block * BLK_N, n_last = n_first + (t.blocks - 1) * BLK_N;
    UINT32 here = ring;                         /* the stage that is read; the one before is written */

#define HEAD_OF(g, v, batch, head) ((g) + (INDEX)(v).s0 + (batch) * (INDEX)(v).s3 + (head) * (INDEX)(v).s4)
#define OPERAND(g, v)                                                                                     \
    async_operand(g, 1, (INDEX)(v).s5, 0, 0, VECTORS,                                                     \
                  LAYOUT != ANY_ROWS || is_aligned(16, g, 1, (INDEX)(v).s5, 0, 0))
#define STAGE_AFTER(at)  ((at) == ring + AHEAD * BYTES_K ? ring : (at) + BYTES_K)
#define STAGE_BEFORE(at) ((at) == ring ? ring + AHEAD * BYTES_K : (at) - BYTES_K)
/* Fetches the block from row n0 on, where the tile sees it. */
#define FETCH(o, v, elements, n0, to)                                                                     \
    do {                                                                                                  \
        if ((n0) >= n_first && PAGED)                                                                     \
            rows_copy_paged(o, to, n0, keys_here - (n0), elements, &in, T_BYTES * (BYTE_OFFSET)(v).s3);   \
        else if ((n0) >= n_first)                                                                         \
            rows_copy(o, to, BLK_N, n0, keys_here - (n0), elements);                                      \
        copies_commit();                        /* also when empty: groups are counted */                 \
    } while (0)
#define FETCH_KEYS(n0, to)   FETCH(&k, vK, D, n0, to)
#define FETCH_VALUES(n0, to) FETCH(&v, vV, DV, n0, to)

    GLOBAL const T *const q0 = HEAD_OF(gQ, vQ, t.batch, t.head);
    GLOBAL const T *const k0 = HEAD_OF(gK, vK, stored, shared), *const v0 = HEAD_OF(gV, vV, stored, shared);
    const struct async_operand q = OPERAND(q0, vQ), k = OPERAND(k0, vK), v = OPERAND(v0, vV);
#if PAGED
    const struct pages in = { gPages, (INDEX)vMore.s4 + (INDEX)t.batch * (keys / page) * (INDEX)vMore.s5,
                              (INDEX)vMore.s5, page, pages };
#else
    const struct pages in = { gPages, 0, 0, 1, 1 };
#endif

    rows_copy(&q, tile_q, BLK_M, t.m0, queries_here - t.m0, D);
    UNROLL for (int i = 0; i < AHEAD; i++)
        if (i % 2)
            FETCH_VALUES(n_last - i / 2 * BLK_N, ring + i * BYTES_K);
        else
            FETCH_KEYS(n_last - i / 2 * BLK_N, ring + i * BYTES_K);
    UNROLL for (int r = 0; r < STRIPS; r++) {
        UNROLL for (int i = 0; i < SUMS; i++)
            sums[r][i] = 0.0f;
        UNROLL for (int below = 0; below < 2; below++) {
            max[r][below] = -INFINITE;
            sum[r][below] = 0.0f;
        }
    }
#if Q_REGISTERS
    COPIES_WAIT(STAGES - 2);
    BARRIER();
    UNROLL for (int i = 0; i < HEAD / 16; i++)
    UNROLL for (int u = 0; u < STRIPS; u++)
        LOAD_FRAGMENT(fragments[i], 0, VECTORS, start_q, u, i, 0);
#endif
    for (int n0 = n_last; n0 >= n_first; n0 -= BLK_N) {
        float s[STRIPS][SCORES];

        COPIES_WAIT(STAGES - 2);
        BARRIER();
        if (AHEAD % 2)
            FETCH_VALUES(n0 - AHEAD / 2 * BLK_N, STAGE_BEFORE(here));
        else
            FETCH_KEYS(n0 - AHEAD / 2 * BLK_N, STAGE_BEFORE(here));
        mma_scores(s, fragments, start_q, here + start_k);
        here = STAGE_AFTER(here);
        UNROLL for (int r = 0; r < STRIPS; r++) {
            int grows;

            ATTENTION_GENERAL(s[r], row + 16 * r, n0 + n);
            if (online_hides(&sight, row0 + 16 * r, n0, BLK_N))
                online_hide(s[r], SCORES, &sight, row + 16 * r, n0 + n);
            grows = online_update(s[r], SCORES, max[r], sum[r], rescale[r], factor, 0);
            online_rescale(sums[r], SUMS, rescale[r], grows);
        }
        COPIES_WAIT(STAGES - 2);
        BARRIER();
        if (AHEAD % 2)
            FETCH_KEYS(n0 - (AHEAD + 1) / 2 * BLK_N, STAGE_BEFORE(here));
        else
            FETCH_VALUES(n0 - AHEAD / 2 * BLK_N, STAGE_BEFORE(here));
        mma_sums(sums, s, here + start_v);
        here = STAGE_AFTER(here);
    }

    const INDEX lse = (INDEX)vLse.s0 + t.batch * (INDEX)vLse.s4 + t.head * (INDEX)vLse.s5;
    GLOBAL T *const o = HEAD_OF(gO, vO, t.batch, t.head);

    UNROLL for (int r = 0; r < STRIPS; r++) {
        float share[2];

        ATTENTION_SHARES(share, max[r], sum[r], row + 16 * r);
        UNROLL for (int below = 0; below < 2; below++) {
            const int m = row + 16 * r + 8 * below, left = m < queries ? DV : 0;
            GLOBAL T *const to = o + (left ? m : 0) * (INDEX)vO.s5;

            attention_share_row(sums[r], below, share[below]);
#if LAYOUT == ANY_ROWS
            store_row_pairs(to, sums[r], SUMS, below, lane, left);
#else
            store_row_vectors(to, sums[r], SUMS, below, lane, left);
#endif
        }
    }
}
