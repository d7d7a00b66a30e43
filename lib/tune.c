/* SPDX-License-Identifier: Apache-2.0
 *
 * tune.c - the rows of *.tune files: which #defines a variant gets on a device.
 *
 *     # a comment
 *     columns gemm_cpu          THR_M THR_N BLK_N
 *     space   gemm_cpu          THR_M 4 6 12  THR_N 1 2 4  BLK_N 32 64
 *     gemm_cpu cpu/f32x16/?* * f32 large    12    32    64
 *
 * A row is: variant, device pattern, backend, type, bucket, one value for each column of parameters; and
 * where the variant has costs, a bar and one value for each of those.  The pattern is matched (as file names
 * are) against family/arch/name of the device; backend, type and bucket may be patterns, too.
 *
 *     columns gemm_wgmma  BLK_N STAGES WARPGROUPS RASTER | EFF EFF_FULL TILE_NS
 *     gemm_wgmma  nvidia/sm_90/?*  *  *f16  *  256 4 2 16 | 850 850 2000
 *
 * The first row that matches is used, and with it those of the same file for the very same devices, backend,
 * types and buckets: they are alternatives, of which the cheapest plan is used.  The user's file comes first
 * ($VERNIER_TUNE, or vernier/user.tune under $XDG_CONFIG_HOME or ~/.config), then the shipped ones.  Where
 * only a row for every device (*) matches there, one for the nearest device goes before it: of the same
 * family, and of an architecture whose number is not far from ours.  A row without costs takes those of the
 * shipped row.
 *
 * Other lines: `space` names the values that are worth trying, which `vernier tune` searches.  `rates` says
 * what a device does in a second; each rate is taken from the first line that matches and has it.  `pin` says
 * which variant, and with which values, solves problems of one shape, whatever their plans cost:
 *
 *     rates nvidia/sm_90/?*  GBPS 2750  LAUNCH_NS 3000
 *     pin   gemm 1024x512x4096:nt  nvidia/sm_90/?*  *  f16  gemm_wgmma 256 4 2 16
 *
 * A file with a wrong line is not used at all.  A variant that this library does not have is
 * no mistake: another version, or a build with other libraries, may have it.  Nor is a value of the
 * user's that the variant's kernels are not made for; but that row is left out, and a pin with it.  They
 * are made for the values of the `space` and of shipped rows; of a parameter without a space, for those
 * between the smallest and the largest that is shipped, and for 0 and 1 where no other is.
 */
#include "os.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "core.h"

enum { LINE = 512, FILE_LIMIT = 1 << 20, WORD = 256, PATH = 4096, WHY = PATH + 512 };

const char *const vn__bucket_names[VN_BUCKET_COUNT] = { "small", "medium", "large" };

/* ---- words ---------------------------------------------------------------------- */

/* Copies the word at *at to word[size] and steps over it; 0 at the end of the line. */
static int next_word(char *word, size_t size, const char **at)
{
    size_t n;

    *at += strspn(*at, " \t\r");
    n = strcspn(*at, " \t\r\n#");
    if (n == 0 || n >= size)
        return 0;
    memcpy(word, *at, n);
    word[n] = '\0';
    *at += n;
    return 1;
}

static int is_like(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}

/* `params`, which are words: whether they are the next of *at. */
static int are_next(const char **at, const char *params)
{
    char want[WORD], have[WORD];

    while (next_word(want, sizeof want, &params))
        if (!next_word(have, sizeof have, at) || strcmp(want, have))
            return 0;
    return 1;
}

static int read_value(int *out, const char *word)
{
    char *end;
    long v;

    errno = 0;
    v = strtol(word, &end, 10);
    if (end == word || *end || errno || v < -65536 || v > 1 << 24)
        return 0;
    *out = (int)v;
    return 1;
}

static int is_parameter(const char *params, const char *name)
{
    char word[WORD];

    while (next_word(word, sizeof word, &params))
        if (!strcmp(word, name))
            return 1;
    return 0;
}

int vn__is_named(const struct vn_variant *v, const char *name)
{
    const char *was = v->was ? v->was : "";
    char old[WORD];
    int same = !strcmp(v->name, name);

    while (!same && next_word(old, sizeof old, &was))
        same = !strcmp(old, name);
    return same;
}

static const struct vn_variant *variant_named(const char *name)
{
    for (const struct vn_operation *const *o = vn__operations; *o; o++)
        for (const struct vn_variant *v = (*o)->variants; v->name; v++)
            if (vn__is_named(v, name))
                return v;
    return NULL;
}

