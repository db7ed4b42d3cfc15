/* Ranks go by peak physical bytes, equal bytes share a rank. A run that did not finish shows
 * where and why instead of figures; harness checks and bounds stand below, without a rank. Of
 * several draws a row holds medians and no rank: one of them alone would be a lucky one. */
#include "bench/report/results_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/placed_rows.h"

#define POLICY_WIDTH 22u

/* The figures of a run in the order of their columns. Text and LaTeX leave out what others tell
 * nearly as well: granted is between live and reserved, and time in the driver is in the slowdown.
 * All runs of a group have nearly the same live bytes, so a paper states them once. */
static const struct {
    const char *title, *unit; /* NULL: that of the byte columns */
    enum metric metric;
    int decimals;
    double divisor; /* 0: bytes */
    enum table_room room, spread_room;
} figures[] = {
    {"live", NULL, METRIC_peak_live_bytes, 1, 0, TABLE_ROOM_TEXT, TABLE_ROOM_WIDE},
    {"granted", NULL, METRIC_peak_granted_bytes, 1, 0, TABLE_ROOM_WIDE, TABLE_ROOM_WIDE},
    {"reserved", NULL, METRIC_peak_reserved_bytes, 1, 0, TABLE_ROOM_TEXT, TABLE_ROOM_WIDE},
    {"physical", NULL, METRIC_peak_physical_bytes, 1, 0, TABLE_ROOM_ALL, TABLE_ROOM_ALL},
    {"overhead", "ratio", METRIC_overhead, 3, 1, TABLE_ROOM_ALL, TABLE_ROOM_ALL},
    {"ext.frag", "mean", METRIC_external_fragmentation_mean, 3, 1, TABLE_ROOM_ALL, TABLE_ROOM_ALL},
    {"driver", "calls", METRIC_driver_calls, 0, 1, TABLE_ROOM_ALL, TABLE_ROOM_TEXT},
    {"driver", "ms", METRIC_driver_time_ns, 1, 1e6, TABLE_ROOM_WIDE, TABLE_ROOM_WIDE},
    {"slowdown", "ratio", METRIC_slowdown, 3, 1, TABLE_ROOM_ALL, TABLE_ROOM_ALL},
};
#define FIGURES (sizeof figures / sizeof figures[0])

/* A table of these figures behind the columns `first`. The caller closes both. */
struct figure_table {
    struct table *table; /* NULL: no host memory */
    struct table_column columns[4 + FIGURES];
    enum table_form form;
    bool spread;
};

static bool is_shown(const struct figure_table *self, size_t figure)
{
    return table_has_room(self->form,
                          self->spread ? figures[figure].spread_room : figures[figure].room);
}

/* The rank has no room in a paper: rows stand in its order. */
static void open_figure_table(struct figure_table *self, enum table_form form, bool spread,
                              const char *unit)
{
    size_t count = 0;
    *self = (struct figure_table){.form = form, .spread = spread};
    if (form != TABLE_LATEX)
        self->columns[count++] = (struct table_column){"#", "", false, 0};
    self->columns[count++] = (struct table_column){"policy", "", true, POLICY_WIDTH};
    if (spread) {
        self->columns[count++] = (struct table_column){"passed", "draws", false, 0};
        self->columns[count++] = (struct table_column){"", "", true, 0};
    }
    for (size_t i = 0; i < FIGURES; i++)
        if (is_shown(self, i))
            self->columns[count++] = (struct table_column){
                figures[i].title, figures[i].unit ? figures[i].unit : unit, false, 0};
    self->table = table_create(self->columns, count);
    if (self->table)
        table_label(self->table, spread ? "draws" : "memory");
}

/* A unit for all byte columns, such that the smallest group still shows digits. */
struct byte_unit {
    const char *name;
    double bytes;
};

static struct byte_unit choose_unit(const struct run_record *records, size_t count)
{
    double least = 0;
    for (size_t i = 0; i < count; i++) {
        double peak = metric_number(&records[i].metrics, METRIC_peak_physical_bytes, 0);
        if (peak > 0 && (least == 0 || peak < least))
            least = peak;
    }
    if (least == 0 || least >= (double)AR_MIB)
        return (struct byte_unit){"MiB", (double)AR_MIB};
    if (least >= (double)(64 * AR_KIB))
        return (struct byte_unit){"KiB", (double)AR_KIB};
    return (struct byte_unit){"B", 1};
}

/* The heading of the group records[0] to records[count - 1]. Workloads that answer to what a
 * policy does have not the same number of events under each. */
