/* Bounds and plans of a trace, and the textbook fits without foresight: see bounds.h. */
#include "sim/bounds/bounds.h"

#include "allocators/base/size.h"
#include "sim/experiment/session.h"
#include "allocators/base/array.h"

#define ONLINE_DEVICE "sim:profile=bump"

/* At each event blocks end first, then others begin. Of blocks that begin at the same moment
 * (lifetimes of another program) the largest comes first, then the order of the trace decides. */
struct moment { /* 2 * event + 1 for a birth: ends come first */
    uint64_t when;
    uint64_t bytes;
    size_t block;
};

static int compare(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    AR_ORDER(a->when, b->when);
    AR_ORDER(b->bytes, a->bytes);
    return (a->block > b->block) - (a->block < b->block);
}

static enum ar_status serve(const struct bound_blocks *blocks, const struct moment *moments,
                            struct ar_policy_block *placed, struct ar_policy *policy,
                            uint64_t *extent_bytes, struct ar_error *error)
{
    *extent_bytes = 0;
    for (size_t i = 0; i < 2 * blocks->count; i++) {
        const struct packing_block *block = &blocks->blocks[moments[i].block];
        struct ar_policy_block *place = &placed[moments[i].block];
        enum ar_status status;
        if (moments[i].when & 1) {
            const struct ar_policy_request request = {.bytes = block->bytes,
                                                      .alignment = block->alignment};
            status = ar_policy_alloc(policy, &request, place);
            if (!status && place->address + place->granted_bytes > *extent_bytes)
                *extent_bytes = place->address + place->granted_bytes;
        } else {
            status = ar_policy_free(policy, place, 0);
        }
        if (status)
            return ar_error_set(error, status,
                                "block %" PRIu64 " of %" PRIu64 " bytes: %s in an arena without a "
                                "bound; the blocks that live with it leave too few addresses",
                                blocks->requests[moments[i].block].id, block->bytes,
                                ar_status_meaning(status));
    }
    return AR_OK;
}

static enum ar_status serve_all(const struct bound_blocks *blocks, struct ar_policy *policy,
                                uint64_t *extent_bytes, struct ar_error *error)
{
    AR_FREED struct moment *moments = malloc((2 * blocks->count + 1) * sizeof *moments);
    AR_FREED struct ar_policy_block *placed = malloc((blocks->count + 1) * sizeof *placed);
    AR_TRY_MEMORY(moments && placed, error, "%zu blocks", blocks->count);
    for (size_t i = 0; i < blocks->count; i++) {
        const struct packing_block *block = &blocks->blocks[i];
        moments[2 * i] = (struct moment){2 * block->born + 1, block->bytes, i};
        moments[2 * i + 1] = (struct moment){2 * block->dies, block->bytes, i};
    }
    qsort(moments, 2 * blocks->count, sizeof *moments, compare);
    return serve(blocks, moments, placed, policy, extent_bytes, error);
}

/* The extent that the arena of a policy reaches when it serves the blocks in their order. `policy`
 * is a spec; the device is unbounded and has no gaps between segments. */
static enum ar_status bound_online(const struct bound_blocks *blocks, const char *policy,
                                   uint64_t *extent_bytes, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec policy_spec = {0}, device_spec = {0};
    AR_CLOSED(session_close) struct session session = {0};
    AR_TRY(ar_spec_parse(policy, &policy_spec, error));
    AR_TRY(ar_spec_parse(ONLINE_DEVICE, &device_spec, error));
    AR_TRY(session_open(&session, &policy_spec, &device_spec, 0, NULL, error));
    return serve_all(blocks, session.policy, extent_bytes, error);
}

enum ar_status bounds_find(const struct bound_blocks *blocks, struct bounds *out,
                           struct ar_error *error)
{
    *out = (struct bounds){
        .live_peak_bytes = blocks->live_peak_bytes,
        .live_peak_event = blocks->live_peak_event,
        .pages_bytes = ar_size_round_up(blocks->live_peak_bytes, BOUND_PAGE_BYTES),
        .least_bytes = blocks->packing.peak_bytes,
        .offsets = calloc(blocks->count + 1, sizeof *out->offsets),
    };
    AR_TRY_MEMORY(out->offsets, error, "a plan");
    /* In an unbounded arena the free block at its end has no size, so it is never the tightest
     * fit. */
    AR_TRY(bound_online(blocks, "best-fit:granule=1,wilderness=yes", &out->best_fit_bytes, error));
    AR_TRY(bound_online(blocks, "first-fit:granule=1", &out->first_fit_bytes, error));
    enum ar_status status = packing_best_order(&blocks->packing, out->offsets, &out->orders);
    if (status)
        return ar_error_set(error, status, "no plan was found: %s", ar_status_meaning(status));
    out->top_bytes = out->orders.top_bytes;
    return AR_OK;
}

enum ar_status bounds_search(const struct bound_blocks *blocks,
                             const struct packing_exact_options *options, struct bounds *self,
                             struct ar_error *error)
{
    self->exact.top_bytes = self->top_bytes;
    enum ar_status status = packing_exact(&blocks->packing, options, self->offsets, &self->exact);
    if (status)
        return ar_error_set(error, status, "the exact search ended early: %s",
                            ar_status_meaning(status));
    self->searched = true;
    self->top_bytes = self->exact.top_bytes;
    return AR_OK;
}

void bounds_close(struct bounds *self)
{
    free(self->offsets);
    self->offsets = NULL;
}

/* The requests of a trace as blocks with lifetimes.
 *
 * Requests of zero bytes and of pinned host memory are left out because no policy sees them.
 * Lifetimes are counted in events. This keeps the order; the duration of a lifetime has no
 * influence on which blocks overlap. */

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
    return ar_no_memory(error, "%zu blocks", blocks);
}

static enum ar_status make_room(struct bound_blocks *out, struct ar_error *error)
{
    size_t room = out->room; /* both arrays have it */
    bool made = ar_array_make_room(&out->blocks, out->count, &room, sizeof *out->blocks) &&
                ar_array_make_room(&out->requests, out->count, &out->room, sizeof *out->requests);
    return made ? AR_OK : no_memory(out->count, error);
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
    if (trace_requests(event))
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
    enum ar_status status = trace_rewind(r->source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
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
        return ar_invalid(error,
                          "what %s asks for depends on the policy; write it to a file first with "
                          "gen -p POLICY -o FILE",
                          source->info.name);
    *self = (struct bound_blocks){
        .granule_bytes = options->granule_bytes ? options->granule_bytes : 1,
        .packing.host = &self->host,
    };
    r.to_completion = options->frees == REPLAY_RECORDED && source->info.has_split_frees;
    enum ar_status status = read_all(&r, &events, error);
    free(r.by_slot);
    end_lives(self, events);
    AR_THEN(status, packing_open(&self->packing, &self->host, self->blocks, self->count, error));
    if (status)
        bound_blocks_close(self);
    return ar_error_prefix(error, status, "%s", source->info.name);
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
