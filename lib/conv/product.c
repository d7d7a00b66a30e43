/* SPDX-License-Identifier: Apache-2.0
 *
 * product.c - the variant conv_gemm: a filter of 1x1 that goes step by step is a matrix product, of views.
 *
 *     forward           y[image]  (filters x pixels)   =  w    x[image]
 *     backward data     dx[image] (channels x pixels)  =  w^T  dy[image]
 *     backward filter   dw        (filters x channels) =  the sum over the images of  dy[image]  x[image]^T
 *
 * Images whose pixels follow those of the one before (NHWC) are one matrix. Else they are a batch and, in
 * backward filter, a batch of products in the workspace, which are added in order.
 */
#include <string.h>

#include "conv.h"
#include "gemm/gemm.h"

enum { IMAGES, GROUPS, ROWS, COLUMNS };         /* dimensions of a matrix here */
enum { ITEMS };                                 /* of the tune row */
enum { FEW_PIXELS, FEW_PACKED, MANY_PIXELS, FILTERS };      /* and its costs */
enum { WORKSPACE_ALIGN = 256 };

struct product { struct gemm gemm; int64_t images; };   /* images: in as many matrices */

/* From pixel to pixel; with one pixel in each image, from image to image. */
static int64_t pixel_step(const vn_tensor *t)
{
    return t->extent[RANK - 1] == 1 ? t->stride[0] : t->stride[RANK - 1];
}

static int is_one_matrix(const vn_tensor *t)
{
    return t->extent[0] == 1 || t->extent[RANK - 1] == 1 ||
           t->stride[0] == t->stride[RANK - 1] * t->extent[RANK - 1];
}

/* Matrices whose rows are dimension d of a tensor, divided among groups. */
static vn_tensor matrices_of(const vn_tensor *t, int d, int64_t groups, int64_t images, int64_t image_step,
                             int64_t columns, int64_t column_step)
{
    const int64_t rows = t->extent[d] / groups;
    vn_tensor m = *t;

    m.rank = 4;
    m.extent[IMAGES] = images;
    m.extent[GROUPS] = groups;
    m.extent[ROWS] = rows;
    m.extent[COLUMNS] = columns;
    m.stride[IMAGES] = image_step;
    m.stride[GROUPS] = rows * t->stride[d];
    m.stride[ROWS] = t->stride[d];
    m.stride[COLUMNS] = column_step;
    return m;
}

/* A tensor of images: channels x pixels. */
static vn_tensor pixels_of(const vn_tensor *t, int64_t groups, int64_t images)
{
    const int64_t pixels = t->extent[0] / images * t->extent[RANK - 1];
    const int of_one = pixels == t->extent[RANK - 1] && images > 1;

    return matrices_of(t, 1, groups, images, t->stride[0], pixels,
                       of_one ? t->stride[RANK - 1] : pixel_step(t));
}

/* A tensor of filters: filters x channels. */
static vn_tensor filter_of(const vn_tensor *t, int64_t groups, int64_t images)
{
    return matrices_of(t, 0, groups, images, 0, t->extent[1], t->stride[1]);
}

/* The product, its operands but for the sum over images. */
static struct product product_of(const struct conv *c)
{
    const int to_filter = c->direction == BACKWARD_FILTER;
    const int joined = is_one_matrix(&c->x) && is_one_matrix(&c->y) &&
                       (to_filter || ((!c->has_bias || is_one_matrix(&c->bias)) &&
                                      (c->beta == 0 || is_one_matrix(&c->residual))));
    const int64_t images = joined ? 1 : c->x.extent[0], outputs = to_filter ? 1 : images;
    vn_tensor (*const view)(const vn_tensor *, int64_t, int64_t) = to_filter ? filter_of : pixels_of;
    const vn_tensor w = filter_of(&c->w, c->groups, images);
    struct product p = { .images = images };
    struct gemm *const g = &p.gemm;

    g->alpha = c->is_empty ? 0 : c->alpha;
    g->beta = c->beta;
    g->math = c->math;
    g->activation = c->activation;
    g->fast = c->fast;
    g->has_bias = c->has_bias;
    if (c->direction == BACKWARD_DATA) {
        g->a = vn_transpose(w);
        g->b = pixels_of(&c->y, c->groups, images);
    } else if (to_filter) {
        g->a = pixels_of(&c->y, c->groups, images);
        g->b = vn_transpose(pixels_of(&c->x, c->groups, images));
    } else {
        g->a = w;
        g->b = pixels_of(&c->x, c->groups, images);
    }
    g->c = view(vn__conv_output(c), c->groups, outputs);
    g->residual = view(&c->residual, c->groups, outputs);
    if (c->has_bias)
        g->bias = view(&c->bias, c->groups, outputs);
    return p;
}

/* Without batch dimensions of extent 1, which some kernels count. */
static void squeeze(struct gemm *g)
{
    vn_tensor *const all[] = { &g->a, &g->b, &g->c, &g->residual, &g->bias };

    for (int d = GROUPS; d >= IMAGES; d--) {
        const int rank = g->c.rank;

        if (g->c.extent[d] != 1)
            continue;
        for (int i = 0; i < 5; i++) {
            vn_tensor *const t = all[i];

            if (t->rank != rank)                /* there is none */
                continue;
            memmove(t->extent + d, t->extent + d + 1, (size_t)(t->rank - 1 - d) * sizeof *t->extent);
            memmove(t->stride + d, t->stride + d + 1, (size_t)(t->rank - 1 - d) * sizeof *t->stride);
            t->rank--;
        }
    }
}

