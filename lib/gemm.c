/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.c - C := act(alpha A B + beta C + bias): check it, choose a variant, run it.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"
#include "vendor.h"

/* Past these an int in a kernel could overflow, also when rounded up to a tile. */
enum { MOST = INT_MAX - 4096, PACK_K = 256 };

/* ---- fits -------------------------------------------------------------------- */

static const char *fits_any(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    if (g->m > MOST || g->n > MOST || g->k > MOST || g->batches > MOST)
        return "M, N, K and the batches must stay below 2^31";
    return NULL;
}

static const char *fits_cpu(const void *problem, const struct vn_facts *f)
{
    if (strcmp(f->family, "cpu"))
        return "the device is no CPU";
    if (f->vector < 2)
        return "the device does not ask for explicit vectors";
    return fits_any(problem, f);
}

static const char *fits_dot(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if ((vn__col(&g->a) != 1 || vn__row(&g->b) != 1) && g->k > 1)
        return "it needs rows of A and columns of B that run along memory";
    return fits_cpu(problem, f);
}

static const char *pays_dot(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    return g->k < 64 || (g->m > 48 && g->n > 48) ? "M and N are above 48, or K below 64: panels pay better" : NULL;
}

/* Copies that do not wait came with sm_80: "sm_86", "sm_120". */
static const char *fits_async(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    if (strcmp(f->family, "nvidia") || strncmp(f->arch, "sm_", 3) || atoi(f->arch + 3) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for asynchronous copies";
    if (g->head.type != VN_F32 && g->head.type != VN_F64)
        return "it needs f32 or f64, which are copied as they are";
    return fits_any(problem, f);
}

/* Packing pays when each packed row of A is used for many columns. */
static const char *pays_packed(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    return g->n < 64 || g->m * g->k < 64 * 64 ? "N is below 64, or A so small that packing it costs more than it saves"
                                              : NULL;
}

/* ---- launches ------------------------------------------------------------------ */

void vn__gemm_output(struct vn_launch *l, const struct gemm *g)
{
    vn__arg_real(l, g->head.type, g->beta);
    vn__arg_tensor(l, &g->c);
    vn__arg_int(l, g->has_bias);
    vn__arg_tensor(l, g->has_bias ? &g->bias : &g->c);
    vn__arg_int(l, g->activation);
}

/* An operand that is not read may have no buffer: C's stands in. */
static void add_input(struct vn_launch *l, const struct gemm *g, const vn_tensor *t)
{
    vn_tensor there = *t;

    if (g->k == 0)
        there.buffer = g->c.buffer;
    vn__arg_tensor(l, &there);
}

void vn__gemm_inputs(struct vn_launch *l, const struct gemm *g)
{
    add_input(l, g, &g->a);
    add_input(l, g, &g->b);
}

static void add_sizes(struct vn_launch *l, const struct gemm *g)
{
    vn__arg_int(l, g->m);
    vn__arg_int(l, g->n);
    vn__arg_int(l, g->k);
}

static vn_status run_tiled(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    enum { BLK_M, BLK_N, BLK_K, THR_M, THR_N };
    const struct gemm *g = problem;
    const int *p = it->p;
    struct vn_launch l;

    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g->m, p[BLK_M]) * VN_CEIL_DIV(g->n, p[BLK_N]);
    l.groups[1] = l.groups[2] = 1;
    l.items = p[BLK_M] / p[THR_M] * (p[BLK_N] / p[THR_N]);
    if (!vn__mul(&l.groups[0], l.groups[0], g->batches) || l.groups[0] > INT_MAX)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles of %d x %d; a launch holds %d", (long long)l.groups[0],
                        p[BLK_M], p[BLK_N], INT_MAX);
    add_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}

enum { CPU_THR_M, CPU_THR_V, CPU_VEC, CPU_BLK_M, CPU_BLK_N, CPU_BLK_K };

