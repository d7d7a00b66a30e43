/* cl/tile/async_operand.h - slices of an operand to local memory by cp.async, of any strides and alignment
 *
 * A slice is rows of 16-byte vectors (fragment.h), which the work-items of a work-group share.  They copy
 *
 *     vectors          if all rows are aligned to 16 bytes,
 *     parts of them    of 4 bytes (f64: 8), if rows are aligned to those,
 *     words            through registers, where rows of 16-bit elements begin at odd elements,
 *     elements         through registers, where rows are not contiguous,
 *
 * with zeros beyond the edges.  Adjacent work-items copy adjacent bytes.
 *
 * Takes  BLK_M BLK_N BLK_K; ITEMS ITEM VEC swizzle() of fragment.h
 * Gives  COPIES_A COPIES_B PART_BYTES VEC_PARTS, struct async_operand, is_aligned() async_operand()
 *        copy_inside() copy_slice()
 *
 * mn_major, vecs (of a row) and rows (of a slice) are constant in all calls.
 */
#define COPIES_A   (BLK_M * BLK_K / VEC / ITEMS)        /* vectors of a slice that a work-item copies */
#define COPIES_B   (BLK_N * BLK_K / VEC / ITEMS)
#define PART_BYTES (T_BYTES == 2 ? 4 : T_BYTES) /* the least that cp.async copies of whole elements */
#define VEC_PARTS  (16 / PART_BYTES)            /* of a vector */

/* Of the work-item: its first vector in a slice, or part of one; the others are some rows further. */
struct async_operand {
    GLOBAL const char *from;                    /* at k = 0 */
    unsigned int to;                            /* in a stage */
    BYTE_OFFSET pitch, step;                    /* from row to row, from element to element */
    int row, column;                            /* of the first element */
    int in_vectors, in_parts;                   /* how it may be copied; neither: through registers */
    GLOBAL const char *safe;                    /* an address in it that is a multiple of 4 */
};

/* Are its rows contiguous, and aligned to so many bytes? */
DEVICE int is_aligned(int bytes, GLOBAL const T *g, INDEX k_step, INDEX x_step, int x0, int mn_major)
{
    const BYTE_OFFSET pitch = (BYTE_OFFSET)(mn_major ? k_step : x_step) * T_BYTES;

    return (mn_major ? x_step : k_step) == 1 &&
           ((((UINT64)g + x0 * (BYTE_OFFSET)x_step * T_BYTES) | pitch) & (UINT64)(bytes - 1)) == 0;
}

DEVICE struct async_operand async_operand(GLOBAL const T *g, INDEX k_step, INDEX x_step, int x0,
                                          int mn_major, int vecs, int in_vectors)
{
    struct async_operand o;
    const BYTE_OFFSET k_bytes = (BYTE_OFFSET)k_step * T_BYTES, x_bytes = (BYTE_OFFSET)x_step * T_BYTES;

    o.pitch  = mn_major ? k_bytes : x_bytes;
    o.step   = mn_major ? x_bytes : k_bytes;
    o.from   = (GLOBAL const char *)g + x0 * x_bytes;
    o.in_vectors = in_vectors;
    o.in_parts   = T_BYTES > 2 || is_aligned(4, g, k_step, x_step, x0, mn_major);
    o.safe   = o.from - ((UINT64)o.from & 3);
    if (in_vectors || !o.in_parts) {
        o.row    = (int)(ITEM / vecs);
        o.column = (int)(ITEM % vecs) * VEC;
    } else {
        o.row    = (int)(ITEM / (vecs * VEC_PARTS));
        o.column = (int)(ITEM % (vecs * VEC_PARTS)) * (PART_BYTES / T_BYTES);
    }
    o.to     = (o.row * vecs + (o.column / VEC ^ swizzle(mn_major, vecs, o.row))) * 16
             + o.column % VEC * T_BYTES;
    o.from  += o.row * o.pitch + o.column * o.step;
    return o;
}

/* Copy i of the work-item, a vector or one of its `parts`: how many elements of it are inside, if rows_left
 * rows and elements_left elements of a row are; its addresses.                                         */
#define COPIES_OF(rows, vecs) ((rows) * (vecs) / ITEMS)
#define ROWS_APART(parts)     (ITEMS / (vecs) / (parts))
#define ELEMENTS(parts)       (VEC / (parts))
#define INSIDE(i, parts)                                                                                \
    (o->row + (i) * ROWS_APART(parts) >= rows_left || elements_left <= o->column ? 0                    \
     : elements_left - o->column < ELEMENTS(parts) ? elements_left - o->column : ELEMENTS(parts))
#define COPY_FROM(i, parts) (from + (i) * ROWS_APART(parts) * o->pitch)
#define COPY_TO(i, parts)                                                                               \
    ((to ^ swizzle(mn_major, vecs, (i) * ROWS_APART(parts)) << 4) + (i) * ITEMS * (16 / (parts)))

