/* cl/tile/epilogue.h - what happens to an accumulator on its way to C:
 *
 *     C := act(alpha scale sum + beta residual + bias)
 *
 * What a problem does not ask for is not compiled in: constants of the problem say what it asks for.
 *
 *   TYPE_C TYPE_RESIDUAL TYPE_BIAS  the types, as vn_type
 *   SCALE RESIDUAL BIAS             0: there is none; SAME_ROWS: a row for all rows of C; SAME_COLUMNS: a
 *                                   column for all columns, or one element; else an element for each of C
 *   ACT FAST_ACT                    see activation.h
 *
 * Takes  OF() R INDEX batch_offset() (cl/types.h), activate() (activation.h)
 * Gives  TC C_BYTES C_BITS LOAD_C STORE_C; OUTPUT_PARAMS, OUTPUT() OUTPUT_BY(), struct output; IS_PLAIN,
 *        epilogue(), epilogue_at(), store_element(), store_vector()
 */
#define SAME_ROWS    1
#define SAME_COLUMNS 2

#define IS_PLAIN     (!SCALE && !RESIDUAL && !BIAS && !ACT)     /* C is alpha A B */

#define TC                   OF(T_OF, TYPE_C)
#define C_BYTES              OF(BYTES, TYPE_C)
#define C_BITS               OF(BITS_OF, TYPE_C)
#define LOAD_C(p, i)         OF(LOAD, TYPE_C)(p, i)
#define STORE_C(p, i, x)     OF(STORE, TYPE_C)(p, i, x)
#define T_RESIDUAL           OF(T_OF, TYPE_RESIDUAL)
#define LOAD_RESIDUAL(p, i)  OF(LOAD, TYPE_RESIDUAL)(p, i)
#define T_BIAS               OF(T_OF, TYPE_BIAS)
#define LOAD_BIAS(p, i)      OF(LOAD, TYPE_BIAS)(p, i)

/* ---- kernels end their parameters with these, and begin with M, N, ... eC, alpha ---------------------- */

/* The residual may be C itself, each element of which is read before it is written. */
#if RESIDUAL
#define RESIDUAL_PARAMS      , R beta, GLOBAL const T_RESIDUAL *gR, VIEW vR
#define RESIDUAL_IN(at, batch) beta, gR + at(vR, eC, batch), (INDEX)vR.s5, (INDEX)vR.s6
#define C_RESTRICT
#else
#define RESIDUAL_PARAMS
#define RESIDUAL_IN(at, batch) ZERO, 0, 0, 0
#define C_RESTRICT           RESTRICT
#endif
#if SCALE
#define SCALE_PARAMS         , GLOBAL const R *RESTRICT gScale, VIEW vScale
#define SCALE_IN(at, batch)  gScale + at(vScale, eC, batch), (INDEX)vScale.s5, (INDEX)vScale.s6
#else
#define SCALE_PARAMS
#define SCALE_IN(at, batch)  0, 0, 0
#endif
#if BIAS
#define BIAS_PARAMS          , GLOBAL const T_BIAS *RESTRICT gBias, VIEW vBias
#define BIAS_IN(at, batch)   gBias + at(vBias, eC, batch), (INDEX)vBias.s5, (INDEX)vBias.s6
#else
#define BIAS_PARAMS
#define BIAS_IN(at, batch)   0, 0, 0
#endif
#define OUTPUT_PARAMS        GLOBAL TC *C_RESTRICT gC, VIEW vC SCALE_PARAMS RESIDUAL_PARAMS BIAS_PARAMS

/* C of one batch, and what is added to it. */
struct output {
    int M, N;
    R alpha;
    GLOBAL TC *c;
    INDEX row, col;
    GLOBAL const R *scale;
    INDEX scale_row, scale_col;
    R beta;
    GLOBAL const T_RESIDUAL *residual;
    INDEX residual_row, residual_col;
    GLOBAL const T_BIAS *bias;
    INDEX bias_row, bias_col;
};

/* Initialises a struct output, from a kernel's parameters; at: batch_offset() or one like it. */
#define OUTPUT_BY(at, batch)                                                              \
    { M, N, alpha, gC + at(vC, eC, batch), (INDEX)vC.s5, (INDEX)vC.s6,                    \
      SCALE_IN(at, batch), RESIDUAL_IN(at, batch), BIAS_IN(at, batch) }
#define OUTPUT(batch) OUTPUT_BY(batch_offset, batch)

/* ---- one element -------------------------------------------------------------------------------------- */

/* The value to store, from places in the residual and the bias, of a sum that is scaled. */
DEVICE R epilogue_at(const struct output *o, INDEX residual_at, INDEX bias_at, R v)
{
    if (RESIDUAL)
        v = FMA(o->beta, LOAD_RESIDUAL(o->residual, residual_at), v);
    if (BIAS)
        v = v + LOAD_BIAS(o->bias, bias_at);
    return activate(v);
}

/* Offsets of an element of row m and column n, or of a row: what is the same for all takes no part. */
#define SIDE_AT(which, row, col, m, n)                                    \
    (((which) == SAME_ROWS ? 0 : (m) * (row)) + ((which) == SAME_COLUMNS ? 0 : (n) * (col)))
#define SCALE_AT(o, m, n)    SIDE_AT(SCALE, (o)->scale_row, (o)->scale_col, m, n)
#define RESIDUAL_AT(o, m, n) SIDE_AT(RESIDUAL, (o)->residual_row, (o)->residual_col, m, n)
#define BIAS_AT(o, m, n)     SIDE_AT(BIAS, (o)->bias_row, (o)->bias_col, m, n)

DEVICE R epilogue(const struct output *o, int m, int n, R sum)
{
    R v = o->alpha * sum;

    if (SCALE)
        v = v * o->scale[SCALE_AT(o, m, n)];
    return epilogue_at(o, RESIDUAL_AT(o, m, n), BIAS_AT(o, m, n), v);
}

DEVICE void store_element(const struct output *o, int m, int n, R sum)
{
    STORE_C(o->c, m * o->row + n * o->col, epilogue(o, m, n, sum));
}

/* Stores `count` elements, at most 4, of row m from column n on: four adjacent ones at once where they are
 * aligned. */
DEVICE void store_vector(const struct output *o, int m, int n, const R sum[4], int count)
{
    const INDEX at = m * o->row + n * o->col;
    R v[4];

    UNROLL for (int i = 0; i < 4; i++)
        v[i] = i < count ? epilogue(o, m, n + i, sum[i]) : ZERO;
    if (count == 4 && o->col == 1 && (UINT64)(o->c + at) % (4 * C_BYTES) == 0) {
        OF(STORE_ALIGNED, TYPE_C)(4, o->c + at, VLOAD(4, v));
        return;
    }
    UNROLL for (int i = 0; i < 4; i++)
        if (i < count)
            STORE_C(o->c, at + i * o->col, v[i]);
}
