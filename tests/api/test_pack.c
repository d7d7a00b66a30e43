/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pack.c - a packed B gives the very bits of one that is not, and costs the queue nothing.
 *
 * By every variant that lays B out, in every type: one pack, products of several A with rows of
 * their own.  That the pack is what they read is shown by what B holds meanwhile, zeros.
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
    }
    vn_queue_close(queue);
    vn_device_close(device);
    printf("%ld cases, %ld failed\nCOUNT pack %ld\n", cases, failures, cases);
    return failures != 0;
}
