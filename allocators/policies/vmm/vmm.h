/* vmm: this project's own policy over virtual memory. Not an imitation of anything.
 *
 *   vmm.c      what happens at a request and at a free
 *   pages.c    where a request without a mapped hole goes, and the mapping
 *   reclaim.c  which memory can be taken from under holes, and taking it
 *   crowd.c    where there are many streams: which range has the most to take
 *   report.c   statistics, walk, validate
 *
 * How it works
 *
 * 1. Each stream has two ranges of reserved address space: for blocks of up to half a page, and
 *    for larger ones, so that small blocks that live long do not pin the pages between large
 *    ones. Sizes round up to 512 bytes. A range has twice the device's addresses, since what
 *    cannot be moved scatters them; where they run out all the same, another range, twice as
 *    large, is added to it.
 * 2. A range is a chain of pieces: used blocks, holes (free, mapped) and gaps (free, without
 *    memory, whole pages).
 * 3. A request takes the smallest hole that fits, the lowest address among equals, but the hole
 *    at the end of a range last of all, since that one can grow. No call to the driver is made
 *    then.
 * 4. Otherwise it goes to a run of holes and gaps that follow each other: the one that lacks
 *    the fewest pages of those around a few gaps that are just large enough, around the largest
 *    holes, and at the end of the range. It begins at the start of a piece, or so that it ends
 *    where a hole ends: a page that a neighbour holds anyway is used to its end.
 * 5. Memory comes in handles, for a driver call costs the same for 2 and for 32 MiB. One that
 *    neighbours share has 1/128 of what the device still has (1/1024 where blocks are small), at
 *    most 16 pages: single pages when memory becomes short. One that a block fills comes free
 *    with the block: it has as much, but at least 8 pages, or 1/64 of a giant block. Where a
 *    block ends inside of a page, its last whole pages and that one come in one handle of at
 *    most 1/256 of what the device still has, as long as that is more than is held. Once less is
 *    left than is held, no new handle has more than 1/128 of the device.
 * 6. When the device has no more, or the limit is met, handles that lie wholly under holes are
 *    unmapped and mapped where they are needed, as they are or made anew in another size. No
 *    more is moved than the request needs, so a program that repeats itself comes to rest with
 *    its holes where it needs them.
 * 7. Blocks let go that other streams still use are waited for first, oldest first, since they
 *    may make a hole that fits. The work that used a handle under a hole may still run too; but
 *    waiting for all work of a stream would leave the device idle while the driver works. So
 *    once less is left than is held, each stream records a fence whenever a sixteenth of what is
 *    held was let go, and each page knows the first fence after its last use. Handles whose
 *    fence is done are taken first, from the hole at the end of a range, then from the largest.
 *    While that is not enough, what there is is mapped, and the oldest fence of all is waited
 *    for; in the end, all work.
 * 8. Others take memory from the device too, such as the driver for code that it loads. What
 *    they took when they last took some is left to them by requests that may fail, and, while
 *    memory is short, restored from under holes at the next request after a fence. A request
 *    that may not fail takes it, and then that much is no longer kept.
 * 9. With more than 64 ranges or streams, what rules 6 and 7 choose is found by a tree of what
 *    each range has to give and a set of the streams that have fences (crowd.c), not by looking
 *    at all of them; what is chosen is the same. Each fence that is not known to be done is
 *    still asked for, and draining still goes over all streams: those are calls to the driver.
 *
 * Constants
 *
 * They are the same for all programs and cards. 1/256 was chosen on twelve variants of generators
 * (seeds, layers, sizes): seven stay within 2 % and a page for each range of the live peak, and
 * eight run at 1.05 x that at least as fast as under PyTorch's growing segments. With 1/128 these
 * are six and eight, with 1/512 seven and seven, with own handles of 8 pages and none beyond a
 * block's end, as it was before, eight and four. The recordings are no independent check: the
 * three values had been tried on gpt2_train, lora_recompute, dlrm_embedding and side_streams
 * before, and the rule itself comes from looking at the first steps of dlrm_embedding, where own
 * handles were smaller than shared ones. That nothing is taken beyond an end that is a page's
 * comes from robson with units of a page.
 *
 * Bound
 *
 * A request fails only when the device and the handles without a byte of a live block have less
 * than the pages that it lacks. When a block is let go and its place is not yet used by others, all of
 * it can move but the handles at its ends, and those are single pages where memory was short
 * when they were made. So with blocks that are not placed in what is left of larger ones
 *
 *     held <= live rounded + 2 handles x (runs of neighbouring blocks)
 *
 * where a handle has at most 8 pages inside of blocks, or 1/128 of what was left then, which is
 * the most between them; and a block in the place of a larger one may hold 8 pages (or that, or
 * 1/64 of the larger) more at either end until it dies. With blocks smaller than a page, scattered
 * one to a page, a page for each is all there is to promise: memory with one live byte in it
 * cannot be moved. */
