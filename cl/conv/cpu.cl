/* cl/conv/cpu.cl - convolution on CPUs: implicit GEMM in register tiles
 *
 *                      pixels                 A work-group of one work-item computes a panel of
 *                   +--+--+--+--+              THR_N pixels of up to BLK_M channels. BLK_K rows
 *     taps x        |  |  |sB|  |              (tap, channel) of the source are gathered into
 *     channels      |  |  |  |  |              local memory at a time; then each THR_M x THR_N
 *                   +--+--+--+--+              tile of accumulators is updated in registers.
 *     +-------+     +--+--+--+--+
 *     |   A   |     |  |  |sC|  |              A, the filter, is read in place: sK holds the offset
 *     +-------+     +--+--+--+--+              of each (tap, channel) from the start of a row.
 *
 * Pixels are gathered by lists that are made once for each tap: a panel is a few runs of pixels,
 * each contiguous in the source, so that a row of sB is copied by a few vector loads and stores.
 * Stores go from left to right and may write past their segment, which the next one overwrites.
 *
 * Backward filter is the product the other way round (rows: taps and channels of x, columns:
 * channels of y, sum: pixels): dy is transposed into sB once for all taps, x is read in place, and
 * pixels whose tap falls outside are left out of the list.
 *
 * With DEPTHWISE a row has one channel of its own, and gathers a row of sB for itself; only the
 * lists are shared.
 *
 * Parameters, from conv.tune: THR_M THR_V VEC BLK_M BLK_K (see cl/tile/cpu.h; THR_N is THR_V VEC).
 */

#define CHANNELS 32                             /* of a tap, before those of the next tap */

#if BLK_M % THR_M
#error "THR_M must divide BLK_M"
#endif

/* ---- the tile ------------------------------------------------------------------- */

/* sC += A sB, for THR_M rows of A and nv vectors of columns; nv is constant at each call.
 * `first`: sC := A sB.                                                                   */
DEVICE void tile(const int nv, GLOBAL const T *gA, INDEX row_stride, INDEX rows, LOCAL const INDEX *sK,
                 LOCAL const INDEX *sP, int depth, LOCAL const R *sB, LOCAL R *sC, int first)
{
    INDEX row[THR_M];
    RV c[THR_M][THR_V];

    UNROLL for (int m = 0; m < THR_M; m++)
        row[m] = imin(m, rows - 1) * row_stride;

    UNROLL for (int m = 0; m < THR_M; m++)
    UNROLL for (int v = 0; v < THR_V; v++)
        if (v < nv) {
            c[m][v] = (RV)(ZERO);
            if (!first)
                c[m][v] = VLOAD(VEC, sC + m * THR_N + v * VEC);
        }

    for (int k = 0; k < depth; k++) {
        const INDEX at = sK[k];
#if DIRECTION == 2
        LOCAL const R *b = sB + sP[k] * THR_N;
#else
        LOCAL const R *b = sB + k * THR_N;
#endif
        RV rB[THR_V];

        UNROLL for (int v = 0; v < THR_V; v++)
            if (v < nv)
                rB[v] = VLOAD(VEC, b + v * VEC);
        UNROLL for (int m = 0; m < THR_M; m++) {
            const RV a = (RV)(LOAD_BITS(gA, row[m] + at));

            UNROLL for (int v = 0; v < THR_V; v++)
                if (v < nv)
                    c[m][v] = FMA(a, rB[v], c[m][v]);
        }
    }

    UNROLL for (int m = 0; m < THR_M; m++)
    UNROLL for (int v = 0; v < THR_V; v++)
        if (v < nv)
            VSTORE(VEC, sC + m * THR_N + v * VEC, c[m][v]);
}

