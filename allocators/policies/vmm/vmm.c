/* Requests and frees: see vmm.h for the rules. */
#include "allocators/policies/vmm/vmm.h"

#define ROUND_BYTES UINT64_C(512)

static const struct ar_option vmm_options[] = {AR_POLICY_COMMON_OPTIONS, {0}};

static bool is_end_gap(const struct vmm *self, const struct vmm_range *range)
{
    const struct ar_span *last = &self->spans.at[range->last];
    return last->mark == VMM_GAP && !last->used;
}

/* The releasable bytes of a free block that is added or removed. */
static inline uint64_t releasable(struct vmm *self, struct vmm_range *range,
                                  const struct ar_span *free_block)
{
    uint64_t bytes = vmm_releasable(self, free_block, NULL);
    if (bytes && self->idle_index)
        vmm_stale(self->idle_index, range, free_block->owner);
    return bytes;
}

/* Inserts a free piece into the index of its mark. */
void vmm_insert(struct vmm *self, uint32_t piece)
{
    struct ar_span *span = &self->spans.at[piece];
    struct vmm_range *range = self->ranges[span->owner];
    span->used = 0;
    if (span->mark == VMM_GAP) {
        ar_span_index_insert(&range->gaps, self->spans.at, piece);
        return;
    }
    if (span->next == range->last && is_end_gap(self, range))
        range->tail = piece;
    else
        ar_span_index_insert(&range->free_blocks, self->spans.at, piece);
    range->free_block_bytes += span->bytes;
    if (span->bytes >= self->page_bytes)
        self->base.totals.releasable_bytes += releasable(self, range, span);
    ar_policy_free_added(&self->base, span->bytes);
}

/* Marks a free block that was removed from its index used. */
static void took_free_block(struct vmm *self, uint32_t piece)
{
    struct ar_span *span = &self->spans.at[piece];
    struct vmm_range *range = self->ranges[span->owner];
    range->free_block_bytes -= span->bytes;
    if (span->bytes >= self->page_bytes)
        self->base.totals.releasable_bytes -= releasable(self, range, span);
    ar_policy_free_removed(&self->base, span->bytes);
    span->used = 1;
}

/* Removes a free piece from its index and marks it used. */
void vmm_remove(struct vmm *self, uint32_t piece)
{
    struct ar_span *span = &self->spans.at[piece];
    struct vmm_range *range = self->ranges[span->owner];
    if (span->mark == VMM_GAP) {
        ar_span_index_remove(&range->gaps, self->spans.at, piece);
        span->used = 1;
        return;
    }
    if (range->tail == piece)
        range->tail = 0;
    else
        ar_span_index_remove(&range->free_blocks, self->spans.at, piece);
    took_free_block(self, piece);
}

/* Frees a piece and merges it with free neighbours of its mark. Returns the merged piece. */
uint32_t vmm_merge(struct vmm *self, uint32_t piece)
{
    const struct ar_span *at = self->spans.at;
    uint32_t next = at[piece].next;
    uint32_t previous = at[piece].previous;
    if (next && !at[next].used && at[next].mark == at[piece].mark) {
        vmm_remove(self, next);
        vmm_join(self, piece, next);
        self->merges++;
    }
    if (previous && !at[previous].used && at[previous].mark == at[piece].mark) {
        vmm_remove(self, previous);
        vmm_join(self, previous, piece);
        self->merges++;
        piece = previous;
    }
    vmm_insert(self, piece);
    return piece;
}

/* Cuts a used piece after `bytes`. The rest is a used piece of the same mark. A record must be
 * spare. */
uint32_t vmm_cut(struct vmm *self, uint32_t piece, uint64_t bytes)
{
    uint32_t rest = ar_spans_cut(&self->spans, piece, bytes, 0);
    struct ar_span *head = &self->spans.at[piece];
    struct ar_span *tail = &self->spans.at[rest];
    tail->owner = head->owner;
    tail->mark = head->mark;
    tail->used = 1;
    if (!tail->next)
        self->ranges[head->owner]->last = rest;
    self->splits++;
    return rest;
}

static bool room_for_stream(struct vmm *self, uint32_t stream)
{
    if (stream < self->stream_room)
        return true;
    if (!ar_host_extend(self->host, &self->streams, &self->stream_room, stream + 4,
                        sizeof *self->streams))
        return false;
    if (self->idle_index || self->stream_room > VMM_FEW)
        vmm_index_cover(self);
    return true;
}

static bool room_for_range(struct vmm *self)
{
    uint32_t *order = &self->order_room, *room = &self->range_room;
    return (self->range_count < *order ||
            ar_host_extend(self->host, &self->by_address, order, *order * 2 + VMM_KINDS,
                           sizeof *self->by_address)) &&
           (self->range_count < *room ||
            ar_host_extend(self->host, &self->ranges, room, *room * 2 + VMM_KINDS,
                           sizeof *self->ranges));
}

