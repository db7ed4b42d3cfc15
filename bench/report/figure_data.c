#include "bench/report/figure_data.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/json_writer.h"
#include "bench/report/results_csv.h"

void figure_series_header(FILE *stream, size_t draws)
{
    fprintf(stream, "policy,event,time_s,live_bytes,reserved_bytes,physical_bytes%s\n",
            draws > 1 ? ",draws" : "");
}

struct series_rows {
    FILE *stream;
    const char *policy_spec;
    size_t draws;
};

static void series_row(void *argument, const struct replay_sample *sample)
{
    const struct series_rows *rows = argument;
    char time_s[REAL_TEXT_BYTES];
    csv_text(rows->stream, rows->policy_spec);
    fprintf(rows->stream, ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64, sample->event,
            real_print((double)sample->time_ns / 1e9, time_s), sample->live_bytes,
            sample->reserved_bytes, sample->physical_bytes);
    if (rows->draws > 1)
        fprintf(rows->stream, ",%zu", rows->draws);
    fputc('\n', rows->stream);
}

void figure_series_rows(FILE *stream, const char *policy_spec, size_t draws,
                        const struct thin_series *series)
{
    struct series_rows rows = {stream, policy_spec, draws};
    thin_series_each(series, series_row, &rows);
}

static void value(FILE *stream, const struct metric_value *metric)
{
    char text[REAL_TEXT_BYTES];
    fputc(',', stream);
    if (metric->kind == METRIC_INTEGER)
        fprintf(stream, "%" PRIu64, metric->integer);
    else if (metric->kind == METRIC_REAL)
        fputs(real_print(metric->real, text), stream);
}

/* A figure of one run; null where it has none. */
struct figure {
    const char *name; /* of its column */
    struct metric_value (*of)(const struct run_record *record, enum metric metric);
    enum metric metric;
};

/* Columns that only medians have: of how many runs, draws or repetitions, and for each figure the
 * interval of the median, held at `level`; with an empty level, of too few, least and most. */
static void spread_titles(FILE *stream, const struct figure *figures, size_t count)
{
    fputs(",runs,over,level", stream);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, ",%s_low,%s_high", figures[i].name, figures[i].name);
}

static void spread_head(FILE *stream, const struct statistic *of, const char *over)
{
    char text[REAL_TEXT_BYTES];
    if (of->count)
        fprintf(stream, ",%zu,%s,%s", of->count, over,
                of->has_interval ? real_print(of->level, text) : "");
    else
        fputs(",,,", stream);
}

static void spread_limits(FILE *stream, const struct statistic *of)
{
    char low[REAL_TEXT_BYTES];
    char high[REAL_TEXT_BYTES];
    if (of->count)
        fprintf(stream, ",%s,%s", real_print(of->has_interval ? of->low : of->least, low),
                real_print(of->has_interval ? of->high : of->most, high));
    else
        fputs(",,", stream);
}

void figure_slowdown(FILE *stream, const struct slowdown_point *points, size_t count)
{
    static const struct figure of = {.name = "slowdown"};
    bool spread = count && points[0].draws > 1;
    fputs("workload,policy,capacity_ratio,slowdown,passed,flushes,remapped_bytes", stream);
    if (spread)
        spread_titles(stream, &of, 1);
    fputc('\n', stream);
    for (size_t i = 0; i < count; i++) {
        char ratio[REAL_TEXT_BYTES];
        csv_text(stream, points[i].workload);
        fputc(',', stream);
        csv_text(stream, points[i].policy_spec);
        fprintf(stream, ",%s", real_print(points[i].capacity_ratio, ratio));
        value(stream, &points[i].slowdown);
        fprintf(stream, ",%s", points[i].passed ? "true" : "false");
        value(stream, &points[i].flushes);
        value(stream, &points[i].remapped_bytes);
        if (spread) {
            spread_head(stream, &points[i].over_draws, "draws");
            spread_limits(stream, &points[i].over_draws);
        }
        fputc('\n', stream);
    }
}

static struct metric_value metric_of(const struct run_record *record, enum metric metric)
{
    return record->metrics.at[metric];
}

static double number(const struct metric_value *value)
{
    return value->kind == METRIC_INTEGER ? (double)value->integer : value->real;
}

