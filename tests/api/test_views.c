/* SPDX-License-Identifier: Apache-2.0
 *
 * test_views.c - which views overlap: what the library's checks say of random small views, beside the places
 * of all their elements; and of some that are too large to be counted.
 * Needs no device: the buffers only claim to lie in memory.
 */
#include <stdio.h>
#include <string.h>

#include "core.h"
#include "check/suite.h"

enum { PAIRS = 40000, PLACES = 8192 };

static long cases, failures, shared, repeating;
static struct random r = { 11 };

static void show(const vn_tensor *t)
{
    printf("  %s at byte %lld, start %lld:", vn_type_name(t->type), t->buffer ? (long long)t->buffer->at : 0,
           (long long)t->start);
    for (int d = 0; d < t->rank; d++)
        printf(" %lld by %lld", (long long)t->extent[d], (long long)t->stride[d]);
    printf("\n");
}

static void check(int right, const char *what, const vn_tensor *a, const vn_tensor *b)
{
    cases++;
    if (right || failures++ > 20)
        return;
    printf("not ok: %s; \"%s\"\n", what, vn_last_error());
    show(a);
    if (b)
        show(b);
}

/* ---- by counting ------------------------------------------------------------------ */

/* Marks the bytes of each element; returns how many elements met marked ones. */
static int mark(unsigned char *marks, const vn_tensor *t)
{
    const int64_t size = (int64_t)vn_type_bytes(t->type);
    int64_t place[VN_RANK] = { 0 };
    int met = 0;

    for (int d = 0; d < t->rank; d++)
        if (t->extent[d] == 0)
            return 0;
    for (;;) {
        int64_t at = t->start;
        int twice = 0, d = t->rank - 1;

        for (int i = 0; i < t->rank; i++)
            at += place[i] * t->stride[i];
        for (int64_t byte = 0; byte < size; byte++)
            twice |= marks[t->buffer->at + at * size + byte]++;
        met += twice != 0;
        while (d >= 0 && ++place[d] == t->extent[d])
            place[d--] = 0;
        if (d < 0)
            return met;
    }
}

static int really_overlap(const vn_tensor *a, const vn_tensor *b)
{
    unsigned char of_a[PLACES] = { 0 }, of_b[PLACES] = { 0 };
    int both = 0;

    mark(of_a, a);
    mark(of_b, b);
    for (int i = 0; i < PLACES; i++)
        both |= of_a[i] && of_b[i];
    return both;
}

static int really_repeats(const vn_tensor *t)
{
    unsigned char marks[PLACES] = { 0 };

    return mark(marks, t) > 0;
}

/* ---- random views -------------------------------------------------------------------- */

/* Strides that nest with gaps, as those of tensors do, or any. */
static vn_tensor random_view(vn_buffer *b, vn_type type)
{
    vn_tensor t = { .buffer = b, .type = type, .rank = 1 + (int)random_below(&r, 4),
                    .start = random_below(&r, 24) };
    const int nests = random_chance(&r, 0.7);
    int64_t step = 1;

    for (int i = 0, d = (int)random_below(&r, t.rank); i < t.rank; i++, d = (d + 1) % t.rank) {
        t.extent[d] = random_chance(&r, 0.02) ? 0 : 1 + random_below(&r, 4);
        t.stride[d] = nests ? step : random_below(&r, 20);
        step *= (t.extent[d] ? t.extent[d] : 1) + (random_chance(&r, 0.5) ? random_below(&r, 3) : 0);
    }
    return t;
}

static void test_random(void)
{
    static const int64_t apart[] = { 0, 0, 0, 8, 16, 2, 3 };
    static const vn_type types[] = { VN_F32, VN_F16, VN_F64 };
    vn_buffer whole = { .memory = &whole, .bytes = PLACES }, part = { .memory = &whole, .bytes = PLACES };
    vn_buffer elsewhere = { .memory = &elsewhere, .bytes = PLACES };

    for (int i = 0; i < PAIRS; i++) {
        const vn_type type = RANDOM_OF(&r, types), other = RANDOM_OF(&r, types);
        const vn_tensor a = random_view(&whole, type);
        vn_tensor b = random_view(&part, i % 3 ? type : other);
        int overlap;

        part.at = RANDOM_OF(&r, apart);
        overlap = really_overlap(&a, &b);
        shared += overlap;
        check(vn__check_overlap(&a, "A", &b, "B") == (overlap ? VN_INVALID : VN_OK),
              overlap ? "two views share an element" : "two views share none", &a, &b);
        check(vn__check_overlap(&b, "B", &a, "A") == (overlap ? VN_INVALID : VN_OK), "the other way round",
              &b, &a);
        b.buffer = &elsewhere;
        check(vn__check_overlap(&a, "A", &b, "B") == VN_OK, "two views of different memory", &a, &b);
        if (vn__elements(&a)) {
            const int repeats = really_repeats(&a);

            repeating += repeats;
            check(vn__check_distinct(&a, "A") == (repeats ? VN_INVALID : VN_OK),
                  repeats ? "two elements of a view share memory" : "all elements are distinct", &a, NULL);
        }
    }
}

