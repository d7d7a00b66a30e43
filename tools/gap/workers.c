/* SPDX-License-Identifier: Apache-2.0
 *
 * workers.c - forked processes, and questions and answers in JSON.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gap.h"
#include "report/report.h"
#include "workers.h"

static void close_ends(struct worker *w)
{
    if (w->to)
        fclose(w->to);
    if (w->from)
        fclose(w->from);
    w->to = w->from = NULL;
}

/* In the child.  Its process group is its own: the parent passes interrupts on to the child it waits for. */
static void run(struct workers *w, int which, const int question[2], const int answer[2], service *serve,
                void *context)
{
    FILE *const from = fdopen(question[0], "r"), *const to = fdopen(answer[1], "w");

    for (int i = 0; i < w->count; i++)
        close_ends(&w->it[i]);
    close(question[1]);
    close(answer[0]);
    setpgid(0, 0);
    signal(SIGPIPE, SIG_IGN);
    exit(from && to ? serve(context, which, from, to) : EXIT_FAILURE);
}

static int start(struct workers *w, int which, service *serve, void *context)
{
    struct worker *const it = &w->it[which];
    int question[2], answer[2];

    if (pipe(question))
        return -1;
    if (pipe(answer)) {
        close(question[0]);
        close(question[1]);
        return -1;
    }
    fflush(NULL);
    if ((it->pid = fork()) == 0)
        run(w, which, question, answer, serve, context);
    close(question[0]);
    close(answer[1]);
    it->to   = fdopen(question[1], "w");
    it->from = fdopen(answer[0], "r");
    it->told = 0;
    return it->pid > 0 && it->to && it->from ? 0 : -1;
}

int workers_open(struct workers *w, int count, service *serve, void *context)
{
    *w = (struct workers){ .count = 0 };
    signal(SIGPIPE, SIG_IGN);
    for (; w->count < count; w->count++)
        if (start(w, w->count, serve, context)) {
            close_ends(&w->it[w->count]);
            workers_close(w);
            return -1;
        }
    return 0;
}

