/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c - built kernels on disk: a later process loads what an earlier one built.
 *
 *     $VERNIER_CACHE_DIR, or $XDG_CACHE_HOME/vernier, or ~/.cache/vernier;  VERNIER_CACHE=0: none
 *
 * An entry is a header, the text of the key, and the binary. Its file is named by the hash of the key, but
 * the key itself must agree, byte for byte: it holds whatever decides whether a build is valid (driver,
 * device, versions, the text of the kernel).
 *
 * Drivers crash on damaged binaries, so that the hash of the payload is checked first. The hash protects
 * against accidents; ownership protects against malice: files and directory must belong to the user, and
 * must not be writable by others. Some intact binaries crash a driver, too (a bug of its own, or a library
 * that was updated): an entry has the mode bit LOADING while a driver loads it, and an entry that is found
 * with that bit and without a lock has crashed a process.
 *
 * Nothing here fails: errors on disk cost time, and a log line says why.
 */
#include "os.h"
#include "core.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define MAGIC     "vernier\n"
#define EXTENSION ".kernel"
#define TEMPORARY ".tmp-"

enum { FORMAT = 1, CRASHES = 2 };             /* an entry that crashed CRASHES times rests for a day */
enum { LOADING = S_IXUSR, FOR_OTHERS = S_IWGRP | S_IWOTH };
enum { HOUR = 3600, DAY = 24 * HOUR };
static const uint64_t entry_limit = 64u << 20, total_limit = 256u << 20;

#define QUOTE_(x) #x
#define QUOTE(x)  QUOTE_(x)
#define VERSION   QUOTE(VN_VERSION_MAJOR) "." QUOTE(VN_VERSION_MINOR) "." QUOTE(VN_VERSION_PATCH)

/* Each field is compared with its expected value; `crashes` seeds the hash of the payload. */
struct header {
    char          magic[8];
    uint32_t      format, crashes;
    uint64_t      key_bytes, payload_bytes;
    XXH128_hash_t key_hash, payload_hash;
};

struct key {
    char          name[48];       /* of the entry's file */
    char         *text;
    size_t        bytes;
    XXH128_hash_t hash;
};

/* ---- the key ------------------------------------------------------------------ */

/* Programs that had to pass a trial have entries of their own. */
static vn_status key_open(struct key *out, const vn_device *d, const char *text, int proved)
{
    const char *parts[] = { "vernier " VERSION, d->backend->name, d->facts.toolchain,
                            proved ? "proved" : "built", text };
    enum { PARTS = sizeof parts / sizeof parts[0] };
    size_t bytes = 0, at = 0;
    int i;

    for (i = 0; i < PARTS; i++)
        bytes += strlen(parts[i]) + 1;
    if (!(out->text = malloc(bytes)))
        return vn__fail(VN_NO_MEMORY, "host memory ran out: %zu bytes for a key of the cache", bytes);
    for (i = 0; i < PARTS; i++) {            /* with its NUL, so that no two lists give one text */
        memcpy(out->text + at, parts[i], strlen(parts[i]) + 1);
        at += strlen(parts[i]) + 1;
    }
    out->bytes = bytes;
    out->hash  = XXH3_128bits(out->text, bytes);
    snprintf(out->name, sizeof out->name, "%016llx%016llx" EXTENSION,
             (unsigned long long)out->hash.high64, (unsigned long long)out->hash.low64);
    return VN_OK;
}

/* ---- the directory ------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char directory[PATH_MAX];  /* "": no cache */

static void find_directory(void)
{
    static const struct { const char *variable, *below; } places[] = {
        { "VERNIER_CACHE_DIR", ""                },
        { "XDG_CACHE_HOME",    "/vernier"        },
        { "HOME",              "/.cache/vernier" },
    };
    const char *wanted = secure_getenv("VERNIER_CACHE"), *base = NULL;
    size_t i;

    if (wanted && strcmp(wanted, "0") == 0) {
        vn__log(VN_LOG_CACHE, "off, since VERNIER_CACHE is 0");
        return;
    }
    for (i = 0; i < sizeof places / sizeof places[0]; i++) {
        if ((base = secure_getenv(places[i].variable)) && base[0] == '/')
            break;
        if (base && base[0])
            vn__log(VN_LOG_CACHE, "%s is \"%.200s\", which is ignored: it needs an absolute path",
                    places[i].variable, base);
    }
    if (!base || base[0] != '/') {
        vn__log(VN_LOG_CACHE, "off, since none of VERNIER_CACHE_DIR, XDG_CACHE_HOME and HOME "
                "is an absolute path");
        return;
    }
    if ((size_t)snprintf(directory, sizeof directory, "%s%s", base, places[i].below) >= sizeof directory)
        directory[0] = '\0';
}

