/* `advise`: finds settings that let a recorded program run in less memory. */

#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/cli/cli.h"
#include "bench/machine/environment.h"
#include "bench/report/output_file.h"
#include "bench/report/sentence.h"
#include "bench/report/pages.h"
#include "bench/suite/progress.h"
#include "bench/suite/suite.h"
#include "sim/advise/fits.h"
#include "sim/sim_device/profile.h"
#include "workloads/formats/torch/sidecar.h"
#include "workloads/io/fields.h"
#include "workloads/trace/trace.h"
#include "workloads/workload.h"

#define PAGES_MOST 128

struct arguments {
    struct suite suite;
    uint64_t capacity_bytes;
    bool as_limit;
    bool card_named;     /* the device has a profile and no capacity */
    uint64_t batches[2]; /* 0, 0: none */
    const char *json;
    bool what_if;
};

static enum ar_status take_capacity(void *arguments, const struct cli_option *option,
                                    const char *value, struct ar_error *error)
{
    struct arguments *self = arguments;
    if (self->capacity_bytes)
        return ar_invalid(error, "give --capacity or --limit once, and not both");
    self->as_limit = strcmp(option->name, "limit") == 0;
    return cli_card_bytes(option->name, value, &self->capacity_bytes, error);
}

static enum ar_status take_batches(void *arguments, const struct cli_option *option AR_UNUSED,
                                   const char *value, struct ar_error *error)
{
    struct arguments *self = arguments;
    char first[32];
    const char *comma = strchr(value, ',');
    if (!comma || (size_t)(comma - value) >= sizeof first)
        return ar_invalid(error, "--batches %s: write two numbers, such as 8,16", value);
    snprintf(first, sizeof first, "%.*s", (int)(comma - value), value);
    AR_TRY(ar_count_parse(first, &self->batches[0], error));
    AR_TRY(ar_count_parse(comma + 1, &self->batches[1], error));
    if (self->batches[0] == self->batches[1] || !self->batches[0] || !self->batches[1])
        return ar_invalid(error, "--batches %s: they must differ and not be 0", value);
    return AR_OK;
}

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {CLI_CAPACITY_ROW, CLI_CALL(take_capacity)},
    {0, "limit", "BYTES", "the same, as a limit that the program sets itself",
     CLI_CALL(take_capacity)},
    {0, "batches", "A,B", "two traces have these batch sizes: find the largest batch",
     CLI_CALL(take_batches)},
    {0, "what-if", NULL, "predict each trace of a program from those under other settings",
     CLI_FLAG(what_if)},
    {'d', "device", "DEVICE",
     "a simulated device; default: sim; capacity= or profile= describe the card; a number N: only "
     "GPU N of the traces",
     CLI_SUITE(cli_suite_key), .many = true},
    {CLI_CARD_ROW, CLI_SUITE(cli_suite_card)},
    {'p', "policy", "POLICY", "a setting or policy that the table shows in any case",
     CLI_SUITE(cli_suite_policy), .many = true},
    {0, "json", "FILE", "the advice as JSON; - is standard output", CLI_FILE(json)},
    {0, "frees", "MODE",
     "ordered, at-once or recorded; default: recorded if the trace has separate free completions, "
     "otherwise ordered",
     CLI_SUITE(cli_suite_key)},
    {0, "host", "MODE", "host time: none (default), recorded or open", CLI_SUITE(cli_suite_key)},
    {0, "seed", "N", "seed of policies that use random numbers", CLI_SUITE(cli_suite_key)},
    {0, "jobs", "N", "workers; default: one for each processor", CLI_SUITE(cli_suite_key)},
    {0},
};

static const struct cli_page page = {
    .arguments = "TRACE [TRACE..] [--capacity BYTES] [options]",
    .text =
        "Finds settings that let a recorded program run in less memory. It first checks that the\n"
        "replay agrees with the recording. Then it ranks the settings of the recorded framework\n"
        "and pairs of them by the capacity that they need, and other policies. Several traces\n"
        "are the ranks of one program or, with --batches, two batch sizes of it. The GPUs of a\n"
        "trace are advised on one by one. Exit status 1: no setting fits at the capacity that is\n"
        "given.",
    .options = options,
    .argument = {CLI_SUITE(cli_suite_workload)},
};

/* The results: a page for each trace. */
struct advice {
    struct advise_page pages[PAGES_MOST];
    char *paths[PAGES_MOST];
    struct advise_result results[PAGES_MOST];
    struct trace_source *sources[PAGES_MOST];
    size_t count;
};

/* The progress line of a trace. */
struct trace_progress {
    struct progress *line;
    const char *name;
};

static void show_tried(void *argument, size_t done, size_t total)
{
    struct trace_progress *self = argument;
    self->line->total = total;
    self->line->done = done - 1;
    progress_step(self->line, self->name);
}

