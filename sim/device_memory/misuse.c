/* Misuse of a device that its memory bookkeeping shows. Both devices refuse it with the same
 * sentence before they do anything. */
#include "sim/device_memory/device_memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 3))) static enum ar_status misuse(const struct device_memory *self,
                                                                   const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->problem, self->problem_bytes, format, arguments);
    va_end(arguments);
    return AR_INVALID;
}

enum ar_status memory_check_bytes(const struct device_memory *self, const char *what,
                                  uint64_t bytes)
{
    if (bytes == 0 || bytes % self->page_bytes)
        return misuse(self, "%s of %" PRIu64 " bytes, which is no multiple of the page of %" PRIu64,
                      what, bytes, self->page_bytes);
    return AR_OK;
}

static enum ar_status free_misuse(const struct device_memory *self, uint64_t address)
{
    const struct memory_segment *segment = memory_segment_find(self, address);
    if (!segment)
        return misuse(self,
                      "a free of %" PRIu64 ", where no segment lies: it was freed before, or never "
                      "allocated",
                      address);
    if (segment->pool)
        return misuse(self,
                      "a driver free of %" PRIu64 ", which the stream-ordered pool allocated; free "
                      "it on a stream",
                      address);
    if (segment->reserved)
        return misuse(self,
                      "a driver free of %" PRIu64 ", which lies in a reserved range; release the "
                      "range instead",
                      address);
    return misuse(self,
                  "a free of %" PRIu64 ", which lies inside segment %" PRIu64
                  " and is not its start, %" PRIu64,
                  address, segment->ordinal, segment->range.start);
}

enum ar_status memory_check_free(const struct device_memory *self, uint64_t address,
                                 struct memory_segment **segment)
{
    *segment = memory_segment_find(self, address);
    if (!*segment || (*segment)->reserved || (*segment)->pool || (*segment)->range.start != address)
        return free_misuse(self, address);
    return AR_OK;
}

enum ar_status memory_check_release(const struct device_memory *self, uint64_t address,
                                    struct memory_segment **range)
{
    *range = memory_segment_find(self, address);
    if (!*range || !(*range)->reserved || (*range)->range.start != address)
        return misuse(self,
                      "a release of %" PRIu64 ", where no reserved range starts: it was released "
                      "before, or never reserved",
                      address);
    if ((*range)->mapped_bytes)
        return misuse(self,
                      "a release of the range at %" PRIu64 " while %" PRIu64
                      " bytes of it are mapped; unmap them first",
                      address, (*range)->mapped_bytes);
    return AR_OK;
}

enum ar_status memory_check_destroy(const struct device_memory *self, ar_backing_handle handle,
                                    struct memory_physical **physical)
{
    *physical = memory_physical_find(self, handle);
    if (!*physical)
        return misuse(self,
                      "a destroy of physical memory %" PRIu64 ", which was destroyed before, or "
                      "never created",
                      handle);
    return AR_OK;
}

enum ar_status memory_check_map(const struct device_memory *self, uint64_t address,
                                ar_backing_handle handle, struct memory_physical **physical,
                                struct memory_segment **range)
{
    *physical = memory_physical_find(self, handle);
    if (!*physical)
        return misuse(self,
                      "a map of physical memory %" PRIu64 ", which was destroyed before, or never "
                      "created",
                      handle);
    if (address % self->page_bytes)
        return misuse(self, "a map at %" PRIu64 ", which is not the start of a page", address);
    *range = memory_segment_find(self, address);
    if (!*range || !(*range)->reserved)
        return misuse(self, "a map at %" PRIu64 ", which lies in no reserved range", address);
    uint64_t bytes = (*physical)->bytes;
    if (bytes > (*range)->range.end - address)
        return misuse(self,
                      "a map of %" PRIu64 " bytes at %" PRIu64
                      " reaches beyond the end of its reserved range, %" PRIu64,
                      bytes, address, (*range)->range.end);
    const struct range *there = ranges_from(&self->mappings, address);
    if (there && there->start < address + bytes)
        return misuse(
            self, "a map of %" PRIu64 " bytes at %" PRIu64 " overlaps what is mapped at %" PRIu64,
            bytes, address, there->start);
    return AR_OK;
}

enum ar_status memory_check_run(const struct device_memory *self, const char *what,
                                uint64_t address, uint64_t bytes)
{
    AR_TRY(memory_check_bytes(self, what, bytes));
    if (bytes > UINT64_MAX - address)
        return misuse(self, "%s at %" PRIu64 " reaches beyond all addresses", what, address);
    for (uint64_t at = address; at < address + bytes;) {
        const struct range *mapping = ranges_from(&self->mappings, at);
        if (!mapping || mapping->start > at)
            return misuse(self, "%s at %" PRIu64 ": nothing is mapped at %" PRIu64, what, address,
                          at);
        if (mapping->start < at || mapping->end > address + bytes)
            return misuse(self,
                          "%s from %" PRIu64 " to %" PRIu64
                          " takes only a part of what is mapped from %" PRIu64 " to %" PRIu64,
                          what, address, address + bytes, mapping->start, mapping->end);
        at = mapping->end;
    }
    return AR_OK;
}
