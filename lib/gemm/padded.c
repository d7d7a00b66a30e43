/* SPDX-License-Identifier: Apache-2.0
 *
 * padded.c - the variants gemm_padded and gemm_wgmma_repack: the kernel of gemm_wgmma, of unaligned operands.
 *
 * TMA reads rows that begin at multiples of 16 bytes.  An operand that has others is repacked to the queue's
 * workspace, its rows padded: by a launch before; or in a large product by the launch that multiplies, while
 * its first tiles are computed.
 */
#include <limits.h>
#include <stdint.h>

#include "gemm.h"

enum { REPACK = VN_TMA_COST_COUNT };            /* their cost column after the tiles': thousandths of the
                                                   memory's rate */
enum { PAD = 1 };                               /* the kernel, after that of gemm_wgmma */
enum { ELEMENT = 2, VECTOR = 8, PITCH = 64 };   /* bytes; elements: 16 and 128 bytes */
enum { STRIP = 512 };                           /* of M or N, as in the kernel */
enum { PAD_WIDTH = 128, PAD_ROWS = 128, PAD_ITEMS = 1024 };     /* of a work-group, as in padded.cl */
enum { WORKSPACE_ALIGN = 128 };                 /* elements */

/* The product that is left when operands are padded, and how many elements each takes; 0: none. */
struct padded { struct gemm g; int64_t a, b; };

/* Gives the matrix, which is contiguous along this dimension, room from `start` on if it needs some:
 * the elements that takes, or -1 if they are too many.                                              */
static int64_t place(vn_tensor *t, int along, int64_t start)
{
    const int across = 2 * t->rank - 3 - along, copies = t->rank > 2 && t->stride[0] != 0;
    const int64_t pitch = VN_CEIL_DIV(t->extent[along], PITCH) * PITCH;
    int64_t step, room;

    if (t->stride[along] == 1 && t->stride[across] > 0 && t->stride[across] % VECTOR == 0 &&
        t->start % VECTOR == 0 && (!copies || t->stride[0] % VECTOR == 0))
        return 0;
    if (!vn__mul(&step, pitch, t->extent[across]) || !vn__mul(&room, step, copies ? t->extent[0] : 1) ||
        room > INT_MAX / 2)
        return -1;
    t->start = start;
    t->stride[along] = 1;
    t->stride[across] = pitch;
    if (copies)
        t->stride[0] = step;
    return room;
}

static int along_a(const struct gemm *g) { return vn__is_mn_major_a(g) ? g->a.rank - 2 : g->a.rank - 1; }
static int along_b(const struct gemm *g) { return vn__is_mn_major_b(g) ? g->b.rank - 1 : g->b.rank - 2; }

static int pad_both(struct padded *out, const struct gemm *g)
{
    out->g = *g;
    return (out->a = place(&out->g.a, along_a(g), 0)) >= 0 &&
           (out->b = place(&out->g.b, along_b(g), out->a)) >= 0;
}

/* Whether the product that is left fits gemm_wgmma. */
const char *vn__fits_padded(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    struct padded p;

    if (g->head.type != VN_F16 && g->head.type != VN_BF16)
        return "it needs f16 or bf16";
    return pad_both(&p, g) ? vn__fits_wgmma(&p.g, f)
                           : "a padded operand would have more than 2^30 elements";
}

void vn__constants_padded(int *c, const void *problem)
{
    c[0] = vn__is_mn_major_a(problem);
    c[1] = vn__is_mn_major_b(problem);
}

static vn_status pad_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to,
                       size_t at);

struct vn_layout vn__layout_padded(const void *problem, const int *unused)
{
    struct padded p;

    (void)unused;
    return (struct vn_layout){ pad_b, 0, pad_both(&p, problem) ? ELEMENT * (size_t)p.b : SIZE_MAX };
}

static size_t own_bytes(const struct padded *p)
{
    return ELEMENT * (size_t)p->a;
}

enum { TILES };                                 /* of a plan, as of gemm_wgmma */

/* launches: one for each operand that is repacked, or none. */
static const char *plan_padded(struct vn_plan *out, const struct gemm *g, const struct vn_row *row,
                               const struct vn_site *site, int launches)
{
    const struct vn_layout l = vn__layout_padded(g, row->p);
    struct padded p;
    const char *why;
    int64_t moved;

    if (!pad_both(&p, g)) {
        out->seconds = -1;
        return "a padded operand would have more than 2^30 elements";
    }
    if ((why = vn__plan_wgmma_tiles(out, &p.g, 0, 0, row, site)))
        return why;
    moved = p.a + (vn__is_packed_as(g, &l) ? 0 : p.b);
    out->workspace = vn__workspace_and_b(g, own_bytes(&p), &l);
    if (out->seconds > 0)
        out->seconds += vn__move_seconds(2.0 * ELEMENT * (double)moved, row->cost[REPACK], site) +
                        launches * ((p.a > 0) + (moved > p.a)) * vn__launch_seconds(site);
    return !p.a && !p.b && (g->n | vn__row(&g->c)) % VECTOR == 0
         ? "nothing has to be repacked: gemm_wgmma does the same" : NULL;
}

