/* Requests and frees: see vmm.h for the rules. */
#include "allocators/policies/vmm/vmm.h"

#include <string.h>

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

/* `right`, which is in no index, becomes part of `left`, its neighbour. */
static void join(struct vmm *self, uint32_t left, uint32_t right)
{
    struct ar_span *at = self->spans.at;
    at[left].bytes += at[right].bytes;
    if (!ar_spans_join(&self->spans, left, right))
        self->ranges[at[left].owner]->last = left;
    self->merges++;
}

/* Frees a piece and merges it with free neighbours of its mark. Returns the merged piece. */
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
    ar_policy_grant(base, out, span->address, bytes, piece);
    return AR_OK;
}

static void vmm_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    struct vmm *self = vmm_of(base);
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
                               uint32_t stream)
{
    struct vmm *self = vmm_of(base);
    uint32_t piece = (uint32_t)block->cookie;
    bool retired = self->spans.at[piece].mark == VMM_PENDING; /* then the free is completed */
    (void)stream;
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
    struct vmm *self = vmm_of(base);
    uint32_t piece = (uint32_t)block->cookie;
    uint32_t own = self->ranges[self->spans.at[piece].owner]->stream;
    return deferred_use(&self->deferred, piece, own, stream) ? AR_OK : AR_HOST_MEMORY;
}

/* Releases memory under free blocks, the largest first, until at most so many bytes are free or
 * none can be released. */
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
    if (!self->tight)
        vmm_forget_fences(self);
    vmm_destroy_kept(self, 0);
    return self->fault;
}

/* ---- inspection ------------------------------------------------------------------------------ */

/* The largest request that the stream of the last request can get from its free blocks, and their
 * bytes. */
static uint64_t usable(const struct vmm *self, uint64_t *free_block_bytes)
{
    uint64_t largest[VMM_KINDS] = {0};
    *free_block_bytes = 0;
    for (unsigned kind = 0; self->last_stream < self->stream_room && kind < VMM_KINDS; kind++)
        for (uint32_t number = self->streams[self->last_stream].first[kind]; number;) {
            const struct vmm_range *range = self->ranges[number - 1];
            uint64_t bytes = ar_span_index_largest(&range->free_blocks, self->spans.at);
            largest[kind] = bytes > largest[kind] ? bytes : largest[kind];
            bytes = range->tail ? self->spans.at[range->tail].bytes : 0;
            largest[kind] = bytes > largest[kind] ? bytes : largest[kind];
            *free_block_bytes += range->free_block_bytes;
            number = range->more;
        }
    uint64_t small = self->page_bytes / 2;
    if (largest[VMM_LARGE] > small)
        return largest[VMM_LARGE];
    return largest[VMM_SMALL] < small ? largest[VMM_SMALL] : small;
}

static void vmm_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct vmm *self = (const struct vmm *)base;
    *out = (struct ar_policy_stats){.totals = self->base.totals};
    uint64_t own;
    out->largest_free_block_bytes = usable(self, &own);
    out->stranded_by_stream_bytes = ar_policy_free_bytes(&self->base.totals) - own;
    out->count.splits = self->splits;
    out->count.merges = self->merges;
    out->count.segments_made = self->pages_made;
    out->count.segments_freed = self->pages_dropped;
    out->count.retries = self->retries;
    out->count.failures = self->failures;
    out->count.remapped_bytes = self->remapped_bytes;
}

/* Whole pages can be moved after a wait for their stream. They are unmapped, so this needs
 * EFFORT_TRIM. */
static uint64_t vmm_servable(const struct ar_policy *base, enum ar_policy_effort effort)
{
    const struct vmm *self = (const struct vmm *)base;
    uint64_t own;
    uint64_t bytes = usable(self, &own);
    uint64_t pages = self->base.totals.releasable_bytes;
    if (effort >= AR_POLICY_EFFORT_TRIM && pages > bytes)
        bytes = pages;
    return bytes;
}

static void vmm_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct vmm *self = (const struct vmm *)base;
    for (uint32_t i = 0; i < self->range_count; i++) {
        const struct vmm_range *range = self->ranges[self->by_address[i]];
        for (uint32_t p = range->first; p; p = self->spans.at[p].next) {
            const struct ar_span *span = &self->spans.at[p];
            struct ar_policy_range piece = {
                .address = span->address,
                .bytes = span->bytes,
                .segment_address = range->address,
                .stream = range->stream,
                .state = span->mark == VMM_GAP       ? AR_POLICY_RANGE_UNMAPPED
                         : !span->used               ? AR_POLICY_RANGE_FREE
                         : span->mark == VMM_PENDING ? AR_POLICY_RANGE_PENDING
                                                     : AR_POLICY_RANGE_USED,
            };
            if (piece.state == AR_POLICY_RANGE_USED)
                piece.requested_bytes = span->requested_bytes;
            if (!visit(argument, &piece))
                return;
        }
    }
}

