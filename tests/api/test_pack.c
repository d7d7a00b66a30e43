/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pack.c - a packed B, or filter, gives the very bits of one that is not, and costs the queue nothing.
 *
 * By every variant that lays it out, in every type: one pack, products of several A with rows of their own,
 * or convolutions of several images.  That the pack is what they read is shown by what B holds meanwhile,
 * zeros.
 */
#include <stdlib.h>
#include <string.h>

#include "gemm/gemm.h"
#include "check/oracle.h"
#include "../start.h"
#include "check/suite.h"

enum { N = 70, K = 300, MOST = 150, PITCH = K + 3 };

static vn_device *device;
static vn_queue  *queue;
static vn_buffer *a, *b, *c;
static long       cases, failures;

static void check(int right, const char *what, const char *variant, vn_type type, int64_t m)
{
    cases++;
    if (right)
        return;
    failures++;
    printf("not ok: %s: %s, %s, %lld rows %s\n", what, variant, vn_type_name(type), (long long)m,
           vn_last_error());
}

static vn_buffer *filled(vn_type type, int64_t elements, uint64_t seed)
{
    const size_t bytes = (size_t)elements * vn_type_bytes(type);
    struct random r = { seed };
    void *const host = calloc(1, bytes);
    vn_buffer *out = NULL;

    for (int64_t i = 0; host && i < elements; i++)
        oracle_store(type, host, i, random_real(&r, -1, 1));
    if (!host || vn_buffer_open(&out, device, bytes) || vn_write(queue, out, 0, host, bytes))
        failures++;
    free(host);
    return out;
}

static void clear(vn_buffer *buffer)
{
    void *const zeros = calloc(1, buffer->bytes);

    if (!zeros || vn_write(queue, buffer, 0, zeros, buffer->bytes))
        failures++;
    free(zeros);
}

/* Columns of B that run along memory, apart from each other. */
static vn_tensor columns(vn_type type)
{
    vn_tensor t = vn_transpose(vn_matrix(b, type, N, K));

    t.stride[1] = PITCH;
    return t;
}

/* The product of rows of A from `first` on; what its workspace and packed bytes were. */
static vn_status product(void *out, vn_type type, int64_t first, int64_t m, const vn_gemm_options *o)
{
    vn_tensor rows = vn_matrix(a, type, m, K);
    vn_status s;

    rows.start = first * K;
    s = vn_gemm(queue, 1, rows, columns(type), 0, vn_matrix(c, type, m, N), o);
    return s ? s : vn_read(queue, out, c, 0, (size_t)(m * N) * vn_type_bytes(type));
}

static void test_variant(const struct vn_variant *v, vn_type type, vn_math math)
{
    static const struct { int64_t first, m; } uses[] = { { 0, 40 }, { 7, 3 }, { 20, 130 } };
    static double plain[3][MOST * N], packed[MOST * N];
    vn_gemm_options o = { .math = math, .variant = v->name };
    size_t workspace[3];
    vn_status s = VN_OK;
    vn_pack *p = NULL;

    for (int i = 0; i < 3 && s == VN_OK; i++) {
        s = product(plain[i], type, uses[i].first, uses[i].m, &o);
        workspace[i] = queue->workspace_used;
    }
    if (s == VN_UNSUPPORTED)
        return;                                 /* not on this device, or not in this type */
    check(s == VN_OK && vn_pack_open(&p, queue, columns(type), 40, &o) == VN_OK, "opens", v->name, type, 40);
    if (!p)
        return;
    check(vn_pack_bytes(p) >= N * K * vn_type_bytes(type), "has bytes", v->name, type, 40);
    clear(b);
    o.packed_b = p;
    for (int i = 0; i < 3; i++) {
        const int64_t m = uses[i].m;

        vn_queue_limit_workspace(queue, workspace[i] - vn_pack_bytes(p));
        s = product(packed, type, uses[i].first, m, &o);
        check(s == VN_OK && !memcmp(plain[i], packed, (size_t)(m * N) * vn_type_bytes(type)), "the same bits",
              v->name, type, m);
        check(queue->packed_used == vn_pack_bytes(p), "uses the pack", v->name, type, m);
        check(queue->workspace_used + vn_pack_bytes(p) <= workspace[i], "no workspace for B", v->name,
              type, m);
        o.packed_b = NULL;
        check(product(packed, type, uses[i].first, m, &o) == VN_UNSUPPORTED, "the limit holds", v->name,
              type, m);
        o.packed_b = p;
        vn_queue_limit_workspace(queue, SIZE_MAX);
    }

    /* Work that is queued still sees it, whatever takes its place. */
    vn_tensor rows = vn_matrix(a, type, 40, K);

    s = vn_gemm(queue, 1, rows, columns(type), 0, vn_matrix(c, type, 40, N), &o);
    vn_pack_close(p);
    o.packed_b = NULL;
    check(s == VN_OK && vn_pack_open(&p, queue, columns(type), 40, &o) == VN_OK &&
          vn_read(queue, packed, c, 0, (size_t)(40 * N) * vn_type_bytes(type)) == VN_OK &&
          !memcmp(plain[0], packed, (size_t)(40 * N) * vn_type_bytes(type)), "closed while in use", v->name,
          type, 40);
    vn_pack_close(p);
}

