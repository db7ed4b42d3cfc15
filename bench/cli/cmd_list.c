/* `list`: lists policies, decorators, workloads, recordings, devices, metrics, formats, parts and
 * messages, from the tables that the program itself uses. Most lists are names with a text for
 * each; with a name, everything about that one is printed. */
#include <dirent.h>
#include <strings.h>

#include "allocators/base/size.h"
#include "allocators/options.h"
#include "allocators/registry.h"
#include "bench/cli/cli.h"
#include "bench/report/result_writers.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "sim/device.h"
#include "sim/explain/message.h"
#include "sim/metrics/metrics.h"
#include "sim/sim_device/profile.h"
#include "sim/twin/twin.h"
#include "workloads/formats/torch/sidecar.h"
#include "workloads/gen/gen.h"
#include "workloads/io/fields.h"
#include "workloads/learned/learned.h"

struct arguments {
    struct cli_words words; /* the kind, and a name of it */
    bool names;
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {0, "names", NULL, "only the names, one in each line, for scripts", CLI_FLAG(names)},
    {0},
};

static const struct cli_page page = {
    .arguments = "[policies|workloads|devices|metrics|formats|parts|messages] [NAME]\n"
                 "policies|decorators|workloads|recordings|devices|metrics|formats|parts --names",
    .text = "Lists the names of a kind; with a NAME, describes that one. The list of policies "
            "includes decorators, which are written before a policy; the list of workloads "
            "includes the recordings in workloads/data.",
    .options = options,
    .argument = {.value = "name", CLI_WORDS(words, 2)},
};

/* ---- names with a text for each ------------------------------------------------------------ */

#define NAMES_MOST 128

#define NAME_COLUMNS "name<22; what it is<"
/* The name at an index, in the order of the list, and its text; NULL past the last. */
typedef const char *name_at(size_t index, const char **text);

/* Prints everything about the one at an index. */
typedef enum ar_status show_at(size_t index, struct ar_error *error);

/* Sets the error: there is no `what` of that name. It suggests the nearest one. */
static enum ar_status unknown(const char *what, const char *name, name_at *at,
                              struct ar_error *error)
{
    const char *names[NAMES_MOST], *text;
    size_t count = 0;
    while (count < NAMES_MOST && (names[count] = at(count, &text)))
        count++;
    return cli_unknown(what, name, names, count, error);
}

static void add_rows(struct table *table, name_at *at, const char *only)
{
    const char *name, *text;
    for (size_t i = 0; (name = at(i, &text)); i++) {
        if (only && strcasecmp(name, only) != 0)
            continue;
        table_cell(table, "%s", name);
        table_cell(table, "%s", text);
    }
}

/* The index of a name; SIZE_MAX: there is none. */
static size_t find(name_at *at, const char *name)
{
    const char *known, *text;
    for (size_t i = 0; (known = at(i, &text)); i++)
        if (strcasecmp(known, name) == 0)
            return i;
    return SIZE_MAX;
}

/* Prints the table or, with a name, that one; without `show` its rows of the table. */
static enum ar_status list_names(const char *what, name_at *at, show_at *show, const char *name,
                                 struct ar_error *error)
{
    size_t index = name ? find(at, name) : 0;
    if (index == SIZE_MAX)
        return unknown(what, name, at, error);
    if (name && show)
        return show(index, error);
    struct table *table = table_of(NAME_COLUMNS);
    add_rows(table, at, name);
    return table_end(table, stdout, TABLE_TEXT, error);
}

/* ---- options of a policy, workload or device ------------------------------------------------- */

static const char *type_name(const struct ar_option *option)
{
    static const char *const names[] = {
        [AR_OPTION_BYTES] = "bytes", [AR_OPTION_COUNT] = "count", [AR_OPTION_FRACTION] = "number",
        [AR_OPTION_BOOL] = "bool",   [AR_OPTION_CHOICE] = "",     [AR_OPTION_TEXT] = "text",
    };
    return option->type == AR_OPTION_CHOICE ? option->choices : names[option->type];
}

