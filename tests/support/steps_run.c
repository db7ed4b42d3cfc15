/* Whole runs in steps: `run POLICY on DEVICE .. of WORKLOAD`, and the figures of the last one. */
#include "sim/experiment/session.h"
#include "sim/explain/explain.h"
#include "sim/search/search.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/gen_rig.h"
#include "tests/support/rig.h"
#include "tests/support/steps_state.h"
#include "tests/support/tiny_trace.h"
#include "tests/support/trace_rig.h"

enum { MOST_ROWS = 512, MOST_SAMPLES = 8192, EVENTS = 1 << 20 };

/* The last run. */
static struct {
    struct replay_result result;
    struct replay_row rows[MOST_ROWS];
    struct replay_sample samples[MOST_SAMPLES];
    size_t row_count, sample_count;
    bool there;
    uint64_t starts[64]; /* of the segments of a fake device */
    char events[EVENTS];
    size_t events_length;
} last;

static enum ar_status keep_row(void *argument, const struct replay_row *row, struct ar_error *error)
{
    if (last.row_count < MOST_ROWS)
        last.rows[last.row_count++] = *row;
    return AR_OK;
}

static enum ar_status keep_sample(void *argument, const struct replay_sample *sample,
                                  struct ar_error *error)
{
    if (last.sample_count < MOST_SAMPLES)
        last.samples[last.sample_count++] = *sample;
    return AR_OK;
}

/* What stands before ` of `. */
struct wanted {
    char policy[LINE], device[LINE], pinned[LINE];
    uint64_t cap_bytes, unit_bytes;
    enum replay_frees frees;
    enum replay_host host;
    bool stop, fake, clocked, verify;
};

static struct wanted read_wanted(struct steps *s)
{
    struct wanted wanted = {.cap_bytes = UINT64_MAX};
    steps_word(s, wanted.policy, sizeof wanted.policy);
    if (!steps_take(s, "on"))
        steps_wrong(s, "on what?");
    wanted.fake = steps_take(s, "fake");
    if (!wanted.fake)
        steps_word(s, wanted.device, sizeof wanted.device);
    while (!steps_take(s, "of")) {
        if (steps_take(s, "cap="))
            wanted.cap_bytes = steps_value(s);
        else if (steps_take(s, "unit="))
            wanted.unit_bytes = steps_value(s);
        else if (steps_take(s, "pinned="))
            steps_word(s, wanted.pinned, sizeof wanted.pinned);
        else if (steps_take(s, "ordered"))
            wanted.frees = REPLAY_ORDERED;
        else if (steps_take(s, "stop"))
            wanted.stop = true;
        else if (steps_take(s, "at-once"))
            wanted.frees = REPLAY_AT_ONCE;
        else if (steps_take(s, "recorded"))
            wanted.frees = REPLAY_RECORDED;
        else if (steps_take(s, "timed"))
            wanted.host = REPLAY_HOST_RECORDED;
        else if (steps_take(s, "open"))
            wanted.host = REPLAY_HOST_OPEN;
        else if (steps_take(s, "clocked"))
            wanted.clocked = true;
        else if (steps_take(s, "verify"))
            wanted.verify = true;
        else
            steps_wrong(s, "no such word of a run: %s", s->at);
    }
    return wanted;
}

/* `events a,0,8 ..`, `events` alone (those gathered by `event`), or a workload. */
static const char *read_events(struct steps *s)
{
    static char text[4 * LINE];
    if (!steps_take(s, "events"))
        return NULL;
    if (steps_at_end(s))
        return last.events;
    steps_until_arrow(s, text, sizeof text);
    return text;
}

static void run_fake(struct steps *s, const struct wanted *wanted)
{
    const char *events = read_events(s);
    if (!events)
        steps_wrong(s, "a fake device runs events");
    rig_open(&rig, wanted->policy, wanted->cap_bytes, events);
    const struct observer observer = {.row = keep_row, .sample = keep_sample};
    rig.config.observer = &observer;
    rig.config.frees = wanted->frees;
    rig.config.host = wanted->host;
    rig.config.stop_on_failure = wanted->stop;
    rig.config.unit_bytes = wanted->unit_bytes;
    enum ar_status status = replay_run(&rig.config, &rig.result, &rig.error);
    last.result = rig.result;
    for (size_t i = 0; i < COUNT(last.starts); i++)
        last.starts[i] = rig.device->memory.segments[i].address;
    const struct ar_error error = rig.error;
    rig_close(&rig);
    steps_ended(s, status, status ? error.text : "");
}

