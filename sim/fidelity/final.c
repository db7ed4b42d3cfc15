/* How: the notes of the recording's end (FORMAT.md, "Notes") and the ranges of the policy's walk, both
 * by address, side by side.
 *
 * 1. Address space without memory is not compared: a snapshot tells of mapped pages only.
 * 2. Blocks must be the same in address, size, state and, where both tell it, the size asked for.
 * 3. The segment that a block lies in must have the stream and pool of the policy's, and begin where
 *    it does, unless it is a run of pages of a range.
 * 4. A trace that has let-gos and no completion behind any is one whose let-gos are final (FORMAT.md):
 *    its end cannot be compared where blocks are pending there. */
#include "sim/fidelity/final.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_verb(const char *text, const char *verb)
{
    size_t length = strlen(verb);
    return strncmp(text, verb, length) == 0 && text[length] == ',';
}

static enum ar_status misread(const char *text, struct ar_error *error)
{
    return ar_error_set(
        error, AR_INVALID,
        "the line \"!,%.80s\" is neither !,final_segment,ADDRESS,BYTES,STREAM[,POOL] "
        "nor !,final_block,ADDRESS,BYTES,used|pending|free[,REQUESTED]",
        text);
}

static enum ar_status take_segment(struct recorded_final *final, const char *text,
                                   struct ar_error *error)
{
    struct recorded_area area = {0};
    uint64_t stream, pool = 0;
    const char *at = text + strcspn(text, ",");
    bool read = recording_number(&at, &area.address) && recording_number(&at, &area.bytes) &&
                recording_number(&at, &stream) && (!*at || recording_number(&at, &pool));
    if (!read || *at || stream > UINT32_MAX || pool > UINT32_MAX)
        return misread(text, error);
    area.stream = (uint32_t)stream;
    area.pool = (uint32_t)pool;
    struct recorded_area *areas =
        recording_grow(final->areas, &final->area_room, final->area_count, sizeof *areas, error);
    if (!areas)
        return AR_HOST_MEMORY;
    final->areas = areas;
    areas[final->area_count++] = area;
    return AR_OK;
}

static enum ar_status take_block(struct recorded_final *final, const char *text, uint64_t event,
                                 struct ar_error *error)
{
    static const struct {
        const char *name;
        enum ar_policy_range_state state;
    } states[] = {{"used", AR_POLICY_RANGE_USED},
                  {"pending", AR_POLICY_RANGE_PENDING},
                  {"free", AR_POLICY_RANGE_FREE}};
    struct recorded_end_block block = {.event = event};
    const char *at = text + strcspn(text, ",");
    if (!recording_number(&at, &block.address) || !recording_number(&at, &block.bytes) ||
        *at != ',')
        return misread(text, error);
    size_t which = 0, count = sizeof states / sizeof *states, length = strcspn(++at, ",");
    while (which < count &&
           (strlen(states[which].name) != length || strncmp(states[which].name, at, length) != 0))
        which++;
    at += length;
    if (which == count || (*at && !recording_number(&at, &block.requested_bytes)) || *at)
        return misread(text, error);
    block.state = states[which].state;
    final->has_pending |= block.state == AR_POLICY_RANGE_PENDING;
    struct recorded_end_block *blocks = recording_grow(final->blocks, &final->block_room,
                                                       final->block_count, sizeof *blocks, error);
    if (!blocks)
        return AR_HOST_MEMORY;
    final->blocks = blocks;
    blocks[final->block_count++] = block;
    return AR_OK;
}

enum ar_status recorded_final_note(struct recorded_final *final, const char *text, uint64_t event,
                                   struct ar_error *error)
{
    if (is_verb(text, "final_segment"))
        return take_segment(final, text, error);
    if (is_verb(text, "final_block"))
        return take_block(final, text, event, error);
    return AR_OK;
}

