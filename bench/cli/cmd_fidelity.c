/* `fidelity`: compares a recording with the policy that imitates the recorded allocator: the
 * address of every block, every segment, and the final statistics. */

#include "allocators/spec.h"
#include "bench/cli/cli.h"
#include "bench/report/output_file.h"
#include "bench/report/run_output.h"
#include "bench/report/sentence.h"
#include "sim/fidelity/fidelity.h"

struct arguments {
    const char *trace, *policy, *placements;
    struct cli_device device;
    unsigned count, differ; /* of the GPUs compared so far */
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'p', "policy", "SPEC",
     "default: the policy that imitates the recorder, with the recorded settings",
     CLI_TEXT(policy)},
    {'d', "device", "N", "only GPU N of a recording of several", CLI_GPU(device)},
    {0, "placements", "FILE", "write the address of each block under the policy",
     CLI_FILE(placements)},
    {0},
};

static const struct cli_page page = {
    .arguments = "TRACE [-p SPEC] [--device N] [--placements FILE]",
    .text =
        "Replays a recording under the policy that imitates the recorded allocator, and compares\n"
        "the address of every block, every segment and the final statistics with the\n"
        "recording. The GPUs of a recording are compared one by one. Exit status 0: all\n"
        "agree; 1: they differ, and the first difference is printed.",
    .options = options,
    .argument = {.value = "recording", CLI_TEXT(trace)},
};

#define SHOWN_MOST 12

/* The placements file; each replay starts it again. */
struct placements {
    const char *path; /* NULL: not requested */
    struct output_file file;
};

static enum ar_status placements_begin(void *argument, struct ar_error *error)
{
    struct placements *self = argument;
    if (!self->path)
        return AR_OK;
    output_abandon(&self->file);
    AR_TRY(output_open(&self->file, self->path, error));
    placements_csv_header(self->file.stream);
    return AR_OK;
}

static enum ar_status placements_row(void *argument, const struct replay_row *row,
                                     struct ar_error *error AR_UNUSED)
{
    struct placements *self = argument;
    if (self->path)
        placements_csv_row(self->file.stream, row);
    return AR_OK;
}

static void print_line(const char *what, uint64_t met, uint64_t all)
{
    printf("  %-22s %9" PRIu64 " of %9" PRIu64 "  %s\n", what, met, all,
           met == all ? "all agree" : "they differ");
}

static void print_releases(const struct fidelity_result *result)
{
    if (result->release_count) {
        printf("\n  The recording releases memory that the policy would keep, so the program\n"
               "  released its cache: %zu time%s, before event%s\n   ",
               result->release_count, result->release_count == 1 ? "" : "s",
               result->release_count == 1 ? "" : "s");
        int column = 3;
        for (size_t i = 0; i < result->release_count; i++) {
            char text[32];
            int used = snprintf(text, sizeof text, " %" PRIu64 "%s", result->releases[i],
                                i + 1 < result->release_count ? "," : ".");
            if (column + used > 78) {
                printf("\n   ");
                column = 3;
            }
            column += used;
            printf("%s", text);
        }
        puts("");
    }
    if (result->refusals)
        printf("\n  The device is assumed to have refused memory before %" PRIu64 " request%s.\n",
               result->refusals, result->refusals == 1 ? "" : "s");
    if (result->unseen_releases)
        printf("\n  The statistics count %" PRIu64 " more release%s of the cache, which had "
               "nothing to\n  release and left no event.\n",
               result->unseen_releases, result->unseen_releases == 1 ? "" : "s");
}

static void print_start(const struct fidelity_result *result, const char *policy)
{
    if (result->start == FIDELITY_FROM_NOTHING)
        return;
    const char *plural = result->start_segments == 1 ? "" : "s";
    printf("\n  The recording begins in the middle of a program: %zu segment%s or run%s of\n"
           "  pages and %zu block%s in use were there. ",
           result->start_segments, plural, plural, result->start_blocks,
           result->start_blocks == 1 ? "" : "s");
    if (result->start == FIDELITY_ADOPTED)
        puts("The policy took them over\n"
             "  unchanged; of the statistics, only current values are compared.");
    else
        printf("The policy %.*s\n"
               "  cannot take them over: the blocks were requested first, in the order of their\n"
               "  addresses.\n",
               (int)strcspn(policy, ":"), policy);
}

static void print_limit(const struct fidelity_result *result)
{
    if (result->limit_bytes && !result->difference.found)
        printf("\n  The program had a limit that the recording does not hold: at least %" PRIu64
               "\n  bytes.\n",
               result->limit_bytes);
}

static void print_figures(const struct fidelity_result *result)
{
    size_t shown = 0, differ = result->figure_count - result->figures_met;
    if (!differ || result->difference.found) /* then all of them may be consequences */
        return;
    printf("\n  %-36s %19s %19s\n", "statistic", "recorded", "policy");
    for (size_t i = 0; i < result->figure_count && shown < SHOWN_MOST; i++) {
        const struct fidelity_figure *figure = &result->figures[i];
        if (figure->agrees)
            continue;
        printf("  %-36s %19" PRIu64 " %19" PRIu64 "\n", figure->name, figure->recorded,
               figure->replayed);
        shown++;
    }
    if (differ > shown)
        printf("  and %zu more\n", differ - shown);
}