/* The number of ranges below the address, among the first `count`. Most often a new range lies
 * above all or below all. */
static uint32_t place_by_address(const struct vmm *self, uint32_t count, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = count;
    if (count && self->ranges[self->by_address[count - 1]]->address < address)
        return count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->ranges[self->by_address[middle]]->address > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Adds a range to those of a stream and kind. A record must be spare. REFUSED: no address space. */
enum ar_status vmm_open_range(struct vmm *self, uint32_t stream, enum vmm_kind kind, uint64_t bytes)
{
    uint64_t address;
    AR_TRY_HOST(room_for_range(self));
    struct vmm_range *range = ar_host_alloc(self->host, sizeof *range);
    AR_TRY_HOST(range);
    enum ar_status status = ar_backing_reserve(self->backing, bytes, &address);
    if (status != AR_OK) {
        ar_host_free(self->host, range, sizeof *range);
        return status;
    }
    uint32_t piece = ar_spans_new(&self->spans, address, bytes);
    uint32_t number = self->range_count++;
    self->spans.at[piece].owner = number;
    self->spans.at[piece].mark = VMM_GAP;
    range->address = address;
    range->bytes = bytes;
    range->stream = stream;
    range->kind = kind;
    range->first = piece;
    range->last = piece;
    self->ranges[number] = range;
    uint32_t *link = &self->streams[stream].first[kind];
    while (*link)
        link = &self->ranges[*link - 1]->more;
    *link = number + 1;
    uint32_t place = place_by_address(self, number, address);
    memmove(&self->by_address[place + 1], &self->by_address[place],
            (number - place) * sizeof *self->by_address);
    self->by_address[place] = number;
    vmm_insert(self, piece);
    if (self->idle_index || self->range_count > VMM_FEW)
        vmm_index_cover(self);
    return AR_OK;
}

/* Uses the first `bytes` of a free block that was removed from its index. */
static uint32_t cut_free_block(struct vmm *self, uint32_t piece, uint64_t bytes)
{
    took_free_block(self, piece);
    if (self->spans.at[piece].bytes > bytes)
        vmm_insert(self, vmm_cut(self, piece, bytes));
    return piece;
}

/* The best free block of a stream and kind, as a used piece of exactly that size; 0: none. A record
 * must be spare. */
uint32_t vmm_find_free_block(struct vmm *self, uint32_t stream, enum vmm_kind kind, uint64_t bytes)
{
    struct ar_span_place place;
    uint32_t first = self->streams[stream].first[kind];
    struct vmm_range *range;
    for (uint32_t number = first; number; number = range->more) {
        range = self->ranges[number - 1];
        if (ar_span_index_find(&range->free_blocks, self->spans.at, bytes, 0, &place)) {
            uint32_t piece = *place.link;
            ar_span_index_unlink(&range->free_blocks, self->spans.at, &place);
            return cut_free_block(self, piece, bytes);
        }
    }
    for (uint32_t number = first; number; number = range->more) {
        range = self->ranges[number - 1];
        uint32_t piece = range->tail;
        if (piece && self->spans.at[piece].bytes >= bytes) {
            range->tail = 0;
            return cut_free_block(self, piece, bytes);
        }
    }
    return 0;
}

static enum ar_status vmm_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                struct ar_policy_block *out)
{
    struct vmm *self = (struct vmm *)base;
    uint64_t bytes = ar_size_round_up(request->bytes, ROUND_BYTES);
    enum vmm_kind kind = bytes <= self->page_bytes / 2 ? VMM_SMALL : VMM_LARGE;
    deferred_poll(&self->deferred);
    if ((self->spans.spare_count < 4 && !ar_spans_reserve(&self->spans, self->host, VMM_SPARES)) ||
        !room_for_stream(self, request->stream))
        return AR_HOST_MEMORY;
    if (self->look)
        vmm_keep_headroom(self);
    self->last_stream = request->stream;
    uint32_t piece = vmm_find_free_block(self, request->stream, kind, bytes);
    if (!piece)
        piece = vmm_make_room(self, request, kind, bytes);
    if (!piece) {
        enum ar_status fault = self->fault;
        self->failures++;
        if (fault == AR_HOST_MEMORY)
            self->fault = AR_OK; /* a later request may be served */
        return fault ? fault : AR_NO_MEMORY;
    }
    struct ar_span *span = &self->spans.at[piece];
    span->requested_bytes = request->bytes;
    ar_policy_grant(base, out, span->address, bytes, piece);
    return AR_OK;
}

