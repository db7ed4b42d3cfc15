/* A model of the driver's stream-ordered pool. The driver does not document how its pool works;
 * these rules are inferred from recordings of addresses and reserved bytes (ASYNC.md). The names of
 * the ways of reuse are those of its documentation.
 *
 * 1. The pool has a long row of addresses. Blocks are cut from it in steps of 512 bytes. A search
 *    takes the best fit, among equals the range that came to its list first; a rest, and a range
 *    that has grown, come last. The unused end of the row is the largest free range.
 * 2. A freed block goes to the list of the stream that freed it and merges with its neighbours
 *    there. It is pending until the host learns, at a synchronisation, that the stream's work
 *    before the free is done, or the pool looks and finds that. If a block is cut from it, the rest
 *    stays in that list, whichever stream got the block. If the stream is made to wait after a
 *    free, before other work, the free is done after that wait too, as soon as work or another free
 *    follows the wait: with those the driver marks frees on the card.
 * 3. An allocation uses the first of these that has a fit: the list of its own stream (stream
 *    order); free ranges that are all backed; the list of another stream, in the order in which
 *    streams first used the pool, if events order the free before this stream's work (event
 *    dependencies), or if the pool finds that work done (opportunistic). If that is not so of the
 *    best fit, the search goes on with the range that was freed first. Else all that is found done
 *    becomes free, in each list the last free first, and the best fit of all free ranges is taken.
 * 4. Memory comes in pages of 32 MiB, which back the addresses of a page of the row, and which the
 *    pool can move. A page is needed while a byte of it is used or pending. Pages that a block
 *    lacks are taken from free ranges, highest address first, and then from the device.
 * 5. If the device, or the pool's maximum, allows too few pages, the range keeps what there is and
 *    comes last among its equals, and pages are released as at a synchronisation. Then the best fit
 *    in another stream's list is taken, and the stream waits for that stream's work (internal
 *    dependencies), which orders no other free. Rule 2 holds for this wait too. Else the call is
 *    refused.
 * 6. When the host synchronises with a stream, the device or an event, and pending ranges become
 *    free by that, pages that are not needed are released while more than the threshold is
 *    reserved, those of the range that has been free longest first. A trim does the same with its
 *    own bound; it finds nothing out. */

#include "sim/sim_device/pool.h"

/* ---- opening and closing -------------------------------------------------------------------- */

/* The row of addresses: twice as much as the pool may hold, but at most 16 TiB (ROW_MOST). */
static enum ar_status row_open(struct sim_pool *self)
{
    struct sim_device *device = self->device;
    uint64_t most = self->settings.most_bytes;
    uint64_t bytes = most ? most : device->ledger.capacity_bytes;
    self->row_bytes =
        bytes < ROW_MOST / 2 ? ar_size_round_up(2 * bytes, POOL_PAGE_BYTES) : ROW_MOST;
    AR_TRY(sim_addresses_new(&device->addresses, self->row_bytes, &device->memory.segments,
                             &device->small.pages, &self->row_address));
    struct memory_segment *segment = sim_segment_add(
        device, self->row_address, self->row_address + self->row_bytes, self->row_bytes, false);
    AR_TRY_HOST(segment);
    segment->pool = true;
    AR_TRY_HOST(pool_lists_reach(self, LIST_STREAMS) && pool_reserve(self));
    self->list_count = LIST_STREAMS;
    self->last = ar_spans_new(&self->row, self->row_address, self->row_bytes);
    pool_range_put(self, self->last, LIST_BARE);
    return AR_OK;
}

/* Ends an empty pool, which is to have another maximum and so another row. */
static enum ar_status pool_end(struct sim_pool *self)
{
    struct sim_device *device = self->device;
    if (self->held_pages)
        return sim_misuse(device,
                          "a pool opened with another maximum while %" PRIu64
                          " bytes are reserved in it; free its blocks and trim it first",
                          self->held_pages * POOL_PAGE_BYTES);
    memory_segment_remove(&device->memory, memory_segment_find(&device->memory, self->row_address));
    sim_addresses_released(&device->addresses, self->row_address, self->row_bytes);
    sim_pool_close(self);
    device->pool = NULL;
    return AR_OK;
}