/* Nothing is packed for a variant that reads B as it lies, nor where there is nothing to multiply. */
static void test_nothing(void)
{
    static double out[2][MOST * N];
    vn_gemm_options o = { .variant = "gemm" };
    vn_tensor none = columns(VN_F32);
    vn_pack *p = NULL, *empty = NULL;

    none.extent[0] = 0;
    check(!product(out[0], VN_F32, 0, 40, &o) && !vn_pack_open(&p, queue, columns(VN_F32), 40, &o) &&
          vn_pack_bytes(p) == 0, "nothing to pack", "gemm", VN_F32, 40);
    o.packed_b = p;
    check(!product(out[1], VN_F32, 0, 40, &o) && !memcmp(out[0], out[1], 40 * N * sizeof(float))
          && !queue->packed_used, "used as it is", "gemm", VN_F32, 40);
    check(!vn_pack_open(&empty, queue, none, 40, NULL) && vn_pack_bytes(empty) == 0, "K of 0", "any",
          VN_F32, 40);
    vn_pack_close(p);
    vn_pack_close(empty);
}

/* ---- convolutions ---- */

enum { SIDE = 11, CHANNELS = 20, FILTERS = 70, TAPS = 3, MOST_IMAGES = 5 };

/* x and y of so many images, NHWC, and w with gaps between its filters. */
static void views(vn_tensor v[3], vn_type type, int64_t images)
{
    static const int nhwc[] = { 0, 3, 1, 2 };

    v[0] = vn_permute(vn_packed(a, type, 4, (const int64_t[]){ images, SIDE, SIDE, CHANNELS }), nhwc);
    v[1] = vn_packed(b, type, 4, (const int64_t[]){ FILTERS, CHANNELS, TAPS, TAPS });
    v[1].stride[0] += 3;
    v[2] = vn_permute(vn_packed(c, type, 4, (const int64_t[]){ images, SIDE, SIDE, FILTERS }), nhwc);
}

/* Of the images from `first` on. */
static vn_status convolve(void *out, vn_type type, vn_conv_direction d, int64_t first, int64_t images,
                          const vn_conv_options *o)
{
    vn_tensor v[3];
    vn_tensor *const in = &v[d == VN_CONV_FORWARD ? 0 : 2], *const to = &v[d == VN_CONV_FORWARD ? 2 : 0];
    vn_status s;

    views(v, type, images);
    in->start = first * in->stride[0];
    s = (d == VN_CONV_FORWARD ? vn_conv_forward : vn_conv_backward_data)(queue, 1, *in, v[1], 0, *to, o);
    return s ? s : vn_read(queue, out, to->buffer, 0, (size_t)vn__elements(to) * vn_type_bytes(type));
}

static vn_pack *open_filter(vn_type type, vn_conv_direction d, const vn_conv_options *o)
{
    vn_tensor v[3];
    vn_pack *p = NULL;

    views(v, type, 2);
    return vn_conv_pack_open(&p, queue, d, v[0], v[1], v[2], o) ? NULL : p;
}

