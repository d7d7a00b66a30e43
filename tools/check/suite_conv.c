/* SPDX-License-Identifier: Apache-2.0
 *
 * suite_conv.c - which convolutions the suite runs: one to three dimensions, all
 * directions, and all that can be said about a filter.
 */
#include <string.h>

#include "core.h"
#include "problem/conv.h"
#include "suite.h"

static const int64_t images[]   = { 1, 1, 2, 3 };
static const int64_t channels[] = { 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17 };
static const int64_t many[]     = { 23, 31, 32, 33, 40, 48, 64, 65 };
static const int64_t blocks[]   = { 72, 96, 128, 136, 200, 264 };       /* of 64, and of vectors of 8 */
static const int64_t vectors[]  = { 8, 16, 24, 40, 72 };        /* channels with filters of their own */
static const int64_t sizes[]    = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17 };
static const int64_t filters[]  = { 1, 1, 2, 3, 3, 4, 5 };
static const int     steps[]    = { 1, 1, 1, 2, 3 };
static const int     dilations[] = { 1, 1, 1, 2, 3 };
static const int     pads[]     = { 0, 0, 1, 1, 2, 3 };
static const double  factors[]  = { 0, 1, 1, -1, 2, 0.5 };
static const enum beside besides[] = { APART, APART, APART, APART, APART, BESIDE_ROWS, BESIDE_BLOCKS };
static const int64_t gaps[]     = { 0, 0, 0, 1, 3 };
static const int64_t starts[]   = { 0, 0, 1, 5 };
static const double  reals[]    = { 1, 1, -0.75, 0.3, 1.7 };
static const enum bias biases[] = { NO_BIAS, NO_BIAS, BIAS_ROW, BIAS_ROW, BIAS_FULL };

enum { WORK = 1 << 17, BLOCKS_WORK = 1 << 20 };

/* Channels: of all kinds; enough for kernels that sum over blocks of 64 of them; or whole vectors, with a
 * square filter for each. */
enum form { ANY, BLOCKS, SQUARES };

/* One spatial dimension; 0 if the filter does not fit into it.  Padding that a filter lies in with all of its
 * elements, and strides over pixels that it never meets, make zeros: those are few.  taps: 0, or how many. */
static int draw_dimension(struct conv_problem *o, struct random *r, int i, enum direction direction,
                          int64_t taps, int stride)
{
    int64_t room, reach;
    int     few_zeros;

    o->size[i]       = RANDOM_OF(r, sizes);
    o->filter[i]     = RANDOM_OF(r, filters);
    o->stride[i]     = RANDOM_OF(r, steps);
    o->dilation[i]   = RANDOM_OF(r, dilations);
    o->pad_before[i] = RANDOM_OF(r, pads);
    o->pad_after[i]  = random_chance(r, 0.6) ? o->pad_before[i] : RANDOM_OF(r, pads);
    few_zeros = taps || random_chance(r, 0.93);
    if (taps) {
        o->filter[i]   = taps;
        o->stride[i]   = stride;
        o->dilation[i] = 1;
    }
    if (few_zeros && direction == BACKWARD_DATA && o->stride[i] > 1 && o->dilation[i] % o->stride[i] == 0)
        o->dilation[i] = 1;                     /* else all taps meet the same pixels */
    reach = o->dilation[i] * (o->filter[i] - 1);
    if (few_zeros) {
        o->pad_before[i] = o->pad_before[i] < reach ? o->pad_before[i] : (int)reach;
        o->pad_after[i]  = o->pad_after[i] < reach ? o->pad_after[i] : (int)reach;
        o->stride[i]     = o->stride[i] <= reach + 1 ? o->stride[i] : 1;
    }
    room = o->size[i] + o->pad_before[i] + o->pad_after[i] - reach - 1;
    o->out[i] = room < 0 ? 0 : room / o->stride[i] + 1;
    return room >= 0;
}