/* One end of a range, in the unit of the option. */
static const char *bound_text(const struct ar_option *option, double bound, char *text,
                              size_t text_bytes)
{
    if (option->type == AR_OPTION_BYTES)
        return ar_size_print_exact((uint64_t)bound, text, text_bytes);
    snprintf(text, text_bytes, option->type == AR_OPTION_COUNT ? "%.0f" : "%.15g", bound);
    return text;
}

static enum ar_status print_options(const struct ar_option *list, struct ar_error *error)
{
    if (!list || !list->name) {
        puts("No options.");
        return AR_OK;
    }
    struct table *table = table_of("option<13; type<8; default<8; range<12; what it is<");
    for (; list->name; list++) {
        table_cell(table, "%s", list->name);
        table_cell(table, "%s", type_name(list));
        table_cell(table, "%s", list->default_text ? list->default_text : "-");
        table_known(table, list->least != 0 || list->most != 0, "%s..%s",
                    bound_text(list, list->least, (char[32]){0}, 32),
                    bound_text(list, list->most, (char[32]){0}, 32));
        table_cell(table, "%s", list->help);
    }
    return table_end(table, stdout, TABLE_TEXT, error);
}

/* ---- devices, metrics ------------------------------------------------------------------ */

static void profile_row(struct table *table, const char *name, const struct sim_profile *profile)
{
    char total[32] = "no limit";
    if (profile->total_bytes)
        snprintf(total, sizeof total, "%.2f", (double)profile->total_bytes / (double)AR_GIB);
    table_cell(table, "%s", name);
    table_cell(table, "%s", profile->card[0] ? profile->card : "-");
    table_cell(table, "%s", total);
    table_cell(table, "%s", !profile->card[0] ? "-" : profile->memory[0] ? "reported" : "measured");
    if (profile->costs_of[0])
        table_cell(table, "of %s", profile->costs_of);
    else
        table_cell(table, "%s", profile->card[0] ? "measured" : "none");
}

/* The built-in profiles of the simulated device, or the one with that name. */
static enum ar_status print_profiles(const char *only, struct ar_error *error)
{
    const char *names[SIM_PROFILES_MOST];
    size_t count = sim_profile_names(names, SIM_PROFILES_MOST);
    struct sim_profile profile;
    AR_CLOSED(table_close_at)
    struct table *table = table_of("profile<; card<; total|GiB; memory<; costs<");
    for (size_t i = 0; i < count; i++) {
        if (only && strcmp(names[i], only) != 0)
            continue;
        AR_TRY(sim_profile_read(sim_profile_builtin(names[i]), names[i], &profile, error));
        profile_row(table, names[i], &profile);
    }
    if (!only)
        putchar('\n');
    AR_TRY(table_print(table, stdout, TABLE_TEXT, error));
    if (only)
        say(stdout, "A card: -d sim:profile=%s.%s%s%s", only,
            profile.usable_bytes ? " Of its memory a process may have " : "",
            profile.usable_bytes ? AR_SIZE(profile.usable_bytes) : "",
            profile.usable_bytes ? "." : "");
    else
        say(stdout,
            "Memory: measured on the card, or as its driver reported it to others (the source is "
            "in sim/profiles); the part that a process cannot use is then assumed. Costs: of "
            "driver calls, measured on the card, or those of another profile.");
    return AR_OK;
}

static const char *device_at(size_t index, const char **text)
{
    *text = device_kinds[index] ? device_kinds[index]->summary : NULL;
    return device_kinds[index] ? device_kinds[index]->name : NULL;
}

/* A device, or a profile of the simulated one. */
static const char *device_word_at(size_t index, const char **text)
{
    const char *names[SIM_PROFILES_MOST];
    size_t kinds = 0, count = sim_profile_names(names, SIM_PROFILES_MOST);
    while (device_kinds[kinds])
        kinds++;
    *text = NULL;
    return index < kinds           ? device_at(index, text)
           : index < kinds + count ? names[index - kinds]
                                   : NULL;
}

