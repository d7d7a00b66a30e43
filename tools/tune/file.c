/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c - puts rows and other lines into the user's tune file.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tune.h"

enum { LINE = 512, WORD = 256 };

/* ---- where ---- */

int user_file_open(char path[TUNE_PATH], char *why, size_t why_size)
{
    char real[PATH_MAX], *text;
    struct stat st;
    int wrong;

    if (!vn__tune_path(path, TUNE_PATH - 32)) {
        snprintf(why, why_size, "neither VERNIER_TUNE, XDG_CONFIG_HOME nor HOME says where rows go");
        return -1;
    }
    if (stat(path, &st)) {
        if (errno == ENOENT)
            return 0;
        snprintf(why, why_size, "%.400s cannot be read: %s", path, strerror(errno));
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(why, why_size, "%.400s is no regular file: VERNIER_TUNE must name one for rows to go to",
                 path);
        return -1;
    }
    if (!realpath(path, real) || strlen(real) >= TUNE_PATH - 32 || !(text = vn__tune_read(path))) {
        snprintf(why, why_size, "%.400s cannot be read, or is no text", path);
        return -1;
    }
    strcpy(path, real);
    wrong = vn__tune_check(why, why_size, path, text);
    free(text);
    return wrong;
}

/* ---- the new text ---- */

void device_pattern(char out[PATTERN], const struct vn_device *d)
{
    snprintf(out, PATTERN, "%s/%s/%.180s", d->facts.family, d->facts.arch, d->facts.name);
    for (char *c = out; *c; c++)              /* a name stays one word, and stands for itself */
        if (strchr(" \t\r\n#*[]\\", *c))
            *c = '?';
}

/* The first words of a row: what it is the row of. */
static void write_key(char *out, size_t size, const struct row_line *rows)
{
    char pattern[PATTERN];

    device_pattern(pattern, rows->device);
    snprintf(out, size, "%s %s %s %s%s%s", rows->variant->name, pattern, rows->device->backend->name,
             vn_type_name(rows->type), rows->bucket < VN_BUCKET_COUNT ? " " : "",
             rows->bucket < VN_BUCKET_COUNT ? vn__bucket_names[rows->bucket] : "");
}

static size_t write_numbers(char *line, size_t n, const char *names, const int *value)
{
    char name[64];

    for (int i = 0; vn__word_at(name, names, i) && n < LINE; i++)
        n += (size_t)snprintf(line + n, LINE - n, " %d", value[i]);
    return n;
}

static void write_row(char line[LINE], const char *key, const struct row_line *rows, int i)
{
    const char *const comment = i ? "" : rows->comment, *const costs = rows->variant->costs;
    size_t n = (size_t)snprintf(line, LINE, "%s%s ", key, rows->bucket < VN_BUCKET_COUNT ? "" : " *");

    n = write_numbers(line, n, rows->variant->params, rows->row[i].p);
    if (costs && n + 3 < LINE)
        n = write_numbers(line, n + (size_t)sprintf(line + n, " |"), costs, rows->row[i].cost);
    if (*comment && n + strlen(comment) + 5 < LINE)
        sprintf(line + n, "  # %s", comment);
}

static int is_of_kind(const char *line, const char *kind)
{
    const size_t n = strlen(kind);

    line += strspn(line, " \t");
    return !strncmp(line, kind, n) && strchr(" \t", line[n]) && line[n];
}

int user_line_has(const char *line, const char *key, size_t *used)
{
    const char *const start = line;
    char a[WORD], b[WORD];
    int a_used, b_used;

    for (; sscanf(key, " %255s%n", b, &b_used) == 1; line += a_used, key += b_used)
        if (line[strspn(line, " \t\r")] == '\n' || sscanf(line, " %255s%n", a, &a_used) != 1 || strcmp(a, b))
            return 0;
    *used = (size_t)(line - start);
    return 1;
}

/* The old text with the lines in it; malloc'd, or NULL. */
static char *text_with(const char *old, const struct user_lines *lines)
{
    const char *const head = lines->head ? lines->head : "";
    char *const text = malloc(strlen(old) + strlen(head) + strlen(lines->text) + 2);
    size_t n = 0;
    int there = 0;

    if (!text)
        return NULL;
    while (*old) {
        const size_t length = strcspn(old, "\n");
        size_t used;

        if (!there && is_of_kind(old, lines->kind)) {
            n += (size_t)sprintf(text + n, "%s", lines->text);
            there = 1;
        }
        if (!user_line_has(old, lines->key, &used))
            n += (size_t)sprintf(text + n, "%.*s\n", (int)length, old);
        old += length + (old[length] == '\n');
    }
    if (!there)
        n += (size_t)sprintf(text + n, "%s%s", head, lines->text);
    text[n] = '\0';
    return text;
}

/* ---- writing ---- */

static int write_all(int fd, const char *text)
{
    for (size_t left = strlen(text); left;) {
        const ssize_t n = write(fd, text, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        left -= (size_t)n;
    }
    return fsync(fd);
}

/* A crash of the machine, too, leaves one or the other. */
static void sync_directory(const char *path)
{
    char copy[TUNE_PATH];
    int fd;

    snprintf(copy, sizeof copy, "%s", path);
    if ((fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return;
    fsync(fd);
    close(fd);
}

static int replace(const char *path, const char *text)
{
    char temporary[TUNE_PATH + 8];
    struct stat st;
    int fd, failed, error;

    snprintf(temporary, sizeof temporary, "%s.new", path);
    unlink(temporary);                        /* of a tuner that was killed: none else has the journal */
    if ((fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
        return -1;
    failed = fchmod(fd, stat(path, &st) ? 0644 : st.st_mode & 0777) || write_all(fd, text);
    failed |= close(fd);
    if (!failed && !rename(temporary, path)) {
        sync_directory(path);
        return 0;
    }
    error = errno;
    unlink(temporary);
    errno = error;
    return -1;
}

int user_file_put_lines(const char *path, const struct user_lines *lines, char *why, size_t why_size)
{
    const int is_there = access(path, F_OK) == 0;
    char *const old = is_there ? vn__tune_read(path) : strdup("");
    char *const text = old ? text_with(old, lines) : NULL;
    int failed = -1;

    if (!text)
        snprintf(why, why_size, "%.400s cannot be read", path);
    else if (!vn__tune_check(why, why_size, path, text) && (failed = replace(path, text)))
        snprintf(why, why_size, "%.400s cannot be written: %s", path, strerror(errno));
    free(text);
    free(old);
    return failed;
}

int user_file_put(const char *path, const struct row_line *rows, char *why, size_t why_size)
{
    char key[LINE], head[LINE], line[LINE], text[VN_ROWS * (LINE + 1)];
    const char *const costs = rows->variant->costs;
    size_t n = 0;

    write_key(key, sizeof key, rows);
    snprintf(head, sizeof head, "columns %s %s%s%s\n", rows->variant->name, rows->variant->params,
             costs ? " | " : "", costs ? costs : "");
    for (int i = 0; i < rows->count && i < VN_ROWS; i++) {
        write_row(line, key, rows, i);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", line);
    }

    const struct user_lines lines = { key, rows->variant->name, head, text };

    return user_file_put_lines(path, &lines, why, why_size);
}
