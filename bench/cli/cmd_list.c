/* `list`: what there is, from the tables that the program itself works by. Devices and metrics are here,
 * the longer lists in files of their own (list.h). */
#include <stdio.h>
#include <string.h>

#include "bench/cli/cli.h"
#include "bench/cli/list.h"
#include "bench/cli/option_table.h"
#include "sim/device_kinds.h"
#include "sim/metrics/metrics.h"
#include "sim/sim_device/profile.h"

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

/* ---- devices, metrics ------------------------------------------------------------------ */

/* The cards that the simulated device knows by name. */
static enum ar_status print_profiles(struct ar_error *error)
{
    const char *names[SIM_PROFILES_MOST];
    size_t count = sim_profile_names(names, SIM_PROFILES_MOST);
    struct sim_profile profile;
    for (size_t i = 0; i < count; i++) {
        enum ar_status status =
            sim_profile_read(sim_profile_builtin(names[i]), names[i], &profile, error);
        if (status)
            return status;
        printf("%s %s%s%s\n", i ? "        " : "Profiles:", names[i], profile.card[0] ? ": " : "",
               profile.card);
    }
    return AR_OK;
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
    return table ? list_print(table, error) : list_unknown("metric", name, metric_name, error);
}

/* ---- the command ----------------------------------------------------------------------- */

typedef enum ar_status list_kind(const char *name, struct ar_error *error);

struct kind {
    const char *name;
    list_kind *list;
    list_name_at *at; /* NULL: the recordings, which are looked for in their folder */
    bool is_part;     /* shown with the kind above it where all are */
};

static const struct kind kinds[] = {
    {"policies", list_policies, list_policy_name, false},
    {"decorators", list_decorators, list_decorator_name, true},
    {"workloads", list_workloads, list_workload_name, false},
    {"recordings", list_recordings, NULL, true},
    {"devices", list_devices, device_name, false},
    {"metrics", list_metrics, metric_name, false},
    {"formats", list_formats, list_format_name, false},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

struct list_arguments {
    const char *kind, *name;
    bool names;
};

static enum ar_status take(void *argument, int key, const char *value, struct ar_error *error)
{
    struct list_arguments *self = argument;
    if (key == KEY_NAMES) {
        self->names = true;
        return AR_OK;
    }
    const char **place = self->kind ? &self->name : &self->kind;
    if (*place)
        return ar_error_set(error, AR_INVALID, "\"%s\" is one name too many", value);
    *place = value;
    return AR_OK;
}

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

/* For scripts: nothing but names, each a word that other commands take, and each once: a format
 * that is read and written has two lines in the list. */
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
    struct list_arguments self = {0};
    bool help = false;
    enum ar_status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (self.names && (!self.kind || self.name))
        return ar_error_set(
            error, AR_INVALID,
            "list: --names goes with one kind alone: `allocrig list policies --names`");
    if (!self.kind)
        return list_all(error);
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, self.kind) == 0)
            return self.names ? print_names(&kinds[i], error) : kinds[i].list(self.name, error);
    return list_unknown("list of", self.kind, kind_name, error);
}
