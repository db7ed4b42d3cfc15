/* The requests of a trace as blocks with lifetimes.
 *
 * Requests of zero bytes and of pinned host memory are left out because no policy sees them.
 * Lifetimes are counted in events. This keeps the order; the duration of a lifetime has no
 * influence on which blocks overlap. */
#include "sim/bounds/bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"

#define NO_EVENT UINT64_MAX

struct reading {
    struct bound_blocks *out;
    struct trace_source *source;
    const struct bound_options *options;
    uint64_t *by_slot; /* 1 + index of the block in the slot; 0: none */
    size_t slots;
    uint64_t live_bytes;
    bool to_completion;
    bool ended; /* a block has ended since the latest birth */
};

static enum ar_status no_memory(size_t blocks, struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu blocks", blocks);
}

static enum ar_status make_room(struct bound_blocks *out, struct ar_error *error)
{
    if (out->count < out->room)
        return AR_OK;
    size_t room = out->room ? out->room * 2 : 1024;
    struct packing_block *blocks = realloc(out->blocks, room * sizeof *blocks);
    if (!blocks)
        return no_memory(room, error);
    out->blocks = blocks;
    struct bound_request *requests = realloc(out->requests, room * sizeof *requests);
    if (!requests)
        return no_memory(room, error);
    out->requests = requests;
    out->room = room;
    return AR_OK;
}

/* Reads `KEY=NUMBER` among "x=1,KEY=5". */
static bool find_number(const char *rest, const char *key, int64_t *number)
{
    size_t length = strlen(key);
    for (const char *at = rest; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char *end;
        if (strncmp(at, key, length) != 0 || at[length] != '=')
            continue;
        *number = strtoll(at + length + 1, &end, 10);
        return end != at + length + 1 && (*end == ',' || *end == '\0');
    }
    return false;
}

static bool is_wanted(const struct reading *r, const struct trace_event *event,
                      const struct trace_attributes *keys)
{
    if (event->value == 0 || keys->space == TRACE_SPACE_PINNED)
        return false;
    return event->kind == TRACE_ALLOC || (r->live_bytes <= r->options->card_bytes &&
                                          event->value <= r->options->card_bytes - r->live_bytes);
}

/* The event at which the request is born: see the header. */
static uint64_t moment_of(const struct reading *r, const struct bound_request *request,
                          uint64_t number)
{
    const struct bound_blocks *out = r->out;
    bool together = out->count && !r->ended && request->foreign && request[-1].foreign &&
                    request->lower == request[-1].lower;
    return together ? out->blocks[out->count - 1].born : number;
}

static enum ar_status add(struct reading *r, const struct trace_event *event, uint64_t number,
                          struct ar_error *error)
{
    struct bound_blocks *out = r->out;
    const struct trace_attributes *keys = trace_attributes_of(r->source, event->attributes);
    r->by_slot[event->slot] = 0;
    if (!is_wanted(r, event, keys))
        return AR_OK;
    AR_TRY(make_room(out, error));
    struct bound_request *request = &out->requests[out->count];
    *request = (struct bound_request){.id = event->id, .bytes = event->value};
    request->foreign = find_number(keys->rest, "lower", &request->lower) &&
                       find_number(keys->rest, "upper", &request->upper);
    request->tag = request->foreign ? keys->tag : NULL;
    out->blocks[out->count] = (struct packing_block){
        .bytes = ar_size_round_up(event->value, out->granule_bytes),
        .born = moment_of(r, request, number),
        .dies = NO_EVENT,
        .alignment = keys->align > out->granule_bytes ? keys->align : out->granule_bytes,
    };
    r->live_bytes += event->value;
    if (r->live_bytes > out->live_peak_bytes) {
        out->live_peak_bytes = r->live_bytes;
        out->live_peak_event = number;
    }
    r->by_slot[event->slot] = ++out->count;
    r->ended = false;
    return AR_OK;
}

static enum ar_status take(struct reading *r, const struct trace_event *event, uint64_t number,
                           struct ar_error *error)
{
    if (!trace_kind_has_block(event->kind))
        return AR_OK;
    if (!AR_ARRAY_REACH(r->by_slot, r->slots, event->slot))
        return no_memory(event->slot, error);
    if (event->kind == TRACE_USE)
        return AR_OK;
    if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE)
        return add(r, event, number, error);
    uint64_t block = r->by_slot[event->slot];
    if (block && (event->kind == TRACE_FREE_COMPLETED || !r->to_completion)) {
        r->out->blocks[block - 1].dies = number;
        r->live_bytes -= r->out->requests[block - 1].bytes;
        r->ended = true;
        r->by_slot[event->slot] = 0;
    }
    return AR_OK;
}

static enum ar_status read_all(struct reading *r, uint64_t *events, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = r->source};
    const struct trace_event *event;
    enum ar_status status = trace_rewind(r->source, error);
    while ((event = trace_read(&cursor, &status, error)) != NULL)
        status = take(r, event, cursor.next - 1, error);
    *events = cursor.next;
    return status;
}

static void end_lives(struct bound_blocks *out, uint64_t events)
{
    for (size_t i = 0; i < out->count; i++) {
        if (out->blocks[i].dies == NO_EVENT)
            out->blocks[i].dies = events;
        if (out->requests[i].foreign)
            continue;
        out->requests[i].lower = (int64_t)out->blocks[i].born;
        out->requests[i].upper = (int64_t)out->blocks[i].dies;
    }
}

enum ar_status bound_blocks_open(struct bound_blocks *self, struct trace_source *source,
                                 const struct bound_options *options, struct ar_error *error)
{
    struct reading r = {.out = self, .source = source, .options = options};
    uint64_t events = 0;
    if (source->info.adaptive)
        return ar_error_set(error, AR_INVALID,
                            "what %s asks for depends on the policy; write it to a file first with "
                            "gen -p POLICY -o FILE",
                            source->info.name);
    *self = (struct bound_blocks){
        .granule_bytes = options->granule_bytes ? options->granule_bytes : 1,
    };
    r.to_completion = options->frees == REPLAY_RECORDED && source->info.has_split_frees;
    enum ar_status status = read_all(&r, &events, error);
    free(r.by_slot);
    end_lives(self, events);
    if (!status)
        status = packing_open(&self->packing, &self->host, self->blocks, self->count, error);
    if (status) {
        ar_error_prefix(error, status, "%s", source->info.name);
        free(self->blocks);
        free(self->requests);
    }
    return status;
}

void bound_blocks_close(struct bound_blocks *self)
{
    packing_close(&self->packing);
    free(self->blocks);
    free(self->requests);
    *self = (struct bound_blocks){.count = 0};
}

const char *bound_request_name(const struct bound_request *request, char *text, size_t text_bytes)
{
    if (request->tag)
        snprintf(text, text_bytes, "%s", request->tag);
    else
        snprintf(text, text_bytes, "%" PRIu64, request->id);
    return text;
}
