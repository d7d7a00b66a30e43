/* cl/atoms/nvidia/stream.h - vectors of 16 bytes that a work-item copies for itself, some stages ahead
 *
 * The names of cl/tile/stream.h, by cp.async (sm_80).  A work-item reads what it copied itself: no barrier is
 * needed.
 *
 * Takes  STREAM_VECTORS; ITEMS STAGES; T TYPE OF() (cl/types.h); COPY_ASYNC16_ONCE copies_commit()
 *        COPIES_WAIT (cp_async.h); LOWER_1 ... (memory.h)
 */
#define STREAM_STAGES STAGES
#define STREAM_STAGE  (16 * ITEMS * STREAM_VECTORS)     /* bytes */
#define STREAM_BYTES  (STAGES * STREAM_STAGE)

/* first: the work-item's first vector; where the next stage is fetched to, and which is the oldest. */
struct stream { UINT32 first, to, from; };

DEVICE void stream_begin(struct stream *s, LOCAL unsigned char *room)
{
    s->first = LOCAL_ADDRESS(room) + 16 * LOCAL_ID();
    s->to = s->from = s->first;
}

DEVICE UINT32 stream_after(const struct stream *s, UINT32 at)
{
    return at + STREAM_STAGE == s->first + STREAM_BYTES ? s->first : at + STREAM_STAGE;
}

DEVICE void stream_fetch(const struct stream *s, int i, GLOBAL const T *p, int go)
{
    COPY_ASYNC16_ONCE(s->to + i * (16 * ITEMS), p, go ? 16 : 0);
}

DEVICE void stream_commit(struct stream *s)
{
    copies_commit();
    s->to = stream_after(s, s->to);
}

DEVICE void stream_wait(const struct stream *s)
{
    COPIES_WAIT(STAGES - 1);
}

DEVICE void stream_next(struct stream *s)
{
    s->from = stream_after(s, s->from);
}

DEVICE void stream_end(const struct stream *s)
{
    COPIES_WAIT(0);
}

DEVICE void stream_values(R *r, const struct stream *s, int i)
{
    const UINT32 at = s->from + i * (16 * ITEMS);

#if TYPE == TYPE_F64
    LOAD_F64(r[0], at);
    LOAD_F64(r[1], at + 8);
#else
    UINT32 w[4];

    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(at));
    UNROLL for (int e = 0; e < 4; e++) {
#if TYPE == TYPE_F32
        r[e] = BITS_FLOAT(w[e]);
#else
        r[2 * e]     = OF(LOWER, TYPE)(w[e]);
        r[2 * e + 1] = OF(UPPER, TYPE)(w[e]);
#endif
    }
#endif
}