/* The tile of as many vectors as `columns` need; rows from `rows` on repeat the last one. */
DEVICE void tile_of(int columns, GLOBAL const T *gA, INDEX row_stride, INDEX rows, LOCAL const INDEX *sK,
                    LOCAL const INDEX *sP, int depth, LOCAL const R *sB, LOCAL R *sC, int first)
{
    switch ((columns + VEC - 1) / VEC) {
    case 1:  tile(1, gA, row_stride, rows, sK, sP, depth, sB, sC, first); break;
#if THR_V > 2
    case 2:  tile(2, gA, row_stride, rows, sK, sP, depth, sB, sC, first); break;
#endif
#if THR_V > 3
    case 3:  tile(3, gA, row_stride, rows, sK, sP, depth, sB, sC, first); break;
#endif
    default: tile(THR_V, gA, row_stride, rows, sK, sP, depth, sB, sC, first);
    }
}

/* Copies VEC elements, `step` apart; with a constant step this is a few vector instructions. */
DEVICE void copy_lanes(LOCAL R *to, GLOBAL const T *from, int step)
{
    for (int i = 0; i < VEC; i++)
        to[i] = LOAD_BITS(from, i * step);
}

#if DIRECTION != 2

/* ---- pixels ---------------------------------------------------------------------- */

/* Columns [at, at + length) of the panel: consecutive pixels of one row of an image. */
struct run  { int at, length; INDEX n, d, h, w; };
/* Columns [at, at + length) of the panel: their offset in the tensor, or below 0 where they are zeros. */
struct segment { int at, length; INDEX offset; };

DEVICE int find_runs(LOCAL struct run *run, INDEX column, int columns, INDEX depth, INDEX height, INDEX width)
{
    int n = 0;

    for (int j = 0; j < columns; n++) {
        INDEX image = column + j;
        const INDEX w = divmod(&image, width);
        const int length = (int)imin(width - w, columns - j);

        run[n].at = j;
        run[n].length = length;
        run[n].w = w;
        run[n].h = divmod(&image, height);
        run[n].d = divmod(&image, depth);
        run[n].n = image;
        j += length;
    }
    return n;
}

DEVICE int add_segments(LOCAL struct segment *segment, int n, int at, int length, INDEX offset, INDEX step)
{
    for (int j = 0; j < length; j += VEC, n++) {
        segment[n].at = at + j;
        segment[n].length = (int)imin(VEC, length - j);
        segment[n].offset = offset < 0 ? -1 : offset + j * step;
    }
    return n;
}

/* Finds the panel's pixels in the source, for one tap; 0 if all are in the padding. */
DEVICE int find_segments(LOCAL struct segment *segment, LOCAL const struct run *run, int runs,
                       INDEX shift_d, INDEX shift_h, INDEX shift_w, VIEW vStep, VIEW eIn, VIEW vB)
{
    const INDEX sw = SOURCE_STEP((INDEX)vStep.s6), width = (INDEX)eIn.s6;
    int n = 0, any = 0;

    for (int i = 0; i < runs; i++) {
        const INDEX d = run[i].d * SOURCE_STEP((INDEX)vStep.s4) + shift_d;
        const INDEX h = run[i].h * SOURCE_STEP((INDEX)vStep.s5) + shift_h;
        const INDEX w = run[i].w * sw + shift_w;
        const int length = run[i].length, at = run[i].at;
        int from = 0, past = 0;

        if (d >= 0 && d < (INDEX)eIn.s4 && h >= 0 && h < (INDEX)eIn.s5) {
            from = w < 0 ? (int)imin((sw - 1 - w) / sw, length) : 0;
            past = w < width ? (int)imin((width - w + sw - 1) / sw, length) : 0;
            past = past < from ? from : past;
        }
        n = add_segments(segment, n, at, from, -1, 0);
        n = add_segments(segment, n, at + from, past - from, run[i].n * (INDEX)vB.s2 + d * (INDEX)vB.s4 +
                       h * (INDEX)vB.s5 + (w + from * sw) * (INDEX)vB.s6, sw * (INDEX)vB.s6);
        n = add_segments(segment, n, at + past, length - past, -1, 0);
        any |= past > from;
    }
    return any ? n : 0;
}

/* Finds the panel's pixels in a tensor of the output's shape. `join`: runs that are contiguous there
 * become one segment.                                                                     */
