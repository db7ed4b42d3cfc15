/* `list`: what there is, from the tables that the program itself works by. */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/cli/cli.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "sim/device.h"
#include "sim/metrics/metrics.h"
#include "sim/sim_device/profile.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/writers.h"
#include "workloads/gen/gen.h"
#include "workloads/trace/sidecar.h"

#define TEXT_WIDTH 22u
#define NAMES_MOST 128

static const struct cli_option options[] = {{0}};

static const struct cli_page page = {
    .arguments = "[policies|workloads|devices|metrics|formats] [NAME]",
    .text = "Shows what there is; with a NAME, all about that one.",
    .options = options,
};

static const struct table_column name_columns[] = {{"name", "", true, TEXT_WIDTH},
                                                   {"what it is", "", true, 0}};

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_HOST_MEMORY, "list: no host memory left for the table");
}

static enum status print_and_close(struct table *table, struct error *error)
{
    enum status status = table_print(table, stdout, TABLE_TEXT, error);
    table_close(table);
    return status;
}

/* What there is of one kind. */
struct listing {
    struct table *table; /* NULL: one of them is asked for by name */
    const char *names[NAMES_MOST];
    size_t count;
};

static void list_one(struct listing *self, const char *name, const char *summary)
{
    if (self->count < NAMES_MOST)
        self->names[self->count++] = name;
    if (!self->table)
        return;
    table_cell(self->table, "%s", name);
    table_cell(self->table, "%s", summary);
}

/* One sentence, in lines that fit. */
static void print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void print_line(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sentence_wrap(stdout, text, 0, 2, SENTENCE_WIDTH);
}

/* ---- options --------------------------------------------------------------------------- */

static const char *type_name(const struct option *option)
{
    static const char *const names[] = {
        [OPTION_BYTES] = "bytes", [OPTION_COUNT] = "count", [OPTION_FRACTION] = "number",
        [OPTION_BOOL] = "bool",   [OPTION_CHOICE] = "",     [OPTION_TEXT] = "text",
    };
    return option->type == OPTION_CHOICE ? option->choices : names[option->type];
}

/* One end of a range in the option's own unit. */
static const char *bound_text(const struct option *option, double bound, char *text,
                              size_t text_bytes)
{
    if (option->type == OPTION_BYTES)
        return size_print_exact((uint64_t)bound, text, text_bytes);
    snprintf(text, text_bytes, option->type == OPTION_COUNT ? "%.0f" : "%.15g", bound);
    return text;
}

static void range_cell(struct table *table, const struct option *option)
{
    char least[32];
    char most[32];
    if (option->least == 0 && option->most == 0)
        table_cell(table, "-");
    else
        table_cell(table, "%s..%s", bound_text(option, option->least, least, sizeof least),
                   bound_text(option, option->most, most, sizeof most));
}

static enum status print_options(const struct option *list, struct error *error)
{
    static const struct table_column columns[] = {{"option", "", true, 13},
                                                  {"type", "", true, 8},
                                                  {"default", "", true, 8},
                                                  {"range", "", true, 12},
                                                  {"what it is", "", true, 0}};
    if (!list || !list->name) {
        puts("No options.");
        return STATUS_OK;
    }
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    if (!table)
        return no_memory(error);
    for (; list->name; list++) {
        table_cell(table, "%s", list->name);
        table_cell(table, "%s", type_name(list));
        table_cell(table, "%s", list->default_text ? list->default_text : "-");
        range_cell(table, list);
        table_cell(table, "%s", list->help);
    }
    return print_and_close(table, error);
}

/* ---- policies -------------------------------------------------------------------------- */

static const struct {
    enum policy_capability bit;
    const char *text;
} capabilities[] = {
    {POLICY_STREAM_ORDERED, "keeps a block from other streams until that is safe"},
    {POLICY_OPAQUE, "its inside cannot be seen: hole metrics are null"},
    {POLICY_OFFLINE, "sees the whole trace before the first request"},
    {POLICY_NEEDS_MAPPING, "needs virtual memory"},
    {POLICY_WATCHES_HOLES, "reports its holes: the unusable-free index is known"},
    {POLICY_HONOURS_ALIGNMENT, "serves any power-of-two alignment"},
    {POLICY_UNRANKED, "a harness check or a bound: shown, never ranked"},
    {POLICY_OVERLAPS, "hands out memory that it never takes back"},
};

