/* 1. The handler looks at the functions that were being executed, from the innermost. The first one
 *    in a shared object that has the entry point of a policy is the one to name.
 * 2. The first thread that gets a signal handles it. A second one waits for the end of the process;
 *    a fault in the handler ends it.
 * 3. It runs on a stack of its own, because endless recursion is a way to crash.
 * 4. backtrace() loads a library at its first call, and allocates. If the heap is broken or locked
 *    that may never end, so an alarm ends the process. */
#include "bench/machine/crash.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "allocators/base/status.h"
#include "allocators/policy.h"

#define FRAMES      64
#define STACK_BYTES ((size_t)256 << 10)

static const struct {
    int number;
    bool crash;
} signals[] = {
    {SIGSEGV, true}, {SIGBUS, true},  {SIGFPE, true},   {SIGILL, true},
    {SIGABRT, true}, {SIGINT, false}, {SIGTERM, false}, {SIGXCPU, false},
};

/* Whether the object at `path` has the entry point of a policy. */
static bool is_policy(const char *path)
{
    void *object = path && *path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return object && dlsym(object, AR_POLICY_ENTRY_NAME);
}

/* The file of the policy whose code runs; NULL: none. */
static const char *culprit(void)
{
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);
    Dl_info own = {0}, info;
    (void)dladdr((void *)(uintptr_t)crash_reports_end, &own);
    for (int i = 0; i < count; i++)
        if (dladdr(frames[i], &info) && info.dli_fbase != own.dli_fbase &&
            is_policy(info.dli_fname))
            return info.dli_fname;
    return NULL;
}

static void on_signal(int number)
{
    static _Atomic pid_t handler;
    pid_t none = 0;
    bool crash = false;
    char text[4500];
    if (!atomic_compare_exchange_strong(&handler, &none, gettid())) {
        while (none != gettid())
            pause();
        signal(number, SIG_DFL);
        raise(number);
    }
    signal(SIGALRM, SIG_DFL);
    alarm(10);
    for (size_t i = 0; i < AR_COUNT(signals); i++)
        crash = crash || (signals[i].number == number && signals[i].crash);
    const char *file = culprit();
    if (file) {
        int length =
            snprintf(text, sizeof text, "allocrig: the policy \"%s\" %s signal %d (%s)%s\n", file,
                     crash ? "crashed:" : "was running at", number, strsignal(number),
                     crash ? "; `allocrig run` goes on with other policies" : "");
        if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
            crash = true;
    }
    if (file && crash)
        _exit(ar_status_exit(AR_CORRUPT));
    alarm(0);
    crash_reports_end();
    raise(number);
}

void crash_reports_begin(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER}, old;
    static char bytes[STACK_BYTES]; /* until the process ends */
    const stack_t stack = {.ss_sp = bytes, .ss_size = sizeof bytes};
    if (sigaltstack(&stack, NULL) != 0)
        action.sa_flags = SA_NODEFER;
    for (size_t i = 0; i < AR_COUNT(signals); i++)
        if (sigaction(signals[i].number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(signals[i].number, &action, NULL);
}

void crash_reports_end(void)
{
    struct sigaction old;
    for (size_t i = 0; i < AR_COUNT(signals); i++)
        if (sigaction(signals[i].number, NULL, &old) == 0 && old.sa_handler == on_signal)
            signal(signals[i].number, SIG_DFL);
}
