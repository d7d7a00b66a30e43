/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c - log lines on stderr, and the trace: a timeline of builds and launches.
 *
 *     VERNIER_LOG=choose,build,launch,cache    or "all"
 *     VERNIER_TRACE=FILE                       opens in Perfetto and chrome://tracing
 *
 * This is the only file of the library that prints, and only when one of the two is set.
 *
 * The trace is an array of JSON objects (the Chrome trace-event format). Its readers need no closing
 * bracket, so that a process that dies leaves a valid file as long as only whole events reach it: they
 * are collected in `trace.text`, which is written in one piece.
 */
#include "os.h"
#include "core.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static const struct { enum vn_topic bit; const char *name; } topics[] = {
    { VN_LOG_CHOOSE, "choose" },
    { VN_LOG_BUILD,  "build"  },
    { VN_LOG_LAUNCH, "launch" },
    { VN_LOG_CACHE,  "cache"  },
};
enum { TOPICS = sizeof topics / sizeof topics[0], ALL_TOPICS = (1 << TOPICS) - 1 };

enum { EVENT_BYTES = 512, TEXT_BYTES = 64 * 1024, NAME_BYTES = 64, PENDING = 512 };
enum { HOST = 1, DEVICES };       /* the two "processes" of the timeline */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int logged, traced;        /* set once, by begin(): bits of vn_topic; whether there is a trace */

