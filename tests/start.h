/* SPDX-License-Identifier: Apache-2.0
 *
 * start.h - how a test begins that needs a device: it opens one and a queue, or says why it does not run.
 */
#ifndef VERNIER_START_H
#define VERNIER_START_H

#include <stdio.h>

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
#endif
