/* SPDX-License-Identifier: Apache-2.0
 *
 * pair.c - which two devices: one GPU through OpenCL and through CUDA, or any two by name.
 */
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "core.h"
#include "gap.h"

enum { DEVICES = 32 };

struct listing { vn_device_info it[DEVICES]; int count; };

static int is_of(const vn_device_info *d, const char *backend)
{
    const size_t n = strlen(backend);

    return !strncmp(d->spec, backend, n) && d->spec[n] == ':';
}

static int is_same_gpu(const vn_device_info *a, const vn_device_info *b)
{
    return (*a->uuid && !strcmp(a->uuid, b->uuid)) || (*a->pci && !strcmp(a->pci, b->pci));
}

static void list(struct listing *out)
{
    const int count = vn_device_count();

    out->count = 0;
    for (int i = 0; i < count && out->count < DEVICES; i++)
        if (!vn_device_get(&out->it[out->count], i))
            out->count++;
}

/* ---- finding the pair ---- */

struct match { int opencl, cuda; };

static int find_matches(struct match *out, const struct listing *l)
{
    int n = 0;

    for (int i = 0; i < l->count; i++)
        for (int j = 0; j < l->count; j++)
            if (is_of(&l->it[i], "opencl") && is_of(&l->it[j], "cuda") && is_same_gpu(&l->it[i], &l->it[j]))
                out[n++] = (struct match){ i, j };
    return n;
}

static int is_named(const vn_device_info *d, const char *gpu)
{
    return !strcmp(d->spec, gpu) || strstr(d->name, gpu) || !strcmp(d->uuid, gpu) || !strcmp(d->pci, gpu);
}

static int keep_named(struct match *m, int count, const struct listing *l, const char *gpu)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (is_named(&l->it[m[i].opencl], gpu) || is_named(&l->it[m[i].cuda], gpu))
            m[kept++] = m[i];
    return kept;
}

static int explain_none(const struct listing *l)
{
    int opencl = 0, cuda = 0;

    for (int i = 0; i < l->count; i++) {
        opencl += is_of(&l->it[i], "opencl") && !l->it[i].is_cpu;
        cuda   += is_of(&l->it[i], "cuda");
    }
    if (!cuda && !opencl)
        complain("no GPU is seen through both OpenCL and CUDA: install NVIDIA's driver with its OpenCL, or "
                 "name any two devices with --pair SPEC,SPEC (vernier devices lists them)");
    else if (!cuda)
        complain("there is a GPU through OpenCL, but none through CUDA: install NVIDIA's driver "
                 "(libcuda.so.1) and NVRTC, or name any two devices with --pair SPEC,SPEC");
    else if (!opencl)
        complain("there is a GPU through CUDA, but none through OpenCL: install the OpenCL loader "
                 "(ocl-icd-libopencl1) and let /etc/OpenCL/vendors/nvidia.icd name libnvidia-opencl.so.1, or "
                 "name any two devices with --pair SPEC,SPEC");
    else
        complain("no GPU has the same UUID or PCI address through OpenCL and through CUDA: name the two with "
                 "--pair SPEC,SPEC");
    return EXIT_USAGE;
}

static int explain_many(const struct match *m, int count, const struct listing *l)
{
    char all[1024] = "";
    size_t n = 0;

    for (int i = 0; i < count && n < sizeof all; i++) {
        const vn_device_info *const a = &l->it[m[i].opencl], *const b = &l->it[m[i].cuda];

        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s (%s, %s, with %s)", n ? "; " : "", a->spec,
                              a->name, a->pci, b->spec);
    }
    complain("there are %d pairs, so name one with --gpu SPEC: %s", count, all);
    return EXIT_USAGE;
}

static int find_pair(char first[32], char second[32], const char *gpu)
{
    struct match m[DEVICES * DEVICES];
    struct listing l;
    int count;

    list(&l);
    if (!(count = find_matches(m, &l)))
        return explain_none(&l);
    if (gpu && !(count = keep_named(m, count, &l, gpu))) {
        complain("--gpu is \"%s\", and no GPU that both OpenCL and CUDA see has that spec, name, UUID or PCI "
                 "address", gpu);
        return EXIT_USAGE;
    }
    if (count > 1)
        return explain_many(m, count, &l);
    snprintf(first, 32, "%s", l.it[m[0].opencl].spec);
    snprintf(second, 32, "%s", l.it[m[0].cuda].spec);
    return 0;
}

/* ---- opening it ---- */

static int side_open(struct side *s, const char *spec)
{
    const int status = device_open(&s->device, &s->queue, spec);

    if (status)
        return status;
    vn_device_describe(&s->info, s->device);
    s->by_events = events_are_times(s);
    return 0;
}

static void open_hold(struct side *s)
{
    if (s->by_events && !s->info.is_cpu && hold_open(&s->hold, s->queue))
        s->hold = NULL;                  /* short runs go without */
}

static int open_both(struct gap *g, const char *first, const char *second)
{
    int status = side_open(&g->side[FIRST], first);

    if (!status)
        status = side_open(&g->side[SECOND], second);
    if (!status && !strcmp(g->side[FIRST].info.spec, g->side[SECOND].info.spec)) {
        complain("\"%s\" and \"%s\" are the same device, %s: name two", first, second,
                 g->side[FIRST].info.spec);
        return EXIT_USAGE;
    }
    /* two kinds of clock cannot be compared */
    g->side[FIRST].by_events = g->side[SECOND].by_events =
        g->side[FIRST].by_events && g->side[SECOND].by_events;
    for (int i = 0; i < 2 && !status; i++)
        open_hold(&g->side[i]);
    return status;
}

int pair_open(struct gap *g, const char *gpu, const char *pair)
{
    char first[128], second[128];
    const char *const comma = pair ? strchr(pair, ',') : NULL;
    int status;

    if (!pair)
        return (status = find_pair(first, second, gpu)) ? status : open_both(g, first, second);
    if (!comma || comma == pair || !comma[1] || (size_t)(comma - pair) >= sizeof first) {
        complain("--pair is \"%s\", and must be two devices with a comma between, as opencl:0,cuda:0", pair);
        return EXIT_USAGE;
    }
    snprintf(first, sizeof first, "%.*s", (int)(comma - pair), pair);
    snprintf(second, sizeof second, "%s", comma + 1);
    return open_both(g, first, second);
}

int twin_open(struct gap *g, int side)
{
    struct side *const s = &g->side[side];
    const struct side *const original = &g->side[side & 1];

    if (s->queue)
        return 0;
    if (vn_device_open(&s->device, original->info.spec) || vn_queue_open(&s->queue, s->device))
        return -1;
    s->info      = original->info;
    s->by_events = original->by_events;
    open_hold(s);
    return 0;
}

void pair_close(struct gap *g)
{
    for (int i = 0; i < SIDES; i++) {
        hold_close(g->side[i].hold);
        vn_queue_close(g->side[i].queue);
        vn_device_close(g->side[i].device);
    }
}

json_t *pair_json(const struct gap *g)
{
    json_t *const out = json_array();

    for (int i = 0; i < 2; i++) {
        const struct side *const s = &g->side[i];

        json_array_append_new(out, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}",
            "spec", s->info.spec, "name", s->info.name, "platform", s->info.platform,
            "driver", s->info.driver, "uuid", s->info.uuid, "pci", s->info.pci,
            "toolchain", s->device->facts.toolchain,
            "kernel_time", s->by_events ? "device events" : "wall clock",
            "roofline", json_roofline(&s->roofline)));
    }
    return out;
}
