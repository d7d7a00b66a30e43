/* SPDX-License-Identifier: Apache-2.0
 *
 * tune.c - the rows of *.tune files: which #defines a variant gets on a device.
 *
 *     # a comment
 *     columns gemm_cpu          THR_M THR_N BLK_N
 *     gemm_cpu cpu/f32x16/?* * f32 large    12    32    64
 *
 * A row is: variant, device pattern, backend, type, bucket, one value for each column.
 * The pattern is matched (as file names are) against family/arch/name of the device;
 * backend, type and bucket may be *.  The first row that matches is used: the user's
 * file first ($VERNIER_TUNE, or vernier/user.tune under $XDG_CONFIG_HOME or ~/.config),
 * then the shipped ones.  A file with a wrong line is not used at all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

enum { LINE = 512, FILE_LIMIT = 1 << 20, FIELDS = 5 };

static const char *const buckets[VN_BUCKET_COUNT] = { "small", "medium", "large" };

struct sought {
    const struct vn_variant *variant;
    const char *backend, *type, *bucket;
    char        device[256];
};

/* Copies the word at *at to word[size] and steps over it; 0 at the end of the line. */
static int next_word(char *word, size_t size, const char **at)
{
    size_t n;

    *at += strspn(*at, " \t");
    n = strcspn(*at, " \t\n#");
    if (n == 0 || n >= size)
        return 0;
    memcpy(word, *at, n);
    word[n] = '\0';
    *at += n;
    return 1;
}

/* One value for each name of `params`, and nothing after; or 0. */
static int read_values(int *p, const char *params, const char *at)
{
    char name[64], word[64], *end;
    int n = 0;

    while (next_word(name, sizeof name, &params)) {
        if (n == VN_PARAMS || !next_word(word, sizeof word, &at))
            return 0;
        errno = 0;

        const long v = strtol(word, &end, 10);

        if (*end || errno || v < -65536 || v > 1 << 24)
            return 0;
        p[n++] = (int)v;
    }
    return !next_word(word, sizeof word, &at);
}

static int is_like(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}

/* The columns of this variant must be its params, in their order. */
static int columns_agree(const char *params, const char *at)
{
    char want[64], have[64];

    while (next_word(want, sizeof want, &params))
        if (!next_word(have, sizeof have, &at) || strcmp(want, have))
            return 0;
    return !next_word(have, sizeof have, &at);
}

/* Looks through one file.  Returns 1 and fills p if a row matches, 0 if none does, and
 * minus the number of the first wrong line.                                          */
static int search(int *p, int *is_default, const char *text, const struct sought *s)
{
    int found = 0, number = 0;

    while (*text) {
        const char *end = strchr(text, '\n'), *at;
        const size_t n = end ? (size_t)(end - text) : strlen(text);
        char line[LINE], field[FIELDS][256];
        int row[VN_PARAMS] = { 0 }, fields = 0;

        number++;
        if (n >= sizeof line)
            return -number;
        memcpy(line, text, n);
        line[n] = '\0';
        text += n + (end != NULL);

        at = line;
        if (!next_word(field[0], sizeof field[0], &at)) {
            if (line[strspn(line, " \t")] && line[strspn(line, " \t")] != '#')
                return -number;
            continue;
        }
        if (!strcmp(field[0], "columns")) {
            if (!next_word(field[0], sizeof field[0], &at))
                return -number;
            if (!strcmp(field[0], s->variant->name) && !columns_agree(s->variant->params, at))
                return -number;
            continue;
        }
        for (fields = 1; fields < FIELDS; fields++)
            if (!next_word(field[fields], sizeof field[fields], &at))
                return -number;
        if (strcmp(field[0], s->variant->name))
            continue;
        if (!read_values(row, s->variant->params, at))
            return -number;
        if (!found && is_like(field[1], s->device) && is_like(field[2], s->backend) &&
            is_like(field[3], s->type) && is_like(field[4], s->bucket)) {
            memcpy(p, row, sizeof row);
            *is_default = !strcmp(field[1], "*");
            found = 1;
        }
    }
    return found;
}

/* ---- the user's file --------------------------------------------------------- */

static int user_path(char *path, size_t size)
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

static char *read_user_file(const char *path)
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
    char path[4096], *text;
    int is_default, found = 0;

    if (user_path(path, sizeof path) && (text = read_user_file(path))) {
        found = search(p, &is_default, text, s);
        free(text);
        if (found < 0)
            vn__log(VN_LOG_CHOOSE, "%s:%d: no row of %s; the file is not used", path, -found, s->variant->name);
    }
    return found > 0;
}

/* ---- finding ------------------------------------------------------------------ */

vn_status vn__tune_find(int *p, const char **source, const vn_device *d,
                        const struct vn_variant *v, vn_type type, enum vn_bucket bucket)
{
    struct sought s = { v, d->backend->name, vn_type_name(type), buckets[bucket], "" };
    int is_default = 0;

    memset(p, 0, VN_PARAMS * sizeof *p);
    if (!v->params || !*v->params) {
        *source = "default";
        return VN_OK;
    }
    snprintf(s.device, sizeof s.device, "%s/%s/%s", d->facts.family, d->facts.arch, d->facts.name);
    if (search_user(p, &s)) {
        *source = "user";
        return VN_OK;
    }
    for (const struct vn_text *t = vn__texts; t->path; t++)
        if (is_like("*.tune", t->path)) {
            const int found = search(p, &is_default, t->text, &s);

            if (found < 0)
                return vn__fail(VN_FAILED, "%s:%d: no row of %s", t->path, -found, v->name);
            if (found) {
                *source = is_default ? "default" : "shipped";
                return VN_OK;
            }
        }
    return vn__fail(VN_UNSUPPORTED, "there is no tune row of %s for %s, %s, %s, %s", v->name, s.device, s.backend,
                    s.type, s.bucket);
}
