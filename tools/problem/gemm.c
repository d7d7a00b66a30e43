/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.c - the operation gemm: C := act(alpha scale op(A) op(B) + beta residual + bias), in batches.
 */
#include <string.h>

#include "check/data.h"
#include "core.h"
#include "gemm.h"
#include "language.h"
#include "operands.h"

/* ---- the language ---- */

static const struct name share_names[] = {
    { "none", SHARE_NONE }, { "a", SHARE_A }, { "b", SHARE_B }, { "ab", SHARE_AB }, { NULL, 0 } };

#define AT(member) OWN(struct gemm_problem, member)

static const struct word words[] = {
    { "nn",     AT(trans),  0,                           0 },
    { "nt",     AT(trans),  TRANS_B,                     0 },
    { "tn",     AT(trans),  TRANS_A,                     0 },
    { "tt",     AT(trans),  TRANS_A | TRANS_B,           0 },
    { "nnt",    AT(trans),  TRANS_C,                     0 },
    { "ntt",    AT(trans),  TRANS_B | TRANS_C,           0 },
    { "tnt",    AT(trans),  TRANS_A | TRANS_C,           0 },
    { "ttt",    AT(trans),  TRANS_A | TRANS_B | TRANS_C, 0 },
    { "packed", AT(packed), 1,                           0 },
    { NULL, 0, 0, 0 }
};

static const struct key keys[] = {
    KEY_INTEGER("batch", AT(batch), 1, 0, INT64_MAX),
    KEY_NAME("share", AT(share), share_names),
    { "to", read_name, write_nothing, AT(to_f32), 0, 0, 0, f32_names },
    KEY_NAME("sides", AT(sides_f32), f32_names),
    KEY_NAME("residual", AT(residual), bias_names),
    KEY_NAME("scale", AT(scale), bias_names),
    { .name = NULL }
};

static const struct gemm_problem usual = { .batch = 1 };

static int sizes(const struct reader *r, const char *text)
{
    struct gemm_problem *const g = gemm_of(r->p);
    int64_t *const out[] = { &g->m, &g->n, &g->k };

    return read_sizes(r, text, 3, out, "MxNxK", "64x64x64");
}

static void write(struct writer *w, const struct problem *p)
{
    const struct gemm_problem *const g = gemm_of(p);

    write_text(w, "%lldx%lldx%lld:%s%s", (long long)g->m, (long long)g->n, (long long)g->k,
               vn_type_name(p->type), g->to_f32 ? ">f32" : "");
    write_text(w, ":%c%c%s", "nt"[!!(g->trans & TRANS_A)], "nt"[!!(g->trans & TRANS_B)],
               g->trans & TRANS_C ? "t" : "");
    write_keys(w, keys, p);
    write_text(w, "%s", g->packed ? ":packed" : "");
}

/* ---- operands ---- */

static const char *const names[OPERANDS] = {
    "the first operand", "the second operand", "the third operand", "the bias", "the residual", "the scale" };

/* rows x cols with the batches before; `transposed`: the rows are contiguous */
static int64_t lay_out_matrix(vn_tensor *t, const struct problem *p, int64_t rows, int64_t cols,
                              int transposed, int shared)
{
    static const int turned[3] = { 0, 2, 1 }, turned_alone[2] = { 1, 0 };
    const int64_t batch = gemm_of(p)->batch;
    const int     rank = batch == 1 ? 2 : 3;
    const int64_t extent[3] = { shared ? 1 : batch, rows, cols };
    const int    *order = !transposed ? NULL : rank == 3 ? turned : turned_alone;
    const int64_t n = lay_out(t, p, rank, extent + 3 - rank, order);

    if (shared && rank == 3) {                                  /* repeats by a stride of 0 */
        t->extent[0] = batch;
        t->stride[0] = 0;
    }
    return n;
}

/* A row, a column, or all of C's extents. */
static void lay_out_side(struct operands *o, int at, const struct problem *p, int which, vn_type type)
{
    static const unsigned keep[] = { [BIAS_ROW] = 1, [BIAS_COL] = 2, [BIAS_FULL] = ~0u };

    if (!which)
        return;
    o->elements[at] = lay_out_part(&o->t[at], p, &o->t[GEMM_C], keep[which]);
    o->t[at].type = type;
}

static void operands(struct operands *o, const struct problem *p)
{
    const struct gemm_problem *const g = gemm_of(p);

    o->outputs = 1u << GEMM_C;
    o->elements[GEMM_A] = lay_out_matrix(&o->t[GEMM_A], p, g->m, g->k, g->trans & TRANS_A,
                                         g->share & SHARE_A);
    o->elements[GEMM_B] = lay_out_matrix(&o->t[GEMM_B], p, g->k, g->n, g->trans & TRANS_B,
                                         g->share & SHARE_B);
    o->elements[GEMM_C] = lay_out_matrix(&o->t[GEMM_C], p, g->m, g->n, g->trans & TRANS_C, 0);
    if (g->to_f32)
        o->t[GEMM_C].type = VN_F32;

    const vn_type type = g->sides_f32 ? VN_F32 : o->t[GEMM_C].type;

    lay_out_side(o, GEMM_BIAS, p, (int)p->bias, type);
    lay_out_side(o, GEMM_RESIDUAL, p, g->residual, type);
    o->residual = g->residual ? GEMM_RESIDUAL : 0;
    lay_out_side(o, GEMM_SCALE, p, g->scale, p->type == VN_F64 ? VN_F64 : VN_F32);
}