static void end(struct worker *w)
{
    close_ends(w);
    while (w->pid > 0 && waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
}

int worker_renew(struct workers *w, int which, service *serve, void *context)
{
    end(&w->it[which]);
    return start(w, which, serve, context);
}

void workers_close(struct workers *w)
{
    for (int i = 0; i < w->count; i++)
        close_ends(&w->it[i]);
    for (int i = 0; i < w->count; i++)
        end(&w->it[i]);
    w->count = 0;
}

/* Until there is an answer, or none to come.  Once this process is interrupted, so is the other one, and not
 * twice, which would end it.                                                                              */
static void await(struct worker *w)
{
    enum { LOOK_MS = 100 };
    struct pollfd end = { .fd = fileno(w->from), .events = POLLIN };

    for (int ready = 0; !ready;) {
        ready = poll(&end, 1, LOOK_MS);
        ready = ready < 0 && errno == EINTR ? 0 : ready;
        if (interrupted && !w->told++)
            kill(w->pid, SIGINT);
    }
}

void worker_tell(struct workers *w, int which, json_t *question)
{
    worker_answer(w->it[which].to, question);
}

json_t *worker_hear(struct workers *w, int which)
{
    struct worker *const it = &w->it[which];
    json_t *answer = NULL;
    char *line = NULL;
    size_t room = 0;

    await(it);
    if (getline(&line, &room, it->from) > 0)
        answer = json_loads(line, 0, NULL);
    free(line);
    return answer;
}

json_t *worker_ask(struct workers *w, int which, json_t *question)
{
    worker_tell(w, which, question);
    return worker_hear(w, which);
}

json_t *worker_asked(FILE *from)
{
    char line[4096];

    return fgets(line, sizeof line, from) ? json_loads(line, 0, NULL) : NULL;
}

void worker_answer(FILE *to, json_t *answer)
{
    json_dumpf(answer, to, JSON_COMPACT);
    json_decref(answer);
    fputc('\n', to);
    fflush(to);
}

/* ---- one row of several ---- */

/* The median of one figure of each, and its interval under two other names, where those are not NULL. */
static void join_figure(json_t *into, json_t *const *from, int count, const char *name, const char *interval,
                        const char *coverage)
{
    double v[SAMPLES];
    int n = 0;

    for (int i = 0; i < count; i++)
        if (json_number(from[i], name) > 0)
            v[n++] = json_number(from[i], name);
    if (!n)
        return;

    const struct summary s = summary_of(v, n);

    json_object_set_new(into, name, json_real(s.median));
    if (interval)
        json_object_set_new(into, interval, json_pack("[f, f]", s.low, s.high));
    if (coverage)
        json_object_set_new(into, coverage, json_real(s.coverage));
}

/* All samples, process by process. */
static void join_samples(json_t *into, json_t *const *from, int count, const char *name)
{
    json_t *const all = json_array();

    for (int i = 0; i < count; i++)
        json_array_extend(all, json_object_get(from[i], name));
    if (json_array_size(all))
        json_object_set(into, name, all);
    json_decref(all);
}

static json_t *size_of(const json_t *of, const char *name)
{
    return json_integer((json_int_t)json_array_size(json_object_get(of, name)));
}

/* Times of one contender. */
static void join_times(json_t *into, json_t *const *from, int count)
{
    json_t *const samples = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(samples, size_of(from[i], "samples_s"));
    join_samples(into, from, count, "samples_s");
    join_samples(into, from, count, "wall_samples_s");
    json_object_set_new(into, "samples", size_of(into, "samples_s"));
    json_object_set_new(into, "samples_of_process", samples);
    join_figure(into, from, count, "median_s", "interval_s", "coverage");
    join_figure(into, from, count, "kernel_time", NULL, NULL);
    join_figure(into, from, count, "wall_time", "wall_interval_s", NULL);
    join_figure(into, from, count, "real_time", NULL, NULL);
    if (count >= SAMPLES_FEW)
        json_object_del(into, "few");
    else
        json_object_set_new(into, "few", json_true());
}

static int is_same_run(const json_t *a, const json_t *b)
{
    static const char *const words[] = { "device", "library", "variant" };
    static const char *const roles[] = { "same", "best" };
    int same = 1;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        same &= !strcmp(json_text(a, words[i]), json_text(b, words[i])) || *json_text(a, "library");
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        same &= json_is_true(json_object_get(a, roles[i])) == json_is_true(json_object_get(b, roles[i]));
    return same && !strcmp(json_text(a, "library"), json_text(b, "library"));
}

static void join_runs(json_t *into, json_t *const *row, int count)
{
    json_t *run, *other, *from[SAMPLES];
    size_t i, j;

    json_array_foreach(json_object_get(into, "runs"), i, run) {
        int n = 0;

        for (int k = 0; k < count; k++)
            json_array_foreach(json_object_get(row[k], "runs"), j, other)
                if (is_same_run(run, other) && json_object_get(other, "samples_s")) {
                    from[n++] = other;
                    break;
                }
        if (n)
            join_times(run, from, n);
    }
}

/* The ratio of each process is one of those that the interval is of.  library: NULL, or that of which. */
static void join_gap(json_t *into, json_t *const *row, int count, const char *name, const char *library)
{
    json_t *from[SAMPLES], *const ratios = json_array();
    int n = 0;

    for (int i = 0; i < count; i++) {
        json_t *const gap = gap_named(row[i], name);
        json_t *const it = library ? json_object_get(gap, library) : gap;

        if (!it)
            continue;
        json_array_append(ratios, json_object_get(it, "ratio"));
        from[n++] = it;
    }
    join_figure(into, from, n, "ratio", "ratio_interval", "ratio_coverage");
    join_figure(into, from, n, "first_s", NULL, NULL);
    join_figure(into, from, n, "second_s", NULL, NULL);
    join_figure(into, from, n, "first_mhz", NULL, NULL);
    join_figure(into, from, n, "second_mhz", NULL, NULL);
    json_object_set_new(into, "ratios", ratios);
}

static void join_gaps(json_t *into, json_t *const *row, int count)
{
    static const char *const scalar[][2] = { { "toolchain", "toolchain_gap" }, { "best", "best_gap" },
                                             { "toolchain_wall", "toolchain_gap_wall" } };
    json_t *gap;
    const char *name;

    for (size_t i = 0; i < sizeof scalar / sizeof *scalar; i++)
        if ((gap = gap_named(into, scalar[i][0]))) {
            join_gap(gap, row, count, scalar[i][0], NULL);
            json_object_set(into, scalar[i][1], json_object_get(gap, "ratio"));
        }
    json_object_foreach(gap_named(into, "library"), name, gap) {
        join_gap(gap, row, count, "library", name);
        json_object_set(json_object_get(into, "library_gap"), name, json_object_get(gap, "ratio"));
    }
    if ((gap = gap_named(into, "toolchain"))) {
        json_object_set_new(into, "parity", json_string(parity_words(json_number(gap, "ratio"))));
        json_object_set_new(into, "same_time", json_pack("[O, O]", json_object_get(gap, "first_s"),
                                                         json_object_get(gap, "second_s")));
    }
}

/* What follows from the row's time. */
static void settle(json_t *into)
{
    const double seconds = json_number(into, "real_time"),
                 second = json_number(gap_named(into, "best"), "second_s");

    json_object_set_new(into, "gflops", json_real(json_number(into, "flops") / seconds * 1e-9));
    json_object_set_new(into, "gbytes_per_second", json_real(json_number(into, "bytes") / seconds * 1e-9));
    json_object_set_new(into, "roofline",
                        json_real(json_number(json_object_get(into, "roof"), "seconds") / seconds));
    if (second > 0 && json_object_get(into, "roof_second"))
        json_object_set_new(into, "roofline_second",
                            json_real(json_number(json_object_get(into, "roof_second"), "seconds") / second));
}

/* A sentence once. */
static void add_failure(json_t *failures, const char *why)
{
    json_t *said;
    size_t i;

    if (!*why)
        return;
    json_array_foreach(failures, i, said)
        if (!strcmp(json_string_value(said), why))
            return;
    json_array_append_new(failures, json_string(why));
}

/* What went wrong in any of them. */
static void join_failures(json_t *into, json_t *const *row, int count)
{
    json_t *const failures = json_array(), *run;
    size_t j;

    for (int i = 0; i < count; i++) {
        add_failure(failures, json_text(row[i], "error_message"));
        json_array_foreach(json_object_get(row[i], "runs"), j, run)
            add_failure(failures, json_text(run, "error_message"));
    }
    if (json_array_size(failures))
        json_object_set(into, "failures", failures);
    json_decref(failures);
}

json_t *rows_join(json_t *const *row, int count)
{
    json_t *const into = json_deep_copy(row[0]), *measured[SAMPLES];
    int n = 0;

    for (int i = 0; i < count; i++) {
        const char *const disturbed = json_text(row[i], "disturbed");

        if (json_number(row[i], "real_time") > 0
            && !strcmp(json_text(row[i], "variant"), json_text(row[0], "variant")))
            measured[n++] = row[i];
        if (*disturbed)
            json_object_set_new(into, "disturbed", json_string(disturbed));
    }
    json_object_set_new(into, "processes", json_integer(n));
    join_failures(into, row, count);
    if (n) {
        join_runs(into, measured, n);
        join_times(into, measured, n);
        join_gaps(into, measured, n);
        settle(into);
    }
    return into;
}
