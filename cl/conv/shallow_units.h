/* cl/conv/shallow_units.h - rows of a source of few channels in local memory, as units of 16 bytes
 *
 * A unit has the elements of STRIDE pixels, at most 8, and zeros.  What the next output of a row reads begins
 * a unit further, so that the source is there once, and operands of wgmma overlap:
 *
 *     a row of the source       u0 u1 u2 u3 u4 u5 ...
 *     output 0, a row of taps   u0 u1 u2 u3              UNITS of them
 *     output 1                     u1 u2 u3 u4
 *
 * Stages have STRIDE rows each, which the producers, a warpgroup, load once for all outputs of a band: a run
 * of rows of one image, of STRIP columns at most.  Output i of a band needs stages i to i + more, where more
 * is (rows of taps - 1) / STRIDE.  The first TWINS stages are there once more, behind the last: so the rows
 * that an output needs always follow each other, ROW_UNITS apart.
 *
 *     vBands   s0 rows of the output in all bands; s1 of a work-group; s2 bands across an image; s3 rows of
 *              an image and s4 bands across it, as prepared divisors; s5 taps of zeros before the first of
 *              a row
 *
 * Takes: STRIP STRIDE UNITS STAGES TWINS; WORDS of a unit that follow each other in the source, or 0
 *        where they are other elements, or none; MOST_OPEN, stages whose copies are on their way, of words;
 *        cl/tile/pipeline.h, atoms/nvidia/cp_async.h.
 * Gives: LAG, ROW_UNITS, STAGE_ROOM, struct band, band_of(), struct unit, unit_of(), load_unit(),
 *        load_bands(), struct passage, pass_to().
 */
#define LAG        (WORDS > 0 ? MOST_OPEN : 0)
#define ROW_UNITS  (STRIP + UNITS)              /* of a row of the source */
#define STAGE_ROOM (STRIDE * ROW_UNITS * 16)
#define PRODUCERS  128
#define FLIGHT     ((STRIDE * ROW_UNITS + PRODUCERS - 1) / PRODUCERS)   /* units of a stage for each item */

/* Rows of the output in one strip of an image, or as many as the work-group has of them. */
struct band { int n, strip, h, count; };

DEVICE struct band band_of(int at, int end, VIEW vBands, int height)
{
    const int of = divided(at, (INT64)vBands.s3), n = divided(of, (INT64)vBands.s4), h = at - of * height;
    const int left = height - h < end - at ? height - h : end - at;
    const struct band b = { n, of - n * (int)vBands.s2, h, left };

    return b;
}

/* The elements of a unit: their pixels, counted from its first, and their offsets. */
struct unit { int w[8]; INDEX at[8]; };

DEVICE void unit_of(struct unit *u, int channels, INDEX pixel, INDEX channel)
{
    int w = 0, c = 0;

    UNROLL for (int e = 0; e < 8; e++) {
        u->w[e] = w < STRIDE && c < channels ? w : -(1 << 29);          /* or one that no row has */
        u->at[e] = w * pixel + c * channel;
        if (++c == (WORDS ? channels : 8 / STRIDE)) {
            c = 0;
            w++;
        }
    }
}

/* ... as words, of a row of W pixels from pixel x on, whose offset is `first`. */
DEVICE void load_unit(UINT32 *word, const struct unit *u, GLOBAL const T *from, INDEX first, int x, int W,
                      int is_row)
{
    W = is_row ? W : 0;
    UNROLL for (int e = 0; e < 8; e++) {
        const int is = (UINT32)(x + u->w[e]) < (UINT32)W;
        const UINT32 bits = is ? ((GLOBAL const T_BITS *)from)[first + u->at[e]] : 0;

        word[e / 2] = e % 2 ? word[e / 2] | bits << 16 : bits;
    }
}

