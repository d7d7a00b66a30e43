/* SPDX-License-Identifier: Apache-2.0
 *
 * two_queues.c - copies overlap products: one queue carries data, the other computes.
 *
 * Batches alternate between two places on the device.  While the product of one runs, the next is written and
 * the last result is read.  Events keep the order: a place is overwritten when its product is done, a result
 * when it was read.  The host waits once, at the end.
 */
#include "example.h"

enum { BATCH = 40, IN = 64, OUT = 48, BATCHES = 6, PLACES = 2 };

/* What follows on `q` starts after what `before` has been given so far. */
static void follow(vn_queue *q, vn_queue *before)
{
    vn_event *e;

    must(vn_event_record(&e, before));
    must(vn_queue_wait(q, e));
    vn_event_close(e);
}

int main(void)
{
    static float y[BATCHES][BATCH * OUT];
    float *const w = numbers(IN * OUT, 1), *x[BATCHES];
    vn_device *dev;
    vn_queue *compute, *carry;
    vn_buffer *X[PLACES], *Y[PLACES];
    vn_event *computed[PLACES] = { NULL }, *carried;
    int wrong = 0;

    must(vn_device_open(&dev, NULL));
    must(vn_queue_open(&compute, dev));
    must(vn_queue_open(&carry, dev));
    vn_buffer *W = buffer_of(dev, compute, w, IN * OUT);
    for (int p = 0; p < PLACES; p++) {
        must(vn_buffer_open(&X[p], dev, sizeof(float) * BATCH * IN));
        must(vn_buffer_open(&Y[p], dev, sizeof *y));
    }

    for (int n = 0; n < BATCHES + PLACES; n++) {
        const int p = n % PLACES;

        /* The result of this place's last batch is read, which was computed before its next is written. */
        if (computed[p]) {
            must(vn_queue_wait(carry, computed[p]));
            must(vn_read_async(carry, y[n - PLACES], Y[p], 0, sizeof *y));
            vn_event_close(computed[p]);
            computed[p] = NULL;
        }
        if (n >= BATCHES)
            continue;
        x[n] = numbers(BATCH * IN, 10 + (unsigned)n);
        must(vn_write_async(carry, X[p], 0, x[n], sizeof(float) * BATCH * IN));
        follow(compute, carry);
        must(vn_gemm(compute, 1, vn_matrix(X[p], VN_F32, BATCH, IN), vn_matrix(W, VN_F32, IN, OUT), 0,
                     vn_matrix(Y[p], VN_F32, BATCH, OUT), NULL));
        must(vn_event_record(&computed[p], compute));
    }
    must(vn_event_record(&carried, carry));
    must(vn_event_finish(carried));

    for (int n = 0; n < BATCHES; n++) {
        static double wanted[BATCH * OUT];

        for (int i = 0; i < BATCH * OUT; i++) {
            wanted[i] = 0;
            for (int k = 0; k < IN; k++)
                wanted[i] += (double)x[n][i / OUT * IN + k] * w[k * OUT + i % OUT];
        }
        wrong |= compare("two_queues", y[n], wanted, BATCH * OUT, IN, IN);
        free(x[n]);
    }
    vn_event_close(carried);
    vn_buffer_close(W);
    for (int p = 0; p < PLACES; p++) {
        vn_buffer_close(X[p]);
        vn_buffer_close(Y[p]);
    }
    vn_queue_close(compute);
    vn_queue_close(carry);
    vn_device_close(dev);
    free(w);
    return wrong;
}
