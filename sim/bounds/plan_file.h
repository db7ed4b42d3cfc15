/* A plan as a file, in MiniMalloc's form: CSV `id,lower,upper,size,offset`, one row a block. */
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

/* Reads a plan. The first line names the columns, in any order; others than the five are skipped.
 * INVALID, FORMAT or IO with file and line. The caller closes it. */
enum ar_status plan_file_read(struct plan_file *self, const char *path,
                              struct ar_error *error) AR_STATUS_CHECKED;
void plan_file_close(struct plan_file *self);

/* Writes the blocks with their offsets. Errors show in the stream. */
void plan_file_write(FILE *stream, const struct bound_blocks *blocks, const uint64_t *offsets);

#endif
