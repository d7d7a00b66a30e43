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
 * A division takes a hundred cycles, and a tile takes three, one after the other.  Where the first tile is
 * waited for, the host prepares the divisors: vn__arg_tiles() makes the VIEW that schedule_by() takes.
 *
 * Takes: quotient() divided() of cl/types.h.
 * Gives: struct schedule, struct tile, schedule_of() schedule_by(), find_tile(), tile_at(), tile_of_split().
 */
struct schedule { int tiles_m, tiles_n, blk_m, blk_n, raster, prepared; INT64 by[4]; };

/* The first row and column, which matrix of the batch, and which part of K. */
struct tile { int m0, n0, batch, part; };

/* Tiles of blk_m x blk_n: constants, as is raster. */
DEVICE struct schedule schedule_of(int M, int N, const int blk_m, const int blk_n, const int raster)
{
    const struct schedule s = { (M + blk_m - 1) / blk_m, (N + blk_n - 1) / blk_n, blk_m, blk_n, raster,
                                0, { 0, 0, 0, 0 } };

    return s;
}

DEVICE struct schedule schedule_by(int M, int N, const int blk_m, const int blk_n, const int raster, VIEW by)
{
    struct schedule s = schedule_of(M, N, blk_m, blk_n, raster);

    s.prepared = 1;
    s.by[0] = (INT64)by.s0;
    s.by[1] = (INT64)by.s1;
    s.by[2] = (INT64)by.s2;
    s.by[3] = (INT64)by.s3;
    return s;
}

/* i: which prepared divisor is b. */
DEVICE int schedule_quotient(const struct schedule *s, int a, int b, const int i)
{
    return s->prepared ? divided(a, s->by[i]) : quotient(a, b);
}

/* Not returned: Oclgrind does not know what clang makes of an inlined function that returns a struct. */
DEVICE void find_tile(struct tile *t, const struct schedule *s, int at)
{
    const int in_matrix = s->tiles_m * s->tiles_n;
    const int batch = schedule_quotient(s, at, in_matrix, 0), in_batch = at - batch * in_matrix;
    const int group = schedule_quotient(s, in_batch, s->raster * s->tiles_n, 1);
    const int in_group = in_batch - group * (s->raster * s->tiles_n);
    const int rows = s->tiles_m - group * s->raster < s->raster ? s->tiles_m - group * s->raster : s->raster;
    const int column = rows == s->raster ? in_group / s->raster
                     : s->prepared ? divided(in_group, s->by[2]) : in_group / rows;

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

    t.part = schedule_quotient(&s, t.batch, batches, 3);
    t.batch -= t.part * batches;
    return t;
}
