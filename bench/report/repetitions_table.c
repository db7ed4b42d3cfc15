/* Policies stand in the order of their median slowdown: of the steady steps where a program has
 * such, since what libraries load in its first step is in every whole run (slowdown_metric.h); the
 * heading of a group says which. A place is stated by intervals alone: `2` says that exactly one
 * policy is faster beyond doubt and that no other overlaps; `2=` that it shares the place with those
 * whose intervals touch its own. */
#include "bench/report/repetitions_table.h"

#include "bench/report/latex.h"
#include "bench/report/placed_rows.h"
#include "bench/report/slowdown_metric.h"

#define POLICY_WIDTH 22u

bool repetitions_any(const struct run_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (records[i].repetition > 0)
            return true;
    return false;
}

/* Medians beside the slowdown. */
static const struct {
    const char *title, *unit;
    enum metric metric;
    int decimals;
    double divisor;
    enum table_room room;
} medians[] = {
    {"whole run", "slowdown", METRIC_slowdown, 4, 1, TABLE_ROOM_WIDE},
    {"first", "step ms", METRIC_first_step_ns, 1, 1e6, TABLE_ROOM_TEXT},
    {"steady", "step ms", METRIC_steady_step_ns, 3, 1e6, TABLE_ROOM_WIDE},
    {"driver", "ms", METRIC_driver_time_ns, 2, 1e6, TABLE_ROOM_ALL},
    {"stall", "ms", METRIC_stall_ns, 1, 1e6, TABLE_ROOM_TEXT},
    {"longest", "pause us", METRIC_longest_pause_ns, 1, 1e3, TABLE_ROOM_ALL},
};
#define MEDIANS (sizeof medians / sizeof medians[0])

/* The policies of a group (first draw only), by the median of `slowdown`; those that did not finish
 * or have none last. */
static void gather_rows(struct placed_rows *rows, enum metric slowdown,
                        const struct run_record *begin, const struct run_record *end)
{
    rows->count = 0;
    for (const struct run_record *first = begin; first < end; first++) {
        if (first->repetition != 0 || first->seed != begin->seed)
            continue;
        struct placed_row row = {.first = first};
        for (const struct run_record *at = first; at < end; at++) {
            row.runs += statistic_same_run(first, at);
            row.passed += statistic_same_run(first, at) && at->passed;
        }
        if (row.passed == row.runs)
            row.by = statistic_gather(first, end, slowdown, rows->values);
        placed_rows_add(rows, row);
    }
    placed_rows_place(rows);
}

static void number(struct table *table, bool there, int decimals, double value)
{
    if (there)
        table_cell(table, "%.*f", decimals, value);
    else
        table_cell(table, "-");
}

static void add_row(struct table *table, const struct placed_row *row, enum table_form form,
                    const struct run_record *end, double *values)
{
    const struct statistic *slowdown = &row->by;
    bool spread = slowdown->count > 0;
    placed_row_cell(table, row);
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
        if (!table_has_room(form, medians[i].room))
            continue;
        struct statistic statistic = statistic_gather(row->first, end, medians[i].metric, values);
        number(table, statistic.count > 0, medians[i].decimals,
               statistic.median / medians[i].divisor);
    }
}

static void add_group(struct table *table, struct placed_rows *rows, enum table_form form,
                      const struct run_record *begin, const struct run_record *end)
{
    enum metric slowdown = slowdown_metric_of(begin, end);
    gather_rows(rows, slowdown, begin, end);
    table_heading(table, "%s: slowdown of %s, frees %s, host %s, %s %s", begin->workload.name,
                  slowdown == METRIC_steady_slowdown ? "steady steps" : "the whole run",
                  replay_frees_name(begin->frees), replay_host_name(begin->host),
                  begin->device.kind, begin->device.profile);
    for (size_t i = 0; i < rows->count; i++)
        add_row(table, &rows->items[i], form, end, rows->values);
}

/* In how many groups it is that of the steady steps. */
static size_t count_steady(const struct run_record *records, size_t count, size_t *groups)
{
    size_t steady = 0;
    *groups = 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = run_record_group_end(records, count, begin);
        steady += slowdown_metric_of(records + begin, records + end) == METRIC_steady_slowdown;
        ++*groups;
    }
    return steady;
}

/* A note below the table. */
static void say(FILE *stream, enum table_form form, const char *text)
{
    if (table_is_latex(form))
        latex_text(stream, text);
    else
        fputs(text, stream);
}

static void explain_steady(FILE *stream, enum table_form form)
{
    say(stream, form,
        "Steady: time of the second half of the steps by the same with an allocator that\n"
        "costs nothing. The first step, in which libraries load, is apart: in the JSON\n"
        "`first_step_ns`, and within `slowdown`, which is of the whole run.\n");
}

/* What the two columns of limits hold, and at which level. */
static void explain_limits(FILE *stream, enum table_form form, const struct run_record *records,
                           size_t count, double *values)
{
    char text[320];
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
        snprintf(
            text, sizeof text,
            "\nMedians over the repetitions. Low and high: between them lies the median with\n"
            "%.1f %% confidence. A place is stated where intervals do not overlap; `=` shares\n"
            "it.\n",
            100 * level);
    else
        snprintf(
            text, sizeof text,
            "\nMedians over the repetitions. Low and high are the least and the most: fewer\n"
            "than six runs give no interval of the median at 95 %%, so no places are stated.\n");
    say(stream, form, text);
}

enum ar_status repetitions_table_print(const struct run_record *records, size_t count, FILE *stream,
                                       enum table_form form, struct ar_error *error)
{
    struct table_column columns[6 + MEDIANS] = {
        {"#", "", false, 0},    {"policy", "", true, POLICY_WIDTH},
        {"runs", "", false, 0}, {"slowdown", "", false, 0},
        {"low", "", false, 0},  {"high", "", false, 0},
    };
    size_t column_count = 6;
    size_t groups;
    size_t steady = count_steady(records, count, &groups);
    if (steady == groups)
        columns[3] = (struct table_column){"steady", "slowdown", false, 0};
    for (size_t i = 0; i < MEDIANS; i++)
        if (table_has_room(form, medians[i].room))
            columns[column_count++] =
                (struct table_column){medians[i].title, medians[i].unit, false, 0};
    struct placed_rows rows;
    struct table *table = table_create(columns, column_count);
    enum ar_status status = placed_rows_open(&rows, count, error);
    if (!status && !table)
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
    if (!status)
        table_label(table, "repetitions");
    for (size_t begin = 0; !status && begin < count;) {
        size_t end = run_record_group_end(records, count, begin);
        add_group(table, &rows, form, records + begin, records + end);
        begin = end;
    }
    if (!status)
        status = table_print(table, stream, form, error);
    if (!status)
        explain_limits(stream, form, records, count, rows.values);
    if (!status && steady)
        explain_steady(stream, form);
    table_close(table);
    placed_rows_close(&rows);
    return status;
}
