/* `make micro`: the cost of a call of each policy, in sections (grid.h): the policy's own
 * bookkeeping, through a lock and a map of addresses, from several threads, and on a card.
 * bench/micro/README.md explains the results. The tables show the least or the median of the
 * repetitions. The JSON file has all of them in Google Benchmark's own form.
 *
 * Usage: micro [TRACE...] [--device=SPEC] [--all] [--benchmark_...]
 *   --device  the device of the card's sections; default cuda if there is a card. On a simulated
 *             device their times are modelled
 *   --all     every policy with threads, 16 threads on any machine, cold caches at each size */

#include "bench/machine/environment.h"
#include "bench/micro/grid.h"
#include "bench/micro/micro.h"
#include "workloads/io/fields.h"

enum { MOST_TRACES = GRID_COLUMNS - 4 };

struct arguments {
    struct micro_ops traces[MOST_TRACES];
    size_t trace_count;
    const char *device; /* NULL: default */
    bool all;
};

static bool read_trace(struct arguments *arguments, const char *path)
{
    struct micro_ops *ops = &arguments->traces[arguments->trace_count];
    struct ar_error error;
    if (arguments->trace_count == MOST_TRACES) {
        fprintf(stderr, "micro: more than %d traces\n", MOST_TRACES);
        return false;
    }
    if (micro_ops_read(path, ops, &error) != AR_OK) {
        fprintf(stderr, "micro: %s\n", error.text);
        return false;
    }
    /* "a/b/gpt2_train.default.csv.gz" is the column "gpt2_train". */
    snprintf(ops->name, sizeof ops->name, "%s", field_file_name(path));
    ops->name[strcspn(ops->name, ".")] = '\0';
    arguments->trace_count++;
    return true;
}

/* Removes our own options from the arguments. Returns false after a message. */
static bool read_arguments(struct arguments *arguments, int *argc, char **argv)
{
    static const char device[] = "--device=";
    int kept = 1;
    for (int i = 1; i < *argc; i++)
        if (strncmp(argv[i], device, sizeof device - 1) == 0)
            arguments->device = argv[i] + sizeof device - 1;
        else if (strcmp(argv[i], "--all") == 0)
            arguments->all = true;
        else if (argv[i][0] == '-')
            argv[kept++] = argv[i];
        else if (!read_trace(arguments, argv[i]))
            return false;
    *argc = kept;
    return true;
}

/* The device of the card's sections. If none is named and there is no card, prints one line and
 * leaves them out. */
static enum ar_status open_device(struct sections *sections, const char *name)
{
    struct ar_error error;
    enum ar_status status = ar_device_open_text(name ? name : "cuda", &sections->device, &error);
    if (status == AR_OK)
        return AR_OK;
    sections->device = NULL;
    if (!name && status == AR_MISSING) {
        printf("left out: what needs a card: %s\n", error.text);
        return AR_OK;
    }
    fprintf(stderr, "micro: %s\n", error.text);
    return status;
}

static enum ar_status register_all(struct sections *sections, const struct arguments *arguments)
{
    sections->all = arguments->all;
    AR_TRY(open_device(sections, arguments->device));
    bookkeeping_register(sections, arguments->traces, arguments->trace_count);
    host_pool_register(sections);
    thread_rows_register(sections);
    if (sections->device) {
        micro_context("allocrig_device", sections->device->props.kind);
        micro_context("allocrig_card", sections->device->props.profile);
        card_policies_register(sections);
        card_calls_register(sections);
    }
    if (!sections->full)
        return AR_OK;
    fprintf(stderr, "micro: no room for all benchmarks\n");
    return AR_HOST_MEMORY;
}

static void take_report(void *argument, const struct micro_report *report)
{
    struct sections *sections = argument;
    for (size_t i = 0; i < sections->grid_count; i++)
        grid_take(sections->grids[i], report);
}

static int run_all(struct sections *sections, int argc, char **argv)
{
    micro_context("allocrig_version", build_info()->version);
    micro_context("allocrig_commit", build_info()->commit);
    micro_context("allocrig_flags", build_info()->flags);
    int status = micro_run(argc, argv, take_report, sections);
    if (status != 0)
        return status;
    if (sections->device && strcmp(sections->device->props.kind, "cuda") != 0)
        printf("%s times are modelled, policies take none of it; threads are timed by the host\n",
               sections->device->props.kind);
    for (size_t i = 0; i < sections->grid_count; i++)
        grid_print(sections->grids[i]);
    return 0;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct sections sections = {0};
    int exit_status = 2;
    if (read_arguments(&arguments, &argc, argv)) {
        enum ar_status status = register_all(&sections, &arguments);
        exit_status = status == AR_OK ? run_all(&sections, argc, argv) : ar_status_exit(status);
    }
    for (size_t i = 0; i < arguments.trace_count; i++)
        micro_ops_close(&arguments.traces[i]);
    sections_close(&sections);
    return exit_status;
}
