/* PyTorch's cache of pinned host memory: CachingHostAllocator.
 *
 * The rules are those of aten/src/ATen/core/CachingHostAllocator.h and
 * aten/src/ATen/cuda/CachingHostAllocator.cpp as of PyTorch 2.11; the two thresholds are of 2.13,
 * their search of a list as of 2.15. The memory below is what cudaHostAlloc returns.
 *
 * 1. Requests are rounded up to a power of two. From `pinned_max_round_threshold_mb` on, and from
 *    `pinned_max_cached_size_mb` on, they are not rounded.
 * 2. There is a list of free blocks for each power of two. A request takes the block of its list
 *    that was freed last and is large enough. Blocks are never split or merged.
 * 3. If there is none, the driver is asked for a block of exactly that size. If it refuses, the
 *    request fails: nothing is released and nothing is tried again.
 * 4. A block records each stream that uses it. When it is freed, an event is recorded on each of
 *    these streams. All events are in one queue. Each request polls it, oldest first, and stops at
 *    the first event that is not done, whatever stream the others are of. A block whose last event
 *    is done is free. (With `pinned_use_background_threads` a thread polls every 100 us.)
 * 5. A freed block above `pinned_max_cached_size_mb` is released to the driver at once.
 * 6. A trim, torch._C._host_emptyCache(), polls and releases all free blocks.
 *    torch.cuda.empty_cache() does not do that.
 * 7. `pinned_reserve_segment_size_mb` obtains one segment at the first request. Blocks are taken
 *    from its front in steps of 4 KiB while there is room. It is never released: its free blocks
 *    are forgotten by a trim, and their memory is lost.
 * 8. A captured graph (a request with a private pool) has lists of its own. Such a block that any
 *    stream used is never used again, because events that were recorded during a capture cannot
 *    be polled. A trim releases them after the end of the pool. (Since 2.11.)
 *
 * Not modelled: pinned_use_cuda_host_register and pinned_num_register_threads, which change how
 * memory is pinned and no decision. */

#include "allocators/base/most_tree.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"

#define LISTS           64
#define RESERVE_STEP    UINT64_C(4096)
#define NO_THRESHOLD_MB 0
#define FEW_EVENTS      64u /* in a ring of this size events are looked at one by one */

struct pinned_values {
    struct ar_policy_common common;
    const char *conf;
    uint64_t reserve_segment_mb, max_round_mb, max_cached_mb;
    bool background_threads, host_register;
    uint64_t register_threads;
};

#define OPTION(field) offsetof(struct pinned_values, field)

static const struct ar_option pinned_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"conf", AR_OPTION_TEXT, OPTION(conf), NULL, 0, 0, NULL,
     "a whole PYTORCH_CUDA_ALLOC_CONF string, in quotes: its pinned_ keys are read after the other "
     "options"},
    {"pinned_reserve_segment_size_mb", AR_OPTION_COUNT, OPTION(reserve_segment_mb), "0", 0, 4194304,
     NULL, "MiB of a segment that is obtained first and never released; 0: none"},
    {"pinned_use_background_threads", AR_OPTION_BOOL, OPTION(background_threads), "false", 0, 0,
     NULL, "events are polled all the time, not only by requests"},
    {"pinned_max_round_threshold_mb", AR_OPTION_COUNT, OPTION(max_round_mb), "0", 0, 4194304, NULL,
     "requests of more MiB are not rounded up (PyTorch 2.13); 0: all are"},
    {"pinned_max_cached_size_mb", AR_OPTION_COUNT, OPTION(max_cached_mb), "0", 0, 4194304, NULL,
     "blocks of more MiB are neither rounded nor cached (PyTorch 2.13); 0: all are"},
    {"pinned_use_cuda_host_register", AR_OPTION_BOOL, OPTION(host_register), "false", 0, 0, NULL,
     "pin ordinary memory; changes no decision"},
    {"pinned_num_register_threads", AR_OPTION_COUNT, OPTION(register_threads), "1", 1, 128, NULL,
     "threads that touch it before; changes no decision"},
    {0},
};

enum block_state { BLOCK_CACHED, BLOCK_USED, BLOCK_PENDING, BLOCK_LOST, BLOCK_TAIL };

