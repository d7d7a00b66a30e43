/* SPDX-License-Identifier: Apache-2.0
 *
 * test_relations.c - what must hold between results, whatever the oracle says.
 *
 * Integers make every sum exact, so that both sides of a relation are equal to the bit:
 *
 *   (A B)^T = B^T A^T          A (B + B') = A B + A B'        A B = A1 B1 + A2 B2 (split along K)
 *   a 1 x 1 convolution is a product of matrices              conv(x + x', w) = conv(x, w) + conv(x', w)
 *   <conv(x, w), dy> = <x, backward data(dy, w)> = <w, backward filter(x, dy)>
 *   softmax(x + c) = softmax(x)    its rows sum to 1    in place is as out of place
 *   a result that is stored past a CPU's caches is that of a sum made here
 *   (A B) v = A (B v), also where A is larger than a CPU's caches
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "check/oracle.h"
#include "problem/conv.h"
#include "problem/gemm.h"
#include "problem/softmax.h"
#include "../start.h"
#include "check/suite.h"

enum { ELEMENTS = 1 << 14 };

static vn_device *device;
static vn_queue  *queue;
static vn_buffer *buffers[3];
static long       cases, failures;
static struct random source = { 7 };

static void check(int right, const char *relation, const struct problem *p)
{
    char text[PROBLEM_TEXT];

    cases++;
    if (right || failures++ > 20)
        return;
    problem_format(text, p);
    printf("not ok: %s: %s %s\n", relation, text, vn_last_error());
}

/* ---- numbers to the device and back ------------------------------------------- */

static void draw(double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = (double)(1 + random_below(&source, 3)) * (random_chance(&source, 0.5) ? -1 : 1);
}

static int put(int which, vn_type t, const double *v, int64_t n)
{
    static double room[ELEMENTS];

    for (int64_t i = 0; i < n; i++)
        oracle_store(t, room, i, v[i]);
    return vn_write(queue, buffers[which], 0, room, (size_t)n * vn_type_bytes(t)) != VN_OK;
}

/* The operands in, the output out (what it was before, for beta).  0 if all went well. */
static int compute(double *out, const struct problem *p, const double *first, const double *second)
{
    static double room[ELEMENTS];
    const double *const in[3] = { first, second, out };
    struct operands o;

    if (problem_operands(&o, p))
        return -1;
    for (int i = 0; i < o.count; i++) {
        if (o.elements[i] > ELEMENTS || put(i, p->type, i == o.output ? out : in[i], o.elements[i]))
            return -1;
        o.t[i].buffer = buffers[i];
    }
    if (problem_run(queue, p, &o)
        || vn_read(queue, room, buffers[o.output], 0, operand_bytes(&o, o.output)))
        return -1;
    for (int64_t i = 0; i < o.elements[o.output]; i++)
        out[i] = oracle_load(p->type, room, i);
    return 0;
}

static struct problem problem(const char *text)
{
    struct problem p;
    char why[256];

    if (problem_parse(&p, text, why, sizeof why)) {
        printf("not ok: %s\n", why);
        failures++;
    }
    return p;
}

static int64_t size(int64_t largest)
{
    return 1 + random_below(&source, largest);
}

