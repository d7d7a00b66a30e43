/* SPDX-License-Identifier: Apache-2.0
 *
 * workloads.c - suites: each row of a CSV file becomes one or more problems.
 *
 * A row is written in the little language and read back by problem_parse(), so that a suite
 * can hold nothing that a user could not type.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "op.h"
#include "workloads.h"

enum { LINE = 512, FIELDS = 16 };

struct csv {
    FILE *file;
    char  path[256], head[LINE], line[LINE];
    int   titles, fields, row;
    char *title[FIELDS], *field[FIELDS];
    char *why;                        /* a missing column or a bad number says so here */
    size_t why_size;
    int   failed;
};

/* ---- CSV: no quotes, a line of titles first ---- */

static int split(char **out, char *line)
{
    int n = 0;

    line[strcspn(line, "\r\n")] = 0;
    for (char *at = line; at && n < FIELDS; n++)
        out[n] = strsep(&at, ",");
    return n;
}

static int csv_next(struct csv *c)
{
    while (fgets(c->line, sizeof c->line, c->file)) {
        c->row++;
        c->fields = split(c->field, c->line);
        if (c->fields > 1 || *c->field[0])
            return 1;
    }
    return 0;
}

static const char *csv_text(struct csv *c, const char *title)
{
    for (int i = 0; i < c->titles && i < c->fields; i++)
        if (!strcmp(c->title[i], title))
            return c->field[i];
    if (!c->failed++)
        snprintf(c->why, c->why_size, "%s, row %d: there is no \"%s\"", c->path, c->row, title);
    return "";
}

static int64_t csv_number(struct csv *c, const char *title)
{
    const char *const text = csv_text(c, title);
    char *end;
    const int64_t v = strtoll(text, &end, 10);

    if ((end == text || *end || v < 0) && !c->failed++)
        snprintf(c->why, c->why_size, "%s, row %d: %s is \"%s\", and must be a number",
                 c->path, c->row, title, text);
    return v;
}

/* ---- the suites ---- */

static int add(struct workloads *w, const char *text, const char *label, const struct workload_options *o,
               char *why, size_t why_size);

struct expansion {
    struct workloads *to;
    struct csv       *csv;
    const struct workload_options *o;
};

static int64_t batch_of(const struct expansion *e, int64_t usual)
{
    return e->o->batch > 0 ? e->o->batch : usual;
}

static int expand_text(const struct expansion *e, const char *text, const char *label)
{
    return e->csv->failed ? -1 : add(e->to, text, label, e->o, e->csv->why, e->csv->why_size);
}

static int expand_square(const struct expansion *e)
{
    const int64_t n = csv_number(e->csv, "n");
    char text[PROBLEM_TEXT];

    snprintf(text, sizeof text, "gemm:%" PRId64 "x%" PRId64 "x%" PRId64 ":f32:nn", n, n, n);
    return expand_text(e, text, "");
}

/* DeepBench counts columns first, as cuBLAS does: its C := op(A) op(B) is our C' := op(B)' op(A)'. */
static int expand_deepbench_gemm(const struct expansion *e)
{
    struct csv *const c = e->csv;
    char text[PROBLEM_TEXT];

    snprintf(text, sizeof text, "gemm:%" PRId64 "x%" PRId64 "x%" PRId64 ":f32:%c%c",
             csv_number(c, "n"), csv_number(c, "m"), csv_number(c, "k"),
             "nt"[csv_number(c, "tb") != 0], "nt"[csv_number(c, "ta") != 0]);
    return expand_text(e, text, "");
}

/* y := x W', W as it is stored: outputs x inputs. */
static int expand_llama(const struct expansion *e)
{
    static const int64_t sweep[] = { 1, 16, 128, 2048 };
    const int64_t *const tokens = e->o->tokens > 0 ? &e->o->tokens : sweep;
    const int count = e->o->tokens > 0 ? 1 : 4;
    struct csv *const c = e->csv;

    for (int i = 0; i < count; i++) {
        char text[PROBLEM_TEXT], label[LABEL];

        snprintf(label, sizeof label, "%s/%.*s", csv_text(c, "model"),
                 (int)strcspn(csv_text(c, "layer"), "("), csv_text(c, "layer"));
        snprintf(text, sizeof text, "gemm:%" PRId64 "x%" PRId64 "x%" PRId64 ":f32:nt",
                 tokens[i], csv_number(c, "n_out"), csv_number(c, "k_in"));
        if (expand_text(e, text, label))
            return -1;
    }
    return 0;
}

