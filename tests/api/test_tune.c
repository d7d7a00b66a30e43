/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tune.c - which row is found for which device, in tune files made up here; what lines are
 * wrong; and that each variant of ours says what its rows may be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core.h"
#include "../disk.h"

static int cases, failures;

static void check(int good, const char *what)
{
    cases++;
    failures += !good;
    if (!good)
        printf("FAIL tune: %s\n", what);
}

static const struct vn_variant *variant_named(const char *name)
{
    for (const struct vn_operation *const *o = vn__operations; *o; o++)
        for (const struct vn_variant *v = (*o)->variants; v->name; v++)
            if (vn__is_named(v, name))
                return v;
    return NULL;
}

/* ---- rows -------------------------------------------------------------------- */

/* Instead of the library's own.  softmax_strided has three parameters; the first tells rows apart. */
const struct vn_text vn__texts[] = {
    { "cl/made_up.tune",
      "# comments, and blank lines\n\n"
      "columns softmax_strided  ITEMS ROW_ITEMS VALUES   # as they are\n"
      "space   softmax_strided  ITEMS 1 2 4  VALUES 4 8 16\n"
      "of_another_version  *  *  *  *  1 2 3 4 5\n"
      "softmax_strided  nvidia/sm_90/*H100*  cuda    f32   large  1 0 0\n"
      "softmax_strided  nvidia/sm_90/*H100*  *       *     *      2 0 0\n"
      "softmax_strided  nvidia/sm_80/?*      *       *     *      3 0 0\n"
      "softmax_strided  amd/gfx942/?*        *       *     *      4 0 0\n"
      "softmax_strided  amd/gfx1100/?*       *       *     *      5 0 0\n"
      "softmax_strided  cpu/f32x16/?*        *       *f16  *      6 0 0\n"
      "softmax_strided  cpu/f32x16/?*        *       *     small  7 0 0\n"
      "softmax_strided  cpu/f32x16/?*        *       *     *      8 0 0\n"
      "softmax_strided  *                    *       *     *      9 0 0\n"
      "softmax_cpu  cpu/f32x16/?*     *       *     *     10 0\n"
      "gemm_wgmma  nvidia/sm_90/?*    *       *f16  *     64 12 1 2 1 | 500 400 380 0 2100 1000 900 700 800\n"
      "gemm_wgmma  nvidia/sm_90/?*    *       *f16  *    256 4 2 16 1 | 900 900 880 0 2000 1000 900 700 800\n"
      "gemm_wgmma  nvidia/sm_90/?*    *       *     *    128 8 1 4 1 | 1 1 1 1 1 1 1 1 1\n"
      "rates nvidia/sm_90/*H100*  GBPS 2750  L2_MB 40\n"
      "rates nvidia/*  GBPS 700  LAUNCH_NS 3000\n"
      "rates *  FMA32 50.5\n"
      "pin gemm 64x32x16:nt  nvidia/sm_90/*  cuda  f16  gemm_wgmma 64 12 1 2 1\n"
      "pin gemm 64x32x16:nn  nvidia/sm_90/*  *     *f16 gemm_wgmma\n", 0 },
    { NULL, NULL, 0 }
};

static int alternatives;                /* rows that the last find() found */

struct device { const char *family, *arch, *name, *backend; };

static vn_status find(int *p, const char **source, const struct device *d, const char *variant, vn_type type,
                      enum vn_bucket bucket)
{
    static struct vn_backend backend;
    struct vn_device device = { .backend = &backend };
    struct vn_row row[VN_ROWS];
    vn_status s;
    int count;

    backend.name = d->backend;
    strcpy(device.facts.family, d->family);
    strcpy(device.facts.arch, d->arch);
    strcpy(device.facts.name, d->name);
    if ((s = vn__tune_find(row, &count, &device, variant_named(variant), type, bucket)))
        return s;
    memcpy(p, row->p, sizeof row->p);
    *source = row->source;
    alternatives = count;
    return VN_OK;
}

