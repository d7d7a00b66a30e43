/* SPDX-License-Identifier: Apache-2.0
 *
 * shallow_wgmma_filter.c - the variant conv_shallow_wgmma_filter: the gradient of a filter of few channels,
 * in 16-bit types, on NVIDIA's sm_90.
 */
#include "filter.h"
#include "gemm/gemm.h"
#include "shallow_wgmma.h"

enum { COLUMNS, STAGES, STAGES_Y, WARPGROUPS, EACH };   /* its parameters */
enum { EFF, SHARE, FIXED_NS, STAGE_NS, ELEMENTS_NS, ROW_NS, TILE_NS, MOVE };    /* and costs */
enum { GROUPS };                                /* of a plan: they share the rows of the output */
enum { REPACK, MULTIPLY, ADD };                 /* its kernels */
enum { H = DIMS - 2, W = DIMS - 1 };
enum { BLK_M = 64, STEP = 16, FEW = 4, WARPGROUP = 128, WARP = 32 };   /* STEP: pixels of a product */
enum { FEW_SUMS = 64, MOST_SUMS = 128, MOST_COLUMNS = 256, ROW_BYTES = 128 };  /* MOST_SUMS: accumulators */
enum { OTHER = 2048 };                          /* bytes of local memory beside what is planned: barriers */

const char *vn__fits_conv_shallow_wgmma_filter(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    struct filter_view v;
    const char *why = vn__fits_filter(c, f, NULL);

    why = why ? why : vn__fits_shallow_units(c, f);
    return why ? why : vn__filter_view(&v, c, 0);
}

/* Columns of a product: of an even number of rows of taps. */
static int blk_r(const struct conv *c) { return (int)VN_CEIL_DIV(c->w.extent[2 + H], 2) * 2 * VN_UNIT; }

void vn__constants_conv_shallow_wgmma_filter(int *constants, const void *problem)
{
    const struct conv *c = problem;

    constants[0] = (int)c->stride[W];
    constants[1] = vn__shallow_words(c);
    constants[2] = blk_r(c);
}

/* ---- plans ---------------------------------------------------------------------------- */

/* dy as TMA reads it: maybe a copy. */
static const char *view_of(struct filter_view *v, const struct conv *c)
{
    const char *const why = vn__filter_view(v, c, 0);

    v->copies_x = 0;
    v->bytes_x = 0;
    return why;
}

/* Columns of a tap, and of a filter, in the partial sums. */
static int64_t pixel_of(const struct conv *c)   { return c->w.extent[1] <= FEW ? FEW : VN_UNIT; }
static int64_t columns_of(const struct conv *c) { return vn__conv_taps(c) * pixel_of(c); }
static int64_t tiles_of(const struct conv *c)   { return VN_CEIL_DIV(c->w.extent[0], BLK_M); }

/* The seconds of work-groups that have so many rows of the output each. */
static double seconds_of(const struct conv *c, const struct shallow_bands *b, const struct vn_row *row,
                         const struct vn_site *site)
{
    const int *const cost = row->cost;
    const int64_t more = (c->w.extent[2 + H] - 1) / c->stride[W];
    const int64_t columns = VN_CEIL_DIV(c->y.extent[2 + W], b->across);     /* on average */
    const double flops = 2.0 * (double)(BLK_M * vn__shallow_units(c) * blk_r(c)) *
                         (double)(VN_CEIL_DIV(columns, STEP) * STEP);
    const double load = cost[vn__shallow_lag(c) ? STAGE_NS : ELEMENTS_NS] * 1e-9;
    const double multiply = flops / (cost[EFF] * 1e-3 * site->rates->mma16 * 1e9) + cost[ROW_NS] * 1e-9;
    const double each = (double)b->own * (multiply + load) +
                        (double)(more * VN_CEIL_DIV(b->own, c->y.extent[2 + H])) * load;
    const double sums = 2 * sizeof(float) * (double)(b->groups * c->w.extent[0] * columns_of(c));
    const double bytes = c->p.bytes * (double)b->own / (double)b->rows * site->facts->units;

    return larger(each, vn__move_seconds(bytes, cost[SHARE], site)) *
           (double)VN_CEIL_DIV(b->groups * tiles_of(c), site->facts->units) + cost[TILE_NS] * 1e-9 +
           vn__launch_seconds(site) + sums / (site->rates->l2_gbps * 1e9);
}

/* Work-groups with fewer rows each store more sums. */
static const char *share(struct shallow_bands *out, double *seconds, const struct conv *c,
                         const struct vn_row *row, const struct vn_site *site)
{
    enum { MOST = 8 };
    const int64_t tiles = tiles_of(c), most = site->facts->units < tiles ? 1 : site->facts->units / tiles;

    *seconds = -1;
    for (int64_t fewer = 1; fewer <= MOST && fewer <= most; fewer++) {
        struct shallow_bands b = { 0, 0, 0, 0 };
        const char *const why = vn__shallow_bands(&b, c, row->p[COLUMNS], most / fewer);
        double s;

        if (why)
            return why;
        s = seconds_of(c, &b, row, site);
        if (*seconds < 0 || s < *seconds) {
            *out = b;
            *seconds = s;
        }
    }
    return NULL;
}

