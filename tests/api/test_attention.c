/* SPDX-License-Identifier: Apache-2.0
 *
 * test_attention.c - what must hold between calls of attention, whatever the oracle says.
 *
 *   keys in pages, in any order, are as keys in a row      a number that is no page's is the nearest one
 *   a batch of a length is as fewer keys, NaN behind it    a head of keys for four is as that four times
 *   stretches of keys, merged by their log-sum-exp, are the whole
 *   a sink of -infinity is none; another divides by 1 + exp(sink - log-sum-exp)
 */
#include <math.h>
#include <string.h>

#include "../start.h"
#include "check/suite.h"

enum { BATCHES = 2, HEADS = 4, SHARED = 2, QUERIES = 2, KEYS = 48, SIZE = 16, PAGE = 8, PAGES = KEYS / PAGE };
enum { ALL_PAGES = BATCHES * PAGES, STORED = BATCHES * SHARED * KEYS * SIZE };
enum { RESULT = BATCHES * HEADS * QUERIES, OUTPUT = RESULT * SIZE };

static vn_device *device;
static vn_queue  *queue;
static vn_buffer *queries, *keys, *values, *out, *lse, *integers, *sinks;
static vn_tensor  q, k, v, o, l;                /* views of all of them */
static float      key_data[STORED], value_data[STORED];
static long       cases, failures;

struct result { float out[OUTPUT], lse[RESULT]; };

static void check(int right, const char *relation)
{
    cases++;
    if (right)
        return;
    failures++;
    printf("not ok: %s; %s\n", relation, vn_last_error());
}

static vn_buffer *filled(const void *data, size_t bytes)
{
    vn_buffer *b;

    return vn_buffer_open(&b, device, bytes) || (data && vn_write(queue, b, 0, data, bytes)) ? NULL : b;
}

static vn_tensor view(vn_buffer *b, int64_t heads, int64_t rows)
{
    const int64_t extent[4] = { BATCHES, heads, rows, SIZE };

    return vn_packed(b, VN_F32, 4, extent);
}

static int open_all(void)
{
    static const int64_t rows[3] = { BATCHES, HEADS, QUERIES };
    struct random r = { 5 };
    float query_data[OUTPUT];

    for (int i = 0; i < OUTPUT; i++)
        query_data[i] = (float)random_real(&r, -1, 1);
    for (int i = 0; i < STORED; i++) {
        key_data[i] = (float)random_real(&r, -1, 1);
        value_data[i] = (float)random_real(&r, -1, 1);
    }
    queries = filled(query_data, sizeof query_data);
    keys = filled(key_data, sizeof key_data);
    values = filled(value_data, sizeof value_data);
    out = filled(NULL, OUTPUT * sizeof(float));
    lse = filled(NULL, RESULT * sizeof(float));
    integers = filled(NULL, ALL_PAGES * sizeof(int32_t));
    sinks = filled(NULL, HEADS * sizeof(float));
    q = view(queries, HEADS, QUERIES);
    k = view(keys, SHARED, KEYS);
    v = view(values, SHARED, KEYS);
    o = view(out, HEADS, QUERIES);
    l = vn_packed(lse, VN_F32, 3, rows);
    return queries && keys && values && out && lse && integers && sinks ? 0 : -1;
}

static void close_all(void)
{
    vn_buffer *const all[] = { queries, keys, values, out, lse, integers, sinks };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        vn_buffer_close(all[i]);
}

/* Causal, so that batches of fewer keys see other stretches of them. */
static int compute(struct result *to, vn_tensor in, vn_tensor of, vn_attention_options options)
{
    options.causal = options.causal ? options.causal : VN_CAUSAL_LAST;
    options.lse = l;
    memset(to, 0, sizeof *to);
    return vn_attention(queue, q, in, of, o, &options) || vn_read(queue, to->out, out, 0, sizeof to->out)
           || vn_read(queue, to->lse, lse, 0, sizeof to->lse) ? -1 : 0;
}

