/* `gen`: writes a synthetic workload to a trace file. An adaptive workload, whose requests depend
 * on the addresses of its blocks, is run once under a policy, and its requests are recorded. */

#include "bench/cli/cli.h"
#include "sim/experiment/session.h"
#include "workloads/gen/gen.h"
#include "workloads/learned/learned.h"

struct arguments {
    const char *workload, *path, *format, *policy, *device;
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'o', "output", "FILE", "the trace to write: .txt or .trace, .bin, each also with .zst",
     CLI_FILE(path)},
    {0, "format", "FORMAT",
     "format of FILE, whatever its ending: text, binary, rmm, minimalloc, oracle",
     CLI_TEXT(format)},
    {'p', "policy", "SPEC", "for adaptive workloads: the policy to run them under",
     CLI_TEXT(policy)},
    {'d', "device", "DEVICE", "the device below the policy; default: sim", CLI_TEXT(device)},
    {0},
};

static const struct cli_page page = {
    .arguments = "WORKLOAD -o FILE [-p SPEC]",
    .text = "Writes a synthetic workload as a trace. WORKLOAD is a generator, NAME:key=value,...;\n"
            "`allocrig list workloads` lists them.",
    .options = options,
    .argument = {.value = "workload", CLI_TEXT(workload)},
};

/* Finds out if the workload is adaptive, which needs a policy. */
static enum ar_status check_adaptive(const struct ar_spec *workload,
                                     const struct arguments *arguments, bool *adaptive,
                                     struct ar_error *error)
{
    const struct gen_ops *ops = gen_find(workload->links[workload->link_count - 1].name);
    *adaptive = ops && (ops->capabilities & GEN_ADAPTIVE);
    if (*adaptive && !arguments->policy)
        return ar_invalid(error,
                          "gen: the requests of %s depend on the addresses of its blocks; add a "
                          "policy to run it under, such as -p first-fit",
                          ops->name);
    if (ops && !*adaptive && arguments->policy)
        return ar_invalid(error, "gen: %s is the same under every policy; leave -p out", ops->name);
    if (ops && !*adaptive && arguments->device)
        return ar_invalid(error, "gen: %s is the same on every device; leave -d out", ops->name);
    return AR_OK;
}

static enum ar_status play(const struct arguments *self, struct trace_source *source,
                           struct trace_source **out, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec policy = {0};
    AR_CLOSED(ar_spec_close) struct ar_spec device = {0};
    AR_TRY(ar_spec_parse(self->policy, &policy, error));
    AR_TRY(ar_spec_parse(self->device ? self->device : "sim", &device, error));
    const struct experiment experiment = {
        .policy = &policy, .device = &device, .source = source, .seed = 1};
    return session_write_down(&experiment, out, error);
}

static enum ar_status make(const struct arguments *self, const struct ar_spec *workload,
                           const struct trace_output_choice *format, struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_CLOSED(trace_close_at) struct trace_source *played = NULL;
    bool adaptive = false;
    AR_TRY(check_adaptive(workload, self, &adaptive, error));
    AR_TRY(strcmp(workload->links[0].name, LEARNED_NAME) == 0
               ? workload_open(workload->text, &source, error)
               : gen_open(workload, &source, error));
    if (adaptive)
        AR_TRY(play(self, source, &played, error));
    AR_TRY(trace_output_save(adaptive ? played : source, self->path, format, error));
    if (!format->standard)
        printf("wrote %s\n", self->path);
    return AR_OK;
}

enum ar_status cmd_gen(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    struct trace_output_choice format;
    AR_CLOSED(ar_spec_close) struct ar_spec workload = {0};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (!self.workload || !self.path)
        return ar_invalid(error, "gen: %s; write gen WORKLOAD -o FILE",
                          self.workload ? "no output file is given" : "no workload is given");
    AR_TRY(trace_output_choose(self.path, self.format, true, &format, error));
    AR_TRY(ar_spec_parse(self.workload, &workload, error));
    return make(&self, &workload, &format, error);
}
