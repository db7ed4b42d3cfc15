/* The largest safe cache is searched in steps: hundredths of a fraction, 1/200 of the card's bytes,
 * or hundredths of the present count. From the present value upwards if it passes, else downwards
 * in coarse steps to one that passes; then by halves. A run that passes the whole schedule is safe.
 * It is assumed that what passes with a value passes with less, down to where the engine refuses to
 * start. */
#include "bench/suite/twin_study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/suite/twin_compare.h"

#define COARSE 10 /* steps of the search at a time on the way down */

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the answers");
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
    struct scenario edited;
    struct twin_trial trial = {.text = &edited, .cache_part = cache->part};
    const double value = steps * self->step;
    char text[32];
    enum ar_status status = scenario_copy(self->text, &edited, error);
    if (status)
        return status;
    snprintf(text, sizeof text, self->type == AR_OPTION_FRACTION ? "%.2f" : "%.0f", value);
    status = scenario_set(&edited, self->part, cache->option, text, error);
    if (!status)
        status = twin_trials_run(self->trials, &trial, 1, error);
    scenario_close(&edited);
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
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->setup.scenario.part_count && !status; i++) {
        struct twin_page_cache *cache = &self->caches[self->cache_count];
        double now = 0;
        const struct ar_option *option = cache_option(&self->setup.parts[i], &now);
        if (!option)
            continue;
        *cache = (struct twin_page_cache){.part = i,
                                          .option = option->name,
                                          .is_bytes = option->type == AR_OPTION_BYTES,
                                          .now = now};
        struct search search = {.trials = &self->trials,
                                .text = text,
                                .part = self->setup.parts[i].name,
                                .cache = cache};
        scale(&search, option, (double)self->result.total_bytes);
        status = search_cache(&search, error);
        self->cache_count++;
    }
    return status;
}

/* ---- what-ifs ------------------------------------------------------------------------------- */

static int by_saving(const void *left, const void *right)
{
    const struct twin_page_whatif *a = left, *b = right;
    const double of_a[] = {a->now_fits, a->peak_saved, a->residue_saved};
    const double of_b[] = {b->now_fits, b->peak_saved, b->residue_saved};
    for (size_t i = 0; i < sizeof of_a / sizeof *of_a; i++)
        if (of_a[i] != of_b[i])
            return of_a[i] < of_b[i] ? 1 : -1;
    return strcmp(a->text, b->text);
}

static void take_trial(struct twin_page_whatif *row, const struct twin_change *change,
                       const struct twin_trial *trial, const struct twin_summary *base)
{
    const struct twin_summary *now = &trial->summary;
    *row = (struct twin_page_whatif){.text = change->text,
                                     .runs = !change->failed && !trial->cannot_run};
    row->passes = row->runs && now->outcome == TWIN_PASSED;
    if (!row->passes) {
        const char *where = row->runs ? now->where : "";
        snprintf(row->why, sizeof row->why, "%s%.120s%s%.260s",
                 !row->runs                     ? ""
                 : now->outcome == TWIN_REFUSED ? "is refused, in "
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

static enum ar_status try_changes(struct twin_study *self, const struct scenario *text,
                                  struct ar_error *error)
{
    enum ar_status status =
        twin_changes_find(text, &self->setup, &self->result, &self->changes, error);
    const size_t count = self->changes.count;
    struct twin_trial *at = calloc(count + 1, sizeof *at);
    size_t *places = calloc(count + 1, sizeof *places), runs = 0;
    self->whatifs = calloc(count + 1, sizeof *self->whatifs);
    if (!status && (!at || !places || !self->whatifs))
        status = no_memory(error);
    /* The first one is the scenario itself. */
    if (!status)
        at[runs++] = (struct twin_trial){.text = text, .cache_part = SIZE_MAX};
    for (size_t i = 0; i < count && !status; i++)
        if (!self->changes.at[i].failed) {
            places[i] = runs;
            at[runs++] =
                (struct twin_trial){.text = &self->changes.at[i].edited, .cache_part = SIZE_MAX};
        }
    if (!status)
        status = twin_trials_run(&self->trials, at, runs, error);
    for (size_t i = 0; i < count && !status; i++)
        take_trial(&self->whatifs[i], &self->changes.at[i], &at[places[i]], &at[0].summary);
    if (!status) {
        self->whatif_count = count;
        qsort(self->whatifs, count, sizeof *self->whatifs, by_saving);
    }
    free(at);
    free(places);
    return status;
}

static enum ar_status run_again(struct twin_study *self, const struct scenario *text,
                                const char *journal, struct ar_error *error)
{
    enum ar_status status = twin_trials_open(&self->trials, text, journal, error);
    if (status)
        return status;
    status = scenario_copy(text, &self->few, error);
    self->has_few = !status;
    if (!status && self->few.cycles > TWIN_WHATIF_CYCLES)
        self->few.cycles = TWIN_WHATIF_CYCLES;
    if (!status)
        status = search_caches(self, &self->few, error);
    if (!status)
        status = try_changes(self, &self->few, error);
    return status;
}

/* ---- the study ------------------------------------------------------------------------------ */

/* The name of the file without folder and ending. */
static void take_name(struct twin_study *self, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(self->name, sizeof self->name, "%.*s", (int)strcspn(name, "."), name);
}

enum ar_status twin_study_run(const struct scenario *text, bool again, const char *journal,
                              struct twin_study *out, struct ar_error *error)
{
    *out = (struct twin_study){.has_few = false};
    enum ar_status status = twin_setup_make(text, &out->setup, error);
    out->reported = calloc(text->reported_count + 1, sizeof *out->reported);
    out->caches = calloc(text->section_count + 1, sizeof *out->caches);
    if (!status && (!out->reported || !out->caches))
        status = no_memory(error);
    if (!status) {
        status = twin_run(&out->setup.scenario, &out->result, error);
        status = twin_setup_error(text, &out->setup, SIZE_MAX, &out->result, status, error);
    }
    if (!status)
        twin_compare(text, &out->setup, &out->result, out->reported);
    if (!status && again)
        status = run_again(out, text, journal, error);
    take_name(out, text->path);
    out->page = (struct twin_page){
        .name = out->name,
        .source = text->source,
        .scenario = &out->setup.scenario,
        .result = &out->result,
        .reported = out->reported,
        .reported_count = text->reported_count,
        .tolerance = text->tolerance,
        .caches = out->caches,
        .cache_count = out->cache_count,
        .whatifs = out->whatifs,
        .whatif_count = out->whatif_count,
        .has_whatifs = again,
        .whatif_cycles = again && text->cycles > TWIN_WHATIF_CYCLES ? TWIN_WHATIF_CYCLES : 0};
    if (status)
        twin_study_close(out, false);
    return status;
}

void twin_study_close(struct twin_study *self, bool finished)
{
    twin_trials_close(&self->trials, finished);
    twin_result_close(&self->result);
    twin_setup_close(&self->setup);
    twin_changes_close(&self->changes);
    if (self->has_few)
        scenario_close(&self->few);
    free(self->reported);
    free(self->caches);
    free(self->whatifs);
    *self = (struct twin_study){.has_few = false};
}