/* The experiment of the line; the caller closes it. */
static void open_experiment(struct steps *s, const struct wanted *wanted, struct ar_spec *pinned,
                            struct experiment_rig *real)
{
    const char *events = read_events(s);
    if (events) {
        experiment_rig_over(real, wanted->policy, wanted->device, tiny_trace(events));
    } else {
        char workload[4 * LINE];
        steps_until_arrow(s, workload, sizeof workload);
        experiment_rig_open(real, wanted->policy, wanted->device, workload);
    }
    if (wanted->pinned[0]) {
        assert_ok(ar_spec_parse(wanted->pinned, pinned, &test_error));
        real->experiment.pinned = pinned;
    }
    real->experiment.frees = wanted->frees;
    real->experiment.host = wanted->host;
    real->experiment.measure_time = wanted->clocked;
    real->experiment.verify = wanted->verify;
    real->experiment.stop_on_failure = wanted->stop;
}

static void run_experiment(struct steps *s, const struct wanted *wanted)
{
    CLOSED(experiment_rig_close) struct experiment_rig real;
    struct ar_spec pinned = {0};
    open_experiment(s, wanted, &pinned, &real);
    const struct observer observer = {.row = keep_row, .sample = keep_sample};
    real.experiment.observer = &observer;
    enum ar_status status =
        experiment_run(&real.experiment, &real.result, &real.props, &real.error);
    last.result = real.result;
    ar_spec_close(&pinned);
    steps_ended(s, status, real.error.text);
}

/* `capacity` and `explain`, whose results stay until the next one. */
static struct capacity_result capacity;
static struct explain_result explained;

static void find_capacity(struct steps *s)
{
    CLOSED(experiment_rig_close) struct experiment_rig real;
    const struct wanted wanted = read_wanted(s);
    open_experiment(s, &wanted, NULL, &real);
    capacity_result_close(&capacity);
    assert_ok(capacity_find(&real.experiment, 1, &capacity, &test_error));
}

static void explain(struct steps *s, bool whole)
{
    CLOSED(experiment_rig_close) struct experiment_rig real;
    const struct wanted wanted = read_wanted(s);
    open_experiment(s, &wanted, NULL, &real);
    explain_result_close(&explained);
    assert_ok(whole ? explain_run(&real.experiment, 2, &explained, &test_error)
                    : explain_failure(&real.experiment, &explained, &test_error));
    last.result.cause = explained.cause;
    last.result.passed = explained.passed;
    last.there = true;
}

/* `helps SPEC`: 2 if it is a setting of the program's own allocator, 1 if another policy, 0 if it
 * does not help. */
static void helps(struct steps *s)
{
    uint64_t found = 0;
    char spec[LINE];
    steps_word(s, spec, sizeof spec);
    for (size_t i = 0; i < explained.rerun_count; i++)
        if (strcmp(explained.reruns[i].candidate.spec, spec) == 0)
            found = 1 + explained.reruns[i].candidate.own;
    steps_answered(s, found);
}

static void run(struct steps *s)
{
    const struct wanted wanted = read_wanted(s);
    steps_twin_begin(); /* figures are of this run */
    last.row_count = last.sample_count = 0;
    last.there = true;
    if (wanted.fake)
        run_fake(s, &wanted);
    else
        run_experiment(s, &wanted);
}

const char *steps_events(void)
{
    return last.events;
}

/* `survey of events ..`: what the passes before a run find; `lifetimes [recorded] of events ..`. */
static struct {
    uint64_t median_bytes, peak_live_bytes;
    struct ar_policy_lifetime lives[8];
} surveyed;

static void survey(struct steps *s)
{
    if (!steps_take(s, "of"))
        steps_wrong(s, "of what?");
    CLOSED(close_trace) struct trace_source *source = tiny_trace(read_events(s));
    assert_ok(survey_median(source, &surveyed.median_bytes, &test_error));
    struct survey_peak peak;
    assert_ok(survey_peak_live(source, UINT64_MAX, &peak, &test_error));
    surveyed.peak_live_bytes = peak.bytes;
}

