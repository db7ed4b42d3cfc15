/* `list`: lists policies, decorators, workloads, recordings, devices, metrics, formats and
 * messages, from the tables that the program itself uses. */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/cli/cli.h"
#include "bench/cli/list.h"
#include "bench/cli/option_table.h"
#include "bench/report/sentence.h"
#include "sim/device_kinds.h"
#include "sim/explain/message.h"
#include "sim/metrics/metrics.h"
#include "sim/sim_device/profile.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/torch/sidecar.h"
#include "workloads/gen/gen.h"
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

/* The built-in profiles of the simulated device. */
static enum ar_status print_profiles(struct ar_error *error)
{
    static const struct table_column columns[] = {{"profile", "", true, 0},
                                                  {"card", "", true, 0},
                                                  {"total", "GiB", false, 0},
                                                  {"memory", "", true, 0},
                                                  {"costs", "", true, 0}};
    const char *names[SIM_PROFILES_MOST];
    size_t count = sim_profile_names(names, SIM_PROFILES_MOST);
    struct sim_profile profile;
    struct table *table = table_of(columns);
    for (size_t i = 0; i < count; i++) {
        enum ar_status status =
            sim_profile_read(sim_profile_builtin(names[i]), names[i], &profile, error);
        if (status) {
            table_close(table);
            return status;
        }
        profile_row(table, names[i], &profile);
    }
    putchar('\n');
    enum ar_status status = table_end(table, stdout, TABLE_TEXT, error);
    if (!status)
        list_line(
            "Memory: measured on the card, or as its driver reported it to others (the source "
            "is in sim/profiles); the part that a process cannot use is then assumed. Costs: "
            "of driver calls, measured on the card, or those of another profile.");
    return status;
}

static const char *device_name(size_t index)
{
    return device_kinds[index] ? device_kinds[index]->name : NULL;
}

static enum ar_status list_devices(const char *name, struct ar_error *error)
{
    char why[512];
    for (size_t i = 0; device_kinds[i]; i++) {
        const struct ar_device_kind *kind = device_kinds[i];
        if (name && strcmp(name, kind->name) != 0)
            continue;
        bool there = kind->available(why, sizeof why);
        fputs(!name && i ? "\n" : "", stdout);
        list_line("%s: %s", kind->name, kind->summary);
        list_line("%s: %s", there ? "Available" : "Not available", why);
        enum ar_status status = strcmp(kind->name, "sim") == 0 ? print_profiles(error) : AR_OK;
        if (status)
            return status;
        putchar('\n');
        status = option_table_print(kind->options, error);
        if (status || name)
            return status;
    }
    return name ? list_unknown("device", name, device_name, error) : AR_OK;
}

static const char *better_name(enum metric_better better)
{
    return better == METRIC_LOWER ? "lower" : better == METRIC_HIGHER ? "higher" : "-";
}

static void show_metric(const struct metric_info *info)
{
    list_line("%s: %s", info->name, info->definition);
    list_line("Unit: %s. Better: %s. %s", info->unit, better_name(info->better),
              info->class == METRIC_EXACT ? "Exact: the same on every machine."
                                          : "Timed: measured on the host, with --time only.");
}

static const char *metric_name(size_t index)
{
    return index < METRIC_COUNT ? metric_info((enum metric)index)->name : NULL;
}

static enum ar_status list_metrics(const char *name, struct ar_error *error)
{
    static const struct table_column columns[] = {{"metric", "", true, 22},
                                                  {"unit", "", true, 0},
                                                  {"better", "", true, 0},
                                                  {"class", "", true, 0},
                                                  {"definition", "", true, 0}};
    struct table *table = name ? NULL : table_create(columns, 5);
    if (!name && !table)
        return list_no_memory(error);
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_info *info = metric_info((enum metric)i);
        if (name && strcmp(info->name, name) == 0) {
            show_metric(info);
            return AR_OK;
        }
        if (!table)
            continue;
        table_cell(table, "%s", info->name);
        table_cell(table, "%s", info->unit);
        table_cell(table, "%s", better_name(info->better));
        table_cell(table, "%s", info->class == METRIC_EXACT ? "exact" : "timed");
        table_cell(table, "%s", info->definition);
    }
    return table ? table_end(table, stdout, TABLE_TEXT, error)
                 : list_unknown("metric", name, metric_name, error);
}

