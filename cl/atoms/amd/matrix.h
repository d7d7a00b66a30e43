/* cl/atoms/amd/matrix.h - matrix instructions of AMD's GPUs: MFMA of CDNA, in waves of 64 lanes; WMMA of
 * RDNA, in waves of 32
 *
 *     ENGINE   on               multiplies                                              accumulates in
 *     908      gfx908           f16 32x32x8, bf16 32x32x4, f32 32x32x2                  f32
 *     90       gfx90a, gfx94x   f16 32x32x8, bf16 32x32x8, f32 32x32x2, f64 16x16x4     f32, f64
 *     11       gfx11            f16 16x16x16, bf16 16x16x16                             f32
 *     12       gfx12            the same, in another layout                             f32
 *
 * Lane l of a wave holds elements of row l % MATRIX_M of A, of column l % MATRIX_N of B, and of
 * column l % MATRIX_N of C. Which k it holds is the same for A and B, and a sum does not depend on
 * the order of k: so each lane loads 16-byte vectors, contiguous along K in local memory, and feeds
 * them to as many instructions as they fill, whatever k the instructions take them for.
 *
 *                 k of MATRIX_K           in local memory the BLK_K elements of a row are
 *     row l % M   +------+------+         contiguous; its 16-byte vectors are swizzled (by xor),
 *                 | l < M| l >= M         so that those of eight consecutive rows lie in
 *                 +------+------+         different banks
 *
 * On gfx90a, MFMA flushes subnormal f16 and bf16 inputs and results to 0.
 *
 * Source: AMD's ISA guides of CDNA, CDNA 2, CDNA 3, RDNA 3 and RDNA 4, sections on matrix
 * instructions; AMD's matrix instruction calculator, for the layouts.
 */
#define MATRIX_KERNEL(items) KERNEL(items)

/* Keeps the compiler from moving instructions across: loads stay before what hides their latency. */
#define MATRIX_FENCE() __builtin_amdgcn_sched_barrier(0)

#if TYPE == TYPE_F16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#if TYPE == TYPE_F32
#define MATRIX_VECTOR 4                                  /* elements in 16 bytes */
#elif TYPE == TYPE_F64
#define MATRIX_VECTOR 2
#else
#define MATRIX_VECTOR 8
#endif
#define MATRIX_VECTORS (BLK_K / MATRIX_VECTOR)

#if MATRIX_VECTORS != 2 && MATRIX_VECTORS != 4 && MATRIX_VECTORS != 8
#error "a row of a slice must be 2, 4 or 8 vectors of 16 bytes"
#endif

/* The offset of element k of row (column) x in a slice of A (B) that is `width` rows (columns) wide. */
DEVICE int matrix_offset(int x, int k, int width)
{
    const int vector = (k / MATRIX_VECTOR) ^
                       (((x * MATRIX_VECTORS / 8) ^ (x * MATRIX_VECTORS / 32)) & (MATRIX_VECTORS - 1));

    (void)width;
    return x * BLK_K + vector * MATRIX_VECTOR + k % MATRIX_VECTOR;
}

/* ---- MFMA ----------------------------------------------------------------------------------- */

#if ENGINE == 908 || ENGINE == 90
#define MATRIX_LANES 64
#define MATRIX_K     (64 / MATRIX_M * MATRIX_VECTOR)     /* one vector of each lane */

#if TYPE == TYPE_F64 && ENGINE == 908
#error "gfx908 has no matrix engine for f64"
#elif TYPE == TYPE_F64
#define MATRIX_M     16
#define MATRIX_ACCUMULATORS 4
#define MATRIX_STEPS 2                          /* instructions of a MATRIX_MULTIPLY */
typedef double2 matrix_fragment;
typedef double4 matrix_accumulators;
#define MATRIX_MULTIPLY(c, a, b)                                                \
    do {                                                                        \
        c = __builtin_amdgcn_mfma_f64_16x16x4f64((a).x, (b).x, c, 0, 0, 0);     \
        c = __builtin_amdgcn_mfma_f64_16x16x4f64((a).y, (b).y, c, 0, 0, 0);     \
    } while (0)
#else
#define MATRIX_M     32
#define MATRIX_ACCUMULATORS 16
typedef float16 matrix_accumulators;
#endif

#if TYPE == TYPE_F32
#define MATRIX_STEPS 4
typedef float4 matrix_fragment;
#define MATRIX_MULTIPLY(c, a, b)                                                \
    do {                                                                        \
        c = __builtin_amdgcn_mfma_f32_32x32x2f32((a).x, (b).x, c, 0, 0, 0);     \
        c = __builtin_amdgcn_mfma_f32_32x32x2f32((a).y, (b).y, c, 0, 0, 0);     \
        c = __builtin_amdgcn_mfma_f32_32x32x2f32((a).z, (b).z, c, 0, 0, 0);     \
        c = __builtin_amdgcn_mfma_f32_32x32x2f32((a).w, (b).w, c, 0, 0, 0);     \
    } while (0)
