#include "bench/suite/twin_compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/size.h"

/* Drift is in pages of the driver: half of one is no difference. */
#define DRIFT_LEAST ((double)AR_MIB)

struct comparing {
    const struct scenario *text;
    const struct twin_setup *setup;
    const struct twin_result *result;
};

/* Where a figure is taken: a phase, and the process and card that it is about. */
struct place {
    size_t phase, part; /* part SIZE_MAX: any */
    size_t rank;        /* of the process; in result->ranks */
};

static bool is_failed_phase(const struct twin_result *result, size_t phase)
{
    return result->outcome != TWIN_PASSED && result->failure.phase == phase;
}

/* The phase of a reported figure; SIZE_MAX: it did not run. */
static size_t find_phase(const struct comparing *self, const struct scenario_reported *one)
{
    const struct twin_result *result = self->result;
    uint64_t cycle = one->cycle == SCENARIO_CYCLE_LAST ? twin_answer_cycles(result) : one->cycle;
    if (!one->step)
        return result->phase_count ? result->phase_count - 1 : SIZE_MAX;
    for (size_t i = 0; i < result->phase_count; i++) {
        const struct twin_phase *phase = &result->phases[i];
        bool there = cycle ? phase->stage == TWIN_CYCLE && phase->cycle == cycle : true;
        if (there && !strcmp(phase->text, one->step))
            return i;
    }
    return SIZE_MAX;
}

static void take_process(void *argument, size_t part, const char *action)
{
    size_t *first = argument;
    (void)action;
    if (*first == SIZE_MAX)
        *first = part;
}

static struct place find_place(const struct comparing *self, size_t phase)
{
    struct place place = {phase, SIZE_MAX, 0};
    const char *text = self->result->phases[phase].text;
    const struct twin_scenario *scenario = &self->setup->scenario;
    size_t process = 0, length = strcspn(text, ".");
    twin_answer_calls(scenario, text, take_process, &place.part);
    for (size_t i = 0; i < scenario->process_count; i++) {
        const char *name = scenario->processes[i].name;
        bool named = strlen(name) == length && !strncmp(name, text, length);
        if (named || (place.part != SIZE_MAX && !strcmp(scenario->parts[place.part].process, name)))
            process = i;
    }
    for (size_t i = self->result->rank_count; i-- > 0;)
        if (self->result->ranks[i].process == process)
            place.rank = i;
    return place;
}

/* The sum of owners: with that name, with names that begin with NAME/, or of graphs. */
static double owners(const struct comparing *self, const struct place *place, const char *name)
{
    const struct twin_result *result = self->result;
    const struct twin_amounts amounts =
        twin_card_at(result, place->phase, result->ranks[place->rank].card)->amounts;
    size_t length = strlen(name);
    double bytes = 0;
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[amounts.first + i];
        const char *owner = result->owners[amount->owner].name;
        if (!strncmp(owner, name, length) && (!owner[length] || owner[length] == '/'))
            bytes += (double)amount->bytes;
    }
    return bytes;
}

/* The sum of owners of parts of a kind, or whose purpose has the word. */
static double owners_of(const struct comparing *self, const struct place *place, const char *kind,
                        const char *word)
{
    const struct twin_result *result = self->result;
    const struct twin_amounts amounts =
        twin_card_at(result, place->phase, result->ranks[place->rank].card)->amounts;
    double bytes = 0;
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[amounts.first + i];
        const struct twin_owner *owner = &result->owners[amount->owner];
        bool is_kind = owner->part < self->setup->scenario.part_count &&
                       !strcmp(self->setup->parts[owner->part].ops->kind, kind);
        const char *purpose = strchr(owner->name, '/');
        if (is_kind || (purpose && strstr(purpose, word)))
            bytes += (double)amount->bytes;
    }
    return bytes;
}

static bool find_drift(const struct comparing *self, const char *step, double *bytes)
{
    const struct twin_result *result = self->result;
    for (size_t i = 0; i < result->phase_count; i++)
        if (result->phases[i].stage == TWIN_CYCLE && !strcmp(result->phases[i].text, step)) {
            struct place place = find_place(self, i);
            return twin_drift(result, result->phases[i].place, result->ranks[place.rank].card,
                              TWIN_WARM_CYCLES, bytes);
        }
    return false;
}

/* The peak within the phase of the place, or of all phases if there is no step. */
static double find_peak(const struct comparing *self, const struct scenario_reported *one,
                        const struct place *place)
{
    const struct twin_result *result = self->result;
    uint64_t most = 0;
    for (size_t phase = one->step ? place->phase : 0; phase <= place->phase; phase++) {
        const struct twin_rank_state *rank = twin_rank_at(result, phase, place->rank);
        uint64_t bytes =
            one->quantity == SCENARIO_PEAK_RESERVED ? rank->peak_reserved_bytes
            : one->quantity == SCENARIO_PEAK_ALLOCATED
                ? rank->peak_allocated_bytes
                : twin_card_at(result, phase, result->ranks[place->rank].card)->peak_bytes;
        most = bytes > most ? bytes : most;
    }
    return (double)most;
}

