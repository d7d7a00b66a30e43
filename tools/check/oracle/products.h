/* SPDX-License-Identifier: Apache-2.0
 *
 * products.h - the oracle of operations that sum products of their operands 0 and 1 into 2.
 */
#ifndef VERNIER_ORACLE_PRODUCTS_H
#define VERNIER_ORACLE_PRODUCTS_H

#include "check/oracle.h"

struct sums { long double *sum, *size; };         /* sum of a b, and of |a||b|: indexed as operand 2 is */

/* sum() adds to both, which are 0; alpha, beta C, bias, activation and the bounds follow. */
void oracle_products(const struct oracle *c, void (*sum)(const struct oracle *c, const struct sums *s));
#endif
