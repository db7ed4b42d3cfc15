/* Whether an answer would be the other way round by something that the recording does not tell. */
#ifndef SIM_ADVISE_DOUBT_H
#define SIM_ADVISE_DOUBT_H

#include "sim/advise/trial.h"

/* One that asks of a trial of `policy` at a capacity (0: all of the card). */
typedef enum ar_status doubt_ask(const struct trial_setup *setup, struct trace_source *trace,
                                 const char *policy, uint64_t capacity_bytes, struct trial *trial,
                                 struct ar_error *error);

/* A trial that failed, once more with `trace`, in which what a library tries out may fail. */
doubt_ask doubt_tries AR_STATUS_CHECKED;

/* Any trial but with all of the card, once more with blocks that other streams used free at once: under
 * another setting they may complete earlier than was recorded. Or later, or some of them: so room for the
 * largest of them more or less must make no difference either. */
doubt_ask doubt_late AR_STATUS_CHECKED;

/* Any trial but with all of the card, once more with `trace`, in which the program releases no cache by
 * itself: where the recorded setting does not do what was recorded, releases may have been the allocator's
 * own. */
doubt_ask doubt_releases AR_STATUS_CHECKED;

#endif
