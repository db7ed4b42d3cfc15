#include <inttypes.h>
#include <stdlib.h>

#include "allocators/base/span.h"
#include "allocators/base/most_tree.h"
#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/heap.h"
#include "sim/sim_device/state.h"

/* ---- pages ---------------------------------------------------------------------------------- */

#define POOL_PAGE_BYTES (32 * AR_MIB)

struct pool_pages {
    uint64_t row_address;
    uint32_t *needed_bytes; /* by page: used or pending; the owner frees it */
    size_t room;            /* pages in the array */
    uint64_t needed;        /* pages with used or pending bytes */
};

/* Makes space for pages up to the address `end`. False: no host memory. */
static bool pool_pages_reserve(struct pool_pages *self, uint64_t end)
{
    uint64_t count = (end - self->row_address + POOL_PAGE_BYTES - 1) / POOL_PAGE_BYTES;
    return !count || AR_ARRAY_REACH(self->needed_bytes, self->room, count - 1);
}

/* The part of a piece in the page at its `offset` in the row. */
static uint32_t part_in_page(uint64_t offset, uint64_t end)
{
    uint64_t page_end = (offset / POOL_PAGE_BYTES + 1) * POOL_PAGE_BYTES;
    return (uint32_t)((end < page_end ? end : page_end) - offset);
}

/* The number of pages that the piece needs and nothing else needs now. */
static uint64_t pool_pages_missing(const struct pool_pages *self, const struct ar_span *piece)
{
    uint64_t first = (piece->address - self->row_address) / POOL_PAGE_BYTES;
    uint64_t last = (piece->address + piece->bytes - 1 - self->row_address) / POOL_PAGE_BYTES;
    uint64_t missing = 0;
    for (uint64_t page = first; page <= last; page++)
        missing += self->needed_bytes[page] == 0;
    return missing;
}

static void pool_pages_need(struct pool_pages *self, const struct ar_span *piece)
{
    uint64_t end = piece->address + piece->bytes - self->row_address;
    self->needed += pool_pages_missing(self, piece);
    for (uint64_t at = piece->address - self->row_address; at < end;) {
        uint32_t part = part_in_page(at, end);
        self->needed_bytes[at / POOL_PAGE_BYTES] += part;
        at += part;
    }
}

/* The piece does not need its pages any more. */
static void pool_pages_leave(struct pool_pages *self, const struct ar_span *piece)
{
    uint64_t end = piece->address + piece->bytes - self->row_address;
    for (uint64_t at = piece->address - self->row_address; at < end;) {
        uint32_t part = part_in_page(at, end);
        uint32_t *bytes = &self->needed_bytes[at / POOL_PAGE_BYTES];
        *bytes -= part;
        self->needed -= *bytes == 0;
        at += part;
    }
}

/* ---- pool ----------------------------------------------------------------------------------- */

/* A model of the driver's stream-ordered pool. The driver does not document how its pool works;
 * these rules are inferred from recordings of its reserved bytes (tests/golden/data/async). The
 * names of the ways of reuse are those of its documentation.
 *
 * 1. The pool has a long row of addresses. Blocks are cut from it in steps of 512 bytes, best fit,
 *    lowest address among equals. The unused end of the row is the largest free block.
 * 2. A freed block goes to the list of the stream that freed it and merges with its neighbours
 *    there. It is pending until the host knows that the stream's work before the free is done.
 * 3. An allocation uses the first of these that has a fit: the list of its own stream (stream
 *    order); all free memory, with the blocks of all streams that are done when the pool looks now
 *    (opportunistic); a free block in another stream's list that events order before this stream's
 *    work (event dependencies); the end of the row.
 * 4. Memory comes in pages of 32 MiB, which the pool can move to any of its addresses. A page is
 *    needed while a byte of it is used or pending. New pages are obtained only if more are needed
 *    than there are.
 * 5. If the device, or the pool's maximum, allows no page: the best fit in another stream's list,
 *    and the stream waits for that stream's work (internal dependencies). Else the call is refused.
 * 6. When the host synchronises with a stream, the device or an event, pages that are not needed
 *    are released while more than the threshold is reserved. A trim does the same with its own
 *    bound.
 *
 * Free ranges are kept by the heap that policies use; a list of it holds free memory (0) or the
 * pending memory of a stream (its number + 1). */

