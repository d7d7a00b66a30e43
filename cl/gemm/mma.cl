/* mma.cl - C := act(alpha A B + beta C + bias) on matrix engines, for NVIDIA's sm_80 and up
 *
 * f16 and bf16 with sums in f32; f32 rounded to tf32 (asked for by VN_MATH_TF32); f64, whose
 * products and sums are fused multiply-adds as everywhere.  Slices of A and B go to local memory
 * STAGES - 1 ahead without passing through registers; warps multiply WARP_M x WARP_N of the tile.
 *
 *             BLK_N                    In local memory an operand is lines of 16-byte chunks, along K
 *         +---+---+---+---+            or across it as it lies in device memory (ACROSS_A, ACROSS_B):
 *   BLK_K |   |   |   |   |
 *         +---+---+---+---+                line 0   | 0 1 2 3 4 5 6 7 |
 *   +--+  +---+---+---+---+ WARP_M         line 1   | 1 0 3 2 5 4 7 6 |
 *   |  |  | w | a | r | p |                line 2   | 2 3 0 1 6 7 4 5 |   chunk c of line l lies at
 *   +--+  +---+---+---+---+                  ...                          c ^ swizzle(l), so that what a
 *   |  |  | s |   |   |   |            warp reads at once falls into different banks.
 *   +--+  +---+---+---+---+
 *
 * An item multiplies groups of 8 rows of A by groups of 8 columns of B: item (g, t) = (lane / 4,
 * lane % 4) of a warp holds of each group line g, at k = t, t + 4... (16-bit: pairs of k), and of the
 * sums row g, columns 2 t and 2 t + 1.
 *
 * A's groups of the next step of k are read ahead; B's are read again as soon as they are used up.
 * Edges are zeros made by the copies, but a tile of f32 or f64 that is mostly inside is moved to where it is all
 * inside; a matrix whose lines are not aligned to 16 bytes is copied in smaller pieces.
 *
 * Learnt on an H100, f64 at 4096: m8n8k4 runs at half the rate of the wider instructions, and m16n8k8
 * is the best of these (m16n8k16 leaves no registers to read ahead); copies behind a branch, all
 * at once at the start of a slice, cost 5 %: hence a loop for whole slices, in which they lie
 * between products.  Pieces of 8 bytes: neighbours copied by neighbours, and no edges where tiles can be
 * moved, 4095 nn takes 2.51 ms (4096: 2.22), 2.69 before; spread over both steps of a slice they cost 8 %, for
 * reads then wait behind them, and a fifth stage gains nothing.
 *
 * Parameters, from gemm.tune: BLK_M BLK_N BLK_K WARP_M WARP_N STAGES, powers of two save STAGES, and
 * the instruction's MMA_M MMA_K: 16 16 for 16-bit types, 16 8 for tf32, for f64 8 4 or, on sm_90
 * and up, 16 4, 16 8, 16 16.
 * Fragments: the PTX ISA manual, "Matrix fragments for mma".  Method: multistage pipelines and
 * swizzles as in NVIDIA's CUTLASS for Ampere.
 */
#if TYPE == 3
#define SIZE      8
#define HALVES    (MMA_K == 16 ? 4 : 2)         /* registers of a line for a step of k */
#define STEP_K    (4 * HALVES)
#define FRAG      double
#elif TYPE == 0
#define SIZE      4
#define HALVES    2
#define STEP_K    8
#define FRAG      unsigned int
#else
#define SIZE      2
#define HALVES    2
#define STEP_K    16
#define FRAG      unsigned int
#endif
#define CHUNK     (16 / SIZE)                   /* numbers */
#define PIECE     (SIZE == 2 ? 4 : SIZE)        /* the least that is copied without registers */
#define PIECES    (16 / PIECE)                  /* of a chunk */
#define WARPS_M   (BLK_M / WARP_M)
#define WARPS_N   (BLK_N / WARP_N)
#define ITEMS     (32 * WARPS_M * WARPS_N)
#define GROUPS_M  (WARP_M / 8)
#define GROUPS_N  (WARP_N / 8)
#define UNITS_N   (GROUPS_N / UNIT(ACROSS_B))
#define STEPS     (BLK_K / STEP_K)
#define IN_TILES(across) (TYPE == 1 || TYPE == 2 || (TYPE == 0 && !(across)))
#define UNIT(across)     (IN_TILES(across) ? 2 : 1)     /* groups that one read brings */
#define AHEAD     (HALVES == 2 ? 2 : 1)         /* steps of A in registers */
#define BYTES_A   (BLK_M * BLK_K * SIZE)
#define STAGE     (BYTES_A + BLK_N * BLK_K * SIZE)
#define BAND      8

