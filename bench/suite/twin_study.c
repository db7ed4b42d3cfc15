/* What `twin` does with a scenario (twin_study.h). The largest safe cache is searched in steps:
 * hundredths of a fraction, 1/200 of the card's bytes, or hundredths of the present count. From
 * the present value upwards if it passes, else downwards in coarse steps to one that passes;
 * then by halves. A run that passes the whole schedule is safe. It is assumed that what passes
 * with a value passes with less, down to where the engine refuses to start. */
#include "bench/suite/twin_study.h"

#include <math.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "workloads/io/fields.h"

#define COARSE 10 /* steps of the search at a time on the way down */

#define FIRSTS      3                     /* changes to which a second one is added */
#define WORTH_BYTES ((double)AR_MIB / 20) /* what the page shows as more than nothing */

/* ---- reported figures ------------------------------------------------------------------------ */

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

static void take_process(void *argument, size_t part, const char *action AR_UNUSED)
{
    size_t *first = argument;
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
        AR_RAISE(most, bytes);
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
        bool here = !one->step || phase == result->failure.phase;
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

/* `out` has room for all of text->reported. */
static void twin_compare(const struct scenario *text, const struct twin_setup *setup,
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

/* ---- what is unknown ------------------------------------------------------------------------ */

/* The scenario with the values of a combination; `shown` says which they are. */
static enum ar_status set_unknown(struct scenario *edited, size_t run, char *shown, size_t room,
                                  struct ar_error *error)
{
    unsigned line = 0;
    shown[0] = '\0';
    for (size_t i = 0; i < edited->unknown_count; i++) {
        const struct scenario_unknown *one = &edited->unknown[i];
        const char *value = one->values[run % one->count];
        enum ar_status status =
            scenario_set(edited, one->section, one->key, value, one->line, error);
        if (status)
            return ar_error_prefix(error, AR_FORMAT, "%s:%u", edited->path, one->line);
        if (!strcmp(one->section, "schedule") && !strcmp(one->key, "cycles"))
            line = one->line;
        text_add(shown, room, "%s%s.%s=%s", i ? " " : "", one->section, one->key, value);
        run /= one->count;
    }
    return ar_error_prefix(error, scenario_check_cycles(edited, error), "%s:%u", edited->path,
                           line);
}

static void widen(const struct scenario *text, const struct twin_page_reported *run,
                  const char *shown, size_t i, struct twin_page_reported *row)
{
    const double room =
        text->reported[i].quantity == SCENARIO_OUTCOME ? 0 : text->tolerance * fabs(row->value);
    if (!run->known)
        return;
    if (!row->has_range || run->our_value < row->least) {
        row->least = run->our_value;
        snprintf(row->least_text, sizeof row->least_text, "%s", run->ours);
    }
    if (!row->has_range || run->our_value > row->most) {
        row->most = run->our_value;
        snprintf(row->most_text, sizeof row->most_text, "%s", run->ours);
    }
    row->has_range = true;
    row->in_range = row->least - room <= row->value && row->value <= row->most + room;
    if (fabs(run->our_value - row->value) < fabs(row->nearest_value - row->value)) {
        row->nearest_value = run->our_value;
        snprintf(row->nearest, sizeof row->nearest, "%s", shown);
    }
}

static void widen_peak(struct twin_study *self, const struct twin_result *result)
{
    const uint64_t bytes = twin_answer_peak(result).bytes;
    if (result->outcome != TWIN_PASSED)
        return;
    if (!self->page.range_fits || bytes < self->page.range_least_peak_bytes)
        self->page.range_least_peak_bytes = bytes;
    AR_RAISE(self->page.range_most_peak_bytes, bytes);
    self->page.range_fits++;
}

static enum ar_status run_unknown(struct twin_study *self, const struct scenario *text, size_t run,
                                  struct twin_page_reported *rows, struct ar_error *error)
{
    AR_CLOSED(scenario_close) struct scenario edited = {0};
    AR_CLOSED(twin_setup_close) struct twin_setup setup = {0};
    AR_CLOSED(twin_result_close) struct twin_result result = {0};
    char shown[160];
    AR_TRY(scenario_copy(text, &edited, error));
    AR_TRY(set_unknown(&edited, run, shown, sizeof shown, error));
    AR_TRY(twin_setup_make(&edited, &setup, error));
    AR_TRY(twin_run(&setup.scenario, &result, error));
    twin_compare(&edited, &setup, &result, rows);
    widen_peak(self, &result);
    for (size_t i = 0; i < text->reported_count; i++)
        widen(text, &rows[i], shown, i, &self->page.reported[i]);
    return AR_OK;
}

/* Runs all combinations of what is unknown. */
static enum ar_status try_unknown(struct twin_study *self, const struct scenario *text,
                                  struct ar_error *error)
{
    AR_FREED struct twin_page_reported *rows = calloc(text->reported_count + 1, sizeof *rows);
    AR_TRY_MEMORY(rows, error, "the answers");
    for (size_t i = 0; i < text->reported_count; i++) {
        self->page.reported[i].nearest_value = self->page.reported[i].our_value;
        self->page.reported[i].nearest[0] = '\0';
    }
    self->page.range_count = scenario_combinations(text);
    for (size_t run = 0; run < self->page.range_count; run++)
        AR_TRY(run_unknown(self, text, run, rows, error));
    return AR_OK;
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

/* ---- the largest cache ---------------------------------------------------------------------- */

struct search {
    struct twin_trials *trials;
    const struct scenario *text;
    const char *part;
    enum ar_option_type type;
    double step;
    int most; /* steps */
    struct twin_page_cache *cache;
    /* The failure before which most phases ended. */
    struct twin_page_cache furthest;
    uint64_t phases;
};

static void take_failure(struct twin_page_cache *cache, const struct twin_trial *trial,
                         double value)
{
    const char *where = trial->cannot_run ? "" : trial->summary.where;
    cache->tried = value;
    snprintf(cache->why, sizeof cache->why, "%.120s%s%.270s", where, where[0] ? ": " : "",
             trial->why);
}

/* Runs with a value of so many steps. */
static enum ar_status try_value(struct search *self, int steps, bool *passes,
                                struct ar_error *error)
{
    struct twin_page_cache *cache = self->cache;
    AR_CLOSED(scenario_close) struct scenario edited = {0};
    struct twin_trial trial = {.text = &edited, .cache_part = cache->part};
    const double value = steps * self->step;
    char text[32];
    AR_TRY(scenario_copy(self->text, &edited, error));
    snprintf(text, sizeof text, self->type == AR_OPTION_FRACTION ? "%.2f" : "%.0f", value);
    enum ar_status status = scenario_set(&edited, self->part, cache->option, text, 0, error);
    AR_THEN(status, twin_trials_run(self->trials, &trial, 1, error));
    *passes = !status && !trial.cannot_run && trial.summary.outcome == TWIN_PASSED;
    cache->runs++;
    if (!*passes) {
        uint64_t phases = trial.cannot_run ? 0 : trial.summary.phase + 1;
        take_failure(cache, &trial, value);
        if (cache->runs == 1 || phases > self->phases) {
            self->furthest = *cache;
            self->phases = phases;
        }
        return status;
    }
    cache->safe = value;
    cache->blocks = trial.summary.cache_blocks;
    cache->tokens = trial.summary.cache_tokens;
    cache->bytes = trial.summary.cache_bytes;
    return status;
}

static enum ar_status search_cache(struct search *self, struct ar_error *error)
{
    const int most = self->most;
    int now = (int)floor(self->cache->now / self->step + 1e-6), low = 0, high = most + 1;
    bool passes = false;
    enum ar_status status = AR_OK;
    now = now < 1 ? most + 1 : now > most ? most : now;
    if (now <= most) { /* for the figures of the cache, or for why it fails */
        status = try_value(self, now, &passes, error);
        low = passes ? now : 0;
        if (!status && passes && now < most) {
            status = try_value(self, most, &passes, error);
            low = passes ? most : low;
            high = passes ? high : most;
        }
    }
    if (!low)
        high = now;
    for (int value = high - 1; !status && !low && value > 0; value -= COARSE) {
        status = try_value(self, value, &passes, error);
        low = passes ? value : 0;
        high = passes ? high : value;
    }
    while (!status && low && high - low > 1) {
        int middle = low + (high - low) / 2;
        status = try_value(self, middle, &passes, error);
        *(passes ? &low : &high) = middle;
    }
    if (!low) {
        self->furthest.runs = self->cache->runs;
        *self->cache = self->furthest;
    }
    return status;
}

/* The option of a part that sets the size of its cache, and its value. NULL: it has none. */
static const struct ar_option *cache_option(const struct twin_part_setup *part, double *now)
{
    const struct twin_part_ops *ops = part->ops;
    const struct ar_option *option = NULL;
    struct ar_error error;
    void *values = NULL;
    if (ops->cache_option && !twin_setup_values(part, &values, &error)) {
        const char *name = ops->cache_option(values);
        option = name ? ar_options_find(ops->options, name) : NULL;
        const char *at = option ? (const char *)values + option->offset : NULL;
        uint64_t number = 0;
        if (option && option->type == AR_OPTION_FRACTION) {
            memcpy(now, at, sizeof *now);
        } else if (option && (option->type == AR_OPTION_BYTES || option->type == AR_OPTION_COUNT)) {
            memcpy(&number, at, sizeof number);
            *now = (double)number;
        } else {
            option = NULL;
        }
    }
    free(values);
    return option;
}

/* The step and the range of the search. */
static void scale(struct search *self, const struct ar_option *option, double card_bytes)
{
    const double now = self->cache->now;
    self->type = option->type;
    switch (option->type) {
    case AR_OPTION_FRACTION:
        self->step = 0.01;
        self->most = 99;
        break;
    case AR_OPTION_BYTES:
        self->step = floor(card_bytes / 200 / (double)AR_MIB) * (double)AR_MIB;
        self->step = self->step < (double)AR_MIB ? (double)AR_MIB : self->step;
        self->most = (int)(card_bytes / self->step);
        break;
    default:
        self->step = floor(now / 100) < 1 ? 1 : floor(now / 100);
        self->most = (int)(4 * now / self->step) + 1;
        break;
    }
}

static enum ar_status search_caches(struct twin_study *self, const struct scenario *text,
                                    struct ar_error *error)
{
    for (size_t i = 0; i < self->setup.scenario.part_count; i++) {
        double now = 0;
        const struct ar_option *option = cache_option(&self->setup.parts[i], &now);
        if (!option)
            continue;
        struct twin_page_cache *cache = &self->page.caches[self->page.cache_count++];
        *cache = (struct twin_page_cache){.part = i,
                                          .option = option->name,
                                          .is_bytes = option->type == AR_OPTION_BYTES,
                                          .now = now};
        struct search search = {.trials = &self->trials,
                                .text = text,
                                .part = self->setup.parts[i].name,
                                .cache = cache};
        scale(&search, option, (double)self->result.total_bytes);
        AR_TRY(search_cache(&search, error));
    }
    return AR_OK;
}

/* ---- what-ifs ------------------------------------------------------------------------------- */

static int by_saving(const void *left, const void *right)
{
    const struct twin_page_whatif *a = left, *b = right;
    const double of_a[] = {a->now_fits, a->peak_saved, a->residue_saved};
    const double of_b[] = {b->now_fits, b->peak_saved, b->residue_saved};
    for (size_t i = 0; i < AR_COUNT(of_a); i++)
        AR_ORDER(of_b[i], of_a[i]);
    return strcmp(a->text, b->text);
}

static void take_trial(struct twin_page_whatif *row, const struct twin_change *change,
                       const struct twin_trial *trial, const struct twin_summary *base)
{
    const struct twin_summary *now = &trial->summary;
    *row = (struct twin_page_whatif){.text = change->text,
                                     .runs = !change->failed && !trial->cannot_run};
    row->passes = row->runs && now->outcome == TWIN_PASSED;
    row->refused = row->runs && now->outcome == TWIN_REFUSED;
    if (!row->passes) {
        const char *where = row->runs ? now->where : "";
        snprintf(row->why, sizeof row->why, "%s%.120s%s%.260s",
                 !row->runs     ? ""
                 : row->refused ? "is refused, in "
                                : "does not fit, in ",
                 where, where[0] ? ": " : "", change->failed ? change->why : trial->why);
        return;
    }
    row->now_fits = base->outcome != TWIN_PASSED;
    row->peak_saved = (double)base->peak_bytes - (double)now->peak_bytes;
    row->has_residue = base->has_residue && now->has_residue;
    if (row->has_residue)
        row->residue_saved = (double)base->residue_bytes - (double)now->residue_bytes;
}

static bool saves(const struct twin_page_whatif *row)
{
    return row->passes &&
           (row->now_fits || row->peak_saved >= WORTH_BYTES || row->residue_saved >= WORTH_BYTES);
}

static const struct twin_page_whatif *find_single(const struct twin_study *self, const char *text)
{
    for (size_t i = 0; i < self->changes.count; i++)
        if (!strcmp(self->page.whatifs[i].text, text))
            return &self->page.whatifs[i];
    return NULL;
}

/* The changes to which a second one is added, at most FIRSTS. If the scenario fits, the one that
 * saves most; if no change makes it fit, those that come furthest. */
static size_t choose_firsts(const struct twin_study *self, const struct twin_trial *trials,
                            const size_t *places, size_t *out)
{
    const bool fits = trials[0].summary.outcome == TWIN_PASSED;
    size_t count = 0;
    for (size_t i = 0; i < self->changes.count; i++) {
        const struct twin_page_whatif *row = &self->page.whatifs[i];
        if (row->now_fits)
            return 0;
        if (fits ? !saves(row) : !row->runs || row->refused)
            continue;
        size_t at = count < FIRSTS ? count++ : FIRSTS;
        while (at && (fits ? by_saving(row, &self->page.whatifs[out[at - 1]]) < 0
                           : trials[places[i]].summary.phase >
                                 trials[places[out[at - 1]]].summary.phase)) {
            if (at < FIRSTS)
                out[at] = out[at - 1];
            at--;
        }
        if (at < FIRSTS)
            out[at] = i;
    }
    return fits && count ? 1 : count;
}

/* Adds the pairs of a change with each that is possible after it. */
static enum ar_status add_pairs(struct twin_study *self, size_t first, struct ar_error *error)
{
    const struct twin_change *one = &self->changes.at[first];
    AR_CLOSED(twin_setup_close) struct twin_setup setup = {0};
    AR_CLOSED(twin_result_close) struct twin_result result = {0};
    size_t pair = self->pairs.count;
    AR_TRY(twin_setup_make(&one->edited, &setup, error));
    AR_TRY(twin_run(&setup.scenario, &result, error));
    AR_TRY(twin_changes_find(&one->edited, &setup, &result, &self->pairs, error));
    for (; pair < self->pairs.count; pair++) {
        struct twin_change *two = &self->pairs.at[pair];
        snprintf(two->second, sizeof two->second, "%.199s", two->text);
        snprintf(two->text, sizeof two->text, "%.199s, and %.190s", one->text, two->second);
        two->first = first;
    }
    return AR_OK;
}

/* Whether a pair is worth a run: not if its second change does nothing alone, or was the first of
 * other pairs. */
static bool worth_a_run(const struct twin_study *self, const struct twin_change *pair,
                        const size_t *firsts, size_t first_count, bool fits)
{
    const struct twin_page_whatif *second = find_single(self, pair->second);
    for (size_t i = 0; i < first_count && firsts[i] != pair->first; i++)
        if (second == &self->page.whatifs[firsts[i]])
            return false;
    return !pair->failed && (!second || (fits ? saves(second) : second->runs && !second->refused));
}

/* Whether both changes together save more than each of them. */
static bool is_better(const struct twin_study *self, const struct twin_change *pair,
                      const struct twin_page_whatif *row)
{
    const struct twin_page_whatif *alone[] = {&self->page.whatifs[pair->first],
                                              find_single(self, pair->second)};
    double peak = 0, residue = 0;
    for (size_t i = 0; i < 2 && alone[i]; i++) {
        peak = fmax(peak, alone[i]->peak_saved);
        residue = fmax(residue, alone[i]->residue_saved);
    }
    return row->now_fits ||
           (row->passes && (row->peak_saved >= peak + WORTH_BYTES ||
                            (row->peak_saved > peak - WORTH_BYTES && row->has_residue &&
                             row->residue_saved >= residue + WORTH_BYTES)));
}

/* Runs the pairs and adds the best to the what-ifs, which have room for them. */
static enum ar_status try_pairs(struct twin_study *self, const struct twin_trial *singles,
                                const size_t *places, struct ar_error *error)
{
    const struct twin_summary *base = &singles[0].summary;
    const bool fits = base->outcome == TWIN_PASSED;
    size_t firsts[FIRSTS] = {0}, runs = 0, better = 0;
    const size_t first_count = choose_firsts(self, singles, places, firsts);
    for (size_t i = 0; i < first_count; i++)
        AR_TRY(add_pairs(self, firsts[i], error));
    const size_t count = self->pairs.count;
    AR_FREED struct twin_trial *at = calloc(count + 1, sizeof *at);
    AR_FREED struct twin_page_whatif *rows = calloc(count + 1, sizeof *rows);
    AR_FREED const struct twin_change **pairs = calloc(count + 1, sizeof *pairs);
    AR_TRY_MEMORY(at && rows && pairs, error, "the answers");
    for (size_t i = 0; i < count; i++)
        if (worth_a_run(self, &self->pairs.at[i], firsts, first_count, fits)) {
            pairs[runs] = &self->pairs.at[i];
            at[runs++] =
                (struct twin_trial){.text = &self->pairs.at[i].edited, .cache_part = SIZE_MAX};
        }
    AR_TRY(twin_trials_run(&self->trials, at, runs, error));
    for (size_t i = 0; i < runs; i++) {
        take_trial(&rows[better], pairs[i], &at[i], base);
        better += is_better(self, pairs[i], &rows[better]);
    }
    qsort(rows, better, sizeof *rows, by_saving);
    for (size_t i = 0; i < better && i < TWIN_PAIRS; i++)
        self->page.whatifs[self->page.whatif_count++] = rows[i];
    return AR_OK;
}

static enum ar_status try_changes(struct twin_study *self, const struct scenario *text,
                                  struct ar_error *error)
{
    AR_TRY(twin_changes_find(text, &self->setup, &self->result, &self->changes, error));
    const size_t count = self->changes.count;
    AR_FREED struct twin_trial *at = calloc(count + 1, sizeof *at);
    AR_FREED size_t *places = calloc(count + 1, sizeof *places);
    size_t runs = 0;
    self->page.whatifs = calloc(count + TWIN_PAIRS, sizeof *self->page.whatifs);
    AR_TRY_MEMORY(at && places && self->page.whatifs, error, "the answers");
    /* The first one is the scenario itself. */
    at[runs++] = (struct twin_trial){.text = text, .cache_part = SIZE_MAX};
    for (size_t i = 0; i < count; i++)
        if (!self->changes.at[i].failed) {
            places[i] = runs;
            at[runs++] =
                (struct twin_trial){.text = &self->changes.at[i].edited, .cache_part = SIZE_MAX};
        }
    AR_TRY(twin_trials_run(&self->trials, at, runs, error));
    for (size_t i = 0; i < count; i++)
        take_trial(&self->page.whatifs[i], &self->changes.at[i], &at[places[i]], &at[0].summary);
    self->page.whatif_count = count;
    AR_TRY(try_pairs(self, at, places, error));
    qsort(self->page.whatifs, self->page.whatif_count, sizeof *self->page.whatifs, by_saving);
    return AR_OK;
}

static enum ar_status run_again(struct twin_study *self, const struct scenario *text,
                                const char *journal, struct ar_error *error)
{
    AR_TRY(twin_trials_open(&self->trials, text, journal, error));
    AR_TRY(scenario_copy(text, &self->few, error));
    AR_LOWER(self->few.cycles, TWIN_WHATIF_CYCLES);
    AR_TRY(search_caches(self, &self->few, error));
    return try_changes(self, &self->few, error);
}

/* ---- the study ------------------------------------------------------------------------------ */

static enum ar_status study(struct twin_study *self, const struct scenario *text,
                            const char *journal, struct ar_error *error)
{
    AR_TRY(twin_setup_make(text, &self->setup, error));
    AR_TRY_MEMORY(self->page.reported && self->page.caches, error, "the answers");
    enum ar_status status = twin_run(&self->setup.scenario, &self->result, error);
    AR_TRY(twin_setup_error(text, &self->setup, &self->result.fault, status, error));
    twin_compare(text, &self->setup, &self->result, self->page.reported);
    if (text->unknown_count)
        AR_TRY(try_unknown(self, text, error));
    return self->page.has_whatifs ? run_again(self, text, journal, error) : AR_OK;
}

enum ar_status twin_study_run(const struct scenario *text, bool again, const char *journal,
                              struct twin_study *out, struct ar_error *error)
{
    const char *name = field_file_name(text->path);
    const bool fewer = again && text->cycles > TWIN_WHATIF_CYCLES;
    *out = (struct twin_study){
        .page = {.name = out->name,
                 .source = text->source,
                 .scenario = &out->setup.scenario,
                 .result = &out->result,
                 .reported = calloc(text->reported_count + 1, sizeof *out->page.reported),
                 .reported_count = text->reported_count,
                 .tolerance = text->tolerance,
                 .caches = calloc(text->section_count + 1, sizeof *out->page.caches),
                 .has_whatifs = again,
                 .whatif_cycles = fewer ? TWIN_WHATIF_CYCLES : 0}};
    snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(name, "."), name);
    enum ar_status status = study(out, text, journal, error);
    if (status)
        twin_study_close(out, false);
    return status;
}

void twin_study_close(struct twin_study *self, bool finished)
{
    twin_trials_close(&self->trials, finished);
    twin_result_close(&self->result);
    twin_setup_close(&self->setup);
    twin_changes_close(&self->pairs);
    twin_changes_close(&self->changes);
    scenario_close(&self->few);
    free(self->page.reported);
    free(self->page.caches);
    free(self->page.whatifs);
    *self = (struct twin_study){.name = ""};
}