/* The producers: a stage of a band, whose rows begin at y.  units: of a row. */
DEVICE struct pipeline load_stage(struct pipeline p, UINT32 rows, GLOBAL const T *gB, VIEW vB, VIEW eIn,
                                  int n, int y, int x, int units, int channels)
{
    const int me = LOCAL_ID() % PRODUCERS, fresh = p.fresh > 0;
    const UINT32 to = rows + p.stage * STAGE_ROOM + me * 16;
    const UINT32 twin = p.stage < TWINS ? to + STAGES * STAGE_ROOM : to;
    const INDEX first = OFFSET(vB, 0, n, 0, 0, y, x);
    struct unit elements;
    UINT32 u[FLIGHT][4];

    unit_of(&elements, channels, (INDEX)vB.s6, (INDEX)vB.s3);
    if (WORDS)
        p = producer_acquire(p);
    UNROLL for (int i = 0; i < FLIGHT; i++) {
        const int e = me + i * PRODUCERS, row = e / ROW_UNITS, unit = e % ROW_UNITS, w = x + unit * STRIDE;
        const int is_row = row < STRIDE && unit < units && (UINT32)(y + row) < (UINT32)eIn.s5;
        const INDEX at = first + row * (INDEX)vB.s5 + unit * (STRIDE * (INDEX)vB.s6);

        if (WORDS) {
            const int is = is_row && (UINT32)w < (UINT32)eIn.s6;

            if (fresh && row < STRIDE)
                STORE_B32X4(to + i * PRODUCERS * 16, 0, 0, 0, 0);
            if (TWINS > 0 && fresh && row < STRIDE)
                STORE_B32X4(twin + i * PRODUCERS * 16, 0, 0, 0, 0);
            if (row < STRIDE)
                UNROLL for (int k = 0; k < WORDS; k++)
                    COPY_ASYNC_OR_ZEROS(4, to + i * PRODUCERS * 16 + 4 * k, gB + at + 2 * k, is);
            if (TWINS > 0 && twin != to && row < STRIDE)
                UNROLL for (int k = 0; k < WORDS; k++)
                    COPY_ASYNC_OR_ZEROS(4, twin + i * PRODUCERS * 16 + 4 * k, gB + at + 2 * k, is);
        } else {
            load_unit(u[i], &elements, gB, at, w, (int)eIn.s6, is_row);
        }
    }
    if (WORDS)
        return p;
    p = producer_acquire(p);
    UNROLL for (int i = 0; i < FLIGHT; i++)
        if (me + i * PRODUCERS < STRIDE * ROW_UNITS) {
            STORE_B32X4(to + i * PRODUCERS * 16, u[i][0], u[i][1], u[i][2], u[i][3]);
            if (TWINS > 0 && twin != to)
                STORE_B32X4(twin + i * PRODUCERS * 16, u[i][0], u[i][1], u[i][2], u[i][3]);
        }
    return p;
}

/* All stages of the work-group's bands; more: of a band beside one for each row of the output. */
DEVICE void load_bands(struct pipeline p, UINT32 rows, GLOBAL const T *gB, VIEW vB, VIEW eTaps, VIEW eIn,
                       VIEW eOut, VIEW vPad, VIEW vBands, int begin, int end, int more)
{
    const int height = (int)eOut.s5, x0 = -(int)vPad.s6 - (int)vBands.s5;
    const int bands = divided(end - 1, (INT64)vBands.s3) - divided(begin, (INT64)vBands.s3) + 1;
    const int total = end - begin + bands * more;
    struct band b = band_of(begin, end, vBands, height);
    struct pipeline filled = p;
    int at = begin, s = 0;

    for (int i = 0; i < total + LAG; i++) {
        if (i < total) {
            const int left = (int)eOut.s6 - b.strip * STRIP;

            p = load_stage(p, rows, gB, vB, eIn, b.n, (b.h + s) * STRIDE - (int)vPad.s5,
                           x0 + b.strip * STRIP * STRIDE, (left < STRIP ? left : STRIP) + UNITS - 1,
                           (int)eTaps.s3);
            p = pipe_next(p, STAGES);
            if (++s == b.count + more) {
                at += b.count;
                b = band_of(at, end, vBands, height);
                s = 0;
            }
        }
        copies_commit();
        if (i >= LAG) {
            COPIES_WAIT(LAG);
            fence_async_proxy();
            warp_meet();
            if (LOCAL_ID() % 32 == 0)
                barrier_arrive(pipe_full(filled));
            filled = pipe_next(filled, STAGES);
        }
    }
}

/* The stages of a band that a warpgroup has waited for, and those that it has released; how many. */
struct passage { struct pipeline read, done; int seen, passed; };

DEVICE void pass_to(struct passage *p, int passed, int seen)
{
    for (; p->passed < passed; p->passed++) {
        if (p->seen == p->passed) {
            consumer_wait(p->read);
            p->read = pipe_next(p->read, STAGES);
            p->seen++;
        }
        if (LOCAL_ID() % 128 == 0)
            consumer_release(p->done);
        p->done = pipe_next(p->done, STAGES);
    }
    for (; p->seen < seen; p->seen++) {
        consumer_wait(p->read);
        p->read = pipe_next(p->read, STAGES);
    }
}
