/* cl/tile/word_operand.h - slices of an operand whose rows begin at any element, for mma.sync
 *
 * A slice is rows as they lie in device memory (fragment.h), copied by cp.async in words: an element of f32
 * or f64, two of 16 bits.  A row of 16-bit elements that begins within a word is copied from that word on, so
 * that its elements lie one further and need one word more:
 *
 *     row 0   | 0 1 | 2 3 | ... | 14 15 |          a row has 4 or 8 words more than it needs, so that what
 *     row 1   | . 0 | 1 2 | ... | 13 14 | 15 . |   a warp reads lies in different banks
 *
 * Elements outside are zeros.  Lane (g, t) of a warp reads what fragment.h says of its row g: of f64
 * elements; else pairs of k, of a K-major operand adjacent (of 16 bits: two words that it shifts), of an
 * MN-major one an element of each of two rows.  f32 is split into its parts when it is read.
 *
 * `width` is BLK_M or BLK_N; it and mn_major are constant in all calls.  A slice begins at k0, an even one.
 *
 * Takes  fragment.h; BLK_K; bf16_parts.h; cp_async.h and memory.h of atoms/nvidia
 * Gives  WORD_BYTES(), of a slice; struct word_operand, word_operand() copy_word_slice(); struct
 *        word_fragment, word_fragment() load_words()
 */
#define WORD                         (T_BYTES < 4 ? 4 : T_BYTES)        /* bytes */
#define PER_WORD                     (WORD / T_BYTES)                   /* elements */
#define PER_LANE                     (TYPE == TYPE_F64 ? 1 : 2)         /* of k, that are read together */
#define WORD_ROWS(width, mn_major)   ((mn_major) ? BLK_K : (width))
#define ROW_WORDS(width, mn_major)   (((mn_major) ? (width) : BLK_K) / PER_WORD)
#define WORD_PAD(mn_major)           (TYPE == TYPE_F32 && !(mn_major) ? 8 : 4)
#define WORD_PITCH(width, mn_major)  (WORD * (ROW_WORDS(width, mn_major) + WORD_PAD(mn_major))) /* bytes */
#define WORD_BYTES(width, mn_major)  (WORD_ROWS(width, mn_major) * WORD_PITCH(width, mn_major))
#define ROWS_TOGETHER(width, mn_major) (ITEMS / ROW_WORDS(width, mn_major))     /* copied at a time */
#define IS_WHOLE(width, mn_major) \
    (ROWS_TOGETHER(width, mn_major) > 0 && WORD_ROWS(width, mn_major) % ROWS_TOGETHER(width, mn_major) == 0)

#if BLK_K > ITEMS || BLK_M > ITEMS || BLK_N > ITEMS || ITEMS % BLK_K || ITEMS % BLK_M || ITEMS % BLK_N
#error "rows must be copied whole, and each have a work-item"
#endif
#if !IS_WHOLE(BLK_M, MN_MAJOR_A) || !IS_WHOLE(BLK_N, MN_MAJOR_B)
#error "a slice must be copied in whole turns"
#endif

/* Whether the element at p is the second of its word, in bytes. */
#define WITHIN_WORD(p) (PER_WORD > 1 ? (UINT64)(p) & 2 : 0)

/* Of the work-item: its first word of a slice, and the last element of row ITEM of a whole one.  The next
 * slice is `step` bytes on. */
struct word_operand {
    GLOBAL const char *from, *last;
    BYTE_OFFSET apart, step;                    /* to its next word, and to the next slice */
    int row, column;                            /* of its first word's first element, which may be -1 */
};

DEVICE struct word_operand word_operand(GLOBAL const T *g, INDEX pitch, int x0, int k0, int width,
                                        int mn_major)
{
    const int words = ROW_WORDS(width, mn_major), word = (int)(ITEM % words);
    const BYTE_OFFSET bytes = (BYTE_OFFSET)pitch * T_BYTES;
    GLOBAL const char *const begin = (GLOBAL const char *)g + (mn_major ? k0 : x0) * bytes +
                                     (BYTE_OFFSET)(mn_major ? x0 : k0) * T_BYTES;
    struct word_operand o;

    o.row      = (int)(ITEM / words);
    o.from     = begin + o.row * bytes;
    o.column   = PER_WORD * word - (int)WITHIN_WORD(o.from) / T_BYTES;
    o.from    += WORD * word - (int)WITHIN_WORD(o.from);
    o.last     = begin + ITEM * bytes + (PER_WORD * words - 1) * T_BYTES;
    o.apart    = ROWS_TOGETHER(width, mn_major) * bytes;
    o.step     = mn_major ? BLK_K * bytes : BLK_K * T_BYTES;
    return o;
}

