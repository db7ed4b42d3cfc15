/* How: PyTorch takes the smallest free block that is large enough, of one stream, one kind (small
 * or large) and one pool, and makes a segment if there is none. The history shows which block it
 * took. So all blocks are followed forward through the history, the free ones in a tree for each
 * stream and kind, by size and then address, as PyTorch has them:
 *
 * 1. A free block that PyTorch would have taken, or that would have spared a segment, but passed
 *    over, is in a segment of another pool than the block that it took.
 * 2. When cached segments are released, one that is wholly free and remains is not of the common
 *    pool, unless one is known to be of it or a block is still pending: then private pools were
 *    deleted, which waits for their blocks and releases their segments alone. With some settings a
 *    request releases a part of the common pool, the oldest blocks or the largest: of the
 *    explanations without contradictions the one with the fewest private segments is taken.
 * 3. If two segments of a pool that the snapshot names cannot be of one pool, or a block at the end
 *    is much larger than its request, the pool hands out whole blocks (MemPool(no_split=True)).
 * 4. Segments are coloured, those that were released first, else in the order of their creation:
 *    each gets the first pool that none of its opposites has: the common one, the named ones, new
 *    ones. Any colouring without a conflict explains all addresses of the history, with which a
 *    policy is compared.
 * 5. A contradiction (a block is taken that is not free, a conflict among the named pools) means
 *    that unknown settings were in force: then nothing is inferred.
 * 6. A release goes through the pools, the common one first, and in each through the kinds (large
 *    segments first in the common pool, small ones first in others), and in these by stream, size
 *    and address. If the order of a run of released segments breaks, another pool begins.
 * 7. If the largest blocks of a stream were released for a request beyond the limit, the new
 *    segment is likely of their pool: both get one pool if they can.
 * 8. If the program changed its settings, the history has segments and ranges that grow by pages.
 *    Blocks of ranges are left out here (snapshot_ranges.c looks at them).
 *
 * Source: get_free_block and release_cached_blocks of PyTorch's allocator, as the policy `torch`
 * has them; the inference is this project's. */

#include "allocators/base/array.h"
#include "allocators/base/range_tree.h"
#include "allocators/policies/torch/torch.h"
#include "workloads/formats/torch/snapshot_passed.h"

#define USED    UINT64_C(1)
#define PENDING UINT64_C(2) /* a used block whose free is requested */

#define LAST 4u /* after four explanations of releases: the best of them */

/* ---- blocks ---------------------------------------------------------------------------- */

static struct ar_range_node *node_of(struct snapshot_passed *self, uint32_t block)
{
    return &self->blocks.nodes[block];
}

static bool is_used(struct snapshot_passed *self, uint32_t block)
{
    return node_of(self, block)->extra & USED;
}

static uint32_t segment_index(struct snapshot_passed *self, uint32_t block)
{
    return (uint32_t)(node_of(self, block)->extra >> 2);
}

static struct snapshot_passed_segment *segment_of(struct snapshot_passed *self, uint32_t block)
{
    return &self->segments[segment_index(self, block)];
}

static uint32_t *root_of(struct snapshot_passed *self, uint32_t block)
{
    return &self->groups[segment_of(self, block)->group].root;
}

/* A new block after another one of its segment (0: the first). It is in no tree. */
static enum ar_status make_block(struct snapshot_passed *self, uint64_t address, uint64_t bytes,
                                 uint32_t segment, uint32_t previous, uint32_t *out,
                                 struct ar_error *error)
{
    if (!ar_range_pool_reserve(&self->blocks, 1))
        return snapshot_passed_no_memory(error);
    uint32_t block = *out = ar_range_pool_take(&self->blocks);
    struct ar_range_node *node = node_of(self, block);
    node->address = address;
    node->bytes = bytes;
    node->extra = (uint64_t)segment << 2;
    node->previous = previous;
    node->next = previous ? node_of(self, previous)->next : 0;
    if (node->next)
        node_of(self, node->next)->previous = block;
    if (previous)
        node_of(self, previous)->next = block;
    return ar_map_put(&self->at, address, block) ? snapshot_passed_no_memory(error) : AR_OK;
}

