/* cl/tile/store_row.h - a warp's accumulators to a contiguous row of C, of 16-bit elements
 *
 * d holds the `count` accumulators of a work-item (cl/tile/accumulator.h): of a row and of the row 8 below;
 * `below`, 0 or 1, says which is stored.  left: how many elements of the row are in C, from the tile's first
 * column on.
 *
 * Takes: epilogue.h; atoms/nvidia/warp.h, memory.h.
 * Gives: store_row_*().
 */

#if C_BYTES == 2
#define C_PAIR_OF(x, y)       OF(PAIR_OF, TYPE_C)(x, y)
#define STORE_C_PAIR(p, x, y) OF(STORE_PAIR, TYPE_C)(p, x, y)

/* A row that begins at a multiple of 16 bytes, of whole vectors.  A quad has 8 columns of a row; of four
 * such pieces each lane gets one, and stores 16 bytes.  count is a multiple of 16. */
DEVICE void store_row_vectors(GLOBAL TC *row, const float *d, const int count, int below, int lane,
                              int left)
{
    UNROLL for (int i = 0; i + 32 <= count; i += 32) {
        unsigned int u[8];

        UNROLL for (int j = 0; j < 8; j++)
            u[j] = C_PAIR_OF(d[i + 4 * j + 2 * below], d[i + 4 * j + 2 * below + 1]);
        transpose4(u, 2, lane, 1);
        UNROLL for (int h = 0; h < 2; h++) {
            const int n = (i + 16 * h) * 2 + lane % 4 * 8;

            store16(row + n, u + 4 * h, n < left);
        }
    }
    if (count % 32) {
        const int i = count / 32 * 32, n = i * 2 + lane % 4 * 8;
        unsigned int u[4];

        UNROLL for (int j = 0; j < 4; j++)
            u[j] = C_PAIR_OF(d[i + 4 * j + 2 * below], d[i + 4 * j + 2 * below + 1]);
        transpose4(u, 1, lane, 1);
        store16(row + n, u, n < left);
    }
}

/* A row that begins at any element, in pairs.  Where it begins at an odd one, pairs are stored one column
 * on: the second element of each comes from the next lane. */
DEVICE void store_row_pairs(GLOBAL TC *row, const float *d, const int count, int below, int lane,
                            int left)
{
    const int odd = (UINT64)row / sizeof(T) % 2;

    left = left < 2 * count ? left : 2 * count;
    UNROLL for (int i = 2 * below; i < count; i += 4) {
        const float x = d[i], y = d[i + 1];
        const int n = i / 4 * 8 + lane % 4 * 2 + odd;
        float z = x;

        if (lane % 4 == 0 && i + 4 < count)
            z = d[i + 4 < count ? i + 4 : i];
        z = BITS_FLOAT(from_lane(FLOAT_BITS(z), lane / 4 * 4 + (lane + 1) % 4));
        if (n == 1 && left > 0)
            STORE_C(row, 0, x);
        if (n + 1 < left) {
            STORE_C_PAIR(row + n, odd ? y : x, odd ? z : y);
        } else if (n < left) {
            STORE_C(row, n, odd ? y : x);
        }
    }
}

/* A row that begins at any element, in 16-byte vectors: elements are shifted by up to 7 for that. */
DEVICE void store_row_shifted(GLOBAL TC *first, const float *d, const int count, int below,
                              int lane, int left)
{
    GLOBAL UINT16 *const row = (GLOBAL UINT16 *)first;
    const int by = (int)(8 - (UINT64)row / 2 % 8) % 8;          /* elements before the first vector */
    unsigned int u[4], later[4] = { 0, 0, 0, 0 }, cut[4] = { 0, 0, 0, 0 };
    int cut_at = 2 * count;

    left = left < 2 * count ? left : 2 * count;
    /* 8 adjacent elements, with those of the next step */
    UNROLL for (int i = -16; i < count; i += 16) {
        UINT32 w[8];
        const int n = i * 2 + lane % 4 * 8 + by;

        UNROLL for (int j = 0; j < 4; j++) {
            u[j] = later[j];
            if (i + 16 < count)
                later[j] = C_PAIR_OF(d[i + 16 + 4 * j + 2 * below], d[i + 16 + 4 * j + 2 * below + 1]);
        }
        if (i + 16 < count)
            transpose4(later, 1, lane, 1);
        if (i < 0) {
            UNROLL for (int j = 0; j < 7; j++)
                if (lane % 4 == 0 && j < by && j < left)
                    row[j] = (UINT16)(later[j / 2] >> j % 2 * 16);
            continue;
        }
        UNROLL for (int j = 0; j < 4; j++) {
            const unsigned int here = u[j], next = later[j];            /* see transpose4() */

            w[j] = here;
            w[4 + j] = from_lane(lane % 4 == 0 ? next : here, lane / 4 * 4 + (lane + 1) % 4);
        }
        shift_words(w, by);
        if (n + 8 <= left) {
            store16(first + n, w, 1);
        } else if (n < left) {                  /* at most one vector of a row */
            cut_at = n;
            UNROLL for (int j = 0; j < 4; j++)
                cut[j] = w[j];
        }
    }
    UNROLL for (int j = 0; j < 8; j++)
        if (cut_at + j < left)
            row[cut_at + j] = (UINT16)(cut[j / 2] >> j % 2 * 16);
}
#endif
