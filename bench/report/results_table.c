/* The tables of `run`: memory, host latency, replicates and their pairs, repetitions; and the notes
 * below them.
 *
 * In the first table ranks go by peak physical bytes, and equal bytes share a rank. A run that did
 * not finish shows where and why in place of figures. Policies that check the harness and bounds
 * come last, without a rank. With several replicates a row holds medians, and the rank is the place
 * in the table of replicates: a rank by one seed would be chance.
 *
 * In the tables of replicates and repetitions policies are in the order of their medians, and have
 * a place only as far as intervals tell them apart: `2` means that exactly one policy is told apart
 * as less; `2=` that some other one is not told apart from it. */
#include "bench/report/result_writers.h"

#include <math.h>

#include "allocators/base/size.h"
#include "allocators/spec.h"
#include "bench/report/sentence.h"
#include "sim/experiment/recorded_card.h"
#include "sim/sim_device/profile.h"

#define POLICY_WIDTH 22u
#define PLACED       "#: place by physical bytes, =: not told apart from some other"
#define EXTERNAL     "ext.frag: mean of 1 - largest servable / free bytes"

/* The figures of a run in the order of their columns. Text and LaTeX leave out those that others
 * show nearly as well: granted is between live and reserved, and driver time is part of the
 * slowdown. LaTeX, whose tables fit 8.5 cm, leaves out the driver calls too. */
static const struct {
    const char *title, *unit; /* NULL: the unit of the byte columns */
    enum metric metric;
    int decimals;
    double divisor; /* 0: bytes */
    enum table_room room, spread_room;
} figures[] = {
    {"live", NULL, METRIC_peak_live_bytes, 1, 0, TABLE_ROOM_ALL, TABLE_ROOM_WIDE},
    {"granted", NULL, METRIC_peak_granted_bytes, 1, 0, TABLE_ROOM_WIDE, TABLE_ROOM_WIDE},
    {"reserved", NULL, METRIC_peak_reserved_bytes, 1, 0, TABLE_ROOM_ALL, TABLE_ROOM_WIDE},
    {"physical", NULL, METRIC_peak_physical_bytes, 1, 0, TABLE_ROOM_ALL, TABLE_ROOM_ALL},
    {"pinned", NULL, METRIC_peak_pinned_reserved_bytes, 1, 0, TABLE_ROOM_ALL, TABLE_ROOM_WIDE},
    {"overhead", "ratio", METRIC_overhead, 3, 1, TABLE_ROOM_ALL, TABLE_ROOM_ALL},
    {"ext.frag", "mean", METRIC_external_fragmentation_mean, 3, 1, TABLE_ROOM_ALL, TABLE_ROOM_ALL},
    {"driver", "calls", METRIC_driver_calls, 0, 1, TABLE_ROOM_TEXT, TABLE_ROOM_TEXT},
    {"driver", "ms", METRIC_driver_time_ns, 1, 1e6, TABLE_ROOM_WIDE, TABLE_ROOM_WIDE},
    {"pinned", "calls", METRIC_pinned_driver_calls, 0, 1, TABLE_ROOM_WIDE, TABLE_ROOM_WIDE},
    {"pinned", "ms", METRIC_pinned_driver_time_ns, 1, 1e6, TABLE_ROOM_WIDE, TABLE_ROOM_WIDE},
    {"slowdown", "ratio", METRIC_slowdown, 3, 1, TABLE_ROOM_ALL, TABLE_ROOM_ALL},
};
#define FIGURES AR_COUNT(figures)

/* The figures of the latency table. */
static const struct {
    struct table_column column, narrow;
    enum metric metric;
    int decimals;
    double divisor;
} timed[] = {
    {{"alloc", "p50 ns", false, 0}, {"alloc", "p50", false, 0}, METRIC_alloc_ns_p50, 0, 1},
    {{"alloc", "p90 ns", false, 0}, {"alloc", "p90", false, 0}, METRIC_alloc_ns_p90, 0, 1},
    {{"alloc", "p99 ns", false, 0}, {"alloc", "p99", false, 0}, METRIC_alloc_ns_p99, 0, 1},
    {{"alloc", "p99.9 ns", false, 0}, {"alloc", "p99.9", false, 0}, METRIC_alloc_ns_p999, 0, 1},
    {{"alloc", "max ns", false, 0}, {"alloc", "max", false, 0}, METRIC_alloc_ns_max, 0, 1},
    {{"free", "p50 ns", false, 0}, {"free", "p50", false, 0}, METRIC_free_ns_p50, 0, 1},
    {{"free", "p99 ns", false, 0}, {"free", "p99", false, 0}, METRIC_free_ns_p99, 0, 1},
    {{"throughput", "Mops/s", false, 0}, {"rate", "Mops/s", false, 0}, METRIC_ops_per_s, 2, 1e6},
};
#define TIMED AR_COUNT(timed)

/* Whether the column has that heading: its title, the percentile below it, or both. */
static bool is_timed_heading(const struct table_column *column, const char *heading)
{
    const size_t title = strlen(column->title), percentile = strcspn(column->unit, " ");
    if (strncmp(heading, column->title, title) == 0 && (!heading[title] || heading[title] == ' '))
        heading += title + (heading[title] == ' ');
    return !*heading || (strlen(heading) == percentile && column->unit[percentile] &&
                         strncmp(heading, column->unit, percentile) == 0);
}

