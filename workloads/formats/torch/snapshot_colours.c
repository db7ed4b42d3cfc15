/* The colouring of segments: rules 3 and 4 of snapshot_pools.c. */
#include "workloads/formats/torch/snapshot_passed.h"

#define COMPARISONS_MOST (UINT64_C(1) << 28) /* of segments with pairs of opposites */
#define FIRST_NEW        UINT64_C(0xfff0000) /* names of new pools, which programs do not have */
#define NEW_POOLS        64u

/* The pools of the opposites of a segment. */
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

/* The pool to try first: that of the segment that is likely of the same one, or one that both can
 * have. */
static unsigned likely_pool(const struct snapshot_passed *self,
                            const struct snapshot_passed_segment *segment, const bool *taken,
                            size_t named)
{
    unsigned first = segment->is_not_common;
    bool others[SNAPSHOT_POOLS_MOST];
    if (segment->like == SNAPSHOT_NO_SEGMENT)
        return first;
    const struct snapshot_passed_segment *like = &self->segments[segment->like];
    if (like->told || like->coloured)
        return like->pool;
    find_taken(self, segment->like, others);
    first |= like->is_not_common;
    while (first + 1 < named && (taken[first] || others[first]))
        first++;
    return first;
}

static enum ar_status colour(struct snapshot_passed *self, uint32_t at, size_t named,
                             struct ar_error *error)
{
    struct snapshot_passed_segment *segment = &self->segments[at];
    bool taken[SNAPSHOT_POOLS_MOST];
    find_taken(self, at, taken);
    unsigned first = likely_pool(self, segment, taken, named);
    bool mixed = self->world->has_pages; /* pools of segments and of ranges are kept apart */
    for (unsigned i = 0; i < (mixed ? 1 : named + 1); i++) {
        unsigned pool = i ? i - 1 : first;
        if (mixed && first)
            break;
        if (!taken[pool] && !(segment->divided && self->tree->whole[pool]) &&
            pool >= segment->is_not_common) {
            segment->pool = pool;
            segment->coloured = true;
            return AR_OK;
        }
    }
    for (unsigned i = self->new_pools; i < NEW_POOLS; i++) {
        unsigned pool;
        AR_TRY(snapshot_new_pool(self->tree, i, &pool, error));
        if (taken[pool])
            continue;
        segment->pool = pool;
        segment->coloured = true;
        return AR_OK;
    }
    self->stuck = true;
    return AR_OK;
}

static bool contradicts_itself(struct snapshot_passed *self)
{
    for (size_t i = 0; i < self->pair_count; i++) {
        const struct snapshot_passed_segment *one = &self->segments[self->pairs[i] >> 32];
        const struct snapshot_passed_segment *other = &self->segments[(uint32_t)self->pairs[i]];
        if (one->told && other->told && one->pool == other->pool) {
            self->whole = one->pool;
            return true;
        }
    }
    return false;
}

enum ar_status snapshot_passed_colour(struct snapshot_passed *self, struct ar_error *error)
{
    size_t named = self->tree->pool_count;
    self->stuck |=
        contradicts_itself(self) || self->pair_count * self->segment_count > COMPARISONS_MOST;
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < self->segment_count && !self->stuck; i++)
            if (!self->segments[i].told && self->segments[i].live == (pass == 1))
                AR_TRY(colour(self, (uint32_t)i, named, error));
    return AR_OK;
}
