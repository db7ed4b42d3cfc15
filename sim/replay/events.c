/* What each kind of event does, by the rules in engine.c. The loop there has shortcuts for plain
 * events. All others, and every event of a watched run, come through here.
 *
 * Blocks are kept in slots, one for each block live at once, by the slot number in the trace. In
 * workloads with several streams, a slot has a list of the other streams that use its block. */

#include "sim/replay/run.h"
#include "workloads/trace/check.h"

/* ---- slots ---------------------------------------------------------------------------------- */

#define SLOTS_MOST (UINT32_C(1) << 31)
#define USES_MOST  (UINT32_C(1) << 28)

enum ar_status replay_slots_grow(struct replay *run, const struct trace_event *event,
                                 struct ar_error *error)
{
    if (event->slot >= SLOTS_MOST)
        return replay_bad_input(run, event, "its slot number is out of range", error);
    uint64_t count = run->slot_count ? run->slot_count * 2 : 64;
    if (count <= event->slot)
        count = (uint64_t)event->slot + 1; /* at the start what the trace needs in all */
    struct replay_slot *slots =
        run->slots ? realloc(run->slots, count * sizeof *slots) : calloc(count, sizeof *slots);
    AR_TRY_MEMORY(slots, error, "%llu blocks live at once", (unsigned long long)count);
    if (run->slots)
        memset(slots + run->slot_count, 0, (count - run->slot_count) * sizeof *slots);
    run->slots = slots;
    run->slot_count = count;
    return AR_OK;
}

static enum ar_status grow_uses(struct replay *run, struct ar_error *error)
{
    uint32_t count = run->use_count ? run->use_count * 2 : 64;
    struct replay_use *uses = count <= USES_MOST ? realloc(run->uses, count * sizeof *uses) : NULL;
    AR_TRY_MEMORY(uses, error, "%u uses of blocks", count);
    for (uint32_t i = run->use_count; i < count; i++)
        uses[i].next = i + 1 < count ? i + 2 : 0;
    run->free_use = run->use_count + 1;
    run->uses = uses;
    run->use_count = count;
    return AR_OK;
}

enum ar_status replay_use_add(struct replay *run, struct replay_slot *slot, uint32_t stream,
                              struct ar_error *error)
{
    if (stream == slot->stream)
        return AR_OK;
    for (uint32_t i = slot->uses; i; i = run->uses[i - 1].next)
        if (run->uses[i - 1].stream == stream)
            return AR_OK;
    if (!run->free_use)
        AR_TRY(grow_uses(run, error));
    uint32_t node = run->free_use;
    run->free_use = run->uses[node - 1].next;
    run->uses[node - 1] = (struct replay_use){.stream = stream, .next = slot->uses};
    slot->uses = node;
    return AR_OK;
}

void replay_uses_end(struct replay *run, struct replay_slot *slot, uint32_t stream, uint64_t event)
{
    struct ar_device *device = run->device;
    const struct ar_policy_block *block = &slot->block;
    bool seen = stream == slot->stream;
    device->ops->used(device, block->address, block->granted_bytes, slot->stream, event);
    while (slot->uses) {
        uint32_t node = slot->uses;
        struct replay_use *use = &run->uses[node - 1];
        device->ops->used(device, block->address, block->granted_bytes, use->stream, event);
        seen |= use->stream == stream;
        slot->uses = use->next;
        use->next = run->free_use;
        run->free_use = node;
    }
    if (!seen)
        device->ops->used(device, block->address, block->granted_bytes, stream, event);
}

/* ---- events --------------------------------------------------------------------------------- */

/* After a request was served: what other parts must know. The block is used only after its stream
 * waits for earlier uses of the bytes. */
static enum ar_status announce(struct replay *run, const struct trace_event *event,
                               struct replay_slot *slot, struct ar_error *error)
{
    if (run->wants_rows)
        replay_locate(run, slot);
    if (run->orders_streams)
        run->device->ops->handed_out(run->device, slot->block.address, slot->block.granted_bytes,
                                     slot->stream, !run->stream_ordered,
                                     replay_event_number(run, event));
    return replay_contents_used(run) ? replay_contents_given(run, event, slot, error) : AR_OK;
}

