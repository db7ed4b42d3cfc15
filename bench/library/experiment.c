/* Experiments: a list of settings, from which each run, search and advice makes a suite and its
 * plan (bench/suite). What is found keeps that plan, so that its texts stay. */
#include <unistd.h>

#include "allocators/base/array.h"
#include "bench/library/parts.h"
#include "bench/report/pages.h"
#include "bench/report/result_writers.h"
#include "bench/report/sentence.h"
#include "bench/suite/run.h"
#include "sim/observer.h"
#include "sim/search/search.h"
#include "workloads/formats/formats.h"
#include "workloads/workload.h"

struct ar_experiment {
    const struct ar_library *library;
    struct text_list keys, values;
    ar_observer *observer;
    void *observer_argument;
};

/* A suite and the plan of it. */
struct planned {
    struct suite suite;
    struct plan plan;
    uint64_t capacity_bytes; /* for advise; 0: not set */
    bool as_limit;
};

/* ---- settings ------------------------------------------------------------------------------- */

enum ar_status ar_experiment_open(const struct ar_library *library, struct ar_experiment **out,
                                  struct ar_error *error)
{
    struct ar_experiment *self = calloc(1, sizeof *self);
    AR_TRY_MEMORY(self, error, "an experiment");
    self->library = library;
    *out = self;
    return AR_OK;
}

void ar_experiment_close(struct ar_experiment *self)
{
    if (!self)
        return;
    text_list_close(&self->keys);
    text_list_close(&self->values);
    free(self);
}

void ar_experiment_observe(struct ar_experiment *self, ar_observer *observer, void *argument)
{
    self->observer = observer;
    self->observer_argument = argument;
}

static enum ar_status set_capacity(struct planned *self, const char *key, const char *value,
                                   struct ar_error *error)
{
    enum ar_status status = ar_size_parse(value, &self->capacity_bytes, error);
    if (!status && !self->capacity_bytes)
        status = ar_invalid(error, "%s: a capacity of 0 bytes holds nothing", key);
    self->as_limit = strcmp(key, "limit") == 0;
    return status;
}

/* What is asked of an experiment, in bits; and what each key is for. */
enum { ASKED_RUNS = 1, ASKED_CAPACITIES = 2, ASKED_ADVICE = 4, ASKED_ANY = 7 };

static const struct {
    const char *name;
    unsigned of;
} keys[] = {{"policy", ASKED_RUNS | ASKED_CAPACITIES},
            {"workload", ASKED_ANY},
            {"device", ASKED_ANY},
            {"capacity", ASKED_ADVICE},
            {"limit", ASKED_ADVICE},
            {"name", ASKED_RUNS},
            {"capacities", ASKED_RUNS},
            {"frees", ASKED_ANY},
            {"host", ASKED_ANY},
            {"metrics", ASKED_RUNS},
            {"replicates", ASKED_RUNS | ASKED_CAPACITIES},
            {"reps", ASKED_RUNS},
            {"on-fail", ASKED_RUNS},
            {"verify", ASKED_RUNS},
            {"seed", ASKED_ANY},
            {"jobs", ASKED_CAPACITIES | ASKED_ADVICE}};

static enum ar_status apply(struct planned *self, const char *key, const char *value,
                            unsigned asked, struct ar_error *error)
{
    const char *names[AR_COUNT(keys)];
    size_t at = AR_COUNT(keys);
    for (size_t i = 0; i < AR_COUNT(keys); i++) {
        names[i] = keys[i].name;
        at = strcmp(names[i], key) == 0 ? i : at;
    }
    if (at == AR_COUNT(keys))
        return ar_name_unknown("an experiment has no key", key, names, at, NULL, error);
    if (!(keys[at].of & asked))
        return ar_invalid(error, "%s has no effect on %s", key,
                          asked == ASKED_ADVICE       ? "advice; leave it out"
                          : asked == ASKED_CAPACITIES ? "a search of capacities; leave it out"
                          : strcmp(key, "jobs") == 0  ? "runs, which are one after the other"
                                                      : "runs; a device has a capacity, such as "
                                                        "sim:capacity=8GiB");
    if (strcmp(key, "policy") == 0)
        return suite_add_policy(&self->suite, value, error);
    if (strcmp(key, "workload") == 0)
        return text_list_add(&self->suite.workloads, value, error);
    if (strcmp(key, "capacity") == 0 || strcmp(key, "limit") == 0)
        return set_capacity(self, key, value, error);
    return suite_set(&self->suite, key, value, error);
}

