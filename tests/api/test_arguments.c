/* SPDX-License-Identifier: Apache-2.0
 *
 * test_arguments.c - every wrong argument of every public function: its status, a sentence
 * that names the function and the argument, and no byte changed.
 *
 * The operations are tested by harming one thing at a time in calls that would work:
 * each tensor, each dimension of it, each option.
 */
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "problem/attention.h"
#include "problem/conv.h"
#include "../start.h"

static vn_device *device, *second;                /* the same one, opened twice: two devices to us */
static vn_queue  *queue;
static long       cases, failures;

/* ---- one case ------------------------------------------------------------------ */

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* `word` by itself, not as a part of another. */
static int has_word(const char *sentence, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = strstr(sentence, word); at; at = strstr(at + 1, word))
        if ((at == sentence || !is_letter(at[-1])) && !is_letter(at[n]))
            return 1;
    return 0;
}

/* `argument` NULL: none is at fault. */
static int expect(vn_status got, vn_status wanted, const char *function, const char *argument,
                  const char *what)
{
    const char *sentence = vn_last_error();
    const int   right = got == wanted && (wanted == VN_OK ? !*sentence
                : has_word(sentence, function) && (!argument || has_word(sentence, argument))
                  && strlen(sentence) > 20);

    cases++;
    if (right)
        return 1;
    failures++;
    printf("not ok: %s, %s (%s): %s, should be %s; \"%s\"\n", function, what, argument ? argument : "-",
           vn_status_name(got), vn_status_name(wanted), sentence);
    return 0;
}

/* ---- calls that work ---------------------------------------------------------------- */

enum { OPTION = 3, TENSORS = 14, BYTES = 1 << 14 };     /* OPTION: the bias or the mask; then others */

struct signature { const char *function, *text, *names[TENSORS]; };

struct call {
    const char     *function, *text, *const *names;
    struct problem  p;
    struct operands o;
    vn_buffer      *buffers[TENSORS], *shared;    /* of just the size; one that holds two operands */
};

static const struct signature signatures[] = {
    { "vn_gemm", "gemm:5x6x7:f32:nn",                               { "A", "B", "C" } },
    { "vn_gemm", "gemm:5x6x7:f16:tn:batch=2:bias=full:beta=1:gap=2",
      { "A", "B", "C", "options.bias" } },
    { "vn_gemm", "gemm:4x9x3:bf16:nt:bias=row:act=gelu",            { "A", "B", "C", "options.bias" } },
    { "vn_gemm", "gemm:4x6x3:bf16:nn:beta=1:bias=col:residual=full:scale=row",
      { "A", "B", "C", "options.bias", "options.residual", "options.scale" } },
    { "vn_gemm", "gemm:4x6x3:f16>f32:nn:beta=1:bias=row:residual=row",
      { "A", "B", "C", "options.bias", "options.residual" } },
    { "vn_conv_forward", "conv:n2c4w8k6s3:f32:groups=2:bias",       { "x", "w", "y", "options.bias" } },
    { "vn_conv_forward", "conv:n2c3h7w8k4r3s2:f16:nhwc:pad=1:beta=1:bias=full",
      { "x", "w", "y", "options.bias" } },
    { "vn_conv_forward", "conv:n1c2d4h5w6k3t2r3s2:bf16:stride=2",   { "x", "w", "y" } },
    { "vn_conv_forward", "conv:n2c3h7w8k4r3s2:f16:beta=1:bias:residual=full",
      { "x", "w", "y", "options.bias", "options.residual" } },
    { "vn_conv_backward_filter", "conv:n2c3h7w8k4r3s2:f16>f32:beta=1:backward-filter:residual=row",
      { "x", "dy", "dw", NULL, "options.residual" } },
    { "vn_conv_backward_data", "conv:n2c3h7w8k4r3s2:f32:pad=1:backward-data:bias",
      { "dy", "w", "dx", "options.bias" } },
    { "vn_conv_backward_data", "conv:n2c4w8k6s3:f16:backward-data:groups=2:nhwc", { "dy", "w", "dx" } },
    { "vn_conv_backward_filter", "conv:n2c3h7w8k4r3s2:f32:pad=1:beta=1:backward-filter",
      { "x", "dy", "dw" } },
    { "vn_conv_backward_filter", "conv:n2c4w8k6s3:bf16:backward-filter", { "x", "dy", "dw" } },
    { "vn_softmax", "softmax:6x9:f32:mask=full",                    { "x", "y", NULL, "options.mask" } },
    { "vn_softmax", "softmax:6x9:f16:inner=3:batch=2:log",          { "x", "y" } },
    { "vn_softmax", "softmax:6x9:bf16:causal:mask=row",             { "x", "y", NULL, "options.mask" } },
    { "vn_softmax_backward", "softmax:6x9:f32:backward",            { "y", "dy", "dx" } },
    { "vn_softmax_backward", "softmax:6x9:f16:backward:inner=2:log:batch=3", { "y", "dy", "dx" } },
    { "vn_cross_entropy", "cross-entropy:6x9:f32:weights:lse",
      { "x", NULL, "loss", "options.weights", "options.lse", "dx" } },
    { "vn_cross_entropy", "cross-entropy:6x9:bf16:targets=i64",     { "x", NULL, "loss", NULL, NULL, "dx" } },
    { "vn_attention", "attention:b2h4s5d6:f32:hk=2:sk=7:mask=keys:lse",
      { "queries", "keys", "values", "out", "options.mask", "options.lse" } },
    { "vn_attention", "attention:b1h2s3d8:f32:sk=4:causal:mask=full",
      { "queries", "keys", "values", "out", "options.mask" } },
    { "vn_attention_backward", "attention:b2h4s5d6:f32:backward:hk=2:sk=7:mask=keys",
      { "queries", "keys", "values", "out", "options.mask", "options.lse", NULL, NULL, NULL, NULL, "d_out",
        "d_queries", "d_keys", "d_values" } },
    { "vn_attention_backward", "attention:b1h2s3d8:f16:backward:sk=4:causal",
      { "queries", "keys", "values", "out", NULL, "options.lse", NULL, NULL, NULL, NULL, "d_out",
        "d_queries", "d_keys", "d_values" } },
};