DEVICE int find_output(LOCAL struct segment *segment, LOCAL const struct run *run, int runs,
                       INDEX phase_d, INDEX phase_h, INDEX phase_w, VIEW vStep, VIEW view, int join)
{
    const INDEX pitch = PIXEL_STEP((INDEX)vStep.s6) * (INDEX)view.s6;
    int n = 0;

    for (int i = 0; i < runs; i++) {
        const INDEX offset = run[i].n * (INDEX)view.s2
                          + (run[i].d * PIXEL_STEP((INDEX)vStep.s4) + phase_d) * (INDEX)view.s4
                          + (run[i].h * PIXEL_STEP((INDEX)vStep.s5) + phase_h) * (INDEX)view.s5
                          + (run[i].w * PIXEL_STEP((INDEX)vStep.s6) + phase_w) * (INDEX)view.s6;

        if (join && n && offset == segment[n - 1].offset + segment[n - 1].length * pitch) {
            segment[n - 1].length += run[i].length;
            continue;
        }
        segment[n].at = run[i].at;
        segment[n].length = run[i].length;
        segment[n++].offset = offset;
    }
    return n;
}

/* ---- gathering --------------------------------------------------------------------- */

/* Gathers one row of sB. From offset `whole` on, VEC elements would cross the end of the buffer. */
DEVICE void gather_row(LOCAL R *s, GLOBAL const T *gB, INDEX base, LOCAL const struct segment *segment,
                       int segments, INDEX step, INDEX whole)
{
    for (int i = 0; i < segments; i++) {
        LOCAL R *to = s + segment[i].at;
        const INDEX from = base + segment[i].offset;

        if (segment[i].offset < 0)
            VSTORE(VEC, to, (RV)(ZERO));
        else if (step == 1 && from < whole)
            copy_lanes(to, gB + from, 1);
        else if (step == 2 && from < whole)
            copy_lanes(to, gB + from, 2);
        else
            for (int j = 0; j < segment[i].length; j++)
                to[j] = LOAD_BITS(gB, from + j * step);
    }
}

/* Gathers `rows` rows of sB whose channels are contiguous in memory (NHWC). */
DEVICE void gather_channels(LOCAL R *s, int rows, GLOBAL const T *gB, INDEX base,
                            LOCAL const struct segment *segment, int segments, INDEX step)
{
    for (int i = 0; i < segments; i++)
        for (int j = 0; j < segment[i].length; j++) {
            LOCAL R *to = s + segment[i].at + j;
            const INDEX from = base + segment[i].offset + j * step;
            const int outside = segment[i].offset < 0;

            for (int k = 0; k < rows; k++)
                to[k * THR_N] = outside ? ZERO : LOAD_BITS(gB, from + k);
        }
}

/* sums += a s, for a row of the panel; `first`: sums := a s */
DEVICE void add_scaled(LOCAL R *sums, R a, LOCAL const R *s, int first)
{
    UNROLL for (int v = 0; v < THR_V; v++) {
        RV sum = (RV)(ZERO);

        if (!first)
            sum = VLOAD(VEC, sums + v * VEC);
        VSTORE(VEC, sums + v * VEC, FMA((RV)(a), VLOAD(VEC, s + v * VEC), sum));
    }
}

/* ---- storing ------------------------------------------------------------------------ */

/* Stores the row of accumulators at s through the epilogue, to `length` pixels `pitch` apart. */
DEVICE void store_run(const struct output *o, INDEX at, INDEX pitch, int length, LOCAL R *s,
                      INDEX residual_at, INDEX residual_pitch, INDEX bias_at, INDEX bias_pitch)
{
    int j = 0;

#if !RESIDUAL && ACT <= ACT_RELU
    if (pitch == 1 && BIAS * bias_pitch == 0) {
        const R bias = BIAS ? LOAD_BIAS(o->bias, bias_at) : ZERO;

        for (; j + VEC <= length; j += VEC)
            for (int i = 0; i < VEC; i++) {
                R v = o->alpha * s[j + i];

                v = BIAS ? v + bias : v;
                STORE_BITS(o->c, at + j + i, ACT ? PICK(v, ZERO, ZERO, v) : v);
            }
    }
#endif
    for (; j < length; j++)
        STORE_C(o->c, at + j * pitch, epilogue_at(o, residual_at + j * residual_pitch,
                                                  bias_at + j * bias_pitch, o->alpha * s[j]));
}