/* The products of the images, each by itself, in `sums` from element `start` on. */
static struct gemm apart(const struct product *p, vn_buffer *sums, int64_t start)
{
    struct gemm g = p->gemm;

    g.alpha = 1;
    g.beta = 0;
    g.has_bias = 0;
    g.activation = VN_IDENTITY;
    g.c.buffer = sums;
    g.c.start = start;
    g.c.type = g.a.type == VN_F64 ? VN_F64 : VN_F32;
    g.c.extent[IMAGES] = p->images;
    for (int64_t i = COLUMNS, step = 1; i >= 0; step *= g.c.extent[i--])
        g.c.stride[i] = step;
    g.residual = g.c;
    squeeze(&g);
    vn__gemm_settle(&g);
    return g;
}

static int adds(const struct conv *c, const struct product *p)
{
    return c->direction == BACKWARD_FILTER && p->images > 1 && p->gemm.alpha != 0;
}

static int64_t sum_bytes(const struct conv *c, const struct product *p)
{
    const int64_t elements = p->images * vn__elements(&c->w);

    return adds(c, p) ? elements * (c->p.type == VN_F64 ? 8 : 4) : 0;
}

const char *vn__fits_conv_gemm(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;

    (void)f;
    for (int d = 0; d < DIMS; d++) {
        if (c->w.extent[2 + d] != 1)
            return "its filter has several taps";
        if (c->stride[d] != 1 || c->pad[d] || c->x.extent[2 + d] != c->y.extent[2 + d])
            return "its filter does not meet each pixel";
        if (d < DIMS - 1 && c->x.extent[2 + d] != 1)
            return "rows of pixels do not follow each other in memory";
    }
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    return c->x.extent[0] > VN_CONV_MOST / (c->x.extent[RANK - 1] + 1) || c->groups > VN_CONV_MOST
         ? "images and pixels must stay below 2^31" : NULL;
}

const char *vn__plan_conv_gemm(struct vn_plan *out, const void *problem, const struct vn_row *row,
                               const struct vn_site *site)
{
    const struct conv *c = problem;
    struct product p = product_of(c);
    const int64_t sums = sum_bytes(c, &p), pixels = p.gemm.b.extent[COLUMNS];
    double seconds;
    size_t own = 0;

    if (sums) {
        const struct gemm g = apart(&p, p.gemm.c.buffer, 0);

        seconds = vn__part_seconds(site, vn__gemm_variants, &g, &own);
    } else {
        squeeze(&p.gemm);
        vn__gemm_settle(&p.gemm);
        seconds = vn__part_seconds(site, vn__gemm_variants, &p.gemm, &own);
    }
    out->workspace = VN_CEIL_DIV(own, WORKSPACE_ALIGN) * WORKSPACE_ALIGN + (size_t)sums;
    if (strcmp(site->facts->family, "cpu")) {   /* elsewhere other variants have models, too */
        out->seconds = seconds > 0 && sums ? seconds + vn__launch_seconds(site) +
                                             (double)sums / (site->rates->gbps * 1e9) : seconds;
        return NULL;
    }
    if (c->direction != BACKWARD_FILTER)
        return pixels < row->cost[c->to_pack || c->pack ? FEW_PACKED : FEW_PIXELS]
             ? "a matrix has few pixels: tiles of conv_slab fill better" : NULL;
    return c->w.extent[0] / c->groups >= row->cost[FILTERS] &&
           (p.images > 1 || (c->x.stride[RANK - 1] == 1 && c->x.extent[RANK - 1] >= row->cost[MANY_PIXELS]))
         ? "conv_slab_filter sums over images and many pixels in its tiles" : NULL;
}

vn_status vn__run_conv_gemm(vn_queue *q, const struct vn_choice *it, const void *problem,
                            const struct vn_plan *plan)
{
    const struct conv *c = problem;
    struct product p = product_of(c);
    const int64_t bytes = sum_bytes(c, &p);
    struct vn_plan part;
    const struct vn_choice *choice;
    vn_buffer *sums = NULL;
    int64_t start = 0;
    struct gemm g;
    vn_status s;

    if (bytes) {
        if ((s = vn__workspace(&sums, q, plan->workspace)))
            return s;
        start = (int64_t)(plan->workspace - (size_t)bytes) / (c->p.type == VN_F64 ? 8 : 4);
        g = apart(&p, sums, start);
    } else {
        squeeze(&p.gemm);
        vn__gemm_settle(&p.gemm);
        g = p.gemm;
    }
    if ((s = vn__choose_part(&choice, &part, q, vn__gemm_variants, &g)) ||
        (s = choice->variant->run(q, choice, &g, &part)) || !bytes)
        return s;
    q->workspace_used = plan->workspace;
    p.gemm.m = p.gemm.c.extent[ROWS];           /* as the products are: not turned, as settling might */
    p.gemm.n = p.gemm.c.extent[COLUMNS];
    p.gemm.batches = c->groups;
    p.gemm.head.type = c->p.type;
    p.gemm.head.epilogue = it->epilogue;
    return vn__add_splits(q, it, 0, it->p[ITEMS], &p.gemm, sums, start, p.images);
}
