#include "sim/advise/advise.h"

#include <limits.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "sim/advise/trial.h"
#include "sim/experiment/crew.h"
#include "sim/experiment/session.h"
#include "sim/search/search.h"

#define TOO_SLOW 2.0

struct advising {
    const struct advise_config *config;
    struct advise_result *out;
    struct trial_setup setup;
    struct session_device card; /* the device without a capacity */
    struct baseline baseline;
    struct fidelity_result compared; /* with the policy that imitates the recorded allocator */
    struct prepared prepared;
    struct prepared unreleased; /* without the program's releases; trace NULL: those are certain */
    struct tries tries;
    struct lean timed, timeless; /* the prepared trace in fewer events */
    size_t *same;     /* of each row: the first single setting that makes the same decisions */
    size_t done;      /* trials of all rounds */
    bool single_fits; /* a single setting of the framework fits at the capacity in question */
};

/* Recorders that do not see the framework's allocator. The settings in force are not known, so the
 * defaults are assumed. */
static const struct watcher {
    const char *recorder, *policy, *framework;
} watchers[] = {
    {"kineto", "torch", "torch"},           {"torch.profiler", "torch", "torch"},
    {"stalloc", "torch", "torch"},          {"rmm", "rmm-pool", "rmm"},
    {"jax", "greedy:framework=jax", "xla"},
};

static const struct watcher *watcher_of(const char *recorder)
{
    for (size_t i = 0; i < AR_COUNT(watchers); i++) {
        size_t length = strlen(watchers[i].recorder);
        if (strncmp(recorder, watchers[i].recorder, length) == 0 &&
            (!recorder[length] || recorder[length] == ' '))
            return &watchers[i];
    }
    return NULL;
}

static void note_watcher(const struct trace_info *info, struct advise_result *out)
{
    const struct watcher *watcher = watcher_of(info->recorder);
    if (!watcher)
        return;
    out->fidelity = ADVISE_NOT_COMPARED;
    out->framework = watcher->framework;
    snprintf(out->given, sizeof out->given, "%s", watcher->policy);
    snprintf(out->fidelity_why, sizeof out->fidelity_why,
             "%.60s does not say which settings were in force, nor where blocks were placed",
             info->recorder);
}

/* Compares the recording with the policy that imitates the recorded allocator. */
static enum ar_status compare_recording(const struct advise_config *config,
                                        struct advise_result *out, struct fidelity_result *compared,
                                        struct ar_error *error)
{
    char text[1024];
    AR_CLOSED(ar_spec_close) struct ar_spec policy = {0};
    struct ar_error why = {""};
    const struct trace_info *info = &config->source->info;
    out->fidelity = ADVISE_NOT_RECORDED;
    if (!info->recorder[0] || fidelity_default_spec(info, text, sizeof text, &why)) {
        snprintf(out->fidelity_why, sizeof out->fidelity_why, "%.250s", why.text);
        note_watcher(info, out);
        return AR_OK;
    }
    out->framework = info->recorder;
    AR_TRY(ar_spec_parse(text, &policy, error));
    const struct fidelity fidelity = {
        .policy = &policy, .source = config->source, .seed = config->seed};
    enum ar_status status = fidelity_run(&fidelity, compared, &why);
    if (status == AR_HOST_MEMORY || status == AR_CORRUPT) {
        *error = why;
        return status;
    }
    out->fidelity = status             ? ADVISE_NOT_COMPARED
                    : compared->agrees ? ADVISE_AGREES
                                       : ADVISE_DIFFERS;
    if (status)
        snprintf(out->fidelity_why, sizeof out->fidelity_why, "%.250s", why.text);
    else if (!info->limit_bytes)
        status = pressure_find(config->source, text, config->seed, compared, &out->pressure, error);
    if (status && out->fidelity != ADVISE_NOT_COMPARED)
        return status;
    out->recorded_peak_reserved_bytes = compared->recorded_peak_reserved_bytes;
    out->difference = compared->difference;
    out->start_blocks = compared->start == FIDELITY_FROM_NOTHING ? 0 : compared->start_blocks;
    out->releases = compared->release_count;
    bool jax = strncmp(info->recorder, "xla", 3) == 0 || strncmp(info->recorder, "jax", 3) == 0;
    if (jax && !strchr(text, ':'))
        strcat(text, ":framework=jax");
    return candidates_without_limit(text, out->given, sizeof out->given, error);
}

