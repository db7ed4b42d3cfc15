/* The memory pools of ggml's CUDA backend, from which llama.cpp takes its temporary buffers
 * (ggml/src/ggml-cuda/ggml-cuda.cu at 0010882, llama.cpp of 2026). Each stream has a pool.
 *
 * `pool=leg`, struct ggml_cuda_pool_leg, the pool of cards without virtual memory and of builds
 * with GGML_CUDA_NO_VMM:
 *
 * 1. The pool keeps up to 256 freed buffers, each in the first empty slot. A buffer is a whole
 *    device allocation and is never split.
 * 2. A request takes the smallest buffer that is large enough, the lowest slot among equals, unless
 *    that buffer is larger by 64 GiB or more.
 * 3. If there is none, it obtains 1.05 times the request, rounded up to 256 bytes.
 * 4. If the device refuses, all buffers of this pool are released and the request is tried once
 *    more. Older versions end there (option `retry`). The real program ends if that fails too.
 * 5. A buffer that is freed while all slots are full is released.
 *
 * `pool=vmm`, struct ggml_cuda_pool_vmm, the pool of all other cards:
 *
 * 6. The pool is a stack in a reserved range of `max_size` bytes. Sizes round up to 128 bytes.
 * 7. A request that does not fit in the mapped part maps what is missing at its end, in pages of
 *    the device. Nothing is unmapped before the end.
 * 8. Blocks must be freed in the reverse order of their requests. ggml checks that with an
 *    assertion. Here such a free is refused and stops the run; `pool=leg`, the default here, serves
 *    any order. */

#include "allocators/base/array.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"

#define SLOTS               256u
#define SLOT_MASK           (SLOTS - 1)
#define SLOT_WORDS          (SLOTS / 64)
#define BUFFER_UNIT         UINT64_C(256) /* so a size leaves room for a slot in its lowest bits */
#define LOOK_AHEAD          1.05
#define MOST_SLACK          (UINT64_C(1) << 36)
#define STACK_ALIGNMENT     UINT64_C(128)
#define DEFAULT_RANGE_BYTES (32 * AR_GIB)

enum pool_kind {
    POOL_LEG,
    POOL_VMM,
};

struct ggml_values {
    struct ar_policy_common common;
    int kind; /* enum pool_kind */
    bool retry;
    uint64_t range_bytes;
};

/* A device allocation. In its node: extra: the requested bytes while used; previous: its stream;
 * next: 1 while it is in a slot. */
struct leg {
    uint64_t keys[SLOTS]; /* of the filled slots, ascending: the size of the buffer plus the slot */
    uint32_t buffers[SLOTS]; /* by slot */
    uint64_t filled[SLOT_WORDS];
    uint32_t count;
    uint64_t free_bytes;
};

struct stack_block {
    uint64_t bytes, requested_bytes;
};

struct stack {
    uint64_t address; /* of the range; valid if there is a mapping */
    uint64_t mapped_bytes, used_bytes;
    struct stack_block *blocks; /* live, oldest first */
    uint32_t count, room;
    struct stack_mapping {
        ar_backing_handle handle;
        uint64_t bytes;
    } * mappings; /* by address */
    uint32_t mapping_count, mapping_room;
    bool has_range;
};

struct ggml {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    struct ar_range_pool buffers;
    uint32_t by_address; /* the tree of buffers */
    struct leg **legs;   /* by stream; one of the two arrays is used */
    struct stack **stacks;
    uint32_t pool_count; /* of streams */
    uint32_t last_stream;
    uint64_t limit_bytes, range_bytes;
    enum pool_kind kind;
    bool retry;
    uint64_t made, freed, flushes, retries, failures;
    char problem[200];
};

static const struct ar_option ggml_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"pool", AR_OPTION_CHOICE, offsetof(struct ggml_values, kind), "leg", 0, 0, "leg|vmm",
     "leg: cached buffers, frees in any order; vmm: a stack in virtual memory, frees in reverse "
     "order only"},
    {"retry", AR_OPTION_BOOL, offsetof(struct ggml_values, retry), "true", 0, 0, NULL,
     "leg: release the cached buffers and try again if the device refuses; older versions did not"},
    {"max_size", AR_OPTION_BYTES, offsetof(struct ggml_values, range_bytes), "32GiB", 1, 0x1p44,
     NULL, "vmm: bytes of the range of a stream (CUDA_POOL_VMM_MAX_SIZE)"},
    {0},
};