static enum status show_policy(const struct policy_ops *ops, struct error *error)
{
    print_line("%s: %s", ops->name, ops->summary);
    if (ops->reference)
        print_line("Reference: %s", ops->reference);
    for (size_t i = 0; ops->recorders && ops->recorders[i]; i++)
        printf("%s%s%s", i ? ", " : "Answers to recordings of: ", ops->recorders[i],
               ops->recorders[i + 1] ? "" : "\n");
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++)
        if (ops->capabilities & capabilities[i].bit)
            printf("- %s\n", capabilities[i].text);
    putchar('\n');
    return print_options(ops->options, error);
}

static enum status show_decorator(const struct decorator_ops *ops, struct error *error)
{
    print_line("%s: %s", ops->name, ops->summary);
    print_line("A decorator: write %s(key=value)+POLICY.", ops->name);
    putchar('\n');
    return print_options(ops->options, error);
}

/* A policy from a shared object, named as -p names it. */
static enum status show_object(const char *name, struct error *error)
{
    struct spec spec;
    const struct policy_ops *ops;
    enum status status = spec_parse(name, &spec, error);
    if (status)
        return status;
    status = registry_lookup(&spec, &ops, error);
    spec_close(&spec);
    return status ? status : show_policy(ops, error);
}

static bool names_object(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

static enum status list_policies(const char *name, struct error *error)
{
    if (name && names_object(name))
        return show_object(name, error);
    struct listing list = {.table = name ? NULL : table_create(name_columns, 2)};
    if (!name && !list.table)
        return no_memory(error);
    for (size_t i = 0; registry_policy(i); i++) {
        const struct policy_ops *ops = registry_policy(i);
        if (name && strcmp(ops->name, name) == 0)
            return show_policy(ops, error);
        list_one(&list, ops->name, ops->summary);
    }
    if (list.table)
        table_heading(list.table, "decorators, written before a policy: checked+growth");
    for (size_t i = 0; registry_decorator(i); i++) {
        const struct decorator_ops *ops = registry_decorator(i);
        if (name && strcmp(ops->name, name) == 0)
            return show_decorator(ops, error);
        list_one(&list, ops->name, ops->summary);
    }
    return list.table ? print_and_close(list.table, error)
                      : cli_unknown("policy", name, list.names, list.count, error);
}

/* ---- workloads ------------------------------------------------------------------------- */

static enum status show_workload(const struct gen_ops *ops, struct error *error)
{
    print_line("%s: %s", ops->name, ops->summary);
    if (ops->page)
        print_line("Where its sizes come from: %s", ops->page);
    if (ops->capabilities & GEN_ADAPTIVE)
        puts("Adaptive: its requests depend on what became of the earlier ones.");
    if (ops->capabilities & GEN_KNOWN_ANSWER)
        puts("There is a known answer for it.");
    if (ops->capabilities & GEN_ADVERSARIAL)
        puts("Made to hurt: it is not what programs do.");
    putchar('\n');
    return print_options(ops->options, error);
}

#define RECORDINGS "workloads/data"

static int is_recording(const struct dirent *entry)
{
    return strstr(entry->d_name, ".csv") != NULL && entry->d_name[0] != '.';
}

/* The settings that were recorded, from the file beside it. */
static enum status recording_row(struct table *table, const char *file, struct error *error)
{
    char path[512];
    char limit[48] = "";
    char bytes[32];
    struct trace_info info = {.recorder = ""};
    struct sidecar sidecar = {0};
    snprintf(path, sizeof path, RECORDINGS "/%s", file);
    enum status status = sidecar_read(path, &info, &sidecar, error);
    sidecar_close(&sidecar);
    if (status)
        return status;
    if (info.limit_bytes)
        snprintf(limit, sizeof limit, "%slimit %s", info.conf[0] ? ", " : "",
                 size_print_exact(info.limit_bytes, bytes, sizeof bytes));
    table_cell(table, "%s", path);
    table_cell(table, "%s%s", info.conf, info.conf[0] || limit[0] ? limit : "-");
    return STATUS_OK;
}

/* The recordings that lie where the program was started; none where there is no such folder. */
static enum status list_recordings(struct error *error)
{
    static const struct table_column columns[] = {{"recording", "", true, 50},
                                                  {"settings of PyTorch", "", true, 0}};
    struct dirent **files;
    int count = scandir(RECORDINGS, &files, is_recording, alphasort);
    if (count < 0)
        return STATUS_OK;
    struct table *table = table_create(columns, 2);
    enum status status = table ? STATUS_OK : no_memory(error);
    for (int i = 0; i < count; i++) {
        if (!status)
            status = recording_row(table, files[i]->d_name, error);
        free(files[i]);
    }
    free(files);
    if (!status && count > 0) {
        putchar('\n');
        return print_and_close(table, error);
    }
    table_close(table);
    return status;
}

static enum status list_workloads(const char *name, struct error *error)
{
    struct listing list = {.table = name ? NULL : table_create(name_columns, 2)};
    if (!name && !list.table)
        return no_memory(error);
    for (size_t i = 0; gen_at(i); i++) {
        const struct gen_ops *ops = gen_at(i);
        if (name && strcmp(ops->name, name) == 0)
            return show_workload(ops, error);
        list_one(&list, ops->name, ops->summary);
    }
    if (!list.table)
        return cli_unknown("workload", name, list.names, list.count, error);
    enum status status = print_and_close(list.table, error);
    if (!status)
        status = list_recordings(error);
    puts("\nA workload is also any trace file, by its path.");
    return status;
}

/* ---- devices, metrics, formats --------------------------------------------------------- */

/* The cards that the simulated device knows by name. */
static enum status print_profiles(struct error *error)
{
    const char *names[SIM_PROFILES_MOST];
    size_t count = sim_profile_names(names, SIM_PROFILES_MOST);
    struct sim_profile profile;
    for (size_t i = 0; i < count; i++) {
        enum status status =
            sim_profile_read(sim_profile_builtin(names[i]), names[i], &profile, error);
        if (status)
            return status;
        printf("%s %s%s%s\n", i ? "        " : "Profiles:", names[i], profile.card[0] ? ": " : "",
               profile.card);
    }
    return STATUS_OK;
}

static enum status list_devices(const char *name, struct error *error)
{
    const char *names[NAMES_MOST];
    char why[512];
    size_t count = 0;
    for (; device_kinds[count]; count++) {
        const struct device_kind *kind = device_kinds[count];
        names[count] = kind->name;
        if (name && strcmp(name, kind->name) != 0)
            continue;
        bool there = kind->available(why, sizeof why);
        fputs(!name && count ? "\n" : "", stdout);
        print_line("%s: %s", kind->name, kind->summary);
        print_line("%s: %s", there ? "Available" : "Not available", why);
        enum status status = strcmp(kind->name, "sim") == 0 ? print_profiles(error) : STATUS_OK;
        if (status)
            return status;
        putchar('\n');
        status = print_options(kind->options, error);
        if (status || name)
            return status;
    }
    return name ? cli_unknown("device", name, names, count, error) : STATUS_OK;
}

static const char *better_name(enum metric_better better)
{
    return better == METRIC_LOWER ? "lower" : better == METRIC_HIGHER ? "higher" : "-";
}

static void show_metric(const struct metric_info *info)
{
    print_line("%s: %s", info->name, info->definition);
    print_line("Unit: %s. Better: %s. %s", info->unit, better_name(info->better),
               info->class == METRIC_EXACT ? "Exact: the same on every machine."
                                           : "Timed: measured on the host, with --time only.");
}

static enum status list_metrics(const char *name, struct error *error)
{
    static const struct table_column columns[] = {{"metric", "", true, 22},
                                                  {"unit", "", true, 0},
                                                  {"better", "", true, 0},
                                                  {"class", "", true, 0},
                                                  {"definition", "", true, 0}};
    const char *names[METRIC_COUNT];
    struct table *table = name ? NULL : table_create(columns, 5);
    if (!name && !table)
        return no_memory(error);
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_info *info = metric_info((enum metric)i);
        names[i] = info->name;
        if (name && strcmp(info->name, name) == 0) {
            show_metric(info);
            return STATUS_OK;
        }
        if (!table)
            continue;
        table_cell(table, "%s", info->name);
        table_cell(table, "%s", info->unit);
        table_cell(table, "%s", better_name(info->better));
        table_cell(table, "%s", info->class == METRIC_EXACT ? "exact" : "timed");
        table_cell(table, "%s", info->definition);
    }
    return table ? print_and_close(table, error)
                 : cli_unknown("metric", name, names, METRIC_COUNT, error);
}

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
    {"placements", "where each block of one run went, as CSV, written"},
    {"series", "the state after each event of one run, as CSV, written"},
    {"stats", "one run's statistics in the words of the allocator, as JSON, written"},
    {"calls", "each driver call of one run and what it cost, as CSV, written"},
    {"snapshot", "run --snapshot: one run as a PyTorch memory snapshot, written"},
    {"chrome", "run --chrome: one run over time for Perfetto and Chrome, as JSON, written"},
    {"hdr", "run --hdr: latencies by percentile as HdrHistogram's text, written"},
    {"latex", "run --latex: the tables for LaTeX with booktabs, written"},
    {"junit", "run --junit: each run as a test case, as JUnit XML, written"},
    {"openmetrics", "run --openmetrics: every figure as a gauge, as text, written"},
    {"suite", "what to run, as INI, read; workloads/suites/default.ini explains every key"},
};
#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

