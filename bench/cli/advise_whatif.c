#include "bench/cli/advise_whatif.h"

#include <stdio.h>
#include <string.h>

#include "bench/report/whatif_page.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/torch/sidecar.h"
#include "workloads/trace/trace.h"

/* "PROGRAM.SETTING" of a path; a file's name has 255 bytes at most (NAME_MAX). */
struct named {
    const char *path;
    char program[256], setting[256];
};

static void take_apart(const char *path, struct named *out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t program = strcspn(name, ".");
    const char *setting = name[program] ? name + program + 1 : "";
    out->path = path;
    snprintf(out->program, sizeof out->program, "%.*s", (int)program, name);
    snprintf(out->setting, sizeof out->setting, "%.*s", (int)strcspn(setting, "."), setting);
}

/* The retries that the allocator counted, of the file beside the recording. */
static enum ar_status find_retries(const char *path, struct whatif_line *line,
                                   struct ar_error *error)
{
    struct trace_stats stats = {0};
    enum ar_status status = sidecar_stats_read(path, &stats, error);
    for (size_t i = 0; i < stats.count && !status; i++)
        if (strcmp(stats.items[i].name, "num_alloc_retries") == 0) {
            line->has_retries = true;
            line->recorded_retries = stats.items[i].value;
        }
    trace_stats_close(&stats);
    return status;
}

static enum ar_status predict(const struct suite *suite, const struct ar_spec *device,
                              const struct named *from, const struct named *to,
                              struct ar_error *error)
{
    struct trace_source *source = NULL, *other = NULL;
    struct whatif whatif;
    struct whatif_line line = {
        .program = from->program, .from = from->setting, .to = to->setting, .whatif = &whatif};
    enum replay_frees frees[2];
    enum ar_status status = trace_open_recording(from->path, &source, error);
    if (!status)
        status = trace_open_recording(to->path, &other, error);
    if (!status)
        status = find_retries(to->path, &line, error);
    if (!status) {
        /* Where let-go and completion are apart, when blocks completed is the best that is known. */
        unsigned ways = replay_frees_choices(&source->info, suite->frees, frees);
        const struct advise_config config = {.source = source,
                                             .device = device,
                                             .frees = frees[ways - 1],
                                             .host = suite->host,
                                             .seed = suite->seed};
        status = whatif_predict(&config, other, &whatif, error);
    }
    if (!status)
        whatif_page_line(stdout, &line);
    else
        (void)ar_error_prefix(error, status, "%s from %s", to->path, from->path);
    trace_close(source);
    trace_close(other);
    return status;
}

static bool is_pair(const struct named *from, const struct named *to)
{
    return strcmp(from->program, to->program) == 0 && strcmp(from->path, to->path) != 0;
}

enum ar_status advise_whatif(const struct suite *suite, const struct ar_spec *device,
                             struct ar_error *error)
{
    const struct text_list *traces = &suite->workloads;
    enum ar_status status = AR_OK;
    size_t pairs = 0;
    for (size_t i = 0; i < traces->count && !status; i++)
        for (size_t j = 0; j < traces->count && !status; j++) {
            struct named from, to;
            take_apart(traces->items[i], &from);
            take_apart(traces->items[j], &to);
            if (!is_pair(&from, &to))
                continue;
            if (pairs++ == 0)
                whatif_page_head(stdout);
            status = predict(suite, device, &from, &to, error);
        }
    if (!status && !pairs)
        status = ar_error_set(error, AR_INVALID,
                              "no two of these are of one program: names must begin with the same "
                              "PROGRAM, as PROGRAM.SETTING.csv.gz");
    return status;
}
