/* cl/conv/slab_filter.cl - the gradient of a filter on CPUs, out of a slab that holds x with its padding
 *
 *                     THR_N filters          A work-group is one work-item. A task is a block of channels
 *              +------------------+          with all taps, by some panels of filters, summed over a range
 *       steps  | sDY              |          of boxes of pixels. For each box x under it is copied into the
 *     (pixels) |                  |          slab (cl/conv/slab.h). A row (tap, channel) is a place in it,
 *              +------------------+          each pixel an offset from there, and dy is packed in panels.
 *              +------------------+
 *       THR_M  | sC               |          With few tasks the boxes are divided among `splits` tasks, whose
 *       rows   +------------------+          sums conv_slab_add adds in order.
 *
 * Rows are in the order of dw, so that they are stored as vectors whether taps or channels are contiguous.
 *
 * Parameters, from conv.tune: as of cl/conv/slab.cl.
 */

/* What a task is, of eBox, eBoxes and a number below `cells`: a block of channels by a range of panels. */
struct cell { INDEX group, c0; int channels, panel0, panel1, vector0; };

DEVICE void find_cell(struct cell *it, INDEX number, int all_panels, int all_vectors, VIEW eTaps, VIEW eBox,
                      VIEW eBoxes)
{
    const INDEX channels = (INDEX)eTaps.s3, some = (INDEX)eBoxes.s0;
    const INDEX range = divmod(&number, (INDEX)eBoxes.s3);

    it->panel0 = (int)(range * (INDEX)eBox.s3);
    it->panel1 = (int)imin(all_panels, it->panel0 + (INDEX)eBox.s3);
    it->vector0 = (int)((INT64)it->panel0 * all_vectors / all_panels);
    it->c0 = divmod(&number, (channels + some - 1) / some) * some;
    it->channels = (int)imin(some, channels - it->c0);
    it->group = number;
}

/* Stores the sums of a panel, all rows of a cell. */
DEVICE void store_panel(const struct output *o, LOCAL const RV *sums, int rows, int v0, int v1,
                        const struct cell *it, INDEX filters, struct places places, VIEW c_view,
                        VIEW residual, VIEW bias)
{
    for (int v = v0; v < v1; v++)
        store_rows(o, sums + v - v0, v1 - v0, rows, (int)imin(VEC, filters - v * VEC), places,
                   OFFSET(c_view, it->group, v * VEC, it->c0, 0, 0, 0), (INDEX)c_view.s2,
                   OFFSET(residual, it->group, v * VEC, it->c0, 0, 0, 0), (INDEX)residual.s2,
                   OFFSET(bias, it->group, v * VEC, it->c0, 0, 0, 0), (INDEX)bias.s2);
}

/* The places of a cell's rows in dw, the residual and the bias; their number. */
#define LIST(to, v) \
    list_steps(sRow, to, &slab, cell.channels, &t, &r, &s, run_of(vC, cell.channels), v)
#define LIST_ROWS(rows)              \
    do {                             \
        (rows) = LIST(sPlace, vC);   \
        if (RESIDUAL)                \
            LIST(sResidual, vR);     \
        if (BIAS)                    \
            LIST(sBias, vBias);      \
    } while (0)

/* eBox: the extents of a box, s0 the elements of dy's buffer, s1 the splits, s3 the panels of a task, s7
 * whether dw is stored past the caches; eBoxes: how many there are, s0 the channels of a block, s1 the
 * vectors of a cell's sums in gSum, s3 the ranges of panels. `taken` counts the tasks, of which there are
 * `all`, taken by `groups` work-groups. */
