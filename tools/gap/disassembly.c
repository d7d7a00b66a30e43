/* SPDX-License-Identifier: Apache-2.0
 *
 * disassembly.c - runs NVIDIA's tools on what the two toolchains built.
 *
 * A program of NVIDIA's OpenCL is saved as PTX, one of the CUDA backend as a cubin, of which
 * NVRTC gives the PTX on request.  ptxas turns both texts into machine code with the same
 * options, and says what registers that took; of CUDA the cubin that ran is disassembled.
 */
#define _GNU_SOURCE                   /* pipe2, mkostemps */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "backends/opencl/opencl.h"
#include "disassembly.h"
#if VN_WITH_CUDA
#include "backends/cuda/driver.h"
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

extern char **environ;

/* ---- running a tool ---- */

/* The tool's path; 0 where it is not installed. */
static int find_tool(char path[PATH_MAX], const char *name)
{
    char folders[4096], *rest = folders;
    const char *const set = getenv("PATH");

    snprintf(folders, sizeof folders, "%s:/usr/local/cuda/bin", set ? set : "");
    for (char *folder; (folder = strsep(&rest, ":"));)
        if (*folder && snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && !access(path, X_OK))
            return 1;
    return 0;
}

static char *read_all(int fd)
{
    size_t size = 1 << 16, length = 0;
    char *text = malloc(size);
    ssize_t n = 0;

    while (text && (n = read(fd, text + length, size - length - 1)) > 0)
        if ((length += (size_t)n) == size - 1) {
            char *const more = realloc(text, size *= 2);

            if (!more)
                free(text);
            text = more;
        }
    if (text)
        text[length] = '\0';
    return text;
}

/* What it printed, on both streams; NULL if it could not run or failed. */
static char *output_of(char *const argv[])
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = -1;
    char *text = NULL;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    if (!posix_spawn(&pid, argv[0], &actions, NULL, argv, environ)) {
        close(ends[1]);
        ends[1] = -1;
        text = read_all(ends[0]);
        waitpid(pid, &status, 0);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    if (ends[1] >= 0)
        close(ends[1]);
    if (status == 0)
        return text;
    free(text);
    return NULL;
}

/* A file of these bytes, or with NULL an empty one; its name ends with the suffix. */
static int temporary(char path[PATH_MAX], const char *suffix, const void *bytes, size_t count)
{
    const char *const folder = getenv("TMPDIR");
    int fd, failed;

    snprintf(path, PATH_MAX, "%s/vernier-XXXXXX%s", folder && *folder ? folder : "/tmp", suffix);
    if ((fd = mkostemps(path, (int)strlen(suffix), O_CLOEXEC)) < 0)
        return -1;
    failed = bytes && write(fd, bytes, count) != (ssize_t)count;
    close(fd);
    if (failed)
        unlink(path);
    return failed ? -1 : 0;
}

/* ---- reading what the tools print ---- */

static json_t *entry_of(json_t *entries, const char *name, size_t length)
{
    char copy[128];
    json_t *entry;

    snprintf(copy, sizeof copy, "%.*s", (int)(length < 127 ? length : 127), name);
    if (!(entry = json_object_get(entries, copy))) {
        entry = json_object();
        json_object_set_new(entries, copy, entry);
    }
    return entry;
}

/* The number before `unit` in the line that begins at `line`; -1: none. */
static long number_before(const char *line, const char *unit)
{
    const size_t length = strcspn(line, "\n");
    const char *at = line;

    while ((at = strstr(at, unit)) && at < line + length) {
        const char *from = at;

        while (from > line && isdigit((unsigned char)from[-1]))
            from--;
        if (from < at)
            return strtol(from, NULL, 10);
        at++;
    }
    return -1;
}

