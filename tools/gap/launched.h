/* SPDX-License-Identifier: Apache-2.0
 *
 * launched.h - which kernels a vendor's library launches, by name.
 */
#ifndef LAUNCHED_H
#define LAUNCHED_H

#include <jansson.h>

/* Between the two, the names of all kernels that this process launches through CUDA are noted.
 * The second gives them as an array, each once; NULL where CUPTI is missing or saw none.    */
void    launched_listen(void);
json_t *launched_names(void);

/* The instructions that such kernels multiply with, as far as their names tell: "HGMMA" (wgmma),
 * "HMMA" (mma.sync; "DMMA" in f64), "FFMA"; or NULL.                                          */
const char *launched_class(const json_t *names, int is_f64);
#endif
