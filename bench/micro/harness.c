/* Prints the time that the rig adds to a step on a card under several policies, as measured by
 * bench/host/harness.h. Exit status 1 if the interval of a policy reaches the limit.
 *
 * Usage: harness [-p POLICY]... [-w WORKLOAD] [-d DEVICE] [--blocks N] [--limit PERCENT] [--csv
 * FILE] */
#include <errno.h>

#include "allocators/base/size.h"
#include "bench/host/harness.h"
#include "bench/machine/environment.h"
#include "bench/report/output_file.h"

enum { MOST_POLICIES = 16 };

static const char *const default_policies[] = {"growth", "torch", "vmm"};
static const char default_workload[] =
    "gradient_tape:layers=12,width=4096,batches=64,lengths=1,dtype=bfloat16,steps=40";

struct arguments {
    const char *policies[MOST_POLICIES];
    size_t policy_count;
    const char *workload, *device, *csv;
    uint64_t blocks;
    double limit; /* a fraction */
};

/* ---- arguments ------------------------------------------------------------------------------- */

static bool read_percent(const char *text, double *fraction)
{
    double percent;
    const bool is_number = ar_number_parse(text, &percent);
    *fraction = percent / 100;
    return is_number && percent > 0 && percent < 1000;
}

/* One option with its value. False after a message. */
static bool read_option(struct arguments *arguments, const char *name, const char *value)
{
    struct ar_error error;
    if (strcmp(name, "-p") == 0 && arguments->policy_count < MOST_POLICIES) {
        arguments->policies[arguments->policy_count++] = value;
    } else if (strcmp(name, "-w") == 0) {
        arguments->workload = value;
    } else if (strcmp(name, "-d") == 0) {
        arguments->device = value;
    } else if (strcmp(name, "--csv") == 0) {
        arguments->csv = value;
    } else if (strcmp(name, "--blocks") == 0) {
        if (ar_count_parse(value, &arguments->blocks, &error) != AR_OK || !arguments->blocks ||
            arguments->blocks > 1000) {
            fprintf(stderr, "harness: --blocks takes a number from 1 to 1000\n");
            return false;
        }
    } else if (strcmp(name, "--limit") == 0) {
        if (!read_percent(value, &arguments->limit)) {
            fprintf(stderr, "harness: --limit takes a percentage, as in 3\n");
            return false;
        }
    } else {
        fprintf(stderr, "harness: \"%s\" is not known, or given too often\n", name);
        return false;
    }
    return true;
}

static bool read_arguments(struct arguments *arguments, int argc, char **argv)
{
    *arguments = (struct arguments){
        .workload = default_workload, .device = "cuda", .blocks = 10, .limit = 0.03};
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            fprintf(stderr, "usage: harness [-p POLICY]... [-w WORKLOAD] [-d DEVICE] [--blocks N] "
                            "[--limit PERCENT] [--csv FILE]\n");
            return false;
        }
        if (!read_option(arguments, argv[i], argv[i + 1]))
            return false;
    }
    if (arguments->policy_count)
        return true;
    arguments->policy_count = AR_COUNT(default_policies);
    memcpy(arguments->policies, default_policies, sizeof default_policies);
    return true;
}

/* ---- results --------------------------------------------------------------------------------- */

static void print_head(const struct arguments *arguments, const struct ar_device *device)
{
    const struct build_info *build = build_info();
    printf("allocrig %s, commit %.12s%s, %s\n", build->version, build->commit,
           build->dirty ? " with changes" : "", build->flags);
    printf("device    %s %s\nworkload  %s\n", device->props.kind, device->props.profile,
           arguments->workload);
    printf("%" PRIu64
           " blocks of engine, loop, loop, engine; a run is the median of its steps from "
           "the middle on\n\n",
           arguments->blocks);
    printf("%-14s %14s %14s %10s %22s  %s\n", "policy", "engine us/step", "loop us/step", "added",
           "interval", "launches");
    fflush(stdout);
}

static const char *verdict(const struct harness_result *result, double limit)
{
    if (result->most < limit)
        return "met";
    return result->least < limit ? "not clear" : "MISSED";
}

static void print_result(const char *policy, const struct harness_result *result, double limit)
{
    char interval[48];
    snprintf(interval, sizeof interval, "%+.2f to %+.2f %%", 100 * result->least,
             100 * result->most);
    printf("%-14s %14.1f %14.1f %+8.2f %% %22s  %" PRIu64 " works and %" PRIu64
           " timed kernels in %" PRIu64 " steps, %s fixed; under %.1f %% at %.1f %%: %s\n",
           policy, result->engine_ns / 1e3, result->loop_ns / 1e3, 100 * result->added, interval,
           result->kernel_ops, result->kernels, result->steps, AR_SIZE(result->fixed_bytes),
           100 * limit, 100 * result->confidence, verdict(result, limit));
    fflush(stdout);
}

static void write_rows(FILE *stream, const char *policy, const struct harness_result *result)
{
    for (unsigned i = 0; i < result->block_count; i++) {
        const struct harness_block *block = &result->blocks[i];
        fprintf(stream, "\"%s\",%u,%.0f,%.0f,%.0f,%.0f,%.6f\n", policy, i + 1, block->engine_ns[0],
                block->loop_ns[0], block->loop_ns[1], block->engine_ns[1], block->added);
    }
}

/* ---- main ------------------------------------------------------------------------------------ */

static enum ar_status run_policy(const struct arguments *arguments, const char *policy,
                                 struct ar_device *device, FILE *csv, bool *met,
                                 struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_CLOSED(harness_close) struct harness_result result = {0};
    AR_TRY(ar_spec_parse(policy, &spec, error));
    struct harness_config config = {.policy = &spec,
                                    .workload = arguments->workload,
                                    .device = device,
                                    .blocks = (unsigned)arguments->blocks};
    AR_TRY(ar_error_prefix(error, harness_measure(&config, &result, error), "%s", policy));
    print_result(policy, &result, arguments->limit);
    if (csv)
        write_rows(csv, policy, &result);
    *met &= result.most < arguments->limit;
    return AR_OK;
}

static enum ar_status run_all(const struct arguments *arguments, struct output_file *csv, bool *met,
                              struct ar_error *error)
{
    AR_CLOSED(ar_device_close_at) struct ar_device *device = NULL;
    AR_TRY(ar_device_open_text(arguments->device, &device, error));
    if (arguments->csv)
        AR_TRY(output_open(csv, arguments->csv, error));
    if (csv->stream)
        fprintf(csv->stream,
                "policy,block,engine_ns,loop_ns,loop_again_ns,engine_again_ns,added\n");
    print_head(arguments, device);
    for (size_t i = 0; i < arguments->policy_count; i++)
        AR_TRY(run_policy(arguments, arguments->policies[i], device, csv->stream, met, error));
    return arguments->csv ? output_commit(csv, error) : AR_OK;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    AR_CLOSED(output_abandon) struct output_file csv = {0};
    struct ar_error error = {{0}};
    bool met = true;
    if (!read_arguments(&arguments, argc, argv))
        return 2;
    enum ar_status status = run_all(&arguments, &csv, &met, &error);
    if (status != AR_OK) {
        fprintf(stderr, "harness: %s\n", error.text);
        return ar_status_exit(status);
    }
    return met ? 0 : 1;
}