/* ---- forward and backward data --------------------------------------------------------- */

KERNEL(1) void
conv_cpu(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
         CONV_PARAMS,
         VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
         R alpha, int panels, int group_rows)
{
    LOCAL_ARRAY(R, sB, BLK_K * THR_N + VEC);
    LOCAL_ARRAY(R, sC, BLK_M * THR_N);
#if !DEPTHWISE
    LOCAL_ARRAY(INDEX, sK, BLK_K);
#endif
    LOCAL_ARRAY(struct run, sRun, THR_N);
    LOCAL_ARRAY(struct segment, sSegment, 3 * THR_N);
    LOCAL_ARRAY(struct segment, sOutput, THR_N);

    /* which pixels */
    INDEX phase_d = GROUP_ID(0);
    const INDEX column = divmod(&phase_d, panels) * THR_N;
    const INDEX phase_w = divmod(&phase_d, phases_along((INDEX)eOut.s6, (INDEX)vStep.s6));
    const INDEX phase_h = divmod(&phase_d, phases_along((INDEX)eOut.s5, (INDEX)vStep.s5));
    const INDEX depth  = pixels_along((INDEX)eOut.s4, (INDEX)vStep.s4, phase_d);
    const INDEX height = pixels_along((INDEX)eOut.s5, (INDEX)vStep.s5, phase_h);
    const INDEX width  = pixels_along((INDEX)eOut.s6, (INDEX)vStep.s6, phase_w);
    const int columns = (int)imin(THR_N, (INDEX)eOut.s2 * depth * height * width - column);

    /* which channels */
    const INDEX first_row = (INDEX)GROUP_ID(1) * group_rows, group = GROUP_ID(2);
    const int rows = (int)imin(group_rows, (INDEX)eOut.s3 - first_row);

    const INDEX a0 = (INDEX)vA.s0 + group * (INDEX)vA.s1 + first_row * (INDEX)vA.s2;
    const INDEX b0 = (INDEX)vB.s0 + group * (INDEX)vB.s1;
    const INDEX b_step = SOURCE_STEP((INDEX)vStep.s6) * (INDEX)vB.s6;
    const INDEX whole = (INDEX)eIn.s0 - (VEC - 1) * b_step;
    struct taps t, r, s;

    FIND_TAPS(&t, &r, &s, phase_d, phase_h, phase_w);

    const INDEX channels = (INDEX)eTaps.s3;
    const INDEX some = t.count * r.count * s.count > 1 ? CHANNELS : imax(1, channels);

    if (columns <= 0)
        return;

    const int runs = find_runs(sRun, column, columns, depth, height, width);
    int first = 1;
#if !DEPTHWISE
    int n = 0;
#endif

    for (INDEX c0 = 0; c0 < channels; c0 += some)
    for (INDEX it = 0; it < t.count; it++)
    for (INDEX ir = 0; ir < r.count; ir++)
    for (INDEX is = 0; is < s.count; is++) {
        const INDEX a_tap = (t.first + it * t.step) * (INDEX)vA.s4 + (r.first + ir * r.step) * (INDEX)vA.s5 +
                            (s.first + is * s.step) * (INDEX)vA.s6;
        const int segments = find_segments(sSegment, sRun, runs, t.shift + it * t.delta,
                                           r.shift + ir * r.delta, s.shift + is * s.delta, vStep, eIn, vB);
#if DEPTHWISE
        for (int m0 = 0; segments && m0 < rows; m0 += BLK_K) {  /* a load next to its store stalls */
            const int some = (int)imin(BLK_K, rows - m0);

            for (int m = 0; m < some; m++)
                gather_row(sB + m * THR_N, gB, b0 + (first_row + m0 + m) * (INDEX)vB.s3, sSegment, segments,
                           b_step, whole);
            for (int m = 0; m < some; m++)
                add_scaled(sC + (m0 + m) * THR_N, LOAD_BITS(gA, a0 + a_tap + (m0 + m) * (INDEX)vA.s2),
                           sB + m * THR_N, first);
        }
        first = first && !segments;
#else
        const INDEX c1 = imin(channels, c0 + some);
        const int is_last = c1 == channels && it == t.count - 1 && ir == r.count - 1 && is == s.count - 1;
        INDEX c = segments ? c0 : c1;

        do {                                    /* once also for a skipped tap, which may be the last */
            const int more = (int)imin(BLK_K - n, c1 - c);

            for (int k = 0; k < more; k++)
                sK[n + k] = a_tap + (c + k) * (INDEX)vA.s3;
            if (vB.s3 == 1 && b_step > 2)
                gather_channels(sB + n * THR_N, more, gB, b0 + c, sSegment, segments, b_step);
            else
                for (int k = 0; k < more; k++)
                    gather_row(sB + (n + k) * THR_N, gB, b0 + (c + k) * (INDEX)vB.s3, sSegment, segments,
                               b_step, whole);
            n += more;
            c += more;
            if (n == BLK_K || (is_last && c == c1)) {
                for (int m = 0; m < rows; m += THR_M)
                    tile_of(columns, gA + a0 + m * (INDEX)vA.s2, (INDEX)vA.s2, rows - m, sK, sK, n, sB,
                            sC + m * THR_N, first);
                n = first = 0;
            }
        } while (c < c1);
#endif
    }
    if (first)                                  /* nothing to sum */
        for (int i = 0; i < rows * THR_N; i++)
            sC[i] = ZERO;

    /* a residual, and a bias that differs between pixels, are found like the output, run by run */
    const struct output output = CONV_OUTPUT;
    const int pixel_bias = BIAS != 0 && (vBias.s2 | vBias.s4 | vBias.s5 | vBias.s6) != 0;
    const int join = RESIDUAL ? 0 : !pixel_bias;
    const int places = find_output(sOutput, sRun, runs, phase_d, phase_h, phase_w, vStep, vC, join);
    LOCAL struct segment *const sResidual = sSegment + THR_N;
    const INDEX c_pitch = PIXEL_STEP((INDEX)vStep.s6) * (INDEX)vC.s6;
    const INDEX residual_pitch = PIXEL_STEP((INDEX)vStep.s6) * (INDEX)vR.s6;
    const INDEX bias_pitch = pixel_bias ? PIXEL_STEP((INDEX)vStep.s6) * (INDEX)vBias.s6 : 0;
    const INDEX c_row = (INDEX)vC.s0 + group * (INDEX)vC.s1 + first_row * (INDEX)vC.s3;
    const INDEX residual_row = (INDEX)vR.s0 + group * (INDEX)vR.s1 + first_row * (INDEX)vR.s3;
    const INDEX bias_row = (INDEX)vBias.s0 + group * (INDEX)vBias.s1 + first_row * (INDEX)vBias.s3;

    if (pixel_bias)
        find_output(sSegment, sRun, runs, phase_d, phase_h, phase_w, vStep, vBias, 0);
    if (RESIDUAL)
        find_output(sResidual, sRun, runs, phase_d, phase_h, phase_w, vStep, vR, 0);
    for (int i = 0; i < places; i++)
        for (int m = 0; m < rows; m++)
            store_run(&output, c_row + m * (INDEX)vC.s3 + sOutput[i].offset, c_pitch, sOutput[i].length,
                      sC + m * THR_N + sOutput[i].at,
                      residual_row + m * (INDEX)vR.s3 + (RESIDUAL ? sResidual[i].offset : 0), residual_pitch,
                      bias_row + m * (INDEX)vBias.s3 + (pixel_bias ? sSegment[i].offset : 0), bias_pitch);
}

