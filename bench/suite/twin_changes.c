/* The changes of a scenario that the what-ifs of `twin` try (twin_study.h).
 *
 * 1. Policies: options that are known to change how much memory is kept, if the policy has them.
 * 2. Parts: the changes that a part offers.
 * 3. Parts that hold memory at the peak, or where memory runs out, without taking part in it:
 *    release before, restore after.
 * 4. empty_cache before a phase, if the pool has cached memory then.
 * 5. Order: an action that releases memory one step earlier, one that takes it one step later, past
 *    a step of other parts. */
#include <pthread.h>

#include "allocators/base/array.h"
#include "allocators/base/fnv.h"
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/machine/environment.h"
#include "bench/report/sentence.h"
#include "bench/report/twin_page.h"
#include "bench/suite/progress.h"
#include "bench/suite/twin_study.h"
#include "sim/experiment/crew.h"

#define CACHED_LEAST  (2 * AR_MIB) /* what is worth an empty_cache: a segment of PyTorch */
#define CACHED_PLACES 4            /* phases of a process before which it is tried */

struct finding {
    const struct scenario *text;
    const struct twin_setup *setup;
    const struct twin_result *result;
    struct twin_changes *out;
    struct twin_peak peak; /* or where memory ran out */
    struct ar_error *error;
};

/* A new change, a copy without an edit so far. NULL: no host memory. */
__attribute__((format(printf, 2, 3))) static struct twin_change *add(struct finding *self,
                                                                     const char *format, ...)
{
    struct twin_change change = {.failed = AR_OK};
    AR_PRINT(change.text, sizeof change.text, format);
    if (scenario_copy(self->text, &change.edited, self->error))
        return NULL;
    if (AR_ARRAY_ADD(self->out->at, self->out->count, self->out->room, change))
        return &self->out->at[self->out->count - 1];
    scenario_close(&change.edited);
    (void)ar_no_memory(self->error, "what-ifs");
    return NULL;
}

static void note(struct twin_change *change, enum ar_status status, const struct ar_error *error)
{
    if (status && !change->failed) {
        change->failed = status;
        snprintf(change->why, sizeof change->why, "%.399s", error->text);
    }
}

static void set(struct twin_change *change, const char *section, const char *key, const char *value)
{
    struct ar_error error = {{0}};
    note(change, scenario_set(&change->edited, section, key, value, 0, &error), &error);
}

static void insert(struct twin_change *change, enum scenario_list list, size_t place,
                   const char *step)
{
    struct ar_error error = {{0}};
    note(change, scenario_insert(&change->edited, list, place, step, &error), &error);
}

/* ---- policies ------------------------------------------------------------------------------- */

/* The end of the last link's name: of its first colon that is in no brackets and no quotes. */
static size_t name_end(const char *text)
{
    size_t at = 0;
    unsigned depth = 0;
    char quote = 0;
    for (; text[at]; at++)
        if (quote)
            quote = text[at] == quote ? 0 : quote;
        else if (text[at] == '\'' || text[at] == '"')
            quote = text[at];
        else if (text[at] == '(')
            depth++;
        else if (text[at] == ')')
            depth -= depth > 0;
        else if (text[at] == ':' && !depth)
            break;
    return at;
}

char *twin_policy_with(const char *policy, const char *key, const char *value)
{
    struct ar_spec spec;
    char *text = NULL;
    size_t bytes = 0;
    if (ar_spec_parse(policy, &spec, NULL))
        return NULL;
    FILE *stream = open_memstream(&text, &bytes);
    const struct ar_spec_link *link = &spec.links[spec.link_count - 1];
    if (stream) {
        bool found = false;
        fprintf(stream, "%.*s", (int)name_end(policy), policy);
        for (size_t i = 0; i <= link->pair_count; i++) {
            bool more = i == link->pair_count;
            if (more && found)
                break;
            const char *name = more ? key : link->pairs[i].key;
            bool is_key = !strcmp(name, key);
            const char *given = is_key ? value : link->pairs[i].value;
            const char *quote = strchr(given, ',') ? (strchr(given, '\'') ? "\"" : "'") : "";
            fprintf(stream, "%c%s", i ? ',' : ':', name);
            if (is_key || !link->pairs[i].alone)
                fprintf(stream, "=%s%s%s", quote, given, quote);
            found |= is_key;
        }
        (void)text_end(stream, &text);
    }
    ar_spec_close(&spec);
    return text;
}

