/* Reads the notes of a trace, and replays the recording.
 *
 * 1. Segment notes become actions, in order.
 * 2. The outcome of a request is in the note after it.
 * 3. Actions that release memory without an event of a block in between are a group. The request of
 *    a group is the next event of a block, apart from completions: an allocator that releases
 *    memory to serve a request does so before the request is recorded, and completes pending blocks
 *    then.
 * 4. Blocks that exist before the first event in segments that are made later are contradictions.
 *    They cannot be made, and their frees are differences. If they are in no such segment, the
 *    recording begins in the middle, and notes before the first event must describe the state
 *    (start.c). */
#include "sim/fidelity/recording.h"

#include "allocators/base/array.h"

struct reading {
    struct trace_source *source;
    struct recording *out;
    uint64_t event;
    size_t open;                    /* the first group without a request yet */
    bool joins;                     /* the next action joins the last group */
    bool memory_made;               /* since the last event of a block, apart from completions */
    bool released;                  /* a release since then */
    size_t completions;             /* the first completion since then */
    size_t completions_before_made; /* completions before memory was made */
    uint64_t held_bytes;            /* in addition to the start; modulo 2^64 */
    uint64_t *initial;              /* requests of blocks of the start */
    size_t initial_count, initial_room;
};

static bool is_gone(enum recorded_kind kind)
{
    return kind == RECORDED_FREED || kind == RECORDED_UNMAPPED;
}

bool recording_number(const char **at, uint64_t *number)
{
    char *end;
    if (**at != ',' || (*at)[1] < '0' || (*at)[1] > '9')
        return false;
    *number = strtoull(*at + 1, &end, 10);
    *at = end;
    return true;
}

bool recording_owner(const char *at, struct recorded_area *area)
{
    uint64_t stream, pool = 0;
    if (!recording_number(&at, &stream) || (*at && !recording_number(&at, &pool)) || *at ||
        stream > UINT32_MAX || pool > UINT32_MAX)
        return false;
    area->stream = (uint32_t)stream;
    area->pool = (uint32_t)pool;
    return true;
}

bool recording_is_verb(const char *text, const char *verb)
{
    size_t length = strlen(verb);
    return strncmp(text, verb, length) == 0 && text[length] == ',';
}

/* Reads up to two numbers after the verb. */
static unsigned numbers_of(const char *text, uint64_t *numbers)
{
    unsigned count = 0;
    const char *at = text + strcspn(text, ",");
    while (count < 2 && recording_number(&at, &numbers[count]))
        count++;
    return count;
}

static bool has_verb(const char *text, const char *verb)
{
    size_t length = strlen(verb);
    return strncmp(text, verb, length) == 0 && (text[length] == ',' || text[length] == '\0');
}

static enum ar_status join_group(struct reading *reading, struct ar_error *error)
{
    struct recording *out = reading->out;
    if (reading->joins) {
        out->groups[out->group_count - 1].count++;
        return AR_OK;
    }
    const struct recorded_group group = {
        .first = out->action_count,
        .count = 1,
        .event = reading->event,
        .request = RECORDED_NONE,
        .begun = reading->memory_made,
        .cause = reading->released ? CAUSE_GIVEN : CAUSE_UNDECIDED,
    };
    AR_TRY(AR_APPEND(out->groups, out->group_count, out->group_room, group, error,
                     "what was recorded"));
    reading->joins = true;
    reading->released = false;
    return AR_OK;
}

static enum ar_status on_action(struct reading *reading, enum recorded_kind kind, uint64_t address,
                                uint64_t bytes, struct ar_error *error)
{
    struct recording *out = reading->out;
    const struct recorded_action action = {
        .event = reading->event, .address = address, .bytes = bytes, .kind = kind};
    AR_TRY(is_gone(kind) ? join_group(reading, error) : AR_OK);
    AR_TRY(AR_APPEND(out->actions, out->action_count, out->action_room, action, error,
                     "what was recorded"));
    out->has_pages |= kind == RECORDED_MAPPED;
    AR_RAISE(out->highest_address, address + bytes);
    if (is_gone(kind)) {
        reading->held_bytes -= bytes;
        return AR_OK;
    }
    reading->held_bytes += bytes;
    AR_RAISE(out->peak_bytes, out->start.held_bytes + reading->held_bytes);
    for (size_t i = reading->open; i < out->group_count; i++)
        out->groups[i].served_anew = true;
    reading->joins = false;
    if (!reading->memory_made)
        reading->completions_before_made = out->completion_count - reading->completions;
    reading->memory_made = true;
    return AR_OK;
}