/* Holders with the event of the recording. */
static enum ar_status find_holders(const struct advising *self, uint64_t end, struct holders *out,
                                   struct ar_error *error)
{
    AR_TRY(holders_find(self->prepared.trace, end, out, error));
    out->event = prepared_event(&self->prepared, out->event);
    return AR_OK;
}

static enum ar_status prepare(struct advising *self, struct ar_error *error)
{
    struct fidelity_result *compared = &self->compared;
    struct advise_result *out = self->out;
    AR_TRY(compare_recording(self->config, out, compared, error));
    AR_TRY(prepare_trace(self->config->source, compared->releases, compared->release_count,
                         &self->prepared, error));
    if (out->fidelity == ADVISE_DIFFERS && compared->release_count)
        AR_TRY(prepare_trace(self->config->source, NULL, 0, &self->unreleased, error));
    out->complete = self->config->source->info.complete && !self->prepared.has_failed_request;
    out->survived = self->prepared.survived;
    out->has_failed_request = self->prepared.has_failed_request;
    out->failed_event = self->prepared.failed_event;
    out->failed_bytes = self->prepared.failed_bytes;
    AR_TRY(find_holders(self, UINT64_MAX, &out->peak, error));
    if (self->prepared.last_step_end)
        AR_TRY(find_holders(self, self->prepared.last_step_end, &out->step, error));
    AR_TRY(tries_find(self->prepared.trace, &self->tries, error));
    out->tries = self->tries.count;
    out->tries_most_bytes = self->tries.most_bytes;
    return AR_OK;
}

/* The capacity in question, and where it is from. `card_bytes`: of the device. */
static uint64_t capacity_of(const struct advising *self, uint64_t card_bytes,
                            enum advise_capacity_from *from)
{
    const struct advise_config *config = self->config;
    const struct advise_result *out = self->out;
    const struct trace_info *info = &config->source->info;
    const struct recorded_card *card = &out->card;
    bool driver = card->source == RECORDED_CARD_DRIVER;
    if (card->source != RECORDED_CARD_LIMIT && !driver && card->capacity_bytes)
        card_bytes = card->capacity_bytes;
    const struct {
        enum advise_capacity_from from;
        bool applies;
        uint64_t bytes;
    } choices[] = {
        {ADVISE_FROM_CONFIG, config->capacity_bytes != 0, config->capacity_bytes},
        {ADVISE_FROM_CONFIG, config->card_asked, card_bytes},
        {ADVISE_FROM_LIMIT, info->limit_bytes != 0, info->limit_bytes},
        {ADVISE_FROM_DRIVER, driver && card->full, card->capacity_bytes},
        {ADVISE_FROM_PRESSURE, out->pressure.least_bytes != 0, out->pressure.least_bytes},
        {ADVISE_FROM_DRIVER, driver, card->capacity_bytes},
        {ADVISE_FROM_TOTAL, card->source == RECORDED_CARD_TOTAL, card_bytes},
        {ADVISE_FROM_NAME, card->source == RECORDED_CARD_NAME, card_bytes},
    };
    for (size_t i = 0; i < AR_COUNT(choices); i++)
        if (choices[i].applies) {
            *from = choices[i].from;
            return choices[i].bytes;
        }
    *from = ADVISE_FROM_DEFAULT;
    return card_bytes;
}

/* The names of the card and of its costs at the capacity in question. */
static enum ar_status name_device(struct advising *self, struct ar_error *error)
{
    AR_CLOSED(session_device_end) struct session_device asked = {0};
    struct ar_device_props props;
    struct advise_result *out = self->out;
    AR_TRY(session_device_as(&asked, self->setup.device, NULL, out->capacity_bytes, error));
    enum ar_status status = session_device_props(&asked.spec, &props, error);
    if (status && out->capacity_from != ADVISE_FROM_CONFIG)
        (void)ar_error_prefix(error, status, "the recorded capacity");
    AR_TRY(status);
    memcpy(out->profile, props.profile, sizeof out->profile);
    memcpy(out->costs_of, props.costs_of, sizeof out->costs_of);
    return AR_OK;
}

