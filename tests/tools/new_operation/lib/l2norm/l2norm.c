/* SPDX-License-Identifier: Apache-2.0
 *
 * l2norm.c - the Euclidean norm of each row: y[r] := sqrt(sum over j of x[r][j]^2).
 */
#include "core.h"

struct l2norm { struct vn_problem head; vn_tensor x, y; };

/* ---- the variant ---- */

enum { ITEMS };                   /* parameters by their place */

static const char *fits(const void *problem, const struct vn_facts *f)
{
    const struct l2norm *p = problem;

    (void)f;
    return p->x.extent[0] > INT32_MAX || p->x.extent[1] > INT32_MAX
         ? "an extent needs more than 31 bits" : NULL;
}

static vn_status run(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct l2norm *p = problem;
    struct vn_launch l = { .groups = { p->x.extent[0], 1, 1 }, .items = it->p[ITEMS] };

    vn__arg_int(&l, p->x.extent[1]);
    vn__arg_tensor(&l, &p->x);
    vn__arg_tensor(&l, &p->y);
    return vn__launch(q, it, 0, &l);
}

static const struct vn_variant variants[] = {
    { .name = "l2norm", .fits = fits, .run = run,
      .texts = "cl/l2norm/rows.cl", .entries = "l2norm", .params = "ITEMS" },
    { .name = NULL }
};

/* ---- the call ---- */

struct call { struct vn_call head; vn_tensor x, y; };

static vn_status pose(void *problem, int *done, const vn_queue *q, const void *given)
{
    const struct call *const call = given;
    struct l2norm *const p = problem;
    const int64_t rows = call->x.extent[0], n = call->x.extent[1];
    vn_status s;

    if ((s = vn__check_tensor(&call->x, "x", q, 2, 2, 0)) ||
        (s = vn__check_tensor(&call->y, "y", q, 1, 1, 1)) ||
        (s = vn__check_overlap(&call->y, "y", &call->x, "x")))
        return s;
    if (call->y.type != call->x.type)
        return vn__fail(VN_INVALID, "y is %s and x is %s; they need one type", vn_type_name(call->y.type),
                        vn_type_name(call->x.type));
    if (call->y.extent[0] != rows)
        return vn__fail(VN_INVALID, "y has extent %lld along dimension 0; it needs that of x, %lld",
                        (long long)call->y.extent[0], (long long)rows);
    *done = rows == 0;
    *p = (struct l2norm){
        .head = { .op = "l2norm", .type = call->x.type, .bucket = VN_SMALL,
                  .wide = vn__is_wide(&call->x) || vn__is_wide(&call->y),
                  .flops = 2.0 * (double)rows * (double)n,
                  .bytes = ((double)n + 1) * (double)rows * (double)vn_type_bytes(call->x.type) },
        .x = call->x, .y = call->y,
    };
    return VN_OK;
}

const struct vn_operation vn__l2norm = {
    .name = "l2norm", .functions = { "vn_l2norm" }, .variants = variants,
    .call_size = sizeof(struct call), .problem_size = sizeof(struct l2norm), .pose = pose,
};

vn_status vn_l2norm(vn_queue *q, vn_tensor x, vn_tensor y, const char *variant)
{
    struct call call = { .head = { &vn__l2norm, variant, 0, 0 }, .x = x, .y = y };

    return vn__operate(q, &call.head);
}
