/* SPDX-License-Identifier: Apache-2.0
 *
 * emulation.c - the matrix engines of AMD and Intel, and the lanes of NVIDIA, on a device that has none.
 *
 * The device is said to be of another maker, and the maker's instruction is put in the words of
 * tests/kernels/engines.h; all else is what is shipped: atoms, kernel, rows, trial, choice.  Of kernels by
 * rows, tests/kernels/lanes.h stands in for all atoms.  The conformance suite then runs the variant: each row
 * of it in some type, or with --rows in all.
 *
 *     emulation [--rows] [ARCH | VARIANT]...
 */
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "check/suite.h"

enum { ENGINE = 5, TURNS = 3 };         /* index of that parameter; the most rows of an engine for a type */

static void heads(struct suite *s);
static void images(struct suite *s);

/* turn: which type is tested with which row, so that each row is tested; of attention, with heads of which
 * size; number: of the engine, 0: any; cases: by how many exact ones each type is tested at least.       */
static const struct engine {
    const char *family, *arch, *variant;
    int types, turn, number;
    void (*suite)(struct suite *s);
    int cases;
} engines[] = {
    { "amd",   "gfx908",  "gemm_mfma",  3, 0, 0, suite_gemm, 500 },
    { "amd",   "gfx90a",  "gemm_mfma",  4, 1, 0, suite_gemm, 500 },
    { "amd",   "gfx942",  "gemm_mfma",  4, 2, 0, suite_gemm, 500 },
    { "amd",   "gfx1100", "gemm_wmma",  2, 2, 0, suite_gemm, 500 },
    { "amd",   "gfx1201", "gemm_wmma",  2, 1, 0, suite_gemm, 500 },
    { "intel", "intel",   "gemm_dpas",  2, 2, 16, suite_gemm, 500 },
    { "intel", "intel",   "gemm_dpas",  2, 1, 8, suite_gemm, 500 },
    { "amd",   "gfx908",  "attention_mfma", 2, 0, 0, heads, 1 },
    { "amd",   "gfx90a",  "attention_mfma", 2, 1, 0, heads, 1 },
    { "amd",   "gfx1100", "attention_wmma", 2, 2, 0, heads, 1 },
    { "amd",   "gfx1201", "attention_wmma", 2, 3, 0, heads, 1 },
    { "intel", "intel",   "attention_dpas", 2, 4, 16, heads, 1 },
    { "intel", "intel",   "attention_dpas", 2, 5, 8, heads, 1 },
    { "amd",   "gfx908",  "conv_mfma",  2, 0, 0, images, 10 },
    { "amd",   "gfx90a",  "conv_mfma",  2, 1, 0, images, 10 },
    { "amd",   "gfx1100", "conv_wmma",  2, 2, 0, images, 10 },
    { "amd",   "gfx1201", "conv_wmma",  2, 1, 0, images, 10 },
    { "intel", "intel",   "conv_dpas",  2, 2, 16, images, 10 },
    { "intel", "intel",   "conv_dpas",  2, 1, 8, images, 10 },
    { "nvidia", "sm_90", "softmax_warps", 4, 4, 0, suite_softmax, 240 },
    { "nvidia", "sm_90", "cross_entropy_warps", 4, 0, 0, suite_cross_entropy, 120 },
};

static const struct engine *engine;     /* that the device is said to have */
static int turn;
static int wrong;                       /* it does something else than it should */

/* ---- what stands before functions of the library (see LDFLAGS) ------------------------- */

const struct vn_text *__real_vn__text_find(const char *path);
const struct vn_text *__wrap_vn__text_find(const char *path);
vn_status __real_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket b);
vn_status __wrap_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket b);
const char *__wrap_suite_next_variant(const struct suite *s, const struct op *op, const char *before);

static void read_stand_in(char *to, size_t size, const char *name)
{
    char path[1024];
    FILE *f;

    snprintf(path, sizeof path, STAND_IN_FOLDER "/%s", name);
    f = fopen(path, "r");

    const size_t n = f ? fread(to, 1, size - 1, f) : 0;

    if (f)
        fclose(f);
    to[n] = '\0';
}

/* In place of NVIDIA's atoms, those of one file; the others are empty. */
static const struct vn_text *lanes(const char *path)
{
    static char text[1 << 14];
    static struct vn_text it;

    text[0] = '\0';
    if (!strcmp(path, "cl/atoms/nvidia/lanes.h"))
        read_stand_in(text, sizeof text, "lanes.h");
    it = (struct vn_text){ path, text, strlen(text) };
    return &it;
}

