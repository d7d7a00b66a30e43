/* cl/conv/slab.cl - convolution on CPUs, out of a slab that holds the source with its padding
 *
 *                     THR_N channels         A work-group is one work-item. A task is a box of pixels of
 *              +------------------+          some panels of output channels. For each block of channels
 *       steps  | sW               |          the source under the box is copied into local memory with
 *       (tap,  |                  |          zeros where it is padding: the slab. From then on each pixel
 *    channel)  +------------------+          is a place in the slab, each step (tap, channel) of the sum
 *              +------------------+          an offset from it, and a tile is a matrix product: THR_M
 *       THR_M  | sC               |          pixels, each element of which is broadcast, by THR_V vectors
 *      pixels  +------------------+          of channels from a panel of the filter, packed as in GEMM.
 *
 * Pixels of a tile are any pixels of the box: rows, images, strides and dilations cost no lanes. Where the
 * filter is packed, a tile leaves out rows of taps that meet padding alone (list_tiles()).
 *
 * Tasks are taken from a counter, since cores may begin late. Each sum runs over blocks of channels, and in
 * these over steps in the order in which the filter has them: the same on every device of one vector length.
 *
 * IN_PLACE: a filter of one tap without padding, in f32 and f64, whose source is its own slab.
 *
 * Parameters, from conv.tune: THR_M THR_V VEC (see cl/tile/cpu.h); BLK_K steps of a panel, which fit the
 * first-level cache; BLK_S elements of the slab and BLK_C sums, which fit the second.
 */
#define FIRST_CHANNEL(v, group, c) ((INDEX)(v).s0 + (group) * (INDEX)(v).s1 + (c) * (INDEX)(v).s3)

/* ---- a filter that is packed for all tasks ------------------------------------------------- */

/* A packed filter has the order [group][panel][phase][run of VEC channels][tap][channel] of vectors, so that
 * the steps of a block of channels are read from its beginning to its end. Along one dimension the taps of a
 * phase have one remainder modulo a step; those of the remainders below `first`, and those of `first`: */
DEVICE INDEX taps_before(INDEX taps, INDEX first, INDEX step)
{
    return first * (taps / step) + imin(first, taps % step);
}

DEVICE INDEX taps_like(INDEX taps, INDEX first, INDEX step)
{
    return taps / step + (first < taps % step);
}

/* The taps in front of a phase, of its first taps t, r, s. */
DEVICE INDEX taps_ahead(VIEW eTaps, const struct taps *d, const struct taps *h, const struct taps *w, INDEX t,
                        INDEX r, INDEX s)
{
    const INDEX all_h = (INDEX)eTaps.s5, all_w = (INDEX)eTaps.s6;

    return taps_before((INDEX)eTaps.s4, t, d->step) * all_h * all_w +
           taps_like((INDEX)eTaps.s4, t, d->step) *
           (taps_before(all_h, r, h->step) * all_w +
            taps_like(all_h, r, h->step) * taps_before(all_w, s, w->step));
}

/* A tap along one dimension: number `tap` of those of its remainder, `first`. */
struct tap { INDEX first, tap; };

/* To the next of `taps`; whether there is one, else to the first. */
DEVICE int next_tap(struct tap *t, INDEX step, INDEX taps)
{
    if (++t->first == step) {
        t->first = 0;
        t->tap++;
    }
    if (t->tap * step + t->first < taps)
        return 1;
    t->first = t->tap = 0;
    return 0;
}

/* Where a packed filter has a tap of a channel, in steps of a panel. */
DEVICE INDEX place_of_step(VIEW eTaps, const struct taps *d, const struct taps *h, const struct taps *w,
                           INDEX c, struct tap t, struct tap r, struct tap s)
{
    const INDEX channels = (INDEX)eTaps.s3, c0 = c / VEC * VEC;
    const INDEX like_h = taps_like((INDEX)eTaps.s5, r.first, h->step);
    const INDEX like_w = taps_like((INDEX)eTaps.s6, s.first, w->step);
    const INDEX like = taps_like((INDEX)eTaps.s4, t.first, d->step) * like_h * like_w;
    const INDEX tap = (t.tap * like_h + r.tap) * like_w + s.tap;

    return taps_ahead(eTaps, d, h, w, t.first, r.first, s.first) * channels + c0 * like +
           tap * imin(VEC, channels - c0) + c - c0;
}

