/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - a text that grows: a kernel's, and what explain says.
 */
#ifndef VN_TEXT_H
#define VN_TEXT_H

#include <stddef.h>

/* failed: memory ran out, or a part is missing. */
struct vn_builder { char *text; size_t length, size; int failed; };

void vn__text_add(struct vn_builder *b, const char *s, size_t n);
#endif
