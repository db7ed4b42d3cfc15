/* `list`: what there is, from the tables that the program itself works by. */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/cli/cli.h"
#include "bench/cli/option_table.h"
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

enum { KEY_NAMES = CLI_KEYS };

static const struct cli_option options[] = {
    {CLI_HEADING, NULL, NULL, "Options:"},
    {KEY_NAMES, "names", NULL, "the names of that kind alone, one a line, as scripts read them"},
    {0},
};

static const struct cli_page page = {
    .arguments = "[policies|workloads|devices|metrics|formats] [NAME]\n"
                 "policies|decorators|workloads|recordings|devices|metrics|formats --names",
    .text = "Shows what there is; with a NAME, all about that one. Policies come with the "
            "decorators that may be written before them, workloads with the recordings in "
            "workloads/data; both are also kinds of their own.",
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

/* The name of one of a kind, in the order in which they are listed; NULL past the last. */
typedef const char *name_at(size_t index);

static enum status unknown(const char *what, const char *name, name_at *at, struct error *error)
{
    const char *names[NAMES_MOST];
    size_t count = 0;
    while (count < NAMES_MOST && (names[count] = at(count)))
        count++;
    return cli_unknown(what, name, names, count, error);
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
    return option_table_print(ops->options, error);
}

static enum status show_decorator(const struct decorator_ops *ops, struct error *error)
{
    print_line("%s: %s", ops->name, ops->summary);
    print_line("A decorator: write %s(key=value)+POLICY.", ops->name);
    putchar('\n');
    return option_table_print(ops->options, error);
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

static const char *policy_name(size_t index)
{
    const struct policy_ops *ops = registry_policy(index);
    return ops ? ops->name : NULL;
}

static const char *decorator_name(size_t index)
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

static enum status list_decorators(const char *name, struct error *error)
{
    for (size_t i = 0; name && registry_decorator(i); i++)
        if (strcmp(decorator_name(i), name) == 0)
            return show_decorator(registry_decorator(i), error);
    if (name)
        return unknown("decorator", name, decorator_name, error);
    struct table *table = table_create(name_columns, 2);
    if (!table)
        return no_memory(error);
    add_decorators(table);
    return print_and_close(table, error);
}

/* A policy, or what may be written before one. */
static const char *policy_word(size_t index)
{
    size_t policies = 0;
    while (policy_name(policies))
        policies++;
    return index < policies ? policy_name(index) : decorator_name(index - policies);
}

static enum status show_policy_word(const char *name, struct error *error)
{
    if (names_object(name))
        return show_object(name, error);
    for (size_t i = 0; registry_policy(i); i++)
        if (strcmp(policy_name(i), name) == 0)
            return show_policy(registry_policy(i), error);
    for (size_t i = 0; registry_decorator(i); i++)
        if (strcmp(decorator_name(i), name) == 0)
            return show_decorator(registry_decorator(i), error);
    return unknown("policy", name, policy_word, error);
}

static enum status list_policies(const char *name, struct error *error)
{
    if (name)
        return show_policy_word(name, error);
    struct table *table = table_create(name_columns, 2);
    if (!table)
        return no_memory(error);
    for (size_t i = 0; registry_policy(i); i++) {
        table_cell(table, "%s", registry_policy(i)->name);
        table_cell(table, "%s", registry_policy(i)->summary);
    }
    table_heading(table, "decorators, written before a policy: checked+growth");
    add_decorators(table);
    return print_and_close(table, error);
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
    return option_table_print(ops->options, error);
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

static bool is_named(const char *file, const char *name)
{
    size_t folder = sizeof RECORDINGS; /* with the slash */
    return strcmp(name, file) == 0 ||
           (strncmp(name, RECORDINGS "/", folder) == 0 && strcmp(name + folder, file) == 0);
}

/* Of the recordings that lie where the program was started, all or the one of that name: rows of
 * the table or, where it is NULL, lines with their paths. None where there is no such folder. */
static enum status each_recording(struct table *table, const char *name, size_t *count,
                                  struct error *error)
{
    struct dirent **files = NULL;
    int file_count = scandir(RECORDINGS, &files, is_recording, alphasort);
    enum status status = STATUS_OK;
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

/* `before` is printed first where there are any. */
static enum status print_recordings(const char *name, const char *before, size_t *count,
                                    struct error *error)
{
    static const struct table_column columns[] = {{"recording", "", true, 50},
                                                  {"settings of PyTorch", "", true, 0}};
    struct table *table = table_create(columns, 2);
    enum status status = table ? each_recording(table, name, count, error) : no_memory(error);
    if (!status && *count > 0) {
        fputs(before, stdout);
        return print_and_close(table, error);
    }
    table_close(table);
    return status;
}

static enum status list_recordings(const char *name, struct error *error)
{
    size_t count;
    enum status status = print_recordings(name, "", &count, error);
    if (!status && name && count == 0)
        status = error_set(error, STATUS_INVALID, "there is no recording \"%.60s\" in " RECORDINGS,
                           name);
    return status;
}

static const char *workload_name(size_t index)
{
    const struct gen_ops *ops = gen_at(index);
    return ops ? ops->name : NULL;
}

static enum status list_workloads(const char *name, struct error *error)
{
    for (size_t i = 0; name && gen_at(i); i++)
        if (strcmp(workload_name(i), name) == 0)
            return show_workload(gen_at(i), error);
    if (name)
        return unknown("workload", name, workload_name, error);
    struct table *table = table_create(name_columns, 2);
    if (!table)
        return no_memory(error);
    for (size_t i = 0; gen_at(i); i++) {
        table_cell(table, "%s", gen_at(i)->name);
        table_cell(table, "%s", gen_at(i)->summary);
    }
    size_t recordings;
    enum status status = print_and_close(table, error);
    if (!status)
        status = print_recordings(NULL, "\n", &recordings, error);
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

static const char *device_name(size_t index)
{
    return device_kinds[index] ? device_kinds[index]->name : NULL;
}

static enum status list_devices(const char *name, struct error *error)
{
    char why[512];
    for (size_t i = 0; device_kinds[i]; i++) {
        const struct device_kind *kind = device_kinds[i];
        if (name && strcmp(name, kind->name) != 0)
            continue;
        bool there = kind->available(why, sizeof why);
        fputs(!name && i ? "\n" : "", stdout);
        print_line("%s: %s", kind->name, kind->summary);
        print_line("%s: %s", there ? "Available" : "Not available", why);
        enum status status = strcmp(kind->name, "sim") == 0 ? print_profiles(error) : STATUS_OK;
        if (status)
            return status;
        putchar('\n');
        status = option_table_print(kind->options, error);
        if (status || name)
            return status;
    }
    return name ? unknown("device", name, device_name, error) : STATUS_OK;
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

static const char *metric_name(size_t index)
{
    return index < METRIC_COUNT ? metric_info((enum metric)index)->name : NULL;
}

static enum status list_metrics(const char *name, struct error *error)
{
    static const struct table_column columns[] = {{"metric", "", true, 22},
                                                  {"unit", "", true, 0},
                                                  {"better", "", true, 0},
                                                  {"class", "", true, 0},
                                                  {"definition", "", true, 0}};
    struct table *table = name ? NULL : table_create(columns, 5);
    if (!name && !table)
        return no_memory(error);
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_info *info = metric_info((enum metric)i);
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
    return table ? print_and_close(table, error) : unknown("metric", name, metric_name, error);
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

static const char *format_name(size_t index)
{
    const char *name, *text;
    return format_at(index, &name, &text) ? name : NULL;
}

static enum status list_formats(const char *name, struct error *error)
{
    const char *format, *text;
    struct table *table = table_create(name_columns, 2);
    bool found = false;
    if (!table)
        return no_memory(error);
    for (size_t i = 0; format_at(i, &format, &text); i++) {
        if (name && strcmp(format, name) != 0)
            continue;
        found = true;
        table_cell(table, "%s", format);
        table_cell(table, "%s", text);
    }
    if (found)
        return print_and_close(table, error);
    table_close(table);
    return unknown("format", name, format_name, error);
}

/* ---- the command ----------------------------------------------------------------------- */

typedef enum status list_kind(const char *name, struct error *error);

struct kind {
    const char *name;
    list_kind *list;
    name_at *at;  /* NULL: the recordings, which are looked for in their folder */
    bool is_part; /* shown with the kind above it where all are */
};

static const struct kind kinds[] = {
    {"policies", list_policies, policy_name, false},
    {"decorators", list_decorators, decorator_name, true},
    {"workloads", list_workloads, workload_name, false},
    {"recordings", list_recordings, NULL, true},
    {"devices", list_devices, device_name, false},
    {"metrics", list_metrics, metric_name, false},
    {"formats", list_formats, format_name, false},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

struct list_arguments {
    const char *kind, *name;
    bool names;
};

static enum status take(void *argument, int key, const char *value, struct error *error)
{
    struct list_arguments *self = argument;
    if (key == KEY_NAMES) {
        self->names = true;
        return STATUS_OK;
    }
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

/* For scripts: nothing but names, each a word that other commands take, and each once: a format
 * that is read and written has two lines in the list. */
static enum status print_names(const struct kind *kind, struct error *error)
{
    size_t count;
    if (!kind->at)
        return each_recording(NULL, NULL, &count, error);
    for (size_t i = 0; kind->at(i); i++) {
        size_t first = 0;
        while (strcmp(kind->at(first), kind->at(i)) != 0)
            first++;
        if (first == i)
            puts(kind->at(i));
    }
    return STATUS_OK;
}

enum status cmd_list(int argc, char **argv, struct error *error)
{
    struct list_arguments self = {0};
    bool help = false;
    enum status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (self.names && (!self.kind || self.name))
        return error_set(
            error, STATUS_INVALID,
            "list: --names goes with one kind alone: `allocrig list policies --names`");
    if (!self.kind)
        return list_all(error);
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, self.kind) == 0)
            return self.names ? print_names(&kinds[i], error) : kinds[i].list(self.name, error);
    return unknown("list of", self.kind, kind_name, error);
}