static bool is_true(const char *text)
{
    return !strcmp(text, "true") || !strcmp(text, "yes") || !strcmp(text, "on") ||
           !strcmp(text, "1");
}

static enum ar_status policy_change(struct finding *self, const struct twin_process_setup *process,
                                    const char *key, const char *value)
{
    const char *policy = process->policy ? process->policy : "torch";
    char *text = twin_policy_with(policy, key, value);
    struct twin_change *change = add(self, "%s.policy: %s=%s", process->name, key, value);
    if (change && text)
        set(change, process->name, "policy", text);
    free(text);
    return change && text ? AR_OK : ar_no_memory(self->error, "what-ifs");
}

static enum ar_status policy_changes(struct finding *self, const struct twin_process_setup *process)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    const struct ar_policy_ops *ops;
    AR_TRY(ar_spec_parse(process->policy ? process->policy : "torch", &spec, self->error));
    AR_TRY(registry_lookup(&spec, &ops, self->error));
    if (!ops->options)
        return AR_OK;
    const struct ar_option *growing = ar_options_find(ops->options, "expandable_segments");
    const struct ar_option *threshold =
        ar_options_find(ops->options, "garbage_collection_threshold");
    if (growing) {
        const char *now = ar_spec_value(&spec, growing->name);
        now = now ? now : growing->default_text;
        AR_TRY(policy_change(self, process, growing->name, now && is_true(now) ? "false" : "true"));
    }
    return threshold && !ar_spec_value(&spec, threshold->name)
               ? policy_change(self, process, threshold->name, "0.8")
               : AR_OK;
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* Replaces the arguments of an action wherever the schedule has it. Returns the number. */
static size_t replace_arguments(struct twin_change *change, const char *part,
                                const struct twin_what_if *what)
{
    char from[300], to[300];
    size_t count = 0;
    snprintf(from, sizeof from, "%s.%s%s%s", part, what->action, what->arguments[0] ? " " : "",
             what->arguments);
    snprintf(to, sizeof to, "%s.%s%s%s", part, what->action, what->instead[0] ? " " : "",
             what->instead);
    for (int list = 0; list < SCENARIO_LISTS; list++)
        for (size_t i = 0; i < change->edited.lists[list].count; i++)
            if (!strcmp(change->edited.lists[list].at[i].text, from)) {
                scenario_remove(&change->edited, (enum scenario_list)list, i);
                insert(change, (enum scenario_list)list, i, to);
                count++;
            }
    return count;
}

static enum ar_status part_changes(struct finding *self, const struct twin_part_setup *part)
{
    struct twin_what_if what = {.option = NULL};
    AR_FREED void *values = NULL;
    if (!part->ops->what_if)
        return AR_OK;
    AR_TRY(twin_setup_values(part, &values, self->error));
    for (size_t i = 0; part->ops->what_if(values, i, &what); i++) {
        struct twin_change *change = add(self, "%s: %s", part->name, what.text);
        AR_TRY_HOST(change);
        if (what.option)
            set(change, part->name, what.option, what.value);
        if (what.action && !replace_arguments(change, part->name, &what)) {
            scenario_close(&change->edited); /* the schedule does not have this action */
            self->out->count--;
        }
        what = (struct twin_what_if){.option = NULL};
    }
    return AR_OK;
}

