/* SPDX-License-Identifier: Apache-2.0
 *
 * hopper.c - kernels whose warps do different things, for NVIDIA's sm_90, on a machine without one.
 *
 * The device is said to be of that maker.  Its kernels are compiled as C++ with tests/kernels/hopper.h, which
 * stands in for the atoms; kernel, tile layer, rows, trial and plan are those that are shipped.  The
 * conformance suite then runs the variant, by each row in turn.
 *
 *     hopper [VARIANT [ROW]]
 *     hopper --suite SEED [VARIANT [ROW]]      the whole suite, as check --full, in place of chosen problems
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"
#include "check/suite.h"

enum { MOST_TILES = 21 };

/* A variant that is tested; rows: of its tune file. */
struct tested {
    const char *variant;
    int         rows;
    const char *alone;                  /* a problem that it is chosen for; NULL: it has no trial */
    int         alone_row;              /* with this row */
    int         least;                  /* how many tiles a row runs; 1: a row behind the first runs one */
    void      (*suite)(struct suite *s);        /* what else is run with the first row; may be NULL */
    struct { enum kind kind; const char *text; } tiles[MOST_TILES];
};

static const char *variant;             /* what is being tested */
static int turn;                        /* which row of the variant is used */
static int teams;                       /* that take turns with the tensor cores, in that row */
static uint64_t seed;                   /* of the suite; 0: chosen problems */
static char directory[64];
static int wrong;                       /* the engine does something else than it should */

/* ---- what stands before functions of the library (see LDFLAGS) ------------------------- */

const struct vn_text *__real_vn__text_find(const char *path);
const struct vn_text *__wrap_vn__text_find(const char *path);
vn_status __real_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket b);
vn_status __wrap_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket b);
const char *__wrap_suite_next_variant(const struct suite *s, const struct op *op, const char *before);

/* The stand-in has what the atoms have. */
const struct vn_text *__wrap_vn__text_find(const char *path)
{
    static const char words[] = "#undef LARGE_LOCAL\n#define LARGE_LOCAL(kernel, n)\n"
                                "#undef LARGE_LOCAL_ARRAY\n"
                                "#define LARGE_LOCAL_ARRAY(v, n) unsigned char *v = local_memory; "
                                "static_assert((n) <= (int)sizeof local_memory, \"it fits\")\n";
    static const struct vn_text none = { "", words, sizeof words - 1 };

    return strncmp(path, "cl/atoms/nvidia/", 16) ? __real_vn__text_find(path) : &none;
}

/* The value of a parameter in a row; 0 if the variant has none of that name. */
static int parameter(const struct vn_variant *v, const struct vn_row *row, const char *name)
{
    const char *at = v->params;

    for (int i = 0; *at; i++) {
        const size_t length = strcspn(at, " ");

        if (length == strlen(name) && !strncmp(at, name, length))
            return row->p[i];
        at += length + strspn(at + length, " ");
    }
    return 0;
}

vn_status __wrap_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket b)
{
    const vn_status s = __real_vn__tune_find(out, count, d, v, type, b);

    if (s == VN_OK && !strcmp(v->name, variant) && *count > 0) {
        *out = out[turn % *count];
        *count = 1;
        teams = parameter(v, out, "TEAMS");
    }
    return s;
}

const char *__wrap_suite_next_variant(const struct suite *s, const struct op *op, const char *before)
{
    (void)s;
    (void)op;
    return before ? NULL : variant;
}

/* ---- a backend whose kernels run here ----------------------------------------------------- */

static const struct vn_backend *memory;         /* of the device that lends its buffers */

/* An entry of a program. */
struct kernel {
    void       (*launch)(const int64_t *groups, int items, void **args);
    const int *(*takes)(void);          /* the bytes of each argument, 0 of a buffer; behind the last -1 */
    long        *vectors;               /* that its launches have stored */
    char         name[96];
};

/* A text takes longer to compile than to run: what pays to be optimized more than this, hopper.h says.
 * _FORTIFY_SOURCE would refuse to jump from one stack to another.                                     */
#define COMPILER "c++ -std=c++17 -O1 -march=native -w -Wno-psabi -ffp-contract=off -fno-strict-aliasing " \
                 "-U_FORTIFY_SOURCE"

/* The stand-in, compiled once for all texts; a compiler that cannot use that reads it again. */
static int precompile(void)
{
    char command[1024];

    snprintf(command, sizeof command,
             "cd %s && echo '#include \"%s\"' > hopper.h && "
             COMPILER " -fPIC -x c++-header -o hopper.h.gch hopper.h",
             directory, STAND_IN);
    return system(command);
}

static vn_status compile(void **program, const char *text, const char *path)
{
    char command[1024], library[128];
    FILE *f = fopen(path, "w");
    int failed = !f || fprintf(f, "%s\n", text) < 0, length;

    for (const char *at = text; f && (at = strstr(at, "\nKERNEL")); ) {
        if (!(at = strstr(at, "void")))
            break;
        at += strlen("void");
        at += strspn(at, " \n");
        length = (int)strcspn(at, "(");
        failed |= fprintf(f, "ENTRY(%.*s)\n", length, at) < 0;
    }
    failed |= f && fclose(f);
    snprintf(library, sizeof library, "%s.so", path);
    snprintf(command, sizeof command, COMPILER " %s -fPIC -shared -include '%s/hopper.h' -o %s %s >&2",
             wrong ? "-DWRONG" : "", directory, library, path);
    if (failed || system(command))
        return vn__fail(VN_FAILED, "%s does not compile", path);
    *program = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return *program ? VN_OK : vn__fail(VN_FAILED, "%s", dlerror());
}

static vn_status build(void **program, vn_device *d, const char *text)
{
    static int count;
    char path[96];

    (void)d;
    snprintf(path, sizeof path, "%s/kernel%d.cpp", directory, count++);
    return compile(program, text, path);
}

static void close_program(void *program) { dlclose(program); }
static void close_kernel(void *it) { free(it); }

/* to: a pointer to a function. */
static int find(void *to, void *program, const char *prefix, const char *entry)
{
    char name[128];
    void *found;

    snprintf(name, sizeof name, "%s_%s", prefix, entry);
    found = dlsym(program, name);
    memcpy(to, &found, sizeof found);
    return found != NULL;
}

static vn_status open_kernel(void **out, vn_device *d, void *program, const char *entry)
{
    struct kernel *const k = malloc(sizeof *k);

    (void)d;
    if (!k)
        return vn__fail(VN_NO_MEMORY, "no memory for a kernel");
    snprintf(k->name, sizeof k->name, "%s", entry);
    if (!find(&k->launch, program, "launch", entry) || !find(&k->takes, program, "takes", entry)) {
        free(k);
        return vn__fail(VN_FAILED, "%s", dlerror());
    }
    k->vectors = dlsym(program, "stored_vectors");
    *out = k;
    return VN_OK;
}

/* As OpenCL drivers do: CL_INVALID_KERNEL_ARGS and CL_INVALID_ARG_SIZE. */
static vn_status check_args(const struct kernel *k, const struct vn_launch *l)
{
    const int *const bytes = k->takes();
    int count = 0;

    while (bytes[count] >= 0)
        count++;
    if (count != l->nargs)
        return vn__fail(VN_FAILED, "%s takes %d arguments; the launch has %d", k->name, count, l->nargs);
    for (int i = 0; i < count; i++)
        if ((size_t)bytes[i] != l->args[i].size)
            return vn__fail(VN_FAILED, "argument %d of %s has %zu bytes; it needs %d (0: a buffer)", i,
                            k->name, l->args[i].size, bytes[i]);
    return VN_OK;
}

/* Where a buffer's copy lies, which is one address as long as the buffer is open: kernels keep it in tensor
 * maps from launch to launch. */
static void *place_of(const vn_buffer *b)
{
    enum { MOST = 4096 };
    static struct { const vn_buffer *of; size_t bytes; void *at; } copy[MOST];
    int i = 0;

    while (i < MOST && copy[i].of && copy[i].of != b)
        i++;
    if (i == MOST)
        return NULL;
    if (copy[i].bytes < b->bytes) {             /* its handle was that of a closed one */
        free(copy[i].at);
        copy[i].bytes = 0;
        if (!(copy[i].at = aligned_alloc(4096, (b->bytes + 4095) / 4096 * 4096)))
            return NULL;
        copy[i].bytes = b->bytes;
    }
    copy[i].of = b;
    return copy[i].at;
}