static enum ar_status refuse(struct ggml *self)
{
    self->failures++;
    return AR_NO_MEMORY;
}

/* ---- leg: buffers in slots ------------------------------------------------------------------- */

/* The place of the first key of at least `bytes`. */
static inline uint32_t first_key(const struct leg *leg, uint64_t bytes)
{
    uint32_t from = 0;
    for (uint32_t count = leg->count; count;) {
        uint32_t half = count / 2;
        bool below = leg->keys[from + half] < bytes;
        from += below ? half + 1 : 0;
        count = below ? count - half - 1 : half;
    }
    return from;
}

static inline uint64_t key_bytes(uint64_t key)
{
    return key & ~(uint64_t)SLOT_MASK;
}

/* Takes the buffer of the key at `place` out of its slot. */
static inline uint32_t take_buffer(struct ggml *self, struct leg *leg, uint32_t place)
{
    uint64_t key = leg->keys[place];
    uint32_t slot = key & SLOT_MASK;
    AR_ARRAY_REMOVE(leg->keys, leg->count, place);
    leg->filled[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    leg->free_bytes -= key_bytes(key);
    self->base.totals.releasable_bytes -= key_bytes(key);
    ar_policy_free_removed(&self->base, key_bytes(key));
    uint32_t buffer = leg->buffers[slot];
    self->buffers.nodes[buffer].next = 0;
    return buffer;
}

/* Puts a buffer into the first empty slot. There must be one. */
static inline void put_buffer(struct ggml *self, struct leg *leg, uint32_t buffer)
{
    struct ar_range_node *node = &self->buffers.nodes[buffer];
    uint32_t word = 0;
    while (leg->filled[word] == UINT64_MAX)
        word++;
    uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(~leg->filled[word]);
    uint64_t key = node->bytes + slot;
    uint32_t place = first_key(leg, key);
    AR_ARRAY_INSERT(leg->keys, leg->count, place, key);
    leg->filled[word] |= UINT64_C(1) << slot % 64;
    leg->buffers[slot] = buffer;
    node->next = 1;
    leg->free_bytes += node->bytes;
    self->base.totals.releasable_bytes += node->bytes;
    ar_policy_free_added(&self->base, node->bytes);
}

/* Releases a buffer that is in no slot. */
static enum ar_status release_buffer(struct ggml *self, uint32_t buffer)
{
    const struct ar_range_node *node = &self->buffers.nodes[buffer];
    enum ar_status status = ar_backing_segment_free(self->backing, node->address);
    self->base.totals.reserved_bytes -= node->bytes;
    ar_range_tree_remove(&self->buffers, &self->by_address, AR_RANGE_BY_ADDRESS, buffer);
    ar_range_pool_give(&self->buffers, buffer);
    self->freed++;
    return status;
}

/* Releases all buffers in slots, from the lowest slot. */
static enum ar_status clear_pool(struct ggml *self, struct leg *leg)
{
    enum ar_status result = AR_OK;
    self->flushes++;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        if (!(leg->filled[slot / 64] >> slot % 64 & 1))
            continue;
        uint32_t buffer = leg->buffers[slot];
        take_buffer(self, leg, first_key(leg, self->buffers.nodes[buffer].bytes + slot));
        enum ar_status status = release_buffer(self, buffer);
        result = status != AR_OK ? status : result;
    }
    return result;
}

static enum ar_status obtain_buffer(struct ggml *self, uint64_t bytes, uint64_t *address)
{
    if (bytes > self->limit_bytes - self->base.totals.reserved_bytes)
        return AR_REFUSED;
    return ar_backing_segment_alloc(self->backing, bytes, address);
}

