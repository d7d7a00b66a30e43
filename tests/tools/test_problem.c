/* SPDX-License-Identifier: Apache-2.0
 *
 * test_problem.c - the little language of problems, and the numbers of the oracle.
 * Needs no device.
 */
#include <math.h>
#include <string.h>

#include "check/oracle.h"
#include "problem/problem.h"

static int checks, failures;

static void check(int right, const char *what, const char *text)
{
    checks++;
    if (!right) {
        failures++;
        printf("not ok: %s: %s\n", what, text);
    }
}

/* ---- texts, and how they are written ------------------------------------------ */

static const struct { const char *text, *canonical; } right[] = {     /* NULL: as it is */
    { "gemm:2048x2048x2048:f32:nn", NULL },
    { "gemm:17x33x5:f16:tn:beta=2:variant=gemm_cpu:gap=3", NULL },
    { "gemm:17x33x5:f32:nt:packed:beta=2", NULL },
    { "gemm:17x33x5:f16:tn:beta=2:gap=3:variant=gemm_cpu",
      "gemm:17x33x5:f16:tn:beta=2:variant=gemm_cpu:gap=3" },
    { "gemm:1x2x3:f64", "gemm:1x2x3:f64:nn" },
    { "gemm:0x2x3:bf16:ntt:batch=0", NULL },
    { "gemm:4x5x6:bf16:tt:batch=3:share=ab:alpha=0.1:beta=-1.5:bias=full:act=gelu:math=tf32:gap=1:start=9",
      NULL },
    { "gemm:4x5x6:f32:share=b:bias=col:act=identity:math=default", "gemm:4x5x6:f32:nn:share=b:bias=col" },
    { "gemm:4x5x6:f32:alpha=1:beta=0:batch=1:gap=0", "gemm:4x5x6:f32:nn" },
    { "conv:n64c64h56w56k64r3s3:f32:pad=1:nchw:forward", NULL },
    { "conv:n64c64h56w56k64r3s3:f32:forward:pad=1x1", "conv:n64c64h56w56k64r3s3:f32:pad=1:nchw:forward" },
    { "conv:k64r3s3n64c64h56w56:f32:pad=1-1", "conv:n64c64h56w56k64r3s3:f32:pad=1:nchw:forward" },
    { "conv:n1c2w9k4s3:f16:dil=2:nhwc:backward-filter", NULL },
    { "conv:n1c2h9w9k4r3s3:bf16:stride=1x2:pad=0-1x2-3:groups=2:nhwc:backward-data:bias=row", NULL },
    { "conv:n1c2h9w9k4r3s3:bf16:bias", "conv:n1c2h9w9k4r3s3:bf16:nchw:forward:bias=row" },
    { "conv:n1c2d4h5w6k4t2r3s1:f64:stride=1x2x3:dil=2x1x1:pad=1x0x0-2:nchw:forward:act=silu", NULL },
    { "softmax:4096x128256:f16", NULL },
    { "softmax:4x8:f16:gap=1:beside=rows", NULL },
    { "gemm:4x5x6:f32:beside=blocks:start=2", "gemm:4x5x6:f32:nn:start=2:beside=blocks" },
    { "gemm:4x5x6:f32:beside=apart", "gemm:4x5x6:f32:nn" },
    { "softmax:12x5:f32:backward:log:batch=2:inner=3:scale=0.125", NULL },
    { "softmax:12x5:f32:forward:causal:mask=row", "softmax:12x5:f32:causal:mask=row" },
};

