/* cl/conv/shallow_mma.cl - convolution of images of few channels, in 16-bit types, by the mma.sync of
 * NVIDIA's sm_80 and up
 *
 * As conv_shallow, with tiles of THR_H rows and LANES columns of the output, whose windows are in local
 * memory (cl/conv/shallow.h).  The sums run over taps of all channels together, in steps of 16:
 *
 *                                 8 channels of the output
 *                                 +---+
 *           16 of C x R x S taps  | b |     in registers, for the whole launch
 *              +---+---+          +---+
 *   16 pixels  | a | a |          |sum|
 *   of a row   +---+---+          +---+
 *
 * A lane gathers its elements of a, two pixels at four taps of a step, from the windows; where its taps are
 * in a window does not depend on the pixel.  Taps behind the last are zeros in both operands.  Of the columns
 * of blocks of b, a lane has BLK_K / 4 adjacent channels, which it stores by 8.
 *
 *     vTiles   as in shallow.cl
 *
 * Parameters, from conv.tune: BLK_K, channels of the output; THR_H, LANES, EXTRA and WINDOW as in shallow.cl.
 * STEPS: of 16 taps.  A bias of channels (cl/conv/sides.h) is in registers.
 */
#define WARPS   (ITEMS / 32)
#define COLUMNS (BLK_K / 8)                     /* blocks of 8 channels */
#define OWN     (BLK_K / 4)                     /* channels of a lane */
#define ACROSS_TILE (LANES / 16)                /* blocks of 16 pixels */

struct tap { int c, r, s; };

/* The tap that is `by` further. */
DEVICE void advance(struct tap *tap, int by, int taps_h, int taps_w)
{
    tap->s += by;
    while (tap->s >= taps_w) {
        tap->s -= taps_w;
        if (++tap->r == taps_h) {
            tap->r = 0;
            tap->c++;
        }
    }
}

/* What is stored for channel n of a lane's, of a sum that is scaled. */
#if BIAS == SAME_ROWS
#if RESIDUAL
#define VALUE(n, v) activate(FMA(beta, LOAD_RESIDUAL(gR, residual + (n) * (INDEX)vR.s3), v) + of_channels[n])
#else
#define VALUE(n, v) activate((v) + of_channels[n])
#endif
#else
#define VALUE(n, v) epilogue_at(&output, residual + (n) * (INDEX)vR.s3, bias + (n) * (INDEX)vBias.s3, v)
#endif

