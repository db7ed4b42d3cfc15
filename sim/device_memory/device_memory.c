#include "sim/device_memory/device_memory.h"

#include <stdlib.h>

#define FIRST_PHYSICAL_ADDRESS (UINT64_C(1) << 61)

void book_open(struct book *self)
{
    *self = (struct book){.next_physical_address = FIRST_PHYSICAL_ADDRESS};
}

void book_close(struct book *self)
{
    sim_hazards_close(&self->hazards);
}

void book_segment_enter(struct book *self, struct book_segment *segment, uint64_t ordinal,
                        uint64_t address, uint64_t end, uint64_t bytes, bool reserved)
{
    segment->range.start = address;
    segment->range.end = end;
    segment->bytes = bytes;
    segment->reserved = reserved;
    segment->ordinal = ordinal;
    ranges_insert(&self->segments, &segment->range);
}

struct book_segment *book_segment_find(const struct book *self, uint64_t address)
{
    return (struct book_segment *)ranges_find(&self->segments, address);
}

void book_segment_remove(struct book *self, struct book_segment *segment)
{
    if (!segment->reserved &&
        !sim_hazards_forget(&self->hazards, segment->range.start, segment->range.end))
        self->lost = true;
    ranges_remove(&self->segments, &segment->range);
    free(segment);
}

void book_physical_enter(struct book *self, struct book_physical *physical, uint64_t bytes)
{
    physical->handle.start = ++self->next_handle;
    physical->handle.end = physical->handle.start + 1;
    physical->bytes = bytes;
    physical->address = self->next_physical_address;
    self->next_physical_address += bytes;
    ranges_insert(&self->physicals, &physical->handle);
}

struct book_physical *book_physical_find(const struct book *self, backing_handle handle)
{
    struct book_physical *physical = (struct book_physical *)ranges_find(&self->physicals, handle);
    return physical && !physical->destroyed ? physical : NULL;
}

bool book_physical_settle(struct book *self, struct book_physical *physical)
{
    if (!physical->destroyed || physical->mappings)
        return false;
    if (!sim_hazards_forget(&self->hazards, physical->address, physical->address + physical->bytes))
        self->lost = true;
    ranges_remove(&self->physicals, &physical->handle);
    free(physical);
    return true;
}

void book_mapping_enter(struct book *self, struct book_mapping *mapping,
                        struct book_physical *physical, struct book_segment *range,
                        uint64_t address)
{
    mapping->range.start = address;
    mapping->range.end = address + physical->bytes;
    mapping->number = ++self->next_mapping;
    mapping->physical = physical;
    ranges_insert(&self->mappings, &mapping->range);
    physical->mappings++;
    range->mapped_bytes += physical->bytes;
}

struct book_mapping *book_mapping_find(const struct book *self, uint64_t address)
{
    return (struct book_mapping *)ranges_find(&self->mappings, address);
}

struct book_physical *book_mapping_remove(struct book *self, struct book_mapping *mapping)
{
    struct book_physical *physical = mapping->physical;
    book_segment_find(self, mapping->range.start)->mapped_bytes -= physical->bytes;
    ranges_remove(&self->mappings, &mapping->range);
    free(mapping);
    physical->mappings--;
    return physical;
}

struct book_piece book_piece_at(const struct book *self, uint64_t address, uint64_t bytes)
{
    struct book_piece piece = {.start = address, .usable = true, .length = bytes};
    const struct book_segment *segment = book_segment_find(self, address);
    uint64_t end = segment ? segment->range.end : UINT64_MAX;
    if (segment && segment->reserved) {
        const struct book_mapping *mapping =
            (struct book_mapping *)ranges_from(&self->mappings, address);
        piece.usable = false;
        if (mapping && mapping->range.start <= address) {
            end = mapping->range.end;
            piece.start = mapping->physical->address + (address - mapping->range.start);
            piece.mapping = mapping->number;
            piece.usable = mapping->usable;
        } else if (mapping && mapping->range.start < end) {
            end = mapping->range.start;
        }
    }
    if (end - address < bytes)
        piece.length = end - address;
    piece.end = piece.start + piece.length;
    return piece;
}

static bool has_memory(const struct book_piece *piece)
{
    return piece->mapping || piece->usable;
}

void book_use(struct book *self, uint64_t address, uint64_t bytes, struct sim_use use)
{
    while (bytes) {
        struct book_piece piece = book_piece_at(self, address, bytes);
        use.mapping = piece.mapping;
        if (has_memory(&piece) && !sim_hazards_use(&self->hazards, piece.start, piece.end, &use))
            self->lost = true;
        address += piece.length;
        bytes -= piece.length;
    }
}

void book_pass_on(struct book *self, const struct book_piece *piece, sim_hazard_visit *visit,
                  void *argument)
{
    if (!has_memory(piece))
        return;
    (void)sim_hazards_visit(&self->hazards, piece->start, piece->end, visit, argument);
    if (!sim_hazards_forget(&self->hazards, piece->start, piece->end))
        self->lost = true;
}
