/* atoms/nvidia.h - what NVIDIA's GPUs say in PTX: matrix instructions, bulk copies, barriers
 *
 * PTX is written inside both OpenCL C and CUDA C++, so this is one text for both backends.
 * What only one architecture has (wgmma, tensor maps made on the device) begins with the
 * word ARCH_ONLY.  An address in local memory is 32 bits wide: LOCAL_ADDRESS().
 *
 * Source: the PTX ISA manual, sections on mbarrier, cp.async.bulk.tensor, tensormap, wgmma.
 */

/* ---- barriers in local memory, which count arrivals and bytes -------------------------- */

DEVICE void barrier_init(unsigned int at, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(arrivals) : "memory");
}

DEVICE void barrier_init_done(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEVICE void barrier_arrive(unsigned int at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
}

/* ... and expect this many bytes of copies */
DEVICE void barrier_arrive_expect(unsigned int at, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory");
}

DEVICE void barrier_wait(unsigned int at, int parity)
{
    unsigned int done = 0;

    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at), "r"(parity) : "memory");
}

/* u, of that lane of the warp. */
DEVICE UINT32 from_lane(UINT32 u, int lane)
{
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, 0xffffffff;" : "+r"(u) : "r"(lane));
    return u;
}

/* What is the same in all items of a warp.  The assembler knows it only from here on, and then keeps it, and what is made of it,
 * once for the warp: places of operands need not be brought there before each product (400 cycles a slice without, 230 with). */
DEVICE UINT32 same_in_warp(UINT32 u)
{
    return from_lane(u, 0);
}

DEVICE int this_warp(void)
{
    return (int)same_in_warp((UINT32)LOCAL_ID() / 32);
}

/* The stage after s, of STAGES, and whether it is used an odd number of times: a remainder takes longer. */
#define NEXT_STAGE(s, turn)                 \
    do {                                    \
        if (++(s) == STAGES) {              \
            (s) = 0;                        \
            (turn) ^= 1;                    \
        }                                   \
    } while (0)

/* ---- work-groups that do not run together ------------------------------------------------------ */

/* Two items with two sums each meet in a slot that holds nothing, 0, before and after.  0: this is the first, and its
 * sums are left there; 1: it is the second, and x and y are the sums of both.  No fence is needed, for what is
 * handed over is what the exchange takes along.  Sums that are 0 become what no sum is: a NaN with all bits.  */
DEVICE int meet_in_slot(GLOBAL UINT64 *slot, float *x, float *y)
{
    const UINT64 both = (UINT64)FLOAT_BITS(*y) << 32 | FLOAT_BITS(*x), zeros = ~(UINT64)0;
    UINT64 other;

    asm volatile("atom.relaxed.gpu.global.exch.b64 %0, [%1], %2;"
                 : "=l"(other) : "l"((unsigned INT64)slot), "l"(both ? both : zeros) : "memory");
    if (other == 0)
        return 0;
    *slot = 0;
    *x += other == zeros ? 0.0f : BITS_FLOAT((UINT32)other);
    *y += other == zeros ? 0.0f : BITS_FLOAT((UINT32)(other >> 32));
    return 1;
}

/* Likewise all of `parts`, of which this is number `part`: by twos, then those sums by twos, so that their order is
 * the same each time.  slots: one less than parts, `apart` from each other.  1 in one item only, the sums being
 * those of all.                                                                                       */
DEVICE int meet_in_slots(GLOBAL UINT64 *slots, int apart, int part, int parts, float *x, float *y)
{
    for (; parts > 1; part /= 2, parts = (parts + 1) / 2) {
        if ((part ^ 1) < parts && !meet_in_slot(slots + part / 2 * apart, x, y))
            return 0;
        slots += parts / 2 * apart;
    }
    return 1;
}

/* ---- copies to local memory that do not wait (sm_80) --------------------------------------- */

/* 4, 8 or 16 bytes where `go` is not 0, else nothing: then `from` may be anywhere */
#define COPY_ASYNC_IF(go, bytes, to, from) \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async." COPY_CACHE_##bytes ".shared.global.L2::128B " \
                 "[%0], [%1], " #bytes "; }" :: "r"(to), "l"((unsigned INT64)(from)), "r"((int)(go)) : "memory")
