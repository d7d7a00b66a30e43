/* SPDX-License-Identifier: Apache-2.0
 *
 * test_costs.c - the estimates of plans on made-up devices, by the shipped rows: what makes a product slower
 * makes its estimate longer, and what does not, does not; which convolutions are left to which kernel; that
 * convolution on CPUs has tasks for all of their units; that convolutions of nothing have plans; and that
 * attention on mma.sync is what GPUs without wgmma use, and no other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/attention.h"
#include "conv/slab.h"
#include "core.h"
#include "gemm/gemm.h"

static int cases, failures;

static vn_tensor in_batch(vn_tensor t, int batches)
{
    const int64_t size = t.extent[0] * t.extent[1];

    if (batches > 1) {
        memmove(t.extent + 1, t.extent, 2 * sizeof *t.extent);
        memmove(t.stride + 1, t.stride, 2 * sizeof *t.stride);
        t.extent[0] = batches;
        t.stride[0] = size;
        t.rank = 3;
    }
    return t;
}

/* In microseconds, of the variant's first row; A and B transposed as BLAS has it. */
static double estimate_batch(const char *variant, vn_type type, int m, int n, int k, const char *trans,
                             int batches)
{
    static struct vn_backend backend = { .name = "opencl" };
    static vn_device device = {
        .facts = { .family = "nvidia", .arch = "sm_90", .name = "NVIDIA H100 80GB", .units = 132,
                   .items = 1024, .types = 15, .local_bytes = 232448 } };
    static vn_queue queue = { .workspace_limit = (size_t)1 << 40 };
    static vn_buffer buffer = { .bytes = (size_t)1 << 32 };
    const struct vn_variant *v = vn__gemm_variants;
    struct gemm g = { .head = { .op = "gemm", .type = type }, .m = m, .n = n, .k = k, .batches = batches,
                      .alpha = 1 };
    struct vn_row row[VN_ROWS];
    struct vn_rates rates;
    struct vn_plan plan = { 0 };
    const struct vn_site site = { &device.facts, &rates, &queue, 0 };
    int count;

    queue.device = buffer.device = &device;
    device.backend = &backend;
    g.a = trans[0] == 't' ? vn_transpose(vn_matrix(&buffer, type, k, m)) : vn_matrix(&buffer, type, m, k);
    g.b = trans[1] == 't' ? vn_transpose(vn_matrix(&buffer, type, n, k)) : vn_matrix(&buffer, type, k, n);
    g.c = vn_matrix(&buffer, type, m, n);
    g.a = in_batch(g.a, batches);
    g.b = in_batch(g.b, batches);
    g.c = in_batch(g.c, batches);
    vn__gemm_size_up(&g);
    while (v->name && !vn__is_named(v, variant))
        v++;
    if (!v->name || v->fits(&g, &device.facts) || vn__tune_rates(&rates, &device) ||
        vn__tune_find(row, &count, &device, v, type, g.head.bucket) || v->plan(&plan, &g, row, &site))
        return 0;
    return plan.seconds * 1e6;
}

static double estimate(const char *variant, vn_type type, int m, int n, int k, const char *trans)
{
    return estimate_batch(variant, type, m, n, k, trans, 1);
}

/* One takes `least` to `most` times as long as the other. */
static void compare(double one, double other, double least, double most, const char *what)
{
    const int good = one > 0 && other > 0 && one >= least * other && one <= most * other;

    cases++;
    failures += !good;
    if (!good)
        printf("FAIL costs: %s: %g and %g us\n", what, one, other);
}

/* ---- convolutions --------------------------------------------------------------------- */

struct shape { int images, channels, size, filters, taps, stride, groups; };

static vn_tensor nhwc(vn_buffer *b, vn_type type, int images, int channels, int size)
{
    vn_tensor t = { .buffer = b, .type = type, .rank = RANK,
                    .extent = { images, channels, 1, size, size },
                    .stride = { (int64_t)size * size * channels, 1, (int64_t)size * size * channels,
                                (int64_t)size * channels, channels } };

    return t;
}