/* The first word of a list that is an action without arguments that must be there. */
static bool plain_action(const struct twin_part_ops *ops, const char *words, char *out, size_t room)
{
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        for (const struct twin_action *action = ops->actions; action->name; action++)
            if (strlen(action->name) == length && !strncmp(action->name, at, length) &&
                !action->least_arguments) {
                snprintf(out, room, "%s", action->name);
                return true;
            }
        at += length;
    }
    return false;
}

static bool takes_part(const struct scenario_step *step, const char *name)
{
    for (size_t i = 0; i < step->call_count; i++) {
        const char *at = strstr(step->calls[i].arguments, name);
        if (!strcmp(step->calls[i].part, name) || at)
            return true;
    }
    return false;
}

/* What a part has on the fullest card at the peak, in the pool and outside. */
static uint64_t held_at_peak(const struct finding *self, size_t part)
{
    const struct twin_amounts amounts = self->peak.amounts;
    uint64_t bytes = 0;
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &self->result->amounts[amounts.first + i];
        if (self->result->owners[amount->owner].part == part)
            bytes += amount->bytes;
    }
    return bytes;
}

/* Whether the part has actions that release its memory and take it again; their names. */
static bool can_release(const struct twin_part_setup *part, char *release, char *restore,
                        size_t room)
{
    const struct twin_part_ops *ops = part->ops;
    void *values = NULL;
    struct ar_error error;
    if (!plain_action(ops, ops->releases, release, room) ||
        !plain_action(ops, ops->restores, restore, room))
        return false;
    if (!ops->can_release)
        return true;
    bool can = !twin_setup_values(part, &values, &error) && ops->can_release(values);
    free(values);
    return can;
}

/* Releases the part's memory before the peak and takes it again before the part is next used, or at
 * the end of the list. */
static enum ar_status release_around_peak(struct finding *self, size_t index)
{
    const struct twin_part_setup *part = &self->setup->parts[index];
    const struct twin_phase *phase = &self->result->phases[self->peak.phase];
    const enum scenario_list list = (enum scenario_list)phase->stage;
    const struct scenario_steps *steps = &self->text->lists[list];
    char release[80], restore[80], before[200], after[200];
    if (phase->place >= steps->count || takes_part(&steps->at[phase->place], part->name) ||
        held_at_peak(self, index) < AR_MIB || !can_release(part, release, restore, sizeof release))
        return AR_OK;
    size_t next = phase->place + 1;
    while (next < steps->count && !takes_part(&steps->at[next], part->name))
        next++;
    snprintf(before, sizeof before, "%s.%s", part->name, release);
    snprintf(after, sizeof after, "%s.%s", part->name, restore);
    struct twin_change *change =
        next < steps->count
            ? add(self, "%s before %s, %s before %s", before, phase->text, after,
                  steps->at[next].text)
            : add(self, "%s before %s, %s at the end of %s", before, phase->text, after,
                  list == SCENARIO_CYCLE   ? "the cycle"
                  : list == SCENARIO_START ? "`start`"
                                           : "`end`");
    AR_TRY_HOST(change);
    insert(change, list, next, after);
    insert(change, list, phase->place, before);
    return AR_OK;
}

/* ---- empty_cache ---------------------------------------------------------------------------- */

/* What the pool of a process has cached on the fullest card at the end of a phase. */
static uint64_t cached_at(const struct finding *self, size_t phase, size_t process)
{
    const struct twin_amounts amounts = twin_card_at(self->result, phase, self->peak.card)->amounts;
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &self->result->amounts[amounts.first + i];
        const struct twin_owner *owner = &self->result->owners[amount->owner];
        if (owner->kind == TWIN_OWNER_CACHED && owner->process == process)
            return amount->bytes;
    }
    return 0;
}

static bool is_empty_cache(const struct scenario_step *step, const char *process)
{
    return !strcmp(step->calls[0].part, process) && !strcmp(step->calls[0].action, "empty_cache");
}

