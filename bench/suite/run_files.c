/* Opens and fills the files of a suite (run_files.h). A run on a card has a process of its own,
 * so what is written at its end is written in that process: it shares the streams but not the
 * memory. Therefore a timeline of several runs, which is one file, needs runs in this process. */
#include "bench/suite/run_files.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/base/utf8.h"
#include "bench/report/sentence.h"
#include "sim/replay/timing.h"
#include "workloads/io/fields.h"

static const struct {
    const char *name;
    bool one_run;
} about[SUITE_FILE_COUNT] = {
#define X(name, one_run) {#name, one_run},
    SUITE_FILES(X)
#undef X
};

const char *suite_file_name(enum suite_file file)
{
    return about[file].name;
}

bool suite_file_holds_one_run(enum suite_file file)
{
    return about[file].one_run;
}

enum suite_file suite_files_of_one_run(const struct suite_files *files)
{
    unsigned file = 0;
    while (file < SUITE_FILE_COUNT && !(files->path[file] && about[file].one_run))
        file++;
    return (enum suite_file)file;
}

#define CALLS_MOST  (UINT32_C(1) << 20) /* driver calls kept before they are written: 48 MiB */
#define CALLS_READY (UINT32_C(1) << 16) /* those whose memory is touched before the run */

/* The histograms, by the metrics computed from them. */
#define HISTOGRAMS(X)                                                                              \
    X(alloc_ns, alloc) X(free_ns, free) X(alloc_total_ns, alloc_total) X(free_total_ns, free_total)

static enum ar_status write_placement(void *argument, const struct replay_row *row,
                                      struct ar_error *error AR_UNUSED)
{
    const struct run_files *self = argument;
    placements_csv_row(self->streams[SUITE_FILE_placements], row);
    return AR_OK;
}

static enum ar_status write_sample(void *argument, const struct replay_sample *sample,
                                   struct ar_error *error AR_UNUSED)
{
    const struct run_files *self = argument;
    series_csv_row(self->streams[SUITE_FILE_series], sample);
    return AR_OK;
}

static void write_calls(struct run_files *self)
{
    for (size_t i = 0; i < self->calls.count; i++)
        calls_csv_row(self->streams[SUITE_FILE_calls], &self->calls.items[i]);
    self->calls.count = 0;
}

/* Without this memory calls are still kept, or written at once. */
static enum ar_status make_room(void *argument, struct ar_error *error AR_UNUSED)
{
    struct run_files *self = argument;
    (void)call_list_ready(&self->calls, CALLS_READY);
    return AR_OK;
}

/* Called within the policy's call, whose time may be measured: writing would take longer than many
 * policies. */
static void keep_call(void *argument, const struct observer_driver_call *made)
{
    struct run_files *self = argument;
    const struct driver_call row = {made->event, made->call,      made->bytes,
                                    made->ns,    made->waited_ns, made->refused};
    if (self->calls.count < self->calls_most && call_list_add(&self->calls, &row))
        return;
    write_calls(self);
    calls_csv_row(self->streams[SUITE_FILE_calls], &row);
}

static enum ar_status write_end(void *argument, const struct ar_policy *policy,
                                struct ar_error *error)
{
    struct run_files *self = argument;
    if (self->streams[SUITE_FILE_calls])
        write_calls(self);
    if (self->streams[SUITE_FILE_stats])
        policy_figures_write(self->streams[SUITE_FILE_stats], policy);
    if (self->streams[SUITE_FILE_snapshot])
        AR_TRY(
            run_snapshot_write(&self->snapshot, policy, self->streams[SUITE_FILE_snapshot], error));
    if (self->chromes && self->alone)
        AR_TRY(chrome_trace_write(self->chromes, 1, self->streams[SUITE_FILE_chrome], error));
    return AR_OK;
}

