/* 1. The handler looks at the functions that were being executed, from the innermost. The first one
 *    in a shared object that has the entry point of a policy is the one to name. It does the same
 *    where exit() or _exit() is called before main() has ended.
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
#include <sys/syscall.h>
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

/* The process of which it is reported how it ends; 0: none; ENDING: it is being reported. */
enum { ENDING = -1 };
static _Atomic pid_t *reported(void)
{
    static _Atomic pid_t process;
    return &process;
}

/* Not _exit(), which main.c has. */
static _Noreturn void leave(int status)
{
    for (;;)
        (void)syscall(SYS_exit_group, status);
}

static void say(const char *text, int length)
{
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
        return; /* there is nowhere to say so */
}

/* The process is about to end. Returns if main() ends it, or if it is a child. Other threads may
 * get here while the first one says its sentence: they must not end the process. */
static void on_end(int status, bool by_anybody)
{
    char text[4500];
    pid_t process = atomic_load(reported());
    if (process != ENDING && process != getpid())
        return;
    const char *file = process == ENDING ? NULL : culprit();
    if (!file && !by_anybody && process != ENDING)
        return;
    while (process == ENDING || atomic_exchange(reported(), ENDING) == ENDING)
        pause();
    int length =
        snprintf(text, sizeof text,
                 "allocrig: %s%s%s ended the process with status %d and no result; "
                 "`allocrig run` goes on with other policies\n",
                 file ? "the policy \"" : "a policy", file ? file : "", file ? "\"" : "", status);
    say(text, length);
    leave(ar_status_exit(AR_CORRUPT));
}

static void on_exit_begun(int status, void *unused)
{
    (void)unused;
    on_end(status, true);
}

void crash_reports_exit(int status)
{
    on_end(status, false);
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
        say(text, length);
    }
    if (file && crash)
        leave(ar_status_exit(AR_CORRUPT));
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
    (void)on_exit(on_exit_begun, NULL);
    atomic_store(reported(), getpid());
}

void crash_reports_end(void)
{
    struct sigaction old;
    atomic_store(reported(), 0);
    for (size_t i = 0; i < AR_COUNT(signals); i++)
        if (sigaction(signals[i].number, NULL, &old) == 0 && old.sa_handler == on_signal)
            signal(signals[i].number, SIG_DFL);
}