static const char *const wrong[] = {
    "", ":", "gemm", "gemm:", "gemm:1x2x3", "gemm:1x2x3:", "gemm:1x2:f32", "gemm:1x2x3x4:f32",
    "gemm:1x-2x3:f32",
    "gemm: 1x2x3:f32", "gemm:1x2x3:f31", "gemm:1x2x3:f32:", "gemm:1x2x3:f32:nx", "gemm:1x2x3:f32:n",
    "gemm:1x2x3:f32:nnnn", "gemm:1x2x3:f32:alpha", "gemm:1x2x3:f32:alpha=", "gemm:1x2x3:f32:alpha=1x",
    "gemm:1x2x3:f32:batch=-1", "gemm:1x2x3:f32:batch=1.5", "gemm:1x2x3:f32:gap=99999999999999999999",
    "gemm:1x2x3:f32:act=swish", "gemm:1x2x3:f32:bias=maybe", "gemm:1x2x3:f32:share=c",
    "gemm:1x2x3:f32:variant=",
    "gemm:1x2x3:f32:variant=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "gemm:1x2x3:f32:causal",
    "gemm:1x2x3:f32:stride=2", "gemm:9223372036854775808x1x1:f32", "gemm:4611686018427387904x4x1:f32",
    "gemm:4611686018427387904x1x1:f32:tn:gap=1:batch=3", "gemms:1x2x3:f32", "GEMM:1x2x3:f32",
    "conv:n1c2h9w9k4r3:f32", "conv:n1c2h9w9k4r3s:f32", "conv:n1c2h9w9k4r3s3s3:f32",
    "conv:n1c2h9w9k4r3s3q1:f32",
    "conv::f32:nhwc", "conv::f32", "conv:n1c2k4:f32",
    "conv:n1c2h9k4r3:f32", "conv:n1c2d9w9k4t3s3:f32", "conv:n1c2h9w9k4r0s3:f32",
    "conv:n1c2h9w9k4r3s3:f32:groups=3",
    "conv:n1c2h9w9k4r3s3:f32:groups=0", "conv:n1c2h9w9k4r3s3:f32:stride=0",
    "conv:n1c2h9w9k4r3s3:f32:stride=1x2x3",
    "conv:n1c2h9w9k4r3s3:f32:stride=1x", "conv:n1c2h9w9k4r3s3:f32:pad=-1", "conv:n1c2h9w9k4r3s3:f32:pad=1-",
    "conv:n1c2h9w9k4r3s3:f32:stride=1-2", "conv:n1c2h1w1k4r3s3:f32", "conv:n1c2h9w9k4r3s3:f32:backward",
    "conv:n1c2h9w9k4r3s3:f32:dil=4294967296", "conv:n1c2h9w9k4r4611686018427387904s3:f32:dil=3",
    "softmax:3:f32", "softmax:3x4x5:f32", "softmax:3x4:f32:beta=1", "softmax:3x4:f32:inner=2",
    "softmax:3x4:f32:inner=0",
    "softmax:4x4:f32:inner=2:causal", "softmax:3x4:f32:mask=both", "softmax:3x4:f32:backward-data",
};

static void test_texts(void)
{
    struct problem p, again;
    char why[512], text[PROBLEM_TEXT];

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        const char *canonical = right[i].canonical ? right[i].canonical : right[i].text;

        if (problem_parse(&p, right[i].text, why, sizeof why)) {
            check(0, right[i].text, why);
            continue;
        }
        problem_format(text, &p);
        check(!strcmp(text, canonical), right[i].text, text);
        check(problem_parse(&again, text, why, sizeof why) == 0 && !memcmp(&p, &again, sizeof p),
              "round trip", text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        strcpy(why, "");
        check(problem_parse(&p, wrong[i], why, sizeof why) == -1, "accepted", wrong[i]);
        check(strlen(why) > 20, "says little", wrong[i]);
    }
}

/* Whatever one byte more, less or other makes of a text: an answer, and no crash. */
static void test_damage(void)
{
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        for (size_t at = 0; at < strlen(right[i].text); at++)
            for (int c = 0; c < 128; c++) {
                struct problem p, again;
                char text[PROBLEM_TEXT], why[512];

                strcpy(text, right[i].text);
                text[at] = (char)c;
                if (problem_parse(&p, text, why, sizeof why))
                    continue;
                problem_format(text, &p);
                check(problem_parse(&again, text, why, sizeof why) == 0 && !memcmp(&p, &again, sizeof p),
                      "round trip of a damaged text", text);
            }
}

/* ---- operands ---------------------------------------------------------------------- */

