/* SPDX-License-Identifier: Apache-2.0
 *
 * costs.c - vernier tune --costs: fits the cost columns of tune rows to the times of their plans.
 *
 * A row is fitted for each type on its own, by coordinate descent on the variant's plan(), which is asked for
 * the time of each problem measured with other costs: the loss is the mean of Huber's function (1964) of the
 * logarithm of estimate over measured time, in which the few plans that the model does not describe count
 * little.  Variants that plan parts of a problem have estimates that depend on other rows, and stay as they
 * are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "model.h"

enum { SAMPLES_EACH = 5, LEAST_PROBLEMS = 5, MOST_COST = 1 << 20 };

static const double BEND = 0.3;           /* of Huber's function: quadratic below, linear above */
static const double UNPLANNED = 10;       /* the loss where costs give no estimate */
static const double FIRST_STEP = 0.5, LAST_STEP = 0.004;      /* relative to a cost */
static const double WORSE = 1.02;         /* times as slow: choices that got so much worse are not written */

struct posed {
    void *problem;                        /* a copy, without operands */
    int   first, count;                   /* of its plans; the one that was chosen is the first */
};

/* A plan, measured. */
struct timed {
    int    problem, group;                /* group: -1, there is nothing to fit */
    double seconds, estimate;             /* estimate: by the costs that were in use; 0: there was none */
    int    eligible;                      /* as opposed to used only if asked for by name */
};

/* The plans of one row, in one type. */
struct group {
    const struct vn_variant *variant;
    vn_type       type;
    struct vn_row row;
    int           problems, fitted;
    double        loss_before, loss;
    double        before, after;          /* geometric standard deviations of estimate over measured time */
};

struct fit {
    struct vn_site site;
    struct posed  *posed;
    struct timed  *timed;
    struct group  *group;
    int            problems, times, groups;
};

/* ---- what was measured ---- */

/* Room for one more, of so many bytes each; NULL after a sentence. */
static void *more(void *old, int count, size_t each)
{
    void *const out = realloc(old, ((size_t)count + 1) * each);

    if (!out)
        complain("host memory ran out");
    return out;
}

static double estimate(const struct fit *f, const struct group *g, const struct vn_row *row, int problem)
{
    struct vn_plan plan = { 0 };

    g->variant->plan(&plan, f->posed[problem].problem, row, &f->site);
    return plan.seconds;
}

/* A variant that would plan parts has no plan for a part. */
static int plans_parts(const struct fit *f, const struct vn_variant *v, const struct vn_row *row,
                       const void *problem)
{
    const struct vn_site deeper = { f->site.facts, f->site.rates, f->site.queue, 1 };
    struct vn_plan plan = { 0 };

    v->plan(&plan, problem, row, &deeper);
    return plan.seconds < 0;
}

static int row_of(struct vn_row *out, const struct fit *f, const struct vn_choice *it,
                  const struct vn_problem *head)
{
    struct vn_row rows[VN_ROWS];
    int count;

    if (vn__tune_find(rows, &count, f->site.queue->device, it->variant, head->type, head->bucket))
        return 0;
    for (int i = 0; i < count; i++)
        if (!memcmp(rows[i].p, it->p, sizeof it->p)) {
            *out = rows[i];
            return 1;
        }
    return 0;
}

/* The group of a plan, made if need be: -1, there is nothing to fit; -2: memory ran out. */
static int group_of(struct fit *f, const struct vn_choice *it, const struct vn_problem *head)
{
    struct group *grown;
    struct vn_row row;

    if (!it || !it->variant->costs || !it->variant->plan)
        return -1;
    for (int i = 0; i < f->groups; i++)
        if (f->group[i].variant == it->variant && f->group[i].type == head->type &&
            !memcmp(f->group[i].row.p, it->p, sizeof it->p))
            return i;
    if (!row_of(&row, f, it, head) || plans_parts(f, it->variant, &row, head))
        return -1;
    if (!(grown = more(f->group, f->groups, sizeof *grown)))
        return -2;
    f->group = grown;
    f->group[f->groups] = (struct group){ .variant = it->variant, .type = head->type, .row = row };
    return f->groups++;
}

