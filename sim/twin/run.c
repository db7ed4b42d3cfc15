/* A run of a scenario: which ranks are computed, the schedule, and the result. */
#include "sim/twin/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"

#define TURN_EVENTS 64 /* as the turns of sim/tenants */

static const struct twin_action process_actions[] = {
    {"empty_cache", NULL, "the policy releases its cached memory (torch.cuda.empty_cache)", 0, 0},
    {"reset_peaks", NULL, "peaks begin anew (torch.cuda.reset_peak_memory_stats)", 0, 0},
    {"end", NULL, "the program ends, and all of its memory is released", 0, 0},
    {0},
};

enum { PROCESS_EMPTY_CACHE, PROCESS_RESET_PEAKS, PROCESS_END };

const struct twin_action *twin_process_actions(void)
{
    return process_actions;
}

/* ---- checks ---- */

static unsigned card_count(const struct twin_scenario *scenario)
{
    return scenario->cards ? scenario->cards : 1;
}

static uint64_t cards_of(const struct twin_process_setup *setup)
{
    return setup->cards ? setup->cards : 1;
}

static enum ar_status find_process(const struct twin_scenario *scenario,
                                   const struct twin_part_setup *part, size_t *out,
                                   struct ar_error *error)
{
    if (!part->process && scenario->process_count == 1) {
        *out = 0;
        return AR_OK;
    }
    for (*out = 0; *out < scenario->process_count; ++*out)
        if (part->process && strcmp(scenario->processes[*out].name, part->process) == 0)
            return AR_OK;
    if (!part->process)
        return ar_error_set(error, AR_INVALID, "%s %s needs its process; write process = NAME",
                            part->ops->kind, part->name);
    return ar_error_set(error, AR_INVALID,
                        "%s %s: there is no process \"%.60s\"; add a section [process %.60s]",
                        part->ops->kind, part->name, part->process, part->process);
}

static enum ar_status check_processes(const struct twin_scenario *scenario, struct ar_error *error)
{
    unsigned cards = card_count(scenario);
    if (!scenario->process_count)
        return ar_error_set(error, AR_INVALID, "a scenario needs a process; add [process NAME]");
    if (cards > TWIN_CARDS)
        return ar_error_set(error, AR_INVALID, "a machine has at most %d cards", TWIN_CARDS);
    for (size_t i = 0; i < scenario->process_count; i++) {
        const struct twin_process_setup *setup = &scenario->processes[i];
        if (cards < TWIN_CARDS && cards_of(setup) >> cards)
            return ar_error_set(error, AR_INVALID,
                                "process %s is on a card that the machine does not have: it has "
                                "%u; set cards in [machine]",
                                setup->name, cards);
    }
    return AR_OK;
}

static enum ar_status check_names(const struct twin_scenario *scenario, struct ar_error *error)
{
    size_t count = scenario->process_count + scenario->part_count;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            const char *names[2];
            for (size_t k = 0; k < 2; k++) {
                size_t at = k ? j : i;
                names[k] = at < scenario->process_count
                               ? scenario->processes[at].name
                               : scenario->parts[at - scenario->process_count].name;
            }
            if (strcmp(names[0], names[1]) == 0)
                return ar_error_set(error, AR_INVALID,
                                    "two processes or parts have the name \"%s\"; the schedule "
                                    "could not tell them apart",
                                    names[0]);
        }
    return AR_OK;
}

static enum ar_status read_options(const struct twin_part_setup *setup, void *values,
                                   struct ar_error *error)
{
    char owner[96];
    snprintf(owner, sizeof owner, "%s %s", setup->ops->kind, setup->name);
    return ar_options_read(setup->ops->options, &setup->options, owner, values, error);
}

static enum ar_status check_part(const struct twin_scenario *scenario, size_t index,
                                 struct ar_error *error)
{
    const struct twin_part_setup *setup = &scenario->parts[index];
    size_t process;
    void *values = calloc(1, setup->ops->values_bytes + 1);
    if (!values)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for options");
    enum ar_status status = read_options(setup, values, error);
    if (status == AR_OK)
        status = find_process(scenario, setup, &process, error);
    free(values);
    return status;
}