#elif TYPE == TYPE_F16
#define MATRIX_STEPS 2
typedef uint4 matrix_fragment;
#define MATRIX_MULTIPLY(c, a, b)                                                                    \
    do {                                                                                            \
        c = __builtin_amdgcn_mfma_f32_32x32x8f16(as_half4((a).lo), as_half4((b).lo), c, 0, 0, 0);   \
        c = __builtin_amdgcn_mfma_f32_32x32x8f16(as_half4((a).hi), as_half4((b).hi), c, 0, 0, 0);   \
    } while (0)
#elif TYPE == TYPE_BF16 && ENGINE == 90
#define MATRIX_STEPS 2
typedef uint4 matrix_fragment;
#define MATRIX_MULTIPLY(c, a, b)                                                                          \
    do {                                                                                                  \
        c = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(as_short4((a).lo), as_short4((b).lo), c, 0, 0, 0);   \
        c = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(as_short4((a).hi), as_short4((b).hi), c, 0, 0, 0);   \
    } while (0)
#elif TYPE == TYPE_BF16
#define MATRIX_STEPS 4
typedef uint4 matrix_fragment;
#define MATRIX_MULTIPLY(c, a, b)                                                                    \
    do {                                                                                            \
        c = __builtin_amdgcn_mfma_f32_32x32x4bf16(as_short2((a).x), as_short2((b).x), c, 0, 0, 0);  \
        c = __builtin_amdgcn_mfma_f32_32x32x4bf16(as_short2((a).y), as_short2((b).y), c, 0, 0, 0);  \
        c = __builtin_amdgcn_mfma_f32_32x32x4bf16(as_short2((a).z), as_short2((b).z), c, 0, 0, 0);  \
        c = __builtin_amdgcn_mfma_f32_32x32x4bf16(as_short2((a).w), as_short2((b).w), c, 0, 0, 0);  \
    } while (0)
#endif

DEVICE matrix_fragment matrix_load(LOCAL const T *s, int x, int k, int lane)
{
    return *(LOCAL const matrix_fragment *)(s + matrix_offset(x + lane % MATRIX_M,
                                                              k + lane / MATRIX_M * MATRIX_VECTOR, 0));
}

/* The row of C of a lane's accumulator i. */
DEVICE int matrix_row(int i, int lane)
{
#if TYPE == TYPE_F64
    return i * 4 + lane / 16;
#else
    return i / 4 * 8 + lane / 32 * 4 + i % 4;
#endif
}

/* ---- WMMA ----------------------------------------------------------------------------------- */

#elif ENGINE == 11 || ENGINE == 12
#if TYPE != TYPE_F16 && TYPE != TYPE_BF16
#error "WMMA multiplies f16 and bf16"
#endif
#define MATRIX_LANES 32
#define MATRIX_M     16
#define MATRIX_K     16
#define MATRIX_ACCUMULATORS 8
#define MATRIX_STEPS 1
typedef float8 matrix_accumulators;

#if ENGINE == 11
typedef uint8 matrix_fragment;
#if TYPE == TYPE_F16
#define MATRIX_MULTIPLY(c, a, b) c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16(a), as_half16(b), c)
#else
#define MATRIX_MULTIPLY(c, a, b) \
    c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16(a), as_short16(b), c)
#endif

/* Both halves of the wave load the whole row. */
DEVICE matrix_fragment matrix_load(LOCAL const T *s, int x, int k, int lane)
{
    LOCAL const T *low  = s + matrix_offset(x + lane % 16, k, 0);
    LOCAL const T *high = s + matrix_offset(x + lane % 16, k + MATRIX_VECTOR, 0);

    return (matrix_fragment)(*(LOCAL const uint4 *)low, *(LOCAL const uint4 *)high);
}

DEVICE int matrix_row(int i, int lane)
{
    return i * 2 + lane / 16;
}
#else
typedef uint4 matrix_fragment;
#if TYPE == TYPE_F16
#define MATRIX_MULTIPLY(c, a, b) \
    c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(as_half8(a), as_half8(b), c)
#else
#define MATRIX_MULTIPLY(c, a, b) \
    c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(as_short8(a), as_short8(b), c)
#endif

DEVICE matrix_fragment matrix_load(LOCAL const T *s, int x, int k, int lane)
{
    return *(LOCAL const matrix_fragment *)(s + matrix_offset(x + lane % 16,
                                                              k + lane / 16 * MATRIX_VECTOR, 0));
}

DEVICE int matrix_row(int i, int lane)
{
    return lane / 16 * 8 + i;
}
#endif
#else
#error "ENGINE must be 908, 90, 11 or 12"
#endif

#define MATRIX_N MATRIX_M

/* Fragments: MATRIX_K of k, of rows of A or columns of B from x on, of a slice that is `width` wide. */
#define matrix_fragment_a matrix_fragment
#define matrix_fragment_b matrix_fragment
#define matrix_load_a(s, width, x, k, lane) matrix_load(s, x, k, lane)
#define matrix_load_b(s, width, x, k, lane) matrix_load(s, x, k, lane)

DEVICE int matrix_column(int lane)
{
    return lane % MATRIX_N;
}
