/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cache.c - attacks on the cache of built kernels.
 *
 * They run on a driver made up here, which knows to the byte what it may be shown.
 * Whatever is on disk, it must see nothing else, the caller must get the right program,
 * and the entry must be good again afterwards.
 *
 * Each group runs in a process of its own, for the library reads the environment once.
 * This program's own read(), write()... come before those of the C library: they can
 * fail, or kill the process, at any one call.
 */
#define _GNU_SOURCE
#include "core.h"
#include "../disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 64, PAYLOAD_BYTES_AT = 24 };          /* see cache.c */
enum { PAYLOAD = 20000, NOBODY = 65534, HOUR = 3600, DAY = 24 * HOUR };

static struct { int cases, failures; } *tally;        /* shared with the groups' processes */
static char base[PATH];                               /* a directory for all this */
static char dir[PATH], entry[PATH];                   /* the cache, and the one entry attacked */

/* ---- the driver ------------------------------------------------------------------ */

enum mood { CALM, REFUSES, DIES, WAITS, GIVES_NOTHING };

static __thread int         builds, wrong;
static __thread const char *wanted;                   /* the text that the next program is of */
static enum mood            mood;
static struct vn_device     device;

static void payload_of(unsigned char *out, const char *toolchain, const char *text)
{
    uint64_t x = 0xcbf29ce484222325u;

    for (; *toolchain; toolchain++)
        x = (x ^ (unsigned char)*toolchain) * 0x100000001b3u;
    for (; *text; text++)
        x = (x ^ (unsigned char)*text) * 0x100000001b3u;
    for (int i = 0; i < PAYLOAD; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        out[i] = (unsigned char)(x >> 24);
    }
}

static vn_status fake_build(void **out, vn_device *d, const char *text)
{
    builds++;
    if (!(*out = malloc(PAYLOAD)))
        return VN_NO_MEMORY;
    payload_of(*out, d->facts.toolchain, text);
    return VN_OK;
}

static int loading[2], go_on[2];          /* pipes: a process that WAITS says that it loads, and is told on */

static vn_status fake_load(void **out, vn_device *d, const void *blob, size_t bytes)
{
    unsigned char right[PAYLOAD];
    char word;

    payload_of(right, d->facts.toolchain, wanted);
    if (bytes != PAYLOAD || memcmp(blob, right, PAYLOAD) != 0)
        wrong++;
    if (mood == DIES)
        raise(SIGKILL);
    if (mood == REFUSES)
        return VN_FAILED;
    if (mood == WAITS && (write(loading[1], "", 1) != 1 || read(go_on[0], &word, 1) != 1))
        return VN_FAILED;
    if (!(*out = malloc(PAYLOAD)))
        return VN_NO_MEMORY;
    memcpy(*out, blob, bytes < PAYLOAD ? bytes : PAYLOAD);
    return VN_OK;
}

static vn_status fake_save(void *program, void **blob, size_t *bytes)
{
    if (mood == GIVES_NOTHING) {
        *blob = NULL;
        *bytes = 0;
        return VN_OK;
    }
    if (!(*blob = malloc(PAYLOAD)))
        return VN_NO_MEMORY;
    memcpy(*blob, program, PAYLOAD);
    *bytes = PAYLOAD;
    return VN_OK;
}

static const struct vn_backend fake = {
    .name = "fake",
    .program_build = fake_build, .program_load = fake_load, .program_save = fake_save, .program_close = free,
};

/* ---- faults at the n-th call ------------------------------------------------------- */

enum { DEATH = -1, HALF = -2 };
static struct { int on, at, calls, kind; } fault;     /* kind: DEATH, HALF or an errno */

