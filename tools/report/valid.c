/* SPDX-License-Identifier: Apache-2.0
 *
 * valid.c - reads a report, without its control characters, and tells whether it can be one of ours.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
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

/* 0, or -1 after a sentence that names `path`. */
static int report_valid(const json_t *report, const char *path)
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

/* ---- reading ---- */

/* A character of text for each control character, those of C1 (of two bytes) included. */
static void without_controls(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at; at++)
        if (*at < ' ' || *at == 0x7f)
            *at = '?';
        else if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
            at[0] = at[1] = '?';
}

static json_t *cleaned(const json_t *value);

static json_t *cleaned_string(const json_t *value)
{
    char *const text = strdup(json_string_value(value));
    json_t *out = NULL;

    if (text) {
        without_controls(text);
        out = json_string(text);
    }
    free(text);
    return out;
}

static json_t *cleaned_object(const json_t *value)
{
    json_t *const out = json_object(), *member;
    const char *name;

    json_object_foreach((json_t *)value, name, member) {
        char *const text = strdup(name);

        if (text) {
            without_controls(text);
            json_object_set_new(out, text, cleaned(member));
        }
        free(text);
    }
    return out;
}

static json_t *cleaned(const json_t *value)
{
    json_t *out, *element;
    size_t i;

    if (json_is_string(value))
        return cleaned_string(value);
    if (json_is_object(value))
        return cleaned_object(value);
    if (!json_is_array(value))
        return json_incref((json_t *)value);
    out = json_array();
    json_array_foreach(value, i, element)
        json_array_append_new(out, cleaned(element));
    return out;
}

json_t *report_load(const char *path)
{
    json_error_t error;
    json_t *const read = json_load_file(path, 0, &error), *report;

    if (!read) {
        without_controls(error.text);
        complain("%s: %s", path, error.text);
        return NULL;
    }
    report = cleaned(read);
    json_decref(read);
    if (!report_valid(report, path))
        return report;
    json_decref(report);
    return NULL;
}
