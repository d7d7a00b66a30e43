/* SPDX-License-Identifier: Apache-2.0
 *
 * test_unload.c - a program that closes the library (dlclose) while a device is open: drivers' threads may
 * still call it, so that it stays in the process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "vernier.h"

enum { SKIPPED = 77 };

/* A symbol of the library, as a function of the type of `out`. */
static int find(void *out, void *library, const char *name)
{
    void *const symbol = dlsym(library, name);

    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

int main(void)
{
    void *const library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    vn_status (*device_open)(vn_device **out, const char *spec);
    vn_status (*queue_open)(vn_queue **out, vn_device *d);
    vn_status (*queue_finish)(vn_queue *q);
    vn_device *d;
    vn_queue *q;
    vn_status s;

    if (!library) {
        printf("skipped: %s\n", dlerror());
        return SKIPPED;
    }
    if (!find(&device_open, library, "vn_device_open") || !find(&queue_open, library, "vn_queue_open") ||
        !find(&queue_finish, library, "vn_queue_finish"))
        return 1;
    if ((s = device_open(&d, NULL)) || (s = queue_open(&q, d)))
        return s == VN_NO_DEVICE ? SKIPPED : 1;
    dlclose(library);
    if (!dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD)) {
        puts("not ok: dlclose() removed the library, whose device is open");
        return 1;
    }
    if (queue_finish(q)) {
        puts("not ok: its queue does not work any more");
        return 1;
    }
    puts("COUNT unload 2");
    return 0;
}
