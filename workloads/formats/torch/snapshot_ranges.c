/* How: PyTorch has one range of addresses for each stream, kind and pool, in which it maps pages
 * from the lower end up, and releases the range when no page is mapped. So, forward through the
 * history:
 *
 * 1. Pages mapped in or next to those of a range are its own; others begin a new range.
 * 2. Two ranges of one stream and kind that exist at the same time are of different pools.
 * 3. When pages are unmapped, a range that keeps a page without a block in use is of another pool
 *    than those that ever unmapped any, and not of the common one: a pool unmaps all free pages,
 *    and a private pool does so from the moment on at which it is released. But if a range of the
 *    common pool, or one that unmapped pages before, keeps a free page, or a block is pending,
 *    then private pools were deleted: not the common one, nor those of the ranges that keep a page
 *    or have a pending block.
 * 4. If a request got new pages although the rest behind a block would have served it, alone or
 *    with them, and no block begins within a page, the pool hands out whole blocks
 *    (MemPool(no_split=True)).
 * 5. Ranges have the pools that the snapshot names; the others get, in the order in which they
 *    begin, the first pool that fits: the common one, the named ones, new ones.
 *
 * Of each mapped page the number of blocks in use on it is counted. A page is unmapped if there are
 * none, because free blocks that touch are one.
 *
 * Source: as snapshot_pools.c, with map_block, unmap_block and find_expandable_block. */

#include "allocators/base/range_tree.h"
#include "allocators/policies/torch/torch.h"
#include "workloads/formats/torch/snapshot_world.h"

#define RANGES_MOST 1024u
#define SMALL_PAGE  (2 * AR_MIB)
#define STEPS_BITS  26 /* 2^26 pages or ranges touched: a hostile file ends there */
#define NO_RANGE    UINT32_MAX
#define NEVER       SIZE_MAX
#define SLACK_BYTES AR_GIB /* pages in between may have been unmapped before the history */

struct range {
    uint64_t low, high; /* of all pages ever mapped */
    uint64_t mapped_bytes;
    uint64_t free_pages;             /* mapped pages without a block in use */
    uint64_t first_page, page_bytes; /* the address of one page, and the size of each */
    unsigned stream, pool;
    uint64_t fresh; /* the first of the pages mapped for the next block; 0: none */
    bool small, told, is_not_common;
    bool whole;        /* a block got new pages although the rest would have served it */
    bool divided;      /* a block begins within a page */
    uint32_t pending;  /* blocks */
    size_t begin, end; /* events; NEVER: it exists at the end */
    size_t gave_back;  /* the last event that unmapped some */
};

struct telling {
    struct snapshot_world *world;
    struct snapshot_tree *tree;
    struct range ranges[RANGES_MOST];
    size_t count;
    struct torch_settings given, settings; /* at the start; in force */
    struct snapshot_changes changes;
    struct ar_map uses; /* by the first address of a mapped page: 1 + the number of blocks on it */
    struct ar_host host;
    struct ar_range_pool blocks; /* in use; extra: whether its free is requested */
    uint32_t root;               /* of their tree by address */
    struct {
        unsigned pool;
        bool told;
    } final[RANGES_MOST]; /* of the ranges, as they begin */
    uint32_t *of_event;
    uint8_t unlike[RANGES_MOST][RANGES_MOST / 8]; /* bits: ranges of other pools */
    uint64_t page_steps, steps; /* pages and ranges touched, each below 2^STEPS_BITS */
    size_t named;               /* pools of the snapshot; others are new */
    struct ar_map pending;      /* blocks of segments whose free is requested, by address */
    size_t giving_since;        /* the first of a run of unmapped pages; NEVER: none */
    bool gave; /* since the last request: it may have waited for frees after its search */
    bool stuck;
};

/* ---- pages -----------------------------------------------------------------------------
 *
 * These keep range->free_pages up to date. Pages and blocks that exist already, or do not exist,
 * are skipped. HOST_MEMORY. */

static uint64_t page_at(const struct range *range, uint64_t address)
{
    return address - (address - range->first_page % range->page_bytes) % range->page_bytes;
}

