/* How: PyTorch takes the smallest free block that is large enough, of one stream, one kind (small or
 * large) and one pool, and makes a segment where there is none. The history says which it took. So,
 * going forward through it with all blocks in hand:
 *
 * 1. A free block that was passed over, since it would have been taken, or would have spared a
 *    segment, lies in a segment of another pool than the one that was taken.
 * 2. Where cached segments are given back, one that is wholly free and stays is not of the common
 *    pool; unless one is known to be of it: then only a private pool was emptied. Settings may let a
 *    request give back a part of the common pool's: that is tried where all of them contradict.
 * 3. Segments are coloured, those that were given back first, else in the order in which they were
 *    made: each gets the first pool that none of its opposites has: the common one, those that are
 *    named, new ones. Any colouring without a conflict explains all places of the history, which is
 *    what a policy is held against.
 * 4. What contradicts this (a block taken that is not free, a conflict among those named) means that
 *    settings were in force that are not known here: then nothing is told.
 *
 * Source: get_free_block and release_cached_blocks of PyTorch's allocator, as the policy `torch` has
 * them; the inference is this project's. */
#include "workloads/formats/torch/snapshot_pools.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/formats/torch/snapshot_passed.h"

#define COMPARISONS_MOST (UINT64_C(1) << 28) /* of segments with pairs of opposites */
#define FIRST_NEW        UINT64_C(0xfff0000) /* names of new pools, which programs do not have */
#define NEW_POOLS        64u

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the pools of a snapshot");
}

/* ---- colours --------------------------------------------------------------------------- */

/* The segments that are there at the end, as the snapshot tells of them. */
static void take_end(struct snapshot_passed *self)
{
    uint64_t at;
    for (size_t i = 0; i < self->segment_count; i++) {
        struct snapshot_passed_segment *segment = &self->segments[i];
        if (!segment->live || segment->told || !ar_map_get(&self->final_at, segment->address, &at))
            continue;
        segment->pool = self->world->final_areas[at].pool;
        segment->told = self->world->final_areas[at].pool_told;
    }
}

/* Which pools the opposites of a segment have. */
static void find_taken(const struct snapshot_passed *self, uint32_t segment, bool *taken)
{
    memset(taken, 0, SNAPSHOT_POOLS_MOST * sizeof *taken);
    for (size_t i = 0; i < self->pair_count; i++) {
        uint32_t one = (uint32_t)(self->pairs[i] >> 32), other = (uint32_t)self->pairs[i];
        uint32_t opposite = one == segment ? other : other == segment ? one : SNAPSHOT_NO_SEGMENT;
        if (opposite != SNAPSHOT_NO_SEGMENT &&
            (self->segments[opposite].told || self->segments[opposite].coloured))
            taken[self->segments[opposite].pool] = true;
    }
}

enum ar_status snapshot_new_pool(struct snapshot_tree *tree, unsigned number, unsigned *pool,
                                 struct ar_error *error)
{
    return snapshot_pool(tree, pickle_make(PICKLE_PAIR, (FIRST_NEW + number) << 28), pool, error);
}

static enum ar_status colour(struct snapshot_passed *self, uint32_t at, size_t named,
                             struct ar_error *error)
{
    struct snapshot_passed_segment *segment = &self->segments[at];
    bool taken[SNAPSHOT_POOLS_MOST];
    find_taken(self, at, taken);
    for (unsigned pool = segment->is_not_common; pool < named; pool++)
        if (!taken[pool]) {
            segment->pool = pool;
            segment->coloured = true;
            return AR_OK;
        }
    for (unsigned i = 0; i < NEW_POOLS; i++) {
        unsigned pool;
        enum ar_status status = snapshot_new_pool(self->tree, i, &pool, error);
        if (status)
            return status;
        if (taken[pool])
            continue;
        segment->pool = pool;
        segment->coloured = true;
        return AR_OK;
    }
    self->stuck = true;
    return AR_OK;
}

