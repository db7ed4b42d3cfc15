#include "allocators/policies/gmlake/gmlake.h"

static uint32_t order_place(const struct gmlake *self, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = self->view_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->slots[self->slots[middle].by_address].view->address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void enter_release_order(struct gmlake *self, uint32_t index)
{
    struct gmlake_view *view = self->slots[index].view;
    struct gmlake_stream *stream = &self->streams[view->stream];
    view->previous = stream->last;
    view->next = 0;
    if (stream->last)
        self->slots[stream->last].view->next = index;
    else
        stream->first = index;
    stream->last = index;
}

static void leave_release_order(struct gmlake *self, uint32_t index)
{
    const struct gmlake_view *view = self->slots[index].view;
    struct gmlake_stream *stream = &self->streams[view->stream];
    if (view->previous)
        self->slots[view->previous].view->next = view->next;
    else
        stream->first = view->next;
    if (view->next)
        self->slots[view->next].view->previous = view->previous;
    else
        stream->last = view->previous;
}

/* Each view has its node from the start, so no host memory is needed here. */
static void become(struct gmlake *self, uint32_t index, enum gmlake_state state)
{
    struct gmlake_view *view = self->slots[index].view;
    uint32_t *tree = &self->streams[view->stream].free_views;
    if (view->state == GMLAKE_FREE && state != GMLAKE_FREE)
        ar_range_tree_remove(&self->nodes, tree, AR_RANGE_BY_SIZE, view->node);
    if (view->state != GMLAKE_FREE && state == GMLAKE_FREE)
        ar_range_tree_insert(&self->nodes, tree, AR_RANGE_BY_SIZE, view->node);
    view->state = (uint8_t)state;
}

void gmlake_view_page_used(struct gmlake *self, const struct gmlake_page *page)
{
    for (uint32_t ref = page->refs; ref; ref = self->refs[ref].next) {
        uint32_t index = self->refs[ref].view;
        self->slots[index].view->free_pages--;
        if (self->slots[index].view->state == GMLAKE_FREE)
            become(self, index, GMLAKE_FRAGMENTED);
    }
}

void gmlake_view_page_freed(struct gmlake *self, const struct gmlake_page *page)
{
    for (uint32_t ref = page->refs; ref; ref = self->refs[ref].next) {
        uint32_t index = self->refs[ref].view;
        struct gmlake_view *view = self->slots[index].view;
        if (++view->free_pages == view->count && view->state == GMLAKE_FRAGMENTED)
            become(self, index, GMLAKE_FREE);
    }
}

/* ---- made and destroyed ---------------------------------------------------------------------- */

static bool reserve_slot(struct gmlake *self)
{
    if (self->spare_slot || self->slot_count < self->slot_room)
        return true;
    if (!ar_host_extend(self->heap.host, &self->slots, &self->slot_room,
                        self->slot_room ? self->slot_room * 2 : 16, sizeof *self->slots))
        return false;
    self->slot_count += self->slot_count == 0; /* slot 0 is not used */
    return true;
}

static bool reserve_refs(struct gmlake *self, uint32_t count)
{
    self->ref_count += self->ref_count == 0; /* record 0 is not used */
    if (self->spare_refs +
            (self->ref_room > self->ref_count ? self->ref_room - self->ref_count : 0) >=
        count)
        return true;
    return ar_host_extend(self->heap.host, &self->refs, &self->ref_room,
                          self->ref_count + self->ref_count / 4 + count + 16, sizeof *self->refs);
}

static void add_ref(struct gmlake *self, struct gmlake_page *page, uint32_t view)
{
    uint32_t ref = self->spare_ref;
    if (ref) {
        self->spare_ref = self->refs[ref].next;
        self->spare_refs--;
    } else {
        ref = self->ref_count++;
    }
    self->refs[ref] = (struct gmlake_ref){.view = view, .next = page->refs};
    page->refs = ref;
}

static void drop_ref(struct gmlake *self, struct gmlake_page *page, uint32_t view)
{
    uint32_t *link = &page->refs;
    while (self->refs[*link].view != view)
        link = &self->refs[*link].next;
    uint32_t ref = *link;
    *link = self->refs[ref].next;
    self->refs[ref].next = self->spare_ref;
    self->spare_ref = ref;
    self->spare_refs++;
}

static void free_record(struct gmlake *self, struct gmlake_view *view)
{
    ar_host_free(self->heap.host, view->pages, view->room * sizeof *view->pages);
    ar_host_free(self->heap.host, view->pieces, view->piece_room * sizeof *view->pieces);
    ar_host_free(self->heap.host, view, sizeof *view);
}

/* A record for so many pages and pieces. NULL: no host memory. */
static struct gmlake_view *new_record(struct gmlake *self, uint32_t pages, uint32_t pieces)
{
    if (!reserve_slot(self) || !reserve_refs(self, pages) ||
        !ar_range_pool_reserve(&self->nodes, 1))
        return NULL;
    struct gmlake_view *view = ar_host_alloc(self->heap.host, sizeof *view);
    if (!view)
        return NULL;
    view->pages = ar_host_alloc(self->heap.host, pages * sizeof *view->pages);
    view->room = view->pages ? pages : 0;
    view->pieces = ar_host_alloc(self->heap.host, pieces * sizeof *view->pieces);
    view->piece_room = view->pieces ? pieces : 0;
    if (view->pages && view->pieces)
        return view;
    free_record(self, view);
    return NULL;
}

static void note_fault(struct gmlake *self, enum ar_status status)
{
    if (status != AR_OK && self->fault == AR_OK)
        self->fault = status;
}

/* The view must not be active, and the work that used it must be done. */
static void destroy_view(struct gmlake *self, uint32_t index)
{
    struct gmlake_view *view = self->slots[index].view;
    if (view->state == GMLAKE_FREE)
        become(self, index, GMLAKE_FRAGMENTED);
    if (view->state != GMLAKE_ACTIVE)
        leave_release_order(self, index);
    for (uint32_t i = 0; i < view->count; i++)
        drop_ref(self, view->pages[i], index);
    note_fault(
        self, ar_backing_unmap(self->memory.below, view->address, view->count * GMLAKE_PAGE_BYTES));
    note_fault(self, ar_backing_release(self->memory.below, view->address));
    for (uint32_t k = order_place(self, view->address); k + 1 < self->view_count; k++)
        self->slots[k].by_address = self->slots[k + 1].by_address;
    self->view_count--;
    self->views_freed++;
    self->view_bytes -= view->room * GMLAKE_PAGE_BYTES;
    ar_range_pool_give(&self->nodes, view->node);
    free_record(self, view);
    self->slots[index].view = NULL;
    self->slots[index].next_spare = self->spare_slot;
    self->spare_slot = index;
}

/* Destroys views of one state in the order of frees, up to the first whose last use is not done, or
 * until enough bytes are released. Returns their address space. */
static uint64_t collect_state(struct gmlake *self, uint32_t stream, enum gmlake_state state,
                              uint64_t enough_bytes, uint64_t gone_bytes)
{
    for (uint32_t v = self->streams[stream].first; v && gone_bytes < enough_bytes;) {
        const struct gmlake_view *view = self->slots[v].view;
        uint32_t next = view->next;
        if (view->state == state) {
            if (!ar_backing_done(self->memory.below, view->last_use))
                break;
            gone_bytes += view->room * GMLAKE_PAGE_BYTES;
            destroy_view(self, v);
        }
        v = next;
    }
    return gone_bytes;
}

/* Rule 6. The first round takes fragmented views only; the first two stop early. */
void gmlake_collect(struct gmlake *self, unsigned round, uint64_t wanted_bytes)
{
    uint64_t enough = wanted_bytes && round <= 1 ? wanted_bytes << 2 * (round + 1) : UINT64_MAX;
    uint64_t gone_bytes = 0;
    for (uint32_t s = 0; self->view_count && s < self->stream_room; s++)
        gone_bytes = collect_state(self, s, GMLAKE_FRAGMENTED, enough, gone_bytes);
    for (uint32_t s = 0; round > 0 && s < self->stream_room; s++)
        (void)collect_state(self, s, GMLAKE_FREE, UINT64_MAX, 0);
}

/* A page is released to the device: no view may map it. An active view has it after the pages of
 * its block; it loses these pages and is destroyed when it is freed. All work must be done. */
void gmlake_forget_page(struct gmlake *self, struct gmlake_page *page)
{
    while (page->refs) {
        uint32_t index = self->refs[page->refs].view;
        struct gmlake_view *view = self->slots[index].view;
        if (view->state != GMLAKE_ACTIVE) {
            destroy_view(self, index);
            continue;
        }
        for (uint32_t i = view->used; i < view->count; i++) {
            view->free_pages -= !view->pages[i]->used;
            drop_ref(self, view->pages[i], index);
        }
        note_fault(self, ar_backing_unmap(self->memory.below,
                                          view->address + view->used * GMLAKE_PAGE_BYTES,
                                          (view->count - view->used) * GMLAKE_PAGE_BYTES));
        view->count = view->used;
        view->doomed = true;
    }
}

/* ---- stitched -------------------------------------------------------------------------------- */

/* The number of free blocks that a stitch takes, the largest first; 0: they do not suffice. Writes
 * the bytes that it takes of the last one. */
static uint32_t choose(const struct gmlake *self, uint32_t list, uint64_t bytes,
                       uint64_t *keep_bytes)
{
    const struct ar_span *at = self->heap.spans.at;
    const struct ar_span_index *index = &self->heap.lists[list]->index;
    uint64_t taken = 0;
    uint32_t count = 0;
    uint64_t size = UINT64_MAX;
    uint64_t address = UINT64_MAX;
    while (taken < bytes) {
        uint32_t piece = ar_span_index_before(index, at, size, address);
        if (!piece)
            return 0;
        size = at[piece].bytes;
        address = at[piece].address;
        *keep_bytes = size < bytes - taken ? size : bytes - taken;
        taken += size;
        count++;
    }
    return count > 1 ? count : 0;
}

/* Enters the pieces and pages of `choose` in the record. */
static void note_pages(const struct gmlake *self, uint32_t list, uint64_t keep_bytes,
                       struct gmlake_view *view)
{
    const struct ar_span *at = self->heap.spans.at;
    const struct ar_span_index *index = &self->heap.lists[list]->index;
    uint64_t size = UINT64_MAX;
    uint64_t address = UINT64_MAX;
    for (uint32_t n = 0; n < view->piece_room; n++) {
        uint32_t piece = ar_span_index_before(index, at, size, address);
        size = at[piece].bytes;
        address = at[piece].address;
        uint64_t bytes = n + 1 == view->piece_room ? keep_bytes : size;
        for (uint64_t i = 0; i < bytes / GMLAKE_PAGE_BYTES; i++)
            view->pages[view->count++] = &self->pieces[piece].pages[i];
        view->pieces[view->piece_count++] = piece;
    }
}

static enum ar_status map_view(struct gmlake *self, struct gmlake_view *view)
{
    struct ar_backing *below = self->memory.below;
    uint64_t bytes = view->count * GMLAKE_PAGE_BYTES;
    enum ar_status status = ar_backing_reserve(below, bytes, &view->address);
    if (status != AR_OK)
        return status;
    uint32_t mapped = 0;
    while (status == AR_OK && mapped < view->count) {
        status = ar_backing_map(below, view->address + mapped * GMLAKE_PAGE_BYTES,
                                view->pages[mapped]->handle);
        mapped += status == AR_OK;
    }
    AR_THEN(status, ar_backing_access(below, view->address, bytes));
    if (status == AR_OK)
        return status;
    if (mapped)
        (void)ar_backing_unmap(below, view->address, mapped * GMLAKE_PAGE_BYTES);
    (void)ar_backing_release(below, view->address);
    return status;
}

/* The blocks of a mapped view become its parts, and the view becomes active. */
static uint32_t activate(struct gmlake *self, struct gmlake_view *view, uint64_t keep_bytes)
{
    for (uint32_t n = 0; n < view->piece_count; n++) {
        uint32_t piece = view->pieces[n];
        heap_remove(&self->heap, piece);
        gmlake_list_changed(self, self->heap.spans.at[piece].owner);
        if (n + 1 == view->piece_count && keep_bytes < self->heap.spans.at[piece].bytes)
            gmlake_split(self, piece, keep_bytes);
        self->heap.spans.at[piece].mark = GMLAKE_IN_VIEW;
        self->heap.spans.at[piece].requested_bytes = 0;
    }
    uint32_t index = self->spare_slot;
    if (index)
        self->spare_slot = self->slots[index].next_spare;
    else
        index = self->slot_count++;
    self->slots[index].view = view;
    for (uint32_t i = 0; i < view->count; i++) {
        gmlake_page_used(self, view->pages[i]);
        add_ref(self, view->pages[i], index);
    }
    view->state = GMLAKE_ACTIVE;
    view->used = view->count;
    view->node = ar_range_pool_take(&self->nodes);
    self->nodes.nodes[view->node].address = view->address;
    self->nodes.nodes[view->node].bytes = view->count * GMLAKE_PAGE_BYTES;
    self->nodes.nodes[view->node].extra = index;
    uint32_t place = order_place(self, view->address);
    for (uint32_t k = self->view_count; k > place; k--)
        self->slots[k].by_address = self->slots[k - 1].by_address;
    self->slots[place].by_address = index;
    self->view_count++;
    self->view_bytes += view->room * GMLAKE_PAGE_BYTES;
    self->stitches++;
    return index;
}

/* Rule 5. OK with view 0: no stitch is possible. */
enum ar_status gmlake_stitch(struct gmlake *self, uint32_t stream, uint64_t bytes, uint32_t *out)
{
    uint32_t list = gmlake_list(stream, false);
    uint64_t keep_bytes = 0;
    *out = 0;
    uint32_t pieces = choose(self, list, bytes, &keep_bytes);
    if (!pieces)
        return AR_OK;
    struct gmlake_view *view = gmlake_reserve_pieces(self, 2)
                                   ? new_record(self, (uint32_t)(bytes / GMLAKE_PAGE_BYTES), pieces)
                                   : NULL;
    AR_TRY_HOST(view);
    view->stream = stream;
    note_pages(self, list, keep_bytes, view);
    enum ar_status status = AR_REFUSED;
    for (unsigned round = 0; round < 3 && status == AR_REFUSED; round++) {
        status = map_view(self, view);
        if (status == AR_REFUSED)
            gmlake_collect(self, round, bytes);
    }
    if (status != AR_OK) {
        free_record(self, view);
        return status == AR_REFUSED ? AR_OK : status;
    }
    *out = activate(self, view, keep_bytes);
    if (self->view_bytes > self->values.auto_gc_bytes)
        gmlake_collect(self, 2, 0);
    return self->fault;
}

/* ---- used again ------------------------------------------------------------------------------ */

/* The number of records for the cuts of the blocks under the first `used` pages: two for each run
 * of neighbouring pages. */
static uint32_t cuts(const struct gmlake_view *view, uint32_t used)
{
    uint32_t stretches = 1;
    for (uint32_t i = 1; i < used; i++)
        stretches += view->pages[i] != view->pages[i - 1] + 1;
    return 2 * stretches;
}

static bool reserve_held(struct gmlake *self, struct gmlake_view *view, uint32_t count)
{
    return view->piece_room >= count ||
           ar_host_extend(self->heap.host, &view->pieces, &view->piece_room, count,
                          sizeof *view->pieces);
}

/* Cuts a free block, some pages of which the view uses, into used and free pieces. */
static void cut_block(struct gmlake *self, uint32_t piece, struct gmlake_view *view)
{
    struct ar_span *at = self->heap.spans.at;
    heap_remove(&self->heap, piece);
    for (;;) {
        const struct gmlake_page *pages = self->pieces[piece].pages;
        uint64_t count = at[piece].bytes / GMLAKE_PAGE_BYTES;
        uint64_t run = 1;
        while (run < count && pages[run].used == pages[0].used)
            run++;
        uint32_t rest = 0;
        if (run < count) {
            gmlake_split(self, piece, run * GMLAKE_PAGE_BYTES);
            rest = at[piece].next;
            heap_remove(&self->heap, rest);
        }
        if (pages[0].used) {
            at[piece].mark = GMLAKE_IN_VIEW;
            at[piece].requested_bytes = 0;
            view->pieces[view->piece_count++] = piece;
        } else {
            heap_put(&self->heap, piece, at[piece].owner);
        }
        if (!rest)
            break;
        piece = rest;
    }
    gmlake_list_changed(self, at[piece].owner);
}

/* The best fitting free view, for its first pages. OK with view 0: there is none. */
enum ar_status gmlake_reuse(struct gmlake *self, uint32_t stream, uint64_t bytes, uint32_t *out)
{
    uint32_t node = ar_range_tree_best(&self->nodes, self->streams[stream].free_views, bytes, 0);
    *out = 0;
    if (!node || (double)self->nodes.nodes[node].bytes > (double)bytes * self->values.reuse_limit)
        return AR_OK;
    uint32_t index = (uint32_t)self->nodes.nodes[node].extra;
    struct gmlake_view *view = self->slots[index].view;
    uint32_t used = (uint32_t)(bytes / GMLAKE_PAGE_BYTES);
    uint32_t most = cuts(view, used);
    AR_TRY_HOST(gmlake_reserve_pieces(self, most) && reserve_held(self, view, most));
    become(self, index, GMLAKE_ACTIVE);
    leave_release_order(self, index);
    view->used = used;
    for (uint32_t i = 0; i < used; i++)
        gmlake_page_used(self, view->pages[i]);
    for (uint32_t i = 0; i < used; i++) {
        const struct gmlake_page *page = view->pages[i];
        while (!page->piece)
            page--;
        if (!self->heap.spans.at[page->piece].used)
            cut_block(self, page->piece, view);
    }
    *out = index;
    return AR_OK;
}

/* The free of the block of an active view is completed. */
void gmlake_view_freed(struct gmlake *self, uint32_t index)
{
    struct gmlake_view *view = self->slots[index].view;
    for (uint32_t i = 0; i < view->used; i++)
        gmlake_page_freed(self, view->pages[i]);
    for (uint32_t n = 0; n < view->piece_count; n++)
        gmlake_give(self, view->pieces[n]);
    view->piece_count = 0;
    view->used = 0;
    view->pending = false;
    if (view->doomed) { /* rare, so it waits for the work of the view */
        ar_backing_wait(self->memory.below, view->last_use);
        destroy_view(self, index);
        return;
    }
    enter_release_order(self, index);
    become(self, index, view->free_pages == view->count ? GMLAKE_FREE : GMLAKE_FRAGMENTED);
}

/* Destroys all views. All work must be done. */
void gmlake_views_close(struct gmlake *self)
{
    while (self->view_count)
        destroy_view(self, self->slots[self->view_count - 1].by_address);
    ar_host_free(self->heap.host, self->slots, self->slot_room * sizeof *self->slots);
    ar_host_free(self->heap.host, self->refs, self->ref_room * sizeof *self->refs);
}
