/* Glued blocks: rule 3 of mosaic.c. */
#include "allocators/policies/vmm/vmm.h"

#define VISITED 256 /* free blocks of a range that are examined for ends */

/* The part of a free block in a handle that it shares with other blocks, up to the end of the
 * handle (then a block can begin there) or from its start (then a block can end there). */
struct part {
    uint32_t piece, range, page; /* page: the first one of the handle */
    uint64_t from, bytes;        /* from: an address */
};

static uint64_t page_address(const struct vmm *self, uint32_t range, uint32_t page)
{
    return self->ranges[range]->address + page * self->page_bytes;
}

static uint64_t handle_bytes(const struct vmm *self, uint32_t range, uint32_t page)
{
    return self->ranges[range]->pages[page].count * self->page_bytes;
}

/* Whether a block uses the handle at another address. */
static bool is_lent(const struct vmm *self, ar_backing_handle handle)
{
    for (uint32_t i = 0; i < self->alias_count; i++)
        if (self->aliases[i].handle == handle && self->aliases[i].lent)
            return true;
    return false;
}

/* The part at the start of the free block (i = 0), or at its end (i = 1). */
static void consider(const struct vmm *self, uint32_t piece, int i, struct part *best)
{
    const struct ar_span *span = &self->spans.at[piece];
    const struct vmm_range *range = self->ranges[span->owner];
    uint64_t inside = i == 0 ? span->address : ar_span_end(span) - 1;
    uint32_t page = vmm_page_at(self, range, inside);
    page -= range->pages[page].index;
    uint64_t start = page_address(self, span->owner, page);
    uint64_t end = start + handle_bytes(self, span->owner, page);
    uint64_t from = i == 0 ? span->address : start;
    uint64_t until = i == 0 ? end : ar_span_end(span);
    bool is_part = i == 0 ? start < span->address && end <= ar_span_end(span)
                          : end > ar_span_end(span) && start >= span->address;
    if (is_part && until - from > best->bytes && !is_lent(self, range->pages[page].handle))
        *best = (struct part){piece, span->owner, page, from, until - from};
}

/* The largest parts of the free blocks of a range of a page or more: larger blocks first, until
 * none has more. */
static void search(const struct vmm *self, const struct vmm_range *range, struct part part[2])
{
    uint64_t below = UINT64_MAX;
    uint64_t address = UINT64_MAX;
    uint32_t piece = range->tail;
    for (int i = 0; i <= VISITED; i++) {
        if (piece) {
            consider(self, piece, 0, &part[0]);
            consider(self, piece, 1, &part[1]);
        }
        piece = ar_span_index_before(&range->free_blocks, self->spans.at, below, address);
        uint64_t bytes = piece ? self->spans.at[piece].bytes : 0;
        if (bytes < self->page_bytes || (bytes <= part[0].bytes && bytes <= part[1].bytes))
            return;
        below = bytes;
        address = self->spans.at[piece].address;
    }
}

/* The largest parts in which a block of a stream can begin and end, of two handles. Returns their
 * bytes. */
static uint64_t find_parts(const struct vmm *self, uint32_t stream, struct part part[2])
{
    part[0] = part[1] = (struct part){0};
    for (unsigned kind = 0; kind < VMM_KINDS; kind++)
        for (uint32_t number = self->streams[stream].first[kind]; number;) {
            search(self, self->ranges[number - 1], part);
            number = self->ranges[number - 1]->more;
        }
    if (part[0].bytes && part[1].bytes && part[0].range == part[1].range &&
        part[0].page == part[1].page)
        part[part[0].bytes >= part[1].bytes] = (struct part){0};
    return part[0].bytes + part[1].bytes;
}

uint64_t vmm_glue_ends(const struct vmm *self)
{
    struct part part[2];
    bool glues = self->tuning && self->tuning->glue && self->last_stream < self->stream_room;
    return glues ? find_parts(self, self->last_stream, part) : 0;
}

/* Lends `bytes` of a part, those at the end of the handle or at its start. Returns the lent piece.
 * Two records must be spare. */
