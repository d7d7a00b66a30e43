/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.c - the variants conv_mma and conv_mma_splitk: images and their gradients in 16-bit types, in groups or
 * not, by the matrix engine of NVIDIA's sm_80 and up, out of registers.
 */
#include <limits.h>

#include "gemm/gemm.h"
#include "im2col.h"
#include "repack.h"

enum { BLK_M, BLK_N, BLK_K, WARP_M, WARP_N, STAGES, PARTS_K = STAGES + 3 };     /* parameters */
enum { LOADS = VN_TILE_COSTS, UNGROUPED };      /* cost columns of conv_mma after the tiles' */
enum { ODD_C = VN_SPLITS_COSTS, BACK };         /* of conv_mma_splitk, after those of splits */
enum { TILES, SPAN, SPLITS };                   /* of a plan */
enum { RASTER = 8 };                            /* as in the kernel's text */
enum { VECTOR = 8, BYTES = 2 };                 /* elements of a vector; of an element */

/* Channels of the source that are summed, of a group: in whole vectors. */
static int64_t channels_of(const struct conv *c)
{
    const int64_t channels = c->direction == FORWARD ? c->w.extent[1] : c->w.extent[0] / c->groups;

    return VN_CEIL_DIV(channels, VECTOR) * VECTOR;
}

/* Coordinates of pixels, and of what taps reach in the padding. */
static int has_near_taps(const struct conv *c)
{
    for (int d = 0; d < DIMS; d++)
        if ((double)c->x.extent[2 + d] + (double)c->dilation[d] * (double)c->w.extent[2 + d] +
            (double)c->stride[d] + 2.0 * (double)c->pad[d] > VN_CONV_MOST / 2)
            return 0;
    return 1;
}

const char *vn__fits_conv_gather(const struct conv *c, const struct vn_facts *f)
{
    if (vn__sm(f) < 80)
        return "it needs an NVIDIA GPU of sm_80 or above, for its matrix engine";
    if (c->p.type != VN_F16 && c->p.type != VN_BF16)
        return "it needs f16 or bf16";
    if (c->is_empty)
        return "there is nothing to multiply";
    if (c->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    return has_near_taps(c) ? NULL : "the reach of the filter, with the padding, must stay below 2^30";
}

const char *vn__fits_conv_mma(const void *problem, const struct vn_facts *f)
{
    enum { MOST_PHASES = 4096 };
    const struct conv *c = problem;
    const vn_tensor *const source = c->direction == BACKWARD_DATA ? &c->y : &c->x;
    const char *why;

    if (c->direction == BACKWARD_FILTER)
        return "it is for outputs that are images";
    if ((why = vn__fits_conv_gather(c, f)))
        return why;
    if (vn__conv_rows(c) > VN_CONV_MOST / 2 || vn__conv_columns(c) > VN_CONV_MOST / 2 ||
        vn__conv_taps(c) > VN_CONV_MOST / 2 / channels_of(c))
        return "its rows, columns and sums must stay below 2^30";
    if (vn__conv_phases(c) > MOST_PHASES)
        return "its stride makes more than 4096 phases";
    if (c->groups > 1 && source->extent[1] / c->groups % VECTOR)
        return "channels of a group must be a multiple of 8";
    return vn__conv_is_rows(source) && vn__conv_is_rows(&c->w)
         ? NULL : "channels must be contiguous, and begin at multiples of 16 bytes: NHWC";
}

void vn__constants_conv_mma(int *out, const void *problem)
{
    const struct conv *c = problem;

    out[0] = (int)c->direction;
    out[1] = vn__im2col_rank(c);
}

/* The taps of all phases, and the most of one. */
static void count_taps(const struct conv *c, double *all, double *most)
{
    *all = *most = 1;
    for (int d = 0; d < DIMS; d++) {
        int64_t sum = 0, largest = 0;

        for (int64_t phase = 0; phase < vn__conv_phases_along(c, d); phase++) {
            const int64_t taps = vn__conv_taps_along(c, d, phase);

            sum += taps;
            largest = max_of(largest, taps);
        }
        *all *= (double)sum;
        *most *= (double)largest;
    }
}

/* What an output costs whose elements are stored one by one: thousandths of its bytes. */
static double odd_bytes(const vn_tensor *out, int odd)
{
    int64_t strides = out->start;

    for (int d = 0; d < RANK; d++)
        if (d != 1 && out->extent[d] > 1)
            strides |= out->stride[d];
    return (out->extent[1] > 1 && out->stride[1] != 1) || strides % 2 != 0
         ? (double)vn__elements(out) * (double)vn_type_bytes(out->type) * odd / 1000 : 0;
}

/* Tiles of all groups and phases. */
static const char *count_tiles(struct vn_plan *out, const struct conv *c, const int *p)
{
    const int64_t down = VN_CEIL_DIV(vn__conv_columns(c), p[BLK_M]);
    const int64_t across = VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N]);

    if (!vn__mul(&out->v[TILES], across, c->groups) || out->v[TILES] > VN_CONV_MOST / p[BLK_N] ||
        !vn__mul(&out->v[TILES], out->v[TILES], down * vn__conv_phases(c)) || out->v[TILES] > INT_MAX / 2) {
        out->seconds = -1;
        return "the output has more than 2^30 tiles";
    }
    return NULL;
}

