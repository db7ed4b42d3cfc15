/* A host whose memory is at its end once: with LD_PRELOAD the call of malloc, calloc or realloc
 * with the number NO_MEMORY_AT fails, and the file NO_MEMORY_TOLD is made. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);

static unsigned long calls, failing;

__attribute__((constructor)) static void start(void)
{
    const char *at = getenv("NO_MEMORY_AT");
    failing = at ? strtoul(at, NULL, 10) : 0;
    calls = 0;
}

static bool fails(void)
{
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != failing)
        return false;
    const char *told = getenv("NO_MEMORY_TOLD");
    if (told)
        close(open(told, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(block, bytes);
}
