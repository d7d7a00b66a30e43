/* cpu.cl - convolution on CPUs: an implicit matrix product in register tiles
 *
 *                      pixels                 One work-group of one work-item makes a panel of
 *                   +--+--+--+--+              THR_N pixels of up to BLK_M channels.  BLK_K rows
 *     taps x        |  |  |sB|  |              (tap, channel) of the source are gathered into
 *     channels      |  |  |  |  |              local memory at a time; then each THR_M x THR_N
 *                   +--+--+--+--+              tile of sums is carried on in registers.
 *     +-------+     +--+--+--+--+
 *     |   A   |     |  |  |sC|  |              A, the filter, is read where it lies: sK says how
 *     +-------+     +--+--+--+--+              far each (tap, channel) is from the start of a row.
 *
 * Pixels are gathered by lists made once for each tap: a panel is a few runs of pixels, each
 * contiguous in the source, so copying a row of sB is a few vector loads and stores.  Stores go
 * from left to right and may run over: what follows repairs that.
 *
 * Backward filter turns the product round (rows: taps and channels of x, columns: channels of y,
 * sum: pixels): dy is transposed into sB once for all taps, x is read where it lies, and pixels
 * whose tap falls outside are left out of the list.
 *
 * DEPTHWISE: each row has a channel of its own and none else, so that each gathers a row of sB
 * for itself; only the lists are shared.
 *
 * Parameters, from conv.tune: THR_M THR_V VEC BLK_M BLK_K (see tile_cpu.h; THR_N is THR_V VEC).
 */

#define CHANNELS 32                             /* that a tap takes in a row, before the next */

#if BLK_M % THR_M
#error "THR_M must divide BLK_M"
#endif

#if TYPE == 1
/* By their bits: compilers make vector instructions of this, but calls of vload_half and vstore_half. */
DEVICE R half_of(unsigned short h)
{
    const unsigned int u = h & 0x7fffu;
    const R x = u < 0x7c00u ? BITS_FLOAT(u << 13) * 5.192296858534828e33f : BITS_FLOAT(u << 13 | 0x7f800000u);

    return BITS_FLOAT(FLOAT_BITS(x) | (h & 0x8000u) << 16);
}

/* To nearest even.  Below the normal numbers, 0.5 has its last place where theirs is. */
DEVICE unsigned short half_bits(R x)
{
    const unsigned int u = FLOAT_BITS(x), a = u & 0x7fffffffu;
    const unsigned int normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
    const unsigned int tiny = FLOAT_BITS(BITS_FLOAT(a) + 0.5f) - 0x3f000000u;
    const unsigned int large = a > 0x7f800000u ? 0x7e00u : 0x7c00u;

    return (unsigned short)((a < 0x38800000u ? tiny : a < 0x477ff000u ? normal : large) | (u >> 16 & 0x8000u));
}
#define NUMBER(p, i)  half_of(((GLOBAL const unsigned short *)(p))[i])
#define KEEP(p, i, x) (((GLOBAL unsigned short *)(p))[i] = half_bits(x))
#else
#define NUMBER(p, i)  LOAD(p, i)
#define KEEP(p, i, x) STORE(p, i, x)
#endif

DEVICE INDEX least(INDEX a, INDEX b) { return a < b ? a : b; }
DEVICE INDEX most(INDEX a, INDEX b)  { return a > b ? a : b; }

/* ---- the tile ------------------------------------------------------------------- */

/* sC += A sB, for THR_M rows of A and nv vectors of columns; nv is a constant where this is
 * expanded.  `first`: what sC holds does not count.                                      */
