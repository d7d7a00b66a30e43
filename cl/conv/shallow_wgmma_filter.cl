/* cl/conv/shallow_wgmma_filter.cl - the gradient of a filter of few channels, in 16-bit types, for NVIDIA's
 * sm_90
 *
 * The source lies in local memory as units (cl/conv/shallow_units.h).  For the j-th unit of all rows of taps
 * there is a product of 64 filters by those units, summed over the pixels of dy: row k of its B, which is
 * N-major, are the units of pixel k, and its next eight columns are a unit of the next row of the source.
 *
 *     row of taps 0    u0 u1 u2 u3 u4 u5 ...     j = 0: pixel 0 reads u0 and v0, pixel 1 reads u1 and v1
 *     row of taps 1    v0 v1 v2 v3 v4 v5 ...     j = 1: pixel 0 reads u1 and v1, pixel 1 reads u2 and v2
 *
 * A warpgroup sums every WARPGROUPS-th j.  Its A is in registers, loaded once for all j, which leaves local
 * memory to B.  A row of dy is a stage of its own pipeline, which TMA fills; outside of the image it is
 * zeros.  A work-group has adjacent rows of all bands, and stores its sums as a part that conv_columns_sum
 * adds.
 *
 * A pixel that is not there is a zero, and may meet infinity or NaN.  Sums that are not finite are computed
 * again, by fused multiply-adds of what there is.
 *
 * Parameters, from conv.tune: COLUMNS of dy in a band, STAGES of the source, STAGES_Y, WARPGROUPS, EACH of
 * which has so many j.  Constants: STRIDE; WORDS, as of shallow_units.h; BLK_R, 8 columns for each row of
 * taps, an even number of rows.
 */
#define CONSUMERS  (128 * WARPGROUPS)
#define MOVE       (EACH * BLK_R / 2 > 64)      /* consumers need more registers than their share */
#define ITEMS      (CONSUMERS + PRODUCERS + (MOVE ? 128 : 32))
#define OF_UNIT    (BLK_R / 2)                  /* accumulators of a j */
#define STAGE_Y    (COLUMNS * 128)
#define PART       ((COLUMNS / 16 + 1) / 2)     /* of 16 pixels each: a row is multiplied in two parts */
#define MAP_AT     (STAGES_Y * STAGE_Y)
#define ROWS_AT    (MAP_AT + MAP_BYTES)
#define LOCAL_BYTES (ROWS_AT + (STAGES + TWINS) * STAGE_ROOM)
#define MULTIPLY(d, a, b) WGMMA_RS(BLK_R, OPERAND_KIND, WGMMA_MAJOR_B(1), d, a, b, 1)

LARGE_LOCAL(conv_shallow_wgmma_filter, LOCAL_BYTES)

/* One work-item: the rows of dy. */
DEVICE void load_gradients(struct pipeline p, UINT32 stages, GLOBAL const unsigned INT64 *map, VIEW eY,
                           VIEW vBands, int box, int k0, int begin, int end)
{
    map_acquire(map);
    for (int at = begin; at < end; ) {
        const struct band b = band_of(at, end, vBands, (int)eY.s5);

        for (int i = 0; i < b.count; i++) {
            p = producer_acquire(p);
            producer_expect(p, box * 128);
            copy_box_4d(stages + p.stage * STAGE_Y, map, k0, b.strip * STRIP, b.h + i, b.n, pipe_full(p));
            p = pipe_next(p, STAGES_Y);
        }
        at += b.count;
    }
}

/* Of the lane: where it reads 16 pixels of dy, as A. */
DEVICE UINT32 fragment_offset(int warp, int lane)
{
    return (lane / 16 * 8 + lane % 8) * 128 + ((warp * 2 + lane / 8 % 2) ^ lane % 8) * 16;
}

/* Pixels 16 k to 16 (k + 1) of a row of dy as A in registers. */
#define LOAD_FRAGMENT(a, k, at) \
    LOAD_TILES(".trans", (a)[4 * (k)], (a)[4 * (k) + 1], (a)[4 * (k) + 2], (a)[4 * (k) + 3], \
               (at) + (k) * (16 * 128))

/* Their products, where `is`; committed in each branch, lest the compiler adds a product to wait for. */
#define MULTIPLY_PART(count, is)                                                                             \
    do {                                                                                                     \
        wgmma_begin();                                                                                       \
        UNROLL for (int k = 0; k < (count); k++)                                                             \
            UNROLL for (int j = 0; j < EACH; j++)                                                            \
                if (is)                                                                                      \
                    MULTIPLY(d + j * OF_UNIT, a + 4 * k, b + k * 16 + j * WARPGROUPS);                       \
        wgmma_commit();                                                                                      \
    } while (0)

/* Loads `count` of them, and adds their products; when it returns, those of the part before are there.
 * b: the descriptor of the first row of the source, from the warpgroup's first unit on; units: behind that in
 * a row of taps; steps: that there are. */
