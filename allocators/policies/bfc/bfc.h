/* The BFC allocator ("best fit with coalescing") of TensorFlow, XLA and JAX: which chunk serves a
 * request, whether it is split, when a region is obtained and how large it is, what is merged and
 * released. ONNX Runtime has a fork of it (policies/ort.c), which obtains and releases regions by
 * other rules.
 *
 * It imitates openxla/xla, xla/tsl/framework/bfc_allocator.cc of August 2026, and for the limits
 * gpu_device.cc of TensorFlow and the client of JAX. Two things are left out: time-stamped chunks
 * (off unless the timestamped mode of TF_GPU_ALLOCATOR is set), and the ten seconds in which a
 * failed request is tried again while other threads free memory. Here a request has one attempt, as
 * with retries off. There is no `trim`, because a program cannot make these frameworks release a
 * region.
 *
 * 1. A request is rounded up to 256 bytes and takes the smallest free chunk that is large enough,
 *    the lowest address among equals. The chunk is split if it has at least twice the size, or if
 *    it is larger by the threshold (128 MiB, or a fraction of the limit). Otherwise the request
 *    gets all of it.
 * 2. A freed chunk merges with free neighbours in its region. Regions are not joined.
 * 3. If no chunk is large enough, a region is obtained. A preallocating pool obtains the whole
 *    limit at the first request. A growing pool starts with 2 MiB and doubles: before use as often
 *    as the request needs, else once after use. A region never exceeds what the limit leaves.
 * 4. If the device refuses a region, the size is tried again at 0.9 of it, in the 32-bit floating
 *    point arithmetic of the original, down to the request.
 * 5. If that fails and collection is on (the default of TensorFlow, not of JAX), all wholly free
 *    regions are released if that can help, and rule 3 is tried once more.
 *
 * A chunk is a span (base/span.h) of a multiple of 256 bytes. Its owner is the region, its mark the
 * end. The real allocator has 21 bins by powers of two, each in the order of size and then address,
 * and searches them upwards from the bin of the request for the first chunk that is large enough.
 * Bins are in the order of size among each other, so this is the best fit by size and then address,
 * which the index in base/span.h finds in fewer steps.
 *
 *   bfc.c        alloc and free (1 and 2), and the three policies of these frameworks
 *   regions.c    regions (3 to 5), and the steps of alloc and free as functions
 *   two_ended.c  alignment, and placement from both ends of a pool
 *   settings.c   the limit and other settings that the frameworks derive
 *   inspect.c    statistics, walk and validate */
#pragma once

#include "allocators/base/size.h"
#include "allocators/base/span.h"
#include "allocators/policy.h"

#define BFC_ROUNDING_BYTES UINT64_C(256)

/* ---- options and settings -------------------------------------------------------------------- */

enum bfc_framework {
    BFC_TENSORFLOW,
    BFC_JAX,
};

enum bfc_collection {
    BFC_COLLECTION_DEFAULT, /* TensorFlow on, JAX off */
    BFC_COLLECTION_ON,
    BFC_COLLECTION_OFF,
};

struct bfc_values {
    struct ar_policy_common common;
    int framework;         /* enum bfc_framework */
    double fraction;       /* of total memory; 0: the default of the framework */
    uint64_t system_bytes; /* left to the system; 0: the default of the framework */
    uint64_t compute_capability;
    double fragmentation_fraction;
    int collection; /* enum bfc_collection */
    bool growth;
    bool coalesce;
    uint64_t first_region_bytes; /* growing; 0: 2 MiB */
    bool two_ended;
    int lower_order, upper_order; /* among equal blocks, first: 0 lowest, 1 highest address */
    int lower_split, upper_split; /* split: 0 by the usual rule, 1 always to size */
};

#define BFC_OPTION(name, type, field, value, least, most, choices, help)                           \
    {                                                                                              \
        name, AR_OPTION_##type, offsetof(struct bfc_values, field), value, least, most, choices,   \
            help                                                                                   \
    }

