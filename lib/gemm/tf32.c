/* SPDX-License-Identifier: Apache-2.0
 *
 * tf32.c - the variant gemm_tf32: f32 where 19 bits are enough, on NVIDIA's sm_90.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { BLK_N, STAGES, WARPGROUPS, BAND };       /* its parameters */
enum { NUMBER = 4, LINE = 4,      /* bytes; 4 numbers are 16: the step of the copy engine */
       MAPS_BYTES = 256 };

/* The copy engine takes lines of consecutive numbers whose steps are multiples of 16 bytes. */
static int can_copy(const vn_tensor *t, int64_t along, int64_t across)
{
    return along == 1 && across % LINE == 0 && across > 0 && t->start % LINE == 0 &&
           (t->rank == 2 || (t->rank == 3 && t->stride[0] % LINE == 0));
}

static int along_k_a(const struct gemm *g)  { return can_copy(&g->a, vn__col(&g->a), vn__row(&g->a)); }
static int across_k_a(const struct gemm *g) { return can_copy(&g->a, vn__row(&g->a), vn__col(&g->a)); }
static int along_k_b(const struct gemm *g)  { return can_copy(&g->b, vn__row(&g->b), vn__col(&g->b)); }

/* The problem as the kernel takes it: the right operand must run along K, and C^T = B^T A^T lets A be
 * that one.  Does the left one run across K; and which of A and B are packed first?             */
struct plan { struct gemm g; int is_turned, across_k, packs_a, packs_b; };

static struct plan plan(const struct gemm *problem)
{
    struct plan p = { .g = *problem, .is_turned = !along_k_b(problem) && along_k_a(problem) };
    struct gemm *const g = &p.g;

    if (p.is_turned)
        vn__gemm_transpose(g);
    p.across_k = !along_k_a(g) && across_k_a(g);

    const int packs_left = !along_k_a(g) && !p.across_k, packs_right = !along_k_b(g);

    p.packs_a = p.is_turned ? packs_right : packs_left;
    p.packs_b = p.is_turned ? packs_left : packs_right;
    return p;
}

static const char *fits(const struct gemm *g, const struct vn_facts *f, int across_k)
{
    if (strcmp(f->family, "nvidia") || strcmp(f->arch, "sm_90"))
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (g->head.type != VN_F32 || g->math != VN_MATH_TF32)
        return "it needs f32, and VN_MATH_TF32";
    if (g->k == 0)
        return "there is nothing to multiply";
    if (g->m > INT_MAX / 2 || g->n > INT_MAX / 2 || g->k > INT_MAX / 2 || g->batches > INT_MAX / 2)
        return "M, N, K and the batches must stay below 2^30";
    if (g->c.rank > 3)
        return "it takes at most one batch dimension";
    if (plan(g).across_k != across_k)
        return across_k ? "the left operand does not run across K" : "the left operand runs across K";
    return NULL;
}

const char *vn__fits_tf32_along (const void *p, const struct vn_facts *f) { return fits(p, f, 0); }
const char *vn__fits_tf32_across(const void *p, const struct vn_facts *f) { return fits(p, f, 1); }

const char *vn__pays_tf32(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    const int64_t tiles = VN_CEIL_DIV(g->m, 64) * VN_CEIL_DIV(g->n, 128) * g->batches;
    const double sums = (double)g->m * (double)g->n * (double)g->batches;

    (void)f;
    if (g->m < 64 || g->n < 64 || sums < 768 * 768 || g->k < 64)
        return "M N is below 768 x 768, or K below 64: smaller tiles keep more of the device busy";
    if (!g->is_part && g->k > 1024 && 2 * tiles < g->units)
        return "C has few tiles and K is long: parts of it pay better";
    return NULL;
}

/* An operand packed: its lines along K, each beginning at a multiple of 16 bytes. */
static int64_t pitch(const struct gemm *g)
{
    return VN_CEIL_DIV(g->k, LINE) * LINE;
}

static int64_t matrices(const vn_tensor *t)
{
    return t->rank == 3 && t->stride[0] ? t->extent[0] : 1;
}

/* SIZE_MAX if it overflows. */
static size_t packed_bytes(const struct gemm *g, const vn_tensor *t, int64_t lines)
{
    int64_t size;

    return vn__mul(&size, pitch(g), lines) && vn__mul(&size, size, matrices(t)) && size < INT64_MAX / 16
         ? NUMBER * (size_t)size : SIZE_MAX;
}

/* Where the rows of t lie when they are packed. */
static vn_tensor packed_at(vn_tensor t, const struct gemm *g, vn_buffer *buffer, size_t at)
{
    const int64_t lines = t.extent[t.rank - 2];

    if (t.rank == 3)
        t.stride[0] = matrices(&t) > 1 ? lines * pitch(g) : 0;
    t.buffer = buffer;
    t.start = (int64_t)(at / NUMBER);
    t.stride[t.rank - 2] = pitch(g);
    t.stride[t.rank - 1] = 1;
    return t;
}