/* What a block has in addition to its node. */
struct block {
    uint64_t requested_bytes;
    uint64_t padding_bytes; /* after it, in the reserve segment */
    uint32_t pool;          /* an index of pools */
    uint32_t uses;          /* the first of its list; 0: none */
    uint32_t events;        /* recorded and not seen done */
    uint8_t state;          /* enum block_state */
    bool retired;           /* the free is requested, and will be completed by a call */
};

struct use { /* one stream in the list of a block */
    uint32_t stream, next;
};

struct event {
    struct ar_backing_ticket ticket;
    uint32_t block;
};

struct pool {
    uint32_t id; /* 0: the common one */
    bool ended;
    uint32_t free[LISTS]; /* the block freed last; linked by `next`, 0: none */
};

struct counter {
    uint64_t current, peak, allocated; /* freed = allocated - current */
};

struct pinned {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    struct ar_range_pool nodes; /* blocks, and what is left of the reserve segment */
    uint32_t by_address;
    struct block *blocks; /* by node */
    uint32_t block_room;
    struct use *uses; /* record 0 is not used */
    uint32_t use_count, use_room, spare_use;
    struct event *events; /* a ring, oldest first */
    uint32_t event_first, event_count, event_room;
    struct ar_most_tree pending; /* bytes that an event's block will cache, by place in a ring of
                                    more than FEW_EVENTS */
    uint32_t events_wanted;      /* recorded, and those that frees may still record */
    struct pool *pools;
    uint32_t pool_count, pool_room;
    uint64_t limit_bytes;
    uint64_t max_round_bytes, max_cached_bytes;
    uint64_t reserve_bytes, reserve_address; /* address 0: not obtained */
    uint32_t tail;                           /* of the reserve segment; 0: none */
    bool background;
    enum ar_status fault; /* of the backing: stops the run */
    struct counter allocations, allocated_bytes;
    struct counter active[LISTS], active_bytes[LISTS];
    struct ar_policy_stats counted; /* its counters only */
};

static void count_up(struct counter *counter, uint64_t amount)
{
    counter->current += amount;
    counter->allocated += amount;
    if (counter->current > counter->peak)
        counter->peak = counter->current;
}

/* The list of a size: the logarithm, rounded up. */
static unsigned list_of(uint64_t bytes)
{
    return bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);
}

static uint64_t rounded(const struct pinned *self, uint64_t bytes)
{
    if (bytes > self->max_round_bytes || bytes > self->max_cached_bytes)
        return bytes;
    return UINT64_C(1) << list_of(bytes);
}

static bool in_reserve(const struct pinned *self, uint64_t address)
{
    return self->reserve_address && address >= self->reserve_address &&
           address - self->reserve_address < self->reserve_bytes;
}

/* ---- free blocks ----------------------------------------------------------------------------- */

static void free_removed(struct pinned *self, uint32_t at)
{
    const struct ar_range_node *node = &self->nodes.nodes[at];
    if (!in_reserve(self, node->address))
        self->base.totals.releasable_bytes -= node->bytes;
    ar_policy_free_removed(&self->base, node->bytes);
}

/* Rule 2. 0: none. */
static uint32_t take_free(struct pinned *self, uint32_t pool, uint64_t bytes)
{
    struct ar_range_node *nodes = self->nodes.nodes;
    uint32_t *link = &self->pools[pool].free[list_of(bytes)];
    while (*link && nodes[*link].bytes < bytes)
        link = &nodes[*link].next;
    uint32_t at = *link;
    if (!at)
        return 0;
    *link = nodes[at].next;
    free_removed(self, at);
    return at;
}

static bool granted(struct pinned *self, enum ar_status status)
{
    if (status != AR_OK && status != AR_REFUSED)
        self->fault = status;
    return status == AR_OK;
}

/* Releases a block that is in no list. Memory of the reserve segment is lost (rule 7). */
static void release(struct pinned *self, uint32_t at)
{
    const struct ar_range_node *node = &self->nodes.nodes[at];
    self->allocations.current--;
    self->allocated_bytes.current -= node->bytes;
    self->counted.count.segments_freed++;
    if (in_reserve(self, node->address)) {
        self->blocks[at].state = BLOCK_LOST;
        self->base.totals.overhead_bytes += node->bytes;
        return;
    }
    (void)granted(self, ar_backing_segment_free(self->backing, node->address));
    self->base.totals.reserved_bytes -= node->bytes;
    ar_range_tree_remove(&self->nodes, &self->by_address, AR_RANGE_BY_ADDRESS, at);
    ar_range_pool_give(&self->nodes, at);
}