/* Creates each missing directory of the path, for the user alone. */
static void make_directory(void)
{
    char path[PATH_MAX], *p;

    strcpy(path, directory);
    for (p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0700);
            *p = '/';
        }
    mkdir(path, 0700);
}

static int open_directory(void)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat st;
    int fd;

    pthread_once(&once, find_directory);
    if (!directory[0])
        return -1;
    if ((fd = open(directory, how)) < 0 && errno == ENOENT) {
        make_directory();
        fd = open(directory, how);
    }
    if (fd < 0) {
        vn__log(VN_LOG_CACHE, "%s cannot be opened: %s", directory, strerror(errno));
        return -1;
    }
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & FOR_OTHERS))
        return fd;
    vn__log(VN_LOG_CACHE, "%s is refused: it must belong to user %ld, and others must not write there",
            directory, (long)geteuid());
    close(fd);
    return -1;
}

/* ---- reading an entry ----------------------------------------------------------- */

static int read_all(int fd, void *to, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t n = read(fd, (char *)to + done, bytes - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        done += (size_t)n;
    }
    return 1;
}

/* NULL, or why this file is not trusted. */
static const char *refuse_file(const struct stat *st, const struct key *k)
{
    if (!S_ISREG(st->st_mode))
        return "it is not a regular file";
    if (st->st_uid != geteuid())
        return "it belongs to another user";
    if (st->st_mode & FOR_OTHERS)
        return "others may write to it";
    if ((uint64_t)st->st_size <= sizeof(struct header) + k->bytes || (uint64_t)st->st_size > entry_limit)
        return "its size is wrong";
    return NULL;
}

static const char *refuse_bytes(const unsigned char *file, size_t bytes, const struct key *k)
{
    const unsigned char *text = file + sizeof(struct header), *payload = text + k->bytes;
    const size_t payload_bytes = bytes - sizeof(struct header) - k->bytes;
    struct header h;

    memcpy(&h, file, sizeof h);
    if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0 || h.format != FORMAT)
        return "it is of another format";
    if (h.key_bytes != k->bytes || !XXH128_isEqual(h.key_hash, k->hash) ||
        memcmp(text, k->text, k->bytes) != 0)
        return "it was built from something else";
    if (h.payload_bytes != payload_bytes)
        return "its size is wrong";
    if (!XXH128_isEqual(h.payload_hash, XXH3_128bits_withSeed(payload, payload_bytes, h.crashes)))
        return "it is damaged";
    return NULL;
}

