/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.h - what the files of `vernier compare` share.
 */
#ifndef VERNIER_COMPARE_H
#define VERNIER_COMPARE_H

#include <jansson.h>

/* What was compared, as its JSON has it, as a page and as figures: html is a file, or NULL, and svg a folder,
 * or NULL.  0, or -1 after a sentence on stderr. */
int compare_html(const char *html, const char *svg, const json_t *result);
#endif
