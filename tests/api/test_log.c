/* SPDX-License-Identifier: Apache-2.0
 *
 * test_log.c - what is printed, which is nothing unless asked for, and the trace: good JSON
 * however the process ends, with each launch in it, one after the other.
 */
#define _GNU_SOURCE
#include "core.h"
#include "../disk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAUNCHES = 3, NO_DEVICE = 77, PATIENCE = 300 };  /* PATIENCE: seconds */

static int  cases, failures;
static char base[PATH], trace[PATH + 16], output[PATH + 16];
static char text[1 << 20];

static void check(int good, const char *scene, const char *what)
{
    cases++;
    if (good)
        return;
    failures++;
    printf("FAIL log: %s: %s\n", scene, what);
}

/* ---- JSON ------------------------------------------------------------------------ */

static int value(const char **p);

static void space(const char **p)
{
    *p += strspn(*p, " \t\r\n");
}

static int string(const char **p)
{
    if (*(*p)++ != '"')
        return 0;
    while (**p && **p != '"')
        *p += (**p == '\\') + 1;
    return *(*p)++ == '"';
}

static int number(const char **p)
{
    char *end;

    if (**p != '-' && (**p < '0' || **p > '9'))
        return 0;
    strtod(*p, &end);
    *p = end;
    return 1;
}

/* Items between brackets; the trace's own may be missing at its end. */
static int list(const char **p, char close, int named, int may_end)
{
    for (++*p, space(p); **p != close; space(p)) {
        if (named && (!string(p) || (space(p), *(*p)++ != ':')))
            return 0;
        if (!value(p))
            return 0;
        space(p);
        if (**p == ',')
            ++*p;
        else if (**p != close)
            return may_end && **p == '\0';
    }
    ++*p;
    return 1;
}

static int value(const char **p)
{
    space(p);
    return **p == '{' ? list(p, '}', 1, 0) : **p == '[' ? list(p, ']', 0, 0)
         : **p == '"' ? string(p) : number(p);
}

/* ---- one process ------------------------------------------------------------------- */

