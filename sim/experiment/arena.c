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
    struct policy_block *blocks; /* by slot; granted_bytes 0: none */
    size_t block_count, room;    /* room: of the offsets */
};

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_HOST_MEMORY, "no host memory to place the blocks of a trace");
}

static enum status grow(struct planning *plan, const struct trace_event *event, struct error *error)
{
    if (event->slot >= plan->block_count) {
        size_t count = 2 * ((size_t)event->slot + 32);
        struct policy_block *blocks = realloc(plan->blocks, count * sizeof *blocks);
        if (!blocks)
            return no_memory(error);
        memset(blocks + plan->block_count, 0, (count - plan->block_count) * sizeof *blocks);
        plan->blocks = blocks;
        plan->block_count = count;
    }
    uint64_t *offsets =
        array_grow(plan->arena->offsets, plan->arena->count, &plan->room, sizeof *offsets);
    if (!offsets)
        return no_memory(error);
    plan->arena->offsets = offsets;
    return STATUS_OK;
}

bool arena_wants(struct trace_source *source, const struct trace_event *event)
{
    return event->value &&
           (!event->attributes ||
            trace_attributes_of(source, event->attributes)->space != TRACE_SPACE_PINNED);
}

static enum status place(struct planning *plan, const struct trace_event *event,
                         struct error *error)
{
    enum status status = grow(plan, event, error);
    if (status != STATUS_OK)
        return status;
    struct arena *arena = plan->arena;
    struct policy_block *block = &plan->blocks[event->slot];
    *block = (struct policy_block){.granted_bytes = 0};
    arena->offsets[arena->count++] = ARENA_NOWHERE;
    if (!arena_wants(plan->source, event))
        return STATUS_OK;
    const struct policy_request request = {.bytes = event->value};
    status = policy_alloc(plan->session.policy, &request, block);
    if (status != STATUS_OK)
        return error_set(error, status,
                         "%s: block %" PRIu64 " of %" PRIu64
                         " bytes finds no place in an arena without a bound",
                         plan->source->info.name, event->id, event->value);
    arena->offsets[arena->count - 1] = block->address;
    if (block->address + block->granted_bytes > arena->bytes)
        arena->bytes = block->address + block->granted_bytes;
    return STATUS_OK;
}

static enum status free_requested(struct planning *plan, const struct trace_event *event)
{
    struct policy_block *block = &plan->blocks[event->slot];
    if (!block->granted_bytes)
        return STATUS_OK;
    enum status status = policy_free(plan->session.policy, block, 0);
    block->granted_bytes = 0;
    return status;
}

static bool is_kernel_op(struct trace_source *source, const struct trace_event *event)
{
    const char *rest =
        event->attributes ? trace_attributes_of(source, event->attributes)->rest : NULL;
    return rest && strstr(rest, "op=");
}

static enum status read_all(struct planning *plan, struct error *error)
{
    enum status status = trace_rewind(plan->source, error);
    while (status == STATUS_OK) {
        const struct trace_event *events;
        size_t count;
        status = trace_next(plan->source, &events, &count, error);
        if (status != STATUS_OK || !count)
            return status;
        for (size_t i = 0; i < count && status == STATUS_OK; i++) {
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

enum status arena_plan(struct arena *arena, struct trace_source *source, struct error *error)
{
    struct planning plan = {.arena = arena, .source = source};
    struct spec policy, device;
    *arena = (struct arena){.offsets = NULL};
    enum status status = spec_parse(POLICY, &policy, error);
    if (status != STATUS_OK)
        return status;
    status = spec_parse(DEVICE, &device, error);
    if (status == STATUS_OK) {
        status = session_open(&plan.session, &policy, &device, 0, error);
        if (status == STATUS_OK) {
            status = read_all(&plan, error);
            session_close(&plan.session);
        }
        spec_close(&device);
    }
    spec_close(&policy);
    free(plan.blocks);
    if (status != STATUS_OK)
        arena_close(arena);
    return status;
}

void arena_close(struct arena *arena)
{
    free(arena->offsets);
    *arena = (struct arena){.offsets = NULL};
}
