/* SPDX-License-Identifier: Apache-2.0
 *
 * opencl_ptx.c - instructions that NVIDIA's OpenCL compiler does not let through.
 *
 * The front end always targets the architecture in general, where wgmma and its kin are
 * refused; but the driver takes any PTX as a program's binary.  So kernels write such
 * instructions behind a PTX comment (the word ARCH_ONLY), and here, between two builds,
 * the target is made exact and the comments go.  A kernel that asks for its number in a cluster
 * is also given the directive that launches it in clusters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

static const char waiting[] = "//@ ";

/* In the one line `.target sm_90, ...`: where the letter belongs, or NULL. */
static char *end_of_target(char *ptx, const char *arch)
{
    char *target = strstr(ptx, ".target ");

    if (!target || strncmp(target + 8, arch, strlen(arch)))
        return NULL;
    target += 8 + strlen(arch);
    return *target == ',' || *target == '\n' || *target == ' ' ? target : NULL;
}

/* Before the body of each kernel that says "//cluster N".  `text` has room for the directives. */
static const char in_clusters[] = "//cluster ";
enum { DIRECTIVE = 48 };

static size_t room_for_clusters(const char *text)
{
    size_t bytes = 0;

    for (const char *at = text; (at = strstr(at, in_clusters)); at++)
        bytes += DIRECTIVE;
    return bytes;
}

static void launch_in_clusters(char *text)
{
    for (char *kernel = strstr(text, ".entry "); kernel; kernel = strstr(kernel + 1, ".entry ")) {
        const char *end = strstr(kernel + 1, ".entry "), *says = strstr(kernel, in_clusters);
        char directive[DIRECTIVE], *body = strstr(kernel, "\n{");
        int n;

        if (!says || !body || (end && says > end))
            continue;
        n = snprintf(directive, sizeof directive, "\n.explicitcluster\n.reqnctapercluster %d, 1, 1",
                     atoi(says + sizeof in_clusters - 1));
        memmove(body + n, body, strlen(body) + 1);
        memcpy(body, directive, (size_t)n);
    }
}

static void uncomment(char *at)
{
    char *to = at;

    for (const char *from = at; *from;)
        if (!strncmp(from, waiting, sizeof waiting - 1))
            from += sizeof waiting - 1;
        else
            *to++ = *from++;
    *to = '\0';
}

int vn__cl_retarget(void **ptx, size_t *bytes, const char *arch)
{
    char *text = malloc(*bytes + 2), *larger, *target;

    if (!text)
        return 0;
    memcpy(text, *ptx, *bytes);
    text[*bytes] = '\0';
    if (!strstr(text, waiting) || !(larger = realloc(text, *bytes + 2 + room_for_clusters(text)))) {
        free(text);
        return 0;
    }
    if (!(target = end_of_target(text = larger, arch))) {
        free(text);
        return 0;
    }
    memmove(target + 1, target, strlen(target) + 1);
    *target = 'a';
    uncomment(target);
    launch_in_clusters(text);
    free(*ptx);
    *ptx = text;
    *bytes = strlen(text);
    return 1;
}
