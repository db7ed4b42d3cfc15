/* A run as a PyTorch memory snapshot (`run --snapshot`). The policy's walk gives the blocks in
 * use with their sizes; the entries give the requested bytes, the tag, and whether the program
 * has freed the block. Headers of the policy and free ranges become free blocks. */
#include "bench/report/run_output.h"

#include "allocators/base/array.h"
#include "workloads/formats/torch/snapshot_image.h"

void run_snapshot_open(struct run_snapshot *self, const char *name)
{
    *self = (struct run_snapshot){0};
    (void)snprintf(self->image.name, sizeof self->image.name, "%s", name);
}

void run_snapshot_close(struct run_snapshot *self)
{
    snapshot_image_close(&self->image);
    ar_map_close(&self->live);
    free(self->free_requested);
    *self = (struct run_snapshot){0};
}

static bool action_of(enum observer_kind kind, enum snapshot_action *action)
{
    switch (kind) {
    case OBSERVER_ALLOC:
        *action = SNAPSHOT_ALLOC;
        return true;
    case OBSERVER_FAILED:
        *action = SNAPSHOT_OOM;
        return true;
    case OBSERVER_FREE_REQUESTED:
        *action = SNAPSHOT_FREE_REQUESTED;
        return true;
    case OBSERVER_FREE_COMPLETED:
        *action = SNAPSHOT_FREE_COMPLETED;
        return true;
    case OBSERVER_SEGMENT_ALLOC:
        *action = SNAPSHOT_SEGMENT_ALLOC;
        return true;
    case OBSERVER_SEGMENT_FREE:
        *action = SNAPSHOT_SEGMENT_FREE;
        return true;
    case OBSERVER_SEGMENT_MAP:
        *action = SNAPSHOT_SEGMENT_MAP;
        return true;
    case OBSERVER_SEGMENT_UNMAP:
        *action = SNAPSHOT_SEGMENT_UNMAP;
        return true;
    default:
        return false;
    }
}

/* Keeps the request of each block, and whether a free of it was requested. */
static enum ar_status follow(struct run_snapshot *self, enum snapshot_action action,
                             uint64_t address, struct ar_error *error)
{
    uint64_t entry = self->image.entry_count, request;
    AR_TRY_MEMORY(AR_ARRAY_REACH(self->free_requested, self->free_requested_room, entry), error,
                  "a snapshot");
    if (action == SNAPSHOT_ALLOC)
        return ar_map_put(&self->live, address, entry) ? ar_no_memory(error, "a snapshot") : AR_OK;
    if (action == SNAPSHOT_FREE_REQUESTED && ar_map_get(&self->live, address, &request))
        self->free_requested[request] = true;
    if (action == SNAPSHOT_FREE_COMPLETED)
        ar_map_remove(&self->live, address);
    return AR_OK;
}

/* The setting that a user would make, without the name of the variable. */
static void take_setting(struct run_snapshot *self, const char *setting)
{
    static const char variable[] = "PYTORCH_CUDA_ALLOC_CONF=";
    bool is_torch = strncmp(setting, variable, sizeof variable - 1) == 0;
    if (is_torch)
        (void)snprintf(self->image.conf, sizeof self->image.conf, "%s",
                       strstr(setting, "backend:native") ? "" : setting + sizeof variable - 1);
}

enum ar_status run_snapshot_observe(void *argument, const struct observer_event *event,
                                    struct ar_error *error)
{
    struct run_snapshot *self = argument;
    enum snapshot_action action;
    if (event->kind == OBSERVER_MARK)
        return snapshot_add_mark(&self->image, event->tag, event->keys, 0, event->now_ns / 1000,
                                 error);
    if (event->kind == OBSERVER_CHANGE) {
        take_setting(self, event->keys);
        return snapshot_add_change(&self->image, event->tag, event->now_ns / 1000, error);
    }
    if (!action_of(event->kind, &action))
        return AR_OK;
    struct snapshot_entry entry = {
        .address = action == SNAPSHOT_OOM ? event->free_bytes : event->address,
        .bytes = event->bytes,
        .time_us = event->now_ns / 1000,
        .stream = event->stream,
        .pool = event->pool,
        .action = (uint8_t)action,
    };
    if (event->tag)
        AR_TRY(snapshot_tag(&self->image, event->tag, &entry.tag, error));
    AR_TRY(follow(self, action, entry.address, error));
    return snapshot_add_entry(&self->image, &entry, error);
}