static void drop_block(struct snapshot_passed *self, uint32_t block)
{
    const struct ar_range_node *node = node_of(self, block);
    ar_map_remove(&self->at, node->address);
    if (node->previous)
        node_of(self, node->previous)->next = node->next;
    if (node->next)
        node_of(self, node->next)->previous = node->previous;
    ar_range_pool_give(&self->blocks, block);
}

static void set_free(struct snapshot_passed *self, uint32_t block)
{
    node_of(self, block)->extra &= ~UINT64_C(3);
    ar_range_tree_insert(&self->blocks, root_of(self, block), AR_RANGE_BY_SIZE, block);
}

static void set_used(struct snapshot_passed *self, uint32_t block)
{
    ar_range_tree_remove(&self->blocks, root_of(self, block), AR_RANGE_BY_SIZE, block);
    node_of(self, block)->extra |= USED;
}

static void set_pending(struct snapshot_passed *self, uint32_t block)
{
    node_of(self, block)->extra |= PENDING;
    segment_of(self, block)->pending++;
    self->pending++;
}

/* Joins a block that is in no tree with a free neighbour after it. */
static void absorb_next(struct snapshot_passed *self, uint32_t block)
{
    uint32_t next = node_of(self, block)->next;
    if (!next || is_used(self, next))
        return;
    set_used(self, next);
    node_of(self, block)->bytes += node_of(self, next)->bytes;
    drop_block(self, next);
}

/* Whether a request leaves a rest of a block: PyTorch gives a small rest of a large block to the
 * request, and all of one that must not be split. */
static bool leaves_rest(const struct snapshot_passed *self, bool small, unsigned pool,
                        uint64_t bytes, uint64_t rest_bytes)
{
    if (self->tree->whole[pool])
        return false;
    if (small || self->settings.expandable)
        return rest_bytes >= TORCH_MIN_BLOCK_BYTES;
    return bytes < self->settings.max_split_bytes && rest_bytes > TORCH_SMALL_BYTES;
}

/* ---- pages: rule 8 ---------------------------------------------------------------------- */

#define PAGE       (2 * AR_MIB) /* every page is a multiple of it */
#define PAGES_MOST (UINT64_C(1) << 22)

static enum ar_status add_pages(struct snapshot_passed *self, uint64_t address, uint64_t bytes,
                                struct ar_error *error)
{
    enum ar_status status = AR_OK;
    self->stuck |= bytes / PAGE + self->pages.count > PAGES_MOST;
    for (uint64_t page = address / PAGE; !self->stuck && !status && page * PAGE < address + bytes;
         page++)
        status = ar_map_put(&self->pages, page, 1);
    return status ? snapshot_passed_no_memory(error) : AR_OK;
}

static bool is_in_range(const struct snapshot_passed *self, uint64_t address)
{
    uint64_t seen;
    return self->pages.count && ar_map_get(&self->pages, address / PAGE, &seen);
}

/* ---- segments -------------------------------------------------------------------------- */

static enum ar_status group_for(struct snapshot_passed *self, unsigned stream, bool small,
                                uint32_t *out, struct ar_error *error)
{
    for (*out = 0; *out < self->group_count; ++*out)
        if (self->groups[*out].stream == stream && self->groups[*out].small == small)
            return AR_OK;
    const struct snapshot_passed_group group = {.stream = stream, .small = small};
    return AR_APPEND(self->groups, self->group_count, self->group_room, group, error,
                     "the pools of a snapshot");
}

static enum ar_status add_segment(struct snapshot_passed *self,
                                  const struct snapshot_passed_segment *given, unsigned stream,
                                  bool small, struct ar_error *error)
{
    AR_TRY(AR_APPEND(self->segments, self->segment_count, self->segment_room, *given, error,
                     "the pools of a snapshot"));
    struct snapshot_passed_segment *segment = &self->segments[self->segment_count - 1];
    segment->live = true;
    segment->like = SNAPSHOT_NO_SEGMENT;
    return group_for(self, stream, small, &segment->group, error);
}