static void planned_close(struct planned *self)
{
    plan_close(&self->plan);
    suite_close(&self->suite);
}

enum ar_status ar_experiment_set(struct ar_experiment *self, const char *key, const char *value,
                                 struct ar_error *error)
{
    AR_CLOSED(planned_close) struct planned trial = {.suite = SUITE_DEFAULTS};
    AR_TRY(apply(&trial, key, value, ASKED_ANY, error));
    AR_TRY(text_list_add(&self->keys, key, error));
    enum ar_status status = text_list_add(&self->values, value, error);
    if (status)
        free(self->keys.items[--self->keys.count]);
    return status;
}

/* The suite of an experiment, whose texts the plan points into: it does not move. */
static enum ar_status settle(struct planned *self, const struct ar_experiment *experiment,
                             unsigned asked, struct ar_error *error)
{
    self->suite = (struct suite)SUITE_DEFAULTS;
    self->suite.catalog = &experiment->library->catalog;
    self->suite.in_process = true;
    self->suite.once = true;
    for (size_t i = 0; i < experiment->keys.count; i++)
        AR_TRY(apply(self, experiment->keys.items[i], experiment->values.items[i], asked, error));
    if (!self->suite.workloads.count)
        return ar_invalid(error, "the experiment has no workload; set one");
    return AR_OK;
}

static enum ar_status make_plan(struct planned *self, const struct ar_experiment *experiment,
                                unsigned asked, struct ar_error *error)
{
    AR_TRY(settle(self, experiment, asked, error));
    if (!self->suite.policies.count)
        return ar_invalid(error, "the experiment has no policy; set one");
    return plan_make(&self->plan, &self->suite, error);
}

/* ---- runs ----------------------------------------------------------------------------------- */

struct ar_results {
    struct planned planned;
    struct run_record *records; /* of the plan's runs */
    struct environment environment;
};

/* Who is told of the events of one run. */
struct observed {
    const struct ar_experiment *experiment;
    size_t row;
};

static enum ar_status tell(void *argument, const struct observer_event *event,
                           struct ar_error *error)
{
    const struct observed *self = argument;
    if (event->kind == OBSERVER_CHANGE) /* not told to programs */
        return AR_OK;
    const struct ar_run_event told = {
        .kind = (enum ar_run_event_kind)event->kind,
        .stream = event->stream,
        .pool = event->pool,
        .row = (uint32_t)self->row,
        .event = event->event,
        .now_ns = event->now_ns,
        .address = event->address,
        .bytes = event->bytes,
        .free_bytes = event->free_bytes,
        .tag = event->kind == OBSERVER_MARK ? NULL : event->tag,
        .text = event->kind == OBSERVER_MARK   ? event->tag
                : event->kind == OBSERVER_CALL ? event->call
                                               : NULL,
        .live_bytes = event->totals->live_bytes,
        .granted_bytes = event->totals->granted_bytes,
        .reserved_bytes = event->totals->reserved_bytes,
        .physical_bytes = event->physical_bytes,
    };
    return self->experiment->observer(self->experiment->observer_argument, &told, error);
}

_Static_assert((int)AR_RUN_FAILED == (int)OBSERVER_FAILED &&
                   (int)AR_RUN_SEGMENT_UNMAP == (int)OBSERVER_SEGMENT_UNMAP &&
                   (int)AR_RUN_MARK == (int)OBSERVER_MARK,
               "the kinds are those of an observer");

static enum ar_status run_row(struct ar_results *self, const struct ar_experiment *experiment,
                              struct run_worker *worker, size_t row, struct ar_error *error)
{
    struct plan_run run = self->planned.plan.runs[row];
    struct observed observed = {experiment, row};
    const struct observer observer = {.argument = &observed, .memory = tell};
    if (experiment->observer)
        run.observer = &observer;
    return run_execute(worker, &self->planned.plan, &run, &self->records[row], error);
}