/* Panels of A: batches that repeat A share them.  s5 is the step from panel to panel. */
static size_t panels_of(int64_t view[8], const struct gemm *g, const int *p)
{
    const int64_t reals = g->head.type == VN_F64 ? 8 : 4;
    int64_t step = VN_CEIL_DIV(g->m, p[CPU_THR_M]), v[8] = { 0 };
    const int batches = g->a.rank - 2;

    v[5] = (int64_t)p[CPU_THR_M] * g->k;
    if (!vn__mul(&step, step, v[5]))
        return SIZE_MAX;
    for (int i = batches - 1; i >= 0; i--)
        if (g->a.stride[i] && g->a.extent[i] > 1) {
            v[7 - g->a.rank + i] = step;
            if (!vn__mul(&step, step, g->a.extent[i]))
                return SIZE_MAX;
        }
    if (view)
        memcpy(view, v, sizeof v);
    return vn__mul(&step, step, reals) ? (size_t)step : SIZE_MAX;
}

static size_t packed_workspace(const void *problem, const int *p)
{
    return panels_of(NULL, problem, p);
}

/* A, with the batches that repeat it taken out: what there is to pack. */
static vn_status pack(vn_queue *q, const struct vn_choice *it, const struct gemm *g, vn_buffer *panels,
                      const int64_t view[8])
{
    vn_tensor a = g->a;
    struct vn_launch l;
    int64_t batches = 1;

    for (int i = 0; i < a.rank - 2; i++) {
        if (!a.stride[i])
            a.extent[i] = 1;
        batches *= a.extent[i];
    }
    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g->k, PACK_K);
    l.groups[1] = VN_CEIL_DIV(g->m, it->p[CPU_THR_M]);
    l.groups[2] = batches;
    l.items = 1;
    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->k);
    vn__arg_extents(&l, &a);
    vn__arg_tensor(&l, &a);
    vn__arg_buffer(&l, panels);
    vn__arg_view(&l, view);
    return vn__launch(q, it, 0, &l);
}

/* Rows for a work-group: as many as the row of parameters allows, but a few work-groups for
 * each core, and all alike.                                                            */
static int64_t rows_for(const vn_queue *q, const struct gemm *g, const int *p)
{
    const int64_t columns = VN_CEIL_DIV(g->n, p[CPU_BLK_N]) * g->batches;
    const int64_t wanted = VN_CEIL_DIV(4 * (int64_t)q->device->facts.units, columns);
    int64_t parts = VN_CEIL_DIV(g->m, p[CPU_BLK_M]);

    if (parts < wanted)
        parts = wanted;
    return VN_CEIL_DIV(VN_CEIL_DIV(g->m, parts), p[CPU_THR_M]) * p[CPU_THR_M];
}

static vn_status run_cpu(vn_queue *q, const struct vn_choice *it, const struct gemm *g, int kernel,
                         vn_buffer *panels, const int64_t view[8])
{
    const int64_t rows = rows_for(q, g, it->p);
    struct vn_launch l;

    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g->n, it->p[CPU_BLK_N]);
    l.groups[1] = VN_CEIL_DIV(g->m, rows);
    l.groups[2] = g->batches;
    l.items = 1;
    add_sizes(&l, g);
    vn__arg_int(&l, rows);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    add_input(&l, g, &g->a);
    vn__arg_buffer(&l, panels);
    vn__arg_view(&l, view);
    add_input(&l, g, &g->b);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, kernel, &l);
}

static vn_status run_packed(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    int64_t view[8];
    const size_t bytes = panels_of(view, g, it->p);
    vn_buffer *panels = g->c.buffer;
    vn_status s;

    if (g->k && ((s = vn__workspace(&panels, q, bytes)) || (s = pack(q, it, g, panels, view))))
        return s;
    return run_cpu(q, it, g, 1, panels, view);
}

static vn_status run_unpacked(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const int64_t none[8] = { 0 };

    return run_cpu(q, it, g, 0, g->c.buffer, none);
}

static vn_status run_dot(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    enum { THR_M, THR_N };
    const struct gemm *g = problem;
    const int64_t tiles = VN_CEIL_DIV(g->n, it->p[THR_N]);
    const int64_t parts = 8 * (int64_t)q->device->facts.units;
    const int64_t cols = VN_CEIL_DIV(tiles, parts) * it->p[THR_N];
    struct vn_launch l;

    l.nargs = 0;
    l.groups[0] = VN_CEIL_DIV(g->n, cols);
    l.groups[1] = VN_CEIL_DIV(g->m, it->p[THR_M]);
    l.groups[2] = g->batches;
    l.items = 1;
    add_sizes(&l, g);
    vn__arg_int(&l, cols);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}

