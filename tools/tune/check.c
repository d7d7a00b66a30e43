/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - is a row right?  The conformance suite's exact cases, of problems like the one
 * that is tuned: the same layout, direction and options, small enough for the oracle.
 *
 * Each shape is long along another dimension, so that it crosses the edges of a large tile
 * there; what no shape of odd sizes fits (16 bytes to a line, say) gets sizes divisible by 16.
 */
#include <string.h>
#include "tune.h"

enum { SHAPES = 4, EVEN = 16 };

/* The row is for problems of other sizes too: what is small already is odd in some shape. */
static int64_t shrunk(int64_t size, int64_t most, int shape, int even)
{
    const int64_t n = size > most ? most : shape && size > 2 ? size - 1 : size;

    return even && n > EVEN ? n / EVEN * EVEN : n;
}

static int64_t at_most(int64_t size, int64_t most)
{
    return size < most ? size : most;
}

static void shrink_gemm(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][3] = {
        { 131, 259, 70 }, { 37, 41, 2071 }, { 1031, 37, 35 }, { 37, 1031, 35 } };

    p->m = shrunk(p->m, most[shape][0], shape, even);
    p->n = shrunk(p->n, most[shape][1], shape, even);
    p->k = shrunk(p->k, most[shape][2], shape, even);
    p->batch = at_most(p->batch, 2);
}

static void shrink_conv(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][4] = {
        { 2, 35, 21, 19 }, { 1, 131, 35, 9 }, { 1, 19, 259, 7 }, { 1, 5, 9, 67 } };
    const int64_t groups = p->c == p->groups ? shrunk(p->groups, most[shape][1], shape, even)
                                             : at_most(p->groups, 2);
    const int64_t channels = shrunk(p->c / p->groups, most[shape][1], shape, even);
    const int64_t filters = shrunk(p->filters / p->groups, most[shape][2], shape, even);

    p->images  = at_most(p->images, most[shape][0]);
    p->c       = groups * channels;
    p->filters = groups * filters;
    p->groups  = (int)groups;
    for (int d = 0; d < 3; d++) {
        const int64_t least = (p->filter[d] - 1) * p->dilation[d] + 1;

        p->size[d] = shrunk(p->size[d], least > most[shape][3] ? least : most[shape][3], shape, 0);
    }
}

static void shrink_softmax(struct problem *p, int shape, int even)
{
    static const int64_t most[SHAPES][2] = { { 37, 515 }, { 3, 70001 }, { 131, 67 }, { 7, 4099 } };
    const int64_t outer = p->rows / p->inner;

    p->inner = p->inner > 1 ? shrunk(p->inner, 37, shape, even) : 1;
    p->rows  = at_most(outer, most[shape][0]) * p->inner;
    p->n     = shrunk(p->n, most[shape][1] / p->inner + 1, shape, even);
    p->batch = at_most(p->batch, 2);
}

static double tame(double v, double usual)
{
    return v == 0 || v == 1 || v == -1 || v == 2 || v == 0.5 ? v : usual;
}

/* What would have to be rounded, a row says nothing about. */
static void make_exact(struct problem *p)
{
    p->alpha = tame(p->alpha, 1);
    p->beta  = tame(p->beta, 1);
    p->scale = p->op == SOFTMAX && p->scale > 0 ? tame(p->scale, 1) : 1;
    p->act   = p->act == VN_RELU ? VN_RELU : VN_IDENTITY;
    p->log   = p->log && p->direction == BACKWARD;
}

/* Its text is read back, for what follows from the sizes. */
static int shrink(struct problem *out, const struct problem *p, int shape, int even)
{
    static void (*const shrinks[])(struct problem *, int, int) = { shrink_gemm, shrink_conv, shrink_softmax };
    char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
    struct problem small = *p;

    shrinks[p->op](&small, shape, even);
    make_exact(&small);
    problem_format(text, &small);
    return problem_parse(out, text, why, sizeof why);
}

/* Of "vernier check 'PROBLEM'\n    what is wrong\n...": the problem and the sentence. */
static void say_failure(char *why, size_t why_size, const char *failures)
{
    const char *const problem = strchr(failures, '\'') ? strchr(failures, '\'') : failures;
    const int n = (int)strcspn(problem, "\n");
    const char *const sentence = problem + n + strspn(problem + n, "\n ");

    snprintf(why, why_size, "%.*s %.*s", n, problem, (int)strcspn(sentence, "\n"), sentence);
}

/* How many cases ran; -1 with a sentence if one failed. */
static int check_shapes(struct suite *s, const struct problem *p, int even, char *why, size_t why_size)
{
    const struct suite_group *group;
    struct problem small;

    s->group_count = 0;                       /* of the last row */
    suite_begin(s, "a row");
    group = &s->groups[0];
    for (int shape = 0; shape < SHAPES; shape++)
        if (!shrink(&small, p, shape, even) && !group->failed)
            suite_case(s, &small, EXACT);
    if (group->failed)
        say_failure(why, why_size, group->failures);
    return group->failed ? -1 : (int)group->cases;
}

int check_exactly(struct suite *s, const struct problem *p, char *why, size_t why_size)
{
    struct problem ours = *p;
    int cases;

    if (!ours.variant[0])
        strcpy(ours.variant, "-");            /* one asked for by name may pass a case over */
    if (!(cases = check_shapes(s, &ours, 0, why, why_size)))
        cases = check_shapes(s, &ours, 1, why, why_size);
    if (cases == 0)
        snprintf(why, why_size, "no small problem like it fits the variant: its results cannot be checked");
    return cases > 0 ? 0 : -1;
}
