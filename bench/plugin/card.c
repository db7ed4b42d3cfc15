#include "bench/plugin/card.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "bench/plugin/card_parts.h"
#include "sim/replay/latency.h"

#define AR_MIB 1048576.0
/* What kernels take for granted of memory that cudaMalloc gave. */
#define ALIGNMENT_BYTES UINT64_C(256)
#define CHUNK_BLOCKS    256u

struct card_chunk {
    struct card_chunk *next;
    struct card_block blocks[CHUNK_BLOCKS];
};

/* ---- inside --------------------------------------------------------------------------------- */

void card_enter(struct card *card)
{
    if (pthread_mutex_trylock(&card->lock) == 0)
        return;
    pthread_mutex_lock(&card->lock);
    card->figures.lock_waits++;
}

void card_leave(struct card *card)
{
    driver_memory_leave(&card->memory);
    pthread_mutex_unlock(&card->lock);
}

static void raise_to(uint64_t *peak, uint64_t value)
{
    if (value > *peak)
        *peak = value;
}

/* Peaks move with requests only: nothing else makes any of these larger. */
static void note_peaks(struct card *card)
{
    const struct ar_policy_totals *totals = &card->policy->totals;
    raise_to(&card->figures.peak_live_bytes, totals->live_bytes);
    raise_to(&card->figures.peak_granted_bytes, totals->granted_bytes);
    raise_to(&card->figures.peak_reserved_bytes, totals->reserved_bytes);
}

/* ---- records of blocks ---------------------------------------------------------------------- */

static struct card_block *block_take(struct card *card)
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

static void block_give(struct card *card, struct card_block *block)
{
    block->next = card->unused;
    card->unused = block;
}

static struct card_block *block_of(const struct ar_policy_block *entry)
{
    return (struct card_block *)(uintptr_t)entry->cookie;
}

/* ---- requests ------------------------------------------------------------------------------- */

