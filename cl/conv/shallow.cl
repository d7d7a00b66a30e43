/* cl/conv/shallow.cl - convolution of images of few channels, by multiply-adds, for GPUs
 *
 *     y[image, k, h, w] = sum over c, r, s of filter[k, c, r, s] x[image, c, h stride + r, w stride + s]
 *
 * What a matrix engine multiplies in blocks of 16 or 64 channels would be zeros here for the most part.  A
 * work-group has BLK_K output channels, whose taps it keeps in local memory, and takes one tile of THR_H rows
 * and LANES columns of the output after another.  It copies the windows that the tile sees, of as many
 * channels of the source as there is room for, to local memory, with zeros for padding.  A work-item has a
 * column of the tile and THR_K channels of it; the work-items of a warp share their channels, so that a warp
 * reads a tap once.
 *
 * Sums run channel by channel and tap by tap, one fused multiply-add each.
 *
 *     vTiles   s0 tiles of all images, s1 tiles across an image, s2 down; s3 work-groups that share them;
 *              s4 channels of the source whose windows are in local memory together
 *
 * Parameters, from conv.tune: BLK_K, THR_K, THR_H, LANES as above; EXTRA, columns of a window beside those
 * that LANES outputs begin at, in units of STRIDE; FILTERS and WINDOW, the elements of local memory for each.
 */
KERNEL(ITEMS) void
conv_shallow(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB, CONV_PARAMS,
             VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet, R alpha, VIEW vTiles)
{
    LOCAL_ARRAY(R, sTaps, FILTERS);
    LOCAL_ARRAY(R, sWindow, WINDOW);

    const int lane = LOCAL_ID() % LANES, block = LOCAL_ID() / LANES, k0 = GROUP_ID(1) * BLK_K;
    const INDEX group = GROUP_ID(2);
    const int channels = (int)eTaps.s3, taps_h = (int)eTaps.s5, taps_w = (int)eTaps.s6;
    const int step_h = (int)vStep.s2, step_w = (int)vStep.s3, K = (int)eOut.s3, together = (int)vTiles.s4;
    const int rows = (THR_H - 1) * STRIDE + (taps_h - 1) * step_h + 1;
    const int all_taps = channels * taps_h * taps_w;
    const struct output output = CONV_OUTPUT;

    for (int i0 = LOCAL_ID(); i0 < BLK_K * all_taps; i0 += FLIGHT * ITEMS) {
        R v[FLIGHT];

        UNROLL for (int u = 0; u < FLIGHT; u++) {
            INDEX k = i0 + u * ITEMS;
            const INDEX s = divmod(&k, taps_w), r = divmod(&k, taps_h), c = divmod(&k, channels);

            v[u] = k < BLK_K && k0 + k < K ? LOAD(gA, OFFSET(vA, group, k0 + k, c, 0, r, s)) : ZERO;
        }
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            INDEX k = i0 + u * ITEMS;
            const INDEX tap = divmod(&k, all_taps);

            if (k < BLK_K)
                sTaps[(int)(tap * BLK_K + k)] = v[u];
        }
    }
    for (int tile = GROUP_ID(0); tile < (int)vTiles.s0; tile += (int)vTiles.s3) {
        INDEX image = tile;
        const int w0 = (int)divmod(&image, (INDEX)vTiles.s1) * LANES;
        const int h0 = (int)divmod(&image, (INDEX)vTiles.s2) * THR_H;
        const int y0 = h0 * STRIDE - (int)vPad.s5, x0 = w0 * STRIDE - (int)vPad.s6, w = w0 + lane;
        LOCAL const R *taps = sTaps + block * THR_K;
        R sum[THR_H][THR_K];

        UNROLL for (int j = 0; j < THR_H; j++)
            UNROLL for (int i = 0; i < THR_K; i++)
                sum[j][i] = ZERO;
        for (int c0 = 0; c0 < channels; c0 += together) {
            const int here = channels - c0 < together ? channels - c0 : together;

            BARRIER();                          /* nobody reads the windows before */
            copy_windows(sWindow, gB, vB, eIn, group, image, c0, here, rows, y0, x0);
            BARRIER();
            for (int c = 0; c < here; c++)
                for (int r = 0; r < taps_h; r++) {
                    LOCAL const R *const row = sWindow + (c * rows + r * step_h) * PITCH + lane;

                    for (int s = 0; s < taps_w; s++) {
                        LOCAL const R *const at = row + window_column(s * step_w);
                        R rK[THR_K];

                        UNROLL for (int i = 0; i < THR_K; i++)
                            rK[i] = taps[i];
                        UNROLL for (int j = 0; j < THR_H; j++) {
                            const R x = at[j * STRIDE * PITCH];

                            UNROLL for (int i = 0; i < THR_K; i++)
                                sum[j][i] = FMA(rK[i], x, sum[j][i]);
                        }
                        taps += BLK_K;
                    }
                }
        }
        UNROLL for (int j = 0; j < THR_H; j++) {
            const int h = h0 + j, k = k0 + block * THR_K;

            if (w >= (int)eOut.s6 || h >= (int)eOut.s5)
                continue;

            const INDEX to = OFFSET(vC, group, image, k, 0, h, w);
            const INDEX from = OFFSET(vR, group, image, k, 0, h, w);
            const INDEX bias = OFFSET(vBias, group, image, k, 0, h, w);

            UNROLL for (int i0 = 0; i0 < THR_K; i0 += VEC) {
                R all[VEC];

                UNROLL for (int i = 0; i < VEC; i++)
                    all[i] = k + i0 + i < K ? epilogue_at(&output, from + (i0 + i) * (INDEX)vR.s3,
                                                          bias + (i0 + i) * (INDEX)vBias.s3,
                                                          alpha * sum[j][i0 + i]) : ZERO;
#if CHANNELS_LAST
                if (k + i0 < K)
                    store_channels(gC + to + i0, all);
#else
                UNROLL for (int i = 0; i < VEC; i++)
                    if (k + i0 + i < K)
                        STORE_C(gC, to + (i0 + i) * (INDEX)vC.s3, all[i]);
#endif
            }
        }
    }
}