/* Rules 3 and 4. */
static __attribute__((noinline)) enum ar_status
new_buffer(struct ggml *self, struct leg *leg, uint32_t stream, uint64_t bytes, uint32_t *buffer)
{
    uint64_t with_more = ar_size_round_up((uint64_t)(LOOK_AHEAD * (double)bytes), BUFFER_UNIT);
    uint64_t address;
    AR_TRY_HOST(ar_range_pool_reserve(&self->buffers, 1));
    enum ar_status status = obtain_buffer(self, with_more, &address);
    if (status == AR_REFUSED && self->retry) {
        self->retries++;
        status = clear_pool(self, leg);
        AR_THEN(status, obtain_buffer(self, with_more, &address));
    }
    if (status != AR_OK)
        return status == AR_REFUSED ? refuse(self) : status;
    *buffer = ar_range_pool_take(&self->buffers);
    struct ar_range_node *node = &self->buffers.nodes[*buffer];
    node->address = address;
    node->bytes = with_more;
    node->previous = stream;
    node->next = 0;
    ar_range_tree_insert(&self->buffers, &self->by_address, AR_RANGE_BY_ADDRESS, *buffer);
    self->made++;
    self->base.totals.reserved_bytes += with_more;
    return AR_OK;
}

static enum ar_status leg_alloc(struct ggml *self, const struct ar_policy_request *request,
                                struct ar_policy_block *out)
{
    struct leg *leg = self->legs[request->stream];
    uint32_t place = first_key(leg, ar_size_round_up(request->bytes, BUFFER_UNIT));
    uint32_t buffer;
    if (place < leg->count && key_bytes(leg->keys[place]) - request->bytes < MOST_SLACK) {
        buffer = take_buffer(self, leg, place);
    } else {
        AR_TRY(new_buffer(self, leg, request->stream, request->bytes, &buffer));
    }
    struct ar_range_node *node = &self->buffers.nodes[buffer];
    node->extra = request->bytes;
    ar_policy_grant(&self->base, out, node->address, node->bytes, buffer);
    return AR_OK;
}

static enum ar_status leg_free(struct ggml *self, const struct ar_policy_block *block)
{
    uint32_t buffer = (uint32_t)block->cookie;
    const struct ar_range_node *node = &self->buffers.nodes[buffer];
    struct leg *leg = self->legs[node->previous];
    ar_policy_ungrant(&self->base, node->extra, node->bytes);
    if (__builtin_expect(leg->count == SLOTS, 0))
        return release_buffer(self, buffer);
    put_buffer(self, leg, buffer);
    return AR_OK;
}

static void leg_walk(const struct ggml *self, ar_policy_visit *visit, void *argument)
{
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->buffers, self->by_address, at)) != 0;) {
        const struct ar_range_node *node = &self->buffers.nodes[at];
        const struct ar_policy_range range = {
            .address = node->address,
            .bytes = node->bytes,
            .requested_bytes = node->next ? 0 : node->extra,
            .segment_address = node->address,
            .stream = node->previous,
            .state = node->next ? AR_POLICY_RANGE_FREE : AR_POLICY_RANGE_USED,
        };
        if (!visit(argument, &range))
            return;
    }
}

static const char *leg_fault(const struct ggml *self, const struct leg *leg, uint32_t stream)
{
    uint64_t free_bytes = 0;
    uint32_t filled = 0;
    for (uint32_t i = 0; i < leg->count; i++) {
        uint32_t slot = leg->keys[i] & SLOT_MASK;
        const struct ar_range_node *node = &self->buffers.nodes[leg->buffers[slot]];
        if (i && leg->keys[i - 1] >= leg->keys[i])
            return "the keys of the slots are not in order";
        if (!(leg->filled[slot / 64] >> slot % 64 & 1) || !node->next ||
            node->bytes != key_bytes(leg->keys[i]) || node->previous != stream)
            return "a slot and its buffer differ";
        free_bytes += node->bytes;
    }
    for (uint32_t word = 0; word < SLOT_WORDS; word++)
        filled += (uint32_t)__builtin_popcountll(leg->filled[word]);
    return filled == leg->count && free_bytes == leg->free_bytes ? NULL
                                                                 : "the slots were counted wrongly";
}

