/* The smallest capacities at which a workload passes.
 *
 * 1. If the workload is adaptive, it is played once and kept; its peak of live bytes is computed.
 * 2. Each point of the grid is a replay without metrics that stops at its first failure. Points are
 *    independent, so several workers try them, each with a device, a policy and a copy of the trace
 *    of its own. Results are kept by point.
 * 3. Between two neighbours on the grid, of which one passes and one fails, bisection finds the
 *    edge to 2 MiB. The edges above which no run flushes, and no run retries, are found the same
 *    way.
 * 4. The grid does not end at the card's memory: what a workload needs does not depend on the card.
 *    It ends at the most that a device can have. */
#include "sim/search/search.h"

#include "allocators/base/size.h"
#include "sim/experiment/crew.h"
#include "sim/experiment/session.h"

#define UNIT_BYTES (2 * AR_MIB)

/* The result of a replay at one capacity, as bits. */
enum { PASSES = 1, NO_FLUSH = 2, NO_RETRY = 4 };

/* A task: try one point, or (with low < high) bisect between two points of which one shows a
 * bit. */
struct task {
    uint64_t low_bytes, high_bytes;
    unsigned bit;
    bool low_shows; /* of an edge; given */
    unsigned shows; /* of a point; the result */
    uint64_t runs;
};

struct search {
    const struct experiment *experiment;
    struct trace_source *trace;
    uint64_t *grid_bytes;
    unsigned *shows;
    size_t count;
    struct task *tasks;
    unsigned jobs;
};

/* Replays once on the experiment's device with another capacity. */
static enum ar_status try_capacity(const struct search *search, struct trace_source *trace,
                                   uint64_t bytes, unsigned *shows, struct ar_error *error)
{
    const struct experiment *experiment = search->experiment;
    AR_CLOSED(session_device_end) struct session_device device = {0};
    AR_CLOSED(session_close) struct session session = {0};
    AR_CLOSED(replay_result_close) struct replay_result result = {0};
    AR_TRY(session_device_as(&device, experiment->device, NULL, bytes, error));
    AR_TRY(session_open(&session, experiment->policy, &device.spec, experiment->seed, NULL, error));
    const struct replay_config config = {
        .frees = experiment->frees,
        .host = experiment->host,
        .stop_on_failure = true,
    };
    AR_TRY(session_replay(&session, trace, config, &result, error));
    const struct metric_value *at = result.metrics.at;
    *shows = !result.passed ? 0
                            : PASSES | (at[METRIC_flushes].integer ? 0u : NO_FLUSH) |
                                  (at[METRIC_retries].integer ? 0u : NO_RETRY);
    return session_end(&session, error);
}

static enum ar_status do_task(void *argument, size_t number, struct trace_source *trace,
                              struct ar_error *error)
{
    const struct search *search = argument;
    struct task *task = &search->tasks[number];
    if (task->low_bytes == task->high_bytes) {
        task->runs = 1;
        return try_capacity(search, trace, task->low_bytes, &task->shows, error);
    }
    while (task->high_bytes - task->low_bytes > UNIT_BYTES) {
        uint64_t middle_bytes =
            task->low_bytes +
            ar_size_round_down((task->high_bytes - task->low_bytes) / 2, UNIT_BYTES);
        unsigned shows;
        AR_TRY(try_capacity(search, trace, middle_bytes, &shows, error));
        task->runs++;
        if ((shows & task->bit) == (task->low_shows ? task->bit : 0))
            task->low_bytes = middle_bytes;
        else
            task->high_bytes = middle_bytes;
    }
    return AR_OK;
}

/* Runs all tasks. */
static enum ar_status do_tasks(struct search *search, struct task *tasks, size_t count,
                               struct ar_error *error)
{
    search->tasks = tasks;
    return crew_each(search->trace, search->jobs, count, do_task, NULL, search, error);
}

static uint64_t grid_step(uint64_t start_bytes, uint64_t per_mille)
{
    uint64_t step_bytes = ar_size_round_up(start_bytes / 1000 * per_mille, UNIT_BYTES);
    return step_bytes > UNIT_BYTES ? step_bytes : UNIT_BYTES;
}

