/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c - opens a pair and the libraries beside it, and measures rows on them.
 */
#include <stdlib.h>
#include <string.h>
#include "measure/clocks.h"
#include "commands.h"
#include "core.h"
#include "session.h"

/* ---- libraries ---- */

/* Some operation has it as a variant. */
static int is_variant(const char *name)
{
    for (int op = 0; vn__operations[op]; op++)
        for (const struct vn_variant *v = vn__operations[op]->variants; v->name; v++)
            if (!v->texts && !strcmp(v->name, name))
                return 1;
    return 0;
}

static void open_library(struct gap *g, const char *name)
{
    const vn_device_info *const d = &g->side[FIRST].info;
    const struct peer_context context = { d->is_cpu, d->platform, d->name, d->uuid, d->pci };
    struct library *const l = &g->library[g->libraries++];
    const struct peer *const p = peer_named(name);

    *l = (struct library){ .name = p ? p->name : name };
    if (p && !p->open(&context, l->why, SENTENCE)) {
        l->peer = p;
        g->peers++;
    }
    if (is_variant(name))
        *l->why = '\0';
    else if (!p)
        snprintf(l->why, SENTENCE, "this vernier was built without it");
}

/* 0, or an exit status. */
static int open_libraries(struct gap *g, char *names)
{
    for (char *name; (name = strsep(&names, ","));) {
        if (!*name || !strcmp(name, "none"))
            continue;
        if (g->libraries == LIBRARIES || (!is_variant(name) && !peer_named(name) && strcmp(name, "cublas")
                                          && strcmp(name, "cudnn") && strcmp(name, "clblast"))) {
            complain("--compare: there is no library \"%s\": cublas, cudnn, clblast, onednn, "
                     "onednn-plain, openblas or torch", name);
            return EXIT_USAGE;
        }
        open_library(g, name);
    }
    return 0;
}

static void close_libraries(struct gap *g)
{
    for (int i = 0; i < g->libraries; i++)
        if (g->library[i].peer)
            g->library[i].peer->close();
}

/* ---- opening ---- */

static int measure_rooflines(struct session *s)
{
    for (int i = 0; i < s->w.count; i++)
        for (int j = 0; j < 2; j++) {
            struct side *const side = &s->gap.side[j];
            const vn_type type = s->w.it[i].problem.type;

            if ((type == VN_F64 && !side->info.has_f64)
                || !roofline_measure(&side->roofline, side->queue, type, s->w.it[i].problem.math))
                continue;
            complain("the roofline of %s cannot be measured: %s", side->info.spec, vn_last_error());
            return EXIT_FAILURE;
        }
    return 0;
}

static void print_pair(const struct session *s)
{
    const struct gap *const g = &s->gap;

    fprintf(s->to, "vernier %s, %s\n", vn_version(), g->side[FIRST].info.name);
    for (int i = 0; i < 2; i++)
        fprintf(s->to, "device %d  %s (%s, %s)\n", i + 1, g->side[i].info.spec, g->side[i].info.platform,
                g->side[i].info.driver);
    fprintf(s->to, "kernel time by %s\n",
            g->side[FIRST].by_events ? "the devices' events" : "the clock on the wall");
    if (s->request->processes > 1)
        fprintf(s->to, "each row in %lld processes or more\n", (long long)s->request->processes);
    for (int i = 0; i < g->libraries; i++)
        if (*g->library[i].why)
            fprintf(s->to, "%s is left out: %s\n", g->library[i].name, g->library[i].why);
    fputc('\n', s->to);
}

int session_open(struct session *s, int is_first)
{
    struct gap *const g = &s->gap;
    struct peer_threads before;
    int status;

    peer_threads_note(&before);
    status = pair_open(g, s->request->gpu, s->request->pair);
    g->pinned = !status && g->side[FIRST].info.is_cpu && peers_are_named(s->request->common.compare);
    if (g->pinned)
        peer_threads_tie(&before);
    if (!status)
        status = open_libraries(g, s->compare);
    if (status)
        return status;
    clocks_open(&g->side[SECOND].info);
    g->repeats = !is_first;
    g->kernels = json_object();
    if (is_first && !(status = measure_rooflines(s)))
        print_pair(s);
    fflush(s->to);
    return status;
}

void session_close(struct session *s)
{
    gap_row_close(s->row);
    clocks_close();
    json_decref(s->gap.kernels);
    close_libraries(&s->gap);
    pair_close(&s->gap);
}

/* ---- a row ---- */

static struct workload by_variant(const struct workload *w, const char *variant)
{
    struct workload it = *w;

    if (*variant) {
        snprintf(it.problem.variant, sizeof it.problem.variant, "%s", variant);
        problem_format(it.text, &it.problem);
    }
    return it;
}

void session_row(struct session *s, int at, const char *variant, const char *of)
{
    gap_row_close(s->row);
    s->row_of = by_variant(&s->w.it[at], variant);
    snprintf(s->row_first, sizeof s->row_first, "%s", of);
    s->row = gap_row_open(&s->gap, &s->row_of, s->row_first);
}

json_t *session_measure(struct session *s, char fma[32], int *failed)
{
    json_t *row;

    *fma = '\0';
    if (!s->row) {
        *failed = 1;
        return json_pack("{s:s, s:b, s:s}", "name", s->row_of.text, "error_occurred", 1,
                         "error_message", "host memory ran out");
    }
    row = gap_row_measure(s->row, fma, failed);
    gap_row_close(s->row);
    s->row = NULL;
    return row;
}

/* ---- the report ---- */

json_t *session_frame(struct session *s, int once)
{
    struct gap *const g = &s->gap;
    struct bench b = { .info = g->side[FIRST].info, .pinned = g->pinned };
    json_t *const own = json_pack("{s:o, s:O}", "pair", pair_json(g), "kernels", g->kernels);

    for (int i = 0; i < g->libraries; i++)
        if (g->library[i].peer && b.peers < BENCH_PEERS)
            b.peer[b.peers++] = g->library[i].peer;
    if (once)
        json_object_update_new(own, gap_once(g));
    return json_pack("{s:i, s:o, s:o, s:o}", "schema", SCHEMA, "context", json_context(&b, s->program),
                     "benchmarks", json_array(), "vernier", own);
}