/* ---- vmm: a stack in virtual memory ---------------------------------------------------------- */

static uint64_t stack_free_bytes(const struct stack *stack)
{
    return stack->mapped_bytes - stack->used_bytes;
}

/* What whole free pages hold. */
static uint64_t stack_idle_bytes(const struct ggml *self, const struct stack *stack)
{
    uint64_t page = self->backing->page_bytes;
    return stack->mapped_bytes - (stack->used_bytes + page - 1) / page * page;
}

/* Sets the used bytes and counts what that makes free. */
static void stack_move(struct ggml *self, struct stack *stack, uint64_t used_bytes)
{
    uint64_t idle_bytes = stack_idle_bytes(self, stack);
    ar_policy_free_removed(&self->base, stack_free_bytes(stack));
    stack->used_bytes = used_bytes;
    ar_policy_free_added(&self->base, stack_free_bytes(stack));
    self->base.totals.releasable_bytes += stack_idle_bytes(self, stack) - idle_bytes;
}

/* Maps a handle at the end of the stack. */
static enum ar_status stack_map(struct ggml *self, struct stack *stack, uint64_t bytes,
                                ar_backing_handle handle)
{
    uint64_t end = stack->address + stack->mapped_bytes;
    AR_TRY(ar_backing_map(self->backing, end, handle));
    enum ar_status status = ar_backing_access(self->backing, end, bytes);
    if (status != AR_OK && ar_backing_unmap(self->backing, end, bytes) != AR_OK)
        return AR_CORRUPT;
    return status;
}

static enum ar_status stack_reserve(struct ggml *self, struct stack *stack)
{
    if (stack->has_range)
        return AR_OK;
    enum ar_status status = ar_backing_reserve(self->backing, self->range_bytes, &stack->address);
    stack->has_range = status == AR_OK;
    return status;
}

/* Rule 7: at least `bytes` more. */
static enum ar_status stack_grow(struct ggml *self, struct stack *stack, uint64_t bytes)
{
    uint64_t page = self->backing->page_bytes;
    uint64_t grown = (bytes + page - 1) / page * page;
    ar_backing_handle handle;
    if (grown > self->range_bytes || stack->mapped_bytes > self->range_bytes - grown ||
        grown > self->limit_bytes - self->base.totals.reserved_bytes)
        return AR_REFUSED;
    if (stack->mapping_count == stack->mapping_room &&
        !ar_host_extend(self->host, &stack->mappings, &stack->mapping_room,
                        stack->mapping_room * 2 + 8, sizeof *stack->mappings))
        return AR_HOST_MEMORY;
    AR_TRY(ar_backing_create(self->backing, grown, &handle));
    enum ar_status status = stack_reserve(self, stack);
    AR_THEN(status, stack_map(self, stack, grown, handle));
    if (status != AR_OK) {
        enum ar_status destroyed = ar_backing_destroy(self->backing, handle);
        return destroyed == AR_OK ? status : destroyed;
    }
    stack->mappings[stack->mapping_count++] =
        (struct stack_mapping){.handle = handle, .bytes = grown};
    uint64_t idle_bytes = stack_idle_bytes(self, stack);
    ar_policy_free_removed(&self->base, stack_free_bytes(stack));
    stack->mapped_bytes += grown;
    ar_policy_free_added(&self->base, stack_free_bytes(stack));
    self->base.totals.releasable_bytes += stack_idle_bytes(self, stack) - idle_bytes;
    self->base.totals.reserved_bytes += grown;
    self->made++;
    return AR_OK;
}

static enum ar_status stack_alloc(struct ggml *self, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct stack *stack = self->stacks[request->stream];
    uint64_t bytes = ar_size_round_up(request->bytes, STACK_ALIGNMENT);
    if (stack->count == stack->room && !ar_host_extend(self->host, &stack->blocks, &stack->room,
                                                       stack->room * 2 + 16, sizeof *stack->blocks))
        return AR_HOST_MEMORY;
    if (bytes > stack_free_bytes(stack)) {
        enum ar_status status = stack_grow(self, stack, bytes - stack_free_bytes(stack));
        if (status != AR_OK)
            return status == AR_REFUSED ? refuse(self) : status;
    }
    uint64_t address = stack->address + stack->used_bytes;
    stack->blocks[stack->count] =
        (struct stack_block){.bytes = bytes, .requested_bytes = request->bytes};
    ar_policy_grant(&self->base, out, address, bytes,
                    (uint64_t)request->stream << 32 | stack->count);
    stack->count++;
    stack_move(self, stack, stack->used_bytes + bytes);
    return AR_OK;
}