/* Reads the whole entry and checks it. NULL: it is missing, or refused. */
static unsigned char *read_entry(size_t *bytes, int *fd, int dir, const struct key *k)
{
    unsigned char *file = NULL;
    const char *why;
    struct stat st;

    /* O_NONBLOCK: a FIFO must not block. */
    if ((*fd = openat(dir, k->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0) {
        if (errno != ENOENT)
            vn__log(VN_LOG_CACHE, "%s cannot be opened: %s", k->name, strerror(errno));
        return NULL;
    }
    why = fstat(*fd, &st) == 0 ? refuse_file(&st, k) : "it cannot be examined";
    if (!why) {
        *bytes = (size_t)st.st_size;
        file = malloc(*bytes);
        why = !file ? "there is no memory for it"
            : !read_all(*fd, file, *bytes) ? "it cannot be read" : refuse_bytes(file, *bytes, k);
    }
    if (!why)
        return file;
    vn__log(VN_LOG_CACHE, "%s is refused: %s", k->name, why);
    free(file);
    close(*fd);
    return NULL;
}

/* ---- loading an entry ------------------------------------------------------------ */

enum guard { UNGUARDED, GUARDED, CRASHED };

/* One process at a time holds the guard; others load without it meanwhile, as do all on file systems
 * without locks. The lock of a dead process is gone, but its mode bit stays.             */
static enum guard guard_begin(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return UNGUARDED;
    if (fstat(fd, &st) == 0 && st.st_mode & LOADING)
        return CRASHED;
    if (fchmod(fd, S_IRUSR | S_IWUSR | LOADING) == 0)
        return GUARDED;
    flock(fd, LOCK_UN);
    return UNGUARDED;
}

static void guard_end(int fd, enum guard g)
{
    if (g == UNGUARDED)
        return;
    if (g == GUARDED)
        fchmod(fd, S_IRUSR | S_IWUSR);
    flock(fd, LOCK_UN);           /* explicitly, since a forked child may hold the descriptor, too */
}

/* The result of a look-up. */
struct found {
    int      loaded;
    int      spare;               /* not to be stored: this binary crashes repeatedly */
    uint32_t crashes;
};

static void weigh_crash(struct found *f, int fd, const struct key *k, uint32_t before)
{
    struct stat st;

    f->crashes = before + 1;
    if (fstat(fd, &st) == 0 && time(NULL) - st.st_mtime > DAY)
        f->crashes = 0;
    f->spare = f->crashes >= CRASHES;
    vn__log(VN_LOG_CACHE, "%s is refused: a process died while its driver loaded it", k->name);
}

static struct found load(void **program, vn_device *d, int dir, const struct key *k)
{
    struct found f = { 0, 0, 0 };
    double began = vn__seconds();
    struct header h;
    unsigned char *file;
    size_t bytes, start = sizeof h + k->bytes;
    enum guard g;
    int fd;

    if (!(file = read_entry(&bytes, &fd, dir, k)))
        return f;
    memcpy(&h, file, sizeof h);
    if ((g = guard_begin(fd)) == CRASHED)
        weigh_crash(&f, fd, k, h.crashes);
    else
        f.loaded = d->backend->program_load(program, d, file + start, bytes - start) == VN_OK;
    guard_end(fd, g);
    if (f.loaded) {
        futimens(fd, NULL);       /* most recently used: the last to be removed */
        vn__log(VN_LOG_CACHE, "%s: %zu bytes loaded in %.2f ms", k->name, bytes - start,
                1e3 * (vn__seconds() - began));
        vn__trace_span("cache", k->name, began, vn__seconds());
    } else if (g != CRASHED) {
        vn__log(VN_LOG_CACHE, "%s is refused by the driver: %s", k->name, vn_last_error());
    }
    free(file);
    close(fd);
    return f;
}

/* ---- storing an entry ------------------------------------------------------------ */

static int write_all(int fd, const void *from, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t n = write(fd, (const char *)from + done, bytes - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        done += (size_t)n;
    }
    return 1;
}

static int write_entry(int dir, const char *name, const struct key *k, uint32_t crashes,
                       const void *payload, size_t bytes)
{
    struct header h = {
        .format    = FORMAT,
        .crashes   = crashes,
        .key_bytes = k->bytes,
        .key_hash  = k->hash,
        .payload_bytes = bytes,
        .payload_hash  = XXH3_128bits_withSeed(payload, bytes, crashes),
    };
    const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    int good;

    if (fd < 0)
        return 0;
    memcpy(h.magic, MAGIC, sizeof h.magic);
    good = write_all(fd, &h, sizeof h) && write_all(fd, k->text, k->bytes) && write_all(fd, payload, bytes)
        && fsync(fd) == 0;
    return close(fd) == 0 && good;
}

/* Beyond RLIMIT_FSIZE a write raises a signal that kills the process, instead of an error. */
static int is_allowed(uint64_t bytes)
{
    struct rlimit r;

    return bytes <= entry_limit
        && (getrlimit(RLIMIT_FSIZE, &r) != 0 || r.rlim_cur == RLIM_INFINITY || bytes <= r.rlim_cur);
}

/* Readers see the old entry or the new one, entire, whenever this process or the machine stops. */
static int replace_entry(int dir, const struct key *k, uint32_t crashes, const void *payload, size_t bytes)
{
    char name[32];
    uint64_t any;
    int good;

    if (getrandom(&any, sizeof any, GRND_NONBLOCK) != sizeof any)
        return 0;
    snprintf(name, sizeof name, TEMPORARY "%016llx", (unsigned long long)any);
    good = write_entry(dir, name, k, crashes, payload, bytes)
        && (renameat(dir, name, dir, k->name) == 0
            /* a directory must be removed before a file can have its name */
            || (unlinkat(dir, k->name, AT_REMOVEDIR) == 0 && renameat(dir, name, dir, k->name) == 0));
    if (good) {
        fsync(dir);
    } else {
        const int saved = errno;

        unlinkat(dir, name, 0);
        errno = saved;
    }
    return good;
}

/* ---- keeping it small ------------------------------------------------------------- */

struct file { char name[48]; uint64_t bytes; struct timespec used; };

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct file *)a)->used, *y = &((const struct file *)b)->used;

    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* The directory may be any: only files with names of entries are touched. */
static int is_entry(const char *name)
{
    return strspn(name, "0123456789abcdef") == 32 && strcmp(name + 32, EXTENSION) == 0;
}