#define LINES(width, across)  ((across) ? BLK_K : (width))
#define CHUNKS(width, across) (((across) ? (width) : BLK_K) / CHUNK)
#define EACH_A    (BLK_M * BLK_K / CHUNK / ITEMS)       /* chunks of a slice that an item copies */
#define EACH_B    (BLK_N * BLK_K / CHUNK / ITEMS)

#define SUMS_N   (WARP_N / 4)                   /* an item's sums in one row */

#if TYPE == 3 ? MMA_M * MMA_K % 32 || (MMA_M == 8 && MMA_K > 4) : MMA_M != 16 || MMA_K != STEP_K
#error "there is no such instruction"
#endif
#if STEPS % AHEAD || BLK_K % STEP_K
#error "BLK_K must hold an even number of steps of k"
#endif
#if WARP_M % (8 * UNIT(ACROSS_A)) || WARP_N % (8 * UNIT(ACROSS_B)) || WARP_M % MMA_M
#error "a warp's tile must be made of whole reads"
#endif
#if ITEMS % (CHUNKS(BLK_M, ACROSS_A) * PIECES) || ITEMS % (CHUNKS(BLK_N, ACROSS_B) * PIECES) || \
    BLK_M * BLK_K / CHUNK % ITEMS || BLK_N * BLK_K / CHUNK % ITEMS
#error "the items must share a slice evenly"
#endif
#if ITEMS * SUMS_N * (TYPE == 3 ? 8 : 4) > STAGES * STAGE
#error "a row of each item's sums must fit local memory"
#endif

LARGE_LOCAL(gemm_mma, STAGES * STAGE)

#define ITEM ((unsigned int)LOCAL_ID())         /* no sign: dividing by a power of two is then a shift */

/* Bytes from the start of a matrix: 32 bits without a sign make the shortest addresses. */
#if WIDE
#define OFFSET INT64
#else
#define OFFSET unsigned int
#endif

/* ---- where chunks lie in local memory ---------------------------------------------------- */

/* Bits of `line` that are XORed onto the number of a chunk. */
DEVICE unsigned int swizzle(int across, int chunks, unsigned int line)
{
    if (!IN_TILES(across))
        return (line & 3) << 1;                 /* a read: 32 bytes each of 4 lines */
    return chunks >= 8 ? line & 7 : chunks == 4 ? line >> 1 & 3 : line >> 2 & 1;        /* 16 of 8 */
}

/* `count` chunks further in the same line, count a constant: only low bits are swizzled. */
#define FURTHER(at, count) (((at) ^ ((count) & 7) << 4) + ((count) & ~7) * 16)

/* Where in a stage this item's reads begin; `first` is its warp's first row (column).  Of tiles,
 * half 1 is 8 lines on, and half 2 along k (A), or the other way round (B).                    */
