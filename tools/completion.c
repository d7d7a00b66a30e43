/* SPDX-License-Identifier: Apache-2.0
 *
 * completion.c - vernier completion: a script that makes bash complete the command's words.
 *
 * It is made of the tables that the command itself works with: its subcommands, the options of their parsers,
 * and the suites.
 */
#include <argp.h>
#include <stdio.h>
#include <string.h>
#include "commands.h"
#include "problem/op.h"
#include "problem/workloads.h"

static const char doc[] =
    "Prints a script for bash, which completes subcommands, options, their values where they are one of a "
    "few, and suites."
    "\v"
    "  source <(vernier completion)\n"
    "\n"
    "An installed command has it where bash-completion looks for it.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key == ARGP_KEY_ARG)
        argp_error(state, "it takes no words");
    return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

const struct argp completion_parser = { NULL, parse, NULL, doc, NULL, NULL, NULL };

/* Options whose value is one of a few, or the name of a file; all others have values of their own. */
static const struct { const char *option, *values; } valued[] = {
    { "--type",    "-W 'f32 f16 bf16 f64'" },
    { "--compare", "-W 'onednn onednn-plain openblas clblast cublas cudnn torch none'" },
    { "--device",  "-W 'cpu gpu opencl:0 cuda:0'" },
    { "--json",    "-f" }, { "--csv", "-f" }, { "--html", "-f" }, { "--tap", "-f" }, { "--junit", "-f" },
    { "--svg",     "-d" },
};

static void print_options(const struct argp *parser)
{
    for (const struct argp_option *o = parser->options; o && (o->name || o->key || o->doc); o++)
        if (o->name && !(o->flags & OPTION_HIDDEN))
            printf(" --%s", o->name);
    for (const struct argp_child *c = parser->children; c && c->argp; c++)
        print_options(c->argp);
}

/* "squares, llama31 and overhead" as words. */
static void print_words(const char *text)
{
    for (; *text; text++)
        if (!strncmp(text, " and ", 5) || !strncmp(text, " or ", 4)) {
            putchar(' ');
            text += strcspn(text + 1, " ") + 1;
        } else if (*text != ',')
            putchar(*text);
}

static void print_arguments(const struct argp *parser)
{
    char operations[128];

    if (parser == &cache_parser)
        printf("size list clear prune");
    else if (parser == &check_parser)
        print_words(op_list(operations));
    else if (parser->args_doc && strstr(parser->args_doc, "WHAT"))
        print_words(workloads_suites());
}

int completion_main(int argc, char **argv)
{
    if (argp_parse(&completion_parser, argc, argv, 0, NULL, NULL))
        return EXIT_USAGE;
    puts("# bash completion of vernier, made by `vernier completion`\n"
         "_vernier()\n"
         "{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" = 1 ]; then");
    printf("        words='");
    for (const struct command *c = commands; c->name; c++)
        printf("%s ", c->name);
    puts("--help --version'\n"
         "    else\n"
         "        case $before in");
    for (size_t i = 0; i < sizeof valued / sizeof *valued; i++)
        printf("        %s) COMPREPLY=($(compgen %s -- \"$word\")); return ;;\n", valued[i].option,
               valued[i].values);
    puts("        esac\n"
         "        case ${COMP_WORDS[1]} in");
    for (const struct command *c = commands; c->name; c++) {
        printf("        %s) words='", c->name);
        print_arguments(c->parser);
        print_options(c->parser);
        puts(" --help' ;;");
    }
    puts("        esac\n"
         "    fi\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "    if [ \"${COMP_WORDS[1]}\" = compare ] && [[ $word != -* ]]; then\n"
         "        COMPREPLY+=($(compgen -f -- \"$word\"))\n"
         "    fi\n"
         "}\n"
         "complete -o filenames -F _vernier vernier");
    return 0;
}
