/* gemm_skinny.h - what the skinny kernels share: which part of the product is a work-group's, and how
 * sums of one element meet and go to memory
 *
 * The items, or warps, that share a column leave their sums in local memory, and these are added
 * in order.  Where K is split over work-groups as well, that is one part of it: it goes to the
 * workspace, and the parts are added there, also in order: by gemm_sum, or by the last work-group.
 */
struct task {
    int m0, n0, wide;                           /* THR_M rows, and so many columns */
    int first, last;                            /* of K */
    int batch, part;                            /* part: the first has all batches, then the second */
};

/* Not returned: Oclgrind does not know what a compiler makes of an inlined function that returns a struct. */
DEVICE void find_task(struct task *t, int M, int N, int K, int wide, int span, int batches)
{
    const int tiles_m = (M + THR_M - 1) / THR_M, tiles_n = (N + wide - 1) / wide;
    const int tile_n = GROUP_ID(0) / tiles_m;

    t->part  = tile_n / tiles_n;
    t->m0    = (GROUP_ID(0) - tile_n * tiles_m) * THR_M;
    t->n0    = (tile_n - t->part * tiles_n) * wide;
    t->wide  = wide;
    t->first = t->part / batches * span;
    t->last  = K - t->first < span ? K : t->first + span;
    t->batch = t->part % batches;
}

struct output {
    int M, N, parts;
    GLOBAL R *gP;
    R alpha, beta;
    GLOBAL T *gC;
    INDEX c0, c_row, c_col;
    int has_bias;
    GLOBAL const T *gBias;
    INDEX bias0, bias_row, bias_col;
    int act;
};

/* Out of the arguments of a kernel. */
#define OUTPUT(batch)                                                                   \
    { M, N, parts, gP, alpha, beta,                                                     \
      gC, batch_offset(vC, eC, batch), (INDEX)vC.s5, (INDEX)vC.s6,                      \
      has_bias, gBias, batch_offset(vBias, eC, batch), (INDEX)vBias.s5, (INDEX)vBias.s6, act }

DEVICE void store_sum(const struct output *o, int m, int n, R sum)
{
    const INDEX at = o->c0 + m * o->c_row + n * o->c_col;

    STORE(o->gC, at, epilogue(sum, o->alpha, o->beta, o->gC, at, o->has_bias, o->gBias,
                              o->bias0 + m * o->bias_row + n * o->bias_col, o->act));
}

/* `rows` rows of C, the task's from `from` on: sums[place * line + row * pitch + column], over the
 * places.                                                                                      */
DEVICE void add_places(const struct output *o, const struct task *t, LOCAL const R *sums, int places, int line,
                       int pitch, int from, int rows)
{
    const int down = ITEMS / t->wide, right = ITEMS - down * t->wide;
    int row = LOCAL_ID() / t->wide, column = LOCAL_ID() - row * t->wide;

    while (row < rows) {
        const int m = t->m0 + from + row, n = t->n0 + column;
        LOCAL const R *mine = sums + row * pitch + column;
        R sum = mine[0];

        for (int p = 1; p < places; p++)
            sum = sum + mine[p * line];
        if (m < o->M && n < o->N) {
            if (o->parts > 1)
                o->gP[((INDEX)t->part * o->M + m) * o->N + n] = sum;
            else
                store_sum(o, m, n, sum);
        }
        row += down;
        column += right;
        if (column >= t->wide) {
            column -= t->wide;
            row++;
        }
    }
}
