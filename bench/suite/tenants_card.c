/* Tenants on a real card, each in a process of its own (tenants_suite.h). The first half runs in
 * a child, the second in the parent. */
#include "bench/suite/tenants_suite.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/cuda/cuda_device.h"
#include "sim/device.h"
#include "sim/tenants/runner.h"

#define SILENCE_S   120
#define DEVICE_ROOM 160

/* An order to a child: the number of steps (UINT64_MAX: all); 0: leave. */
struct order {
    uint64_t steps;
};

/* The answer of a child, after each step. */
struct answer {
    enum ar_status status; /* other than OK: `error` says why, and the child has ended */
    bool done;             /* its workload has ended or a request has failed */
    uint64_t steps;
    uint64_t card_bytes[PROCESS_CARDS]; /* its memory on each */
    uint64_t other_pools_bytes;         /* on the card of the pool that failed */
    struct tenant_result result;
    struct ar_error error;
};

/* ---- the child ------------------------------------------------------------------------------ */

struct member {
    const struct tenants *tenants;
    const struct tenant_setup *setup;
    const char *device;
    struct process process;
    struct runner runners[PROCESS_POOLS];
    struct ar_spec devices[PROCESS_POOLS];
    size_t count, going; /* open pools, and the one that runs */
    struct ar_device *looked_at[PROCESS_CARDS];
    size_t looked_at_count;
    struct tenant_result *result;
    int socket;
    uint64_t waited_from_ns;               /* of the present wait; 0: none */
    uint64_t context_bytes[PROCESS_CARDS]; /* of each of its cards, before the first request */
};

/* "cuda:matmul=plain" and 1: "cuda:matmul=plain,shared=yes,ordinal=1" */
static enum ar_status open_device_spec(const struct member *self, uint32_t card,
                                       struct ar_spec *spec, struct ar_error *error)
{
    char text[DEVICE_ROOM];
    snprintf(text, sizeof text, "%s%cshared=yes,ordinal=%" PRIu32, self->device,
             strchr(self->device, ':') ? ',' : ':', card);
    return ar_spec_parse(text, spec, error);
}

/* Reads the total and free memory of each card with this process's context on it. The devices are
 * closed before the pools open, because a device measures its context by the memory in use before
 * and after. */
static enum ar_status look_at_cards(struct member *self, struct process_card *cards,
                                    struct ar_error *error)
{
    for (uint32_t i = 0; i < self->tenants->card_count; i++) {
        AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
        struct ar_device *device;
        uint64_t total_bytes;
        AR_TRY(open_device_spec(self, i, &spec, error));
        AR_TRY(ar_device_open(&spec, &device, error));
        self->looked_at[self->looked_at_count++] = device;
        cards[i].total_bytes = device->props.total_bytes;
        ar_backing_memory(device->backing, &cards[i].free_bytes, &total_bytes);
        if (device->backing->page_bytes) /* only whole pages can be allocated */
            cards[i].free_bytes -= cards[i].free_bytes % device->backing->page_bytes;
        cards[i].compute_capability = self->tenants->cards[i].compute_capability;
    }
    return AR_OK;
}

static enum ar_status configure(struct member *self, struct ar_error *error)
{
    struct process_card cards[PROCESS_CARDS];
    AR_TRY(look_at_cards(self, cards, error));
    return tenant_place(self->setup, cards, self->tenants->card_count, 0, &self->process, error);
}

/* TensorFlow's wait before a retry: other processes may free memory in the meantime. */
static bool wait_and_see(void *argument, const struct ar_policy_request *request AR_UNUSED)
{
    struct member *self = argument;
    if (!self->process.retries || !self->tenants->free || !self->count)
        return false;
    struct ar_device *device = self->runners[self->going].session.device;
    uint64_t free_bytes, now_free_bytes, total_bytes;
    if (!self->waited_from_ns)
        self->waited_from_ns = device->ops->now(device);
    uint64_t until_ns = self->waited_from_ns + self->process.retry_ms * 1000000;
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    while (device->ops->now(device) < until_ns) {
        usleep(20000);
        ar_backing_memory(device->backing, &now_free_bytes, &total_bytes);
        if (now_free_bytes > free_bytes) {
            self->result->retries_waited++;
            return true;
        }
    }
    return false;
}

static enum ar_status open_pools(struct member *self, struct ar_error *error)
{
    const struct tenant_setup *setup = self->setup;
    for (size_t i = 0; i < self->process.pool_count; i++) {
        const struct process_pool *pool = &self->process.pools[i];
        size_t work = i < setup->workload_count ? i : setup->workload_count - 1;
        AR_TRY(open_device_spec(self, pool->card, &self->devices[i], error));
        self->runners[i].card = pool->card;
        self->runners[i].limit_of_free = pool->limit_of_free;
        AR_TRY(runner_open(&self->runners[i], &self->devices[i], pool->policy,
                           setup->workloads[work], 0, 0, wait_and_see, self, error));
        self->count++;
    }
    return AR_OK;
}

