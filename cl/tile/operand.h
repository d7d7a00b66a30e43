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
 * Gives: OPERAND_ROW; OPERAND_KIND of wgmma; OPERAND_TYPE of maps; OPERAND_MAJOR(), operand_*(); MAP_OF()
 *        TAIL_OF() MAPS_ROOM.
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

/* Loads the slice of OPERAND_ROW of K from k0 on, `width` of M (N) from mn0 on, or the first `seen` of them:
 * a multiple of OPERAND_ROW, or K-major what the map says. */
DEVICE void operand_load(UINT32 to, GLOBAL const unsigned INT64 *map, const int mn_major, const int width,
                         int seen, int mn0, int k0, int batch, UINT32 full)
{
    if (mn_major) {
        UNROLL for (int i = 0; i < width / OPERAND_ROW; i++)
            if (i == 0 || i * OPERAND_ROW < seen)
                copy_box_3d(to + i * OPERAND_ROW * 128, map, mn0 + i * OPERAND_ROW, k0, batch, full);
    } else {
        copy_box_3d(to, map, k0, mn0, batch, full);
    }
}

/* How many rows, or columns, are loaded of the tile that begins at `at`, of an operand that has `wide`: no
 * more than there are, in eights of rows, in whole boxes of columns.  A row that TMA fills with zeros takes
 * as much of the second-level cache's bandwidth as one that is there.  What local memory has in place of the
 * others goes to no element of C. */
DEVICE int operand_rows(const int mn_major, int wide, const int tile, int at)
{
    const int step = mn_major ? OPERAND_ROW : 8, left = (wide - at + step - 1) / step * step;

    return left < tile ? left : tile;
}

/* Boxes of a K-major operand have as many rows as its first tile.  Those of the last tile, if they are fewer:
 * it has a map of its own.  Else 0. */
DEVICE int operand_tail(const int mn_major, int wide, const int tile)
{
    const int rows = mn_major || wide <= tile ? tile : operand_rows(0, wide, tile, (wide - 1) / tile * tile);

    return rows < tile ? rows : 0;
}

/* Whether the tile of so many rows is that one. */
DEVICE int operand_is_tail(const int mn_major, int wide, const int tile, int rows)
{
    return !mn_major && wide > tile && rows < tile;
}

/* Where a kernel has the maps of A, of B, and of a residual; and those of their last tiles. */
#define MAP_OF(i)  ((i) * MAP_WORDS)
#define TAIL_OF(i) ((3 + (i)) * MAP_WORDS)
#define MAPS_ROOM  (6 * MAP_BYTES)              /* of local memory, to make them in */

/* By a warp: makes m the map of operand i, and with `tail` rows that of its last tile, where they are. */
DEVICE void operand_keep_maps(GLOBAL unsigned INT64 *maps, LOCAL UINT32 *room, int lane, struct tensor_map m,
                              const int i, int tail)
{
    NO_UNROLL for (int last = 0; last < 1 + (tail > 0); last++) {
        const int at = last ? TAIL_OF(i) : MAP_OF(i);

        m.box[1] = last ? tail : m.box[1];
        map_keep(maps + at, room + 2 * at, lane, m);
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
