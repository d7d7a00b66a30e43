/* tile_cpu.h - a tile of C = A B in vector registers, for CPUs
 *
 * One work-item is one work-group; it keeps THR_M x THR_N of C in registers, as THR_V
 * vectors of VEC numbers a row, and walks down two panels that lie in memory in just the
 * order of reading:
 *
 *     panel of A   k-major, THR_M wide     each number is broadcast over a vector
 *     panel of B   k-major, THR_N wide     read as vectors
 *
 * THR_M * THR_V accumulators, THR_V vectors of B and one of A must fit the registers: 12 x 2
 * of 16 floats with AVX-512 (32 registers), 6 x 2 of 8 with AVX2 (16).  The panels are what
 * makes it fast: rows of a matrix are far apart, and at a power of two would all fall
 * into one set of the cache.  Method: Goto and van de Geijn, Anatomy of High-Performance
 * Matrix Multiplication, 2008.
 *
 * Sums run along K in order, one fused multiply-add each: the same bits everywhere.
 */
#define THR_N (VEC * THR_V)

#ifndef PANEL_A
#define PANEL_A GLOBAL                          /* where panels of A lie */
#endif

typedef VECTOR(R, VEC) RV;

DEVICE void tile_clear(RV rC[THR_M][THR_V])
{
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_V; j++)
        rC[i][j] = (RV)(ZERO);
}

/* rC += A B over `depth` of k */
DEVICE void tile_multiply(RV rC[THR_M][THR_V], PANEL_A const R *RESTRICT a, LOCAL const R *RESTRICT b, int depth)
{
    for (int k = 0; k < depth; k++) {
        RV rB[THR_V];

        UNROLL for (int j = 0; j < THR_V; j++)
            rB[j] = VLOAD(VEC, b + j * VEC);
        UNROLL for (int i = 0; i < THR_M; i++) {
            const RV rA = (RV)(a[i]);

            UNROLL for (int j = 0; j < THR_V; j++)
                rC[i][j] = FMA(rA, rB[j], rC[i][j]);
        }
        a += THR_M;
        b += THR_N;
    }
}

/* Sums that wait for the next stretch of K lie as they lay in registers. */
DEVICE void tile_resume(RV rC[THR_M][THR_V], LOCAL const R *partial)
{
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_V; j++)
        rC[i][j] = VLOAD(VEC, partial + i * THR_N + j * VEC);
}

DEVICE void tile_suspend(LOCAL R *partial, RV rC[THR_M][THR_V])
{
    UNROLL for (int i = 0; i < THR_M; i++)
    UNROLL for (int j = 0; j < THR_V; j++)
        VSTORE(VEC, partial + i * THR_N + j * VEC, rC[i][j]);
}

/* Copies `width` numbers, the rows (or columns) of `g` from x on, over `depth` of k, to a
 * panel `wide` numbers wide; zeros past the edge.  `across` is g's step along the panel's
 * width, `along` that along k.                                                          */
#define PACK_PANEL(panel, wide, width, g, at, across, along, depth)                        \
    do {                                                                                   \
        for (int x = 0; x < (wide); x++)                                                   \
            for (int k = 0; k < (depth); k++)                                              \
                (panel)[k * (wide) + x] = x < (width) ? LOAD(g, (at) + x * (across) + k * (along)) : ZERO; \
    } while (0)

/* To row[0 ... count) of y, steps of `step` from `at`: one row of a register tile. */
DEVICE void tile_store_row(RV rC[THR_V], GLOBAL T *y, INDEX at, INDEX step, int count, R alpha, R beta,
                           int has_bias, GLOBAL const T *bias, INDEX bias_at, INDEX bias_step, int act)
{
#ifdef STORE_VECTOR
    if (count == THR_N && step == 1 && act == 0 && (!has_bias || bias_step < 2)) {
        UNROLL for (int j = 0; j < THR_V; j++) {
            RV v = (RV)(alpha) * rC[j];

            if (beta != ZERO)
                v = FMA((RV)(beta), LOAD_VECTOR(VEC, y + at + j * VEC), v);
            if (has_bias)
                v = v + (bias_step ? LOAD_VECTOR(VEC, bias + bias_at + j * VEC) : (RV)(LOAD(bias, bias_at)));
            STORE_VECTOR(VEC, y + at + j * VEC, v);
        }
        return;
    }
#endif
    R row[THR_N];

    UNROLL for (int j = 0; j < THR_V; j++)
        VSTORE(VEC, row + j * VEC, rC[j]);
    for (int n = 0; n < count; n++)
        STORE(y, at + n * step, epilogue(row[n], alpha, beta, y, at + n * step,
                                         has_bias, bias, bias_at + n * bias_step, act));
}
