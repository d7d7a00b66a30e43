/* cl/atoms/nvidia/wgmma.h - products of 64 rows by a warpgroup, 128 work-items (sm_90)
 *
 *     WGMMA(n, kind, flags, d, a, b, add)       d = add ? d + A B : A B, both operands in local memory
 *     WGMMA_RS(n, kind, flags, d, a, b, add)    the same, A in registers: a[0] to a[3]
 *     WGMMA_WAIT(n, d, open)                    waits until at most `open` groups are in flight, for d
 *
 * n is the number of columns, any multiple of 8 up to 256; d has n / 2 accumulators of each work-item.  A
 * product has 32 bytes of K: 16 elements of 16 bits, or 8 of tf32.
 *
 * kind and flags: WGMMA_F16 or WGMMA_BF16, with WGMMA_MAJOR(a, b), or WGMMA_MAJOR_B(b) where A is in
 * registers: "1" for an operand in local memory that is M-major (N-major), "0" for one that is K-major.
 * WGMMA_TF32, of which the lower 13 bits are ignored, has no flags, "": its operands are K-major.
 *
 * d, in lane i: columns i % 4 * 2 and the next one of row i / 4 of the warp's 16, the same columns of the row
 * 8 below; then all that 8 columns further, and so on (cl/tile/accumulator.h).
 * a in registers, in lane i: 32 bits, from byte i % 4 * 4 of K on, of row i / 4 and of the row 8 below; then
 * the same 16 bytes further.
 *
 * There is a table for each of: the accumulators as operands of an asm, their names in its string, and the
 * numbers of the operands behind them.
 *
 * Source: the PTX ISA manual, section on wgmma.
 */
#define WGMMA_F16          "k16.f32.f16.f16"
#define WGMMA_BF16         "k16.f32.bf16.bf16"
#define WGMMA_TF32         "k8.f32.tf32.tf32"
#define WGMMA_MAJOR(a, b)  WGMMA_MAJOR_(a, b)
#define WGMMA_MAJOR_(a, b) ", " #a ", " #b
#define WGMMA_MAJOR_B(b)   WGMMA_MAJOR_B_(b)
#define WGMMA_MAJOR_B_(b)  ", " #b

#define WGMMA(n, kind, flags, d, a, b, add)     WGMMA_(n, WGMMA_NEXT(n), kind, flags, d, a, b, add)
#define WGMMA_RS(n, kind, flags, d, a, b, add)  WGMMA_RS_(n, WGMMA_NEXT(n), kind, flags, d, a, b, add)
#define WGMMA_WAIT(n, d, open)                  WGMMA_WAIT_(n, d, open)

/* These expand n, and the list of numbers, before they are pasted. */
#define WGMMA_(n, next, kind, flags, d, a, b, add)     WGMMA_SS__(n, next, kind, flags, d, a, b, add)
#define WGMMA_RS_(n, next, kind, flags, d, a, b, add)  WGMMA_RS__(n, next, kind, flags, d, a, b, add)
#define WGMMA_NEXT(n)                                  WGMMA_NEXT_(n)
#define WGMMA_NEXT_(n)                                 WGMMA_NEXT_##n

#define WGMMA_SS__(n, i, j, k, l, m, o, kind, flags, d, a, b, add) \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %" #k ", 0;\n" \
                 ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n" #n kind " {" WGMMA_NAMES_##n "}, " \
                 "%" #i ", %" #j ", add, 1, 1" flags ";\n}" \
                 : WGMMA_ACC_##n(d) : "l"(a), "l"(b), "r"((int)(add)))
#define WGMMA_RS__(n, i, j, k, l, m, o, kind, flags, d, a, b, add) \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %" #o ", 0;\n" \
                 ARCH_ONLY "wgmma.mma_async.sync.aligned.m64n" #n kind " {" WGMMA_NAMES_##n "}, " \
                 "{%" #i ", %" #j ", %" #k ", %" #l "}, %" #m ", add, 1, 1" flags ";\n}" \
                 : WGMMA_ACC_##n(d) \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b), "r"((int)(add)))
