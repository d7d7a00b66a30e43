/* SPDX-License-Identifier: Apache-2.0
 *
 * language.h - what an operation says its part of the little language with.
 */
#ifndef VERNIER_LANGUAGE_H
#define VERNIER_LANGUAGE_H

#include "op.h"

/* A problem that is being read; functions that return int: 0, or -1 with a sentence in why[]. */
struct reader { struct problem *p; char *why; size_t why_size; };
struct writer { char *text; size_t used; };

/* A name and its value; a table of them ends with a NULL name. */
struct name { const char *name; int value; };

/* A part that stands alone, such as "packed", and sets an int (or an enum) of the problem. */
struct word { const char *name; size_t at; int value; int usual; };     /* usual: people need not see it */

/* A part with a value, such as "batch=3"; tables of both end with a NULL name. */
struct key {
    const char *name;
    int       (*read) (const struct reader *r, const struct key *k, const char *value);
    void      (*write)(struct writer *w, const struct key *k, const struct problem *p);
    size_t      at;                          /* where the value is in struct problem */
    double      usual;                       /* what is not written */
    int64_t     low, high;                   /* of an integer */
    const struct name *names;                /* of one that has a name, and is an int or an enum */
};
#define KEY_INTEGER(name, at, usual, low, high) \
                                   { name, read_integer, write_integer, at, usual, low, high, NULL }
#define KEY_REAL(name, at, usual)  { name, read_real, write_real, at, usual, 0, 0, NULL }
#define KEY_NAME(name, at, names)  { name, read_name, write_name, at, 0, 0, 0, names }

extern const struct name bias_names[];        /* of enum bias */
extern const struct name f32_names[];         /* of what is f32 beside types of 16 bits: 0 or 1 */

int  wrong(const struct reader *r, const char *sentence, ...)                  /* returns -1 */
    __attribute__((format(printf, 2, 3)));
int  read_integer(const struct reader *r, const struct key *k, const char *value);     /* int64_t */
int  read_real   (const struct reader *r, const struct key *k, const char *value);     /* double */
int  read_name   (const struct reader *r, const struct key *k, const char *value);
/* Digits alone: no sign, no space.  Leaves *end after them; -1 if there are none or too many. */
int  scan_integer(int64_t *out, const char *s, const char **end);
/* "17x33x5"; form: "MxNxK", such as: an example */
int  read_sizes(const struct reader *r, const char *text, int count, int64_t *const out[], const char *form,
                const char *such_as);

/* "n64c64h56w56": each letter once, in any order.  A letter needs so many dimensions, 1 or more; all must
 * be there that need no more than one that is.  Returns the most that are needed.  A table ends with 0.    */
struct letter { char letter; int64_t *to; int needs; };
int  read_letters(const struct reader *r, const char *text, const struct letter *letters,
                  const char *such_as);

void write_text(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void write_keys(struct writer *w, const struct key *keys, const struct problem *p);
void write_integer(struct writer *w, const struct key *k, const struct problem *p);
void write_real   (struct writer *w, const struct key *k, const struct problem *p);
/* Of what is written elsewhere: behind the type, as bf16>f32. */
void write_nothing(struct writer *w, const struct key *k, const struct problem *p);
void write_name   (struct writer *w, const struct key *k, const struct problem *p);
#endif
