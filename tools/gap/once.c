/* SPDX-License-Identifier: Apache-2.0
 *
 * once.c - what is measured once for a pair: launches, transfers, builds.
 *
 * Both devices take turns.  The empty kernel is built and launched through the backend alone,
 * a hair above the bare driver call; what vn_gemm() adds is measured against bare calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "core.h"
#include "gap.h"
#include "pinned.h"
#include "measure/sampling.h"

enum { CALLS = 64, CHAIN = 1000, TURNS = 21, FEWEST_TURNS = 3 };

static const double PATIENCE = 2;        /* seconds for a line; slow devices get fewer turns */

static int goes_on(int turn, double start)
{
    return turn < TURNS && (turn < FEWEST_TURNS || vn__seconds() - start < PATIENCE);
}

/* ---- an empty kernel ---- */

struct empty { struct side *side; void *program, *kernel; };

static vn_status empty_open(struct empty *e, struct side *s)
{
    vn_device *const d = s->device;
    const struct vn_text *const words = vn__text_find(strcmp(d->backend->name, "cuda")
                                                      ? "cl/words.h" : "cuda/words.h");
    static const char body[] = "\nKERNEL(32) void empty_kernel(GLOBAL int *x)\n{\n    (void)x;\n}\n";
    char *const text = words ? malloc(words->length + sizeof body) : NULL;
    vn_status status;

    *e = (struct empty){ .side = s };
    if (!text)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    memcpy(text, words->text, words->length);
    memcpy(text + words->length, body, sizeof body);
    status = vn__cache_build(&e->program, NULL, d, text);
    free(text);
    return status ? status : d->backend->kernel_open(&e->kernel, d, e->program, "empty_kernel");
}

static void empty_close(struct empty *e)
{
    if (e->kernel)
        e->side->device->backend->kernel_close(e->kernel);
    if (e->program)
        vn__cache_close(e->side->device, e->program);
}

static vn_status launch_empty(const struct empty *e)
{
    struct vn_launch l = { .groups = { 1, 1, 1 }, .items = 32 };

    vn__arg_buffer(&l, NULL);
    return e->side->device->backend->launch(e->side->queue, e->kernel, &l);
}

/* Seconds of each of `calls` launches; waits: after each, and chain: for all of them. */
static int time_empty(double *out, const struct empty *e, int calls, int waits, int chain)
{
    vn_queue *const q = e->side->queue;
    const double start = vn__seconds();
    double end;

    for (int i = 0; i < calls; i++)
        if (launch_empty(e) || (waits && vn_queue_finish(q)))
            return -1;
    if (chain && vn_queue_finish(q))
        return -1;
    end = vn__seconds();
    *out = (end - start) / calls;
    return vn_queue_finish(q) ? -1 : 0;
}

static json_t *entry(const char *name, const char *unit, const double v[2])
{
    json_t *const out = json_pack("{s:s, s:s}", "name", name, "unit", unit);

    for (int i = 0; i < 2; i++)
        json_object_set_new(out, i ? "second" : "first", v[i] > 0 ? json_real(v[i]) : json_null());
    return out;
}

static const struct { const char *name; int calls, waits, chain; } launches[] = {
    { "empty kernel, enqueue only",       CALLS, 0, 0 },
    { "empty kernel, enqueue and finish", CALLS, 1, 0 },
    { "empty kernel, each of a chain of 1000", CHAIN, 0, 1 },
};

static int time_launches(json_t *out, const struct empty e[2])
{
    for (size_t k = 0; k < sizeof launches / sizeof *launches; k++) {
        const double start = vn__seconds();
        double sample[2][TURNS], median[2];
        int i;

        for (i = 0; goes_on(i, start); i++)
            for (int j = 0; j < 2; j++)
                if (time_empty(&sample[j][i], &e[j], launches[k].calls, launches[k].waits, launches[k].chain))
                    return -1;
        for (int j = 0; j < 2; j++)
            median[j] = median_of(sample[j], i);
        json_array_append_new(out, entry(launches[k].name, "s", median));
    }
    return 0;
}

/* ---- what vn_gemm() adds ---- */

static void add_call_costs(json_t *out, struct gap *g)
{
    double ours[2][2] = { { 0, 0 }, { 0, 0 } }, bare[2][2] = { { 0, 0 }, { 0, 0 } },
           ratio[2][2] = { { 0, 0 }, { 0, 0 } };

    for (int i = 0; i < 2; i++) {
        struct overhead o;

        if (overhead_measure(&o, g->side[i].info.spec))
            continue;
        for (int k = 0; k < 2; k++) {
            const struct call_cost *const cost = k ? &o.finish : &o.enqueue;

            ours[k][i]  = cost->ours;
            bare[k][i]  = cost->bare;
            ratio[k][i] = cost->ours / cost->bare;
        }
    }
    for (int k = 0; k < 2; k++) {
        const char *const what = k ? "enqueue and finish" : "enqueue only";
        char name[80];

        snprintf(name, sizeof name, "gemm 32 x 32 x 32, bare calls, %s", what);
        json_array_append_new(out, entry(name, "s", bare[k]));
        snprintf(name, sizeof name, "gemm 32 x 32 x 32, vn_gemm, %s", what);
        json_array_append_new(out, entry(name, "s", ours[k]));
        snprintf(name, sizeof name, "vn_gemm over bare calls, %s", what);
        json_array_append_new(out, entry(name, "times", ratio[k]));
    }
}

