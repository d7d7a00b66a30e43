/* SPDX-License-Identifier: Apache-2.0
 *
 * disassembly.h - what the compilers made of a kernel: registers, spills, local memory,
 * instructions, and the PTX between front end and back end.
 *
 * Of NVIDIA's tools ptxas and cuobjdump are used where they are in $PATH or in
 * /usr/local/cuda/bin; without them the figures that the driver knows are all there are.
 */
#ifndef VERNIER_DISASSEMBLY_H
#define VERNIER_DISASSEMBLY_H

#include <jansson.h>
#include "core.h"

/*   { "ptx_hash", "ptx_lines", "binary_hash", "binary_bytes", "tools",
 *     "entries": { NAME: { "registers", "spill_bytes", "stack_bytes", "local_bytes",
 *                          "instructions": { "FFMA": 512, ..., "all": 901 } } } }
 *
 * Members that are not known are left out.  NULL: the kernel could not be had.          */
json_t *disassembly(vn_device *d, const struct vn_choice *it, vn_type type, int wide);

/* ---- the readers of the tools' output, for the tests ---- */

void    read_ptxas(json_t *entries, const char *text);         /* ptxas -v */
void    read_sass (json_t *entries, const char *text);         /* cuobjdump -sass */
#endif
