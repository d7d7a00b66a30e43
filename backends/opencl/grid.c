/* SPDX-License-Identifier: Apache-2.0
 *
 * grid.c - how the work-groups of a launch are enqueued: as a grid, or as a line.
 *
 * PoCL before 6.0 has a list of the functions that it made of kernels, with a reference count each.  It
 * looks for a command's function by five properties: the kernel, the work-group's size, whether it is
 * specialised for that size, whether the global offset is zero, and a width that the grid may not exceed.
 * At the command's end it looks again, but by the first two, and releases the first that it finds.  That is
 * another function where one was put before it meanwhile, by
 *
 *   - a launch of the same kernel from another queue with a wider grid, or
 *   - clGetProgramInfo(CL_PROGRAM_BINARIES), which makes a function for any size of work-group, and lists it
 *     under the size that the kernel requires.
 *
 * Then PoCL aborts (pocl_release_dlhandle_cache: "found->ref_count > 0"), or unloads what is being run.
 * It is kept from both by kernels that have one function each: a work-group's size is not required, but
 * a hint; and the groups lie along the third dimension, which does not count towards the width.  Kernels
 * find their place in the grid by its extents, which the offset holds.  A component of it has 16 bits, since
 * the compiler presumes that of all but wide grids:
 *
 *     offset[0], [1]   the low 16 bits of the columns and of the rows
 *     offset[2]        the high bits of the columns, or 0x8000 plus those of the rows
 *
 * Only one of the two has high bits, for a grid has less than 2^31 groups.  cl/words.h reads this.
 */
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

enum { LOW = 0xffff, OF_ROWS = 0x8000 };

int vn__cl_needs_line(const vn_device_info *i)
{
    enum { REPAIRED = 6 };                /* the version of PoCL */

    return i->is_cpu && !strcmp(i->platform, "Portable Computing Language") && atoi(i->driver) < REPAIRED;
}

struct vn_cl_grid vn__cl_grid(const struct vn_launch *l, int in_line)
{
    const size_t x = (size_t)l->groups[0], y = (size_t)l->groups[1], z = (size_t)l->groups[2];
    const size_t items = (size_t)l->items;

    if (!in_line)
        return (struct vn_cl_grid){ .global = { x * items, y, z }, .local = { items, 1, 1 } };
    return (struct vn_cl_grid){
        .global = { items, 1, x * y * z }, .local = { items, 1, 1 },
        .offset = { x & LOW, y & LOW, x >> 16 | (y > LOW ? OF_ROWS | y >> 16 : 0) }
    };
}
