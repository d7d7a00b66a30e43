/* SPDX-License-Identifier: Apache-2.0
 *
 * language.c - reads and writes problems.
 *
 * Tables say the whole language: words that stand alone, keys with a value, and the names a value may
 * have.  Reading, writing and the sentences for what is wrong all go through them.  Here are those of all
 * operations; each adds its own.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "language.h"

static const struct name type_names[] = {
    { "f32", VN_F32 }, { "f16", VN_F16 }, { "bf16", VN_BF16 }, { "f64", VN_F64 }, { NULL, 0 } };
static const struct name act_names[] = {
    { "identity", VN_IDENTITY }, { "relu", VN_RELU }, { "gelu", VN_GELU }, { "silu", VN_SILU },
    { "sigmoid", VN_SIGMOID }, { "tanh", VN_TANH }, { NULL, 0 } };
static const struct name math_names[] = {
    { "default", VN_MATH_DEFAULT }, { "tf32", VN_MATH_TF32 }, { "bitwise", VN_MATH_BITWISE }, { NULL, 0 } };
static const struct name beside_names[] = {
    { "apart", APART }, { "rows", BESIDE_ROWS }, { "blocks", BESIDE_BLOCKS }, { NULL, 0 } };
const struct name f32_names[] = { { "same", 0 }, { "f32", 1 }, { NULL, 0 } };
const struct name bias_names[] = {
    { "none", NO_BIAS }, { "row", BIAS_ROW }, { "col", BIAS_COL }, { "full", BIAS_FULL }, { NULL, 0 } };

const char *const direction_names[DIRECTIONS] = {
    [FORWARD] = "forward", [BACKWARD_DATA] = "backward-data", [BACKWARD_FILTER] = "backward-filter",
    [BACKWARD] = "backward" };

static void *at(struct problem *p, size_t where)
{
    return (char *)p + where;
}

static const void *within(const struct problem *p, size_t where)
{
    return (const char *)p + where;
}

/* ---- reading values ---------------------------------------------------------- */

int wrong(const struct reader *r, const char *sentence, ...)
{
    va_list ap;

    va_start(ap, sentence);
    vsnprintf(r->why, r->why_size, sentence, ap);
    va_end(ap);
    return -1;
}

static const char *reads(const struct reader *r)
{
    return r->p->op ? r->p->op->name : "problem";
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

int scan_integer(int64_t *out, const char *s, const char **end)
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

int read_integer(const struct reader *r, const struct key *k, const char *value)
{
    const char *end;
    int64_t v;

    if (scan_integer(&v, value, &end) || *end || v < k->low || v > k->high)
        return wrong(r, "%s: %s is \"%s\"; it must be a whole number from %lld to %lld",
                     reads(r), k->name, value, (long long)k->low, (long long)k->high);
    memcpy(at(r->p, k->at), &v, sizeof v);
    return 0;
}

int read_real(const struct reader *r, const struct key *k, const char *value)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(value, &end);
    if (end == value || *end)
        return wrong(r, "%s: %s is \"%s\"; it must be a number, such as 0.5", reads(r), k->name, value);
    memcpy(at(r->p, k->at), &v, sizeof v);
    return 0;
}

int read_name(const struct reader *r, const struct key *k, const char *value)
{
    char list[96];

    for (const struct name *n = k->names; n->name; n++)
        if (!strcmp(n->name, value)) {
            memcpy(at(r->p, k->at), &n->value, sizeof n->value);
            return 0;
        }
    return wrong(r, "%s: %s is \"%s\"; it must be %s", reads(r), k->name, value,
                 list_names(list, sizeof list, k->names));
}

int read_sizes(const struct reader *r, const char *text, int count, int64_t *const out[], const char *form,
               const char *such_as)
{
    const char *s = text;

    for (int i = 0; i < count; i++)
        if (scan_integer(out[i], s, &s) || *s++ != (i + 1 < count ? 'x' : '\0'))
            return wrong(r, "%s: the sizes are \"%s\"; they must be %s, such as %s", reads(r), text, form,
                         such_as);
    return 0;
}