/* The blocks of a segment of the start; `*place` is the first of them. */
static enum ar_status lay_out(struct snapshot_passed *self, const struct snapshot_area *area,
                              size_t *place, struct ar_error *error)
{
    const struct snapshot_world *world = self->world;
    uint32_t segment = (uint32_t)self->segment_count - 1, last = 0;
    uint64_t at = area->address, end = area->address + area->bytes;
    while (*place < world->place_count && world->places[*place].address < at)
        ++*place; /* in no segment */
    for (; at < end; at += node_of(self, last)->bytes) {
        const struct snapshot_place *next =
            *place < world->place_count && world->places[*place].address < end
                ? &world->places[*place]
                : NULL;
        bool used = next && next->address <= at;
        uint64_t bytes = (next ? next->address : end) - at;
        if (used) {
            const struct snapshot_place *after = next + 1;
            uint64_t limit =
                ++*place < world->place_count && after->address < end ? after->address : end;
            bytes = next->granted_bytes ? next->granted_bytes
                                        : torch_round(&self->settings, next->requested_bytes);
            if (!next->granted_bytes &&
                !leaves_rest(self, area->small, area->pool, bytes, limit - at - bytes))
                bytes = limit - at;
            self->stuck |= next->address != at || bytes > limit - at || !bytes;
        }
        if (self->stuck)
            return AR_OK;
        AR_TRY(make_block(self, at, bytes, segment, last, &last, error));
        if (!used)
            set_free(self, last);
        else
            node_of(self, last)->extra |= USED;
        if (used && next->state == SNAPSHOT_PENDING)
            set_pending(self, last);
    }
    return AR_OK;
}

static enum ar_status begin(struct snapshot_passed *self, struct ar_error *error)
{
    const struct snapshot_world *world = self->world;
    size_t place = 0;
    for (size_t i = 0; i < world->areas.count && !self->stuck; i++) {
        const struct snapshot_area *area = &world->areas.items[i];
        const struct snapshot_passed_segment segment = {.address = area->address,
                                                        .bytes = area->bytes,
                                                        .pool = area->pool,
                                                        .told = area->pool_told};
        AR_TRY(add_segment(self, &segment, area->stream, area->small, error));
        self->held_bytes += area->bytes;
        if (area->expandable) {
            self->segments[i].told = true;
            self->segments[i].live = false;
            AR_TRY(add_pages(self, area->address, area->bytes, error));
            continue;
        }
        AR_TRY(lay_out(self, area, &place, error));
    }
    return AR_OK;
}

/* ---- blocks passed over ---------------------------------------------------------------- */

enum ar_status snapshot_passed_oppose(struct snapshot_passed *self, uint32_t one, uint32_t other,
                                      struct ar_error *error)
{
    uint64_t pair = one < other ? (uint64_t)one << 32 | other : (uint64_t)other << 32 | one, seen;
    if (one == other) {
        self->whole = self->segments[one].told ? self->segments[one].pool : 0;
        self->stuck = true;
        return AR_OK;
    }
    if (ar_map_get(&self->opposites, pair, &seen))
        return AR_OK;
    if (ar_map_put(&self->opposites, pair, 1) ||
        !AR_ARRAY_ADD(self->pairs, self->pair_count, self->pair_room, pair))
        return snapshot_passed_no_memory(error);
    return AR_OK;
}

/* Blocks of so many bytes and more are not used for a request, if there is a limit on splitting. */
static uint64_t most_for(const struct snapshot_passed *self, uint64_t bytes)
{
    const struct torch_settings *settings = &self->settings;
    if (settings->max_split_bytes == UINT64_MAX)
        return UINT64_MAX;
    return bytes < settings->max_split_bytes ? settings->max_split_bytes
                                             : bytes + settings->max_non_split_rounding_bytes;
}

/* The free blocks that would have served a request before `block`; all that would if it is
 * fresh. */
static enum ar_status find_passed(struct snapshot_passed *self, uint32_t block, uint64_t bytes,
                                  bool fresh, struct ar_error *error)
{
    const uint32_t root = *root_of(self, block);
    const uint64_t most_bytes = most_for(self, bytes);
    const uint32_t taken = segment_index(self, block);
    uint64_t address = 0;
    while (!self->stuck) {
        uint32_t other = ar_range_tree_best(&self->blocks, root, bytes, address);
        if (!other || (other == block && !fresh) || node_of(self, other)->bytes >= most_bytes)
            break;
        if (other != block)
            AR_TRY(snapshot_passed_oppose(self, taken, segment_index(self, other), error));
        bytes = node_of(self, other)->bytes;
        address = node_of(self, other)->address + 1;
        self->stuck |= ++self->steps >> SNAPSHOT_STEPS_BITS != 0;
    }
    return AR_OK;
}