static struct latency_place part_of_run(const struct replay *run)
{
    uint64_t step = run->steps.count;
    return (struct latency_place){
        .first = run->steps_expected && step == 0,
        .steady = step >= run->steps_expected / 2 && step < run->steps_expected,
    };
}

/* After a call to the policy: reports it to observers, and charges the program's own time around
 * the call (`requested` of the device). */
static void after_call(struct replay *run, const struct trace_event *event,
                       enum observer_policy_kind kind, enum ar_status status,
                       const struct replay_slot *slot, uint32_t stream)
{
    if (run->wants_calls)
        replay_called(run, event, kind, status, &slot->block, stream);
    if (run->device->ops->requested && !run->config->timeless)
        run->device->ops->requested(run->device);
}

static enum ar_status call_alloc(struct replay *run, const struct trace_event *event,
                                 struct replay_slot *slot)
{
    pauses_begin(&run->pauses, run->device);
    latency_begin(run->latency, run->device);
    enum ar_status status = ar_policy_alloc(run->policy, &run->request, &slot->block);
    latency_end(run->latency);
    uint64_t pause_ns = pauses_end(&run->pauses, run->device);
    latency_add_alloc(run->latency, run->device, pause_ns, part_of_run(run));
    if (UNLIKELY(run->follow_up)) {
        after_call(run, event, OBSERVER_POLICY_ALLOC, status, slot, event->stream);
        if (run->pauses.responses)
            pauses_respond(&run->pauses, run->device, run->opened_ns + run->time_ns);
    }
    return status;
}

static enum ar_status call_free(struct replay *run, const struct trace_event *event,
                                struct replay_slot *slot, uint32_t stream)
{
    pauses_begin(&run->pauses, run->device);
    latency_begin(run->latency, run->device);
    enum ar_status status = ar_policy_free(run->policy, &slot->block, stream);
    latency_end(run->latency);
    uint64_t pause_ns = pauses_end(&run->pauses, run->device);
    latency_add_free(run->latency, run->device, pause_ns);
    if (UNLIKELY(run->follow_up))
        after_call(run, event, OBSERVER_POLICY_FREE, status, slot, stream);
    return status;
}

static enum ar_status served(struct replay *run, const struct trace_event *event,
                             struct replay_slot *slot, struct ar_error *error)
{
    if (UNLIKELY(slot->block.granted_bytes < run->request.bytes))
        return replay_broken(run, event, AR_CORRUPT, REPLAY_GRANTED_LESS, error);
    slot->state = SLOT_LIVE;
    slot->stream = event->stream;
    if (run->keeps_state)
        exact_served(&run->exact, &slot->block);
    else
        exact_reserved(&run->exact);
    return announce(run, event, slot, error);
}

enum ar_status replay_settle_request(struct replay *run, const struct trace_event *event,
                                     struct replay_slot *slot, enum ar_status status,
                                     struct ar_error *error)
{
    if (UNLIKELY(status != AR_OK))
        status = replay_ask_again(run, event, &slot->block, status);
    if (LIKELY(status == AR_OK))
        return served(run, event, slot, error);
    exact_reserved(&run->exact);
    return replay_not_served(run, event, slot, status, error);
}

/* A request to the policy; `run->request` has all but bytes and stream. */
static enum ar_status ask(struct replay *run, const struct trace_event *event, uint64_t bytes,
                          struct replay_slot *slot, struct ar_error *error)
{
    run->request.bytes = bytes;
    run->request.stream = event->stream;
    return replay_settle_request(run, event, slot, call_alloc(run, event, slot), error);
}

static void no_block(const struct trace_event *event, struct replay_slot *slot)
{
    slot->state = SLOT_EMPTY;
    slot->stream = event->stream;
    slot->block = (struct ar_policy_block){0};
    slot->segment = slot->offset = -1;
}

/* Asks for one of several sizes. The last one must be served; before it a failure is a failed
 * probe. */
static enum ar_status try_plan(struct replay *run, const struct trace_event *event, uint64_t bytes,
                               bool last, struct replay_slot *slot, struct ar_error *error)
{
    if (!bytes) {
        no_block(event, slot);
        return AR_OK;
    }
    run->must_serve = last;
    enum ar_status status = ask(run, event, bytes, slot, error);
    run->must_serve = false;
    return status;
}

