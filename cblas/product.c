/* SPDX-License-Identifier: Apache-2.0
 *
 * product.c - a product of BLAS through the library: in the caller's own memory on CPUs, else with copies.
 *
 * The device is opened by the first product that is large enough; until that is done, others go to the
 * BLAS.  Each call takes a queue out of a pool and puts it back, so that there are as many as calls at once.
 * A child of fork() leaves all to the BLAS, as soon as its parent had begun to open the device.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"
#include "vernier.h"

/* The least M N K from which products come here, as ratio.c tells: where the device computes in the host's
 * memory, for a matrix by a vector, whose time is that of reading the matrix, and for two matrices; and where
 * operands are copied.  $VERNIER_BLAS_FROM replaces all. */
enum { FROM_VECTOR = 1 << 20, FROM_MATRIX = 1 << 24, FROM_COPIED = 1 << 27 };

enum { BUFFERS = 32 }; /* buffers on the caller's memory that each operand keeps open for the next call */
enum { A, B, C, OPERANDS };

struct kept {
    uintptr_t  memory;
    size_t     bytes;
    vn_buffer *buffer;
};

/* A queue with its buffers. */
struct lane {
    struct lane *next;
    vn_queue    *queue;
    struct kept  host[OPERANDS][BUFFERS];
    struct kept  copy[OPERANDS];        /* on the device; memory is 0 */
};

enum { CLOSED, OPENING, OPEN, ABSENT };

static struct {
    pthread_mutex_t lock;               /* of the pool */
    int             state;
    int             shares_host;
    vn_device      *device;
    struct lane    *idle;
} here = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread int is_inside;          /* of a product: a driver that calls BLAS gets the BLAS */

/* ---- the device ------------------------------------------------------------------ */

/* In a child the lock may be held by a thread that is not there. */
static void leave_to_blas(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    here.lock = unlocked;
    if (here.state != CLOSED)
        here.state = ABSENT;
}

__attribute__((constructor)) static void expect_forks(void)
{
    pthread_atfork(NULL, NULL, leave_to_blas);
}

static int shares_host(vn_device *d)
{
    vn_buffer *b = NULL;
    void *memory;
    vn_status s;

    if (posix_memalign(&memory, VN_HOST_ALIGN, VN_HOST_ALIGN))
        return 0;
    s = vn_buffer_open_host(&b, d, memory, VN_HOST_ALIGN);
    vn_buffer_close(b);
    free(memory);
    return s == VN_OK;
}

static int64_t configured_from(void)
{
    const char *const text = secure_getenv("VERNIER_BLAS_FROM");
    char *end;
    long long v;

    if (!text || !*text)
        return -1;
    v = strtoll(text, &end, 10);
    return *end || v < 0 ? -1 : v;
}

