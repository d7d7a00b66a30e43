/* cl/gemm/padded.cl - copies a matrix of 16-bit elements to rows that begin at multiples of 16 bytes
 *
 * TMA needs such rows.  The strides of X may be any; rows of Y are contiguous, and its other strides are
 * even.  A work-item copies two adjacent elements of PAD_EACH rows.
 */
#define PAD_ACROSS 64                           /* work-items in a row */
#define PAD_ITEMS  1024
#define PAD_EACH   8
#define PAD_ROWS   (PAD_ITEMS / PAD_ACROSS * PAD_EACH)

KERNEL(PAD_ITEMS) void
pad(int width, int rows, GLOBAL const T *RESTRICT gX, VIEW vX, GLOBAL T *RESTRICT gY, VIEW vY)
{
    const int tiles_w = (width + 2 * PAD_ACROSS - 1) / (2 * PAD_ACROSS);
    const int tiles_r = (rows + PAD_ROWS - 1) / PAD_ROWS;
    const int batch = GROUP_ID(0) / (tiles_w * tiles_r), tile = GROUP_ID(0) % (tiles_w * tiles_r);
    const int col = (tile % tiles_w * PAD_ACROSS + LOCAL_ID() % PAD_ACROSS) * 2;
    const int row = tile / tiles_w * PAD_ROWS + LOCAL_ID() / PAD_ACROSS * PAD_EACH;
    GLOBAL const UINT16 *from = (GLOBAL const UINT16 *)gX + (INDEX)vX.s0 + batch * (INDEX)vX.s4;
    GLOBAL UINT32 *to = (GLOBAL UINT32 *)gY + ((INDEX)vY.s0 + batch * (INDEX)vY.s4) / 2;
    const int low = col < width ? col : 0, high = col + 1 < width ? col + 1 : 0;
    UINT32 pair[PAD_EACH];

    /* Past the edges something is loaded: a branch would wait for each. */
    UNROLL for (int i = 0; i < PAD_EACH; i++) {
        const INDEX at = (row + i < rows ? row + i : 0) * (INDEX)vX.s5;

        pair[i] = from[at + low * (INDEX)vX.s6] | (UINT32)from[at + high * (INDEX)vX.s6] << 16;
    }
    UNROLL for (int i = 0; i < PAD_EACH; i++)
        if (row + i < rows && col < width)
            to[((row + i) * (INDEX)vY.s5 + col) / 2] = pair[i];
}