#else

/* ---- backward filter ----------------------------------------------------------------------- */

/* A pixel of dy: its offset there, its image, and where its window begins in x. */
struct pixel { INDEX offset, n, d, h, w; };

DEVICE void find_pixels(LOCAL struct pixel *pixel, INDEX first, int count, VIEW eOut, VIEW vStep, VIEW vPad,
                        VIEW vB)
{
    for (int k = 0; k < count; k++) {
        INDEX n = first + k;
        const INDEX w = divmod(&n, (INDEX)eOut.s6), h = divmod(&n, (INDEX)eOut.s5),
                    d = divmod(&n, (INDEX)eOut.s4);

        pixel[k].offset = n * (INDEX)vB.s2 + d * (INDEX)vB.s4 + h * (INDEX)vB.s5 + w * (INDEX)vB.s6;
        pixel[k].n = n;
        pixel[k].d = d * (INDEX)vStep.s4 - (INDEX)vPad.s4;
        pixel[k].h = h * (INDEX)vStep.s5 - (INDEX)vPad.s5;
        pixel[k].w = w * (INDEX)vStep.s6 - (INDEX)vPad.s6;
    }
}

/* sB[pixel][column] := dy */
DEVICE void transpose_dy(LOCAL R *sB, GLOBAL const T *gB, INDEX base, LOCAL const struct pixel *pixel,
                         int count, int columns, INDEX pitch)
{
    if (pitch == 1) {
        for (int k = 0; k < count; k++)
            for (int n = 0; n < columns; n++)
                sB[k * THR_N + n] = LOAD_BITS(gB, base + pixel[k].offset + n);
        return;
    }
    for (int n = 0; n < columns; n++)
        for (int k = 0; k < count; k++)
            sB[k * THR_N + n] = LOAD_BITS(gB, base + pixel[k].offset + n * pitch);
}