/* What advise_one needs besides its part of a trace. */
struct advising {
    const struct arguments *arguments;
    const struct ar_spec *device;
    struct progress progress;
    struct advice *advice;
};

/* What the user named must be among what was tried. */
static enum ar_status check_wanted(const struct text_list *wanted,
                                   const struct advise_result *result, struct ar_error *error)
{
    for (size_t i = 0; i < wanted->count; i++) {
        bool found = false;
        for (size_t j = 0; j < result->count; j++)
            found |= strcmp(result->rows[j].candidate.spec, wanted->items[i]) == 0;
        if (!found)
            return ar_invalid(error,
                              "-p %s: the table can have no such row; `--json -` has the names of "
                              "all settings (listed: true), and `capacity -p %s` what it needs",
                              wanted->items[i], wanted->items[i]);
    }
    return AR_OK;
}

/* A workload_take: advice on a trace, or on one GPU of it. */
static enum ar_status advise_one(void *argument, struct workload_part *part, struct ar_error *error)
{
    struct advising *advising = argument;
    const struct arguments *self = advising->arguments;
    struct advice *advice = advising->advice;
    size_t at = advice->count;
    if (at == PAGES_MOST)
        return ar_invalid(error, "more than %d traces at once", PAGES_MOST);
    const struct trace_info *info = &part->source->info;
    struct trace_progress shown = {&advising->progress, info->name};
    const struct advise_config config = {
        .source = part->source,
        .device = advising->device,
        .capacity_bytes = self->capacity_bytes,
        .as_limit = self->as_limit,
        .card_asked = self->card_named,
        .frees = replay_frees_nearest(info, self->suite.frees),
        .host = self->suite.host,
        .seed = self->suite.seed,
        .jobs = environment_jobs(self->suite.jobs),
        .tried = show_tried,
        .tried_argument = &shown,
    };
    AR_CLOSED(fits_notes_close) struct fits_notes notes = {0};
    struct advise_result *result = &advice->results[at];
    AR_TRY(advise_run(&config, result, error));
    if (!result->peak.bytes && !result->has_failed_request) {
        advise_result_close(result);
        return ar_invalid(error,
                          "%s holds no memory of a GPU at any time, so there is nothing to "
                          "advise on",
                          info->name);
    }
    AR_TRY(fits_notes_read(part->source, &notes, error));
    char *path = advice->paths[at] = strdup(part->text);
    AR_TRY_MEMORY(path, error, "the advice");
    advice->sources[at] = part->source;
    advice->pages[at] = (struct advise_page){.name = info->name,
                                             .path = path,
                                             .recorder = info->recorder,
                                             .format = info->format,
                                             .frees = config.frees,
                                             .result = result,
                                             .source = part->source,
                                             .traced = notes.traced,
                                             .wanted = self->suite.policies.items,
                                             .wanted_count = self->suite.policies.count};
    part->source = NULL;
    advice->count++;
    return check_wanted(&self->suite.policies, &advice->results[at], error);
}

static struct workload_choice choice_of(const struct suite *suite)
{
    return (struct workload_choice){.gpu = suite->gpu_given ? &suite->gpu : NULL,
                                    .recording = true};
}

/* Before the first trace is advised on, which can take minutes. */
static enum ar_status check_policies(const struct text_list *policies, struct ar_error *error)
{
    for (size_t i = 0; i < policies->count; i++) {
        const struct ar_policy_ops *ops;
        AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
        AR_TRY(ar_spec_parse(policies->items[i], &spec, error));
        AR_TRY(registry_lookup(&spec, &ops, error));
    }
    return AR_OK;
}

static enum ar_status advise_all(const struct arguments *self, const struct ar_spec *device,
                                 struct advice *advice, struct ar_error *error)
{
    struct advising advising = {.arguments = self, .device = device, .advice = advice};
    const struct workload_choice choice = choice_of(&self->suite);
    enum ar_status status = check_policies(&self->suite.policies, error);
    const struct text_list *traces = &self->suite.workloads;
    for (size_t i = 1; i < traces->count; i++)
        for (size_t j = 0; j < i; j++)
            if (cli_same_file(traces->items[i], traces->items[j]))
                return ar_invalid(error,
                                  "%s is named twice; several traces are different ranks or "
                                  "batch sizes of a program",
                                  traces->items[i]);
    progress_begin(&advising.progress, 0);
    for (size_t i = 0; i < traces->count && !status; i++)
        status = workload_each(traces->items[i], &choice, advise_one, &advising, error);
    progress_end(&advising.progress);
    if (!status && self->batches[0] && advice->count != 2)
        status = ar_invalid(error,
                            "--batches: the traces have several GPUs; select one with --device N");
    return status;
}

