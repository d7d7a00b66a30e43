/* SPDX-License-Identifier: Apache-2.0
 *
 * machine_code.c - what a compiled kernel does, as one number: machine_code FILE
 *
 * Prints a hash of an ELF file and the bytes of instructions in it.  The hash is of what a device
 * loads (SHF_ALLOC): the contents of each section, and its relocations.  It does not depend on the
 * names of kernels and files, on the order of sections, or on notes and tables for debuggers.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS = 512 };

struct image { const char *bytes; size_t size; const Elf64_Shdr *sections; int count; const char *names; };

static uint64_t hash(uint64_t h, const void *data, size_t size)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < size; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);          /* FNV-1a */
    return h;
}

static uint64_t hash_number(uint64_t h, uint64_t v)
{
    return hash(h, &v, sizeof v);
}

static int inside(const struct image *it, uint64_t offset, uint64_t size)
{
    return offset <= it->size && size <= it->size - offset;
}

static int has_contents(const Elf64_Shdr *s)
{
    return s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL;
}

static int is_valid(struct image *it)
{
    const Elf64_Ehdr *e = (const void *)it->bytes;

    if (it->size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64 ||
        e->e_shentsize != sizeof(Elf64_Shdr) || e->e_shnum > SECTIONS || e->e_shstrndx >= e->e_shnum ||
        !inside(it, e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr)))
        return 0;
    it->sections = (const void *)(it->bytes + e->e_shoff);
    it->count    = e->e_shnum;
    for (int i = 0; i < it->count; i++)
        if (has_contents(&it->sections[i]) && !inside(it, it->sections[i].sh_offset, it->sections[i].sh_size))
            return 0;
    it->names = it->bytes + it->sections[e->e_shstrndx].sh_offset;
    return 1;
}

/* Which functions of a library are called is told by their names alone. */
static uint64_t hash_symbol(uint64_t h, const struct image *it, const Elf64_Shdr *symbols, uint64_t index)
{
    const Elf64_Sym *s = (const void *)(it->bytes + symbols->sh_offset);
    const char *name;

    if (index >= symbols->sh_size / sizeof *s || symbols->sh_link >= (unsigned)it->count)
        return h;
    name = it->bytes + it->sections[symbols->sh_link].sh_offset + s[index].st_name;
    return s[index].st_shndx == SHN_UNDEF ? hash(h, name, strlen(name)) : hash_number(h, s[index].st_value);
}

static uint64_t hash_relocations(uint64_t h, const struct image *it, int of)
{
    for (int i = 0; i < it->count; i++) {
        const Elf64_Shdr *s = &it->sections[i];
        const Elf64_Rela *r = (const void *)(it->bytes + s->sh_offset);

        if (s->sh_type != SHT_RELA || s->sh_info != (unsigned)of || s->sh_link >= (unsigned)it->count)
            continue;
        for (size_t j = 0; j < s->sh_size / sizeof *r; j++) {
            h = hash_number(h, r[j].r_offset);
            h = hash_number(h, ELF64_R_TYPE(r[j].r_info));
            h = hash_number(h, (uint64_t)r[j].r_addend);
            h = hash_symbol(h, it, &it->sections[s->sh_link], ELF64_R_SYM(r[j].r_info));
        }
    }
    return h;
}

static int ascends(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void describe(const struct image *it)
{
    const uint64_t start = UINT64_C(0xcbf29ce484222325);
    uint64_t of[SECTIONS], code = 0;
    int n = 0;

    for (int i = 0; i < it->count; i++) {
        const Elf64_Shdr *s = &it->sections[i];
        uint64_t h = hash_number(hash_number(hash_number(start, s->sh_type), s->sh_flags), s->sh_size);

        if (!(s->sh_flags & SHF_ALLOC) || s->sh_type == SHT_NOTE ||
            !strcmp(it->names + s->sh_name, ".eh_frame"))
            continue;
        if (has_contents(s))
            h = hash(h, it->bytes + s->sh_offset, s->sh_size);
        of[n++] = hash_relocations(h, it, i);
        if (s->sh_flags & SHF_EXECINSTR)
            code += s->sh_size;
    }
    qsort(of, (size_t)n, sizeof *of, ascends);
    printf("%016" PRIx64 " %" PRIu64 "\n", hash(start, of, (size_t)n * sizeof *of), code);
}

int main(int argc, char **argv)
{
    enum { LIMIT = 1 << 26 };
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    char *bytes = malloc(LIMIT);
    struct image it = { .bytes = bytes };

    if (!f || !bytes) {
        fprintf(stderr, "usage: machine_code FILE\n");
        return 2;
    }
    it.size = fread(bytes, 1, LIMIT, f);
    if (!is_valid(&it)) {
        fprintf(stderr, "%s: it is no ELF file of 64 bits\n", argv[1]);
        return 1;
    }
    describe(&it);
    fclose(f);
    free(bytes);
    return 0;
}