static __attribute__((noinline, cold)) enum ar_status refuse_order(struct ggml *self,
                                                                   uint32_t later, uint32_t stream)
{
    snprintf(self->problem, sizeof self->problem,
             "pool=vmm frees blocks in the reverse order of their requests, as ggml demands, and "
             "%" PRIu32 " later block%s of stream %" PRIu32
             " %s live: use pool=leg for this program",
             later, later == 1 ? "" : "s", stream, later == 1 ? "is" : "are");
    return AR_INVALID;
}

static enum ar_status stack_free(struct ggml *self, const struct ar_policy_block *block)
{
    uint32_t stream = (uint32_t)(block->cookie >> 32);
    struct stack *stack = self->stacks[stream];
    uint32_t place = (uint32_t)block->cookie;
    if (place + 1 != stack->count)
        return refuse_order(self, stack->count - place - 1, stream);
    const struct stack_block *top = &stack->blocks[place];
    ar_policy_ungrant(&self->base, top->requested_bytes, top->bytes);
    stack->count--;
    stack_move(self, stack, stack->used_bytes - top->bytes);
    return AR_OK;
}

/* The ranges of one stack. False: the visitor stops. */
static bool stack_walk(const struct ggml *self, uint32_t stream, ar_policy_visit *visit,
                       void *argument)
{
    const struct stack *stack = self->stacks[stream];
    struct ar_policy_range range = {.address = stack->address,
                                    .segment_address = stack->address,
                                    .stream = stream,
                                    .state = AR_POLICY_RANGE_USED};
    for (uint32_t i = 0; i < stack->count; i++) {
        range.bytes = stack->blocks[i].bytes;
        range.requested_bytes = stack->blocks[i].requested_bytes;
        if (!visit(argument, &range))
            return false;
        range.address += range.bytes;
    }
    range.requested_bytes = 0;
    range.bytes = stack_free_bytes(stack);
    range.state = AR_POLICY_RANGE_FREE;
    if (range.bytes && !visit(argument, &range))
        return false;
    range.address += range.bytes;
    range.bytes = stack->address + self->range_bytes - range.address;
    range.state = AR_POLICY_RANGE_UNMAPPED;
    return !range.bytes || visit(argument, &range);
}

/* The stacks in the order of their addresses. There are few. */
static void stacks_walk(const struct ggml *self, ar_policy_visit *visit, void *argument)
{
    uint64_t from = 0;
    for (;;) {
        uint32_t next = UINT32_MAX;
        for (uint32_t i = 0; i < self->pool_count; i++) {
            const struct stack *stack = self->stacks[i];
            if (stack && stack->mapped_bytes && stack->address >= from &&
                (next == UINT32_MAX || stack->address < self->stacks[next]->address))
                next = i;
        }
        if (next == UINT32_MAX || !stack_walk(self, next, visit, argument))
            return;
        from = self->stacks[next]->address + 1;
    }
}

static const char *stack_fault(const struct ggml *self, const struct stack *stack,
                               uint64_t *releasable_bytes)
{
    uint64_t used_bytes = 0;
    uint64_t mapped_bytes = 0;
    for (uint32_t i = 0; i < stack->count; i++)
        used_bytes += stack->blocks[i].bytes;
    for (uint32_t i = 0; i < stack->mapping_count; i++)
        mapped_bytes += stack->mappings[i].bytes;
    *releasable_bytes += stack_idle_bytes(self, stack);
    return used_bytes == stack->used_bytes && mapped_bytes == stack->mapped_bytes &&
                   used_bytes <= mapped_bytes
               ? NULL
               : "the blocks or mappings of a stack were counted wrongly";
}