static void on_answer(struct reading *reading, bool failed, uint64_t address)
{
    struct recording *out = reading->out;
    struct recorded_request *last =
        out->request_count ? &out->requests[out->request_count - 1] : NULL;
    if (!last || last->known)
        return;
    last->known = true;
    last->failed = failed;
    last->missed |= failed;
    last->address = address;
    for (size_t i = out->group_count; failed && i > 0; i--)
        if (out->groups[i - 1].request == out->request_count - 1)
            out->groups[i - 1].served_anew = true;
        else
            break;
}

static enum ar_status on_note(struct reading *reading, const char *text, struct ar_error *error)
{
    struct recording *out = reading->out;
    bool known;
    static const char *const verbs[] = {
        [RECORDED_MADE] = "segment_alloc",
        [RECORDED_FREED] = "segment_free",
        [RECORDED_MAPPED] = "segment_map",
        [RECORDED_UNMAPPED] = "segment_unmap",
    };
    uint64_t numbers[2] = {0, 0};
    unsigned count = numbers_of(text, numbers);
    for (unsigned kind = 0; kind < AR_COUNT(verbs); kind++)
        if (count == 2 && has_verb(text, verbs[kind]))
            return on_action(reading, (enum recorded_kind)kind, numbers[0], numbers[1], error);
    if (has_verb(text, "alloc") && count == 1)
        on_answer(reading, false, numbers[0]);
    else if (has_verb(text, "oom"))
        on_answer(reading, true, 0);
    else if (reading->event < out->first_event) {
        enum ar_status status = recorded_start_note(&out->start, text, &known, error);
        if (status || known)
            return status;
    }
    return recorded_final_note(&out->final, text, reading->event, error);
}

/* An event of a block, or a release, closes the open groups. */
static void settle(struct reading *reading, size_t request)
{
    struct recording *out = reading->out;
    for (; reading->open < out->group_count; reading->open++)
        out->groups[reading->open].request = request;
    reading->joins = false;
    reading->memory_made = false;
    reading->released = false;
    reading->completions = out->completion_count;
    reading->completions_before_made = 0;
}

static bool is_initial(const struct reading *reading, const struct trace_event *event)
{
    const char *rest = trace_attributes_of(reading->source, event->attributes)->rest;
    return rest && strstr(rest, "initial=yes");
}

static enum ar_status on_request(struct reading *reading, const struct trace_event *event,
                                 struct ar_error *error)
{
    struct recording *out = reading->out;
    const struct trace_attributes *keys = trace_attributes_of(reading->source, event->attributes);
    size_t completions = reading->completions;
    size_t completion_count = out->completion_count - completions;
    bool made = reading->memory_made;
    size_t waited = made ? completion_count - reading->completions_before_made : 0;
    bool has_group = reading->open < out->group_count;
    settle(reading, out->request_count);
    if (is_initial(reading, event) && !AR_ARRAY_ADD(reading->initial, reading->initial_count,
                                                    reading->initial_room, out->request_count))
        return ar_no_memory(error, "what was recorded");
    const struct recorded_request request = {
        .event = reading->event,
        .id = event->id,
        .missed = made,
        .first_completion = completions,
        .completions = completion_count,
        .waited_least = waited,
        .waited = waited,
        .fits_from = RECORDED_NONE,
        .has_group = has_group,
        .refused = waited && !has_group,
        .request = {.bytes = event->value,
                    .alignment = keys->align,
                    .stream = event->stream,
                    .pool = keys->pool,
                    .mempool = keys->mempool,
                    .may_fail = event->kind == TRACE_PROBE},
    };
    return AR_APPEND(out->requests, out->request_count, out->request_room, request, error,
                     "what was recorded");
}

