/* The search for causes:
 *
 * 1. A cause that is found in a replay too late is used from the next replay on.
 * 2. After a difference the other explanations of that request are tried one by one: the request
 *    waited for the completions before it, or the release had another cause, or it failed in a
 *    private pool. This takes at most eight replays for each request. If none fits, the first
 *    difference is reported.
 * 3. Some causes give the same events and differ only in counters: either the program released its
 *    cache right before a request, or the request was retried after the limit was reached or the
 *    device had refused. If the recorded number of retries is known and differs, the missing number
 *    of requests get the other explanation, those with the most reserved bytes first, because the
 *    device most likely refused these. The same is done if fewer releases were recorded. */
#include "sim/fidelity/recording.h"

#include "allocators/base/array.h"

#define RETRIES      "num_alloc_retries"
#define RELEASES     "num_sync_all_streams"
#define REPLAYS_MOST 100 /* for rule 3 */

size_t recorded_request_of(const struct recording *recording, uint64_t event)
{
    return ar_array_from(recording->requests, recording->request_count, sizeof *recording->requests,
                         offsetof(struct recorded_request, event), event);
}

/* The last group of a request at or before an event; NULL: none. */
static struct recorded_group *group_of(const struct recording *recording, size_t request,
                                       uint64_t event)
{
    struct recorded_group *found = NULL;
    for (size_t i = 0; i < recording->group_count && recording->groups[i].event <= event; i++)
        if (recording->groups[i].request == request)
            found = &recording->groups[i];
    return found;
}

static void forget_causes(struct recording *recording, size_t request)
{
    for (size_t i = 0; i < recording->group_count; i++)
        if (recording->groups[i].request == request && recording->groups[i].cause != CAUSE_GIVEN) {
            recording->groups[i].cause = CAUSE_UNDECIDED;
            recording->groups[i].tried = 0;
        }
}

/* The number of completions for which a request waits if its release had that cause. If ranges grow
 * by pages, the request may have waited for all: the pages are the same, because the completions
 * seen before were not enough. */
static size_t waited_under(const struct recording *recording,
                           const struct recorded_request *request, enum recorded_cause cause)
{
    size_t waited = request->waited_least;
    if (cause == CAUSE_REFUSED && recording->has_pages)
        return request->completions;
    if (cause == CAUSE_REFUSED && request->fits_from != RECORDED_NONE &&
        request->completions - request->fits_from > waited)
        waited = request->completions - request->fits_from;
    return waited;
}

/* Chooses another explanation for the request at an event. False: none is left. */
static bool try_other(struct recording *recording, uint64_t event)
{
    static const enum recorded_cause causes[] = {CAUSE_OWN, CAUSE_RELEASE, CAUSE_REFUSED};
    size_t at = recorded_request_of(recording, event);
    if (at == recording->request_count)
        return false;
    struct recorded_request *request = &recording->requests[at];
    struct recorded_group *group = group_of(recording, at, event);
    if (request->completions && !request->waited_tried && (group || request->failed)) {
        request->waited_tried = true;
        request->waited = request->completions;
        forget_causes(recording, at);
        return true;
    }
    for (size_t i = 0; group && i < AR_COUNT(causes); i++)
        if (!(group->tried & CAUSE_BIT(causes[i]))) {
            group->cause = causes[i];
            group->tried |= CAUSE_BIT(causes[i]);
            request->waited = waited_under(recording, request, causes[i]);
            return true;
        }
    if (!request->failed || request->captured)
        return false;
    request->captured = true;
    request->waited = 0;
    forget_causes(recording, at);
    return true;
}

/* Uses the causes that the last replay found too late. */
static void prepare_again(struct recording *recording)
{
    recording->again = false;
    for (size_t i = 0; i < recording->group_count; i++) {
        size_t request = recording->groups[i].request;
        if (request != RECORDED_NONE && recording->requests[request].waited)
            forget_causes(recording, request);
    }
}