/* A request of one of several sizes: the one that the choice had last, then all in order. */
static enum ar_status ask_plans(struct replay *run, const struct trace_event *event,
                                const struct replay_plans *plans, struct replay_slot *slot,
                                struct ar_error *error)
{
    uint8_t *had = replay_choice(run, plans->choice);
    AR_TRY_MEMORY(had, error, "a replay");
    slot->state = SLOT_FAILED;
    if (*had && *had <= plans->count)
        AR_TRY(try_plan(run, event, plans->bytes[*had - 1], false, slot, error));
    for (unsigned plan = 1; plan <= plans->count && slot->state == SLOT_FAILED; plan++) {
        AR_TRY(try_plan(run, event, plans->bytes[plan - 1], plan == plans->count, slot, error));
        if (slot->state != SLOT_FAILED)
            *had = (uint8_t)plan;
    }
    return AR_OK;
}

/* A request of the device's policy is a tick of the clock that counts bytes, once for all sizes. */
static void tick(struct replay *run, const struct trace_event *event)
{
    if (!run->by_time)
        replay_tick(run, event->value);
}

/* Requests with keys, probes, and requests that are empty or invalid. */
static enum ar_status unusual_request(struct replay *run, const struct trace_event *event,
                                      struct replay_slot *slot, struct ar_error *error)
{
    static const struct trace_attributes none = {0};
    const struct trace_attributes *keys =
        event->attributes ? trace_attributes_of(run->config->source, event->attributes) : &none;
    if (event->value >= TRACE_BYTES_LIMIT)
        return replay_bad_input(run, event, "a request of 2^60 bytes or more", error);
    if (event->value && keys->space == TRACE_SPACE_PINNED && run->pinned.policy)
        return replay_pinned_alloc(run, event, slot, keys, error);
    if (event->value == 0 || keys->space == TRACE_SPACE_PINNED) {
        no_block(event, slot);
        return AR_OK;
    }
    tick(run, event);
    run->request = (struct ar_policy_request){
        .alignment = keys->align,
        .pool = keys->pool,
        .mempool = keys->mempool,
        .upper_end = keys->end == TRACE_END_UPPER,
        .may_fail = event->kind == TRACE_PROBE,
    };
    struct replay_plans plans = {0};
    if (event->kind == TRACE_PROBE && keys->rest)
        AR_TRY(replay_plans_read(run, event, keys->rest, &plans, error));
    return plans.count ? ask_plans(run, event, &plans, slot, error)
                       : ask(run, event, event->value, slot, error);
}

/* The row and the answer to an adaptive workload, after a request of any kind. */
static enum ar_status report_request(struct replay *run, const struct trace_event *event,
                                     struct replay_slot *slot, struct ar_error *error)
{
    if (slot->state == SLOT_FAILED)
        slot->segment = slot->offset = -1;
    if (run->config->source->info.adaptive)
        replay_answer(run, event, slot);
    if (!run->wants_rows)
        return AR_OK;
    return replay_row(run, event, event->kind == TRACE_PROBE ? 'p' : 'a', slot, error);
}

static enum ar_status on_request(struct replay *run, const struct trace_event *event,
                                 struct ar_error *error)
{
    enum ar_status status = AR_OK;
    if (UNLIKELY(event->slot >= run->slot_count))
        AR_TRY(replay_slots_grow(run, event, error));
    struct replay_slot *slot = &run->slots[event->slot];
    if (UNLIKELY(slot->state != SLOT_UNUSED) &&
        (slot->state != SLOT_FREE_REQUESTED || run->at_completion))
        return replay_bad_input(run, event, "its slot is taken by a block that is not complete",
                                error);
    run->allocs++;
    if (LIKELY(event->value - 1 < TRACE_BYTES_LIMIT - 1 && event->kind == TRACE_ALLOC &&
               !event->attributes)) {
        tick(run, event);
        run->request = (struct ar_policy_request){0};
        status = ask(run, event, event->value, slot, error);
    } else {
        status = unusual_request(run, event, slot, error);
    }
    AR_THEN(status, replay_contents_request(run, event, error));
    AR_THEN(status, report_request(run, event, slot, error));
    return status;
}

