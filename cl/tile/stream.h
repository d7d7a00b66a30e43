/* cl/tile/stream.h - vectors of 16 bytes that a work-item reads for itself, in words alone: into registers
 *
 * atoms/nvidia/stream.h gives the same names, and copies that run while others are used.
 *
 * Takes  STREAM_VECTORS, of a work-item in a stage; READ_VECTOR VECTOR_RUN (lanes.h)
 * Gives  STREAM_STAGES, in flight at most; STREAM_BYTES, of local memory, that they take; struct stream,
 *        stream_begin(); stream_fetch(), of vector i, or zeros unless `go`; stream_commit(), when all of a
 *        stage were fetched; stream_wait(), until the oldest stage is there; stream_values(), its vector i;
 *        stream_next(), when it was used; stream_end(), before its local memory has another use
 */
#define STREAM_STAGES 1
#define STREAM_BYTES  0

struct stream { R r[STREAM_VECTORS][VECTOR_RUN]; };

#define stream_begin(s, room)  ((void)(s))
#define stream_commit(s)       ((void)(s))
#define stream_wait(s)         ((void)(s))
#define stream_next(s)         ((void)(s))
#define stream_end(s)          ((void)(s))

DEVICE void stream_fetch(struct stream *s, int i, GLOBAL const T *p, int go)
{
    UNROLL for (int e = 0; e < VECTOR_RUN; e++)
        s->r[i][e] = ZERO;
    if (go)
        READ_VECTOR(s->r[i], p);
}

DEVICE void stream_values(R *r, const struct stream *s, int i)
{
    UNROLL for (int e = 0; e < VECTOR_RUN; e++)
        r[e] = s->r[i][e];
}
