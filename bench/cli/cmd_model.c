/* `model`: compares the simulated device with a card, from runs on both. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/cli/cli.h"
#include "bench/report/model.h"
#include "bench/report/output_file.h"
#include "bench/report/sentence.h"

#define REPETITIONS_MOST 16

struct arguments {
    struct cli_words folders; /* the first one has the modelled runs too */
    const char *output;
};

static const struct cli_option options[] = {
    {'o', "output", "FILE", "write the page as Markdown; default: standard output",
     CLI_FILE(output)},
    {0},
};

static const struct cli_page page = {
    .arguments = "FOLDER [AGAIN..] [-o FILE]",
    .text =
        "Compares modelled driver calls and step times with measured ones. Each folder in FOLDER\n"
        "is one policy and workload, with card.csv and sim.csv (run --csv), card.calls and\n"
        "sim.calls (run --calls). bench/suite/model_cells.sh makes them on a card. AGAIN are\n"
        "folders with repetitions of some or all runs on the card. The page then has medians\n"
        "(the mean of two middle values; for driver time the median of the sums of the runs)\n"
        "and the number of runs.",
    .options = options,
    .argument = {.value = "folder", CLI_WORDS(folders, REPETITIONS_MOST)},
};

/* Reads one file of a run: calls or results. The output must not be one of these files. */
static enum ar_status read_one(const struct arguments *self, const char *folder, const char *cell,
                               const char *name, struct call_list *calls,
                               struct model_result *result, struct ar_error *error)
{
    AR_FREED char *path = NULL;
    if (asprintf(&path, "%s/%s/%s", folder, cell, name) < 0)
        return ar_no_memory(error, "a name");
    const struct cli_file files[] = {{&options[0], self->output}, {&page.argument, path}};
    AR_TRY(self->output ? ar_error_prefix(error, cli_files_check(files, 2, error), "model")
                        : AR_OK);
    return calls ? calls_csv_read(path, calls, error) : model_result_read(path, result, error);
}

/* The repetitions of a run on the card. A folder of repetitions need not have all runs. */
struct measured {
    struct model_result results[REPETITIONS_MOST];
    struct call_list calls[REPETITIONS_MOST];
    size_t count;
};

static bool is_there(const char *folder, const char *cell)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s/card.csv", folder, cell) < 0)
        return true; /* reading it reports the error */
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static enum ar_status read_measured(const struct arguments *self, const char *name,
                                    struct measured *out, struct ar_error *error)
{
    for (size_t i = 0; i < self->folders.count; i++) {
        if (i && !is_there(self->folders.at[i], name))
            continue;
        struct model_result *result = &out->results[out->count];
        AR_TRY(read_one(self, self->folders.at[i], name, "card.csv", NULL, result, error));
        AR_TRY(read_one(self, self->folders.at[i], name, "card.calls", &out->calls[out->count++],
                        NULL, error));
        if (strcmp(result->policy, out->results[0].policy) != 0 ||
            strcmp(result->workload, out->results[0].workload) != 0)
            return ar_invalid(
                error, "%s/%s: card.csv is of %s with %s, so it is not a repetition of %s with %s",
                self->folders.at[i], name, result->workload, result->policy,
                out->results[0].workload, out->results[0].policy);
    }
    return model_repeat_results(out->results, out->count, error);
}

static enum ar_status read_cell(const struct arguments *self, const char *name,
                                struct model_cell *cell, struct ar_error *error)
{
    const char *folder = self->folders.at[0];
    struct measured *measured = calloc(1, sizeof *measured);
    struct call_list sim = {0};
    AR_TRY_MEMORY(measured, error, "the runs");
    enum ar_status status = read_measured(self, name, measured, error);
    cell->card = measured->results[0];
    AR_THEN(status, read_one(self, folder, name, "sim.csv", NULL, &cell->sim, error));
    AR_THEN(status, read_one(self, folder, name, "sim.calls", &sim, NULL, error));
    if (!status && (strcmp(cell->card.policy, cell->sim.policy) != 0 ||
                    strcmp(cell->card.workload, cell->sim.workload) != 0))
        status = ar_invalid(error, "%s/%s: card.csv is of %s with %s, sim.csv of %s with %s",
                            folder, name, cell->card.workload, cell->card.policy,
                            cell->sim.workload, cell->sim.policy);
    AR_THEN(status, model_repeat_compare(cell, measured->calls, measured->count, &sim, error));
    for (size_t i = 0; i < REPETITIONS_MOST; i++)
        call_list_close(&measured->calls[i]);
    call_list_close(&sim);
    free(measured);
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

static enum ar_status scan(const char *folder, struct dirent ***names, int *count,
                           struct ar_error *error)
{
    *count = scandir(folder, names, is_cell, alphasort);
    if (*count >= 0)
        return AR_OK;
    *count = 0;
    return ar_error_set(error, AR_IO, "%s: cannot be read: %s", folder, strerror(errno));
}

static void names_free(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static bool is_among(struct dirent **names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i]->d_name, name) == 0)
            return true;
    return false;
}