/* By one thread; the state says when it is done. */
static void open_device(void)
{
    int closed = CLOSED, state = ABSENT;

    if (!__atomic_compare_exchange_n(&here.state, &closed, OPENING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    is_inside = 1;
    if (vn_device_open(&here.device, NULL) == VN_OK) {
        here.shares_host = shares_host(here.device);
        state = OPEN;
    }
    is_inside = 0;
    __atomic_store_n(&here.state, state, __ATOMIC_RELEASE);
}

static int64_t from_shared(const struct product *p)
{
    return p->m == 1 || p->n == 1 ? FROM_VECTOR : FROM_MATRIX;
}

/* Whether a product is worth it.  Until one is large enough for any device, none is opened. */
static int is_large(const struct product *p)
{
    static int64_t configured = -2;
    int64_t from = __atomic_load_n(&configured, __ATOMIC_RELAXED);
    const double size = (double)p->m * (double)p->n * (double)p->k * (double)p->batches;
    int state = __atomic_load_n(&here.state, __ATOMIC_ACQUIRE);

    if (from == -2) {
        from = configured_from();
        __atomic_store_n(&configured, from, __ATOMIC_RELAXED);
    }
    if (state == ABSENT || size < (double)(from >= 0 ? from : from_shared(p)))
        return 0;
    if (state != OPEN) {
        open_device();
        state = __atomic_load_n(&here.state, __ATOMIC_ACQUIRE);
    }
    return state == OPEN && (from >= 0 || here.shares_host || size >= FROM_COPIED);
}

/* ---- queues and buffers ------------------------------------------------------------ */

static struct lane *take_lane(void)
{
    struct lane *it;

    pthread_mutex_lock(&here.lock);
    if ((it = here.idle))
        here.idle = it->next;
    pthread_mutex_unlock(&here.lock);
    if (it || !(it = calloc(1, sizeof *it)))
        return it;
    if (vn_queue_open(&it->queue, here.device)) {
        free(it);
        return NULL;
    }
    return it;
}

static void put_lane(struct lane *it)
{
    pthread_mutex_lock(&here.lock);
    it->next = here.idle;
    here.idle = it;
    pthread_mutex_unlock(&here.lock);
}

/* Bytes from an operand's first element to past its last one. */
static size_t bytes_of(const struct product *p, const struct operand *o, int64_t rows, int64_t cols)
{
    const int64_t size = p->is_f64 ? 8 : 4;

    return (size_t)(((p->batches - 1) * o->batch + (rows - 1) * o->row + (cols - 1) * o->col + 1) * size);
}

static vn_tensor view_of(const struct product *p, const struct operand *o, int64_t rows, int64_t cols)
{
    return (vn_tensor){ .type = p->is_f64 ? VN_F64 : VN_F32, .rank = 3,
                        .extent = { p->batches, rows, cols }, .stride = { o->batch, o->row, o->col } };
}

/* A view of the caller's memory.  The buffer stays right when that memory is freed and allocated again: it is
 * found only by a call whose own operand is there. */
static int view_host(vn_tensor *out, struct kept *slots, const struct product *p, const struct operand *o,
                     int64_t rows, int64_t cols)
{
    const uintptr_t at = (uintptr_t)o->at, memory = at - at % VN_HOST_ALIGN;
    const size_t bytes = at - memory + bytes_of(p, o, rows, cols);
    const size_t size = vn_type_bytes(p->is_f64 ? VN_F64 : VN_F32);
    const uint64_t hash = (memory / VN_HOST_ALIGN + bytes) * UINT64_C(0x9e3779b97f4a7c15);
    struct kept *const k = &slots[hash >> 32 & (BUFFERS - 1)];

    if (at % size)
        return 0;
    if (k->memory != memory || k->bytes != bytes) {
        vn_buffer_close(k->buffer);
        *k = (struct kept){ memory, bytes, NULL };
        if (vn_buffer_open_host(&k->buffer, here.device, (void *)memory, bytes)) {
            *k = (struct kept){ 0, 0, NULL };
            return 0;
        }
    }
    *out = view_of(p, o, rows, cols);
    out->buffer = k->buffer;
    out->start = (int64_t)((at - memory) / size);
    return 1;
}

/* A packed copy on the device, of what is there if it `is_read`. */
static int view_copy(vn_tensor *out, struct lane *l, struct kept *k, const struct product *p,
                     const struct operand *o, int64_t rows, int64_t cols, int is_read)
{
    const size_t bytes = bytes_of(p, o, rows, cols);

    if (k->bytes < bytes) {
        vn_buffer_close(k->buffer);
        *k = (struct kept){ 0, 0, NULL };
        if (vn_buffer_open(&k->buffer, here.device, bytes))
            return 0;
        k->bytes = bytes;
    }
    *out = view_of(p, o, rows, cols);
    out->buffer = k->buffer;
    return !is_read || vn_write(l->queue, k->buffer, 0, o->at, bytes) == VN_OK;
}

/* ---- computing ------------------------------------------------------------------------ */

/* Whether what C spans is its elements alone; what lies between rows may be another thread's. */
static int is_contiguous(const struct product *p)
{
    return (p->n == 1 || p->c.col == 1) && (p->m == 1 || p->c.row == p->n) &&
           (p->batches == 1 || p->c.batch == p->m * p->n);
}

static void copy_rows(const struct product *p, char *packed, int is_back)
{
    const int64_t size = p->is_f64 ? 8 : 4;

    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t m = 0; m < p->m; m++)
            for (int64_t n = 0, run = p->c.col == 1 ? p->n : 1; n < p->n; n += run) {
                char *const at = (char *)p->c.at + (b * p->c.batch + m * p->c.row + n * p->c.col) * size;

                memcpy(is_back ? at : packed, is_back ? packed : at, (size_t)(run * size));
                packed += run * size;
            }
}

/* Where work failed that had begun, C is as it was only if nothing has written to it: it becomes NaN, since
 * BLAS has no way to say so.                                                                               */
static void spoil(const struct product *p)
{
    const int64_t size = p->is_f64 ? 8 : 4;
    const float f = __builtin_nanf("");
    const double d = __builtin_nan("");

    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t m = 0; m < p->m; m++)
            for (int64_t n = 0; n < p->n; n++)
                memcpy((char *)p->c.at + (b * p->c.batch + m * p->c.row + n * p->c.col) * size,
                       p->is_f64 ? (const void *)&d : (const void *)&f, (size_t)size);
}

