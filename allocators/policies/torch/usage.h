/* Statistics of what the program holds, which change at every request and every free.
 *
 * 1. For each size kind and for all of them: the active blocks and bytes (handed out and not
 *    complete), and those of them that are pending (let go already). What PyTorch calls
 *    allocated is the difference.
 * 2. What was ever handed out is counted by size kind only; all is their sum, and what was freed
 *    is what is not there any more.
 * 3. Peaks are exact, each for itself. Allocated is never more than active, so where active is
 *    not above the peak of allocated, neither has a new peak: one comparison for both. */
#ifndef ALLOCATORS_POLICIES_TORCH_USAGE_H
#define ALLOCATORS_POLICIES_TORCH_USAGE_H

#include <stdint.h>

enum torch_kind { TORCH_ALL, TORCH_SMALL, TORCH_LARGE, TORCH_KIND_COUNT };

struct torch_usage {
    uint64_t blocks, bytes, requested_bytes; /* active */
    uint64_t pending_blocks, pending_bytes;
    uint64_t ever_blocks, ever_bytes, ever_requested_bytes; /* not for TORCH_ALL */
    struct {
        uint64_t allocated_blocks, allocated_bytes, active_blocks, active_bytes, requested_bytes;
    } peak;
};

/* Raises the peaks of all kinds to what is there now. */
void torch_usage_raise_peaks(struct torch_usage usage[TORCH_KIND_COUNT]);

static inline void torch_usage_grow(struct torch_usage *usage, uint64_t bytes,
                                    uint64_t requested_bytes)
{
    usage->blocks++;
    usage->bytes += bytes;
    usage->requested_bytes += requested_bytes;
}

static inline int torch_usage_is_higher(const struct torch_usage *usage)
{
    return usage->blocks > usage->peak.allocated_blocks ||
           usage->bytes > usage->peak.allocated_bytes ||
           usage->requested_bytes > usage->peak.requested_bytes;
}

/* A block is handed out. */
static inline void torch_usage_add(struct torch_usage usage[TORCH_KIND_COUNT], enum torch_kind kind,
                                   uint64_t bytes, uint64_t requested_bytes)
{
    struct torch_usage *all = &usage[TORCH_ALL];
    struct torch_usage *own = &usage[kind];
    own->ever_blocks++;
    own->ever_bytes += bytes;
    own->ever_requested_bytes += requested_bytes;
    torch_usage_grow(all, bytes, requested_bytes);
    torch_usage_grow(own, bytes, requested_bytes);
    if (__builtin_expect(torch_usage_is_higher(all) || torch_usage_is_higher(own), 0))
        torch_usage_raise_peaks(usage);
}

/* An active block is let go, but not complete. */
static inline void torch_usage_retire(struct torch_usage usage[TORCH_KIND_COUNT],
                                      enum torch_kind kind, uint64_t bytes)
{
    usage[TORCH_ALL].pending_blocks++;
    usage[TORCH_ALL].pending_bytes += bytes;
    usage[kind].pending_blocks++;
    usage[kind].pending_bytes += bytes;
}

/* It is complete now. */
static inline void torch_usage_unretire(struct torch_usage usage[TORCH_KIND_COUNT],
                                        enum torch_kind kind, uint64_t bytes)
{
    usage[TORCH_ALL].pending_blocks--;
    usage[TORCH_ALL].pending_bytes -= bytes;
    usage[kind].pending_blocks--;
    usage[kind].pending_bytes -= bytes;
}

static inline void torch_usage_shrink(struct torch_usage *usage, uint64_t bytes,
                                      uint64_t requested_bytes)
{
    usage->blocks--;
    usage->bytes -= bytes;
    usage->requested_bytes -= requested_bytes;
}

/* A block that is not pending any more is active no longer. */
static inline void torch_usage_remove(struct torch_usage usage[TORCH_KIND_COUNT],
                                      enum torch_kind kind, uint64_t bytes,
                                      uint64_t requested_bytes)
{
    torch_usage_shrink(&usage[TORCH_ALL], bytes, requested_bytes);
    torch_usage_shrink(&usage[kind], bytes, requested_bytes);
}

#endif