static void stack_close(struct ggml *self, struct stack *stack)
{
    uint64_t address = stack->address;
    for (uint32_t i = 0; i < stack->mapping_count; i++) {
        (void)ar_backing_unmap(self->backing, address, stack->mappings[i].bytes);
        (void)ar_backing_destroy(self->backing, stack->mappings[i].handle);
        address += stack->mappings[i].bytes;
    }
    if (stack->has_range)
        (void)ar_backing_release(self->backing, stack->address);
    ar_host_free(self->host, stack->blocks, stack->room * sizeof *stack->blocks);
    ar_host_free(self->host, stack->mappings, stack->mapping_room * sizeof *stack->mappings);
    ar_host_free(self->host, stack, sizeof *stack);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Makes the pool of a stream. False: no host memory. */
static __attribute__((noinline)) bool make_pool(struct ggml *self, uint32_t stream)
{
    bool is_leg = self->kind == POOL_LEG;
    void *array = is_leg ? (void *)&self->legs : (void *)&self->stacks;
    if (stream >= self->pool_count && !ar_host_extend(self->host, array, &self->pool_count,
                                                      stream + stream / 2 + 1, sizeof(void *)))
        return false;
    if (is_leg && !self->legs[stream])
        self->legs[stream] = ar_host_alloc(self->host, sizeof **self->legs);
    if (!is_leg && !self->stacks[stream])
        self->stacks[stream] = ar_host_alloc(self->host, sizeof **self->stacks);
    return is_leg ? self->legs[stream] != NULL : self->stacks[stream] != NULL;
}

static bool pool_exists(const struct ggml *self, uint32_t stream)
{
    return stream < self->pool_count &&
           (self->kind == POOL_LEG ? self->legs[stream] != NULL : self->stacks[stream] != NULL);
}

static enum ar_status ggml_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    struct ggml *self = (struct ggml *)base;
    if (__builtin_expect(!pool_exists(self, request->stream), 0) &&
        !make_pool(self, request->stream))
        return AR_HOST_MEMORY;
    self->last_stream = request->stream;
    return self->kind == POOL_LEG ? leg_alloc(self, request, out) : stack_alloc(self, request, out);
}

static enum ar_status ggml_free(struct ar_policy *base, const struct ar_policy_block *block,
                                uint32_t stream)
{
    struct ggml *self = (struct ggml *)base;
    (void)stream; /* a pool gets back what it gave */
    return self->kind == POOL_LEG ? leg_free(self, block) : stack_free(self, block);
}

/* The largest free block of the pool of the last request, and all free bytes of that pool. */
static void last_pool(const struct ggml *self, uint64_t *largest_bytes, uint64_t *free_bytes)
{
    *largest_bytes = 0;
    *free_bytes = 0;
    if (!pool_exists(self, self->last_stream))
        return;
    if (self->kind == POOL_VMM) {
        *largest_bytes = stack_free_bytes(self->stacks[self->last_stream]);
        *free_bytes = *largest_bytes;
        return;
    }
    const struct leg *leg = self->legs[self->last_stream];
    *largest_bytes = leg->count ? key_bytes(leg->keys[leg->count - 1]) : 0;
    *free_bytes = leg->free_bytes;
}

static void ggml_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct ggml *self = (const struct ggml *)base;
    *out = (struct ar_policy_stats){.totals = base->totals};
    out->count.segments_made = self->made;
    out->count.segments_freed = self->freed;
    out->count.flushes = self->flushes;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
}

/* After a flush: a request whose buffer is as large as all cached buffers of the pool. */
static void ggml_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct ggml *self = (const struct ggml *)base;
    uint64_t largest_bytes, free_bytes, flushed_bytes = 0;
    last_pool(self, &largest_bytes, &free_bytes);
    if (self->kind != POOL_VMM && self->retry)
        flushed_bytes = free_bytes - (free_bytes + 20) / 21; /* 21 = 20 x 1.05 */
    ar_policy_room_fill(out, largest_bytes, ar_policy_free_bytes(&base->totals) - free_bytes,
                        flushed_bytes);
}

