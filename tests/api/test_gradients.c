/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gradients.c - what must hold between vn_attention() and its gradients, whatever the oracle says.
 *
 *   the same call gives the same bits, and so does one that asks for a single gradient
 *   keys in another order give their gradients in that order
 *   with one key, P is 1 and dS is 0: d_values is the sum of d_out, the other gradients are 0
 *   queries that see nothing have the gradient 0
 *   what is wrong is said, and no gradient is touched
 */
#include <string.h>

#include "../start.h"
#include "check/suite.h"

enum { HEADS = 4, SHARED = 2, QUERIES = 40, KEYS = 33, D = 20, MOST = HEADS * QUERIES * D };
enum { Q, K, V, OUT, LSE, D_OUT, D_Q, D_K, D_V, TENSORS };

static vn_device *device;
static vn_queue  *queue;
static vn_buffer *buffers[TENSORS];
static long       cases, failures;
static struct random source = { 11 };
static float      read_back[TENSORS][MOST], before[TENSORS][MOST];

static void check(int right, const char *what)
{
    cases++;
    failures += !right;
    if (!right)
        printf("not ok: %s (%s)\n", what, vn_last_error());
}

static int     is_of_keys(int i)            { return i == K || i == V || i == D_K || i == D_V; }
static int64_t rows_of(int i, int64_t keys) { return is_of_keys(i) ? keys : QUERIES; }
static int64_t heads_of(int i)              { return is_of_keys(i) ? SHARED : HEADS; }

static vn_tensor tensor(int i, int64_t keys)
{
    const int64_t rows = rows_of(i, keys);
    const vn_tensor all = { buffers[i], VN_F32, 4, 0, { 1, heads_of(i), rows, D },
                            { heads_of(i) * rows * D, rows * D, D, 1 } };
    const vn_tensor lse = { buffers[i], VN_F32, 3, 0, { 1, HEADS, QUERIES },
                            { HEADS * QUERIES, QUERIES, 1 } };

    return i == LSE ? lse : all;
}

/* Small integers. */
static void fill(int i)
{
    float room[MOST];

    for (int at = 0; at < MOST; at++)
        room[at] = (float)random_below(&source, 5) - 2;
    check(!vn_write(queue, buffers[i], 0, room, sizeof room), "writing");
}

static void read_all(float to[TENSORS][MOST])
{
    for (int i = 0; i < TENSORS; i++)
        check(!vn_read(queue, to[i], buffers[i], 0, sizeof to[i]), "reading");
}

static vn_status forward(int64_t keys, vn_causal causal)
{
    const vn_attention_options o = { .causal = causal, .lse = tensor(LSE, keys) };

    return vn_attention(queue, tensor(Q, keys), tensor(K, keys), tensor(V, keys), tensor(OUT, keys), &o);
}

/* wanted: bits, 1 << D_Q ... */
static vn_status backward(int64_t keys, vn_causal causal, int wanted)
{
    const vn_attention_options o = { .causal = causal, .lse = tensor(LSE, keys) };
    vn_tensor d[TENSORS] = { { .rank = 0 } };

    for (int i = D_Q; i <= D_V; i++)
        if (wanted >> i & 1)
            d[i] = tensor(i, keys);
    return vn_attention_backward(queue, tensor(Q, keys), tensor(K, keys), tensor(V, keys), tensor(OUT, keys),
                                 tensor(D_OUT, keys), d[D_Q], d[D_K], d[D_V], &o);
}

enum { ALL = 1 << D_Q | 1 << D_K | 1 << D_V };

static size_t bytes_of(int i, int64_t keys)
{
    return (size_t)(heads_of(i) * rows_of(i, keys) * D) * sizeof(float);
}

/* ---- the same bits ------------------------------------------------------------------ */

static void test_bits(vn_causal causal)
{
    check(!forward(KEYS, causal) && !backward(KEYS, causal, ALL), "gradients");
    read_all(before);
    for (int i = D_Q; i <= D_V; i++) {
        check(!backward(KEYS, causal, ALL), "gradients again");
        fill(i);
        check(!backward(KEYS, causal, 1 << i), "one gradient");
    }
    read_all(read_back);
    for (int i = D_Q; i <= D_V; i++)
        check(!memcmp(before[i], read_back[i], bytes_of(i, KEYS)), "the same bits");
}

/* ---- keys in another order ------------------------------------------------------------ */

static int other(int j) { return (j * 14 + 5) % KEYS; }

static void permute(int i)
{
    static float to[MOST];

    for (int h = 0; h < SHARED; h++)
        for (int j = 0; j < KEYS; j++)
            memcpy(&to[(h * KEYS + other(j)) * D], &before[i][(h * KEYS + j) * D], D * sizeof(float));
    check(!vn_write(queue, buffers[i], 0, to, bytes_of(i, KEYS)), "writing");
}

