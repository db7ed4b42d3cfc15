#include "bench/suite/twin_study.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/base/array.h"
#include "bench/suite/child.h"
#include "bench/suite/progress.h"
#include "bench/suite/twin_setup.h"

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

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* A value may name a file, whose contents matter too: a workload, of a rank perhaps ("{rank}"), or
 * a policy in a shared object, with options after a colon. */
static uint64_t add_files(uint64_t key, const char *value)
{
    char path[4096];
    const char *rank = strstr(value, "{rank}");
    if (!strchr(value, '/'))
        return key;
    for (unsigned i = 0; i < (rank ? TWIN_CARDS : 1); i++) {
        if (rank)
            snprintf(path, sizeof path, "%.*s%u%s", (int)(rank - value), value, i, rank + 6);
        else
            snprintf(path, sizeof path, "%s", value);
        if (!is_file(path))
            path[strcspn(path, ":")] = '\0';
        if (!is_file(path))
            break;
        key = journal_add_file(key, path);
    }
    return key;
}

static uint64_t key_of(const struct scenario *text)
{
    uint64_t program = journal_key(), content = scenario_hash(text);
    uint64_t key = fnv_add(program, &content, sizeof content);
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
    struct twin_setup setup;
    struct twin_result result = {0};
    memset(record, 0, sizeof *record);
    enum ar_status status = twin_setup_make(trial->text, &setup, error);
    if (!status) {
        status = twin_run(&setup.scenario, &result, error);
        if (!status) {
            twin_answer_summary(&setup.scenario, &result, &record->summary);
            find_cache(&setup.scenario, &result, trial->cache_part, &record->summary);
        }
        twin_result_close(&result);
        twin_setup_close(&setup);
    }
    if (!status || status == AR_HOST_MEMORY || status == AR_CORRUPT)
        return status;
    record->cannot_run = 1;
    snprintf(record->why, sizeof record->why, "%.399s", error->text);
    return AR_OK;
}

/* ---- workers -------------------------------------------------------------------------------- */

struct crew {
    struct twin_trials *trials;
    struct twin_trial *at;
    size_t count, next;
    pthread_mutex_t lock;
    enum ar_status status;
    struct ar_error error;
    struct progress progress;
};

static uint64_t run_of(const struct twin_trial *trial)
{
    uint64_t hash = scenario_hash(trial->text), part = trial->cache_part;
    return fnv_add(hash, &part, sizeof part);
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
    if (!AR_ARRAY_ADD(self->done, self->done_count, self->done_room, done))
        return ar_no_memory(error, "what-ifs");
    return self->has_journal ? journal_add(&self->journal, run, record, sizeof *record, error)
                             : AR_OK;
}

static void *work(void *argument)
{
    struct crew *crew = argument;
    pthread_mutex_lock(&crew->lock);
    while (!crew->status && crew->next < crew->count) {
        struct twin_trial *trial = &crew->at[crew->next++];
        const uint64_t run = run_of(trial);
        const struct twin_outcome_record *known = find_done(crew->trials, run);
        struct twin_outcome_record record;
        struct ar_error error = {{0}};
        enum ar_status status = AR_OK;
        if (known)
            record = *known;
        pthread_mutex_unlock(&crew->lock);
        if (!known)
            status = run_trial(trial, &record, &error);
        pthread_mutex_lock(&crew->lock);
        if (!known && !status)
            status = keep(crew->trials, run, &record, &error);
        if (!status)
            answer(trial, &record);
        else if (!crew->status)
            crew->status = status, crew->error = error;
        progress_step(&crew->progress, "what-ifs");
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

#define THREADS_MOST 64

enum ar_status twin_trials_run(struct twin_trials *self, struct twin_trial *trials, size_t count,
                               struct ar_error *error)
{
    struct crew crew = {.trials = self, .at = trials, .count = count};
    pthread_t threads[THREADS_MOST];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = processors > 1 ? (size_t)processors : 1, started = 0;
    if (most > count)
        most = count;
    pthread_mutex_init(&crew.lock, NULL);
    progress_begin(&crew.progress, count);
    while (started + 1 < most && started < THREADS_MOST &&
           pthread_create(&threads[started], NULL, work, &crew) == 0)
        started++;
    work(&crew); /* this thread is a worker too */
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    progress_end(&crew.progress);
    pthread_mutex_destroy(&crew.lock);
    if (crew.status && error)
        *error = crew.error;
    return crew.status;
}