static int expand_conv(const struct expansion *e, int64_t images, const char *label)
{
    struct csv *const c = e->csv;
    char text[PROBLEM_TEXT];

    snprintf(text, sizeof text,
             "conv:n%" PRId64 "c%" PRId64 "h%" PRId64 "w%" PRId64 "k%" PRId64 "r%" PRId64 "s%" PRId64
             ":f32:pad=%" PRId64 "x%" PRId64 ":stride=%" PRId64 "x%" PRId64,
             batch_of(e, images), csv_number(c, "c"), csv_number(c, "h"), csv_number(c, "w"),
             csv_number(c, "k"), csv_number(c, "r"), csv_number(c, "s"),
             csv_number(c, "pad_h"), csv_number(c, "pad_w"),
             csv_number(c, "stride_h"), csv_number(c, "stride_w"));
    return expand_text(e, text, label);
}

static int expand_resnet(const struct expansion *e)
{
    return expand_conv(e, 1, csv_text(e->csv, "name"));
}

static int expand_deepbench_conv(const struct expansion *e)
{
    return expand_conv(e, csv_number(e->csv, "n"), "");
}

static int expand_softmax(const struct expansion *e)
{
    char text[PROBLEM_TEXT];

    snprintf(text, sizeof text, "softmax:%" PRId64 "x%" PRId64 ":f32",
             csv_number(e->csv, "rows"), csv_number(e->csv, "n"));
    return expand_text(e, text, "");
}

/* Rows that say the problem themselves. */
static int expand_problem(const struct expansion *e)
{
    return expand_text(e, csv_text(e->csv, "problem"), csv_text(e->csv, "label"));
}

static const struct suite {
    const char *name, *file;
    int       (*expand)(const struct expansion *e);
    int         is_sequence;             /* its rows are layers, run one after the other */
} suites[] = {
    { "squares",          "squares.csv",            expand_square,         0 },
    { "resnet50",         "resnet50_v1_5_conv.csv", expand_resnet,         0 },
    { "resnet50-network", "resnet50_network.csv",   expand_problem,        1 },
    { "mobilenet",        "mobilenet.csv",          expand_problem,        0 },
    { "unet3d",           "unet3d.csv",             expand_problem,        0 },
    { "wavenet",          "wavenet.csv",            expand_problem,        0 },
    { "llama31",          "llama31_matmul.csv",     expand_llama,          0 },
    { "deepbench-gemm",   "deepbench_gemm.csv",     expand_deepbench_gemm, 0 },
    { "deepbench-conv",   "deepbench_conv.csv",     expand_deepbench_conv, 0 },
    { "epilogues",        "epilogues.csv",          expand_problem,        0 },
    { "mixed",            "mixed.csv",              expand_problem,        0 },
    { "batched",          "batched.csv",            expand_problem,        0 },
    { "softmax-rows",     "softmax_rows.csv",       expand_softmax,        0 },
    { "attention",        "attention.csv",          expand_problem,        0 },
    { "decode",           "decode.csv",             expand_problem,        0 },
    { "cross-entropy",    "cross_entropy.csv",      expand_problem,        0 },
    { NULL, NULL, NULL, 0 }
};

const char *workloads_suites(void)
{
    return "squares, resnet50, resnet50-network, mobilenet, unet3d, wavenet, llama31, deepbench-gemm, "
           "deepbench-conv, epilogues, mixed, batched, softmax-rows, attention, decode, cross-entropy";
}

/* Beside the program, where it was built; NULL if there are none, or if they may be somebody else's. */
static const char *own_folder(char *out, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", out, size - 1);
    struct stat program, folder;
    char *last;

    out[n > 0 ? n : 0] = '\0';
    if (!(last = strrchr(out, '/')) || (size_t)(last - out) + sizeof "/suites" > size || stat(out, &program))
        return NULL;
    strcpy(last, "/suites");
    return stat(out, &folder) || folder.st_uid != program.st_uid || folder.st_mode & S_IWOTH ? NULL : out;
}

static FILE *open_suite(char *path, size_t size, const char *file)
{
    char own[256];
    const char *const folders[] = { getenv("VERNIER_SUITES"), own_folder(own, sizeof own), INSTALLED_SUITES };

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        FILE *f;

        if (!folders[i] || snprintf(path, size, "%s/%s", folders[i], file) >= (int)size)
            continue;
        if ((f = fopen(path, "r")))
            return f;
    }
    return NULL;
}

