/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tuner.c - a race among the rows of a variant made up here, whose rows say how long they
 * take and what is wrong with them: the fastest right one wins, an interrupted race goes on, and
 * the user's file is changed in one line.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "../disk.h"
#include "gemm/gemm.h"
#include "measure/dictated.h"
#include "tune/tune.h"

static int cases, failures, complaints;

__attribute__((format(printf, 2, 3)))
static void check(int good, const char *what, ...)
{
    va_list ap;

    cases++;
    if (good)
        return;
    failures++;
    printf("FAIL tuner: ");
    va_start(ap, what);
    vprintf(what, ap);
    va_end(ap);
    printf("\n");
}

/* Of main.c, in the command: a wrong row is complained of. */
void complain(const char *sentence, ...)
{
    (void)sentence;
    complaints++;
}

/* ---- a variant whose rows have a speed and a fault ---------------------------------- */

enum { MILLISECONDS, FAULT, PARAMS, LIMIT = 1 << 20 };
enum fault { RIGHT, WRONG, WRONG_WHERE_ODD, IDLE, REFUSED, UNFIT, FAULTS };

static const char *fits_all(const void *problem, const struct vn_facts *f)
{
    (void)problem;
    (void)f;
    return NULL;
}

static const char *plan(struct vn_plan *out, const void *problem, const struct vn_row *row,
                        const struct vn_site *site)
{
    (void)problem;
    (void)site;
    out->workspace = row->p[FAULT] == UNFIT ? 2 * LIMIT : 0;
    return NULL;
}

/* Seconds that have gone by: by this clock what else the machine does takes none. */
static double elapsed;
static int    runs;

double __wrap_vn__seconds(void);
double __wrap_vn__seconds(void)
{
    return elapsed += 1e-7;
}

/* Small problems have odd sizes, those that are tuned even ones, some with an activation. */
static void constants_of(int *c, const void *problem)
{
    c[0] = (int)(((const struct gemm *)problem)->n % 2);
}

static int is_built_for(const struct vn_choice *it, const struct gemm *g)
{
    const struct vn_epilogue epilogue = vn__epilogue_of(it->variant, g);
    int odd;

    constants_of(&odd, g);
    return it->c[0] == odd && (!odd || !memcmp(&it->epilogue, &epilogue, sizeof epilogue));
}

/* The row's own time, then the product, by the variant that every device can: twice that, where
 * it is to be wrong, or its kernels are built for another problem.                            */
static vn_status run(vn_queue *q, const struct vn_choice *it, const void *problem,
                     const struct vn_plan *unused)
{
    struct gemm g = *(const struct gemm *)problem;
    const struct vn_choice *worker;
    const struct vn_plan *its_plan;
    const int fault = it->p[FAULT];
    vn_status s;

    (void)unused;
    runs++;
    if (fault == REFUSED)
        return vn__fail(VN_FAILED, "this row is refused");
    elapsed += 2e-4 + 1e-3 * it->p[MILLISECONDS];
    if (fault == IDLE)
        return VN_OK;
    if (fault == WRONG || (fault == WRONG_WHERE_ODD && g.n % 16) || !is_built_for(it, &g))
        g.alpha *= 2;
    s = vn__choose(&worker, &its_plan, q, vn__gemm_variants, &g, sizeof g, "gemm");
    return s ? s : worker->variant->run(q, worker, &g, its_plan);
}

static const struct vn_variant made_up = {
    .name = "made_up", .fits = fits_all, .plan = plan, .run = run,
    .texts = "", .entries = "", .params = "MILLISECONDS FAULT",
    .constants = "ODD 0 1", .constants_of = constants_of
};

static const struct space all_rows = {
    .params = PARAMS, .name = { "MILLISECONDS", "FAULT" }, .count = { 5, FAULTS },
    .value = { { 0, 1, 2, 4, 6 }, { RIGHT, WRONG, WRONG_WHERE_ODD, IDLE, REFUSED, UNFIT } }
};

/* ---- the costs of a row that no file has --------------------------------------------- */

static int costs;

static const char *note_costs(struct vn_plan *out, const void *problem, const struct vn_row *row,
                              const struct vn_site *site)
{
    (void)problem;
    (void)site;
    out->v[0] = row->p[0];
    costs = 0;
    for (int i = 0; i < VN_COSTS; i++)
        costs += row->cost[i];
    return NULL;
}

static void plan_new_row(struct suite *s)
{
    static struct vn_variant known;           /* its rows are kept until the device is closed */
    const struct vn_choice new = { .variant = &known, .p = { 7 } };
    const struct gemm g = { .head = { .op = "conv", .type = VN_F32 } };
    struct vn_plan p;

    for (const struct vn_variant *v = vn__conv_variants; v->name; v++)
        if (!strcmp(v->name, "conv_slab"))
            known = *v;
    known.plan = note_costs;
    check(!vn__plan(&p, s->queue, &new, &g) && p.v[0] == 7, "a new row: %s", vn_last_error());
    check(costs > 0, "a new row has no costs");
}

