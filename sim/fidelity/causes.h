/* Which of several explanations for what a recording gives back is the right one: found by replays
 * that try them. */
#ifndef SIM_FIDELITY_CAUSES_H
#define SIM_FIDELITY_CAUSES_H

#include "sim/fidelity/fidelity.h"
#include "sim/fidelity/recording.h"

struct causes {
    struct recording *recording;
    struct fidelity_result *result; /* of the last replay */
    enum ar_status (*replay)(void *argument, struct ar_error *error);
    void *argument;
};

/* Replays until there is no difference, or none that another cause could explain; then, where
 * the number of retries is recorded, until it is met, if it can be. */
enum ar_status causes_find(const struct causes *causes, struct ar_error *error) AR_STATUS_CHECKED;

#endif
