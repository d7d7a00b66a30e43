/* SPDX-License-Identifier: Apache-2.0
 *
 * pipelined.c - the variant gemm_pipelined: f32 and f64 by multiply-adds, on NVIDIA's sm_80 and up.
 *
 * How an operand is copied to local memory follows from its layout: K-major, or M-major (N-major); and the
 * latter in 16-byte vectors, where all rows begin and end at multiples of 16 bytes.  A K-major operand takes
 * more copies, and A's tile is the larger: where A alone is K-major, C^T = B^T A^T is computed.
 */
#include "gemm.h"

enum { BLK_M, BLK_N, BLK_K, THR_M, THR_N };     /* those of its parameters that a launch goes by */
enum { ODD = VN_TILE_COSTS, FEW, ODD_CT };      /* its cost columns after the tiles' */
enum { MOST_FEW = 4 };                          /* FEW of its kernel: elements of a work-item */
enum way { K_MAJOR, MN_MAJOR, MN_MAJOR_BY16 };

static int is_by_16(const vn_tensor *t, int64_t x, int64_t x_step, int64_t k_step)
{
    const int64_t elements = 16 / (int64_t)vn_type_bytes(t->type);

    if (x_step != 1 || x % elements || k_step % elements || t->start % elements)
        return 0;
    for (int i = 0; i < t->rank - 2; i++)
        if (t->stride[i] % elements)
            return 0;
    return 1;
}

/* x is M of A, N of B. */
static enum way way_of(const vn_tensor *t, int64_t x, int64_t x_step, int64_t k_step)
{
    return is_by_16(t, x, x_step, k_step) ? MN_MAJOR_BY16 : k_step == 1 && x_step > 1 ? K_MAJOR : MN_MAJOR;
}

static enum way way_of_a(const struct gemm *g) { return way_of(&g->a, g->m, vn__row(&g->a), vn__col(&g->a)); }
static enum way way_of_b(const struct gemm *g) { return way_of(&g->b, g->n, vn__col(&g->b), vn__row(&g->b)); }

int vn__turns_pipelined(const void *problem)
{
    return way_of_a(problem) == K_MAJOR && way_of_b(problem) != K_MAJOR;
}

/* The product as the kernel computes it. */
static struct gemm oriented(const struct gemm *g)
{
    struct gemm t = *g;

    if (vn__turns_pipelined(g))
        vn__gemm_transpose(&t);
    return t;
}

const char *vn__fits_pipelined(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (vn__sm(f) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for asynchronous copies";
    if (g->head.type != VN_F32 && g->head.type != VN_F64)
        return "it needs f32 or f64, which are copied as they are";
    return vn__fits_sizes(g);
}

void vn__constants_pipelined(int *c, const void *problem)
{
    const struct gemm g = oriented(problem);

    c[0] = way_of_a(&g);
    c[1] = way_of_b(&g);
}

/* An operand that is not copied in 16-byte vectors is copied in elements, ODD thousandths as fast. */
static double odd_of(enum way way, const struct vn_row *row)
{
    return way == MN_MAJOR_BY16 ? 1 : row->cost[ODD] / 1000.0;
}

static int items_of(const int *p)
{
    return p[BLK_M] / p[THR_M] * (p[BLK_N] / p[THR_N]);
}

/* How long a tile of so many rows and columns takes, 1 for a whole one: one with up to four elements for
 * each work-item, which has a loop of its own, takes FEW thousandths with four.                         */
static double time_of(int64_t rows, int64_t columns, const int *p, const struct vn_row *row)
{
    const int64_t elements = VN_CEIL_DIV(rows * columns, items_of(p));

    return elements > MOST_FEW ? 1 : (double)elements / MOST_FEW * row->cost[FEW] / 1000;
}

/* Whole tiles, those of the lower edge, of the right one, and the one in the corner. */
static void add_tiles(struct vn_tiles *t, const struct gemm *g, const struct vn_row *row)
{
    const int *p = row->p;
    const int64_t down = g->m / p[BLK_M], across = g->n / p[BLK_N];
    const int64_t rows = g->m - down * p[BLK_M], columns = g->n - across * p[BLK_N];
    const struct { int64_t count; double time; } kinds[] = {
        { down * across, 1 }, { rows ? across : 0, time_of(rows, p[BLK_N], p, row) },
        { columns ? down : 0, time_of(p[BLK_M], columns, p, row) },
        { rows && columns, time_of(rows, columns, p, row) } };
    const double flops = 2.0 * p[BLK_M] * p[BLK_N] * (double)(VN_CEIL_DIV(g->k, p[BLK_K]) * p[BLK_K]);
    double count = 0, all = 0, longest = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        count += (double)kinds[i].count;
        all += (double)kinds[i].count * kinds[i].time;
        if (kinds[i].count && kinds[i].time > longest)
            longest = kinds[i].time;
    }
    t->tiles   = count * (double)g->batches;
    t->flops   = flops * all / count;
    t->longest = flops * longest;
}

const char *vn__plan_pipelined(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site)
{
    const struct gemm g = oriented(problem);
    const int odd_c = row->cost[vn__turns_pipelined(problem) ? ODD_CT : VN_ODD_C];
    struct vn_tiles t = {
        .bytes = g.head.bytes, .start = vn__batch_seconds(&g, site),
        .after = vn__odd_tile_seconds(&g, row->p[BLK_M], row->p[BLK_N], odd_c, site),
        .resident = vn__resident(items_of(row->p)),
        .peak = vn__fma_peak(&g, site) * odd_of(way_of_a(&g), row) * odd_of(way_of_b(&g), row) };

    add_tiles(&t, &g, row);
    out->seconds = vn__tiles_seconds(&t, row, site);
    return NULL;
}

vn_status vn__run_pipelined(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan)
{
    const struct gemm g = oriented(problem);
    const int *p = it->p;

    (void)plan;
    return vn__gemm_launch_tiles(q, it, &g, p[BLK_M], p[BLK_N], items_of(p));
}
