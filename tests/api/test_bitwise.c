/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bitwise.c - math=bitwise: the bits that doc/bitwise.md says, from every device that there is.
 *
 * Runs each problem on every OpenCL implementation at hand, by each variant that fits, and compares the
 * results with those of bitwise.h; excepted are the signs of zeros.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/oracle.h"
#include "check/suite.h"
#include "problem/conv.h"
#include "problem/gemm.h"
#include "../trial.h"

enum { DEVICES = 8, BYTES = 1 << 16, PAIRS = 1 << 12, RANDOM = 60 };

static const char *const texts[] = {
    "gemm:1x1x1000:f32:nn:math=bitwise",
    "gemm:33x65x129:f32:nn:math=bitwise",
    "gemm:33x65x129:f32:tt:math=bitwise:alpha=0.3:beta=1.7:bias=row",
    "gemm:64x64x64:f32:tn:math=bitwise:act=gelu",
    "gemm:17x31x300:f32:nt:math=bitwise:act=silu:batch=2",
    "gemm:9x100x77:f32:nn:math=bitwise:act=sigmoid:bias=full",
    "gemm:100x9x77:f32:nn:math=bitwise:act=tanh:bias=col",
    "gemm:5x7x2000:f32:nt:math=bitwise:beta=-1",
    "gemm:33x65x129:f16:nn:math=bitwise",
    "gemm:1x64x512:f16:nt:math=bitwise:act=gelu",
    "gemm:33x65x129:bf16:tn:math=bitwise:bias=row:act=silu",
    "gemm:64x1x512:bf16:nn:math=bitwise",
    "conv:n2c16h14w14k24r3s3:f32:pad=1:nchw:forward:math=bitwise",
    "conv:n2c16h14w14k24r3s3:f32:pad=1:nhwc:forward:math=bitwise:bias:act=gelu",
    "conv:n1c8h13w11k12r5s3:f32:stride=2x1:pad=1-2:nchw:forward:math=bitwise:beta=0.7:alpha=1.1",
    "conv:n1c8h9w9k8r3s3:f32:groups=8:pad=1:forward:math=bitwise",
    "conv:n2c8h13w11k12r3s3:f32:stride=2:pad=1:nchw:backward-data:math=bitwise",
    "conv:n2c8h13w11k12r3s3:f32:dil=2:pad=2:nhwc:backward-data:math=bitwise:act=tanh",
    "conv:n4c6h16w16k8r3s3:f32:pad=1:nchw:backward-filter:math=bitwise",
    "conv:n4c6h16w16k8r3s3:f32:stride=2:pad=1:nhwc:backward-filter:math=bitwise:beta=1",
    "conv:n1c4d5h6w7k8t3r3s3:f32:pad=1:nchw:forward:math=bitwise",
    "conv:n2c8w50k12s5:f16:pad=2:nchw:forward:math=bitwise:act=silu",
    "conv:n2c8h9w9k12r3s3:bf16:pad=1:nhwc:forward:math=bitwise",
};

struct place { vn_device *device; vn_queue *queue; vn_device_info info; };

static struct place places[DEVICES];
static int          place_count;
static long         cases, failures;

/* One device of each implementation. */
static void open_places(void)
{
    for (int i = 0; i < vn_device_count() && place_count < DEVICES; i++) {
        struct place *p = &places[place_count];
        int seen = 0;

        if (vn_device_get(&p->info, i))
            continue;
        suite_spare_cache(&p->info);
        for (int j = 0; j < place_count; j++)
            seen |= !strcmp(places[j].info.platform, p->info.platform);
        if (!seen && vn_device_open(&p->device, p->info.spec) == VN_OK) {
            if (vn_queue_open(&p->queue, p->device) == VN_OK)
                place_count++;
            else
                vn_device_close(p->device);
        }
    }
}

/* ---- what is right --------------------------------------------------------------------- */

struct pairs { int64_t count; struct { double a, b; } pair[PAIRS]; };

#define REAL      float
#define FMA       fmaf
#define NAME(it)  it##_f32
#define IS_DOUBLE 0
#include "bitwise.h"
#undef REAL
#undef FMA
#undef NAME
#undef IS_DOUBLE
#define REAL      double
#define FMA       fma
#define NAME(it)  it##_f64
#define IS_DOUBLE 1
#include "bitwise.h"

static struct pairs pairs;

static void add_pair(double a, double b)
{
    if (pairs.count < PAIRS) {
        pairs.pair[pairs.count].a = a;
        pairs.pair[pairs.count].b = b;
    }
    pairs.count++;
}

