/* SPDX-License-Identifier: Apache-2.0
 *
 * padded.c - the variants gemm_padded and gemm_padding: gemm_wgmma where lines are not aligned.
 *
 * The copy engine takes lines that begin at multiples of 16 bytes.  An operand that has none is
 * copied to the queue's workspace, its lines apart: by a launch before, or in a large product by the
 * launch that multiplies, while its first tiles are at work (cl/gemm/pad.h).
 */
#include <limits.h>
#include <stdint.h>

#include "gemm.h"

enum { PAD = 1 };                               /* its kernel, after that of gemm_wgmma */
enum { NUMBER = 2, LINE = 8, PITCH = 64 };      /* bytes; numbers: 16 and 128 bytes */
enum { LEAST = 1536 * 1536 };                   /* numbers of C from which copies are hidden */
enum { STRIP = 512 };                           /* of M or N, as in pad.h */
enum { PAD_WIDTH = 128, PAD_LINES = 128, PAD_ITEMS = 1024 };    /* of a work-group, as in pad.cl */

/* The product that is left when operands are padded, and how many numbers each takes; 0: none. */
struct plan { struct gemm g; int64_t a, b; };

/* Gives the matrix, whose lines run along this dimension, room from `start` on if it needs some:
 * the numbers that takes, or -1 if they are too many.                                          */