static enum ar_status set_up(struct advising *self, struct ar_error *error)
{
    const struct advise_config *config = self->config;
    const struct trace_info *info = &config->source->info;
    struct advise_result *out = self->out;
    struct ar_device_props props;
    AR_TRY(recorded_card_find(config->source, config->device, &out->card, error));
    AR_TRY(session_device_as(&self->card, config->device, out->card.profile, 0, error));
    session_device_as_driver(&self->card);
    AR_TRY(session_device_props(&self->card.spec, &props, error));
    out->capacity_bytes = capacity_of(self, props.capacity_bytes, &out->capacity_from);
    if (config->capacity_bytes)
        out->card.driver_bytes = 0; /* it is as the caller says */
    out->has_outside = self->prepared.has_outside;
    out->as_limit = out->capacity_from == ADVISE_FROM_LIMIT || config->as_limit;
    self->setup = (struct trial_setup){
        .device = &self->card.spec,
        .frees = config->frees,
        .host = config->host,
        .seed = config->seed,
        .live_peak_bytes = out->peak.bytes,
        .card_bytes = props.capacity_bytes,
        .has_outside = self->prepared.has_outside,
        .as_limit = out->as_limit,
        .late_bytes = out->peak.late_bytes,
    };
    enum ar_status status =
        lean_make(self->prepared.trace, config->frees, config->host, false, &self->timed, error);
    AR_THEN(status, lean_make(self->prepared.trace, config->frees, config->host, true,
                              &self->timeless, error));
    AR_TRY(status);
    self->setup.timed = &self->timed;
    self->setup.timeless = &self->timeless;
    if (out->capacity_bytes > props.capacity_bytes)
        self->setup.whole_bytes = (out->as_limit ? 2 : 1) * out->capacity_bytes;
    if (info->kernels || config->host != REPLAY_HOST_NONE) {
        status = baseline_run(&self->card.spec, self->prepared.trace, config->host, &self->baseline,
                              error);
        self->setup.baseline = &self->baseline;
        out->timed = !status && self->baseline.time_ns;
    }
    return status ? status : name_device(self, error);
}

static enum ar_status try_alone(const struct advising *self, struct advise_row *row,
                                struct trace_source *trace, struct ar_error *error)
{
    return trial_alone(&self->setup, trace, row->candidate.spec, &row->alone, error);
}

/* Tries a candidate at the capacity in question, and a single setting with all of the card. No
 * candidate is skipped, because a caller may ask for any of them. */
static enum ar_status try_at(void *argument, size_t number, struct trace_source *trace,
                             struct ar_error *error)
{
    struct advising *self = argument;
    struct advise_row *row = &self->out->rows[number];
    bool single = !candidate_is_pair(&row->candidate);
    if (single)
        AR_TRY(try_alone(self, row, trace, error));
    if (single && row->alone.enough_bytes &&
        row->alone.capacity_bytes == self->out->capacity_bytes) {
        row->at = row->alone; /* the policy does not see the only difference, the total */
        return AR_OK;
    }
    return trial_run(&self->setup, trace, row->candidate.spec, self->out->capacity_bytes, single,
                     &row->at, error);
}

/* Whether completions were recorded and are replayed, but uses by other streams were not. */
static bool may_be_late(const struct advising *self)
{
    const struct trace_info *info = &self->config->source->info;
    return self->config->frees == REPLAY_RECORDED && info->has_split_frees && !info->has_uses;
}

/* A sensitivity check of every trial, with its trace. */
struct check {
    struct advising *self;
    struct trace_source *trace;
    sensitivity_check *run;
};

#define CHECKS 3

static size_t checks_of(struct advising *self, struct check list[CHECKS])
{
    size_t count = 0;
    if (may_be_late(self))
        list[count++] = (struct check){self, self->prepared.trace, sensitivity_late};
    if (self->unreleased.trace)
        list[count++] = (struct check){self, self->unreleased.trace, sensitivity_releases};
    if (self->tries.trace)
        list[count++] = (struct check){self, self->tries.trace, sensitivity_tries};
    return count;
}

static enum ar_status check_row(void *argument, size_t number, struct trace_source *trace,
                                struct ar_error *error)
{
    const struct check *check = argument;
    struct advise_result *out = check->self->out;
    struct advise_row *row = &out->rows[number];
    return check->run(&check->self->setup, trace, row->candidate.spec, out->capacity_bytes,
                      &row->at, error);
}

/* Finds the answers that depend on facts that were not recorded. */
static enum ar_status check_all(struct advising *self, struct ar_error *error)
{
    struct check list[CHECKS];
    size_t count = checks_of(self, list);
    for (size_t i = 0; i < count; i++)
        AR_TRY(crew_each(list[i].trace, self->config->jobs, self->out->tried, check_row, NULL,
                         &list[i], error));
    return AR_OK;
}

