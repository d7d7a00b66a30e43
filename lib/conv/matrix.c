/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c - the variants conv_mfma, conv_wmma, conv_dpas: images and their gradients in 16-bit types on the
 * matrix engines of AMD and Intel.
 *
 * As with gemm_mfma and its siblings, a row of parameters names the engine, and the row is used if its kernel
 * builds and a small convolution comes out exactly.
 */
#include <limits.h>
#include <string.h>

#include "gemm/gemm.h"
#include "im2col.h"
#include "repack.h"

enum { BLK_M, BLK_N, BLK_K, WAVE_M, WAVE_N, ENGINE, LANES };    /* their parameters */
enum { TILES };                                 /* of a plan: those of the largest phase */
enum { VECTOR = 8 };                            /* elements that are read together */

/* The image that is read. */
static const vn_tensor *source_of(const struct conv *c)
{
    return c->direction == BACKWARD_DATA ? &c->y : &c->x;
}

/* What is summed for each tap, of one group. */
static int64_t channels_of(const struct conv *c)
{
    return c->direction == BACKWARD_DATA ? c->w.extent[0] / c->groups : c->w.extent[1];
}

/* ---- fits ----------------------------------------------------------------------------- */

/* Whether the last vector of the last pixel, or tap, ends in the buffer.  That of a copy that is planned is
 * not known; there it does. */
static int ends_inside(const vn_tensor *t)
{
    int64_t end = t->start + VN_CEIL_DIV(t->extent[1], VECTOR) * VECTOR;

    for (int d = 0; d < RANK; d++)
        end += d == 1 ? 0 : (t->extent[d] - 1) * t->stride[d];
    return !t->buffer || end <= (int64_t)(t->buffer->bytes / vn_type_bytes(t->type));
}

static const char *fits(const struct conv *c)
{
    enum { MOST = 1 << 30 };
    const int64_t channels = VN_CEIL_DIV(channels_of(c), VECTOR) * VECTOR, taps = vn__conv_taps(c);

    if (c->p.type != VN_F16 && c->p.type != VN_BF16)
        return "it needs f16 or bf16";
    if (c->direction == BACKWARD_FILTER)
        return "it is for outputs that are images";
    if (c->is_empty)
        return "there is nothing to multiply";
    if (c->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (!vn__conv_is_rows(source_of(c)) || !vn__conv_is_rows(&c->w))
        return "channels must be contiguous, and pixels begin at multiples of 16 bytes: NHWC";
    if (!ends_inside(source_of(c)) || !ends_inside(&c->w))
        return "the buffer ends before the last vector of 8 channels does";
    if (c->groups > 1 && channels_of(c) % VECTOR)
        return "each group must have a multiple of 8 channels that are summed";
    if (vn__conv_columns(c) > MOST || vn__conv_rows(c) > MOST || channels > MOST / taps ||
        vn__conv_phases(c) > MOST || c->groups > MOST)
        return "its rows, columns and sums must stay below 2^30";
    for (int d = 0; d < DIMS; d++)              /* coordinates, also in the padding */
        if (c->pad[d] > MOST / 4 || c->x.extent[2 + d] > MOST / 4 || c->y.extent[2 + d] > MOST / 4 ||
            c->stride[d] > MOST / 4 || c->dilation[d] * (c->w.extent[2 + d] - 1) > MOST / 4)
            return "images with their padding must stay below 2^28 pixels along each dimension";
    return NULL;
}

#define FITS(engine, name)                                                                                   \
    const char *vn__fits_conv_##engine(const void *problem, const struct vn_facts *f)                        \
    {                                                                                                        \
        const char *const why = vn__lacks_engine(f, name, ((const struct conv *)problem)->p.type);           \
                                                                                                             \
        return why ? why : fits(problem);                                                                    \
    }
FITS(mfma, "MFMA")
FITS(wmma, "WMMA")
FITS(dpas, "DPAS")

void vn__constants_conv_matrix(int *out, const void *problem)
{
    const struct conv *c = problem;

    out[0] = (int)c->direction;
    out[1] = vn__im2col_rank(c);
    out[2] = channels_of(c) % VECTOR != 0;
}

/* ---- plans and launches ---------------------------------------------------------------- */

static int items_of(const int *p)
{
    return p[BLK_M] / p[WAVE_M] * (p[BLK_N] / p[WAVE_N]) * p[LANES];
}

/* Each tap belongs to one phase: the phases share them. */
const char *vn__plan_conv_matrix(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                 const struct vn_site *site)
{
    const struct conv *c = problem;
    const int *const p = row->p;
    const int64_t depth = VN_CEIL_DIV(channels_of(c), VECTOR) * VECTOR * vn__conv_taps(c);
    const int64_t phases = vn__conv_phases(c);
    const int64_t slices = VN_CEIL_DIV(VN_CEIL_DIV(depth, phases), p[BLK_K]);
    int64_t all;

    if (!vn__mul(&out->v[TILES], VN_CEIL_DIV(vn__conv_columns(c), p[BLK_M]),
                 VN_CEIL_DIV(vn__conv_rows(c), p[BLK_N])) ||
        !vn__mul(&all, out->v[TILES], phases) || !vn__mul(&all, all, c->groups) || all > INT_MAX / 2) {
        out->seconds = -1;
        return "the output has more than 2^30 tiles";
    }

    const struct vn_tiles t = {
        .tiles = (double)all, .bytes = c->p.bytes, .peak = site->rates->mma16,
        .flops = 2.0 * p[BLK_M] * p[BLK_N] * (double)(slices * p[BLK_K]),
        .resident = vn__resident(items_of(p)) };

    out->seconds = vn__tiles_seconds(&t, row, site);
    return NULL;
}

vn_status vn__run_conv_matrix(vn_queue *q, const struct vn_choice *it, const void *problem,
                              const struct vn_plan *plan)
{
    const struct conv *c = problem;
    struct vn_launch l = { .groups = { plan->v[TILES], vn__conv_phases(c), c->groups },
                           .items = items_of(it->p) };

    vn__conv_arg_problem(&l, c);
    return vn__launch(q, it, 0, &l);
}
