/* cl/tile/result.h - C of one batch, and how work-items store their accumulators to it
 *
 * The epilogue is long, so that it stands in a loop; accumulators pass through local memory there, for a loop
 * cannot index registers: `room` is the work-item's own, for as many as a call stores.
 *
 * Takes  epilogue() of cl/tile/epilogue.h; for RESULT(), a kernel's M N alpha beta gC vC has_bias gBias vBias
 *        act
 * Gives  struct result, RESULT(), result_store_at() result_store() RESULT_STORE_ROW()
 *        result_store_plain_row()
 */

/* plain: C is alpha A B. */
struct result {
    int M, N, plain, has_bias, act;
    R alpha, beta;
    GLOBAL T *c;
    GLOBAL const T *bias;
    INDEX c0, row, col, bias0, bias_row, bias_col;
};

/* c0, bias0: where the batch begins in C and in the bias. */
#define RESULT(c0, bias0)                                                                           \
    { M, N, beta == ZERO && !has_bias && act == 0, has_bias, act, alpha, beta, gC, gBias,           \
      c0, (INDEX)vC.s5, (INDEX)vC.s6, bias0, (INDEX)vBias.s5, (INDEX)vBias.s6 }

/* An element, through the epilogue: offsets in C and in the bias. */
DEVICE void result_store_at(const struct result *o, INDEX at, INDEX bias_at, R sum)
{
    STORE(o->c, at, epilogue(sum, o->alpha, o->beta, o->c, at, o->has_bias, o->bias, bias_at, o->act));
}

DEVICE void result_store(const struct result *o, int m, int n, R sum)
{
    result_store_at(o, o->c0 + m * o->row + n * o->col, o->bias0 + m * o->bias_row + n * o->bias_col, sum);
}

/* Row m, through the epilogue: d[i] is of column COLUMN(i), a macro; i < count, a constant.  Columns before
 * n_from are another tile's; -1: none are.  A macro, since as a function it costs tiled.cl registers and a
 * wave on AMD's GPUs.                                                                                    */
#define RESULT_STORE_ROW(o, m, n_from, d, count, COLUMN, room)                                      \
    do {                                                                                            \
        const INDEX at_ = (o)->c0 + (m) * (o)->row, bias_at_ = (o)->bias0 + (m) * (o)->bias_row;    \
                                                                                                    \
        UNROLL for (int i_ = 0; i_ < (count); i_++)                                                 \
            (room)[i_] = (d)[i_];                                                                   \
        NO_UNROLL for (int i_ = 0; i_ < (count); i_++) {                                            \
            const int n_ = COLUMN(i_);                                                              \
                                                                                                    \
            if ((m) < (o)->M && ((n_from) < 0 || n_ >= (n_from)) && n_ < (o)->N)                        \
                result_store_at(o, at_ + n_ * (o)->col, bias_at_ + n_ * (o)->bias_col, (room)[i_]); \
        }                                                                                           \
    } while (0)

/* The same of a plain C, d[i] being of column n + i / run * step + i % run; run and step are constant. */
DEVICE void result_store_plain_row(const struct result *o, int m, int n, int n_from, const R *d,
                                   const int count, const int run, const int step)
{
    const INDEX at = o->c0 + m * o->row;

    UNROLL for (int i = 0; i < count; i++) {
        const int column = n + i / run * step + i % run;

        if ((n_from < 0 || column >= n_from) && column < o->N)
            STORE(o->c, at + column * o->col, o->alpha * d[i]);
    }
}