/* Lists a row for which a capacity was found, with the slowdown there. */
static enum ar_status list_row(const struct advising *self, struct advise_row *row,
                               struct trace_source *trace, struct ar_error *error)
{
    struct trial trial = {0};
    enum ar_status status = AR_OK;
    row->listed = true;
    if (row->safe_bytes && self->setup.baseline)
        status = trial_run(&self->setup, trace, row->candidate.spec, row->safe_bytes, false, &trial,
                           error);
    row->safe_slowdown = trial.slowdown;
    return status;
}

#define CHEAP_EVENTS 1000
#define CHEAP_CALLS  1000

/* Whether hundreds of runs take no time that a user would notice. */
static bool is_cheap(const struct advising *self, const struct advise_row *row)
{
    const struct trace_info *info = &self->prepared.trace->info;
    return info->counted && info->events <= CHEAP_EVENTS && row->at.driver_calls <= CHEAP_CALLS &&
           row->alone.driver_calls <= CHEAP_CALLS;
}

/* The search has steps, so it can miss a gap. The need is found again on the grid of `capacity` if
 * that is cheap, and above the capacity in question if the setting fails there. */
static enum ar_status search_again(const struct advising *self, struct advise_row *row,
                                   struct trace_source *trace, struct ar_error *error)
{
    AR_CLOSED(capacity_grid_close) struct capacity_grid grid = {0};
    uint64_t failed_bytes = 0;
    if (row->at.begun && !row->at.passed && row->at.sensitivity == TRIAL_SURE)
        failed_bytes = self->out->capacity_bytes;
    if (!row->safe_bytes || (!is_cheap(self, row) && row->safe_bytes > failed_bytes))
        return AR_OK;
    AR_TRY(capacity_grid_make(self->setup.live_peak_bytes, UINT64_MAX, &grid, error));
    return trial_safe_on(&self->setup, trace, row->candidate.spec, grid.bytes, grid.count,
                         failed_bytes, &row->safe_bytes, error);
}

/* Notes of each single setting the first one that makes the same decisions. */
static enum ar_status find_equal_decisions(struct advising *self, struct ar_error *error)
{
    AR_FREED char(*effects)[CANDIDATE_SPEC_ROOM] = calloc(self->out->tried, sizeof *effects);
    self->same = calloc(self->out->tried, sizeof *self->same);
    AR_TRY_MEMORY(effects && self->same, error, "the settings");
    for (size_t i = 0; i < self->out->tried; i++) {
        const struct candidate *candidate = &self->out->rows[i].candidate;
        self->same[i] = i;
        if (candidate_is_pair(candidate) || self->setup.as_limit || !self->timeless.events)
            continue;
        candidate_effect(candidate->spec, self->timeless.largest_bytes, effects[i],
                         sizeof effects[i]);
        for (size_t j = 0; j < i && self->same[i] == i; j++)
            if (strcmp(effects[j], effects[i]) == 0)
                self->same[i] = j;
    }
    return AR_OK;
}

/* Copies what was found for the same decisions. */
static void copy_equal(struct advising *self)
{
    for (size_t i = 0; i < self->out->tried; i++) {
        struct advise_row *row = &self->out->rows[i];
        const struct advise_row *same = &self->out->rows[self->same[i]];
        if (same == row)
            continue;
        row->listed = same->listed;
        row->safe_bytes = same->safe_bytes;
        row->safe_slowdown = same->safe_slowdown;
    }
}

static enum ar_status search_single(void *argument, size_t number, struct trace_source *trace,
                                    struct ar_error *error)
{
    struct advising *self = argument;
    struct advise_row *row = &self->out->rows[number];
    if (candidate_is_pair(&row->candidate) || self->same[number] != number)
        return AR_OK;
    if (row->alone.begun && row->alone.passed)
        AR_TRY(trial_search(&self->setup, trace, row->candidate.spec, &row->alone, &row->safe_bytes,
                            error));
    AR_TRY(search_again(self, row, trace, error));
    return list_row(self, row, trace, error);
}

static enum ar_status search_from(const struct advising *self, struct advise_row *row,
                                  uint64_t from_bytes, struct trace_source *trace,
                                  struct ar_error *error)
{
    enum ar_status status =
        trial_safe(&self->setup, trace, row->candidate.spec, from_bytes, &row->safe_bytes, error);
    AR_THEN(status, search_again(self, row, trace, error));
    if (row->safe_bytes > ar_size_round_up(from_bytes, 2 * AR_MIB))
        row->safe_bytes = 0; /* a pair that is not better than its halves */
    return status || !row->safe_bytes ? status : list_row(self, row, trace, error);
}