enum ar_status twin_check(const struct twin_scenario *scenario, size_t *part,
                          struct ar_error *error)
{
    struct schedule schedule = {0};
    if (part)
        *part = SIZE_MAX;
    enum ar_status status = check_processes(scenario, error);
    if (status == AR_OK)
        status = check_names(scenario, error);
    for (size_t i = 0; i < scenario->part_count && status == AR_OK; i++) {
        status = check_part(scenario, i, error);
        if (status != AR_OK && part)
            *part = i;
    }
    if (status == AR_OK)
        status = schedule_read(scenario, &schedule, error);
    schedule_close(&schedule);
    return status;
}

/* ---- opening ---- */

static enum ar_status open_device(struct twin_run *run, struct ar_error *error)
{
    const struct twin_scenario *scenario = run->scenario;
    struct ar_device *device;
    enum ar_status status =
        ar_spec_parse(scenario->device ? scenario->device : "sim", &run->device_spec, error);
    if (status != AR_OK)
        return ar_error_prefix(error, status, "machine: card");
    if (ar_spec_value(&run->device_spec, "others"))
        return ar_error_set(error, AR_INVALID,
                            "machine: card: the option others is not for a twin; add a process "
                            "with a [buffer NAME]");
    uint64_t capacity_bytes = 0;
    const char *capacity = ar_spec_value(&run->device_spec, "capacity");
    status = ar_device_open(&run->device_spec, &device, error);
    if (status != AR_OK)
        return ar_error_prefix(error, status, "machine: card");
    snprintf(run->card_name, sizeof run->card_name, "%s", device->props.profile);
    capacity_bytes = capacity ? device->props.capacity_bytes : device->props.total_bytes;
    ar_device_close(device);
    /* What one process cannot use of the whole card is its context. */
    status = session_device_as(&run->device, &run->device_spec, NULL, 0, error);
    if (status == AR_OK)
        status = ar_device_open(&run->device.spec, &device, error);
    if (status != AR_OK)
        return ar_error_prefix(error, status, "machine: card");
    const struct ar_device_props *props = &device->props;
    if (props->total_bytes && props->capacity_bytes < props->total_bytes)
        run->context_bytes = props->total_bytes - props->capacity_bytes;
    ar_device_close(device);
    run->total_bytes = capacity_bytes ? capacity_bytes : UINT64_MAX / 2;
    session_device_end(&run->device);
    run->device = (struct session_device){0};
    return session_device_with(&run->device, &run->device_spec, run->total_bytes, error);
}

/* The bytes of an empty card that can be used. */
static enum ar_status measure_card(struct twin_run *run, struct ar_error *error)
{
    struct ar_device *device;
    uint64_t total_bytes;
    enum ar_status status = ar_device_open(&run->device.spec, &device, error);
    if (status != AR_OK)
        return ar_error_prefix(error, status, "machine: card");
    ar_backing_memory(device->backing, &run->usable_bytes, &total_bytes);
    ar_device_close(device);
    return AR_OK;
}

static enum ar_status create_part(struct twin_process *process, size_t index,
                                  struct twin_part ***end, struct ar_error *error)
{
    const struct twin_part_setup *setup = &process->run->scenario->parts[index];
    size_t part_bytes = (setup->ops->part_bytes + 15) & ~(size_t)15;
    struct twin_part *part = calloc(1, part_bytes + setup->ops->values_bytes);
    if (!part)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a part");
    *part = (struct twin_part){.ops = setup->ops,
                               .name = setup->name,
                               .values = (char *)part + part_bytes,
                               .process = process,
                               .index = (unsigned)index,
                               .rank = process->rank,
                               .ranks = process->ranks,
                               .card = process->card,
                               .cards = card_count(process->run->scenario)};
    **end = part;
    *end = &part->next;
    enum ar_status status = read_options(setup, (char *)part + part_bytes, error);
    if (status == AR_OK && setup->ops->create) {
        status = setup->ops->create(part, error);
        if (status != AR_OK)
            status = ar_error_prefix(error, status, "%s %s", setup->ops->kind, setup->name);
    }
    if (part->depends_on_rank)
        process->run->dependent[process->card] = true;
    return status;
}

