// What makes a program with GCC's address sanitizer start and end in two thirds of the time:
// scripts start it thousands of times. Nothing is checked less.
#include <link.h>

#ifdef __SANITIZE_ADDRESS__
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { HEADERS_MAX = 32, FILES_MAX = 1024 };

// Called while the sanitizer starts, when it cannot check anything yet. What is called in place
// of a function of the C library or the sanitizer must be visible to them.
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))
#define REPLACED  UNCHECKED __attribute__((visibility("default")))

typedef int visitor(struct dl_phdr_info *info, size_t size, void *context);

struct caller {
    visitor *visit;
    void *context;
};

UNCHECKED static void *replaced(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL)
        abort();
    return function;
}

// A module as it is; the sanitizer's library without its writable segments.
UNCHECKED static int visit_roots(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct caller *caller = context;
    if (strstr(info->dlpi_name, "/libasan.so") == NULL || info->dlpi_phnum > HEADERS_MAX)
        return caller->visit(info, size, caller->context);
    ElfW(Phdr) headers[HEADERS_MAX];
    struct dl_phdr_info shown = *info;
    shown.dlpi_phdr = headers;
    shown.dlpi_phnum = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_W))
            headers[shown.dlpi_phnum++] = info->dlpi_phdr[i];
    return caller->visit(&shown, size, caller->context);
}

// The leak check searches the writable segments of every module for pointers. 4 MiB of the
// sanitizer's are a table of its own: a page fault for each page, at each exit, and no pointer of
// the program.
REPLACED int dl_iterate_phdr(visitor *visit, void *context)
{
    int (*of_library)(visitor *, void *);
    *(void **)&of_library = replaced("dl_iterate_phdr");
    return of_library(visit_roots, &(struct caller){visit, context});
}

// The variables of each object file are registered before any constructor of the program, with
// the stack of that call. From one place they all have the same stack, which is stored once, not
// in a page for each file.
void __asan_register_globals(void *variables, size_t count);

static struct {
    void *variables;
    size_t count;
} files[FILES_MAX];
static int file_count;
static bool started;

UNCHECKED static void register_now(void *variables, size_t count)
{
    void (*of_sanitizer)(void *, size_t);
    *(void **)&of_sanitizer = replaced("__asan_register_globals");
    of_sanitizer(variables, count);
}

REPLACED void __asan_register_globals(void *variables, size_t count)
{
    if (started || file_count == FILES_MAX) {
        register_now(variables, count);
        return;
    }
    files[file_count].variables = variables;
    files[file_count++].count = count;
}

// The priority after that of the sanitizer's constructors, before all others.
__attribute__((constructor(101))) UNCHECKED static void register_all(void)
{
    started = true;
    for (int i = 0; i < file_count; i++)
        register_now(files[i].variables, files[i].count);
}
#endif
