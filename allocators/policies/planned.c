/* The policies that plan: places for the requests by their number, and a caching pool for the rest.
 *
 * 1. The plan gives the k-th request a size and an offset. If the k-th request has that size,
 *    rounded, and its place is free, the block is placed there, in one arena of the size of the
 *    plan. The first such request obtains the arena.
 * 2. All other requests, and all requests if the arena cannot be obtained, fall back to a caching
 *    pool. They take the smallest free piece that is large enough, the lowest address first, and
 *    cut it to size. If there is none, the pool obtains a device allocation of exactly the size.
 *    Wholly free allocations are released only when memory is short.
 * 3. Free space of the arena serves planned requests only. An empty arena is released if the
 *    program releases its cache or memory is short, and is obtained again when needed.
 *
 * The pieces of arena and pool belong to one heap, in two lists. Two policies share this:
 *
 * plan: all lifetimes are known before the first request. It shows what an allocator could reach
 * with foresight: a bound, not a competitor.
 * 4. It takes the lowest plan of several orders of placement. If that is above the peak of live
 *    bytes, an exact search goes on for a number of steps, which is the same on every machine.
 * 5. The engine passes the trace itself, so every request has its place, unless the capacity is
 *    below the plan or a probe that fails comes in between.
 * Source: MiniMalloc (Moffitt, ASPLOS 2023), which it equals if the search ends; `allocrig bound`
 * prints the plan and says whether it is the lowest.
 *
 * stalloc: one run is profiled, its requests get places in one arena, and the requests of the next
 * run are served from there as long as they match.
 * 6. Sizes are rounded to 512 bytes. Several heuristics make a plan each; the one that reserves
 *    least is used.
 * 7. Requests match by number and size. `--stats` counts planned and other requests.
 * 8. The profile is a trace or a generator, named by the option `profile`, which the engine reads.
 *    Without it the run itself is the profile: the best case.
 * Source: STAlloc (infinigence/STAlloc; STWeaver, arXiv 2507.16274). Its planner splits requests by
 * kinds of lifetime and fuses groups. Here the plan comes from the orders of allocators/planning,
 * which have the same goal. Its option to use idle static space for unplanned requests (off there
 * too) is left out. */

#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/heap.h"
#include "allocators/planning/packing.h"

#define CACHE 0 /* lists of the heap */
#define ARENA 1

#define NODE_SHIFT 32 /* of a cookie: the piece below, the node of a planned block above */

/* The place of a request, in the order of requests. */
struct planned_place {
    uint64_t bytes; /* rounded */
    uint64_t offset;
};

/* Writes the offsets of a plan. The size of the arena follows from them. */
struct planned;
typedef enum ar_status planned_rule(const struct planned *self, const struct packing *packing,
                                    uint64_t *offsets);

struct planned {
    struct ar_policy base;
    size_t bytes; /* of the struct that starts with this one */
    planned_rule *rule;
    struct heap heap;
    uint64_t granule_bytes, limit_bytes;
    struct planned_place *places;
    size_t place_count, next; /* next: the number of the next request */
    uint64_t plan_bytes;      /* of the arena */
    bool has_arena;
    uint64_t arena_address;
    struct ar_range_pool live; /* planned blocks; `extra`: their piece */
    uint32_t by_address;       /* the tree of these blocks */
    uint64_t planned_requests, planned_bytes, fallback_requests, fallback_bytes, taken_requests;
    uint64_t flushes, retries, failures;
};

/* Creates the shared part in memory of `bytes`. */
static enum ar_status planned_create(const struct ar_policy_ops *ops, size_t bytes,
                                     uint64_t granule_bytes, planned_rule *rule,
                                     const struct ar_policy_context *context,
                                     const struct ar_policy_common *values, struct ar_policy **out,
                                     struct ar_error *error)
{
    struct planned *self = ar_policy_new(context, ops, bytes, error);
    AR_TRY_HOST(self);
    self->bytes = bytes;
    self->rule = rule;
    heap_open(&self->heap, &self->base, context);
    ar_range_pool_open(&self->live, context->host);
    self->granule_bytes = granule_bytes;
    self->limit_bytes = ar_policy_limit(values);
    *out = &self->base;
    return AR_OK;
}