/* ---- races --------------------------------------------------------------------------- */

static volatile int interrupted;
static int          stop_after;           /* so many rows; 0: not */

static void count_rows(const struct race *r)
{
    interrupted = stop_after && r->measured + r->illegal + r->wrong >= stop_after;
}

static struct race race_of(struct suite *s, struct journal *j, const char *const *problems, int count)
{
    struct race r = { .suite = s, .journal = j, .variant = &made_up, .type = VN_F32, .bucket = VN_SMALL,
                      .space = all_rows, .seconds = 60, .shipped = { 4, RIGHT }, .current = { 6, RIGHT },
                      .current_source = "user", .progress = count_rows, .interrupted = &interrupted };
    char why[TUNE_WHY];

    interrupted = 0;
    r.it    = calloc((size_t)count, sizeof *r.it);
    r.count = r.it ? count : 0;
    for (int i = 0; i < r.count; i++) {
        r.it[i].build.variant = &made_up;
        snprintf(r.it[i].text, PROBLEM_TEXT, "%s", problems[i]);
        check(!problem_parse(&r.it[i].problem, problems[i], why, sizeof why), "%s", why);
    }
    return r;
}

static int is_best(const struct race *r, int milliseconds)
{
    return r->best.p[MILLISECONDS] == milliseconds && r->best.p[FAULT] == RIGHT;
}

/* Twice: it ends after 5 rows, then it goes on from there. */
static void race_to_the_end(struct suite *s, struct journal *j, const char *const *problems, int count)
{
    struct race r = race_of(s, j, problems, count);

    stop_after = 5;
    check(!race_run(&r), "the first part: %s", r.why);
    check(interrupted && r.measured + r.illegal + r.wrong < 12, "it is not interrupted after 5 rows, but %d",
          r.measured + r.illegal + r.wrong);
    const int before = r.measured + r.illegal + r.wrong;
    race_close(&r);

    stop_after = 0;
    r = race_of(s, j, problems, count);
    check(!race_run(&r), "the second part: %s", r.why);
    check(r.known >= before, "%d of %d measurements are known again", r.known, before);
    check(is_best(&r, 0), "the best row is %d %d", r.best.p[0], r.best.p[1]);
    check(r.wrong && r.illegal, "%d rows are wrong, %d illegal", r.wrong, r.illegal);
    check(r.best.score < 0.5, "its score is %g", r.best.score);
    check(race_decide(&r) == 1 && is_best(&r, 0) && r.gain > 2, "the best row wins by %g: %s", r.gain, r.why);
    check(r.it[0].winner > 0 && r.it[0].winner < r.it[0].current, "it takes %g s, and the one in use %g",
          r.it[0].winner, r.it[0].current);
    race_close(&r);

    r = race_of(s, j, problems, count);
    check(!race_run(&r) && is_best(&r, 0), "a third time");
    check(!r.measured && !r.illegal && !r.wrong, "nothing is measured twice, but %d",
          r.measured + r.illegal + r.wrong);
    race_close(&r);
}

/* Whatever was in use stays, where nothing is faster. */
static void race_for_nothing(struct suite *s, struct journal *j)
{
    static const char *const problem = "gemm:24x32x16:f32:nt";
    struct race r = race_of(s, j, &problem, 1);

    r.current[MILLISECONDS] = 0;
    check(!race_run(&r) && race_decide(&r) == 0 && is_best(&r, 0), "the fastest row is in use already: %s",
          r.why);
    race_close(&r);
}

static void race_races(struct suite *s, const char *base)
{
    static const char *const one[] = { "gemm:64x48x32:f32:nn" };
    static const char *const two[] = { "gemm:64x48x31:f32:tn:beta=1",
                                       "gemm:16x16x100:f32:nn:bias=row:act=gelu" };
    char path[PATH + 32], why[TUNE_WHY];
    struct journal j;

    snprintf(path, sizeof path, "%s/user.tune.measured", base);
    check(!journal_open(&j, path, why, sizeof why), "%s", why);
    race_to_the_end(s, &j, one, 1);
    check(complaints > 0, "nobody complains of wrong rows");
    race_to_the_end(s, &j, two, 2);
    race_for_nothing(s, &j);
    journal_close(&j);
}

/* ---- the journal ------------------------------------------------------------------------- */

static double ratio_of(const struct journal *j, uint64_t key)
{
    const struct measurement *const m = journal_find(j, key, "p");

    return m ? m->ratio : 0;
}