static enum ar_status empty_caches(struct finding *self, size_t process)
{
    const struct scenario_steps *cycle = &self->text->lists[SCENARIO_CYCLE];
    const char *name = self->setup->processes[process].name;
    const uint64_t last = twin_answer_cycles(self->result);
    struct place {
        uint64_t bytes;
        size_t place;
    } best[CACHED_PLACES] = {{0, 0}};
    for (size_t i = 0; i < cycle->count; i++) {
        size_t before = i ? i - 1 : cycle->count - 1;
        size_t phase = twin_phase_find(self->result, TWIN_CYCLE, last, before);
        uint64_t bytes = phase == SIZE_MAX ? 0 : cached_at(self, phase, process);
        if (bytes < CACHED_LEAST || is_empty_cache(&cycle->at[i], name) ||
            is_empty_cache(&cycle->at[before], name))
            continue;
        struct place one = {bytes, i};
        for (size_t k = 0; k < CACHED_PLACES; k++)
            if (one.bytes > best[k].bytes) {
                struct place other = best[k];
                best[k] = one;
                one = other;
            }
    }
    for (size_t k = 0; k < CACHED_PLACES && best[k].bytes; k++) {
        char step[200];
        struct twin_change *change =
            add(self, "%s.empty_cache before %s", name, cycle->at[best[k].place].text);
        AR_TRY_HOST(change);
        snprintf(step, sizeof step, "%s.empty_cache", name);
        insert(change, SCENARIO_CYCLE, best[k].place, step);
    }
    return AR_OK;
}

/* ---- order ---------------------------------------------------------------------------------- */

static enum twin_effect effect_of(const struct finding *self, const struct scenario_step *step)
{
    for (size_t i = 0; i < self->setup->scenario.part_count && step->call_count == 1; i++)
        if (!strcmp(self->setup->parts[i].name, step->calls[0].part))
            return twin_answer_effect(self->setup->parts[i].ops, step->calls[0].action);
    return TWIN_EFFECT_NONE;
}

/* Whether the two steps have no part in common, not even as an argument, and the other one is of
 * parts. */
static bool are_apart(const struct finding *self, const struct scenario_step *mover,
                      const struct scenario_step *other)
{
    bool of_part = false;
    for (size_t i = 0; i < self->setup->scenario.part_count; i++)
        of_part |= !strcmp(self->setup->parts[i].name, other->calls[0].part);
    for (size_t i = 0; i < other->call_count && of_part; i++)
        if (takes_part(mover, other->calls[i].part))
            return false;
    return of_part && !takes_part(other, mover->calls[0].part);
}

static enum ar_status other_orders(struct finding *self)
{
    const struct scenario_steps *cycle = &self->text->lists[SCENARIO_CYCLE];
    for (size_t i = 0; i + 1 < cycle->count; i++) {
        const struct scenario_step *first = &cycle->at[i], *second = &cycle->at[i + 1];
        enum twin_effect a = effect_of(self, first), b = effect_of(self, second);
        bool earlier = b == TWIN_EFFECT_RELEASES && a != TWIN_EFFECT_RELEASES &&
                       are_apart(self, second, first);
        bool later = a == TWIN_EFFECT_RESTORES && b != TWIN_EFFECT_RESTORES &&
                     are_apart(self, first, second);
        if (!earlier && !later)
            continue;
        struct twin_change *change = add(self, "%s before %s", second->text, first->text);
        AR_TRY_HOST(change);
        scenario_remove(&change->edited, SCENARIO_CYCLE, i + 1);
        insert(change, SCENARIO_CYCLE, i, second->text);
    }
    return AR_OK;
}

