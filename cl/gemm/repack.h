/* cl/gemm/repack.h - repacks an unaligned matrix of 16-bit elements while the GEMM that reads it goes on
 *
 * TMA needs rows that begin at multiples of 16 bytes (cl/gemm/padded.cl).  REPACK_WARPS warps of each
 * work-group, that neither multiply nor load, take units of 16 rows x 512 elements, the next of all from a
 * counter that all work-groups share: nobody waits for a work-group that may not be resident.  Units come in
 * the order in which tiles need them:
 *
 *     phase 0, what the first tiles of all work-groups read:   the first `chunk` of K, of both operands
 *                                                               the next `chunk` of K ...
 *     phase 1, all the rest:                                    the same
 *
 * so that products of one chunk overlap with copies of the next.  A strip has 512 of M (N).  The producer of
 * a tile waits until all units of a chunk are counted.  The last work-group sets the counters to zero.
 *
 * A unit goes through local memory, 4 rows at a time with the next 4 in flight: 16-byte vectors wherever they
 * begin, of which a lane then stores those that it finds up to 7 elements further.
 *
 * Takes: MN_MAJOR_A, MN_MAJOR_B; atoms/nvidia/cp_async.h, warp.h, memory.h.
 * Gives: REPACK_*, struct repack, struct repacked, struct unit, repack_*().
 */
#define REPACK_CHUNKS   32                      /* at most */
#define REPACK_NEXT     0                       /* counters: the next unit, */
#define REPACK_LEFT     1                       /* work-groups that are done, */
#define REPACK_DONE     2                       /* and units that are done, of each phase and chunk */
#define REPACK_COUNTERS (REPACK_DONE + 2 * REPACK_CHUNKS)
#define REPACK_STRIP    512
#define REPACK_UNIT     16                      /* rows of a unit, */
#define REPACK_ROWS     4                       /* of what is in flight at once, */
#define REPACK_WIDE     65                      /* each with so many 16-byte vectors */
#define REPACK_WARPS    3
#define REPACK_ROOM     (2 * REPACK_ROWS * REPACK_WIDE)     /* of a warp, in vectors */

/* strips_a, strips_b: of each operand, 0 where it is aligned; first_a, first_b: those of phase 0. */
struct repack { int strips_a, strips_b, first_a, first_b, chunk, chunks; };

/* An operand: as it is, and repacked; ld, pitch: from one row to the next. */
struct repacked { GLOBAL const T *from; INDEX ld; GLOBAL T *to; INDEX pitch; };

/* What is left of a unit: `count` rows of `wide` elements; end: of the matrix; done: the counter of its
 * chunk. */
struct unit { GLOBAL const T *from; INDEX ld; GLOBAL T *to; INDEX pitch; UINT64 end; int count, wide, done; };

/* Units of a chunk in a phase. */
DEVICE int repack_units(struct repack r, int phase)
{
    const int strips = phase ? r.strips_a - r.first_a + r.strips_b - r.first_b : r.first_a + r.first_b;

    return strips * (r.chunk / REPACK_UNIT);
}

/* Unit number `unit`. */
DEVICE struct unit repack_unit(int unit, struct repack r, struct repacked a, struct repacked b, int M,
                               int N, int K)
{
    const int first = repack_units(r, 0), rest = repack_units(r, 1), each = r.chunk / REPACK_UNIT;
    const int phase = unit >= first * r.chunks, in_phase = unit - phase * first * r.chunks;
    const int chunk = in_phase / (phase ? rest : first), in_chunk = in_phase - chunk * (phase ? rest : first);
    const int of_a = phase ? r.strips_a - r.first_a : r.first_a;
    const int strip = in_chunk / each, id = in_chunk - strip * each;
    const int is_a = strip < of_a, mn_major = is_a ? MN_MAJOR_A : MN_MAJOR_B, mn = is_a ? M : N;
    const int mn0 = (is_a ? strip + phase * r.first_a : strip - of_a + phase * r.first_b) * REPACK_STRIP;
    const int row = mn_major ? chunk * r.chunk + id * REPACK_UNIT
                             : mn0 + id % (REPACK_STRIP / REPACK_UNIT) * REPACK_UNIT;
    const int col = mn_major ? mn0 : chunk * r.chunk + id / (REPACK_STRIP / REPACK_UNIT) * 512;
    const int rows = mn_major ? K : mn, width = mn_major ? mn : K;
    const struct repacked x = is_a ? a : b;
    const struct unit u = { x.from + row * x.ld + col, x.ld, x.to + row * x.pitch + col, x.pitch,
                            (UINT64)(x.from + (rows - 1) * x.ld + width),
                            rows - row < REPACK_UNIT ? rows - row : REPACK_UNIT,
                            width - col < 512 ? width - col : 512,
                            REPACK_DONE + phase * REPACK_CHUNKS + chunk };

    return u;
}

/* Starts copying the next rows of a unit, each from a multiple of 16 bytes on; nothing from behind the
 * matrix. */