/* The arguments as a kernel takes them: copies of all buffers among them, each once. */
struct frame { union { int64_t view[8]; void *pointer; } __attribute__((aligned(64))) arg[VN_ARGS]; };

static vn_status transfer(vn_queue *q, struct frame *f, const struct vn_launch *l, int back)
{
    vn_status s = VN_OK;

    for (int i = 0; i < l->nargs && s == VN_OK; i++) {
        vn_buffer *const b = l->args[i].size ? NULL : l->args[i].buffer;
        int first = 0;

        while (b && (l->args[first].size || l->args[first].buffer != b))
            first++;
        if (!b && !back)
            memcpy(&f->arg[i], &l->args[i].value, sizeof f->arg[i]);
        else if (b && first < i)
            f->arg[i] = f->arg[first];
        else if (b && back)
            s = memory->write(q, b, 0, f->arg[i].pointer, b->bytes, 1);
        else if (b && !(f->arg[i].pointer = place_of(b)))
            s = vn__fail(VN_NO_MEMORY, "no memory for a copy");
        else if (b)
            s = memory->read(q, f->arg[i].pointer, b, 0, b->bytes, 1);
    }
    return s;
}

/* Of the last launch: whether it was told that its tensor maps are there, and the vectors that it stored. */
static int kept;
static long vectors;

static vn_status launch(vn_queue *q, void *it, const struct vn_launch *l)
{
    const struct kernel *const k = it;
    struct frame frame;
    void *args[VN_ARGS];
    vn_status s = check_args(k, l);

    if (s || (s = transfer(q, &frame, l, 0)))
        return s;
    for (int i = 0; i < l->nargs; i++)
        args[i] = &frame.arg[i];
    kept = l->maps_at && l->args[l->maps_at + 1].value.i;
    *k->vectors = 0;
    k->launch(l->groups, l->items, args);
    vectors = *k->vectors;
    return transfer(q, &frame, l, 1);
}

/* ---- the tests ---------------------------------------------------------------------------- */

static long count[KIND_COUNT], failures;

static void say(const struct suite *s, const struct suite_group *g)
{
    (void)s;
    printf("%sok - %s, row %d: %ld cases, %ld passed over, %.1f s, worst %.2f of the bound\n%s",
           g->failed ? "not " : "", g->name, turn, g->cases, g->passed_over, g->seconds, g->worst,
           g->failures);
    fflush(stdout);
}

static vn_status disguise(struct suite **s)
{
    static struct vn_backend ours;
    const vn_status status = suite_open(s, NULL);

    if (status)
        return status;
    memory = (*s)->device->backend;
    ours = *memory;
    ours.name = "cuda";
    ours.program_build = build;
    ours.program_close = close_program;
    ours.kernel_open   = open_kernel;
    ours.kernel_close  = close_kernel;
    ours.launch        = launch;
    (*s)->device->backend = &ours;
    strcpy((*s)->device->facts.family, "nvidia");
    strcpy((*s)->device->facts.arch, "sm_90");
    strcpy((*s)->device->facts.name, "NVIDIA H100");
    (*s)->device->facts.units = 3;
    (*s)->device->facts.types |= 1u << VN_F16;
    (*s)->extent = SUITE_QUICK;
    (*s)->group_done = say;
    return VN_OK;
}

