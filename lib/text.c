/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - the whole text of a variant's kernels: words, #defines, types, and its own texts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "text.h"

void vn__text_add(struct vn_builder *b, const char *s, size_t n)
{
    if (b->length + n + 1 > b->size) {
        const size_t size = 2 * (b->length + n + 1);
        char *text = realloc(b->text, size);

        if (!text) {
            b->failed = 1;
            return;
        }
        b->text = text;
        b->size = size;
    }
    memcpy(b->text + b->length, s, n);
    b->length += n;
    b->text[b->length] = '\0';
}

static void add_define(struct vn_builder *b, const char *name, int value)
{
    char line[128];

    vn__text_add(b, line, (size_t)snprintf(line, sizeof line, "#define %s %d\n", name, value));
}

/* Compilers report lines as file:line of our sources. */
static void add_file(struct vn_builder *b, const char *path)
{
    const struct vn_text *t = vn__text_find(path);
    char line[128];

    if (!t) {
        b->failed = 1;
        return;
    }
    vn__text_add(b, line, (size_t)snprintf(line, sizeof line, "#line 1 \"%s\"\n", path));
    vn__text_add(b, t->text, t->length);
}

int vn__word_at(char word[64], const char *list, int i)
{
    for (; list; i--) {
        list += strspn(list, " ");

        const size_t n = strcspn(list, " ");

        if (n == 0 || n >= 64)
            return 0;
        memcpy(word, list, n);
        word[n] = '\0';
        if (i == 0)
            return 1;
        list += n;
    }
    return 0;
}

/* In a list of constants, beside their names. */
static int is_value(const char *word)
{
    return *word == '-' || (*word >= '0' && *word <= '9');
}

int vn__constant_at(char word[64], const struct vn_variant *v, int i)
{
    for (int w = 0; vn__word_at(word, v->constants, w); w++)
        if (!is_value(word) && i-- == 0)
            return 1;
    return 0;
}

int vn__constants_suit(const struct vn_variant *v, const int *kernel, const int *problem)
{
    char word[64];

    for (int i = 0; vn__constant_at(word, v, i); i++)
        if (kernel[i] != problem[i] && (kernel[i] || strcmp(word, "VECTORS")))
            return 0;
    return 1;
}

int vn__constants_at(int *c, const struct vn_variant *v, int i)
{
    const char *at = v->constants ? v->constants : "";
    char word[64];
    int n = -1, count = 0, first = 0, all = 1;

    memset(c, 0, VN_CONSTANTS * sizeof *c);
    for (int w = 0; ; w++) {
        const int there = vn__word_at(word, at, w);

        if (there && is_value(word)) {
            count++;
            continue;
        }
        if (n >= 0) {                           /* the values of the n-th are words `first` to w - 1 */
            vn__word_at(word, at, first + i / all % count);
            c[n] = atoi(word);
            all *= count;
        }
        if (!there)
            return i < all;
        n++;
        first = w + 1;
        count = 0;
    }
}

static void add_constants(struct vn_builder *b, const struct vn_variant *v, const int *c)
{
    char word[64];

    for (int i = 0; vn__constant_at(word, v, i); i++)
        add_define(b, word, c[i]);
}

static void add_epilogue(struct vn_builder *b, const struct vn_epilogue *e)
{
    add_define(b, "ACT", e->act);
    add_define(b, "FAST_ACT", e->fast_act);
    add_define(b, "SCALE", e->scale);
    add_define(b, "RESIDUAL", e->residual);
    add_define(b, "BIAS", e->bias);
    add_define(b, "TYPE_C", e->type_c);
    add_define(b, "TYPE_RESIDUAL", e->type_residual);
    add_define(b, "TYPE_BIAS", e->type_bias);
}

char *vn__assemble(const char *backend, const struct vn_variant *v, const int *p, const int *c, vn_type type,
                   int wide, const struct vn_epilogue *e)
{
    const int t = (int)type;
    const struct vn_epilogue plain = { .type_c = t, .type_residual = t, .type_bias = t };
    struct vn_builder b = { 0 };
    char word[64];

    add_file(&b, strcmp(backend, "cuda") ? "cl/words.h" : "cuda/words.h");
    add_define(&b, "TYPE", (int)type);
    add_define(&b, "WIDE", wide);
    add_epilogue(&b, e ? e : &plain);
    add_file(&b, "cl/types.h");
    for (int i = 0; vn__word_at(word, v->params, i); i++)
        add_define(&b, word, p[i]);
    add_constants(&b, v, c);
    if (v->defines)
        vn__text_add(&b, v->defines, strlen(v->defines));
    for (int i = 0; vn__word_at(word, v->texts, i); i++)
        add_file(&b, word);
    if (b.failed) {
        free(b.text);
        return NULL;
    }
    return b.text;
}