/* Numbers of architectures are as near as their quotient: 90 / 86 is less than 86 / 80. */
static void find_rows(void)
{
    static const struct {
        struct device device;
        vn_type type;
        enum vn_bucket bucket;
        int first;
        const char *source;
    } table[] = {
        { { "nvidia", "sm_90",   "NVIDIA H100 80GB",  "cuda"   }, VN_F32, VN_LARGE,  1, "shipped" },
        { { "nvidia", "sm_90",   "NVIDIA H100 80GB",  "opencl" }, VN_F32, VN_LARGE,  2, "shipped" },
        { { "nvidia", "sm_90",   "NVIDIA H100 80GB",  "cuda"   }, VN_F16, VN_LARGE,  2, "shipped" },
        { { "nvidia", "sm_80",   "NVIDIA A100",       "cuda"   }, VN_F32, VN_LARGE,  3, "shipped" },
        { { "nvidia", "sm_90",   "another",           "cuda"   }, VN_F32, VN_LARGE,  1, "nearest" },
        { { "nvidia", "sm_90",   "another",           "opencl" }, VN_F32, VN_SMALL,  2, "nearest" },
        { { "nvidia", "sm_86",   "another",           "opencl" }, VN_F32, VN_LARGE,  2, "nearest" },
        { { "nvidia", "sm_75",   "another",           "opencl" }, VN_F32, VN_LARGE,  3, "nearest" },
        { { "nvidia", "sm_120",  "another",           "opencl" }, VN_F32, VN_LARGE,  2, "nearest" },
        { { "nvidia", "sm_35",   "another",           "opencl" }, VN_F32, VN_LARGE,  9, "default" },
        { { "amd",    "gfx942",  "another",           "opencl" }, VN_F32, VN_LARGE,  4, "shipped" },
        { { "amd",    "gfx90a",  "another",           "opencl" }, VN_F32, VN_LARGE,  4, "nearest" },
        { { "amd",    "gfx1201", "another",           "opencl" }, VN_F32, VN_LARGE,  5, "nearest" },
        { { "amd",    "gfx1030", "another",           "opencl" }, VN_F32, VN_LARGE,  5, "nearest" },
        { { "cpu",    "f32x16",  "a CPU",             "opencl" }, VN_BF16, VN_SMALL, 6, "shipped" },
        { { "cpu",    "f32x16",  "a CPU",             "opencl" }, VN_F32, VN_SMALL,  7, "shipped" },
        { { "cpu",    "f32x16",  "a CPU",             "opencl" }, VN_F32, VN_MEDIUM, 8, "shipped" },
        { { "cpu",    "f32x8",   "a CPU",             "opencl" }, VN_F32, VN_MEDIUM, 9, "default" },
        { { "intel",  "intel",   "a GPU",             "opencl" }, VN_F32, VN_LARGE,  9, "default" },
        { { "other",  "other",   "",                  "opencl" }, VN_F32, VN_LARGE,  9, "default" },
    };
    static const struct device narrow = { "cpu", "f32x4", "a CPU", "opencl" };
    static const struct device odd = { "cpu", "f32x17", "a CPU", "opencl" };
    int p[VN_PARAMS];
    const char *source = "";
    char what[128];

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct device *const d = &table[i].device;
        const vn_status s = find(p, &source, d, "softmax_strided", table[i].type, table[i].bucket);

        snprintf(what, sizeof what, "%s/%s/%s: row %d, %s; not %d, %s", d->family, d->arch, d->name,
                 table[i].first, table[i].source, s ? -1 : p[0], source);
        check(!s && p[0] == table[i].first && !strcmp(source, table[i].source), what);
    }
    check(find(p, &source, &narrow, "softmax_cpu", VN_F32, VN_LARGE) == VN_UNSUPPORTED,
          "no row near enough, and none for all");
    check(find(p, &source, &odd, "softmax_cpu", VN_F32, VN_LARGE) == VN_OK && p[0] == 10
          && !strcmp(source, "nearest"), "no row for all, but one near enough");
}

static const struct device h100 = { "nvidia", "sm_90", "NVIDIA H100 80GB", "cuda" };

static void make_device(vn_device *out, struct vn_backend *backend, const struct device *d)
{
    memset(out, 0, sizeof *out);
    backend->name = d->backend;
    out->backend = backend;
    strcpy(out->facts.family, d->family);
    strcpy(out->facts.arch, d->arch);
    strcpy(out->facts.name, d->name);
}

