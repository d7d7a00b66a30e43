/* cl/attention/tiled.h - operands of attention for the tile of cl/tile/fma.h
 *
 * Takes  cl/tile/fma.h; HEAD
 * Gives  TILES, of BLK_N columns, that a row of a head has; struct operand_a, struct operand_b, load_*(),
 *        is_k_major_*()
 */
#define TILES ((HEAD + BLK_N - 1) / BLK_N)

/* A: rows in global memory, or weights, in local memory with BLK_N rows of pitch PITCH_A. */
struct operand_a { GLOBAL const T *g; LOCAL const R *weights; INDEX row, col; int M, K; };
/* B, in global memory: element (k, n) is at k row + n col.  In pages (page > 0), the first row, or column,
 * is key n0 of `batch`, and what a page takes is `each`.                                              */
struct operand_b {
    GLOBAL const T *g; INDEX row, col; int K, N;
    int page, pages, n0, across; INDEX each, first, step; GLOBAL const int *table;
};

DEVICE int is_k_major_a(const struct operand_a *a) { return a->weights == 0 && a->col < a->row; }
DEVICE int is_k_major_b(const struct operand_b *b) { return b->row < b->col; }

DEVICE R load_a(const struct operand_a *a, int m, int k)
{
    if (a->weights)
        return a->weights[k * PITCH_A + m];
    return m < a->M && k < a->K ? LOAD(a->g, m * a->row + k * a->col) : ZERO;
}

DEVICE R load_b(const struct operand_b *b, int k, int n)
{
    if (k >= b->K || n >= b->N)
        return ZERO;
    if (b->page) {
        const int key = b->n0 + (b->across ? n : k), in = key % b->page, other = b->across ? k : n;
        const int page = page_at(b->table, b->first + key / b->page * b->step, b->pages);

        return LOAD(b->g, page * b->each + (b->across ? in * b->col + other * b->row
                                                      : in * b->row + other * b->col));
    }
    return LOAD(b->g, k * b->row + n * b->col);
}