static int open_call(struct call *c, const struct signature *s)
{
    static const unsigned char zeros[BYTES];
    char why[256];

    *c = (struct call){ .function = s->function, .text = s->text, .names = s->names };
    if (problem_parse(&c->p, c->text, why, sizeof why) || problem_operands(&c->o, &c->p)) {
        printf("not ok: %s\n", why);
        return -1;
    }
    for (int i = 0; i < TENSORS; i++) {
        const size_t bytes = operand_bytes(&c->o, i);

        if ((c->names[i] || c->o.t[i].rank) && (vn_buffer_open(&c->buffers[i], device, bytes)
                            || vn_write(queue, c->buffers[i], 0, zeros, bytes)))
            return -1;
        c->o.t[i].buffer = c->buffers[i];
    }
    return vn_buffer_open(&c->shared, device, BYTES) ? -1 : 0;
}

static void close_call(struct call *c)
{
    for (int i = 0; i < TENSORS; i++)
        vn_buffer_close(c->buffers[i]);
    vn_buffer_close(c->shared);
}

/* No byte of any operand changed since `before` was read. */
static int read_all(const struct call *c, unsigned char *to)
{
    memset(to, 0, TENSORS * BYTES);
    for (int i = 0; i < TENSORS; i++)
        if (c->names[i] && vn_read(queue, to + i * BYTES, c->buffers[i], 0,
                                   operand_bytes(&c->o, i)))
            return -1;
    return 0;
}

/* Where two operands disagree, it may be the other that the sentence is about. */
static const char *named(const struct call *c, const char *argument, int disagree)
{
    for (int i = 0; disagree && i < TENSORS && !has_word(vn_last_error(), argument); i++)
        if (c->names[i] && has_word(vn_last_error(), c->names[i]))
            return c->names[i];
    return argument;
}

static void try_call(const struct call *c, const struct problem *p, const struct operands *o,
                     const char *argument, const char *what, int disagree)
{
    static unsigned char before[TENSORS * BYTES], after[TENSORS * BYTES];
    char text[160];

    snprintf(text, sizeof text, "%s: %s", c->text, what);
    read_all(c, before);

    const vn_status got = problem_run(queue, p, o);

    if (!expect(got, VN_INVALID, c->function, named(c, argument, disagree), text))
        return;
    if (read_all(c, after) || memcmp(before, after, sizeof before)) {
        failures++;
        printf("not ok: %s, %s: an operand changed\n", c->function, text);
    }
}

/* ---- harm to a tensor -------------------------------------------------------------------- */

/* Returns 0 where it would be none. */
struct harm {
    const char *what;
    int         each_dimension, disagree;
    int       (*apply)(vn_tensor *t, int d, const struct call *c, int index);
};

static vn_buffer *closed_buffer, *foreign_buffer;

#define HARM(name, condition, ...) \
    static int name(vn_tensor *t, int d, const struct call *c, int i) \
    { (void)t; (void)d; (void)c; (void)i; if (!(condition)) return 0; __VA_ARGS__; return 1; }

#define OPTIONAL (i >= OPTION)                                  /* without a buffer or a rank: none */
#define OUTPUT   (i == c->o.output)

HARM(no_buffer,      !OPTIONAL, t->buffer = NULL)
HARM(buffer_closed,  1, t->buffer = closed_buffer)
HARM(buffer_queue,   1, t->buffer = (vn_buffer *)queue)
HARM(buffer_device,  1, t->buffer = (vn_buffer *)device)
HARM(buffer_foreign, 1, t->buffer = foreign_buffer)
HARM(type_negative,  1, t->type = (vn_type)-1)
HARM(type_past,      1, t->type = VN_TYPE_COUNT)
HARM(type_far,       1, t->type = (vn_type)12345)
HARM(type_other,     1, t->type = t->type == VN_BF16 ? VN_F16 : VN_BF16)
HARM(rank_none,      !OPTIONAL, t->rank = 0)
HARM(rank_negative,  !OPTIONAL, t->rank = -1)
HARM(rank_past,      1, t->rank = VN_RANK + 1)
HARM(rank_far,       1, t->rank = INT_MAX)
HARM(rank_more,      t->rank > 1, t->extent[t->rank] = 1; t->rank++)
HARM(rank_less,      t->rank > 2, t->rank--)
HARM(start_negative, 1, t->start = -1)
HARM(start_least,    1, t->start = INT64_MIN)
HARM(start_past,     1, t->start++)
HARM(start_far,      1, t->start = INT64_MAX)
HARM(start_wraps,    1, t->start = INT64_MAX / (int64_t)vn_type_bytes(t->type) + 2)

HARM(extent_negative, 1, t->extent[d] = -1)
HARM(extent_least,    1, t->extent[d] = INT64_MIN)
HARM(extent_more,     1, t->extent[d]++)
HARM(extent_none,     !OPTIONAL, t->extent[d] = 0)
HARM(extent_huge,     1, t->extent[d] = INT64_MAX)
HARM(extent_wraps,    1, t->extent[d] = (int64_t)1 << 62)
HARM(extent_32,       1, t->extent[d] += (int64_t)1 << 32)
HARM(stride_negative, 1, t->stride[d] = -1)
HARM(stride_least,    1, t->stride[d] = INT64_MIN)
HARM(stride_far,      t->extent[d] > 1, t->stride[d] = 1 << 20)
HARM(stride_huge,     t->extent[d] > 1, t->stride[d] = INT64_MAX)
HARM(stride_wraps,    t->extent[d] > 1, t->stride[d] = (int64_t)1 << 62)
HARM(stride_32,       t->extent[d] > 1, t->stride[d] += (int64_t)1 << 32)
HARM(stride_none,     OUTPUT && t->extent[d] > 1, t->stride[d] = 0)

/* Two dimensions of an output with one stride: elements share places. */
static int stride_twin(vn_tensor *t, int d, const struct call *c, int i)
{
    const int other = (d + 1) % t->rank;

    if (!OUTPUT || other == d || t->extent[d] < 2 || t->extent[other] < 2 || t->stride[other] > t->stride[d])
        return 0;
    t->stride[d] = t->stride[other];
    return 1;
}