/* Names the runs in the folders of repetitions that are not in the first folder. */
static enum ar_status tell_left_out(const struct arguments *self, struct dirent **cells,
                                    int cell_count, struct ar_error *error)
{
    for (size_t i = 1; i < self->folders.count; i++) {
        const char *first = NULL;
        int more = -1;
        struct dirent **names = NULL;
        int count = 0;
        AR_TRY(scan(self->folders.at[i], &names, &count, error));
        for (int j = 0; j < count; j++) {
            if (is_among(cells, cell_count, names[j]->d_name) ||
                !is_there(self->folders.at[i], names[j]->d_name))
                continue;
            first = first ? first : names[j]->d_name;
            more++;
        }
        if (more > 0)
            sentence_say(stderr, "note: %s: left out %s and %d more, which %s does not have",
                         self->folders.at[i], first, more, self->folders.at[0]);
        else if (first)
            sentence_say(stderr, "note: %s: left out %s, which %s does not have",
                         self->folders.at[i], first, self->folders.at[0]);
        names_free(names, count);
    }
    return AR_OK;
}

static enum ar_status write_page(const struct arguments *self, const struct model_cell *cells,
                                 size_t count, struct ar_error *error)
{
    struct output_file output = {0};
    AR_TRY(output_open(&output, self->output ? self->output : "-", error));
    model_page(output.stream, cells, count, self->folders.count > 1);
    return output_commit(&output, error);
}

/* A folder given twice would count the same runs as repetitions. */
static enum ar_status refuse_twice(const struct arguments *self, struct ar_error *error)
{
    struct stat all[REPETITIONS_MOST];
    for (size_t i = 0; i < self->folders.count; i++) {
        if (stat(self->folders.at[i], &all[i]) != 0)
            return ar_error_set(error, AR_IO, "%s: cannot be read: %s", self->folders.at[i],
                                strerror(errno));
        for (size_t j = 0; j < i; j++)
            if (all[i].st_dev == all[j].st_dev && all[i].st_ino == all[j].st_ino)
                return ar_invalid(error,
                                  "model: %s and %s are the same folder, so its runs are not "
                                  "repetitions; name it once",
                                  self->folders.at[j], self->folders.at[i]);
    }
    return AR_OK;
}

/* Two folders of runs with the same policy and workload would count them twice. */
static enum ar_status refuse_same(const struct arguments *self, struct dirent **names,
                                  const struct model_cell *cells, int at, struct ar_error *error)
{
    for (int i = 0; i < at; i++)
        if (by_workload(&cells[i], &cells[at]) == 0)
            return ar_invalid(error,
                              "%s: %s and %s are both runs of %s with %s; remove one, or put it "
                              "into a folder of repetitions",
                              self->folders.at[0], names[i]->d_name, names[at]->d_name,
                              cells[at].card.workload, cells[at].card.policy);
    return AR_OK;
}

static enum ar_status run(const struct arguments *self, struct ar_error *error)
{
    struct dirent **names = NULL;
    int count = 0;
    enum ar_status status = AR_OK;
    AR_TRY(refuse_twice(self, error));
    AR_TRY(scan(self->folders.at[0], &names, &count, error));
    struct model_cell *cells = calloc(count ? (size_t)count : 1, sizeof *cells);
    if (!cells)
        status = ar_no_memory(error, "the runs");
    else if (!count)
        status = ar_invalid(error, "%s: the folder has no folders of runs", self->folders.at[0]);
    for (int i = 0; i < count && !status; i++) {
        status = read_cell(self, names[i]->d_name, &cells[i], error);
        AR_THEN(status, refuse_same(self, names, cells, i, error));
    }
    AR_THEN(status, tell_left_out(self, names, count, error));
    if (!status) {
        qsort(cells, (size_t)count, sizeof *cells, by_workload);
        status = write_page(self, cells, (size_t)count, error);
    }
    for (int i = 0; cells && i < count; i++)
        model_cell_close(&cells[i]);
    free(cells);
    names_free(names, count);
    return status;
}

enum ar_status cmd_model(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (!self.folders.count)
        return ar_invalid(error, "model: name a folder of runs: model FOLDER");
    return run(&self, error);
}