#define COPY_CACHE_4  "ca"
#define COPY_CACHE_8  "ca"
#define COPY_CACHE_16 "cg"

/* 16 bytes; or so many of them, and zeros behind */
#define COPY_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" \
                 :: "r"(to), "l"((unsigned INT64)(from)) : "memory")
#define COPY_ASYNC16_PART(to, from, there) \
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" \
                 :: "r"(to), "l"((unsigned INT64)(from)), "r"(there) : "memory")
/* 4 or 8 bytes likewise */
#define COPY_ASYNC_PART_(bytes, to, from, there) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], " #bytes ", %2;" \
                 :: "r"(to), "l"((unsigned INT64)(from)), "r"(there) : "memory")
#define COPY_ASYNC_PART(bytes, to, from, there) COPY_ASYNC_PART_(bytes, to, from, there)

/* 16 bytes or none, that are read once: the second-level cache may fetch the 256 around them */
#define COPY_ASYNC16_ONCE(to, from, there) \
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" \
                 :: "r"(to), "l"((unsigned INT64)(from)), "r"(there) : "memory")

DEVICE void copies_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most `open` groups of this item are under way. */
#define COPIES_WAIT(open) asm volatile("cp.async.wait_group %0;" :: "n"(open) : "memory")

/* ---- tensor maps: what the copy engine knows of a matrix --------------------------------- */

#define MAP_BYTES 128

#define MAP_CHOOSE(map, field, which) \
    asm volatile(ARCH_ONLY "tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " which ";" \
                 :: "r"(map) : "memory")
#define MAP_SET32(map, field, which, v) \
    asm volatile(ARCH_ONLY "tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " which ", %1;" \
                 :: "r"(map), "r"((unsigned int)(v)) : "memory")
#define MAP_SET64(map, field, which, v) \
    asm volatile(ARCH_ONLY "tensormap.replace.tile." field ".shared::cta.b1024.b64 [%0], " which "%1;" \
                 :: "r"(map), "l"((unsigned INT64)(v)) : "memory")

#define MAP_F16  "6"
#define MAP_F32  "7"
#define MAP_BF16 "10"
#define MAP_TF32 "11"                          /* f32 in memory, rounded on the way */

/* Describes, in 128 zeroed bytes of local memory, `batches` matrices: `lines` of `width` numbers, `pitch` bytes
 * apart, the matrices `step` bytes apart; to be copied in boxes of box_width numbers (128 bytes, swizzled) x
 * box_lines, zeros past the edges.                                                            */
#define MAP_DESCRIBE(map, kind, address, width, lines, batches, pitch, step, box_width, box_lines) \
    do {                                                                   \
        MAP_SET64(map, "global_address", "", address);                     \
        MAP_CHOOSE(map, "rank", "2");               /* of 3: one less */   \
        MAP_SET32(map, "box_dim", "0", box_width);                         \
        MAP_SET32(map, "box_dim", "1", box_lines);                         \
        MAP_SET32(map, "box_dim", "2", 1);                                 \
        MAP_SET32(map, "global_dim", "0", width);                          \
        MAP_SET32(map, "global_dim", "1", lines);                          \
        MAP_SET32(map, "global_dim", "2", batches);                        \
        MAP_SET64(map, "global_stride", "0, ", pitch);                     \
        MAP_SET64(map, "global_stride", "1, ", step);                      \
        MAP_SET32(map, "element_stride", "0", 1);                          \
        MAP_SET32(map, "element_stride", "1", 1);                          \
        MAP_SET32(map, "element_stride", "2", 1);                          \
        MAP_CHOOSE(map, "elemtype", kind);                                 \
        MAP_CHOOSE(map, "interleave_layout", "0");                         \
        MAP_CHOOSE(map, "swizzle_mode", "3");       /* 128 bytes */        \
        MAP_CHOOSE(map, "fill_mode", "0");                                 \
    } while (0)

/* One warp copies a map from local to device memory, for copies by this work-group. */
DEVICE void map_release_own(GLOBAL unsigned INT64 *map, unsigned int from)
{
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cta.sync.aligned [%0], [%1], 128;"
                 :: "l"((unsigned INT64)map), "r"(from) : "memory");
}

/* Before the first copy by it. */
DEVICE void map_acquire_own(GLOBAL const unsigned INT64 *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.cta [%0], 128;" :: "l"((unsigned INT64)map) : "memory");
}

