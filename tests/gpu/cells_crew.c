/* The processes that run the cells, and the lines that come of them.
 *
 * 1. Each process opens the card once, is then handed one cell after the other and answers each. A
 *    process that crashes, is past the time of one cell, or whose driver has failed is replaced:
 *    the cell is told, the others go on.
 * 2. A line is written and flushed as its cell ends, to standard output and to the file, which only
 *    grows: what was done before an end from outside stays done, and cells that are good there are
 *    not run again. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/machine/environment.h"
#include "sim/replay/timing.h"
#include "tests/gpu/cells.h"

#define NO_CELL   UINT64_MAX
#define CARD_CELL (UINT64_MAX - 1) /* the first answer of a process: of its card */
#define SECOND_NS UINT64_C(1000000000)
#define OPEN_S    UINT64_C(120)

struct worker {
    pid_t process; /* 0: none */
    int socket;
    uint64_t cell; /* that it is at */
    uint64_t deadline_ns;
};

struct crew {
    const struct cells_wish *wish;
    struct cells_list *list;
    struct worker *workers;
    FILE *file;  /* NULL: not wanted */
    size_t next; /* of the list, to be handed out */
    size_t earlier, passed, failed;
    bool card_told;
    char no_card[512];
};

/* ---- in the process -------------------------------------------------------------------------- */

static bool move_all(int socket, void *bytes, size_t count, bool sends)
{
    char *at = bytes;
    while (count) {
        ssize_t moved = sends ? send(socket, at, count, MSG_NOSIGNAL) : recv(socket, at, count, 0);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return false;
        at += moved;
        count -= (size_t)moved;
    }
    return true;
}

static _Noreturn void live(const struct cells_wish *wish, const struct cells_list *list, int socket)
{
    struct cells_runner *runner = NULL;
    struct ar_error error = {""};
    struct cell_answer answer = {.cell = CARD_CELL};
    answer.good = cells_runner_open(wish, &runner, &error) == AR_OK;
    snprintf(answer.text, sizeof answer.text, "%.*s", (int)sizeof answer.text - 1,
             answer.good ? cells_runner_card(runner) : error.text);
    bool goes_on = move_all(socket, &answer, sizeof answer, true) && answer.good;
    while (goes_on && move_all(socket, &answer.cell, sizeof answer.cell, false)) {
        cells_runner_run(runner, &list->cells[answer.cell], &answer);
        goes_on = move_all(socket, &answer, sizeof answer, true) && !answer.spent;
    }
    cells_runner_close(runner);
    fflush(NULL);
    _exit(0);
}

/* ---- in the one that tells ------------------------------------------------------------------- */

/* One line, wherever lines go. */
__attribute__((format(printf, 2, 3))) static void tell(struct crew *crew, const char *format, ...)
{
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    int written = vasprintf(&line, format, arguments);
    va_end(arguments);
    if (written < 0) {
        fputs("cells: no host memory for a line\n", stderr);
        return;
    }
    for (char *at = line; *at; at++)
        if (*at == '\n')
            *at = ' ';
    printf("%s\n", line);
    fflush(stdout);
    if (crew->file) {
        fprintf(crew->file, "%s\n", line);
        fflush(crew->file);
    }
    free(line);
}

static void tell_cell(struct crew *crew, const struct cell_answer *answer)
{
    struct cell *cell = &crew->list->cells[answer->cell];
    cell->good = answer->good;
    crew->passed += answer->good;
    crew->failed += !answer->good && !answer->skipped;
    tell(crew, "%s %s%s%s",
         answer->good      ? "ok"
         : answer->skipped ? "skip"
                           : "not ok",
         cell->name, answer->text[0] ? ": " : "", answer->text);
}

static bool begin(struct crew *crew, struct worker *worker)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    fflush(NULL);
    pid_t parent = getpid();
    pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        for (unsigned i = 0; i < crew->wish->jobs;
             i++) /* or the others would never see their end */
            if (crew->workers[i].process)
                close(crew->workers[i].socket);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(1);
        live(crew->wish, crew->list, ends[1]);
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return false;
    }
    *worker = (struct worker){.process = process,
                              .socket = ends[0],
                              .cell = CARD_CELL,
                              .deadline_ns = latency_clock_ns() + OPEN_S * SECOND_NS};
    return true;
}