/* The options of each policy of the family. */
#define BFC_OPTIONS                                                                                \
    BFC_OPTION(                                                                                    \
        "limit", BYTES, common.limit_bytes, "0", 0, 0, NULL,                                       \
        "maximum of reserved bytes; 0: by system_memory, fraction or the framework's default"),    \
        BFC_OPTION(                                                                                \
            "framework", CHOICE, framework, "tf", 0, 0, "tf|jax",                                  \
            "whose defaults: tf collects free regions and leaves room for the system; jax takes "  \
            "0.75 of total memory"),                                                               \
        BFC_OPTION("fraction", FRACTION, fraction, "0", 0, 1, NULL,                                \
                   "limit as a fraction of total memory; 0: the framework's default"),             \
        BFC_OPTION(                                                                                \
            "system_memory", BYTES, system_bytes, "0", 0, 0, NULL,                                 \
            "limit is free memory less this (TF_DEVICE_MIN_SYS_MEMORY_IN_MB); before fraction"),   \
        BFC_OPTION("compute_capability", COUNT, compute_capability, "9", 1, 99, NULL,              \
                   "major number, for what tf leaves to the system by default"),                   \
        BFC_OPTION("fragmentation_fraction", FRACTION, fragmentation_fraction, "0", 0, 1, NULL,    \
                   "split if a chunk is larger by this fraction of the limit; 0: by 128 MiB"),     \
        BFC_OPTION("garbage_collection", CHOICE, collection, "default", 0, 0,                      \
                   "default|true|false",                                                           \
                   "release wholly free regions before failing; default: tf true, jax false")

/* Options of growing pools. */
#define BFC_GROWTH_OPTIONS                                                                         \
    BFC_OPTION("coalesce", BOOL, coalesce, "false", 0, 0, NULL,                                    \
               "join a new region with one that ends at its start (XLA over virtual memory)"),     \
        BFC_OPTION("first_region", BYTES, first_region_bytes, "2MiB", 256, 0x1p60, NULL,           \
                   "size of the first region; later ones double")

/* Options of preallocated pools. */
#define BFC_TWO_ENDED_OPTIONS                                                                      \
    BFC_OPTION(                                                                                    \
        "two_ended", BOOL, two_ended, "false", 0, 0, NULL,                                         \
        "place from both ends of the pool, as the request says (XLA's spatial partitioning)"),     \
        BFC_OPTION("lower_order", CHOICE, lower_order, "ascending", 0, 0, "ascending|descending",  \
                   "two-ended: order of addresses among equal free blocks of the lower end"),      \
        BFC_OPTION("upper_order", CHOICE, upper_order, "ascending", 0, 0, "ascending|descending",  \
                   "two-ended: order of addresses among equal free blocks of the upper end"),      \
        BFC_OPTION("lower_split", CHOICE, lower_split, "bfc", 0, 0, "bfc|exact",                   \
                   "two-ended: split free blocks of the lower end by the usual rule or to size"),  \
        BFC_OPTION("upper_split", CHOICE, upper_split, "bfc", 0, 0, "bfc|exact",                   \
                   "two-ended: split free blocks of the upper end by the usual rule or to size")

/* The bytes that TensorFlow leaves to the system, by the major number of the compute capability. */
uint64_t bfc_system_bytes(uint64_t available_bytes, uint64_t compute_capability);

/* The limit of the pool in bytes on a device with this much memory. An unlimited device counts as
 * 2^60 bytes, more than any request. */
uint64_t bfc_limit(const struct bfc_values *values, uint64_t free_bytes, uint64_t total_bytes);

/* The bytes by which a chunk is larger than a request before it is split. */
uint64_t bfc_split_bytes(const struct bfc_values *values, uint64_t limit_bytes);

bool bfc_collects(const struct bfc_values *values);

