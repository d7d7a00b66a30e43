/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_graph.c - cuDNN's backend API: it keeps what descriptors are told, and has the panel's engines.
 *
 * A graph that is one convolution, of whichever direction, is computed in plain loops.
 */
#include <stdlib.h>
#include <string.h>

#include "vendors/cudnn.h"
#include "fake.h"

#pragma GCC visibility push(default)

#define FAILS() do { if (fake_fails(__func__)) return 4000; } while (0)

/* ---- descriptors ---- */

enum { ENGINE = 2, ENGINECFG = 3, ENGINEHEUR = 4, PLAN = 5, OPERATION_FORWARD = 10, OPERATION_BWD_FILTER = 11,
       OPERATION_BWD_DATA = 12, GRAPH = 15, VARIANT_PACK = 16, TENSOR = 17, KINDS = 18 };
enum { HANDLE = 0, DATA_TYPE = 1, BOOLEAN = 2, INT64 = 3, FLOAT = 4, DOUBLE = 5, VOID_PTR = 6, CONV_MODE = 7,
       HEUR_MODE = 8, NUMERICAL_NOTE = 11, POINTWISE_MODE = 14, DESCRIPTOR = 15, TYPES = 16 };
enum { COMP_TYPE = 100, MODE, DILATIONS, STRIDES, POST_PADDINGS, PRE_PADDINGS,
       HEURISTICS_GRAPH = 201, HEURISTICS_RESULTS = 202, CONFIG_ENGINE = 300,
       PLAN_CONFIG = 401, PLAN_WORKSPACE = 402, GRAPH_OPERATIONS = 801,
       TENSOR_TYPE = 901, TENSOR_EXTENTS = 902, TENSOR_STRIDES = 903, TENSOR_ID = 906,
       PACK_IDS = 1000, PACK_POINTERS = 1001, PACK_WORKSPACE = 1003, ENGINE_NOTES = 1303 };
/* Behind the first attribute of a convolution. */
enum { BY_SUM, BY_OUTPUT, CONV, W, X, Y };

enum { ATTRIBUTES = 8, ROOM = 40, NEEDED = 2048, MOST_RANK = 5 };

struct attribute { int name, type; int64_t count; unsigned char bytes[ROOM]; };

struct descriptor {
    int kind, is_final, attributes, engine;
    const struct descriptor *graph;             /* of what the heuristics named */
    struct attribute attribute[ATTRIBUTES];
};

static const size_t sizes[TYPES] = {
    [HANDLE] = sizeof(void *), [DATA_TYPE] = sizeof(int), [BOOLEAN] = 1, [INT64] = sizeof(int64_t),
    [FLOAT] = sizeof(float), [DOUBLE] = sizeof(double), [VOID_PTR] = sizeof(void *),
    [CONV_MODE] = sizeof(int), [HEUR_MODE] = sizeof(int), [POINTWISE_MODE] = sizeof(int),
    [DESCRIPTOR] = sizeof(void *) };

static const struct attribute *find(const struct descriptor *d, int name)
{
    static const struct attribute none;

    for (int i = 0; i < d->attributes; i++)
        if (d->attribute[i].name == name)
            return &d->attribute[i];
    return &none;
}

/* Zeros, and a complaint, where it was not set, or set as another type. */
static const void *get(const struct descriptor *d, int name, int type)
{
    const struct attribute *a = find(d, name);

    FAKE_NEEDS(a->count && a->type == type);
    return a->bytes;
}

static const struct descriptor *get_descriptor(const struct descriptor *d, int name)
{
    const struct descriptor *out;

    memcpy(&out, get(d, name, DESCRIPTOR), sizeof out);
    return out;
}

cudnnStatus cudnnBackendCreateDescriptor(int kind, cudnnDescriptor *out)
{
    struct descriptor *d;

    FAKE_NEEDS(kind >= 0 && kind < KINDS);
    FAILS();
    if (!(d = calloc(1, sizeof *d)))
        return 4000;
    d->kind = kind;
    *out = d;
    fake.descriptors++;
    return 0;
}

cudnnStatus cudnnBackendDestroyDescriptor(cudnnDescriptor d)
{
    FAKE_NEEDS(d && fake.descriptors > 0);
    free(d);
    fake.descriptors--;
    return 0;
}

cudnnStatus cudnnBackendSetAttribute(cudnnDescriptor it, int name, int type, int64_t count, const void *at)
{
    struct descriptor *d = it;
    struct attribute *a = &d->attribute[d->attributes];

    FAILS();
    FAKE_NEEDS(d && !d->is_final && d->attributes < ATTRIBUTES);
    FAKE_NEEDS(name >= 0 && type >= 0 && type < TYPES && count > 0 && at);
    FAKE_NEEDS(sizes[type] && (size_t)count * sizes[type] <= ROOM);
    *a = (struct attribute){ .name = name, .type = type, .count = count };
    memcpy(a->bytes, at, (size_t)count * sizes[type]);
    d->attributes++;
    return 0;
}

