/* What must be known of a whole trace before it is replayed, found without a policy. Each
 * function rewinds the source, reads it to its end, and needs memory bounded by the most blocks
 * live at once (lifetimes excepted: one for each request). Requests of zero bytes and of pinned
 * host memory do not count: no policy sees them. */
#ifndef SIM_EXPERIMENT_SURVEY_H
#define SIM_EXPERIMENT_SURVEY_H

#include "sim/replay.h"

/* The byte-weighted median request: the smallest size such that at least half of all bytes
 * asked for come in requests of at most it. 0 where there are no requests. Exact: a histogram
 * finds the bucket, further passes divide that bucket until it holds one size. */
enum ar_status survey_median(struct trace_source *source, uint64_t *bytes,
                             struct ar_error *error) AR_STATUS_CHECKED;

/* The most bytes live at once, from request to let-go. A probe counts where it would leave live
 * bytes within `card_bytes`: beyond that no allocator serves it. */
enum ar_status survey_peak_live(struct trace_source *source, uint64_t card_bytes, uint64_t *bytes,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* Each request's life in the order of requests, in events, as `frees` has it: to the let-go,
 * or to the completion where that is recorded. Blocks never freed die after the last event.
 * The caller frees the array. */
enum ar_status survey_lifetimes(struct trace_source *source, enum replay_frees frees,
                                struct ar_policy_lifetime **out, size_t *count,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
