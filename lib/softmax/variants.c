/* SPDX-License-Identifier: Apache-2.0
 *
 * variants.c - the variants of softmax and its gradient, in the order in which they are tried.
 */
#include <string.h>

#include "softmax.h"
#include "vendors/vendor.h"

/* ---- fits, pays ---------------------------------------------------------------- */

enum { LONG_ROW = 16384 };        /* elements from which sharing out a row pays for a second pass */

/* Each way is two variants of one name: kernels are built for one direction. */
static const char *is_forward(const void *problem, const struct vn_facts *f)
{
    const struct softmax *s = problem;

    (void)f;
    return s->backward ? "it goes forward" : NULL;
}

static const char *is_backward(const void *problem, const struct vn_facts *f)
{
    const struct softmax *s = problem;

    (void)f;
    return s->backward ? NULL : "it goes backward";
}

static const char *is_cpu(const struct vn_facts *f)
{
    return strcmp(f->family, "cpu") ? "the device is no CPU"
         : f->vector < 2 ? "the device does not ask for explicit vectors" : NULL;
}

static const char *is_cpu_forward(const void *problem, const struct vn_facts *f)
{
    const char *why = is_cpu(f);

    return why ? why : is_forward(problem, f);
}

static const char *is_cpu_backward(const void *problem, const struct vn_facts *f)
{
    const char *why = is_cpu(f);

    return why ? why : is_backward(problem, f);
}

/* A CPU keeps exponentials in y, which parts cannot: they compute each one twice. */
static const char *pays_cpu_split(const void *problem, const struct vn_facts *f)
{
    const struct softmax *s = problem;

    return s->n < 4 * LONG_ROW ? "its rows are too short to share out"
         : 2 * s->rows >= f->units ? "its rows occupy half the cores or more" : NULL;
}

static const char *pays_split(const void *problem, const struct vn_facts *f)
{
    const struct softmax *s = problem;

    return s->n < LONG_ROW ? "its rows are too short to share out"
         : s->rows >= 4 * (int64_t)f->units ? "its rows are enough to fill the device" : NULL;
}

static const char *pays_strided(const void *problem, const struct vn_facts *f)
{
    const struct softmax *s = problem;

    (void)f;
    return s->across ? NULL : "its rows do not lie side by side";
}

/* ---- the table ------------------------------------------------------------------ */

#define GPU_TEXTS "cl/tile/epilogue.h cl/softmax/softmax.h cl/softmax/rows.cl"
#define CPU_TEXTS "cl/tile/epilogue.h cl/softmax/softmax.h cl/softmax/cpu.cl"

#define SPLIT(yes)   "#define SPLIT " #yes "\n"
#define ACROSS(yes)  "#define ACROSS " #yes "\n"

/* The last arguments: the rest of the #defines, then the rest of the members. */
#define WAY(given_name, forward, backward, ...)                                                          \
    { .name = given_name, .fits = forward,  .defines = "#define BACKWARD 0\n" __VA_ARGS__ },              \
    { .name = given_name, .fits = backward, .defines = "#define BACKWARD 1\n" __VA_ARGS__ }

/* Tried from the top; the first that fits is used. */
const struct vn_variant vn__softmax_variants[] = {
    VN_CUDNN_SOFTMAX
    WAY("softmax_cpu_split", is_cpu_forward, is_cpu_backward, SPLIT(1),
        .pays = pays_cpu_split, .run = vn__run_softmax_cpu_split, .workspace = vn__workspace_softmax_cpu_split,
        .texts = CPU_TEXTS, .entries = "partial finish", .params = "VEC BLOCK"),
    WAY("softmax_cpu", is_cpu_forward, is_cpu_backward, SPLIT(0),
        .run = vn__run_softmax_cpu,
        .texts = CPU_TEXTS, .entries = "softmax", .params = "VEC BLOCK"),
    WAY("softmax_split", is_forward, is_backward, SPLIT(1) ACROSS(0) "#define ROW_ITEMS ITEMS\n",
        .pays = pays_split, .run = vn__run_softmax_split, .workspace = vn__workspace_softmax_split,
        .texts = GPU_TEXTS, .entries = "partial finish", .params = "ITEMS VALUES"),
    WAY("softmax_strided", is_forward, is_backward, SPLIT(0) ACROSS(1),
        .pays = pays_strided, .run = vn__run_softmax,
        .texts = GPU_TEXTS, .entries = "softmax", .params = "ITEMS ROW_ITEMS VALUES"),
    WAY("softmax", is_forward, is_backward, SPLIT(0) ACROSS(0),
        .run = vn__run_softmax,
        .texts = GPU_TEXTS, .entries = "softmax", .params = "ITEMS ROW_ITEMS VALUES"),
    { 0 }
};
