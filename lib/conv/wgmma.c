/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma.c - the variants conv_wgmma, conv_wgmma_few and conv_window: images and their gradients in 16-bit
 * types on NVIDIA's sm_90.
 *
 * Where there are few channels, a slice of 64 of them is mostly empty.  conv_wgmma_few makes channels of what
 * the taps along w read: with P elements of each pixel, those of a row of taps follow each other in memory, S
 * P of them, and pixels `stride` further begin `stride` P further, so that no pixel is there twice:
 *
 *     a row of pixels     0123 0123 0123 0123 0123 ...        P = 4, S = 3, stride 2
 *     channels of q = 0   ^------------^
 *     channels of q = 1             ^------------^
 *
 * Where the stride along h is 2, too, two rows of 4 elements become one of 8, and half as many taps remain.
 * A first pass copies x so, with its padding, and the filter.
 */
#include <limits.h>

#include "gemm/gemm.h"
#include "im2col.h"
#include "repack.h"
#include "wgmma.h"

enum { BLK_N, STAGES, WARPGROUPS, RASTER, TEAMS };      /* parameters; of conv_window the first three */
enum { TILES, GROUPS, ORDER, SPLITS, SPAN };    /* values of a plan; SPAN: slices of a part */
enum { ROW = 128, WARPGROUP_M = 64, MOST_GROUPS = 1024, MOST_PHASES = 16 };
enum { BLK_K = 64, VECTOR = 8, HALF_VECTOR = 4 };           /* elements of 16 bits; ROW: bytes of a slice */
enum { LOADS = VN_TILE_COSTS, REPACK };         /* costs behind those of tiles; of conv_wgmma_few the last */
enum { BACK_NS = LOADS + 1, WINDOW_BACK_NS = VN_TILE_COSTS };   /* the last of conv_wgmma, conv_window */

/* ---- fits ----------------------------------------------------------------------------- */

/* Whether all pixels of a tensor follow each other at one stride; it becomes that of the last dimension. */
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

int vn__conv_is_across(const struct conv *c)
{
    struct conv joined = *c;

    return !join(&joined);
}

struct conv vn__conv_joined(const struct conv *c)
{
    struct conv joined = *c;

    return join(&joined) ? joined : *c;
}

const char *vn__fits_conv_across(const struct conv *c)
{
    const vn_tensor *const out = vn__conv_output(c);
    int64_t last = out->extent[1] > 1 ? out->extent[1] * out->stride[1] : 0;

    if (!vn__conv_is_across(c))
        return NULL;
    if (last < 0)
        return "channels of the output must follow each other forwards";
    for (int d = 0; d < RANK; d++) {
        if (d == 1)
            continue;
        if (out->stride[d] < 0 || out->stride[d] > VN_CONV_MOST / 4 ||
            (last += (out->extent[d] - 1) * out->stride[d]) > VN_CONV_MOST / 2)
            return "the output must span less than 2^30 elements";
        if (out->extent[d] > 1 && ((c->beta != 0 && c->residual.stride[d] != out->stride[d]) ||
                                   (c->has_bias && c->bias.stride[d] != 0)))
            return "the residual must have the strides of an output like NCHW, and the bias one element for "
                   "each channel";
    }
    return NULL;
}

static const vn_tensor *source_of(const struct conv *c)
{
    return c->direction == BACKWARD_DATA ? &c->y : &c->x;
}

/* One tap, each pixel of the source is one of the output, and those of an image are contiguous; in 16-bit
 * types, the only ones of which wgmma takes an M-major operand.                                         */
static int is_pixels_major(const struct conv *c)
{
    const vn_tensor *const t = source_of(c);
    int64_t pixels = 1;

    if (vn_type_bytes(t->type) != 2)
        return 0;
    for (int d = DIMS - 1; d >= 0; d--) {
        if (c->w.extent[2 + d] != 1 || c->pad[d] != 0 || c->stride[d] != 1 ||
            c->x.extent[2 + d] != c->y.extent[2 + d] ||
            (t->extent[2 + d] > 1 && t->stride[2 + d] != pixels))
            return 0;
        pixels *= t->extent[2 + d];
    }
    for (int i = 0; i < 2; i++)
        if (t->extent[i] > 1 && (t->stride[i] % VECTOR || t->stride[i] <= 0 || t->stride[i] >> 34))
            return 0;
    return t->start % VECTOR == 0 && pixels % VECTOR == 0 && t->stride[1] >= pixels && t->extent[1] > 1 &&
           pixels < INT_MAX / 4;
}