static enum ar_status search_pair(void *argument, size_t number, struct trace_source *trace,
                                  struct ar_error *error)
{
    struct advising *self = argument;
    struct advise_row *row = &self->out->rows[number];
    if (!candidate_is_pair(&row->candidate) || !row->at.begun)
        return AR_OK;
    uint64_t better = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        uint64_t half = self->out->rows[row->candidate.half[i]].safe_bytes;
        better = half && half < better ? half : better;
    }
    uint64_t less = ar_size_round_down(better - better / 100, 2 * AR_MIB);
    if (better < UINT64_MAX && less >= self->setup.live_peak_bytes)
        AR_TRY(search_from(self, row, less, trace, error));
    /* If only pairs fit, a pair is listed even if it needs only a little less. */
    if (!row->listed && !self->single_fits && row->at.passed)
        AR_TRY(search_from(self, row, self->out->capacity_bytes, trace, error));
    if (row->listed)
        AR_TRY(try_alone(self, row, trace, error));
    return AR_OK;
}

/* Drops settings whose text equals that of an earlier row. */
static void drop_repeated_text(struct advise_result *out)
{
    for (size_t i = 1; i < out->tried; i++)
        for (size_t j = 0; j < i && out->rows[i].candidate.own; j++)
            if (out->rows[j].listed && out->rows[j].candidate.own &&
                out->rows[i].alone.setting[0] &&
                strcmp(out->rows[i].alone.setting, out->rows[j].alone.setting) == 0)
                out->rows[i].listed = false;
}

/* A candidate that takes more than twice the time is not advised, even if it needs little memory.
 * If times are not known, this is assumed of `direct`, which makes a driver call for each request,
 * and of the driver's pool, whose answer is not known then. */
static bool is_too_slow(const struct advise_row *row)
{
    return row->at.sensitivity == TRIAL_UNTIMED || row->safe_slowdown > TOO_SLOW ||
           (row->safe_slowdown <= 0 && strcmp(row->candidate.spec, "direct") == 0);
}

static int compare_rows(const void *left, const void *right)
{
    const struct advise_row *a = left, *b = right;
    AR_ORDER(b->candidate.own, a->candidate.own);
    AR_ORDER(is_too_slow(a), is_too_slow(b));
    uint64_t safe_a = a->safe_bytes ? a->safe_bytes : UINT64_MAX;
    uint64_t safe_b = b->safe_bytes ? b->safe_bytes : UINT64_MAX;
    AR_ORDER(safe_a, safe_b);
    if (a->safe_slowdown < b->safe_slowdown || a->safe_slowdown > b->safe_slowdown)
        return a->safe_slowdown < b->safe_slowdown ? -1 : 1;
    return strcmp(a->candidate.spec, b->candidate.spec);
}

static int compare_listed(const void *left, const void *right)
{
    const struct advise_row *a = left, *b = right;
    return a->listed != b->listed ? b->listed - a->listed : compare_rows(a, b);
}

/* Whether the peak of the recorded setting can be compared with the recorded peak: it is not if the
 * program had a limit, or was not recorded to its end. */
static bool has_peak(const struct advise_config *config, const struct advise_result *out)
{
    return out->recorded_peak_reserved_bytes && out->complete && !out->pressure.least_bytes &&
           !config->source->info.limit_bytes;
}

static double uncertainty_of(const struct advise_config *config, const struct advise_result *out)
{
    double uncertainty = ADVISE_UNCERTAINTY;
    for (size_t i = 0; i < out->tried && has_peak(config, out); i++) {
        double peak = (double)out->rows[i].alone.peak_reserved_bytes;
        double recorded = (double)out->recorded_peak_reserved_bytes;
        double apart = peak > recorded ? peak / recorded - 1 : 1 - peak / recorded;
        if (out->rows[i].candidate.given && peak > 0 && apart > uncertainty)
            uncertainty = apart;
    }
    return uncertainty;
}

uint64_t advise_uncertain_bytes(const struct advise_result *result, uint64_t bytes)
{
    uint64_t part = (uint64_t)(result->uncertainty * (double)bytes);
    return part > 2 * AR_MIB ? part : 2 * AR_MIB; /* a search ends at 2 MiB */
}

