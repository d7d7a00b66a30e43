/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - is a row right?  The conformance suite's exact cases, of problems like the one
 * that is tuned: the same layout, direction and options, small enough for the oracle.
 *
 * Each shape is long along another dimension, so that it crosses the edges of a large tile
 * there; what no shape of odd sizes fits (rows of whole 16-byte vectors, say) gets sizes divisible by 16.
 */
#include <string.h>
#include "problem/operands.h"
#include "tune.h"

/* Its text is read back, for what follows from the sizes. */
static int shrink(struct problem *out, const struct problem *p, int shape, int even)
{
    char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
    struct problem small = *p;

    small.alpha = tame(p->alpha, 1);          /* what would have to be rounded, a row says nothing about */
    small.beta  = tame(p->beta, 1);
    small.act   = p->act == VN_RELU ? VN_RELU : VN_IDENTITY;
    p->op->shrink(&small, shape, even);
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