static int compute_shared(struct lane *l, const struct product *p)
{
    vn_tensor a, b, c;

    if (!view_host(&a, l->host[A], p, &p->a, p->m, p->k) ||
        !view_host(&b, l->host[B], p, &p->b, p->k, p->n) ||
        !view_host(&c, l->host[C], p, &p->c, p->m, p->n) ||
        vn_gemm(l->queue, p->alpha, a, b, p->beta, c, NULL))
        return 0;
    if (vn_queue_finish(l->queue) == VN_OK)
        return 1;
    if (p->beta == 0)
        return 0;                       /* C is not read: the BLAS begins anew */
    spoil(p);
    return 1;
}

static int compute_copied(struct lane *l, const struct product *p)
{
    const int reads_c = p->beta != 0, reads_ab = p->alpha != 0;
    const int64_t size = p->is_f64 ? 8 : 4;
    const size_t bytes = (size_t)(p->batches * p->m * p->n * size);
    char *const packed = is_contiguous(p) ? NULL : malloc(bytes);
    const struct operand at = { packed ? packed : p->c.at, p->n, 1, p->m * p->n };
    vn_tensor a, b, c;
    int done;

    if (!packed && !is_contiguous(p))
        return 0;
    if (packed && reads_c)
        copy_rows(p, packed, 0);
    done = view_copy(&a, l, &l->copy[A], p, &p->a, p->m, p->k, reads_ab) &&
           view_copy(&b, l, &l->copy[B], p, &p->b, p->k, p->n, reads_ab) &&
           view_copy(&c, l, &l->copy[C], p, &at, p->m, p->n, reads_c) &&
           vn_gemm(l->queue, p->alpha, a, b, p->beta, c, NULL) == VN_OK &&
           vn_queue_finish(l->queue) == VN_OK;
    if (done && vn_read(l->queue, (void *)at.at, c.buffer, 0, bytes)) {
        if (packed || p->beta == 0)
            done = 0;
        else
            spoil(p);
    }
    if (done && packed)
        copy_rows(p, packed, 1);
    free(packed);
    return done;
}

/* Whether bytes of the operand can be counted. */
static int is_countable(const struct product *p, const struct operand *o, int64_t rows, int64_t cols)
{
    return (double)p->batches * (double)o->batch + (double)rows * (double)o->row +
           (double)cols * (double)o->col < 1e17;
}

int vn__product(const struct product *p)
{
    struct lane *l;
    int done;

    if (is_inside || p->m <= 0 || p->n <= 0 || p->k <= 0 || p->batches <= 0 || !is_large(p) ||
        !is_countable(p, &p->a, p->m, p->k) || !is_countable(p, &p->b, p->k, p->n) ||
        !is_countable(p, &p->c, p->m, p->n))
        return 0;
    is_inside = 1;
    done = 0;
    if ((l = take_lane())) {
        done = here.shares_host ? compute_shared(l, p) : compute_copied(l, p);
        put_lane(l);
    }
    is_inside = 0;
    return done;
}