/* ---- entries --------------------------------------------------------------------------- */

static enum ar_status take_request(struct snapshot_passed *self,
                                   const struct snapshot_record *record, size_t event,
                                   struct ar_error *error)
{
    uint64_t found, bytes = torch_round(&self->settings, record->bytes);
    bool small = bytes <= TORCH_SMALL_BYTES;
    uint32_t rest, block = ar_map_get(&self->at, record->address, &found) ? (uint32_t)found : 0;
    if (!record->bytes)
        return AR_OK;
    self->stuck |= !block || is_used(self, block) || node_of(self, block)->bytes < bytes ||
                   self->groups[segment_of(self, block)->group].small != small ||
                   self->groups[segment_of(self, block)->group].stream != record->stream;
    if (self->stuck)
        return AR_OK;
    uint32_t segment = segment_index(self, block);
    self->of_event[event] = segment;
    self->segments[segment].divided |= record->address != self->segments[segment].address;
    enum ar_status status = find_passed(self, block, bytes, segment == self->fresh, error);
    self->fresh = SNAPSHOT_NO_SEGMENT;
    AR_TRY(status);
    set_used(self, block);
    uint64_t left_bytes = node_of(self, block)->bytes - bytes;
    if (!leaves_rest(self, small, segment_of(self, block)->told ? segment_of(self, block)->pool : 0,
                     bytes, left_bytes))
        return AR_OK;
    node_of(self, block)->bytes = bytes;
    AR_TRY(make_block(self, record->address + bytes, left_bytes, segment, block, &rest, error));
    set_free(self, rest);
    return AR_OK;
}

static void take_requested_free(struct snapshot_passed *self, const struct snapshot_record *record)
{
    uint64_t found;
    uint32_t block = ar_map_get(&self->at, record->address, &found) ? (uint32_t)found : 0;
    if (block && is_used(self, block) && !(node_of(self, block)->extra & PENDING))
        set_pending(self, block);
}

static void take_free(struct snapshot_passed *self, const struct snapshot_record *record,
                      size_t event)
{
    uint64_t found;
    uint32_t block = ar_map_get(&self->at, record->address, &found) ? (uint32_t)found : 0;
    if (!block || !is_used(self, block)) {
        self->stuck = true;
        return;
    }
    if (node_of(self, block)->extra & PENDING) {
        segment_of(self, block)->pending--;
        self->pending--;
    }
    absorb_next(self, block);
    uint32_t before = node_of(self, block)->previous;
    if (before && !is_used(self, before)) {
        set_used(self, before);
        node_of(self, before)->bytes += node_of(self, block)->bytes;
        drop_block(self, block);
        block = before;
    }
    set_free(self, block);
    segment_of(self, block)->freed_at = event;
}

static enum ar_status take_segment(struct snapshot_passed *self,
                                   const struct snapshot_record *record, size_t event,
                                   struct ar_error *error)
{
    uint64_t seen, last, at;
    struct snapshot_passed_segment segment = {.address = record->address,
                                              .bytes = record->bytes,
                                              .pool = record->pool ? record->pool - 1 : 0,
                                              .told = record->pool != 0};
    if (!segment.told && ar_map_get(&self->made_at, record->address, &last) && last == event &&
        ar_map_get(&self->final_at, record->address, &at)) { /* it exists at the end */
        segment.pool = self->world->final_areas[at].pool;
        segment.told = self->world->final_areas[at].pool_told;
    }
    self->stuck |= !record->bytes || ar_map_get(&self->at, record->address, &seen);
    if (self->stuck)
        return AR_OK;
    enum ar_status status = add_segment(self, &segment, record->stream,
                                        record->bytes == TORCH_SMALL_SEGMENT_BYTES, error);
    uint32_t block, made = (uint32_t)self->segment_count - 1;
    AR_THEN(status, make_block(self, record->address, record->bytes, made, 0, &block, error));
    if (!status)
        set_free(self, block);
    self->fresh = self->of_event[event] = made;
    if (self->lent != SNAPSHOT_NO_SEGMENT && !status) {
        self->segments[made].like = self->lent;
        self->segments[self->lent].like = made;
    }
    self->lent = SNAPSHOT_NO_SEGMENT;
    self->held_bytes += record->bytes;
    return status;
}