enum ar_status twin_changes_find(const struct scenario *text, const struct twin_setup *setup,
                                 const struct twin_result *result, struct twin_changes *out,
                                 struct ar_error *error)
{
    struct finding self = {text, setup, result, out, twin_answer_peak(result), error};
    if (result->failure.phase < result->phase_count)
        self.peak = (struct twin_peak){
            result->failure.phase, self.peak.card, 0,
            twin_card_at(result, result->failure.phase, self.peak.card)->amounts};
    for (size_t i = 0; i < setup->scenario.process_count; i++)
        AR_TRY(policy_changes(&self, &setup->processes[i]));
    for (size_t i = 0; i < setup->scenario.part_count; i++)
        AR_TRY(part_changes(&self, &setup->parts[i]));
    for (size_t i = 0; i < setup->scenario.part_count && result->phase_count; i++)
        AR_TRY(release_around_peak(&self, i));
    for (size_t i = 0; i < setup->scenario.process_count; i++)
        AR_TRY(empty_caches(&self, i));
    AR_TRY(other_orders(&self));
    for (size_t i = 0; i < out->count; i++)
        if (out->at[i].failed == AR_HOST_MEMORY)
            return ar_error_set(error, AR_HOST_MEMORY, "%s", out->at[i].why);
    return AR_OK;
}

void twin_changes_close(struct twin_changes *self)
{
    for (size_t i = 0; i < self->count; i++)
        scenario_close(&self->at[i].edited);
    free(self->at);
    *self = (struct twin_changes){0};
}

/* ---- trials -------------------------------------------------------------------------------- */

/* A finished run, as the journal has it. */
struct twin_outcome_record {
    struct twin_summary summary;
    uint32_t cannot_run;
    char why[400];
};

struct twin_done {
    uint64_t run;
    struct twin_outcome_record record;
};

static bool take_record(void *argument, uint64_t run, const void *payload, size_t bytes)
{
    struct twin_trials *self = argument;
    struct twin_done done = {.run = run};
    if (bytes != sizeof done.record)
        return false;
    memcpy(&done.record, payload, bytes);
    return AR_ARRAY_ADD(self->done, self->done_count, self->done_room, done);
}

/* A value may name files, whose contents matter too: a workload, of a rank perhaps ("{rank}"), a
 * policy in a shared object, the profile of a card. */
static uint64_t add_files(uint64_t key, const char *value)
{
    char text[4096];
    const char *rank = strstr(value, "{rank}");
    key = journal_add_spec(key, value);
    for (unsigned i = 0; rank && i < TWIN_CARDS; i++) {
        snprintf(text, sizeof text, "%.*s%u%s", (int)(rank - value), value, i, rank + 6);
        key = journal_add_spec(key, text);
    }
    return key;
}

static uint64_t key_of(const struct scenario *text)
{
    uint64_t program = journal_key(), content = scenario_hash(text);
    uint64_t key = ar_fnv64(program, &content, sizeof content);
    for (size_t i = 0; i < text->section_count; i++)
        for (size_t k = 0; k < text->sections[i].key_count; k++)
            key = add_files(key, text->sections[i].keys[k].value);
    return key;
}

enum ar_status twin_trials_open(struct twin_trials *self, const struct scenario *text,
                                const char *journal, struct ar_error *error)
{
    *self = (struct twin_trials){.has_journal = false};
    if (!journal)
        return AR_OK;
    enum ar_status status =
        journal_open(&self->journal, journal, key_of(text), take_record, self, error);
    self->has_journal = !status;
    return status;
}

void twin_trials_close(struct twin_trials *self, bool finished)
{
    if (self->has_journal)
        journal_close(&self->journal, finished);
    free(self->done);
    *self = (struct twin_trials){.has_journal = false};
}

/* ---- one trial ------------------------------------------------------------------------------ */

static void find_cache(const struct twin_scenario *scenario, const struct twin_result *result,
                       size_t part, struct twin_summary *summary)
{
    if (part >= scenario->part_count || !result->phase_count)
        return;
    size_t last = result->phase_count - 1;
    (void)twin_answer_figure(result, part, "kv blocks", last, &summary->cache_blocks);
    (void)twin_answer_figure(result, part, "kv tokens", last, &summary->cache_tokens);
    for (size_t owner = 0; owner < result->owner_count; owner++)
        for (size_t phase = 0; phase <= last && result->owners[owner].part == part; phase++) {
            const char *purpose = strchr(result->owners[owner].name, '/');
            double bytes = (double)twin_answer_amount(
                result, twin_card_at(result, phase, 0)->amounts, (uint32_t)owner);
            if (purpose && strstr(purpose, "kv") && bytes > summary->cache_bytes)
                summary->cache_bytes = bytes;
        }
}