static void pairs_of_gemm(const struct operands *o, double *const in[], const int64_t *place)
{
    const vn_tensor *const a = &o->t[0], *const b = &o->t[1];
    const int row = a->rank - 2, col = a->rank - 1;
    int64_t of_a[VN_RANK] = { 0 }, of_b[VN_RANK] = { 0 };

    of_a[0] = of_b[0] = place[0];
    of_a[row] = place[row];
    of_b[col] = place[col];
    for (int64_t k = 0; k < a->extent[col]; k++) {
        of_a[col] = of_b[row] = k;
        add_pair(in[0][oracle_offset(a, of_a)], in[1][oracle_offset(b, of_b)]);
    }
}

/* The next place of `spatial` dimensions, the last of them counting fastest; 0 past the end. */
static int next_place(int64_t *at, const int64_t *extent, int spatial)
{
    int d = spatial - 1;

    while (d >= 0 && ++at[d] == extent[d])
        at[d--] = 0;
    return d >= 0;
}

/* The places of x, w and y that belong together: of two of them follows the third. */
static int find_x(int64_t *x, const struct conv_problem *c, const int64_t *w, const int64_t *y)
{
    for (int d = 0; d < c->spatial; d++) {
        const int k = d + 3 - c->spatial;

        x[d] = y[d] * c->stride[k] - c->pad_before[k] + w[d] * c->dilation[k];
        if (x[d] < 0 || x[d] >= c->size[k])
            return 0;
    }
    return 1;
}

static int find_y(int64_t *y, const struct conv_problem *c, const int64_t *w, const int64_t *x)
{
    for (int d = 0; d < c->spatial; d++) {
        const int k = d + 3 - c->spatial;
        const int64_t at = x[d] + c->pad_before[k] - w[d] * c->dilation[k];

        y[d] = at / c->stride[k];
        if (at < 0 || at % c->stride[k] || y[d] >= c->out[k])
            return 0;
    }
    return 1;
}

/* Each place of x, w and y: two leading indices, then the spatial ones. */
static void pairs_of_conv(const struct problem *p, const struct operands *o, double *const in[],
                          const int64_t *place)
{
    const struct conv_problem *const c = conv_of(p);
    const int *const at = conv_place[p->direction];
    const vn_tensor *const x = &o->t[at[0]], *const w = &o->t[at[1]], *const y = &o->t[at[2]];
    const int64_t c_each = c->c / c->groups, k_each = c->filters / c->groups;
    int64_t of_x[VN_RANK] = { 0 }, of_w[VN_RANK] = { 0 }, of_y[VN_RANK] = { 0 };

    switch (p->direction) {
    case FORWARD:
        memcpy(of_y, place, sizeof of_y);
        of_x[0] = place[0];
        of_w[0] = place[1];
        do {
            if (!find_x(of_x + 2, c, of_w + 2, of_y + 2))
                continue;
            for (of_w[1] = 0; of_w[1] < c_each; of_w[1]++) {
                of_x[1] = place[1] / k_each * c_each + of_w[1];
                add_pair(in[at[1]][oracle_offset(w, of_w)], in[at[0]][oracle_offset(x, of_x)]);
            }
        } while (next_place(of_w + 2, w->extent + 2, c->spatial));
        return;
    case BACKWARD_DATA:
        memcpy(of_x, place, sizeof of_x);
        of_y[0] = place[0];
        of_w[1] = place[1] % c_each;
        do {
            if (!find_y(of_y + 2, c, of_w + 2, of_x + 2))
                continue;
            for (int64_t k = 0; k < k_each; k++) {
                of_w[0] = of_y[1] = place[1] / c_each * k_each + k;
                add_pair(in[at[1]][oracle_offset(w, of_w)], in[at[2]][oracle_offset(y, of_y)]);
            }
        } while (next_place(of_w + 2, w->extent + 2, c->spatial));
        return;
    default:
        memcpy(of_w, place, sizeof of_w);
        of_y[1] = place[0];
        of_x[1] = place[0] / k_each * c_each + place[1];
        for (of_x[0] = of_y[0] = 0; of_x[0] < c->images; of_x[0]++, of_y[0]++)
            do {
                if (find_x(of_x + 2, c, of_w + 2, of_y + 2))
                    add_pair(in[at[0]][oracle_offset(x, of_x)], in[at[2]][oracle_offset(y, of_y)]);
            } while (next_place(of_y + 2, y->extent + 2, c->spatial));
    }
}

