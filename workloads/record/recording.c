/* From records to events.
 *
 * 1. Records are read in the order of time. Each process has its own addresses, streams and events;
 *    all ordinals are those of the trace. Ordinal 0 is the first default stream that occurs.
 * 2. A served request is `a` and `!,alloc`. Plain frees are `f`; stream-ordered ones are `r` on
 *    their stream, because the driver does not report their completion.
 * 3. A request that failed is `p`, or `a` if its process died without a later request.
 * 4. A mapping of physical memory is a request, its unmapping the free; reservations and physical
 *    memory itself are notes.
 * 5. If a request gets the address of a live block, that block was freed without a record (its
 *    context ended): it is complete just before. */
#include "workloads/record/recording.h"

#include "allocators/base/array.h"
#include "workloads/trace/check.h"
#include "workloads/trace/trace.h"

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY and cudaErrorMemoryAllocation */

struct block {
    uint64_t id, bytes;
};

/* The addresses and handles of a process. */
struct process {
    struct ar_map blocks;    /* live ones, by address: struct block */
    struct ar_map physicals; /* by handle: 2 × number + whether it is host memory */
    struct ar_map streams;   /* by handle, device and thread: ordinal */
    struct ar_map events;    /* recorded ones, by handle: number */
    struct ar_map pools;     /* by handle: number, from 1 */
    uint64_t last_request_ns;
};

struct maker {
    const struct spools *spools;
    struct recording_counts *counts;
    struct trace_memory *memory;
    struct process *processes;
    const struct spool_file *file; /* of the current record */
    const struct spool_record *record;
    struct process *process; /* of the current record */
    uint64_t first_ns, time_ns, next_id, next_physical;
    uint64_t next_event;
    uint64_t *free_events; /* numbers to use again */
    size_t free_event_count, free_event_room;
    uint32_t next_stream, next_pool;
    bool died, begun, default_named;
    struct ar_error *error;
};

/* ---- addresses and handles ------------------------------------------------------------------ */

static enum ar_status add_block(struct maker *m, uint64_t address, struct block block)
{
    struct ar_map *blocks = &m->process->blocks;
    blocks->more_words = sizeof block / sizeof(uint64_t) - 1;
    uint64_t *value = ar_map_add(blocks, address);
    AR_TRY_MEMORY(value, m->error, "a recording");
    memcpy(value, &block, sizeof block);
    return AR_OK;
}

/* Removes the block at an address. False: there is none. */
static bool take_block(struct maker *m, uint64_t address, struct block *block)
{
    const uint64_t *value = ar_map_find(&m->process->blocks, address);
    if (!value)
        return false;
    memcpy(block, value, sizeof *block);
    (void)ar_map_remove(&m->process->blocks, address);
    return true;
}

#define DEVICE_SHIFT 48u /* above any address of a program */
#define OWN_DEFAULT  (UINT64_C(1) << 63)

/* The ordinal of the record's stream, new or known; the highest ordinal stands for all later
 * streams. */
static enum ar_status stream_of(struct maker *m, uint32_t *stream)
{
    const struct spool_record *record = m->record;
    bool own = record->flags & SPOOL_PER_THREAD;
    uint64_t key = own ? OWN_DEFAULT | m->file->thread : record->stream, known;
    key ^= (uint64_t)record->device << DEVICE_SHIFT;
    if (ar_map_get(&m->process->streams, key, &known)) {
        *stream = (uint32_t)known;
        return AR_OK;
    }
    if (!own && !record->stream && !m->default_named) {
        m->default_named = true;
        *stream = 0;
    } else {
        *stream = m->next_stream;
        m->next_stream += m->next_stream < TRACE_STREAM_LIMIT - 1;
    }
    return ar_map_put(&m->process->streams, key, *stream) ? ar_no_memory(m->error, "a recording")
                                                          : AR_OK;
}

