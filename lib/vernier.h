/* SPDX-License-Identifier: Apache-2.0
 *
 * vernier.h - GEMM, convolution, softmax, attention and cross-entropy on any OpenCL device, by one API.
 *
 * In three steps: open a device, put data in its buffers, call an operation.
 *
 *     vn_device *dev;
 *     vn_queue  *q;
 *
 *     if (vn_device_open(&dev, NULL) || vn_queue_open(&q, dev))
 *         errx(1, "%s", vn_last_error());
 *     ...
 *     vn_gemm(q, 1.0, vn_matrix(a, VN_F32, m, k), vn_matrix(b, VN_F32, k, n),
 *                0.0, vn_matrix(c, VN_F32, m, n), NULL);
 *     vn_queue_finish(q);
 *
 * An operation queues its work and returns; vn_queue_finish() waits for it.
 * Every call returns VN_OK, or another status and a sentence in vn_last_error().
 * After a failed call nothing was queued and no output was touched.
 * A device may be used by many threads at once; a queue, by one at a time.
 * After fork(), a child that did not exec gets VN_FAILED from every call, if its
 * parent had listed or opened a device.
 */
#ifndef VERNIER_H
#define VERNIER_H

#include <stddef.h>
#include <stdint.h>

#define VN_VERSION_MAJOR 0
#define VN_VERSION_MINOR 1
#define VN_VERSION_PATCH 0

#ifndef VN_API
#  if defined(__GNUC__)
#    define VN_API __attribute__((visibility("default")))
#  else
#    define VN_API
#  endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": of the library that is running, which may be newer than this header. */
VN_API const char *vn_version(void);

/* ---- status ------------------------------------------------------------- */

/* One list makes both the enum and the names: they cannot drift apart. */
#define VN_STATUS_MAP(_) \
    _(OK,          "no error")                                  \
    _(INVALID,     "an argument makes no sense")                \
    _(UNSUPPORTED, "this device cannot do that")                \
    _(NO_DEVICE,   "there is no such device")                   \
    _(NO_MEMORY,   "host or device memory ran out")             \
    _(FAILED,      "the device or its driver failed")

typedef enum {
#define VN_STATUS(name, meaning) VN_##name,
    VN_STATUS_MAP(VN_STATUS)
#undef VN_STATUS
    VN_STATUS_COUNT
} vn_status;

VN_API const char *vn_status_name(vn_status s);     /* "VN_INVALID" */
VN_API const char *vn_status_meaning(vn_status s);  /* "an argument makes no sense" */
VN_API const char *vn_last_error(void);             /* this thread's; "" after success */

/* ---- devices ------------------------------------------------------------ */

typedef struct vn_device vn_device;

typedef struct {
    char    spec[32];                     /* "opencl:0", "cuda:0": what vn_device_open() takes */
    char    name[128], vendor[64], driver[64];
    char    platform[64];                 /* the implementation: "Portable Computing Language" */
    int     compute_units;
    int64_t memory, local_memory;         /* bytes; local: of one work-group */
    int     is_cpu;
    int     has_f64;
    char    uuid[36], pci[16];            /* "0123...cdef" and "0000:17:00.0" where known, else "":
                                             the same for one GPU seen through two backends */
} vn_device_info;

VN_API int       vn_device_count(void);
VN_API vn_status vn_device_get(vn_device_info *out, int index);
VN_API vn_status vn_device_describe(vn_device_info *out, const vn_device *d);

/* Opens a device by its spec, by a word of its name or platform ("H100", "rusticl"),
 * by "cpu" or "gpu", or, with NULL, $VERNIER_DEVICE if set and else the fastest. */
VN_API vn_status vn_device_open(vn_device **out, const char *spec);
VN_API void      vn_device_close(vn_device *d);  /* takes NULL, as every close does */

/* ---- queues and events -------------------------------------------------- */

typedef struct vn_queue vn_queue;         /* runs what it is given in order */
typedef struct vn_event vn_event;         /* a point in a queue's work */

VN_API vn_status vn_queue_open(vn_queue **out, vn_device *d);
VN_API void      vn_queue_close(vn_queue *q);       /* waits for its work first */
VN_API vn_status vn_queue_finish(vn_queue *q);

