/* Placement with all that the short path leaves out: alignments above 256 bytes, and the
 * two ends of a pool. See two_ended.c. */
#ifndef ALLOCATORS_POLICIES_BFC_TWO_ENDED_H
#define ALLOCATORS_POLICIES_BFC_TWO_ENDED_H

#include <stdbool.h>
#include <stdint.h>

struct bfc;
struct ar_policy_request;
struct ar_policy_block;

/* Serves the request from what is free; false where nothing fits. Two records must be spare. */
bool bfc_take_general(struct bfc *self, const struct ar_policy_request *request,
                      struct ar_policy_block *out);

/* Before a freed chunk is merged: one that lies at the gap joins it. */
void bfc_return_to_gap(struct bfc *self, uint32_t chunk);

#endif