/* Makes a pool current; each card has a context of its own. */
static struct runner *turn_to(struct member *self, size_t i)
{
    self->going = i;
    cuda_kind_enter(self->runners[i].session.device);
    return &self->runners[i];
}

/* One step of every pool; `*done` if nothing is left to do, and then all pools report. */
static enum ar_status step(struct member *self, bool *done, struct ar_error *error)
{
    bool all_done = true, failed = false;
    self->waited_from_ns = 0;
    for (size_t i = 0; i < self->count; i++) {
        struct runner *runner = turn_to(self, i);
        if (!runner_done(runner)) {
            AR_TRY(runner_go(runner, 0, 1, UINT64_MAX, error));
        }
        all_done = all_done && runner_done(runner);
        failed = failed || replay_has_failed(runner->replay);
    }
    *done = all_done || failed;
    for (size_t i = 0; i < self->count && *done; i++) {
        AR_TRY(runner_report(turn_to(self, i), self->result, error));
    }
    return AR_OK;
}

/* The driver reports only the memory of all processes together, so a context is measured once,
 * before the first request, and pools are counted. */
static void measure_contexts(struct member *self)
{
    for (size_t i = 0; i < self->count; i++) {
        struct ar_device *device = turn_to(self, i)->session.device;
        uint64_t bytes = device->ops->card_bytes ? device->ops->card_bytes(device) : 0;
        uint64_t pool_bytes = device->counters.physical_bytes;
        uint64_t *context_bytes = &self->context_bytes[self->runners[i].card];
        if (!*context_bytes &&
            bytes > pool_bytes) /* of several pools on a card the first one measures it */
            *context_bytes = bytes - pool_bytes;
    }
}

static void count_card_bytes(const struct member *self, struct answer *answer)
{
    memcpy(answer->card_bytes, self->context_bytes, sizeof answer->card_bytes);
    for (size_t i = 0; i < self->count; i++)
        answer->card_bytes[self->runners[i].card] +=
            self->runners[i].session.device->counters.physical_bytes;
    uint64_t bytes = answer->card_bytes[answer->result.card];
    if (answer->steps && bytes > answer->result.peak_card_bytes)
        answer->result.peak_card_bytes = bytes;
}

static void count_other_pools(const struct member *self, struct answer *answer)
{
    const struct runner *failed = NULL;
    for (size_t i = 0; i < self->count && !failed; i++)
        if (self->runners[i].failed)
            failed = &self->runners[i];
    answer->other_pools_bytes = 0;
    for (size_t i = 0; i < self->count && failed; i++)
        if (&self->runners[i] != failed && self->runners[i].card == failed->card)
            answer->other_pools_bytes += self->runners[i].session.device->counters.physical_bytes;
}

static bool send_answer(struct member *self, const struct answer *answer)
{
    return write(self->socket, answer, sizeof *answer) == (ssize_t)sizeof *answer;
}

/* MISSING if no card can be used at all: that is no outcome of one process. */
static enum ar_status look_for_driver(struct ar_error *error)
{
    char why[512];
    for (size_t i = 0; device_kinds[i]; i++)
        if (!strcmp(device_kinds[i]->name, "cuda") && !device_kinds[i]->available(why, sizeof why))
            return ar_error_set(error, AR_MISSING, "%s", why);
    return AR_OK;
}

/* Refused settings, and a card without enough memory, are outcomes. */
static enum ar_status begin(struct member *self, struct answer *answer)
{
    struct tenant_result *result = &answer->result;
    AR_TRY(look_for_driver(&answer->error));
    enum ar_status status = configure(self, &answer->error);
    for (size_t i = 0; i < self->looked_at_count; i++)
        ar_device_close(self->looked_at[i]);
    self->looked_at_count = 0;
    process_warnings(&self->process, result->warned, sizeof result->warned);
    AR_THEN(status, open_pools(self, &answer->error));
    if (status == AR_NEGATIVE)
        result->outcome = TENANT_REFUSED_SETTINGS;
    else if (status == AR_REFUSED || status == AR_NO_MEMORY || status == AR_MISSING)
        result->outcome = TENANT_NO_ROOM;
    else
        return status;
    snprintf(result->why, sizeof result->why, "%.*s", (int)sizeof result->why - 1,
             answer->error.text);
    answer->done = true;
    return AR_OK;
}