static enum ar_status list_devices(const char *name, struct ar_error *error)
{
    char why[512];
    if (name && sim_profile_builtin(name))
        return print_profiles(name, error);
    for (size_t i = 0; device_kinds[i]; i++) {
        const struct ar_device_kind *kind = device_kinds[i];
        if (name && strcmp(name, kind->name) != 0)
            continue;
        bool there = kind->available(why, sizeof why);
        fputs(!name && i ? "\n" : "", stdout);
        say(stdout, "%s: %s", kind->name, kind->summary);
        say(stdout, "%s: %s", there ? "Available" : "Not available", why);
        if (strcmp(kind->name, "sim") == 0)
            AR_TRY(print_profiles(NULL, error));
        putchar('\n');
        AR_TRY(print_options(kind->options, error));
        if (name)
            return AR_OK;
    }
    return name ? unknown("device", name, device_word_at, error) : AR_OK;
}

static const char *better_name(enum metric_better better)
{
    return better == METRIC_LOWER ? "lower" : better == METRIC_HIGHER ? "higher" : "-";
}

static enum ar_status show_metric(size_t index, struct ar_error *error AR_UNUSED)
{
    const struct metric_info *info = metric_info((enum metric)index);
    say(stdout, "%s: %s", info->name, info->definition);
    say(stdout, "Unit: %s. Better: %s. %s", info->unit, better_name(info->better),
        info->class == METRIC_EXACT
            ? "Exact: the same on every machine on a simulated GPU, whose times "
              "are modelled."
            : "Timed: measured on the host, with --time only.");
    return AR_OK;
}

static const char *metric_at(size_t index, const char **text)
{
    const struct metric_info *info = index < METRIC_COUNT ? metric_info((enum metric)index) : NULL;
    *text = info ? info->definition : NULL;
    return info ? info->name : NULL;
}

/* The metrics of the columns with that heading in the tables of `run`. */
static enum ar_status show_column(const char *heading, struct ar_error *error)
{
    enum metric metric;
    for (size_t i = 0; (metric = results_column_metric(heading, i)) != METRIC_COUNT; i++) {
        if (i)
            putchar('\n');
        AR_TRY(show_metric(metric, error));
    }
    return AR_OK;
}

static enum ar_status list_metrics(const char *name, struct ar_error *error)
{
    size_t column = name ? find(results_csv_run_column, name) : SIZE_MAX;
    if (column != SIZE_MAX) {
        const char *definition;
        (void)results_csv_run_column(column, &definition);
        say(stdout, "%s: %s", name, definition);
        say(stdout, "A column of results.csv that describes the run; it is no metric.");
        return AR_OK;
    }
    if (name && find(metric_at, name) == SIZE_MAX && results_column_metric(name, 0) != METRIC_COUNT)
        return show_column(name, error);
    if (name && strcmp(name, "capacity_ratio") == 0) {
        say(stdout,
            "%s: the capacity of a point of the slowdown curve / the peak of live bytes; "
            "a column of slowdown.csv and of the JSON, and no metric",
            name);
        return AR_OK;
    }
    bool share = false;
    enum metric metric = name ? figure_column_metric(name, &share) : METRIC_COUNT;
    if (name && find(metric_at, name) == SIZE_MAX && metric != METRIC_COUNT) {
        if (share)
            say(stdout,
                "%s: %s / device_time_ns, a ratio in the data of the figures; empty if slowdown "
                "is null\n",
                name, metric_info(metric)->name);
        return show_metric(metric, error);
    }
    if (name)
        return list_names("metric", metric_at, show_metric, name, error);
    struct table *table = table_of("metric<22; unit<; better<; class<; definition<");
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_info *info = metric_info((enum metric)i);
        table_cell(table, "%s", info->name);
        table_cell(table, "%s", info->unit);
        table_cell(table, "%s", better_name(info->better));
        table_cell(table, "%s", info->class == METRIC_EXACT ? "exact" : "timed");
        table_cell(table, "%s", info->definition);
    }
    return table_end(table, stdout, TABLE_TEXT, error);
}