VN_API vn_status vn_event_record(vn_event **out, vn_queue *q);
VN_API vn_status vn_queue_wait(vn_queue *q, vn_event *e);      /* also of another queue */
VN_API vn_status vn_event_finish(vn_event *e);      /* the host waits for it */
/* Seconds of device time between two events; waits for both. */
VN_API vn_status vn_event_seconds(double *out, vn_event *from, vn_event *to);
VN_API void      vn_event_close(vn_event *e);

/* Scratch memory belongs to the queue: it grows to the largest operation seen, in steps
 * of 1 MiB, so a warmed-up queue allocates nothing.  A limit makes operations choose a
 * variant that fits inside it; 0 is a limit too.  Starts without one (SIZE_MAX).  */
VN_API vn_status vn_queue_limit_workspace(vn_queue *q, size_t bytes);
VN_API size_t    vn_queue_workspace(const vn_queue *q);

/* Until vn_queue_prepare(q, 0), operations on q check their arguments, choose a variant, build its
 * kernels and allocate scratch memory, but queue nothing: no output changes.  Asked again after that,
 * with the same arguments, each only launches what was prepared.  Buffers need not hold data yet.
 * vn_pack_open(), vn_write() and vn_read() do their work as ever.  Some drivers (PoCL) compile once more
 * at a kernel's first launch, and keep that on disk: `vernier warm` runs each problem once, so that a
 * later process finds that, too.                                                                     */
VN_API vn_status vn_queue_prepare(vn_queue *q, int on);

/* How the last operation ran: one JSON object with its variant, parameters and
 * where they came from, flops, bytes, workspace, and why others were passed over.
 * Valid until the queue's next call; "{}" before the first operation.           */
VN_API const char *vn_queue_explain(vn_queue *q);

/* ---- buffers and views -------------------------------------------------- */

typedef struct vn_buffer vn_buffer;

VN_API vn_status vn_buffer_open(vn_buffer **out, vn_device *d, size_t bytes);
VN_API void      vn_buffer_close(vn_buffer *b);  /* work already queued still sees it */
/* A buffer that is the host's memory itself, without a copy: on CPUs.  Other devices, whose kernels do not
 * work in that memory, return VN_UNSUPPORTED.  `memory` is a multiple of VN_HOST_ALIGN bytes, as
 * posix_memalign() gives; of an array elsewhere it is the multiple below, from which the array's views
 * start later.  The memory must outlive the buffer and the work on it.  The host sees results after
 * vn_queue_finish() or vn_event_finish(), and must not write while work that uses the memory is in flight. */
#define VN_HOST_ALIGN 128
VN_API vn_status vn_buffer_open_host(vn_buffer **out, vn_device *d, void *memory, size_t bytes);

/* Makes a buffer of the caller's the queue's scratch memory, and its bytes the limit; NULL: the queue's own
 * again, without a limit.  Nothing else may use the buffer while work of the queue is in flight, no operand
 * may be in it, and it stays open until another takes its place or the queue is closed.  Its memory begins at
 * a multiple of 256 bytes, as that of vn_buffer_open() does.                                               */
VN_API vn_status vn_queue_use_workspace(vn_queue *q, vn_buffer *b);

/* Both wait: the host memory may be reused when they return. */
VN_API vn_status vn_write(vn_queue *q, vn_buffer *to, size_t at, const void *from, size_t bytes);
VN_API vn_status vn_read(vn_queue *q, void *to, const vn_buffer *from, size_t at, size_t bytes);
/* The same without waiting: the host memory belongs to the queue until vn_queue_finish(), or
 * vn_event_finish() of an event that is recorded after it.                                   */
VN_API vn_status vn_write_async(vn_queue *q, vn_buffer *to, size_t at, const void *from, size_t bytes);
VN_API vn_status vn_read_async(vn_queue *q, void *to, const vn_buffer *from, size_t at, size_t bytes);
/* Inside the device; queued.  The two ranges must not share memory. */
VN_API vn_status vn_copy(vn_queue *q, vn_buffer *to, size_t to_at, const vn_buffer *from, size_t from_at,
                         size_t bytes);
