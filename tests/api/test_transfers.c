/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transfers.c - what moves bytes, buffers that are the host's memory, and what makes views.
 *
 * Each transfer is compared with memcpy() on an array beside it; each wrong argument of it gets its status
 * and a sentence that names it, and changes no byte.
 */
#include <stdlib.h>
#include <string.h>

#include "../start.h"

static vn_device *device, *second;
static vn_queue  *queue;
static long       cases, arguments, failures;

#define CHECK(it)            (cases++, (it) ? (void)0 : fail(#it, __LINE__))
#define OK(call)             CHECK((call) == VN_OK)
#define REFUSED(s, call, word) (arguments++, refused(call, s, word, #call, __LINE__))

static void fail(const char *it, int line)
{
    if (failures++ < 20)
        printf("not ok: line %d: %s (%s)\n", line, it, vn_last_error());
}

static void refused(vn_status got, vn_status wanted, const char *word, const char *call, int line)
{
    char function[32] = "";

    sscanf(call, "%31[a-z_]", function);
    if (got == wanted && strstr(vn_last_error(), word) && strstr(vn_last_error(), function))
        return;
    failures++;
    printf("not ok: line %d: %s is %s; it needs %s and \"%s\"; \"%s\"\n", line, call, vn_status_name(got),
           vn_status_name(wanted), word, vn_last_error());
}

/* ---- transfers ------------------------------------------------------------------- */

enum { BYTES = 4096 };

static unsigned char kept[BYTES], shown[BYTES];         /* what the buffer must hold; what it does hold */

static int is_kept(vn_buffer *b)
{
    memset(shown, 0xcc, BYTES);
    return vn_read(queue, shown, b, 0, BYTES) == VN_OK && !memcmp(shown, kept, BYTES);
}

static void test_fill(vn_buffer *b)
{
    static const unsigned char pattern[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const struct { size_t at, bytes, size; } fills[] = {
        { 0, BYTES, 1 }, { 3, 1001, 1 }, { 10, 990, 2 }, { 4, 4, 4 }, { 64, 2048, 4 }, { 8, 8, 8 },
        { 4088, 8, 8 }, { 2048, 0, 8 }, { BYTES, 0, 4 }, { 800, 1600, 8 },
    };

    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        OK(vn_fill(queue, b, fills[i].at, fills[i].bytes, pattern, fills[i].size));
        for (size_t j = 0; j < fills[i].bytes; j++)
            kept[fills[i].at + j] = pattern[j % fills[i].size];
        CHECK(is_kept(b));
    }
}

static void test_copy(vn_buffer *b, vn_buffer *other)
{
    static const struct { size_t to, from, bytes; } copies[] = {
        { 0, 0, BYTES }, { 1, 7, 300 }, { 4095, 0, 1 }, { 17, 2048, 2000 }, { 9, 9, 0 },
    };
    static unsigned char whole[BYTES];

    for (int i = 0; i < BYTES; i++)
        whole[i] = (unsigned char)(i * 31 >> 3);
    OK(vn_write(queue, other, 0, whole, BYTES));
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        OK(vn_copy(queue, b, copies[i].to, other, copies[i].from, copies[i].bytes));
        memcpy(kept + copies[i].to, whole + copies[i].from, copies[i].bytes);
        CHECK(is_kept(b));
    }
    OK(vn_copy(queue, b, 100, b, 1000, 900));           /* apart in one buffer */
    memcpy(kept + 100, kept + 1000, 900);
    CHECK(is_kept(b));
}

/* The host's memory is used again only after the event. */
static void test_async(vn_buffer *b)
{
    static unsigned char rounds[8][BYTES / 8], back[BYTES];
    vn_event *e = NULL;

    for (int i = 0; i < 8; i++) {
        memset(rounds[i], 17 * i + 1, sizeof rounds[i]);
        OK(vn_write_async(queue, b, (size_t)i * sizeof rounds[i], rounds[i], sizeof rounds[i]));
    }
    OK(vn_read_async(queue, back, b, 0, BYTES));
    OK(vn_event_record(&e, queue));
    OK(vn_event_finish(e));
    OK(vn_event_finish(e));
    memcpy(kept, rounds, BYTES);
    CHECK(!memcmp(back, kept, BYTES));
    vn_event_close(e);
    OK(vn_write_async(queue, b, BYTES, NULL, 0));
    OK(vn_read_async(queue, NULL, b, 0, 0));
    CHECK(is_kept(b));
    REFUSED(VN_INVALID, vn_event_finish(NULL), "event");
    REFUSED(VN_INVALID, vn_event_finish(e), "closed");
}

