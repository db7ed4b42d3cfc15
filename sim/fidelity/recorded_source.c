/* Why memory went back to the device, decided when the replay comes to it. A recording tells of
 * segments that were freed and pages that were unmapped, and not of what made the allocator do
 * so. For a group of these, given back together:
 *
 * 1. The trace has a release right before it: that.
 * 2. No request follows, or one that was served from what was cached: the program released its
 *    cache. An allocator that gives memory back to serve a request then asks the device for it;
 *    unless it grows ranges by pages and has waited, which may join free pages to enough: the
 *    device had refused is what is tried next.
 * 3. The policy, asked in a dry run, would give memory back to serve the request that follows:
 *    it will do so by itself.
 * 4. Else the program released its cache; or, where the request failed, the device refused.
 *
 * Where segments of a private pool are among them, the program has given that pool up before.
 *
 * Completions that come right before a request, or a group of it, are either seen by the
 * allocator when it begins to serve the request, or complete because it waits for them when it is
 * short of memory, after it has looked for a free block. Those that come after memory was made for
 * the request are of the latter kind, and so are they from the one on with which a block would have
 * been found, where memory was made for the request all the same and the program did not release its
 * cache. The others are taken for the former, unless this leads to a difference: then the recording
 * is replayed again with the latter. Where it waited and nothing went back, the device had refused
 * it memory, too.
 *
 * Where the replay comes to a difference inside of a group by 3 or 4, fidelity.c tries the other
 * causes in turn. */
#include "sim/fidelity/recorded_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
        return; /* as if the cache were released, up to the next replay */
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

/* Before a completion: is it one that the next request waits for? */
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

/* After a completion that the next request has seen: does it fit now, although it was not found? */
static void look_behind(struct recorded_source *self)
{
    struct recorded_request *request = next_request(self);
    if (!self->completed || !request)
        return;
    self->completed = false;
    if (request->fits_from != RECORDED_NONE ||
        !ar_policy_would_fit(self->policy, &request->request))
        return;
    request->fits_from = self->completion - 1 - request->first_completion;
    if (request->has_group)
        return; /* what comes of it, is decided there */
    request->refused = !request->failed;
    (void)recorded_request_waits(self->recording, request);
}

static bool pull(struct recorded_source *self, enum ar_status *status, struct ar_error *error)
{
    if (self->span_at < self->span_count)
        return true;
    self->span_at = 0;
    *status = trace_next(self->inner, &self->span, &self->span_count, error);
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

/* The release that was given is over: it must have given back the whole group. */
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

/* Segments of a private pool go back only after the program has given the pool up. */
static void end_pools(struct recorded_source *self, const struct recorded_group *group)
{
    for (size_t i = group->first; !self->released && i < group->first + group->count; i++) {
        const struct recorded_place *place =
            recorded_place_at(self->device, self->recording->actions[i].address);
        if (place && place->pool)
            ar_policy_end_pool(self->policy, place->pool);
    }
}

/* Whether a release is to be given before the event in hand. */
static bool is_release(struct recorded_source *self)
{
    struct recorded_group *group = next_group(self);
    if (!group || group->event != self->next_event || self->result->difference.found)
        return false;
    end_pools(self, group);
    decide(self, group);
    if (group->cause != CAUSE_RELEASE || self->released)
        return false;
    step(self, STEP_TRIM, group_end(self, group));
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

/* Blocks that the recording frees and never makes are not replayed. */
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

/* Tells the device what the event in hand is. */
static void begin_step(struct recorded_source *self, const struct trace_event *event)
{
    const struct recorded_group *group = next_group(self);
    if (group && group->event == self->next_event) {
        self->group++;
        self->released = false;
        group = next_group(self);
    }
    if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE) {
        step(self, STEP_REQUEST, self->next_event);
        self->device->request = &self->recording->requests[self->request++];
        /* The groups of this request lie before it. */
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
            look_for_contradiction(self, trace_text_of(self->inner, event->value));
    }
}

static enum ar_status recorded_next(struct trace_source *base, const struct trace_event **events,
                                    size_t *count, struct ar_error *error)
{
    static const struct trace_event release = {.kind = TRACE_TRIM};
    struct recorded_source *self = of(base);
    enum ar_status status = AR_OK;
    end_release(self);
    *count = 0;
    while (pull(self, &status, error)) {
        const struct trace_event *event = &self->span[self->span_at];
        look_behind(self);
        if (is_release(self)) {
            *events = &release;
            *count = 1;
            return AR_OK;
        }
        if (self->device->step == STEP_TRIM)
            end_release(self);
        if (event->kind == TRACE_FREE_COMPLETED && !(event->flags & TRACE_WHOLE))
            look_ahead(self);
        self->span_at++;
        bool left_out = is_left_out(self, event);
        if (!left_out)
            begin_step(self, event);
        self->next_event++;
        if (left_out)
            continue;
        *events = event;
        *count = 1;
        break;
    }
    return status;
}

/* Holds the place of a block against the recorded one. */
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

static void recorded_served(struct trace_source *base, const struct trace_event *event,
                            const struct trace_served *served)
{
    struct recorded_source *self = of(base);
    const struct recorded_request *request = self->device->request;
    (void)event;
    self->device->holds = false;
    if (!request || !request->known || self->result->difference.found)
        return;
    if (request->initial && self->result->start == FIDELITY_REQUESTED)
        return;
    recorded_device_settle(self->device);
    compare(self, request, served);
    self->device->until_event = 0;
}

static const struct trace_attributes *recorded_attributes(struct trace_source *base, uint32_t index)
{
    return trace_attributes_of(of(base)->inner, index);
}

static const char *recorded_text(struct trace_source *base, uint64_t index)
{
    return trace_text_of(of(base)->inner, index);
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
        .text = recorded_text,
    };
    *self = (struct recorded_source){.base = {.ops = &ops, .info = inner->info},
                                     .inner = inner,
                                     .recording = recording,
                                     .device = device,
                                     .policy = policy,
                                     .result = result};
    return trace_rewind(inner, error);
}

void recorded_source_finish(struct recorded_source *self)
{
    end_release(self);
    step(self, STEP_OTHER, UINT64_MAX);
    self->device->event = self->next_event ? self->next_event - 1 : 0;
    recorded_device_settle(self->device);
}
