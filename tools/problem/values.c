/* SPDX-License-Identifier: Apache-2.0
 *
 * values.c - random numbers for a problem's buffers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core.h"
#include "check/oracle.h"
#include "values.h"

/* xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016) */
static uint64_t next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

/* As many random bits as the type's mantissa holds, so that each number is exact in it. */
static const struct { int bits; double step; } grain[VN_TYPE_COUNT] = {
    [VN_F32]  = { 24, 0x1p-23 },
    [VN_F16]  = { 11, 0x1p-10 },
    [VN_BF16] = {  8, 0x1p-7  },
    [VN_F64]  = { 53, 0x1p-52 },
};

enum { PERIOD = 1048573 };            /* a prime: no two rows of a matrix are alike for it */

/* In pages of 2 MiB where the system has them: gigabytes in small pages take longer to get than to fill. */
static void *host_block(size_t bytes)
{
    const size_t large = (size_t)2 << 20;
    void *it;

    if (bytes < large || posix_memalign(&it, large, bytes))
        return malloc(bytes ? bytes : 1);
#ifdef MADV_HUGEPAGE
    madvise(it, bytes, MADV_HUGEPAGE);
#endif
    return it;
}

/* Random up to the period, then copies of that: drawing the numbers would take longer than
 * what is measured.                                                                       */
static void *random_values(const struct problem *p, int operand, vn_type type, int64_t count, uint64_t seed)
{
    const size_t each = vn_type_bytes(type);
    char *const values = host_block((size_t)count * each);

    for (int64_t i = 0; values && i < count && i < PERIOD; i++) {
        const double random = (double)(next(&seed) >> (64 - grain[type].bits)) * grain[type].step - 1;

        oracle_store(type, values, i, p->op->element ? p->op->element(p, operand, i, random) : random);
    }
    for (int64_t i = PERIOD; values && i < count; i += PERIOD)
        memcpy(values + (size_t)i * each, values, (size_t)(count - i < PERIOD ? count - i : PERIOD) * each);
    return values;
}

static int send(vn_tensor *t, vn_queue *q, vn_device *d, const void *host, int64_t count)
{
    const size_t bytes = (size_t)count * vn_type_bytes(t->type);

    return vn_buffer_open(&t->buffer, d, bytes ? bytes : 1) || vn_write(q, t->buffer, 0, host, bytes)
         ? -1 : 0;
}

static int fill(void **host, vn_tensor *t, vn_queue *q, vn_device *d, int64_t count, const struct problem *p,
                int operand)
{
    return !(*host = random_values(p, operand, t->type, count, (uint64_t)operand + 1))
        || send(t, q, d, *host, count) ? -1 : 0;
}

int values_open(struct values *out, vn_queue *q, vn_device *d, const struct problem *p)
{
    *out = (struct values){ .o.count = 0 };
    if (problem_operands(&out->o, p))
        return -1;
    for (int i = 0; i < out->o.count; i++) {
        const int home = home_of(&out->o, i);

        if (home == i && out->o.t[i].rank
            && fill(&out->operand[i], &out->o.t[i], q, d, out->o.elements[i], p, i))
            return -1;
        out->operand[i] = out->operand[home];
        out->o.t[i].buffer = out->o.t[home].buffer;
    }
    return problem_pack(q, p, &out->o) ? -1 : 0;
}

int values_share(struct values *out, const struct values *from, vn_queue *q, vn_device *d,
                 const struct problem *p)
{
    *out = (struct values){ .o.count = 0 };
    if (problem_operands(&out->o, p))
        return -1;
    for (int i = 0; i < out->o.count; i++) {
        const int home = home_of(&out->o, i);

        if (home == i && out->o.t[i].rank
            && send(&out->o.t[i], q, d, from->operand[i], out->o.elements[i]))
            return -1;
        out->o.t[i].buffer = out->o.t[home].buffer;
    }
    return problem_pack(q, p, &out->o) ? -1 : 0;
}

int values_restore(const struct values *v, const struct values *from, vn_queue *q)
{
    for (int i = 0; i < v->o.count; i++)
        if (is_output(&v->o, i)
            && vn_write(q, v->o.t[i].buffer, 0, from->operand[i], operand_bytes(&v->o, i)))
            return -1;
    return 0;
}

void values_close(struct values *v)
{
    for (int i = 0; i < v->o.count; i++)
        if (home_of(&v->o, i) == i) {
            vn_buffer_close(v->o.t[i].buffer);
            free(v->operand[i]);
        }
    vn_pack_close(v->o.pack);
}

/* ---- results ---- */

int results_open(struct results *out, const struct operands *o, const struct results *like)
{
    *out = (struct results){ { NULL } };
    for (int i = 0; i < o->count; i++) {
        const size_t bytes = operand_bytes(o, i);

        if (!is_output(o, i))
            continue;
        if (!(out->of[i] = host_block(bytes))) {
            results_close(out);
            return -1;
        }
        if (like)
            memcpy(out->of[i], like->of[i], bytes);
    }
    return 0;
}

int results_read(const struct results *to, const struct operands *o, vn_queue *q)
{
    for (int i = 0; i < o->count; i++)
        if (is_output(o, i) && vn_read(q, to->of[i], o->t[i].buffer, 0, operand_bytes(o, i)))
            return -1;
    return 0;
}

int results_equal(const struct results *a, const struct results *b, const struct operands *o)
{
    for (int i = 0; i < o->count; i++)
        if (is_output(o, i) && memcmp(a->of[i], b->of[i], operand_bytes(o, i)))
            return 0;
    return 1;
}

void results_close(struct results *r)
{
    for (int i = 0; i < OPERANDS; i++)
        free(r->of[i]);
    *r = (struct results){ { NULL } };
}

/* ---- room ---- */

static double host_memory(void)
{
    FILE *const f = fopen("/proc/meminfo", "r");
    char line[128];
    double kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lf", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib > 0 ? kib * 1024 : INFINITY;
}

int values_fit(const vn_device *d, const struct problem *p, int copies, char *why, size_t why_size)
{
    return values_fit_all(d, &p, 1, copies, why, why_size);
}

int values_fit_all(const vn_device *d, const struct problem *const *each, int count, int copies, char *why,
                   size_t why_size)
{
    double all = 0, largest = 0;

    for (int n = 0; n < count; n++) {
        struct operands o;

        if (problem_operands(&o, each[n])) {
            snprintf(why, why_size, "its size overflows");
            return -1;
        }
        for (int i = 0; i < o.count; i++) {
            const double bytes = (double)o.elements[i] * (double)vn_type_bytes(o.t[i].type);

            all    += home_of(&o, i) == i ? bytes : 0;
            largest = fmax(largest, bytes);
        }
    }
    if (all > 0.9 * (double)d->info.memory || largest > (double)d->facts.buffer_bytes) {
        snprintf(why, why_size, "its %.1f GB do not fit into the device", all * 1e-9);
        return -1;
    }
    if (copies * all > 0.9 * host_memory()) {
        snprintf(why, why_size, "it needs %.1f GB of host memory, and there are %.1f",
                 copies * all * 1e-9, host_memory() * 1e-9);
        return -1;
    }
    return 0;
}
