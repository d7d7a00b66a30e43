/* cl/conv/planes.cl - depthwise convolution and its gradient to the source, of planes whose pixels are
 * contiguous (NCHW), for GPUs
 *
 * A work-group has some planes of an image, or a strip of rows of one: adjacent elements of memory, which it
 * copies to local memory (cl/conv/adjacent.h).  A work-item has strips of THR_H rows and COLS columns of the
 * output there (cl/conv/strip.h); the output, too, goes through local memory.
 *
 *     vIn            the source: s0 the start, s1 the elements of its buffer
 *     eIn eOut       extents of source and output: s2 images, s3 channels
 *     vW             the filter: s0 the start, s2 from there to tap 0, s3 from channel to channel
 *     vPad           s5, s6
 *     vCut           s0 planes of a group; s1 rows of a strip, of which there are s2 in a plane; s3 s4 strips
 *                    of work-items in it, down and across; s5 where the output is in local memory, in vectors
 *
 * Parameters, from conv.tune: THR_H, COLS, EXACT, ITEMS; ROOM, KiB of local memory.
 */
#define PER_OUT (VECTOR_BYTES / C_BYTES)

/* Copies elements back, from element begin % PER_OUT of `from`. */
DEVICE void planes_store(GLOBAL TC *gC, INDEX begin, int count, LOCAL const V4 *from)
{
    const INDEX first = begin / PER_OUT;
    const int low = (int)(begin - first * PER_OUT), end = low + count;
    GLOBAL TC *const to = gC + first * PER_OUT;

    for (int i = LOCAL_ID(); i * PER_OUT < end; i += ITEMS)
        if (i * PER_OUT >= low && (i + 1) * PER_OUT <= end)
            VSTORE_ALIGNED(V4, to + i * PER_OUT, from[i]);
        else
            for (int e = 0; e < PER_OUT; e++)
                if (i * PER_OUT + e >= low && i * PER_OUT + e < end)
                    ((GLOBAL C_BITS *)to)[i * PER_OUT + e] = ((LOCAL const C_BITS *)from)[i * PER_OUT + e];
}

