#pragma once

#include "sim/experiment/session.h"

/* Wraps the session's policy, before the first request, for a recording that contains completions
 * but not the uses of blocks by other streams. A block completes when it was recorded to, or
 * earlier if the policy waits for it. `streams` is the number of streams of the trace.
 * HOST_MEMORY. */
enum ar_status waiting_wrap(struct session *session, uint32_t streams, struct ar_error *error);
