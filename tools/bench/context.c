/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c - the circumstances of a measurement, as JSON: Google Benchmark's keys, and ours.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"
#include "measure/clocks.h"
#include "measure/machine.h"
#include "tools/commit.h"

json_t *json_context(const struct bench *b, const char *program)
{
    const time_t now = time(NULL);
    char date[64], host[128] = "";
    double load[3] = { 0, 0, 0 };
    json_t *const versions = json_object(), *out;

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S%z", localtime(&now));
    gethostname(host, sizeof host - 1);
    if (getloadavg(load, 3) < 0)
        load[0] = load[1] = load[2] = 0;
    for (int i = 0; i < b->peers; i++)
        json_object_set_new(versions, b->peer[i]->name, json_string(b->peer[i]->version()));
    out = json_pack("{s:s, s:s, s:s, s:i, s:[f,f,f], s:[], s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}",
        "date", date, "host_name", host, "executable", program,
        "num_cpus", (int)sysconf(_SC_NPROCESSORS_ONLN), "load_avg", load[0], load[1], load[2], "caches",
        "device", b->info.name, "device_spec", b->info.spec, "platform", b->info.platform,
        "driver", b->info.driver, "library_version", vn_version(), "library_commit", COMMIT,
        "library_build_type", "release", "pinning", b->pinned ? "each thread to a CPU" : "none",
        "peers", versions);
    json_object_update_new(out, machine_host());
    json_object_update_new(out, clocks_limits());
    return out;
}