#ifndef ALLOCATORS_POLICIES_VMM_VMM_H
#define ALLOCATORS_POLICIES_VMM_VMM_H

#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/base/span.h"
#include "allocators/base/span_index.h"
#include "allocators/deferred.h"
#include "allocators/policy.h"

#define VMM_ROUND_BYTES UINT64_C(512)
#define VMM_KINDS       2u
#define VMM_FENCES      32u /* remembered of a stream */
#define VMM_KEPT        64u /* handles unmapped and not yet mapped elsewhere */
#define VMM_SPARES      8u  /* span records that one request may use */
#define VMM_FEW         64u /* ranges, or streams, that are looked at one by one */

enum vmm_kind {
    VMM_SMALL, /* at most half a page */
    VMM_LARGE,
};

enum vmm_mark {
    VMM_GAP,     /* free, no memory behind it */
    VMM_MAPPED,  /* a hole, or a used block */
    VMM_PENDING, /* used: let go by the program, not yet complete */
};

struct vmm_page {
    ar_backing_handle handle; /* + 1; 0: not mapped */
    uint16_t index;           /* of this page in its handle */
    uint16_t count;           /* pages of the handle */
    uint32_t fence;           /* the first of the stream after the last block here was let go */
};

struct vmm_range {
    struct ar_span_index free_blocks, gaps;
    uint64_t address, bytes;
    uint64_t free_block_bytes;
    uint32_t stream;
    enum vmm_kind kind;
    uint32_t more;          /* number + 1 of the next range of this stream and kind; 0: none */
    uint32_t first, last;   /* pieces */
    uint32_t tail;          /* the hole before the gap at the end, in no index; 0: none */
    struct vmm_page *pages; /* from the start of the range */
    uint32_t page_room;
    uint32_t stale; /* in the crowd's list: number + 1 of the next, or VMM_LAST; 0: not in it */
};

/* A moment in a stream's work, and when it was recorded among those of all streams. */
struct vmm_fence {
    struct ar_backing_ticket ticket;
    uint64_t order;
};

struct vmm_stream {
    uint32_t first[VMM_KINDS];          /* number + 1 of the first range; 0: none */
    uint32_t fences, done;              /* recorded; of these known to be done */
    uint64_t freed_bytes;               /* since the last one */
    struct vmm_fence fence[VMM_FENCES]; /* the k-th, from 1, at k mod VMM_FENCES */
};

struct vmm_kept {
    ar_backing_handle handle;
    uint32_t count; /* of its pages */
};

#define VMM_LAST UINT32_MAX

/* Kept where there are more than VMM_FEW ranges or streams: see crowd.c. */
struct vmm_crowd {
    struct ar_range_pool pool; /* of steps */
    uint32_t root;
    uint32_t stale;  /* ranges whose steps are to be found anew */
    uint32_t *steps; /* of each range: its last step; 0: none */
    uint32_t range_room;
    uint32_t stream_room;
    uint64_t *waiting;       /* bit per stream: it has fences that are not known to be done */
    uint64_t *waiting_words; /* bit per word of that: it is not 0 */
    uint64_t looked;         /* how often a range was looked at */
};