static enum ar_status create_parts(struct twin_process *process, struct ar_error *error)
{
    const struct twin_scenario *scenario = process->run->scenario;
    struct twin_part **end = &process->parts;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < scenario->part_count && status == AR_OK; i++) {
        size_t number;
        status = find_process(scenario, &scenario->parts[i], &number, error);
        if (status == AR_OK && number == process->number)
            status = create_part(process, i, &end, error);
    }
    return status;
}

static bool is_on(const struct twin_process_setup *setup, unsigned card)
{
    return cards_of(setup) >> card & 1;
}

/* The number of cards of the process below `card`. */
static uint32_t rank_on(const struct twin_process_setup *setup, unsigned card)
{
    return (uint32_t)__builtin_popcountll(cards_of(setup) & ((UINT64_C(1) << card) - 1));
}

/* Adds a card that is computed, with the processes on it. */
static enum ar_status add_card(struct twin_run *run, unsigned card, struct ar_error *error)
{
    const struct twin_scenario *scenario = run->scenario;
    run->shown_as[card] = (uint32_t)run->card_count;
    run->cards[run->card_count++] = (struct twin_card){.number = card};
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < scenario->process_count && status == AR_OK; i++) {
        const struct twin_process_setup *setup = &scenario->processes[i];
        if (!is_on(setup, card))
            continue;
        struct twin_process *process = &run->processes[run->process_count++];
        *process = (struct twin_process){
            .run = run,
            .setup = setup,
            .number = i,
            .rank = rank_on(setup, card),
            .ranks = (uint32_t)__builtin_popcountll(cards_of(setup)),
            .card = card,
            .times = 1,
            .streams = 1,
        };
        ar_rng_seed(&process->rng, scenario->seed ^ (uint64_t)card << 32 ^ (uint64_t)i << 40);
        status = create_parts(process, error);
    }
    return status;
}

static bool same_processes(const struct twin_scenario *scenario, unsigned a, unsigned b)
{
    for (size_t i = 0; i < scenario->process_count; i++)
        if (is_on(&scenario->processes[i], a) != is_on(&scenario->processes[i], b))
            return false;
    return true;
}

static enum ar_status open_cards(struct twin_run *run, struct ar_error *error)
{
    const struct twin_scenario *scenario = run->scenario;
    unsigned cards = card_count(scenario);
    enum ar_status status = AR_OK;
    for (unsigned card = 0; card < cards && status == AR_OK; card++) {
        unsigned like = 0;
        while (like < card && (!same_processes(scenario, like, card) || run->dependent[like]))
            like++;
        if (like == card) {
            status = add_card(run, card, error);
            continue;
        }
        run->shown_as[card] = run->shown_as[like];
        for (size_t i = 0; i < run->process_count; i++)
            if (run->processes[i].card == run->cards[run->shown_as[like]].number)
                run->processes[i].times++;
    }
    return status;
}

/* The ranks of the result: by process, then by card. */
static enum ar_status list_ranks(struct twin_run *run, struct ar_error *error)
{
    const struct twin_scenario *scenario = run->scenario;
    for (size_t i = 0; i < scenario->process_count; i++)
        for (unsigned card = 0; card < card_count(scenario); card++) {
            const struct twin_process_setup *setup = &scenario->processes[i];
            if (!is_on(setup, card))
                continue;
            const struct twin_process *computed = run->processes;
            while (computed->number != i ||
                   computed->card != run->cards[run->shown_as[card]].number)
                computed++;
            const struct twin_rank rank = {i, rank_on(setup, card), card};
            size_t count = run->rank_count;
            if (!AR_ARRAY_ADD(run->ranks, run->rank_count, run->rank_room, rank) ||
                !AR_ARRAY_ADD(run->rank_process, count, run->rank_process_room, computed))
                return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a twin");
        }
    return AR_OK;
}

