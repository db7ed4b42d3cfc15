/* A heap: driver allocations cut into used and free pieces, with best-fit lists of the free
 * ones. The common half of policies that split and merge contiguous memory; which list a free
 * piece belongs to, when to ask the device and when to give back is the policy's decision.
 *
 * 1. Every segment is a chain of pieces from its first byte to its last; the left one of two
 *    that merge keeps its record, so the first piece of a segment stays the first.
 * 2. A free piece is in exactly one list. Two free neighbours of one list never stay apart;
 *    those of different lists may.
 * 3. The totals of the policy are kept here as far as they follow from that: reserved and
 *    releasable bytes, and the hole watch. Live and granted bytes are the policy's. */
#ifndef ALLOCATORS_HEAP_H
#define ALLOCATORS_HEAP_H

#include "allocators/base/span.h"
#include "allocators/base/span_index.h"
#include "allocators/policy.h"

struct heap_segment {
    uint64_t address, bytes;
    uint32_t first; /* its first piece */
};

struct heap_list {
    struct span_index index;
    uint64_t free_bytes;
};

struct heap {
    struct policy *policy;
    struct backing *backing;
    struct host *host;
    struct spans spans;
    struct heap_segment *segments; /* by address */
    uint32_t segment_count, segment_room;
    struct heap_list **lists; /* NULL: never used */
    uint32_t list_room;
    bool keeps_apart; /* free neighbours of one list may stay apart: see heap_put */
    uint64_t splits, merges, segments_made, segments_freed;
};

void heap_open(struct heap *self, struct policy *policy, const struct policy_context *context);

/* Gives all segments and all host memory back. */
void heap_close(struct heap *self);

/* Makes sure of `count` spare records and that `list` exists. HOST_MEMORY otherwise. */
enum status heap_reserve(struct heap *self, uint32_t count, uint32_t list) STATUS_CHECKED;

/* A new segment as one used piece, owned by no list. REFUSED, HOST_MEMORY, or what else the
 * backing said. */
enum status heap_grow(struct heap *self, uint64_t bytes, uint32_t *piece) STATUS_CHECKED;

/* Gives the segment of a free piece that fills it back. */
enum status heap_release(struct heap *self, uint32_t piece) STATUS_CHECKED;

/* The smallest free piece of `list` that holds `bytes`, lowest address first, taken out and
 * marked used. 0: none. */
uint32_t heap_take(struct heap *self, uint32_t list, uint64_t bytes);

/* Cuts a used piece down to `bytes`; the rest becomes a free piece of `list`. A spare record
 * is there. */
void heap_split(struct heap *self, uint32_t piece, uint64_t bytes, uint32_t list);

/* Frees a used piece into `list`, merged with free neighbours of the same list. Returns the
 * piece that it became. */
uint32_t heap_give(struct heap *self, uint32_t piece, uint32_t list);

/* Takes a particular free piece out of its list and marks it used. */
void heap_remove(struct heap *self, uint32_t piece);

/* For policies that merge by a rule of their own (keeps_apart is set): frees a used piece
 * without merging; joins two used neighbours, of which the left one stays. */
void heap_put(struct heap *self, uint32_t piece, uint32_t list);
void heap_join(struct heap *self, uint32_t left, uint32_t right);

/* The segment that an address of a piece lies in. */
const struct heap_segment *heap_segment_of(const struct heap *self, uint64_t address);

/* The largest free piece of a list, in bytes. */
static inline uint64_t heap_largest(const struct heap *self, uint32_t list)
{
    return list < self->list_room && self->lists[list]
               ? span_index_largest(&self->lists[list]->index, self->spans.at)
               : 0;
}

/* The free piece that follows (bytes, address) in the order of a list; 0: none. From (0, 0)
 * on it gives all of them. */
uint32_t heap_next(struct heap *self, uint32_t list, uint64_t bytes, uint64_t address);

/* For the hooks of the policy: `stream_of_list` false says that lists are no streams. */
void heap_walk(const struct heap *self, bool stream_of_list, policy_visit *visit, void *argument);
enum status heap_validate(const struct heap *self, const char *name, struct error *error);
void heap_stats(const struct heap *self, struct policy_stats *out);

#endif