static void unmap_pages(struct telling *self, struct range *range, uint64_t address, uint64_t bytes)
{
    uint64_t count, page = page_at(range, address);
    for (; page < address + bytes; page += range->page_bytes) {
        self->page_steps++;
        if (!ar_map_get(&self->uses, page, &count))
            continue;
        ar_map_remove(&self->uses, page);
        range->free_pages -= count == 1;
    }
}

/* Adds or removes a block on each mapped page of a range of bytes. */
static enum ar_status count_block(struct telling *self, struct range *range, uint64_t address,
                                  uint64_t bytes, bool more)
{
    uint64_t count, page = page_at(range, address);
    for (; page < address + bytes; page += range->page_bytes) {
        self->page_steps++;
        if (!ar_map_get(&self->uses, page, &count)) /* not mapped: it cannot be in use */
            break;
        AR_TRY(ar_map_put(&self->uses, page, more ? count + 1 : count - 1));
        range->free_pages += !more && count == 2;
        range->free_pages -= more && count == 1;
    }
    return AR_OK;
}

/* The block in use at an address; 0: none. */
static uint32_t block_at(const struct telling *self, uint64_t address)
{
    uint32_t block = ar_range_tree_last(&self->blocks, self->root, address);
    return block && self->blocks.nodes[block].address == address ? block : 0;
}

/* A block is used as a whole: its rounded size may reach onto a page that the request does not. */
static enum ar_status use_block(struct telling *self, struct range *range, uint64_t address,
                                uint64_t bytes)
{
    self->stuck |= self->page_steps >> STEPS_BITS != 0 || address >= range->high ||
                   bytes > range->high - address;
    bytes = torch_round(&self->settings, bytes);
    if (self->stuck || !bytes || block_at(self, address))
        return AR_OK;
    AR_TRY_HOST(ar_range_pool_reserve(&self->blocks, 1));
    uint32_t block = ar_range_pool_take(&self->blocks);
    self->blocks.nodes[block].address = address;
    self->blocks.nodes[block].bytes = bytes;
    ar_range_tree_insert(&self->blocks, &self->root, AR_RANGE_BY_ADDRESS, block);
    return count_block(self, range, address, bytes, true);
}

static void retire_block(struct telling *self, struct range *range, uint64_t address)
{
    uint32_t block = block_at(self, address);
    if (!block || self->blocks.nodes[block].extra)
        return;
    range->pending++;
    self->blocks.nodes[block].extra = 1;
}

static enum ar_status leave_block(struct telling *self, struct range *range, uint64_t address)
{
    uint32_t block = block_at(self, address);
    if (!block)
        return AR_OK;
    uint64_t bytes = self->blocks.nodes[block].bytes;
    range->pending -= self->blocks.nodes[block].extra != 0;
    ar_range_tree_remove(&self->blocks, &self->root, AR_RANGE_BY_ADDRESS, block);
    ar_range_pool_give(&self->blocks, block);
    return count_block(self, range, address, bytes, false);
}

/* ---- ranges ---------------------------------------------------------------------------- */

static struct range *range_at(struct telling *self, unsigned stream, uint64_t address,
                              uint64_t slack_bytes)
{
    for (size_t i = self->count; i-- > 0;) {
        struct range *range = &self->ranges[i];
        if (range->end == NEVER && range->stream == stream && address + slack_bytes >= range->low &&
            address < range->high + slack_bytes)
            return range;
    }
    return NULL;
}

static struct range *add_range(struct telling *self, uint64_t address, bool small, size_t event)
{
    if (self->count == RANGES_MOST) {
        self->stuck = true;
        return NULL;
    }
    struct range *range = &self->ranges[self->count++];
    *range = (struct range){.low = address,
                            .high = address,
                            .small = small,
                            .first_page = address,
                            .page_bytes = small ? SMALL_PAGE : self->settings.large_segment_bytes,
                            .begin = event,
                            .end = NEVER,
                            .gave_back = NEVER,
                            .pool = self->final[self->count - 1].pool,
                            .told = self->final[self->count - 1].told};
    return range;
}

