/* cl/gemm/batched.h - the slices of K of a persistent work-group's tiles, copied ahead of their products
 *
 * Work-group g has the tiles g, g + groups ...  Its slices are copied to STAGES stages in the order in which
 * they are multiplied, those of the next tile after those of this one:
 *
 *     | g, 0 | g, 1 | g + groups, 0 | g + groups, 1 | ...        tiles of two slices
 *       multiplied     in flight
 *
 * Operands are contiguous along one dimension, with rows at multiples of 16 bytes; edges are zeros that the
 * copies write.
 *
 * Takes  BLK_M BLK_N BLK_K STAGES; MN_MAJOR_A MN_MAJOR_B; ITEMS; async_operand.h, slices.h, scheduler.h
 * Gives  struct ahead, copies_begin() slice_arrives() stage_after(); find_next()
 */
#define RASTER 4

#if ITEMS % VECS_A || ITEMS % VECS_B || ROWS_A * VECS_A % ITEMS || ROWS_B * VECS_B % ITEMS
#error "the work-items must share a slice evenly"
#endif

/* What is copied next: slice `slice` of tile `at`, to the stage `to`. */
struct ahead {
    struct async_operand a, b;
    BYTE_OFFSET batch_a, batch_b;               /* from matrix to matrix */
    struct schedule schedule;
    struct tile tile;
    int K, slice, slices, at, tiles, groups;
    unsigned int stages, to;
};

DEVICE unsigned int stage_after(unsigned int stages, unsigned int at)
{
    return at == stages + (STAGES - 1) * STAGE ? stages : at + STAGE;
}

/* The slice from row (column) `first` and from k0 on, of an operand's matrix that is `batch` further. */
DEVICE void copy_from(const struct async_operand *o, BYTE_OFFSET batch, int first, int k0, unsigned int to,
                      const int mn_major, const int rows, const int vecs, int x_left, int k_left)
{
    GLOBAL const char *const from = o->from + batch + first * (mn_major ? o->step : o->pitch)
                                  + k0 * (mn_major ? o->pitch : o->step);

    copy_vectors(o, from, to + o->to, mn_major, rows, vecs, mn_major ? k_left : x_left,
                 mn_major ? x_left : k_left);
}

/* Number `at` of the tiles: where a matrix is one, no division finds it. */
DEVICE void find_next(struct tile *t, const struct schedule *s, int at)
{
    if (s->tiles_m * s->tiles_n > 1) {
        find_tile(t, s, at);
    } else {
        t->m0 = t->n0 = t->part = 0;
        t->batch = at;
    }
}

/* Asks for the next slice, if there is one; its copies are a group also when there is none. */
DEVICE void copy_next(struct ahead *s, int M, int N)
{
    if (s->at < s->tiles) {
        const int k0 = s->slice * BLK_K, k = s->K - k0, m = M - s->tile.m0, n = N - s->tile.n0;

        copy_from(&s->a, s->tile.batch * s->batch_a, s->tile.m0, k0, s->to, MN_MAJOR_A, ROWS_A, VECS_A, m, k);
        copy_from(&s->b, s->tile.batch * s->batch_b, s->tile.n0, k0, s->to + BYTES_A, MN_MAJOR_B, ROWS_B,
                  VECS_B, n, k);
        if (++s->slice == s->slices) {
            s->slice = 0;
            s->at += s->groups;
            find_next(&s->tile, &s->schedule, s->at);
        }
    }
    copies_commit();
    s->to = stage_after(s->stages, s->to);
}

/* The first STAGES - 1 slices. */
DEVICE void copies_begin(struct ahead *s, unsigned int stages, int M, int N, int K, int groups, int tiles,
                         GLOBAL const T *gA, VIEW vA, GLOBAL const T *gB, VIEW vB)
{
    s->a = async_operand(gA + vA.s0, (INDEX)vA.s6, (INDEX)vA.s5, 0, MN_MAJOR_A, VECS_A, 1);
    s->b = async_operand(gB + vB.s0, (INDEX)vB.s5, (INDEX)vB.s6, 0, MN_MAJOR_B, VECS_B, 1);
    s->batch_a = (BYTE_OFFSET)vA.s4 * T_BYTES;
    s->batch_b = (BYTE_OFFSET)vB.s4 * T_BYTES;
    s->schedule = schedule_of(M, N, BLK_M, BLK_N, RASTER);
    s->K = K;
    s->slice = 0;
    s->slices = (K + BLK_K - 1) / BLK_K;
    s->at = GROUP_ID(0);
    s->tiles = tiles;
    s->groups = groups;
    s->stages = s->to = stages;
    find_next(&s->tile, &s->schedule, s->at);
    NO_UNROLL for (int i = 0; i < STAGES - 1; i++)
        copy_next(s, M, N);
}

/* Waits for the next slice to be multiplied, and asks for one to be copied to where the one before was. */
DEVICE void slice_arrives(struct ahead *s, int M, int N)
{
    COPIES_WAIT(STAGES - 2);
    BARRIER();                                  /* it has arrived for all; the one before is read */
    copy_next(s, M, N);
}
