/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.c - PyTorch, in a Python process of its own: softmax and attention, on GPUs and CPUs.
 *
 * torch.py is that process, and says what goes over the socket.  Of PyTorch's kernels for attention (cuDNN's,
 * FlashAttention, ...) the fastest is measured.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "peer.h"
#include "problem/attention.h"
#include "problem/softmax.h"

extern char **environ;

static const char script[] =
#include "tools/peers/torch_script.h"
;

static struct {
    pid_t process;                           /* 0: none */
    int   socket;
    int   prepared;                          /* problems until now, for their names */
    int   is_cpu;
    char  version[64];
} torch;

/* A prepared problem. */
struct run { int id; struct operands o; };

/* ---- messages ---- */

static int send_all(const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes) {
        const ssize_t sent = send(torch.socket, at, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return -1;
        if (sent > 0)
            at += sent, bytes -= (size_t)sent;
    }
    return 0;
}

static int receive_all(void *data, size_t bytes)
{
    char *at = data;

    while (bytes) {
        const ssize_t got = recv(torch.socket, at, bytes, 0);

        if (got == 0 || (got < 0 && errno != EINTR))
            return -1;
        if (got > 0)
            at += got, bytes -= (size_t)got;
    }
    return 0;
}

/* Takes the message. */
static int say(json_t *message)
{
    char *const text = json_dumps(message, JSON_COMPACT);
    const int failed = !text || send_all(text, strlen(text)) || send_all("\n", 1);

    free(text);
    json_decref(message);
    return failed ? -1 : 0;
}

static int refuse_ended(char *why, size_t why_size)
{
    return peer_refuse(why, why_size, "the process that runs PyTorch has ended");
}

/* The answer, which the caller releases; its bytes go to `data`, where there must be `room`.  NULL: why. */
static json_t *hear(void *data, size_t room, char *why, size_t why_size)
{
    char line[1024];
    size_t at = 0;
    json_t *answer;

    do
        if (at == sizeof line - 1 || receive_all(line + at, 1)) {
            refuse_ended(why, why_size);
            return NULL;
        }
    while (line[at++] != '\n');
    line[at] = '\0';
    answer = json_loads(line, 0, NULL);
    if (json_object_get(answer, "why")) {
        peer_refuse(why, why_size, "%s", json_string_value(json_object_get(answer, "why")));
        json_decref(answer);
        return NULL;
    }
    if (!answer || (size_t)json_integer_value(json_object_get(answer, "bytes")) != room ||
        receive_all(data, room)) {
        peer_refuse(why, why_size, "the process that runs PyTorch gave an answer of another length");
        json_decref(answer);
        return NULL;
    }
    return answer;
}

/* The answer to a message, likewise. */
static json_t *exchange(json_t *message, void *data, size_t room, char *why, size_t why_size)
{
    if (!say(message))
        return hear(data, room, why, why_size);
    refuse_ended(why, why_size);
    return NULL;
}

/* A message whose answer is that it was done. */
static int ask(json_t *message)
{
    char why[512];
    json_t *answer;

    if (!torch.process) {
        json_decref(message);
        return -1;
    }
    if (!(answer = exchange(message, NULL, 0, why, sizeof why)))
        return -1;
    json_decref(answer);
    return 0;
}

/* ---- the process ---- */

static void torch_close(void)
{
    if (!torch.process)
        return;
    close(torch.socket);                     /* it ends when it reads no more */
    waitpid(torch.process, NULL, 0);
    torch.process = 0;
}

static int start(char *why, size_t why_size)
{
    char *const arguments[] = { "python3", "-c", (char *)script, "3", NULL };
    posix_spawn_file_actions_t actions;
    int ends[2], failed;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return peer_refuse(why, why_size, "no socket: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    failed = posix_spawnp(&torch.process, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed) {
        torch.process = 0;
        close(ends[0]);
        return peer_refuse(why, why_size, "python3 did not start: %s", strerror(failed));
    }
    torch.socket = ends[0];
    return 0;
}

static int torch_open(const struct peer_context *c, char *why, size_t why_size)
{
    json_t *answer;

    if (torch.process)
        return 0;
    if (start(why, why_size))
        return -1;
    torch.is_cpu = c->is_cpu;
    if (!(answer = exchange(json_pack("{s:s, s:b, s:s}", "do", "open", "cpu", c->is_cpu, "uuid", c->uuid),
                            NULL, 0, why, why_size))) {
        torch_close();
        return -1;
    }
    snprintf(torch.version, sizeof torch.version, "%s",
             json_string_value(json_object_get(answer, "version")));
    json_decref(answer);
    return 0;
}

static const char *torch_version(void)
{
    return torch.version;
}

/* ---- problems ---- */

static int add_softmax(json_t *to, const struct problem *p)
{
    const struct softmax_problem *const s = softmax_of(p);

    return json_object_update_new(to, json_pack("{s:s, s:b, s:b, s:b, s:b, s:f, s:i}", "op", "softmax",
        "backward", p->direction == BACKWARD, "log", s->log, "mask", s->mask != NO_MASK,
        "causal", s->causal, "scale", s->scale == 0 ? 1.0 : s->scale, "axis", s->inner > 1));
}

