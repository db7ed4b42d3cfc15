#include "sim/advise/advise.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "sim/experiment/recorded_card.h"
#include "workloads/trace/trace.h"

/* ---- prepare ---- */

struct copying {
    struct trace_source *source;
    struct trace_memory *memory;
    const uint64_t *releases;
    size_t count, next;
    uint64_t number;
    uint64_t written;     /* events */
    bool request_before;  /* only notes since the last `a` */
    bool probe_before;    /* only notes since the last `p` */
    uint64_t fatal_probe; /* that ended the program; UINT64_MAX: none */
    uint64_t request_event, request_bytes;
    struct prepared *out;
};

static bool is_failure(const char *text)
{
    return text && (strncmp(text, "oom", 3) == 0 || strncmp(text, "failed", 6) == 0);
}

static void look(struct copying *self, const struct trace_event *event, const char *text)
{
    struct prepared *out = self->out;
    if (event->kind == TRACE_NOTE && self->request_before && is_failure(text)) {
        out->has_failed_request = true;
        out->failed_event = self->request_event;
        out->failed_bytes = self->request_bytes;
    }
    out->survived += event->kind == TRACE_NOTE && self->probe_before && is_failure(text);
    self->probe_before =
        event->kind == TRACE_PROBE || (self->probe_before && event->kind == TRACE_NOTE);
    self->request_before =
        event->kind == TRACE_ALLOC || (self->request_before && event->kind == TRACE_NOTE);
    if (event->kind == TRACE_ALLOC) {
        self->request_event = self->number;
        self->request_bytes = event->value;
        /* Otherwise the program continued. */
        out->has_failed_request = self->number > self->fatal_probe && out->has_failed_request;
    }
    if (trace_ends_step(event))
        out->last_step_end = self->written + 1;
}

#define LAST_REQUESTS 64 /* that a program may make while it ends */

struct fatal_search {
    uint64_t probe_event; /* of the last probe */
    bool probe_before;    /* only notes since then */
    uint64_t fatal_probe, requests_after;
};

/* A failed request is a probe if others follow. If the program died, and only a few requests follow
 * its last probe, that probe is the request that ended it. */
static void look_for_fatal(struct fatal_search *self, const struct trace_event *event,
                           uint64_t number, const char *text)
{
    bool note = event->kind == TRACE_NOTE, probe = event->kind == TRACE_PROBE;
    if (probe)
        self->probe_event = number;
    self->probe_before = probe || (self->probe_before && note);
    self->requests_after += event->kind == TRACE_ALLOC;
    if (trace_ends_step(event) || self->requests_after > LAST_REQUESTS)
        self->fatal_probe = UINT64_MAX;
    if (note && self->probe_before && is_failure(text)) {
        self->fatal_probe = self->probe_event;
        self->requests_after = 0;
    }
}

static enum ar_status find_fatal_probe(struct trace_source *source, uint64_t *out,
                                       struct ar_error *error)
{
    struct fatal_search search = {.fatal_probe = UINT64_MAX};
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    while (!source->info.complete && (event = trace_read(&cursor, &status, error)) != NULL)
        look_for_fatal(&search, event, cursor.next - 1,
                       event->kind == TRACE_NOTE ? trace_text_of(source, event->value) : NULL);
    *out = search.fatal_probe;
    return status ? status : trace_rewind(source, error);
}

static enum ar_status copy_one(struct copying *self, const struct trace_event *read,
                               struct ar_error *error)
{
    struct trace_event changed = *read;
    const struct trace_event *event = &changed;
    if (self->number == self->fatal_probe)
        changed.kind = TRACE_ALLOC;
    const struct trace_event release = {.kind = TRACE_TRIM};
    const char *text = NULL;
    enum ar_status status = AR_OK;
    while (self->next < self->count && self->releases[self->next] <= self->number && !status) {
        status = trace_memory_append(self->memory, &release, NULL, NULL, error);
        self->next++;
        self->written++;
    }
    AR_TRY(status);
    self->out->has_pools |= trace_attributes_of(self->source, event->attributes)->pool != 0;
    self->out->has_outside |= event->kind == TRACE_OUTSIDE;
    if (event->kind == TRACE_MARK || event->kind == TRACE_NOTE)
        text = trace_text_of(self->source, event->value);
    look(self, event, text);
    self->number++;
    self->written++;
    return trace_memory_take(self->memory, self->source, event, error);
}