DEVICE void tile(const int nv, GLOBAL const T *gA, INDEX row_stride, INDEX rows, LOCAL const INDEX *sK,
                 LOCAL const INDEX *sP, int depth, LOCAL const R *sB, LOCAL R *sC, int first)
{
    INDEX row[THR_M];
    RV c[THR_M][THR_V];

    UNROLL for (int m = 0; m < THR_M; m++)
        row[m] = least(m, rows - 1) * row_stride;

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
            const RV a = (RV)(NUMBER(gA, row[m] + at));

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

/* The tile of as many vectors as hold `columns`; rows from `rows` on repeat the last. */
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

/* VEC elements, `step` apart; a constant step makes it a few vector instructions. */
DEVICE void copy_lanes(LOCAL R *to, GLOBAL const T *from, int step)
{
    for (int i = 0; i < VEC; i++)
        to[i] = NUMBER(from, i * step);
}

#if DIRECTION != 2

/* ---- pixels ---------------------------------------------------------------------- */

/* Columns [at, at + length) of the panel: neighbours in a row of pixels. */
struct run  { int at, length; INDEX n, d, h, w; };
/* `length` columns from `at` on, found (or to be stored) from `where` on; below 0: zeros. */
struct piece { int at, length; INDEX where; };

DEVICE int find_runs(LOCAL struct run *run, INDEX column, int columns, INDEX depth, INDEX height, INDEX width)
{
    int n = 0;

    for (int j = 0; j < columns; n++) {
        INDEX image = column + j;
        const INDEX w = take(&image, width);
        const int length = (int)least(width - w, columns - j);

        run[n].at = j;
        run[n].length = length;
        run[n].w = w;
        run[n].h = take(&image, height);
        run[n].d = take(&image, depth);
        run[n].n = image;
        j += length;
    }
    return n;
}

DEVICE int add_pieces(LOCAL struct piece *piece, int n, int at, int length, INDEX where, INDEX step)
{
    for (int j = 0; j < length; j += VEC, n++) {
        piece[n].at = at + j;
        piece[n].length = (int)least(VEC, length - j);
        piece[n].where = where < 0 ? -1 : where + j * step;
    }
    return n;
}

/* Where the panel's pixels are in the source, for one tap.  0 if none is inside. */
DEVICE int find_pieces(LOCAL struct piece *piece, LOCAL const struct run *run, int runs,
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
            from = w < 0 ? (int)least((sw - 1 - w) / sw, length) : 0;
            past = w < width ? (int)least((width - w + sw - 1) / sw, length) : 0;
            past = past < from ? from : past;
        }
        n = add_pieces(piece, n, at, from, -1, 0);
        n = add_pieces(piece, n, at + from, past - from, run[i].n * (INDEX)vB.s2 + d * (INDEX)vB.s4 +
                       h * (INDEX)vB.s5 + (w + from * sw) * (INDEX)vB.s6, sw * (INDEX)vB.s6);
        n = add_pieces(piece, n, at + past, length - past, -1, 0);
        any |= past > from;
    }
    return any ? n : 0;
}

/* Where the panel's pixels are in a tensor of the output's shape.  `join`: runs that follow
 * each other there become one.                                                            */
DEVICE int find_places(LOCAL struct piece *piece, LOCAL const struct run *run, int runs,
                       INDEX phase_d, INDEX phase_h, INDEX phase_w, VIEW vStep, VIEW view, int join)
{
    const INDEX pitch = PIXEL_STEP((INDEX)vStep.s6) * (INDEX)view.s6;
    int n = 0;

    for (int i = 0; i < runs; i++) {
        const INDEX where = run[i].n * (INDEX)view.s2
                          + (run[i].d * PIXEL_STEP((INDEX)vStep.s4) + phase_d) * (INDEX)view.s4
                          + (run[i].h * PIXEL_STEP((INDEX)vStep.s5) + phase_h) * (INDEX)view.s5
                          + (run[i].w * PIXEL_STEP((INDEX)vStep.s6) + phase_w) * (INDEX)view.s6;

        if (join && n && where == piece[n - 1].where + piece[n - 1].length * pitch) {
            piece[n - 1].length += run[i].length;
            continue;
        }
        piece[n].at = run[i].at;
        piece[n].length = run[i].length;
        piece[n++].where = where;
    }
    return n;
}

/* ---- gathering --------------------------------------------------------------------- */

/* One row of sB.  `whole`: from there on VEC elements would leave the buffer. */
DEVICE void gather_row(LOCAL R *s, GLOBAL const T *gB, INDEX base, LOCAL const struct piece *piece, int pieces,
                       INDEX step, INDEX whole)
{
    for (int i = 0; i < pieces; i++) {
        LOCAL R *to = s + piece[i].at;
        const INDEX from = base + piece[i].where;

        if (piece[i].where < 0)
            VSTORE(VEC, to, (RV)(ZERO));
        else if (step == 1 && from < whole)
            copy_lanes(to, gB + from, 1);
        else if (step == 2 && from < whole)
            copy_lanes(to, gB + from, 2);
        else
            for (int j = 0; j < piece[i].length; j++)
                to[j] = NUMBER(gB, from + j * step);
    }
}

