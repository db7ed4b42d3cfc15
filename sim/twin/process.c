/* One rank of a process: its device with what the others hold, its policy between watch and
 * regions, its feed and replay. */

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "sim/twin/run.h"

enum ar_status twin_run_error(struct twin_run *run, enum ar_status status, const char *format, ...)
{
    char text[900];
    AR_PRINT(text, sizeof text, format);
    if (run->status == AR_OK) {
        run->status = ar_error_set(run->error, status, "%s", text);
        run->over = true;
    }
    return run->status;
}

enum ar_status twin_no_memory(struct twin_run *run)
{
    return twin_run_error(run, AR_HOST_MEMORY, "no host memory for a twin");
}

/* The sentence is in run->error already. */
static void failed_with(struct twin_run *run, enum ar_status status)
{
    if (run->status == AR_OK && status != AR_OK) {
        run->status = status;
        run->over = true;
    }
}

/* ---- accounts -------------------------------------------------------------------------------- */

uint32_t twin_process_account(struct twin_process *self, const struct twin_owner_key *key,
                              const char *purpose)
{
    uint32_t owner = twin_owner_number(self->run, key, purpose);
    for (size_t i = 0; i < self->account_count; i++)
        if (self->accounts[i].owner == owner)
            return (uint32_t)i;
    const struct account account = {.owner = owner};
    if (!AR_ARRAY_ADD(self->accounts, self->account_count, self->account_room, account)) {
        (void)twin_no_memory(self->run);
        return 0;
    }
    self->watch.accounts = self->accounts;
    return (uint32_t)self->account_count - 1;
}

void twin_process_pin(struct twin_process *self, uint32_t account, uint64_t more, uint64_t less)
{
    self->accounts[account].pinned_bytes += more - less;
    self->pinned_live_bytes += more - less;
}

static struct twin_card *card_of(const struct twin_process *self)
{
    struct twin_card *card = self->run->cards;
    while (card->number != self->card)
        card++;
    return card;
}

void twin_process_look(struct twin_process *self)
{
    struct twin_run *run = self->run;
    struct twin_card *card = card_of(self);
    uint64_t others_bytes = twin_others(self), bytes = watch_used(&self->watch) + others_bytes;
    if (bytes > card->high_bytes) {
        card->high_bytes = bytes;
        card->high_count = 0;
        for (size_t i = 0; i < run->process_count; i++) {
            struct twin_process *process = &run->processes[i];
            if (process->card == self->card && process->device)
                failed_with(run, twin_amounts_add(process, &card->high, &card->high_count,
                                                  &card->high_room));
        }
    }
    self->watch.high_bytes = card->high_bytes - others_bytes;
}

static void higher(void *argument)
{
    twin_process_look(argument);
}

static void host_freed(void *argument, uint32_t account, uint64_t bytes)
{
    twin_process_pin(argument, account, 0, bytes);
}

/* ---- pinned memory of all processes ---------------------------------------------------------- */

static enum ar_status pinned_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct relay *relay = (struct relay *)base;
    struct twin_process *self =
        (struct twin_process *)((char *)relay - offsetof(struct twin_process, pinned_relay));
    const struct twin_run *run = self->run;
    uint64_t most_bytes = run->scenario->host_bytes, used_bytes = 0;
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].device)
            used_bytes += run->processes[i].device->counters.pinned_bytes * run->processes[i].times;
    if (most_bytes && used_bytes + bytes * self->times > most_bytes)
        return AR_REFUSED;
    return ar_backing_segment_alloc(relay->inner, bytes, address);
}

static enum ar_status open_pinned(struct twin_process *self, struct ar_error *error)
{
    if (!self->device->pinned)
        return AR_OK;
    relay_open(&self->pinned_relay, self->device->pinned);
    self->pinned_relay.ops.segment_alloc = pinned_alloc;
    const char *text = self->setup->pinned;
    if (!text)
        text =
            strcmp(watch_inside(self->policy)->ops->name, "torch") == 0 ? "torch-pinned" : "none";
    if (strcmp(text, "none") == 0)
        return AR_OK;
    const struct ar_policy_context context = {
        .backing = &self->pinned_relay.base, .host = &self->pinned_host, .seed = 1};
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    enum ar_status status = ar_spec_parse(text, &spec, error);
    AR_THEN(status, registry_create(&spec, &context, &self->pinned, error));
    return ar_error_prefix(error, status, "process %s: pinned", self->setup->name);
}

/* ---- begin ----------------------------------------------------------------------------------- */