static int add_time(struct fit *f, const struct candidate *c, const struct vn_problem *head)
{
    struct timed *const grown = more(f->timed, f->times, sizeof *grown);
    const int group = grown ? group_of(f, c->choice, head) : -2;

    if (grown)
        f->timed = grown;
    if (group == -2)
        return EXIT_FAILURE;
    f->timed[f->times++] = (struct timed){ f->problems, group, c->seconds, candidate_estimate(c),
                                           !json_object_get(c->how, "why") };
    if (group >= 0)
        f->group[group].problems++;
    return 0;
}

static int take(struct model *m, void *state, const struct workload *w, const struct candidates *c)
{
    const struct vn_memo *const last = m->bench.queue->last;
    struct fit *const f = state;
    struct posed *const grown = more(f->posed, f->problems, sizeof *grown);
    char shown[PROBLEM_TEXT];
    int status = 0;

    if (!grown)
        return EXIT_FAILURE;
    f->posed = grown;
    f->posed[f->problems] = (struct posed){ malloc(last->problem_size), f->times, 0 };
    if (!f->posed[f->problems].problem) {
        complain("host memory ran out");
        return EXIT_FAILURE;
    }
    memcpy(f->posed[f->problems].problem, last->problem, last->problem_size);
    for (int i = 0; i < c->count && !status; i++)
        if (!*c->it[i].note && c->it[i].seconds > 0)
            status = add_time(f, &c->it[i], f->posed[f->problems].problem);
    f->posed[f->problems].count = f->times - f->posed[f->problems].first;
    f->problems++;
    fprintf(m->to, "%s: %d plan%s timed\n", problem_shown(shown, w->text), f->posed[f->problems - 1].count,
            PLURAL(f->posed[f->problems - 1].count));
    return status;
}

/* ---- fitting ---- */

static double huber(double d)
{
    return d < BEND ? d * d : BEND * (2 * d - BEND);
}

static double loss(const struct fit *f, int group, const struct vn_row *row)
{
    const struct group *const g = &f->group[group];
    double sum = 0;

    for (int i = 0; i < f->times; i++)
        if (f->timed[i].group == group) {
            const double e = estimate(f, g, row, f->timed[i].problem);

            sum += e > 0 ? huber(fabs(log(e / f->timed[i].seconds))) : UNPLANNED;
        }
    return sum / g->problems;
}

/* From 1, where estimate and time are the same; 0: there is no estimate. */
static double deviation(const struct fit *f, int group, const struct vn_row *row)
{
    double square = 0;
    int count = 0;

    for (int i = 0; i < f->times; i++)
        if (f->timed[i].group == group) {
            const double e = estimate(f, &f->group[group], row, f->timed[i].problem);

            square += e > 0 ? pow(log(e / f->timed[i].seconds), 2) : 0;
            count  += e > 0;
        }
    return count ? exp(sqrt(square / count)) : 0;
}

static int changed(int cost, double step)
{
    const int v = (int)lround(fmin(cost * (1 + step), MOST_COST));
    const int moved = v != cost ? v : step > 0 ? cost + 1 : cost - 1;

    return moved < 1 ? 1 : moved > MOST_COST ? MOST_COST : moved;
}

static void fit_row(struct fit *f, int group)
{
    struct group *const g = &f->group[group];
    struct vn_row row = g->row;
    double least = loss(f, group, &row);
    char name[64];

    g->loss_before = least;
    g->before      = deviation(f, group, &row);
    for (double step = FIRST_STEP; step > LAST_STEP && !interrupted;) {
        int better = 0;

        for (int x = 0; vn__word_at(name, g->variant->costs, x); x++)
            for (int sign = -1; sign <= 1; sign += 2) {
                struct vn_row next = row;

                next.cost[x] = changed(row.cost[x], sign * step);

                const double l = loss(f, group, &next);

                if (l < least - 1e-9) {
                    least  = l;
                    row    = next;
                    better = 1;
                }
            }
        step = better ? step : step / 2;
    }
    g->row    = row;
    g->loss   = least;
    g->after  = deviation(f, group, &row);
    g->fitted = 1;
}