static void test_arguments(vn_buffer *b, vn_buffer *foreign, vn_buffer *closed)
{
    const float one = 1;
    float target = 7;
    vn_buffer *const bad[] = { NULL, closed, foreign, (vn_buffer *)queue };

    for (int i = 0; i < 4; i++) {
        REFUSED(VN_INVALID, vn_copy(queue, bad[i], 0, b, 0, 1), "to ");
        REFUSED(VN_INVALID, vn_copy(queue, b, 0, bad[i], 0, 1), "from ");
        REFUSED(VN_INVALID, vn_fill(queue, bad[i], 0, 4, &one, 4), "to ");
        REFUSED(VN_INVALID, vn_write_async(queue, bad[i], 0, &one, 4), "to ");
        REFUSED(VN_INVALID, vn_read_async(queue, &target, bad[i], 0, 4), "from ");
    }
    for (int i = 0; i < 2; i++) {
        vn_queue *const none = i ? (vn_queue *)b : NULL;

        REFUSED(VN_INVALID, vn_copy(none, b, 0, b, 8, 4), "queue");
        REFUSED(VN_INVALID, vn_fill(none, b, 0, 4, &one, 4), "queue");
        REFUSED(VN_INVALID, vn_write_async(none, b, 0, &one, 4), "queue");
        REFUSED(VN_INVALID, vn_read_async(none, &target, b, 0, 4), "queue");
    }
    REFUSED(VN_INVALID, vn_copy(queue, b, BYTES - 3, b, 0, 4), "to_at is 4093");
    REFUSED(VN_INVALID, vn_copy(queue, b, 0, b, SIZE_MAX, 4), "from_at is ");
    REFUSED(VN_INVALID, vn_copy(queue, b, 0, b, 0, SIZE_MAX), "bytes is ");
    REFUSED(VN_INVALID, vn_copy(queue, b, 0, b, 99, 100), "share memory");
    REFUSED(VN_INVALID, vn_copy(queue, b, 99, b, 0, 100), "share memory");
    REFUSED(VN_INVALID, vn_fill(queue, b, BYTES, 4, &one, 4), "at is 4096");
    REFUSED(VN_INVALID, vn_fill(queue, b, 0, 4, NULL, 4), "pattern is NULL");
    for (size_t size = 0; size < 32; size++)
        if (size != 1 && size != 2 && size != 4 && size != 8)
            REFUSED(VN_INVALID, vn_fill(queue, b, 0, 32, kept, size), "size is ");
    REFUSED(VN_INVALID, vn_fill(queue, b, 2, 4, &one, 4), "multiples of size, 4");
    REFUSED(VN_INVALID, vn_fill(queue, b, 4, 6, &one, 4), "multiples of size, 4");
    REFUSED(VN_INVALID, vn_write_async(queue, b, BYTES - 3, &one, 4), "at is 4093");
    REFUSED(VN_INVALID, vn_write_async(queue, b, 0, NULL, 4), "from is NULL");
    REFUSED(VN_INVALID, vn_read_async(queue, &target, b, 1, SIZE_MAX), "bytes is ");
    REFUSED(VN_INVALID, vn_read_async(queue, NULL, b, 0, 4), "to is NULL");
    CHECK(target == 7);
    CHECK(is_kept(b));
}

/* ---- the host's memory ------------------------------------------------------------- */