/* The twin's value. False: it has none. */
static bool find_value(const struct comparing *self, const struct scenario_reported *one,
                       double *value)
{
    const struct twin_result *result = self->result;
    if (one->quantity == SCENARIO_DRIFT)
        return find_drift(self, one->step, value);
    const size_t phase = find_phase(self, one);
    if (one->quantity == SCENARIO_OUTCOME) {
        bool here = !one->step || is_failed_phase(result, phase);
        *value = !here                             ? SCENARIO_FITS
                 : result->outcome == TWIN_PASSED  ? SCENARIO_FITS
                 : result->outcome == TWIN_REFUSED ? SCENARIO_REFUSED
                                                   : SCENARIO_OUT_OF_MEMORY;
        return phase != SIZE_MAX;
    }
    if (phase == SIZE_MAX || !result->rank_count)
        return false;
    const struct place place = find_place(self, phase);
    const struct twin_rank_state *rank = twin_rank_at(result, phase, place.rank);
    const struct twin_card_state *card =
        twin_card_at(result, phase, result->ranks[place.rank].card);
    const char *figure = scenario_quantity_name(one->quantity);
    switch (one->quantity) {
    case SCENARIO_CARD_USED:
        *value = (double)card->used_bytes;
        return true;
    case SCENARIO_CARD_FREE:
        *value = (double)card->free_bytes;
        return true;
    case SCENARIO_PROCESS_USED:
        *value = (double)(rank->physical_bytes + rank->outside_bytes);
        return true;
    case SCENARIO_RESERVED:
        *value = (double)rank->reserved_bytes;
        return true;
    case SCENARIO_ALLOCATED:
        *value = (double)rank->allocated_bytes;
        return true;
    case SCENARIO_RESIDUE:
        *value = (double)twin_residue(rank);
        return true;
    case SCENARIO_PINNED:
        *value = (double)rank->pinned_bytes;
        return true;
    case SCENARIO_PEAK_USED:
    case SCENARIO_PEAK_RESERVED:
    case SCENARIO_PEAK_ALLOCATED:
        *value = find_peak(self, one, &place);
        return true;
    case SCENARIO_OWNER:
        *value = owners(self, &place, one->name);
        return true;
    case SCENARIO_GRAPHS:
        *value = owners_of(self, &place, "graphs", "graph");
        return true;
    case SCENARIO_NCCL:
        *value = owners_of(self, &place, "nccl", "NCCL");
        return true;
    default:
        if (one->quantity == SCENARIO_FIGURE)
            figure = one->name;
        return twin_answer_figure(result, place.part, figure, phase, value) ||
               twin_answer_figure(result, SIZE_MAX, figure, phase, value);
    }
}

static void print_value(enum scenario_quantity quantity, double value, char *text, size_t room)
{
    switch (scenario_quantity_kind(quantity)) {
    case SCENARIO_VALUE_OUTCOME:
        snprintf(text, room, "%s", scenario_outcome_name((int)value));
        return;
    case SCENARIO_VALUE_COUNT:
        snprintf(text, room, "%.0f", value);
        return;
    case SCENARIO_VALUE_NUMBER:
        if (fabs(value) < (double)AR_MIB) {
            snprintf(text, room, "%.6g", value);
            return;
        }
        break;
    default:
        break;
    }
    text[0] = '-';
    ar_size_print((uint64_t)fabs(value), text + (value < 0), room - 1);
}

void twin_compare(const struct scenario *text, const struct twin_setup *setup,
                  const struct twin_result *result, struct twin_page_reported *out)
{
    const struct comparing self = {text, setup, result};
    for (size_t i = 0; i < text->reported_count; i++) {
        const struct scenario_reported *one = &text->reported[i];
        struct twin_page_reported *row = &out[i];
        double value = 0, room = text->tolerance * fabs(one->value);
        *row = (struct twin_page_reported){
            .text = one->text, .given = one->given, .value = one->value};
        if (one->quantity == SCENARIO_DRIFT && room < DRIFT_LEAST)
            room = DRIFT_LEAST;
        if (one->quantity == SCENARIO_OUTCOME)
            room = 0;
        row->known = find_value(&self, one, &value);
        row->our_value = value;
        row->agrees = row->known && fabs(value - one->value) <= room;
        row->has_part = row->known && one->quantity != SCENARIO_OUTCOME && one->value != 0;
        row->part = row->has_part ? value / one->value - 1 : 0;
        print_value(one->quantity, value, row->ours, sizeof row->ours);
    }
}

enum ar_status twin_compare_check(const struct scenario *text, struct ar_error *error)
{
    for (size_t i = 0; i < text->reported_count; i++) {
        const struct scenario_reported *one = &text->reported[i];
        bool found = !one->step, in_cycle = one->cycle || one->quantity == SCENARIO_DRIFT;
        for (int list = 0; list < SCENARIO_LISTS && !found; list++)
            for (size_t k = 0; k < text->lists[list].count && !found; k++)
                found = (!in_cycle || list == SCENARIO_CYCLE) &&
                        !strcmp(text->lists[list].at[k].text, one->step);
        if (!found)
            return ar_error_set(error, AR_FORMAT,
                                "%s:%u: \"%.80s\" is no step of the %s; write it as it is there",
                                text->path, one->line, one->step, in_cycle ? "cycle" : "schedule");
        if (one->cycle != SCENARIO_CYCLE_LAST && one->cycle > text->cycles)
            return ar_error_set(error, AR_FORMAT,
                                "%s:%u: the schedule has %" PRIu64 " cycle%s, not %" PRIu64
                                "; write cycles = %" PRIu64 " in [schedule]",
                                text->path, one->line, text->cycles, text->cycles == 1 ? "" : "s",
                                one->cycle, one->cycle);
    }
    return AR_OK;
}