/* ---- what the choices would be ---- */

/* What is chosen by the fitted costs.  The first plan was chosen by the others; nobody has a model of it
 * where it has no estimate, and then it is chosen whatever the others cost.                             */
static const struct timed *chosen_after(const struct fit *f, const struct posed *p)
{
    const struct timed *const first = &f->timed[p->first], *best = NULL;
    double least = INFINITY;

    for (int i = 0; i < p->count && first->estimate > 0; i++) {
        const struct timed *const t = &first[i];
        const struct group *const g = t->group < 0 ? NULL : &f->group[t->group];
        const double e = g && g->fitted ? estimate(f, g, &g->row, t->problem) : t->estimate;

        if (t->eligible && e > 0 && e < least) {
            least = e;
            best  = t;
        }
    }
    return best ? best : first;
}

static double fastest(const struct fit *f, const struct posed *p)
{
    double least = INFINITY;

    for (int i = 0; i < p->count; i++)
        least = fmin(least, f->timed[p->first + i].seconds);
    return least;
}

/* The geometric mean of chosen over fastest. */
static double choices(const struct fit *f, int after)
{
    double sum = 0;

    for (int i = 0; i < f->problems; i++) {
        const struct posed *const p = &f->posed[i];

        sum += log((after ? chosen_after(f, p) : &f->timed[p->first])->seconds / fastest(f, p));
    }
    return exp(sum / f->problems);
}

/* ---- the user's file ---- */

static void add_row(struct vn_row rows[VN_ROWS], int *count, const struct vn_row *row)
{
    for (int i = 0; i < *count; i++)
        if (!memcmp(rows[i].p, row->p, sizeof row->p))
            return;
    if (*count < VN_ROWS)
        rows[(*count)++] = *row;
}

/* All rows in use for the variant and type, in any bucket, with the costs that were fitted. */
static int all_rows(struct vn_row out[VN_ROWS], const struct fit *f, const struct group *of)
{
    struct vn_row rows[VN_ROWS];
    int count = 0, some;

    for (int bucket = 0; bucket < VN_BUCKET_COUNT; bucket++)
        if (!vn__tune_find(rows, &some, f->site.queue->device, of->variant, of->type, (enum vn_bucket)bucket))
            for (int i = 0; i < some; i++)
                add_row(out, &count, &rows[i]);
    for (int g = 0; g < f->groups; g++)
        for (int i = 0; i < count && f->group[g].fitted && f->group[g].variant == of->variant &&
             f->group[g].type == of->type; i++)
            if (!memcmp(out[i].p, f->group[g].row.p, sizeof out[i].p))
                out[i] = f->group[g].row;
    return count;
}

static int is_first_of_its_rows(const struct fit *f, int group)
{
    for (int i = 0; i < group; i++)
        if (f->group[i].fitted && f->group[i].variant == f->group[group].variant &&
            f->group[i].type == f->group[group].type)
            return 0;
    return f->group[group].fitted;
}

static int write_rows(const struct model *m, const struct fit *f)
{
    struct vn_row rows[VN_ROWS];
    char why[TUNE_PATH];

    for (int g = 0; g < f->groups; g++)
        if (is_first_of_its_rows(f, g)) {
            const struct row_line lines = { f->group[g].variant, m->bench.device, f->group[g].type,
                                            VN_BUCKET_COUNT, rows, all_rows(rows, f, &f->group[g]),
                                            "costs fitted" };

            if (user_file_put(m->path, &lines, why, sizeof why)) {
                complain("%s", why);
                return EXIT_FAILURE;
            }
        }
    fprintf(m->to, "written to %s\n", m->path);
    return 0;
}

