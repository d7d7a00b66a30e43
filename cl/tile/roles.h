/* cl/tile/roles.h - which warps of a work-group multiply and which one copies
 *
 * The first 4 WARPGROUPS warps consume.  One lane of the next warp produces; where consumers need more
 * registers than their share, it belongs to a warpgroup of its own, which gives up most of its registers.
 *
 * Takes: WARPGROUPS; ROLE_LEAST, ROLE_WORKS; ROLE_TEAMS, of which each has as many, if not 1;
 *        atoms/nvidia/warp.h.
 * Gives: ROLE_WARPS, ROLE_EPILOGUE, role_give_registers(), role_take_registers().
 */
#define ROLE_WARPS (4 * WARPGROUPS)             /* that consume; the number of the warp that produces */

/* An epilogue that needs registers of its own: an activation computes as many elements at a time as find
 * room, and waits for each of its instructions where they are few. */
#define ROLE_EPILOGUE (RESIDUAL > SAME_COLUMNS || ACT > ACT_RELU)

/* What two, three or four warpgroups of consumers can have of the 64 Ki registers of a compute unit. */
#ifndef ROLE_TEAMS
#define ROLE_TEAMS 1
#endif
#if WARPGROUPS * ROLE_TEAMS == 4
#define ROLE_FEW   32
#define ROLE_MANY  112
#elif WARPGROUPS == 3
#define ROLE_FEW   24
#define ROLE_MANY  160
#elif ROLE_LEAST                                /* a producer that needs few */
#define ROLE_FEW   24
#define ROLE_MANY  240
#elif ROLE_WORKS                                /* whose other warps work on what it has loaded */
#define ROLE_FEW   72
#define ROLE_MANY  216
#else
#define ROLE_FEW   40
#define ROLE_MANY  232
#endif

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