DEVICE unsigned int read_start(int across, int chunks, unsigned int first, int is_b)
{
    const unsigned int lane = ITEM % 32, g = lane / 4, t = lane % 4;
    const unsigned int x = is_b ? lane / 16 : lane / 8 % 2, k = is_b ? lane / 8 % 2 : lane / 16;
    unsigned int line, number;

    if (IN_TILES(across)) {
        line   = across ? k * 8 + lane % 8 : first + x * 8 + lane % 8;
        number = across ? first + x * 8 : k * CHUNK;
    } else {
        line   = across ? t : first + g;
        number = across ? first + g : t;
    }
    return (line * chunks + (number / CHUNK ^ swizzle(across, chunks, line))) * 16 + number % CHUNK * SIZE;
}

/* ... and where its read of a group of lines and of a k does, both constants. */
DEVICE unsigned int read_at(int across, int chunks, unsigned int at, int group, int k)
{
    return FURTHER(at, (across ? group * 8 : k) / CHUNK) + (across ? k : group * 8) * chunks * 16;
}

/* Reads unit u of an operand's groups for one step of k into x[groups][HALVES]. */
#define READ_NUMBERS(load, x, across, chunks, at, u, step)                                              \
    UNROLL for (int h = 0; h < HALVES; h++)                                                             \
        load(x[u][h], read_at(across, chunks, at, u, (step) * STEP_K + 4 * h))
#define READ_TILES(how, x, across, chunks, at, u, step, is_b)                                           \
    LOAD_TILES(how, x[2 * (u)][0], x[2 * (u) + !is_b][is_b], x[2 * (u) + is_b][!is_b], x[2 * (u) + 1][1], \
               read_at(across, chunks, at, 2 * (u), (step) * STEP_K))
#if TYPE == 3
#define READ(x, across, chunks, at, u, step, is_b) READ_NUMBERS(LOAD_F64, x, across, chunks, at, u, step)
#else
#define READ(x, across, chunks, at, u, step, is_b)                                                      \
    do {                                                                                                \
        if (!IN_TILES(across))                                                                          \
            READ_NUMBERS(LOAD_B32, x, across, chunks, at, u, step);                                     \
        else if (across)                                                                                \
            READ_TILES(".trans", x, across, chunks, at, u, step, is_b);                                 \
        else                                                                                            \
            READ_TILES("", x, across, chunks, at, u, step, is_b);                                       \
    } while (0)
#endif

/* ---- one step of k ------------------------------------------------------------------------- */

/* d += a b, for all of a warp's rows and columns of group j. */
#if TYPE == 3 && MMA_M == 8
#define MULTIPLY(d, a, b, j, rows)                                                                      \
    UNROLL for (int h = 0; h < HALVES; h++)                                                             \
    UNROLL for (int i = 0; i < GROUPS_M; i++)                                                           \
        if (i < (rows)) MMA_F64_8x8x4(d[i][j], a[i][h], b[j][h])
#elif TYPE == 3 && MMA_K == 4
#define MULTIPLY(d, a, b, j, rows)                                                                      \
    UNROLL for (int h = 0; h < HALVES; h++)                                                             \
    UNROLL for (int i = 0; i < GROUPS_M; i += 2)                                                        \
        if (i < (rows)) MMA_F64_16x8x4(d[i][j], d[i + 1][j], a[i][h], a[i + 1][h], b[j][h])
#elif TYPE == 3 && MMA_K == 8
#define MULTIPLY(d, a, b, j, rows)                                                                      \
    UNROLL for (int i = 0; i < GROUPS_M; i += 2)                                                        \
        if (i < (rows)) MMA_F64_16x8x8(d[i][j], d[i + 1][j], a[i], a[i + 1], b[j])
#elif TYPE == 3
#define MULTIPLY(d, a, b, j, rows)                                                                      \
    UNROLL for (int i = 0; i < GROUPS_M; i += 2)                                                        \
        if (i < (rows)) MMA_F64_16x8x16(d[i][j], d[i + 1][j], a[i], a[i + 1], b[j])
#else
#define MULTIPLY(d, a, b, j, rows)                                                                      \
    UNROLL for (int i = 0; i < GROUPS_M; i += 2)                                                        \
        if (i < (rows)) MMA_F32(d[i][j], d[i + 1][j], a[i], a[i + 1], b[j])