/* `rows` rows of sB whose channels are neighbours in memory (NHWC). */
DEVICE void gather_channels(LOCAL R *s, int rows, GLOBAL const T *gB, INDEX base, LOCAL const struct piece *piece,
                            int pieces, INDEX step)
{
    for (int i = 0; i < pieces; i++)
        for (int j = 0; j < piece[i].length; j++) {
            LOCAL R *to = s + piece[i].at + j;
            const INDEX from = base + piece[i].where + j * step;
            const int outside = piece[i].where < 0;

            for (int k = 0; k < rows; k++)
                to[k * THR_N] = outside ? ZERO : NUMBER(gB, from + k);
        }
}

/* sums += a s, for a whole row */
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

/* The row of sums at s through the epilogue, then to `length` pixels `pitch` apart. */
DEVICE void store_run(GLOBAL T *gC, INDEX at, INDEX pitch, int length, LOCAL R *s, R alpha, R beta,
                      int has_bias, GLOBAL const T *gBias, INDEX bias_at, INDEX bias_pitch, int act)
{
    int j = 0;

    if (pitch == 1 && beta == ZERO && act < 2 && (!has_bias || bias_pitch == 0)) {
        const R bias = has_bias ? LOAD(gBias, bias_at) : ZERO;

        for (; j + VEC <= length; j += VEC)
            for (int i = 0; i < VEC; i++) {
                R v = alpha * s[j + i];

                v = has_bias ? v + bias : v;
                KEEP(gC, at + j + i, act && v < ZERO ? ZERO : v);
            }
    }
    for (; j < length; j++)
        STORE(gC, at + j * pitch, epilogue(s[j], alpha, beta, gC, at + j * pitch,
                                           has_bias, gBias, bias_at + j * bias_pitch, act));
}

/* ---- forward and backward data --------------------------------------------------------- */

