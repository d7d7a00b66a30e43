/* SPDX-License-Identifier: Apache-2.0
 *
 * test_measure.c - order statistics, paired ratios, turns, calibration, what counts as a disturbance; the
 * names and roofs of engines; whether a peer's result agrees with ours; and the check of a part of one.  No
 * device is needed, and no time passes: the runners say how long they took.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/engines.h"
#include "bench/roofline.h"
#include "check/oracle.h"
#include "check/spot.h"
#include "problem/attention.h"
#include "commands.h"
#include "core.h"
#include "lib/gemm/gemm.h"
#include "measure/machine.h"
#include "measure/timing.h"

static int failures, checks;

void complain(const char *sentence, ...)
{
    va_list args;

    va_start(args, sentence);
    vfprintf(stderr, sentence, args);
    va_end(args);
}

static void check(int right, const char *what, ...)
{
    va_list args;

    checks++;
    if (right)
        return;
    failures++;
    va_start(args, what);
    printf("FAIL: ");
    vprintf(what, args);
    printf("\n");
    va_end(args);
}

/* ---- statistics ---- */

/* 1 - 2 P(Binomial(n, 1/2) < k), exactly. */
static void test_order_statistics(void)
{
    static const struct { int n, k; double coverage; } table[] = {
        { 0, 0, 0 }, { 1, 1, 0.0 }, { 2, 1, 0.5 }, { 3, 1, 0.75 }, { 4, 1, 0.875 }, { 5, 1, 0.9375 },
        { 6, 1, 0.96875 }, { 7, 1, 0.984375 }, { 8, 1, 0.9921875 }, { 9, 2, 0.9609375 },
        { 10, 2, 0.978515625 }, { 11, 2, 0.98828125 }, { 12, 3, 0.96142578125 }, { 15, 4, 0.96484375 },
        { 20, 6, 0.9586105346679688 }, { 25, 8, 0.9567147493362427 }, { 31, 10, 0.9705506265163422 },
        { 61, 23, 0.9603829851015003 } };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double coverage;
        const int k = order_statistic(&coverage, table[i].n);

        check(k == table[i].k, "%d samples: order statistic %d, not %d", table[i].n, k, table[i].k);
        check(fabs(coverage - table[i].coverage) < 1e-12, "%d samples: coverage %.17g, not %.17g",
              table[i].n, coverage, table[i].coverage);
    }
}

static void test_summaries(void)
{
    const double nine[] = { 5, 1, 9, 3, 7, 2, 8, 4, 6 }, kept[] = { 5, 1, 9, 3, 7, 2, 8, 4, 6 };
    const double over[] = { 2, 30, 4, 6, 50 }, under[] = { 1, 10, 4, 2, 25 };
    const struct summary s = summary_of(nine, 9), one = summary_of(nine, 1), none = summary_of(nine, 0);
    double ratio[SAMPLES];
    const struct summary r = ratio_of(ratio, over, under, 5);

    check(s.median == 5 && s.low == 2 && s.high == 8, "nine samples: %g, %g to %g", s.median, s.low, s.high);
    check(!memcmp(nine, kept, sizeof nine), "the samples are left in their order");
    check(one.median == 5 && one.low == 5 && one.high == 5 && one.coverage == 0, "one sample covers nothing");
    check(none.count == 0 && none.median == 0, "no sample has no median");
    check(r.median == 2 && r.low == 1 && r.high == 3, "paired ratios: %g, %g to %g", r.median, r.low, r.high);
    check(ratio[0] == 2 && ratio[1] == 3 && ratio[4] == 2, "each ratio is of one round");
}

/* ---- taking turns ---- */

enum { RUNS = 4096 };

/* Says that a run takes so many seconds, after the first ones of `late`, which take a second longer each. */
struct fake { char name; double seconds; int late, runs, fails_at; };

static char   order[RUNS];
static int    ordered;

static int run_fake(void *state, int repeats, double *seconds)
{
    struct fake *const f = state;

    if (ordered < RUNS)
        order[ordered++] = f->name;
    f->runs++;
    *seconds = f->seconds * repeats + (f->runs <= f->late);
    return f->fails_at && f->runs >= f->fails_at ? -1 : 0;
}

