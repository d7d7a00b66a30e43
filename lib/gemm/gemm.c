/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.c - C := act(alpha A B + beta residual + bias): check it, choose a variant, run it.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gemm.h"

/* ---- launches ------------------------------------------------------------------ */

void vn__gemm_output(struct vn_launch *l, const struct gemm *g)
{
    vn__arg_tensor(l, &g->c);
    if (g->head.epilogue.scale)
        vn__arg_tensor(l, &g->scale);
    if (g->head.epilogue.residual) {
        vn__arg_real(l, g->head.type, g->beta);
        vn__arg_tensor(l, &g->residual);
    }
    if (g->head.epilogue.bias)
        vn__arg_tensor(l, &g->bias);
}

void vn__gemm_input(struct vn_launch *l, const struct gemm *g, const vn_tensor *t)
{
    vn__arg_buffer(l, g->k ? t->buffer : g->c.buffer);
    vn__arg_strides(l, t);
}

void vn__gemm_inputs(struct vn_launch *l, const struct gemm *g)
{
    vn__gemm_input(l, g, &g->a);
    vn__gemm_input(l, g, &g->b);
}

void vn__gemm_sizes(struct vn_launch *l, const struct gemm *g)
{
    vn__arg_int(l, g->m);
    vn__arg_int(l, g->n);
    vn__arg_int(l, g->k);
}

vn_status vn__gemm_too_many(const struct vn_choice *it, int64_t tiles, int64_t blk_m, int64_t blk_n,
                            int64_t most)
{
    return vn__fail(VN_UNSUPPORTED,
                    "C has %lld tiles of %lld x %lld in a matrix; %s takes at most %lld in all",
                    (long long)tiles, (long long)blk_m, (long long)blk_n, it->variant->name, (long long)most);
}

vn_status vn__gemm_launch_tiles(vn_queue *q, const struct vn_choice *it, const struct gemm *g, int blk_m,
                                int blk_n, int items)
{
    const int64_t tiles = VN_CEIL_DIV(g->m, blk_m) * VN_CEIL_DIV(g->n, blk_n);
    struct vn_launch l = { .nargs = 0 };

    l.groups[1] = l.groups[2] = 1;
    l.items = items;
    if (!vn__mul(&l.groups[0], tiles, g->batches) || l.groups[0] > INT_MAX)
        return vn__gemm_too_many(it, tiles, blk_m, blk_n, INT_MAX);
    vn__gemm_sizes(&l, g);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__gemm_inputs(&l, g);
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}

/* ---- the call ---------------------------------------------------------------------- */

