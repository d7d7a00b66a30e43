/* cl/atoms/nvidia/memory.h - pairs, 16-byte vectors, and device memory that other work-groups write too
 *
 * Takes: TYPE and OF() of cl/types.h.
 * Source: the PTX ISA manual, sections on cvt, prmt, ld, st, atom, red and fence.
 */

/* ---- pairs of 16-bit elements ---------------------------------------------------------------- */

/* Two elements of f16, or bf16, the first in the lower half. */
DEVICE UINT32 f16_pair_of(float low, float high)
{
    UINT32 u;

    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
    return u;
}

DEVICE UINT32 bf16_pair_of(float low, float high)
{
    UINT32 u;

    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
    return u;
}

#define PAIR_OF_1(low, high) f16_pair_of(low, high)
#define PAIR_OF_2(low, high) bf16_pair_of(low, high)
#define pair_of(low, high)   OF(PAIR_OF, TYPE)(low, high)

/* The first of such a pair, and the second. */
DEVICE float f16_lower(UINT32 u)
{
    float x;

    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %1; cvt.f32.f16 %0, a; }" : "=f"(x) : "r"(u));
    return x;
}

DEVICE float f16_upper(UINT32 u)
{
    float x;

    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %1; cvt.f32.f16 %0, b; }" : "=f"(x) : "r"(u));
    return x;
}

#define LOWER_1(u) f16_lower(u)
#define UPPER_1(u) f16_upper(u)
#define LOWER_2(u) BITS_FLOAT((u) << 16)
#define UPPER_2(u) BITS_FLOAT((u) & 0xffff0000u)

/* The larger of each two elements, of which NaN is none (sm_80). */
DEVICE UINT32 f16_pair_max(UINT32 u, UINT32 v)
{
    UINT32 w;

    asm("max.f16x2 %0, %1, %2;" : "=r"(w) : "r"(u), "r"(v));
    return w;
}

DEVICE UINT32 bf16_pair_max(UINT32 u, UINT32 v)
{
    UINT32 w;

    asm("max.bf16x2 %0, %1, %2;" : "=r"(w) : "r"(u), "r"(v));
    return w;
}

#define PAIR_MAX_1(u, v) f16_pair_max(u, v)
#define PAIR_MAX_2(u, v) bf16_pair_max(u, v)
#define pair_max(u, v)   OF(PAIR_MAX, TYPE)(u, v)

/* u, of which the compiler knows nothing: what is computed of it is computed again at each use, and takes no
 * registers meanwhile. */
DEVICE UINT32 anew(UINT32 u)
{
    asm volatile("mov.b32 %0, %0;" : "+r"(u));
    return u;
}

/* The lower halves of u and v; their upper halves. */
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

/* The word that begins `bits` into u, where v follows. */
DEVICE UINT32 shifted_pair(UINT32 u, UINT32 v, UINT32 bits)
{
    UINT32 w;

    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(w) : "r"(u), "r"(v), "r"(bits));
    return w;
}

/* Of 16 elements in eight words, elements `by` to `by` + 7 become the first four words; by is below 8.  As in
 * transpose4(), both words are read before one is chosen. */
DEVICE void shift_words(UINT32 *w, int by)
{
    UNROLL for (int i = 0; i < 6; i++) {
        const UINT32 u = w[i], v = w[i + 2];

        w[i] = by & 4 ? v : u;
    }
    UNROLL for (int i = 0; i < 5; i++) {
        const UINT32 u = w[i], v = w[i + 1];

        w[i] = by & 2 ? v : u;
    }
    UNROLL for (int i = 0; i < 4; i++)
        w[i] = shifted_pair(w[i], w[i + 1], by % 2 * 16);
}

/* ---- loads and stores ---------------------------------------------------------------------------- */

/* Local memory by address, in order with copies and barriers. */
#define LOAD_F64(x, at) asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(at))
#define LOAD_F32X4(x, at) \
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" \
                 : "=f"((x)[0]), "=f"((x)[1]), "=f"((x)[2]), "=f"((x)[3]) : "r"(at))
#define LOAD_F32(x, at) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at))
#define LOAD_F32X2(x, y, at) asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(at))
#define LOAD_B32(x, at) asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(at))
#define LOAD_B16(x, at) asm volatile("ld.shared.u16 %0, [%1];" : "=r"(x) : "r"(at))
#define LOAD_B32X4(x, y, z, w, at) \
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at))
#define STORE_B32X4(at, x, y, z, w) \
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" \
                 :: "r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory")

/* 16 bytes to a multiple of 16, if `go`. */
DEVICE void store16(GLOBAL void *to, const unsigned int *u, int go)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.v4.b32 [%0], {%1, %2, %3, %4}; }"
                 :: "l"((unsigned INT64)to), "r"(u[0]), "r"(u[1]), "r"(u[2]), "r"(u[3]), "r"(go) : "memory");
}

/* ... and from there, if `go`, else zeros. */
DEVICE void load16(unsigned int *u, GLOBAL const void *from, int go)
{
    UNROLL for (int i = 0; i < 4; i++)
        u[i] = 0;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.v4.b32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(u[0]), "+r"(u[1]), "+r"(u[2]), "+r"(u[3])
                 : "l"((unsigned INT64)from), "r"(go));
}

