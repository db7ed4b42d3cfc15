/* Which cells there are: every policy that holds memory, with every generator and every recording
 * of workloads/data. For `equal` only what must be the same: on one stream, or with recorded
 * completions; not `async`, whose inside is the driver's. */
#include <dirent.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "tests/gpu/cells.h"
#include "workloads/gen/gen.h"

#define RECORDINGS "workloads/data"
#define MOST       256u

/* Generators with one stream. */
static const char *const single_stream[] = {
    "order_flip", "linear_ramp", "pool_boundary", "sawtooth",     "checkerboard",
    "random",     "embedding",   "gradient_tape", "matmul_cache",
};

struct names {
    const char *at[MOST];
    size_t count;
};

static void add(struct names *names, const char *name)
{
    if (names->count < MOST)
        names->at[names->count++] = name;
}

static void add_policies(const struct cells_wish *wish, struct names *names)
{
    const struct ar_policy_ops *ops;
    for (size_t i = 0; i < wish->policy_count; i++)
        add(names, wish->policies[i]);
    if (names->count)
        return;
    for (size_t i = 0; (ops = registry_policy(i)); i++)
        if (strcmp(ops->name, "null") != 0 && !(ops->capabilities & AR_POLICY_PINNED) &&
            (wish->task != CELLS_EQUAL || strcmp(ops->name, "async") != 0))
            add(names, ops->name);
    add(names, "torch:expandable_segments=true");
}

static int is_recording(const struct dirent *entry)
{
    const char *end = strstr(entry->d_name, ".csv.gz");
    return end && !end[strlen(".csv.gz")] && entry->d_name[0] != '.';
}

static enum ar_status find_files(struct cells_list *list, struct ar_error *error)
{
    struct dirent **entries;
    int count = scandir(RECORDINGS, &entries, is_recording, alphasort);
    if (count < 0)
        return ar_error_set(error, AR_IO,
                            RECORDINGS " cannot be read; start this in the folder that holds it");
    list->files = calloc((size_t)count + 1, sizeof *list->files);
    enum ar_status status = AR_OK;
    for (int i = 0; i < count; i++) {
        if (list->files && !status &&
            asprintf(&list->files[list->file_count], RECORDINGS "/%s", entries[i]->d_name) > 0)
            list->file_count++;
        else
            status = ar_no_memory(error, "the cells");
        free(entries[i]);
    }
    free(entries);
    return status;
}

static void add_workloads(const struct cells_wish *wish, const struct cells_list *list,
                          struct names *names)
{
    for (size_t i = 0; i < wish->workload_count; i++)
        add(names, wish->workloads[i]);
    if (names->count)
        return;
    if (wish->task == CELLS_EQUAL)
        for (size_t i = 0; i < sizeof single_stream / sizeof single_stream[0]; i++)
            add(names, single_stream[i]);
    else
        for (size_t i = 0; gen_at(i); i++)
            add(names, gen_at(i)->name);
    for (size_t i = 0; i < list->file_count; i++)
        add(names, list->files[i]);
}

/* Keeps what an expression matches. */
static enum ar_status keep_like(struct names *names, const char *like, struct ar_error *error)
{
    regex_t expression;
    size_t kept = 0;
    if (!like)
        return AR_OK;
    if (regcomp(&expression, like, REG_EXTENDED | REG_NOSUB) != 0)
        return ar_error_set(error, AR_INVALID, "\"%.200s\" is no regular expression", like);
    for (size_t i = 0; i < names->count; i++)
        if (regexec(&expression, names->at[i], 0, NULL, 0) == 0)
            names->at[kept++] = names->at[i];
    names->count = kept;
    regfree(&expression);
    return AR_OK;
}

/* Names are whole: a file of lines is gone on with by them. */
static enum ar_status fill_in(struct cell *cell, enum cells_task task, struct ar_error *error)
{
    const char *slash = strrchr(cell->workload, '/');
    size_t length = strcspn(cell->workload, ":");
    cell->recorded = slash && slash < cell->workload + length;
    int written =
        asprintf(&cell->name, "%s %s%s", cell->policy, cell->recorded ? slash + 1 : cell->workload,
                 task == CELLS_VERIFY ? ""
                 : cell->recorded     ? " recorded"
                                      : " ordered");
    if (written >= 0)
        return AR_OK;
    cell->name = NULL;
    return ar_no_memory(error, "the cells");
}

enum ar_status cells_list_make(const struct cells_wish *wish, struct cells_list *out,
                               struct ar_error *error)
{
    struct names policies = {.count = 0}, workloads = {.count = 0};
    *out = (struct cells_list){0};
    enum ar_status status = find_files(out, error);
    if (status)
        return status;
    add_policies(wish, &policies);
    add_workloads(wish, out, &workloads);
    status = keep_like(&policies, wish->policies_like, error);
    if (!status)
        status = keep_like(&workloads, wish->workloads_like, error);
    if (status)
        return status;
    if (!policies.count || !workloads.count)
        return ar_error_set(error, AR_INVALID, "no cell is left: nothing matches -p or -w");
    out->cells = calloc(policies.count * workloads.count, sizeof *out->cells);
    AR_TRY_MEMORY(out->cells, error, "the cells");
    for (size_t i = 0; i < workloads.count && !status; i++) {
        for (size_t j = 0; j < policies.count && !status; j++) {
            struct cell *cell = &out->cells[out->count++];
            cell->policy = policies.at[j];
            cell->workload = workloads.at[i];
            status = fill_in(cell, wish->task, error);
        }
    }
    return status;
}

void cells_list_close(struct cells_list *list)
{
    for (size_t i = 0; i < list->file_count; i++)
        free(list->files[i]);
    for (size_t i = 0; i < list->count; i++)
        free(list->cells[i].name);
    free(list->files);
    free(list->cells);
    *list = (struct cells_list){0};
}
