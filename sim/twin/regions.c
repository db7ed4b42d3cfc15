/* Memory that can sleep, by the rules in run.h: first the backing between policy and device, then
 * what twin_region_begin, twin_sleep and twin_wake do with the blocks of a process, its pinned
 * memory and the other processes. */
#include "sim/twin/run.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"
#include "allocators/spec.h"
#include "sim/twin/rules/compatible.h"

static struct regions *of(struct ar_backing *base)
{
    return (struct regions *)base; /* the relay is the first member, and its base its own */
}

/* New memory at a reserved range. Nothing is left after a failure. */
static enum ar_status fill(struct ar_backing *inner, uint64_t address, uint64_t bytes,
                           ar_backing_handle *handle)
{
    AR_TRY(ar_backing_create(inner, bytes, handle));
    enum ar_status status = ar_backing_map(inner, address, *handle);
    if (status == AR_OK) {
        status = ar_backing_access(inner, address, bytes);
        if (status != AR_OK && ar_backing_unmap(inner, address, bytes) != AR_OK)
            return AR_CORRUPT;
    }
    if (status != AR_OK && ar_backing_destroy(inner, *handle) != AR_OK)
        return AR_CORRUPT;
    return status;
}

static enum ar_status empty(struct ar_backing *inner, const struct regions_segment *segment)
{
    AR_TRY(ar_backing_unmap(inner, segment->address, segment->bytes));
    return ar_backing_destroy(inner, segment->handle);
}

static size_t place_of(const struct regions *self, uint64_t address)
{
    return ar_array_from(self->segments, self->segment_count, sizeof *self->segments,
                         offsetof(struct regions_segment, address), address);
}

static enum ar_status segment_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct regions *self = of(base);
    struct ar_backing *inner = self->relay.inner;
    if (!self->target)
        return ar_backing_segment_alloc(inner, bytes, address);
    AR_TRY_HOST(ar_array_make_room(&self->segments, self->segment_count, &self->segment_room,
                                   sizeof *self->segments));
    struct regions_segment segment = {.bytes = ar_size_round_up(bytes, inner->page_bytes),
                                      .region = self->target - 1};
    AR_TRY(ar_backing_reserve(inner, segment.bytes, &segment.address));
    enum ar_status status = fill(inner, segment.address, segment.bytes, &segment.handle);
    if (status != AR_OK)
        return ar_backing_release(inner, segment.address) == AR_OK ? status : AR_CORRUPT;
    size_t at = place_of(self, segment.address);
    AR_ARRAY_INSERT(self->segments, self->segment_count, at, segment);
    *address = segment.address;
    return AR_OK;
}

static enum ar_status free_host_copy(struct regions *self, struct regions_segment *segment)
{
    if (!segment->host_address)
        return AR_OK;
    uint64_t address = segment->host_address;
    segment->host_address = 0;
    self->host_freed(self->argument, segment->host_account, segment->bytes);
    return ar_backing_segment_free(self->device->pinned, address);
}

static enum ar_status segment_free(struct ar_backing *base, uint64_t address)
{
    struct regions *self = of(base);
    struct ar_backing *inner = self->relay.inner;
    size_t at = place_of(self, address);
    if (at == self->segment_count || self->segments[at].address != address)
        return ar_backing_segment_free(inner, address);
    struct regions_segment *segment = &self->segments[at];
    enum ar_status status = AR_OK;
    self->device->ops->sync(self->device, UINT32_MAX);
    if (segment->state == REGIONS_AWAKE)
        status = empty(inner, segment);
    else
        self->asleep_bytes -= segment->bytes;
    AR_THEN(status, free_host_copy(self, segment));
    struct twin_blocks *orphans = &self->orphans;
    if (segment->copy.held &&
        !AR_ARRAY_ADD(orphans->items, orphans->count, orphans->room, segment->copy))
        status = AR_HOST_MEMORY;
    AR_THEN(status, ar_backing_release(inner, address));
    AR_ARRAY_REMOVE(self->segments, self->segment_count, at);
    return status;
}

void regions_open(struct regions *self, struct ar_device *device)
{
    *self = (struct regions){.device = device};
    relay_open(&self->relay, device->backing);
    self->relay.ops.segment_alloc = segment_alloc;
    self->relay.ops.segment_free = segment_free;
}

void regions_close(struct regions *self)
{
    free(self->kinds);
    free(self->segments);
    free(self->orphans.items);
    *self = (struct regions){0};
}