/* The stand-in before the atoms. */
const struct vn_text *__wrap_vn__text_find(const char *path)
{
    static char text[1 << 16];
    static struct vn_text both;
    const struct vn_text *t = __real_vn__text_find(path);

    if (t && !strncmp(path, "cl/atoms/nvidia/", 16))
        return lanes(path);
    if (!t || (strcmp(path, "cl/atoms/amd/matrix.h") && strcmp(path, "cl/atoms/intel/matrix.h")))
        return t;
    snprintf(text, sizeof text, "%s%s", strcmp(engine->family, "amd") ? "" : "#define AMD\n",
             wrong ? "#define WRONG\n" : "");
    read_stand_in(text + strlen(text), sizeof text - strlen(text) - t->length, "engines.h");
    strcat(text, t->text);
    both = (struct vn_text){ path, text, strlen(text) };
    return &both;
}

/* One row of those of the engine, by turns; of attention all, which are for heads of other sizes. */
vn_status __wrap_vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                               vn_type type, enum vn_bucket b)
{
    const vn_status s = __real_vn__tune_find(out, count, d, v, type, b);
    struct vn_row ours[VN_ROWS];
    int n = 0;

    if (s || strcmp(v->name, engine->variant))
        return s;
    for (int i = 0; i < *count; i++)
        if (!engine->number || out[i].p[ENGINE] == engine->number)
            ours[n++] = out[i];
    if (n && engine->suite == heads) {
        memcpy(out, ours, (size_t)n * sizeof *out);
        *count = n;
    } else if (n) {
        *out = ours[((int)type + turn) % n];
        *count = 1;
    }
    return s;
}

/* The suite tests one variant. */
const char *__wrap_suite_next_variant(const struct suite *s, const struct op *op, const char *before)
{
    (void)s;
    (void)op;
    return before ? NULL : engine->variant;
}

/* ---- the tests ---------------------------------------------------------------------------- */

static long count[KIND_COUNT], failures;

static void say(const struct suite *s, const struct suite_group *g)
{
    (void)s;
    printf("%sok - %s: %ld cases, %.1f s", g->failed ? "not " : "", g->name, g->cases, g->seconds);
    if (g->worst > 0)
        printf(", worst %.2f of the bound", g->worst);
    if (g->passed_over)
        printf(", %ld passed over", g->passed_over);
    if (g->failed)
        printf(", %ld failed\n%s", g->failed, g->failures);
    putchar('\n');
    fflush(stdout);
}

static void fail(const char *what)
{
    printf("not ok - %s %s: %s\n", engine->arch, engine->variant, what);
    failures++;
}

/* Whether the last call was solved by that variant, or its first part. */
static int is_solved_by(const struct suite *s, const char *name)
{
    const struct vn_memo *const m = s->queue->last;

    return m && (!strcmp(m->choice->variant->name, name) ||
                 (m->part && !strcmp(m->part->variant->name, name)));
}

/* A device that is said to be something else. */
static vn_status disguise(struct suite **s, const struct engine *e, int its_turn)
{
    const vn_status status = suite_open(s, NULL);

    if (status)
        return status;
    engine = e;
    turn = its_turn;
    strcpy((*s)->device->facts.family, e->family);
    strcpy((*s)->device->facts.arch, e->arch);
    return VN_OK;
}

static struct problem problem(const char *text)
{
    struct problem p;
    char why[256];

    if (problem_parse(&p, text, why, sizeof why))
        fail(why);
    return p;
}

/* What the suite seldom draws: more than one tile each way, the last ones and the last slice not
 * whole, and each matrix along K and across it.                                              */
static void tiles(struct suite *s)
{
    static const char *const table[] = {
        "gemm:129x131x97:f32:nn",
        "gemm:135x140x96:f32:nt:beta=2:bias=row:gap=3",
        "gemm:257x129x33:f32:tn:act=relu:start=1:batch=2:share=b",
        "gemm:130x258x65:f32:ttt:beta=-1:bias=col",
    };

    for (int type = 0; type < VN_TYPE_COUNT; type++) {
        suite_begin(s, "tiles %s %s", vn_type_name((vn_type)type), engine->variant);
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
            struct problem p = problem(table[i]);

            p.type = (vn_type)type;
            strcpy(p.variant, engine->variant);
            suite_case(s, &p, EXACT);
        }
        suite_end(s);
    }
}