/* The variant that would be chosen; *fits: whether the other one could be. */
static const char *chosen_in(vn_type type, const char *arch, const char *name, const struct shape *s,
                             enum direction direction, const char *other, int *fits)
{
    static struct vn_backend backend = { .name = "opencl" };
    vn_device device = { .facts = { .family = "nvidia", .units = 132, .items = 1024, .types = 15,
                                    .local_bytes = 160 << 10 }, .backend = &backend };
    vn_queue queue = { .workspace_limit = (size_t)1 << 40, .device = &device };
    vn_buffer buffer = { .bytes = (size_t)1 << 40, .device = &device };
    const int pad = s->taps / 2, out = (s->size + 2 * pad - s->taps) / s->stride + 1;
    struct conv c = { .p = { .op = "conv", .type = type }, .direction = direction, .alpha = 1,
                      .groups = s->groups, .x = nhwc(&buffer, type, s->images, s->channels, s->size),
                      .w = nhwc(&buffer, type, s->filters, s->channels / s->groups, s->taps),
                      .y = nhwc(&buffer, type, s->images, s->filters, out) };
    struct vn_candidate *list;
    const char *variant = "none";
    int count, best;

    strcpy(device.facts.arch, arch);
    strcpy(device.facts.name, name);
    for (int d = 0; d < DIMS; d++) {
        c.dilation[d] = 1;
        c.stride[d] = d ? s->stride : 1;
        c.pad[d] = d ? pad : 0;
    }
    c.residual = *vn__conv_output(&c);
    vn__conv_settle(&c);
    *fits = 0;
    if (vn__candidates(&list, &count, &queue, vn__conv_variants, &c, NULL, 0))
        return variant;
    best = vn__cheapest(list, count, 0);
    variant = best < 0 ? variant : list[best].variant->name;
    for (int i = 0; i < count; i++)
        *fits |= !strcmp(list[i].variant->name, other) && !list[i].unfit;
    free(list);
    vn__choices_close(&device);
    return variant;
}

static const char *chosen(const char *arch, const char *name, const struct shape *s, enum direction direction,
                          const char *other, int *fits)
{
    return chosen_in(VN_F16, arch, name, s, direction, other, fits);
}

/* Of few channels, blocks of channels would be zeros for the most part. */
static void few_channels(void)
{
    static const struct { struct shape s; vn_type type; const char *arch, *variant; enum direction d; }
    expected[] = {
        { { 32, 1, 161, 32, 5, 2, 1 },  VN_F32, "sm_90", "conv_shallow", FORWARD },
        { { 1, 1, 161, 64, 5, 2, 1 },   VN_F32, "sm_90", "conv_shallow", FORWARD },
        { { 8, 3, 224, 64, 3, 1, 1 },   VN_F32, "sm_90", "conv_shallow", FORWARD },
        { { 8, 3, 224, 64, 3, 1, 1 },   VN_F32, "sm_80", "conv_shallow", FORWARD },
        { { 32, 1, 161, 32, 5, 2, 1 },  VN_F16, "sm_90", "conv_shallow_mma", FORWARD },
        { { 1, 3, 224, 64, 3, 1, 1 },   VN_F16, "sm_90", "conv_shallow_mma", FORWARD },
        { { 8, 3, 224, 64, 3, 1, 1 },   VN_F16, "sm_80", "conv_shallow_mma", FORWARD },
        { { 64, 3, 224, 64, 7, 2, 1 },  VN_F16, "sm_90", "conv_shallow_wgmma", FORWARD },
        { { 1, 3, 224, 64, 7, 2, 1 },   VN_F16, "sm_90", "conv_shallow_wgmma_filter", BACKWARD_FILTER },
        { { 64, 3, 224, 64, 7, 2, 1 },  VN_F16, "sm_90", "conv_shallow_wgmma_filter", BACKWARD_FILTER },
        { { 16, 3, 224, 64, 3, 1, 1 },  VN_BF16, "sm_90", "conv_shallow_wgmma_filter", BACKWARD_FILTER },
        { { 8, 16, 56, 64, 3, 1, 1 },   VN_F32, "sm_90", "conv_bf16x3", FORWARD },
    };
    int fits;

    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const char *const v = chosen_in(expected[i].type, expected[i].arch, "NVIDIA H100 80GB",
                                        &expected[i].s, expected[i].d, expected[i].variant, &fits);

        cases++;
        failures += strcmp(v, expected[i].variant) != 0;
        if (strcmp(v, expected[i].variant))
            printf("FAIL costs: few channels, case %zu: %s is chosen, not %s\n", i, v, expected[i].variant);
    }
}

