/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.c - the filter in the layout that a variant wants, kept for many convolutions.
 *
 * vn_conv_pack_open() chooses for a convolution as if its filter lay in whatever layout is wanted, and makes
 * that one.  One that is given the pack is chosen for as every other is, save that a variant which wants the
 * filter so may pay sooner; where the one chosen wants another layout, or none, the pack is left alone.
 */
#include "conv.h"

vn_status vn__conv_take(struct conv *c, const vn_queue *q, const vn_pack *pack)
{
    const vn_status s = vn__pack_check(pack, q, "options.packed_w");

    if (s)
        return s;
    if (c->direction == BACKWARD_FILTER)
        return vn__fail(VN_INVALID, "options.packed_w is given; it needs to be NULL, since the gradient of a "
                        "filter reads none");
    if (pack->of.rank != c->w.rank || !vn__same_view(&pack->of, &c->w))
        return vn__fail(VN_INVALID,
                        "options.packed_w was made of another view than w; it needs the buffer, start, "
                        "extents and strides of w, as vn_conv_pack_open() got them");
    c->pack = pack->buffer;
    c->packed = pack->layout;
    return VN_OK;
}

static vn_status pack_open(vn_pack **out, vn_queue *q, const struct conv_call *call)
{
    struct conv c;
    const struct vn_choice *it = NULL;
    const struct vn_plan *plan;
    int done = 0;
    vn_status s;

    if ((s = vn__handle_check(q, VN_QUEUE, "queue")) || (s = vn__conv.pose(&c, &done, q, call)))
        return s;
    c.to_pack = 1;
    c.pack = NULL;
    if (!done && (s = vn__choose(&it, &plan, q, vn__conv_variants, &c, sizeof c, call->head.variant)))
        return s;
    return vn__pack_open(out, q, &call->w, "w", it, &c);
}

vn_status vn_conv_pack_open(vn_pack **out, vn_queue *q, vn_conv_direction d, vn_tensor x, vn_tensor w,
                            vn_tensor y, const vn_conv_options *o)
{
    struct conv_call call;
    vn_status s;

    if ((s = vn__enter("vn_conv_pack_open")))
        return s;
    if (!out)
        return vn__fail(VN_INVALID, "out is NULL; it needs the address of a vn_pack *");
    *out = NULL;
    if ((s = vn__check_enum((int)d, VN_CONV_DIRECTION_COUNT, "direction")) ||
        (s = vn__conv_say(&call, (enum direction)d, 1, &x, &w, 0, &y, o)))
        return s;
    call.packed_w = NULL;
    if (vn__given(&call.residual))
        call.beta = 1;
    return vn__leave(pack_open(out, q, &call));
}
