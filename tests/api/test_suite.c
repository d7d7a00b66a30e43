/* SPDX-License-Identifier: Apache-2.0
 *
 * test_suite.c - the conformance suite on the device that $VERNIER_DEVICE names.
 *
 *     test_suite [--small|--quick|--full] [gemm|conv|softmax]...
 */
#include <string.h>

#include "check/suite.h"

static void say(const struct suite *s, const struct suite_group *g)
{
    printf("%sok %d - %s: %ld cases, %.1f s", g->failed ? "not " : "", s->reported, g->name, g->cases,
           g->seconds);
    if (g->worst > 0)
        printf(", worst %.2f of the bound", g->worst);
    if (g->failed)
        printf(", %ld failed\n%s", g->failed, g->failures);
    putchar('\n');
    fflush(stdout);
}

static int wanted(int argc, char **argv, const char *name)
{
    int named = 0;

    for (int i = 1; i < argc; i++) {
        named |= argv[i][0] != '-';
        if (strcmp(argv[i], name) == 0)
            return 1;
    }
    return !named;
}

static int has_option(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    struct suite *s;
    const vn_status status = suite_open(&s, NULL);
    int failed;

    if (status == VN_NO_DEVICE) {
        printf("skipped: %s\n", vn_last_error());
        return 77;
    }
    if (status) {
        printf("cannot start: %s\n", vn_last_error());
        return 1;
    }
    s->extent = has_option(argc, argv, "--small") ? SUITE_SMALL
              : has_option(argc, argv, "--quick") ? SUITE_QUICK
              : has_option(argc, argv, "--full")  ? SUITE_FULL  : SUITE_USUAL;
    s->group_done = say;
    printf("on %s (%s)\n", s->info.name, s->info.platform);
    for (const struct op *const *o = ops; *o; o++)
        if (wanted(argc, argv, (*o)->name))
            (*o)->cases(s);
    printf("1..%d\n", s->reported);
    suite_report(s, stdout);
    failed = suite_status(s);
    suite_close(s);
    return failed;
}
