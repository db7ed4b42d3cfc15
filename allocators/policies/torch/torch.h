/* PyTorch's caching allocator for CUDA (c10/cuda/CUDACachingAllocator, as of 2.11, and what the
 * releases from 2.4 to 2.15 do otherwise).
 *
 *   settings.c    options, the configuration string, rounding of sizes
 *   conf_keys.c   the keys of that string, and the releases that accept them
 *   segments.c    blocks, split and merge, free sets; driver allocations: made, released, collected
 *   expandable.c  growing virtual ranges, mapped by pages
 *   mosaic.c      the policy mosaic: pages that are divided
 *   adopt.c       the start from memory that exists already
 *   inspect.c     statistics, walk, validate, room
 *   torch.c       the order of decisions in malloc and free
 *
 * A block is free, allocated, or pending: its free is requested, but the events of other streams
 * that used it are not seen complete yet. The free blocks of one stream in one pool (small or
 * large; the common pool or a private one) form one arena: an index in the order of size and then
 * address. */
#pragma once

#include "allocators/base/rule.h"
#include "allocators/base/size.h"
#include "allocators/base/span.h"
#include "allocators/deferred.h"
#include "allocators/policies/torch/conf_keys.h"
#include "allocators/policy.h"

#define TORCH_MIN_BLOCK_BYTES     UINT64_C(512)
#define TORCH_SMALL_BYTES         AR_MIB /* requests up to it go to the small pool */
#define TORCH_SMALL_SEGMENT_BYTES (2 * AR_MIB)
#define TORCH_TIGHT_GRAINS        32u /* most of a page if memory is tight: see mosaic.c */
#define TORCH_MIN_LARGE_BYTES     (10 * AR_MIB) /* from here a request gets its own segment */
#define TORCH_ROUND_LARGE_BYTES   (2 * AR_MIB)

/* ---- usage --------------------------------------------------------------------------------------
 *
 * Statistics that change at every request and every free.
 *
 * 1. For each size kind and for all: the active blocks and bytes (handed out, the free not
 *    completed), and those of them that are pending. PyTorch calls the difference allocated.
 * 2. What was ever handed out is counted by size kind only. The sum is the total, and what was
 *    freed is what is not active.
 * 3. Peaks are exact, each by itself. Allocated is never above active, so if active is not above
 *    the peak of allocated, neither has a new peak: one comparison for both. */

enum torch_kind { TORCH_ALL, TORCH_SMALL, TORCH_LARGE, TORCH_KIND_COUNT };

struct torch_usage {
    uint64_t blocks, bytes, requested_bytes; /* active */
    uint64_t pending_blocks, pending_bytes;
    uint64_t ever_blocks, ever_bytes, ever_requested_bytes; /* not for TORCH_ALL */
    struct {
        uint64_t allocated_blocks, allocated_bytes, active_blocks, active_bytes, requested_bytes;
    } peak;
};

/* Raises the peaks of all kinds to the present values. */
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

/* The free of an active block is requested, but not completed. */
static inline void torch_usage_retire(struct torch_usage usage[TORCH_KIND_COUNT],
                                      enum torch_kind kind, uint64_t bytes)
{
    usage[TORCH_ALL].pending_blocks++;
    usage[TORCH_ALL].pending_bytes += bytes;
    usage[kind].pending_blocks++;
    usage[kind].pending_bytes += bytes;
}

/* The free is completed. */
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

/* A block that is not pending is no longer active. */
static inline void torch_usage_remove(struct torch_usage usage[TORCH_KIND_COUNT],
                                      enum torch_kind kind, uint64_t bytes,
                                      uint64_t requested_bytes)
{
    torch_usage_shrink(&usage[TORCH_ALL], bytes, requested_bytes);
    torch_usage_shrink(&usage[kind], bytes, requested_bytes);
}

/* ---- settings and records -------------------------------------------------------------------- */

struct torch_values {
    struct ar_policy_common common;
    const char *version;
    const char *conf;
    bool expandable_segments;
    uint64_t max_split_size_mb;
    uint64_t max_non_split_rounding_mb;
    double garbage_collection_threshold;
    const char *roundup_power2_divisions;
    double per_process_memory_fraction;
    uint64_t large_segment_size_mb;
};