static void vmm_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    struct vmm *self = (struct vmm *)base;
    struct ar_span *span = &self->spans.at[block->cookie];
    if (span->mark == VMM_PENDING)
        return;
    span->mark = VMM_PENDING;
    base->totals.pending_bytes += span->bytes;
    ar_policy_ungrant(base, span->requested_bytes, span->bytes);
}

static void complete(void *argument, uint32_t piece)
{
    struct vmm *self = argument;
    struct ar_span *span = &self->spans.at[piece];
    self->base.totals.pending_bytes -= span->bytes;
    span->mark = VMM_MAPPED;
    if (self->tight)
        vmm_pages_freed(self, span);
    vmm_merge(self, piece);
}

static enum ar_status vmm_free(struct ar_policy *base, const struct ar_policy_block *block,
                               uint32_t stream AR_UNUSED)
{
    struct vmm *self = (struct vmm *)base;
    uint32_t piece = (uint32_t)block->cookie;
    bool retired = self->spans.at[piece].mark == VMM_PENDING; /* then the free is completed */
    vmm_retire(base, block);
    if (retired)
        deferred_forget(&self->deferred, piece);
    else if (deferred_free(&self->deferred, piece))
        return AR_OK;
    complete(self, piece);
    return AR_OK;
}

static enum ar_status vmm_use(struct ar_policy *base, const struct ar_policy_block *block,
                              uint32_t stream)
{
    struct vmm *self = (struct vmm *)base;
    uint32_t piece = (uint32_t)block->cookie;
    uint32_t own = self->ranges[self->spans.at[piece].owner]->stream;
    return deferred_use(&self->deferred, piece, own, stream) ? AR_OK : AR_HOST_MEMORY;
}

/* Releases memory under free blocks, the largest first, until at most so many bytes are free or
 * none can be released. */
static enum ar_status vmm_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct vmm *self = (struct vmm *)base;
    deferred_wait_all(&self->deferred);
    vmm_drain(self);
    for (;;) {
        uint64_t free_bytes = ar_policy_free_bytes(&self->base.totals);
        if (free_bytes <= keep_bytes || !vmm_release_idle(self, free_bytes - keep_bytes))
            break;
    }
    if (!self->tight)
        vmm_forget_fences(self);
    vmm_destroy_kept(self, 0);
    return self->fault;
}

static void vmm_destroy(struct ar_policy *base)
{
    struct vmm *self = (struct vmm *)base;
    vmm_index_close(self);
    for (uint32_t i = 0; i < self->range_count; i++) {
        struct vmm_range *range = self->ranges[i];
        ar_backing_wait(self->backing, ar_backing_fence(self->backing, range->stream));
        for (uint32_t p = 0, end; p < range->page_room; p = end + 1) {
            for (end = p; end < range->page_room && range->pages[end].handle;)
                end++;
            if (end > p)
                vmm_drop_handles(self, range, range->address + p * self->page_bytes,
                                 range->address + end * self->page_bytes);
        }
        vmm_destroy_kept(self, 0);
        (void)ar_backing_release(self->backing, range->address);
        ar_host_free(self->host, range->pages, range->page_room * sizeof *range->pages);
        ar_host_free(self->host, range, sizeof *range);
    }
    ar_host_free(self->host, self->ranges, self->range_room * sizeof *self->ranges);
    ar_host_free(self->host, self->by_address, self->order_room * sizeof *self->by_address);
    ar_host_free(self->host, self->streams, self->stream_room * sizeof *self->streams);
    deferred_close(&self->deferred);
    ar_spans_close(&self->spans, self->host);
    ar_host_free(self->host, self, sizeof *self);
}

static enum ar_status vmm_create(const struct ar_policy_context *context, const void *given,
                                 struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops vmm_policy;
    uint64_t page = context->backing->page_bytes;
    if (!page)
        return ar_error_set(error, AR_UNSUPPORTED,
                            "policy vmm: this device has no virtual memory; use another profile");
    struct vmm *self = ar_policy_new(context, &vmm_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->host = context->host;
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    if (total_bytes > UINT64_C(1) << 42)
        total_bytes = UINT64_C(1) << 42;
    self->page_bytes = page;
    self->limit_bytes = ar_policy_limit(given);
    self->device_bytes = total_bytes;
    deferred_open(&self->deferred, context->backing, context->host, complete, self);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops vmm_policy = {
    .name = "vmm",
    .summary =
        "pages mapped where they are needed and moved when memory is short (of this project)",
    .reference = "this project",
    .capabilities = AR_POLICY_STREAM_ORDERED | AR_POLICY_NEEDS_MAPPING | AR_POLICY_WATCHES_FREE,
    .options = vmm_options,
    .values_bytes = sizeof(struct ar_policy_common),
    .create = vmm_create,
    AR_POLICY_HOOKS(vmm),
    .room = vmm_room,
    .use = vmm_use,
    .retire = vmm_retire,
    .trim = vmm_trim,
};
