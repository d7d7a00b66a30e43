/* cl/conv/shallow.h - what convolutions of images of few channels share: windows of the source
 *
 *     a row of a window, STRIDE 2:    columns 0 2 4 ... | 1 3 5 ...
 *                                     adjacent work-items read adjacent elements
 *
 * A tile is some rows of the output by LANES columns.  Its windows, one of each channel, are in local memory:
 * a row of PITCH elements for each row of the source that the tile sees, with zeros for padding.
 *
 * Takes  LANES ITEMS STRIDE CHANNELS_LAST; EXTRA, columns of a window beside those that LANES outputs begin
 *        at, in units of STRIDE; WINDOW_T, the type of an element, and LOAD_WINDOW, LOAD or LOAD_RAW
 * Gives  BLOCKS PITCH FLIGHT VEC window_column() copy_windows() store_channels()
 */
#define BLOCKS  (ITEMS / LANES)                 /* rows of windows that are copied at a time */
#define PHASE   (LANES + EXTRA)                 /* columns of a window with one remainder modulo STRIDE */
#define PITCH   (STRIDE * PHASE)
#define ACROSS  ((PITCH + LANES - 1) / LANES)   /* elements of a row of a window that a work-item copies */
#define FLIGHT  4                               /* rows, or taps, whose loads are in flight together */
#define VEC     8                               /* channels that are stored at once */
#define LOAD_RAW(p, i) ((GLOBAL const T_BITS *)(p))[i]

/* Where column x of a window is, in a row of it. */
DEVICE int window_column(int x)
{
    return x % STRIDE * PHASE + x / STRIDE;
}

/* Copies the windows of `here` channels from c0 on, `rows` of each, from row y0 and column x0 on. */
DEVICE void copy_windows(LOCAL WINDOW_T *windows, GLOBAL const T *gB, VIEW vB, VIEW eIn, INDEX group,
                         INDEX image, int c0, int here, int rows, int y0, int x0)
{
    const int lane = LOCAL_ID() % LANES, block = LOCAL_ID() / LANES, count = here * rows;

    for (int q0 = block; q0 < count; q0 += FLIGHT * BLOCKS) {
        WINDOW_T v[FLIGHT][ACROSS];

        UNROLL for (int u = 0; u < FLIGHT; u++) {
            const int q = q0 + u * BLOCKS, c = q / rows, y = y0 + q - c * rows;
            const int is_row = q < count && y >= 0 && y < (int)eIn.s5;
            const INDEX from = is_row ? OFFSET(vB, group, image, c0 + c, 0, y, 0) : 0;

            UNROLL for (int i = 0; i < ACROSS; i++) {
                const int x = x0 + lane + i * LANES;

                v[u][i] = is_row && x >= 0 && x < (int)eIn.s6 ? LOAD_WINDOW(gB, from + x * (INDEX)vB.s6)
                                                              : 0;
            }
        }
        UNROLL for (int u = 0; u < FLIGHT; u++)
            UNROLL for (int i = 0; i < ACROSS; i++)
                if (q0 + u * BLOCKS < count && lane + i * LANES < PITCH)
                    windows[(q0 + u * BLOCKS) * PITCH + window_column(lane + i * LANES)] = v[u][i];
    }
}

#if CHANNELS_LAST
/* Elements of 16 bits as words: not every compiler stores a vector of f16 at once. */
DEVICE void store_channels(GLOBAL TC *to, const R *v)
{
#if C_BYTES == 2
    UINT16 bits[VEC];
    UINT32 words[VEC / 2];

    UNROLL for (int i = 0; i < VEC; i++)
        STORE_C((TC *)bits, i, v[i]);
    UNROLL for (int i = 0; i < VEC / 2; i++)
        words[i] = bits[2 * i] | (UINT32)bits[2 * i + 1] << 16;
    VSTORE_ALIGNED(VECTOR(UINT32, 4), to, VLOAD(4, words));
#else
    OF(STORE_ALIGNED, TYPE_C)(VEC, to, VLOAD(VEC, v));
#endif
}
#endif
