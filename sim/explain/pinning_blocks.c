#include "sim/explain/explain.h"

#include <stdlib.h>

#include "allocators/base/array.h"

/* Open addressing with linear probing. A deleted entry keeps its slot until the table is rebuilt,
 * when three quarters of the slots are used. */

enum births_state { BIRTHS_EMPTY, BIRTHS_LIVE, BIRTHS_GONE };

struct births_entry {
    uint64_t address;
    struct birth birth;
    enum births_state state;
};

static size_t home(const struct births *self, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (self->room - 1);
}

static struct births_entry *find(const struct births *self, uint64_t address)
{
    if (!self->room)
        return NULL;
    for (size_t at = home(self, address);; at = (at + 1) & (self->room - 1)) {
        struct births_entry *entry = &self->entries[at];
        if (entry->state == BIRTHS_EMPTY)
            return NULL;
        if (entry->state == BIRTHS_LIVE && entry->address == address)
            return entry;
    }
}

static void put(struct births *self, uint64_t address, const struct birth *birth)
{
    size_t at = home(self, address);
    while (self->entries[at].state != BIRTHS_EMPTY)
        at = (at + 1) & (self->room - 1);
    self->entries[at] = (struct births_entry){address, *birth, BIRTHS_LIVE};
    self->used++;
    self->live++;
}

static bool renew(struct births *self)
{
    struct births larger = {.room = 1024};
    while (larger.room < 4 * (self->live + 1))
        larger.room *= 2;
    larger.entries = calloc(larger.room, sizeof *larger.entries);
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < self->room; i++)
        if (self->entries[i].state == BIRTHS_LIVE)
            put(&larger, self->entries[i].address, &self->entries[i].birth);
    free(self->entries);
    *self = larger;
    return true;
}

bool births_add(struct births *self, uint64_t address, const struct birth *birth)
{
    struct births_entry *entry = find(self, address);
    if (entry) {
        entry->birth = *birth;
        return true;
    }
    if (4 * (self->used + 1) > 3 * self->room && !renew(self))
        return false;
    put(self, address, birth);
    return true;
}

void births_remove(struct births *self, uint64_t address)
{
    struct births_entry *entry = find(self, address);
    if (!entry)
        return;
    entry->state = BIRTHS_GONE;
    self->live--;
}

const struct birth *births_find(const struct births *self, uint64_t address)
{
    const struct births_entry *entry = find(self, address);
    return entry ? &entry->birth : NULL;
}

void births_close(struct births *self)
{
    free(self->entries);
    *self = (struct births){0};
}

/* ---- pinning blocks ---- */

struct ranges {
    struct ar_policy_range *at;
    size_t count, room;
    bool failed;
};

static bool keep(void *argument, const struct ar_policy_range *range)
{
    struct ranges *self = argument;
    if (!AR_ARRAY_ADD(self->at, self->count, self->room, *range)) {
        self->failed = true;
        return false;
    }
    return true;
}

static bool is_free(const struct ar_policy_range *range)
{
    return range->state == AR_POLICY_RANGE_FREE || range->state == AR_POLICY_RANGE_PENDING;
}

/* Whether b follows a without a gap in one segment, and both are backed by memory. */
static bool joins(const struct ar_policy_range *a, const struct ar_policy_range *b)
{
    return a->segment_address == b->segment_address && a->address + a->bytes == b->address &&
           a->state != AR_POLICY_RANGE_UNMAPPED && b->state != AR_POLICY_RANGE_UNMAPPED;
}

/* The ranges [first, end) with the fewest live bytes among all stretches that are large enough. */
struct stretch {
    size_t first, end;
    uint64_t bytes, live_bytes;
};

/* A sliding window: each range enters once and leaves once. */
static struct stretch find_stretch(const struct ranges *ranges, uint64_t wanted_bytes)
{
    struct stretch best = {0}, now = {0};
    for (size_t i = 0; i < ranges->count; i++) {
        const struct ar_policy_range *range = &ranges->at[i];
        if (i == now.first || !joins(&ranges->at[i - 1], range))
            now = (struct stretch){.first = i};
        if (range->state == AR_POLICY_RANGE_UNMAPPED)
            continue;
        now.end = i + 1;
        now.bytes += range->bytes;
        now.live_bytes += is_free(range) ? 0 : range->bytes;
        while (now.bytes - ranges->at[now.first].bytes >= wanted_bytes) {
            now.bytes -= ranges->at[now.first].bytes;
            now.live_bytes -= is_free(&ranges->at[now.first]) ? 0 : ranges->at[now.first].bytes;
            now.first++;
        }
        if (now.bytes >= wanted_bytes && (!best.end || now.live_bytes < best.live_bytes))
            best = now;
    }
    return best;
}

static uint64_t free_beside(const struct ranges *ranges, size_t i)
{
    const struct ar_policy_range *range = &ranges->at[i];
    uint64_t bytes = 0;
    if (i > 0 && joins(range - 1, range) && is_free(range - 1))
        bytes += range[-1].bytes;
    if (i + 1 < ranges->count && joins(range, range + 1) && is_free(range + 1))
        bytes += range[1].bytes;
    return bytes;
}

