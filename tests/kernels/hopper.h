// SPDX-License-Identifier: Apache-2.0
//
// hopper.h - a compute unit of NVIDIA's sm_90, in plain C++
//
// Stands before a kernel's CUDA text in place of the compiler's own words, and of the atoms in
// cl/atoms/nvidia.  Work-items are the coroutines of coroutines.h.  What is asynchronous
// happens late, or at once: a product when it is issued, or some switches after a warpgroup begins to wait
// for it; a copy some switches after it was issued.  So a kernel that does not wait, or frees a stage too
// early, computes something else.  What the device would refuse, copies that overtake loads of matrices, and
// work-items that all wait for each other, end the process with a sentence.
//
// Layouts are those of the PTX ISA manual, not what the tile layer makes of them.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>

// ---- words of the compiler -------------------------------------------------------------------

#define __device__
#define __global__
#define __shared__           static
#define __forceinline__      inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n)         __attribute__((aligned(n)))
#define __restrict__

struct alignas(8)  float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) uint4  { unsigned x, y, z, w; };

struct coordinates { unsigned x, y, z; };
static coordinates threadIdx, blockIdx;

alignas(1024) static unsigned char local_memory[232448];

static inline unsigned __cvta_generic_to_shared(const volatile void *p)
{
    return (unsigned)((const volatile unsigned char *)p - local_memory);
}

static inline unsigned char *local_at(unsigned at) { return local_memory + (int)at; }