/* What happens to a MemPool if other segments grow by pages. */
enum torch_user_pools {
    TORCH_POOLS_PLAIN,   /* a pool with an allocator of its own has segments, others grow */
    TORCH_POOLS_IGNORED, /* all grow: the allocator of a pool is never called */
    TORCH_POOLS_FAIL,    /* requests in a pool with an allocator raise an exception */
    TORCH_POOLS_FAIL_ALL /* requests in any MemPool do */
};

/* The settings in force, from the options and the configuration string. */
struct torch_settings {
    struct torch_release release; /* {0, 0}: the newest */
    bool expandable;
    bool rejects; /* throw_on_cudamalloc_oom: a request beyond the limit fails at once */
    bool has_divisions;
    /* What releases before the newest do otherwise: settings.c has the sources. */
    bool plain_pools;   /* private pools have segments even if others grow by pages */
    bool stops;         /* a program stops if a range is to be released as a segment */
    bool pools_fail;    /* a request of a private pool completes no free, releases no cache */
    bool overflow_last; /* pools with use_on_oom come after the release of the cache */
    enum torch_user_pools user_pools;
    uint64_t max_split_bytes; /* UINT64_MAX: no limit */
    uint64_t max_non_split_rounding_bytes;
    double gc_threshold;
    double fraction; /* 0: not set */
    uint64_t large_segment_bytes;
    uint64_t divisions[TORCH_DIVISION_INTERVALS]; /* 0 or 1: plain rounding */
    double range; /* the size of a range: above 0 a fraction of the card's memory, below 0 GiB */
};

extern const struct ar_option torch_options[];

enum ar_status torch_settings_read(const struct torch_values *values,
                                   struct torch_settings *settings, struct ar_error *error);
/* Reads a configuration string as the program sets it again in the middle of a run. */
enum ar_status torch_settings_again(struct torch_settings *settings, const char *conf,
                                    struct ar_error *error);

/* Kept for all blocks, and separately for the small and the large pool. */
enum torch_stat {
    TORCH_SEGMENT,
    TORCH_INACTIVE_SPLIT,
    TORCH_RESERVED_BYTES,
    TORCH_INACTIVE_SPLIT_BYTES,
    TORCH_COUNTED, /* the others are computed from the usage on demand */
    TORCH_ALLOCATION = TORCH_COUNTED,
    TORCH_ALLOCATED_BYTES,
    TORCH_ACTIVE,
    TORCH_ACTIVE_BYTES,
    TORCH_REQUESTED_BYTES,
    TORCH_STAT_COUNT
};

struct torch_counter {
    uint64_t current, peak, allocated; /* freed = allocated - current */
};

/* What a block has in addition to its span. */
struct torch_block {
    uint64_t requested_bytes;
    uint64_t collected_at; /* the calls of the pool when it entered the free set */
    uint32_t segment;      /* an index of segments */
    bool mapped;           /* false: address space only, of an expandable segment */
    bool retired;          /* free requested, not counted as allocated */
};

/* One driver allocation or one expandable range. */
struct torch_segment {
    uint64_t address, bytes; /* of an expandable one: the whole reservation */
    uint32_t arena;
    uint32_t first; /* its first block */
    bool expandable;
    /* Expandable: the handle + 1 that is mapped at each grain; 0: none. */
    ar_backing_handle *pages;
    uint32_t page_count; /* of `pages`, grown as needed */
};

/* The two pools of one id: 0 is the common one, others are private. */
struct torch_pool {
    uint32_t id;
    bool ended;        /* a private pool that the program has ended */
    uint8_t mempool;   /* AR_MEMPOOL_x; 0: of a graph, or not known */
    uint64_t calls[2]; /* of get_free_block since the start, small and large */
};

/* One free set: the blocks of a stream in one pool. */
struct torch_arena {
    struct ar_span_index index;
    uint32_t stream, pool; /* pool: an index of pools */
    bool small;
    uint64_t least_rest_bytes; /* a rest of a block that is cut off; UINT64_MAX: none ever is */
    uint64_t free_bytes;
    uint32_t *unmapped; /* blocks of address space only, ascending by address */
    uint32_t unmapped_count, unmapped_room;
};