struct answer { const struct trial *t; double *in[OPERANDS]; unsigned char *bytes; };

static void answer_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    static const struct op *const convs[] = { &op_conv, NULL };
    struct answer *const a = context;
    const struct problem *const p = &a->t->p;
    const struct operands *const o = &a->t->o;
    const vn_tensor *const bias = &o->t[3];
    const int has_bias = bias->rank != 0, is_conv = op_place(convs, p->op) == 0;
    const int channel = p->direction == BACKWARD_FILTER ? 0 : 1;
    double b = 0;

    if (has_bias)                                 /* of a convolution, rank 1: along the channels */
        b = a->in[3][bias->rank == 1 ? bias->start + place[channel] * bias->stride[0]
                                     : oracle_offset(bias, place)];
    pairs.count = 0;
    if (p->alpha != 0 && is_conv)
        pairs_of_conv(p, o, a->in, place);
    else if (p->alpha != 0)
        pairs_of_gemm(o, a->in, place);
    oracle_store(p->type, a->bytes, at,
                 p->type == VN_F64 ? finished_f64(p, &pairs, a->in[2][at], has_bias, b)
                                   : finished_f32(p, &pairs, a->in[2][at], has_bias, b));
    if (pairs.count > PAIRS) {
        failures++;
        printf("not ok: a sum of %lld terms; there is room for %d\n", (long long)pairs.count, PAIRS);
    }
}

/* The operands as they are on the device, before it runs. */
static int find_answer(unsigned char *bytes, const struct trial *t, vn_queue *q)
{
    struct answer a = { .t = t, .bytes = bytes };
    int failed = 0;

    memset(bytes, 0, BYTES);
    for (int i = 0; i < t->o.count; i++) {
        const size_t size = operand_bytes(&t->o, i);
        void *const host = malloc(size + 1);

        a.in[i] = malloc((size_t)t->o.elements[i] * sizeof *a.in[i] + 1);
        failed |= !host || !a.in[i] || (t->o.t[i].rank && vn_read(q, host, t->buffers[i], 0, size));
        for (int64_t e = 0; !failed && t->o.t[i].rank && e < t->o.elements[i]; e++)
            a.in[i][e] = oracle_load(t->o.t[i].type, host, e);
        if (!failed && i == t->o.output)
            memcpy(bytes, host, size);
        free(host);
    }
    if (!failed)
        oracle_each(&t->o.t[t->o.output], answer_one, &a);
    for (int i = 0; i < t->o.count; i++)
        free(a.in[i]);
    return failed ? -1 : 0;
}

/* ---- what comes out ------------------------------------------------------------------------ */

/* 1 if the variant does not fit. */
static int run(unsigned char *result, const struct trial *t, struct place *p, const char *variant)
{
    struct trial named = *t;
    vn_status s;

    strcpy(named.p.variant, variant);
    memset(result, 0, BYTES);
    s = trial_run(result, &named, p->queue, NULL);
    if (s == VN_UNSUPPORTED && *variant)
        return 1;
    cases++;
    if (s == VN_OK)
        return 0;
    failures++;
    printf("not ok: on %s: %s\n", p->info.platform, vn_last_error());
    return 1;
}

static void compare(const unsigned char *right, const unsigned char *result, const struct trial *t,
                    const char *text, const char *by)
{
    const vn_type type = t->p.type;
    const size_t each = vn_type_bytes(type);

    for (size_t at = 0; at < t->bytes / each; at++) {
        const double is     = oracle_load(type, result, (int64_t)at);
        const double wanted = oracle_load(type, right, (int64_t)at);

        if (!memcmp(right + at * each, result + at * each, each) || (is == 0 && wanted == 0) ||
            (isnan(is) && isnan(wanted)))
            continue;
        failures++;
        printf("not ok: %s: %s: element %zu is %.17g and should be %.17g\n", text, by, at, is, wanted);
        return;
    }
}

static void try_variant(const char *text, struct place *p, const char *variant)
{
    static unsigned char right[BYTES], result[BYTES];
    struct trial t;
    char by[128];

    if (trial_open(&t, p->device, p->queue, text) || t.bytes > BYTES || find_answer(right, &t, p->queue)) {
        failures++;
        printf("not ok: %s cannot be set up\n", text);
        return;
    }
    snprintf(by, sizeof by, "%s on %.60s", *variant ? variant : "the choice", p->info.platform);
    if (run(result, &t, p, variant) == 0)
        compare(right, result, &t, text, by);
    trial_close(&t);
}

