/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.c - reads /proc and /sys of Linux.
 */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core.h"
#include "machine.h"

/* Of a CPU that computes by itself, and of the host of a GPU, which only has to queue in time. */
static const double SHARE_ON_CPU = 0.05, SHARE_OF_HOST = 0.5;
static const double PRESSURE = 0.25;      /* where /proc/stat tells nothing */
static const double TICKS = 0.03;         /* CPU seconds that the counters' grain may be wrong by */

/* Those that the process might use at its start. */
static const cpu_set_t *allowed(void)
{
    static cpu_set_t all;
    static int known;

    if (!known && sched_getaffinity(0, sizeof all, &all))
        for (int i = 0; i < CPU_SETSIZE; i++)
            CPU_SET(i, &all);
    known = 1;
    return &all;
}

static int cpus(void)
{
    const int online = (int)sysconf(_SC_NPROCESSORS_ONLN), ours = CPU_COUNT(allowed());

    return ours < online ? ours : online;
}

static void look_at_stat(struct machine_look *out)
{
    FILE *const from = fopen("/proc/stat", "r");
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    char line[1024];

    while (from && fgets(line, sizeof line, from)) {
        double user, nice, system, idle, wait, irq, soft, steal;
        int cpu;

        if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, &user, &nice, &system, &idle, &wait,
                   &irq, &soft, &steal) != 9 || cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, allowed()))
            continue;
        out->busy   += tick * (user + nice + system + irq + soft);
        out->stolen += tick * steal;
        out->has_stat = 1;
    }
    if (from)
        fclose(from);
}

static void look_at_pressure(struct machine_look *out)
{
    FILE *const from = fopen("/proc/pressure/cpu", "r");
    char line[256];
    double micros;

    while (from && fgets(line, sizeof line, from)) {
        const char *const total = strstr(line, "total=");

        if (strncmp(line, "some ", 5) || !total || sscanf(total, "total=%lf", &micros) != 1)
            continue;
        out->waiting = micros * 1e-6;
        out->has_pressure = 1;
    }
    if (from)
        fclose(from);
}

/* A file that holds one number. */
static int read_number(double *out, int cpu, const char *name)
{
    char path[128];
    FILE *from;
    int found;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
    if (!(from = fopen(path, "r")))
        return 0;
    found = fscanf(from, "%lf", out) == 1;
    fclose(from);
    return found;
}

static void look_at_clocks(struct machine_look *out)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < CPU_SETSIZE; i++) {
        double khz, count;

        if (!CPU_ISSET(i, allowed()))
            continue;
        if (!read_number(&khz, i, "cpufreq/scaling_cur_freq"))
            break;
        sum += khz;
        n++;
        if (read_number(&count, i, "thermal_throttle/core_throttle_count"))
            out->hot += count;
    }
    out->mhz = n ? sum / n * 1e-3 : 0;
}

/* A CPU counts where it is the first of its core's. */
int machine_cores(void)
{
    int cores = 0;

    for (int i = 0; i < CPU_SETSIZE; i++) {
        double first;

        if (CPU_ISSET(i, allowed()) && (!read_number(&first, i, "topology/thread_siblings_list")
                                        || (int)first == i || !CPU_ISSET((int)first, allowed())))
            cores++;
    }
    return cores < cpus() ? cores : cpus();
}

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

void machine_look(struct machine_look *out)
{
    struct rusage used;

    *out = (struct machine_look){ .seconds = vn__seconds() };
    if (!getrusage(RUSAGE_SELF, &used))
        out->own = seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime);
    look_at_stat(out);
    look_at_pressure(out);
    look_at_clocks(out);
}

void machine_between(struct machine *out, const struct machine_look *from, const struct machine_look *to)
{
    const double seconds = fmax(to->seconds - from->seconds, 1e-9);
    const double others  = to->busy - from->busy - (to->own - from->own);

    *out = (struct machine){ .seconds = seconds, .cpus = cpus(), .mhz = { from->mhz, to->mhz },
                             .hot = to->hot > from->hot,
                             .has_stat = from->has_stat && to->has_stat,
                             .has_pressure = from->has_pressure && to->has_pressure };
    if (getloadavg(&out->load, 1) < 1)
        out->load = 0;
    if (out->has_stat) {
        out->others = fmax(others, 0) / seconds;
        out->stolen = fmax(to->stolen - from->stolen, 0) / seconds;
    }
    if (out->has_pressure)
        out->pressure = fmin(fmax(to->waiting - from->waiting, 0) / seconds, 1);
}

int machine_is_disturbed(char *why, size_t size, const struct machine *m, int on_cpu)
{
    const double most = (on_cpu ? SHARE_ON_CPU : SHARE_OF_HOST) * m->cpus, grain = TICKS / m->seconds;

    *why = '\0';
    if (m->others > most + grain)
        snprintf(why, size, "other processes used %.1f of %d CPUs", m->others, m->cpus);
    else if (m->stolen > most + grain)
        snprintf(why, size, "the hypervisor took %.1f of %d CPUs", m->stolen, m->cpus);
    else if (!m->has_stat && m->pressure > (on_cpu ? PRESSURE : 2 * PRESSURE))
        snprintf(why, size, "tasks waited for a CPU during %.0f %% of the time", m->pressure * 100);
    else if (on_cpu && m->hot)
        snprintf(why, size, "heat throttled the CPU");
    return *why != '\0';
}

json_t *machine_json(const struct machine *m)
{
    json_t *const out = json_pack("{s:f, s:i, s:f}", "seconds", m->seconds, "cpus", m->cpus, "load", m->load);

    if (m->has_stat) {
        json_object_set_new(out, "others_cpus", json_real(m->others));
        json_object_set_new(out, "stolen", json_real(m->stolen));
    }
    if (m->has_pressure)
        json_object_set_new(out, "pressure", json_real(m->pressure));
    if (m->mhz[0] > 0)
        json_object_set_new(out, "cpu_mhz", json_pack("[f, f]", m->mhz[0], m->mhz[1]));
    if (m->hot)
        json_object_set_new(out, "hot", json_true());
    return out;
}

/* ---- the host itself ---- */

/* What stands behind the colon of a line of /proc/cpuinfo. */
static void cpu_info(char *out, size_t size, const char *key)
{
    FILE *const from = fopen("/proc/cpuinfo", "r");
    char line[512];

    *out = '\0';
    while (from && !*out && fgets(line, sizeof line, from)) {
        const char *const colon = strchr(line, ':');

        if (strncmp(line, key, strlen(key)) || !colon)
            continue;
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
        out[strcspn(out, "\n")] = '\0';
    }
    if (from)
        fclose(from);
}

json_t *machine_host(void)
{
    char name[128], mhz[32], policy[32] = "";
    FILE *const from = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "r");

    if (from) {
        if (fscanf(from, "%31s", policy) != 1)
            *policy = '\0';
        fclose(from);
    }
    cpu_info(name, sizeof name, "model name");
    cpu_info(mhz, sizeof mhz, "cpu MHz");
    return json_pack("{s:s, s:s, s:i, s:b}", "host_cpu", name, "clock_policy", policy,
                     "mhz_per_cpu", (int)(strtod(mhz, NULL) + 0.5),
                     "cpu_scaling_enabled", *policy && strcmp(policy, "performance"));
}