/* ---- lines ----------------------------------------------------------------------- */

#define RATE(name, member) { name, offsetof(struct vn_rates, member) }
const struct vn_rate vn__rates[] = {
    RATE("GBPS", gbps), RATE("L2_GBPS", l2_gbps), RATE("L2_MB", l2_mb), RATE("LINES", lines),
    RATE("LAUNCH_NS", launch_ns), RATE("BATCH_NS", batch_ns), RATE("WAVES", waves), RATE("READERS", readers),
    RATE("LOCAL_KIB", local_kib), RATE("FMA32", fma32), RATE("FMA64", fma64), RATE("MMA16", mma16),
    RATE("MMA32", mma32), RATE("MMA64", mma64), { NULL, 0 } };

enum { NAME, DEVICE, BACKEND, TYPE, BUCKET, FIELDS, SHAPE = BUCKET };

struct line {
    enum { NOTHING, COLUMNS, SPACE, RATES, PIN, ROW } kind;
    char        field[FIELDS][WORD];      /* NAME of each kind but RATES, the rest of rows; of PIN the
                                             operation and SHAPE, too */
    char        op[WORD];
    const struct vn_variant *variant;     /* NULL: this library has none of that name */
    int         p[VN_PARAMS], cost[VN_COSTS];       /* of a row, or a pin */
    int         has_values, has_costs;
    struct vn_rates rates;                /* negative: the line does not say */
    const char *rest;                     /* behind the name */
    char        wrong[384];               /* "": nothing */
};

static void find_wrong(struct line *l, const char *sentence, ...) VN_SENTENCE(2, 3);

static void find_wrong(struct line *l, const char *sentence, ...)
{
    va_list args;

    va_start(args, sentence);
    vsnprintf(l->wrong, sizeof l->wrong, sentence, args);
    va_end(args);
}

/* Costs may be left out. */
static void read_columns(struct line *l)
{
    const char *at = l->rest, *const costs = l->variant->costs ? l->variant->costs : "";
    char word[WORD];
    int same = are_next(&at, l->variant->params);

    if (same && next_word(word, sizeof word, &at))
        same = *costs && !strcmp(word, "|") && are_next(&at, costs) && !next_word(word, sizeof word, &at);
    if (!same)
        find_wrong(l, "the columns of %s are %s%s%s", l->variant->name, l->variant->params,
                   *costs ? " | " : "", costs);
}

/* NAME 1 2 4  NAME 8 16 */
static void read_space(struct line *l)
{
    const char *at = l->rest;
    char word[WORD];
    int value, names = 0, values = 1, right = 1;

    while (right && next_word(word, sizeof word, &at))
        if (read_value(&value, word)) {
            right = names > 0;
            values++;
        } else {
            right = values > 0 && is_parameter(l->variant->params, word);
            names++;
            values = 0;
        }
    if (!right || !values)
        find_wrong(l, "after the space of %s come some of %s, each with its values", l->variant->name,
                   l->variant->params);
}

/* A number for each of the names; 0 if there are fewer. */
static int read_numbers(int *out, int most, const char **at, const char *names)
{
    char name[WORD], word[WORD];

    for (int n = 0; next_word(name, sizeof name, &names); n++)
        if (n >= most || !next_word(word, sizeof word, at) || !read_value(&out[n], word))
            return 0;
    return 1;
}

static void read_values(struct line *l)
{
    const char *at = l->rest, *const costs = l->variant->costs ? l->variant->costs : "";
    char word[WORD];
    int right = read_numbers(l->p, VN_PARAMS, &at, l->variant->params);

    if (right && next_word(word, sizeof word, &at)) {
        right = *costs && !strcmp(word, "|") && read_numbers(l->cost, VN_COSTS, &at, costs) &&
                !next_word(word, sizeof word, &at);
        l->has_costs = right;
    }
    l->has_values = right;
    if (!right)
        find_wrong(l, "a row of %s ends with a number for each of %s%s%s", l->variant->name,
                   l->variant->params, *costs ? " | " : "", costs);
}