static json_t *measure_launches(struct gap *g)
{
    json_t *const out = json_array();
    struct empty e[2] = { { .side = NULL } };

    if (empty_open(&e[0], &g->side[FIRST]) || empty_open(&e[1], &g->side[SECOND])
        || launch_empty(&e[0]) || launch_empty(&e[1]) || time_launches(out, e))
        complain("the empty kernel cannot be measured: %s", vn_last_error());
    for (int i = 0; i < 2; i++)
        if (e[i].side)
            empty_close(&e[i]);
    add_call_costs(out, g);
    return out;
}

int events_are_times(struct side *s)
{
    struct empty e;
    struct stopwatch watch;
    double wall = 0, events = 0;
    int failed = empty_open(&e, s) || time_empty(&wall, &e, CALLS, 0, 1)
               || stopwatch_start(&watch, s->queue, 1);

    wall = vn__seconds();
    for (int i = 0; i < CHAIN && !failed; i++)
        failed = launch_empty(&e);
    if (!failed)
        failed = stopwatch_stop(&events, &watch);
    wall = vn__seconds() - wall;
    empty_close(&e);
    return !failed && events > 0.1 * wall && events < 1.5 * wall;
}

/* ---- transfers ---- */

static const size_t sizes[] = { 4 << 10, 1 << 20, 64 << 20 };

struct transfer { struct side *side; vn_buffer *buffer; struct pinned pinned; };

static int time_transfer(double *out, const struct transfer *t, void *host, size_t bytes, int reads)
{
    const int repeats = bytes < 1 << 20 ? 64 : bytes < 16 << 20 ? 8 : 1;
    const double start = vn__seconds();

    for (int i = 0; i < repeats; i++)
        if (reads ? vn_read(t->side->queue, host, t->buffer, 0, bytes)
                  : vn_write(t->side->queue, t->buffer, 0, host, bytes))
            return -1;
    *out = (vn__seconds() - start) / repeats;
    return 0;
}

/* pageable: memory as malloc gives it; NULL: the pinned memory of each. */
static int time_line(json_t *out, const struct transfer t[2], void *pageable, size_t bytes, int reads)
{
    const double start = vn__seconds();
    double sample[2][TURNS], median[2];
    char name[80], size[CELL];
    int i;

    for (i = -1; goes_on(i, start); i++)                        /* the first touches the pages */
        for (int j = 0; j < 2; j++)
            if (time_transfer(&sample[j][i < 0 ? 0 : i], &t[j], pageable ? pageable : t[j].pinned.host, bytes,
                              reads))
                return -1;
    for (int j = 0; j < 2; j++)
        median[j] = median_of(sample[j], i);
    snprintf(name, sizeof name, "%s %s, %s", reads ? "read" : "write", bytes_text(size, (double)bytes),
             pageable ? "pageable" : "pinned");
    json_array_append_new(out, entry(name, "s", median));
    return 0;
}

static int time_transfers(json_t *out, const struct transfer t[2], void *pageable)
{
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int reads = 0; reads < 2; reads++)
            if (time_line(out, t, pageable, sizes[k], reads))
                return -1;
    return 0;
}

static json_t *measure_transfers(struct gap *g)
{
    const size_t largest = sizes[sizeof sizes / sizeof *sizes - 1];
    struct transfer t[2] = { { .side = &g->side[FIRST] }, { .side = &g->side[SECOND] } };
    void *const host = malloc(largest);
    json_t *const out = json_array();
    int failed = !host, pinned = 1;

    if (host)
        memset(host, 1, largest);
    for (int i = 0; i < 2 && !failed; i++) {
        failed  = vn_buffer_open(&t[i].buffer, t[i].side->device, largest);
        pinned &= !pinned_open(&t[i].pinned, t[i].side->queue, largest);
    }
    if (failed || time_transfers(out, t, host) || (pinned && time_transfers(out, t, NULL)))
        complain("transfers cannot be measured: %s", host ? vn_last_error() : "host memory ran out");
    else if (!pinned)
        complain("pinned memory is not to be had on both devices: such transfers are left out");
    for (int i = 0; i < 2; i++) {
        pinned_close(&t[i].pinned);
        vn_buffer_close(t[i].buffer);
    }
    free(host);
    return out;
}

/* ---- builds ---- */

static json_t *measure_builds(struct gap *g)
{
    static const char *const names[] = {
        "first vn_gemm of a process, nothing built before", "first vn_gemm of a process, built before",
        "opening the device and first vn_gemm, nothing built before",
        "opening the device and first vn_gemm, built before" };
    double v[4][2] = { { 0 } };
    json_t *const out = json_array();

    for (int i = 0; i < 2; i++) {
        struct start cold, warm;

        if (startup_measure(&cold, &warm, g->side[i].info.spec))
            continue;
        v[0][i] = cold.call;
        v[1][i] = warm.call;
        v[2][i] = cold.whole;
        v[3][i] = warm.whole;
    }
    for (int k = 0; k < 4; k++)
        json_array_append_new(out, entry(names[k], "s", v[k]));
    return out;
}

json_t *gap_once(struct gap *g)
{
    return json_pack("{s:o, s:o, s:o}", "launch", measure_launches(g), "transfer", measure_transfers(g),
                     "build", measure_builds(g));
}
