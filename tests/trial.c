/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.c - makes the data of a trial and runs it.
 */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include "check/oracle.h"
#include "check/suite.h"

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
    for (int i = 0; i < out->o.count; i++) {
        if (!out->o.t[i].rank)
            continue;
        if (home_of(&out->o, i) == i
            && (vn_buffer_open(&out->buffers[i], d, operand_bytes(&out->o, i))
                || fill(out->buffers[i], q, out->o.t[i].type, out->o.elements[i], &r))) {
            printf("not ok: %s: %s\n", text, vn_last_error());
            return -1;
        }
        out->o.t[i].buffer = out->buffers[home_of(&out->o, i)];
    }
    out->bytes = operand_bytes(&out->o, out->o.output);
    return 0;
}

void trial_close(struct trial *t)
{
    for (int i = 0; i < OPERANDS; i++)
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
