/* cl/tile/operand.h - a tile of an operand in local memory, as TMA copies it and wgmma reads it
 *
 * Rows of 128 bytes, swizzled, in blocks that begin at multiples of 1024 bytes.  A tile is
 *
 *     K-major:  a row for each m (n), 128 bytes of K; a block for each 128 bytes of K;
 *     MN-major: a row for each k, 128 bytes of M (N); a block for each 128 bytes of M (N).
 *
 * `rows` is how many rows a block has.  mn_major, rows and width are constant where these functions are
 * expanded.
 *
 * Takes: TYPE T_BYTES; atoms/nvidia/tma.h, wgmma.h; tile/tensor_map.h.
 * Gives: OPERAND_ROW; OPERAND_KIND of wgmma; OPERAND_TYPE of maps; OPERAND_MAJOR(), operand_*().
 */
#define OPERAND_ROW (128 / T_BYTES)             /* elements of a row */

/* f32 as TF32, of which both operands must be K-major. */
#if TYPE == TYPE_F32
#define OPERAND_KIND WGMMA_TF32
#define OPERAND_TYPE MAP_TYPE_TF32
#define OPERAND_MAJOR(a, b) ""
#else
#if TYPE == TYPE_BF16
#define OPERAND_KIND WGMMA_BF16
#define OPERAND_TYPE MAP_TYPE_BF16
#else
#define OPERAND_KIND WGMMA_F16
#define OPERAND_TYPE MAP_TYPE_F16
#endif
#define OPERAND_MAJOR(a, b) WGMMA_MAJOR(a, b)
#endif

/* Loads the slice of OPERAND_ROW of K from k0 on, `width` of M (N) from mn0 on. */
DEVICE void operand_load(UINT32 to, GLOBAL const unsigned INT64 *map, const int mn_major, const int width,
                         int mn0, int k0, int batch, UINT32 full)
{
    if (mn_major) {
        UNROLL for (int i = 0; i < width / OPERAND_ROW; i++)
            copy_box_3d(to + i * OPERAND_ROW * 128, map, mn0 + i * OPERAND_ROW, k0, batch, full);
    } else {
        copy_box_3d(to, map, k0, mn0, batch, full);
    }
}

/* The descriptor of the tile at this address. */
DEVICE UINT32 operand_descriptor(UINT32 at, const int rows)
{
    return wgmma_descriptor(at, rows * 128);
}

/* ... of its i-th product, which has 32 bytes of K; i is constant. */
DEVICE unsigned INT64 operand_product(UINT32 descriptor, const int mn_major, const int rows, const int i)
{
    const int bytes = mn_major ? i * (32 / T_BYTES) * 128 : i / 4 * rows * 128 + i % 4 * 32;

    return wgmma_at(descriptor + bytes / 16);
}