static int same(const struct result *a, const struct result *b)
{
    return !memcmp(a, b, sizeof *a);
}

static vn_ints ints(const int32_t *data, int64_t count)
{
    return (vn_ints){ vn_write(queue, integers, 0, data, (size_t)count * sizeof *data) ? NULL : integers, 0,
                      count, 1, 4, 0 };
}

/* ---- pages ------------------------------------------------------------------------------ */

/* The keys (or values) of all batches, page n of batch b at place `table`[b PAGES + n]. */
static vn_buffer *paged(const float *data, const int32_t *table)
{
    static float room[STORED];

    for (int i = 0; i < STORED; i++) {
        const int j = i / SIZE % KEYS, h = i / SIZE / KEYS % SHARED, b = i / SIZE / KEYS / SHARED;
        const int page = table[b * PAGES + j / PAGE];

        room[((page * SHARED + h) * PAGE + j % PAGE) * SIZE + i % SIZE] = data[i];
    }
    return filled(room, sizeof room);
}

static void pages(const char *variant)
{
    static const int64_t extent[4] = { ALL_PAGES, SHARED, PAGE, SIZE };
    int32_t table[ALL_PAGES];
    struct result row, apart;

    for (int i = 0; i < ALL_PAGES; i++)
        table[i] = (i * 5 + 3) % ALL_PAGES;

    vn_buffer *const key_pages = paged(key_data, table), *const value_pages = paged(value_data, table);
    const vn_tensor in = vn_packed(key_pages, VN_F32, 4, extent);
    const vn_tensor of = vn_packed(value_pages, VN_F32, 4, extent);
    vn_attention_options options = { .variant = variant };
    int right = !compute(&row, k, v, options);

    options.pages = ints(table, ALL_PAGES);
    check(right && !compute(&apart, in, of, options) && same(&row, &apart), "pages are as keys in a row");
    for (int i = 0; i < ALL_PAGES; i++)         /* the first page, and the last, have other numbers, too */
        table[i] = table[i] == 0 ? -7 : table[i] == ALL_PAGES - 1 ? INT32_MAX : table[i];
    options.pages = ints(table, ALL_PAGES);
    check(!compute(&apart, in, of, options) && same(&row, &apart),
          "a number that is no page's is the nearest one");
    vn_buffer_close(key_pages);
    vn_buffer_close(value_pages);
}

/* ---- lengths, heads ------------------------------------------------------------------------ */

enum { LENGTH = 29 };

static void lengths(void)
{
    static const int32_t some[BATCHES] = { LENGTH, LENGTH };
    static float key_room[STORED], value_room[STORED];
    vn_tensor fewer[2] = { k, v };
    struct result whole, part;

    for (int i = 0; i < STORED; i++) {
        key_room[i] = i / SIZE % KEYS < LENGTH ? key_data[i] : NAN;
        value_room[i] = i / SIZE % KEYS < LENGTH ? value_data[i] : NAN;
    }
    fewer[0].extent[2] = fewer[1].extent[2] = LENGTH;
    check(!compute(&part, fewer[0], fewer[1], (vn_attention_options){ 0 }) &&
          !vn_write(queue, keys, 0, key_room, sizeof key_room) &&
          !vn_write(queue, values, 0, value_room, sizeof value_room) &&
          !compute(&whole, k, v, (vn_attention_options){ .key_lengths = ints(some, BATCHES) }) &&
          same(&whole, &part), "a batch of a length is as fewer keys");
    check(!vn_write(queue, keys, 0, key_data, sizeof key_data) &&
          !vn_write(queue, values, 0, value_data, sizeof value_data), "keys and values are written");
}

