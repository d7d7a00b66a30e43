// SPDX-License-Identifier: Apache-2.0
//
// coroutines.h - the work-items of a work-group in one thread, for hopper.h
//
// A scheduler switches between them where they wait.  threadIdx says which of them runs.
#include <setjmp.h>
#include <ucontext.h>

enum { MOST_ITEMS = 1024, STACK = 1 << 16, PATIENCE = 100000 };

static jmp_buf scheduler, item[MOST_ITEMS];
static bool started[MOST_ITEMS], ended[MOST_ITEMS];
static struct wish { const int *word; int mask, old; } awaited[MOST_ITEMS];
static int items, idle;                         // idle: turns of all in which nothing happened
static uint64_t dice = 1;

[[noreturn]] static void refuse(const char *what)
{
    printf("not ok - work-group %u, work-item %u: %s\n", blockIdx.x, threadIdx.x, what);
    fflush(stdout);
    _Exit(3);
}

static unsigned drawn(unsigned below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dice >> 33) % below;
}

// _setjmp() and _longjmp() leave the signal mask as it is: a switch makes no system call.
static void yield()
{
    if (!_setjmp(item[threadIdx.x]))
        _longjmp(scheduler, 1);
}

// The scheduler passes over a work-item until the word, as far as the mask goes, has changed.
static void wait_while(const int &word, int mask, int old)
{
    while ((word & mask) == old) {
        awaited[threadIdx.x] = { &word, mask, old };
        yield();
    }
}

static bool is_ready(unsigned i)
{
    wish &w = awaited[i];

    if (ended[i] || (w.word && (*w.word & w.mask) == w.old))
        return false;
    w.word = nullptr;
    return true;
}

struct meeting { int arrived, number; };

static void arrive(meeting &m, int count)
{
    idle = 0;
    if (++m.arrived == count) {
        m.arrived = 0;
        m.number++;
    }
}

static void meet(meeting &m, int count)
{
    const int number = m.number;

    arrive(m, count);
    wait_while(m.number, -1, number);
}

static meeting all, warps[MOST_ITEMS / 32], groups[MOST_ITEMS / 128], named[16];

static void __syncthreads() { meet(all, items); }
static int  lane()          { return threadIdx.x % 32; }
static meeting &warp()      { return warps[threadIdx.x / 32]; }

static void (*body)();

// The first time on a stack of its own, where it stays for all groups; else where it yielded.
static void resume()
{
    static unsigned char *stacks;
    const unsigned i = threadIdx.x;

    if (_setjmp(scheduler))
        return;
    if (started[i])
        _longjmp(item[i], 1);
    if (!stacks && !(stacks = (unsigned char *)malloc((size_t)MOST_ITEMS * STACK)))
        refuse("no memory for stacks");

    ucontext_t context;

    started[i] = true;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)i * STACK;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, [] {
        for (;;) {
            body();
            ended[threadIdx.x] = true;
            yield();
        }
    }, 0);
    setcontext(&context);
}
