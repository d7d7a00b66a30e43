/* cl/tile/pipeline.h - stages in local memory that a producer fills and consumers read
 *
 * A stage has two barriers: `full`, at which the bytes of its copies arrive, and `empty`, at which consumers
 * arrive when they have read it.  Producer and consumers each go through the stages with a struct pipeline of
 * their own; a kernel may have several pipelines, with different numbers of stages.
 *
 *     producer                                         consumer
 *         p = producer_acquire(p);                         consumer_wait(p);
 *         producer_expect(p, bytes);                       ... reads stage p.stage
 *         ... copies to stage p.stage, at pipe_full(p)     consumer_release(p);
 *         p = pipe_next(p, STAGES);                        p = pipe_next(p, STAGES);
 *
 * Takes: atoms/nvidia/mbarrier.h, warp.h.
 * Gives: PIPE_BARRIERS, struct pipeline, pipe_*(), producer_*(), consumer_*().
 */
#define PIPE_BARRIERS(stages) (2 * (stages))    /* of 64 bits */

/* phase: 1 in every second pass through the stages; fresh: stages that were never filled. */
struct pipeline { UINT32 full, empty, stage, phase; int fresh; };

DEVICE struct pipeline pipe_at(LOCAL unsigned INT64 *barriers, const int stages)
{
    const UINT32 full = warp_uniform(LOCAL_ADDRESS(barriers));
    const struct pipeline p = { full, full + 8 * stages, 0, 0, stages };

    return p;
}

/* By one work-item, before a BARRIER(); producers: how many arrive when a stage is filled; consumers: when it
 * is read. */
DEVICE void pipe_init_for(struct pipeline p, const int stages, int producers, int consumers)
{
    for (int i = 0; i < stages; i++) {
        barrier_init(p.full + 8 * i, producers);
        barrier_init(p.empty + 8 * i, consumers);
    }
    barrier_init_done();
}

/* ... filled by the copies of one. */
DEVICE void pipe_init(struct pipeline p, const int stages, int consumers)
{
    pipe_init_for(p, stages, 1, consumers);
}

/* No division, which the number of stages would ask for. */
DEVICE struct pipeline pipe_next(struct pipeline p, const int stages)
{
    if (++p.stage == stages) {
        p.stage = 0;
        p.phase ^= 1;
    }
    return p;
}

/* Past `count` stages, which another consumer reads. */
DEVICE struct pipeline pipe_skip(struct pipeline p, int count, const int stages)
{
    const UINT32 to = p.stage + (UINT32)count, rounds = to / (UINT32)stages;

    p.stage = warp_uniform(to - rounds * (UINT32)stages);
    p.phase ^= rounds & 1;
    return p;
}

/* The stage before, of which nothing but the stage is known. */
DEVICE struct pipeline pipe_before(struct pipeline p, const int stages)
{
    p.stage = p.stage == 0 ? stages - 1 : p.stage - 1;
    return p;
}

/* The barrier at which the stage's copies arrive. */
DEVICE UINT32 pipe_full(struct pipeline p)
{
    return p.full + 8 * p.stage;
}

/* Waits until the consumers have read the stage. */
DEVICE struct pipeline producer_acquire(struct pipeline p)
{
    if (p.fresh > 0)
        p.fresh--;
    else
        barrier_wait(p.empty + 8 * p.stage, p.phase ^ 1);
    return p;
}

DEVICE void producer_expect(struct pipeline p, int bytes)
{
    barrier_arrive_expect(pipe_full(p), bytes);
}

/* Waits until the stage is filled. */
DEVICE void consumer_wait(struct pipeline p)
{
    barrier_wait(pipe_full(p), p.phase);
}

DEVICE void consumer_release(struct pipeline p)
{
    barrier_arrive(p.empty + 8 * p.stage);
}
