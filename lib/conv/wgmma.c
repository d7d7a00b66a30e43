/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma.c - the variant conv_wgmma: images and their gradients in 16-bit types on NVIDIA's sm_90.
 */
#include <limits.h>

#include "gemm/gemm.h"
#include "im2col.h"

enum { BLK_N, STAGES, WARPGROUPS, RASTER };     /* its parameters */
enum { TILES, GROUPS, ORDER };                  /* values of a plan */
enum { BLK_K = 64, WARPGROUP_M = 64, MAPS_BYTES = 256, MOST_GROUPS = 1024, MOST_PHASES = 16 };

/* ---- fits ----------------------------------------------------------------------------- */

/* Whether all pixels of a tensor follow each other at one stride; it is left as that of the last dimension. */
static int join_pixels(vn_tensor *t)
{
    static const int inner_first[] = { 4, 3, 2, 0 };
    int64_t step = 0, pixels = 1;

    for (int i = 0; i < 4; i++) {
        const int d = inner_first[i];

        if (t->extent[d] == 1)
            continue;
        if (pixels == 1)
            step = t->stride[d];
        else if (t->stride[d] != step * pixels)
            return 0;
        pixels *= t->extent[d];
    }
    t->stride[RANK - 1] = step;
    return 1;
}

/* The problem with the pixels of output, residual and bias joined. */
static int join(struct conv *c)
{
    vn_tensor *const out = c->direction == BACKWARD_DATA ? &c->x : &c->y;

    return join_pixels(out) && (c->beta == 0 || join_pixels(&c->residual)) &&
           (!c->has_bias || join_pixels(&c->bias));
}

