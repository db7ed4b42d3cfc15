/* RAPIDS RMM's arena_memory_resource (as of 2026), without its size classes, which are off there:
 *
 * 1. One block is taken from the device, `arena_size` bytes, else half of what was free, rounded
 *    down to 256. It is one empty superblock of the global arena. Superblocks have 1 MiB to 1 TiB.
 *    (RMM takes it when it is made; here that is the first request, so that a device without room
 *    for it makes requests fail instead of the set-up.)
 * 2. Sizes round up to 256 bytes. A request above 1 MiB goes to the global arena: the first of its
 *    superblocks, by address, with any free block that fits. Is that one completely empty and at
 *    least 1 MiB larger than the request, a head of just the request is split off as a superblock
 *    of its own. In the superblock the first free block that fits is cut exactly.
 * 3. Other requests go to the arena of their stream: first superblock, first block. Where none
 *    fits, one superblock that has room moves from the global arena to the stream's, found by the
 *    same rule: of an empty one a head of 1 MiB, where at least 1 MiB is left; else all of it.
 * 4. Where there is no room: wait for the device, return all superblocks of all streams' arenas,
 *    used or not, to the global arena (RMM calls it defragment), and try once more.
 * 5. A block is freed into its superblock and merges with free neighbours there. In the global
 *    arena empty superblocks that touch become one. Those of streams stay where they are until
 *    rule 4. A block above 1 MiB, and one that no superblock of this stream's arena holds, is
 *    freed after the host has waited for the stream.
 * 6. Nothing goes back to the device. */
#include <stddef.h>

#include "allocators/policies/rmm_arena/arena.h"

struct arena_values {
    struct ar_policy_common common;
    uint64_t arena_bytes;
};

static const struct ar_option arena_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"arena_size", AR_OPTION_BYTES, offsetof(struct arena_values, arena_bytes), "0", 0, 0, NULL,
     "bytes that the arena takes and has, 1 MiB to 1 TiB; 0: the limit, else half of what is free"},
    {NULL, AR_OPTION_BYTES, 0, NULL, 0, 0, NULL, NULL},
};

static struct rmm_arena *arena_of(struct ar_policy *base)
{
    return (struct rmm_arena *)base;
}

static void note(struct rmm_arena *self, uint32_t stream)
{
    if (stream >= self->streams && stream != UINT32_MAX)
        self->streams = stream + 1;
}

static void wait_for(struct rmm_arena *self, uint32_t stream)
{
    ar_backing_wait(self->backing, ar_backing_fence(self->backing, stream));
}

/* Rule 4. */
static void defragment(struct rmm_arena *self)
{
    for (uint32_t stream = 0; stream < self->streams; stream++)
        wait_for(self, stream);
    arena_clean(self);
    self->counted.count.flushes++;
    self->counted.count.retries++;
}

static enum ar_status arena_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct rmm_arena *self = arena_of(base);
    uint64_t bytes = ar_size_round_up(request->bytes, ARENA_ALIGNMENT_BYTES);
    uint32_t arena = request->stream + 1;
    if (!arena_reserve(self, request->stream))
        return AR_HOST_MEMORY;
    note(self, request->stream);
    self->last_stream = request->stream;
    enum ar_status status = arena_obtain(self);
    if (status != AR_OK) {
        self->counted.count.failures += status == AR_REFUSED;
        return status == AR_REFUSED ? AR_NO_MEMORY : status;
    }
    uint32_t block = arena_take(self, arena, bytes);
    if (!block) {
        defragment(self);
        block = arena_take(self, arena, bytes);
    }
    if (!block) {
        self->counted.count.failures++;
        return AR_NO_MEMORY;
    }
    struct ar_range_node *range = &self->ranges.nodes[block];
    range->extra |= (bytes - request->bytes) << 32;
    base->totals.live_bytes += request->bytes;
    base->totals.granted_bytes += bytes;
    base->totals.live_blocks++;
    base->totals.releasable_bytes = 0;
    out->address = range->address;
    out->granted_bytes = bytes;
    out->cookie = block;
    return AR_OK;
}

