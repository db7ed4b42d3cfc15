/* How a BFC pool obtains and releases regions (rules 3 to 5 of bfc.h), and how chunks become free.
 *
 * The size of the next region is `next_bytes`. It is doubled until the request fits, or once after
 * a region that did not need that. It never shrinks, also when regions are released. A refused size
 * is multiplied by 0.9 as in the original, a size_t times a float: in 32 bits, so above 16 MiB the
 * result is a multiple of a power of two. */
#include "allocators/policies/bfc/bfc.h"

#define FIRST_REGION_BYTES (2 * AR_MIB)
#define MOST_REGION_BYTES  (UINT64_C(1) << 63)

void bfc_regions_open(struct bfc *self, struct ar_backing *backing, uint64_t limit_bytes)
{
    struct bfc_regions *regions = &self->regions;
    uint64_t first = limit_bytes;
    if (self->values.growth) {
        first =
            self->values.first_region_bytes ? self->values.first_region_bytes : FIRST_REGION_BYTES;
        if (first > limit_bytes)
            first = limit_bytes;
    }
    regions->backing = backing;
    regions->limit_bytes = limit_bytes;
    regions->next_bytes = ar_size_round_up(first, BFC_ROUNDING_BYTES);
    regions->most_doubled_bytes = MOST_REGION_BYTES;
    regions->coalesce = self->values.coalesce;
}

void bfc_regions_close(struct bfc *self)
{
    struct bfc_regions *regions = &self->regions;
    for (uint32_t i = 0; i < regions->segment_count; i++)
        (void)ar_backing_segment_free(regions->backing, regions->segments[i].address);
    ar_host_free(self->host, regions->segments,
                 regions->segment_capacity * sizeof *regions->segments);
    ar_host_free(self->host, regions->at, regions->capacity * sizeof *regions->at);
}

/* Makes room for one more region, segment and chunk, so that nothing fails after the backing has
 * returned memory. */
static bool reserve_records(struct bfc *self)
{
    struct bfc_regions *regions = &self->regions;
    uint32_t *segment_room = &regions->segment_capacity, *room = &regions->capacity;
    if (regions->segment_count == *segment_room &&
        !ar_host_extend(self->host, &regions->segments, segment_room,
                        *segment_room + *segment_room / 2 + 4, sizeof *regions->segments))
        return false;
    if (regions->count == *room &&
        !ar_host_extend(self->host, &regions->at, room, *room + *room / 2 + 4, sizeof *regions->at))
        return false;
    return ar_spans_reserve(&self->chunks, self->host, 1);
}

/* Asks the backing for `*bytes`, and while it refuses for less, down to `least`. */
static enum ar_status obtain(struct ar_backing *backing, uint64_t least, uint64_t *bytes,
                             uint64_t *address)
{
    for (;;) {
        enum ar_status status = ar_backing_segment_alloc(backing, *bytes, address);
        if (status == AR_OK)
            return AR_OK;
        if (status != AR_REFUSED)
            return status == AR_HOST_MEMORY ? status : AR_CORRUPT;
        uint64_t smaller = ar_size_round_up((uint64_t)((float)*bytes * 0.9f), BFC_ROUNDING_BYTES);
        if (smaller >= *bytes) /* rounding up can undo the step at small sizes */
            smaller = *bytes - BFC_ROUNDING_BYTES;
        if (smaller < least)
            return AR_NO_MEMORY;
        *bytes = smaller;
    }
}

static void note_segment(struct bfc_regions *regions, uint64_t address, uint64_t bytes)
{
    uint32_t i = regions->segment_count++;
    for (; i > 0 && regions->segments[i - 1].address > address; i--)
        regions->segments[i] = regions->segments[i - 1];
    regions->segments[i] = (struct bfc_segment){.address = address, .bytes = bytes};
}

/* The region that ends at `address`, or NULL. */
static struct bfc_region *region_before(struct bfc_regions *regions, uint64_t address)
{
    for (uint32_t i = 0; i < regions->count; i++) {
        struct bfc_region *region = &regions->at[regions->at[i].ranked];
        if (region->address + region->bytes == address)
            return region;
    }
    return NULL;
}

/* A record for a new region, in the order of addresses. */
static struct bfc_region *new_region(struct bfc_regions *regions, uint64_t address)
{
    uint32_t number = 0;
    while (regions->at[number].held)
        number++;
    uint32_t i = regions->count++;
    for (; i > 0 && regions->at[regions->at[i - 1].ranked].address > address; i--)
        regions->at[i].ranked = regions->at[i - 1].ranked;
    regions->at[i].ranked = number;
    struct bfc_region *region = &regions->at[number];
    region->held = true;
    region->initial = regions->count == 1;
    region->address = address;
    region->bytes = 0;
    region->first = 0;
    region->last = 0;
    return region;
}

/* Makes the new range a free chunk, in a new region or at the end of another. */
static void add_range(struct bfc *self, uint64_t address, uint64_t bytes)
{
    struct bfc_regions *regions = &self->regions;
    struct bfc_region *region = regions->coalesce ? region_before(regions, address) : NULL;
    if (!region)
        region = new_region(regions, address);
    uint32_t added = ar_spans_new(&self->chunks, address, bytes);
    struct ar_span *chunk = &self->chunks.at[added];
    chunk->previous = region->last;
    chunk->owner = (uint32_t)(region - regions->at);
    chunk->mark = self->upper ? BFC_GAP : BFC_LOWER;
    if (region->last) {
        self->chunks.at[region->last].next = added;
        struct ar_span *last = &self->chunks.at[region->last];
        if (region->first == region->last && !last->used)
            self->base.totals.releasable_bytes -= last->bytes;
    } else {
        region->first = added;
    }
    region->last = added;
    region->bytes += bytes;
    bfc_free_block_add(self, bfc_merge(self, added));
}