/* Writes the grid to `grid_bytes`, or only counts its points if that is NULL. */
static size_t make_grid(uint64_t start_bytes, uint64_t most_bytes, uint64_t *grid_bytes)
{
    size_t count = 0;
    uint64_t fine_bytes = grid_step(start_bytes, 5), coarse_bytes = grid_step(start_bytes, 50);
    uint64_t last_bytes = capacity_grid_end(start_bytes);
    for (uint64_t at = start_bytes; at <= most_bytes;) {
        if (grid_bytes)
            grid_bytes[count] = at;
        count++;
        if (at >= last_bytes)
            break;
        uint64_t end_bytes = at < 2 * start_bytes ? 2 * start_bytes : last_bytes;
        at += at < 2 * start_bytes ? fine_bytes : coarse_bytes;
        at = at < end_bytes ? at : end_bytes;
    }
    return count;
}

/* The memory of the recorded card, and the most that the device can have; the capacity in the
 * user's spec does not count. */
static enum ar_status find_card(const struct search *search, struct capacity_result *result,
                                uint64_t *most_bytes, struct ar_error *error)
{
    const struct ar_spec *asked = search->experiment->device;
    struct recorded_card *card = &result->card;
    struct session_device plain;
    struct ar_device_props props;
    AR_TRY(recorded_card_find(search->trace, asked, card, error));
    AR_TRY(session_device_as(&plain, asked, card->profile, card->capacity_bytes, error));
    enum ar_status status = session_device_props(&plain.spec, &props, error);
    session_device_end(&plain);
    if (status && card->source != RECORDED_CARD_ASKED)
        (void)ar_error_prefix(error, status, "the recorded capacity");
    AR_TRY(status);
    result->card_bytes = props.total_bytes;
    *most_bytes = props.most_bytes ? props.most_bytes : props.capacity_bytes;
    return AR_OK;
}

enum ar_status capacity_grid_make(uint64_t live_peak_bytes, uint64_t most_bytes,
                                  struct capacity_grid *out, struct ar_error *error)
{
    uint64_t start_bytes = ar_size_round_up(live_peak_bytes, UNIT_BYTES);
    *out = (struct capacity_grid){0};
    start_bytes = start_bytes ? start_bytes : UNIT_BYTES;
    size_t count = make_grid(start_bytes, most_bytes, NULL);
    out->bytes = calloc(count + 1, sizeof *out->bytes);
    AR_TRY_MEMORY(out->bytes, error, "a grid of capacities");
    out->count = make_grid(start_bytes, most_bytes, out->bytes);
    return AR_OK;
}

void capacity_grid_close(struct capacity_grid *grid)
{
    free(grid->bytes);
    *grid = (struct capacity_grid){0};
}

static enum ar_status try_grid(struct search *search, struct capacity_result *result,
                               struct ar_error *error)
{
    AR_FREED struct task *tasks = calloc(search->count + 1, sizeof *tasks);
    AR_TRY_MEMORY(tasks, error, "a grid of capacities");
    for (size_t i = 0; i < search->count; i++)
        tasks[i].low_bytes = tasks[i].high_bytes = search->grid_bytes[i];
    AR_TRY(do_tasks(search, tasks, search->count, error));
    for (size_t i = 0; i < search->count; i++) {
        search->shows[i] = tasks[i].shows;
        result->runs += tasks[i].runs;
    }
    return AR_OK;
}

/* The results of the edges, from low to high. */
static enum ar_status conclude(const struct search *search, const struct task *edges, size_t count,
                               struct capacity_result *result, struct ar_error *error)
{
    result->gaps = calloc(count / 2 + 1, sizeof *result->gaps);
    AR_TRY_MEMORY(result->gaps, error, "gaps");
    if (search->count && search->shows[0] & PASSES)
        result->first_pass_bytes = result->safe_bytes = search->grid_bytes[0];
    for (size_t i = 0; i < count; i++) {
        result->runs += edges[i].runs;
        struct capacity_gap *gap = &result->gaps[result->gap_count];
        if (edges[i].low_shows) {
            gap->from_bytes = edges[i].high_bytes;
            gap->to_bytes = search->grid_bytes[search->count - 1];
            result->safe_bytes = 0;
            result->gap_count++;
            continue;
        }
        result->safe_bytes = edges[i].high_bytes;
        if (!result->first_pass_bytes)
            result->first_pass_bytes = edges[i].high_bytes;
        else
            gap[-1].to_bytes = edges[i].low_bytes;
    }
    return AR_OK;
}