enum metric results_column_metric(const char *heading, size_t nth)
{
    for (size_t i = 0; i < FIGURES; i++)
        if (strcmp(figures[i].title, heading) == 0 && nth-- == 0)
            return figures[i].metric;
    for (size_t i = 0; i < TIMED; i++)
        if (is_timed_heading(&timed[i].column, heading) && nth-- == 0)
            return timed[i].metric;
    return METRIC_COUNT;
}

/* A table of these figures. */
struct figure_table {
    struct table *table; /* NULL: no host memory */
    struct table_column columns[4 + FIGURES];
    enum table_form form;
    bool spread;
    const struct results *results;
};

static bool is_shown(const struct figure_table *self, size_t figure)
{
    enum metric metric = figures[figure].metric;
    if (metric >= METRIC_FIRST_OPTIONAL && !results_have(self->results, metric))
        return false;
    return table_has_room(self->form,
                          self->spread ? figures[figure].spread_room : figures[figure].room);
}

static void open_figure_table(struct figure_table *self, const struct results *results,
                              enum table_form form, bool spread, const char *unit)
{
    size_t count = 0;
    *self = (struct figure_table){.form = form, .spread = spread, .results = results};
    self->columns[count++] = (struct table_column){"#", "", false, 0};
    self->columns[count++] = (struct table_column){"policy", "", true, POLICY_WIDTH};
    if (spread) {
        self->columns[count++] = (struct table_column){"passed", "seeds", false, 0};
        self->columns[count++] = (struct table_column){"", "", true, 0};
    }
    for (size_t i = 0; i < FIGURES; i++)
        if (is_shown(self, i))
            self->columns[count++] = (struct table_column){
                figures[i].title, figures[i].unit ? figures[i].unit : unit, false, 0};
    self->table = table_create(self->columns, count);
    table_label(self->table, spread ? "replicates" : "memory",
                spread ? "Median over the replicates, its interval at 95 % or more (low, high), "
                         "range; " PLACED "; " EXTERNAL "."
                : results->replicated
                    ? "Medians over the replicates, or in how many a policy finished; " PLACED
                      "; " EXTERNAL "; DNF: did not finish."
                    : "Peaks of bytes; #: rank by physical bytes; " EXTERNAL
                      "; DNF: did not finish.");
}

/* A unit for all byte columns, such that the smallest run still shows digits. */
struct byte_unit {
    const char *name;
    double bytes;
};

static struct byte_unit choose_unit(const struct results *results)
{
    double least = 0;
    for (size_t i = 0; i < results->run_count; i++) {
        double peak = metric_number(&results->runs[i].metrics, METRIC_peak_physical_bytes, 0);
        if (peak > 0 && (least == 0 || peak < least))
            least = peak;
    }
    if (least == 0 || least >= (double)AR_MIB)
        return (struct byte_unit){"MiB", (double)AR_MIB};
    if (least >= (double)(64 * AR_KIB))
        return (struct byte_unit){"KiB", (double)AR_KIB};
    return (struct byte_unit){"B", 1};
}

#define TITLE_ROOM RESULTS_TITLE_ROOM

/* The name of a group with the number of its replicates. */
static const char *group_title(const struct result_group *group, char text[TITLE_ROOM])
{
    size_t replicates = 1;
    for (size_t i = 0; i < group->policy_count; i++)
        AR_RAISE(replicates, group->policies[i].replicate_count);
    if (replicates > 1)
        snprintf(text, TITLE_ROOM, "%s, %zu replicates", group->name, replicates);
    else
        snprintf(text, TITLE_ROOM, "%s", group->name);
    return text;
}

/* The device with what its spec says beside its profile and its capacity. */
const char *results_conditions(const struct run_record *record, char text[TITLE_ROOM])
{
    struct ar_error ignored;
    struct ar_spec spec;
    snprintf(text, TITLE_ROOM, "frees %s, host %s, %s %s", replay_frees_name(record->frees),
             replay_host_name(record->host), record->device.kind, record->device.profile);
    if (ar_spec_parse(record->device_spec, &spec, &ignored))
        return text;
    const struct ar_spec_link *device = &spec.links[spec.link_count - 1];
    for (size_t i = 0; i < device->pair_count; i++) {
        const struct ar_spec_pair *pair = &device->pairs[i];
        if (strcmp(pair->key, "profile") && strcmp(pair->key, "capacity"))
            text_add(text, TITLE_ROOM, " %s%s%s", pair->key, pair->alone ? "" : "=", pair->value);
    }
    ar_spec_close(&spec);
    return text;
}

/* In a paper a table stands alone, so its caption says what its times are; `host`: measured. */
static const char *times_text(const struct run_record *first, enum table_form form, bool host)
{
    if (!table_is_latex(form))
        return "";
    if (host)
        return "; times of the host";
    return strcmp(first->device.kind, "sim") == 0 ? "; times are modelled" : "";
}