static bool comes_before(const struct explain_pinning_block *a,
                         const struct explain_pinning_block *b)
{
    return a->in_stretch != b->in_stretch ? a->in_stretch : a->free_bytes > b->free_bytes;
}

/* Inserts a block in order: blocks of the stretch first, then by adjacent free bytes. If the list
 * is full, the last block is dropped. */
static void insert(struct explain_result *out, const struct explain_pinning_block *pin)
{
    struct explain_pinning_block *pins = out->pinning_blocks;
    size_t at = out->pinning_block_count;
    while (at > 0 && comes_before(pin, &pins[at - 1]))
        at--;
    if (at == EXPLAIN_PINNING_BLOCKS_MOST)
        return;
    if (out->pinning_block_count < EXPLAIN_PINNING_BLOCKS_MOST)
        out->pinning_block_count++;
    for (size_t i = out->pinning_block_count - 1; i > at; i--)
        pins[i] = pins[i - 1];
    pins[at] = *pin;
}

/* The pieces that the request could use. */
struct usable {
    uint64_t largest_bytes, units_bytes; /* units: in multiples of the request */
};

static void add_usable(struct usable *self, uint64_t bytes, const struct explain_result *out)
{
    if (!out->ladder.again && bytes >= out->bytes)
        return;
    self->largest_bytes = bytes > self->largest_bytes ? bytes : self->largest_bytes;
    self->units_bytes += out->bytes ? bytes - bytes % out->bytes : 0;
}

static void note_free_block(const struct ar_policy_range *range, struct usable *usable,
                            struct explain_result *out)
{
    if (range->state != AR_POLICY_RANGE_FREE)
        return;
    bool same = range->stream == out->stream && range->pool == out->pool;
    uint64_t *largest = same ? &out->largest_same_bytes : &out->largest_other_bytes;
    out->free_blocks++;
    out->free_block_bytes += range->bytes;
    if (range->bytes > *largest)
        *largest = range->bytes;
    if (range->bytes > out->largest_free_block_bytes)
        out->largest_free_block_bytes = range->bytes;
    if (same)
        add_usable(usable, range->bytes, out);
}

static struct explain_indices find_indices(const struct explain_result *out, struct usable *usable)
{
    uint64_t device_bytes = out->ladder.obtainable_bytes;
    double pieces = (double)out->free_blocks + (device_bytes > 0);
    double free_bytes = (double)out->free_block_bytes + (double)device_bytes;
    struct explain_indices indices = {.external = 0, .unusable = 1, .fragmentation = 0};
    if (pieces <= 0 || !out->bytes)
        return indices;
    add_usable(usable, device_bytes, out);
    indices.external = 1 - (double)usable->largest_bytes / free_bytes;
    indices.unusable = 1 - (double)usable->units_bytes / free_bytes;
    indices.fragmentation = 1 - (1 + free_bytes / (double)out->bytes) / pieces;
    if (usable->largest_bytes >= out->bytes)
        indices.fragmentation = -1;
    else if (indices.fragmentation < 0)
        indices.fragmentation = 0;
    return indices;
}

enum ar_status pinning_blocks_find(const struct ar_policy *policy, const struct births *births,
                                   uint64_t asked_bytes, struct explain_result *out,
                                   struct ar_error *error)
{
    struct ranges ranges = {0};
    struct usable usable = {0};
    ar_policy_walk(policy, keep, &ranges);
    if (ranges.failed) {
        free(ranges.at);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the policy's ranges");
    }
    bool request = out->kind == EXPLAIN_REQUEST;
    struct stretch stretch = {0};
    if (request)
        stretch = find_stretch(&ranges, out->bytes);
    out->stretch_bytes = stretch.bytes;
    out->stretch_live_bytes = stretch.live_bytes;
    for (size_t i = 0; i < ranges.count; i++) {
        const struct ar_policy_range *range = &ranges.at[i];
        bool inside = i >= stretch.first && i < stretch.end;
        note_free_block(range, &usable, out);
        if (range->state != AR_POLICY_RANGE_USED || !request)
            continue;
        out->stretch_blocks += inside;
        uint64_t beside = free_beside(&ranges, i);
        const struct birth *birth = births_find(births, range->address);
        if (!birth || (!beside && !inside))
            continue;
        const struct explain_pinning_block pin = {.address = range->address,
                                                  .bytes = range->requested_bytes,
                                                  .event = birth->event,
                                                  .age_events = out->event - birth->event,
                                                  .age_bytes = asked_bytes - birth->asked_bytes,
                                                  .free_bytes = beside,
                                                  .stream = range->stream,
                                                  .in_stretch = inside};
        insert(out, &pin);
    }
    out->indices = find_indices(out, &usable);
    free(ranges.at);
    return AR_OK;
}
