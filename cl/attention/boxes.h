/* cl/attention/boxes.h - tiles and blocks of rows of heads, as TMA brings them to local memory
 *
 * Rows have HEAD elements, in blocks of 64 (cl/tile/operand.h).  A tile has 64 rows for each warpgroup.
 *
 * All work-groups share the tensor maps (cl/tile/tensor_map.h).  TMA fills with zeros what is outside of a
 * tensor, rows behind the last key and elements behind the head's size among it.
 *
 * Takes: HEAD WARPGROUPS; tensor_map.h, operand.h, pipeline.h; atoms/nvidia/tma.h, wgmma.h, mma.h.
 * Gives: BLK_M BOXES, attention_map(), attention_load(), attention_leave(),
 *        attention_no_more(), attention_fragments().
 */
#define BLK_M     (64 * WARPGROUPS)
#define BOXES     ((HEAD + OPERAND_ROW - 1) / OPERAND_ROW)

/* By one warp: a map of heads of rows.  A stride of 0 between batches, or heads, means one for all.  room:
 * 128 bytes. */
DEVICE void attention_map(GLOBAL unsigned INT64 *to, LOCAL UINT32 *room, int lane, GLOBAL const T *g, VIEW v,
                          int batches, int heads, int rows, int length, int box)
{
    struct tensor_map m;

    m.address = (UINT64)(g + v.s0);
    m.type = OPERAND_TYPE;
    m.rank = 4;
    m.pixels = 0;
    m.extent[0] = length;
    m.extent[1] = rows;
    m.extent[2] = v.s4 ? heads : 1;
    m.extent[3] = v.s3 ? batches : 1;
    m.stride[0] = rows > 1 ? (UINT64)v.s5 * T_BYTES : 16;
    m.stride[1] = v.s4 ? (UINT64)v.s4 * T_BYTES : 16;
    m.stride[2] = v.s3 ? (UINT64)v.s3 * T_BYTES : 16;
    m.box[0] = OPERAND_ROW;
    m.box[1] = box;
    m.box[2] = m.box[3] = m.step[0] = m.step[1] = m.step[2] = m.step[3] = 1;
    map_keep(to, room, lane, m);
}

/* Loads `rows` rows from number `row` on of a head. */
DEVICE void attention_load(UINT32 to, GLOBAL const unsigned INT64 *map, const int rows, int row, int head,
                           int batch, UINT32 full)
{
    UNROLL for (int i = 0; i < BOXES; i++)
        copy_box_4d(to + i * rows * 128, map, i * OPERAND_ROW, row, head, batch, full);
}

/* The producer's end.  The last of all sets back the counters of tiles and of work-groups that have left. */
DEVICE void attention_leave(GLOBAL int *counters, int groups)
{
    if (ATOMIC_ADD(counters + 1, 1) == groups - 1)
        counters[0] = counters[1] = 0;
}

/* The producer leaves word, beside the next tile's place, that there is none. */
DEVICE void attention_no_more(struct pipeline tiles, LOCAL int *which, GLOBAL int *counters, int groups)
{
    tiles = producer_acquire(tiles);
    *which = -1;
    barrier_arrive(pipe_full(tiles));
    attention_leave(counters, groups);
}

/* The 16 rows of a warp as operands in registers, four of them for each product. */
DEVICE void attention_fragments(UINT32 *a, UINT32 tile, int warp, int lane)
{
    const UINT32 row = tile + (warp * 16 + lane % 16) * 128;

    UNROLL for (int i = 0; i < HEAD / 16; i++)
        LOAD_TILES("", a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3],
                   row + i / 4 * (BLK_M * 128) + ((i % 4 * 2 + lane / 16) ^ lane % 8) * 16);
}