/* Under a generator that reacts to the policy the number of events differs between policies. */
static void heading(struct table *table, const struct result_group *group, enum table_form form,
                    bool host)
{
    const struct run_record *first = group->runs;
    char capacity[32] = "no limit", events[48] = "", title[TITLE_ROOM], conditions[TITLE_ROOM];
    double least = 0, most = 0;
    bool seen = false;
    for (size_t i = 0; i < group->run_count; i++) {
        double number = metric_number(&first[i].metrics, METRIC_events, 0);
        if (first[i].end != RUN_PLAYED)
            continue;
        least = !seen || number < least ? number : least;
        AR_RAISE(most, number);
        seen = true;
    }
    if (seen && least == most)
        snprintf(events, sizeof events, "%.0f event%s, ", most, most == 1 ? "" : "s");
    else if (seen)
        snprintf(events, sizeof events, "%.0f to %.0f events, ", least, most);
    if (first->device.capacity_bytes != UINT64_MAX)
        ar_size_print(first->device.capacity_bytes, capacity, sizeof capacity);
    table_heading(table, "%s: %s%s, %s%s%s%s", group_title(group, title), events,
                  results_conditions(first, conditions), capacity,
                  first->device.costs_of[0] ? ", costs of " : "", first->device.costs_of,
                  times_text(first, form, host));
}

/* Very large figures are written short, so that one policy does not widen its whole column. */
#define LONG_FIGURE 1e7

