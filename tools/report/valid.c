/* SPDX-License-Identifier: Apache-2.0
 *
 * valid.c - whether what was read can be a report of ours.
 */
#include <math.h>
#include "commands.h"
#include "report.h"

/* No time, rate, count or ratio of a measurement lies outside. */
static const double LEAST = 1e-18, MOST = 1e30;

/* The name of a member, or of an element's array, whose number is impossible; NULL: there is none. */
static const char *impossible(const json_t *value, const char *name, double *number)
{
    const char *key, *found = NULL;
    json_t *member;
    size_t i;

    if (json_is_number(value)) {
        *number = json_number_value(value);
        return *number != 0 && (fabs(*number) < LEAST || fabs(*number) > MOST) ? name : NULL;
    }
    if (json_is_array(value))
        json_array_foreach(value, i, member)
            if ((found = impossible(member, name, number)))
                return found;
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key, member)
            if ((found = impossible(member, key, number)))
                return found;
    return NULL;
}

int report_valid(const json_t *report, const char *path)
{
    static const struct { const char *name; json_type type; } members[] = {
        { "benchmarks", JSON_ARRAY }, { "context", JSON_OBJECT } };
    json_t *row;
    size_t i;

    for (i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *const it = json_object_get(report, members[i].name);

        if (it && json_typeof(it) == members[i].type)
            continue;
        complain("%s is no report of vernier bench or gap: it has no \"%s\"", path, members[i].name);
        return -1;
    }
    json_array_foreach(json_object_get(report, "benchmarks"), i, row) {
        double number;
        const char *const name = impossible(row, "a row", &number);

        if (!name)
            continue;
        complain("%s: \"%s\" of row %zu is %g, and must be 0 or between %g and %g", path, name, i + 1, number,
                 LEAST, MOST);
        return -1;
    }
    return 0;
}
