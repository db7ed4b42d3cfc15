#include "sim/experiment/crew.h"

#include <pthread.h>
#include <signal.h>

#include "workloads/trace/trace.h"

struct crew {
    pthread_mutex_t lock;
    size_t count, next, failed;
    crew_work *work;
    crew_done *done;
    void *argument;
    enum ar_status status;
    struct ar_error error;
};

struct member {
    struct crew *crew;
    struct trace_source *trace;
    pthread_t thread;
    bool made;
};

static void *member_main(void *argument)
{
    struct member *self = argument;
    struct crew *crew = self->crew;
    struct ar_error error = {""};
    pthread_mutex_lock(&crew->lock);
    while (crew->next < crew->count && !crew->status) {
        size_t number = crew->next++;
        pthread_mutex_unlock(&crew->lock);
        enum ar_status status = crew->work(crew->argument, number, self->trace, &error);
        pthread_mutex_lock(&crew->lock);
        if (crew->done)
            crew->done(crew->argument);
        if (status && number < crew->failed) {
            crew->failed = number;
            crew->status = status;
            crew->error = error;
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* A handler of signals, such as one that names the policy whose code crashed, needs a stack of its
 * own if that code called itself for ever. Each thread has one or none. */
static void *thread_main(void *argument)
{
    char bytes[128 << 10];
    const stack_t own = {.ss_sp = bytes, .ss_size = sizeof bytes};
    stack_t before;
    bool taken = sigaltstack(NULL, &before) == 0 && before.ss_flags & SS_DISABLE &&
                 sigaltstack(&own, NULL) == 0;
    member_main(argument);
    if (taken)
        (void)sigaltstack(&before, NULL);
    return NULL;
}

enum ar_status crew_each(struct trace_source *trace, unsigned jobs, size_t count, crew_work *work,
                         crew_done *done, void *argument, struct ar_error *error)
{
    struct crew crew = {
        .count = count, .failed = count, .work = work, .done = done, .argument = argument};
    enum ar_status status = AR_OK;
    jobs = jobs > count ? (unsigned)count : jobs;
    jobs = jobs ? jobs : 1;
    struct member *members = calloc(jobs, sizeof *members);
    if (!members || pthread_mutex_init(&crew.lock, NULL)) {
        free(members);
        return ar_no_memory(error, "the workers");
    }
    for (unsigned i = 0; i < jobs && !status; i++) {
        members[i].crew = &crew;
        if (i && trace)
            status = trace_rewind(trace, error);
        if (i && trace && !status)
            status = trace_memory_copy(trace, &members[i].trace, error);
    }
    members[0].trace = trace;
    for (unsigned i = 1; i < jobs && !status; i++)
        members[i].made = !pthread_create(&members[i].thread, NULL, thread_main, &members[i]);
    if (!status)
        member_main(&members[0]);
    for (unsigned i = 1; i < jobs; i++) {
        if (members[i].made)
            pthread_join(members[i].thread, NULL);
        trace_close(members[i].trace);
    }
    pthread_mutex_destroy(&crew.lock);
    free(members);
    if (!status && crew.status) {
        *error = crew.error;
        status = crew.status;
    }
    return status;
}