KERNEL_ROOM(ITEMS, 2) void
conv_shallow_mma(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB, CONV_PARAMS,
                 VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet, R alpha, VIEW vTiles)
{
    ROOM_FOR(2);
    LOCAL_ARRAY(T_BITS, sWindow, WINDOW);

    const int warp = LOCAL_ID() / 32, g = LOCAL_ID() % 32 / 4, t = LOCAL_ID() % 4, k0 = GROUP_ID(1) * BLK_K;
    const INDEX group = GROUP_ID(2);
    const int channels = (int)eTaps.s3, taps_h = (int)eTaps.s5, taps_w = (int)eTaps.s6, K = (int)eOut.s3;
    const int rows = (THR_H - 1) * STRIDE + (taps_h - 1) * (int)vStep.s2 + 1;
    const struct output output = CONV_OUTPUT;
    struct tap tap = { 0, 0, 0 };
    UINT32 b[COLUMNS][STEPS][2], keep[2];       /* keep: which taps of the last step there are */
    int at[STEPS][4];                           /* where taps are in the windows of a pixel */
#if BIAS == SAME_ROWS
    R of_channels[OWN];                         /* the bias */
#endif

    advance(&tap, 2 * t, taps_h, taps_w);
    UNROLL for (int step = 0; step < STEPS; step++)
        UNROLL for (int h = 0; h < 2; h++) {
            keep[h] = 0;
            UNROLL for (int j = 0; j < COLUMNS; j++)
                b[j][step][h] = 0;
            UNROLL for (int e = 0; e < 2; e++) {
                const int is_tap = tap.c < channels, c = is_tap ? tap.c : 0;   /* or the first channel's */

                at[step][2 * h + e] = (c * rows + tap.r * (int)vStep.s2) * PITCH +
                                      window_column(tap.s * (int)vStep.s3);
                keep[h] |= (is_tap ? 0xffffu : 0) << 16 * e;
                UNROLL for (int j = 0; j < COLUMNS; j++) {
                    const int k = k0 + g / 2 * OWN + 2 * j + g % 2;
                    const UINT32 x = LOAD_WINDOW(gA, OFFSET(vA, group, k < K ? k : 0, c, 0, tap.r,
                                                              tap.s));

                    b[j][step][h] |= (is_tap && k < K ? x : 0) << 16 * e;
                }
                advance(&tap, e ? 7 : 1, taps_h, taps_w);       /* 0 1 8 9 of 16 */
            }
        }
#if BIAS == SAME_ROWS
    UNROLL for (int n = 0; n < OWN; n++) {
        const int k = k0 + t * OWN + n;

        of_channels[n] = LOAD_BIAS(gBias, OFFSET(vBias, group, 0, k < K ? k : 0, 0, 0, 0));
    }
#endif
    for (int tile = GROUP_ID(0); tile < (int)vTiles.s0; tile += (int)vTiles.s3) {
        INDEX image = tile;
        const int w0 = (int)divmod(&image, (INDEX)vTiles.s1) * LANES;
        const int h0 = (int)divmod(&image, (INDEX)vTiles.s2) * THR_H;

        BARRIER();                              /* nobody reads the windows before */
        copy_windows(sWindow, gB, vB, eIn, group, image, 0, channels, rows, h0 * STRIDE - (int)vPad.s5,
                     w0 * STRIDE - (int)vPad.s6);
        BARRIER();
        for (int q = warp; q < THR_H * ACROSS_TILE; q += WARPS) {
            const int row = q / ACROSS_TILE, column = q % ACROSS_TILE * 16 + g, h = h0 + row;
            LOCAL const T_BITS *const from = sWindow + row * STRIDE * PITCH + column;
            R sum[2][COLUMNS][2];

            UNROLL for (int i = 0; i < 2; i++)
                UNROLL for (int j = 0; j < COLUMNS; j++)
                    UNROLL for (int e = 0; e < 2; e++)
                        sum[i][j][e] = ZERO;
            UNROLL for (int step = 0; step < STEPS; step++) {
                UINT32 a[2][2];

                UNROLL for (int i = 0; i < 2; i++)
                    UNROLL for (int x = 0; x < 2; x++)
                        a[i][x] = (from[at[step][2 * x] + 8 * i] |
                                   (UINT32)from[at[step][2 * x + 1] + 8 * i] << 16) &
                                  (step == STEPS - 1 ? keep[x] : ~0u);
                UNROLL for (int j = 0; j < COLUMNS; j++)
                    MMA_F32(sum[0][j], sum[1][j], a[0], a[1], b[j][step]);
            }
            UNROLL for (int i = 0; i < 2; i++) {
                const int w = w0 + column + 8 * i, k = k0 + t * OWN;

                if (w >= (int)eOut.s6 || h >= (int)eOut.s5)
                    continue;

                const INDEX to = OFFSET(vC, group, image, k, 0, h, w);
                const INDEX residual = OFFSET(vR, group, image, k, 0, h, w);
                const INDEX bias = OFFSET(vBias, group, image, k, 0, h, w);

                UNROLL for (int n0 = 0; n0 < OWN; n0 += VEC) {
                    R all[VEC];

                    UNROLL for (int n = 0; n < VEC; n++)
                        all[n] = k + n0 + n < K ? VALUE(n0 + n, alpha * sum[i][(n0 + n) / 2][n % 2]) : ZERO;
                    if (k + n0 < K)
                        store_channels(gC + to + n0, all);
                }
            }
        }
    }
}
