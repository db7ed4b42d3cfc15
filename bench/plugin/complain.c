/* A C function cannot answer either framework but with NULL, and neither looks at that: the next
 * kernel would fault and take the context with it. So the frameworks' own functions for raising
 * an error are looked up in the process; nothing links them.
 *
 * PyTorch: c10::detail::torchCheckFail, what TORCH_CHECK calls. It throws through this library's
 * frames, which need nothing undone (they are compiled with unwind tables), into PyTorch. CuPy:
 * PyErr_SetString. Cython looks for an error where a function returned NULL. */
#include "bench/plugin/complain.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void torch_check_fail(const char *function, const char *file, uint32_t line,
                              const char *message);
typedef int python_has_lock(void);
typedef void python_set_error(void *kind, const char *message);

#define TORCH_CHECK_FAIL "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"

static void say(const char *sentence)
{
    fprintf(stderr, "%s%s\n", strncmp(sentence, "allocrig", 8) == 0 ? "" : "allocrig: ", sentence);
}

void complain_to_torch(const char *sentence)
{
    void *library = dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
    void *address = library ? dlsym(library, TORCH_CHECK_FAIL) : NULL;
    if (address) {
        torch_check_fail *raise;
        memcpy(&raise, &address, sizeof raise);
        raise("allocrig_malloc", "liballocrig_torch.so", 0, sentence);
    }
    say(sentence);
}

void complain_to_python(const char *sentence)
{
    void *lock = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    void *set = dlsym(RTLD_DEFAULT, "PyErr_SetString");
    void *const *kind = dlsym(RTLD_DEFAULT, "PyExc_MemoryError");
    python_has_lock *has_lock;
    python_set_error *set_error;
    memcpy(&has_lock, &lock, sizeof lock);
    memcpy(&set_error, &set, sizeof set);
    if (lock && set && kind && has_lock())
        set_error(*kind, sentence);
    else
        say(sentence);
}
