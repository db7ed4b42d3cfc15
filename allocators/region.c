#include "allocators/region.h"

#include "allocators/base/size.h"

enum ar_status region_obtain(struct region *self, struct ar_policy *policy,
                             struct ar_backing *backing, uint64_t unit, uint64_t least_bytes)
{
    uint64_t bytes = self->given_bytes;
    if (!bytes) {
        uint64_t total_bytes;
        ar_backing_memory(backing, &bytes, &total_bytes);
        if (bytes > REGION_MOST_BYTES)
            bytes = REGION_MOST_BYTES;
        bytes = (uint64_t)((double)bytes * self->fraction);
    }
    if (bytes > self->most_bytes)
        bytes = self->most_bytes;
    bytes = ar_size_round_down(bytes, unit);
    while (bytes && bytes >= least_bytes) {
        enum ar_status status = ar_backing_segment_alloc(backing, bytes, &self->address);
        if (status == AR_OK) {
            self->bytes = bytes;
            policy->totals.reserved_bytes += bytes;
            return AR_OK;
        }
        if (status != AR_REFUSED)
            return status;
        if (self->given_bytes)
            break;
        bytes = ar_size_round_down(bytes - bytes / 32 - 1, unit);
    }
    return AR_NO_MEMORY;
}
