/* Which live blocks stand between the free ranges of a policy. */
#ifndef SIM_EXPLAIN_PINS_H
#define SIM_EXPLAIN_PINS_H

#include "sim/explain/births.h"
#include "sim/explain/explain.h"

/* Fills holes, indices, stretch and pins of `out`, whose event and bytes are those of the failure;
 * `asked_bytes` are those of all requests until then. HOST_MEMORY. */
enum ar_status pins_find(const struct ar_policy *policy, const struct births *births,
                         uint64_t asked_bytes, struct explain_result *out,
                         struct ar_error *error) AR_STATUS_CHECKED;

#endif
