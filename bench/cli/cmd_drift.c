/* `drift`: how reserved memory changes over a long run of a recorded program. */

#include "allocators/base/size.h"
#include "bench/cli/cli.h"
#include "bench/machine/environment.h"
#include "bench/report/output_file.h"
#include "bench/report/pages.h"
#include "bench/suite/progress.h"
#include "bench/suite/suite.h"
#include "sim/experiment/recorded_card.h"
#include "workloads/trace/check.h"

#define POLICIES_MOST 16
#define SEEDS_MOST    1000
#define STEPS_DEFAULT 100000
#define SEEDS_DEFAULT 5

struct arguments {
    const char *trace, *series, *json;
    struct cli_device device;
    struct cli_words policies;
    uint64_t steps, seeds, first_seed, capacity_bytes, jobs;
    bool every_step;
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'p', "policy", "SPEC", "a policy; default: torch and torch:expandable_segments=true",
     CLI_WORDS(policies, POLICIES_MOST)},
    {'w', "workload", "WORKLOAD", "the same as the argument TRACE", CLI_TEXT(trace)},
    {0, "steps", "N", "steps of the long run; default: 100000", CLI_COUNT(steps, 1, 1e12)},
    {0, "seeds", "K", "runs of each policy, with K seeds; default: 5",
     CLI_COUNT(seeds, 1, SEEDS_MOST)},
    {0, "seed", "N", "the first seed; default: 1",
     CLI_COUNT(first_seed, 0, (double)SUITE_SEED_MOST)},
    {0, "capacity", "BYTES", "capacity of the card; default: that of the device",
     CLI_CARD(capacity_bytes)},
    {'d', "device", "DEVICE",
     "a simulated device; default: sim, as the recorded card. Or the number of a GPU of TRACE; "
     "default: each of them",
     CLI_DEVICE(device)},
    {0, "every-step", NULL, "replay also steps that are known to change nothing",
     CLI_FLAG(every_step)},
    {0, "series", "FILE", "write reserved and live bytes after steps as CSV", CLI_FILE(series)},
    {0, "json", "FILE", "write the results as JSON; - is standard output", CLI_FILE(json)},
    {0, "jobs", "N", "workers; default: one for each processor", CLI_COUNT(jobs, 1, 1024)},
    {0},
};

static const struct cli_page page = {
    .arguments = "TRACE [-p SPEC].. [--steps N] [--seeds K] [--capacity BYTES] [options]",
    .text = "Predicts how memory changes over a long run. It learns from the steps of a recording\n"
            "how they vary, goes on with steps drawn from them (the workload `learned`), and\n"
            "prints for each policy the reserved memory after 1, 10, 100, .. steps, its drift,\n"
            "whether it levels off, the probability of out of memory, and which blocks keep\n"
            "memory from being released. The recording needs marks `step`, or steps that are seen\n"
            "in its live bytes.",
    .options = options,
    .argument = {.value = "recording", CLI_TEXT(trace)},
};

/* All runs, in the order of policies and seeds. */
struct runs {
    struct ar_spec policies[POLICIES_MOST];
    struct drift_setup *setups;
    struct drift_run *runs;
    struct drift_answer answers[POLICIES_MOST];
};

static void close_runs(struct runs *self)
{
    for (size_t i = 0; i < POLICIES_MOST; i++)
        ar_spec_close(&self->policies[i]);
    free(self->setups);
    free(self->runs);
}

static enum ar_status set_up(const struct arguments *self, const struct learned_model *model,
                             const struct ar_spec *device, struct runs *runs,
                             struct ar_error *error)
{
    size_t count = self->policies.count * self->seeds;
    runs->setups = calloc(count, sizeof *runs->setups);
    runs->runs = calloc(count, sizeof *runs->runs);
    AR_TRY_MEMORY(runs->setups && runs->runs, error, "%zu runs", count);
    for (size_t i = 0; i < self->policies.count; i++) {
        AR_TRY(ar_spec_parse(self->policies.at[i], &runs->policies[i], error));
        for (size_t seed = 0; seed < self->seeds; seed++)
            runs->setups[i * self->seeds + seed] =
                (struct drift_setup){.model = model,
                                     .policy = &runs->policies[i],
                                     .device = device,
                                     .steps = self->steps,
                                     .seed = self->first_seed + seed,
                                     .every_step = self->every_step};
    }
    return AR_OK;
}

static void show_progress(void *argument)
{
    progress_step(argument, "hundredths of long runs");
}

static void show_read(void *argument)
{
    progress_step(argument, "steps to learn from");
}

