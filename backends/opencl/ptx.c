/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx.c - what NVIDIA's OpenCL compiler has no words for: instructions, and how many registers to use.
 *
 * Its front end always targets the architecture in general ("sm_90"), where wgmma and its kin are
 * refused; but the driver accepts any PTX as the binary of a program. So kernels write such instructions
 * as PTX comments (the word ARCH_ONLY), and here, between two builds, the target is made exact
 * ("sm_90a") and the comments become code.  Likewise a comment says for how many work-groups a unit is to
 * have registers (ROOM_FOR), which becomes a directive of the kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

static const char commented[] = "//@ ", room[] = "//@room ";

/* The place for the letter in the one line `.target sm_90, ...`, or NULL. */
static char *end_of_target(char *ptx, const char *arch)
{
    char *target = strstr(ptx, ".target ");

    if (!target || strncmp(target + 8, arch, strlen(arch)))
        return NULL;
    target += 8 + strlen(arch);
    return *target == ',' || *target == '\n' || *target == ' ' ? target : NULL;
}

/* Puts `more` in the text at `at`. */
static void insert(char *at, const char *more)
{
    memmove(at + strlen(more), at, strlen(at) + 1);
    memcpy(at, more, strlen(more));
}

/* A kernel that several work-groups of are to fit a unit says so in its body, and here in its head. */
static int make_room(char *text)
{
    const char *said = strstr(text, room);
    char *head = NULL, directive[32];

    for (char *at = text; said && (at = strstr(at, ".reqntid")) && at < said; at++)
        head = strchr(at, '\n');
    if (!head)
        return 0;
    snprintf(directive, sizeof directive, "\n.minnctapersm %d", atoi(said + sizeof room - 1));
    insert(head, directive);
    return 1;
}

static int retarget(char *text, const char *arch)
{
    char *target, *to;

    if (!strstr(text, commented) || !(target = end_of_target(text, arch)))
        return 0;
    insert(target, "a");
    to = target;
    for (const char *from = target; *from;)
        if (!strncmp(from, commented, sizeof commented - 1))
            from += sizeof commented - 1;
        else
            *to++ = *from++;
    *to = '\0';
    return 1;
}

int vn__cl_retarget(void **ptx, size_t *bytes, const char *arch)
{
    char *text = malloc(*bytes + 64);
    int changed;

    if (!text)
        return 0;
    memcpy(text, *ptx, *bytes);
    text[*bytes] = '\0';
    changed = make_room(text);
    changed |= retarget(text, arch);
    if (!changed) {
        free(text);
        return 0;
    }
    free(*ptx);
    *ptx = text;
    *bytes = strlen(text);
    return 1;
}
