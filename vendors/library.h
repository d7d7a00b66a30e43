/* SPDX-License-Identifier: Apache-2.0
 *
 * library.h - a vendor's library, loaded at run time.
 *
 * The functions that are used are a list F(result, name, exported name, parameters), from which a struct of
 * pointers and a table of symbols are made, so that neither can lack what the other has.
 */
#ifndef VN_LIBRARY_H
#define VN_LIBRARY_H

#include <stddef.h>

struct vn_symbol { const char *name; size_t at; };      /* at: of its pointer in the struct */

#define VN_POINTER(result, name, exported, parameters) result (*name) parameters;

/* Loads the first of `names` that can be loaded, or returns NULL. Versioned names come first, since the bare
 * one is often a link for developers, or missing; the list ends with NULL. Libraries are never unloaded,
 * which drivers do not survive.                                                             */
void       *vn__library_open(const char *const *names);
/* The same in each directory of $VERNIER_CUDA_LIBRARY_PATH. Colons separate directories, and an empty one
 * means the default search path, as does an unset variable.                                 */
void       *vn__library_open_cuda(const char *const *names);
/* Fills the struct of pointers; returns the name of a missing symbol, or NULL. */
const char *vn__library_look_up(void *pointers, const struct vn_symbol *symbols, void *library);
#endif