static enum ar_status print_all(const struct arguments *self, const struct advice *advice,
                                struct ar_error *error)
{
    AR_FREED char *together = NULL;
    size_t bytes = 0;
    if (advice->count > 1) {
        FILE *stream = open_memstream(&together, &bytes);
        AR_TRY_MEMORY(stream, error, "the page");
        enum ar_status status =
            self->batches[0] ? advise_page_batches(stream, advice->pages, self->batches, error)
                             : advise_page_ranks(stream, advice->pages, advice->count, error);
        bool whole = text_end(stream, &together);
        AR_TRY(status);
        AR_TRY_MEMORY(whole, error, "the page");
    }
    /* The answer about all traces is what was asked: it comes first. */
    fputs(together ? together : "", stdout);
    for (size_t i = 0; i < advice->count; i++) {
        if (i || together)
            puts("\n");
        AR_TRY(advise_page_print(stdout, &advice->pages[i], error));
    }
    return AR_OK;
}

/* The file is opened before the search, so that a file that cannot be written is reported early. */
static enum ar_status search_and_report(const struct arguments *self, const struct ar_spec *device,
                                        struct advice *advice, struct ar_error *error)
{
    AR_CLOSED(output_set_abandon) struct output_set files = {0};
    FILE *json;
    AR_TRY(output_set_add(&files, self->json, &json, error));
    AR_TRY(advise_all(self, device, advice, error));
    if (!files.standard)
        AR_TRY(print_all(self, advice, error));
    if (json)
        AR_TRY(advise_json_write(json, advice->pages, advice->count,
                                 self->batches[0] ? self->batches : NULL, error));
    return output_set_commit(&files, error);
}

/* NEGATIVE if no setting fits at the capacity that the user gave. */
static enum ar_status verdict(const struct arguments *self, const struct advice *advice,
                              struct ar_error *error)
{
    size_t none = 0, last = 0;
    for (size_t i = 0; i < advice->count; i++)
        if (advise_none_fits(&advice->results[i])) {
            none++;
            last = i;
        }
    if (!none || self->batches[0] || !(self->capacity_bytes || self->card_named))
        return AR_OK;
    const char *capacity = AR_SIZE(advice->results[last].capacity_bytes);
    if (none == 1)
        return ar_error_set(error, AR_NEGATIVE, "%s: no setting fits in %s",
                            advice->pages[last].name, capacity);
    return ar_error_set(error, AR_NEGATIVE, "%zu of %zu traces: no setting fits in %s", none,
                        advice->count, capacity);
}

/* Takes the capacity of the device; it has priority over the recorded one. */
static enum ar_status take_device(struct arguments *self, const struct ar_spec *device,
                                  struct ar_error *error)
{
    const struct ar_spec_link *link = &device->links[device->link_count - 1];
    for (size_t i = 0; i < link->pair_count; i++) {
        if (strcmp(link->pairs[i].key, "profile") == 0)
            self->card_named = !self->capacity_bytes;
        if (strcmp(link->pairs[i].key, "capacity") != 0)
            continue;
        if (self->capacity_bytes)
            return ar_invalid(
                error,
                "the capacity is given twice: give capacity= of the device, --capacity or --limit");
        AR_TRY(ar_size_parse(link->pairs[i].value, &self->capacity_bytes, error));
    }
    if (self->capacity_bytes)
        self->card_named = false;
    return AR_OK;
}

/* ---- --what-if ------------------------------------------------------------------------------ */

/* "PROGRAM.SETTING" of a path; the name of a file has at most 255 bytes (NAME_MAX). The program of
 * one GPU of a trace has the name of the trace's part. */
struct named {
    const char *path;
    char program[320], setting[256];
};

static void parse_name(const char *path, struct named *out)
{
    const char *name = field_file_name(path);
    const char *gpu = workload_gpu_of(path);
    size_t program = strcspn(name, ".:");
    const char *setting = name[program] == '.' ? name + program + 1 : "";
    out->path = path;
    snprintf(out->program, sizeof out->program, "%.*s%s%s", (int)program, name, gpu ? " gpu" : "",
             gpu ? gpu : "");
    snprintf(out->setting, sizeof out->setting, "%.*s", (int)strcspn(setting, ".:"), setting);
}

/* A workload_take: lists the parts of the traces. */
static enum ar_status list_part(void *argument, struct workload_part *part, struct ar_error *error)
{
    return text_list_add(argument, part->text, error);
}

/* The retries that the allocator counted, from the .json file of the recording. */
static enum ar_status find_retries(const char *path, struct whatif_line *line,
                                   struct ar_error *error)
{
    AR_CLOSED(trace_stats_close) struct trace_stats stats = {0};
    AR_TRY(sidecar_stats_read(path, &stats, error));
    for (size_t i = 0; i < stats.count; i++)
        if (strcmp(stats.items[i].name, "num_alloc_retries") == 0) {
            line->has_retries = true;
            line->recorded_retries = stats.items[i].value;
        }
    return AR_OK;
}