/* ---- messages, formats ----------------------------------------------------------------------- */

/* The out-of-memory messages that `explain --message` reads. */
static const char *message_at(size_t index, const char **text)
{
    enum message_framework framework = (enum message_framework)index;
    *text = index < MESSAGE_FRAMEWORK_COUNT ? message_framework_summary(framework) : NULL;
    return index < MESSAGE_FRAMEWORK_COUNT ? message_framework_name(framework) : NULL;
}

static const struct {
    const char *name, *text;
} formats[] = {
    {"text", "allocrig's own, read and written: one event a line (workloads/trace/FORMAT.md)"},
    {"binary", "the same events in records of 32 bytes, read and written"},
    {"oracle", "a text file of a and f lines without a header, read"},
    {"csv",
     "a recording, read: lines action,addr,size,stream,time_us after this heading (actions: alloc, "
     "free_requested, ..; workloads/trace/FORMAT.md), and maybe a .json beside it"},
    {"zstd", "each of them compressed, read; text and binary written with the ending .zst"},
    {"gzip", "each of them compressed, read"},
    {"json", "results: allocrig.result/1, described by results/schema.json, written"},
    {"placements", "the address of each block of one run, as CSV, written"},
    {"series", "the state after each event of one run, as CSV, written"},
    {"stats", "the statistics of one run under the names of the allocator, as JSON, written"},
    {"calls", "each driver call of one run with its cost, as CSV, written"},
    {"snapshot", "run --snapshot: one run as a PyTorch memory snapshot, written"},
    {"chrome", "run --chrome: one run over time for Perfetto and Chrome, as JSON, written"},
    {"hdr", "run --hdr: latencies by percentile, as HdrHistogram text, written"},
    {"latex", "run --latex: the tables for LaTeX with booktabs, written"},
    {"junit", "run --junit: each run as a test case, as JUnit XML, written"},
    {"openmetrics", "run --openmetrics: every figure as a gauge, as text, written"},
    {"suite", "the runs of a suite, as INI, read; workloads/suites/default.ini explains every key"},
};

/* The formats above, then the readers and writers of other formats. */
static const char *format_at(size_t index, const char **text)
{
    const struct format_writer *writer;
    const struct format_reader *reader;
    size_t readers = 0;
    if (index < AR_COUNT(formats)) {
        *text = formats[index].text;
        return formats[index].name;
    }
    while (format_reader_at(readers))
        readers++;
    index -= AR_COUNT(formats);
    if ((reader = format_reader_at(index))) {
        *text = reader->summary;
        return reader->name;
    }
    writer = format_writer_at(index - readers);
    *text = writer ? writer->summary : NULL;
    return writer ? writer->name : NULL;
}

/* ---- policies, decorators --------------------------------------------------------------- */

static const struct {
    enum ar_policy_capability bit;
    const char *text;
} capabilities[] = {
    {AR_POLICY_STREAM_ORDERED, "keeps a block from other streams until its reuse is safe"},
    {AR_POLICY_OPAQUE, "its inside cannot be seen: free block metrics are null"},
    {AR_POLICY_OFFLINE, "knows the whole trace before the first request"},
    {AR_POLICY_NEEDS_MAPPING, "needs virtual memory"},
    {AR_POLICY_WATCHES_FREE, "reports its free blocks: the unusable-free index is known"},
    {AR_POLICY_HONOURS_ALIGNMENT, "serves any power-of-two alignment"},
    {AR_POLICY_UNRANKED, "a harness check or a bound: shown, never ranked"},
    {AR_POLICY_OVERLAPS, "hands out memory that it never takes back"},
    {AR_POLICY_PINNED, "for pinned host memory (run --pinned); not part of -p all"},
    {AR_POLICY_TRIM_KEEPS, "a trim keeps some memory, as that of the imitated allocator does"},
};

