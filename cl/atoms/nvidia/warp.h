/* cl/atoms/nvidia/warp.h - what lanes of a warp exchange and agree on, numbered barriers, register budgets
 *
 * PTX is written inside both OpenCL C and CUDA C++, so this is one text for both backends.  What one
 * architecture alone has begins with the word ARCH_ONLY.  An address in local memory has 32 bits:
 * LOCAL_ADDRESS().
 *
 * Source: the PTX ISA manual, sections on shfl, vote, elect, bar and setmaxnreg.
 */
/* The value of u in that lane. */
DEVICE UINT32 from_lane(UINT32 u, int lane)
{
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, 0xffffffff;" : "+r"(u) : "r"(lane));
    return u;
}

/* The value of x in the lane whose number differs in these bits. */
DEVICE float from_lane_xor(float x, int bits)
{
    asm volatile("shfl.sync.bfly.b32 %0, %0, %1, 31, 0xffffffff;" : "+f"(x) : "r"(bits));
    return x;
}

/* States that u is the same in all lanes.  The assembler then keeps u, and what is computed from it, in
 * uniform registers; without it, a descriptor or an address is moved there before each use. */
DEVICE UINT32 warp_uniform(UINT32 u)
{
    return from_lane(u, 0);
}

DEVICE int this_warp(void)
{
    return (int)warp_uniform((UINT32)LOCAL_ID() / 32);
}

/* 1 in one lane of a converged warp.  The assembler then knows that the operands of TMA are uniform;
 * otherwise it loops over the lanes. */
DEVICE int is_elected(void)
{
    int is;

    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.s32 %0, 1, 0, p; }" : "=r"(is));
    return is;
}

/* Whether x is not 0 in some lane of a converged warp. */
DEVICE int any_in_warp(int x)
{
    int any;

    asm volatile("{ .reg .pred p, q; setp.ne.b32 p, %1, 0; vote.sync.any.pred q, p, 0xffffffff; "
                 "selp.s32 %0, 1, 0, q; }" : "=r"(any) : "r"(x));
    return any;
}

/* Waits for all lanes of the warp, which then see what the others wrote to local memory. */
DEVICE void warp_meet(void)
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* A warpgroup gives registers back, or takes more: n of each work-item, a multiple of 8 (sm_90). */
#define REGISTERS_DROP(n) asm volatile(ARCH_ONLY "setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(n))
#define REGISTERS_TAKE(n) asm volatile(ARCH_ONLY "setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(n))

/* Numbered barriers, 1 to 15, of `items` work-items: bar_sync() waits until all have arrived, bar_arrive()
 * does not. */
DEVICE void bar_sync(int id, int items)
{
    asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(items) : "memory");
}

DEVICE void bar_arrive(int id, int items)
{
    asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(items) : "memory");
}

/* Four lanes, `apart` from each other, hold the rows of a 4 x 4 matrix in u, and get its columns; `sets`,
 * a constant, of such matrices.  Both elements are read before one is chosen: otherwise a compiler chooses
 * an address, and u must be in memory. */
DEVICE void transpose4(unsigned int *u, const int sets, int lane, int apart)
{
    UNROLL for (int step = 1; step < 4; step *= 2) {
        const int up = (lane / apart & step) != 0;

        UNROLL for (int i = 0; i < 4 * sets; i++)
            if (!(i & step)) {
                const unsigned int a = u[i], b = u[i + step];
                unsigned int there = up ? a : b;

                asm volatile("shfl.sync.bfly.b32 %0, %0, %1, 31, 0xffffffff;"
                             : "+r"(there) : "r"(step * apart));
                u[i] = up ? there : a;
                u[i + step] = up ? b : there;
            }
    }
}

/* Lane 4 g + c holds elements 2 c and 2 c + 1, of 16 bits, of row g of an 8 x 8 matrix, and gets those of
 * column g. */
DEVICE UINT32 transpose8(UINT32 u)
{
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(u));
    return u;
}