/* Groups: mostly one, sometimes a few, sometimes one a channel (depthwise). */
static void draw_channels(struct conv_problem *o, struct random *r, enum suite_extent extent, enum form form)
{
    const int wide = extent != SUITE_SMALL && random_chance(r, 0.15);

    o->groups  = 1;
    if (form == SQUARES) {
        o->c = o->filters = RANDOM_OF(r, vectors);
        o->groups = (int)o->c;
        return;
    }
    if (form == BLOCKS) {
        o->c       = RANDOM_OF(r, blocks);
        o->filters = random_chance(r, 0.5) ? RANDOM_OF(r, blocks) : RANDOM_OF(r, many);
        return;
    }
    o->c       = wide ? RANDOM_OF(r, many) : RANDOM_OF(r, channels);
    o->filters = wide && random_chance(r, 0.5) ? RANDOM_OF(r, many) : RANDOM_OF(r, channels);
    if (random_chance(r, 0.15)) {
        o->groups  = (int)o->c;
        o->filters = o->c * (1 + random_below(r, 2));
    } else if (random_chance(r, 0.2)) {
        o->groups  = 2 + (int)random_below(r, 2);
        o->c       = o->groups * (1 + random_below(r, 5));
        o->filters = o->groups * (1 + random_below(r, 5));
    }
}

static int64_t work(const struct conv_problem *o)
{
    int64_t n = o->images * o->filters * (o->c / o->groups);

    for (int i = 0; i < 3; i++)
        n *= o->out[i] * o->filter[i];
    return n;
}

static void draw(struct problem *p, struct random *r, enum suite_extent extent)
{
    struct conv_problem *const o = conv_of(p);
    const struct conv_problem start = *o;
    const double which = random_real(r, 0, 1);
    const double drawn = extent == SUITE_SMALL ? 1 : random_real(r, 0, 1);
    const enum form form = drawn < 0.04 ? BLOCKS : drawn < 0.08 ? SQUARES : ANY;
    const int    spatial = form == SQUARES ? 2 : which < 0.2 && form == ANY ? 1 : which < 0.85 ? 2 : 3;
    const int64_t taps = form == SQUARES ? random_chance(r, 0.7) ? 3 : 5 : 0;
    const int    stride = form == SQUARES ? 1 + (int)random_below(r, 2) : 0;
    int fits;

    do {
        *o = start;
        o->spatial = spatial;
        o->images  = RANDOM_OF(r, images);
        draw_channels(o, r, extent, form);
        fits = 1;
        for (int i = 3 - spatial; i < 3; i++)
            fits &= draw_dimension(o, r, i, p->direction, taps, stride);
    } while (!fits || work(o) > (form == ANY ? WORK : BLOCKS_WORK));
    o->channels_last = random_chance(r, form == ANY ? 0.5 : 0.9);
    p->alpha = RANDOM_OF(r, factors);
    if (p->alpha == 0 && random_chance(r, 0.8))
        p->alpha = 1;
    p->gap   = RANDOM_OF(r, gaps);
    p->start = RANDOM_OF(r, starts);
    p->beside = RANDOM_OF(r, besides);
    if (!conv_has_one_type(p))
        p->beside = APART;
    o->packed = p->direction != BACKWARD_FILTER && random_chance(r, 0.2);
}

static void draw_real(struct problem *p, struct random *r)
{
    p->alpha = RANDOM_OF(r, reals);
    if (p->beta != 0)
        p->beta = RANDOM_OF(r, reals);
    p->math  = random_chance(r, 0.1) ? VN_MATH_TF32
             : random_chance(r, 0.1) ? VN_MATH_BITWISE : VN_MATH_DEFAULT;
}

static void draw_epilogue(struct problem *p, struct random *r, enum kind kind)
{
    p->beta = random_chance(r, 0.5) ? 0 : kind == REAL ? RANDOM_OF(r, reals) : RANDOM_OF(r, factors);
    p->bias = RANDOM_OF(r, biases);
    p->act  = kind == REAL ? (vn_activation)random_below(r, VN_ACTIVATION_COUNT)
            : random_chance(r, 0.3) ? VN_RELU : VN_IDENTITY;
    conv_of(p)->residual = random_chance(r, 0.4) ? (int)RANDOM_OF(r, biases) : NO_BIAS;
    if (vn_type_bytes(p->type) == 2) {
        conv_of(p)->to_f32    = random_chance(r, 0.3);
        conv_of(p)->sides_f32 = random_chance(r, 0.3);
    }
}