/* Rows for the very same devices, types and buckets are alternatives; others are not. */
static void find_alternatives(void)
{
    struct vn_backend backend;
    struct vn_row row[VN_ROWS];
    vn_device d;
    int count = 0;

    make_device(&d, &backend, &h100);
    check(!vn__tune_find(row, &count, &d, variant_named("gemm_wgmma"), VN_F16, VN_SMALL) && count == 2 &&
          row[0].p[0] == 64 && row[1].p[0] == 256 && row[1].p[3] == 16, "two rows");
    check(row[0].cost[0] == 500 && row[0].cost[4] == 2100 && row[1].cost[1] == 900, "their costs");
    check(!vn__tune_find(row, &count, &d, variant_named("gemm_wgmma"), VN_F32, VN_SMALL) && count == 1 &&
          row[0].p[0] == 128, "another type has one row");
    check(!vn__tune_find(row, &count, &d, variant_named("gemm_wgmma_64x64"), VN_F16, VN_SMALL) && count == 2,
          "a variant is known by a name that it had");
}

static void find_rates(void)
{
    static const struct device other = { "amd", "gfx942", "another", "opencl" };
    struct vn_backend backend;
    struct vn_rates r;
    vn_device d;

    make_device(&d, &backend, &h100);
    check(!vn__tune_rates(&r, &d) && r.gbps == 2750 && r.l2_mb == 40, "rates of the first line that matches");
    check(r.launch_ns == 3000 && r.fma32 == 50.5, "others from the next that have them");
    check(r.mma16 < 0, "one that no line has");
    make_device(&d, &backend, &other);
    check(!vn__tune_rates(&r, &d) && r.gbps < 0 && r.fma32 == 50.5, "rates of any device");
}

static void find_pins(void)
{
    struct vn_backend backend;
    struct vn_row row;
    char variant[64];
    vn_device d;
    int values;

    make_device(&d, &backend, &h100);
    check(vn__tune_pin(variant, &row, &values, &d, "gemm", "64x32x16:nt", VN_F16) && values &&
          row.p[1] == 12 && !strcmp(variant, "gemm_wgmma"), "a pin with values");
    check(vn__tune_pin(variant, &row, &values, &d, "gemm", "64x32x16:nn", VN_BF16) && !values,
          "and one without");
    check(!vn__tune_pin(variant, &row, &values, &d, "gemm", "64x32x16:nn", VN_F32), "none of this type");
    check(!vn__tune_pin(variant, &row, &values, &d, "gemm", "64x32x17:nn", VN_F16), "none of this shape");
    check(!vn__tune_pin(variant, &row, &values, &d, "conv", "64x32x16:nn", VN_F16), "none of this operation");
}

static void find_space(void)
{
    const struct vn_variant *const strided = variant_named("softmax_strided");
    int v[8];

    check(vn__tune_space(v, 8, strided, "ITEMS") == 3 && v[0] == 1 && v[2] == 4, "a space");
    check(vn__tune_space(v, 8, strided, "VALUES") == 3 && v[0] == 4 && v[2] == 16, "the last of a line");
    check(vn__tune_space(v, 2, strided, "VALUES") == 2, "no more than there is room for");
    check(vn__tune_space(v, 8, strided, "ROW_ITEMS") == 0, "none");
    check(vn__tune_space(v, 8, variant_named("softmax_cpu"), "VEC") == 0, "none of this variant");
}

/* ---- the user's file --------------------------------------------------------------- */

