/* SPDX-License-Identifier: Apache-2.0
 *
 * next.c - the BLAS that is there: the functions that these stand before.
 *
 * $VERNIER_BLAS names its file.  Else it is what the dynamic linker finds behind this library; or any library
 * that the process has loaded, since those that dlopen() loads for a Python module alone are not behind it;
 * or the system's.  A function of this library itself is never the answer, so that no call comes back.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

/* The system's, also those whose integers have 64 bits: their names end in 64_. */
static const char *const systems[] = {
    "libblas.so.3", "libopenblas.so.0", "libblas64.so.3", "libopenblas64_.so.0", NULL
};

static const void *base_of(const void *address)
{
    Dl_info info;

    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* The function of a library, unless that leads here. */
static void *function_of(void *library, const char *name)
{
    void *const f = dlsym(library, name);

    return f && base_of(f) != base_of(systems) ? f : NULL;
}

/* Looks in a file; a library in which a function was found stays open. */
static void *function_in(const char *file, int how, const char *name)
{
    void *const library = dlopen(file, how | RTLD_LAZY | RTLD_LOCAL);
    void *f;

    if (!library)
        return NULL;
    if (!(f = function_of(library, name)))
        dlclose(library);
    return f;
}

/* The files that are loaded.  They are opened afterwards: the list is locked while it is walked. */
struct loaded {
    char **names;
    int    count, room;
};

static int note_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
    struct loaded *const all = data;

    (void)size;
    if (!info->dlpi_name || !*info->dlpi_name)
        return 0;
    if (all->count == all->room) {
        const int room = all->room ? 2 * all->room : 64;
        char **const more = realloc(all->names, (size_t)room * sizeof *more);

        if (!more)
            return 1;
        all->names = more;
        all->room = room;
    }
    if ((all->names[all->count] = strdup(info->dlpi_name)))
        all->count++;
    return 0;
}

static void *function_loaded(const char *name)
{
    struct loaded all = { NULL, 0, 0 };
    void *f = NULL;

    dl_iterate_phdr(note_loaded, &all);
    for (int i = 0; i < all.count; i++) {
        if (!f)
            f = function_in(all.names[i], RTLD_NOLOAD, name);
        free(all.names[i]);
    }
    free(all.names);
    return f;
}

static void *function_found(const char *name)
{
    const char *const configured = secure_getenv("VERNIER_BLAS");
    void *f = configured && *configured ? function_in(configured, 0, name) : NULL;

    if (!f)
        f = function_of(RTLD_NEXT, name);
    if (!f)
        f = function_loaded(name);
    for (const char *const *s = systems; !f && *s; s++)
        f = function_in(*s, 0, name);
    return f;
}

void *vn__next(struct next *it, int required)
{
    void *f = __atomic_load_n(&it->function, __ATOMIC_ACQUIRE);

    if (f)
        return f;
    if (!(f = function_found(it->name))) {
        if (!required)
            return NULL;
        fprintf(stderr,
                "libvernier_cblas: no BLAS that is loaded has %s(); set VERNIER_BLAS to the file of one\n",
                it->name);
        abort();
    }
    __atomic_store_n(&it->function, f, __ATOMIC_RELEASE);
    return f;
}