/* The block that fills a segment, if it is free. */
uint32_t snapshot_passed_whole(struct snapshot_passed *self,
                               const struct snapshot_passed_segment *segment)
{
    uint64_t found;
    if (!segment->live || !ar_map_get(&self->at, segment->address, &found) ||
        is_used(self, (uint32_t)found) || node_of(self, (uint32_t)found)->bytes != segment->bytes)
        return 0;
    return (uint32_t)found;
}

static void take_back(struct snapshot_passed *self, const struct snapshot_record *record,
                      size_t event)
{
    uint64_t found;
    uint32_t block = ar_map_get(&self->at, record->address, &found) ? (uint32_t)found : 0;
    self->stuck |= !block || is_used(self, block) || node_of(self, block)->bytes != record->bytes ||
                   snapshot_passed_whole(self, segment_of(self, block)) != block;
    if (self->stuck)
        return;
    struct snapshot_passed_segment *segment = segment_of(self, block);
    self->of_event[event] = (uint32_t)(segment - self->segments);
    if (record->pool) {
        segment->pool = record->pool - 1;
        segment->told = true;
    }
    set_used(self, block);
    drop_block(self, block);
    segment->live = false;
    self->held_bytes -= record->bytes;
}

/* Of the blocks of ranges only whether they are pending matters here. */
static enum ar_status take_in_range(struct snapshot_passed *self,
                                    const struct snapshot_record *record, struct ar_error *error)
{
    if (record->action == SNAPSHOT_FREE_REQUESTED)
        return ar_map_put(&self->waiting, record->address, 1) ? snapshot_passed_no_memory(error)
                                                              : AR_OK;
    if (record->action == SNAPSHOT_FREE_COMPLETED)
        ar_map_remove(&self->waiting, record->address);
    return AR_OK;
}

/* A segment or pages are released, in the run of releases that begins here or goes on. */
static void join_run(struct snapshot_passed *self, const struct snapshot_record *record,
                     size_t event)
{
    bool segment = record->action == SNAPSHOT_SEGMENT_FREE;
    if (!self->giving_back) {
        self->back_from = event;
        self->back_bytes = self->held_bytes;
        self->smallest_back = UINT64_MAX;
        self->back_mixed = self->back_unmaps = false;
        self->back_stream = record->stream;
    }
    if (segment && record->bytes < self->smallest_back)
        self->smallest_back = record->bytes;
    self->back_mixed |= record->stream != self->back_stream;
    self->back_stream = record->stream;
    self->back_unmaps |= !segment;
    self->giving_back = true;
}

static enum ar_status take(struct snapshot_passed *self, const struct snapshot_record *record,
                           size_t event, struct ar_error *error)
{
    bool of_block = record->action == SNAPSHOT_ALLOC || record->action == SNAPSHOT_FREE_REQUESTED ||
                    record->action == SNAPSHOT_FREE_COMPLETED;
    if (self->giving_back && record->action != SNAPSHOT_SEGMENT_FREE &&
        record->action != SNAPSHOT_SEGMENT_UNMAP) {
        enum ar_status status = snapshot_passed_released(self, record, event, error);
        self->giving_back = false;
        AR_TRY(status);
    } else if (record->action == SNAPSHOT_SEGMENT_ALLOC && self->in_part &&
               self->held_bytes >= self->collects_from)
        AR_TRY(snapshot_passed_collected(self, event, error));
    if (of_block && is_in_range(self, record->address))
        return take_in_range(self, record, error);
    switch (record->action) {
    case SNAPSHOT_ALLOC:
        return take_request(self, record, event, error);
    case SNAPSHOT_FREE_REQUESTED:
        take_requested_free(self, record);
        return AR_OK;
    case SNAPSHOT_FREE_COMPLETED:
        take_free(self, record, event);
        return AR_OK;
    case SNAPSHOT_SEGMENT_ALLOC:
        return take_segment(self, record, event, error);
    case SNAPSHOT_SEGMENT_FREE:
        join_run(self, record, event);
        take_back(self, record, event);
        return AR_OK;
    case SNAPSHOT_SEGMENT_MAP:
        self->held_bytes += record->bytes;
        return add_pages(self, record->address, record->bytes, error);
    case SNAPSHOT_SEGMENT_UNMAP:
        join_run(self, record, event);
        self->held_bytes -= record->bytes;
        return AR_OK;
    default:
        return AR_OK;
    }
}