/* ... by a map that another launch wrote. */
DEVICE void map_acquire(GLOBAL const unsigned INT64 *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"((unsigned INT64)map) : "memory");
}

/* 1 in one item of a warp whose items are all here.  The assembler knows, and takes what that item has for the copy
 * engine as it is; else it makes a loop over all that different items might have.                     */
DEVICE int is_elected(void)
{
    int is;

    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.s32 %0, 1, 0, p; }" : "=r"(is));
    return is;
}

/* Starts the copy of one box to `to`; its bytes arrive at the barrier. */
DEVICE void copy_box(unsigned int to, GLOBAL const unsigned INT64 *map, int across, int line, int batch,
                     unsigned int barrier_at)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"((unsigned INT64)map), "r"(across), "r"(line), "r"(batch), "r"(barrier_at) : "memory");
}

/* A slice of K of an operand: a box of lines from `at` on where they run along K; `across` it, boxes of 128 bytes,
 * `wide` numbers, for each line of K.  All but `at`, k0 and the batch are constant where this is expanded.   */
DEVICE void copy_operand(unsigned int to, GLOBAL const unsigned INT64 *map, const int across, const int boxes,
                         const int wide, int at, int k0, int batch, unsigned int barrier_at)
{
    if (across) {
        UNROLL for (int i = 0; i < boxes; i++)
            copy_box(to + i * wide * 128, map, at + i * wide, k0, batch, barrier_at);
    } else {
        copy_box(to, map, k0, at, batch, barrier_at);
    }
}

/* ---- wgmma: 128 items multiply 64 x 16 by 16 x N out of local memory ------------------------ */

/* An operand in local memory, as copy_box() leaves it: the lower half of its description, in which places count by 16
 * bytes, and all of it.  across: bytes between stretches of 64 along M or N, where those run along memory; else
 * it does not matter.                                                                                */
DEVICE UINT32 wgmma_place(unsigned int at, int across)
{
    return (UINT32)(across >> 4) << 16 | (at & 0x3ffff) >> 4;
}

DEVICE unsigned INT64 wgmma_at(UINT32 place)
{
    return (unsigned INT64)1 << 62 | (unsigned INT64)64 << 32 | place;
}

DEVICE void wgmma_begin(void)
{
    asm volatile(ARCH_ONLY "wgmma.fence.sync.aligned;" ::: "memory");
}

DEVICE void wgmma_commit(void)
{
    asm volatile(ARCH_ONLY "wgmma.commit_group.sync.aligned;" ::: "memory");
}

#define SUMS4(i)  "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define SUMS16(i) SUMS4(i), SUMS4((i) + 4), SUMS4((i) + 8), SUMS4((i) + 12)
#define SUMS64(i) SUMS16(i), SUMS16((i) + 16), SUMS16((i) + 32), SUMS16((i) + 48)
#define TEN(t)    "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define THIRTY    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " TEN(1) TEN(2)
#define SIXTY     THIRTY TEN(3) TEN(4) TEN(5)

#if TYPE == 2
#define WGMMA_KINDS "f32.bf16.bf16"
#else
#define WGMMA_KINDS "f32.f16.f16"
#endif

/* Two numbers of the type, the first in the lower half. */
DEVICE unsigned int pair_of(float low, float high)
{
    unsigned int u;

#if TYPE == 2
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
#else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
#endif
    return u;
}

/* Of four items `apart`, whose u are rows of 4 x 4: columns.  `sets` of these, constant, go together: an exchange takes
 * 25 cycles, and the next may begin meanwhile.                                                             */
DEVICE void transpose4(unsigned int *u, const int sets, int lane, int apart)
{
    UNROLL for (int step = 1; step < 4; step *= 2) {
        const int up = (lane / apart & step) != 0;

        UNROLL for (int i = 0; i < 4 * sets; i++)
            if (!(i & step)) {
                const unsigned int kept = up ? u[i + step] : u[i];

                u[i] = up ? u[i] : u[i + step];
                u[i + step] = kept;
            }
        UNROLL for (int i = 0; i < 4 * sets; i++)
            if (!(i & step))
                asm volatile("shfl.sync.bfly.b32 %0, %0, %1, 31, 0xffffffff;" : "+r"(u[i]) : "r"(step * apart));
        UNROLL for (int i = 0; i < 4 * sets; i++)
            if (!(i & step)) {
                const unsigned int there = u[i];

                u[i] = up ? there : u[i + step];
                u[i + step] = up ? u[i + step] : there;
            }
    }
}