static void forget_plan(struct planned *self)
{
    ar_host_free(self->heap.host, self->places, self->place_count * sizeof *self->places);
    self->places = NULL;
    self->place_count = self->next = 0;
    self->plan_bytes = 0;
}

static void planned_destroy(struct ar_policy *base)
{
    struct planned *self = (struct planned *)base;
    struct ar_host *host = self->heap.host;
    forget_plan(self);
    heap_close(&self->heap);
    ar_range_pool_close(&self->live);
    ar_host_free(host, self, self->bytes);
}

/* The blocks of the problem, with sizes in whole granules. */
static void make_blocks(const struct planned *self, const struct ar_policy_lifetime *lifetimes,
                        size_t count, struct packing_block *blocks)
{
    for (size_t i = 0; i < count; i++)
        blocks[i] = (struct packing_block){
            .bytes = ar_size_round_up(lifetimes[i].bytes, self->granule_bytes),
            .born = lifetimes[i].born,
            .dies =
                lifetimes[i].dies > lifetimes[i].born ? lifetimes[i].dies : lifetimes[i].born + 1,
        };
}

static void take_plan(struct planned *self, const struct packing_block *blocks,
                      const uint64_t *offsets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t end = offsets[i] + blocks[i].bytes;
        self->places[i] = (struct planned_place){blocks[i].bytes, offsets[i]};
        self->plan_bytes = end > self->plan_bytes ? end : self->plan_bytes;
    }
}

static enum ar_status planned_plan(struct ar_policy *base,
                                   const struct ar_policy_lifetime *lifetimes, size_t count)
{
    struct planned *self = (struct planned *)base;
    struct ar_host *host = self->heap.host;
    struct packing packing;
    forget_plan(self);
    if (count == 0)
        return AR_OK;
    struct packing_block *blocks = ar_host_alloc(host, count * sizeof *blocks);
    uint64_t *offsets = ar_host_alloc(host, count * sizeof *offsets);
    self->places = ar_host_alloc(host, count * sizeof *self->places);
    self->place_count = self->places ? count : 0;
    enum ar_status status = AR_HOST_MEMORY;
    if (blocks && offsets && self->places) {
        make_blocks(self, lifetimes, count, blocks);
        status = packing_open(&packing, host, blocks, count, NULL);
        if (status == AR_OK) {
            status = self->rule(self, &packing, offsets);
            packing_close(&packing);
        }
    }
    if (status == AR_OK)
        take_plan(self, blocks, offsets, count);
    else
        forget_plan(self);
    ar_host_free(host, blocks, count * sizeof *blocks);
    ar_host_free(host, offsets, count * sizeof *offsets);
    return status;
}

/* Releases all wholly free device allocations. */
static enum ar_status free_all(struct planned *self)
{
    for (uint32_t list = CACHE; list <= ARENA; list++) {
        uint64_t bytes = 0;
        uint64_t address = 0;
        for (uint32_t piece; (piece = heap_next_whole(&self->heap, list, &bytes, &address)) != 0;) {
            AR_TRY(heap_release(&self->heap, piece));
            if (list == ARENA)
                self->has_arena = false;
        }
    }
    return AR_OK;
}

/* A device allocation. Releases cached memory if memory is short. NO_MEMORY. */
static enum ar_status obtain(struct planned *self, uint64_t bytes, uint32_t *piece)
{
    for (int tries = 0; tries < 2; tries++) {
        enum ar_status status = AR_REFUSED;
        if (bytes <= self->limit_bytes &&
            self->base.totals.reserved_bytes <= self->limit_bytes - bytes)
            status = heap_grow(&self->heap, bytes, piece);
        if (status != AR_REFUSED)
            return status;
        if (tries == 1 || !self->base.totals.releasable_bytes)
            break;
        self->flushes++;
        self->retries++;
        AR_TRY(free_all(self));
    }
    return AR_NO_MEMORY;
}