static enum ar_status widen(struct telling *self, struct range *range, uint64_t address,
                            uint64_t bytes)
{
    AR_LOWER(range->low, address);
    AR_RAISE(range->high, address + bytes);
    range->mapped_bytes += bytes;
    self->stuck |= self->page_steps >> STEPS_BITS != 0;
    for (uint64_t page = page_at(range, address); page < address + bytes;
         page += range->page_bytes) {
        uint64_t uses;
        self->page_steps++;
        if (ar_map_get(&self->uses, page, &uses))
            continue;
        AR_TRY(ar_map_put(&self->uses, page, 1));
        range->free_pages++;
    }
    return AR_OK;
}

/* The mapped bytes behind a block, up to the next one. */
static uint64_t rest_behind(struct telling *self, const struct range *range, uint32_t block)
{
    uint32_t next = ar_range_tree_next(&self->blocks, self->root, block);
    uint64_t from = self->blocks.nodes[block].address + self->blocks.nodes[block].bytes, count;
    uint64_t end = next && self->blocks.nodes[next].address < range->high
                       ? self->blocks.nodes[next].address
                       : range->high;
    uint64_t page = page_at(range, from);
    while (page < end && page != range->fresh && ar_map_get(&self->uses, page, &count)) {
        self->page_steps++;
        page += range->page_bytes;
    }
    page = page < end ? page : end;
    return page > from ? page - from : 0;
}

/* Rule 4. A block that is not in the tree yet. */
static void look_at_division(struct telling *self, struct range *range, uint64_t address,
                             uint64_t bytes)
{
    uint32_t block = ar_range_tree_first(&self->blocks, self->root, range->low, 0);
    bytes = torch_round(&self->settings, bytes);
    range->divided |= page_at(range, address) != address;
    /* Releases that have such pools name the pools. */
    bool asks = self->world->tells_pools && range->fresh && !range->divided && !range->whole;
    for (; asks && block && self->blocks.nodes[block].address < range->high && !range->whole;
         block = ar_range_tree_next(&self->blocks, self->root, block)) {
        uint64_t rest_bytes = rest_behind(self, range, block);
        uint64_t end = self->blocks.nodes[block].address + self->blocks.nodes[block].bytes;
        bool fits =
            bytes <= rest_bytes && rest_bytes < self->settings.max_split_bytes && !self->gave;
        bool grows = rest_bytes && end + rest_bytes == range->fresh && range->fresh == address;
        range->whole |= fits || grows;
        self->page_steps++;
    }
    range->fresh = 0;
    self->gave = false;
}

/* ---- the history ----------------------------------------------------------------------- */

static enum ar_status begin(struct telling *self)
{
    const struct snapshot_world *world = self->world;
    struct range *range = NULL;
    for (size_t i = 0; i < world->areas.count && !self->stuck; i++) {
        const struct snapshot_area *area = &world->areas.items[i];
        if (!area->expandable)
            continue;
        if (!range || !snapshot_world_joins(world, i))
            range = add_range(self, area->address, area->small, 0);
        if (!range)
            return AR_OK;
        range->stream = area->stream;
        range->pool = area->pool;
        range->told |= area->pool_told;
        AR_TRY(widen(self, range, area->address, area->bytes));
    }
    for (size_t i = 0; i < world->place_count && !self->stuck; i++) {
        const struct snapshot_place *place = &world->places[i];
        range = range_at(self, place->stream, place->address, 0);
        if (range)
            look_at_division(self, range, place->address, place->requested_bytes);
        if (range)
            AR_TRY(use_block(self, range, place->address,
                             place->granted_bytes ? place->granted_bytes : place->requested_bytes));
        if (range && place->state == SNAPSHOT_PENDING)
            retire_block(self, range, place->address);
    }
    return AR_OK;
}

static void set_unlike(struct telling *self, size_t one, size_t other)
{
    self->unlike[one][other / 8] |= (uint8_t)(1u << other % 8);
    self->unlike[other][one / 8] |= (uint8_t)(1u << one % 8);
}

static bool gave_now(const struct telling *self, const struct range *range)
{
    return range->gave_back != NEVER && range->gave_back >= self->giving_since;
}

