#include "bench/report/twin_page.h"

#include "allocators/base/size.h"

struct twin_peak twin_answer_peak(const struct twin_result *result)
{
    struct twin_peak peak = {.phase = SIZE_MAX};
    for (size_t phase = 0; phase < result->phase_count; phase++)
        for (unsigned card = 0; card < result->card_count; card++) {
            const struct twin_card_state *state = twin_card_at(result, phase, card);
            bool ended = state->used_bytes > state->peak_bytes;
            uint64_t bytes = ended ? state->used_bytes : state->peak_bytes;
            if (peak.phase == SIZE_MAX || bytes > peak.bytes)
                peak = (struct twin_peak){phase, card, bytes,
                                          ended ? state->amounts : state->peak_amounts};
        }
    return peak;
}

/* Whether `words`, with blanks between, has the word. */
static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t one = strcspn(at, " ");
        if (one == length && !strncmp(at, word, length))
            return true;
        at += one;
    }
    return false;
}

enum twin_effect twin_answer_effect(const struct twin_part_ops *ops, const char *action)
{
    return has_word(ops->releases, action)   ? TWIN_EFFECT_RELEASES
           : has_word(ops->restores, action) ? TWIN_EFFECT_RESTORES
                                             : TWIN_EFFECT_NONE;
}

void twin_answer_calls(const struct twin_scenario *scenario, const char *phase,
                       twin_take_call *take, void *argument)
{
    for (const char *at = phase; at; at = strchr(at, '&'), at = at ? at + 1 : NULL) {
        char name[128], action[128];
        at += strspn(at, " ");
        size_t dot = strcspn(at, ".&"), end = strcspn(at, " &");
        if (at[dot] != '.' || end <= dot)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)dot, at);
        snprintf(action, sizeof action, "%.*s", (int)(end - dot - 1), at + dot + 1);
        size_t part = SIZE_MAX;
        for (size_t i = 0; i < scenario->part_count; i++)
            if (!strcmp(scenario->parts[i].name, name))
                part = i;
        take(argument, part, action);
    }
}

struct sleep_search {
    const struct twin_scenario *scenario;
    size_t part;
};

static void find_sleep(void *argument, size_t part, const char *action)
{
    struct sleep_search *self = argument;
    if (part != SIZE_MAX &&
        twin_answer_effect(self->scenario->parts[part].ops, action) == TWIN_EFFECT_RELEASES)
        self->part = part;
}

bool twin_answer_sleeps(const struct twin_scenario *scenario, const char *phase, size_t *process)
{
    struct sleep_search search = {scenario, SIZE_MAX};
    twin_answer_calls(scenario, phase, find_sleep, &search);
    for (size_t i = 0; search.part != SIZE_MAX && i < scenario->process_count; i++)
        if (!strcmp(scenario->processes[i].name, scenario->parts[search.part].process)) {
            *process = i;
            return true;
        }
    return false;
}

uint64_t twin_answer_residue(const struct twin_result *result, size_t phase, size_t process)
{
    uint64_t most = 0;
    for (size_t rank = 0; rank < result->rank_count; rank++) {
        uint64_t bytes = twin_residue(twin_rank_at(result, phase, rank));
        if (result->ranks[rank].process == process && bytes > most)
            most = bytes;
    }
    return most;
}

bool twin_answer_last_sleep(const struct twin_scenario *scenario, const struct twin_result *result,
                            size_t *phase, size_t *process)
{
    for (int cycles = 1; cycles >= 0; cycles--)
        for (size_t i = result->phase_count; i-- > 0;)
            if ((result->phases[i].stage == TWIN_CYCLE) == (cycles == 1) &&
                twin_answer_sleeps(scenario, result->phases[i].text, process)) {
                *phase = i;
                return true;
            }
    return false;
}

uint64_t twin_answer_cycles(const struct twin_result *result)
{
    uint64_t cycles = 0;
    for (size_t i = 0; i < result->phase_count; i++)
        if (result->phases[i].stage == TWIN_CYCLE)
            cycles = result->phases[i].cycle;
    return cycles;
}

uint64_t twin_answer_amount(const struct twin_result *result, struct twin_amounts amounts,
                            uint32_t owner)
{
    for (size_t i = 0; i < amounts.count; i++)
        if (result->amounts[amounts.first + i].owner == owner)
            return result->amounts[amounts.first + i].bytes;
    return 0;
}