/* What the suite seldom draws: several tiles and blocks, the last of each not whole. */
static const struct tested all_tested[] = {
    { "gemm_wgmma", 15, "gemm:200x264x200:f16:nt", 1, 1, NULL, {
        { EXACT, "gemm:456x392x136:f16:nt:beta=1:bias=row" },
        { EXACT, "gemm:136x200x72:f16:nt:batch=3:beta=2:residual=full" },
        { REAL,  "gemm:456x392x200:bf16:nt:bias=row:act=gelu" },
        { REAL,  "gemm:200x520x72:bf16:nn:beta=1:bias=row" },
        { EXACT, "gemm:200x264x200:bf16:nt:beta=1" },
        { EXACT, "gemm:72x136x200:f16:tn:beta=2:batch=2" },
        { REAL,  "gemm:136x133x136:f16:tt:beta=1:act=gelu" },
        { EXACT, "gemm:700x520x40:f16:nt:beta=1" },                     /* tiles of one slice */
        { EXACT, "gemm:264x424x136:f16:nt:bias=row" },
        { EXACT, "gemm:5x72x200:f16:nn:beta=1" },                       /* few rows, with a residual */
    } },
    { "gemm_wgmma_splitk", 2, "gemm:128x128x4096:f16:nt", 0, 1, NULL, {
        { EXACT, "gemm:136x200x520:f16:nt" },
        { REAL,  "gemm:72x264x1000:bf16:tn:bias=row:act=relu" },
        { EXACT, "gemm:200x72x328:bf16>f32:nn:beta=1" },
    } },
    { "gemm_bf16x3_rows", 2, NULL, 0, 1, NULL, {
        { EXACT, "gemm:136x392x136:f32:nt:beta=1:bias=row" },
        { REAL,  "gemm:200x264x520:f32:nn:act=gelu" },
        { REAL,  "gemm:72x136x200:f32:tt:batch=2" },
        { EXACT, "gemm:264x72x264:f32:tn:beta=2" },
        { SPECIAL, "gemm:72x136x136:f32:nt" },                          /* one of three is tried */
        { SPECIAL, "gemm:72x136x136:f32:nn" },
        { SPECIAL, "gemm:136x72x136:f32:nt" },
    } },
    { "gemm_tf32", 4, "gemm:200x264x200:f32:nt:math=tf32", 1, 1, NULL, {
        { EXACT, "gemm:200x392x136:f32:nt:beta=1:bias=row:math=tf32" },
        { REAL,  "gemm:136x200x100:f32:tn:batch=2:math=tf32" },
        { EXACT, "gemm:133x135x70:f32:nn:math=tf32" },
        { EXACT, "gemm:9x200x72:f32:nt:math=tf32" },
        { SPECIAL, "gemm:72x136x40:f32:tt:math=tf32" },                 /* one of three is tried */
        { SPECIAL, "gemm:72x136x40:f32:tn:math=tf32" },
        { SPECIAL, "gemm:72x136x40:f32:nn:math=tf32" },
    } },
    { "conv_wgmma", 14, "conv:n2c64h6w5k64r3s3:bf16:nhwc:pad=1", 0, 1, NULL, {
        { EXACT, "conv:n3c72h9w11k136r3s3:bf16:nhwc:pad=1:stride=2:backward-data" },
        { EXACT, "conv:n2c64h12w12k64r3s3:f16:nhwc:pad=1" },
        { EXACT, "conv:n2c72h12w12k64r3s3:f16:nhwc:pad=1:backward-data" },
        { REAL,  "conv:n3c72h9w11k136r3s3:bf16:nhwc:pad=1:stride=2:bias:act=relu" },
        { REAL,  "conv:n2c72h9w11k136r3s3:f16:nhwc:pad=1:bias:act=silu" },
        { REAL,  "conv:n2c136h14w9k72r1s1:f16:nhwc:stride=2:backward-data" },
        { EXACT, "conv:n1c200h17w13k67r5s4:f16:nhwc:dil=2x1:pad=2" },
        { REAL,  "conv:n2c136h14w9k264r1s1:f16:nhwc:stride=2:residual=full:beta=1:bias=row" },
        { EXACT, "conv:n1c64h5w6d4k72t3r3s3:f16:nhwc:pad=1:stride=2:backward-data" },
        { EXACT, "conv:n1c64h13w14k72r4s5:f16:nhwc:stride=3:dil=2:pad=2:backward-data:beta=1" },
        { EXACT, "conv:n3c72h4w14k136r1s1:f16" },                       /* pixels are contiguous */
        { REAL,  "conv:n2c72h12w16k72r1s1:bf16:bias:act=relu" },
        { EXACT, "conv:n3c136h8w10k72r1s1:f16:backward-data:beta=1" },
        { REAL,  "conv:n2c72h9w11k72r3s3:f16:nhwc:pad=1:gap=8" },
        { EXACT, "conv:n2c64h12w12k264r3s3:f16:nhwc:pad=1:residual=full:beta=2" },
        { EXACT, "conv:n2c64h21w23k264r1s1:f16:nhwc:residual=full:beta=1:bias" },
    } },
    { "conv_wgmma_splitk", 2, "conv:n1c200h6w5k64r3s3:bf16:nhwc:pad=1", 0, 1, NULL, {
        { EXACT, "conv:n1c72h9w11k136r3s3:bf16:nhwc:pad=1:stride=2:backward-data" },
        { EXACT, "conv:n1c200h9w8k67r3s2:f16:nhwc:pad=1:beta=1" },
        { REAL,  "conv:n2c72h9w7k136r3s3:bf16:nhwc:pad=1:bias:act=relu" },
        { EXACT, "conv:n1c8h5w1k8r2s1:f16:stride=1x2:pad=0x1-0:nhwc:backward-data" },  /* meets no tap */
    } },
    { "conv_window", 3, "conv:n2c64h17w13k64r3s3:f16:nhwc:pad=1", 0, 1, NULL, {
        { EXACT, "conv:n3c64h17w19k64r3s3:f16:nhwc:pad=1" },
        { EXACT, "conv:n3c64h17w19k64r3s3:f16:nhwc:pad=1:backward-data" },
        { REAL,  "conv:n2c40h23w57k72r2s3:bf16:nhwc:dil=1x2:bias:act=relu" },
        { EXACT, "conv:n3c16h11w13k64r2s4:f16:nhwc:pad=0-1x1-3" },
        { EXACT, "conv:n1c40h5w1k40r2s1:f16:stride=1x2:pad=0x1-0:nhwc:backward-data" },  /* meets no tap */
        { EXACT, "conv:n2c8h3w4k7r1s2:f16:nhwc:dil=1x2:pad=2x3" },  /* rows of the output are longer */
        { REAL,  "conv:n1c8h13w4k7r1s2:bf16:nhwc:dil=3x2:pad=0x3:packed:act=tanh" },
    } },
    { "conv_window_blocks", 4, "conv:n2c72h17w13k64r3s3:f16:nhwc:pad=1", 0, 3, NULL, {
        { EXACT, "conv:n2c136h14w14k72r3s3:f16:nhwc:pad=1" },
        { EXACT, "conv:n2c128h9w11k136r3s3:bf16:nhwc:pad=1:backward-data" },        /* N-major: not 32 wide */
        { REAL,  "conv:n2c72h23w27k72r2s3:bf16:nhwc:dil=1x2:bias:act=relu" },       /* a window of 23 KiB */
        { EXACT, "conv:n1c256h7w7k40r3s3:f16:nhwc:pad=1:bias=row:act=relu" },
        { EXACT, "conv:n2c200h11w13k67r2s4:f16:nhwc:pad=0-1x1-3" },
        { EXACT, "conv:n1c72h5w3k88r1s2:f16:nhwc:dil=1x2:pad=0x1:beta=1" },
        { REAL,  "conv:n1c136h13w4k72r1s2:bf16:nhwc:dil=3x2:pad=0x3:beta=1:act=tanh" },
    } },
    { "conv_strips_window", 11, NULL, 0, 3, NULL, {
        { EXACT, "conv:n2c72h29w30k72r3s3:f16:nhwc:groups=72:pad=1" },
        { EXACT, "conv:n3c16h13w12k16r3s3:bf16:nhwc:groups=16:pad=1:stride=2:beta=2" },
        { EXACT, "conv:n2c40h9w17k40r3s3:f16:nhwc:groups=40:pad=1x0:backward-data" },
        { EXACT, "conv:n2c72h17w20k72r3s3:f16:nhwc:groups=72:pad=1:stride=2:backward-data" },
        { REAL,  "conv:n1c136h15w31k136r5s5:bf16:nhwc:groups=136:pad=2:bias:act=silu" },
        { REAL,  "conv:n2c24h15w11k24r5s5:f16:nhwc:groups=24:pad=2:stride=2:bias=row:act=relu" },
        { EXACT, "conv:n2c16h9w8k16r5s5:f16:nhwc:groups=16:pad=2:stride=2:backward-data" },
        { EXACT, "conv:n2c40h15w16k40r3s3:f32:nhwc:groups=40:pad=1:residual=full:beta=1" },
        { REAL,  "conv:n1c72h16w9k72r3s3:f32:nhwc:groups=72:pad=1:stride=2:bias:act=relu" },
        { EXACT, "conv:n2c16h15w16k16r3s3:f32:nhwc:groups=16:pad=0-1:stride=2:backward-data:gap=8" },
        { EXACT, "conv:n1c40h13w15k40r5s5:f32:nhwc:groups=40:pad=2:stride=2" },
        { SPECIAL, "conv:n2c16h9w11k16r3s3:f16:nhwc:groups=16:pad=1" },  /* one of three is tried */
        { SPECIAL, "conv:n1c16h9w11k16r3s3:bf16:nhwc:groups=16:pad=1:stride=2" },
        { SPECIAL, "conv:n1c16h9w11k16r3s3:f32:nhwc:groups=16:pad=1:stride=2:backward-data" },
    } },
    { "conv_window_phases", 1, "conv:n2c3h17w19k64r3s3:f16:nhwc:pad=1:stride=2:backward-data", 0, 1, NULL, {
        { EXACT, "conv:n3c3h29w31k64r7s7:f16:nhwc:pad=3:stride=2:backward-data" },
        { EXACT, "conv:n2c2h17w20k40r5s4:f16:nhwc:pad=2:stride=1x3:backward-data" },
        { REAL,  "conv:n2c3h24w24k24r7s7:bf16:nhwc:pad=3:stride=2:backward-data:beta=1:bias" },
        { SPECIAL, "conv:n2c3h9w12k16r3s3:f16:nhwc:pad=1:stride=2:backward-data" },  /* 1 of 3 is tried */
        { SPECIAL, "conv:n2c3h13w12k16r5s5:f16:nhwc:pad=2:stride=2:backward-data" },
        { SPECIAL, "conv:n2c3h19w17k16r7s7:f16:nhwc:pad=3:stride=2:backward-data" },
        { EXACT, "conv:n2c5h13w19k64r3s3:f16:pad=1x0:backward-data" },
    } },
    { "conv_wgmma_few", 2, "conv:n2c3h17w19k64r3s3:f16:nhwc:pad=1", 0, 1, NULL, {
        { EXACT, "conv:n2c3h21w23k72r7s7:f16:nhwc:pad=3:stride=2" },
        { EXACT, "conv:n2c16h13w12k64r5s4:f16:nhwc:pad=1:stride=2" },
        { EXACT, "conv:n2c1h17w44k24r3s20:f16:nhwc:dil=2x1:stride=2" },
        { EXACT, "conv:n2c3h21w24k40r7s7:f16:pad=3:stride=2" },
        { SPECIAL, "conv:n2c3h15w12k16r5s5:f16:stride=2:pad=2" },        /* one of three is tried */
        { SPECIAL, "conv:n1c3h9w11k16r3s3:bf16:nhwc:stride=2:pad=1" },
        { SPECIAL, "conv:n2c3h19w17k16r7s7:f16:stride=2:pad=3" },
    } },
    { "conv_tf32", 8, "conv:n2c64h6w5k64r3s3:f32:nhwc:pad=1:math=tf32", 0, 1, NULL, {
        { EXACT, "conv:n2c64h12w12k64r3s3:f32:nhwc:pad=1:math=tf32" },
        { REAL,  "conv:n3c72h9w11k136r3s3:f32:nhwc:pad=1:stride=2:bias:act=silu:math=tf32" },
        { EXACT, "conv:n3c72h9w11k136r3s3:f32:nhwc:pad=1:stride=2:backward-data:math=tf32" },
        { REAL,  "conv:n2c40h9w11k68r3s3:f32:pad=1:beta=1:math=tf32" },
        { REAL,  "conv:n2c3h21w23k72r7s7:f32:nhwc:pad=3:stride=2:math=tf32" },
        { EXACT, "conv:n1c36h17w13k67r5s4:f32:nhwc:dil=2x1:pad=2:math=tf32" },
        { REAL,  "conv:n2c72h14w9k136r1s1:f32:nhwc:stride=2:backward-data:math=tf32" },
        { EXACT, "conv:n1c36h5w6d4k40t3r2s3:f32:nhwc:pad=1:math=tf32" },
        { SPECIAL, "conv:n2c40h7w9k72r2s2:f32:nhwc:stride=2:math=tf32" },        /* one of three is tried */
        { SPECIAL, "conv:n2c40h7w9k72r2s2:f32:nhwc:stride=2:backward-data:math=tf32" },
        { SPECIAL, "conv:n2c3h7w9k72r3s3:f32:nhwc:pad=1:math=tf32" },
        { REAL,  "conv:n1c40h13w14k40r4s5:f32:nhwc:stride=3:dil=2:pad=2:backward-data:math=tf32" },
        { EXACT, "conv:n2c37h9w11k72r1s1:f32:stride=2:beta=1:math=tf32" },
        { EXACT, "conv:n2c2h16w17k67r7s7:f32:nhwc:pad=3:stride=2:packed:math=tf32" },
        { REAL,  "conv:n1c40h9w11k72r3s3:f32:nhwc:pad=1:backward-data:packed:math=tf32" },
        { EXACT, "conv:n1c40h9w11k72r3s3:f32:pad=1:backward-data:math=tf32" },
        { EXACT, "conv:n2c36h1w1k40r1s1:f32:nhwc:stride=2:pad=1:backward-data:beta=1:math=tf32" },
    } },
    { "conv_bf16x3", 4, "conv:n2c64h6w5k64r3s3:f32:nhwc:pad=1", 0, 1, NULL, {
        { EXACT, "conv:n2c64h12w12k64r3s3:f32:nhwc:pad=1" },
        { REAL,  "conv:n3c72h9w11k136r3s3:f32:nhwc:pad=1:stride=2:bias:act=relu" },
        { REAL,  "conv:n1c40h13w11k72r5s5:f32:pad=2:beta=1" },
        { SPECIAL, "conv:n2c40h7w9k72r2s2:f32:nhwc:stride=2" },          /* one of three is tried */
        { SPECIAL, "conv:n2c40h7w9k72r2s2:f32:nhwc:stride=2:backward-data" },
        { SPECIAL, "conv:n2c3h7w9k72r3s3:f32" },
        { EXACT, "conv:n2c3h16w17k67r7s7:f32:pad=3:stride=2" },
        { EXACT, "conv:n1c40h5w6d4k40t3r2s3:f32:nhwc:pad=1" },
        { REAL,  "conv:n3c70h12w21k72r1s1:f32:bias" },
        { EXACT, "conv:n3c72h9w11k40r3s3:f32:pad=1:stride=2:backward-data" },
        { REAL,  "conv:n2c70h14w9k72r1s1:f32:nhwc:stride=2:backward-data:bias" },
        { EXACT, "conv:n1c5d8h9w8k7t5r3s1:f32:stride=1x3x2:pad=3-1x1x0-1:backward-data" },
        { REAL,  "conv:n2c40h19w20k72r1s1:f32:stride=2:backward-data:bias=full:beta=1" },
        { REAL,  "conv:n1c40h13w14k40r4s5:f32:nhwc:stride=3:dil=2:pad=2:backward-data:beta=1" },
        { REAL,  "conv:n2c40h9w11k72r3s3:f32:nhwc:pad=1:packed" },
        { REAL,  "conv:n2c3h16w17k67r7s7:f32:pad=3:stride=2:packed" },
        { EXACT, "conv:n1c40h9w11k72r3s3:f32:stride=2:backward-data:packed" },
    } },
    { "conv_tf32_filter", 6,
      "conv:n2c64h6w5k64r3s3:f32:backward-filter:nhwc:pad=1:math=tf32", 0, 1, NULL, {
        { EXACT, "conv:n3c40h11w9k136r3s3:f32:backward-filter:nhwc:pad=1:stride=2:math=tf32" },
        { REAL,  "conv:n2c3h20w21k40r7s7:f32:backward-filter:pad=3:stride=2:math=tf32" },
        { REAL,  "conv:n1c20h5w6d4k72t3r3s3:f32:backward-filter:nhwc:pad=1:math=tf32" },
        { EXACT, "conv:n3c100h13w13k136r1s1:f32:backward-filter:nhwc:beta=2:math=tf32" },
        { REAL,  "conv:n2c36h9w11k200r3s2:f32:backward-filter:nhwc:dil=2:math=tf32" },
        { SPECIAL, "conv:n2c16h7w9k72r3s3:f32:backward-filter:nhwc:pad=1:math=tf32" },   /* one of three is */
        { SPECIAL, "conv:n3c16h5w6k24r3s3:f32:backward-filter:nhwc:pad=1:math=tf32" },   /* tried */
        { SPECIAL, "conv:n1c16h40w9k24r3s3:f32:backward-filter:nhwc:pad=1:math=tf32" },
        { REAL,  "conv:n2c37h8w7k67r3s2:f32:backward-filter:dil=2:math=tf32" },
        { EXACT, "conv:n3c36h13w13k72r1s1:f32:backward-filter:beta=2:math=tf32" },
        { REAL,  "conv:n3c40h11w10k72r1s3:f32:backward-filter:stride=2:math=tf32" },
    } },
    { "conv_bf16x3_filter", 1,
      "conv:n2c64h6w5k64r3s3:f32:backward-filter:nhwc:pad=1", 0, 4, NULL, {
        { EXACT, "conv:n3c40h11w9k136r3s3:f32:backward-filter:nhwc:pad=1:stride=2" },
        { REAL,  "conv:n2c3h20w21k40r7s7:f32:backward-filter:pad=3:stride=2" },
        { EXACT, "conv:n3c40h11w10k72r1s1:f32:backward-filter:stride=2" },      /* copies a part of x */
        { REAL,  "conv:n2c37h8w7k67r3s2:f32:backward-filter:dil=2" },
        { SPECIAL, "conv:n2c16h7w9k72r3s3:f32:backward-filter:nhwc:pad=1" },     /* one of three is tried */
        { SPECIAL, "conv:n3c16h5w6k24r3s3:f32:backward-filter:nhwc:pad=1" },
        { SPECIAL, "conv:n1c16h40w9k24r3s3:f32:backward-filter:nhwc:pad=1" },
        { REAL,  "conv:n1c20h5w6d4k72t3r3s3:f32:backward-filter:nhwc:pad=1" },
    } },
    { "conv_window_filter", 1,
      "conv:n8c64h14w14k64r3s3:f16:backward-filter:nhwc:pad=1", 0, 4, NULL, {
        { EXACT, "conv:n2c72h11w13k96r3s3:f16:backward-filter:nhwc:pad=1" },
        { REAL,  "conv:n5c64h7w7k64r3s3:f16:backward-filter:nhwc:pad=1" },
        { SPECIAL, "conv:n2c16h7w9k72r3s3:f16:backward-filter:nhwc:pad=1" },     /* one of three is tried */
        { SPECIAL, "conv:n3c16h5w6k24r3s3:f16:backward-filter:nhwc:pad=1" },
        { SPECIAL, "conv:n1c16h40w9k24r3s3:f16:backward-filter:nhwc:pad=1" },
        { REAL,  "conv:n1c64h9w57k64r3s3:f16:backward-filter:nhwc:pad=1-2x0-1" },
        { EXACT, "conv:n4c16h9w14k24r3s3:f16:backward-filter:nhwc:pad=2x3:dil=2" },
    } },
    { "conv_wgmma_filter_splitk", 1,
      "conv:n16c64h20w20k64r1s1:f16:backward-filter:nhwc", 8, 4, NULL, {
        { EXACT, "conv:n3c72h11w9k96r3s3:f16:backward-filter:nhwc:pad=1:stride=2" },
        { REAL,  "conv:n2c3h20w21k65r7s7:f16:backward-filter:pad=3:stride=2" },
        { EXACT, "conv:n3c8h30w5k8r3s5:f16:backward-filter:nhwc:dil=2x1:pad=4x2:stride=1x3" },
        { EXACT, "conv:n5c16d4h6w5k24t2r2s2:bf16>f32:backward-filter:nhwc:pad=1-0:dil=2:beta=2" },
    } },
    { "conv_wgmma_filter", 1,
      "conv:n2c64h5w6k200r3s3:f16:backward-filter:nhwc:pad=1", 0, 4, NULL, {
        { EXACT, "conv:n3c72h11w9k96r3s3:f16:backward-filter:nhwc:pad=1:stride=2" },
        { REAL,  "conv:n2c37h9w9k65r3s3:f16:backward-filter:pad=1" },
        { REAL,  "conv:n1c200h7w9k136r5s5:f16:backward-filter:nhwc:pad=0-1x2-1" },
        { EXACT, "conv:n5c16d4h6w5k24t2r2s2:bf16>f32:backward-filter:nhwc:pad=1-0:dil=2:beta=2" },
    } },
    { "conv_mma", 6, "conv:n2c64h6w5k64r3s3:bf16:nhwc:groups=2:pad=1", 2, 1, NULL, {
        { EXACT, "conv:n2c24h9w11k136r3s3:f16:nhwc:pad=1:stride=2:bias:act=relu" },
        { EXACT, "conv:n3c72h9w11k64r3s3:bf16:nhwc:pad=1:stride=2:backward-data:beta=1" },
        { EXACT, "conv:n2c48h7w9k144r3s3:f16:nhwc:groups=3:pad=1" },
        { REAL,  "conv:n2c48h9w8k72r3s2:bf16:nhwc:groups=3:pad=1:backward-data:beta=1" },
        { EXACT, "conv:n1c32h13w12k20r3s3:f16:nhwc:groups=4:dil=2:pad=2:bias:act=relu" },
        { EXACT, "conv:n1c24h4w5d3k40t2r3s3:bf16>f32:nhwc:pad=1:stride=2" },
        { EXACT, "conv:n1c16h5w6d4k48t3r3s3:f16:nhwc:groups=2:pad=1:stride=2:backward-data" },
        { SPECIAL, "conv:n2c16h7w9k48r3s3:f16:nhwc:groups=2:pad=1" },    /* one of three is tried */
        { SPECIAL, "conv:n2c16h7w9k48r3s3:bf16:nhwc:groups=2:pad=1:stride=2:backward-data" },
        { SPECIAL, "conv:n1c40h9w20k24r2s3:f16:nhwc:stride=2" },
        { EXACT, "conv:n1c40h17w13k67r5s4:f16:nhwc:dil=2x1:pad=2" },
        { EXACT, "conv:n1c24h13w14k72r4s5:bf16:nhwc:stride=3:dil=2:pad=2:backward-data:beta=1" },
        { REAL,  "conv:n3c32w70k32s9:f16:nhwc:groups=2:dil=3:pad=12" },
        { EXACT, "conv:n2c3h9w11k40r3s3:f16:nhwc:pad=1:gap=5" },
        { EXACT, "conv:n2c5h9w11k45r3s3:bf16:nhwc:pad=1:stride=2:gap=3:backward-data:beta=1" },
        { REAL,  "conv:n2c136h14w9k72r1s1:f16:nhwc:stride=2:gap=8" },
        { EXACT, "conv:n2c40h9w7k24r3s3:f16:nhwc:pad=3-1x0-2:bias=full:act=relu" },
    } },
    { "conv_shallow_mma", 4, "conv:n8c3h64w64k64r3s3:f16:nhwc:pad=1", 0, 1, NULL, {
        { EXACT, "conv:n2c3h17w41k72r3s3:f16:pad=1:nhwc:bias:act=relu" },
        { EXACT, "conv:n2c1h23w75k32r5s20:f16:nhwc:stride=2" },
        { REAL,  "conv:n1c4h30w29k64r4s4:bf16:stride=2:pad=3-1:nhwc:beta=1" },
        { EXACT, "conv:n3c8h9w70k32r3s3:bf16:nhwc:groups=2:pad=1:dil=2" },
        { EXACT, "conv:n2c2h20w33k24r3s5:f16>f32:nhwc:pad=1x2:bias=full:gap=8" },
        { SPECIAL, "conv:n1c3h9w11k40r3s3:bf16:nhwc:pad=1" },            /* one of three is tried */
        { SPECIAL, "conv:n1c1h19w21k16r5s5:f16:nhwc:stride=2:pad=2" },
        { SPECIAL, "conv:n1c4h20w9k64r1s1:f16:nhwc" },
    } },
    { "conv_shallow_wgmma", 3, "conv:n8c3h64w64k64r3s3:f16:nhwc:stride=2:pad=1", 0, 1, NULL, {
        { EXACT, "conv:n2c3h17w41k72r3s3:f16:pad=1:nhwc:stride=2:bias:act=relu" },
        { EXACT, "conv:n1c3h40w150k64r7s7:f16:nhwc:stride=2:pad=3" },
        { REAL,  "conv:n1c4h30w29k64r4s4:bf16:stride=2:pad=3-1:nhwc:beta=1" },
        { EXACT, "conv:n3c8h9w70k35r3s3:bf16:nhwc:pad=1" },
        { EXACT, "conv:n2c2h22w33k24r3s5:f16>f32:nhwc:pad=1x2:stride=2:bias=full:gap=8" },
        { REAL,  "conv:n2c3h41w43k68r5s7:f16:pad=2x3:stride=2:beta=1:bias" },
        { EXACT, "conv:n3c4w300k32s9:f16:stride=2:pad=4" },
        { EXACT, "conv:n5c3h6w9k64r1s1:f16:stride=2:nhwc" },
        { EXACT, "conv:n2c3h13w46k67r7s7:bf16:nhwc:stride=2:pad=3" },
        { REAL,  "conv:n2c1h15w160k16r5s6:f16:nhwc:stride=2:pad=2" },
        { EXACT, "conv:n1c6h9w67k64r3s5:f16:nhwc:pad=1" },
        { SPECIAL, "conv:n1c3h9w11k40r3s3:bf16:nhwc:pad=1:stride=2" },           /* one of three is tried */
        { SPECIAL, "conv:n1c8h9w21k16r5s5:f16:nhwc:pad=2" },
        { SPECIAL, "conv:n1c3h9w22k16r3s3:f16:nhwc:stride=2:pad=1" },
        { SPECIAL, "conv:n1c4h20w9k64r7s7:f16:pad=3:stride=2" },
    } },
    { "conv_shallow_wgmma_filter", 3,
      "conv:n8c3h64w64k64r3s3:f16:backward-filter:nhwc:stride=2:pad=1", 0, 1, NULL, {
        { EXACT, "conv:n2c3h17w41k72r3s3:f16:backward-filter:pad=1:nhwc:stride=2" },
        { EXACT, "conv:n5c3h6w9k64r1s1:f16:backward-filter:stride=2:nhwc" },
        { EXACT, "conv:n1c3h40w150k64r7s7:f16:backward-filter:nhwc:stride=2:pad=3" },
        { REAL,  "conv:n1c4h30w29k64r4s4:bf16:backward-filter:stride=2:pad=3-1:nhwc:beta=1" },
        { EXACT, "conv:n3c8h9w70k40r3s3:bf16:backward-filter:nhwc:pad=1" },
        { EXACT, "conv:n2c2h22w33k24r3s5:f16>f32:backward-filter:nhwc:pad=1x2:stride=2:bias=full:gap=8" },
        { REAL,  "conv:n2c3h41w43k68r5s7:f16:backward-filter:pad=2x3:stride=2:beta=1:bias" },
        { EXACT, "conv:n3c4w300k32s9:f16:backward-filter:stride=2:pad=4" },
        { EXACT, "conv:n2c3h13w46k136r7s7:bf16:backward-filter:nhwc:stride=2:pad=3" },
        { REAL,  "conv:n2c1h15w160k16r5s6:f16:backward-filter:nhwc:stride=2:pad=2" },
        { EXACT, "conv:n1c6h9w67k64r3s5:f16:backward-filter:nhwc:pad=1" },
        { SPECIAL, "conv:n1c3h9w11k40r3s3:bf16:backward-filter:nhwc:pad=1:stride=2" },      /* one of three */
        { SPECIAL, "conv:n1c8h9w21k16r5s5:f16:backward-filter:nhwc:pad=2" },
        { SPECIAL, "conv:n1c3h9w22k16r3s3:f16:backward-filter:nhwc:stride=2:pad=1" },
        { SPECIAL, "conv:n1c4h20w9k64r7s7:f16:backward-filter:pad=3:stride=2" },
    } },
    { "conv_mma_splitk", 2, "conv:n1c200h6w5k64r3s3:bf16:nhwc:pad=1", 0, 2, NULL, {
        { EXACT, "conv:n1c72h9w11k136r3s3:bf16:nhwc:pad=1:stride=2:backward-data:beta=1" },
        { EXACT, "conv:n2c200h9w8k67r3s2:f16:nhwc:pad=1:beta=1:bias:act=relu" },
        { REAL,  "conv:n1c520h7w7k72r1s1:f16:nhwc:bias=row:act=relu" },
        { EXACT, "conv:n1c24h4w5d3k40t2r3s3:bf16>f32:nhwc:pad=1:stride=2" },
        { SPECIAL, "conv:n1c72h5w6k24r3s3:f16:nhwc:pad=1" },             /* one of three is tried */
        { SPECIAL, "conv:n2c16h7w9k24r3s3:bf16:nhwc:pad=1:stride=2:backward-data" },
        { SPECIAL, "conv:n1c264h3w5k16r1s1:f16:nhwc" },
        { REAL,  "conv:n2c136h14w9k72r1s1:f16:nhwc:stride=2:gap=8" },
        { EXACT, "conv:n1c264h5w5k24r3s3:f16:nhwc:pad=1:backward-data" },
    } },
    { "conv_repack", 1, NULL, 0, 3, NULL, {                          /* groups, through conv_mma */
        { EXACT, "conv:n2c48h7w9k96r3s3:f16:groups=3:pad=1" },
        { EXACT, "conv:n2c48h9w11k96r3s3:f16:groups=3:pad=1:stride=2:backward-data" },
        { EXACT, "conv:n2c48h9w11k96r3s3:f16:groups=3:pad=1:backward-filter" },
    } },
    { "conv_mma_filter", 4, "conv:n4c64h14w13k64r3s3:f16:backward-filter:nhwc:groups=2:pad=1", 2, 1, NULL, {
        { EXACT, "conv:n3c72h11w9k96r3s3:f16:backward-filter:nhwc:pad=1:stride=2:beta=1:bias=full" },
        { EXACT, "conv:n2c48h13w7k96r3s2:bf16:backward-filter:nhwc:groups=3:pad=1:dil=2" },
        { REAL,  "conv:n5c16d4h6w5k24t2r2s2:bf16>f32:backward-filter:nhwc:pad=1-0:dil=2:beta=2" },
        { EXACT, "conv:n1c3h19w20k11r3s3:f16:backward-filter:nhwc:pad=2:gap=5" },
        { SPECIAL, "conv:n2c16h7w9k48r3s3:f16:backward-filter:nhwc:groups=2:pad=1" },    /* one of three */
        { SPECIAL, "conv:n3c16h5w6k24r3s3:f16:backward-filter:nhwc:pad=1" },
        { SPECIAL, "conv:n1c16h40w9k24r3s3:f16:backward-filter:nhwc:pad=1" },
        { REAL,  "conv:n2c32w301k16s7:f16:backward-filter:nhwc:groups=2:pad=3:stride=3" },
    } },
    { "gemm_batched", 6, "gemm:32x32x32:f16:nn:batch=40", 0, 1, NULL, {
        { EXACT, "gemm:40x72x88:f16:nn:batch=5" },
        { EXACT, "gemm:40x72x301:f16:tn" },
        { REAL,  "gemm:50x72x200:bf16:nt:bias=row" },
        { EXACT, "gemm:17x23x40:f16:nt:batch=9:bias=col" },
        { REAL,  "gemm:72x40x96:bf16:tn:batch=2:beta=1:bias=row:act=gelu" },
        { EXACT, "gemm:130x72x104:bf16>f32:nt:batch=2" },
    } },
    { "gemm_mma_splitk", 9, "gemm:309x27x6391:f16:nt", 0, 3, NULL, {
        { EXACT, "gemm:71x69x1001:f16:nt" },
        { REAL,  "gemm:45x131x333:bf16:tn:bias=row:act=relu" },
        { EXACT, "gemm:67x39x515:bf16:nn:beta=1" },
        { EXACT, "gemm:33x141x257:f16:tt:bias=col" },
        { REAL,  "gemm:131x67x403:f16>f32:nn:batch=3" },
        { EXACT, "gemm:40x72x640:bf16:nt:gap=1:start=1" },
        { SPECIAL, "gemm:35x33x129:f16:tt" },
        { SPECIAL, "gemm:35x33x129:bf16:nn" },
        { EXACT, "gemm:130x72x16:f16:tn:gap=3" },
        { EXACT, "gemm:71x69x1001:f64:nt" },
        { REAL,  "gemm:45x131x333:f64:tn:bias=row:act=relu" },
        { EXACT, "gemm:67x39x515:f64:nn:beta=1" },
        { REAL,  "gemm:33x141x257:f64:tt:batch=3" },
        { SPECIAL, "gemm:35x33x129:f64:tn:gap=1" },
        { EXACT, "gemm:71x69x1001:f32:nt" },
        { REAL,  "gemm:45x131x333:f32:tn:bias=row:act=relu" },
        { EXACT, "gemm:67x39x515:f32:nn:beta=1" },
        { REAL,  "gemm:33x141x257:f32:tt:batch=3:gap=1" },
        { SPECIAL, "gemm:35x33x129:f32:tn" },                            /* one of three is tried */
        { SPECIAL, "gemm:35x33x129:f64:nt" },
        { SPECIAL, "gemm:35x33x129:f32:nn:start=1" },
    } },
    { "gemm_batched_fma", 5, "gemm:16x16x16:f32:nn:batch=300", 0, 1, NULL, {
        { EXACT, "gemm:40x72x88:f32:nn:batch=5" },
        { EXACT, "gemm:36x72x301:f32:tn" },
        { REAL,  "gemm:51x71x204:f32:nt:bias=row" },
        { EXACT, "gemm:20x23x40:f32:tt:batch=9:bias=col" },
        { REAL,  "gemm:72x40x96:f32:tn:batch=2:beta=1:bias=row:act=gelu" },
    } },
    { "attention_wgmma", 8, "attention:b1h1s70d64:bf16", 3, 4, suite_attention, {
        { EXACT, "attention:b1h2s129d128:f16:scale=1:hk=1" },
        { REAL,  "attention:b2h2s130d128:bf16:hk=1:sk=257:lse" },
        { REAL,  "attention:b1h1s300d128:f16:causal:lse:bshd" },
        { EXACT, "attention:b1h1s150d120:bf16:sk=250:causal:scale=1:lse" },
        { REAL,  "attention:b1h2s300d128:f16:sk=150:causal:lse" },
        { REAL,  "attention:b1h3s200d64:f16:causal-first:sk=390" },
        { EXACT, "attention:b1h2s200d56:bf16:dv=64:sk=240:gap=8:start=8:scale=1" },
        { REAL,  "attention:b1h4s200d64:f16:hk=1:causal:window=100:lse" },
        { REAL,  "attention:b1h1s500d8:f16:sk=90:causal-first:window=30:lse" },
        { REAL,  "attention:b1h2s130d256:f16:sk=200:causal:lse" },
        { REAL,  "attention:b1h2s129d96:bf16:sk=140" },
        { REAL,  "attention:b3h2s140d120:bf16:sk=200:len=0:qlen=90:causal:sinks:lse" },
        { REAL,  "attention:b1h2s70d200:f16:sk=150:mask=full:softcap=3:causal:lse" },
        { EXACT, "attention:b1h2s129d200:f16:sk=250:mask=full:causal:scale=1" },
    } },
    { "attention_bf16x3", 2, "attention:b1h2s600d128:f32", 0, 1, NULL, {
        { REAL,  "attention:b2h2s130d64:f32:hk=1:sk=257:lse:bshd" },
        { EXACT, "attention:b1h2s129d128:f32:scale=1:hk=1" },
        { EXACT, "attention:b1h2s200d53:f32:dv=64:sk=240:gap=8:start=8:scale=1" },
        { REAL,  "attention:b2h4s200d64:f32:hk=1:len=90:causal:window=100:lse" },
        { REAL,  "attention:b3h2s140d120:f32:sk=200:len=0:qlen=90:causal:sinks:lse" },
        { SPECIAL, "attention:b1h2s70d64:f32:sk=90:lse" },           /* one of three is tried */
        { SPECIAL, "attention:b1h2s70d128:f32:sk=70" },
        { SPECIAL, "attention:b1h2s70d128:f32:sk=70:causal:len=60" },
    } },
    { "attention_mma", 7, "attention:b1h2s70d64:bf16:sk=90:gap=1", 1, 1, NULL, {
        { REAL,  "attention:b2h2s70d64:bf16:hk=1:sk=140:lse" },             /* of each row behind the first */
        { REAL,  "attention:b1h2s130d96:f16:causal-first:sk=100" },
        { EXACT, "attention:b1h1s150d120:bf16:sk=250:causal:scale=1:lse" },
        { REAL,  "attention:b1h2s66d117:f16:sk=130:mask=full:softcap=3" },
        { REAL,  "attention:b1h2s130d256:f16:sk=100:causal:lse" },
        { REAL,  "attention:b2h4s66d200:bf16:hk=2:sk=222:page=37:causal:sinks:lse" },
        { EXACT, "attention:b1h2s129d64:f16:scale=1:hk=1:sk=200" },
        { EXACT, "attention:b1h2s129d53:bf16:dv=61:sk=140:gap=3:start=1:scale=1" },
        { REAL,  "attention:b1h2s200d64:f16:hk=1:causal:window=100:lse" },
        { REAL,  "attention:b3h2s140d64:bf16:hk=1:sk=148:page=37:len=0:qlen=90:causal:sinks:lse" },
        { REAL,  "attention:b1h2s70d40:f16:sk=150:mask=full:softcap=3:causal:gap=1" },
        { EXACT, "attention:b2h1s65d20:f16:bshd:sk=64:causal:window=5:mask=full:scale=1:lse" },
        { REAL,  "attention:b1h1s20d40:f16:sk=80:causal:gap=1:scale=-0.5" },
        { EXACT, "attention:b1h2s129d2:f16:causal:bshd:hk=2:sk=32:dv=2:window=64:scale=1:len=16:gap=1" },
        { EXACT, "attention:b1h2s250d2:f16:causal:scale=1:len=240" },
        { SPECIAL, "attention:b1h2s70d64:f16:sk=60:causal:lse" },        /* one of three is tried */
        { SPECIAL, "attention:b1h2s70d64:f16:sk=140" },
        { SPECIAL, "attention:b1h2s70d53:bf16:sk=90:lse" },
    } },
    { "attention_decode_mma", 2, "attention:b1h8s1d64:bf16:hk=2:sk=2000", 0, 4, NULL, {
        { REAL,  "attention:b2h8s1d128:bf16:hk=2:sk=700:lse" },
        { REAL,  "attention:b1h10s3d120:f16:hk=1:sk=901:causal:lse:bshd" },
        { REAL,  "attention:b1h4s2d256:bf16:hk=1:sk=600:causal:window=200" },
        { EXACT, "attention:b2h3s2d64:f16:hk=1:sk=256:page=16:len=33:scale=1" },
        { REAL,  "attention:b3h4s2d72:f16:hk=1:sk=592:page=37:len=0:qlen=1:causal:sinks:lse" },
        { REAL,  "attention:b1h4s3d64:f16:hk=1:sk=500:mask=full:softcap=3:lse" },
        { EXACT, "attention:b3h8s5d64:f16:hk=2:sk=250:causal:mask=full:scale=1" },
    } },
    { "attention_backward_wgmma", 2, "attention:b1h1s70d64:bf16:backward", 1, 1, NULL, {
        { REAL,  "attention:b1h4s200d64:f16:backward:hk=1:causal:window=100" },
        { EXACT, "attention:b1h2s129d128:f16:backward:scale=1:hk=1" },
        { REAL,  "attention:b2h2s130d128:f16:backward:hk=1:sk=257" },
        { EXACT, "attention:b1h1s150d120:bf16:backward:sk=250:causal:scale=1:bshd" },
        { REAL,  "attention:b1h1s300d128:f16:backward:sk=150:causal" },
        { EXACT, "attention:b1h2s200d56:f16:backward:dv=64:sk=240:gap=8:start=8:scale=1" },
    } },
    { "softmax_team", 2, NULL, 0, 4, NULL, {
        { EXACT, "softmax:3x20000:f32" },
        { REAL,  "softmax:3x20000:f32" },
        { REAL,  "softmax:2x20003:f32:mask=full:scale=-0.5" },
        { SPECIAL, "softmax:3x17001:f32:log:start=1" },
        { REAL,  "softmax:2x20000:f32:backward" },
        { REAL,  "softmax:2x40001:f16" },
        { SPECIAL, "softmax:2x40001:bf16" },
        { REAL,  "softmax:3x40000:f16:gap=3" },
        { REAL,  "softmax:2x36000:bf16:backward:log" },
        { REAL,  "softmax:2x36001:f16:backward" },
        { EXACT, "softmax:9x20003:f16:causal:start=3" },                /* rows that end in their first run */
        { REAL,  "softmax:9x16389:f32" },                               /* and begin at each place of one */
        { REAL,  "softmax:3x16384:f16" },                               /* of the first row in 16 bits */
        { SPECIAL, "softmax:2x12003:bf16:start=3" },
        { EXACT, "softmax:3x9001:f16:backward:log" },
    } },
    { "cross_entropy_team", 2, NULL, 0, 4, NULL, {
        { EXACT, "cross-entropy:3x42000:f32" },
        { REAL,  "cross-entropy:3x42001:f32:inplace:smoothing=0.1" },
        { REAL,  "cross-entropy:3x42000:bf16:inplace" },
        { REAL,  "cross-entropy:3x50001:f16" },
        { SPECIAL, "cross-entropy:3x50001:bf16" },                  /* one of three is tried */
        { SPECIAL, "cross-entropy:3x33001:f16:inplace" },
        { REAL,  "cross-entropy:2x60001:f16:inplace:smoothing=0.1" },   /* of the longest rows */
        { EXACT, "cross-entropy:2x54000:bf16" },
        { SPECIAL, "cross-entropy:3x17001:f32" },
        { REAL,  "cross-entropy:9x16389:bf16:smoothing=0.1" },      /* rows that begin at each place */
        { EXACT, "cross-entropy:2x33003:f16:start=3" },
        { REAL,  "cross-entropy:2x32771:bf16:gap=3:inplace" },
    } },
};