static enum ar_status predict(const struct suite *suite, const struct ar_spec *device,
                              const struct named *from, const struct named *to,
                              struct ar_error *error)
{
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_CLOSED(trace_close_at) struct trace_source *other = NULL;
    struct whatif whatif;
    struct whatif_line line = {
        .program = from->program, .from = from->setting, .to = to->setting, .whatif = &whatif};
    AR_TRY(workload_open_recording(from->path, &source, error));
    AR_TRY(workload_open_recording(to->path, &other, error));
    AR_TRY(find_retries(to->path, &line, error));
    const struct advise_config config = {.source = source,
                                         .device = device,
                                         .frees = replay_frees_nearest(&source->info, suite->frees),
                                         .host = suite->host,
                                         .seed = suite->seed};
    AR_TRY(whatif_predict(&config, other, &whatif, error));
    whatif_page_line(stdout, &line);
    return AR_OK;
}

static bool is_pair(const struct named *from, const struct named *to)
{
    return strcmp(from->program, to->program) == 0 && strcmp(from->path, to->path) != 0;
}

/* Predicts each recording of a program from its recordings under other settings. Prints a Markdown
 * table with a row for each pair of traces of one PROGRAM. INVALID if there is no such pair. */
static enum ar_status advise_whatif(const struct suite *suite, const struct ar_spec *device,
                                    struct ar_error *error)
{
    AR_CLOSED(text_list_close) struct text_list parts = {0};
    const struct workload_choice choice = choice_of(suite);
    size_t pairs = 0;
    for (size_t i = 0; i < suite->workloads.count; i++)
        AR_TRY(workload_each(suite->workloads.items[i], &choice, list_part, &parts, error));
    for (size_t i = 0; i < parts.count; i++)
        for (size_t j = 0; j < parts.count; j++) {
            struct named from, to;
            parse_name(parts.items[i], &from);
            parse_name(parts.items[j], &to);
            if (!is_pair(&from, &to))
                continue;
            if (pairs++ == 0)
                whatif_page_head(stdout);
            AR_TRY(ar_error_prefix(error, predict(suite, device, &from, &to, error), "%s from %s",
                                   to.path, from.path));
        }
    if (!pairs)
        return ar_invalid(error, "no two traces are of one program: their names must begin with "
                                 "the same PROGRAM, as in PROGRAM.SETTING.csv.gz");
    return AR_OK;
}

/* ---- the command ---------------------------------------------------------------------------- */

static void close_advice(struct advice **advice)
{
    for (size_t i = 0; *advice && i < (*advice)->count; i++) {
        advise_result_close(&(*advice)->results[i]);
        trace_close((*advice)->sources[i]);
        free((*advice)->paths[i]);
    }
    free(*advice);
}

static enum ar_status advise(struct arguments *self, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec device = {0};
    const struct text_list *devices = &self->suite.devices;
    if (self->suite.workloads.count == 0)
        return ar_invalid(error, "name a trace: advise TRACE");
    if (self->batches[0] && self->suite.workloads.count != 2)
        return ar_invalid(error, "--batches needs two traces");
    if (self->what_if && (self->json || self->batches[0] || self->capacity_bytes))
        return ar_invalid(error, "--what-if takes the recorded capacities: leave --json, "
                                 "--batches, --capacity and --limit out");
    if (devices->count > 1)
        return ar_invalid(error, "give one device");
    AR_TRY(ar_spec_parse(devices->count ? devices->items[0] : "sim", &device, error));
    if (strcmp(device.links[0].name, "sim") != 0)
        return ar_invalid(error,
                          "advise needs a simulated device: -d sim:capacity=24GiB, or a card: "
                          "-d sim:profile=%s",
                          sim_profile_builtin(device.text) ? device.text : "NAME (`list devices`)");
    if (self->what_if)
        return advise_whatif(&self->suite, &device, error);
    AR_TRY(take_device(self, &device, error));
    AR_CLOSED(close_advice) struct advice *advice = calloc(1, sizeof *advice);
    AR_TRY_MEMORY(advice, error, "the advice");
    AR_TRY(search_and_report(self, &device, advice, error));
    return verdict(self, advice, error);
}

enum ar_status cmd_advise(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.suite = SUITE_DEFAULTS};
    enum ar_status status = cli_parse(&page, argc, argv, &self, error);
    if (!status && (status = advise(&self, error)))
        (void)ar_error_prefix(error, status, "advise");
    suite_close(&self.suite);
    return status;
}
