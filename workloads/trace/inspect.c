/* See inspect.h: one pass with an entry per slot. */
#include "workloads/trace/inspect.h"

#include "allocators/base/array.h"

struct block {
    uint64_t bytes, born; /* the number of requests before it */
    bool live, pending, pinned;
};

struct pass {
    struct inspect *out;
    struct block *blocks;
    size_t block_count, step_capacity;
    uint64_t event, requests, live_blocks;
    uint64_t live_bytes, pinned_bytes; /* on the card, and in pinned host memory */
    struct inspect_step step;
};

const char *inspect_key_name(unsigned index)
{
    static const char *const names[INSPECT_KEYS] = {"tag",    "pool",  "align", "device",  "thread",
                                                    "tenant", "space", "end",   "mempool", "other"};
    return index < INSPECT_KEYS ? names[index] : "";
}

static unsigned bin_of(uint64_t value)
{
    unsigned bin = 0;
    for (; value; value >>= 1)
        bin++;
    return bin < INSPECT_BINS ? bin : INSPECT_BINS - 1;
}

uint64_t inspect_bin_from(unsigned bin)
{
    return bin ? UINT64_C(1) << (bin - 1) : 0;
}

void inspect_close(struct inspect *inspect)
{
    free(inspect->streams);
    free(inspect->steps);
    inspect->streams = NULL;
    inspect->steps = NULL;
}

static struct inspect_stream *stream_at(struct inspect *out, uint32_t stream)
{
    size_t count = out->stream_count;
    struct inspect_stream *items = ar_array_reach(out->streams, &count, stream, sizeof *items);
    if (!items)
        return NULL;
    out->streams = items;
    out->stream_count = (uint32_t)count;
    return &out->streams[stream];
}

static enum ar_status take_request(struct pass *pass, const struct trace_event *event, bool pinned,
                                   struct ar_error *error)
{
    struct inspect *out = pass->out;
    struct inspect_stream *stream = stream_at(out, event->stream);
    AR_TRY_MEMORY(AR_ARRAY_REACH(pass->blocks, pass->block_count, event->slot) && stream, error,
                  "a trace");
    struct block *block = &pass->blocks[event->slot];
    if (block->pending)
        out->pending_blocks++;
    *block = (struct block){
        .bytes = event->value, .born = pass->requests++, .live = true, .pinned = pinned};
    struct inspect_bin *bin = &out->sizes[bin_of(event->value)];
    bin->blocks++;
    bin->bytes += event->value;
    stream->blocks++;
    stream->bytes += event->value;
    pass->step.requests++;
    pass->step.bytes += event->value;
    *(pinned ? &pass->pinned_bytes : &pass->live_bytes) += event->value;
    AR_RAISE(out->peak_pinned_bytes, pass->pinned_bytes);
    AR_RAISE(out->largest_bytes, event->value);
    if (pass->live_bytes > out->peak_live_bytes) {
        out->peak_live_bytes = pass->live_bytes;
        out->peak_event = pass->event;
    }
    pass->live_blocks += !pinned;
    AR_RAISE(out->peak_live_blocks, pass->live_blocks);
    AR_RAISE(pass->step.peak_live_bytes, pass->live_bytes);
    return AR_OK;
}

static void take_end(struct pass *pass, const struct trace_event *event)
{
    if (event->slot >= pass->block_count)
        return;
    struct block *block = &pass->blocks[event->slot];
    if (block->live) {
        struct inspect_bin *bin = &pass->out->lifetimes[bin_of(pass->requests - 1 - block->born)];
        bin->blocks++;
        bin->bytes += block->bytes;
        pass->out->free_requested_blocks++;
        *(block->pinned ? &pass->pinned_bytes : &pass->live_bytes) -= block->bytes;
        pass->live_blocks -= !block->pinned;
    }
    block->live = false;
    block->pending = event->kind == TRACE_FREE_REQUESTED;
}

static enum ar_status end_step(struct pass *pass, struct ar_error *error)
{
    pass->step.events = pass->event + 1 - pass->step.first_event;
    pass->step.live_bytes = pass->live_bytes;
    AR_TRY(AR_APPEND(pass->out->steps, pass->out->step_count, pass->step_capacity, pass->step,
                     error, "a trace"));
    pass->step =
        (struct inspect_step){.first_event = pass->event + 1, .peak_live_bytes = pass->live_bytes};
    return AR_OK;
}

static void count_keys(struct inspect *out, const struct trace_attributes *keys)
{
    for (unsigned key = 0; key < INSPECT_KEYS - 1; key++)
        out->keys[key] += keys->given >> key & 1u;
    out->keys[INSPECT_KEYS - 1] += keys->rest != NULL;
}

static enum ar_status take_event(struct pass *pass, const struct trace_event *event, bool pinned,
                                 struct ar_error *error)
{
    struct inspect *out = pass->out;
    struct inspect_stream *stream;
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        return take_request(pass, event, pinned, error);
    case TRACE_FREE_REQUESTED:
    case TRACE_FREE_COMPLETED:
        take_end(pass, event);
        return AR_OK;
    case TRACE_USE:
    case TRACE_KERNEL:
        stream = stream_at(out, event->stream);
        AR_TRY_MEMORY(stream, error, "a trace");
        stream->uses += event->kind == TRACE_USE;
        stream->kernels += event->kind == TRACE_KERNEL;
        stream->kernel_ns += event->kind == TRACE_KERNEL ? event->value : 0;
        out->kernel_ns += event->kind == TRACE_KERNEL ? event->value : 0;
        return AR_OK;
    case TRACE_MARK:
        return event->flags & TRACE_STEP ? end_step(pass, error) : AR_OK;
    case TRACE_TIME:
        out->duration_ns = event->value;
        return AR_OK;
    default:
        return AR_OK;
    }
}

static void finish(struct pass *pass, const struct trace_info *info)
{
    struct inspect *out = pass->out;
    for (size_t i = 0; i < pass->block_count; i++) {
        out->kept_blocks += pass->blocks[i].live;
        out->kept_bytes += pass->blocks[i].live ? pass->blocks[i].bytes : 0;
        out->kept_pinned_bytes +=
            pass->blocks[i].live && pass->blocks[i].pinned ? pass->blocks[i].bytes : 0;
        out->pending_blocks += pass->blocks[i].pending;
    }
    AR_LOWER(out->stream_count, info->streams);
}

enum ar_status inspect_trace(struct trace_source *source, struct inspect *out,
                             struct ar_error *error)
{
    *out = (struct inspect){0};
    struct pass pass = {.out = out};
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    for (; (event = trace_read(&cursor, &status, error)) != NULL; pass.event++) {
        out->by_kind[event->kind]++;
        const struct trace_attributes *keys = trace_attributes_of(source, event->attributes);
        if (event->attributes)
            count_keys(out, keys);
        status = take_event(&pass, event, keys->space == TRACE_SPACE_PINNED, error);
    }
    if (!status && !stream_at(out, source->info.streams ? source->info.streams - 1 : 0))
        status = ar_no_memory(error, "a trace");
    if (!status)
        finish(&pass, &source->info);
    free(pass.blocks);
    return status;
}
