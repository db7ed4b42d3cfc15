/* The schedule of several processes, by the rules in tenants.h. */
#include "sim/tenants/tenants.h"

#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "sim/tenants/runner.h"

#define TURN_EVENTS 64
#define RETRY_NS    UINT64_C(1000000) /* between two tries of a waiting request */
#define DELAY_NS    UINT64_C(1000)    /* the least delay before a first request */
#define DELAYS      21                /* the delay is doubled fewer times than this */

enum presence { TO_COME, THERE, STAYING, GONE };

struct schedule;

struct tenant {
    struct schedule *schedule;
    const struct tenant_setup *setup;
    struct tenant_result *result;
    struct process process;
    struct runner *runners; /* one for each pool */
    size_t runner_count;
    enum presence presence;
    uint64_t turns;            /* steps of its first pool: its rounds */
    uint64_t held_bytes;       /* at the last sample */
    size_t going;              /* the running pool */
    bool waits;                /* for memory, in a request */
    uint64_t retry_ns;         /* the longest wait; 0: none */
    uint64_t waiting_since_ns; /* 0: no wait */
};

struct schedule {
    const struct tenants *tenants;
    struct tenant *items;
    struct process_card cards[PROCESS_CARDS + 1]; /* without processes; the last: host memory */
    struct ar_spec host;
    uint64_t round;
    struct ar_rng rng;
    enum ar_status status; /* of the turns during a wait */
    struct ar_error *error;
};

/* ---- memory of processes -------------------------------------------------------------------- */

static uint64_t tenant_held(const struct tenant *tenant, uint32_t card)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < tenant->runner_count; i++)
        if (tenant->runners[i].card == card)
            bytes += runner_held_bytes(&tenant->runners[i]);
    return bytes;
}

/* The memory of all runners but one. */
static uint64_t others_held(const struct schedule *self, const struct runner *but, uint32_t card)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < self->tenants->count; i++)
        bytes += tenant_held(&self->items[i], card);
    return but ? bytes - runner_held_bytes(but) : bytes;
}

/* The number after the last card is host memory. */
static const struct ar_spec *device_spec(const struct schedule *self, uint32_t card)
{
    return card < self->tenants->card_count ? &self->tenants->cards[card].device : &self->host;
}

/* Only the capacity of the host is modelled: pages of any size, and calls that take no time. */
static enum ar_status prepare_host(struct schedule *self, struct ar_error *error)
{
    char text[64];
    uint64_t bytes = self->tenants->host_bytes ? self->tenants->host_bytes : 1024 * AR_GIB;
    self->cards[self->tenants->card_count].free_bytes = bytes;
    snprintf(text, sizeof text, "sim:profile=bump,capacity=%" PRIu64, bytes);
    return ar_spec_parse(text, &self->host, error);
}

/* Measures the bytes of each card that a process may have when no other process is present. */
static enum ar_status measure_cards(struct schedule *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->tenants->card_count; i++) {
        struct ar_device_props props;
        AR_TRY(ar_error_prefix(error,
                               session_device_props(&self->tenants->cards[i].device, &props, error),
                               "card %zu", i));
        self->cards[i] = (struct process_card){
            .total_bytes = props.total_bytes,
            .free_bytes = props.capacity_bytes,
            .compute_capability = self->tenants->cards[i].compute_capability,
        };
    }
    return AR_OK;
}

static uint64_t card_free(const struct schedule *self, uint32_t card)
{
    return self->cards[card].free_bytes - others_held(self, NULL, card);
}

/* The context of the process on the card of a runner, in the process's other runners. */
static uint64_t context_held(const struct tenant *tenant, const struct runner *runner)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < tenant->runner_count; i++) {
        const struct runner *other = &tenant->runners[i];
        if (other != runner && other->card == runner->card && other->open)
            bytes += other->session.device->counters.outside_bytes;
    }
    return bytes;
}

/* The process with the most memory on the card of a runner, without the runner itself. It may be
 * `tenant`. TENANTS_MOST: none has any. */