/* The free is completed: the block is cached, or released (rule 5). */
static void cache(struct pinned *self, uint32_t at)
{
    struct ar_range_node *node = &self->nodes.nodes[at];
    struct block *block = &self->blocks[at];
    unsigned list = list_of(node->bytes);
    self->active[list].current--;
    self->active_bytes[list].current -= node->bytes;
    block->state = BLOCK_CACHED;
    block->requested_bytes = 0;
    if (node->bytes > self->max_cached_bytes) {
        release(self, at);
        return;
    }
    uint32_t *first = &self->pools[block->pool].free[list];
    node->next = *first;
    *first = at;
    if (!in_reserve(self, node->address))
        self->base.totals.releasable_bytes += node->bytes;
    ar_policy_free_added(&self->base, node->bytes);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Rule 4. */
static void poll(struct pinned *self)
{
    while (self->event_count) {
        const struct event *event = &self->events[self->event_first];
        uint32_t at = event->block;
        if (!ar_backing_done(self->backing, event->ticket))
            return;
        if (self->pending.room)
            ar_most_tree_set(&self->pending, self->event_first, 0);
        self->event_first = (self->event_first + 1) % self->event_room;
        self->event_count--;
        self->events_wanted--;
        if (--self->blocks[at].events)
            continue;
        self->base.totals.pending_bytes -= self->nodes.nodes[at].bytes;
        cache(self, at);
    }
}

/* What the block of the event at that place will cache. */
static uint64_t pending_at(const struct pinned *self, uint32_t place)
{
    uint64_t bytes = self->nodes.nodes[self->events[place].block].bytes;
    return bytes <= self->max_cached_bytes ? bytes : 0;
}

static uint64_t largest_pending(const struct pinned *self)
{
    uint64_t largest = ar_most_tree_top(&self->pending);
    for (uint32_t i = 0; i < self->event_count && !self->pending.room; i++)
        largest = ar_most(largest, pending_at(self, (self->event_first + i) % self->event_room));
    return largest;
}

/* Makes the ring large enough for `count` events. */
static bool grow_events(struct pinned *self, uint32_t count)
{
    if (count <= self->event_room)
        return true;
    uint32_t room = self->event_room ? self->event_room : 16;
    while (room < count)
        room *= 2;
    struct event *grown = ar_host_alloc(self->host, room * sizeof *grown);
    struct ar_most_tree pending = {0};
    if (!grown || (room > FEW_EVENTS && !ar_most_tree_reserve(&pending, self->host, room))) {
        ar_host_free(self->host, grown, room * sizeof *grown);
        return false;
    }
    for (uint32_t i = 0; i < self->event_count; i++)
        grown[i] = self->events[(self->event_first + i) % self->event_room];
    ar_host_free(self->host, self->events, self->event_room * sizeof *self->events);
    ar_most_tree_close(&self->pending, self->host);
    self->events = grown;
    self->event_room = room;
    self->event_first = 0;
    self->pending = pending;
    for (uint32_t i = 0; i < self->event_count && pending.room; i++)
        ar_most_tree_set(&self->pending, i, pending_at(self, i));
    return true;
}

/* A record for a use; 0: no host memory. */
static uint32_t new_use(struct pinned *self, uint32_t stream)
{
    uint32_t use = self->spare_use;
    if (use) {
        self->spare_use = self->uses[use].next;
    } else {
        if (self->use_count + 1 >= self->use_room &&
            !ar_host_extend(self->host, &self->uses, &self->use_room,
                            self->use_room ? self->use_room * 2 : 16, sizeof *self->uses))
            return 0;
        use = ++self->use_count;
    }
    self->uses[use] = (struct use){.stream = stream};
    return use;
}

static enum ar_status pinned_use(struct ar_policy *base, const struct ar_policy_block *given,
                                 uint32_t stream)
{
    struct pinned *self = (struct pinned *)base;
    struct block *block = &self->blocks[given->cookie];
    uint32_t last = 0;
    for (uint32_t use = block->uses; use; use = self->uses[use].next) {
        if (self->uses[use].stream == stream)
            return AR_OK;
        last = use;
    }
    uint32_t use = grow_events(self, self->events_wanted + 1) ? new_use(self, stream) : 0;
    AR_TRY_HOST(use);
    *(last ? &self->uses[last].next : &block->uses) = use;
    self->events_wanted++;
    return AR_OK;
}

/* Takes the uses of a block and, if `record`, records an event for each. */
static void end_uses(struct pinned *self, uint32_t at, bool record)
{
    struct block *block = &self->blocks[at];
    for (uint32_t use = block->uses, next; use; use = next) {
        next = self->uses[use].next;
        if (record) {
            uint32_t place = (self->event_first + self->event_count++) % self->event_room;
            self->events[place] = (struct event){
                .ticket = ar_backing_fence(self->backing, self->uses[use].stream), .block = at};
            if (self->pending.room)
                ar_most_tree_set(&self->pending, place, pending_at(self, place));
            block->events++;
        } else {
            self->events_wanted--;
        }
        self->uses[use].next = self->spare_use;
        self->spare_use = use;
    }
    block->uses = 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The pool of that id; UINT32_MAX: no host memory. */
static uint32_t pool_of(struct pinned *self, uint32_t id)
{
    for (uint32_t i = 0; i < self->pool_count; i++)
        if (self->pools[i].id == id && !self->pools[i].ended)
            return i;
    if (self->pool_count == self->pool_room &&
        !ar_host_extend(self->host, &self->pools, &self->pool_room,
                        self->pool_room ? self->pool_room * 2 : 1, sizeof *self->pools))
        return UINT32_MAX;
    self->pools[self->pool_count].id = id;
    return self->pool_count++;
}

/* Makes sure that two nodes can be taken: a block, and the rest of the reserve segment. */
static bool reserve_records(struct pinned *self)
{
    if (!ar_range_pool_reserve(&self->nodes, 2))
        return false;
    return self->block_room >= self->nodes.room ||
           ar_host_extend(self->host, &self->blocks, &self->block_room, self->nodes.room,
                          sizeof *self->blocks);
}

static uint32_t add_node(struct pinned *self, uint64_t address, uint64_t bytes,
                         enum block_state state)
{
    uint32_t at = ar_range_pool_take(&self->nodes);
    self->nodes.nodes[at].address = address;
    self->nodes.nodes[at].bytes = bytes;
    self->blocks[at] = (struct block){.state = (uint8_t)state};
    ar_range_tree_insert(&self->nodes, &self->by_address, AR_RANGE_BY_ADDRESS, at);
    return at;
}

/* Rule 7, once. */
static enum ar_status open_reserve(struct pinned *self)
{
    uint64_t address;
    if (self->reserve_bytes > self->limit_bytes)
        return AR_REFUSED;
    AR_TRY(ar_backing_segment_alloc(self->backing, self->reserve_bytes, &address));
    self->reserve_address = address;
    self->base.totals.reserved_bytes += self->reserve_bytes;
    self->tail = add_node(self, address, self->reserve_bytes, BLOCK_TAIL);
    ar_policy_free_added(&self->base, self->reserve_bytes);
    self->counted.count.segments_made++;
    return AR_OK;
}

/* A block from the front of what is left of the reserve segment; 0: there is no room. */
static uint32_t take_reserve(struct pinned *self, uint64_t bytes)
{
    uint64_t taken = ar_size_round_up(bytes, RESERVE_STEP);
    if (!self->tail || taken > self->nodes.nodes[self->tail].bytes)
        return 0;
    struct ar_range_node *tail = &self->nodes.nodes[self->tail];
    uint64_t address = tail->address;
    uint64_t left = tail->bytes - taken;
    ar_policy_free_removed(&self->base, tail->bytes);
    ar_policy_free_added(&self->base, left);
    if (left) {
        ar_range_tree_change(&self->nodes, self->by_address, self->tail, address + taken, left);
    } else {
        ar_range_tree_remove(&self->nodes, &self->by_address, AR_RANGE_BY_ADDRESS, self->tail);
        ar_range_pool_give(&self->nodes, self->tail);
        self->tail = 0;
    }
    uint32_t at = add_node(self, address, bytes, BLOCK_CACHED);
    self->blocks[at].padding_bytes = taken - bytes;
    self->base.totals.overhead_bytes += taken - bytes;
    return at;
}

/* Rule 3. REFUSED: there is no memory. */
static enum ar_status obtain(struct pinned *self, uint64_t bytes, uint32_t *out)
{
    if (self->reserve_bytes && !self->reserve_address)
        AR_TRY(open_reserve(self));
    *out = take_reserve(self, bytes);
    if (!*out) {
        uint64_t address;
        uint64_t reserved = self->base.totals.reserved_bytes;
        if (reserved > self->limit_bytes || bytes > self->limit_bytes - reserved)
            return AR_REFUSED;
        AR_TRY(ar_backing_segment_alloc(self->backing, bytes, &address));
        *out = add_node(self, address, bytes, BLOCK_CACHED);
        self->base.totals.reserved_bytes += bytes;
        self->counted.count.segments_made++;
    }
    count_up(&self->allocations, 1);
    count_up(&self->allocated_bytes, bytes);
    return AR_OK;
}

static enum ar_status pinned_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                   struct ar_policy_block *out)
{
    struct pinned *self = (struct pinned *)base;
    uint32_t pool = pool_of(self, request->pool);
    if (pool == UINT32_MAX || !reserve_records(self))
        return AR_HOST_MEMORY;
    poll(self);
    if (self->fault)
        return self->fault;
    uint64_t bytes = rounded(self, request->bytes);
    uint32_t at = take_free(self, pool, bytes);
    if (!at) {
        enum ar_status status = obtain(self, bytes, &at);
        self->counted.count.failures += status == AR_REFUSED;
        if (status != AR_OK)
            return status == AR_REFUSED ? AR_NO_MEMORY : status;
    }
    const struct ar_range_node *node = &self->nodes.nodes[at];
    struct block *block = &self->blocks[at];
    block->state = BLOCK_USED;
    block->pool = pool;
    block->requested_bytes = request->bytes;
    unsigned list = list_of(node->bytes);
    count_up(&self->active[list], 1);
    count_up(&self->active_bytes[list], node->bytes);
    ar_policy_grant(base, out, node->address, node->bytes, at);
    return AR_OK;
}

static void free_requested(struct pinned *self, uint32_t at)
{
    struct block *block = &self->blocks[at];
    uint64_t bytes = self->nodes.nodes[at].bytes;
    ar_policy_ungrant(&self->base, block->requested_bytes, bytes);
    block->state = BLOCK_PENDING;
    self->base.totals.pending_bytes += bytes;
}

static void pinned_retire(struct ar_policy *base, const struct ar_policy_block *given)
{
    struct pinned *self = (struct pinned *)base;
    uint32_t at = (uint32_t)given->cookie;
    if (self->blocks[at].retired)
        return;
    free_requested(self, at);
    self->blocks[at].retired = true;
}

static enum ar_status pinned_free(struct ar_policy *base, const struct ar_policy_block *given,
                                  uint32_t stream AR_UNUSED)
{
    struct pinned *self = (struct pinned *)base;
    uint32_t at = (uint32_t)given->cookie;
    struct block *block = &self->blocks[at];
    bool completed = block->retired || !block->uses;
    bool captured = self->pools[block->pool].id != 0;
    if (!block->retired)
        free_requested(self, at);
    block->retired = false;
    end_uses(self, at, !completed && !captured);
    if (completed) {
        self->base.totals.pending_bytes -= self->nodes.nodes[at].bytes;
        cache(self, at);
    }
    return self->fault;
}

static void pinned_progress(struct ar_policy *base)
{
    struct pinned *self = (struct pinned *)base;
    if (self->background)
        poll(self);
}

/* Rule 6. */
static enum ar_status pinned_trim(struct ar_policy *base, uint64_t keep_bytes AR_UNUSED)
{
    struct pinned *self = (struct pinned *)base;
    poll(self);
    for (uint32_t i = 0; i < self->pool_count; i++) {
        if (self->pools[i].id && !self->pools[i].ended)
            continue;
        for (unsigned list = 0; list < LISTS; list++) {
            while (self->pools[i].free[list]) {
                uint32_t at = self->pools[i].free[list];
                self->pools[i].free[list] = self->nodes.nodes[at].next;
                free_removed(self, at);
                release(self, at);
            }
        }
    }
    return self->fault;
}

static void pinned_end_pool(struct ar_policy *base, uint32_t pool)
{
    struct pinned *self = (struct pinned *)base;
    for (uint32_t i = 0; pool && i < self->pool_count; i++)
        self->pools[i].ended |= self->pools[i].id == pool;
}

/* ---- inspection ------------------------------------------------------------------------------ */

/* The largest request that the rest of the reserve segment serves. */
static uint64_t servable_by_tail(const struct pinned *self)
{
    if (!self->tail)
        return 0;
    uint64_t bytes = self->nodes.nodes[self->tail].bytes;
    if (rounded(self, bytes) <= bytes)
        return bytes;
    return UINT64_C(1) << (63 - __builtin_clzll(bytes));
}

/* Only blocks of the common pool serve a request like the last one. A list ends the search at its
 * first block of a whole power of two, as all are that were rounded. */
static uint64_t largest_free(const struct pinned *self)
{
    uint64_t largest = servable_by_tail(self);
    for (unsigned lists = self->pool_count ? LISTS : 0; lists; lists--) {
        uint32_t at = self->pools[0].free[lists - 1];
        if (!at)
            continue;
        for (; at && largest < UINT64_C(1) << (lists - 1); at = self->nodes.nodes[at].next)
            largest = ar_most(largest, self->nodes.nodes[at].bytes);
        break;
    }
    return largest;
}

static void pinned_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct pinned *self = (const struct pinned *)base;
    uint64_t largest = largest_free(self);
    ar_policy_room_fill(out, largest, 0, 0);
    largest = ar_most(largest, largest_pending(self));
    out->servable_bytes[AR_POLICY_EFFORT_WAIT] = largest;
    out->servable_bytes[AR_POLICY_EFFORT_TRIM] = largest;
}

