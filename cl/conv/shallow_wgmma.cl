/* cl/conv/shallow_wgmma.cl - convolution of images of few channels, in 16-bit types, for NVIDIA's sm_90
 *
 * The rows of wgmma's A overlap: they are units of the source (cl/conv/shallow_units.h), which is there once.
 *
 * A warpgroup computes 64 outputs of a row by BLK_N channels; the filter stays in local memory, as units of
 * BLK_N channels each.  Another warpgroup loads the rows of the source.  A work-group computes adjacent rows
 * of all bands.
 *
 * Taps that complete a unit are zeros, and meet pixels.  A sum that is not finite may be so for them alone:
 * it is computed again, by multiply-adds of what there is.
 *
 * Parameters, from conv.tune: BLK_N, STAGES, WARPGROUPS; ACROSS_STRIP of these are side by side in a strip;
 * TAP_ROWS at most; TENANTS, work-groups of a compute unit.  Constants: STRIDE; UNITS, an even number; WORDS,
 * as of shallow_units.h; BIAS_OF_CHANNELS; ACROSS.
 */
#define ROWS_AT    (TAP_ROWS * UNITS * BLK_N * 16)
#define CONSUMERS  (128 * WARPGROUPS)
#define ITEMS      (CONSUMERS + PRODUCERS)
#define TOGETHER   (WARPGROUPS / ACROSS_STRIP)  /* rows of the output that are computed at a time */
#define TAP_FLIGHT 4                            /* units of the filter that an item has on their way */
#define TAP_RUN    (8 / UNITS * UNITS)          /* units of the filter of a channel that follow each other */

LARGE_LOCAL(conv_shallow_wgmma, ROWS_AT + STAGES * STAGE_ROOM)

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

/* The sums of 64 outputs of a row.  Descriptors: a of their first units in stage 0, b of the filter. */
DEVICE void multiply_row(float *d, unsigned INT64 a, unsigned INT64 b, int stage, int taps_h)
{
    unsigned INT64 row = a + stage * (STAGE_ROOM / 16);

    int r = 0;

    NO_UNROLL for (; r + STRIDE <= taps_h; r += STRIDE) {
        wgmma_begin();                          /* on each path: one that the compiler adds serializes all */
        UNROLL for (int i = 0; i < STRIDE; i++)
            UNROLL for (int k = 0; k < UNITS; k += 2)
                MULTIPLY(d, row + (i * ROW_UNITS + k), b + (i * UNITS + k) * BLK_N, r + i + k > 0);
        b += STRIDE * UNITS * BLK_N;
        row += STAGE_ROOM / 16;
        if (++stage == STAGES) {
            stage = 0;
            row = a;
        }
    }
    if (r < taps_h) {                           /* of a stride of 2, one row */
        wgmma_begin();
        UNROLL for (int k = 0; k < UNITS; k += 2)
            MULTIPLY(d, row + k, b + k * BLK_N, r + k > 0);
    }
    wgmma_begin();
    wgmma_commit();
    WGMMA_WAIT(BLK_N, d, "0");
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
        UINT32 bias_row[BIAS_ROW(ACCUMULATORS)];

        load_filter(taps, gA, vA, eTaps, (int)vBands.s5, n0, N);
        prepare_tile(bias_row, &c, ACCUMULATORS, n0, lane);
        fence_async_proxy();
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
                if (any_in_warp(!acc_finite(d, ACCUMULATORS))) {
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
