/* vmm: this project's own policy over virtual memory. Not an imitation of anything.
 *
 *   vmm.c     what happens at a request and at a free
 *   pages.c   where a request without a mapped hole goes, and where its pages come from
 *   report.c  statistics, walk, validate
 *
 * How it works
 *
 * 1. Each stream has three ranges of reserved address space, by size of request: up to 64 KiB,
 *    up to a page, larger ones. Blocks that live long and are small do not pin the pages
 *    between large ones. Sizes round up to 512 bytes.
 * 2. A range is a chain of pieces: used blocks, holes (free, mapped) and gaps (free, without
 *    memory, whole pages). At its end lies one gap that is never exhausted in practice.
 * 3. A request takes the smallest hole that fits, the lowest address among equals. No call to
 *    the driver is made then.
 * 4. Otherwise it goes to a run of holes and gaps that follow each other: of a few gaps that
 *    are just large enough, and of the end of the range, the run that needs the fewest pages.
 *    It begins in the hole before the gap, so that a page that is held by a neighbour anyway
 *    is used to its end.
 * 5. Memory comes in handles, for a driver call costs the same for 2 and for 32 MiB. A handle
 *    that one block fills has up to 8 pages, or 1/64 of a giant block: it comes free with the
 *    block. One that neighbours
 *    share has up to 1/512 of what the device still has, so that those become single pages
 *    before memory becomes short.
 * 6. When the device has no more, or the limit is met, handles that lie wholly under holes are
 *    unmapped, the largest hole first, and their memory is mapped where it is needed. The
 *    streams of those holes are waited for before, since the work that used them may still
 *    run. No more is moved than the request needs, so a program that repeats itself comes to
 *    rest with its holes where it needs them.
 *
 * Bound
 *
 * A request fails only when every handle has a byte of a live or pending block in it. When a
 * block is let go and its place is not yet used by others, all of it can move but the two
 * pages at its ends. So with blocks that are not placed in what is left of larger ones
 *
 *     held <= live rounded + 2 pages x (runs of neighbouring blocks)
 *
 * and a block in the place of a larger one may hold up to 8 pages more at either end until it
 * dies. With blocks smaller than a page, scattered one to a page, a page for each is all there
 * is to promise: memory with one live byte in it cannot be moved. */
#ifndef ALLOCATORS_POLICIES_VMM_VMM_H
#define ALLOCATORS_POLICIES_VMM_VMM_H

#include "allocators/base/size.h"
#include "allocators/base/span.h"
#include "allocators/base/span_index.h"
#include "allocators/deferred.h"
#include "allocators/policy.h"

#define VMM_ROUND_BYTES  UINT64_C(512)
#define VMM_SMALL_BYTES  (64 * KIB)
#define VMM_KINDS        3u
#define VMM_MOST_PAGES   8u /* of one handle */
#define VMM_SHARED_SHARE 512u
#define VMM_GIANT_SHARE  64u

enum vmm_mark {
    VMM_GAP,     /* free, no memory behind it */
    VMM_MAPPED,  /* a hole, or a used block */
    VMM_PENDING, /* used: let go by the program, not yet complete */
};

struct vmm_page {
    backing_handle handle; /* + 1; 0: not mapped */
    uint32_t index;        /* of this page in its handle */
    uint32_t count;        /* pages of the handle */
};

struct vmm_range {
    struct span_index holes, gaps;
    uint64_t address, bytes;
    uint64_t hole_bytes;
    uint32_t stream, kind;
    uint32_t first, last;   /* pieces; the last is the gap at the end while there is one */
    struct vmm_page *pages; /* from the start of the range */
    uint32_t page_room;
};

struct vmm {
    struct policy base;
    struct backing *backing;
    struct host *host;
    uint64_t page_bytes, limit_bytes, range_bytes;
    struct spans spans; /* owner: the range, mark: enum vmm_mark */
    struct vmm_range **ranges;
    uint32_t range_count, range_room;
    uint32_t *by_address; /* ranges in the order of addresses */
    uint32_t order_room;  /* of by_address */
    uint32_t *of_stream;  /* by 3 x stream + kind: the range's number + 1 */
    uint32_t of_stream_room;
    uint32_t last_stream;
    struct deferred deferred;
    enum status fault; /* of the backing, other than REFUSED */
    uint64_t splits, merges, failures, retries, remapped_bytes, pages_made, pages_dropped;
};

static inline struct vmm *vmm_of(struct policy *base)
{
    return (struct vmm *)base;
}

/* vmm.c */
void vmm_insert(struct vmm *self, uint32_t piece);
void vmm_remove(struct vmm *self, uint32_t piece);
uint32_t vmm_merge(struct vmm *self, uint32_t piece);
uint32_t vmm_cut(struct vmm *self, uint32_t piece, uint64_t bytes);

/* pages.c */
uint32_t vmm_make_room(struct vmm *self, struct vmm_range *range, uint64_t bytes);
uint64_t vmm_releasable(const struct vmm *self, const struct span *hole, uint64_t *start);
bool vmm_release_largest(struct vmm *self, uint64_t most_bytes);
void vmm_drop_handle(struct vmm *self, struct vmm_range *range, uint32_t page);

/* report.c */
void vmm_stats(const struct policy *base, struct policy_stats *out);
void vmm_walk(const struct policy *base, policy_visit *visit, void *argument);
enum status vmm_validate(const struct policy *base, struct error *error);
uint64_t vmm_servable(const struct policy *base, enum policy_price price);

#endif