/* Goes through the history from its start. HOST_MEMORY. */
static enum ar_status follow_history(struct snapshot_passed *self, struct ar_error *error)
{
    const struct snapshot_world *world = self->world;
    size_t bytes = (world->event_count + 1) * sizeof *self->of_event;
    self->fresh = self->lent = SNAPSHOT_NO_SEGMENT;
    self->collects_from = UINT64_MAX;
    ar_range_pool_open(&self->blocks, &self->host);
    self->of_event = malloc(bytes);
    if (!self->of_event)
        return snapshot_passed_no_memory(error);
    memset(self->of_event, 0xff, bytes);
    AR_TRY(begin(self, error));
    for (size_t i = 0; i < world->event_count && !self->stuck; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, self->tree, i);
        self->stuck |= !record;
        if (!record)
            break;
        (void)snapshot_changes_until(&self->changes, self->tree, i, record->time_us,
                                     &self->settings);
        AR_TRY(take(self, record, i, error));
    }
    return !self->stuck && self->giving_back
               ? snapshot_passed_released(self, NULL, world->event_count, error)
               : AR_OK;
}

static void close_passed(struct snapshot_passed *self)
{
    ar_range_pool_close(&self->blocks);
    ar_map_close(&self->at);
    ar_map_close(&self->pages);
    ar_map_close(&self->waiting);
    ar_map_close(&self->final_at);
    ar_map_close(&self->made_at);
    ar_map_close(&self->opposites);
    free(self->groups);
    free(self->segments);
    free(self->of_event);
    free(self->pairs);
}

/* ---- results --------------------------------------------------------------------------- */

/* Gives the pools to the areas, places and entries. */
static void hand_out(struct snapshot_passed *self)
{
    struct snapshot_world *world = self->world;
    uint64_t at;
    for (size_t i = 0; i < world->areas.count; i++)
        world->areas.items[i].pool = self->segments[i].pool;
    for (size_t i = 0; i < world->place_count; i++) {
        const struct snapshot_area *area =
            snapshot_areas_at(&world->areas, world->places[i].address);
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
    for (size_t i = 0; i < world->event_count && !status; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, self->tree, i);
        if (record && record->action == SNAPSHOT_SEGMENT_ALLOC)
            status = ar_map_put(&self->made_at, record->address, i);
    }
    if (status)
        return snapshot_passed_no_memory(error);
    AR_TRY(follow_history(self, error));
    return self->stuck ? AR_OK : snapshot_passed_colour(self, error);
}

/* The number of segments that would be of private pools. */
static size_t count_private(const struct snapshot_passed *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->segment_count; i++)
        count += !self->segments[i].told && self->segments[i].pool;
    return count;
}

/* The settings, as the policy reads them. False if it refuses them. `grows`: segments may grow. */
static bool read_settings(const char *conf, bool grows, struct torch_settings *out)
{
    const struct torch_values values = {
        .conf = conf, .max_non_split_rounding_mb = 20, .large_segment_size_mb = 20};
    struct ar_error ignored;
    return torch_settings_read(&values, out, &ignored) == AR_OK && (grows || !out->expandable);
}

bool snapshot_is_mempool(const struct snapshot_tree *tree, unsigned pool)
{
    return pool && pickle_payload(tree->pools[pool]) >> 28 == 0;
}

/* Whether a block has a rest that these settings would have cut off. */
static bool keeps_rest(const struct torch_settings *settings, const struct snapshot_area *of,
                       const struct snapshot_place *place)
{
    uint64_t bytes = torch_round(settings, place->requested_bytes);
    bool ranged = of->expandable || settings->expandable;
    uint64_t least = of->small || ranged ? TORCH_MIN_BLOCK_BYTES : TORCH_SMALL_BYTES + 1;
    return place->granted_bytes > bytes && place->granted_bytes - bytes >= least &&
           (ranged || bytes < settings->max_split_bytes);
}