/* The source and the filter as the kernel reads them. */
static const char *view_of(struct im2col *out, const struct conv *c)
{
    const vn_tensor *const t = source_of(c);
    struct conv rows = *c;
    const char *why;

    if (!is_pixels_major(c))
        return vn__im2col_of(out, c);
    vn__conv_lay_rows(c->direction == BACKWARD_DATA ? &rows.y : &rows.x, t->extent[4]);
    if ((why = vn__im2col_of(out, &rows)))
        return why;
    out->source = *t;
    out->source.extent[4] = t->extent[2] * t->extent[3] * t->extent[4];
    out->source.extent[2] = out->source.extent[3] = 1;
    for (int i = 0; i < 2; i++)                 /* TMA wants some stride, too, where there is no next one */
        if (t->extent[i] == 1)
            out->source.stride[i] = VECTOR;
    out->count[0] = out->count[1] = 1;
    out->count[2] = VN_CEIL_DIV(out->source.extent[4], BLK_K) * BLK_K;
    return NULL;
}

const char *vn__fits_conv_wgmma_joined(const void *problem, const struct vn_facts *f)
{
    const char *const why = vn__fits_conv_wgmma(problem, f);

    return why ? why : vn__conv_is_across(problem) || is_pixels_major(problem)
         ? "all pixels of the output, the residual and the bias must follow each other at one stride, and "
           "channels of the source be contiguous" : NULL;
}

const char *vn__fits_conv_tiles(const struct conv *c, const struct vn_facts *f, const char *types)
{
    struct im2col seen;
    const char *why;

    if (vn__sm(f) != 90)
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (types)
        return types;
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
    why = vn__fits_conv_across(c);
    return why ? why : view_of(&seen, c);
}

const char *vn__fits_conv_wgmma(const void *problem, const struct vn_facts *f)
{
    const vn_type type = ((const struct conv *)problem)->p.type;

    return vn__fits_conv_tiles(problem, f, type == VN_F16 || type == VN_BF16 ? NULL : "it needs f16 or bf16");
}

/* Whether the bias is the same for all pixels; whether the output is written across. */
static void take_output(int *out, const struct conv *c)
{
    out[0] = vn__conv_has_bias_of_channels(c);
    out[1] = vn__conv_is_across(c);
}

static int is_in_vectors(const struct conv *c, const vn_tensor *t)
{
    return vn__in_vectors(t, RANK - 1, 1, 0, vn__conv_rows(c));
}

static int adds_matrix(const struct conv *c)
{
    return c->p.epilogue.residual > VN_SAME_COLUMNS;
}

/* Where pixels of the output follow each other, and so rows of the residual. */
static int residual_in_vectors(const struct conv *c)
{
    const int in_a_row = c->direction != BACKWARD_DATA ||
                         (c->stride[0] == 1 && c->stride[1] == 1 && c->stride[2] == 1);

    return in_a_row && is_in_vectors(c, &c->residual);
}

/* Whether the residual goes through the stages of the operands (cl/tile/staged_residual.h). */
static int is_staged(const struct conv *c)
{
    return adds_matrix(c) && vn_type_bytes(c->residual.type) == 2 && residual_in_vectors(c);
}

/* Whether rows of the output are whole 16-byte vectors, and those of a residual. */
static int in_vectors(const struct conv *c)
{
    const struct conv joined = vn__conv_joined(c);

    return !vn__conv_is_across(c) && is_in_vectors(c, vn__conv_output(&joined)) &&
           (!adds_matrix(c) || residual_in_vectors(&joined));
}

void vn__constants_conv_wgmma(int *out, const void *problem)
{
    const struct conv *c = problem;

    out[0] = (int)c->direction;
    out[1] = is_pixels_major(c) ? 3 : vn__im2col_rank(c);
    take_output(out + 2, c);
    out[4] = in_vectors(c);
}

void vn__constants_conv_wgmma_joined(int *out, const void *problem)
{
    int all[VN_CONSTANTS];

    vn__constants_conv_wgmma(all, problem);
    for (int i = 0; i < 3; i++)
        out[i] = all[i];
}

