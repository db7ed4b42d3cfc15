/* How: the trial is run again with the other way of it; one that was in doubt before stays so. */
#include "sim/advise/doubt.h"

/* Doubts a trial that comes out otherwise with the other trace. */
static enum ar_status doubt_with(const struct trial_setup *setup, struct trace_source *trace,
                                 const char *policy, uint64_t capacity_bytes,
                                 enum trial_doubt doubt, struct trial *trial,
                                 struct ar_error *error)
{
    struct trial other = {0};
    if (!trial->begun || trial->doubt)
        return AR_OK;
    enum ar_status status = trial_run(setup, trace, policy, capacity_bytes, false, &other, error);
    if (!status && other.begun && other.passed != trial->passed)
        trial->doubt = doubt;
    return status;
}

enum ar_status doubt_tries(const struct trial_setup *setup, struct trace_source *trace,
                           const char *policy, uint64_t capacity_bytes, struct trial *trial,
                           struct ar_error *error)
{
    if (trial->passed)
        return AR_OK;
    return doubt_with(setup, trace, policy, capacity_bytes, TRIAL_TRIES, trial, error);
}

enum ar_status doubt_releases(const struct trial_setup *setup, struct trace_source *trace,
                              const char *policy, uint64_t capacity_bytes, struct trial *trial,
                              struct ar_error *error)
{
    if (!capacity_bytes)
        return AR_OK;
    return doubt_with(setup, trace, policy, capacity_bytes, TRIAL_RELEASES, trial, error);
}

enum ar_status doubt_late(const struct trial_setup *setup, struct trace_source *trace,
                          const char *policy, uint64_t capacity_bytes, struct trial *trial,
                          struct ar_error *error)
{
    struct trial_setup at_once = *setup;
    if (!capacity_bytes)
        return AR_OK;
    at_once.frees = REPLAY_AT_ONCE;
    enum ar_status status =
        doubt_with(&at_once, trace, policy, capacity_bytes, TRIAL_LATE, trial, error);
    if (status || !setup->late_bytes || capacity_bytes <= setup->late_bytes)
        return status;
    uint64_t near_bytes =
        trial->passed ? capacity_bytes - setup->late_bytes : capacity_bytes + setup->late_bytes;
    return doubt_with(setup, trace, policy, near_bytes, TRIAL_LATE, trial, error);
}
