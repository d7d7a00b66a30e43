/* cl/tile/scheduler.h - which tile of C a work-group computes when
 *
 * Work-groups are persistent: group g has the tiles g, g + groups, g + 2 groups ...  Tiles are numbered in
 * rasterisation groups of `raster` rows of tiles, column by column, for what L2 keeps of the operands:
 *
 *     raster 2:   0 2 4 6
 *                 1 3 5 7
 *                 8 10 ...
 *
 * The tiles of one matrix come before those of the next; with split-K, those of one part of K before those of
 * the next.
 *
 * Takes: quotient() of cl/types.h.
 * Gives: struct schedule, struct tile, schedule_of(), find_tile(), tile_at(), tile_of_split().
 */
struct schedule { int tiles_m, tiles_n, blk_m, blk_n, raster; };

/* The first row and column, which matrix of the batch, and which part of K. */
struct tile { int m0, n0, batch, part; };

/* Tiles of blk_m x blk_n: constants, as is raster. */
DEVICE struct schedule schedule_of(int M, int N, const int blk_m, const int blk_n, const int raster)
{
    const struct schedule s = { (M + blk_m - 1) / blk_m, (N + blk_n - 1) / blk_n, blk_m, blk_n, raster };

    return s;
}

/* Not returned: Oclgrind does not know what clang makes of an inlined function that returns a struct. */
DEVICE void find_tile(struct tile *t, const struct schedule *s, int at)
{
    const int in_matrix = s->tiles_m * s->tiles_n;
    const int batch = quotient(at, in_matrix), in_batch = at - batch * in_matrix;
    const int group = quotient(in_batch, s->raster * s->tiles_n);
    const int in_group = in_batch - group * (s->raster * s->tiles_n);
    const int rows = s->tiles_m - group * s->raster < s->raster ? s->tiles_m - group * s->raster : s->raster;
    const int column = rows == s->raster ? in_group / s->raster : in_group / rows;

    t->m0    = (group * s->raster + in_group - column * rows) * s->blk_m;
    t->n0    = column * s->blk_n;
    t->batch = batch;
    t->part  = 0;
}

DEVICE struct tile tile_at(struct schedule s, int at)
{
    struct tile t;

    find_tile(&t, &s, at);
    return t;
}

/* The same with split-K, where each part of K is as a batch of so many matrices. */
DEVICE struct tile tile_of_split(struct schedule s, int at, int batches)
{
    struct tile t = tile_at(s, at);

    t.part = quotient(t.batch, batches);
    t.batch -= t.part * batches;
    return t;
}
