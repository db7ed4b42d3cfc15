/* Finds the cause of each release of memory in a recording by replays that try the possible
 * causes. */
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

/* Replays until there is no difference, or none that another cause could explain. Then, if the
 * number of retries is recorded, replays until the number agrees, if possible. */
enum ar_status causes_find(const struct causes *causes, struct ar_error *error) AR_STATUS_CHECKED;

#endif