static bool same_row(const struct run_record *first, const struct run_record *record)
{
    return strcmp(record->policy_spec, first->policy_spec) == 0;
}

/* The runs that a row is made from, those of one policy from `first` to before `end`, and room to
 * sort values of them in. */
struct figure_row {
    const struct run_record *first, *end;
    double *values, *of_draw;
};

/* Are those runs draws? Else they are repetitions, or one. */
static bool has_draws(const struct run_record *first, const struct run_record *end)
{
    for (const struct run_record *at = first; at < end; at++)
        if (same_row(first, at) && at->seed != first->seed)
            return true;
    return false;
}

/* A figure in all runs of a row, or only those of the draw of `draw`; count 0: one has none, or did
 * not finish. */
static struct statistic over_runs(const struct figure_row *row, const struct run_record *draw,
                                  const struct figure *figure, double *values)
{
    size_t count = 0;
    for (const struct run_record *at = row->first; at < row->end; at++) {
        struct metric_value value = figure->of(at, figure->metric);
        if (!same_row(row->first, at) || (draw && at->seed != draw->seed))
            continue;
        if (!at->passed || value.kind == METRIC_NULL)
            return (struct statistic){.count = 0};
        values[count++] = number(&value);
    }
    return statistic_of(values, count);
}

/* Over the draws, of the median of each one's repetitions; with one draw over its repetitions. */
static struct statistic over_row(const struct figure_row *row, const struct figure *figure)
{
    size_t count = 0;
    if (!has_draws(row->first, row->end))
        return over_runs(row, NULL, figure, row->values);
    for (const struct run_record *at = row->first; at < row->end; at++) {
        if (!same_row(row->first, at) || at->repetition != 0)
            continue;
        struct statistic draw = over_runs(row, at, figure, row->of_draw);
        if (!draw.count)
            return draw;
        row->values[count++] = draw.median;
    }
    return statistic_of(row->values, count);
}

/* The median as the runs have it: an integer stays one. */
static void median_value(FILE *stream, const struct figure_row *row, const struct figure *figure,
                         const struct statistic *statistic)
{
    struct metric_value median = figure->of(row->first, figure->metric);
    if (!statistic->count)
        median = (struct metric_value){.kind = METRIC_NULL};
    else if (statistic->least < statistic->most && median.kind == METRIC_INTEGER)
        median.integer = (uint64_t)statistic->median;
    else if (statistic->least < statistic->most)
        median.real = statistic->median;
    value(stream, &median);
}

#define FIGURES_MOST 8

static void write_row(FILE *stream, const struct figure_row *row, const struct figure *figures,
                      size_t count, bool spread)
{
    struct statistic of[FIGURES_MOST];
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        of[i] = over_row(row, &figures[i]);
        median_value(stream, row, &figures[i], &of[i]);
    }
    while (first + 1 < count && !of[first].count)
        first++;
    if (spread)
        spread_head(stream, &of[first], has_draws(row->first, row->end) ? "draws" : "repetitions");
    for (size_t i = 0; i < count && spread; i++)
        spread_limits(stream, &of[i]);
}

/* Whether any run of the row has any of these figures. */
static bool measured(const struct figure_row *row, const struct figure *figures, size_t count)
{
    for (const struct run_record *at = row->first; at < row->end; at++)
        for (size_t i = 0; i < count && same_row(row->first, at); i++)
            if (figures[i].of(at, figures[i].metric).kind != METRIC_NULL)
                return true;
    return false;
}

static bool all_passed(const struct figure_row *row)
{
    for (const struct run_record *at = row->first; at < row->end; at++)
        if (same_row(row->first, at) && !at->passed)
            return false;
    return true;
}

static bool has_row(const struct run_record *begin, const struct run_record *record)
{
    for (const struct run_record *at = begin; at < record; at++)
        if (same_row(record, at))
            return true;
    return false;
}

/* Has any row a median to show, of draws or of repetitions? */
static bool any_spread(const struct run_record *records, size_t count)
{
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = run_record_group_end(records, count, begin);
        for (size_t i = begin; i < end; i++)
            if (records[i].repetition != 0 || records[i].seed != records[begin].seed)
                return true;
    }
    return false;
}

/* One row for each workload and policy: the figures of its run, of several their medians and how far
 * these are known; with draws the workload is named as the user wrote it, without a seed.
 * `ranked_only`: no rows of policies that are not ranked or did not finish. */
