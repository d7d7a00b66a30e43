/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.h - what else ran on the machine while something was measured.
 *
 * Of the host, from Linux: the CPUs that this process may use, how much of them other processes and the
 * hypervisor took (/proc/stat, less this process' own time), for how long some task waited for a CPU
 * (pressure stall information), the load, the clocks, whether heat throttled them.  Of an NVIDIA GPU what
 * clocks.h reads.  What cannot be read counts as quiet, and is missing in the JSON.
 */
#ifndef VERNIER_MACHINE_H
#define VERNIER_MACHINE_H

#include <jansson.h>

/* Counters, at a moment. */
struct machine_look {
    double seconds;                   /* of the clock */
    double busy, stolen, own;         /* CPU seconds since the start, of all CPUs that we may use */
    double waiting;                   /* seconds that some task waited for a CPU */
    double hot;                       /* seconds of throttling by heat, or a count that grows alike */
    double mhz;                       /* the mean of these CPUs' clocks */
    int    has_stat, has_pressure;
};
void machine_look(struct machine_look *out);

/* Between two looks; CPUs: how many on average. */
struct machine {
    double seconds, others, stolen, pressure, load, mhz[2];
    int    cpus, hot, has_stat, has_pressure;
};
void machine_between(struct machine *out, const struct machine_look *from, const struct machine_look *to);

/* Was that enough to change what is measured, on a CPU, or on a GPU that this host feeds?  The sentence's
 * fragment goes to why, or "".                                                                          */
int  machine_is_disturbed(char *why, size_t size, const struct machine *m, int on_cpu);

json_t *machine_json(const struct machine *m);

/* How many cores those CPUs are: two threads of a core count once. */
int  machine_cores(void);

/* {"host_cpu", "clock_policy", "mhz_per_cpu", "cpu_scaling_enabled"} */
json_t *machine_host(void);
#endif
