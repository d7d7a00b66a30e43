/* cl/conv/shallow_wgmma.cl - convolution of images of few channels, in 16-bit types, for NVIDIA's sm_90
 *
 * A row of the source lies in local memory as units of 16 bytes: the elements of STRIDE pixels, at most 8,
 * and zeros.  What the next output of a row reads begins a unit further, so that the rows of wgmma's A
 * overlap, and the source is there once:
 *
 *     a row of the source       u0 u1 u2 u3 u4 u5 ...
 *     output 0, a row of taps   u0 u1 u2 u3              UNITS of them
 *     output 1                     u1 u2 u3 u4
 *
 * A warpgroup computes 64 outputs of a row by BLK_N channels; the filter stays in local memory, as units of
 * BLK_N channels each.  Another warpgroup loads the rows of the source, STRIDE of them to a stage, each once
 * for all outputs of a band: a run of rows of one image, of STRIP columns at most.  A work-group computes
 * adjacent rows of all bands.
 *
 * Taps that complete a unit are zeros, and meet pixels.  A sum that is not finite may be so for them alone:
 * it is computed again, by multiply-adds of what there is.
 *
 *     vBands   s0 rows of the output in all bands; s1 of a work-group; s2 bands across an image; s3 rows of
 *              an image and s4 bands across it, as prepared divisors; s5 taps of zeros before the first of
 *              a row; s6 words of a unit that are not zeros
 *
 * Parameters, from conv.tune: BLK_N, STAGES, WARPGROUPS; ACROSS_STRIP of these are side by side in a strip;
 * TAP_ROWS at most; TENANTS, work-groups of a compute unit.  Constants: STRIDE; UNITS, an even number;
 * WORDS, 1 where a unit is words of the source that follow each other; BIAS_OF_CHANNELS; ACROSS.
 */
#define STRIP      (64 * ACROSS_STRIP)
#define ROW_UNITS  (STRIP + UNITS)              /* of a row of the source */
#define STAGE_ROOM (STRIDE * ROW_UNITS * 16)
#define ROWS_AT    (TAP_ROWS * UNITS * BLK_N * 16)
#define PRODUCERS  128
#define CONSUMERS  (128 * WARPGROUPS)
#define ITEMS      (CONSUMERS + PRODUCERS)
#define TOGETHER   (WARPGROUPS / ACROSS_STRIP)  /* rows of the output that are computed at a time */
#define FLIGHT     ((STRIDE * ROW_UNITS + PRODUCERS - 1) / PRODUCERS)   /* units of a stage for each item */
#define TAP_FLIGHT 4                            /* units of the filter that an item has on their way */
#define TAP_RUN    (8 / UNITS * UNITS)          /* units of the filter of a channel that follow each other */
#define LAG        (WORDS ? 3 : 0)              /* stages whose copies are on their way */

LARGE_LOCAL(conv_shallow_wgmma, ROWS_AT + STAGES * STAGE_ROOM)

/* Rows of the output in one strip of an image, or as many as the work-group has of them. */
struct band { int n, strip, h, count; };

DEVICE struct band band_of(int at, int end, VIEW vBands, int height)
{
    const int of = divided(at, (INT64)vBands.s3), n = divided(of, (INT64)vBands.s4), h = at - of * height;
    const int left = height - h < end - at ? height - h : end - at;
    const struct band b = { n, of - n * (int)vBands.s2, h, left };

    return b;
}

/* The elements of a unit: their pixels, counted from its first, and their offsets. */
struct unit { int w[8]; INDEX at[8]; };

DEVICE void unit_of(struct unit *u, int channels, INDEX pixel, INDEX channel)
{
    int w = 0, c = 0;

    UNROLL for (int e = 0; e < 8; e++) {
        u->w[e] = w < STRIDE && c < channels ? w : -(1 << 29);          /* or one that no row has */
        u->at[e] = w * pixel + c * channel;
        if (++c == (WORDS ? channels : 8 / STRIDE)) {
            c = 0;
            w++;
        }
    }
}

/* ... as words, of a row of W pixels from pixel x on, whose offset is `first`. */
DEVICE void load_unit(UINT32 *word, const struct unit *u, GLOBAL const T *from, INDEX first, int x, int W,
                      int is_row)
{
    W = is_row ? W : 0;
    UNROLL for (int e = 0; e < 8; e++) {
        const int is = (UINT32)(x + u->w[e]) < (UINT32)W;
        const UINT32 bits = is ? ((GLOBAL const T_BITS *)from)[first + u->at[e]] : 0;

        word[e / 2] = e % 2 ? word[e / 2] | bits << 16 : bits;
    }
}