static uint64_t largest_holder(const struct schedule *self, const struct tenant *tenant,
                               const struct runner *runner)
{
    uint64_t most_bytes = 0, who = TENANTS_MOST;
    uint32_t card = runner->card;
    for (size_t i = 0; i < self->tenants->count; i++) {
        uint64_t bytes = tenant_held(&self->items[i], card);
        if (&self->items[i] == tenant) /* the context is not a request of the program */
            bytes -= runner_held_bytes(runner) + context_held(tenant, runner);
        if (bytes > most_bytes) {
            most_bytes = bytes;
            who = i;
        }
    }
    return who;
}

/* Its memory on the cards, or its pinned memory. */
static struct tenant_sample sample_of(const struct tenant *tenant, bool pinned)
{
    const struct schedule *self = tenant->schedule;
    struct tenant_sample sample = {
        .round = self->round,
        .tenant = (size_t)(tenant - self->items),
        .pinned = pinned,
    };
    for (size_t i = 0; i < tenant->runner_count; i++) {
        const struct runner *runner = &tenant->runners[i];
        if (!i && runner->open)
            sample.time_ns = runner_time_ns(runner);
        if (!runner->open || runner->pinned != pinned)
            continue;
        sample.live_bytes += runner->session.policy->totals.live_bytes;
        sample.reserved_bytes += runner->session.policy->totals.reserved_bytes;
        sample.physical_bytes += runner->session.device->counters.physical_bytes;
    }
    sample.card = tenant->runner_count ? tenant->runners[0].card : 0;
    sample.card_free_bytes =
        card_free(self, pinned ? (uint32_t)self->tenants->card_count : sample.card);
    return sample;
}

static enum ar_status take_sample(struct tenant *tenant, bool only_if_moved, struct ar_error *error)
{
    const struct tenants *tenants = tenant->schedule->tenants;
    if (!tenants->sample)
        return AR_OK;
    struct tenant_sample sample = sample_of(tenant, false), pinned = sample_of(tenant, true);
    uint64_t held_bytes = sample.physical_bytes + pinned.physical_bytes;
    if (only_if_moved && held_bytes == tenant->held_bytes)
        return AR_OK;
    tenant->held_bytes = held_bytes;
    AR_TRY(tenants->sample(tenants->argument, &sample, error));
    if (tenant->setup->pinned)
        AR_TRY(tenants->sample(tenants->argument, &pinned, error));
    return AR_OK;
}

/* ---- departure ------------------------------------------------------------------------------ */

static enum ar_status leave(struct tenant *tenant, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < tenant->runner_count; i++) {
        AR_THEN(status, ar_error_prefix(error, runner_end(&tenant->runners[i], error), "process %s",
                                        tenant->setup->name));
        runner_close(&tenant->runners[i]);
    }
    tenant->presence = GONE;
    return status;
}

/* Reports a pool, once. */
static enum ar_status report(struct tenant *tenant, struct runner *runner, struct ar_error *error)
{
    struct tenant_result *result = tenant->result;
    bool had_failed = result->outcome == TENANT_FAILED;
    AR_TRY(ar_error_prefix(error, runner_report(runner, result, error), "process %s",
                           tenant->setup->name));
    if (!had_failed && result->refused_bytes)
        result->refused_by = largest_holder(tenant->schedule, tenant, runner);
    return AR_OK;
}

/* Ends the process, after success or failure. */
static enum ar_status retire(struct tenant *tenant, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < tenant->runner_count && !status; i++)
        status = report(tenant, &tenant->runners[i], error);
    if (tenant->setup->stays && tenant->result->outcome == TENANT_PASSED &&
        (!tenant->setup->leaves || tenant->schedule->round < tenant->setup->leaves))
        tenant->presence = STAYING;
    else
        AR_THEN(status, leave(tenant, error));
    return status;
}

/* ---- arrival -------------------------------------------------------------------------------- */

/* Configures its pools by its settings and the present state of the cards. */
static enum ar_status configure(struct tenant *tenant, struct ar_error *error)
{
    const struct schedule *self = tenant->schedule;
    struct process_card cards[PROCESS_CARDS];
    for (uint32_t i = 0; i < self->tenants->card_count; i++) {
        cards[i] = self->cards[i];
        cards[i].free_bytes = card_free(self, i);
    }
    return tenant_place(tenant->setup, cards, self->tenants->card_count,
                        tenant->setup->context_bytes, &tenant->process, error);
}

