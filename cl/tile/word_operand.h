/* cl/tile/word_operand.h - slices of a 16-bit operand whose rows begin at any element, for mma.sync
 *
 * A slice is rows as they lie in device memory (fragment.h), copied by cp.async in words of two elements.
 * A row that begins within a word is copied from that word on, so that its elements lie one further and
 * need one word more:
 *
 *     row 0   | 0 1 | 2 3 | ... | 14 15 |          a row has 4 words more than it needs, so that what a
 *     row 1   | . 0 | 1 2 | ... | 13 14 | 15 . |   warp reads lies in different banks
 *
 * Elements outside are zeros.  Lane (g, t) of a warp reads pairs of k of its row g as fragment.h has them: of
 * a K-major operand two words that it shifts; of an MN-major one an element of each of two rows.
 *
 * `width` is BLK_M or BLK_N; it and mn_major are constant in all calls.  A slice begins at k0, an even one.
 *
 * Takes  fragment.h; BLK_K; cp_async.h and memory.h of atoms/nvidia
 * Gives  WORD_BYTES(), of a slice; struct word_operand, word_operand() copy_word_slice(); struct
 *        word_fragment, word_fragment() load_pair()
 */
#define WORD_ROWS(width, mn_major)   ((mn_major) ? BLK_K : (width))
#define ROW_WORDS(width, mn_major)   (((mn_major) ? (width) : BLK_K) / 2)
#define WORD_PITCH(width, mn_major)  (4 * (ROW_WORDS(width, mn_major) + 4))     /* bytes */
#define WORD_BYTES(width, mn_major)  (WORD_ROWS(width, mn_major) * WORD_PITCH(width, mn_major))
#define ROWS_TOGETHER(width, mn_major) (ITEMS / ROW_WORDS(width, mn_major))     /* copied at a time */

#if BLK_K > ITEMS || BLK_M > ITEMS || BLK_N > ITEMS || ITEMS % BLK_K || ITEMS % BLK_M || ITEMS % BLK_N
#error "two rows or more must be copied at a time, and each row have a work-item"
#endif

/* Of the work-item: its first word of a slice, and the last element of row ITEM.  The next slice is `step`
 * bytes on. */
struct word_operand {
    GLOBAL const char *from, *last;
    BYTE_OFFSET apart, step;                    /* to its next word, and to the next slice */
    int row, column;                            /* of its first word's first element, which may be -1 */
    int has_last;                               /* row ITEM needs one word more */
};

DEVICE struct word_operand word_operand(GLOBAL const T *g, INDEX pitch, int x0, int k0, int width,
                                        int mn_major)
{
    const int words = ROW_WORDS(width, mn_major), word = (int)ITEM % words;
    const BYTE_OFFSET bytes = (BYTE_OFFSET)pitch * T_BYTES;
    GLOBAL const char *const begin = (GLOBAL const char *)g + (mn_major ? k0 : x0) * bytes +
                                     (BYTE_OFFSET)(mn_major ? x0 : k0) * T_BYTES;
    struct word_operand o;

    o.row      = (int)ITEM / words;
    o.from     = begin + o.row * bytes;
    o.column   = 2 * word - (int)((UINT64)o.from & 2) / 2;
    o.from    += 4 * word - (int)((UINT64)o.from & 2);
    o.last     = begin + ITEM * bytes + (2 * words - 1) * T_BYTES;
    o.has_last = (int)ITEM < WORD_ROWS(width, mn_major) && ((UINT64)o.last & 2) == 0;
    o.apart    = ROWS_TOGETHER(width, mn_major) * bytes;
    o.step     = mn_major ? BLK_K * bytes : BLK_K * T_BYTES;
    return o;
}

/* A slice to `to`, of which rows_left rows and elements_left elements of a row are inside; o is that of the
 * next then.  Of no bytes nothing is read, and the address may be any. */
DEVICE void copy_word_slice(struct word_operand *o, unsigned int to, int width, int mn_major, int rows_left,
                            int elements_left)
{
    const int words = ROW_WORDS(width, mn_major), rows = WORD_ROWS(width, mn_major);
    const int pitch = WORD_PITCH(width, mn_major), together = ROWS_TOGETHER(width, mn_major);
    const unsigned int first = to + o->row * pitch + ITEM % words * 4, last = to + ITEM * pitch + words * 4;

    if (rows_left >= rows && elements_left >= 2 * words) {
        UNROLL for (int i = 0; i < rows / together; i++)
            COPY_ASYNC_PART(4, first + i * together * pitch, o->from + i * o->apart, 4);
        if (o->has_last)
            COPY_ASYNC_PART(4, last, o->last, 2);
    } else {
        const int left = elements_left - o->column, bytes = left > 1 ? 4 : left > 0 ? 2 : 0;

        UNROLL for (int i = 0; i < rows / together; i++)
            COPY_ASYNC_PART(4, first + i * together * pitch, o->from + i * o->apart,
                            o->row + i * together < rows_left ? bytes : 0);
        if (o->has_last)
            COPY_ASYNC_PART(4, last, o->last,
                            (int)ITEM < rows_left && 2 * words - 1 < elements_left ? 2 : 0);
    }
    o->from += o->step;
    o->last += o->step;
}

/* Where a lane's pairs begin in a slice: of a K-major operand the word, and by how many bits it is shifted;
 * else the element of each of two rows. */
struct word_fragment { unsigned int at[2], shift; };

/* first: the warp's first row (column) of the tile. */
DEVICE struct word_fragment word_fragment(GLOBAL const T *g, INDEX pitch, int x0, int k0, int first,
                                          int width, int mn_major)
{
    const int own = (int)ITEM % 32 / 4, t = (int)ITEM % 4, bytes = WORD_PITCH(width, mn_major);
    const int k = PARTS_K > 1 ? (int)(ITEM / SET_ITEMS) * (BLK_K / PARTS_K) : 0;
    struct word_fragment f;

    f.shift = 0;
    UNROLL for (int e = 0; e < 2; e++) {
        const int row = mn_major ? k + 2 * t + e : first + own;
        const BYTE_OFFSET before = (BYTE_OFFSET)((mn_major ? k0 : x0) + row) * (BYTE_OFFSET)pitch * T_BYTES +
                                   (BYTE_OFFSET)(mn_major ? x0 : k0) * T_BYTES;
        const unsigned int odd = (unsigned int)((UINT64)((GLOBAL const char *)g + before) & 2);

        if (mn_major) {
            f.at[e] = row * bytes + (first + own) * T_BYTES + odd;
        } else {
            f.at[e] = row * bytes + (k / 2 + t) * 4;
            f.shift = 8 * odd;
        }
    }
    return f;
}

/* Elements k and k + 1, of block `block` of 8 rows (columns), both constant, in a slice. */
DEVICE UINT32 load_pair(const struct word_fragment *f, unsigned int slice, int block, int k, int width,
                        int mn_major)
{
    const int pitch = WORD_PITCH(width, mn_major);
    UINT32 u, v;

    if (mn_major) {
        LOAD_B16(u, slice + f->at[0] + (block * 8 * T_BYTES + k * pitch));
        LOAD_B16(v, slice + f->at[1] + (block * 8 * T_BYTES + k * pitch));
        return lowers_of(u, v);
    }
    LOAD_B32(u, slice + f->at[0] + (block * 8 * pitch + k * T_BYTES));
    LOAD_B32(v, slice + f->at[0] + (block * 8 * pitch + k * T_BYTES + 4));
    return shifted_pair(u, v, f->shift);
}