static void keep_journals(const char *base)
{
    struct measurement m = { .key = 7, .problem = "p", .ratio = 0.5, .seconds = 2 };
    char path[PATH + 32], why[TUNE_WHY], text[4096] = "";
    struct journal j, other;

    snprintf(path, sizeof path, "%s/a/b/journal", base);
    check(!journal_open(&j, path, why, sizeof why), "%s", why);
    check(journal_open(&other, path, why, sizeof why) && strstr(why, "another"), "two tuners, one journal");
    check(!journal_begin(&j, 7, "p") && !ratio_of(&j, 7), "a row that has begun is not known");
    check(!journal_end(&j, &m, "a note\nof two lines"), "it ends");
    m.key = 8, m.ratio = INFINITY;
    check(!journal_end(&j, &m, "why"), "another is illegal");
    check(!journal_begin(&j, 9, "p") && !journal_begin(&j, 10, "p"), "two more begin");
    journal_close(&j);

    const size_t n = get(path, text, sizeof text - 1);          /* and a line that was cut off */
    put(path, text, (size_t)(n + (size_t)sprintf(text + n, "000000000000000b 0.25 1 ")));
    check(!journal_open(&j, path, why, sizeof why), "%s", why);
    check(ratio_of(&j, 7) == 0.5 && !journal_find(&j, 7, "q"), "what was measured");
    check(isinf(ratio_of(&j, 8)), "what is illegal");
    check(!ratio_of(&j, 9) && !ratio_of(&j, 10) && !ratio_of(&j, 11), "what did not end");
    check(!journal_begin(&j, 9, "p"), "it begins again");
    journal_close(&j);
    check(!journal_open(&j, path, why, sizeof why) && isinf(ratio_of(&j, 9)) && !ratio_of(&j, 10),
          "a row that was the end of two tuners is illegal");
    journal_close(&j);
}

/* ---- the user's file ----------------------------------------------------------------------- */

#define COLUMNS "columns softmax_cpu VEC BLOCK\n"
#define OURS    "softmax_cpu cpu/f32x8/A?CPU?of?1?core opencl f16 large  8 64  # good\n"

static const struct { const char *before, *after; } files[] = {
    { NULL,                                         COLUMNS OURS },
    { "",                                           COLUMNS OURS },
    { "# mine",                                     "# mine\n" COLUMNS OURS },
    { COLUMNS "softmax_cpu * * * * 1 2 # why\n",    COLUMNS OURS "softmax_cpu * * * * 1 2 # why\n" },
    { "softmax_cpu * * f64 * 1 2\n"
      "softmax_cpu cpu/f32x8/A?CPU?of?1?core\topencl  f16 large 4 4 # old\n"
      "gemm_dot_of_mine * * * * 1",
      OURS "softmax_cpu * * f64 * 1 2\ngemm_dot_of_mine * * * * 1\n" },
};

#define OTHERS  "columns costly BLK_M BLK_N | EFF TILE_NS\n" \
                "costly cpu/f32x8/A?CPU?of?1?core opencl f16 *  64 32 | 1 2  # good\n" \
                "costly cpu/f32x8/A?CPU?of?1?core opencl f16 *  16 16 | 6 7\n"

/* Alternatives, for each bucket, take the place of those of one. */
static void write_alternatives(const struct vn_device *d, const char *path)
{
    static const struct vn_row alternatives[] = {
        { .p = { 64, 32 }, .cost = { 1, 2 } }, { .p = { 16, 16 }, .cost = { 6, 7 } } };
    static const struct vn_variant costly = {
        .name = "costly", .params = "BLK_M BLK_N", .costs = "EFF TILE_NS" };
    static const struct user_lines pin = {
        "pin gemm 1x2x3:nn", "pin", NULL, "pin gemm 1x2x3:nn * * f16 gemm\n" };
    static const struct user_lines wrong = { "rates *", "rates", NULL, "rates * NONE 1\n" };
    struct row_line rows = { .variant = &costly, .device = d, .type = VN_F16, .bucket = VN_SMALL,
                             .row = alternatives, .count = 1, .comment = "old" };
    char why[TUNE_PATH], text[4096];

    unlink(path);
    check(!user_file_put(path, &rows, why, sizeof why), "one row: %s", why);
    rows.bucket  = VN_BUCKET_COUNT;
    rows.count   = 2;
    rows.comment = "good";
    for (int again = 0; again < 2; again++) {
        check(!user_file_put(path, &rows, why, sizeof why), "two rows: %s", why);
        text[get(path, text, sizeof text - 1)] = '\0';
        check(!strcmp(text, OTHERS), "with two rows the file became:\n%s", text);
    }
    check(!user_file_put_lines(path, &pin, why, sizeof why), "a pin: %s", why);
    check(user_file_put_lines(path, &wrong, why, sizeof why) && strstr(why, "\"NONE\" is none"),
          "a wrong line: %s", why);
    text[get(path, text, sizeof text - 1)] = '\0';
    check(!strcmp(text, OTHERS "pin gemm 1x2x3:nn * * f16 gemm\n"), "with a pin the file became:\n%s", text);
}