static void set_if_known(json_t *entry, const char *name, long value)
{
    if (value >= 0)
        json_object_set_new(entry, name, json_integer(value));
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

/*   Compiling entry function 'gemm' for 'sm_90a'
 *   Function properties for gemm
 *       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *   Used 128 registers, used 1 barriers, 16384 bytes smem                  */
void read_ptxas(json_t *entries, const char *text)
{
    static const char compiling[] = "Compiling entry function '";
    json_t *entry = NULL;

    for (const char *line = text; *line; line = next_line(line)) {
        const size_t length = strcspn(line, "\n");
        const char *const name = strstr(line, compiling);

        if (name && name < line + length) {
            const char *const from = name + sizeof compiling - 1;

            entry = entry_of(entries, from, strcspn(from, "'"));
            continue;
        }
        if (!entry)
            continue;

        const long stores = number_before(line, " bytes spill stores"),
                   loads = number_before(line, " bytes spill loads");
        const long registers = number_before(line, " registers"), local = number_before(line, " bytes smem");

        set_if_known(entry, "stack_bytes", number_before(line, " bytes stack frame"));
        if (stores >= 0 && loads >= 0)
            set_if_known(entry, "spill_bytes", stores + loads);
        set_if_known(entry, "registers", registers);
        if (registers >= 0)
            set_if_known(entry, "local_bytes", local >= 0 ? local : 0);
    }
}

/* What a kernel's speed can hang on: arithmetic by class, memory by kind, waiting. */
static const char *const classes[] = {
    "FFMA", "FADD", "FMUL", "DFMA", "HFMA2", "HMMA", "HGMMA", "DMMA", "IMMA", "IMAD", "MUFU", "SHFL", "LDG",
    "STG", "LDGSTS", "UTMALDG", "UBLKCP", "LDS", "LDSM", "STS", "LDL", "STL", "BAR", "SYNCS", "BRA",
};

/* "/\*0120*\/  @!P0 FFMA.FTZ R1, R2" : where the name begins, or NULL. */
static const char *instruction(const char *line)
{
    line += strspn(line, " \t");
    if (line[0] != '/' || line[1] != '*' || !isxdigit((unsigned char)line[2]))
        return NULL;
    line += strcspn(line, " \t\n");
    line += strspn(line, " \t");
    if (*line == '@') {
        line += strcspn(line, " \t\n");
        line += strspn(line, " \t");
    }
    return isupper((unsigned char)*line) ? line : NULL;
}

static void count_one(json_t *counts, const char *name)
{
    const json_t *const old = json_object_get(counts, name);

    json_object_set_new(counts, name, json_integer(old ? json_integer_value(old) + 1 : 1));
}

static void count_instruction(json_t *counts, const char *name)
{
    const size_t length = strcspn(name, ". \t;\n");

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strlen(classes[i]) == length && !strncmp(classes[i], name, length))
            count_one(counts, classes[i]);
    count_one(counts, "all");
}

void read_sass(json_t *entries, const char *text)
{
    static const char heading[] = "Function : ";
    json_t *counts = NULL;

    for (const char *line = text; *line; line = next_line(line)) {
        const char *const name = strstr(line, heading), *it;

        if (name && name < line + strcspn(line, "\n")) {
            json_t *const entry = entry_of(entries, name + sizeof heading - 1,
                                           strcspn(name + sizeof heading - 1, " \n"));

            counts = json_object();
            json_object_set_new(entry, "instructions", counts);
        } else if (counts && (it = instruction(line)) && strncmp(it, "NOP", 3))
            count_instruction(counts, it);
    }
}

/* ---- PTX and cubins ---- */

/* The word after ".target ", as "sm_90a". */
static void target_of(char out[32], const char *ptx)
{
    const char *const at = strstr(ptx, ".target ");

    snprintf(out, 32, "%.*s", at ? (int)(strcspn(at + 8, ", \r\n")) : 5, at ? at + 8 : "sm_90");
}

/* ptxas of the PTX: registers and spills; and the machine code, where nothing else is that. */
static void assemble(json_t *entries, const char *ptx, const char *cubin_path)
{
    char tool[PATH_MAX], from[PATH_MAX], arch[32], option[48];

    if (!find_tool(tool, "ptxas") || temporary(from, ".ptx", ptx, strlen(ptx)))
        return;
    target_of(arch, ptx);
    snprintf(option, sizeof option, "-arch=%s", arch);

    char *const argv[] = { tool, "-v", option, "-o", (char *)cubin_path, from, NULL };
    char *const said = output_of(argv);

    if (said)
        read_ptxas(entries, said);
    free(said);
    unlink(from);
}

static void disassemble(json_t *entries, const char *cubin_path)
{
    char tool[PATH_MAX];

    if (!find_tool(tool, "cuobjdump"))
        return;

    char *const argv[] = { tool, "-sass", (char *)cubin_path, NULL };
    char *const said = output_of(argv);

    if (said)
        read_sass(entries, said);
    free(said);
}

static void set_hash(json_t *out, const char *name, const void *bytes, size_t count)
{
    char text[20];

    snprintf(text, sizeof text, "%016llx", (unsigned long long)XXH3_64bits(bytes, count));
    json_object_set_new(out, name, json_string(text));
}

static int is_ptx(const char *blob, size_t bytes)
{
    return bytes > 8 && strlen(blob) <= bytes && strstr(blob, ".version ") && strstr(blob, ".target ");
}