static int strikes(void)
{
    if (!fault.on || ++fault.calls != fault.at)
        return 0;
    if (fault.kind == DEATH)
        raise(SIGKILL);
    errno = fault.kind;
    return fault.kind != HALF;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAULTY(type, name, parameters, arguments) \
    type name parameters { return strikes() ? (type)-1 : REAL(name) arguments; }

FAULTY(int, fsync, (int fd), (fd))
FAULTY(int, flock, (int fd, int how), (fd, how))
FAULTY(int, fchmod, (int fd, mode_t mode), (fd, mode))
FAULTY(int, futimens, (int fd, const struct timespec t[2]), (fd, t))
FAULTY(int, unlinkat, (int at, const char *path, int how), (at, path, how))
FAULTY(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
FAULTY(ssize_t, getrandom, (void *to, size_t bytes, unsigned how), (to, bytes, how))

int openat(int at, const char *path, int how, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, how);
    mode = how & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return strikes() ? -1 : REAL(openat)(at, path, how, mode);
}

ssize_t read(int fd, void *to, size_t bytes)
{
    if (strikes())
        return -1;
    return REAL(read)(fd, to, fault.on && fault.kind == HALF && bytes > 1 ? bytes / 2 : bytes);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    if (strikes())
        return -1;
    return REAL(write)(fd, from, fault.on && fault.kind == HALF && bytes > 1 ? bytes / 2 : bytes);
}

/* ---- cases -------------------------------------------------------------------------- */

enum outcome { BUILT = 1, LOADED = 2, EITHER = 3, FAILED = 4, SAW_WRONG = 8, GAVE_WRONG = 16 };
static const char *const outcome_names[] = {
    [BUILT] = "built", [LOADED] = "loaded", [EITHER] = "built or loaded", [FAILED] = "failed",
    [SAW_WRONG] = "the driver saw wrong bytes", [GAVE_WRONG] = "the program is wrong",
};

static enum outcome run(const char *text)
{
    unsigned char right[PAYLOAD];
    void *program = NULL;
    int is_right;

    wanted = text;
    builds = wrong = 0;
    if (vn__cache_build(&program, NULL, &device, text))
        return FAILED;
    vn__cache_settle(&device);
    payload_of(right, device.facts.toolchain, text);
    is_right = memcmp(program, right, PAYLOAD) == 0;
    vn__cache_close(&device, program);
    return wrong ? SAW_WRONG : !is_right ? GAVE_WRONG : builds ? BUILT : LOADED;
}

__attribute__((format(printf, 2, 3)))
static void check(int good, const char *what, ...)
{
    va_list ap;

    __atomic_add_fetch(&tally->cases, 1, __ATOMIC_RELAXED);
    if (good)
        return;
    __atomic_add_fetch(&tally->failures, 1, __ATOMIC_RELAXED);
    printf("FAIL cache: ");
    va_start(ap, what);
    vprintf(what, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
}

/* One case: what comes of the program now, and of the same one once more. */
__attribute__((format(printf, 3, 4)))
static void expect(enum outcome first, enum outcome then, const char *what, ...)
{
    const enum outcome a = run("text"), b = run("text");
    char name[200];
    va_list ap;

    va_start(ap, what);
    vsnprintf(name, sizeof name, what, ap);
    va_end(ap);
    check(a & first && b & then, "%s: %s, then %s; expected: %s, then %s", name, outcome_names[a],
          outcome_names[b], outcome_names[first], outcome_names[then]);
}

/* ---- files -------------------------------------------------------------------------- */

static unsigned char good[65536];                     /* the entry as it should be */
static size_t good_bytes, key_bytes;

static void put_aged(const char *name, off_t bytes, long seconds)
{
    char path[PATH + 100];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    put(path, "", 0);
    if (truncate(path, bytes) != 0)
        perror(path);
    age(path, seconds);
}

static int exists(const char *name)
{
    char path[PATH + 100];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void heal(void)
{
    put(entry, good, good_bytes);
}

/* An empty cache in use, with one good entry, of which `good` is a copy. */
static void begin(void)
{
    wipe(dir);
    setenv("VERNIER_CACHE_DIR", dir, 1);
    check(run("text") == BUILT, "the first build");
    check(look(dir, entry) == 1, "one build makes one file");
    check(run("text") == LOADED, "the first load");
    good_bytes = get(entry, good, sizeof good);
    key_bytes = good_bytes - HEADER - PAYLOAD;
    check(good_bytes > HEADER + PAYLOAD && good_bytes < sizeof good, "an entry of %zu bytes", good_bytes);
}

/* ---- groups: contents ----------------------------------------------------------------- */

static void truncated(void)
{
    size_t n;

    begin();
    for (n = 0; n < good_bytes; n += n < HEADER + key_bytes ? 1 : PAYLOAD / 100) {
        put(entry, good, n);
        expect(BUILT, LOADED, "truncated to %zu bytes", n);
    }
    put(entry, good, good_bytes - 1);
    expect(BUILT, LOADED, "truncated by one byte");
}

static void flipped(void)
{
    static unsigned char bad[sizeof good];
    size_t bit;

    begin();
    for (bit = 0; bit < 8 * good_bytes; bit += bit < 8 * (HEADER + key_bytes) ? 1 : 8 * PAYLOAD / 1000 - 1) {
        memcpy(bad, good, good_bytes);
        bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
        put(entry, bad, good_bytes);
        expect(BUILT, LOADED, "bit %zu of byte %zu flipped", bit % 8, bit / 8);
    }
}

static void appended(void)
{
    static unsigned char bad[2 * sizeof good];
    size_t n;

    begin();
    for (n = 1; n <= 4096; n *= 2)
        for (int tells = 0; tells < 2; tells++) {     /* says the header so, too? */
            const uint64_t bytes = PAYLOAD + n;

            memcpy(bad, good, good_bytes);
            if (tells)
                memcpy(bad + PAYLOAD_BYTES_AT, &bytes, sizeof bytes);
            put(entry, bad, good_bytes + n);
            expect(BUILT, LOADED, "%zu bytes appended%s", n, tells ? ", and the header agrees" : "");
        }
    put(entry, good, good_bytes);
    if (truncate(entry, (off_t)1 << 40) == 0)
        expect(BUILT, LOADED, "a file of a terabyte");
}

/* Another key under this name, with all hashes as they should be. */
static void forged(void)
{
    static unsigned char bad[sizeof good];
    size_t i;

    begin();
    for (i = 0; i < key_bytes; i++) {
        memcpy(bad, good, good_bytes);
        bad[HEADER + i] ^= 1;
        put(entry, bad, good_bytes);
        expect(BUILT, LOADED, "byte %zu of the key differs", i);
    }
}

/* The entry of another device, driver, text or backend is not this one's, by whatever name. */
static void confused(void)
{
    static const char *const toolchains[] = {
        "", "platform 1; device A; driver 1.1", "platform 1; device B; driver 1.0",
        "platform 2; device A; driver 1.0",
        "platform 1; device A; driver 1.0 ", "platform 1; device A; driver 1.0\ntext",
    };
    struct vn_backend other = fake;
    char own[PATH + 100];
    size_t i;

    begin();
    strcpy(own, entry);
    for (i = 0; i < sizeof toolchains / sizeof toolchains[0]; i++) {
        wipe(dir);
        strcpy(device.facts.toolchain, toolchains[i]);
        check(run("text") == BUILT, "toolchain \"%s\" builds its own", toolchains[i]);
        check(look(dir, entry) == 1, "toolchain \"%s\" stores its own", toolchains[i]);
        check(strcmp(entry, own) != 0, "toolchain \"%s\" has a name of its own", toolchains[i]);
        rename(entry, own);
        strcpy(entry, own);
        strcpy(device.facts.toolchain, "platform 1; device A; driver 1.0");
        expect(BUILT, LOADED, "the entry of toolchain \"%s\"", toolchains[i]);
    }
    check(run("other text") == BUILT && run("other text") == LOADED && run("text") == LOADED, "two texts");
    other.name = "other";
    device.backend = &other;
    expect(BUILT, LOADED, "another backend");
}

/* ---- groups: files and directories ------------------------------------------------------ */

static void make_link(void)      { char to[PATH + 100]; snprintf(to, sizeof to, "%s/elsewhere", base);
                                   rename(entry, to);
                                   if (symlink(to, entry)) perror(entry); }
static void make_dangling(void)  { wipe(entry); if (symlink("nowhere", entry)) perror(entry); }
static void make_loop(void)      { wipe(entry); if (symlink(strrchr(entry, '/') + 1, entry)) perror(entry); }
static void make_fifo(void)      { wipe(entry); mkfifo(entry, 0600); }
static void make_directory(void) { wipe(entry); mkdir(entry, 0700); }
static void make_device(void)    { wipe(entry);
                                   if (mknod(entry, S_IFCHR | 0600, 0x103)) mkfifo(entry, 0600); }
static void make_foreign(void)   { if (geteuid() != 0 || chown(entry, NOBODY, (gid_t)-1)) wipe(entry); }
static void make_crowded(void)
{
    char below[PATH + 100];

    make_directory();
    snprintf(below, sizeof below, "%s/file", entry);
    put(below, "x", 1);
}

static void kinds(void)
{
    static const struct { const char *what; void (*make)(void); enum outcome then; } attacks[] = {
        { "a symbolic link to a good entry", make_link,      LOADED },
        { "a symbolic link to nowhere",      make_dangling,  LOADED },
        { "a symbolic link to itself",       make_loop,      LOADED },
        { "a FIFO",                          make_fifo,      LOADED },
        { "a directory",                     make_directory, LOADED },
        { "a directory that is not empty",   make_crowded,   BUILT  },
        { "a character device",              make_device,    LOADED },
        { "an entry of another user",        make_foreign,   LOADED },
    };

    begin();
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        heal();
        attacks[i].make();
        expect(BUILT, attacks[i].then, "%s", attacks[i].what);
    }
    for (mode_t mode = 0; mode < 0777; mode++) {
        heal();
        chmod(entry, mode | 0600);
        expect(mode & 0122 ? BUILT : LOADED, LOADED, "an entry of mode %o", (unsigned)mode | 0600);
    }
}

/* Refused before anything is looked at; good again as soon as its mode is. */
static void shared(void)
{
    char other[PATH + 100];

    begin();
    for (mode_t mode = 0; mode <= 07777; mode = mode == 0777 ? 01777 : mode == 01777 ? 07777 : mode + 1) {
        const enum outcome o = mode & 022 ? BUILT : LOADED;

        heal();
        chmod(dir, mode | 0700);
        expect(o, o, "a directory of mode %o", (unsigned)mode | 0700);
        if (mode == 07777)
            break;
    }
    chmod(dir, 0700);
    expect(LOADED, LOADED, "the directory of mode 700 again");
    if (geteuid() == 0 && chown(dir, NOBODY, (gid_t)-1) == 0) {
        expect(BUILT, BUILT, "a directory of another user");
        check(chown(dir, 0, (gid_t)-1) == 0, "the directory is ours again");
    }
    snprintf(other, sizeof other, "%s-moved", dir);
    if (rename(dir, other) == 0 && symlink(other, dir) == 0)
        expect(BUILT, BUILT, "a symbolic link to a good directory");
    wipe(dir);
    put(dir, "file", 4);
    expect(BUILT, BUILT, "a file for a directory");
    wipe(dir);
    wipe(other);
    expect(BUILT, LOADED, "a directory that was removed meanwhile");
}

static void readonly(void)
{
    wipe(dir);
    mkdir(dir, 0700);
    if (geteuid() == 0 && (chown(dir, NOBODY, NOBODY) || chmod(base, 0755) || setgid(NOBODY)
                           || setuid(NOBODY)))
        return;                   /* root may write everywhere */
    begin();
    chmod(dir, 0500);
    expect(LOADED, LOADED, "a read-only directory");
    check(run("new") == BUILT && run("new") == BUILT, "a new program in a read-only directory");
    chmod(entry, 0400);
    expect(LOADED, LOADED, "a read-only entry in a read-only directory");
    chmod(entry, 0000);
    expect(BUILT, BUILT, "an unreadable entry in a read-only directory");
    chmod(dir, 0000);
    expect(BUILT, BUILT, "an unreadable directory");
    chmod(dir, 0700);
    expect(BUILT, LOADED, "an unreadable entry");
}

/* ---- groups: the environment -------------------------------------------------------------- */

struct setting { const char *what, *variables[4][2], *stored; };    /* $ is the directory of the test */
static const struct setting *setting;

static void environment(void)
{
    char value[PATH + 100], where[PATH + 100];

    unsetenv("VERNIER_CACHE_DIR"), unsetenv("XDG_CACHE_HOME"), unsetenv("HOME"), unsetenv("VERNIER_CACHE");
    snprintf(value, sizeof value, "%s/tree", base);
    wipe(value);
    mkdir(value, 0700);
    if (chdir(value))
        perror(value);
    for (int i = 0; i < 4 && setting->variables[i][0]; i++) {
        const char *v = setting->variables[i][1];

        snprintf(value, sizeof value, "%s%s", *v == '$' ? base : "", *v == '$' ? v + 1 : v);
        setenv(setting->variables[i][0], value, 1);
    }
    expect(BUILT, setting->stored ? LOADED : BUILT, "%s", setting->what);
    snprintf(where, sizeof where, "%s/tree%s", base, setting->stored ? setting->stored : "");
    if (setting->stored) {
        struct stat st;

        check(stat(where, &st) == 0 && (st.st_mode & 0777) == 0700, "%s: a new directory is of mode 700",
              setting->what);
        check(look(where, NULL) == 1, "%s: is at %s", setting->what, where);
    } else {
        check(look(where, NULL) == 0, "%s: touches nothing", setting->what);
    }
}

static const struct setting settings[] = {
    { "all three directories", { { "VERNIER_CACHE_DIR", "$/tree/a/b/c" }, { "XDG_CACHE_HOME", "$/tree/x" },
                                 { "HOME", "$/tree/h" } }, "/a/b/c" },
    { "XDG_CACHE_HOME and HOME", { { "XDG_CACHE_HOME", "$/tree/x" }, { "HOME", "$/tree/h" } }, "/x/vernier" },
    { "HOME", { { "HOME", "$/tree/h" } }, "/h/.cache/vernier" },
    { "an empty VERNIER_CACHE_DIR", { { "VERNIER_CACHE_DIR", "" }, { "HOME", "$/tree/h" } },
      "/h/.cache/vernier" },
    { "a relative XDG_CACHE_HOME", { { "XDG_CACHE_HOME", "x" }, { "HOME", "$/tree/h" } },
      "/h/.cache/vernier" },
    { "VERNIER_CACHE=1", { { "VERNIER_CACHE", "1" }, { "HOME", "$/tree/h" } }, "/h/.cache/vernier" },
    { "VERNIER_CACHE=0", { { "VERNIER_CACHE", "0" }, { "VERNIER_CACHE_DIR", "$/tree/a" } }, NULL },
    { "no variable", { { NULL, NULL } }, NULL },
    { "a relative HOME", { { "HOME", "h" } }, NULL },
    { "an empty HOME", { { "HOME", "" } }, NULL },
};

static void overlong(void)
{
    static char path[8192];

    memset(path, '/', sizeof path - 1);
    setenv("VERNIER_CACHE_DIR", path, 1);
    expect(BUILT, BUILT, "a path of 8191 bytes");
}

/* ---- groups: disks that fail, processes that die --------------------------------------------- */

static void full(void)
{
    size_t limit;

    begin();
    for (limit = 0; limit < good_bytes; limit += 499) {
        const struct rlimit small = { limit, RLIM_INFINITY };
        struct rlimit whole;

        getrlimit(RLIMIT_FSIZE, &whole);
        wipe(entry);
        setrlimit(RLIMIT_FSIZE, &small);
        expect(BUILT, BUILT, "files of at most %zu bytes", limit);
        setrlimit(RLIMIT_FSIZE, &whole);
        check(look(dir, NULL) == 0, "files of at most %zu bytes: nothing is left", limit);
    }
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        printf("cache: no full disk, for this takes root\n");
        return;
    }
    for (limit = 4096; limit < good_bytes; limit += 4096) {
        char size[64];

        snprintf(size, sizeof size, "size=%zu,mode=0700", limit);
        if (mount("none", dir, "tmpfs", 0, size) != 0)
            return;
        expect(BUILT, BUILT, "a disk of %zu bytes", limit);
        check(look(dir, NULL) == 0, "a disk of %zu bytes: nothing is left", limit);
        umount(dir);
    }
}

static void prepare_cold(void)    { wipe(entry); }
static void prepare_warm(void)    { heal(); }
static void prepare_damaged(void) { put(entry, good, good_bytes - 1); }
static void prepare_blocked(void) { make_directory(); }

/* 1 if the fault came about, which it does not past the last call. */
static int strike_once(int kind, int at, enum outcome *o)
{
    int status;

    fault.kind = kind, fault.at = at, fault.calls = 0;
    if (kind == DEATH) {
        const pid_t child = fork();

        if (child == 0) {
            fault.on = 1;
            run("text");
            _exit(0);
        }
        waitpid(child, &status, 0);
        *o = BUILT;
        return WIFSIGNALED(status);
    }
    fault.on = 1;
    *o = run("text");
    fault.on = 0;
    return fault.calls >= at;
}

static void faults(void)
{
    static const struct { const char *what; void (*prepare)(void); } scenes[] = {
        { "an empty cache", prepare_cold }, { "a good entry", prepare_warm },
        { "a damaged entry", prepare_damaged }, { "a directory in the entry's place", prepare_blocked },
    };
    static const int kinds_of_fault[] = { EIO, ENOSPC, EINTR, EACCES, EDQUOT, ENOLCK, HALF, DEATH };

    begin();
    for (size_t s = 0; s < sizeof scenes / sizeof scenes[0]; s++)
        for (size_t f = 0; f < sizeof kinds_of_fault / sizeof kinds_of_fault[0]; f++)
            for (int at = 1, struck = 1; struck; at++) {
                enum outcome a, b, c;

                scenes[s].prepare();
                struck = strike_once(kinds_of_fault[f], at, &a);
                b = run("text");
                c = run("text");
                check(a & EITHER && b & EITHER && c == LOADED,
                      "%s, fault %d at call %d: %s, then %s, then %s", scenes[s].what,
                      kinds_of_fault[f], at, outcome_names[a], outcome_names[b], outcome_names[c]);
            }
}

static pid_t start(enum mood m, int repeats)
{
    const pid_t child = fork();

    if (child == 0) {
        mood = m;
        srand((unsigned)getpid());
        for (int i = 0; i < repeats; i++) {
            char text[16];

            snprintf(text, sizeof text, repeats > 1 ? "text %d" : "text", rand() % 5);
            check(run(text) & EITHER, "one of many processes");
        }
        _exit(0);
    }
    return child;
}

/* A driver that dies while it loads: the entry is replaced, and if that does not help, left alone. */
static void crashed(void)
{
    int status, deaths = 0;

    begin();
    waitpid(start(DIES, 1), &status, 0);
    check(WIFSIGNALED(status), "the driver dies");
    expect(BUILT, LOADED, "an entry that killed its process");

    for (int i = 0; i < 10; i++) {
        waitpid(start(DIES, 1), &status, 0);
        deaths += WIFSIGNALED(status) != 0;
    }
    check(deaths == 1, "an entry that kills always: killed %d more of 10, expected 1", deaths);
    expect(BUILT, BUILT, "an entry that killed twice");
    age(entry, 2 * DAY);
    expect(BUILT, LOADED, "an entry that killed twice, two days ago");

    /* Another process is just loading it: that is no reason to drop a good entry. */
    for (int i = 0; i < 3; i++) {
        char word;
        const pid_t busy = pipe(loading) || pipe(go_on) ? -1 : start(WAITS, 1);

        check(busy > 0 && read(loading[0], &word, 1) == 1, "a process that loads");
        expect(LOADED, LOADED, "an entry that a live process is loading");
        check(write(go_on[1], "", 1) == 1, "it goes on");
        waitpid(busy, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ends");
        for (int end = 0; end < 2; end++) {
            close(loading[end]);
            close(go_on[end]);
        }
        expect(LOADED, LOADED, "an entry that another process has loaded");
    }

    mood = REFUSES;
    expect(BUILT, BUILT, "an entry that the driver refuses");
    mood = GIVES_NOTHING;
    wipe(entry);
    expect(BUILT, BUILT, "a driver that gives no binary");
    mood = CALM;
    expect(BUILT, LOADED, "an entry that the driver takes again");
}

static void raced(void)
{
    enum { PROCESSES = 16, REPEATS = 20, TEXTS = 5 };
    pid_t child[PROCESSES];
    int status, deaths = 0;
    char names[TEXTS][PATH];

    begin();
    wipe(dir);
    for (int i = 0; i < TEXTS; i++) {
        char text[16], path[PATH + 16];

        snprintf(text, sizeof text, "text %d", i);
        run(text);
        look(dir, entry);
        strcpy(names[i], entry);
        snprintf(path, sizeof path, "%s-%d", dir, i);
        rename(entry, path);              /* so that each look finds the newest */
        wipe(path);
    }
    for (int i = 0; i < PROCESSES; i++)
        child[i] = start(CALM, REPEATS);
    for (int i = 0; i < 60; i++) {        /* meanwhile, damage */
        const int fd = open(names[i % TEXTS], O_WRONLY);

        if (fd >= 0) {
            if (i % 3 == 0)
                unlink(names[i % TEXTS]);
            else if (pwrite(fd, "damage", 6, HEADER + (off_t)key_bytes + 97 * i) < 0
                     || (i % 3 == 1 && ftruncate(fd, 999)))
                perror(names[i % TEXTS]);
            close(fd);
        }
        usleep(2000);
    }
    for (int i = 0; i < PROCESSES; i++) {
        waitpid(child[i], &status, 0);
        deaths += !WIFEXITED(status);
    }
    check(deaths == 0, "%d of %d racing processes died", deaths, PROCESSES);
    check(look(dir, NULL) <= TEXTS, "racing processes leave no temporary file");
}

static void *thread(void *failures)
{
    for (int i = 0; i < 50; i++) {
        char text[16];

        snprintf(text, sizeof text, "text %d", i % 7);
        if (!(run(text) & EITHER))
            __atomic_add_fetch((int *)failures, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void threaded(void)
{
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    int failures = 0;

    begin();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, &failures);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check(failures == 0, "%d failures among %d threads", failures, THREADS);
    check(look(dir, NULL) == 8, "threads leave 8 entries, not %d", look(dir, NULL));
}

static void killed(void)
{
    begin();
    srand(1);
    for (int i = 0; i < 100; i++) {       /* at any time, not only between calls */
        pid_t child;

        if (i % 2)
            heal();
        else
            wipe(entry);
        if ((child = fork()) == 0) {
            for (;;)
                run("text");
        }
        usleep((useconds_t)(rand() % 3000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        expect(EITHER, LOADED, "killed at a random time, %d", i);
    }
}

static void trimmed(void)
{
    enum { BIG = 40 << 20 };
    char name[64];

    begin();
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "%032x.kernel", i);
        put_aged(name, BIG, (10 - i) * HOUR);
    }
    put_aged("a friend's file.kernel", BIG, 20 * HOUR);
    put_aged(".tmp-0123456789abcdef", 999, 2 * HOUR);
    put_aged(".tmp-0123456789abcdee", 999, HOUR / 2);
    age(entry, 20 * HOUR);
    check(run("text") == LOADED, "a full cache is read");
    check(run("new") == BUILT && run("new") == LOADED, "a full cache makes room");
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "%032x.kernel", i);
        check(exists(name) == (i >= 3), "the entry used %d hours ago is %s", 10 - i,
              i >= 3 ? "kept" : "removed");
    }
    check(exists("a friend's file.kernel"), "what is not ours is kept");
    check(!exists(".tmp-0123456789abcdef"), "an old temporary file is removed");
    check(exists(".tmp-0123456789abcdee"), "a young temporary file is kept");
    check(run("text") == LOADED && run("new") == LOADED, "a full cache keeps what was just used");
}

/* ---- all --------------------------------------------------------------------------------- */

static void in_process(const char *name, void (*group)(void))
{
    const double began = vn__seconds();
    const int before = tally->cases;
    int status;
    pid_t child;

    fflush(stdout);
    if ((child = fork()) == 0) {
        alarm(600);               /* what hangs has failed */
        group();
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: its process died with status %x", name,
          (unsigned)status);
    printf("cache: %-11s %5d cases, %.2f s\n", name, tally->cases - before, vn__seconds() - began);
}

int main(void)
{
    static const struct { const char *name; void (*run)(void); } groups[] = {
        { "truncated", truncated }, { "flipped", flipped }, { "appended", appended }, { "forged", forged },
        { "confused", confused }, { "kinds", kinds }, { "shared", shared }, { "readonly", readonly },
        { "overlong", overlong }, { "full", full }, { "faults", faults }, { "crashed", crashed },
        { "killed", killed }, { "raced", raced }, { "threaded", threaded }, { "trimmed", trimmed },
    };

    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    make_base(base);
    umask(022);
    unsetenv("VERNIER_CACHE");
    snprintf(dir, sizeof dir, "%.*s/cache", PATH / 2, base);
    device.backend = &fake;
    strcpy(device.facts.toolchain, "platform 1; device A; driver 1.0");

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        in_process(groups[i].name, groups[i].run);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        setting = &settings[i];
        in_process("environment", environment);
    }
    wipe(base);
    printf("COUNT cache %d\n", tally->cases);
    return tally->failures ? 1 : 0;
}
