/* SPDX-License-Identifier: Apache-2.0
 *
 * test_costs.c - the estimates of GEMM's plans on a made-up device, by its shipped rows: what makes a product
 * slower makes its estimate longer, and what does not, does not.
 */
#include <stdio.h>
#include <string.h>

#include "core.h"
#include "gemm/gemm.h"

static int cases, failures;

/* In microseconds, of the variant's first row; A and B transposed as BLAS has it. */
static double estimate(const char *variant, vn_type type, int m, int n, int k, const char *trans)
{
    static struct vn_backend backend = { .name = "opencl" };
    static vn_device device = {
        .facts = { .family = "nvidia", .arch = "sm_90", .name = "NVIDIA H100 80GB", .units = 132,
                   .items = 1024, .types = 15, .local_bytes = 232448 } };
    static vn_queue queue = { .workspace_limit = (size_t)1 << 40 };
    static vn_buffer buffer = { .bytes = (size_t)1 << 32 };
    const struct vn_variant *v = vn__gemm_variants;
    struct gemm g = { .head = { .op = "gemm", .type = type }, .m = m, .n = n, .k = k, .batches = 1,
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
    vn__gemm_size_up(&g);
    while (v->name && !vn__is_named(v, variant))
        v++;
    if (!v->name || v->fits(&g, &device.facts) || vn__tune_rates(&rates, &device) ||
        vn__tune_find(row, &count, &device, v, type, g.head.bucket) || v->plan(&plan, &g, row, &site))
        return 0;
    return plan.seconds * 1e6;
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

int main(void)
{
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
    printf("COUNT costs %d\n%d failures\n", cases, failures);
    return failures != 0;
}