static enum ar_status open_run(struct twin_run *run, struct ar_error *error)
{
    const struct twin_scenario *scenario = run->scenario;
    enum ar_status status = twin_check(scenario, NULL, error);
    if (status == AR_OK)
        status = schedule_read(scenario, &run->schedule, error);
    if (status == AR_OK)
        status = open_device(run, error);
    if (status == AR_OK)
        status = measure_card(run, error);
    if (status != AR_OK)
        return status;
    run->processes = calloc(scenario->process_count * card_count(scenario), sizeof *run->processes);
    run->cards = calloc(card_count(scenario), sizeof *run->cards);
    if (!run->processes || !run->cards)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a twin");
    status = open_cards(run, error);
    return status == AR_OK ? list_ranks(run, error) : status;
}

/* ---- the schedule ---- */

static void process_act(struct twin_process *process, unsigned action)
{
    twin_process_begin(process);
    if (process->run->over)
        return;
    struct twin_part base = {.process = process, .name = process->setup->name};
    switch (action) {
    case PROCESS_EMPTY_CACHE:
        twin_trim(&base);
        break;
    case PROCESS_RESET_PEAKS:
        twin_reset_peaks(&base);
        break;
    default:
        twin_process_end(process);
        break;
    }
}

static struct twin_part *part_at(const struct twin_process *process, size_t index)
{
    struct twin_part *part = process->parts;
    while (part && part->index != index)
        part = part->next;
    return part;
}

/* Calls an action of a part once. */
static void part_act(struct twin_part *part, const struct schedule_call *call, uint64_t turn,
                     uint64_t cycle, bool *more)
{
    struct twin_run *run = part->process->run;
    const struct twin_call given = {.action = call->action,
                                    .arguments = call->arguments,
                                    .argument_count = call->argument_count,
                                    .turn = turn,
                                    .turn_events = run->turn_events,
                                    .cycle = cycle};
    run->acting = part;
    twin_process_begin(part->process);
    *more = false;
    struct ar_error error = {""};
    enum ar_status status = run->over ? AR_OK : part->ops->act(part, &given, more, &error);
    if (status == AR_NEGATIVE && !run->over) {
        run->over = true;
        run->outcome = TWIN_REFUSED;
        run->failure.phase = run->phase;
        run->failure.part = part->index;
        run->failure.action = call->text;
        snprintf(run->failure.why, sizeof run->failure.why, "%s", error.text);
    } else if (status != AR_OK && status != AR_NEGATIVE) {
        twin_run_error(run, status, "%s: %s", call->text, error.text);
    }
    if (part->process->replay)
        twin_process_settle(part->process);
    run->acting = NULL;
}

/* One turn of a call on all cards. Returns whether it has more to do. */
static bool call_turn(struct twin_run *run, const struct schedule_call *call, uint64_t turn,
                      uint64_t cycle, uint8_t *going)
{
    bool any = false;
    run->call = call;
    for (size_t i = 0; i < run->process_count && !run->over; i++) {
        struct twin_process *process = &run->processes[i];
        if (turn && !going[i])
            continue;
        bool more = false;
        struct twin_part *part = part_at(process, call->part);
        if (part)
            part_act(part, call, turn, cycle, &more);
        else if (process->number == call->process && !turn)
            process_act(process, call->action);
        going[i] = more;
        any |= more;
    }
    return any && !run->over;
}