/* The four words from number `by` on, of eight words that are 16 numbers of 16 bits. */
DEVICE void move_words(UINT32 *w, int by)
{
    UNROLL for (int i = 0; i < 6; i++)
        w[i] = by & 4 ? w[i + 2] : w[i];
    UNROLL for (int i = 0; i < 5; i++)
        w[i] = by & 2 ? w[i + 1] : w[i];
    UNROLL for (int i = 0; i < 4; i++)
        asm("shf.r.wrap.b32 %0, %0, %1, %2;" : "+r"(w[i]) : "r"(w[i + 1]), "r"(by % 2 * 16));
}

/* 16 bytes to a multiple of 16, if `go`. */
DEVICE void store16(GLOBAL T *to, const unsigned int *u, int go)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.v4.b32 [%0], {%1, %2, %3, %4}; }"
                 :: "l"((unsigned INT64)to), "r"(u[0]), "r"(u[1]), "r"(u[2]), "r"(u[3]), "r"(go) : "memory");
}

/* d += a b; or where `add` is 0, d = a b.  across_a, across_b: "1" where M (N) runs along memory, "0"
 * where K does.                                                                                    */
#define WGMMA_N64(d, a, b, add, across_a, across_b) \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %34, 0;\n" \
                 ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n64k16." WGMMA_KINDS " {" \
                 THIRTY "%30, %31}, %32, %33, add, 1, 1, " across_a ", " across_b ";\n}" \
                 : SUMS16(0), SUMS16(16) : "l"(a), "l"(b), "r"((int)(add)))
#define WGMMA_N128(d, a, b, add, across_a, across_b) \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %66, 0;\n" \
                 ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n128k16." WGMMA_KINDS " {" \
                 SIXTY "%60, %61, %62, %63}, %64, %65, add, 1, 1, " across_a ", " across_b ";\n}" \
                 : SUMS64(0) : "l"(a), "l"(b), "r"((int)(add)))
#define WGMMA_N192(d, a, b, add, across_a, across_b) \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %98, 0;\n" \
                 ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n192k16." WGMMA_KINDS " {" \
                 SIXTY TEN(6) TEN(7) TEN(8) "%90, %91, %92, %93, %94, %95}, %96, %97, add, 1, 1, " across_a ", " across_b ";\n}" \
                 : SUMS64(0), SUMS16(64), SUMS16(80) : "l"(a), "l"(b), "r"((int)(add)))
#define WGMMA_N256(d, a, b, add, across_a, across_b) \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %130, 0;\n" \
                 ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n256k16." WGMMA_KINDS " {" \
                 SIXTY TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) \
                 "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, add, 1, 1, " across_a ", " across_b ";\n}" \
                 : SUMS64(0), SUMS64(64) : "l"(a), "l"(b), "r"((int)(add)))

/* Waits until at most `open` groups are under way; the sums may then be looked at. */
#define WGMMA_WAIT_N64(d, open) \
    asm volatile(ARCH_ONLY "wgmma.wait_group.sync.aligned " open ";" : SUMS16(0), SUMS16(16) :: "memory")
#define WGMMA_WAIT_N128(d, open) \
    asm volatile(ARCH_ONLY "wgmma.wait_group.sync.aligned " open ";" : SUMS64(0) :: "memory")
#define WGMMA_WAIT_N256(d, open) \
    asm volatile(ARCH_ONLY "wgmma.wait_group.sync.aligned " open ";" : SUMS64(0), SUMS64(64) :: "memory")

/* ---- mma: 32 items multiply small tiles out of registers (sm_80) ----------------------------- */

/* Reads and writes of local memory by address, in order with copies and barriers. */
#define LOAD_F64(x, at) asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(at))
#define LOAD_B32(x, at) asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(at))
#define STORE_B32X4(at, x, y, z, w) \
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" :: "r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory")

/* Four tiles of 8 lines of 16 bytes: item i says where line i % 8 of tile i / 8 is, and gets of each
 * tile 4 bytes: of line i / 4, the i % 4-th; or with how ".trans", of 16-bit numbers, rows for lines. */