/* The i-th unit of the filter: unit j of row r of the taps of channel n.  A warp has four adjacent channels,
 * whose units are in adjacent banks, by adjacent units, which share lines of memory. */
struct place { int n, r, j; };

DEVICE struct place place_of(UINT32 i)
{
    const UINT32 run = i / 4 % TAP_RUN, block = i / (4 * TAP_RUN);
    const struct place p = { (int)(block % (BLK_N / 4) * 4 + i % 4),
                             (int)(block / (BLK_N / 4) * (TAP_RUN / UNITS) + run / UNITS),
                             (int)(run % UNITS) };

    return p;
}

/* By the consumers. */
DEVICE void load_filter(UINT32 to, GLOBAL const T *gA, VIEW vA, VIEW eTaps, int skip, int n0, int N)
{
    const UINT32 rows = TAP_RUN / UNITS, count = ((UINT32)eTaps.s5 + rows - 1) / rows * (TAP_RUN * BLK_N);
    struct unit unit;

    unit_of(&unit, (int)eTaps.s3, (INDEX)vA.s6, (INDEX)vA.s3);
    for (UINT32 first = (UINT32)LOCAL_ID(); first < count; first += TAP_FLIGHT * CONSUMERS) {
        UINT32 u[TAP_FLIGHT][4];

        UNROLL for (int f = 0; f < TAP_FLIGHT; f++) {
            const struct place p = place_of(first + f * CONSUMERS);

            load_unit(u[f], &unit, gA, OFFSET(vA, 0, n0 + p.n, 0, 0, p.r, p.j * STRIDE - skip),
                      p.j * STRIDE - skip, (int)eTaps.s6, p.r < (int)eTaps.s5 && n0 + p.n < N);
        }
        UNROLL for (int f = 0; f < TAP_FLIGHT; f++) {
            const struct place p = place_of(first + f * CONSUMERS);

            if (p.r < (int)eTaps.s5)
                STORE_B32X4(to + ((p.r * UNITS + p.j) * BLK_N + p.n) * 16, u[f][0], u[f][1], u[f][2],
                            u[f][3]);
        }
    }
}

/* The producers: a stage of a band, whose rows begin at y.  units: of a row. */
DEVICE struct pipeline load_stage(struct pipeline p, UINT32 rows, GLOBAL const T *gB, VIEW vB, VIEW eIn,
                                  int n, int y, int x, int units, int channels, int words)
{
    const int me = LOCAL_ID() % PRODUCERS, fresh = p.fresh > 0;
    const UINT32 to = rows + p.stage * STAGE_ROOM + me * 16;
    const INDEX first = OFFSET(vB, 0, n, 0, 0, y, x);
    struct unit elements;
    UINT32 u[FLIGHT][4];

    unit_of(&elements, channels, (INDEX)vB.s6, (INDEX)vB.s3);
    if (WORDS)
        p = producer_acquire(p);
    UNROLL for (int i = 0; i < FLIGHT; i++) {
        const int e = me + i * PRODUCERS, row = e / ROW_UNITS, unit = e % ROW_UNITS, w = x + unit * STRIDE;
        const int is_row = row < STRIDE && unit < units && (UINT32)(y + row) < (UINT32)eIn.s5;
        const INDEX at = first + row * (INDEX)vB.s5 + unit * (STRIDE * (INDEX)vB.s6);

        if (WORDS) {
            const int is = is_row && (UINT32)w < (UINT32)eIn.s6;

            if (fresh && row < STRIDE)
                STORE_B32X4(to + i * PRODUCERS * 16, 0, 0, 0, 0);
            UNROLL for (int k = 0; k < 4; k++)
                if (row < STRIDE && k < words)
                    COPY_ASYNC_OR_ZEROS(4, to + i * PRODUCERS * 16 + 4 * k, gB + at + 2 * k, is);
        } else {
            load_unit(u[i], &elements, gB, at, w, (int)eIn.s6, is_row);
        }
    }
    if (WORDS)
        return p;
    p = producer_acquire(p);
    UNROLL for (int i = 0; i < FLIGHT; i++)
        if (me + i * PRODUCERS < STRIDE * ROW_UNITS)
            STORE_B32X4(to + i * PRODUCERS * 16, u[i][0], u[i][1], u[i][2], u[i][3]);
    return p;
}