static enum ar_status run_trial(const struct twin_trial *trial, struct twin_outcome_record *record,
                                struct ar_error *error)
{
    AR_CLOSED(twin_setup_close) struct twin_setup setup = {0};
    AR_CLOSED(twin_result_close) struct twin_result result = {0};
    memset(record, 0, sizeof *record);
    enum ar_status status = twin_setup_make(trial->text, &setup, error);
    AR_THEN(status, twin_run(&setup.scenario, &result, error));
    if (!status) {
        twin_answer_summary(&setup.scenario, &result, &record->summary);
        find_cache(&setup.scenario, &result, trial->cache_part, &record->summary);
    }
    if (!status || status == AR_HOST_MEMORY || status == AR_CORRUPT)
        return status;
    record->cannot_run = 1;
    snprintf(record->why, sizeof record->why, "%.399s", error->text);
    return AR_OK;
}

/* ---- workers -------------------------------------------------------------------------------- */

struct batch {
    struct twin_trials *trials;
    struct twin_trial *at;
    pthread_mutex_t lock; /* for `trials` */
    struct progress progress;
};

static uint64_t run_of(const struct twin_trial *trial)
{
    uint64_t hash = scenario_hash(trial->text), part = trial->cache_part;
    return ar_fnv64(hash, &part, sizeof part);
}

static const struct twin_outcome_record *find_done(const struct twin_trials *self, uint64_t run)
{
    for (size_t i = 0; i < self->done_count; i++)
        if (self->done[i].run == run)
            return &self->done[i].record;
    return NULL;
}

static void answer(struct twin_trial *trial, const struct twin_outcome_record *record)
{
    trial->cannot_run = record->cannot_run != 0;
    trial->summary = record->summary;
    snprintf(trial->why, sizeof trial->why, "%s",
             record->cannot_run ? record->why : record->summary.why);
}

static enum ar_status keep(struct twin_trials *self, uint64_t run,
                           const struct twin_outcome_record *record, struct ar_error *error)
{
    struct twin_done done = {run, *record};
    AR_TRY(AR_APPEND(self->done, self->done_count, self->done_room, done, error, "what-ifs"));
    return self->has_journal ? journal_add(&self->journal, run, record, sizeof *record, error)
                             : AR_OK;
}

static enum ar_status do_trial(void *argument, size_t number, struct trace_source *trace AR_UNUSED,
                               struct ar_error *error)
{
    struct batch *self = argument;
    struct twin_trial *trial = &self->at[number];
    const uint64_t run = run_of(trial);
    struct twin_outcome_record record;
    enum ar_status status = AR_OK;
    pthread_mutex_lock(&self->lock);
    const struct twin_outcome_record *known = find_done(self->trials, run);
    if (known)
        record = *known;
    pthread_mutex_unlock(&self->lock);
    if (!known) {
        status = run_trial(trial, &record, error);
        pthread_mutex_lock(&self->lock);
        AR_THEN(status, keep(self->trials, run, &record, error));
        pthread_mutex_unlock(&self->lock);
    }
    if (!status)
        answer(trial, &record);
    return status;
}

static void count_trial(void *argument)
{
    struct batch *self = argument;
    progress_step(&self->progress, "what-ifs");
}

enum ar_status twin_trials_run(struct twin_trials *self, struct twin_trial *trials, size_t count,
                               struct ar_error *error)
{
    struct batch batch = {.trials = self, .at = trials};
    pthread_mutex_init(&batch.lock, NULL);
    progress_begin(&batch.progress, count);
    enum ar_status status =
        crew_each(NULL, environment_jobs(0), count, do_trial, count_trial, &batch, error);
    progress_end(&batch.progress);
    pthread_mutex_destroy(&batch.lock);
    return status;
}