/* The calls of a phase in turns, until all are done. */
static void run_calls(struct twin_run *run, const struct schedule_phase *phase, uint64_t cycle)
{
    size_t count = run->process_count;
    uint8_t *going = calloc(phase->call_count * (count + 1), 1);
    if (!going) {
        twin_no_memory(run);
        return;
    }
    bool any = true;
    run->turn_events = phase->call_count > 1 ? TURN_EVENTS : UINT64_MAX;
    for (uint64_t turn = 0; any && !run->over; turn++) {
        any = false;
        for (size_t i = 0; i < phase->call_count && !run->over; i++) {
            uint8_t *mine = &going[i * (count + 1)];
            if (turn && !mine[count])
                continue;
            mine[count] = call_turn(run, &phase->calls[i], turn, cycle, mine);
            any |= mine[count];
        }
    }
    for (size_t i = 0; i < count; i++)
        if (run->processes[i].replay)
            twin_process_settle(&run->processes[i]);
    free(going);
}

/* The lengths of the arrays of the result. */
struct lengths {
    size_t phases, card_states, rank_states, amounts, pins, lines;
};

static struct lengths lengths_of(const struct twin_run *run)
{
    return (struct lengths){run->phase_count,  run->card_state_count, run->rank_state_count,
                            run->amount_count, run->pin_count,        run->line_count};
}

static void cut_back(struct twin_run *run, const struct lengths *lengths)
{
    run->phase_count = lengths->phases;
    run->card_state_count = lengths->card_states;
    run->rank_state_count = lengths->rank_states;
    run->amount_count = lengths->amounts;
    run->pin_count = lengths->pins;
    run->line_count = lengths->lines;
}

/* Whether a phase of the cycle stays in the result (twin_scenario.cycles_kept). */
static bool is_kept(const struct twin_run *run, enum twin_stage stage, uint64_t cycle)
{
    const struct twin_scenario *scenario = run->scenario;
    uint64_t most = scenario->cycles_kept ? scenario->cycles_kept : TWIN_CYCLES_KEPT;
    uint64_t every = (scenario->cycles + most - 1) / most;
    return stage != TWIN_CYCLE || every <= 1 || run->last_cycle || run->over ||
           cycle <= most / 10 || cycle % every == 0;
}

/* Whether the phase that was recorded last had more bytes in use than all before. */
static bool is_highest(struct twin_run *run)
{
    bool highest = false;
    size_t first = run->phases[run->phase_count - 1].first_card_state;
    for (size_t i = first; i < run->card_state_count; i++)
        if (run->card_states[i].peak_bytes > run->highest_bytes) {
            run->highest_bytes = run->card_states[i].peak_bytes;
            highest = true;
        }
    return highest;
}

static void run_phase(struct twin_run *run, enum twin_stage stage, uint64_t cycle, size_t place)
{
    const struct schedule_phase *phase = &run->schedule.lists[stage].phases[place];
    const struct lengths before = lengths_of(run);
    const struct twin_phase entry = {.text = phase->text,
                                     .stage = stage,
                                     .cycle = cycle,
                                     .place = place,
                                     .first_card_state = run->card_state_count,
                                     .first_rank_state = run->rank_state_count};
    run->phase = run->phase_count;
    if (!AR_ARRAY_ADD(run->phases, run->phase_count, run->phase_room, entry)) {
        twin_no_memory(run);
        return;
    }
    run_calls(run, phase, cycle);
    run->call = NULL;
    if (run->status != AR_OK)
        return;
    twin_record_phase(run);
    bool highest = run->status == AR_OK && is_highest(run);
    if (!highest && !is_kept(run, stage, cycle))
        cut_back(run, &before);
}

static void run_list(struct twin_run *run, enum twin_stage stage, uint64_t cycle)
{
    for (size_t i = 0; i < run->schedule.lists[stage].count && !run->over; i++)
        run_phase(run, stage, cycle, i);
}

static void run_all(struct twin_run *run)
{
    uint64_t cycles = run->scenario->cycles ? run->scenario->cycles : 1;
    if (!run->schedule.lists[TWIN_CYCLE].count)
        cycles = 0;
    run->last_cycle = cycles == 0;
    run_list(run, TWIN_START, 0);
    for (uint64_t cycle = 1; cycle <= cycles && !run->over; cycle++) {
        run->last_cycle = cycle == cycles;
        run_list(run, TWIN_CYCLE, cycle);
    }
    run_list(run, TWIN_END, cycles);
}

