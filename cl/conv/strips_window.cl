/* cl/conv/strips_window.cl - as cl/conv/strips.cl, NHWC on sm_90: TMA loads what a tile of strips reads
 *
 * A tile has STRIPS_H x STRIPS_W strips of THR_H x COLS pixels of the output, of LANES words of channels; a
 * work-item has a word of a strip.  One copy brings the window of the source that the strips of a tile need,
 * with zeros around the image, and the windows of other tiles arrive while one is read:
 *
 *     0 0 0 0 0 0 0 0
 *     0 x x x x x x x         STRIPS_W 2, COLS 3: strips of one row of pixels begin at columns 0 and 3 of the
 *     0 x x x x x x x         window, and share two columns of it
 *
 * A work-group has the same channels for all of its tiles, and keeps their filters in registers.  Those are
 * adjacent in memory, and come by way of local memory: read there by each lane, they would be many lines.
 *
 *     gIn vIn eIn    the source, with strides that TMA takes
 *     eOut           the output; s0 tiles down, s1 tiles across
 *     vW             the filter: s0 the start, s2 from there to tap 0, s5, s6 from tap to tap
 *     vPad           s5, s6; s0 work-groups with different channels; s1, s2 tiles down and across as prepared
 *                    divisors
 *
 * Parameters, from conv.tune: THR_H, COLS, STRIPS_H, STRIPS_W, LANES, STAGES, TENANTS.
 * Constants: DIRECTION, TAPS, STRIDE.
 */
#define WARPS       (STRIPS_H * STRIPS_W * LANES / 32)  /* that read windows; one more loads them */
#define ITEMS       (32 * WARPS + 32)
#define PITCH       STRIP_WIDE(STRIPS_W * COLS)
#define ROWS        STRIP_WIDE(STRIPS_H * THR_H)
#define WORDS       (ROWS * PITCH * LANES)
#define STAGE_WORDS ((WORDS + 31) / 32 * 32)            /* copies begin at multiples of 128 bytes */
#define FILTER      (LANES * STRIP_VEC * TAPS * TAPS)       /* elements */
#define FILTER_AT   (STAGES * STAGE_WORDS * 4)
#define MAP_AT      (FILTER_AT + (FILTER * T_BYTES + 127) / 128 * 128)

#if TYPE == TYPE_F32
#define SOURCE_TYPE (MAP_TYPE_F32 | MAP_FLAT)
#elif TYPE == TYPE_F16
#define SOURCE_TYPE (MAP_TYPE_F16 | MAP_FLAT)
#else
#define SOURCE_TYPE (MAP_TYPE_BF16 | MAP_FLAT)
#endif

LARGE_LOCAL(conv_strips_window, MAP_AT + MAP_BYTES)

/* By a warp. */
DEVICE void window_map(GLOBAL unsigned INT64 *map, LOCAL UINT32 *room, int lane, GLOBAL const T *g, VIEW v,
                       VIEW e)
{
    struct tensor_map m;

    m.address = (UINT64)(g + v.s0);
    m.type = SOURCE_TYPE;
    m.pixels = 0;
    m.box[0] = LANES * STRIP_VEC;
    m.box[1] = PITCH;
    m.box[2] = ROWS;
    m.box[3] = m.step[0] = m.step[1] = m.step[2] = m.step[3] = 1;
    image_map(map, room, lane, m, T_BYTES, v, e);
}

/* Where tile `at` is: its image, its first row and column of strips. */
struct place { int image, h, w; };

DEVICE struct place place_of(int at, VIEW eOut, VIEW vPad)
{
    const int row = divided(at, (INT64)vPad.s2), image = divided(row, (INT64)vPad.s1);
    const struct place p = { image, (row - image * (int)eOut.s0) * (STRIPS_H * THR_H),
                             (at - row * (int)eOut.s1) * (STRIPS_W * COLS) };

    return p;
}