static enum ar_status write_latencies(void *argument, const struct latency *latency,
                                      struct ar_error *error AR_UNUSED)
{
    const struct run_files *self = argument;
    const struct ar_hist *hist = NULL;
#define X(name, field)                                                                             \
    if (strcmp(self->hdr_of, #name) == 0)                                                          \
        hist = &latency->field;
    HISTOGRAMS(X)
#undef X
    if (hist)
        hdr_percentiles_write(self->streams[SUITE_FILE_hdr], hist);
    return AR_OK;
}

static enum ar_status check_histogram(const char *name, struct ar_error *error)
{
#define X(known, field)                                                                            \
    if (strcmp(name, #known) == 0)                                                                 \
        return AR_OK;
    HISTOGRAMS(X)
#undef X
    return ar_invalid(error,
                      "--hdr-of \"%.40s\" is no histogram; there are alloc_ns, free_ns, "
                      "alloc_total_ns and free_total_ns",
                      name);
}

static void open_chrome(struct run_files *self, const struct suite_files *files,
                        const struct plan *plan, size_t index)
{
    const struct plan_run *run = &plan->runs[index];
    char name[sizeof self->chromes->name], which[48] = "";
    if (plan->suite->reps > 1 || plan->suite->replicates > 1)
        (void)snprintf(which, sizeof which, ", seed %" PRIu64 ", repetition %u", run->seed,
                       run->repetition + 1);
    (void)snprintf(
        name, sizeof name, "%.120s on %s%s%s%s", plan->policies[run->policy].text,
        plan->workloads[run->workload].info.name,
        plan->workloads[run->workload].frees_count > 1 ? ", frees " : "",
        plan->workloads[run->workload].frees_count > 1 ? replay_frees_name(run->frees) : "", which);
    chrome_trace_open(&self->chromes[index], name, files->chrome_most);
    self->chrome_observers[index] = (struct observer){
        .next = &self->events, .memory = chrome_trace_observe, .argument = &self->chromes[index]};
}

/* Links the observers that all runs share: events, memory, end, timed. */
static void open_observers(struct run_files *self)
{
    FILE *const *streams = self->streams;
    bool calls = streams[SUITE_FILE_calls] != NULL;
    self->timed = (struct observer){.argument = self,
                                    .latencies = streams[SUITE_FILE_hdr] ? write_latencies : NULL};
    self->end = (struct observer){.next = &self->timed, .argument = self, .finished = write_end};
    self->memory =
        (struct observer){.next = &self->end,
                          .argument = &self->snapshot,
                          .memory = streams[SUITE_FILE_snapshot] ? run_snapshot_observe : NULL};
    self->events = (struct observer){.next = &self->memory,
                                     .argument = self,
                                     .begin = calls ? make_room : NULL,
                                     .row = streams[SUITE_FILE_placements] ? write_placement : NULL,
                                     .sample = streams[SUITE_FILE_series] ? write_sample : NULL,
                                     .driver_call = calls ? keep_call : NULL};
}

enum ar_status run_files_open(struct run_files *self, FILE *const *streams,
                              const struct suite_files *files, const struct plan *plan,
                              struct ar_error *error)
{
    *self = (struct run_files){.streams = streams, .hdr_of = "alloc_ns", .calls_most = CALLS_MOST};
    open_observers(self);
    if (files->hdr_of)
        self->hdr_of = files->hdr_of;
    AR_TRY(check_histogram(self->hdr_of, error));
    if (files->path[SUITE_FILE_hdr] && !plan->suite->time)
        return ar_invalid(
            error, "--hdr writes the host time of calls, which only --time measures; add --time");
    if (!files->path[SUITE_FILE_snapshot] && !files->path[SUITE_FILE_chrome])
        return AR_OK;
    self->count = plan->run_count;
    self->alone = plan->runs[0].alone;
    if (files->path[SUITE_FILE_snapshot])
        run_snapshot_open(&self->snapshot, plan->workloads[0].info.name);
    if (!files->path[SUITE_FILE_chrome])
        return AR_OK;
    self->chromes = calloc(self->count, sizeof *self->chromes);
    self->chrome_observers = calloc(self->count, sizeof *self->chrome_observers);
    AR_TRY_MEMORY(self->chromes && self->chrome_observers, error, "a run's files");
    for (size_t i = 0; i < self->count; i++)
        open_chrome(self, files, plan, i);
    return AR_OK;
}

enum ar_status run_files_finish(const struct run_files *self, struct ar_error *error)
{
    if (!self->chromes || self->alone)
        return AR_OK;
    return chrome_trace_write(self->chromes, self->count, self->streams[SUITE_FILE_chrome], error);
}

void run_files_close(struct run_files *self)
{
    for (size_t i = 0; self->chromes && i < self->count; i++)
        chrome_trace_close(&self->chromes[i]);
    free(self->chrome_observers);
    free(self->chromes);
    run_snapshot_close(&self->snapshot);
    call_list_close(&self->calls);
    *self = (struct run_files){0};
}

const struct observer *run_files_observer(const struct run_files *self, size_t index)
{
    return self->chrome_observers ? &self->chrome_observers[index] : &self->events;
}

const struct observer *run_files_timed(const struct run_files *self)
{
    return self->streams[SUITE_FILE_hdr] ? &self->timed : NULL;
}

void run_files_headers(FILE *const *streams)
{
    if (streams[SUITE_FILE_placements])
        placements_csv_header(streams[SUITE_FILE_placements]);
    if (streams[SUITE_FILE_series])
        series_csv_header(streams[SUITE_FILE_series]);
    if (streams[SUITE_FILE_calls])
        calls_csv_header(streams[SUITE_FILE_calls]);
}

/* ---- the folder of results ----------------------------------------------------------------- */

/* The folder's own files, in addition to the series, and what stands at the start of each. */
struct own_file {
    const char *name, *start;
};
static const struct own_file in_folder[] = {
    {"results.json", "\"allocrig.result/"},
    {"results.csv", "policy,policy_spec,"},
    {"summary.md", "# Results of the suite "},
};
static const struct own_file in_data[] = {
    {"fragmentation.csv", "workload,policy,"},
    {"slowdown.csv", "workload,policy,"},
    {"latency.csv", "workload,policy,"},
    {"pareto.csv", "workload,policy,"},
    {"pairs.csv", "workload,"},
};
static const char series_start[] = "policy,";

static bool is_series(const char *name)
{
    return field_begins_with(name, "series-") && field_ends_with(name, ".csv");
}

/* Whether a file has content that is not of an earlier run, or cannot be read. */
static bool is_foreign(const char *folder, const char *name, const char *start)
{
    AR_FREED char *path = NULL;
    char head[128];
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return true;
    FILE *stream = fopen(path, "re");
    if (!stream)
        return errno != ENOENT;
    size_t length = fread(head, 1, sizeof head - 1, stream);
    head[length] = '\0';
    fclose(stream);
    return length && !strstr(head, start);
}

/* Nothing of others is replaced or removed: they may have a file of such a name too. */
static enum ar_status check_foreign(const char *folder, const struct own_file *files, size_t count,
                                    struct ar_error *error)
{
    char found[256] = "";
    for (size_t i = 0; i < count && !found[0]; i++)
        if (is_foreign(folder, files[i].name, files[i].start))
            snprintf(found, sizeof found, "%s", files[i].name);
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found[0] && (entry = readdir(entries));)
        if (files == in_data && is_series(entry->d_name) &&
            is_foreign(folder, entry->d_name, series_start))
            snprintf(found, sizeof found, "%s", entry->d_name);
    if (entries)
        closedir(entries);
    return found[0] ? ar_invalid(error,
                                 "%s/%s is no result of an earlier run and would be replaced; "
                                 "move it, or name another folder",
                                 folder, found)
                    : AR_OK;
}

/* Whether the file of that name is in `folder`, by any path. */
static bool lies_in(const char *file, const char *name, const char *folder)
{
    struct stat here, there;
    char *above = name == file ? strdup(".") : strndup(file, (size_t)(name - file));
    bool same = above && stat(above, &here) == 0 && stat(folder, &there) == 0 &&
                here.st_dev == there.st_dev && here.st_ino == there.st_ino;
    free(above);
    return same;
}

/* Whether a file of the folder would replace `file`. */
static bool replaces(const char *folder, const char *data, const char *file)
{
    const char *name = field_file_name(file);
    bool own = false;
    bool own_data = strncmp(name, "series-", 7) == 0;
    for (size_t i = 0; i < AR_COUNT(in_folder); i++)
        own = own || strcmp(name, in_folder[i].name) == 0;
    for (size_t i = 0; i < AR_COUNT(in_data); i++)
        own_data = own_data || strcmp(name, in_data[i].name) == 0;
    return (own && lies_in(file, name, folder)) || (own_data && lies_in(file, name, data));
}

enum ar_status result_folder_check(const char *path, const struct output_set *outputs,
                                   const char *journal, struct ar_error *error)
{
    AR_FREED char *data = NULL;
    AR_TRY(output_folder_check(path, error));
    if (asprintf(&data, "%s/data", path) < 0)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to look at it", path);
    const char *taken = journal && replaces(path, data, journal) ? journal : NULL;
    for (size_t i = 0; i < outputs->count && !taken; i++)
        if (replaces(path, data, outputs->files[i].path))
            taken = outputs->files[i].path;
    if (taken)
        return ar_invalid(error,
                          "\"%s\" is one of the files of the results in %s; give it another place",
                          taken, path);
    AR_TRY(check_foreign(path, in_folder, AR_COUNT(in_folder), error));
    return check_foreign(data, in_data, AR_COUNT(in_data), error);
}

static enum ar_status open_in(struct result_folder *self, const char *name, FILE **stream,
                              struct ar_error *error)
{
    AR_FREED char *path = NULL;
    if (asprintf(&path, "%s/%s", self->path, name) < 0)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to open it", name);
    return output_set_add(self->outputs, path, stream, error);
}

enum ar_status result_folder_open(struct result_folder *self, const char *path,
                                  struct output_set *outputs, struct ar_error *error)
{
    AR_FREED char *data = NULL;
    *self = (struct result_folder){.path = strdup(path), .outputs = outputs};
    if (!self->path || asprintf(&data, "%s/data", path) < 0)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to open it", path);
    self->made = access(path, F_OK) != 0;
    self->made_data = access(data, F_OK) != 0;
    AR_TRY(output_folder(data, error));
    AR_TRY(open_in(self, "results.json", &self->json, error));
    AR_TRY(open_in(self, "results.csv", &self->csv, error));
    return open_in(self, "summary.md", &self->summary, error);
}

void result_folder_summary(struct result_folder *self, const struct results *results)
{
    const struct environment *environment = results->environment;
    fprintf(self->summary, "# Results of the suite %s\n\n",
            results->suite ? results->suite : "(no name)");
    fprintf(self->summary, "allocrig %s, commit %.12s%s, %s; %s, %u processors; seed %llu.\n\n",
            environment->build->version, environment->build->commit,
            environment->build->dirty ? " with changes" : "", environment->time, environment->cpu,
            environment->cpus, (unsigned long long)environment->seed);
    fputs("Times of kernels and of driver calls are modelled if the device is `sim`. "
          "`results.json` holds every figure, `results.csv` those of the runs as a table.\n\n",
          self->summary);
}

static bool is_among(const char *name, char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (paths[i] && strcmp(field_file_name(paths[i]), name) == 0)
            return true;
    return false;
}

/* Removes series and pairs that are not among the `count` files of `paths`. */
static void tidy(const struct result_folder *self, char *const *paths, size_t count)
{
    char *folder = NULL;
    if (asprintf(&folder, "%s/data", self->path) < 0)
        return;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if ((is_series(entry->d_name) || strcmp(entry->d_name, "pairs.csv") == 0) &&
            !is_among(entry->d_name, paths, count))
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries)
        closedir(entries);
    free(folder);
}

/* Describes the results in the folder by the first and the third line of its summary; "" if it has
 * none. */
static void tell_earlier(const char *path, char *text, size_t room)
{
    static const char title[] = "# Results of the suite ";
    char *file = NULL;
    char line[3][256] = {"", "", ""};
    text[0] = '\0';
    if (asprintf(&file, "%s/summary.md", path) < 0)
        return;
    FILE *stream = fopen(file, "re");
    for (int i = 0; stream && i < 3; i++)
        if (!fgets(line[i], sizeof line[i], stream))
            break;
    const char *commit = strstr(line[2], "commit ");
    if (strncmp(line[0], title, sizeof title - 1) == 0 && commit) {
        char words[800];
        line[0][strcspn(line[0], "\n")] = '\0';
        snprintf(words, sizeof words, "suite %s, %.*s", line[0] + sizeof title - 1,
                 (int)strcspn(commit, ";\n"), commit);
        ar_utf8_escape(words, text, room);
    }
    if (stream)
        fclose(stream);
    free(file);
}

/* The number of other workloads before a group whose series have the same file name. */
static unsigned namesakes(const struct results *results, size_t group)
{
    const struct run_record *mine = results->groups[group].runs;
    char name[128], other[128];
    const char *before = "";
    unsigned count = 0;
    figure_file_name(mine->workload.name, name, sizeof name);
    for (size_t i = 0; i < group; i++) {
        const struct run_record *theirs = results->groups[i].runs;
        if (strcmp(theirs->workload_spec, before) != 0 &&
            strcmp(theirs->workload_spec, mine->workload_spec) != 0)
            count +=
                strcmp(figure_file_name(theirs->workload.name, other, sizeof other), name) == 0;
        before = theirs->workload_spec;
    }
    return count;
}

/* The series of one workload, all policies; nothing if no run of the group has one. */
static enum ar_status write_series(struct result_folder *self, const struct results *results,
                                   const struct thin_series *const *series, size_t at,
                                   struct ar_error *error)
{
    const struct result_group *group = &results->groups[at];
    const size_t first = (size_t)(group->runs - results->runs);
    const unsigned before = namesakes(results, at);
    char name[128], file[160];
    FILE *stream = NULL;
    figure_file_name(group->runs->workload.name, name, sizeof name);
    if (before)
        snprintf(file, sizeof file, "data/series-%s-%u.csv", name, before + 1);
    else
        snprintf(file, sizeof file, "data/series-%s.csv", name);
    for (size_t i = first; i < first + group->run_count; i++) {
        if (!series[i])
            continue;
        if (!stream) {
            AR_TRY(open_in(self, file, &stream, error));
            figure_series_header(stream, group->policies->replicate_count);
        }
        figure_series_rows(stream, &results->runs[i], group->policies->replicate_count, series[i]);
    }
    return AR_OK;
}

enum ar_status result_folder_write(struct result_folder *self, const struct results *results,
                                   const struct thin_series *const *series, struct ar_error *error)
{
    static const char *const files[FIGURE_FILES] = {
        [FIGURE_FRAGMENTATION] = "data/fragmentation.csv",
        [FIGURE_SLOWDOWN] = "data/slowdown.csv",
        [FIGURE_LATENCY] = "data/latency.csv",
        [FIGURE_PARETO] = "data/pareto.csv",
    };
    FILE *stream;
    results_json_write(self->json, results);
    results_csv_write(self->csv, results);
    for (int file = 0; file < FIGURE_FILES; file++) {
        AR_TRY(open_in(self, files[file], &stream, error));
        figure_write(stream, results, (enum figure_file)file);
    }
    if (results_have_pairs(results)) {
        AR_TRY(open_in(self, "data/pairs.csv", &stream, error));
        pairs_csv_write(stream, results);
    }
    for (size_t i = 0; i < results->group_count && series; i++)
        AR_TRY(write_series(self, results, series, i, error));
    return AR_OK;
}

/* Whether a file of data/ has a header alone. */
static bool has_no_rows(const char *path)
{
    FILE *stream = strstr(path, "/data/") ? fopen(path, "re") : NULL;
    const bool there = stream != NULL;
    unsigned lines = 0;
    for (int c; stream && lines < 2 && (c = fgetc(stream)) != EOF;)
        lines += c == '\n';
    if (stream)
        fclose(stream);
    return there && lines < 2;
}

enum ar_status result_folder_commit(const struct result_folder *self, struct output_set *outputs,
                                    FILE *stream, struct ar_error *error)
{
    size_t count = outputs->count;
    char **paths = calloc(count ? count : 1, sizeof *paths);
    char earlier[1024] = "";
    AR_TRY_MEMORY(paths, error, "the results");
    if (self->path)
        tell_earlier(self->path, earlier, sizeof earlier);
    for (size_t i = 0; i < count; i++)
        paths[i] = strdup(outputs->files[i].path);
    enum ar_status status = output_set_commit(outputs, error);
    if (!status && self->path)
        tidy(self, paths, count);
    if (stream) /* else the line could end up within another one if both go to one file */
        fflush(stream);
    if (!status && earlier[0])
        sentence_say(stderr, "replaced the results in %s: %s; --output FOLDER keeps both",
                     self->path, earlier);
    if (!status && count && stream)
        fputc('\n', stream);
    for (size_t i = 0; i < count; i++) {
        if (!status && stream && paths[i])
            fprintf(stream, "wrote %s%s\n", paths[i], has_no_rows(paths[i]) ? " (no rows)" : "");
        free(paths[i]);
    }
    free(paths);
    return status;
}

void result_folder_take_away(const struct result_folder *self)
{
    char *data = NULL;
    if (!self->path || asprintf(&data, "%s/data", self->path) < 0)
        return;
    if (self->made_data)
        (void)rmdir(data);
    if (self->made)
        (void)rmdir(self->path);
    free(data);
}

void result_folder_close(struct result_folder *self)
{
    free(self->path);
    *self = (struct result_folder){0};
}