/* Rules 1 and 2, up to the final replay. */
static enum ar_status find(const struct causes *self, uint64_t *replays, struct ar_error *error)
{
    struct fidelity_result *result = self->result;
    struct recording *recording = self->recording;
    struct fidelity_difference first = {0};
    size_t first_request = SIZE_MAX;
    for (;;) {
        enum ar_status status = self->replay(self->argument, error);
        ++*replays;
        AR_TRY(status);
        if (recording->again) {
            prepare_again(recording);
            continue;
        }
        if (!result->difference.found)
            return AR_OK;
        uint64_t event = result->difference.event;
        size_t request = recorded_request_of(recording, event);
        if (request != first_request) {
            first = result->difference;
            first_request = request;
        }
        if (!try_other(recording, event))
            break;
    }
    result->difference = first;
    return AR_OK;
}

/* The recorded figure minus the replayed one; 0: not known. */
static int64_t missing_of(const struct fidelity_result *result, const char *name)
{
    for (size_t i = 0; i < result->figure_count; i++)
        if (strcmp(result->figures[i].name, name) == 0)
            return (int64_t)(result->figures[i].recorded - result->figures[i].replayed);
    return 0;
}

/* The amount by which a figure must change. Of releases only an excess counts, because a recorded
 * release may have left no event. */
static int64_t missing(const struct fidelity_result *result, const char *name)
{
    int64_t number = missing_of(result, name);
    return strcmp(name, RELEASES) == 0 && number > 0 ? 0 : number;
}

/* A request that may have the other explanation. */
struct candidate {
    struct recorded_request *request;
    struct recorded_group *group; /* NULL: no memory was released for it */
    uint64_t held_bytes;          /* reserved after the request if nothing had been released */
    enum recorded_cause before;   /* of the group */
};

static int by_held_bytes(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    AR_ORDER(b->held_bytes, a->held_bytes);
    return (a->request > b->request) - (a->request < b->request);
}

/* Whether the group of a request can have another cause with one retry more or less. */
static bool can_turn(const struct recording *recording, const struct recorded_group *group,
                     const struct recorded_request *request, bool more)
{
    bool waits = request->completions && !request->waited;
    if (request->failed || !(group->served_anew || recording->has_pages))
        return false;
    return more ? group->cause == CAUSE_RELEASE || (group->cause == CAUSE_OWN && waits)
                : group->cause == CAUSE_OWN;
}

/* Of requests without a release, those that may have waited: a range that grows by pages may need
 * fewer pages after a wait. */
static size_t find_waiting(struct recording *recording, struct candidate *candidates)
{
    size_t count = 0;
    for (size_t i = 0; i < recording->request_count; i++) {
        struct recorded_request *request = &recording->requests[i];
        if (request->missed && !request->failed && !request->refused && !request->has_group &&
            request->completions > request->waited)
            candidates[count++] = (struct candidate){.request = request};
    }
    return count;
}

static size_t find_candidates(struct recording *recording, bool more, struct candidate *candidates)
{
    uint64_t held_bytes = 0;
    size_t count = 0, action = 0;
    for (size_t i = 0; i < recording->group_count; i++) {
        struct recorded_group *group = &recording->groups[i];
        for (; action < group->first; action++) {
            const struct recorded_action *done = &recording->actions[action];
            bool made = done->kind == RECORDED_MADE || done->kind == RECORDED_MAPPED;
            held_bytes += made ? done->bytes : -done->bytes;
        }
        if (group->request == RECORDED_NONE)
            continue;
        struct recorded_request *request = &recording->requests[group->request];
        if (can_turn(recording, group, request, more))
            candidates[count++] = (struct candidate){
                request, group, held_bytes + request->request.bytes, group->cause};
    }
    if (count)
        qsort(candidates, count, sizeof *candidates, by_held_bytes);
    if (more && recording->has_pages)
        count += find_waiting(recording, candidates + count);
    return count;
}

/* Gives a request the other explanation, or the earlier one. */
static void turn(const struct recording *recording, const struct candidate *candidate, bool more,
                 bool back)
{
    struct recorded_request *request = candidate->request;
    struct recorded_group *group = candidate->group;
    if (!group) {
        request->refused = !back;
        request->waited =
            back ? request->waited_least : waited_under(recording, request, CAUSE_REFUSED);
        return;
    }
    if (more && candidate->before == CAUSE_OWN) {
        request->waited = back ? request->waited_least : request->completions;
        return;
    }
    group->cause = back ? candidate->before : more ? CAUSE_REFUSED : CAUSE_RELEASE;
    request->waited = waited_under(recording, request, group->cause);
}

