/* A clock for tests of programs that measure and wait by CLOCK_MONOTONIC, put before libc with
 * LD_PRELOAD: each reading takes VIRTUAL_CLOCK_NS (1000) and a sleep its time, so that waits pass
 * at once and figures are the same on every machine. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>

#define SECOND_NS UINT64_C(1000000000)

static _Atomic uint64_t now_ns = SECOND_NS;

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, out);
    static _Atomic uint64_t step_ns;
    if (!step_ns)
        step_ns =
            getenv("VIRTUAL_CLOCK_NS") ? strtoull(getenv("VIRTUAL_CLOCK_NS"), NULL, 10) : 1000;
    uint64_t ns = atomic_fetch_add(&now_ns, step_ns);
    *out = (struct timespec){.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
    return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    atomic_fetch_add(&now_ns, (uint64_t)wanted->tv_sec * SECOND_NS + (uint64_t)wanted->tv_nsec);
    return 0;
}
