/* SPDX-License-Identifier: Apache-2.0
 *
 * texts.c - writes what the library would give to a compiler: the whole text of each
 * variant of each operation, in each type, with the tune rows of a device and each value of its constants.
 *
 *     texts BACKEND FAMILY/ARCH DIRECTORY [wide] [rows]
 *
 * Prints the path of each file it writes.  With "wide", f32 once more with offsets of 64 bits; with "rows",
 * the rows for small and medium problems, and those of devices of that architecture that a row names, too.  A
 * file is called
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
    int         wide, rows;
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
    int same = f != NULL;

    while (same && *text)
        same = fgetc(f) == (unsigned char)*text++;
    same = same && fgetc(f) == EOF;
    if (f)
        fclose(f);
    return same;
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

/* Beside the plain product: all that can be added in the problem's type, and in f32. */
enum { PLAIN, ADDED, ADDED_IN_F32, EPILOGUES };

static struct vn_epilogue epilogue_of(const struct target *target, vn_type type, int which)
{
    const int fast = vn__fast_act(VN_MATH_DEFAULT, &target->device.facts);
    const int t = (int)type, other = which == ADDED_IN_F32 ? (int)VN_F32 : t;
    const int is_fast = which == ADDED && vn_type_bytes(type) == 2;

    return which == PLAIN
         ? (struct vn_epilogue){ .type_c = t, .type_residual = t, .type_bias = t }
         : (struct vn_epilogue){ .act = which == ADDED ? VN_GELU : VN_TANH, .fast_act = is_fast ? fast : 0,
                                 .scale = VN_SAME_COLUMNS, .residual = VN_FULL,
                                 .bias = which == ADDED ? VN_SAME_ROWS : VN_FULL,
                                 .type_c = other, .type_residual = other, .type_bias = other };
}

static int write_text(const struct target *t, const struct vn_variant *v, const int *p, const int *c,
                      vn_type type, int wide, int which)
{
    const struct vn_epilogue e = epilogue_of(t, type, which);
    char *text = vn__assemble(t->device.backend->name, v, p, c, type, wide, &e);
    char path[1024], word[64];
    int failed;

    if (!text) {
        fprintf(stderr, "%s: one of \"%s\" is not among the texts\n", v->name, v->texts);
        return 1;
    }
    snprintf(path, sizeof path, "%s/%s.%s", t->directory, v->name, vn_type_name(type));
    for (int i = 0; vn__word_at(word, v->params, i); i++)
        add(path, sizeof path, "%c%d", i ? '-' : '.', p[i]);
    if (wide)
        add(path, sizeof path, ".wide");
    if (which != PLAIN)
        add(path, sizeof path, which == ADDED ? ".added" : ".added_in_f32");
    add_constants(path, sizeof path, v, c);
    failed = write_file(path, text);
    free(text);
    return failed;
}

/* Attention has one for its words, and nothing to add. */
static int has_epilogue(const struct vn_variant *v)
{
    return strstr(v->texts, "cl/tile/epilogue.h") && strncmp(v->name, "attention", 9);
}

static int write_row(const struct target *t, const struct vn_variant *v, const struct vn_row *row,
                     vn_type type)
{
    int c[VN_CONSTANTS], failed = 0;

    for (int i = 0; vn__constants_at(c, v, i); i++)
        for (int wide = 0; wide <= (t->wide && type == VN_F32); wide++)
            failed |= write_text(t, v, row->p, c, type, wide, PLAIN);
    vn__constants_at(c, v, 0);
    for (int e = ADDED; e < EPILOGUES && has_epilogue(v); e++)
        if (e != ADDED_IN_F32 || (vn_type_bytes(type) == 2 && !strncmp(v->name, "gemm", 4)))
            failed |= write_text(t, v, row->p, c, type, 0, e);
    return failed;
}

/* A row of another device stands in for a missing one, but may ask for what this one's compiler does not
 * have.                                                                                                */
static int write_type(const struct target *t, const struct vn_variant *v, vn_type type)
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
            failed |= write_row(t, v, &row[i], type);
    }
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
    static const int none[VN_CONSTANTS];
    const struct matrix_engine *it;
    int failed = 0;

    for (int type = 0; type < VN_TYPE_COUNT; type++)
        for (it = matrix_engines; (it = matrix_engine_for(it, &t->device.facts, (vn_type)type)); it++)
            failed |= write_text(t, &it->kernel, it->p, none, (vn_type)type, 0, PLAIN);
    return failed;
}

static int write_device(const struct target *t)
{
    int failed = write_roofs(t);

    for (const struct vn_operation *const *o = vn__operations; *o; o++)
        for (const struct vn_variant *v = (*o)->variants; v->name; v++)
            for (int type = 0; v->texts && type < VN_TYPE_COUNT; type++)
                failed |= write_type(t, v, (vn_type)type);
    return failed;
}

int main(int argc, char **argv)
{
    static struct vn_backend backend;
    static struct target t = { .device = { .backend = &backend }, .names = { "a device" }, .count = 1 };
    int failed = 0;

    if (argc < 4 || sscanf(argv[2], "%15[^/]/%31s", t.device.facts.family, t.device.facts.arch) != 2) {
        fprintf(stderr, "usage: texts BACKEND FAMILY/ARCH DIRECTORY [wide] [rows]\n");
        return 2;
    }
    backend.name = argv[1];
    t.directory  = argv[3];
    for (int i = 4; i < argc; i++) {
        t.wide |= !strcmp(argv[i], "wide");
        t.rows |= !strcmp(argv[i], "rows");
    }
    if (t.rows)
        add_names(&t);
    for (int i = 0; i < t.count; i++) {
        strcpy(t.device.facts.name, t.names[i]);
        failed |= write_device(&t);
    }
    return failed;
}
