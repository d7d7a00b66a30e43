/* SPDX-License-Identifier: Apache-2.0
 *
 * tf32.c - the variant gemm_tf32: f32 where 19 bits are enough, on NVIDIA's sm_90.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { BLK_N, STAGES, WARPGROUPS, RASTER };     /* its parameters */
enum { MOVE = VN_TMA_COST_COUNT, HALF_C };      /* its cost columns after theirs; MOVE: of packing */
enum { TILES, GROUPS };                         /* numbers of a plan */
enum { ELEMENT = 4, VECTOR = 4, BLK_K = 32, WARPGROUP_M = 64 };                     /* VECTOR: 16 bytes */

static int is_k_major_a(const struct gemm *g)  { return vn__fits_tma(&g->a, vn__col(&g->a), vn__row(&g->a)); }
static int is_mn_major_a(const struct gemm *g) { return vn__fits_tma(&g->a, vn__row(&g->a), vn__col(&g->a)); }
static int is_k_major_b(const struct gemm *g)  { return vn__fits_tma(&g->b, vn__row(&g->b), vn__col(&g->b)); }

int vn__turns_tf32(const void *problem)
{
    return !is_k_major_b(problem) && is_k_major_a(problem);
}

/* The product as the kernel takes it: its right operand must be K-major, and C^T = B^T A^T lets A be that
 * one.  Is the left one M-major; and which of A and B are packed first?                                */
struct product { struct gemm g; int is_transposed, mn_major, packs_a, packs_b; };

static struct product product_of(const struct gemm *problem)
{
    struct product p = { .g = *problem, .is_transposed = vn__turns_tf32(problem) };
    struct gemm *const g = &p.g;
    int packs_left, packs_right;

    if (p.is_transposed)
        vn__gemm_transpose(g);
    p.mn_major = !is_k_major_a(g) && is_mn_major_a(g);
    packs_left = !is_k_major_a(g) && !p.mn_major;
    packs_right = !is_k_major_b(g);
    p.packs_a = p.is_transposed ? packs_right : packs_left;
    p.packs_b = p.is_transposed ? packs_left : packs_right;
    return p;
}

const char *vn__fits_tf32(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (g->head.type != VN_F32 || g->math != VN_MATH_TF32)
        return "it needs f32, and VN_MATH_TF32";
    if (g->k == 0)
        return "there is nothing to multiply";
    if (g->c.rank > 3)
        return "it takes at most one batch dimension";
    return vn__fits_half_sizes(g);
}

void vn__constants_tf32(int *c, const void *problem)
{
    const struct product p = product_of(problem);

    c[0] = p.mn_major;
    c[1] = vn__gemm_in_vectors(&p.g);
}

/* An operand packed: K-major, each row at a multiple of 16 bytes. */
static int64_t pitch(const struct gemm *g)
{
    return VN_CEIL_DIV(g->k, VECTOR) * VECTOR;
}

static int64_t matrices(const vn_tensor *t)
{
    return t->rank == 3 && t->stride[0] ? t->extent[0] : 1;
}

/* SIZE_MAX if it overflows. */
static size_t packed_bytes(const struct gemm *g, const vn_tensor *t, int64_t rows)
{
    int64_t size;

    return vn__mul(&size, pitch(g), rows) && vn__mul(&size, size, matrices(t)) && size < INT64_MAX / 16
         ? ELEMENT * (size_t)size : SIZE_MAX;
}

/* Where the rows of t lie when they are packed. */
static vn_tensor packed_at(vn_tensor t, const struct gemm *g, vn_buffer *buffer, size_t at)
{
    const int64_t rows = t.extent[t.rank - 2];

    if (t.rank == 3)
        t.stride[0] = matrices(&t) > 1 ? rows * pitch(g) : 0;
    t.buffer = buffer;
    t.start = (int64_t)(at / ELEMENT);
    t.stride[t.rank - 2] = pitch(g);
    t.stride[t.rank - 1] = 1;
    return t;
}

static vn_status pack(vn_queue *q, const struct vn_choice *it, const struct gemm *g, const vn_tensor *from,
                      const vn_tensor *to)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 256 };
    const int64_t rows = from->extent[from->rank - 2], tiles = VN_CEIL_DIV(rows, 32) * VN_CEIL_DIV(g->k, 32);

    if (!vn__mul(&l.groups[0], tiles, matrices(from)) || l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "an operand has %lld tiles of 32 x 32; a launch holds %d",
                        (long long)tiles, INT_MAX);
    vn__arg_int(&l, rows);
    vn__arg_int(&l, g->k);
    vn__arg_tensor(&l, from);
    vn__arg_tensor(&l, to);
    return vn__launch(q, it, 0, &l);
}

static vn_status pack_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to,
                        size_t at)
{
    const struct gemm *g = problem;
    const vn_tensor from = vn_transpose(g->b), packed = packed_at(from, g, to, at);

    return pack(q, it, g, &from, &packed);
}

struct vn_layout vn__layout_tf32(const void *problem, const int *unused)
{
    const struct gemm *g = problem;

    (void)unused;
    return (struct vn_layout){ pack_b, 0, product_of(g).packs_b ? packed_bytes(g, &g->b, g->n) : 0 };
}

/* ---- the plan --------------------------------------------------------------------------- */

/* A. */
static size_t own_bytes(const struct gemm *g, const struct product *p)
{
    return p->packs_a ? packed_bytes(g, &g->a, g->m) : 0;
}

static int local_bytes(const int *row)
{
    return row[STAGES] * ELEMENT * BLK_K * (WARPGROUP_M * row[WARPGROUPS] + row[BLK_N]);
}