KERNEL(1) void
conv_cpu(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
         GLOBAL T *RESTRICT gC, VIEW vC, GLOBAL const T *RESTRICT gBias, VIEW vBias,
         VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad,
         R alpha, R beta, int has_bias, int act, int panels, int share)
{
    LOCAL_ARRAY(R, sB, BLK_K * THR_N + VEC);
    LOCAL_ARRAY(R, sC, BLK_M * THR_N);
#if !DEPTHWISE
    LOCAL_ARRAY(INDEX, sK, BLK_K);
#endif
    LOCAL_ARRAY(struct run, sRun, THR_N);
    LOCAL_ARRAY(struct piece, sPiece, 3 * THR_N);
    LOCAL_ARRAY(struct piece, sPlace, THR_N);

    /* which pixels */
    INDEX phase_d = GROUP_ID(0);
    const INDEX column = take(&phase_d, panels) * THR_N;
    const INDEX phase_w = take(&phase_d, phases_along((INDEX)eOut.s6, (INDEX)vStep.s6));
    const INDEX phase_h = take(&phase_d, phases_along((INDEX)eOut.s5, (INDEX)vStep.s5));
    const INDEX depth  = pixels_along((INDEX)eOut.s4, (INDEX)vStep.s4, phase_d);
    const INDEX height = pixels_along((INDEX)eOut.s5, (INDEX)vStep.s5, phase_h);
    const INDEX width  = pixels_along((INDEX)eOut.s6, (INDEX)vStep.s6, phase_w);
    const int columns = (int)least(THR_N, (INDEX)eOut.s2 * depth * height * width - column);

    /* which channels */
    const INDEX first_row = (INDEX)GROUP_ID(1) * share, group = GROUP_ID(2);
    const int rows = (int)least(share, (INDEX)eOut.s3 - first_row);

    const INDEX a0 = (INDEX)vA.s0 + group * (INDEX)vA.s1 + first_row * (INDEX)vA.s2;
    const INDEX b0 = (INDEX)vB.s0 + group * (INDEX)vB.s1;
    const INDEX b_step = SOURCE_STEP((INDEX)vStep.s6) * (INDEX)vB.s6;
    const INDEX whole = (INDEX)eIn.s0 - (VEC - 1) * b_step;
    struct meeting t, r, s;

    meet(&t, (INDEX)eTaps.s4, (INDEX)vStep.s1, (INDEX)vStep.s4, (INDEX)vPad.s4, phase_d);
    meet(&r, (INDEX)eTaps.s5, (INDEX)vStep.s2, (INDEX)vStep.s5, (INDEX)vPad.s5, phase_h);
    meet(&s, (INDEX)eTaps.s6, (INDEX)vStep.s3, (INDEX)vStep.s6, (INDEX)vPad.s6, phase_w);

    const INDEX channels = (INDEX)eTaps.s3;
    const INDEX some = t.count * r.count * s.count > 1 ? CHANNELS : most(1, channels);

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
        const INDEX a_tap = (t.first + it * t.every) * (INDEX)vA.s4 + (r.first + ir * r.every) * (INDEX)vA.s5 +
                            (s.first + is * s.every) * (INDEX)vA.s6;
        const int pieces = find_pieces(sPiece, sRun, runs, t.shift + it * t.slide, r.shift + ir * r.slide,
                                       s.shift + is * s.slide, vStep, eIn, vB);
#if DEPTHWISE
        for (int m0 = 0; pieces && m0 < rows; m0 += BLK_K) {       /* many stores, then many loads */
            const int some = (int)least(BLK_K, rows - m0);

            for (int m = 0; m < some; m++)
                gather_row(sB + m * THR_N, gB, b0 + (first_row + m0 + m) * (INDEX)vB.s3, sPiece, pieces, b_step, whole);
            for (int m = 0; m < some; m++)
                add_scaled(sC + (m0 + m) * THR_N, NUMBER(gA, a0 + a_tap + (m0 + m) * (INDEX)vA.s2), sB + m * THR_N,
                           first);
        }
        first = first && !pieces;
#else
        const INDEX c1 = least(channels, c0 + some);
        const int is_last = c1 == channels && it == t.count - 1 && ir == r.count - 1 && is == s.count - 1;
        INDEX c = pieces ? c0 : c1;

        do {                                    /* once also for a tap that is skipped: it may be the last */
            const int more = (int)least(BLK_K - n, c1 - c);

            for (int k = 0; k < more; k++)
                sK[n + k] = a_tap + (c + k) * (INDEX)vA.s3;
            if (vB.s3 == 1 && b_step > 2)
                gather_channels(sB + n * THR_N, more, gB, b0 + c, sPiece, pieces, b_step);
            else
                for (int k = 0; k < more; k++)
                    gather_row(sB + (n + k) * THR_N, gB, b0 + (c + k) * (INDEX)vB.s3, sPiece, pieces, b_step, whole);
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

    /* a bias that differs between pixels goes with them run by run */
    const int pixel_bias = has_bias && (vBias.s2 | vBias.s4 | vBias.s5 | vBias.s6);
    const int places = find_places(sPlace, sRun, runs, phase_d, phase_h, phase_w, vStep, vC, !pixel_bias);
    const INDEX c_pitch = PIXEL_STEP((INDEX)vStep.s6) * (INDEX)vC.s6;
    const INDEX bias_pitch = pixel_bias ? PIXEL_STEP((INDEX)vStep.s6) * (INDEX)vBias.s6 : 0;
    const INDEX c_row = (INDEX)vC.s0 + group * (INDEX)vC.s1 + first_row * (INDEX)vC.s3;
    const INDEX bias_row = (INDEX)vBias.s0 + group * (INDEX)vBias.s1 + first_row * (INDEX)vBias.s3;

    if (pixel_bias)
        find_places(sPiece, sRun, runs, phase_d, phase_h, phase_w, vStep, vBias, 0);
    for (int i = 0; i < places; i++)
        for (int m = 0; m < rows; m++)
            store_run(gC, c_row + m * (INDEX)vC.s3 + sPlace[i].where, c_pitch, sPlace[i].length,
                      sC + m * THR_N + sPlace[i].at, alpha, beta, has_bias, gBias,
                      bias_row + m * (INDEX)vBias.s3 + (pixel_bias ? sPiece[i].where : 0), bias_pitch, act);
}

#else

/* ---- backward filter ----------------------------------------------------------------------- */

/* Of a pixel of dy: where it lies there, where its window begins in x, and its image. */
struct pixel { INDEX where, n, d, h, w; };

DEVICE void find_pixels(LOCAL struct pixel *pixel, INDEX first, int count, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vB)
{
    for (int k = 0; k < count; k++) {
        INDEX n = first + k;
        const INDEX w = take(&n, (INDEX)eOut.s6), h = take(&n, (INDEX)eOut.s5), d = take(&n, (INDEX)eOut.s4);

        pixel[k].where = n * (INDEX)vB.s2 + d * (INDEX)vB.s4 + h * (INDEX)vB.s5 + w * (INDEX)vB.s6;
        pixel[k].n = n;
        pixel[k].d = d * (INDEX)vStep.s4 - (INDEX)vPad.s4;
        pixel[k].h = h * (INDEX)vStep.s5 - (INDEX)vPad.s5;
        pixel[k].w = w * (INDEX)vStep.s6 - (INDEX)vPad.s6;
    }
}

/* sB[pixel][column] := dy */
DEVICE void transpose_dy(LOCAL R *sB, GLOBAL const T *gB, INDEX base, LOCAL const struct pixel *pixel, int count,
                         int columns, INDEX pitch)
{
    if (pitch == 1) {
        for (int k = 0; k < count; k++)
            for (int n = 0; n < columns; n++)
                sB[k * THR_N + n] = NUMBER(gB, base + pixel[k].where + n);
        return;
    }
    for (int n = 0; n < columns; n++)
        for (int k = 0; k < count; k++)
            sB[k * THR_N + n] = NUMBER(gB, base + pixel[k].where + n * pitch);
}

/* The pixels whose source for this tap is inside x: where it is, and which row of sB goes with it. */
DEVICE int find_sources(LOCAL INDEX *sK, LOCAL INDEX *sP, LOCAL const struct pixel *pixel, int count,
                        INDEX d0, INDEX h0, INDEX w0, VIEW eIn, VIEW vA)
{
    int n = 0;

    for (int k = 0; k < count; k++) {
        const INDEX d = pixel[k].d + d0, h = pixel[k].h + h0, w = pixel[k].w + w0;
        const int inside = d >= 0 && d < (INDEX)eIn.s4 && h >= 0 && h < (INDEX)eIn.s5 && w >= 0 && w < (INDEX)eIn.s6;

        sK[n] = pixel[k].n * (INDEX)vA.s2 + d * (INDEX)vA.s4 + h * (INDEX)vA.s5 + w * (INDEX)vA.s6;
        sP[n] = k;
        n += inside;
    }
    return n;
}

/* One element of dw; row: tap and channel. */
DEVICE void store_weight(R sum, INDEX group, INDEX row, INDEX column, GLOBAL T *gC, VIEW vC,
                         GLOBAL const T *gBias, VIEW vBias, VIEW eTaps, R alpha, R beta, int has_bias, int act)
{
    INDEX t = row;
    const INDEX c = take(&t, (INDEX)eTaps.s3), s = take(&t, (INDEX)eTaps.s6), r = take(&t, (INDEX)eTaps.s5);
    const INDEX at = OFFSET(vC, group, column, c, t, r, s);

    STORE(gC, at, epilogue(sum, alpha, beta, gC, at, has_bias, gBias, OFFSET(vBias, group, column, c, t, r, s), act));
}

/* Row panels of all taps are numbered; a work-group makes `share` of them, of one panel of
 * columns, over one of `splits` parts of the pixels.  With more than one part the bare sums
 * go to gSum[part][group][row][column], for conv_sum below.                               */
KERNEL(1) void
conv_cpu(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
         GLOBAL T *RESTRICT gC, VIEW vC, GLOBAL const T *RESTRICT gBias, VIEW vBias,
         VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad,
         R alpha, R beta, int has_bias, int act, int splits, int share, GLOBAL R *RESTRICT gSum)
{
    LOCAL_ARRAY(R, sB, BLK_K * THR_N);
    LOCAL_ARRAY(R, sC, BLK_M * THR_N);
    LOCAL_ARRAY(INDEX, sK, BLK_K);
    LOCAL_ARRAY(INDEX, sP, BLK_K);
    LOCAL_ARRAY(struct pixel, sPixel, BLK_K);

    const INDEX channels = (INDEX)eTaps.s3, group = GROUP_ID(2);
    INDEX column_panel = GROUP_ID(1);
    const INDEX split = take(&column_panel, splits), column = column_panel * THR_N;
    const int columns = (int)least(THR_N, (INDEX)eOut.s3 - column);
    const INDEX panels = (channels + THR_M - 1) / THR_M;            /* of one tap */
    const INDEX all_taps = (INDEX)(eTaps.s4 * eTaps.s5 * eTaps.s6), all_rows = all_taps * channels;
    const INDEX panel0 = (INDEX)GROUP_ID(0) * share, panel1 = least(panels * all_taps, panel0 + share);
    const INDEX pixels = (INDEX)(eOut.s2 * eOut.s4 * eOut.s5 * eOut.s6);
    const INDEX part = (pixels + splits - 1) / splits;
    const INDEX pixel0 = split * part, pixel1 = least(pixels, pixel0 + part);
    const INDEX a0 = (INDEX)vA.s0 + group * (INDEX)vA.s1;
    const INDEX b0 = (INDEX)vB.s0 + group * (INDEX)vB.s1 + column * (INDEX)vB.s3;

    for (INDEX k0 = pixel0; k0 < pixel1 || k0 == pixel0; k0 += BLK_K) {
        const int count = (int)most(0, least(BLK_K, pixel1 - k0));
        INDEX tap = -1;
        int depth = 0;

        find_pixels(sPixel, k0, count, eOut, vStep, vPad, vB);
        transpose_dy(sB, gB, b0, sPixel, count, columns, (INDEX)vB.s3);

        for (INDEX p = panel0; p < panel1; p++) {
            INDEX t = p;
            const INDEX channel = take(&t, panels) * THR_M;

            if (t != tap) {
                tap = t;

                const INDEX w = take(&t, (INDEX)eTaps.s6), h = take(&t, (INDEX)eTaps.s5);

                depth = find_sources(sK, sP, sPixel, count, t * (INDEX)vStep.s1, h * (INDEX)vStep.s2,
                                     w * (INDEX)vStep.s3, eIn, vA);
            }
            tile_of(columns, gA + a0 + channel * (INDEX)vA.s3, (INDEX)vA.s3, channels - channel, sK, sP, depth, sB,
                    sC + (int)(p - panel0) * (THR_M * THR_N), k0 == pixel0);
        }
    }

    for (INDEX p = panel0; p < panel1; p++) {
        INDEX tap = p;
        const INDEX channel = take(&tap, panels) * THR_M, row = tap * channels + channel;
        LOCAL const R *s = sC + (int)(p - panel0) * (THR_M * THR_N);

        for (int m = 0; m < least(THR_M, channels - channel); m++)
            for (int n = 0; n < columns; n++)
                if (splits > 1)
                    gSum[((split * (INDEX)eTaps.s0 + group) * all_rows + row + m) * (INDEX)eOut.s3 + column + n] =
                        s[m * THR_N + n];
                else
                    store_weight(s[m * THR_N + n], group, row + m, column + n, gC, vC, gBias, vBias, eTaps,
                                 alpha, beta, has_bias, act);
    }
}

/* The sums of all parts, one after the other: a row of a group for each work-group. */
KERNEL(1) void
conv_sum(GLOBAL T *RESTRICT gC, VIEW vC, GLOBAL const T *RESTRICT gBias, VIEW vBias, VIEW eTaps,
         R alpha, R beta, int has_bias, int act, int splits, int columns, GLOBAL const R *RESTRICT gSum)
{
    const INDEX row = GROUP_ID(0), group = GROUP_ID(2);
    const INDEX rows = (INDEX)(eTaps.s3 * eTaps.s4 * eTaps.s5 * eTaps.s6);

    for (int n = 0; n < columns; n++) {
        R sum = ZERO;

        for (INDEX split = 0; split < splits; split++)
            sum += gSum[((split * (INDEX)eTaps.s0 + group) * rows + row) * columns + n];
        store_weight(sum, group, row, n, gC, vC, gBias, vBias, eTaps, alpha, beta, has_bias, act);
    }
}
#endif
