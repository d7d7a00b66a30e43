/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn.h - the functions of cuDNN that the variants cudnn call, and what the variants share.
 *
 * The declarations are our own, after NVIDIA's cuDNN manual. Tensor and filter descriptors are both
 * pointers, so that the three directions of a convolution have one signature.
 */
#ifndef VN_CUDNN_H
#define VN_CUDNN_H

#include "core.h"
#include "backends/cuda/driver.h"
#include "prepared.h"

typedef int   cudnnStatus;                          /* 0: success */
typedef void *cudnnHandle, *cudnnDescriptor;
typedef struct {                                    /* cudnnConvolution*AlgoPerf_t, all alike */
    int         algorithm;
    cudnnStatus status;
    float       milliseconds;
    size_t      workspace;
    int         determinism, math, reserved[3];
} cudnnFound;

enum { CUDNN_NOT_SUPPORTED = 9 };
enum { CUDNN_F32 = 0, CUDNN_F64 = 1, CUDNN_F16 = 2, CUDNN_BF16 = 9 };               /* cudnnDataType_t */
enum { CUDNN_NCHW = 0, CUDNN_NHWC = 1, CUDNN_CROSS_CORRELATION = 1 };
enum { CUDNN_DEFAULT_MATH = 0, CUDNN_TENSOR_OP = 1, CUDNN_TENSOR_OP_CONVERTING = 2, CUDNN_FMA = 3 };
enum { CUDNN_ACCURATE = 1, CUDNN_LOG = 2, CUDNN_INSTANCE = 0, CUDNN_CHANNEL = 1 };   /* of softmax */

#define VN_CUDNN_SEARCH (cudnnHandle h, cudnnDescriptor first, cudnnDescriptor second, cudnnDescriptor conv, \
                         cudnnDescriptor third, int wanted, int *found, cudnnFound *out)
#define VN_CUDNN_CONVOLVE (cudnnHandle h, const void *alpha, cudnnDescriptor first, const void *a,        \
                           cudnnDescriptor second, const void *b, cudnnDescriptor conv, int algorithm,    \
                           void *workspace, size_t bytes, const void *beta, cudnnDescriptor third, void *c)

