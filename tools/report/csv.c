/* SPDX-License-Identifier: Apache-2.0
 *
 * csv.c - a report of gap or bench as tidy CSV: a line for each sample.
 *
 * A line says of which row it is, who was timed, and where; samples of one number of a process were taken in
 * one round.  A run of a report without samples has one line, of its median, and no number.
 */
#include <string.h>
#include "commands.h"
#include "report.h"

static const char titles[] =
    "name,suite,label,op,type,as,device,spec,library,same,best,variant,engine,like,clock,process,sample,"
    "seconds,wall_seconds,repeats,flops,bytes,roof_seconds,disturbed\n";

/* Who was timed in a row. */
struct timed {
    FILE         *to;
    const json_t *row, *run;
    const char   *spec, *library, *like, *clock;
    int           device, same, best;
    double        roof_seconds;
};

static void text_cell(FILE *to, const char *text, const char *end)
{
    if (text[strcspn(text, ",\"\n\r")]) {
        fputc('"', to);
        for (; *text; text++)
            fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
        fputc('"', to);
    } else
        fputs(text, to);
    fputs(end, to);
}

static void number_cell(FILE *to, double v, const char *end)
{
    if (v > 0)
        fprintf(to, "%.9g", v);
    fputs(end, to);
}

static void line(const struct timed *t, int process, int sample, double seconds, double wall)
{
    static const char *const of_row[] = { "name", "suite", "label", "op", "type", "as" };
    const char *const engine = json_text(t->run, "engine");

    for (size_t i = 0; i < sizeof of_row / sizeof *of_row; i++)
        text_cell(t->to, json_text(t->row, of_row[i]), ",");
    fprintf(t->to, "%d,", t->device);
    text_cell(t->to, t->spec, ",");
    text_cell(t->to, t->library, ",");
    fprintf(t->to, "%d,%d,", t->same, t->best);
    text_cell(t->to, json_text(t->run, "variant"), ",");
    text_cell(t->to, *engine ? engine : json_text(t->run, "instructions"), ",");
    text_cell(t->to, t->like, ",");
    text_cell(t->to, t->clock, ",");
    number_cell(t->to, process, ",");
    number_cell(t->to, sample, ",");
    number_cell(t->to, seconds, ",");
    number_cell(t->to, wall, ",");
    number_cell(t->to, json_number(t->run, "iterations"), ",");
    number_cell(t->to, json_number(t->row, "flops"), ",");
    number_cell(t->to, json_number(t->row, "bytes"), ",");
    number_cell(t->to, t->roof_seconds, ",");
    text_cell(t->to, json_text(t->row, "disturbed"), "\n");
}

static void lines(const struct timed *t)
{
    const json_t *const samples = json_object_get(t->run, "samples_s"),
                 *const walls = json_object_get(t->run, "wall_samples_s");
    const double of_gap = json_number(t->run, "kernel_time"),
                 median = of_gap > 0 ? of_gap : json_number(t->run, "real_time");
    const json_t *const counts = json_object_get(t->run, "samples_of_process");
    size_t i, process = 0, begin = 0;
    json_t *sample;

    json_array_foreach(samples, i, sample) {
        while (process < json_array_size(counts)
               && i >= begin + (size_t)json_number_value(json_array_get(counts, process)))
            begin += (size_t)json_number_value(json_array_get(counts, process++));
        line(t, (int)process + 1, (int)(i - begin) + 1, json_number_value(sample),
             json_number_value(json_array_get(walls, i)));
    }
    if (!json_array_size(samples) && median > 0)
        line(t, 1, 0, median, json_number(t->run, "wall_time"));
}

/* ---- a row of gap ---- */

/* The least time that the roof allows on a device; of an older report, from the share that was reached. */
static double roof_seconds(const json_t *row, const json_t *run, int device)
{
    const double known = json_number(json_object_get(row, device == 1 ? "roof" : "roof_second"), "seconds"),
                 share = json_number(row, device == 1 ? "roofline" : "roofline_second");

    return known > 0 ? known : share * json_number(run, "kernel_time");
}

static const char *likeness(const json_t *gap)
{
    const json_t *const like = json_object_get(gap, "like");

    return json_is_true(like) ? "1" : json_is_false(like) ? "0" : "";
}

static void gap_runs(FILE *to, const json_t *row, const char *second)
{
    const json_t *const libraries = json_object_get(json_object_get(row, "gaps"), "library");
    json_t *run;
    size_t i;

    json_array_foreach(json_object_get(row, "runs"), i, run) {
        const char *const spec = json_text(run, "device"), *const library = json_text(run, "library");
        const json_t *const gap = json_object_get(libraries, library);
        const char *const clock = json_text(gap, "clock");
        const int device = *second && !strcmp(spec, second) ? 2 : 1,
                  best = json_is_true(json_object_get(run, "best"));
        const struct timed t = {
            to, row, run, spec, library, likeness(gap), *clock ? clock : "device", device,
            json_is_true(json_object_get(run, "same")), best, best ? roof_seconds(row, run, device) : 0 };

        lines(&t);
    }
}

/* ---- a row of bench ---- */

static void bench_runs(FILE *to, const json_t *row)
{
    const char *const spec = json_text(row, "device");
    const char *name;
    json_t *peer;

    lines(&(struct timed){ to, row, row, spec, "", "", "device", 1, 0, 1,
                           json_number(row, "roofline") * json_number(row, "real_time") });
    json_object_foreach(json_object_get(row, "peers"), name, peer)
        lines(&(struct timed){ to, row, peer, spec, name, likeness(peer), "device", 1, 0, 0, 0 });
}

int report_csv(const char *path, const json_t *report)
{
    FILE *const to = strcmp(path, "-") ? fopen(path, "w") : stdout;
    const json_t *const pair = json_object_get(json_object_get(report, "vernier"), "pair"),
                 *const second = json_array_get(pair, 1);
    json_t *row;
    size_t i;
    int failed = !to;

    if (to) {
        fputs(titles, to);
        json_array_foreach(json_object_get(report, "benchmarks"), i, row)
            if (json_object_get(row, "runs"))
                gap_runs(to, row, json_text(second, "spec"));
            else
                bench_runs(to, row);
        failed = to == stdout ? fflush(to) : ferror(to) | fclose(to);
    }
    if (failed)
        complain("the report cannot be written to \"%s\"", path);
    return failed ? -1 : 0;
}