/* UNSUPPORTED: the policy has no hook, because it does not keep uses by stream. */
static enum ar_status policy_use(struct replay *run, const struct trace_event *event,
                                 const struct replay_slot *slot, uint32_t stream,
                                 struct ar_error *error)
{
    enum ar_status status = ar_policy_use(run->policy, &slot->block, stream);
    if (run->wants_calls && run->policy->ops->use)
        replay_called(run, event, OBSERVER_POLICY_USE, status, &slot->block, stream);
    if (UNLIKELY(status != AR_OK && status != AR_UNSUPPORTED))
        return replay_broken(run, event, status, "a use on another stream failed", error);
    return AR_OK;
}

static enum ar_status free_block(struct replay *run, const struct trace_event *event,
                                 struct replay_slot *slot, uint32_t stream, struct ar_error *error)
{
    enum ar_status status = replay_contents_freed(run, event, slot, stream, error);
    if (UNLIKELY(status != AR_OK))
        return status;
    if (run->orders_streams)
        replay_uses_end(run, slot, stream, replay_event_number(run, event));
    /* A free in the order of another stream, whose work so far may have used the block. */
    if (run->orders_streams && run->stream_ordered && stream != slot->stream)
        AR_TRY(policy_use(run, event, slot, stream, error));
    status = call_free(run, event, slot, stream);
    if (UNLIKELY(status != AR_OK))
        return replay_broken(run, event, status, REPLAY_FREE_FAILED, error);
    return AR_OK;
}

/* The slot of an event about a block that exists; else NULL. */
static struct replay_slot *known_slot(struct replay *run, const struct trace_event *event)
{
    if (UNLIKELY(event->slot >= run->slot_count))
        return NULL;
    struct replay_slot *slot = &run->slots[event->slot];
    return LIKELY(slot->state != SLOT_UNUSED) ? slot : NULL;
}

/* Unused slots have stream 0: the shortcuts in engine.c depend on it. */
static void end_slot(struct replay_slot *slot)
{
    slot->state = SLOT_UNUSED;
    slot->stream = 0;
}

static enum ar_status on_free_requested(struct replay *run, const struct trace_event *event,
                                        struct ar_error *error)
{
    struct replay_slot *slot = known_slot(run, event);
    if (UNLIKELY(!slot || slot->state == SLOT_FREE_REQUESTED))
        return replay_bad_input(run, event, "free requested, but not live", error);
    enum ar_status status = AR_OK;
    run->frees += slot->state != SLOT_FAILED;
    if (run->finds_blocks)
        kernel_ops_freed(&run->kernel_ops, event->id);
    if (LIKELY(slot->state == SLOT_LIVE)) {
        if (run->keeps_state)
            exact_free_requested(&run->exact, &slot->block);
        if (run->at_completion) {
            ar_policy_retire(run->policy, &slot->block);
            if (run->wants_calls && run->policy->ops->retire)
                replay_called(run, event, OBSERVER_POLICY_RETIRE, AR_OK, &slot->block, 0);
            slot->state = SLOT_FREE_REQUESTED;
        } else {
            uint32_t stream = event->stream == TRACE_NO_STREAM ? slot->stream : event->stream;
            status = free_block(run, event, slot, stream, error);
        }
    } else if (slot->state == SLOT_PINNED && run->at_completion) {
        ar_policy_retire(run->pinned.policy, &slot->block);
    } else if (slot->state == SLOT_PINNED) {
        status = replay_pinned_free(run, event, slot, error);
    }
    if (run->at_completion) /* the state of an empty, pinned or failed block stays as well: */
        return status;      /* of those, the reader has refused a second free request */
    if (run->free_requested_ends)
        end_slot(slot);
    else
        slot->state = SLOT_FREE_REQUESTED;
    if (run->wants_rows && status == AR_OK)
        status = replay_row(run, event, 'f', slot, error);
    return status;
}