static enum ar_status check_policy(const struct twin_process *self, const struct ar_policy *policy,
                                   struct ar_error *error)
{
    const struct ar_policy_ops *ops = policy->ops;
    if (ops->capabilities & AR_POLICY_OFFLINE)
        return ar_invalid(error,
                          "process %s: policy %s needs all requests in advance, which a scenario "
                          "does not have; choose another",
                          self->setup->name, ops->name);
    if (ops->capabilities & (AR_POLICY_OVERLAPS | AR_POLICY_PINNED))
        return ar_invalid(error, "process %s: policy %s has no memory of the card; choose another",
                          self->setup->name, ops->name);
    return AR_OK;
}

static enum ar_status open_policy(struct twin_process *self, struct ar_error *error)
{
    const char *text = self->setup->policy ? self->setup->policy : "torch";
    const struct ar_policy_context context = {
        .backing = &self->regions.relay.base, .host = &self->host, .seed = 1};
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    struct ar_policy *inner = NULL;
    enum ar_status status = ar_spec_parse(text, &spec, error);
    AR_THEN(status, registry_create(&spec, &context, &inner, error));
    AR_TRY(ar_error_prefix(error, status, "process %s", self->setup->name));
    const char *limit = ar_spec_value(&spec, "limit");
    if (!limit || ar_size_parse(limit, &self->config.limit_bytes, NULL) != AR_OK)
        self->config.limit_bytes = 0;
    status = check_policy(self, inner, error);
    AR_THEN(status, watch_open(&self->watch, &self->host, inner, &self->policy, error));
    if (status != AR_OK)
        ar_policy_destroy(inner);
    return status;
}

static enum ar_status open_replay(struct twin_process *self, struct ar_error *error)
{
    char name[96];
    snprintf(name, sizeof name, "process %s, card %u", self->setup->name, self->card);
    AR_TRY(feed_open(&self->feed, name, self->streams, !self->several_block_streams, error));
    self->config.policy = self->policy;
    self->config.pinned = self->pinned;
    self->config.device = self->device;
    self->config.source = &self->feed.base;
    self->config.stop_on_failure = true;
    self->config.policy_host = &self->host;
    return replay_open(&self->config, &self->replay, error);
}

static enum ar_status open_all(struct twin_process *self, struct ar_error *error)
{
    AR_TRY(ar_device_open(&self->run->device.spec, &self->device, error));
    if (!self->device->ops->others)
        return ar_invalid(error,
                          "a twin runs on the simulated device; write card = sim:profile=NAME");
    self->watch.device = self->device;
    regions_open(&self->regions, self->device);
    self->regions.host_freed = host_freed;
    self->regions.argument = self;
    self->watch.feed = &self->feed;
    self->watch.regions = &self->regions;
    self->watch.higher = higher;
    self->watch.argument = self;
    AR_TRY(open_policy(self, error));
    AR_TRY(open_pinned(self, error));
    return open_replay(self, error);
}

void twin_process_tell(struct twin_process *self)
{
    uint64_t bytes = twin_others(self);
    if (self->device->ops->others(self->device, bytes) != AR_OK)
        (void)twin_run_error(self->run, AR_CORRUPT,
                             "processes hold more of card %u than it has: %s", self->card,
                             self->device->ops->problem(self->device));
}

void twin_process_begin(struct twin_process *self)
{
    struct twin_run *run = self->run;
    if (self->begun || run->over)
        return;
    self->begun = true;
    failed_with(run, open_all(self, run->error));
    if (run->over)
        return;
    self->context_bytes =
        self->setup->context_bytes == UINT64_MAX ? run->context_bytes : self->setup->context_bytes;
    const struct twin_owner_key key = {self->number, SIZE_MAX, TWIN_OWNER_CONTEXT, 0};
    self->context_account = twin_process_account(self, &key, "context");
    twin_process_outside(self, self->context_account, self->context_bytes);
}

/* ---- the replay ------------------------------------------------------------------------------ */

/* The block of the first request that failed. */
static void note_failed_event(struct twin_process *self, const struct replay_result *result)
{
    const struct feed *feed = &self->feed;
    struct twin_failure *failure = &self->run->failure;
    uint64_t at = result->first_failed_event - feed->replayed;
    if (at >= feed->count)
        return;
    const struct feed_block *block = &feed->blocks[feed->events[at].slot];
    failure->pinned = block->pinned;
    failure->owner = self->accounts[block->account].owner;
}