/* Lists the pixels whose source for this tap is inside x: its offset, and the row of sB that goes with it. */
DEVICE int find_sources(LOCAL INDEX *sK, LOCAL INDEX *sP, LOCAL const struct pixel *pixel, int count,
                        INDEX d0, INDEX h0, INDEX w0, VIEW eIn, VIEW vA)
{
    int n = 0;

    for (int k = 0; k < count; k++) {
        const INDEX d = pixel[k].d + d0, h = pixel[k].h + h0, w = pixel[k].w + w0;
        const int inside = d >= 0 && d < (INDEX)eIn.s4 && h >= 0 && h < (INDEX)eIn.s5 &&
                           w >= 0 && w < (INDEX)eIn.s6;

        sK[n] = pixel[k].n * (INDEX)vA.s2 + d * (INDEX)vA.s4 + h * (INDEX)vA.s5 + w * (INDEX)vA.s6;
        sP[n] = k;
        n += inside;
    }
    return n;
}

/* Stores one element of dw; row: tap and channel. */
DEVICE void store_weight(const struct output *o, R sum, INDEX group, INDEX row, INDEX column, VIEW c_view,
                         VIEW residual, VIEW bias, VIEW eTaps)
{
    INDEX t = row;
    const INDEX c = divmod(&t, (INDEX)eTaps.s3), s = divmod(&t, (INDEX)eTaps.s6),
                r = divmod(&t, (INDEX)eTaps.s5);

    STORE_C(o->c, OFFSET(c_view, group, column, c, t, r, s),
            epilogue_at(o, OFFSET(residual, group, column, c, t, r, s),
                        OFFSET(bias, group, column, c, t, r, s), o->alpha * sum));
}

/* The row panels of all taps are numbered; a work-group computes `group_panels` of them, of one panel of
 * columns, over one of `splits` ranges of the pixels (split-K). With more than one split, partial sums go to
 * gSum[split][group][row][column], which conv_sum adds.                                           */
