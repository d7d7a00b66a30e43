/* cl/atoms/nvidia/tma.h - tensor maps and copies by the tensor memory accelerator, TMA (sm_90)
 *
 * A tensor map has MAP_BYTES, at a multiple of 64 in device memory; one is made in local memory, at a
 * multiple of 128.  cl/tile/tensor_map.h describes tensors in it.
 *
 * Source: the PTX ISA manual, sections on tensormap.cp_fenceproxy, cp.async.bulk and fence.proxy.
 */
#define MAP_BYTES 128

/* A warp copies a map from local to device memory, for copies by any work-group. */
DEVICE void map_release(GLOBAL unsigned INT64 *map, UINT32 from)
{
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                 "[%0], [%1], 128;" :: "l"((unsigned INT64)map), "r"(from) : "memory");
}

/* Before the first copy by a map that another work-group released, or an earlier launch. */
DEVICE void map_acquire(GLOBAL const unsigned INT64 *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;"
                 :: "l"((unsigned INT64)map) : "memory");
}

/* Asks the second-level cache to keep a map longer than other data. */
DEVICE void map_cache(GLOBAL const unsigned INT64 *map)
{
    asm volatile("prefetch.global.L2::evict_last [%0];" :: "l"((unsigned INT64)map));
}

/* Copies a box of a tensor to local memory, from coordinates x, y ... on, which may be outside; x is
 * contiguous.  The bytes arrive at the barrier `full`. */
#define COPY_BOX(rank) \
    "cp.async.bulk.tensor." rank "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "

DEVICE void copy_box_2d(UINT32 to, GLOBAL const unsigned INT64 *map, int x, int y, UINT32 full)
{
    asm volatile(COPY_BOX("2") "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"((unsigned INT64)map), "r"(x), "r"(y), "r"(full) : "memory");
}

DEVICE void copy_box_3d(UINT32 to, GLOBAL const unsigned INT64 *map, int x, int y, int z, UINT32 full)
{
    asm volatile(COPY_BOX("3") "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"((unsigned INT64)map), "r"(x), "r"(y), "r"(z), "r"(full) : "memory");
}

DEVICE void copy_box_4d(UINT32 to, GLOBAL const unsigned INT64 *map, int x, int y, int z, int u, UINT32 full)
{
    asm volatile(COPY_BOX("4") "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"((unsigned INT64)map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(full) : "memory");
}

DEVICE void copy_box_5d(UINT32 to, GLOBAL const unsigned INT64 *map, int x, int y, int z, int u, int v,
                        UINT32 full)
{
    asm volatile(COPY_BOX("5") "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
                 :: "r"(to), "l"((unsigned INT64)map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(full)
                 : "memory");
}

/* Copies pixels by an im2col map, from channel c and pixel w, h of image n on, for the filter tap s, r.  The
 * offsets are converted one by one: where both are halves of one uniform register, ptxas 13.0 takes the
 * second from another one. */
DEVICE void copy_im2col_4d(UINT32 to, GLOBAL const unsigned INT64 *map, int c, int w, int h, int n, int s,
                           int r, UINT32 full)
{
    asm volatile("{ .reg .b16 s, r; cvt.u16.u32 s, %7; cvt.u16.u32 r, %8; "
                 "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6], {s, r}; }"
                 :: "r"(to), "l"((unsigned INT64)map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(full),
                    "r"(s), "r"(r) : "memory");
}

/* ... pixel w, h, d, for the tap s, r, t. */
DEVICE void copy_im2col_5d(UINT32 to, GLOBAL const unsigned INT64 *map, int c, int w, int h, int d, int n,
                           int s, int r, int t, UINT32 full)
{
    asm volatile("{ .reg .b16 s, r, t; cvt.u16.u32 s, %8; cvt.u16.u32 r, %9; cvt.u16.u32 t, %10; "
                 "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5, %6}], [%7], {s, r, t}; }"
                 :: "r"(to), "l"((unsigned INT64)map), "r"(c), "r"(w), "r"(h), "r"(d), "r"(n), "r"(full),
                    "r"(s), "r"(r), "r"(t) : "memory");
}

/* Copies contiguous bytes, a multiple of 16. */
DEVICE void copy_bytes(UINT32 to, GLOBAL const void *from, int bytes, UINT32 full)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"((unsigned INT64)from), "r"(bytes), "r"(full) : "memory");
}
