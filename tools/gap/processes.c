/* SPDX-License-Identifier: Apache-2.0
 *
 * processes.c - several processes that measure the rows of a session.
 *
 * They prepare a row side by side and time it one after the other.  A row whose toolchain gap they do not
 * agree on is measured again, by other processes.
 */
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "core.h"
#include "session.h"

enum { RENEWALS = 4 };                   /* how often other processes measure a row again */

/* The half width that the interval of a toolchain gap shall have, where launches do not decide the time. */
static const double PRECISION = 0.02, SHORT = 50e-6;

/* ---- in each of them ---- */

/* Of the first process, what the table and the report need of it. */
static json_t *opened(struct session *s, int status, int is_first)
{
    json_t *const names = json_array(), *const out = json_pack("{s:i}", "status", status);

    for (int i = 0; i < s->gap.libraries; i++)
        if (!*s->gap.library[i].why)
            json_array_append_new(names, json_string(s->gap.library[i].name));
    json_object_set_new(out, "libraries", names);
    json_object_set_new(out, "is_cpu", json_boolean(s->gap.side[FIRST].info.is_cpu));
    if (is_first && !status)
        json_object_set_new(out, "report", session_frame(s, 0));
    return out;
}

static json_t *prepared(struct session *s, const json_t *question)
{
    session_row(s, (int)json_number(question, "prepare"), json_text(question, "variant"),
                json_text(question, "of"));
    if (s->row)
        gap_row_prepare(s->row);
    return json_pack("{s:b}", "prepared", 1);
}

static json_t *measured(struct session *s)
{
    char fma[32];
    int failed = 0;
    json_t *const row = session_measure(s, fma, &failed);

    return json_pack("{s:o, s:s, s:b, s:b}", "row", row, "fma", fma, "failed", failed, "lost", s->gap.lost);
}

static json_t *answer_to(struct session *s, const json_t *question)
{
    if (json_object_get(question, "frame"))
        return session_frame(s, json_is_true(json_object_get(question, "frame")));
    return json_object_get(question, "prepare") ? prepared(s, question) : measured(s);
}

/* One of the processes. */
static int serve(void *context, int which, FILE *from, FILE *to)
{
    struct session *const s = context;
    json_t *question = worker_asked(from);
    int status = EXIT_FAILURE;

    s->gap.libraries = 0;                /* the table's, of the process that was forked */
    if (question) {
        json_decref(question);
        status = session_open(s, which == 0);
        worker_answer(to, opened(s, status, which == 0));
    }
    while (!status && (question = worker_asked(from))) {
        worker_answer(to, answer_to(s, question));
        json_decref(question);
    }
    session_close(s);
    return status;
}

/* ---- opening ---- */

static void complain_of_end(const struct session *s, int which)
{
    complain("process %d of %d has ended", which + 1, s->workers.count);
}

/* 0, or an exit status. */
static int status_of(const struct session *s, int which, const json_t *answer)
{
    if (answer)
        return (int)json_number(answer, "status");
    complain_of_end(s, which);
    return EXIT_FAILURE;
}

/* From `from` on, side by side; the very first before the others, since it measures roofs. */
static int open_from(struct session *s, int from)
{
    int status = 0;

    for (int i = from; i < s->workers.count && !status; i++) {
        worker_tell(&s->workers, i, json_pack("{s:b}", "open", 1));
        if (!i)
            status = status_of(s, i, s->first = worker_hear(&s->workers, i));
    }
    for (int i = from ? from : 1; i < s->workers.count && !status; i++) {
        json_t *const answer = worker_hear(&s->workers, i);

        status = status_of(s, i, answer);
        json_decref(answer);
    }
    return status;
}

int processes_open(struct session *s)
{
    json_t *name;
    size_t i;
    int status;

    s->gap.processes = (int)s->request->processes;
    s->gap.budget   /= s->gap.processes;
    if (workers_open(&s->workers, s->gap.processes, serve, s)) {
        complain("--processes: no process can be started");
        return EXIT_FAILURE;
    }
    if ((status = open_from(s, 0)))
        return status;
    json_array_foreach(json_object_get(s->first, "libraries"), i, name)
        s->gap.library[s->gap.libraries++].name = json_string_value(name);
    s->gap.side[FIRST].info.is_cpu = json_is_true(json_object_get(s->first, "is_cpu"));
    return 0;
}

