/* What is wrong with a plan. Shares no code with what makes plans. */
#ifndef SIM_BOUNDS_CHECK_H
#define SIM_BOUNDS_CHECK_H

#include "sim/bounds/plan_file.h"

#define BOUND_FAULTS_MOST 20 /* that are told; all are counted */
#define BOUND_FAULT_TEXT  256

struct bound_verdict {
    uint64_t faults;
    char texts[BOUND_FAULTS_MOST][BOUND_FAULT_TEXT]; /* a sentence each */
    uint64_t top_bytes;                              /* the greatest end of a block */
};

/* Holds a plan against the blocks of a trace: each block has one row with its lifetime and size;
 * no other row is there; offsets are not negative and are multiples of the alignment asked for;
 * no block ends beyond `capacity_bytes` (0: no bound); no two that live at the same time overlap.
 * HOST_MEMORY; what is wrong with the plan is in the verdict. */
enum ar_status bound_check(const struct bound_blocks *blocks, const struct plan_file *plan,
                           uint64_t capacity_bytes, struct bound_verdict *verdict,
                           struct ar_error *error) AR_STATUS_CHECKED;

#endif