static void double_next(struct bfc_regions *regions)
{
    uint64_t most = regions->most_doubled_bytes;
    regions->next_bytes = regions->next_bytes < most / 2 ? regions->next_bytes * 2 : most;
}

enum ar_status bfc_regions_extend(struct bfc *self, uint64_t bytes)
{
    struct bfc_regions *regions = &self->regions;
    uint64_t available = ar_size_round_down(regions->limit_bytes - self->base.totals.reserved_bytes,
                                            BFC_ROUNDING_BYTES);
    if (bytes > available)
        return AR_NO_MEMORY;
    AR_TRY_HOST(reserve_records(self));
    bool enough = regions->next_bytes >= bytes; /* so it doubles once */
    uint64_t region_bytes = bytes;
    if (!regions->as_requested) {
        while (bytes > regions->next_bytes)
            regions->next_bytes *= 2;
        region_bytes = regions->next_bytes < available ? regions->next_bytes : available;
    }
    if (enough && regions->doubles_first)
        double_next(regions);
    uint64_t least = regions->least_retry_bytes;
    uint64_t address;
    AR_TRY(obtain(regions->backing, bytes > least ? bytes : least, &region_bytes, &address));
    if (enough && !regions->doubles_first)
        double_next(regions);
    self->base.totals.reserved_bytes += region_bytes;
    self->tally.count.segments_made++;
    note_segment(regions, address, region_bytes);
    add_range(self, address, region_bytes);
    return AR_OK;
}

static bool wholly_free(const struct bfc *self, const struct bfc_region *region)
{
    return region->first == region->last && !self->chunks.at[region->first].used;
}

/* Releases the driver allocations of a region. */
static enum ar_status release_region(struct bfc *self, const struct bfc_region *region)
{
    struct bfc_regions *regions = &self->regions;
    enum ar_status result = AR_OK;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < regions->segment_count; i++) {
        struct bfc_segment segment = regions->segments[i];
        if (segment.address < region->address ||
            segment.address - region->address >= region->bytes) {
            regions->segments[kept++] = segment;
            continue;
        }
        if (ar_backing_segment_free(regions->backing, segment.address) != AR_OK)
            result = AR_CORRUPT;
        self->tally.count.segments_freed++;
    }
    regions->segment_count = kept;
    return result;
}

enum ar_status bfc_regions_release_free(struct bfc *self, bool keeps_initial)
{
    struct bfc_regions *regions = &self->regions;
    enum ar_status result = AR_OK;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < regions->count; i++) {
        uint32_t number = regions->at[i].ranked;
        struct bfc_region *region = &regions->at[number];
        if (!wholly_free(self, region) || (keeps_initial && region->initial)) {
            regions->at[kept++].ranked = number;
            continue;
        }
        if (release_region(self, region) != AR_OK)
            result = AR_CORRUPT;
        bfc_free_block_remove(self, region->first);
        ar_spans_drop(&self->chunks, region->first);
        self->base.totals.reserved_bytes -= region->bytes;
        region->held = false;
    }
    regions->count = kept;
    return result;
}

enum ar_status bfc_regions_collect(struct bfc *self, uint64_t bytes, bool *released)
{
    const struct ar_policy_totals *totals = &self->base.totals;
    *released = false;
    if (!self->collects || totals->releasable_bytes == 0 ||
        bytes > self->regions.limit_bytes - totals->reserved_bytes + totals->releasable_bytes)
        return AR_OK;
    self->tally.count.flushes++;
    *released = true;
    return bfc_regions_release_free(self, false);
}

/* ---- chunks, with the gap and the two ends --------------------------------------------------- */

static struct ar_span_index *index_of(struct bfc *self, const struct ar_span *chunk)
{
    return chunk->mark == BFC_UPPER ? self->upper : &self->index;
}

void bfc_free_block_add(struct bfc *self, uint32_t chunk)
{
    const struct ar_span *added = &self->chunks.at[chunk];
    bfc_account_added(self, added);
    if (added->mark == BFC_GAP)
        self->gap = chunk;
    else
        ar_span_index_insert(index_of(self, added), self->chunks.at, chunk);
}

void bfc_free_block_remove(struct bfc *self, uint32_t chunk)
{
    const struct ar_span *removed = &self->chunks.at[chunk];
    bfc_account_removed(self, removed);
    if (removed->mark == BFC_GAP)
        self->gap = 0;
    else
        ar_span_index_remove(index_of(self, removed), self->chunks.at, chunk);
}

/* Joins two chunks that are in no index. Chunks of different ends become part of the gap. */
static void join(struct bfc *self, uint32_t first, uint32_t second)
{
    struct ar_span *into = &self->chunks.at[first];
    const struct ar_span *from = &self->chunks.at[second];
    into->bytes += from->bytes;
    if (into->mark != from->mark)
        into->mark = BFC_GAP;
    bfc_join(self, first, second);
}

uint32_t bfc_merge(struct bfc *self, uint32_t chunk)
{
    const struct ar_span *chunks = self->chunks.at;
    uint32_t next = chunks[chunk].next;
    if (!chunks[next].used) {
        bfc_free_block_remove(self, next);
        join(self, chunk, next);
    }
    uint32_t previous = chunks[chunk].previous;
    if (!chunks[previous].used) {
        bfc_free_block_remove(self, previous);
        join(self, previous, chunk);
        return previous;
    }
    return chunk;
}