/* An `f`: a whole free (TRACE_WHOLE), or the completion of one that was requested before. */
static enum ar_status on_free(struct replay *run, const struct trace_event *event,
                              struct ar_error *error)
{
    struct replay_slot *slot = known_slot(run, event);
    if (UNLIKELY(!slot))
        return replay_bad_input(run, event, "freed, but not live", error);
    bool whole = event->flags & TRACE_WHOLE, frees_now = whole || run->at_completion;
    if (UNLIKELY(whole && slot->state == SLOT_FREE_REQUESTED))
        return replay_bad_input(run, event, "freed, but its free was requested before", error);
    if (UNLIKELY(!whole && slot->state == SLOT_LIVE))
        return replay_bad_input(run, event, "free completed, but not requested", error);
    if (LIKELY(whole)) {
        run->frees += slot->state != SLOT_FAILED;
        if (run->finds_blocks)
            kernel_ops_freed(&run->kernel_ops, event->id);
        if (slot->state == SLOT_LIVE && run->keeps_state)
            exact_free_requested(&run->exact, &slot->block);
    }
    enum ar_status status = AR_OK;
    if (frees_now && (slot->state == SLOT_LIVE || slot->state == SLOT_FREE_REQUESTED))
        status = free_block(run, event, slot, slot->stream, error);
    else if (frees_now && slot->state == SLOT_PINNED)
        status = replay_pinned_free(run, event, slot, error);
    end_slot(slot);
    if (run->wants_rows && frees_now && status == AR_OK)
        status = replay_row(run, event, 'f', slot, error);
    return status;
}

static enum ar_status on_use(struct replay *run, const struct trace_event *event,
                             struct ar_error *error)
{
    struct replay_slot *slot = known_slot(run, event);
    if (!slot)
        return replay_bad_input(run, event, "used, but not live", error);
    if (slot->state == SLOT_PINNED && run->config->frees == REPLAY_ORDERED)
        return replay_pinned_use(run, event, slot, error);
    if (slot->state != SLOT_LIVE || run->config->frees != REPLAY_ORDERED)
        return AR_OK;
    if (run->stream_ordered)
        AR_TRY(policy_use(run, event, slot, event->stream, error));
    return run->orders_streams ? replay_use_add(run, slot, event->stream, error) : AR_OK;
}

static void on_time(struct replay *run, const struct trace_event *event)
{
    uint64_t gap_ns = event->value > run->time_ns ? event->value - run->time_ns : 0;
    if (run->by_time)
        replay_tick(run, gap_ns);
    run->time_ns += gap_ns;
    if (run->config->host == REPLAY_HOST_RECORDED && gap_ns)
        run->device->ops->advance(run->device, gap_ns);
    if (run->config->host == REPLAY_HOST_OPEN)
        replay_wait_until(run->device, run->opened_ns + run->time_ns);
}

static enum ar_status on_outside(struct replay *run, const struct trace_event *event,
                                 struct ar_error *error)
{
    enum ar_status status = run->device->ops->outside(run->device, event->value);
    if (status == AR_REFUSED) {
        replay_outside_refused(run, event);
        return AR_OK;
    }
    if (status != AR_OK)
        return replay_broken(run, event, status, "memory outside of the pool", error);
    return AR_OK;
}

/* The program has deleted a MemPool. */
static enum ar_status delete_pool(struct replay *run, const struct trace_event *event,
                                  uint32_t pool, struct ar_error *error)
{
    enum ar_status status = ar_policy_delete_pool(run->policy, pool);
    if (run->wants_calls && run->policy->ops->delete_pool)
        replay_called(run, event, OBSERVER_POLICY_TRIM, status, NULL, 0);
    if (status != AR_OK)
        return replay_broken(run, event, status, "it could not delete a pool", error);
    return AR_OK;
}

static enum ar_status on_trim(struct replay *run, const struct trace_event *event,
                              struct ar_error *error)
{
    if (event->attributes) {
        const struct trace_attributes *keys =
            trace_attributes_of(run->config->source, event->attributes);
        uint32_t pool = keys->pool;
        if (pool && run->pinned.policy)
            ar_policy_end_pool(run->pinned.policy, pool);
        if (keys->space == TRACE_SPACE_PINNED)
            return run->pinned.policy ? replay_pinned_trim(run, event, error) : AR_OK;
        if (pool && keys->mempool)
            return delete_pool(run, event, pool, error);
        if (pool)
            ar_policy_end_pool(run->policy, pool);
        if (pool && run->config->tap) /* the end of a pool is not a call that observers see */
            tap_at_event(run->config->tap, replay_event_number(run, event));
    }
    enum ar_status status = ar_policy_trim(run->policy, 0);
    if (run->wants_calls && run->policy->ops->trim)
        replay_called(run, event, OBSERVER_POLICY_TRIM, status, NULL, 0);
    if (status != AR_OK && status != AR_UNSUPPORTED)
        return replay_broken(run, event, status, "it could not release its cache", error);
    return AR_OK;
}

