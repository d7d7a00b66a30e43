/* SPDX-License-Identifier: Apache-2.0
 *
 * pins.c - vernier tune --pin: pins the fastest plan for a problem, where it is not the one that is chosen.
 */
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "model.h"

enum { SAMPLES_EACH = 15 };

static const double FASTER = 1.02;        /* times as fast: what is nearer than that is not worth a pin */

static int is_faster(const struct candidate *best, const struct candidate *chosen)
{
    if (!best->samples || !chosen->samples)
        return best->seconds * FASTER <= chosen->seconds;
    return summary_of(best->sample, best->samples).high * FASTER
        <= summary_of(chosen->sample, chosen->samples).low;
}

static int write_pin(const struct model *m, const char *shape, const struct candidate *best)
{
    const struct vn_problem *const head = m->bench.queue->last->problem;
    const struct vn_choice *const it = best->choice;
    char pattern[PATTERN], key[2 * PATTERN], line[4 * PATTERN], name[64], why[TUNE_PATH];
    int n;

    device_pattern(pattern, m->bench.device);
    snprintf(key, sizeof key, "pin %s %s %s %s %s", head->op, shape, pattern, m->bench.device->backend->name,
             vn_type_name(head->type));
    n = snprintf(line, sizeof line, "%s  %s", key, it->variant->name);
    for (int i = 0; vn__word_at(name, it->variant->params, i) && n < (int)sizeof line; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, " %d", it->p[i]);
    snprintf(line + n, sizeof line - (size_t)n, "\n");
    if (!user_file_put_lines(m->path, &(struct user_lines){ key, "pin", NULL, line }, why, sizeof why))
        return 0;
    complain("%s", why);
    return EXIT_FAILURE;
}

/* "gemm_cpu 12 2 16 480" */
static const char *plan_text(char out[128], const struct candidate *c)
{
    size_t n = (size_t)snprintf(out, 128, "%s", candidate_variant(c));
    char name[64];

    for (int i = 0; c->choice && vn__word_at(name, c->choice->variant->params, i) && n < 128; i++)
        n += (size_t)snprintf(out + n, 128 - n, " %d", c->choice->p[i]);
    return out;
}

static int take(struct model *m, void *state, const struct workload *w, const struct candidates *c)
{
    const struct vn_problem *const head = m->bench.queue->last->problem;
    const struct candidate *const chosen = &c->it[0], *const best = &c->it[c->best];
    const int faster = is_faster(best, chosen);
    char shown[PROBLEM_TEXT], shape[128] = "", plan[128], a[CELL], b[CELL];
    int *const pins = state, status = 0;

    fprintf(m->to, "%s\n  chosen   %s ms  %s\n", problem_shown(shown, w->text),
            figure(a, chosen->seconds * 1e3), plan_text(plan, chosen));
    if (best != chosen)
        fprintf(m->to, "  fastest  %s ms  %s\n", figure(b, best->seconds * 1e3), plan_text(plan, best));
    if (!head->shape && faster)
        fprintf(m->to, "  not pinned: shapes of %s have no name\n", head->op);
    else if (!faster)
        fprintf(m->to, "  not pinned: %s\n", best == chosen ? "no plan is faster"
                                                              : "the difference is too small");
    else {
        head->shape(shape, sizeof shape, head);
        if (!(status = write_pin(m, shape, best))) {
            fprintf(m->to, "  pinned   %.2f times as fast: %s\n", chosen->seconds / best->seconds, shape);
            ++*pins;
        }
    }
    json_array_append_new(m->rows, json_pack("{s:s, s:s, s:f, s:s, s:f, s:b}", "name", w->text,
        "chosen", candidate_variant(chosen), "chosen_time", chosen->seconds,
        "best", candidate_variant(best), "best_time", best->seconds, "written", faster && *shape && !status));
    return status;
}

int model_pins(struct model *m)
{
    int pins = 0;
    const int status = model_each(m, SAMPLES_EACH, take, &pins);

    if (pins)
        fprintf(m->to, "written to %s\n", m->path);
    if (interrupted)
        complain("interrupted: the pins until then are written");
    return status;
}