DEVICE void multiply_part(float *d, UINT32 *a, UINT32 at, unsigned INT64 b, const int count, int units,
                          int steps)
{
    UNROLL for (int k = 0; k < count; k++)
        LOAD_FRAGMENT(a, k, at);
    if (steps >= count && (EACH - 1) * WARPGROUPS < units)
        MULTIPLY_PART(count, 1);
    else
        MULTIPLY_PART(count, k < steps && j * WARPGROUPS < units);
    UNROLL for (int j = 0; j < EACH; j++)
        WGMMA_WAIT(BLK_R, d + j * OF_UNIT, "1");
}

/* What element e of a unit is: a tap, counted from the unit's first, and a channel, or -1. */
struct element { int s, c; };

DEVICE struct element element_of(int e, int channels)
{
    const int pixel = WORDS ? channels : 8 / STRIDE, s = quotient(e, pixel), c = e - s * pixel;
    const struct element of = { s, s < STRIDE && c < channels ? c : -1 };

    return of;
}

/* The column of a filter that accumulator i is of, or -1; e: of the lane's two columns; first: the unit of
 * accumulator 0. */
DEVICE int column_of(int i, int first, const struct element *e, VIEW eTaps, int skip, int pixel)
{
    const int r = i % OF_UNIT / 4, c = i % 2 ? e[1].c : e[0].c;
    const int s = (first + i / OF_UNIT * WARPGROUPS) * STRIDE + (i % 2 ? e[1].s : e[0].s) - skip;

    return r < (int)eTaps.s5 && s >= 0 && s < (int)eTaps.s6 && c >= 0 ? (r * (int)eTaps.s6 + s) * pixel + c
                                                                      : -1;
}

/* The sum of filter k and channel c of a tap by multiply-adds, of the pixels that there are. */
DEVICE R exact_gradient(GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gY, VIEW vY, VIEW eY, VIEW vPad,
                        VIEW vBands, int begin, int end, int k, int c, int r, int s)
{
    R sum = ZERO;

    NO_UNROLL for (int at = begin; at < end; at++) {
        const struct band b = band_of(at, end, vBands, (int)eY.s5);
        const int y = b.h * STRIDE - (int)vPad.s5 + r, w0 = b.strip * STRIP;
        const int past = w0 + STRIP < (int)eY.s6 ? w0 + STRIP : (int)eY.s6;

        NO_UNROLL for (int w = w0; w < past; w++) {
            const int x = w * STRIDE - (int)vPad.s6 + s;

            if (y >= 0 && y < (int)eX.s5 && x >= 0 && x < (int)eX.s6)
                sum = FMA(LOAD(gX, OFFSET(vX, 0, b.n, c, 0, y, x)),
                          LOAD(gY, OFFSET(vY, 0, b.n, k, 0, b.h, w)), sum);
        }
    }
    return sum;
}

/* eTaps, eX and eY: the extents of the filter, the source and dy; vPad: s5 and s6; pixel: columns of a tap;
 * box: columns of dy that are copied; units: of a row of taps. */