static void add(double *out, const double *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

static int equal(const double *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return 0;
    return 1;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- matrices --------------------------------------------------------------------- */

static double a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], d[ELEMENTS], e[ELEMENTS], f[ELEMENTS];

/* (A B)^T = B^T A^T, the transposes being strides. */
static void transposed(struct problem p)
{
    struct problem t = p;
    const struct gemm_problem *const g = gemm_of(&p);

    gemm_of(&t)->m = g->n, gemm_of(&t)->n = g->m;
    gemm_of(&t)->trans = TRANS_A | TRANS_B | TRANS_C;
    draw(a, g->m * g->k);
    draw(b, g->k * g->n);
    check(!compute(c, &p, a, b) && !compute(d, &t, b, a) && equal(c, d, g->m * g->n),
          "(A B)^T = B^T A^T", &p);
}

static void linear(struct problem p)
{
    const struct gemm_problem *const g = gemm_of(&p);
    const int64_t n = g->m * g->n;

    draw(a, g->m * g->k);
    draw(b, g->k * g->n);
    draw(c, g->k * g->n);
    add(f, b, c, g->k * g->n);
    check(!compute(d, &p, a, b) && !compute(e, &p, a, c) && !compute(f + ELEMENTS / 2, &p, a, f)
          && (add(d, d, e, n), equal(d, f + ELEMENTS / 2, n)), "A (B + B') = A B + A B'", &p);
}

/* The second half of K is added to the first by beta. */
static void split(struct problem p)
{
    struct problem first = p, second = p;
    struct gemm_problem *const g = gemm_of(&p), *const g1 = gemm_of(&first), *const g2 = gemm_of(&second);

    g1->k = g->k / 2;
    g2->k = g->k - g1->k;
    second.beta = 1;
    g->trans = g1->trans = g2->trans = TRANS_A;                 /* then halves of A are contiguous */
    draw(a, g->m * g->k);
    draw(b, g->k * g->n);
    check(!compute(c, &p, a, b) && !compute(d, &first, a, b)
          && !compute(d, &second, a + g1->k * g->m, b + g1->k * g->n) && equal(c, d, g->m * g->n),
          "A B = A1 B1 + A2 B2", &p);
}

/* ---- convolutions --------------------------------------------------------------------- */

/* y = W x, image by image */
static void pointwise(vn_type type)
{
    struct problem p = problem("conv:n2c3h4w5k6r1s1:f32"),
                   product = problem("gemm:6x20x3:f32:nn:batch=2:share=a");
    struct conv_problem *const o = conv_of(&p);
    struct gemm_problem *const g = gemm_of(&product);

    p.type = product.type = type;
    g->k = o->c = size(20);
    g->m = o->filters = size(20);
    o->size[1] = o->out[1] = size(7);
    o->size[2] = o->out[2] = size(7);
    g->n = o->size[1] * o->size[2];
    draw(a, o->images * o->c * g->n);
    draw(b, o->filters * o->c);
    check(!compute(c, &p, a, b) && !compute(d, &product, b, a) && equal(c, d, o->images * o->filters * g->n),
          "a 1 x 1 convolution is a product", &p);
}

static struct problem random_conv(vn_type type)
{
    static const char *const texts[] = {
        "conv:n2c3h9w8k4r3s3:f32:pad=1", "conv:n1c4h11w7k6r3s2:f32:stride=2x1:pad=1x0",
        "conv:n2c4w17k4s4:f32:dil=2",
        "conv:n3c4h6w6k8r3s3:f32:groups=2:pad=0-1:nhwc", "conv:n2c5h7w7k5r3s3:f32:groups=5:pad=2:dil=2",
        "conv:n1c2d5h4w6k3t2r2s3:f32:pad=1x0x1", "conv:n2c7h8w9k3r5s1:f32:stride=3x2:pad=2x0-1:nhwc" };
    struct problem p = problem(RANDOM_OF(&source, texts));

    p.type = type;
    return p;
}

static void conv_linear(vn_type type)
{
    const struct problem p = random_conv(type);
    struct operands o;

    problem_operands(&o, &p);
    draw(a, o.elements[0]);
    draw(b, o.elements[0]);
    draw(c, o.elements[1]);
    add(f, a, b, o.elements[0]);
    check(!compute(d, &p, a, c) && !compute(e, &p, b, c) && !compute(a, &p, f, c)
          && (add(d, d, e, o.elements[2]), equal(a, d, o.elements[2])),
          "conv(x + x') = conv(x) + conv(x')", &p);
}

static void adjoint(vn_type type)
{
    const struct problem p = random_conv(type);
    struct problem data = p, filter = p;
    struct operands o;

    data.direction   = BACKWARD_DATA;
    filter.direction = BACKWARD_FILTER;
    problem_operands(&o, &p);
    draw(a, o.elements[0]);                                     /* x, w, dy; y, dx, dw */
    draw(b, o.elements[1]);
    draw(c, o.elements[2]);
    if (compute(d, &p, a, b) || compute(e, &data, c, b) || compute(f, &filter, a, c)) {
        check(0, "adjoint", &p);
        return;
    }
    check(dot(d, c, o.elements[2]) == dot(a, e, o.elements[0]), "<conv(x, w), dy> = <x, dx>", &p);
    check(dot(d, c, o.elements[2]) == dot(b, f, o.elements[1]), "<conv(x, w), dy> = <w, dw>", &p);
}

/* ---- softmax ------------------------------------------------------------------------------ */

/* x and c are multiples of 1/8, so that x + c is exact and each difference stays the same. */
static void shifted(struct problem p)
{
    const int64_t n = softmax_of(&p)->rows * softmax_of(&p)->n;

    for (int64_t i = 0; i < n; i++) {
        a[i] = (double)random_below(&source, 64) / 8;
        b[i] = a[i] + 8;
    }
    check(!compute(c, &p, a, NULL) && !compute(d, &p, b, NULL) && equal(c, d, n),
          "softmax(x + 8) = softmax(x)", &p);
}

/* Within what the roundings of n numbers, and of the sum that divided them, may add up to. */
static void sums_to_one(struct problem p)
{
    static const double half_ulp[] = { [VN_F32] = 0x1p-24, [VN_F16] = 0x1p-11, [VN_BF16] = 0x1p-8,
                                       [VN_F64] = 0x1p-53 };
    const double slack = half_ulp[p.type] + (p.type == VN_F64 ? 0x1p-53 : 0x1p-24)
                                         * (double)(7 * softmax_of(&p)->n + 12)
                       + (p.type == VN_F16 ? 0x1p-25 * (double)softmax_of(&p)->n : 0);
    int right;

    for (int64_t i = 0; i < softmax_of(&p)->rows * softmax_of(&p)->n; i++)
        a[i] = oracle_round(p.type, random_real(&source, -1, 1));
    right = !compute(b, &p, a, NULL);
    for (int64_t row = 0; row < softmax_of(&p)->rows && right; row++) {
        double sum = 0;

        for (int64_t i = 0; i < softmax_of(&p)->n; i++)
            sum += b[row * softmax_of(&p)->n + i];
        right = fabs(sum - 1) <= slack;
    }
    check(right, "a row sums to 1", &p);
}

static void in_place(struct problem p)
{
    static double room[ELEMENTS];
    struct operands o;
    const int64_t n = softmax_of(&p)->rows * softmax_of(&p)->n;
    int right;

    for (int64_t i = 0; i < n; i++)
        a[i] = oracle_round(p.type, random_real(&source, -4, 4));
    problem_operands(&o, &p);
    right = !compute(b, &p, a, NULL) && !put(0, p.type, a, n);
    o.t[0].buffer = o.t[1].buffer = buffers[0];
    right = right && !problem_run(queue, &p, &o)
            && !vn_read(queue, room, buffers[0], 0, (size_t)n * vn_type_bytes(p.type));
    for (int64_t i = 0; i < n && right; i++)
        right = oracle_load(p.type, room, i) == b[i];
    check(right, "in place is as out of place", &p);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void run_matrices(vn_type type)
{
    struct problem p = problem("gemm:1x1x1:f32:nn");

    p.type = type;
    gemm_of(&p)->m = size(40);
    gemm_of(&p)->n = size(40);
    gemm_of(&p)->k = size(type == VN_BF16 ? 14 : 60);           /* exact as stored */
    transposed(p);
    linear(p);
    split(p);
}

static void run_softmax(vn_type type)
{
    struct problem p = problem("softmax:1x1:f32");

    p.type = type;
    softmax_of(&p)->rows = size(6);
    softmax_of(&p)->n    = size(random_chance(&source, 0.5) ? 40 : 1500);
    sums_to_one(p);
    in_place(p);
    shifted(p);
    softmax_of(&p)->log = 1;
    in_place(p);
}

/* ---- results larger than the caches ------------------------------------------------------ */

/* C = A B, of integers, where A is larger than vn__cache_bytes(), so that C is computed in several blocks of
 * rows: C v and A (B v) are the same. */
static void blocks_of_rows(const char *variant)
{
    enum { N = 203, K = 1030, MOST = 1 << 26 };
    const vn_gemm_options options = { .variant = variant };
    const int64_t m = (int64_t)(vn__cache_bytes(queue) / (K * sizeof(float))) + 305;
    const size_t bytes[] = { (size_t)m * K * sizeof(float), K * N * sizeof(float),
                             (size_t)m * N * sizeof(float) };
    float *x[3] = { NULL, NULL, NULL };
    int64_t v[N], bv[K] = { 0 }, wrong = 0;
    vn_buffer *to[3];

    if (strcmp(device->facts.family, "cpu") || device->facts.vector < 2 || bytes[0] > MOST)
        return;                                 /* it is for CPUs, and not for the largest */
    for (int i = 0; i < 3; i++)
        if (!(x[i] = calloc(bytes[i], 1)) || vn_buffer_open(&to[i], device, bytes[i]))
            exit(1);
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < bytes[i] / sizeof(float); j++)
            x[i][j] = (float)((int)random_below(&source, 7) - 3);
    for (int j = 0; j < N; j++)
        v[j] = (int64_t)random_below(&source, 2001) - 1000;
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++)
            bv[k] += (int64_t)x[1][k * N + j] * v[j];
    if (vn_write(queue, to[0], 0, x[0], bytes[0]) || vn_write(queue, to[1], 0, x[1], bytes[1]) ||
        vn_gemm(queue, 1, vn_matrix(to[0], VN_F32, m, K), vn_matrix(to[1], VN_F32, K, N), 0,
                vn_matrix(to[2], VN_F32, m, N), &options) ||
        vn_read(queue, x[2], to[2], 0, bytes[2]))
        wrong++;
    for (int64_t i = 0; i < m && !wrong; i++) {
        int64_t of_c = 0, of_a = 0;

        for (int j = 0; j < N; j++)
            of_c += (int64_t)x[2][i * N + j] * v[j];
        for (int k = 0; k < K; k++)
            of_a += (int64_t)x[0][i * K + k] * bv[k];
        wrong += of_c != of_a;
    }
    cases++;
    failures += wrong != 0;
    if (wrong)
        printf("not ok: an A past the caches, %s: %s\n", variant, vn_last_error());
    for (int i = 0; i < 3; i++) {
        vn_buffer_close(to[i]);
        free(x[i]);
    }
}