void vn__constants_conv_window(int *out, const void *problem)
{
    vn__constants_conv_wgmma_joined(out, problem);
    out[3] = in_vectors(problem);
}

/* ---- plans ---------------------------------------------------------------------------- */

static int64_t blk_m(const int *p)
{
    return WARPGROUP_M * p[WARPGROUPS];
}

static int64_t stage_bytes(const int *p)
{
    return ROW * (blk_m(p) + p[BLK_N]);
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

/* What is read and written at least: pixels between the taps are not. */
static double bytes_of(const struct conv *c)
{
    const double missed = c->direction == FORWARD ? (double)vn__elements(&c->x) - vn__conv_met(c) : 0;

    return c->p.bytes - missed * (double)vn_type_bytes(c->p.type);
}

/* What an output costs whose pixels are stored one by one: thousandths of its bytes. */
static double odd_bytes(const struct conv *c, int odd)
{
    const vn_tensor *const out = vn__conv_output(c);
    int64_t strides = out->start, pixels = 1;

    if (!vn__conv_is_across(c) || out->stride[1] == 1)
        return 0;
    for (int d = RANK - 1; d >= 0; d--) {
        if (out->extent[d] > 1 && (d < 2 || out->stride[d] != pixels))
            strides |= out->stride[d];
        pixels *= d < 2 ? 1 : out->extent[d];
    }
    return strides % HALF_VECTOR == 0
         ? 0 : (double)vn__elements(out) * (double)vn_type_bytes(out->type) * odd / 1000;
}

/* Pixels of the largest phase; with PIXELS_MAJOR, of whole boxes. */
static int64_t columns_of(const struct conv *c)
{
    struct im2col seen;

    if (!is_pixels_major(c) || view_of(&seen, c))
        return vn__conv_columns(c);
    return seen.images * seen.count[2];
}

/* Those of a filter that is N-major, as it is in backward data, are made of boxes of 64 channels. */
static const char *fits_boxes(const struct conv *c, const int *p)
{
    return c->direction == BACKWARD_DATA && c->p.type != VN_F32 && p[BLK_N] % BLK_K
         ? "a tile of a filter that is N-major must be made of whole boxes" : NULL;
}

const char *vn__share_conv_tiles(struct vn_plan *out, const struct conv *c, int64_t wanted,
                                 const struct vn_row *row, const struct vn_site *site)
{
    const int *const p = row->p;
    const int64_t blk_k = ROW / (int64_t)vn_type_bytes(c->p.type);
    const int64_t channels = c->direction == FORWARD ? c->w.extent[1] : c->w.extent[0];
    const int64_t slices = VN_CEIL_DIV(channels, blk_k), phases = vn__conv_phases(c);
    const int64_t down = VN_CEIL_DIV(columns_of(c), blk_m(p));
    const int64_t across = VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N]);
    const int64_t units = site->facts->units;
    const double flops = 2.0 * (double)(blk_m(p) * p[BLK_N] * blk_k);   /* of a slice */
    const char *const why = fits_boxes(c, p);
    /* What TMA fills with zeros takes a third of the time. */
    const double narrow = channels > 0 && channels < blk_k
                        ? 1 + (double)(blk_k - channels) / (double)(3 * channels) : 1;
    int64_t most_groups = units * resident(p, site), all, most;
    double loads;

    out->seconds = -1;
    if (why)
        return why;
    out->v[ORDER] = order_of(c, &all, &most);
    most = max_of(1, most * slices);            /* a phase that no tap meets has one, empty */
    out->v[SPAN] = VN_CEIL_DIV(most, wanted);
    out->v[SPLITS] = VN_CEIL_DIV(most, out->v[SPAN]);
    if (!vn__mul(&out->v[TILES], down, across) ||
        !vn__mul(&out->v[TILES], out->v[TILES], phases * out->v[SPLITS]) ||
        out->v[TILES] > INT_MAX / 2)
        return "the output has more than 2^30 tiles";
    most_groups = most_groups < MOST_GROUPS ? most_groups : MOST_GROUPS;
    out->v[GROUPS] = out->v[TILES] < most_groups ? out->v[TILES] : most_groups;

    const struct vn_tiles t = {
        .tiles = (double)out->v[TILES], .bytes = bytes_of(c) + odd_bytes(c, row->cost[VN_ODD_C]),
        .peak = c->p.type == VN_F32 ? site->rates->mma32 : site->rates->mma16, .resident = 1,
        .flops = flops * (double)(all * slices) / (double)(phases * out->v[SPLITS]),
        .longest = flops * (double)out->v[SPAN] };

    out->seconds = vn__tiles_seconds(&t, row, site);
    loads = narrow * (double)(down * across * all * slices * stage_bytes(p)) /
            (site->rates->l2_gbps * 1e6 * row->cost[LOADS]);
    if (out->seconds > 0 && loads > out->seconds)       /* what all tiles read comes from L2 */
        out->seconds = loads;
    return NULL;
}