KERNEL(ITEMS) void
conv_strips_window(int groups, int tiles, GLOBAL unsigned INT64 *gMaps, int first_map, int kept,
                   GLOBAL const T *RESTRICT gIn, VIEW vIn, VIEW eIn, GLOBAL const T *RESTRICT gW, VIEW vW,
                   VIEW eOut, VIEW vPad, R alpha, CONV_PARAMS)
{
    LARGE_LOCAL_ARRAY(room, MAP_AT + MAP_BYTES);
    LOCAL_ARRAY(unsigned INT64, barriers, PIPE_BARRIERS(STAGES + 1));

    const int lane = LOCAL_ID() % 32, warp = this_warp();
    const int blocks = (int)vPad.s0, turn = GROUP_ID(0) / blocks;
    const int c0 = (GROUP_ID(0) - turn * blocks) * (LANES * STRIP_VEC);
    const UINT32 windows = warp_uniform(LOCAL_ADDRESS(room));
    GLOBAL unsigned INT64 *const map = gMaps + first_map * MAP_WORDS;
    struct pipeline p = pipe_at(barriers, STAGES), filled = pipe_at(barriers + PIPE_BARRIERS(STAGES), 1);

    if (!kept && warp == WARPS)
        window_map(map, (LOCAL UINT32 *)(room + MAP_AT), lane, gIn, vIn, eIn);
    if (warp == 0 && lane == 0) {
        pipe_init(p, STAGES, WARPS);
        pipe_init(filled, 1, WARPS);
    }
    BARRIER();
    if (warp == WARPS) {
        if (is_elected()) {
            const int left = (int)eOut.s3 - c0, bytes = (left * (TAPS * TAPS) < FILTER ? left * (TAPS * TAPS)
                                                                                       : FILTER) * T_BYTES;

            producer_expect(filled, bytes);
            copy_bytes(windows + FILTER_AT, gW + vW.s0 + c0 * (TAPS * TAPS), bytes, pipe_full(filled));
            map_acquire(map);
            for (int at = turn; at < tiles; at += groups / blocks) {
                const struct place to = place_of(at, eOut, vPad);

                p = producer_acquire(p);
                producer_expect(p, WORDS * 4);
                copy_box_4d(windows + p.stage * (STAGE_WORDS * 4), map, c0,
                            (int)STRIP_FROM(to.w, (int)vPad.s6) + STRIP_LOW,
                            (int)STRIP_FROM(to.h, (int)vPad.s5) + STRIP_LOW, to.image, pipe_full(p));
                p = pipe_next(p, STAGES);
            }
        }
    } else {
        const int strip = LOCAL_ID() / LANES, down = strip / STRIPS_W, across = strip - down * STRIPS_W;
        const int word = LOCAL_ID() % LANES, c = c0 + word * STRIP_VEC;
        const int first = word * STRIP_VEC * (TAPS * TAPS) + (int)vW.s2;
        const struct output output = CONV_OUTPUT;
        LOCAL const UINT32 *const window = (LOCAL const UINT32 *)room + word +
                                           (down * STRIP_STEP(THR_H) * PITCH + across * STRIP_STEP(COLS)) *
                                           LANES;
        STRIP_V w[TAPS][TAPS];

        consumer_wait(filled);
        UNROLL for (int r = 0; r < TAPS; r++)
            UNROLL for (int s = 0; s < TAPS; s++)
                w[r][s] = strip_filter((LOCAL const T *)(room + FILTER_AT) + first + r * (int)vW.s5 +
                                       s * (int)vW.s6, TAPS * TAPS);
        for (int at = turn; at < tiles; at += groups / blocks) {
            const struct place to = place_of(at, eOut, vPad);
            const INDEX h0 = STRIP_TO(to.h + down * THR_H, (INDEX)vPad.s5);
            const INDEX w0 = STRIP_TO(to.w + across * COLS, (INDEX)vPad.s6);
            STRIP_V sum[THR_H][COLS];

            UNROLL for (int i = 0; i < THR_H; i++)
                UNROLL for (int j = 0; j < COLS; j++)
                    sum[i][j] = (STRIP_V)(ZERO);
            consumer_wait(p);
            UNROLL for (int y = STRIP_LOW; y <= STRIP_HIGH; y++) {
                STRIP_V v[STRIP_WIDTH];

                UNROLL for (int x = 0; x < STRIP_WIDTH; x++)
                    v[x] = strip_word(window + p.stage * STAGE_WORDS + ((y - STRIP_LOW) * PITCH + x) * LANES);
                if (y == STRIP_HIGH) {
                    warp_meet();
                    if (lane == 0)
                        consumer_release(p);
                }
                STRIP_ADD(sum, w, v, y, COLS)
                if (c < (int)eOut.s3)
                    strip_store(&output, gC, sum, y, alpha, vC, vR, vBias, eOut, to.image, c, h0, w0);
            }
            p = pipe_next(p, STAGES);
        }
    }
}
