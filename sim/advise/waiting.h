/* Stands around a policy that waits for pending frees where memory is short. In a recording that
 * tells when blocks completed, but not what for, they complete then, or earlier where the policy
 * waits for them: as they would have. */
#ifndef SIM_ADVISE_WAITING_H
#define SIM_ADVISE_WAITING_H

#include "sim/experiment/session.h"

/* Puts it around the session's policy, before the first request. `streams`: of the trace. HOST_MEMORY. */
enum ar_status waiting_wrap(struct session *session, uint32_t streams,
                            struct ar_error *error) AR_STATUS_CHECKED;

#endif