static void pinned_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    *out = ((const struct pinned *)base)->counted;
    out->totals = base->totals;
}

static void pinned_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    static const enum ar_policy_range_state states[] = {
        [BLOCK_CACHED] = AR_POLICY_RANGE_FREE,     [BLOCK_USED] = AR_POLICY_RANGE_USED,
        [BLOCK_PENDING] = AR_POLICY_RANGE_PENDING, [BLOCK_LOST] = AR_POLICY_RANGE_OVERHEAD,
        [BLOCK_TAIL] = AR_POLICY_RANGE_FREE,
    };
    const struct pinned *self = (const struct pinned *)base;
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->nodes, self->by_address, at)) != 0;) {
        const struct ar_range_node *node = &self->nodes.nodes[at];
        const struct block *block = &self->blocks[at];
        bool reserve = in_reserve(self, node->address);
        struct ar_policy_range range = {
            .address = node->address,
            .bytes = node->bytes,
            .requested_bytes = block->requested_bytes,
            .segment_address = reserve ? self->reserve_address : node->address,
            .pool = self->pool_count ? self->pools[block->pool].id : 0,
            .state = states[block->state],
        };
        if (!visit(argument, &range))
            return;
        if (!block->padding_bytes)
            continue;
        range.address += range.bytes;
        range.bytes = block->padding_bytes;
        range.requested_bytes = 0;
        range.state = AR_POLICY_RANGE_OVERHEAD;
        if (!visit(argument, &range))
            return;
    }
}