static bool wait_for_memory(void *argument, const struct ar_policy_request *request);

static enum ar_status open_pools(struct tenant *tenant, struct ar_error *error)
{
    const struct schedule *self = tenant->schedule;
    const struct tenant_setup *setup = tenant->setup;
    tenant->runners = calloc(tenant->process.pool_count, sizeof *tenant->runners);
    if (!tenant->runners && tenant->process.pool_count)
        return ar_no_memory(error, "process %s", setup->name);
    for (size_t i = 0; i < tenant->process.pool_count; i++) {
        const struct process_pool *pool = &tenant->process.pools[i];
        struct runner *runner = &tenant->runners[tenant->runner_count];
        bool first_there = true; /* each card has the context once */
        for (size_t k = 0; k < tenant->runner_count; k++)
            first_there = first_there && tenant->runners[k].card != pool->card;
        runner->card = pool->card;
        runner->limit_of_free = pool->limit_of_free;
        runner->pinned = pool->pinned;
        size_t work = i < setup->workload_count ? i : setup->workload_count - 1;
        work = pool->pinned ? 0 : work;
        uint64_t context_bytes = first_there && !pool->pinned ? setup->context_bytes : 0;
        AR_TRY(runner_open(runner, device_spec(self, pool->card), pool->policy,
                           setup->workloads[work], context_bytes,
                           others_held(self, NULL, pool->card), wait_for_memory, tenant, error));
        tenant->runner_count++;
    }
    return AR_OK;
}

/* The process cannot start: records the reason as its outcome. */
static enum ar_status stay_away(struct tenant *tenant, enum tenant_outcome outcome, const char *why,
                                struct ar_error *error)
{
    tenant->result->outcome = outcome;
    snprintf(tenant->result->why, sizeof tenant->result->why, "%.*s",
             (int)sizeof tenant->result->why - 1, why);
    return leave(tenant, error);
}

static enum ar_status arrive(struct tenant *tenant, uint64_t time_ns, struct ar_error *error)
{
    struct ar_error why = {""};
    tenant->presence = THERE;
    tenant->result->arrived = tenant->schedule->round;
    enum ar_status status = configure(tenant, &why);
    process_warnings(&tenant->process, tenant->result->warned, sizeof tenant->result->warned);
    if (status == AR_NEGATIVE)
        return stay_away(tenant, TENANT_REFUSED_SETTINGS, why.text, error);
    AR_THEN(status, open_pools(tenant, &why));
    if (status == AR_REFUSED || status == AR_NO_MEMORY)
        return stay_away(tenant, TENANT_NO_ROOM, why.text, error);
    if (status != AR_OK) {
        if (error)
            *error = why;
        return ar_error_prefix(error, status, "process %s", tenant->setup->name);
    }
    /* The delay of the first request after the arrival is not known: a microsecond to a second. */
    if (tenant->schedule->tenants->free)
        time_ns += DELAY_NS << ar_rng_below(&tenant->schedule->rng, DELAYS);
    tenant->retry_ns = tenant->process.retries ? tenant->process.retry_ms * 1000000 : 0;
    tenant->result->card = tenant->runner_count ? tenant->runners[0].card : 0;
    for (size_t i = 0; i < tenant->runner_count; i++)
        runner_wait_until(&tenant->runners[i], time_ns);
    if (!tenant->runner_count)
        return retire(tenant, error);
    return AR_OK;
}

static enum ar_status arrivals(struct schedule *self, uint64_t time_ns, struct ar_error *error)
{
    for (size_t i = 0; i < self->tenants->count; i++)
        if (self->items[i].presence == TO_COME && self->items[i].setup->arrives <= self->round)
            AR_TRY(arrive(&self->items[i], time_ns, error));
    return AR_OK;
}