const char *vn__plan_padded(struct vn_plan *out, const void *problem, const struct vn_row *row,
                            const struct vn_site *site)
{
    return plan_padded(out, problem, row, site, 1);
}

/* from and to: one matrix, before and after. */
static vn_status pad(vn_queue *q, const struct vn_choice *it, const vn_tensor *from, const vn_tensor *to,
                     int along)
{
    const int across = 2 * from->rank - 3 - along, copies = to->rank > 2 && to->stride[0] != 0;
    const int64_t width = from->extent[along], rows = from->extent[across];
    const int64_t from_view[8] = { [0] = from->start, [4] = copies ? from->stride[0] : 0,
                                  [5] = from->stride[across], [6] = from->stride[along] };
    const int64_t to_view[8]   = { [0] = to->start, [4] = copies ? to->stride[0] : 0,
                                  [5] = to->stride[across], [6] = 1 };
    struct vn_launch l = { .groups = { VN_CEIL_DIV(width, PAD_WIDTH) * VN_CEIL_DIV(rows, PAD_ROWS), 1, 1 },
                           .items = PAD_ITEMS };

    l.groups[0] *= copies ? from->extent[0] : 1;    /* no overflow: at most 2^30 elements are written */
    vn__arg_int(&l, width);
    vn__arg_int(&l, rows);
    vn__arg_buffer(&l, from->buffer);
    vn__arg_view(&l, from_view);
    vn__arg_buffer(&l, to->buffer);
    vn__arg_view(&l, to_view);
    return vn__launch(q, it, PAD, &l);
}

static vn_status pad_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to, size_t at)
{
    const struct gemm *g = problem;
    vn_tensor b = g->b;

    if (!g->to_pack && it->variant->run == vn__run_wgmma_repack)        /* its launch does it */
        return VN_OK;
    place(&b, along_b(g), (int64_t)(at / ELEMENT));
    b.buffer = to;
    return pad(q, it, &g->b, &b, along_b(g));
}

/* The product that is left, its operands where they are padded; bytes: of workspace, in all. */
static vn_status place_both(struct padded *p, size_t *bytes, vn_queue *q, const struct vn_choice *it,
                            const struct gemm *g)
{
    vn_buffer *room, *room_b;
    size_t at;
    vn_status s;

    pad_both(p, g);
    if ((s = vn__lay_out_b(&room_b, &at, &room, q, it, g, own_bytes(p))))
        return s;
    *bytes = q->workspace_used;
    if (p->b) {
        p->g.b.buffer = room_b;
        p->g.b.start = (int64_t)(at / ELEMENT);
    }
    if (p->a)
        p->g.a.buffer = room;
    return VN_OK;
}

vn_status vn__run_padded(vn_queue *q, const struct vn_choice *it, const void *problem,
                         const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    struct padded p;
    size_t bytes;
    vn_status s;

    if ((s = place_both(&p, &bytes, q, it, g)) ||
        (p.a && (s = pad(q, it, &g->a, &p.g.a, along_a(g)))))
        return s;
    s = vn__launch_wgmma(q, it, &p.g, plan, NULL);
    q->workspace_used = bytes;
    return s;
}

/* ---- by the launch that multiplies ---------------------------------------------------- */

const char *vn__fits_wgmma_repack(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    return g->batches > 1 ? "it repacks one matrix, not one of each batch"
         : g->a.stride[along_a(g)] != 1 || g->b.stride[along_b(g)] != 1
         ? "A and B must be contiguous along one of their dimensions" : vn__fits_padded(problem, f);
}

const char *vn__plan_wgmma_repack(struct vn_plan *out, const void *problem, const struct vn_row *row,
                                  const struct vn_site *site)
{
    const char *why = plan_padded(out, problem, row, site, 0);

    if (!why && out->v[TILES] < site->facts->units)
        why = "C has too few tiles to hide the repacking of A and B";
    return why;
}

vn_status vn__run_wgmma_repack(vn_queue *q, const struct vn_choice *it, const void *problem,
                               const struct vn_plan *plan)
{
    const struct gemm *g = problem;
    struct vn_repack repack = { .a = g->a, .b = g->b };
    struct padded p;
    size_t bytes;
    vn_status s;

    if ((s = place_both(&p, &bytes, q, it, g)))
        return s;
    if (p.a)
        repack.strips_a = VN_CEIL_DIV(g->m, STRIP);
    if (p.b && p.g.b.buffer == q->workspace)    /* else it was packed */
        repack.strips_b = VN_CEIL_DIV(g->n, STRIP);
    s = vn__launch_wgmma(q, it, &p.g, plan, &repack);
    q->workspace_used = bytes;
    return s;
}