#endif

/* Rounds what was read, where the engine takes less than an f32. */
#if TYPE == 0
#define ROUND(x, from, to)                                                                              \
    UNROLL for (int i = from; i < to; i++)                                                              \
    UNROLL for (int h = 0; h < HALVES; h++)                                                             \
        x[i][h] = tf32_bits(x[i][h])
#else
#define ROUND(x, from, to) do { } while (0)
#endif

/* ---- copies to local memory -------------------------------------------------------------- */

/* What an item copies of A or B: its first chunk in a slice, or piece of one, and those some lines further.
 * Neighbours copy neighbours, so that a warp's pieces lie side by side, too.                       */
struct operand {
    GLOBAL const char *from;                    /* at k = 0 */
    unsigned int to;                            /* in a stage */
    OFFSET pitch, step;                         /* bytes from line to line, and from number to number */
    int    line, first;                         /* of that: its line, its first number */
    int    whole, pieces;                       /* can be copied in chunks; in pieces of them */
    GLOBAL const char *safe;                    /* a place in it, at a multiple of 4 */
};

/* Do its lines run along memory, from multiples of so many bytes on? */
DEVICE int begins_at(int bytes, GLOBAL const T *g, INDEX along_k, INDEX along_x, int x0, int across)
{
    const OFFSET pitch = (OFFSET)(across ? along_k : along_x) * SIZE;

    return (across ? along_x : along_k) == 1 &&
           ((((UINT64)g + x0 * (OFFSET)along_x * SIZE) | pitch) & (UINT64)(bytes - 1)) == 0;
}

/* whole: may it be copied in chunks? */
DEVICE struct operand operand(GLOBAL const T *g, INDEX along_k, INDEX along_x, int x0,
                              int across, int chunks, int whole)
{
    struct operand o;
    const OFFSET k_step = (OFFSET)along_k * SIZE, x_step = (OFFSET)along_x * SIZE;

    o.pitch  = across ? k_step : x_step;
    o.step   = across ? x_step : k_step;
    o.from   = (GLOBAL const char *)g + x0 * x_step;
    o.whole  = whole;
    o.pieces = SIZE > 2 || begins_at(4, g, along_k, along_x, x0, across);
    o.safe   = o.from - ((UINT64)o.from & 3);
    if (whole || !o.pieces) {
        o.line  = (int)(ITEM / chunks);
        o.first = (int)(ITEM % chunks) * CHUNK;
    } else {
        o.line  = (int)(ITEM / (chunks * PIECES));
        o.first = (int)(ITEM % (chunks * PIECES)) * (PIECE / SIZE);
    }
    o.to     = (o.line * chunks + (o.first / CHUNK ^ swizzle(across, chunks, o.line))) * 16 + o.first % CHUNK * SIZE;
    o.from  += o.line * o.pitch + o.first * o.step;
    return o;
}

/* Past the edges zeros: `lines_left` and `left` say what there is of lines, and in a line.  per: pieces that a
 * chunk is copied in.                                                                              */
#define EACH(lines, chunks)    ((lines) * (chunks) / ITEMS)
#define APART(per)             (ITEMS / (chunks) / (per))       /* lines */
#define THERE(i, per) (o->line + (i) * APART(per) >= lines_left || left <= o->first ? 0      \
                       : left - o->first < CHUNK / (per) ? left - o->first : CHUNK / (per))
#define FROM(i, per)  (from + (i) * APART(per) * o->pitch)
#define TO(i, per)    ((to ^ swizzle(across, chunks, (i) * APART(per)) << 4) + (i) * ITEMS * (16 / (per)))