/* Blocks of the start come first: their requests, notes, and frees that were requested before. */
static bool tells_of_start(const struct reading *reading, const struct trace_event *event)
{
    return event->kind == TRACE_NOTE || event->kind == TRACE_FREE_REQUESTED ||
           (event->kind == TRACE_ALLOC && is_initial(reading, event));
}

static enum ar_status on_completion(struct reading *reading, struct ar_error *error)
{
    struct recording *out = reading->out;
    AR_TRY(AR_APPEND(out->completions, out->completion_count, out->completion_room, reading->event,
                     error, "what was recorded"));
    reading->joins = false;
    return AR_OK;
}

static enum ar_status on_event(struct reading *reading, const struct trace_event *event,
                               struct ar_error *error)
{
    if (reading->out->first_event == reading->event && tells_of_start(reading, event))
        reading->out->first_event++;
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        return on_request(reading, event, error);
    case TRACE_FREE_COMPLETED:
        if (event->flags & TRACE_WHOLE) {
            settle(reading, RECORDED_NONE);
            return AR_OK;
        }
        return on_completion(reading, error);
    case TRACE_FREE_REQUESTED:
    case TRACE_USE:
        settle(reading, RECORDED_NONE);
        return AR_OK;
    case TRACE_TRIM:
        settle(reading, RECORDED_NONE);
        reading->released = true;
        return AR_OK;
    case TRACE_NOTE:
        return on_note(reading, trace_text_of(reading->source, event->value), error);
    default:
        return AR_OK;
    }
}

static bool is_made(const struct recording *recording, uint64_t address)
{
    for (size_t i = 0; i < recording->action_count; i++) {
        const struct recorded_action *action = &recording->actions[i];
        if (!is_gone(action->kind) && address >= action->address &&
            address - action->address < action->bytes)
            return true;
    }
    return false;
}

static enum ar_status sort_initial(struct reading *reading, struct ar_error *error)
{
    struct recording *out = reading->out;
    for (size_t i = 0; i < reading->initial_count; i++) {
        const struct recorded_request *request = &out->requests[reading->initial[i]];
        if (request->initial)
            continue;
        if (!request->known || !is_made(out, request->address))
            return ar_invalid(error,
                              "%s: it begins in the middle of a program: block %" PRIu64
                              " existed before it, but the segments of that time are missing "
                              "(!,segment lines before the first event, see FORMAT.md)",
                              reading->source->info.name, request->id);
        AR_TRY(AR_APPEND(out->unmade, out->unmade_count, out->unmade_room, request->id, error,
                         "what was recorded"));
    }
    return AR_OK;
}

static enum ar_status check(const struct reading *reading, struct ar_error *error)
{
    const struct recording *out = reading->out;
    const char *name = reading->source->info.name;
    for (size_t i = 0; i < out->request_count; i++)
        if (out->requests[i].known)
            return AR_OK;
    return ar_invalid(
        error,
        "%s: it does not say where the recorded allocator placed its blocks, so no policy can be "
        "compared with it; a memory snapshot of the program says it",
        name);
}

enum ar_status recording_read(struct trace_source *source, struct recording *out,
                              struct ar_error *error)
{
    struct reading reading = {.source = source, .out = out};
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    *out = (struct recording){0};
    enum ar_status status = trace_rewind(source, error);
    for (; (event = trace_read(&cursor, &status, error)) != NULL; reading.event++)
        status = ar_error_prefix(error, on_event(&reading, event, error), "%s", source->info.name);
    if (!status && out->start.area_count) {
        status = recorded_start_finish(out, error);
        if (status)
            (void)ar_error_prefix(error, status, "%s", source->info.name);
    }
    recorded_final_finish(&out->final);
    out->has_split_frees = source->info.has_split_frees;
    AR_RAISE(out->peak_bytes, out->start.held_bytes);
    out->end_bytes = reading.held_bytes + out->start.held_bytes;
    AR_THEN(status, check(&reading, error));
    AR_THEN(status, sort_initial(&reading, error));
    free(reading.initial);
    return status;
}

