/* `inspect`: describes a trace. */
#include <stdio.h>

#include "bench/cli/cli.h"
#include "bench/report/trace_page.h"
#include "workloads/workload.h"

static const struct cli_option options[] = {{0}};

static const struct cli_page page = {
    .arguments = "FILE",
    .text =
        "Describes a trace: its origin, events, sizes, lifetimes, streams and steps. FILE can\n"
        "also be a generator, NAME:key=value,..., unless it is adaptive. For a file of another\n"
        "program it also prints what the reader found, left out and guessed.",
    .options = options,
};

static enum ar_status take(void *argument, int key, const char *value, struct ar_error *error)
{
    const char **path = argument;
    (void)key; /* there are no options */
    if (*path)
        return ar_error_set(error, AR_INVALID, "\"%s\" is one file too many", value);
    *path = value;
    return AR_OK;
}

enum ar_status cmd_inspect(int argc, char **argv, struct ar_error *error)
{
    const char *path = NULL;
    struct trace_source *source = NULL;
    struct inspect inspect = {0};
    bool help = false;
    enum ar_status status = cli_parse(&page, argc, argv, take, &path, &help, error);
    if (status || help)
        return status;
    if (!path)
        return ar_error_set(error, AR_INVALID, "inspect: no trace is given; write inspect FILE");
    status = workload_open(path, &source, error);
    if (status)
        return status;
    if (source->ops->served) {
        trace_close(source);
        return ar_error_set(error, AR_INVALID,
                            "inspect: the requests of %s depend on the policy; write it to a file "
                            "first: gen %s -p POLICY -o FILE",
                            path, path);
    }
    status = inspect_trace(source, &inspect, error);
    if (!status)
        trace_page_print(stdout, &source->info, &inspect);
    if (!status && source->report) {
        putchar('\n');
        status = import_page_print(stdout, path, source, error);
    }
    inspect_close(&inspect);
    trace_close(source);
    return status;
}