/* What backward data takes longer: work-groups find its taps and phases first. */
static void add_backward(struct vn_plan *plan, const struct conv *c, int ns)
{
    if (c->direction == BACKWARD_DATA && plan->seconds > 0)
        plan->seconds += ns * 1e-9;
}

const char *vn__plan_conv_wgmma(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                const struct vn_site *site)
{
    const char *const why = vn__share_conv_tiles(out, problem, 1, row, site);

    add_backward(out, problem, row->cost[BACK_NS]);
    return why;
}

/* ---- the launch ------------------------------------------------------------------------ */

/* Whether the producer gives registers to the consumers: as the kernel's text says. */
static int moves_registers(const struct conv *c, const int *p)
{
    return p[BLK_N] * p[WARPGROUPS] * p[TEAMS] == 512 && vn__takes_registers(&c->p.epilogue);
}

static int items_of(const struct vn_choice *it, int teams, int moves)
{
    enum { WARP = 32, WARPGROUP = 128 };

    return WARPGROUP * it->p[WARPGROUPS] * teams + (moves ? WARPGROUP : WARP);
}

/* The phases of each dimension, in that order, four bits each. */
static void phases_of(int64_t phase[DIMS], const struct conv *c, int64_t order)
{
    const int64_t h = vn__conv_phases_along(c, 1), w = vn__conv_phases_along(c, 2);
    uint64_t words[DIMS] = { 0 };

    for (int i = 0; i < vn__conv_phases(c); i++) {
        const int64_t at = (int64_t)((uint64_t)order >> 4 * i & 15);

        words[0] |= (uint64_t)(at / w / h) << 4 * i;
        words[1] |= (uint64_t)(at / w % h) << 4 * i;
        words[2] |= (uint64_t)(at % w) << 4 * i;
    }
    for (int d = 0; d < DIMS; d++)
        phase[d] = (int64_t)words[d];
}

vn_status vn__conv_begin_tiles(struct vn_launch *l, vn_queue *q, const struct conv *c,
                               const struct im2col *seen, int64_t groups, int64_t tiles)
{
    vn_status s;

    vn__arg_int(l, groups);
    vn__arg_int(l, tiles);
    vn__arg_int(l, vn__conv_rows(c));
    vn__arg_int(l, seen->source.extent[1]);
    if ((s = vn__arg_maps(l, q)))
        return s;
    vn__arg_buffer(l, seen->source.buffer);
    vn__arg_buffer(l, seen->filter.buffer);
    return VN_OK;
}

/* raster: of the kernel's schedule; 1 where it has none.  sums: of split-K; or NULL. */
static vn_status launch(vn_queue *q, const struct vn_choice *it, int kernel, int items, int raster,
                        const struct conv *c, const struct vn_plan *plan, vn_buffer *sums)
{
    const struct conv joined = vn__conv_joined(c);
    struct vn_launch l = { .groups = { plan->v[GROUPS], 1, 1 },
                           .items = items };
    struct im2col seen;
    const char *const why = view_of(&seen, c);
    int64_t phase[DIMS];
    vn_status s;

    if (why)
        return vn__fail(VN_UNSUPPORTED, "%s", why);
    if ((s = vn__conv_begin_tiles(&l, q, &joined, &seen, plan->v[GROUPS], plan->v[TILES])))
        return s;
    vn__arg_int(&l, plan->v[SPAN]);
    vn__arg_int(&l, is_staged(&joined));
    vn__conv_arg_alpha(&l, &joined);
    phases_of(phase, c, plan->v[ORDER]);
    vn__arg_im2col_window(&l, &seen, phase, vn__conv_phases(c));
    vn__arg_tiles(&l, VN_CEIL_DIV(seen.images * seen.count[0] * seen.count[1] * seen.count[2], blk_m(it->p)),
                  VN_CEIL_DIV(vn__conv_rows(&joined), it->p[BLK_N]), raster, vn__conv_phases(c));
    vn__arg_im2col_extents(&l, &seen.filter);
    vn__conv_arg_steps(&l, &joined);
    vn__arg_im2col_extents(&l, &seen.source);
    vn__arg_im2col_strides(&l, &seen.source);
    vn__arg_im2col_strides(&l, &seen.filter);
    vn__arg_buffer(&l, sums ? sums : c->w.buffer);
    vn__conv_arg_output(&l, &joined);
    return vn__launch(q, it, kernel, &l);
}