/* Whether private pools were deleted, and no cache was released. */
static bool is_deleted(const struct telling *self)
{
    if (self->pending.count)
        return true;
    for (size_t i = 0; i < self->count; i++) {
        const struct range *range = &self->ranges[i];
        bool keeps = range->end == NEVER && range->free_pages && !gave_now(self, range);
        bool known = (range->told && !range->pool) || range->gave_back != NEVER;
        if (range->pending || (keeps && known))
            return true;
    }
    return false;
}

/* Rule 3. */
static enum ar_status look_at_rest(struct telling *self)
{
    bool deleted = is_deleted(self);
    if (deleted)
        AR_TRY(ar_map_put(&self->world->deletions, self->giving_since, 1));
    for (size_t i = 0; i < self->count; i++) {
        struct range *range = &self->ranges[i];
        bool gave = gave_now(self, range);
        range->is_not_common |= deleted ? gave : range->end == NEVER && range->free_pages && !gave;
        if (range->end != NEVER || gave || !(range->free_pages || (deleted && range->pending)))
            continue;
        self->steps += self->count;
        for (size_t k = 0; k < self->count; k++)
            if (k != i &&
                (deleted ? gave_now(self, &self->ranges[k]) : self->ranges[k].gave_back != NEVER))
                set_unlike(self, i, k);
    }
    self->giving_since = NEVER;
    self->steps += self->count;
    self->stuck |= self->steps >> STEPS_BITS != 0;
    return AR_OK;
}

static enum ar_status take_pages(struct telling *self, const struct snapshot_record *record,
                                 size_t event)
{
    struct range *range = range_at(self, record->stream, record->address, SLACK_BYTES);
    if (!range)
        range = add_range(self, record->address,
                          !snapshot_in_large_pages(self->world, record->bytes), event);
    if (!range)
        return AR_OK;
    range->stream = record->stream;
    if (record->pool) {
        range->pool = record->pool - 1;
        range->told = true;
    }
    self->of_event[event] = (uint32_t)(range - self->ranges);
    range->fresh = range->fresh ? range->fresh : record->address;
    return widen(self, range, record->address, record->bytes);
}

static void give_pages(struct telling *self, const struct snapshot_record *record, size_t event)
{
    struct range *range = range_at(self, record->stream, record->address, 0);
    self->stuck |= !range || range->mapped_bytes < record->bytes;
    if (self->stuck)
        return;
    if (self->giving_since == NEVER)
        self->giving_since = event;
    self->gave = true;
    range->gave_back = event;
    range->mapped_bytes -= record->bytes;
    unmap_pages(self, range, record->address, record->bytes);
    if (!range->mapped_bytes)
        range->end = event;
    self->of_event[event] = (uint32_t)(range - self->ranges);
}

static enum ar_status take_block(struct telling *self, const struct snapshot_record *record,
                                 size_t event)
{
    struct range *range = range_at(self, record->stream, record->address, 0);
    if (!range)
        return AR_OK;
    self->of_event[event] = (uint32_t)(range - self->ranges);
    if (record->bytes)
        look_at_division(self, range, record->address, record->bytes);
    return use_block(self, range, record->address, record->bytes);
}

static enum ar_status take(struct telling *self, const struct snapshot_record *record, size_t event)
{
    struct range *range;
    if (record->action != SNAPSHOT_SEGMENT_UNMAP && self->giving_since != NEVER)
        AR_TRY(look_at_rest(self));
    switch (record->action) {
    case SNAPSHOT_SEGMENT_MAP:
        return take_pages(self, record, event);
    case SNAPSHOT_SEGMENT_UNMAP:
        give_pages(self, record, event);
        return AR_OK;
    case SNAPSHOT_ALLOC:
        return take_block(self, record, event);
    case SNAPSHOT_FREE_REQUESTED:
        range = range_at(self, record->stream, record->address, 0);
        if (!range)
            return ar_map_put(&self->pending, record->address, 1);
        retire_block(self, range, record->address);
        return AR_OK;
    case SNAPSHOT_FREE_COMPLETED:
        range = range_at(self, record->stream, record->address, 0);
        if (range)
            return leave_block(self, range, record->address);
        ar_map_remove(&self->pending, record->address);
        return AR_OK;
    default:
        return AR_OK;
    }
}

