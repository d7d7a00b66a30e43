/* cl/conv/phases.cl - copies a filter so that phases of backward data are rows of it (cl/conv/phases.h)
 *
 * Row (phase h, phase w, channel) has tap (i, j) of all filters next to each other: tap phase + pad - stride
 * (i + first) of the filter, where it has that, and zeros.
 *
 *     vW      the filter: s0 its start, s2 from filter to filter, s3 from channel to channel, s5 s6 from tap
 *             to tap; eW its extents
 *     eTo     s2 rows, s3 filters, a multiple of 8, s5 s6 taps of the copy
 *     vStep   s5 s6 the stride, s2 s3 the padding;  vFirst  s5 s6
 */
KERNEL(256) void
copy_phases(GLOBAL const T *gW, VIEW vW, VIEW eW, GLOBAL T *gTo, int start, VIEW eTo, VIEW vStep, VIEW vFirst)
{
    INDEX at = (INDEX)GROUP_ID(0) * 256 + LOCAL_ID();
    GLOBAL UINT16 *const to = (GLOBAL UINT16 *)gTo + start + at;
    const int k = (int)divmod(&at, (INDEX)eTo.s3), j = (int)divmod(&at, (INDEX)eTo.s6);
    const int i = (int)divmod(&at, (INDEX)eTo.s5), row = (int)at;
    const int c = (int)divmod(&at, (INDEX)eW.s3), w = (int)divmod(&at, (INDEX)vStep.s6), h = (int)at;
    const int r = h + (int)vStep.s2 - (int)vStep.s5 * (i + (int)vFirst.s5);
    const int s = w + (int)vStep.s3 - (int)vStep.s6 * (j + (int)vFirst.s6);

    if (row < (int)eTo.s2)
        *to = k < (int)eW.s2 && r >= 0 && r < (int)eW.s5 && s >= 0 && s < (int)eW.s6
            ? ((GLOBAL const UINT16 *)gW)[OFFSET(vW, 0, k, c, 0, r, s)] : 0;
}
