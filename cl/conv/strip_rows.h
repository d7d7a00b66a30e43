/* cl/conv/strip_rows.h - rows of the source of a strip, from device memory to registers
 *
 * With CHANNELS_LAST a work-item has VEC adjacent channels, 16-byte aligned, of COLS columns; else one
 * channel of one column, of STRIDE columns with DIRECTION 1.
 *
 * Takes  CHANNELS_LAST COLS VEC; cl/conv/strip.h
 */
#if CHANNELS_LAST
#define STRIP_COLS  COLS
#define STRIP_VEC   VEC
#define STRIP_V     VECTOR(R, VEC)
#define STRIP_LOAD(p) LOAD_ALIGNED(VEC, p)
#else
#define STRIP_COLS  (DIRECTION ? STRIDE : 1)
#define STRIP_VEC   1
#define STRIP_V     R
#define STRIP_LOAD(p) LOAD(p, 0)
#endif
#define STRIP_WIDTH STRIP_WIDE(STRIP_COLS)
#define STRIP_STORE(to, all) OF(STORE_ALIGNED, TYPE_C)(STRIP_VEC, to, VLOAD(STRIP_VEC, all))

/* Where columns from x0 on are, in bytes, in a row that begins at element `row`; there: whether they are. */
DEVICE void strip_columns(BYTE_OFFSET *at, int *there, INDEX row, INDEX x0, INDEX step, INDEX extent)
{
    UNROLL for (int x = 0; x < STRIP_WIDTH; x++) {
        there[x] = STRIP_IN(x, STRIP_COLS, x0 + x >= 0 && x0 + x < extent);
        at[x] = (BYTE_OFFSET)(row + (there[x] ? (x0 + x) * step : 0)) * T_BYTES;
    }
}

/* Row y of the source, zeros where it is not. */
DEVICE void strip_row(STRIP_V *v, GLOBAL const T *g, const BYTE_OFFSET *at, const int *there, int y, INDEX y0,
                      INDEX step, INDEX extent)
{
    const int row_there = STRIP_IN(y, THR_H, y0 + y >= 0 && y0 + y < extent);
    const BYTE_OFFSET row = (BYTE_OFFSET)(row_there ? (y0 + y) * step : 0) * T_BYTES;

    UNROLL for (int x = 0; x < STRIP_WIDTH; x++) {
        const STRIP_V loaded = STRIP_LOAD((GLOBAL const T *)((GLOBAL const char *)g + (row + at[x])));

        v[x] = row_there & there[x] ? loaded : (STRIP_V)(ZERO);
    }
}