const char *vn__plan_conv_shallow_wgmma_filter(struct vn_plan *out, const void *problem,
                                               const struct vn_row *row, const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t stride = c->stride[W], taps_h = c->w.extent[2 + H], units = vn__shallow_units(c);
    const int64_t twins = (blk_r(c) / VN_UNIT - 1) / stride;
    const int64_t source = (p[STAGES] + twins) * stride * (p[COLUMNS] + VN_UNITS) * 2 * VN_UNIT;
    const int64_t local = source + p[STAGES_Y] * p[COLUMNS] * ROW_BYTES;
    const int64_t filters = c->w.extent[0] < BLK_M ? c->w.extent[0] : BLK_M;
    struct filter_view v;
    struct shallow_bands b = { 0, 0, 0, 0 };
    double seconds;
    const char *why;

    out->seconds = -1;
    if (units > p[EACH] * p[WARPGROUPS] || blk_r(c) > MOST_COLUMNS || p[EACH] * blk_r(c) / 2 > MOST_SUMS)
        return "this row of parameters has too few registers for the filter";
    if ((double)(local + OTHER) > site->rates->local_kib * 1024 ||
        filters * columns_of(c) * (int64_t)sizeof(float) > local)
        return "this row of parameters takes more local memory than there is";
    if (vn__shallow_lag(c) + (taps_h - 1) / stride + 2 > p[STAGES])
        return "its stages hold too few rows of the source";
    if ((why = view_of(&v, c)) || (why = share(&b, &seconds, c, row, site)))
        return why;
    if (b.groups * tiles_of(c) > VN_CONV_MOST / 4 / (BLK_M * columns_of(c)))
        return "the partial sums must stay below 2^29 elements";
    out->v[GROUPS] = b.groups;
    out->workspace = v.bytes_y + (size_t)(b.groups * c->w.extent[0] * columns_of(c)) * sizeof(float);
    out->seconds = row->cost[EFF] <= 0 || row->cost[SHARE] <= 0     /* the row has no costs */
                 ? 0 : row->cost[FIXED_NS] * 1e-9 + seconds +
                       vn__filter_copy_seconds(&v, c, row->cost[MOVE], site);
    return NULL;
}

/* ---- launches ----------------------------------------------------------------------- */

vn_status vn__run_conv_shallow_wgmma_filter(vn_queue *q, const struct vn_choice *it, const void *problem,
                                            const struct vn_plan *plan)
{
    const struct conv *c = problem;
    const int moves = it->p[EACH] * blk_r(c) / 2 > FEW_SUMS;    /* as in the kernel */
    struct vn_launch l = { .groups = { 1, 1, 1 },
                           .items = WARPGROUP * (it->p[WARPGROUPS] + 1 + moves) + (moves ? 0 : WARP) };
    struct shallow_bands b = { 0, 0, 0, 0 };
    struct filter_view v;
    vn_buffer *room;
    vn_status s = vn__workspace(&room, q, plan->workspace);
    int64_t box = VN_CEIL_DIV(c->y.extent[2 + W], STEP) * STEP;

    if (s)
        return s;
    view_of(&v, c);
    if ((s = vn__filter_copy(&v, q, it, REPACK, REPACK, c, room, plan->workspace - v.bytes_y)))
        return s;
    vn__shallow_bands(&b, c, it->p[COLUMNS], plan->v[GROUPS]);
    box = box < it->p[COLUMNS] ? box : it->p[COLUMNS];
    l.groups[0] = tiles_of(c) * b.groups;
    vn__arg_tensor(&l, &c->x);
    vn__arg_extents(&l, &c->x);
    vn__arg_im2col_source(&l, &v.y);
    vn__arg_extents(&l, &c->w);
    vn__arg_view(&l, (int64_t[8]){ 0, 0, 0, 0, 0, c->pad[H], c->pad[W] });
    vn__shallow_arg_bands(&l, c, &b);
    vn__arg_int(&l, tiles_of(c));
    vn__arg_int(&l, pixel_of(c));
    vn__arg_int(&l, box);
    vn__arg_int(&l, vn__shallow_units(c));
    if ((s = vn__arg_maps(&l, q)))
        return s;
    vn__arg_buffer(&l, room);
    return (s = vn__launch(q, it, MULTIPLY, &l))
         ? s : vn__filter_columns_sum(q, it, ADD, c, columns_of(c), b.groups, room);
}
