/* skinny.h - what the skinny kernels share: which part of the product is a work-group's */
#if ITEMS & (ITEMS - 1)
#error "ITEMS must be a power of two"
#endif

/* Where engines' operands are copied from, and steps in it, in bytes. */
#define BYTE unsigned char
#if WIDE
#define OFFSET INT64
#else
#define OFFSET UINT32
#endif

struct task {
    int m0, n0, wide;                           /* THR_M rows, and so many columns */
    int across, widest;                         /* strands that share a column; columns, if none did */
    int first, last;                            /* of K */
    int batch, part;                            /* part: the first has all batches, then the second */
};

/* Work-groups are numbered by tiles, of all batches, and parts.  All reads wait for this, and ten divisions in
 * a row took longer than reading 4 MB: so none is made but for what most problems do not have.  Not returned:
 * Oclgrind does not know what a compiler makes of an inlined function that returns a struct.              */
DEVICE void find_task(struct task *t, int M, int N, int K, int across, int wide, int widest, int span,
                      int batches)
{
    int tile = GROUP_ID(0);

    t->batch = 0;
    t->m0 = 0;
    if (batches > 1) {
        const int tiles = (M + THR_M - 1) / THR_M * ((N + wide - 1) / wide);

        t->batch = tile / tiles;
        tile -= t->batch * tiles;
    }
    if (M > THR_M) {
        const int tiles_m = (M + THR_M - 1) / THR_M, tile_n = tile / tiles_m;

        t->m0 = (tile - tile_n * tiles_m) * THR_M;
        tile = tile_n;
    }
    t->n0     = tile * wide;
    t->wide   = wide;
    t->across = across;
    t->widest = widest;
    t->first  = GROUP_ID(1) * span;
    t->last   = K - t->first < span ? K : t->first + span;
    t->part   = GROUP_ID(1) * batches + t->batch;
}

/* i / wide, by what the compiler knows: widest is across times wide */
DEVICE int row_of(const struct task *t, int i)
{
    return i * t->across / t->widest;
}

/* Where a batch begins. */
DEVICE INDEX start_of(VIEW v, VIEW e, int batch)
{
    return batch ? batch_offset(v, e, batch) : (INDEX)v.s0;
}