/* C := A A of 4 x 4, A and C in one piece of the host's memory: 16 floats each. */
static void product_in_place(float *memory)
{
    vn_buffer *a = NULL, *c = NULL;
    float right[16];
    int wrong = 0;

    OK(vn_buffer_open_host(&a, device, memory, 64));
    OK(vn_buffer_open_host(&c, device, memory + 32, 64));
    for (int times = 1; times < 3; times++) {           /* the second time with what is in it by then */
        for (int i = 0; i < 16; i++)
            memory[i] = (float)(i * times % 7 - 3);
        for (int i = 0; i < 16; i++) {
            right[i] = 0;
            for (int k = 0; k < 4; k++)
                right[i] += memory[i / 4 * 4 + k] * memory[k * 4 + i % 4];
        }
        OK(vn_gemm(queue, 1, vn_matrix(a, VN_F32, 4, 4), vn_matrix(a, VN_F32, 4, 4), 0,
                   vn_matrix(c, VN_F32, 4, 4), NULL));
        OK(vn_queue_finish(queue));
        wrong += memcmp(memory + 32, right, sizeof right) != 0;
        for (int i = 0; i < 16; i++)
            wrong += memory[16 + i] != -1 || memory[48 + i] != -1;
    }
    CHECK(!wrong);
    vn_buffer_close(a);
    vn_buffer_close(c);
    CHECK(!memcmp(memory + 32, right, sizeof right));
}

/* Two buffers of one memory are told as such. */
static void shared_memory(float *memory)
{
    const float first = memory[0];
    vn_buffer *a = NULL, *b = NULL;

    OK(vn_buffer_open_host(&a, device, memory, 256));
    OK(vn_buffer_open_host(&b, device, memory + 32, 128));
    REFUSED(VN_INVALID, vn_copy(queue, a, 100, b, 0, 40), "share memory");
    REFUSED(VN_INVALID, vn_gemm(queue, 1, vn_matrix(b, VN_F32, 4, 4), vn_matrix(b, VN_F32, 4, 4), 0,
                                vn_slice(vn_matrix(a, VN_F32, 16, 4), 0, 9, 4), NULL), "overlaps");
    OK(vn_copy(queue, a, 0, b, 0, 4));
    OK(vn_queue_finish(queue));
    CHECK(memory[0] == memory[32] && memory[0] != first);
    vn_buffer_close(a);
    vn_buffer_close(b);
}

static void test_host_memory(void)
{
    vn_buffer *b = (vn_buffer *)kept;
    vn_device_info info;
    void *memory;
    vn_status s;

    if (posix_memalign(&memory, VN_HOST_ALIGN, 256) || vn_device_describe(&info, device)) {
        fail("memory", __LINE__);
        return;
    }
    for (int i = 0; i < 64; i++)
        ((float *)memory)[i] = -1;
    REFUSED(VN_INVALID, vn_buffer_open_host(NULL, device, memory, 64), "out");
    REFUSED(VN_INVALID, vn_buffer_open_host(&b, NULL, memory, 64), "device");
    REFUSED(VN_INVALID, vn_buffer_open_host(&b, (vn_device *)queue, memory, 64), "device");
    REFUSED(VN_INVALID, vn_buffer_open_host(&b, device, NULL, 64), "memory");
    REFUSED(VN_INVALID, vn_buffer_open_host(&b, device, (char *)memory + 64, 64), "multiple of 128");
    REFUSED(VN_INVALID, vn_buffer_open_host(&b, device, memory, 0), "bytes");
    REFUSED(VN_NO_MEMORY, vn_buffer_open_host(&b, device, memory, SIZE_MAX), "bytes");
    CHECK(!b);
    s = vn_buffer_open_host(&b, device, memory, 256);
    /* A device with memory of its own says so; PoCL computes in the host's. */
    if (s == VN_UNSUPPORTED && !strstr(info.platform, "Portable")) {
        arguments++;
        CHECK(strstr(vn_last_error(), "vn_buffer_open()") && !b);
        printf("host memory left out: %s\n", vn_last_error());
    } else {
        CHECK(s == VN_OK);
        vn_buffer_close(b);
        product_in_place(memory);
        shared_memory(memory);
    }
    free(memory);
}

/* ---- views --------------------------------------------------------------------------- */

static int is_view(vn_tensor t, int rank, int64_t start, const int64_t *extent, const int64_t *stride)
{
    return t.rank == rank && t.start == start && !memcmp(t.extent, extent, (size_t)rank * sizeof *extent) &&
           !memcmp(t.stride, stride, (size_t)rank * sizeof *stride);
}