static vn_status pack(vn_queue *q, const struct vn_choice *it, const struct gemm *g, const vn_tensor *from,
                      const vn_tensor *to)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 256 };
    const int64_t lines = from->extent[from->rank - 2], tiles = VN_CEIL_DIV(lines, 32) * VN_CEIL_DIV(g->k, 32);

    if (!vn__mul(&l.groups[0], tiles, matrices(from)) || l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "an operand has %lld tiles of 32 x 32; a launch holds %d",
                        (long long)tiles, INT_MAX);
    vn__arg_int(&l, lines);
    vn__arg_int(&l, g->k);
    vn__arg_tensor(&l, from);
    vn__arg_tensor(&l, to);
    return vn__launch(q, it, 0, &l);
}

static vn_status pack_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to, size_t at)
{
    const struct gemm *g = problem;
    const vn_tensor from = vn_transpose(g->b), packed = packed_at(from, g, to, at);

    return pack(q, it, g, &from, &packed);
}

struct vn_layout vn__layout_tf32(const void *problem, const int *unused)
{
    const struct gemm *g = problem;

    (void)unused;
    return (struct vn_layout){ pack_b, 0, plan(g).packs_b ? packed_bytes(g, &g->b, g->n) : 0 };
}

/* How tiles are shared out: to as many work-groups as run at the same time, by what their local memory
 * leaves room for.                                                                              */
struct grid { int64_t tiles, groups; };

static struct grid lay_out(const struct gemm *g, const int *n)
{
    enum { LOCAL = 227 * 1024, OTHER = 1024 };
    const int bytes = n[STAGES] * 128 * (64 * n[WARPGROUPS] + n[BLK_N]) + OTHER;
    const int64_t most = (int64_t)g->units * (LOCAL / bytes > 1 ? LOCAL / bytes : 1);
    struct grid grid = { .tiles = VN_CEIL_DIV(g->m, 64 * n[WARPGROUPS]) * VN_CEIL_DIV(g->n, n[BLK_N]) };

    if (!vn__mul(&grid.tiles, grid.tiles, g->batches))
        grid.tiles = INT64_MAX;
    grid.groups = grid.tiles < most ? grid.tiles : most;
    return grid;
}

/* Two maps for each work-group. */
static size_t maps_bytes(const struct plan *p, const int *n)
{
    return (size_t)lay_out(&p->g, n).groups * MAPS_BYTES;
}

/* The maps, and A. */
static size_t own_bytes(const struct gemm *g, const struct plan *p, const int *n)
{
    const size_t a = p->packs_a ? packed_bytes(g, &g->a, g->m) : 0, maps = maps_bytes(p, n);

    return a > SIZE_MAX - maps ? SIZE_MAX : maps + a;
}

size_t vn__workspace_tf32(const void *problem, const int *n)
{
    const struct vn_layout l = vn__layout_tf32(problem, n);
    const struct plan p = plan(problem);

    return vn__workspace_and_b(problem, own_bytes(problem, &p, n), &l);
}

static vn_status prepare(struct plan *p, vn_buffer **workspace, vn_queue *q, const struct vn_choice *it,
                         const struct gemm *problem)
{
    struct gemm *const g = &p->g;
    vn_buffer *buffer;
    vn_tensor packed;
    size_t at;
    vn_status s = vn__lay_out_b(&buffer, &at, workspace, q, it, problem, own_bytes(problem, p, it->p));

    if (s == VN_OK && p->packs_b) {
        packed = packed_at(vn_transpose(problem->b), problem, buffer, at);
        *(p->is_turned ? &g->a : &g->b) = p->is_turned ? packed : vn_transpose(packed);
    }
    if (s == VN_OK && p->packs_a) {
        packed = packed_at(problem->a, problem, *workspace, maps_bytes(p, it->p));
        s = pack(q, it, problem, &problem->a, &packed);
        *(p->is_turned ? &g->b : &g->a) = p->is_turned ? vn_transpose(packed) : packed;
    }
    return s;
}

vn_status vn__run_tf32(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const int *n = it->p;
    struct plan p = plan(problem);
    const struct gemm *g = &p.g;
    const struct grid grid = lay_out(g, n);
    struct vn_launch l = { .groups = { grid.groups, 1, 1 }, .items = 128 * n[WARPGROUPS] + 128 };
    vn_buffer *workspace;
    vn_status s;

    if (grid.tiles > INT_MAX / 2)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles of %d x %d; gemm_tf32 counts to %d", (long long)grid.tiles,
                        64 * n[WARPGROUPS], n[BLK_N], INT_MAX / 2);
    if ((s = prepare(&p, &workspace, q, it, problem)))
        return s;
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->k);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_int(&l, grid.groups);
    vn__arg_int(&l, grid.tiles);
    vn__arg_tensor(&l, &g->a);
    vn__arg_tensor(&l, &g->b);
    vn__arg_buffer(&l, workspace);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 1, &l);
}