static enum ar_status need_arena(struct planned *self)
{
    uint32_t piece;
    if (self->has_arena)
        return AR_OK;
    AR_TRY(obtain(self, self->plan_bytes, &piece));
    self->has_arena = true;
    self->arena_address = self->heap.spans.at[piece].address;
    heap_put(&self->heap, piece, ARENA);
    return AR_OK;
}

/* The free piece of the arena that contains [address, address + bytes); 0: the place is in use. */
static uint32_t idle_piece(const struct planned *self, uint64_t address, uint64_t bytes)
{
    uint32_t below = ar_range_tree_last(&self->live, self->by_address, address);
    uint32_t piece = below ? self->heap.spans.at[self->live.nodes[below].extra].next
                           : heap_segment_of(&self->heap, self->arena_address)->first;
    const struct ar_span *span = &self->heap.spans.at[piece];
    if (!piece || span->used || span->address > address ||
        address + bytes > span->address + span->bytes)
        return 0;
    return piece;
}

/* Cuts the place out of a free piece. */
static uint32_t cut_out(struct planned *self, uint32_t piece, uint64_t address, uint64_t bytes)
{
    struct heap *heap = &self->heap;
    heap_remove(heap, piece);
    if (heap->spans.at[piece].address < address) {
        uint32_t rest = heap_cut(heap, piece, address - heap->spans.at[piece].address);
        heap_put(heap, piece, ARENA);
        heap->spans.at[rest].used = 1;
        piece = rest;
    }
    if (heap->spans.at[piece].bytes > bytes)
        heap_split(heap, piece, bytes, ARENA);
    return piece;
}

/* NO_MEMORY: the place is in use, or there is no arena. */
static enum ar_status take_place(struct planned *self, const struct planned_place *place,
                                 uint64_t *cookie)
{
    AR_TRY(need_arena(self));
    uint64_t address = self->arena_address + place->offset;
    uint32_t piece = idle_piece(self, address, place->bytes);
    if (!piece) {
        self->taken_requests++;
        return AR_NO_MEMORY;
    }
    piece = cut_out(self, piece, address, place->bytes);
    uint32_t node = ar_range_pool_take(&self->live);
    self->live.nodes[node].address = address;
    self->live.nodes[node].bytes = place->bytes;
    self->live.nodes[node].extra = piece;
    ar_range_tree_insert(&self->live, &self->by_address, AR_RANGE_BY_ADDRESS, node);
    *cookie = piece | (uint64_t)node << NODE_SHIFT;
    return AR_OK;
}

static enum ar_status fall_back(struct planned *self, uint64_t bytes, uint64_t *cookie)
{
    uint32_t piece = heap_take_exactly(&self->heap, CACHE, bytes);
    AR_TRY(piece ? AR_OK : obtain(self, bytes, &piece));
    self->heap.spans.at[piece].owner = CACHE;
    *cookie = piece;
    return AR_OK;
}

static enum ar_status make_ready(struct planned *self)
{
    enum ar_status status = heap_ready(&self->heap, 3, CACHE);
    AR_THEN(status, heap_ready(&self->heap, 3, ARENA));
    return status != AR_OK || ar_range_pool_reserve(&self->live, 1) ? status : AR_HOST_MEMORY;
}

static enum ar_status planned_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                    struct ar_policy_block *out)
{
    struct planned *self = (struct planned *)base;
    uint64_t bytes = ar_size_round_up(request->bytes, self->granule_bytes);
    AR_TRY(make_ready(self));
    const struct planned_place *place =
        self->next < self->place_count ? &self->places[self->next] : NULL;
    self->next++;
    bool planned = place && place->bytes == bytes;
    enum ar_status status = planned ? take_place(self, place, &out->cookie) : AR_NO_MEMORY;
    if (status == AR_NO_MEMORY) {
        planned = false;
        status = fall_back(self, bytes, &out->cookie);
    }
    if (status != AR_OK) {
        self->failures += status == AR_NO_MEMORY;
        return status;
    }
    struct ar_span *span = &self->heap.spans.at[(uint32_t)out->cookie];
    span->requested_bytes = request->bytes;
    *(planned ? &self->planned_requests : &self->fallback_requests) += 1;
    *(planned ? &self->planned_bytes : &self->fallback_bytes) += request->bytes;
    ar_policy_grant(base, out, span->address, bytes, out->cookie);
    return AR_OK;
}