static const struct harm harms[] = {
    { "no buffer",                         0, 0, no_buffer       },
    { "a closed buffer",                   0, 0, buffer_closed   },
    { "a queue for a buffer",              0, 0, buffer_queue    },
    { "a device for a buffer",             0, 0, buffer_device   },
    { "a buffer of another device",        0, 0, buffer_foreign  },
    { "type -1",                           0, 0, type_negative   },
    { "type past the last",                0, 0, type_past       },
    { "type 12345",                        0, 0, type_far        },
    { "another type than the others",      0, 0, type_other      },
    { "rank 0",                            0, 0, rank_none       },
    { "rank -1",                           0, 0, rank_negative   },
    { "rank past the last",                0, 0, rank_past       },
    { "rank 2147483647",                   0, 0, rank_far        },
    { "one rank more",                     0, 0, rank_more       },
    { "one rank less",                     0, 0, rank_less       },
    { "start -1",                          0, 0, start_negative  },
    { "the least start",                   0, 0, start_least     },
    { "starts one late",                   0, 0, start_past      },
    { "the largest start",                 0, 0, start_far       },
    { "a start whose bytes wrap",          0, 0, start_wraps     },
    { "extent -1",                         1, 0, extent_negative },
    { "the least extent",                  1, 0, extent_least    },
    { "one extent more",                   1, 0, extent_more     },
    { "extent 0",                          1, 1, extent_none     },
    { "the largest extent",                1, 0, extent_huge     },
    { "extent 2^62",                       1, 0, extent_wraps    },
    { "an extent that is right in 32 bits", 1, 0, extent_32      },
    { "stride -1",                         1, 0, stride_negative },
    { "the least stride",                  1, 0, stride_least    },
    { "a stride out of the buffer",        1, 0, stride_far      },
    { "the largest stride",                1, 0, stride_huge     },
    { "stride 2^62",                       1, 0, stride_wraps    },
    { "a stride that is right in 32 bits", 1, 0, stride_32       },
    { "stride 0 of the output",            1, 0, stride_none     },
    { "one stride twice in the output",    1, 0, stride_twin     },
};

static void harm_tensors(const struct call *c)
{
    for (int i = 0; i < TENSORS; i++)
        for (size_t h = 0; c->names[i] && h < sizeof harms / sizeof harms[0]; h++) {
            struct operands o = c->o;
            const int       times = harms[h].each_dimension ? o.t[i].rank : 1;

            for (int d = 0; d < times; d++) {
                o = c->o;
                if (harms[h].apply(&o.t[i], d, c, i))
                    try_call(c, &c->p, &o, c->names[i], harms[h].what, harms[h].disagree);
            }
        }
}

/* The output shares memory with another operand. */
static void harm_overlap(const struct call *c)
{
    for (int i = 0; i < TENSORS; i++) {
        struct operands o = c->o;

        if (!c->names[i] || i == c->o.output)
            continue;
        o.t[i].buffer = o.t[o.output].buffer = c->shared;
        o.t[o.output].start += 1;
        try_call(c, &c->p, &o, c->names[c->o.output], "the output overlaps another, one later", 0);
        o.t[o.output].start = (o.t[i].start + o.elements[i] - 1) * (int64_t)vn_type_bytes(o.t[i].type)
                              / (int64_t)vn_type_bytes(o.t[o.output].type);
        try_call(c, &c->p, &o, c->names[c->o.output], "the output overlaps another's last element", 0);
    }
}

/* ---- harm to options --------------------------------------------------------------------------- */

static void harm_options(const struct call *c)
{
    static const int enums[] = { -1, 99, INT_MIN, INT_MAX };

    for (size_t i = 0; i < sizeof enums / sizeof enums[0] && c->p.op->has_epilogue; i++) {
        struct problem p = c->p;

        p.math = (vn_math)enums[i];
        try_call(c, &p, &c->o, "options.math", "no vn_math", 0);
        p = c->p;
        p.act = (vn_activation)enums[i];
        try_call(c, &p, &c->o, "options.activation", "no vn_activation", 0);
    }
    for (int i = 0; i < 2; i++) {
        struct problem p = c->p;

        strcpy(p.variant, i ? "gemm; rm" : "no_such");
        try_call(c, &p, &c->o, "options.variant", "no variant", 0);
    }
}

/* What a convolution reads of its options, each dimension, each number. */
static void harm_conv(const struct call *c)
{
    static const int   bad[] = { -1, INT_MIN };
    static const char *const names[] = { "options.stride", "options.dilation",
                                         "options.pad_before", "options.pad_after" };

    static const struct op *const conv[] = { &op_conv, NULL };
    const struct conv_problem *const of = conv_of(&c->p);

    if (op_place(conv, c->p.op) < 0)
        return;
    for (int b = 0; b < 2; b++) {
        struct problem p = c->p;
        struct conv_problem *const o = conv_of(&p);

        o->groups = bad[b];
        try_call(c, &p, &c->o, "options.groups", "negative groups", 0);
        for (int d = 3 - of->spatial; d < 3; d++)
            for (int field = 0; field < 4; field++) {
                int *const fields[] = { o->stride, o->dilation, o->pad_before, o->pad_after };

                p = c->p;
                fields[field][d] = bad[b];
                try_call(c, &p, &c->o, names[field], "a negative option", 0);
            }
    }
    for (int groups = 5; groups <= INT_MAX / 7; groups *= 7) {
        struct problem p = c->p;
        struct conv_problem *const o = conv_of(&p);

        o->groups = groups;
        try_call(c, &p, &c->o, "groups", "groups that do not divide the channels", 0);
    }
    for (int d = 3 - of->spatial; d < 3; d++) {
        struct problem p = c->p;
        struct conv_problem *const o = conv_of(&p);

        o->dilation[d] = INT_MAX;
        try_call(c, &p, &c->o, NULL, "a dilation out of all bounds", 0);
        p = c->p;
        o->dilation[d] = 1000;                  /* all fit the buffers, but none the padded input */
        if (of->filter[d] > 1)
            try_call(c, &p, &c->o, "reaches over", "a filter larger than the padded input", 0);
        p = c->p;
        o->pad_before[d] = o->pad_after[d] = INT_MAX;
        try_call(c, &p, &c->o, NULL, "padding out of all bounds", 0);
        p = c->p;
        o->stride[d] = INT_MAX;
        if (of->out[d] > 1)
            try_call(c, &p, &c->o, NULL, "a stride past the image", 0);
    }
}

