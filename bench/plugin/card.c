#include "bench/plugin/card.h"

#include "allocators/base/array.h"
#include "allocators/registry.h"
#include "bench/cuda/cuda_device.h"
#include "bench/plugin/plugin.h"
#include "sim/replay/timing.h"

#define AR_MIB 1048576.0
/* cudaMalloc guarantees this alignment, and kernels rely on it. */
#define ALIGNMENT_BYTES UINT64_C(256)
#define CHUNK_BLOCKS    256u

struct card_chunk {
    struct card_chunk *next;
    struct card_block blocks[CHUNK_BLOCKS];
};

/* ---- inside --------------------------------------------------------------------------------- */

static void enter(struct card *card)
{
    if (pthread_mutex_trylock(&card->lock) == 0)
        return;
    pthread_mutex_lock(&card->lock);
    card->figures.lock_waits++;
}

static void leave(struct card *card)
{
    driver_memory_leave(&card->memory);
    pthread_mutex_unlock(&card->lock);
}

/* Called after each request: only requests raise these values. */
static void update_peaks(struct card *card)
{
    const struct ar_policy_totals *totals = &card->policy->totals;
    AR_RAISE(card->figures.peak_live_bytes, totals->live_bytes);
    AR_RAISE(card->figures.peak_granted_bytes, totals->granted_bytes);
    AR_RAISE(card->figures.peak_reserved_bytes, totals->reserved_bytes);
}

/* ---- records of blocks ---------------------------------------------------------------------- */