static enum ar_status no_memory(struct card *card, uint64_t bytes, struct ar_error *error)
{
    const struct ar_policy_totals *totals = &card->policy->totals;
    double free_bytes = (double)driver_memory_free_bytes(&card->memory);
    return ar_error_set(
        error, AR_NO_MEMORY,
        "CUDA out of memory. Tried to allocate %.2f MiB. GPU %u has %.2f MiB free. Under the "
        "allocrig policy %s the program holds %.2f MiB, and the policy has %.2f MiB "
        "of the card for that.",
        (double)bytes / AR_MIB, card->ordinal, free_bytes / AR_MIB, card->policy->ops->name,
        (double)totals->live_bytes / AR_MIB,
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

/* What the policy gave becomes the program's. */
static enum ar_status keep(struct card *card, const struct ar_policy_request *request,
                           struct card_block *block)
{
    const struct ar_policy_block entry = {
        .address = block->block.address,
        .cookie = (uint64_t)(uintptr_t)block,
    };
    struct ar_device *device = card->memory.device;
    enum ar_status status = address_map_insert(&card->map, &entry);
    if (status != AR_OK)
        return status;
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
    struct card_block *block = block_take(card);
    enum ar_status status = block ? address_map_reserve(&card->map) : AR_HOST_MEMORY;
    if (block)
        block->pool = pool;
    if (card->policy->totals.pending_bytes)
        ar_policy_progress(card->policy);
    if (status == AR_OK)
        status = ar_policy_alloc(card->policy, &request, &block->block);
    if (status == AR_OK)
        status = keep(card, &request, block);
    const struct recording_request asked = {
        .bytes = bytes, .device = card->ordinal, .stream = stream, .pool = pool};
    if (status == AR_OK) {
        if (recording_wanted(card->recording))
            block->id = recording_served(card->recording, &asked);
        *address = block->block.address;
        return AR_OK;
    }
    if (block)
        block_give(card, block);
    card->figures.failed++;
    if (recording_wanted(card->recording))
        recording_failed(card->recording, &asked, driver_memory_free_bytes(&card->memory));
    return status == AR_NO_MEMORY ? no_memory(card, bytes, error)
                                  : broken(card, status, "serve a request", error);
}

enum ar_status card_alloc(struct card *card, uint64_t bytes, CUstream stream, uint64_t *address,
                          struct ar_error *error)
{
    uint64_t begun_ns = card->latency ? latency_clock_ns() : 0;
    uint32_t ordinal;
    card_enter(card);
    card->figures.requests++;
    enum ar_status status = card_stream(card, stream, &ordinal, error);
    if (status == AR_OK) {
        uint32_t pool = card->pools_open ? card_pool_now(card, stream) : 0;
        status = serve(card, bytes, ordinal, pool, address, error);
    }
    note_peaks(card);
    if (card->latency)
        ar_hist_add(&card->latency->alloc, latency_clock_ns() - begun_ns, 1);
    card_leave(card);
    return status;
}

/* ---- frees ---------------------------------------------------------------------------------- */

/* All that was queued so far on the streams of the block may use its memory. */
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

enum ar_status card_give_back(struct card *card, struct card_block *block, uint32_t stream)
{
    if (!card->orders && card->stream_count > 1)
        note_uses(card, block, stream);
    enum ar_status status = ar_policy_free(card->policy, &block->block, stream);
    block_give(card, block);
    return status;
}

static enum ar_status unknown(struct card *card, uint64_t address, const char *what,
                              struct ar_error *error)
{
    card->figures.unknown++;
    return ar_error_set(error, AR_INVALID,
                        "allocrig: the program %s 0x%" PRIx64
                        " on GPU %u, where no block starts; it was "
                        "freed before, or another allocator gave it",
                        what, address, card->ordinal);
}

enum ar_status card_free(struct card *card, uint64_t address, CUstream stream,
                         struct ar_error *error)
{
    uint64_t begun_ns = card->latency ? latency_clock_ns() : 0;
    struct ar_policy_block entry;
    uint32_t ordinal;
    card_enter(card);
    enum ar_status status = card_stream(card, stream, &ordinal, error);
    if (status == AR_OK && !address_map_remove(&card->map, address, &entry))
        status = unknown(card, address, "frees", error);
    else if (status == AR_OK) {
        struct card_block *block = block_of(&entry);
        card->figures.frees++;
        if (recording_wanted(card->recording))
            recording_free_requested(card->recording, block->id, block->stream, ordinal);
        if (!card_pool_hold(card, block)) {
            status = card_give_back(card, block, ordinal);
            if (status != AR_OK)
                status = broken(card, status, "free a block", error);
        }
    }
    if (card->latency)
        ar_hist_add(&card->latency->free, latency_clock_ns() - begun_ns, 1);
    card_leave(card);
    return status;
}

enum ar_status card_use(struct card *card, uint64_t address, CUstream stream,
                        struct ar_error *error)
{
    uint32_t ordinal;
    card_enter(card);
    enum ar_status status = card_stream(card, stream, &ordinal, error);
    const struct ar_policy_block *entry = address_map_find(&card->map, address);
    if (status == AR_OK && !entry)
        status = unknown(card, address, "uses", error);
    else if (status == AR_OK && block_of(entry)->stream != ordinal) {
        struct card_block *block = block_of(entry);
        card->figures.uses++;
        block->used_on |= UINT64_C(1) << (ordinal < 63 ? ordinal : 63);
        if (recording_wanted(card->recording))
            recording_use(card->recording, block->id, ordinal);
        status = ar_policy_use(card->policy, &block->block, ordinal);
        if (status != AR_OK)
            status = broken(card, status, "note a use", error);
    }
    card_leave(card);
    return status;
}

void card_trim(struct card *card)
{
    card_enter(card);
    if (recording_wanted(card->recording))
        recording_trim(card->recording, 0);
    (void)ar_policy_trim(card->policy, 0);
    card_leave(card);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* What a policy must be to serve a program: see the sentences. */
static enum ar_status suits(const struct ar_policy_ops *ops, struct ar_error *error)
{
    if (ops->capabilities & AR_POLICY_OVERLAPS)
        return ar_error_set(
            error, AR_INVALID,
            "policy %s hands out addresses without memory behind them and cannot serve a "
            "program; choose another one",
            ops->name);
    if (ops->capabilities & AR_POLICY_OFFLINE)
        return ar_error_set(
            error, AR_INVALID,
            "policy %s has to know all requests before the first one and cannot serve a "
            "program; choose another one",
            ops->name);
    return AR_OK;
}

static enum ar_status policy_open(struct card *card, const struct ar_spec *spec,
                                  struct ar_error *error)
{
    const struct ar_policy_ops *ops;
    enum ar_status status = registry_lookup(spec, &ops, error);
    if (status == AR_OK)
        status = suits(ops, error);
    if (status == AR_OK && (ops->capabilities & AR_POLICY_NEEDS_MAPPING) &&
        !card->memory.relay.base.page_bytes)
        status =
            ar_error_set(error, AR_MISSING,
                         "policy %s needs virtual memory, which GPU %u or its driver does not have",
                         ops->name, card->ordinal);
    card->context =
        (struct ar_policy_context){.backing = &card->memory.relay.base, .host = &card->host};
    if (status == AR_OK)
        status = registry_create(spec, &card->context, &card->policy, error);
    if (status != AR_OK)
        return status;
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
    address_map_open(&card->map, &card->host);
    enum ar_status status = driver_memory_open(&card->memory, ordinal, error);
    if (status == AR_OK)
        status = card_stream(card, NULL, &first, error); /* it is 0 whether it is used or not */
    if (status == AR_OK && settings->fraction > 0)
        card_limit_inside(card, settings->fraction);
    if (status == AR_OK)
        status = policy_open(card, settings->policy, error);
    if (status != AR_OK) {
        driver_memory_close(&card->memory);
        card_streams_close(card);
        pthread_mutex_destroy(&card->lock);
        free(latency);
        free(card);
        return status;
    }
    driver_memory_leave(&card->memory);
    *out = card;
    return AR_OK;
}