KERNEL(1) void
conv_cpu(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
         CONV_PARAMS,
         VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
         R alpha, int splits, int group_panels, GLOBAL R *RESTRICT gSum)
{
    LOCAL_ARRAY(R, sB, BLK_K * THR_N);
    LOCAL_ARRAY(R, sC, BLK_M * THR_N);
    LOCAL_ARRAY(INDEX, sK, BLK_K);
    LOCAL_ARRAY(INDEX, sP, BLK_K);
    LOCAL_ARRAY(struct pixel, sPixel, BLK_K);

    const INDEX channels = (INDEX)eTaps.s3, group = GROUP_ID(2);
    INDEX column_panel = GROUP_ID(1);
    const INDEX split = divmod(&column_panel, splits), column = column_panel * THR_N;
    const int columns = (int)imin(THR_N, (INDEX)eOut.s3 - column);
    const INDEX panels = (channels + THR_M - 1) / THR_M;            /* of one tap */
    const INDEX all_taps = (INDEX)(eTaps.s4 * eTaps.s5 * eTaps.s6), all_rows = all_taps * channels;
    const INDEX panel0 = (INDEX)GROUP_ID(0) * group_panels,
                panel1 = imin(panels * all_taps, panel0 + group_panels);
    const INDEX pixels = (INDEX)(eOut.s2 * eOut.s4 * eOut.s5 * eOut.s6);
    const INDEX split_pixels = (pixels + splits - 1) / splits;
    const INDEX pixel0 = split * split_pixels, pixel1 = imin(pixels, pixel0 + split_pixels);
    const INDEX a0 = (INDEX)vA.s0 + group * (INDEX)vA.s1;
    const INDEX b0 = (INDEX)vB.s0 + group * (INDEX)vB.s1 + column * (INDEX)vB.s3;

    for (INDEX k0 = pixel0; k0 < pixel1 || k0 == pixel0; k0 += BLK_K) {
        const int count = (int)imax(0, imin(BLK_K, pixel1 - k0));
        INDEX tap = -1;
        int depth = 0;

        find_pixels(sPixel, k0, count, eOut, vStep, vPad, vB);
        transpose_dy(sB, gB, b0, sPixel, count, columns, (INDEX)vB.s3);

        for (INDEX p = panel0; p < panel1; p++) {
            INDEX t = p;
            const INDEX channel = divmod(&t, panels) * THR_M;

            if (t != tap) {
                tap = t;

                const INDEX w = divmod(&t, (INDEX)eTaps.s6), h = divmod(&t, (INDEX)eTaps.s5);

                depth = find_sources(sK, sP, sPixel, count, t * (INDEX)vStep.s1, h * (INDEX)vStep.s2,
                                     w * (INDEX)vStep.s3, eIn, vA);
            }
            tile_of(columns, gA + a0 + channel * (INDEX)vA.s3, (INDEX)vA.s3, channels - channel,
                    sK, sP, depth, sB, sC + (int)(p - panel0) * (THR_M * THR_N), k0 == pixel0);
        }
    }

    const struct output c = CONV_OUTPUT;

    for (INDEX p = panel0; p < panel1; p++) {
        INDEX tap = p;
        const INDEX channel = divmod(&tap, panels) * THR_M, row = tap * channels + channel;
        LOCAL const R *s = sC + (int)(p - panel0) * (THR_M * THR_N);

        for (int m = 0; m < imin(THR_M, channels - channel); m++)
            for (int n = 0; n < columns; n++)
                if (splits > 1)
                    gSum[((split * (INDEX)eTaps.s0 + group) * all_rows + row + m) * (INDEX)eOut.s3 + column +
                         n] = s[m * THR_N + n];
                else
                    store_weight(&c, s[m * THR_N + n], group, row + m, column + n, vC, vR, vBias, eTaps);
    }
}

/* Adds the partial sums of all splits, in order; a work-group takes a row of a group. */
KERNEL(1) void
conv_sum(CONV_PARAMS, VIEW eTaps,
         R alpha, int splits, int columns, GLOBAL const R *RESTRICT gSum)
{
    const struct output c = CONV_OUTPUT;
    const INDEX row = GROUP_ID(0), group = GROUP_ID(2);
    const INDEX rows = (INDEX)(eTaps.s3 * eTaps.s4 * eTaps.s5 * eTaps.s6);

    for (int n = 0; n < columns; n++) {
        R sum = ZERO;

        for (INDEX split = 0; split < splits; split++)
            sum += gSum[((split * (INDEX)eTaps.s0 + group) * rows + row) * columns + n];
        store_weight(&c, sum, group, row, n, vC, vR, vBias, eTaps);
    }
}
#endif