/* Convolutions without pixels, channels, filters or images have a plan on each device.  No OpenCL is loaded
 * here: PoCL before 5.0 takes the signal of a division by zero.                                          */
static void empty(const char *family, const char *arch, vn_type type, enum direction direction, int zero)
{
    enum { IMAGES, CHANNELS, HEIGHT, FILTERS, ROWS, EXTENTS };
    static struct vn_backend backend = { .name = "opencl" };
    vn_device device = { .facts = { .units = 8, .items = 1024, .types = 15, .vector = 64,
                                    .local_bytes = 1 << 20 },
                         .backend = &backend };
    vn_queue queue = { .workspace_limit = (size_t)1 << 40, .device = &device };
    vn_buffer buffer = { .bytes = (size_t)1 << 30, .device = &device };
    int e[EXTENTS] = { 2, 3, 5, 40, 3 };
    struct conv c = { .p = { .op = "conv", .type = type }, .direction = direction, .alpha = 1, .groups = 1,
                      .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 }, .is_empty = 1 };
    vn_tensor *const all[] = { &c.x, &c.w, &c.y };
    struct vn_candidate *list;
    int count, is_planned = 0;

    strcpy(device.facts.family, family);
    strcpy(device.facts.arch, arch);
    e[zero] = 0;
    c.x = nhwc(&buffer, type, e[IMAGES], e[CHANNELS], e[HEIGHT]);
    c.w = nhwc(&buffer, type, e[FILTERS], e[CHANNELS], 3);
    c.y = nhwc(&buffer, type, e[IMAGES], e[FILTERS], e[ROWS]);
    for (int i = 0; i < 3; i++)
        if (vn__elements(all[i]) == 0)
            all[i]->buffer = NULL;
    c.residual = *vn__conv_output(&c);
    if (!c.residual.buffer)                     /* the call returns before */
        return;
    vn__conv_settle(&c);
    if (vn__candidates(&list, &count, &queue, vn__conv_variants, &c, NULL, 0) == VN_OK) {
        is_planned = vn__cheapest(list, count, 0) >= 0;
        free(list);
    }
    cases++;
    failures += !is_planned;
    if (!is_planned)
        printf("FAIL costs: nothing for %s/%s, type %d, direction %d, extent %d of zero\n", family, arch,
               (int)type, (int)direction, zero);
}

static void empties(void)
{
    static const char *const devices[][2] = { { "cpu", "f32x16" }, { "cpu", "f32x8" }, { "nvidia", "sm_90" },
                                              { "nvidia", "sm_80" }, { "amd", "gfx942" }, { "intel", "xe" } };

    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (int type = 0; type < VN_TYPE_COUNT; type++)
            for (int direction = FORWARD; direction <= BACKWARD_FILTER; direction++)
                for (int zero = 0; zero < 5; zero++)
                    empty(devices[d][0], devices[d][1], (vn_type)type, (enum direction)direction, zero);
}

static void choices(void)
{
    static const struct shape plain[] = {
        { 64, 64, 56, 64, 3, 1, 1 },   { 1, 64, 56, 64, 3, 1, 1 },   { 64, 128, 56, 128, 3, 2, 1 },
        { 1, 512, 7, 512, 3, 1, 1 },   { 16, 8, 112, 16, 5, 1, 1 },  { 64, 8, 224, 8, 3, 1, 1 },
        { 1, 8, 9, 8, 3, 1, 1 },       { 4, 24, 33, 40, 3, 2, 1 },   { 64, 256, 56, 512, 1, 2, 1 },
        { 256, 16, 28, 16, 7, 1, 1 },  { 2, 1024, 14, 8, 3, 1, 1 },
    };
    static const struct shape grouped[] = {
        { 64, 256, 56, 256, 3, 1, 32 }, { 1, 1024, 14, 1024, 3, 1, 32 }, { 32, 64, 28, 128, 3, 2, 2 },
    };
    static const char *const gpus[2][2] = { { "sm_90", "NVIDIA H100 80GB" }, { "sm_80", "NVIDIA A100" } };
    static const char *const mine[] = { "conv_mma", "conv_mma", "conv_mma_filter" };
    static const char *const wgmma[] = { "conv_wgmma", "conv_wgmma", "conv_wgmma_filter" };
    int fits;

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        for (int d = FORWARD; d <= BACKWARD_FILTER; d++) {
            const char *const v = chosen("sm_90", "NVIDIA H100 80GB", &plain[i], (enum direction)d, wgmma[d],
                                         &fits);
            const int good = fits && strcmp(v, mine[d]);

            cases++;
            failures += !good;
            if (!good)
                printf("FAIL costs: sm_90, shape %zu, direction %d: %s is chosen, %s %s\n", i, d, v, wgmma[d],
                       fits ? "fits" : "does not fit");
        }
    for (int gpu = 0; gpu < 2; gpu++)           /* on sm_80 without groups, too */
        for (size_t i = 0; i < sizeof grouped / sizeof grouped[0]; i++)
            for (int d = FORWARD; d <= BACKWARD_FILTER; d++) {
                const char *const v = chosen(gpus[gpu][0], gpus[gpu][1],
                                             gpu && i == 0 ? &plain[0] : &grouped[i], (enum direction)d,
                                             mine[d], &fits);

                cases++;
                failures += strcmp(v, mine[d]) != 0;
                if (strcmp(v, mine[d]))
                    printf("FAIL costs: %s, shape %zu, direction %d: %s is chosen, not %s\n", gpus[gpu][0], i,
                           d, v, mine[d]);
            }
}