/* Some work, and then an end as the scene says. */
static int work(const char *end)
{
    vn_buffer *b;
    vn_device *d;
    vn_queue *q;

    if (vn_device_open(&d, NULL))
        return NO_DEVICE;
    if (vn_queue_open(&q, d) || vn_buffer_open(&b, d, 3 * 64 * 64 * sizeof(float)))
        return 1;
    vn_tensor a = vn_matrix(b, VN_F32, 64, 64), c = a;

    c.start = 2 * 64 * 64;
    for (int i = 0; i < LAUNCHES; i++)
        if (vn_gemm(q, 1, a, a, 0, c, NULL) || vn_queue_finish(q))
            return 1;
    if (strcmp(end, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(end, "_exit") == 0)
        _exit(0);
    if (strcmp(end, "fork") == 0) {       /* the child must not write to its parent's trace */
        const pid_t child = fork();

        if (child == 0)
            exit(0);
        waitpid(child, NULL, 0);
    }
    if (strcmp(end, "close") == 0) {
        vn_buffer_close(b);
        vn_queue_close(q);
        vn_device_close(d);
    }
    return 0;
}

static int start(const char *end, const char *log, const char *to)
{
    int status;
    pid_t child;

    wipe(trace);
    wipe(output);
    fflush(stdout);
    if ((child = fork()) == 0) {
        if (log)
            setenv("VERNIER_LOG", log, 1);
        if (to)
            setenv("VERNIER_TRACE", to, 1);
        alarm(PATIENCE);                  /* a hang ends as a signal */
        if (freopen(output, "w", stdout) && dup2(1, 2) == 2)
            execl("/proc/self/exe", "test_log", end, (char *)NULL);
        _exit(126);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void read_text(const char *path)
{
    text[get(path, text, sizeof text - 1)] = '\0';
}

/* ---- scenes -------------------------------------------------------------------------- */

static double field(const char *event, const char *name)
{
    const char *at = strstr(event, name);

    return at ? strtod(at + strlen(name), NULL) : -1;
}

static void check_trace(const char *scene, int closed)
{
    const char *p = text, *event;
    double end = 0;
    int launches = 0, ordered = 1;

    read_text(trace);
    check(*p == '[' && list(&p, ']', 0, !closed) && (space(&p), *p == '\0'), scene,
          "the trace is no good JSON");
    for (event = text; (event = strstr(event, "\"cat\":\"launch\"")); event++) {
        const double begins = field(event, "\"ts\":"), lasts = field(event, "\"dur\":");

        launches++;
        ordered &= lasts >= 0 && begins >= end - 0.01;    /* microseconds, rounded */
        end = begins + lasts;
    }
    check(launches >= LAUNCHES, scene, "a launch is missing in the trace");
    check(ordered, scene, "launches of one queue overlap in the trace");
    check(strstr(text, "\"cat\":\"build\"") || strstr(text, "\"cat\":\"cache\""), scene,
          "no build in the trace");
}

static void traces(void)
{
    static const struct { const char *end; int status, closed; } ends[] = {
        { "close", 0, 1 }, { "exit", 0, 1 }, { "fork", 0, 1 }, { "_exit", 0, 0 },
        { "kill", 128 + SIGKILL, 0 },
    };

    char pipe[PATH + 16];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        check(start(ends[i].end, NULL, trace) == ends[i].status, ends[i].end, "the process did not end so");
        check_trace(ends[i].end, ends[i].closed);
        read_text(output);
        check(text[0] == '\0', ends[i].end, "a trace prints something");
    }
    check(start("close", NULL, "/nowhere/trace.json") == 0, "/nowhere/trace.json",
          "a trace that cannot be written");
    read_text(output);
    check(text[0] == '\0', "/nowhere/trace.json", "something is printed");
    snprintf(pipe, sizeof pipe, "%s/pipe", base);
    check(mkfifo(pipe, 0600) == 0 && start("close", NULL, pipe) == 0, "a pipe that nobody reads", "it fails");
}

static void lines(void)
{
    static const char *const topics[] = { "choose", "build", "launch", "cache" };
    enum { TOPICS = sizeof topics / sizeof topics[0] };
    char line[64];

    check(start("close", NULL, NULL) == 0, "no log", "it fails");
    read_text(output);
    check(text[0] == '\0', "no log", "something is printed");

    setenv("VERNIER_CACHE", "0", 1);      /* so that there is something to build */
    for (int i = 0; i <= TOPICS; i++) {
        const char *log = i < TOPICS ? topics[i] : "all";

        check(start("close", log, NULL) == 0, log, "it fails");
        read_text(output);
        for (int k = 0; k < TOPICS; k++) {
            snprintf(line, sizeof line, "vernier %s: ", topics[k]);
            check(!strstr(text, line) == (i < TOPICS && i != k), log, topics[k]);
        }
    }
    start("close", "launch,nonsense", NULL);
    read_text(output);
    check(strstr(text, "nonsense") && strstr(text, "vernier launch: "), "launch,nonsense",
          "one is named, one obeyed");
    unsetenv("VERNIER_CACHE");

    setenv("VERNIER_CACHE_DIR", "here", 1);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", base, 1);
    start("close", "cache", NULL);
    read_text(output);
    check(strstr(text, "VERNIER_CACHE_DIR is \"here\", which is ignored: it needs an absolute path") != NULL,
          "a relative VERNIER_CACHE_DIR", "it is ignored in silence");
}

int main(int count, char **argument)
{
    if (count > 1)
        return work(argument[1]);
    unsetenv("VERNIER_LOG");
    unsetenv("VERNIER_TRACE");
    make_base(base);
    snprintf(trace, sizeof trace, "%s/trace.json", base);
    snprintf(output, sizeof output, "%s/output", base);
    if (start("close", NULL, NULL) == NO_DEVICE) {
        wipe(base);
        return NO_DEVICE;
    }
    traces();
    lines();
    wipe(base);
    printf("COUNT log %d\n", cases);
    return failures != 0;
}
