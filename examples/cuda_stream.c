/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_stream.c - a product among an application's own CUDA work: its context, streams, memory, events.
 *
 *     cc cuda_stream.c $(pkg-config --cflags --libs vernier) -lcuda -lm
 *
 * One stream of the application writes A and B and clears C.  Vernier's product is queued on that stream, so
 * that it comes after them.  Another stream waits for an event of the product's before it reads C.  The host
 * waits once, at the end.
 */
#include <cuda.h>

#include "example.h"

#include <vernier_cuda.h>

enum { M = 48, N = 40, K = 32 };

static void must_cuda(CUresult error, const char *what)
{
    if (error == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d of CUDA\n", what, (int)error);
    exit(1);
}

int main(void)
{
    float *const a = numbers(M * K, 1), *const b = numbers(K * N, 2), c[M * N];
    double wanted[M * N] = { 0 };
    CUdevice id;
    CUcontext context;
    CUstream writes, reads;
    CUdeviceptr A, B, C;
    CUevent multiplied;

    /* The application's own objects. */
    if (cuInit(0) || cuDeviceGet(&id, 0))
        return fputs("there is no CUDA device\n", stderr), 77;
    must_cuda(cuDevicePrimaryCtxRetain(&context, id), "cuDevicePrimaryCtxRetain");
    must_cuda(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must_cuda(cuStreamCreate(&writes, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must_cuda(cuStreamCreate(&reads, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must_cuda(cuMemAlloc(&A, 4 * M * K), "cuMemAlloc");
    must_cuda(cuMemAlloc(&B, 4 * K * N), "cuMemAlloc");
    must_cuda(cuMemAlloc(&C, sizeof c), "cuMemAlloc");
    must_cuda(cuMemcpyHtoDAsync(A, a, 4 * M * K, writes), "cuMemcpyHtoDAsync");
    must_cuda(cuMemcpyHtoDAsync(B, b, 4 * K * N, writes), "cuMemcpyHtoDAsync");
    must_cuda(cuMemsetD32Async(C, 0, M * N, writes), "cuMemsetD32Async");

    /* Vernier's handles on them. */
    vn_device *dev;
    vn_queue *q;
    vn_buffer *va, *vb, *vc;

    must(vn_cuda_device_open(&dev, context));
    must(vn_cuda_queue_open(&q, dev, writes));
    must(vn_cuda_buffer_open(&va, dev, A, 4 * M * K));
    must(vn_cuda_buffer_open(&vb, dev, B, 4 * K * N));
    must(vn_cuda_buffer_open(&vc, dev, C, sizeof c));
    must(vn_gemm(q, 2, vn_matrix(va, VN_F32, M, K), vn_matrix(vb, VN_F32, K, N),
                    1, vn_matrix(vc, VN_F32, M, N), NULL));
    must(vn_cuda_queue_event(&multiplied, q));

    must_cuda(cuStreamWaitEvent(reads, multiplied, 0), "cuStreamWaitEvent");
    must_cuda(cuMemcpyDtoHAsync(c, C, sizeof c, reads), "cuMemcpyDtoHAsync");
    must_cuda(cuStreamSynchronize(reads), "cuStreamSynchronize");
    for (int i = 0; i < M * N; i++)
        for (int k = 0; k < K; k++)
            wanted[i] += 2.0 * a[i / N * K + k] * b[k * N + i % N];

    vn_buffer_close(va);
    vn_buffer_close(vb);
    vn_buffer_close(vc);
    vn_queue_close(q);
    vn_device_close(dev);
    cuEventDestroy(multiplied);
    cuMemFree(A);
    cuMemFree(B);
    cuMemFree(C);
    cuStreamDestroy(writes);
    cuStreamDestroy(reads);
    cuDevicePrimaryCtxRelease(id);
    free(a);
    free(b);
    return compare("2 A B + 0", c, wanted, M * N, K, 2 * K);
}