static uint32_t lend(struct vmm *self, const struct part *part, bool first, uint64_t bytes)
{
    uint32_t piece = part->piece;
    uint64_t from = first ? part->from + part->bytes - bytes : part->from;
    vmm_remove(self, piece);
    if (ar_span_end(&self->spans.at[piece]) > from + bytes)
        vmm_insert(self, vmm_cut(self, piece, from + bytes - self->spans.at[piece].address));
    if (self->spans.at[piece].address < from) {
        uint32_t rest = vmm_cut(self, piece, from - self->spans.at[piece].address);
        vmm_insert(self, piece);
        piece = rest;
    }
    self->spans.at[piece].mark = VMM_LENT;
    return piece;
}

static void unlend(struct vmm *self, uint32_t lent)
{
    if (!lent)
        return;
    self->spans.at[lent].mark = VMM_MAPPED;
    vmm_merge(self, lent);
}

/* Unmaps an alias after the work that used it. Without a block its addresses are a gap then. */
static void unmap_alias(struct vmm *self, uint32_t index)
{
    struct vmm_alias alias = self->aliases[index];
    struct ar_span *span = &self->spans.at[alias.piece];
    struct vmm_range *range = self->ranges[span->owner];
    uint32_t page = vmm_page_at(self, range, alias.address);
    vmm_note(self, ar_backing_unmap(self->backing, alias.address, alias.bytes));
    for (uint64_t i = 0; i < alias.bytes / self->page_bytes; i++)
        range->pages[page + i] = (struct vmm_page){0};
    self->aliases[index] = self->aliases[--self->alias_count];
    if (alias.lent)
        return;
    span->mark = VMM_GAP;
    vmm_merge(self, alias.piece);
}

void vmm_unmap_aliases_of(struct vmm *self, ar_backing_handle handle)
{
    for (uint32_t i = self->alias_count; i-- > 0;)
        if (self->aliases[i].handle == handle && !self->aliases[i].lent)
            unmap_alias(self, i);
}

/* Whether an alias that no block uses has work that may run. */
static bool is_busy(const struct vmm *self, const struct vmm_alias *alias)
{
    const struct ar_span *span = &self->spans.at[alias->piece];
    const struct vmm_range *range = self->ranges[span->owner];
    uint32_t page = vmm_page_at(self, range, span->address);
    return range->pages[page].fence > self->streams[range->stream].done;
}

/* Unmaps the aliases that no block uses, after their work. */
static void unmap_idle_aliases(struct vmm *self)
{
    for (uint32_t i = self->alias_count; i-- > 0;) {
        while (!self->aliases[i].lent && is_busy(self, &self->aliases[i]) && vmm_wait_some(self))
            continue;
        if (!self->aliases[i].lent && !is_busy(self, &self->aliases[i]))
            unmap_alias(self, i);
    }
}

/* At the end all work is done. */
void vmm_unmap_aliases(struct vmm *self)
{
    while (self->alias_count) {
        const struct vmm_alias *last = &self->aliases[self->alias_count - 1];
        uint32_t stream = self->ranges[self->spans.at[last->piece].owner]->stream;
        ar_backing_wait(self->backing, ar_backing_fence(self->backing, stream));
        unmap_alias(self, self->alias_count - 1);
    }
}

/* Maps the handle of a part over the used gap `piece`, which is as long. */
static enum ar_status map_alias(struct vmm *self, const struct part *part, uint32_t lent,
                                uint32_t piece)
{
    struct ar_span *span = &self->spans.at[piece];
    struct vmm_range *range = self->ranges[span->owner];
    const struct vmm_page *home = &self->ranges[part->range]->pages[part->page];
    ar_backing_handle handle = home->handle;
    uint32_t page = vmm_page_at(self, range, span->address);
    AR_TRY(ar_backing_map(self->backing, span->address, handle - 1));
    enum ar_status status = ar_backing_access(self->backing, span->address, span->bytes);
    if (status != AR_OK) {
        vmm_note(self, ar_backing_unmap(self->backing, span->address, span->bytes));
        return status;
    }
    uint16_t count = home->count;
    for (uint16_t i = 0; i < count; i++)
        range->pages[page + i] = (struct vmm_page){.handle = handle, .index = i, .count = count};
    span->mark = VMM_FOREIGN;
    self->aliases[self->alias_count++] = (struct vmm_alias){.handle = handle,
                                                            .address = span->address,
                                                            .bytes = span->bytes,
                                                            .piece = piece,
                                                            .lent = lent};
    return AR_OK;
}