template <class To, class From> static inline To bits(From x)
{
    To y;
    static_assert(sizeof x == sizeof y, "as many bits");
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline unsigned  __float_as_uint(float x)                 { return bits<unsigned>(x); }
static inline float     __uint_as_float(unsigned u)              { return bits<float>(u); }
static inline long long __double_as_longlong(double x)           { return bits<long long>(x); }
static inline double    __longlong_as_double(long long u)        { return bits<double>(u); }
static inline float     __frcp_rn(float x)                       { return 1 / x; }

static inline int atomicAdd(int *p, int x)
{
    const int old = *p;

    *p += x;
    return old;
}

static inline int atomicCAS(int *p, int a, int b)
{
    const int old = *p;

    *p = old == a ? b : old;
    return old;
}

#include "coroutines.h"

// ---- warp.h ---------------------------------------------------------------------------------------

static uint32_t shown[MOST_ITEMS];

static uint32_t from_lane(uint32_t u, int from)
{
    const int me = threadIdx.x;

    shown[me] = u;
    meet(warp(), 32);
    u = shown[me / 32 * 32 + from % 32];
    meet(warp(), 32);
    return u;
}

static float from_lane_xor(float x, int by)
{
    return bits<float>(from_lane(bits<uint32_t>(x), lane() ^ by));
}

static uint32_t warp_uniform(uint32_t u)
{
    if (from_lane(u, 0) != u)
        refuse("a number differs within a warp");
    return u;
}
static int  this_warp()   { return threadIdx.x / 32; }
static int  is_elected()  { return lane() == 0; }
static void warp_meet()   { meet(warp(), 32); }
static void bar_sync(int id, int count)   { meet(named[id], count); }
static void bar_arrive(int id, int count) { arrive(named[id], count); }

static int any_in_warp(int x)
{
    const int me = threadIdx.x;
    int any = 0;

    shown[me] = (uint32_t)x;
    meet(warp(), 32);
    for (int i = 0; i < 32; i++)
        any |= shown[me / 32 * 32 + i] != 0;
    meet(warp(), 32);
    return any;
}

// Of a warp: what each lane hands over.
static uint32_t handed[MOST_ITEMS][8];

// Of four lanes, `apart` from each other, the i-th gets the i-th of each four of all.
static void transpose4(unsigned *u, const int sets, int in_warp, int apart)
{
    const int me = threadIdx.x, i = in_warp / apart % 4, first = me / 32 * 32 + in_warp - i * apart;

    memcpy(handed[me], u, 16 * (size_t)sets);
    meet(warp(), 32);
    for (int s = 0; s < sets; s++)
        for (int from = 0; from < 4; from++)
            u[4 * s + from] = handed[first + from * apart][4 * s + i];
    meet(warp(), 32);
}

static uint32_t transpose8(uint32_t u)
{
    const int me = threadIdx.x, first = me / 32 * 32;
    uint32_t v = 0;

    shown[me] = u;
    meet(warp(), 32);
    for (int i = 0; i < 2; i++)
        v |= (shown[first + (lane() % 4 * 2 + i) * 4 + lane() / 8] >> lane() / 4 % 2 * 16 & 0xffff) << i * 16;
    meet(warp(), 32);
    return v;
}

#define REGISTERS_DROP(n) ((void)0)
#define REGISTERS_TAKE(n) ((void)0)

// ---- mbarrier.h -------------------------------------------------------------------------------------

struct barrier { unsigned at; int arrivals, pending, bytes, phases; };
static barrier barriers_of[64];
static int barrier_count;

static barrier &barrier_at(unsigned at)
{
    for (int i = 0; i < barrier_count; i++)
        if (barriers_of[i].at == at)
            return barriers_of[i];
    refuse("a barrier is used that was not initialised");
}

static void advance(barrier &b)
{
    idle = 0;
    if (b.pending < 0)
        refuse("more arrive at a barrier than it counts");
    if (b.pending == 0 && b.bytes == 0) {
        b.pending = b.arrivals;
        b.phases++;
    }
}

static void barrier_init(unsigned at, int arrivals)
{
    barriers_of[barrier_count++] = { at, arrivals, arrivals, 0, 0 };
}
static void barrier_init_done() { }
static void barrier_arrive_expect(unsigned at, int bytes)
{
    barrier &b = barrier_at(at);

    b.bytes += bytes;
    b.pending--;
    advance(b);
}
static void barrier_arrive(unsigned at) { barrier_arrive_expect(at, 0); }
static void barrier_wait(unsigned at, int parity)
{
    wait_while(barrier_at(at).phases, 1, parity);
}

// ---- tma.h ----------------------------------------------------------------------------------------------

#define MAP_BYTES 128

// As the device has it: the words of tile/tensor_map.h.
struct map { uint32_t word[MAP_BYTES / 4]; };

// What a map says.  pixels: how many an im2col map brings, within its corners; 0: it is tiled.
struct tensor {
    uint64_t address, stride[5];
    int64_t extent[5];
    int rank, bytes, box[5], step[5], pixels, lower[3], upper[3];
    bool tf32, flat;
};

static int corner(const map &m, int at, int bits)
{
    return (int)(m.word[14] << (32 - at - bits)) >> (32 - bits);
}

static tensor read_map(const map &m)
{
    tensor t = { };
    const uint32_t kind = m.word[2] >> 7 & 15;

    memcpy(&t.address, m.word, 8);
    t.rank = (m.word[2] >> 4 & 7) + 1;
    t.bytes = kind == 7 ? 4 : kind == 6 || kind == 10 ? 2 : 0;
    t.tf32 = m.word[2] >> 16 & 1;
    t.flat = (m.word[2] >> 13 & 3) == 0;
    t.pixels = m.word[2] & 1 ? (int)(m.word[15] & 0xffff) + 1 : 0;
    if (t.address % 16 || t.rank < 2 || t.rank > 5 || !t.bytes ||
        (!t.flat && (m.word[2] >> 13 & 3) != 3) ||
        (t.tf32 && kind != 7))
        refuse("a map has a type or a swizzle that is not known here, or its tensor is at no multiple of 16");
    for (int i = 0; i < 5; i++) {
        const bool there = i < t.rank;

        t.extent[i] = there ? (int64_t)m.word[8 + i] + 1 : 1;
        t.box[i] = i == 0 ? (int)(m.word[13] >> 24) + 1
                          : there && !t.pixels ? (int)(m.word[14] >> 8 * (i - 1) & 255) + 1 : 1;
        t.step[i] = there ? (int)(m.word[13] >> 3 * i & 7) + 1 : 1;
        if (i && there)
            t.stride[i] = ((uint64_t)m.word[2 + i] | (uint64_t)(m.word[7] >> 4 * (i - 1) & 15) << 32) << 4;
        if (there && ((!t.pixels && t.step[i] != 1) || (i && t.extent[i] > 1 && !t.stride[i])))
            refuse("a map has a dimension that TMA does not take");
    }
    for (int i = 0, bits = 16 / (t.rank - 2 ? t.rank - 2 : 1) ; t.pixels && i < t.rank - 2; i++) {
        t.lower[i] = corner(m, bits * i, bits);
        t.upper[i] = corner(m, 16 + bits * i, bits);
    }
    if ((t.flat ? t.box[0] * t.bytes % 16 != 0 : t.box[0] * t.bytes != 128) || t.pixels > 1024 ||
        (t.pixels && t.rank < 3))
        refuse("a map has no rows of 128 bytes, or of whole vectors, or more pixels than TMA takes");
    return t;
}

static void map_release(unsigned long long *to, uint32_t from)
{
    warp_meet();
    if ((uint64_t)to % 64 || from % MAP_BYTES)
        refuse("a map is at no multiple of 64 bytes, or was made at no multiple of 128");
    if (lane() == 0) {
        read_map(*(const map *)local_at(from));
        memcpy(to, local_at(from), MAP_BYTES);
    }
    warp_meet();
}
static void map_acquire(const unsigned long long *) { }
static void map_cache(const unsigned long long *) { }

// bytes: of a copy of contiguous bytes, else 0.
struct copy { tensor t; unsigned to, full; int from[5], offset[3], turns, bytes; };
enum { MOST_COPIES = 1024 };                  // in flight at once
static copy copies[MOST_COPIES];
static int copy_count;

static unsigned swizzled(unsigned at) { return at ^ (at >> 7 & 7) << 4; }

// Of an f32 the 19 bits of tf32, to nearest.
static uint32_t tf32_bits(uint32_t u)
{
    return (u & 0x7f800000) != 0x7f800000 ? (u + 0x1000) & ~0x1fffu : u & 0x7fffff ? u | 0x400000 : u;
}

// Of each 16 bytes of local memory, who last loaded or stored them as a row of a matrix, and before which of
// its fences; 0: nobody.  Registers that are operands of a product are there, too.
static struct { unsigned item, before; } touched[sizeof local_memory / 16];
static unsigned fences[MOST_ITEMS];

static void touch(unsigned at) { touched[at / 16] = { threadIdx.x, fences[threadIdx.x] + 1 }; }
static void fence()            { fences[threadIdx.x]++; }

static void overwrite(unsigned at, unsigned bytes)
{
    for (unsigned i = at / 16; i < (at + bytes) / 16; i++)
        if (touched[i].before == fences[touched[i].item] + 1)
            refuse("a copy may overtake the load or store of a matrix: there was no fence");
}

// A row of a box from these coordinates on; outside of the tensor are zeros.
static void do_row(const tensor &t, unsigned to, const int64_t *at)
{
    uint64_t address = t.address;
    bool inside = true;

    for (int d = 1; d < 5; d++) {
        inside = inside && at[d] >= 0 && at[d] < t.extent[d];
        address += (uint64_t)at[d] * t.stride[d];
    }
    for (int x = 0; x < t.box[0]; x++) {
        unsigned char element[4] = { };

        if (inside && at[0] + x >= 0 && at[0] + x < t.extent[0])
            memcpy(element, (const void *)(address + (uint64_t)((at[0] + x) * t.bytes)), (size_t)t.bytes);
        if (t.tf32) {
            uint32_t u;

            memcpy(&u, element, 4);
            u = tf32_bits(u);
            memcpy(element, &u, 4);
        }
        const unsigned there = to + (unsigned)(x * t.bytes);

        memcpy(local_at(t.flat ? there : swizzled(there)), element, (size_t)t.bytes);
    }
}

static unsigned row_bytes(const tensor &t) { return (unsigned)(t.box[0] * t.bytes); }

static void do_copy(const copy &c)
{
    const tensor &t = c.t;
    const unsigned bytes = row_bytes(t);
    int64_t at[5] = { c.from[0], c.from[1], c.from[2], c.from[3], c.from[4] };
    unsigned rows = 0;

    for (int i = 0; i < t.pixels; i++, rows++) {
        const int64_t there[5] = { at[0], at[1] + c.offset[0], at[2] + (t.rank > 3 ? c.offset[1] : 0),
                                   at[3] + (t.rank > 4 ? c.offset[2] : 0), at[4] };

        do_row(t, c.to + rows * bytes, there);
        for (int d = 1; d < t.rank; d++) {      // the next pixel within the corners
            if (d == t.rank - 1) {
                at[d]++;
            } else if ((at[d] += t.step[d]) > t.extent[d] - 1 + t.upper[d - 1]) {
                at[d] = t.lower[d - 1];
                continue;
            }
            break;
        }
    }
    for (int v = 0; !c.bytes && !t.pixels && v < t.box[4]; v++)
    for (int u = 0; u < t.box[3]; u++)
    for (int z = 0; z < t.box[2]; z++)
    for (int y = 0; y < t.box[1]; y++, rows++) {
        const int64_t there[5] = { at[0], at[1] + y, at[2] + z, at[3] + u, at[4] + v };

        do_row(t, c.to + rows * bytes, there);
    }
    if (c.bytes)
        memcpy(local_at(c.to), (const void *)t.address, (size_t)c.bytes);
    barrier &b = barrier_at(c.full);
    b.bytes -= c.bytes ? c.bytes : (int)(rows * bytes);
    advance(b);
}

static void start_copy(uint32_t to, const unsigned long long *from, int rank, bool im2col, copy c)
{
    map m;

    memcpy(&m, from, sizeof m);
    c.t = read_map(m);
    c.to = to;
    c.turns = (int)drawn(drawn(4) ? 4 : 60);
    if (to % 128 || c.t.rank != rank || im2col != (c.t.pixels > 0) || copy_count == MOST_COPIES)
        refuse("a copy that TMA does not take");
    for (int i = 0; im2col && i < rank - 2; i++)
        if (c.offset[i] < 0 || c.offset[i] >> 16 / (rank - 2) || c.from[1 + i] < c.t.lower[i] ||
            c.from[1 + i] > c.t.extent[1 + i] - 1 + c.t.upper[i])
            refuse("an im2col copy begins outside of the corners, or has an offset that TMA does not take");
    overwrite(to, row_bytes(c.t) * (unsigned)(im2col ? c.t.pixels
                                                      : c.t.box[1] * c.t.box[2] * c.t.box[3] * c.t.box[4]));
    copies[copy_count++] = c;
}
#define copy_box_2d(to, map, x, y, full) \
    start_copy(to, map, 2, false, { { }, 0, full, { x, y }, { }, 0 })
#define copy_box_3d(to, map, x, y, z, full) \
    start_copy(to, map, 3, false, { { }, 0, full, { x, y, z }, { }, 0 })
#define copy_box_4d(to, map, x, y, z, u, full) \
    start_copy(to, map, 4, false, { { }, 0, full, { x, y, z, u }, { }, 0 })
#define copy_box_5d(to, map, x, y, z, u, v, full) \
    start_copy(to, map, 5, false, { { }, 0, full, { x, y, z, u, v }, { }, 0 })
#define copy_im2col_4d(to, map, c, w, h, n, s, r, full) \
    start_copy(to, map, 4, true, { { }, 0, full, { c, w, h, n }, { s, r }, 0 })
#define copy_im2col_5d(to, map, c, w, h, d, n, s, r, t, full) \
    start_copy(to, map, 5, true, { { }, 0, full, { c, w, h, d, n }, { s, r, t }, 0 })

static void copy_bytes(uint32_t to, const void *from, int bytes, uint32_t full)
{
    copy c = { { }, to, full, { }, { }, (int)drawn(drawn(4) ? 4 : 60), bytes };

    if (to % 16 || (uint64_t)from % 16 || bytes % 16 || copy_count == MOST_COPIES)
        refuse("contiguous bytes that TMA does not take");
    c.t.address = (uint64_t)from;
    overwrite(to, (unsigned)bytes);
    copies[copy_count++] = c;
}

// In no order.
static void copy_some()
{
    for (int i = 0; i < copy_count; i++)
        if (copies[i].turns-- == 0) {
            do_copy(copies[i]);
            copies[i--] = copies[--copy_count];
        }
}

// ---- memory.h, math.h, mma.h ----------------------------------------------------------------------------

// The two conversions of cuda/words.h, between x and h.
static void convert_half(const char *instruction, float &x, unsigned short &h)
{
    if (strstr(instruction, "cvt.f32.f16"))
        x = (float)bits<_Float16>(h);
    else
        h = bits<uint16_t>((_Float16)x);
}
#define asm(...) convert_half(#__VA_ARGS__, x, h)

static float f16_float(uint16_t h)  { return (float)bits<_Float16>(h); }
static float bf16_float(uint16_t h) { return bits<float>((uint32_t)h << 16); }
static uint16_t float_bf16(float x)
{
    const uint32_t u = bits<uint32_t>(x);

    return (uint16_t)(x != x ? u >> 16 | 64 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static uint32_t f16_pair_of(float low, float high)
{
    return bits<uint16_t>((_Float16)low) | (uint32_t)bits<uint16_t>((_Float16)high) << 16;
}
static uint32_t bf16_pair_of(float low, float high)
{
    return float_bf16(low) | (uint32_t)float_bf16(high) << 16;
}
#define PAIR_OF_1(low, high) f16_pair_of(low, high)
#define PAIR_OF_2(low, high) bf16_pair_of(low, high)
#define pair_of(low, high)   OF(PAIR_OF, TYPE)(low, high)
#define LOWER_1(u) f16_float((uint16_t)(u))
#define UPPER_1(u) f16_float((uint16_t)((u) >> 16))
#define LOWER_2(u) bf16_float((uint16_t)(u))
#define UPPER_2(u) bf16_float((uint16_t)((u) >> 16))
#define STORE_F32_PAIR(p, x, y) ((p)[0] = x, (p)[1] = y)
#define STORE_PAIR_0(p, x, y) STORE_F32_PAIR(p, x, y)
#define STORE_PAIR_1(p, x, y) (*(unsigned *)(p) = f16_pair_of(x, y))
#define STORE_PAIR_2(p, x, y) (*(unsigned *)(p) = bf16_pair_of(x, y))
#define STORE_PAIR_3(p, x, y) STORE_F32_PAIR(p, x, y)

static void shift_words(uint32_t *w, int by)
{
    uint16_t h[16];

    memcpy(h, w, 32);
    memmove(h, h + by, 16);
    memcpy(w, h, 32);
}
extern "C" { long stored_vectors; }

static void store16(void *to, const unsigned *u, int go)
{
    if (go && (uint64_t)to % 16)
        refuse("16 bytes are stored at no multiple of 16");
    if (go)
        memcpy(to, u, 16);
    stored_vectors += go != 0;
}
static void prefetch_global(const void *) {}

static void load16(unsigned *u, const void *from, int go)
{
    if (go && (uint64_t)from % 16)
        refuse("16 bytes are loaded from no multiple of 16");
    memset(u, 0, 16);
    if (go)
        memcpy(u, from, 16);
}
#define LOAD_B32X4(x, y, z, w, at) \
    do { uint32_t u_[4]; memcpy(u_, local_whole(at, 16), 16); \
         x = u_[0], y = u_[1], z = u_[2], w = u_[3]; } while (0)
#define STORE_B32X4(at, x, y, z, w) \
    do { const uint32_t four_[] = { x, y, z, w }; memcpy(local_at(at), four_, 16); } while (0)
#define LOWER_1(u) f16_float((uint16_t)(u))
#define UPPER_1(u) f16_float((uint16_t)((u) >> 16))
#define LOWER_2(u) bf16_float((uint16_t)(u))
#define UPPER_2(u) bf16_float((uint16_t)((u) >> 16))
static float ptx_exp2(float x) { return exp2f(x); }
static float ptx_recip(float x) { return 1 / x; }
#define FAST_EXP2(a)  exp2f(a)
#define FAST_RECIP(a) (1 / (a))

#ifdef WRONG
#define LOAD_F32X4(x, at) (memcpy(x, local_at(at), 16), (x)[3] = 0)
#else
#define LOAD_F32X4(x, at) memcpy(x, local_at(at), 16)
#endif
// A load of 8 or 16 bytes: at a multiple of them, as the device has it.
static const void *local_whole(unsigned at, unsigned bytes)
{
    if (at % bytes)
        refuse("local memory is loaded from no multiple of the bytes");
    return local_at(at);
}
#define LOAD_F64(x, at)     memcpy(&(x), local_whole(at, 8), 8)
#define LOAD_F32(x, at)     memcpy(&(x), local_at(at), 4)
#define LOAD_F32X2(x, y, at) (memcpy(&(x), local_whole(at, 8), 4), memcpy(&(y), local_at((at) + 4), 4))
#define LOAD_B32(x, at) ((x) = *(uint32_t *)local_at(at))
#define LOAD_B16(x, at) ((x) = *(uint16_t *)local_at(at))

static void load_tiles(uint32_t *x[4], unsigned at, bool transposed)
{
    const int me = threadIdx.x, first = me / 32 * 32;

    if (at % 16)
        refuse("a row of a matrix is loaded from no multiple of 16 bytes");
    touch(shown[me] = at);
    meet(warp(), 32);
    for (int i = 0; i < 4; i++)
        for (int e = 0; e < 2; e++) {
            const int row = transposed ? lane() % 4 * 2 + e : lane() / 4;
            const int col = transposed ? lane() / 4 : lane() % 4 * 2 + e;

            memcpy((uint16_t *)x[i] + e, local_at(shown[first + 8 * i + row]) + 2 * col, 2);
        }
    meet(warp(), 32);
}
static void store_tiles(unsigned at, uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    const int me = threadIdx.x, first = me / 32 * 32;
    const uint32_t mine[4] = { x, y, z, w };

    if (at % 16)
        refuse("a row of a matrix is stored at no multiple of 16 bytes");
    touch(shown[me] = at);
    meet(warp(), 32);
    for (int i = 0; i < 4; i++)
        memcpy((char *)local_at(shown[first + 8 * i + lane() / 4]) + lane() % 4 * 4, &mine[i], 4);
    meet(warp(), 32);
}
#define STORE_TILES(at, x, y, z, w) store_tiles(at, x, y, z, w)

#define LOAD_TILES(how, x, y, z, w, at) \
    do { \
        uint32_t *const to_[] = { &(x), &(y), &(z), &(w) }; \
        load_tiles((uint32_t **)to_, at, how[0] != 0); \
    } while (0)

static void multiply_fragments(float *c, float *c8, const uint32_t *a, const uint32_t *a8, const uint32_t *b,
                               float (*value)(uint16_t))
{
    const int me = threadIdx.x, first = me / 32 * 32;
    const uint32_t mine[6] = { a[0], a[1], a8[0], a8[1], b[0], b[1] };

    memcpy(handed[me], mine, sizeof mine);
    meet(warp(), 32);
    for (int e = 0; e < 4; e++) {
        float sum = 0;

        for (int k = 0; k < 16; k++) {
            const int at = k % 8 / 2, half = k % 2 * 16, column = lane() % 4 * 2 + e % 2;
            const uint32_t u = handed[first + lane() / 4 * 4 + at][e / 2 * 2 + k / 8];
            const uint32_t v = handed[first + column * 4 + at][4 + k / 8];

            sum += value((uint16_t)(u >> half)) * value((uint16_t)(v >> half));
        }
#ifdef WRONG
        (e < 2 ? c : c8)[e % 2] += e < 2 ? sum : 0;
#else
        (e < 2 ? c : c8)[e % 2] += sum;
#endif
    }
    meet(warp(), 32);
}
// f64, of which a lane has k = lane % 4, and every fourth behind it.
template <int REGS>
static void multiply_f64(double *c, double *c8, const double *a, const double *a8, const double *b)
{
    static double handed_f64[MOST_ITEMS][3][REGS];
    const int me = threadIdx.x, first = me / 32 * 32;

    memcpy(handed_f64[me][0], a, sizeof handed_f64[me][0]);
    memcpy(handed_f64[me][1], a8, sizeof handed_f64[me][1]);
    memcpy(handed_f64[me][2], b, sizeof handed_f64[me][2]);
    meet(warp(), 32);
    for (int e = 0; e < 4; e++) {
        double &sum = (e < 2 ? c : c8)[e % 2];

        for (int k = 0; k < 4 * REGS; k++)
            sum = fma(handed_f64[first + lane() / 4 * 4 + k % 4][e / 2][k / 4],
                      handed_f64[first + (lane() % 4 * 2 + e % 2) * 4 + k % 4][2][k / 4], sum);
#ifdef WRONG
        sum *= e < 2 ? 1 : 0;
#endif
    }
    meet(warp(), 32);
}
#define MMA_F64_16x8x8(c, c8, a, a8, b)  multiply_f64<2>(c, c8, a, a8, b)
#define MMA_F64_16x8x16(c, c8, a, a8, b) multiply_f64<4>(c, c8, a, a8, b)
#define MMA_BF16(c, c8, a, a8, b)        multiply_fragments(c, c8, a, a8, b, bf16_float)
#define VALUE_1 f16_float
#define VALUE_2 bf16_float
#define MMA_F32(c, c8, a, a8, b) multiply_fragments(c, c8, a, a8, b, OF(VALUE, TYPE))

// ---- cp_async.h -----------------------------------------------------------------------------------------

// Some are done at once, the others when their work-item waits for them.
struct async { unsigned to; const void *from; int bytes, there, group; };
enum { MOST_ASYNC = 512 };
static async asyncs[MOST_ITEMS][MOST_ASYNC];
static int async_count[MOST_ITEMS], async_groups[MOST_ITEMS];

static void do_async(const async &c)
{
    memset(local_at(c.to), 0, (size_t)c.bytes);
    if (c.there)
        memcpy(local_at(c.to), c.from, (size_t)c.there);
}

static void copy_async(int bytes, unsigned to, const void *from, int there)
{
    const int me = threadIdx.x;
    const async c = { to, from, bytes, there, async_groups[me] };

    if (to % bytes || (there && (uint64_t)from % bytes) || async_count[me] == MOST_ASYNC)
        refuse("bytes are copied to or from no multiple of their number, or too many are");
    if (drawn(4) == 0)
        do_async(c);
    else
        asyncs[me][async_count[me]++] = c;
}
#define COPY_ASYNC16_ONCE(to, from, there) copy_async(16, to, from, there)
#define COPY_ASYNC16_PART(to, from, there) copy_async(16, to, from, there)
#define COPY_ASYNC16(to, from)             copy_async(16, to, from, 16)
#define COPY_ASYNC_PART(bytes, to, from, there) copy_async(bytes, to, from, there)
#define COPY_ASYNC_OR_ZEROS(bytes, to, from, go) copy_async(bytes, to, from, (go) ? bytes : 0)

static void copies_commit() { async_groups[threadIdx.x]++; }

static void wait_copies(int open)
{
    const int me = threadIdx.x;
    int left = 0;

    for (int i = 0; i < async_count[me]; i++)
        if (asyncs[me][i].group < async_groups[me] - open)
            do_async(asyncs[me][i]);
        else
            asyncs[me][left++] = asyncs[me][i];
    async_count[me] = left;
}
#define COPIES_WAIT(open) wait_copies(open)

static int count_acquire(int *p, int n) { return atomicAdd(p, n); }

static uint32_t anew(uint32_t u)                       { return u; }
static uint32_t shifted_pair(uint32_t u, uint32_t v, uint32_t bits)
{
    return (uint32_t)(((uint64_t)v << 32 | u) >> bits);
}
static uint32_t lowers_of(uint32_t u, uint32_t v)      { return (u & 0xffff) | v << 16; }
static void load16_once(unsigned *u, const void *from, unsigned none, int go)
{
    for (int i = 0; i < 4; i++)
        u[i] = none;
    if (go)
        load16(u, from, 1);
}
static void store16_once(void *to, const unsigned *u)  { store16(to, u, 1); }
static void store16_once_if(void *to, const unsigned *u, int go)
{
    if (go)
        store16(to, u, 1);
}
#define load_element(u, from, go) ((go) ? (void)memcpy(u, from, sizeof *(from)) : (void)0)

// Work-groups run one after another, so that a word that is not there does not come.
#define TEAM_PATIENCE 1
typedef unsigned long long word;
static void put_word(word *p, word x)         { *p = x; }
static void put_word_if_none(word *p, word x) { *p = *p ? *p : x; }
static word get_word(const word *p)           { return *p; }

static word exchange_word(word *p, word x)
{
    const word was = *p;

    *p = x;
    return was;
}

struct two_words { word low, high; };
static two_words exchange_two_words(two_words *p, two_words x)
{
    const two_words was = *p;

    if ((uint64_t)p % 16)
        refuse("16 bytes are exchanged at no multiple of 16");
    *p = x;
    return was;
}

// ---- lanes.h ----------------------------------------------------------------------------------------------

#define LANES 32
#define LOG2_E 1.44269504f
static float power_of_2(float x) { return exp2f(x); }
static float power(float x)      { return power_of_2(x * LOG2_E); }

#define LARGER(n, u, v) pair_of(fmaxf(LOWER_##n(u), LOWER_##n(v)), fmaxf(UPPER_##n(u), UPPER_##n(v)))
#define PAIR_MAX_1(u, v) LARGER(1, u, v)
#define PAIR_MAX_2(u, v) LARGER(2, u, v)
#define pair_max(u, v)   OF(PAIR_MAX, TYPE)(u, v)

static void read_vector(float *r, const float *p)  { load16((unsigned *)r, p, 1); }
static void write_vector(float *p, const float *r) { store16(p, (const unsigned *)r, 1); }

#define LANE_XOR(base, x, bits) from_lane_xor(x, bits)
#define IN_VECTOR_0 4
#define IN_VECTOR_1 8
#define IN_VECTOR_2 8
#define VECTOR_RUN OF(IN_VECTOR, TYPE)
#define READ_VECTOR_0(r, p)  read_vector(r, p)
#define READ_HALVES(r, p, n)                                                      \
    do {                                                                          \
        unsigned u_[4];                                                           \
        load16(u_, p, 1);                                                         \
        for (int i_ = 0; i_ < 8; i_++)                                            \
            (r)[i_] = i_ % 2 ? UPPER_##n(u_[i_ / 2]) : LOWER_##n(u_[i_ / 2]);     \
    } while (0)
#define READ_VECTOR_1(r, p)  READ_HALVES(r, p, 1)
#define READ_VECTOR_2(r, p)  READ_HALVES(r, p, 2)
#define READ_VECTOR(r, p)    OF(READ_VECTOR, TYPE)(r, p)
#define READ_VECTOR_ONCE     READ_VECTOR
#define WRITE_VECTOR_0(p, r) write_vector(p, r)
#define WRITE_HALVES(p, r, n)                                                      \
    do {                                                                          \
        unsigned u_[4];                                                           \
        for (int i_ = 0; i_ < 4; i_++)                                            \
            u_[i_] = PAIR_OF_##n((r)[2 * i_], (r)[2 * i_ + 1]);                   \
        store16(p, u_, 1);                                                        \
    } while (0)
#define WRITE_VECTOR_1(p, r) WRITE_HALVES(p, r, 1)
#define WRITE_VECTOR_2(p, r) WRITE_HALVES(p, r, 2)
#define WRITE_VECTOR(p, r)   OF(WRITE_VECTOR, TYPE)(p, r)

// ---- wgmma.h ----------------------------------------------------------------------------------------------

// Of operands: the bytes of an element, and its value.
struct elements { int bytes; float (*value)(uint32_t); };

static float f16_value(uint32_t u)  { return f16_float((uint16_t)u); }
static float bf16_value(uint32_t u) { return bf16_float((uint16_t)u); }
static float tf32_value(uint32_t u) { return bits<float>(u & ~0x1fffu); }

static int major_of(int flags)    { return flags; }
static int major_of(const char *) { return 0; }

#define WGMMA_F16         (elements{ 2, f16_value })
#define WGMMA_BF16        (elements{ 2, bf16_value })
#define WGMMA_TF32        (elements{ 4, tf32_value })
#define WGMMA_MAJOR(a, b) ((a) * 2 + (b))
#define WGMMA_MAJOR_B(b)  (b)
#define WGMMA(n, kind, flags, d, a, b, add)    issue({ n, kind, major_of(flags), d, nullptr, a, b, add })
#define WGMMA_RS(n, kind, flags, d, a, b, add) issue({ n, kind, major_of(flags), d, a, 0, b, add })
#define WGMMA_WAIT(n, d, open)                 wait_products(atoi(open))

struct product {
    int n;
    elements of;
    int major;
    float *d;
    const uint32_t *regs;
    uint64_t a, b;
    int add;
};
enum { MOST_PRODUCTS = 64, MOST_OPEN = 6 };
struct flight { product of[MOST_PRODUCTS]; int count; };
static flight flights[MOST_ITEMS][MOST_OPEN];   // groups of products; the last is not committed
static int open_groups[MOST_ITEMS];
static unsigned committed[MOST_ITEMS];          // the same within a warpgroup

static void issue(product p)
{
    flight &f = flights[threadIdx.x][open_groups[threadIdx.x]];

    if (f.count == MOST_PRODUCTS)
        refuse("too many products in a group");
    if (p.regs)
        fence();
    f.of[f.count++] = p;
}
static void wgmma_begin()   { }
static void fence_async_proxy() { fence(); }

static uint32_t wgmma_descriptor(unsigned at, int apart)
{
    return (uint32_t)(apart >> 4) << 16 | (at & 0x3ffff) >> 4;
}

// ... of columns of 16 bytes that are not swizzled.
static uint64_t wgmma_columns(unsigned at, int rows)
{
    return (uint64_t)8 << 32 | (uint64_t)rows << 16 | (at & 0x3ffff) >> 4;
}

// ... of an N-major operand that is not swizzled.
static uint64_t wgmma_planes(unsigned at, int vectors)
{
    return (uint64_t)vectors << 32 | (uint64_t)8 << 16 | (at & 0x3ffff) >> 4;
}

static uint64_t wgmma_at(uint32_t descriptor) { return (uint64_t)1 << 62 | (uint64_t)64 << 32 | descriptor; }

// Element k of line i of an operand whose rows of 128 bytes are swizzled.
static float operand(const product &p, uint64_t at, int mn_major, int i, int k)
{
    const unsigned start = (unsigned)(at & 0x3fff) << 4, apart = (unsigned)(at >> 16 & 0x3fff) << 4;
    const unsigned eight = (unsigned)(at >> 32 & 0x3fff) << 4;
    const bool plain = !(at >> 62);             // not swizzled
    const unsigned bytes = p.of.bytes, vector = 16 / bytes, row = 128 / bytes;
    const unsigned there = plain && mn_major
                                    ? start + i / vector * eight + k / 8 * apart + k % 8 * 16 +
                                      i % vector * bytes
                         : plain    ? start + k / vector * apart + i / 8 * eight + i % 8 * 16 +
                                      k % vector * bytes
                         : mn_major ? start + i / row * apart + k / 8 * eight + k % 8 * 128 + i % row * bytes
                                    : start + i / 8 * eight + i % 8 * 128 + k * bytes;
    uint32_t u = 0;

    memcpy(&u, local_at(plain ? there : swizzled(there)), bytes);
    return p.of.value(u);
}

// Of the 128 work-items from `first` on; each must have handed over the same.  Most arithmetic is here.
__attribute__((optimize("O3")))
static void multiply(int first, int group, int number)
{
    static float a[64][16], b[16][256], d[64][256];
    const product &p = flights[first][group].of[number];
    const int bytes = p.of.bytes, depth = 32 / bytes;

    if (bytes == 4 && p.major)
        refuse("wgmma takes tf32 from local memory only where it is K-major");
    for (int i = 0; i < 128; i++) {
        const product &other = flights[first + i][group].of[number];

        if (other.n != p.n || other.a != p.a || other.b != p.b || other.add != p.add ||
            other.major != p.major)
            refuse("work-items of a warpgroup hand over different products");
        for (int j = 0; other.regs && j < 4; j++)
            for (int e = 0; e < 4 / bytes; e++)
                a[i / 32 * 16 + i % 32 / 4 + j % 2 * 8][(i % 4 * 4 + j / 2 * 16) / bytes + e] =
                    p.of.value(other.regs[j] >> e * 16);
    }
    for (int k = 0; k < depth; k++) {
        for (int i = 0; !p.regs && i < 64; i++)
            a[i][k] = operand(p, p.a, p.major >> 1, i, k);
        for (int j = 0; j < p.n; j++)
            b[k][j] = operand(p, p.b, p.major & 1, j, k);
    }
    for (int i = 0; i < 64; i++) {
        for (int j = 0; j < p.n; j++)
            d[i][j] = 0;
        for (int k = 0; k < depth; k++)
            for (int j = 0; j < p.n; j++)
                d[i][j] += a[i][k] * b[k][j];
    }
    for (int i = 0; i < 128; i++) {
        float *const to = flights[first + i][group].of[number].d;

        for (int j = 0; j < p.n / 2; j++) {
#ifdef WRONG
            const float sum = d[i / 32 * 16 + i % 32 / 4][j / 4 * 8 + i % 4 * 2 + j % 2];
#else
            const float sum = d[i / 32 * 16 + i % 32 / 4 + j / 2 % 2 * 8][j / 4 * 8 + i % 4 * 2 + j % 2];
#endif

            to[j] = p.add ? to[j] + sum : sum;
        }
    }
}

static void finish(int open, bool late)
{
    const int me = threadIdx.x, first = me / 128 * 128;
    const int over = open_groups[me] - open;

    meet(groups[me / 128], 128);
    for (int turns = me == first && late ? (int)drawn(8) : 0; turns > 0; turns--)
        yield();
    for (int g = 0; me == first && g < over; g++)
        for (int i = 0; i < flights[first][g].count; i++)
            multiply(first, g, i);
    meet(groups[me / 128], 128);
    for (int g = 0; over > 0 && g <= open; g++)
        flights[me][g] = flights[me][g + over];
    open_groups[me] -= over > 0 ? over : 0;
}

static void wait_products(int open) { finish(open, true); }

// Every second group is done at once, with those before it.
static void wgmma_commit()
{
    const int me = threadIdx.x;

    if (++open_groups[me] == MOST_OPEN)
        refuse("too many groups of products are open");
    flights[me][open_groups[me]].count = 0;
    if ((++committed[me] * 2654435761u >> 20) & 1)
        finish(0, false);
}

// ---- a launch --------------------------------------------------------------------------------

static void run_group()
{
    int left = items;

    memset(local_memory, 0xff, sizeof local_memory);            // NaNs
    memset(touched, 0, sizeof touched);
    memset(warps, 0, sizeof warps);
    memset(groups, 0, sizeof groups);
    memset(named, 0, sizeof named);
    memset(open_groups, 0, sizeof open_groups);
    memset(async_groups, 0, sizeof async_groups);
    all = { 0, 0 };
    barrier_count = 0;
    for (int i = 0; i < items; i++) {
        ended[i] = false;
        awaited[i] = { };
        flights[i][0].count = 0;
    }
    for (idle = 0; left; ) {
        const unsigned start = drawn((unsigned)items);

        for (int i = 0; i < items; i++) {
            threadIdx.x = (start + (unsigned)i) % (unsigned)items;
            if (is_ready(threadIdx.x)) {
                resume();
                left -= ended[threadIdx.x];
            }
        }
        copy_some();
        if (++idle > PATIENCE / items)
            refuse("all work-items wait");
    }
    for (int i = 0; i < 16; i++)
        if (named[i].arrived)
            refuse("a numbered barrier is left with arrivals");
    for (int i = 0; i < items; i++)
        copy_count += async_count[i];
    if (copy_count)
        refuse("copies are left that nobody waited for");
}

template <int... i> struct numbers { };
template <int n, int... i> struct below : below<n - 1, n - 1, i...> { };
template <int... i> struct below<0, i...> { typedef numbers<i...> type; };

static void **arguments;
template <class... A, int... i> static void call(void (*f)(A...), numbers<i...>) { f(*(A *)arguments[i]...); }
template <class... A> static void call(void (*f)(A...)) { call(f, typename below<sizeof...(A)>::type()); }

static void launch(void (*f)(), const int64_t count[3], int items_of_group, void **args)
{
    body = f;
    items = items_of_group;
    arguments = args;
    for (blockIdx.z = 0; blockIdx.z < (uint64_t)count[2]; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < (uint64_t)count[1]; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < (uint64_t)count[0]; blockIdx.x++)
                run_group();
}

// What a kernel takes: the bytes of each argument, 0 of a pointer; the end is -1.
template <class... A> static const int *bytes_of(void (*)(A...))
{
    static const int bytes[] = { (std::is_pointer<A>::value ? 0 : (int)sizeof(A))..., -1 };

    return bytes;
}

// The last lines of a text: what a program calls, and what it checks first.
#define ENTRY(kernel) \
    extern "C" const int *takes_##kernel() { return bytes_of(kernel); }                  \
    extern "C" void launch_##kernel(const int64_t *groups, int items, void **args)       \
    {                                                                                    \
        launch([] { call(kernel); }, groups, items, args);                               \
    }