#define UNIT_BYTES UINT64_C(512)
#define ROW_LEAST  (UINT64_C(1) << 40)
#define ROW_MOST   (UINT64_C(1) << 44)
#define LIST_FREE  0u
#define NO_PIECE   0u
#define NO_LIST    AR_MOST_TREE_NONE
#define FEW_LISTS  64u /* up to this number, lists are searched one by one */

/* A pending range: its last free. Indexed by piece of the heap; record 0 is none. */
struct pending {
    struct ar_backing_ticket ticket;
    uint64_t sequence, time_ns;
    uint32_t older, newer; /* in the order of the frees in one list */
};

struct queue {
    uint32_t oldest, newest;
};

struct pool_block {
    struct range range;
    uint64_t requested_bytes;
    uint32_t piece;
};

struct sim_pool {
    struct sim_device *device;
    struct ar_backing_pool settings;
    struct ar_backing row; /* the heap obtains the row of addresses from it */
    struct ar_policy books;
    struct ar_host host;
    struct heap heap;
    uint64_t row_address, row_bytes;
    struct pending *pending;
    size_t pending_room;
    struct queue *queues; /* by list */
    uint32_t queue_count;
    struct ar_most_tree largest; /* by list: its largest pending range; empty: few lists */
    struct ranges blocks;
    struct pool_pages pages;
    uint64_t held_pages;
    uint64_t used_bytes;
    bool begun;   /* it has served a request */
    bool settled; /* the pending frees are those that the last settling left */
};

/* ---- opening and closing -------------------------------------------------------------------- */

static enum ar_status row_alloc(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    const struct sim_pool *self =
        (const struct sim_pool *)((char *)backing - offsetof(struct sim_pool, row));
    (void)bytes;
    *address = self->row_address;
    return AR_OK;
}

static enum ar_status row_free(struct ar_backing *backing, uint64_t address)
{
    (void)backing;
    (void)address;
    return AR_OK;
}

/* The row of addresses: four times the device's memory, so that free ranges never fill it. */
static enum ar_status row_open(struct sim_pool *self)
{
    struct sim_device *device = self->device;
    uint64_t capacity = device->ledger.capacity_bytes;
    uint64_t bytes = capacity < ROW_MOST / 4 ? 4 * capacity : ROW_MOST;
    self->row_bytes = ar_size_round_up(bytes > ROW_LEAST ? bytes : ROW_LEAST, POOL_PAGE_BYTES);
    AR_TRY(sim_addresses_new(&device->addresses, self->row_bytes, &device->memory.segments,
                             &device->small.pages, &self->row_address));
    struct memory_segment *segment = sim_segment_add(
        device, self->row_address, self->row_address + self->row_bytes, self->row_bytes, false);
    AR_TRY_HOST(segment);
    segment->pool = true;
    self->pages.row_address = self->row_address;
    static const struct ar_backing_ops row_ops = {.segment_alloc = row_alloc,
                                                  .segment_free = row_free};
    self->row = (struct ar_backing){.ops = &row_ops};
    const struct ar_policy_context context = {.backing = &self->row, .host = &self->host};
    heap_open(&self->heap, &self->books, &context);
    uint32_t piece;
    AR_TRY(heap_reserve(&self->heap, 2, LIST_FREE));
    AR_TRY(heap_grow(&self->heap, self->row_bytes, &piece));
    (void)heap_give(&self->heap, piece, LIST_FREE);
    return AR_OK;
}

enum ar_status sim_pool_open(struct ar_backing *backing, const struct ar_backing_pool *settings)
{
    struct sim_device *device = sim_of_backing(backing);
    if (!device->pool) {
        struct sim_pool *self = calloc(1, sizeof *self);
        AR_TRY_HOST(self);
        self->device = device;
        enum ar_status status = row_open(self);
        if (status != AR_OK) {
            sim_pool_close(self);
            return status;
        }
        device->pool = self;
    }
    device->pool->settings = *settings;
    return AR_OK;
}

