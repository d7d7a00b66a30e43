/* SPDX-License-Identifier: Apache-2.0
 *
 * space.c - the rows that a variant may have, and a search among them.
 *
 * Iterated local search (H. Lourenco, O. Martin, T. Stuetzle, Iterated Local Search, in Handbook
 * of Metaheuristics, 2003): from a good row walk along one parameter after another as long as
 * that is better; at the end of that change a few parameters of the best row at random, and
 * walk again.  It knows nothing of the rows but their scores, and is drawn from one seed: with
 * the scores that an interrupted search left it goes the same way again, to where that ended.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tune.h"

static const double BETTER = 0.99;        /* what counts as better: above what two samples differ by */
static const double HOPEFUL = 1.5;        /* from a row so far behind the best no walk starts */
enum { KICKS = 512, CHANGED = 2 };

/* ---- spaces ---- */

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int place_of(const struct space *s, int param, int value)
{
    for (int k = 0; k < s->count[param]; k++)
        if (s->value[param][k] == value)
            return k;
    return -1;
}

void space_open(struct space *out, const struct vn_variant *v)
{
    const char *at = v->params;
    int used;

    *out = (struct space){ .params = 0 };
    for (int i = 0; i < VN_PARAMS && sscanf(at, " %31s%n", out->name[i], &used) == 1; i++, at += used) {
        out->count[i] = vn__tune_space(out->value[i], TUNE_VALUES - 4, v, out->name[i]);
        qsort(out->value[i], (size_t)out->count[i], sizeof(int), ascending);
        out->params++;
    }
}

void space_admit(struct space *s, const int *p)
{
    for (int i = 0; i < s->params; i++) {
        if (place_of(s, i, p[i]) >= 0 || s->count[i] == TUNE_VALUES)
            continue;
        s->value[i][s->count[i]++] = p[i];
        qsort(s->value[i], (size_t)s->count[i], sizeof(int), ascending);
    }
}

double space_size(const struct space *s)
{
    double size = 1;

    for (int i = 0; i < s->params; i++)
        size *= s->count[i];
    return size;
}

int space_neighbours(const struct space *s)
{
    int n = 0;

    for (int i = 0; i < s->params; i++)
        n += s->count[i] > 2 ? 2 : s->count[i] == 2;
    return n;
}

/* ---- the search ---- */

struct search {
    const struct space *space;
    row_score          *score;
    void               *state;
    struct random       random;
    struct scored      *tried;
    int                 count, room, over, failed;
    struct scored       best;
};

static const struct scored *find_tried(const struct search *s, const int *p)
{
    for (int i = 0; i < s->count; i++)
        if (!memcmp(s->tried[i].p, p, sizeof s->tried[i].p))
            return &s->tried[i];
    return NULL;
}

static void remember(struct search *s, const struct scored *it)
{
    if (s->count == s->room) {
        const int room = s->room ? 2 * s->room : 256;
        struct scored *const more = realloc(s->tried, (size_t)room * sizeof *more);

        if (!more) {
            s->failed = s->over = 1;
            return;
        }
        s->tried = more;
        s->room  = room;
    }
    s->tried[s->count++] = *it;
    if (it->score < s->best.score)
        s->best = *it;
}

/* it->score; INFINITY also where the search is over. */
static double score_it(struct search *s, struct scored *it)
{
    const struct scored *const known = find_tried(s, it->p);

    if (known)
        return it->score = known->score;
    it->score = INFINITY;
    if (s->over || (s->over = s->score(&it->score, s->state, it->p) != 0))
        return it->score = INFINITY;
    remember(s, it);
    return it->score;
}

/* Along one parameter as long as it is better, stepping over what is illegal. */
static int walk(struct search *s, struct scored *at, int param, int step)
{
    const struct space *const space = s->space;
    struct scored next = *at;
    int k = place_of(space, param, at->p[param]), moved = 0;

    while ((k += step) >= 0 && k < space->count[param] && !s->over) {
        next.p[param] = space->value[param][k];
        if (isinf(score_it(s, &next)))
            continue;
        if (next.score > BETTER * at->score)
            break;
        *at = next;
        moved = 1;
    }
    return moved;
}

static void shuffle(struct search *s, int *order, int count)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)random_below(&s->random, i + 1), other = order[j];

        order[j] = order[i];
        order[i] = other;
    }
}

static void descend(struct search *s, struct scored at)
{
    int order[VN_PARAMS], moved;

    do {
        moved = 0;
        shuffle(s, order, s->space->params);
        for (int i = 0; i < s->space->params && !s->over; i++)
            moved |= walk(s, &at, order[i], 1) || walk(s, &at, order[i], -1);
    } while (moved && !s->over);
}

/* A legal row that was not tried yet, most often near the best one; 0: none was found. */
static int kick(struct search *s, struct scored *at)
{
    const struct space *const space = s->space;

    for (int i = 0; i < KICKS && !s->over; i++) {
        const int changed = random_chance(&s->random, 0.25) ? 2 * space->params : CHANGED;

        *at = s->best;
        for (int j = 0; j < changed; j++) {
            const int param = (int)random_below(&s->random, space->params);

            at->p[param] = space->value[param][random_below(&s->random, space->count[param])];
        }
        if (!find_tried(s, at->p) && !isinf(score_it(s, at)))
            return 1;
    }
    return 0;
}

int search_space(struct scored *best, const struct space *space, row_score *score, void *state)
{
    struct search s = { .space = space, .score = score, .state = state, .random = { SUITE_SEED },
                        .best = *best };
    struct scored at = *best;

    remember(&s, best);
    descend(&s, at);
    while (!s.over && kick(&s, &at))
        if (at.score < HOPEFUL * s.best.score)
            descend(&s, at);
    *best = s.best;
    free(s.tried);
    return s.failed ? -1 : 0;
}
