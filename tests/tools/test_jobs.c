/* SPDX-License-Identifier: Apache-2.0
 *
 * test_jobs.c - the suite on several threads runs what it runs on one.
 */
#include <stdlib.h>
#include <string.h>

#include "check/suite.h"

static int failures;

static void check(int good, const char *what)
{
    failures += !good;
    if (!good)
        printf("FAIL jobs: %s\n", what);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct suite_group *)a)->name, ((const struct suite_group *)b)->name);
}

static vn_status run(struct suite **out, int jobs)
{
    vn_status status = suite_open(out, NULL);

    if (status)
        return status;
    (*out)->extent = SUITE_SMALL;
    status = suite_run(*out, &(struct suite_part){ &op_softmax, NULL }, 1, jobs);
    qsort((*out)->groups, (size_t)(*out)->group_count, sizeof *(*out)->groups, by_name);
    return status;
}

static void compare(const struct suite *one, const struct suite *some)
{
    check(one->group_count > 8 && one->group_count == some->group_count, "as many groups");
    check(one->reported == some->reported, "as many told");
    check(one->failed == 0 && some->failed == 0, "no failures");
    check(one->count[EXACT] > 0 && one->count[EXACT] == some->count[EXACT], "as many exact cases");
    check(one->count[REAL] > 0 && one->count[REAL] == some->count[REAL], "as many real cases");
    for (int i = 0; i < one->group_count && i < some->group_count; i++) {
        const struct suite_group *a = &one->groups[i], *b = &some->groups[i];

        check(!strcmp(a->name, b->name), a->name);
        check(a->worst == b->worst, "the same share of the bound");
        check(a->cases == b->cases && a->passed_over == b->passed_over, a->name);
    }
}

int main(void)
{
    struct suite *one, *some = NULL;
    vn_status status = run(&one, 1);

    if (status == VN_NO_DEVICE) {
        printf("skipped: %s\n", vn_last_error());
        return 77;
    }
    if (status || (status = run(&some, 3)))
        printf("FAIL jobs: %s\n", vn_last_error());
    else
        compare(one, some);
    suite_close(some);
    suite_close(one);
    return status || failures;
}