int read_letters(const struct reader *r, const char *text, const struct letter *letters, const char *such_as)
{
    unsigned seen = 0;
    int most = 1;

    for (const char *s = text, *end; *s; s = end) {
        int i = 0;

        while (letters[i].letter && letters[i].letter != *s)
            i++;
        if (!letters[i].letter || seen & 1u << i || scan_integer(letters[i].to, s + 1, &end))
            return wrong(r, "%s: the sizes are \"%s\", wrong from \"%s\" on; they must be letters and "
                         "numbers such as %s", reads(r), text, s, such_as);
        seen |= 1u << i;
        most = letters[i].needs > most ? letters[i].needs : most;
    }
    for (int i = 0; letters[i].letter; i++)
        if (letters[i].needs <= most && !(seen & 1u << i))
            return wrong(r, "%s: the sizes \"%s\" lack %c", reads(r), text, letters[i].letter);
    return most;
}

static int read_variant(const struct reader *r, const struct key *k, const char *value)
{
    const size_t n = strlen(value);

    if (n == 0 || n >= sizeof r->p->variant)
        return wrong(r, "%s: %s is \"%s\"; it must be a name of 1 to %d letters", reads(r), k->name, value,
                     (int)sizeof r->p->variant - 1);
    memcpy(r->p->variant, value, n + 1);
    return 0;
}

/* ---- writing values ---------------------------------------------------------- */

void write_text(struct writer *w, const char *format, ...)
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

void write_real(struct writer *w, const struct key *k, const struct problem *p)
{
    char number[32];
    double v;

    memcpy(&v, within(p, k->at), sizeof v);
    if (v == k->usual)
        return;
    for (int digits = 6; digits <= 17; digits++) {              /* the shortest that reads back */
        snprintf(number, sizeof number, "%.*g", digits, v);
        if (strtod(number, NULL) == v)
            break;
    }
    write_text(w, ":%s=%s", k->name, number);
}

void write_integer(struct writer *w, const struct key *k, const struct problem *p)
{
    int64_t v;

    memcpy(&v, within(p, k->at), sizeof v);
    if (v != (int64_t)k->usual)
        write_text(w, ":%s=%lld", k->name, (long long)v);
}

void write_nothing(struct writer *w, const struct key *k, const struct problem *p)
{
    (void)w;
    (void)k;
    (void)p;
}

void write_name(struct writer *w, const struct key *k, const struct problem *p)
{
    const struct name *n = k->names;
    int v;

    memcpy(&v, within(p, k->at), sizeof v);
    while (n->name && n->value != v)
        n++;
    if (v != (int)k->usual)
        write_text(w, ":%s=%s", k->name, n->name ? n->name : "?");
}

static void write_variant(struct writer *w, const struct key *k, const struct problem *p)
{
    if (p->variant[0])
        write_text(w, ":%s=%s", k->name, p->variant);
}

void write_keys(struct writer *w, const struct key *keys, const struct problem *p)
{
    for (const struct key *k = keys; k->name; k++)
        k->write(w, k, p);
}

/* ---- the keys of several operations ------------------------------------------ */

#define IN(member) offsetof(struct problem, member)

static const struct key epilogue_keys[] = {
    KEY_REAL("alpha", IN(alpha), 1),
    KEY_REAL("beta", IN(beta), 0),
    KEY_NAME("bias", IN(bias), bias_names),
    KEY_NAME("act", IN(act), act_names),
    KEY_NAME("math", IN(math), math_names),
    { .name = NULL }
};

static const struct key all_keys[] = {
    { .name = "variant", .read = read_variant, .write = write_variant },
    KEY_INTEGER("gap", IN(gap), 0, 0, INT64_MAX),
    KEY_INTEGER("start", IN(start), 0, 0, INT64_MAX),
    KEY_NAME("beside", IN(beside), beside_names),
    { .name = NULL }
};

static const struct key type_key = KEY_NAME("the type", IN(type), type_names);

/* ---- reading ----------------------------------------------------------------- */

enum { TABLES = 3 };
static const struct key none[] = { { .name = NULL } };

static void key_tables(const struct key *out[TABLES], const struct op *op)
{
    out[0] = op->keys;
    out[1] = op->has_epilogue ? epilogue_keys : none;
    out[2] = all_keys;
}

static const struct key *find_key(const struct op *op, const char *name)
{
    const struct key *tables[TABLES];

    key_tables(tables, op);
    for (int t = 0; t < TABLES; t++)
        for (const struct key *k = tables[t]; k->name; k++)
            if (!strcmp(k->name, name))
                return k;
    return NULL;
}

