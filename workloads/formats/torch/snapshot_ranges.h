/* Which pool a range of growing pages is of, where the snapshot does not say: ranges all of whose pages
 * were unmapped are not among its segments. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_RANGES_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_RANGES_H

#include "workloads/formats/torch/snapshot_world.h"

/* Once, after the rewind. `conf`: the settings of the allocator. Where it cannot tell, or need not, all stay as they are. HOST_MEMORY; INVALID
 * for too many pools. */
enum ar_status snapshot_ranges_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                    const char *conf, struct ar_error *error) AR_STATUS_CHECKED;

#endif