static void test_filter(const struct vn_variant *variant, vn_type type, vn_conv_direction d)
{
    static const struct { int64_t first, images; } uses[] = { { 0, 2 }, { 1, 1 }, { 0, 4 } };
    static double plain[3][MOST_IMAGES * SIDE * SIDE * FILTERS], packed[MOST_IMAGES * SIDE * SIDE * FILTERS];
    const int64_t each = SIDE * SIDE * (d == VN_CONV_FORWARD ? FILTERS : CHANNELS);
    vn_conv_options o = { .size = sizeof o, .pad_before = { 1, 1 }, .pad_after = { 1, 1 },
                          .variant = variant->name };
    size_t workspace[3];
    vn_status s = VN_OK;
    vn_pack *p, *other;

    for (int i = 0; i < 3 && s == VN_OK; i++) {
        s = convolve(plain[i], type, d, uses[i].first, uses[i].images, &o);
        workspace[i] = queue->workspace_used;
    }
    if (s == VN_UNSUPPORTED)
        return;
    check(s == VN_OK && (p = open_filter(type, d, &o)), "opens", variant->name, type, d);
    if (s || !p)
        return;
    other = open_filter(type, d == VN_CONV_FORWARD ? VN_CONV_BACKWARD_DATA : VN_CONV_FORWARD, &o);
    check(vn_pack_bytes(p) >= FILTERS * CHANNELS * TAPS * TAPS * vn_type_bytes(type), "has bytes",
          variant->name, type, d);
    o.packed_w = other;
    check(other && !convolve(packed, type, d, 0, 2, &o) && !queue->packed_used &&
          !memcmp(plain[0], packed, (size_t)(2 * each) * vn_type_bytes(type)), "of the other direction",
          variant->name, type, d);
    clear(b);
    o.packed_w = p;
    for (int i = 0; i < 3; i++) {
        vn_queue_limit_workspace(queue, workspace[i] > vn_pack_bytes(p) ? workspace[i] - vn_pack_bytes(p)
                                                                        : 0);
        s = convolve(packed, type, d, uses[i].first, uses[i].images, &o);
        check(s == VN_OK && !memcmp(plain[i], packed, (size_t)(uses[i].images * each) * vn_type_bytes(type)),
              "the same bits", variant->name, type, d);
        check(queue->packed_used == vn_pack_bytes(p), "uses the pack", variant->name, type, d);
        vn_queue_limit_workspace(queue, SIZE_MAX);
    }
    vn_pack_close(p);
    vn_pack_close(other);
}

/* Without a variant's own layout there is nothing to pack; and the call is right. */
static void test_filter_as_it_lies(void)
{
    static float out[2][2 * SIDE * SIDE * FILTERS];
    vn_conv_options o = { .size = sizeof o, .pad_before = { 1, 1 }, .pad_after = { 1, 1 },
                          .variant = "conv" };
    vn_pack *const p = open_filter(VN_F32, VN_CONV_FORWARD, &o);

    check(p && vn_pack_bytes(p) == 0 && !convolve(out[0], VN_F32, VN_CONV_FORWARD, 0, 2, &o),
          "nothing to pack", "conv", VN_F32, 0);
    o.packed_w = p;
    check(!convolve(out[1], VN_F32, VN_CONV_FORWARD, 0, 2, &o) && !memcmp(out[0], out[1], sizeof out[0]) &&
          !queue->packed_used, "used as it is", "conv", VN_F32, 0);
    vn_pack_close(p);
}

/* A call is refused with VN_INVALID, and the sentence names its function and what is wrong. */
static void refused(vn_status s, const char *function, const char *argument, const char *what)
{
    check(s == VN_INVALID && !strncmp(vn_last_error(), function, strlen(function)) &&
          strstr(vn_last_error(), argument), what, function, VN_F32, 0);
}