static enum ar_status show_policy(const struct ar_policy_ops *ops, struct ar_error *error)
{
    say(stdout, "%s: %s", ops->name, ops->summary);
    if (ops->reference)
        say(stdout, "Reference: %s", ops->reference);
    for (size_t i = 0; ops->recorders && ops->recorders[i]; i++)
        printf("%s%s%s", i ? ", " : "Answers to recordings of: ", ops->recorders[i],
               ops->recorders[i + 1] ? "" : "\n");
    for (size_t i = 0; i < AR_COUNT(capabilities); i++)
        if (ops->capabilities & capabilities[i].bit)
            printf("- %s\n", capabilities[i].text);
    putchar('\n');
    return print_options(ops->options, error);
}

static enum ar_status show_decorator(size_t index, struct ar_error *error)
{
    const struct decorator_ops *ops = registry_decorator(index);
    say(stdout, "%s: %s", ops->name, ops->summary);
    say(stdout, "A decorator: write %s(key=value)+POLICY.", ops->name);
    putchar('\n');
    return print_options(ops->options, error);
}

/* A policy from a shared object, with the name that -p takes. */
static enum ar_status show_object(const char *name, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    const struct ar_policy_ops *ops;
    AR_TRY(ar_spec_parse(name, &spec, error));
    AR_TRY(registry_lookup(&spec, &ops, error));
    return show_policy(ops, error);
}

static bool names_object(const char *name)
{
    return strchr(name, '/') || field_ends_with(name, ".so");
}

static const char *policy_at(size_t index, const char **text)
{
    const struct ar_policy_ops *ops = registry_policy(index);
    *text = ops ? ops->summary : NULL;
    return ops ? ops->name : NULL;
}

static const char *decorator_at(size_t index, const char **text)
{
    const struct decorator_ops *ops = registry_decorator(index);
    *text = ops ? ops->summary : NULL;
    return ops ? ops->name : NULL;
}

static size_t policy_count(void)
{
    size_t count = 0;
    while (registry_policy(count))
        count++;
    return count;
}

/* A policy or a decorator. */
static const char *policy_word_at(size_t index, const char **text)
{
    size_t policies = policy_count();
    return index < policies ? policy_at(index, text) : decorator_at(index - policies, text);
}

static enum ar_status show_policy_word(size_t index, struct ar_error *error)
{
    size_t policies = policy_count();
    return index < policies ? show_policy(registry_policy(index), error)
                            : show_decorator(index - policies, error);
}

static enum ar_status list_policies(const char *name, struct ar_error *error)
{
    if (name && names_object(name))
        return show_object(name, error);
    if (name)
        return list_names("policy", policy_word_at, show_policy_word, name, error);
    struct table *table = table_of(NAME_COLUMNS);
    add_rows(table, policy_at, NULL);
    table_heading(table, "decorators, written before a policy: checked+growth");
    add_rows(table, decorator_at, NULL);
    return table_end(table, stdout, TABLE_TEXT, error);
}

/* ---- workloads: generators, and recordings in the working folder ------------------------- */

/* The generators, then `learned`, which is none but is named as one; NULL past the end. */
static const struct gen_ops *workload_at(size_t index)
{
    static const struct gen_ops learned = {.name = LEARNED_NAME,
                                           .summary = LEARNED_SUMMARY,
                                           .page = LEARNED_PAGE,
                                           .options = learned_options};
    const struct gen_ops *ops = gen_at(index);
    return ops || !index ? ops : gen_at(index - 1) ? &learned : NULL;
}