/* "rollout.wake: 2.000 GiB of rollout/weights do not fit on card 0, 524.0 MiB are free" */
static void write_why(const struct twin_process *self, const struct twin_failure *failure,
                      char *text, size_t room)
{
    const struct twin_run *run = self->run;
    const char *owner = run->owner_count ? run->owners[failure->owner].name : "";
    uint64_t free_bytes, total_bytes;
    const char *size = AR_SIZE(failure->bytes);
    if (failure->pinned) {
        snprintf(text, room, "%s: %s of %s do not fit into the host memory that can be pinned, %s",
                 failure->action, size, owner, AR_SIZE(run->scenario->host_bytes));
        return;
    }
    ar_backing_memory(self->device->backing, &free_bytes, &total_bytes);
    snprintf(text, room, "%s: %s of %s do not fit on card %u, %s are free", failure->action, size,
             owner, self->card, AR_SIZE(free_bytes));
}

/* Free on the card or in the pool. What is free in sleeping segments, all of them without their
 * live blocks, does not count. */
static uint64_t unused_bytes(const struct twin_process *self)
{
    uint64_t free_bytes, total_bytes, asleep_free_bytes = self->regions.asleep_bytes;
    for (size_t i = 0; i < self->account_count; i++)
        asleep_free_bytes -= self->accounts[i].asleep_granted_bytes;
    ar_backing_memory(self->device->backing, &free_bytes, &total_bytes);
    return free_bytes + ar_policy_free_bytes(&self->policy->totals) - asleep_free_bytes;
}

static void note_failure(struct twin_process *self, uint64_t bytes, enum replay_cause cause)
{
    struct twin_run *run = self->run;
    run->over = true;
    run->outcome = TWIN_OUT_OF_MEMORY;
    struct twin_failure *failure = &run->failure;
    failure->phase = run->phase;
    failure->rank = 0;
    while (run->rank_process[failure->rank] != self)
        failure->rank++;
    failure->part = run->acting ? run->acting->index : SIZE_MAX;
    failure->action = run->call ? run->call->text : "";
    failure->bytes = bytes;
    failure->unused_bytes = unused_bytes(self);
    failure->others_bytes = self->device->counters.others_bytes;
    failure->cause = cause;
    write_why(self, failure, failure->why, sizeof failure->why);
}

enum replay_cause twin_process_cause(const struct twin_process *self, uint64_t bytes, bool beside)
{
    const struct ar_policy_totals *totals = &self->policy->totals;
    const struct ar_device_counters *counters = &self->device->counters;
    uint64_t free_bytes = unused_bytes(self);
    if (free_bytes >= bytes)
        return beside ? REPLAY_CAUSE_CACHE : REPLAY_CAUSE_FRAGMENTATION;
    if ((free_bytes += totals->pending_bytes) >= bytes)
        return REPLAY_CAUSE_PENDING;
    if ((free_bytes += counters->others_bytes) >= bytes)
        return REPLAY_CAUSE_TENANT;
    /* A context is there as long as its process. */
    if (free_bytes + counters->outside_bytes - self->context_bytes >= bytes)
        return REPLAY_CAUSE_OUTSIDE;
    return REPLAY_CAUSE_CAPACITY;
}

/* The replay has stopped at a request that failed. Its last event stays in the feed. */
static void end_failed_replay(struct twin_process *self)
{
    struct twin_run *run = self->run;
    struct replay_result result;
    struct replay *replay = self->replay;
    self->replay = NULL;
    failed_with(run, replay_end(replay, &result, run->error));
    if (run->status != AR_OK)
        return;
    note_failed_event(self, &result);
    /* The replay's ladder counts free memory that sleeps, and the context as memory outside. Where
     * that may have decided, the shorter ladder does, unless it lacks what that one knows: pinned
     * memory and limits. */
    if ((self->regions.asleep_bytes || result.cause == REPLAY_CAUSE_OUTSIDE) &&
        !run->failure.pinned && !self->config.limit_bytes)
        result.cause = twin_process_cause(self, result.first_failed_bytes, false);
    note_failure(self, result.first_failed_bytes, result.cause);
    replay_result_close(&result);
}

void twin_process_failed(struct twin_process *self, uint64_t bytes, uint32_t account,
                         enum replay_cause cause)
{
    self->run->failure.owner = self->accounts[account].owner;
    self->run->failure.pinned = cause == REPLAY_CAUSE_PINNED;
    note_failure(self, bytes, cause);
}