/* ---- variants -------------------------------------------------------------------- */

/* Tried from the top; the first that fits is used. */
const struct vn_variant vn__gemm_variants[] = {
    VN_CUBLAS_GEMM
    VN_CLBLAST_GEMM
    { .name = "gemm_dot", .fits = fits_dot, .pays = pays_dot, .run = run_dot,
      .texts = "cl/epilogue.h cl/gemm_dot.cl", .entries = "gemm_dot", .params = "THR_M THR_N VEC" },
    { .name = "gemm_cpu", .fits = fits_cpu, .pays = pays_packed, .run = run_packed, .workspace = packed_workspace,
      .texts = "cl/epilogue.h cl/tile_cpu.h cl/gemm_cpu.cl", .entries = "pack gemm_cpu",
      .params = "THR_M THR_V VEC BLK_M BLK_N BLK_K", .defines = "#define PACKED 1\n#define PANEL_A GLOBAL\n" },
    { .name = "gemm_cpu_unpacked", .fits = fits_cpu, .run = run_unpacked,
      .texts = "cl/epilogue.h cl/tile_cpu.h cl/gemm_cpu.cl", .entries = "gemm_cpu",
      .params = "THR_M THR_V VEC BLK_M BLK_N BLK_K", .defines = "#define PACKED 0\n#define PANEL_A LOCAL\n" },
    { .name = "gemm_wgmma", .fits = vn__fits_wgmma_nn, .pays = vn__pays_wgmma, .run = vn__run_wgmma,
      .workspace = vn__workspace_wgmma, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_wgmma.cl", .entries = "describe gemm_wgmma",
      .params = "BLK_N STAGES WARPGROUPS", .defines = "#define ACROSS_A 0\n#define ACROSS_B 1\n" },
    { .name = "gemm_wgmma", .fits = vn__fits_wgmma_nt, .pays = vn__pays_wgmma, .run = vn__run_wgmma,
      .workspace = vn__workspace_wgmma, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_wgmma.cl", .entries = "describe gemm_wgmma",
      .params = "BLK_N STAGES WARPGROUPS", .defines = "#define ACROSS_A 0\n#define ACROSS_B 0\n" },
    { .name = "gemm_wgmma", .fits = vn__fits_wgmma_tn, .pays = vn__pays_wgmma, .run = vn__run_wgmma,
      .workspace = vn__workspace_wgmma, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_wgmma.cl", .entries = "describe gemm_wgmma",
      .params = "BLK_N STAGES WARPGROUPS", .defines = "#define ACROSS_A 1\n#define ACROSS_B 1\n" },
    { .name = "gemm_wgmma", .fits = vn__fits_wgmma_tt, .pays = vn__pays_wgmma, .run = vn__run_wgmma,
      .workspace = vn__workspace_wgmma, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_wgmma.cl", .entries = "describe gemm_wgmma",
      .params = "BLK_N STAGES WARPGROUPS", .defines = "#define ACROSS_A 1\n#define ACROSS_B 0\n" },
    { .name = "gemm_mma", .fits = vn__fits_mma_nn, .pays = vn__pays_mma, .run = vn__run_mma, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_mma.cl", .entries = "gemm_mma",
      .params = "BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K",
      .defines = "#define ACROSS_A 0\n#define ACROSS_B 1\n" },
    { .name = "gemm_mma", .fits = vn__fits_mma_nt, .pays = vn__pays_mma, .run = vn__run_mma, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_mma.cl", .entries = "gemm_mma",
      .params = "BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K",
      .defines = "#define ACROSS_A 0\n#define ACROSS_B 0\n" },
    { .name = "gemm_mma", .fits = vn__fits_mma_tn, .pays = vn__pays_mma, .run = vn__run_mma, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_mma.cl", .entries = "gemm_mma",
      .params = "BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K",
      .defines = "#define ACROSS_A 1\n#define ACROSS_B 1\n" },
    { .name = "gemm_mma", .fits = vn__fits_mma_tt, .pays = vn__pays_mma, .run = vn__run_mma, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_mma.cl", .entries = "gemm_mma",
      .params = "BLK_M BLK_N BLK_K WARP_M WARP_N STAGES MMA_M MMA_K",
      .defines = "#define ACROSS_A 1\n#define ACROSS_B 0\n" },
    { .name = "gemm_async", .fits = fits_async, .run = run_tiled, .trial = vn__trial_gemm,
      .texts = "cl/epilogue.h cl/atoms/nvidia.h cl/gemm_async.cl", .entries = "gemm_async",
      .params = "BLK_M BLK_N BLK_K THR_M THR_N STAGES" },
    { .name = "gemm", .fits = fits_any, .run = run_tiled,
      .texts = "cl/epilogue.h cl/tile.h cl/gemm.cl", .entries = "gemm",
      .params = "BLK_M BLK_N BLK_K THR_M THR_N" },
    { .name = NULL }
};