static uint64_t size_of(int64_t number)
{
    return number < 0 ? (uint64_t)-number : (uint64_t)number;
}

/* The distance of the figures from the recorded ones, and the candidates to reduce it. */
struct meeting {
    const struct causes *causes;
    uint64_t retries, releases; /* missing or in excess */
    bool more;                  /* candidates change to causes with one more retry */
    bool stale;                 /* the last replay was of a rejected change */
    struct candidate *candidates;
    uint64_t *replays;
};

/* Changes candidates [first, first + count), and changes them back if the distance does not
 * fall. */
static enum ar_status turn_some(struct meeting *self, size_t first, size_t count,
                                struct ar_error *error)
{
    const struct causes *causes = self->causes;
    for (size_t i = first; i < first + count; i++)
        turn(causes->recording, &self->candidates[i], self->more, false);
    enum ar_status status = causes->replay(causes->argument, error);
    ++*self->replays;
    uint64_t retries = size_of(missing(causes->result, RETRIES));
    uint64_t releases = size_of(missing(causes->result, RELEASES));
    if (!status && !causes->result->difference.found && retries <= self->retries &&
        releases <= self->releases && retries + releases < self->retries + self->releases) {
        self->retries = retries;
        self->releases = releases;
        self->stale = false;
        return AR_OK;
    }
    for (size_t i = first; i < first + count; i++)
        turn(causes->recording, &self->candidates[i], self->more, true);
    self->stale = true;
    return status;
}

/* Rule 3: tries all missing ones at once, else one by one. */
static enum ar_status meet(struct meeting *self, const char *name, struct ar_error *error)
{
    struct recording *recording = self->causes->recording;
    const uint64_t *left = strcmp(name, RETRIES) == 0 ? &self->retries : &self->releases;
    size_t count = find_candidates(recording, self->more, self->candidates);
    size_t wanted = *left < count ? (size_t)*left : count;
    if (!wanted)
        return AR_OK;
    enum ar_status status = turn_some(self, 0, wanted, error);
    if (!status && *left)
        count = find_candidates(recording, self->more, self->candidates);
    for (size_t i = 0; !status && i < count && *left && *self->replays < REPLAYS_MOST; i++)
        status = turn_some(self, i, 1, error);
    if (!status && self->stale) { /* the last replay is not the accepted one */
        status = self->causes->replay(self->causes->argument, error);
        ++*self->replays;
    }
    return status;
}

static enum ar_status meet_figure(const struct causes *self, const char *name, uint64_t *replays,
                                  struct ar_error *error)
{
    struct recording *recording = self->recording;
    int64_t number = missing(self->result, name);
    struct meeting meeting = {
        .causes = self,
        .more = number > 0 || strcmp(name, RELEASES) == 0,
        .retries = size_of(missing(self->result, RETRIES)),
        .releases = size_of(missing(self->result, RELEASES)),
        .replays = replays,
    };
    if (self->result->difference.found || !number)
        return AR_OK;
    meeting.candidates =
        calloc(recording->group_count + recording->request_count + 1, sizeof *meeting.candidates);
    AR_TRY_MEMORY(meeting.candidates, error, "causes");
    enum ar_status status = meet(&meeting, name, error);
    free(meeting.candidates);
    return status;
}

enum ar_status causes_find(const struct causes *self, struct ar_error *error)
{
    uint64_t replays = 0;
    enum ar_status status = find(self, &replays, error);
    AR_THEN(status, meet_figure(self, RETRIES, &replays, error));
    AR_THEN(status, meet_figure(self, RELEASES, &replays, error));
    self->result->replays = replays;
    return status;
}

/* ---- releases of one step -------------------------------------------------------------------
 *
 * The memory that the policy released in a step is compared with that of the recording, in any
 * order. Adjacent pages that a policy unmaps one by one count as one run. */

void recorded_give_back(struct recorded_device *self, uint64_t address, uint64_t bytes)
{
    if (recorded_diverged(self) || self->step == STEP_START)
        return;
    if (self->given_back_count) {
        struct recorded_span *last = &self->given_back[self->given_back_count - 1];
        const struct recorded_place *place = recorded_place_at(self, address);
        if (place && place->range && last->address + last->bytes == address) {
            last->bytes += bytes;
            return;
        }
    }
    const struct recorded_span span = {address, bytes, 0};
    if (!AR_ARRAY_ADD(self->given_back, self->given_back_count, self->given_back_room, span))
        self->out_of_host_memory = true;
}