static void lifetimes(struct steps *s)
{
    const enum replay_frees frees = steps_take(s, "recorded") ? REPLAY_RECORDED : REPLAY_ORDERED;
    (void)steps_take(s, "ordered");
    FREED struct ar_policy_lifetime *lives = NULL;
    size_t count = 0;
    if (!steps_take(s, "of"))
        steps_wrong(s, "of what?");
    CLOSED(close_trace) struct trace_source *source = tiny_trace(read_events(s));
    assert_ok(survey_lifetimes(source, frees, &lives, &count, &test_error));
    assert_in_range(count, 1, COUNT(surveyed.lives));
    memset(surveyed.lives, 0, sizeof surveyed.lives);
    memcpy(surveyed.lives, lives, count * sizeof *lives);
}

static void add_event(struct steps *s)
{
    last.events_length +=
        (size_t)snprintf(last.events + last.events_length, EVENTS - last.events_length, "%s%s",
                         last.events_length ? " " : "", steps_rest(s));
    assert_true(last.events_length < EVENTS - LINE);
}

static bool metric_figure(const char *name, bool millionths, uint64_t *value)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_value *found = &last.result.metrics.at[i];
        if (strcmp(metric_info((enum metric)i)->name, name) != 0)
            continue;
        *value = found->kind == METRIC_INTEGER ? found->integer * (millionths ? 1000000 : 1)
                 : found->kind == METRIC_REAL  ? (uint64_t)(found->real * 1e6 + 0.5)
                                               : UINT64_MAX;
        return found->kind != METRIC_REAL || millionths;
    }
    return false;
}

static const struct steps_field of_rows[] = {FIELD(replay_row, event),
                                             FIELD(replay_row, id),
                                             FIELD(replay_row, requested_bytes),
                                             FIELD(replay_row, granted_bytes),
                                             FIELD(replay_row, segment),
                                             FIELD(replay_row, offset),
                                             FIELD(replay_row, granted_total_bytes),
                                             FIELD(replay_row, reserved_bytes)},
                                of_samples[] = {FIELD(replay_sample, time_ns),
                                                FIELD(replay_sample, weight),
                                                FIELD(replay_sample, live_bytes),
                                                FIELD(replay_sample, reserved_bytes),
                                                FIELD(replay_sample, physical_bytes),
                                                FIELD(replay_sample, free_bytes),
                                                FIELD(replay_sample, largest_free_block_bytes)};

/* row.3.FIELD: of `base`, an array of `count` elements. */
static bool element(const char *name, const struct steps_field *fields, size_t field_count,
                    const void *base, size_t count, size_t bytes, uint64_t *value)
{
    char *dot;
    size_t index = strtoul(name, &dot, 10);
    for (size_t i = 0; *dot == '.' && index < count && i < field_count; i++)
        if (strcmp(dot + 1, fields[i].name) == 0) {
            *value = 0;
            memcpy(value, (const char *)base + index * bytes + fields[i].offset, fields[i].bytes);
            return true;
        }
    return false;
}

/* row.N.address on a fake device, whose segments are neighbours; max: no block. */
static bool address_of(const char *name, uint64_t *value)
{
    size_t index = strtoul(name, NULL, 10);
    if (index >= last.row_count)
        return false;
    const struct replay_row *row = &last.rows[index];
    *value = row->segment < 0 ? UINT64_MAX : last.starts[row->segment % 64] + (uint64_t)row->offset;
    return true;
}

static struct gen_rig_sums sums; /* of the last generator that was pulled */

static void pull(struct steps *s)
{
    CLOSED(close_trace) struct trace_source *source = gen_rig_open(steps_rest(s));
    gen_rig_pull(source, &sums);
}

static struct trace_info info; /* of the last trace that was read */

static void read_trace(struct steps *s)
{
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(steps_rest(s));
    info = source->info;
}

static const struct steps_field of_trace[] = {FIELD(trace_info, allocs), FIELD(trace_info, probes),
                                              FIELD(trace_info, streams), FIELD(trace_info, steps)};

static const struct steps_field of_gen[] = {
    {"live", offsetof(struct gen_rig_sums, live_bytes), 8, false},
    {"peak_live", offsetof(struct gen_rig_sums, peak_live_bytes), 8, false},
    {"outside", offsetof(struct gen_rig_sums, outside_bytes), 8, false},
    FIELD(gen_rig_sums, events),
    FIELD(gen_rig_sums, allocs),
    FIELD(gen_rig_sums, probes),
    FIELD(gen_rig_sums, frees),
    FIELD(gen_rig_sums, kernels),
    FIELD(gen_rig_sums, kernel_ns),
    FIELD(gen_rig_sums, steps),
    FIELD(gen_rig_sums, free_requests),
    FIELD(gen_rig_sums, uses),
    FIELD(gen_rig_sums, waits),
    FIELD(gen_rig_sums, syncs),
    FIELD(gen_rig_sums, trims),
    FIELD(gen_rig_sums, streams)};

