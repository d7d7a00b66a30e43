/* SPDX-License-Identifier: Apache-2.0
 *
 * disk.c - what the tests of the cache do to files.
 */
#define _GNU_SOURCE
#include "disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void make_base(char base[PATH])
{
    strcpy(base, access("/dev/shm", W_OK) == 0 ? "/dev/shm/vernier-XXXXXX" : "/tmp/vernier-XXXXXX");
    if (!mkdtemp(base)) {
        perror(base);
        exit(1);
    }
}

void start_cold(char base[PATH])
{
    char path[PATH + 16];

    make_base(base);
    snprintf(path, sizeof path, "%s/pocl", base);
    mkdir(path, 0700);
    setenv("POCL_CACHE_DIR", path, 1);
    snprintf(path, sizeof path, "%s/cache", base);
    setenv("VERNIER_CACHE_DIR", path, 1);
    setenv("VERNIER_CACHE", "1", 1);
}

void wipe(const char *path)
{
    struct dirent *e;
    char below[PATH];
    DIR *all;

    if (unlink(path) == 0 || rmdir(path) == 0 || !(all = opendir(path)))
        return;
    while ((e = readdir(all))) {
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            wipe(below);
    }
    closedir(all);
    rmdir(path);
}

void put(const char *path, const void *bytes, size_t n)
{
    int fd;

    wipe(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || close(fd) != 0) {
        perror(path);
        exit(1);
    }
}

size_t get(const char *path, void *bytes, size_t n)
{
    const int fd = open(path, O_RDONLY);
    const ssize_t got = fd < 0 ? -1 : read(fd, bytes, n);

    if (fd >= 0)
        close(fd);
    return got < 0 ? 0 : (size_t)got;
}

void age(const char *path, long seconds)
{
    const struct timespec then[2] = { { time(NULL) - seconds, 0 }, { time(NULL) - seconds, 0 } };

    if (utimensat(AT_FDCWD, path, then, 0) != 0)
        perror(path);
}

int look(const char *where, char *one)
{
    DIR *all = opendir(where);
    struct dirent *e;
    int count = 0;

    while (all && (e = readdir(all)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
            count++;
            if (one)
                snprintf(one, PATH, "%s/%s", where, e->d_name);
        }
    if (all)
        closedir(all);
    return count;
}