enum ar_status prepare_trace(struct trace_source *source, const uint64_t *releases, size_t count,
                             struct prepared *out, struct ar_error *error)
{
    struct copying self = {.source = source, .releases = releases, .count = count, .out = out};
    struct trace_cursor cursor = {.source = source};
    *out = (struct prepared){.releases = releases, .release_count = count};
    enum ar_status status = AR_OK;
    AR_TRY(trace_rewind(source, error));
    AR_TRY(find_fatal_probe(source, &self.fatal_probe, error));
    self.memory = trace_memory_create(&source->info);
    AR_TRY_MEMORY(self.memory, error, "a trace");
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        status = copy_one(&self, event, error);
    return trace_memory_finish(self.memory, status, &out->trace, error);
}

uint64_t prepared_event(const struct prepared *self, uint64_t event)
{
    size_t before = 0;
    while (before < self->release_count && self->releases[before] + before < event)
        before++;
    return event - before;
}

/* ---- pressure -------------------------------------------------------------------------------
 *
 * 1. The recorded peak of reserved bytes is a lower bound of the limit. If memory was released and
 *    a segment was made right after, and the cause was pressure, then the limit was less than the
 *    reserved bytes before the release plus the new segment.
 * 2. The recording is compared with the policy at the lower bound, and at one byte less than each
 *    of the lowest upper bounds. The limit that leaves the fewest releases to the program is taken,
 *    if that is fewer than without a limit.
 * 3. A bisection below it finds the lowest limit with the same result. */

#define LIMITS_MOST 5 /* that are tried */

/* The size of PyTorch's segment for a request. PyTorch compares this with its limit. */
#define SMALL_REQUEST AR_MIB
#define SMALL_SEGMENT (2 * AR_MIB)
#define LARGE_REQUEST (10 * AR_MIB)
#define LARGE_SEGMENT (20 * AR_MIB)

static uint64_t segment_of(uint64_t bytes)
{
    return bytes <= SMALL_REQUEST  ? SMALL_SEGMENT
           : bytes < LARGE_REQUEST ? LARGE_SEGMENT
                                   : ar_size_round_up(bytes, SMALL_SEGMENT);
}

struct limit_search {
    const struct fidelity_result *compared;
    uint64_t event, reserved_bytes;
    uint64_t before_bytes; /* reserved when the last release began */
    size_t release;        /* the next one */
    bool open;             /* a release was seen, and no request since */
    uint64_t limits[LIMITS_MOST];
    size_t limit_count;
};

/* Keeps the lowest limits, ascending. */
static void keep(struct limit_search *self, uint64_t limit)
{
    size_t at = ar_array_from(self->limits, self->limit_count, sizeof *self->limits, 0, limit);
    if (at == LIMITS_MOST || (at < self->limit_count && self->limits[at] == limit))
        return;
    if (self->limit_count < LIMITS_MOST)
        self->limit_count++;
    for (size_t i = self->limit_count - 1; i > at; i--)
        self->limits[i] = self->limits[i - 1];
    self->limits[at] = limit;
}

static void look_at_pressure(struct limit_search *self, struct trace_source *source,
                             const struct trace_event *event)
{
    const struct fidelity_result *compared = self->compared;
    if (self->release < compared->release_count &&
        compared->releases[self->release] <= self->event) {
        self->before_bytes = self->reserved_bytes;
        self->open = true;
        self->release++;
    }
    if (event->kind == TRACE_NOTE)
        recorded_reserved_follow(trace_text_of(source, event->value), &self->reserved_bytes);
    if (event->kind == TRACE_ALLOC && self->open) {
        uint64_t limit = self->before_bytes + segment_of(event->value) - 1;
        if (limit > compared->recorded_peak_reserved_bytes)
            keep(self, limit);
        self->open = false;
    }
    self->event++;
}