static enum ar_status figure_rows(FILE *stream, const struct run_record *records, size_t count,
                                  const struct figure *figures, size_t figure_count,
                                  bool ranked_only, struct ar_error *error)
{
    double *values = calloc(count ? 2 * count : 1, sizeof *values);
    bool spread = any_spread(records, count);
    if (!values)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the figures' data");
    fputs("workload,policy", stream);
    for (size_t i = 0; i < figure_count; i++)
        fprintf(stream, ",%s", figures[i].name);
    if (spread)
        spread_titles(stream, figures, figure_count);
    fputc('\n', stream);
    for (size_t begin = 0; begin < count;) {
        const struct run_record *group = records + begin;
        size_t size = run_record_group_end(records, count, begin) - begin;
        const char *name =
            run_record_draws(group, size) > 1 ? group->workload_spec : group->workload.name;
        for (const struct run_record *first = group; first < group + size; first++) {
            struct figure_row row = {first, group + size, values, values + count};
            if (has_row(group, first) || !measured(&row, figures, figure_count) ||
                (ranked_only && (!first->ranked || !all_passed(&row))))
                continue;
            csv_text(stream, name);
            fputc(',', stream);
            csv_text(stream, first->policy_spec);
            write_row(stream, &row, figures, figure_count, spread);
            fputc('\n', stream);
        }
        begin += size;
    }
    free(values);
    return AR_OK;
}

enum ar_status figure_fragmentation(FILE *stream, const struct run_record *records, size_t count,
                                    struct ar_error *error)
{
    static const struct figure figures[] = {
        {"internal_mean", metric_of, METRIC_internal_fragmentation_mean},
        {"external_mean", metric_of, METRIC_external_fragmentation_mean},
        {"unusable_mean", metric_of, METRIC_unusable_free_index_mean},
        {"overhead", metric_of, METRIC_overhead},
    };
    return figure_rows(stream, records, count, figures, sizeof figures / sizeof figures[0], false,
                       error);
}

enum ar_status figure_latency(FILE *stream, const struct run_record *records, size_t count,
                              struct ar_error *error)
{
    static const struct figure figures[] = {
        {"alloc_p50_ns", metric_of, METRIC_alloc_ns_p50},
        {"alloc_p90_ns", metric_of, METRIC_alloc_ns_p90},
        {"alloc_p99_ns", metric_of, METRIC_alloc_ns_p99},
        {"alloc_p999_ns", metric_of, METRIC_alloc_ns_p999},
        {"alloc_max_ns", metric_of, METRIC_alloc_ns_max},
        {"free_p50_ns", metric_of, METRIC_free_ns_p50},
        {"free_p99_ns", metric_of, METRIC_free_ns_p99},
    };
    return figure_rows(stream, records, count, figures, sizeof figures / sizeof figures[0], false,
                       error);
}

/* Slowdown is null where nothing but the allocator takes time, and so is the driver's share. */
static struct metric_value driver_share(const struct run_record *record, enum metric metric)
{
    struct metric_value share = {.kind = METRIC_NULL};
    double time_ns = metric_number(&record->metrics, METRIC_device_time_ns, 0);
    if (time_ns > 0 && record->metrics.at[METRIC_slowdown].kind != METRIC_NULL)
        share = (struct metric_value){.kind = METRIC_REAL,
                                      .real = metric_number(&record->metrics, metric, 0) / time_ns};
    return share;
}

enum ar_status figure_pareto(FILE *stream, const struct run_record *records, size_t count,
                             struct ar_error *error)
{
    static const struct figure figures[] = {
        {"overhead", metric_of, METRIC_overhead},
        {"driver_share", driver_share, METRIC_driver_time_ns},
    };
    return figure_rows(stream, records, count, figures, sizeof figures / sizeof figures[0], true,
                       error);
}

const char *figure_file_name(const char *name, char *text, size_t text_bytes)
{
    const char *slash = strrchr(name, '/');
    size_t used = 0;
    for (const char *at = slash ? slash + 1 : name; *at && used + 1 < text_bytes; at++) {
        bool plain = isalnum((unsigned char)*at) || *at == '.' || *at == '_' || *at == '-';
        text[used++] = plain ? *at : '-';
    }
    text[used] = '\0';
    return text;
}