/* gen.FIELD; gen.STEP.live, .peak, .outside, .bin.LOG2. */
static bool gen_figure(const char *name, uint64_t *value)
{
    char *dot;
    size_t step = strtoul(name, &dot, 10) % GEN_RIG_STEPS;
    if (dot == name)
        for (size_t i = 0; i < COUNT(of_gen); i++)
            if (strcmp(name, of_gen[i].name) == 0) {
                memcpy(value, (const char *)&sums + of_gen[i].offset, sizeof *value);
                return true;
            }
    if (strcmp(dot, ".live") == 0)
        *value = sums.step_live_bytes[step];
    else if (strcmp(dot, ".peak") == 0)
        *value = sums.step_peak_bytes[step];
    else if (strcmp(dot, ".outside") == 0)
        *value = sums.step_outside_bytes[step];
    else if (strncmp(dot, ".bin.", 5) == 0)
        *value = sums.bin_bytes[step][strtoul(dot + 5, NULL, 10) % GEN_RIG_BINS];
    else
        return false;
    return true;
}

static const struct steps_field of_capacity[] = {FIELD(capacity_result, live_peak_bytes),
                                                 FIELD(capacity_result, first_pass_bytes),
                                                 FIELD(capacity_result, safe_bytes),
                                                 FIELD(capacity_result, no_flush_bytes),
                                                 FIELD(capacity_result, no_retry_bytes),
                                                 FIELD(capacity_result, runs),
                                                 FIELD(capacity_result, gap_count)},
                                of_gaps[] = {FIELD(capacity_gap, from_bytes),
                                             FIELD(capacity_gap, to_bytes)},
                                of_explained[] = {FIELD(explain_result, event),
                                                  FIELD(explain_result, id),
                                                  FIELD(explain_result, bytes),
                                                  FIELD(explain_result, step),
                                                  FIELD(explain_result, kind),
                                                  FIELD(explain_result, totals.live_bytes),
                                                  FIELD(explain_result, ladder.again),
                                                  FIELD(explain_result, ladder.obtainable_bytes),
                                                  FIELD(explain_result, ladder.cached_bytes),
                                                  FIELD(explain_result, ladder.same_bytes),
                                                  FIELD(explain_result, ladder.other_bytes),
                                                  {"servable_none",
                                                   offsetof(struct explain_result, servable_bytes),
                                                   8, false},
                                                  FIELD(explain_result, capacity_bytes),
                                                  FIELD(explain_result, limit_bytes),
                                                  FIELD(explain_result, free_blocks),
                                                  FIELD(explain_result, free_block_bytes),
                                                  FIELD(explain_result, largest_free_block_bytes),
                                                  FIELD(explain_result, largest_same_bytes),
                                                  FIELD(explain_result, largest_other_bytes),
                                                  FIELD(explain_result, stretch_blocks),
                                                  FIELD(explain_result, stretch_live_bytes),
                                                  FIELD(explain_result, pinning_block_count),
                                                  FIELD(explain_result, live_peak_bytes),
                                                  FIELD(explain_result, rerun_count),
                                                  FIELD(explain_result, pool_limit_bytes),
                                                  FIELD(explain_result, pool_limit_passes),
                                                  FIELD(explain_result, can_trim),
                                                  FIELD(explain_result, more_capacity_bytes)},
                                of_pins[] = {FIELD(explain_pinning_block, bytes),
                                             FIELD(explain_pinning_block, event),
                                             FIELD(explain_pinning_block, age_events),
                                             FIELD(explain_pinning_block, age_bytes),
                                             FIELD(explain_pinning_block, free_bytes),
                                             FIELD(explain_pinning_block, in_stretch)},
                                of_indices[] = {FIELD(explain_indices, external),
                                                FIELD(explain_indices, unusable),
                                                FIELD(explain_indices, fragmentation)};

/* NAME.FIELD or NAME.N.FIELD of one struct, or of an array of them. */
static bool one(const char *name, const char *prefix, const struct steps_field *fields,
                size_t count, const void *base, uint64_t *value)
{
    char text[NAME];
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0)
        return false;
    snprintf(text, sizeof text, "0.%s", name + length);
    return element(text, fields, count, base, 1, 0, value);
}