/* Repeats a pattern of 1, 2, 4 or 8 bytes, such as an element, over `bytes` bytes from byte `at` on,
 * multiples of its size; queued.  The pattern may be reused at once.                              */
VN_API vn_status vn_fill(vn_queue *q, vn_buffer *to, size_t at, size_t bytes, const void *pattern,
                         size_t size);

/* f16 is IEEE binary16, bf16 the upper half of a binary32.  Every device has
 * f32, f16 and bf16 (16-bit types are stored so, and computed in f32).         */
typedef enum { VN_F32, VN_F16, VN_BF16, VN_F64, VN_TYPE_COUNT } vn_type;

VN_API size_t      vn_type_bytes(vn_type t);        /* 0 for an unknown type */
VN_API const char *vn_type_name(vn_type t);         /* "f32" */

/* A view of a buffer: a start, a shape, and a step along each dimension, all
 * counted in elements.  Swapping two strides transposes; a stride of 0 broadcasts
 * (inputs only); leading dimensions are batches.  Strides are not negative.
 *
 * Where an output must not overlap an operand, no element of it may share a byte with
 * one of that operand; between them they may alternate as they like, as channel slices
 * of one tensor do.  Buffers that lie in one memory are told as such: two handles of one
 * cl_mem, sub-buffers and what they are parts of, memory of the host that buffers use,
 * addresses of CUDA.  This is decided exactly where the strides of both views, taken
 * together, nest: each a multiple of the next smaller one, or larger than what the smaller
 * ones span; and for most others.  Views whose strides leave too much to be searched are
 * refused: they "may overlap".
 *
 * What makes views does not fail: of a view that there is not (a slice past the end, an order that is
 * no permutation) the operation that gets it says that an extent of it is -1.                      */
#define VN_RANK 6
typedef struct {
    vn_buffer *buffer;
    vn_type    type;
    int        rank;
    int64_t    start;
    int64_t    extent[VN_RANK];
    int64_t    stride[VN_RANK];
} vn_tensor;

VN_API vn_tensor vn_matrix(vn_buffer *b, vn_type t, int64_t rows, int64_t cols);
VN_API vn_tensor vn_packed(vn_buffer *b, vn_type t, int rank, const int64_t *extent);
VN_API vn_tensor vn_transpose(vn_tensor t);      /* swaps the last two dimensions */
/* Rows that begin every ld elements, the leading dimension of BLAS; ld is at least cols. */
VN_API vn_tensor vn_matrix_ld(vn_buffer *b, vn_type t, int64_t rows, int64_t cols, int64_t ld);
/* The elements from, from + 1 ... from + count - 1 along a dimension, counted from 0. */
VN_API vn_tensor vn_slice(vn_tensor t, int dim, int64_t from, int64_t count);
/* Dimension i of the result is dimension order[i] of t: { 0, 3, 1, 2 } makes NCHW of NHWC. */
VN_API vn_tensor vn_permute(vn_tensor t, const int *order);

/* ---- operations --------------------------------------------------------- */

typedef enum {
    VN_MATH_DEFAULT,      /* f32 no less accurate than f32 fused multiply-adds;
                             16-bit types accumulate in f32 */
    VN_MATH_TF32,         /* f32 operands may be rounded, down to 10 bits of mantissa */
    VN_MATH_BITWISE,      /* the same bits on every device and backend, save the sign of a
                             zero and the payload of a NaN: one fixed order of sums, fused
                             multiply-adds, own exponential; all of it in doc/bitwise.md */
    VN_MATH_COUNT
} vn_math;

/* GELU is 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); SiLU is x sigmoid(x).
 *
 * Their relative error, before the result is rounded to the type of C, is below 20 units in the last
 * place of f32 (f64) times max(1, |x|), for GELU times max(1, |x|^3).  Unless the math is VN_MATH_BITWISE, a
 * GPU's own exponential and reciprocal are used where C has 16 bits, those of NVIDIA's and AMD's GPUs also
 * where it is f32.                                                                                    */