struct torch {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    struct torch_settings settings;
    uint64_t allowed_bytes; /* UINT64_MAX: no limit was set */
    bool limited;
    bool has_ranges; /* segments that grow by pages may exist */
    bool collects;   /* a limit and a threshold are set: blocks are collected by age */
    bool ages;       /* the same, now or before: the ages of blocks are kept */
    bool divides;    /* mosaic: see mosaic.c */
    bool tight;      /* a request found no memory since the last trim: pages have no spare bytes */

    struct ar_spans spans; /* the spans of blocks; `blocks` has the rest */
    struct torch_block *blocks;
    uint32_t block_room;
    /* Of the backing, other than REFUSED: stops the run. Within a request also HOST_MEMORY. */
    enum ar_status fault;

    struct torch_segment *segments;
    uint32_t segment_count, segment_room;
    uint32_t spare_segment; /* linked through `first`; UINT32_MAX: none */
    uint32_t *order;        /* segments by address */
    uint32_t order_count, order_room;

    struct torch_arena **arenas;
    uint32_t arena_count, arena_room;
    uint32_t *buckets; /* a hash table of arenas, by stream, pool and size kind: index + 1 */
    uint32_t bucket_count;
    struct torch_pool *pools;
    uint32_t pool_count, pool_room;
    uint32_t *pool_buckets; /* a hash table of pools by id, twice pool_room: index + 1 */
    uint32_t last_arena[2]; /* of the last large and the last small request */
    uint32_t last_stream, last_pool;

    struct deferred deferred;

    struct torch_usage usage[TORCH_KIND_COUNT];
    struct torch_counter stats[TORCH_COUNTED][TORCH_KIND_COUNT];
    uint64_t num_alloc_retries, num_ooms, num_device_alloc, num_device_free;
    uint64_t num_sync_all_streams, splits, merges, flushes;
    struct torch_counter oversize_allocations, oversize_segments;
};

/* A torch that divides pages. */
struct mosaic {
    struct torch torch;
    uint64_t free_grain_bytes; /* of whole grains in free blocks whose memory can be released */
    uint64_t scratch_address;  /* a range of a page for copies; 0: not reserved */
    bool lost;                 /* the content of a page, in a division */
    struct ar_rule divide, place;
};

static inline struct mosaic *mosaic_of(const struct torch *self)
{
    return (struct mosaic *)self;
}

/* settings.c */
uint64_t torch_round_divided(const struct torch_settings *settings, uint64_t bytes);
static inline uint64_t torch_round(const struct torch_settings *settings, uint64_t bytes)
{
    if (settings->has_divisions)
        return torch_round_divided(settings, bytes);
    return ar_size_round_up(bytes, TORCH_MIN_BLOCK_BYTES);
}
uint64_t torch_device_request(const struct torch_settings *settings, uint64_t rounded_bytes);
/* With divisions: the largest request that is rounded to at most so many bytes. */
uint64_t torch_largest_request(const struct torch_settings *settings, uint64_t bytes);

/* segments.c: blocks */
bool torch_grow_blocks(struct torch *self, uint32_t wanted);
static inline bool torch_reserve_blocks(struct torch *self, uint32_t wanted)
{
    if (__builtin_expect(self->spans.spare_count >= wanted && self->block_room >= self->spans.count,
                         1))
        return true;
    return torch_grow_blocks(self, wanted);
}
/* UINT32_MAX: it does not exist yet. */
uint32_t torch_arena_find(const struct torch *self, uint32_t stream, uint32_t pool, bool small);
uint32_t torch_arena_of(struct torch *self, uint32_t stream, uint32_t pool, bool small,
                        bool *failed);
void torch_blocks_close(struct torch *self);
uint32_t torch_block_new(struct torch *self, uint64_t address, uint64_t bytes, uint32_t arena,
                         uint32_t segment, bool mapped);
void torch_block_drop(struct torch *self, uint32_t block);
void torch_free_insert(struct torch *self, uint32_t block);
void torch_free_remove(struct torch *self, uint32_t block);
void torch_merge(struct torch *self, uint32_t block, uint32_t other);
uint32_t torch_fitting(const struct torch *self, uint32_t arena, uint64_t rounded_bytes);
uint32_t torch_find(struct torch *self, uint32_t arena, uint64_t rounded_bytes);
uint64_t torch_releasable(const struct torch *self, uint32_t block);
uint64_t torch_releasable_from(const struct torch *self, uint32_t block, uint64_t *first);