/* INVALID: the values contradict each other or do not suit the backing. */
enum ar_status bfc_values_check(const struct bfc_values *values, const struct ar_backing *backing,
                                struct ar_error *error);

/* ---- regions ------------------------------------------------------------------------------------
 *
 * The ranges that the pool obtained from the backing. A region is one driver allocation, or several
 * that touch if the supply coalesces. There are few regions, so they are searched one by one. */

struct bfc_region {
    uint64_t address;
    uint64_t bytes;
    uint32_t first, last; /* chunks; the first keeps its record while the region lives */
    bool held;            /* false: a spare record */
    bool initial;         /* it was obtained when there was no other region */
    uint32_t ranked;      /* in record i: the number of the i-th region by address */
};

/* One driver allocation of a region. */
struct bfc_segment {
    uint64_t address;
    uint64_t bytes;
};

struct bfc_regions {
    struct ar_backing *backing;
    uint64_t limit_bytes;
    uint64_t next_bytes; /* size of the next region */
    /* Where the policies of the family differ: the size of regions. */
    uint64_t most_doubled_bytes; /* a region that doubles without need is at most this large */
    uint32_t least_retry_bytes;  /* a smaller region is not tried after a refusal */
    uint32_t after_trim_bytes;   /* size of the next region after a trim, if there is a trim */
    bool as_requested;           /* a region has the size of the request; nothing doubles */
    bool doubles_first;          /* the size doubles before the device is asked, not after */
    bool coalesce;
    struct bfc_region *at; /* by number, which does not change while the region lives */
    uint32_t capacity, count;
    struct bfc_segment *segments; /* by address */
    uint32_t segment_capacity, segment_count;
};

/* The mark of a chunk: the end of a two-ended pool that it belongs to. In other pools all are
 * LOWER. */
enum bfc_end {
    BFC_LOWER,
    BFC_UPPER,
    BFC_GAP, /* the free span in the middle, which both ends may use */
};

struct bfc {
    struct ar_policy base;
    struct ar_host *host;
    struct ar_spans chunks;
    uint64_t split_bytes;         /* a chunk that is larger than the request by this is split */
    uint64_t general_alignment;   /* requests from this alignment on need bfc_take_general:
                                   above 256; 0, all requests, with two ends */
    uint32_t gap;                 /* two-ended: the free span in the middle; 0: none */
    bool collects;                /* wholly free regions are released if all else fails */
    bool limit_given;             /* the limit is an option, not derived */
    struct ar_policy_stats tally; /* its counters only */
    struct bfc_regions regions;
    struct ar_span_index index;  /* free chunks; with two ends those of the lower end */
    struct ar_span_index *upper; /* free chunks of the upper end; NULL: one end */
    struct bfc_values values;    /* with the resulting limit */
    uint64_t total_bytes;        /* of the device */
};

/* An instance with these values. HOST_MEMORY, or INVALID as bfc_values_check. */
enum ar_status bfc_new(const struct ar_policy_ops *ops, const struct ar_policy_context *context,
                       const struct bfc_values *values, struct bfc **out, struct ar_error *error);

/* The hooks that all policies of the family share. */
void bfc_destroy(struct ar_policy *base);
enum ar_status bfc_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                         struct ar_policy_block *out);
enum ar_status bfc_free(struct ar_policy *base, const struct ar_policy_block *block,
                        uint32_t stream);
void bfc_stats(const struct ar_policy *base, struct ar_policy_stats *out);
void bfc_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument);
enum ar_status bfc_validate(const struct ar_policy *base, struct ar_error *error);
void bfc_room(const struct ar_policy *base, struct ar_policy_room *out);
bool bfc_setting(const struct ar_policy *base, char *text, size_t text_bytes);

/* ---- between the files of the family --------------------------------------------------------- */

void bfc_regions_open(struct bfc *self, struct ar_backing *backing, uint64_t limit_bytes);
/* Releases every driver allocation and frees the arrays. */
void bfc_regions_close(struct bfc *self);

