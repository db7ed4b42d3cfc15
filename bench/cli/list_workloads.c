/* `list workloads` and `list recordings`: the generators, and the recordings that lie where the program
 * was started. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/cli/list.h"
#include "bench/cli/option_table.h"
#include "workloads/gen/gen.h"
#include "workloads/formats/torch/sidecar.h"

static enum ar_status show_workload(const struct gen_ops *ops, struct ar_error *error)
{
    list_line("%s: %s", ops->name, ops->summary);
    if (ops->page)
        list_line("Where its sizes come from: %s", ops->page);
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

/* Of the recordings that lie where the program was started, all or the one of that name: rows of
 * the table or, where it is NULL, lines with their paths. None where there is no such folder. */
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

/* `before` is printed first where there are any. */
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
        return list_print(table, error);
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

const char *list_workload_name(size_t index)
{
    const struct gen_ops *ops = gen_at(index);
    return ops ? ops->name : NULL;
}

enum ar_status list_workloads(const char *name, struct ar_error *error)
{
    for (size_t i = 0; name && gen_at(i); i++)
        if (strcmp(list_workload_name(i), name) == 0)
            return show_workload(gen_at(i), error);
    if (name)
        return list_unknown("workload", name, list_workload_name, error);
    struct table *table = table_create(list_columns, 2);
    if (!table)
        return list_no_memory(error);
    for (size_t i = 0; gen_at(i); i++) {
        table_cell(table, "%s", gen_at(i)->name);
        table_cell(table, "%s", gen_at(i)->summary);
    }
    size_t recordings;
    enum ar_status status = list_print(table, error);
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