vn_status vn__gemm_batches(vn_tensor *t, const char *name, const vn_tensor *c)
{
    for (int i = 0; i < c->rank - 2; i++) {
        if (t->extent[i] == c->extent[i])
            continue;
        if (t->extent[i] != 1)
            return vn__fail(VN_INVALID,
                            "%s has batch extent %lld along dimension %d; it needs 1, or that of C, %lld",
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
        return vn__fail(VN_INVALID, "A, B and C have ranks %d, %d and %d; they need one rank", a->rank,
                        b->rank, c->rank);
    if (a->type != b->type || (c->type != a->type && !(c->type == VN_F32 && vn_type_bytes(a->type) == 2)))
        return vn__fail(VN_INVALID,
                        "A, B and C have types %s, %s and %s; they need one type, or f32 as C of 16 bits",
                        vn_type_name(a->type), vn_type_name(b->type), vn_type_name(c->type));
    if (a->extent[row] != c->extent[row])
        return vn__fail(VN_INVALID, "A has %lld rows; it needs those of C, %lld", (long long)a->extent[row],
                        (long long)c->extent[row]);
    if (b->extent[col] != c->extent[col])
        return vn__fail(VN_INVALID, "B has %lld columns; it needs those of C, %lld",
                        (long long)b->extent[col], (long long)c->extent[col]);
    if (b->extent[row] != a->extent[col])
        return vn__fail(VN_INVALID, "B has %lld rows; it needs as many as A has columns, %lld",
                        (long long)b->extent[row], (long long)a->extent[col]);
    return VN_OK;
}

/* A tensor that the epilogue reads, with the extents of C.  One of rank 1 is a row. */
static vn_status check_side(vn_tensor *t, const char *name, const struct gemm *g, const vn_queue *q)
{
    vn_status s;

    if ((s = vn__check_tensor(t, name, q, 1, VN_RANK, 0)))
        return s;
    if (t->rank == 1) {
        t->rank = 2;
        t->extent[1] = t->extent[0];
        t->stride[1] = t->stride[0];
        t->extent[0] = 1;
        t->stride[0] = 0;
    }
    return vn__broadcast(t, name, &g->c, "C");
}

/* One that is added to C.  Beside types of 16 bits, f32 is taken, too. */
static vn_status check_summand(vn_tensor *t, const char *name, const struct gemm *g, const vn_queue *q)
{
    if (t->type != g->c.type && !(t->type == VN_F32 && vn_type_bytes(g->c.type) == 2) &&
        !(t->type == g->a.type && g->c.type == VN_F32))
        return vn__fail(VN_INVALID, "%s has type %s; it needs that of C, %s%s", name, vn_type_name(t->type),
                        vn_type_name(g->c.type),
                        vn_type_bytes(g->c.type) == 2 ? ", or f32"
                        : g->a.type != g->c.type ? ", or A's" : "");
    return check_side(t, name, g, q);
}

static vn_status check_scale(struct gemm *g, const vn_queue *q)
{
    const vn_type wanted = g->c.type == VN_F64 ? VN_F64 : VN_F32;
    vn_status s;

    if (!(g->has_scale = vn__given(&g->scale)))
        return VN_OK;
    if (g->scale.type != wanted)
        return vn__fail(VN_INVALID, "options.scale has type %s; it needs %s", vn_type_name(g->scale.type),
                        vn_type_name(wanted));
    s = check_side(&g->scale, "options.scale", g, q);
    return s ? s : vn__check_overlap(&g->c, "C", &g->scale, "options.scale");
}

static vn_status check_bias(struct gemm *g, const vn_queue *q)
{
    vn_status s;

    if (!(g->has_bias = vn__given(&g->bias)))
        return VN_OK;
    s = check_summand(&g->bias, "options.bias", g, q);
    return s ? s : vn__check_overlap(&g->c, "C", &g->bias, "options.bias");
}

/* What beta multiplies: C itself, unless something else is given. */
static vn_status check_residual(struct gemm *g, const vn_queue *q)
{
    vn_status s;

    if (!vn__given(&g->residual)) {
        g->residual = g->c;
        return VN_OK;
    }
    if ((s = check_summand(&g->residual, "options.residual", g, q)))
        return s;
    return vn__same_view(&g->residual, &g->c)
         ? VN_OK : vn__check_overlap(&g->c, "C", &g->residual, "options.residual");
}

static vn_status check(struct gemm *g, const vn_queue *q)
{
    vn_status s;

    if ((s = vn__check_tensor(&g->a, "A", q, 2, VN_RANK, 0)) ||
        (s = vn__check_tensor(&g->b, "B", q, 2, VN_RANK, 0)) ||
        (s = vn__check_tensor(&g->c, "C", q, 2, VN_RANK, 1)) || (s = check_shapes(&g->a, &g->b, &g->c)) ||
        (s = vn__gemm_batches(&g->a, "A", &g->c)) || (s = vn__gemm_batches(&g->b, "B", &g->c)) ||
        (s = check_bias(g, q)) || (s = check_residual(g, q)) || (s = check_scale(g, q)) ||
        (s = vn__check_enum((int)g->math, VN_MATH_COUNT, "options.math")) ||
        (s = vn__check_enum((int)g->activation, VN_ACTIVATION_COUNT, "options.activation")) ||
        (s = vn__check_overlap(&g->c, "C", &g->a, "A")) || (s = vn__check_overlap(&g->c, "C", &g->b, "B")))
        return s;
    return VN_OK;
}

void vn__gemm_transpose(struct gemm *g)
{
    const vn_tensor a = g->a;
    const int64_t m = g->m;

    g->a = vn_transpose(g->b);
    g->b = vn_transpose(a);
    g->c = vn_transpose(g->c);
    g->residual = vn_transpose(g->residual);
    if (g->has_scale)
        g->scale = vn_transpose(g->scale);
    if (g->has_bias)
        g->bias = vn_transpose(g->bias);
    g->m = g->n;
    g->n = m;
    g->pack = NULL;                             /* for what is B now is not what it has */
}

int vn__gemm_turns_few_rows(const void *problem)
{
    const struct gemm *g = problem;

    return g->m > g->n;
}

struct gemm vn__gemm_few_rows(const struct gemm *g)
{
    struct gemm t = *g;

    if (vn__gemm_turns_few_rows(g))
        vn__gemm_transpose(&t);
    return t;
}

/* Rows of C that run along memory are what kernels store well: else C^T = B^T A^T.  A pack is of B. */
static void orient(struct gemm *g)
{
    if (g->pack)
        return;
    if (g->n > 1 && (vn__col(&g->c) == 1 || vn__row(&g->c) != 1 || g->m == 1))
        return;
    if (g->n > 1 || g->m > 1)
        vn__gemm_transpose(g);
}

/* Kernels count in elements, gemm_async in bytes: 32 bits hold both, or `wide` is said. */
static int is_wide(const vn_tensor *t)
{
    return vn__is_wide(t) || (t->buffer && t->buffer->bytes > UINT32_MAX);
}

/* "1024x512x4096:nt", of a product whose rows of C are contiguous: batches first, if there are some; then how
 * A and B are laid out, "x" where neither dimension is contiguous.                                         */
static void shape(char *out, size_t size, const void *problem)
{
    const struct gemm *g = problem;
    char batches[24] = "";

    if (g->batches > 1)
        snprintf(batches, sizeof batches, "%lldx", (long long)g->batches);
    snprintf(out, size, "%s%lldx%lldx%lld:%c%c", batches, (long long)g->m, (long long)g->n, (long long)g->k,
             vn__is_mn_major_a(g) ? 't' : vn__col(&g->a) == 1 ? 'n' : 'x',
             vn__is_mn_major_b(g) ? 'n' : vn__row(&g->b) == 1 ? 't' : 'x');
}

/* Along which dimensions of C a tensor that is added repeats. */
static int side_of(const vn_tensor *t, const struct gemm *g)
{
    return vn__row(t) == 0 && g->m > 1 ? VN_SAME_ROWS
         : vn__col(t) == 0 && g->n > 1 ? VN_SAME_COLUMNS : VN_FULL;
}

static double bytes_of(const vn_tensor *t, int side, const struct gemm *g)
{
    const double m = side == VN_SAME_ROWS ? 1 : (double)g->m, n = side == VN_SAME_COLUMNS ? 1 : (double)g->n;

    return side == VN_NONE ? 0 : m * n * (double)g->batches * (double)vn_type_bytes(t->type);
}

/* What variants and tune rows go by. */
void vn__gemm_size_up(struct gemm *g)
{
    const double mnk = (double)g->m * (double)g->n * (double)g->k, batches = (double)g->batches;
    const double reads = (double)g->m * (double)g->k + (double)g->k * (double)g->n;
    const int64_t lines = g->pack || g->to_pack ? g->m + g->n : g->m;   /* in panels */
    const int residual = g->beta != 0 ? side_of(&g->residual, g) : VN_NONE;
    const int bias = g->has_bias ? side_of(&g->bias, g) : VN_NONE;
    const int scale = g->has_scale ? side_of(&g->scale, g) : VN_NONE;

    g->head.epilogue = (struct vn_epilogue){
        .act = (int)g->activation, .scale = scale, .residual = residual, .bias = bias,
        .fast_act = g->activation ? g->fast : 0,
        .type_c = (int)g->c.type, .type_residual = (int)(residual ? g->residual.type : g->c.type),
        .type_bias = (int)(bias ? g->bias.type : g->c.type),
    };

    /* A matrix a few tiles wide is no large one, however long: large tiles would be mostly edge. */
    g->head.bucket = mnk <= 0x1p24 ? VN_SMALL
                   : mnk <= 0x1p30 || g->m < 512 || g->n < 512 ? VN_MEDIUM : VN_LARGE;
    g->head.wide = is_wide(&g->a) || is_wide(&g->b) || is_wide(&g->c) || (g->has_bias && is_wide(&g->bias)) ||
                   (residual && is_wide(&g->residual)) || (scale && is_wide(&g->scale)) ||
                   ((double)lines + 4096) * (double)g->k * batches > INT_MAX;
    g->head.flops = 2 * mnk * batches;
    g->head.bytes = reads * batches * (double)vn_type_bytes(g->head.type) + bytes_of(&g->c, VN_FULL, g) +
                    bytes_of(&g->scale, scale, g) + bytes_of(&g->residual, residual, g) +
                    bytes_of(&g->bias, bias, g);
}

struct call {
    struct vn_call head;
    vn_tensor      b, a, c, bias, residual, scale;
    double         alpha, beta;
    vn_math        math;
    vn_activation  activation;
    const vn_pack *packed_b;
};

int vn__gemm_settle(struct gemm *g)
{
    g->head.op = "gemm";
    g->head.type = g->a.type;
    g->head.shape = shape;
    g->m = g->c.extent[g->c.rank - 2];
    g->n = g->c.extent[g->c.rank - 1];
    g->k = g->alpha == 0 ? 0 : g->a.extent[g->a.rank - 1];
    g->batches = 1;
    for (int i = 0; i < g->c.rank - 2; i++)
        g->batches *= g->c.extent[i];           /* cannot wrap: C was checked */
    if (g->m == 0 || g->n == 0 || g->batches == 0)
        return 1;
    orient(g);
    vn__gemm_size_up(g);
    return 0;
}

static vn_status pose(void *problem, int *done, const vn_queue *q, const void *given)
{
    const struct call *const call = given;
    struct gemm *const g = problem;
    vn_status s;

    *g = (struct gemm){ .head.type = call->a.type, .alpha = call->alpha, .beta = call->beta,
                        .a = call->a, .b = call->b, .c = call->c, .bias = call->bias,
                        .residual = call->residual, .scale = call->scale,
                        .fast = vn__fast_act(call->math, call->c.type, &q->device->facts),
                        .activation = call->activation, .math = call->math };
    if ((s = check(g, q)) || (call->packed_b && (s = vn__gemm_take(g, q, call->packed_b))))
        return s;
    *done = vn__gemm_settle(g);
    return VN_OK;
}

const struct vn_operation vn__gemm = {
    .name = "gemm", .functions = { "vn_gemm" }, .variants = vn__gemm_variants,
    .call_size = sizeof(struct call), .problem_size = sizeof(struct gemm), .pose = pose,
};

vn_status vn_gemm(vn_queue *q, double alpha, vn_tensor a, vn_tensor b,
                               double beta,  vn_tensor c, const vn_gemm_options *options)
{
    static const vn_gemm_options usual;
    const vn_gemm_options *const o = options ? options : &usual;
    struct call call = {
        .head = { &vn__gemm, o->variant, 0, 0 },
        .alpha = alpha, .a = a, .b = b, .beta = beta, .c = c, .bias = o->bias,
        .math = o->math, .activation = o->activation, .packed_b = o->packed_b,
    };
    vn_status s;

    if (o->size == sizeof *o) {                 /* else they may not be there: 0.1 had none */
        call.residual = o->residual;
        call.scale = o->scale;
    } else if (o->size != 0)
        return (s = vn__enter("vn_gemm"))
             ? s : vn__fail(VN_INVALID, "options.size is %u; it needs 0 or sizeof(vn_gemm_options), %zu",
                            (unsigned)o->size, sizeof *o);
    return vn__operate(q, &call.head);
}