static void tiles(struct suite *s, const struct tested *t, int all)
{
    int cases = 0;

    while (cases < MOST_TILES && t->tiles[cases].text)
        cases++;
    if (!suite_begin(s, "tiles %s", variant))
        return;
    teams = 0;
    for (int i = 0; i < cases; i++) {
        const int at = all ? i : (turn - 1 + i) % cases;

        if (t->least == 1 && !all && i > 0 && teams < 2)        /* teams take turns in all cases */
            break;

        char text[PROBLEM_TEXT], why[PROBLEM_TEXT];
        struct problem p;

        snprintf(text, sizeof text, "%s:variant=%s", t->tiles[at].text, variant);
        if (problem_parse(&p, text, why, sizeof why))
            suite_fault(s, "%s", why);
        else
            suite_case(s, &p, t->tiles[at].kind);
    }
    suite_end(s);
}

/* The whole suite of the variant's operation. */
static void conformance(struct suite *s)
{
    static const struct { const char *name; void (*run)(struct suite *s); } suites[] = {
        { "gemm", suite_gemm }, { "conv", suite_conv }, { "attention", suite_attention },
        { "softmax", suite_softmax }, { "cross_entropy", suite_cross_entropy },
    };

    s->extent = SUITE_FULL;
    s->seed = seed;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (!strncmp(variant, suites[i].name, strlen(suites[i].name)))
            suites[i].run(s);
}