/* As of gemm: unless the suite is full, a direction, variant and type have one epilogue beside the plain
 * convolution, another for each, and of random numbers another activation, if the variant is forced. */
static void keep_short(struct problem *p, const struct suite *s, enum kind kind)
{
    struct random r = { suite_seed(s, p->variant, (int)p->direction * VN_TYPE_COUNT + (int)p->type) };
    static const enum bias kept[] = { BIAS_ROW, BIAS_FULL, NO_BIAS };
    const enum bias bias = RANDOM_OF(&r, kept);
    const vn_activation act = (vn_activation)random_below(&r, VN_ACTIVATION_COUNT);
    const enum bias residual = RANDOM_OF(&r, kept);
    const int f32 = (int)random_below(&r, 2);

    if (s->extent == SUITE_FULL || (p->beta == 0 && !p->bias && !p->act && !conv_of(p)->to_f32))
        return;
    p->beta = p->beta == 0 ? 1 : p->beta;
    p->bias = bias;
    p->act  = kind == REAL && *p->variant && s->extent != SUITE_SMALL ? act : VN_RELU;
    conv_of(p)->residual = (int)residual;
    conv_of(p)->to_f32 = conv_of(p)->sides_f32 = f32 && vn_type_bytes(p->type) == 2;
    if (!conv_has_one_type(p))
        p->beside = APART;
}

static const struct vn_variant *variant_of(const char *name)
{
    for (const struct vn_variant *v = op_conv.operation->variants; v->name; v++)
        if (!strcmp(v->name, name))
            return v;
    return NULL;
}

/* A variant that is made of parts is built of their kernels, which another operation's cases cover. */
static int has_parts(const char *name)
{
    const struct vn_variant *const v = variant_of(name);

    return v && v->engine && !*v->engine;
}

/* A variant that solves no problem of f32 unless it may round it to tf32. */
static int rounds_to_tf32(const char *name, vn_type type)
{
    const struct vn_variant *const v = variant_of(name);

    return type == VN_F32 && v && v->engine_f32 && strstr(v->engine_f32, "tf32");
}

static void draws(struct suite *s, enum direction direction, vn_type type, const char *variant,
                  enum kind kind, int times)
{
    struct random r = { s->seed + kind };
    const int group = ((int)direction * VN_TYPE_COUNT + (int)type) * 4 + (int)kind;
    struct random e = { suite_seed(s, variant, group) };
    struct problem epilogue[SUITE_EPILOGUES];

    for (int i = 0; i < SUITE_EPILOGUES; i++) {
        problem_usual(&epilogue[i], &op_conv);
        epilogue[i].type = type;
        epilogue[i].direction = direction;
        strcpy(epilogue[i].variant, variant);
        if (i > 0 && (s->extent == SUITE_FULL || !has_parts(variant)))
            draw_epilogue(&epilogue[i], &e, kind);
        keep_short(&epilogue[i], s, kind);
    }
    if (!suite_begin(s, "conv %s %s %s %s", direction_names[direction], suite_kinds[kind], vn_type_name(type),
                     *variant ? variant : "(chosen)"))
        return;
    for (int i = 0; i < suite_times(s, times); i++) {
        struct problem p = epilogue[i % suite_epilogues(s)];

        draw(&p, &r, s->extent);
        if (kind == REAL)
            draw_real(&p, &r);
        else if (type == VN_F32 && i / suite_epilogues(s) % 4 == 3)
            p.math = VN_MATH_TF32;              /* to which small integers are exact, too */
        if (rounds_to_tf32(variant, type))
            p.math = VN_MATH_TF32;
        suite_case(s, &p, kind);
    }
    suite_end(s);
}

