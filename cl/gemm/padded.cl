/* padded.cl - copies a matrix of 16-bit numbers so that each of its lines begins at a multiple of 16 bytes
 *
 * The matrix engine's copies need that.  The strides of X may be any; the lines of Y run along
 * memory, its other strides are even.  An item copies a pair of numbers of EACH lines.
 */
#define ALONG     64                            /* items along a line */
#define PAD_ITEMS 1024
#define EACH      8
#define PAD_LINES (PAD_ITEMS / ALONG * EACH)

KERNEL(PAD_ITEMS) void
pad(int width, int lines, GLOBAL const T *RESTRICT gX, VIEW vX, GLOBAL T *RESTRICT gY, VIEW vY)
{
    const int tiles_w = (width + 2 * ALONG - 1) / (2 * ALONG), tiles_l = (lines + PAD_LINES - 1) / PAD_LINES;
    const int batch = GROUP_ID(0) / (tiles_w * tiles_l), tile = GROUP_ID(0) % (tiles_w * tiles_l);
    const int at = (tile % tiles_w * ALONG + LOCAL_ID() % ALONG) * 2;
    const int line = tile / tiles_w * PAD_LINES + LOCAL_ID() / ALONG * EACH;
    GLOBAL const UINT16 *from = (GLOBAL const UINT16 *)gX + (INDEX)vX.s0 + batch * (INDEX)vX.s4;
    GLOBAL UINT32 *to = (GLOBAL UINT32 *)gY + ((INDEX)vY.s0 + batch * (INDEX)vY.s4) / 2;
    const int low = at < width ? at : 0, high = at + 1 < width ? at + 1 : 0;
    UINT32 pair[EACH];

    /* Past the edges something is loaded: a branch would wait for each. */
    UNROLL for (int i = 0; i < EACH; i++) {
        const INDEX here = (line + i < lines ? line + i : 0) * (INDEX)vX.s5;

        pair[i] = from[here + low * (INDEX)vX.s6] | (UINT32)from[here + high * (INDEX)vX.s6] << 16;
    }
    UNROLL for (int i = 0; i < EACH; i++)
        if (line + i < lines && at < width)
            to[((line + i) * (INDEX)vY.s5 + at) / 2] = pair[i];
}