void recording_close(struct recording *recording)
{
    free(recording->actions);
    free(recording->requests);
    free(recording->groups);
    recorded_start_close(&recording->start);
    recorded_final_close(&recording->final);
    free(recording->completions);
    free(recording->unmade);
    *recording = (struct recording){0};
}

bool recorded_request_waits(struct recording *recording, struct recorded_request *request)
{
    size_t seen = request->fits_from == RECORDED_NONE ? 0 : request->fits_from;
    size_t waited = request->completions - seen;
    if (waited <= request->waited)
        return false;
    request->waited = waited;
    recording->again = true;
    return true;
}

bool recording_is_unmade(const struct recording *recording, uint64_t id)
{
    for (size_t i = 0; i < recording->unmade_count; i++)
        if (recording->unmade[i] == id)
            return true;
    return false;
}

uint64_t recorded_range_bytes(const struct recording *recording, size_t first, uint64_t address,
                              uint64_t top, uint64_t mapped_bytes, uint64_t gap_bytes,
                              uint64_t bytes)
{
    for (size_t i = first; i < recording->action_count; i++) {
        const struct recorded_action *action = &recording->actions[i];
        if (action->address < address || action->address - address >= bytes)
            continue;
        if (action->kind == RECORDED_UNMAPPED && action->address < top) {
            mapped_bytes -= action->bytes;
            if (!mapped_bytes)
                break; /* the range is released */
            continue;
        }
        if (action->kind != RECORDED_MAPPED)
            continue;
        if (action->address > top && action->address - top >= gap_bytes) {
            bytes = action->address - address;
            continue;
        }
        mapped_bytes += action->bytes;
        AR_RAISE(top, action->address + action->bytes);
    }
    return bytes;
}

/* ---- the source of a replay -----------------------------------------------------------------
 *
 * The cause of a release is decided when the replay reaches it. The recording has freed segments
 * and unmapped pages, but not the reason. For a group of these, released together:
 *
 * 1. The trace has a release right before the group: that release is the cause.
 * 2. No request follows, or the request was served from the cache: the program released its cache.
 *    An allocator that releases memory to serve a request then requests memory from the device. The
 *    exception is an allocator that grows ranges by pages and has waited, because the wait may join
 *    enough free pages. So a refusal by the device is tried next.
 * 3. In a dry run, the policy would release memory to serve the next request: the allocator itself.
 * 4. Otherwise the program released its cache or, if the request failed, the device refused.
 *
 * If segments of a private pool are released, the program has ended that pool before.
 *
 * There are two kinds of completions right before a request or its group. Either the allocator sees
 * them when it begins to serve the request, or it waits for them because memory is short, after its
 * search for a free block. The second kind is certain after memory was made for the request. It is
 * also certain from the completion on that would have let the search succeed, if memory was made
 * nevertheless and the program did not release its cache. Other completions are assumed to be of
 * the first kind; if this leads to a difference, the recording is replayed with the second kind. If
 * the request waited and nothing was released, the device had refused memory.
 *
 * If there is a difference in a group of case 3 or 4, causes.c tries the other causes. */

#define CAPTURED_KEYS UINT32_MAX
#define UNNAMED_POOL  UINT32_MAX

static struct recorded_source *of(struct trace_source *base)
{
    return (struct recorded_source *)base;
}

static struct recorded_group *next_group(const struct recorded_source *self)
{
    return self->group < self->recording->group_count ? &self->recording->groups[self->group]
                                                      : NULL;
}

static bool would_release(const struct recorded_source *self, size_t request)
{
    return ar_policy_would_release(self->policy, &self->recording->requests[request].request);
}