cudnnStatus cudnnBackendFinalize(cudnnDescriptor it)
{
    struct descriptor *d = it;

    FAILS();
    FAKE_NEEDS(d && !d->is_final);
    for (int i = 0; i < d->attributes; i++)
        if (d->attribute[i].type == DESCRIPTOR) {
            const struct descriptor *other;

            memcpy(&other, d->attribute[i].bytes, sizeof other);
            FAKE_NEEDS(other && other->is_final);
        }
    if (d->kind == PLAN) {
        const struct descriptor *config = get_descriptor(d, PLAN_CONFIG);

        d->engine = config->engine;
        d->graph = config->graph;
        if (fake.engine[d->engine].refuses)
            return CUDNN_NOT_SUPPORTED;
    }
    d->is_final = 1;
    return 0;
}

cudnnStatus cudnnBackendGetAttribute(cudnnDescriptor it, int name, int type, int64_t room, int64_t *count,
                                     void *to)
{
    const struct descriptor *d = it;
    struct descriptor **const others = to;

    FAILS();
    FAKE_NEEDS(d && d->is_final && type >= 0 && room > 0 && count && to);
    *count = 1;
    if (name == HEURISTICS_RESULTS) {
        FAKE_NEEDS(d->kind == ENGINEHEUR && type == DESCRIPTOR);
        *count = room < fake.engines ? room : fake.engines;
        for (int i = 0; i < *count; i++) {
            FAKE_NEEDS(others[i]->kind == ENGINECFG);
            others[i]->is_final = 1;
            others[i]->engine = i;
            others[i]->graph = get_descriptor(d, HEURISTICS_GRAPH);
        }
    } else if (name == CONFIG_ENGINE) {
        FAKE_NEEDS(d->kind == ENGINECFG && type == DESCRIPTOR && others[0]->kind == ENGINE);
        others[0]->is_final = 1;
        others[0]->engine = d->engine;
    } else if (name == ENGINE_NOTES) {
        FAKE_NEEDS(d->kind == ENGINE && type == NUMERICAL_NOTE);
        *(int *)to = fake.engine[d->engine].note;
    } else {
        FAKE_NEEDS(d->kind == PLAN && name == PLAN_WORKSPACE && type == INT64);
        *(int64_t *)to = NEEDED;
    }
    return 0;
}

/* ---- the convolution of a graph ---- */

struct view { int type; int64_t rank, extent[MOST_RANK], stride[MOST_RANK]; void *at; };

struct convolution {
    struct view x, w, y, *out;
    int         dims;
    int64_t     pad[MOST_RANK], stride[MOST_RANK], dilation[MOST_RANK];
    double      by_sum, by_output;
};

static double load(const struct view *v, int64_t at)
{
    return v->type == CUDNN_F64 ? ((double *)v->at)[at] : ((float *)v->at)[at];
}

static void store(const struct view *v, int64_t at, double number)
{
    if (v->type == CUDNN_F64)
        ((double *)v->at)[at] = number;
    else
        ((float *)v->at)[at] = (float)number;
}

static void scale(const struct view *v, int d, int64_t at, double by)
{
    if (d == v->rank)
        store(v, at, by != 0 ? by * load(v, at) : 0);
    for (int64_t i = 0; d < v->rank && i < v->extent[d]; i++)
        scale(v, d + 1, at + i * v->stride[d], by);
}

/* All pairs of an element of y and one of w, of which dimensions from d on are still to be gone through. */
static void walk(const struct convolution *c, int d, int64_t x, int64_t w, int64_t y)
{
    if (d == c->dims + 2) {
        const struct view *const out = c->out;
        const int64_t to = out == &c->x ? x : out == &c->w ? w : y;
        const double product = (out == &c->x ? 1 : load(&c->x, x)) * (out == &c->w ? 1 : load(&c->w, w)) *
                               (out == &c->y ? 1 : load(&c->y, y));

        store(out, to, load(out, to) + c->by_sum * product);
        return;
    }
    for (int64_t o = 0; o < c->y.extent[d]; o++)
        for (int64_t f = 0; f < c->w.extent[d]; f++) {
            const int64_t i = o * c->stride[d - 2] - c->pad[d - 2] + f * c->dilation[d - 2];

            if (i >= 0 && i < c->x.extent[d])
                walk(c, d + 1, x + i * c->x.stride[d], w + f * c->w.stride[d], y + o * c->y.stride[d]);
        }
}

static void convolve(const struct convolution *c)
{
    const int64_t channels = c->w.extent[1], groups = c->x.extent[1] / channels;
    const int64_t filters = c->w.extent[0] / groups;

    scale(c->out, 0, 0, c->by_output);
    for (int64_t n = 0; n < c->y.extent[0]; n++)
        for (int64_t k = 0; k < c->w.extent[0]; k++)
            for (int64_t ch = 0; ch < channels; ch++)
                walk(c, 2, n * c->x.stride[0] + (k / filters * channels + ch) * c->x.stride[1],
                     k * c->w.stride[0] + ch * c->w.stride[1], n * c->y.stride[0] + k * c->y.stride[1]);
}