/* Rows of one rank. */
static int compare_equals(const void *left, const void *right)
{
    const struct advise_row *a = left, *b = right;
    AR_ORDER(candidate_is_other_allocator(&a->candidate),
             candidate_is_other_allocator(&b->candidate));
    bool default_a = a->candidate.keys == 0, default_b = b->candidate.keys == 0;
    if (a->candidate.own && default_a != default_b)
        return default_b - default_a;
    if (a->wasteful != b->wasteful)
        return a->wasteful - b->wasteful;
    AR_ORDER(a->candidate.keys, b->candidate.keys);
    AR_ORDER(b->candidate.given, a->candidate.given);
    AR_ORDER(a->candidate.key_order, b->candidate.key_order);
    AR_ORDER(a->alone.peak_reserved_bytes, b->alone.peak_reserved_bytes);
    AR_ORDER(a->candidate.order, b->candidate.order);
    return compare_rows(a, b);
}

/* Marks the rows of a rank that take much more memory or time than its least, and sorts them. */
static void order_rank(struct advise_row *rows, size_t count)
{
    uint64_t least_bytes = UINT64_MAX;
    double least_slowdown = 0;
    for (size_t i = 0; i < count; i++) {
        AR_LOWER(least_bytes, rows[i].alone.peak_reserved_bytes);
        if (least_slowdown <= 0 || rows[i].safe_slowdown < least_slowdown)
            least_slowdown = rows[i].safe_slowdown;
    }
    for (size_t i = 0; i < count; i++)
        rows[i].wasteful = (double)rows[i].alone.peak_reserved_bytes > 1.1 * (double)least_bytes ||
                           rows[i].safe_slowdown > 1.1 * least_slowdown;
    qsort(rows, count, sizeof *rows, compare_equals);
}

/* The number of rows from the first on that have the same rank. */
static size_t rank_size(const struct advise_result *out, const struct advise_row *rows,
                        size_t count)
{
    uint64_t most_bytes = rows->safe_bytes + advise_uncertain_bytes(out, rows->safe_bytes);
    size_t size = 1;
    while (size < count && rows[size].candidate.own == rows->candidate.own &&
           is_too_slow(&rows[size]) == is_too_slow(rows) &&
           (rows->safe_bytes ? rows[size].safe_bytes && rows[size].safe_bytes <= most_bytes
                             : !rows[size].safe_bytes))
        size++;
    return size;
}

bool advise_does_as_recorded(const struct advise_row *row, const struct advise_row *given)
{
    const struct trial *a = &row->at, *b = &given->at;
    return row != given && row->candidate.own && !row->candidate.text[0] &&
           row->safe_bytes == given->safe_bytes && row->alone.begun == given->alone.begun &&
           row->alone.peak_reserved_bytes == given->alone.peak_reserved_bytes &&
           row->alone.driver_calls == given->alone.driver_calls && a->passed == b->passed &&
           a->sensitivity == b->sensitivity && a->event == b->event && a->flushes == b->flushes &&
           a->retries == b->retries && a->driver_calls == b->driver_calls;
}

/* Numbers the ranks, which are known by their first rows: the rank of a row is 1 + the number of
 * rows in better ranks, without those that do what was recorded. */
static void number_ranks(struct advise_result *out)
{
    const struct advise_row *given = advise_given(out);
    size_t before = 0, counted = 0;
    for (size_t i = 0; i < out->count; i++) {
        struct advise_row *row = &out->rows[i];
        if (i == out->own_count)
            counted = 0;
        if (row->rank == i)
            before = counted;
        row->rank = before + 1;
        counted += !given || !advise_does_as_recorded(row, given);
    }
}

/* Sorts the rows, the listed ones first, and counts and ranks these. */
static void rank(const struct advise_config *config, struct advise_result *out)
{
    out->uncertainty = uncertainty_of(config, out);
    qsort(out->rows, out->tried, sizeof *out->rows, compare_listed);
    out->count = out->own_count = 0;
    for (size_t i = 0; i < out->tried && out->rows[i].listed; i++) {
        out->count++;
        out->own_count += out->rows[i].candidate.own;
    }
    for (size_t i = 0, size; i < out->count; i += size) {
        size = rank_size(out, &out->rows[i], out->count - i);
        order_rank(&out->rows[i], size);
        for (size_t j = i; j < i + size; j++)
            out->rows[j].rank = i;
    }
    number_ranks(out);
}

