/* A snapshot that was written as JSON, json.dump(torch.cuda.memory._snapshot(), file), as the values
 * that its pickle would give. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_JSON_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_JSON_H

#include "workloads/formats/torch/pickle.h"

/* Whether a file that begins so is JSON with what only snapshots have. */
bool snapshot_json_matches(const char *head, size_t count);

/* Reads the one value that the file holds. FORMAT with file and line for what is no JSON; errors of
 * the sink. */
enum ar_status snapshot_json_read(struct trace_input *input, const struct pickle_sink *sink,
                                  uint64_t *value, struct ar_error *error) AR_STATUS_CHECKED;

#endif
