/* cl/tile/roles.h - which warps of a work-group multiply and which one copies
 *
 * The first 4 WARPGROUPS warps consume.  One lane of the next warp produces; where consumers need more
 * registers than their share, it belongs to a warpgroup of its own, which gives up most of its registers.
 *
 * Takes: WARPGROUPS; ROLE_LEAST, ROLE_WORKS; TEAMS, of which each has as many, and TENANTS, work-groups of a
 *        compute unit, where a kernel has them; atoms/nvidia/warp.h.
 * Gives: ROLE_WARPS, ROLE_EPILOGUE, role_give_registers(), role_take_registers().
 */
#define ROLE_WARPS (4 * WARPGROUPS)             /* that consume; the number of the warp that produces */

/* An epilogue that needs registers of its own: an activation computes as many elements at a time as find
 * room, and waits for each of its instructions where they are few. */
#define ROLE_EPILOGUE (RESIDUAL > SAME_COLUMNS || ACT > ACT_RELU)

/* A compute unit has 64 Ki registers, and as many tenants.  Each work-item begins with a multiple of 8; a
 * warpgroup that produces keeps ROLE_FEW, and the consumers share the rest. */
#ifdef TEAMS
#define ROLE_TEAMS TEAMS
#else
#define ROLE_TEAMS 1
#endif
#ifdef TENANTS
#define ROLE_TENANTS TENANTS
#else
#define ROLE_TENANTS 1
#endif
#define ROLE_CONSUMERS (WARPGROUPS * ROLE_TEAMS)        /* warpgroups */
#if ROLE_WORKS                                  /* its other warps work on what it has loaded */
#define ROLE_FEW   72
#elif ROLE_CONSUMERS == 4
#define ROLE_FEW   32
#elif ROLE_CONSUMERS == 3 || ROLE_TENANTS > 1 || ROLE_LEAST      /* it needs few */
#define ROLE_FEW   24
#else
#define ROLE_FEW   40
#endif
#define ROLE_SHARE (512 / (ROLE_TENANTS * (ROLE_CONSUMERS + 1)) / 8 * 8)
#define ROLE_REST  ((ROLE_SHARE * (ROLE_CONSUMERS + 1) - ROLE_FEW) / ROLE_CONSUMERS / 8 * 8)
#define ROLE_MANY  (ROLE_REST < 240 ? ROLE_REST : 240)  /* a work-item can have 255 */

/* move, a constant: 0 where there are registers enough for all. */
DEVICE void role_give_registers(const int move)
{
    if (move)
        REGISTERS_DROP(ROLE_FEW);
}

DEVICE void role_take_registers(const int move)
{
    if (move)
        REGISTERS_TAKE(ROLE_MANY);
}