void sim_pool_close(struct sim_pool *self)
{
    if (!self)
        return;
    while (self->blocks.root) {
        struct range *block = self->blocks.root;
        ranges_remove(&self->blocks, block);
        free(block);
    }
    if (self->heap.host)
        heap_close(&self->heap);
    free(self->pending);
    free(self->queues);
    ar_most_tree_close(&self->largest, &self->host);
    free(self->pages.needed_bytes);
    free(self);
}

static const struct ar_span *piece_at(const struct sim_pool *self, uint32_t piece)
{
    return &self->heap.spans.at[piece];
}

/* Updates a list after a change, except the free one. */
static inline void list_changed(struct sim_pool *self, uint32_t list)
{
    if (self->largest.room)
        ar_most_tree_set(&self->largest, list, heap_largest(&self->heap, list));
}

/* The state of each list of the heap. */
static bool lists_cover(struct sim_pool *self)
{
    uint32_t count = self->heap.list_room;
    bool is_new = !self->largest.room;
    struct queue *grown = realloc(self->queues, count * sizeof *grown);
    if (!grown)
        return false;
    self->queues = grown;
    if (count > FEW_LISTS && !ar_most_tree_reserve(&self->largest, &self->host, count))
        return false;
    for (; self->queue_count < count; self->queue_count++)
        grown[self->queue_count] = (struct queue){NO_PIECE, NO_PIECE};
    for (uint32_t list = 1; is_new && list < count; list++)
        list_changed(self, list);
    return true;
}

