/* Policies stand in the order of their median slowdown. A place is stated by intervals alone: `2`
 * says that exactly one policy is faster beyond doubt and that no other overlaps; `2=` that it
 * shares the place with those whose intervals touch its own. */
#include "bench/report/repetitions_table.h"

#include <stdlib.h>

#include "bench/report/statistics.h"

#define POLICY_WIDTH 22u

bool repetitions_any(const struct run_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (records[i].repetition > 0)
            return true;
    return false;
}

/* One policy of a group. */
struct row {
    const struct run_record *first;
    size_t runs, passed;
};

/* Medians beside the slowdown. */
static const struct {
    const char *title, *unit;
    enum metric metric;
    int decimals;
    double divisor;
    enum table_room room;
} medians[] = {
    {"driver", "ms", METRIC_driver_time_ns, 2, 1e6, TABLE_ROOM_ALL},
    {"stall", "ms", METRIC_stall_ns, 2, 1e6, TABLE_ROOM_TEXT},
    {"steady", "step ms", METRIC_steady_step_ns, 3, 1e6, TABLE_ROOM_WIDE},
    {"longest", "pause us", METRIC_longest_pause_ns, 1, 1e3, TABLE_ROOM_ALL},
};
#define MEDIANS (sizeof medians / sizeof medians[0])

/* Scratch for one print, each with room for all records. */
struct work {
    struct row *rows;
    struct statistic *slowdowns;
    size_t *places;
    bool *shared;
    double *values;
    enum table_form form;
};

/* The policies of a group (first draw only), by their median slowdown; those that did not finish or
 * have none last. */
static size_t gather_rows(struct work *work, const struct run_record *begin,
                          const struct run_record *end)
{
    size_t count = 0;
    for (const struct run_record *first = begin; first < end; first++) {
        if (first->repetition != 0 || first->seed != begin->seed)
            continue;
        struct row row = {.first = first};
        for (const struct run_record *at = first; at < end; at++) {
            row.runs += statistic_same_run(first, at);
            row.passed += statistic_same_run(first, at) && at->passed;
        }
        struct statistic slowdown = statistic_gather(first, end, METRIC_slowdown, work->values);
        if (row.passed < row.runs)
            slowdown = (struct statistic){0};
        size_t place = count++;
        for (; place > 0 && slowdown.count &&
               (!work->slowdowns[place - 1].count ||
                slowdown.median < work->slowdowns[place - 1].median);
             place--) {
            work->rows[place] = work->rows[place - 1];
            work->slowdowns[place] = work->slowdowns[place - 1];
        }
        work->rows[place] = row;
        work->slowdowns[place] = slowdown;
    }
    return count;
}

static void number(struct table *table, bool there, int decimals, double value)
{
    if (there)
        table_cell(table, "%.*f", decimals, value);
    else
        table_cell(table, "-");
}

static void add_row(struct table *table, struct work *work, size_t index,
                    const struct run_record *end)
{
    const struct row *row = &work->rows[index];
    const struct statistic *slowdown = &work->slowdowns[index];
    bool spread = slowdown->count > 0;
    if (work->places[index])
        table_cell(table, "%zu%s", work->places[index], work->shared[index] ? "=" : "");
    else
        table_cell(table, "-");
    table_cell(table, "%s", row->first->policy_spec);
    if (row->passed < row->runs) {
        table_rest(table, "%zu of %zu runs finished", row->passed, row->runs);
        return;
    }
    table_cell(table, "%zu", row->runs);
    number(table, spread, 4, slowdown->median);
    number(table, spread, 4, slowdown->has_interval ? slowdown->low : slowdown->least);
    number(table, spread, 4, slowdown->has_interval ? slowdown->high : slowdown->most);
    for (size_t i = 0; i < MEDIANS; i++) {
        if (!table_has_room(work->form, medians[i].room))
            continue;
        struct statistic statistic =
            statistic_gather(row->first, end, medians[i].metric, work->values);
        number(table, statistic.count > 0, medians[i].decimals,
               statistic.median / medians[i].divisor);
    }
}

static void add_group(struct table *table, struct work *work, const struct run_record *begin,
                      const struct run_record *end)
{
    size_t count = gather_rows(work, begin, end);
    statistic_places(work->slowdowns, count, work->places, work->shared);
    table_heading(table, "%s: frees %s, host %s, %s %s", begin->workload.name,
                  replay_frees_name(begin->frees), replay_host_name(begin->host),
                  begin->device.kind, begin->device.profile);
    for (size_t i = 0; i < count; i++)
        add_row(table, work, i, end);
}

/* What the two columns of limits hold, and at which level. */
static void explain(FILE *stream, const struct run_record *records, size_t count, double *values)
{
    size_t least = 0;
    double level = 1;
    for (size_t i = 0; i < count; i++) {
        if (records[i].repetition != 0)
            continue;
        struct statistic statistic =
            statistic_gather(&records[i], records + count, METRIC_device_time_ns, values);
        if (statistic.count && (!least || statistic.count < least)) {
            least = statistic.count;
            level = statistic.level;
        }
    }
    if (level > 0 && least)
        fprintf(stream,
                "\nMedians over the repetitions. Low and high: between them lies the median with\n"
                "%.1f %% confidence. A place is stated where intervals do not overlap; `=` shares\n"
                "it.\n",
                100 * level);
    else
        fputs("\nMedians over the repetitions. Low and high are the least and the most: fewer\n"
              "than six runs give no interval of the median at 95 %, so no places are stated.\n",
              stream);
}

enum status repetitions_table_print(const struct run_record *records, size_t count, FILE *stream,
                                    enum table_form form, struct error *error)
{
    struct table_column columns[6 + MEDIANS] = {
        {"#", "", false, 0},    {"policy", "", true, POLICY_WIDTH},
        {"runs", "", false, 0}, {"slowdown", "", false, 0},
        {"low", "", false, 0},  {"high", "", false, 0},
    };
    size_t column_count = 6;
    for (size_t i = 0; i < MEDIANS; i++)
        if (table_has_room(form, medians[i].room))
            columns[column_count++] =
                (struct table_column){medians[i].title, medians[i].unit, false, 0};
    size_t room = count ? count : 1;
    struct work work = {
        .rows = calloc(room, sizeof *work.rows),
        .slowdowns = calloc(room, sizeof *work.slowdowns),
        .places = calloc(room, sizeof *work.places),
        .shared = calloc(room, sizeof *work.shared),
        .values = calloc(room, sizeof *work.values),
        .form = form,
    };
    struct table *table = table_create(columns, column_count);
    enum status status = STATUS_OK;
    if (!table || !work.rows || !work.slowdowns || !work.places || !work.shared || !work.values)
        status = error_set(error, STATUS_HOST_MEMORY, "no host memory left for the table");
    else
        table_label(table, "repetitions");
    for (size_t begin = 0; !status && begin < count;) {
        size_t end = run_record_group_end(records, count, begin);
        add_group(table, &work, records + begin, records + end);
        begin = end;
    }
    if (!status)
        status = table_print(table, stream, form, error);
    if (!status)
        explain(stream, records, count, work.values);
    table_close(table);
    free(work.rows);
    free(work.slowdowns);
    free(work.places);
    free(work.shared);
    free(work.values);
    return status;
}
