/* skinny_mma.cl - C := act(alpha A B + beta C + bias) in f32, f16 and bf16, where A has few rows, by the
 * mma.sync of NVIDIA's sm_80 and up
 *
 * As skinny.cl, but a warp multiplies 16 columns of B by 8 rows of A at a time.  Any order of K will
 * do, if it is the same for A and B, and any order of columns, if they are stored accordingly.  So
 * each lane copies a 16-byte vector at a time, and what it has copied is its own share of the
 * fragment: a quad, which is 4 elements along K of one column, is what mma.sync wants in the registers
 * of a lane.
 *
 *     K_MAJOR 1 (16-bit types)                   K_MAJOR 0
 *            k: 8 a lane, 32 a step                     n: 8 a lane, 64 a warp
 *         +---+---+---+---+                          +---+---+---+ ...
 *     n   | 0 | 1 | 2 | 3 |  column 0 of 16      k   | 0 | 4 | 8 |       four rows a lane, so
 *         | 4 | 5 | 6 | 7 |  column 1                | 0 | 4 | 8 |       16 rows a step
 *         | ...           |                          | 0 ...
 *         and once more, 8 columns below             | 1 | 5 | 9 |
 *
 * Copies go to local memory by cp.async, as many steps ahead as fit; a warp reads only what it copied,
 * so there is no barrier.  A is copied likewise: in vectors, or, where it is not K-major, element by
 * element.  The steps of a warp are adjacent, DEPTH of them, so that it reads whole cache lines.
 *
 * f32 is split into three bf16, which hold all its bits; of the nine products of parts the six larger
 * ones are added up, 16 elements of K at a time, from zero.  That sum is added to an accumulator in
 * f32, for the matrix instruction itself rounds towards zero.  What is left out is below 2^-25 of each
 * product: the error is no larger than that of a sum by fused multiply-adds.  An element that is not
 * finite is computed again, without parts, for infinity has none.
 *
 * Sliced-K, over warps, is reduced in local memory.  With split-K, two threads with the same elements
 * of two splits meet by an atomic exchange (meet_in_slots), which costs less than a second launch or a
 * last work-group.
 *
 * Parameters, from gemm.tune: ITEMS; TILES_16 or TILES_64, as TILES, of 16 columns a warp (K_MAJOR 1);
 * ROOM, KiB of local memory; DEPTH_K or DEPTH_N, as DEPTH, adjacent steps; FILL and SPLIT are the
 * host's.  Constants: K_MAJOR, and THR_M, rows of A in a work-group.
 *
 * Method: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022, with
 * parts in f16.
 */
#define BLOCKS (THR_M / 8)                      /* of 8 rows of A */
#define WARPS  (ITEMS / 32)

#if TYPE == 0
#define BITS  UINT32                            /* an element as it is read */
#define VEC   4                                 /* elements of 16 bytes */
#define PARTS BF16X3_PARTS                      /* bf16, of an element */
#else
#define BITS  UINT16
#define VEC   8
#define PARTS 1
#endif

#if K_MAJOR
#define STEP      (4 * VEC)                     /* of K, for one warp */
#define VECS_B    (2 * TILES)                   /* of a lane */
#define QUADS     (VEC / 4)                     /* of a vector */
#define FRAGMENTS TILES                         /* of 16 columns */
#define PAD       4                             /* partial sums of a warp then lie in different banks */
#else
#define STEP      16
#define VECS_B    4
#define QUADS     1
#define FRAGMENTS (VEC / 2)
#define PAD       1
#endif
#define BYTES_A   (4 * QUADS * T_BYTES)         /* of A: as many elements along K as of B */
#define RUN       (DEPTH * STEP)                /* of K: adjacent steps of a warp */
#define WARP_N    (16 * FRAGMENTS)

#define STAGE     (VECS_B + BLOCKS)             /* vectors of a lane for one step */
#define STAGE_BYTES (16 * STAGE * ITEMS)
#define FITTING   (1024 * ROOM / STAGE_BYTES)
#define STAGES    (FITTING < 2 ? 2 : FITTING > 8 ? 8 : FITTING)
#define STAGES_BYTES (STAGES * STAGE_BYTES)
#define SUMS_BYTES (4 * THR_M * WARPS * (WARP_N + PAD))
#define LOCAL_BYTES (STAGES_BYTES > SUMS_BYTES ? STAGES_BYTES : SUMS_BYTES)

LARGE_LOCAL(gemm_skinny_mma, LOCAL_BYTES)

/* ---- quads ------------------------------------------------------------------------ */

/* Two pairs along K, of each part: what a lane has of one column of a fragment. */
struct quad { UINT32 part[PARTS][2]; };

