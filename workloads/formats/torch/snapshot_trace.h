/* A snapshot's history as a trace. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_TRACE_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_TRACE_H

#include "workloads/formats/torch/snapshot_marks.h"
#include "workloads/formats/torch/snapshot_world.h"
#include "workloads/trace/trace.h"

/* Appends the state at the start, all events and marks, and the state at the end. Lets go of the tree's
 * records on the way. */
enum ar_status snapshot_trace(struct snapshot_tree *tree, struct snapshot_world *worlds,
                              size_t count, const struct snapshot_marks *marks,
                              struct trace_memory *memory, struct import_report *report,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