static uint32_t find_kind(const struct regions *self, const struct twin_region *region)
{
    for (size_t i = 0; i < self->kind_count; i++) {
        const struct regions_kind *kind = &self->kinds[i];
        if (kind->kind == region->kind && kind->backup == region->backup &&
            strcmp(kind->tag, region->tag) == 0)
            return (uint32_t)i + 1;
    }
    return 0;
}

enum ar_status regions_begin(struct regions *self, const struct twin_region *region, uint32_t *pool,
                             uint32_t new_pool, struct ar_error *error)
{
    uint32_t known =
        region->kind == TWIN_REGION_POOL && !region->keeps_pool ? 0 : find_kind(self, region);
    if (!known) {
        struct regions_kind kind = {
            .kind = region->kind, .backup = region->backup, .keeps_pool = region->keeps_pool};
        kind.pool = region->kind == TWIN_REGION_PRELOAD ? 0 : new_pool;
        snprintf(kind.tag, sizeof kind.tag, "%s", region->tag);
        AR_TRY(AR_APPEND(self->kinds, self->kind_count, self->kind_room, kind, error, "a region"));
        known = (uint32_t)self->kind_count;
    }
    self->open = known;
    *pool = self->kinds[known - 1].pool;
    return AR_OK;
}

struct regions_segment *regions_find(const struct regions *self, uint64_t address)
{
    size_t above = ar_array_above(self->segments, self->segment_count, sizeof *self->segments,
                                  offsetof(struct regions_segment, address), address);
    if (!above)
        return NULL;
    struct regions_segment *segment = &self->segments[above - 1];
    return address - segment->address < segment->bytes ? segment : NULL;
}

enum ar_status regions_sleep(struct regions *self, struct regions_segment *segment,
                             enum regions_state state)
{
    AR_TRY(empty(self->relay.inner, segment));
    segment->state = state;
    self->asleep_bytes += segment->bytes;
    return AR_OK;
}

enum ar_status regions_wake(struct regions *self, struct regions_segment *segment)
{
    AR_TRY(fill(self->relay.inner, segment->address, segment->bytes, &segment->handle));
    segment->state = REGIONS_AWAKE;
    self->asleep_bytes -= segment->bytes;
    return AR_OK;
}

/* ---- what parts do with them ----------------------------------------------------------------- */

/* The process with everything replayed; NULL: the run is over. */
static struct twin_process *settled(struct twin_part *self)
{
    struct twin_process *process = self->process;
    twin_process_begin(process);
    twin_process_settle(process);
    return process->run->over || process->ended ? NULL : process;
}

/* What the spec of a policy says about expandable segments, and the release of PyTorch. */
struct policy_facts {
    bool expandable;
    uint32_t release;
};

static struct policy_facts facts_of(const char *policy)
{
    struct policy_facts facts = {0};
    struct ar_spec spec;
    if (!policy || ar_spec_parse(policy, &spec, NULL) != AR_OK)
        return facts;
    const char *option = ar_spec_value(&spec, "expandable_segments");
    const char *conf = ar_spec_value(&spec, "conf"), *release = ar_spec_value(&spec, "version");
    facts.release = release ? compatible_release(release) : 0;
    if (strcmp(spec.links[spec.link_count - 1].name, "mosaic") == 0)
        facts.expandable = true;
    else if (option)
        facts.expandable = !*option || strchr("tTyY1", *option) || strcmp(option, "on") == 0;
    else if (conf)
        facts.expandable = strstr(conf, "expandable_segments:True") != NULL;
    ar_spec_close(&spec);
    return facts;
}

bool twin_trims_in_pool(const struct twin_process *process)
{
    struct compatible_releases releases = {{0}};
    releases.of[COMPATIBLE_TORCH] = facts_of(process->setup->policy).release;
    const struct compatible_statement *found =
        compatible_find(COMPATIBLE_EMPTY_CACHE, COMPATIBLE_MEMPOOL, &releases);
    return !found || found->verdict == COMPATIBLE_WORKS;
}

/* Expandable segments beside a region: the statement on them, and the bits of the region's pool. */
static enum ar_status check_expandable(const struct twin_process *process,
                                       const struct twin_region *region, uint8_t *bits,
                                       struct ar_error *error)
{
    struct policy_facts facts = facts_of(process->setup->policy);
    struct compatible_releases releases = {{0}};
    bool pool = region->kind == TWIN_REGION_POOL;
    *bits = AR_MEMPOOL_PLAIN | AR_MEMPOOL_ALLOCATOR;
    if (!facts.expandable)
        return AR_OK;
    releases.of[COMPATIBLE_TORCH] = facts.release;
    releases.of[pool ? COMPATIBLE_VLLM : COMPATIBLE_SAVER] =
        region->release ? compatible_release(region->release) : 0;
    const struct compatible_statement *found = compatible_find(
        COMPATIBLE_EXPANDABLE, pool ? COMPATIBLE_SLEEP : COMPATIBLE_SAVER_PRELOAD, &releases);
    if (found && found->verdict == COMPATIBLE_NO_EFFECT)
        *bits = AR_MEMPOOL_PLAIN; /* the pool grows by pages, which are of no region */
    if (!found || found->verdict != COMPATIBLE_REFUSED)
        return AR_OK;
    return ar_error_set(error, AR_NEGATIVE, "region %s with expandable_segments: %s (%s)",
                        region->tag, found->what, found->source);
}