KERNEL(1) void
conv_slab_filter(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
                 CONV_PARAMS,
                 VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
                 R alpha, VIEW eBox, VIEW eBoxes, int all, int groups, GLOBAL int *RESTRICT taken,
                 GLOBAL RV *RESTRICT gSum)
{
    LOCAL_ARRAY(R, sSlab, BLK_S + VEC);
    LOCAL_ARRAY(RV, sDY, (BLK_K + 3) * THR_V);
    LOCAL_ARRAY(RV, sC, BLK_C / VEC);
    LOCAL_ARRAY(int, sRow, ROWS_MOST);
    LOCAL_ARRAY(INDEX, sPlace, ROWS_MOST);
    LOCAL_ARRAY(INDEX, sResidual, RESIDUAL ? ROWS_MOST : 1);
    LOCAL_ARRAY(INDEX, sBias, BIAS ? ROWS_MOST : 1);
    LOCAL_ARRAY(int, sPixel, STEPS_MOST);
    LOCAL_ARRAY(INDEX, sFrom, STEPS_MOST);

    const INDEX filters = (INDEX)eOut.s3, splits = (INDEX)eBox.s1;
    const int all_vectors = (int)((filters + VEC - 1) / VEC), all_panels = (all_vectors + THR_V - 1) / THR_V;
    const int boxes = (int)(eBoxes.s2 * eBoxes.s4 * eBoxes.s5 * eBoxes.s6);
    const struct output output = CONV_OUTPUT;
    const struct places places = { sPlace, RESIDUAL ? sResidual : sPlace, BIAS ? sBias : sPlace,
                                   (int)eBox.s7 };

    for (int task = ATOMIC_ADD(taken, 1); task < all; task = ATOMIC_ADD(taken, 1)) {
        INDEX number = task;
        const INDEX split = divmod(&number, splits);
        const int box1 = (int)((INT64)boxes * (split + 1) / splits);
        struct cell cell;
        struct taps t, r, s;
        struct slab slab;
        int rows = 0, first = 1;

        find_cell(&cell, number, all_panels, all_vectors, eTaps, eBox, eBoxes);
        FIND_TAPS(&t, &r, &s, 0, 0, 0);
        for (int b = (int)((INT64)boxes * split / splits); b < box1 || first; b++) {
            INDEX box = b;
            const INDEX w0 = divmod(&box, (INDEX)eBoxes.s6) * (INDEX)eBox.s6;
            const INDEX h0 = divmod(&box, (INDEX)eBoxes.s5) * (INDEX)eBox.s5;
            const INDEX d0 = divmod(&box, (INDEX)eBoxes.s4) * (INDEX)eBox.s4, n0 = box * (INDEX)eBox.s2;
            const int nw = (int)imin((INDEX)eBox.s6, (INDEX)eOut.s6 - w0);
            const int nh = (int)imin((INDEX)eBox.s5, (INDEX)eOut.s5 - h0);
            const int nd = (int)imin((INDEX)eBox.s4, (INDEX)eOut.s4 - d0);
            const int nn = (int)imax(0, imin((INDEX)eBox.s2, (INDEX)eOut.s2 - n0));
            const int pixels = nn * nd * nh * nw, pieces = (pixels + BLK_K - 1) / BLK_K;

            find_axis(&slab.d, &t, (INDEX)vStep.s4, d0, (int)eBox.s4, nd, (INDEX)eIn.s4, 0);
            find_axis(&slab.h, &r, (INDEX)vStep.s5, h0, (int)eBox.s5, nh, (INDEX)eIn.s5, 0);
            find_axis(&slab.w, &s, (INDEX)vStep.s6, w0, (int)eBox.s6, nw, (INDEX)eIn.s6, vA.s6 == 1);
            slab.by_channel = vA.s3 == 1 && slab.w.step * (INDEX)vA.s6 != 1;
            find_steps(&slab, (int)eBox.s2, (int)eBoxes.s0);
            if (first)
                LIST_ROWS(rows);
            list_pixels(sPixel, &slab, nn, nd, nh, nw);
            find_places(sFrom, nn, nd, nh, nw, n0, 0, 0, 0, d0, h0, w0, vStep, vB);
            fill_slab(sSlab, &slab, nn, cell.channels, gA, OFFSET(vA, cell.group, n0, cell.c0, 0, 0, 0), vA,
                      (INDEX)vMeet.s0);
            for (int panel = cell.panel0; panel < cell.panel1; panel++) {
                const int v0 = (int)((INT64)panel * all_vectors / all_panels);
                const int vectors = (int)((INT64)(panel + 1) * all_vectors / all_panels) - v0;
                const INDEX from = OFFSET(vB, cell.group, 0, v0 * VEC, 0, 0, 0);
                const int tiles = (rows + THR_M - 1) / THR_M;
                LOCAL RV *const sums = sC + (v0 - cell.vector0) * rows;

                for (int i = 0; i < pieces || (first && i == 0); i++) {
                    const int k0 = pieces ? (int)((INT64)i * pixels / pieces) : 0;
                    const int k1 = pieces ? (int)((INT64)(i + 1) * pixels / pieces) : 0;
                    struct ahead ahead;

                    pack_panel(sDY, vectors, (int)imin(vectors * VEC, filters - v0 * VEC), gB, from,
                               (INDEX)vB.s3, sFrom + k0, k1 - k0, (INDEX)eBox.s0);
                    find_ahead(&ahead, gB + from, (INDEX)vB.s3, vectors * VEC, sFrom, k0, k1, pixels,
                               panel + 1 < cell.panel1, tiles);
                    for (int j = 0; j < tiles; j++) {
                        const int m0 = j * rows / tiles, m1 = (j + 1) * rows / tiles;

                        tile_of(vectors, sums + m0 * vectors, sSlab, sRow + m0, m1 - m0, sPixel + k0, k1 - k0,
                                sDY, first && i == 0, &ahead);
                    }
                }
            }
            first = 0;
        }

        const int v1 = (int)((INT64)cell.panel1 * all_vectors / all_panels);

        if (splits > 1) {
            GLOBAL RV *const to = gSum + (number * splits + split) * (INDEX)eBoxes.s1;

            for (int i = 0; i < (v1 - cell.vector0) * rows; i++)
                to[i] = sC[i];
        } else
            for (int panel = cell.panel0; panel < cell.panel1; panel++) {
                const int v0 = (int)((INT64)panel * all_vectors / all_panels);

                store_panel(&output, sC + (v0 - cell.vector0) * rows, rows, v0,
                            (int)((INT64)(panel + 1) * all_vectors / all_panels), &cell, filters, places, vC,
                            vR, vBias);
            }
    }
    if (ATOMIC_ADD(taken + 1, 1) == groups - 1) {   /* the last one leaves the counters at 0 */
        ATOMIC_ADD(taken, -(all + groups));
        ATOMIC_ADD(taken + 1, -groups);
    }
}