#define WGMMA_WAIT_(n, d, open) \
    asm volatile(ARCH_ONLY "wgmma.wait_group.sync.aligned " open ";" : WGMMA_ACC_##n(d) :: "memory")

DEVICE void wgmma_begin(void)
{
    asm volatile(ARCH_ONLY "wgmma.fence.sync.aligned;" ::: "memory");
}

/* What this work-item has stored to local memory will be read by products, after a barrier; what it has
 * loaded is there, and copies may overwrite it.  An arrival alone does not wait for loads. */
DEVICE void fence_async_proxy(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

DEVICE void wgmma_commit(void)
{
    asm volatile(ARCH_ONLY "wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* A descriptor of rows of 128 bytes, swizzled: its lower half, in which addresses count by 16 bytes, so that
 * steps may be added.  apart: bytes between blocks of an operand that is M-major (N-major), else any. */
DEVICE UINT32 wgmma_descriptor(unsigned int at, int apart)
{
    return (UINT32)(apart >> 4) << 16 | (at & 0x3ffff) >> 4;
}

/* ... and all of it. */
DEVICE unsigned INT64 wgmma_at(UINT32 descriptor)
{
    return (unsigned INT64)1 << 62 | (unsigned INT64)64 << 32 | descriptor;
}

/* The descriptor of a K-major operand that is not swizzled: columns of 16 bytes, each of so many rows. */
DEVICE unsigned INT64 wgmma_columns(unsigned int at, int rows)
{
    return (unsigned INT64)8 << 32 | (unsigned INT64)rows << 16 | (unsigned INT64)((at & 0x3ffff) >> 4);
}

/* The descriptor of an N-major operand that is not swizzled: vectors of 16 bytes, in which the row of the
 * next k is the next vector, and the next eight columns are `vectors` further. */
DEVICE unsigned INT64 wgmma_planes(unsigned int at, int vectors)
{
    return (unsigned INT64)vectors << 32 | (unsigned INT64)8 << 16 | (unsigned INT64)((at & 0x3ffff) >> 4);
}

#define WGMMA_ACC(d, i)  "+f"((d)[i]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3])
#define WGMMA_ACC_8(d)    WGMMA_ACC(d, 0)
#define WGMMA_ACC_16(d)   WGMMA_ACC_8(d), WGMMA_ACC(d, 4)
#define WGMMA_ACC_24(d)   WGMMA_ACC_16(d), WGMMA_ACC(d, 8)
#define WGMMA_ACC_32(d)   WGMMA_ACC_24(d), WGMMA_ACC(d, 12)
#define WGMMA_ACC_40(d)   WGMMA_ACC_32(d), WGMMA_ACC(d, 16)
#define WGMMA_ACC_48(d)   WGMMA_ACC_40(d), WGMMA_ACC(d, 20)
#define WGMMA_ACC_56(d)   WGMMA_ACC_48(d), WGMMA_ACC(d, 24)
#define WGMMA_ACC_64(d)   WGMMA_ACC_56(d), WGMMA_ACC(d, 28)
#define WGMMA_ACC_72(d)   WGMMA_ACC_64(d), WGMMA_ACC(d, 32)
#define WGMMA_ACC_80(d)   WGMMA_ACC_72(d), WGMMA_ACC(d, 36)
#define WGMMA_ACC_88(d)   WGMMA_ACC_80(d), WGMMA_ACC(d, 40)
#define WGMMA_ACC_96(d)   WGMMA_ACC_88(d), WGMMA_ACC(d, 44)
#define WGMMA_ACC_104(d)  WGMMA_ACC_96(d), WGMMA_ACC(d, 48)
#define WGMMA_ACC_112(d)  WGMMA_ACC_104(d), WGMMA_ACC(d, 52)
#define WGMMA_ACC_120(d)  WGMMA_ACC_112(d), WGMMA_ACC(d, 56)
#define WGMMA_ACC_128(d)  WGMMA_ACC_120(d), WGMMA_ACC(d, 60)
#define WGMMA_ACC_136(d)  WGMMA_ACC_128(d), WGMMA_ACC(d, 64)
#define WGMMA_ACC_144(d)  WGMMA_ACC_136(d), WGMMA_ACC(d, 68)
#define WGMMA_ACC_152(d)  WGMMA_ACC_144(d), WGMMA_ACC(d, 72)
#define WGMMA_ACC_160(d)  WGMMA_ACC_152(d), WGMMA_ACC(d, 76)
#define WGMMA_ACC_168(d)  WGMMA_ACC_160(d), WGMMA_ACC(d, 80)
#define WGMMA_ACC_176(d)  WGMMA_ACC_168(d), WGMMA_ACC(d, 84)
#define WGMMA_ACC_184(d)  WGMMA_ACC_176(d), WGMMA_ACC(d, 88)
#define WGMMA_ACC_192(d)  WGMMA_ACC_184(d), WGMMA_ACC(d, 92)
#define WGMMA_ACC_200(d)  WGMMA_ACC_192(d), WGMMA_ACC(d, 96)
#define WGMMA_ACC_208(d)  WGMMA_ACC_200(d), WGMMA_ACC(d, 100)
#define WGMMA_ACC_216(d)  WGMMA_ACC_208(d), WGMMA_ACC(d, 104)
#define WGMMA_ACC_224(d)  WGMMA_ACC_216(d), WGMMA_ACC(d, 108)
#define WGMMA_ACC_232(d)  WGMMA_ACC_224(d), WGMMA_ACC(d, 112)
#define WGMMA_ACC_240(d)  WGMMA_ACC_232(d), WGMMA_ACC(d, 116)
#define WGMMA_ACC_248(d)  WGMMA_ACC_240(d), WGMMA_ACC(d, 120)
#define WGMMA_ACC_256(d)  WGMMA_ACC_248(d), WGMMA_ACC(d, 124)

#define WGMMA_NAMES_8   "%0, %1, %2, %3"
#define WGMMA_NAMES_16  WGMMA_NAMES_8 ", %4, %5, %6, %7"
#define WGMMA_NAMES_24  WGMMA_NAMES_16 ", %8, %9, %10, %11"
#define WGMMA_NAMES_32  WGMMA_NAMES_24 ", %12, %13, %14, %15"
#define WGMMA_NAMES_40  WGMMA_NAMES_32 ", %16, %17, %18, %19"
#define WGMMA_NAMES_48  WGMMA_NAMES_40 ", %20, %21, %22, %23"
#define WGMMA_NAMES_56  WGMMA_NAMES_48 ", %24, %25, %26, %27"
#define WGMMA_NAMES_64  WGMMA_NAMES_56 ", %28, %29, %30, %31"
#define WGMMA_NAMES_72  WGMMA_NAMES_64 ", %32, %33, %34, %35"
#define WGMMA_NAMES_80  WGMMA_NAMES_72 ", %36, %37, %38, %39"
#define WGMMA_NAMES_88  WGMMA_NAMES_80 ", %40, %41, %42, %43"
#define WGMMA_NAMES_96  WGMMA_NAMES_88 ", %44, %45, %46, %47"
#define WGMMA_NAMES_104 WGMMA_NAMES_96 ", %48, %49, %50, %51"
#define WGMMA_NAMES_112 WGMMA_NAMES_104 ", %52, %53, %54, %55"
#define WGMMA_NAMES_120 WGMMA_NAMES_112 ", %56, %57, %58, %59"
#define WGMMA_NAMES_128 WGMMA_NAMES_120 ", %60, %61, %62, %63"
#define WGMMA_NAMES_136 WGMMA_NAMES_128 ", %64, %65, %66, %67"
#define WGMMA_NAMES_144 WGMMA_NAMES_136 ", %68, %69, %70, %71"
#define WGMMA_NAMES_152 WGMMA_NAMES_144 ", %72, %73, %74, %75"
#define WGMMA_NAMES_160 WGMMA_NAMES_152 ", %76, %77, %78, %79"
#define WGMMA_NAMES_168 WGMMA_NAMES_160 ", %80, %81, %82, %83"
#define WGMMA_NAMES_176 WGMMA_NAMES_168 ", %84, %85, %86, %87"
#define WGMMA_NAMES_184 WGMMA_NAMES_176 ", %88, %89, %90, %91"
#define WGMMA_NAMES_192 WGMMA_NAMES_184 ", %92, %93, %94, %95"
#define WGMMA_NAMES_200 WGMMA_NAMES_192 ", %96, %97, %98, %99"
#define WGMMA_NAMES_208 WGMMA_NAMES_200 ", %100, %101, %102, %103"
#define WGMMA_NAMES_216 WGMMA_NAMES_208 ", %104, %105, %106, %107"
#define WGMMA_NAMES_224 WGMMA_NAMES_216 ", %108, %109, %110, %111"
#define WGMMA_NAMES_232 WGMMA_NAMES_224 ", %112, %113, %114, %115"
#define WGMMA_NAMES_240 WGMMA_NAMES_232 ", %116, %117, %118, %119"
#define WGMMA_NAMES_248 WGMMA_NAMES_240 ", %120, %121, %122, %123"
#define WGMMA_NAMES_256 WGMMA_NAMES_248 ", %124, %125, %126, %127"

#define WGMMA_NEXT_8   4, 5, 6, 7, 8, 9
#define WGMMA_NEXT_16  8, 9, 10, 11, 12, 13
#define WGMMA_NEXT_24  12, 13, 14, 15, 16, 17
#define WGMMA_NEXT_32  16, 17, 18, 19, 20, 21
#define WGMMA_NEXT_40  20, 21, 22, 23, 24, 25
#define WGMMA_NEXT_48  24, 25, 26, 27, 28, 29
#define WGMMA_NEXT_56  28, 29, 30, 31, 32, 33
#define WGMMA_NEXT_64  32, 33, 34, 35, 36, 37
#define WGMMA_NEXT_72  36, 37, 38, 39, 40, 41
#define WGMMA_NEXT_80  40, 41, 42, 43, 44, 45
#define WGMMA_NEXT_88  44, 45, 46, 47, 48, 49
#define WGMMA_NEXT_96  48, 49, 50, 51, 52, 53
#define WGMMA_NEXT_104 52, 53, 54, 55, 56, 57
#define WGMMA_NEXT_112 56, 57, 58, 59, 60, 61
#define WGMMA_NEXT_120 60, 61, 62, 63, 64, 65
#define WGMMA_NEXT_128 64, 65, 66, 67, 68, 69
#define WGMMA_NEXT_136 68, 69, 70, 71, 72, 73
#define WGMMA_NEXT_144 72, 73, 74, 75, 76, 77
#define WGMMA_NEXT_152 76, 77, 78, 79, 80, 81
#define WGMMA_NEXT_160 80, 81, 82, 83, 84, 85
#define WGMMA_NEXT_168 84, 85, 86, 87, 88, 89
#define WGMMA_NEXT_176 88, 89, 90, 91, 92, 93
#define WGMMA_NEXT_184 92, 93, 94, 95, 96, 97
#define WGMMA_NEXT_192 96, 97, 98, 99, 100, 101
#define WGMMA_NEXT_200 100, 101, 102, 103, 104, 105
#define WGMMA_NEXT_208 104, 105, 106, 107, 108, 109
#define WGMMA_NEXT_216 108, 109, 110, 111, 112, 113
#define WGMMA_NEXT_224 112, 113, 114, 115, 116, 117
#define WGMMA_NEXT_232 116, 117, 118, 119, 120, 121
#define WGMMA_NEXT_240 120, 121, 122, 123, 124, 125
#define WGMMA_NEXT_248 124, 125, 126, 127, 128, 129
#define WGMMA_NEXT_256 128, 129, 130, 131, 132, 133