static enum ar_status show_workload(size_t index, struct ar_error *error)
{
    const struct gen_ops *ops = workload_at(index);
    say(stdout, "%s: %s", ops->name, ops->summary);
    if (ops->page)
        say(stdout, "Where its sizes come from: %s", ops->page);
    if (ops->capabilities & GEN_ADAPTIVE)
        puts("Adaptive: its requests depend on the results of earlier ones.");
    if (ops->capabilities & GEN_KNOWN_ANSWER)
        puts("Its optimal result is known.");
    if (ops->capabilities & GEN_ADVERSARIAL)
        puts("Adversarial: it is not typical of programs.");
    putchar('\n');
    return print_options(ops->options, error);
}

#define RECORDINGS "workloads/data"

static int is_recording(const struct dirent *entry)
{
    return strstr(entry->d_name, ".csv") != NULL && entry->d_name[0] != '.';
}

/* The recorded settings, from the .json file of the recording. */
static enum ar_status recording_row(struct table *table, const char *file, struct ar_error *error)
{
    char path[512];
    char limit[48] = "";
    struct trace_info info = {.recorder = ""};
    AR_CLOSED(sidecar_close) struct sidecar sidecar = {0};
    snprintf(path, sizeof path, RECORDINGS "/%s", file);
    AR_TRY(sidecar_read(path, &info, &sidecar, error));
    if (info.limit_bytes)
        snprintf(limit, sizeof limit, "%slimit %s", info.conf[0] ? ", " : "",
                 AR_SIZE_EXACT(info.limit_bytes));
    table_cell(table, "%s", path);
    table_cell(table, "%s%s", info.conf, info.conf[0] || limit[0] ? limit : "-");
    return AR_OK;
}

static bool is_named(const char *file, const char *name)
{
    size_t folder = sizeof RECORDINGS; /* with the slash */
    return strcmp(name, file) == 0 ||
           (strncmp(name, RECORDINGS "/", folder) == 0 && strcmp(name + folder, file) == 0);
}

/* Finds all recordings in the working folder, or the one with that name. Adds rows to the table or,
 * if it is NULL, prints their paths. Without the folder there are none. */
static enum ar_status each_recording(struct table *table, const char *name, size_t *count,
                                     struct ar_error *error)
{
    struct dirent **files = NULL;
    int file_count = scandir(RECORDINGS, &files, is_recording, alphasort);
    enum ar_status status = AR_OK;
    *count = 0;
    for (int i = 0; i < file_count; i++) {
        bool wanted = !name || is_named(files[i]->d_name, name);
        if (wanted && table && !status)
            status = recording_row(table, files[i]->d_name, error);
        else if (wanted && !status)
            printf(RECORDINGS "/%s\n", files[i]->d_name);
        *count += wanted;
        free(files[i]);
    }
    free(files);
    return status;
}

/* Prints `before` first if there are any. */
static enum ar_status print_recordings(const char *name, const char *before, size_t *count,
                                       struct ar_error *error)
{
    AR_CLOSED(table_close_at) struct table *table = table_of("recording<50; settings of PyTorch<");
    AR_TRY(each_recording(table, name, count, error));
    if (*count == 0)
        return AR_OK;
    fputs(before, stdout);
    return table_print(table, stdout, TABLE_TEXT, error);
}

static enum ar_status list_recordings(const char *name, struct ar_error *error)
{
    size_t count;
    AR_TRY(print_recordings(name, "", &count, error));
    if (name && count == 0)
        return ar_invalid(error, "there is no recording \"%.60s\" in " RECORDINGS, name);
    return AR_OK;
}

static const char *workload_name_at(size_t index, const char **text)
{
    const struct gen_ops *ops = workload_at(index);
    *text = ops ? ops->summary : NULL;
    return ops ? ops->name : NULL;
}

static enum ar_status list_workloads(const char *name, struct ar_error *error)
{
    size_t recordings;
    enum ar_status status = list_names("workload", workload_name_at, show_workload, name, error);
    if (name)
        return status;
    AR_THEN(status, print_recordings(NULL, "\n", &recordings, error));
    puts("\nA workload is also any trace file, by its path.");
    return status;
}