/* Without groups, a row may be left UNGROUPED thousandths of its rate, for kernels that were measured. */
const char *vn__plan_conv_mma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                              const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const double phases = (double)vn__conv_phases(c), channels = (double)channels_of(c);
    const double slice = 2.0 * p[BLK_M] * p[BLK_N];             /* flops, for an element of the sum */
    const char *const why = count_tiles(out, c, p);
    double all, most, loads;

    if (why)
        return why;
    count_taps(c, &all, &most);

    const double k = all * channels / phases + p[BLK_K] / 2.0;  /* of a tile, in the mean */
    const struct vn_tiles t = {
        .tiles = (double)out->v[TILES], .flops = slice * k,
        .longest = slice * (most * channels + p[BLK_K] - 1), .peak = site->rates->mma16,
        .bytes = c->p.bytes + odd_bytes(vn__conv_output(c), row->cost[VN_ODD_C]),
        .resident = vn__resident(vn__mma_items(p)) };

    if (row->cost[LOADS] <= 0 || row->cost[UNGROUPED] <= 0)
        return NULL;
    out->seconds = vn__tiles_seconds(&t, row, site);
    loads = t.tiles * (p[BLK_M] + p[BLK_N]) * k * BYTES / (site->rates->l2_gbps * 1e6 * row->cost[LOADS]);
    if (out->seconds > 0 && loads > out->seconds)       /* what all tiles read comes from L2 */
        out->seconds = loads;
    if (c->groups == 1)
        out->seconds *= 1000.0 / row->cost[UNGROUPED];
    return NULL;
}

/* splits: 0, where the kernel takes none. */
static vn_status launch(vn_queue *q, const struct vn_choice *it, const struct conv *c,
                        const struct vn_plan *plan, int64_t splits, int items)
{
    struct vn_launch l = { .groups = { plan->v[TILES], splits ? splits : 1, 1 }, .items = items };
    vn_buffer *slots = vn__conv_output(c)->buffer;      /* with one split: any buffer */
    vn_status s;

    if (splits > 1 && (s = vn__slots(&slots, q)))
        return s;
    vn__conv_arg_problem(&l, c);
    vn__arg_int(&l, vn__conv_columns(c));
    vn__arg_tiles(&l, VN_CEIL_DIV(vn__conv_columns(c), it->p[BLK_M]),
                  c->groups * VN_CEIL_DIV(vn__conv_rows(c), it->p[BLK_N]), RASTER, vn__conv_phases(c));
    if (splits) {
        vn__arg_int(&l, plan->v[SPAN]);
        vn__arg_int(&l, splits);
        vn__arg_buffer(&l, slots);
    }
    return vn__launch(q, it, 0, &l);
}

vn_status vn__run_conv_mma(vn_queue *q, const struct vn_choice *it, const void *problem,
                           const struct vn_plan *plan)
{
    return launch(q, it, problem, plan, 0, vn__mma_items(it->p));
}

/* ---- split-K --------------------------------------------------------------------------------- */

const char *vn__fits_conv_mma_splitk(const void *problem, const struct vn_facts *f)
{
    if (vn__sm(f) < 90)
        return "it needs an NVIDIA GPU of sm_90 or above, for its local memory";
    return ((const struct conv *)problem)->groups > 1 ? "it is for problems without groups"
                                                      : vn__fits_conv_mma(problem, f);
}

const char *vn__plan_conv_mma_splitk(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                     const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const char *const why = count_tiles(out, c, p);
    const int64_t slice = (int64_t)(p[BLK_M] + p[BLK_N]) * p[BLK_K] * BYTES;
    struct vn_splits s = {
        .tiles = (double)out->v[TILES], .flops = 2.0 * p[BLK_M] * p[BLK_N] * p[BLK_K],
        .loads = (double)slice, .peak = site->rates->mma16, .memory = c->p.bytes,
        .bytes = c->p.bytes + odd_bytes(vn__conv_output(c), row->cost[ODD_C]), .local = slice * p[STAGES],
        .items = vn__mma_items(p) * p[PARTS_K], .slots = (int64_t)p[BLK_M] * p[BLK_N] / 2 };
    double all, most;

    if (why)
        return why;
    count_taps(c, &all, &most);
    s.slices = VN_CEIL_DIV((int64_t)most * channels_of(c), p[BLK_K]);
    if (c->direction == BACKWARD_DATA && row->cost[BACK] > 0) {     /* each row of the filter is found */
        s.flops *= 1000.0 / row->cost[BACK];
        s.loads *= 1000.0 / row->cost[BACK];
    }
    out->seconds = vn__plan_splits(&out->v[SPAN], &out->v[SPLITS], &s, row, site);
    return NULL;
}

vn_status vn__run_conv_mma_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                                  const struct vn_plan *plan)
{
    return launch(q, it, problem, plan, plan->v[SPLITS], vn__mma_items(it->p) * it->p[PARTS_K]);
}
