/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gap.c - the gap report, from a recorded one: its arithmetic, its CSV, its page; and the
 * readers of what NVIDIA's tools print.  No device is needed.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "commands.h"
#include "gap/disassembly.h"
#include "gap/gap.h"
#include "gap/workers.h"

static int failures, checks;

void complain(const char *sentence, ...)
{
    va_list args;

    va_start(args, sentence);
    vfprintf(stderr, sentence, args);
    va_end(args);
    fputc('\n', stderr);
}

static void check(int right, const char *what)
{
    checks++;
    if (right)
        return;
    failures++;
    printf("FAIL: %s\n", what);
}

static void check_near(double have, double want, const char *what)
{
    checks++;
    if (fabs(have - want) <= 1e-12 * fabs(want))
        return;
    failures++;
    printf("FAIL: %s is %.17g, and should be %.17g\n", what, have, want);
}

static char *read_file(const char *path)
{
    FILE *const f = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    if (f && getdelim(&text, &size, '\0', f) < 0) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

/* ---- arithmetic ---- */

/* The ratios of the recorded rows, by hand: 1, 1.25, 1 | 0.8 | 1, 1. */
static void test_means(const json_t *rows)
{
    json_t *const means = gap_geomeans(rows);
    const json_t *const toolchain = json_object_get(means, "toolchain_gap"),
                 *const libraries = json_object_get(means, "library_gap");

    check_near(json_number(toolchain, "all"), 1, "the mean of all toolchain gaps");
    check_near(json_number(toolchain, "gemm"), cbrt(1.25), "that of gemm");
    check_near(json_number(toolchain, "gemm:f32"), sqrt(1.25), "that of gemm in f32");
    check_near(json_number(toolchain, "gemm:bf16"), 1, "that of gemm in bf16");
    check_near(json_number(toolchain, "conv"), 0.8, "that of conv");
    check(!json_object_get(toolchain, "gemm:f64"), "a row that was skipped is in no mean");
    check_near(json_number(json_object_get(libraries, "cublas"), "all"), cbrt(1.25 * 1.6 * 1.1),
               "the mean over cublas");
    check_near(json_number(json_object_get(libraries, "clblast"), "gemm:f32"), 0.5, "the mean over clblast");
    check_near(json_number(json_object_get(libraries, "cudnn"), "all"), sqrt(1.25 * 0.5),
               "the mean over cudnn");
    check_near(json_number(json_object_get(means, "best_gap"), "softmax:f16"), 1e-3 / 9e-4,
               "the mean of the best");
    json_decref(means);
}

static void test_parity(const json_t *rows)
{
    static const struct { double ratio; const char *words; } cases[] = {
        { 0.89, "device 1 faster" }, { 0.9, "at parity" }, { 1, "at parity" }, { 1.1, "at parity" },
        { 1.11, "device 1 slower" } };
    json_t *const parity = gap_parity(rows);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(!strcmp(parity_words(cases[i].ratio), cases[i].words), cases[i].words);
    check_near(json_number(parity, "rows"), 6, "rows with a toolchain gap");
    check_near(json_number(parity, "within"), 4, "rows at parity");
    check_near(json_number(parity, "slower"), 1, "rows slower on device 1");
    check_near(json_number(parity, "faster"), 1, "rows faster on device 1");
    json_decref(parity);
}

/* ---- the page ---- */

enum { DEPTH = 32, NAME = 32 };

/* Each element ends where it began; attributes are quoted; & begins an entity. */
static int is_well_formed(const char *at)
{
    char open[DEPTH][NAME];
    int depth = 0;

    for (; *at; at++) {
        if (*at == '&' && strncmp(at, "&amp;", 5) && strncmp(at, "&lt;", 4) && strncmp(at, "&gt;", 4)
            && strncmp(at, "&quot;", 6))
            return 0;
        if (*at != '<' || at[1] == '!')
            continue;

        const int ends = at[1] == '/';
        const char *const name = at + 1 + ends;
        const size_t n = strcspn(name, " />\n");

        if (n == 0 || n >= NAME)
            return 0;
        for (at = name + n; *at && *at != '>'; at++)
            if (*at == '"' && !(at = strchr(at + 1, '"')))
                return 0;
        if (!*at)
            return 0;
        if (ends) {
            if (!depth-- || strlen(open[depth]) != n || strncmp(open[depth], name, n))
                return 0;
        } else if (at[-1] != '/') {
            if (depth == DEPTH)
                return 0;
            snprintf(open[depth++], NAME, "%.*s", (int)n, name);
        }
    }
    return depth == 0;
}

static int count_of(const char *text, const char *what)
{
    int n = 0;

    while ((text = strstr(text, what))) {
        text += strlen(what);
        n++;
    }
    return n;
}

static void test_page(const json_t *report)
{
    static const char path[] = "tests/test_gap.html";
    static const char *const never[] = { "<script", "http:", "https:", "<img", "<link", "nan", "inf\"",
                                         "<here>" };
    char *text, shown[PROBLEM_TEXT];
    json_t *row;
    size_t i;

    check(!gap_html(path, NULL, report), "the page is written");
    if (!(text = read_file(path))) {
        check(0, "the page can be read");
        return;
    }
    check(is_well_formed(text), "the page is well-formed");
    json_array_foreach(json_object_get(report, "benchmarks"), i, row)
        check(strstr(text, problem_shown(shown, json_text(row, "name"))) != NULL, json_text(row, "name"));
    for (i = 0; i < sizeof never / sizeof *never; i++)
        check(!strstr(text, never[i]), never[i]);
    check(count_of(text, "<svg class=\"plot\"") == 6 + 10, "three summaries, times, two rooflines; bars by "
                                                           "suite");
    check(strstr(text, "name=\"viewport\"") && strstr(text, "@media print"),
          "it is for phones and for paper");
    check(strstr(text, "HGMMA 16") && strstr(text, "cccc000011112222"), "instructions and hashes are in it");
    check(strstr(text, "&lt;here&gt; &amp; now") != NULL, "what was read is escaped");
    check(strstr(text, "Method") != NULL, "it has a method section");
    free(text);
    unlink(path);
}

/* Nothing was measured: the page is short, and still a page. */
static void test_empty_page(void)
{
    static const char path[] = "tests/test_gap_empty.html";
    json_t *const report = json_pack("{s:{}, s:[], s:{s:{}, s:{}, s:[]}}", "context", "benchmarks", "vernier",
                                     "geomean", "parity", "pair");
    char *text;

    check(!gap_html(path, NULL, report), "an empty page is written");
    check((text = read_file(path)) && is_well_formed(text), "an empty page is well-formed");
    check(text && !strstr(text, "nan"), "an empty page has no nan");
    free(text);
    unlink(path);
    json_decref(report);
}

static void test_csv(const json_t *report)
{
    static const char path[] = "tests/test_gap.csv";
    char *text;

    check(!report_csv(path, report), "the CSV is written");
    if (!(text = read_file(path)))
        return;
    check(count_of(text, "\n") == 1 + 19, "a line of titles, and one for each run that was timed");
    check(!strncmp(text, "name,suite,label,op,type,as,device,", 35), "its titles");
    free(text);
    unlink(path);
}

/* ---- several processes ---- */

/* A row of a process that took so many seconds on device 1, and one on device 2. */
static json_t *row_of_process(double seconds, const char *variant)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:{s:f}, s:s, s:[{s:s, s:s, s:b, s:b, s:f, s:f, s:[f, f]}],"
                     " s:{s:{s:f, s:f, s:f, s:f, s:f}, s:{s:{s:f, s:f, s:f}}}, s:{s:f}}",
        "name", "gemm:1x1x1:f32:nn", "variant", variant, "real_time", seconds, "flops", 2e9, "bytes", 4e9,
        "roof", "seconds", 0.5, "disturbed", seconds < 1 ? "a reason" : "",
        "runs", "device", "opencl:0", "variant", variant, "same", 1, "best", 1, "kernel_time", seconds,
        "median_s", seconds, "samples_s", seconds, seconds,
        "gaps", "toolchain", "ratio", seconds, "first_s", seconds, "second_s", 1.0,
        "first_mhz", 1300 / seconds, "second_mhz", 1500.0,
        "library", "cublas", "ratio", seconds / 2, "first_s", seconds, "second_s", 2.0,
        "library_gap", "cublas", seconds / 2);
}