/* C = A B likewise in 16 bits, whose sums, of three products of integers up to 3, are exact; by kernels that
 * store past the caches, most of them vectors in pairs.  Between C's rows are `gap` elements.  The buffers
 * are those of f32. */
static void past_caches_in(vn_type type, vn_buffer **to, const float *left, const float *right, int64_t m,
                           int64_t n, int64_t k, int64_t gap)
{
    static const char *const variants[] = { "gemm_cpu", "gemm_cpu_unpacked", "gemm_cpu_direct",
                                            "gemm_cpu_narrow" };
    const int64_t row = n + gap;
    uint16_t *l = malloc((size_t)(m * k) * sizeof *l), *r = malloc((size_t)(k * n) * sizeof *r);
    uint16_t *sums = malloc((size_t)(m * row) * sizeof *sums);
    vn_tensor out = vn_matrix(to[2], type, m, n);

    out.stride[0] = row;
    for (int64_t i = 0; l && i < m * k; i++)
        oracle_store(type, l, i, left[i]);
    for (int64_t i = 0; r && i < k * n; i++)
        oracle_store(type, r, i, right[i]);
    for (size_t v = 0; l && r && sums && v < sizeof variants / sizeof *variants; v++) {
        const vn_gemm_options options = { .size = sizeof options, .variant = variants[v] };
        int64_t wrong = 0;
        vn_status status;

        memset(sums, 0, (size_t)(m * row) * sizeof *sums);
        vn_write(queue, to[0], 0, l, (size_t)(m * k) * sizeof *l);
        vn_write(queue, to[1], 0, r, (size_t)(k * n) * sizeof *r);
        vn_write(queue, to[2], 0, sums, (size_t)(m * row) * sizeof *sums);
        status = vn_gemm(queue, 1, vn_matrix(to[0], type, m, k), vn_matrix(to[1], type, k, n), 0, out,
                         &options);
        if (status == VN_UNSUPPORTED)
            continue;                           /* a device without vectors */
        if (status || vn_read(queue, sums, to[2], 0, (size_t)(m * row) * sizeof *sums))
            wrong++;
        for (int64_t i = 0; i < m * row && !wrong; i++) {
            const int64_t x = i % row;

            wrong += oracle_load(type, sums, i) != (x >= n ? 0 : left[i / row * k] * right[x] +
                                                              left[i / row * k + 1] * right[n + x] +
                                                              left[i / row * k + 2] * right[2 * n + x]);
        }
        cases++;
        failures += wrong != 0;
        if (wrong)
            printf("not ok: past the caches in %s, rows %lld apart, %s: %s\n", vn_type_name(type),
                   (long long)row, variants[v], vn_last_error());
    }
    free(l);
    free(r);
    free(sums);
}

