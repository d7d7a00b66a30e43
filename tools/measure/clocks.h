/* SPDX-License-Identifier: Apache-2.0
 *
 * clocks.h - how fast an NVIDIA GPU runs at a moment, by NVML.
 *
 * NVML comes with the driver and is loaded at run time.  Clocks are read and never set.
 */
#ifndef VERNIER_CLOCKS_H
#define VERNIER_CLOCKS_H

#include <jansson.h>
#include "vernier.h"

/* 0, or -1: there are none to be read of this device. */
int     clocks_open (const vn_device_info *info);
/* {"sm_mhz", "memory_mhz", "watts", "celsius"}, or NULL where clocks_open() failed. */
json_t *clocks_read (void);
/* The clock of its compute units in MHz, or 0. */
double  clocks_sm   (void);
void    clocks_close(void);

/* Why the device ran slower than it could: clocks_watch() looks at a moment, clocks_throttled() says what
 * was seen since clocks_forget(), "" or "power cap, heat (by hardware)".  *disturbs: one of these is not how
 * the device is set up.                                                                                */
void        clocks_forget   (void);
void        clocks_watch    (void);
const char *clocks_throttled(int *disturbs);
/* {"device_clock_policy", "power_cap_watts"}, or {} */
json_t     *clocks_limits   (void);
#endif
