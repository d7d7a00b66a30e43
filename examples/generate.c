/* SPDX-License-Identifier: Apache-2.0
 *
 * generate.c - a small transformer generates tokens with a cache of keys and values.
 *
 * Its weights are random, and so is what it says; but each step's logits are compared with those of a host
 * that computes the whole sequence anew in double.  A step multiplies one row: the projections of keys and
 * values write straight into the cache, and attention reads of it as many rows as there are by then, a number
 * that lies in a buffer, so that each step makes the very same calls.
 */
#include <string.h>

#include "example.h"

enum { VOCABULARY = 48, WIDTH = 32, HEADS = 4, KV_HEADS = 2, HEAD = WIDTH / HEADS, KV = KV_HEADS * HEAD,
       HIDDEN = 64, LAYERS = 2, PLACES = 16, PROMPT = 4 };

enum { WQ, WK, WV, WO, UP, DOWN, WEIGHTS };
static const int rows_of[WEIGHTS] = { WIDTH, WIDTH, WIDTH, WIDTH, WIDTH, HIDDEN };
static const int cols_of[WEIGHTS] = { WIDTH, KV, KV, WIDTH, HIDDEN, WIDTH };

static struct {
    float     *tokens, *places, *head, *w[LAYERS][WEIGHTS];      /* of the host: embeddings, weights */
    vn_buffer *on_head, *on_w[LAYERS][WEIGHTS], *keys[LAYERS], *values[LAYERS];
    vn_buffer *x, *q, *attended, *hidden, *logits, *length;
} m;
static vn_device *dev;
static vn_queue *queue;

static float *scaled(size_t count, unsigned seed, float factor)
{
    float *const v = numbers(count, seed);

    for (size_t i = 0; i < count; i++)
        v[i] *= factor;
    return v;
}

static vn_buffer *room(size_t elements)
{
    vn_buffer *b;

    must(vn_buffer_open(&b, dev, elements * sizeof(float)));
    must(vn_fill(queue, b, 0, elements * sizeof(float), &(float){ 0 }, sizeof(float)));
    return b;
}

static void open_model(void)
{
    m.tokens = scaled(VOCABULARY * WIDTH, 1, 1);
    m.places = scaled(PLACES * WIDTH, 2, 1);
    m.head = scaled(VOCABULARY * WIDTH, 3, 1);
    m.on_head = buffer_of(dev, queue, m.head, VOCABULARY * WIDTH);
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < WEIGHTS; i++) {
            const size_t count = (size_t)rows_of[i] * (size_t)cols_of[i];

            m.w[l][i] = scaled(count, 10u + (unsigned)(l * WEIGHTS + i), 1 / sqrtf((float)rows_of[i]));
            m.on_w[l][i] = buffer_of(dev, queue, m.w[l][i], count);
        }
        m.keys[l] = room(PLACES * KV);
        m.values[l] = room(PLACES * KV);
    }
    m.x = room(PLACES * WIDTH);
    m.q = room(PLACES * WIDTH);
    m.attended = room(PLACES * WIDTH);
    m.hidden = room(PLACES * HIDDEN);
    m.logits = room(VOCABULARY);
    must(vn_buffer_open(&m.length, dev, sizeof(int32_t)));
}

static void close_model(void)
{
    vn_buffer *const all[] = { m.on_head, m.x, m.q, m.attended, m.hidden, m.logits, m.length };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        vn_buffer_close(all[i]);
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < WEIGHTS; i++) {
            vn_buffer_close(m.on_w[l][i]);
            free(m.w[l][i]);
        }
        vn_buffer_close(m.keys[l]);
        vn_buffer_close(m.values[l]);
    }
    free(m.tokens);
    free(m.places);
    free(m.head);
}

/* ---- on the device ------------------------------------------------------------------- */

/* C := act(A W) or, with beta 1, C + A W. */
static void project(vn_tensor a, int layer, int weight, double beta, vn_tensor c, vn_activation act)
{
    const vn_gemm_options o = { .activation = act };

    must(vn_gemm(queue, 1, a, vn_matrix(m.on_w[layer][weight], VN_F32, rows_of[weight], cols_of[weight]),
                 beta, c, &o));
}

/* Heads of rows that are WIDTH or KV wide, as attention takes them: batch, head, row, element. */
static vn_tensor heads(vn_buffer *b, int count, int rows)
{
    return (vn_tensor){ b, VN_F32, 4, 0, { 1, count, rows, HEAD }, { 0, HEAD, count * HEAD, 1 } };
}