/* Packs the filter; a work-group takes `some` channels of a panel. streams: vectors as long as a line are
 * stored past the caches. */
KERNEL(1) void
conv_slab_pack(GLOBAL const T *RESTRICT gA, VIEW vA, VIEW eTaps, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
               int some, int streams, GLOBAL RV *RESTRICT gPacked)
{
    LOCAL_ARRAY(RV, sW, (BLK_K + 3) * THR_V);
    LOCAL_ARRAY(INDEX, sFilter, BLK_K);
    LOCAL_ARRAY(INDEX, sTo, BLK_K);

    const int all_vectors = (int)((eOut.s3 + VEC - 1) / VEC), all_panels = (all_vectors + THR_V - 1) / THR_V;
    const int panel = GROUP_ID(1), v0 = (int)((INT64)panel * all_vectors / all_panels);
    const int vectors = (int)((INT64)(panel + 1) * all_vectors / all_panels) - v0;
    const INDEX channels = (INDEX)eTaps.s3, taps = (INDEX)(eTaps.s4 * eTaps.s5 * eTaps.s6);
    const INDEX c0 = (INDEX)GROUP_ID(0) * some, count = imin(some, channels - c0);
    const INDEX from = FIRST_CHANNEL(vA, GROUP_ID(2), c0) + v0 * VEC * (INDEX)vA.s2;
    const int past = streams & (sizeof(RV) == LINE * T_BYTES);
    const int by_tap = vA.s3 < vA.s6;           /* in the order of the filter, so that it is read in runs */
    GLOBAL RV *const to = gPacked + (GROUP_ID(2) * all_vectors + v0) * taps * channels;
    const INDEX most = by_tap || taps > BLK_K ? BLK_K : BLK_K / taps * taps;    /* whole channels */
    struct tap t = { 0, 0 }, r = { 0, 0 }, s = { 0, 0 };
    struct taps in_d, in_h, in_w;
    INDEX c = 0;

    FIND_TAPS(&in_d, &in_h, &in_w, 0, 0, 0);
    for (INDEX k0 = 0; k0 < taps * count; k0 += most) {
        const int depth = (int)imin(most, taps * count - k0);

        for (int k = 0; k < depth; k++) {
            /* behind the same tap of the channel before, in a run */
            for (; !by_tap && k >= taps && k < depth && (c0 + c) % VEC; c++)
                for (INDEX i = 0; i < taps; i++, k++) {
                    sFilter[k] = sFilter[k - taps] + (INDEX)vA.s3;
                    sTo[k] = sTo[k - taps] + vectors;
                }
            if (k >= depth)
                break;
            sFilter[k] = c * (INDEX)vA.s3 + (t.tap * in_d.step + t.first) * (INDEX)vA.s4 +
                         (r.tap * in_h.step + r.first) * (INDEX)vA.s5 +
                         (s.tap * in_w.step + s.first) * (INDEX)vA.s6;
            sTo[k] = place_of_step(eTaps, &in_d, &in_h, &in_w, c0 + c, t, r, s) * vectors;
            if (by_tap && ++c < count)
                continue;
            c = by_tap ? 0 : c;
            if (!next_tap(&s, in_w.step, (INDEX)eTaps.s6) && !next_tap(&r, in_h.step, (INDEX)eTaps.s5) &&
                !next_tap(&t, in_d.step, (INDEX)eTaps.s4) && !by_tap)
                c++;
        }
        pack_panel(sW, vectors, (int)imin(vectors * VEC, (INDEX)eOut.s3 - v0 * VEC), gA, from, (INDEX)vA.s2,
                   sFilter, depth, (INDEX)vMeet.s0);
        for (int k = 0; past && k < depth; k++)
            for (int v = 0; v < vectors; v++)
                VSTORE_STREAM(RV, to + sTo[k] + v, sW[k * vectors + v]);
        for (int k = 0; !past && k < depth; k++)
            for (int v = 0; v < vectors; v++)
                to[sTo[k] + v] = sW[k * vectors + v];
    }
}