static void test_calibration(void)
{
    static const struct { double seconds; int late, most, repeats; } cases[] = {
        { 1e-4, 0, 0, 128 },          /* 64 runs are shorter than 10 ms */
        { 1e-4, 2, 0, 128 },          /* what disturbs the first ones does not count */
        { 0.02, 0, 0, 1 }, { 0.02, 2, 0, 1 }, { 1e-4, 0, 100, 100 }, { 1e-9, 0, 0, 16384 } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake f = { .seconds = cases[i].seconds, .late = cases[i].late };
        struct runner r = { .run = run_fake, .state = &f, .most = cases[i].most, .least = SAMPLES_SURE };

        sample_in_turns(&r, 1, 4);
        check(r.repeats == cases[i].repeats, "case %zu: %d repeats, not %d", i, r.repeats, cases[i].repeats);
        check(fabs(r.median - cases[i].seconds) < 1e-12, "case %zu: a median of %g", i, r.median);
    }
}

static void test_turns(void)
{
    struct fake f[3] = { { .name = 'a', .seconds = 0.02 }, { .name = 'b', .seconds = 0.02 },
                         { .name = 'c', .seconds = 3 } };
    struct runner r[3];
    int calibrating;

    for (int i = 0; i < 3; i++)
        r[i] = (struct runner){ .run = run_fake, .state = &f[i], .least = SAMPLES_SURE };
    ordered = 0;
    sample_in_turns(r, 3, 3);
    calibrating = f[0].runs - r[0].count + f[1].runs - r[1].count + f[2].runs - r[2].count;
    check(!strncmp(order + calibrating, "abccbabca", 9), "rounds go forth and back: %.9s",
          order + calibrating);
    check(r[0].count == SAMPLES && r[1].count == SAMPLES, "a second each is %d samples", r[0].count);
    check(r[2].count == 4, "a slow one has %d samples, for it took ten times its share", r[2].count);

    f[0].fails_at = f[0].runs + 3;
    sample_in_turns(r, 2, 1);
    check(r[0].failed && !r[1].failed && r[1].count > 1, "one that fails leaves the other");
}

static double says_clock(void)
{
    return 1410;
}

/* A sample of long runs is as long as its lead, which goes before it and is not recorded; behind it the clock
 * is read.                                                                                               */
static void test_lead(void)
{
    static const struct { double lead; int repeats, calls; } cases[] = { { 0, 1, 1 }, { 0.25, 1, 2 },
                                                                         { 0.6, 3, 2 } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake f[2] = { { .name = 'a', .seconds = 0.25 }, { .name = 'b', .seconds = 0.25 } };
        const int calls = cases[i].calls, rounds = SAMPLES_SURE + (calls > 1);
        struct runner r[2];

        for (int j = 0; j < 2; j++)
            r[j] = (struct runner){ .run = run_fake, .state = &f[j], .least = SAMPLES_SURE,
                                    .lead = cases[i].lead };
        sampling_clock(says_clock);
        sample_in_turns(r, 2, 6);
        sampling_clock(NULL);
        for (int j = 0; j < 2; j++) {
            check(r[j].repeats == cases[i].repeats && r[j].median == 0.25, "%d runs of %g s are a sample",
                  r[j].repeats, r[j].median);
            check(r[j].mhz[0] == (calls > 1 ? 1410 : 0), "a clock of %g MHz", r[j].mhz[0]);
            check(f[j].runs - 3 >= rounds * calls && f[j].runs - 3 == (r[j].count + (calls > 1)) * calls,
                  "lead %g: %d samples of %d calls, after 3 that calibrate", cases[i].lead, r[j].count,
                  f[j].runs);
        }
    }
}

/* Short runs that are led: as often as the lead takes, before each sample and an unrecorded round. */
static void test_steady(void)
{
    enum { CALIBRATE = 5, EACH = 3 };           /* calls; a sample of 4 runs, and 2 such before it */
    struct fake f = { .seconds = 0.02 };
    struct runner r = { .run = run_fake, .state = &f, .least = SAMPLES_SURE, .length = 0.05, .lead = 0.09,
                        .steady = 1 };

    sample_in_turns(&r, 1, 1);
    check(r.repeats == 4 && r.median == 0.02, "%d runs of %g s are a sample", r.repeats, r.median);
    check(r.count == SAMPLES_SURE, "what leads samples counts as spent: %d samples", r.count);
    check(f.runs == CALIBRATE + (r.count + 1) * EACH, "%d samples took %d calls", r.count, f.runs);
}