#define LOAD_TILES(how, x, y, z, w, at) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at))

/* c, c8: two sums each of row i / 4, and 8 rows on; a, a8: of the same rows; b: of column i / 4. */
#define MMA_16x8(shape_kinds, c, c8, a, a8, b) \
    asm("mma.sync.aligned." shape_kinds " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"((c)[0]), "+f"((c)[1]), "+f"((c8)[0]), "+f"((c8)[1]) \
        : "r"((a)[0]), "r"((a8)[0]), "r"((a)[1]), "r"((a8)[1]), "r"((b)[0]), "r"((b)[1]))
#if TYPE == 0
#define MMA_F32(c, c8, a, a8, b) MMA_16x8("m16n8k8.row.col.f32.tf32.tf32.f32", c, c8, a, a8, b)
#elif TYPE == 2
#define MMA_F32(c, c8, a, a8, b) MMA_16x8("m16n8k16.row.col.f32.bf16.bf16.f32", c, c8, a, a8, b)
#else
#define MMA_F32(c, c8, a, a8, b) MMA_16x8("m16n8k16.row.col.f32.f16.f16.f32", c, c8, a, a8, b)
#endif

/* An f32 rounded to tf32. */
DEVICE unsigned int tf32_bits(unsigned int f32_bits)
{
    unsigned int u;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(BITS_FLOAT(f32_bits)));
    return u;
}

/* f64: the first on sm_80, the others from sm_90 on */
#define MMA_F64_8x8x4(c, a, b) \
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" \
        : "+d"((c)[0]), "+d"((c)[1]) : "d"(a), "d"(b))
#define MMA_F64_16x8x4(c, c8, a, a8, b) \
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
        : "+d"((c)[0]), "+d"((c)[1]), "+d"((c8)[0]), "+d"((c8)[1]) : "d"(a), "d"(a8), "d"(b))
#define MMA_F64_16x8x8(c, c8, a, a8, b) \
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 " \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+d"((c)[0]), "+d"((c)[1]), "+d"((c8)[0]), "+d"((c8)[1]) \
        : "d"((a)[0]), "d"((a8)[0]), "d"((a)[1]), "d"((a8)[1]), "d"((b)[0]), "d"((b)[1]))
#define MMA_F64_16x8x16(c, c8, a, a8, b) \
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, " \
        "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};" \
        : "+d"((c)[0]), "+d"((c)[1]), "+d"((c8)[0]), "+d"((c8)[1]) \
        : "d"((a)[0]), "d"((a8)[0]), "d"((a)[1]), "d"((a8)[1]), \
          "d"((a)[2]), "d"((a8)[2]), "d"((a)[3]), "d"((a8)[3]), \
          "d"((b)[0]), "d"((b)[1]), "d"((b)[2]), "d"((b)[3]))

/* Two neighbours to device memory, at a multiple of their size. */
#if TYPE == 3
#define STORE_PAIR(p, x, y) \
    asm volatile("st.global.v2.f64 [%0], {%1, %2};" :: "l"((unsigned INT64)(p)), "d"(x), "d"(y) : "memory")
#elif TYPE == 0
#define STORE_PAIR(p, x, y) STORE_F32_PAIR(p, x, y)
#else
#define STORE_PAIR(p, x, y) (*(GLOBAL unsigned int *)(p) = pair_of(x, y))
#endif

/* ... of f32, whatever the type. */
#define STORE_F32_PAIR(p, x, y) \
    asm volatile("st.global.v2.f32 [%0], {%1, %2};" :: "l"((unsigned INT64)(p)), "f"(x), "f"(y) : "memory")

#if TYPE != 3
/* A warp's sums of one row (`below`: of the second) to a line of C that runs along memory from the tile's
 * first column, in pairs.  Where lines begin at odd places too (the warp agrees), such a line has its pairs
 * one column on: the second number of each is the first of the next item.  left: columns of C from there. */