/* Adds the sums of the splits of a cell, in order; a work-group takes one of its panels. */
KERNEL(1) void
conv_slab_add(CONV_PARAMS, VIEW eTaps, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
              R alpha, VIEW eBox, VIEW eBoxes, GLOBAL const RV *RESTRICT gSum)
{
    LOCAL_ARRAY(RV, sC, BLK_C / VEC);
    LOCAL_ARRAY(int, sRow, ROWS_MOST);
    LOCAL_ARRAY(INDEX, sPlace, ROWS_MOST);
    LOCAL_ARRAY(INDEX, sResidual, RESIDUAL ? ROWS_MOST : 1);
    LOCAL_ARRAY(INDEX, sBias, BIAS ? ROWS_MOST : 1);

    const INDEX filters = (INDEX)eOut.s3, splits = (INDEX)eBox.s1;
    const int all_vectors = (int)((filters + VEC - 1) / VEC), all_panels = (all_vectors + THR_V - 1) / THR_V;
    const struct output output = CONV_OUTPUT;
    const struct places places = { sPlace, RESIDUAL ? sResidual : sPlace, BIAS ? sBias : sPlace,
                                   (int)eBox.s7 };
    const INDEX number = GROUP_ID(0);
    const struct slab slab = { 0 };             /* places in it are not used */
    struct cell cell;
    struct taps t, r, s;
    int rows = 0;

    find_cell(&cell, number, all_panels, all_vectors, eTaps, eBox, eBoxes);

    const int panel = cell.panel0 + GROUP_ID(1);

    if (panel >= cell.panel1)
        return;
    FIND_TAPS(&t, &r, &s, 0, 0, 0);
    LIST_ROWS(rows);

    const int v0 = (int)((INT64)panel * all_vectors / all_panels);
    const int v1 = (int)((INT64)(panel + 1) * all_vectors / all_panels);
    GLOBAL const RV *const from = gSum + number * splits * (INDEX)eBoxes.s1 + (v0 - cell.vector0) * rows;

    for (int i = 0; i < rows * (v1 - v0); i++) {
        RV sum = from[i];

        for (int split = 1; split < splits; split++)
            sum += from[split * (INDEX)eBoxes.s1 + i];
        sC[i] = sum;
    }
    store_panel(&output, sC, rows, v0, v1, &cell, filters, places, vC, vR, vBias);
}
