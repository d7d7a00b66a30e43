/* cl/atoms/nvidia/mma.h - products by a warp out of registers (sm_80)
 *
 * Takes: TYPE, for MMA_F32().
 * Source: the PTX ISA manual, sections on ldmatrix and mma.
 */
/* Four 8 x 16-byte matrices.  Lane i gives the address of row i % 8 of matrix i / 8, and gets bytes i % 4
 * * 4 of row i / 4 of each; or, with how ".trans", the same of the transposed matrices of 16-bit elements. */
#define LOAD_TILES(how, x, y, z, w, at) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at))

/* Stores four such matrices: addresses and registers are those of LOAD_TILES() without .trans (sm_90). */
#define STORE_TILES(at, x, y, z, w) \
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" \
                 :: "r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory")

/* In lane i: c and c8 are two accumulators each of row i / 4 and of the row 8 below; a and a8 are of the
 * same rows; b is of column i / 4. */
#define MMA_16x8(shape_kinds, c, c8, a, a8, b) \
    asm("mma.sync.aligned." shape_kinds " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"((c)[0]), "+f"((c)[1]), "+f"((c8)[0]), "+f"((c8)[1]) \
        : "r"((a)[0]), "r"((a8)[0]), "r"((a)[1]), "r"((a8)[1]), "r"((b)[0]), "r"((b)[1]))
#define MMA_BF16(c, c8, a, a8, b) MMA_16x8("m16n8k16.row.col.f32.bf16.bf16.f32", c, c8, a, a8, b)
#if TYPE == TYPE_F32
#define MMA_F32(c, c8, a, a8, b) MMA_16x8("m16n8k8.row.col.f32.tf32.tf32.f32", c, c8, a, a8, b)
#elif TYPE == TYPE_BF16
#define MMA_F32(c, c8, a, a8, b) MMA_BF16(c, c8, a, a8, b)
#else
#define MMA_F32(c, c8, a, a8, b) MMA_16x8("m16n8k16.row.col.f32.f16.f16.f32", c, c8, a, a8, b)
#endif

/* An f32 rounded to tf32, to nearest. */
DEVICE unsigned int tf32_bits(unsigned int f32_bits)
{
    unsigned int u;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(BITS_FLOAT(f32_bits)));
    return u;
}

/* f64: the first from sm_80 on, the others from sm_90 on */
#define MMA_F64_8x8x4(c, a, b) \
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" \
        : "+d"((c)[0]), "+d"((c)[1]) : "d"(a), "d"(b))
#define MMA_F64_16x8x4(c, c8, a, a8, b) \
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 " \
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
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
