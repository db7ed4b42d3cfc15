#include "bench/plugin/card.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "bench/plugin/card_parts.h"
#include "sim/replay/latency.h"

#define MIB 1048576.0
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
    const struct policy_totals *totals = &card->policy->totals;
    raise_to(&card->figures.peak_live_bytes, totals->live_bytes);
    raise_to(&card->figures.peak_granted_bytes, totals->granted_bytes);
    raise_to(&card->figures.peak_reserved_bytes, totals->reserved_bytes);
}

/* ---- records of blocks ---------------------------------------------------------------------- */

static struct card_block *block_take(struct card *card)
{
    if (!card->unused) {
        struct card_chunk *chunk = host_alloc(&card->host, sizeof *chunk);
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

static struct card_block *block_of(const struct policy_block *entry)
{
    return (struct card_block *)(uintptr_t)entry->cookie;
}

/* ---- requests ------------------------------------------------------------------------------- */

static enum status no_memory(struct card *card, uint64_t bytes, struct error *error)
{
    const struct policy_totals *totals = &card->policy->totals;
    double free_bytes = (double)driver_memory_free_bytes(&card->memory);
    return error_set(
        error, STATUS_NO_MEMORY,
        "CUDA out of memory. Tried to allocate %.2f MiB. GPU %u has %.2f MiB free. Under the "
        "allocrig policy %s the program holds %.2f MiB, and the policy has %.2f MiB "
        "of the card for that.",
        (double)bytes / MIB, card->ordinal, free_bytes / MIB, card->policy->ops->name,
        (double)totals->live_bytes / MIB,
        (double)card->memory.device->counters.physical_bytes / MIB);
}

static enum status broken(struct card *card, enum status status, const char *what,
                          struct error *error)
{
    const char *why = policy_problem(card->policy);
    if (!*why && (status == STATUS_INVALID || card->memory.device->failed))
        why = backing_problem(card->memory.inner);
    return error_set(error, status, "allocrig: policy %s cannot %s on GPU %u: %s%s%s",
                     card->policy->ops->name, what, card->ordinal, status_meaning(status),
                     *why ? ": " : "", why);
}

/* What the policy gave becomes the program's. */
static enum status keep(struct card *card, const struct policy_request *request,
                        struct card_block *block)
{
    const struct policy_block entry = {
        .address = block->block.address,
        .cookie = (uint64_t)(uintptr_t)block,
    };
    struct device *device = card->memory.device;
    enum status status = address_map_insert(&card->map, &entry);
    if (status != STATUS_OK)
        return status;
    block->used_on = 0;
    block->stream = request->stream;
    if (!card->orders && card->stream_count > 1 && driver_memory_has_uses(&card->memory)) {
        driver_memory_enter(&card->memory);
        (void)device->ops->handed_out(device, block->block.address, block->block.granted_bytes,
                                      request->stream, true, 0);
    }
    return STATUS_OK;
}

static enum status serve(struct card *card, uint64_t bytes, uint32_t stream, uint32_t pool,
                         uint64_t *address, struct error *error)
{
    const struct policy_request request = {
        .bytes = bytes,
        .alignment = card->alignment_bytes,
        .stream = stream,
        .pool = card->has_pools ? pool : 0,
    };
    struct card_block *block = block_take(card);
    enum status status = block ? address_map_reserve(&card->map) : STATUS_HOST_MEMORY;
    if (block)
        block->pool = pool;
    if (card->policy->totals.pending_bytes)
        policy_progress(card->policy);
    if (status == STATUS_OK)
        status = policy_alloc(card->policy, &request, &block->block);
    if (status == STATUS_OK)
        status = keep(card, &request, block);
    const struct recording_request asked = {
        .bytes = bytes, .device = card->ordinal, .stream = stream, .pool = pool};
    if (status == STATUS_OK) {
        if (recording_wanted(card->recording))
            block->id = recording_served(card->recording, &asked);
        *address = block->block.address;
        return STATUS_OK;
    }
    if (block)
        block_give(card, block);
    card->figures.failed++;
    if (recording_wanted(card->recording))
        recording_failed(card->recording, &asked, driver_memory_free_bytes(&card->memory));
    return status == STATUS_NO_MEMORY ? no_memory(card, bytes, error)
                                      : broken(card, status, "serve a request", error);
}

enum status card_alloc(struct card *card, uint64_t bytes, CUstream stream, uint64_t *address,
                       struct error *error)
{
    uint64_t begun_ns = card->latency ? latency_clock_ns() : 0;
    uint32_t ordinal;
    card_enter(card);
    card->figures.requests++;
    enum status status = card_stream(card, stream, &ordinal, error);
    if (status == STATUS_OK) {
        uint32_t pool = card->pools_open ? card_pool_now(card, stream) : 0;
        status = serve(card, bytes, ordinal, pool, address, error);
    }
    note_peaks(card);
    if (card->latency)
        hist_add(&card->latency->alloc, latency_clock_ns() - begun_ns, 1);
    card_leave(card);
    return status;
}

/* ---- frees ---------------------------------------------------------------------------------- */

/* All that was queued so far on the streams of the block may use its memory. */
static void note_uses(struct card *card, const struct card_block *block, uint32_t stream)
{
    struct device *device = card->memory.device;
    driver_memory_enter(&card->memory);
    for (uint32_t i = 0; i < card->stream_count; i++) {
        bool used =
            i == block->stream || i == stream || (block->used_on >> (i < 63 ? i : 63) & 1) != 0;
        if (used)
            device->ops->used(device, block->block.address, block->block.granted_bytes, i, 0);
    }
}

enum status card_give_back(struct card *card, struct card_block *block, uint32_t stream)
{
    if (!card->orders && card->stream_count > 1)
        note_uses(card, block, stream);
    enum status status = policy_free(card->policy, &block->block, stream);
    block_give(card, block);
    return status;
}

static enum status unknown(struct card *card, uint64_t address, const char *what,
                           struct error *error)
{
    card->figures.unknown++;
    return error_set(error, STATUS_INVALID,
                     "allocrig: the program %s 0x%" PRIx64
                     " on GPU %u, where no block starts; it was "
                     "freed before, or another allocator gave it",
                     what, address, card->ordinal);
}

enum status card_free(struct card *card, uint64_t address, CUstream stream, struct error *error)
{
    uint64_t begun_ns = card->latency ? latency_clock_ns() : 0;
    struct policy_block entry;
    uint32_t ordinal;
    card_enter(card);
    enum status status = card_stream(card, stream, &ordinal, error);
    if (status == STATUS_OK && !address_map_remove(&card->map, address, &entry))
        status = unknown(card, address, "frees", error);
    else if (status == STATUS_OK) {
        struct card_block *block = block_of(&entry);
        card->figures.frees++;
        if (recording_wanted(card->recording))
            recording_free_requested(card->recording, block->id, block->stream, ordinal);
        if (!card_pool_hold(card, block)) {
            status = card_give_back(card, block, ordinal);
            if (status != STATUS_OK)
                status = broken(card, status, "free a block", error);
        }
    }
    if (card->latency)
        hist_add(&card->latency->free, latency_clock_ns() - begun_ns, 1);
    card_leave(card);
    return status;
}

enum status card_use(struct card *card, uint64_t address, CUstream stream, struct error *error)
{
    uint32_t ordinal;
    card_enter(card);
    enum status status = card_stream(card, stream, &ordinal, error);
    const struct policy_block *entry = address_map_find(&card->map, address);
    if (status == STATUS_OK && !entry)
        status = unknown(card, address, "uses", error);
    else if (status == STATUS_OK && block_of(entry)->stream != ordinal) {
        struct card_block *block = block_of(entry);
        card->figures.uses++;
        block->used_on |= UINT64_C(1) << (ordinal < 63 ? ordinal : 63);
        if (recording_wanted(card->recording))
            recording_use(card->recording, block->id, ordinal);
        status = policy_use(card->policy, &block->block, ordinal);
        if (status != STATUS_OK)
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
    (void)policy_trim(card->policy, 0);
    card_leave(card);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* What a policy must be to serve a program: see the sentences. */
static enum status suits(const struct policy_ops *ops, struct error *error)
{
    if (ops->capabilities & POLICY_OVERLAPS)
        return error_set(
            error, STATUS_INVALID,
            "policy %s hands out addresses without memory behind them and cannot serve a "
            "program; choose another one",
            ops->name);
    if (ops->capabilities & POLICY_OFFLINE)
        return error_set(
            error, STATUS_INVALID,
            "policy %s has to know all requests before the first one and cannot serve a "
            "program; choose another one",
            ops->name);
    return STATUS_OK;
}

static enum status policy_open(struct card *card, const struct spec *spec, struct error *error)
{
    const struct policy_ops *ops;
    enum status status = registry_lookup(spec, &ops, error);
    if (status == STATUS_OK)
        status = suits(ops, error);
    if (status == STATUS_OK && (ops->capabilities & POLICY_NEEDS_MAPPING) &&
        !card->memory.base.page_bytes)
        status =
            error_set(error, STATUS_MISSING,
                      "policy %s needs virtual memory, which GPU %u or its driver does not have",
                      ops->name, card->ordinal);
    card->context = (struct policy_context){.backing = &card->memory.base, .host = &card->host};
    if (status == STATUS_OK)
        status = registry_create(spec, &card->context, &card->policy, error);
    if (status != STATUS_OK)
        return status;
    ops = card->policy->ops;
    card->orders = ops->capabilities & POLICY_STREAM_ORDERED;
    card->has_pools = ops->end_pool != NULL;
    card->alignment_bytes = ops->capabilities & POLICY_HONOURS_ALIGNMENT ? ALIGNMENT_BYTES : 0;
    return STATUS_OK;
}

enum status card_open(const struct card_settings *settings, unsigned ordinal, struct card **out,
                      struct error *error)
{
    struct card *card = calloc(1, sizeof *card);
    struct card_latency *latency = settings->latency ? calloc(1, sizeof *latency) : NULL;
    uint32_t first;
    if (!card || (settings->latency && !latency) || pthread_mutex_init(&card->lock, NULL) != 0) {
        free(card);
        free(latency);
        return error_set(error, STATUS_HOST_MEMORY, "the host has no memory left for a policy");
    }
    card->ordinal = ordinal;
    card->recording = settings->recording;
    card->latency = latency;
    address_map_open(&card->map, &card->host);
    enum status status = driver_memory_open(&card->memory, ordinal, error);
    if (status == STATUS_OK)
        status = card_stream(card, NULL, &first, error); /* it is 0 whether it is used or not */
    if (status == STATUS_OK && settings->fraction > 0)
        card_limit_inside(card, settings->fraction);
    if (status == STATUS_OK)
        status = policy_open(card, settings->policy, error);
    if (status != STATUS_OK) {
        driver_memory_close(&card->memory);
        card_streams_close(card);
        pthread_mutex_destroy(&card->lock);
        free(latency);
        free(card);
        return status;
    }
    driver_memory_leave(&card->memory);
    *out = card;
    return STATUS_OK;
}