static void bytes_cell(struct table *table, const struct run_record *record, enum metric metric,
                       struct byte_unit unit)
{
    double bytes = metric_number(&record->metrics, metric, 0);
    if (record->metrics.at[metric].kind == METRIC_NULL)
        table_cell(table, "-");
    else if (bytes / unit.bytes >= LONG_FIGURE)
        table_cell(table, "%s", AR_SIZE((uint64_t)bytes));
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

/* Where and why a run ended, in place of its figures. */
static void failed_rest(struct table *table, const struct run_record *record, const char *before)
{
    if (record->end != RUN_PLAYED) {
        table_rest(table, "%sDNF: %s", before, record->detail);
        return;
    }
    if (record->cause == REPLAY_CAUSE_DRIVER && record->detail[0]) {
        table_rest(table, "%sDNF @ %" PRIu64 ": %s", before, record->first_failed_event,
                   record->detail);
        return;
    }
    table_rest(table, "%sDNF @ %" PRIu64 ": %s, a request of %s%s%s", before,
               record->first_failed_event, replay_cause_name(record->cause),
               AR_SIZE(record->first_failed_bytes), record->detail[0] ? "; " : "", record->detail);
}

/* ---- places --------------------------------------------------------------------------------- */

/* The policies of a group as rows of a table, in the order of the medians of one figure. */
struct placed_row {
    const struct result_policy *policy;
    struct statistic by; /* count 0: the row comes last */
};

struct placed_rows {
    struct placed_row *items;
    size_t count;
    struct statistic_place *places; /* of the items */
    struct statistic *by;           /* of the items, next to each other */
    double *drawn;                  /* a value for each replicate of each item */
};

/* Room for any group of the results. */
static bool placed_rows_open(struct placed_rows *self, const struct results *results)
{
    const size_t room = results->policies_most + 1;
    *self = (struct placed_rows){
        .items = calloc(room, sizeof *self->items),
        .places = calloc(room, sizeof *self->places),
        .by = calloc(room, sizeof *self->by),
        .drawn = calloc(results->run_count + 1, sizeof *self->drawn),
    };
    return self->items && self->places && self->by && self->drawn;
}

static void placed_rows_close(struct placed_rows *self)
{
    free(self->items);
    free(self->places);
    free(self->by);
    free(self->drawn);
}

/* After the rows whose median is not larger. */
static void place_row(struct placed_rows *self, struct placed_row row)
{
    struct placed_row *items = self->items;
    size_t at = self->count++;
    for (; at > 0 && row.by.count &&
           (!items[at - 1].by.count || row.by.median < items[at - 1].by.median);
         at--)
        items[at] = items[at - 1];
    items[at] = row;
}

static void place_cell(struct table *table, const struct statistic_place *place)
{
    table_known(table, place->place, "%zu%s", place->place, place->shared ? "=" : "");
}

#define PLACED_BY METRIC_peak_physical_bytes

/* Places by pairs of replicates. The replicates of each row are in the order of the first one's. */
static void place_by_pairs(struct placed_rows *self, double *values)
{
    const struct result_policy *model = self->count ? self->items[0].policy : NULL;
    const size_t count = model ? model->replicate_count : 0;
    for (size_t i = 0; i < self->count; i++) {
        double *drawn = &self->drawn[i * count];
        for (size_t j = 0; j < count; j++) {
            const struct run_record *run =
                result_policy_seed(self->items[i].policy, model->medians[j]->seed);
            drawn[j] = run ? metric_number(&run->metrics, PLACED_BY, NAN) : NAN;
        }
        if (self->items[i].by.count < count)
            drawn[0] = NAN;
    }
    statistic_places_paired(self->drawn, self->count, count, values, self->places);
}

static void gather_spreads(struct placed_rows *rows, const struct result_group *group,
                           double *values)
{
    rows->count = 0;
    for (size_t i = 0; i < group->policy_count; i++) {
        struct placed_row row = {.policy = &group->policies[i]};
        if (row.policy->median->ranked && row.policy->median->passed)
            row.by =
                runs_statistic(row.policy->medians, row.policy->replicate_count, PLACED_BY, values);
        place_row(rows, row);
    }
    place_by_pairs(rows, values);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void run_row(const struct figure_table *self, const struct result_policy *policy,
                    const struct statistic_place *place, struct byte_unit unit)
{
    const struct run_record *record = policy->median;
    struct table *table = self->table;
    place_cell(table, place);
    table_cell(table, "%s", record->policy_spec);
    if (!record->passed) {
        char before[64] = "";
        if (policy->replicate_count > 1)
            snprintf(before, sizeof before, "%zu of %zu passed, first ", policy->passed_count,
                     policy->replicate_count);
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

static void close_figure_table(struct figure_table *self)
{
    table_close(self->table);
}

/* Best first. A stable insertion sort: a group has as many rows as there are policies. */
static void sort_policies(const struct result_group *group, const struct result_policy **rows)
{
    for (size_t i = 0; i < group->policy_count; i++) {
        const struct result_policy *policy = &group->policies[i];
        size_t at = i;
        for (; at > 0 && run_record_rank_order(policy->median, rows[at - 1]->median) < 0; at--)
            rows[at] = rows[at - 1];
        rows[at] = policy;
    }
}

/* The place of a policy among replicates, as the table of these states it. */
static struct statistic_place place_of(const struct placed_rows *placed,
                                       const struct result_policy *policy)
{
    for (size_t i = 0; i < placed->count; i++)
        if (placed->items[i].policy == policy)
            return placed->places[i];
    return (struct statistic_place){0};
}

static void add_group(const struct figure_table *self, const struct result_group *group,
                      const struct result_policy **rows, struct placed_rows *placed,
                      struct byte_unit unit)
{
    size_t rank = 0;
    heading(self->table, group, self->form, false);
    sort_policies(group, rows);
    gather_spreads(placed, group, self->results->values);
    for (size_t i = 0; i < group->policy_count; i++) {
        const struct run_record *record = rows[i]->median;
        bool ranked = record->ranked && record->passed;
        struct statistic_place place = {0};
        if (ranked && (i == 0 || run_record_rank_order(rows[i - 1]->median, record) < 0))
            rank = i + 1;
        if (rows[i]->replicate_count > 1)
            place = place_of(placed, rows[i]);
        else if (ranked)
            place.place = rank;
        run_row(self, rows[i], &place, unit);
    }
}

enum ar_status results_table_print(const struct results *results, FILE *stream,
                                   enum table_form form, struct ar_error *error)
{
    struct byte_unit unit = choose_unit(results);
    AR_CLOSED(close_figure_table) struct figure_table self = {.table = NULL};
    AR_CLOSED(placed_rows_close) struct placed_rows placed = {0};
    AR_FREED const struct result_policy **rows = calloc(results->policies_most + 1, sizeof(*rows));
    const bool ready = placed_rows_open(&placed, results) && rows;
    open_figure_table(&self, results, form, false, unit.name);
    for (size_t i = 0; i < results->group_count && ready && self.table; i++)
        add_group(&self, &results->groups[i], rows, &placed, unit);
    return ready ? table_print(self.table, stream, form, error) : ar_no_memory(error, "the table");
}

/* ---- latency -------------------------------------------------------------------------------- */

/* A row of the medians, the low ends or the high ends of intervals (without one: of the range),
 * over the replicates or, of one replicate, the repetitions. */
static void add_timed(struct table *table, const struct result_policy *policy, const char *name,
                      int end, double *values)
{
    bool replicated = policy->replicate_count > 1;
    table_cell(table, "%s", name);
    for (size_t k = 0; k < TIMED; k++) {
        struct statistic of = runs_statistic(
            replicated ? policy->medians : policy->runs,
            replicated ? policy->replicate_count : policy->run_count, timed[k].metric, values);
        const double ends[] = {of.median, of.has_interval ? of.low : of.least,
                               of.has_interval ? of.high : of.most};
        table_number(table, of.count, timed[k].decimals, ends[end] / timed[k].divisor);
    }
}

enum ar_status latency_table_print(const struct results *results, FILE *stream,
                                   enum table_form form, struct ar_error *error)
{
    struct table_column columns[1 + TIMED] = {{"policy", "", true, POLICY_WIDTH}};
    bool narrow = table_is_latex(form); /* a column of a paper has no room for units in titles */
    for (size_t i = 0; i < TIMED; i++)
        columns[1 + i] = narrow ? timed[i].narrow : timed[i].column;
    struct table *table = table_create(columns, 1 + TIMED);
    table_label(table, "latency",
                results->repeated || results->replicated
                    ? "Host time of each call in ns, clock cost subtracted; rate: throughput. "
                      "Medians, and the ends of their intervals (of fewer than 6 values: least and "
                      "most)."
                    : "Host time of each call in ns, clock cost subtracted; rate: throughput.");
    for (size_t i = 0; i < results->group_count && table; i++) {
        const struct result_group *group = &results->groups[i];
        heading(table, group, form, true);
        for (size_t j = 0; j < group->policy_count; j++) {
            const struct result_policy *policy = &group->policies[j];
            add_timed(table, policy, policy->median->policy_spec, 0, results->values);
            if (policy->run_count > 1) {
                add_timed(table, policy, "  low", 1, results->values);
                add_timed(table, policy, "  high", 2, results->values);
            }
        }
    }
    return table_end(table, stream, form, error);
}

/* ---- replicates ----------------------------------------------------------------------------- */

/* A line for each of these, and fewer if lines are equal in all figures: `all`, or the ends of the
 * interval with those of the range. */
static const char *const spread_names[] = {"median", "low", "high", "least", "most"};

static double spread_value(const struct statistic *of, int row)
{
    const double values[] = {of->median, of->low, of->high, of->least, of->most};
    return values[row];
}

/* Whether two lines show the same in the columns that the table has. */
static bool spread_is_same(const struct figure_table *self, const struct statistic of[FIGURES],
                           int left, int right)
{
    char texts[2][32];
    for (size_t i = 0; i < FIGURES; i++) {
        double divisor = figures[i].divisor > 0 ? figures[i].divisor : (double)AR_MIB;
        if (!of[i].count || !is_shown(self, i))
            continue;
        snprintf(texts[0], sizeof texts[0], "%.*f", figures[i].decimals,
                 spread_value(&of[i], left) / divisor);
        snprintf(texts[1], sizeof texts[1], "%.*f", figures[i].decimals,
                 spread_value(&of[i], right) / divisor);
        if (strcmp(texts[0], texts[1]) != 0)
            return false;
    }
    return true;
}

/* The median; low and high, its interval, if there are replicates enough; least; most. */
static void spread_rows(const struct figure_table *self, const struct result_policy *policy,
                        const struct statistic_place *place, double *values)
{
    const char *names[5];
    memcpy(names, spread_names, sizeof names);
    struct table *table = self->table;
    struct statistic of[FIGURES], ranked;
    for (size_t i = 0; i < FIGURES; i++)
        of[i] = runs_statistic(policy->medians, policy->replicate_count, figures[i].metric, values);
    ranked = runs_statistic(policy->medians, policy->replicate_count, PLACED_BY, values);
    if (spread_is_same(self, of, 0, 3) && spread_is_same(self, of, 0, 4)) {
        names[0] = "all";
        names[1] = names[2] = names[3] = names[4] = NULL;
    } else if (ranked.has_interval && spread_is_same(self, of, 1, 3) &&
               spread_is_same(self, of, 2, 4)) {
        names[3] = "low=least";
        names[4] = "high=most";
        names[1] = names[2] = NULL;
    }
    for (int row = 0; row < 5; row++) {
        const bool limit = row == 1 || row == 2;
        if (!names[row] || (limit && !ranked.has_interval))
            continue;
        if (row == 0)
            place_cell(table, place);
        else
            table_cell(table, "%s", "");
        table_cell(table, "%s", row ? "" : policy->median->policy_spec);
        if (row)
            table_cell(table, "%s", "");
        else
            table_cell(table, "%zu of %zu", policy->passed_count, policy->replicate_count);
        table_cell(table, "%s", names[row]);
        for (size_t i = 0; i < FIGURES; i++) {
            double divisor = figures[i].divisor > 0 ? figures[i].divisor : (double)AR_MIB;
            if (is_shown(self, i))
                table_number(table, of[i].count && (of[i].has_interval || !limit),
                             figures[i].decimals, spread_value(&of[i], row) / divisor);
        }
    }
}

enum ar_status spread_table_print(const struct results *results, FILE *stream, enum table_form form,
                                  struct ar_error *error)
{
    AR_CLOSED(placed_rows_close) struct placed_rows rows = {0};
    AR_CLOSED(close_figure_table) struct figure_table self = {.table = NULL};
    bool ready = placed_rows_open(&rows, results);
    open_figure_table(&self, results, form, true, "MiB");
    for (size_t i = 0; i < results->group_count && ready && self.table; i++) {
        gather_spreads(&rows, &results->groups[i], results->values);
        heading(self.table, &results->groups[i], form, false);
        for (size_t j = 0; j < rows.count; j++)
            spread_rows(&self, rows.items[j].policy, &rows.places[j], results->values);
    }
    return ready ? table_print(self.table, stream, form, error) : ar_no_memory(error, "the table");
}

/* ---- pairs ---------------------------------------------------------------------------------- */

/* The figures compared: that of the places, and times. */
static const struct {
    const char *name;
    enum metric metric;
} pairwise[] = {
    {"physical", PLACED_BY}, {"slowdown", METRIC_slowdown}, {"steady", METRIC_steady_slowdown}};

#define DECIMALS_MOST 5 /* that fit 80 columns */

/* Decimals such that a ratio that is not 1 is not printed as 1: at least two digits of the
 * difference. */
static int ratio_decimals(double ratio)
{
    const double off = fabs(ratio - 1);
    return off > 0 && off < 0.005 ? (int)fmin(ceil(-log10(off)) + 1, DECIMALS_MOST) : 3;
}

static bool is_compared(const struct result_group *group, size_t at,
                        const struct result_pairs *pairs)
{
    return !at || (pairs->ratio.count && (pairwise[at].metric != METRIC_steady_slowdown ||
                                          group->slowdown == METRIC_steady_slowdown));
}

/* The same for all ratios of a group, so that they can be compared. */
static int group_decimals(const struct result_group *group, double *values)
{
    int decimals = 3;
    for (size_t i = 1; i < group->policy_count; i++)
        for (size_t j = 0; j < AR_COUNT(pairwise); j++) {
            const struct result_pairs pairs =
                result_pairs_of(&group->policies[i], group->policies, pairwise[j].metric, values);
            if (!is_compared(group, j, &pairs) || !pairs.ratio.count)
                continue;
            const double shown[] = {pairs.ratio.median, pairs.ratio.low, pairs.ratio.high};
            for (size_t k = 0; k < (pairs.ratio.has_interval ? 3 : 1); k++)
                AR_RAISE(decimals, ratio_decimals(shown[k]));
        }
    return decimals;
}

static void pair_rows(struct table *table, const struct result_group *group,
                      const struct result_policy *policy, int decimals, double *values)
{
    for (size_t i = 0; i < AR_COUNT(pairwise); i++) {
        struct result_pairs pairs =
            result_pairs_of(policy, group->policies, pairwise[i].metric, values);
        if (!is_compared(group, i, &pairs))
            continue;
        table_cell(table, "%s", i ? "" : policy->median->policy_spec);
        table_cell(table, "%s", pairwise[i].name);
        table_number(table, pairs.ratio.count, decimals, pairs.ratio.median);
        table_number(table, pairs.ratio.has_interval, decimals, pairs.ratio.low);
        table_number(table, pairs.ratio.has_interval, decimals, pairs.ratio.high);
        table_cell(table, "%zu", pairs.less);
        table_cell(table, "%zu", pairs.equal);
        table_cell(table, "%zu", pairs.more);
    }
}

enum ar_status pairs_table_print(const struct results *results, FILE *stream, enum table_form form,
                                 struct ar_error *error)
{
    struct table *table = table_of(
        "policy<22; <; median|ratio; low|ratio; high|ratio; less|seeds; equal|seeds; more|seeds");
    table_label(table, "pairs",
                "Ratios of each replicate to that of the first policy with the same seed: their "
                "median, from 6 replicates on its interval at 95 % or more (low, high), and how "
                "many are below, at and above 1; steady: the slowdown of the second half of the "
                "steps.");
    for (size_t i = 0; i < results->group_count && table; i++) {
        const struct result_group *group = &results->groups[i];
        const struct run_record *first = group->runs;
        char title[TITLE_ROOM];
        if (!result_group_has_pairs(group))
            continue;
        table_heading(table, "%s: compared with %s, frees %s, host %s, %s%s",
                      group_title(group, title), first->policy_spec,
                      replay_frees_name(first->frees), replay_host_name(first->host),
                      first->device_spec, times_text(first, form, false));
        const int decimals = group_decimals(group, results->values);
        for (size_t j = 1; j < group->policy_count; j++)
            pair_rows(table, group, &group->policies[j], decimals, results->values);
    }
    return table_end(table, stream, form, error);
}

/* ---- repetitions ---------------------------------------------------------------------------- */

/* Medians after the slowdown. */
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

static void repeated_row(struct table *table, const struct placed_row *row,
                         const struct statistic_place *place, enum table_form form, double *values)
{
    const struct result_replicate *replicate = row->policy->replicates;
    const struct statistic *slowdown = &row->by;
    const bool known = slowdown->count > 0;
    place_cell(table, place);
    table_cell(table, "%s", replicate->median->policy_spec);
    if (replicate->passed_count < replicate->run_count) {
        table_rest(table, "%zu of %zu runs finished", replicate->passed_count,
                   replicate->run_count);
        return;
    }
    table_cell(table, "%zu", replicate->run_count);
    table_number(table, known, 4, slowdown->median);
    table_number(table, known, 4, slowdown->has_interval ? slowdown->low : slowdown->least);
    table_number(table, known, 4, slowdown->has_interval ? slowdown->high : slowdown->most);
    for (size_t i = 0; i < AR_COUNT(medians); i++) {
        if (!table_has_room(form, medians[i].room))
            continue;
        struct statistic of =
            runs_statistic(replicate->runs, replicate->run_count, medians[i].metric, values);
        table_number(table, of.count > 0, medians[i].decimals, of.median / medians[i].divisor);
    }
}

/* Rows by the slowdown of the first replicate. */
static void add_repeated_group(struct table *table, struct placed_rows *rows, enum table_form form,
                               const struct result_group *group, double *values)
{
    const struct run_record *first = group->runs;
    char conditions[TITLE_ROOM];
    rows->count = 0;
    for (size_t i = 0; i < group->policy_count; i++) {
        struct placed_row row = {.policy = &group->policies[i]};
        const struct result_replicate *replicate = row.policy->replicates;
        if (replicate->passed_count == replicate->run_count)
            row.by = runs_statistic(replicate->runs, replicate->run_count, group->slowdown, values);
        place_row(rows, row);
    }
    for (size_t i = 0; i < rows->count; i++)
        rows->by[i] = rows->items[i].by;
    statistic_places(rows->by, rows->count, rows->places);
    table_heading(table, "%s: slowdown of %s, %s%s", group->name,
                  group->slowdown == METRIC_steady_slowdown ? "steady steps" : "the whole run",
                  results_conditions(first, conditions), times_text(first, form, false));
    for (size_t i = 0; i < rows->count; i++)
        repeated_row(table, &rows->items[i], &rows->places[i], form, values);
}

static void write_text(FILE *stream, enum table_form form, const char *text)
{
    if (table_is_latex(form))
        latex_text(stream, text);
    else
        fputs(text, stream);
}

/* What the two columns of limits hold, and at which level: that of the run with the fewest
 * repetitions. */
static void explain_limits(FILE *stream, enum table_form form, const struct results *results)
{
    char text[320];
    struct statistic fewest = {0};
    for (size_t i = 0; i < results->group_count; i++)
        for (size_t j = 0; j < results->groups[i].policy_count; j++) {
            const struct result_policy *policy = &results->groups[i].policies[j];
            for (size_t k = 0; k < policy->replicate_count; k++) {
                struct statistic of =
                    runs_statistic(policy->replicates[k].runs, policy->replicates[k].run_count,
                                   METRIC_device_time_ns, results->values);
                if (of.count && (!fewest.count || of.count < fewest.count))
                    fewest = of;
            }
        }
    if (fewest.level > 0)
        snprintf(text, sizeof text,
                 "\nMedians over the repetitions. Low and high: the median lies between them with\n"
                 "%.1f %% confidence. A place is one more than the number of policies whose\n"
                 "intervals lie wholly below; `=`: the interval of another one overlaps.\n",
                 100 * fewest.level);
    else
        snprintf(
            text, sizeof text,
            "\nMedians over the repetitions. Low and high are the least and the most: fewer\n"
            "than six runs give no interval of the median at 95 %%, so no places are stated.\n");
    write_text(stream, form, text);
}

enum ar_status repetitions_table_print(const struct results *results, FILE *stream,
                                       enum table_form form, struct ar_error *error)
{
    struct table_column columns[6 + AR_COUNT(medians)] = {
        {"#", "", false, 0},    {"policy", "", true, POLICY_WIDTH},
        {"runs", "", false, 0}, {"slowdown", "", false, 0},
        {"low", "", false, 0},  {"high", "", false, 0},
    };
    size_t column_count = 6, steady = 0;
    for (size_t i = 0; i < results->group_count; i++)
        steady += results->groups[i].slowdown == METRIC_steady_slowdown;
    if (steady == results->group_count)
        columns[3] = (struct table_column){"steady", "slowdown", false, 0};
    for (size_t i = 0; i < AR_COUNT(medians); i++)
        if (table_has_room(form, medians[i].room))
            columns[column_count++] =
                (struct table_column){medians[i].title, medians[i].unit, false, 0};
    AR_CLOSED(placed_rows_close) struct placed_rows rows = {0};
    AR_CLOSED(table_close_at) struct table *table = table_create(columns, column_count);
    table_label(table, "repetitions", NULL);
    bool ready = placed_rows_open(&rows, results);
    for (size_t i = 0; i < results->group_count && ready && table; i++)
        add_repeated_group(table, &rows, form, &results->groups[i], results->values);
    AR_TRY(ready ? table_print(table, stream, form, error) : ar_no_memory(error, "the table"));
    explain_limits(stream, form, results);
    if (steady)
        write_text(
            stream, form,
            "Steady: the time of the second half of the steps, divided by the same with an\n"
            "allocator that costs nothing. The first step, in which libraries load, is not in\n"
            "it: in the JSON it is `first_step_ns`, and part of `slowdown` of the whole run.\n");
    return AR_OK;
}

/* ---- notes ---------------------------------------------------------------------------------- */

/* Whether a run with figures finished and has no slowdown. */
static bool lacks_slowdown(const struct result_group *group)
{
    for (size_t i = 0; i < group->run_count; i++) {
        const struct metric_values *metrics = &group->runs[i].metrics;
        if (group->runs[i].passed && metrics->at[METRIC_slowdown].kind == METRIC_NULL &&
            metrics->at[METRIC_peak_live_bytes].kind != METRIC_NULL)
            return true;
    }
    return false;
}

static bool same_figures(const struct run_record *a, const struct run_record *b)
{
    static const enum metric compared[] = {
        METRIC_peak_live_bytes,     METRIC_peak_granted_bytes, METRIC_peak_reserved_bytes,
        METRIC_peak_physical_bytes, METRIC_driver_calls,       METRIC_external_fragmentation_mean};
    bool same = a->passed == b->passed;
    for (size_t i = 0; same && i < AR_COUNT(compared); i++) {
        double left = metric_number(&a->metrics, compared[i], 0);
        double right = metric_number(&b->metrics, compared[i], 0);
        same = a->metrics.at[compared[i]].kind == b->metrics.at[compared[i]].kind &&
               !(left < right) && !(left > right);
    }
    return same;
}

/* Whether there are several replicates, and each policy has the same figures in all of them. */
static bool replicates_are_alike(const struct result_group *group)
{
    bool several = false;
    for (size_t i = 0; i < group->policy_count; i++) {
        const struct result_policy *policy = &group->policies[i];
        for (size_t j = 1; j < policy->run_count; j++)
            if (!same_figures(policy->runs[j], policy->runs[0]))
                return false;
        several = several || policy->replicate_count > 1;
    }
    return several;
}

/* "NAME", "NAME and NAME", "NAME and 2 more": the workloads with such a group. "" for none. */
static void name_workloads(const struct results *results,
                           bool (*is_such)(const struct result_group *group), char names[160])
{
    const char *first = NULL, *last = "";
    size_t more = 0;
    for (size_t i = 0; i < results->group_count; i++) {
        const char *name = results->groups[i].runs->workload.name;
        if (strcmp(name, last) == 0 || !is_such(&results->groups[i]))
            continue;
        more += first != NULL;
        first = first ? first : name;
        last = name;
    }
    names[0] = '\0';
    if (more == 1 && strlen(first) <= 76 && strlen(last) <= 76)
        snprintf(names, 160, "%.76s and %.76s", first, last);
    else if (first && more)
        snprintf(names, 160, "%.120s and %zu more", first, more);
    else if (first)
        snprintf(names, 160, "%.120s", first);
}

/* Says of a recording of another card than the default, on which it ran here, how to take that. */
static void note_card(FILE *stream, const struct run_record *record)
{
    const struct trace_info *info = &record->workload;
    const char *profile = sim_profile_of_card(info->card);
    const char *here = record->device.profile;
    if (strcmp(record->device.kind, "sim") != 0 || strstr(record->device_spec, "profile=") ||
        strstr(record->device_spec, "capacity="))
        return;
    if (profile && strcmp(profile, here) != 0)
        say(stream, "%s was recorded on %s and runs here on %s: -d sim:profile=%s is that card.",
            info->name, info->card, here, profile);
    else if (!profile && info->capacity_bytes)
        say(stream,
            "%s was recorded on %s with %s for a process and runs here on %s: -d sim:capacity=%s "
            "is that memory.",
            info->name, info->card[0] ? info->card : "a card", AR_SIZE(recorded_card_usable(info)),
            here, AR_SIZE_EXACT(recorded_card_usable(info)));
    else if (!profile && info->card[0])
        say(stream,
            "%s was recorded on %s, of which there is no profile, and runs here on %s: give -d "
            "sim:capacity=BYTES.",
            info->name, info->card, here);
}

static void note_cards(FILE *stream, const struct results *results)
{
    const char *last = "";
    for (size_t i = 0; i < results->group_count; i++) {
        const struct run_record *record = results->groups[i].runs;
        if (strcmp(record->workload.name, last) != 0)
            note_card(stream, record);
        last = record->workload.name;
    }
}

/* Whether a run ended with a request that failed, which `explain` can show. */
static bool lacks_memory(const struct result_group *group)
{
    for (size_t i = 0; i < group->run_count; i++)
        if (!group->runs[i].passed && group->runs[i].end == RUN_PLAYED &&
            group->runs[i].first_failed_bytes && strcmp(group->runs[i].device.kind, "sim") == 0)
            return true;
    return false;
}

/* Whether the throughput of a run is that of a short trace (METRIC_ops_per_s). */
static bool is_short(const struct result_group *group)
{
    for (size_t i = 0; i < group->run_count; i++) {
        const struct metric_values *metrics = &group->runs[i].metrics;
        if (metrics->at[METRIC_ops_per_s].kind != METRIC_NULL &&
            metric_number(metrics, METRIC_allocs, 0) + metric_number(metrics, METRIC_frees, 0) <
                5000)
            return true;
    }
    return false;
}

void throughput_note_print(FILE *stream, const struct results *results)
{
    char names[160];
    name_workloads(results, is_short, names);
    if (!names[0])
        return;
    fputc('\n', stream);
    say(stream,
        "Throughput of %s: fewer than 5000 operations, of which the caches hold more than of a "
        "long run. Compare it only with that of other policies on the same trace.",
        names);
}

void results_notes_print(FILE *stream, const struct results *results, bool verified)
{
    char names[160];
    note_cards(stream, results);
    name_workloads(results, lacks_memory, names);
    if (names[0])
        say(stream,
            "Not finished (DNF): %s. `allocrig explain` with the trace, -p and -d of a "
            "run says why, and what helps.",
            names);
    name_workloads(results, lacks_slowdown, names);
    if (names[0])
        say(stream,
            "No slowdown (-) of %s: without kernels there is no time to compare (--host recorded "
            "takes the times between events, if a recording has them)%s.",
            names, verified ? "; runs with --verify are not compared with a baseline" : "");
    name_workloads(results, replicates_are_alike, names);
    if (names[0])
        say(stream, "All replicates of %s are alike: the seeds changed no decision.", names);
}
