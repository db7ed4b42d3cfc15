/* A policy of the BFC family on a fake backing, for its tests: short calls that fail the test on
 * any error, blocks by number, offsets as the documents give them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "allocators/policy.h"
#include "tests/support/fake_backing.h"

#define BFC_RIG_BLOCKS 1024
#define BFC_RIG_FAILED UINT64_MAX

struct bfc_rig {
    struct fake_backing backing;
    struct ar_host host;
    struct ar_policy *policy;
    struct ar_policy_block blocks[BFC_RIG_BLOCKS];
    bool live[BFC_RIG_BLOCKS];
    bool careful; /* validate after each call */
};

/* Makes the policy that `spec` names ("growth:limit=1GiB") on a backing with this cap. The
 * rig is on the heap; bfc_rig_close also checks that no memory is left. */
struct bfc_rig *bfc_rig_open(const char *spec, uint64_t cap_bytes);
void bfc_rig_close(struct bfc_rig *rig);
static inline void close_bfc_rig(struct bfc_rig **rig)
{
    bfc_rig_close(*rig);
}

/* Makes a policy as above, or says why not. */
enum ar_status bfc_rig_make(const char *spec, const struct ar_policy_context *context,
                            struct ar_policy **out, struct ar_error *error);

/* The address of the block, or BFC_RIG_FAILED. */
uint64_t bfc_rig_alloc(struct bfc_rig *rig, unsigned block, uint64_t bytes);
uint64_t bfc_rig_alloc_at(struct bfc_rig *rig, unsigned block, uint64_t bytes, uint64_t alignment,
                          bool upper_end);
void bfc_rig_free(struct bfc_rig *rig, unsigned block);
void bfc_rig_free_all(struct bfc_rig *rig);

struct ar_policy_stats bfc_rig_stats(const struct bfc_rig *rig);
void bfc_rig_check(const struct bfc_rig *rig);