/* ---- tasks of conv_slab on CPUs ------------------------------------------------------------ */

static vn_tensor nchw(vn_buffer *b, int images, int channels, int size)
{
    const int64_t pixels = (int64_t)size * size;
    vn_tensor t = { .buffer = b, .type = VN_F32, .rank = RANK,
                    .extent = { images, channels, 1, size, size },
                    .stride = { channels * pixels, pixels, pixels, size, 1 } };

    return t;
}

/* The plan of a variant for a CPU of so many units, which has 2 MiB of local memory; 0: there is none. */
static int plan_on_cpu(struct vn_plan *out, struct conv *c, int p[VN_PARAMS], const char *variant,
                       const struct shape *s, enum direction direction, int units)
{
    static struct vn_backend backend = { .name = "opencl" };
    static vn_device device;
    static vn_queue queue = { .workspace_limit = (size_t)1 << 40, .device = &device };
    static vn_buffer buffer = { .bytes = (size_t)1 << 40, .device = &device };
    const struct vn_site site = { &device.facts, NULL, &queue, 0 };
    const struct vn_variant *v = vn__conv_variants;
    const int pad = s->taps / 2, size = (s->size + 2 * pad - s->taps) / s->stride + 1;
    struct vn_row row[VN_ROWS];
    int count;

    device = (vn_device){ .facts = { .family = "cpu", .arch = "f32x16", .name = "a CPU", .vector = 16,
                                     .items = 4096, .types = 15, .local_bytes = 2 << 20 },
                          .backend = &backend };
    device.facts.units = units;
    *c = (struct conv){ .p = { .op = "conv", .type = VN_F32 }, .direction = direction, .alpha = 1,
                        .groups = 1, .x = nchw(&buffer, s->images, s->channels, s->size),
                        .w = nchw(&buffer, s->filters, s->channels, s->taps),
                        .y = nchw(&buffer, s->images, s->filters, size), .to_pack = 1 };
    for (int d = 0; d < DIMS; d++) {
        c->dilation[d] = 1;
        c->stride[d] = d ? s->stride : 1;
        c->pad[d] = d ? pad : 0;
    }
    c->w.extent[2] = 1;
    c->residual = *vn__conv_output(c);
    vn__conv_settle(c);
    while (v->name && strcmp(v->name, variant))
        v++;
    *out = (struct vn_plan){ 0 };
    if (!v->name || v->fits(c, &device.facts) ||
        vn__tune_find(row, &count, &device, v, VN_F32, c->p.bucket) || v->plan(out, c, row, &site))
        return 0;
    memcpy(p, row->p, sizeof row->p);
    return 1;
}

/* How much longer the tasks take than if all units had the same to do: each takes the next task. Of phases
 * that have a tap, all are said to have as many. */