/* ---- pools ----------------------------------------------------------------------------- */

static void take_end(struct telling *self)
{
    const struct snapshot_world *world = self->world;
    for (size_t i = 0; i < world->final_area_count; i++) {
        const struct snapshot_area *area = &world->final_areas[i];
        struct range *range =
            area->expandable ? range_at(self, area->stream, area->address, 0) : NULL;
        if (!range || !area->pool_told)
            continue;
        range->pool = area->pool;
        range->told = true;
    }
    for (size_t i = 0; i < world->final_place_count; i++) {
        const struct snapshot_place *place = &world->final_places[i];
        struct range *range = range_at(self, place->stream, place->address, 0);
        if (range)
            range->divided |= page_at(range, place->address) != place->address;
    }
}

static bool are_unlike(const struct telling *self, size_t one, size_t other)
{
    const struct range *a = &self->ranges[one], *b = &self->ranges[other];
    bool alike = a->stream == b->stream && a->small == b->small && one != other;
    bool differ =
        (a->whole && !a->divided && b->divided) || (b->whole && !b->divided && a->divided);
    return differ || (alike && a->begin <= b->end && b->begin <= a->end) ||
           self->unlike[one][other / 8] >> other % 8 & 1;
}

/* The pools of the ranges that are unlike this one. */
static void find_taken(const struct telling *self, size_t at, bool *taken)
{
    memset(taken, 0, SNAPSHOT_POOLS_MOST * sizeof *taken);
    for (size_t i = 0; i < self->count; i++)
        if (self->ranges[i].told && are_unlike(self, at, i))
            taken[self->ranges[i].pool] = true;
}

static enum ar_status colour(struct telling *self, size_t at, size_t named, struct ar_error *error)
{
    struct range *range = &self->ranges[at];
    bool taken[SNAPSHOT_POOLS_MOST], whole = range->whole && !range->divided;
    unsigned pool = range->is_not_common || whole;
    /* What was deleted beside segments, which are not followed here, is no pool of the end. */
    if (self->changes.marks->has_conf && range->is_not_common && range->end != NEVER)
        pool = (unsigned)named;
    enum ar_status status = AR_OK;
    find_taken(self, at, taken);
    while (pool < named && (taken[pool] || (whole && !snapshot_is_mempool(self->tree, pool)) ||
                            (range->divided && self->tree->whole[pool])))
        pool++;
    for (unsigned i = 0; pool >= named && !status; i++) {
        status = snapshot_new_pool(self->tree, i, &pool, error);
        if (status || !taken[pool])
            break;
        pool = (unsigned)named;
    }
    range->pool = pool;
    range->told = true; /* to those that follow */
    return status;
}

/* ---- results --------------------------------------------------------------------------- */

/* Areas and places are in the order of their addresses. */
static void hand_out_places(struct snapshot_world *world)
{
    size_t area = 0;
    for (size_t i = 0; i < world->place_count; i++) {
        struct snapshot_place *place = &world->places[i];
        while (area < world->areas.count &&
               world->areas.items[area].address + world->areas.items[area].bytes <= place->address)
            area++;
        if (area < world->areas.count && world->areas.items[area].address <= place->address)
            place->pool = world->areas.items[area].pool;
    }
}

static void hand_out(struct telling *self)
{
    struct snapshot_world *world = self->world;
    for (size_t i = 0; i < world->areas.count; i++) {
        struct snapshot_area *area = &world->areas.items[i];
        for (size_t k = 0; area->expandable && k < self->count && !self->ranges[k].begin; k++)
            if (self->ranges[k].stream == area->stream && area->address >= self->ranges[k].low &&
                area->address < self->ranges[k].high) {
                area->pool = self->ranges[k].pool;
                area->pool_told = true;
            }
    }
    for (size_t k = 0; k < self->count; k++)
        if (self->ranges[k].pool && self->ranges[k].whole && !self->ranges[k].divided &&
            (self->ranges[k].pool >= self->named ||
             snapshot_is_mempool(self->tree, self->ranges[k].pool)))
            self->tree->whole[self->ranges[k].pool] = true;
    for (size_t k = 0; k < self->count; k++)
        if (self->ranges[k].divided)
            self->tree->whole[self->ranges[k].pool] = false;
    hand_out_places(world);
    for (size_t i = 0; i < world->event_count; i++) {
        struct snapshot_record *record = snapshot_world_event(world, self->tree, i);
        if (record && self->of_event[i] != NO_RANGE)
            record->pool = (self->ranges[self->of_event[i]].pool + 1) & (SNAPSHOT_POOLS_MOST - 1);
    }
}

