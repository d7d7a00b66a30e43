/* SPDX-License-Identifier: Apache-2.0
 *
 * os.h - what the library asks of the operating system beyond C and POSIX threads, and what stands in for
 * it on systems that lack it.
 *
 * Sources are written for Linux. This file goes before any other header, since it asks for the GNU names;
 * what Windows (mingw-w64) or macOS lack has the name and the meaning that Linux gives it, as far as the
 * library uses it. The disk cache needs more than that, openat() and its kin: on Windows cache_absent.c
 * takes its place.
 */
#ifndef VN_OS_H
#define VN_OS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE               /* secure_getenv, strcasestr, memmem */
#endif
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

long vn__thread_number(void);     /* the kernel's, as debuggers show it */

#if defined _WIN32

#define dlopen     vn__dlopen
#define dlsym      vn__dlsym
#define fnmatch    vn__fnmatch
#define memmem     vn__memmem
#define strcasestr vn__strcasestr
void *dlopen(const char *path, int how);
void *dlsym(void *library, const char *name);
int   fnmatch(const char *pattern, const char *text, int how);    /* 0: it matches; *, ?, [a-z], [!a-z], \ */
void *memmem(const void *in, size_t in_bytes, const void *what, size_t bytes);
char *strcasestr(const char *in, const char *what);

enum { RTLD_NOW, RTLD_LOCAL = 0 };
enum { O_CLOEXEC = O_NOINHERIT, O_NONBLOCK = 0 };     /* files are opened, or not: none blocks */
enum { F_GETFL, F_SETFL };

static inline int fcntl(int fd, int what, ...)
{
    (void)fd;
    (void)what;
    return 0;
}

/* No program has more rights than who started it. */
static inline char *secure_getenv(const char *name)
{
    return getenv(name);
}

/* There is no fork; what would follow one is only named. */
#include <pthread.h>
#undef  pthread_atfork
#define pthread_atfork(before, parent, child) ((void)(before), (void)(parent), (void)(child))

#else

#include <dlfcn.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>

#define VN_TIME_USED(st) (st).st_mtim

#if defined __APPLE__

#undef  VN_TIME_USED
#define VN_TIME_USED(st) (st).st_mtimespec

enum { GRND_NONBLOCK = 0 };

static inline char *secure_getenv(const char *name)
{
    return issetugid() ? NULL : getenv(name);
}

static inline ssize_t getrandom(void *out, size_t bytes, unsigned how)
{
    (void)how;
    return getentropy(out, bytes) ? -1 : (ssize_t)bytes;
}

#endif
#endif
#endif