/* The number of the event that is recorded now. UNSUPPORTED: no number is left. */
static enum ar_status record_event(struct maker *m, uint64_t *number)
{
    uint64_t handle = m->record->other;
    if (ar_map_get(&m->process->events, handle, number))
        return AR_OK;
    if (m->free_event_count)
        *number = m->free_events[--m->free_event_count];
    else if (m->next_event < TRACE_EVENT_LIMIT)
        *number = m->next_event++;
    else
        return AR_UNSUPPORTED;
    return ar_map_put(&m->process->events, handle, *number) ? ar_no_memory(m->error, "a recording")
                                                            : AR_OK;
}

/* The event is destroyed: its number may be used again. */
static enum ar_status destroy_event(struct maker *m)
{
    uint64_t number;
    if (!ar_map_get(&m->process->events, m->record->other, &number))
        return AR_OK;
    AR_TRY(AR_APPEND(m->free_events, m->free_event_count, m->free_event_room, number, m->error,
                     "a recording"));
    (void)ar_map_remove(&m->process->events, m->record->other);
    return AR_OK;
}

static bool find_physical(const struct maker *m, uint64_t *number, bool *pinned)
{
    uint64_t value;
    if (!ar_map_get(&m->process->physicals, m->record->other, &value))
        return false;
    *number = value / 2;
    *pinned = value % 2;
    return true;
}

static enum ar_status pool_of(struct maker *m, uint32_t *pool)
{
    uint64_t known;
    if (ar_map_get(&m->process->pools, m->record->other, &known)) {
        *pool = (uint32_t)known;
        return AR_OK;
    }
    *pool = m->next_pool++;
    return ar_map_put(&m->process->pools, m->record->other, *pool)
               ? ar_no_memory(m->error, "a recording")
               : AR_OK;
}

/* ---- emitting ------------------------------------------------------------------------------- */

struct keys {
    const char *tag, *rest;
    bool pinned;
    uint32_t pool;
};

/* Advances the trace to the time of the current record. */
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

/* An event of the current record. `keys`: NULL for those that all events have. */
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
    AR_TRY(emit_time(m));
    return trace_memory_append(m->memory, &event, &attributes, NULL, m->error);
}

static enum ar_status emit_note(struct maker *m, const char *verb, unsigned count,
                                const uint64_t *values)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s", verb);
    for (unsigned i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ",%" PRIu64, values[i]);
    const struct trace_event event = {.kind = TRACE_NOTE};
    AR_TRY(emit_time(m));
    return trace_memory_append(m->memory, &event, NULL, text, m->error);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum ar_status make_failure(struct maker *m, const struct keys *keys)
{
    const struct spool_record *record = m->record;
    bool last = m->died && record->time_ns >= m->process->last_request_ns;
    struct trace_event event = {.kind = last ? TRACE_ALLOC : TRACE_PROBE, .value = record->bytes};
    m->counts->failed_allocs++;
    if (!record->bytes || record->bytes >= TRACE_BYTES_LIMIT)
        return AR_OK; /* an invalid request, not a lack of memory */
    AR_TRY(stream_of(m, &event.stream));
    event.id = m->next_id++;
    AR_TRY(emit(m, event, keys));
    bool full = record->result == OUT_OF_MEMORY;
    const uint64_t value = full ? record->free_bytes : (uint64_t)record->result;
    AR_TRY(emit_note(m, full ? "oom" : "failed", 1, &value));
    event.kind = TRACE_FREE_REQUESTED;
    event.value = 0;
    return emit(m, event, NULL);
}

/* A live block is freed: by the current record, or without a record before it. */
static enum ar_status make_free(struct maker *m, uint64_t id, bool ordered)
{
    struct trace_event event = {.kind = ordered ? TRACE_FREE_REQUESTED : TRACE_FREE_COMPLETED,
                                .id = id};
    AR_TRY(ordered ? stream_of(m, &event.stream) : AR_OK);
    return emit(m, event, NULL);
}