/* NAME 2750  NAME 40 */
static void read_rates(struct line *l)
{
    const char *at = l->rest;
    char name[WORD], word[WORD];

    for (const struct vn_rate *r = vn__rates; r->name; r++)
        *(double *)((char *)&l->rates + r->at) = -1;
    if (!next_word(l->field[DEVICE], WORD, &at))
        find_wrong(l, "after \"rates\" comes a device");
    while (!*l->wrong && next_word(name, sizeof name, &at)) {
        const struct vn_rate *r = vn__rates;
        char *end = word;
        double value = -1;

        while (r->name && strcmp(r->name, name))
            r++;
        if (next_word(word, sizeof word, &at))
            value = strtod(word, &end);
        if (!r->name || end == word || *end || !(value >= 0 && value < 1e9))
            find_wrong(l, "after the device come rates, each with its value; \"%.40s\" is none", name);
        else
            *(double *)((char *)&l->rates + r->at) = value;
    }
}

static int is_like_some(const char *pattern, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (is_like(pattern, names[i]))
            return 1;
    return 0;
}

static void check_type(struct line *l)
{
    const char *types[VN_TYPE_COUNT];

    for (int t = 0; t < VN_TYPE_COUNT; t++)
        types[t] = vn_type_name((vn_type)t);
    if (!is_like_some(l->field[TYPE], types, VN_TYPE_COUNT))
        find_wrong(l, "no type is like \"%.40s\": they are f32, f16, bf16 and f64", l->field[TYPE]);
}

static void read_pin(struct line *l)
{
    const char *behind;
    char word[WORD];

    if (!next_word(l->op, WORD, &l->rest) || !next_word(l->field[SHAPE], WORD, &l->rest) ||
        !next_word(l->field[DEVICE], WORD, &l->rest) || !next_word(l->field[BACKEND], WORD, &l->rest) ||
        !next_word(l->field[TYPE], WORD, &l->rest) || !next_word(l->field[NAME], WORD, &l->rest)) {
        find_wrong(l, "a pin is an operation, a shape, a device, a backend, a type, a variant, "
                      "then numbers or none");
        return;
    }
    check_type(l);
    l->variant = variant_named(l->field[NAME]);
    behind = l->rest;
    if (!*l->wrong && l->variant && next_word(word, sizeof word, &behind))
        read_values(l);
}

static void read_row(struct line *l)
{
    for (int i = DEVICE; i < FIELDS; i++)
        if (!next_word(l->field[i], WORD, &l->rest)) {
            find_wrong(l, "a row is a variant, a device, a backend, a type, a bucket, then numbers");
            return;
        }
    check_type(l);
    if (*l->wrong)
        return;
    if (!is_like_some(l->field[BUCKET], vn__bucket_names, VN_BUCKET_COUNT))
        find_wrong(l, "no bucket is like \"%.40s\": they are small, medium and large", l->field[BUCKET]);
    else if (l->variant)
        read_values(l);
}

static void read_line(struct line *l, const char *text)
{
    static const struct { const char *word; int kind; } firsts[] = {
        { "columns", COLUMNS }, { "space", SPACE } };

    *l = (struct line){ .rest = text };
    if (!next_word(l->field[NAME], WORD, &l->rest)) {
        if (*l->rest && *l->rest != '#')
            find_wrong(l, "a word is longer than %d characters", WORD - 1);
        return;
    }
    if (!strcmp(l->field[NAME], "rates")) {
        l->kind = RATES;
        read_rates(l);
        return;
    }
    if (!strcmp(l->field[NAME], "pin")) {
        l->kind = PIN;
        read_pin(l);
        return;
    }
    l->kind = ROW;
    for (int i = 0; i < 2; i++)
        if (!strcmp(l->field[NAME], firsts[i].word)) {
            l->kind = firsts[i].kind;
            if (!next_word(l->field[NAME], WORD, &l->rest))
                find_wrong(l, "after \"%s\" comes the name of a variant", firsts[i].word);
        }
    l->variant = variant_named(l->field[NAME]);
    if (*l->wrong || (!l->variant && l->kind != ROW))
        return;
    if (l->kind == ROW)
        read_row(l);
    else if (l->kind == COLUMNS)
        read_columns(l);
    else
        read_space(l);
}

/* The next line of *text, whose number is counted; 0 at the end. */
static int next_line(struct line *l, char copy[LINE], const char **text, int *number)
{
    const size_t n = strcspn(*text, "\n");

    if (!**text)
        return 0;
    ++*number;
    if (n >= LINE) {
        *l = (struct line){ .rest = "" };
        find_wrong(l, "it is longer than %d characters", LINE - 1);
    } else {
        memcpy(copy, *text, n);
        copy[n] = '\0';
        read_line(l, copy);
    }
    *text += n + ((*text)[n] == '\n');
    return 1;
}

