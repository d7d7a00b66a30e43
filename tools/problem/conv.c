/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.c - the operation conv: convolutions of one to three dimensions, forward and both backward.
 */
#include <math.h>
#include <string.h>

#include "check/data.h"
#include "conv.h"
#include "core.h"
#include "language.h"
#include "operands.h"

const int conv_place[][3] = {
    [FORWARD] = { 0, 1, 2 }, [BACKWARD_DATA] = { 2, 1, 0 }, [BACKWARD_FILTER] = { 0, 2, 1 } };

/* ---- the language: options, one number for all dimensions or one for each ---- */

#define AT(member) OWN(struct conv_problem, member)

/* "1" or "1x2".  With `after`, each may be two: "0-1x2-3". */
static int read_dimensions(const struct reader *r, int before[3], int after[3], const struct key *k,
                           const char *value)
{
    const int n = conv_of(r->p)->spatial;
    int64_t   v[3][2];
    int       count = 0;
    const char *s = value;

    for (;;) {
        if (count == n || scan_integer(&v[count][0], s, &s))
            goto bad;
        v[count][1] = v[count][0];
        if (after && *s == '-' && scan_integer(&v[count][1], s + 1, &s))
            goto bad;
        if (v[count][0] < k->low || v[count][0] > INT32_MAX || v[count][1] > INT32_MAX)
            goto bad;
        count++;
        if (*s != 'x')
            break;
        s++;
    }
    if (*s || (count != 1 && count != n))
        goto bad;
    for (int i = 0; i < n; i++) {
        before[3 - n + i] = (int)v[count == 1 ? 0 : i][0];
        if (after)
            after[3 - n + i] = (int)v[count == 1 ? 0 : i][1];
    }
    return 0;
bad:
    return wrong(r, "conv: %s is \"%s\"; it must be one number of at least %d, or %d of them such as %s",
                 k->name, value, (int)k->low, n, after ? "1x2 or 0-1x2-3" : "1x2");
}

static int all_are(const int v[3], int n, int value)
{
    for (int i = 3 - n; i < 3; i++)
        if (v[i] != value)
            return 0;
    return 1;
}

static void write_dimensions(struct writer *w, const struct key *k, const int before[3], const int after[3],
                             int n)
{
    const int one = all_are(before, n, before[2]) && all_are(after, n, after[2]);

    if (one && before[2] == (int)k->usual && after[2] == (int)k->usual)
        return;
    write_text(w, ":%s=", k->name);
    for (int i = one ? 2 : 3 - n; i < 3; i++) {
        write_text(w, "%d", before[i]);
        if (after[i] != before[i])
            write_text(w, "-%d", after[i]);
        write_text(w, "%s", i < 2 ? "x" : "");
    }
}

#define DIMENSIONS(named, before, after_read, after_write)                                      \
    static int read_##named(const struct reader *r, const struct key *k, const char *value)     \
    {                                                                                           \
        struct conv_problem *const c = conv_of(r->p);                                           \
                                                                                                \
        return read_dimensions(r, c->before, after_read, k, value);                             \
    }                                                                                           \
    static void write_##named(struct writer *w, const struct key *k, const struct problem *p)   \
    {                                                                                           \
        const struct conv_problem *const c = conv_of(p);                                        \
                                                                                                \
        write_dimensions(w, k, c->before, c->after_write, c->spatial);                          \
    }
DIMENSIONS(stride, stride, NULL, stride)
DIMENSIONS(dil, dilation, NULL, dilation)
DIMENSIONS(pad, pad_before, c->pad_after, pad_after)

static const struct key keys[] = {
    { "to", read_name, write_nothing, AT(to_f32), 0, 0, 0, f32_names },
    KEY_NAME("sides", AT(sides_f32), f32_names),
    KEY_NAME("residual", AT(residual), bias_names),
    { .name = "stride", .read = read_stride, .write = write_stride, .usual = 1, .low = 1 },
    { .name = "dil",    .read = read_dil,    .write = write_dil,    .usual = 1, .low = 1 },
    { .name = "pad",    .read = read_pad,    .write = write_pad,    .usual = 0, .low = 0 },
    KEY_INTEGER("groups", AT(groups), 1, 1, INT32_MAX),
    { .name = NULL }
};