/* All that is tested with one row. */
static vn_status test_row(const struct tested *t, int all)
{
    struct suite *s;
    const vn_status status = disguise(&s);

    if (status)
        return status;
    if (seed) {
        conformance(s);
    } else {
        tiles(s, t, all);
        if (s->count[EXACT] + s->count[REAL] < t->least) {
            printf("not ok - row %d was passed over\n", turn);
            failures++;
        }
        if (all && t->suite)
            t->suite(s);
    }
    for (int kind = 0; kind < KIND_COUNT; kind++)
        count[kind] += s->count[kind];
    failures += suite_status(s) != 0;
    suite_close(s);
    return VN_OK;
}

/* The library's own choice; of an engine that computes something else, nothing. */
static vn_status test_choice(const struct tested *t, int is_wrong)
{
    struct suite *s;
    struct problem p;
    char why[PROBLEM_TEXT], chosen[96];
    vn_status status = disguise(&s);
    long ran;

    if (status)
        return status;
    wrong = is_wrong;
    turn = t->alone_row;
    problem_parse(&p, t->alone, why, sizeof why);
    snprintf(chosen, sizeof chosen, "\"variant\": \"%s\"", variant);
    strcpy(p.variant, is_wrong ? variant : "");
    suite_begin(s, "choice, the engine is %s", is_wrong ? "wrong" : "right");
    suite_case(s, &p, REAL);
    ran = s->count[REAL];
    suite_end(s);
    if (is_wrong ? ran != 0 : !strstr(vn_queue_explain(s->queue), chosen)) {
        printf("not ok - %s\n", is_wrong ? "an engine that is wrong was used" : "it was not chosen");
        failures++;
    }
    count[REAL] += ran;
    failures += s->failed != 0;
    suite_close(s);
    wrong = 0;
    return VN_OK;
}