static int expand_suite(struct workloads *w, const struct suite *s, const struct workload_options *o,
                        char *why, size_t why_size)
{
    struct csv csv = { .why = why, .why_size = why_size };
    const struct expansion e = { w, &csv, o };
    const int before = w->count;
    int failed = 0;

    if (!(csv.file = open_suite(csv.path, sizeof csv.path, s->file))) {
        snprintf(why, why_size, "the suite %s is not there: neither $VERNIER_SUITES nor %s has %s",
                 s->name, INSTALLED_SUITES, s->file);
        return -1;
    }
    if (fgets(csv.head, sizeof csv.head, csv.file)) {
        csv.titles = split(csv.title, csv.head);
        csv.row = 1;
    }
    w->is_sequence = s->is_sequence && o->sequences;
    while (!failed && csv_next(&csv))
        failed = s->expand(&e);
    fclose(csv.file);
    for (int i = before; i < w->count; i++)
        w->it[i].suite = s->name;
    return failed;
}

/* ---- the list ---- */

static void override(struct problem *p, const struct workload_options *o)
{
    if (o->type >= 0)
        p->type = (vn_type)o->type;
    if (o->direction >= 0 && p->op->directions >> o->direction & 1)
        p->direction = (enum direction)o->direction;
    if (o->batch > 0 && p->op->batch)
        memcpy((char *)p + p->op->batch, &o->batch, sizeof o->batch);
    if (o->variant)
        snprintf(p->variant, sizeof p->variant, "%s", o->variant);
}

/* Layers of one shape are measured once, under both names. */
static int add_label(struct workloads *w, const struct workload *it)
{
    for (int i = 0; i < w->count; i++) {
        struct workload *const same = &w->it[i];
        const size_t length = strlen(same->label);

        if (strcmp(same->text, it->text))
            continue;
        snprintf(same->label + length, sizeof same->label - length, ", %s", it->label);
        return 1;
    }
    return 0;
}

/* A problem's text, with the words that are to be added to each. */
static int read_problem(struct problem *out, const char *text, const struct workload_options *o, char *why,
                        size_t why_size)
{
    char all[2 * PROBLEM_TEXT];

    snprintf(all, sizeof all, "%s%s%s", text, o->with ? ":" : "", o->with ? o->with : "");
    return problem_parse(out, all, why, why_size);
}

static int add_one(struct workloads *w, const char *text, const char *label, const struct workload_options *o,
                   char *why, size_t why_size)
{
    struct workload it = { .suite = "" };

    if (read_problem(&it.problem, text, o, why, why_size))
        return -1;
    override(&it.problem, o);
    problem_format(it.text, &it.problem);
    snprintf(it.label, sizeof it.label, "%s", label);
    if (o->filter && !strstr(it.text, o->filter) && !strstr(it.label, o->filter))
        return 0;
    if (*label && !w->is_sequence && add_label(w, &it))
        return 0;
    if (w->count == w->room) {
        const int room = w->room ? 2 * w->room : 64;
        struct workload *const more = realloc(w->it, room * sizeof *more);

        if (!more) {
            snprintf(why, why_size, "host memory ran out");
            return -1;
        }
        w->it   = more;
        w->room = room;
    }
    w->it[w->count++] = it;
    return 0;
}

static int add(struct workloads *w, const char *text, const char *label, const struct workload_options *o,
               char *why, size_t why_size)
{
    struct workload_options each = *o;
    struct problem p;

    if (o->direction != ALL_DIRECTIONS)
        return add_one(w, text, label, o, why, why_size);
    if (read_problem(&p, text, o, why, why_size))
        return -1;
    if (!p.op->directions) {
        each.direction = -1;
        return add_one(w, text, label, &each, why, why_size);
    }
    for (each.direction = 0; each.direction < DIRECTIONS; each.direction++)
        if (p.op->directions >> each.direction & 1 && add_one(w, text, label, &each, why, why_size))
            return -1;
    return 0;
}

int workloads_add(struct workloads *w, const char *what, const struct workload_options *o,
                  char *why, size_t why_size)
{
    for (const struct suite *s = suites; s->name; s++)
        if (!strcmp(s->name, what))
            return expand_suite(w, s, o, why, why_size);
    if (strchr(what, ':'))
        return add(w, what, "", o, why, why_size);
    snprintf(why, why_size, "\"%s\" is neither a problem, as gemm:64x64x64:f32:nn is, nor a suite "
             "(%s, overhead)", what, workloads_suites());
    return -1;
}

void workloads_sequence(struct workload *out, const struct workloads *w)
{
    char first[PROBLEM_TEXT];

    *out = w->it[0];
    memcpy(first, out->text, sizeof first);
    snprintf(out->text, sizeof out->text, "sequence:%s:%d:%.180s", out->suite, w->count, first);
    *out->label = '\0';
    out->layers = w->count;
}

void workloads_close(struct workloads *w)
{
    free(w->it);
    *w = (struct workloads){ NULL, 0, 0, 0 };
}