static enum ar_status pinned_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct pinned *self = (const struct pinned *)base;
    uint64_t count;
    uint64_t cached_bytes = 0;
    uint64_t listed = 0;
    uint64_t events = 0;
    if (!ar_range_tree_check(&self->nodes, self->by_address, AR_RANGE_BY_ADDRESS, &count))
        return ar_policy_broken(base, "the tree of blocks is broken", count, error);
    for (uint32_t i = 0; i < self->pool_count; i++) {
        for (unsigned list = 0; list < LISTS; list++) {
            for (uint32_t at = self->pools[i].free[list]; at; at = self->nodes.nodes[at].next) {
                const struct ar_range_node *node = &self->nodes.nodes[at];
                if (self->blocks[at].state != BLOCK_CACHED || list_of(node->bytes) != list ||
                    self->blocks[at].pool != i)
                    return ar_policy_broken(base, "a cached block is used or in a wrong list",
                                            node->address, error);
                cached_bytes += in_reserve(self, node->address) ? 0 : node->bytes;
                listed++;
            }
        }
    }
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->nodes, self->by_address, at)) != 0;) {
        listed -= self->blocks[at].state == BLOCK_CACHED;
        events += self->blocks[at].events;
    }
    if (listed)
        return ar_policy_broken(base, "a cached block is in no list, or in two", listed, error);
    if (events != self->event_count)
        return ar_policy_broken(base, "the queue does not have the events of the blocks", events,
                                error);
    return ar_policy_check_totals(base, cached_bytes, error);
}