static const struct { const char *line, *wrong; } lines[] = {
    { "softmax_strided * * * * 1 2 4",                 NULL },
    { "softmax_strided\t*\t*\t*f16 * 1 2 3  # so\r",   NULL },
    { "unknown * * * * 1",                      NULL },
    { "columns unknown A B",                    NULL },
    { "space softmax_strided ROW_ITEMS 1 2",               NULL },
    { "   ",                                    NULL },
    { "softmax_strided * * * * 1 2",                   "a number for each of ITEMS ROW_ITEMS VALUES" },
    { "softmax_strided * * * * 1 2 3 4",               "a number for each of" },
    { "softmax_strided * * * * 1 2 3x",                "a number for each of" },
    { "softmax_strided * * * * 1 2 99999999999999999", "a number for each of" },
    { "softmax_strided * * *",                         "a row is a variant, a device" },
    { "unknown * *",                            "a row is a variant, a device" },
    { "softmax_strided * * f31 * 1 2 3",               "no type is like \"f31\"" },
    { "unknown * * * huge 1",                   "no bucket is like \"huge\"" },
    { "columns softmax_strided ITEMS VALUES ROW_ITEMS",
      "columns of softmax_strided are ITEMS ROW_ITEMS VALUES" },
    { "columns softmax_strided ITEMS ROW_ITEMS",           "the columns of softmax_strided are" },
    { "columns",                                "comes the name of a variant" },
    { "space softmax_strided ITEMS",                   "each with its values" },
    { "space softmax_strided 1 2",                     "each with its values" },
    { "space softmax_strided BLK_M 1 2",               "each with its values" },
    { "softmax_strided * * * * 1 2 3 | 4",              "a number for each of" },
    { "gemm_wgmma * * * * 64 12 1 2 1",                  NULL },
    { "gemm_wgmma * * * * 64 12 1 2 1 | 1 2 3 4 5 6 7 8 9", NULL },
    { "gemm_wgmma * * * * 64 12 1 2 1 | 1 2",
      "TEAMS | EFF EFF_FULL EFF_DRAM FIXED_NS TILE_NS ODD_C OFF_LINES ACT_NS HALF_C" },
    { "gemm_wgmma * * * * 64 12 1 2 1 | 1 2 3 4 5 6 7 8 9 10", "a number for each of" },
    { "columns gemm_wgmma BLK_N STAGES WARPGROUPS RASTER TEAMS", NULL },
    { "columns gemm_wgmma BLK_N STAGES WARPGROUPS RASTER TEAMS"
      " | EFF EFF_FULL EFF_DRAM FIXED_NS TILE_NS ODD_C OFF_LINES ACT_NS HALF_C", NULL },
    { "columns gemm_wgmma BLK_N STAGES WARPGROUPS RASTER TEAMS | EFF", "the columns of gemm_wgmma are" },
    { "rates nvidia/* GBPS 900 L2_MB 6.5",             NULL },
    { "rates",                                         "after \"rates\" comes a device" },
    { "rates * GBPS",                                  "\"GBPS\" is none" },
    { "rates * GBPS fast",                             "\"GBPS\" is none" },
    { "rates * SPEED 3",                               "\"SPEED\" is none" },
    { "pin gemm 1x2x3:nn * * f32 gemm 32 32 8 4 4",     NULL },
    { "pin gemm 1x2x3:nn * * f32 gemm",                 NULL },
    { "pin gemm 1x2x3:nn * * f32 unknown 3",            NULL },
    { "pin gemm 1x2x3:nn * * f32 gemm 32",              "a number for each of" },
    { "pin gemm 1x2x3:nn * * f33 gemm",                 "no type is like \"f33\"" },
    { "pin gemm 1x2x3:nn * *",                          "a pin is an operation" },
    { "softmax_cpu * * * * 16",                 "a number for each of VEC BLOCK" },   /* not the one sought */
};

/* Values that are in no space and no shipped row: of the user's rows, those alone are left out. */
static void use_odd_values(const char *path)
{
    static const struct device cpu = { "cpu", "f32x16", "a CPU", "opencl" };
    static const struct { const char *values; int is_used; } table[] = {
        { "4 0 16", 1 }, { "2 1 4", 1 }, { "9 0 0", 1 }, { "0 0 16", 0 }, { "3 0 17", 0 }, { "-1 0 16", 0 },
        { "4 2 16", 0 }, { "4 -1 16", 0 }, { "16777216 0 4", 0 } };
    struct vn_backend backend;
    struct vn_row row;
    vn_device h;
    char text[256], variant[64];
    const char *source;
    int p[VN_PARAMS], values;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const size_t n = (size_t)snprintf(text, sizeof text,
                                          "softmax_strided * * * * %s\nsoftmax_strided * * * * 1 1 8\n",
                                          table[i].values);

        put(path, text, n);
        check(!find(p, &source, &cpu, "softmax_strided", VN_F32, VN_LARGE) && !strcmp(source, "user") &&
              alternatives == 1 + table[i].is_used && (p[0] == 1) == !table[i].is_used, table[i].values);
    }
    put(path, text, (size_t)snprintf(text, sizeof text, "softmax_strided * * * * 0 0 0\n"));
    check(!find(p, &source, &cpu, "softmax_strided", VN_F32, VN_LARGE) && p[0] == 8 &&
          !strcmp(source, "shipped"), "no row of the user's is left");
    make_device(&h, &backend, &h100);
    put(path, text,
        (size_t)snprintf(text, sizeof text, "pin gemm 1x2x3:nn * * f16 gemm_wgmma 63 4 2 16 1\n"
                                            "pin gemm 1x2x4:nn * * f16 gemm_wgmma 256 4 2 16 1\n"));
    check(!vn__tune_pin(variant, &row, &values, &h, "gemm", "1x2x3:nn", VN_F16), "a pin with an odd value");
    check(vn__tune_pin(variant, &row, &values, &h, "gemm", "1x2x4:nn", VN_F16), "a pin with others");
}