/* Three processes that agree on a variant, and one that does not. */
static void test_processes(void)
{
    json_t *const of[] = { row_of_process(1, "a"), row_of_process(0.9, "a"), row_of_process(1.3, "a"),
                           row_of_process(5, "b") };
    json_t *const joined = rows_join(of, 4), *const gaps = json_object_get(joined, "gaps"),
           *const run = json_array_get(json_object_get(joined, "runs"), 0),
           *const gap = json_object_get(gaps, "toolchain"),
           *const interval = json_object_get(gap, "ratio_interval");

    check(json_number(joined, "processes") == 3, "a process that chose another variant counts");
    check(!json_object_get(joined, "failures"), "a failure, where there was none");
    check_near(json_number(joined, "real_time"), 1, "the time");
    check_near(json_number(joined, "gflops"), 2, "the speed");
    check_near(json_number(joined, "roofline"), 0.5, "the share of the roof");
    check_near(json_number(joined, "toolchain_gap"), 1, "the ratio");
    check_near(json_number(gap, "first_mhz"), 1300, "the clock of device 1");
    check_near(json_number(gap, "second_mhz"), 1500, "the clock of device 2");
    check_near(json_number_value(json_array_get(interval, 0)), 0.9, "the least ratio");
    check_near(json_number_value(json_array_get(interval, 1)), 1.3, "the largest ratio");
    check_near(json_number(gap, "ratio_coverage"), 0.75, "what three cover");
    check_near(json_number(json_object_get(joined, "library_gap"), "cublas"), 0.5, "the ratio to a library");
    check(json_array_size(json_object_get(run, "samples_s")) == 6, "all samples are there");
    check(json_array_size(json_object_get(run, "samples_of_process")) == 3, "and whose they are");
    check(json_is_true(json_object_get(run, "few")), "three are few");
    check(!strcmp(json_text(joined, "disturbed"), "a reason"), "a disturbance of one is the row's");
    json_decref(joined);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        json_decref(of[i]);
}