/* ---- messages --------------------------------------------------------------------------- */

static const char *message_name(size_t index)
{
    return index < MESSAGE_FRAMEWORK_COUNT ? message_framework_name((enum message_framework)index)
                                           : NULL;
}

/* The out-of-memory messages that `explain --message` reads. */
static enum ar_status list_messages(const char *name, struct ar_error *error)
{
    struct table *table = NULL;
    for (size_t i = 0; message_name(i); i++) {
        if (name && strcasecmp(message_name(i), name) != 0)
            continue;
        if (!table && !(table = table_create(list_columns, 2)))
            return list_no_memory(error);
        table_cell(table, "%s", message_name(i));
        table_cell(table, "%s", message_framework_summary((enum message_framework)i));
    }
    return table ? table_end(table, stdout, TABLE_TEXT, error)
                 : list_unknown("message", name, message_name, error);
}

/* ---- the command ----------------------------------------------------------------------- */

typedef enum ar_status list_kind(const char *name, struct ar_error *error);

struct kind {
    const char *name;
    list_kind *list;
    list_name_at *at; /* NULL: recordings, which are found in their folder */
    bool is_part;     /* the list of the kind above includes it */
};

static const struct kind kinds[] = {
    {"policies", list_policies, list_policy_name, false},
    {"decorators", list_decorators, list_decorator_name, true},
    {"workloads", list_workloads, list_workload_name, false},
    {"recordings", list_recordings, NULL, true},
    {"devices", list_devices, device_name, false},
    {"metrics", list_metrics, metric_name, false},
    {"formats", list_formats, list_format_name, false},
    {"parts", list_parts, list_part_name, false},
    {"messages", list_messages, message_name, false},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static enum ar_status list_all(struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < KIND_COUNT && !status; i++) {
        if (kinds[i].is_part)
            continue;
        printf("%s%s\n\n", i ? "\n" : "", kinds[i].name);
        status = kinds[i].list(NULL, error);
    }
    return status;
}

static const char *kind_name(size_t index)
{
    return index < KIND_COUNT ? kinds[index].name : NULL;
}

/* Prints only names, as other commands take them, each once: a format that is read and written has
 * two lines in the list. */
static enum ar_status print_names(const struct kind *kind, struct ar_error *error)
{
    if (!kind->at)
        return list_recording_paths(error);
    for (size_t i = 0; kind->at(i); i++) {
        size_t first = 0;
        while (strcmp(kind->at(first), kind->at(i)) != 0)
            first++;
        if (first == i)
            puts(kind->at(i));
    }
    return AR_OK;
}

enum ar_status cmd_list(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    enum ar_status status = cli_parse(&page, argc, argv, &self, error);
    if (status)
        return status;
    const char *kind = self.words.at[0], *name = self.words.at[1];
    if (self.names && (!kind || name))
        return ar_error_set(
            error, AR_INVALID,
            "list: --names needs one kind and no name: `allocrig list policies --names`");
    if (!kind)
        return list_all(error);
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, kind) == 0)
            return self.names ? print_names(&kinds[i], error) : kinds[i].list(name, error);
    return list_unknown("list of", kind, kind_name, error);
}

/* ---- formats ---------------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
} formats[] = {
    {"text", "allocrig's own, read and written: one event a line (workloads/trace/FORMAT.md)"},
    {"binary", "the same events in records of 32 bytes, read and written"},
    {"oracle", "a text file of a and f lines without a header, read"},
    {"csv", "a recording as comma-separated values with a .json beside it, read"},
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
#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

/* The formats above, then the readers and writers of other formats; false past the last. */
static bool format_at(size_t index, const char **name, const char **text)
{
    const struct format_writer *writer;
    const struct format_reader *reader;
    size_t readers = 0;
    if (index < FORMAT_COUNT) {
        *name = formats[index].name;
        *text = formats[index].text;
        return true;
    }
    while (format_reader_at(readers))
        readers++;
    index -= FORMAT_COUNT;
    if ((reader = format_reader_at(index))) {
        *name = reader->name;
        *text = reader->summary;
        return true;
    }
    if (!(writer = format_writer_at(index - readers)))
        return false;
    *name = writer->name;
    *text = writer->summary;
    return true;
}