static enum ar_status run_all(const struct arguments *self, struct runs *runs,
                              const struct learned_model *model, struct ar_error *error)
{
    unsigned jobs = environment_jobs(self->jobs);
    size_t count = self->policies.count * self->seeds;
    struct progress progress;
    const struct drift_watch watch = {show_progress, &progress};
    progress_begin(&progress, DRIFT_WATCHED * count);
    enum ar_status status = drift_run_all(runs->setups, runs->runs, count, jobs, &watch, error);
    progress_end(&progress);
    for (size_t i = 0; !status && i < self->policies.count; i++) {
        runs->answers[i] = (struct drift_answer){.policy = self->policies.at[i],
                                                 .runs = &runs->runs[i * self->seeds],
                                                 .run_count = self->seeds};
        status = drift_answer_find(model, self->steps, &runs->answers[i], error);
    }
    return status;
}

/* The recorded card, or the device that was asked for, with its capacity. */
static enum ar_status find_device(const struct arguments *self, const struct trace_info *info,
                                  struct ar_spec *base, struct session_device *device,
                                  uint64_t *capacity_bytes, struct ar_error *error)
{
    char recorded[RECORDED_CARD_SPEC_ROOM];
    struct ar_device_props props;
    recorded_card_spec(info, recorded);
    AR_TRY(ar_spec_parse(self->device.spec ? self->device.spec : recorded, base, error));
    const char *given = ar_spec_value(base, "capacity");
    uint64_t bytes = self->capacity_bytes;
    if (bytes && self->device.spec && given)
        return ar_invalid(error, "drift: the capacity is given twice: give capacity= of the device "
                                 "or --capacity");
    if (given && !bytes)
        AR_TRY(ar_size_parse(given, &bytes, error));
    AR_TRY(session_device_as(device, base, NULL, bytes, error));
    AR_TRY(session_device_props(&device->spec, &props, error));
    *capacity_bytes = props.capacity_bytes;
    return AR_OK;
}

static enum ar_status answer(const struct arguments *self, const struct trace_info *info,
                             const struct learned_model *model, struct ar_error *error)
{
    AR_CLOSED(close_runs) struct runs runs = {0};
    AR_CLOSED(output_set_abandon) struct output_set files = {0};
    AR_CLOSED(ar_spec_close) struct ar_spec base = {0};
    AR_CLOSED(session_device_end) struct session_device device = {0};
    FILE *json, *series;
    struct drift_page out = {.info = info,
                             .model = model,
                             .steps = self->steps,
                             .answers = runs.answers,
                             .answer_count = self->policies.count};
    /* Clocks end there: `run -w learned:..` refuses such a run too. */
    if (model->step_ns * (double)self->steps >= (double)TRACE_TIME_LIMIT)
        return ar_invalid(error,
                          "drift: %" PRIu64 " steps of %.4g s pass the end of time, 2^62 "
                          "nanoseconds; ask for fewer --steps",
                          self->steps, model->step_ns / 1e9);
    AR_TRY(find_device(self, info, &base, &device, &out.capacity_bytes, error));
    AR_TRY(output_set_add(&files, self->json, &json, error));
    AR_TRY(output_set_add(&files, self->series, &series, error));
    AR_TRY(set_up(self, model, &device.spec, &runs, error));
    AR_TRY(run_all(self, &runs, model, error));
    if (json) {
        struct json_writer writer = {.stream = json};
        drift_json_write(&writer, &out);
    }
    if (series)
        drift_series_write(series, &out);
    if (!files.standard)
        AR_TRY(drift_page_print(stdout, &out, error));
    return output_set_commit(&files, error);
}

/* A workload_take. */
static enum ar_status predict(void *argument, struct workload_part *part, struct ar_error *error)
{
    const struct arguments *self = argument;
    struct learned_model *model = NULL;
    struct progress progress;
    const struct learned_watch watch = {show_read, &progress};
    if (part->several && (self->json || self->series))
        return ar_invalid(error,
                          "drift: a file of --json or --series is of one GPU, and %s has "
                          "several; select one with --device N",
                          self->trace);
    progress_begin(&progress, part->source->info.steps);
    enum ar_status status = learned_model_make(part->source, &watch, &model, error);
    progress_end(&progress);
    AR_THEN(status, answer(self, &part->source->info, model, error));
    if (part->several && !status)
        putchar('\n');
    learned_model_close(model);
    return status;
}

enum ar_status cmd_drift(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.steps = STEPS_DEFAULT, .seeds = SEEDS_DEFAULT, .first_seed = 1};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (!self.trace)
        return ar_invalid(error, "drift: no recording is given; write drift TRACE");
    for (size_t i = 0; i < self.policies.count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(self.policies.at[i], self.policies.at[j]) == 0)
                return ar_invalid(error, "drift: policy \"%s\" is given twice; name it once",
                                  self.policies.at[i]);
    if (!self.policies.count) {
        self.policies.at[self.policies.count++] = "torch";
        self.policies.at[self.policies.count++] = "torch:expandable_segments=true";
    }
    const struct workload_choice choice = cli_choice(&self.device, false);
    return workload_each(self.trace, &choice, predict, &self, error);
}