static void heading(struct table *table, const struct run_record *records, size_t count)
{
    size_t draws = run_record_draws(records, count);
    const char *name = draws > 1 ? records->workload_spec : records->workload.name;
    char of_draws[32] = "";
    char capacity[32] = "no limit";
    char events[48];
    double least = 0;
    double most = 0;
    bool seen = false;
    for (size_t i = 0; i < count; i++) {
        double number = metric_number(&records[i].metrics, METRIC_events, 0);
        if (records[i].end != RUN_PLAYED)
            continue;
        least = !seen || number < least ? number : least;
        most = number > most ? number : most;
        seen = true;
    }
    if (least == most)
        snprintf(events, sizeof events, "%.0f events", most);
    else
        snprintf(events, sizeof events, "%.0f to %.0f events", least, most);
    if (records->device.capacity_bytes != UINT64_MAX)
        ar_size_print(records->device.capacity_bytes, capacity, sizeof capacity);
    if (draws > 1)
        snprintf(of_draws, sizeof of_draws, ", %zu draws", draws);
    table_heading(table, "%s%s: %s, frees %s, host %s, %s %s, %s", name, of_draws, events,
                  replay_frees_name(records->frees), replay_host_name(records->host),
                  records->device.kind, records->device.profile, capacity);
}

/* Figures that are out of all proportion to the rest are written short, so that one such policy
 * does not make its column too wide for a screen. */
#define LONG_FIGURE 1e7

static void bytes_cell(struct table *table, const struct run_record *record, enum metric metric,
                       struct byte_unit unit)
{
    char text[32];
    double bytes = metric_number(&record->metrics, metric, 0);
    if (record->metrics.at[metric].kind == METRIC_NULL)
        table_cell(table, "-");
    else if (bytes / unit.bytes >= LONG_FIGURE)
        table_cell(table, "%s", ar_size_print((uint64_t)bytes, text, sizeof text));
    else
        table_cell(table, "%.*f", unit.bytes > 1 ? 1 : 0, bytes / unit.bytes);
}

static void number_cell(struct table *table, const struct run_record *record, enum metric metric,
                        int decimals, double divisor)
{
    double number = metric_number(&record->metrics, metric, 0) / divisor;
    if (record->metrics.at[metric].kind == METRIC_NULL)
        table_cell(table, "-");
    else if (number >= LONG_FIGURE)
        table_cell(table, "%.2e", number);
    else
        table_cell(table, "%.*f", decimals, number);
}

/* Where and why it ended, in place of the figures. */
static void failed_rest(struct table *table, const struct run_record *record, const char *before)
{
    char bytes[32];
    if (record->end != RUN_PLAYED) {
        table_rest(table, "%sDNF: %s", before, record->detail);
        return;
    }
    if (record->detail[0]) {
        table_rest(table, "%sDNF @ %" PRIu64 ": %s", before, record->first_failed_event,
                   record->detail);
        return;
    }
    table_rest(table, "%sDNF @ %" PRIu64 ": %s, a request of %s", before,
               record->first_failed_event, replay_cause_name(record->cause),
               ar_size_print(record->first_failed_bytes, bytes, sizeof bytes));
}

/* What a row is made from: a run, or the draws of a policy. */
struct table_run {
    struct run_record record; /* of draws the medians, or the first that did not finish */
    size_t draws, passed;
};

static void run_row(const struct figure_table *self, const struct table_run *run, size_t rank,
                    struct byte_unit unit)
{
    const struct run_record *record = &run->record;
    struct table *table = self->table;
    if (rank && self->form != TABLE_LATEX)
        table_cell(table, "%zu", rank);
    else if (self->form != TABLE_LATEX)
        table_cell(table, "-");
    table_cell(table, "%s", record->policy_spec);
    if (!record->passed) {
        char before[64] = "";
        if (run->draws > 1)
            snprintf(before, sizeof before, "%zu of %zu passed, first ", run->passed, run->draws);
        failed_rest(table, record, before);
        return;
    }
    for (size_t i = 0; i < FIGURES; i++) {
        if (!is_shown(self, i))
            continue;
        if (figures[i].divisor > 0)
            number_cell(table, record, figures[i].metric, figures[i].decimals, figures[i].divisor);
        else
            bytes_cell(table, record, figures[i].metric, unit);
    }
}

/* True where an earlier run of the group has this policy: its row is there already. */
static bool seen_before(const struct run_record *begin, const struct run_record *record)
{
    for (const struct run_record *at = begin; at < record; at++)
        if (strcmp(at->policy_spec, record->policy_spec) == 0)
            return true;
    return false;
}