/* An operation refuses it, by the name of its argument. */
static void unusable(vn_tensor t, vn_buffer *b)
{
    const vn_tensor m = vn_matrix(b, VN_F32, 4, 4);
    vn_gemm_options o = { .bias = t };
    vn_tensor c = m;

    c.start = 64;
    REFUSED(VN_INVALID, vn_gemm(queue, 1, t, m, 0, c, NULL), "A has ");
    REFUSED(VN_INVALID, vn_gemm(queue, 1, m, m, 0, c, &o), "options.bias has ");
}

static void test_views(vn_buffer *b)
{
    static const int nchw[] = { 0, 3, 1, 2 }, same[] = { 0, 1, 2, 3 }, twice[] = { 0, 1, 1, 2 },
                     far[] = { 0, 1, 2, 4 }, negative[] = { 0, -1, 1, 2 };
    const vn_tensor m = vn_matrix_ld(b, VN_F32, 5, 6, 9),
                    x = vn_packed(b, VN_F16, 4, (const int64_t[]){ 2, 5, 7, 3 });

    CHECK(is_view(m, 2, 0, (const int64_t[]){ 5, 6 }, (const int64_t[]){ 9, 1 }));
    CHECK(is_view(vn_slice(m, 0, 2, 3), 2, 18, (const int64_t[]){ 3, 6 }, (const int64_t[]){ 9, 1 }));
    CHECK(is_view(vn_slice(m, 1, 2, 3), 2, 2, (const int64_t[]){ 5, 3 }, (const int64_t[]){ 9, 1 }));
    CHECK(is_view(vn_slice(m, 1, 6, 0), 2, 6, (const int64_t[]){ 5, 0 }, (const int64_t[]){ 9, 1 }));
    CHECK(is_view(vn_slice(vn_slice(m, 0, 1, 4), 0, 1, 2), 2, 18, (const int64_t[]){ 2, 6 },
                  (const int64_t[]){ 9, 1 }));
    CHECK(is_view(vn_permute(x, nchw), 4, 0, (const int64_t[]){ 2, 3, 5, 7 },
                  (const int64_t[]){ 105, 1, 21, 3 }));
    CHECK(is_view(vn_permute(x, same), 4, 0, x.extent, x.stride));
    CHECK(is_view(vn_matrix_ld(b, VN_F32, 1, 6, 0), 2, 0, (const int64_t[]){ 1, 6 },
                  (const int64_t[]){ 0, 1 }));
    unusable(vn_matrix_ld(b, VN_F32, 4, 4, 3), b);
    unusable(vn_slice(m, 2, 0, 1), b);
    unusable(vn_slice(m, -1, 0, 1), b);
    unusable(vn_slice(m, 0, -1, 1), b);
    unusable(vn_slice(m, 0, 0, 6), b);
    unusable(vn_slice(m, 0, 4, 2), b);
    unusable(vn_slice(m, 0, 1, -1), b);
    unusable(vn_slice(m, 0, INT64_MAX, INT64_MAX), b);
    unusable(vn_permute(x, NULL), b);
    unusable(vn_permute(x, twice), b);
    unusable(vn_permute(x, far), b);
    unusable(vn_permute(x, negative), b);
}

int main(void)
{
    const int status = start(&device, &queue);
    vn_buffer *b = NULL, *other = NULL, *foreign = NULL, *closed = NULL;
    vn_device_info info;

    if (status)
        return status;
    if (vn_device_describe(&info, device) || vn_device_open(&second, info.spec) ||
        vn_buffer_open(&b, device, BYTES) || vn_buffer_open(&other, device, BYTES) ||
        vn_buffer_open(&foreign, second, BYTES) || vn_buffer_open(&closed, device, BYTES)) {
        printf("cannot start: %s\n", vn_last_error());
        return 1;
    }
    vn_buffer_close(closed);
    test_fill(b);
    test_copy(b, other);
    test_async(b);
    test_arguments(b, foreign, closed);
    test_host_memory();
    test_views(b);
    vn_buffer_close(b);
    vn_buffer_close(other);
    vn_buffer_close(foreign);
    vn_queue_close(queue);
    vn_device_close(second);
    vn_device_close(device);
    printf("%ld cases, %ld failed\nCOUNT transfers %ld\nCOUNT arguments %ld\n", cases + arguments, failures,
           cases, arguments);
    return failures != 0;
}
