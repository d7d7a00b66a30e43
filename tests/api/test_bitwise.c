/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bitwise.c - math=bitwise: the same bits from every device that there is.
 *
 * Runs each problem on every OpenCL implementation at hand, by each variant that fits, and
 * compares the results.
 */
#include <stdlib.h>
#include <string.h>

#include "check/suite.h"
#include "../trial.h"

enum { DEVICES = 8, BYTES = 1 << 16 };

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

struct outcome { unsigned char bytes[BYTES]; char by[128]; int known; };

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

static void compare(struct outcome *first, const unsigned char *result, const char *text, const char *by,
                    size_t bytes)
{
    size_t at = 0;

    if (!first->known) {
        memcpy(first->bytes, result, BYTES);
        snprintf(first->by, sizeof first->by, "%s", by);
        first->known = 1;
        return;
    }
    while (at < bytes && first->bytes[at] == result[at])
        at++;
    if (at == bytes)
        return;
    failures++;
    printf("not ok: %s: %s and %s differ from byte %zu of %zu on\n", text, first->by, by, at, bytes);
}

static void try_text(const char *text)
{
    static struct outcome first;
    static unsigned char  result[BYTES];
    static const struct suite usual = { .extent = SUITE_USUAL };

    first.known = 0;
    for (int i = 0; i < place_count; i++) {
        struct trial t;

        if (trial_open(&t, places[i].device, places[i].queue, text) || t.bytes > BYTES) {
            failures++;
            continue;
        }
        trial_close(&t);
        for (const char *v = suite_next_variant(&usual, t.p.op, NULL); v;
             v = suite_next_variant(&usual, t.p.op, v)) {
            char by[128];

            if (trial_open(&t, places[i].device, places[i].queue, text))     /* anew: beta reads the output */
                break;
            snprintf(by, sizeof by, "%s on %.60s", *v ? v : "the choice", places[i].info.platform);
            if (run(result, &t, &places[i], v) == 0)
                compare(&first, result, text, by, t.bytes);
            trial_close(&t);
        }
    }
}

int main(void)
{
    setenv("RUSTICL_ENABLE", "llvmpipe", 0);      /* without it rusticl offers no CPU */
    open_places();
    if (place_count < 2) {
        printf("skipped: needs two OpenCL implementations, such as pocl-opencl-icd and mesa-opencl-icd\n");
        return 77;
    }
    for (int i = 0; i < place_count; i++)
        printf("on %s (%s)\n", places[i].info.name, places[i].info.platform);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        try_text(texts[i]);
    for (int i = 0; i < place_count; i++) {
        vn_queue_close(places[i].queue);
        vn_device_close(places[i].device);
    }
    printf("%ld cases, %ld failed\nCOUNT bitwise %ld\n", cases, failures, cases);
    return failures != 0;
}