/* The texts of all rows, and the release that each needs. */
static void write_settings(struct advise_result *out)
{
    struct torch_release known = {0, 0};
    for (size_t i = 0; i < out->tried; i++) {
        struct advise_row *row = &out->rows[i];
        const char *setting = row->alone.setting[0] ? row->alone.setting : row->at.setting;
        candidate_setting(&row->candidate, out->release, setting, row->setting,
                          sizeof row->setting);
        if (row->candidate.given)
            known = candidate_needs(row->setting);
    }
    for (size_t i = 0; i < out->tried && !out->release.major; i++) {
        struct advise_row *row = &out->rows[i];
        if (row->candidate.own)
            row->needs = candidate_needs(row->setting);
        if (torch_release_compare(row->needs, known) <= 0)
            row->needs = (struct torch_release){0, 0};
    }
}

/* Other allocators do not have the private pools that CUDA graphs need, so this program cannot use
 * them. */
static void disown_allocators(struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (candidates->at[i].text[0]) {
            candidates->at[i].own = false;
            candidates->at[i].text[0] = '\0';
            candidates->at[i].cost = NULL;
        }
}

#define ROUNDS 3 /* over all candidates */

static void count_done(void *argument)
{
    struct advising *self = argument;
    self->done++;
    if (self->config->tried)
        self->config->tried(self->config->tried_argument, self->done, ROUNDS * self->out->tried);
}

/* A row for each candidate. */
static enum ar_status make_rows(struct advising *self, struct ar_error *error)
{
    AR_CLOSED(candidates_close) struct candidates candidates = {0};
    struct advise_result *out = self->out;
    const char *given = out->given[0] ? out->given : "torch";
    const char *recorder = out->framework ? out->framework : "";
    AR_TRY(candidates_list(recorder, given, true, &candidates, error));
    if (!out->given[0]) /* no framework: all candidates are other policies */
        candidates.at[0].own = candidates.at[0].given = false;
    if (self->prepared.has_pools)
        disown_allocators(&candidates);
    out->rows = calloc(candidates.count, sizeof *out->rows);
    AR_TRY_MEMORY(out->rows, error, "the settings");
    for (size_t i = 0; i < candidates.count; i++)
        out->rows[i].candidate = candidates.at[i];
    out->tried = candidates.count;
    out->release = candidates.release;
    out->left_out_count = candidates.left_out_count;
    memcpy(out->left_out, candidates.left_out, sizeof out->left_out);
    return find_equal_decisions(self, error);
}

static enum ar_status run_round(struct advising *self,
                                enum ar_status (*act)(void *, size_t, struct trace_source *,
                                                      struct ar_error *),
                                struct ar_error *error)
{
    return crew_each(self->prepared.trace, self->config->jobs, self->out->tried, act, count_done,
                     self, error);
}

/* Settings of the recording that its own policy refuses are bad input: what then fits says nothing
 * about the program. */
static enum ar_status check_given(const struct advising *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->out->tried; i++) {
        const struct advise_row *row = &self->out->rows[i];
        struct trial trial;
        if (!row->candidate.given || row->alone.begun || row->alone.full)
            continue;
        /* The trace as it is has the numbers of events that a person finds in the file. */
        struct trial_setup plain = self->setup;
        plain.timed = plain.timeless = NULL;
        AR_TRY(
            trial_run(&plain, self->config->source, row->candidate.spec, 0, false, &trial, error));
        return ar_invalid(error, "the recorded settings cannot be: %s",
                          trial.begun ? row->alone.why : trial.why);
    }
    return AR_OK;
}

/* All candidates at the capacity in question, then the needs of single settings, then those of
 * pairs, which depend on their halves. */
static enum ar_status run_rounds(struct advising *self, struct ar_error *error)
{
    AR_TRY(run_round(self, try_at, error));
    AR_TRY(check_given(self, error));
    AR_TRY(check_all(self, error));
    for (size_t i = 0; i < self->out->tried; i++) {
        const struct advise_row *row = &self->out->rows[i];
        self->single_fits |= row->candidate.own && !candidate_is_pair(&row->candidate) &&
                             advise_fits(row) == ADVISE_FITS;
    }
    AR_TRY(run_round(self, search_single, error));
    copy_equal(self);
    return run_round(self, search_pair, error);
}

