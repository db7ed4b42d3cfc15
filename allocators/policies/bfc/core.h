/* The BFC allocator ("best fit with coalescing") of TensorFlow, XLA and JAX, as far as it
 * decides anything: which chunk serves a request, whether it is split, when a region is asked
 * for and how large, what is merged and what is given back.
 *
 * Imitated: openxla/xla, xla/tsl/framework/bfc_allocator.cc of August 2026, and for the limits
 * TensorFlow's gpu_device.cc and JAX's client. Not modelled: time-stamped chunks (off unless
 * TF_GPU_ALLOCATOR's timestamped mode is asked for), and the ten seconds for which a failed
 * request is tried again while other threads free: a request here has one attempt, as with
 * retries off. There is no `trim`: a program cannot make these frameworks give back a region,
 * the only release is that of rule 5.
 *
 * 1. A request is rounded up to 256 bytes and takes the smallest free chunk that holds it, the
 *    lowest address among equals (see below). It is split off the chunk when the chunk has at
 *    least twice the size, or is larger by the threshold (128 MiB, or a fraction of the
 *    limit); otherwise the request gets all of the chunk.
 * 2. A freed chunk is merged with free neighbours in its region; regions are not joined.
 * 3. Where nothing fits, a region is obtained. Preallocating, it is the whole limit, at the
 *    first request. Growing, it starts at 2 MiB and doubles: before use as often as the
 *    request needs, else once after use; never more than the limit leaves.
 * 4. A region that the device refuses is tried again at 0.9 of its size, in the 32-bit float
 *    arithmetic of the original, down to the request.
 * 5. Where that fails and collection is on (TensorFlow's default, not JAX's), all regions that
 *    are wholly free go back to the device if that could help, and rule 3 is tried once more.
 *
 * A chunk is a span (base/span.h) of a multiple of 256 bytes; its owner is the region, its mark
 * the end. The real allocator looks through 21 bins by powers of two, from the one of the request
 * upwards, each ordered by size and then address, for the first chunk that is large enough. Bins
 * are ordered by size among each other, so that is the best fit by size and then address, which
 * base/span_index.h finds in fewer steps.
 *
 * Files: region (3 to 5), core (1 and 2), pieces (the steps of both),
 * two_ended (alignment and the placement from both ends), limit (what the frameworks make of
 * their settings), report (stats, walk, validate). */
#ifndef ALLOCATORS_POLICIES_BFC_CORE_H
#define ALLOCATORS_POLICIES_BFC_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/span.h"
#include "allocators/base/span_index.h"
#include "allocators/policies/bfc/region.h"
#include "allocators/policies/bfc/values.h"
#include "allocators/policy.h"

/* Which end of a two-ended pool a chunk belongs to: its mark. All are LOWER elsewhere. */
enum bfc_end {
    BFC_LOWER,
    BFC_UPPER,
    BFC_GAP, /* the free span in the middle, which either end may take from */
};

struct bfc {
    struct ar_policy base;
    struct ar_host *host;
    struct ar_spans chunks;
    uint64_t split_bytes;         /* a chunk larger than the request by this much is split */
    uint64_t general_alignment;   /* from this one on a request needs bfc_take_general: above
                                   256, or 0, all requests, where there are two ends */
    bool collects;                /* wholly free regions go back when nothing else helps */
    struct ar_policy_stats tally; /* the counters; the rest of it is unused */
    struct bfc_regions regions;
    struct ar_span_index index;  /* free chunks, those of the lower end where there are two */
    struct ar_span_index *upper; /* free chunks of the upper end; NULL: one end only */
    uint32_t gap;                /* two-ended: the free span in the middle, 0 where none is left */
    struct bfc_values values;    /* with the limit that they came to */
    bool limit_given;            /* the limit was an option, not derived */
    uint64_t total_bytes;        /* of the device */
};

/* Makes an instance of `ops` with these values. */
enum ar_status bfc_create_as(const struct ar_policy_ops *ops,
                             const struct ar_policy_context *context,
                             const struct bfc_values *values, struct ar_policy **out,
                             struct ar_error *error) AR_STATUS_CHECKED;

/* The hooks that all policies of the family share. */
void bfc_destroy(struct ar_policy *base);
enum ar_status bfc_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                         struct ar_policy_block *out);
enum ar_status bfc_free(struct ar_policy *base, const struct ar_policy_block *block,
                        uint32_t stream);
void bfc_stats(const struct ar_policy *base, struct ar_policy_stats *out);
void bfc_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument);
enum ar_status bfc_validate(const struct ar_policy *base, struct ar_error *error);
uint64_t bfc_servable(const struct ar_policy *base, enum ar_policy_effort effort);
bool bfc_setting(const struct ar_policy *base, char *text, size_t text_bytes);

#define BFC_HOOKS                                                                                  \
    .destroy = bfc_destroy, .alloc = bfc_alloc, .free = bfc_free, .stats = bfc_stats,              \
    .walk = bfc_walk, .validate = bfc_validate, .servable = bfc_servable, .setting = bfc_setting

#define BFC_CAPABILITIES (AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT)

/* What the next region would be, in bytes, as the real one prints it when it runs out. */
uint64_t bfc_next_region_bytes(const struct ar_policy *base);
/* Regions held now. */
uint32_t bfc_region_count(const struct ar_policy *base);

/* ---- Between the files of the family ------------------------------------------------- */

/* Puts a free chunk that was not counted as free before into the index of its end, or makes
 * it the gap; and the opposite. Both keep the watch and the releasable bytes. */
void bfc_free_block_add(struct bfc *self, uint32_t chunk);
void bfc_free_block_remove(struct bfc *self, uint32_t chunk);

/* Cuts `chunk`, which is in no index, after `bytes`, and returns the rest: a record that is
 * free, has the same end and is in no index yet. A record must be spare. */
uint32_t bfc_cut(struct bfc *self, uint32_t chunk, uint64_t bytes);

/* Marks a chunk that is in no index as used for the request, and fills `out`. */
void bfc_hand_out(struct bfc *self, uint32_t chunk, const struct ar_policy_request *request,
                  struct ar_policy_block *out);

/* Merges a free chunk that is in no index with its free neighbours, which leave theirs.
 * Returns the result, still in none. */
uint32_t bfc_merge(struct bfc *self, uint32_t chunk);

#endif