/* Those above, then the readers and the writers of other programs' files; false past the last. */
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

static enum status list_formats(const char *name, struct error *error)
{
    const char *names[NAMES_MOST];
    const char *text;
    size_t count = 0;
    struct table *table = table_create(name_columns, 2);
    bool found = false;
    if (!table)
        return no_memory(error);
    for (; count < NAMES_MOST && format_at(count, &names[count], &text); count++) {
        if (name && strcmp(names[count], name) != 0)
            continue;
        found = true;
        table_cell(table, "%s", names[count]);
        table_cell(table, "%s", text);
    }
    if (found)
        return print_and_close(table, error);
    table_close(table);
    return cli_unknown("format", name, names, count, error);
}

/* ---- the command ----------------------------------------------------------------------- */

typedef enum status list_kind(const char *name, struct error *error);

static const struct {
    const char *name;
    list_kind *list;
} kinds[] = {
    {"policies", list_policies}, {"workloads", list_workloads}, {"devices", list_devices},
    {"metrics", list_metrics},   {"formats", list_formats},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

struct list_arguments {
    const char *kind, *name;
};

static enum status take(void *argument, int key, const char *value, struct error *error)
{
    struct list_arguments *self = argument;
    (void)key; /* there are no options */
    const char **place = self->kind ? &self->name : &self->kind;
    if (*place)
        return error_set(error, STATUS_INVALID, "\"%s\" is one name too many", value);
    *place = value;
    return STATUS_OK;
}

static enum status list_all(struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < KIND_COUNT && !status; i++) {
        printf("%s%s\n\n", i ? "\n" : "", kinds[i].name);
        status = kinds[i].list(NULL, error);
    }
    return status;
}

enum status cmd_list(int argc, char **argv, struct error *error)
{
    struct list_arguments self = {0};
    const char *names[KIND_COUNT];
    bool help = false;
    enum status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.kind)
        return list_all(error);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        names[i] = kinds[i].name;
        if (strcmp(kinds[i].name, self.kind) == 0)
            return kinds[i].list(self.name, error);
    }
    return cli_unknown("list of", self.kind, names, KIND_COUNT, error);
}
