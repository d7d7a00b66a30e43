/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_cross_entropy.c - the last layer of a language model and its loss, without all logits in memory.
 *
 * logits = x w^T, R x V, are larger than all else: with R = 16384 rows and V = 128256 classes they take
 * 4.2 GB in 16 bits, and their gradient as much again.  Here the rows are taken in chunks of C: of logits
 * there are never more than C x V elements (C = 1024: 0.26 GB), and the gradient takes their place:
 *
 *     z  := x[c] w^T                    C x V, the only memory beside operands and results
 *     z  := gradient of the loss        in the same call as the loss, in place
 *     dx[c] := z w,   dw := z^T x[c] + dw
 *
 * The weight 1 / R of each row makes the losses sum to their mean, and the gradients those of the mean.
 */
#include "example.h"

enum { ROWS = 60, CHUNK = 16, HIDDEN = 24, CLASSES = 130 };

static double loss_wanted[ROWS], dx_wanted[ROWS * HIDDEN], dw_wanted[CLASSES * HIDDEN];

/* The same in double, with all logits of a row. */
static void compute(const float *x, const float *w, const int32_t *target)
{
    for (int r = 0; r < ROWS; r++) {
        double z[CLASSES], top = -INFINITY, sum = 0;

        for (int j = 0; j < CLASSES; j++) {
            z[j] = 0;
            for (int h = 0; h < HIDDEN; h++)
                z[j] += (double)x[r * HIDDEN + h] * w[j * HIDDEN + h];
            top = z[j] > top ? z[j] : top;
        }
        for (int j = 0; j < CLASSES; j++)
            sum += exp(z[j] - top);
        loss_wanted[r] = (top + log(sum) - z[target[r]]) / ROWS;
        for (int j = 0; j < CLASSES; j++) {
            const double dz = (exp(z[j] - top) / sum - (j == target[r])) / ROWS;

            for (int h = 0; h < HIDDEN; h++) {
                dx_wanted[r * HIDDEN + h] += dz * w[j * HIDDEN + h];
                dw_wanted[j * HIDDEN + h] += dz * x[r * HIDDEN + h];
            }
        }
    }
}

int main(void)
{
    float *const xs = numbers(ROWS * HIDDEN, 1), *const ws = numbers(CLASSES * HIDDEN, 2);
    float loss[ROWS], dx[ROWS * HIDDEN], dw[CLASSES * HIDDEN];
    const float each = 1.0f / ROWS;
    int32_t target[ROWS];
    vn_device *dev;
    vn_queue *q;
    vn_buffer *X, *W, *T, *Z, *LOSS, *DX, *DW, *EACH;

    for (int r = 0; r < ROWS; r++)
        target[r] = r * 37 % CLASSES;
    must(vn_device_open(&dev, NULL));
    must(vn_queue_open(&q, dev));
    X = buffer_of(dev, q, xs, ROWS * HIDDEN);
    W = buffer_of(dev, q, ws, CLASSES * HIDDEN);
    EACH = buffer_of(dev, q, &each, 1);
    must(vn_buffer_open(&T, dev, sizeof target));
    must(vn_write(q, T, 0, target, sizeof target));
    must(vn_buffer_open(&Z, dev, sizeof(float) * CHUNK * CLASSES));
    must(vn_buffer_open(&LOSS, dev, sizeof loss));
    must(vn_buffer_open(&DX, dev, sizeof dx));
    must(vn_buffer_open(&DW, dev, sizeof dw));

    const vn_tensor x = vn_matrix(X, VN_F32, ROWS, HIDDEN), w = vn_matrix(W, VN_F32, CLASSES, HIDDEN),
                    gx = vn_matrix(DX, VN_F32, ROWS, HIDDEN), gw = vn_matrix(DW, VN_F32, CLASSES, HIDDEN);
    const int64_t one = 1, rows = ROWS;
    const vn_tensor losses = vn_packed(LOSS, VN_F32, 1, &rows);
    const vn_cross_entropy_options mean = { .size = sizeof mean,
                                            .weights = vn_packed(EACH, VN_F32, 1, &one) };

    for (int64_t first = 0; first < ROWS; first += CHUNK) {
        const int64_t count = first + CHUNK < ROWS ? CHUNK : ROWS - first;
        const vn_tensor z = vn_matrix(Z, VN_F32, count, CLASSES), part = vn_slice(x, 0, first, count);
        const vn_ints targets = { .buffer = T, .start = first, .count = count, .stride = 1, .bytes = 4 };

        must(vn_gemm(q, 1, part, vn_transpose(w), 0, z, NULL));
        must(vn_cross_entropy(q, z, targets, vn_slice(losses, 0, first, count), z, &mean));
        must(vn_gemm(q, 1, z, w, 0, vn_slice(gx, 0, first, count), NULL));
        must(vn_gemm(q, 1, vn_transpose(z), part, first > 0, gw, NULL));
    }
    must(vn_read(q, loss, LOSS, 0, sizeof loss));
    must(vn_read(q, dx, DX, 0, sizeof dx));
    must(vn_read(q, dw, DW, 0, sizeof dw));
    printf("%d x %d logits in memory, of %d x %d\n", CHUNK, CLASSES, ROWS, CLASSES);
    compute(xs, ws, target);

    /* A logit is off by HIDDEN roundings of up to HIDDEN, an exponential by as much, and by its own; the sum
     * of the classes' exponentials likewise.                                                          */
    const int terms = 2 * HIDDEN * HIDDEN + 8 * CLASSES;
    const int failed = compare("loss", loss, loss_wanted, ROWS, terms, 2.0 / ROWS)
                     + compare("dx", dx, dx_wanted, ROWS * HIDDEN, terms, 2.0 / ROWS)
                     + compare("dw", dw, dw_wanted, CLASSES * HIDDEN, terms, 2);

    vn_buffer_close(X);
    vn_buffer_close(W);
    vn_buffer_close(T);
    vn_buffer_close(Z);
    vn_buffer_close(LOSS);
    vn_buffer_close(DX);
    vn_buffer_close(DW);
    vn_buffer_close(EACH);
    vn_queue_close(q);
    vn_device_close(dev);
    free(xs);
    free(ws);
    return failed != 0;
}
