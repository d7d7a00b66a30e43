/* SPDX-License-Identifier: Apache-2.0
 *
 * engines.h - what a matrix instruction does, said again in plain OpenCL C
 *
 * Stands before cl/atoms/amd/matrix.h or cl/atoms/intel/matrix.h in a kernel's text, and takes the place of
 * the maker's instruction.  Each lane puts what it holds where the others see it; then each
 * gathers its sums, by the layout that the maker documents: not by what the atoms make of it.
 * So the very atoms, kernel and rows that are shipped run on any device that has none of this.
 *
 * The layouts, for number (i, k) of A, (k, j) of B, (i, j) of C: in which lane, and at which
 * place of what the lane holds.  They are those of AMD's matrix instruction calculator, and of
 * Khronos' cl_intel_subgroup_matrix_multiply_accumulate.
 */
#ifdef AMD
#if ENGINE == 908 || ENGINE == 90
#define LANES_  64
#if TYPE == 3
#define SUMS_           double4
#define C_LANE(i, j)    (16 * ((i) % 4) + (j))
#define C_AT(i, j)      ((i) / 4)
#else
#define SUMS_           float16
#define C_LANE(i, j)    (32 * ((i) / 4) % 64 + (j))
#define C_AT(i, j)      (4 * ((i) / 8) + (i) % 4)
#endif
/* lane M (k / G) + i holds G neighbours along K */
#define A_LANE(i, k)    (M_ * ((k) / (K_ * M_ / 64)) + (i))
#define A_AT(i, k)      ((k) % (K_ * M_ / 64))
#define M_              (TYPE == 3 ? 16 : 32)
#define K_              (TYPE == 3 ? 4 : TYPE == 0 ? 2 : TYPE == 2 && ENGINE == 908 ? 4 : 8)
#elif ENGINE == 11
#define LANES_  32
#define SUMS_           float8
#define M_              16
#define K_              16
#define A_LANE(i, k)    ((i) + (LOCAL_ID() & 16))           /* both halves hold all; each uses its own */
#define A_AT(i, k)      (k)
#define C_LANE(i, j)    (16 * (i) % 32 + (j))
#define C_AT(i, j)      ((i) / 2)
#elif ENGINE == 12
#define LANES_  32
#define SUMS_           float8
#define M_              16
#define K_              16
#define A_LANE(i, k)    (16 * ((k) / 4 % 2) + (i))
#define A_AT(i, k)      (2 * (2 * ((k) / 8) + (k) / 2 % 2) + (k) % 2)
#define C_LANE(i, j)    (16 * ((i) / 8) + (j))
#define C_AT(i, j)      ((i) % 8)
#endif
#define N_              M_
#define B_LANE(k, j)    A_LANE(j, k)
#define B_AT(k, j)      A_AT(j, k)
#else
#define LANES_          ENGINE
#define SUMS_           float8
#define M_              8
#define N_              ENGINE
#define K_              16
#define A_LANE(i, k)    ((k) * ENGINE / 16)
#define A_AT(i, k)      ((i) * (16 / ENGINE) + (k) % (16 / ENGINE))
#define B_LANE(k, j)    (j)
#define B_AT(k, j)      (k)
#define C_LANE(i, j)    (j)
#define C_AT(i, j)      (i)
#endif

#ifdef WRONG                                    /* a device that does something else */
#undef C_AT
#define C_AT(i, j)      ((i) & 3)
#endif

/* Beside the kernel's own array, room for 32 numbers of each item: 16 of A, 16 of B. */
#undef LOCAL_ARRAY
#define LOCAL_ARRAY(type, v, n) \
    __local type v[n] __attribute__((aligned(64))); \
    __local R exchange[ITEMS * 32]

/* Loops that are left as loops make a shorter kernel, which compiles sooner. */
#undef UNROLL
#define UNROLL NO_UNROLL

/* Number `at` of those that a lane holds. */
DEVICE R held(const uint *part, int at)
{
#if TYPE == 0
    return as_float(part[at]);
#elif TYPE == 3
    return as_double((ulong)part[2 * at + 1] << 32 | part[2 * at]);
#else
    const ushort bits = (ushort)(part[at / 2] >> at % 2 * 16);

    return TYPE == 1 ? vload_half(0, (const half *)&bits) : as_float((uint)bits << 16);
#endif
}