static const struct word words[] = {
    { "nchw",            AT(channels_last),                   0,               1 },
    { "nhwc",            AT(channels_last),                   1,               0 },
    { "forward",         offsetof(struct problem, direction), FORWARD,         1 },
    { "backward-data",   offsetof(struct problem, direction), BACKWARD_DATA,   0 },
    { "backward-filter", offsetof(struct problem, direction), BACKWARD_FILTER, 0 },
    { "bias",            offsetof(struct problem, bias),      BIAS_ROW,        0 },
    { "packed",          AT(packed),                          1,               0 },
    { NULL, 0, 0, 0 }
};

/* ---- the language: sizes ---- */

static const struct conv_problem usual = {
    .spatial = 1, .groups = 1, .size = { 1, 1, 1 }, .filter = { 1, 1, 1 }, .out = { 1, 1, 1 },
    .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 } };

/* The dimensions are those that a letter needs. */
static int sizes(const struct reader *r, const char *text)
{
    struct conv_problem *const c = conv_of(r->p);
    const struct letter letters[] = {
        { 'n', &c->images, 1 }, { 'c', &c->c, 1 }, { 'k', &c->filters, 1 },
        { 'd', &c->size[0], 3 }, { 'h', &c->size[1], 2 }, { 'w', &c->size[2], 1 },
        { 't', &c->filter[0], 3 }, { 'r', &c->filter[1], 2 }, { 's', &c->filter[2], 1 }, { 0, NULL, 0 } };

    return (c->spatial = read_letters(r, text, letters, "n64c64h56w56k64r3s3")) < 0 ? -1 : 0;
}

/* The extents of y, from the formula of vernier.h. */
static int find_out(const struct reader *r)
{
    struct conv_problem *const c = conv_of(r->p);

    for (int i = 0; i < 3; i++) {
        int64_t reach, room;

        if (c->filter[i] < 1)
            return wrong(r, "conv: a filter has no elements; its extents must be 1 or more");
        if (__builtin_mul_overflow(c->filter[i] - 1, (int64_t)c->dilation[i], &reach)
            || __builtin_add_overflow(c->size[i], (int64_t)c->pad_before[i], &room)
            || __builtin_add_overflow(room, (int64_t)c->pad_after[i], &room))
            return wrong(r, "conv: the sizes overflow 63 bits");
        room -= reach + 1;
        if (room < 0 && room + c->stride[i] < 0)
            return wrong(r, "conv: the filter reaches over %lld elements, where the padded input has %lld",
                         (long long)reach + 1, (long long)(room + reach + 1));
        c->out[i] = room < 0 ? 0 : room / c->stride[i] + 1;
    }
    return 0;
}

static int complete(const struct reader *r)
{
    const struct conv_problem *const c = conv_of(r->p);

    if (c->c % c->groups || c->filters % c->groups)
        return wrong(r, "conv: %lld groups do not divide %lld channel%s and %lld filter%s",
                     (long long)c->groups, (long long)c->c, PLURAL(c->c), (long long)c->filters,
                     PLURAL(c->filters));
    if (r->p->beside && !conv_has_one_type(r->p))
        return wrong(r, "conv: operands in one buffer have one type; here some are f32 beside %s",
                     vn_type_name(r->p->type));
    if ((c->to_f32 || c->sides_f32) && vn_type_bytes(r->p->type) != 2)
        return wrong(r, "conv: %s is f32; that needs f16 or bf16, not %s",
                     c->to_f32 ? "the output" : "bias or residual", vn_type_name(r->p->type));
    return find_out(r);
}

static void write(struct writer *w, const struct problem *p)
{
    const struct conv_problem *const c = conv_of(p);
    const int from = 3 - c->spatial;

    write_text(w, "n%lldc%lld", (long long)c->images, (long long)c->c);
    for (int i = from; i < 3; i++)
        write_text(w, "%c%lld", "dhw"[i], (long long)c->size[i]);
    write_text(w, "k%lld", (long long)c->filters);
    for (int i = from; i < 3; i++)
        write_text(w, "%c%lld", "trs"[i], (long long)c->filter[i]);
    write_text(w, ":%s%s", vn_type_name(p->type), c->to_f32 ? ">f32" : "");
    write_keys(w, keys, p);
    write_text(w, ":%s:%s%s", c->channels_last ? "nhwc" : "nchw", direction_names[p->direction],
               c->packed && p->direction != BACKWARD_FILTER ? ":packed" : "");
}

/* ---- operands ---- */

