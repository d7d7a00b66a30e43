/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sizes.c - sizes that overflow: what the library's checks say of views and problems
 * at the edges of 31, 32, 53, 62 and 63 bits, beside the same arithmetic in 128 bits.
 * Needs no device: the buffers only claim to be large.
 */
#include <string.h>

#include "core.h"
#include "problem/gemm.h"
#include "check/suite.h"

typedef __int128 wide;

static const int64_t edges[] = {
    0, 1, 2, 3, 7, INT32_MAX - 1, INT32_MAX, (int64_t)INT32_MAX + 1, UINT32_MAX, (int64_t)UINT32_MAX + 1,
    (int64_t)1 << 53, (int64_t)1 << 61, (int64_t)1 << 62, INT64_MAX / 8, INT64_MAX / 4, INT64_MAX / 2,
    INT64_MAX - 1, INT64_MAX, -1, INT64_MIN,
};

static long cases, failures;

static void check(int right, const char *what, const vn_tensor *t)
{
    cases++;
    if (right || failures++ > 20)
        return;
    printf("not ok: %s: %s, start %lld", what, vn_type_name(t->type), (long long)t->start);
    for (int i = 0; i < t->rank && i < VN_RANK; i++)
        printf(", %lld by %lld", (long long)t->extent[i], (long long)t->stride[i]);
    printf("; \"%s\"\n", vn_last_error());
}

/* ---- multiplying and adding ------------------------------------------------- */

static int fits(wide v)
{
    return v >= INT64_MIN && v <= INT64_MAX;
}

static void test_arithmetic(void)
{
    const size_t n = sizeof edges / sizeof edges[0];
    const vn_tensor none = { .rank = 0 };

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const wide product = (wide)edges[i] * edges[j], sum = (wide)edges[i] + edges[j];
            int64_t out = 0;

            check(vn__mul(&out, edges[i], edges[j]) == fits(product) && (!fits(product) || out == product),
                  "mul", &none);
            check(vn__add(&out, edges[i], edges[j]) == fits(sum) && (!fits(sum) || out == sum), "add", &none);
        }
}

/* ---- dividing ------------------------------------------------------------------ */

/* As divided() of cl/types.h. */
static int64_t divided(int64_t a, int64_t by)
{
    return (int64_t)((uint64_t)a * (uint32_t)by >> (by >> 32));
}

static void test_divisors(struct random *r)
{
    const vn_tensor none = { .rank = 0 };

    for (int i = 0; i < 200000; i++) {
        const int64_t d = 1 + (i < 2000 ? i : random_below(r, INT32_MAX) >> random_below(r, 31));
        const int64_t by = vn__divisor(d), a = random_below(r, (int64_t)INT32_MAX + 1);
        const int64_t tried[] = { 0, d - 1, d, a, a / d * d, a / d * d + d - 1, INT32_MAX - 1, INT32_MAX };

        for (size_t j = 0; j < sizeof tried / sizeof tried[0]; j++)
            if (tried[j] <= INT32_MAX)
                check(divided(tried[j], by) == tried[j] / d, "divided", &none);
    }
    check(vn__divisor(0) == vn__divisor(1), "divisor of 0", &none);
}

/* ---- views ---------------------------------------------------------------------- */

/* What a view is, in arithmetic that cannot overflow here: products of several could, so
 * they stop growing at 2^63, once they are past all bounds.                             */
struct truth { int negative, empty; wide elements, last; };

static struct truth truth_of(const vn_tensor *t)
{
    const wide far = (wide)1 << 63;
    struct truth w = { t->start < 0, 0, 1, t->start };

    for (int i = 0; i < t->rank; i++) {
        w.negative |= t->extent[i] < 0 || t->stride[i] < 0;
        w.empty    |= t->extent[i] == 0;
    }
    for (int i = 0; i < t->rank && !w.negative && !w.empty; i++) {
        w.last     += (wide)(t->extent[i] - 1) * t->stride[i];
        w.last      = w.last > far ? far : w.last;
        w.elements *= t->extent[i];
        w.elements  = w.elements > far ? far : w.elements;
    }
    return w;
}