static void write_files(const char *base)
{
    static struct vn_backend backend = { .name = "opencl" };
    static struct vn_device device = { .backend = &backend, .facts = { .family = "cpu", .arch = "f32x8",
                                                                       .name = "A CPU of 1 core" } };
    struct row_line row = { .device = &device, .type = VN_F16, .bucket = VN_LARGE,
                            .row = &(const struct vn_row){ .p = { 8, 64 } }, .count = 1, .comment = "good" };
    char path[PATH + 32], link[PATH + 32], opened[TUNE_PATH], why[TUNE_PATH], text[4096];

    for (const struct vn_variant *v = vn__softmax_variants; v->name; v++)
        if (!strcmp(v->name, "softmax_cpu"))
            row.variant = v;
    snprintf(path, sizeof path, "%s/user.tune", base);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        unlink(path);
        if (files[i].before)
            put(path, files[i].before, strlen(files[i].before));
        for (int again = 0; again < 2; again++) {
            check(!user_file_put(path, &row, why, sizeof why), "file %zu: %s", i, why);
            text[get(path, text, sizeof text - 1)] = '\0';
            check(!strcmp(text, files[i].after), "file %zu became:\n%s", i, text);
        }
    }
    write_alternatives(&device, path);
    snprintf(link, sizeof link, "%s/link", base);
    check(!symlink(path, link) && !setenv("VERNIER_TUNE", link, 1) &&
          !user_file_open(opened, why, sizeof why) && !strcmp(opened, path), "a link is followed to %s",
          opened);
    put(path, "softmax_cpu * * * * 1\n", 22);
    check(user_file_open(opened, why, sizeof why) && strstr(why, "user.tune:1: "), "a wrong line: %s", why);
    check(user_file_put("/nowhere/user.tune", &row, why, sizeof why) &&
          strstr(why, "/nowhere/user.tune cannot be written"), "nowhere: %s", why);
}

/* ---- a dictated choice --------------------------------------------------------------- */

static int runs_of(struct suite *s, const struct problem *p, const struct operands *o, int times)
{
    const int before = runs;

    for (int i = 0; i < times; i++)
        check(!problem_run(s->queue, p, o), "a dictated call: %s", vn_last_error());
    return runs - before;
}

/* A call that is made again launches what it did, if the same is dictated; and only if it was asked for. */
static void repeat_calls(struct suite *s)
{
    const struct vn_choice one = { .variant = &made_up }, two = { .variant = &made_up, .p = { 1 } };
    struct problem p;
    struct values v;
    char why[PROBLEM_TEXT];

    check(!problem_parse(&p, "gemm:16x16x16:f32:nn", why, sizeof why), "%s", why);
    check(!values_open(&v, s->queue, s->device, &p), "values: %s", vn_last_error());
    choice_repeat(s->device, &one);
    check(runs_of(s, &p, &v.o, 3) == 1, "a choice that is dictated thrice runs once");
    choice_repeat(s->device, &two);
    check(runs_of(s, &p, &v.o, 2) == 1, "so does another");
    choice_repeat(s->device, &one);
    check(runs_of(s, &p, &v.o, 1) == 1, "the first one runs after the other");
    choice_dictate(NULL, NULL);
    check(runs_of(s, &p, &v.o, 2) == 0, "the library has a choice of its own");
    check(s->queue->last && s->queue->last->choice->variant != &made_up, "and explains that");
    choice_repeat(s->device, &one);
    check(runs_of(s, &p, &v.o, 2) == 1, "what was dictated is not what the library noted");
    choice_dictate(s->device, &one);
    check(runs_of(s, &p, &v.o, 2) == 2, "a choice that is not to be repeated runs each time");
    choice_dictate(NULL, NULL);
    values_close(&v);
}

int main(void)
{
    char base[PATH];
    struct suite *s;

    if (suite_open(&s, NULL)) {
        printf("skipped: %s\n", vn_last_error());
        return 77;
    }
    make_base(base);
    s->queue->workspace_limit = LIMIT;
    plan_new_row(s);
    race_races(s, base);
    keep_journals(base);
    write_files(base);
    repeat_calls(s);
    wipe(base);
    suite_close(s);
    printf("COUNT tuner %d\n%d failures\n", cases, failures);
    return failures != 0;
}