/* It is not waited for; an alarm ends a hang. */
static void use_pipe(const char *path)
{
    static const struct device cpu = { "cpu", "f32x16", "a CPU", "opencl" };
    const char *source;
    int p[VN_PARAMS];

    unlink(path);
    alarm(60);
    check(!mkfifo(path, 0600) && !find(p, &source, &cpu, "softmax_strided", VN_F32, VN_LARGE) && p[0] == 8,
          "a pipe that nobody writes to");
    alarm(0);
}

static void use_user_files(void)
{
    static const struct device cpu = { "cpu", "f32x16", "a CPU", "opencl" };
    char base[PATH], path[PATH + 16], text[1024], why[512];
    const char *source;
    int p[VN_PARAMS];

    make_base(base);
    snprintf(path, sizeof path, "%s/user.tune", base);
    setenv("VERNIER_TUNE", path, 1);
    check(!find(p, &source, &cpu, "softmax_strided", VN_F32, VN_LARGE) && p[0] == 8, "no file of the user");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const size_t n = (size_t)snprintf(text, sizeof text,
                                          "# mine\nsoftmax_strided cpu/* * f32 * 4 1 16\n%s\n",
                                          lines[i].line);
        const int wrong = vn__tune_check(why, sizeof why, "the file", text);

        check(wrong ? lines[i].wrong && strstr(why, lines[i].wrong) && strstr(why, "the file:3: ") == why
                    : !lines[i].wrong, lines[i].line);
        put(path, text, n);
        check(!find(p, &source, &cpu, "softmax_strided", VN_F32, VN_LARGE) && p[0] == (wrong ? 8 : 4) &&
              !strcmp(source, wrong ? "shipped" : "user"), lines[i].line);
    }
    memset(text, 'x', 600);
    text[600] = '\0';
    check(vn__tune_check(why, sizeof why, "the file", text) && strstr(why, "the file:1: it is longer"),
          "a long line");
    snprintf(text, sizeof text, "gemm_wgmma * * f16 * 256 4 2 16 1\ngemm_wgmma * * f16 * 128 4 2 16 1\n");
    put(path, text, strlen(text));
    {
        struct vn_backend backend;
        struct vn_row row[VN_ROWS];
        vn_device d;
        int count = 0;

        make_device(&d, &backend, &h100);
        check(!vn__tune_find(row, &count, &d, variant_named("gemm_wgmma"), VN_F16, VN_SMALL) && count == 2 &&
              row[0].cost[0] == 900 && row[1].cost[0] == 500,
              "rows without costs take those of the shipped row that they are, or of the first");
    }
    snprintf(text, sizeof text, "softmax_strided * * f16 * 50 0 0\nsoftmax_strided nvidia/* * * * 60 0 0\n");
    put(path, text, strlen(text));
    check(!find(p, &source, &cpu, "softmax_strided", VN_F32, VN_LARGE) && p[0] == 8,
          "rows for something else");
    use_odd_values(path);
    use_pipe(path);
    wipe(base);
}

int main(void)
{
    find_rows();
    find_alternatives();
    find_rates();
    find_pins();
    find_space();
    use_user_files();
    printf("COUNT tune %d\n%d failures\n", cases, failures);
    return failures != 0;
}
