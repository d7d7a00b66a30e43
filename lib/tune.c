/* SPDX-License-Identifier: Apache-2.0
 *
 * tune.c - the rows of *.tune files: which #defines a variant gets on a device.
 *
 *     # a comment
 *     columns gemm_cpu          THR_M THR_N BLK_N
 *     space   gemm_cpu          THR_M 4 6 12  THR_N 1 2 4  BLK_N 32 64
 *     gemm_cpu cpu/f32x16/?* * f32 large    12    32    64
 *
 * A row is: variant, device pattern, backend, type, bucket, one value for each column.
 * The pattern is matched (as file names are) against family/arch/name of the device;
 * backend, type and bucket may be patterns, too.  `space` names the values that are worth
 * trying: `vernier tune` searches them.
 *
 * The first row that matches is used: the user's file first ($VERNIER_TUNE, or
 * vernier/user.tune under $XDG_CONFIG_HOME or ~/.config), then the shipped ones.  Where only
 * a row for every device (*) matches there, one for the nearest device goes before it: of
 * the same family, and of an architecture whose number is not far from ours.
 *
 * A file with a wrong line is not used at all.  A variant that this library does not have is
 * no mistake: another version, or a build with other libraries, may have it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

enum { LINE = 512, FILE_LIMIT = 1 << 20, WORD = 256, PATH = 4096, WHY = PATH + 512 };

const char *const vn__bucket_names[VN_BUCKET_COUNT] = { "small", "medium", "large" };

/* ---- words ---------------------------------------------------------------------- */

/* Copies the word at *at to word[size] and steps over it; 0 at the end of the line. */
static int next_word(char *word, size_t size, const char **at)
{
    size_t n;

    *at += strspn(*at, " \t\r");
    n = strcspn(*at, " \t\r\n#");
    if (n == 0 || n >= size)
        return 0;
    memcpy(word, *at, n);
    word[n] = '\0';
    *at += n;
    return 1;
}

static int is_like(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}

static int read_value(int *out, const char *word)
{
    char *end;
    long v;

    errno = 0;
    v = strtol(word, &end, 10);
    if (end == word || *end || errno || v < -65536 || v > 1 << 24)
        return 0;
    *out = (int)v;
    return 1;
}

static int is_parameter(const char *params, const char *name)
{
    char word[WORD];

    while (next_word(word, sizeof word, &params))
        if (!strcmp(word, name))
            return 1;
    return 0;
}

static const struct vn_variant *variant_named(const char *name)
{
    for (const struct vn_variant *const *table = vn__tables; *table; table++)
        for (const struct vn_variant *v = *table; v->name; v++)
            if (!strcmp(v->name, name))
                return v;
    return NULL;
}

/* ---- lines ----------------------------------------------------------------------- */

enum { NAME, DEVICE, BACKEND, TYPE, BUCKET, FIELDS };

struct line {
    enum { NOTHING, COLUMNS, SPACE, ROW } kind;
    char        field[FIELDS][WORD];      /* NAME of each kind, the rest of rows */
    const struct vn_variant *variant;     /* NULL: this library has none of that name */
    int         p[VN_PARAMS];             /* of a row */
    const char *rest;                     /* behind the name */
    char        wrong[384];               /* "": nothing */
};

static void find_wrong(struct line *l, const char *sentence, ...) __attribute__((format(printf, 2, 3)));

static void find_wrong(struct line *l, const char *sentence, ...)
{
    va_list args;

    va_start(args, sentence);
    vsnprintf(l->wrong, sizeof l->wrong, sentence, args);
    va_end(args);
}

static void read_columns(struct line *l)
{
    const char *params = l->variant->params, *at = l->rest;
    char want[WORD], have[WORD];
    int same = 1;

    while (same && next_word(want, sizeof want, &params))
        same = next_word(have, sizeof have, &at) && !strcmp(want, have);
    if (!same || next_word(have, sizeof have, &at))
        find_wrong(l, "the columns of %s are %s", l->variant->name, l->variant->params);
}

/* NAME 1 2 4  NAME 8 16 */
static void read_space(struct line *l)
{
    const char *at = l->rest;
    char word[WORD];
    int value, names = 0, values = 1, right = 1;

    while (right && next_word(word, sizeof word, &at))
        if (read_value(&value, word)) {
            right = names > 0;
            values++;
        } else {
            right = values > 0 && is_parameter(l->variant->params, word);
            names++;
            values = 0;
        }
    if (!right || !values)
        find_wrong(l, "after the space of %s come some of %s, each with its values", l->variant->name,
                   l->variant->params);
}

static int is_like_some(const char *pattern, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (is_like(pattern, names[i]))
            return 1;
    return 0;
}

static void read_values(struct line *l)
{
    const char *params = l->variant->params, *at = l->rest;
    char name[WORD], word[WORD];
    int n = 0, right = 1;

    while (right && next_word(name, sizeof name, &params)) {
        right = n < VN_PARAMS && next_word(word, sizeof word, &at) && read_value(&l->p[n], word);
        n++;
    }
    if (!right || next_word(word, sizeof word, &at))
        find_wrong(l, "a row of %s ends with a number for each of %s", l->variant->name, l->variant->params);
}

