/* Memory that a recording gave back: under a limit or a full card that it does not tell of, or by
 * the program's own release of its cache. */
#ifndef SIM_ADVISE_PRESSURE_H
#define SIM_ADVISE_PRESSURE_H

#include "sim/fidelity/fidelity.h"

struct pressure {
    uint64_t least_bytes, most_bytes; /* the limit lies between them; 0, 0: there is none */
};

/* Looks for a limit under which the policy of `text`, which agrees with the recording by `held`, does
 * the same with fewer releases by the program; `held` becomes what it finds then. */
enum ar_status pressure_find(struct trace_source *source, const char *text, uint64_t seed,
                             struct fidelity_result *held, struct pressure *out,
                             struct ar_error *error) AR_STATUS_CHECKED;

#endif