/* A head of keys that is read again for each of the heads that share it. */
static void heads(void)
{
    vn_tensor again[2] = { k, v }, one[2] = { k, v };
    struct result shared, repeated;

    for (int i = 0; i < 2; i++) {
        one[i].extent[1] = 1;
        again[i].extent[1] = HEADS;
        again[i].stride[1] = 0;
    }
    check(!compute(&shared, one[0], one[1], (vn_attention_options){ 0 }) &&
          !compute(&repeated, again[0], again[1], (vn_attention_options){ 0 }) && same(&shared, &repeated),
          "a head of keys for four is as that head four times");
}

/* ---- log-sum-exp ---------------------------------------------------------------------------- */

/* Two weighted means of values below 1 by weights that are off by a few units of rounding each. */
static int is_near(double a, double b) { return fabs(a - b) <= 64 * 0x1p-24; }

/* The last query alone, which sees all keys. */
static void stretches(const char *variant)
{
    enum { FIRST = 17 };
    const vn_attention_options options = { .variant = variant };
    const vn_tensor all = q;
    vn_tensor in[2] = { k, k }, of[2] = { v, v };
    struct result whole, part[2];
    int right;

    for (int i = 0; i < 2; i++) {
        in[i].extent[2] = of[i].extent[2] = i ? KEYS - FIRST : FIRST;
        in[i].start = of[i].start = i ? FIRST * SIZE : 0;
    }
    q.extent[2] = o.extent[2] = l.extent[2] = 1;
    right = !compute(&whole, k, v, options) && !compute(&part[0], in[0], of[0], options) &&
            !compute(&part[1], in[1], of[1], options);
    for (int r = 0; r < RESULT && right; r += QUERIES) {
        const double a = part[0].lse[r], b = part[1].lse[r], top = fmax(a, b);
        const double sum = exp(a - top) + exp(b - top), share = exp(a - top) / sum;

        right = is_near(whole.lse[r], top + log(sum));
        for (int d = r * SIZE; d < (r + 1) * SIZE && right; d++)
            right = is_near(whole.out[d], share * part[0].out[d] + (1 - share) * part[1].out[d]);
    }
    q = all;
    o.extent[2] = l.extent[2] = QUERIES;
    check(right, "stretches of keys, merged by their log-sum-exp, are the whole");
}

static void sink(const char *variant)
{
    static const float none[HEADS] = { -INFINITY, -INFINITY, -INFINITY, -INFINITY };
    static const float some[HEADS] = { -1, 0, 2, 40 };
    static const int64_t extent = HEADS;
    const vn_attention_options with = { .variant = variant, .sinks = vn_packed(sinks, VN_F32, 1, &extent) };
    struct result bare, low, joined;
    int right;

    check(!compute(&bare, k, v, (vn_attention_options){ .variant = variant }) &&
          !vn_write(queue, sinks, 0, none, sizeof none) && !compute(&low, k, v, with) && same(&bare, &low),
          "a sink of -infinity is none");
    right = !vn_write(queue, sinks, 0, some, sizeof some) && !compute(&joined, k, v, with);
    for (int r = 0; r < RESULT && right; r++) {
        const double share = 1 / (1 + exp((double)some[r / QUERIES % HEADS] - bare.lse[r]));

        right = fabs(joined.lse[r] - (bare.lse[r] - log(share))) <= 64 * 0x1p-24 * (1 + fabs(joined.lse[r]));
        for (int d = r * SIZE; d < (r + 1) * SIZE && right; d++)
            right = is_near(joined.out[d], bare.out[d] * share);
    }
    check(right, "a sink divides by 1 + exp(sink - log-sum-exp)");
}

int main(void)
{
    const int status = start(&device, &queue);

    if (status)
        return status;
    if (open_all()) {
        printf("cannot start: %s\n", vn_last_error());
        return 1;
    }
    pages("attention_decode");
    lengths();
    heads();
    stretches(NULL);
    stretches("attention_decode");
    sink(NULL);
    sink("attention_decode");
    close_all();
    vn_queue_close(queue);
    vn_device_close(device);
    printf("%ld cases, %ld failed\nCOUNT relations %ld\n", cases, failures, cases);
    return failures != 0;
}