/* What a block is glued from: two parts, of which it uses `used` bytes, and `middle` bytes of pages
 * between them. */
struct plan {
    struct part part[2];
    uint64_t used[2], middle;
    uint32_t lent[2];
};

/* A used gap for the plan, and the number of pages that it must have. 0: none. */
static uint32_t find_gap(struct vmm *self, uint32_t stream, enum vmm_kind kind, uint64_t bytes)
{
    struct ar_span_place place;
    for (int tries = 0;; tries++) {
        for (uint32_t number = self->streams[stream].first[kind]; number;) {
            struct vmm_range *range = self->ranges[number - 1];
            if (ar_span_index_find(&range->gaps, self->spans.at, bytes, 0, &place)) {
                uint32_t gap = *place.link;
                uint64_t end = self->spans.at[gap].address + bytes;
                if (!vmm_room_for_pages(self, range, end))
                    return 0;
                uint32_t tail = gap == range->last ? range->tail : 0;
                if (tail)
                    vmm_remove(self, tail);
                vmm_remove(self, gap);
                if (self->spans.at[gap].bytes > bytes)
                    vmm_insert(self, vmm_cut(self, gap, bytes));
                if (tail) /* no longer the last one */
                    vmm_insert(self, tail);
                return gap;
            }
            number = range->more;
        }
        if (tries ||
            vmm_open_range(self, stream, kind,
                           bytes > 2 * self->device_bytes ? bytes : 2 * self->device_bytes))
            return 0;
    }
}

/* Makes a used gap of exactly that size a block. 0: a call failed, and the gap is free. */
static uint32_t build(struct vmm *self, const struct plan *plan, uint32_t gap)
{
    uint32_t piece[3] = {0}, rest = gap;
    uint64_t bytes[3] = {
        plan->used[0] ? handle_bytes(self, plan->part[0].range, plan->part[0].page) : 0,
        plan->middle,
        plan->used[1] ? handle_bytes(self, plan->part[1].range, plan->part[1].page) : 0};
    for (int i = 0; i < 3; i++)
        if (bytes[i]) {
            piece[i] = rest;
            if (self->spans.at[rest].bytes > bytes[i])
                rest = vmm_cut(self, rest, bytes[i]);
        }
    enum ar_status status = AR_OK;
    for (int i = 0; i < 2 && status == AR_OK; i++)
        if (piece[2 * i])
            status = map_alias(self, &plan->part[i], plan->lent[i], piece[2 * i]);
    if (status == AR_OK && piece[1])
        status = vmm_map_gap(self, piece[1]);
    if (status != AR_OK) {
        if (status != AR_REFUSED)
            vmm_note(self, status);
        for (uint32_t a = self->alias_count; a-- > 0;) {
            struct vmm_alias *alias = &self->aliases[a];
            if (alias->piece != piece[0] && alias->piece != piece[2])
                continue;
            piece[alias->piece == piece[0] ? 0 : 2] = 0;
            alias->lent = 0;
            unmap_alias(self, a);
        }
        for (int i = 0; i < 3; i++)
            if (piece[i])
                vmm_merge(self, piece[i]);
        return 0;
    }
    uint32_t block = piece[1];
    if (piece[0]) {
        uint32_t begin = vmm_cut(self, piece[0], bytes[0] - plan->used[0]);
        if (block)
            vmm_join(self, begin, block);
        block = begin;
    }
    if (piece[2]) {
        uint32_t foreign = vmm_cut(self, piece[2], plan->used[1]);
        self->aliases[self->alias_count - 1].piece = foreign;
        if (block)
            vmm_join(self, block, piece[2]);
        else
            block = piece[2];
    }
    self->spans.at[block].mark = VMM_MAPPED;
    for (uint32_t i = 0; i < 2; i++)
        if (plan->used[i])
            for (uint32_t a = 0; a < self->alias_count; a++)
                if (self->aliases[a].lent == plan->lent[i])
                    self->aliases[a].block = block;
    return block;
}