static vn_status run_softmax(const struct call *c, const vn_softmax_options *o)
{
    return c->p.direction == BACKWARD ? vn_softmax_backward(queue, c->o.t[0], c->o.t[1], c->o.t[2], o)
                                      : vn_softmax(queue, c->o.t[0], c->o.t[1], o);
}

static void harm_softmax(const struct call *c)
{
    static const int axes[] = { -1, INT_MIN, VN_RANK, INT_MAX };

    static const struct op *const softmax[] = { &op_softmax, NULL };

    if (op_place(softmax, c->p.op) < 0)
        return;
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        const vn_softmax_options o = { .axis = axes[i] };

        expect(run_softmax(c, &o), VN_INVALID, c->function, "options.axis", "an axis that is none");
    }
    const vn_softmax_options past = { .axis = c->o.t[0].rank }, across = { .axis = 1, .causal = 1 };

    expect(run_softmax(c, &past), VN_INVALID, c->function, "options.axis", "the axis past the last");
    expect(run_softmax(c, &across), VN_INVALID, c->function, "options.causal", "causal along axis 1");
}

/* Integers that are no targets of these rows, and options that no cross-entropy has. */
static void harm_cross_entropy(const struct call *c)
{
    static const struct op *const entropy[] = { &op_cross_entropy, NULL };
    const vn_tensor *const t = c->o.t;
    const vn_ints right = { t[1].buffer, 0, t[0].extent[0], 1, 4 * (int)t[1].extent[1], 0 };
    const vn_cross_entropy_options size = { .size = 5 }, below = { .smoothing = -0.1 },
                                   above = { .smoothing = 2 }, none = { .smoothing = NAN },
                                   z = { .z_loss = INFINITY };
    struct { vn_ints it; const char *what; } table[] = {
        { right, "targets of no buffer" }, { right, "targets of 2 bytes" }, { right, "too few targets" },
        { right, "targets that start before the buffer" }, { right, "targets with a stride below 0" },
        { right, "targets past the buffer's end" }, { right, "targets whose end overflows" },
        { right, "targets that the loss overlaps" },
    };

    if (op_place(entropy, c->p.op) < 0)
        return;
    table[0].it.buffer = NULL;
    table[1].it.bytes = 2;
    table[2].it.count--;
    table[3].it.start = -1;
    table[4].it.stride = -1;
    table[5].it.start = 1;
    table[6].it.stride = INT64_MAX / 2;
    table[7].it.buffer = t[2].buffer;
    table[7].it.bytes = 4;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        expect(vn_cross_entropy(queue, t[0], table[i].it, t[2], t[5], NULL), VN_INVALID, c->function,
               "targets", table[i].what);
    expect(vn_cross_entropy(queue, t[0], right, t[2], t[5], &size), VN_INVALID, c->function, "options.size",
           "options of another size");
    expect(vn_cross_entropy(queue, t[0], right, t[2], t[5], &below), VN_INVALID, c->function,
           "options.smoothing", "a smoothing below 0");
    expect(vn_cross_entropy(queue, t[0], right, t[2], t[5], &above), VN_INVALID, c->function,
           "options.smoothing", "a smoothing above 1");
    expect(vn_cross_entropy(queue, t[0], right, t[2], t[5], &none), VN_INVALID, c->function,
           "options.smoothing", "a smoothing of NaN");
    expect(vn_cross_entropy(queue, t[0], right, t[2], t[5], &z), VN_INVALID, c->function, "options.z_loss",
           "an infinite z-loss");
}

/* Integers of lengths, or of pages, that are not as they should be. */
static void harm_lengths(const struct call *c)
{
    const vn_tensor *const t = c->o.t;
    const int64_t batches = t[0].extent[0];
    const vn_ints right = { c->shared, 0, batches, 1, 4, 0 };
    struct { const char *what; vn_ints it; } table[] = {
        { "integers of 8 bytes", right }, { "one more", right }, { "start -1", right },
        { "stride -1", right }, { "an end outside the buffer", right }, { "a queue for a buffer", right },
        { "the output's buffer", right } };

    table[0].it.bytes = 8;
    table[1].it.count++;
    table[2].it.start = -1;
    table[3].it.stride = -1;
    table[4].it.start = BYTES;
    table[5].it.buffer = (vn_buffer *)queue;
    table[6].it.buffer = t[3].buffer;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const vn_attention_options keys = { .key_lengths = table[i].it },
                                   queries = { .query_lengths = table[i].it };

        expect(vn_attention(queue, t[0], t[1], t[2], t[3], &keys), VN_INVALID, c->function,
               i == 6 ? "out" : "options.key_lengths", table[i].what);
        expect(vn_attention(queue, t[0], t[1], t[2], t[3], &queries), VN_INVALID, c->function,
               i == 6 ? "out" : "options.query_lengths", table[i].what);
    }

    vn_attention_options pages = { .pages = right };
    vn_tensor odd = t[3];
    vn_attention_options sinks = { .sinks = vn_matrix(c->shared, VN_F32, 1, t[0].extent[1]) };

    pages.pages.count += batches > 1 ? 1 : -2;
    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &pages), VN_INVALID, c->function, "options.pages",
           "no multiple of the batches");
    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &sinks), VN_INVALID, c->function, "options.sinks",
           "sinks of rank 2");
    sinks.sinks = (vn_tensor){ c->shared, VN_F32, 1, 0, { t[0].extent[1] + 1 }, { 1 } };
    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &sinks), VN_INVALID, c->function, "options.sinks",
           "one sink more");
    sinks.sinks = (vn_tensor){ c->shared, VN_F16, 1, 0, { t[0].extent[1] }, { 1 } };
    expect(vn_attention(queue, t[0], t[1], t[2], odd, &sinks), VN_INVALID, c->function, "options.sinks",
           "sinks of f16");
}

