/* The opening of a run: checks of the scenario, the card, and which ranks are computed. */

#include "allocators/base/array.h"
#include "sim/sim_device/profile.h"
#include "sim/twin/rules/context.h"
#include "sim/twin/run.h"

/* ---- checks ---------------------------------------------------------------------------------- */

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
        return ar_invalid(error, "%s %s needs its process; write process = NAME", part->ops->kind,
                          part->name);
    return ar_invalid(error, "%s %s: there is no process \"%.60s\"; add a section [process %.60s]",
                      part->ops->kind, part->name, part->process, part->process);
}

static enum ar_status check_processes(const struct twin_scenario *scenario, struct ar_error *error)
{
    unsigned cards = twin_card_count(scenario);
    if (!scenario->process_count)
        return ar_invalid(error, "a scenario needs a process; add [process NAME]");
    if (cards > TWIN_CARDS)
        return ar_invalid(error, "a machine has at most %d cards", TWIN_CARDS);
    for (size_t i = 0; i < scenario->process_count; i++) {
        const struct twin_process_setup *setup = &scenario->processes[i];
        if (cards < TWIN_CARDS && cards_of(setup) >> cards)
            return ar_invalid(error,
                              "process %s is on a card that the machine does not have: it has %u; "
                              "set cards in [machine]",
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
                return ar_invalid(error,
                                  "two processes or parts have the name \"%s\"; the schedule could "
                                  "not tell them apart",
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
    AR_FREED void *values = calloc(1, setup->ops->values_bytes + 1);
    AR_TRY_MEMORY(values, error, "options");
    AR_TRY(read_options(setup, values, error));
    return find_process(scenario, setup, &process, error);
}

enum ar_status twin_check(const struct twin_scenario *scenario, struct twin_fault *fault,
                          struct ar_error *error)
{
    AR_CLOSED(schedule_close) struct schedule schedule = {0};
    if (fault)
        *fault = (struct twin_fault){SIZE_MAX, SIZE_MAX, TWIN_START};
    AR_TRY(check_processes(scenario, error));
    AR_TRY(check_names(scenario, error));
    for (size_t i = 0; i < scenario->part_count; i++) {
        enum ar_status status = check_part(scenario, i, error);
        if (status && fault)
            fault->part = i;
        AR_TRY(status);
    }
    return schedule_read(scenario, &schedule, fault, error);
}

/* ---- opening --------------------------------------------------------------------------------- */

#define UNLIMITED_BYTES (UINT64_C(1) << 60) /* of a card without a size */

static enum ar_status open_device(struct twin_run *run, struct ar_error *error)
{
    const char *device = run->scenario->device ? run->scenario->device : "sim";
    char card[80];
    struct ar_device_props props;
    if (sim_profile_builtin(device)) { /* a card's name alone */
        snprintf(card, sizeof card, "sim:profile=%s", device);
        device = card;
    }
    AR_TRY(
        ar_error_prefix(error, ar_spec_parse(device, &run->device_spec, error), "machine: card"));
    if (ar_spec_value(&run->device_spec, "others"))
        return ar_invalid(error, "machine: card: the option others is not for a twin; add a "
                                 "process with a [buffer NAME]");
    const char *capacity = ar_spec_value(&run->device_spec, "capacity");
    AR_TRY(ar_error_prefix(error, session_device_props(&run->device_spec, &props, error),
                           "machine: card"));
    snprintf(run->card_name, sizeof run->card_name, "%s", props.profile);
    uint64_t capacity_bytes = capacity ? props.capacity_bytes : props.total_bytes;
    /* What one process cannot use of the whole card is its context, if the profile is of a card
     * that was measured: it has costs of its own. Else the context has a rule. */
    enum ar_status status = session_device_as(&run->device, &run->device_spec, NULL, 0, error);
    AR_THEN(status, session_device_props(&run->device.spec, &props, error));
    AR_TRY(ar_error_prefix(error, status, "machine: card"));
    if (props.total_bytes && props.capacity_bytes < props.total_bytes)
        run->context_bytes = props.total_bytes - props.capacity_bytes;
    bool measured = !props.costs_of[0];
    if (run->context_bytes && !measured && context_of_card(run->card_name))
        run->context_bytes = context_of_card(run->card_name);
    session_device_end(&run->device);
    run->device = (struct session_device){0};
    bool limited = capacity_bytes <= UNLIMITED_BYTES;
    run->total_bytes = limited ? capacity_bytes : UNLIMITED_BYTES;
    AR_TRY(session_device_as(&run->device, &run->device_spec, NULL, limited ? capacity_bytes : 0,
                             error));
    session_device_as_driver(&run->device);
    return AR_OK;
}

/* The bytes of an empty card that can be used. */
static enum ar_status measure_card(struct twin_run *run, struct ar_error *error)
{
    struct ar_device *device;
    uint64_t total_bytes;
    AR_TRY(
        ar_error_prefix(error, ar_device_open(&run->device.spec, &device, error), "machine: card"));
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
    AR_TRY_MEMORY(part, error, "a part");
    *part = (struct twin_part){.ops = setup->ops,
                               .name = setup->name,
                               .values = (char *)part + part_bytes,
                               .process = process,
                               .index = (unsigned)index,
                               .rank = process->rank,
                               .ranks = process->ranks,
                               .card = process->card,
                               .cards = twin_card_count(process->run->scenario)};
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
    for (size_t i = 0; i < scenario->part_count; i++) {
        size_t number;
        AR_TRY(find_process(scenario, &scenario->parts[i], &number, error));
        if (number == process->number)
            AR_TRY(create_part(process, i, &end, error));
    }
    return AR_OK;
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
    for (size_t i = 0; i < scenario->process_count; i++) {
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
        AR_TRY(create_parts(process, error));
    }
    return AR_OK;
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
    unsigned cards = twin_card_count(scenario);
    for (unsigned card = 0; card < cards; card++) {
        unsigned like = 0;
        while (like < card && (!same_processes(scenario, like, card) || run->dependent[like]))
            like++;
        if (like == card) {
            AR_TRY(add_card(run, card, error));
            continue;
        }
        run->shown_as[card] = run->shown_as[like];
        for (size_t i = 0; i < run->process_count; i++)
            if (run->processes[i].card == run->cards[run->shown_as[like]].number)
                run->processes[i].times++;
    }
    return AR_OK;
}

/* The ranks of the result: by process, then by card. */
static enum ar_status list_ranks(struct twin_run *run, struct ar_error *error)
{
    const struct twin_scenario *scenario = run->scenario;
    for (size_t i = 0; i < scenario->process_count; i++)
        for (unsigned card = 0; card < twin_card_count(scenario); card++) {
            const struct twin_process_setup *setup = &scenario->processes[i];
            if (!is_on(setup, card))
                continue;
            const struct twin_process *computed = run->processes;
            while (computed->number != i ||
                   computed->card != run->cards[run->shown_as[card]].number)
                computed++;
            const struct twin_rank rank = {i, rank_on(setup, card), card};
            size_t count = run->rank_count;
            AR_TRY_MEMORY(
                AR_ARRAY_ADD(run->ranks, run->rank_count, run->rank_room, rank) &&
                    AR_ARRAY_ADD(run->rank_process, count, run->rank_process_room, computed),
                error, "a twin");
        }
    return AR_OK;
}

enum ar_status twin_run_open(struct twin_run *run, struct ar_error *error)
{
    const struct twin_scenario *scenario = run->scenario;
    AR_TRY(twin_check(scenario, NULL, error));
    AR_TRY(schedule_read(scenario, &run->schedule, NULL, error));
    AR_TRY(open_device(run, error));
    AR_TRY(measure_card(run, error));
    run->processes =
        calloc(scenario->process_count * twin_card_count(scenario), sizeof *run->processes);
    run->cards = calloc(twin_card_count(scenario), sizeof *run->cards);
    AR_TRY_MEMORY(run->processes && run->cards, error, "a twin");
    AR_TRY(open_cards(run, error));
    return list_ranks(run, error);
}
