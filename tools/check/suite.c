/* SPDX-License-Identifier: Apache-2.0
 *
 * suite.c - runs one case after another, and keeps count.
 */
#include "suite.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "data.h"
#include "oracle.h"

const char *const suite_kinds[KIND_COUNT] = { "exact", "real", "special" };

/* ---- random numbers -------------------------------------------------------- */

uint64_t random_bits(struct random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t random_below(struct random *r, int64_t n)
{
    return (int64_t)(random_bits(r) % (uint64_t)n);
}

double random_real(struct random *r, double low, double high)
{
    return low + (high - low) * (double)(random_bits(r) >> 11) * 0x1p-53;
}

int random_chance(struct random *r, double p)
{
    return random_real(r, 0, 1) < p;
}

static uint64_t hash(uint64_t seed, const char *text)
{
    for (; *text; text++)
        seed = (seed ^ (unsigned char)*text) * 0x100000001b3u;
    return seed;
}

/* ---- memory ----------------------------------------------------------------- */

enum { GUARD = 64 };              /* elements on both sides: keeps a vector's alignment */

/* Memory that serves one operand of every case: grows, and is never given back. */
struct arena {
    vn_buffer     *buffer;
    unsigned char *before, *after;
    double        *values;
    size_t         room;          /* bytes */
};

static int arena_grow(struct arena *a, vn_device *d, size_t bytes)
{
    const size_t room = bytes < 4096 ? 4096 : bytes + bytes / 2;

    if (bytes <= a->room)
        return 0;
    vn_buffer_close(a->buffer);
    free(a->before);
    free(a->after);
    free(a->values);
    a->room   = room;
    a->before = malloc(room);
    a->after  = malloc(room);
    a->values = malloc(room / 2 * sizeof *a->values);
    a->buffer = NULL;
    if (!a->before || !a->after || !a->values || vn_buffer_open(&a->buffer, d, room)) {
        a->room = 0;
        return -1;
    }
    return 0;
}

static void arena_close(struct arena *a)
{
    vn_buffer_close(a->buffer);
    free(a->before);
    free(a->after);
    free(a->values);
}

/* ---- one run ------------------------------------------------------------------ */

struct run {
    struct suite         *s;
    const struct problem *p;
    enum kind             kind;
    const struct pattern *pattern;                /* NULL: none */
    enum place            place;
    struct operands       o;
    struct oracle         right;
    int                   at;                     /* the output that is being compared */
    char                  why[256];
    double                worst;
    int                   refused;                /* as it should be: the device lacks the type */
    int64_t               wrong, seen, zeros, different;
    double                first;
};

static void find_fault(struct run *r, const char *sentence, ...) __attribute__((format(printf, 2, 3)));

/* The first that is found is what the failure says. */
static void find_fault(struct run *r, const char *sentence, ...)
{
    va_list ap;

    if (r->wrong++)
        return;
    va_start(ap, sentence);
    vsnprintf(r->why, sizeof r->why, sentence, ap);
    va_end(ap);
}

/* That in which its elements are. */
static struct arena *home_arena(const struct run *r, int i)
{
    return &r->s->arenas[home_of(&r->o, i)];
}

static int is_at_home(const struct run *r, int i)
{
    return r->o.t[i].rank && home_of(&r->o, i) == i;
}

static int find_room(struct run *r)
{
    for (int i = 0; i < r->o.count; i++) {
        struct arena *a = &r->s->arenas[i], *const home = home_arena(r, i);
        vn_tensor    *t = &r->o.t[i];

        if (!t->rank)
            continue;
        t->start         += GUARD;
        r->o.elements[i] += 2 * GUARD;
        if (arena_grow(a, r->s->device, operand_bytes(&r->o, i)))
            return -1;
        t->buffer = vn__elements(t) ? home->buffer : NULL;
    }
    return 0;
}

/* Guards, gaps and unwritten outputs: NaNs everywhere, and the data over them. */
static void fill(struct run *r)
{
    struct data d = { .p = r->p, .o = &r->o };
    char        text[PROBLEM_TEXT];

    for (int i = 0; i < r->o.count; i++) {
        if (!r->o.t[i].rank)
            continue;
        d.values[i] = r->s->arenas[i].values;
        d.bytes[i]  = home_arena(r, i)->before;
        for (int64_t e = 0; is_at_home(r, i) && e < r->o.elements[i]; e++)
            oracle_store_canary(r->o.t[i].type, d.bytes[i], e);
    }
    problem_format(text, r->p);
    d.random.state = hash(hash(r->s->seed, text), suite_kinds[r->kind]);
    r->p->op->fill(&d, r->kind);
    if (r->pattern)
        data_place(&d, r->pattern, r->place);
}

static vn_status send(struct run *r)
{
    vn_status s = VN_OK;

    fill(r);
    for (int i = 0; i < r->o.count && s == VN_OK; i++)
        if (is_at_home(r, i))
            s = vn_write(r->s->queue, r->s->arenas[i].buffer, 0, r->s->arenas[i].before,
                         operand_bytes(&r->o, i));
    return s;
}

static vn_status fetch(struct run *r)
{
    vn_status s = VN_OK;

    for (int i = 0; i < r->o.count && s == VN_OK; i++)
        if (is_at_home(r, i))
            s = vn_read(r->s->queue, r->s->arenas[i].after, r->s->arenas[i].buffer, 0,
                        operand_bytes(&r->o, i));
    return s;
}

/* ---- comparing ------------------------------------------------------------------ */

static void say_place(char *out, size_t size, const int64_t *place, int rank)
{
    size_t used = 0;

    for (int d = 0; d < rank && used < size; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", d ? "," : "", (long long)place[d]);
}

/* How far off, as a share of what is allowed; above 1 is wrong. */
static double share_of(enum kind kind, vn_type type, double is, long double value, long double bound)
{
    if (isnan(value) || isnan(is))
        return isnan(value) && isnan(is) ? 0 : INFINITY;
    if (kind == EXACT)
        return is == oracle_round(type, (double)value) ? 0 : INFINITY;
    if (isinf(value))
        return is == (double)value ? 0 : INFINITY;
    if (isinf(is))                                /* past the largest, if the bound reaches there */
        return oracle_round(type, (double)(value + (is > 0 ? bound : -bound))) == is ? 1 : INFINITY;
    return is == value ? 0 : (double)(fabsl(is - value) / bound);
}

static void compare_one(void *context, int64_t at, const int64_t place[VN_RANK])
{
    struct run         *r = context;
    struct arena       *a = home_arena(r, r->at);
    const vn_type       type = r->o.t[r->at].type;
    const long double   value = r->right.value[r->at][at], bound = r->right.bound[r->at][at];
    const double        is = oracle_load(type, a->after, at);
    const double        share = share_of(r->kind, type, is, value, bound);
    const size_t        size = vn_type_bytes(type);

    r->first      = r->seen ? r->first : is;
    r->seen++;
    r->zeros     += is == 0 && bound > oracle_unit(r->p->type);     /* else nothing was added: it is meant */
    r->different += is != r->first;
    r->worst      = share > r->worst ? share : r->worst;
    memcpy(a->before + (size_t)at * size, a->after + (size_t)at * size, size);
    /* what follows compares the rest */
    if (!(share <= 1)) {
        char where[96], slack[32] = "";
        const int several = (r->o.outputs & (r->o.outputs - 1)) != 0;

        say_place(where, sizeof where, place, r->o.t[r->at].rank);
        if (r->kind != EXACT && isfinite((double)value))
            snprintf(slack, sizeof slack, " give or take %.3g", (double)bound);
        find_fault(r, "element [%s]%s%s is %.9g and should be %.9g%s", where, several ? " of " : "",
                   several ? r->p->op->operands[r->at] : "", is, (double)value, slack);
    }
}

/* All bytes but the elements of the outputs. */
static void compare_rest(struct run *r)
{
    for (int i = 0; i < r->o.count; i++) {
        const struct arena *a = &r->s->arenas[i];
        const size_t bytes = operand_bytes(&r->o, i);
        size_t at = 0;

        if (!is_at_home(r, i) || memcmp(a->before, a->after, bytes) == 0)
            continue;
        while (a->before[at] == a->after[at])
            at++;
        find_fault(r, "%s changed outside the result, at element %lld of its buffer's %lld (the view starts "
                      "at %lld)",
                   r->p->op->operands[i], (long long)(at / vn_type_bytes(r->o.t[i].type)) - GUARD,
                   (long long)r->o.elements[i] - 2 * GUARD, (long long)r->o.t[i].start - GUARD);
    }
}

static int intends_zeros(const struct problem *p)
{
    return p->act == VN_RELU || p->op->has_zeros || (p->alpha == 0 && p->beta == 0)
        || p->op->summands(p) == 0;
}

/* A case whose output is mostly zeros, or one number everywhere, shows little. */
static int is_vacuous(const struct run *r)
{
    if (r->seen < 8 || r->kind == SPECIAL || intends_zeros(r->p))
        return 0;
    return 10 * r->zeros > 3 * r->seen || (r->different == 0 && (r->p->alpha != 0 || r->p->beta != 0));
}

/* -1: no memory. */
static int ask_oracle(struct run *r)
{
    struct oracle *const c = &r->right;

    *c = (struct oracle){ .p = r->p, .o = &r->o };
    for (int i = 0; i < r->o.count; i++) {
        const size_t n = (size_t)r->o.elements[i];

        c->in[i] = r->s->arenas[i].values;
        if (is_output(&r->o, i) && (!(c->value[i] = malloc(n * sizeof *c->value[i]))
                                    || !(c->bound[i] = malloc(n * sizeof *c->bound[i]))))
            return -1;
    }
    oracle_run(c);
    return 0;
}

static void compare(struct run *r)
{
    if (!ask_oracle(r)) {
        for (r->at = 0; r->at < r->o.count; r->at++)
            if (is_output(&r->o, r->at))
                oracle_each(&r->o.t[r->at], compare_one, r);
        compare_rest(r);
    } else
        find_fault(r, "host memory ran out");
    for (int i = 0; i < r->o.count; i++) {
        free(r->right.value[i]);
        free(r->right.bound[i]);
    }
}

/* ---- keeping count ---------------------------------------------------------------- */

static struct suite_group *group_of(struct suite *s)
{
    return &s->groups[s->group_count - 1];
}

void suite_fault(struct suite *s, const char *sentence, ...)
{
    struct suite_group *g = group_of(s);
    const size_t used = strlen(g->failures);
    va_list ap;

    g->failed++;
    s->failed++;
    va_start(ap, sentence);
    vsnprintf(g->failures + used, sizeof g->failures - used, sentence, ap);
    va_end(ap);
}

/* The line that runs it again, and what was wrong. */
static void note_failure(struct suite *s, const struct run *r)
{
    char text[PROBLEM_TEXT], seed[48] = "";

    problem_format(text, r->p);
    if (s->seed != SUITE_SEED)
        snprintf(seed, sizeof seed, " --seed %llu", (unsigned long long)s->seed);
    suite_fault(s, "vernier check%s '%s'\n    %s%s%s: %s\n", seed, text, suite_kinds[r->kind],
                r->pattern ? ", " : "", r->pattern ? r->pattern->name : "", r->why);
}

static void note(struct suite *s, const struct run *r)
{
    struct suite_group *g = group_of(s);

    g->cases++;
    if (r->refused)
        s->refused++;
    else
        s->count[r->kind]++;
    s->vacuous += is_vacuous(r);
    if (r->wrong)
        note_failure(s, r);
    else if (r->kind == REAL) {
        g->worst = r->worst > g->worst ? r->worst : g->worst;
        s->worst[r->p->type] = r->worst > s->worst[r->p->type] ? r->worst : s->worst[r->p->type];
    }
}

/* A variant asked for by name may not fit: then nothing need be made for it. */
static int is_refused(struct run *r, const struct operands *said)
{
    vn_status got;

    if (!r->p->variant[0] || r->refused)
        return 0;
    vn_queue_prepare(r->s->queue, 1);
    got = problem_run(r->s->queue, r->p, said);
    vn_queue_prepare(r->s->queue, 0);
    return got == VN_UNSUPPORTED;
}

/* Runs it and looks at what came of it.  A type the device lacks must be refused, and
 * nothing else, save that a variant may not fit a packed operand: then 0.            */
static int run_and_compare(struct run *r, struct operands *said)
{
    char      why[sizeof r->why];
    vn_status got = problem_pack(r->s->queue, r->p, said);

    if (got == VN_OK)
        got = problem_run(r->s->queue, r->p, said);
    snprintf(why, sizeof why, "%s", vn_last_error());
    vn_pack_close(said->pack);                    /* what is queued still sees it */
    if (got == VN_UNSUPPORTED && !r->refused && r->p->variant[0])
        return 0;
    if (got != (r->refused ? VN_UNSUPPORTED : VN_OK))
        find_fault(r, "returned %s: %s", vn_status_name(got), why);
    else if (fetch(r))
        find_fault(r, "cannot be read back: %s", vn_last_error());
    else if (r->refused)
        compare_rest(r);
    else
        compare(r);
    return 1;
}

/* restated: 0, or the way of op->restate() in which it is posed; -1 when there is no such way. */
static int run_once(struct suite *s, const struct problem *p, enum kind kind, const struct pattern *pattern,
                    enum place place, int restated)
{
    struct run r = { .s = s, .p = p, .kind = kind, .pattern = pattern, .place = place,
                     .refused = p->type == VN_F64 && !s->info.has_f64 };

    if (problem_operands(&r.o, p))
        return 0;

    const int       room = find_room(&r);
    struct operands said = r.o;
    const int       way = restated ? p->op->restate(&said, p, restated) : 1;

    if (way < 1)
        return way;

    int             fits = room || !is_refused(&r, &said);

    if (room || (fits && send(&r)))
        find_fault(&r, "cannot be set up: %s", vn_last_error());
    else
        fits = fits && run_and_compare(&r, &said);
    if (fits)
        note(s, &r);
    else {
        group_of(s)->passed_over++;
        s->passed_over++;
    }
    return 0;
}

/* A deadline leaves each group that has begun at least one case. */
static int is_over(const struct suite *s, int has_cases)
{
    return (s->stop && *s->stop) || (s->deadline && has_cases && vn__seconds() > s->deadline);
}

enum { SPECIALS = 6 };              /* a multiple of all shares */

/* One in so many special cases runs, others in another type. */
static int share_of_specials(const struct suite *s)
{
    return s->extent == SUITE_SMALL ? 6 : s->extent == SUITE_QUICK ? 3 : 1;
}

void suite_case(struct suite *s, const struct problem *p, enum kind kind)
{
    if (is_over(s, group_of(s)->cases > 0)) {
        group_of(s)->cut = 1;
        return;
    }
    if (kind == SPECIAL && s->specials++ % share_of_specials(s))
        return;
    run_once(s, p, kind, NULL, FIRST, 0);
    if (s->extent == SUITE_SMALL)       /* a simulator would see the same accesses, and looks at no numbers */
        return;
    for (int way = 1; p->op->restate && run_once(s, p, kind, NULL, FIRST, way) == 0; way++)
        ;
    if (kind != SPECIAL)
        return;
    for (const struct pattern *t = p->op->patterns; t->name; t++)
        for (int place = FIRST; place <= LAST; place++)
            if (data_suits(p, t) && (place == FIRST || !t->everywhere))
                run_once(s, p, kind, t, (enum place)place, 0);
}

/* ---- groups ------------------------------------------------------------------------- */

int suite_begin(struct suite *s, const char *name, ...)
{
    struct suite_group *g;
    va_list ap;

    s->met++;
    if ((s->only && s->only != s->met) || is_over(s, 0))
        return 0;
    if (!(g = realloc(s->groups, (size_t)(s->group_count + 1) * sizeof *g)))
        abort();                                  /* a test program without a few kilobytes */
    s->groups = g;
    g += s->group_count++;
    *g = (struct suite_group){ .seconds = -vn__seconds() };
    va_start(ap, name);
    vsnprintf(g->name, sizeof g->name, name, ap);
    va_end(ap);
    s->ran++;
    s->specials = (long)(hash(s->seed, g->name) % SPECIALS);        /* whichever groups ran before */
    if (s->group_begun)
        s->group_begun(s, g);
    return 1;
}

void suite_end(struct suite *s)
{
    struct suite_group *g = group_of(s);

    g->seconds += vn__seconds();
    if (g->cases == 0 && g->failed == 0)
        return;
    s->reported++;
    if (s->group_done)
        s->group_done(s, g);
}

/* Whether no operands make its result exact: activations but ReLU are irrational. */
static int is_inexact(const struct problem *p)
{
    return p->act > VN_RELU || (p->op->inexact && p->op->inexact(p));
}

void suite_problem(struct suite *s, const struct problem *p)
{
    char text[PROBLEM_TEXT];

    problem_format(text, p);
    for (int kind = is_inexact(p) ? REAL : EXACT; kind < KIND_COUNT; kind++) {
        if (!suite_begin(s, "%.80s %s", text, suite_kinds[kind]))
            continue;
        suite_case(s, p, (enum kind)kind);
        suite_end(s);
    }
}

/* Vendors' libraries are not ours to test: variant=NAME in a problem does. */
const char *suite_next_variant(const struct suite *s, const struct op *op, const char *before)
{
    const struct vn_variant *v = op->operation->variants;

    if (s->variant)
        return before ? NULL : s->variant;
    if (!before && s->extent != SUITE_SMALL)    /* a simulator's time goes to each by name */
        return "";
    if (before && before[0]) {
        while (strcmp(v->name, before))
            v++;
        while (v->name && strcmp(v->name, before) == 0)         /* one name may serve several directions */
            v++;
    }
    while (v->name && !v->texts)
        v++;
    return v->name;
}

int suite_epilogues(const struct suite *s)
{
    return s->extent < SUITE_FULL ? 2 : SUITE_EPILOGUES;
}

uint64_t suite_seed(const struct suite *s, const char *variant, int group)
{
    uint64_t seed = s->seed + 16 * (uint64_t)group;

    for (; *variant; variant++)
        seed = seed * 31 + (unsigned char)*variant;
    return seed;
}

int suite_times(const struct suite *s, int usual)
{
    static const double share[] = { [SUITE_SMALL] = 0.005, [SUITE_QUICK] = 0.1, [SUITE_USUAL] = 1,
                                    [SUITE_FULL] = 10 };
    const int times = (int)(usual * share[s->extent]);

    return times > 1 ? times : 1;
}

/* ---- the whole ------------------------------------------------------------------------ */

static struct suite *suite_make(void)
{
    struct suite *s = calloc(1, sizeof *s);

    if (!s || !(s->arenas = calloc(OPERANDS, sizeof *s->arenas))) {
        free(s);
        return NULL;
    }
    s->seed   = SUITE_SEED;
    s->extent = SUITE_USUAL;
    return s;
}

/* PoCL keeps what it builds by itself.  Asked for a binary, as the library's cache asks, it compiles each
 * kernel once more, for work-groups of any size: half the time of a suite, for programs that no application
 * will load.                                                                                            */
void suite_spare_cache(const vn_device_info *i)
{
    if (!strcmp(i->platform, "Portable Computing Language"))
        setenv("VERNIER_CACHE", "0", 0);            /* a user's word stands */
}

vn_status suite_open(struct suite **out, const char *spec)
{
    struct suite *s = *out = suite_make();
    vn_status     status = VN_NO_MEMORY;

    if (s && !(status = vn_device_open(&s->device, spec)) && !(status = vn_queue_open(&s->queue, s->device)))
        status = vn_device_describe(&s->info, s->device);
    if (s && !status)
        suite_spare_cache(&s->info);
    if (s && status) {
        suite_close(s);
        *out = NULL;
    }
    return status;
}

vn_status suite_open_beside(struct suite **out, const struct suite *lender)
{
    struct suite *s = *out = suite_make();
    vn_status     status;

    if (!s)
        return VN_NO_MEMORY;
    s->lender   = lender;
    s->device   = lender->device;
    s->info     = lender->info;
    s->seed     = lender->seed;
    s->extent   = lender->extent;
    s->variant  = lender->variant;
    s->stop     = lender->stop;
    s->deadline = lender->deadline;
    if ((status = vn_queue_open(&s->queue, s->device))) {
        suite_close(s);
        *out = NULL;
    }
    return status;
}

void suite_close(struct suite *s)
{
    if (!s)
        return;
    if (s->queue) {                               /* else vn_last_error() still has something to say */
        for (int i = 0; i < OPERANDS; i++)
            arena_close(&s->arenas[i]);
        vn_queue_close(s->queue);
    }
    if (s->device && !s->lender)
        vn_device_close(s->device);
    free(s->arenas);
    free(s->groups);
    free(s);
}

static long cases_of(const struct suite *s)
{
    long n = 0;

    for (int kind = 0; kind < KIND_COUNT; kind++)
        n += s->count[kind];
    return n;
}

/* Of many cases, more than one in fifty: then the tables no longer test much. */
static int too_vacuous(const struct suite *s)
{
    return cases_of(s) >= 1000 && 50 * s->vacuous > cases_of(s);
}

int suite_status(const struct suite *s)
{
    const int may_be_empty = s->shards > 1;     /* the cases are in other shards */

    return s->failed || too_vacuous(s) || (!may_be_empty && cases_of(s) + s->refused == 0);
}

void suite_report(const struct suite *s, FILE *to)
{
    for (int t = 0; t < VN_TYPE_COUNT; t++)
        if (s->worst[t] > 0)
            fprintf(to, "worst %.2f of the bound in %s\n", s->worst[t], vn_type_name((vn_type)t));
    fprintf(to, "%ld case%s, %ld failed; seed %llu\n", cases_of(s), PLURAL(cases_of(s)), s->failed,
            (unsigned long long)s->seed);
    fprintf(to, "%ld more passed over (the variant does not fit), %ld refused (the device lacks the type)\n",
            s->passed_over, s->refused);
    if (s->vacuous)
        fprintf(to, "%ld had an output mostly of zeros or all the same%s\n", s->vacuous,
                too_vacuous(s) ? ": too many, the tables are at fault" : "");
    for (int kind = 0; kind < KIND_COUNT; kind++)
        fprintf(to, "COUNT %s %ld\n", suite_kinds[kind], s->count[kind]);
}