static void finish_rows(struct advising *self)
{
    struct advise_result *out = self->out;
    drop_repeated_text(out);
    out->all_tried = true;
    for (size_t i = 0; i < out->tried; i++)
        out->all_tried &= !out->rows[i].listed || is_cheap(self, &out->rows[i]);
    rank(self->config, out);
    write_settings(out);
    for (size_t i = 0; i < out->tried; i++) {
        struct advise_row *row = &out->rows[i];
        row->alone.event = prepared_event(&self->prepared, row->alone.event);
        row->at.event = prepared_event(&self->prepared, row->at.event);
    }
}

static void finish(struct advising *self)
{
    trace_close(self->prepared.trace);
    trace_close(self->unreleased.trace);
    tries_close(&self->tries);
    lean_close(&self->timed);
    lean_close(&self->timeless);
    free(self->same);
    session_device_end(&self->card);
    fidelity_result_close(&self->compared);
}

enum ar_status advise_run(const struct advise_config *config, struct advise_result *result,
                          struct ar_error *error)
{
    struct advising self = {.config = config, .out = result};
    *result = (struct advise_result){0};
    if (config->source->info.adaptive)
        return ar_invalid(
            error, "the requests of %s depend on the policy; write it to a file first with gen",
            config->source->info.name);
    if (!config->source->info.allocs && strcmp(config->source->info.format, "generator") != 0)
        return ar_invalid(error, "%s requests nothing of a GPU, so there is nothing to advise on",
                          config->source->info.name);
    enum ar_status status = prepare(&self, error);
    AR_THEN(status, set_up(&self, error));
    AR_THEN(status, make_rows(&self, error));
    AR_THEN(status, run_rounds(&self, error));
    if (!status)
        finish_rows(&self);
    finish(&self);
    if (status)
        advise_result_close(result);
    return status;
}

enum ar_status advise_predict(const struct advise_config *config, const char *policy,
                              uint64_t capacity_bytes, struct trial *out, struct ar_error *error)
{
    struct advise_result result = {0};
    struct advising self = {.config = config, .out = &result};
    enum ar_status status = prepare(&self, error);
    AR_THEN(status, set_up(&self, error));
    self.setup.as_limit = false;
    AR_THEN(status,
            trial_run(&self.setup, self.prepared.trace, policy, capacity_bytes, true, out, error));
    struct check list[CHECKS];
    size_t count = status ? 0 : checks_of(&self, list);
    for (size_t i = 0; i < count && !status; i++)
        status = list[i].run(&self.setup, list[i].trace, policy, capacity_bytes, out, error);
    out->event = prepared_event(&self.prepared, out->event);
    finish(&self);
    return status;
}

void advise_result_close(struct advise_result *result)
{
    free(result->rows);
    result->rows = NULL;
    result->count = result->own_count = 0;
}

enum advise_fit advise_fits(const struct advise_row *row)
{
    const struct trial *at = &row->at;
    return !at->begun        ? ADVISE_FITS_NOT
           : at->sensitivity ? ADVISE_UNSURE
           : at->passed      ? ADVISE_FITS
                             : ADVISE_FITS_NOT;
}

bool advise_none_fits(const struct advise_result *result)
{
    size_t count = result->own_count ? result->own_count : result->count;
    for (size_t i = 0; i < count; i++)
        if (advise_fits(&result->rows[i]) != ADVISE_FITS_NOT)
            return false;
    return true;
}

const struct advise_row *advise_given(const struct advise_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        if (result->rows[i].candidate.given)
            return &result->rows[i];
    return NULL;
}

/* Fewer changes first: the recorded setting, a single setting, a pair, another allocator. */
static int changes(const struct advise_row *row)
{
    return row->candidate.given                 ? 0
           : row->candidate.text[0]             ? 3
           : candidate_is_pair(&row->candidate) ? 2
                                                : 1;
}

const struct advise_row *advise_best(const struct advise_result *result)
{
    const struct advise_row *best = NULL;
    int fewest = INT_MAX;
    double least = 0; /* slowdown of rows with the fewest changes */
    for (size_t i = 0; i < result->own_count; i++) {
        const struct advise_row *row = &result->rows[i];
        if (advise_fits(row) != ADVISE_FITS || changes(row) > fewest)
            continue;
        if (changes(row) < fewest || row->at.slowdown < least)
            least = row->at.slowdown;
        fewest = changes(row);
    }
    for (size_t i = 0; i < result->own_count && !best; i++)
        if (advise_fits(&result->rows[i]) == ADVISE_FITS && changes(&result->rows[i]) == fewest &&
            result->rows[i].at.slowdown <= least * 1.01)
            best = &result->rows[i];
    return best;
}