vn_status vn__launch_conv_tiles(vn_queue *q, const struct vn_choice *it, int kernel, const struct conv *c,
                                const struct vn_plan *plan)
{
    const int items = items_of(it, it->p[TEAMS], moves_registers(c, it->p));

    return launch(q, it, kernel, items, it->p[RASTER], c, plan, NULL);
}

vn_status vn__run_conv_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem,
                             const struct vn_plan *plan)
{
    return vn__launch_conv_tiles(q, it, 0, problem, plan);
}

/* ---- split-K ------------------------------------------------------------------------------- */

/* The number of parts that takes the least time. */
const char *vn__plan_conv_wgmma_splitk(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                       const struct vn_site *site)
{
    enum { MOST_SPLITS = 64 };
    const struct conv *c = problem;
    const vn_tensor *const y = vn__conv_output(c);
    const double bytes = (double)vn__elements(y) * sizeof(float);
    struct vn_plan best = { .seconds = -1 };
    int64_t sums;

    for (int64_t wanted = 2, last = 1; wanted <= MOST_SPLITS; wanted++) {
        struct vn_plan plan = { 0 };

        if (vn__share_conv_tiles(&plan, c, wanted, row, site) || plan.v[SPLITS] == last)
            continue;
        last = plan.v[SPLITS];
        plan.seconds += vn__launch_seconds(site) +
                        2 * bytes * (double)last / (site->rates->l2_gbps * 1e9);
        if (best.seconds < 0 || plan.seconds < best.seconds)
            best = plan;
    }
    *out = best;
    if (best.seconds < 0)
        return "its sums are too short to be split";
    if (!vn__mul(&sums, best.v[SPLITS], vn__elements(y)) || sums > INT_MAX / 4) {
        out->seconds = -1;
        return "the partial sums of all splits must stay below 2^29 elements";
    }
    out->workspace = (size_t)sums * sizeof(float);
    return NULL;
}

/* A tensor as a matrix of pixels and channels. */
static vn_tensor matrix_of(const vn_tensor *t, int64_t pixels)
{
    vn_tensor m = *t;

    m.rank = 2;
    m.extent[0] = pixels;
    m.extent[1] = t->extent[1];
    m.stride[0] = t->stride[RANK - 1];
    m.stride[1] = t->stride[1];
    return m;
}

vn_status vn__run_conv_wgmma_splitk(vn_queue *q, const struct vn_choice *it, const void *problem,
                                    const struct vn_plan *plan)
{
    const int items = items_of(it, it->p[TEAMS], 0);
    struct conv joined = *(const struct conv *)problem;
    const int64_t pixels = vn__conv_pixels(vn__conv_output(&joined));
    struct gemm g = { .head = joined.p, .m = pixels, .n = vn__conv_output(&joined)->extent[1], .batches = 1,
                      .alpha = joined.alpha, .beta = joined.beta, .has_bias = joined.has_bias,
                      .activation = joined.activation, .fast = joined.fast };
    vn_buffer *room;
    vn_status s;

    if (!join(&joined))
        return vn__fail(VN_UNSUPPORTED, "pixels of the output do not follow each other");
    if ((s = vn__workspace(&room, q, plan->workspace)) ||
        (s = launch(q, it, 0, items, it->p[RASTER], problem, plan, room)))
        return s;
    g.head.epilogue = it->epilogue;
    g.c = matrix_of(vn__conv_output(&joined), pixels);
    g.residual = matrix_of(&joined.residual, pixels);
    g.bias = matrix_of(&joined.bias, pixels);
    return vn__add_splits(q, it, 1, items, &g, room, 0, plan->v[SPLITS]);
}