/* ---- what is said ---- */

static json_t *json_numbers(const char *names, const int *value)
{
    json_t *const out = json_object();
    char name[64];

    for (int i = 0; vn__word_at(name, names, i); i++)
        json_object_set_new(out, name, json_integer(value[i]));
    return out;
}

static const char *row_text(char out[64], const struct group *g)
{
    char name[64];
    size_t n = 0;

    for (int i = 0; vn__word_at(name, g->variant->params, i) && n < 64; i++)
        n += (size_t)snprintf(out + n, 64 - n, "%s%d", i ? " " : "", g->row.p[i]);
    return out;
}

static void print(const struct model *m, const struct fit *f)
{
    struct table t;
    char row[64], cell[CELL];

    fputc('\n', m->to);
    table_open(&t, m->to);
    table_column(&t, "variant", 18, 1);
    table_column(&t, "row", 28, 1);
    table_column(&t, "type", 4, 1);
    table_column(&t, "problems", 8, 0);
    table_column(&t, "before", 6, 0);
    table_column(&t, "after", 6, 0);
    table_head(&t);
    for (int i = 0; i < f->groups; i++) {
        const struct group *const g = &f->group[i];

        table_cell(&t, PLAIN, g->variant->name);
        table_cell(&t, PLAIN, row_text(row, g));
        table_cell(&t, PLAIN, vn_type_name(g->type));
        snprintf(cell, sizeof cell, "%d", g->problems);
        table_cell(&t, g->fitted ? PLAIN : FAINT, cell);
        if (!g->fitted) {
            table_note(&t, FAINT, "too few to fit");
            continue;
        }
        table_cell(&t, PLAIN, figure(cell, g->before));
        table_cell(&t, PLAIN, figure(cell, g->after));
        table_end(&t);
        json_array_append_new(m->rows, json_pack("{s:s, s:s, s:o, s:o, s:i, s:f, s:f, s:f, s:f}",
            "variant", g->variant->name, "type", vn_type_name(g->type),
            "parameters", json_numbers(g->variant->params, g->row.p),
            "costs", json_numbers(g->variant->costs, g->row.cost),
            "problems", g->problems, "loss_before", g->loss_before, "loss", g->loss,
            "deviation_before", g->before, "deviation", g->after));
    }
}

static int conclude(struct model *m, struct fit *f)
{
    double before, after;
    int fitted = 0;

    for (int g = 0; g < f->groups; g++)
        if (f->group[g].problems >= LEAST_PROBLEMS) {
            fit_row(f, g);
            fitted++;
        }
    if (interrupted) {
        complain("interrupted: nothing is written");
        return EXIT_FAILURE;
    }
    if (f->groups)
        print(m, f);
    if (!fitted) {
        complain("nothing is written: no row with costs was timed on %d problems", LEAST_PROBLEMS);
        return EXIT_USAGE;
    }
    before = choices(f, 0);
    after  = choices(f, 1);
    fprintf(m->to, "\nchosen over fastest, the geometric mean of %d problem%s: %.3f before, %.3f after\n",
            f->problems, PLURAL(f->problems), before, after);
    if (after <= WORSE * before)
        return write_rows(m, f);
    fputs("not written: the choices would be worse\n", m->to);
    return 0;
}

int model_costs(struct model *m)
{
    struct vn_rates rates;
    struct fit f = { .site = { &m->bench.device->facts, &rates, m->bench.queue, 0 } };
    int status = EXIT_FAILURE;

    if (vn__tune_rates(&rates, m->bench.device))
        complain("%s", vn_last_error());
    else {
        status = model_each(m, SAMPLES_EACH, take, &f);
        if (interrupted)
            complain("interrupted: nothing is written");
        else {
            const int concluded = conclude(m, &f);

            status = status ? status : concluded;
        }
    }
    for (int i = 0; i < f.problems; i++)
        free(f.posed[i].problem);
    free(f.posed);
    free(f.timed);
    free(f.group);
    return status;
}