/* A page has memory exactly if no gap covers it. */
static bool pages_are_right(const struct vmm *self, const struct vmm_range *range,
                            const struct ar_span *span)
{
    uint64_t first = (span->address - range->address) / self->page_bytes;
    uint64_t end = (span->address + span->bytes - 1 - range->address) / self->page_bytes + 1;
    for (uint64_t i = first; i < end && i < range->page_room; i++)
        if ((range->pages[i].handle != 0) != (span->mark != VMM_GAP))
            return false;
    return span->mark == VMM_GAP || end <= range->page_room;
}

static const char *piece_fault(const struct vmm *self, struct vmm_range *range, uint32_t piece,
                               uint64_t address)
{
    const struct ar_span *span = &self->spans.at[piece];
    const struct ar_span *next = span->next ? &self->spans.at[span->next] : NULL;
    if (span->address != address || !span->bytes || (next && next->previous != piece) ||
        (!next && piece != range->last))
        return "the chain of pieces is broken";
    if (next && !span->used && !next->used && next->mark == span->mark)
        return "two free pieces are not merged";
    if (!pages_are_right(self, range, span))
        return "the pages of a piece differ from its mark";
    if (span->mark == VMM_GAP)
        return span->used || address % self->page_bytes || span->bytes % self->page_bytes ||
                       !ar_span_index_has(&range->gaps, self->spans.at, piece)
                   ? "a gap is used, not of whole pages, or not in its index"
                   : NULL;
    return span->used || range->tail == piece ||
                   ar_span_index_has(&range->free_blocks, self->spans.at, piece)
               ? NULL
               : "a free block is in no index";
}

static enum ar_status check_range(const struct vmm *self, struct vmm_range *range,
                                  uint64_t *releasable_bytes, struct ar_error *error)
{
    uint64_t address = range->address, free_bytes = 0;
    for (uint32_t p = range->first; p; p = self->spans.at[p].next) {
        const struct ar_span *span = &self->spans.at[p];
        const char *fault = piece_fault(self, range, p, address);
        if (fault)
            return ar_policy_broken(&self->base, fault, address, error);
        address += span->bytes;
        if (span->used || span->mark == VMM_GAP)
            continue;
        free_bytes += span->bytes;
        if (span->bytes >= self->page_bytes)
            *releasable_bytes += vmm_releasable(self, span, NULL);
    }
    if (address != range->address + range->bytes || free_bytes != range->free_block_bytes)
        return ar_policy_broken(&self->base, "a range does not add up", range->address, error);
    return AR_OK;
}

static enum ar_status vmm_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct vmm *self = (const struct vmm *)base;
    uint64_t releasable_bytes = 0;
    enum ar_status status = AR_OK;
    for (uint32_t i = 0; i < self->range_count && !status; i++)
        status = check_range(self, self->ranges[i], &releasable_bytes, error);
    if (!status && !vmm_index_is_right(self))
        status = ar_error_set(error, AR_CORRUPT, "policy vmm: the idle index is out of date");
    return status ? status : ar_policy_check_totals(base, releasable_bytes, error);
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static void vmm_destroy(struct ar_policy *base)
{
    struct vmm *self = vmm_of(base);
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
    const struct ar_policy_common *values = given;
    uint64_t page = context->backing->page_bytes;
    if (!page)
        return ar_error_set(error, AR_UNSUPPORTED,
                            "policy vmm: this device has no virtual memory; use another profile");
    struct vmm *self = ar_policy_new(context, &vmm_policy, sizeof *self, error);
    if (!self)
        return AR_HOST_MEMORY;
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    if (total_bytes > UINT64_C(1) << 42)
        total_bytes = UINT64_C(1) << 42;
    self->backing = context->backing;
    self->host = context->host;
    self->page_bytes = page;
    self->limit_bytes = ar_policy_limit(values);
    self->device_bytes = total_bytes;
    deferred_open(&self->deferred, context->backing, context->host, complete, self);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops vmm_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "vmm",
    .summary =
        "pages mapped where they are needed and moved when memory is short (of this project)",
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
