/* SPDX-License-Identifier: Apache-2.0
 *
 * errors.c - keeps back what drivers print, and cleans what a terminal is shown.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "errors.h"

static FILE *ours;                    /* NULL: nothing is kept back */
static int   kept = -1;               /* a file without a name */
static pid_t watcher;
static int   alive = -1;              /* what the watcher reads from: its end is ours */

FILE *errors_stream(void)
{
    return ours ? ours : stderr;
}

static void write_all(int to)
{
    char some[4096];
    off_t at = 0;
    ssize_t n;

    while ((n = pread(kept, some, sizeof some, at)) > 0 && write(to, some, (size_t)n) == n)
        at += n;
}

/* A process that writes all of it where this one dies: drivers have handlers of their own for what kills,
 * so that none of ours would surely be called.                                                         */
static void watch(int from, int to)
{
    char word;

    for (int fd = 0; fd < 3; fd++)
        close(fd);
    close(alive);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (read(from, &word, 1) != 1)
        write_all(to);
    _exit(0);
}

static void leave(void)
{
    errors_tell(1);
}

void errors_keep(void)
{
    FILE *const file = getenv("VERNIER_LOG") ? NULL : tmpfile();
    int copy, ends[2];

    if (!file)
        return;
    copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    kept = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    fclose(file);
    if (copy < 0 || kept < 0 || pipe(ends))
        return;
    fflush(NULL);
    alive = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
    close(ends[1]);
    if (alive < 0 || !(ours = fdopen(copy, "w")))
        return;
    setvbuf(ours, NULL, _IONBF, 0);
    fcntl(kept, F_SETFL, O_APPEND);
    if ((watcher = fork()) == 0)
        watch(ends[0], copy);
    close(ends[0]);
    dup2(kept, STDERR_FILENO);
    atexit(leave);
}

/* "1 warning generated." */
static off_t count_lines(char *first, int size)
{
    FILE *const file = fdopen(dup(kept), "r");
    off_t lines = 0;
    int n = 0;

    if (file)
        rewind(file);
    for (int c; file && (c = getc(file)) != EOF; lines += c == '\n')
        if (!lines && c != '\n' && n < size - 1)
            first[n++] = (char)c;
    if (file)
        fclose(file);
    first[n] = '\0';
    return lines + (n && !lines);
}

void errors_tell(int failed)
{
    char first[160];
    off_t lines;

    if (!ours)
        return;
    fflush(stderr);
    if (failed)
        write_all(fileno(ours));
    else if ((lines = count_lines(first, sizeof first)) > 0)
        fprintf(ours, "vernier: drivers or their compilers printed %lld line%s, the first \"%s\"; "
                      "VERNIER_LOG=build shows all\n",
                (long long)lines, lines == 1 ? "" : "s", errors_clean(first));
    dup2(fileno(ours), STDERR_FILENO);
    if (write(alive, "", 1) == 1 && watcher > 0)
        waitpid(watcher, NULL, 0);
    close(alive);
    close(kept);
    ours = NULL;                      /* its descriptor stays open: a driver's thread may print still */
}

char *errors_clean(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        const int is_c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;       /* in UTF-8 */

        if ((*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f || is_c1)
            *c = '?';
        if (is_c1)
            c[1] = '?';
    }
    return text;
}