/* The program changes settings or the limit of its allocator. FORMAT: to what this policy refuses;
 * another may accept it. */
static enum ar_status on_change(struct replay *run, const struct trace_event *event,
                                struct ar_error *error)
{
    const char *change = trace_text_of(run->config->source, event->value);
    if (UNLIKELY(run->config->tap != NULL))
        tap_change(run->config->tap, change);
    if (ar_policy_change(run->policy, change, error) == AR_OK)
        return AR_OK;
    return replay_at_event(run, event, AR_FORMAT, error);
}

static void on_driver(struct replay *run, const struct trace_event *event)
{
    bool is_local;
    uint64_t bytes;
    if (run->device->ops->driver &&
        trace_driver_note(trace_text_of(run->config->source, event->value), &is_local, &bytes))
        run->device->ops->driver(run->device, is_local, bytes);
}

static void progress(struct replay *run)
{
    ar_policy_progress(run->policy);
    if (run->pinned.policy)
        ar_policy_progress(run->pinned.policy);
}

static enum ar_status no_block_event(struct replay *run, const struct trace_event *event,
                                     struct ar_error *error)
{
    struct ar_device *device = run->device;
    uint64_t ns = event->value;
    switch (event->kind) {
    case TRACE_KERNEL:
        if (run->has_kernel_ops)
            return replay_contents_kernel(run, event, error);
        if (UNLIKELY(run->asks_lengths))
            AR_TRY(replay_contents_length(run, event, &ns, error));
        device->ops->kernel(device, event->stream,
                            UNLIKELY(run->verify) ? verify_kernel_ns(ns) : ns);
        return AR_OK;
    case TRACE_RECORD:
        device->ops->event_record(device, event->value, event->stream);
        return AR_OK;
    case TRACE_WAIT:
        device->ops->stream_wait(device, event->stream, event->value);
        return AR_OK;
    case TRACE_SYNC:
        device->ops->sync(device, event->stream);
        progress(run);
        return AR_OK;
    case TRACE_TRIM:
        return on_trim(run, event, error);
    case TRACE_OUTSIDE:
        return on_outside(run, event, error);
    case TRACE_MARK:
        if (UNLIKELY(run->config->tap != NULL))
            replay_mark(run, event);
        if (!(event->flags & TRACE_STEP))
            return AR_OK;
        progress(run);
        card_memory_end_step(&run->card, device);
        return steps_end_one(&run->steps, device, pauses_end_step(&run->pauses), error);
    case TRACE_TIME:
        on_time(run, event);
        return AR_OK;
    case TRACE_NOTE:
        if (event->flags & TRACE_DRIVER)
            on_driver(run, event);
        return trace_is_change(event) ? on_change(run, event, error) : AR_OK;
    default:
        return replay_bad_input(run, event, "not a kind of event", error);
    }
}

static enum ar_status on_event(struct replay *run, const struct trace_event *event,
                               struct ar_error *error)
{
    enum ar_status status;
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        return on_request(run, event, error);
    case TRACE_FREE_COMPLETED:
        return on_free(run, event, error);
    case TRACE_FREE_REQUESTED:
        return on_free_requested(run, event, error);
    case TRACE_USE:
        return on_use(run, event, error);
    default:
        status = no_block_event(run, event, error);
        return UNLIKELY(run->device->failed) ? AR_INVALID : status; /* replay_go reports it */
    }
}

enum ar_status replay_event(struct replay *run, const struct trace_event *event,
                            struct ar_error *error)
{
    enum ar_status status = on_event(run, event, error);
    if (event->kind != TRACE_TIME && event->kind != TRACE_KERNEL)
        run->exact.stale = true;
    return status;
}