static enum ar_status find_limits(struct trace_source *source, struct limit_search *self,
                                  struct ar_error *error)
{
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        look_at_pressure(self, source, event);
    return status;
}

static enum ar_status hold(struct trace_source *source, const char *text, uint64_t limit,
                           uint64_t seed, struct fidelity_result *out, struct ar_error *error)
{
    char limited[1200];
    AR_CLOSED(ar_spec_close) struct ar_spec policy = {0};
    snprintf(limited, sizeof limited, "%s%slimit=%" PRIu64, text, strchr(text, ':') ? "," : ":",
             limit);
    AR_TRY(ar_spec_parse(limited, &policy, error));
    const struct fidelity fidelity = {.policy = &policy, .source = source, .seed = seed};
    return fidelity_run(&fidelity, out, error);
}

/* Rule 3: bisects between `least`, with another result, and `most`, with the same result. */
static enum ar_status find_lowest(struct trace_source *source, const char *text, uint64_t seed,
                                  const struct fidelity_result *compared, struct pressure *out,
                                  uint64_t least, struct ar_error *error)
{
    while (out->least_bytes > least && out->least_bytes - least > SMALL_SEGMENT) {
        AR_CLOSED(fidelity_result_close) struct fidelity_result other = {0};
        uint64_t middle = least + (out->least_bytes - least) / 2;
        AR_TRY(hold(source, text, middle, seed, &other, error));
        if (other.agrees && other.release_count <= compared->release_count)
            out->least_bytes = middle;
        else
            least = middle;
    }
    return AR_OK;
}

enum ar_status pressure_find(struct trace_source *source, const char *text, uint64_t seed,
                             struct fidelity_result *compared, struct pressure *out,
                             struct ar_error *error)
{
    struct limit_search search = {.compared = compared};
    uint64_t peak = compared->recorded_peak_reserved_bytes;
    *out = (struct pressure){0};
    if (!compared->agrees || !compared->release_count || !peak)
        return AR_OK;
    keep(&search, peak);
    AR_TRY(find_limits(source, &search, error));
    for (size_t i = 0; i < search.limit_count && compared->release_count; i++) {
        AR_CLOSED(fidelity_result_close) struct fidelity_result other = {0};
        AR_TRY(hold(source, text, search.limits[i], seed, &other, error));
        if (other.agrees && other.release_count < compared->release_count) {
            struct fidelity_result swap = *compared;
            *compared = other;
            other = swap;
            out->least_bytes = out->most_bytes = search.limits[i];
        }
    }
    return out->least_bytes ? find_lowest(source, text, seed, compared, out, peak, error) : AR_OK;
}

/* ---- tries ----------------------------------------------------------------------------------
 *
 * Only events of blocks count. A request opens a try. If the next such event frees its block, the
 * try belongs to the run; otherwise the run ends before it. The end of a step also ends the run.
 * The completion of a free is not such an event. */

#define RUN_LEAST 3 /* tries, of different sizes */

struct found {
    uint64_t *at; /* numbers of requests, ascending */
    size_t count, room;
};

struct finding {
    struct found found;
    uint64_t number;
    size_t run_from; /* index into `found` of the first try of the open run */
    uint64_t live;   /* blocks */
    bool open;       /* the last event of a block was a request */
    uint64_t slot;   /* its block */
    uint64_t bytes;
    uint64_t sizes[RUN_LEAST]; /* the first ones of the run */
    size_t size_count;
    struct tries *out;
    uint64_t run_most_bytes;
};

static enum ar_status keep_try(struct found *self, uint64_t number, struct ar_error *error)
{
    return AR_APPEND(self->at, self->count, self->room, number, error, "%zu requests", self->count);
}

