/* SPDX-License-Identifier: Apache-2.0
 *
 * statistics.h - medians and ratios of samples, with intervals that assume no distribution.
 *
 * The interval of a median is between two order statistics, the k-th least and the k-th largest sample: it
 * misses the median only if fewer than k of n samples lie on one side of it, so its coverage is
 * 1 - 2 P(Binomial(n, 1/2) < k).  With five samples the widest, least to largest, covers 93.75 %; six are
 * needed for 95 %.
 *
 * Source: W. J. Conover, Practical Nonparametric Statistics, 3rd edition, 1999, section 3.2.
 */
#ifndef VERNIER_STATISTICS_H
#define VERNIER_STATISTICS_H

enum { SAMPLES = 31, SAMPLES_FEW = 5, SAMPLES_SURE = 6 };  /* most; fewer say little; 95 % from here on */

struct summary {
    int    count;
    double median, low, high;         /* all 0 without samples */
    double coverage;                  /* of low to high; 0 of a single sample */
};

double median_of(double *v, int count);              /* sorts v */

/* k of the narrowest interval of n samples that covers 95 %, or else 1; from 1 on, and 0 without samples. */
int    order_statistic(double *coverage, int count);

/* Of at most SAMPLES samples, in any order. */
struct summary summary_of(const double *v, int count);
/* Of over[i] / under[i]: samples that were taken in the same round. */
struct summary ratio_of(double ratio[SAMPLES], const double *over, const double *under, int count);
#endif