/* Several tiles and blocks, the last of each not whole.  Kernels take long to build: a turn has two sizes of
 * heads, one for each row, of which each is of another type in its second turn; and one size with masks.   */
static void heads(struct suite *s)
{
    static const struct { enum kind kind; int size, is_general; const char *problem; } table[] = {
        { EXACT, 0, 0, "attention:b1h2s130d64:f16:hk=1:sk=150:causal:scale=1:lse" },
        { EXACT, 0, 0, "attention:b1h2s90d56:f16:dv=64:sk=140:gap=8:start=8:scale=1" },
        { REAL,  0, 0, "attention:b1h4s150d64:f16:hk=1:causal:window=70:lse:bshd" },
        { SPECIAL, 0, 0, "attention:b1h1s40d64:f16:sk=70:lse" },
        { EXACT, 1, 0, "attention:b1h2s129d128:f16:hk=1:scale=1" },
        { REAL,  1, 0, "attention:b2h2s130d128:f16:hk=1:sk=257:lse" },
        { REAL,  1, 0, "attention:b3h2s100d120:f16:sk=140:len=0:qlen=60:causal:sinks:lse" },
        { REAL,  1, 0, "attention:b1h1s140d128:f16:sk=70:causal:lse" },
        { SPECIAL, 1, 0, "attention:b2h1s40d128:f16:sk=70:causal:len=50" },
        { EXACT, 2, 0, "attention:b1h1s70d256:f16:sk=67:causal-first:scale=1" },
        { REAL,  2, 0, "attention:b1h1s40d136:f16:sk=70:dv=256:lse" },
        { REAL,  0, 1, "attention:b1h2s40d64:f16:sk=150:mask=keys:causal-first" },
        { EXACT, 0, 1, "attention:b1h2s129d64:f16:sk=250:mask=full:scale=1" },
        { EXACT, 1, 1, "attention:b1h2s129d64:f16:sk=250:mask=full:scale=1" },
        { SPECIAL, 0, 1, "attention:b1h1s40d64:f16:sk=70:mask=queries:lse" },
        { REAL,  1, 1, "attention:b1h2s50d72:f16:sk=90:scale=-0.5:causal" },
        { REAL,  1, 1, "attention:b1h2s50d128:f16:sk=90:mask=full:window=20:causal:softcap=2" },
        { REAL,  2, 1, "attention:b1h2s70d200:f16:sk=90:mask=full:softcap=3:causal:lse" },
    };

    suite_begin(s, "heads %s", engine->variant);
    s->specials = 0;                            /* one of three is tried, the first */
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct problem p = problem(table[i].problem);

        p.type = turn % 3 == table[i].size / 2 ? VN_F16 : VN_BF16;
        strcpy(p.variant, engine->variant);
        if (table[i].is_general ? table[i].size == turn % 3 : (table[i].size + turn) % 3 != 2)
            suite_case(s, &p, table[i].kind);
    }
    suite_end(s);
}

/* Images and their gradients, whose channels are contiguous: several tiles each way, rows of pixels and
 * images that end within a tile, slices of several taps and of a part of one, phases without taps, groups;
 * and by way of copies, channels that do not fill a vector.  Each turn has one direction in each type. */