static void live(struct member *self)
{
    static struct answer answer; /* static: `self` keeps a pointer to its result */
    struct order order;
    self->result = &answer.result;
    answer.status = begin(self, &answer);
    answer.result.card = self->count ? self->runners[0].card : 0;
    measure_contexts(self);
    count_card_bytes(self, &answer);
    if (!send_answer(self, &answer))
        return;
    while (answer.status == AR_OK && read(self->socket, &order, sizeof order) == sizeof order &&
           order.steps) {
        for (uint64_t i = 0; i < order.steps && answer.status == AR_OK && !answer.done; i++) {
            answer.status = step(self, &answer.done, &answer.error);
            answer.steps++;
            count_card_bytes(self, &answer);
            count_other_pools(self, &answer);
            if (!send_answer(self, &answer))
                return;
        }
    }
}

static _Noreturn void child_main(const struct tenants *tenants, size_t index, const char *device,
                                 int socket)
{
    static struct member self; /* static: too large for a stack */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    self.tenants = tenants;
    self.setup = &tenants->setups[index];
    self.device = device;
    self.socket = socket;
    live(&self);
    for (size_t i = 0; i < self.count; i++)
        runner_close(turn_to(&self, i));
    _exit(0);
}

/* ---- the parent ----------------------------------------------------------------------------- */

enum presence { TO_COME, PRESENT, STAYING, GONE };

struct tenant {
    enum presence presence;
    pid_t process;
    int socket;
    uint64_t steps, card_bytes[PROCESS_CARDS];
    uint64_t told; /* free: the step to which it may go */
};

struct party {
    const struct tenants *tenants;
    const char *device;
    uint64_t limit_s, round;
    struct tenant items[TENANTS_MOST];
    struct tenant_result *results;
};

static void leave(struct party *self, size_t i)
{
    struct tenant *tenant = &self->items[i];
    if (tenant->process) {
        close(tenant->socket); /* the child reads the end of file and closes its device */
        for (int waited = 0; waited < 1000; waited++) {
            if (waitpid(tenant->process, NULL, WNOHANG) != 0) {
                tenant->process = 0;
                break;
            }
            usleep(10000);
        }
        if (tenant->process) {
            kill(tenant->process, SIGKILL);
            (void)waitpid(tenant->process, NULL, 0);
        }
    }
    tenant->process = 0;
    memset(tenant->card_bytes, 0, sizeof tenant->card_bytes);
    tenant->presence = GONE;
}

static void lost(struct party *self, size_t i, const char *how)
{
    self->results[i].outcome = TENANT_CRASHED;
    snprintf(self->results[i].why, sizeof self->results[i].why, "%s", how);
    if (self->items[i].process)
        kill(self->items[i].process, SIGKILL);
    leave(self, i);
}

/* The process with the most memory on the card of a pool that failed: another one, or the same one
 * by its other pools. */
static uint64_t largest_holder(const struct party *self, size_t but, uint64_t own_bytes)
{
    uint64_t most_bytes = own_bytes, who = own_bytes ? but : TENANTS_MOST;
    uint32_t card = self->results[but].card;
    for (size_t i = 0; i < self->tenants->count; i++)
        if (i != but && self->items[i].card_bytes[card] > most_bytes) {
            most_bytes = self->items[i].card_bytes[card];
            who = i;
        }
    return who;
}

/* Reads the next answer of a child; its end counts as one. */
static enum ar_status read_answer(struct party *self, size_t i, struct ar_error *error)
{
    struct tenant *tenant = &self->items[i];
    struct answer answer = {.status = AR_OK};
    size_t got = 0;
    while (got < sizeof answer) {
        ssize_t more = read(tenant->socket, (char *)&answer + got, sizeof answer - got);
        if (more <= 0) {
            lost(self, i, "its process died");
            return AR_OK;
        }
        got += (size_t)more;
    }
    if (answer.status != AR_OK) {
        *error = answer.error;
        return ar_error_prefix(error, answer.status, "process %s", self->tenants->setups[i].name);
    }
    uint64_t arrived = self->results[i].arrived;
    self->results[i] = answer.result;
    self->results[i].arrived = arrived;
    self->results[i].refused_by = answer.result.refused_bytes
                                      ? largest_holder(self, i, answer.other_pools_bytes)
                                      : TENANTS_MOST;
    tenant->steps = answer.steps;
    memcpy(tenant->card_bytes, answer.card_bytes, sizeof tenant->card_bytes);
    if (!answer.done)
        return AR_OK;
    if (self->tenants->setups[i].stays && answer.result.outcome == TENANT_PASSED)
        tenant->presence = STAYING;
    else
        leave(self, i);
    return AR_OK;
}

/* Waits for one answer of child `only`, or of all that are present if `only` is past the last. No
 * answer in time is an outcome. */