/* The runs from `first` to before `end` with its policy as one, each of them a draw. */
static struct table_run over_draws(const struct run_record *first, const struct run_record *end,
                                   double *values)
{
    struct table_run run = {.record = *first};
    for (const struct run_record *at = first; at < end; at++) {
        if (strcmp(at->policy_spec, first->policy_spec) != 0)
            continue;
        if (!at->passed && run.passed == run.draws)
            run.record = *at;
        run.draws++;
        run.passed += at->passed;
    }
    for (int i = 0; i < METRIC_COUNT && run.draws > 1 && run.passed == run.draws; i++) {
        struct metric_value *value = &run.record.metrics.at[i];
        struct statistic statistic = statistic_over_draws(first, end, (enum metric)i, values);
        if (!statistic.count || !(statistic.least < statistic.most))
            continue; /* as it stands, integers beyond 2^53 too */
        if (value->kind == METRIC_INTEGER)
            value->integer = (uint64_t)statistic.median;
        else
            *value = (struct metric_value){.kind = METRIC_REAL, .real = statistic.median};
    }
    return run;
}

/* The rows of one group, best first. A stable insertion sort: groups are as small as the number
 * of policies. */
static size_t sort_group(const struct run_record *begin, const struct run_record *end,
                         struct table_run *rows, double *values)
{
    size_t count = 0;
    for (const struct run_record *first = begin; first < end; first++) {
        if (seen_before(begin, first))
            continue;
        struct table_run run = over_draws(first, end, values);
        size_t at = count++;
        for (; at > 0 && run_record_rank_order(&run.record, &rows[at - 1].record) < 0; at--)
            rows[at] = rows[at - 1];
        rows[at] = run;
    }
    return count;
}

static void add_group(const struct figure_table *self, const struct table_run *rows, size_t count,
                      struct byte_unit unit)
{
    size_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        const struct run_record *record = &rows[i].record;
        bool ranked = record->ranked && record->passed && rows[i].draws == 1;
        if (ranked && (i == 0 || run_record_rank_order(&rows[i - 1].record, record) < 0))
            rank = i + 1;
        run_row(self, &rows[i], ranked ? rank : 0, unit);
    }
}

enum ar_status results_table_print(const struct run_record *all, size_t all_count, FILE *stream,
                                   enum table_form form, struct ar_error *error)
{
    size_t count = 0;
    struct run_record *records = statistic_condense(all, all_count, &count);
    if (!records)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
    struct byte_unit unit = choose_unit(records, count);
    struct figure_table self;
    open_figure_table(&self, form, false, unit.name);
    struct table_run *rows = calloc(count ? count : 1, sizeof *rows);
    double *values = calloc(count ? count : 1, sizeof *values);
    enum ar_status status = AR_OK;
    if (!self.table || !rows || !values)
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
    for (size_t begin = 0; !status && begin < count;) {
        size_t end = run_record_group_end(records, count, begin);
        size_t shown = sort_group(records + begin, records + end, rows, values);
        heading(self.table, records + begin, end - begin);
        add_group(&self, rows, shown, unit);
        begin = end;
    }
    if (!status)
        status = table_print(self.table, stream, form, error);
    free(values);
    free(rows);
    free(records);
    table_close(self.table);
    return status;
}

/* Adds the cells of one policy's runs, `first` to `end`, to the row that is open. */
typedef void add_cells(struct table *table, const struct run_record *first,
                       const struct run_record *end, double *values);

/* A table with one row for each policy of each group, whose cells sum up all its runs. */
static enum ar_status summing_table(const struct run_record *records, size_t count,
                                    const struct table_column *columns, size_t column_count,
                                    add_cells *add, FILE *stream, enum table_form form,
                                    struct ar_error *error)
{
    struct table *table = table_create(columns, column_count);
    double *values = calloc(count ? count : 1, sizeof *values);
    enum ar_status status = AR_OK;
    if (!table || !values)
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
    else
        table_label(table, "latency");
    for (size_t begin = 0; !status && begin < count;) {
        size_t end = run_record_group_end(records, count, begin);
        heading(table, records + begin, end - begin);
        for (size_t i = begin; i < end; i++) {
            if (seen_before(&records[begin], &records[i]))
                continue;
            table_cell(table, "%s", records[i].policy_spec);
            add(table, &records[i], records + end, values);
        }
        begin = end;
    }
    if (!status)
        status = table_print(table, stream, form, error);
    free(values);
    table_close(table);
    return status;
}

static void latency_cells(struct table *table, const struct run_record *first,
                          const struct run_record *end, double *values)
{
    static const struct {
        enum metric metric;
        int decimals;
        double divisor;
    } cells[] = {
        {METRIC_alloc_ns_p50, 0, 1},  {METRIC_alloc_ns_p90, 0, 1}, {METRIC_alloc_ns_p99, 0, 1},
        {METRIC_alloc_ns_p999, 0, 1}, {METRIC_alloc_ns_max, 0, 1}, {METRIC_free_ns_p50, 0, 1},
        {METRIC_free_ns_p99, 0, 1},   {METRIC_ops_per_s, 2, 1e6},
    };
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct statistic statistic = statistic_over_draws(first, end, cells[i].metric, values);
        if (statistic.count == 0)
            table_cell(table, "-");
        else
            table_cell(table, "%.*f", cells[i].decimals, statistic.median / cells[i].divisor);
    }
}

