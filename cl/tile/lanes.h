/* cl/tile/lanes.h - what a row's kernel takes from the device, in words alone: no lanes, 16-byte vectors
 *
 * atoms/nvidia/lanes.h gives the same names.
 *
 * Takes  T TYPE LOAD_ALIGNED STORE_ALIGNED (cl/types.h); exp_below() (activation.h)
 * Gives  LANES: work-items that exchange values without local memory, 1 here
 *        VECTOR_RUN: elements of a 16-byte vector; READ_VECTOR(r, p) and WRITE_VECTOR(p, r), of R r[];
 *        READ_VECTOR_ONCE, of what is not read again
 *        power(x): exp(x) of an x that is a logit less the largest one
 */
#define LANES 1

#define IN_VECTOR_0 4
#define IN_VECTOR_1 8
#define IN_VECTOR_2 8
#define IN_VECTOR_3 2
#define VECTOR_RUN OF(IN_VECTOR, TYPE)

#define READ_VECTOR(r, p)  VSTORE(VECTOR_RUN, r, LOAD_ALIGNED(VECTOR_RUN, p))
#define READ_VECTOR_ONCE   READ_VECTOR
#define WRITE_VECTOR(p, r) STORE_ALIGNED(VECTOR_RUN, p, VLOAD(VECTOR_RUN, r))

DEVICE R power(R x) { return exp_below(x); }
