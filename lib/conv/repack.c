/* SPDX-License-Identifier: Apache-2.0
 *
 * repack.c - the variant conv_repack: what has NCHW tensors, through copies whose channels are contiguous.
 *
 * Another variant solves the problem of the copies; a second pass takes its output to where it belongs.
 */
#include <limits.h>

#include "gemm/gemm.h"
#include "repack.h"

enum { REPACK, UNPACK };                        /* its kernels */
enum { MOVE };                                  /* its cost */
enum { KEEP };                                  /* of its plan: the output is not a copy */
enum { BYTES = 16, ITEMS = 256, TILE = 2048, WIDE = 32, ALIGN = 256 };

/* ---- rows of contiguous channels ------------------------------------------------------------ */

static int64_t vector_of(const vn_tensor *t) { return BYTES / (int64_t)vn_type_bytes(t->type); }

int vn__conv_is_rows(const vn_tensor *t)
{
    const int64_t vector = vector_of(t);

    if ((t->stride[1] != 1 && t->extent[1] > 1) || t->start % vector)
        return 0;
    for (int i = 0; i < RANK; i++)
        if (i != 1 && t->extent[i] > 1 && (t->stride[i] % vector || t->stride[i] <= 0 ||
                                           t->stride[i] >> 36))
            return 0;
    return 1;
}

int64_t vn__conv_row_channels(const vn_tensor *t)
{
    return VN_CEIL_DIV(t->extent[1], vector_of(t)) * vector_of(t);
}

void vn__conv_lay_rows(vn_tensor *t, int64_t row)
{
    t->stride[1] = 1;
    t->stride[4] = vn__conv_row_channels(t);
    t->stride[3] = t->stride[4] * row;
    t->stride[2] = t->stride[3] * t->extent[3];
    t->stride[0] = t->stride[2] * t->extent[2];
}

int64_t vn__conv_row_elements(const vn_tensor *t, int64_t row)
{
    int64_t n = vn__conv_row_channels(t);

    return vn__mul(&n, n, row) && vn__mul(&n, n, t->extent[3]) && vn__mul(&n, n, t->extent[2]) &&
           vn__mul(&n, n, t->extent[0]) && n < INT64_MAX / 64 ? n : 0;
}

void vn__conv_arg_image(struct vn_launch *l, const vn_tensor *t, vn_buffer *b, int64_t start)
{
    vn__arg_buffer(l, b);
    vn__arg_view(l, (int64_t[8]){ start, 0, t->stride[0], t->stride[1], t->stride[2], t->stride[3],
                                  t->stride[4] });
}

void vn__conv_arg_sizes(struct vn_launch *l, int64_t s0, int64_t s1, int64_t s2, int64_t s3,
                        const int64_t dims[DIMS])
{
    vn__arg_view(l, (int64_t[8]){ s0, s1, s2, s3, dims[0], dims[1], dims[2] });
}

/* A work-group copies `wide` channels of as many pixels as make a tile. */
static vn_status size_launch(struct vn_launch *l, const vn_tensor *t, int64_t row, int64_t channels,
                             int64_t wide)
{
    const int64_t tiles = VN_CEIL_DIV(t->extent[2] * t->extent[3] * row, TILE / wide);

    *l = (struct vn_launch){ .groups = { 1, 1, 1 }, .items = ITEMS };
    return vn__mul(&l->groups[0], t->extent[0], tiles) &&
           vn__mul(&l->groups[0], l->groups[0], VN_CEIL_DIV(channels, wide)) && l->groups[0] <= INT_MAX
         ? VN_OK : vn__fail(VN_UNSUPPORTED, "a copy of %lld pixels takes more than %d work-groups",
                            (long long)vn__conv_pixels(t), INT_MAX);
}

