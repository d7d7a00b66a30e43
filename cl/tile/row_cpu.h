/* cl/tile/row_cpu.h - rows on CPUs: vectors of VEC lanes, at any stride
 *
 * Takes  VEC T R LOAD_VECTOR STORE_VECTOR (cl/types.h)
 * Gives  vector, MAX_LANES read_lanes() write_lanes() lanes_max() lanes_sum()
 */
typedef VECTOR(R, VEC) vector;

#define MAX_LANES(a, b) PICK(a, b, b, a)       /* drops NaN in b; a is never NaN */

/* Elements 0 to `lanes` - 1, `lane` apart; 0 in the other lanes. */
DEVICE vector read_lanes(GLOBAL const T *p, INDEX lane, int lanes)
{
    R some[VEC];

    if (lane == 1 && lanes == VEC)
        return LOAD_VECTOR(VEC, p);
    for (int i = 0; i < VEC; i++)
        some[i] = i < lanes ? LOAD(p, i * lane) : ZERO;
    return VLOAD(VEC, some);
}

DEVICE void write_lanes(GLOBAL T *p, INDEX lane, int lanes, vector v)
{
    R some[VEC];

    if (lane == 1 && lanes == VEC) {
        STORE_VECTOR(VEC, p, v);
        return;
    }
    VSTORE(VEC, some, v);
    for (int i = 0; i < lanes; i++)
        STORE(p, i * lane, some[i]);
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