enum ar_status ar_experiment_run(const struct ar_experiment *experiment, struct ar_results **out,
                                 struct ar_error *error)
{
    struct ar_error ignored = {{0}};
    struct run_worker worker = {0};
    struct ar_results *self = calloc(1, sizeof *self);
    error = error ? error : &ignored;
    AR_TRY_MEMORY(self, error, "an experiment");
    enum ar_status status = make_plan(&self->planned, experiment, ASKED_RUNS, error);
    const size_t count = self->planned.plan.run_count;
    if (!status && !(self->records = calloc(count + 1, sizeof *self->records)))
        status = ar_no_memory(error, "an experiment");
    for (size_t i = 0; i < count && !status; i++)
        status = run_row(self, experiment, &worker, i, error);
    trace_close(worker.source);
    if (status) {
        ar_results_close(self);
        return status;
    }
    environment_capture(&self->environment, 0, NULL, self->planned.suite.seed);
    *out = self;
    return AR_OK;
}

void ar_results_close(struct ar_results *self)
{
    if (!self)
        return;
    free(self->records);
    planned_close(&self->planned);
    free(self);
}

size_t ar_results_count(const struct ar_results *self)
{
    return self->planned.plan.run_count;
}

enum ar_status ar_results_row(const struct ar_results *self, size_t index, struct ar_row *out,
                              size_t out_bytes, struct ar_error *error)
{
    AR_TRY(library_row(index, ar_results_count(self), error));
    const struct run_record *record = &self->records[index];
    const struct ar_row value = {
        .policy = record->policy_spec,
        .workload = record->workload_spec,
        .device = record->device_spec,
        .workload_name = record->workload.name,
        .frees = replay_frees_name(record->frees),
        .host = replay_host_name(record->host),
        .seed = record->seed,
        .repetition = record->repetition,
        .capacity_bytes = record->device.capacity_bytes,
        .passed = record->passed,
        .outcome = record->end == RUN_PLAYED ? "played" : "not started",
        .cause = run_record_cause(record),
        .detail = record->detail,
        .first_failed_event = record->first_failed_event,
        .first_failed_bytes = record->first_failed_bytes,
    };
    library_fill(out, out_bytes, &value, sizeof value);
    return AR_OK;
}