/* Finds the parts and lends them. */
static bool make_plan(struct vmm *self, uint32_t stream, uint64_t bytes, struct plan *plan)
{
    uint64_t page = self->page_bytes;
    *plan = (struct plan){0};
    uint64_t have = find_parts(self, stream, plan->part);
    plan->middle = bytes > have ? (bytes - have + page - 1) / page * page : 0;
    if (!have || plan->middle > bytes)
        return false;
    uint64_t rest = bytes - plan->middle;
    plan->used[0] = rest < plan->part[0].bytes ? rest : plan->part[0].bytes;
    plan->used[1] = rest - plan->used[0];
    /* If both are in one free block, its start keeps the record. */
    if (plan->used[1])
        plan->lent[1] = lend(self, &plan->part[1], false, plan->used[1]);
    if (plan->used[0])
        plan->lent[0] = lend(self, &plan->part[0], true, plan->used[0]);
    return true;
}

/* A block of the memory that is left at the ends of others. 0: none. */
uint32_t vmm_glue(struct vmm *self, const struct ar_policy_request *request, enum vmm_kind kind,
                  uint64_t bytes)
{
    struct plan plan;
    uint64_t reserve = request->may_fail ? self->outside_growth : 0;
    uint32_t block = 0;
    self->promised += 2; /* to cut the block when it is freed */
    if (self->alias_count + 2 > self->alias_room &&
        !ar_host_extend(self->host, &self->aliases, &self->alias_room, 2 * self->alias_room + 8,
                        sizeof *self->aliases))
        goto end;
    if (!self->tight)
        vmm_watch_streams(self);
    unmap_idle_aliases(self);
    if (!vmm_spares(self, VMM_SPARES) || !make_plan(self, request->stream, bytes, &plan))
        goto end;
    if (vmm_can_obtain(self, plan.middle + reserve) && vmm_spares(self, VMM_SPARES)) {
        uint64_t span = plan.middle;
        for (int i = 0; i < 2; i++)
            if (plan.used[i])
                span += handle_bytes(self, plan.part[i].range, plan.part[i].page);
        uint32_t gap = find_gap(self, request->stream, kind, span);
        block = gap ? build(self, &plan, gap) : 0;
    }
    if (block)
        self->glued++;
    else
        for (int i = 0; i < 2; i++)
            unlend(self, plan.lent[i]);
end:
    if (!block)
        self->promised -= 2;
    return block;
}

/* A glued block is freed: its ends go back to the blocks that lent them. Returns what is left of
 * it between them; 0: nothing. */
uint32_t vmm_unglue(struct vmm *self, uint32_t block)
{
    uint32_t middle = block;
    bool is_glued = false;
    for (uint32_t i = 0; i < self->alias_count; i++) {
        struct vmm_alias *alias = &self->aliases[i];
        if (!alias->lent || alias->block != block)
            continue;
        is_glued = true;
        uint32_t lent = alias->lent;
        uint64_t bytes = self->spans.at[lent].bytes;
        bool first = self->spans.at[alias->piece].address < self->spans.at[block].address;
        alias->lent = 0;
        /* The foreign piece gets this end of the block. */
        if (first && middle) {
            uint32_t rest = self->spans.at[middle].bytes > bytes ? vmm_cut(self, middle, bytes) : 0;
            vmm_join(self, alias->piece, middle);
            middle = rest;
        } else if (middle) {
            uint64_t keep = self->spans.at[middle].bytes - bytes;
            uint32_t last = keep ? vmm_cut(self, middle, keep) : middle;
            middle = keep ? middle : 0;
            self->spans.at[last].mark = VMM_FOREIGN;
            vmm_join(self, last, alias->piece);
            alias->piece = last;
        }
        const struct ar_span *span = &self->spans.at[alias->piece];
        struct vmm_range *range = self->ranges[span->owner];
        uint32_t page = vmm_page_at(self, range, span->address);
        range->pages[page].fence = self->streams[range->stream].fences + 1;
        vmm_pages_freed(self, &self->spans.at[lent]);
        unlend(self, lent);
    }
    if (is_glued)
        self->promised -= 2;
    return middle;
}