/* The figures of torch.cuda.host_memory_stats(). Peaks of active blocks are sums of the peaks of
 * the sizes, as there. (2.10 to 2.12 do not count frees of blocks that no stream used.) */
static bool pinned_report(const struct ar_policy *base, size_t index, char *name, size_t name_bytes,
                          uint64_t *value)
{
    static const char *const metrics[] = {"allocations", "allocated_bytes", "active_requests",
                                          "active_bytes"};
    static const char *const fields[] = {"current", "peak", "allocated", "freed"};
    const struct pinned *self = (const struct pinned *)base;
    struct counter sums[4] = {self->allocations, self->allocated_bytes, {0}, {0}};
    if (index == 16 || index == 17) {
        snprintf(name, name_bytes, "%s", index == 16 ? "num_host_alloc" : "num_host_free");
        *value = index == 16 ? self->allocations.allocated
                             : self->allocations.allocated - self->allocations.current;
        return true;
    }
    if (index > 17)
        return false;
    for (unsigned list = 0; list < LISTS; list++) {
        const struct counter *of[] = {&self->active[list], &self->active_bytes[list]};
        for (unsigned i = 0; i < 2; i++) {
            sums[2 + i].current += of[i]->current;
            sums[2 + i].peak += of[i]->peak;
            sums[2 + i].allocated += of[i]->allocated;
        }
    }
    const struct counter *sum = &sums[index / 4];
    const uint64_t values[] = {sum->current, sum->peak, sum->allocated,
                               sum->allocated - sum->current};
    snprintf(name, name_bytes, "%s.%s", metrics[index / 4], fields[index % 4]);
    *value = values[index % 4];
    return true;
}

