/* How well one recorded setting is predicted from another: the same program, recorded under both. */
#ifndef SIM_ADVISE_WHATIF_H
#define SIM_ADVISE_WHATIF_H

#include "sim/advise/advise.h"

struct whatif {
    /* Requests of both recordings; those that only one of them holds, as sizes go. */
    uint64_t requests_from, requests_to, only_from, only_to;
    struct trial predicted; /* `to`'s setting and limit, over what `from` asks for */
    bool recorded_passed;
    bool has_peak;
    uint64_t recorded_peak_reserved_bytes;
    char spec[1024]; /* of `to` */
};

/* `config` has the recording that is predicted from; its capacity is not used. */
enum ar_status whatif_predict(const struct advise_config *config, struct trace_source *to,
                              struct whatif *out, struct ar_error *error) AR_STATUS_CHECKED;

#endif
