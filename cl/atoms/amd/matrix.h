/* amd/matrix.h - matrix engines of AMD's GPUs: MFMA of CDNA, in waves of 64; WMMA of RDNA, of 32
 *
 *     ENGINE   on               multiplies                                              adds in
 *     908      gfx908           f16 32x32x8, bf16 32x32x4, f32 32x32x2                  f32
 *     90       gfx90a, gfx94x   f16 32x32x8, bf16 32x32x8, f32 32x32x2, f64 16x16x4     f32, f64
 *     11       gfx11            f16 16x16x16, bf16 16x16x16                             f32
 *     12       gfx12            the same, otherwise laid out                            f32
 *
 * Lane l of a wave holds numbers of row l % MATRIX_M of A, of column l % MATRIX_N of B, and of
 * column l % MATRIX_N of C.  Which k it holds is the same for A and B, and the order of k does
 * not matter to a sum: so each lane reads what lies together in local memory, lines of 16 bytes
 * along K, and feeds them to as many instructions as they take, whatever k those say they are.
 *
 *                 k of MATRIX_K           in local memory BLK_K numbers of a row lie together;
 *     row l % M   +------+------+         their lines are permuted (by xor), so that eight
 *                 | l < M| l >= M         neighbouring rows' lines lie in different banks
 *                 +------+------+
 *
 * On gfx90a, MFMA takes f16 and bf16 numbers that are denormal for 0, and gives no such ones.
 *
 * Source: AMD's ISA guides of CDNA, CDNA 2, CDNA 3, RDNA 3 and RDNA 4, sections on matrix
 * instructions; AMD's matrix instruction calculator, for the layouts.
 */
#define MATRIX_KERNEL(items) KERNEL(items)

/* Instructions stay on their side: loads before what hides their latency, waits behind it. */
#define MATRIX_FENCE() __builtin_amdgcn_sched_barrier(0)

#if TYPE == 1
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#if TYPE == 0
#define LINE 4                                  /* numbers in 16 bytes */
#elif TYPE == 3
#define LINE 2
#else
#define LINE 8
#endif
#define LINES (BLK_K / LINE)

#if LINES != 2 && LINES != 4 && LINES != 8
#error "a row of a slice is 2, 4 or 8 lines of 16 bytes"
#endif

/* Where number k of row (column) x lies in a slice of A (B), which is `width` of them wide. */
DEVICE int matrix_place(int x, int k, int width)
{
    const int line = (k / LINE) ^ (((x * LINES / 8) ^ (x * LINES / 32)) & (LINES - 1));

    (void)width;
    return x * BLK_K + line * LINE + k % LINE;
}

/* ---- MFMA ----------------------------------------------------------------------------------- */

#if ENGINE == 908 || ENGINE == 90
#define MATRIX_LANES 64
#define MATRIX_K     (64 / MATRIX_M * LINE)     /* one line of each lane */

#if TYPE == 3 && ENGINE == 908
#error "gfx908 has no matrix engine for f64"
#elif TYPE == 3
#define MATRIX_M     16
#define MATRIX_SUMS  4
#define MATRIX_STEPS 2                          /* instructions of a MATRIX_MULTIPLY */
typedef double2 matrix_part;
typedef double4 matrix_sums;
#define MATRIX_MULTIPLY(c, a, b)                                                \
    do {                                                                        \
        c = __builtin_amdgcn_mfma_f64_16x16x4f64((a).x, (b).x, c, 0, 0, 0);     \
        c = __builtin_amdgcn_mfma_f64_16x16x4f64((a).y, (b).y, c, 0, 0, 0);     \
    } while (0)
#else
#define MATRIX_M     32
#define MATRIX_SUMS  16
typedef float16 matrix_sums;
#endif

#if TYPE == 0
#define MATRIX_STEPS 4
typedef float4 matrix_part;
#define MATRIX_MULTIPLY(c, a, b)                                                \
    do {                                                                        \
        c = __builtin_amdgcn_mfma_f32_32x32x2f32((a).x, (b).x, c, 0, 0, 0);     \
        c = __builtin_amdgcn_mfma_f32_32x32x2f32((a).y, (b).y, c, 0, 0, 0);     \
        c = __builtin_amdgcn_mfma_f32_32x32x2f32((a).z, (b).z, c, 0, 0, 0);     \
        c = __builtin_amdgcn_mfma_f32_32x32x2f32((a).w, (b).w, c, 0, 0, 0);     \
    } while (0)