enum ar_status ar_results_metric(const struct ar_results *self, size_t index, const char *name,
                                 struct ar_value *out, struct ar_error *error)
{
    const char *names[METRIC_COUNT];
    AR_TRY(library_row(index, ar_results_count(self), error));
    for (int i = 0; i < METRIC_COUNT; i++) {
        names[i] = metric_info((enum metric)i)->name;
        if (strcmp(names[i], name) != 0)
            continue;
        const struct metric_value *value = &self->records[index].metrics.at[i];
        *out = (struct ar_value){
            .kind = value->kind == METRIC_INTEGER ? AR_VALUE_INTEGER
                    : value->kind == METRIC_REAL  ? AR_VALUE_REAL
                                                  : AR_VALUE_NULL,
            .integer = value->kind == METRIC_INTEGER ? value->integer : 0,
            .real = metric_number(&self->records[index].metrics, (enum metric)i, 0),
        };
        return AR_OK;
    }
    const char *near = ar_nearest_name(name, names, METRIC_COUNT);
    return ar_invalid(error, "there is no metric \"%.60s\"%s%s%s", name,
                      near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* Ends a text that was written through open_memstream. */
static enum ar_status finish_text(FILE *stream, char **text, char **out, struct ar_error *error)
{
    AR_TRY_MEMORY(text_end(stream, text), error, "an experiment");
    *out = *text;
    return AR_OK;
}

enum ar_status ar_results_json(const struct ar_results *self, char **out, struct ar_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = NULL;
    struct results results;
    enum ar_status status = results_open(&results, self->records, ar_results_count(self), error);
    results.environment = &self->environment;
    results.suite = self->planned.suite.name;
    if (!status && !(stream = open_memstream(&text, &bytes)))
        status = ar_no_memory(error, "an experiment");
    if (!status)
        results_json_write(stream, &results);
    results_close(&results);
    return status ? status : finish_text(stream, &text, out, error);
}

/* ---- capacities ----------------------------------------------------------------------------- */

struct found {
    struct capacity_result result;
    char why[256];
};

struct ar_capacities {
    struct planned planned;
    struct found *found; /* of the plan's runs */
};

_Static_assert(sizeof(struct ar_capacity_gap) == sizeof(struct capacity_gap),
               "the same two fields");

enum ar_status ar_experiment_capacity(const struct ar_experiment *experiment,
                                      struct ar_capacities **out, struct ar_error *error)
{
    struct ar_error ignored = {{0}};
    struct ar_capacities *self = calloc(1, sizeof *self);
    error = error ? error : &ignored;
    AR_TRY_MEMORY(self, error, "an experiment");
    enum ar_status refusal, status = make_plan(&self->planned, experiment, ASKED_CAPACITIES, error);
    const struct plan *plan = &self->planned.plan;
    if (!status && !(self->found = calloc(plan->run_count + 1, sizeof *self->found)))
        status = ar_no_memory(error, "an experiment");
    for (size_t i = 0; i < plan->run_count && !status; i++)
        status = run_find_capacity(plan, &plan->runs[i], &self->found[i].result, &refusal,
                                   self->found[i].why, sizeof self->found[i].why, error);
    if (status)
        ar_capacities_close(self);
    else
        *out = self;
    return status;
}

void ar_capacities_close(struct ar_capacities *self)
{
    if (!self)
        return;
    for (size_t i = 0; self->found && i < self->planned.plan.run_count; i++)
        capacity_result_close(&self->found[i].result);
    free(self->found);
    planned_close(&self->planned);
    free(self);
}

size_t ar_capacities_count(const struct ar_capacities *self)
{
    return self->planned.plan.run_count;
}

enum ar_status ar_capacities_row(const struct ar_capacities *self, size_t index,
                                 struct ar_capacity *out, size_t out_bytes, struct ar_error *error)
{
    const struct plan *plan = &self->planned.plan;
    AR_TRY(library_row(index, plan->run_count, error));
    const struct plan_run *run = &plan->runs[index];
    const struct capacity_result *result = &self->found[index].result;
    const struct ar_capacity value = {
        .policy = plan->policies[run->policy].text,
        .workload = plan->workloads[run->workload].text,
        .device = plan->devices.items[run->device],
        .frees = replay_frees_name(run->frees),
        .seed = run->seed,
        .live_peak_bytes = result->live_peak_bytes,
        .first_pass_bytes = result->first_pass_bytes,
        .safe_bytes = result->safe_bytes,
        .no_flush_bytes = result->no_flush_bytes,
        .no_retry_bytes = result->no_retry_bytes,
        .runs = result->runs,
        .gaps = (const struct ar_capacity_gap *)(const void *)result->gaps,
        .gap_count = result->gap_count,
        .why = self->found[index].why,
    };
    library_fill(out, out_bytes, &value, sizeof value);
    return AR_OK;
}

/* ---- advice --------------------------------------------------------------------------------- */

/* On a workload, or on one GPU of it. */
struct advice_part {
    char *text;
    struct trace_source *source;
    struct advise_result result;
    enum replay_frees frees;
};

struct ar_advice {
    struct planned planned; /* without a plan */
    struct advice_part *parts;
    size_t part_count, part_room;
    const struct ar_spec *device; /* while it is made */
    bool card_asked;
};

/* What the device says of the card in question counts unless `capacity` or `limit` is set. */
static enum ar_status read_device(struct planned *self, const struct ar_spec *device,
                                  bool *card_asked, struct ar_error *error)
{
    const struct ar_spec_link *link = &device->links[device->link_count - 1];
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < link->pair_count && !status; i++) {
        *card_asked = *card_asked || strcmp(link->pairs[i].key, "profile") == 0;
        if (strcmp(link->pairs[i].key, "capacity") == 0 && !self->capacity_bytes)
            status = ar_size_parse(link->pairs[i].value, &self->capacity_bytes, error);
    }
    *card_asked = *card_asked && !self->capacity_bytes;
    return status;
}

/* A workload_take. */
static enum ar_status advise_part(void *argument, struct workload_part *part,
                                  struct ar_error *error)
{
    struct ar_advice *self = argument;
    const struct suite *suite = &self->planned.suite;
    struct advice_part made = {.text = strdup(part->text), .source = part->source};
    made.frees = replay_frees_nearest(&part->source->info, suite->frees);
    const struct advise_config config = {
        .source = part->source,
        .device = self->device,
        .capacity_bytes = self->planned.capacity_bytes,
        .as_limit = self->planned.as_limit,
        .card_asked = self->card_asked,
        .frees = made.frees,
        .host = suite->host,
        .seed = suite->seed,
        .jobs = plan_jobs(&(struct plan){.suite = suite}),
    };
    enum ar_status status = AR_OK;
    if (!made.text ||
        !ar_array_make_room(&self->parts, self->part_count, &self->part_room, sizeof made))
        status = ar_no_memory(error, "an experiment");
    AR_THEN(status, advise_run(&config, &made.result, error));
    if (status) {
        free(made.text);
        return status;
    }
    self->parts[self->part_count++] = made;
    part->source = NULL;
    return AR_OK;
}

static enum ar_status advise(struct ar_advice *self, const struct ar_spec *device,
                             struct ar_error *error)
{
    const struct suite *suite = &self->planned.suite;
    const struct workload_choice choice = {.gpu = suite->gpu_given ? &suite->gpu : NULL,
                                           .recording = true};
    self->device = device;
    enum ar_status status = read_device(&self->planned, device, &self->card_asked, error);
    AR_THEN(status, workload_each(suite->workloads.items[0], &choice, advise_part, self, error));
    self->device = NULL;
    return status;
}

enum ar_status ar_experiment_advise(const struct ar_experiment *experiment, struct ar_advice **out,
                                    struct ar_error *error)
{
    struct ar_error ignored = {{0}};
    AR_CLOSED(ar_spec_close) struct ar_spec device = {0};
    struct ar_advice *self = calloc(1, sizeof *self);
    error = error ? error : &ignored;
    AR_TRY_MEMORY(self, error, "an experiment");
    const struct suite *suite = &self->planned.suite;
    enum ar_status status = settle(&self->planned, experiment, ASKED_ADVICE, error);
    if (!status && (suite->workloads.count != 1 || suite->devices.count > 1))
        status = ar_invalid(error, "advice is for one workload and one device");
    AR_THEN(status,
            ar_spec_parse(suite->devices.count ? suite->devices.items[0] : "sim", &device, error));
    device.catalog = suite->catalog;
    AR_THEN(status, advise(self, &device, error));
    if (status)
        ar_advice_close(self);
    else
        *out = self;
    return status;
}

void ar_advice_close(struct ar_advice *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->part_count; i++) {
        advise_result_close(&self->parts[i].result);
        trace_close(self->parts[i].source);
        free(self->parts[i].text);
    }
    free(self->parts);
    planned_close(&self->planned);
    free(self);
}

