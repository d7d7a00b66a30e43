/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h - cl/atoms/nvidia/lanes.h said again in plain OpenCL C: lanes exchange through local memory, in
 * which each kernel's array has room for a value of each work-item before it.
 */
#define LANES 32

#undef LOCAL_ARRAY
#define LOCAL_ARRAY(T, v, n) __local T v##_room[(n) + ITEMS]; __local T *const v = v##_room + ITEMS

#define IN_VECTOR_0 4
#define IN_VECTOR_1 8
#define IN_VECTOR_2 8
#define IN_VECTOR_3 2
#define VECTOR_RUN  OF(IN_VECTOR, TYPE)

#define READ_VECTOR(r, p)  VSTORE(VECTOR_RUN, r, LOAD_ALIGNED(VECTOR_RUN, p))
#define READ_VECTOR_ONCE   READ_VECTOR
#define WRITE_VECTOR(p, r) STORE_ALIGNED(VECTOR_RUN, p, VLOAD(VECTOR_RUN, r))

DEVICE R power(R x) { return exp_below(x); }

DEVICE R lane_xor(__local R *base, R x, int bits)
{
    __local R *const room = base - ITEMS;
    R other;

    room[LOCAL_ID()] = x;
    BARRIER();
    other = room[LOCAL_ID() ^ bits];
    BARRIER();
    return other;
}

#define LANE_XOR(s, x, bits) lane_xor(s, x, bits)

/* Loops that are left as loops make a shorter kernel, which compiles sooner. */
#undef UNROLL
#define UNROLL NO_UNROLL
