/* SPDX-License-Identifier: Apache-2.0
 *
 * wgmma.c - the variant gemm_wgmma: 16-bit types on NVIDIA's sm_90; with smaller tiles than its 128 x 256,
 * gemm_wgmma_128x192, gemm_wgmma_64x256, gemm_wgmma_64x128, gemm_wgmma_64x64; and with K in parts, gemm_wgmma_deep.
 *
 * A C that has fewer tiles than the device has units leaves the others idle.  Smaller tiles come
 * first: more of them read A and B more often, but no second launch is needed.  Where C is too small
 * for those, too, K is cut.  Which is best follows from the problem and the units alone, so results
 * are the same each time.
 */
#include <limits.h>
#include <string.h>

#include "gemm.h"

enum { BLK_N, STAGES, WARPGROUPS, BAND };      /* its parameters */
enum { BLK_K = 64, LINE = 8,      /* 8 numbers are 16 bytes: the step of the copy engine */
       MAPS_BYTES = 256, MOST_GROUPS = 1024, MOST_PARTS = 64,
       SKINNY = 16 };             /* rows of which gemm_skinny_lines and gemm_skinny_mma are better */

/* The copy engine takes lines of consecutive numbers whose steps are multiples of 16 bytes. */
static int can_copy(const vn_tensor *t, int64_t along, int64_t across)
{
    return along == 1 && across % LINE == 0 && across > 0 && t->start % LINE == 0 &&
           (t->rank == 2 || (t->rank == 3 && t->stride[0] % LINE == 0));
}

