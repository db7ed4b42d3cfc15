/* Whether an answer would be the other way round by something that the recording does not tell. */
#ifndef SIM_ADVISE_DOUBT_H
#define SIM_ADVISE_DOUBT_H

#include "sim/advise/trial.h"

/* A trial that failed, once more with `trace`, in which what a library tries out may fail. */
enum status doubt_tries(const struct trial_setup *setup, struct trace_source *trace,
                        const char *policy, uint64_t capacity_bytes, struct trial *trial,
                        struct error *error) STATUS_CHECKED;

/* Any trial, once more with blocks that other streams used free at once: under another setting
 * they may complete earlier than was recorded. Or later, or some of them: so room for the largest
 * of them more or less must make no difference either. */
enum status doubt_late(const struct trial_setup *setup, struct trace_source *trace,
                       const char *policy, uint64_t capacity_bytes, struct trial *trial,
                       struct error *error) STATUS_CHECKED;

/* Any trial, once more with `trace`, in which the program releases no cache by itself: where the
 * recorded setting does not do what was recorded, releases may have been the allocator's own. */
enum status doubt_releases(const struct trial_setup *setup, struct trace_source *trace,
                           const char *policy, uint64_t capacity_bytes, struct trial *trial,
                           struct error *error) STATUS_CHECKED;

#endif