/* ---- few channels -------------------------------------------------------------------------- */

enum { H = DIMS - 2, W = DIMS - 1 };

/* Elements of a pixel: whole vectors, or where every second pixel begins a row of taps, half ones. */
static int64_t pixel_elements(const struct conv *c)
{
    const int64_t channels = c->w.extent[1];

    return channels <= 4 && c->stride[W] % 2 == 0 ? 4 : VN_CEIL_DIV(channels, VECTOR) * VECTOR;
}

/* Rows of pixels that are made one: two halves of a vector, where each second row begins a column of taps. */
static int64_t lines_of(const struct conv *c)
{
    return pixel_elements(c) == 4 && c->stride[H] == 2 && c->dilation[H] == 1 &&
           c->w.extent[2 + W] * VECTOR <= BLK_K ? 2 : 1;
}

/* Whether the last of these has a row that no tap meets.  What it holds, infinity among it, must not count:
 * the last tap reads a twin of the image that has zeros there.                                            */
static int has_twins(const struct conv *c)
{
    return lines_of(c) == 2 && c->w.extent[2 + H] % 2 != 0;
}

void vn__constants_conv_wgmma_few(int *out, const void *problem)
{
    take_output(out, problem);
    out[2] = has_twins(problem);
}

static int64_t whole(int64_t n, int64_t of) { return VN_CEIL_DIV(n, of) * of; }

/* The problem whose channels are those that a row of taps reads; *elements: how many it takes, from element
 * `start` on, a multiple of VECTOR.                                                                      */
static struct conv by_rows(const struct conv *c, int64_t start, int64_t *elements)
{
    const int64_t lines = lines_of(c), each = pixel_elements(c) * lines, taps = c->w.extent[2 + W];
    const int64_t rows = VN_CEIL_DIV(c->w.extent[2 + H], lines), out = c->y.extent[2 + W];
    const int64_t height = lines == 1 ? c->x.extent[2 + H] : c->y.extent[2 + H] - 1 + rows;
    const int64_t row = whole(((out - 1) * c->stride[W] + taps) * each, VECTOR);
    const int64_t channels = taps * each, tap_row = whole(channels, VECTOR), filter = tap_row * rows;
    struct conv d = *c;

    d.x.start = start;
    d.x.extent[0] = c->x.extent[0] * (1 + has_twins(c));
    d.x.extent[1] = channels;
    d.x.extent[2 + H] = height;
    d.x.extent[2 + W] = out;
    d.x.stride[0] = row * height;
    d.x.stride[1] = 1;
    d.x.stride[2] = row * height;
    d.x.stride[2 + H] = row;
    d.x.stride[2 + W] = each * c->stride[W];
    d.w.start = start + whole(row * height * d.x.extent[0], VECTOR);
    d.w.extent[1] = channels;
    d.w.extent[2 + H] = rows;
    d.w.extent[2 + W] = 1;
    d.w.stride[0] = filter;
    d.w.stride[1] = 1;
    d.w.stride[2] = filter;
    d.w.stride[2 + H] = tap_row;
    d.w.stride[2 + W] = tap_row;
    d.stride[W] = d.dilation[W] = 1;
    d.pad[W] = 0;
    if (lines == 2) {
        d.stride[H] = 1;
        d.pad[H] = 0;
    }
    *elements = d.w.start - start + filter * c->w.extent[0];
    return d;
}

const char *vn__fits_conv_wgmma_few(const void *problem, const struct vn_facts *f)
{
    enum { MOST_ROW = 256 };
    const struct conv *c = problem;
    int64_t elements;

    if (c->direction != FORWARD || c->groups != 1 || c->is_empty || vn__im2col_rank(c) != 4)
        return "it is for outputs that are images of two dimensions, and no groups";
    if (c->w.extent[1] > MOST_ROW || c->w.extent[2 + W] > MOST_ROW || c->stride[W] > MOST_ROW ||
        c->w.extent[2 + W] * pixel_elements(c) > MOST_ROW || c->dilation[W] != 1)
        return "a row of taps must have at most 256 elements, without gaps";
    if (c->x.extent[0] > INT_MAX / 4 / (1 + has_twins(c)) /
                         (c->x.extent[2 + H] + c->pad[H] + c->w.extent[2 + H] + 1) /
                         ((c->y.extent[2 + W] * c->stride[W] + MOST_ROW) * pixel_elements(c)))
        return "its copy of the source must stay below 2^29 elements";

    const struct conv d = by_rows(c, 0, &elements);

    return vn__fits_conv_wgmma(&d, f);
}