static void test_order(void)
{
    int same = 1;

    check(!forward(KEYS, VN_CAUSAL_NONE) && !backward(KEYS, VN_CAUSAL_NONE, ALL), "gradients");
    read_all(before);
    permute(K);
    permute(V);
    check(!backward(KEYS, VN_CAUSAL_NONE, ALL), "gradients of other keys");
    read_all(read_back);
    for (int i = D_K; i <= D_V; i++)
        for (int h = 0; h < SHARED; h++)
            for (int j = 0; j < KEYS; j++)
                same &= !memcmp(&before[i][(h * KEYS + j) * D], &read_back[i][(h * KEYS + other(j)) * D],
                                D * sizeof(float));
    check(same, "keys in another order");
}

/* ---- one key; nothing seen -------------------------------------------------------------- */

static int is_zero(const float *v, int64_t n)
{
    int zero = 1;

    for (int64_t i = 0; i < n; i++)
        zero &= v[i] == 0;
    return zero;
}

static void test_one_key(void)
{
    int right = 1;

    check(!forward(1, VN_CAUSAL_NONE) && !backward(1, VN_CAUSAL_NONE, ALL), "gradients of one key");
    read_all(read_back);
    for (int at = 0; at < SHARED * D; at++) {
        const int h = at / D * (HEADS / SHARED);
        float sum = 0;

        for (int i = 0; i < HEADS / SHARED * QUERIES; i++)
            sum += read_back[D_OUT][(h * QUERIES + i) * D + at % D];
        right &= read_back[D_V][at] == sum;
    }
    check(right, "d_values of one key");
    check(is_zero(read_back[D_Q], HEADS * QUERIES * D) && is_zero(read_back[D_K], SHARED * D),
          "a single weight cannot change");
}

static void test_unseen(void)
{
    int right = 1;

    check(!forward(KEYS, VN_CAUSAL_LAST) && !backward(KEYS, VN_CAUSAL_LAST, ALL), "gradients");
    read_all(read_back);
    for (int h = 0; h < HEADS; h++)             /* the last query stands at the last key */
        right &= is_zero(&read_back[D_Q][h * QUERIES * D], (QUERIES - KEYS) * D);
    check(right, "queries that see nothing");
}

/* ---- what is wrong ------------------------------------------------------------------------ */

static void wrong(vn_status got, const char *name, const char *what)
{
    check(got == VN_INVALID && strstr(vn_last_error(), "vn_attention_backward") &&
          strstr(vn_last_error(), name), what);
}

static void test_wrong(void)
{
    const vn_attention_options right = { .lse = tensor(LSE, KEYS) }, without = { .scale = 1 };
    const vn_tensor q = tensor(Q, KEYS), k = tensor(K, KEYS), v = tensor(V, KEYS), out = tensor(OUT, KEYS),
                    d_out = tensor(D_OUT, KEYS), dq = tensor(D_Q, KEYS), dk = tensor(D_K, KEYS),
                    dv = tensor(D_V, KEYS), none = { .rank = 0 };
    vn_tensor less = d_out, half = dk;

    less.extent[2]--;
    half.type = VN_BF16;
    read_all(before);
    wrong(vn_attention_backward(queue, q, k, v, out, d_out, dq, dk, dv, &without), "options.lse", "no lse");
    wrong(vn_attention_backward(queue, q, k, v, out, d_out, dq, dk, dv, NULL), "options.lse", "no options");
    wrong(vn_attention_backward(queue, q, k, v, out, d_out, none, none, none, &right), "d_queries", "none");
    wrong(vn_attention_backward(queue, q, k, v, out, none, dq, dk, dv, &right), "d_out", "no d_out");
    wrong(vn_attention_backward(queue, q, k, v, out, less, dq, dk, dv, &right), "d_out", "a row less");
    wrong(vn_attention_backward(queue, q, k, v, out, d_out, dq, half, dv, &right), "d_keys", "another type");
    wrong(vn_attention_backward(queue, q, k, v, out, d_out, dq, k, dv, &right), "d_keys", "over the keys");
    wrong(vn_attention_backward(queue, q, k, v, out, d_out, dq, dk, dk, &right), "d_values", "one place");
    read_all(read_back);
    check(!memcmp(before, read_back, sizeof before), "no gradient is touched");
}

int main(void)
{
    const int status = start(&device, &queue);

    if (status)
        return status;
    for (int i = 0; i < TENSORS; i++) {
        if (vn_buffer_open(&buffers[i], device, MOST * sizeof(float)))
            return 1;
        fill(i);
    }
    test_bits(VN_CAUSAL_NONE);
    test_bits(VN_CAUSAL_FIRST);
    test_order();
    test_one_key();
    test_unseen();
    test_wrong();
    for (int i = 0; i < TENSORS; i++)
        vn_buffer_close(buffers[i]);
    vn_queue_close(queue);
    vn_device_close(device);
    printf("%ld cases, %ld failed\nCOUNT relations %ld\n", cases, failures, cases);
    return failures != 0;
}