static double imbalance(const struct conv *c, const struct vn_plan *plan, const int *p, int units)
{
    const struct vn_reach reach[DIMS] = VN_REACHES(c);
    const int64_t vectors = VN_CEIL_DIV(vn__conv_rows(c), p[VN_SLAB_VEC]);
    const int64_t panels = VN_CEIL_DIV(vectors, p[VN_SLAB_THR_V]), each = plan->v[VN_SLAB_PANELS];
    double busy[64] = { 0 }, sum = 0, last = 0;
    struct vn_boxes boxes;
    int phases = 1;

    for (int d = 0; d < DIMS; d++)
        phases *= (int)(c->w.extent[2 + d] < vn__conv_tap_step(c, d) ? c->w.extent[2 + d]
                                                                     : vn__conv_tap_step(c, d));
    vn__cut_box(&boxes, vn__conv_output(c)->extent[0], reach, plan->v[VN_SLAB_PIXELS]);
    for (int64_t range = 0; range * each < panels; range++)
    for (int64_t n = 0; n < boxes.count[0]; n++)
    for (int64_t h = 0; h < boxes.count[2]; h++)
    for (int64_t w = 0; w < boxes.count[3]; w++)
    for (int phase = 0; phase < phases; phase++) {
        const int64_t own = panels - range * each, at[] = { n, 0, h, w };
        double work = (double)(own < each ? own : each);
        int unit = 0;

        for (int i = 0; i <= DIMS; i++) {
            const int64_t all = i ? reach[i - 1].extent : vn__conv_output(c)->extent[0];
            const int64_t rest = all - at[i] * boxes.box[i];

            work *= (double)(rest < boxes.box[i] ? rest : boxes.box[i]);
        }
        for (int i = 1; i < units; i++)
            unit = busy[i] < busy[unit] ? i : unit;
        sum += work;
        busy[unit] += work;
        last = busy[unit] > last ? busy[unit] : last;
    }
    return last * units / sum;
}

static void share_tasks(void)
{
    static const struct shape shapes[] = {
        { 1, 64, 56, 64, 3, 1, 1 },    { 1, 256, 56, 512, 1, 2, 1 },  { 1, 512, 28, 1024, 1, 2, 1 },
        { 1, 1024, 14, 2048, 1, 2, 1 }, { 1, 512, 14, 512, 3, 2, 1 }, { 1, 512, 7, 2048, 1, 1, 1 },
        { 1, 2048, 7, 512, 1, 1, 1 },  { 1, 512, 7, 512, 3, 1, 1 },   { 16, 512, 7, 512, 3, 1, 1 },
    };
    static const int units[] = { 1, 2, 4, 8, 16, 64 };

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++)
    for (int d = FORWARD; d <= BACKWARD_FILTER; d++) {
        const int is_filter = d == BACKWARD_FILTER, n = units[u];
        int p[VN_PARAMS] = { 0 };
        struct vn_plan plan;
        struct conv c;
        double over = 1e9;

        if (!plan_on_cpu(&plan, &c, p, is_filter ? "conv_slab_filter" : "conv_slab_packed", &shapes[i],
                         (enum direction)d, n))
            ;
        else if (is_filter) {
            const int64_t panels = VN_CEIL_DIV(shapes[i].filters, p[VN_SLAB_THR_V] * p[VN_SLAB_VEC]);
            const int64_t tasks = VN_CEIL_DIV(panels, plan.v[VN_SLAB_PANELS]) * plan.v[VN_SLAB_SPLITS] *
                                  VN_CEIL_DIV(shapes[i].channels, plan.v[VN_SLAB_CHANNELS]);

            over = (double)n * (double)VN_CEIL_DIV(tasks, n) / (double)tasks;
        } else
            over = imbalance(&c, &plan, p, n);
        cases++;
        failures += over > (n < 64 ? 1.4 : 2);
        if (over > (n < 64 ? 1.4 : 2))
            printf("FAIL costs: shape %zu, direction %d: on %d units tasks take %g times as long as shared "
                   "evenly\n", i, d, n, over);
    }
}

/* ---- attention ------------------------------------------------------------------------ */