const char *vn__plan_conv_wgmma_few(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                    const struct vn_site *site)
{
    const struct conv *c = problem;
    int64_t elements;
    const struct conv d = by_rows(c, 0, &elements);
    const double moved = 2.0 * ((double)elements + (double)vn__elements(&c->x));
    const char *const why = vn__share_conv_tiles(out, &d, 1, row, site);

    if (out->seconds > 0)
        out->seconds += vn__launch_seconds(site) + vn__move_seconds(moved, row->cost[REPACK], site);
    out->workspace = (size_t)elements * 2;
    return why;
}

static void arg_source(struct vn_launch *l, const vn_tensor *t)
{
    int64_t v[8] = { t->start }, e[8] = { 0 };

    for (int d = 0; d < RANK; d++) {
        v[2 + d] = t->stride[d];
        e[2 + d] = t->extent[d];
    }
    vn__arg_buffer(l, t->buffer);
    vn__arg_view(l, v);
    vn__arg_view(l, e);
}

vn_status vn__run_conv_wgmma_few(vn_queue *q, const struct vn_choice *it, const void *problem,
                                 const struct vn_plan *plan)
{
    enum { ITEMS = 256 };
    const struct conv *c = problem;
    int64_t elements;
    struct conv d = by_rows(c, 0, &elements);
    struct vn_launch l = { .groups = { VN_CEIL_DIV(elements / VECTOR, ITEMS), 1, 1 }, .items = ITEMS };
    vn_buffer *room;
    vn_status s = vn__workspace(&room, q, plan->workspace);

    if (s)
        return s;
    d.x.buffer = d.w.buffer = room;
    arg_source(&l, &c->x);
    arg_source(&l, &c->w);
    vn__arg_buffer(&l, room);
    vn__arg_int(&l, d.x.start / VECTOR);
    vn__arg_int(&l, (d.w.start - d.x.start) / VECTOR);
    vn__arg_int(&l, elements / VECTOR);
    vn__arg_int(&l, pixel_elements(c));
    vn__arg_int(&l, lines_of(c));
    vn__arg_int(&l, d.x.stride[2 + H] / VECTOR);
    vn__arg_int(&l, d.x.extent[2 + H]);
    vn__arg_int(&l, d.w.stride[2 + H] / VECTOR);
    vn__arg_int(&l, d.w.extent[2 + H]);
    vn__arg_int(&l, c->pad[W]);
    vn__arg_int(&l, lines_of(c) == 2 ? c->pad[H] : 0);
    vn__arg_int(&l, has_twins(c));
    if ((s = vn__launch(q, it, 0, &l)))
        return s;
    return vn__launch_conv_tiles(q, it, 1, &d, plan);
}

/* ---- a window of pixels that all taps share ------------------------------------------------ */

enum { TAPS = 3, ROOM };                        /* the other parameters of conv_window */

/* Places of a row of the window; and rows of an image. */
static int64_t window_pitch(const struct im2col *i)
{
    return i->source.extent[2 + W] + vn__im2col_zeros(i, W);
}

static int64_t window_rows(const struct im2col *i)
{
    return i->source.extent[2 + H] + vn__im2col_zeros(i, H);
}

/* *channels: those of the source. */
static const char *fits_window(int64_t *channels, const struct conv *c, const struct vn_facts *f)
{
    enum { MOST_BOX = 256 };
    struct im2col seen;
    const char *why = vn__fits_conv_wgmma_joined(c, f);

    if (why || (why = vn__im2col_of(&seen, c)))
        return why;
    *channels = seen.source.extent[1];
    if (seen.rank != 4 || vn__conv_phases(c) != 1)
        return "it is for images of two dimensions, and strides of 1";
    for (int d = 1; d < DIMS; d++) {
        if (seen.step[d] != 1 || seen.first[d] > 0)
            return "its first tap must not begin behind the first pixel, and strides must be 1";
        if (!vn__conv_taps_along(c, d, 0))
            return "no tap of the filter meets the output";
    }
    if (window_pitch(&seen) > MOST_BOX)
        return "rows of the source with their padding must have at most 256 pixels";
    return seen.images * window_rows(&seen) > VN_CONV_MOST / 2 / window_pitch(&seen)
         ? "images with their padding must stay below 2^30 pixels" : NULL;
}