static int says_stop(void)
{
    return 1;
}

static void test_stop(void)
{
    struct fake f = { .seconds = 0.5 };
    struct runner r = { .run = run_fake, .state = &f, .least = SAMPLES_SURE };

    sampling_watch(says_stop);
    sample_in_turns(&r, 1, 10);
    sampling_watch(NULL);
    check(r.count == 1 && r.median == 0.5, "stopped after a round, it has %d samples", r.count);
}

static void test_least(void)
{
    struct fake f = { .seconds = 0.5 };
    struct runner r = { .run = run_fake, .state = &f, .least = SAMPLES_SURE };

    sample_in_turns(&r, 1, 1);
    check(r.count == SAMPLES_SURE, "%d samples, above the time that there is", r.count);
    check(summary_of(r.sample, r.count).coverage >= 0.95, "these cover 95 %%");
}

/* ---- JSON ---- */

static void test_json(void)
{
    const double theirs[] = { 3, 4, 5, 6 }, ours[] = { 1, 2, 1, 2, 9, 9 };
    const struct timing a = timing_of(theirs, 4, 8), b = timing_of(ours, 6, 2);
    const struct ratio r = timing_ratio(&a, &b);
    json_t *const timing = timing_json(&a), *const ratio = ratio_json(&r), *const other = timing_json(&b);

    check(json_array_size(json_object_get(timing, "samples_s")) == 4 &&
          json_integer_value(json_object_get(timing, "repeats")) == 8 &&
          json_integer_value(json_object_get(timing, "samples")) == 4, "samples and repeats");
    check(json_is_true(json_object_get(timing, "few")) && !json_object_get(other, "few"), "four are few");
    check(json_array_size(json_object_get(ratio, "ratios")) == 4, "pairs: as many as both have");
    check(json_number_value(json_object_get(ratio, "ratio")) == 3, "3, 2, 5, 3: %g",
          json_number_value(json_object_get(ratio, "ratio")));
    json_decref(timing);
    json_decref(ratio);
    json_decref(other);
}

/* ---- disturbances ---- */

static void test_disturbances(void)
{
    static const struct { struct machine m; int on_cpu; const char *why; } cases[] = {
        { { .seconds = 1, .cpus = 2, .has_stat = 1, .others = 0.05 }, 1, "" },
        { { .seconds = 1, .cpus = 2, .has_stat = 1, .others = 1.42 }, 1,
          "other processes used 1.4 of 2 CPUs" },
        { { .seconds = 1, .cpus = 2, .has_stat = 1, .others = 0.9 }, 0, "" },
        { { .seconds = 1, .cpus = 2, .has_stat = 1, .others = 1.5 }, 0,
          "other processes used 1.5 of 2 CPUs" },
        { { .seconds = 0.01, .cpus = 2, .has_stat = 1, .others = 1.5 }, 1, "" },    /* the counters' grain */
        { { .seconds = 1, .cpus = 4, .has_stat = 1, .stolen = 0.5 }, 1, "the hypervisor took 0.5 of 4 CPUs" },
        { { .seconds = 1, .cpus = 2, .has_stat = 1, .has_pressure = 1, .pressure = 0.9 }, 1, "" },
        { { .seconds = 1, .cpus = 2, .has_pressure = 1, .pressure = 0.9 }, 1,
          "tasks waited for a CPU during 90 % of the time" },
        { { .seconds = 1, .cpus = 2, .has_stat = 1, .hot = 1 }, 1, "heat throttled the CPU" } };
    struct machine_look from = { .seconds = 10, .busy = 100, .own = 5, .has_stat = 1 },
                        to   = { .seconds = 12, .busy = 104, .own = 7, .has_stat = 1 };
    struct machine m;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char why[80];
        const int disturbed = machine_is_disturbed(why, sizeof why, &cases[i].m, cases[i].on_cpu);

        check(disturbed == (*cases[i].why != '\0') && !strcmp(why, cases[i].why), "case %zu: \"%s\"", i, why);
    }
    machine_between(&m, &from, &to);
    check(fabs(m.others - 1) < 1e-12, "others: 4 s less our own 2 s, in 2 s, is one CPU, not %g", m.others);
    machine_look(&from);
    check(from.seconds > 0 && from.own >= 0, "a look at this machine");
}

