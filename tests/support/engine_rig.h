/* Runs scenarios with one engine "e" in a process "p", and reads their results. */
#pragma once

#include <math.h>

#include "sim/twin/twin.h"
#include "tests/support/test.h"

#define GIB ((double)AR_GIB)

static const struct twin_process_setup processes[] = {
    {.name = "p", .policy = "torch", .context_bytes = 450 * AR_MIB},
    {.name = "q", .policy = "torch", .context_bytes = 450 * AR_MIB},
};

/* "key=value" texts, as in a scenario. */
struct pairs {
    char texts[24][200];
    struct ar_spec_pair pairs[24];
    size_t count;
};

static inline struct ar_spec_link link_of(struct pairs *self, const char *text)
{
    self->count = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " ");
        if (length) {
            char *copy = self->texts[self->count];
            snprintf(copy, sizeof self->texts[0], "%.*s", (int)length, at);
            char *value = strchr(copy, '=');
            assert_non_null(value);
            *value = '\0';
            for (char *c = value + 1; *c; c++)
                *c = *c == '+' ? ' ' : *c;
            self->pairs[self->count++] = (struct ar_spec_pair){copy, value + 1, false};
        }
        at += length + strspn(at + length, " ");
    }
    return (struct ar_spec_link){.pairs = self->pairs, .pair_count = self->count};
}

struct run {
    struct pairs pairs;
    struct twin_part_setup parts[3];
    struct twin_process_setup on_ranks[2]; /* `processes` on a card for each rank */
    struct twin_scenario scenario;         /* what the case wants in it */
    struct twin_scenario whole;
    struct twin_result result;
    struct ar_error error;
};

static inline void close_run(struct run *self)
{
    twin_result_close(&self->result);
}

/* Closes the result of the run before. */
static inline enum ar_status run(struct run *self, const char *device, const char *options,
                                 const char *schedule)
{
    self->parts[0] = (struct twin_part_setup){.name = "e",
                                              .ops = twin_part_find("engine"),
                                              .process = "p",
                                              .options = link_of(&self->pairs, options)};
    struct twin_scenario *scenario = &self->whole;
    close_run(self);
    *scenario = self->scenario;
    scenario->device = device;
    const char *parallel = strstr(options, "tensor_parallel=");
    unsigned ranks = parallel ? (unsigned)atoi(strchr(parallel, '=') + 1) : 1;
    for (size_t i = 0; i < 2; i++) {
        self->on_ranks[i] = processes[i];
        self->on_ranks[i].cards = (UINT64_C(1) << ranks) - 1;
    }
    scenario->cards = scenario->cards ? scenario->cards : ranks;
    scenario->processes = scenario->processes ? scenario->processes : self->on_ranks;
    scenario->process_count = scenario->process_count ? scenario->process_count : 1;
    scenario->parts = self->parts;
    scenario->part_count = scenario->part_count ? scenario->part_count : 1;
    scenario->start = schedule;
    self->error.text[0] = '\0';
    return twin_run(scenario, &self->result, &self->error);
}

static inline void pass(struct run *self, const char *device, const char *options,
                        const char *schedule)
{
    if (run(self, device, options, schedule) != AR_OK)
        fail_msg("%s: %s", options, self->error.text);
    if (self->result.outcome != TWIN_PASSED)
        fail_msg("%s: %s", options, self->result.failure.why);
}

static inline double figure(const struct run *self, const char *name)
{
    double value = NAN;
    for (size_t i = 0; i < self->result.figure_count; i++)
        if (strcmp(self->result.figures[i].name, name) == 0)
            value = self->result.figures[i].value;
    return value;
}

static inline uint64_t owner_on(const struct run *self, size_t phase, unsigned card,
                                const char *name)
{
    const struct twin_card_state *state = twin_card_at(&self->result, phase, card);
    for (size_t i = 0; i < state->amounts.count; i++) {
        const struct twin_amount *amount = &self->result.amounts[state->amounts.first + i];
        if (strcmp(self->result.owners[amount->owner].name, name) == 0)
            return amount->bytes;
    }
    return 0;
}

static inline uint64_t owner(const struct run *self, size_t phase, const char *name)
{
    return owner_on(self, phase, 0, name);
}