/* Makes space for everything that one call can add. */
static bool reserve(struct sim_pool *self, uint32_t stream)
{
    if (heap_reserve(&self->heap, 2, stream + 1) != AR_OK)
        return false;
    if (self->heap.spans.count &&
        !AR_ARRAY_REACH(self->pending, self->pending_room, self->heap.spans.count - 1))
        return false;
    return self->queue_count >= self->heap.list_room || lists_cover(self);
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void pages_give_back(struct sim_pool *self, uint64_t keep_bytes)
{
    struct sim_device *device = self->device;
    uint64_t keep = keep_bytes / POOL_PAGE_BYTES;
    AR_RAISE(keep, self->pages.needed);
    if (self->held_pages <= keep)
        return;
    sim_ledger_release(&device->ledger, (self->held_pages - keep) * POOL_PAGE_BYTES,
                       device->clock.now_ns);
    self->held_pages = keep;
    sim_show_memory(device);
}

/* Obtains `count` pages from the device. */
static bool pages_get(struct sim_pool *self, uint64_t count)
{
    struct sim_device *device = self->device;
    uint64_t bytes = count * POOL_PAGE_BYTES;
    uint64_t most = self->settings.most_bytes;
    if (bytes > sim_ledger_free(&device->ledger) ||
        (most && (self->held_pages + count) * POOL_PAGE_BYTES > most))
        return false;
    sim_await_cleaning(device, bytes, SIM_COST_pool_grow);
    sim_ledger_charge(&device->ledger, bytes);
    self->held_pages += count;
    sim_show_memory(device);
    return true;
}

/* ---- what is pending ------------------------------------------------------------------------ */

/* The first list from `list` on, other than `own`, with a pending range, and, if there are many
 * lists, with one of `bytes`; or NO_LIST. */
static uint32_t next_pending(const struct sim_pool *self, uint32_t list, uint32_t own,
                             uint64_t bytes)
{
    if (self->largest.room) {
        list = ar_most_tree_next(&self->largest, list, bytes);
        return list == own ? ar_most_tree_next(&self->largest, list + 1, bytes) : list;
    }
    for (; list < self->queue_count; list++)
        if (self->queues[list].oldest && list != own)
            return list;
    return NO_LIST;
}

static void pending_add(struct sim_pool *self, uint32_t piece, const struct pending *last_free)
{
    struct queue *queue = &self->queues[piece_at(self, piece)->owner];
    struct pending *added = &self->pending[piece];
    self->settled = false;
    *added = *last_free;
    added->older = queue->newest;
    added->newer = NO_PIECE;
    if (queue->newest)
        self->pending[queue->newest].newer = piece;
    else
        queue->oldest = piece;
    queue->newest = piece;
}

static void pending_remove(struct sim_pool *self, uint32_t piece, uint32_t list)
{
    struct queue *queue = &self->queues[list];
    const struct pending *gone = &self->pending[piece];
    self->settled = false;
    if (gone->older)
        self->pending[gone->older].newer = gone->newer;
    else
        queue->oldest = gone->newer;
    if (gone->newer)
        self->pending[gone->newer].older = gone->older;
    else
        queue->newest = gone->older;
}

/* `rest` remains of the pending range `piece`, and keeps its position in the queue. */
static void pending_replace(struct sim_pool *self, uint32_t piece, uint32_t rest, uint32_t list)
{
    struct queue *queue = &self->queues[list];
    struct pending *kept = &self->pending[rest];
    *kept = self->pending[piece];
    if (kept->older)
        self->pending[kept->older].newer = rest;
    else
        queue->oldest = rest;
    if (kept->newer)
        self->pending[kept->newer].older = rest;
    else
        queue->newest = rest;
}

/* The oldest pending range of a list becomes free. */
static void complete_oldest(struct sim_pool *self, uint32_t list)
{
    uint32_t piece = self->queues[list].oldest;
    pending_remove(self, piece, list);
    pool_pages_leave(&self->pages, piece_at(self, piece));
    heap_remove(&self->heap, piece);
    list_changed(self, list);
    (void)heap_give(&self->heap, piece, LIST_FREE);
}

/* Frees the ranges of a list that are done: as far as the host knows, or, with `look`, as it finds
 * out now. The frees of a stream are done in order, so only the oldest needs a look. */
static void complete_list(struct sim_pool *self, uint32_t list, bool look)
{
    struct sim_clock *clock = &self->device->clock;
    for (uint32_t oldest; (oldest = self->queues[list].oldest) != NO_PIECE;) {
        const struct pending *pending = &self->pending[oldest];
        bool done = look ? sim_clock_done(clock, pending->ticket)
                         : sim_clock_known(clock, list - 1, pending->sequence);
        if (!done)
            break;
        complete_oldest(self, list);
    }
}

static void complete_done(struct sim_pool *self, bool look)
{
    for (uint32_t list = 0; (list = next_pending(self, list + 1, LIST_FREE, 1)) != NO_LIST;)
        complete_list(self, list, look);
}

void sim_pool_settle(struct sim_device *device)
{
    struct sim_pool *self = device->pool;
    if (!self)
        return;
    /* A program that waits for each of many streams in turn learns of one at a time. */
    struct sim_clock *clock = &self->device->clock;
    if (!self->settled || clock->learned > 1)
        complete_done(self, false);
    else if (clock->learned == 1 && clock->learned_stream + 1 < self->queue_count)
        complete_list(self, clock->learned_stream + 1, false);
    self->settled = true;
    clock->learned = 0;
    if (self->settings.release_threshold_bytes != UINT64_MAX)
        pages_give_back(self, self->settings.release_threshold_bytes);
}

/* ---- allocation ----------------------------------------------------------------------------- */

/* Cuts a block from a pending range in `list`. Its pages stay needed. */
static uint32_t cut_pending(struct sim_pool *self, uint32_t piece, uint64_t bytes, uint32_t list)
{
    heap_remove(&self->heap, piece);
    if (piece_at(self, piece)->bytes == bytes) {
        pending_remove(self, piece, list);
    } else {
        heap_split(&self->heap, piece, bytes, list);
        pending_replace(self, piece, piece_at(self, piece)->next, list);
    }
    list_changed(self, list);
    return piece;
}

static uint32_t take_own(struct sim_pool *self, uint64_t bytes, uint32_t stream)
{
    uint32_t piece = heap_next(&self->heap, stream + 1, bytes, 0);
    return piece ? cut_pending(self, piece, bytes, stream + 1) : NO_PIECE;
}

/* The best fit in the lists of other streams that events order before `stream`; of all if `any`. */
static uint32_t take_others(struct sim_pool *self, uint64_t bytes, uint32_t stream, bool any)
{
    const struct sim_clock *clock = &self->device->clock;
    for (uint32_t list = 0; (list = next_pending(self, list + 1, stream + 1, bytes)) != NO_LIST;) {
        uint32_t piece = heap_next(&self->heap, list, bytes, 0);
        while (piece && !any &&
               !sim_clock_ordered(clock, list - 1, self->pending[piece].sequence, stream))
            piece = heap_next(&self->heap, list, piece_at(self, piece)->bytes,
                              piece_at(self, piece)->address + 1);
        if (!piece)
            continue;
        if (any)
            sim_stream_stalls(self->device, sim_clock_order(&self->device->clock, list - 1,
                                                            self->pending[piece].sequence,
                                                            self->pending[piece].time_ns, stream));
        return cut_pending(self, piece, bytes, list);
    }
    return NO_PIECE;
}

/* Cuts a block from the free memory and obtains the pages for it. */
static uint32_t take_free(struct sim_pool *self, uint64_t bytes, uint64_t *got_bytes,
                          enum ar_status *status)
{
    uint32_t piece = heap_take(&self->heap, LIST_FREE, bytes);
    *status = AR_REFUSED;
    if (!piece)
        return NO_PIECE;
    if (piece_at(self, piece)->bytes > bytes)
        heap_split(&self->heap, piece, bytes, LIST_FREE);
    const struct ar_span *span = piece_at(self, piece);
    if (!pool_pages_reserve(&self->pages, span->address + bytes)) {
        *status = AR_HOST_MEMORY;
    } else {
        uint64_t needed = self->pages.needed + pool_pages_missing(&self->pages, span);
        uint64_t more = needed > self->held_pages ? needed - self->held_pages : 0;
        if (!more || pages_get(self, more)) {
            pool_pages_need(&self->pages, span);
            *got_bytes = more * POOL_PAGE_BYTES;
            *status = AR_OK;
            return piece;
        }
    }
    (void)heap_give(&self->heap, piece, LIST_FREE);
    return NO_PIECE;
}

/* What happened during an allocation. */
struct met {
    uint64_t got_bytes; /* obtained from the device */
    bool others_pend;   /* it looked at pending frees of other streams */
};

/* Rules 3 to 5. */
static uint32_t take(struct sim_pool *self, uint64_t bytes, uint32_t stream, struct met *met,
                     enum ar_status *status)
{
    *status = AR_OK;
    uint32_t piece = take_own(self, bytes, stream);
    if (piece)
        return piece;
    if (self->settings.opportunistic)
        complete_done(self, true);
    met->others_pend = next_pending(self, 1, stream + 1, 1) != NO_LIST;
    const struct ar_span *end = piece_at(self, heap_next(&self->heap, LIST_FREE, bytes, 0));
    bool at_end = end->address + end->bytes == self->row_address + self->row_bytes;
    if (at_end && self->settings.follow_events)
        piece = take_others(self, bytes, stream, false);
    if (!piece)
        piece = take_free(self, bytes, &met->got_bytes, status);
    if (!piece && *status == AR_REFUSED && self->settings.internal) {
        piece = take_others(self, bytes, stream, true);
        *status = piece ? AR_OK : AR_REFUSED;
    }
    return piece;
}

enum ar_status sim_pool_alloc(struct ar_backing *backing, uint64_t bytes, uint32_t stream,
                              uint64_t *address)
{
    static const struct ar_backing_pool as_the_driver = {
        .follow_events = true, .opportunistic = true, .internal = true};
    struct sim_device *device = sim_of_backing(backing);
    AR_TRY(sim_check_complete(device));
    if (!device->pool)
        AR_TRY(sim_pool_open(backing, &as_the_driver));
    struct sim_pool *self = device->pool;
    if (bytes == 0)
        return sim_misuse(device, "a stream-ordered allocation of no bytes");
    struct pool_block *block = calloc(1, sizeof *block);
    if (!block || !reserve(self, stream)) {
        free(block);
        return AR_HOST_MEMORY;
    }
    struct met met = {0};
    uint64_t rounded =
        bytes < self->row_bytes ? ar_size_round_up(bytes, UNIT_BYTES) : self->row_bytes;
    uint64_t ns = sim_cost_now(device, SIM_COST_pool_alloc, bytes);
    enum ar_status status = AR_OK;
    uint32_t piece = take(self, rounded, stream, &met, &status);
    if (!piece) {
        free(block);
        return status == AR_REFUSED
                   ? sim_refuse(device, AR_DEVICE_CALL_pool_alloc, SIM_COST_pool_alloc)
                   : status;
    }
    if (met.others_pend)
        ns += sim_cost_now(device, SIM_COST_pool_pending, bytes);
    if (met.got_bytes)
        ns += sim_cost_now(device, SIM_COST_pool_grow, met.got_bytes);
    if (!self->begun)
        ns += sim_cost_now(device, SIM_COST_pool_first, 1);
    self->begun = true;
    sim_await_work(device, SIM_COST_pool_alloc);
    sim_call(device, AR_DEVICE_CALL_pool_alloc, SIM_COST_pool_alloc, bytes, ns);
    *address = piece_at(self, piece)->address;
    block->range.start = *address;
    block->range.end = *address + rounded;
    block->requested_bytes = bytes;
    block->piece = piece;
    ranges_insert(&self->blocks, &block->range);
    self->used_bytes += bytes;
    return AR_OK;
}

/* ---- the other calls ------------------------------------------------------------------------ */

/* Rule 2. */
static void put_pending(struct sim_pool *self, uint32_t piece, uint32_t stream)
{
    struct sim_clock *clock = &self->device->clock;
    uint32_t list = stream + 1;
    const struct ar_span *span = piece_at(self, piece);
    const uint32_t neighbours[] = {span->previous, span->next};
    for (int side = 0; side < 2; side++) {
        const struct ar_span *neighbour = piece_at(self, neighbours[side]);
        if (!neighbour->used && neighbour->owner == list)
            pending_remove(self, neighbours[side], list);
    }
    struct sim_moment here = sim_clock_here(clock, stream);
    const struct pending last_free = {.ticket = sim_clock_fence(clock, stream),
                                      .sequence = here.sequence,
                                      .time_ns = here.time_ns};
    pending_add(self, heap_give(&self->heap, piece, list), &last_free);
    list_changed(self, list);
}

enum ar_status sim_pool_free(struct ar_backing *backing, uint64_t address, uint32_t stream)
{
    struct sim_device *device = sim_of_backing(backing);
    struct sim_pool *self = device->pool;
    struct pool_block *block =
        self ? (struct pool_block *)ranges_find(&self->blocks, address) : NULL;
    if (!block || block->range.start != address)
        return sim_misuse(device,
                          "a stream-ordered free of %" PRIu64 ", where no block of the pool "
                          "starts: it was freed before, or never allocated",
                          address);
    AR_TRY_HOST(reserve(self, stream));
    self->used_bytes -= block->requested_bytes;
    sim_charge(device, AR_DEVICE_CALL_pool_free, SIM_COST_pool_free, SIM_COST_pool_free,
               block->requested_bytes, block->requested_bytes);
    ranges_remove(&self->blocks, &block->range);
    put_pending(self, block->piece, stream);
    free(block);
    return AR_OK;
}

enum ar_status sim_pool_trim(struct ar_backing *backing, uint64_t keep_bytes)
{
    struct sim_device *device = sim_of_backing(backing);
    struct sim_pool *self = device->pool;
    uint64_t ns = 0;
    if (self) {
        uint64_t before_pages = self->held_pages;
        complete_done(self, true);
        pages_give_back(self, keep_bytes);
        uint64_t back_bytes = (before_pages - self->held_pages) * POOL_PAGE_BYTES;
        ns = back_bytes ? sim_cost_now(device, SIM_COST_pool_trim, back_bytes) : 0;
    }
    sim_call(device, AR_DEVICE_CALL_pool_trim, SIM_COST_pool_trim, 0, ns);
    return AR_OK;
}

void sim_pool_memory(struct ar_backing *backing, uint64_t *used_bytes, uint64_t *reserved_bytes)
{
    const struct sim_pool *self = sim_of_backing(backing)->pool;
    *used_bytes = self ? self->used_bytes : 0;
    *reserved_bytes = self ? self->held_pages * POOL_PAGE_BYTES : 0;
}
