/* SPDX-License-Identifier: Apache-2.0
 *
 * os.c - what os.h names and a system lacks.
 */
#include "os.h"

#if defined _WIN32

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

long vn__thread_number(void)
{
    return (long)GetCurrentThreadId();
}

/* The library stays in the process, as -z nodelete has it elsewhere: drivers' threads call back into it. */
static __attribute__((constructor)) void stay(void)
{
    HMODULE it;

    GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                       (LPCSTR)(void *)stay, &it);
}

void *dlopen(const char *path, int how)
{
    (void)how;
    return LoadLibraryA(path);
}

void *dlsym(void *library, const char *name)
{
    return (void *)GetProcAddress(library, name);
}

void *memmem(const void *in, size_t in_bytes, const void *what, size_t bytes)
{
    const char *at = in;

    for (; in_bytes >= bytes; at++, in_bytes--)
        if (!memcmp(at, what, bytes))
            return (void *)at;
    return NULL;
}

char *strcasestr(const char *in, const char *what)
{
    const size_t length = strlen(what);

    for (;; in++) {
        if (!_strnicmp(in, what, length))
            return (char *)in;
        if (!*in)
            return NULL;
    }
}

/* Whether c is in the bracket expression that begins at *at, which is moved behind it. A bracket without an
 * end stands for itself. */
static int is_in_bracket(const char **at, char c)
{
    const char *p = *at + 1, *const end = strchr(p + (*p == '!') + (p[*p == '!'] == ']'), ']');
    const int negated = *p == '!';
    int found = 0;

    if (!*p || !end) {
        ++*at;
        return c == '[';
    }
    for (p += negated; p < end; p++)
        if (p[1] == '-' && p + 2 < end) {
            found |= c >= p[0] && c <= p[2];
            p += 2;
        } else {
            found |= c == *p;
        }
    *at = end + 1;
    return found != negated;
}

/* Behind a star that does not fit, the star takes one character more. */
int fnmatch(const char *pattern, const char *text, int how)
{
    const char *star = NULL, *retry = NULL;

    (void)how;
    while (*text) {
        const char *next = pattern;
        int fits;

        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
            continue;
        }
        if (*next == '[') {
            fits = is_in_bracket(&next, *text);
        } else if (*next == '?') {
            fits = 1;
            next++;
        } else {
            next += *next == '\\' && next[1];
            fits = *next && *next == *text;
            next += *next != '\0';
        }
        if (fits) {
            pattern = next;
            text++;
        } else if (star) {
            pattern = star;
            text = ++retry;
        } else {
            return 1;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern != '\0';
}

#elif defined __APPLE__

#include <pthread.h>

long vn__thread_number(void)
{
    uint64_t number = 0;

    pthread_threadid_np(NULL, &number);
    return (long)number;
}

#else

#include <sys/syscall.h>

long vn__thread_number(void)
{
    return syscall(SYS_gettid);
}

#endif
