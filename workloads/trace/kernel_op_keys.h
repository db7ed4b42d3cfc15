/* What a kernel does with which blocks: the keys op, out, in, shape and type of a k event, as
 * FORMAT.md describes them. They are among the keys that tables.h keeps as they are; this reads and
 * writes them. Which operations and types there are is up to the device that runs them.
 *
 * A block is named by its id, or, `~N`, counted back from the latest request: ~1 is the latest.
 * A program that repeats itself then repeats its keys as well, so that they stay few. */
#ifndef WORKLOADS_TRACE_KERNEL_OP_KEYS_H
#define WORKLOADS_TRACE_KERNEL_OP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

#define TRACE_KERNEL_OP_INPUTS     4
#define TRACE_KERNEL_OP_DIMENSIONS 3
#define TRACE_KERNEL_OP_NAME       16 /* bytes of the name of an operation or a type, with its end */

struct trace_reference {
    bool back;       /* counted back from the latest request */
    uint64_t number; /* an id; or from 1: 1 is the latest */
};

struct trace_kernel_op {
    char op[TRACE_KERNEL_OP_NAME]; /* "": no work, just a kernel */
    char type[TRACE_KERNEL_OP_NAME];
    struct trace_reference out;
    struct trace_reference in[TRACE_KERNEL_OP_INPUTS];
    unsigned input_count;
    uint64_t shape[TRACE_KERNEL_OP_DIMENSIONS];
    unsigned dimension_count;
};

/* Room for the text of any work, with its end. */
#define TRACE_KERNEL_OP_TEXT 320

/* Reads the unknown keys of an event, "x=1,op=set,..", or NULL; other keys are skipped. INVALID
 * with a sentence: an operation without an output, a reference, shape or name that cannot be. */
enum ar_status trace_kernel_op_parse(const char *rest, struct trace_kernel_op *out,
                                     struct ar_error *error) AR_STATUS_CHECKED;

/* The canonical text: op, out, in, shape, type. */
void trace_kernel_op_print(const struct trace_kernel_op *kernel_op,
                           char text[TRACE_KERNEL_OP_TEXT]);

/* The id that a reference means where `next_id` is that of the next request. False: one before
 * the first, or not requested yet. */
bool trace_kernel_op_id(struct trace_reference reference, uint64_t next_id, uint64_t *id);

/* Writes the keys of `rest` that are not about work to `text`, which has room for all of them;
 * then `work`, if it is not NULL. */
void trace_kernel_op_replace(const char *rest, const struct trace_kernel_op *kernel_op, char *text,
                             size_t room);

#endif