static const char *const names[OPERANDS] = {
    "the first operand", "the second operand", "the third operand", "the bias", "the residual" };

/* For each channel of the output, in forward as a tensor of rank 1; or as the output lies, which `order` is
 * of.                                                                                                   */
static void lay_out_side(struct operands *o, int at, const struct problem *p, int which, const int *order)
{
    const struct conv_problem *const c = conv_of(p);

    if (!which)
        return;
    if (which == BIAS_ROW && p->direction == FORWARD)
        o->elements[at] = lay_out(&o->t[at], p, 1, &c->filters, NULL);
    else if (which == BIAS_FULL)
        o->elements[at] = lay_out(&o->t[at], p, o->t[2].rank, o->t[2].extent, order);
    else
        o->elements[at] = lay_out_part(&o->t[at], p, &o->t[2], 1u << c->spatial);
    o->t[at].type = c->sides_f32 ? VN_F32 : o->t[2].type;
}

/* forward x w y, backward data dy w dx, backward filter x dy dw */
static void operands(struct operands *o, const struct problem *p)
{
    static const int last[3][5] = { { 0, 2, 1 }, { 0, 2, 3, 1 }, { 0, 2, 3, 4, 1 } };
    const struct conv_problem *const c = conv_of(p);
    const int    *order = c->channels_last ? last[c->spatial - 1] : NULL;
    const int     rank = 2 + c->spatial, from = 3 - c->spatial;
    int64_t       extent[3][5] = { { c->images, c->c }, { c->filters, c->c / c->groups },
                                   { c->images, c->filters } };
    const int64_t *const spatial[3] = { c->size, c->filter, c->out };

    o->outputs = 1u << 2;
    for (int i = 0; i < 3; i++) {
        const int at = conv_place[p->direction][i];

        memcpy(extent[i] + 2, spatial[i] + from, (size_t)c->spatial * sizeof extent[i][0]);
        o->elements[at] = lay_out(&o->t[at], p, rank, extent[i], order);
    }
    if (c->to_f32)
        o->t[2].type = VN_F32;
    lay_out_side(o, CONV_BIAS, p, (int)p->bias, order);
    lay_out_side(o, CONV_RESIDUAL, p, c->residual, order);
    o->residual = c->residual ? CONV_RESIDUAL : 0;
}

static vn_conv_options options_of(const struct problem *p, const struct operands *o)
{
    const struct conv_problem *const c = conv_of(p);
    vn_conv_options options = { .groups = (int)c->groups, .math = p->math, .bias = o->t[CONV_BIAS],
                                .activation = p->act, .size = sizeof options, .variant = variant_of(p),
                                .residual = o->t[CONV_RESIDUAL], .packed_w = o->pack };
    const int    from = 3 - c->spatial;
    const size_t bytes = (size_t)c->spatial * sizeof(int);

    memcpy(options.stride, c->stride + from, bytes);
    memcpy(options.dilation, c->dilation + from, bytes);
    memcpy(options.pad_before, c->pad_before + from, bytes);
    memcpy(options.pad_after, c->pad_after + from, bytes);
    return options;
}

static vn_status pack(vn_queue *q, const struct problem *p, struct operands *o)
{
    const int *const at = conv_place[p->direction];
    const vn_conv_options options = options_of(p, o);

    if (!conv_of(p)->packed || p->direction == BACKWARD_FILTER)
        return VN_OK;
    return vn_conv_pack_open(&o->pack, q, (vn_conv_direction)p->direction, o->t[at[0]], o->t[at[1]],
                             o->t[at[2]], &options);
}

static vn_status run(vn_queue *q, const struct problem *p, const struct operands *o)
{
    static vn_status (*const call[])(vn_queue *, double, vn_tensor, vn_tensor, double, vn_tensor,
                                     const vn_conv_options *) =
        { vn_conv_forward, vn_conv_backward_data, vn_conv_backward_filter };
    const vn_conv_options options = options_of(p, o);

    return call[p->direction](q, p->alpha, o->t[0], o->t[1], p->beta, o->t[2], &options);
}

static double flops(const struct problem *p)
{
    const struct conv_problem *const c = conv_of(p);
    double n = 2.0 * (double)c->images * (double)c->filters * (double)(c->c / c->groups);

    for (int i = 0; i < 3; i++)
        n *= (double)c->out[i] * (double)c->filter[i];
    return n;
}