KERNEL_ROOM(ITEMS, 1) void
conv_shallow_wgmma_filter(GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gY, VIEW vY, VIEW eY,
                          VIEW eTaps, VIEW vPad, VIEW vBands, int tiles, int pixel, int box, int units,
                          GLOBAL unsigned INT64 *gMaps, int first_map, int kept,
                          GLOBAL float *RESTRICT gSums)
{
    ROOM_FOR(1);
    LARGE_LOCAL_ARRAY(room, LOCAL_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES));
    LOCAL_ARRAY(unsigned INT64, barriers_y, PIPE_BARRIERS(STAGES_Y));

    const int me = LOCAL_ID(), lane = me % 32, warp = this_warp(), more = ((int)eTaps.s5 - 1) / STRIDE;
    const int part = quotient(GROUP_ID(0), tiles), k0 = (GROUP_ID(0) - part * tiles) * 64;
    const int begin = part * (int)vBands.s1, past = begin + (int)vBands.s1;
    const int end = past < (int)vBands.s0 ? past : (int)vBands.s0;
    const UINT32 stages_y = warp_uniform(LOCAL_ADDRESS(room)), rows = stages_y + ROWS_AT;
    GLOBAL unsigned INT64 *const map = gMaps + first_map * (MAP_BYTES / 8);
    struct pipeline p = pipe_at(barriers, STAGES), y = pipe_at(barriers_y, STAGES_Y);

    if (!kept && warp == 0)
        box_map(map, (LOCAL UINT32 *)(room + MAP_AT), lane, OPERAND_TYPE, T_BYTES, gY + vY.s0, vY, eY, 1,
                box);
    if (me == 32) {
        pipe_init_for(p, STAGES, PRODUCERS / 32, WARPGROUPS);
        pipe_init(y, STAGES_Y, CONSUMERS / 32);
    }
    BARRIER();

    if (warp >= (CONSUMERS + PRODUCERS) / 32) {
        if (MOVE)
            REGISTERS_DROP(24);
        if (warp == (CONSUMERS + PRODUCERS) / 32 && is_elected())
            load_gradients(y, stages_y, map, eY, vBands, box, k0, begin, end);
    } else if (warp >= CONSUMERS / 32) {
        if (MOVE)
            REGISTERS_DROP(64);
        load_bands(p, rows, gX, vX, eTaps, eX, eY, vPad, vBands, begin, end, more);
    } else {
        const int first = warp / 4, m = acc_first_row(warp % 4, lane), skip = (int)vBands.s5;
        const int filters = (int)eY.s3 - k0 < 64 ? (int)eY.s3 - k0 : 64;
        const int columns = (int)(eTaps.s5 * eTaps.s6) * pixel;
        const UINT32 fragments = stages_y + fragment_offset(warp % 4, lane);
        const unsigned INT64 source = wgmma_planes(rows + first * 16, ROW_UNITS);
        const struct element e[2] = { element_of(acc_first_col(lane), (int)eTaps.s3),
                                      element_of(acc_first_col(lane) + 1, (int)eTaps.s3) };
        struct passage passage = { p, p, 0, 0 };
        struct pipeline row = p;
        UINT32 part0[4 * PART], part1[4 * (COLUMNS / 16 - PART)];
        float d[EACH * OF_UNIT];

        if (MOVE)
            REGISTERS_TAKE(208);
        UNROLL for (int i = 0; i < EACH * OF_UNIT; i++)
            d[i] = 0.0f;
        for (int at = begin; at < end; ) {
            const struct band of = band_of(at, end, vBands, (int)eY.s5);
            const int left = (int)eY.s6 - of.strip * STRIP, steps = ((left < STRIP ? left : STRIP) + 15) / 16;

            passage.seen = passage.passed = 0;
            for (int i = 0; i < of.count; i++) {
                const UINT32 a = fragments + y.stage * STAGE_Y;
                const unsigned INT64 b = source + row.stage * (STAGE_ROOM / 16);

                pass_to(&passage, 0, i + more + 1);
                consumer_wait(y);
                multiply_part(d, part0, a, b, PART, units - first, steps);
                pass_to(&passage, i, 0);        /* the row before is read */
                multiply_part(d, part1, a + PART * (16 * 128), b + PART * 16, COLUMNS / 16 - PART,
                              units - first, steps - PART);
                if (lane == 0)
                    consumer_release(y);
                y = pipe_next(y, STAGES_Y);
                row = pipe_next(row, STAGES);
            }
            UNROLL for (int j = 0; j < EACH; j++)
                WGMMA_WAIT(BLK_R, d + j * OF_UNIT, "0");
            pass_to(&passage, of.count + more, of.count + more);
            row = pipe_skip(row, more, STAGES);
            at += of.count;
        }
        if (!acc_finite(d, EACH * OF_UNIT)) {
            float copy[EACH * OF_UNIT];         /* where a loop can index them: what follows is long */

            UNROLL for (int i = 0; i < EACH * OF_UNIT; i++)
                copy[i] = d[i];
            NO_UNROLL for (int i = 0; i < EACH * OF_UNIT; i++) {
                const int at = column_of(i, first, e, eTaps, skip, pixel), tap = quotient(at, pixel);
                const int r = quotient(tap, (int)eTaps.s6);

                if (!(ABS(copy[i]) <= ACC_LARGEST) && at >= 0 && m + ACC_ROW(i) < filters)
                    copy[i] = exact_gradient(gX, vX, eX, gY, vY, eY, vPad, vBands, begin, end,
                                             k0 + m + ACC_ROW(i), at - tap * pixel, r,
                                             tap - r * (int)eTaps.s6);
            }
            UNROLL for (int i = 0; i < EACH * OF_UNIT; i++)
                d[i] = copy[i];
        }

        /* Through local memory, which nobody uses any more. */
        LOCAL float *const sums = (LOCAL float *)room;
        GLOBAL float *const to = gSums + ((INDEX)part * (int)eY.s3 + k0) * columns;

        bar_sync(1, CONSUMERS);
        UNROLL for (int i = 0; i < EACH * OF_UNIT; i++) {
            const int at = column_of(i, first, e, eTaps, skip, pixel);

            if (at >= 0)
                sums[(m + ACC_ROW(i)) * columns + at] = d[i];
        }
        bar_sync(1, CONSUMERS);
        for (int i = me; i < filters * columns / 4; i += CONSUMERS)
            ((GLOBAL float4 *)to)[i] = ((LOCAL const float4 *)sums)[i];
    }
}
