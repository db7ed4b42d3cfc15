/* Whole runs in steps: `run POLICY on DEVICE .. of WORKLOAD`, and the figures of the last one. */
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

static void read_word(struct steps *s, char *word)
{
    (void)steps_at_end(s);
    size_t length = strcspn(s->at, " ");
    snprintf(word, LINE, "%.*s", (int)length, s->at);
    s->at += length;
}

/* What stands before ` of `. */
struct wanted {
    char policy[LINE], device[LINE], pinned[LINE];
    uint64_t cap_bytes, unit_bytes;
    enum replay_frees frees;
    enum replay_host host;
    bool stop, fake;
};

static struct wanted read_wanted(struct steps *s)
{
    struct wanted wanted = {.cap_bytes = UINT64_MAX};
    read_word(s, wanted.policy);
    if (!steps_take(s, "on"))
        steps_wrong(s, "on what?");
    wanted.fake = steps_take(s, "fake");
    if (!wanted.fake)
        read_word(s, wanted.device);
    while (!steps_take(s, "of")) {
        if (steps_take(s, "cap="))
            wanted.cap_bytes = steps_value(s);
        else if (steps_take(s, "unit="))
            wanted.unit_bytes = steps_value(s);
        else if (steps_take(s, "pinned="))
            read_word(s, wanted.pinned);
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
    const char *arrow = strstr(s->at, " -> ");
    size_t length = arrow ? (size_t)(arrow - s->at) : strlen(s->at);
    snprintf(text, sizeof text, "%.*s", (int)length, s->at);
    s->at += length;
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

static void run_experiment(struct steps *s, const struct wanted *wanted)
{
    CLOSED(experiment_rig_close) struct experiment_rig real;
    struct ar_spec pinned = {0};
    const char *events = read_events(s);
    if (events)
        experiment_rig_over(&real, wanted->policy, wanted->device, tiny_trace(events));
    else
        experiment_rig_open(&real, wanted->policy, wanted->device, steps_rest(s));
    if (wanted->pinned[0]) {
        assert_ok(ar_spec_parse(wanted->pinned, &pinned, &test_error));
        real.experiment.pinned = &pinned;
    }
    const struct observer observer = {.row = keep_row, .sample = keep_sample};
    real.experiment.observer = events ? &observer : NULL;
    real.experiment.frees = wanted->frees;
    real.experiment.host = wanted->host;
    real.experiment.stop_on_failure = wanted->stop;
    experiment_rig_run(&real);
    last.result = real.result;
    ar_spec_close(&pinned);
}

static void run(struct steps *s)
{
    const struct wanted wanted = read_wanted(s);
    last.row_count = last.sample_count = 0;
    last.there = true;
    if (wanted.fake)
        run_fake(s, &wanted);
    else
        run_experiment(s, &wanted);
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

#define FIELD(type, name)                                                                          \
    {                                                                                              \
#name, offsetof(struct type, name)                                                         \
    }

static const struct field {
    const char *name;
    size_t offset;
} of_rows[] = {FIELD(replay_row, event),
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
static bool element(const char *name, const struct field *fields, size_t field_count,
                    const void *base, size_t count, size_t bytes, uint64_t *value)
{
    char *dot;
    size_t index = strtoul(name, &dot, 10);
    for (size_t i = 0; *dot == '.' && index < count && i < field_count; i++)
        if (strcmp(dot + 1, fields[i].name) == 0) {
            memcpy(value, (const char *)base + index * bytes + fields[i].offset, sizeof *value);
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

static const struct field of_gen[] = {{"live", offsetof(struct gen_rig_sums, live_bytes)},
                                      {"peak_live", offsetof(struct gen_rig_sums, peak_live_bytes)},
                                      {"outside", offsetof(struct gen_rig_sums, outside_bytes)},
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

bool steps_run_figure(const char *name, uint64_t *value)
{
    if (strncmp(name, "gen.", 4) == 0)
        return gen_figure(name + 4, value);
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
    last.events[last.events_length = 0] = '\0';
}
