/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the command vernier: finds the subcommand and hands it its words.
 */
#include <argp.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "commands.h"
#include "report/errors.h"

const struct command commands[] = {
    { "devices",    "vernier devices",    &devices_parser,     devices_main    },
    { "bench",      "vernier bench",      &bench_parser,       bench_main      },
    { "check",      "vernier check",      &check_parser,       check_main      },
    { "explain",    "vernier explain",    &explain_parser,     explain_main    },
    { "gap",        "vernier gap",        &gap_parser,         gap_main        },
    { "compare",    "vernier compare",    &compare_parser,     compare_main    },
    { "tune",       "vernier tune",       &tune_parser,        tune_main       },
    { "choice",     "vernier choice",     &choice_parser,      choice_main     },
    { "warm",       "vernier warm",       &warm_parser,        warm_main       },
    { "cache",      "vernier cache",      &cache_parser,       cache_main      },
    { "completion", "vernier completion", &completion_parser,  completion_main },
    { NULL, NULL, NULL, NULL }
};

static const char doc[] =
    "GEMM, convolution, softmax and cross-entropy on any OpenCL device.\n"
    "\n"
    "  devices   list the devices and what they can do\n"
    "  bench     measure problems and standard suites, beside other libraries\n"
    "  check     test the results on a device\n"
    "  explain   run one problem and say how it ran, and why so\n"
    "  gap       measure one GPU through OpenCL and through CUDA, and report the gaps\n"
    "  compare   set two reports of bench or gap side by side\n"
    "  tune      search better kernel parameters for a device, and keep them\n"
    "  choice    time every way to solve a problem, beside the one that the library chooses\n"
    "  warm      build the kernels of problems and suites, for later processes\n"
    "  cache     say how large the cache of built kernels is, list it, clear it\n"
    "  completion  print what makes bash complete these words\n"
    "\n"
    "Each has its own --help; vernier(1) says how problems are named."
    "\v"
    "Exit status: 0, 1 if something went wrong, 2 if nothing could be tried.\n"
    "\n"
    "  vernier devices\n"
    "  vernier bench gemm:1024x1024x1024:f32:nn\n"
    "  vernier bench resnet50 --compare onednn\n"
    "  vernier check --quick\n"
    "  vernier explain conv:n1c64h56w56k64r3s3:f32:pad=1\n"
    "  vernier gap squares --html report.html\n"
    "  vernier compare before.json after.json\n"
    "  vernier tune gemm:3000x3000x3000:f32:nn --budget 60s\n"
    "  vernier choice squares --random 100\n"
    "  vernier warm llama31 --type f16\n"
    "  vernier cache prune --days 90";

void complain(const char *sentence, ...)
{
    char text[4096];
    va_list args;

    va_start(args, sentence);
    vsnprintf(text, sizeof text, sentence, args);
    va_end(args);
    fprintf(errors_stream(), "vernier: %s\n", errors_clean(text));
}

int device_open(vn_device **out, vn_queue **queue, const char *spec)
{
    const vn_status s = vn_device_open(out, spec);

    if (s) {
        complain("%s", vn_last_error());
        if (s == VN_NO_DEVICE && vn_device_count() > 0)
            fputs("`vernier devices` lists those that there are.\n", errors_stream());
        return s == VN_NO_DEVICE ? EXIT_USAGE : EXIT_FAILURE;
    }
    if (queue && vn_queue_open(queue, *out)) {
        complain("%s", vn_last_error());
        vn_device_close(*out);
        return EXIT_FAILURE;
    }
    return 0;
}

static const struct command *command_named(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    int *const status = state->input;

    switch (key) {
    case ARGP_KEY_ARG: {
        const struct command *const c = command_named(arg);
        char **const argv = state->argv + state->next - 1;

        if (!c)
            argp_error(state, "there is no command \"%s\": devices, bench, check, explain, gap, compare, "
                              "tune, choice, warm, cache or completion", arg);
        argv[0] = (char *)c->title;
        errors_keep();
        *status = c->run(state->argc - state->next + 1, argv);
        state->next = state->argc;
        return 0;
    }
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which command? devices, bench, check, explain, gap, compare, tune, choice, "
                          "warm, cache or completion");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static void print_version(FILE *to, struct argp_state *state)
{
    (void)state;
    fprintf(to, "vernier %s\n", vn_version());
}

/* A file that is opened must not get the number of a standard stream that is closed, and its text.  What
 * takes that place refuses reads or writes, as a closed one does.                                      */
static void hold_streams(void)
{
    static const int how[] = { O_WRONLY, O_RDONLY, O_RDONLY };

    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", how[fd]) != fd)
            exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    const struct argp argp = { .parser = parse, .args_doc = "COMMAND [WORD...]", .doc = doc };
    int status = 0;

    hold_streams();
    argp_program_version_hook = print_version;
    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &status))
        return EXIT_USAGE;
    if (fflush(stdout) || ferror(stdout)) {
        complain("standard output cannot be written");
        status = status ? status : EXIT_FAILURE;
    }
    errors_tell(status);
    return status;
}