/* The logits after `rows` more tokens, of which the first stands at place `at`. */
static void forward(float *logits, const int *tokens, int at, int rows)
{
    const int32_t seen = at + rows;
    const vn_tensor x = vn_matrix(m.x, VN_F32, rows, WIDTH),
                    hidden = vn_matrix(m.hidden, VN_F32, rows, HIDDEN);
    const vn_attention_options o = {
        .causal = VN_CAUSAL_LAST, .key_lengths = { .buffer = m.length, .count = 1, .stride = 1, .bytes = 4 }
    };
    float in[PLACES * WIDTH];

    for (int i = 0; i < rows * WIDTH; i++)
        in[i] = m.tokens[tokens[at + i / WIDTH] * WIDTH + i % WIDTH] + m.places[at * WIDTH + i];
    must(vn_write(queue, m.x, 0, in, sizeof(float) * (size_t)rows * WIDTH));
    must(vn_write(queue, m.length, 0, &seen, sizeof seen));
    for (int l = 0; l < LAYERS; l++) {
        project(x, l, WQ, 0, vn_matrix(m.q, VN_F32, rows, WIDTH), VN_IDENTITY);
        project(x, l, WK, 0, vn_slice(vn_matrix(m.keys[l], VN_F32, PLACES, KV), 0, at, rows), VN_IDENTITY);
        project(x, l, WV, 0, vn_slice(vn_matrix(m.values[l], VN_F32, PLACES, KV), 0, at, rows), VN_IDENTITY);
        must(vn_attention(queue, heads(m.q, HEADS, rows), heads(m.keys[l], KV_HEADS, PLACES),
                          heads(m.values[l], KV_HEADS, PLACES), heads(m.attended, HEADS, rows), &o));
        project(vn_matrix(m.attended, VN_F32, rows, WIDTH), l, WO, 1, x, VN_IDENTITY);
        project(x, l, UP, 0, hidden, VN_SILU);
        project(hidden, l, DOWN, 1, x, VN_IDENTITY);
    }
    must(vn_gemm(queue, 1, vn_slice(x, 0, rows - 1, 1),
                 vn_transpose(vn_matrix(m.on_head, VN_F32, VOCABULARY, WIDTH)), 0,
                 vn_matrix(m.logits, VN_F32, 1, VOCABULARY), NULL));
    must(vn_read(queue, logits, m.logits, 0, sizeof(float) * VOCABULARY));
}

/* ---- on the host, in double, all places anew ----------------------------------------- */

static void multiply(double *c, const double *a, int rows, int layer, int weight, double beta)
{
    const float *const w = m.w[layer][weight];

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols_of[weight]; j++) {
            double sum = 0;

            for (int k = 0; k < rows_of[weight]; k++)
                sum += a[i * rows_of[weight] + k] * w[k * cols_of[weight] + j];
            c[i * cols_of[weight] + j] = sum + (beta != 0 ? c[i * cols_of[weight] + j] : 0);
        }
}

static void attend(double *out, const double *q, const double *k, const double *v, int rows)
{
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < rows; i++) {
            const int at = h * KV_HEADS / HEADS * HEAD;
            double *const to = &out[i * WIDTH + h * HEAD], sum = 0;

            memset(to, 0, HEAD * sizeof *to);
            for (int j = 0; j <= i; j++) {
                double score = 0;

                for (int d = 0; d < HEAD; d++)
                    score += q[i * WIDTH + h * HEAD + d] * k[j * KV + at + d];
                score = exp(score / sqrt(HEAD));
                sum += score;
                for (int d = 0; d < HEAD; d++)
                    to[d] += score * v[j * KV + at + d];
            }
            for (int d = 0; d < HEAD; d++)
                to[d] /= sum;
        }
}

/* Also the largest sum of the products' absolute values. */
static void forward_host(double *logits, double *largest, const int *tokens, int rows)
{
    static double x[PLACES * WIDTH], q[PLACES * WIDTH], k[PLACES * KV], v[PLACES * KV], a[PLACES * WIDTH];
    static double hidden[PLACES * HIDDEN];

    for (int i = 0; i < rows * WIDTH; i++)
        x[i] = (double)m.tokens[tokens[i / WIDTH] * WIDTH + i % WIDTH] + m.places[i];
    for (int l = 0; l < LAYERS; l++) {
        multiply(q, x, rows, l, WQ, 0);
        multiply(k, x, rows, l, WK, 0);
        multiply(v, x, rows, l, WV, 0);
        attend(a, q, k, v, rows);
        multiply(x, a, rows, l, WO, 1);
        multiply(hidden, x, rows, l, UP, 0);
        for (int i = 0; i < rows * HIDDEN; i++)
            hidden[i] /= 1 + exp(-hidden[i]);
        multiply(x, hidden, rows, l, DOWN, 1);
    }
    *largest = 0;
    for (int t = 0; t < VOCABULARY; t++) {
        double sum = 0;

        logits[t] = 0;
        for (int d = 0; d < WIDTH; d++) {
            const double product = x[(rows - 1) * WIDTH + d] * m.head[t * WIDTH + d];

            logits[t] += product;
            sum += fabs(product);
        }
        *largest = sum > *largest ? sum : *largest;
    }
}

int main(void)
{
    int tokens[PLACES + 1] = { 7, 21, 3, 40 }, wrong = 0;

    must(vn_device_open(&dev, NULL));
    must(vn_queue_open(&queue, dev));
    open_model();
    for (int seen = PROMPT; seen <= PLACES; seen++) {
        const int begin = seen == PROMPT ? 0 : seen - 1; /* the prompt at once, then a token at a time */
        float logits[VOCABULARY];
        double wanted[VOCABULARY], largest;

        forward(logits, tokens, begin, seen - begin);
        forward_host(wanted, &largest, tokens, seen);
        /* What a layer's sums round off adds up. */
        wrong |= compare("generate", logits, wanted, VOCABULARY,
                         LAYERS * (4 * WIDTH + HIDDEN + PLACES + HEAD) + WIDTH, largest);
        for (int t = 0; t < VOCABULARY; t++)
            tokens[seen] = logits[t] > logits[tokens[seen]] ? t : tokens[seen];
    }
    for (int i = 0; i <= PLACES; i++)
        printf("%d%s", tokens[i], i == PROMPT - 1 ? " | " : i < PLACES ? " " : "\n");
    close_model();
    vn_queue_close(queue);
    vn_device_close(dev);
    return wrong;
}