/* ---- engines ---- */

static void test_engines(void)
{
    static const struct { const char *variant; vn_type type; const char *family, *engine; } cases[] = {
        { "gemm",              VN_F32,  "nvidia", "FFMA" },
        { "gemm",              VN_F16,  "nvidia", "FFMA" },
        { "gemm",              VN_F64,  "nvidia", "DFMA" },
        { "gemm",              VN_BF16, "amd",    "FMA f32" },
        { "gemm_cpu",          VN_F64,  "cpu",    "FMA f64" },
        { "gemm_wgmma",        VN_F16,  "nvidia", "HGMMA f16" },
        { "gemm_padded",       VN_BF16, "nvidia", "HGMMA bf16" },
        { "gemm_bf16x3",       VN_F32,  "nvidia", "HGMMA bf16 x 3" },
        { "gemm_bf16x3_rows",  VN_F32,  "nvidia", "HGMMA bf16 x 3" },
        { "gemm_tf32",         VN_F32,  "nvidia", "HGMMA tf32" },
        { "gemm_batched",      VN_BF16, "nvidia", "HMMA bf16" },
        { "gemm_batched_fma",  VN_F32,  "nvidia", "FFMA" },
        { "gemm_mma",          VN_F32,  "nvidia", "HMMA tf32" },
        { "gemm_mma",          VN_F64,  "nvidia", "DMMA" },
        { "gemm_skinny_mma",   VN_F32,  "nvidia", "HMMA bf16 x 3" },
        { "gemm_skinny_mma",   VN_BF16, "nvidia", "HMMA bf16" },
        { "gemm_mfma",         VN_F32,  "amd",    "MFMA f32" },
        { "gemm_wmma",         VN_F16,  "amd",    "WMMA f16" },
        { "gemm_dpas",         VN_F16,  "intel",  "DPAS f16" },
        { "gemm_splitk",       VN_F32,  "nvidia", "" },
        { "cublas",            VN_F32,  "nvidia", "" } };
    char engine[VN_ENGINE];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (const struct vn_variant *v = vn__gemm_variants; v->name; v++)
            if (!strcmp(v->name, cases[i].variant)) {
                vn__engine(engine, v, cases[i].type, cases[i].family);
                check(!strcmp(engine, cases[i].engine), "%s in %s: \"%s\", not \"%s\"", v->name,
                      vn_type_name(cases[i].type), engine, cases[i].engine);
            }
    /* a text that calls for an engine's atoms is a variant's that says so */
    for (const struct vn_variant *v = vn__gemm_variants; v->name; v++)
        check(!v->texts || (v->engine && *v->engine) ==
              (strstr(v->texts, "mma.h") || strstr(v->texts, "/matrix.h")), "%s: its engine", v->name);
}

/* ---- roofs ---- */