static int64_t place(vn_tensor *t, int along, int64_t start)
{
    const int across = 2 * t->rank - 3 - along, copies = t->rank > 2 && t->stride[0] != 0;
    const int64_t pitch = VN_CEIL_DIV(t->extent[along], PITCH) * PITCH;
    int64_t step, room;

    if (t->stride[along] == 1 && t->stride[across] > 0 && t->stride[across] % LINE == 0 &&
        t->start % LINE == 0 && (!copies || t->stride[0] % LINE == 0))
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

/* Do lines run across K?  As if along it, where they run along nothing. */
static int across_k_a(const struct gemm *g) { return vn__col(&g->a) != 1 && vn__row(&g->a) == 1; }
static int across_k_b(const struct gemm *g) { return vn__row(&g->b) != 1 && vn__col(&g->b) == 1; }

static int along_a(const struct gemm *g) { return across_k_a(g) ? g->a.rank - 2 : g->a.rank - 1; }
static int along_b(const struct gemm *g) { return across_k_b(g) ? g->b.rank - 1 : g->b.rank - 2; }

/* `start`: how many numbers of workspace are left to gemm_wgmma, for its own. */
static int make_plan(struct plan *out, const struct gemm *g, int64_t start)
{
    out->g = *g;
    return (out->a = place(&out->g.a, along_a(g), start)) >= 0 &&
           (out->b = place(&out->g.b, along_b(g), start + out->a)) >= 0;
}

static int64_t start_of(const struct gemm *g, const int *params)
{
    return VN_CEIL_DIV((int64_t)vn__workspace_wgmma(g, params) / 2, PITCH) * PITCH;
}

typedef const char *test(const void *problem, const struct vn_facts *f);

/* Whether the product that is left passes the test of gemm_wgmma's variant for such lines. */
static const char *fits(const struct gemm *g, const struct vn_facts *f, int across_a, int across_b, test *left)
{
    struct plan p;

    if (g->head.type != VN_F16 && g->head.type != VN_BF16)
        return "it needs f16 or bf16";
    if (across_k_a(g) != across_a)
        return "A's lines need to lie the other way";
    if (across_k_b(g) != across_b)
        return "B's lines need to lie the other way";
    return make_plan(&p, g, 0) ? left(&p.g, f) : "a padded operand would have more than 2^30 numbers";
}

#define FITS(layout, across_a, across_b)                                                    \
    const char *vn__fits_padded_##layout(const void *problem, const struct vn_facts *f)     \
    {                                                                                       \
        return fits(problem, f, across_a, across_b, vn__fits_wgmma_##layout);               \
    }
FITS(nn, 0, 1)
FITS(nt, 0, 0)
FITS(tn, 1, 1)
FITS(tt, 1, 0)

/* Copying A is paid for by N columns that use it, and B by M rows. */
const char *vn__pays_padded(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;

    (void)f;
    return g->m < 128 || g->n < 128 || g->k < 64
         ? "M or N is below 128, or K below 64: padding costs more than it saves" : NULL;
}

/* from and to: one matrix, before and after. */
static vn_status pad(vn_queue *q, const struct vn_choice *it, const vn_tensor *from, const vn_tensor *to,
                     int along)
{
    const int across = 2 * from->rank - 3 - along, copies = to->rank > 2 && to->stride[0] != 0;
    const int64_t width = from->extent[along], lines = from->extent[across];
    const int64_t as_lines[8] = { [0] = from->start, [4] = copies ? from->stride[0] : 0,
                                  [5] = from->stride[across], [6] = from->stride[along] };
    const int64_t apart[8]    = { [0] = to->start, [4] = copies ? to->stride[0] : 0,
                                  [5] = to->stride[across], [6] = 1 };
    struct vn_launch l = { .groups = { VN_CEIL_DIV(width, PAD_WIDTH) * VN_CEIL_DIV(lines, PAD_LINES), 1, 1 },
                           .items = PAD_ITEMS };

    l.groups[0] *= copies ? from->extent[0] : 1;            /* no overflow: what is written has 2^30 numbers */
    vn__arg_int(&l, width);
    vn__arg_int(&l, lines);
    vn__arg_buffer(&l, from->buffer);
    vn__arg_view(&l, as_lines);
    vn__arg_buffer(&l, to->buffer);
    vn__arg_view(&l, apart);
    return vn__launch(q, it, PAD, &l);
}

static vn_status pad_b(vn_queue *q, const struct vn_choice *it, const void *problem, vn_buffer *to, size_t at)
{
    const struct gemm *g = problem;
    vn_tensor b = g->b;

    if (!g->to_pack && it->variant->run == vn__run_padding)     /* its launch does it */
        return VN_OK;
    place(&b, along_b(g), (int64_t)(at / NUMBER));
    b.buffer = to;
    return pad(q, it, &g->b, &b, along_b(g));
}

struct vn_layout vn__layout_padded(const void *problem, const int *unused)
{
    struct plan p;

    (void)unused;
    return (struct vn_layout){ pad_b, 0, make_plan(&p, problem, 0) ? NUMBER * (size_t)p.b : SIZE_MAX };
}

/* What is left to gemm_wgmma, and A. */
static size_t own_bytes(const struct plan *p, int64_t start)
{
    return NUMBER * (size_t)(start + p->a);
}

size_t vn__workspace_padded(const void *problem, const int *params)
{
    const struct vn_layout l = vn__layout_padded(problem, params);
    const int64_t start = start_of(problem, params);
    struct plan p;

    return make_plan(&p, problem, start) ? vn__workspace_and_b(problem, own_bytes(&p, start), &l) : SIZE_MAX;
}

/* The product that is left, its operands where they are laid apart; bytes: of workspace, in all. */
static vn_status place_both(struct plan *p, size_t *bytes, vn_queue *q, const struct vn_choice *it, const struct gemm *g)
{
    const int64_t start = start_of(g, it->p);
    vn_buffer *room, *room_b;
    size_t at;
    vn_status s;

    make_plan(p, g, start);
    if ((s = vn__lay_out_b(&room_b, &at, &room, q, it, g, own_bytes(p, start))))
        return s;
    *bytes = q->workspace_used;
    if (p->b) {
        p->g.b.buffer = room_b;
        p->g.b.start = (int64_t)(at / NUMBER);
    }
    if (p->a)
        p->g.a.buffer = room;
    return VN_OK;
}

vn_status vn__run_padded(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    size_t bytes;
    struct plan p;
    vn_status s;

    if ((s = place_both(&p, &bytes, q, it, g)) || (p.a && (s = pad(q, it, &g->a, &p.g.a, along_a(g)))))
        return s;
    s = vn__run_wgmma(q, it, &p.g);
    q->workspace_used = bytes;
    return s;
}

/* ---- by the launch that multiplies ---------------------------------------------------- */

static const char *fits_padding(const struct gemm *g, const struct vn_facts *f, test *padded)
{
    return g->batches > 1 ? "it lays one matrix apart, not one of each batch" : padded(g, f);
}

#define FITS_PADDING(layout)                                                                \
    const char *vn__fits_padding_##layout(const void *problem, const struct vn_facts *f)    \
    {                                                                                       \
        return fits_padding(problem, f, vn__fits_padded_##layout);                          \
    }
FITS_PADDING(nn)
FITS_PADDING(nt)
FITS_PADDING(tn)
FITS_PADDING(tt)

/* The first tiles take as long as laying apart what they need. */
const char *vn__pays_padding(const void *problem, const struct vn_facts *f)
{
    const struct gemm *g = problem;
    const char *why = vn__pays_padded(problem, f);

    if (!why && (double)g->m * (double)g->n < LEAST)
        why = "C has too few tiles to hide the copies of A and B";
    return why;
}

vn_status vn__run_padding(vn_queue *q, const struct vn_choice *it, const void *problem)
{
    const struct gemm *g = problem;
    struct padding pads = { .a = g->a, .b = g->b };
    size_t bytes;
    struct plan p;
    vn_status s;

    if ((s = place_both(&p, &bytes, q, it, g)))
        return s;
    if (p.a)
        pads.strips_a = VN_CEIL_DIV(g->m, STRIP);
    if (p.b && p.g.b.buffer == q->workspace)    /* else it was packed */
        pads.strips_b = VN_CEIL_DIV(g->n, STRIP);
    s = vn__run_wgmma_padding(q, it, &p.g, &pads);
    q->workspace_used = bytes;
    return s;
}