/* Combinations that the real programs refuse (NEGATIVE), or that have no meaning. */
static enum ar_status check_region(const struct twin_process *process,
                                   const struct twin_region *region, uint8_t *bits,
                                   struct ar_error *error)
{
    const struct ar_policy_ops *ops = watch_inside(process->policy)->ops;
    if (!process->device->backing->page_bytes)
        return ar_error_set(error, AR_UNSUPPORTED,
                            "region %s: card %s has no virtual memory, so nothing can sleep",
                            region->tag, process->device->props.profile);
    if (!ops->delete_pool && region->kind != TWIN_REGION_PRELOAD)
        return ar_error_set(error, AR_UNSUPPORTED,
                            "region %s: policy %s has no private pools, so the region's memory "
                            "would serve other requests too; choose torch",
                            region->tag, ops->name);
    if (ops->capabilities & AR_POLICY_OPAQUE ||
        (ops->capabilities & AR_POLICY_NEEDS_MAPPING && !ops->delete_pool))
        return ar_error_set(error, AR_UNSUPPORTED,
                            "region %s: policy %s obtains no segments that could be put into a "
                            "region; choose torch",
                            region->tag, ops->name);
    if (process->regions.open)
        return ar_error_set(error, AR_UNSUPPORTED, "region %s: region %s is open already",
                            region->tag, process->regions.kinds[process->regions.open - 1].tag);
    return check_expandable(process, region, bits, error);
}

enum ar_status twin_region_begin(struct twin_part *self, const struct twin_region *region,
                                 struct ar_error *error)
{
    struct twin_process *process = settled(self);
    if (!process)
        return AR_OK;
    uint8_t bits = 0;
    AR_TRY(
        ar_error_prefix(error, check_region(process, region, &bits, error), "part %s", self->name));
    uint32_t pool = twin_pool(self, bits);
    return regions_begin(&process->regions, region, &process->region_pool, pool, error);
}

/* ---- segments -------------------------------------------------------------------------------- */

static void device_status(struct twin_process *process, enum ar_status status)
{
    if (status != AR_OK)
        (void)twin_run_error(process->run, status, "process %s: regions: %s", process->setup->name,
                             process->device->ops->problem(process->device));
}

/* The blocks of the process whose segment sleeps are not on the card. */
static void mark_blocks(struct twin_process *process)
{
    struct feed *feed = &process->feed;
    for (size_t i = 0; i < process->account_count; i++)
        process->accounts[i].asleep_live_bytes = process->accounts[i].asleep_granted_bytes = 0;
    for (size_t i = 0; i < feed->slot_count; i++) {
        struct feed_block *block = &feed->blocks[i];
        if (block->state != FEED_LIVE || block->pinned)
            continue;
        block->asleep = regions_asleep(&process->regions, block->address);
        if (!block->asleep)
            continue;
        process->accounts[block->account].asleep_live_bytes += block->bytes;
        process->accounts[block->account].asleep_granted_bytes += block->granted_bytes;
    }
}

static bool note_use(void *argument, const struct ar_policy_range *range)
{
    struct regions_segment *segment = regions_find(argument, range->address);
    if (segment && range->state != AR_POLICY_RANGE_FREE)
        segment->used = true;
    return true;
}

/* vLLM releases the segments of a pool that have no block when it leaves the pool. */
static void drop_empty(struct twin_process *process)
{
    struct regions *regions = &process->regions;
    for (size_t i = 0; i < regions->segment_count; i++)
        regions->segments[i].used = false;
    ar_policy_walk(process->policy, note_use, regions);
    for (size_t i = 0; i < regions->segment_count; i++) {
        struct regions_segment *segment = &regions->segments[i];
        if (segment->region + 1 == regions->open && segment->state == REGIONS_AWAKE &&
            !segment->used)
            device_status(process, regions_sleep(regions, segment, REGIONS_DROPPED));
    }
}