/* The row is that of the first; what went wrong in the others is said once. */
static void test_failures(void)
{
    json_t *const of[] = { row_of_process(1, "a"),
                           json_pack("{s:s, s:s}", "variant", "", "error_message", "x"),
                           json_pack("{s:s, s:s}", "variant", "", "error_message", "x"),
                           json_pack("{s:s, s:[{s:s}]}", "variant", "", "runs", "error_message", "y") };
    json_t *const joined = rows_join(of, 4), *const said = json_object_get(joined, "failures");

    check(json_number(joined, "processes") == 1, "a process that failed counts");
    check(json_array_size(said) == 2, "each failure is said once");
    check(!strcmp(json_string_value(json_array_get(said, 1)), "y"), "that of a run too");
    json_decref(joined);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        json_decref(of[i]);
}

/* ---- NVIDIA's tools ---- */

static const char ptxas[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'pack' for 'sm_90a'\n"
    "ptxas info    : Function properties for pack\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 24 registers, used 0 barriers\n"
    "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n"
    "ptxas info    : Function properties for gemm\n"
    "    64 bytes stack frame, 48 bytes spill stores, 52 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 1 barriers, 64 bytes cumulative stack size, 16384 bytes smem, "
    "400 bytes cmem[0]\n";

static const char sass[] =
    "\t\tFunction : gemm\n"
    "\t.headerflags\t@\"EF_CUDA_SM90\"\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;      /* 0x00000a00ff017b82 */\n"
    "                                                               /* 0x000fe20000000800 */\n"
    "        /*0010*/              @!P0 FFMA.FTZ R2, R3, R4, R2 ;   /* 0x00000a00ff017b82 */\n"
    "        /*0020*/                   FFMA R2, R3, R4, R2 ;       /* 0x00000a00ff017b82 */\n"
    "        /*0030*/                   HGMMA.64x256x16.F32 R24, gdesc[UR4], R24 ; /* 0x0 */\n"
    "        /*0040*/                   STL [R1], R2 ;              /* 0x00000a00ff017b82 */\n"
    "        /*0050*/                   NOP ;                       /* 0x00000a00ff017b82 */\n";

static void test_tools(void)
{
    json_t *const entries = json_object();
    const json_t *pack, *gemm, *counts;

    read_ptxas(entries, ptxas);
    read_sass(entries, sass);
    pack   = json_object_get(entries, "pack");
    gemm   = json_object_get(entries, "gemm");
    counts = json_object_get(gemm, "instructions");
    check(json_object_size(entries) == 2, "two entries");
    check_near(json_number(pack, "registers"), 24, "registers of pack");
    check_near(json_number(pack, "local_bytes"), 0, "local memory of pack");
    check_near(json_number(gemm, "registers"), 168, "registers");
    check_near(json_number(gemm, "spill_bytes"), 100, "bytes spilled, stores and loads");
    check_near(json_number(gemm, "stack_bytes"), 64, "bytes of stack");
    check_near(json_number(gemm, "local_bytes"), 16384, "bytes of local memory");
    check_near(json_number(counts, "FFMA"), 2, "multiply-adds, one of them predicated");
    check_near(json_number(counts, "HGMMA"), 1, "matrix instructions");
    check_near(json_number(counts, "STL"), 1, "spilling stores");
    check_near(json_number(counts, "all"), 5, "instructions, without NOP");
    json_decref(entries);
}

int main(void)
{
    const char *const source = getenv("srcdir");
    char path[4096];
    json_t *report, *own, *rows;

    snprintf(path, sizeof path, "%s/tests/tools/gap_report.json", source ? source : ".");
    if (!(report = json_load_file(path, 0, NULL))) {
        printf("FAIL: %s cannot be read\n", path);
        return EXIT_FAILURE;
    }
    own  = json_object_get(report, "vernier");
    rows = json_object_get(report, "benchmarks");
    test_means(rows);
    test_parity(rows);
    json_object_set_new(own, "geomean", gap_geomeans(rows));
    json_object_set_new(own, "parity", gap_parity(rows));
    test_page(report);
    test_empty_page();
    test_csv(report);
    test_processes();
    test_failures();
    test_tools();
    json_decref(report);
    printf("%d checks, %d failures\n", checks, failures);
    return failures ? EXIT_FAILURE : 0;
}
