/* cl/gemm/pad.h - lays a matrix of 16-bit numbers apart while the product of it goes on
 *
 * The copy engine needs lines that begin at multiples of 16 bytes (pad.cl).  Warps that neither multiply nor start
 * copies take units of 16 lines x 512 numbers, whichever is next, from one counter for all work-groups:
 * nobody waits for a work-group that may not run yet.  Units come in the order in which tiles need them:
 *
 *     phase 0, what the first tiles of all work-groups read:   the first `chunk` of K, of both operands
 *                                                               the next `chunk` of K ...
 *     phase 1, all the rest:                                    the same
 *
 * so that products of one chunk and copies of the next go on together.  A strip has 512 of M (N).
 * Who starts a tile's copies waits until all units of a chunk are counted; the last work-group sets the counters
 * to zero.
 *
 * A unit goes through local memory, 4 lines at a time, with the next 4 under way: 16 bytes wherever they lie, of
 * which an item then stores those that it finds up to 7 numbers further.
 *
 * Learnt on an H100, 4095 squared, where 49 us of 251 laid operands apart beforehand: 214 us so.  There are registers
 * for three such warps only, so what each has under way counts: with lines in registers it took 264 us;
 * with numbers one by one at the matrix's end, and told after every 8 lines, 243.
 * The copy engine itself cannot do it: a box that begins in a line at no multiple of 16 bytes is an illegal instruction.
 */
#define PAD_CHUNKS   32                         /* at most */
#define PAD_NEXT     0                          /* counters: the next unit, */
#define PAD_LEFT     1                          /* work-groups that are done, */
#define PAD_DONE     2                          /* and units that are done, of each phase and chunk */
#define PAD_COUNTERS (PAD_DONE + 2 * PAD_CHUNKS)
#define STRIP        512
#define UNIT         16                         /* lines of a unit, */
#define PIECE        4                          /* of what is under way at once, */
#define PIECE_WIDE   65                         /* each with so many times 16 bytes */
#define PAD_WARPS    3
#define PAD_ROOM     (PAD_WARPS * 2 * PIECE * PIECE_WIDE)

/* strips_a, strips_b: of each operand, 0 where it lies as it should; first_a, first_b: those of phase 0. */
struct pads { int strips_a, strips_b, first_a, first_b, chunk, chunks; };

/* The phases that must be there for a tile that ends before m, n. */
DEVICE int phases_for(struct pads p, int m, int n)
{
    return (p.first_a == p.strips_a || m <= p.first_a * STRIP) &&
           (p.first_b == p.strips_b || n <= p.first_b * STRIP) ? 1 : 2;
}

/* Units of a chunk in a phase. */
DEVICE int units_of(struct pads p, int phase)
{
    const int strips = phase ? p.strips_a - p.first_a + p.strips_b - p.first_b : p.first_a + p.first_b;

    return strips * (p.chunk / UNIT);
}

/* An operand: as it lies, and as it is laid apart. */
struct operand { GLOBAL const T *from; INDEX ld; GLOBAL T *to; INDEX pitch; };

/* The next PIECE of `count` lines, of `wide` numbers; end: of the matrix; done: the counter of its chunk. */
struct piece { GLOBAL const T *from; INDEX ld; GLOBAL T *to; INDEX pitch; UINT64 end; int count, wide, done; };

/* A unit, all its lines. */
DEVICE struct piece unit_of(struct operand x, int lines, int width, int line, int col, int done)
{
    struct piece p = { x.from + line * x.ld + col, x.ld, x.to + line * x.pitch + col, x.pitch,
                       (UINT64)(x.from + (lines - 1) * x.ld + width),
                       lines - line < UNIT ? lines - line : UNIT, width - col < 512 ? width - col : 512, done };

    return p;
}

DEVICE struct piece piece_after(struct piece p)
{
    p.from += PIECE * p.ld;
    p.to += PIECE * p.pitch;
    p.count -= PIECE;
    return p;
}

/* Starts copying a piece to `room`, each line from a multiple of 16 bytes on; nothing from behind the matrix. */
DEVICE void load_piece(LOCAL uint4 *room, struct piece p, int lane)
{
    UNROLL for (int i = 0; i < PIECE; i++) {
        const UINT64 first = (UINT64)(p.from + i * p.ld) & ~(UINT64)15;
        const UINT64 last = i < p.count && p.wide > 0 ? (UINT64)(p.from + i * p.ld + p.wide) : 0;
        const unsigned int to = LOCAL_ADDRESS(room + i * PIECE_WIDE);

        UNROLL for (int h = 0; h < 3; h++) {
            const UINT64 at = first + (h * 32 + lane) * 16;

            if (at < last && (h < 2 || lane == 0))
                COPY_ASYNC16_PART(to + (h * 32 + lane) * 16, at, p.end - at < 16 ? (int)(p.end - at) : 16);
        }
    }
    copies_commit();
}

/* The one before the last that was started. */
DEVICE void store_piece(LOCAL const uint4 *room, struct piece p, int lane)
{
    COPIES_WAIT(1);
    warp_meet();
    UNROLL for (int i = 0; i < PIECE; i++) {
        const int by = (int)((UINT64)(p.from + i * p.ld) / 2 % 8);

        UNROLL for (int h = 0; h < 2; h++) {
            const int at = h * 32 + lane;
            const uint4 low = room[i * PIECE_WIDE + at], high = room[i * PIECE_WIDE + at + 1];
            UINT32 w[8] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };

            move_words(w, by);
            store16(p.to + i * p.pitch + at * 8, w, i < p.count && at * 8 < p.wide);
        }
    }
    warp_meet();                                /* room may be written again */
}

/* The next unit of all, for lane 0. */
DEVICE int take_unit(GLOBAL int *counters, int lane)
{
    return lane == 0 ? ATOMIC_ADD(counters + PAD_NEXT, 1) : 0;
}

/* A unit of a chunk is there. */
DEVICE void unit_done(GLOBAL int *counters, int done, int lane)
{
    copies_follow_writes();
    warp_meet();
    if (lane == 0)
        count_release(counters + done, 1);
}

/* Until the chunk of K at k0, of the phases that a tile needs, is there; seen: how many chunks of each are known to be. */
DEVICE void wait_for_pads(GLOBAL const int *counters, struct pads p, int phases, int k0, int *seen)
{
    const int chunk = k0 / p.chunk;

    for (int phase = 0; phase < phases; phase++) {
        const int units = units_of(p, phase);

        if (chunk < seen[phase] || units == 0)
            continue;
        while (load_acquire(counters + PAD_DONE + phase * PAD_CHUNKS + chunk) < units)
            ;
        seen[phase] = chunk + 1;
        copies_follow_writes();
    }
}