KERNEL(ITEMS) void
conv_planes(GLOBAL const T *RESTRICT gIn, VIEW vIn, VIEW eIn, GLOBAL const T *RESTRICT gW, VIEW vW, VIEW eOut,
            VIEW vPad, VIEW vCut, R alpha, CONV_PARAMS)
{
    LOCAL_ARRAY(UINT32, sPlanes, ROOM * 256);

    const int channels = (int)eOut.s3, in_h = (int)eIn.s5, in_w = (int)eIn.s6;
    const int out_h = (int)eOut.s5, out_w = (int)eOut.s6, pad_h = (int)vPad.s5, pad_w = (int)vPad.s6;
    const int strips = (int)vCut.s2, rows = (int)vCut.s1, down = (int)vCut.s3, across = (int)vCut.s4;
    const struct output output = CONV_OUTPUT;
    const int block = GROUP_ID(0) / strips, strip = GROUP_ID(0) - block * strips;
    const int plane = block * (int)vCut.s0;
    const int planes = (int)imin((INDEX)vCut.s0, (INDEX)eOut.s2 * channels - plane);
    /* The rows of the group's strip, of output and source; of whole planes, all. */
    const int to = STRIP_TO(strip * rows, pad_h), from = STRIP_FROM(strip * rows, pad_h);
    const int out_low = strips == 1 || to < 0 ? 0 : to;
    const int out_high = strips == 1 || to + rows > out_h ? out_h : to + rows;
    const int in_low = strips == 1 || from + STRIP_LOW < 0 ? 0 : from + STRIP_LOW;
    const int in_high = strips == 1 || from + STRIP_END(rows) > in_h ? in_h : from + STRIP_END(rows);
    const INDEX in_at = (INDEX)vIn.s0 + (INDEX)plane * (in_h * in_w) + in_low * in_w;
    const INDEX out_at = (INDEX)vC.s0 + (INDEX)plane * (out_h * out_w) + out_low * out_w;
    LOCAL V4 *const sIn = (LOCAL V4 *)sPlanes + MARGIN, *const sOut = (LOCAL V4 *)sPlanes + (int)vCut.s5;
    LOCAL const T *const source = (LOCAL const T *)sIn;
    LOCAL TC *const result = (LOCAL TC *)sOut + (int)(out_at - out_at / PER_OUT * PER_OUT);
    GLOBAL const T *const taps = gW + (INDEX)vW.s0 + (INDEX)vW.s2;
    const int in_shift = (int)(in_at - in_at / PER_IN * PER_IN);

    load_adjacent(sIn, gIn, in_at, planes * (in_high - in_low) * in_w, (INT64)vIn.s1);
    BARRIER();
    for (int unit = LOCAL_ID(); unit < planes * down * across; unit += ITEMS) {
        INDEX k = unit;
        const int col = (int)divmod(&k, across) * COLS, row = (int)divmod(&k, down) * THR_H + strip * rows;
        const int in_plane = (int)k;
        INDEX image = plane + in_plane;
        const INDEX c = divmod(&image, channels);
        const int h0 = STRIP_TO(row, pad_h), w0 = STRIP_TO(col, pad_w);
        const int y0 = STRIP_FROM(row, pad_h), x0 = STRIP_FROM(col, pad_w) + STRIP_LOW;
        const int in_base = in_shift + (in_plane * (in_high - in_low) - in_low) * in_w + x0;
        const int out_base = (in_plane * (out_high - out_low) - out_low) * out_w;
        int col_in[STRIP_WIDE(COLS)], col_out[COLS];
        R sum[THR_H][COLS], w[TAPS][TAPS];

        if (h0 >= out_high)
            continue;
        UNROLL for (int r = 0; r < TAPS; r++)
            UNROLL for (int s = 0; s < TAPS; s++)
                w[r][s] = LOAD(taps, c * (INDEX)vW.s3 + r * (INDEX)vW.s5 + s * (INDEX)vW.s6);
        UNROLL for (int i = 0; i < THR_H; i++)
            UNROLL for (int j = 0; j < COLS; j++)
                sum[i][j] = ZERO;
        UNROLL for (int x = 0; x < STRIP_WIDE(COLS); x++)
            col_in[x] = STRIP_IN(x, COLS, x0 + x >= 0 && x0 + x < in_w);
        UNROLL for (int j = 0; j < COLS; j++)
            col_out[j] = EXACT || (w0 + j >= 0 && w0 + j < out_w);
        UNROLL for (int y = STRIP_LOW; y <= STRIP_HIGH; y++) {
            const int row_in = STRIP_IN(y, THR_H, y0 + y >= in_low && y0 + y < in_high);
            R v[STRIP_WIDE(COLS)];

            load_row(v, source + in_base + (row_in ? y0 + y : in_low) * in_w, row_in, col_in,
                     STRIP_WIDE(COLS));
            STRIP_ADD(sum, w, v, y, COLS)
            UNROLL for (int q = 0; q < STRIP_DONE_COUNT; q++) {
                const int done = STRIP_DONE_FIRST(y) + q, i = STRIP_IS_DONE(done, y) ? done : 0, h = h0 + i;
                const int row_out = STRIP_IS_DONE(done, y) & (EXACT || (h >= out_low && h < out_high));
                LOCAL TC *const to = result + out_base + h * out_w + w0;

                UNROLL for (int j = 0; j < COLS; j++)
                    if (row_out & col_out[j])
                        STORE_C(to, j, epilogue_at(&output, OFFSET(vR, 0, image, c, 0, h, w0 + j),
                                                   OFFSET(vBias, 0, image, c, 0, h, w0 + j),
                                                   alpha * sum[i][j]));
            }
        }
    }
    BARRIER();
    planes_store(gC, out_at, planes * (out_high - out_low) * out_w, sOut);
}