/* Copies of segments that the policy has released. */
static void free_orphans(struct twin_process *self)
{
    struct twin_blocks *orphans = &self->regions.orphans;
    while (orphans->count && !feed_full(&self->feed)) {
        const struct twin_block *block = &orphans->items[--orphans->count];
        twin_process_pin(self, self->feed.blocks[block->slot].account, 0, block->bytes);
        failed_with(self->run,
                    feed_free(&self->feed, block->slot, block->stream, true, self->run->error));
    }
}

void twin_process_settle(struct twin_process *self)
{
    struct twin_run *run = self->run;
    if (!self->feed.count || run->over || !self->replay)
        return;
    twin_process_tell(self);
    if (run->over)
        return;
    twin_process_look(self);
    enum ar_status status = replay_go(self->replay, run->error);
    if (status != AR_OK && run->call)
        status = ar_error_prefix(run->error, status, "%s", run->call->text);
    failed_with(run, status);
    if (status == AR_OK && replay_stopped(self->replay)) {
        run->events += self->feed.count;
        end_failed_replay(self);
        return;
    }
    run->events += self->feed.count;
    if (status == AR_OK && self->watch.sleeper_used)
        (void)twin_run_error(run, AR_INVALID,
                             "%s: a request got memory of a region that sleeps, which the real "
                             "program would fault on; wake the region first",
                             run->call ? run->call->text : self->setup->name);
    feed_emptied(&self->feed);
    free_orphans(self);
    twin_process_look(self);
}

void twin_process_outside(struct twin_process *self, uint32_t account, uint64_t bytes)
{
    struct twin_run *run = self->run;
    twin_process_settle(self);
    if (run->over)
        return;
    uint64_t *mine = &self->accounts[account].outside_bytes;
    twin_process_tell(self);
    enum ar_status status =
        self->device->ops->outside(self->device, self->outside_bytes - *mine + bytes);
    if (status == AR_REFUSED) {
        twin_process_failed(self, bytes - *mine, account,
                            twin_process_cause(self, bytes - *mine, true));
        return;
    }
    if (status != AR_OK) {
        (void)twin_run_error(run, status, "process %s: %s", self->setup->name,
                             self->device->ops->problem(self->device));
        return;
    }
    self->outside_bytes += bytes - *mine;
    *mine = bytes;
    enum twin_owner_kind *kind = &run->owners[self->accounts[account].owner].kind;
    if (*kind == TWIN_OWNER_PART && !self->accounts[account].live_bytes)
        *kind = TWIN_OWNER_OUTSIDE;
    twin_process_look(self);
}

/* ---- end ------------------------------------------------------------------------------------- */

/* What the policies did in destroy. `state`: of registry_process_state, before it. */
static void look_for_faults(struct twin_process *self, unsigned state)
{
    struct ar_error error;
    if (!self->device)
        return;
    const struct ar_device_counters *counters = &self->device->counters;
    uint64_t left_bytes = counters->physical_bytes + counters->pinned_bytes;
    const char *problem = self->device->ops->problem(self->device);
    if (!problem[0] && left_bytes) {
        (void)ar_error_set(&error, AR_CORRUPT, "it still holds %" PRIu64 " bytes of the device",
                           left_bytes);
        problem = error.text;
    }
    if (registry_process_check(state, "destroy", &error))
        problem = error.text;
    if (problem[0])
        (void)twin_run_error(self->run, AR_CORRUPT, "process %s: the end of its policy: %s",
                             self->setup->name, problem);
}

static void close_session(struct twin_process *self)
{
    replay_discard(self->replay);
    self->replay = NULL;
    if (self->device && self->policy)
        self->device->ops->sync(self->device, TRACE_NO_STREAM);
    unsigned state = registry_process_state();
    ar_policy_destroy(self->policy);
    ar_policy_destroy(self->pinned);
    self->policy = self->pinned = NULL;
    look_for_faults(self, state);
    regions_close(&self->regions);
    ar_device_close(self->device);
    self->device = NULL;
    self->watch.device = NULL;
    feed_close(&self->feed);
}

void twin_process_end(struct twin_process *self)
{
    twin_process_settle(self);
    if (self->run->over)
        return;
    close_session(self);
    self->ended = true;
    for (size_t i = 0; i < self->account_count; i++)
        self->accounts[i] = (struct account){.owner = self->accounts[i].owner};
    self->outside_bytes = self->context_bytes = self->pinned_live_bytes = 0;
}

void twin_process_close(struct twin_process *self)
{
    close_session(self);
    for (struct twin_part *part = self->parts, *next; part; part = next) {
        next = part->next;
        if (part->ops->destroy)
            part->ops->destroy(part);
        free(part);
    }
    free(self->accounts);
    free(self->pool_bits);
}