/* As many work-groups as run at the same time, by what their local memory leaves room for. */
static const char *share_tiles(struct vn_plan *out, const struct gemm *g, const int *n,
                               const struct vn_site *site)
{
    enum { OTHER = 1024 };
    const int64_t each = (int64_t)(site->rates->local_kib * 1024) / (local_bytes(n) + OTHER);
    const int64_t most = site->facts->units * (each > 1 ? each : 1);
    const int64_t tiles = VN_CEIL_DIV(g->m, WARPGROUP_M * n[WARPGROUPS]) * VN_CEIL_DIV(g->n, n[BLK_N]);

    if (!vn__mul(&out->v[TILES], tiles, g->batches) || out->v[TILES] > INT_MAX / 2) {
        out->seconds = -1;
        return "C has more than 2^30 tiles";
    }
    out->v[GROUPS] = out->v[TILES] < most ? out->v[TILES] : most;
    return NULL;
}

/* Reads and writes of what is packed. */
static double pack_seconds(const struct gemm *g, int64_t rows, const struct vn_row *row,
                           const struct vn_site *site)
{
    return vn__launch_seconds(site) +
           vn__move_seconds(2.0 * ELEMENT * (double)rows * (double)g->k * (double)g->batches,
                            row->cost[MOVE], site);
}

/* Of an operand that is packed, by its new rows. */
static double off_lines(const struct product *p, const struct gemm *g, const struct vn_row *row)
{
    const double packed = vn__off_lines(ELEMENT * pitch(g), row);

    return (p->packs_a ? packed : vn__off_lines_of(&g->a, row)) *
           (p->packs_b ? packed : vn__off_lines_of(&g->b, row));
}

const char *vn__plan_tf32(struct vn_plan *out, const void *problem, const struct vn_row *row,
                          const struct vn_site *site)
{
    const struct vn_layout l = vn__layout_tf32(problem, row->p);
    const struct product p = product_of(problem);
    const struct gemm *g = problem;
    struct vn_tiles t =
        vn__tma_tiles(&p.g, WARPGROUP_M * row->p[WARPGROUPS], row->p[BLK_N], VN_CEIL_DIV(g->k, BLK_K) * BLK_K,
                      (double)g->batches, site->rates->mma32 * off_lines(&p, g, row), row, site);
    const char *why = share_tiles(out, &p.g, row->p, site);

    if (why)
        return why;
    t.bytes += vn__half_c_bytes(&p.g, row->cost[HALF_C]);
    out->workspace = vn__workspace_and_b(g, own_bytes(g, &p), &l);
    out->seconds = vn__tiles_seconds(&t, row, site);
    if (out->seconds > 0)
        out->seconds += (p.packs_a ? pack_seconds(g, g->m, row, site) : 0) +
                        (p.packs_b && !vn__is_packed_as(g, &l) ? pack_seconds(g, g->n, row, site) : 0);
    return NULL;
}

/* ---- launches ---------------------------------------------------------------------------- */

/* Whether the producer gives registers to the consumers: as the kernel's text says. */
static int moves_registers(const struct product *p, const struct vn_epilogue *e, const int *row)
{
    enum { TWO = 224 * 1024, OTHERS = 40, PIECE = 16,
           SHARE_2 = 168, SHARE_3 = 128, MOST_2 = 232, MOST_3 = 160 };
    const int accumulators = row[BLK_N] / 2, needed = accumulators + OTHERS;
    const int share = row[WARPGROUPS] == 2 ? SHARE_2 : SHARE_3;
    const int most = row[WARPGROUPS] == 2 ? MOST_2 : MOST_3;
    const int bytes = e->residual > VN_SAME_COLUMNS ? (int)vn_type_bytes((vn_type)e->type_residual) : 0;
    const int all = accumulators * bytes / 4, piece = bytes ? PIECE : 0;
    const int held = needed + all <= most ? all : piece;

    return row[WARPGROUPS] > 1 && 2 * local_bytes(row) > TWO && (p->mn_major || needed + held > share);
}

static vn_status prepare(struct product *p, vn_buffer **workspace, vn_queue *q, const struct vn_choice *it,
                         const struct gemm *problem)
{
    struct gemm *const g = &p->g;
    vn_buffer *buffer;
    vn_tensor packed;
    size_t at;
    vn_status s = vn__lay_out_b(&buffer, &at, workspace, q, it, problem, own_bytes(problem, p));

    if (s == VN_OK && p->packs_b) {
        packed = packed_at(vn_transpose(problem->b), problem, buffer, at);
        *(p->is_transposed ? &g->a : &g->b) = p->is_transposed ? packed : vn_transpose(packed);
    }
    if (s == VN_OK && p->packs_a) {
        packed = packed_at(problem->a, problem, *workspace, 0);
        s = pack(q, it, problem, &problem->a, &packed);
        *(p->is_transposed ? &g->b : &g->a) = p->is_transposed ? vn_transpose(packed) : packed;
    }
    return s;
}

vn_status vn__run_tf32(vn_queue *q, const struct vn_choice *it, const void *problem,
                       const struct vn_plan *plan)
{
    struct product p = product_of(problem);
    const struct gemm *g = &p.g;
    const int moves = moves_registers(&p, &it->epilogue, it->p);
    struct vn_launch l = { .groups = { plan->v[GROUPS], 1, 1 },
                           .items = 128 * it->p[WARPGROUPS] + (moves ? 128 : 32) };
    const int64_t tile[2] = { WARPGROUP_M * it->p[WARPGROUPS], it->p[BLK_N] };
    vn_buffer *workspace;
    vn_status s = prepare(&p, &workspace, q, it, problem);

    if (s)
        return s;
    if ((s = vn__gemm_by_maps(&l, q, g, tile, it->p[RASTER], plan->v[GROUPS], plan->v[TILES], 0)))
        return s;
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 1, &l);
}
