/* cl/tile/row_cpu.h - rows on CPUs: vectors of VEC lanes, at any stride
 *
 * Takes  VEC T R LOAD_VECTOR STORE_VECTOR (cl/types.h)
 * Gives  vector, STORE_LANES MAX_LANES read_lanes() write_lanes() first_lanes() lanes_max() lanes_sum()
 */
typedef VECTOR(R, VEC) vector;

/* STORE_LANES(p, v): STORE_VECTOR as one access; PoCL divides a vstore of 16 elements. */
#if TYPE == TYPE_F16
#define STORE_LANES(p, v) STORE_VECTOR(VEC, p, v)
#elif TYPE == TYPE_BF16
UNALIGNED(VECTOR(UINT16, VEC), stored, T_BYTES);
#define STORE_LANES(p, v) VSTORE_ALIGNED(stored, p, BF16_VECTOR(VEC, v))
#else
UNALIGNED(vector, stored, T_BYTES);
#define STORE_LANES(p, v) VSTORE_ALIGNED(stored, p, v)
#endif

#define MAX_LANES(a, b) PICK(a, b, b, a)       /* drops NaN in b; a is never NaN */

/* Elements 0 to `lanes` - 1, `lane` apart; 0 in the other lanes.  Where elements are contiguous, the loop
 * over all lanes becomes masked vector accesses.                                                        */
DEVICE vector read_lanes(GLOBAL const T *p, INDEX lane, int lanes)
{
    R some[VEC];

    if (lane == 1 && lanes == VEC)
        return LOAD_VECTOR(VEC, p);
    if (lane == 1) {
        NO_UNROLL for (int i = 0; i < VEC; i++)
            some[i] = i < lanes ? LOAD(p, i) : ZERO;
    } else {
        VSTORE(VEC, some, (vector)ZERO);
        for (int i = 0; i < lanes; i++)
            some[i] = LOAD(p, i * lane);
    }
    return VLOAD(VEC, some);
}

DEVICE void write_lanes(GLOBAL T *p, INDEX lane, int lanes, vector v)
{
    R some[VEC];

    if (lane == 1 && lanes == VEC) {
        STORE_LANES(p, v);
        return;
    }
    VSTORE(VEC, some, v);
    if (lane == 1) {
        NO_UNROLL for (int i = 0; i < VEC; i++)
            if (i < lanes)
                STORE(p, i, some[i]);
    } else
        for (int i = 0; i < lanes; i++)
            STORE(p, i * lane, some[i]);
}

/* v in lanes 0 to `lanes` - 1, `other` in those behind. */
DEVICE vector first_lanes(vector v, int lanes, R other)
{
    R index[VEC];

    UNROLL for (int i = 0; i < VEC; i++)
        index[i] = (R)i;
    return PICK(VLOAD(VEC, index), (vector)(R)lanes, v, (vector)other);
}

/* Over all lanes, by halves. */
DEVICE R lanes_max(vector v)
{
    R some[VEC];

    VSTORE(VEC, some, v);
    UNROLL for (int span = VEC / 2; span > 0; span /= 2)
        UNROLL for (int i = 0; i < span; i++)
            some[i] = MAX_LANES(some[i], some[i + span]);
    return some[0];
}

DEVICE R lanes_sum(vector v)
{
    R some[VEC];

    VSTORE(VEC, some, v);
    UNROLL for (int span = VEC / 2; span > 0; span /= 2)
        UNROLL for (int i = 0; i < span; i++)
            some[i] = some[i] + some[i + span];
    return some[0];
}