const char *vn__fits_conv_wgmma(const void *problem, const struct vn_facts *f)
{
    const struct conv *c = problem;
    struct im2col seen;
    struct conv joined = *c;

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (c->p.type != VN_F16 && c->p.type != VN_BF16)
        return "it needs f16 or bf16";
    if (c->direction == BACKWARD_FILTER)
        return "it is for outputs that are images";
    if (c->groups != 1)
        return "it takes no groups";
    if (c->is_empty)
        return "there is nothing to multiply";
    if (c->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (vn__conv_rows(c) > VN_CONV_MOST / 2 || vn__conv_pixels(vn__conv_output(c)) > VN_CONV_MOST / 2 ||
        vn__conv_columns(c) > VN_CONV_MOST / 2 || vn__conv_depth(c) > VN_CONV_MOST / 2)
        return "its rows, columns and sums must stay below 2^30";
    if (vn__conv_phases(c) > MOST_PHASES)
        return "its stride makes more than 16 phases";
    if (!join(&joined))
        return "all pixels of the output, the residual and the bias must follow each other at one stride";
    return vn__im2col_of(&seen, c);
}

void vn__constants_conv_wgmma(int *out, const void *problem)
{
    const struct conv *c = problem;
    const int64_t *const s = c->bias.stride;

    out[0] = (int)c->direction;
    out[1] = vn__im2col_rank(c);
    out[2] = c->has_bias && (s[0] | s[2] | s[3] | s[4]) == 0;
}

/* ---- plans ---------------------------------------------------------------------------- */

static int64_t blk_m(const int *p)
{
    return WARPGROUP_M * p[WARPGROUPS];
}

static int64_t stage_bytes(const int *p)
{
    return 2 * BLK_K * (blk_m(p) + p[BLK_N]);
}

/* Work-groups that a compute unit holds: what their local memory leaves room for. */
static int64_t resident(const int *p, const struct vn_site *site)
{
    enum { OTHER = 2048 };
    const int64_t each = (int64_t)(site->rates->local_kib * 1024) / (p[STAGES] * stage_bytes(p) + OTHER);

    return each > 1 ? each : 1;
}

/* The taps of a phase. */
static int64_t taps_of(const struct conv *c, int64_t phase)
{
    int64_t taps = 1;

    for (int d = DIMS - 1; d >= 0; d--) {
        const int64_t phases = vn__conv_phases_along(c, d);

        taps *= vn__conv_taps_along(c, d, phase % phases);
        phase /= phases;
    }
    return taps;
}

/* The phases in the order of their taps, most first, in four bits each; the taps of all, and the most. */
static int64_t order_of(const struct conv *c, int64_t *all, int64_t *most)
{
    const int phases = (int)vn__conv_phases(c);
    uint64_t order = 0;
    int64_t last = INT64_MAX;

    *all = *most = 0;
    for (int placed = 0; placed < phases; ) {
        int64_t next = -1;

        for (int i = 0; i < phases; i++)
            if (taps_of(c, i) < last && taps_of(c, i) > next)
                next = taps_of(c, i);
        for (int i = 0; i < phases; i++)
            if (taps_of(c, i) == next) {
                order |= (uint64_t)i << 4 * placed++;
                *all += next;
            }
        *most = placed == 0 || next > *most ? next : *most;
        last = next;
    }
    return (int64_t)order;
}

const char *vn__plan_conv_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t channels = c->direction == FORWARD ? c->w.extent[1] : c->w.extent[0];
    const int64_t slices = VN_CEIL_DIV(channels, BLK_K), phases = vn__conv_phases(c);
    const int64_t down = VN_CEIL_DIV(vn__conv_columns(c), blk_m(p));
    const int64_t across = VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N]), units = site->facts->units;
    const double flops = 2.0 * (double)blk_m(p) * p[BLK_N] * BLK_K * (double)slices;
    int64_t most_groups = units * resident(p, site), all, most;
    double loads;

    out->v[ORDER] = order_of(c, &all, &most);
    if (!vn__mul(&out->v[TILES], down, across) || !vn__mul(&out->v[TILES], out->v[TILES], phases) ||
        out->v[TILES] > INT_MAX / 2) {
        out->seconds = -1;
        return "the output has more than 2^30 tiles";
    }
    most_groups = most_groups < MOST_GROUPS ? most_groups : MOST_GROUPS;
    out->v[GROUPS] = out->v[TILES] < most_groups ? out->v[TILES] : most_groups;
    out->workspace = (size_t)out->v[GROUPS] * MAPS_BYTES;

    const struct vn_tiles t = { .tiles = (double)out->v[TILES], .flops = flops * (double)all / (double)phases,
                                .longest = flops * (double)most, .bytes = c->p.bytes,
                                .peak = site->rates->mma16, .resident = 1 };

    out->seconds = vn__tiles_seconds(&t, row, site);
    loads = (double)(down * across * all * slices * stage_bytes(p)) / (site->rates->l2_gbps * 1e9);
    if (out->seconds > 0 && loads > out->seconds)       /* what all tiles read comes from L2 */
        out->seconds = loads;
    return NULL;
}

/* ---- the launch ------------------------------------------------------------------------ */

vn_status vn__run_conv_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    enum { PRODUCER = 32, CONSUMERS = 128 };
    struct conv joined = *(const struct conv *)problem;
    struct vn_launch l = { .groups = { plan->v[GROUPS], 1, 1 },
                           .items = CONSUMERS * it->p[WARPGROUPS] + PRODUCER };
    struct im2col seen;
    vn_buffer *maps;
    const char *const why = vn__im2col_of(&seen, &joined);
    vn_status s;

    if (why || !join(&joined))
        return vn__fail(VN_UNSUPPORTED, "%s", why ? why : "pixels of the output do not follow each other");
    if ((s = vn__workspace(&maps, q, plan->workspace)))
        return s;
    vn__arg_im2col_source(&l, &seen);
    vn__arg_im2col_filter(&l, &seen);
    vn__arg_im2col_window(&l, &seen, plan->v[ORDER], 0);
    vn__conv_arg_steps(&l, &joined);
    vn__conv_arg_alpha(&l, &joined);
    vn__arg_int(&l, plan->v[GROUPS]);
    vn__arg_int(&l, plan->v[TILES]);
    vn__arg_buffer(&l, maps);
    vn__conv_arg_output(&l, &joined);
    return vn__launch(q, it, 0, &l);
}
