/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c - vernier cache: what built kernels are kept on disk, and fewer of them.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "commands.h"
#include "core.h"
#include "options.h"
#include "report/report.h"

enum { DAYS = 256, USUAL_DAYS = 30, DAY = 24 * 60 * 60 };

struct request { struct common common; const struct action *action; int64_t days; };

struct kept { struct vn_cached *all; size_t count; int64_t since; };

static const char doc[] =
    "Kernels that were built are kept on disk for later processes; this looks after them.\n"
    "\n"
    "  size    where they are, how many, and how many bytes (if no action is given)\n"
    "  list    each: its bytes, when it was used last, and what it was built for\n"
    "  clear   remove all\n"
    "  prune   remove those of other versions of the library, damaged ones, and those that were not used "
    "for --days"
    "\v"
    "They are where VERNIER_CACHE_DIR says, else in ~/.cache/vernier.  A process that runs meanwhile builds "
    "anew what it needs.  Of what drivers keep themselves nothing is touched.\n"
    "\n"
    "Exit status: 0, 1 if something could not be read or removed, 2 if there is no cache.";

static const struct argp_option options[] = {
    { "days", DAYS, "N", 0, "With prune: remove what was not used for so many days; 30 unless said", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static const struct argp_child children[] = { OPTIONS_CHILD(json_argp), OPTIONS_END };

/* ---- what can be done ------------------------------------------------------ */

static int none(const struct vn_cached *it, const struct kept *k)
{
    (void)it;
    (void)k;
    return 0;
}

static int all(const struct vn_cached *it, const struct kept *k)
{
    (void)it;
    (void)k;
    return 1;
}

static int useless(const struct vn_cached *it, const struct kept *k)
{
    return !it->current || it->used < k->since;
}

static const struct action {
    const char *name;
    int         lists;
    int       (*removes)(const struct vn_cached *it, const struct kept *k);
} actions[] = {
    { "size",  0, none    },
    { "list",  1, none    },
    { "clear", 0, all     },
    { "prune", 0, useless },
    { NULL, 0, NULL }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *const r = state->input;

    switch (key) {
    case DAYS:
        r->days = option_count(state, "days", arg);
        return 0;
    case ARGP_KEY_INIT:
        options_begin(state, children, &r->common, NULL);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num)
            argp_error(state, "one action at a time");
        for (r->action = actions; r->action->name && strcmp(r->action->name, arg); r->action++)
            continue;
        if (!r->action->name)
            argp_error(state, "there is no action \"%s\": size, list, clear or prune", arg);
        return 0;
    case ARGP_KEY_END:
        if (r->days && strcmp(r->action->name, "prune"))
            argp_error(state, "--days is for prune");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- doing it ---------------------------------------------------------------- */

static const char *plural(size_t n)
{
    return n == 1 ? "kernel" : "kernels";
}

static void print_entry(FILE *to, const struct vn_cached *it)
{
    char used[32] = "";
    const time_t when = (time_t)it->used;
    struct tm parts;

    if (localtime_r(&when, &parts))
        strftime(used, sizeof used, "%Y-%m-%d %H:%M", &parts);
    fprintf(to, "%.8s  %9llu bytes  %s  %.64s\n", it->name, (unsigned long long)it->bytes, used,
            !it->current ? "of another version, or damaged" : it->toolchain);
}

static json_t *json_entry(const struct vn_cached *it)
{
    return json_pack("{s:s, s:I, s:I, s:b, s:s, s:s}", "file", it->name, "bytes", (json_int_t)it->bytes,
                     "used", (json_int_t)it->used, "current", it->current, "backend", it->backend,
                     "toolchain", it->toolchain);
}

/* Removes what the action does, and says so; returns the exit status. */
static int act(FILE *to, json_t *entries, const struct action *a, const struct kept *k)
{
    uint64_t kept = 0, gone = 0;
    size_t removed = 0;
    int status = 0;

    for (size_t i = 0; i < k->count; i++) {
        const struct vn_cached *const it = k->all + i;
        const int wanted = a->removes(it, k), error = wanted ? vn__cache_remove(it->name) : 0;

        if (error && error != ENOENT) {         /* another process may have removed it */
            complain("%s cannot be removed: %s", it->name, strerror(error));
            status = EXIT_FAILURE;
        } else if (wanted) {
            removed++;
            gone += it->bytes;
            continue;
        }
        kept += it->bytes;
        if (a->lists)
            print_entry(to, it);
        json_array_append_new(entries, json_entry(it));
    }
    if (removed)
        fprintf(to, "removed  %zu %s, %llu bytes\n", removed, plural(removed), (unsigned long long)gone);
    fprintf(to, "%s  %zu %s, %llu bytes\n", vn__cache_directory(), k->count - removed,
            plural(k->count - removed), (unsigned long long)kept);
    return status;
}

const struct argp cache_parser = { options, parse, "[size|list|clear|prune]", doc, children, NULL, NULL };

int cache_main(int argc, char **argv)
{
    struct request r = { .action = actions };
    struct kept k;
    json_t *entries;
    int status;

    if (argp_parse(&cache_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;
    if (vn__cache_list(&k.all, &k.count)) {
        complain("%s", vn_last_error());
        return EXIT_USAGE;
    }
    k.since = (int64_t)time(NULL) - (r.days ? r.days : USUAL_DAYS) * DAY;
    entries = json_array();
    status = act(report_stream(r.common.json), entries, r.action, &k);
    if (!r.common.json)
        json_decref(entries);
    else if (report_json(json_pack("{s:s, s:o}", "directory", vn__cache_directory(), "kernels", entries),
                         r.common.json))
        status = EXIT_FAILURE;
    free(k.all);
    return status;
}