static int is_temporary(const char *name)
{
    const size_t n = strlen(TEMPORARY);

    return strncmp(name, TEMPORARY, n) == 0 && strspn(name + n, "0123456789abcdef") == 16 &&
           name[n + 16] == '\0';
}

/* Lists the entries, and removes temporary files of dead processes. */
static struct file *list(size_t *count, int dir)
{
    struct file *files = NULL, *more;
    struct dirent *e;
    struct stat st;
    DIR *all;
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *count = 0;
    if (fd < 0 || !(all = fdopendir(fd))) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    while ((e = readdir(all))) {
        if ((!is_entry(e->d_name) && !is_temporary(e->d_name))
            || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(st.st_mode))
            continue;
        if (is_temporary(e->d_name)) {
            if (time(NULL) - st.st_mtime > HOUR)
                unlinkat(dir, e->d_name, 0);
            continue;
        }
        if ((*count & (*count - 1)) == 0) {      /* grows at 0, 1, 2, 4, 8... */
            if (!(more = realloc(files, (*count ? 2 * *count : 1) * sizeof *files)))
                break;
            files = more;
        }
        files[*count].bytes = (uint64_t)st.st_size;
        files[*count].used  = VN_TIME_USED(st);
        strcpy(files[(*count)++].name, e->d_name);
    }
    closedir(all);
    return files;
}

static void trim(int dir)
{
    uint64_t total = 0;
    size_t count, i;
    struct file *files = list(&count, dir);

    for (i = 0; i < count; i++)
        total += files[i].bytes;
    if (total > total_limit)
        qsort(files, count, sizeof *files, by_use);
    for (i = 0; i < count && total > total_limit; i++) {
        vn__log(VN_LOG_CACHE, "%s is removed to make room", files[i].name);
        unlinkat(dir, files[i].name, 0);
        total -= files[i].bytes;
    }
    free(files);
}

static void store(vn_device *d, void *program, int dir, const struct key *k, uint32_t crashes)
{
    double began = vn__seconds();
    void *payload = NULL;
    size_t bytes = 0;
    int good;

    if (d->backend->program_save(program, &payload, &bytes) != VN_OK || bytes == 0) {
        vn__log(VN_LOG_CACHE, "%s is not stored: the driver gives no binary", k->name);
        free(payload);
        return;
    }
    errno = EFBIG;
    good = is_allowed(sizeof(struct header) + k->bytes + bytes) &&
           replace_entry(dir, k, crashes, payload, bytes);
    if (good)
        vn__log(VN_LOG_CACHE, "%s: %zu bytes stored in %.2f ms", k->name, bytes,
                1e3 * (vn__seconds() - began));
    else
        vn__log(VN_LOG_CACHE, "%s is not stored: %s", k->name, strerror(errno));
    vn__trace_span("cache", k->name, began, vn__seconds());
    trim(dir);
    free(payload);
}

/* ---- programs that were built, but not stored yet ------------------------------------- */

struct unsaved {
    struct unsaved *next;
    vn_device      *device;
    void           *program;
    pthread_t       builder;
    struct key      key;
    uint32_t        crashes;
};

static pthread_mutex_t unsaved_lock = PTHREAD_MUTEX_INITIALIZER;
static struct unsaved *unsaved;   /* usually NULL, which settle() sees without the lock */

/* Takes ownership of the key. */
static void remember(vn_device *d, void *program, struct key *k, uint32_t crashes)
{
    struct unsaved *u = malloc(sizeof *u);

    if (!u)
        return;
    *u = (struct unsaved){ NULL, d, program, pthread_self(), *k, crashes };
    k->text = NULL;
    pthread_mutex_lock(&unsaved_lock);
    u->next = unsaved;
    __atomic_store_n(&unsaved, u, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&unsaved_lock);
}

/* The first that this thread built for d or, if `program` is given, that one; NULL if there is none. */
static struct unsaved *recall(const vn_device *d, const void *program)
{
    struct unsaved **at, *u;

    if (!__atomic_load_n(&unsaved, __ATOMIC_ACQUIRE))
        return NULL;
    pthread_mutex_lock(&unsaved_lock);
    for (at = &unsaved; (u = *at); at = &u->next)
        if (u->device == d && (program ? u->program == program : pthread_equal(u->builder, pthread_self())))
            break;
    if (u)
        __atomic_store_n(at, u->next, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&unsaved_lock);
    return u;
}

static void unsaved_close(struct unsaved *u)
{
    free(u->key.text);
    free(u);
}

static void save(struct unsaved *u)
{
    const int dir = open_directory();

    if (dir >= 0) {
        store(u->device, u->program, dir, &u->key, u->crashes);
        close(dir);
    }
    unsaved_close(u);
}

