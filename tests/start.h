/* SPDX-License-Identifier: Apache-2.0
 *
 * start.h - how a test begins that needs a device: it opens one and a queue, or says why it does not run.
 */
#ifndef VERNIER_START_H
#define VERNIER_START_H

#include <stdio.h>
#include <stdlib.h>

#include "check/suite.h"

enum { SKIPPED = 77 };          /* the exit status that Automake's tests are skipped by */

/* 0, or after a sentence what the test exits with. */
static inline int start(vn_device **d, vn_queue **q)
{
    const vn_status s = vn_device_open(d, NULL);
    vn_device_info info;

    if (!s && !vn_queue_open(q, *d) && !vn_device_describe(&info, *d)) {
        suite_spare_cache(&info);
        return 0;
    }
    printf(s == VN_NO_DEVICE ? "skipped: %s\n" : "cannot start: %s\n", vn_last_error());
    return s == VN_NO_DEVICE ? SKIPPED : 1;
}

/* For a test of the host's side: PoCL takes a quarter of the time for programs that it does not optimise, and
 * keeps them apart from others.                                                                         */
static inline int start_unoptimised(vn_device **d, vn_queue **q)
{
    setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);      /* a user's word stands */
    return start(d, q);
}
#endif
