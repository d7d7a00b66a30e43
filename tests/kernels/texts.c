/* SPDX-License-Identifier: Apache-2.0
 *
 * texts.c - writes what the library would give to a compiler: the whole text of each
 * variant of each operation, in each type, with the tune rows of a device for large problems.
 *
 *     texts BACKEND FAMILY/ARCH DIRECTORY [wide|rows]
 *
 * Prints the path of each file it writes.  With "wide", f32 once more with offsets of 64 bits;
 * with "rows", each row of the device: those for small and medium problems, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

struct target { vn_device device; const char *directory; int wide, rows; };

static int write_text(const struct target *t, const struct vn_variant *v, const int *p, vn_type type,
                      enum vn_bucket bucket, int wide, int number)
{
    char *text = vn__assemble(t->device.backend->name, v, p, type, wide);
    char path[512];
    FILE *f;
    int failed;

    snprintf(path, sizeof path, "%s/%s.%d.%s%s%s", t->directory, v->name, number, vn_type_name(type),
             bucket == VN_LARGE ? "" : bucket == VN_MEDIUM ? ".medium" : ".small", wide ? ".wide" : "");
    if (!text) {
        fprintf(stderr, "%s: one of \"%s\" is not among the texts\n", v->name, v->texts);
        return 1;
    }
    f = fopen(path, "w");
    failed = !f || fputs(text, f) < 0;
    if (f)
        failed |= fclose(f);
    free(text);
    if (failed)
        perror(path);
    else
        puts(path);
    return failed;
}

/* 1 and its values, 0 if this variant is not for such a device or type: a row of another device
 * stands in for a missing one, but may ask for what this one's compiler does not have; -1 if the
 * rows are wrong.                                                                              */
static int find_row(int *p, const struct target *t, const struct vn_variant *v, vn_type type, enum vn_bucket bucket)
{
    const char *source;

    switch (vn__tune_find(p, &source, &t->device, v, type, bucket)) {
    case VN_OK:
        return strcmp(source, "nearest") != 0;
    case VN_UNSUPPORTED:
        return 0;
    default:
        fprintf(stderr, "%s\n", vn_last_error());
        return -1;
    }
}

static int write_type(const struct target *t, const struct vn_variant *v, vn_type type, int number)
{
    int p[VN_BUCKET_COUNT][VN_PARAMS], failed = 0;

    for (int b = VN_LARGE; b >= (t->rows ? VN_SMALL : VN_LARGE); b--) {
        const int there = find_row(p[b], t, v, type, (enum vn_bucket)b);

        if (there < 0)
            return 1;
        if (!there || (b < VN_LARGE && !memcmp(p[b], p[b + 1], sizeof p[b])))
            continue;
        for (int wide = 0; wide <= (t->wide && type == VN_F32); wide++)
            failed |= write_text(t, v, p[b], type, (enum vn_bucket)b, wide, number);
    }
    return failed;
}

int main(int argc, char **argv)
{
    static struct vn_backend backend;
    static struct target t = { .device = { .backend = &backend } };
    int failed = 0, number = 0;

    if (argc < 4 || argc > 5 || sscanf(argv[2], "%15[^/]/%31s", t.device.facts.family, t.device.facts.arch) != 2) {
        fprintf(stderr, "usage: texts BACKEND FAMILY/ARCH DIRECTORY [wide|rows]\n");
        return 2;
    }
    backend.name = argv[1];
    t.directory  = argv[3];
    t.wide       = argc == 5 && !strcmp(argv[4], "wide");
    t.rows       = argc == 5 && !strcmp(argv[4], "rows");
    strcpy(t.device.facts.name, "a device");
    for (const struct vn_operation *const *o = vn__operations; *o; o++)
        for (const struct vn_variant *v = (*o)->variants; v->name; v++, number++)
            for (int type = 0; v->texts && type < VN_TYPE_COUNT; type++)
                failed |= write_type(&t, v, (vn_type)type, number);
    return failed;
}