static void read_row(struct line *l)
{
    const char *types[VN_TYPE_COUNT];

    for (int i = DEVICE; i < FIELDS; i++)
        if (!next_word(l->field[i], WORD, &l->rest)) {
            find_wrong(l, "a row is a variant, a device, a backend, a type, a bucket, then numbers");
            return;
        }
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        types[t] = vn_type_name((vn_type)t);
    if (!is_like_some(l->field[TYPE], types, VN_TYPE_COUNT))
        find_wrong(l, "no type is like \"%.40s\": they are f32, f16, bf16 and f64", l->field[TYPE]);
    else if (!is_like_some(l->field[BUCKET], vn__bucket_names, VN_BUCKET_COUNT))
        find_wrong(l, "no bucket is like \"%.40s\": they are small, medium and large", l->field[BUCKET]);
    else if (l->variant)
        read_values(l);
}

static void read_line(struct line *l, const char *text)
{
    static const struct { const char *word; int kind; } firsts[] = {
        { "columns", COLUMNS }, { "space", SPACE } };

    *l = (struct line){ .rest = text };
    if (!next_word(l->field[NAME], WORD, &l->rest)) {
        if (*l->rest && *l->rest != '#')
            find_wrong(l, "a word is longer than %d characters", WORD - 1);
        return;
    }
    l->kind = ROW;
    for (int i = 0; i < 2; i++)
        if (!strcmp(l->field[NAME], firsts[i].word)) {
            l->kind = firsts[i].kind;
            if (!next_word(l->field[NAME], WORD, &l->rest))
                find_wrong(l, "after \"%s\" comes the name of a variant", firsts[i].word);
        }
    l->variant = variant_named(l->field[NAME]);
    if (*l->wrong || (!l->variant && l->kind != ROW))
        return;
    if (l->kind == ROW)
        read_row(l);
    else if (l->kind == COLUMNS)
        read_columns(l);
    else
        read_space(l);
}

/* The next line of *text, whose number is counted; 0 at the end. */
static int next_line(struct line *l, char copy[LINE], const char **text, int *number)
{
    const size_t n = strcspn(*text, "\n");

    if (!**text)
        return 0;
    ++*number;
    if (n >= LINE) {
        *l = (struct line){ .rest = "" };
        find_wrong(l, "it is longer than %d characters", LINE - 1);
    } else {
        memcpy(copy, *text, n);
        copy[n] = '\0';
        read_line(l, copy);
    }
    *text += n + ((*text)[n] == '\n');
    return 1;
}

int vn__tune_check(char *why, size_t why_size, const char *path, const char *text)
{
    struct line l;
    char copy[LINE];
    int number = 0;

    while (next_line(&l, copy, &text, &number))
        if (*l.wrong) {
            snprintf(why, why_size, "%s:%d: %s", path, number, l.wrong);
            return -1;
        }
    return 0;
}

/* ---- devices: how near are two ----------------------------------------------------- */

/* Numbers that this far apart, one over the other, still speak of kin. */
static const double KIN = 1.5;

/* The number of an architecture: "sm_90", "gfx90a" (of which CDNA has the low ones, RDNA the
 * high), "f32x16".  0: it has none.                                                       */
static double number_of(const char *arch, size_t *stem)
{
    static const struct { const char *stem; int base; } kinds[] = {
        { "sm_", 10 }, { "gfx", 16 }, { "f32x", 10 } };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        *stem = strlen(kinds[i].stem);
        if (!strncmp(arch, kinds[i].stem, *stem))
            return (double)strtol(arch + *stem, NULL, kinds[i].base);
    }
    return 0;
}

/* 1 for the same architecture, above that for another of the family; KIN and more: too far. */
static double distance(const char *pattern, const struct vn_facts *f)
{
    char parts[WORD], *arch;
    size_t stem, our_stem;
    double a, b;

    snprintf(parts, sizeof parts, "%s", pattern);
    if (!(arch = strchr(parts, '/')))
        return KIN;
    *arch++ = '\0';
    arch[strcspn(arch, "/")] = '\0';
    if (strcmp(parts, f->family))
        return KIN;
    if (is_like(arch, f->arch))
        return 1;
    a = number_of(arch, &stem);
    b = number_of(f->arch, &our_stem);
    if (!(a > 0 && b > 0) || stem != our_stem || strncmp(arch, f->arch, stem))
        return KIN;
    return a > b ? a / b : b / a;
}

/* ---- finding ------------------------------------------------------------------------ */

struct sought {
    const struct vn_variant *variant;
    const struct vn_facts   *facts;
    const char *backend, *type, *bucket;
    char        device[WORD];
};

struct found {
    int    there, for_all;        /* a row matches; its device is * */
    int    p[VN_PARAMS];
    double near;                  /* how near the nearest that does not match is */
    int    near_p[VN_PARAMS];
};