DEVICE void repack_load(LOCAL uint4 *room, struct unit u, int lane)
{
    UNROLL for (int i = 0; i < REPACK_ROWS; i++) {
        const UINT64 first = (UINT64)(u.from + i * u.ld) & ~(UINT64)15;
        const UINT64 last = i < u.count && u.wide > 0 ? (UINT64)(u.from + i * u.ld + u.wide) : 0;
        const unsigned int to = LOCAL_ADDRESS(room + i * REPACK_WIDE);

        UNROLL for (int h = 0; h < 3; h++) {
            const UINT64 at = first + (h * 32 + lane) * 16;

            if (at < last && (h < 2 || lane == 0))
                COPY_ASYNC16_PART(to + (h * 32 + lane) * 16, at, u.end - at < 16 ? (int)(u.end - at) : 16);
        }
    }
    copies_commit();
}

/* Stores the rows before the last that were started. */
DEVICE void repack_store(LOCAL const uint4 *room, struct unit u, int lane)
{
    COPIES_WAIT(1);
    warp_meet();
    UNROLL for (int i = 0; i < REPACK_ROWS; i++) {
        const int by = (int)((UINT64)(u.from + i * u.ld) / 2 % 8);

        UNROLL for (int h = 0; h < 2; h++) {
            const int at = h * 32 + lane;
            const uint4 low = room[i * REPACK_WIDE + at], high = room[i * REPACK_WIDE + at + 1];
            UINT32 w[8] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };

            shift_words(w, by);
            store16(u.to + i * u.pitch + at * 8, w, i < u.count && at * 8 < u.wide);
        }
    }
    warp_meet();                                /* room may be written again */
}

/* The number of the next unit of all, for lane 0. */
DEVICE int repack_take(GLOBAL int *counters, int lane)
{
    return lane == 0 ? ATOMIC_ADD(counters + REPACK_NEXT, 1) : 0;
}

/* A unit of a chunk is complete. */
DEVICE void repack_done(GLOBAL int *counters, int done, int lane)
{
    copies_follow_writes();
    warp_meet();
    if (lane == 0)
        count_release(counters + done, 1);
}

/* Stores the rows in `room`, while the next are loaded to `next_room`: of this unit or of the next.  After
 * the last unit there are none, and nothing is copied. */
#define REPACK_STEP(room, next_room)                                                    \
    do {                                                                                \
        const int ends = here.count <= REPACK_ROWS;                                     \
        struct unit next = here;                                                        \
                                                                                        \
        next.from += REPACK_ROWS * here.ld;                                             \
        next.to += REPACK_ROWS * here.pitch;                                            \
        next.count -= REPACK_ROWS;                                                      \
        if (ends) {                                                                     \
            unit = (int)from_lane((UINT32)taken, 0);                                    \
            taken = repack_take(counters, lane);                                        \
            if (unit < units)                                                           \
                next = repack_unit(unit, r, a, b, M, N, K);                             \
        }                                                                               \
        repack_load(next_room, next, lane);                                             \
        repack_store(room, here, lane);                                                 \
        if (ends)                                                                       \
            repack_done(counters, here.done, lane);                                     \
        here = next;                                                                    \
    } while (0)

/* A warp, with REPACK_ROOM of local memory: units until there are no more. */
DEVICE void repack_all(LOCAL uint4 *room, GLOBAL int *counters, struct repack r, struct repacked a,
                       struct repacked b, int M, int N, int K, int lane)
{
    LOCAL uint4 *const even = room, *const odd = room + REPACK_ROWS * REPACK_WIDE;
    const int units = (repack_units(r, 0) + repack_units(r, 1)) * r.chunks;
    int taken = repack_take(counters, lane), unit = (int)from_lane((UINT32)taken, 0);

    if (unit < units) {
        struct unit here = repack_unit(unit, r, a, b, M, N, K);

        taken = repack_take(counters, lane);
        repack_load(even, here, lane);
        while (unit < units) {
            REPACK_STEP(even, odd);
            if (unit < units)
                REPACK_STEP(odd, even);
        }
    }
}

/* The producer: waits for the chunk of K at k0, of the phases that a tile needs which ends before m, n.
 * seen: how many chunks of each phase are known to be complete. */
DEVICE void repack_wait(GLOBAL const int *counters, struct repack r, int m, int n, int k0, int *seen)
{
    const int phases = (r.first_a == r.strips_a || m <= r.first_a * REPACK_STRIP) &&
                       (r.first_b == r.strips_b || n <= r.first_b * REPACK_STRIP) ? 1 : 2;
    const int chunk = k0 / r.chunk;

    for (int phase = 0; phase < phases; phase++) {
        const int units = repack_units(r, phase);

        if (chunk < seen[phase] || units == 0)
            continue;
        while (load_acquire(counters + REPACK_DONE + phase * REPACK_CHUNKS + chunk) < units)
            ;
        seen[phase] = chunk + 1;
        copies_follow_writes();
    }
}

/* All work-items of a work-group, at the end of its kernel. */
DEVICE void repack_end(GLOBAL int *counters, int groups)
{
    BARRIER();
    if (LOCAL_ID() == 0 && ATOMIC_ADD(counters + REPACK_LEFT, 1) == groups - 1)
        for (int i = 0; i < REPACK_COUNTERS; i++)           /* nobody counts any more */
            counters[i] = 0;
}
