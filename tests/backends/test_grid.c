/* SPDX-License-Identifier: Apache-2.0
 *
 * test_grid.c - PoCL runs each work-group of a grid once, whatever else is done with the kernel meanwhile.
 *
 * A kernel that waits for a word from the host is running on some queues while its program is saved, or
 * while another queue runs it with a wider grid.  PoCL before 6.0 aborts of either, if it is let
 * (backends/opencl/grid.c).
 */
#define _GNU_SOURCE
#include "core.h"
#include "../disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts in count[] how often each group of the grid was run, and in word[0] those that wait: for word[1],
 * but not for ever.                                                                     */
static const char text[] =
    "KERNEL(ITEMS) void visit(GLOBAL int *count, GLOBAL volatile int *word, int columns, int rows,\n"
    "                         int wait)\n"
    "{\n"
    "    const int at = (GROUP_ID(2) * rows + GROUP_ID(1)) * columns + GROUP_ID(0);\n"
    "\n"
    "    if (LOCAL_ID() == 0) {\n"
    "        if (wait)\n"
    "            ATOMIC_ADD(word, 1);\n"
    "        for (INT64 i = 0; i < (INT64)wait << 32 && !word[1]; i++)\n"
    "            ;\n"
    "        ATOMIC_ADD(count + at, 1);\n"
    "    }\n"
    "}\n";

enum { MOST = 300000, WAITING = 3, LONG = 16 };       /* LONG: minutes */

static int        cases, failures;
static vn_device *device;
static vn_queue  *queue, *waiting[WAITING];
static vn_buffer *counts, *word;

static void check(int good, const char *what)
{
    cases++;
    if (good)
        return;
    failures++;
    printf("FAIL grid: %s: %s\n", what, vn_last_error());
}

/* ---- a kernel ------------------------------------------------------------------------ */

struct built { void *program, *kernel; int items; };

static vn_status open_kernel(struct built *k, int items)
{
    const struct vn_variant v = { .name = "visit", .texts = "", .params = "ITEMS", .defines = text };
    const int p[VN_PARAMS] = { items };
    char *const whole = vn__assemble(device->backend->name, &v, p, NULL, VN_F32, 0, NULL);
    vn_status s = whole ? vn__cache_build(&k->program, NULL, device, whole) : VN_NO_MEMORY;

    free(whole);
    k->items = items;
    return s ? s : device->backend->kernel_open(&k->kernel, device, k->program, "visit");
}

static void close_kernel(struct built *k)
{
    device->backend->kernel_close(k->kernel);
    vn__cache_close(device, k->program);
}

static vn_status launch(vn_queue *q, const struct built *k, int x, int y, int z, int wait)
{
    struct vn_launch l = { .groups = { x, y, z }, .items = k->items };

    vn__arg_buffer(&l, counts);
    vn__arg_buffer(&l, word);
    vn__arg_int(&l, x);
    vn__arg_int(&l, y);
    vn__arg_int(&l, wait);
    return device->backend->launch(q, k->kernel, &l);
}

/* ---- every group once ------------------------------------------------------------------ */

static int host[MOST];

static vn_status clear(void)
{
    static const int nothing[2];

    memset(host, 0, sizeof host);
    return vn_write(queue, counts, 0, host, sizeof host) || vn_write(queue, word, 0, nothing, sizeof nothing);
}

/* Each of the first `n` groups was run once, and the first also on `more` queues; no other was. */
static int counted(int n, int more)
{
    if (vn_read(queue, host, counts, 0, sizeof host))
        return 0;
    for (int i = 0; i < MOST; i++)
        if (host[i] != (i < n) + (i == 0) * more)
            return 0;
    return 1;
}

/* Extents on both sides of what 16 bits hold. */
static const int grids[][3] = {
    { 1, 1, 1 }, { 5, 3, 2 }, { 2, 3, 5 }, { 1, 1, 7 }, { 65535, 1, 1 }, { 65536, 1, 1 }, { 65537, 2, 2 },
    { 131072, 1, 1 }, { 1, 65535, 2 }, { 1, 65536, 1 }, { 2, 65536, 2 }, { 3, 65537, 1 }, { 1, 1, 70000 },
    { 2, 1, 65537 }, { 299, 1001, 1 },
};

static void visit_each(const struct built *k)
{
    char what[64];

    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        const int *const g = grids[i];

        snprintf(what, sizeof what, "%d x %d x %d groups of %d", g[0], g[1], g[2], k->items);
        check(!clear() && !launch(queue, k, g[0], g[1], g[2], 0) && counted(g[0] * g[1] * g[2], 0), what);
    }
}

/* ---- while it runs ---------------------------------------------------------------------- */

/* Launches one group on each of some queues, and returns when all are running, and wait. */
static vn_status begin(const struct built *k)
{
    int begun = 0;
    vn_status s = clear();

    for (int i = 0; i < WAITING && !s; i++)
        s = launch(waiting[i], k, 1, 1, 1, LONG);
    while (!s && begun < WAITING)
        s = vn_read(queue, &begun, word, 0, sizeof begun);
    return s;
}

static vn_status end(void)
{
    static const int go = 1;
    vn_status s = vn_write(queue, word, sizeof go, &go, sizeof go);

    for (int i = 0; i < WAITING && !s; i++)
        s = vn_queue_finish(waiting[i]);
    return s;
}

static void save_while_running(const struct built *k)
{
    void *blob;
    size_t bytes;

    check(!begin(k), "a program to be saved is run");
    if (!device->backend->program_save(k->program, &blob, &bytes))
        free(blob);
    check(!end() && counted(1, WAITING - 1), "a program is saved while it runs");
}

static void widen_while_running(const struct built *k)
{
    static const int wider[][3] = { { 2, 1, 1 }, { 9, 1, 1 }, { 1, 64, 1 }, { 65600, 1, 1 } };

    for (size_t i = 0; i < sizeof wider / sizeof *wider; i++) {
        const int *const g = wider[i];

        check(!begin(k), "a kernel to be widened is run");
        check(!launch(queue, k, g[0], g[1], g[2], 0) && !vn_queue_finish(queue), "a wider grid is run");
        check(!end() && counted(g[0] * g[1] * g[2], WAITING), "a wider grid while another runs");
    }
}

/* ---- all -------------------------------------------------------------------------------- */

int main(void)
{
    struct built one = { 0 }, four = { 0 };
    char base[PATH];

    start_cold(base);
    setenv("POCL_MAX_PTHREAD_COUNT", "8", 1);     /* so that many groups can wait, also on few cores */
    if (vn_device_open(&device, "Portable") || device->facts.units < 2 + WAITING) {
        printf("skipped: no PoCL here, or one with too few threads\n");
        wipe(base);
        return 77;
    }
    for (int i = 0; i < WAITING; i++)
        check(!vn_queue_open(&waiting[i], device), "opening a queue");
    check(!vn_queue_open(&queue, device)
          && !vn_buffer_open(&counts, device, sizeof host) && !vn_buffer_open(&word, device, 2 * sizeof(int))
          && !open_kernel(&one, 1) && !open_kernel(&four, 4), "opening");
    if (!failures) {
        save_while_running(&four);
        widen_while_running(&four);
        save_while_running(&one);
        visit_each(&one);
        visit_each(&four);
        close_kernel(&four);
        close_kernel(&one);
    }
    vn_buffer_close(word);
    vn_buffer_close(counts);
    for (int i = 0; i < WAITING; i++)
        vn_queue_close(waiting[i]);
    vn_queue_close(queue);
    vn_device_close(device);
    wipe(base);
    printf("COUNT grid %d\n", cases);
    return failures != 0;
}
