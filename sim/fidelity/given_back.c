/* What the policy gave back in a step, held against what the recording gives back there, in any
 * order. Runs of pages that a policy unmaps one by one count as the run that they are. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocators/base/array.h"
#include "sim/fidelity/recorded_device.h"

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
    struct recorded_span *grown = ar_array_grow(self->given_back, self->given_back_count,
                                                &self->given_back_room, sizeof *grown);
    if (!grown) {
        self->out_of_host_memory = true;
        return;
    }
    self->given_back = grown;
    self->given_back[self->given_back_count++] = (struct recorded_span){address, bytes, 0};
}

static int by_address(const void *left, const void *right)
{
    const struct recorded_span *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

/* How many actions from the cursor on give memory back in this step. */
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
    if (count > self->expected_room) {
        struct recorded_span *grown = realloc(self->expected, count * sizeof *grown);
        if (!grown) {
            self->out_of_host_memory = true;
            return false;
        }
        self->expected = grown;
        self->expected_room = count;
    }
    for (size_t i = 0; i < count; i++) {
        const struct recorded_action *action = &self->recording->actions[self->cursor + i];
        self->expected[i] = (struct recorded_span){action->address, action->bytes, action->event};
    }
    if (count)
        qsort(self->expected, count, sizeof *self->expected, by_address);
    return true;
}

void recorded_describe(const struct recorded_span *span, const char *verb, char *text, size_t room)
{
    snprintf(text, room, "%s %" PRIu64 " bytes at %" PRIu64, verb, span->bytes, span->address);
}

/* The first of `these` that is not among `those`; NULL: none. Both are sorted. */
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
    const struct recorded_span *mine =
        first_without(self->given_back, self->given_back_count, self->expected, count);
    const struct recorded_span *theirs =
        first_without(self->expected, count, self->given_back, self->given_back_count);
    char did[128] = "gives nothing else back", said[128] = "gives nothing else back";
    if (mine)
        recorded_describe(mine, "gives back", did, sizeof did);
    if (theirs)
        recorded_describe(theirs, "gives back", said, sizeof said);
    recorded_device_differs_at(self, theirs ? theirs->event : self->event, did, said);
}

/* Is every span that the policy gave back among those expected? */
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

/* Holds what was given back against the recording, and goes past it where they are the same. */
enum recorded_balance recorded_balance(struct recorded_device *self)
{
    size_t count = recorded_run(self);
    if (!expect(self, count))
        return OTHER;
    if (self->given_back_count)
        qsort(self->given_back, self->given_back_count, sizeof *self->given_back, by_address);
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
                                                      : "gives back",
                      said, sizeof said);
    recorded_device_differs_at(self, left->event, "asks the device for nothing more here", said);
}
