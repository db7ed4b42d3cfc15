/* Figures of a whole trace that are needed before a replay, found without a policy. Each function
 * rewinds the source, reads it to its end, and needs memory for the most blocks live at once
 * (lifetimes: for each request). Requests of zero bytes and of pinned host memory do not count,
 * because no policy gets them. */
#ifndef SIM_EXPERIMENT_SURVEY_H
#define SIM_EXPERIMENT_SURVEY_H

#include "sim/replay.h"

/* The byte-weighted median request: the smallest size such that requests of at most this size have
 * at least half of all requested bytes. 0 if there are no requests. Exact: a histogram finds the
 * bucket, and further passes divide the bucket until it holds one size. */
enum ar_status survey_median(struct trace_source *source, uint64_t *bytes,
                             struct ar_error *error) AR_STATUS_CHECKED;

/* The most bytes live at once, from a request to its free request. A probe counts if live bytes
 * stay within `card_bytes`: beyond that no allocator can serve it. */
enum ar_status survey_peak_live(struct trace_source *source, uint64_t card_bytes, uint64_t *bytes,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* The lifetime of each request, in order and in events, by the mode `frees`: to the free request,
 * or to the completion if it is recorded. Blocks that are never freed end after the last event. The
 * caller frees the array. */
enum ar_status survey_lifetimes(struct trace_source *source, enum replay_frees frees,
                                struct ar_policy_lifetime **out, size_t *count,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
