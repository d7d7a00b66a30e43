/* SPDX-License-Identifier: Apache-2.0
 *
 * family.h - the functions of one family, in both types: INT, CBLAS() and FORTRAN() say which.
 */
#define REAL   float
#define LETTER s
#define IS_F64 0
#include "functions.h"

#define REAL   double
#define LETTER d
#define IS_F64 1
#include "functions.h"

#undef INT
#undef CBLAS
#undef FORTRAN
