/* A plan as a file in the format of google/minimalloc (CSV `id,lower,upper,size,offset`, one row
 * per block), and the check of a plan. */
#ifndef SIM_BOUNDS_PLAN_FILE_H
#define SIM_BOUNDS_PLAN_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "allocators/base/status.h"
#include "sim/bounds/blocks.h"

struct plan_row {
    char *name; /* the id, as text */
    int64_t lower, upper, size, offset;
    uint64_t line;
};

struct plan_file {
    struct plan_row *rows;
    size_t count, room;
};

/* Reads a plan. The first line names the columns, in any order; other columns are skipped. INVALID,
 * FORMAT or IO with file and line. The caller closes the plan. */
enum ar_status plan_file_read(struct plan_file *self, const char *path,
                              struct ar_error *error) AR_STATUS_CHECKED;
void plan_file_close(struct plan_file *self);

/* Writes the blocks with their offsets. Write errors stay in `stream`. */
void plan_file_write(FILE *stream, const struct bound_blocks *blocks, const uint64_t *offsets);

#define BOUND_FAULTS_MOST 20 /* that have a sentence; all are counted */
#define BOUND_FAULT_TEXT  256

struct bound_verdict {
    uint64_t faults;
    char texts[BOUND_FAULTS_MOST][BOUND_FAULT_TEXT]; /* a sentence each */
    uint64_t top_bytes;                              /* the greatest end of a block */
};

/* Checks a plan against the blocks of a trace, without sharing code with the planners: each block
 * has one row with its lifetime and size; there are no other rows; offsets are not negative and are
 * multiples of the requested alignment; no block ends beyond `capacity_bytes` (0: no limit); no two
 * blocks that live at the same time overlap. Faults of the plan are in the verdict. HOST_MEMORY. */
enum ar_status bound_check(const struct bound_blocks *blocks, const struct plan_file *plan,
                           uint64_t capacity_bytes, struct bound_verdict *verdict,
                           struct ar_error *error) AR_STATUS_CHECKED;

#endif