int vn__tune_check(char *why, size_t why_size, const char *path, const char *text)
{
    struct line l;
    char copy[LINE];
    int number = 0;

    while (next_line(&l, copy, &text, &number))
        if (*l.wrong) {
            snprintf(why, why_size, "%s:%d: %s", path, number, l.wrong);
            return -1;
        }
    return 0;
}

/* ---- devices: how near are two ----------------------------------------------------- */

/* Numbers that this far apart, one over the other, still speak of kin. */
static const double KIN = 1.5;

/* The number of an architecture: "sm_90", "gfx90a" (of which CDNA has the low ones, RDNA the
 * high), "f32x16".  0: it has none.                                                       */
static double number_of(const char *arch, size_t *stem)
{
    static const struct { const char *stem; int base; } kinds[] = {
        { "sm_", 10 }, { "gfx", 16 }, { "f32x", 10 } };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        *stem = strlen(kinds[i].stem);
        if (!strncmp(arch, kinds[i].stem, *stem))
            return (double)strtol(arch + *stem, NULL, kinds[i].base);
    }
    return 0;
}

/* 1 for the same architecture, above that for another of the family; KIN and more: too far. */
static double distance(const char *pattern, const struct vn_facts *f)
{
    char parts[WORD], *arch;
    size_t stem, our_stem;
    double a, b;

    snprintf(parts, sizeof parts, "%s", pattern);
    if (!(arch = strchr(parts, '/')))
        return KIN;
    *arch++ = '\0';
    arch[strcspn(arch, "/")] = '\0';
    if (strcmp(parts, f->family))
        return KIN;
    if (is_like(arch, f->arch))
        return 1;
    a = number_of(arch, &stem);
    b = number_of(f->arch, &our_stem);
    if (!(a > 0 && b > 0) || stem != our_stem || strncmp(arch, f->arch, stem))
        return KIN;
    return a > b ? a / b : b / a;
}

/* ---- finding ------------------------------------------------------------------------ */

struct sought {
    const struct vn_variant *variant;
    const struct vn_facts   *facts;
    const char *backend, *type, *bucket;
    char        device[WORD];
};

/* Rows of the very same devices, backend, types and buckets. */
struct rows { int count; struct vn_row row[VN_ROWS]; int has_costs[VN_ROWS]; char field[FIELDS][WORD]; };

struct found {
    struct rows exact, near;      /* that match; of the nearest device that does not */
    double distance;              /* of that */
};

/* Adds the row of l, unless there are some of another kind. */
static void add_row(struct rows *rows, const struct line *l)
{
    for (int i = DEVICE; rows->count && i < FIELDS; i++)
        if (strcmp(rows->field[i], l->field[i]))
            return;
    if (!rows->count)
        memcpy(rows->field, l->field, sizeof rows->field);
    if (rows->count < VN_ROWS) {
        struct vn_row *const row = &rows->row[rows->count];

        memcpy(row->p, l->p, sizeof row->p);
        memcpy(row->cost, l->cost, sizeof row->cost);
        rows->has_costs[rows->count++] = l->has_costs;
    }
}

static void look_at(struct found *out, const struct line *l, const struct sought *s)
{
    double d;

    if (l->kind != ROW || !is_like(l->field[BACKEND], s->backend) ||
        !is_like(l->field[TYPE], s->type) || !is_like(l->field[BUCKET], s->bucket))
        return;
    if (is_like(l->field[DEVICE], s->device)) {
        add_row(&out->exact, l);
    } else if ((d = distance(l->field[DEVICE], s->facts)) <= out->distance && d < KIN) {
        if (d < out->distance)
            out->near.count = 0;
        out->distance = d;
        add_row(&out->near, l);
    }
}

/* The next line of *text that begins with this word: reading the others would take long. */
static int next_of(struct line *l, char copy[LINE], const char **text, const struct vn_variant *v,
                   const char *word)
{
    char first[WORD];
    int number = 0;

    while (**text) {
        const char *at = *text;

        if (next_word(first, sizeof first, &at) && (v ? vn__is_named(v, first) : !strcmp(first, word)))
            return next_line(l, copy, text, &number);
        *text += strcspn(*text, "\n");
        *text += **text == '\n';
    }
    return 0;
}

