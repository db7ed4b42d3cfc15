/* Writes a PyTorch memory snapshot: a pickle that pytorch.org/memory_viz and PyTorch's own
 * torch/cuda/_memory_viz.py open. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_WRITER_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_WRITER_H

#include "workloads/formats/torch/pickle_writer.h"
#include "workloads/formats/torch/snapshot_image.h"

/* Writes an image that was settled. Errors are those of the sink, and HOST_MEMORY. */
enum ar_status snapshot_write(const struct snapshot_image *image, pickle_sink *sink, void *argument,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
