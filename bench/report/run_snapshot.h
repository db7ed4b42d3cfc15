/* A PyTorch memory snapshot of one simulated run: its entries come from an observer of
 * the run, its segments and blocks from the policy in its final state. */
#ifndef BENCH_REPORT_RUN_SNAPSHOT_H
#define BENCH_REPORT_RUN_SNAPSHOT_H

#include <stdio.h>

#include "allocators/base/map.h"
#include "sim/observer.h"
#include "workloads/formats/torch/snapshot_image.h"

struct run_snapshot {
    struct snapshot_image image;
    struct ar_map live;   /* from the address of a block to the entry of its request */
    bool *free_requested; /* by entry: asked to be freed, and not complete */
    size_t free_requested_room;
};

/* `name`: of the workload. */
void run_snapshot_open(struct run_snapshot *self, const char *name);
void run_snapshot_close(struct run_snapshot *self);

/* The `memory` callback of an observer; its argument is the snapshot. */
enum ar_status run_snapshot_observe(void *self, const struct observer_event *event,
                                    struct ar_error *error);

/* Writes it, with the blocks of `policy` as they are. Errors of the stream show in the stream. */
enum ar_status run_snapshot_write(struct run_snapshot *self, const struct ar_policy *policy,
                                  FILE *stream, struct ar_error *error) AR_STATUS_CHECKED;

#endif