/* segments.c: driver allocations */
uint32_t torch_segment_new(struct torch *self, uint64_t address, uint64_t bytes, uint32_t arena,
                           bool expandable);
void torch_segment_drop(struct torch *self, uint32_t segment);
uint32_t torch_alloc_block(struct torch *self, uint32_t arena, uint64_t rounded_bytes, bool retry);
/* No block: the request ends with HOST_MEMORY. */
static inline uint32_t torch_no_host(struct torch *self)
{
    self->fault = AR_HOST_MEMORY;
    return 0;
}
bool torch_is_beyond_limit(const struct torch *self, uint64_t rounded_bytes);
bool torch_release_available(struct torch *self, uint32_t arena, uint64_t rounded_bytes,
                             bool *stopped);
void torch_release_block(struct torch *self, uint32_t block);
void torch_release_cached(struct torch *self);
bool torch_is_released(const struct torch_pool *pool);
void torch_release_pool(struct torch *self, uint32_t pool);
void torch_arena_rule(const struct torch *self, struct torch_arena *arena);
void torch_collect(struct torch *self);
bool torch_would_collect(const struct torch *self);

/* expandable.c */
uint32_t torch_expand(struct torch *self, uint32_t arena, uint64_t rounded_bytes);
void torch_unmap_free(struct torch *self, uint32_t block);
bool torch_reserve_unmapped(struct torch *self, uint32_t arena, uint32_t count);
uint32_t torch_make_unmapped(struct torch *self, uint32_t block, uint64_t start, uint64_t bytes);
enum ar_status torch_create_pages(struct torch *self, const struct torch_segment *segment,
                                  ar_backing_handle *pages, uint32_t first, uint32_t last);
void torch_destroy_pages(struct torch *self, ar_backing_handle *pages, uint32_t first,
                         uint32_t last);
void torch_unmapped_remove(struct torch *self, uint32_t block);
bool torch_unmapped_add(struct torch *self, uint32_t block);
uint64_t torch_range_bytes(const struct torch *self, uint32_t arena);
enum ar_status torch_adopt_pages(struct torch *self, uint32_t segment);

/* mosaic.c */
struct mosaic_values {
    struct ar_policy_common common;
    const char *divide, *place;
};
extern const struct ar_option mosaic_options[];
enum ar_status mosaic_create(const struct ar_policy_context *context, const void *given,
                             struct ar_policy **out, struct ar_error *error);
const char *mosaic_problem(const struct ar_policy *base);
uint64_t mosaic_whole_pages(const struct torch *self, const struct torch_segment *segment,
                            uint64_t bytes, uint64_t *first);
void mosaic_count(struct torch *self, uint32_t block, bool enters);
void mosaic_end_pool(struct torch *self, uint32_t pool);
uint32_t torch_divide(struct torch *self, uint32_t arena, uint64_t rounded_bytes);
uint32_t torch_tight_place(const struct torch *self, const struct torch_arena *arena,
                           uint64_t bytes);
uint64_t torch_tight_servable(const struct torch *self, const struct torch_arena *arena);

/* adopt.c */
enum ar_status torch_adopt(struct ar_policy *base, const struct ar_policy_range *ranges,
                           size_t count, struct ar_policy_block *blocks);

/* torch.c */
/* `divides`: as a struct mosaic. */
enum ar_status torch_open(const struct ar_policy_context *context, const struct ar_policy_ops *ops,
                          const struct torch_values *values, bool divides, struct ar_policy **out,
                          struct ar_error *error);
void torch_complete(void *torch, uint32_t block); /* a deferred_complete */
void torch_end_pool(struct ar_policy *base, uint32_t pool);

/* inspect.c */
struct torch_counter torch_statistic(const struct torch *self, enum torch_stat stat,
                                     enum torch_kind kind);
void torch_stats(const struct ar_policy *base, struct ar_policy_stats *out);
void torch_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument);
enum ar_status torch_validate(const struct ar_policy *base, struct ar_error *error);
void torch_room(const struct ar_policy *base, struct ar_policy_room *out);
void torch_reset_peaks(struct ar_policy *base);
bool torch_report(const struct ar_policy *base, size_t index, char *name, size_t name_bytes,
                  uint64_t *value);

