/* How: the trial is run again with the other way of it; one that was in doubt before stays so. */
#include "sim/advise/doubt.h"

enum status doubt_tries(const struct trial_setup *setup, struct trace_source *trace,
                        const char *policy, uint64_t capacity_bytes, struct trial *trial,
                        struct error *error)
{
    struct trial without = {0};
    if (!trial->begun || trial->passed || trial->doubt)
        return STATUS_OK;
    enum status status = trial_run(setup, trace, policy, capacity_bytes, false, &without, error);
    if (!status && without.begun && without.passed)
        trial->doubt = TRIAL_TRIES;
    return status;
}

enum status doubt_releases(const struct trial_setup *setup, struct trace_source *trace,
                           const char *policy, uint64_t capacity_bytes, struct trial *trial,
                           struct error *error)
{
    struct trial without = {0};
    if (!trial->begun || trial->doubt)
        return STATUS_OK;
    enum status status = trial_run(setup, trace, policy, capacity_bytes, false, &without, error);
    if (!status && without.begun && without.passed != trial->passed)
        trial->doubt = TRIAL_RELEASES;
    return status;
}

enum status doubt_late(const struct trial_setup *setup, struct trace_source *trace,
                       const char *policy, uint64_t capacity_bytes, struct trial *trial,
                       struct error *error)
{
    struct trial near = {0};
    struct trial_setup other = *setup;
    if (!trial->begun || trial->doubt)
        return STATUS_OK;
    other.frees = REPLAY_AT_ONCE;
    enum status status = trial_run(&other, trace, policy, capacity_bytes, false, &near, error);
    if (!status && (!near.begun || near.passed == trial->passed) && setup->late_bytes &&
        capacity_bytes > setup->late_bytes)
        status = trial_run(setup, trace, policy,
                           trial->passed ? capacity_bytes - setup->late_bytes
                                         : capacity_bytes + setup->late_bytes,
                           false, &near, error);
    if (!status && near.begun && near.passed != trial->passed)
        trial->doubt = TRIAL_LATE;
    return status;
}