/* Shapes that do not go together, and options that no attention has. */
static void harm_attention(const struct call *c)
{
    static const struct op *const attention[] = { &op_attention, NULL };
    static const double scales[] = { NAN, INFINITY, -INFINITY }, caps[] = { -1, NAN, INFINITY };
    const vn_tensor *const t = c->o.t;
    vn_tensor other = t[1];

    if (op_place(attention, c->p.op) < 0 || c->p.direction == BACKWARD)
        return;
    for (int i = 0; i < 3; i++) {
        const vn_attention_options scale = { .scale = scales[i] }, cap = { .softcap = caps[i] };

        expect(vn_attention(queue, t[0], t[1], t[2], t[3], &scale), VN_INVALID, c->function, "options.scale",
               "a scale that is not finite");
        expect(vn_attention(queue, t[0], t[1], t[2], t[3], &cap), VN_INVALID, c->function, "options.softcap",
               "a softcap that is none");
    }
    const vn_attention_options size = { .size = 5 }, alone = { .window = 3 },
                               window = { .causal = VN_CAUSAL_LAST, .window = -1 },
                               causal = { .causal = (vn_causal)3 }, math = { .math = (vn_math)99 },
                               bitwise = { .math = VN_MATH_BITWISE };

    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &size), VN_INVALID, c->function, "options.size",
           "a size");
    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &alone), VN_INVALID, c->function, "options.window",
           "a window without causal");
    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &window), VN_INVALID, c->function, "options.window",
           "a negative window");
    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &causal), VN_INVALID, c->function, "options.causal",
           "no vn_causal");
    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &math), VN_INVALID, c->function, "options.math",
           "no vn_math");
    expect(vn_attention(queue, t[0], t[1], t[2], t[3], &bitwise), VN_UNSUPPORTED, c->function, "options.math",
           "the order of sums of all devices");
    harm_lengths(c);
    other.extent[2]--;
    expect(vn_attention(queue, t[0], other, t[2], t[3], NULL), VN_INVALID, c->function, "values",
           "fewer keys than values");
    other = t[1];
    other.extent[3]--;
    expect(vn_attention(queue, t[0], other, t[2], t[3], NULL), VN_INVALID, c->function, "keys",
           "shorter keys");
}

/* ---- harm to the queue -------------------------------------------------------------------------- */

static void harm_queue(const struct call *c, vn_queue *closed)
{
    static long noise[64];
    struct { vn_queue *q; const char *what; } bad[] = {
        { NULL, "no queue" }, { closed, "a closed queue" }, { (vn_queue *)device, "a device for a queue" },
        { (vn_queue *)c->buffers[0], "a buffer for a queue" },
        { (vn_queue *)noise, "anything for a queue" } };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect(problem_run(bad[i].q, &c->p, &c->o), VN_INVALID, c->function, "queue", bad[i].what);
}

/* A handle that was closed is told apart until some tens of others have been closed too. */
static void close_anew(void)
{
    if (vn_buffer_open(&closed_buffer, device, BYTES) == VN_OK)
        vn_buffer_close(closed_buffer);
}

/* The very call that went well before, when a buffer of it is closed; and when that handle has become
 * another buffer, too small.                                                                      */
static void harm_again(struct call *c)
{
    enum { MOST = 1000 };

    for (int i = 0; i < TENSORS; i++) {
        vn_buffer **const slot = &c->o.t[i].buffer, *const old = c->buffers[i];
        vn_buffer *b = NULL;
        int tries = 0;

        if (!old)
            continue;
        expect(problem_run(queue, &c->p, &c->o), VN_OK, c->function, NULL,
               "right, before a buffer is closed");
        vn_buffer_close(old);
        expect(problem_run(queue, &c->p, &c->o), VN_INVALID, c->function, c->names[i],
               "again, with a buffer closed");
        while (vn_buffer_open(&b, device, 1) == VN_OK && b != old && tries++ < MOST)
            vn_buffer_close(b);
        *slot = b;
        expect(b == old ? problem_run(queue, &c->p, &c->o) : VN_OK, VN_INVALID, c->function, c->names[i],
               "again, with a smaller buffer in the place of one");
        vn_buffer_close(b);
        c->buffers[i] = NULL;
        if (vn_buffer_open(&c->buffers[i], device, operand_bytes(&c->o, i)))
            printf("not ok: %s: %s\n", c->text, vn_last_error());
        *slot = c->buffers[i];
    }
}

static void harm(struct call *c, vn_queue *closed)
{
    close_anew();
    harm_tensors(c);
    harm_overlap(c);
    harm_options(c);
    harm_conv(c);
    harm_softmax(c);
    harm_attention(c);
    harm_cross_entropy(c);
    harm_queue(c, closed);
    expect(problem_run(queue, &c->p, &c->o), VN_OK, c->function, NULL, "right, after all that");
    harm_again(c);
}

/* ---- the other functions -------------------------------------------------------------------------- */

static void test_devices(void)
{
    vn_device_info info;
    vn_device *d = (vn_device *)&info;
    vn_queue  *q = (vn_queue *)&info;

    expect(vn_device_get(NULL, 0), VN_INVALID, "vn_device_get", "out", "NULL");
    expect(vn_device_get(&info, -1), VN_INVALID, "vn_device_get", "index", "-1");
    expect(vn_device_get(&info, vn_device_count()), VN_INVALID, "vn_device_get", "index", "one too many");
    expect(vn_device_get(&info, INT_MAX), VN_INVALID, "vn_device_get", "index", "the largest");
    expect(vn_device_get(&info, 0), VN_OK, "vn_device_get", NULL, "right");
    expect(vn_device_describe(NULL, device), VN_INVALID, "vn_device_describe", "out", "NULL");
    expect(vn_device_describe(&info, NULL), VN_INVALID, "vn_device_describe", "device", "NULL");
    expect(vn_device_describe(&info, (vn_device *)queue), VN_INVALID, "vn_device_describe", "device",
           "a queue");
    expect(vn_device_open(NULL, NULL), VN_INVALID, "vn_device_open", "out", "NULL");
    expect(vn_device_open(&d, "no such device"), VN_NO_DEVICE, "vn_device_open", "spec", "a name of nothing");
    expect(vn_device_open(&d, "opencl:999"), VN_NO_DEVICE, "vn_device_open", "spec", "a number of nothing");
    expect(vn_device_open(&d, "opencl:-1"), VN_NO_DEVICE, "vn_device_open", "spec", "a negative number");
    if (d) {
        failures++;
        printf("not ok: vn_device_open left something in *out\n");
    }
    expect(vn_queue_open(NULL, device), VN_INVALID, "vn_queue_open", "out", "NULL");
    expect(vn_queue_open(&q, NULL), VN_INVALID, "vn_queue_open", "device", "NULL");
    expect(vn_queue_open(&q, (vn_device *)queue), VN_INVALID, "vn_queue_open", "device", "a queue");
    if (q) {
        failures++;
        printf("not ok: vn_queue_open left something in *out\n");
    }
}