typedef enum {
    VN_IDENTITY, VN_RELU, VN_GELU, VN_SILU, VN_SIGMOID, VN_TANH, VN_ACTIVATION_COUNT
} vn_activation;

typedef struct vn_pack vn_pack;   /* B in the packed layout of a variant, for many products */

/* Options: NULL, or a struct whose zeros mean the defaults.  Sentences name its members "options.bias".
 *
 * NaN and the infinities as alpha, beta or scale are multiplied by as IEEE 754 says, an empty sum (K is 0)
 * being 0: NaN makes all elements that it scales NaN.                                                    */
typedef struct {
    vn_math        math;
    vn_tensor      bias;          /* added before the activation; shape of C, or with extents
                                     of 1 that broadcast, or N elements (rank 1);
                                     rank 0 or buffer NULL: none */
    vn_activation  activation;
    uint32_t       size;          /* sizeof(vn_gemm_options); 0: what follows packed_b is not read */
    const char    *variant;       /* run this one or fail: "gemm", "gemm_cpu"... */
    const vn_pack *packed_b;      /* B, packed; or NULL */
    vn_tensor      residual;      /* what beta multiplies, in place of C; shapes as of the bias */
    vn_tensor      scale;         /* multiplies alpha A B, element by element; shapes as of the bias;
                                     f32, or f64 where C is */
} vn_gemm_options;

/* C := act(alpha scale A B + beta R + bias), R being the residual if there is one, else C.
 *
 * A is M x K, B is K x N, C is M x N, of one rank, with the same leading batches; batch
 * dimensions of A and B broadcast (extent 1 or stride 0).  All are of one type; with A and B
 * of 16 bits, C may be f32, and bias and residual may be f32 or of the type of A or C.
 * R is not read when beta is 0, A and B not when alpha is 0 or K is 0;
 * C must not overlap A, B or bias, nor itself, nor the residual unless that is the same view.
 * Nothing to do (M, N or a batch of 0) is VN_OK.
 *
 * VN_INVALID      the shapes or types disagree, or a view leaves its buffer
 * VN_UNSUPPORTED  the device cannot compute in this type, or the variant asked
 *                 for cannot do this problem                                   */
VN_API vn_status vn_gemm(vn_queue *q, double alpha, vn_tensor a, vn_tensor b,
                                      double beta,  vn_tensor c, const vn_gemm_options *o);

/* Packs B, such as a layer's weights, for products whose A has about m rows, with the math and
 * variant of the options.  A product that is given the pack in `packed_b` is also given B, the
 * very same view, and its result is right whatever its M and options: products that would not
 * gain ignore the pack and read B.  So B's buffer must stay open, and must not be written to.
 *
 * vn_pack_bytes() is the memory that the pack takes, besides the queue's workspace: 0 where
 * packing does not help.  Packing is queued: another queue waits for an event after
 * vn_pack_open().  A pack may be closed once its last product is queued.  A weight on the left
 * packs as its transpose: C^T = B^T A^T.                                                       */
VN_API vn_status vn_pack_open(vn_pack **out, vn_queue *q, vn_tensor b, int64_t m, const vn_gemm_options *o);
VN_API void      vn_pack_close(vn_pack *p);
VN_API size_t    vn_pack_bytes(const vn_pack *p);

typedef struct {
    int           stride[3], dilation[3];          /* 0 means 1; [0] is the outermost spatial one */
    int           pad_before[3], pad_after[3];     /* zeros around x */
    int           groups;                          /* 0 means 1; C for depthwise */
    vn_math       math;
    vn_tensor     bias;           /* K elements (rank 1), or the shape of the output with
                                     extents of 1 that broadcast; rank 0 or buffer NULL: none */
    vn_activation activation;
    uint32_t      size;           /* sizeof(vn_conv_options); 0: what follows variant is not read */
    const char   *variant;
    vn_tensor     residual;       /* what beta multiplies, in place of the output; shapes as of the bias */
    const vn_pack *packed_w;      /* w, packed by vn_conv_pack_open(); or NULL */
} vn_conv_options;

