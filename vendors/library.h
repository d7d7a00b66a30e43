/* SPDX-License-Identifier: Apache-2.0
 *
 * library.h - a vendor's library, loaded at run time.
 *
 * What is used of it is a list F(result, name, exported name, parameters), from which come
 * a struct of pointers and a table of symbols, so that neither can lack what the other has.
 */
#ifndef VN_LIBRARY_H
#define VN_LIBRARY_H

#include <stddef.h>

struct vn_symbol { const char *name; size_t at; };      /* at: of its pointer in the struct */

#define VN_POINTER(result, name, exported, parameters) result (*name) parameters;

/* The first of names (versioned ones come first: the bare one is often a developer's link, or
 * missing; the list ends with NULL) that can be loaded, or NULL.  Never unloaded: drivers do
 * not survive that.                                                                         */
void       *vn__library_open(const char *const *names);
/* The same where $VERNIER_CUDA_LIBRARY_PATH says: in each of its directories, which colons
 * separate, an empty one standing for the usual places.  Unset: in the usual places.       */
void       *vn__library_open_cuda(const char *const *names);
/* Fills the struct of pointers; the name of a symbol that is missing, or NULL. */
const char *vn__library_look_up(void *pointers, const struct vn_symbol *symbols, void *library);
#endif