static void test_queues(vn_queue *closed, vn_buffer *buffer)
{
    vn_queue *const bad[] = { NULL, closed, (vn_queue *)device, (vn_queue *)buffer };
    vn_event *e;

    for (int i = 0; i < 4; i++) {
        unsigned char byte = 0;

        expect(vn_queue_finish(bad[i]), VN_INVALID, "vn_queue_finish", "queue", "a queue that is none");
        expect(vn_event_record(&e, bad[i]), VN_INVALID, "vn_event_record", "queue", "a queue that is none");
        expect(vn_queue_wait(bad[i], NULL), VN_INVALID, "vn_queue_wait", "queue", "a queue that is none");
        expect(vn_queue_limit_workspace(bad[i], 0), VN_INVALID, "vn_queue_limit_workspace", "queue", "none");
        expect(vn_queue_use_workspace(bad[i], NULL), VN_INVALID, "vn_queue_use_workspace", "queue", "none");
        expect(vn_queue_prepare(bad[i], 1), VN_INVALID, "vn_queue_prepare", "queue", "none");
        expect(vn_write(bad[i], buffer, 0, &byte, 1), VN_INVALID, "vn_write", "queue",
               "a queue that is none");
        expect(vn_read(bad[i], &byte, buffer, 0, 1), VN_INVALID, "vn_read", "queue", "a queue that is none");
        expect(vn_queue_workspace(bad[i]) ? VN_OK : VN_INVALID, VN_INVALID, "vn_queue_workspace", "queue",
               "none");
        expect(strcmp(vn_queue_explain(bad[i]), "{}") ? VN_OK : VN_INVALID, VN_INVALID, "vn_queue_explain",
               "queue", "none");
        vn_queue_close(bad[i]);                                 /* harmless */
    }
    expect(vn_queue_finish(queue), VN_OK, "vn_queue_finish", NULL, "right, after others were closed");
}

static void test_events(void)
{
    vn_queue *other;
    vn_event *e, *f, *closed;
    double seconds;

    if (vn_queue_open(&other, second) || vn_event_record(&e, queue) || vn_event_record(&f, other)
        || vn_event_record(&closed, queue)) {
        failures++;
        printf("not ok: events: %s\n", vn_last_error());
        return;
    }
    vn_event_close(closed);

    vn_event *const bad[] = { NULL, closed, (vn_event *)queue, (vn_event *)device };

    for (int i = 0; i < 4; i++) {
        expect(vn_queue_wait(queue, bad[i]), VN_INVALID, "vn_queue_wait", "event", "an event that is none");
        expect(vn_event_seconds(&seconds, bad[i], e), VN_INVALID, "vn_event_seconds", "from",
               "an event that is none");
        expect(vn_event_seconds(&seconds, e, bad[i]), VN_INVALID, "vn_event_seconds", "to",
               "an event that is none");
        vn_event_close(bad[i]);                                 /* harmless */
    }
    expect(vn_event_record(NULL, queue), VN_INVALID, "vn_event_record", "out", "NULL");
    expect(vn_event_seconds(NULL, e, e), VN_INVALID, "vn_event_seconds", "out", "NULL");
    expect(vn_queue_wait(queue, f), VN_INVALID, "vn_queue_wait", "event", "of another device");
    expect(vn_event_seconds(&seconds, e, f), VN_INVALID, "vn_event_seconds", "to", "of another device");
    vn_event_close(e);
    vn_event_close(f);
    vn_queue_close(other);
}

