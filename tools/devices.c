/* SPDX-License-Identifier: Apache-2.0
 *
 * devices.c - vernier devices: lists them.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "core.h"
#include "options.h"
#include "report/report.h"

static const char doc[] =
    "Lists the devices: what --device and vn_device_open() take, and what each can do.  "
    "The one with the star is used when none is named."
    "\v"
    "Exit status: 0, 2 if there is no device.";

static const struct argp_child children[] = { OPTIONS_CHILD(json_argp), OPTIONS_END };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_INIT:
        options_begin(state, children, state->input, NULL);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "\"%s\" is too much: it lists all devices", arg);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* What is only known of an open device. */
struct facts { int opens; unsigned types; char family[16], arch[32]; };

static struct facts facts_of(const char *spec)
{
    struct facts f = { .opens = 0 };
    vn_device *d;

    if (vn_device_open(&d, spec))
        return f;
    f.opens = 1;
    f.types = d->facts.types;
    snprintf(f.family, sizeof f.family, "%s", d->facts.family);
    snprintf(f.arch, sizeof f.arch, "%s", d->facts.arch);
    vn_device_close(d);
    return f;
}

static void default_spec(char out[32])
{
    vn_device *d;
    vn_device_info info;

    *out = 0;
    if (vn_device_open(&d, NULL))
        return;
    if (!vn_device_describe(&info, d))
        snprintf(out, 32, "%s", info.spec);
    vn_device_close(d);
}

static json_t *json_types(unsigned types)
{
    json_t *const out = json_array();

    for (int t = 0; t < VN_TYPE_COUNT; t++)
        if (types >> t & 1)
            json_array_append_new(out, json_string(vn_type_name((vn_type)t)));
    return out;
}

static json_t *json_device(const vn_device_info *i, const struct facts *f, int is_default)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:b, s:s, s:s, s:o, s:b}",
        "spec", i->spec, "name", i->name, "vendor", i->vendor, "platform", i->platform, "driver", i->driver,
        "compute_units", i->compute_units, "memory", (json_int_t)i->memory,
        "local_memory", (json_int_t)i->local_memory, "is_cpu", i->is_cpu,
        "family", f->family, "arch", f->arch, "types", json_types(f->types), "default", is_default);
}

static void print_device(FILE *to, const vn_device_info *i, const struct facts *f, int is_default)
{
    char memory[CELL], local[CELL];

    fprintf(to, "%-10s %c %s\n", i->spec, is_default ? '*' : ' ', i->name);
    fprintf(to, "             %s, %s\n", i->platform, i->driver);
    if (!f->opens) {
        fprintf(to, "             cannot be opened: %s\n", vn_last_error());
        return;
    }
    bytes_text(memory, (double)i->memory);
    bytes_text(local, (double)i->local_memory);
    fprintf(to, "             %d compute unit%s, %s of memory, %s of local memory\n             ",
            i->compute_units, i->compute_units == 1 ? "" : "s", memory, local);
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        if (f->types >> t & 1)
            fprintf(to, "%s ", vn_type_name((vn_type)t));
    fprintf(to, " (family %s%s%s)\n", f->family, *f->arch ? ", " : "", f->arch);
}

const struct argp devices_parser = { NULL, parse, NULL, doc, children, NULL, NULL };

int devices_main(int argc, char **argv)
{
    struct common r = { .json = NULL };
    char chosen[32];

    if (argp_parse(&devices_parser, argc, argv, 0, NULL, &r))
        return EXIT_USAGE;

    const int count = vn_device_count();
    FILE *const to = report_stream(r.json);
    json_t *const all = json_array();

    if (count == 0)
        return device_open(&(vn_device *){ NULL }, NULL, NULL);
    default_spec(chosen);
    for (int i = 0; i < count; i++) {
        vn_device_info info;

        if (vn_device_get(&info, i)) {
            complain("%s", vn_last_error());
            continue;
        }

        const struct facts f = facts_of(info.spec);

        print_device(to, &info, &f, !strcmp(info.spec, chosen));
        json_array_append_new(all, json_device(&info, &f, !strcmp(info.spec, chosen)));
    }
    if (r.json)
        return report_json(json_pack("{s:o}", "devices", all), r.json) ? EXIT_FAILURE : 0;
    json_decref(all);
    return 0;
}