/* An output whose rows are vectors is stored in vectors, each once, by every row: another store would be as
 * right, and much slower. */
static vn_status test_vectors(const struct tested *t, const char *text, long elements)
{
    enum { VECTOR = 8 };

    for (turn = 0; turn < t->rows; turn++) {
        struct suite *s;
        struct problem p;
        char why[PROBLEM_TEXT];
        const vn_status status = disguise(&s);

        if (status)
            return status;
        problem_parse(&p, text, why, sizeof why);
        strcpy(p.variant, variant);
        suite_begin(s, "vectors of %s", variant);
        suite_case(s, &p, EXACT);
        suite_end(s);
        if (vectors * VECTOR != elements) {
            printf("not ok - row %d stored %ld vectors of %ld\n", turn, vectors, elements / VECTOR);
            failures++;
        }
        count[EXACT] += s->count[EXACT];
        failures += s->failed != 0;
        suite_close(s);
    }
    return VN_OK;
}

/* Launches find the tensor maps of an earlier one that was the same, and no others. */
static vn_status test_maps(void)
{
    enum { M = 72, N = 136, K = 64, ONE = 0x3c00, TWO = 0x4000, MOST = 16384 };
    static const struct { const char *what; int closes, overwrites, alpha, kept; } step[] = {
        { "the first call",        0, 0, 1, 0 }, { "the same again",        0, 0, 1, 1 },
        { "other arguments",       0, 0, 2, 0 }, { "those of before",       0, 0, 1, 1 },
        { "a handle was closed",   1, 0, 1, 0 }, { "and again",             0, 0, 1, 1 },
        { "another had the place", 0, 1, 1, 0 }, { "and again",             0, 0, 1, 1 },
    };
    const uint16_t one = ONE, two = TWO;
    struct suite *s;
    vn_buffer *b[3], *other;
    uint16_t c[M * N];
    vn_status status = disguise(&s);
    vn_gemm_options options = { .variant = "gemm_wgmma" };
    int wrong_at = -1;

    if (status)
        return status;
    for (int i = 0; i < 3 && !status; i++)
        status = vn_buffer_open(&b[i], s->device, MOST * sizeof one);
    if (status || (status = vn_fill(s->queue, b[0], 0, MOST * sizeof one, &one, sizeof one)) ||
        (status = vn_fill(s->queue, b[1], 0, MOST * sizeof two, &two, sizeof two)))
        return status;
    for (size_t i = 0; i < sizeof step / sizeof step[0] && wrong_at < 0; i++) {
        const uint16_t sum = step[i].alpha == 1 ? 0x5800 : 0x5c00;      /* 128, 256 */

        if (step[i].closes) {
            if ((status = vn_buffer_open(&other, s->device, 64)))
                return status;
            vn_buffer_close(other);
        }
        for (int place = 0; step[i].overwrites && place < VN_MAPS / VN_MAPS_EACH; place++)
            s->queue->maps_keys[place] = 1;
        if ((status = vn_gemm(s->queue, step[i].alpha, vn_matrix(b[0], VN_F16, M, K),
                              vn_matrix(b[1], VN_F16, K, N), 0, vn_matrix(b[2], VN_F16, M, N), &options)) ||
            (status = vn_read(s->queue, c, b[2], 0, sizeof c)))
            return status;
        for (int at = 0; at < M * N; at++)
            if (c[at] != sum)
                wrong_at = (int)i;
        if (kept != step[i].kept)
            wrong_at = (int)i;
    }
    count[EXACT] += (long)(sizeof step / sizeof step[0]);
    printf("%sok - tensor maps that are kept%s%s\n", wrong_at < 0 ? "" : "not ", wrong_at < 0 ? "" : ": ",
           wrong_at < 0 ? "" : step[wrong_at].what);
    failures += wrong_at >= 0;
    for (int i = 0; i < 3; i++)
        vn_buffer_close(b[i]);
    suite_close(s);
    return VN_OK;
}

