/* Which pool a segment is of, where the snapshot does not say: PyTorch 2.0 and before tell it of none,
 * later ones not of those that were given back. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_POOLS_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_POOLS_H

#include "workloads/formats/torch/snapshot_world.h"

/* Once, after the rewind. `conf`: the settings of the allocator. Where it cannot tell, or need not, all
 * stay as they are. HOST_MEMORY; INVALID for too many pools. */
enum ar_status snapshot_pools_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                   const char *conf, struct ar_error *error) AR_STATUS_CHECKED;

/* A pool that the snapshot does not name, by its number from 0. */
enum ar_status snapshot_new_pool(struct snapshot_tree *tree, unsigned number, unsigned *pool,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