/* Cuts `block` after `bytes`. The rest is in no set. A record must be spare. */
static inline uint32_t torch_cut(struct torch *self, uint32_t block, uint64_t bytes, bool mapped)
{
    uint32_t rest = ar_spans_cut(&self->spans, block, bytes, 0);
    self->spans.at[rest].owner = self->spans.at[block].owner;
    self->blocks[rest].segment = self->blocks[block].segment;
    self->blocks[rest].mapped = mapped;
    return rest;
}

static inline enum torch_kind torch_kind_of(const struct torch *self, uint32_t arena)
{
    return self->arenas[arena]->small ? TORCH_SMALL : TORCH_LARGE;
}

static inline void torch_count(struct torch_counter *counter, uint64_t amount)
{
    counter->current += amount;
    counter->allocated += amount;
    if (counter->current > counter->peak)
        counter->peak = counter->current;
}

static inline void torch_add(struct torch *self, enum torch_stat stat, enum torch_kind kind,
                             uint64_t amount)
{
    torch_count(&self->stats[stat][TORCH_ALL], amount);
    torch_count(&self->stats[stat][kind], amount);
}

static inline void torch_subtract(struct torch *self, enum torch_stat stat, enum torch_kind kind,
                                  uint64_t amount)
{
    self->stats[stat][TORCH_ALL].current -= amount;
    self->stats[stat][kind].current -= amount;
}

/* A change in either direction, counted by its net as in PyTorch. */
static inline void torch_change(struct torch *self, enum torch_stat stat, enum torch_kind kind,
                                int64_t net)
{
    if (net > 0)
        torch_add(self, stat, kind, (uint64_t)net);
    else
        torch_subtract(self, stat, kind, (uint64_t)-net);
}

/* Whether the segment of a block grows by pages. */
static inline bool torch_is_expandable(const struct torch *self, uint32_t block)
{
    return self->has_ranges && self->segments[self->blocks[block].segment].expandable;
}

/* Whether blocks of a pool are searched and divided by the rules of segments that grow. */
static inline bool torch_is_ranged(const struct torch *self, uint32_t pool)
{
    return self->settings.expandable && !(self->pools[pool].mempool & AR_MEMPOOL_ALLOCATOR &&
                                          self->settings.user_pools == TORCH_POOLS_PLAIN);
}

/* Whether the segments of an arena grow by pages. */
static inline bool torch_grows(const struct torch *self, uint32_t arena)
{
    uint32_t pool = self->arenas[arena]->pool;
    return torch_is_ranged(self, pool) &&
           !(self->settings.plain_pools && self->pools[pool].id != 0);
}

static inline uint64_t torch_page_bytes(const struct torch *self, const struct torch_arena *arena)
{
    return arena->small ? TORCH_SMALL_SEGMENT_BYTES : self->settings.large_segment_bytes;
}

/* The unit of the table of pages: a page, or what pages may be divided into. */
static inline uint64_t torch_grain_bytes(const struct torch *self, const struct torch_arena *arena)
{
    return self->divides ? TORCH_SMALL_SEGMENT_BYTES : torch_page_bytes(self, arena);
}

/* The end of the handle that is mapped at the grain `i`; `end`: of the grains to look at. */
static inline uint32_t torch_handle_end(const struct torch *self, const ar_backing_handle *pages,
                                        uint32_t i, uint32_t end)
{
    uint32_t next = i + 1;
    while (self->divides && next < end && pages[next] == pages[i])
        next++;
    return next;
}

/* Whether a request takes a block of `bytes`, which is large enough. It takes no block too large to
 * be split, unless the request itself is that large and leaves little of it. */
static inline bool torch_accepts(const struct torch_settings *settings, uint64_t rounded_bytes,
                                 uint64_t bytes)
{
    if (bytes < settings->max_split_bytes)
        return true;
    return rounded_bytes >= settings->max_split_bytes &&
           bytes < rounded_bytes + settings->max_non_split_rounding_bytes;
}

/* Whether the rest of a block of `bytes` is cut off when a request takes it. */
static inline bool torch_should_split(const struct torch *self, const struct torch_arena *arena,
                                      uint64_t rounded_bytes, uint64_t bytes)
{
    return bytes - rounded_bytes >= arena->least_rest_bytes &&
           (rounded_bytes < self->settings.max_split_bytes || torch_is_ranged(self, arena->pool));
}
