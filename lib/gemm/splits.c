/* SPDX-License-Identifier: Apache-2.0
 *
 * splits.c - how many splits of K, for kernels with split-K in one launch (cl/tile/split.h).
 */
#include <math.h>

#include "gemm.h"

/* Work-groups that a compute unit runs at the same time: what their local memory leaves room for. */
static double residents_of(const struct vn_splits *s, const struct vn_site *site)
{
    enum { OTHER = 8192 };                      /* bytes, beside the stages */
    const int64_t room = (int64_t)(site->rates->local_kib * 1024) / (s->local + OTHER);
    const int64_t most = vn__resident(s->items);

    return room < 1 ? 1 : (double)(room < most ? room : most);
}

/* Of work-groups with `span` slices each.  A compute unit reads at LOADS thousandths of its share of L2's
 * rate, and multiplies at EFF thousandths of its peak with one work-group, at EFF_FULL with several.  A
 * launch takes FIXED_NS, each wave after the first WAVE_NS, and a level of the tree of splits SPLIT_NS. */
static double seconds_of(const struct vn_splits *s, int64_t span, const struct vn_row *row,
                         const struct vn_site *site)
{
    const int *const cost = row->cost;
    const double units = site->facts->units;
    const double all = s->tiles * (double)VN_CEIL_DIV(s->slices, span), groups = ceil(all / units);
    const double waves = ceil(all / (units * residents_of(s, site)));
    const double flops = s->flops * (double)span / (s->peak * 1e6);
    const double alone = flops * waves / cost[VN_SPLITS_EFF];
    const double full = flops * groups / cost[VN_SPLITS_EFF_FULL];
    const double loads = s->loads * (double)span * groups * units /
                         (site->rates->l2_gbps * 1e6 * cost[VN_SPLITS_LOADS]);
    const double read = s->bytes * vn__byte_seconds(s->memory, site);
    int levels = 0;

    while ((int64_t)1 << levels < VN_CEIL_DIV(s->slices, span))
        levels++;
    return s->start +
           (cost[VN_SPLITS_FIXED_NS] + cost[VN_SPLITS_WAVE_NS] * (waves - 1) +
            cost[VN_SPLITS_LEVEL_NS] * levels) * 1e-9 +
           vn__together(alone > full ? alone : full, loads > read ? loads : read);
}

double vn__plan_splits(int64_t *span, int64_t *splits, const struct vn_splits *s, const struct vn_row *row,
                       const struct vn_site *site)
{
    enum { MOST_SPLITS = 32 };
    double least;

    *span = s->slices > 1 ? s->slices : 1;
    *splits = 1;
    if (row->cost[VN_SPLITS_EFF] <= 0 || row->cost[VN_SPLITS_EFF_FULL] <= 0 ||
        row->cost[VN_SPLITS_LOADS] <= 0)
        return 0;
    least = seconds_of(s, *span, row, site);
    for (int64_t wanted = 2; wanted <= MOST_SPLITS && wanted <= s->slices; wanted++) {
        const int64_t some = VN_CEIL_DIV(s->slices, wanted), parts = VN_CEIL_DIV(s->slices, some);
        const double seconds = seconds_of(s, some, row, site);

        if (s->tiles * (double)(parts - 1) > (double)(VN_SLOTS / s->slots))
            break;
        if (seconds < least) {
            least = seconds;
            *span = some;
            *splits = parts;
        }
    }
    return least;
}
