/* cl/conv/window.h - the pixels of a tile and around it, loaded once for all taps of a filter
 *
 * Rows of the source lie in local memory `pitch` pixels long, first the zeros before its first pixel; they
 * are also those behind the last pixel of the row before, and as many as either needs.  So do images, with
 * rows of zeros.  Numbered like that, place G of the output needs place G + r pitch + s for tap r, s:
 *
 *     0 x x x x x         tap 0, 0 of 64 places      0 [x x x x x
 *     0 x x x x x                                    0  x x x]x x
 *     0 x x x x x         tap 1, 1                   0  x[x x x x
 *                                                    0  x x x x]x
 *
 * A wgmma operand may begin at any row of 128 bytes, since the swizzle goes by the address.  Places that are
 * no pixels are computed, too, and not stored.
 *
 * Takes: conv/wgmma.h, and what it takes.
 * Gives: struct window_taps, window_taps(), struct window_rows, window_rows(), window_load(),
 *        window_load_filter(), window_tap(), row_of_place().
 */

/* Taps in places of the window: their first, the steps from tap to tap, how many there are, and the last. */
struct window_taps { int first, step_r, step_s, count_r, count_s, reach; };

DEVICE struct window_taps window_taps(const struct phase *f, struct window win, int pitch)
{
    struct window_taps t;

    t.first = (int)(f->r.shift - win.first[1]) * pitch + (int)f->s.shift - win.first[0];
    t.step_r = (int)f->r.delta * pitch;
    t.step_s = (int)f->s.delta;
    t.count_r = (int)f->r.count;
    t.count_s = (int)f->s.count;

    const int reach_r = t.step_r > 0 ? t.first + (t.count_r - 1) * t.step_r : t.first;

    t.reach = reach_r + (t.step_s > 0 ? (t.count_s - 1) * t.step_s : 0);
    return t;
}

/* Rows of the window of a tile: how many, the first of its image, and the image. */
struct window_rows { int count, h, n; };

/* m0: the first place of the tile; rows: of an image and its zeros. */
DEVICE struct window_rows window_rows(int m0, int pitch, int rows, int reach)
{
    const int row = m0 / pitch, n = row / rows;
    const struct window_rows w = { (m0 - row * pitch + BLK_M - 1 + reach) / pitch + 1, row - n * rows, n };

    return w;
}

/* Loads them, of 128 bytes of channels from c on. */
DEVICE void window_load(UINT32 to, GLOBAL const unsigned INT64 *map, struct window_rows w, int pitch,
                        int rows, int c, struct window win, UINT32 full)
{
    NO_UNROLL for (int i = 0; i < w.count; i++) {
        copy_box_4d(to + i * pitch * 128, map, c, win.first[0], w.h + win.first[1], w.n, full);
        if (++w.h == rows) {
            w.h = 0;
            w.n++;
        }
    }
}

/* Loads the filter of all taps: BLK_N channels of the output, from n0 on, by 64 that are summed, from c on.
 * Divisions would take longer than the loads. */
DEVICE void window_load_filter(UINT32 to, GLOBAL const unsigned INT64 *map, int n0, int c,
                               const struct phase *f, struct window_taps taps, UINT32 full)
{
    const int first = (int)f->s.first, step_s = (int)f->s.step, step_r = (int)f->r.step;
    int r = (int)f->r.first;

    NO_UNROLL for (int i = 0; i < taps.count_r; i++) {
        NO_UNROLL for (int j = 0, s = first; j < taps.count_s; j++) {
            conv_load_filter(to, map, n0, c, s, r, 0, full);
            to += BYTES_B;
            s += step_s;
        }
        r += step_r;
    }
}

/* Hands the products of a tap to the tensor cores; first: of a tile, so that d begins with them. */
DEVICE void window_tap(float *d, UINT32 a, UINT32 b, const int first)
{
    wgmma_begin();
    UNROLL for (int k = 0; k < 4; k++)
        MULTIPLY(d, operand_product(a, 0, 64, k), operand_product(b, MN_MAJOR_B, BLK_N, k), !first || k > 0);
    wgmma_commit();
}

/* The row of the output that has place g; `none` where it is no pixel. */
DEVICE int row_of_place(int g, int pitch, int rows, VIEW eGrid, int none)
{
    const int row = g / pitch, q = g - row * pitch, n = row / rows, h = row - n * rows;

    return n < (int)eGrid.s2 && h < (int)eGrid.s5 && q < (int)eGrid.s6
         ? (n * (int)eGrid.s5 + h) * (int)eGrid.s6 + q : none;
}