/* Copy i of a slice that is all inside and contiguous. */
DEVICE void copy_inside(const struct async_operand *o, GLOBAL const char *from, unsigned int to,
                        int mn_major, int vecs, int i, int in_parts)
{
    if (in_parts)
        COPY_ASYNC_PART(PART_BYTES, COPY_TO(i, VEC_PARTS), COPY_FROM(i, VEC_PARTS), PART_BYTES);
    else
        COPY_ASYNC16(COPY_TO(i, 1), COPY_FROM(i, 1));
}

DEVICE void copy_vectors(const struct async_operand *o, GLOBAL const char *from, unsigned int to,
                         int mn_major, int rows, int vecs, int rows_left, int elements_left)
{
    UNROLL for (int i = 0; i < COPIES_OF(rows, vecs); i++) {
        const int inside = INSIDE(i, 1);

        COPY_ASYNC16_PART(COPY_TO(i, 1), inside ? COPY_FROM(i, 1) : from, inside * T_BYTES);
    }
}

DEVICE void copy_parts(const struct async_operand *o, GLOBAL const char *from, unsigned int to,
                       int mn_major, int rows, int vecs, int rows_left, int elements_left)
{
    NO_UNROLL for (int i = 0; i < COPIES_OF(rows, vecs) * VEC_PARTS; i++) {
        const int inside = INSIDE(i, VEC_PARTS);

        COPY_ASYNC_PART(PART_BYTES, COPY_TO(i, VEC_PARTS), inside ? COPY_FROM(i, VEC_PARTS) : from,
                        inside * T_BYTES);
    }
}

#if T_BYTES == 2
#define LOADS_AHEAD \
    (COPIES_A % 4 == 0 && COPIES_B % 4 == 0 ? 4 : COPIES_A % 2 == 0 && COPIES_B % 2 == 0 ? 2 : 1)

/* In words of 32 bits, the first and the last of which may hold an element of a neighbour. */
DEVICE void copy_words(const struct async_operand *o, GLOBAL const char *from, unsigned int to,
                       int mn_major, int rows, int vecs, int rows_left, int elements_left)
{
    NO_UNROLL for (int i0 = 0; i0 < COPIES_OF(rows, vecs); i0 += LOADS_AHEAD) {
        UINT32 word[LOADS_AHEAD][VEC / 2 + 1];

        UNROLL for (int j = 0; j < LOADS_AHEAD; j++) {
            const int i = i0 + j, inside = INSIDE(i, 1);
            const int odd = inside ? (int)((UINT64)COPY_FROM(i, 1) & 2) : 0;
            GLOBAL const char *begin = inside ? COPY_FROM(i, 1) : o->safe;

            UNROLL for (int e = 0; e <= VEC / 2; e++)   /* always: a branch would wait for each */
                word[j][e] = *(GLOBAL const UINT32 *)(begin - odd + (2 * e < inside + odd / 2 ? 4 * e : 0));
        }
        UNROLL for (int j = 0; j < LOADS_AHEAD; j++) {
            const int i = i0 + j, inside = INSIDE(i, 1), odd = (int)((UINT64)COPY_FROM(i, 1) & 2);
            UINT32 pair[VEC / 2];

            UNROLL for (int e = 0; e < VEC / 2; e++) {
                const UINT32 both = odd ? word[j][e] >> 16 | word[j][e + 1] << 16 : word[j][e];

                pair[e] = 2 * e + 1 < inside ? both : 2 * e < inside ? both & 0xffff : 0;
            }
            STORE_B32X4(COPY_TO(i, 1), pair[0], pair[1], pair[2], pair[3]);
        }
    }
}

DEVICE void copy_elements(const struct async_operand *o, GLOBAL const char *from, unsigned int to,
                          int mn_major, int rows, int vecs, int rows_left, int elements_left)
{
    NO_UNROLL for (int i = 0; i < COPIES_OF(rows, vecs); i++) {
        const int inside = INSIDE(i, 1);
        UINT32 pair[VEC / 2];

        UNROLL for (int e = 0; e < VEC; e += 2) {
            const UINT32 low  = e < inside ? *(GLOBAL const UINT16 *)(COPY_FROM(i, 1) + e * o->step) : 0;
            const UINT32 high = e + 1 < inside
                              ? *(GLOBAL const UINT16 *)(COPY_FROM(i, 1) + (e + 1) * o->step) : 0;

            pair[e / 2] = low | high << 16;
        }
        STORE_B32X4(COPY_TO(i, 1), pair[0], pair[1], pair[2], pair[3]);
    }
}
#endif

/* A slice whose first k is at `from`, to the stage at `to`. */
DEVICE void copy_slice(const struct async_operand *o, GLOBAL const char *from, unsigned int to,
                       int mn_major, int rows, int vecs, int rows_left, int elements_left)
{
    to += o->to;
    if (o->in_vectors)
        copy_vectors(o, from, to, mn_major, rows, vecs, rows_left, elements_left);
#if T_BYTES == 2
    else if (!o->in_parts && o->step == T_BYTES)
        copy_words(o, from, to, mn_major, rows, vecs, rows_left, elements_left);
    else if (!o->in_parts)
        copy_elements(o, from, to, mn_major, rows, vecs, rows_left, elements_left);
#endif
    else
        copy_parts(o, from, to, mn_major, rows, vecs, rows_left, elements_left);
}
