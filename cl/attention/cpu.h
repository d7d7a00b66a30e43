/* cl/attention/cpu.h - what attention and its gradients share on CPUs
 *
 * Takes  HEAD; cl/tile/cpu.h; cl/tile/row_cpu.h
 * Gives  CHUNKS CPU_LOCAL_ROWS exp_below_lanes() count_lanes() seen_lanes() store_strip_row()
 */
#define CHUNKS ((HEAD + THR_N - 1) / THR_N)     /* tiles beside each other in a strip of THR_M rows */

/* A, for CPU_TILE: rows in local memory, a_row apart. */
#define CPU_LOCAL_ROWS(a, a_row, i) (a)[(i) * (a_row)]
#define CPU_LOCAL_ROWS_NEXT(a)      a++

EXP_BELOW_FUNCTION(exp_below_lanes, RV, BITS_LANES, LANES_BITS)

/* 0, 1, ... */
DEVICE RV count_lanes(void)
{
    R lane[VEC];

    for (int i = 0; i < VEC; i++)
        lane[i] = (R)i;
    return VLOAD(VEC, lane);
}

/* x in lanes whose number `at` is from `first` to before `end`, else `none`. */
DEVICE RV seen_lanes(RV at, int first, int end, RV x, RV none)
{
    return PICK(at, (RV)((R)first), none, PICK(at, (RV)((R)end), x, none));
}

/* One row of a strip, times the factor; 0 where the factor is, also of NaN. */
DEVICE void store_strip_row(LOCAL const RV *strip, R factor, GLOBAL T *o, INDEX col, int width)
{
    for (int n = 0; n < width; n += VEC) {
        const RV sum = strip[n / THR_N * THR_M * THR_V + n % THR_N / VEC];
        const RV v = factor == ZERO ? (RV)(ZERO) : (RV)(factor) * sum;
        R lane[VEC];

        if (col == 1 && n + VEC <= width) {
            STORE_VECTOR(VEC, o + n, v);
            continue;
        }
        VSTORE(VEC, lane, v);
        for (int i = 0; n + i < width && i < VEC; i++)
            STORE(o, (n + i) * col, lane[i]);
    }
}