#if TYPE == 0
/* x and y in three bf16 parts each; infinities, NaNs, and what rounds up to infinity, become NaN. */
DEVICE void split(struct quad *q, int pair, UINT32 x_bits, UINT32 y_bits)
{
    float x = BITS_FLOAT(x_bits), y = BITS_FLOAT(y_bits);

    UNROLL for (int p = 0; p < PARTS; p++)
        q->part[p][pair] = bf16x3_part(&x, &y);
}

DEVICE struct quad quad_of(UINT32 k0, UINT32 k1, UINT32 k2, UINT32 k3)
{
    struct quad q;

    split(&q, 0, k0, k1);
    split(&q, 1, k2, k3);
    return q;
}

#define MULTIPLY(p, r)                                                      \
    UNROLL for (int i = 0; i < BLOCKS; i++)                                 \
        MMA_16x8("m16n8k16.row.col.f32.bf16.bf16.f32", d[i], d[i] + 2,      \
                 lower->part[p], upper->part[p], a[i].part[r])

/* Each product for all rows before the next one: an instruction then does not wait for the one before it. */
DEVICE void multiply(float rC[BLOCKS][4], const struct quad *lower, const struct quad *upper,
                     const struct quad *a)
{
    float d[BLOCKS][4];

    UNROLL for (int i = 0; i < BLOCKS; i++)
    UNROLL for (int e = 0; e < 4; e++)
        d[i][e] = 0;
    MULTIPLY(1, 1);                             /* the small products first */
    MULTIPLY(2, 0);
    MULTIPLY(0, 2);
    MULTIPLY(1, 0);
    MULTIPLY(0, 1);
    MULTIPLY(0, 0);
    UNROLL for (int i = 0; i < BLOCKS; i++)
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

DEVICE void multiply(float rC[BLOCKS][4], const struct quad *lower, const struct quad *upper,
                     const struct quad *a)
{
    UNROLL for (int i = 0; i < BLOCKS; i++)
        MMA_F32(rC[i], rC[i] + 2, lower->part[0], upper->part[0], a[i].part[0]);
}
#endif

/* ---- one step: a lane's copies to local memory, and products of them ----------------------------- */

/* What this lane copies.  Beyond an edge it reads the first row or column again, and that is not stored. */
struct operands {
    GLOBAL const BYTE *a, *b;                   /* the next step's k */
    OFFSET a_at[BLOCKS], b_at[VECS_B];          /* this lane's vectors, from there */
    OFFSET a_step, b_step;                      /* strides along K, in bytes */
    int k, last;                                /* the next step's k, and where K ends */
    int k_a, k_b;                               /* of this lane's first vectors, from k */
    int aligned;                                /* rows of A are aligned to BYTES_A */
    LOCAL uint4 *warp;                          /* its vectors: 32 of each ITEMS */
};

/* The w-th 32 bits of a row of A; zeros beyond the end of K. */
DEVICE void copy_word(const struct operands *s, LOCAL UINT32 *to, int i, int w)
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

/* Where the j-th vector of B goes that a lane copies.  A K-major vector is the lane's own.  Otherwise eight
 * lanes copy a row of 128 bytes, whose vectors are permuted so that a lane's reads of four rows find
 * different banks.                                                                                    */
#if K_MAJOR
#define SLOT_B(j, lane) (lane)
#define K_OF_VEC(j)   0
#else
#define SLOT_B(j, lane) ((lane) ^ 2 * (j))
#define K_OF_VEC(j)   (4 * (j))
#endif

/* This lane's vectors; zeros beyond the end of K.  B is read once, and must not evict A from the cache. */
DEVICE void copy_step(const struct operands *s, int stage, int lane)
{
    LOCAL uint4 *to = s->warp + stage * STAGE * ITEMS, *to_a = to + VECS_B * ITEMS + lane;
    const int left = s->last - s->k - s->k_a;
    const int there = left > 4 * QUADS ? BYTES_A : left > 0 ? left * T_BYTES : 0;

    UNROLL for (int j = 0; j < VECS_B; j++)
        COPY_ASYNC16_ONCE(LOCAL_ADDRESS(to + j * ITEMS + SLOT_B(j, lane)), s->b + s->b_at[j],
                          s->k + s->k_b + K_OF_VEC(j) < s->last ? 16 : 0);
    if (s->aligned)
        UNROLL for (int i = 0; i < BLOCKS; i++)
            COPY_ASYNC_PART(BYTES_A, LOCAL_ADDRESS(to_a + i * ITEMS), s->a + s->a_at[i], there);
    else
        UNROLL for (int i = 0; i < BLOCKS; i++)
            UNROLL for (int w = 0; w < BYTES_A / 4; w++)
                copy_word(s, (LOCAL UINT32 *)(to_a + i * ITEMS), i, w);
}

DEVICE void move_on(struct operands *s, int k)
{
    s->k += k;
    s->a += (INT64)k * s->a_step;
    s->b += (INT64)k * s->b_step;
}

/* The q-th quad of a vector along K. */
#if TYPE == 0
#define QUAD(u, q) quad_of((u).x, (u).y, (u).z, (u).w)
#elif K_MAJOR
#define QUAD(u, q) ((q) ? quad_of((u).z, (u).w) : quad_of((u).x, (u).y))
#else
#define QUAD(u, q) quad_of((u).x, (u).y)
#endif

/* The quads of the lower and upper 8 columns of the j-th fragment. */
DEVICE void columns_of(struct quad *lower, struct quad *upper, const uint4 *r, int j, int q)
{
#if K_MAJOR
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

DEVICE void fold(float rC[FRAGMENTS][BLOCKS][4], const struct operands *s, int stage, int lane)
{
    LOCAL const uint4 *from = s->warp + stage * STAGE * ITEMS;
    uint4 b[VECS_B], rows[BLOCKS];

    UNROLL for (int j = 0; j < VECS_B; j++)
#if K_MAJOR
        b[j] = from[j * ITEMS + lane];
#else
        b[j] = from[lane % 4 * ITEMS + SLOT_B(lane % 4, 8 * j + lane / 4)];
#endif
    UNROLL for (int i = 0; i < BLOCKS; i++)
        rows[i] = from[(VECS_B + i) * ITEMS + lane];
    UNROLL for (int q = 0; q < QUADS; q++) {
        struct quad a[BLOCKS];

        UNROLL for (int i = 0; i < BLOCKS; i++)
            a[i] = QUAD(rows[i], q);
        UNROLL for (int j = 0; j < FRAGMENTS; j++) {
            struct quad lower, upper;

            columns_of(&lower, &upper, b, j, q);
            multiply(rC[j], &lower, &upper, a);
        }
    }
}

/* ---- elements that are not finite --------------------------------------------------------------- */

#if TYPE == 0
/* The partial sum of a slice of K, by fused multiply-adds. */
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

/* The row and column, in the tile, of a lane's v-th accumulator; n1: the warp's first column. */
#define SUM_ROW(v, low)          (8 * ((v) / 4 % BLOCKS) + 2 * (low) + (v) % 2)
#if K_MAJOR
#define SUM_COLUMN(v, n1, high)  ((n1) + 16 * ((v) / 4 / BLOCKS) + 8 * ((v) % 4 / 2) + (high))
#else
#define SUM_COLUMN(v, n1, high)  ((n1) + VEC * (high) + 2 * ((v) / 4 / BLOCKS) + (v) % 4 / 2)
#endif

/* Each split is `span` of K.  gSlots: for each pair of elements of a tile, splits - 1 empty slots. */
KERNEL(ITEMS) void
gemm_skinny_mma(int M, int N, int K, int slices, int width, int aligned, int span, int splits, int batches,
                VIEW eC, R alpha,
                GLOBAL const T *RESTRICT gA, VIEW vA,
                GLOBAL const T *RESTRICT gB, VIEW vB, GLOBAL UINT64 *gSlots, OUTPUT_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);

    const int warps_n = width / WARP_N;         /* a power of two */
    struct task t;

    find_task(&t, M, N, K, slices, width, WARPS * WARP_N, span, batches);

    const int warp = LOCAL_ID() / 32, lane = LOCAL_ID() % 32, high = lane / 4, low = lane % 4;
    const int slice = warp * slices / WARPS, n1 = (warp & (warps_n - 1)) * WARP_N;
    const int stride = slices * RUN, k0 = t.first + slice * RUN;
    const INDEX a0 = start_of(vA, eC, t.batch), b0 = start_of(vB, eC, t.batch);
    struct operands s;
    float rC[FRAGMENTS][BLOCKS][4];
    int copied = 0;

    s.a = (GLOBAL const BYTE *)(gA + a0);
    s.b = (GLOBAL const BYTE *)(gB + b0);
    s.a_step = (OFFSET)(aligned ? 1 : vA.s6) * T_BYTES;
    s.b_step = (OFFSET)(K_MAJOR ? 1 : vB.s5) * T_BYTES;
    s.k = 0;
    s.last = t.last;
    s.k_a = low * (STEP / 4);
    s.k_b = K_MAJOR ? s.k_a : lane / 8;
    s.aligned = aligned;
    s.warp = (LOCAL uint4 *)room + warp * 32;
    UNROLL for (int i = 0; i < BLOCKS; i++) {
        const int m = t.m0 + 8 * i + high;

        s.a_at[i] = (m < M ? m * (OFFSET)vA.s5 * T_BYTES : 0) + s.k_a * s.a_step;
    }
    UNROLL for (int j = 0; j < VECS_B; j++) {
        const int n = t.n0 + n1 + (K_MAJOR ? 8 * j + high : VEC * (lane % 8)), k = s.k_b + K_OF_VEC(j);

        s.b_at[j] = (n < N ? n * (K_MAJOR ? (OFFSET)vB.s6 : 1) * T_BYTES : 0) + k * s.b_step;
    }
    move_on(&s, k0);
    UNROLL for (int j = 0; j < FRAGMENTS; j++)
    UNROLL for (int i = 0; i < BLOCKS; i++)
    UNROLL for (int e = 0; e < 4; e++)
        rC[j][i][e] = 0;

    /* A warp alone reads what it copies: no barrier is needed.  Its lanes take the same steps, for they
     * multiply together.  STEP_AFTER: the distance from step i to the next.                            */
#define STEP_AFTER(i) (((i) + 1) % DEPTH ? STEP : stride - (DEPTH - 1) * STEP)
#define COPY_STEP(stage)                                            \
    if (s.k < t.last) {                                             \
        copy_step(&s, stage, lane);                                 \
        move_on(&s, STEP_AFTER(copied));                            \
        copied++;                                                   \
    }                                                               \
    copies_commit()

    NO_UNROLL for (int i = 0; i < STAGES - 1; i++) {
        COPY_STEP(i);
    }
    for (int step = 0, k = k0, stage = 0; k < t.last; step++) {
        const int before = stage ? stage - 1 : STAGES - 1;

        COPIES_WAIT(STAGES - 2);
        warp_meet();
        COPY_STEP(before);
        fold(rC, &s, stage, lane);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        k += STEP_AFTER(step);
    }
    COPIES_WAIT(0);

    const int pitch = t.width + PAD, slice_pitch = THR_M * pitch;
    LOCAL float *sums = (LOCAL float *)room, *mine = sums + slice * slice_pitch;
#if TYPE == 0
    float check = 0;
#endif

    BARRIER();                                  /* all stages are read */
    UNROLL for (int j = 0; j < FRAGMENTS; j++)
    UNROLL for (int i = 0; i < BLOCKS; i++)
    UNROLL for (int e = 0; e < 4; e++) {
        const int v = (j * BLOCKS + i) * 4 + e;

        mine[SUM_ROW(v, low) * pitch + SUM_COLUMN(v, n1, high)] = rC[j][i][e];
#if TYPE == 0
        check = FMA(rC[j][i][e], 0.0f, check);    /* NaN if one is not finite */
#endif
    }
#if TYPE == 0
    if (check != check)
        NO_UNROLL for (int v = 0; v < FRAGMENTS * BLOCKS * 4; v++) {
            const int row = SUM_ROW(v, low), column = SUM_COLUMN(v, n1, high);
            const int m = t.m0 + row, n = t.n0 + column;
            LOCAL float *sum = mine + row * pitch + column;

            if (!(ABS(*sum) < BITS_FLOAT(0x7f800000u)) && m < M && n < N)
                *sum = plain_sum(gA, a0 + m * (INDEX)vA.s5, (INDEX)vA.s6,
                                 gB, b0 + n * (INDEX)vB.s6, (INDEX)vB.s5, k0, stride, t.last);
        }
#endif
    BARRIER();

    const int pairs = THR_M * t.width / 2;
    GLOBAL UINT64 *const slots = gSlots + GROUP_ID(0) * (splits - 1) * pairs;

    const struct output c = OUTPUT(t.batch);

    NO_UNROLL for (int i = LOCAL_ID(); i < pairs; i += ITEMS) {
        const int row = row_of(&t, 2 * i), column = 2 * i - row * t.width, m = t.m0 + row, n = t.n0 + column;
        LOCAL const float *from = sums + row * pitch + column;
        R sum[4] = { ZERO, ZERO, ZERO, ZERO };

        for (int p = 0; p < slices; p++) {
            sum[0] = sum[0] + from[p * slice_pitch];
            sum[1] = sum[1] + from[p * slice_pitch + 1];
        }
        if (m < M && n < N && meet_in_slots(slots + i, pairs, GROUP_ID(1), splits, sum, sum + 1))
            store_vector(&c, m, n, sum, N - n < 2 ? 1 : 2);
    }
}
