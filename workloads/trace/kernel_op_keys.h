/* The kernel op of a k event and its blocks: the keys op, out, in, shape and type, which FORMAT.md
 * describes. tables.h stores them unchanged, as unknown keys; the functions here read and write
 * them. The device that runs them defines the operations and types.
 *
 * A block is named by its id, or `~N`, counted back from the latest request: ~1 is the latest. */
#pragma once

#include "allocators/base/status.h"

#define TRACE_KERNEL_OP_INPUTS     4
#define TRACE_KERNEL_OP_DIMENSIONS 3
#define TRACE_KERNEL_OP_NAME       16 /* bytes of an operation or a type, with NUL */

struct trace_reference {
    bool back;       /* counted back from the latest request */
    uint64_t number; /* an id, or a count from 1 */
};

struct trace_kernel_op {
    char op[TRACE_KERNEL_OP_NAME]; /* "": the kernel has no kernel op */
    char type[TRACE_KERNEL_OP_NAME];
    struct trace_reference out;
    struct trace_reference in[TRACE_KERNEL_OP_INPUTS];
    unsigned input_count;
    uint64_t shape[TRACE_KERNEL_OP_DIMENSIONS];
    unsigned dimension_count;
};

/* Room for the text of any kernel op, with its NUL. */
#define TRACE_KERNEL_OP_TEXT 320

/* Reads the unknown keys of an event, "x=1,op=set,..", or NULL; other keys are skipped. INVALID
 * with a sentence for an operation without an output, or an invalid reference, shape or name. */
enum ar_status trace_kernel_op_parse(const char *rest, struct trace_kernel_op *out,
                                     struct ar_error *error);

/* The canonical text: op, out, in, shape, type. */
void trace_kernel_op_print(const struct trace_kernel_op *kernel_op,
                           char text[TRACE_KERNEL_OP_TEXT]);

/* The id of a reference, if `next_id` is that of the next request. False: before the first request,
 * or not requested yet. */
bool trace_kernel_op_id(struct trace_reference reference, uint64_t next_id, uint64_t *id);

/* Writes the keys of `rest` except those of a kernel op to `text`, which has room for all of them;
 * then `kernel_op`, unless it is NULL. */
void trace_kernel_op_replace(const char *rest, const struct trace_kernel_op *kernel_op, char *text,
                             size_t room);
