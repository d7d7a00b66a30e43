/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx.c - instructions that NVIDIA's OpenCL compiler does not accept.
 *
 * Its front end always targets the architecture in general ("sm_90"), where wgmma and its kin are
 * refused; but the driver accepts any PTX as the binary of a program. So kernels write such instructions
 * as PTX comments (the word ARCH_ONLY), and here, between two builds, the target is made exact
 * ("sm_90a") and the comments become code.
 */
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

static const char commented[] = "//@ ";

/* The place for the letter in the one line `.target sm_90, ...`, or NULL. */
static char *end_of_target(char *ptx, const char *arch)
{
    char *target = strstr(ptx, ".target ");

    if (!target || strncmp(target + 8, arch, strlen(arch)))
        return NULL;
    target += 8 + strlen(arch);
    return *target == ',' || *target == '\n' || *target == ' ' ? target : NULL;
}

int vn__cl_retarget(void **ptx, size_t *bytes, const char *arch)
{
    char *text = malloc(*bytes + 2), *target, *to;

    if (!text)
        return 0;
    memcpy(text, *ptx, *bytes);
    text[*bytes] = '\0';
    if (!strstr(text, commented) || !(target = end_of_target(text, arch))) {
        free(text);
        return 0;
    }
    memmove(target + 1, target, strlen(target) + 1);
    *target = 'a';
    to = target;
    for (const char *from = target; *from;)
        if (!strncmp(from, commented, sizeof commented - 1))
            from += sizeof commented - 1;
        else
            *to++ = *from++;
    *to = '\0';
    free(*ptx);
    *ptx = text;
    *bytes = (size_t)(to - text);
    return 1;
}
