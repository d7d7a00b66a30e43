/* cl/tile/mainloop.h - the sum over slices of 16-bit operands that a kernel copies a vector at a time
 *
 * The kernel says what the copies of a work-item are, as macros with a vector's number i, a constant:
 *
 *     NEXT_SLICE()        before those of a slice
 *     COPY_A(i)           copy_vector(COPY_TO_A(i), ...), for i below COPIES_A
 *     COPY_B(i)           likewise of B
 *     MULTIPLY_SLICES(d, stages, m, n, slices)
 *
 * and what lies past the last slice is copied as zeros.  Copies are spread over the products of the first
 * step of a slice, into the stage that was read before; A's fragments of the next step are loaded ahead, and
 * B's again as soon as they are used.  Whole or not, all slices are copied alike.
 *
 * Takes: fragment.h, slices.h, stages.h, COPIES_A COPIES_B of async_operand.h; cp_async.h and mma.h of
 *        atoms/nvidia.
 * Gives: APART_A APART_B, rows from copy to copy of a work-item; COPY_TO_A() COPY_TO_B(), bytes_left()
 *        copy_vector() MULTIPLY_SLICES()
 */
#define APART_A (ITEMS / VECS_A)
#define APART_B (ITEMS / VECS_B)

/* Bytes of a vector of which so many elements are left. */
DEVICE int bytes_left(int left)
{
    return left <= 0 ? 0 : left < VEC ? left * T_BYTES : 16;
}

/* A vector, or as many of its bytes as there are, and zeros; from any address if there are none. */
DEVICE void copy_vector(unsigned int to, GLOBAL const T *g, INDEX at, int bytes)
{
    COPY_ASYNC16_PART(to, g + (bytes ? at : 0), bytes);
}

/* The byte in an operand's slice that a work-item's first vector is copied to. */
DEVICE unsigned int first_copy(int mn_major, int vecs)
{
    const unsigned int row = ITEM / vecs, vec = ITEM % vecs;

    return (row * vecs + (vec ^ swizzle(mn_major, vecs, row))) * 16;
}

/* Where its i-th is. */
#define COPY_TO_OF(first, mn_major, vecs, i, apart)                                                     \
    (there_ + ((first) ^ swizzle(mn_major, vecs, (i) * (apart)) << 4) + (i) * ITEMS * 16)
#define COPY_TO_A(i) COPY_TO_OF(to_a_, MN_MAJOR_A, VECS_A, i, APART_A)
#define COPY_TO_B(i) COPY_TO_OF(to_b_, MN_MAJOR_B, VECS_B, i, APART_B)

#define STAGE_AFTER_(at, stages) ((at) == (stages) + (STAGES - 1) * STAGE ? (stages) : (at) + STAGE)
#define COPIES_DUE_(u)           ((u) * (COPIES_A + COPIES_B) / LOADS_N)
#define COPY_(i)                                                                                        \
    do {                                                                                                \
        if ((i) < COPIES_A)                                                                             \
            COPY_A(i);                                                                                  \
        else                                                                                            \
            COPY_B((i) - COPIES_A);                                                                     \
    } while (0)
#define LOAD_A_(buffer, step)                                                                           \
    UNROLL for (int u_ = 0; u_ < BLOCKS_M / LOADED_A; u_++)                                             \
        LOAD_FRAGMENT(a_[buffer], MN_MAJOR_A, VECS_A, here_ + start_a_, u_, step, 0)
#define LOAD_B_(u, step) LOAD_FRAGMENT(b_, MN_MAJOR_B, VECS_B, here_ + start_b_, u, step, 1)

/* d: BLOCKS_M x BLOCKS_N accumulators of a lane; stages: where they begin in local memory; m, n: where the
 * warp's tile begins in that of the work-group. */
#define MULTIPLY_SLICES(d, stages, m, n, slices)                                                        \
    do {                                                                                                \
        const unsigned int start_a_ = part_start(MN_MAJOR_A, VECS_A, m, 0);                             \
        const unsigned int start_b_ = part_start(MN_MAJOR_B, VECS_B, n, 1) + BYTES_A;                   \
        const unsigned int to_a_ = first_copy(MN_MAJOR_A, VECS_A);                                      \
        const unsigned int to_b_ = first_copy(MN_MAJOR_B, VECS_B) + BYTES_A;                            \
        unsigned int here_ = stages, there_ = stages;   /* the stages that are read and written */      \
        FRAGMENT a_[BUFFERS_A][BLOCKS_M][FRAGMENT_REGS], b_[BLOCKS_N][FRAGMENT_REGS];                   \
                                                                                                        \
        UNROLL for (int i_ = 0; i_ < BLOCKS_M; i_++)                                                    \
        UNROLL for (int j_ = 0; j_ < BLOCKS_N; j_++)                                                    \
            (d)[i_][j_][0] = (d)[i_][j_][1] = ZERO;                                                     \
        NO_UNROLL for (int i_ = 0; i_ < STAGES - 1; i_++) {                                             \
            NEXT_SLICE();                                                                               \
            UNROLL for (int j_ = 0; j_ < COPIES_A + COPIES_B; j_++)                                     \
                COPY_(j_);                                                                              \
            copies_commit();                                                                            \
            there_ = STAGE_AFTER_(there_, stages);                                                      \
        }                                                                                               \
        COPIES_WAIT(STAGES - 2);                                                                        \
        BARRIER();                                                                                      \
        LOAD_A_(0, 0);                                                                                  \
        UNROLL for (int j_ = 0; j_ < LOADS_N; j_++)                                                     \
            LOAD_B_(j_, 0);                                                                             \
                                                                                                        \
        NO_UNROLL for (int slice_ = 0; slice_ < (slices); slice_++) {                                   \
            UNROLL for (int step_ = 0; step_ < STEPS; step_++) {                                        \
                if (step_ == STEPS - 1) {       /* the next has arrived for all; this one is read */    \
                    COPIES_WAIT(STAGES - 2);                                                            \
                    BARRIER();                                                                          \
                    here_ = STAGE_AFTER_(here_, stages);                                                \
                }                                                                                       \
                if (step_ == 0)                                                                         \
                    NEXT_SLICE();                                                                       \
                LOAD_A_((step_ + 1) % BUFFERS_A, (step_ + 1) % STEPS);                                  \
                UNROLL for (int j_ = 0; j_ < LOADS_N; j_++) {                                           \
                    if (step_ == 0)                                                                     \
                        UNROLL for (int c_ = COPIES_DUE_(j_); c_ < COPIES_DUE_(j_ + 1); c_++)           \
                            COPY_(c_);                                                                  \
                    UNROLL for (int n_ = j_ * LOADED_B; n_ < (j_ + 1) * LOADED_B; n_++)                 \
                        MULTIPLY_BLOCK(d, a_[step_ % BUFFERS_A], b_, n_, BLOCKS_M);                     \
                    LOAD_B_(j_, (step_ + 1) % STEPS);                                                   \
                }                                                                                       \
                if (step_ == 0) {                                                                       \
                    copies_commit();                                                                    \
                    there_ = STAGE_AFTER_(there_, stages);                                              \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
        COPIES_WAIT(0);                         /* zeros past the end */                                \
    } while (0)
