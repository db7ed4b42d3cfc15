#include "allocators/base/array.h"
#include "allocators/policies/slab/slab.h"

/* ---- pages --------------------------------------------------------------------------------------
 *
 * A backing over virtual memory. A segment is a reserved range of pages, each a handle of its own.
 * The pages of a released segment go to a pool, and the next segment takes them before the device
 * is asked: physical memory moves without a driver allocation. The remaining pages of the pool are
 * released then.
 *
 * Pending work may still use the pages of a freed block, so an unmap waits for all streams
 * first. */

struct page_run { /* a segment and its pages, last first */
    uint64_t address;
    uint32_t first, count;
};

struct page {
    ar_backing_handle handle;
    uint32_t next; /* in its segment, or in the pool */
};

struct slab_pages {
    struct ar_backing base;
    struct ar_backing *below;
    struct ar_host *host;
    struct page_run *runs;
    uint32_t run_count, run_room;
    struct page *pages; /* record 0 is not used */
    uint32_t page_count, page_room, spare;
    uint32_t pooled, pooled_count;
    const uint32_t *last_stream; /* of the policy */
    uint64_t moved_bytes;
};

/* The place of the first run at or above `address`. */
static uint32_t place_of(const struct slab_pages *self, uint64_t address)
{
    return (uint32_t)ar_array_from(self->runs, self->run_count, sizeof *self->runs,
                                   offsetof(struct page_run, address), address);
}

/* Makes room for one more run and `count` more pages. */
static bool reserve(struct slab_pages *self, uint32_t count)
{
    if (self->run_count == self->run_room &&
        !ar_host_extend(self->host, &self->runs, &self->run_room,
                        self->run_room + self->run_room / 4 + 8, sizeof *self->runs))
        return false;
    if (self->page_room - self->page_count <= count && /* one more for record 0 */
        !ar_host_extend(self->host, &self->pages, &self->page_room,
                        self->page_count + self->page_count / 4 + count + 8, sizeof *self->pages))
        return false;
    self->page_count += self->page_count == 0;
    return true;
}

static void push(struct slab_pages *self, uint32_t *list, uint32_t page)
{
    self->pages[page].next = *list;
    *list = page;
}

static uint32_t pop(struct slab_pages *self, uint32_t *list)
{
    uint32_t page = *list;
    *list = self->pages[page].next;
    return page;
}

/* A page from the pool, or a new one from the device. */
static enum ar_status take_page(struct slab_pages *self, uint32_t *out)
{
    if (self->pooled) {
        *out = pop(self, &self->pooled);
        self->pooled_count--;
        self->moved_bytes += self->below->page_bytes;
        return AR_OK;
    }
    ar_backing_handle handle;
    AR_TRY(ar_backing_create(self->below, self->below->page_bytes, &handle));
    *out = self->spare ? pop(self, &self->spare) : self->page_count++;
    self->pages[*out].handle = handle;
    return AR_OK;
}

static void to_pool(struct slab_pages *self, uint32_t list)
{
    while (list) {
        uint32_t page = pop(self, &list);
        push(self, &self->pooled, page);
        self->pooled_count++;
    }
}

/* Maps `count` pages from `address` on and writes their list, last first. If it fails, the mapped
 * pages are unmapped again. */
static enum ar_status map_run(struct slab_pages *self, uint64_t address, uint64_t count,
                              uint32_t *list)
{
    uint64_t page_bytes = self->below->page_bytes;
    enum ar_status status = AR_OK;
    uint64_t mapped = 0;
    *list = 0;
    while (status == AR_OK && mapped < count) {
        uint32_t page;
        status = take_page(self, &page);
        if (status != AR_OK)
            break;
        push(self, list, page);
        status =
            ar_backing_map(self->below, address + mapped * page_bytes, self->pages[page].handle);
        mapped += status == AR_OK;
    }
    AR_THEN(status, ar_backing_access(self->below, address, count * page_bytes));
    if (status == AR_OK)
        return status;
    if (mapped)
        (void)ar_backing_unmap(self->below, address, mapped * page_bytes);
    to_pool(self, *list);
    return status;
}

