/* cl/conv/planes_filter.cl - the gradient of a depthwise filter, of planes whose pixels are contiguous (NCHW)
 *
 * A work-group has some channels and a part of all images, or of strips of rows of them.  Planes of x and dy
 * are copied to local memory (cl/conv/adjacent.h); a work-item has a strip of THR_H rows and COLS columns of
 * dy there (cl/conv/strip.h), the same in each step.  Their sums of all taps are added in order, and stored;
 * conv_parts_sum adds those of all parts.
 *
 *     vIn vDy            x and dy: s0 the start, s1 the elements of its buffer
 *     eIn eDy            extents; s2 images, s3 channels
 *     vPad               s5, s6
 *     vCut               s0 channels of a group; s1 rows of a strip, of which there are s2 in a plane; s3 s4
 *                        strips of work-items in it, down and across; s5 where dy is in local memory, in
 *                        vectors; s6 parts; s7 where the sums begin
 *
 * Parameters, from conv.tune: THR_H, COLS, EXACT, ITEMS; ROOM, KiB of local memory.
 */
KERNEL(ITEMS) void
conv_planes_filter(GLOBAL const T *RESTRICT gIn, VIEW vIn, VIEW eIn, GLOBAL const T *RESTRICT gDy, VIEW vDy,
                   VIEW eDy, VIEW vPad, VIEW vCut, GLOBAL R *RESTRICT gSums)
{
    LOCAL_ARRAY(UINT32, sPlanes, ROOM * 256);
    LOCAL_ARRAY(R, sSums, TAPS * TAPS * ITEMS);

    const int channels = (int)eDy.s3, in_h = (int)eIn.s5, in_w = (int)eIn.s6, dy_h = (int)eDy.s5;
    const int dy_w = (int)eDy.s6, pad_h = (int)vPad.s5, pad_w = (int)vPad.s6, strips = (int)vCut.s2;
    const int rows = (int)vCut.s1, down = (int)vCut.s3, across = (int)vCut.s4, parts = (int)vCut.s6;
    const int blocks = (channels + (int)vCut.s0 - 1) / (int)vCut.s0, me = LOCAL_ID();
    const int part = GROUP_ID(0) / blocks, plane = (GROUP_ID(0) - part * blocks) * (int)vCut.s0;
    const int planes = (int)imin((INDEX)vCut.s0, channels - plane), units = down * across;
    LOCAL V4 *const sIn = (LOCAL V4 *)sPlanes + MARGIN, *const sDy = (LOCAL V4 *)sPlanes + (int)vCut.s5;
    INDEX k = me;
    const int col = (int)divmod(&k, across) * COLS, row = (int)divmod(&k, down) * THR_H, in_plane = (int)k;
    const int x0 = col * STRIDE - pad_w;
    int col_in[STRIP_WIDE(COLS)];
    R sum[TAPS][TAPS];

    UNROLL for (int x = 0; x < STRIP_WIDE(COLS); x++)
        col_in[x] = STRIP_IN(x, COLS, x0 + x >= 0 && x0 + x < in_w);
    UNROLL for (int r = 0; r < TAPS; r++)
        UNROLL for (int s = 0; s < TAPS; s++)
            sum[r][s] = ZERO;
    for (int step = part; step < (int)eDy.s2 * strips; step += parts) {
        const int image = step / strips, first = (step - image * strips) * rows;
        const int from = first * STRIDE - pad_h;
        const int dy_high = strips == 1 || first + rows > dy_h ? dy_h : first + rows;
        const int in_low = strips == 1 || from < 0 ? 0 : from;
        const int in_high = strips == 1 || from + STRIP_END(rows) > in_h ? in_h : from + STRIP_END(rows);
        const INDEX at = (INDEX)image * channels + plane;
        const INDEX in_at = (INDEX)vIn.s0 + at * (in_h * in_w) + in_low * in_w;
        const INDEX dy_at = (INDEX)vDy.s0 + at * (dy_h * dy_w) + first * dy_w;
        LOCAL const T *const source = (LOCAL const T *)sIn + (int)(in_at - in_at / PER_IN * PER_IN);
        LOCAL const T *const gradient = (LOCAL const T *)sDy + (int)(dy_at - dy_at / PER_IN * PER_IN);

        BARRIER();
        load_adjacent(sIn, gIn, in_at, planes * (in_high - in_low) * in_w, (INT64)vIn.s1);
        load_adjacent(sDy, gDy, dy_at, planes * (dy_high - first) * dy_w, (INT64)vDy.s1);
        BARRIER();
        if (in_plane < planes && first + row < dy_high) {
            const int y0 = from + row * STRIDE, h0 = first + row;
            const int in_base = (in_plane * (in_high - in_low) - in_low) * in_w + x0;
            const int dy_base = (in_plane * (dy_high - first) - first) * dy_w + col;
            int there[THR_H], columns[COLS];
            R d[THR_H][COLS];

            strip_there(there, THR_H, h0, dy_high);
            strip_there(columns, COLS, col, dy_w);
            UNROLL for (int y = 0; y <= STRIP_HIGH; y++) {
                const int row_in = STRIP_IN(y, THR_H, y0 + y >= in_low && y0 + y < in_high);
                R v[STRIP_WIDE(COLS)];

                load_row(v, source + in_base + (row_in ? y0 + y : in_low) * in_w, row_in, col_in,
                         STRIP_WIDE(COLS));
                UNROLL for (int j = 0; j < COLS; j++)
                    if (y % STRIDE == 0 && y / STRIDE < THR_H) {
                        const int i = y / STRIDE < THR_H ? y / STRIDE : 0;

                        d[i][j] = LOAD(gradient, dy_base + (there[i] ? h0 + i : h0) * dy_w + j);
                    }
                STRIP_ADD_TAPS(sum, d, there, columns, v, y, COLS)
            }
        }
    }
    UNROLL for (int r = 0; r < TAPS; r++)
        UNROLL for (int s = 0; s < TAPS; s++)
            sSums[me * (TAPS * TAPS) + r * TAPS + s] = sum[r][s];
    BARRIER();
    for (int size = units; size > 1; size = (size + 1) / 2) {     /* as many sums of a plane are left */
        const int in = me - in_plane * units, other = in + (size + 1) / 2;

        if (in_plane < planes && other < size)
            UNROLL for (int i = 0; i < TAPS * TAPS; i++)
                sSums[me * (TAPS * TAPS) + i] = sSums[me * (TAPS * TAPS) + i] +
                                                sSums[(in_plane * units + other) * (TAPS * TAPS) + i];
        BARRIER();
    }
    for (int e = me; e < planes * TAPS * TAPS; e += ITEMS)
        gSums[(INDEX)vCut.s7 + ((INDEX)part * channels + plane) * (TAPS * TAPS) + e] =
            sSums[e / (TAPS * TAPS) * units * (TAPS * TAPS) + e % (TAPS * TAPS)];
}