/* Convolution, without flipping the filter, over one to three spatial dimensions:
 *
 *   forward          y  := act(alpha conv(x, w) + beta R + bias)
 *   backward data    dx := act(alpha conv^T(dy, w) + beta R + bias)   (transposed convolution)
 *   backward filter  dw := act(alpha (gradient of w) + beta R + bias)
 *
 * x is N x C x spatial, w is K x C/groups x spatial, y is N x K x spatial, always
 * in this order; NCHW or NHWC is a matter of their strides.  The extents of y are
 * floor((in + before + after - dilation (filter - 1) - 1) / stride) + 1.
 * R is the residual if there is one, else the output.  Where a filter reaches over more than the padded
 * input, that extent of y is 0.
 *
 * The inputs are of one type, and so is the output; with inputs of 16 bits it may be f32, as gradients of
 * weights are, and bias and residual may be f32 or of the type of the inputs or the output.  The output must
 * not overlap an input, the bias, nor the residual unless that is the same view.  R is not read when beta
 * is 0, the inputs not when alpha is 0.  Statuses as of vn_gemm().
 *
 * The same call gives the same bits each time on one device, in every direction: sums are never added in an
 * order that depends on which work finishes first.                                                      */
VN_API vn_status vn_conv_forward(vn_queue *q, double alpha, vn_tensor x, vn_tensor w,
                                              double beta, vn_tensor y, const vn_conv_options *o);
VN_API vn_status vn_conv_backward_data(vn_queue *q, double alpha, vn_tensor dy, vn_tensor w,
                                                    double beta, vn_tensor dx, const vn_conv_options *o);
VN_API vn_status vn_conv_backward_filter(vn_queue *q, double alpha, vn_tensor x, vn_tensor dy,
                                                      double beta, vn_tensor dw, const vn_conv_options *o);

/* Packs w, a filter used many times, for convolutions like vn_conv_forward(q, 1, x, w, 0, y, o), or, in the
 * other direction, vn_conv_backward_data(q, 1, y, w, 0, x, o): x and y are the tensors of such a call, and
 * nothing of them is read or written.  A convolution that is given the pack in `packed_w` is also given w,
 * the very same view, and its result is right whatever its direction, extents and options: those that would
 * not gain ignore the pack and read w.  So w's buffer must stay open, and must not be written to.
 * vn_conv_backward_filter() reads no filter, and refuses a pack.
 *
 * vn_pack_bytes() and vn_pack_close() are as of vn_pack_open(), and so is what is queued.                  */
typedef enum { VN_CONV_FORWARD, VN_CONV_BACKWARD_DATA, VN_CONV_DIRECTION_COUNT } vn_conv_direction;

VN_API vn_status vn_conv_pack_open(vn_pack **out, vn_queue *q, vn_conv_direction d, vn_tensor x, vn_tensor w,
                                   vn_tensor y, const vn_conv_options *o);

typedef struct {
    int         axis;             /* counted from the last: 0 is the last, 1 the one before */
    int         log;              /* log-softmax */
    double      scale;            /* of x, before the mask; 0 means 1 */
    vn_tensor   mask;             /* added to scaled x; shape of x, or with extents of 1 that
                                     broadcast; rank 0 or buffer NULL: none */
    int         causal;           /* element j of the axis is masked where j > i, i counting
                                     along the dimension before the axis (needs axis 0, rank 2) */
    const char *variant;
} vn_softmax_options;

/* y := exp(z - max z) / sum exp(z - max z) along the axis, z = scale x + mask, or the
 * logarithm of that.  x, y and mask have one type; y may be x itself (the same view), and
 * must not overlap it otherwise, nor the mask.  Statuses as of vn_gemm().
 *
 * An element of z that is -infinity contributes nothing and gives 0 (log: -infinity).  A
 * fully masked row is all 0 (log: all -infinity).  A NaN or a +infinity in z makes all of
 * its row NaN; the elements that the causal mask hides have no influence, and are 0 (log:
 * -infinity) whatever x, the mask and the scale are.  Of f32, f16 and bf16 an exponential that is
 * less than 2^-126 of the largest in its row may be taken as 0.                          */