static int complete(const struct reader *r)
{
    const struct gemm_problem *const g = gemm_of(r->p);

    if (r->p->beside && !gemm_has_one_type(r->p))
        return wrong(r, "gemm: operands in one buffer have one type; here some are f32 beside %s",
                     vn_type_name(r->p->type));
    if ((g->to_f32 || g->sides_f32) && vn_type_bytes(r->p->type) != 2)
        return wrong(r, "gemm: %s is f32; that needs f16 or bf16, not %s",
                     g->to_f32 ? "C" : "bias or residual", vn_type_name(r->p->type));
    return 0;
}

static vn_gemm_options options_of(const struct problem *p, const struct operands *o)
{
    return (vn_gemm_options){ .size = sizeof(vn_gemm_options), .math = p->math, .bias = o->t[GEMM_BIAS],
                              .residual = o->t[GEMM_RESIDUAL], .scale = o->t[GEMM_SCALE],
                              .activation = p->act,
                              .packed_b = o->pack, .variant = variant_of(p) };
}

static vn_status pack(vn_queue *q, const struct problem *p, struct operands *o)
{
    const vn_gemm_options options = options_of(p, o);

    return gemm_of(p)->packed ? vn_pack_open(&o->pack, q, o->t[GEMM_B], gemm_of(p)->m, &options) : VN_OK;
}

static vn_status run(vn_queue *q, const struct problem *p, const struct operands *o)
{
    const vn_gemm_options options = options_of(p, o);

    return vn_gemm(q, p->alpha, o->t[GEMM_A], o->t[GEMM_B], p->beta, o->t[GEMM_C], &options);
}

static double flops(const struct problem *p)
{
    const struct gemm_problem *const g = gemm_of(p);

    return 2.0 * (double)g->batch * (double)g->m * (double)g->n * (double)g->k;
}

/* ---- checks ---- */

static double summands(const struct problem *p)
{
    return (double)gemm_of(p)->k;
}

/* Some rows of A and columns of B, of one batch. */
static void narrow_gemm(struct problem *p, struct operands *o, int last)
{
    enum { ROWS = 4, COLUMNS = 16 };
    struct gemm_problem *const g = gemm_of(p);
    const int row = o->t[GEMM_C].rank - 2, col = row + 1;
    const struct range l = end_of(g->batch, 1, last);
    const struct range i = end_of(g->m, ROWS, last), j = end_of(g->n, COLUMNS, last);

    for (int at = GEMM_A; at < GEMM_OPERANDS; at++) {
        if (row > 0)
            narrow(&o->t[at], 0, l);
        if (at != GEMM_B)
            narrow(&o->t[at], row, i);
        if (at != GEMM_A)
            narrow(&o->t[at], col, j);
    }
    g->batch = l.count;
    g->m     = i.count;
    g->n     = j.count;
}

static void shrink(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][3] = {
        { 131, 259, 70 }, { 37, 41, 2071 }, { 1031, 37, 35 }, { 37, 1031, 35 } };
    struct gemm_problem *const g = gemm_of(p);

    g->m = shrunk(g->m, most[shape][0], shape, even);
    g->n = shrunk(g->n, most[shape][1], shape, even);
    g->k = shrunk(g->k, most[shape][2], shape, even);
    g->batch = at_most(g->batch, 2);
}

/* What a stride of 0 repeats, an extent of 1 repeats too. */
static int without_strides_of_0(struct operands *o, const struct problem *p)
{
    if (!gemm_of(p)->share)
        return 0;
    for (int i = GEMM_A; i <= GEMM_B; i++)
        if (o->t[i].stride[0] == 0)
            o->t[i].extent[0] = 1;
    return 1;
}

/* batch x m x n is 2 x batch / 2 x m x n */
static void split_batch(vn_tensor *t)
{
    if (t->rank == 0)
        return;
    memmove(t->extent + 1, t->extent, (size_t)t->rank * sizeof t->extent[0]);
    memmove(t->stride + 1, t->stride, (size_t)t->rank * sizeof t->stride[0]);
    t->rank++;
    t->extent[0] = t->extent[1] > 1 ? 2 : 1;
    t->extent[1] = t->extent[1] > 1 ? t->extent[1] / 2 : 1;
    t->stride[0] = t->stride[1] * t->extent[1];
}

static int restate(struct operands *o, const struct problem *p, int way)
{
    if (way > 2)
        return -1;
    if (gemm_of(p)->batch < 2)
        return 0;
    if (way == 1)
        return without_strides_of_0(o, p);
    if (gemm_of(p)->batch % 2)
        return 0;
    for (int i = GEMM_A; i < GEMM_OPERANDS; i++)
        split_batch(&o->t[i]);
    return 1;
}

const struct op op_gemm = {
    .name = "gemm", .operation = &vn__gemm,
    .words = words, .keys = keys, .has_epilogue = 1, .usual = &usual, .own_size = sizeof usual,
    .directions = 1u << FORWARD, .batch = AT(batch),
    .read_sizes = sizes, .complete = complete, .write = write,
    .operands = names, .lay_out = operands, .pack = pack, .run = run,
    .flops = flops,
    .oracle = oracle_gemm, .summands = summands, .narrow = narrow_gemm, .shrink = shrink,
    .cases = suite_gemm, .fill = data_fill_products, .patterns = product_patterns, .restate = restate,
};
