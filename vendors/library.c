/* SPDX-License-Identifier: Apache-2.0
 *
 * library.c - loads vendors' libraries, and finds their functions, at run time.
 */
#include "os.h"

#include <stdio.h>

#include "library.h"

void *vn__library_open(const char *const *names)
{
    void *library = NULL;

    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void *open_in(const char *directory, int length, const char *const *names)
{
    void *library = NULL;
    char path[4096];

    if (length == 0)
        return vn__library_open(names);
    for (; *names && !library; names++)
        if ((size_t)snprintf(path, sizeof path, "%.*s/%s", length, directory, *names) < sizeof path)
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library;
}

void *vn__library_open_cuda(const char *const *names)
{
    const char *at = secure_getenv("VERNIER_CUDA_LIBRARY_PATH");
    void *library = NULL;

    if (!at || !*at)
        return vn__library_open(names);
    for (;; at++) {
        const size_t length = strcspn(at, ":");

        if ((library = open_in(at, (int)length, names)) || !at[length])
            return library;
        at += length;
    }
}

const char *vn__library_look_up(void *pointers, const struct vn_symbol *symbols, void *library)
{
    for (; symbols->name; symbols++) {
        void *found = dlsym(library, symbols->name);

        if (!found)
            return symbols->name;
        *(void **)((char *)pointers + symbols->at) = found;
    }
    return NULL;
}
