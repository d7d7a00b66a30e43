/* cl/conv/few.cl - copies rows of pixels, or of taps, of few channels to whole vectors of 16-bit elements
 *
 * A pixel has `each` elements, its channels and then zeros: 4 of them, or a multiple of 8.  A row begins with
 * `pad` pixels of zeros, and has `row` vectors of 8 elements; behind the source's pixels are zeros.
 * lib/conv/wgmma.c says what for.
 */
KERNEL(256) void
copy_rows(GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL T *gTo, int first, int row, int vectors, int each,
          int pad)
{
    GLOBAL const UINT16 *const from = (GLOBAL const UINT16 *)gX;
    const int me = GROUP_ID(0) * 256 + LOCAL_ID(), height = (int)eX.s5;
    const int line = me / row, n = line / height, h = line - n * height;
    const int element = (me - line * row) * 8, pixel = element / each, channel = element - pixel * each;
    const INDEX at = (INDEX)vX.s0 + n * (INDEX)vX.s2 + h * (INDEX)vX.s5;
    unsigned int u[4] = { 0, 0, 0, 0 };

    if (me >= vectors || n >= (int)eX.s2)
        return;
    UNROLL for (int e = 0; e < 8; e++) {
        const int next = each == 4 && e >= 4, w = pixel + next - pad, c = channel + e - 4 * next;

        if (w >= 0 && w < (int)eX.s6 && c < (int)eX.s3)
            u[e / 2] |= (unsigned int)from[at + w * (INDEX)vX.s6 + c * (INDEX)vX.s3] << e % 2 * 16;
    }
    store16((GLOBAL UINT16 *)gTo + (INDEX)(first + me) * 8, u, 1);
}