/* A chunk, or a piece of one, all of which is there and runs along memory. */
DEVICE void copy_one(const struct operand *o, GLOBAL const char *from, unsigned int to,
                     int across, int chunks, int i, int in_pieces)
{
    if (in_pieces)
        COPY_ASYNC_PART(PIECE, TO(i, PIECES), FROM(i, PIECES), PIECE);
    else
        COPY_ASYNC16(TO(i, 1), FROM(i, 1));
}

DEVICE void bring_pieces(const struct operand *o, GLOBAL const char *from, unsigned int to,
                         int across, int lines, int chunks, int lines_left, int left)
{
    NO_UNROLL for (int i = 0; i < EACH(lines, chunks) * PIECES; i++) {
        const int there = THERE(i, PIECES);

        COPY_ASYNC_PART(PIECE, TO(i, PIECES), there ? FROM(i, PIECES) : from, there * SIZE);
    }
}

#if SIZE == 2
#define AT_ONCE (EACH_A % 4 == 0 && EACH_B % 4 == 0 ? 4 : EACH_A % 2 == 0 && EACH_B % 2 == 0 ? 2 : 1)

/* Lines that begin anywhere pass through registers, in words of 32 bits that may hold a neighbour. */
DEVICE void bring_shifted(const struct operand *o, GLOBAL const char *from, unsigned int to,
                          int across, int lines, int chunks, int lines_left, int left)
{
    NO_UNROLL for (int i0 = 0; i0 < EACH(lines, chunks); i0 += AT_ONCE) {
        UINT32 word[AT_ONCE][CHUNK / 2 + 1];

        UNROLL for (int j = 0; j < AT_ONCE; j++) {
            const int i = i0 + j, there = THERE(i, 1), odd = there ? (int)((UINT64)FROM(i, 1) & 2) : 0;
            GLOBAL const char *begin = there ? FROM(i, 1) : o->safe;

            UNROLL for (int e = 0; e <= CHUNK / 2; e++)     /* always: a branch would wait for each */
                word[j][e] = *(GLOBAL const UINT32 *)(begin - odd + (2 * e < there + odd / 2 ? 4 * e : 0));
        }
        UNROLL for (int j = 0; j < AT_ONCE; j++) {
            const int i = i0 + j, there = THERE(i, 1), odd = (int)((UINT64)FROM(i, 1) & 2);
            UINT32 pair[CHUNK / 2];

            UNROLL for (int e = 0; e < CHUNK / 2; e++) {
                const UINT32 both = odd ? word[j][e] >> 16 | word[j][e + 1] << 16 : word[j][e];

                pair[e] = 2 * e + 1 < there ? both : 2 * e < there ? both & 0xffff : 0;
            }
            STORE_B32X4(TO(i, 1), pair[0], pair[1], pair[2], pair[3]);
        }
    }
}

/* ... and what does not even run along memory, number by number. */
DEVICE void bring_numbers(const struct operand *o, GLOBAL const char *from, unsigned int to,
                          int across, int lines, int chunks, int lines_left, int left)
{
    NO_UNROLL for (int i = 0; i < EACH(lines, chunks); i++) {
        const int there = THERE(i, 1);
        UINT32 pair[CHUNK / 2];

        UNROLL for (int e = 0; e < CHUNK; e += 2) {
            const UINT32 low  = e < there ? *(GLOBAL const UINT16 *)(FROM(i, 1) + e * o->step) : 0;
            const UINT32 high = e + 1 < there ? *(GLOBAL const UINT16 *)(FROM(i, 1) + (e + 1) * o->step) : 0;

            pair[e / 2] = low | high << 16;
        }
        STORE_B32X4(TO(i, 1), pair[0], pair[1], pair[2], pair[3]);
    }
}
#endif

