/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.c - reads and writes problems, makes their tensors, runs them.
 *
 * Three tables say the whole language: words that stand alone, keys with a value, and
 * the names a value may have.  Reading, writing and the sentences for what is wrong all
 * go through them.
 */
#include "problem.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ON_GEMM = 1 << GEMM, ON_CONV = 1 << CONV, ON_SOFTMAX = 1 << SOFTMAX,
       ON_SUMS = ON_GEMM | ON_CONV, ON_ALL = ON_SUMS | ON_SOFTMAX };

/* A name and its value; a table of them ends with a NULL name. */
struct name { const char *name; int value; };

static const struct name op_names[] = {
    { "gemm", GEMM }, { "conv", CONV }, { "softmax", SOFTMAX }, { NULL, 0 } };
static const struct name type_names[] = {
    { "f32", VN_F32 }, { "f16", VN_F16 }, { "bf16", VN_BF16 }, { "f64", VN_F64 }, { NULL, 0 } };
static const struct name act_names[] = {
    { "identity", VN_IDENTITY }, { "relu", VN_RELU }, { "gelu", VN_GELU }, { "silu", VN_SILU },
    { "sigmoid", VN_SIGMOID }, { "tanh", VN_TANH }, { NULL, 0 } };
static const struct name math_names[] = {
    { "default", VN_MATH_DEFAULT }, { "tf32", VN_MATH_TF32 }, { "bitwise", VN_MATH_BITWISE }, { NULL, 0 } };
static const struct name bias_names[] = {
    { "none", NO_BIAS }, { "row", BIAS_ROW }, { "col", BIAS_COL }, { "full", BIAS_FULL }, { NULL, 0 } };
static const struct name mask_names[] = {
    { "none", NO_MASK }, { "row", MASK_ROW }, { "full", MASK_FULL }, { NULL, 0 } };

enum share { SHARE_NONE, SHARE_A, SHARE_B, SHARE_AB };
static const struct name share_names[] = {
    { "none", SHARE_NONE }, { "a", SHARE_A }, { "b", SHARE_B }, { "ab", SHARE_AB }, { NULL, 0 } };

/* ---- what is being read -------------------------------------------------- */

struct reader {
    struct problem *p;
    const char     *op;           /* "gemm", for the sentences */
    char           *why;
    size_t          why_size;
};

static int wrong(const struct reader *r, const char *sentence, ...)
    __attribute__((format(printf, 2, 3)));

static int wrong(const struct reader *r, const char *sentence, ...)
{
    va_list ap;

    va_start(ap, sentence);
    vsnprintf(r->why, r->why_size, sentence, ap);
    va_end(ap);
    return -1;
}

static const struct name *find_name(const struct name *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

static const char *name_of(const struct name *table, int value)
{
    for (; table->name; table++)
        if (table->value == value)
            return table->name;
    return "?";
}

/* "f32, f16, bf16 or f64" */
static const char *list_names(char *out, size_t size, const struct name *table)
{
    size_t used = 0;

    out[0] = '\0';
    for (; table->name && used < size; table++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", table->name,
                                 !table[1].name ? "" : table[2].name ? ", " : " or ");
    return out;
}

/* Digits alone: no sign, no space.  Leaves *end after them; -1 if there are none or too many. */
static int scan_integer(int64_t *out, const char *s, const char **end)
{
    int64_t v = 0;
    const char *c = s;

    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(v, (int64_t)10, &v) || __builtin_add_overflow(v, (int64_t)(*c - '0'), &v))
            return -1;
    *out = v;
    *end = c;
    return c == s ? -1 : 0;
}

static int read_integer(const struct reader *r, int64_t *out, const char *key, const char *value,
                        int64_t low, int64_t high)
{
    const char *end;

    if (scan_integer(out, value, &end) || *end || *out < low || *out > high)
        return wrong(r, "%s: %s is \"%s\"; it must be a whole number from %lld to %lld",
                     r->op, key, value, (long long)low, (long long)high);
    return 0;
}

static int read_real(const struct reader *r, double *out, const char *key, const char *value)
{
    char *end;

    errno = 0;
    *out = strtod(value, &end);
    if (end == value || *end)
        return wrong(r, "%s: %s is \"%s\"; it must be a number, such as 0.5", r->op, key, value);
    return 0;
}

