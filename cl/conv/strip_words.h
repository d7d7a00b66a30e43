/* cl/conv/strip_words.h - a strip of COLS columns whose work-item has the channels of one word of 32 bits
 *
 * Takes  COLS; cl/conv/strip.h; pairs of atoms/nvidia/memory.h
 * Gives  STRIP_COLS STRIP_VEC STRIP_V STRIP_WIDTH, STRIP_STORE(), strip_word(), strip_filter()
 */
#define STRIP_COLS  COLS
#define STRIP_WIDTH STRIP_WIDE(COLS)
#if TYPE == TYPE_F32
#define STRIP_VEC   1
#define STRIP_V     R
#define STRIP_OF(all) ((all)[0])
#else
#define STRIP_VEC   2
#define STRIP_V     VECTOR(R, 2)
#define STRIP_OF(all) VLOAD(2, all)
#endif
#if TYPE_C == TYPE_F32
#define STRIP_STORE(to, all) STORE_ALIGNED_0(STRIP_VEC, to, VLOAD(STRIP_VEC, all))
#else
#define STRIP_STORE(to, all) (*(GLOBAL UINT32 *)(to) = OF(PAIR_OF, TYPE_C)((all)[0], (all)[1]))
#endif

DEVICE STRIP_V strip_word(LOCAL const UINT32 *at)
{
    const UINT32 word = *at;
    R all[STRIP_VEC];

#if STRIP_VEC == 1
    all[0] = BITS_FLOAT(word);
#else
    all[0] = OF(LOWER, TYPE)(word);
    all[1] = OF(UPPER, TYPE)(word);
#endif
    return STRIP_OF(all);
}

/* A tap of each of them, whose filters are `step` apart. */
DEVICE STRIP_V strip_filter(LOCAL const T *at, const int step)
{
    R all[STRIP_VEC];

    UNROLL for (int i = 0; i < STRIP_VEC; i++)
        all[i] = LOAD(at, i * step);
    return STRIP_OF(all);
}