static void look_at(struct found *out, const struct line *l, const struct sought *s)
{
    if (l->kind != ROW || strcmp(l->field[NAME], s->variant->name) ||
        !is_like(l->field[BACKEND], s->backend) || !is_like(l->field[TYPE], s->type) ||
        !is_like(l->field[BUCKET], s->bucket))
        return;
    if (is_like(l->field[DEVICE], s->device)) {
        if (out->there)
            return;
        out->there = 1;
        out->for_all = !strcmp(l->field[DEVICE], "*");
        memcpy(out->p, l->p, sizeof out->p);
    } else if (distance(l->field[DEVICE], s->facts) < out->near) {
        out->near = distance(l->field[DEVICE], s->facts);
        memcpy(out->near_p, l->p, sizeof out->near_p);
    }
}

/* Adds what a file without a wrong line has. */
static void search(struct found *out, const char *text, const struct sought *s)
{
    struct line l;
    char copy[LINE];
    int number = 0;

    while (next_line(&l, copy, &text, &number))
        look_at(out, &l, s);
}

static struct sought sought_of(const vn_device *d, const struct vn_variant *v, vn_type type,
                               enum vn_bucket bucket)
{
    struct sought s = { v, &d->facts, d->backend->name, vn_type_name(type), vn__bucket_names[bucket], "" };

    snprintf(s.device, sizeof s.device, "%s/%s/%s", d->facts.family, d->facts.arch, d->facts.name);
    return s;
}

vn_status vn__tune_shipped(int *p, const char **source, const vn_device *d,
                           const struct vn_variant *v, vn_type type, enum vn_bucket bucket)
{
    const struct sought s = sought_of(d, v, type, bucket);
    struct found f = { .near = KIN };
    char why[WHY];

    for (const struct vn_text *t = vn__texts; t->path; t++) {
        if (!is_like("*.tune", t->path))
            continue;
        if (vn__tune_check(why, sizeof why, t->path, t->text))
            return vn__fail(VN_FAILED, "%s", why);
        search(&f, t->text, &s);
    }
    if (!f.there && f.near >= KIN)
        return vn__fail(VN_UNSUPPORTED, "there is no tune row of %s for %s, %s, %s, %s", v->name, s.device,
                        s.backend, s.type, s.bucket);
    if (f.there && (!f.for_all || f.near >= KIN)) {
        *source = f.for_all ? "default" : "shipped";
        memcpy(p, f.p, sizeof f.p);
    } else {
        *source = "nearest";
        memcpy(p, f.near_p, sizeof f.near_p);
    }
    return VN_OK;
}

int vn__tune_space(int *values, int most, const struct vn_variant *v, const char *param)
{
    char copy[LINE], word[WORD];
    struct line l;
    int count = 0;

    for (const struct vn_text *t = vn__texts; t->path; t++) {
        const char *text = t->text;
        int number = 0;

        while (is_like("*.tune", t->path) && next_line(&l, copy, &text, &number)) {
            int value, ours = 0;

            if (l.kind != SPACE || strcmp(l.field[NAME], v->name))
                continue;
            while (next_word(word, sizeof word, &l.rest))
                if (!read_value(&value, word))
                    ours = !strcmp(word, param);
                else if (ours && count < most)
                    values[count++] = value;
        }
    }
    return count;
}

/* ---- the user's file --------------------------------------------------------- */

int vn__tune_path(char *path, size_t size)
{
    const char *file = secure_getenv("VERNIER_TUNE");
    const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
    int n = -1;

    if (file && *file)
        n = snprintf(path, size, "%s", file);
    else if (config && *config == '/')
        n = snprintf(path, size, "%s/vernier/user.tune", config);
    else if (home && *home)
        n = snprintf(path, size, "%s/.config/vernier/user.tune", home);
    return n > 0 && (size_t)n < size;
}

char *vn__tune_read(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(FILE_LIMIT + 1) : NULL;

    if (text) {
        const size_t n = fread(text, 1, FILE_LIMIT, f);

        text[n] = '\0';
        if (ferror(f) || strlen(text) != n || !feof(f)) {       /* unreadable, binary, too long */
            free(text);
            text = NULL;
        }
    }
    if (f)
        fclose(f);
    return text;
}

static int search_user(int *p, const struct sought *s)
{
    struct found f = { .near = 0 };       /* only what matches */
    char path[PATH], why[WHY], *text;

    if (!vn__tune_path(path, sizeof path) || !(text = vn__tune_read(path)))
        return 0;
    if (vn__tune_check(why, sizeof why, path, text))
        vn__log(VN_LOG_CHOOSE, "%s; the file is not used", why);
    else
        search(&f, text, s);
    free(text);
    memcpy(p, f.p, sizeof f.p);
    return f.there;
}

vn_status vn__tune_find(int *p, const char **source, const vn_device *d,
                        const struct vn_variant *v, vn_type type, enum vn_bucket bucket)
{
    const struct sought s = sought_of(d, v, type, bucket);

    memset(p, 0, VN_PARAMS * sizeof *p);
    *source = "default";
    if (!v->params || !*v->params)
        return VN_OK;
    if (search_user(p, &s)) {
        *source = "user";
        return VN_OK;
    }
    return vn__tune_shipped(p, source, d, v, type, bucket);
}