/* ---- the call ---------------------------------------------------------------------- */

/* An input's extents of 1 among the batches repeat. */
static vn_status check_batches(vn_tensor *t, const char *name, const vn_tensor *c)
{
    for (int i = 0; i < c->rank - 2; i++) {
        if (t->extent[i] == c->extent[i])
            continue;
        if (t->extent[i] != 1)
            return vn__fail(VN_INVALID, "%s has batch extent %lld along dimension %d; it needs 1, or that of C, %lld",
                            name, (long long)t->extent[i], i, (long long)c->extent[i]);
        t->extent[i] = c->extent[i];
        t->stride[i] = 0;
    }
    return VN_OK;
}

static vn_status check_shapes(const vn_tensor *a, const vn_tensor *b, const vn_tensor *c)
{
    const int row = c->rank - 2, col = c->rank - 1;

    if (a->rank != c->rank || b->rank != c->rank)
        return vn__fail(VN_INVALID, "A, B and C have ranks %d, %d and %d; they need one rank", a->rank, b->rank,
                        c->rank);
    if (a->type != c->type || b->type != c->type)
        return vn__fail(VN_INVALID, "A, B and C have types %s, %s and %s; they need one type", vn_type_name(a->type),
                        vn_type_name(b->type), vn_type_name(c->type));
    if (a->extent[row] != c->extent[row])
        return vn__fail(VN_INVALID, "A has %lld rows; it needs those of C, %lld", (long long)a->extent[row],
                        (long long)c->extent[row]);
    if (b->extent[col] != c->extent[col])
        return vn__fail(VN_INVALID, "B has %lld columns; it needs those of C, %lld", (long long)b->extent[col],
                        (long long)c->extent[col]);
    if (b->extent[row] != a->extent[col])
        return vn__fail(VN_INVALID, "B has %lld rows; it needs as many as A has columns, %lld",
                        (long long)b->extent[row], (long long)a->extent[col]);
    return VN_OK;
}

static vn_status check_bias(struct gemm *g, const vn_queue *q)
{
    vn_status s;

    if (!(g->has_bias = vn__given(&g->bias)))
        return VN_OK;
    if ((s = vn__check_tensor(&g->bias, "bias", q, 2, VN_RANK, 0)))
        return s;
    if (g->bias.type != g->c.type)
        return vn__fail(VN_INVALID, "bias has type %s; it needs that of C, %s", vn_type_name(g->bias.type),
                        vn_type_name(g->c.type));
    if ((s = vn__broadcast(&g->bias, "bias", &g->c, "C")))
        return s;
    return vn__check_overlap(&g->c, "C", &g->bias, "bias");
}