static void look_into(json_t *out, const char *ptx, const char *cubin, size_t bytes)
{
    json_t *const entries = json_object();
    char made[PATH_MAX], ran[PATH_MAX];

    if (ptx && !temporary(made, ".cubin", NULL, 0)) {
        assemble(entries, ptx, made);
        if (!cubin)
            disassemble(entries, made);
        unlink(made);
    }
    if (cubin && !temporary(ran, ".cubin", cubin, bytes)) {
        disassemble(entries, ran);
        unlink(ran);
    }
    json_object_set_new(out, "entries", entries);
}

/* ---- what is known without the tools ---- */

/* The driver's own ptxas speaks in the build log, and what it says is of the code that runs. */
static void read_build_log(json_t *entries, const struct vn_cl_device *d, const char *ptx)
{
    const unsigned char *binary = (const unsigned char *)ptx;
    const size_t bytes = strlen(ptx);
    const cl_program program = clCreateProgramWithBinary(d->context, 1, &d->id, &bytes, &binary, NULL, NULL);
    size_t size = 0;
    char *log;

    if (!program)
        return;
    if (!clBuildProgram(program, 1, &d->id, "-cl-nv-verbose", NULL, NULL)
        && !clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size)
        && (log = calloc(1, size + 1))) {
        if (!clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, size, log, NULL))
            read_ptxas(entries, log);
        free(log);
    }
    clReleaseProgram(program);
}

#if VN_WITH_CUDA
static char *cuda_ptx(vn_device *d, const char *text)
{
    char *ptx = NULL;

    return strcmp(d->backend->name, "cuda") || vn__cuda_ptx(&ptx, d, text) ? NULL : ptx;
}

static void ask_driver(json_t *entries, vn_device *d, const struct vn_choice *it)
{
    char names[256], *rest = names;

    if (strcmp(d->backend->name, "cuda"))
        return;
    snprintf(names, sizeof names, "%s", it->variant->entries);
    for (int i = 0; i < VN_ENTRIES && rest; i++) {
        const char *const name = strsep(&rest, " ");
        struct vn_cuda_kernel_facts facts;

        if (!*name || vn__cuda_kernel_facts(&facts, it->kernel[i]))
            continue;

        json_t *const entry = entry_of(entries, name, strlen(name));

        json_object_set_new(entry, "registers",   json_integer(facts.registers));
        json_object_set_new(entry, "stack_bytes", json_integer(facts.stack_bytes));
        json_object_set_new(entry, "local_bytes", json_integer(facts.local_bytes));
    }
}
#else
static char *cuda_ptx(vn_device *d, const char *text)
{
    (void)d;
    (void)text;
    return NULL;
}

static void ask_driver(json_t *entries, vn_device *d, const struct vn_choice *it)
{
    (void)entries;
    (void)d;
    (void)it;
}
#endif

static json_t *describe(vn_device *d, const struct vn_choice *it, const char *text, const char *blob,
                        size_t bytes)
{
    json_t *const out = json_object();
    char *const asked = cuda_ptx(d, text);
    const char *const ptx = asked ? asked : is_ptx(blob, bytes) ? blob : NULL;
    const int is_elf = bytes > 4 && !memcmp(blob, "\177ELF", 4);

    set_hash(out, "text_hash", text, strlen(text));
    set_hash(out, "binary_hash", blob, bytes);
    json_object_set_new(out, "binary_bytes", json_integer((json_int_t)bytes));
    if (ptx)
        set_hash(out, "ptx_hash", ptx, strlen(ptx));
    look_into(out, ptx, asked && is_elf ? blob : NULL, bytes);
    ask_driver(json_object_get(out, "entries"), d, it);
    if (ptx && !asked && !strcmp(d->backend->name, "opencl"))
        read_build_log(json_object_get(out, "entries"), d->impl, ptx);
    free(asked);
    return out;
}

json_t *disassembly(vn_device *d, const struct vn_choice *it, vn_type type, int wide)
{
    char *const text = vn__assemble(d->backend->name, it->variant, it->p, it->c, type, wide, &it->epilogue);
    void *program = NULL, *blob = NULL;
    json_t *out = NULL;
    size_t bytes = 0;

    if (text && !vn__cache_build(&program, NULL, d, text) &&
        !d->backend->program_save(program, &blob, &bytes)) {
        char *const ended = realloc(blob, bytes + 1);       /* PTX is text: it gets an end */

        if (ended) {
            blob = ended;
            ended[bytes] = '\0';
            out = describe(d, it, text, blob, bytes);
        }
    }
    free(blob);
    if (program)
        vn__cache_close(d, program);
    free(text);
    return out;
}