/* In microseconds, of the variant's cheapest row; 0: it does not fit, or no row pays. */
static double attention_estimate(const char *variant, vn_device *device, int64_t heads, int64_t queries,
                                 int64_t keys, int64_t d, int causal)
{
    static vn_queue queue = { .workspace_limit = (size_t)1 << 40 };
    const int64_t rows[] = { [Q] = queries, [K] = keys, [V] = keys, [OUT] = queries };
    const struct vn_variant *v = vn__attention_variants;
    struct attention a = { .head = { .op = "attention", .type = VN_F16, .bucket = VN_LARGE }, .batches = 1,
                           .heads = heads, .group = 1, .queries = queries, .keys = keys, .d = d, .dv = d,
                           .offset = causal ? keys - queries : 0, .causal = causal, .last = causal,
                           .scale = 0.125, .units = device->facts.units };
    struct vn_row row[VN_ROWS];
    struct vn_rates rates;
    double best = 0;
    int count;

    queue.device = device;
    for (int i = Q; i <= OUT; i++)
        a.t[i] = (vn_tensor){ .type = VN_F16, .rank = 4, .extent = { 1, heads, rows[i], d },
                              .stride = { heads * rows[i] * d, rows[i] * d, d, 1 } };
    while (v->name && strcmp(v->name, variant))
        v++;
    if (!v->name || v->fits(&a, &device->facts) || vn__tune_rates(&rates, device) ||
        vn__tune_find(row, &count, device, v, VN_F16, a.head.bucket))
        return 0;
    for (int i = 0; i < count; i++) {
        struct vn_plan plan = { 0 };
        const struct vn_site site = { &device->facts, &rates, &queue, 0 };

        if (!v->plan(&plan, &a, &row[i], &site) && (best == 0 || plan.seconds < best))
            best = plan.seconds;
    }
    return best * 1e6;
}

static void compare_attention(void)
{
    static struct vn_backend backend = { .name = "opencl" };
    static vn_device hopper = {
        .backend = &backend,
        .facts = { .family = "nvidia", .arch = "sm_90", .name = "NVIDIA H100 80GB", .units = 132,
                   .items = 1024, .types = 15, .local_bytes = 232448 } };
    static vn_device ampere = {
        .backend = &backend,
        .facts = { .family = "nvidia", .arch = "sm_80", .name = "NVIDIA A100", .units = 108,
                   .items = 1024, .types = 15, .local_bytes = 167936 } };
    static vn_device ada = {
        .backend = &backend,
        .facts = { .family = "nvidia", .arch = "sm_89", .name = "NVIDIA L40", .units = 142,
                   .items = 1024, .types = 15, .local_bytes = 101376 } };
    static const int64_t heads[] = { 1, 5, 16, 64, 200 }, sizes[] = { 40, 64, 96, 128, 256 };
    static const int64_t lengths[] = { 1, 64, 70, 197, 512, 2048, 16384 };

    for (int h = 0; h < 5; h++)
    for (int i = 0; i < 7; i++)
    for (int j = 0; j < 7; j++)
    for (int e = 0; e < 5; e++) {
        const int64_t sq = lengths[i], sk = lengths[j];
        const int causal = (h + i + j) % 2;

        compare(attention_estimate("attention_mma", &hopper, heads[h], sq, sk, sizes[e], causal),
                attention_estimate("attention_wgmma", &hopper, heads[h], sq, sk, sizes[e], causal), 1, 1000,
                "attention on sm_90, mma.sync beside wgmma");
        if (j == i && sq > 1) {
            const double small = attention_estimate("attention_mma", &ada, heads[h], sq, sk, sizes[e],
                                                    causal);
            const double large = attention_estimate("attention_mma", &ampere, heads[h], sq, sk, sizes[e],
                                                    causal);

            compare(small, large, 0.5, 10, "attention on sm_89 beside sm_80");
        }
    }
}

