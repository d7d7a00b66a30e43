/* SPDX-License-Identifier: Apache-2.0
 *
 * nvidia.c - cuBLAS and cuDNN on the same GPU: gemm by the one, convolution and softmax by the other.
 *
 * They are variants of our library, too: the peer opens the GPU through CUDA, with a queue and
 * buffers of its own, and asks for the variant by name.  Ours may run through OpenCL or CUDA.
 */
#include <stdlib.h>
#include <string.h>
#include "bench/series.h"
#include "peer.h"
#include "vendors/vendor.h"

struct nvidia {
    const char *variant;
    const struct op *ops[4];                 /* ends with NULL */
    const char *lacks;                       /* for other operations */
    const char *(*version)(void);
    vn_device  *device;
    vn_queue   *queue;
    struct hold *hold;
};

#if VN_WITH_CUDA
#define VERSION_OF(library) vn__##library##_version
#else
#define VERSION_OF(library) NULL             /* without CUDA devices no peer is ever open */
#endif

static struct nvidia cublas = { .variant = "cublas", .ops = { &op_gemm }, .lacks = "it has gemm alone",
                                .version = VERSION_OF(cublas) };
static struct nvidia cudnn  = { .variant = "cudnn", .ops = { &op_conv, &op_softmax },
                                .lacks = "we use its convolution and softmax alone",
                                .version = VERSION_OF(cudnn) };

struct run {
    struct nvidia  *peer;
    struct problem  p;
    struct operands o;                       /* on the peer's device */
    struct series   series;
};

/* ---- the device ---- */

static int is_same_gpu(const vn_device_info *info, const struct peer_context *c)
{
    if (strncmp(info->spec, "cuda:", 5))
        return 0;
    return *c->uuid && *info->uuid ? !strcmp(info->uuid, c->uuid) : *c->pci && !strcmp(info->pci, c->pci);
}

/* Fills spec, or -1. */
static int find_gpu(char spec[32], const struct peer_context *c)
{
    vn_device_info info;

    for (int i = 0; i < vn_device_count(); i++)
        if (!vn_device_get(&info, i) && is_same_gpu(&info, c)) {
            memcpy(spec, info.spec, sizeof info.spec);
            return 0;
        }
    return -1;
}

static void unload(struct nvidia *n)
{
    hold_close(n->hold);
    vn_queue_close(n->queue);
    vn_device_close(n->device);
    n->hold   = NULL;
    n->queue  = NULL;
    n->device = NULL;
}

static int load(struct nvidia *n, const struct peer_context *c, char *why, size_t why_size)
{
    char spec[32];

    if (n->queue)
        return 0;
    if (find_gpu(spec, c))
        return peer_refuse(why, why_size, "\"%s\" is no GPU that CUDA knows, too (see vernier devices)",
                           c->device);
    if (!vn_device_open(&n->device, spec) && !vn_queue_open(&n->queue, n->device)) {
        if (hold_open(&n->hold, n->queue))
            n->hold = NULL;                  /* short runs go without */
        return 0;
    }
    peer_refuse(why, why_size, "%s", vn_last_error());
    unload(n);
    return -1;
}

/* ---- one prepared problem ---- */

static void finish(void *state)
{
    struct run *r = state;

    if (!r)
        return;
    for (int i = 0; i < r->o.count; i++)
        vn_buffer_close(r->o.t[i].buffer);
    free(r);
}

static vn_status fill(struct run *r, int i, const void *data)
{
    vn_tensor *const t = &r->o.t[i];
    const size_t bytes = operand_bytes(&r->o, i);
    const vn_status s = t->buffer ? VN_OK : vn_buffer_open(&t->buffer, r->peer->device, bytes);

    return s || !data ? s : vn_write(r->peer->queue, t->buffer, 0, data, bytes);
}

static vn_status fill_all(struct run *r, const struct values *data)
{
    vn_status s = VN_OK;

    for (int i = 0; i < r->o.count && !s; i++)
        if (r->o.t[i].rank)
            s = fill(r, i, data->operand[i]);
    return s;
}

/* Once for the library to make its plan, and for the reason if it cannot. */
static vn_status try_out(struct run *r, const struct values *data)
{
    vn_status s;

    if ((s = fill_all(r, data)) || (s = problem_run(r->peer->queue, &r->p, &r->o)) ||
        (s = vn_queue_finish(r->peer->queue)))
        return s;
    for (int i = 0; i < r->o.count && !s; i++)
        if (is_output(&r->o, i))
            s = fill(r, i, data->operand[i]);
    return s;
}

static int prepare(struct nvidia *n, void **out, const struct problem *p, const struct values *data,
                   char *why, size_t why_size)
{
    struct run *r;

    if (peer_operation(n->ops, p, n->lacks, why, why_size) < 0)
        return -1;
    if (!(r = calloc(1, sizeof *r)))
        return peer_refuse(why, why_size, "out of memory");
    r->peer = n;
    r->p = *p;
    r->series = (struct series){ .queue = n->queue, .by_events = 1, .hold = n->hold };
    snprintf(r->p.variant, sizeof r->p.variant, "%s", n->variant);
    if (problem_operands(&r->o, &r->p)) {
        finish(r);
        return peer_refuse(why, why_size, "the problem's size overflows");
    }
    if (try_out(r, data)) {
        peer_refuse(why, why_size, "%s", vn_last_error());
        finish(r);
        return -1;
    }
    *out = r;
    return 0;
}

/* ---- running it ---- */

static vn_status enqueue(void *state)
{
    const struct run *r = state;

    return problem_run(r->peer->queue, &r->p, &r->o);
}

static int run(void *state)
{
    const struct run *r = state;

    return enqueue(state) || vn_queue_finish(r->peer->queue);
}

struct sequence { void *const *state; int count; };

static vn_status enqueue_all(void *state)
{
    const struct sequence *const all = state;
    vn_status s = VN_OK;

    for (int i = 0; i < all->count && !s; i++)
        s = enqueue(all->state[i]);
    return s;
}

static double timed(void *const *state, int count, int repeats)
{
    struct run *const first = state[0];
    struct sequence all = { state, count };
    double seconds;

    return series_time(&seconds, &first->series, enqueue_all, &all, repeats) ? -1 : seconds;
}

static int read_output(void *state, int i, void *to)
{
    struct run *r = state;
    const size_t bytes = operand_bytes(&r->o, i);
    void *all = malloc(bytes ? bytes : 1);
    const int failed = !all || vn_read(r->peer->queue, all, r->o.t[i].buffer, 0, bytes);

    if (!failed)
        peer_read(to, all, &r->o.t[i]);
    free(all);
    return failed;
}

#define PEER(library)                                                                              \
    static int library##_open(const struct peer_context *c, char *why, size_t why_size)            \
    {                                                                                              \
        return load(&library, c, why, why_size);                                                   \
    }                                                                                              \
    static const char *library##_version(void)                                                     \
    {                                                                                              \
        return library.version();                                                                  \
    }                                                                                              \
    static int library##_prepare(void **out, const struct problem *p, const struct values *data, \
                                 char *why, size_t why_size)                                       \
    {                                                                                              \
        return prepare(&library, out, p, data, why, why_size);                                     \
    }                                                                                              \
    static void library##_close(void)                                                              \
    {                                                                                              \
        unload(&library);                                                                          \
    }                                                                                              \
    const struct peer peer_##library = {                                                           \
        #library, 0, library##_open, library##_version, library##_prepare, run, timed, read_output, finish, \
        library##_close, NULL                                                                      \
    };
PEER(cublas)
PEER(cudnn)
