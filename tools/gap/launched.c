/* SPDX-License-Identifier: Apache-2.0
 *
 * launched.c - listens to kernel launches through NVIDIA's CUPTI, where that is installed.
 *
 * Only the callback interface is used, which is the same in all versions: at each launch it
 * says the kernel's name.  A launch that is listened to is slower, so no timed one is.
 */
#include <string.h>
#include <strings.h>

#include "launched.h"
#include "vendors/library.h"

enum { DRIVER_API = 1, MOST = 8 };

/* What a callback is given (CUpti_CallbackData), up to the name. */
struct call {
    int         site;                 /* 0: before the function, 1: after it */
    const char *function;
    const void *parameters;
    void       *result;
    const char *kernel;               /* NULL, unless it launches one */
};

typedef void listener(void *user, int domain, unsigned id, const struct call *call);

static struct {
    int (*subscribe)(void **out, listener *f, void *user);
    int (*enable)(unsigned on, void *subscriber, int domain);
    int (*unsubscribe)(void *subscriber);
} cupti;

static void   *subscriber;
static json_t *names;

static int load(void)
{
    static const char *const libraries[] = {
        "libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
        "/usr/local/cuda/lib64/libcupti.so", "libcupti.so", NULL
    };
    static const struct vn_symbol symbols[] = {
        { "cuptiSubscribe",    offsetof(__typeof__(cupti), subscribe)   },
        { "cuptiEnableDomain", offsetof(__typeof__(cupti), enable)      },
        { "cuptiUnsubscribe",  offsetof(__typeof__(cupti), unsubscribe) },
        { NULL, 0 }
    };
    static int known;                 /* 1: loaded, -1: not to be had */
    void *library;

    if (!known) {
        library = vn__library_open_cuda(libraries);
        known = library && !vn__library_look_up(&cupti, symbols, library) ? 1 : -1;
    }
    return known > 0;
}

static int is_known(const char *name)
{
    size_t i;
    json_t *value;

    json_array_foreach(names, i, value)
        if (!strcmp(json_string_value(value), name))
            return 1;
    return 0;
}

static void hear(void *user, int domain, unsigned id, const struct call *call)
{
    (void)user;
    (void)id;
    if (domain == DRIVER_API && call->site == 0 && call->kernel && *call->kernel && names
        && json_array_size(names) < MOST && !is_known(call->kernel))
        json_array_append_new(names, json_string(call->kernel));
}

void launched_listen(void)
{
    json_decref(names);
    names = NULL;
    if (!load() || cupti.subscribe(&subscriber, hear, NULL))
        return;
    names = json_array();
    cupti.enable(1, subscriber, DRIVER_API);
}

json_t *launched_names(void)
{
    json_t *const all = names;

    if (subscriber)
        cupti.unsubscribe(subscriber);
    subscriber = NULL;
    names = NULL;
    if (json_array_size(all) > 0)
        return all;
    json_decref(all);
    return NULL;
}

/* Parts of the names that cuBLAS, cuDNN and CUTLASS give their kernels; the first that fits.
 * What multiplies matrices of f64 is no wgmma: there is none.                             */
static const struct { const char *part, *class; } classes[] = {
    { "nvjet", "HGMMA" }, { "gmma", "HGMMA" }, { "sm90_xmma_gemm", "HGMMA" },
    { "ffma", "FFMA" }, { "sgemm", "FFMA" }, { "simt", "FFMA" }, { "gemv", "FFMA" }, { "gemvx", "FFMA" },
    { "dmma", "HMMA" }, { "hmma", "HMMA" }, { "tensorop", "HMMA" }, { "mma", "HMMA" }, { "s1688", "HMMA" },
    { "16816", "HMMA" }, { "1688", "HMMA" }, { "884", "HMMA" }, { "winograd", "FFMA" }, { "fft", "FFMA" },
};

static int contains(const char *text, const char *part)
{
    for (; *text; text++)
        if (!strncasecmp(text, part, strlen(part)))
            return 1;
    return 0;
}

const char *launched_class(const json_t *all, int is_f64)
{
    size_t i;
    json_t *name;

    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++)
        json_array_foreach(all, i, name)
            if (contains(json_string_value(name), classes[c].part))
                return is_f64 && strcmp(classes[c].class, "FFMA") ? "DMMA" : classes[c].class;
    return NULL;
}