static void test_buffers(vn_buffer *buffer, size_t bytes)
{
    static const unsigned char source[8];
    const struct { size_t at, bytes; const char *what; } past[] = {
        { bytes, 1, "past the end" }, { bytes - 1, 2, "over the end" }, { 0, SIZE_MAX, "the largest size" },
        { SIZE_MAX, 1, "the largest place" }, { SIZE_MAX, 2, "wraps" },
        { SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, "wraps to 0" } };
    vn_buffer *const bad[] = { NULL, closed_buffer, (vn_buffer *)queue, (vn_buffer *)device };
    unsigned char target[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    vn_buffer *b = (vn_buffer *)target;

    expect(vn_buffer_open(NULL, device, 8), VN_INVALID, "vn_buffer_open", "out", "NULL");
    expect(vn_buffer_open(&b, NULL, 8), VN_INVALID, "vn_buffer_open", "device", "NULL");
    expect(vn_buffer_open(&b, (vn_device *)queue, 8), VN_INVALID, "vn_buffer_open", "device", "a queue");
    expect(vn_buffer_open(&b, device, SIZE_MAX), VN_NO_MEMORY, "vn_buffer_open", "bytes", "the largest size");
    expect(vn_buffer_open(&b, device, (size_t)1 << 62), VN_NO_MEMORY, "vn_buffer_open", "bytes", "2^62");
    if (b) {
        failures++;
        printf("not ok: vn_buffer_open left something in *out\n");
    }
    for (size_t i = 0; i < sizeof past / sizeof past[0]; i++) {
        expect(vn_write(queue, buffer, past[i].at, source, past[i].bytes), VN_INVALID, "vn_write", "bytes",
               past[i].what);
        expect(vn_read(queue, target, buffer, past[i].at, past[i].bytes), VN_INVALID, "vn_read", "bytes",
               past[i].what);
    }
    for (int i = 0; i < 4; i++) {
        expect(vn_write(queue, bad[i], 0, source, 1), VN_INVALID, "vn_write", "to", "a buffer that is none");
        expect(vn_read(queue, target, bad[i], 0, 1), VN_INVALID, "vn_read", "from", "a buffer that is none");
        vn_buffer_close(bad[i]);                                /* harmless */
    }
    expect(vn_write(queue, buffer, 0, NULL, 1), VN_INVALID, "vn_write", "from", "NULL");
    expect(vn_read(queue, NULL, buffer, 0, 1), VN_INVALID, "vn_read", "to", "NULL");
    expect(vn_write(queue, foreign_buffer, 0, source, 1), VN_INVALID, "vn_write", "to", "of another device");
    expect(vn_read(queue, target, foreign_buffer, 0, 1), VN_INVALID, "vn_read", "from", "of another device");
    if (memcmp(target, "\1\2\3\4\5\6\7\10", 8)) {
        failures++;
        printf("not ok: a vn_read that failed wrote to the host\n");
    }
}

/* ---- packs ---- */

/* What the product of a pack is asked with. */
static void test_packed_b(const vn_pack *closed, vn_buffer *buffer)
{
    const vn_tensor a = vn_matrix(buffer, VN_F32, 4, 4), b = vn_matrix(buffer, VN_F32, 4, 4);
    vn_tensor c = a, foreign = b, others[] = { vn_transpose(b), b, b, b, b };
    const vn_pack *const bad[] = { closed, (vn_pack *)queue, (vn_pack *)device, (vn_pack *)buffer };
    vn_gemm_options o = { .packed_b = NULL };
    vn_queue *other;
    vn_pack *p;

    c.start = 64;
    foreign.buffer = foreign_buffer;
    others[1].start = 1;
    others[2].stride[0] = 5;
    others[3].extent[1] = 3;
    others[4] = vn_packed(buffer, VN_F32, 3, (const int64_t[]){ 1, 4, 4 });
    for (int i = 0; i < 4; i++) {
        o.packed_b = bad[i];
        expect(vn_gemm(queue, 1, a, b, 0, c, &o), VN_INVALID, "vn_gemm", "options.packed_b",
               "a pack that is none");
        expect(vn_pack_bytes(bad[i]) ? VN_OK : VN_INVALID, VN_INVALID, "vn_pack_bytes", "pack", "none");
        vn_pack_close((vn_pack *)bad[i]);                       /* harmless */
    }
    for (int i = 0; i < 5; i++) {
        expect(vn_pack_open(&p, queue, others[i], 4, NULL), VN_OK, "vn_pack_open", NULL, "another view");
        o.packed_b = p;
        expect(vn_gemm(queue, 1, a, b, 0, c, &o), VN_INVALID, "vn_gemm", "options.packed_b",
               "of another view");
        vn_pack_close(p);
    }
    if (vn_queue_open(&other, second) || vn_pack_open(&p, other, foreign, 4, NULL)) {
        failures++;
        printf("not ok: a pack on another device: %s\n", vn_last_error());
        return;
    }
    o.packed_b = p;
    expect(vn_gemm(queue, 1, a, b, 0, c, &o), VN_INVALID, "vn_gemm", "options.packed_b",
               "of another device");
    vn_pack_close(p);
    vn_queue_close(other);
    expect(vn_pack_open(&p, queue, b, 4, NULL), VN_OK, "vn_pack_open", NULL, "right");
    o.packed_b = p;
    expect(vn_gemm(queue, 1, a, b, 0, c, &o), VN_OK, "vn_gemm", NULL, "right, with a pack");
    vn_pack_close(p);
}

static void test_packs(vn_queue *closed_queue, vn_buffer *buffer)
{
    static const int64_t rows[] = { -1, INT64_MIN, INT64_MAX, (int64_t)1 << 61 };
    static const char *const names[] = { "gemm; rm", "no_such" };
    const vn_tensor b = vn_matrix(buffer, VN_F32, 4, 4);
    vn_queue *const bad_queues[] = { NULL, closed_queue, (vn_queue *)device, (vn_queue *)buffer };
    vn_buffer *const bad_buffers[] = { NULL, closed_buffer, foreign_buffer, (vn_buffer *)queue };
    vn_pack *p = (vn_pack *)buffer, *closed;

    expect(vn_pack_open(NULL, queue, b, 4, NULL), VN_INVALID, "vn_pack_open", "out", "NULL");
    for (int i = 0; i < 4; i++) {
        vn_tensor t = b;

        t.buffer = bad_buffers[i];
        expect(vn_pack_open(&p, bad_queues[i], b, 4, NULL), VN_INVALID, "vn_pack_open", "queue",
               "a queue that is none");
        expect(vn_pack_open(&p, queue, t, 4, NULL), VN_INVALID, "vn_pack_open", "B",
               "a buffer that is none here");
        expect(vn_pack_open(&p, queue, b, rows[i], NULL), VN_INVALID, "vn_pack_open", "m",
               "no number of rows");
    }
    for (int i = 0; i < 2; i++) {
        const vn_gemm_options o = { .variant = names[i] }, math = { .math = (vn_math)(i ? 99 : -1) };

        expect(vn_pack_open(&p, queue, b, 4, &o), VN_INVALID, "vn_pack_open", "options.variant",
               "no variant");
        expect(vn_pack_open(&p, queue, b, 4, &math), VN_INVALID, "vn_pack_open", "options.math",
               "no vn_math");
    }
    expect(vn_pack_open(&p, queue, vn_matrix(buffer, VN_F32, 400, 400), 4, NULL), VN_INVALID, "vn_pack_open",
           "B", "too large");
    expect(vn_pack_open(&p, queue, vn_packed(buffer, VN_F32, 1, b.extent), 4, NULL), VN_INVALID,
           "vn_pack_open", "B", "rank 1");
    if (p) {
        failures++;
        printf("not ok: vn_pack_open left something in *out\n");
    }
    vn_pack_close(NULL);
    if (expect(vn_pack_open(&closed, queue, b, 0, NULL), VN_OK, "vn_pack_open", NULL, "for no rows")) {
        vn_pack_close(closed);
        test_packed_b(closed, buffer);
    }
}

/* ---- sentences ---- */

/* C := A A, of views of these fields, is refused with these words. */
static void says(vn_tensor a, vn_tensor c, const char *variant, const char *words)
{
    const vn_gemm_options o = { .variant = variant };
    const vn_status got = vn_gemm(queue, 1, a, a, 0, c, &o);

    cases++;
    if (got == VN_INVALID && strstr(vn_last_error(), words))
        return;
    failures++;
    printf("not ok: vn_gemm is %s; it needs VN_INVALID and \"%s\"; \"%s\"\n", vn_status_name(got), words,
           vn_last_error());
}

/* Which field of a view is at fault, which of two devices of one name, and what would be right. */
static void test_sentences(vn_buffer *buffer)
{
    static char longest[5001];
    const vn_tensor a = vn_matrix(buffer, VN_F32, 4, 4);
    vn_tensor c = a, later = a, wide = a, long_ = a, foreign = a;

    c.start = 64;
    later.start = 113;
    wide.stride[0] = 42;
    long_.extent[1] = 130;
    foreign.buffer = foreign_buffer;
    memset(longest, 'v', sizeof longest - 1);
    says(a, later, NULL, "C starts at element 113, so that it ends at byte 516 of a buffer of 512 bytes; it "
                         "needs a start of at most 112");
    says(a, wide, NULL, "C has extent 4 and stride 42 along dimension 0, so that it ends at byte 520 ");
    says(a, long_, NULL, "C has extent 130 and stride 1 along dimension 1, so that it ends at byte 568 ");
    says(a, foreign, NULL, "C and the queue are of two opened vn_device of ");
    says(a, c, "no_such", "options.variant is \"no_such\"; it needs NULL or one of ");
    says(a, c, longest, "...\"; it needs NULL or one of ");
    says(a, c, longest, ", gemm");
}

/* Names of what is none, and views that only an operation will refuse. */
static void test_names(void)
{
    const int64_t extent[VN_RANK] = { 1 };

    cases += 6;
    failures += vn_type_bytes((vn_type)-1) != 0 || vn_type_bytes(VN_TYPE_COUNT) != 0;
    failures += !vn_type_name((vn_type)-1) || !vn_type_name((vn_type)999);
    failures += !vn_status_name((vn_status)-1) || !vn_status_meaning((vn_status)999);
    failures += vn_packed(NULL, VN_F32, VN_RANK + 1, extent).buffer != NULL;
    failures += vn_packed(NULL, VN_F32, -1, extent).rank > 0
        || vn_packed(NULL, VN_F32, 2, NULL).extent[0] != 0;
    failures += vn_transpose(vn_packed(NULL, VN_F32, 1, extent)).extent[0] != 1;
}

/* The same of a convolution: of one pixel with one channel. */
static void test_sizes_of_conv_options(vn_buffer *buffer, unsigned char *next_page)
{
    const size_t old = offsetof(vn_conv_options, residual);
    const vn_tensor a = { buffer, VN_F32, 3, 0, { 1, 1, 1 }, { 1, 1, 1 } };
    vn_tensor y = a;
    vn_conv_options whole = { .activation = VN_RELU };

    y.start = 64;
    memcpy(next_page - old, &whole, old);
    expect(vn_conv_forward(queue, 1, a, a, 0, y, (const vn_conv_options *)(next_page - old)), VN_OK,
           "vn_conv_forward", NULL, "the options of 0.1");
    whole.size = sizeof whole;
    expect(vn_conv_forward(queue, 1, a, a, 0, y, &whole), VN_OK, "vn_conv_forward", NULL,
           "options with their size");
    whole.size--;
    expect(vn_conv_forward(queue, 1, a, a, 0, y, &whole), VN_INVALID, "vn_conv_forward", "options.size",
           "a wrong size");
}

/* Options as 0.1 had them end before the next page, which cannot be read; and sizes that no version had. */
static void test_sizes_of_options(vn_buffer *buffer)
{
    static const uint32_t wrong[] = { 1, sizeof(vn_gemm_options) - 1, sizeof(vn_gemm_options) + 8,
                                      UINT32_MAX };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), old = offsetof(vn_gemm_options, residual);
    const vn_tensor a = vn_matrix(buffer, VN_F32, 2, 2);
    vn_tensor c = a;
    unsigned char *const pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                      0);
    vn_gemm_options whole = { .activation = VN_RELU };

    c.start = 64;
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE)) {
        printf("no pages\n");
        failures++;
        return;
    }
    memcpy(pages + page - old, &whole, old);
    expect(vn_gemm(queue, 1, a, a, 0, c, (const vn_gemm_options *)(pages + page - old)), VN_OK, "vn_gemm",
           NULL, "the options of 0.1");
    test_sizes_of_conv_options(buffer, pages + page);
    munmap(pages, 2 * page);
    whole.size = sizeof whole;
    expect(vn_gemm(queue, 1, a, a, 0, c, &whole), VN_OK, "vn_gemm", NULL, "options with their size");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        whole.size = wrong[i];
        expect(vn_gemm(queue, 1, a, a, 0, c, &whole), VN_INVALID, "vn_gemm", "options.size", "a wrong size");
    }
}