static void test_roofs(void)
{
    static const struct roofline gpu = { .peak = { 60e12, 30e12 }, .bandwidth = 2e12, .matrix = {
        [VN_F32]  = { 1, "HGMMA tf32", 400e12, 380e12 }, [VN_F16] = { 1, "HGMMA f16", 800e12, 700e12 },
        [VN_BF16] = { 1, "HGMMA bf16", 810e12, 720e12 }, [VN_F64] = { 1, "DMMA", 60e12, 60e12 } } };
    static const struct roofline cpu = { .peak = { 1e11, 5e10 }, .bandwidth = 1e10 };
    static const struct {
        const struct roofline *r; vn_type type; vn_math math; double flops; const char *kind;
    } cases[] = {
        { &gpu, VN_F32,  VN_MATH_DEFAULT, 135e12, "HGMMA bf16 / 6" },
        { &gpu, VN_F32,  VN_MATH_TF32,    400e12, "HGMMA tf32" },
        { &gpu, VN_F32,  VN_MATH_BITWISE, 60e12,  "FMA f32" },
        { &gpu, VN_F16,  VN_MATH_DEFAULT, 800e12, "HGMMA f16" },
        { &gpu, VN_BF16, VN_MATH_DEFAULT, 810e12, "HGMMA bf16" },
        { &gpu, VN_F64,  VN_MATH_DEFAULT, 60e12,  "DMMA" },
        { &cpu, VN_F16,  VN_MATH_DEFAULT, 1e11,   "FMA f32" },
        { &cpu, VN_F64,  VN_MATH_DEFAULT, 5e10,   "FMA f64" } };

    /* What is read beside as much that is written goes at the rate of a copy. */
    static const struct { struct roofline r; struct amount w; double seconds; } moves[] = {
        { { .bandwidth = 2e9, .reading = 4e9 }, { 0, 8e9, 0 },   2 },
        { { .bandwidth = 2e9, .reading = 4e9 }, { 0, 9e9, 1e9 }, 3 },
        { { .bandwidth = 2e9, .reading = 4e9 }, { 0, 0, 4e9 },   2 },
        { { .bandwidth = 2e9, .reading = 1e9 }, { 0, 4e9, 0 },   2 },
        { { .bandwidth = 2e9 },                 { 0, 3e9, 1e9 }, 2 } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct roof roof = roofline_of(cases[i].r, cases[i].type, cases[i].math);

        check(fabs(roof.flops - cases[i].flops) < 1 && !strcmp(roof.kind, cases[i].kind),
              "roof %zu: %g by %s, not %g by %s", i, roof.flops, roof.kind, cases[i].flops, cases[i].kind);
    }
    check(roofline_seconds(&cpu, VN_F32, VN_MATH_DEFAULT, &(struct amount){ 1e11, 1e9, 0 }) == 1,
          "flops set the time");
    check(roofline_seconds(&cpu, VN_F32, VN_MATH_DEFAULT, &(struct amount){ 1e9, 5e9, 5e9 }) == 1,
          "bytes set the time");
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        check(fabs(roofline_moving(&moves[i].r, &moves[i].w) - moves[i].seconds) < 1e-12, "move %zu: %g s", i,
              roofline_moving(&moves[i].r, &moves[i].w));
}

static void test_matrix_engines(void)
{
    static const struct { const char *family, *arch; vn_type type; const char *kernel; } cases[] = {
        { "nvidia", "sm_90",   VN_F16,  "peak_wgmma" }, { "nvidia", "sm_90",   VN_F64, "peak_mma" },
        { "nvidia", "sm_80",   VN_BF16, "peak_mma" },   { "nvidia", "sm_120",  VN_F16, "peak_mma" },
        { "nvidia", "sm_75",   VN_F16,  NULL },         { "amd",    "gfx90a",  VN_F64, "peak_mfma" },
        { "amd",    "gfx908",  VN_F64,  NULL },         { "amd",    "gfx1100", VN_F16, "peak_wmma" },
        { "amd",    "gfx1030", VN_F16,  NULL },         { "intel",  "any",     VN_F16, "peak_dpas" },
        { "cpu",    "f32x16",  VN_F32,  NULL } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vn_facts f = { .units = 1 };
        const struct matrix_engine *it;

        snprintf(f.family, sizeof f.family, "%s", cases[i].family);
        snprintf(f.arch, sizeof f.arch, "%s", cases[i].arch);
        it = matrix_engine_for(matrix_engines, &f, cases[i].type);
        check(!it == !cases[i].kernel && (!it || !strcmp(it->kernel.name, cases[i].kernel)),
              "the engine of %s/%s for %s is %s", f.family, f.arch, vn_type_name(cases[i].type),
              it ? it->kernel.name : "none");
    }
}

/* ---- results of peers ---- */

/* Numbers in [-1, 1). */
static void *drawn(vn_type type, int64_t count, uint64_t *state)
{
    void *const to = calloc((size_t)count, sizeof(double));

    for (int64_t at = 0; at < count; at++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        oracle_store(type, to, at, (double)(*state >> 40) * 0x1p-23 - 1);
    }
    return to;
}

