/* `model`: how well the simulated device predicts a card, from runs that were made on both. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cli/cli.h"
#include "bench/report/model.h"
#include "bench/report/output_file.h"

static const struct cli_option options[] = {
    {'o', "output", "FILE", "the page, as Markdown; default: standard output"},
    {0},
};

static const struct cli_page page = {
    .arguments = "FOLDER [-o FILE]",
    .text =
        "Holds modelled driver calls and step times against measured ones. Each folder in\n"
        "FOLDER is one policy x workload and holds card.csv and sim.csv (run --csv), card.calls\n"
        "and sim.calls (run --calls). bench/suite/model_cells.sh makes them on a card.",
    .options = options,
};

struct arguments {
    const char *folder, *output;
};

static enum status take(void *argument, int key, const char *value, struct error *error)
{
    struct arguments *self = argument;
    const char **place = key == 'o' ? &self->output : &self->folder;
    if (*place)
        return error_set(error, STATUS_INVALID, "\"%s\" is one %s too many", value,
                         key == 'o' ? "output" : "folder");
    *place = value;
    return STATUS_OK;
}

/* Opens one file of a cell by one of the two readers. */
static enum status read_one(const char *folder, const char *cell, const char *name,
                            struct call_list *calls, struct model_result *result,
                            struct error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s/%s", folder, cell, name) < 0)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory left for a name");
    enum status status =
        calls ? calls_csv_read(path, calls, error) : model_result_read(path, result, error);
    free(path);
    return status;
}

static enum status read_cell(const char *folder, const char *name, struct model_cell *cell,
                             struct error *error)
{
    struct call_list card = {0};
    struct call_list sim = {0};
    enum status status = read_one(folder, name, "card.csv", NULL, &cell->card, error);
    if (!status)
        status = read_one(folder, name, "sim.csv", NULL, &cell->sim, error);
    if (!status)
        status = read_one(folder, name, "card.calls", &card, NULL, error);
    if (!status)
        status = read_one(folder, name, "sim.calls", &sim, NULL, error);
    if (!status && (strcmp(cell->card.policy, cell->sim.policy) != 0 ||
                    strcmp(cell->card.workload, cell->sim.workload) != 0))
        status =
            error_set(error, STATUS_INVALID,
                      "%s/%s: card.csv is of %s with %s, sim.csv of %s with %s", folder, name,
                      cell->card.workload, cell->card.policy, cell->sim.workload, cell->sim.policy);
    if (!status)
        status = model_compare(cell, &card, &sim, error);
    call_list_close(&card);
    call_list_close(&sim);
    return status;
}

static int by_workload(const void *left, const void *right)
{
    const struct model_cell *a = left;
    const struct model_cell *b = right;
    int order = strcmp(a->card.workload, b->card.workload);
    return order ? order : strcmp(a->card.policy, b->card.policy);
}

static int is_cell(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
}

static enum status write_page(const char *path, const struct model_cell *cells, size_t count,
                              struct error *error)
{
    struct output_file output = {0};
    enum status status = output_open(&output, path ? path : "-", error);
    if (status)
        return status;
    model_page(output.stream, cells, count);
    return output_commit(&output, error);
}

static enum status run(const struct arguments *self, struct error *error)
{
    struct dirent **names = NULL;
    int count = scandir(self->folder, &names, is_cell, alphasort);
    if (count < 0)
        return error_set(error, STATUS_IO, "%s: cannot be read: %s", self->folder, strerror(errno));
    struct model_cell *cells = calloc(count ? (size_t)count : 1, sizeof *cells);
    enum status status = STATUS_OK;
    if (!cells)
        status = error_set(error, STATUS_HOST_MEMORY, "no host memory left for the runs");
    else if (!count)
        status = error_set(error, STATUS_INVALID, "%s: holds no folder of a run", self->folder);
    for (int i = 0; i < count && !status; i++)
        status = read_cell(self->folder, names[i]->d_name, &cells[i], error);
    if (!status) {
        qsort(cells, (size_t)count, sizeof *cells, by_workload);
        status = write_page(self->output, cells, (size_t)count, error);
    }
    for (int i = 0; i < count; i++) {
        if (cells)
            model_cell_close(&cells[i]);
        free(names[i]);
    }
    free(cells);
    free(names);
    return status;
}

enum status cmd_model(int argc, char **argv, struct error *error)
{
    struct arguments self = {0};
    bool help = false;
    enum status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.folder)
        return error_set(error, STATUS_INVALID, "model: name a folder of runs: model FOLDER");
    return run(&self, error);
}