static enum ar_status departures(struct schedule *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->tenants->count; i++) {
        struct tenant *tenant = &self->items[i];
        if (!tenant->setup->leaves || self->round < tenant->setup->leaves || tenant->waits)
            continue;
        if (tenant->presence == THERE)
            AR_TRY(retire(tenant, error));
        else if (tenant->presence == STAYING)
            AR_TRY(leave(tenant, error));
    }
    return AR_OK;
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* Runs all pools of a process for that many steps or events each. Retires it at its end. */
static enum ar_status turn(struct tenant *tenant, uint64_t steps, uint64_t events,
                           struct ar_error *error)
{
    const struct schedule *self = tenant->schedule;
    bool done = true, failed = false;
    tenant->waiting_since_ns = 0;
    for (size_t i = 0; i < tenant->runner_count; i++) {
        struct runner *runner = &tenant->runners[i];
        tenant->going = i;
        if (!runner_done(runner)) {
            enum ar_status status =
                runner_go(runner, others_held(self, runner, runner->card), steps, events, error);
            if (status != AR_OK)
                return ar_error_prefix(error, status, "process %s", tenant->setup->name);
        }
        done = done && runner_done(runner);
        failed = failed || replay_has_failed(runner->replay);
    }
    tenant->turns = tenant->runners[0].gate.steps;
    uint64_t held_bytes = tenant_held(tenant, tenant->runners[0].card);
    AR_RAISE(tenant->result->peak_card_bytes, held_bytes);
    enum ar_status status = take_sample(tenant, self->tenants->free, error);
    return status == AR_OK && (done || failed) ? retire(tenant, error) : status;
}

static uint64_t tenant_time_ns(const struct tenant *tenant)
{
    uint64_t latest_ns = 0;
    for (size_t i = 0; i < tenant->runner_count; i++) {
        uint64_t time_ns = runner_time_ns(&tenant->runners[i]);
        latest_ns = time_ns > latest_ns ? time_ns : latest_ns;
    }
    return latest_ns;
}

/* One step of each process; then all wait for the slowest. */
static enum ar_status round_of_all(struct schedule *self, struct ar_error *error)
{
    uint64_t latest_ns = 0;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->tenants->count && !status; i++)
        if (self->items[i].presence == THERE)
            status = turn(&self->items[i], 1, UINT64_MAX, error);
        else if (self->items[i].presence == STAYING)
            status = take_sample(&self->items[i], false, error);
    for (size_t i = 0; i < self->tenants->count && !status; i++)
        if (self->items[i].presence == THERE) {
            uint64_t time_ns = tenant_time_ns(&self->items[i]);
            latest_ns = time_ns > latest_ns ? time_ns : latest_ns;
        }
    for (size_t i = 0; i < self->tenants->count && !status; i++)
        for (size_t k = 0; k < self->items[i].runner_count; k++)
            if (self->items[i].presence == THERE)
                runner_wait_until(&self->items[i].runners[k], latest_ns);
    self->round++;
    AR_THEN(status, departures(self, error));
    return status == AR_OK ? arrivals(self, latest_ns, error) : status;
}

/* The process with the earliest clock that does not wait; NULL: none. Among equal clocks, such as
 * of processes that arrive together, the seed decides, because a machine could run any of them
 * first. */
static struct tenant *furthest_behind(struct schedule *self)
{
    struct tenant *found = NULL;
    uint64_t least_ns = UINT64_MAX, alike = 0;
    for (size_t i = 0; i < self->tenants->count; i++) {
        struct tenant *tenant = &self->items[i];
        if (tenant->presence != THERE || tenant->waits)
            continue;
        uint64_t time_ns = tenant_time_ns(tenant);
        if (time_ns > least_ns)
            continue;
        alike = time_ns == least_ns ? alike + 1 : 1;
        if (alike == 1 || !ar_rng_below(&self->rng, alike))
            found = tenant;
        least_ns = time_ns;
    }
    return found;
}

/* One turn of one process, and the arrivals and departures that follow from it. */
static enum ar_status turn_of_one(struct schedule *self, struct tenant *tenant,
                                  struct ar_error *error)
{
    uint64_t mean = self->tenants->turn_events ? self->tenants->turn_events : TURN_EVENTS;
    uint64_t events = ar_rng_between(&self->rng, 1, 2 * mean - 1);
    uint64_t time_ns = tenant_time_ns(tenant);
    AR_TRY(turn(tenant, UINT64_MAX, events, error));
    if (tenant->turns > self->round) {
        self->round = tenant->turns;
        AR_TRY(departures(self, error));
        AR_TRY(arrivals(self, time_ns, error));
    }
    return AR_OK;
}

