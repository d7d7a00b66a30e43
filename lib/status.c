/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c - statuses, the sentence of the last error, and handles.
 */
#include "os.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "core.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

static __thread char        error[1024];
static __thread const char *function = "vernier";

/* ---- names ----------------------------------------------------------------- */

const char *vn_version(void)
{
    return STRING(VN_VERSION_MAJOR) "." STRING(VN_VERSION_MINOR) "." STRING(VN_VERSION_PATCH);
}

static const struct { const char *name, *meaning; } statuses[] = {
#define VN_STATUS(name, meaning) { "VN_" #name, meaning },
    VN_STATUS_MAP(VN_STATUS)
#undef VN_STATUS
};

const char *vn_status_name(vn_status s)
{
    return (unsigned)s < VN_STATUS_COUNT ? statuses[s].name : "no vn_status";
}

const char *vn_status_meaning(vn_status s)
{
    return (unsigned)s < VN_STATUS_COUNT ? statuses[s].meaning : "no vn_status";
}

/* ---- the sentence ---------------------------------------------------------- */

const char *vn_last_error(void)
{
    return error;
}

vn_status vn__fail(vn_status s, const char *sentence, ...)
{
    const int used = snprintf(error, sizeof error, "%s: ", function);
    va_list args;

    va_start(args, sentence);
    vsnprintf(error + used, sizeof error - (size_t)used, sentence, args);
    va_end(args);
    return s;
}

/* The threads of a driver do not survive a fork: its calls would hang in the child. */
static volatile int     is_forked;
static pthread_once_t   fork_once = PTHREAD_ONCE_INIT;
static volatile int     any_use;

static void in_child(void)
{
    is_forked = any_use;            /* a child that is forked before the first use may use the library */
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void vn__use_drivers(void)
{
    pthread_once(&fork_once, watch_forks);
    any_use = 1;
}

vn_status vn__enter(const char *name)
{
    function = name;
    error[0] = '\0';
    if (is_forked)
        return vn__fail(VN_FAILED, "this process was forked from one that had used the library; "
                        "exec, or fork before the first device is listed or opened");
    return VN_OK;
}

vn_status vn__leave(vn_status s)
{
    if (s == VN_OK)
        error[0] = '\0';
    return s;
}

/* ---- handles --------------------------------------------------------------- */

/* A closed handle is not freed: it stays, marked as closed, in the list of its kind, so that its use is a
 * named error instead of a crash. The oldest is reused first.                         */
enum { OPEN = 0x564e4f50, CLOSED = 0x564e434c, REUSED_AFTER = 64 };

static pthread_mutex_t handle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct { struct vn_handle *first, *last; int count; } closed[VN_KIND_COUNT];
static uint64_t handles_closed;

static const char *const kind_names[VN_KIND_COUNT] = { "handle", "device", "queue", "buffer", "event",
                                                       "pack" };

void *vn__handle_open(enum vn_kind kind, size_t bytes)
{
    struct vn_handle *h = NULL;

    vn__use_drivers();
    pthread_mutex_lock(&handle_lock);
    if (closed[kind].count >= REUSED_AFTER) {
        h = closed[kind].first;
        closed[kind].first = h->next;
        closed[kind].count--;
    }
    pthread_mutex_unlock(&handle_lock);

    if (h)
        memset(h, 0, bytes);
    else if (!(h = calloc(1, bytes))) {
        vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a %s", bytes, kind_names[kind]);
        return NULL;
    }
    h->kind = kind;
    h->magic = OPEN;
    return h;
}

void vn__handle_mark(void *handle)
{
    ((struct vn_handle *)handle)->magic = CLOSED;
}

void vn__handle_close(void *handle)
{
    struct vn_handle *h = handle;

    if (h->kind != VN_EVENT)
        __atomic_fetch_add(&handles_closed, 1, __ATOMIC_RELEASE);
    pthread_mutex_lock(&handle_lock);
    h->magic = CLOSED;
    h->next = NULL;
    if (closed[h->kind].count++)
        closed[h->kind].last->next = h;
    else
        closed[h->kind].first = h;
    closed[h->kind].last = h;
    pthread_mutex_unlock(&handle_lock);
}

uint64_t vn__handles_closed(void)
{
    return __atomic_load_n(&handles_closed, __ATOMIC_ACQUIRE);
}

vn_status vn__handle_check(const void *handle, enum vn_kind kind, const char *argument)
{
    const struct vn_handle *h = handle;

    if (h && h->magic == OPEN && h->kind == (unsigned)kind)
        return VN_OK;
    if (!h)
        return vn__fail(VN_INVALID, "%s is NULL; it needs an open %s", argument, kind_names[kind]);
    if (h->magic == CLOSED)
        return vn__fail(VN_INVALID, "%s is a %s that was closed; it needs an open %s", argument,
                        h->kind < VN_KIND_COUNT ? kind_names[h->kind] : kind_names[0], kind_names[kind]);
    if (h->magic == OPEN && h->kind < VN_KIND_COUNT)
        return vn__fail(VN_INVALID, "%s is a %s; it needs a %s", argument, kind_names[h->kind],
                        kind_names[kind]);
    return vn__fail(VN_INVALID, "%s is not a handle of this library; it needs an open %s", argument,
                    kind_names[kind]);
}

/* ---- the kernels' texts ---------------------------------------------------- */

const struct vn_text *vn__text_find(const char *path)
{
    for (const struct vn_text *t = vn__texts; t->path; t++)
        if (!strcmp(t->path, path))
            return t;
    return NULL;
}