/* Obtains a region with room for `bytes` (rounded). NO_MEMORY: the limit or the device does not
 * allow it. HOST_MEMORY. CORRUPT: the backing reports misuse. */
enum ar_status bfc_regions_extend(struct bfc *self, uint64_t bytes);

/* Releases all wholly free regions, if collection is on and that leaves room for `bytes` under the
 * limit. Says in `released` whether it did. CORRUPT as above. */
enum ar_status bfc_regions_collect(struct bfc *self, uint64_t bytes, bool *released);

/* Releases all wholly free regions, except the initial one if `keeps_initial`. CORRUPT as above. */
enum ar_status bfc_regions_release_free(struct bfc *self, bool keeps_initial);

/* Inserts a free chunk into the index of its end, or makes it the gap; and the opposite. Both
 * update the watch and the releasable bytes. */
void bfc_free_block_add(struct bfc *self, uint32_t chunk);
void bfc_free_block_remove(struct bfc *self, uint32_t chunk);

/* Merges a free chunk that is in no index with its free neighbours, which are removed from theirs.
 * Returns the merged chunk, which is in no index. */
uint32_t bfc_merge(struct bfc *self, uint32_t chunk);

/* Serves the request from free memory, for alignments above 256 bytes and two ends. False: no chunk
 * is large enough. Two records must be spare. */
bool bfc_take_general(struct bfc *self, const struct ar_policy_request *request,
                      struct ar_policy_block *out);

/* Before a freed chunk is merged: if it lies at the gap, it becomes part of it. */
void bfc_return_to_gap(struct bfc *self, uint32_t chunk);

/* Whether the chunk fills its region. If it is free, the region can be released. */
static inline bool bfc_is_region(const struct ar_span *chunk)
{
    return __builtin_expect((chunk->previous | chunk->next) == 0, 0);
}

static inline void bfc_account_added(struct bfc *self, const struct ar_span *chunk)
{
    if (bfc_is_region(chunk))
        self->base.totals.releasable_bytes += chunk->bytes;
    ar_policy_free_added(&self->base, chunk->bytes);
}

static inline void bfc_account_removed(struct bfc *self, const struct ar_span *chunk)
{
    if (bfc_is_region(chunk))
        self->base.totals.releasable_bytes -= chunk->bytes;
    ar_policy_free_removed(&self->base, chunk->bytes);
}

/* Cuts a chunk that is in no index after `bytes` and returns the rest: a free chunk of the same
 * end, in no index. A record must be spare. */
static inline uint32_t bfc_cut(struct bfc *self, uint32_t chunk, uint64_t bytes)
{
    uint32_t rest = ar_spans_cut(&self->chunks, chunk, bytes, 0);
    struct ar_span *chunks = self->chunks.at;
    chunks[rest].owner = chunks[chunk].owner;
    chunks[rest].mark = chunks[chunk].mark;
    if (!chunks[rest].next)
        self->regions.at[chunks[chunk].owner].last = rest;
    self->tally.count.splits++;
    return rest;
}

/* Joins `second` to `first` before it. The bytes of both are for the caller to add. */
static inline void bfc_join(struct bfc *self, uint32_t first, uint32_t second)
{
    if (!ar_spans_join(&self->chunks, first, second))
        self->regions.at[self->chunks.at[first].owner].last = first;
    self->tally.count.merges++;
}

/* Marks a chunk that is in no index as used for the request, and fills in `out`. */
static inline void bfc_hand_out(struct bfc *self, uint32_t chunk,
                                const struct ar_policy_request *request,
                                struct ar_policy_block *out)
{
    struct ar_span *given = &self->chunks.at[chunk];
    given->used = 1;
    given->requested_bytes = request->bytes;
    ar_policy_grant(&self->base, out, given->address, given->bytes, chunk);
}