int main(int argc, char **argv)
{
    const char *const tmp = getenv("TMPDIR");
    char command[96];
    vn_status status = VN_OK;

    if (argc > 2 && !strcmp(argv[1], "--suite")) {
        seed = strtoull(argv[2], NULL, 0);
        argc -= 2;
        argv += 2;
    }
    if (system("c++ --version > /dev/null 2>&1")) {
        puts("skipped: there is no c++");
        return 77;
    }
    snprintf(directory, sizeof directory, "%.40s/hopper.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(directory)) {
        perror(directory);
        return 1;
    }
    if (precompile())
        puts("hopper.h is not precompiled");
    setenv("VERNIER_CACHE", "0", 1);
    for (size_t i = 0; i < sizeof all_tested / sizeof all_tested[0] && !status; i++) {
        const struct tested *const t = &all_tested[i];

        variant = t->variant;
        if (argc > 1 && strcmp(argv[1], variant))
            continue;
        for (turn = 0; turn < t->rows && !status; turn++)
            if (argc < 3 || atoi(argv[2]) == turn)
                status = test_row(t, turn == 0 || argc > 2);
        if (!status && !seed && argc < 3 && !strcmp(variant, "gemm_wgmma"))
            status = test_vectors(t, "gemm:200x264x72:f16:nt:bias=row", 200 * 264);
        if (!status && !seed && argc < 3 && !strcmp(variant, "conv_wgmma"))
            status = test_vectors(t, "conv:n2c64h12w12k136r1s1:f16:nhwc:bias", 2 * 12 * 12 * 136);
        for (int is_wrong = 0; t->alone && !seed && is_wrong < 2 && !status && argc < 3; is_wrong++)
            status = test_choice(t, is_wrong);
    }
    if (!status && !seed && (argc < 2 || !strcmp(argv[1], "gemm_wgmma")))
        status = test_maps();
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command))
        perror(command);
    if (status) {
        printf("%s: %s\n", status == VN_NO_DEVICE ? "skipped" : "cannot start", vn_last_error());
        return status == VN_NO_DEVICE ? 77 : 1;
    }
    for (int kind = 0; kind < KIND_COUNT; kind++)
        printf("COUNT %s %ld\n", suite_kinds[kind], count[kind]);
    printf("%ld failures\n", failures);
    return failures != 0;
}
