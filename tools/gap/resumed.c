/* SPDX-License-Identifier: Apache-2.0
 *
 * resumed.c - rows of an earlier, interrupted run, which vernier gap --resume takes over.
 */
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "session.h"

/* What both runs must have in common: where it stands in a report, and how a sentence calls it. */
static const struct { const char *object, *name, *called; } common[] = {
    { "context", "library_version", "the version"                },
    { "context", "library_commit",  "the commit"                 },
    { "context", "host_cpu",        "the processor"              },
    { "context", "peers",           "the list of peers"          },
    { "context", "processes",       "the number of processes"    },
    { "context", "budget_s",        "the budget"                 },
    { "first",   "name",            "device 1"                   },
    { "first",   "driver",          "the driver of device 1"     },
    { "first",   "toolchain",       "the toolchain of device 1"  },
    { "second",  "name",            "device 2"                   },
    { "second",  "driver",          "the driver of device 2"     },
    { "second",  "toolchain",       "the toolchain of device 2"  },
};

static json_t *pair_of(const json_t *report)
{
    return json_object_get(json_object_get(report, "vernier"), "pair");
}

static json_t *common_of(const json_t *report, size_t i)
{
    const json_t *const object = !strcmp(common[i].object, "context") ? json_object_get(report, "context")
                               : json_array_get(pair_of(report), !strcmp(common[i].object, "second"));

    return json_object_get(object, common[i].name);
}

enum { DUMP = JSON_ENCODE_ANY | JSON_REAL_PRECISION(6) };

static void complain_of(const char *path, size_t i, const json_t *theirs, const json_t *ours)
{
    char *const was = json_dumps(theirs, DUMP), *const is = json_dumps(ours, DUMP);

    complain("--resume: %s of %s is %s, and must be as in this run: %s", common[i].called, path,
             was ? was : "not in it", is ? is : "unknown");
    free(was);
    free(is);
}

int resumed_check(const json_t *earlier, const char *path, const json_t *report)
{
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        const json_t *const theirs = common_of(earlier, i), *const ours = common_of(report, i);

        if (json_equal(theirs, ours) || (!theirs && !ours))
            continue;
        complain_of(path, i, theirs, ours);
        return EXIT_USAGE;
    }
    return 0;
}

/* The last row may lack its second one, by multiply-adds. */
static int may_be_half(const json_t *rows, const json_t *all)
{
    const json_t *const row = json_array_get(rows, 0);

    return json_array_size(rows) == 1 && row == json_array_get(all, json_array_size(all) - 1)
        && !strcmp(json_text(row, "type"), "f32") && !engine_is_fma(json_text(row, "engine"));
}

json_t *resumed_rows(const json_t *earlier, const char *problem)
{
    const json_t *const all = json_object_get(earlier, "benchmarks");
    json_t *const out = json_array(), *row;
    int failed = 0;
    size_t i;

    json_array_foreach(all, i, row)
        if (!strcmp(json_text(row, "name"), problem) || !strcmp(json_text(row, "of"), problem)) {
            json_array_append(out, row);
            failed |= json_object_get(row, "error_occurred") != NULL;
        }
    if (failed || may_be_half(out, all))
        json_array_clear(out);
    return out;
}

/* ---- one report of both ---- */

static void lift(json_t *to, const json_t *from, const char *name)
{
    if (json_number(from, name) > json_number(to, name))
        json_object_set(to, name, json_object_get(from, name));
}

/* A roof is the most that was seen. */
static void raise_roofs(json_t *to, const json_t *from)
{
    const json_t *their, *const theirs = json_object_get(from, "roofs");
    json_t *our, *const ours = json_object_get(to, "roofs");
    size_t i, j;

    for (const char *const *name = (const char *const []){ "gbytes_per_second", "reading_gbytes_per_second",
                                                           "gflops_f32", NULL }; *name; name++)
        lift(to, from, *name);
    json_array_foreach(ours, i, our)
        json_array_foreach(theirs, j, their)
            if (json_equal(json_object_get(our, "kind"), json_object_get(their, "kind"))) {
                lift(our, their, "flops_per_s");
                lift(our, their, "sustained_flops_per_s");
            }
}

void resumed_join(json_t *report, const json_t *earlier, int rows)
{
    json_t *const context = json_object_get(report, "context"),
           *const kernels = json_object_get(json_object_get(report, "vernier"), "kernels");
    const json_t *const before = json_object_get(earlier, "context");
    json_t *runs = json_copy(json_object_get(before, "resumed")), *run;
    size_t at;

    if (!runs)
        runs = json_array();
    json_array_foreach(runs, at, run)           /* the earlier one took these over itself */
        rows -= (int)json_number(run, "rows");
    json_array_append_new(runs, json_pack("{s:O, s:O*, s:i}", "date", json_object_get(before, "date"), "uuid",
                                          json_object_get(json_array_get(pair_of(earlier), 0), "uuid"),
                                          "rows", rows > 0 ? rows : 0));
    json_object_set_new(context, "resumed", runs);
    json_object_update_missing(kernels, json_object_get(json_object_get(earlier, "vernier"), "kernels"));
    for (size_t i = 0; i < 2; i++)
        raise_roofs(json_object_get(json_array_get(pair_of(report), i), "roofline"),
                    json_object_get(json_array_get(pair_of(earlier), i), "roofline"));
}