static void images(struct suite *s)
{
    static const char *const table[] = {
        "n2c16h9w11k24r3s3:%s:nhwc:pad=1",
        "n1c24h17w16k136r1s1:%s:nhwc:pad=1x0",
        "n3c8h13w12k72r3s3:%s:nhwc:stride=2:pad=1",
        "n2c48w61k40s5:%s:nhwc:dil=3:pad=6",
        "n2c32h8w9k16r3s3:%s:nhwc:groups=2:pad=0-1x2-0",
        "n1c16h10w11k8r2s2:%s:nhwc:stride=3:gap=8:start=8",
        "n1c8h25w23k16r3s5:%s:nhwc:stride=4x6:dil=6x4:pad=5x7",
        "n2c8d5h6w7k16t3r2s3:%s:nhwc:stride=2:pad=1",
        "n2c8h9w7k24r3s3:%s>f32:nhwc:pad=1:stride=2:bias:act=relu:sides=f32:beta=2:residual=full",
        "n2c12h9w10k20r3s2:%s:nchw:pad=1",
    };

    for (int type = VN_F16; type <= VN_BF16; type++) {
        const int backward = (type + turn) % 2;

        suite_begin(s, "images %s %s %s", backward ? "backward data" : "forward", vn_type_name((vn_type)type),
                    engine->variant);
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
            char sizes[128], text[PROBLEM_TEXT];

            snprintf(sizes, sizeof sizes, table[i], vn_type_name((vn_type)type));
            snprintf(text, sizeof text, "conv:%s%s:variant=%s", sizes, backward ? ":backward-data" : "",
                     strstr(sizes, "nchw") ? "conv_repack" : engine->variant);
            for (int kind = EXACT; kind < KIND_COUNT; kind++) {
                struct problem p = problem(text);

                suite_case(s, &p, (enum kind)kind);
            }
            if (!is_solved_by(s, engine->variant))
                fail("another variant was used");
        }
        suite_end(s);
    }
}

/* Each type that the engine has must be tested. */
static vn_status test_suite(const struct engine *e, int its_turn)
{
    struct suite *s;
    const vn_status status = disguise(&s, e, its_turn);

    if (status)
        return status;
    printf("# %s %s\n", e->arch, e->variant);
    s->extent = SUITE_QUICK;
    s->group_done = say;
    e->suite(s);
    if (e->suite == suite_gemm)
        tiles(s);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        count[kind] += s->count[kind];
    failures += suite_status(s) != 0;
    if (s->count[EXACT] < e->types * suite_times(s, e->cases))
        fail("it was passed over");
    suite_close(s);
    return VN_OK;
}

/* The library's own choice for a problem that suits the engine; of one that is wrong, another variant.  NCHW
 * images come to it as copies. */
static void test_choice(const struct engine *e, int is_wrong)
{
    struct suite *s;
    const struct problem p = problem(e->suite == suite_gemm ? "gemm:256x256x128:f16:nn"
                                     : e->suite == images ? "conv:n2c20h9w7k40r3s3:f16:nchw:pad=1"
                                     : "attention:b1h1s80d64:bf16:sk=100:scale=1");

    wrong = is_wrong;
    if (disguise(&s, e, e->turn))
        return;
    suite_begin(s, "choice on %s", e->arch);
    suite_case(s, &p, EXACT);
    suite_end(s);
    if (s->failed || is_solved_by(s, e->variant) == is_wrong) {
        printf("%s\n", vn_queue_explain(s->queue));
        fail(is_wrong ? "an engine that is wrong was used" : "it was not chosen");
    }
    count[EXACT] += s->count[EXACT];
    suite_close(s);
    wrong = 0;
}

static int wanted(int argc, char **argv, const struct engine *e)
{
    int named = 0;

    for (int i = 1; i < argc; i++) {
        named |= argv[i][0] != '-';
        if (!strcmp(argv[i], e->arch) || !strcmp(argv[i], e->variant))
            return 1;
    }
    return !named;
}

int main(int argc, char **argv)
{
    const int rows = argc > 1 && !strcmp(argv[1], "--rows") ? TURNS : 1;
    const size_t n = sizeof engines / sizeof *engines;
    vn_status status = VN_OK;

    for (size_t i = 0; i < n && status == VN_OK; i++)
        for (int t = 0; t < rows && !status && wanted(argc, argv, &engines[i]); t++)
            status = test_suite(&engines[i], engines[i].turn + t);
    if (status == VN_NO_DEVICE) {
        printf("skipped: %s\n", vn_last_error());
        return 77;
    }
    if (status) {
        printf("cannot start: %s\n", vn_last_error());
        return 1;
    }
    for (size_t i = 0; i < n; i++)
        if (wanted(argc, argv, &engines[i]) && engines[i].number != 8 &&
            (engines[i].suite == suite_gemm || engines[i].suite == images ||
             !strcmp(engines[i].arch, "gfx90a")))
            test_choice(&engines[i], 0);
    for (size_t i = 0; i < n; i++)
        if (wanted(argc, argv, &engines[i]) && !strcmp(engines[i].arch, "gfx90a") &&
            engines[i].suite != images)
            test_choice(&engines[i], 1);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        printf("COUNT %s %ld\n", suite_kinds[kind], count[kind]);
    printf("%ld failures\n", failures);
    return failures != 0;
}