/* A request of `argument` failed. The other processes run until its wait is over or memory is
 * free. */
static bool wait_for_memory(void *argument, const struct ar_policy_request *request AR_UNUSED)
{
    struct tenant *tenant = argument;
    struct schedule *self = tenant->schedule;
    if (!tenant->retry_ns || tenant->waits || !tenant->runner_count)
        return false;
    struct runner *runner = &tenant->runners[tenant->going];
    uint64_t begun_ns = tenant_time_ns(tenant);
    uint64_t since_ns = tenant->waiting_since_ns ? tenant->waiting_since_ns : begun_ns;
    uint64_t until_ns = since_ns + tenant->retry_ns;
    uint64_t held_bytes = others_held(self, runner, runner->card);
    struct tenant *other;
    tenant->waits = true;
    while (self->tenants->free && self->status == AR_OK &&
           others_held(self, runner, runner->card) >= held_bytes &&
           (other = furthest_behind(self)) && tenant_time_ns(other) < until_ns)
        self->status = turn_of_one(self, other, self->error);
    tenant->waits = false;
    bool freed = others_held(self, runner, runner->card) < held_bytes;
    struct ar_device *device = runner->session.device;
    (void)device->ops->others(device, others_held(self, runner, runner->card));
    runner_wait_until(runner, freed ? begun_ns + RETRY_NS : until_ns);
    tenant->waiting_since_ns = freed ? since_ns : 0;
    tenant->result->retries_waited += freed;
    return freed && self->status == AR_OK && tenant_time_ns(tenant) < until_ns;
}

static enum ar_status run_all(struct schedule *self, struct ar_error *error)
{
    enum ar_status status = arrivals(self, 0, error);
    while (status == AR_OK) {
        struct tenant *next = furthest_behind(self);
        bool to_come = false;
        for (size_t i = 0; i < self->tenants->count; i++)
            to_come = to_come || self->items[i].presence == TO_COME;
        if (!next && !to_come)
            break;
        if (!next) { /* no running process makes steps, so the next one starts now */
            self->round++;
            status = departures(self, error);
            status = status == AR_OK ? arrivals(self, 0, error) : status;
        } else {
            status =
                self->tenants->free ? turn_of_one(self, next, error) : round_of_all(self, error);
        }
        status = status == AR_OK ? self->status : status;
    }
    return status;
}

enum ar_status tenants_run(const struct tenants *tenants, struct tenant_result *results,
                           struct ar_error *error)
{
    struct schedule self = {.tenants = tenants, .error = error};
    if (!tenants->count || tenants->count > TENANTS_MOST || !tenants->card_count ||
        tenants->card_count > PROCESS_CARDS)
        return ar_invalid(error, "1 to %d processes on 1 to %d cards", TENANTS_MOST, PROCESS_CARDS);
    AR_TRY(measure_cards(&self, error));
    AR_TRY(prepare_host(&self, error));
    self.items = calloc(tenants->count, sizeof *self.items);
    if (!self.items) {
        ar_spec_close(&self.host);
        return ar_no_memory(error, "%zu processes", tenants->count);
    }
    memset(results, 0, tenants->count * sizeof *results);
    ar_rng_seed(&self.rng, tenants->seed);
    for (size_t i = 0; i < tenants->count; i++) {
        results[i].refused_by = TENANTS_MOST;
        self.items[i] = (struct tenant){
            .schedule = &self,
            .setup = &tenants->setups[i],
            .result = &results[i],
        };
    }
    enum ar_status status = run_all(&self, error);
    for (size_t i = 0; i < tenants->count; i++) {
        AR_THEN(status, leave(&self.items[i], error));
        for (size_t k = 0; k < self.items[i].runner_count; k++)
            runner_close(&self.items[i].runners[k]);
        free(self.items[i].runners);
    }
    free(self.items);
    ar_spec_close(&self.host);
    return status;
}