static enum ar_status make_segment(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct slab_pages *self = (struct slab_pages *)base;
    uint64_t page_bytes = self->below->page_bytes;
    uint64_t count = (bytes + page_bytes - 1) / page_bytes;
    uint64_t free_bytes;
    uint64_t total_bytes;
    ar_backing_memory(self->below, &free_bytes, &total_bytes);
    if (count > free_bytes / page_bytes + self->pooled_count || count > UINT32_MAX / 2)
        return AR_REFUSED;
    AR_TRY_HOST(reserve(self, (uint32_t)count));
    AR_TRY(ar_backing_reserve(self->below, count * page_bytes, address));
    uint32_t list;
    enum ar_status status = map_run(self, *address, count, &list);
    if (status != AR_OK) {
        (void)ar_backing_release(self->below, *address);
        slab_pages_drain(self);
        return status;
    }
    uint32_t place = place_of(self, *address);
    AR_ARRAY_INSERT(self->runs, self->run_count, place,
                    (struct page_run){*address, list, (uint32_t)count});
    return AR_OK;
}

static enum ar_status end_segment(struct ar_backing *base, uint64_t address)
{
    struct slab_pages *self = (struct slab_pages *)base;
    uint32_t place = place_of(self, address);
    struct page_run run = self->runs[place];
    ar_backing_wait_streams(self->below, *self->last_stream + 1);
    enum ar_status status =
        ar_backing_unmap(self->below, address, run.count * self->below->page_bytes);
    enum ar_status released = ar_backing_release(self->below, address);
    AR_ARRAY_REMOVE(self->runs, self->run_count, place);
    to_pool(self, run.first);
    return status != AR_OK ? status : released;
}

static struct ar_backing_ticket pass_fence(struct ar_backing *base, uint32_t stream)
{
    return ar_backing_fence(((struct slab_pages *)base)->below, stream);
}

static bool pass_done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    return ar_backing_done(((struct slab_pages *)base)->below, ticket);
}

static void pass_wait(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    ar_backing_wait(((struct slab_pages *)base)->below, ticket);
}

static void pass_memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    ar_backing_memory(((struct slab_pages *)base)->below, free_bytes, total_bytes);
}

static const char *pass_problem(struct ar_backing *base)
{
    return ar_backing_problem(((struct slab_pages *)base)->below);
}

enum ar_status slab_pages_open(const struct ar_policy_context *context, const uint32_t *last_stream,
                               struct slab_pages **out)
{
    static const struct ar_backing_ops ops = {
        .segment_alloc = make_segment,
        .segment_free = end_segment,
        .fence = pass_fence,
        .done = pass_done,
        .wait = pass_wait,
        .memory = pass_memory,
        .problem = pass_problem,
    };
    struct ar_backing *below = context->backing;
    if (!below->page_bytes)
        return AR_UNSUPPORTED;
    struct slab_pages *self = ar_host_alloc(context->host, sizeof *self);
    AR_TRY_HOST(self);
    self->base = (struct ar_backing){.ops = &ops, .granule_bytes = below->page_bytes};
    self->below = below;
    self->last_stream = last_stream;
    self->host = context->host;
    *out = self;
    return AR_OK;
}

void slab_pages_drain(struct slab_pages *self)
{
    while (self->pooled) {
        uint32_t page = pop(self, &self->pooled);
        self->pooled_count--;
        (void)ar_backing_destroy(self->below, self->pages[page].handle);
        push(self, &self->spare, page);
    }
}

void slab_pages_close(struct slab_pages *self)
{
    if (!self)
        return;
    slab_pages_drain(self);
    ar_host_free(self->host, self->runs, self->run_room * sizeof *self->runs);
    ar_host_free(self->host, self->pages, self->page_room * sizeof *self->pages);
    ar_host_free(self->host, self, sizeof *self);
}

uint64_t slab_pages_moved(const struct slab_pages *self)
{
    return self->moved_bytes;
}

struct ar_backing *slab_pages_backing(struct slab_pages *self)
{
    return &self->base;
}

/* ---- supply ---------------------------------------------------------------------------------- */

/* A new segment has at least this part of the used bytes of its kind, so that there are few
 * segments. A larger request gets a segment of its size. */
#define GROWTH_PART       8u
#define MOST_GROWTH_BYTES (32 * AR_MIB)

/* An empty segment is cut only if a new one would have at least this part of it, so that a small
 * block does not keep a large segment from being released. */
#define LARGEST_CUT 32u

static void note_used(struct slab_policy *self, enum slab_list kind, uint64_t bytes)
{
    self->kind_bytes[kind] += bytes;
    uint64_t used = self->kind_bytes[0] + self->kind_bytes[1];
    if (used > self->most_used_bytes)
        self->most_used_bytes = used;
}

