/* The capacity from which on a setting of PyTorch passes for certain, so that a search need not
 * replay the recording there.
 *
 * 1. Before a request fails, PyTorch releases every segment without a live block. So it fails only
 *    if the segments with live blocks and the new one need more than the card has.
 * 2. With max_split_size_mb the segment of a block is bounded by the requests alone. Larger blocks
 *    than that size are never divided, so a smaller request is in a segment that was made for a
 *    smaller request, and a larger one is in a segment of its own, at most 20 MiB larger.
 * 3. The sum of these bounds over the live blocks has a maximum. With that much memory nothing
 *    fails, whatever the fragmentation. */
#ifndef SIM_ADVISE_CERTAIN_H
#define SIM_ADVISE_CERTAIN_H

#include "allocators/spec.h"
#include "sim/advise/lean.h"

/* In bytes; UINT64_MAX: not known. `policy` notices the capacity only by failed calls. */
uint64_t certain_bytes(const struct lean *lean, const struct ar_spec *policy);

#endif