static enum ar_status planned_free(struct ar_policy *base, const struct ar_policy_block *block,
                                   uint32_t stream AR_UNUSED)
{
    struct planned *self = (struct planned *)base;
    uint32_t piece = (uint32_t)block->cookie, node = (uint32_t)(block->cookie >> NODE_SHIFT);
    const struct ar_span *span = &self->heap.spans.at[piece];
    ar_policy_ungrant(base, span->requested_bytes, span->bytes);
    if (node) {
        ar_range_tree_remove(&self->live, &self->by_address, AR_RANGE_BY_ADDRESS, node);
        ar_range_pool_give(&self->live, node);
    }
    heap_give(&self->heap, piece, node ? ARENA : CACHE);
    return AR_OK;
}

static enum ar_status planned_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    return ar_policy_free_bytes(&base->totals) > keep_bytes ? free_all((struct planned *)base)
                                                            : AR_OK;
}
static void planned_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct planned *self = (const struct planned *)base;
    heap_stats(&self->heap, out);
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
}

/* Free space of the arena serves planned requests only. */
static void planned_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct planned *self = (const struct planned *)base;
    ar_policy_room_fill(out, heap_largest(&self->heap, CACHE), 0, base->totals.releasable_bytes);
}

static void planned_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    heap_walk(&((const struct planned *)base)->heap, false, visit, argument);
}

/* Whether a planned block is its piece. */
static bool has_its_piece(void *argument, const struct ar_range_node *node)
{
    const struct planned *self = argument;
    const struct ar_span *span = &self->heap.spans.at[node->extra];
    return span->used && span->address == node->address && span->bytes == node->bytes &&
           node->address >= self->arena_address &&
           node->address - self->arena_address + node->bytes <= self->plan_bytes;
}

static enum ar_status planned_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct planned *self = (const struct planned *)base;
    uint64_t count;
    if (!ar_range_tree_check(&self->live, self->by_address, AR_RANGE_BY_ADDRESS, &count) ||
        !ar_range_tree_walk(&self->live, self->by_address, has_its_piece, (void *)self))
        return ar_policy_broken(base, "a planned block differs from its piece, in the arena",
                                self->arena_address, error);
    if (count > base->totals.live_blocks || (count && !self->has_arena))
        return ar_error_set(error, AR_CORRUPT,
                            "policy %s: %" PRIu64
                            " planned blocks, more than are live or without an arena",
                            base->ops->name, count);
    return heap_validate(&self->heap, error);
}

static bool planned_report(const struct ar_policy *base, size_t index, char *name,
                           size_t name_bytes, uint64_t *value)
{
    const struct planned *self = (const struct planned *)base;
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {
        {"plan_bytes", self->plan_bytes},
        {"planned_requests", self->planned_requests},
        {"planned_bytes", self->planned_bytes},
        {"fallback_requests", self->fallback_requests},
        {"fallback_bytes", self->fallback_bytes},
        {"fallbacks_of_taken_places", self->taken_requests},
    };
    if (index >= AR_COUNT(figures))
        return false;
    snprintf(name, name_bytes, "%s", figures[index].name);
    *value = figures[index].value;
    return true;
}

/* What the ops of both policies share. */
#define PLANNED_OPS                                                                                \
    AR_POLICY_HOOKS(planned),                                                                      \
        .capabilities = AR_POLICY_OFFLINE | AR_POLICY_UNRANKED | AR_POLICY_WATCHES_FREE,           \
        .room = planned_room, .trim = planned_trim, .plan = planned_plan, .report = planned_report