const char *list_format_name(size_t index)
{
    const char *name, *text;
    return format_at(index, &name, &text) ? name : NULL;
}

enum ar_status list_formats(const char *name, struct ar_error *error)
{
    const char *format, *text;
    struct table *table = table_create(list_columns, 2);
    bool found = false;
    for (size_t i = 0; format_at(i, &format, &text); i++) {
        if (name && strcmp(format, name) != 0)
            continue;
        found = true;
        table_cell(table, "%s", format);
        table_cell(table, "%s", text);
    }
    if (found)
        return table_end(table, stdout, TABLE_TEXT, error);
    table_close(table);
    return list_unknown("format", name, list_format_name, error);
}

/* ---- shared by the lists ------------------------------------------------------------------ */

#define TEXT_WIDTH 22u
#define NAMES_MOST 128

const struct table_column list_columns[2] = {{"name", "", true, TEXT_WIDTH},
                                             {"what it is", "", true, 0}};

enum ar_status list_no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "list: no host memory left for the table");
}

enum ar_status list_print(struct table *table, struct ar_error *error)
{
    return table_end(table, stdout, TABLE_TEXT, error);
}

enum ar_status list_unknown(const char *what, const char *name, list_name_at *at,
                            struct ar_error *error)
{
    const char *names[NAMES_MOST];
    size_t count = 0;
    while (count < NAMES_MOST && (names[count] = at(count)))
        count++;
    return cli_unknown(what, name, names, count, error);
}

void list_line(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sentence_wrap(stdout, text, 0, 2, SENTENCE_WIDTH);
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
};

static enum ar_status show_policy(const struct ar_policy_ops *ops, struct ar_error *error)
{
    list_line("%s: %s", ops->name, ops->summary);
    if (ops->reference)
        list_line("Reference: %s", ops->reference);
    for (size_t i = 0; ops->recorders && ops->recorders[i]; i++)
        printf("%s%s%s", i ? ", " : "Answers to recordings of: ", ops->recorders[i],
               ops->recorders[i + 1] ? "" : "\n");
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++)
        if (ops->capabilities & capabilities[i].bit)
            printf("- %s\n", capabilities[i].text);
    putchar('\n');
    return option_table_print(ops->options, error);
}

static enum ar_status show_decorator(const struct decorator_ops *ops, struct ar_error *error)
{
    list_line("%s: %s", ops->name, ops->summary);
    list_line("A decorator: write %s(key=value)+POLICY.", ops->name);
    putchar('\n');
    return option_table_print(ops->options, error);
}

/* A policy from a shared object, with the name that -p takes. */
static enum ar_status show_object(const char *name, struct ar_error *error)
{
    struct ar_spec spec;
    const struct ar_policy_ops *ops;
    enum ar_status status = ar_spec_parse(name, &spec, error);
    if (status)
        return status;
    status = registry_lookup(&spec, &ops, error);
    ar_spec_close(&spec);
    return status ? status : show_policy(ops, error);
}