/* Where the pack has the operand of that number. */
static void *place_of(const struct descriptor *pack, int64_t id)
{
    const struct attribute *ids = find(pack, PACK_IDS), *pointers = find(pack, PACK_POINTERS);
    int64_t known[ROOM / sizeof(int64_t)];
    void *at[ROOM / sizeof(void *)];

    FAKE_NEEDS(ids->type == INT64 && pointers->type == VOID_PTR && ids->count == pointers->count);
    memcpy(known, ids->bytes, sizeof known);
    memcpy(at, pointers->bytes, sizeof at);
    for (int64_t i = 0; i < ids->count; i++)
        if (known[i] == id)
            return at[i];
    return NULL;
}

static struct view view_of(const struct descriptor *operation, int name, const struct descriptor *pack)
{
    const struct descriptor *t = get_descriptor(operation, name);
    struct view v = { .rank = find(t, TENSOR_EXTENTS)->count };
    int64_t id;

    FAKE_NEEDS(t->kind == TENSOR && find(t, TENSOR_STRIDES)->count == v.rank);
    memcpy(&v.type, get(t, TENSOR_TYPE, DATA_TYPE), sizeof v.type);
    memcpy(v.extent, get(t, TENSOR_EXTENTS, INT64), sizeof v.extent);
    memcpy(v.stride, get(t, TENSOR_STRIDES, INT64), sizeof v.stride);
    memcpy(&id, get(t, TENSOR_ID, INT64), sizeof id);
    v.at = place_of(pack, id);
    FAKE_NEEDS(v.at && v.rank >= 4);
    return v;
}

static double scalar(const struct descriptor *operation, int name, int type)
{
    const void *at = get(operation, name, type == CUDNN_F64 ? DOUBLE : FLOAT);
    float f;
    double d;

    memcpy(&f, at, sizeof f);
    memcpy(&d, at, sizeof d);
    return type == CUDNN_F64 ? d : f;
}

/* A wrong argument is complained of, and nothing is computed. */
static void compute(const struct descriptor *operation, const struct descriptor *pack)
{
    static const int first[KINDS] = {
        [OPERATION_FORWARD] = 700, [OPERATION_BWD_DATA] = 706, [OPERATION_BWD_FILTER] = 712 };
    const int base = first[operation->kind], complaints = fake.complaints;
    const struct descriptor *conv;
    struct convolution c = { .dims = 0 };
    int type, mode;

    FAKE_NEEDS(base);
    if (!base)
        return;
    c.x = view_of(operation, base + X, pack);
    c.w = view_of(operation, base + W, pack);
    c.y = view_of(operation, base + Y, pack);
    c.out = operation->kind == OPERATION_FORWARD ? &c.y : operation->kind == OPERATION_BWD_DATA ? &c.x : &c.w;
    c.by_sum = scalar(operation, base + BY_SUM, c.x.type);
    c.by_output = scalar(operation, base + BY_OUTPUT, c.x.type);
    conv = get_descriptor(operation, base + CONV);
    c.dims = (int)c.x.rank - 2;
    FAKE_NEEDS(find(conv, STRIDES)->count == c.dims);
    memcpy(&type, get(conv, COMP_TYPE, DATA_TYPE), sizeof type);
    memcpy(&mode, get(conv, MODE, CONV_MODE), sizeof mode);
    FAKE_NEEDS(type == c.x.type && mode == CUDNN_CROSS_CORRELATION);
    memcpy(c.pad, get(conv, PRE_PADDINGS, INT64), sizeof c.pad);
    FAKE_NEEDS(!memcmp(c.pad, get(conv, POST_PADDINGS, INT64), sizeof c.pad));
    memcpy(c.stride, get(conv, STRIDES, INT64), sizeof c.stride);
    memcpy(c.dilation, get(conv, DILATIONS, INT64), sizeof c.dilation);
    if (fake.complaints == complaints)
        convolve(&c);
}

cudnnStatus cudnnBackendExecute(cudnnHandle h, cudnnDescriptor plan, cudnnDescriptor pack)
{
    const struct descriptor *const p = plan, *const at = pack;
    struct fake_engine *e;
    void *workspace;

    FAILS();
    FAKE_NEEDS(fake.depth > 0);
    FAKE_NEEDS(h && p && p->kind == PLAN && p->is_final && at && at->kind == VARIANT_PACK && at->is_final);
    memcpy(&workspace, get(at, PACK_WORKSPACE, VOID_PTR), sizeof workspace);
    FAKE_NEEDS(workspace);
    e = &fake.engine[p->engine];
    e->ran++;
    if (e->fails)
        return 4000;
    fake.clock += e->milliseconds;
    fake.foreign++;
    if (find(p->graph, GRAPH_OPERATIONS)->count == 1)
        compute(get_descriptor(p->graph, GRAPH_OPERATIONS), at);
    return 0;
}