/* ---- checks ---- */

static double summands(const struct problem *p)
{
    const struct conv_problem *const c = conv_of(p);
    double n = p->direction == FORWARD ? (double)(c->c / c->groups)
             : p->direction == BACKWARD_DATA ? (double)(c->filters / c->groups) : (double)c->images;

    for (int i = 0; i < 3; i++)
        n *= (double)(p->direction == BACKWARD_FILTER ? c->out[i] : c->filter[i]);
    return n;
}

/* One group, and in it what a part of the output needs: of images, filters and channels,
 * one of those that the output has, and all of those that are summed over.              */
static void narrow_conv(struct problem *p, struct operands *o, int last)
{
    struct conv_problem *const g = conv_of(p);
    const int *const place = conv_place[p->direction];
    const int64_t c_each = g->c / g->groups, k_each = g->filters / g->groups;
    const int64_t group = last ? g->groups - 1 : 0;
    const struct range n = end_of(g->images, p->direction == BACKWARD_FILTER ? g->images : 1, last);
    const struct range k = end_of(k_each, p->direction == BACKWARD_DATA ? k_each : 1, last);
    const struct range c = end_of(c_each, p->direction == FORWARD ? c_each : 1, last);
    const struct range filters  = { group * k_each + k.from, k.count };
    const struct range channels = { group * c_each + c.from, c.count };
    const struct range of[3][2] = { { n, channels }, { filters, c }, { n, filters } };

    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 2; d++) {
            narrow(&o->t[place[i]], d, of[i][d]);
            for (int at = CONV_BIAS; at <= CONV_RESIDUAL && place[i] == o->output; at++)
                if (o->t[at].rank > 1)
                    narrow(&o->t[at], d, of[i][d]);
        }
    for (int at = CONV_BIAS; at <= CONV_RESIDUAL; at++)
        if (o->t[at].rank == 1)
            narrow(&o->t[at], 0, filters);
    g->images  = n.count;
    g->c       = c.count;
    g->filters = k.count;
    g->groups  = 1;
}

static void shrink(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][4] = {
        { 2, 35, 21, 19 }, { 1, 131, 35, 9 }, { 1, 19, 259, 7 }, { 1, 5, 9, 67 } };
    struct conv_problem *const c = conv_of(p);
    const int64_t groups = c->c == c->groups ? shrunk(c->groups, most[shape][1], shape, even)
                                             : at_most(c->groups, 2);
    const int64_t channels = shrunk(c->c / c->groups, most[shape][1], shape, even);
    const int64_t filters = shrunk(c->filters / c->groups, most[shape][2], shape, even);

    c->images  = at_most(c->images, most[shape][0]);
    c->c       = groups * channels;
    c->filters = groups * filters;
    c->groups  = groups;
    for (int d = 0; d < 3; d++) {
        const int64_t least = (c->filter[d] - 1) * c->dilation[d] + 1;

        c->size[d] = shrunk(c->size[d], least > most[shape][3] ? least : most[shape][3], shape, 0);
    }
}

/* Whether a zero of the padding times a NaN of the filter counts is nobody's business: a
 * convolution has them in its second operand only where there is no padding.             */
static int is_padded(const struct problem *p)
{
    const struct conv_problem *const c = conv_of(p);

    for (int i = 0; i < 3; i++)
        if (c->pad_before[i] || c->pad_after[i] ||
            (p->direction == BACKWARD_DATA && (c->filter[i] > 1 || c->stride[i] > 1)))
            return 1;
    return 0;
}

static int suits(const struct problem *p, const struct pattern *t)
{
    return t->slot != 1 || t->everywhere || isfinite(t->value(p->type)) || !is_padded(p);
}

const struct op op_conv = {
    .name = "conv", .operation = &vn__conv,
    .words = words, .keys = keys, .has_epilogue = 1, .usual = &usual, .own_size = sizeof usual,
    .directions = 1u << FORWARD | 1u << BACKWARD_DATA | 1u << BACKWARD_FILTER, .batch = AT(images),
    .read_sizes = sizes, .complete = complete, .write = write,
    .operands = names, .lay_out = operands, .pack = pack, .run = run,
    .flops = flops,
    .oracle = oracle_conv, .summands = summands, .narrow = narrow_conv, .shrink = shrink,
    .cases = suite_conv, .fill = data_fill_products, .patterns = product_patterns, .suits = suits,
};