void vn__cache_settle(vn_device *d)
{
    struct unsaved *u;

    while ((u = recall(d, NULL)))
        save(u);
}

void vn__cache_forget(vn_device *d, void *program)
{
    struct unsaved *u = recall(d, program);

    if (u)
        unsaved_close(u);
}

void vn__cache_close(vn_device *d, void *program)
{
    struct unsaved *u = recall(d, program);

    if (u)
        save(u);
    d->backend->program_close(program);
}

/* ---- building ---------------------------------------------------------------------- */

static vn_status build(void **program, vn_device *d, const char *text, const struct key *k)
{
    double began = vn__seconds();
    vn_status s = d->backend->program_build(program, d, text);

    vn__log(VN_LOG_BUILD, "%s: %s in %.1f ms", k->name, s == VN_OK ? "built" : "failed",
            1e3 * (vn__seconds() - began));
    vn__trace_span("build", k->name, began, vn__seconds());
    return s;
}

vn_status vn__cache_build(void **program, int *proved, vn_device *d, const char *text)
{
    struct found f = { 0, 0, 0 };
    struct key k;
    vn_status s;
    int dir;

    if ((s = key_open(&k, d, text, proved != NULL)))
        return s;
    if ((dir = open_directory()) >= 0)
        f = load(program, d, dir, &k);
    if (!f.loaded) {
        s = build(program, d, text, &k);
        if (s == VN_OK && dir >= 0 && !f.spare)
            remember(d, *program, &k, f.crashes);
    }
    if (dir >= 0)
        close(dir);
    if (proved)
        *proved = f.loaded;
    free(k.text);
    return s;
}

/* ---- what is kept -------------------------------------------------------------------- */

const char *vn__cache_directory(void)
{
    pthread_once(&once, find_directory);
    return directory;
}

/* A field of the key; returns what is behind it. NULL: the text ends before that, or it has no room. */
static const char *read_field(char *out, size_t room, const char *at, const char *end)
{
    const char *const stop = at ? memchr(at, 0, (size_t)(end - at)) : NULL;

    if (!stop || (size_t)(stop - at) >= room)
        return NULL;
    memcpy(out, at, (size_t)(stop - at) + 1);
    return stop + 1;
}

/* Reads the beginning of an entry, which says what it is of. */
static void examine(struct vn_cached *it, int dir)
{
    char file[sizeof(struct header) + 1024], version[32] = "";
    const char *at = file + sizeof(struct header);
    const int fd = openat(dir, it->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, file, sizeof file);
    struct header h;

    if (fd >= 0)
        close(fd);
    if (n <= (ssize_t)sizeof h)
        return;
    memcpy(&h, file, sizeof h);
    at = read_field(version, sizeof version, at, file + n);
    at = read_field(it->backend, sizeof it->backend, at, file + n);
    read_field(it->toolchain, sizeof it->toolchain, at, file + n);
    it->current = !memcmp(h.magic, MAGIC, sizeof h.magic) && h.format == FORMAT &&
                  !strcmp(version, "vernier " VERSION) && h.key_bytes <= it->bytes &&
                  h.payload_bytes == it->bytes - sizeof h - h.key_bytes;
}

vn_status vn__cache_list(struct vn_cached **out, size_t *count)
{
    const int dir = open_directory();
    struct file *files;

    *out = NULL;
    *count = 0;
    if (dir < 0)
        return vn__fail(VN_FAILED, "%s: there is no such directory, or it is not the user's own",
                        directory[0] ? directory : "VERNIER_CACHE is 0");
    files = list(count, dir);
    if (*count && !(*out = calloc(*count, sizeof **out))) {
        free(files);
        close(dir);
        return vn__fail(VN_NO_MEMORY, "host memory ran out: a list of %zu entries", *count);
    }
    if (*count)
        qsort(files, *count, sizeof *files, by_use);
    for (size_t i = 0; i < *count; i++) {
        struct vn_cached *const it = *out + i;

        *it = (struct vn_cached){ .bytes = files[i].bytes, .used = (int64_t)files[i].used.tv_sec };
        strcpy(it->name, files[i].name);
        examine(it, dir);
    }
    free(files);
    close(dir);
    return VN_OK;
}

int vn__cache_remove(const char *name)
{
    const int dir = is_entry(name) ? open_directory() : -1;
    int error;

    if (dir < 0)
        return ENOENT;
    error = unlinkat(dir, name, 0) ? errno : 0;
    close(dir);
    return error;
}
