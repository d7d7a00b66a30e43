/* skinny.h - what the kernels for few rows of A share: the scheduler of their work-groups
 *
 * Takes ITEMS, THR_M.  K is cut twice: split-K over work-groups, sliced-K over the threads (or, with a matrix
 * engine, the warps) of a work-group that share columns.
 */
#if ITEMS & (ITEMS - 1)
#error "ITEMS must be a power of two"
#endif

/* Offsets of asynchronous copies, in bytes. */
#define BYTE unsigned char
#if WIDE
#define OFFSET INT64
#else
#define OFFSET UINT32
#endif

struct task {
    int m0, n0, width;                          /* THR_M rows, `width` columns */
    int slices, widest;                         /* sliced-K; the width where it is 1 */
    int first, last;                            /* the range of K */
    int batch, split;                           /* split: batches of the first split, then of the second */
};

/* Work-groups are numbered by tile, of all batches, and by split.  All loads depend on this, and a division
 * takes a hundred cycles: none is made that most problems do not need.  Not returned by value: Oclgrind does
 * not know what a compiler makes of an inlined function that returns a struct.                            */
DEVICE void find_task(struct task *t, int M, int N, int K, int slices, int width, int widest, int span,
                      int batches)
{
    int tile = GROUP_ID(0);

    t->batch = 0;
    t->m0 = 0;
    if (batches > 1) {
        const int tiles = (M + THR_M - 1) / THR_M * ((N + width - 1) / width);

        t->batch = tile / tiles;
        tile -= t->batch * tiles;
    }
    if (M > THR_M) {
        const int tiles_m = (M + THR_M - 1) / THR_M, tile_n = tile / tiles_m;

        t->m0 = (tile - tile_n * tiles_m) * THR_M;
        tile = tile_n;
    }
    t->n0     = tile * width;
    t->width  = width;
    t->slices = slices;
    t->widest = widest;
    t->first  = GROUP_ID(1) * span;
    t->last   = K - t->first < span ? K : t->first + span;
    t->split  = GROUP_ID(1) * batches + t->batch;
}

/* i / width, without a division by a variable: widest is slices times width. */
DEVICE int row_of(const struct task *t, int i)
{
    return i * t->slices / t->widest;
}

/* The offset of the first element of a batch. */
DEVICE INDEX start_of(VIEW v, VIEW e, int batch)
{
    return batch ? batch_offset(v, e, batch) : (INDEX)v.s0;
}