static void end_run(struct finding *self)
{
    if (self->size_count < RUN_LEAST)
        self->found.count = self->run_from;
    else if (self->run_most_bytes > self->out->most_bytes)
        self->out->most_bytes = self->run_most_bytes;
    self->run_from = self->found.count;
    self->size_count = 0;
    self->run_most_bytes = 0;
    self->open = false;
}

static void note_size(struct finding *self, uint64_t bytes)
{
    for (size_t i = 0; i < self->size_count; i++)
        if (self->sizes[i] == bytes)
            return;
    if (self->size_count < RUN_LEAST)
        self->sizes[self->size_count++] = bytes;
}

static enum ar_status free_requested(struct finding *self, const struct trace_event *event,
                                     uint64_t request_number, struct ar_error *error)
{
    self->live--;
    if (!self->open || event->slot != self->slot || !self->live) {
        end_run(self);
        return AR_OK;
    }
    self->open = false;
    note_size(self, self->bytes);
    AR_RAISE(self->run_most_bytes, self->bytes);
    return keep_try(&self->found, request_number, error);
}

static enum ar_status follow(struct finding *self, const struct trace_event *event,
                             uint64_t *request_number, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    if (trace_requests(event)) {
        if (self->open)
            end_run(self);
        self->open = event->kind == TRACE_ALLOC;
        self->slot = event->slot;
        self->bytes = event->value;
        self->live++;
        *request_number = self->number;
    } else if (trace_frees(event)) {
        status = free_requested(self, event, *request_number, error);
    } else if (trace_ends_step(event)) {
        end_run(self);
    }
    self->number++;
    return status;
}

static enum ar_status find(struct trace_source *trace, struct finding *self, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = trace};
    uint64_t request_number = 0;
    enum ar_status status = trace_rewind(trace, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        status = follow(self, event, &request_number, error);
    end_run(self);
    return status;
}

/* Writes the trace with other events of one kind. */
static enum ar_status copy(struct trace_source *trace, const struct found *found,
                           enum trace_kind kind, struct trace_source **out, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = trace};
    const struct trace_event *read;
    size_t next = 0;
    struct trace_memory *memory = trace_memory_create(&trace->info);
    AR_TRY_MEMORY(memory, error, "a trace");
    enum ar_status status = trace_rewind(trace, error);
    while ((read = trace_read(&cursor, &status, error)) != NULL) {
        struct trace_event event = *read;
        if (next < found->count && found->at[next] == cursor.next - 1) {
            event.kind = (uint8_t)kind;
            next++;
        }
        status = trace_memory_take(memory, trace, &event, error);
    }
    return trace_memory_finish(memory, status, out, error);
}

enum ar_status tries_find(struct trace_source *trace, struct tries *out, struct ar_error *error)
{
    struct finding finding = {.out = out};
    *out = (struct tries){0};
    enum ar_status status = find(trace, &finding, error);
    out->count = finding.found.count;
    if (!status && out->count)
        status = copy(trace, &finding.found, TRACE_PROBE, &out->trace, error);
    free(finding.found.at);
    return status;
}

void tries_close(struct tries *self)
{
    trace_close(self->trace);
    *self = (struct tries){0};
}

enum ar_status caught_as_requests(struct trace_source *trace, struct trace_source **out,
                                  struct ar_error *error)
{
    struct trace_cursor cursor = {.source = trace};
    struct found found = {0};
    uint64_t probe = UINT64_MAX;
    enum ar_status status = trace_rewind(trace, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;) {
        bool note = event->kind == TRACE_NOTE;
        if (note && probe < UINT64_MAX && is_failure(trace_text_of(trace, event->value)))
            status = keep_try(&found, probe, error);
        else if (note)
            continue;
        probe = event->kind == TRACE_PROBE ? cursor.next - 1 : UINT64_MAX;
    }
    *out = NULL;
    if (!status && found.count)
        status = copy(trace, &found, TRACE_ALLOC, out, error);
    free(found.at);
    return status;
}