static void test_operands(void)
{
    static const struct {
        const char *text;
        int64_t elements[3], first_stride;
        double flops, bytes;
    } table[] = {
        { "gemm:17x33x5:f32:tn:gap=3",                 { 97, 177, 609 },  1, 5610, 4 * (85 + 165 + 561) },
        { "gemm:2x3x4:f32:nt:batch=3:share=ab:gap=2:start=1", { 11, 17, 29 }, 0, 144, 4 * (8 + 12 + 18) },
        { "gemm:2x3x4:f16:beta=1:bias=row",            { 8, 12, 6 },      4, 48, 2 * (8 + 12 + 6 + 6 + 3) },
        { "gemm:0x3x4:f16:start=5",                    { 5, 17, 5 },      4, 0, 2 * 12 },
        { "conv:n2c4h5w6k8r3s3:f64:nhwc:groups=2:bias", { 240, 144, 192 }, 120, 2 * 192 * 18,
          8 * (240 + 144 + 192 + 8) },
        { "conv:n2c4h5w6k8r3s3:f64:backward-data",     { 192, 288, 240 }, 96, 2 * 192 * 36,
          8 * (192 + 288 + 240) },
        { "conv:n2c4w6k8s3:f64:backward-filter:stride=2", { 48, 32, 96 }, 24, 2 * 32 * 12,
          8 * (48 + 32 + 96) },
        { "softmax:12x5:f32:inner=3:backward:batch=2", { 120, 120, 120 }, 60, 600, 4 * 360 },
        { "softmax:3x5:f32:mask=row",                  { 15, 15, 0 },     5, 90, 4 * 35 },
        { "softmax:3x5:f32:gap=1:start=2:beside=rows", { 37, 37, 0 },     12, 90, 4 * 30 },
        { "gemm:2x3x4:f32:batch=3:beside=blocks",      { 78, 78, 78 },    26, 144, 4 * (24 + 36 + 18) },
        { "gemm:2x3x4:f32:tn:beside=rows",             { 29, 29, 29 },    1, 48, 4 * (8 + 12 + 6) },
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct problem  p;
        struct operands o;
        char why[512];

        if (problem_parse(&p, table[i].text, why, sizeof why) || problem_operands(&o, &p)) {
            check(0, table[i].text, why);
            continue;
        }
        check(!memcmp(o.elements, table[i].elements, sizeof table[i].elements), "elements", table[i].text);
        check(o.t[0].stride[0] == table[i].first_stride, "stride", table[i].text);
        check(problem_flops(&p) == table[i].flops, "flops", table[i].text);
        check(problem_bytes(&p) == table[i].bytes, "bytes", table[i].text);
    }
}

/* ---- numbers ---------------------------------------------------------------------------- */

/* Every 16-bit pattern comes back from its value; between two neighbours, the nearer, and
 * of two as near the even one.                                                            */
static void test_numbers(vn_type t, int infinite)
{
    char what[32];

    for (int bits = 0; bits < 65536; bits++) {
        uint16_t in = (uint16_t)bits, out = 0;
        const double v = oracle_load(t, &in, 0);

        snprintf(what, sizeof what, "%s 0x%04x", vn_type_name(t), bits);
        oracle_store(t, &out, 0, v);
        check(isnan(v) ? isnan(oracle_load(t, &out, 0)) : in == out, "store of load", what);
        if ((bits & 0x7fff) >= infinite - 1)                    /* the largest has infinity above it */
            continue;

        const uint16_t next = (uint16_t)(in + 1);
        const double   half = (v + oracle_load(t, &next, 0)) / 2;

        oracle_store(t, &out, 0, half);
        check(out == (in & 1 ? next : in), "half way", what);
        oracle_store(t, &out, 0, nextafter(half, v));
        check(out == in, "below half way", what);
        check(oracle_round(t, half) == (in & 1 ? oracle_load(t, &next, 0) : v), "round", what);
    }
}

int main(void)
{
    test_texts();
    test_damage();
    test_operands();
    test_numbers(VN_F16, 0x7c00);
    test_numbers(VN_BF16, 0x7f80);
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}