vn_status vn__conv_repack(vn_queue *q, const struct vn_choice *it, int kernel, const vn_tensor *t,
                          int64_t row, int64_t w0, vn_buffer *to, int64_t start)
{
    const int64_t channels = vn__conv_row_channels(t), dims[DIMS] = { t->extent[2], t->extent[3], row };
    const int64_t wide = channels > vector_of(t) ? WIDE : vector_of(t);
    struct vn_launch l = { .nargs = 0 };
    const vn_status s = size_launch(&l, t, row, channels, wide);

    if (s)
        return s;
    vn__conv_arg_image(&l, t, t->buffer, t->start);
    vn__conv_arg_sizes(&l, 0, 0, t->extent[0], t->extent[1], t->extent + 2);
    vn__arg_buffer(&l, to);
    vn__conv_arg_sizes(&l, start, w0, t->extent[0], channels, dims);
    return vn__launch(q, it, kernel, &l);
}

/* Back from such a copy, of t's extents. */
static vn_status unpack(vn_queue *q, const struct vn_choice *it, const vn_tensor *t, vn_buffer *from,
                        int64_t start)
{
    struct vn_launch l = { .nargs = 0 };
    const vn_status s = size_launch(&l, t, t->extent[4], t->extent[1], WIDE);

    if (s)
        return s;
    vn__arg_buffer(&l, from);
    vn__conv_arg_sizes(&l, start, 0, t->extent[0], vn__conv_row_channels(t), t->extent + 2);
    vn__conv_arg_image(&l, t, t->buffer, t->start);
    vn__conv_arg_sizes(&l, 0, 0, t->extent[0], t->extent[1], t->extent + 2);
    return vn__launch(q, it, UNPACK, &l);
}

/* ---- the variant ------------------------------------------------------------------------------ */

/* The problem with copies.  at: the element where each begins, behind `own` bytes; -1: it is used as is. */
struct copies { struct conv c; int64_t at[3]; size_t bytes; };

static vn_tensor *tensor_of(struct conv *c, int i)
{
    return i == 0 ? &c->x : i == 1 ? &c->w : &c->y;
}

static int output_of(const struct conv *c)
{
    return c->direction == FORWARD ? 2 : c->direction == BACKWARD_DATA ? 0 : 1;
}

struct conv vn__conv_without_jumps(const struct conv *c)
{
    struct conv it = *c;

    for (int d = 0; d < DIMS && c->direction != BACKWARD_DATA; d++)
        if (c->w.extent[2 + d] == 1 && c->pad[d] == 0 && c->stride[d] > 1 &&
            (c->y.extent[2 + d] - 1) * c->stride[d] < c->x.extent[2 + d]) {  /* no padding behind, either */
            it.x.extent[2 + d] = c->y.extent[2 + d];
            it.x.stride[2 + d] *= c->stride[d];
            it.stride[d] = 1;
        }
    return it;
}

/* 0 if the copies are too large.  keep: the output is not one of them; room: NULL in a plan. */
static int copies_of(struct copies *p, const struct conv *c, int keep, size_t own, vn_buffer *room)
{
    p->c = *c;
    p->bytes = VN_CEIL_DIV(own, ALIGN) * ALIGN;
    for (int i = 0; i < 3; i++) {
        vn_tensor *const t = tensor_of(&p->c, i);
        const int64_t bytes = (int64_t)vn_type_bytes(t->type);
        const int64_t elements = vn__conv_row_elements(t, t->extent[4]);

        p->at[i] = -1;
        if (vn__conv_is_rows(t) || (keep && i == output_of(c)))
            continue;
        if (elements == 0)
            return 0;
        p->at[i] = (int64_t)p->bytes / bytes;
        p->bytes += (size_t)VN_CEIL_DIV(elements * bytes, ALIGN) * ALIGN;
        vn__conv_lay_rows(t, t->extent[4]);
        t->start = p->at[i];
        t->buffer = room;
    }
    vn__conv_settle(&p->c);
    return 1;
}