/* A slice of an operand, from the k at which `from` points, to the stage at `to`. */
DEVICE void bring(const struct operand *o, GLOBAL const char *from, unsigned int to,
                  int across, int lines, int chunks, int lines_left, int left)
{
    to += o->to;
    if (o->whole)
        UNROLL for (int i = 0; i < EACH(lines, chunks); i++) {
            const int there = THERE(i, 1);

            COPY_ASYNC16_PART(TO(i, 1), there ? FROM(i, 1) : from, there * SIZE);
        }
#if SIZE == 2
    else if (!o->pieces && o->step == SIZE)
        bring_shifted(o, from, to, across, lines, chunks, lines_left, left);
    else if (!o->pieces)
        bring_numbers(o, from, to, across, lines, chunks, lines_left, left);
#endif
    else
        bring_pieces(o, from, to, across, lines, chunks, lines_left, left);
}

#define K_STEP(o, across) (BLK_K * (across ? o.pitch : o.step))         /* bytes from slice to slice */
#define BRING(o, slice, to, across, width, x_left)                                                      \
    bring(&o, o.from + (slice) * K_STEP(o, across), to, across,                                         \
          LINES(width, across), CHUNKS(width, across),                                                  \
          across ? K - (slice) * BLK_K : x_left, across ? x_left : K - (slice) * BLK_K)

/* Where the tile at `first` is computed: one that is mostly there, a little before, so that it has no edge;
 * of one that is mostly outside, products are left out.                                            */
DEVICE int shifted(int first, int width, int all)
{
    const int left = all - first;

    return SIZE > 2 && left > width / 2 && left < width && all >= width ? all - width : first;
}