/* ---- forward and backward data --------------------------------------------------------- */

/* eBox: the extents of a box, s1 whether the output is stored past the caches, s3 the panels of a task;
 * eBoxes: how many there are, s3 of ranges of panels, s0 whether all ranges of a box come one after the
 * other, or all boxes of a range. some: channels of a block. `taken` counts the tasks, of which there are
 * `all`, taken by `groups` work-groups. Where PACKED, blocks begin with a run of channels. */
KERNEL(1) void
conv_slab(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
          CONV_PARAMS,
          VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
          R alpha, VIEW eBox, VIEW eBoxes, int some, int all, int groups, GLOBAL int *RESTRICT taken,
          GLOBAL const RV *RESTRICT gPacked)
{
    LOCAL_ARRAY(R, sSlab, IN_PLACE ? 1 : BLK_S + VEC);
    LOCAL_ARRAY(RV, sW, PACKED ? 1 : (BLK_K + 3) * THR_V);
    LOCAL_ARRAY(RV, sC, BLK_C / VEC);
    LOCAL_ARRAY(int, sPixel, ROWS_MOST);
    LOCAL_ARRAY(struct part, sPart, PARTS_MOST);
    LOCAL_ARRAY(INDEX, sPlace, ROWS_MOST);
    LOCAL_ARRAY(INDEX, sResidual, RESIDUAL ? ROWS_MOST : 1);
    LOCAL_ARRAY(INDEX, sBias, BIAS ? ROWS_MOST : 1);
    LOCAL_ARRAY(int, sStep, STEPS_MOST);
    LOCAL_ARRAY(INDEX, sFilter, STEPS_MOST);

    const int all_vectors = (int)((eOut.s3 + VEC - 1) / VEC), all_panels = (all_vectors + THR_V - 1) / THR_V;
    const INDEX channels = (INDEX)eTaps.s3;
    const struct output output = CONV_OUTPUT;
    struct places places = { sPlace, RESIDUAL ? sResidual : sPlace, BIAS ? sBias : sPlace,
                             (int)eBox.s1, 0 };

    for (int task = ATOMIC_ADD(taken, 1); task < all; task = ATOMIC_ADD(taken, 1)) {
        INDEX group = task;
        INDEX range = eBoxes.s0 ? divmod(&group, (INDEX)eBoxes.s3) : 0;
        /* phases of a box follow each other, as they store to the same cache lines */
        const INDEX phase_w = divmod(&group, phases_along((INDEX)eOut.s6, (INDEX)vStep.s6));
        const INDEX phase_h = divmod(&group, phases_along((INDEX)eOut.s5, (INDEX)vStep.s5));
        const INDEX phase_d = divmod(&group, phases_along((INDEX)eOut.s4, (INDEX)vStep.s4));
        const INDEX w0 = divmod(&group, (INDEX)eBoxes.s6) * (INDEX)eBox.s6;
        const INDEX h0 = divmod(&group, (INDEX)eBoxes.s5) * (INDEX)eBox.s5;
        const INDEX d0 = divmod(&group, (INDEX)eBoxes.s4) * (INDEX)eBox.s4;
        const INDEX n0 = divmod(&group, (INDEX)eBoxes.s2) * (INDEX)eBox.s2;

        if (!eBoxes.s0)
            range = divmod(&group, (INDEX)eBoxes.s3);

        const int panel0 = (int)(range * (INDEX)eBox.s3);
        const int panel1 = (int)imin(all_panels, panel0 + (INDEX)eBox.s3);
        const INDEX depth = pixels_along((INDEX)eOut.s4, (INDEX)vStep.s4, phase_d);
        const INDEX height = pixels_along((INDEX)eOut.s5, (INDEX)vStep.s5, phase_h);
        const INDEX width = pixels_along((INDEX)eOut.s6, (INDEX)vStep.s6, phase_w);
        const int nw = (int)imin((INDEX)eBox.s6, width - w0), nh = (int)imin((INDEX)eBox.s5, height - h0);
        const int nd = (int)imin((INDEX)eBox.s4, depth - d0);
        const int nn = (int)imin((INDEX)eBox.s2, (INDEX)eOut.s2 - n0);
        const int pixels = nn * nd * nh * nw;
        const int vector0 = (int)((INT64)panel0 * all_vectors / all_panels);
        struct taps t, r, s;
        struct slab slab;
        int listed = -1, steps = 0, first = 1;

        if (nw <= 0 || nh <= 0 || nd <= 0)      /* a phase has fewer pixels than the first one */
            continue;
        FIND_TAPS(&t, &r, &s, phase_d, phase_h, phase_w);
#if IN_PLACE
        find_source(&slab, vB, vStep);
#else
        find_axis(&slab.d, &t, (INDEX)vStep.s4, d0, (int)eBox.s4, nd, (INDEX)eIn.s4, 0);
        find_axis(&slab.h, &r, (INDEX)vStep.s5, h0, (int)eBox.s5, nh, (INDEX)eIn.s5, 0);
        find_axis(&slab.w, &s, (INDEX)vStep.s6, w0, (int)eBox.s6, nw, (INDEX)eIn.s6, vB.s6 == 1);
        slab.by_channel = vB.s3 == 1 && slab.w.step * (INDEX)vB.s6 != 1;
        find_steps(&slab, (int)eBox.s2, some);
#endif
        list_pixels(sPixel, &slab, nn, nd, nh, nw);

        const INDEX meet = t.count * r.count * s.count;
        /* a piece is a run of channels, where that is long enough: tiles leave out rows of its taps */
        const int by_run = PACKED && t.count == 1 && meet * VEC > BLK_K / 2 && meet * VEC <= BLK_K / 2 * 3;
        const int rows = by_run ? (int)r.count : 1;
        const int tiles = list_tiles(sPart, &slab.h, rows, nh, nw, pixels);

#if PACKED
        const INDEX taps = (INDEX)(eTaps.s4 * eTaps.s5 * eTaps.s6);
        const INDEX ahead = taps_ahead(eTaps, &t, &r, &s, t.first, r.first, s.first);
#endif

        for (INDEX c0 = 0; c0 < channels && meet; c0 += some) {
            const int count = (int)imin(some, channels - c0), run = PACKED ? VEC : run_of(vA, count);
            /* pieces have whole runs, or channels */
            const int unit = by_run ? (int)meet * VEC : run == 1 && meet <= BLK_K ? (int)meet : 1;
            const int units = unit < BLK_K ? BLK_K / unit : 1;

            const INDEX base = FIRST_CHANNEL(vB, group, c0) + n0 * (INDEX)vB.s2;
#if IN_PLACE
            GLOBAL const T *const pixel0 = gB + base + d0 * SOURCE_STEP((INDEX)vStep.s4) * (INDEX)vB.s4 +
                                           h0 * SOURCE_STEP((INDEX)vStep.s5) * (INDEX)vB.s5 +
                                           w0 * SOURCE_STEP((INDEX)vStep.s6) * (INDEX)vB.s6;
            GLOBAL const R *const from = (GLOBAL const R *)pixel0;      /* T is R */
#else
            LOCAL const R *const from = sSlab;

            fill_slab(sSlab, &slab, nn, count, gB, base, vB, (INDEX)eIn.s0);
#endif
            if (count != listed)
                steps = list_steps(sStep, sFilter, &slab, count, &t, &r, &s, run, vA);
            listed = count;
            for (int panel = panel0; panel < panel1; panel++) {
                const int v0 = (int)((INT64)panel * all_vectors / all_panels);
                const int vectors = (int)((INT64)(panel + 1) * all_vectors / all_panels) - v0;
                const int whole = (steps + unit - 1) / unit, pieces = (whole + units - 1) / units;
#if PACKED
                GLOBAL const RV *const b = gPacked + ((group * all_vectors + v0) * taps + ahead * vectors) *
                                           channels + c0 * meet * vectors;
#else
                LOCAL const RV *const b = sW;
                const INDEX w = FIRST_CHANNEL(vA, group, c0) + v0 * VEC * (INDEX)vA.s2;
#endif

                for (int i = 0; i < pieces; i++) {
                    const int k0 = (int)((INT64)i * whole / pieces) * unit;
                    const int k1 = (int)imin(steps, (INT64)(i + 1) * whole / pieces * unit);
                    const int each = (k1 - k0) / rows;      /* steps of a row of taps */
                    struct ahead ahead;

#if !PACKED
                    pack_panel(sW, vectors, (int)imin(vectors * VEC, (INDEX)eOut.s3 - v0 * VEC), gA, w,
                               (INDEX)vA.s2, sFilter + k0, k1 - k0, (INDEX)vMeet.s0);
                    find_ahead(&ahead, gA + w, (INDEX)vA.s2, vectors * VEC, sFilter, k0, k1, steps,
                               panel + 1 < panel1, tiles);
#endif
                    for (int j = 0; j < tiles; j++) {
                        const int p0 = sPart[j].pixel, k = k0 + sPart[j].from * each;

                        tile_of(vectors, sC + (v0 - vector0) * pixels + p0 * vectors, from, sPixel + p0,
                                sPart[j + 1].pixel - p0, sStep + k, (sPart[j].to - sPart[j].from) * each,
                                PACKED ? b + k * vectors : b, first && i == 0, &ahead);
                    }
                }
            }
            first = 0;
        }
        if (first)                              /* nothing to sum */
            for (int i = 0; i < ((int)((INT64)panel1 * all_vectors / all_panels) - vector0) * pixels; i++)
                sC[i] = (RV)(ZERO);

        find_places(sPlace, nn, nd, nh, nw, n0, phase_d, phase_h, phase_w, d0, h0, w0, vStep, vC);
        places.adjacent = step_of(sPlace, pixels) == 1;
        if (RESIDUAL)
            find_places(sResidual, nn, nd, nh, nw, n0, phase_d, phase_h, phase_w, d0, h0, w0, vStep, vR);
        if (BIAS)
            find_places(sBias, nn, nd, nh, nw, n0, phase_d, phase_h, phase_w, d0, h0, w0, vStep, vBias);
        for (int panel = panel0; panel < panel1; panel++) {
            const int v0 = (int)((INT64)panel * all_vectors / all_panels);
            const int v1 = (int)((INT64)(panel + 1) * all_vectors / all_panels);

            for (int v = v0; v < v1; v++)
                store_rows(&output, sC + (v0 - vector0) * pixels + v - v0, v1 - v0, pixels,
                             (int)imin(VEC, (INDEX)eOut.s3 - v * VEC), places,
                             FIRST_CHANNEL(vC, group, v * VEC), (INDEX)vC.s3,
                             FIRST_CHANNEL(vR, group, v * VEC), (INDEX)vR.s3,
                             FIRST_CHANNEL(vBias, group, v * VEC), (INDEX)vBias.s3);
        }
    }
    if (ATOMIC_ADD(taken + 1, 1) == groups - 1) {   /* the last one leaves the counters at 0 */
        ATOMIC_ADD(taken, -(all + groups));
        ATOMIC_ADD(taken + 1, -groups);
    }
}
