/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of convolution and its two gradients, in the order in which they are tried.
 */
#include <string.h>

#include "conv.h"
#include "vendors/vendor.h"

/* ---- fits -------------------------------------------------------------------- */

static const char *fits_direction(const struct conv *c, enum direction d)
{
    static const char *const why[] = {
        "this row of it goes forward", "this row of it makes the gradient of the data",
        "this row of it makes the gradient of the filter" };

    if (vn__conv_rows(c) > VN_CONV_MOST || vn__conv_columns(c) > VN_CONV_MOST ||
        vn__conv_phases(c) > VN_CONV_MOST / (vn__conv_columns(c) / 8 + 1) ||
        vn__conv_depth(c) > VN_CONV_MOST || c->groups > VN_CONV_MOST)
        return "its rows, columns and sums must stay below 2^31";
    return c->direction == d ? NULL : why[d];
}

static const char *fits_cpu(const struct conv *c, const struct vn_facts *f, enum direction d)
{
    if (strcmp(f->family, "cpu"))
        return "the device is no CPU";
    if (f->vector < 2)
        return "the device does not ask for explicit vectors";
    if (f->local_bytes < 256 << 10)
        return "the device has less than 256 KiB of local memory";
    if (c->math == VN_MATH_BITWISE)
        return "bitwise mathematics needs the order of sums of conv";
    return fits_direction(c, d);
}

static const char *fits_depthwise(const struct conv *c, const struct vn_facts *f, enum direction d)
{
    if (c->w.extent[0] != c->groups || c->w.extent[1] != 1 || c->groups == 1)
        return "each channel needs a filter of its own";
    return fits_cpu(c, f, d);
}

#define FITS(name, fits, d) \
    static const char *name(const void *problem, const struct vn_facts *f) { return fits(problem, f, d); }

static const char *fits_any(const struct conv *c, const struct vn_facts *f, enum direction d)
{
    (void)f;
    return fits_direction(c, d);
}

FITS(fits_forward,    fits_any, FORWARD)
FITS(fits_data,       fits_any, BACKWARD_DATA)
FITS(fits_filter,     fits_any, BACKWARD_FILTER)
FITS(fits_depthwise_forward, fits_depthwise, FORWARD)
FITS(fits_depthwise_data,    fits_depthwise, BACKWARD_DATA)
FITS(fits_cpu_forward, fits_cpu, FORWARD)
FITS(fits_cpu_data,    fits_cpu, BACKWARD_DATA)
FITS(fits_cpu_filter,  fits_cpu, BACKWARD_FILTER)

/* ---- the table ---------------------------------------------------------------------------- */

#define TILED(fits_it, direction) \
    { .name = "conv", .fits = fits_it, .run = vn__run_conv_tiled, \
      .texts = "cl/tile/epilogue.h cl/conv/conv.h cl/tile/fma.h cl/conv/tiled.cl", \
      .entries = "conv", .params = "BLK_M BLK_N BLK_K THR_M THR_N", .defines = "#define DIRECTION " direction "\n" }
#define CPU(variant, fits_it, run_it, workspace_of, entry_list, direction, depthwise) \
    { .name = variant, .fits = fits_it, .run = run_it, .workspace = workspace_of, \
      .texts = "cl/tile/epilogue.h cl/conv/conv.h cl/tile/cpu.h cl/conv/cpu.cl", .entries = entry_list, \
      .params = "THR_M THR_V VEC BLK_M BLK_K", \
      .defines = "#define DIRECTION " direction "\n#define DEPTHWISE " depthwise "\n" }

/* Tried from the top; the first that fits is used.  One name stands for three directions. */
const struct vn_variant vn__conv_variants[] = {
    VN_CUDNN_CONV
    CPU("conv_depthwise", fits_depthwise_forward, vn__run_conv_depthwise, NULL, "conv_cpu", "0", "1"),
    CPU("conv_depthwise", fits_depthwise_data,    vn__run_conv_depthwise, NULL, "conv_cpu", "1", "1"),
    CPU("conv_cpu", fits_cpu_forward, vn__run_conv_cpu,        NULL,          "conv_cpu",          "0", "0"),
    CPU("conv_cpu", fits_cpu_data,    vn__run_conv_cpu,        NULL,          "conv_cpu",          "1", "0"),
    CPU("conv_cpu", fits_cpu_filter,  vn__run_conv_cpu_filter, vn__workspace_conv_cpu,
        "conv_cpu conv_sum", "2", "0"),
    TILED(fits_forward, "0"),
    TILED(fits_data,    "1"),
    TILED(fits_filter,  "2"),
    { .name = NULL }
};