static struct {
    pthread_mutex_t lock;
    int    fd;                    /* -1: no trace */
    pid_t  pid;                   /* the process that opened it; a forked child must not write to it */
    size_t used;
    char   text[TEXT_BYTES];
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* The launches of a queue whose times are not known yet. */
struct vn_pending {
    int count;
    struct vn_timed {
        char      name[NAME_BYTES];
        double    queued;         /* the time, on the host's clock */
        double    begins, length; /* on the device's clock, from the first event on; set by the flush */
        vn_event *from, *to;
    } launch[PENDING];
};

double vn__seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- writing to the trace; the lock is held ---------------------------------- */

static void drain(void)
{
    size_t done = 0;

    while (done < trace.used) {
        ssize_t n = write(trace.fd, trace.text + done, trace.used - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {             /* the disk is full: what was written stays readable */
            close(trace.fd);
            trace.fd = -1;
            break;
        }
        done += (size_t)n;
    }
    trace.used = 0;
}

/* Writes one event, entirely or not at all. */
static void emit(const char *format, ...)
{
    char event[EVENT_BYTES];
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(event, sizeof event, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof event)
        return;
    if (trace.used + (size_t)n > sizeof trace.text)
        drain();
    if (trace.fd < 0)
        return;
    memcpy(trace.text + trace.used, event, (size_t)n);
    trace.used += (size_t)n;
}

/* Quotes and control characters would end a JSON string, and drivers' names may hold any of them. */
static const char *plain(char out[NAME_BYTES], const char *name)
{
    size_t n = 0;

    for (; name[n] && n < NAME_BYTES - 1; n++) {
        const unsigned char c = (unsigned char)name[n];

        out[n] = c < 0x20 || c > 0x7e || c == '"' || c == '\\' ? '?' : (char)c;
    }
    out[n] = '\0';
    return out;
}

static void emit_name(const char *what, int pid, long row, const char *name)
{
    char text[NAME_BYTES];

    emit(",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%ld,\"args\":{\"name\":\"%s\"}}",
         what, pid, row, plain(text, name));
}

static void emit_span(const char *category, const char *name, int pid, long row, double from, double to)
{
    char kind[NAME_BYTES], text[NAME_BYTES];

    emit(",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%ld,\"ts\":%.3f,\"dur\":%.3f}",
         plain(kind, category), plain(text, name), pid, row, 1e6 * from, 1e6 * (to - from));
}

/* ---- the environment, once --------------------------------------------------- */

static void trace_end(void)
{
    if (trace.pid != getpid())
        return;
    pthread_mutex_lock(&trace.lock);
    emit("\n]\n");
    drain();
    if (trace.fd >= 0)
        close(trace.fd);
    trace.fd = -1;
    pthread_mutex_unlock(&trace.lock);
}

static void trace_begin(const char *path)
{
    /* opening a pipe without a reader is an error; it must not block */
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);

    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (fd < 0) {
        if (logged)
            fprintf(stderr, "vernier log: no trace, %s cannot be opened: %s\n", path, strerror(errno));
        return;
    }
    trace.fd  = fd;
    trace.pid = getpid();
    emit("[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"host\"}}", HOST);
    emit_name("process_name", DEVICES, 0, "devices");
    drain();
    traced = atexit(trace_end) == 0;
}

static int topic_of(const char *name, size_t length)
{
    int i;

    if (length == 0)
        return 0;
    if (length == 3 && strncmp(name, "all", 3) == 0)
        return ALL_TOPICS;
    for (i = 0; i < TOPICS; i++)
        if (strlen(topics[i].name) == length && strncmp(topics[i].name, name, length) == 0)
            return (int)topics[i].bit;
    fprintf(stderr, "vernier log: VERNIER_LOG knows choose, build, launch, cache and all, not \"%.*s\"\n",
            (int)length, name);
    return 0;
}

static void begin(void)
{
    const char *wanted = secure_getenv("VERNIER_LOG"), *path = secure_getenv("VERNIER_TRACE");

    while (wanted && *wanted) {
        const size_t length = strcspn(wanted, ",");

        logged |= topic_of(wanted, length);
        wanted += length + (wanted[length] == ',');
    }
    if (path && *path)
        trace_begin(path);
}

/* ---- log lines --------------------------------------------------------------- */

int vn__logs(enum vn_topic topic)
{
    pthread_once(&once, begin);
    return (logged & (int)topic) != 0;
}

void vn__log(enum vn_topic topic, const char *sentence, ...)
{
    const int saved = errno;
    const char *name = "";
    char line[1024];
    va_list ap;
    int i;

    if (!vn__logs(topic))
        return;
    for (i = 0; i < TOPICS; i++)
        if (topics[i].bit == topic)
            name = topics[i].name;
    va_start(ap, sentence);
    vsnprintf(line, sizeof line, sentence, ap);
    va_end(ap);
    fprintf(stderr, "vernier %s: %s\n", name, line);    /* one call: the lines of threads do not mix */
    errno = saved;
}

/* ---- the trace --------------------------------------------------------------- */

int vn__traces(void)
{
    pthread_once(&once, begin);
    return traced;
}

void vn__trace_span(const char *category, const char *name, double from, double to)
{
    if (!vn__traces())
        return;
    pthread_mutex_lock(&trace.lock);
    emit_span(category, name, HOST, vn__thread_number(), from, to);
    drain();
    pthread_mutex_unlock(&trace.lock);
}

static double seconds_between(vn_event *from, vn_event *to)
{
    double s = 0;

    return from->device->backend->event_seconds(&s, from, to) == VN_OK && s > 0 ? s : 0;
}

void vn__trace_launch(vn_queue *q, const char *variant, vn_event *from, vn_event *to)
{
    struct vn_pending *t = q->trace;

    if (t && t->count == PENDING)
        vn__trace_flush(q);
    if (!q->trace)
        q->trace = calloc(1, sizeof *t);
    if (!(t = q->trace)) {
        vn__event_close(from);
        vn__event_close(to);
        return;
    }
    t->launch[t->count] = (struct vn_timed){ .queued = vn__seconds(), .from = from, .to = to };
    plain(t->launch[t->count].name, variant);
    t->count++;
}

/* The time, on the host's clock, of the first event of these launches. No launch began before it was queued,
 * so that it is no earlier than `queued - begins` of any; a launch on an idle device, as the first usually
 * is, began when it was queued. All of them have ended by now.                           */
static double origin_of(const struct vn_pending *t)
{
    const struct vn_timed *last = &t->launch[t->count - 1];
    const double latest = vn__seconds() - last->begins - last->length;
    double origin = t->launch[0].queued;
    int i;

    for (i = 1; i < t->count; i++)
        if (origin < t->launch[i].queued - t->launch[i].begins)
            origin = t->launch[i].queued - t->launch[i].begins;
    return origin < latest ? origin : latest;
}

void vn__trace_flush(vn_queue *q)
{
    /* Each queue has a row of the timeline; its number may be any that does not change. */
    const long row = (long)((uintptr_t)q / sizeof *q % INT32_MAX);
    struct vn_pending *t = q->trace;
    double origin;
    int i;

    if (!t)
        return;
    for (i = 0; i < t->count; i++) {
        t->launch[i].begins = i == 0 ? 0 : seconds_between(t->launch[0].from, t->launch[i].from);
        t->launch[i].length = seconds_between(t->launch[i].from, t->launch[i].to);
    }
    origin = origin_of(t);

    pthread_mutex_lock(&trace.lock);
    emit_name("thread_name", DEVICES, row, q->device->info.name);
    for (i = 0; i < t->count; i++) {
        const double begins = origin + t->launch[i].begins;

        emit_span("launch", t->launch[i].name, DEVICES, row, begins, begins + t->launch[i].length);
    }
    drain();
    pthread_mutex_unlock(&trace.lock);

    for (i = 0; i < t->count; i++) {
        vn__event_close(t->launch[i].from);
        vn__event_close(t->launch[i].to);
    }
    free(t);
    q->trace = NULL;
}