static bool contradicts_itself(const struct snapshot_passed *self)
{
    for (size_t i = 0; i < self->pair_count; i++) {
        const struct snapshot_passed_segment *one = &self->segments[self->pairs[i] >> 32];
        const struct snapshot_passed_segment *other = &self->segments[(uint32_t)self->pairs[i]];
        if (one->told && other->told && one->pool == other->pool)
            return true;
    }
    return false;
}

static enum ar_status colour_all(struct snapshot_passed *self, struct ar_error *error)
{
    size_t named = self->tree->pool_count;
    enum ar_status status = AR_OK;
    take_end(self);
    self->stuck |=
        contradicts_itself(self) || self->pair_count * self->segment_count > COMPARISONS_MOST;
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < self->segment_count && !status && !self->stuck; i++)
            if (!self->segments[i].told && self->segments[i].live == (pass == 1))
                status = colour(self, (uint32_t)i, named, error);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------- */

/* Puts what was found where the conversion looks for it. */
static void hand_out(struct snapshot_passed *self)
{
    struct snapshot_world *world = self->world;
    uint64_t at;
    for (size_t i = 0; i < world->area_count; i++)
        world->areas[i].pool = self->segments[i].pool;
    for (size_t i = 0; i < world->place_count; i++) {
        const struct snapshot_area *area = snapshot_area_at(world, world->places[i].address);
        if (area)
            world->places[i].pool = area->pool;
    }
    for (size_t i = 0; i < world->event_count; i++) {
        struct snapshot_record *record = snapshot_world_event(world, self->tree, i);
        if (self->of_event[i] != SNAPSHOT_NO_SEGMENT)
            record->pool = (self->segments[self->of_event[i]].pool + 1) & (SNAPSHOT_POOLS_MOST - 1);
    }
    for (size_t i = 0; i < self->segment_count; i++) {
        const struct snapshot_passed_segment *segment = &self->segments[i];
        world->private_pools += !segment->told && segment->pool;
        if (segment->live && ar_map_get(&self->final_at, segment->address, &at))
            world->final_areas[at].pool = segment->pool;
    }
    world->unknown_pools = 0;
    world->tells_pools = true;
}

static enum ar_status tell(struct snapshot_passed *self, struct ar_error *error)
{
    const struct snapshot_world *world = self->world;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < world->final_area_count && !status; i++)
        status = ar_map_put(&self->final_at, world->final_areas[i].address, i);
    if (status)
        return no_memory(error);
    status = snapshot_passed_find(self, error);
    if (!status && !self->stuck)
        status = colour_all(self, error);
    if (!status && !self->stuck)
        hand_out(self);
    return status;
}

/* The settings, as the policy reads them. False: it refuses them. */
static bool read_settings(const char *conf, struct torch_settings *out)
{
    const struct torch_values values = {
        .conf = conf, .max_non_split_rounding_mb = 20, .large_segment_size_mb = 20};
    struct ar_error ignored;
    return torch_settings_read(&values, out, &ignored) == AR_OK && !out->expandable;
}

enum ar_status snapshot_pools_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                   const char *conf, struct ar_error *error)
{
    struct torch_settings settings;
    if (!world->event_count || (world->tells_pools && !world->unknown_pools) || world->has_pages ||
        !read_settings(conf, &settings))
        return AR_OK;
    struct snapshot_passed *self = calloc(1, sizeof *self);
    if (!self)
        return no_memory(error);
    enum ar_status status = AR_OK;
    bool stuck = true;
    for (unsigned in_part = 0; in_part < 2 && stuck && !status; in_part++) {
        *self = (struct snapshot_passed){
            .world = world, .tree = tree, .settings = settings, .in_part = in_part};
        status = tell(self, error);
        stuck = self->stuck;
        snapshot_passed_close(self);
    }
    free(self);
    return status;
}