/* ---- plan ------------------------------------------------------------------------------------ */

extern const struct ar_policy_ops plan_policy;

struct plan_values {
    struct ar_policy_common common;
    uint64_t granule_bytes, steps;
};

struct plan {
    struct planned planned;
    uint64_t steps;
};

static const struct ar_option plan_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"granule", AR_OPTION_BYTES, offsetof(struct plan_values, granule_bytes), "0", 0, AR_GIB, NULL,
     "bytes that sizes and addresses are rounded up to, a power of two; 0: 1 if the granule of the "
     "device is 1, else 256"},
    {"steps", AR_OPTION_COUNT, offsetof(struct plan_values, steps), "4000", 0, 1000000000, NULL,
     "of the search for a lower plan; 0: none"},
    {0},
};

/* The plan of the best order, improved by the exact search. */
static enum ar_status lowest(const struct planned *planned, const struct packing *packing,
                             uint64_t *offsets)
{
    const struct plan *self = (const struct plan *)planned;
    struct packing_best best;
    struct packing_exact exact;
    const struct packing_exact_options options = {.steps_most = self->steps};
    enum ar_status status = packing_best_order(packing, offsets, &best);
    if (status != AR_OK || self->steps == 0)
        return status;
    exact.top_bytes = best.top_bytes;
    return packing_exact(packing, &options, offsets, &exact);
}

static enum ar_status plan_create(const struct ar_policy_context *context, const void *values,
                                  struct ar_policy **out, struct ar_error *error)
{
    const struct plan_values *given = values;
    uint64_t granule = given->granule_bytes;
    if (granule == 0)
        granule = context->backing->granule_bytes == 1 ? 1 : 256;
    if (!ar_size_is_power_of_two(granule))
        return ar_invalid(error,
                          "policy plan, option granule: %llu is not a power of two up to 1 GiB",
                          (unsigned long long)granule);
    AR_TRY(planned_create(&plan_policy, sizeof(struct plan), granule, lowest, context,
                          &given->common, out, error));
    ((struct plan *)*out)->steps = given->steps;
    return AR_OK;
}

const struct ar_policy_ops plan_policy = {
    PLANNED_OPS,
    .name = "plan",
    .summary = "every lifetime is known in advance and each block has its place: a bound",
    .reference = "offline dynamic storage allocation; MiniMalloc (ASPLOS 2023)",
    .options = plan_options,
    .values_bytes = sizeof(struct plan_values),
    .create = plan_create,
};

/* ---- stalloc --------------------------------------------------------------------------------- */

#define UNIT_BYTES UINT64_C(512)

extern const struct ar_policy_ops stalloc_policy;

struct stalloc_values {
    struct ar_policy_common common;
    const char *profile; /* read by the engine */
};

static const struct ar_option stalloc_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"profile", AR_OPTION_TEXT, offsetof(struct stalloc_values, profile), "", 0, 0, NULL,
     "the workload to plan by, a trace file or the spec of a generator in quotes; empty: the run "
     "itself"},
    {0},
};

static enum ar_status least(const struct planned *self AR_UNUSED, const struct packing *packing,
                            uint64_t *offsets)
{
    struct packing_best best;
    return packing_best_order(packing, offsets, &best);
}

static enum ar_status stalloc_create(const struct ar_policy_context *context, const void *values,
                                     struct ar_policy **out, struct ar_error *error)
{
    const struct stalloc_values *given = values;
    return planned_create(&stalloc_policy, sizeof(struct planned), UNIT_BYTES, least, context,
                          &given->common, out, error);
}

const struct ar_policy_ops stalloc_policy = {
    PLANNED_OPS,
    .name = "stalloc",
    .summary = "places planned from a profile of another run, a caching pool for what differs",
    .reference = "STAlloc (infinigence/STAlloc, arXiv 2507.16274); needs a profile",
    .options = stalloc_options,
    .values_bytes = sizeof(struct stalloc_values),
    .create = stalloc_create,
};