static void ggml_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct ggml *self = (const struct ggml *)base;
    if (self->kind == POOL_LEG)
        leg_walk(self, visit, argument);
    else
        stacks_walk(self, visit, argument);
}

static enum ar_status ggml_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct ggml *self = (const struct ggml *)base;
    uint64_t releasable_bytes = 0;
    const char *fault = NULL;
    for (uint32_t i = 0; i < self->pool_count && !fault; i++) {
        if (!pool_exists(self, i))
            continue;
        if (self->kind == POOL_VMM) {
            fault = stack_fault(self, self->stacks[i], &releasable_bytes);
            continue;
        }
        fault = leg_fault(self, self->legs[i], i);
        releasable_bytes += self->legs[i]->free_bytes;
    }
    uint64_t count;
    if (!fault &&
        (!ar_range_tree_check(&self->buffers, self->by_address, AR_RANGE_BY_ADDRESS, &count) ||
         (self->kind == POOL_LEG && count != self->made - self->freed)))
        fault = "the tree of buffers is broken";
    if (fault)
        return ar_policy_broken(base, fault, 0, error);
    return ar_policy_check_totals(base, releasable_bytes, error);
}

static const char *ggml_problem(const struct ar_policy *base)
{
    const struct ggml *self = (const struct ggml *)base;
    return self->problem[0] ? self->problem : ar_backing_problem(self->backing);
}

static bool ggml_setting(const struct ar_policy *base, char *text, size_t text_bytes)
{
    const struct ggml *self = (const struct ggml *)base;
    if (self->limit_bytes != UINT64_MAX || !self->retry || self->range_bytes != DEFAULT_RANGE_BYTES)
        return false;
    snprintf(text, text_bytes, "cmake -DGGML_CUDA_NO_VMM=%s",
             self->kind == POOL_LEG ? "ON" : "OFF");
    return true;
}

static void ggml_destroy(struct ar_policy *base)
{
    struct ggml *self = (struct ggml *)base;
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->buffers, self->by_address, at)) != 0;)
        (void)ar_backing_segment_free(self->backing, self->buffers.nodes[at].address);
    for (uint32_t i = 0; i < self->pool_count; i++) {
        if (self->kind == POOL_LEG)
            ar_host_free(self->host, self->legs[i], sizeof **self->legs);
        else if (self->stacks[i])
            stack_close(self, self->stacks[i]);
    }
    ar_host_free(self->host, self->legs, self->legs ? self->pool_count * sizeof *self->legs : 0);
    ar_host_free(self->host, self->stacks,
                 self->stacks ? self->pool_count * sizeof *self->stacks : 0);
    ar_range_pool_close(&self->buffers);
    ar_host_free(self->host, self, sizeof *self);
}

static enum ar_status ggml_create(const struct ar_policy_context *context, const void *given,
                                  struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops ggml_policy;
    const struct ggml_values *values = given;
    uint64_t page = context->backing->page_bytes;
    if (values->kind == POOL_VMM && !page)
        return ar_error_set(
            error, AR_UNSUPPORTED,
            "policy ggml: pool=vmm, but this device has no virtual memory; use pool=leg");
    struct ggml *self = ar_policy_new(context, &ggml_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->host = context->host;
    self->kind = (enum pool_kind)values->kind;
    self->retry = values->retry;
    self->limit_bytes = ar_policy_limit(&values->common);
    self->range_bytes = values->range_bytes;
    if (self->kind == POOL_VMM)
        self->range_bytes = (values->range_bytes + page - 1) / page * page;
    ar_range_pool_open(&self->buffers, context->host);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops ggml_policy = {
    .name = "ggml",
    .summary = "ggml's CUDA pools: whole buffers, best fit with 5 % more; or a stack (pool=vmm)",
    .reference = "llama.cpp of 2026, ggml/src/ggml-cuda/ggml-cuda.cu at 0010882",
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = ggml_options,
    .values_bytes = sizeof(struct ggml_values),
    .create = ggml_create,
    AR_POLICY_HOOKS(ggml),
    .room = ggml_room,
    .setting = ggml_setting,
    .problem = ggml_problem,
};
