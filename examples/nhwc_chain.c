/* SPDX-License-Identifier: Apache-2.0
 *
 * nhwc_chain.c - two convolutions in NHWC order, 3x3 with ReLU and then 1x1, without a wait between them.
 *
 * The library counts the dimensions of an image as N C H W in every layout; that the channels lie together is
 * a matter of strides, which vn_permute() orders.  So it is with the filters, which are stored as K R S C.
 */
#include "example.h"

enum { N = 2, C = 3, H = 14, W = 15, K1 = 16, K2 = 8 };

/* The view of an array stored as NHWC or KRSC, in the order that the library counts in. */
static vn_tensor channels_last(vn_buffer *b, int64_t n, int64_t h, int64_t w, int64_t c)
{
    static const int order[] = { 0, 3, 1, 2 };
    const int64_t extent[] = { n, h, w, c };

    return vn_permute(vn_packed(b, VN_F32, 4, extent), order);
}

/* y := act(x * w + bias), all NHWC, with r x r filters and zeros around, so that y is as large as x. */
static void convolve(double *y, const double *x, const float *w, const float *bias, int c, int k, int r,
                     int relu)
{
    for (int i = 0; i < N * H * W * k; i++) {
        const int out = i % k, col = i / k % W, row = i / k / W % H, image = i / k / W / H;
        double sum = bias[out];

        for (int j = 0; j < r * r * c; j++) {
            const int h = row + j / c / r - r / 2, v = col + j / c % r - r / 2;

            if (h >= 0 && h < H && v >= 0 && v < W)
                sum += x[((image * H + h) * W + v) * c + j % c] * w[out * r * r * c + j];
        }
        y[i] = relu && sum < 0 ? 0 : sum;
    }
}

int main(void)
{
    static float y[N * H * W * K2];
    static double wanted[N * H * W * K2], middle[N * H * W * K1], images[N * H * W * C];
    float *const x = numbers(N * H * W * C, 1), *const w1 = numbers(K1 * 9 * C, 2),
          *const b1 = numbers(K1, 3), *const w2 = numbers(K2 * K1, 4), *const b2 = numbers(K2, 5);
    vn_device *dev;
    vn_queue *q;
    vn_buffer *Y1, *Y2;

    must(vn_device_open(&dev, NULL));
    must(vn_queue_open(&q, dev));
    must(vn_buffer_open(&Y1, dev, sizeof(float) * N * H * W * K1));
    must(vn_buffer_open(&Y2, dev, sizeof y));
    vn_buffer *X = buffer_of(dev, q, x, N * H * W * C), *W1 = buffer_of(dev, q, w1, K1 * 9 * C),
              *B1 = buffer_of(dev, q, b1, K1), *W2 = buffer_of(dev, q, w2, K2 * K1),
              *B2 = buffer_of(dev, q, b2, K2);
    const int64_t k1 = K1, k2 = K2;
    const vn_conv_options first = { .pad_before = { 1, 1 }, .pad_after = { 1, 1 }, .activation = VN_RELU,
                                    .bias = vn_packed(B1, VN_F32, 1, &k1) },
                          second = { .bias = vn_packed(B2, VN_F32, 1, &k2) };

    must(vn_conv_forward(q, 1, channels_last(X, N, H, W, C), channels_last(W1, K1, 3, 3, C), 0,
                         channels_last(Y1, N, H, W, K1), &first));
    must(vn_conv_forward(q, 1, channels_last(Y1, N, H, W, K1), channels_last(W2, K2, 1, 1, K1), 0,
                         channels_last(Y2, N, H, W, K2), &second));
    must(vn_read(q, y, Y2, 0, sizeof y));

    for (int i = 0; i < N * H * W * C; i++)
        images[i] = x[i];
    convolve(middle, images, w1, b1, C, K1, 3, 1);
    convolve(wanted, middle, w2, b2, K1, K2, 1, 0);

    vn_buffer *const buffers[] = { X, W1, B1, W2, B2, Y1, Y2 };

    for (int i = 0; i < 7; i++)
        vn_buffer_close(buffers[i]);
    vn_queue_close(q);
    vn_device_close(dev);
    free(x);
    free(w1);
    free(b1);
    free(w2);
    free(b2);
    return compare("nhwc_chain", y, wanted, N * H * W * K2, 9 * C + K1 + 2, (9 * C + 1) * K1 + 1);
}
