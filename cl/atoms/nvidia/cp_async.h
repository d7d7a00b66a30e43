/* cl/atoms/nvidia/cp_async.h - asynchronous copies to local memory by work-items, and their stages (sm_80)
 *
 * Takes: STAGES, for NEXT_STAGE().
 * Source: the PTX ISA manual, section on cp.async.
 */
/* Moves on to the next of STAGES stages; the phase changes each time that all have been used.  No
 * division. */
#define NEXT_STAGE(s, phase)                \
    do {                                    \
        if (++(s) == STAGES) {              \
            (s) = 0;                        \
            (phase) ^= 1;                   \
        }                                   \
    } while (0)

/* 4, 8 or 16 bytes if `go` is not 0; else nothing is read, and `from` may be any address */
#define COPY_ASYNC_IF(go, bytes, to, from) \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async." COPY_CACHE_##bytes \
                 ".shared.global.L2::128B " \
                 "[%0], [%1], " #bytes "; }" \
                 :: "r"(to), "l"((unsigned INT64)(from)), "r"((int)(go)) : "memory")
#define COPY_CACHE_4  "ca"
#define COPY_CACHE_8  "ca"
#define COPY_CACHE_16 "cg"

/* 16 bytes; or the first `there` of them, followed by zeros */
#define COPY_ASYNC16(to, from) \
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" \
                 :: "r"(to), "l"((unsigned INT64)(from)) : "memory")
#define COPY_ASYNC16_PART(to, from, there) \
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" \
                 :: "r"(to), "l"((unsigned INT64)(from)), "r"(there) : "memory")
/* the same with 4 or 8 bytes */
#define COPY_ASYNC_PART_(bytes, to, from, there) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], " #bytes ", %2;" \
                 :: "r"(to), "l"((unsigned INT64)(from)), "r"(there) : "memory")
#define COPY_ASYNC_PART(bytes, to, from, there) COPY_ASYNC_PART_(bytes, to, from, there)

/* 4 or 8 bytes if `go` is not 0, else as many zeros: a quarter of the instructions of COPY_ASYNC_PART() */
#define COPY_ASYNC_OR_ZEROS_(bytes, to, from, go) \
    asm volatile("{ .reg .pred p; setp.eq.b32 p, %2, 0; " \
                 "cp.async.ca.shared.global [%0], [%1], " #bytes ", p; }" \
                 :: "r"(to), "l"((unsigned INT64)(from)), "r"((int)(go)) : "memory")
#define COPY_ASYNC_OR_ZEROS(bytes, to, from, go) COPY_ASYNC_OR_ZEROS_(bytes, to, from, go)

/* 16 bytes, or none, of data that is read once: L2 may fetch the 256 bytes around them */
#define COPY_ASYNC16_ONCE(to, from, there) \
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" \
                 :: "r"(to), "l"((unsigned INT64)(from)), "r"(there) : "memory")

DEVICE void copies_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `open` of the work-item's groups are in flight. */
#define COPIES_WAIT(open) asm volatile("cp.async.wait_group %0;" :: "n"(open) : "memory")