/* All stages of the work-group's bands; more: of a band beside one for each row of the output. */
DEVICE void load_bands(struct pipeline p, UINT32 rows, GLOBAL const T *gB, VIEW vB, VIEW eTaps, VIEW eIn,
                       VIEW eOut, VIEW vPad, VIEW vBands, int begin, int end, int more)
{
    const int height = (int)eOut.s5, x0 = -(int)vPad.s6 - (int)vBands.s5;
    const int bands = divided(end - 1, (INT64)vBands.s3) - divided(begin, (INT64)vBands.s3) + 1;
    const int total = end - begin + bands * more;
    struct band b = band_of(begin, end, vBands, height);
    struct pipeline filled = p;
    int at = begin, s = 0;

    for (int i = 0; i < total + LAG; i++) {
        if (i < total) {
            const int left = (int)eOut.s6 - b.strip * STRIP;

            p = load_stage(p, rows, gB, vB, eIn, b.n, (b.h + s) * STRIDE - (int)vPad.s5,
                           x0 + b.strip * STRIP * STRIDE, (left < STRIP ? left : STRIP) + UNITS - 1,
                           (int)eTaps.s3, (int)vBands.s6);
            p = pipe_next(p, STAGES);
            if (++s == b.count + more) {
                at += b.count;
                b = band_of(at, end, vBands, height);
                s = 0;
            }
        }
        copies_commit();
        if (i >= LAG) {
            COPIES_WAIT(LAG);
            wgmma_release();
            warp_meet();
            if (LOCAL_ID() % 32 == 0)
                barrier_arrive(pipe_full(filled));
            filled = pipe_next(filled, STAGES);
        }
    }
}

/* The stages of a band that a warpgroup has waited for, and those that it has released; how many. */
struct passage { struct pipeline read, done; int seen, passed; };

DEVICE void pass_to(struct passage *p, int passed, int seen)
{
    for (; p->passed < passed; p->passed++) {
        if (p->seen == p->passed) {
            consumer_wait(p->read);
            p->read = pipe_next(p->read, STAGES);
            p->seen++;
        }
        if (LOCAL_ID() % 128 == 0)
            consumer_release(p->done);
        p->done = pipe_next(p->done, STAGES);
    }
    for (; p->seen < seen; p->seen++) {
        consumer_wait(p->read);
        p->read = pipe_next(p->read, STAGES);
    }
}

/* The sums of 64 outputs of a row.  Descriptors: a of their first units in stage 0, b of the filter. */
DEVICE void multiply_row(float *d, unsigned INT64 a, unsigned INT64 b, int stage, int taps_h)
{
    unsigned INT64 row = a + stage * (STAGE_ROOM / 16);

    wgmma_begin();
    for (int r = 0; r < taps_h; r += STRIDE) {
        UNROLL for (int i = 0; i < STRIDE; i++)
            if (r + i < taps_h)
                UNROLL for (int k = 0; k < UNITS; k += 2)
                    MULTIPLY(d, row + (i * ROW_UNITS + k), b + (i * UNITS + k) * BLK_N, r + i + k > 0);
        b += STRIDE * UNITS * BLK_N;
        row += STAGE_ROOM / 16;
        if (++stage == STAGES) {
            stage = 0;
            row = a;
        }
    }
    wgmma_commit();
    WGMMA_WAIT(BLK_N, d, "0");
}

/* Whether a sum of the warp is not finite. */
DEVICE int is_infinite(const float *d)
{
    int finite = 1;

    UNROLL for (int i = 0; i < ACCUMULATORS; i++)
        finite &= ABS(d[i]) <= 3.0e38f;
    return any_in_warp(!finite);
}

/* The sum of channel k of an output by multiply-adds, of the taps that meet a pixel. */
DEVICE R exact_sum(GLOBAL const T *gA, VIEW vA, GLOBAL const T *gB, VIEW vB, VIEW eTaps, VIEW eIn, VIEW vPad,
                   int n, int k, int h, int w)
{
    R sum = ZERO;

    NO_UNROLL for (int r = 0; r < (int)eTaps.s5; r++)
    NO_UNROLL for (int s = 0; s < (int)eTaps.s6; s++) {
        const int y = h * STRIDE - (int)vPad.s5 + r, x = w * STRIDE - (int)vPad.s6 + s;

        if (y >= 0 && y < (int)eIn.s5 && x >= 0 && x < (int)eIn.s6)
            NO_UNROLL for (int c = 0; c < (int)eTaps.s3; c++)
                sum = FMA(LOAD(gB, OFFSET(vB, 0, n, c, 0, y, x)), LOAD(gA, OFFSET(vA, 0, k, c, 0, r, s)),
                          sum);
    }
    return sum;
}

