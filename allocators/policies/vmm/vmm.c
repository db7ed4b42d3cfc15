/* What happens at a request and at a free: see vmm.h for the rules. */
#include "allocators/policies/vmm/vmm.h"

#include <string.h>

static const struct ar_option vmm_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {NULL, AR_OPTION_BYTES, 0, NULL, 0, 0, NULL, NULL},
};

static bool is_end_gap(const struct vmm *self, const struct vmm_range *range)
{
    const struct ar_span *last = &self->spans.at[range->last];
    return last->mark == VMM_GAP && !last->used;
}

/* What can be taken from a hole that comes or goes. */
static inline uint64_t releasable(struct vmm *self, struct vmm_range *range,
                                  const struct ar_span *free_block)
{
    uint64_t bytes = vmm_releasable(self, free_block, NULL);
    if (bytes && self->crowd)
        vmm_stale(self->crowd, range, free_block->owner);
    return bytes;
}

/* Puts a free piece into the index that its mark says. */
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

/* Takes a free piece out of its index and marks it used. */
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

/* The right one of two neighbours, in no index, becomes part of the left one. */
static void join(struct vmm *self, uint32_t left, uint32_t right)
{
    struct ar_span *at = self->spans.at;
    at[left].bytes += at[right].bytes;
    at[left].next = at[right].next;
    if (at[left].next)
        at[at[left].next].previous = left;
    else
        self->ranges[at[left].owner]->last = left;
    ar_spans_drop(&self->spans, right);
    self->merges++;
}

/* Frees a piece, merged with free neighbours of its own mark. Returns what it became. */
uint32_t vmm_merge(struct vmm *self, uint32_t piece)
{
    const struct ar_span *at = self->spans.at;
    uint32_t next = at[piece].next;
    uint32_t previous = at[piece].previous;
    if (next && !at[next].used && at[next].mark == at[piece].mark) {
        vmm_remove(self, next);
        join(self, piece, next);
    }
    if (previous && !at[previous].used && at[previous].mark == at[piece].mark) {
        vmm_remove(self, previous);
        join(self, previous, piece);
        piece = previous;
    }
    vmm_insert(self, piece);
    return piece;
}

/* Cuts a used piece after `bytes`; the rest is a used piece of the same mark. A spare record
 * is there. */
uint32_t vmm_cut(struct vmm *self, uint32_t piece, uint64_t bytes)
{
    uint32_t rest = ar_spans_take(&self->spans);
    struct ar_span *head = &self->spans.at[piece];
    struct ar_span *tail = &self->spans.at[rest];
    tail->address = head->address + bytes;
    tail->bytes = head->bytes - bytes;
    tail->owner = head->owner;
    tail->mark = head->mark;
    tail->used = 1;
    tail->previous = piece;
    tail->next = head->next;
    if (tail->next)
        self->spans.at[tail->next].previous = rest;
    else
        self->ranges[head->owner]->last = rest;
    head->next = rest;
    head->bytes = bytes;
    self->splits++;
    return rest;
}

static bool room_for_stream(struct vmm *self, uint32_t stream)
{
    if (stream < self->stream_room)
        return true;
    uint32_t room = stream + 4;
    struct vmm_stream *grown =
        ar_host_grow(self->host, self->streams, self->stream_room, room, sizeof *grown);
    if (!grown)
        return false;
    self->streams = grown;
    self->stream_room = room;
    if (self->crowd || room > VMM_FEW)
        vmm_crowd_grow(self);
    return true;
}

static bool room_for_range(struct vmm *self)
{
    if (self->range_count == self->order_room) {
        uint32_t room = self->order_room * 2 + VMM_KINDS;
        uint32_t *grown =
            ar_host_grow(self->host, self->by_address, self->order_room, room, sizeof *grown);
        if (!grown)
            return false;
        self->by_address = grown;
        self->order_room = room;
    }
    if (self->range_count == self->range_room) {
        uint32_t room = self->range_room * 2 + VMM_KINDS;
        struct vmm_range **grown =
            ar_host_grow(self->host, self->ranges, self->range_room, room, sizeof *grown);
        if (!grown)
            return false;
        self->ranges = grown;
        self->range_room = room;
    }
    return true;
}

/* How many of the first `count` ranges lie below the address. Most often a new one lies above
 * all, or below all, as the driver has it. */
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

/* Makes a range of a stream and kind, the last of them. A spare record is there. REFUSED: no
 * address space. */
enum ar_status vmm_open_range(struct vmm *self, uint32_t stream, enum vmm_kind kind, uint64_t bytes)
{
    uint64_t address;
    if (!room_for_range(self))
        return AR_HOST_MEMORY;
    struct vmm_range *range = ar_host_alloc(self->host, sizeof *range);
    if (!range)
        return AR_HOST_MEMORY;
    enum ar_status status = ar_backing_reserve(self->backing, bytes, &address);
    if (status != AR_OK) {
        ar_host_free(self->host, range, sizeof *range);
        return status;
    }
    uint32_t piece = ar_spans_take(&self->spans);
    struct ar_span *span = &self->spans.at[piece];
    uint32_t number = self->range_count++;
    span->address = address;
    span->bytes = bytes;
    span->previous = 0;
    span->next = 0;
    span->owner = number;
    span->mark = VMM_GAP;
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
    if (self->crowd || self->range_count > VMM_FEW)
        vmm_crowd_grow(self);
    return AR_OK;
}

/* Takes a hole out of its index and cuts a block from its start. */
static uint32_t cut_free_block(struct vmm *self, uint32_t piece, uint64_t bytes)
{
    took_free_block(self, piece);
    if (self->spans.at[piece].bytes > bytes)
        vmm_insert(self, vmm_cut(self, piece, bytes));
    return piece;
}