/* Adds what a file without a wrong line has. */
static void search(struct found *out, const char *text, const struct sought *s)
{
    struct line l;
    char copy[LINE];

    while (next_of(&l, copy, &text, s->variant, NULL))
        look_at(out, &l, s);
}

static struct sought sought_of(const vn_device *d, const struct vn_variant *v, vn_type type,
                               enum vn_bucket bucket)
{
    struct sought s = { v, &d->facts, d->backend->name, vn_type_name(type), vn__bucket_names[bucket], "" };

    snprintf(s.device, sizeof s.device, "%s/%s/%s", d->facts.family, d->facts.arch, d->facts.name);
    return s;
}

static char shipped_wrong[WHY];                 /* "": nothing */

static void check_shipped(void)
{
    for (const struct vn_text *t = vn__texts; t->path && !*shipped_wrong; t++)
        if (is_like("*.tune", t->path))
            vn__tune_check(shipped_wrong, sizeof shipped_wrong, t->path, t->text);
}

static vn_status shipped_right(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, check_shipped);
    return *shipped_wrong ? vn__fail(VN_FAILED, "%s", shipped_wrong) : VN_OK;
}

static void give(struct vn_row *out, int *count, const struct rows *rows, const char *source)
{
    *count = rows->count;
    memcpy(out, rows->row, (size_t)rows->count * sizeof *out);
    for (int i = 0; i < rows->count; i++)
        out[i].source = source;
}

static vn_status no_row(const struct sought *s)
{
    return vn__fail(VN_UNSUPPORTED, "there is no tune row of %s for %s, %s, %s, %s", s->variant->name,
                    s->device, s->backend, s->type, s->bucket);
}

vn_status vn__tune_shipped(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                           vn_type type, enum vn_bucket bucket)
{
    const struct sought s = sought_of(d, v, type, bucket);
    struct found f = { .distance = KIN };
    const vn_status wrong = shipped_right();
    int for_all;

    if (wrong)
        return wrong;
    for (const struct vn_text *t = vn__texts; t->path; t++)
        if (is_like("*.tune", t->path))
            search(&f, t->text, &s);
    if (!f.exact.count && !f.near.count)
        return no_row(&s);
    for_all = f.exact.count && !strcmp(f.exact.field[DEVICE], "*");
    if (f.exact.count && (!for_all || !f.near.count))
        give(out, count, &f.exact, for_all ? "default" : "shipped");
    else
        give(out, count, &f.near, "nearest");
    return VN_OK;
}

int vn__tune_space(int *values, int most, const struct vn_variant *v, const char *param)
{
    char copy[LINE], word[WORD];
    struct line l;
    int count = 0;

    for (const struct vn_text *t = vn__texts; t->path; t++) {
        const char *text = t->text;
        int number = 0;

        while (is_like("*.tune", t->path) && next_line(&l, copy, &text, &number)) {
            int value, ours = 0;

            if (l.kind != SPACE || strcmp(l.field[NAME], v->name))
                continue;
            while (next_word(word, sizeof word, &l.rest))
                if (!read_value(&value, word))
                    ours = !strcmp(word, param);
                else if (ours && count < most)
                    values[count++] = value;
        }
    }
    return count;
}

/* ---- values that kernels are made for ------------------------------------------ */

struct made_for { int has_space, is_one, least, most, used; char list[160]; };

static void make_for(struct made_for *out, int value, int wanted)
{
    out->is_one |= value == wanted;
    out->least = value < out->least ? value : out->least;
    out->most = value > out->most ? value : out->most;
}

/* Looks for p[] in a line of the shipped files. */
static void find_values(struct made_for *out, struct line *l, const struct vn_variant *v, const int *p)
{
    char word[WORD];
    int value, i = -1;

    if (l->kind == ROW && l->variant == v)
        for (int n = 0; vn__word_at(word, v->params, n); n++)
            make_for(&out[n], l->p[n], p[n]);
    if (l->kind != SPACE || l->variant != v)
        return;
    while (next_word(word, sizeof word, &l->rest))
        if (!read_value(&value, word)) {
            char name[64];

            for (i = 0; vn__word_at(name, v->params, i) && strcmp(name, word); i++)
                ;
            out[i].has_space = 1;
        } else {
            struct made_for *const m = &out[i];

            make_for(m, value, p[i]);
            if ((size_t)m->used < sizeof m->list)
                m->used += snprintf(m->list + m->used, sizeof m->list - (size_t)m->used, " %d", value);
        }
}

