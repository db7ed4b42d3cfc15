/* 1. The handler looks at the functions that were being executed, from the innermost. The first one
 *    in a shared object that has the entry point of a policy is the one to name. It does the same
 *    where exit() is called before main() has ended, or a function like it at any time.
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

enum { ENDING = -1 };
struct reports {
    _Atomic pid_t process; /* of which it is reported how it ends; 0: none; ENDING: that is being
                              done */
    _Atomic bool returned; /* main() has ended */
    bool is_run;
};

static struct reports *reports(void)
{
    static struct reports only;
    return &only;
}

/* The file of the policy whose code runs; NULL: none. `advice`: what else to do, or "". `run` goes
 * on where a policy is at work, not where it is loaded. */
static const char *culprit(const char **advice)
{
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);
    const char *file = NULL;
    bool goes_on = !reports()->is_run && !atomic_load(&reports()->returned);
    Dl_info own = {0}, info;
    (void)dladdr((void *)(uintptr_t)crash_reports_end, &own);
    for (int i = 0; i < count; i++) {
        /* A call that does not return may be the last instruction of its function. */
        if (!dladdr((char *)frames[i] - 1, &info))
            continue;
        if (info.dli_sname && (strcmp(info.dli_sname, AR_POLICY_ENTRY_NAME) == 0 ||
                               strcmp(info.dli_sname, "dlopen") == 0))
            goes_on = false;
        if (!file && info.dli_fbase != own.dli_fbase && is_policy(info.dli_fname))
            file = info.dli_fname;
    }
    *advice = goes_on ? "; `allocrig run` goes on with other policies" : "";
    return file;
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
    const char *advice = "";
    const bool returned = atomic_load(&reports()->returned);
    pid_t process = atomic_load(&reports()->process);
    if (process != ENDING && process != getpid())
        return;
    const char *file = process == ENDING ? NULL : culprit(&advice);
    if (!file && (!by_anybody || returned) && process != ENDING)
        return;
    while (process == ENDING || atomic_exchange(&reports()->process, ENDING) == ENDING)
        pause();
    int length =
        snprintf(text, sizeof text, "allocrig: %s%s%s ended the process with status %d %s%s\n",
                 file ? "the policy \"" : "a policy", file ? file : "", file ? "\"" : "", status,
                 returned ? "after its last result" : "and no result", advice);
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
    const char *advice = "";
    const char *file = culprit(&advice);
    if (file) {
        int length = snprintf(
            text, sizeof text, "allocrig: the policy \"%s\" %s signal %d (%s)%s\n", file,
            crash ? "crashed:" : "was running at", number, strsignal(number), crash ? advice : "");
        say(text, length);
    }
    if (file && crash)
        leave(ar_status_exit(AR_CORRUPT));
    alarm(0);
    crash_reports_end();
    raise(number);
}

void crash_reports_begin(bool is_run)
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
    reports()->is_run = is_run;
    atomic_store(&reports()->process, getpid());
}

void crash_reports_returned(void)
{
    atomic_store(&reports()->returned, true);
}

void crash_reports_end(void)
{
    struct sigaction old;
    atomic_store(&reports()->process, 0);
    for (size_t i = 0; i < AR_COUNT(signals); i++)
        if (sigaction(signals[i].number, NULL, &old) == 0 && old.sa_handler == on_signal)
            signal(signals[i].number, SIG_DFL);
}
