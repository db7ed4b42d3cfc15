/* What is live at the moment of the most live bytes. */
#ifndef SIM_ADVISE_HOLDERS_H
#define SIM_ADVISE_HOLDERS_H

#include "workloads/trace/source.h"

#define HOLDERS_MOST 4

/* Blocks of one tag, or where there are no tags of one size. */
struct holder {
    char tag[64];
    uint64_t bytes;       /* of all of them */
    uint64_t block_bytes; /* of one; 0 where they differ */
    uint64_t blocks;
};

struct holders {
    uint64_t bytes, event, blocks;
    uint64_t late_bytes;  /* the largest block that was let go and completed later; 0: none */
    uint64_t step, steps; /* in which step, from 1; of how many, 0: none are marked */
    struct holder at[HOLDERS_MOST]; /* the largest first */
    size_t count;
};

/* Finds them in events [0, end). Pinned memory and probes do not count. */
enum ar_status holders_find(struct trace_source *source, uint64_t end, struct holders *out,
                            struct ar_error *error) AR_STATUS_CHECKED;

#endif