enum ar_status sim_pool_open(struct ar_backing *backing, const struct ar_backing_pool *settings)
{
    struct sim_device *device = sim_of_backing(backing);
    bool begun = device->pool && device->pool->begun;
    if (device->pool && device->pool->settings.most_bytes != settings->most_bytes)
        AR_TRY(pool_end(device->pool));
    if (!device->pool) {
        struct sim_pool *self = calloc(1, sizeof *self);
        AR_TRY_HOST(self);
        self->device = device;
        self->settings = *settings;
        self->begun = begun;
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
    ar_map_close(&self->blocks);
    ar_spans_close(&self->row, &self->host);
    ar_spans_close(&self->entries, &self->host);
    free(self->pieces);
    free(self->lists);
    free(self->stream_lists);
    ar_most_tree_close(&self->largest, &self->host);
    free(self->pages);
    free(self);
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
    for (; list < self->list_count; list++)
        if (self->lists[list].oldest && list != own)
            return list;
    return NO_LIST;
}

/* A pending range becomes free and merges with its neighbours. Where one of them lacks a page, so
 * does the whole. */
static void complete(struct sim_pool *self, uint32_t piece)
{
    pool_range_remove(self, piece);
    pool_pages_need(self, piece_at(self, piece), false);
    uint32_t list = LIST_BACKED;
    uint32_t previous = piece_at(self, piece)->previous;
    uint32_t next = piece_at(self, piece)->next;
    if (next && is_free(piece_at(self, next))) {
        list |= piece_at(self, next)->owner;
        pool_range_remove(self, next);
        pool_join(self, piece, next);
    }
    if (previous && is_free(piece_at(self, previous))) {
        list |= piece_at(self, previous)->owner;
        pool_range_remove(self, previous);
        pool_join(self, previous, piece);
        piece = previous;
    }
    pool_range_put(self, piece, list);
}

static uint32_t list_known(const struct sim_pool *self, uint32_t stream)
{
    return self && stream < self->stream_room ? self->stream_lists[stream] : 0;
}

static struct point point_here(struct sim_clock *clock, uint32_t stream)
{
    return (struct point){.ticket = sim_clock_fence(clock, stream),
                          .time_ns = sim_clock_here(clock, stream).time_ns,
                          .kernels = sim_clock_kernels(clock, stream)};
}

/* Rule 2: the stream of a list goes on after its last wait. The frees since its last kernel before
 * the wait are done after it too. */
static void wait_counts(struct sim_pool *self, struct pool_list *list)
{
    for (uint32_t piece = list->newest;
         piece && self->pieces[piece].freed.kernels == list->wait.kernels;
         piece = self->pieces[piece].older)
        self->pieces[piece].freed = list->wait;
    list->waits = false;
}

static void look_at_wait(struct sim_pool *self, struct pool_list *list)
{
    if (list->waits && sim_clock_kernels(&self->device->clock, list->stream) != list->wait.kernels)
        wait_counts(self, list);
}

void sim_pool_stream_waits(struct sim_device *device, uint32_t stream)
{
    struct sim_pool *self = device->pool;
    struct sim_clock *clock = &device->clock;
    uint32_t list = list_known(self, stream);
    if (!list || sim_clock_here(clock, stream).time_ns <= clock->now_ns)
        return;
    look_at_wait(self, &self->lists[list]);
    self->lists[list].waits = true;
    self->lists[list].wait = point_here(clock, stream);
}

void sim_pool_event(struct sim_device *device, uint32_t stream)
{
    uint32_t list = list_known(device->pool, stream);
    if (list)
        device->pool->lists[list].has_event = true;
}

/* As far as the host knows, or, with `look`, as the pool finds out now. */
static bool is_done(const struct sim_pool *self, uint32_t piece, bool look)
{
    struct sim_clock *clock = &self->device->clock;
    const struct piece *pending = &self->pieces[piece];
    uint32_t stream = self->lists[piece_at(self, piece)->owner].stream;
    return look ? sim_clock_done(clock, pending->freed.ticket)
                : sim_clock_known(clock, stream, pending->sequence);
}

/* Frees the ranges of a list that are done, as far as the host knows, or, with `look`, as the pool
 * finds out now: the last free first. The frees of a stream are done in order. */
static bool complete_list(struct sim_pool *self, uint32_t list, bool look)
{
    uint32_t done = NO_PIECE;
    look_at_wait(self, &self->lists[list]);
    for (uint32_t piece = self->lists[list].oldest; piece && is_done(self, piece, look);
         piece = self->pieces[piece].newer)
        done = piece;
    for (uint32_t piece = done; piece;) {
        uint32_t older = self->pieces[piece].older;
        complete(self, piece);
        piece = older;
    }
    return done != NO_PIECE;
}

static bool complete_done(struct sim_pool *self, bool look)
{
    bool any = false;
    for (uint32_t list = LIST_STREAMS; (list = next_pending(self, list, LIST_BACKED, 1)) != NO_LIST;
         list++)
        any |= complete_list(self, list, look);
    return any;
}

static bool complete_stream(struct sim_pool *self, uint32_t stream)
{
    uint32_t list = list_known(self, stream);
    return list && complete_list(self, list, false);
}

/* Rule 6. What a wait tells about other streams counts too. */
void sim_pool_settle(struct sim_device *device, uint32_t stream)
{
    struct sim_pool *self = device->pool;
    if (!self)
        return;
    struct sim_clock *clock = &self->device->clock;
    bool any = false;
    if (stream == SIM_ALL_STREAMS || clock->learned > 1)
        any = complete_done(self, false);
    else
        any = complete_stream(self, stream);
    if (clock->learned == 1)
        any |= complete_stream(self, clock->learned_stream);
    clock->learned = 0;
    if (any)
        pool_pages_release(self);
}

/* ---- allocation ----------------------------------------------------------------------------- */

/* Cuts a block from a pending range. Its pages stay needed. */
static uint32_t cut_pending(struct sim_pool *self, uint32_t piece, uint64_t bytes)
{
    uint32_t list = piece_at(self, piece)->owner;
    pool_list_remove(self, piece);
    if (piece_at(self, piece)->bytes == bytes) {
        pool_queue_remove(self, piece, list);
        return piece;
    }
    uint32_t rest = pool_cut(self, piece, bytes);
    pool_list_put(self, rest, list);
    pool_queue_replace(self, piece, rest, list);
    return piece;
}

static uint32_t take_own(struct sim_pool *self, uint64_t bytes, uint32_t list)
{
    uint32_t piece = pool_list_best(self, list, bytes);
    return piece ? cut_pending(self, piece, bytes) : NO_PIECE;
}

/* Which ranges of other streams an allocation may use. */
enum others { OTHERS_ORDERED, OTHERS_DONE, OTHERS_ALL };

static bool may_use(struct sim_pool *self, uint32_t piece, uint32_t stream, enum others which)
{
    const struct sim_clock *clock = &self->device->clock;
    if (which == OTHERS_ORDERED)
        return sim_clock_waits_for(clock, self->lists[piece_at(self, piece)->owner].stream,
                                   self->pieces[piece].sequence, stream);
    return which == OTHERS_ALL || is_done(self, piece, true);
}

/* The best fit of a list, or else, of those that may be used and are large enough, the one that was
 * freed first. What was freed later than one that may not be used may not either. */
static uint32_t usable_of(struct sim_pool *self, uint64_t bytes, uint32_t list, uint32_t stream,
                          enum others which)
{
    uint32_t piece = pool_list_best(self, list, bytes);
    look_at_wait(self, &self->lists[list]);
    if (!piece || may_use(self, piece, stream, which))
        return piece;
    piece = self->lists[list].oldest;
    while (piece && may_use(self, piece, stream, which)) {
        if (piece_at(self, piece)->bytes >= bytes)
            return piece;
        piece = self->pieces[piece].newer;
    }
    return NO_PIECE;
}

/* The first list of another stream that has a range to use. */
static uint32_t take_others(struct sim_pool *self, uint64_t bytes, uint32_t own, enum others which)
{
    struct sim_clock *clock = &self->device->clock;
    uint32_t stream = self->lists[own].stream;
    for (uint32_t list = LIST_STREAMS; (list = next_pending(self, list, own, bytes)) != NO_LIST;
         list++) {
        uint32_t piece = usable_of(self, bytes, list, stream, which);
        if (!piece)
            continue;
        if (which == OTHERS_ALL) {
            sim_stream_stalls(self->device,
                              sim_clock_order_apart(clock, self->lists[list].stream,
                                                    self->pieces[piece].sequence,
                                                    self->pieces[piece].freed.time_ns, stream));
            sim_pool_stream_waits(self->device, stream);
        }
        return cut_pending(self, piece, bytes);
    }
    return NO_PIECE;
}

/* Cuts a block from a free range, which is in no list any more. The rest is free. */
static void cut_free(struct sim_pool *self, uint32_t piece, uint64_t bytes, uint32_t list)
{
    if (piece_at(self, piece)->bytes > bytes)
        pool_range_put(self, pool_cut(self, piece, bytes), list);
    pool_pages_need(self, piece_at(self, piece), true);
}

static uint32_t take_backed(struct sim_pool *self, uint64_t bytes)
{
    uint32_t piece = pool_list_best(self, LIST_BACKED, bytes);
    if (!piece)
        return NO_PIECE;
    pool_range_remove(self, piece);
    cut_free(self, piece, bytes, LIST_BACKED);
    return piece;
}

/* The best fit of all free ranges, whether pages are there or not. */
static uint32_t best_free(struct sim_pool *self, uint64_t bytes)
{
    uint32_t backed = pool_list_best(self, LIST_BACKED, bytes);
    uint32_t bare = pool_list_best(self, LIST_BARE, bytes);
    if (!backed || !bare)
        return backed ? backed : bare;
    uint64_t of_backed = piece_at(self, backed)->bytes;
    uint64_t of_bare = piece_at(self, bare)->bytes;
    if (of_backed != of_bare)
        return of_backed < of_bare ? backed : bare;
    return pool_order_of(self, backed) < pool_order_of(self, bare) ? backed : bare;
}

/* The number of pages that a block needs and nothing else needs now, and those of them that are not
 * there. */
static void pages_count(const struct sim_pool *self, uint64_t address, uint64_t bytes,
                        uint64_t *needed, uint64_t *missing)
{
    *needed = *missing = 0;
    for (uint64_t page = page_of(self, address); page <= page_of(self, address + bytes - 1);
         page++) {
        *needed += self->pages[page].needed_bytes == 0;
        *missing += !self->pages[page].held;
    }
}

/* Rule 5: of the pages that a block lacks, `moved` come from free ranges, and `made` are new. */
static void keep_some(struct sim_pool *self, uint32_t piece, uint64_t bytes, uint64_t moved,
                      uint64_t made)
{
    pool_range_remove(self, piece);
    uint32_t rest = piece_at(self, piece)->bytes > bytes ? pool_cut(self, piece, bytes) : NO_PIECE;
    if (rest)
        pool_range_put(self, rest, LIST_BARE);
    pool_pages_fill(self, piece_at(self, piece), moved, moved + made);
    if (rest) {
        pool_range_remove(self, rest);
        pool_join(self, piece, rest);
    }
    pool_range_put(self, piece, LIST_BARE);
    pool_pages_release(self);
}

/* Cuts a block from the free ranges and gives it the pages that it lacks. */
static uint32_t take_free(struct sim_pool *self, uint64_t bytes, uint64_t *got_bytes,
                          enum ar_status *status)
{
    uint32_t piece = best_free(self, bytes);
    *status = AR_REFUSED;
    if (!piece)
        return NO_PIECE;
    uint64_t address = piece_at(self, piece)->address;
    if (!pool_pages_reserve(self, address, bytes)) {
        *status = AR_HOST_MEMORY;
        return NO_PIECE;
    }
    uint64_t needed, missing;
    pages_count(self, address, bytes, &needed, &missing);
    needed += self->needed_pages;
    uint64_t more = needed > self->held_pages ? needed - self->held_pages : 0;
    uint64_t made = more ? pool_pages_get(self, more) : 0;
    *got_bytes = made * POOL_PAGE_BYTES;
    if (made < more) {
        keep_some(self, piece, bytes, missing - more, made);
        return NO_PIECE;
    }
    pool_range_remove(self, piece);
    cut_free(self, piece, bytes, LIST_BARE);
    pool_pages_fill(self, piece_at(self, piece), missing - more, missing);
    uint32_t rest = piece_at(self, piece)->next;
    if (rest && is_free(piece_at(self, rest)) && pool_is_backed(self, piece_at(self, rest)))
        pool_list_move(self, rest, LIST_BACKED);
    *status = AR_OK;
    return piece;
}

/* What happened during an allocation. */
struct met {
    uint64_t got_bytes; /* obtained from the device */
    bool others_pend;   /* frees of other streams were pending when it came to the free ranges */
};

/* Rules 3 to 5. */
static uint32_t take(struct sim_pool *self, uint64_t bytes, uint32_t own, struct met *met,
                     enum ar_status *status)
{
    *status = AR_OK;
    uint32_t piece = take_own(self, bytes, own);
    if (!piece)
        piece = take_backed(self, bytes);
    if (!piece && self->settings.follow_events)
        piece = take_others(self, bytes, own, OTHERS_ORDERED);
    if (!piece && self->settings.opportunistic)
        piece = take_others(self, bytes, own, OTHERS_DONE);
    if (piece)
        return piece;
    if (self->settings.opportunistic)
        (void)complete_done(self, true);
    met->others_pend = next_pending(self, LIST_STREAMS, own, 1) != NO_LIST;
    piece = take_free(self, bytes, &met->got_bytes, status);
    if (!piece && *status == AR_REFUSED && self->settings.internal) {
        piece = take_others(self, bytes, own, OTHERS_ALL);
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
    enum ar_status status = AR_OK;
    struct sim_pool *self = device->pool;
    if (bytes == 0)
        return sim_misuse(device, "a stream-ordered allocation of no bytes");
    uint32_t own = pool_list_of(self, stream);
    AR_TRY_HOST(own && pool_reserve(self) && ar_map_reserve(&self->blocks) == AR_OK);
    struct met met = {0};
    uint64_t rounded = bytes <= self->row_bytes ? ar_size_round_up(bytes, UNIT_BYTES) : UINT64_MAX;
    uint64_t ns = sim_cost_now(device, SIM_COST_pool_alloc, bytes);
    uint32_t piece = take(self, rounded, own, &met, &status);
    if (!piece)
        return status == AR_REFUSED
                   ? sim_refuse(device, AR_DEVICE_CALL_pool_alloc, SIM_COST_pool_alloc, bytes)
                   : status;
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
    piece_at(self, piece)->requested_bytes = bytes;
    *ar_map_add(&self->blocks, *address) = piece;
    self->used_bytes += bytes;
    return AR_OK;
}

/* ---- the other calls ------------------------------------------------------------------------ */

/* Rule 2. */
static void put_pending(struct sim_pool *self, uint32_t piece, uint32_t list)
{
    struct sim_clock *clock = &self->device->clock;
    struct ar_span *neighbour = piece_at(self, piece_at(self, piece)->next);
    if (!neighbour->used && neighbour->owner == list) {
        uint32_t next = piece_at(self, piece)->next;
        pool_range_remove(self, next);
        pool_join(self, piece, next);
    }
    uint32_t previous = piece_at(self, piece)->previous;
    neighbour = piece_at(self, previous);
    if (!neighbour->used && neighbour->owner == list) {
        pool_range_remove(self, previous);
        pool_join(self, previous, piece);
        piece = previous;
    }
    struct pool_list *to = &self->lists[list];
    if (to->waits)
        wait_counts(self, to);
    pool_list_put(self, piece, list);
    /* An event covers only what comes before it, and so does what the host knows. */
    uint64_t sequence = sim_clock_here(clock, to->stream).sequence;
    if (to->has_event || sim_clock_known(clock, to->stream, sequence))
        sequence = sim_clock_touch(clock, to->stream);
    to->has_event = false;
    self->pieces[piece].sequence = sequence;
    self->pieces[piece].freed = point_here(clock, to->stream);
    pool_queue_add(self, piece, list);
}

enum ar_status sim_pool_free(struct ar_backing *backing, uint64_t address, uint32_t stream)
{
    struct sim_device *device = sim_of_backing(backing);
    struct sim_pool *self = device->pool;
    uint64_t piece;
    if (!self || !ar_map_get(&self->blocks, address, &piece))
        return sim_misuse(device,
                          "a stream-ordered free of %" PRIu64 ", where no block of the pool "
                          "starts: it was freed before, or never allocated",
                          address);
    uint32_t list = pool_list_of(self, stream);
    AR_TRY_HOST(list && pool_reserve(self));
    uint64_t bytes = piece_at(self, (uint32_t)piece)->requested_bytes;
    self->used_bytes -= bytes;
    sim_charge(device, AR_DEVICE_CALL_pool_free, SIM_COST_pool_free, SIM_COST_pool_free, bytes,
               bytes);
    (void)ar_map_remove(&self->blocks, address);
    put_pending(self, (uint32_t)piece, list);
    return AR_OK;
}

enum ar_status sim_pool_trim(struct ar_backing *backing, uint64_t keep_bytes)
{
    struct sim_device *device = sim_of_backing(backing);
    struct sim_pool *self = device->pool;
    uint64_t ns = 0;
    if (self) {
        uint64_t before_pages = self->held_pages;
        pool_pages_trim(self, keep_bytes);
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