static int areas_by_address(const void *left, const void *right)
{
    const struct recorded_area *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static int blocks_by_address(const void *left, const void *right)
{
    const struct recorded_end_block *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

void recorded_final_finish(struct recorded_final *final)
{
    if (final->area_count)
        qsort(final->areas, final->area_count, sizeof *final->areas, areas_by_address);
    if (final->block_count)
        qsort(final->blocks, final->block_count, sizeof *final->blocks, blocks_by_address);
}

void recorded_final_close(struct recorded_final *final)
{
    free(final->areas);
    free(final->blocks);
}

/* ---- comparing ------------------------------------------------------------------------- */

struct ranges {
    struct ar_policy_range *items;
    size_t count, room;
    struct ar_error *error;
    bool failed;
};

static bool collect(void *argument, const struct ar_policy_range *range)
{
    struct ranges *self = argument;
    if (range->state == AR_POLICY_RANGE_UNMAPPED || !range->bytes)
        return true;
    struct ar_policy_range *items =
        recording_grow(self->items, &self->room, self->count, sizeof *items, self->error);
    self->failed = !items;
    if (!items)
        return false;
    self->items = items;
    items[self->count++] = *range;
    return true;
}

static int ranges_by_address(const void *left, const void *right)
{
    const struct ar_policy_range *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static const char *state_name(enum ar_policy_range_state state)
{
    return state == AR_POLICY_RANGE_USED      ? "in use"
           : state == AR_POLICY_RANGE_PENDING ? "pending"
           : state == AR_POLICY_RANGE_FREE    ? "free"
                                              : "its own";
}

/* "has 512 bytes at 4096 in use, asked for as 400, at the end" */
static void describe(uint64_t address, uint64_t bytes, enum ar_policy_range_state state,
                     uint64_t requested_bytes, char *text, size_t room)
{
    char asked[48] = "";
    if (requested_bytes)
        snprintf(asked, sizeof asked, ", asked for as %" PRIu64 ",", requested_bytes);
    snprintf(text, room, "has %" PRIu64 " bytes at %" PRIu64 " %s%s at the end", bytes, address,
             state_name(state), asked);
}

static void differ(struct recorded_device *device, const struct ar_policy_range *range,
                   const struct recorded_end_block *block)
{
    char did[160] = "has nothing more at the end", said[160] = "has nothing more at the end";
    uint64_t event = device->event;
    if (range)
        describe(range->address, range->bytes, range->state, range->requested_bytes, did,
                 sizeof did);
    if (block) {
        describe(block->address, block->bytes, block->state, block->requested_bytes, said,
                 sizeof said);
        event = block->event;
    }
    recorded_device_differs_at(device, event, did, said);
}

static bool same_block(const struct ar_policy_range *range, const struct recorded_end_block *block)
{
    return range->address == block->address && range->bytes == block->bytes &&
           range->state == block->state &&
           (!range->requested_bytes || !block->requested_bytes ||
            range->requested_bytes == block->requested_bytes);
}

/* The segment of a block against that of the policy's range. */
static bool same_segment(struct recorded_device *device, const struct ar_policy_range *range,
                         const struct recorded_area *area, bool pages)
{
    char did[160], said[160];
    if (area->stream == range->stream && area->pool == range->pool &&
        (pages || area->address == range->segment_address))
        return true;
    snprintf(did, sizeof did,
             "has the block at %" PRIu64 " in a segment at %" PRIu64 " of stream %" PRIu32
             " and pool %" PRIu32 " at the end",
             range->address, range->segment_address, range->stream, range->pool);
    snprintf(said, sizeof said,
             "has it in one at %" PRIu64 " of stream %" PRIu32 " and pool %" PRIu32, area->address,
             area->stream, area->pool);
    recorded_device_differs(device, did, said);
    return false;
}

static void compare(struct recorded_device *device, const struct ranges *ranges)
{
    const struct recorded_final *final = &device->recording->final;
    struct fidelity_result *result = device->result;
    bool pages = device->recording->has_pages;
    size_t area = 0;
    for (size_t i = 0; i < device->recording->start.area_count; i++)
        pages |= device->recording->start.areas[i].pages;
    for (size_t i = 0; i < ranges->count || i < final->block_count; i++) {
        const struct ar_policy_range *range = i < ranges->count ? &ranges->items[i] : NULL;
        const struct recorded_end_block *block = i < final->block_count ? &final->blocks[i] : NULL;
        if (!range || !block || !same_block(range, block)) {
            differ(device, range, block);
            return;
        }
        while (area < final->area_count &&
               block->address - final->areas[area].address >= final->areas[area].bytes)
            area++;
        if (area < final->area_count && !same_segment(device, range, &final->areas[area], pages))
            return;
        result->end_blocks_met++;
    }
}

enum ar_status recorded_final_compare(struct recorded_device *device,
                                      const struct ar_policy *policy, struct ar_error *error)
{
    const struct recorded_final *final = &device->recording->final;
    struct ranges ranges = {.error = error};
    device->result->end_blocks = final->block_count;
    if (!final->block_count || recorded_diverged(device))
        return AR_OK;
    if (final->has_pending && !device->recording->has_split_frees) {
        device->result->end_blocks = 0;
        return AR_OK;
    }
    ar_policy_walk(policy, collect, &ranges);
    if (!ranges.failed) {
        if (ranges.count)
            qsort(ranges.items, ranges.count, sizeof *ranges.items, ranges_by_address);
        compare(device, &ranges);
    }
    free(ranges.items);
    return ranges.failed ? AR_HOST_MEMORY : AR_OK;
}