static void test_bad_filters(void)
{
    static const char open[] = "vn_conv_pack_open: ", packed[] = "options.packed_w";
    vn_conv_options o = { .size = sizeof o, .pad_before = { 1, 1 }, .pad_after = { 1, 1 } }, short_one = o;
    vn_tensor v[3], other, wrong;
    vn_queue *second = NULL;
    vn_pack *p = (vn_pack *)a;

    views(v, VN_F32, 2);
    other = v[1];
    other.start = 1;
    wrong = v[2];
    wrong.extent[2]--;
    short_one.size -= sizeof o.packed_w;
    refused(vn_conv_pack_open(NULL, queue, VN_CONV_FORWARD, v[0], v[1], v[2], &o), open, "out is NULL",
            "no out");
    refused(vn_conv_pack_open(&p, NULL, VN_CONV_FORWARD, v[0], v[1], v[2], &o), open, "queue", "no queue");
    refused(vn_conv_pack_open(&p, queue, (vn_conv_direction)2, v[0], v[1], v[2], &o), open, "direction",
            "no direction");
    refused(vn_conv_pack_open(&p, queue, VN_CONV_FORWARD, v[0], v[1], wrong, &o), open, "y has extent",
            "another extent");
    refused(vn_conv_pack_open(&p, queue, VN_CONV_BACKWARD_DATA, v[0], v[1], wrong, &o), open, "dy has extent",
            "another extent, backward");
    refused(vn_conv_pack_open(&p, queue, VN_CONV_FORWARD, v[0], v[1], v[2], &short_one), open, "options.size",
            "another size");
    check(!p, "nothing is left in *out", open, VN_F32, 0);
    check(!vn_queue_open(&second, device) &&
          !vn_conv_pack_open(&p, second, VN_CONV_FORWARD, v[0], v[1], v[2], &o), "opens", "any", VN_F32, 0);
    o.packed_w = p;
    check(!vn_conv_forward(queue, 1, v[0], v[1], 0, v[2], &o), "of another queue", "any", VN_F32, 0);
    refused(vn_conv_forward(queue, 1, v[0], other, 0, v[2], &o), "vn_conv_forward: ", packed, "another view");
    refused(vn_conv_backward_filter(queue, 1, v[0], v[2], 0, v[1], &o), "vn_conv_backward_filter: ", packed,
            "where no filter is read");
    vn_pack_close(p);
    refused(vn_conv_forward(queue, 1, v[0], v[1], 0, v[2], &o), "vn_conv_forward: ", packed, "a closed pack");
    vn_queue_close(second);
}

static void test_filters(vn_type type)
{
    a = filled(type, MOST_IMAGES * SIDE * SIDE * CHANNELS, 4);
    c = filled(type, MOST_IMAGES * SIDE * SIDE * FILTERS, 5);
    for (int d = 0; d < VN_CONV_DIRECTION_COUNT; d++)
        for (const struct vn_variant *v = vn__conv.variants; v->name; v++)
            if (v->layout) {
                b = filled(type, FILTERS * (CHANNELS * TAPS * TAPS + 3), 6);
                test_filter(v, type, (vn_conv_direction)d);
                vn_buffer_close(b);
            }
    if (type == VN_F32) {
        b = filled(type, FILTERS * (CHANNELS * TAPS * TAPS + 3), 6);
        test_filter_as_it_lies();
        test_bad_filters();
        vn_buffer_close(b);
    }
    vn_buffer_close(a);
    vn_buffer_close(c);
}

int main(void)
{
    const int status = start(&device, &queue);

    if (status)
        return status;
    for (int type = 0; type < VN_TYPE_COUNT; type++) {
        a = filled((vn_type)type, MOST * K, 1);
        c = filled((vn_type)type, MOST * N, 3);
        for (const struct vn_variant *v = vn__gemm_variants; v->name; v++)
            if (v->layout) {
                b = filled((vn_type)type, N * PITCH, 2);
                test_variant(v, (vn_type)type, v->fits == vn__fits_tf32
                                               ? VN_MATH_TF32 : VN_MATH_DEFAULT);
                vn_buffer_close(b);
            }
        if (type == VN_F32) {
            b = filled(VN_F32, N * PITCH, 2);
            test_nothing();
            vn_buffer_close(b);
        }
        vn_buffer_close(a);
        vn_buffer_close(c);
        if (type == VN_F32 || type == VN_F16)
            test_filters((vn_type)type);
    }
    vn_queue_close(queue);
    vn_device_close(device);
    printf("%ld cases, %ld failed\nCOUNT pack %ld\n", cases, failures, cases);
    return failures != 0;
}
