/* How:
 *
 * 1. A cause that came to light in a replay after it was needed holds from the next one on.
 * 2. After a difference the other explanations of what was recorded for that request are tried, one by
 *    one: that it waited for the completions before it, and each cause of what was given back.
 *    At most four replays a request. If none fits, the first difference is reported.
 * 3. Some causes leave the same events and differ in the number of retries only: whether the
 *    program released its cache right before a request, or the request was retried, after the
 *    limit was met or the device had refused. Where the recorded number is known and another one,
 *    as many requests as are missing are explained the other way: those first that the device
 *    is likeliest to have refused, where the most memory would have been held. */
#include "sim/fidelity/causes.h"

#include <stdlib.h>
#include <string.h>

#define RETRIES      "num_alloc_retries"
#define REPLAYS_MOST 100 /* to meet the number of retries */

/* The request that was being served at an event, or for which memory was given back there. */
static size_t request_of(const struct recording *recording, uint64_t event)
{
    size_t low = 0, high = recording->request_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (recording->requests[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
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

/* Another explanation for what the recording does for the request around an event. False: none
 * is left. */
static bool try_other(struct recording *recording, uint64_t event)
{
    static const enum recorded_cause causes[] = {CAUSE_OWN, CAUSE_RELEASE, CAUSE_REFUSED};
    size_t at = request_of(recording, event);
    if (at == recording->request_count)
        return false;
    struct recorded_request *request = &recording->requests[at];
    struct recorded_group *group = group_of(recording, at, event);
    if (request->completions_event != UINT64_MAX && !request->holds_tried &&
        (group || request->failed)) {
        request->holds = request->holds_tried = true;
        forget_causes(recording, at);
        return true;
    }
    for (size_t i = 0; group && i < sizeof causes / sizeof causes[0]; i++)
        if (!(group->tried & CAUSE_BIT(causes[i]))) {
            group->cause = causes[i];
            group->tried |= CAUSE_BIT(causes[i]);
            request->holds = false;
            return true;
        }
    return false;
}

/* What was found out in a replay after it was needed: for the next one. */
static void prepare_again(struct recording *recording)
{
    recording->again = false;
    for (size_t i = 0; i < recording->group_count; i++) {
        size_t request = recording->groups[i].request;
        if (request != RECORDED_NONE && recording->requests[request].holds)
            forget_causes(recording, request);
    }
}

/* Rules 1 and 2, up to a replay that stands. */
static enum status find(const struct causes *self, uint64_t *replays, struct error *error)
{
    struct fidelity_result *result = self->result;
    struct recording *recording = self->recording;
    struct fidelity_difference first = {0};
    size_t first_request = SIZE_MAX;
    for (;;) {
        enum status status = self->replay(self->argument, error);
        ++*replays;
        if (status)
            return status;
        if (recording->again) {
            prepare_again(recording);
            continue;
        }
        if (!result->difference.found)
            return STATUS_OK;
        uint64_t event = result->difference.event;
        size_t request = request_of(recording, event);
        if (request != first_request) {
            first = result->difference;
            first_request = request;
        }
        if (!try_other(recording, event))
            break;
    }
    result->difference = first;
    return STATUS_OK;
}

/* How many retries the recording has beyond those replayed; 0 where it does not say. */
static int64_t missing_retries(const struct fidelity_result *result)
{
    for (size_t i = 0; i < result->figure_count; i++)
        if (strcmp(result->figures[i].name, RETRIES) == 0)
            return (int64_t)(result->figures[i].recorded - result->figures[i].replayed);
    return 0;
}

/* A group that may be explained in the other way. */
struct candidate {
    struct recorded_group *group;
    uint64_t held_bytes; /* that the request would have led to, without giving back */
    enum recorded_cause before;
};

static int by_held_bytes(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->held_bytes != b->held_bytes)
        return a->held_bytes < b->held_bytes ? 1 : -1;
    return (a->group > b->group) - (a->group < b->group);
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
        if (group->request == RECORDED_NONE || !group->served_anew)
            continue;
        const struct recorded_request *request = &recording->requests[group->request];
        bool waits = request->completions_event != UINT64_MAX && !request->holds;
        bool other = more ? group->cause == CAUSE_RELEASE || (group->cause == CAUSE_OWN && waits)
                          : group->cause == CAUSE_OWN;
        if (request->failed || !other)
            continue;
        candidates[count++] =
            (struct candidate){group, held_bytes + request->request.bytes, group->cause};
    }
    if (count)
        qsort(candidates, count, sizeof *candidates, by_held_bytes);
    return count;
}

/* Explains a group in the other way, or as before. */
static void turn(struct recording *recording, const struct candidate *candidate, bool more,
                 bool back)
{
    struct recorded_group *group = candidate->group;
    if (more && candidate->before == CAUSE_OWN)
        recording->requests[group->request].holds = !back;
    else
        group->cause = back ? candidate->before : more ? CAUSE_REFUSED : CAUSE_RELEASE;
}

static uint64_t size_of(int64_t number)
{
    return number < 0 ? (uint64_t)-number : (uint64_t)number;
}

/* Turns candidates [first, last); turns them back where that makes it no better. */
static enum status turn_some(const struct causes *self, const struct candidate *candidates,
                             size_t count, int64_t *missing, uint64_t *replays, struct error *error)
{
    bool more = *missing > 0;
    for (size_t i = 0; i < count; i++)
        turn(self->recording, &candidates[i], more, false);
    enum status status = self->replay(self->argument, error);
    ++*replays;
    int64_t now = missing_retries(self->result);
    if (!status && !self->result->difference.found && size_of(now) < size_of(*missing)) {
        *missing = now;
        return STATUS_OK;
    }
    for (size_t i = 0; i < count; i++)
        turn(self->recording, &candidates[i], more, true);
    return status;
}

/* Rule 3: all that are missing at once, else one by one. */
static enum status meet_retries(const struct causes *self, struct candidate *candidates,
                                uint64_t *replays, struct error *error)
{
    int64_t missing = missing_retries(self->result);
    bool more = missing > 0;
    size_t count = find_candidates(self->recording, more, candidates);
    size_t wanted = size_of(missing) < count ? (size_t)size_of(missing) : count;
    if (!wanted)
        return STATUS_OK;
    enum status status = turn_some(self, candidates, wanted, &missing, replays, error);
    if (!status && missing && (missing > 0) == more)
        count = find_candidates(self->recording, more, candidates);
    for (size_t i = 0; !status && i < count && missing && (missing > 0) == more; i++) {
        if (*replays >= REPLAYS_MOST)
            break;
        status = turn_some(self, &candidates[i], 1, &missing, replays, error);
    }
    if (!status) { /* the last one tried may not be the one that stands */
        status = self->replay(self->argument, error);
        ++*replays;
    }
    return status;
}

enum status causes_find(const struct causes *self, struct error *error)
{
    uint64_t replays = 0;
    enum status status = find(self, &replays, error);
    if (!status && !self->result->difference.found && missing_retries(self->result)) {
        struct candidate *candidates = calloc(self->recording->group_count + 1, sizeof *candidates);
        if (!candidates)
            return error_set(error, STATUS_HOST_MEMORY, "no host memory to find causes");
        status = meet_retries(self, candidates, &replays, error);
        free(candidates);
    }
    self->result->replays = replays;
    return status;
}