/* Frees a used piece of a kind. If its segment is empty then, it serves both kinds. */
void slab_restore(struct slab_policy *self, uint32_t piece)
{
    const struct ar_span *at = self->heap.spans.at;
    uint32_t kind = at[piece].owner;
    uint32_t previous = at[piece].previous;
    uint32_t next = at[piece].next;
    self->kind_bytes[kind] -= at[piece].bytes;
    if ((previous && (at[previous].used || at[previous].previous)) ||
        (next && (at[next].used || at[next].next))) {
        heap_give(&self->heap, piece, kind);
        return;
    }
    if (next) {
        heap_remove(&self->heap, next);
        heap_join(&self->heap, piece, next);
    }
    if (previous) {
        heap_remove(&self->heap, previous);
        heap_join(&self->heap, previous, piece);
        piece = previous;
    }
    heap_put(&self->heap, piece, SLAB_EMPTY);
}

static uint64_t growth(const struct slab_policy *self, enum slab_list kind, uint64_t bytes)
{
    uint64_t part = self->kind_bytes[kind] / GROWTH_PART;
    part = part < MOST_GROWTH_BYTES ? part : MOST_GROWTH_BYTES;
    return ar_size_round_up(bytes > part ? bytes : part, SLAB_PAGE_BYTES);
}

/* Whether the best fitting empty segment is not much larger than a new one would be. */
static bool may_cut(struct slab_policy *self, enum slab_list kind, uint64_t bytes)
{
    uint32_t piece = heap_next(&self->heap, SLAB_EMPTY, bytes, 0);
    return piece && self->heap.spans.at[piece].bytes / LARGEST_CUT <= growth(self, kind, bytes);
}

/* A piece of `list`, cut to at most `bytes`. 0: none has `least_bytes`. */
static uint32_t take_from(struct slab_policy *self, enum slab_list list, enum slab_list kind,
                          uint64_t least_bytes, uint64_t bytes)
{
    if (list == SLAB_EMPTY && !may_cut(self, kind, bytes))
        return 0;
    uint32_t piece = heap_take(&self->heap, list, bytes);
    if (!piece && least_bytes < bytes) {
        uint64_t most = heap_largest(&self->heap, list);
        bytes = most - most % least_bytes;
        piece = bytes ? heap_take(&self->heap, list, bytes) : 0;
    }
    if (piece && self->heap.spans.at[piece].bytes > bytes)
        heap_split(&self->heap, piece, bytes, list == SLAB_EMPTY ? kind : list);
    return piece;
}

/* Releases at least so many bytes of empty segments, the largest first. */
enum ar_status slab_release(struct slab_policy *self, uint64_t bytes)
{
    for (uint64_t released = 0; released < bytes;) {
        uint64_t largest = heap_largest(&self->heap, SLAB_EMPTY);
        if (!largest)
            break;
        uint64_t wanted = bytes - released < largest ? bytes - released : largest;
        uint32_t piece = heap_next(&self->heap, SLAB_EMPTY, wanted, 0);
        released += self->heap.spans.at[piece].bytes;
        AR_TRY(heap_release(&self->heap, piece));
    }
    return AR_OK;
}

/* A segment of `bytes` within the limit. */
static enum ar_status grow(struct slab_policy *self, uint64_t bytes, uint32_t *piece)
{
    uint64_t reserved = self->base.totals.reserved_bytes;
    if (bytes > self->limit_bytes || reserved > self->limit_bytes - bytes)
        return AR_REFUSED;
    return heap_grow(&self->heap, bytes, piece);
}

/* The reserved bytes that are allowed when `bytes` more are used: the greatest use plus the
 * slack. */
static uint64_t allowed_bytes(const struct slab_policy *self, uint64_t bytes)
{
    uint64_t used = self->kind_bytes[SLAB_SMALL] + self->kind_bytes[SLAB_LARGE] + bytes;
    uint64_t most = used > self->most_used_bytes ? used : self->most_used_bytes;
    return (uint64_t)((double)most * (1 + self->slack));
}

/* Releases what `bytes` more need, then everything, and asks the device again each time. */
static enum ar_status ask_again(struct slab_policy *self, uint64_t bytes, uint32_t *piece)
{
    enum ar_status status = AR_REFUSED;
    for (int all = 0; all <= 1 && status == AR_REFUSED; all++) {
        if (!self->base.totals.releasable_bytes)
            break;
        self->retries++;
        self->flushes += (uint64_t)all;
        status = slab_release(self, all ? UINT64_MAX : bytes);
        if (self->pages && all)
            slab_pages_drain(self->pages);
        AR_THEN(status, grow(self, bytes, piece));
    }
    return status;
}

