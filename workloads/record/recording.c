/* From records to events.
 *
 * 1. Records are taken by time. Each process has its own addresses, streams and events; all
 *    ordinals are those of the trace. Ordinal 0 is the first default stream that is named.
 * 2. A served request is `a` and `!,alloc`; plain frees are `f`, stream-ordered ones `r` on their
 *    stream, whose completion the driver does not tell.
 * 3. A request that failed is `p`, or `a` where its process died and asked for nothing after it.
 * 4. A mapping of physical memory is a request, its unmapping the free; reservations and physical
 *    memory itself are notes.
 * 5. An address that is given out while a block is there was freed where nobody saw it (a context
 *    that ended): that block is complete just before. */
#include "workloads/record/recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/record/books.h"
#include "workloads/trace/trace.h"

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY and cudaErrorMemoryAllocation */

struct maker {
    const struct spools *spools;
    struct recording_counts *counts;
    struct trace_memory *memory;
    struct books books;
    uint64_t *last_request_ns;     /* of each process */
    const struct spool_file *file; /* of the record in hand */
    const struct spool_record *record;
    uint64_t first_ns, time_ns, next_id;
    bool died, begun;
    struct ar_error *error;
};

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a recording");
}

/* ---- emitting ------------------------------------------------------------------------------- */

struct keys {
    const char *tag, *rest;
    bool pinned;
    uint32_t pool;
};

/* The time of the record in hand, where the trace does not stand there yet. */
static enum ar_status emit_time(struct maker *m)
{
    uint64_t time_ns = m->record->time_ns - m->first_ns;
    if (m->begun && time_ns <= m->time_ns)
        return AR_OK;
    m->begun = true;
    m->time_ns = time_ns;
    const struct trace_event event = {.kind = TRACE_TIME, .value = time_ns};
    return trace_memory_append(m->memory, &event, NULL, NULL, m->error);
}

/* An event of the record in hand. `keys`: NULL for those that all events have. */
static enum ar_status emit(struct maker *m, struct trace_event event, const struct keys *keys)
{
    struct trace_attributes attributes = {
        .device = m->record->device, .thread = m->file->thread, .tenant = m->file->process};
    if (keys) {
        attributes.tag = keys->tag;
        attributes.rest = keys->rest;
        attributes.pool = keys->pool;
        attributes.space = keys->pinned ? TRACE_SPACE_PINNED : TRACE_SPACE_DEVICE;
    }
    enum ar_status status = emit_time(m);
    return status ? status : trace_memory_append(m->memory, &event, &attributes, NULL, m->error);
}

static enum ar_status emit_note(struct maker *m, const char *verb, unsigned count,
                                const uint64_t *values)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s", verb);
    for (unsigned i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ",%" PRIu64, values[i]);
    const struct trace_event event = {.kind = TRACE_NOTE};
    enum ar_status status = emit_time(m);
    return status ? status : trace_memory_append(m->memory, &event, NULL, text, m->error);
}

