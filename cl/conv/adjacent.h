/* cl/conv/adjacent.h - adjacent elements, to local memory in 16-byte vectors, wherever they begin
 *
 * Takes  T T_BYTES T_BITS ITEMS
 */
#define VECTOR_BYTES 16
#define V4           VECTOR(UINT32, 4)
#define MARGIN       2          /* vectors that are free before a strip in local memory, and behind it */
#define LOADS        4          /* in flight at a time */
#define PER_IN       (VECTOR_BYTES / T_BYTES)

/* Copies elements from `begin` on, of a buffer of so many, to element begin % PER_IN of `to`. */
DEVICE void load_adjacent(LOCAL V4 *to, GLOBAL const T *gIn, INDEX begin, int count, INT64 elements)
{
    const INDEX first = begin / PER_IN;
    const int end = (int)(begin - first * PER_IN) + count, vectors = (end + PER_IN - 1) / PER_IN;
    const int whole = (INT64)(first + vectors) * PER_IN <= elements ? vectors : vectors - 1;
    GLOBAL const T *const from = gIn + first * PER_IN;

    for (int i = LOCAL_ID(); i < whole; i += LOADS * ITEMS) {
        V4 v[LOADS];

        UNROLL for (int j = 0; j < LOADS; j++)
            v[j] = VLOAD_ALIGNED(V4, from + (i + j * ITEMS < whole ? i + j * ITEMS : i) * PER_IN);
        UNROLL for (int j = 0; j < LOADS; j++)
            if (i + j * ITEMS < whole)
                to[i + j * ITEMS] = v[j];
    }
    for (int i = whole * PER_IN + LOCAL_ID(); i < end; i += ITEMS)
        ((LOCAL T_BITS *)to)[i] = ((GLOBAL const T_BITS *)from)[i];
}

/* A row of a plane that was copied so, from `from` on: n elements, zeros for those that the plane lacks. */
DEVICE void load_row(R *v, LOCAL const T *from, int row_in, const int *col_in, int n)
{
    UNROLL for (int x = 0; x < n; x++) {
        const R loaded = LOAD(from, x);

        v[x] = row_in & col_in[x] ? loaded : ZERO;
    }
}