/* ---- parts of `twin` ------------------------------------------------------------------------- */

static const char *part_at(size_t index, const char **text)
{
    const struct twin_part_ops *ops = twin_part_at(index);
    *text = ops ? ops->summary : NULL;
    return ops ? ops->kind : NULL;
}

static enum ar_status print_actions(const struct twin_action *action, struct ar_error *error)
{
    struct table *table = table_of("action<; arguments<24; what it does<");
    for (; action->name; action++) {
        table_cell(table, "%s", action->name);
        table_cell(table, "%s", action->arguments ? action->arguments : "-");
        table_cell(table, "%s", action->help);
    }
    return table_end(table, stdout, TABLE_TEXT, error);
}

static enum ar_status show_part(size_t index, struct ar_error *error)
{
    const struct twin_part_ops *ops = twin_part_at(index);
    say(stdout, "[%s NAME]: %s", ops->kind, ops->summary);
    putchar('\n');
    AR_TRY(print_options(ops->options, error));
    putchar('\n');
    return print_actions(ops->actions, error);
}

static enum ar_status list_parts(const char *name, struct ar_error *error)
{
    AR_TRY(list_names("part", part_at, show_part, name, error));
    if (name)
        return AR_OK;
    puts("\nEvery process has these actions:\n");
    return print_actions(twin_process_actions(), error);
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct kind {
    const char *name;
    name_at *at; /* NULL: recordings, which are found in their folder */
    enum ar_status (*list)(const char *name, struct ar_error *error); /* NULL: list_names */
    const char *one; /* for list_names: what the names are */
    show_at *show;
    bool is_part; /* the list of the kind above includes it */
} kinds[] = {
    {"policies", policy_at, .list = list_policies},
    {"decorators", decorator_at, .one = "decorator", .show = show_decorator, .is_part = true},
    {"workloads", workload_name_at, .list = list_workloads},
    {"recordings", NULL, .list = list_recordings, .is_part = true},
    {"devices", device_at, .list = list_devices},
    {"metrics", metric_at, .list = list_metrics},
    {"formats", format_at, .one = "format"},
    {"parts", part_at, .list = list_parts},
    {"messages", message_at, .one = "message"},
};

static enum ar_status list_kind(const struct kind *self, const char *name, struct ar_error *error)
{
    return self->list ? self->list(name, error)
                      : list_names(self->one, self->at, self->show, name, error);
}

static enum ar_status list_all(struct ar_error *error)
{
    for (size_t i = 0; i < AR_COUNT(kinds); i++) {
        if (kinds[i].is_part)
            continue;
        printf("%s%s\n\n", i ? "\n" : "", kinds[i].name);
        AR_TRY(list_kind(&kinds[i], NULL, error));
    }
    return AR_OK;
}

static const char *kind_at(size_t index, const char **text)
{
    *text = NULL;
    return index < AR_COUNT(kinds) ? kinds[index].name : NULL;
}

/* Prints only names, as other commands take them, each once: a format that is read and written has
 * two lines in the list. */
static enum ar_status print_names(const struct kind *kind, struct ar_error *error)
{
    const char *name, *text;
    size_t count;
    if (!kind->at)
        return each_recording(NULL, NULL, &count, error);
    for (size_t i = 0; (name = kind->at(i, &text)); i++)
        if (find(kind->at, name) == i)
            puts(name);
    return AR_OK;
}

enum ar_status cmd_list(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    const char *kind = self.words.at[0], *name = self.words.at[1];
    if (self.names && (!kind || name))
        return ar_invalid(
            error, "list: --names needs one kind and no name: `allocrig list policies --names`");
    if (!kind)
        return list_all(error);
    for (size_t i = 0; i < AR_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, kind) == 0)
            return self.names ? print_names(&kinds[i], error) : list_kind(&kinds[i], name, error);
    return unknown("list of", kind, kind_at, error);
}