int twin_by_share(const void *left, const void *right)
{
    const struct twin_share *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : strcmp(a->name, b->name);
}

bool twin_answer_figure(const struct twin_result *result, size_t part, const char *name,
                        size_t phase, double *value)
{
    bool found = false;
    for (size_t i = 0; i < result->figure_count; i++) {
        const struct twin_figure *figure = &result->figures[i];
        if ((part == SIZE_MAX || figure->part == part) && !strcmp(figure->name, name) &&
            figure->phase <= phase && figure->rank == 0) {
            *value = figure->value;
            found = true;
        }
    }
    return found;
}

const char *twin_answer_phase(const struct twin_phase *at, char *text, size_t room)
{
    if (at->stage == TWIN_CYCLE)
        snprintf(text, room, "cycle %" PRIu64 ", %s", at->cycle, at->text);
    else
        snprintf(text, room, "%s, %s", at->stage == TWIN_START ? "start" : "end", at->text);
    return text;
}

/* Why a request fails, for a sentence: "the card is full". */
static const char *twin_cause_text(enum replay_cause cause)
{
    static const char *const texts[] = {
        [REPLAY_CAUSE_NONE] = "the allocator refuses it",
        [REPLAY_CAUSE_RETURNED] = "memory came back too late",
        [REPLAY_CAUSE_FRAGMENTATION] = "free memory is in pieces that are too small",
        [REPLAY_CAUSE_CACHE] = "the pool keeps cached memory, which empty_cache releases",
        [REPLAY_CAUSE_PENDING] = "other streams still use freed blocks",
        [REPLAY_CAUSE_TENANT] = "another process holds the rest of the card",
        [REPLAY_CAUSE_OUTSIDE] = "memory outside of the pool holds the rest of the card",
        [REPLAY_CAUSE_CAPACITY] = "the card is too small",
        [REPLAY_CAUSE_PINNED] = "the host's pinned memory is used up",
        [REPLAY_CAUSE_DRIVER] = "the driver fails",
    };
    return texts[cause];
}

void twin_answer_failure(const struct twin_scenario *scenario, const struct twin_result *result,
                         char *text, size_t room)
{
    const struct twin_failure *failure = &result->failure;
    if (result->outcome == TWIN_REFUSED || failure->phase == SIZE_MAX) {
        snprintf(text, room, "%s", failure->why);
        return;
    }
    const char *size = AR_SIZE(failure->bytes);
    if (failure->part == SIZE_MAX) {
        snprintf(text, room, "the context of a process (%s) does not fit", size);
        return;
    }
    const char *owner = failure->owner < result->owner_count ? result->owners[failure->owner].name
                                                             : scenario->parts[failure->part].name;
    snprintf(text, room, "a request of %s%s for %s fails: %s", size,
             failure->pinned ? " of pinned memory" : "", owner, twin_cause_text(failure->cause));
    /* Merged, the rest would serve this request, and little after it. */
    if (failure->cause == REPLAY_CAUSE_FRAGMENTATION &&
        failure->others_bytes > failure->unused_bytes)
        snprintf(text, room,
                 "a request of %s for %s fails: other processes hold %s of the card, and the %s "
                 "that are left are in pieces that are too small",
                 size, owner, AR_SIZE(failure->others_bytes), AR_SIZE(failure->unused_bytes));
}

void twin_answer_summary(const struct twin_scenario *scenario, const struct twin_result *result,
                         struct twin_summary *out)
{
    size_t phase, process;
    struct twin_peak peak = twin_answer_peak(result);
    *out = (struct twin_summary){.outcome = (uint32_t)result->outcome, .peak_bytes = peak.bytes};
    if (result->outcome != TWIN_PASSED) {
        twin_answer_failure(scenario, result, out->why, sizeof out->why);
        peak.phase = result->failure.phase;
    }
    out->phase = peak.phase;
    if (peak.phase < result->phase_count)
        twin_answer_place(result, peak.phase, out->where, sizeof out->where);
    if (twin_answer_last_sleep(scenario, result, &phase, &process)) {
        out->has_residue = 1;
        out->residue_bytes = twin_answer_residue(result, phase, process);
    }
}
