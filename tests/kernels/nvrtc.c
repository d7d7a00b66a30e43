/* SPDX-License-Identifier: Apache-2.0
 *
 * nvrtc.c - compiles files as CUDA for one architecture
 *
 *     nvrtc sm_90 FILE...             into nothing
 *     nvrtc -o CUBIN sm_90 FILE       as the library does; prints what ptxas says of each kernel
 *     nvrtc --version
 *
 * Loads NVRTC at run time; exits with 77 where there is none.  No GPU is needed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int   (*create) (void **out, const char *text, const char *name, int, const char *const *,
                        const char *const *);
static int   (*compile)(void *program, int count, const char *const *options);
static int   (*log_size)(void *program, size_t *out);
static int   (*log_text)(void *program, char *out);
static int   (*destroy)(void **program);
static int   (*version)(int *major, int *minor);
static int   (*cubin_size)(void *program, size_t *out);
static int   (*cubin)  (void *program, char *out);

static int load(void)
{
    static const char *const names[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2" };
    static const struct { const char *name; void *to; } functions[] = {
        { "nvrtcCreateProgram",     &create   },
        { "nvrtcCompileProgram",    &compile  },
        { "nvrtcGetProgramLogSize", &log_size },
        { "nvrtcGetProgramLog",     &log_text },
        { "nvrtcDestroyProgram",    &destroy  },
        { "nvrtcVersion",           &version  },
        { "nvrtcGetCUBINSize",      &cubin_size },
        { "nvrtcGetCUBIN",          &cubin    },
    };
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
        void *const function = dlsym(library, functions[i].name);

        if (!function)
            return 0;
        memcpy(functions[i].to, &function, sizeof function);
    }
    return library != NULL;
}

static char *read_file(const char *path)
{
    enum { LIMIT = 1 << 20 };
    FILE *f = fopen(path, "r");
    char *text = calloc(1, LIMIT);

    if (!f || !text || !fread(text, 1, LIMIT - 1, f)) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return text;
}

static char *log_of(void *program)
{
    size_t size = 0;
    char *log;

    log_size(program, &size);
    log = calloc(1, size + 1);
    log_text(program, log);
    return log;
}

static int write_cubin(const char *path, void *program)
{
    FILE *f = fopen(path, "wb");
    size_t size = 0;
    char *bytes;
    int failed;

    failed = !f || cubin_size(program, &size) || !(bytes = malloc(size)) || cubin(program, bytes) ||
             fwrite(bytes, 1, size, f) != size;
    if (f)
        failed |= fclose(f);
    if (failed)
        perror(path);
    return failed;
}

enum { INVALID_OPTION = 5 };

/* What NVRTC returns.  Without a cubin it optimizes less, which is faster, where its version can; and ptxas
 * does with -O1, which allocates registers likewise.                                                      */
static int compile_program(void *program, const char *arch, int is_shipped)
{
    static int is_old;
    char option[64];
    const char *const options[] = { option, "--fmad=false", "--std=c++14",
                                    is_shipped ? "--ptxas-options=-v" : "--ptxas-options=-O1",
                                    "--Ofast-compile=mid" };
    const int count = sizeof options / sizeof *options;
    int result = INVALID_OPTION;

    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    if (!is_shipped && !is_old)
        result = compile(program, count, options);
    is_old |= !is_shipped && result == INVALID_OPTION;
    return is_shipped || is_old ? compile(program, count - 1, options) : result;
}

static int compile_file(const char *path, const char *arch, const char *to)
{
    char *log, *text = read_file(path);
    void *program;
    int failed;

    if (create(&program, text, path, 0, NULL, NULL)) {
        fprintf(stderr, "%s: NVRTC makes no program of it\n", path);
        return 1;
    }
    failed = compile_program(program, arch, to != NULL) != 0;
    log = log_of(program);
    if (failed)
        fprintf(stderr, "%s does not compile for %s:\n%s\n", path, arch, log);
    else if (to)
        failed = puts(log) < 0 || write_cubin(to, program);
    free(log);
    destroy(&program);
    free(text);
    return failed;
}

int main(int argc, char **argv)
{
    const char *to = NULL;
    int failed = 0, major = 0, minor = 0;

    if (!load()) {
        puts("no libnvrtc.so.13, .12 or .11.2; pip install nvidia-cuda-nvrtc gives one");
        return 77;
    }
    if (argc == 2 && !strcmp(argv[1], "--version"))
        return version(&major, &minor) || printf("NVRTC %d.%d\n", major, minor) < 0;
    if (argc == 5 && !strcmp(argv[1], "-o")) {
        to = argv[2];
        argv += 2;
        argc -= 2;
    }
    for (int i = 2; i < argc; i++)
        failed |= compile_file(argv[i], argv[1], to);
    return failed;
}
