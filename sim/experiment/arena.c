#include "sim/experiment/arena.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "sim/experiment/session.h"

#define POLICY "first-fit:granule=512" /* what a program's kernels may want of an address */
#define DEVICE "sim:profile=bump"

struct planning {
    struct arena *arena;
    struct trace_source *source;
    struct session session;
    struct ar_policy_block *blocks; /* by slot; granted_bytes 0: none */
    size_t block_count, room;       /* room: of the offsets */
};

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory to place the blocks of a trace");
}

static enum ar_status grow(struct planning *plan, const struct trace_event *event,
                           struct ar_error *error)
{
    if (event->slot >= plan->block_count) {
        size_t count = 2 * ((size_t)event->slot + 32);
        struct ar_policy_block *blocks = realloc(plan->blocks, count * sizeof *blocks);
        if (!blocks)
            return no_memory(error);
        memset(blocks + plan->block_count, 0, (count - plan->block_count) * sizeof *blocks);
        plan->blocks = blocks;
        plan->block_count = count;
    }
    uint64_t *offsets =
        ar_array_grow(plan->arena->offsets, plan->arena->count, &plan->room, sizeof *offsets);
    if (!offsets)
        return no_memory(error);
    plan->arena->offsets = offsets;
    return AR_OK;
}

bool arena_wants(struct trace_source *source, const struct trace_event *event)
{
    return event->value &&
           (!event->attributes ||
            trace_attributes_of(source, event->attributes)->space != TRACE_SPACE_PINNED);
}

static enum ar_status place(struct planning *plan, const struct trace_event *event,
                            struct ar_error *error)
{
    enum ar_status status = grow(plan, event, error);
    if (status != AR_OK)
        return status;
    struct arena *arena = plan->arena;
    struct ar_policy_block *block = &plan->blocks[event->slot];
    *block = (struct ar_policy_block){.granted_bytes = 0};
    arena->offsets[arena->count++] = ARENA_NOWHERE;
    if (!arena_wants(plan->source, event))
        return AR_OK;
    const struct ar_policy_request request = {.bytes = event->value};
    status = ar_policy_alloc(plan->session.policy, &request, block);
    if (status != AR_OK)
        return ar_error_set(error, status,
                            "%s: block %" PRIu64 " of %" PRIu64
                            " bytes finds no place in an arena without a bound",
                            plan->source->info.name, event->id, event->value);
    arena->offsets[arena->count - 1] = block->address;
    if (block->address + block->granted_bytes > arena->bytes)
        arena->bytes = block->address + block->granted_bytes;
    return AR_OK;
}

static enum ar_status free_requested(struct planning *plan, const struct trace_event *event)
{
    struct ar_policy_block *block = &plan->blocks[event->slot];
    if (!block->granted_bytes)
        return AR_OK;
    enum ar_status status = ar_policy_free(plan->session.policy, block, 0);
    block->granted_bytes = 0;
    return status;
}

static bool is_kernel_op(struct trace_source *source, const struct trace_event *event)
{
    const char *rest =
        event->attributes ? trace_attributes_of(source, event->attributes)->rest : NULL;
    return rest && strstr(rest, "op=");
}

static enum ar_status read_all(struct planning *plan, struct ar_error *error)
{
    enum ar_status status = trace_rewind(plan->source, error);
    while (status == AR_OK) {
        const struct trace_event *events;
        size_t count;
        status = trace_next(plan->source, &events, &count, error);
        if (status != AR_OK || !count)
            return status;
        for (size_t i = 0; i < count && status == AR_OK; i++) {
            if (events[i].kind == TRACE_ALLOC || events[i].kind == TRACE_PROBE)
                status = place(plan, &events[i], error);
            else if (events[i].kind == TRACE_FREE_REQUESTED ||
                     events[i].kind == TRACE_FREE_COMPLETED)
                status = free_requested(plan, &events[i]);
            else if (events[i].kind == TRACE_KERNEL && !plan->arena->needed)
                plan->arena->needed = is_kernel_op(plan->source, &events[i]);
        }
    }
    return status;
}

enum ar_status arena_plan(struct arena *arena, struct trace_source *source, struct ar_error *error)
{
    struct planning plan = {.arena = arena, .source = source};
    struct ar_spec policy, device;
    *arena = (struct arena){.offsets = NULL};
    enum ar_status status = ar_spec_parse(POLICY, &policy, error);
    if (status != AR_OK)
        return status;
    status = ar_spec_parse(DEVICE, &device, error);
    if (status == AR_OK) {
        status = session_open(&plan.session, &policy, &device, 0, NULL, error);
        if (status == AR_OK) {
            status = read_all(&plan, error);
            session_close(&plan.session);
        }
        ar_spec_close(&device);
    }
    ar_spec_close(&policy);
    free(plan.blocks);
    if (status != AR_OK)
        arena_close(arena);
    return status;
}

void arena_close(struct arena *arena)
{
    free(arena->offsets);
    *arena = (struct arena){.offsets = NULL};
}