static void wait_for_work(struct twin_process *process)
{
    process->device->ops->sync(process->device, TRACE_NO_STREAM);
    ar_policy_progress(process->policy);
}

void twin_region_end(struct twin_part *self)
{
    struct twin_process *process = settled(self);
    if (!process || !process->regions.open)
        return;
    struct regions *regions = &process->regions;
    const struct regions_kind *kind = &regions->kinds[regions->open - 1];
    if (kind->kind == TWIN_REGION_POOL && !kind->keeps_pool) {
        wait_for_work(process);
        drop_empty(process);
    }
    regions->open = 0;
    process->region_pool = 0;
}

/* ---- sleep and wake -------------------------------------------------------------------------- */

static bool has_tag(const struct regions *regions, const struct regions_segment *segment,
                    const char *tag)
{
    return !tag || strcmp(regions->kinds[segment->region].tag, tag) == 0;
}

static void copy_to_host(struct twin_part *self, struct regions_segment *segment)
{
    struct twin_process *process = self->process;
    const struct regions_kind *kind = &process->regions.kinds[segment->region];
    uint32_t owner = twin_owner(self, "copies of sleeping memory");
    if (segment->copy.held || segment->host_address)
        return;
    if (kind->kind == TWIN_REGION_POOL) {
        const struct twin_request request = {
            .bytes = segment->bytes, .owner = owner, .tag = kind->tag, .pinned = true};
        twin_alloc(self, &request, &segment->copy);
        twin_process_settle(process);
        return;
    }
    if (!process->device->pinned)
        return;
    enum ar_status status = ar_backing_segment_alloc(&process->pinned_relay.base, segment->bytes,
                                                     &segment->host_address);
    if (status == AR_REFUSED)
        twin_process_failed(process, segment->bytes, owner, REPLAY_CAUSE_PINNED);
    else
        device_status(process, status);
    if (status == AR_OK)
        twin_process_pin(process, segment->host_account = owner, segment->bytes, 0);
}

static bool is_kept(const struct regions *regions, const struct regions_segment *segment,
                    const char *keep)
{
    const struct regions_kind *kind = &regions->kinds[segment->region];
    return keep && (strcmp(keep, "*") == 0 ? kind->backup : strcmp(kind->tag, keep) == 0);
}

size_t twin_sleep(struct twin_part *self, const char *tag, const char *keep)
{
    struct twin_process *process = settled(self);
    size_t count = 0;
    if (!process)
        return 0;
    struct regions *regions = &process->regions;
    wait_for_work(process);
    for (size_t i = 0; i < regions->segment_count && !process->run->over; i++) {
        struct regions_segment *segment = &regions->segments[i];
        if (segment->state != REGIONS_AWAKE || !has_tag(regions, segment, tag))
            continue;
        count++;
        if (is_kept(regions, segment, keep))
            copy_to_host(self, segment);
        if (!process->run->over)
            device_status(process, regions_sleep(regions, segment, REGIONS_ASLEEP));
    }
    mark_blocks(process);
    return count;
}

/* `cause`: why not all segments can wake. */
static void wake_segment(struct twin_part *self, struct regions_segment *segment,
                         enum replay_cause cause)
{
    struct twin_process *process = self->process;
    enum ar_status status = regions_wake(&process->regions, segment);
    if (status == AR_REFUSED) {
        char purpose[64];
        snprintf(purpose, sizeof purpose, "region %s", process->regions.kinds[segment->region].tag);
        twin_process_failed(process, segment->bytes, twin_owner(self, purpose), cause);
    } else {
        device_status(process, status);
        twin_free(self, &segment->copy);
    }
}

size_t twin_wake(struct twin_part *self, const char *tag)
{
    struct twin_process *process = settled(self);
    size_t count = 0;
    if (!process)
        return 0;
    struct regions *regions = &process->regions;
    twin_process_tell(process);
    uint64_t bytes = 0;
    for (size_t i = 0; i < regions->segment_count; i++)
        if (regions->segments[i].state == REGIONS_ASLEEP &&
            has_tag(regions, &regions->segments[i], tag)) {
            bytes += regions->segments[i].bytes;
            count++;
        }
    enum replay_cause cause = twin_process_cause(process, bytes, true);
    for (size_t i = 0; i < regions->segment_count && !process->run->over; i++) {
        struct regions_segment *segment = &regions->segments[i];
        if (segment->state == REGIONS_ASLEEP && has_tag(regions, segment, tag))
            wake_segment(self, segment, cause);
    }
    mark_blocks(process);
    twin_process_settle(process);
    if (!process->run->over)
        twin_process_look(process);
    return count;
}
