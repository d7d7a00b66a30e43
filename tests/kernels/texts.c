/* SPDX-License-Identifier: Apache-2.0
 *
 * texts.c - writes what the library would give to a compiler: the whole text of each
 * variant of each operation, in each type, with the tune rows of a device and each value of its constants.
 *
 *     texts BACKEND FAMILY/ARCH DIRECTORY [wide] [rows] [pairs]
 *
 * Prints the path of each file it writes.  With "wide", f32 once more with offsets of 64 bits; with "rows",
 * the rows for small and medium problems, and those of devices of that architecture that a row names, too;
 * with "pairs", of each variant as many as it takes for each two of a type, a row, an epilogue and the values
 * of the constants to be together in one.  A file is called
 *
 *     VARIANT.TYPE.PARAMETER-PARAMETER...[.wide][.NAME=VALUE,...]
 *
 * where the last are the variant's constants.
 */
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/engines.h"
#include "core.h"

enum { NAMES = 16, NAME = sizeof ((struct vn_facts *)NULL)->name };

struct target {
    vn_device   device;
    const char *directory;
    int         wide, rows, pairs;
    char        names[NAMES][NAME];    /* of devices: one that no row names, then those that one does */
    int         count;
};

/* ---- names ----------------------------------------------------------------------- */

static void add(char *to, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void add(char *to, size_t size, const char *format, ...)
{
    const size_t n = strlen(to);
    va_list args;

    va_start(args, format);
    vsnprintf(to + n, size - n, format, args);
    va_end(args);
}

static void add_constants(char *to, size_t size, const struct vn_variant *v, const int *c)
{
    char word[64];

    for (int w = 0, n = 0; v->constants && vn__word_at(word, v->constants, w); w++)
        if (*word < '0' || *word > '9') {
            add(to, size, "%c%s=%d", n ? ',' : '.', word, c[n]);
            n++;
        }
}

/* ---- texts ----------------------------------------------------------------------- */

static int holds(const char *path, const char *text)
{
    FILE *f = fopen(path, "r");
    char part[1 << 14];
    size_t n;
    int same = f != NULL;

    while (same && (n = fread(part, 1, sizeof part, f)) > 0) {
        same = !strncmp(part, text, n);
        text += same ? n : 0;
    }
    if (f)
        fclose(f);
    return same && !*text;
}

static int write_file(const char *path, const char *text)
{
    FILE *f;
    int failed;

    if (holds(path, text))             /* two variants that differ in how they run alone */
        return 0;
    failed = !(f = fopen(path, "wx")) || fputs(text, f) < 0;
    if (f)
        failed |= fclose(f);
    if (failed)
        perror(path);
    else
        puts(path);
    return failed;
}

/* Beside the plain product: all that can be added in the problem's type, and in f32; the latter as
 * VN_MATH_BITWISE has it where the problem is of f32, too.                                          */
enum { PLAIN, ADDED, ADDED_IN_F32, EPILOGUES };

static struct vn_epilogue epilogue_of(const struct target *target, vn_type type, int which)
{
    const vn_type of = which == ADDED_IN_F32 ? VN_F32 : type;
    const vn_math math = which == ADDED_IN_F32 && type == VN_F32 ? VN_MATH_BITWISE : VN_MATH_DEFAULT;
    const int t = (int)type, other = (int)of;

    return which == PLAIN
         ? (struct vn_epilogue){ .type_c = t, .type_residual = t, .type_bias = t }
         : (struct vn_epilogue){ .act = which == ADDED ? VN_GELU : VN_TANH,
                                 .fast_act = vn__fast_act(math, of, &target->device.facts),
                                 .scale = VN_SAME_COLUMNS, .residual = VN_FULL,
                                 .bias = which == ADDED ? VN_SAME_ROWS : VN_FULL,
                                 .type_c = other, .type_residual = other, .type_bias = other };
}

/* What a text is of. */
enum { TYPE, ROW, FORM, CONSTANT, FACTORS = CONSTANT + VN_CONSTANTS };

struct text {
    vn_type type;
    int     wide, which, done;
    int     p[VN_PARAMS], c[VN_CONSTANTS];
    int     level[FACTORS];             /* of each factor: which of its values */
};

static int write_text(const struct target *t, const struct vn_variant *v, const struct text *it)
{
    const struct vn_epilogue e = epilogue_of(t, it->type, it->which);
    char *text = vn__assemble(t->device.backend->name, v, it->p, it->c, it->type, it->wide, &e);
    char path[1024], word[64];
    int failed;

    if (!text) {
        fprintf(stderr, "%s: one of \"%s\" is not among the texts\n", v->name, v->texts);
        return 1;
    }
    snprintf(path, sizeof path, "%s/%s.%s", t->directory, v->name, vn_type_name(it->type));
    for (int i = 0; vn__word_at(word, v->params, i); i++)
        add(path, sizeof path, "%c%d", i ? '-' : '.', it->p[i]);
    if (it->wide)
        add(path, sizeof path, ".wide");
    if (it->which != PLAIN)
        add(path, sizeof path, it->which == ADDED ? ".added" : ".added_in_f32");
    add_constants(path, sizeof path, v, it->c);
    failed = write_file(path, text);
    free(text);
    return failed;
}

/* ---- of a variant ---------------------------------------------------------------- */

struct list { struct text *it; int count, room; };

static int append(struct list *l, const struct vn_row *row, const int *c, vn_type type, int wide, int which)
{
    struct text *it;

    if (l->count == l->room) {
        const int room = l->room ? 2 * l->room : 64;

        if (!(it = realloc(l->it, (size_t)room * sizeof *it)))
            return 1;
        l->it   = it;
        l->room = room;
    }
    it  = &l->it[l->count++];
    *it = (struct text){ .type = type, .wide = wide, .which = which };
    memcpy(it->p, row->p, sizeof it->p);
    memcpy(it->c, c, sizeof it->c);
    return 0;
}

/* Attention has one for its words, and nothing to add. */
static int has_epilogue(const struct vn_variant *v)
{
    return strstr(v->texts, "cl/tile/epilogue.h") && strncmp(v->name, "attention", 9);
}

/* Whether it has an epilogue of its own for rows of whole vectors. */
static int has_vectors(const struct vn_variant *v)
{
    return v->constants && strstr(v->constants, "VECTORS");
}

static int append_row(struct list *l, const struct target *t, const struct vn_variant *v,
                      const struct vn_row *row, vn_type type)
{
    const int is_gemm = !strncmp(v->name, "gemm", 4);
    int c[VN_CONSTANTS], failed = 0, count = 0;

    for (; vn__constants_at(c, v, count); count++)
        for (int wide = 0; wide <= (t->wide && type == VN_F32); wide++)
            failed |= append(l, row, c, type, wide, PLAIN);
    for (int i = 0; i < 1 + has_vectors(v); i++) {              /* the first constants, and the last */
        vn__constants_at(c, v, i * (count - 1));
        for (int e = ADDED; e < EPILOGUES && has_epilogue(v); e++)
            if (e != ADDED_IN_F32 || (vn_type_bytes(type) == 2 && is_gemm))
                failed |= append(l, row, c, type, 0, e);
    }
    return failed;
}

/* A row of another device stands in for a missing one, but may ask for what this one's compiler does not
 * have.                                                                                                */
static int append_type(struct list *l, const struct target *t, const struct vn_variant *v, vn_type type)
{
    int failed = 0;

    for (int b = VN_LARGE; b >= (t->rows ? VN_SMALL : VN_LARGE); b--) {
        struct vn_row row[VN_ROWS];
        int count;
        const vn_status s = vn__tune_find(row, &count, &t->device, v, type, (enum vn_bucket)b);

        if (s != VN_OK && s != VN_UNSUPPORTED) {
            fprintf(stderr, "%s\n", vn_last_error());
            return 1;
        }
        for (int i = 0; s == VN_OK && i < count && strcmp(row[i].source, "nearest"); i++)
            failed |= append_row(l, t, v, &row[i], type);
    }
    return failed;
}

/* ---- each two together ----------------------------------------------------------- */

enum { LEVELS = 128 };

static int is_alike(const struct text *a, const struct text *b, int factor)
{
    switch (factor) {
    case TYPE: return a->type == b->type;
    case ROW:  return !memcmp(a->p, b->p, sizeof a->p);
    case FORM: return a->wide == b->wide && a->which == b->which;
    }
    return a->c[factor - CONSTANT] == b->c[factor - CONSTANT];
}

static int number_levels(struct list *l)
{
    for (int f = 0; f < FACTORS; f++)
        for (int i = 0, levels = 0; i < l->count; i++) {
            int same = 0;

            while (same < i && !is_alike(&l->it[same], &l->it[i], f))
                same++;
            l->it[i].level[f] = same < i ? l->it[same].level[f] : levels++;
            if (levels > LEVELS) {
                fprintf(stderr, "more than %d values\n", LEVELS);
                return 1;
            }
        }
    return 0;
}

static unsigned char together[FACTORS * LEVELS][FACTORS * LEVELS];

/* How many pairs of this text are in no other one so far; with `take` they are from now on. */
static int new_pairs(const struct text *it, int take)
{
    int count = 0;

    for (int f = 0; f < FACTORS; f++)
        for (int g = 0; g < f; g++) {
            unsigned char *const seen = &together[f * LEVELS + it->level[f]][g * LEVELS + it->level[g]];

            count += !*seen;
            *seen |= (unsigned char)take;
        }
    return count;
}

static int write_pairs(const struct target *t, const struct vn_variant *v, struct list *l)
{
    int failed = number_levels(l);

    memset(together, 0, sizeof together);
    while (!failed) {
        struct text *best = NULL;
        int most = 0;

        for (int i = 0; i < l->count; i++) {
            const int pairs = l->it[i].done ? 0 : new_pairs(&l->it[i], 0);

            if (pairs > most) {
                best = &l->it[i];
                most = pairs;
            }
        }
        if (!best)
            break;
        new_pairs(best, best->done = 1);
        failed = write_text(t, v, best);
    }
    return failed;
}

static int write_variant(const struct target *t, const struct vn_variant *v)
{
    struct list l = { 0 };
    int failed = 0;

    for (int type = 0; v->texts && type < VN_TYPE_COUNT; type++)
        failed |= append_type(&l, t, v, (vn_type)type);
    if (t->pairs)
        failed |= write_pairs(t, v, &l);
    else
        for (int i = 0; i < l.count; i++)
            failed |= write_text(t, v, &l.it[i]);
    free(l.it);
    return failed;
}

/* ---- devices --------------------------------------------------------------------- */

static int is_for(const char *pattern, const struct target *t, const char *name)
{
    char device[256];

    snprintf(device, sizeof device, "%s/%s/%s", t->device.facts.family, t->device.facts.arch, name);
    return !fnmatch(pattern, device, 0);
}

/* A device that the pattern of a row is for: nvidia/sm_90/?H100 is for one called "0H100". */
static void add_name(struct target *t, const char *pattern)
{
    char name[NAME];
    const char *last = strrchr(pattern, '/');
    size_t n = 0;

    for (last = last ? last + 1 : ""; *last && n < NAME - 1; last++)
        if (*last != '*')
            name[n++] = *last == '?' ? '0' : *last;
    name[n] = '\0';
    for (int i = 0; i < t->count; i++)
        if (is_for(pattern, t, t->names[i]))
            return;
    if (t->count < NAMES && is_for(pattern, t, name))
        strcpy(t->names[t->count++], name);
}

static void add_names(struct target *t)
{
    for (const struct vn_text *tune = vn__texts; tune->path; tune++)
        for (const char *line = tune->text; !fnmatch("*.tune", tune->path, 0) && *line;
             line += strcspn(line, "\n"), line += *line == '\n') {
            char pattern[256];

            if (*line != '#' && sscanf(line, "%*s %255s", pattern) == 1 && strchr(pattern, '/'))
                add_name(t, pattern);
        }
}

/* What measures the roofs of the device's matrix engines. */
static int write_roofs(const struct target *t)
{
    const struct matrix_engine *it;
    int failed = 0;

    for (int type = 0; type < VN_TYPE_COUNT; type++)
        for (it = matrix_engines; (it = matrix_engine_for(it, &t->device.facts, (vn_type)type)); it++) {
            struct text text = { .type = (vn_type)type, .which = PLAIN };

            memcpy(text.p, it->p, sizeof it->p);
            failed |= write_text(t, &it->kernel, &text);
        }
    return failed;
}

static int write_device(const struct target *t)
{
    int failed = write_roofs(t);

    for (const struct vn_operation *const *o = vn__operations; *o; o++)
        for (const struct vn_variant *v = (*o)->variants; v->name; v++)
            failed |= write_variant(t, v);
    return failed;
}

int main(int argc, char **argv)
{
    static struct vn_backend backend;
    static struct target t = { .device = { .backend = &backend }, .names = { "a device" }, .count = 1 };
    int failed = 0;

    if (argc < 4 || sscanf(argv[2], "%15[^/]/%31s", t.device.facts.family, t.device.facts.arch) != 2) {
        fprintf(stderr, "usage: texts BACKEND FAMILY/ARCH DIRECTORY [wide] [rows] [pairs]\n");
        return 2;
    }
    backend.name = argv[1];
    t.directory  = argv[3];
    for (int i = 4; i < argc; i++) {
        t.wide |= !strcmp(argv[i], "wide");
        t.rows |= !strcmp(argv[i], "rows");
        t.pairs |= !strcmp(argv[i], "pairs");
    }
    if (t.rows)
        add_names(&t);
    for (int i = 0; i < t.count; i++) {
        strcpy(t.device.facts.name, t.names[i]);
        failed |= write_device(&t);
    }
    return failed;
}