/* The number of actions from the cursor on that release memory in this step. */
size_t recorded_run(const struct recorded_device *self)
{
    const struct recording *recording = self->recording;
    size_t end = self->cursor;
    while (end < recording->action_count && recording->actions[end].event < self->until_event &&
           (recording->actions[end].kind == RECORDED_FREED ||
            recording->actions[end].kind == RECORDED_UNMAPPED))
        end++;
    return end - self->cursor;
}

static bool expect(struct recorded_device *self, size_t count)
{
    if (count && !AR_ARRAY_REACH(self->expected, self->expected_room, count - 1)) {
        self->out_of_host_memory = true;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct recorded_action *action = &self->recording->actions[self->cursor + i];
        self->expected[i] = (struct recorded_span){action->address, action->bytes, action->event};
    }
    AR_ARRAY_SORT(self->expected, count, address);
    return true;
}

void recorded_describe(const struct recorded_span *span, const char *verb, char *text, size_t room)
{
    snprintf(text, room, "%s %" PRIu64 " bytes at %" PRIu64, verb, span->bytes, span->address);
}

/* The first span of `these` that is not among `those`; NULL: none. Both are sorted. */
static const struct recorded_span *first_without(const struct recorded_span *these, size_t count,
                                                 const struct recorded_span *those, size_t others)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        while (at < others && those[at].address < these[i].address)
            at++;
        if (at == others || those[at].address != these[i].address ||
            those[at].bytes != these[i].bytes)
            return &these[i];
    }
    return NULL;
}

void recorded_differ_in_spans(struct recorded_device *self, size_t count)
{
    if (self->out_of_host_memory) /* nothing is expected then */
        return;
    const struct recorded_span *mine =
        first_without(self->given_back, self->given_back_count, self->expected, count);
    const struct recorded_span *theirs =
        first_without(self->expected, count, self->given_back, self->given_back_count);
    char did[128] = "releases nothing else", said[128] = "releases nothing else";
    if (mine)
        recorded_describe(mine, "releases", did, sizeof did);
    if (theirs)
        recorded_describe(theirs, "releases", said, sizeof said);
    recorded_device_differs_at(self, theirs ? theirs->event : self->event, did, said);
}

/* Whether every span that the policy released is expected. */
static bool is_part(const struct recorded_device *self, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < self->given_back_count; i++, at++) {
        while (at < count && self->expected[at].address != self->given_back[i].address)
            at++;
        if (at == count || self->expected[at].bytes != self->given_back[i].bytes)
            return false;
    }
    return true;
}

/* Compares the released spans with the recording, and moves the cursor past them if they agree. */
enum recorded_balance recorded_balance(struct recorded_device *self)
{
    size_t count = recorded_run(self);
    if (!expect(self, count))
        return OTHER;
    AR_ARRAY_SORT(self->given_back, self->given_back_count, address);
    if (!is_part(self, count))
        return OTHER;
    if (self->given_back_count < count)
        return LESS;
    self->cursor += count;
    self->result->freed_met += count;
    self->given_back_count = 0;
    return BALANCED;
}

const struct recorded_action *recorded_next_action(const struct recorded_device *self)
{
    const struct recording *recording = self->recording;
    if (self->cursor == recording->action_count ||
        recording->actions[self->cursor].event >= self->until_event)
        return NULL;
    return &recording->actions[self->cursor];
}

void recorded_device_settle(struct recorded_device *self)
{
    if (recorded_diverged(self))
        return;
    if (recorded_balance(self) != BALANCED) {
        recorded_differ_in_spans(self, recorded_run(self));
        return;
    }
    const struct recorded_action *left = recorded_next_action(self);
    if (!left)
        return;
    const struct recorded_span span = {left->address, left->bytes, left->event};
    char said[128];
    recorded_describe(&span,
                      left->kind == RECORDED_MADE     ? "makes a segment of"
                      : left->kind == RECORDED_MAPPED ? "maps"
                                                      : "releases",
                      said, sizeof said);
    recorded_device_differs_at(self, left->event, "asks the device for nothing more here", said);
}