static vn_status check(struct gemm *g, const vn_queue *q)
{
    vn_status s;

    if ((s = vn__check_tensor(&g->a, "A", q, 2, VN_RANK, 0)) || (s = vn__check_tensor(&g->b, "B", q, 2, VN_RANK, 0)) ||
        (s = vn__check_tensor(&g->c, "C", q, 2, VN_RANK, 1)) || (s = check_shapes(&g->a, &g->b, &g->c)) ||
        (s = check_batches(&g->a, "A", &g->c)) || (s = check_batches(&g->b, "B", &g->c)) ||
        (s = check_bias(g, q)) || (s = vn__check_enum((int)g->math, VN_MATH_COUNT, "math")) ||
        (s = vn__check_enum((int)g->activation, VN_ACTIVATION_COUNT, "activation")) ||
        (s = vn__check_overlap(&g->c, "C", &g->a, "A")) || (s = vn__check_overlap(&g->c, "C", &g->b, "B")))
        return s;
    return VN_OK;
}

/* Rows of C that run along memory are what kernels store well: else C^T = B^T A^T. */
static void orient(struct gemm *g)
{
    const vn_tensor a = g->a;

    if (g->n > 1 && (vn__col(&g->c) == 1 || vn__row(&g->c) != 1 || g->m == 1))
        return;
    if (g->n == 1 && g->m == 1)
        return;
    g->a = vn_transpose(g->b);
    g->b = vn_transpose(a);
    g->c = vn_transpose(g->c);
    if (g->has_bias)
        g->bias = vn_transpose(g->bias);

    const int64_t m = g->m;

    g->m = g->n;
    g->n = m;
}

/* Kernels count in elements, gemm_async in bytes: 32 bits hold both, or `wide` is said. */
static int is_wide(const vn_tensor *t)
{
    return vn__is_wide(t) || (t->buffer && t->buffer->bytes > UINT32_MAX);
}

/* What variants and tune rows go by. */
static void size_up(struct gemm *g)
{
    const double mnk = (double)g->m * (double)g->n * (double)g->k, batches = (double)g->batches;
    const double reads = (double)g->m * (double)g->k + (double)g->k * (double)g->n;
    const double c = (double)g->m * (double)g->n * (g->beta != 0 ? 2 : 1);

    /* A matrix a few tiles wide is no large one, however long: large tiles would be mostly edge. */
    g->head.bucket = mnk <= 0x1p24 ? VN_SMALL : mnk <= 0x1p30 || g->m < 512 || g->n < 512 ? VN_MEDIUM : VN_LARGE;
    g->head.wide = is_wide(&g->a) || is_wide(&g->b) || is_wide(&g->c) || (g->has_bias && is_wide(&g->bias)) ||
                   ((double)g->m + 4096) * (double)g->k * batches > INT_MAX;       /* panels */
    g->head.flops = 2 * mnk * batches;
    g->head.bytes = (reads + c) * batches * (double)vn_type_bytes(g->head.type);
}

static vn_status gemm(vn_queue *q, struct gemm *g, const char *variant)
{
    const struct vn_choice *it;
    vn_status s;

    if ((s = vn__handle_check(q, VN_QUEUE, "queue")) || (s = check(g, q)))
        return s;
    g->head.type = g->c.type;
    g->m = g->c.extent[g->c.rank - 2];
    g->n = g->c.extent[g->c.rank - 1];
    g->k = g->alpha == 0 ? 0 : g->a.extent[g->a.rank - 1];
    g->batches = 1;
    for (int i = 0; i < g->c.rank - 2; i++)
        g->batches *= g->c.extent[i];           /* cannot wrap: C was checked */
    if (g->m == 0 || g->n == 0 || g->batches == 0)
        return VN_OK;
    orient(g);
    size_up(g);
    if ((s = vn__choose(&it, q, vn__gemm_variants, g, sizeof *g, variant)))
        return s;
    return it->variant->run(q, it, g);
}

vn_status vn_gemm(vn_queue *q, double alpha, vn_tensor a, vn_tensor b,
                               double beta,  vn_tensor c, const vn_gemm_options *o)
{
    static const vn_gemm_options usual;
    vn_status s;

    if ((s = vn__enter("vn_gemm")))
        return s;
    if (!o)
        o = &usual;

    struct gemm g = { .head = { .op = "gemm" }, .alpha = alpha, .beta = beta, .a = a, .b = b, .c = c,
                      .bias = o->bias, .activation = o->activation, .math = o->math };

    return vn__leave(gemm(q, &g, o->variant));
}