const char *vn__fits_conv_repack(const void *problem, const struct vn_facts *f)
{
    const struct conv jumps = vn__conv_without_jumps(problem), *const c = &jumps;
    struct copies p;

    (void)f;
    if (c->p.type == VN_F64 || c->x.type != c->p.type || c->w.type != c->p.type || c->y.type != c->p.type)
        return "it copies elements of one type, of 16 or 32 bits";
    if (c->is_empty)
        return "there is nothing to multiply";
    if (c->groups > 1 && c->w.extent[1] == 1)
        return "nothing is summed over channels, so they need not be contiguous";
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    if (!copies_of(&p, c, 0, 0, NULL))
        return "its copies must stay below 2^57 elements";
    return p.at[0] < 0 && p.at[1] < 0 && p.at[2] < 0
         ? "channels are contiguous, and begin at multiples of 16 bytes, already" : NULL;
}

/* The time of both the copies and the problem that is left; 0: nobody has a model. */
static double seconds_of(struct copies *p, const struct conv *c, int keep, const struct vn_row *row,
                         const struct vn_site *site)
{
    double seconds;
    size_t own = 0;

    copies_of(p, c, keep, 0, NULL);
    seconds = vn__part_seconds(site, vn__conv_variants, &p->c, &own);
    copies_of(p, c, keep, own, NULL);
    for (int i = 0; i < 3; i++)
        if (p->at[i] >= 0 && seconds > 0)
            seconds += vn__launch_seconds(site) +
                       vn__move_seconds(2.0 * (double)vn__elements(tensor_of(&p->c, i)) *
                                        (double)vn_type_bytes(p->c.p.type), row->cost[MOVE], site);
    return seconds;
}

const char *vn__plan_conv_repack(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv c = vn__conv_without_jumps(problem);
    struct copies p, kept;
    double seconds, keeping;

    if (site->depth > 0) {
        out->seconds = -1;
        return "the problem is a part of another one";
    }
    seconds = seconds_of(&p, &c, 0, row, site);
    keeping = p.at[output_of(&c)] < 0 ? 0 : seconds_of(&kept, &c, 1, row, site);
    out->v[KEEP] = keeping > 0 && (seconds <= 0 || keeping < seconds) &&
                   (kept.at[0] >= 0 || kept.at[1] >= 0 || kept.at[2] >= 0);
    out->workspace = out->v[KEEP] ? kept.bytes : p.bytes;
    seconds = out->v[KEEP] ? keeping : seconds;
    if (seconds <= 0 || row->cost[MOVE] <= 0)
        return "there is no time model for the problem of the copies; it runs when named alone";
    out->seconds = seconds;
    return NULL;
}

vn_status vn__run_conv_repack(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    struct conv c = vn__conv_without_jumps(problem);
    const int output = output_of(&c), keep = (int)plan->v[KEEP];
    const struct vn_choice *choice;
    struct vn_plan part;
    struct copies p;
    vn_buffer *room;
    size_t all;
    vn_status s;

    copies_of(&p, &c, keep, 0, NULL);
    if ((s = vn__choose_part(&choice, &part, q, vn__conv_variants, &p.c)))
        return s;
    copies_of(&p, &c, keep, part.workspace, NULL);      /* of what is chosen, which a plan may not have */
    all = p.bytes;
    if ((s = vn__workspace(&room, q, all)))
        return s;
    copies_of(&p, &c, keep, part.workspace, room);
    for (int i = 0; i < 3; i++) {
        const vn_tensor *const t = tensor_of(&c, i);

        if (i != output && p.at[i] >= 0 &&
            (s = vn__conv_repack(q, it, REPACK, t, t->extent[4], 0, room, p.at[i])))
            return s;
    }
    if ((s = choice->variant->run(q, choice, &p.c, &part)))
        return s;
    q->workspace_used = all;
    return p.at[output] < 0 ? VN_OK : unpack(q, it, tensor_of(&c, output), room, p.at[output]);
}
