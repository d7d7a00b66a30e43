/* SPDX-License-Identifier: Apache-2.0
 *
 * gradient_accumulation.c - the gradient of a layer's weights over several small batches.
 *
 * dW := x^T dy + dW, with beta 1: the sum stays on the device, in f32.  vn_fill() begins it with zeros.  The
 * gradient of the bias is a product with a vector of ones.
 */
#include "example.h"

enum { BATCH = 24, IN = 33, OUT = 20, BATCHES = 5 };

int main(void)
{
    static double wanted[(IN + 1) * OUT];               /* dW, and in its last row db */
    float gradient[(IN + 1) * OUT];
    const float zero = 0, one = 1;
    vn_device *dev;
    vn_queue *q;
    vn_buffer *X, *DY, *DW, *ONES;

    must(vn_device_open(&dev, NULL));
    must(vn_queue_open(&q, dev));
    must(vn_buffer_open(&X, dev, sizeof(float) * BATCH * IN));
    must(vn_buffer_open(&DY, dev, sizeof(float) * BATCH * OUT));
    must(vn_buffer_open(&DW, dev, sizeof gradient));
    must(vn_buffer_open(&ONES, dev, sizeof(float) * BATCH));
    must(vn_fill(q, DW, 0, sizeof gradient, &zero, sizeof zero));
    must(vn_fill(q, ONES, 0, sizeof(float) * BATCH, &one, sizeof one));

    const vn_tensor x = vn_matrix(X, VN_F32, BATCH, IN), dy = vn_matrix(DY, VN_F32, BATCH, OUT),
                    both = vn_matrix(DW, VN_F32, IN + 1, OUT), ones = vn_matrix(ONES, VN_F32, 1, BATCH);

    for (unsigned n = 0; n < BATCHES; n++) {
        float *const xs = numbers(BATCH * IN, 20 + n), *const dys = numbers(BATCH * OUT, 40 + n);

        must(vn_write(q, X, 0, xs, sizeof(float) * BATCH * IN));
        must(vn_write(q, DY, 0, dys, sizeof(float) * BATCH * OUT));
        must(vn_gemm(q, 1, vn_transpose(x), dy, 1, vn_slice(both, 0, 0, IN), NULL));
        must(vn_gemm(q, 1, ones, dy, 1, vn_slice(both, 0, IN, 1), NULL));
        for (int i = 0; i < (IN + 1) * OUT; i++)
            for (int b = 0; b < BATCH; b++)
                wanted[i] += (i / OUT < IN ? (double)xs[b * IN + i / OUT] : 1) * dys[b * OUT + i % OUT];
        free(xs);
        free(dys);
    }
    must(vn_read(q, gradient, DW, 0, sizeof gradient));
    vn_buffer_close(X);
    vn_buffer_close(DY);
    vn_buffer_close(DW);
    vn_buffer_close(ONES);
    vn_queue_close(q);
    vn_device_close(dev);
    return compare("gradient_accumulation", gradient, wanted, (IN + 1) * OUT, BATCH * BATCHES,
                   BATCH * BATCHES);
}