static enum ar_status listen_to(struct party *self, size_t only, struct ar_error *error)
{
    struct pollfd polled[TENANTS_MOST];
    size_t index[TENANTS_MOST], count = 0;
    for (size_t i = 0; i < self->tenants->count; i++)
        if (self->items[i].presence == PRESENT && (only >= self->tenants->count || only == i)) {
            polled[count] = (struct pollfd){.fd = self->items[i].socket, .events = POLLIN};
            index[count++] = i;
        }
    int heard;
    do
        heard = poll(polled, count, (int)self->limit_s * 1000);
    while (heard < 0 && errno == EINTR);
    for (size_t i = 0; i < count; i++)
        if (!heard)
            lost(self, index[i], "it did not answer in time and was ended");
        else if (polled[i].revents)
            AR_TRY(read_answer(self, index[i], error));
    return AR_OK;
}

static bool send_order(struct party *self, size_t i, uint64_t steps)
{
    const struct order order = {steps};
    return write(self->items[i].socket, &order, sizeof order) == (ssize_t)sizeof order;
}

static enum ar_status arrive(struct party *self, size_t i, struct ar_error *error)
{
    struct tenant *tenant = &self->items[i];
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return ar_error_set(error, AR_IO, "no pair of sockets: %s", strerror(errno));
    fflush(NULL);
    pid_t process = fork();
    if (process < 0) {
        close(pair[0]);
        close(pair[1]);
        return ar_error_set(error, AR_IO, "no process: %s", strerror(errno));
    }
    if (process == 0) {
        close(pair[0]);
        for (size_t k = 0; k < self->tenants->count; k++) /* else others would see no end of file */
            if (self->items[k].process)
                close(self->items[k].socket);
        child_main(self->tenants, i, self->device, pair[1]);
    }
    close(pair[1]);
    *tenant = (struct tenant){.presence = PRESENT, .process = process, .socket = pair[0]};
    self->results[i].arrived = self->round;
    return listen_to(self, i, error);
}

/* Free: children that are ready run together to the step at which another one arrives; there they
 * wait until it is ready, however long a machine takes to start a process. */
static void set_going(struct party *self)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < self->tenants->count; i++)
        if (self->items[i].presence == TO_COME && self->tenants->setups[i].arrives < next)
            next = self->tenants->setups[i].arrives;
    for (size_t i = 0; i < self->tenants->count; i++) {
        struct tenant *tenant = &self->items[i];
        if (tenant->presence != PRESENT || tenant->steps < tenant->told)
            continue;
        tenant->told = next;
        if (!send_order(self, i, next == UINT64_MAX ? next : next - tenant->steps))
            lost(self, i, "its process died");
    }
}

static enum ar_status come_and_go(struct party *self, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->tenants->count; i++) {
        uint64_t leaves = self->tenants->setups[i].leaves;
        if (leaves && leaves <= self->round &&
            (self->items[i].presence == PRESENT || self->items[i].presence == STAYING))
            leave(self, i);
    }
    for (size_t i = 0; i < self->tenants->count && !status; i++)
        if (self->items[i].presence == TO_COME && self->tenants->setups[i].arrives <= self->round)
            status = arrive(self, i, error);
    if (self->tenants->free && !status)
        set_going(self);
    return status;
}

static bool any_is(const struct party *self, enum presence presence)
{
    for (size_t i = 0; i < self->tenants->count; i++)
        if (self->items[i].presence == presence)
            return true;
    return false;
}

static enum ar_status round_of_all(struct party *self, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->tenants->count && !status; i++) {
        if (self->items[i].presence != PRESENT)
            continue;
        if (send_order(self, i, 1))
            status = listen_to(self, i, error);
        else
            lost(self, i, "its process died");
    }
    self->round++;
    return status;
}

static enum ar_status some_steps(struct party *self, struct ar_error *error)
{
    enum ar_status status = listen_to(self, self->tenants->count, error);
    for (size_t i = 0; i < self->tenants->count; i++)
        AR_RAISE(self->round, self->items[i].steps);
    return status;
}

enum ar_status tenants_card_run(const struct tenants *tenants, const char *device, uint64_t limit_s,
                                struct tenant_result *results, struct ar_error *error)
{
    struct party *self = calloc(1, sizeof *self);
    AR_TRY_MEMORY(self, error, "%zu processes", tenants->count);
    *self = (struct party){
        .tenants = tenants,
        .device = device,
        .limit_s = limit_s ? limit_s : SILENCE_S,
        .results = results,
    };
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    memset(results, 0, tenants->count * sizeof *results);
    for (size_t i = 0; i < tenants->count; i++)
        results[i].refused_by = TENANTS_MOST;
    enum ar_status status = come_and_go(self, error);
    while (!status && (any_is(self, PRESENT) || any_is(self, TO_COME))) {
        if (!any_is(self, PRESENT))
            self->round++;
        else
            status = tenants->free ? some_steps(self, error) : round_of_all(self, error);
        AR_THEN(status, come_and_go(self, error));
    }
    for (size_t i = 0; i < tenants->count; i++)
        leave(self, i);
    signal(SIGPIPE, before);
    free(self);
    return status;
}