int main(void)
{
    const size_t  count = sizeof signatures / sizeof signatures[0];
    const int     status = start_unoptimised(&device, &queue);
    vn_queue     *closed;
    vn_device_info info;

    if (status)
        return status;
    if (vn_device_describe(&info, device) || vn_device_open(&second, info.spec)
        || vn_queue_open(&closed, device) || vn_buffer_open(&foreign_buffer, second, BYTES)) {
        printf("cannot start: %s\n", vn_last_error());
        return 1;
    }
    vn_queue_close(closed);
    for (size_t i = 0; i < count; i++) {
        struct call c;

        if (open_call(&c, &signatures[i])) {
            printf("not ok: %s: %s\n", c.text, vn_last_error());
            failures++;
        } else
            harm(&c, closed);
        close_call(&c);
    }
    test_devices();
    test_events();

    vn_buffer *buffer;

    if (vn_buffer_open(&buffer, device, 64) == VN_OK) {
        close_anew();
        test_queues(closed, buffer);
        test_buffers(buffer, 64);
        vn_buffer_close(buffer);
    }
    if (vn_buffer_open(&buffer, device, 512) == VN_OK) {
        close_anew();
        test_packs(closed, buffer);
        test_sentences(buffer);
        test_sizes_of_options(buffer);
        vn_buffer_close(buffer);
    }
    test_names();
    vn_buffer_close(foreign_buffer);
    vn_queue_close(queue);
    vn_device_close(second);
    vn_device_close(device);
    printf("%ld cases, %ld failed\nCOUNT arguments %ld\n", cases, failures, cases);
    return failures != 0;
}
