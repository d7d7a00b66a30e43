/* SPDX-License-Identifier: Apache-2.0
 *
 * warm.c - the second of two equal calls launches what the first did, and chooses nothing.  Linked with
 * --wrap=vn__choose and --wrap=vn__launch.
 */
#include <string.h>

#include "core.h"
#include "problem/values.h"

static int chosen, launched;

vn_status __real_vn__choose(const struct vn_choice **out, const struct vn_plan **plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t size,
                            const char *forced);
vn_status __wrap_vn__choose(const struct vn_choice **out, const struct vn_plan **plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t size,
                            const char *forced);

vn_status __wrap_vn__choose(const struct vn_choice **out, const struct vn_plan **plan, vn_queue *q,
                            const struct vn_variant *table, const void *problem, size_t size,
                            const char *forced)
{
    chosen++;
    return __real_vn__choose(out, plan, q, table, problem, size, forced);
}

vn_status __real_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l);
vn_status __wrap_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l);

vn_status __wrap_vn__launch(vn_queue *q, const struct vn_choice *it, int kernel, struct vn_launch *l)
{
    launched++;
    return __real_vn__launch(q, it, kernel, l);
}

int main(int argc, char **argv)
{
    struct problem p;
    struct values v;
    vn_device *d;
    vn_queue *q;
    char why[256];

    if (argc != 2 || problem_parse(&p, argv[1], why, sizeof why) || vn_device_open(&d, NULL) ||
        vn_queue_open(&q, d) || values_open(&v, q, d, &p))
        return 2;
    for (int call = 1; call <= 2; call++) {
        chosen = launched = 0;
        if (problem_run(q, &p, &v.o))
            printf("call %d: %s\n", call, vn_last_error());
        printf("call %d: %d chosen, %d launched\n", call, chosen, launched);
    }
    values_close(&v);
    vn_queue_close(q);
    vn_device_close(d);
    return 0;
}