/* C = A B, of integers, where C is what vn__is_past_caches() asks for, and little more; as a product, and as
 * a convolution of 1 x 1 whose pixels are the columns. */
static void past_caches(void)
{
    enum { H = 32, W = 64, N = H * W, K = 3, MOST = 1 << 26 };
    const vn_conv_options slab = { .variant = "conv_slab" };
    int64_t m = 13;

    for (vn_tensor t = vn_matrix(NULL, VN_BF16, m, N); !vn__is_past_caches(queue, &t); m = t.extent[0])
        t.extent[0] += 64;

    float *left = malloc((size_t)m * K * sizeof *left), *right = malloc(K * N * sizeof *right), *sums = NULL;
    const size_t bytes[] = { (size_t)m * K * sizeof *left, K * N * sizeof *right,
                             (size_t)m * N * sizeof *sums };
    vn_buffer *to[3];

    if (strcmp(device->facts.family, "cpu") || bytes[2] > MOST || !left || !right ||
        !(sums = malloc(bytes[2]))) {
        free(left);
        free(right);
        return;                                 /* it is for CPUs, and not for the largest */
    }
    for (int64_t i = 0; i < m * K; i++)
        left[i] = (float)((int)random_below(&source, 7) - 3);
    for (int64_t i = 0; i < K * N; i++)
        right[i] = (float)((int)random_below(&source, 7) - 3);
    for (int i = 0; i < 3; i++)
        if (vn_buffer_open(&to[i], device, bytes[i]))
            exit(1);
    vn_write(queue, to[0], 0, left, bytes[0]);
    vn_write(queue, to[1], 0, right, bytes[1]);

    const vn_tensor x = vn_packed(to[1], VN_F32, 4, (int64_t[]){ 1, K, H, W });
    const vn_tensor w = vn_packed(to[0], VN_F32, 4, (int64_t[]){ m, K, 1, 1 });
    const vn_tensor y = vn_packed(to[2], VN_F32, 4, (int64_t[]){ 1, m, H, W });

    for (int is_conv = 0; is_conv < 2; is_conv++) {
        int64_t wrong = 0;

        memset(sums, 0, bytes[2]);
        if (vn_write(queue, to[2], 0, sums, bytes[2]) ||
            (is_conv ? vn_conv_forward(queue, 1, x, w, 0, y, &slab)
                     : vn_gemm(queue, 1, vn_matrix(to[0], VN_F32, m, K), vn_matrix(to[1], VN_F32, K, N), 0,
                               vn_matrix(to[2], VN_F32, m, N), NULL)) ||
            vn_read(queue, sums, to[2], 0, bytes[2]))
            wrong++;
        for (int64_t i = 0; i < m * N && !wrong; i++)
            wrong += sums[i] != left[i / N * K] * right[i % N] + left[i / N * K + 1] * right[N + i % N] +
                                left[i / N * K + 2] * right[2 * N + i % N];
        cases++;
        failures += wrong != 0;
        if (wrong)
            printf("not ok: past the caches, %s: %s\n", is_conv ? "conv_slab" : "gemm", vn_last_error());
    }
    for (int gap = 0; gap <= 16; gap += 16) {   /* rows begin at lines; each second one amid one */
        past_caches_in(VN_BF16, to, left, right, m, N, K, gap);
        past_caches_in(VN_F16, to, left, right, m, N, K, gap);
    }
    for (int i = 0; i < 3; i++)
        vn_buffer_close(to[i]);
    free(left);
    free(right);
    free(sums);
}

int main(void)
{
    const int status = start(&device, &queue);
    vn_device_info info;

    if (status || vn_device_describe(&info, device))
        return status ? status : 1;
    for (int i = 0; i < 3; i++)
        if (vn_buffer_open(&buffers[i], device, ELEMENTS * sizeof(double)))
            return 1;
    for (int i = 0; i < 100; i++)
        for (int t = 0; t < VN_TYPE_COUNT; t++) {
            if (t == VN_F64 && !info.has_f64)
                continue;
            run_matrices((vn_type)t);
            run_softmax((vn_type)t);
            if (t == VN_F32 || t == VN_F64) {                   /* sums of so many are not exact in 16 bits */
                pointwise((vn_type)t);
                conv_linear((vn_type)t);
                adjoint((vn_type)t);
            }
        }
    past_caches();
    blocks_of_rows("gemm_cpu");
    blocks_of_rows("gemm_cpu_packed");
    for (int i = 0; i < 3; i++)
        vn_buffer_close(buffers[i]);
    vn_queue_close(queue);
    vn_device_close(device);
    printf("%ld cases, %ld failed\nCOUNT relations %ld\n", cases, failures, cases);
    return failures != 0;
}
