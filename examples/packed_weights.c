/* SPDX-License-Identifier: Apache-2.0
 *
 * packed_weights.c - a layer y = silu(x W^T + bias), whose weights are packed once for many batches.
 *
 * W is stored as frameworks store it, a row for each output.  vn_pack_bytes() says whether the pack helps on
 * this device: 0 bytes mean that products read W itself; their results are right either way.
 */
#include "example.h"

enum { BATCH = 96, IN = 80, OUT = 112, BATCHES = 4 };

static double silu(double x)
{
    return x / (1 + exp(-x));
}

int main(void)
{
    float *const w = numbers(OUT * IN, 1), *const bias = numbers(OUT, 2), y[BATCH * OUT];
    vn_gemm_options o = { .activation = VN_SILU };
    vn_device *dev;
    vn_queue *q;
    vn_buffer *X, *Y;
    vn_pack *pack;
    int wrong = 0;

    must(vn_device_open(&dev, NULL));
    must(vn_queue_open(&q, dev));
    must(vn_buffer_open(&X, dev, sizeof(float) * BATCH * IN));
    must(vn_buffer_open(&Y, dev, sizeof y));
    vn_buffer *W = buffer_of(dev, q, w, OUT * IN), *B = buffer_of(dev, q, bias, OUT);
    const vn_tensor weights = vn_transpose(vn_matrix(W, VN_F32, OUT, IN));

    o.bias = vn_matrix(B, VN_F32, 1, OUT);
    must(vn_pack_open(&pack, q, weights, BATCH, &o));
    o.packed_b = pack;
    printf("the pack takes %zu bytes\n", vn_pack_bytes(pack));

    for (unsigned n = 0; n < BATCHES; n++) {
        float *const x = numbers(BATCH * IN, 10 + n);
        double wanted[BATCH * OUT];

        must(vn_write(q, X, 0, x, sizeof(float) * BATCH * IN));
        must(vn_gemm(q, 1, vn_matrix(X, VN_F32, BATCH, IN), weights,
                        0, vn_matrix(Y, VN_F32, BATCH, OUT), &o));
        must(vn_read(q, y, Y, 0, sizeof y));
        for (int i = 0; i < BATCH * OUT; i++) {
            double sum = bias[i % OUT];

            for (int k = 0; k < IN; k++)
                sum += (double)x[i / OUT * IN + k] * w[i % OUT * IN + k];
            wanted[i] = silu(sum);
        }
        wrong |= compare("packed_weights", y, wanted, BATCH * OUT, IN + 1, IN + 1);
        free(x);
    }
    vn_pack_close(pack);
    vn_buffer_close(X);
    vn_buffer_close(W);
    vn_buffer_close(B);
    vn_buffer_close(Y);
    vn_queue_close(q);
    vn_device_close(dev);
    free(w);
    free(bias);
    return wrong;
}