/* A softmax's gradient as PyTorch's kernel for GPUs computes it, where `rounds`; `left_out`: of the sum. */
static void differentiate(const struct problem *p, const struct operands *o, void *const *in, void *out,
                          int rounds, int64_t left_out)
{
    const int64_t n = o->t[2].extent[1];

    for (int64_t row = 0; row < o->t[2].extent[0]; row++) {
        double sum = 0;

        for (int pass = 0; pass < 2; pass++)
            for (int64_t at = row * n; at < (row + 1) * n; at++) {
                const double y = oracle_load(p->type, in[0], at), dy = oracle_load(p->type, in[1], at);
                const double product = rounds ? oracle_round(p->type, y * dy) : y * dy;

                if (pass)
                    oracle_store(p->type, out, at, product - y * sum);
                else if (at < (row + 1) * n - left_out)
                    sum += product;
            }
    }
}

static void test_roundings(void)
{
    static const char *const table[] = { "softmax:64x128:f16:backward", "softmax:16x1024:f16:backward",
                                         "softmax:64x128:bf16:backward" };
    uint64_t state = 1;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct problem p;
        struct operands o;
        char why[512] = "";
        void *in[OPERANDS] = { NULL };

        check(!problem_parse(&p, table[i], why, sizeof why) && !problem_operands(&o, &p), "%s: %s", table[i],
              why);

        const int64_t count = o.elements[2], n = o.t[2].extent[1];
        struct results ours = { { NULL } }, theirs = { { NULL } };

        ours.of[2] = calloc((size_t)count, sizeof(double));
        theirs.of[2] = calloc((size_t)count, sizeof(double));
        for (int k = 0; k < 2; k++)
            in[k] = drawn(p.type, count, &state);
        differentiate(&p, &o, in, ours.of[2], 0, 0);
        differentiate(&p, &o, in, theirs.of[2], 1, 0);
        check(results_agree(&p, &o, &ours, &theirs, in, why, sizeof why, "it"), "%s %s", table[i], why);
        check(!results_agree(&p, &o, &ours, &theirs, NULL, why, sizeof why, "it"),
              "%s agrees with what rounds its products, which nobody said", table[i]);
        differentiate(&p, &o, in, theirs.of[2], 1, n / 2);
        check(!results_agree(&p, &o, &ours, &theirs, in, why, sizeof why, "it"),
              "%s agrees with a sum of one half", table[i]);
        free(ours.of[2]);
        free(theirs.of[2]);
        free(in[0]);
        free(in[1]);
    }
}

/* Attention's output as an engine computes it that takes weights in the problem's type, of exponentials in
 * the unit `one`; `left_out`: keys. */
static void weigh(const struct problem *p, const struct operands *o, void *const *in, void *out, double one,
                  int64_t left_out)
{
    const int64_t keys = o->t[1].extent[2], d = o->t[0].extent[3], rows = o->elements[3] / d;

    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < d; c++) {
            double sum = 0, weights = 0;

            for (int64_t j = left_out; j < keys; j++) {
                const double w = one * exp(8 * oracle_load(p->type, in[1], j * d + row % d));

                sum += oracle_round(p->type, w) * oracle_load(p->type, in[2], j * d + c);
                weights += w;
            }
            oracle_store(p->type, out, row * d + c, sum / weights);
        }
}

static void test_weights(void)
{
    static const char *const table[] = { "attention:b1h1s16d64:bf16:sk=512",
                                         "attention:b1h1s16d64:f16:sk=64" };
    uint64_t state = 1;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct problem p;
        struct operands o;
        char why[512] = "";
        void *in[OPERANDS] = { NULL };
        struct results ours = { { NULL } }, theirs = { { NULL } };

        check(!problem_parse(&p, table[i], why, sizeof why) && !problem_operands(&o, &p), "%s: %s", table[i],
              why);
        ours.of[3] = calloc((size_t)o.elements[3], sizeof(double));
        theirs.of[3] = calloc((size_t)o.elements[3], sizeof(double));
        for (int k = 1; k < 3; k++)
            in[k] = drawn(p.type, o.elements[k], &state);
        weigh(&p, &o, in, ours.of[3], 1, 0);
        weigh(&p, &o, in, theirs.of[3], 0.7, 0);
        check(results_agree(&p, &o, &ours, &theirs, NULL, why, sizeof why, "it"), "%s %s", table[i], why);
        weigh(&p, &o, in, theirs.of[3], 0.7, o.t[1].extent[2] / 16);
        check(!results_agree(&p, &o, &ours, &theirs, NULL, why, sizeof why, "it"),
              "%s agrees with a sum without some keys", table[i]);
        free(ours.of[3]);
        free(theirs.of[3]);
        free(in[1]);
        free(in[2]);
    }
}