VN_API vn_status vn_softmax(vn_queue *q, vn_tensor x, vn_tensor y, const vn_softmax_options *o);

/* dx := scale y (dy - sum dy y), or, of the log-softmax, scale (dy - exp(y) sum dy);
 * y is what vn_softmax() gave.  Where causal masks, dx is 0; the mask is ignored.
 * dx may be dy itself (the same view), and must not overlap y.                       */
VN_API vn_status vn_softmax_backward(vn_queue *q, vn_tensor y, vn_tensor dy, vn_tensor dx,
                                     const vn_softmax_options *o);

typedef enum {
    VN_CAUSAL_NONE,
    VN_CAUSAL_LAST,               /* the last query stands at the last key: query i at key i + Sk - Sq */
    VN_CAUSAL_FIRST,              /* the first query stands at the first key: query i at key i */
    VN_CAUSAL_COUNT
} vn_causal;

/* Integers of the host's byte order in a buffer: start and stride are counted in integers. */
typedef struct {
    vn_buffer *buffer;
    int64_t    start, count, stride;
    int        bytes;             /* of each: 4 or 8, with a sign */
    int        unused;            /* 0 */
} vn_ints;

typedef struct {
    size_t      size;             /* sizeof(vn_attention_options), or 0 */
    double      scale;            /* of Q K^T; 0 means 1 / sqrt(D) */
    vn_causal   causal;           /* a query sees the key at whose place it stands, and those before */
    int64_t     window;           /* with causal: of these it sees the last so many; 0: all */
    double      softcap;          /* scores s become softcap tanh(s / softcap), before the mask; 0: none */
    vn_tensor   mask;             /* added to the scores; B x H x Sq x Sk, or with extents of 1 that
                                     broadcast; rank 0 or buffer NULL: none */
    vn_tensor   lse;              /* output, B x H x Sq, f32 (f64 beside f64): the logarithm of the sum of
                                     the exponentials of a row's scores; rank 0 or buffer NULL: none */
    vn_tensor   sinks;            /* H logits, f32 (f64 beside f64): the exponential of its head's is added to
                                     the sum of a row, and to nothing else; rank 0 or buffer NULL: none */
    vn_ints     key_lengths;      /* B integers of 4 bytes: the keys that a batch has, the first ones; they
                                     are limited to 0 and Sk; buffer NULL: Sk each */
    vn_ints     query_lengths;    /* likewise, of queries, limited to 0 and Sq; rows behind are 0, their lse
                                     -infinity */
    vn_ints     pages;            /* B x n integers of 4 bytes: the pages that have the keys and values of a
                                     batch, in order; buffer NULL: they are in no pages */
    vn_math     math;             /* not VN_MATH_BITWISE, which is VN_UNSUPPORTED */
    const char *variant;
} vn_attention_options;

/* out := softmax(scores) values, by heads; scores = scale queries keys^T, capped, plus the mask.
 *
 *   queries   B x H  x Sq x D        out   B x H x Sq x Dv
 *   keys      B x Hk x Sk x D        H is a multiple of Hk (grouped queries): head h reads head
 *   values    B x Hk x Sk x Dv       h Hk / H of keys and values
 *
 * All have one type, and any strides; D and Dv are 1 to 256.  The scores are never in memory: what a call
 * needs beside its operands grows with Sq at most.  The outputs must not overlap an input or each other.
 *
 * With pages, keys are P x Hk x page x D and values P x Hk x page x Dv: P pages, each of so many keys of all
 * heads; Sk is n page, and key n of batch b is key n % page of the page whose number is entry n / page of the
 * batch's n.  A number that is no page's is taken for the nearest one that is: nothing outside of keys and
 * values is read.
 *
 * With lengths, VN_CAUSAL_LAST puts the last query that a batch has at the last key that it has.  Keys and
 * values behind the length of a batch have no influence, NaN among them; entries of pages that have none but
 * such keys are not looked at.
 *
 * A query that sees no key, or whose scores are all -infinity, gives 0, and -infinity as lse, or its sink.
 * A NaN or +infinity among the scores that a query sees makes its row NaN.  Scores of keys that it does not
 * see have no influence; but a NaN or an infinity in a row of values that some query of the call sees may
 * make rows NaN that do not see it, since it is multiplied by a weight of 0.  Statuses as of vn_gemm(). */