static void decide(const struct recorded_source *self, struct recorded_group *group)
{
    bool ambiguous = group->request != RECORDED_NONE && (group->served_anew || group->begun);
    if (group->cause != CAUSE_UNDECIDED)
        return;
    if (!ambiguous) {
        group->cause = CAUSE_RELEASE;
        group->tried = self->recording->has_pages ? CAUSE_BIT(CAUSE_RELEASE) : ~0u;
        return;
    }
    group->cause = CAUSE_RELEASE;
    struct recorded_request *request = &self->recording->requests[group->request];
    if (would_release(self, group->request)) {
        group->cause = CAUSE_OWN;
    } else if (request->missed_before && !request->waited_tried) {
        request->waited_tried = true;
        (void)recorded_request_waits(self->recording, request);
        return; /* in this replay treated as a release of the cache */
    } else if (group->begun || request->failed) {
        group->cause = CAUSE_REFUSED;
        if (request->fits_from != RECORDED_NONE)
            (void)recorded_request_waits(self->recording, request);
    }
    group->tried |= CAUSE_BIT(group->cause);
}

static struct recorded_request *next_request(const struct recorded_source *self)
{
    return self->request < self->recording->request_count && !self->result->difference.found
               ? &self->recording->requests[self->request]
               : NULL;
}

/* Before a completion: decides whether the next request waits for it. */
static void look_ahead(struct recorded_source *self)
{
    struct recorded_request *request = next_request(self);
    size_t at = self->completion++;
    if (!request || at < request->first_completion)
        return;
    size_t seen = request->completions - request->waited;
    if (at == request->first_completion)
        request->missed_before =
            request->missed && !request->waited && would_release(self, self->request);
    self->device->holds = at - request->first_completion >= seen;
    self->completed = (request->missed || request->has_group) && !self->device->holds;
}

/* After a completion that the next request has seen: checks whether the request could be served
 * now, although the recorded allocator found no block. */
static void look_behind(struct recorded_source *self)
{
    struct recorded_request *request = next_request(self);
    if (!self->completed || !request)
        return;
    self->completed = false;
    /* One more may join blocks to one that is too large to be split, and does not fit. */
    if (!ar_policy_would_fit(self->policy, &request->request))
        request->fits_from = RECORDED_NONE;
    else if (request->fits_from == RECORDED_NONE)
        request->fits_from = self->completion - 1 - request->first_completion;
}

/* Before a request without a group, which would decide: whether it waited. */
static void look_at_wait(struct recorded_source *self)
{
    struct recorded_request *request = next_request(self);
    if (!request || request->fits_from == RECORDED_NONE || request->has_group)
        return;
    if (recorded_request_waits(self->recording, request))
        request->refused = !request->failed;
}

static bool pull(struct recorded_source *self, enum ar_status *status, struct ar_error *error)
{
    if (self->span_at < self->span_count)
        return true;
    self->span_at = 0;
    *status = trace_next(self->base.over, &self->span, &self->span_count, error);
    return !*status && self->span_count;
}

static void step(struct recorded_source *self, enum recorded_step kind, uint64_t until_event)
{
    struct recorded_device *device = self->device;
    device->step = kind;
    device->until_event = until_event;
    device->event = self->next_event;
    device->request = NULL;
    device->refused_once = false;
    device->group = next_group(self);
}

/* Ends an inserted release, which must have released the whole group. */
static void end_release(struct recorded_source *self)
{
    if (self->device->step == STEP_TRIM)
        recorded_device_settle(self->device);
    self->device->step = STEP_OTHER;
    self->device->until_event = 0;
}

static uint64_t group_end(const struct recorded_source *self, const struct recorded_group *group)
{
    return self->recording->actions[group->first + group->count - 1].event + 1;
}

/* Segments of a private pool are released only after the program has ended the pool. */
static void end_pools(struct recorded_source *self, const struct recorded_group *group)
{
    for (size_t i = group->first; !self->released && i < group->first + group->count; i++) {
        const struct recorded_place *place =
            recorded_place_at(self->device, self->recording->actions[i].address);
        if (place && place->pool)
            ar_policy_end_pool(self->policy, place->pool);
    }
}

/* The private pool of an action, 0: of the common pool, or not known. */
static uint32_t pool_of(const struct recorded_source *self, size_t action)
{
    const struct recorded_place *place =
        recorded_place_at(self->device, self->recording->actions[action].address);
    return place ? place->pool : 0;
}

