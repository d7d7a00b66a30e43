/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c - words of the command line that several commands read alike.
 */
#include <stdlib.h>
#include <string.h>
#include "options.h"
#include "vernier.h"

int64_t option_count(const struct argp_state *state, const char *option, const char *arg)
{
    char *end;
    const long long v = strtoll(arg, &end, 10);

    if (*end || end == arg || v < 1 || v > 1 << 30)
        argp_error(state, "--%s is \"%s\", and must be a number from 1 to %d", option, arg, 1 << 30);
    return v;
}

int option_type(const struct argp_state *state, const char *arg)
{
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        if (!strcmp(vn_type_name((vn_type)t), arg))
            return t;
    argp_error(state, "--type is \"%s\", and must be f32, f16, bf16 or f64", arg);
    return -1;
}

double option_seconds(const struct argp_state *state, const char *option, const char *arg)
{
    static const struct { const char *unit; double seconds; } units[] = {
        { "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "m", 60 }, { "min", 60 }, { "h", 3600 } };
    char *end;
    const double v = strtod(arg, &end);

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end != arg && !strcmp(end, units[i].unit) && v > 0 && v * units[i].seconds < 1e9)
            return v * units[i].seconds;
    argp_error(state, "--%s is \"%s\", and must be a time above 0: 30, 60s, 10m or 2h", option, arg);
    return 0;
}