/* ---- the result ---- */

static void close_run(struct twin_run *run)
{
    for (size_t i = 0; i < run->process_count; i++)
        twin_process_close(&run->processes[i]);
    for (size_t i = 0; i < run->card_count; i++)
        free(run->cards[i].high);
    session_device_end(&run->device);
    ar_spec_close(&run->device_spec);
    free(run->processes);
    free(run->cards);
    run->processes = NULL;
    run->cards = NULL;
    run->process_count = run->card_count = 0;
}

static void free_run(struct twin_run *run)
{
    schedule_close(&run->schedule);
    texts_close(&run->texts);
    free(run->owners);
    free(run->owner_keys);
    free(run->ranks);
    free(run->rank_process);
    free(run->phases);
    free(run->card_states);
    free(run->rank_states);
    free(run->amounts);
    free(run->figures);
    free(run->pins);
    free(run->lines);
    free(run);
}

static void fill_result(struct twin_run *run, struct twin_result *result)
{
    *result = (struct twin_result){
        .outcome = run->outcome,
        .failure = run->failure,
        .total_bytes = run->total_bytes,
        .owners = run->owners,
        .owner_count = run->owner_count,
        .ranks = run->ranks,
        .rank_count = run->rank_count,
        .card_count = card_count(run->scenario),
        .phases = run->phases,
        .phase_count = run->phase_count,
        .card_states = run->card_states,
        .rank_states = run->rank_states,
        .amounts = run->amounts,
        .figures = run->figures,
        .figure_count = run->figure_count,
        .pins = run->pins,
        .pin_count = run->pin_count,
        .lines = run->lines,
        .line_count = run->line_count,
        .events = run->events,
        .storage = run,
    };
}

enum ar_status twin_run(const struct twin_scenario *scenario, struct twin_result *result,
                        struct ar_error *error)
{
    struct ar_error own;
    struct twin_run *run = calloc(1, sizeof *run);
    *result = (struct twin_result){0};
    if (!run)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a twin");
    run->scenario = scenario;
    run->error = error ? error : &own;
    run->failure = (struct twin_failure){.phase = SIZE_MAX, .rank = SIZE_MAX, .part = SIZE_MAX};
    enum ar_status status = open_run(run, run->error);
    if (status == AR_OK) {
        run_all(run);
        status = run->status;
    }
    close_run(run);
    if (status != AR_OK) {
        free_run(run);
        return status;
    }
    fill_result(run, result);
    return AR_OK;
}

void twin_result_close(struct twin_result *result)
{
    if (result->storage)
        free_run(result->storage);
    *result = (struct twin_result){0};
}

size_t twin_phase_find(const struct twin_result *result, enum twin_stage stage, uint64_t cycle,
                       size_t place)
{
    for (size_t i = 0; i < result->phase_count; i++) {
        const struct twin_phase *phase = &result->phases[i];
        if (phase->stage == stage && phase->place == place &&
            (stage != TWIN_CYCLE || phase->cycle == cycle))
            return i;
    }
    return SIZE_MAX;
}

bool twin_drift(const struct twin_result *result, size_t place, unsigned card, uint64_t warm,
                double *bytes)
{
    size_t first = SIZE_MAX, last = SIZE_MAX;
    for (size_t i = 0; i < result->phase_count; i++) {
        const struct twin_phase *phase = &result->phases[i];
        if (phase->stage != TWIN_CYCLE || phase->place != place || phase->cycle <= warm)
            continue;
        if (first == SIZE_MAX)
            first = i;
        last = i;
    }
    if (first == last)
        return false;
    uint64_t cycles = result->phases[last].cycle - result->phases[first].cycle;
    *bytes = ((double)twin_card_at(result, last, card)->used_bytes -
              (double)twin_card_at(result, first, card)->used_bytes) /
             (double)cycles;
    return true;
}
