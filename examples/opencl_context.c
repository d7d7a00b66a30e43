/* SPDX-License-Identifier: Apache-2.0
 *
 * opencl_context.c - a product among an application's own OpenCL work: its context, queue, buffers, events.
 *
 * A kernel of the application doubles A; Vernier's product waits for that kernel's event and works in the
 * application's buffers; the application's read waits for an event of the product's.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "example.h"

#include <vernier_opencl.h>

enum { M = 48, N = 40, K = 32 };

static const char *const text = "kernel void twice(global float *a) { a[get_global_id(0)] *= 2; }";

static void must_cl(cl_int error, const char *what)
{
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d of OpenCL\n", what, error);
    exit(1);
}

int main(void)
{
    const size_t items = M * K;
    float *const a = numbers(M * K, 1), *const b = numbers(K * N, 2), c[M * N];
    double wanted[M * N] = { 0 };
    cl_platform_id platform;
    cl_device_id id;
    cl_event doubled, multiplied;
    cl_int error;

    /* The application's own objects. */
    if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL))
        return fputs("there is no OpenCL device\n", stderr), 77;
    cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &error);
    must_cl(error, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &error);
    must_cl(error, "clCreateCommandQueue");
    cl_mem A = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, 4 * M * K, a, &error);
    must_cl(error, "clCreateBuffer");
    cl_mem B = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, 4 * K * N, b, &error);
    must_cl(error, "clCreateBuffer");
    cl_mem C = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof c, NULL, &error);
    must_cl(error, "clCreateBuffer");
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&text, NULL, &error);
    must_cl(clBuildProgram(program, 1, &id, NULL, NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "twice", &error);
    must_cl(clSetKernelArg(kernel, 0, sizeof A, &A), "clSetKernelArg");
    must_cl(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, &doubled), "twice");

    /* Vernier's handles on them. */
    vn_device *dev;
    vn_queue *q;
    vn_buffer *va, *vb, *vc;

    must(vn_opencl_device_open(&dev, context, id));
    must(vn_opencl_queue_open(&q, dev, queue));
    must(vn_opencl_buffer_open(&va, dev, A));
    must(vn_opencl_buffer_open(&vb, dev, B));
    must(vn_opencl_buffer_open(&vc, dev, C));
    must(vn_opencl_queue_wait(q, 1, &doubled));
    must(vn_gemm(q, 1, vn_matrix(va, VN_F32, M, K), vn_matrix(vb, VN_F32, K, N),
                    0, vn_matrix(vc, VN_F32, M, N), NULL));
    must(vn_opencl_queue_event(&multiplied, q));

    must_cl(clEnqueueReadBuffer(queue, C, CL_TRUE, 0, sizeof c, c, 1, &multiplied, NULL), "a read");
    for (int i = 0; i < M * N; i++)
        for (int k = 0; k < K; k++)
            wanted[i] += 2.0 * a[i / N * K + k] * b[k * N + i % N];

    vn_buffer_close(va);
    vn_buffer_close(vb);
    vn_buffer_close(vc);
    vn_queue_close(q);
    vn_device_close(dev);
    clReleaseEvent(doubled);
    clReleaseEvent(multiplied);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseMemObject(A);
    clReleaseMemObject(B);
    clReleaseMemObject(C);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    free(a);
    free(b);
    return compare("opencl_context", c, wanted, M * N, K, 2 * K);
}