DEVICE void store_line(GLOBAL T *line, const float *d, const int sums, int below, int odd_lines, R alpha, R scale,
                       int lane, int left)
{
    const int odd = odd_lines && (UINT64)line / sizeof(T) % 2;

    left = left < 2 * sums ? left : 2 * sums;
    UNROLL for (int i = 2 * below; i < sums; i += 4) {
        const float x = alpha * (d[i] * scale), y = alpha * (d[i + 1] * scale);
        const int n = i / 4 * 8 + lane % 4 * 2 + odd;
        float z = x;

        if (odd_lines) {
            if (lane % 4 == 0 && i + 4 < sums)
                z = alpha * (d[i + 4 < sums ? i + 4 : i] * scale);
            asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, 0xffffffff;" : "+f"(z) : "r"(lane / 4 * 4 + (lane + 1) % 4));
        }
        if (n == 1 && left > 0)
            STORE(line, 0, x);
        if (n + 1 < left) {
            STORE_PAIR(line + n, odd ? y : x, odd ? z : y);
        } else if (n < left) {
            STORE(line, n, odd ? y : x);
        }
    }
}
#endif

/* A warp's sums of one row (`below`: of the second) to a line of C that begins anywhere, of which `left` numbers
 * are from the tile's first column on.  Numbers are moved by up to 7, so that 16 bytes are stored at once.   */
DEVICE void store_line16(GLOBAL T *first, const float *d, const int sums, int below, R alpha, int lane, int left)
{
    GLOBAL UINT16 *const line = (GLOBAL UINT16 *)first;
    const int by = (int)(8 - (UINT64)line / 2 % 8) % 8;         /* numbers before the first 16 bytes */
    unsigned int u[4], later[4] = { 0, 0, 0, 0 }, cut[4] = { 0, 0, 0, 0 };
    int cut_at = 2 * sums;

    left = left < 2 * sums ? left : 2 * sums;
    UNROLL for (int i = -16; i < sums; i += 16) {               /* 8 neighbours at a time, those of the next step first */
        UINT32 w[8];
        const int n = i * 2 + lane % 4 * 8 + by;

        UNROLL for (int j = 0; j < 4; j++) {
            u[j] = later[j];
            if (i + 16 < sums)
                later[j] = pair_of(alpha * d[i + 16 + 4 * j + 2 * below], alpha * d[i + 16 + 4 * j + 2 * below + 1]);
        }
        if (i + 16 < sums)
            transpose4(later, 1, lane, 1);
        if (i < 0) {
            UNROLL for (int j = 0; j < 7; j++)
                if (lane % 4 == 0 && j < by && j < left)
                    line[j] = (UINT16)(later[j / 2] >> j % 2 * 16);
            continue;
        }
        UNROLL for (int j = 0; j < 4; j++) {
            w[j] = u[j];
            w[4 + j] = from_lane(lane % 4 == 0 ? later[j] : u[j], lane / 4 * 4 + (lane + 1) % 4);
        }
        move_words(w, by);
        if (n + 8 <= left) {
            store16(first + n, w, 1);
        } else if (n < left) {                  /* at most one of a line */
            cut_at = n;
            UNROLL for (int j = 0; j < 4; j++)
                cut[j] = w[j];
        }
    }
    UNROLL for (int j = 0; j < 8; j++)
        if (cut_at + j < left)
            line[cut_at + j] = (UINT16)(cut[j / 2] >> j % 2 * 16);
}

/* ---- device memory that other work-groups write meanwhile --------------------------------- */

/* *p is n more; what this warp's items wrote before they met is then seen by who reads it so. */
DEVICE void count_release(GLOBAL int *p, int n)
{
    asm volatile("red.release.gpu.global.add.s32 [%0], %1;" :: "l"((unsigned INT64)p), "r"(n) : "memory");
}

DEVICE int load_acquire(GLOBAL const int *p)
{
    int v;

    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"((unsigned INT64)p) : "memory");
    return v;
}

/* What was written to device memory before is what copies read after. */
DEVICE void copies_follow_writes(void)
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

/* Until all 32 items are here; what one wrote to local memory before, the others then see. */
DEVICE void warp_meet(void)
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* Two numbers of bf16, the first in the lower half. */
DEVICE UINT32 bf16_pair_of(float low, float high)
{
    UINT32 u;

    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
    return u;
}

/* Two numbers of 16 bits: the lower, or the upper, of u and of v. */
DEVICE UINT32 lowers_of(UINT32 u, UINT32 v)
{
    UINT32 w;

    asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(w) : "r"(u), "r"(v));
    return w;
}