static void print_difference(const struct trace_info *info,
                             const struct fidelity_difference *difference)
{
    if (!difference->found)
        return;
    printf("\n  First difference at event %" PRIu64, difference->event);
    if (difference->line)
        printf(" (line %" PRIu64 " of the file)", difference->line);
    puts(":");
    sentence_format(stdout, 6, "    the policy    %s", difference->policy);
    sentence_format(stdout, 6, "    the recording %s", difference->recording);
    if (strcmp(info->format, "snapshot") == 0)
        puts("  A snapshot has the settings at its end, and no limit. If the program changed\n"
             "  them during the recording, annotations must say so (workloads/trace/FORMAT.md,\n"
             "  Changes).");
}

static void print_result(const struct trace_info *info, const char *policy,
                         const struct fidelity_result *result)
{
    say(stdout, "%s, recorded with %s, against", info->name,
        info->recorder[0] ? info->recorder : "an unnamed allocator");
    printf("%s\n\n", policy);
    print_line("requests and frees", result->rows_met, result->rows);
    print_line("segments made", result->made_met, result->made);
    print_line("segments released", result->freed_met, result->freed);
    if (result->end_blocks)
        print_line("blocks at the end", result->end_blocks_met, result->end_blocks);
    if (result->figure_count)
        print_line("final statistics", result->figures_met, result->figure_count);
    else
        puts("  final statistics       none are recorded beside it");
    printf("  peak reserved        %12" PRIu64 " of %12" PRIu64 " bytes\n",
           result->peak_reserved_bytes, result->recorded_peak_reserved_bytes);
    print_start(result, policy);
    print_releases(result);
    print_limit(result);
    print_difference(info, &result->difference);
    print_figures(result);
}

static enum ar_status compare(const struct arguments *self, struct trace_source *source,
                              const char *policy_text, struct ar_error *error)
{
    struct placements placements = {.path = self->placements};
    const struct observer observer = {
        .begin = placements_begin, .row = placements_row, .argument = &placements};
    AR_CLOSED(fidelity_result_close) struct fidelity_result result = {0};
    AR_CLOSED(ar_spec_close) struct ar_spec policy = {0};
    const struct trace_stats *stats = &source->stats;
    AR_FREED struct fidelity_stat *items = calloc(stats->count + 1, sizeof *items);
    AR_TRY_MEMORY(items, error, "statistics");
    for (size_t i = 0; i < stats->count; i++)
        items[i] = (struct fidelity_stat){stats->items[i].name, stats->items[i].value};
    AR_TRY(ar_spec_parse(policy_text, &policy, error));
    const struct fidelity config = {.policy = &policy,
                                    .source = source,
                                    .stats = items,
                                    .stat_count = stats->count,
                                    .seed = 1,
                                    .observer = &observer};
    enum ar_status status = fidelity_run(&config, &result, error);
    if (!status && self->placements)
        status = output_commit(&placements.file, error);
    else
        output_abandon(&placements.file);
    AR_TRY(status);
    print_result(&source->info, policy_text, &result);
    return result.agrees ? AR_OK
                         : ar_error_set(error, AR_NEGATIVE, "%s: policy and recording differ",
                                        source->info.name);
}

static enum ar_status compare_source(const struct arguments *self, struct trace_source *source,
                                     struct ar_error *error)
{
    char policy[1024];
    if (self->policy)
        return compare(self, source, self->policy, error);
    AR_TRY(fidelity_default_spec(&source->info, policy, sizeof policy, error));
    return compare(self, source, policy, error);
}

/* ---- recordings of several GPUs: each has an allocator of its own ---- */

/* A workload_take: compares a recording, or one GPU of it. */
static enum ar_status compare_part(void *argument, struct workload_part *part,
                                   struct ar_error *error)
{
    struct arguments *self = argument;
    if (part->several && self->placements)
        return ar_invalid(error, "fidelity: the recording has several GPUs; select the one of "
                                 "--placements with --device N");
    if (self->count++)
        puts("");
    enum ar_status status = compare_source(self, part->source, error);
    const struct ar_error why = *error;
    if (status == AR_INVALID && part->several && !part->source->report)
        status = ar_error_set(error, status,
                              "%.300s; this is one GPU of a converted trace, whose notes name no "
                              "GPU: give the recording itself, or convert it with --device N",
                              why.text);
    self->differ += status == AR_NEGATIVE;
    return part->several && status == AR_NEGATIVE ? AR_OK : status;
}

enum ar_status cmd_fidelity(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (!self.trace)
        return ar_invalid(error, "fidelity: no recording is given; write fidelity TRACE");
    const struct workload_choice choice = cli_choice(&self.device, true);
    AR_TRY(workload_each(self.trace, &choice, compare_part, &self, error));
    if (self.differ)
        return ar_error_set(error, AR_NEGATIVE, "%s: policy and recording differ on %u of %u GPUs",
                            self.trace, self.differ, self.count);
    return AR_OK;
}
