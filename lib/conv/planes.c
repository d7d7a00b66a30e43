/* SPDX-License-Identifier: Apache-2.0
 *
 * planes.c - the variant conv_planes: depthwise convolution of NCHW tensors, through local memory.
 */
#include <string.h>

#include "gemm/gemm.h"
#include "repack.h"
#include "strips.h"

enum { THR_H, COLS, EXACT, ITEMS, ROOM };       /* its parameters */
enum { VECTOR = 16, MARGIN = 2 };               /* bytes; vectors: as of adjacent.h */
enum { PLANES, ROWS, STRIPS, DOWN, ACROSS, OUT };       /* the plan's numbers */

static int is_planes(const vn_tensor *t)
{
    int64_t step = 1;

    for (int i = RANK - 1; i >= 0; i--) {
        if (t->extent[i] > 1 && t->stride[i] != step)
            return 0;
        step *= t->extent[i];
    }
    return 1;
}

const char *vn__fits_planes(const struct conv *c, const struct vn_facts *f)
{
    const int64_t taps = c->w.extent[4], over = c->y.extent[4] * c->stride[2] - c->pad[2] - c->x.extent[4];

    if (taps != 3)                              /* of 5x5 not every compiler unrolls all loops */
        return "it is for filters of 3x3";
    if (!is_planes(&c->x) || !is_planes(&c->y))
        return "it is for planes of contiguous pixels";
    if (c->pad[1] >= taps || c->pad[2] >= taps || over >= taps)
        return "it is for padding that is narrower than the filter";
    return f->local_bytes < 48 << 10 ? "it needs 48 KiB of local memory" : NULL;
}

const char *vn__fits_conv_planes(const void *problem, const struct vn_facts *f)
{
    const char *const why = vn__fits_strips(problem);

    return why ? why : vn__fits_planes(problem, f);
}

void vn__constants_conv_planes(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = vn__strips_of(c).spread;
    constants[1] = (int)c->w.extent[4];
    constants[2] = (int)c->stride[1];
}

/* Rows of the source that so many rows of the output need. */
static int64_t source_rows(const struct conv *c, const struct strips *s, int64_t rows)
{
    return min_of(s->in->extent[3], vn__strips_source(c, s, rows));
}

/* Vectors of local memory for so many rows of each, of so many planes; out: where the output begins. */
static int64_t vectors_of(int64_t *out, const struct strips *s, int64_t planes, int64_t in, int64_t rows)
{
    const int64_t in_bytes = (int64_t)vn_type_bytes(s->in->type);
    const int64_t out_bytes = (int64_t)vn_type_bytes(s->out->type);

    *out = 2 * MARGIN + 1 + VN_CEIL_DIV(planes * in * s->in->extent[4] * in_bytes, VECTOR);
    return *out + 1 + VN_CEIL_DIV(planes * rows * s->out->extent[4] * out_bytes, VECTOR);
}

int vn__planes_cut(struct planes *p, const struct strips *s, const struct conv *c, int64_t rows, int64_t cols,
                   int64_t items, int64_t room, int64_t most)
{
    const int64_t height = s->out->extent[3], vectors = room * (1024 / VECTOR);
    const int64_t down = VN_CEIL_DIV(height + (s->spread ? c->pad[1] : 0), rows);
    const int64_t across = VN_CEIL_DIV(s->out->extent[4] + (s->spread ? c->pad[2] : 0), cols);

    *p = (struct planes){ .planes = 1, .rows = height, .strips = 1, .down = down, .across = across };
    if (down * across <= items && vectors_of(&p->out, s, 1, s->in->extent[3], height) <= vectors) {
        most = min_of(most, max_of(1, items / (down * across)));
        while (p->planes < most &&
               vectors_of(&p->out, s, p->planes + 1, s->in->extent[3], height) <= vectors)
            p->planes++;
        vectors_of(&p->out, s, p->planes, s->in->extent[3], height);
        return 1;
    }
    for (p->down = min_of(down, items / across); p->down > 0; p->down--)
        if (vectors_of(&p->out, s, 1, source_rows(c, s, p->down * rows), p->down * rows) <= vectors)
            break;
    if (p->down == 0)
        return 0;
    p->strips = VN_CEIL_DIV(down, p->down);
    p->down = VN_CEIL_DIV(down, p->strips);
    p->strips = VN_CEIL_DIV(down, p->down);
    p->rows = p->down * rows;
    vectors_of(&p->out, s, 1, source_rows(c, s, p->rows), p->rows);
    return 1;
}

const char *vn__plan_conv_planes(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv *c = problem;
    const struct strips s = vn__strips_of(c);
    const int64_t few = VN_CEIL_DIV(s.out->extent[0] * s.out->extent[1], 2 * site->facts->units);
    struct planes p;

    out->seconds = -1;
    if (s.spread && (row->p[THR_H] | row->p[COLS]) & 1)
        return "its strips do not begin at a multiple of the stride";
    if (row->p[EXACT] && !vn__strips_are_exact(c, row->p[THR_H], row->p[COLS]))
        return "its strips are not whole";
    if (!vn__planes_cut(&p, &s, c, row->p[THR_H], row->p[COLS], row->p[ITEMS], row->p[ROOM],
                        max_of(1, few)))
        return "its rows do not fit local memory";
    memcpy(out->v, &p, sizeof p);
    out->seconds = vn__strips_seconds(c, c->p.bytes, row, VN_STRIPS_SHARE, site);
    return strcmp(site->facts->family, "cpu") ? NULL : "it is for GPUs, unless it is named";
}

vn_status vn__run_conv_planes(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const struct strips s = vn__strips_of(c);
    const vn_tensor *const in = s.in, *const out = s.out;
    const int64_t *const v = plan->v;
    struct vn_launch l = { .groups = { VN_CEIL_DIV(out->extent[0] * out->extent[1], v[PLANES]) * v[STRIPS],
                                       1, 1 },
                           .items = it->p[ITEMS] };

    vn__arg_buffer(&l, in->buffer);
    vn__arg_view(&l, (int64_t[8]){ in->start, (int64_t)(in->buffer->bytes / vn_type_bytes(in->type)) });
    vn__conv_arg_sizes(&l, 0, 0, in->extent[0], in->extent[1], in->extent + 2);
    vn__strips_arg_filter(&l, c, &s);
    vn__conv_arg_sizes(&l, 0, 0, out->extent[0], out->extent[1], out->extent + 2);
    vn__conv_arg_sizes(&l, 0, 0, 0, 0, s.pad);
    vn__arg_view(&l, (int64_t[8]){ v[PLANES], v[ROWS], v[STRIPS], v[DOWN], v[ACROSS], v[OUT] });
    vn__conv_arg_alpha(&l, c);
    vn__conv_arg_output(&l, c);
    return vn__launch(q, it, 0, &l);
}