/* A slice to `to`, of which rows_left rows and elements_left elements of a row are inside; o is that of the
 * next then.  Of what is outside nothing is read, and the address may be any.  The word of which one element
 * is inside is copied by one work-item of a row: a number of bytes that the kernel computes takes 12
 * instructions. */
DEVICE void copy_word_slice(struct word_operand *o, unsigned int to, int width, int mn_major, int rows_left,
                            int elements_left)
{
    const int words = ROW_WORDS(width, mn_major), rows = WORD_ROWS(width, mn_major);
    const int pitch = WORD_PITCH(width, mn_major), together = ROWS_TOGETHER(width, mn_major);
    const int end = elements_left < PER_WORD * words ? elements_left : PER_WORD * words;
    const unsigned int first = to + o->row * pitch + ITEM % words * WORD;

    if (PER_WORD == 1 || o->column + 1 != end)
        UNROLL for (int i = 0; i < rows / together; i++)
            COPY_ASYNC_OR_ZEROS(WORD, first + i * together * pitch, o->from + i * o->apart,
                                o->column < end && o->row + i * together < rows_left);
    if (PER_WORD > 1 && (int)ITEM < rows) {
        GLOBAL const char *const last = o->last + (end - PER_WORD * words) * T_BYTES;

        if (WITHIN_WORD(last) == 0)             /* the first of its word */
            COPY_ASYNC_PART(WORD, to + ITEM * pitch + end / PER_WORD * WORD, last,
                            (int)ITEM < rows_left ? T_BYTES : 0);
        if (end < PER_WORD * words)             /* a row that begins within a word has one more */
            COPY_ASYNC_OR_ZEROS(WORD, to + ITEM * pitch + words * WORD, last, 0);
    }
    o->from += o->step;
    o->last += o->step;
}

/* Where a lane's elements begin in a slice: of a K-major operand the first, or its word, and by how many bits
 * it is shifted; else the element of each of two rows. */
struct word_fragment { unsigned int at[2], shift; };

/* first: the warp's first row (column) of the tile. */
DEVICE struct word_fragment word_fragment(GLOBAL const T *g, INDEX pitch, int x0, int k0, int first,
                                          int width, int mn_major)
{
    const int own = (int)(ITEM % 32 / 4), t = (int)(ITEM % 4), bytes = WORD_PITCH(width, mn_major);
    const int k = PARTS_K > 1 ? (int)(ITEM / SET_ITEMS) * (BLK_K / PARTS_K) : 0;
    struct word_fragment f;

    f.shift = 0;
    UNROLL for (int e = 0; e < 2; e++) {
        const int row = mn_major ? k + PER_LANE * t + e : first + own;
        const UINT32 before = (UINT32)((mn_major ? k0 : x0) + row) * (UINT32)pitch +
                              (UINT32)(mn_major ? x0 : k0);
        const unsigned int odd = (unsigned int)WITHIN_WORD((UINT64)g + before * T_BYTES);

        if (mn_major) {
            f.at[e] = row * bytes + (first + own) * T_BYTES + odd;
        } else {
            f.at[e] = row * bytes + (k / PER_LANE + t) * (PER_LANE * T_BYTES);
            f.shift = 8 * odd;
        }
    }
    return f;
}

/* What the lane reads together as number `h` of a step of k, of block `block` of 8 rows (columns), to the
 * block's registers; all are constant. */
DEVICE void load_words(FRAGMENT x[FRAGMENT_REGS], const struct word_fragment *f, unsigned int slice,
                       int block, int step, int h, int width, int mn_major)
{
    const int pitch = WORD_PITCH(width, mn_major), k = step * STEP_K + 4 * PER_LANE * h;
    const int further = mn_major ? block * 8 * T_BYTES + k * pitch : block * 8 * pitch + k * T_BYTES;
    const unsigned int at = slice + f->at[0] + further, second = slice + f->at[1] + further;

#if TYPE == TYPE_F64
    LOAD_F64(x[h], at);
#elif TYPE == TYPE_F32
    float u, v;

    if (mn_major) {
        LOAD_F32(u, at);
        LOAD_F32(v, second);
    } else {
        LOAD_F32X2(u, v, at);
    }
    u *= BF16X3_SCALE;
    v *= BF16X3_SCALE;
    UNROLL for (int part = 0; part < FRAGMENT_PARTS; part++)
        x[2 * part + h] = bf16x3_part(&u, &v);
#else
    UINT32 u, v;

    if (mn_major) {
        LOAD_B16(u, at);
        LOAD_B16(v, second);
        x[h] = lowers_of(u, v);
    } else {
        LOAD_B32(u, at);
        LOAD_B32(v, at + 4);
        x[h] = shifted_pair(u, v, f->shift);
    }
#endif
}