static int read_name(const struct reader *r, int *out, const char *key, const char *value,
                     const struct name *table)
{
    const struct name *n = find_name(table, value);
    char list[96];

    if (!n)
        return wrong(r, "%s: %s is \"%s\"; it must be %s", r->op, key, value,
                     list_names(list, sizeof list, table));
    *out = n->value;
    return 0;
}

/* One number for every dimension, or one a dimension: "1" or "1x2".  With `after`,
 * each may be two: "0-1x2-3".                                                     */
static int read_dimensions(const struct reader *r, int before[3], int after[3], const char *key,
                           const char *value, int low)
{
    const int n = r->p->spatial;
    int64_t   v[3][2];
    int       count = 0;
    const char *s = value;

    for (;;) {
        if (count == n || scan_integer(&v[count][0], s, &s))
            goto bad;
        v[count][1] = v[count][0];
        if (after && *s == '-' && scan_integer(&v[count][1], s + 1, &s))
            goto bad;
        if (v[count][0] < low || v[count][0] > INT32_MAX || v[count][1] > INT32_MAX)
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
    return wrong(r, "%s: %s is \"%s\"; it must be one number of at least %d, or %d of them such as %s",
                 r->op, key, value, low, n, after ? "1x2 or 0-1x2-3" : "1x2");
}

/* ---- keys ----------------------------------------------------------------- */

struct key {
    const char *name;
    unsigned    ops;
    int       (*read)(const struct reader *r, const char *key, const char *value);
};

#define READ_REAL(field) \
    static int read_##field(const struct reader *r, const char *key, const char *value) \
    { return read_real(r, &r->p->field, key, value); }
#define READ_INTEGER(field, low) \
    static int read_##field(const struct reader *r, const char *key, const char *value) \
    { return read_integer(r, &r->p->field, key, value, low, INT64_MAX); }
#define READ_NAME(field, kind) \
    static int read_##field(const struct reader *r, const char *key, const char *value) \
    { \
        int v; \
        if (read_name(r, &v, key, value, field##_names)) \
            return -1; \
        r->p->field = (kind)v; \
        return 0; \
    }

READ_REAL(alpha)
READ_REAL(beta)
READ_REAL(scale)
READ_INTEGER(batch, 0)
READ_INTEGER(gap, 0)
READ_INTEGER(start, 0)
READ_INTEGER(inner, 1)
READ_NAME(act, vn_activation)
READ_NAME(math, vn_math)
READ_NAME(bias, enum bias)
READ_NAME(mask, enum mask)

static int read_share(const struct reader *r, const char *key, const char *value)
{
    int v;

    if (read_name(r, &v, key, value, share_names))
        return -1;
    r->p->share_a = (v & SHARE_A) != 0;
    r->p->share_b = (v & SHARE_B) != 0;
    return 0;
}

static int read_variant(const struct reader *r, const char *key, const char *value)
{
    const size_t n = strlen(value);

    if (n == 0 || n >= sizeof r->p->variant)
        return wrong(r, "%s: %s is \"%s\"; it must be a name of 1 to %d letters", r->op, key, value,
                     (int)sizeof r->p->variant - 1);
    memcpy(r->p->variant, value, n + 1);
    return 0;
}

static int read_groups(const struct reader *r, const char *key, const char *value)
{
    int64_t v;

    if (read_integer(r, &v, key, value, 1, INT32_MAX))
        return -1;
    r->p->groups = (int)v;
    return 0;
}

static int read_stride(const struct reader *r, const char *key, const char *value)
{
    return read_dimensions(r, r->p->stride, NULL, key, value, 1);
}

static int read_dilation(const struct reader *r, const char *key, const char *value)
{
    return read_dimensions(r, r->p->dilation, NULL, key, value, 1);
}

static int read_pad(const struct reader *r, const char *key, const char *value)
{
    return read_dimensions(r, r->p->pad_before, r->p->pad_after, key, value, 0);
}

static const struct key keys[] = {
    { "batch",   ON_GEMM | ON_SOFTMAX, read_batch    },
    { "share",   ON_GEMM,              read_share    },
    { "stride",  ON_CONV,              read_stride   },
    { "dil",     ON_CONV,              read_dilation },
    { "pad",     ON_CONV,              read_pad      },
    { "groups",  ON_CONV,              read_groups   },
    { "inner",   ON_SOFTMAX,           read_inner    },
    { "scale",   ON_SOFTMAX,           read_scale    },
    { "mask",    ON_SOFTMAX,           read_mask     },
    { "alpha",   ON_SUMS,              read_alpha    },
    { "beta",    ON_SUMS,              read_beta     },
    { "bias",    ON_SUMS,              read_bias     },
    { "act",     ON_SUMS,              read_act      },
    { "math",    ON_SUMS,              read_math     },
    { "variant", ON_ALL,               read_variant  },
    { "gap",     ON_ALL,               read_gap      },
    { "start",   ON_ALL,               read_start    },
};

/* ---- words ---------------------------------------------------------------- */

struct word {
    const char *name;
    unsigned    ops;
    void      (*set)(struct problem *p);
};

#define SET(name, statement) static void set_##name(struct problem *p) { statement; }
SET(forward, p->direction = FORWARD)
SET(backward, p->direction = BACKWARD)
SET(data, p->direction = BACKWARD_DATA)
SET(filter, p->direction = BACKWARD_FILTER)
SET(nchw, p->channels_last = 0)
SET(nhwc, p->channels_last = 1)
SET(bias, p->bias = BIAS_ROW)
SET(packed, p->packed = 1)
SET(log, p->log = 1)
SET(causal, p->causal = 1)

static const struct word words[] = {
    { "packed",          ON_GEMM,    set_packed   },
    { "nchw",            ON_CONV,    set_nchw     },
    { "nhwc",            ON_CONV,    set_nhwc     },
    { "forward",         ON_CONV,    set_forward  },
    { "backward-data",   ON_CONV,    set_data     },
    { "backward-filter", ON_CONV,    set_filter   },
    { "bias",            ON_CONV,    set_bias     },
    { "forward",         ON_SOFTMAX, set_forward  },
    { "backward",        ON_SOFTMAX, set_backward },
    { "log",             ON_SOFTMAX, set_log      },
    { "causal",          ON_SOFTMAX, set_causal   },
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* "nn", "tn", "ntt": which of A, B and C are transposed */
static int read_transposes(struct problem *p, const char *s)
{
    const size_t n = strlen(s);

    if (n < 2 || n > 3 || strspn(s, "nt") != n)
        return -1;
    p->trans_a = s[0] == 't';
    p->trans_b = s[1] == 't';
    p->trans_c = s[2] == 't';
    return 0;
}

static int unknown_part(const struct reader *r, const char *part)
{
    char   list[256];
    size_t used = 0;

    list[0] = '\0';
    for (size_t i = 0; i < COUNT(words); i++)
        if (words[i].ops & 1u << r->p->op)
            used += (size_t)snprintf(list + used, sizeof list - used, " %s", words[i].name);
    for (size_t i = 0; i < COUNT(keys); i++)
        if (keys[i].ops & 1u << r->p->op)
            used += (size_t)snprintf(list + used, sizeof list - used, " %s=", keys[i].name);
    return wrong(r, "%s: \"%s\" is no part of it; its parts are%s%s", r->op, part,
                 r->p->op == GEMM ? " nn nt tn tt" : "", list);
}

static int read_part(const struct reader *r, char *part)
{
    char *equals = strchr(part, '=');

    if (equals) {
        *equals = '\0';
        for (size_t i = 0; i < COUNT(keys); i++)
            if (keys[i].ops & 1u << r->p->op && strcmp(keys[i].name, part) == 0)
                return keys[i].read(r, part, equals + 1);
        *equals = '=';
        return unknown_part(r, part);
    }
    for (size_t i = 0; i < COUNT(words); i++)
        if (words[i].ops & 1u << r->p->op && strcmp(words[i].name, part) == 0) {
            words[i].set(r->p);
            return 0;
        }
    if (r->p->op == GEMM && read_transposes(r->p, part) == 0)
        return 0;
    return unknown_part(r, part);
}

/* ---- sizes ---------------------------------------------------------------- */

/* "17x33x5" */
static int read_sizes(const struct reader *r, const char *text, int count, int64_t *const out[], const char *form)
{
    const char *s = text;

    for (int i = 0; i < count; i++)
        if (scan_integer(out[i], s, &s) || *s++ != (i + 1 < count ? 'x' : '\0'))
            return wrong(r, "%s: the sizes are \"%s\"; they must be %s, such as %s", r->op, text, form,
                         count == 3 ? "64x64x64" : "128x1000");
    return 0;
}

/* "n64c64h56w56k64r3s3": each letter once, in any order */
static int read_conv_sizes(const struct reader *r, const char *text)
{
    struct problem *p = r->p;
    const struct { char letter; int64_t *to; int needs; } letters[] = {     /* needs so many dimensions */
        { 'n', &p->images, 1 }, { 'c', &p->c, 1 }, { 'k', &p->filters, 1 },
        { 'd', &p->size[0], 3 }, { 'h', &p->size[1], 2 }, { 'w', &p->size[2], 1 },
        { 't', &p->filter[0], 3 }, { 'r', &p->filter[1], 2 }, { 's', &p->filter[2], 1 } };
    unsigned seen = 0;

    for (const char *s = text, *end; *s; s = end) {
        size_t i = 0;

        while (i < COUNT(letters) && letters[i].letter != *s)
            i++;
        if (i == COUNT(letters) || seen & 1u << i || scan_integer(letters[i].to, s + 1, &end))
            return wrong(r, "conv: the sizes are \"%s\", wrong from \"%s\" on; they must be letters and "
                         "numbers such as n64c64h56w56k64r3s3", text, s);
        seen |= 1u << i;
        p->spatial = letters[i].needs > p->spatial ? letters[i].needs : p->spatial;
    }
    for (size_t i = 0; i < COUNT(letters); i++)
        if (letters[i].needs <= p->spatial && !(seen & 1u << i))
            return wrong(r, "conv: the sizes \"%s\" lack %c", text, letters[i].letter);
    return 0;
}

static int op_sizes(const struct reader *r, const char *text)
{
    struct problem *p = r->p;
    int64_t *const gemm[3] = { &p->m, &p->n, &p->k }, *const softmax[2] = { &p->rows, &p->n };

    if (p->op == GEMM)
        return read_sizes(r, text, 3, gemm, "MxNxK");
    if (p->op == SOFTMAX)
        return read_sizes(r, text, 2, softmax, "ROWSxN");
    return read_conv_sizes(r, text);
}

/* The extents of y, from the formula of vernier.h. */
static int find_out(const struct reader *r)
{
    struct problem *p = r->p;

    for (int i = 0; i < 3; i++) {
        int64_t reach, room;

        if (p->filter[i] < 1)
            return wrong(r, "conv: a filter has no elements; its extents must be 1 or more");
        if (__builtin_mul_overflow(p->filter[i] - 1, (int64_t)p->dilation[i], &reach)
            || __builtin_add_overflow(p->size[i], (int64_t)p->pad_before[i], &room)
            || __builtin_add_overflow(room, (int64_t)p->pad_after[i], &room))
            return wrong(r, "conv: the sizes overflow 63 bits");
        room -= reach + 1;
        if (room < 0 && room + p->stride[i] < 0)
            return wrong(r, "conv: the filter reaches over %lld elements where the padded input has %lld",
                         (long long)reach + 1, (long long)(room + reach + 1));
        p->out[i] = room < 0 ? 0 : room / p->stride[i] + 1;
    }
    return 0;
}

static int check_whole(const struct reader *r)
{
    struct problem *p = r->p;
    struct operands o;

    if (p->op == CONV && (p->c % p->groups || p->filters % p->groups))
        return wrong(r, "conv: %d groups do not divide %lld channels and %lld filters", p->groups,
                     (long long)p->c, (long long)p->filters);
    if (p->op == CONV && find_out(r))
        return -1;
    if (p->op == SOFTMAX && p->rows % p->inner)
        return wrong(r, "softmax: inner=%lld does not divide %lld rows", (long long)p->inner, (long long)p->rows);
    if (p->op == SOFTMAX && p->causal && p->inner > 1)
        return wrong(r, "softmax: causal needs the last axis, so not inner=%lld", (long long)p->inner);
    if (problem_operands(&o, p))
        return wrong(r, "%s: the sizes overflow 63 bits", r->op);
    return 0;
}

static const struct problem usual = {
    .alpha = 1, .batch = 1, .inner = 1, .scale = 1, .groups = 1,
    .size = { 1, 1, 1 }, .filter = { 1, 1, 1 }, .out = { 1, 1, 1 },
    .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 },
};

int problem_parse(struct problem *out, const char *text, char *why, size_t why_size)
{
    const struct reader r = { out, "problem", why, why_size };
    struct reader named = r;
    char  copy[PROBLEM_TEXT];
    char *part = copy, *rest, *sizes, *type;
    int   v;

    memcpy(out, &usual, sizeof usual);                          /* padding too: compared as bytes */
    if (strlen(text) >= sizeof copy)
        return wrong(&r, "problem: the text is longer than %d letters", PROBLEM_TEXT - 1);
    strcpy(copy, text);
    rest = copy;
    part = strsep(&rest, ":");
    if (read_name(&r, &v, "the operation", part, op_names))
        return -1;
    out->op  = (enum op)v;
    named.op = name_of(op_names, v);
    sizes = strsep(&rest, ":");
    type  = strsep(&rest, ":");
    if (!sizes || !type)
        return wrong(&named, "%s: \"%s\" lacks its %s", named.op, text, sizes ? "type" : "sizes");
    if (op_sizes(&named, sizes) || read_name(&named, &v, "the type", type, type_names))
        return -1;
    out->type = (vn_type)v;
    while ((part = strsep(&rest, ":")))
        if (read_part(&named, part))
            return -1;
    return check_whole(&named);
}

/* ---- writing -------------------------------------------------------------- */

struct writer { char *text; size_t used; };

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...)
{
    va_list ap;
    int     n;

    va_start(ap, format);
    n = vsnprintf(w->text + w->used, PROBLEM_TEXT - w->used, format, ap);
    va_end(ap);
    w->used += n > 0 ? (size_t)n : 0;
    if (w->used >= PROBLEM_TEXT)
        w->used = PROBLEM_TEXT - 1;
}

static void put_real(struct writer *w, const char *key, double v, double without)
{
    char number[32];

    if (v == without)
        return;
    for (int digits = 6; digits <= 17; digits++) {              /* the shortest that reads back */
        snprintf(number, sizeof number, "%.*g", digits, v);
        if (strtod(number, NULL) == v)
            break;
    }
    put(w, ":%s=%s", key, number);
}

static void put_integer(struct writer *w, const char *key, int64_t v, int64_t without)
{
    if (v != without)
        put(w, ":%s=%lld", key, (long long)v);
}

static void put_name(struct writer *w, const char *key, int v, const struct name *table)
{
    if (v)
        put(w, ":%s=%s", key, name_of(table, v));
}

static int all_are(const int v[3], int n, int value)
{
    for (int i = 3 - n; i < 3; i++)
        if (v[i] != value)
            return 0;
    return 1;
}

static void put_dimensions(struct writer *w, const char *key, const int before[3], const int after[3],
                           int n, int without)
{
    const int one = all_are(before, n, before[2]) && all_are(after, n, after[2]);

    if (one && before[2] == without && after[2] == without)
        return;
    put(w, ":%s=", key);
    for (int i = one ? 2 : 3 - n; i < 3; i++) {
        put(w, "%d", before[i]);
        if (after[i] != before[i])
            put(w, "-%d", after[i]);
        put(w, "%s", i < 2 ? "x" : "");
    }
}

static void put_gemm(struct writer *w, const struct problem *p)
{
    put(w, "%lldx%lldx%lld:%s", (long long)p->m, (long long)p->n, (long long)p->k, name_of(type_names, p->type));
    put(w, ":%c%c%s", p->trans_a ? 't' : 'n', p->trans_b ? 't' : 'n', p->trans_c ? "t" : "");
    put_integer(w, "batch", p->batch, 1);
    put_name(w, "share", (p->share_a ? SHARE_A : 0) | (p->share_b ? SHARE_B : 0), share_names);
    put(w, "%s", p->packed ? ":packed" : "");
}

static void put_conv(struct writer *w, const struct problem *p)
{
    static const char *const directions[] = { "forward", "backward-data", "backward-filter", "backward" };
    const int n = p->spatial;

    put(w, "n%lldc%lld", (long long)p->images, (long long)p->c);
    for (int i = 3 - n; i < 3; i++)
        put(w, "%c%lld", "dhw"[i], (long long)p->size[i]);
    put(w, "k%lld", (long long)p->filters);
    for (int i = 3 - n; i < 3; i++)
        put(w, "%c%lld", "trs"[i], (long long)p->filter[i]);
    put(w, ":%s", name_of(type_names, p->type));
    put_dimensions(w, "stride", p->stride, p->stride, n, 1);
    put_dimensions(w, "dil", p->dilation, p->dilation, n, 1);
    put_dimensions(w, "pad", p->pad_before, p->pad_after, n, 0);
    put_integer(w, "groups", p->groups, 1);
    put(w, ":%s:%s", p->channels_last ? "nhwc" : "nchw", directions[p->direction]);
}

static void put_softmax(struct writer *w, const struct problem *p)
{
    put(w, "%lldx%lld:%s", (long long)p->rows, (long long)p->n, name_of(type_names, p->type));
    put(w, "%s%s%s", p->direction == BACKWARD ? ":backward" : "", p->log ? ":log" : "",
        p->causal ? ":causal" : "");
    put_integer(w, "batch", p->batch, 1);
    put_integer(w, "inner", p->inner, 1);
    put_real(w, "scale", p->scale, 1);
    put_name(w, "mask", p->mask, mask_names);
}

void problem_format(char text[PROBLEM_TEXT], const struct problem *p)
{
    static void (*const sizes[])(struct writer *, const struct problem *) = { put_gemm, put_conv, put_softmax };
    struct writer w = { text, 0 };

    put(&w, "%s:", name_of(op_names, p->op));
    sizes[p->op](&w, p);
    put_real(&w, "alpha", p->alpha, 1);
    put_real(&w, "beta", p->beta, 0);
    put_name(&w, "bias", p->bias, bias_names);
    put_name(&w, "act", p->act, act_names);
    put_name(&w, "math", p->math, math_names);
    if (p->variant[0])
        put(&w, ":variant=%s", p->variant);
    put_integer(&w, "gap", p->gap, 0);
    put_integer(&w, "start", p->start, 0);
}

/* ---- operands ------------------------------------------------------------- */

/* A view whose dimensions lie in memory in the order of `order`, the last the closest;
 * gap is left out after each run of the closest.  Returns the elements of its buffer,
 * or -1 if they overflow.                                                             */
static int64_t lay_out(vn_tensor *t, vn_type type, int rank, const int64_t *extent, const int *order,
                       int64_t gap, int64_t start)
{
    int64_t step = 1, last = start, run;

    *t = (vn_tensor){ .type = type, .rank = rank, .start = start };
    memcpy(t->extent, extent, (size_t)rank * sizeof extent[0]);
    for (int i = rank - 1; i >= 0; i--) {
        const int d = order[i];

        t->stride[d] = step;
        if (__builtin_mul_overflow(step, extent[d] > 0 ? extent[d] : 1, &run)
            || (i == rank - 1 && __builtin_add_overflow(run, gap, &run))
            || __builtin_mul_overflow(step, extent[d] > 0 ? extent[d] - 1 : 0, &step)
            || __builtin_add_overflow(last, step, &last))
            return -1;
        step = run;
    }
    for (int d = 0; d < rank; d++)
        if (extent[d] == 0)
            return start;
    return __builtin_add_overflow(last, 1, &last) ? -1 : last;
}

static const int in_order[VN_RANK] = { 0, 1, 2, 3, 4, 5 };

/* rows x cols with the batches before; `transposed`: the rows are the closest in memory */
static int64_t lay_out_matrix(vn_tensor *t, const struct problem *p, int64_t rows, int64_t cols,
                              int transposed, int shared)
{
    static const int turned[3] = { 0, 2, 1 }, turned_alone[2] = { 1, 0 };
    const int     rank = p->batch == 1 ? 2 : 3;
    const int64_t extent[3] = { shared ? 1 : p->batch, rows, cols };
    const int    *order = !transposed ? in_order : rank == 3 ? turned : turned_alone;
    const int64_t n = lay_out(t, p->type, rank, extent + 3 - rank, order, p->gap, p->start);

    if (shared && rank == 3) {                                  /* repeats by a stride of 0 */
        t->extent[0] = p->batch;
        t->stride[0] = 0;
    }
    return n;
}

/* Of the extents of `like`, those in `keep` (bits, from the last dimension) and 1 for the
 * others: a bias or mask that repeats.                                                    */
static int64_t lay_out_part(vn_tensor *t, const struct problem *p, const vn_tensor *like, unsigned keep)
{
    int64_t extent[VN_RANK];

    for (int d = 0; d < like->rank; d++)
        extent[d] = keep >> (like->rank - 1 - d) & 1 ? like->extent[d] : 1;
    return lay_out(t, p->type, like->rank, extent, in_order, p->gap, p->start);
}

static void gemm_operands(struct operands *o, const struct problem *p)
{
    static const unsigned keep[] = { [BIAS_ROW] = 1, [BIAS_COL] = 2, [BIAS_FULL] = ~0u };

    o->elements[0] = lay_out_matrix(&o->t[0], p, p->m, p->k, p->trans_a, p->share_a);
    o->elements[1] = lay_out_matrix(&o->t[1], p, p->k, p->n, p->trans_b, p->share_b);
    o->elements[2] = lay_out_matrix(&o->t[2], p, p->m, p->n, p->trans_c, 0);
    if (p->bias)
        o->bias_elements = lay_out_part(&o->bias, p, &o->t[2], keep[p->bias]);
}

static void conv_operands(struct operands *o, const struct problem *p)
{
    static const int last[3][5] = { { 0, 2, 1 }, { 0, 2, 3, 1 }, { 0, 2, 3, 4, 1 } };
    static const int place[][3] = { [FORWARD] = { 0, 1, 2 }, [BACKWARD_DATA] = { 2, 1, 0 },
                                    [BACKWARD_FILTER] = { 0, 2, 1 } };       /* of x, w, y */
    const int    *order = p->channels_last ? last[p->spatial - 1] : in_order;
    const int     rank = 2 + p->spatial, from = 3 - p->spatial;
    int64_t       extent[3][5] = { { p->images, p->c }, { p->filters, p->c / p->groups }, { p->images, p->filters } };
    const int64_t *const sizes[3] = { p->size, p->filter, p->out };

    for (int i = 0; i < 3; i++) {
        const int at = place[p->direction][i];

        memcpy(extent[i] + 2, sizes[i] + from, (size_t)p->spatial * sizeof extent[i][0]);
        o->elements[at] = lay_out(&o->t[at], p->type, rank, extent[i], order, p->gap, p->start);
    }
    if (p->bias == BIAS_ROW && p->direction == FORWARD)
        o->bias_elements = lay_out(&o->bias, p->type, 1, &p->filters, in_order, p->gap, p->start);
    else if (p->bias)
        o->bias_elements = lay_out_part(&o->bias, p, &o->t[2], p->bias == BIAS_FULL ? ~0u : 1u << p->spatial);
}

static void softmax_operands(struct operands *o, const struct problem *p)
{
    const int64_t extent[4] = { p->batch, p->rows / p->inner, p->n, p->inner };
    const int     first = p->batch == 1, rank = 4 - first - (p->inner == 1);

    o->count  = p->direction == BACKWARD ? 3 : 2;
    o->output = o->count - 1;
    for (int i = 0; i < o->count; i++)
        o->elements[i] = lay_out(&o->t[i], p->type, rank, extent + first, in_order, p->gap, p->start);
    if (p->mask)
        o->mask_elements = lay_out_part(&o->mask, p, &o->t[0],
                                        p->mask == MASK_FULL ? ~0u : p->inner > 1 ? 2u : 1u);
}

int problem_operands(struct operands *out, const struct problem *p)
{
    static void (*const make[])(struct operands *, const struct problem *) =
        { gemm_operands, conv_operands, softmax_operands };

    *out = (struct operands){ .count = 3, .output = 2 };
    make[p->op](out, p);
    for (int i = 0; i < 3; i++)
        if (out->elements[i] < 0)
            return -1;
    return out->bias_elements < 0 || out->mask_elements < 0 ? -1 : 0;
}

/* ---- work ----------------------------------------------------------------- */

static double extents_of(const vn_tensor *t)
{
    double n = 1;

    for (int d = 0; d < t->rank; d++)
        n *= (double)(t->stride[d] == 0 ? 1 : t->extent[d]);
    return n;
}

double problem_flops(const struct problem *p)
{
    if (p->op == GEMM)
        return 2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
    if (p->op == SOFTMAX)                                       /* scale, max, subtract, exp, sum, divide */
        return (p->direction == BACKWARD ? 5.0 : 6.0) * (double)p->batch * (double)p->rows * (double)p->n;

    double n = 2.0 * (double)p->images * (double)p->filters * (double)(p->c / p->groups);

    for (int i = 0; i < 3; i++)
        n *= (double)p->out[i] * (double)p->filter[i];
    return n;
}

double problem_bytes(const struct problem *p)
{
    struct operands o;
    double n = 0;

    if (problem_operands(&o, p))
        return 0;
    for (int i = 0; i < o.count; i++)
        n += extents_of(&o.t[i]);
    if (p->op != SOFTMAX && p->beta != 0)
        n += extents_of(&o.t[o.output]);
    n += o.bias.rank ? extents_of(&o.bias) : 0;
    n += o.mask.rank ? extents_of(&o.mask) : 0;
    return n * (double)vn_type_bytes(p->type);
}

/* ---- running -------------------------------------------------------------- */

static vn_gemm_options gemm_options(const struct problem *p, const struct operands *o)
{
    return (vn_gemm_options){ .math = p->math, .bias = o->bias, .activation = p->act, .packed_b = o->pack,
                              .variant = p->variant[0] ? p->variant : NULL };
}

vn_status problem_pack(vn_queue *q, const struct problem *p, struct operands *o)
{
    const vn_gemm_options options = gemm_options(p, o);

    return p->packed ? vn_pack_open(&o->pack, q, o->t[1], p->m, &options) : VN_OK;
}

static vn_status run_gemm(vn_queue *q, const struct problem *p, const struct operands *o)
{
    const vn_gemm_options options = gemm_options(p, o);

    return vn_gemm(q, p->alpha, o->t[0], o->t[1], p->beta, o->t[2], &options);
}

static vn_status run_conv(vn_queue *q, const struct problem *p, const struct operands *o)
{
    static vn_status (*const call[])(vn_queue *, double, vn_tensor, vn_tensor, double, vn_tensor,
                                     const vn_conv_options *) =
        { vn_conv_forward, vn_conv_backward_data, vn_conv_backward_filter };
    vn_conv_options options = { .groups = p->groups, .math = p->math, .bias = o->bias, .activation = p->act,
                                .variant = p->variant[0] ? p->variant : NULL };
    const int    from = 3 - p->spatial;
    const size_t bytes = (size_t)p->spatial * sizeof(int);

    memcpy(options.stride, p->stride + from, bytes);
    memcpy(options.dilation, p->dilation + from, bytes);
    memcpy(options.pad_before, p->pad_before + from, bytes);
    memcpy(options.pad_after, p->pad_after + from, bytes);
    return call[p->direction](q, p->alpha, o->t[0], o->t[1], p->beta, o->t[2], &options);
}

static vn_status run_softmax(vn_queue *q, const struct problem *p, const struct operands *o)
{
    const vn_softmax_options options = { .axis = p->inner > 1, .log = p->log, .scale = p->scale, .mask = o->mask,
                                         .causal = p->causal, .variant = p->variant[0] ? p->variant : NULL };

    return p->direction == BACKWARD ? vn_softmax_backward(q, o->t[0], o->t[1], o->t[2], &options)
                                    : vn_softmax(q, o->t[0], o->t[1], &options);
}

vn_status problem_run(vn_queue *q, const struct problem *p, const struct operands *o)
{
    static vn_status (*const run[])(vn_queue *, const struct problem *, const struct operands *) =
        { run_gemm, run_conv, run_softmax };

    return run[p->op](q, p, o);
}

/* ---- for people ---- */

const char *problem_shown(char out[PROBLEM_TEXT], const char *text)
{
    static const char *const unsaid[] = { ":nchw", ":forward" };

    snprintf(out, PROBLEM_TEXT, "%s", text);
    for (int i = 0; i < 2; i++) {
        char *const at = strstr(out, unsaid[i]);
        const size_t length = strlen(unsaid[i]);

        if (at && (!at[length] || at[length] == ':'))
            memmove(at, at + length, strlen(at + length) + 1);
    }
    return out;
}
