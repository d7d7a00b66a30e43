/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.c - makes the data of a trial and runs it.
 */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include "check/oracle.h"
#include "check/suite.h"

static vn_tensor *tensor_of(struct operands *o, int i)
{
    return i < 3 ? &o->t[i] : i == 3 ? &o->bias : &o->mask;
}

static int64_t elements_of(const struct operands *o, int i)
{
    return i < 3 ? o->elements[i] : i == 3 ? o->bias_elements : o->mask_elements;
}

static vn_status fill(vn_buffer *b, vn_queue *q, vn_type type, int64_t elements, struct random *r)
{
    const size_t bytes = (size_t)elements * vn_type_bytes(type);
    void        *host = malloc(bytes);
    vn_status    s;

    if (!host)
        return VN_NO_MEMORY;
    for (int64_t i = 0; i < elements; i++)
        oracle_store(type, host, i, random_real(r, -1, 1));
    s = vn_write(q, b, 0, host, bytes);
    free(host);
    return s;
}

int trial_open(struct trial *out, vn_device *d, vn_queue *q, const char *text)
{
    struct random r = { 42 };
    char why[256];

    memset(out, 0, sizeof *out);
    if (problem_parse(&out->p, text, why, sizeof why) || problem_operands(&out->o, &out->p)) {
        printf("not ok: %s\n", why);
        return -1;
    }
    for (int i = 0; i < TRIAL_SLOTS; i++) {
        const int64_t elements = elements_of(&out->o, i);

        if (!tensor_of(&out->o, i)->rank)
            continue;
        if (vn_buffer_open(&out->buffers[i], d, (size_t)elements * vn_type_bytes(out->p.type))
            || fill(out->buffers[i], q, out->p.type, elements, &r)) {
            printf("not ok: %s: %s\n", text, vn_last_error());
            return -1;
        }
        tensor_of(&out->o, i)->buffer = out->buffers[i];
    }
    out->bytes = (size_t)out->o.elements[out->o.output] * vn_type_bytes(out->p.type);
    return 0;
}

void trial_close(struct trial *t)
{
    for (int i = 0; i < TRIAL_SLOTS; i++)
        vn_buffer_close(t->buffers[i]);
}

vn_status trial_run(void *result, const struct trial *t, vn_queue *q, vn_buffer *output)
{
    struct operands o = t->o;
    vn_status s;

    if (output)
        o.t[o.output].buffer = output;
    if ((s = problem_run(q, &t->p, &o)))
        return s;
    return vn_read(q, result, o.t[o.output].buffer, 0, t->bytes);
}