int main(void)
{
    static const char *const divided[] = { "gemm", "gemm_pipelined", "gemm_skinny", "gemm_skinny_mma" };

    choices();
    few_channels();
    empties();
    share_tasks();
    compare_attention();
    /* It computes C^T where A alone is K-major. */
    compare(estimate("gemm_pipelined", VN_F32, 4048, 7360, 2, "nn"),
            estimate("gemm_pipelined", VN_F32, 4048, 7360, 2, "nt"), 0.5, 1.5,
            "an aligned C that is transposed");
    compare(estimate("gemm_pipelined", VN_F32, 4048, 7361, 2, "nt"),
            estimate("gemm_pipelined", VN_F32, 4048, 7360, 2, "nt"), 1.5, 20, "an unaligned C");
    compare(estimate("gemm_skinny", VN_F32, 4096, 8, 512, "nt"),
            estimate("gemm_skinny", VN_F32, 8, 4096, 512, "nt"), 0.8, 1.25, "few columns, or few rows");
    compare(estimate("gemm_mma", VN_F16, 32, 4096, 4096, "nt"),
            estimate("gemm_mma", VN_F16, 64, 4096, 4096, "nt"), 1.3, 5,
            "tiles at the edge of C, beside whole ones");
    compare(estimate("gemm_mma", VN_F16, 64, 4096, 4095, "nt"),
            estimate("gemm_mma", VN_F16, 32, 4096, 4096, "nt"), 1.3, 10, "rows of odd length");
    compare(estimate("gemm_pipelined", VN_F32, 1, 4096, 4096, "nt"),
            estimate("gemm_pipelined", VN_F32, 32, 4096, 4096, "nt"), 0.1, 0.9, "tiles with few elements");
    compare(estimate("gemm_skinny", VN_F16, 256, 4096, 4096, "tt"),
            estimate("gemm_skinny", VN_F16, 256, 4096, 4096, "nt"), 1.5, 6,
            "a small operand that is M-major");
    compare(estimate("gemm_wgmma", VN_F16, 16, 1024, 20000, "nt"),
            estimate("gemm_wgmma", VN_F16, 16, 1024, 19000, "nt"), 1, 1.5, "more bytes than the cache keeps");
    compare(estimate("gemm_wgmma", VN_F16, 2048, 2048, 4104, "nt"),
            estimate("gemm_wgmma", VN_F16, 2048, 2048, 4096, "nt"), 1.05, 3, "rows within a line");
    compare(estimate("gemm_wgmma", VN_F16, 2048, 2048, 8256, "nt"),
            estimate("gemm_wgmma", VN_F16, 2048, 2048, 8192, "nt"), 1, 1.03, "rows that are whole lines");
    compare(estimate_batch("gemm_wgmma", VN_F16, 128, 8192, 8200, "nt", 2),
            estimate_batch("gemm_wgmma", VN_F16, 128, 8192, 8192, "nt", 2), 1.2, 3,
            "rows within a line that many tiles read");
    compare(estimate("gemm_wgmma", VN_F16, 128, 8192, 8200, "nt"),
            estimate("gemm_wgmma", VN_F16, 128, 8192, 8208, "nt"), 1.02, 1.1,
            "rows of which fewer lie in two lines");
    compare(estimate("gemm_skinny", VN_F16, 10, 4, 1750, "tt"),
            estimate("gemm_skinny", VN_F16, 10, 4, 64, "tt"), 4.5, 9, "steps along K");
    compare(estimate("gemm_skinny_mma", VN_F16, 48, 104, 13120, "nt"),
            estimate("gemm_skinny_mma", VN_F16, 48, 104, 656, "nt"), 1.3, 4, "levels of splits");
    for (size_t i = 0; i < sizeof divided / sizeof divided[0]; i++)
        compare(estimate_batch(divided[i], VN_F32, 8, 64, 8, "nn", 2),
                estimate(divided[i], VN_F32, 8, 64, 8, "nn"), 1.04, 1.6, "matrices found by divisions");
    compare(estimate_batch("gemm_batched_fma", VN_F32, 8, 64, 8, "nn", 2),
            estimate("gemm_batched_fma", VN_F32, 8, 64, 8, "nn"), 1, 1.02, "matrices found without them");
    compare(estimate_batch("gemm_wgmma", VN_F16, 8, 64, 8, "nn", 2),
            estimate("gemm_wgmma", VN_F16, 8, 64, 8, "nn"), 1, 1.05, "matrices found by TMA");
    compare(estimate("gemm_wgmma", VN_F16, 8, 5304, 2048, "tt"),
            estimate("gemm_wgmma", VN_F16, 8, 5304, 2048, "nt"), 1.2, 5, "rows of K that share lines");
    compare(estimate("gemm_wgmma", VN_F16, 9536, 5704, 8, "nn"),
            estimate("gemm_wgmma", VN_F16, 9536, 5696, 8, "nn"), 1.2, 2.5,
            "a C whose rows begin within sectors");
    compare(estimate("gemm_skinny", VN_F64, 8, 8, 12352, "nt"),
            estimate("gemm_skinny", VN_F64, 8, 8, 1024, "nt"), 1.5, 8, "splits that a second launch adds");
    printf("COUNT costs %d\n%d failures\n", cases, failures);
    return failures != 0;
}
