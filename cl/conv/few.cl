/* cl/conv/few.cl - copies rows of pixels, or of taps, of few channels to whole vectors of 16-bit elements
 *
 * A pixel has `each` elements, its channels and then zeros: 4 of them, or a multiple of 8.  With `lines` 2,
 * of 4 elements, pixels of two rows follow each other, as one.  There are `height` rows of `row` vectors of 8
 * elements; they begin pad_w pixels before the source, and pad_h rows, and outside of it are zeros.
 * lib/conv/wgmma.c says what for.
 */
KERNEL(256) void
copy_rows(GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL T *gTo, int first, int row, int height, int vectors,
          int each, int lines, int pad_w, int pad_h)
{
    GLOBAL const UINT16 *const from = (GLOBAL const UINT16 *)gX;
    const int me = GROUP_ID(0) * 256 + LOCAL_ID(), all = each * lines;
    const int line = me / row, n = line / height, h = (line - n * height) * lines - pad_h;
    const int element = (me - line * row) * 8, pixel = element / all, channel = element - pixel * all;
    const INDEX at = (INDEX)vX.s0 + n * (INDEX)vX.s2;
    unsigned int u[4] = { 0, 0, 0, 0 };

    if (me >= vectors || n >= (int)eX.s2)
        return;
    UNROLL for (int e = 0; e < 8; e++) {
        const int next = each == 4 && e >= 4, c = channel + e - 4 * next;
        const int w = pixel + (lines == 1 ? next : 0) - pad_w, y = h + (lines == 1 ? 0 : next);

        if (w >= 0 && w < (int)eX.s6 && y >= 0 && y < (int)eX.s5 && c < (int)eX.s3)
            u[e / 2] |= (unsigned int)from[at + y * (INDEX)vX.s5 + w * (INDEX)vX.s6 + c * (INDEX)vX.s3]
                        << e % 2 * 16;
    }
    store16((GLOBAL UINT16 *)gTo + (INDEX)(first + me) * 8, u, 1);
}