static int unknown_part(const struct reader *r, const char *part)
{
    const struct op *const op = r->p->op;
    const struct key *tables[TABLES];
    char   list[320];
    size_t used = 0;

    list[0] = '\0';
    key_tables(tables, op);
    for (const struct word *w = op->words; w->name; w++)
        used += (size_t)snprintf(list + used, sizeof list - used, " %s", w->name);
    for (int t = 0; t < TABLES; t++)
        for (const struct key *k = tables[t]; k->name && used < sizeof list; k++)
            used += (size_t)snprintf(list + used, sizeof list - used, " %s=", k->name);
    return wrong(r, "%s: \"%s\" is no part of it; its parts are%s", reads(r), part, list);
}

static int read_part(const struct reader *r, char *part)
{
    char *const equals = strchr(part, '=');

    if (equals) {
        *equals = '\0';

        const struct key *const k = find_key(r->p->op, part);

        if (k)
            return k->read(r, k, equals + 1);
        *equals = '=';
        return unknown_part(r, part);
    }
    for (const struct word *w = r->p->op->words; w->name; w++)
        if (!strcmp(w->name, part)) {
            memcpy(at(r->p, w->at), &w->value, sizeof w->value);
            return 0;
        }
    return unknown_part(r, part);
}

static int check_whole(const struct reader *r)
{
    struct operands o;

    if (r->p->op->complete && r->p->op->complete(r))
        return -1;
    if (problem_operands(&o, r->p))
        return wrong(r, "%s: the sizes overflow 63 bits", reads(r));
    return 0;
}

/* "gemm, conv or softmax" */
static int unknown_op(const struct reader *r, const char *name)
{
    char   list[128];
    size_t used = 0;

    for (const struct op *const *o = ops; *o && used < sizeof list; o++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", (*o)->name,
                                 !o[1] ? "" : o[2] ? ", " : " or ");
    return wrong(r, "problem: the operation is \"%s\"; it must be %s", name, list);
}

/* "f16", or "bf16>f32" where the operation has a type of its own for what it writes. */
static int read_types(const struct reader *r, char *text)
{
    char *const to = strchr(text, '>');
    const struct key *const k = to ? find_key(r->p->op, "to") : NULL;

    if (to && !k)
        return wrong(r, "%s: the type is \"%s\"; it needs one type", reads(r), text);
    if (to)
        *to = '\0';
    if (type_key.read(r, &type_key, text))
        return -1;
    return to ? k->read(r, k, to + 1) : 0;
}

int problem_parse(struct problem *out, const char *text, char *why, size_t why_size)
{
    const struct reader r = { out, why, why_size };
    char  copy[PROBLEM_TEXT];
    char *part = copy, *rest, *sizes, *type;
    const struct op *op;

    memset(out, 0, sizeof *out);                                /* padding too: compared as bytes */
    if (strlen(text) >= sizeof copy)
        return wrong(&r, "problem: the text is longer than %d letters", PROBLEM_TEXT - 1);
    strcpy(copy, text);
    rest = copy;
    part = strsep(&rest, ":");
    if (!(op = op_named(part)))
        return unknown_op(&r, part);
    problem_usual(out, op);
    sizes = strsep(&rest, ":");
    type  = strsep(&rest, ":");
    if (!sizes || !type)
        return wrong(&r, "%s: \"%s\" lacks its %s", reads(&r), text, sizes ? "type" : "sizes");
    if (op->read_sizes(&r, sizes) || read_types(&r, type))
        return -1;
    while ((part = strsep(&rest, ":")))
        if (read_part(&r, part))
            return -1;
    return check_whole(&r);
}

void problem_usual(struct problem *out, const struct op *op)
{
    memset(out, 0, sizeof *out);
    out->op    = op;
    out->alpha = 1;
    memcpy(out->own, op->usual, op->own_size);
}

/* ---- writing ----------------------------------------------------------------- */

void problem_format(char text[PROBLEM_TEXT], const struct problem *p)
{
    struct writer w = { text, 0 };

    write_text(&w, "%s:", p->op->name);
    p->op->write(&w, p);
    if (p->op->has_epilogue)
        write_keys(&w, epilogue_keys, p);
    write_keys(&w, all_keys, p);
}

const char *problem_shown(char out[PROBLEM_TEXT], const char *text)
{
    char name[32];

    snprintf(out, PROBLEM_TEXT, "%s", text);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);

    const struct op *const op = op_named(name);

    for (const struct word *w = op ? op->words : NULL; w && w->name; w++) {
        char *const colon = w->usual ? strstr(out, w->name) : NULL;
        const size_t length = strlen(w->name);

        if (colon && colon > out && colon[-1] == ':' && (!colon[length] || colon[length] == ':'))
            memmove(colon - 1, colon + length, strlen(colon + length) + 1);
    }
    return out;
}