/* The row of the output, for cl/tile/store.h, that has this pixel; none: there is no such. */
DEVICE int row_of(VIEW vC, VIEW eOut, int n, int h, int w, int none)
{
    if (w >= (int)eOut.s6)
        return none;
    return ACROSS ? (int)(n * (INDEX)vC.s2 + h * (INDEX)vC.s5 + w * (INDEX)vC.s6)
                  : (n * (int)eOut.s5 + h) * (int)eOut.s6 + w;
}

KERNEL_ROOM(ITEMS, TENANTS) void
conv_shallow_wgmma(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB, CONV_PARAMS,
                   VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet, R alpha, VIEW vBands)
{
    ROOM_FOR(TENANTS);
    LARGE_LOCAL_ARRAY(room, ROWS_AT + STAGES * STAGE_ROOM);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), N = (int)eOut.s3, n0 = GROUP_ID(1) * BLK_N;
    const int width = (int)eOut.s6, taps_h = (int)eTaps.s5, more = (taps_h - 1) / STRIDE;
    const int begin = GROUP_ID(0) * (int)vBands.s1, past = begin + (int)vBands.s1;
    const int end = past < (int)vBands.s0 ? past : (int)vBands.s0;
    const UINT32 taps = warp_uniform(LOCAL_ADDRESS(room)), rows = taps + ROWS_AT;
    struct pipeline p = pipe_at(barriers, STAGES);

    if (me == 0)
        pipe_init_for(p, STAGES, PRODUCERS / 32, WARPGROUPS);
    BARRIER();

    if (warp >= 4 * WARPGROUPS) {
        load_bands(p, rows, gB, vB, eTaps, eIn, eOut, vPad, vBands, begin, end, more);
    } else {
        const int column = warp / 4 % ACROSS_STRIP, r = acc_first_row(warp % 4, lane);
        const unsigned INT64 a = wgmma_columns(rows + column * 64 * 16, 1), b = wgmma_columns(taps, BLK_N);
        const struct output c = CONV_TILE_OUTPUT(conv_rows(eOut, vC), N);
        struct passage passage = { p, p, 0, 0 };
        float bias_row[BIAS_ROW(ACCUMULATORS)];

        load_filter(taps, gA, vA, eTaps, (int)vBands.s5, n0, N);
        prepare_tile(bias_row, &c, ACCUMULATORS, n0, lane);
        wgmma_release();
        bar_sync(1, CONSUMERS);
        for (int at = begin; at < end; ) {
            const struct band of = band_of(at, end, vBands, (int)eOut.s5);
            const int w0 = of.strip * STRIP + column * 64, stages = of.count + more;

            passage.seen = passage.passed = 0;
            for (int i = warp / 4 / ACROSS_STRIP; w0 < width && i < of.count; i += TOGETHER) {
                const int h = of.h + i, next = i + TOGETHER < of.count ? i + TOGETHER : stages;
                const int m = row_of(vC, eOut, of.n, h, w0 + r, c.M);
                const int m8 = row_of(vC, eOut, of.n, h, w0 + r + 8, c.M);
                float d[ACCUMULATORS];

                pass_to(&passage, i, i + more + 1);
                multiply_row(d, a, b, (int)passage.done.stage, taps_h);
                pass_to(&passage, next, next);
                if (is_infinite(d)) {
                    NO_UNROLL for (int j = 0; j < ACCUMULATORS; j++) {
                        const int w = w0 + r + ACC_ROW(j), k = n0 + acc_first_col(lane) + ACC_COL(j);

                        if (w < width && k < N)
                            store_element(&c, ACC_BELOW(j) ? m8 : m, k,
                                          exact_sum(gA, vA, gB, vB, eTaps, eIn, vPad, of.n, k, h, w));
                    }
                } else if (ACROSS) {
                    store_tile_across(&c, d, bias_row, ACCUMULATORS, m, m8, n0, lane);
                } else {
                    finish_tile(&c, d, bias_row, ACCUMULATORS, m, m8, n0, lane);
                    store_finished_rows(&c, d, ACCUMULATORS, m, m8, n0, lane);
                }
            }
            pass_to(&passage, stages, stages);
            at += of.count;
        }
    }
}