enum ar_status latency_table_print(const struct run_record *all, size_t all_count, FILE *stream,
                                   enum table_form form, struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"policy", "", true, POLICY_WIDTH},
        {"alloc p50", "ns", false, 0},
        {"p90", "ns", false, 0},
        {"p99", "ns", false, 0},
        {"p99.9", "ns", false, 0},
        {"max", "ns", false, 0},
        {"free p50", "ns", false, 0},
        {"p99", "ns", false, 0},
        {"throughput", "Mops/s", false, 0},
    };
    size_t count = 0;
    struct run_record *records = statistic_condense(all, all_count, &count);
    if (!records)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
    enum ar_status status =
        summing_table(records, count, columns, sizeof columns / sizeof columns[0], latency_cells,
                      stream, form, error);
    free(records);
    return status;
}

/* A policy of a group over its draws. */
static struct placed_row spread_of(const struct run_record *first, const struct run_record *end,
                                   double *values)
{
    struct placed_row row = {.first = first};
    for (const struct run_record *at = first; at < end; at++) {
        if (strcmp(at->policy_spec, first->policy_spec) != 0)
            continue;
        row.runs++;
        row.passed += at->passed;
    }
    if (!first->ranked || row.passed < row.runs)
        return row;
    row.by = statistic_over_draws(first, end, METRIC_peak_physical_bytes, values);
    return row;
}

/* The policies of a group by their medians; those without a place last. */
static void gather_spreads(struct placed_rows *rows, const struct run_record *begin,
                           const struct run_record *end)
{
    rows->count = 0;
    for (const struct run_record *first = begin; first < end; first++)
        if (!seen_before(begin, first))
            placed_rows_add(rows, spread_of(first, end, rows->values));
    placed_rows_place_paired(rows, end, METRIC_peak_physical_bytes);
}

/* Rows: median; low and high, its interval, where there are draws enough; least, most. */
static void spread_rows(const struct figure_table *self, const struct placed_row *spread,
                        const struct run_record *end, double *values)
{
    struct table *table = self->table;
    static const char *const names[] = {"median", "low", "high", "least", "most"};
    bool interval =
        statistic_over_draws(spread->first, end, METRIC_peak_physical_bytes, values).has_interval;
    for (int row = 0; row < 5; row++) {
        if ((row == 1 || row == 2) && !interval)
            continue;
        if (row == 0 && self->form != TABLE_LATEX)
            placed_row_cell(table, spread);
        else if (self->form != TABLE_LATEX)
            table_cell(table, "%s", "");
        table_cell(table, "%s", row ? "" : spread->first->policy_spec);
        if (row)
            table_cell(table, "%s", "");
        else
            table_cell(table, "%zu of %zu", spread->passed, spread->runs);
        table_cell(table, "%s", names[row]);
        for (size_t i = 0; i < FIGURES; i++) {
            if (!is_shown(self, i))
                continue;
            struct statistic of =
                statistic_over_draws(spread->first, end, figures[i].metric, values);
            const double cells[] = {of.median, of.low, of.high, of.least, of.most};
            double divisor = figures[i].divisor > 0 ? figures[i].divisor : (double)AR_MIB;
            if (of.count && (of.has_interval || (row != 1 && row != 2)))
                table_cell(table, "%.*f", figures[i].decimals, cells[row] / divisor);
            else
                table_cell(table, "-");
        }
    }
}

enum ar_status spread_table_print(const struct run_record *all, size_t all_count, FILE *stream,
                                  enum table_form form, struct ar_error *error)
{
    size_t count = 0;
    struct run_record *records = statistic_condense(all, all_count, &count);
    if (!records)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
    struct placed_rows rows;
    struct figure_table self;
    open_figure_table(&self, form, true, "MiB");
    enum ar_status status = placed_rows_open(&rows, count, error);
    if (!status && !self.table)
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
    for (size_t begin = 0; !status && begin < count;) {
        size_t end = run_record_group_end(records, count, begin);
        gather_spreads(&rows, records + begin, records + end);
        heading(self.table, records + begin, end - begin);
        for (size_t i = 0; i < rows.count; i++)
            spread_rows(&self, &rows.items[i], records + end, rows.values);
        begin = end;
    }
    if (!status)
        status = table_print(self.table, stream, form, error);
    table_close(self.table);
    free(records);
    placed_rows_close(&rows);
    return status;
}
