/* Starting the recorded program and waiting for it.
 *
 * 1. The driver must be there and the library beside this program before anything is started.
 * 2. The child gets the library in CUDA's own variable; a pipe that closes with a successful exec
 *    tells why one failed.
 * 3. A signal from the terminal goes to the program as well as here; here it is waited out, so that
 *    the trace is written. One that was sent here only is passed on. */
#include "bench/cli/record_program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workloads/record/spool.h"

#define LIBRARY   "liballocrig_record.so"
#define INJECTION "CUDA_INJECTION64_PATH"

/* Beside the program, or where `make install` puts it. */
static enum ar_status find_library(char *path, size_t room, struct ar_error *error)
{
    static const char *const places[] = {"", "../lib/"};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return ar_error_set(error, AR_MISSING, "this program's own place is not known: %s",
                            strerror(errno));
    self[length] = '\0';
    char *name = strrchr(self, '/');
    name = name ? name + 1 : self;
    *name = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int used = snprintf(path, room, "%s%s" LIBRARY, self, places[i]);
        if (used > 0 && (size_t)used < room && access(path, R_OK) == 0)
            return AR_OK;
    }
    return ar_error_set(error, AR_MISSING,
                        LIBRARY
                        " is not in %s: it is built where cuda.h and cupti.h of CUDA 12 or "
                        "later are found; install the CUDA toolkit (or set CUDA_HOME), then "
                        "`make`",
                        self);
}

static enum ar_status check_driver(struct ar_error *error)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver)
        return ar_error_set(
            error, AR_MISSING,
            "there is no NVIDIA driver on this machine, so that no program can use a "
            "card: %s",
            dlerror());
    dlclose(driver);
    const char *other = getenv(INJECTION);
    if (other && *other)
        return ar_error_set(error, AR_INVALID,
                            INJECTION
                            " is %s: another tool records, and the driver takes one; unset "
                            "it",
                            other);
    return AR_OK;
}

/* In the child. Returns where the command could not be executed. */
static void become(const struct record_program *program, const char *library, int told)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (setenv(INJECTION, library, 1) == 0 &&
        setenv(SPOOL_FOLDER_VARIABLE, program->folder, 1) == 0 &&
        setenv(SPOOL_KERNELS_VARIABLE, program->kernels ? "1" : "0", 1) == 0)
        execvp(program->command[0], program->command);
    int why = errno;
    (void)!write(told, &why, sizeof why);
    _exit(127);
}

/* Waits for the child; signals that come here are passed on. */
static void wait_for(pid_t child, const sigset_t *waited, struct record_end *end)
{
    int state = 0;
    for (;;) {
        pid_t ended = waitpid(child, &state, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR))
            break;
        siginfo_t about;
        int got = sigwaitinfo(waited, &about);
        /* The terminal tells the program itself; the kernel is the sender then. */
        if (got > 0 && got != SIGCHLD && about.si_code <= 0)
            kill(child, got);
    }
    end->signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    end->code = end->signal ? 128 + end->signal : WEXITSTATUS(state);
}

static enum ar_status start_and_wait(const struct record_program *program, const char *library,
                                     struct record_end *end, struct ar_error *error)
{
    int pipe_ends[2], why = 0;
    sigset_t waited, before;
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return ar_error_set(error, AR_IO, "no pipe can be made: %s", strerror(errno));
    sigemptyset(&waited);
    sigaddset(&waited, SIGCHLD);
    sigaddset(&waited, SIGINT);
    sigaddset(&waited, SIGQUIT);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGHUP);
    signal(SIGCHLD, SIG_DFL); /* ignored by who started us, children would leave no status */
    sigprocmask(SIG_BLOCK, &waited, &before);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        close(pipe_ends[0]);
        become(program, library, pipe_ends[1]);
    }
    int fork_errno = errno;
    close(pipe_ends[1]);
    ssize_t told = 0;
    if (child > 0)
        do
            told = read(pipe_ends[0], &why, sizeof why);
        while (told < 0 && errno == EINTR);
    close(pipe_ends[0]);
    if (child > 0)
        wait_for(child, &waited, end);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return ar_error_set(error, AR_IO, "no process can be made: %s", strerror(fork_errno));
    if (told == (ssize_t)sizeof why)
        return ar_error_set(error, AR_INVALID, "%s: cannot be run: %s", program->command[0],
                            strerror(why));
    return AR_OK;
}

enum ar_status record_program_run(const struct record_program *program, struct record_end *end,
                                  struct ar_error *error)
{
    char library[PATH_MAX];
    *end = (struct record_end){0};
    enum ar_status status = check_driver(error);
    if (!status)
        status = find_library(library, sizeof library, error);
    return status ? status : start_and_wait(program, library, end, error);
}