/* Whether all memory of the group is of private pools. Then they were deleted (a torch.cuda.MemPool
 * releases its own memory alone), or the common pool has nothing to release. */
static bool is_of_pools(const struct recorded_source *self, const struct recorded_group *group)
{
    for (size_t i = group->first; i < group->first + group->count; i++)
        if (!pool_of(self, i))
            return false;
    return self->policy->ops->delete_pool != NULL;
}

/* Whether a release must be inserted before the current event. */
static bool is_release(struct recorded_source *self)
{
    struct recorded_group *group = next_group(self);
    if (!group || group->event != self->next_event || self->result->difference.found)
        return false;
    self->deletes = !self->released && is_of_pools(self, group);
    if (!self->deletes)
        end_pools(self, group);
    decide(self, group);
    if (group->cause != CAUSE_RELEASE && self->deletes)
        end_pools(self, group); /* the allocator releases them by itself */
    if (group->cause != CAUSE_RELEASE || self->released)
        return false;
    step(self, STEP_TRIM, group_end(self, group));
    for (size_t i = group->first; self->deletes && i < group->first + group->count; i++)
        (void)ar_policy_delete_pool(self->policy, pool_of(self, i)); /* the device sees the calls */
    self->released = true;
    return true;
}

static void differs_in_free(struct recorded_source *self, const struct trace_event *event)
{
    char said[128];
    snprintf(said, sizeof said,
             "frees block %" PRIu64 ", which it never made, at an address of its own segments",
             event->id);
    step(self, STEP_OTHER, 0);
    recorded_device_differs(self->device, "has no such block", said);
}

/* Blocks that the recording frees but never makes are not replayed. */
static bool is_left_out(struct recorded_source *self, const struct trace_event *event)
{
    if (!self->recording->unmade_count || !trace_kind_has_block(event->kind) ||
        !recording_is_unmade(self->recording, event->id))
        return false;
    if (self->next_event >= self->recording->first_event && event->kind != TRACE_USE)
        differs_in_free(self, event);
    if (event->kind == TRACE_ALLOC)
        self->request++;
    return true;
}

static void look_for_contradiction(struct recorded_source *self, const char *text)
{
    static const char verb[] = "contradiction,";
    char said[224];
    if (strncmp(text, verb, sizeof verb - 1) != 0)
        return;
    snprintf(said, sizeof said, "contradicts itself: %s", text + sizeof verb - 1);
    recorded_device_differs(self->device, "cannot follow", said);
}

/* Tells the device about the current event. */
static void begin_step(struct recorded_source *self, const struct trace_event *event)
{
    const struct recorded_group *group = next_group(self);
    if (group && group->event == self->next_event) {
        self->group++;
        self->released = false;
        group = next_group(self);
    }
    if (trace_requests(event)) {
        step(self, STEP_REQUEST, self->next_event);
        self->device->request = &self->recording->requests[self->request++];
        /* The groups of a request come before it. */
        if (self->group && self->recording->groups[self->group - 1].request == self->request - 1)
            self->device->group = &self->recording->groups[self->group - 1];
    } else if (event->kind == TRACE_TRIM) {
        bool given = group && group->cause == CAUSE_GIVEN;
        if (given)
            end_pools(self, group);
        step(self, STEP_TRIM, given ? group_end(self, group) : self->next_event);
    } else {
        step(self, STEP_OTHER, 0);
        if (event->kind == TRACE_NOTE)
            look_for_contradiction(self, trace_text_of(self->base.over, event->value));
    }
}

/* A request that failed although the allocator held free memory, and released none of it, or not
 * all: it was in a private pool, where PyTorch does not release the cache, and recordings of
 * failures before 2.12 do not name the pool. */
