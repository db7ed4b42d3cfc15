/* The settings that a snapshot tells, as the text that a user would have set. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_CONF_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_CONF_H

#include "workloads/formats/import_report.h"
#include "workloads/formats/torch/snapshot_tree.h"

/* Writes the text of `allocator_settings`: what was set in the environment, and behind it what the
 * other fields say beyond that. "" where there are no settings. What is left out, the report says. */
void snapshot_conf(const struct snapshot_tree *tree, uint64_t settings, char *text, size_t room,
                   struct import_report *report);

#endif