static const struct steps_field
    of_surveys[] = {{"median", offsetof(__typeof__(surveyed), median_bytes), 8, false},
                    {"peak_live", offsetof(__typeof__(surveyed), peak_live_bytes), 8, false}},
    of_lives[] = {FIELD(ar_policy_lifetime, bytes), FIELD(ar_policy_lifetime, born),
                  FIELD(ar_policy_lifetime, dies)};

static bool search_figure(const char *name, uint64_t *value)
{
    double real;
    if (strncmp(name, "gap.", 4) == 0)
        return element(name + 4, of_gaps, COUNT(of_gaps), capacity.gaps, capacity.gap_count,
                       sizeof *capacity.gaps, value);
    if (strncmp(name, "pin.", 4) == 0)
        return element(name + 4, of_pins, COUNT(of_pins), explained.pinning_blocks,
                       explained.pinning_block_count, sizeof *explained.pinning_blocks, value);
    if (one(name, "index.", of_indices, COUNT(of_indices), &explained.indices, value)) {
        memcpy(&real, value, sizeof real);
        *value = (uint64_t)(real * 1e6 + 0.5);
        return true;
    }
    if (strncmp(name, "life.", 5) == 0)
        return element(name + 5, of_lives, COUNT(of_lives), surveyed.lives, COUNT(surveyed.lives),
                       sizeof *surveyed.lives, value);
    return one(name, "survey.", of_surveys, COUNT(of_surveys), &surveyed, value) ||
           one(name, "trace.", of_trace, COUNT(of_trace), &info, value) ||
           one(name, "capacity.", of_capacity, COUNT(of_capacity), &capacity, value) ||
           one(name, "explain.", of_explained, COUNT(of_explained), &explained, value);
}

bool steps_run_figure(const char *name, uint64_t *value)
{
    if (strncmp(name, "gen.", 4) == 0)
        return gen_figure(name + 4, value);
    if (search_figure(name, value))
        return true;
    if (!last.there)
        return false;
    if (strncmp(name, "row.", 4) == 0 && strcmp(strrchr(name, '.'), ".address") == 0)
        return address_of(name + 4, value);
    if (strncmp(name, "row.", 4) == 0)
        return element(name + 4, of_rows, COUNT(of_rows), last.rows, last.row_count,
                       sizeof *last.rows, value);
    if (strncmp(name, "sample.", 7) == 0)
        return element(name + 7, of_samples, COUNT(of_samples), last.samples, last.sample_count,
                       sizeof *last.samples, value);
    if (strncmp(name, "millionths.", 11) == 0)
        return metric_figure(name + 11, true, value);
    if (strcmp(name, "passed") == 0)
        *value = last.result.passed;
    else if (strcmp(name, "rows") == 0)
        *value = last.row_count;
    else if (strcmp(name, "steps") == 0)
        *value = last.result.steps;
    else if (strcmp(name, "samples") == 0)
        *value = last.sample_count;
    else if (strcmp(name, "failed_event") == 0)
        *value = last.result.first_failed_event;
    else if (strcmp(name, "failed_bytes") == 0)
        *value = last.result.first_failed_bytes;
    else
        return metric_figure(name, false, value);
    return true;
}

bool steps_run_operation(struct steps *s)
{
    if (steps_take(s, "run"))
        run(s);
    else if (steps_take(s, "pull"))
        pull(s);
    else if (steps_take(s, "read_trace"))
        read_trace(s);
    else if (steps_take(s, "survey"))
        survey(s);
    else if (steps_take(s, "lifetimes"))
        lifetimes(s);
    else if (steps_take(s, "find_capacity"))
        find_capacity(s);
    else if (steps_take(s, "explain"))
        explain(s, true);
    else if (steps_take(s, "explain_failure"))
        explain(s, false);
    else if (steps_take(s, "helps"))
        helps(s);
    else if (steps_take(s, "tag"))
        steps_is_text(s, explained.tag, true);
    else if (steps_take(s, "pinning_tag"))
        steps_is_text(s, explained.pinning_blocks[0].tag, true);
    else if (steps_take(s, "event"))
        add_event(s);
    else if (steps_take(s, "no_events"))
        last.events[last.events_length = 0] = '\0';
    else if (steps_take(s, "cause"))
        steps_is_text(s, replay_cause_name(last.result.cause), true);
    else
        return false;
    return true;
}

void steps_run_begin(void)
{
    last.there = false;
    capacity_result_close(&capacity);
    explain_result_close(&explained);
    capacity = (struct capacity_result){0};
    explained = (struct explain_result){0};
    last.events[last.events_length = 0] = '\0';
}