static const struct trace_event *captured(struct recorded_source *self,
                                          const struct trace_event *event)
{
    const struct recorded_request *request = self->device->request;
    if (!request || !request->failed || !self->policy->ops->delete_pool ||
        (!request->captured && (request->has_group || request->waited || request->request.pool ||
                                !self->policy->totals.releasable_bytes)))
        return event;
    self->captured = *event;
    self->captured_keys = *trace_attributes_of(self->base.over, event->attributes);
    self->captured_keys.mempool |= AR_MEMPOOL_CAPTURED;
    if (!request->request.pool)
        self->captured_keys.pool = UNNAMED_POOL;
    if (!request->request.pool && request->has_group && pool_of(self, self->device->group->first))
        self->captured_keys.pool = pool_of(self, self->device->group->first);
    self->captured.attributes = CAPTURED_KEYS;
    return &self->captured;
}

static const struct trace_attributes *recorded_attributes(struct trace_source *base, uint32_t index)
{
    return index == CAPTURED_KEYS ? &of(base)->captured_keys
                                  : trace_attributes_of(base->over, index);
}

static enum ar_status recorded_next(struct trace_source *base, const struct trace_event **events,
                                    size_t *count, struct ar_error *error)
{
    static const struct trace_event release = {.kind = TRACE_TRIM}, nothing = {.kind = TRACE_NOTE};
    struct recorded_source *self = of(base);
    enum ar_status status = AR_OK;
    end_release(self);
    *count = 0;
    while (pull(self, &status, error)) {
        const struct trace_event *event = &self->span[self->span_at];
        look_behind(self);
        if (is_release(self)) {
            *events = self->deletes ? &nothing : &release;
            *count = 1;
            return AR_OK;
        }
        if (self->device->step == STEP_TRIM)
            end_release(self);
        if (event->kind == TRACE_FREE_COMPLETED && !(event->flags & TRACE_WHOLE))
            look_ahead(self);
        else if (trace_requests(event))
            look_at_wait(self);
        self->span_at++;
        bool left_out = is_left_out(self, event);
        if (!left_out)
            begin_step(self, event);
        self->next_event++;
        if (left_out)
            continue;
        *events = captured(self, event);
        *count = 1;
        break;
    }
    return status;
}

/* Compares the address of a block with the recorded one. */
static void compare(struct recorded_source *self, const struct recorded_request *request,
                    const struct trace_served *served)
{
    char did[128], said[128];
    if (served->served && request->request.bytes)
        snprintf(did, sizeof did, "places block %" PRIu64 " at %" PRIu64, request->id,
                 served->address);
    else
        snprintf(did, sizeof did, "does not serve block %" PRIu64, request->id);
    if (request->failed)
        snprintf(said, sizeof said, "does not serve it");
    else
        snprintf(said, sizeof said, "places it at %" PRIu64, request->address);
    if (served->served == request->failed ||
        (served->served && served->address != request->address))
        recorded_device_differs(self->device, did, said);
}

static void recorded_served(struct trace_source *base, const struct trace_event *event AR_UNUSED,
                            const struct trace_served *served)
{
    struct recorded_source *self = of(base);
    const struct recorded_request *request = self->device->request;
    self->device->holds = false;
    if (!request || !request->known || self->result->difference.found)
        return;
    if (request->initial && self->result->start == FIDELITY_REQUESTED)
        return;
    recorded_device_settle(self->device);
    compare(self, request, served);
    self->device->until_event = 0;
}

enum ar_status recorded_source_open(struct recorded_source *self, struct trace_source *inner,
                                    struct recording *recording, struct recorded_device *device,
                                    struct ar_policy *policy, struct fidelity_result *result,
                                    struct ar_error *error)
{
    static const struct trace_source_ops ops = {
        .next = recorded_next,
        .served = recorded_served,
        .attributes = recorded_attributes,
    };
    *self = (struct recorded_source){.base = {.ops = &ops, .info = inner->info, .over = inner},
                                     .recording = recording,
                                     .device = device,
                                     .policy = policy,
                                     .result = result};
    self->base.info.adaptive = true;
    return trace_rewind(inner, error);
}

void recorded_source_finish(struct recorded_source *self)
{
    end_release(self);
    step(self, STEP_OTHER, UINT64_MAX);
    self->device->event = self->next_event ? self->next_event - 1 : 0;
    recorded_device_settle(self->device);
}
