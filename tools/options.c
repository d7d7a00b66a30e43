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

double option_amount(const struct argp_state *state, const char *option, const char *arg)
{
    char *end;
    const double v = strtod(arg, &end);

    if (*end || end == arg || !(v > 0))
        argp_error(state, "--%s is \"%s\", and must be a number above 0, as 1e9 is", option, arg);
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

/* ---- what several commands share ---- */

enum { COMPARE = 640, BUDGET };                         /* the commands' own begin at 256 */

static const struct argp_option device_options[] = {
    { "device", 'd', "SPEC", 0,
      "Use this device (see vernier devices); else $VERNIER_DEVICE, else the fastest", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};
static const struct argp_option json_options[] = {
    { "json", 'j', "FILE", 0,
      "Write the report as JSON too; - is standard output, the text then goes to stderr", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};
static const struct argp_option compare_options[] = {
    { "compare", COMPARE, "NAMES", 0,
      "Measure these libraries beside ours, in turns: onednn, onednn-plain, openblas, clblast, "
      "cublas, cudnn, torch; or none", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};
static const struct argp_option budget_options[] = {
    { "budget", BUDGET, "SECONDS", 0, "Time to spend on a row, after the first runs; 2 unless said", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    struct common *const c = state->input;

    switch (key) {
    case 'd':    c->device = arg;                                 return 0;
    case 'j':    c->json = arg;                                   return 0;
    case BUDGET: c->budget = option_seconds(state, "budget", arg); return 0;
    case COMPARE:
        if (snprintf(c->compare, sizeof c->compare, "%s", arg) >= (int)sizeof c->compare)
            argp_error(state, "--compare is too long");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

const struct argp device_argp  = { device_options, parse_common, NULL, NULL, NULL, NULL, NULL };
const struct argp json_argp    = { json_options, parse_common, NULL, NULL, NULL, NULL, NULL };
const struct argp compare_argp = { compare_options, parse_common, NULL, NULL, NULL, NULL, NULL };
const struct argp budget_argp  = { budget_options, parse_common, NULL, NULL, NULL, NULL, NULL };

void options_begin(struct argp_state *state, const struct argp_child *children, struct common *common,
                   struct work *work)
{
    for (int i = 0; children[i].argp; i++)
        state->child_inputs[i] = children[i].argp == &work_argp ? (void *)work : common;
}

/* ---- what to work on ---- */

enum { FILTER = 512, TOKENS, BATCH, WITH };

static const struct argp_option work_options[] = {
    { "type",   't',    "TYPE", 0, "f32, f16, bf16 or f64, for every problem", 0 },
    { "filter", FILTER, "TEXT", 0, "Only the rows of a suite whose name or problem has this text in it", 0 },
    { "tokens", TOKENS, "N",    0, "Rows of llama31's activations; else 1, 16, 128 and 2048", 0 },
    { "batch",  BATCH,  "N",    0, "Images of a convolution, batches of a GEMM", 0 },
    { "with",   WITH,   "WORDS", 0, "Add these words to each problem, as nhwc or bias=row:act=relu", 0 },
    { NULL, 0, NULL, 0, NULL, 0 }
};

static error_t parse_work(int key, char *arg, struct argp_state *state)
{
    struct work *const w = state->input;

    switch (key) {
    case 't':    w->options.type   = option_type(state, arg);            return 0;
    case FILTER: w->options.filter = arg;                                return 0;
    case WITH:   w->options.with   = arg;                                return 0;
    case TOKENS: w->options.tokens = option_count(state, "tokens", arg); return 0;
    case BATCH:  w->options.batch  = option_count(state, "batch", arg);  return 0;
    case ARGP_KEY_ARG:
        if (w->whats == WORK_MOST)
            argp_error(state, "at most %d things at a time", WORK_MOST);
        w->what[w->whats++] = arg;
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

const struct argp work_argp = { work_options, parse_work, NULL, NULL, NULL, NULL, NULL };