static void try_text(const char *text)
{
    static const struct suite usual = { .extent = SUITE_USUAL };
    struct problem p;
    char why[256];

    if (problem_parse(&p, text, why, sizeof why)) {
        failures++;
        printf("not ok: %s\n", why);
        return;
    }
    for (int i = 0; i < place_count; i++)
        for (const char *v = p.type == VN_F64 && !places[i].info.has_f64 ? NULL
                                                          : suite_next_variant(&usual, p.op, NULL);
             v; v = suite_next_variant(&usual, p.op, v))
            try_variant(text, &places[i], v);
}

/* ---- random problems -------------------------------------------------------------------------- */

static const char *const types[] = { "f32", "f16", "bf16", "f64" };
static const double alphas[] = { 1, 1, 0.3, -1.7, 40 }, betas[] = { 1, -0.6 };

/* What is added is compiled into kernels, which takes its time: each type has one form of it. */
static const struct { int has_beta; const char *bias, *act; } epilogues[] = {
    { 1, "row", "gelu" }, { 0, "col", "silu" }, { 1, "full", "tanh" }, { 1, "col", "sigmoid" },
};

static int any(struct random *r, int low, int high)
{
    return low + (int)random_below(r, high - low + 1);
}

static void random_gemm(char text[PROBLEM_TEXT], struct random *r)
{
    static const char *const layouts[] = { "nn", "nt", "tn", "tt" };
    const int64_t t = random_below(r, 4);

    snprintf(text, PROBLEM_TEXT,
             "gemm:%dx%dx%d:%s:%s:math=bitwise:alpha=%g:beta=%g:bias=%s:act=%s:batch=%d:gap=%d",
             any(r, 1, 40), any(r, 1, 40), any(r, 0, 300), types[t], RANDOM_OF(r, layouts),
             RANDOM_OF(r, alphas), epilogues[t].has_beta ? RANDOM_OF(r, betas) : 0, epilogues[t].bias,
             epilogues[t].act,
             any(r, 1, 2), any(r, 0, 2));
}

static void random_conv(char text[PROBLEM_TEXT], struct random *r)
{
    static const char *const directions[] = { "forward", "backward-data", "backward-filter" };
    static const char *const layouts[] = { "nchw", "nhwc" };
    const int64_t t = random_below(r, 4);
    const int groups = any(r, 1, 3);

    snprintf(text, PROBLEM_TEXT,
             "conv:n%dc%dh%dw%dk%dr%ds%d:%s:%s:%s:stride=%dx%d:dil=%dx%d:pad=%dx%d:groups=%d:math=bitwise:"
             "alpha=%g:beta=%g:bias=%s:act=%s",
             any(r, 1, 3), groups * any(r, 1, 5), any(r, 5, 12), any(r, 5, 12), groups * any(r, 1, 5),
             any(r, 1, 3), any(r, 1, 3), types[t], RANDOM_OF(r, layouts), RANDOM_OF(r, directions),
             any(r, 1, 3), any(r, 1, 2), any(r, 1, 2), any(r, 1, 2), any(r, 0, 2), any(r, 0, 2), groups,
             RANDOM_OF(r, alphas), epilogues[t].has_beta ? RANDOM_OF(r, betas) : 0,
             strcmp(epilogues[t].bias, "none") ? "row" : "none", epilogues[t].act);
}

static void try_random(void)
{
    struct random r = { 5 };
    char text[PROBLEM_TEXT];

    for (int i = 0; i < RANDOM; i++) {
        random_gemm(text, &r);
        try_text(text);
        random_conv(text, &r);
        try_text(text);
    }
}

int main(void)
{
    setenv("RUSTICL_ENABLE", "llvmpipe", 0);      /* without it rusticl offers no CPU */
    open_places();
    if (place_count < 1) {
        printf("skipped: there is no OpenCL device (Debian: pocl-opencl-icd, mesa-opencl-icd)\n");
        return 77;
    }
    for (int i = 0; i < place_count; i++)
        printf("on %s (%s)\n", places[i].info.name, places[i].info.platform);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        try_text(texts[i]);
    try_random();
    for (int i = 0; i < place_count; i++) {
        vn_queue_close(places[i].queue);
        vn_device_close(places[i].device);
    }
    printf("%ld cases, %ld failed\nCOUNT bitwise %ld\n", cases, failures, cases);
    return failures != 0;
}