static void pinned_reset_peaks(struct ar_policy *base)
{
    struct pinned *self = (struct pinned *)base;
    self->allocations.peak = self->allocations.current;
    self->allocated_bytes.peak = self->allocated_bytes.current;
    for (unsigned list = 0; list < LISTS; list++) {
        self->active[list].peak = self->active[list].current;
        self->active_bytes[list].peak = self->active_bytes[list].current;
    }
}

static bool pinned_setting(const struct ar_policy *base, char *text, size_t text_bytes)
{
    const struct pinned *self = (const struct pinned *)base;
    const struct {
        const char *key;
        uint64_t value;
        bool given;
    } keys[] = {
        {"pinned_reserve_segment_size_mb", self->reserve_bytes / AR_MIB, self->reserve_bytes != 0},
        {"pinned_max_round_threshold_mb", self->max_round_bytes / AR_MIB,
         self->max_round_bytes != UINT64_MAX},
        {"pinned_max_cached_size_mb", self->max_cached_bytes / AR_MIB,
         self->max_cached_bytes != UINT64_MAX},
    };
    char list[256] = "";
    size_t used = 0;
    if (self->background)
        used = (size_t)snprintf(list, sizeof list, "pinned_use_background_threads:True");
    for (size_t i = 0; i < AR_COUNT(keys); i++)
        if (keys[i].given)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s:%" PRIu64,
                                     used ? "," : "", keys[i].key, keys[i].value);
    snprintf(text, text_bytes, "PYTORCH_CUDA_ALLOC_CONF=%s", used ? list : "backend:native");
    return true;
}

static const char *pinned_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct pinned *)base)->backing);
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static enum ar_status bad_conf(const char *key, const char *value, const char *why,
                               struct ar_error *error)
{
    return ar_invalid(error, "policy torch-pinned: conf \"%s:%.60s\": %s", key, value, why);
}

static enum ar_status read_pair(struct pinned_values *values, const char *key, const char *value,
                                struct ar_error *error)
{
    const struct ar_option *option = ar_options_find(pinned_options, key);
    bool yes = strcmp(value, "True") == 0 || strcmp(value, "true") == 0;
    uint64_t number;
    if (!option || strncmp(key, "pinned_", 7) != 0)
        return AR_OK; /* a setting of the device's cache */
    char *field = (char *)values + option->offset;
    if (option->type == AR_OPTION_BOOL) {
        if (!yes && strcmp(value, "False") != 0 && strcmp(value, "false") != 0)
            return bad_conf(key, value, "write True or False", error);
        memcpy(field, &yes, sizeof yes);
        return AR_OK;
    }
    if (ar_count_parse(value, &number, NULL) != AR_OK || number > 4194304)
        return bad_conf(key, value, "write a whole number, at most 4194304", error);
    memcpy(field, &number, sizeof number);
    return AR_OK;
}

