/* SPDX-License-Identifier: Apache-2.0
 *
 * journal.c - what a tuner has measured, line by line in a file that is only added to.
 *
 *     KEY begun - PROBLEM # row
 *     KEY RATIO SECONDS PROBLEM # row
 *     KEY illegal - PROBLEM # row: why
 *
 * A line is written at once and is on disk before the next row is begun: a tuner that is killed
 * loses the row it was at, and finds the others again.  Lines that make no sense are passed
 * over.  A row at which a tuner died twice is illegal: it may be what killed it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tune.h"

enum { LINE = 1024, DEATHS = 2 };

/* ---- in memory ---- */

static struct measurement *find(const struct journal *j, uint64_t key, const char *problem)
{
    for (int i = 0; i < j->count; i++)
        if (j->it[i].key == key && !strcmp(j->it[i].problem, problem))
            return &j->it[i];
    return NULL;
}

const struct measurement *journal_find(const struct journal *j, uint64_t key, const char *problem)
{
    const struct measurement *const m = find(j, key, problem);

    return m && m->ratio > 0 ? m : NULL;
}

/* The one of that key and problem, made if need be; NULL: host memory ran out. */
static struct measurement *place_for(struct journal *j, uint64_t key, const char *problem)
{
    struct measurement *const known = find(j, key, problem);

    if (known)
        return known;
    if (j->count == j->room) {
        const int room = j->room ? 2 * j->room : 256;
        struct measurement *const more = realloc(j->it, (size_t)room * sizeof *more);

        if (!more) {
            errno = ENOMEM;
            return NULL;
        }
        j->it   = more;
        j->room = room;
    }
    j->it[j->count] = (struct measurement){ .key = key };
    snprintf(j->it[j->count].problem, PROBLEM_TEXT, "%s", problem);
    return &j->it[j->count++];
}

static int take_line(struct journal *j, const char *line)
{
    char what[32], seconds[32], problem[PROBLEM_TEXT];
    struct measurement *m;
    uint64_t key;
    char *end;

    if (sscanf(line, "%16" SCNx64 " %31s %31s %255s", &key, what, seconds, problem) != 4)
        return 0;

    const double ratio = strcmp(what, "illegal") ? strtod(what, &end) : INFINITY;
    const int begun = !strcmp(what, "begun");

    if (!begun && !(ratio > 0))
        return 0;
    if (!(m = place_for(j, key, problem)))
        return -1;
    m->begun += begun;
    if (!begun) {
        m->ratio   = ratio;
        m->seconds = strtod(seconds, NULL);
    } else if (m->begun >= DEATHS && !(m->ratio > 0))
        m->ratio = INFINITY;
    return 0;
}

/* ---- on disk ---- */

static int take_all(struct journal *j)
{
    const int copy = dup(j->fd);
    FILE *const f = copy < 0 ? NULL : fdopen(copy, "r");
    char line[LINE];
    int failed = !f;

    while (!failed && fgets(line, sizeof line, f))
        failed = take_line(j, line);
    if (f)
        fclose(f);
    return failed ? -1 : 0;
}

static int put_line(const struct journal *j, const char *line)
{
    const size_t bytes = strlen(line);

    errno = EIO;                              /* of a write that was cut short */
    return write(j->fd, line, bytes) == (ssize_t)bytes && fdatasync(j->fd) == 0 ? 0 : -1;
}

static void make_directories(const char *path)
{
    char part[TUNE_PATH];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(part, 0777);
    }
}

int journal_open(struct journal *out, const char *path, char *why, size_t why_size)
{
    static const char head[] = "# What `vernier tune` has measured; without this file it begins anew.\n";
    char last = '\n';
    off_t bytes;

    *out = (struct journal){ .fd = -1 };
    snprintf(out->path, sizeof out->path, "%s", path);
    make_directories(path);
    if ((out->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0) {
        snprintf(why, why_size, "%.400s cannot be written: %s", path, strerror(errno));
        return -1;
    }
    if (flock(out->fd, LOCK_EX | LOCK_NB)) {
        snprintf(why, why_size, "%.400s is in use: another `vernier tune` is at work", path);
        journal_close(out);
        return -1;
    }
    bytes = lseek(out->fd, 0, SEEK_END);
    if (bytes > 0 && pread(out->fd, &last, 1, bytes - 1) != 1)
        last = '\n';
    if (lseek(out->fd, 0, SEEK_SET) || take_all(out) || (bytes == 0 && put_line(out, head)) ||
        (last != '\n' && put_line(out, "\n"))) {
        snprintf(why, why_size, "%.400s cannot be read and written: %s", path, strerror(errno));
        journal_close(out);
        return -1;
    }
    return 0;
}

void journal_close(struct journal *j)
{
    if (j->fd >= 0)
        close(j->fd);
    free(j->it);
    *j = (struct journal){ .fd = -1 };
}

int journal_begin(struct journal *j, uint64_t key, const char *problem)
{
    struct measurement *const m = place_for(j, key, problem);
    char line[LINE];

    if (!m)
        return -1;
    m->begun++;
    snprintf(line, sizeof line, "%016" PRIx64 " begun - %s\n", key, problem);
    return put_line(j, line);
}

int journal_end(struct journal *j, const struct measurement *m, const char *note)
{
    struct measurement *const to = place_for(j, m->key, m->problem);
    char what[48], line[LINE];
    int n;

    if (!to)
        return -1;
    to->ratio   = m->ratio;
    to->seconds = m->seconds;
    snprintf(what, sizeof what, isinf(m->ratio) ? "illegal -" : "%.5f %.6g", m->ratio, m->seconds);
    n = snprintf(line, sizeof line - 1, "%016" PRIx64 " %s %s # %.400s", m->key, what, m->problem, note);
    for (int i = 0; i < n; i++)               /* a driver's sentence may have several lines */
        if (line[i] == '\n')
            line[i] = ' ';
    strcat(line, "\n");
    return put_line(j, line);
}