/* ---- a part of a result ---- */

/* The operands, and what the oracle says of them, in their types. */
static void solve(const struct problem *p, struct values *v, struct results *right, uint64_t *state)
{
    struct oracle c = { .p = p, .o = &v->o };
    double *in[OPERANDS] = { NULL };

    for (int i = 0; i < v->o.count; i++) {
        const vn_type type = v->o.t[i].type;
        const int64_t count = v->o.elements[i];

        if (!v->o.t[i].rank)
            continue;
        v->operand[i] = drawn(type, count, state);
        right->of[i]  = calloc((size_t)count, sizeof(double));
        c.value[i]    = calloc((size_t)count, sizeof *c.value[i]);
        c.bound[i]    = calloc((size_t)count, sizeof *c.bound[i]);
        c.in[i] = in[i] = calloc((size_t)count, sizeof *in[i]);
        for (int64_t at = 0; at < count; at++) {
            in[i][at] = oracle_load(type, v->operand[i], at);
            if (p->op->element)
                oracle_store(type, v->operand[i], at, in[i][at] = p->op->element(p, i, at, in[i][at]));
        }
    }
    oracle_run(&c);
    for (int i = 0; i < v->o.count; i++) {
        for (int64_t at = 0; v->o.t[i].rank && is_output(&v->o, i) && at < v->o.elements[i]; at++)
            oracle_store(v->o.t[i].type, right->of[i], at, (double)c.value[i][at]);
        free(in[i]);
        free(c.value[i]);
        free(c.bound[i]);
    }
}

/* What is right passes; what is wrong in the first batch, or in the last, does not. */
static void test_spots(void)
{
    static const char *const table[] = {
        "gemm:50x40x30:f32:nn:batch=3", "attention:b3h4s50d16:f32:hk=2", "attention:b3h2s50d16:f32:causal",
        "attention:b3h2s50d16:f32:len=7:qlen=3", "attention:b3h2s50d16:f32:causal:len=7:qlen=3",
        "attention:b3h2s50d16:f32:causal-first:len=7:qlen=3" };
    uint64_t state = 1;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const int out = i == 0 ? 2 : ATTENTION_OUT;
        struct problem p;
        struct values v = { .operand = { NULL } };
        struct results right = { { NULL } };
        char why[512] = "";

        check(!problem_parse(&p, table[i], why, sizeof why) && !problem_operands(&v.o, &p), "%s: %s",
              table[i], why);
        solve(&p, &v, &right, &state);
        check(!spot_check(&p, &v, &right, why, sizeof why), "%s %s", table[i], why);
        for (int b = 0; b < 3; b += 2) {
            float *const of_batch = (float *)right.of[out] + b * v.o.elements[out] / 3;

            for (int64_t at = 0; at < v.o.elements[out] / 3; at++)
                of_batch[at] += 1;
            check(spot_check(&p, &v, &right, why, sizeof why), "%s: batch %d is wrong, and passes", table[i],
                  b);
            for (int64_t at = 0; at < v.o.elements[out] / 3; at++)
                of_batch[at] -= 1;
        }
        for (int k = 0; k < OPERANDS; k++) {
            free(v.operand[k]);
            free(right.of[k]);
        }
    }
}

int main(void)
{
    test_order_statistics();
    test_summaries();
    test_calibration();
    test_turns();
    test_lead();
    test_steady();
    test_least();
    test_stop();
    test_json();
    test_disturbances();
    test_engines();
    test_roofs();
    test_matrix_engines();
    test_roundings();
    test_weights();
    test_spots();
    printf("%d checks, %d failures\n", checks, failures);
    return failures ? EXIT_FAILURE : 0;
}