const char *vn__fits_conv_window(const void *problem, const struct vn_facts *f)
{
    int64_t channels = 0;
    const char *const why = fits_window(&channels, problem, f);

    return why ? why : channels > BLK_K ? "it is for images of at most 64 channels" : NULL;
}

const char *vn__fits_conv_window_blocks(const void *problem, const struct vn_facts *f)
{
    int64_t channels = 0;
    const char *const why = fits_window(&channels, problem, f);

    if (why)
        return why;
    return channels <= BLK_K ? "it is for images of more than 64 channels"
         : vn__conv_taps(problem) == 1 ? "one tap has nothing to share a window with" : NULL;
}

/* Tiles of a row, and whether a stage holds their windows: a sentence if not. */
static const char *window_tiles(int64_t *tiles, const struct conv *c, const int *p)
{
    int64_t pitch, most;
    struct im2col seen;
    const char *const why = vn__im2col_of(&seen, c);

    if (why)
        return why;
    pitch = window_pitch(&seen);
    most = (pitch - 1 + blk_m(p) - 1 + seen.reach[DIMS - 2] * pitch + seen.reach[DIMS - 1]) / pitch + 1;
    *tiles = VN_CEIL_DIV(seen.images * window_rows(&seen) * pitch, blk_m(p));
    return vn__conv_taps(c) > p[TAPS] || most * pitch * 2 * BLK_K > p[ROOM] * 1024
         ? "the filter, or the pixels of a tile and around it, do not fit local memory" : NULL;
}

/* `blocks` of 64 channels are summed, in `tiles`. */
static void estimate_window(struct vn_plan *out, const struct conv *c, int64_t tiles, int64_t blocks,
                            const struct vn_row *row, const struct vn_site *site)
{
    const int *const p = row->p;
    const struct vn_tiles t = {
        .tiles = (double)tiles, .bytes = c->p.bytes, .peak = site->rates->mma16, .resident = 1,
        .flops = 2.0 * (double)blk_m(p) * p[BLK_N] * BLK_K * (double)(blocks * vn__conv_taps(c)) };

    out->seconds = vn__tiles_seconds(&t, row, site);
    add_backward(out, c, row->cost[WINDOW_BACK_NS]);
}

const char *vn__plan_conv_window(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t across = VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N]), units = site->facts->units;
    const int64_t groups = (units < MOST_GROUPS ? units : MOST_GROUPS) / across;
    int64_t tiles;
    const char *const why = window_tiles(&tiles, c, p);

    out->seconds = -1;
    if (why)
        return why;
    if (!groups)
        return "the output has too many channels";
    out->v[ORDER] = 0;
    out->v[TILES] = tiles;
    out->v[GROUPS] = (tiles < groups ? tiles : groups) * across;
    estimate_window(out, c, tiles * across, 1, row, site);
    return NULL;
}

const char *vn__plan_conv_window_blocks(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                        const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t across = VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N]);
    const int64_t units = site->facts->units < MOST_GROUPS ? site->facts->units : MOST_GROUPS;
    int64_t tiles;
    const char *why = window_tiles(&tiles, c, p);

    out->seconds = -1;
    if (why || (why = fits_boxes(c, p)))
        return why;
    if (!vn__mul(&tiles, tiles, across) || tiles > VN_CONV_MOST / 2)
        return "the output has too many tiles";
    out->v[ORDER] = 0;
    out->v[TILES] = tiles / across;
    out->v[GROUPS] = tiles < units ? tiles : units;
    estimate_window(out, c, tiles, VN_CEIL_DIV(vn__conv_depth(c) / vn__conv_taps(c), BLK_K), row, site);
    return NULL;
}

vn_status vn__run_conv_window(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    return launch(q, it, 0, items_of(it, 1, 0), 1, problem, plan, NULL);
}