static bool names_object(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

const char *list_policy_name(size_t index)
{
    const struct ar_policy_ops *ops = registry_policy(index);
    return ops ? ops->name : NULL;
}

const char *list_decorator_name(size_t index)
{
    const struct decorator_ops *ops = registry_decorator(index);
    return ops ? ops->name : NULL;
}

static void add_decorators(struct table *table)
{
    for (size_t i = 0; registry_decorator(i); i++) {
        table_cell(table, "%s", registry_decorator(i)->name);
        table_cell(table, "%s", registry_decorator(i)->summary);
    }
}

enum ar_status list_decorators(const char *name, struct ar_error *error)
{
    for (size_t i = 0; name && registry_decorator(i); i++)
        if (strcmp(list_decorator_name(i), name) == 0)
            return show_decorator(registry_decorator(i), error);
    if (name)
        return list_unknown("decorator", name, list_decorator_name, error);
    struct table *table = table_create(list_columns, 2);
    add_decorators(table);
    return table_end(table, stdout, TABLE_TEXT, error);
}

/* A policy or a decorator. */
static const char *policy_word(size_t index)
{
    size_t policies = 0;
    while (list_policy_name(policies))
        policies++;
    return index < policies ? list_policy_name(index) : list_decorator_name(index - policies);
}

static enum ar_status show_policy_word(const char *name, struct ar_error *error)
{
    if (names_object(name))
        return show_object(name, error);
    for (size_t i = 0; registry_policy(i); i++)
        if (strcmp(list_policy_name(i), name) == 0)
            return show_policy(registry_policy(i), error);
    for (size_t i = 0; registry_decorator(i); i++)
        if (strcmp(list_decorator_name(i), name) == 0)
            return show_decorator(registry_decorator(i), error);
    return list_unknown("policy", name, policy_word, error);
}

enum ar_status list_policies(const char *name, struct ar_error *error)
{
    if (name)
        return show_policy_word(name, error);
    struct table *table = table_create(list_columns, 2);
    for (size_t i = 0; registry_policy(i); i++) {
        table_cell(table, "%s", registry_policy(i)->name);
        table_cell(table, "%s", registry_policy(i)->summary);
    }
    table_heading(table, "decorators, written before a policy: checked+growth");
    add_decorators(table);
    return table_end(table, stdout, TABLE_TEXT, error);
}

/* ---- workloads: generators, and recordings in the working folder ------------------------- */

static enum ar_status show_workload(const struct gen_ops *ops, struct ar_error *error)
{
    list_line("%s: %s", ops->name, ops->summary);
    if (ops->page)
        list_line("Where its sizes come from: %s", ops->page);
    if (ops->capabilities & GEN_ADAPTIVE)
        puts("Adaptive: its requests depend on the results of earlier ones.");
    if (ops->capabilities & GEN_KNOWN_ANSWER)
        puts("Its optimal result is known.");
    if (ops->capabilities & GEN_ADVERSARIAL)
        puts("Adversarial: it is not typical of programs.");
    putchar('\n');
    return option_table_print(ops->options, error);
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
    char bytes[32];
    struct trace_info info = {.recorder = ""};
    struct sidecar sidecar = {0};
    snprintf(path, sizeof path, RECORDINGS "/%s", file);
    enum ar_status status = sidecar_read(path, &info, &sidecar, error);
    sidecar_close(&sidecar);
    if (status)
        return status;
    if (info.limit_bytes)
        snprintf(limit, sizeof limit, "%slimit %s", info.conf[0] ? ", " : "",
                 ar_size_print_exact(info.limit_bytes, bytes, sizeof bytes));
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
    static const struct table_column columns[] = {{"recording", "", true, 50},
                                                  {"settings of PyTorch", "", true, 0}};
    struct table *table = table_create(columns, 2);
    enum ar_status status =
        table ? each_recording(table, name, count, error) : list_no_memory(error);
    if (!status && *count > 0) {
        fputs(before, stdout);
        return table_end(table, stdout, TABLE_TEXT, error);
    }
    table_close(table);
    return status;
}

enum ar_status list_recordings(const char *name, struct ar_error *error)
{
    size_t count;
    enum ar_status status = print_recordings(name, "", &count, error);
    if (!status && name && count == 0)
        status =
            ar_error_set(error, AR_INVALID, "there is no recording \"%.60s\" in " RECORDINGS, name);
    return status;
}

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

const char *list_workload_name(size_t index)
{
    const struct gen_ops *ops = workload_at(index);
    return ops ? ops->name : NULL;
}

enum ar_status list_workloads(const char *name, struct ar_error *error)
{
    for (size_t i = 0; name && workload_at(i); i++)
        if (strcmp(list_workload_name(i), name) == 0)
            return show_workload(workload_at(i), error);
    if (name)
        return list_unknown("workload", name, list_workload_name, error);
    struct table *table = table_create(list_columns, 2);
    for (size_t i = 0; workload_at(i); i++) {
        table_cell(table, "%s", workload_at(i)->name);
        table_cell(table, "%s", workload_at(i)->summary);
    }
    size_t recordings;
    enum ar_status status = table_end(table, stdout, TABLE_TEXT, error);
    if (!status)
        status = print_recordings(NULL, "\n", &recordings, error);
    puts("\nA workload is also any trace file, by its path.");
    return status;
}

enum ar_status list_recording_paths(struct ar_error *error)
{
    size_t count;
    return each_recording(NULL, NULL, &count, error);
}
