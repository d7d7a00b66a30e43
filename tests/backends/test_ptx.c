/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ptx.c - what is done to PTX between two builds (backends/opencl/ptx.c): no device is needed.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "backends/opencl/opencl.h"

#define ENTRY(name, body) ".entry " name "(\n)\n.reqntid 256, 1, 1\n{\n" body "}\n"
#define BUSY(name, body)  ".entry " name "(\n)\n.reqntid 256, 1, 1\n.minnctapersm 4\n{\n" body "}\n"

static const struct { const char *what, *from, *to; } table[] = {
    { "nothing to do", ".target sm_90, debug\n" ENTRY("f", "ret;\n"), NULL },
    { "an instruction of the exact architecture",
      ".target sm_90, debug\n" ENTRY("f", "//@ wgmma;\n"), ".target sm_90a, debug\n" ENTRY("f", "wgmma;\n") },
    { "an instruction for another architecture", ".target sm_100\n" ENTRY("f", "//@ wgmma;\n"), NULL },
    { "room",
      ".target sm_90\n" ENTRY("f", "//@room 4\n"), ".target sm_90\n" BUSY("f", "//@room 4\n") },
    { "room on another architecture",
      ".target sm_80\n" ENTRY("f", "//@room 4\n"), ".target sm_80\n" BUSY("f", "//@room 4\n") },
    { "room of the second kernel", ".target sm_90\n" ENTRY("f", "ret;\n") ENTRY("g", "//@room 4\n"),
      ".target sm_90\n" ENTRY("f", "ret;\n") BUSY("g", "//@room 4\n") },
    { "both", ".target sm_90\n" ENTRY("f", "//@room 4\n//@ wgmma;\n"),
      ".target sm_90a\n" BUSY("f", "//@room 4\nwgmma;\n") },
    { "room, work-groups of any size", ".target sm_90\n.entry f()\n{\n//@room 4\n}\n", NULL },
};

int main(void)
{
    int wrong = 0;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *const expected = table[i].to ? table[i].to : table[i].from;
        size_t bytes = strlen(table[i].from);
        void *ptx = malloc(bytes);
        int changed;

        memcpy(ptx, table[i].from, bytes);
        changed = vn__cl_retarget(&ptx, &bytes, "sm_90");
        if (changed != (table[i].to != NULL) || bytes != strlen(expected) || memcmp(ptx, expected, bytes)) {
            printf("FAIL: %s gives\n%.*s", table[i].what, (int)bytes, (char *)ptx);
            wrong++;
        }
        free(ptx);
    }
    printf("%zu texts, %d wrong\nCOUNT ptx %zu\n", sizeof table / sizeof *table, wrong,
           sizeof table / sizeof *table);
    return wrong != 0;
}
