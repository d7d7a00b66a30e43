/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn.c - cuDNN that convolves nothing, and checks what it is told.
 */
#include "vendors/cudnn.h"
#include "fake.h"

#pragma GCC visibility push(default)

static int stands_for;

/* Algorithms, of which 4 is left out in each direction; bytes. */
enum { WINOGRAD = 4, GEMM_BASED = 1, IMPLICIT = 0, NEEDED = 2048 };
enum { ACTIVATION_RELU = 1 };

#define FAILS() do { if (fake_fails(__func__)) return 4000; } while (0)
#define IN_CONTEXT() FAKE_NEEDS(fake.depth > 0)

size_t cudnnGetVersion(void)
{
    return fake.cudnn_version;
}

const char *cudnnGetErrorString(cudnnStatus e)
{
    return e == 4000 ? "CUDNN_STATUS_INTERNAL_ERROR" : "another status";
}

cudnnStatus cudnnCreate(cudnnHandle *out)
{
    FAILS();
    IN_CONTEXT();
    *out = &stands_for;
    fake.handles++;
    return 0;
}

cudnnStatus cudnnDestroy(cudnnHandle h)
{
    IN_CONTEXT();
    FAKE_NEEDS(h && fake.handles > 0);
    fake.handles--;
    return 0;
}

cudnnStatus cudnnSetStream(cudnnHandle h, CUstream s)
{
    FAILS();
    FAKE_NEEDS(h && s);
    return 0;
}

#define DESCRIPTOR(create, destroy)                     \
    cudnnStatus create(cudnnDescriptor *out)            \
    {                                                   \
        FAILS();                                        \
        *out = &stands_for;                             \
        fake.descriptors++;                             \
        return 0;                                       \
    }                                                   \
    cudnnStatus destroy(cudnnDescriptor d)              \
    {                                                   \
        FAKE_NEEDS(d && fake.descriptors > 0);          \
        fake.descriptors--;                             \
        return 0;                                       \
    }
DESCRIPTOR(cudnnCreateTensorDescriptor,      cudnnDestroyTensorDescriptor)
DESCRIPTOR(cudnnCreateFilterDescriptor,      cudnnDestroyFilterDescriptor)
DESCRIPTOR(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor)
DESCRIPTOR(cudnnCreateActivationDescriptor,  cudnnDestroyActivationDescriptor)

cudnnStatus cudnnSetActivationDescriptor(cudnnDescriptor d, int mode, int nan, double coefficient)
{
    FAILS();
    FAKE_NEEDS(d && mode == ACTIVATION_RELU && nan == 0 && coefficient == 0);
    return 0;
}

cudnnStatus cudnnSetTensorNdDescriptor(cudnnDescriptor d, int type, int rank, const int *extent,
                                       const int *stride)
{
    FAILS();
    FAKE_NEEDS(d && (type == CUDNN_F32 || type == CUDNN_F64) && (rank == 4 || rank == 5));
    for (int i = 0; i < rank; i++)
        FAKE_NEEDS(extent[i] > 0 && stride[i] > 0);
    return 0;
}

cudnnStatus cudnnSetFilterNdDescriptor(cudnnDescriptor d, int type, int order, int rank, const int *extent)
{
    FAILS();
    FAKE_NEEDS(d && (type == CUDNN_F32 || type == CUDNN_F64) && (order == CUDNN_NCHW || order == CUDNN_NHWC)
               && (rank == 4 || rank == 5) && extent[0] > 0);
    return 0;
}

cudnnStatus cudnnSetConvolutionNdDescriptor(cudnnDescriptor d, int dims, const int *pad, const int *stride,
                                            const int *dilation, int mode, int type)
{
    FAILS();
    FAKE_NEEDS(d && (dims == 2 || dims == 3) && mode == CUDNN_CROSS_CORRELATION
               && (type == CUDNN_F32 || type == CUDNN_F64));
    for (int i = 0; i < dims; i++)
        FAKE_NEEDS(pad[i] >= 0 && stride[i] > 0 && dilation[i] > 0);
    return 0;
}

cudnnStatus cudnnSetConvolutionGroupCount(cudnnDescriptor d, int groups)
{
    FAILS();
    FAKE_NEEDS(d && (groups == 1 || groups == fake.groups));
    return 0;
}

cudnnStatus cudnnSetConvolutionMathType(cudnnDescriptor d, int math)
{
    FAILS();
    FAKE_NEEDS(d && (math == CUDNN_FMA || (math == CUDNN_DEFAULT_MATH && fake.tf32)));
    return 0;
}

