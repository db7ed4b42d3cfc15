/* A run of a scenario: the schedule and the result. */
#include "sim/twin/run.h"

#include "allocators/base/array.h"

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

/* ---- the schedule ---------------------------------------------------------------------------- */

static void process_act(struct twin_process *process, unsigned action)
{
    twin_process_begin(process);
    if (process->run->over)
        return;
    if (process->ended) {
        (void)twin_run_error(process->run, AR_INVALID, "%s: process %s has ended",
                             process->run->call->text, process->setup->name);
        return;
    }
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
        (void)twin_run_error(run, status, "%s: %s", call->text, error.text);
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
    /* For each call: whether it goes on in each process, and in any. */
    uint8_t *going = calloc(phase->call_count * (count + 1), 1);
    if (!going) {
        (void)twin_no_memory(run);
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

struct twin_phase twin_phase_of(const struct twin_run *run, uint64_t number)
{
    const struct schedule_list *lists = run->schedule.lists;
    const uint64_t starts = lists[TWIN_START].count, length = lists[TWIN_CYCLE].count;
    struct twin_phase phase = {.stage = TWIN_START, .place = number};
    if (number >= starts + run->cycles * length)
        phase = (struct twin_phase){.stage = TWIN_END,
                                    .cycle = run->cycles,
                                    .place = number - starts - run->cycles * length};
    else if (number >= starts)
        phase = (struct twin_phase){.stage = TWIN_CYCLE,
                                    .cycle = 1 + (number - starts) / length,
                                    .place = (number - starts) % length};
    phase.text = lists[phase.stage].phases[phase.place].text;
    return phase;
}

static void run_phase(struct twin_run *run)
{
    const struct lengths before = lengths_of(run);
    struct twin_phase entry = twin_phase_of(run, run->number);
    entry.first_card_state = run->card_state_count;
    entry.first_rank_state = run->rank_state_count;
    run->phase = run->phase_count;
    run->last_cycle = entry.cycle == run->cycles;
    if (!AR_ARRAY_ADD(run->phases, run->phase_count, run->phase_room, entry)) {
        (void)twin_no_memory(run);
        return;
    }
    run_calls(run, &run->schedule.lists[entry.stage].phases[entry.place], entry.cycle);
    run->call = NULL;
    if (run->status != AR_OK)
        return;
    twin_record_phase(run);
    bool highest = run->status == AR_OK && is_highest(run);
    if (!highest && !is_kept(run, entry.stage, entry.cycle))
        cut_back(run, &before);
}

static void run_all(struct twin_run *run)
{
    const struct schedule_list *lists = run->schedule.lists;
    if (lists[TWIN_CYCLE].count)
        run->cycles = run->scenario->cycles ? run->scenario->cycles : 1;
    uint64_t count =
        lists[TWIN_START].count + run->cycles * lists[TWIN_CYCLE].count + lists[TWIN_END].count;
    for (run->number = 0; run->number < count && !run->over; run->number++)
        run_phase(run);
}

/* ---- the result ------------------------------------------------------------------------------ */

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
        .card_count = twin_card_count(run->scenario),
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
    struct ar_error own = {""};
    struct twin_run *run = calloc(1, sizeof *run);
    *result = (struct twin_result){.fault = {SIZE_MAX, SIZE_MAX, TWIN_START}};
    AR_TRY_MEMORY(run, error, "a twin");
    run->scenario = scenario;
    run->error = error ? error : &own;
    run->failure = (struct twin_failure){.phase = SIZE_MAX, .rank = SIZE_MAX, .part = SIZE_MAX};
    enum ar_status status = twin_run_open(run, run->error);
    if (status == AR_OK)
        run_all(run);
    close_run(run); /* finds more faults */
    AR_THEN(status, run->status);
    if (status != AR_OK) {
        if (run->phase_count) {
            const struct twin_phase *last = &run->phases[run->phase_count - 1];
            result->fault.stage = last->stage;
            result->fault.place = last->place;
        }
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
