#include "bench/statistics/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* P(X = k), X binomial (n, 1/2); by logarithms, since 2^-n vanishes for large n. */
static double binomial(size_t n, size_t k)
{
    double all = (double)n;
    double part = (double)k;
    return exp(lgamma(all + 1) - lgamma(part + 1) - lgamma(all - part + 1) - all * log(2));
}

struct statistic statistic_of(double *values, size_t count)
{
    struct statistic statistic = {.count = count};
    if (!count)
        return statistic;
    qsort(values, count, sizeof *values, compare_doubles);
    statistic.least = values[0];
    statistic.median = values[(count - 1) / 2];
    statistic.most = values[count - 1];
    double missed = 0;
    for (size_t k = 0; k < count / 2; k++) {
        missed += 2 * binomial(count, k);
        if (missed > 1 - STATISTIC_LEVEL)
            break;
        statistic.has_interval = true;
        statistic.low = values[k];
        statistic.high = values[count - 1 - k];
        statistic.level = 1 - missed;
    }
    return statistic;
}

bool statistic_same_run(const struct run_record *a, const struct run_record *b)
{
    return strcmp(a->policy_spec, b->policy_spec) == 0 && a->seed == b->seed &&
           run_record_same_group(a, b);
}

struct statistic statistic_gather(const struct run_record *first, const struct run_record *end,
                                  enum metric metric, double *values)
{
    size_t count = 0;
    for (const struct run_record *at = first; at < end; at++)
        if (at->passed && at->metrics.at[metric].kind != METRIC_NULL &&
            statistic_same_run(first, at))
            values[count++] = metric_number(&at->metrics, metric, 0);
    return statistic_of(values, count);
}

struct statistic statistic_over_draws(const struct run_record *first, const struct run_record *end,
                                      enum metric metric, double *values)
{
    size_t count = 0;
    for (const struct run_record *at = first; at < end; at++)
        if (strcmp(at->policy_spec, first->policy_spec) == 0 && at->passed &&
            at->metrics.at[metric].kind != METRIC_NULL)
            values[count++] = metric_number(&at->metrics, metric, 0);
    return statistic_of(values, count);
}

struct run_record statistic_record(const struct run_record *first, const struct run_record *end,
                                   double *values)
{
    struct run_record record = *first;
    for (const struct run_record *at = first; at < end; at++)
        if (!at->passed && statistic_same_run(first, at))
            return *at;
    for (int i = 0; i < METRIC_COUNT; i++) {
        struct metric_value *value = &record.metrics.at[i];
        struct statistic statistic = statistic_gather(first, end, (enum metric)i, values);
        if (statistic.count < 2 || statistic.least == statistic.most)
            continue; /* as it stands, integers beyond 2^53 too */
        if (value->kind == METRIC_INTEGER)
            value->integer = (uint64_t)statistic.median;
        else
            *value = (struct metric_value){.kind = METRIC_REAL, .real = statistic.median};
    }
    return record;
}

struct run_record *statistic_condense(const struct run_record *records, size_t count, size_t *kept)
{
    struct run_record *out = calloc(count ? count : 1, sizeof *out);
    double *values = calloc(count ? count : 1, sizeof *values);
    *kept = 0;
    for (size_t begin = 0; out && values && begin < count;) {
        size_t end = run_record_group_end(records, count, begin);
        for (size_t i = begin; i < end; i++) {
            if (records[i].repetition != 0)
                continue;
            struct run_record *record = &out[(*kept)++];
            *record = statistic_record(&records[i], records + end, values);
            record->repetition = 0;
        }
        begin = end;
    }
    if (!values) {
        free(out);
        out = NULL;
    }
    free(values);
    return out;
}

void statistic_places(const struct statistic *of, size_t count, size_t *places, bool *shared)
{
    for (size_t i = 0; i < count; i++) {
        places[i] = of[i].has_interval;
        shared[i] = false;
        for (size_t j = 0; j < count && of[i].has_interval; j++) {
            if (j == i || !of[j].has_interval)
                continue;
            if (of[j].high < of[i].low)
                places[i]++;
            else if (of[j].low <= of[i].high)
                shared[i] = true;
        }
    }
}

int statistic_pair_order(const double *a, const double *b, size_t count, double *room)
{
    for (size_t i = 0; i < count; i++)
        room[i] = a[i] - b[i];
    struct statistic difference = statistic_of(room, count);
    if (difference.has_interval)
        return (difference.low > 0) - (difference.high < 0);
    memcpy(room, a, count * sizeof *room);
    struct statistic mine = statistic_of(room, count);
    memcpy(room, b, count * sizeof *room);
    struct statistic theirs = statistic_of(room, count);
    return (mine.least > theirs.most) - (mine.most < theirs.least);
}

void statistic_places_paired(const double *rows, size_t count, size_t draws, double *room,
                             size_t *places, bool *shared)
{
    for (size_t i = 0; i < count; i++) {
        const double *row = &rows[i * draws];
        places[i] = draws > 0 && !isnan(row[0]);
        shared[i] = false;
        for (size_t j = 0; j < count && places[i]; j++) {
            const double *other = &rows[j * draws];
            if (j == i || isnan(other[0]))
                continue;
            int order = statistic_pair_order(row, other, draws, room);
            places[i] += order > 0;
            shared[i] = shared[i] || order == 0;
        }
    }
}