/* The table is of problems as text, for here they are easier to read than as structs. */
static void specials(struct suite *s, enum direction direction, vn_type type, const char *variant)
{
    static const struct { const char *sizes, *parts; int is_long; } table[] = {
        { "n1c3h5w7k4r3s3",     ":pad=1", 0 },
        { "n2c5h6w5k7r2s3",     ":nhwc:beta=1:bias:residual=full", 0 },
        { "n1c4h7w6k6r1s1",     ":beta=-1:gap=2:act=relu", 0 },
        { "n2c6w17k4s3",        ":groups=2:stride=2:bias=full:act=gelu", 0 },
        { "n1c3d4h3w5k2t2r2s2", ":bias=full:act=gelu:start=1", 0 },
        { "n1c4h9w8k4r3s3",     ":groups=4:pad=0-1x2-0:dil=2", 0 },
        { "n1c2h9w23k3r3s5",    ":stride=4x6:dil=6x4:pad=5x7:beta=1", 0 },
        { "n2c2w3k3s3",         ":stride=2147483647:pad=1:beta=1", 0 },
        { "n1c40w1600k17s2",    ":dil=1500:beta=1", 1 },
        { "n2c8h3w4k7r1s2",     ":nhwc:dil=1x2:pad=2x3", 0 },
        { "n1c8h5w1k8r2s1",     ":nhwc:stride=1x2:pad=0x1-0", 0 },
        { "n1c3h5w7k4r3s3",     ":alpha=0", 0 },
        { "n1c3h5w7k4r3s3",     ":alpha=nan:pad=1", 0 },
        { "n2c3h5w7k4r1s1",     ":nhwc:beside=rows", 0 },
        { "n2c5h4w3k7r1s1",     ":beta=2:bias=full:residual=full", 0 },
        { "n1c3h5w7k4r3s3",     ":beta=nan", 0 },
        { "n1c3h5w7k40r3s3",    ":packed:pad=1:bias", 0 },
        { "n2c4h5w7k6r2s2",     ":packed:nhwc:groups=2", 0 },
        { "n2c8h11w4k6r1s1",    ":stride=2x1:pad=0-3x0:nhwc", 0 },    /* padding behind alone */
        { "n2c4h4w16k6r1s1",    ":stride=1x2:pad=0x0-1:beta=1", 0 },
        { "n1c3h5w7k4r3s3",     ":alpha=0:beta=2:bias:nhwc", 0 },
        { "n0c3h5w7k4r3s3",     "", 0 },
        { "n2c0h5w7k4r3s3",     ":beta=1:bias", 0 },
        { "n2c3h5w7k0r3s3",     "", 0 },
        { "n2c3h2w7k4r3s3",     "", 0 },
    };

    if (!suite_begin(s, "conv %s special %s %s", direction_names[direction], vn_type_name(type),
                     *variant ? variant : "(chosen)"))
        return;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
        struct problem p;

        if (s->extent == SUITE_SMALL && table[i].is_long)
            continue;
        snprintf(text, sizeof text, "conv:%s:%s:%s%s%s%s", table[i].sizes, vn_type_name(type),
                 direction_names[direction], table[i].parts, *variant ? ":variant=" : "", variant);
        if (problem_parse(&p, text, why, sizeof why) == 0) {
            keep_short(&p, s, SPECIAL);
            if (rounds_to_tf32(variant, type))
                p.math = VN_MATH_TF32;
            suite_case(s, &p, SPECIAL);
        } else
            suite_fault(s, "%s", why);
    }
    suite_end(s);
}

void suite_conv(struct suite *s)
{
    for (const char *v = suite_next_variant(s, &op_conv, NULL); v; v = suite_next_variant(s, &op_conv, v))
        for (int direction = FORWARD; direction <= BACKWARD_FILTER; direction++)
            for (int type = 0; type < VN_TYPE_COUNT; type++) {
                draws(s, (enum direction)direction, (vn_type)type, v, EXACT, 400);
                draws(s, (enum direction)direction, (vn_type)type, v, REAL, 100);
                specials(s, (enum direction)direction, (vn_type)type, v);
            }
}
