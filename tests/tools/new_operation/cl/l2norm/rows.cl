/* rows.cl - y[r] := sqrt(sum over j of x[r][j]^2)
 *
 * One work-group takes a row: each of its work-items sums every ITEMS-th element, and a tree in local
 * memory adds what they have.
 *
 * Parameters, from l2norm.tune: ITEMS, a power of two.
 */
KERNEL(ITEMS) void
l2norm(int n, GLOBAL const T *gX, VIEW x_view, GLOBAL T *gY, VIEW y_view)
{
    LOCAL_ARRAY(R, sSum, ITEMS);

    const int   item = LOCAL_ID();
    const INDEX row = GROUP_ID(0), step = (INDEX)x_view.s6;
    const INDEX at = (INDEX)x_view.s0 + row * (INDEX)x_view.s5;
    R sum = ZERO;

    for (int j = item; j < n; j += ITEMS) {
        const R v = LOAD(gX, at + j * step);

        sum = FMA(v, v, sum);
    }
    sSum[item] = sum;
    BARRIER();
    for (int half_way = ITEMS / 2; half_way > 0; half_way /= 2) {
        if (item < half_way)
            sSum[item] += sSum[item + half_way];
        BARRIER();
    }
    if (item == 0)
        STORE(gY, (INDEX)y_view.s0 + row * (INDEX)y_view.s6, sqrt(sSum[0]));
}
