/* SPDX-License-Identifier: Apache-2.0
 *
 * statistics.c - medians, order statistics, paired ratios.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "statistics.h"

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median_of(double *v, int count)
{
    if (count == 0)
        return 0;
    qsort(v, (size_t)count, sizeof *v, ascending);
    return count % 2 ? v[count / 2] : (v[count / 2 - 1] + v[count / 2]) / 2;
}

int order_statistic(double *coverage, int count)
{
    const double wanted = 0.95;
    double term = ldexp(1, -count), below = 0;      /* P(Binomial = i), P(Binomial <= i) */
    int k = 0;

    *coverage = 0;
    for (int i = 0; 2 * (i + 1) <= count + 1; i++) {
        below += term;
        term  *= (double)(count - i) / (i + 1);
        if (k && 1 - 2 * below < wanted)
            break;
        k = i + 1;
        *coverage = fmax(1 - 2 * below, 0);
    }
    return k;
}

struct summary summary_of(const double *v, int count)
{
    double sorted[SAMPLES];
    struct summary s = { .count = count };
    const int k = order_statistic(&s.coverage, count);

    if (!k)
        return s;
    memcpy(sorted, v, (size_t)count * sizeof *v);
    s.median = median_of(sorted, count);
    s.low    = sorted[k - 1];
    s.high   = sorted[count - k];
    return s;
}

struct summary ratio_of(double ratio[SAMPLES], const double *over, const double *under, int count)
{
    for (int i = 0; i < count; i++)
        ratio[i] = over[i] / under[i];
    return summary_of(ratio, count);
}
