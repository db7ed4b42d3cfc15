/* 1. The variables are set in the child. A pipe, which a successful exec closes, reports why an
 *    exec failed.
 * 2. The signals are blocked while the program runs, and the wait takes them. */
#include "bench/cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the child and does not return. */
static void execute(const struct program *program, int told)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
    bool failed = false;
    for (size_t i = 0; i < AR_COUNT(signals); i++)
        signal(signals[i], SIG_DFL);
    if (!program->survives)
        failed = prctl(PR_SET_PDEATHSIG, SIGTERM) != 0;
    for (const struct program_variable *at = program->variables; at->name; at++)
        failed |= setenv(at->name, at->value, 1) != 0;
    if (program->output == PROGRAM_TO_ERROR)
        failed |= dup2(STDERR_FILENO, STDOUT_FILENO) < 0;
    if (program->output == PROGRAM_TO_NOTHING)
        failed |= !freopen("/dev/null", "w", stdout);
    if (!failed)
        execvp(program->command[0], program->command);
    int why = errno;
    (void)!write(told, &why, sizeof why);
    _exit(127);
}

/* Waits for the child; signals that come here are passed on. */
static void wait_for(pid_t child, const sigset_t *waited, struct program_end *end)
{
    int state = 0;
    for (;;) {
        pid_t ended = waitpid(child, &state, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR))
            break;
        siginfo_t about;
        int got = sigwaitinfo(waited, &about);
        /* A signal of the terminal comes from the kernel and reaches the program too. */
        if (got > 0 && got != SIGCHLD && about.si_code <= 0)
            kill(child, got);
    }
    end->signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    end->code = end->signal ? 128 + end->signal : WEXITSTATUS(state);
}

enum ar_status program_run(const struct program *program, struct program_end *end,
                           struct ar_error *error)
{
    int pipe_ends[2], why = 0;
    sigset_t waited, before;
    if (!program->command[0][0])
        return ar_invalid(error, "the word after -- is empty; name a program, such as python3");
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return ar_error_set(error, AR_IO, "no pipe can be made: %s", strerror(errno));
    sigemptyset(&waited);
    sigaddset(&waited, SIGCHLD);
    sigaddset(&waited, SIGINT);
    sigaddset(&waited, SIGQUIT);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGHUP);
    signal(SIGCHLD, SIG_DFL); /* if it were ignored, children would leave no status */
    sigprocmask(SIG_BLOCK, &waited, &before);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        close(pipe_ends[0]);
        execute(program, pipe_ends[1]);
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
        return ar_invalid(error, "%s: cannot be run: %s", program->command[0], strerror(why));
    return AR_OK;
}

enum ar_status program_failed(const char *command, const struct program_end *end, const char *more,
                              struct ar_error *error)
{
    char why[sizeof error->text];
    snprintf(why, sizeof why, "%s", more);
    if (end->signal)
        (void)ar_error_set(error, AR_OK, "%s was ended by signal %d (%s); %s", command, end->signal,
                           strsignal(end->signal), why);
    else
        (void)ar_error_set(error, AR_OK, "%s ended with status %d; %s", command, end->code, why);
    return cli_exit(end->code);
}

char **program_command(int argc, char **argv, int *own)
{
    *own = 1;
    while (*own < argc && strcmp(argv[*own], "--") != 0)
        ++*own;
    return *own + 1 < argc ? argv + *own + 1 : NULL;
}

bool program_find(const char *const *places, char *path, size_t room)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *name = strrchr(self, '/');
    name = name ? name + 1 : self;
    *name = '\0';
    for (; *places; places++) {
        int used = snprintf(path, room, "%s%s", self, *places);
        if (used > 0 && (size_t)used < room && access(path, R_OK) == 0)
            return true;
    }
    snprintf(path, room, "%s", self);
    return false;
}