#elif TYPE == 1
#define MATRIX_STEPS 2
typedef uint4 matrix_part;
#define MATRIX_MULTIPLY(c, a, b)                                                                    \
    do {                                                                                            \
        c = __builtin_amdgcn_mfma_f32_32x32x8f16(as_half4((a).lo), as_half4((b).lo), c, 0, 0, 0);   \
        c = __builtin_amdgcn_mfma_f32_32x32x8f16(as_half4((a).hi), as_half4((b).hi), c, 0, 0, 0);   \
    } while (0)
#elif TYPE == 2 && ENGINE == 90
#define MATRIX_STEPS 2
typedef uint4 matrix_part;
#define MATRIX_MULTIPLY(c, a, b)                                                                          \
    do {                                                                                                  \
        c = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(as_short4((a).lo), as_short4((b).lo), c, 0, 0, 0);   \
        c = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(as_short4((a).hi), as_short4((b).hi), c, 0, 0, 0);   \
    } while (0)
#elif TYPE == 2
#define MATRIX_STEPS 4
typedef uint4 matrix_part;
#define MATRIX_MULTIPLY(c, a, b)                                                                    \
    do {                                                                                            \
        c = __builtin_amdgcn_mfma_f32_32x32x4bf16(as_short2((a).x), as_short2((b).x), c, 0, 0, 0);  \
        c = __builtin_amdgcn_mfma_f32_32x32x4bf16(as_short2((a).y), as_short2((b).y), c, 0, 0, 0);  \
        c = __builtin_amdgcn_mfma_f32_32x32x4bf16(as_short2((a).z), as_short2((b).z), c, 0, 0, 0);  \
        c = __builtin_amdgcn_mfma_f32_32x32x4bf16(as_short2((a).w), as_short2((b).w), c, 0, 0, 0);  \
    } while (0)
#endif

DEVICE matrix_part matrix_read(LOCAL const T *s, int x, int k, int lane)
{
    return *(LOCAL const matrix_part *)(s + matrix_place(x + lane % MATRIX_M, k + lane / MATRIX_M * LINE, 0));
}

/* Row of C of a lane's sum i. */
DEVICE int matrix_row(int i, int lane)
{
#if TYPE == 3
    return i * 4 + lane / 16;
#else
    return i / 4 * 8 + lane / 32 * 4 + i % 4;
#endif
}

/* ---- WMMA ----------------------------------------------------------------------------------- */

#elif ENGINE == 11 || ENGINE == 12
#if TYPE != 1 && TYPE != 2
#error "WMMA multiplies f16 and bf16"
#endif
#define MATRIX_LANES 32
#define MATRIX_M     16
#define MATRIX_K     16
#define MATRIX_SUMS  8
#define MATRIX_STEPS 1
typedef float8 matrix_sums;

#if ENGINE == 11
typedef uint8 matrix_part;
#if TYPE == 1
#define MATRIX_MULTIPLY(c, a, b) c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16(a), as_half16(b), c)
#else
#define MATRIX_MULTIPLY(c, a, b) \
    c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16(a), as_short16(b), c)
#endif

/* The whole row, in both halves of the wave. */
DEVICE matrix_part matrix_read(LOCAL const T *s, int x, int k, int lane)
{
    LOCAL const T *low  = s + matrix_place(x + lane % 16, k, 0);
    LOCAL const T *high = s + matrix_place(x + lane % 16, k + LINE, 0);

    return (matrix_part)(*(LOCAL const uint4 *)low, *(LOCAL const uint4 *)high);
}

DEVICE int matrix_row(int i, int lane)
{
    return i * 2 + lane / 16;
}
#else
typedef uint4 matrix_part;
#if TYPE == 1
#define MATRIX_MULTIPLY(c, a, b) \
    c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(as_half8(a), as_half8(b), c)
#else
#define MATRIX_MULTIPLY(c, a, b) \
    c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(as_short8(a), as_short8(b), c)
#endif

DEVICE matrix_part matrix_read(LOCAL const T *s, int x, int k, int lane)
{
    return *(LOCAL const matrix_part *)(s + matrix_place(x + lane % 16, k + lane / 16 * LINE, 0));
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

/* MATRIX_K of rows of A from x on, of columns of B. */
#define matrix_part_a matrix_part
#define matrix_part_b matrix_part
#define matrix_read_a(s, x, k, lane) matrix_read(s, x, k, lane)
#define matrix_read_b(s, x, k, lane) matrix_read(s, x, k, lane)

DEVICE int matrix_column(int lane)
{
    return lane % MATRIX_N;
}