/* ---- views as they are met ---------------------------------------------------------------- */

static const struct pair {
    const char *what;
    vn_status   wanted;
    vn_tensor   a, b;             /* the last pair is one that is given up */
} pairs[] = {
    { "interleaved halves of a batch of matrices", VN_OK,
      { .rank = 3, .extent = { 8, 64, 64 }, .stride = { 8192, 64, 1 } },
      { .rank = 3, .start = 4096, .extent = { 8, 64, 64 }, .stride = { 8192, 64, 1 } } },
    { "halves that meet in one row", VN_INVALID,
      { .rank = 3, .extent = { 8, 65, 64 }, .stride = { 8192, 64, 1 } },
      { .rank = 3, .start = 4096, .extent = { 8, 64, 64 }, .stride = { 8192, 64, 1 } } },
    { "channel slices of one NHWC tensor", VN_OK,
      { .rank = 4, .extent = { 2, 16, 14, 14 }, .stride = { 9408, 1, 672, 48 } },
      { .rank = 4, .start = 16, .extent = { 2, 32, 14, 14 }, .stride = { 9408, 1, 672, 48 } } },
    { "channel slices with one in common", VN_INVALID,
      { .rank = 4, .extent = { 2, 17, 14, 14 }, .stride = { 9408, 1, 672, 48 } },
      { .rank = 4, .start = 16, .extent = { 2, 32, 14, 14 }, .stride = { 9408, 1, 672, 48 } } },
    { "O over Q's place in packed rows of Q, K and V, with batches and heads", VN_OK,
      { .rank = 4, .extent = { 4, 12, 128, 64 }, .stride = { 294912, 64, 2304, 1 } },
      { .rank = 4, .start = 1536, .extent = { 4, 12, 128, 64 }, .stride = { 294912, 64, 2304, 1 } } },
    { "V transposed, beside O", VN_OK,
      { .rank = 4, .extent = { 4, 12, 128, 64 }, .stride = { 294912, 64, 2304, 1 } },
      { .rank = 4, .start = 1536, .extent = { 4, 12, 64, 128 }, .stride = { 294912, 64, 1, 2304 } } },
    { "even and odd columns", VN_OK,
      { .rank = 2, .extent = { 1 << 20, 1 << 10 }, .stride = { 1 << 11, 2 } },
      { .rank = 2, .start = 1, .extent = { 1 << 20, 1 << 10 }, .stride = { 1 << 11, 2 } } },
    { "rows in the gaps of others, every second of which is left out", VN_OK,
      { .rank = 2, .extent = { 200000, 10 }, .stride = { 4000, 1 } },
      { .rank = 2, .start = 10, .extent = { 100000, 3990 }, .stride = { 8000, 1 } } },
    { "an element that a large view repeats", VN_INVALID,
      { .rank = 3, .extent = { 1 << 20, 1 << 20, 3 }, .stride = { 1 << 21, 1, 0 } },
      { .rank = 1, .start = (1LL << 40) + 77, .extent = { 1 }, .stride = { 1 } } },
    { "strides that do not nest, which no short search decides", VN_INVALID,
      { .rank = 6, .extent = { 40, 40, 40, 40, 40, 40 },
        .stride = { 1000003, 1000033, 1000037, 1000039, 1000081, 1000099 } },
      { .rank = 1, .start = 100499999, .extent = { 1 } } },
};

static void test_pairs(void)
{
    vn_buffer whole = { .bytes = (size_t)1 << 60 };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        vn_tensor a = pairs[i].a, b = pairs[i].b;

        a.buffer = b.buffer = &whole;
        check(vn__check_overlap(&a, "A", &b, "B") == pairs[i].wanted, pairs[i].what, &a, &b);
        check(vn__check_overlap(&b, "B", &a, "A") == pairs[i].wanted, pairs[i].what, &b, &a);
    }
    check(strstr(vn_last_error(), "B may overlap A") != NULL, "a search that is given up", &pairs[0].a, NULL);
}

int main(void)
{
    test_random();
    test_pairs();
    if (shared < PAIRS / 10 || shared > 9 * PAIRS / 10 || repeating < PAIRS / 20)
        check(0, "the random views are too much alike", &pairs[0].a, NULL);
    printf("%ld cases, %ld failed; %ld of %d pairs overlap, %ld views repeat\n", cases, failures, shared,
           PAIRS, repeating);
    return failures != 0;
}