static int end(struct worker *worker, bool at_once)
{
    int how = 0;
    if (at_once)
        kill(worker->process, SIGKILL);
    close(worker->socket);
    while (waitpid(worker->process, &how, 0) < 0 && errno == EINTR)
        ;
    cells_runner_clean(worker->process);
    *worker = (struct worker){.process = 0, .cell = NO_CELL};
    return how;
}

static size_t next_cell(struct crew *crew)
{
    while (crew->next < crew->list->count && crew->list->cells[crew->next].good)
        crew->next++;
    return crew->next;
}

/* Hands out the next cell; where none is left the process may end. */
static void hand_out(struct crew *crew, struct worker *worker)
{
    uint64_t cell = next_cell(crew);
    if (cell == crew->list->count || crew->no_card[0]) {
        (void)end(worker, false);
        return;
    }
    crew->next++;
    worker->cell = cell;
    worker->deadline_ns = latency_clock_ns() + crew->wish->limit_s * SECOND_NS;
    (void)move_all(worker->socket, &cell, sizeof cell, true); /* else its end is seen at once */
}

/* The process has gone, or is made to. */
static void lose(struct crew *crew, struct worker *worker, bool overdue)
{
    struct cell_answer answer = {.cell = worker->cell};
    const bool opening = answer.cell >= crew->list->count;
    int how = end(worker, overdue);
    if (overdue)
        snprintf(answer.text, sizeof answer.text, "timed out after %" PRIu64 " s",
                 opening ? OPEN_S : crew->wish->limit_s);
    else if (WIFSIGNALED(how))
        snprintf(answer.text, sizeof answer.text, "crashed: signal %d (%s)", WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
    else
        snprintf(answer.text, sizeof answer.text, "ended with status %d and no answer",
                 WEXITSTATUS(how));
    if (!opening)
        tell_cell(crew, &answer);
    else
        snprintf(crew->no_card, sizeof crew->no_card, "opening the card: %.400s", answer.text);
}

static void hear(struct crew *crew, struct worker *worker)
{
    struct cell_answer answer;
    if (!move_all(worker->socket, &answer, sizeof answer, false) || answer.cell != worker->cell) {
        lose(crew, worker, false);
        return;
    }
    answer.text[sizeof answer.text - 1] = '\0';
    if (answer.cell == CARD_CELL && !answer.good) {
        snprintf(crew->no_card, sizeof crew->no_card, "%s", answer.text);
        (void)end(worker, false);
        return;
    }
    if (answer.cell == CARD_CELL && !crew->card_told)
        tell(crew, "# %s, capacity %s, %u at a time, commit %.12s%s", answer.text,
             crew->wish->capacity, crew->wish->jobs, build_info()->commit,
             build_info()->dirty ? " with changes" : "");
    crew->card_told = true;
    if (answer.cell < crew->list->count)
        tell_cell(crew, &answer);
    if (answer.spent)
        (void)end(worker, false);
    else
        hand_out(crew, worker);
}

static int wait_ms(const struct crew *crew)
{
    uint64_t now = latency_clock_ns(), first = now + 3600 * SECOND_NS;
    for (unsigned i = 0; i < crew->wish->jobs; i++)
        if (crew->workers[i].process && crew->workers[i].deadline_ns < first)
            first = crew->workers[i].deadline_ns;
    return first <= now ? 0 : (int)((first - now) / 1000000 + 1);
}

/* Begins what may begin. How many are at work. */
static unsigned keep_up(struct crew *crew)
{
    unsigned running = 0, left = 0;
    for (size_t i = next_cell(crew); i < crew->list->count; i++)
        left += !crew->list->cells[i].good;
    for (unsigned i = 0; i < crew->wish->jobs; i++) {
        struct worker *worker = &crew->workers[i];
        if (!worker->process && left && !crew->no_card[0] && !begin(crew, worker))
            snprintf(crew->no_card, sizeof crew->no_card, "no process: %s", strerror(errno));
        left -= worker->process && worker->cell == CARD_CELL && left;
        running += worker->process != 0;
    }
    return running;
}

static void run_all(struct crew *crew, struct pollfd *polls)
{
    const unsigned jobs = crew->wish->jobs;
    while (keep_up(crew)) {
        for (unsigned i = 0; i < jobs; i++)
            polls[i] = (struct pollfd){
                .fd = crew->workers[i].process ? crew->workers[i].socket : -1, .events = POLLIN};
        int ready = poll(polls, jobs, wait_ms(crew));
        for (unsigned i = 0; ready > 0 && i < jobs; i++)
            if (polls[i].revents)
                hear(crew, &crew->workers[i]);
        uint64_t now = latency_clock_ns();
        for (unsigned i = 0; i < jobs; i++)
            if (crew->workers[i].process && crew->workers[i].deadline_ns <= now)
                lose(crew, &crew->workers[i], true);
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Marks the cells that a line of the file finds good, and no later one bad. */
static void read_line(struct crew *crew, const char *line)
{
    const bool good = strncmp(line, "ok ", 3) == 0;
    if (!good && strncmp(line, "not ok ", 7) != 0)
        return;
    const char *name = line + (good ? 3 : 7);
    for (size_t i = 0; i < crew->list->count; i++) {
        struct cell *cell = &crew->list->cells[i];
        size_t length = strlen(cell->name);
        if (strncmp(name, cell->name, length) == 0 && strchr(":\n", name[length]))
            cell->good = good; /* the end of a text is found too */
    }
}

/* A file that a kill cut off within a line gets its line's end. */
static bool open_file(struct crew *crew)
{
    char *line = NULL;
    size_t room = 0;
    bool whole = true;
    if (!crew->wish->resume)
        return true;
    crew->file = fopen(crew->wish->resume, "a+e");
    if (!crew->file) {
        fprintf(stderr, "cells: %s: cannot be written: %s\n", crew->wish->resume, strerror(errno));
        return false;
    }
    rewind(crew->file);
    for (ssize_t got; (got = getline(&line, &room, crew->file)) > 0;) {
        whole = line[got - 1] == '\n';
        if (whole)
            read_line(crew, line);
    }
    free(line);
    if (!whole)
        fputc('\n', crew->file);
    for (size_t i = 0; i < crew->list->count; i++)
        crew->earlier += crew->list->cells[i].good;
    return true;
}

static int report(struct crew *crew)
{
    const size_t count = crew->list->count;
    size_t left = count - crew->earlier - crew->passed - crew->failed;
    if (crew->earlier)
        printf("# %zu of the passed ones stand in %s from before\n", crew->earlier,
               crew->wish->resume);
    if (crew->no_card[0])
        fprintf(stderr, "cells: %s\n", crew->no_card);
    if (crew->passed + crew->failed)
        printf("# what a cell leaves on the card was %s\n",
               crew->wish->jobs == 1 ? "looked at after each"
                                     : "not looked at: several processes shared it");
    printf("%zu passed, %zu failed, %zu skipped\n", crew->earlier + crew->passed, crew->failed,
           left);
    return crew->no_card[0] ? 3 : crew->failed != 0;
}

int cells_crew_run(const struct cells_wish *wish, struct cells_list *list)
{
    struct crew crew = {.wish = wish, .list = list};
    struct pollfd *polls = calloc(wish->jobs, sizeof *polls);
    crew.workers = calloc(wish->jobs, sizeof *crew.workers);
    int status = 4;
    if (!polls || !crew.workers)
        fputs("cells: no host memory for the processes\n", stderr);
    else if (!open_file(&crew))
        status = 2;
    else {
        run_all(&crew, polls);
        status = report(&crew);
    }
    if (crew.file && fclose(crew.file) != 0 && !status)
        status = 2;
    free(polls);
    free(crew.workers);
    return status;
}