static void test_view(const vn_tensor *t, const vn_queue *q)
{
    const struct truth w = truth_of(t);
    const wide bytes = (w.last + 1) * (wide)vn_type_bytes(t->type);
    const int  good = !w.negative && (w.empty || (w.elements < INT64_MAX && fits(bytes)
                                                 && bytes <= (wide)t->buffer->bytes));

    check((vn__check_tensor(t, "t", q, 0, VN_RANK, 0) == VN_OK) == good, "inside its buffer", t);
    if (w.negative)
        return;
    check(w.empty ? vn__elements(t) == 0
                  : vn__elements(t) == (w.elements > INT64_MAX ? INT64_MAX : (int64_t)w.elements),
          "elements", t);
    check(!!vn__is_wide(t) == (!w.empty && (w.elements > INT32_MAX || w.last > INT32_MAX)), "wide", t);
}

static int64_t draw_edge(struct random *r)
{
    const int64_t v = RANDOM_OF(r, edges);
    int64_t moved;

    return random_chance(r, 0.3) && vn__add(&moved, v, random_below(r, 5) - 2) ? moved : v;
}

static int64_t draw(struct random *r)
{
    return random_chance(r, 0.6) ? random_below(r, 100) : draw_edge(r);
}

static void test_views(int times)
{
    static const size_t sizes[] = { 0, 1, 4096, (size_t)INT32_MAX + 1, (size_t)1 << 40, (size_t)1 << 62,
                                    SIZE_MAX };
    struct random r = { 1 };
    vn_device device = { .head = { .magic = 0 } };
    vn_queue  queue = { .device = &device };
    vn_buffer *buffer = vn__handle_open(VN_BUFFER, sizeof *buffer);

    device.facts.types = ~0u;
    if (!buffer) {
        failures++;
        return;
    }
    buffer->device = &device;
    for (int i = 0; i < times; i++) {
        vn_tensor t = { .buffer = buffer, .type = (vn_type)random_below(&r, VN_TYPE_COUNT),
                        .rank = (int)random_below(&r, VN_RANK + 1), .start = draw(&r) };

        for (int d = 0; d < t.rank; d++) {
            t.extent[d] = draw(&r);
            t.stride[d] = draw(&r);
        }
        buffer->bytes = RANDOM_OF(&r, sizes);
        test_view(&t, &queue);
    }
    vn__handle_close(buffer);
}

/* ---- problems --------------------------------------------------------------------- */

/* Of a matrix: the least that its buffer holds, and the most that laying it out computes. */
static wide least(int64_t rows, int64_t cols, int64_t gap, int64_t start)
{
    return rows && cols ? ((wide)rows - 1) * ((wide)cols + gap) + cols + start : start;
}

static wide most(int64_t rows, int64_t cols, int64_t gap, int64_t start)
{
    return ((wide)rows + 1) * ((wide)cols + 1 + gap) + start;
}

/* problem_operands() refuses what overflows, and nothing else. */
static void test_gemm(struct random *r)
{
    struct problem p;
    struct gemm_problem *const g = gemm_of(&p);
    struct operands o;

    problem_usual(&p, &op_gemm);
    g->m = draw(r), g->n = draw(r), g->k = draw(r), p.gap = draw(r), p.start = draw(r);
    if (g->m < 0 || g->n < 0 || g->k < 0 || p.gap < 0 || p.start < 0)
        return;

    const int64_t rows[] = { g->m, g->k, g->m }, cols[] = { g->k, g->n, g->n };
    const int     refused = problem_operands(&o, &p) != 0;
    int           may = 0;

    for (int i = 0; i < 3; i++) {
        may |= !fits(most(rows[i], cols[i], p.gap, p.start));
        if (!refused)
            check(o.elements[i] == least(rows[i], cols[i], p.gap, p.start), "operands", &o.t[i]);
    }
    check(!refused || may, "operands refused", &o.t[0]);
}

int main(void)
{
    struct random r = { 2 };

    test_arithmetic();
    test_divisors(&r);
    test_views(200000);
    for (int i = 0; i < 50000; i++)
        test_gemm(&r);
    printf("%ld cases, %ld failed\nCOUNT sizes %ld\n", cases, failures, cases);
    return failures != 0;
}