void processes_close(struct session *s)
{
    workers_close(&s->workers);
    json_decref(s->first);
}

/* That of the start, where the first process has ended since. */
json_t *processes_frame(struct session *s, int once)
{
    json_t *const frame = worker_ask(&s->workers, 0, json_pack("{s:b}", "frame", once));

    if (frame)
        return frame;
    complain("the first process has ended: the report lacks machine code, and what is measured once");
    return json_incref(json_object_get(s->first, "report"));
}

/* ---- a row ---- */

/* From `from` on, side by side; the very first before the others, which find in the cache what it builds. */
static void prepare_from(struct session *s, int from, int at, const char *variant, const char *of)
{
    for (int i = from; i < s->workers.count; i++) {
        worker_tell(&s->workers, i,
                    json_pack("{s:i, s:s, s:s}", "prepare", at, "variant", variant, "of", of));
        if (!i)
            json_decref(worker_hear(&s->workers, i));
    }
    for (int i = from ? from : 1; i < s->workers.count; i++)
        json_decref(worker_hear(&s->workers, i));
}

/* preparing, measuring: seconds by the clock on the wall. */
struct answers { json_t *it[SAMPLES], *row[SAMPLES]; int count, failed; double preparing, measuring; };

/* ... one after the other. */
static void measure_from(struct session *s, struct answers *a, int from)
{
    for (int i = from; i < s->workers.count && !s->gap.lost && (!a->count || !interrupted); i++) {
        json_t *const it = worker_ask(&s->workers, i, json_pack("{s:b}", "measure", 1));

        if (!it) {
            complain_of_end(s, i);
            s->gap.lost = 1;
            break;
        }
        a->failed   |= json_is_true(json_object_get(it, "failed"));
        s->gap.lost |= json_is_true(json_object_get(it, "lost"));
        a->row[a->count]  = json_object_get(it, "row");
        a->it[a->count++] = it;
    }
}

static int is_precise(const json_t *row)
{
    const json_t *const gap = gap_named(row, "toolchain"),
                 *const ends = json_object_get(gap, "ratio_interval");
    const double ratio = json_number(gap, "ratio");

    return !(ratio > 0) || json_number(gap, "first_s") < SHORT
        || (json_number_value(json_array_get(ends, 0)) >= ratio * (1 - PRECISION)
            && json_number_value(json_array_get(ends, 1)) <= ratio * (1 + PRECISION));
}

/* What `from` and those after it answer. */
static void ask_from(struct session *s, struct answers *a, int from, int at, const char *variant,
                     const char *of)
{
    const double start = vn__seconds();
    double prepared;

    prepare_from(s, from, at, variant, of);
    prepared = vn__seconds();
    measure_from(s, a, from);
    a->preparing += prepared - start;
    a->measuring += vn__seconds() - prepared;
}

/* Other processes in the place of all but the first, which keeps the roofs. */
static int renew(struct session *s)
{
    for (int i = 1; i < s->workers.count; i++)
        if (worker_renew(&s->workers, i, serve, s))
            return -1;
    return open_from(s, 1) ? -1 : 0;
}

json_t *processes_row(struct session *s, int at, const char *variant, const char *of, char fma[32],
                      int *failed)
{
    struct answers a = { .count = 0 };
    json_t *joined;

    ask_from(s, &a, 0, at, variant, of);
    snprintf(fma, 32, "%s", a.count ? json_text(a.it[0], "fma") : "");
    joined = a.count ? rows_join(a.row, a.count) : NULL;
    for (int i = 0; i < RENEWALS && joined && s->workers.count >= PROCESSES_USUAL && !a.failed && !s->gap.lost
                    && !interrupted && a.count + s->workers.count <= SAMPLES && !is_precise(joined); i++) {
        if (renew(s)) {
            s->gap.lost = 1;
            break;
        }
        ask_from(s, &a, 1, at, variant, of);
        json_decref(joined);
        joined = rows_join(a.row, a.count);
    }
    if (joined)
        json_object_set_new(joined, "spent_s", json_pack("{s:f, s:f}", "preparing", a.preparing, "measuring",
                                                         a.measuring));
    *failed |= a.failed;
    for (int i = 0; i < a.count; i++)
        json_decref(a.it[i]);
    return joined;
}