static enum ar_status stream_of(struct maker *m, uint32_t *stream)
{
    enum ar_status status =
        books_stream(&m->books, m->file->process, m->file->thread, m->record, stream);
    return status ? no_memory(m->error) : AR_OK;
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum ar_status make_failure(struct maker *m, const struct keys *keys)
{
    const struct spool_record *record = m->record;
    bool last = m->died && record->time_ns >= m->last_request_ns[m->file->process];
    struct trace_event event = {.kind = last ? TRACE_ALLOC : TRACE_PROBE, .value = record->bytes};
    m->counts->failed_allocs++;
    if (!record->bytes || record->bytes >= TRACE_BYTES_LIMIT)
        return AR_OK; /* bad input, not a lack of memory */
    enum ar_status status = stream_of(m, &event.stream);
    event.id = m->next_id++;
    if (!status)
        status = emit(m, event, keys);
    bool full = record->result == OUT_OF_MEMORY;
    const uint64_t value = full ? record->free_bytes : (uint64_t)record->result;
    if (!status)
        status = emit_note(m, full ? "oom" : "failed", 1, &value);
    event.kind = TRACE_FREE_REQUESTED;
    event.value = 0;
    return status ? status : emit(m, event, NULL);
}

/* A block that was there is freed: by the record in hand, or unseen before it. */
static enum ar_status make_free(struct maker *m, uint64_t id, bool ordered)
{
    struct trace_event event = {.kind = ordered ? TRACE_FREE_REQUESTED : TRACE_FREE_COMPLETED,
                                .id = id};
    enum ar_status status = ordered ? stream_of(m, &event.stream) : AR_OK;
    return status ? status : emit(m, event, NULL);
}

static enum ar_status make_block(struct maker *m, const struct keys *keys)
{
    const struct spool_record *record = m->record;
    struct books_block block;
    enum ar_status status = AR_OK;
    if (!record->address || record->bytes >= TRACE_BYTES_LIMIT)
        return AR_OK; /* nothing was asked for, and nothing given */
    if (books_block_take(&m->books, m->file->process, record->address, &block)) {
        m->counts->reused++;
        status = make_free(m, block.id, false);
    }
    block = (struct books_block){.id = m->next_id, .bytes = record->bytes};
    if (!status)
        status = books_block_add(&m->books, m->file->process, record->address, block)
                     ? no_memory(m->error)
                     : AR_OK;
    struct trace_event event = {.kind = TRACE_ALLOC, .id = m->next_id++, .value = record->bytes};
    if (!status)
        status = stream_of(m, &event.stream);
    if (!status)
        status = emit(m, event, keys);
    m->counts->allocs++;
    return status ? status : emit_note(m, "alloc", 1, &record->address);
}

static enum ar_status make_alloc(struct maker *m)
{
    const struct spool_record *record = m->record;
    struct keys keys = {.tag = record->flags & SPOOL_MANAGED ? "managed" : NULL,
                        .pinned = record->flags & SPOOL_PINNED};
    if (record->kind == SPOOL_ALLOC && record->other &&
        books_pool(&m->books, m->file->process, record->other, &keys.pool))
        return no_memory(m->error);
    if (record->result)
        return make_failure(m, &keys);
    m->counts->managed += (record->flags & SPOOL_MANAGED) != 0;
    m->counts->pinned += (record->flags & SPOOL_PINNED) != 0;
    return make_block(m, &keys);
}

static enum ar_status make_release(struct maker *m)
{
    const struct spool_record *record = m->record;
    struct books_block block;
    if (record->result) {
        m->counts->failed_frees++;
        return AR_OK;
    }
    if (!record->address)
        return AR_OK; /* freeing nothing is a way to start the runtime */
    if (!books_block_take(&m->books, m->file->process, record->address, &block)) {
        m->counts->unknown_frees++;
        return emit_note(m, "unknown_free", 1, &record->address);
    }
    m->counts->frees++;
    return make_free(m, block.id, record->kind == SPOOL_FREE_ASYNC);
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static enum ar_status make_physical(struct maker *m)
{
    const struct spool_record *record = m->record;
    uint64_t number = 0;
    bool pinned = record->flags & SPOOL_PINNED;
    const struct keys keys = {.tag = "physical", .pinned = pinned};
    if (record->kind == SPOOL_CREATE && record->result)
        return make_failure(m, &keys);
    if (record->result)
        return AR_OK;
    if (record->kind == SPOOL_RELEASE)
        return books_physical_find(&m->books, m->file->process, record->other, &number, &pinned)
                   ? emit_note(m, "physical_free", 1, &number)
                   : AR_OK;
    if (books_physical_add(&m->books, m->file->process, record->other, pinned, &number))
        return no_memory(m->error);
    return emit_note(m, "physical_alloc", 2, (const uint64_t[]){number, record->bytes});
}

static enum ar_status make_mapping(struct maker *m)
{
    const struct spool_record *record = m->record;
    char rest[64] = "";
    uint64_t number;
    uint32_t stream = 0;
    struct keys keys = {.tag = "mapped"};
    if (record->result)
        return AR_OK;
    if (books_physical_find(&m->books, m->file->process, record->other, &number, &keys.pinned)) {
        snprintf(rest, sizeof rest, "physical=%" PRIu64, number);
        keys.rest = rest;
    }
    m->counts->mappings++;
    enum ar_status status = make_block(m, &keys);
    if (!status)
        status = stream_of(m, &stream);
    return status ? status
                  : emit_note(m, "segment_map", 3,
                              (const uint64_t[]){record->address, record->bytes, stream});
}

static enum ar_status make_unmapping(struct maker *m)
{
    const struct spool_record *record = m->record;
    uint64_t end = record->address + record->bytes;
    struct books_block block;
    uint32_t stream = 0;
    enum ar_status status = AR_OK;
    if (record->result) {
        m->counts->failed_frees++;
        return AR_OK;
    }
    uint64_t at = record->address;
    while (!status && at < end && books_block_take(&m->books, m->file->process, at, &block)) {
        m->counts->frees++;
        status = make_free(m, block.id, false);
        at += block.bytes;
    }
    if (at < end)
        m->counts->unknown_frees++;
    if (!status)
        status = stream_of(m, &stream);
    return status ? status
                  : emit_note(m, "segment_unmap", 3,
                              (const uint64_t[]){record->address, record->bytes, stream});
}

/* ---- streams, events, kernels --------------------------------------------------------------- */

static enum ar_status make_event(struct maker *m)
{
    const struct spool_record *record = m->record;
    struct trace_event event = {.kind = record->kind == SPOOL_EVENT ? TRACE_RECORD : TRACE_WAIT};
    enum ar_status status = AR_OK;
    if (record->result)
        return AR_OK;
    if (record->kind == SPOOL_EVENT)
        status = books_event_recorded(&m->books, m->file->process, record->other, &event.value);
    else if (!books_event_find(&m->books, m->file->process, record->other, &event.value))
        status = AR_UNSUPPORTED;
    if (status == AR_UNSUPPORTED) {
        m->counts->dropped_waits++;
        return AR_OK;
    }
    if (status)
        return no_memory(m->error);
    status = stream_of(m, &event.stream);
    return status ? status : emit(m, event, NULL);
}

static enum ar_status make_sync(struct maker *m)
{
    struct trace_event event = {.kind = TRACE_SYNC, .stream = TRACE_NO_STREAM};
    uint64_t number;
    if (m->record->result)
        return AR_OK;
    if (m->record->kind == SPOOL_SYNC_EVENT)
        return books_event_find(&m->books, m->file->process, m->record->other, &number)
                   ? emit_note(m, "event_synchronize", 1, &number)
                   : AR_OK;
    enum ar_status status = m->record->kind == SPOOL_SYNC ? stream_of(m, &event.stream) : AR_OK;
    return status ? status : emit(m, event, NULL);
}

/* A launch is one kernel, or with a graph several. */
static enum ar_status make_launch(struct maker *m)
{
    const struct spool_record *record = m->record;
    struct trace_event event = {.kind = TRACE_KERNEL};
    size_t count = 0;
    if (record->result)
        return AR_OK;
    struct spool_kernel *kernels =
        spools_kernels_of(m->spools, m->file->process, record->correlation, &count);
    if (!count && record->outer_correlation)
        kernels = spools_kernels_of(m->spools, m->file->process, record->outer_correlation, &count);
    enum ar_status status = stream_of(m, &event.stream);
    m->counts->kernels += count ? count : 1;
    m->counts->untimed_kernels += count == 0;
    if (!count && !status)
        return emit(m, event, NULL);
    for (size_t i = 0; i < count && !status; i++) {
        event.value = kernels[i].duration_ns;
        kernels[i].placed = true;
        status = emit(m, event, NULL);
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------ */

static enum ar_status make_one(struct maker *m)
{
    const struct spool_record *record = m->record;
    switch (record->kind) {
    case SPOOL_ALLOC:
        return make_alloc(m);
    case SPOOL_FREE:
    case SPOOL_FREE_ASYNC:
        return make_release(m);
    case SPOOL_CREATE:
    case SPOOL_RELEASE:
        return make_physical(m);
    case SPOOL_RESERVE:
    case SPOOL_UNRESERVE:
    case SPOOL_ACCESS:
        if (record->result)
            return AR_OK;
        return emit_note(m,
                         record->kind == SPOOL_RESERVE     ? "reserve"
                         : record->kind == SPOOL_UNRESERVE ? "unreserve"
                                                           : "access",
                         2, (const uint64_t[]){record->address, record->bytes});
    case SPOOL_MAP:
        return make_mapping(m);
    case SPOOL_UNMAP:
        return make_unmapping(m);
    case SPOOL_EVENT:
    case SPOOL_WAIT:
        return make_event(m);
    case SPOOL_EVENT_GONE:
        return books_event_gone(&m->books, m->file->process, record->other) ? no_memory(m->error)
                                                                            : AR_OK;
    case SPOOL_SYNC:
    case SPOOL_SYNC_DEVICE:
    case SPOOL_SYNC_EVENT:
        return make_sync(m);
    case SPOOL_TRIM:
        return record->result ? AR_OK : emit(m, (struct trace_event){.kind = TRACE_TRIM}, NULL);
    case SPOOL_LAUNCH:
        return make_launch(m);
    default:
        return AR_OK; /* of a later layout */
    }
}

static enum ar_status make_all(struct maker *m)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < m->spools->order_count && !status; i++) {
        const struct spool_place *place = &m->spools->order[i];
        m->file = &m->spools->files[place->file];
        m->record = &m->file->records[place->index];
        status = make_one(m);
    }
    for (size_t i = 0; i < m->spools->kernel_count; i++)
        m->counts->unplaced_kernels += !m->spools->kernels[i].placed;
    return status;
}

/* When each process asked for memory last. */
static enum ar_status find_last(struct maker *m)
{
    const struct spools *spools = m->spools;
    m->last_request_ns = calloc(spools->process_count + 1u, sizeof *m->last_request_ns);
    if (!m->last_request_ns)
        return no_memory(m->error);
    for (size_t i = 0; i < spools->order_count; i++) {
        const struct spool_place *place = &spools->order[i];
        const struct spool_file *file = &spools->files[place->file];
        uint8_t kind = file->records[place->index].kind;
        if (kind == SPOOL_ALLOC || kind == SPOOL_CREATE || kind == SPOOL_MAP)
            m->last_request_ns[file->process] = place->time_ns;
    }
    return AR_OK;
}

/* What is no printable letter, in a damaged file, becomes a question mark. */
static void copy_name(const struct spool_device *device, char *name, size_t room)
{
    size_t i = 0;
    for (; i + 1 < room && i < sizeof device->name && device->name[i]; i++)
        name[i] = device->name[i] >= ' ' && device->name[i] <= '~' ? device->name[i] : '?';
    name[i] = '\0';
}

static void fill_info(const struct spools *spools, const char *name, bool died,
                      struct trace_info *info)
{
    snprintf(info->name, sizeof info->name, "%s", name);
    info->complete = !died;
    for (size_t i = 0; i < spools->file_count; i++) {
        const struct spool_head *head = spools->files[i].head;
        if (!info->recorder[0] && head->driver_version > 0)
            snprintf(info->recorder, sizeof info->recorder, "cuda-driver %d.%d",
                     (int)head->driver_version / 1000, (int)head->driver_version % 1000 / 10);
        for (size_t j = 0; j < SPOOL_DEVICES && !info->card[0]; j++) {
            copy_name(&head->devices[j], info->card, sizeof info->card);
            bool told = info->card[0] && head->devices[j].bytes < TRACE_BYTES_LIMIT;
            info->capacity_bytes = told ? head->devices[j].bytes : 0;
        }
    }
}

static void count_files(const struct spools *spools, struct recording_counts *counts)
{
    counts->lost = spools->lost;
    counts->processes = spools->process_count;
    counts->threads = spools->thread_count;
    for (size_t i = 0; i < spools->file_count; i++) {
        const struct spool_file *file = &spools->files[i];
        counts->cost_samples += file->head->cost.samples;
        counts->cost_total_ns += file->head->cost.total_ns;
    }
}

enum ar_status recording_make(const struct spools *spools, const char *name, bool died,
                              struct trace_source **out, struct recording_counts *counts,
                              struct ar_error *error)
{
    struct trace_info info = {0};
    struct maker m = {.spools = spools, .counts = counts, .died = died, .error = error};
    *counts = (struct recording_counts){0};
    fill_info(spools, name, died, &info);
    count_files(spools, counts);
    if (spools->order_count)
        m.first_ns = spools->order[0].time_ns;
    m.memory = trace_memory_create(&info);
    enum ar_status status = m.memory ? books_open(&m.books, spools->process_count) : AR_HOST_MEMORY;
    status = status ? no_memory(error) : find_last(&m);
    if (!status)
        status = make_all(&m);
    books_close(&m.books);
    free(m.last_request_ns);
    if (status) {
        trace_memory_discard(m.memory);
        return status;
    }
    return trace_memory_open(m.memory, out, error);
}