static enum ar_status make_block(struct maker *m, const struct keys *keys)
{
    const struct spool_record *record = m->record;
    struct block block;
    enum ar_status status = AR_OK;
    if (!record->address || record->bytes >= TRACE_BYTES_LIMIT)
        return AR_OK; /* an empty request */
    if (take_block(m, record->address, &block)) {
        m->counts->reused++;
        status = make_free(m, block.id, false);
    }
    block = (struct block){.id = m->next_id, .bytes = record->bytes};
    AR_THEN(status, add_block(m, record->address, block));
    struct trace_event event = {.kind = TRACE_ALLOC, .id = m->next_id++, .value = record->bytes};
    AR_THEN(status, stream_of(m, &event.stream));
    AR_THEN(status, emit(m, event, keys));
    m->counts->allocs++;
    return status ? status : emit_note(m, "alloc", 1, &record->address);
}

static enum ar_status make_alloc(struct maker *m)
{
    const struct spool_record *record = m->record;
    struct keys keys = {.tag = record->flags & SPOOL_MANAGED ? "managed" : NULL,
                        .pinned = record->flags & SPOOL_PINNED};
    AR_TRY(record->kind == SPOOL_ALLOC && record->other ? pool_of(m, &keys.pool) : AR_OK);
    if (record->result)
        return make_failure(m, &keys);
    m->counts->managed += (record->flags & SPOOL_MANAGED) != 0;
    m->counts->pinned += (record->flags & SPOOL_PINNED) != 0;
    return make_block(m, &keys);
}

static enum ar_status make_release(struct maker *m)
{
    const struct spool_record *record = m->record;
    struct block block;
    if (record->result) {
        m->counts->failed_frees++;
        return AR_OK;
    }
    if (!record->address)
        return AR_OK; /* programs free NULL to start the runtime */
    if (!take_block(m, record->address, &block)) {
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
        return find_physical(m, &number, &pinned) ? emit_note(m, "physical_free", 1, &number)
                                                  : AR_OK;
    number = m->next_physical++;
    if (ar_map_put(&m->process->physicals, record->other, number * 2 + pinned))
        return ar_no_memory(m->error, "a recording");
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
    if (find_physical(m, &number, &keys.pinned)) {
        snprintf(rest, sizeof rest, "physical=%" PRIu64, number);
        keys.rest = rest;
    }
    m->counts->mappings++;
    AR_TRY(make_block(m, &keys));
    AR_TRY(stream_of(m, &stream));
    return emit_note(m, "segment_map", 3,
                     (const uint64_t[]){record->address, record->bytes, stream});
}

static enum ar_status make_unmapping(struct maker *m)
{
    const struct spool_record *record = m->record;
    uint64_t end = record->address + record->bytes;
    struct block block;
    uint32_t stream = 0;
    enum ar_status status = AR_OK;
    if (record->result) {
        m->counts->failed_frees++;
        return AR_OK;
    }
    uint64_t at = record->address;
    while (!status && at < end && take_block(m, at, &block)) {
        m->counts->frees++;
        status = make_free(m, block.id, false);
        at += block.bytes;
    }
    if (at < end)
        m->counts->unknown_frees++;
    AR_THEN(status, stream_of(m, &stream));
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
        status = record_event(m, &event.value);
    else if (!ar_map_get(&m->process->events, record->other, &event.value))
        status = AR_UNSUPPORTED;
    if (status == AR_UNSUPPORTED) {
        m->counts->dropped_waits++;
        return AR_OK;
    }
    AR_THEN(status, stream_of(m, &event.stream));
    return status ? status : emit(m, event, NULL);
}

static enum ar_status make_sync(struct maker *m)
{
    struct trace_event event = {.kind = TRACE_SYNC, .stream = TRACE_NO_STREAM};
    uint64_t number;
    if (m->record->result)
        return AR_OK;
    if (m->record->kind == SPOOL_SYNC_EVENT)
        return ar_map_get(&m->process->events, m->record->other, &number)
                   ? emit_note(m, "event_synchronize", 1, &number)
                   : AR_OK;
    AR_TRY(m->record->kind == SPOOL_SYNC ? stream_of(m, &event.stream) : AR_OK);
    return emit(m, event, NULL);
}

/* A launch is one kernel, or several if it launches a graph. */
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
    AR_TRY(stream_of(m, &event.stream));
    m->counts->kernels += count ? count : 1;
    m->counts->untimed_kernels += count == 0;
    if (!count)
        return emit(m, event, NULL);
    for (size_t i = 0; i < count; i++) {
        event.value = kernels[i].duration_ns;
        kernels[i].placed = true;
        AR_TRY(emit(m, event, NULL));
    }
    return AR_OK;
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
        return destroy_event(m);
    case SPOOL_SYNC:
    case SPOOL_SYNC_DEVICE:
    case SPOOL_SYNC_EVENT:
        return make_sync(m);
    case SPOOL_TRIM:
        return record->result ? AR_OK : emit(m, (struct trace_event){.kind = TRACE_TRIM}, NULL);
    case SPOOL_LAUNCH:
        return make_launch(m);
    default:
        return AR_OK; /* a kind of a later version */
    }
}