struct walk {
    struct run_snapshot *self;
    enum ar_status status;
    struct ar_error *error;
};

static bool add_block(void *argument, const struct ar_policy_range *range)
{
    struct walk *walk = argument;
    struct run_snapshot *self = walk->self;
    uint64_t request;
    if (range->state != AR_POLICY_RANGE_USED && range->state != AR_POLICY_RANGE_PENDING)
        return true;
    struct snapshot_block block = {
        .address = range->address,
        .bytes = range->bytes,
        .requested_bytes = range->requested_bytes,
        .pool = range->pool,
        .state = range->state == AR_POLICY_RANGE_USED ? SNAPSHOT_ACTIVE : SNAPSHOT_PENDING,
    };
    if (ar_map_get(&self->live, range->address, &request)) {
        const struct snapshot_entry *entry = &self->image.entries[request];
        block.requested_bytes = entry->bytes;
        block.tag = entry->tag;
        if (self->free_requested[request])
            block.state = SNAPSHOT_PENDING;
    }
    walk->status = snapshot_add_block(&self->image, &block, walk->error);
    return walk->status == AR_OK;
}

static enum ar_status to_stream(void *argument, const void *bytes, size_t count,
                                struct ar_error *error)
{
    (void)error; /* output_finish() reports errors */
    (void)fwrite(bytes, 1, count, argument);
    return AR_OK;
}

/* A policy without memory has nothing to walk over: it gets one segment over all addresses that it
 * returned, with the live blocks in it. */
static enum ar_status add_one_segment(struct run_snapshot *self, struct ar_error *error)
{
    struct snapshot_entry all = {
        .address = UINT64_MAX, .action = SNAPSHOT_SEGMENT_ALLOC, .before = true};
    uint64_t end = 0, request;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->image.entry_count && !status; i++) {
        const struct snapshot_entry *entry = &self->image.entries[i];
        if (entry->action != SNAPSHOT_ALLOC)
            continue;
        AR_LOWER(all.address, entry->address);
        AR_RAISE(end, entry->address + entry->bytes);
        if (!ar_map_get(&self->live, entry->address, &request) || request != i)
            continue;
        const struct snapshot_block block = {
            .address = entry->address,
            .bytes = entry->bytes,
            .requested_bytes = entry->bytes,
            .tag = entry->tag,
            .state = self->free_requested[i] ? SNAPSHOT_PENDING : SNAPSHOT_ACTIVE,
        };
        status = snapshot_add_block(&self->image, &block, error);
    }
    all.bytes = end - all.address;
    return end && !status ? snapshot_add_entry(&self->image, &all, error) : status;
}

enum ar_status run_snapshot_write(struct run_snapshot *self, const struct ar_policy *policy,
                                  FILE *stream, struct ar_error *error)
{
    struct walk walk = {.self = self, .error = error};
    char setting[sizeof self->image.conf];
    if (!self->image.entry_count)
        return ar_invalid(error, "the run requested nothing of the GPU, so that its snapshot would "
                                 "be empty, which no reader takes");
    if (policy->ops->setting && policy->ops->setting(policy, setting, sizeof setting))
        take_setting(self, setting);
    if (policy->ops->capabilities & AR_POLICY_OVERLAPS)
        walk.status = add_one_segment(self, error);
    else
        ar_policy_walk(policy, add_block, &walk);
    if (!walk.status)
        walk.status = snapshot_settle(&self->image, error);
    return walk.status ? walk.status : snapshot_write(&self->image, to_stream, stream, error);
}
