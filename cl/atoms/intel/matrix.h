/* intel/matrix.h - matrix engines of Intel's GPUs: intel_sub_group_*_matrix_mad ("dpas")
 *
 *     ENGINE   sub-group of     multiplies                adds in
 *     16       16               f16, bf16 8x16x16         f32
 *     8        8                f16, bf16 8x8x16          f32
 *
 * which is the smallest sub-group that the device has; neighbouring items are in one.  Lane l
 * holds column l of B, its sixteen k two to a number; column l of C; and its share of each of the
 * eight rows of A (of 16 lanes: number l; of 8: numbers 2l and 2l + 1).  A row of 16 is then what
 * a block read of local memory hands out, so a slice lies there in stretches of 16 along K:
 *
 *     k 0 ... 15 of row 0, of row 1, ... of row BLK_M - 1; k 16 ... 31 of row 0, ...
 *
 * Source: Khronos, cl_intel_subgroup_matrix_multiply_accumulate and
 * cl_intel_subgroup_local_block_io.
 */
#if TYPE != 1 && TYPE != 2
#error "the matrix engine multiplies f16 and bf16"
#endif

#define MATRIX_KERNEL(items) KERNEL(items) __attribute__((intel_reqd_sub_group_size(ENGINE)))
#define MATRIX_FENCE()

#define MATRIX_LANES ENGINE
#define MATRIX_M     8
#define MATRIX_N     ENGINE
#define MATRIX_K     16
#define MATRIX_SUMS  8
#define MATRIX_STEPS 1                          /* instructions of a MATRIX_MULTIPLY */
typedef int8   matrix_part_b;
typedef float8 matrix_sums;

/* Where number k of row (column) x lies in a slice of A (B), which is `width` of them wide. */
DEVICE int matrix_place(int x, int k, int width)
{
    return (k / 16 * width + x) * 16 + k % 16;
}

#if ENGINE == 16
typedef short8 matrix_part_a;
#define matrix_read_a(s, x, k, lane) \
    as_short8(intel_sub_group_block_read_us8((LOCAL const ushort *)(s) + matrix_place(x, k, BLK_M)))
#elif ENGINE == 8
typedef int8 matrix_part_a;
#define matrix_read_a(s, x, k, lane) \
    as_int8(intel_sub_group_block_read8((LOCAL const uint *)((s) + matrix_place(x, k, BLK_M))))
#else
#error "ENGINE must be 8 or 16"
#endif

DEVICE matrix_part_b matrix_read_b(LOCAL const T *s, int x, int k, int lane)
{
    return *(LOCAL const matrix_part_b *)(s + matrix_place(x + lane, k, BLK_N));
}

#if TYPE == 1
#define MATRIX_MULTIPLY(c, a, b) c = intel_sub_group_f16_f16_matrix_mad_k16(a, b, c)
#else
#define MATRIX_MULTIPLY(c, a, b) c = intel_sub_group_bf16_bf16_matrix_mad_k16(a, b, c)
#endif

/* Row of C of a lane's sum i, and its column. */
DEVICE int matrix_row(int i, int lane)
{
    (void)lane;
    return i;
}

DEVICE int matrix_column(int lane)
{
    return lane;
}