static const char *fits(const struct gemm *g, const struct vn_facts *f, int across_a, int across_b)
{
    const int64_t a_row = vn__row(&g->a), a_col = vn__col(&g->a), b_row = vn__row(&g->b), b_col = vn__col(&g->b);

    if (strcmp(f->family, "nvidia") || strcmp(f->arch, "sm_90"))
        return "it needs an NVIDIA GPU of sm_90, for wgmma";
    if (g->head.type != VN_F16 && g->head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (g->math == VN_MATH_BITWISE)
        return "it sums in another order than VN_MATH_BITWISE promises";
    if (g->k == 0)
        return "there is nothing to multiply";
    if (g->m > INT_MAX / 2 || g->n > INT_MAX / 2 || g->k > INT_MAX / 2 || g->batches > INT_MAX / 2)
        return "M, N, K and the batches must stay below 2^30";
    if (!(across_a ? can_copy(&g->a, a_row, a_col) : can_copy(&g->a, a_col, a_row)))
        return "A's lines need to lie the other way, or to begin at multiples of 16 bytes, in at most one batch dimension";
    if (!(across_b ? can_copy(&g->b, b_col, b_row) : can_copy(&g->b, b_row, b_col)))
        return "B's lines need to lie the other way, or to begin at multiples of 16 bytes, in at most one batch dimension";
    return NULL;
}

/* A is M x K: its lines run across K when it is transposed; B is K x N: when it is not. */
const char *vn__fits_wgmma_nn(const void *problem, const struct vn_facts *f) { return fits(problem, f, 0, 1); }
const char *vn__fits_wgmma_nt(const void *problem, const struct vn_facts *f) { return fits(problem, f, 0, 0); }
const char *vn__fits_wgmma_tn(const void *problem, const struct vn_facts *f) { return fits(problem, f, 1, 1); }
const char *vn__fits_wgmma_tt(const void *problem, const struct vn_facts *f) { return fits(problem, f, 1, 0); }

/* ---- which tile, and how many parts of K -------------------------------------------- */

/* Microseconds on an H100: of a slice of each tile, where all tiles are made at the same time of operands that the second-level
 * cache keeps from one product to the next, and elsewhere: who does not ask for the same lines together with others, or
 * waits for memory, takes longer; and of what else a tile takes, and of a launch.  Bytes that are moved in one of
 * them, near and far, and of sums.                                                                     */
enum tile { TILE_64x64, TILE_64x128, TILE_64x256, TILE_128x192, TILE_128x256, TILE_COUNT };
static const struct { int m, n; double near, far, rest; } tile_of[TILE_COUNT] = {
    [TILE_64x64]   = {  64,  64, 0.140, 0.180, 2.1 },
    [TILE_64x128]  = {  64, 128, 0.160, 0.205, 2.8 },
    [TILE_64x256]  = {  64, 256, 0.360, 0.420, 1.0 },
    [TILE_128x192] = { 128, 192, 0.505, 0.505, 2.0 },
    [TILE_128x256] = { 128, 256, 0.660, 0.660, 2.0 },
};
static const double LAUNCH = 3.0, NEAR = 5.5e6, FAR = 2.75e6, SUMS = 5e6;

/* The units go through tiles in rounds, in the last of which some idle; a little of what that would cost is made
 * up for, by a higher clock and by units that are ahead.                                            */
static const double ROUNDS = 0.94;

struct cut { int64_t parts, span; };            /* span: slices of K in each part, but for the last */

static int64_t slices_of(const struct gemm *g)
{
    return VN_CEIL_DIV(g->k, BLK_K);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double time_of(const struct gemm *g, enum tile t, struct cut c)
{
    const double c_numbers = (double)g->m * (double)g->n * (double)g->batches;
    const int64_t tiles = VN_CEIL_DIV(g->m, tile_of[t].m) * VN_CEIL_DIV(g->n, tile_of[t].n) * g->batches * c.parts;
    const int64_t full = tiles / g->units, left = tiles % g->units;
    const int near = g->head.bytes <= VN_CACHE;
    const double slice = near && tiles <= g->units ? tile_of[t].near : tile_of[t].far, rest = tile_of[t].rest;
    const double tile = (double)c.span * slice + rest, bytes = g->head.bytes / (near ? NEAR : FAR);
    const double each = bytes / (double)tiles;
    const double rounds = (double)full * larger(tile, (double)g->units * each + rest) +
                          (left ? larger(tile, (double)left * each + rest) : 0);
    const double even = larger(larger((double)tiles / (double)g->units, 1) * tile, bytes);

    return ROUNDS * rounds + (1 - ROUNDS) * even +
           (c.parts > 1 ? LAUNCH + c_numbers * (double)c.parts * 8 / SUMS : 0);
}

/* In the least time; at least two, where K has two slices.  All sums take no more room than A and B. */
static struct cut cut_of(const struct gemm *g)
{
    const int64_t slices = slices_of(g), room = (g->m * g->k + g->k * g->n) / (2 * g->m * g->n);
    struct cut best = { 1, slices };

    for (int64_t parts = 2; parts <= slices && parts <= room && parts <= MOST_PARTS; parts++) {
        const int64_t span = VN_CEIL_DIV(slices, parts);
        const struct cut c = { VN_CEIL_DIV(slices, span), span };

        if (best.parts == 1 || time_of(g, TILE_64x128, c) < time_of(g, TILE_64x128, best))
            best = c;
    }
    return best;
}

static double time_whole(const struct gemm *g, enum tile t)
{
    return time_of(g, t, (struct cut){ 1, slices_of(g) });
}

/* Where there are few rows, idle ones cost nothing while B is read. */
static int reads_much(const struct gemm *g)
{
    return g->m > SKINNY && g->n >= 1024 && g->k >= 1024;
}

const char *vn__pays_wgmma(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    if (g->n < 64 || g->k < 64)
        return "N or K is below 64: most of its tile would be idle";
    if (g->m < 64 && !reads_much(g))
        return "M is below 64, and what there is to read does not set the time";
    return NULL;
}

static const char *pays(const struct gemm *g, const struct vn_facts *f, enum tile tile)
{
    const char *why = vn__pays_wgmma(g, f);

    for (int t = 0; !why && t < TILE_COUNT; t++)
        if (time_whole(g, (enum tile)t) < time_whole(g, tile))
            why = "tiles of another size are done sooner";
    return why;
}

const char *vn__pays_wgmma_64x64  (const void *p, const struct vn_facts *f) { return pays(p, f, TILE_64x64); }
const char *vn__pays_wgmma_64x128 (const void *p, const struct vn_facts *f) { return pays(p, f, TILE_64x128); }
const char *vn__pays_wgmma_64x256 (const void *p, const struct vn_facts *f) { return pays(p, f, TILE_64x256); }
const char *vn__pays_wgmma_128x192(const void *p, const struct vn_facts *f) { return pays(p, f, TILE_128x192); }

const char *vn__pays_wgmma_deep(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why = vn__pays_wgmma(problem, f);
    const double time = why ? 0 : time_of(g, TILE_64x128, cut_of(g));

    for (int t = 0; !why && t < TILE_COUNT; t++)
        if (time_whole(g, (enum tile)t) <= time)
            why = "C has tiles enough, or K is too short for a second launch to pay";
    return why;
}

/* ---- launches ----------------------------------------------------------------------- */

/* Work-groups that run at the same time: what their local memory leaves room for. */
static int64_t groups_of(const int *p, int units)
{
    enum { LOCAL = 227 * 1024, OTHER = 1024 };
    const int bytes = p[STAGES] * 128 * (64 * p[WARPGROUPS] + p[BLK_N]) + OTHER;

    return units * (int64_t)(LOCAL / bytes > 1 ? LOCAL / bytes : 1);
}

static int64_t tiles_of(const struct gemm *g, const int *p)
{
    return VN_CEIL_DIV(g->m, 64 * p[WARPGROUPS]) * VN_CEIL_DIV(g->n, p[BLK_N]);
}

static int items_of(const int *p)
{
    return 128 * p[WARPGROUPS] + 32;
}

/* Two maps for each work-group. */
static size_t maps_bytes(int64_t groups)
{
    return (size_t)groups * MAPS_BYTES;
}

size_t vn__workspace_wgmma(const void *problem, const int *p)
{
    const struct gemm *g = problem;
    const int64_t tiles = tiles_of(g, p);

    return maps_bytes(tiles < MOST_GROUPS / g->batches ? tiles * g->batches : MOST_GROUPS);
}

/* How tiles are shared out, of `matrices` of them: C of each batch, or a part of it. */
struct grid { int64_t tiles, groups; };

static vn_status lay_out(struct grid *out, const vn_queue *q, const struct vn_choice *it, const struct gemm *g,
                         int64_t matrices)
{
    const int64_t most = groups_of(it->p, q->device->facts.units);

    if (!vn__mul(&out->tiles, tiles_of(g, it->p), matrices) || out->tiles > INT_MAX / 2)
        return vn__fail(VN_UNSUPPORTED, "C has %lld tiles in each of %lld matrices; %s counts to %d",
                        (long long)tiles_of(g, it->p), (long long)matrices, it->variant->name, INT_MAX / 2);
    out->groups = out->tiles < most ? out->tiles : most;
    out->groups = out->groups < MOST_GROUPS ? out->groups : MOST_GROUPS;
    return VN_OK;
}

/* All up to the maps, which are at the start of `room`. */
static struct vn_launch launch_of(const struct vn_choice *it, const struct gemm *g, const struct grid *grid,
                                  vn_buffer *room)
{
    struct vn_launch l = { .groups = { grid->groups, 1, 1 },
                           .items = items_of(it->p) };

    vn__arg_int(&l, g->m);
    vn__arg_int(&l, g->n);
    vn__arg_int(&l, g->k);
    vn__arg_extents(&l, &g->c);
    vn__arg_real(&l, g->head.type, g->alpha);
    vn__arg_int(&l, grid->groups);
    vn__arg_int(&l, grid->tiles);
    vn__arg_tensor(&l, &g->a);
    vn__arg_tensor(&l, &g->b);
    vn__arg_buffer(&l, room);
    return l;
}

/* The rows and columns of C that the first tiles of all work-groups have: see tile_at() in the text. */
static void first_tiles(int64_t *m, int64_t *n, const struct gemm *g, const int *p, int64_t groups)
{
    const int64_t tile_m = 64 * p[WARPGROUPS], rows = VN_CEIL_DIV(g->m, tile_m);
    const int64_t columns = VN_CEIL_DIV(g->n, p[BLK_N]), band = p[BAND];
    const int64_t bands = groups / (band * columns), in_band = rows < band ? rows : band;

    *m = (bands + 1) * band * tile_m;
    *n = bands > 0 ? g->n : VN_CEIL_DIV(groups, in_band) * p[BLK_N];
}

/* cl/gemm/pad.h says what these are. */
static vn_status arg_padding(struct vn_launch *l, vn_queue *q, const struct gemm *g, const int *p, int64_t groups,
                             const struct padding *pads)
{
    enum { STRIP = 512, CHUNKS = 32, WARPS = 3 };
    int64_t m, n, first_a, first_b;
    vn_buffer *counters;
    vn_status s = vn__counters(&counters, q);

    first_tiles(&m, &n, g, p, groups);
    first_a = VN_CEIL_DIV(m, STRIP);
    first_b = VN_CEIL_DIV(n, STRIP);
    l->items += 32 * WARPS;
    vn__arg_tensor(l, &pads->a);
    vn__arg_tensor(l, &pads->b);
    vn__arg_int(l, pads->strips_a);
    vn__arg_int(l, pads->strips_b);
    vn__arg_int(l, first_a < pads->strips_a ? first_a : pads->strips_a);
    vn__arg_int(l, first_b < pads->strips_b ? first_b : pads->strips_b);
    vn__arg_int(l, STRIP * VN_CEIL_DIV(g->k, STRIP * CHUNKS));
    vn__arg_buffer(l, counters);
    return s;
}

vn_status vn__run_wgmma_padding(vn_queue *q, const struct vn_choice *it, const void *problem, const struct padding *pads)
{
    const struct gemm *g = problem;
    struct vn_launch l;
    struct grid grid;
    vn_buffer *maps;
    vn_status s;

    if ((s = lay_out(&grid, q, it, g, g->batches)) ||
        (s = vn__workspace(&maps, q, maps_bytes(grid.groups))))
        return s;
    l = launch_of(it, g, &grid, maps);
    if (pads && (s = arg_padding(&l, q, g, it->p, grid.groups, pads)))
        return s;
    vn__gemm_output(&l, g);
    return vn__launch(q, it, 0, &l);
}

vn_status vn__run_wgmma(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    return vn__run_wgmma_padding(q, it, problem, NULL);
}

/* ---- K in parts ------------------------------------------------------------------- */

static const char *fits_deep(const struct gemm *g, const struct vn_facts *f, int across_a, int across_b)
{
    const char *why = fits(g, f, across_a, across_b);
    struct cut cut;
    int64_t sums;

    if (why)
        return why;
    cut = cut_of(g);
    if (cut.parts < 2)
        return "K is too short to be cut into parts";
    if (!vn__mul(&sums, cut.parts * g->batches, g->m * g->n) || sums > INT_MAX / 4)
        return "the sums of all parts must stay below 2^29";
    return NULL;
}

const char *vn__fits_wgmma_deep_nn(const void *problem, const struct vn_facts *f) { return fits_deep(problem, f, 0, 1); }
const char *vn__fits_wgmma_deep_nt(const void *problem, const struct vn_facts *f) { return fits_deep(problem, f, 0, 0); }
const char *vn__fits_wgmma_deep_tn(const void *problem, const struct vn_facts *f) { return fits_deep(problem, f, 1, 1); }
const char *vn__fits_wgmma_deep_tt(const void *problem, const struct vn_facts *f) { return fits_deep(problem, f, 1, 0); }

/* The maps, then the sums. */
static size_t sums_start(void)
{
    return maps_bytes(MOST_GROUPS);
}

size_t vn__workspace_wgmma_deep(const void *problem, const int *p)
{
    const struct gemm *g = problem;
    const struct cut cut = cut_of(g);

    (void)p;
    return sums_start() + (size_t)(cut.parts * g->batches * g->m * g->n) * sizeof(float);
}

vn_status vn__run_wgmma_deep(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    const struct cut cut = cut_of(g);
    const int64_t start = (int64_t)(sums_start() / sizeof(float));
    struct vn_launch l;
    struct grid grid;
    vn_buffer *room;
    vn_status s;

    if ((s = lay_out(&grid, q, it, g, cut.parts * g->batches)) ||
        (s = vn__workspace(&room, q, vn__workspace_wgmma_deep(g, it->p))))
        return s;
    l = launch_of(it, g, &grid, room);
    vn__arg_int(&l, cut.span);
    vn__arg_buffer(&l, room);
    vn__arg_int(&l, start);
    if ((s = vn__launch(q, it, 0, &l)))
        return s;
    return vn__add_parts(q, it, 1, items_of(it->p), g, room, start, cut.parts);
}
