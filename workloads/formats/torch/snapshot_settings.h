/* The settings of the allocator in a snapshot, and their text in PyTorch's syntax. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_SETTINGS_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/formats/import_report.h"
#include "workloads/formats/torch/snapshot_tree.h"

#define SNAPSHOT_DIVISIONS 16 /* of sizes from 1 MiB up by doubling, the last one and more */

struct snapshot_settings {
    int64_t max_split_bytes; /* -1: no limit */
    double garbage_collection_threshold;
    bool expandable_segments;
    uint64_t roundup_power2_divisions[SNAPSHOT_DIVISIONS];
};

/* Reads "max_split_size_mb:64,expandable_segments:True"; unknown settings are ignored. */
void snapshot_settings_read(const char *conf, struct snapshot_settings *out);

/* Writes the settings in `allocator_settings` of a snapshot as the text that a user would have set:
 * that of the environment, and after it what the other fields add to it. "" if there are no
 * settings. What is omitted goes to the report. */
void snapshot_conf(const struct snapshot_tree *tree, uint64_t settings, char *text, size_t room,
                   struct import_report *report);

#endif
