/* gemm_skinny.h - how the skinny kernels end: sums of one element meet, and go to memory
 *
 * The items, or warps, that share a column leave their sums in local memory, and these are added
 * in order.  Where K is split over work-groups as well, that is one part of it: it goes to the
 * workspace, and gemm_sum adds the parts, also in order.
 */
struct output {
    int M, N, n0, wide;                         /* the work-group's columns */
    int part, parts;                            /* part: the first has all batches, then the second */
    GLOBAL R *gP;
    R alpha, beta;
    GLOBAL T *gC;
    INDEX c0, c_row, c_col;
    int has_bias;
    GLOBAL const T *gBias;
    INDEX bias0, bias_row, bias_col;
    int act;
};

/* Out of the arguments of a kernel, of which `part_at` tells part and batch. */
#define OUTPUT(n0, wide)                                                                \
    { M, N, n0, wide, part_at, parts, gP, alpha, beta,                                  \
      gC, batch_offset(vC, eC, batch), (INDEX)vC.s5, (INDEX)vC.s6,                      \
      has_bias, gBias, batch_offset(vBias, eC, batch), (INDEX)vBias.s5, (INDEX)vBias.s6, act }

/* Rows m0 on of C: sums[place * line + row * pitch + column], over the places. */
DEVICE void add_places(const struct output *o, LOCAL const R *sums, int places, int line, int pitch, int rows,
                       int m0)
{
    for (int i = LOCAL_ID(); i < rows * o->wide; i += ITEMS) {
        const int row = i / o->wide, column = i - row * o->wide, m = m0 + row, n = o->n0 + column;
        LOCAL const R *mine = sums + row * pitch + column;
        const INDEX at = o->c0 + m * o->c_row + n * o->c_col;
        R sum = mine[0];

        for (int p = 1; p < places; p++)
            sum = sum + mine[p * line];
        if (m < o->M && n < o->N) {
            if (o->parts > 1)
                o->gP[((INDEX)o->part * o->M + m) * o->N + n] = sum;
            else
                STORE(o->gC, at, epilogue(sum, o->alpha, o->beta, o->gC, at, o->has_bias, o->gBias,
                                          o->bias0 + m * o->bias_row + n * o->bias_col, o->act));
        }
    }
}