static enum ar_status arena_free(struct ar_policy *base, const struct ar_policy_block *block,
                                 uint32_t stream)
{
    struct rmm_arena *self = arena_of(base);
    uint32_t index = (uint32_t)block->cookie;
    const struct ar_range_node *range = &self->ranges.nodes[index];
    uint32_t arena = self->superblocks[arena_superblock_of(range)].arena;
    note(self, stream);
    if (range->bytes > SUPERBLOCK_LEAST || arena != stream + 1)
        wait_for(self, stream);
    base->totals.live_bytes -= arena_requested(range);
    base->totals.granted_bytes -= range->bytes;
    if (--base->totals.live_blocks == 0)
        base->totals.releasable_bytes = self->arena_bytes;
    arena_give(self, index);
    return AR_OK;
}

static enum ar_status arena_use(struct ar_policy *base, const struct ar_policy_block *block,
                                uint32_t stream)
{
    (void)block;
    note(arena_of(base), stream);
    return AR_OK;
}

static void arena_destroy(struct ar_policy *base)
{
    struct rmm_arena *self = arena_of(base);
    if (self->first)
        (void)ar_backing_segment_free(self->backing, self->address);
    ar_range_pool_close(&self->ranges);
    ar_host_free(self->host, self->superblocks, self->superblock_room * sizeof *self->superblocks);
    ar_host_free(self->host, self->arenas, self->arena_count * sizeof *self->arenas);
    ar_host_free(self->host, self, sizeof *self);
}

static const char *arena_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct rmm_arena *)base)->backing);
}

/* Rule 1. 0: what was asked for is out of bounds, and the sentence is written. */
static uint64_t size_wanted(const struct ar_policy_context *context,
                            const struct arena_values *values, struct ar_error *error)
{
    uint64_t limit = values->common.limit_bytes;
    uint64_t wanted = values->arena_bytes ? values->arena_bytes : limit;
    if (limit && wanted > limit) {
        (void)ar_error_set(error, AR_INVALID, "policy rmm-arena: arena_size is above the limit");
        return 0;
    }
    if (!wanted) {
        uint64_t free_bytes;
        uint64_t total_bytes;
        ar_backing_memory(context->backing, &free_bytes, &total_bytes);
        wanted = free_bytes / 2 < SUPERBLOCK_MOST ? free_bytes / 2 : SUPERBLOCK_MOST;
    }
    wanted = ar_size_round_down(wanted, ARENA_ALIGNMENT_BYTES);
    if (wanted >= SUPERBLOCK_LEAST && wanted <= SUPERBLOCK_MOST)
        return wanted;
    (void)ar_error_set(
        error, AR_INVALID,
        "policy rmm-arena: an arena of %llu bytes is not between 1 MiB and 1 TiB; give "
        "arena_size, or a device with 2 MiB free",
        (unsigned long long)wanted);
    return 0;
}

static enum ar_status arena_create(const struct ar_policy_context *context, const void *values,
                                   struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops rmm_arena_policy;
    uint64_t bytes = size_wanted(context, values, error);
    if (!bytes)
        return AR_INVALID;
    struct rmm_arena *self = ar_host_alloc(context->host, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "policy rmm-arena: the host has no memory left");
    self->base.ops = &rmm_arena_policy;
    self->backing = context->backing;
    self->host = context->host;
    self->arena_bytes = bytes;
    ar_range_pool_open(&self->ranges, context->host);
    *out = &self->base;
    return AR_OK;
}

static const char *const arena_recorders[] = {"rmm-arena", NULL};

const struct ar_policy_ops rmm_arena_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "rmm-arena",
    .summary = "RAPIDS RMM's arena: first fit by address, superblocks lent to streams",
    .reference = "RMM 26.10, arena_memory_resource",
    .recorders = arena_recorders,
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = arena_options,
    .values_bytes = sizeof(struct arena_values),
    .create = arena_create,
    .destroy = arena_destroy,
    .alloc = arena_alloc,
    .free = arena_free,
    .stats = arena_stats,
    .walk = arena_walk,
    .validate = arena_validate,
    .servable = arena_servable,
    .use = arena_use,
    .problem = arena_problem,
};