size_t ar_advice_count(const struct ar_advice *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->part_count; i++)
        count += self->parts[i].result.count;
    return count;
}

enum ar_status ar_advice_row(const struct ar_advice *self, size_t index, struct ar_setting *out,
                             size_t out_bytes, struct ar_error *error)
{
    AR_TRY(library_row(index, ar_advice_count(self), error));
    const struct advice_part *part = self->parts;
    for (; index >= part->result.count; part++)
        index -= part->result.count;
    const struct advise_row *row = &part->result.rows[index];
    const enum advise_fit fit = advise_fits(row);
    const struct ar_setting value = {
        .policy = row->candidate.spec,
        .setting = advise_page_is_default(row) ? "" : row->setting,
        .cost = row->candidate.cost,
        .own = row->candidate.own,
        .given = row->candidate.given,
        .best = advise_best(&part->result) == row,
        .fit = fit == ADVISE_FITS       ? AR_FITS
               : fit == ADVISE_FITS_NOT ? AR_FITS_NOT
                                        : AR_FIT_UNSURE,
        .safe_bytes = row->safe_bytes,
        .slowdown = row->at.slowdown,
        .peak_reserved_bytes = row->alone.peak_reserved_bytes,
        .peak_physical_bytes = row->alone.peak_physical_bytes,
        .workload = part->text,
        .rank = row->rank,
        .needs_major = row->needs.major,
        .needs_minor = row->needs.minor,
    };
    library_fill(out, out_bytes, &value, sizeof value);
    return AR_OK;
}

enum ar_status ar_advice_json(const struct ar_advice *self, char **out, struct ar_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    AR_FREED struct advise_page *pages = calloc(self->part_count + 1, sizeof *pages);
    FILE *stream = pages ? open_memstream(&text, &bytes) : NULL;
    AR_TRY_MEMORY(stream, error, "an experiment");
    for (size_t i = 0; i < self->part_count; i++) {
        const struct advice_part *part = &self->parts[i];
        pages[i] = (struct advise_page){.name = part->source->info.name,
                                        .path = part->text,
                                        .recorder = part->source->info.recorder,
                                        .format = part->source->info.format,
                                        .frees = part->frees,
                                        .result = &part->result,
                                        .source = part->source};
    }
    (void)advise_json_write(stream, pages, self->part_count, NULL, error); /* fails for batches */
    return finish_text(stream, &text, out, error);
}