/* 16 bytes that are used once: the caches may give their place to others first. */
DEVICE void store16_once(GLOBAL void *to, const unsigned int *u)
{
    asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};"
                 :: "l"((unsigned INT64)to), "r"(u[0]), "r"(u[1]), "r"(u[2]), "r"(u[3]) : "memory");
}

/* ... if `go`. */
DEVICE void store16_once_if(GLOBAL void *to, const unsigned int *u, int go)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.cs.v4.b32 [%0], {%1, %2, %3, %4}; }"
                 :: "l"((unsigned INT64)to), "r"(u[0]), "r"(u[1]), "r"(u[2]), "r"(u[3]), "r"(go) : "memory");
}

/* ... from there, if `go`; else each word is `none`. */
DEVICE void load16_once(unsigned int *u, GLOBAL const void *from, UINT32 none, int go)
{
    UNROLL for (int i = 0; i < 4; i++)
        u[i] = none;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.cs.v4.b32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(u[0]), "+r"(u[1]), "+r"(u[2]), "+r"(u[3])
                 : "l"((unsigned INT64)from), "r"(go));
}

/* One element, of 16 or 32 bits, to the lower bits of u, if `go`. */
#define ELEMENT_TYPE_0 "b32"
#define ELEMENT_TYPE_1 "u16"
#define ELEMENT_TYPE_2 "u16"
#define ELEMENT_TYPE_3 "b32"
DEVICE void load_element(UINT32 *u, GLOBAL const void *from, int go)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global." OF(ELEMENT_TYPE, TYPE) " %0, [%1]; }"
                 : "+r"(*u) : "l"((unsigned INT64)from), "r"(go));
}

/* Asks for a line of the cache, at any address of device memory. */
DEVICE void prefetch_global(GLOBAL const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" :: "l"((unsigned INT64)p));
}

/* Two adjacent elements of a type to device memory, at a multiple of their size. */
#define STORE_PAIR_0(p, x, y) STORE_F32_PAIR(p, x, y)
#define STORE_PAIR_1(p, x, y) (*(GLOBAL unsigned int *)(p) = f16_pair_of(x, y))
#define STORE_PAIR_2(p, x, y) (*(GLOBAL unsigned int *)(p) = bf16_pair_of(x, y))
#define STORE_PAIR_3(p, x, y) \
    asm volatile("st.global.v2.f64 [%0], {%1, %2};" :: "l"((unsigned INT64)(p)), "d"(x), "d"(y) : "memory")

#define STORE_F32_PAIR(p, x, y) \
    asm volatile("st.global.v2.f32 [%0], {%1, %2};" :: "l"((unsigned INT64)(p)), "f"(x), "f"(y) : "memory")

/* ---- work-groups that may not be resident together --------------------------------------------- */

/* Puts x, and returns what was there. */
DEVICE UINT64 exchange_word(GLOBAL UINT64 *p, UINT64 x)
{
    UINT64 was;

    asm volatile("atom.relaxed.gpu.global.exch.b64 %0, [%1], %2;"
                 : "=l"(was) : "l"((unsigned INT64)p), "l"(x) : "memory");
    return was;
}

/* The same with 16 bytes, at a multiple of them (sm_90). */
struct two_words { UINT64 low, high; };
DEVICE struct two_words exchange_two_words(GLOBAL struct two_words *p, struct two_words x)
{
    struct two_words was;

    asm volatile("{ .reg .b128 x, was; mov.b128 x, {%2, %3}; "
                 "atom.relaxed.gpu.global.exch.b128 was, [%4], x; mov.b128 {%0, %1}, was; }"
                 : "=l"(was.low), "=l"(was.high) : "l"(x.low), "l"(x.high), "l"((unsigned INT64)p)
                 : "memory");
    return was;
}

/* A word that carries all that it says, so that no fence is needed. */
DEVICE void put_word(GLOBAL UINT64 *p, UINT64 x)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"((unsigned INT64)p), "l"(x) : "memory");
}

DEVICE UINT64 get_word(GLOBAL const UINT64 *p)
{
    UINT64 x;

    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"((unsigned INT64)p) : "memory");
    return x;
}

/* Puts x where 0 is.  What was read before is what it was when 0 was found, or else x is not put. */
DEVICE void put_word_if_none(GLOBAL UINT64 *p, UINT64 x)
{
    asm volatile("{ .reg .b64 was; atom.acq_rel.gpu.global.cas.b64 was, [%0], 0, %1; }"
                 :: "l"((unsigned INT64)p), "l"(x) : "memory");
}

/* Adds n to *p.  What the warp wrote before warp_meet() is visible to whoever acquires the new value. */
DEVICE void count_release(GLOBAL int *p, int n)
{
    asm volatile("red.release.gpu.global.add.s32 [%0], %1;" :: "l"((unsigned INT64)p), "r"(n) : "memory");
}

/* Adds n to *p, and returns the old value: also acquires what others released so. */
DEVICE int count_acquire(GLOBAL int *p, int n)
{
    int v;

    asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;"
                 : "=r"(v) : "l"((unsigned INT64)p), "r"(n) : "memory");
    return v;
}

DEVICE int load_acquire(GLOBAL const int *p)
{
    int v;

    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"((unsigned INT64)p) : "memory");
    return v;
}

/* Orders writes to device memory before later copies by TMA. */
DEVICE void copies_follow_writes(void)
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}