#define VN_CUDNN_MAP(F) \
    F(size_t,       GetVersion,      cudnnGetVersion,                               (void))                 \
    F(const char *, GetErrorString,  cudnnGetErrorString,                           (cudnnStatus e))        \
    F(cudnnStatus,  Create,          cudnnCreate,                                   (cudnnHandle *out))     \
    F(cudnnStatus,  Destroy,         cudnnDestroy,                                  (cudnnHandle h))        \
    F(cudnnStatus,  SetStream,       cudnnSetStream, (cudnnHandle h, CUstream s))                           \
    F(cudnnStatus,  TensorCreate,    cudnnCreateTensorDescriptor,                   (cudnnDescriptor *out)) \
    F(cudnnStatus,  TensorDestroy,   cudnnDestroyTensorDescriptor,                  (cudnnDescriptor d))    \
    F(cudnnStatus,  TensorSet,       cudnnSetTensorNdDescriptor, (cudnnDescriptor d, int type, int rank,    \
        const int *extent, const int *stride))                                                              \
    F(cudnnStatus,  FilterCreate,    cudnnCreateFilterDescriptor,                   (cudnnDescriptor *out)) \
    F(cudnnStatus,  FilterDestroy,   cudnnDestroyFilterDescriptor,                  (cudnnDescriptor d))    \
    F(cudnnStatus,  FilterSet,       cudnnSetFilterNdDescriptor, (cudnnDescriptor d, int type, int order,   \
        int rank, const int *extent))                                                                       \
    F(cudnnStatus,  ConvCreate,      cudnnCreateConvolutionDescriptor,              (cudnnDescriptor *out)) \
    F(cudnnStatus,  ConvDestroy,     cudnnDestroyConvolutionDescriptor,             (cudnnDescriptor d))    \
    F(cudnnStatus,  ConvSet,         cudnnSetConvolutionNdDescriptor, (cudnnDescriptor d, int dims,         \
        const int *pad, const int *stride, const int *dilation, int mode, int type))                        \
    F(cudnnStatus,  ConvSetGroups,   cudnnSetConvolutionGroupCount, (cudnnDescriptor d, int groups))        \
    F(cudnnStatus,  ConvSetMath,     cudnnSetConvolutionMathType, (cudnnDescriptor d, int math))            \
    F(cudnnStatus,  FindForward,     cudnnFindConvolutionForwardAlgorithm,          VN_CUDNN_SEARCH)        \
    F(cudnnStatus,  FindData,        cudnnFindConvolutionBackwardDataAlgorithm,     VN_CUDNN_SEARCH)        \
    F(cudnnStatus,  FindFilter,      cudnnFindConvolutionBackwardFilterAlgorithm,   VN_CUDNN_SEARCH)        \
    F(cudnnStatus,  GuessForward,    cudnnGetConvolutionForwardAlgorithm_v7,        VN_CUDNN_SEARCH)        \
    F(cudnnStatus,  GuessData,       cudnnGetConvolutionBackwardDataAlgorithm_v7,   VN_CUDNN_SEARCH)        \
    F(cudnnStatus,  GuessFilter,     cudnnGetConvolutionBackwardFilterAlgorithm_v7, VN_CUDNN_SEARCH)        \
    F(cudnnStatus,  Forward,         cudnnConvolutionForward,                       VN_CUDNN_CONVOLVE)      \
    F(cudnnStatus,  BackwardData,    cudnnConvolutionBackwardData,                  VN_CUDNN_CONVOLVE)      \
    F(cudnnStatus,  BackwardFilter,  cudnnConvolutionBackwardFilter,                VN_CUDNN_CONVOLVE)      \
    F(cudnnStatus,  ActivationCreate,  cudnnCreateActivationDescriptor,             (cudnnDescriptor *out)) \
    F(cudnnStatus,  ActivationDestroy, cudnnDestroyActivationDescriptor,            (cudnnDescriptor d))    \
    F(cudnnStatus,  ActivationSet,   cudnnSetActivationDescriptor, (cudnnDescriptor d, int mode, int nan,   \
        double coefficient))                                                                                \
    F(cudnnStatus,  Fused,           cudnnConvolutionBiasActivationForward, (cudnnHandle h,                 \
        const void *alpha, cudnnDescriptor dx, const void *x, cudnnDescriptor dw, const void *w,            \
        cudnnDescriptor conv, int algorithm, void *workspace, size_t bytes, const void *beta,               \
        cudnnDescriptor dz, const void *z, cudnnDescriptor dbias, const void *bias,                         \
        cudnnDescriptor activation, cudnnDescriptor dy, void *y))                                           \
    F(cudnnStatus,  BackendCreate,   cudnnBackendCreateDescriptor, (int kind, cudnnDescriptor *out))        \
    F(cudnnStatus,  BackendDestroy,  cudnnBackendDestroyDescriptor,                 (cudnnDescriptor d))    \
    F(cudnnStatus,  BackendFinalize, cudnnBackendFinalize,                          (cudnnDescriptor d))    \
    F(cudnnStatus,  BackendSet,      cudnnBackendSetAttribute, (cudnnDescriptor d, int name, int type,      \
        int64_t count, const void *at))                                                                     \
    F(cudnnStatus,  BackendGet,      cudnnBackendGetAttribute, (cudnnDescriptor d, int name, int type,      \
        int64_t room, int64_t *count, void *to))                                                            \
    F(cudnnStatus,  BackendExecute,  cudnnBackendExecute, (cudnnHandle h, cudnnDescriptor plan,             \
        cudnnDescriptor pack))                                                                              \
    F(cudnnStatus,  Softmax,         cudnnSoftmaxForward, (cudnnHandle h, int algorithm, int mode,          \
        const void *alpha, cudnnDescriptor dx, const void *x, const void *beta, cudnnDescriptor dy,         \
        void *y))                                                                                           \
    F(cudnnStatus,  SoftmaxBackward, cudnnSoftmaxBackward, (cudnnHandle h, int algorithm, int mode,         \
        const void *alpha, cudnnDescriptor y_is, const void *y, cudnnDescriptor dy_is, const void *dy,      \
        const void *beta, cudnnDescriptor dx_is, void *dx))

struct vn_cudnn_functions { VN_CUDNN_MAP(VN_POINTER) };

/* cuDNN's state on a queue: two threads may not use one handle at once. */
struct vn_cudnn {
    struct vn_attachment head;
    cudnnHandle          handle;
    cudnnDescriptor      tensor[3];   /* of a softmax */
    struct vn_prepared_list      plans;       /* of convolutions */
};

union vn_cudnn_scalar { float f; double d; };

/* NULL if the library is there, else a sentence that says what to install. */
const char *vn__cudnn_missing(void);
extern struct vn_cudnn_functions vn__cudnn;
vn_status   vn__cudnn_status(cudnnStatus e, const char *call);
vn_status   vn__cudnn_attach(struct vn_cudnn **out, vn_queue *q);

int         vn__cudnn_type(vn_type t);
union vn_cudnn_scalar vn__cudnn_scalar(vn_type t, double v);
/* cuDNN's kernels load 16-byte vectors. */
enum { VN_CUDNN_ALIGNED = 16 };
int         vn__cudnn_starts_aligned(const vn_tensor *t);
vn_status   vn__cudnn_pointer(void **out, const vn_tensor *t, const char *name);

/* cudnn_conv.c */
void        vn__cudnn_plan_close(struct vn_prepared *p);
extern const size_t vn__cudnn_key_bytes;
#endif
