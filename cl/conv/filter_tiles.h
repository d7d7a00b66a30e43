/* cl/conv/filter_tiles.h - the gradient of a filter in tiles, and which work-group sums which pixels of them
 *
 * A tile has BLK_M filters and BLOCKS_N column blocks; a column block is 128 bytes of channels of one tap.
 * Column blocks are numbered channels first; or TAPS_TOGETHER, and a tile has those of the same channels.
 * Tiles are numbered filters first.  A slice is some pixels of dy.  Work-group g has tile g % tiles, and part
 * g / tiles of the pixels: every `parts`-th slice, so that work-groups that run together read what lies
 * together, and those of one part the same.  The partial sums of a tile, BLK_M x BLK_N elements, go to
 * slot g.
 *
 * Takes: BLK_M, BLK_N; TAPS_TOGETHER, 0 or 1; cl/tile/operand.h, conv.h, im2col.h.
 * Gives: BLOCKS_N SLOT, struct column_block, struct share, filter_*().
 */
#define BLOCKS_N (BLK_N / OPERAND_ROW)
#define SLOT     (BLK_M * BLK_N)                /* elements */

DEVICE int filter_column_blocks(VIEW eW)
{
    return ((int)eW.s3 + OPERAND_ROW - 1) / OPERAND_ROW * (int)(eW.s4 * eW.s5 * eW.s6);
}

/* A column block: its first channel, and its tap. */
struct column_block { int c, s, r, t; };

DEVICE void filter_column_block(struct column_block *b, int at, VIEW eW)
{
    const int of_tap = ((int)eW.s3 + OPERAND_ROW - 1) / OPERAND_ROW;
    const int tap = at / of_tap, row = quotient(tap, (int)eW.s6);

    b->c = (at - tap * of_tap) * OPERAND_ROW;
    b->s = tap - row * (int)eW.s6;
    b->t = quotient(row, (int)eW.s5);
    b->r = row - b->t * (int)eW.s5;
}

/* The first filter of a tile; its j-th column block. */
DEVICE int filter_of_tile(int tile, VIEW eW)
{
    return tile % (((int)eW.s2 + BLK_M - 1) / BLK_M) * BLK_M;
}

DEVICE int block_of_tile(int tile, int j, VIEW eW)
{
    const int column = tile / (((int)eW.s2 + BLK_M - 1) / BLK_M);
    const int of_tap = ((int)eW.s3 + OPERAND_ROW - 1) / OPERAND_ROW;

    return TAPS_TOGETHER ? j * of_tap + column : column * BLOCKS_N + j;
}

/* The channel and the tap of column n of a tile: 0 where dW has none. */
DEVICE int filter_column(struct column_block *b, int tile, int n, VIEW eW)
{
    const int at = block_of_tile(tile, n / OPERAND_ROW, eW);

    filter_column_block(b, at, eW);
    b->c += n % OPERAND_ROW;
    return at < filter_column_blocks(eW) && b->c < (int)eW.s3;
}

/* What a work-group has: `count` slices of a tile, from `first` on. */
struct share { int tile, first, count; };

DEVICE void filter_share(struct share *s, int group, int tiles, int slices, int parts)
{
    s->first = quotient(group, tiles);
    s->tile  = group - s->first * tiles;
    s->count = quotient(slices - s->first + parts - 1, parts);
}

/* dy, as pixels that follow each other, of the window of x. */
DEVICE struct window filter_plain(struct window x)
{
    const struct window y = { { x.count[0], x.count[1], x.count[2] }, { 0, 0, 0 }, { 1, 1, 1 }, x.images,
                              { x.by[0], x.by[1], x.by[2] } };

    return y;
}

/* The source of an output pixel, for the first tap. */
DEVICE struct pixel filter_source(struct window x, struct pixel out)
{
    const struct pixel in = { x.first[0] + out.w * x.step[0], x.first[1] + out.h * x.step[1],
                              x.first[2] + out.d * x.step[2], out.n };

    return in;
}

/* sum, and the products of the pixels from `first` up to `end`, by multiply-adds: of filter k, and of channel
 * b.c of a tap.  For sums that are not finite. */
DEVICE R filter_pixels(R sum, int first, int end, int k, struct column_block b, struct window x,
                       VIEW vDilation, GLOBAL const T *gX, VIEW vX, VIEW eX, GLOBAL const T *gY, VIEW vY)
{
    NO_UNROLL for (int i = first; i < end; i++) {
        const struct pixel out = pixel_of(filter_plain(x), i), in = filter_source(x, out);
        const int w = in.w + b.s * (int)vDilation.s6, h = in.h + b.r * (int)vDilation.s5;
        const int d = in.d + b.t * (int)vDilation.s4;

        if (d >= 0 && d < (int)eX.s4 && h >= 0 && h < (int)eX.s5 && w >= 0 && w < (int)eX.s6)
            sum = FMA(LOAD(gX, OFFSET(vX, 0, in.n, b.c, d, h, w)),
                      LOAD(gY, OFFSET(vY, 0, out.n, k, out.d, out.h, out.w)), sum);
    }
    return sum;
}