/* Takes the best hole of a stream and kind: a used piece of exactly that size, or 0. A spare
 * record is there. */
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
    struct vmm *self = vmm_of(base);
    uint64_t bytes = ar_size_round_up(request->bytes, VMM_ROUND_BYTES);
    enum vmm_kind kind = bytes <= self->page_bytes / 2 ? VMM_SMALL : VMM_LARGE;
    deferred_poll(&self->deferred);
    if ((self->spans.spare_count < 4 && !ar_spans_reserve(&self->spans, self->host, VMM_SPARES)) ||
        !room_for_stream(self, request->stream))
        return AR_HOST_MEMORY;
    if (self->look)
        vmm_keep_headroom(self);
    self->last_stream = request->stream;
    uint32_t piece = vmm_find_free_block(self, request->stream, kind, bytes);
    if (!piece) {
        piece = vmm_make_room(self, request, kind, bytes);
        if (!piece) {
            self->failures++;
            return self->fault ? self->fault : AR_NO_MEMORY;
        }
    }
    struct ar_span *span = &self->spans.at[piece];
    span->requested_bytes = request->bytes;
    self->base.totals.live_bytes += request->bytes;
    self->base.totals.granted_bytes += bytes;
    self->base.totals.live_blocks++;
    out->address = span->address;
    out->granted_bytes = bytes;
    out->cookie = piece;
    return AR_OK;
}

static void vmm_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    struct vmm *self = vmm_of(base);
    struct ar_span *span = &self->spans.at[block->cookie];
    if (span->mark == VMM_PENDING)
        return;
    span->mark = VMM_PENDING;
    self->base.totals.live_bytes -= span->requested_bytes;
    self->base.totals.granted_bytes -= span->bytes;
    self->base.totals.pending_bytes += span->bytes;
    self->base.totals.live_blocks--;
}

static void complete(void *argument, uint32_t piece)
{
    struct vmm *self = argument;
    struct ar_span *span = &self->spans.at[piece];
    self->base.totals.pending_bytes -= span->bytes;
    span->mark = VMM_MAPPED;
    if (self->tight)
        vmm_free_requested_pages(self, span);
    vmm_merge(self, piece);
}

static enum ar_status vmm_free(struct ar_policy *base, const struct ar_policy_block *block,
                               uint32_t stream)
{
    struct vmm *self = vmm_of(base);
    uint32_t piece = (uint32_t)block->cookie;
    bool told = self->spans.at[piece].mark == VMM_PENDING; /* then it is complete now */
    (void)stream;
    vmm_retire(base, block);
    if (told)
        deferred_forget(&self->deferred, piece);
    else if (deferred_free(&self->deferred, piece))
        return AR_OK;
    complete(self, piece);
    return AR_OK;
}

static enum ar_status vmm_use(struct ar_policy *base, const struct ar_policy_block *block,
                              uint32_t stream)
{
    struct vmm *self = vmm_of(base);
    uint32_t piece = (uint32_t)block->cookie;
    uint32_t own = self->ranges[self->spans.at[piece].owner]->stream;
    return deferred_use(&self->deferred, piece, own, stream) ? AR_OK : AR_HOST_MEMORY;
}

/* Gives memory under holes back, the largest holes first, until at most that many bytes are
 * free or none can be given. */
static enum ar_status vmm_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct vmm *self = vmm_of(base);
    deferred_wait_all(&self->deferred);
    vmm_drain(self);
    for (;;) {
        uint64_t free_bytes = ar_policy_free_bytes(&self->base.totals);
        if (free_bytes <= keep_bytes || !vmm_release_idle(self, free_bytes - keep_bytes))
            break;
    }
    (void)vmm_destroy_kept(self, 0);
    return self->fault;
}

static void vmm_destroy(struct ar_policy *base)
{
    struct vmm *self = vmm_of(base);
    vmm_crowd_close(self);
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
        (void)vmm_destroy_kept(self, 0);
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
    const struct ar_policy_common *values = given;
    uint64_t page = context->backing->page_bytes;
    if (!page)
        return ar_error_set(error, AR_UNSUPPORTED,
                            "policy vmm: this device has no virtual memory; use another profile");
    struct vmm *self = ar_host_alloc(context->host, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "policy vmm: the host has no memory left");
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    if (total_bytes > UINT64_C(1) << 42)
        total_bytes = UINT64_C(1) << 42;
    self->base.ops = &vmm_policy;
    self->backing = context->backing;
    self->host = context->host;
    self->page_bytes = page;
    self->limit_bytes = values->limit_bytes ? values->limit_bytes : UINT64_MAX;
    self->device_bytes = total_bytes;
    deferred_open(&self->deferred, context->backing, context->host, complete, self);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops vmm_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "vmm",
    .summary = "pages mapped where they are needed, moved when memory is short (our own)",
    .reference = "this project",
    .capabilities = AR_POLICY_STREAM_ORDERED | AR_POLICY_NEEDS_MAPPING | AR_POLICY_WATCHES_FREE,
    .options = vmm_options,
    .values_bytes = sizeof(struct ar_policy_common),
    .create = vmm_create,
    .destroy = vmm_destroy,
    .alloc = vmm_alloc,
    .free = vmm_free,
    .stats = vmm_stats,
    .walk = vmm_walk,
    .validate = vmm_validate,
    .servable = vmm_servable,
    .use = vmm_use,
    .retire = vmm_retire,
    .trim = vmm_trim,
};
