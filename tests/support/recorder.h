/* Records a policy in the form of PyTorch's memory history: a random program on a policy
 * whose memory is limited, with streams, pending frees and releases of the cache. */
#pragma once

#include "sim/fidelity/fidelity.h"
#include "workloads/trace/trace.h"

struct recorder_program {
    const char *policy; /* spec */
    uint64_t seed;
    uint64_t capacity_bytes; /* of the device */
    unsigned ops;
    uint64_t most_live_bytes;
    unsigned streams;
    unsigned use_percent;      /* of blocks that another stream uses */
    unsigned release_permille; /* of operations that release the cache */
    unsigned large_percent;    /* of requests above 1 MiB */
};

struct recorder_result {
    struct trace_source *trace;
    uint64_t releases;        /* that released memory */
    uint64_t unseen_releases; /* that released none */
    uint64_t refusals;        /* of the device */
    uint64_t failures;
    uint64_t own_releases; /* requests during which the policy released memory */
    struct fidelity_stat *stats;
    size_t stat_count;
};

void recorder_run(const struct recorder_program *program, struct recorder_result *result);
void recorder_close(struct recorder_result *result);