DEVICE SUMS_ emulated(__local R *exchange, uint8 a, uint8 b, SUMS_ c)
{
    const int wave = LOCAL_ID() / LANES_ * LANES_, me = LOCAL_ID() % LANES_;
    const int count = TYPE == 0 ? 8 : TYPE == 3 ? 4 : 16;
    uint part[8];

    vstore8(a, 0, part);
    NO_UNROLL for (int t = 0; t < count; t++)
        exchange[(wave + me) * 32 + t] = held(part, t);
    vstore8(b, 0, part);
    NO_UNROLL for (int t = 0; t < count; t++)
        exchange[(wave + me) * 32 + 16 + t] = held(part, t);
    BARRIER();
    NO_UNROLL for (int i = 0; i < M_; i++) {
        const int j = me % N_;

        if (C_LANE(i, j) == me)
            NO_UNROLL for (int k = 0; k < K_; k++)
                c[C_AT(i, j)] += exchange[(wave + A_LANE(i, k)) * 32 + A_AT(i, k)] *
                                 exchange[(wave + B_LANE(k, j)) * 32 + 16 + B_AT(k, j)];
    }
    BARRIER();
    return c;
}

/* What another lane of the wave holds. */
DEVICE uint held_by(__local R *exchange, int lane, uint u)
{
    __local uint *const room = (__local uint *)exchange + LOCAL_ID() / LANES_ * LANES_;
    uint other;

    room[LOCAL_ID() % LANES_] = u;
    BARRIER();
    other = room[lane % LANES_];
    BARRIER();
    return other;
}

#define FROM_1(v) ((uint8)(as_uint(v)))
#define FROM_2(v) ((uint8)(as_uint2(v), as_uint2(v), as_uint2(v), as_uint2(v)))
#define FROM_4(v) ((uint8)(as_uint4(v), as_uint4(v)))
#define FROM_8(v) as_uint8(v)

#ifdef AMD
#undef as_half4
#undef as_half8
#undef as_half16
#define as_half4(v)  (v)                        /* a device may have no arithmetic in f16 */
#define as_half8(v)  (v)
#define as_half16(v) (v)
#define __builtin_amdgcn_sched_barrier(which)
#define amdgpu_waves_per_eu(n)
#define __builtin_amdgcn_ds_bpermute(bytes, u) held_by(exchange, (bytes) / 4, u)
#define __builtin_amdgcn_permlanex16(old, u, low, high, x, y) held_by(exchange, LOCAL_ID() ^ 16, u)
#define __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, c, x, y, z) emulated(exchange, FROM_1(a), FROM_1(b), c)
#define __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, x, y, z) emulated(exchange, FROM_2(a), FROM_2(b), c)
#define __builtin_amdgcn_mfma_f32_32x32x4bf16(a, b, c, x, y, z) emulated(exchange, FROM_1(a), FROM_1(b), c)
#define __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, c, x, y, z) emulated(exchange, FROM_2(a), FROM_2(b), c)
#define __builtin_amdgcn_mfma_f64_16x16x4f64(a, b, c, x, y, z) emulated(exchange, FROM_2(a), FROM_2(b), c)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c)  emulated(exchange, FROM_8(a), FROM_8(b), c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c)  emulated(exchange, FROM_8(a), FROM_8(b), c)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c)  emulated(exchange, FROM_4(a), FROM_4(b), c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c) emulated(exchange, FROM_4(a), FROM_4(b), c)
#else
#define intel_reqd_sub_group_size(n)
#if ENGINE == 16
#define FROM_A(v) FROM_4(v)
#else
#define FROM_A(v) FROM_8(v)
#endif
#define intel_sub_group_f16_f16_matrix_mad_k16(a, b, c)  emulated(exchange, FROM_A(a), FROM_8(b), c)
#define intel_sub_group_bf16_bf16_matrix_mad_k16(a, b, c)  emulated(exchange, FROM_A(a), FROM_8(b), c)

/* Number i of a lane is i sub-groups, and as many as it is the how-manieth lane, from the start. */
DEVICE ushort8 intel_sub_group_block_read_us8(__local const ushort *p)
{
    ushort8 v;

    for (int i = 0; i < 8; i++)
        v[i] = p[i * LANES_ + LOCAL_ID() % LANES_];
    return v;
}

DEVICE uint8 intel_sub_group_block_read8(__local const uint *p)
{
    uint8 v;

    for (int i = 0; i < 8; i++)
        v[i] = p[i * LANES_ + LOCAL_ID() % LANES_];
    return v;
}
#endif