struct vmm {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    uint64_t page_bytes, limit_bytes, device_bytes;
    struct ar_spans spans; /* owner: the range, mark: enum vmm_mark */
    struct vmm_range **ranges;
    uint32_t range_count, range_room;
    uint32_t *by_address; /* ranges in the order of addresses */
    uint32_t order_room;  /* of by_address */
    uint32_t unfenced;    /* streams where blocks were let go since the last fence */
    struct vmm_stream *streams;
    uint32_t stream_room;
    uint32_t last_stream;
    struct deferred deferred;
    struct vmm_kept kept[VMM_KEPT]; /* empty but within a request */
    uint32_t kept_count;
    uint64_t kept_bytes;                    /* not in reserved_bytes */
    struct vmm_crowd *crowd;                /* NULL: few ranges and streams, or no host memory */
    uint64_t fence_order;                   /* of the last fence */
    uint64_t outside_bytes, outside_growth; /* of others; when it last grew, by how much */
    bool tight;                             /* less is left than is held: fences are recorded */
    bool outside_seen, look;                /* look: after the next fence */
    enum ar_status fault;                   /* of the backing, other than REFUSED */
    uint64_t splits, merges, failures, retries, remapped_bytes, pages_made, pages_dropped;
};

static inline struct vmm *vmm_of(struct ar_policy *base)
{
    return (struct vmm *)base;
}

/* What can be taken from a range has changed. */
static inline void vmm_stale(struct vmm_crowd *crowd, struct vmm_range *range, uint32_t number)
{
    if (range->stale)
        return;
    range->stale = crowd->stale;
    crowd->stale = number + 1;
}

/* vmm.c */
void vmm_insert(struct vmm *self, uint32_t piece);
void vmm_remove(struct vmm *self, uint32_t piece);
uint32_t vmm_merge(struct vmm *self, uint32_t piece);
uint32_t vmm_cut(struct vmm *self, uint32_t piece, uint64_t bytes);
uint32_t vmm_find_free_block(struct vmm *self, uint32_t stream, enum vmm_kind kind, uint64_t bytes);
enum ar_status vmm_open_range(struct vmm *self, uint32_t stream, enum vmm_kind kind,
                              uint64_t bytes);

/* pages.c */
uint32_t vmm_make_room(struct vmm *self, const struct ar_policy_request *request,
                       enum vmm_kind kind, uint64_t bytes);
void vmm_keep_headroom(struct vmm *self);

/* reclaim.c */
void vmm_free_requested_pages(struct vmm *self, const struct ar_span *span);
void vmm_watch_streams(struct vmm *self);
uint64_t vmm_releasable(const struct vmm *self, const struct ar_span *free_block, uint64_t *start);
bool vmm_release_idle(struct vmm *self, uint64_t wanted_bytes);
bool vmm_wait_some(struct vmm *self);
void vmm_drain(struct vmm *self);
void vmm_drop_handles(struct vmm *self, struct vmm_range *range, uint64_t from, uint64_t end);
enum ar_status vmm_destroy_kept(struct vmm *self, uint32_t count);

/* Handles that follow each other in a hole, and whose work is done. */
struct vmm_idle {
    uint32_t free_block;
    uint64_t from, end;
};
uint64_t vmm_find_idle(const struct vmm *self, const struct vmm_range *range, uint64_t wanted_bytes,
                       struct vmm_idle *idle);

/* crowd.c */
void vmm_crowd_grow(struct vmm *self);
void vmm_crowd_close(struct vmm *self);
void vmm_crowd_waits(struct vmm_crowd *crowd, uint32_t stream, bool waits);
uint32_t vmm_next_waiting(const struct vmm *self, uint32_t stream);
uint32_t vmm_crowd_most_idle(struct vmm *self, uint64_t wanted_bytes);
bool vmm_crowd_is_right(const struct vmm *self);

/* report.c */
void vmm_stats(const struct ar_policy *base, struct ar_policy_stats *out);
void vmm_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument);
enum ar_status vmm_validate(const struct ar_policy *base, struct ar_error *error);
uint64_t vmm_servable(const struct ar_policy *base, enum ar_policy_effort effort);

#endif
