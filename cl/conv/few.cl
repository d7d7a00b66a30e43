/* cl/conv/few.cl - copies rows of pixels and of taps, of few channels, to whole vectors of 16-bit elements
 *
 * A pixel has `each` elements, its channels and then zeros: 4 of them, or a multiple of 8.  With `lines` 2,
 * of 4 elements, pixels of two rows follow each other, as one.  An image has `height` rows of `row` vectors
 * of 8 elements; they begin pad_w pixels before the source, and pad_h rows, and outside of it are zeros.
 * With `twins` all images follow once more, zeros in place of each second row.  Behind the `vectors` of all
 * images come those of the filters, without padding.  lib/conv/wgmma.c says what for.
 */
struct rows { int row, height, pad_w, pad_h; };

KERNEL(256) void
copy_rows(GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gW, VIEW vW, VIEW eW, GLOBAL T *gTo,
          int start, int vectors, int all, int each, int lines, int row, int height, int row_w, int height_w,
          int pad_w, int pad_h, int twins)
{
    const int me = GROUP_ID(0) * 256 + LOCAL_ID(), is_filter = me >= vectors;
    const struct rows in = { is_filter ? row_w : row, is_filter ? height_w : height, is_filter ? 0 : pad_w,
                             is_filter ? 0 : pad_h };
    GLOBAL const UINT16 *const from = (GLOBAL const UINT16 *)(is_filter ? gW : gX);
    const VIEW v = is_filter ? vW : vX, e = is_filter ? eW : eX;
    const int vector = is_filter ? me - vectors : me, line = vector / in.row, n = line / in.height;
    const int element = (vector - line * in.row) * 8, pixel = element / (each * lines);
    const int channel = element - pixel * (each * lines), h = (line - n * in.height) * lines - in.pad_h;
    const int is_twin = !is_filter && n >= (int)e.s2;
    const INDEX at = (INDEX)v.s0 + (is_twin ? n - (int)e.s2 : n) * (INDEX)v.s2;
    unsigned int u[4] = { 0, 0, 0, 0 };

    if (me >= all || n >= (int)e.s2 * (is_filter ? 1 : 1 + twins))
        return;
    UNROLL for (int i = 0; i < 8; i++) {
        const int next = each == 4 && i >= 4, c = channel + i - 4 * next;
        const int w = pixel + (lines == 1 ? next : 0) - in.pad_w, y = h + (lines == 1 ? 0 : next);

        if (w >= 0 && w < (int)e.s6 && y >= 0 && y < (int)e.s5 && c < (int)e.s3 && !(is_twin && next))
            u[i / 2] |= (unsigned int)from[at + y * (INDEX)v.s5 + w * (INDEX)v.s6 + c * (INDEX)v.s3]
                        << i % 2 * 16;
    }
    store16((GLOBAL UINT16 *)gTo + (INDEX)(start + me) * 8, u, 1);
}