static struct card_block *block_new(struct card *card)
{
    if (!card->unused) {
        struct card_chunk *chunk = ar_host_alloc(&card->host, sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = card->chunks;
        card->chunks = chunk;
        for (unsigned i = 0; i < CHUNK_BLOCKS; i++) {
            chunk->blocks[i].next = card->unused;
            card->unused = &chunk->blocks[i];
        }
    }
    struct card_block *block = card->unused;
    card->unused = block->next;
    return block;
}

static void block_release(struct card *card, struct card_block *block)
{
    block->next = card->unused;
    card->unused = block;
}

/* The block that starts there; NULL: none. */
static struct card_block *block_at(const struct card *card, uint64_t address)
{
    const uint64_t *found = ar_map_find(&card->map, address);
    return found ? (struct card_block *)(uintptr_t)*found : NULL;
}

/* ---- streams: rules 3 and 4 of card.h -------------------------------------------------------- */

/* The second stream waits for all work that the first has queued: blocks freed before now have no
 * events. */
static void order_second_stream(struct card *card, uint32_t ordinal)
{
    struct ar_backing *backing = card->memory.relay.inner;
    driver_memory_enter(&card->memory);
    for (uint32_t i = 0; i < ordinal; i++)
        ar_backing_order(backing, ordinal, ar_backing_fence(backing, i));
}

static enum ar_status stream_add(struct card *card, CUstream stream, struct ar_error *error)
{
    uint32_t ordinal = card->stream_count;
    AR_TRY_MEMORY(
        ar_array_make_room(&card->streams, ordinal, &card->stream_room, sizeof *card->streams),
        error, "streams");
    if (ordinal == CARD_STREAMS_MOST ||
        !cuda_device_adopt_stream(card->memory.device, ordinal, stream))
        return ar_invalid(error,
                          "allocrig: the program uses more than %u streams on GPU %u, the most "
                          "that the plug-in supports",
                          CARD_STREAMS_MOST, card->ordinal);
    card->streams[ordinal] = stream;
    card->stream_count++;
    card->figures.streams = card->stream_count;
    if (ordinal == 1 && !card->orders)
        order_second_stream(card, ordinal);
    return AR_OK;
}

static enum ar_status find_stream(struct card *card, CUstream stream, uint32_t *ordinal,
                                  struct ar_error *error)
{
    if (stream == CU_STREAM_LEGACY) /* the second name of the default stream */
        stream = NULL;
    uint32_t found = card->stream_last;
    if (found >= card->stream_count || card->streams[found] != stream)
        for (found = 0; found < card->stream_count && card->streams[found] != stream; found++)
            ;
    if (found == card->stream_count)
        AR_TRY(stream_add(card, stream, error));
    *ordinal = card->stream_last = found;
    return AR_OK;
}

/* Records that work queued so far on the streams of the block may use its memory. */
static void note_uses(struct card *card, const struct card_block *block, uint32_t stream)
{
    struct ar_device *device = card->memory.device;
    driver_memory_enter(&card->memory);
    for (uint32_t i = 0; i < card->stream_count; i++) {
        bool used =
            i == block->stream || i == stream || (block->used_on >> (i < 63 ? i : 63) & 1) != 0;
        if (used)
            device->ops->used(device, block->block.address, block->block.granted_bytes, i, 0);
    }
}

static enum ar_status give_back(struct card *card, struct card_block *block, uint32_t stream)
{
    if (!card->orders && card->stream_count > 1)
        note_uses(card, block, stream);
    enum ar_status status = ar_policy_free(card->policy, &block->block, stream);
    block_release(card, block);
    return status;
}

/* ---- private pools: rule 5 of card.h --------------------------------------------------------- */

/* The ordinal of the pool, from 1; 0 if there is none with that name. */
static uint32_t pool_find(const struct card *card, struct card_pool_id id)
{
    for (uint32_t i = 0; i < card->pool_count; i++) {
        const struct card_pool *pool = &card->pools[i];
        if (pool->id.first == id.first && pool->id.second == id.second && !pool->released)
            return i + 1;
    }
    return 0;
}

static uint32_t pool_add(struct card *card, struct card_pool_id id)
{
    struct card_pool pool = {.id = id};
    return AR_ARRAY_ADD(card->pools, card->pool_count, card->pool_room, pool) ? card->pool_count
                                                                              : 0;
}

void card_pool_begin(struct card *card, struct card_pool_id id)
{
    enter(card);
    uint32_t ordinal = pool_find(card, id);
    if (!ordinal)
        ordinal = pool_add(card, id);
    if (ordinal) {
        card->pools[ordinal - 1].open++;
        card->pools[ordinal - 1].thread = pthread_self();
        card->pools_open++;
    }
    leave(card);
}

void card_pool_end(struct card *card, struct card_pool_id id)
{
    enter(card);
    uint32_t ordinal = pool_find(card, id);
    if (ordinal && card->pools[ordinal - 1].open) {
        card->pools[ordinal - 1].open--;
        card->pools_open--;
    }
    leave(card);
}

void card_pool_release(struct card *card, struct card_pool_id id)
{
    enter(card);
    uint32_t ordinal = pool_find(card, id);
    if (ordinal) {
        struct card_pool *pool = &card->pools[ordinal - 1];
        pool->released = true;
        card->pools_open -= pool->open;
        pool->open = 0;
        if (recording_wanted(card->recording))
            recording_trim(card->recording, ordinal);
        while (pool->kept) {
            struct card_block *block = pool->kept;
            pool->kept = block->next;
            (void)give_back(card, block, block->stream);
        }
        ar_policy_end_pool(card->policy, ordinal);
    }
    leave(card);
}

static uint32_t current_pool(struct card *card, CUstream stream)
{
    bool captured = driver_memory_is_captured(&card->memory, stream);
    for (uint32_t i = card->pool_count; i > 0; i--) {
        const struct card_pool *pool = &card->pools[i - 1];
        if (pool->open && (captured || pthread_equal(pool->thread, pthread_self())))
            return i;
    }
    return 0;
}

static bool pool_keeps(struct card *card, struct card_block *block)
{
    if (!block->pool || card->has_pools || card->pools[block->pool - 1].released)
        return false;
    struct card_pool *pool = &card->pools[block->pool - 1];
    block->next = pool->kept;
    pool->kept = block;
    return true;
}

/* ---- requests ------------------------------------------------------------------------------- */

static enum ar_status no_memory(struct card *card, uint64_t bytes, struct ar_error *error)
{
    const struct ar_policy_totals *totals = &card->policy->totals;
    double free_bytes = (double)driver_memory_free_bytes(&card->memory);
    return ar_error_set(error, AR_NO_MEMORY,
                        "CUDA out of memory. Tried to allocate %.2f MiB. GPU %u has %.2f MiB free. "
                        "Under the allocrig policy %s the program holds %.2f MiB, and the policy "
                        "has %.2f MiB of the card for that.",
                        (double)bytes / AR_MIB, card->ordinal, free_bytes / AR_MIB,
                        card->policy->ops->name, (double)totals->live_bytes / AR_MIB,
                        (double)card->memory.device->counters.physical_bytes / AR_MIB);
}

static enum ar_status broken(struct card *card, enum ar_status status, const char *what,
                             struct ar_error *error)
{
    const char *why = ar_policy_problem(card->policy);
    if (!*why && (status == AR_INVALID || card->memory.device->failed))
        why = ar_backing_problem(card->memory.relay.inner);
    return ar_error_set(error, status, "allocrig: policy %s cannot %s on GPU %u: %s%s%s",
                        card->policy->ops->name, what, card->ordinal, ar_status_meaning(status),
                        *why ? ": " : "", why);
}

/* Enters the block into the map and orders its stream after earlier users of the memory. */
static enum ar_status keep(struct card *card, const struct ar_policy_request *request,
                           struct card_block *block)
{
    struct ar_device *device = card->memory.device;
    if (block_at(card, block->block.address))
        return AR_CORRUPT;
    AR_TRY(ar_map_put(&card->map, block->block.address, (uint64_t)(uintptr_t)block));
    block->used_on = 0;
    block->stream = request->stream;
    if (!card->orders && card->stream_count > 1 && driver_memory_has_uses(&card->memory)) {
        driver_memory_enter(&card->memory);
        (void)device->ops->handed_out(device, block->block.address, block->block.granted_bytes,
                                      request->stream, true, 0);
    }
    return AR_OK;
}

static enum ar_status serve(struct card *card, uint64_t bytes, uint32_t stream, uint32_t pool,
                            uint64_t *address, struct ar_error *error)
{
    const struct ar_policy_request request = {
        .bytes = bytes,
        .alignment = card->alignment_bytes,
        .stream = stream,
        .pool = card->has_pools ? pool : 0,
    };
    struct card_block *block = block_new(card);
    enum ar_status status = block ? ar_map_reserve(&card->map) : AR_HOST_MEMORY;
    if (block)
        block->pool = pool;
    if (card->policy->totals.pending_bytes)
        ar_policy_progress(card->policy);
    AR_THEN(status, ar_policy_alloc(card->policy, &request, &block->block));
    AR_THEN(status, keep(card, &request, block));
    const struct recording_request recorded = {
        .bytes = bytes, .device = card->ordinal, .stream = stream, .pool = pool};
    if (status == AR_OK) {
        if (recording_wanted(card->recording))
            block->id = recording_served(card->recording, &recorded);
        *address = block->block.address;
        return AR_OK;
    }
    if (block)
        block_release(card, block);
    card->figures.failed++;
    if (recording_wanted(card->recording))
        recording_failed(card->recording, &recorded, driver_memory_free_bytes(&card->memory));
    return status == AR_NO_MEMORY ? no_memory(card, bytes, error)
                                  : broken(card, status, "serve a request", error);
}

enum ar_status card_alloc(struct card *card, uint64_t bytes, CUstream stream, uint64_t *address,
                          struct ar_error *error)
{
    uint64_t begun_ns = card->latency ? latency_clock_ns() : 0;
    uint32_t ordinal;
    enter(card);
    card->figures.requests++;
    enum ar_status status = find_stream(card, stream, &ordinal, error);
    if (status == AR_OK) {
        uint32_t pool = card->pools_open ? current_pool(card, stream) : 0;
        status = serve(card, bytes, ordinal, pool, address, error);
    }
    update_peaks(card);
    if (card->latency)
        ar_hist_add(&card->latency->alloc, latency_clock_ns() - begun_ns, 1);
    leave(card);
    return status;
}

/* ---- frees ---------------------------------------------------------------------------------- */

static enum ar_status unknown(struct card *card, uint64_t address, const char *what,
                              struct ar_error *error)
{
    card->figures.unknown++;
    return ar_invalid(error,
                      "allocrig: the program %s 0x%" PRIx64
                      " on GPU %u, where no block starts; it was freed before, or comes from "
                      "another allocator",
                      what, address, card->ordinal);
}

enum ar_status card_free(struct card *card, uint64_t address, CUstream stream,
                         struct ar_error *error)
{
    uint64_t begun_ns = card->latency ? latency_clock_ns() : 0;
    uint32_t ordinal;
    enter(card);
    struct card_block *block = block_at(card, address);
    enum ar_status status = find_stream(card, stream, &ordinal, error);
    if (status == AR_OK && !block)
        status = unknown(card, address, "frees", error);
    else if (status == AR_OK) {
        (void)ar_map_remove(&card->map, address);
        card->figures.frees++;
        if (recording_wanted(card->recording))
            recording_free_requested(card->recording, block->id, block->stream, ordinal);
        if (!pool_keeps(card, block)) {
            status = give_back(card, block, ordinal);
            if (status != AR_OK)
                status = broken(card, status, "free a block", error);
        }
    }
    if (card->latency)
        ar_hist_add(&card->latency->free, latency_clock_ns() - begun_ns, 1);
    leave(card);
    return status;
}

enum ar_status card_use(struct card *card, uint64_t address, CUstream stream,
                        struct ar_error *error)
{
    uint32_t ordinal;
    enter(card);
    enum ar_status status = find_stream(card, stream, &ordinal, error);
    struct card_block *block = block_at(card, address);
    if (status == AR_OK && !block)
        status = unknown(card, address, "uses", error);
    else if (status == AR_OK && block->stream != ordinal) {
        card->figures.uses++;
        block->used_on |= UINT64_C(1) << (ordinal < 63 ? ordinal : 63);
        if (recording_wanted(card->recording))
            recording_use(card->recording, block->id, ordinal);
        status = ar_policy_use(card->policy, &block->block, ordinal);
        if (status != AR_OK)
            status = broken(card, status, "note a use", error);
    }
    leave(card);
    return status;
}

void card_trim(struct card *card)
{
    enter(card);
    if (recording_wanted(card->recording))
        recording_trim(card->recording, 0);
    (void)ar_policy_trim(card->policy, 0);
    leave(card);
}

/* ---- figures and limits ---------------------------------------------------------------------- */

static void limit_memory(struct card *card, double fraction)
{
    double total_bytes = (double)card->memory.device->props.total_bytes;
    double share = fraction < 1 ? fraction : 1;
    driver_memory_limit(&card->memory, (uint64_t)(share * total_bytes));
}

void card_limit(struct card *card, double fraction)
{
    if (!(fraction > 0))
        return;
    enter(card);
    limit_memory(card, fraction);
    leave(card);
}

bool card_has(struct card *card, uint64_t address)
{
    enter(card);
    bool found = block_at(card, address) != NULL;
    leave(card);
    return found;
}

bool card_segment(struct card *card, uint64_t address, uint64_t *start, uint64_t *bytes)
{
    struct ar_device_segment segment;
    enter(card);
    struct ar_device *device = card->memory.device;
    bool found = device->ops->segment_of(device, address, &segment);
    leave(card);
    if (found) {
        *start = segment.address;
        *bytes = segment.bytes;
    }
    return found;
}

void card_figures(struct card *card, struct card_figures *out)
{
    enter(card);
    const struct ar_policy_totals *totals = &card->policy->totals;
    const struct ar_device_counters *counters = &card->memory.device->counters;
    *out = card->figures;
    out->live_bytes = totals->live_bytes;
    out->granted_bytes = totals->granted_bytes;
    out->reserved_bytes = totals->reserved_bytes;
    out->physical_bytes = counters->physical_bytes;
    out->peak_physical_bytes = counters->peak_physical_bytes;
    for (int i = 0; i < AR_DEVICE_CALL_COUNT; i++)
        out->driver_calls += counters->calls[i];
    out->driver_ns = counters->driver_ns;
    out->stall_ns = counters->stall_ns;
    out->metadata_bytes = card->host.now_bytes;
    leave(card);
}

void card_reset_peaks(struct card *card)
{
    enter(card);
    const struct ar_policy_totals *totals = &card->policy->totals;
    card->figures.peak_live_bytes = totals->live_bytes;
    card->figures.peak_granted_bytes = totals->granted_bytes;
    card->figures.peak_reserved_bytes = totals->reserved_bytes;
    driver_memory_reset_peak(&card->memory);
    ar_policy_reset_peaks(card->policy);
    leave(card);
}

/* ---- statistics in PyTorch's names ---------------------------------------------------------- */

struct lines {
    char *text;
    size_t room, bytes;
};

static void put(struct lines *lines, const char *name, uint64_t value)
{
    char line[128];
    size_t length = (size_t)snprintf(line, sizeof line, "%s %" PRIu64 "\n", name, value);
    for (size_t i = 0; i < length; i++)
        if (lines->bytes + i + 1 < lines->room)
            lines->text[lines->bytes + i] = line[i];
    lines->bytes += length;
}

static void put_four(struct lines *lines, const char *name, uint64_t current, uint64_t peak,
                     uint64_t added)
{
    const struct {
        const char *field;
        uint64_t value;
    } fields[] = {
        {"current", current}, {"peak", peak}, {"allocated", added}, {"freed", added - current}};
    for (size_t i = 0; i < AR_COUNT(fields); i++) {
        char text[96];
        snprintf(text, sizeof text, "%s.all.%s", name, fields[i].field);
        put(lines, text, fields[i].value);
    }
}

/* For a policy without a report: of the sums over all requests only the number is known. */
static void put_known(struct lines *lines, const struct card *card)
{
    struct ar_policy_stats stats;
    ar_policy_stats(card->policy, &stats);
    const struct ar_policy_totals *totals = &stats.totals;
    const uint64_t *calls = card->memory.device->counters.calls;
    const uint64_t free_bytes = ar_policy_free_bytes(totals);
    const uint64_t active_bytes = totals->granted_bytes + totals->pending_bytes;
    const uint64_t stranded_bytes =
        free_bytes > totals->releasable_bytes ? free_bytes - totals->releasable_bytes : 0;
    const uint64_t segments = stats.count.segments_made - stats.count.segments_freed;
    put_four(lines, "allocation", totals->live_blocks, totals->live_blocks,
             card->figures.requests - card->figures.failed);
    put_four(lines, "active", totals->live_blocks, totals->live_blocks,
             card->figures.requests - card->figures.failed);
    put_four(lines, "segment", segments, segments, stats.count.segments_made);
    put_four(lines, "allocated_bytes", totals->granted_bytes, card->figures.peak_granted_bytes,
             totals->granted_bytes);
    put_four(lines, "active_bytes", active_bytes,
             active_bytes > card->figures.peak_granted_bytes ? active_bytes
                                                             : card->figures.peak_granted_bytes,
             active_bytes);
    put_four(lines, "requested_bytes", totals->live_bytes, card->figures.peak_live_bytes,
             totals->live_bytes);
    put_four(lines, "reserved_bytes", totals->reserved_bytes, card->figures.peak_reserved_bytes,
             totals->reserved_bytes);
    put_four(lines, "inactive_split_bytes", stranded_bytes, stranded_bytes, stranded_bytes);
    put(lines, "num_alloc_retries", stats.count.retries);
    put(lines, "num_ooms", stats.count.failures);
    put(lines, "num_device_alloc", calls[AR_DEVICE_CALL_alloc] + calls[AR_DEVICE_CALL_create]);
    put(lines, "num_device_free", calls[AR_DEVICE_CALL_free] + calls[AR_DEVICE_CALL_destroy]);
}

size_t card_statistics(struct card *card, char *text, size_t text_bytes)
{
    struct lines lines = {text, text_bytes, 0};
    char name[96];
    uint64_t value;
    enter(card);
    if (ar_policy_report(card->policy, 0, name, sizeof name, &value))
        for (size_t i = 0; ar_policy_report(card->policy, i, name, sizeof name, &value); i++)
            put(&lines, name, value);
    else
        put_known(&lines, card);
    leave(card);
    if (text_bytes)
        text[lines.bytes < text_bytes ? lines.bytes : text_bytes - 1] = '\0';
    return lines.bytes + 1;
}

struct collection {
    const struct card *card;
    struct allocrig_range *out;
    size_t room, count;
};

static bool collect(void *argument, const struct ar_policy_range *range)
{
    struct collection *self = argument;
    const struct card *card = self->card;
    const size_t at = self->count++;
    if (at >= self->room)
        return true;
    self->out[at] = (struct allocrig_range){
        .address = range->address,
        .bytes = range->bytes,
        .requested_bytes = range->requested_bytes,
        .segment_address = range->segment_address,
        .stream = range->stream < card->stream_count ? card->streams[range->stream] : NULL,
        .state = range->state,
    };
    if (range->pool && range->pool <= card->pool_count) {
        self->out[at].pool[0] = card->pools[range->pool - 1].id.first;
        self->out[at].pool[1] = card->pools[range->pool - 1].id.second;
    }
    return true;
}

size_t card_ranges(struct card *card, struct allocrig_range *out, size_t room)
{
    struct collection collection = {card, out, room, 0};
    enter(card);
    ar_policy_walk(card->policy, collect, &collection);
    leave(card);
    return collection.count;
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum ar_status check_policy(const struct ar_policy_ops *ops, struct ar_error *error)
{
    if (ops->capabilities & AR_POLICY_OVERLAPS)
        return ar_invalid(error,
                          "policy %s hands out addresses without memory behind them and cannot "
                          "serve a program; choose another one",
                          ops->name);
    if (ops->capabilities & AR_POLICY_OFFLINE)
        return ar_invalid(error,
                          "policy %s must know all requests before the first one and cannot serve "
                          "a program; choose another one",
                          ops->name);
    return AR_OK;
}

static enum ar_status policy_open(struct card *card, const struct ar_spec *spec,
                                  struct ar_error *error)
{
    const struct ar_policy_ops *ops;
    enum ar_status status = registry_lookup(spec, &ops, error);
    AR_THEN(status, check_policy(ops, error));
    if (status == AR_OK && (ops->capabilities & AR_POLICY_NEEDS_MAPPING) &&
        !card->memory.relay.base.page_bytes)
        status =
            ar_error_set(error, AR_MISSING,
                         "policy %s needs virtual memory, which GPU %u or its driver does not have",
                         ops->name, card->ordinal);
    card->context = (struct ar_policy_context){
        .backing = &card->memory.relay.base, .host = &card->host, .unguarded = true};
    AR_THEN(status, registry_create(spec, &card->context, &card->policy, error));
    AR_TRY(status);
    ops = card->policy->ops;
    card->orders = ops->capabilities & AR_POLICY_STREAM_ORDERED;
    card->has_pools = ops->end_pool != NULL;
    card->alignment_bytes = ops->capabilities & AR_POLICY_HONOURS_ALIGNMENT ? ALIGNMENT_BYTES : 0;
    return AR_OK;
}

enum ar_status card_open(const struct card_settings *settings, unsigned ordinal, struct card **out,
                         struct ar_error *error)
{
    struct card *card = calloc(1, sizeof *card);
    struct card_latency *latency = settings->latency ? calloc(1, sizeof *latency) : NULL;
    uint32_t first;
    if (!card || (settings->latency && !latency) || pthread_mutex_init(&card->lock, NULL) != 0) {
        free(card);
        free(latency);
        return ar_error_set(error, AR_HOST_MEMORY, "the host has no memory left for a policy");
    }
    card->ordinal = ordinal;
    card->recording = settings->recording;
    card->latency = latency;
    card->map.host = &card->host;
    enum ar_status status = driver_memory_open(&card->memory, ordinal, error);
    AR_THEN(status, find_stream(card, NULL, &first, error)); /* ordinal 0, used or not */
    if (status == AR_OK && settings->fraction > 0)
        limit_memory(card, settings->fraction);
    AR_THEN(status, policy_open(card, settings->policy, error));
    if (status != AR_OK) {
        driver_memory_close(&card->memory);
        free(card->streams);
        pthread_mutex_destroy(&card->lock);
        free(latency);
        free(card);
        return status;
    }
    driver_memory_leave(&card->memory);
    *out = card;
    return AR_OK;
}