/* The edge above which the whole grid shows the bit. False: there is none, and *bytes is the value
 * for all or nothing of the grid. */
static bool last_edge(const struct search *search, unsigned bit, struct task *edge, uint64_t *bytes)
{
    size_t first = search->count;
    while (first > 0 && search->shows[first - 1] & bit)
        first--;
    *bytes = first == 0 && search->count ? search->grid_bytes[0] : 0;
    if (first == 0 || first == search->count)
        return false;
    *edge =
        (struct task){search->grid_bytes[first - 1], search->grid_bytes[first], bit, false, 0, 0};
    return true;
}

static enum ar_status refine(struct search *search, struct capacity_result *result,
                             struct ar_error *error)
{
    size_t count = 0;
    struct task *edges = calloc(search->count + 3, sizeof *edges);
    AR_TRY_MEMORY(edges, error, "edges of capacity");
    for (size_t i = 0; i + 1 < search->count; i++)
        if ((search->shows[i] ^ search->shows[i + 1]) & PASSES)
            edges[count++] = (struct task){search->grid_bytes[i],
                                           search->grid_bytes[i + 1],
                                           PASSES,
                                           search->shows[i] & PASSES,
                                           0,
                                           0};
    size_t all = count;
    bool flush = last_edge(search, NO_FLUSH, &edges[all], &result->no_flush_bytes);
    all += flush;
    bool retry = last_edge(search, NO_RETRY, &edges[all], &result->no_retry_bytes);
    all += retry;
    enum ar_status status = do_tasks(search, edges, all, error);
    AR_THEN(status, conclude(search, edges, count, result, error));
    if (flush)
        result->no_flush_bytes = edges[count].high_bytes;
    if (retry)
        result->no_retry_bytes = edges[all - 1].high_bytes;
    for (size_t i = count; i < all; i++)
        result->runs += edges[i].runs;
    free(edges);
    return status;
}

static enum ar_status find(struct search *search, struct capacity_result *result,
                           struct ar_error *error)
{
    uint64_t most_bytes;
    struct survey_peak peak, firm;
    AR_CLOSED(capacity_grid_close) struct capacity_grid grid = {0};
    AR_TRY(find_card(search, result, &most_bytes, error));
    AR_TRY(survey_peak_live(search->trace, result->card_bytes, &peak, error));
    AR_TRY(survey_peak_live(search->trace, 0, &firm, error));
    result->live_peak_bytes = peak.bytes;
    result->firm_peak_bytes = firm.bytes;
    AR_TRY(capacity_grid_make(result->live_peak_bytes, most_bytes, &grid, error));
    AR_FREED unsigned *shows = calloc(grid.count + 1, sizeof *shows);
    AR_TRY_MEMORY(shows, error, "a grid of capacities");
    search->count = grid.count;
    search->grid_bytes = grid.bytes;
    search->shows = shows;
    AR_TRY(try_grid(search, result, error));
    return refine(search, result, error);
}

enum ar_status capacity_find(const struct experiment *experiment, unsigned jobs,
                             struct capacity_result *result, struct ar_error *error)
{
    struct search search = {.experiment = experiment, .jobs = jobs};
    struct trace_source *owned;
    memset(result, 0, sizeof *result);
    AR_TRY(session_trace(experiment, false, &search.trace, &owned, error));
    enum ar_status status = find(&search, result, error);
    trace_close(owned);
    if (status != AR_OK)
        capacity_result_close(result);
    return status;
}

void capacity_result_close(struct capacity_result *result)
{
    free(result->gaps);
    result->gaps = NULL;
    result->gap_count = 0;
}