static enum ar_status make_all(struct maker *m)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < m->spools->order_count && !status; i++) {
        const struct spool_place *place = &m->spools->order[i];
        m->file = &m->spools->files[place->file];
        m->record = &m->file->records[place->index];
        m->process = &m->processes[m->file->process];
        status = make_one(m);
    }
    for (size_t i = 0; i < m->spools->kernel_count; i++)
        m->counts->unplaced_kernels += !m->spools->kernels[i].placed;
    return status;
}

/* Sets the time of the last request of each process. */
static void find_last(struct maker *m)
{
    const struct spools *spools = m->spools;
    for (size_t i = 0; i < spools->order_count; i++) {
        const struct spool_place *place = &spools->order[i];
        const struct spool_file *file = &spools->files[place->file];
        uint8_t kind = file->records[place->index].kind;
        if (kind == SPOOL_ALLOC || kind == SPOOL_CREATE || kind == SPOOL_MAP)
            m->processes[file->process].last_request_ns = place->time_ns;
    }
}

static void close_handles(struct maker *m)
{
    for (uint32_t i = 0; m->processes && i < m->spools->process_count; i++) {
        struct process *process = &m->processes[i];
        struct ar_map *maps[] = {&process->blocks, &process->physicals, &process->streams,
                                 &process->events, &process->pools};
        for (size_t j = 0; j < AR_COUNT(maps); j++)
            ar_map_close(maps[j]);
    }
    free(m->processes);
    free(m->free_events);
}

/* Other characters than printable ASCII, in a damaged file, become question marks. */
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
            bool known = info->card[0] && head->devices[j].bytes < TRACE_BYTES_LIMIT;
            info->capacity_bytes = known ? head->devices[j].bytes : 0;
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
    struct maker m = {.spools = spools,
                      .counts = counts,
                      .next_stream = 1,
                      .next_pool = 1,
                      .died = died,
                      .error = error};
    *counts = (struct recording_counts){0};
    fill_info(spools, name, died, &info);
    count_files(spools, counts);
    if (spools->order_count)
        m.first_ns = spools->order[0].time_ns;
    m.memory = trace_memory_create(&info);
    m.processes = calloc(spools->process_count + 1u, sizeof *m.processes);
    enum ar_status status = AR_OK;
    if (!m.memory || !m.processes) {
        status = ar_no_memory(error, "a recording");
    } else {
        find_last(&m);
        status = make_all(&m);
    }
    close_handles(&m);
    return trace_memory_finish(m.memory, status, out, error);
}
