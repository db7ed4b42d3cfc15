/* `inspect`: describes a trace. */

#include "bench/cli/cli.h"
#include "bench/report/pages.h"

struct arguments {
    const char *path;
    struct cli_device device;
    bool begun; /* a part was printed */
};

static const struct cli_option options[] = {
    {'d', "device", "N", "only GPU N of a trace of several", CLI_GPU(device)},
    {0},
};

static const struct cli_page page = {
    .arguments = "FILE [--device N]",
    .text =
        "Describes a trace: its origin, events, sizes, lifetimes, streams and steps. FILE can\n"
        "also be a generator, NAME:key=value,..., unless it is adaptive. For a file of another\n"
        "program it also prints what the reader found, left out and guessed. The GPUs of a trace\n"
        "are described one by one.",
    .options = options,
    .argument = {.value = "file", CLI_TEXT(path)},
};

/* A workload_take. */
static enum ar_status print_part(void *argument, struct workload_part *part, struct ar_error *error)
{
    struct arguments *self = argument;
    AR_CLOSED(inspect_close) struct inspect inspect = {0};
    struct trace_source *source = part->source;
    if (source->info.adaptive)
        return ar_invalid(error,
                          "inspect: the requests of %s depend on the policy; write it to a file "
                          "first: gen %s -p POLICY -o FILE",
                          self->path, self->path);
    if (self->begun)
        puts("\n");
    self->begun = true;
    AR_TRY(inspect_trace(source, &inspect, error));
    trace_page_print(stdout, &source->info, &inspect);
    if (source->report) {
        putchar('\n');
        return import_page_print(stdout, self->path, source, error);
    }
    return AR_OK;
}

enum ar_status cmd_inspect(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (!self.path)
        return ar_invalid(error, "inspect: no trace is given; write inspect FILE");
    const struct workload_choice choice = cli_choice(&self.device, false);
    return workload_each(self.path, &choice, print_part, &self, error);
}