/* Sorted by time; the first may not be used.  Every other search finds the best one slow, as one that loads
 * its kernels meanwhile.                                                                                 */
static void tell(int wanted, int *found, cudnnFound *out)
{
    const int loads = fake.searches++ % 2 == 0;
    const cudnnFound best = { .algorithm = GEMM_BASED, .milliseconds = loads ? 30 : 2, .workspace = NEEDED,
                              .math = CUDNN_FMA };
    const cudnnFound next = { .algorithm = IMPLICIT, .milliseconds = 3, .math = CUDNN_FMA };

    FAKE_NEEDS(wanted >= 3);
    out[0] = (cudnnFound){ .algorithm = WINOGRAD, .milliseconds = 1, .math = CUDNN_FMA };
    out[1] = loads ? next : best;
    out[2] = loads ? best : next;
    *found = 3;
}

#define SEARCH(name)                                            \
    cudnnStatus name VN_CUDNN_SEARCH                            \
    {                                                           \
        FAILS();                                                \
        IN_CONTEXT();                                           \
        FAKE_NEEDS(h && first && second && conv && third);      \
        tell(wanted, found, out);                               \
        return 0;                                               \
    }
SEARCH(cudnnFindConvolutionForwardAlgorithm)
SEARCH(cudnnFindConvolutionBackwardDataAlgorithm)
SEARCH(cudnnFindConvolutionBackwardFilterAlgorithm)
SEARCH(cudnnGetConvolutionForwardAlgorithm_v7)
SEARCH(cudnnGetConvolutionBackwardDataAlgorithm_v7)
SEARCH(cudnnGetConvolutionBackwardFilterAlgorithm_v7)

#define CONVOLVE(name)                                                                  \
    cudnnStatus name VN_CUDNN_CONVOLVE                                                  \
    {                                                                                   \
        FAILS();                                                                        \
        IN_CONTEXT();                                                                   \
        FAKE_NEEDS(h && alpha && first && a && second && b && conv && beta && third && c); \
        FAKE_NEEDS(algorithm == IMPLICIT ||                                             \
                   (algorithm == GEMM_BASED && workspace && bytes == NEEDED));          \
        fake.slow += algorithm == IMPLICIT;                                             \
        fake.clock += fake.older;                                                       \
        fake.older_ran++;                                                               \
        fake.foreign++;                                                                 \
        return 0;                                                                       \
    }
CONVOLVE(cudnnConvolutionForward)
CONVOLVE(cudnnConvolutionBackwardData)
CONVOLVE(cudnnConvolutionBackwardFilter)

cudnnStatus cudnnConvolutionBiasActivationForward(cudnnHandle h, const void *alpha, cudnnDescriptor dx,
    const void *x, cudnnDescriptor dw, const void *w, cudnnDescriptor conv, int algorithm, void *workspace,
    size_t bytes, const void *beta, cudnnDescriptor dz, const void *z, cudnnDescriptor dbias,
    const void *bias, cudnnDescriptor activation, cudnnDescriptor dy, void *y)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(h && alpha && dx && x && dw && w && conv && beta && dz && z && dbias && bias && dy && y);
    FAKE_NEEDS(activation && (algorithm == IMPLICIT || (algorithm == GEMM_BASED && workspace &&
                                                       bytes == NEEDED)));
    fake.slow += algorithm == IMPLICIT;
    fake.clock += fake.older;
    fake.foreign++;
    return 0;
}

cudnnStatus cudnnSoftmaxForward(cudnnHandle h, int algorithm, int mode, const void *alpha, cudnnDescriptor dx,
                                const void *x, const void *beta, cudnnDescriptor dy, void *y)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(h && algorithm == CUDNN_ACCURATE && mode == CUDNN_INSTANCE && alpha && dx && x && beta && dy
               && y);
    fake.foreign++;
    return 0;
}

cudnnStatus cudnnSoftmaxBackward(cudnnHandle h, int algorithm, int mode, const void *alpha,
    cudnnDescriptor y_is, const void *y, cudnnDescriptor dy_is, const void *dy, const void *beta,
    cudnnDescriptor dx_is, void *dx)
{
    FAILS();
    IN_CONTEXT();
    FAKE_NEEDS(h && algorithm == CUDNN_LOG && mode == CUDNN_INSTANCE && alpha && y_is && y && dy_is && dy
               && beta);
    FAKE_NEEDS(dx_is && dx);
    fake.foreign++;
    return 0;
}