/* Reads "key:value,key:[a:1,b:2],..." */
static enum ar_status read_conf(struct pinned_values *values, const char *conf,
                                struct ar_error *error)
{
    while (*conf) {
        char key[64];
        char value[64];
        size_t length = strcspn(conf, ":,");
        if (conf[length] != ':' || !length)
            return ar_invalid(error, "policy torch-pinned: conf \"%.80s\": write key:value", conf);
        snprintf(key, sizeof key, "%.*s", (int)(length < sizeof key ? length : sizeof key - 1),
                 conf);
        conf += length + 1;
        length = *conf == '[' ? strcspn(conf, "]") : strcspn(conf, ",");
        snprintf(value, sizeof value, "%.*s",
                 (int)(length < sizeof value ? length : sizeof value - 1), conf);
        conf += length;
        conf += strcspn(conf, ",");
        conf += *conf == ',';
        AR_TRY(read_pair(values, key, value, error));
    }
    return AR_OK;
}

static uint64_t threshold(uint64_t mib)
{
    return mib == NO_THRESHOLD_MB ? UINT64_MAX : mib * AR_MIB;
}

static enum ar_status pinned_create(const struct ar_policy_context *context, const void *given,
                                    struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops torch_pinned_policy;
    struct pinned_values values = *(const struct pinned_values *)given;
    if (values.conf)
        AR_TRY(read_conf(&values, values.conf, error));
    struct pinned *self = ar_policy_new(context, &torch_pinned_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->host = context->host;
    self->limit_bytes = ar_policy_limit(&values.common);
    self->max_round_bytes = threshold(values.max_round_mb);
    self->max_cached_bytes = threshold(values.max_cached_mb);
    self->reserve_bytes = values.reserve_segment_mb * AR_MIB;
    self->background = values.background_threads;
    ar_range_pool_open(&self->nodes, context->host);
    if (pool_of(self, 0) == UINT32_MAX) {
        ar_host_free(context->host, self, sizeof *self);
        return ar_no_memory(error, "policy torch-pinned");
    }
    *out = &self->base;
    return AR_OK;
}

static void pinned_destroy(struct ar_policy *base)
{
    struct pinned *self = (struct pinned *)base;
    struct ar_host *host = self->host;
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->nodes, self->by_address, at)) != 0;)
        if (!in_reserve(self, self->nodes.nodes[at].address))
            (void)ar_backing_segment_free(self->backing, self->nodes.nodes[at].address);
    if (self->reserve_address)
        (void)ar_backing_segment_free(self->backing, self->reserve_address);
    ar_range_pool_close(&self->nodes);
    ar_host_free(host, self->blocks, self->block_room * sizeof *self->blocks);
    ar_host_free(host, self->uses, self->use_room * sizeof *self->uses);
    ar_host_free(host, self->events, self->event_room * sizeof *self->events);
    ar_most_tree_close(&self->pending, host);
    ar_host_free(host, self->pools, self->pool_room * sizeof *self->pools);
    ar_host_free(host, self, sizeof *self);
}

const struct ar_policy_ops torch_pinned_policy = {
    .name = "torch-pinned",
    .summary = "PyTorch's cache of pinned host memory: powers of two, a list for each",
    .reference = "PyTorch 2.11 to 2.15, aten/src/ATen/core/CachingHostAllocator.h",
    .capabilities = AR_POLICY_PINNED | AR_POLICY_UNRANKED | AR_POLICY_WATCHES_FREE,
    .options = pinned_options,
    .values_bytes = sizeof(struct pinned_values),
    .create = pinned_create,
    AR_POLICY_HOOKS(pinned),
    .room = pinned_room,
    .use = pinned_use,
    .retire = pinned_retire,
    .progress = pinned_progress,
    .trim = pinned_trim,
    .setting = pinned_setting,
    .problem = pinned_problem,
    .report = pinned_report,
    .end_pool = pinned_end_pool,
    .reset_peaks = pinned_reset_peaks,
};