/* The same of all settings that were in force. */
static bool always_keeps_rest(const struct snapshot_tree *tree, const struct snapshot_marks *marks,
                              struct torch_settings settings, const struct snapshot_area *of,
                              const struct snapshot_place *place)
{
    struct snapshot_changes changes = {.marks = marks};
    bool keeps = keeps_rest(&settings, of, place);
    while (keeps && changes.next < marks->count) {
        size_t seen = changes.next;
        bool changed = snapshot_changes_until(&changes, tree, (size_t)marks->items[seen].entry,
                                              marks->items[seen].time_us, &settings);
        if (changes.next == seen)
            return keeps;
        if (changed)
            keeps = keeps_rest(&settings, of, place);
    }
    return keeps;
}

void snapshot_find_whole(const struct snapshot_world *world, struct snapshot_tree *tree,
                         const struct snapshot_marks *marks, const struct torch_settings *settings)
{
    size_t area = 0;
    for (size_t i = 0; i < world->final_place_count; i++) {
        const struct snapshot_place *place = &world->final_places[i];
        while (area < world->final_area_count &&
               place->address - world->final_areas[area].address >= world->final_areas[area].bytes)
            area++;
        if (area == world->final_area_count)
            return;
        const struct snapshot_area *of = &world->final_areas[area];
        if (place->state != SNAPSHOT_INACTIVE && place->size_known && of->pool_told &&
            snapshot_is_mempool(tree, of->pool) &&
            always_keeps_rest(tree, marks, *settings, of, place))
            tree->whole[of->pool] = true;
    }
}

/* Whether a request failed for which the device had memory: the program had set a limit. */
static bool has_limit(const struct snapshot_world *world, const struct snapshot_tree *tree)
{
    for (size_t i = 0; i < world->event_count; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, tree, i);
        if (record && record->action == SNAPSHOT_OOM && record->address > 2 * record->bytes)
            return true;
    }
    return false;
}

static enum ar_status pools_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                 const struct snapshot_marks *marks, const char *conf,
                                 unsigned new_pools, struct ar_error *error)
{
    struct torch_settings settings;
    if (!world->event_count || (world->tells_pools && !world->unknown_pools) ||
        (world->has_pages && !marks->has_conf) || !read_settings(conf, marks->has_conf, &settings))
        return AR_OK;
    struct snapshot_passed *self = calloc(1, sizeof *self);
    if (!self)
        return snapshot_passed_no_memory(error);
    enum ar_status status = AR_OK;
    bool limited = settings.gc_threshold > 0 && has_limit(world, tree);
    bool several = settings.gc_threshold > 0 || settings.max_split_bytes != UINT64_MAX;
    size_t least = SIZE_MAX;
    unsigned best = 0;
    snapshot_find_whole(world, tree, marks, &settings);
    for (unsigned pass = several ? 0 : LAST; pass <= LAST && !status;) {
        unsigned as = pass < LAST ? pass : best;
        *self = (struct snapshot_passed){.world = world,
                                         .tree = tree,
                                         .settings = settings,
                                         .changes = {.marks = marks},
                                         .new_pools = new_pools,
                                         .in_part = limited != (as % 2 == 1),
                                         .loose = as >= 2};
        status = tell(self, error);
        size_t count = self->stuck ? SIZE_MAX : count_private(self);
        if (self->stuck && self->whole && !tree->whole[self->whole] &&
            snapshot_is_mempool(tree, self->whole)) {
            tree->whole[self->whole] = true; /* the same once more */
        } else {
            if (!status && !self->stuck && pass == LAST)
                hand_out(self);
            best = count < least ? pass : best;
            AR_LOWER(least, count);
            pass += least != SIZE_MAX && (pass == 1 || !(settings.gc_threshold > 0)) && pass < LAST
                        ? LAST - pass
                        : 1;
        }
        close_passed(self);
    }
    free(self);
    return status;
}

enum ar_status snapshot_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                             const struct snapshot_marks *marks, const char *conf,
                             struct ar_error *error)
{
    size_t named = tree->pool_count;
    AR_TRY(snapshot_ranges_tell(world, tree, marks, conf, error));
    return pools_tell(world, tree, marks, conf, (unsigned)(tree->pool_count - named), error);
}
