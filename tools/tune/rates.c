/* SPDX-License-Identifier: Apache-2.0
 *
 * rates.c - vernier tune --rates: what a device does in a second, as a line of the user's tune file.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "model.h"

static double *rate_in(struct vn_rates *rates, size_t at)
{
    return (double *)((char *)rates + at);
}

static void set(struct vn_rates *measured, struct vn_rates *all, size_t at, double rate)
{
    char three[CELL];

    snprintf(three, sizeof three, "%.2e", rate);
    *rate_in(measured, at) = *rate_in(all, at) = strtod(three, NULL);
}

/* ---- measuring ---- */

static vn_status measure_memory(struct vn_rates *out, struct vn_rates *all, struct bench *b)
{
    double rate = 0, bytes = 0, seconds = 0;
    vn_status s = gauge_cache(&rate, &bytes, b->queue, b->roofline.bandwidth);

    if (s || (s = gauge_launch(&seconds, b)))
        return s;
    set(out, all, offsetof(struct vn_rates, gbps), b->roofline.bandwidth * 1e-9);
    set(out, all, offsetof(struct vn_rates, l2_gbps), rate * 1e-9);
    set(out, all, offsetof(struct vn_rates, l2_mb), bytes * 1e-6);
    set(out, all, offsetof(struct vn_rates, launch_ns), seconds * 1e9);
    return VN_OK;
}

/* A CPU has none that its kernels plan by. */
static vn_status measure_engines(struct vn_rates *out, struct vn_rates *all, struct bench *b)
{
    static const struct { const char *text; vn_type type; size_t at; } engines[] = {
        { "f16:nt",           VN_F16, offsetof(struct vn_rates, mma16) },
        { "f32:nt:math=tf32", VN_F32, offsetof(struct vn_rates, mma32) },
        { "f64:nt",           VN_F64, offsetof(struct vn_rates, mma64) } };
    vn_status s = VN_OK;
    double rate;

    for (size_t i = 0; i < sizeof engines / sizeof *engines && !b->info.is_cpu && !interrupted && !s; i++)
        if (b->device->facts.types >> engines[i].type & 1 &&
            !(s = gauge_engine(&rate, b, engines[i].text, all, engines[i].at)) && rate > 0)
            set(out, all, engines[i].at, rate);
    return s;
}

/* all: what the tune files say, and what is measured instead. */
static vn_status measure(struct vn_rates *out, struct vn_rates *all, struct bench *b)
{
    const double units = b->device->facts.units;
    const int has_f64 = b->device->facts.types >> VN_F64 & 1;
    vn_status s = roofline_measure_fma(&b->roofline, b->queue, VN_F32);

    if (!s && has_f64)
        s = roofline_measure_fma(&b->roofline, b->queue, VN_F64);
    if (s || (s = measure_memory(out, all, b)))
        return s;
    set(out, all, offsetof(struct vn_rates, fma32), b->roofline.peak[0] / units * 1e-9);
    if (has_f64)
        set(out, all, offsetof(struct vn_rates, fma64), b->roofline.peak[1] / units * 1e-9);
    return measure_engines(out, all, b);
}

/* ---- the line ---- */

/* Adds the rates of the old lines of this device that are not measured. */
static void keep_others(FILE *to, const char *path, const char *key, const struct vn_rates *measured)
{
    char *const text = vn__tune_read(path), name[64], value[64];
    struct vn_rates kept = *measured;

    for (const char *at = text; at && *at;) {
        const size_t length = strcspn(at, "\n");
        char *const line = strndup(at, length);
        size_t used = 0;

        if (line)
            line[strcspn(line, "#")] = '\0';
        if (line && user_line_has(line, key, &used))
            for (int n; sscanf(line + used, " %63s %63s%n", name, value, &n) == 2; used += (size_t)n)
                for (const struct vn_rate *r = vn__rates; r->name; r++)
                    if (!strcmp(r->name, name) && *rate_in(&kept, r->at) < 0) {
                        fprintf(to, "  %s %s", name, value);
                        *rate_in(&kept, r->at) = 0;
                    }
        free(line);
        at += length + (at[length] == '\n');
    }
    free(text);
}

static int write_line(const struct model *m, struct vn_rates *measured)
{
    char pattern[PATTERN], key[PATTERN + 8], why[TUNE_PATH], *text = NULL;
    size_t size;
    FILE *const to = open_memstream(&text, &size);
    int failed = -1;

    device_pattern(pattern, m->bench.device);
    snprintf(key, sizeof key, "rates %s", pattern);
    snprintf(why, sizeof why, "host memory ran out");
    if (to) {
        fputs(key, to);
        for (const struct vn_rate *r = vn__rates; r->name; r++)
            if (*rate_in(measured, r->at) >= 0)
                fprintf(to, "  %s %.9g", r->name, *rate_in(measured, r->at));
        keep_others(to, m->path, key, measured);
        fputc('\n', to);
        if (!fclose(to)) {
            const struct user_lines lines = { key, "rates", NULL, text };

            failed = user_file_put_lines(m->path, &lines, why, sizeof why);
        }
    }
    free(text);
    if (failed)
        complain("%s", why);
    else
        fprintf(m->to, "written to %s\n", m->path);
    return failed ? EXIT_FAILURE : 0;
}

/* ---- what is said ---- */

static void print(const struct model *m, struct vn_rates *measured, struct vn_rates *shipped)
{
    struct table t;
    char cell[CELL];

    table_open(&t, m->to);
    table_column(&t, "rate", 9, 1);
    table_column(&t, "measured", 8, 0);
    table_column(&t, "shipped", 8, 0);
    table_head(&t);
    for (const struct vn_rate *r = vn__rates; r->name; r++) {
        if (*rate_in(measured, r->at) < 0)
            continue;
        table_cell(&t, PLAIN, r->name);
        table_cell(&t, PLAIN, figure(cell, *rate_in(measured, r->at)));
        table_cell(&t, PLAIN, figure(cell, *rate_in(shipped, r->at)));
        table_end(&t);
        json_array_append_new(m->rows, json_pack("{s:s, s:f, s:f}", "rate", r->name,
                                                 "measured", *rate_in(measured, r->at),
                                                 "shipped", *rate_in(shipped, r->at)));
    }
}

int model_rates(struct model *m)
{
    struct vn_rates shipped, all, measured;

    for (const struct vn_rate *r = vn__rates; r->name; r++)
        *rate_in(&measured, r->at) = -1;
    if (vn__tune_shipped_rates(&shipped, m->bench.device) || vn__tune_rates(&all, m->bench.device) ||
        measure(&measured, &all, &m->bench)) {
        complain("%s", vn_last_error());
        return EXIT_FAILURE;
    }
    if (interrupted) {
        complain("interrupted: nothing is written");
        return EXIT_FAILURE;
    }
    print(m, &measured, &shipped);
    return write_line(m, &measured);
}
