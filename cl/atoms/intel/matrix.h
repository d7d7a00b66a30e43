/* cl/atoms/intel/matrix.h - matrix instructions of Intel's GPUs: intel_sub_group_*_matrix_mad ("dpas")
 *
 *     ENGINE   sub-group of     multiplies                accumulates in
 *     16       16               f16, bf16 8x16x16         f32
 *     8        8                f16, bf16 8x8x16          f32
 *
 * ENGINE is the smallest sub-group that the device has; consecutive work-items are in one. Lane l
 * holds column l of B, its 16 elements along K in pairs; column l of C; and its part of each of the
 * eight rows of A (of 16 lanes: element l; of 8: elements 2l and 2l + 1). A row of 16 is then what
 * a block read of local memory delivers, so a slice is stored in blocks of 16 along K:
 *
 *     k 0 ... 15 of row 0, of row 1, ... of row BLK_M - 1; k 16 ... 31 of row 0, ...
 *
 * Source: Khronos, cl_intel_subgroup_matrix_multiply_accumulate and
 * cl_intel_subgroup_local_block_io.
 */
#if TYPE != TYPE_F16 && TYPE != TYPE_BF16
#error "matrix_mad multiplies f16 and bf16"
#endif

#define MATRIX_KERNEL(items) KERNEL(items) __attribute__((intel_reqd_sub_group_size(ENGINE)))
#define MATRIX_FENCE()

#define MATRIX_LANES ENGINE
#define MATRIX_M     8
#define MATRIX_N     ENGINE
#define MATRIX_K     16
#define MATRIX_ACCUMULATORS 8
#define MATRIX_STEPS 1                          /* instructions of a MATRIX_MULTIPLY */
typedef int8   matrix_fragment_b;
typedef float8 matrix_accumulators;

/* The offset of element k of row (column) x in a slice of A (B) that is `width` rows (columns) wide. */
DEVICE int matrix_offset(int x, int k, int width)
{
    return (k / 16 * width + x) * 16 + k % 16;
}

#if ENGINE == 16
typedef short8 matrix_fragment_a;
#define matrix_load_a(s, width, x, k, lane) \
    as_short8(intel_sub_group_block_read_us8((LOCAL const ushort *)(s) + matrix_offset(x, k, width)))
#elif ENGINE == 8
typedef int8 matrix_fragment_a;
#define matrix_load_a(s, width, x, k, lane) \
    as_int8(intel_sub_group_block_read8((LOCAL const uint *)((s) + matrix_offset(x, k, width))))
#else
#error "ENGINE must be 8 or 16"
#endif

DEVICE matrix_fragment_b matrix_load_b(LOCAL const T *s, int width, int x, int k, int lane)
{
    return *(LOCAL const matrix_fragment_b *)(s + matrix_offset(x + lane, k, width));
}

#if TYPE == TYPE_F16
#define MATRIX_MULTIPLY(c, a, b) c = intel_sub_group_f16_f16_matrix_mad_k16(a, b, c)
#else
#define MATRIX_MULTIPLY(c, a, b) c = intel_sub_group_bf16_bf16_matrix_mad_k16(a, b, c)
#endif

/* The row of C of a lane's accumulator i, and its column. */
DEVICE int matrix_row(int i, int lane)
{
    (void)lane;
    return i;
}

DEVICE int matrix_column(int lane)
{
    return lane;
}