/* Whether the user's values will do; else a log line says which does not. */
static int are_made_for(const struct vn_variant *v, const int *p)
{
    struct made_for m[VN_PARAMS];
    char copy[LINE], name[64];
    struct line l;

    for (int i = 0; i < VN_PARAMS; i++)
        m[i] = (struct made_for){ .least = INT_MAX, .most = INT_MIN };

    for (const struct vn_text *t = vn__texts; t->path; t++)
        for (int space = 0; space < 2 && is_like("*.tune", t->path); space++)
            for (const char *text = t->text; next_of(&l, copy, &text, space ? NULL : v, "space");)
                find_values(m, &l, v, p);
    for (int i = 0; vn__word_at(name, v->params, i); i++) {
        const int is_switch = m[i].most <= 1, least = is_switch ? 0 : m[i].least;
        const int most = is_switch ? 1 : m[i].most;

        if (m[i].is_one || (!m[i].has_space && p[i] >= least && p[i] <= most))
            continue;
        if (m[i].has_space)
            vn__log(VN_LOG_CHOOSE, "a row of the user's for %s is not used: %s is %d; it needs one of%s",
                    v->name, name, p[i], m[i].list);
        else
            vn__log(VN_LOG_CHOOSE, "a row of the user's for %s is not used: %s is %d; it needs %d to %d",
                    v->name, name, p[i], least, most);
        return 0;
    }
    return 1;
}

/* Leaves out the rows that will not do. */
static void keep_made_for(struct rows *rows, const struct vn_variant *v)
{
    int kept = 0;

    for (int i = 0; i < rows->count; i++)
        if (are_made_for(v, rows->row[i].p)) {
            rows->row[kept] = rows->row[i];
            rows->has_costs[kept++] = rows->has_costs[i];
        }
    rows->count = kept;
}

/* ---- the user's file --------------------------------------------------------- */

int vn__tune_path(char *path, size_t size)
{
    const char *file = secure_getenv("VERNIER_TUNE");
    const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
    int n = -1;

    if (file && *file)
        n = snprintf(path, size, "%s", file);
    else if (config && *config == '/')
        n = snprintf(path, size, "%s/vernier/user.tune", config);
    else if (home && *home)
        n = snprintf(path, size, "%s/.config/vernier/user.tune", home);
    return n > 0 && (size_t)n < size;
}

