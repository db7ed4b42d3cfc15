/* Offline problems for tests: from MiniMalloc's CSV, or drawn. */
#pragma once

#include "allocators/base/rng.h"
#include "allocators/planning/packing.h"

#define PLANNING_RIG_MOST 20000

/* Reads id,lower,upper,size; a failure stops the test. The caller frees the blocks. */
struct packing_block *planning_rig_read(const char *path, size_t *count);

/* `count` blocks of 1 to `bytes_most` bytes that live in [0, moments). */
void planning_rig_draw(struct ar_rng *rng, struct packing_block *blocks, size_t count,
                       uint64_t bytes_most, uint64_t moments);

/* The same, until almost `full_bytes` are live at once, but not more: simple rules find a plan
 * without waste for few such problems. Returns the count, at most `most`. */
size_t planning_rig_fill(struct ar_rng *rng, struct packing_block *blocks, size_t most,
                         uint64_t full_bytes, uint64_t bytes_most, uint64_t moments);

/* The peak of live bytes, counted moment by moment. */
uint64_t planning_rig_peak(const struct packing_block *blocks, size_t count);

/* Whether no two blocks that live at the same time overlap and all end at or below `top_bytes`,
 * one of them at it. Checks every pair. */
bool planning_rig_is_plan(const struct packing_block *blocks, size_t count, const uint64_t *offsets,
                          uint64_t top_bytes);
