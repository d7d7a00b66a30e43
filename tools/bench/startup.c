/* SPDX-License-Identifier: Apache-2.0
 *
 * startup.c - what the first call of a process costs, with and without built kernels on disk.
 *
 * This program runs itself with empty caches in a temporary folder, ours and those of the
 * drivers, and then again with what the first left there.
 */
#define _GNU_SOURCE                   /* pipe2, nftw */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"
#include "commands.h"
#include "core.h"
#include "report/report.h"
#include "measure/sampling.h"
#include "problem/values.h"

enum { WARM_STARTS = 5 };

static const double PATIENCE = 5;        /* seconds; a slow device starts warm less often */

static const char *const text = "gemm:512x512x512:f32:nn";

/* ---- the second process ---- */

static int first_call(struct start *out, const char *spec)
{
    const double start = vn__seconds();
    struct problem p;
    struct values v;
    vn_device *d;
    vn_queue *q;
    char why[256];
    int status;

    if (problem_parse(&p, text, why, sizeof why) || (status = device_open(&d, &q, spec)))
        return EXIT_FAILURE;
    status = values_open(&v, q, d, &p) ? EXIT_FAILURE : 0;
    if (!status) {
        const double call = vn__seconds();

        status = problem_run(q, &p, &v.o) || vn_queue_finish(q) ? EXIT_FAILURE : 0;
        *out = (struct start){ vn__seconds() - call, vn__seconds() - start };
    }
    if (status)
        complain("%s", vn_last_error());
    values_close(&v);
    vn_queue_close(q);
    vn_device_close(d);
    return status;
}

int startup_first_call(const char *spec)
{
    struct start s;
    const int status = first_call(&s, spec);

    if (!status)
        printf("%.9g %.9g\n", s.call, s.whole);
    return status;
}

/* ---- starting it ---- */

/* Where each one keeps what it has built. */
static const char *const caches[] = {
    "VERNIER_CACHE_DIR", "POCL_CACHE_DIR", "CUDA_CACHE_PATH", "MESA_SHADER_CACHE_DIR" };

enum { CACHES = sizeof caches / sizeof *caches };

extern char **environ;

static int is_cache(const char *setting)
{
    for (int i = 0; i < CACHES; i++)
        if (!strncmp(setting, caches[i], strlen(caches[i])) && setting[strlen(caches[i])] == '=')
            return 1;
    return 0;
}

/* Our environment, but for the caches: those are in `folder`.  settings: room for their texts. */
static char **environment(char settings[CACHES][PATH_MAX], const char *folder)
{
    int n = 0, count = 0;
    char **env;

    while (environ[n])
        n++;
    if (!(env = malloc((size_t)(n + CACHES + 1) * sizeof *env)))
        return NULL;
    for (int i = 0; i < n; i++)
        if (!is_cache(environ[i]))
            env[count++] = environ[i];
    for (int i = 0; i < CACHES; i++) {
        snprintf(settings[i], PATH_MAX, "%s=%s/%s", caches[i], folder, caches[i]);
        mkdir(strchr(settings[i], '=') + 1, 0700);
        env[count++] = settings[i];
    }
    env[count] = NULL;
    return env;
}

static int spawn(pid_t *pid, int out, const char *spec, char **env)
{
    char *const argv[] = { "vernier", "bench", "--first-call", (char *)spec, NULL };
    posix_spawn_file_actions_t actions;
    int failed;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    failed = posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? -1 : 0;
}

static int run_once(struct start *out, const char *spec, char **env)
{
    int ends[2], status, count = 0;
    FILE *from;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    status = spawn(&pid, ends[1], spec, env);
    close(ends[1]);
    if (!(from = fdopen(ends[0], "r"))) {
        close(ends[0]);
        return -1;
    }
    if (!status) {
        count = fscanf(from, "%lf %lf", &out->call, &out->whole);
        waitpid(pid, &status, 0);
    }
    fclose(from);
    return status == 0 && count == 2 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s;
    (void)type;
    (void)at;
    return remove(path);
}

static int run_all(struct start *cold, struct start *warm, const char *spec, const char *folder)
{
    char settings[CACHES][PATH_MAX];
    char **const env = environment(settings, folder);
    double call[WARM_STARTS], whole[WARM_STARTS];
    int failed = !env || run_once(cold, spec, env), i;
    const double from = vn__seconds();

    for (i = 0; i < WARM_STARTS && !failed && (i == 0 || vn__seconds() - from < PATIENCE); i++) {
        struct start s;

        failed = run_once(&s, spec, env);
        call[i]  = s.call;
        whole[i] = s.whole;
    }
    if (!failed)
        *warm = (struct start){ median_of(call, i), median_of(whole, i) };
    free(env);
    return failed;
}

static void report_start(FILE *to, json_t *benchmarks, const char *what, const char *name,
                         double cold, double warm)
{
    fprintf(to, "%-28s %8.1f ms %8.1f ms   1/%.0f\n", what, cold * 1e3, warm * 1e3, cold / warm);
    json_array_append_new(benchmarks, json_pack("{s:s, s:f, s:s, s:f, s:f}", "name", name, "real_time", warm,
                                                "time_unit", "s", "cold_time", cold, "ratio", warm / cold));
}

int startup_measure(struct start *cold, struct start *warm, const char *spec)
{
    const char *const parent = getenv("TMPDIR");
    char folder[PATH_MAX / 2];
    int failed;

    snprintf(folder, sizeof folder, "%s/vernier-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(folder)) {
        complain("no temporary folder could be made: %s", folder);
        return -1;
    }
    failed = run_all(cold, warm, spec, folder);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (failed)
        complain("the second process failed");
    return failed ? -1 : 0;
}

int startup_bench(const struct bench *b, FILE *to, json_t *benchmarks)
{
    struct start cold, warm;

    if (startup_measure(&cold, &warm, b->info.spec))
        return EXIT_FAILURE;
    fprintf(to, "\n%-28s %11s %11s   %s\n", "a process's first", "no cache", "built before", "ratio");
    report_start(to, benchmarks, "vn_gemm, 512 x 512 x 512", "overhead:first-call", cold.call, warm.call);
    report_start(to, benchmarks, "with opening the device", "overhead:start", cold.whole, warm.whole);
    return 0;
}