/* Rule 5. */
static enum ar_status obtain(struct slab_policy *self, enum slab_list kind, uint64_t bytes,
                             uint32_t *piece)
{
    uint64_t wanted = growth(self, kind, bytes);
    uint64_t least = ar_size_round_up(bytes, SLAB_PAGE_BYTES);
    uint64_t reserved = self->base.totals.reserved_bytes;
    uint64_t allowed = allowed_bytes(self, least);
    enum ar_status status = AR_OK;
    if (!self->pages && reserved + wanted > allowed)
        status = slab_release(self, reserved + wanted - allowed);
    AR_THEN(status, grow(self, wanted, piece));
    if (status == AR_REFUSED && least < wanted)
        status = grow(self, least, piece);
    if (status == AR_REFUSED)
        status = ask_again(self, least, piece);
    /* For a device with smaller units, or a limit that is not a multiple of a page. */
    if (status == AR_REFUSED && bytes < least && !self->pages)
        status = grow(self, bytes, piece);
    return status;
}

/* With virtual memory, pages of empty segments that are too small alone are mapped together. The
 * remaining pages become an empty segment again. */
static enum ar_status obtain_pages(struct slab_policy *self, enum slab_list kind, uint64_t bytes,
                                   uint32_t *piece)
{
    uint64_t wanted = growth(self, kind, bytes);
    enum ar_status status = AR_OK;
    if (self->base.totals.reserved_bytes + wanted > allowed_bytes(self, wanted))
        status = slab_release(self, wanted);
    AR_THEN(status, obtain(self, kind, bytes, piece));
    uint64_t left = self->pages->pooled_count * self->pages->below->page_bytes;
    uint32_t rest;
    if (left && ar_spans_reserve(&self->heap.spans, self->heap.host, 4) &&
        heap_grow(&self->heap, left, &rest) == AR_OK)
        heap_put(&self->heap, rest, SLAB_EMPTY);
    slab_pages_drain(self->pages);
    return status;
}

/* A free piece for a kind, without a call to the backing; 0: none. A piece of an empty segment
 * belongs to the kind. Empty slabs are returned before an empty segment is cut for small blocks. */
static uint32_t find(struct slab_policy *self, enum slab_list kind, uint64_t least_bytes,
                     uint64_t bytes)
{
    uint32_t piece = take_from(self, kind, kind, least_bytes, bytes);
    if (!piece && kind == SLAB_LARGE)
        piece = take_from(self, SLAB_EMPTY, kind, least_bytes, bytes);
    if (!piece && (self->emptied[0] | self->emptied[1])) {
        slab_return_empty(self);
        piece = take_from(self, kind, kind, least_bytes, bytes);
    }
    return piece ? piece : take_from(self, SLAB_EMPTY, kind, least_bytes, bytes);
}

enum ar_status slab_supply(struct slab_policy *self, enum slab_list kind, uint64_t least_bytes,
                           uint64_t bytes, uint32_t *piece)
{
    if (self->heap.spans.spare_count < 4 &&
        !ar_spans_reserve(&self->heap.spans, self->heap.host, 4))
        return AR_HOST_MEMORY;
    *piece = find(self, kind, least_bytes, bytes);
    if (!*piece) {
        enum ar_status status =
            self->pages ? obtain_pages(self, kind, bytes, piece) : obtain(self, kind, bytes, piece);
        if (status == AR_OK && self->heap.spans.at[*piece].bytes > bytes)
            heap_split(&self->heap, *piece, bytes, kind);
        if (status == AR_REFUSED) { /* borrow from the other kind */
            kind = kind == SLAB_SMALL ? SLAB_LARGE : SLAB_SMALL;
            self->borrows = true;
            *piece = take_from(self, kind, kind, least_bytes, bytes);
            status = *piece ? AR_OK : AR_NO_MEMORY;
            self->failures += status != AR_OK;
        }
        if (status != AR_OK)
            return status;
    }
    self->heap.spans.at[*piece].owner = kind;
    note_used(self, kind, self->heap.spans.at[*piece].bytes);
    return AR_OK;
}

/* A large block is a piece of its own. The short path repeats the first step of slab_supply. */
enum ar_status slab_take_large(struct slab_policy *self, uint64_t requested_bytes,
                               struct ar_policy_block *out)
{
    uint64_t bytes = ar_size_round_up(requested_bytes, SLAB_UNIT_BYTES);
    uint32_t piece =
        self->heap.spans.spare_count ? heap_take_exactly(&self->heap, SLAB_LARGE, bytes) : 0;
    if (piece) {
        note_used(self, SLAB_LARGE, bytes);
    } else {
        AR_TRY(slab_supply(self, SLAB_LARGE, bytes, bytes, &piece));
    }
    struct ar_span *span = &self->heap.spans.at[piece];
    span->requested_bytes = requested_bytes;
    ar_policy_grant(&self->base, out, span->address, bytes, piece);
    return AR_OK;
}