/* Goes through the history once. */
static enum ar_status follow(struct telling *self)
{
    const struct snapshot_world *world = self->world;
    self->count = 0;
    self->giving_since = NEVER;
    memset(self->unlike, 0, sizeof self->unlike);
    ar_map_close(&self->uses);
    ar_map_close(&self->pending);
    ar_range_pool_close(&self->blocks);
    ar_range_pool_open(&self->blocks, &self->host);
    self->root = 0;
    self->gave = false;
    self->settings = self->given;
    self->changes.next = 0;
    enum ar_status status = begin(self);
    for (size_t i = 0; i < world->event_count && !self->stuck && !status; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, self->tree, i);
        self->of_event[i] = NO_RANGE;
        if (record)
            (void)snapshot_changes_until(&self->changes, self->tree, i, record->time_us,
                                         &self->settings);
        if (record)
            status = take(self, record, i);
    }
    if (self->giving_since != NEVER)
        AR_THEN(status, look_at_rest(self));
    take_end(self);
    return status;
}

/* The first pass finds which ranges the snapshot names at the end. */
static enum ar_status tell(struct telling *self, struct ar_error *error)
{
    struct snapshot_world *world = self->world;
    size_t named = self->named = self->tree->pool_count;
    enum ar_status status = follow(self);
    for (size_t i = 0; i < self->count; i++) {
        self->final[i].pool = self->ranges[i].pool;
        self->final[i].told = self->ranges[i].told;
    }
    AR_THEN(status, follow(self));
    if (status)
        return ar_error_set(error, status, "no host memory for the ranges of a snapshot");
    snapshot_find_whole(world, self->tree, self->changes.marks, &self->given);
    if (self->stuck)
        return AR_OK;
    for (size_t i = 0; i < self->count && !status; i++)
        if (!self->ranges[i].told) {
            status = colour(self, i, named, error);
            world->private_pools += self->ranges[i].pool != 0;
        }
    if (!status)
        hand_out(self);
    return status;
}

/* If the policy refuses the settings, sizes are rounded as without any. */
static void read_settings(const char *conf, struct torch_settings *out)
{
    const struct torch_values values = {
        .conf = conf, .max_non_split_rounding_mb = 20, .large_segment_size_mb = 20};
    struct ar_error ignored;
    if (torch_settings_read(&values, out, &ignored))
        *out = (struct torch_settings){.max_split_bytes = UINT64_MAX,
                                       .large_segment_bytes = 20 * AR_MIB};
}

enum ar_status snapshot_ranges_tell(struct snapshot_world *world, struct snapshot_tree *tree,
                                    const struct snapshot_marks *marks, const char *conf,
                                    struct ar_error *error)
{
    if (!world->event_count || !world->has_pages)
        return AR_OK;
    struct telling *self = calloc(1, sizeof *self);
    uint32_t *of_event = malloc(world->event_count * sizeof *of_event);
    enum ar_status status =
        self && of_event ? AR_OK : ar_no_memory(error, "the ranges of a snapshot");
    if (!status) {
        self->world = world;
        self->tree = tree;
        self->of_event = of_event;
        self->changes.marks = marks;
        read_settings(conf, &self->given);
        ar_range_pool_open(&self->blocks, &self->host);
        status = tell(self, error);
        ar_map_close(&self->uses);
        ar_map_close(&self->pending);
        ar_range_pool_close(&self->blocks);
    }
    free(of_event);
    free(self);
    return status;
}