static int add_attention(json_t *to, const struct problem *p)
{
    static const char *const causal[] = { [VN_CAUSAL_NONE] = "", [VN_CAUSAL_FIRST] = "first",
                                          [VN_CAUSAL_LAST] = "last" };
    const struct attention_problem *const a = attention_of(p);

    return json_object_update_new(to, json_pack("{s:s, s:b, s:s, s:b, s:b, s:o}", "op", "attention",
        "backward", p->direction == BACKWARD, "causal", causal[a->causal], "mask", a->mask != NO_SCORE_MASK,
        "lacks", a->window || a->softcap != 0 || (a->lse && p->direction == FORWARD) || a->sinks || a->page,
        "scale", a->scale == 0 ? json_null() : json_real(a->scale)));
}

static const struct op *const has[] = { &op_softmax, &op_attention, NULL };
static int (*const add[])(json_t *to, const struct problem *p) = { add_softmax, add_attention };

static json_t *sizes_of(const int64_t *from, int count)
{
    json_t *const list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(from[i]));
    return list;
}

/* What a problem is, and its operands, whose bytes follow the message. */
static json_t *described(const struct problem *p, const struct operands *o, int which, int id)
{
    json_t *const list = json_array(), *const message = json_pack("{s:s, s:i}", "do", "prepare", "id", id);

    for (int i = 0; i < o->count; i++)
        if (o->t[i].rank && !is_output(o, i))
            json_array_append_new(list, json_pack("{s:i, s:s, s:o, s:o, s:I, s:I}", "index", i,
                "type", vn_type_name(o->t[i].type), "extent", sizes_of(o->t[i].extent, o->t[i].rank),
                "stride", sizes_of(o->t[i].stride, o->t[i].rank), "start", (json_int_t)o->t[i].start,
                "bytes", (json_int_t)operand_bytes(o, i)));
    json_object_set_new(message, "operands", list);
    add[which](message, p);
    return message;
}

static void torch_finish(void *state)
{
    struct run *r = state;

    if (!r)
        return;
    ask(json_pack("{s:s, s:i}", "do", "finish", "id", r->id));
    free(r);
}

static int torch_prepare(void **out, const struct problem *p, const struct values *data, char *why,
                         size_t why_size)
{
    const int which = peer_operation(has, p, "it is asked for softmax and attention alone", why, why_size);
    struct run *r;
    json_t *answer;

    if (which < 0)
        return -1;
    if (!(r = calloc(1, sizeof *r)))
        return peer_refuse(why, why_size, "out of memory");
    r->id = torch.prepared++;
    if (problem_operands(&r->o, p) || r->o.in_one) {
        free(r);
        return peer_refuse(why, why_size, "it is not asked for operands in one buffer");
    }

    int failed = say(described(p, &r->o, which, r->id));

    for (int i = 0; i < r->o.count && !failed; i++)
        if (r->o.t[i].rank && !is_output(&r->o, i))
            failed = send_all(data->operand[i], operand_bytes(&r->o, i));
    if (failed || !(answer = hear(NULL, 0, why, why_size))) {
        free(r);
        return failed ? refuse_ended(why, why_size) : -1;
    }
    json_decref(answer);
    *out = r;
    return 0;
}

/* ---- running them ---- */

static int torch_run(void *state)
{
    const struct run *r = state;

    return ask(json_pack("{s:s, s:i}", "do", "run", "id", r->id));
}

static double torch_timed(void *const *state, int count, int repeats)
{
    char why[512];
    json_t *const ids = json_array();
    json_t *const message = json_pack("{s:s, s:o, s:i}", "do", "time", "ids", ids, "repeats", repeats);

    for (int i = 0; i < count; i++)
        json_array_append_new(ids, json_integer(((const struct run *)state[i])->id));

    json_t *const answer = exchange(message, NULL, 0, why, sizeof why);
    const double seconds = answer ? json_number_value(json_object_get(answer, "seconds")) : -1;

    json_decref(answer);
    return seconds;
}

/* Its kernel of a softmax's gradient on GPUs takes the product y dy as a tensor of the operands' type
 * (aten/src/ATen/native/cuda/SoftMax.cu); that on CPUs does not. */
static int torch_rounds(void)
{
    return !torch.is_cpu;
}

/* The elements come in the order of their indices. */
static int torch_read(void *state, int i, void *to)
{
    const struct run *r = state;
    const vn_tensor *const t = &r->o.t[i];
    vn_tensor packed = *t;
    char why[512];
    void *elements;
    json_t *answer = NULL;
    int64_t count = 1;

    packed.start = 0;
    for (int d = t->rank - 1; d >= 0; d--) {
        packed.stride[d] = count;
        count *= t->extent[d];
    }

    const size_t bytes = (size_t)count * vn_type_bytes(t->type);

    if ((elements = malloc(bytes ? bytes : 1)) &&
        (answer = exchange(json_pack("{s:s, s:i, s:i}", "do", "read", "id", r->id, "index", i), elements,
                           bytes, why, sizeof why)))
        peer_place(to, t, elements, &packed);
    free(elements);
    json_decref(answer);
    return answer ? 0 : -1;
}

const struct peer peer_torch = { "torch", 0, torch_open, torch_version, torch_prepare, torch_run, torch_timed,
                                 torch_read, torch_finish, torch_close, torch_rounds };