/* A pipe, which may never end, is none; /dev/null is. */
static FILE *open_file(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    FILE *f = NULL;

    if (fd < 0)
        return NULL;
    if (!fstat(fd, &st) && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
        f = fdopen(fd, "r");
    else
        errno = EINVAL;
    if (!f)
        close(fd);
    return f;
}

char *vn__tune_read(const char *path)
{
    FILE *f = open_file(path);
    char *text = f ? malloc(FILE_LIMIT + 1) : NULL;

    if (text) {
        const size_t n = fread(text, 1, FILE_LIMIT, f);

        text[n] = '\0';
        if (ferror(f) || strlen(text) != n || !feof(f)) {       /* unreadable, binary, too long */
            free(text);
            text = NULL;
            errno = EINVAL;
        }
    }
    if (f)
        fclose(f);
    return text;
}

/* The text of the user's file, malloc'd; NULL if there is none, or it has a wrong line. */
static char *user_text(void)
{
    char path[PATH], why[WHY], *text;

    if (!vn__tune_path(path, sizeof path))
        return NULL;
    if (!(text = vn__tune_read(path))) {
        if (errno != ENOENT)
            vn__log(VN_LOG_CHOOSE, "%s is not used: it cannot be read, or is no text of at most %d bytes",
                    path, FILE_LIMIT);
        return NULL;
    }
    if (!vn__tune_check(why, sizeof why, path, text))
        return text;
    vn__log(VN_LOG_CHOOSE, "%s; the file is not used", why);
    free(text);
    return NULL;
}

/* Rows without costs have those of the shipped row with the same parameters, or of the first. */
static void add_costs(struct vn_row *out, const struct rows *rows, const vn_device *d,
                      const struct vn_variant *v, vn_type type, enum vn_bucket bucket)
{
    struct vn_row shipped[VN_ROWS];
    int count;

    if (!v->costs || vn__tune_shipped(shipped, &count, d, v, type, bucket))
        return;
    for (int i = 0; i < rows->count; i++) {
        int same = 0;

        while (same < count && memcmp(shipped[same].p, out[i].p, sizeof out[i].p))
            same++;
        if (!rows->has_costs[i])
            memcpy(out[i].cost, shipped[same < count ? same : 0].cost, sizeof out[i].cost);
    }
}

vn_status vn__tune_find(struct vn_row *out, int *count, const vn_device *d, const struct vn_variant *v,
                        vn_type type, enum vn_bucket bucket)
{
    const struct sought s = sought_of(d, v, type, bucket);
    struct found f = { .distance = 0 };         /* only what matches */
    char *text;

    memset(out, 0, sizeof *out);
    out->source = "default";
    *count = 1;
    if (!v->params || !*v->params)
        return VN_OK;
    if ((text = user_text())) {
        search(&f, text, &s);
        free(text);
        keep_made_for(&f.exact, v);
    }
    if (!f.exact.count)
        return vn__tune_shipped(out, count, d, v, type, bucket);
    give(out, count, &f.exact, "user");
    add_costs(out, &f.exact, d, v, type, bucket);
    return VN_OK;
}

/* ---- rates, pins --------------------------------------------------------------- */

/* Takes over what is not known yet. */
static void take_rates(struct vn_rates *out, const struct vn_rates *from)
{
    for (const struct vn_rate *r = vn__rates; r->name; r++) {
        double *const to = (double *)((char *)out + r->at);
        const double rate = *(const double *)((const char *)from + r->at);

        if (*to < 0 && rate >= 0)
            *to = rate;
    }
}

static void search_rates(struct vn_rates *out, const char *text, const char *device)
{
    struct line l;
    char copy[LINE];

    while (next_of(&l, copy, &text, NULL, "rates"))
        if (is_like(l.field[DEVICE], device))
            take_rates(out, &l.rates);
}

/* user: a file's text, or NULL. */
static vn_status find_rates(struct vn_rates *out, const vn_device *d, const char *user)
{
    const vn_status wrong = shipped_right();
    char device[WORD];

    snprintf(device, sizeof device, "%s/%s/%s", d->facts.family, d->facts.arch, d->facts.name);
    for (const struct vn_rate *r = vn__rates; r->name; r++)
        *(double *)((char *)out + r->at) = -1;
    if (user)
        search_rates(out, user, device);
    for (const struct vn_text *t = vn__texts; t->path && !wrong; t++)
        if (is_like("*.tune", t->path))
            search_rates(out, t->text, device);
    return wrong;
}

vn_status vn__tune_shipped_rates(struct vn_rates *out, const vn_device *d)
{
    return find_rates(out, d, NULL);
}

vn_status vn__tune_rates(struct vn_rates *out, const vn_device *d)
{
    char *const text = user_text();
    const vn_status s = find_rates(out, d, text);

    free(text);
    return s;
}

static int search_pin(struct line *l, const char *text, const char *device, const char *backend,
                      const char *op, const char *shape, const char *type)
{
    char copy[LINE];

    while (next_of(l, copy, &text, NULL, "pin"))
        if (l->variant && !strcmp(l->op, op) && !strcmp(l->field[SHAPE], shape) &&
            is_like(l->field[DEVICE], device) && is_like(l->field[BACKEND], backend) &&
            is_like(l->field[TYPE], type))
            return 1;
    return 0;
}

int vn__tune_pin(char variant[64], struct vn_row *row, int *values, const vn_device *d, const char *op,
                 const char *shape, vn_type type)
{
    char device[WORD], *text;
    struct line l;
    int found = 0;

    snprintf(device, sizeof device, "%s/%s/%s", d->facts.family, d->facts.arch, d->facts.name);
    if ((text = user_text())) {
        found = search_pin(&l, text, device, d->backend->name, op, shape, vn_type_name(type)) &&
                (!l.has_values || are_made_for(l.variant, l.p));
        free(text);
    }
    for (const struct vn_text *t = vn__texts; t->path && !found; t++)
        if (is_like("*.tune", t->path))
            found = search_pin(&l, t->text, device, d->backend->name, op, shape, vn_type_name(type));
    if (!found)
        return 0;
    snprintf(variant, 64, "%s", l.variant->name);
    *values = l.has_values;
    memcpy(row->p, l.p, sizeof row->p);
    memcpy(row->cost, l.cost, sizeof row->cost);
    row->source = "pinned";
    return 1;
}