DEVICE UINT32 uppers_of(UINT32 u, UINT32 v)
{
    UINT32 w;

    asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(w) : "r"(u), "r"(v));
    return w;
}

/* ---- registers, of which 128 items may give to others what they do not need ------------------- */

#define REGISTERS_DROP(n) asm volatile(ARCH_ONLY "setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(n))
#define REGISTERS_TAKE(n) asm volatile(ARCH_ONLY "setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(n))

/* A barrier that items may reach in different places of the text. */
DEVICE void items_meet(int items)
{
    asm volatile("bar.sync 1, %0;" :: "r"(items) : "memory");
}

/* ---- operands that were written as the matrix engine reads them ------------------------------- */

/* Starts a copy of bytes that lie side by side, a multiple of 16; they arrive at the barrier. */
DEVICE void copy_bytes(unsigned int to, GLOBAL const void *from, int bytes, unsigned int barrier_at)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"((unsigned INT64)from), "r"(bytes), "r"(barrier_at) : "memory");
}

/* An operand in local memory in columns of 16 bytes along K, `lines` of M or N in each. */
DEVICE unsigned INT64 wgmma_columns(unsigned int at, int lines)
{
    return (unsigned INT64)8 << 32 | (unsigned INT64)lines << 16 | (unsigned INT64)((at & 0x3ffff) >> 4);
}

/* d = add d + a b of bf16, add being "0" or "1"; K runs along the columns. */
#define WGMMA_BF16_N128(d, a, b, add) \
    asm volatile(ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" \
                 SIXTY "%60, %61, %62, %63}, %64, %65, " add ", 1, 1, 0, 0;" \
                 : SUMS64(0) : "l"(a), "l"(b))
#define WGMMA_BF16_N192(d, a, b, add) \
    asm volatile(ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {" \
                 SIXTY TEN(6) TEN(7) TEN(8) "%90, %91, %92, %93, %94, %95}, %96, %97, " add ", 1, 1, 0, 0;" \
                 : SUMS64(0), SUMS16(64), SUMS16(80) : "l"(a), "l"(b))
#define WGMMA_WAIT_N192(d, open) \
    asm volatile(ARCH_ONLY "wgmma.wait_group.sync.aligned " open ";" : SUMS64(0), SUMS16(64), SUMS16(80) :: "memory")

/* ... a being four registers of this item: two numbers each of row i / 4 of its warp's 16 (i of 32) and of
 * the row 8 on, of k = i % 4 * 2; then the same 8 of k on.                                         */
#define WGMMA_BF16_REGISTERS_N64(d, a, b, add) \
    asm volatile(ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" \
                 THIRTY "%30, %31}, {%32, %33, %34, %35}, %36, " add ", 1, 1, 0;" \
                 : SUMS16(0), SUMS16(16) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b))
#define WGMMA_BF16_REGISTERS_N128(d, a, b, add) \
    asm volatile(ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" \
                 SIXTY "%60, %61, %62, %63}, {%64, %65, %66, %67}, %68, " add ", 1, 1, 0;" \
                 : SUMS64(0) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b))

/* d += a b of tf32, of which the lower 13 bits are ignored; K runs along memory.  a: an operand, or
 * four registers of this item.                                                                  */
#define WGMMA_TF32_N128(d, a, b) \
    asm volatile(ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" \
                 SIXTY "%60, %61, %62, %63}, %64, %65, 1, 1, 1;" \
                 : SUMS64(0) : "l"(a), "l"(b))
#define WGMMA_TF32_N256(d, a, b) \
    asm volatile(ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {" \
                 SIXTY TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) \
                 "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1, 1, 1;" \
                 : SUMS64(0), SUMS64(64) : "l"(a), "l"(b))
#define WGMMA_TF32_REGISTERS_N128(d, a, b) \
    asm volatile(ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" \
                 SIXTY "%60, %61, %62, %63}, {%64, %65, %66, %67}, %68, 1, 1, 1;" \
                 : SUMS64(0) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b))
#define WGMMA_TF32_REGISTERS_N256(d, a, b) \
    asm volatile(ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {" \
                 SIXTY TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) \
                 "%120, %121, %122, %123, %124, %125, %126, %127}, {%128, %129, %130, %131}, %132, 1, 1, 1;" \
                 : SUMS64(0), SUMS64(64) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b))