VN_API vn_status vn_attention(vn_queue *q, vn_tensor queries, vn_tensor keys, vn_tensor values,
                              vn_tensor out, const vn_attention_options *o);

/* The gradients of vn_attention(), of the gradient d_out of its result:
 *
 *     P         := exp(scores - lse)              scores, out, lse and all options but lse as of that call
 *     dS        := P (d_out values^T - row sums of d_out out)     with a softcap times 1 - tanh^2
 *     d_queries := scale dS keys                  of the shape of queries
 *     d_keys    := scale dS^T queries             of the shape of keys, summed over the heads that read them
 *     d_values  := P^T d_out                      of the shape of values, likewise
 *
 * out and options.lse are inputs here, as that call left them; d_out has the shape of out.  A gradient of
 * rank 0 or without a buffer is not computed; one at least must be there.  None may overlap an input or
 * another.  The same call gives the same bits.  Beside its operands a call needs at most 8 bytes for each
 * row of queries, and 512 for each compute unit; on CPUs the queries in f32 (f64 beside f64), rounded up in
 * blocks, and as often as it takes to give each compute unit four blocks of heads at most.
 *
 * A query that sees nothing contributes nothing, and its gradient is 0.  A NaN or an infinity in an operand
 * makes those elements NaN that depend on it; and it may make others of its heads NaN, also where it is
 * hidden, since it is multiplied by 0.  Statuses as of vn_gemm().                                        */
VN_API vn_status vn_attention_backward(vn_queue *q, vn_tensor queries, vn_tensor keys, vn_tensor values,
                                       vn_tensor out, vn_tensor d_out, vn_tensor d_queries,
                                       vn_tensor d_keys, vn_tensor d_values,
                                       const vn_attention_options *o);

typedef struct {
    size_t      size;             /* sizeof(vn_cross_entropy_options), or 0 */
    double      smoothing;        /* of labels, 0 to 1: the share of all classes alike */
    double      z_loss;           /* z_loss lse^2 is added to the loss */
    int64_t     ignore;           /* rows with this target have no loss; 0 means -100 */
    vn_tensor   weights;          /* each row's, which its loss and gradient are multiplied by: rank 1, an
                                     extent of 1 broadcasts; rank 0 or buffer NULL: 1 */
    vn_tensor   lse;              /* out: lse of each row, rank 1; rank 0 or buffer NULL: not wanted */
    const char *variant;
} vn_cross_entropy_options;

/* The loss of rows of logits x, of which row r belongs to class targets[r], and its gradient:
 *
 *     lse[r]   := log sum exp x[r]
 *     loss[r]  := weights[r] (lse - (1 - smoothing) x[r, target] - smoothing / classes sum x[r]
 *                             + z_loss lse^2)
 *     dx[r, j] := weights[r] ((1 + 2 z_loss lse) exp(x[r, j] - lse) - smoothing / classes
 *                             - (1 - smoothing) (1 where j is the target, else 0))
 *
 * x is rows x classes, dx likewise and of its type, or of rank 0 where only losses are wanted; it may be x
 * itself (the same view).  loss, weights and lse are f32; where x is f64, f64.  An output must not overlap an
 * input, save dx x, nor another output.  Statuses as of vn_gemm().
 *
 * A row with the target to be ignored has loss 0 and gradient 0, whatever is in it.  One whose target is
 * neither that nor a class, from 0 on, has loss NaN and gradient NaN; nothing outside x is read for it.  So
 * has one with a NaN or a +infinity in it, or with nothing but -infinity.  A class of -infinity contributes
 * nothing; as a target its loss is +infinity.  lse is that of x, whatever the target is.                  */
VN_API vn_status vn_cross_entropy(vn_queue *q, vn_tensor x, vn_ints targets, vn_tensor loss, vn_tensor dx,
                                  const vn_cross_entropy_options *o);

#ifdef __cplusplus
}
#endif
#endif