KERNEL(ITEMS) void
gemm_mma(int M, int N, int K, VIEW eC, R alpha,
         GLOBAL const T *RESTRICT gA, VIEW vA,
         GLOBAL const T *RESTRICT gB, VIEW vB, R beta,
         GLOBAL T *RESTRICT gC, VIEW vC,
         int has_bias, GLOBAL const T *RESTRICT gBias, VIEW vBias, int act)
{
    LARGE_LOCAL_ARRAY(sAB, STAGES * STAGE);

    const int tiles_m = (M + BLK_M - 1) / BLK_M, tiles_n = (N + BLK_N - 1) / BLK_N;
    const int batch = GROUP_ID(0) / (tiles_m * tiles_n);
    const int tile = GROUP_ID(0) % (tiles_m * tiles_n);
    const int band = tile / (BAND * tiles_n);
    const int band_rows = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const int first_m = (band * BAND + tile % (BAND * tiles_n) % band_rows) * BLK_M;
    const int first_n = tile % (BAND * tiles_n) / band_rows * BLK_N;
    const int m0 = shifted(first_m, BLK_M, M), n0 = shifted(first_n, BLK_N, N);
    const int m1 = (int)(ITEM / 32 / WARPS_N) * WARP_M, n1 = (int)(ITEM / 32 % WARPS_N) * WARP_N;
    const int slices = (K + BLK_K - 1) / BLK_K;
    const unsigned int stages = LOCAL_ADDRESS(sAB);
    const unsigned int start_a = read_start(ACROSS_A, CHUNKS(BLK_M, ACROSS_A), m1, 0);
    const unsigned int start_b = read_start(ACROSS_B, CHUNKS(BLK_N, ACROSS_B), n1, 1) + BYTES_A;
    GLOBAL const T *const from_a0 = gA + batch_offset(vA, eC, batch), *const from_b0 = gB + batch_offset(vB, eC, batch);
#define BEGINS_A(bytes) begins_at(bytes, from_a0, (INDEX)vA.s6, (INDEX)vA.s5, m0, ACROSS_A)
#define BEGINS_B(bytes) begins_at(bytes, from_b0, (INDEX)vB.s5, (INDEX)vB.s6, n0, ACROSS_B)
    const int whole_a = BEGINS_A(16), whole_b = BEGINS_B(16);       /* one in pieces, both in pieces */
    const struct operand a = operand(from_a0, (INDEX)vA.s6, (INDEX)vA.s5, m0, ACROSS_A, CHUNKS(BLK_M, ACROSS_A),
                                     whole_a && (whole_b || (SIZE == 2 && !BEGINS_B(4))));
    const struct operand b = operand(from_b0, (INDEX)vB.s5, (INDEX)vB.s6, n0, ACROSS_B, CHUNKS(BLK_N, ACROSS_B),
                                     whole_b && (whole_a || (SIZE == 2 && !BEGINS_A(4))));
    FRAG rA[AHEAD][GROUPS_M][HALVES], rB[GROUPS_N][HALVES];
    R rC[GROUPS_M][GROUPS_N][2];
    unsigned int here = stages, there = stages;         /* the stages that are read, and written */

    UNROLL for (int i = 0; i < GROUPS_M; i++)
    UNROLL for (int j = 0; j < GROUPS_N; j++)
        rC[i][j][0] = rC[i][j][1] = ZERO;

#define NEXT_STAGE(at) ((at) == stages + (STAGES - 1) * STAGE ? stages : (at) + STAGE)
#define BRING_SLICE(slice)                                                                              \
    do {                                                                                                \
        if ((slice) < slices) {                                                                         \
            BRING(a, slice, there, ACROSS_A, BLK_M, M - m0);                                            \
            BRING(b, slice, there + BYTES_A, ACROSS_B, BLK_N, N - n0);                                  \
        }                                                                                               \
        copies_commit();                        /* also when empty: groups are counted */               \
        there = NEXT_STAGE(there);                                                                      \
    } while (0)
#define READ_A(which, step)                                                                             \
    UNROLL for (int u = 0; u < GROUPS_M / UNIT(ACROSS_A); u++)                                          \
        READ(rA[which], ACROSS_A, CHUNKS(BLK_M, ACROSS_A), here + start_a, u, step, 0)
#define READ_B(u, step) READ(rB, ACROSS_B, CHUNKS(BLK_N, ACROSS_B), here + start_b, u, step, 1)

    NO_UNROLL for (int i = 0; i < STAGES - 1; i++)
        BRING_SLICE(i);
    COPIES_WAIT(STAGES - 2);
    BARRIER();
    READ_A(0, 0);
    UNROLL for (int u = 0; u < UNITS_N; u++)
        READ_B(u, 0);

    /* First, while whole slices are copied, without a branch, which products would wait for: copies
     * are spread over those of the first step; then the other slices.                           */
    enum { CHUNKS_WHOLE, IN_PIECES, EDGES, WAYS };
#define PER(way)  ((way) == IN_PIECES ? PIECES : 1)
#define DUE(u, way) ((u) * (EACH_A + EACH_B) * PER(way) / UNITS_N)

    const int inside = M - m0 >= BLK_M && N - n0 >= BLK_N, last = K / BLK_K - (STAGES - 1);
    const int in_lines = inside && a.pieces && b.pieces && a.step == SIZE && b.step == SIZE;
    const int ends[WAYS] = { inside && a.whole && b.whole ? last : 0, in_lines ? last : 0, slices };
    const int rows = (M - m0 - m1 + 7) / 8, columns = N - n0 - n1;
    int slice = 0;

    UNROLL for (int way = 0; way < WAYS; way++)
    NO_UNROLL for (; slice < ends[way]; slice++) {
        GLOBAL const char *from_a = a.from + (slice + STAGES - 1) * K_STEP(a, ACROSS_A);
        GLOBAL const char *from_b = b.from + (slice + STAGES - 1) * K_STEP(b, ACROSS_B);

        UNROLL for (int step = 0; step < STEPS; step++) {
            const int now = step % AHEAD, then = (step + 1) % AHEAD, next = (step + 1) % STEPS;

            if (step == STEPS - 1) {            /* the next slice is there for all; this one is read */
                COPIES_WAIT(STEPS > 1 ? STAGES - 2 : STAGES - 3);
                BARRIER();
                here = NEXT_STAGE(here);
            }
            if (step == 0 && way == EDGES)      /* to where the slice before this was */
                BRING_SLICE(slice + STAGES - 1);
            if (AHEAD == 2)
                READ_A(then, next);
            ROUND(rA[now], 0, GROUPS_M);
            UNROLL for (int u = 0; u < UNITS_N; u++) {
                if (step == 0 && way != EDGES)
                    UNROLL for (int i = DUE(u, way); i < DUE(u + 1, way); i++) {
                        if (i < EACH_A * PER(way))
                            copy_one(&a, from_a, there + a.to, ACROSS_A, CHUNKS(BLK_M, ACROSS_A), i, way);
                        else
                            copy_one(&b, from_b, there + BYTES_A + b.to, ACROSS_B, CHUNKS(BLK_N, ACROSS_B),
                                     i - EACH_A * PER(way), way);
                    }
                ROUND(rB, u * UNIT(ACROSS_B), (u + 1) * UNIT(ACROSS_B));
                UNROLL for (int j = u * UNIT(ACROSS_B); j < (u + 1) * UNIT(ACROSS_B); j++) {
                    if (way != EDGES) {
                        MULTIPLY(rC, rA[now], rB, j, GROUPS_M);
                    } else if (j * 8 < columns) {
                        MULTIPLY(rC, rA[now], rB, j, rows);
                    }
                }
                READ_B(u, next);
            }
            if (step == 0 && way != EDGES) {
                copies_commit();
                there = NEXT_STAGE(there);
            }
            if (AHEAD == 1)
                READ_A(0, next);
        }
    }

    /* An item's sums v of group i: pairs of columns, 8 apart. */
#define ROW(i)    (8 * (i) + g)
#define COLUMN(v) (8 * ((v) / 2) + 2 * t + (v) % 2)
#define SUM(i, v) rC[i][(v) / 2][(v) % 2]

    const int g = (int)(ITEM % 32 / 4), t = (int)(ITEM % 4);
    const INDEX c0 = batch_offset(vC, eC, batch), bias0 = batch_offset(vBias, eC, batch);
    const int plain = beta == ZERO && !has_bias && act == 0;
    const int in_pairs = n0 % 2 == 0 && vC.s6 == 1 && vC.s5 % 2 == 0 && (UINT64)(gC + c0) % (2 * SIZE) == 0;
    LOCAL R *mine = (LOCAL R *)sAB + ITEM * SUMS_N;     /* a row of sums, where a loop can index it */

    BARRIER();
    UNROLL for (int i = 0; i < GROUPS_M; i++) {
        const int m = m0 + m1 + ROW(i);
        const INDEX at = c0 + m * (INDEX)vC.s5, bias_at = bias0 + m * (INDEX)vBias.s5;

        if (m >= first_m && m < M && plain)
            UNROLL for (int v = 0; v < SUMS_N; v += 2) {
                const int n = n0 + n1 + COLUMN(v);

                if (n >= first_n && n + 1 < N && in_pairs) {
                    STORE_PAIR(gC + at + n, alpha * SUM(i, v), alpha * SUM(i, v + 1));
                } else {
                    if (n >= first_n && n < N)
                        STORE(gC, at + n * (INDEX)vC.s6, alpha * SUM(i, v));
                    if (n + 1 >= first_n && n + 1 < N)
                        STORE(gC, at + (n + 1) * (INDEX)vC.s6, alpha * SUM(i, v + 1));
                }
            }
        else if (m >= first_m && m < M) {
            UNROLL for (int v = 0; v < SUMS_N; v++)
                mine[v] = SUM(i, v);
            NO_UNROLL for (int v = 0; v < SUMS_N; v++) {
                const int n = n0 + n1 + COLUMN(v);

                if (n >= first_n && n < N)
                    STORE(gC, at + n * (INDEX)vC.s6,
                          epilogue(mine[v], alpha, beta, gC, at + n * (INDEX)vC.s6,
                                   has_bias, gBias, bias_at + n * (INDEX)vBias.s6, act));
            }
        }
    }
}
