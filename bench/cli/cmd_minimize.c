/* `minimize`: finds the smallest trace that still shows a condition, and writes it as text. */

#include "allocators/registry.h"
#include "bench/cli/cli.h"
#include "bench/report/sentence.h"
#include "bench/suite/suite.h"
#include "sim/search/search.h"

struct arguments {
    struct suite suite; /* frees, host and seed */
    const char *trace, *until, *policy, *path;
    struct cli_device device;
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {0, "until", "COND", "fails, cause=CAUSE, METRIC>VALUE, differs(SPEC,SPEC)", CLI_TEXT(until)},
    {'p', "policy", "SPEC", "the policy; differs(..) names its own", CLI_TEXT(policy)},
    {'d', "device", "DEVICE", "default: sim; a number N: only GPU N of the trace",
     CLI_DEVICE(device)},
    {'o', "output", "FILE", "write the trace as text; the ending .zst compresses it",
     CLI_FILE(path)},
    {0, "frees", "MODE", "ordered (default), at-once or recorded", CLI_SUITE(cli_suite_key)},
    {0, "host", "MODE", "host time: none (default), recorded or open", CLI_SUITE(cli_suite_key)},
    {0, "seed", "N", "seed of policies that use random numbers", CLI_SUITE(cli_suite_key)},
    {0},
};

static const struct cli_page page = {
    .arguments = "TRACE --until COND [-p SPEC] [-d DEVICE] -o FILE",
    .text =
        "Removes steps, blocks and events from a trace, and rounds sizes, while the trace still\n"
        "shows COND: a request fails (for CAUSE), an exact metric is above (or >= < <=) VALUE,\n"
        "or two policies place a block at different addresses. The result is minimal: without\n"
        "any one of its blocks or events it does not show COND. Exit status 1: the whole trace\n"
        "does not show it.",
    .options = options,
    .argument = {.value = "trace", CLI_TEXT(trace)},
};

static enum ar_status report(const struct arguments *self, struct trace_source *smallest,
                             const struct minimize_result *result,
                             const struct trace_output_choice *format, struct ar_error *error)
{
    char text[512];
    AR_TRY(trace_rewind(smallest, error));
    AR_TRY(trace_output_save(smallest, self->path, format, error));
    snprintf(text, sizeof text,
             "%s: from %" PRIu64 " to %" PRIu64 " events, from %" PRIu64 " to %" PRIu64
             " requests, in %" PRIu64 " runs",
             smallest->info.name, result->events[0], result->events[1], result->requests[0],
             result->requests[1], result->runs);
    sentence_wrap(stdout, text, 0, 0, SENTENCE_WIDTH);
    printf("wrote %s\n", self->path);
    return AR_OK;
}

/* A workload_take: keeps the source. */
static enum ar_status take_source(void *argument, struct workload_part *part,
                                  struct ar_error *error)
{
    struct trace_source **source = argument;
    if (part->several)
        return ar_invalid(error,
                          "minimize: the trace has several GPUs; select one with --device N");
    *source = part->source;
    part->source = NULL;
    return AR_OK;
}

static enum ar_status run(const struct arguments *self, const struct condition *condition,
                          struct experiment *experiment, const struct trace_output_choice *format,
                          struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL, *smallest = NULL;
    struct minimize_result result;
    const struct workload_choice choice = cli_choice(&self->device, false);
    AR_TRY(workload_each(self->trace, &choice, take_source, &source, error));
    enum replay_frees modes[2];
    (void)replay_frees_choices(&source->info, experiment->frees, modes);
    experiment->source = source;
    experiment->frees = modes[0];
    AR_TRY(minimize(experiment, condition, &smallest, &result, error));
    if (!result.shown)
        return ar_error_set(error, AR_NEGATIVE,
                            "minimize: the whole trace %s does not show %s: nothing to minimize",
                            source->info.name, self->until);
    return report(self, smallest, &result, format, error);
}

static enum ar_status prepare(const struct arguments *self, const struct condition *condition,
                              const struct trace_output_choice *format, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec policy = {0}, device = {0};
    const struct ar_policy_ops *ops;
    bool own = condition->kind == CONDITION_DIFFERS;
    if (own && self->policy)
        return ar_invalid(error, "minimize: %s names its policies; leave -p out", self->until);
    if (!own && !self->policy)
        return ar_invalid(
            error, "minimize: no policy is given; write minimize TRACE --until %s -p SPEC -o FILE",
            self->until);
    AR_TRY(ar_spec_parse(own ? "null" : self->policy, &policy, error));
    AR_TRY(ar_spec_parse(self->device.spec ? self->device.spec : "sim", &device, error));
    struct experiment experiment = {
        .policy = &policy,
        .device = &device,
        .frees = self->suite.frees,
        .host = self->suite.host,
        .seed = self->suite.seed,
    };
    AR_TRY(registry_lookup(&policy, &ops, error));
    return run(self, condition, &experiment, format, error);
}

static enum ar_status check_and_run(const struct arguments *self, struct ar_error *error)
{
    struct trace_output_choice format;
    AR_CLOSED(condition_close) struct condition condition = {0};
    const char *lacks = !self->trace   ? "no trace is given"
                        : !self->until ? "no condition is given"
                        : !self->path  ? "no output file is given"
                                       : NULL;
    if (lacks)
        return ar_invalid(error, "minimize: %s; write minimize TRACE --until COND -p SPEC -o FILE",
                          lacks);
    AR_TRY(trace_output_choose(self->path, "text", false, &format, error));
    AR_TRY(ar_error_prefix(error, condition_parse(self->until, &condition, error),
                           "minimize: --until"));
    return prepare(self, &condition, &format, error);
}

enum ar_status cmd_minimize(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.suite = SUITE_DEFAULTS};
    enum ar_status status = cli_parse(&page, argc, argv, &self, error);
    AR_THEN(status, check_and_run(&self, error));
    suite_close(&self.suite);
    return status;
}
