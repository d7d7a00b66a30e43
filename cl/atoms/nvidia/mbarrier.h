/* cl/atoms/nvidia/mbarrier.h - barriers in local memory that count arrivals and bytes of copies (sm_90)
 *
 * Source: the PTX ISA manual, section on mbarrier.
 */
DEVICE void barrier_init(unsigned int at, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(arrivals) : "memory");
}

/* Makes the initialised barriers visible to TMA; work-items see them after BARRIER(). */
DEVICE void barrier_init_done(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEVICE void barrier_arrive(unsigned int at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
}

/* Arrives, and expects so many bytes of copies in this phase. */
DEVICE void barrier_arrive_expect(unsigned int at, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory");
}

/* Returns when the phase of this parity has completed: at once, for parity 1 of a barrier never used. */
DEVICE void barrier_wait(unsigned int at, int parity)
{
    unsigned int done = 0;

    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at), "r"(parity) : "memory");
}
