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

void statistic_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
}

/* P(X = k), X binomial (n, 1/2); by logarithms, because 2^-n underflows for large n. */
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
    statistic_sort(values, count);
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

void statistic_places(const struct statistic *of, size_t count, struct statistic_place *places)
{
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct statistic_place){.place = of[i].has_interval};
        for (size_t j = 0; j < count && of[i].has_interval; j++) {
            if (j == i || !of[j].has_interval)
                continue;
            if (of[j].high < of[i].low)
                places[i].place++;
            else if (of[j].low <= of[i].high)
                places[i].shared = true;
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

void statistic_places_paired(const double *rows, size_t count, size_t values, double *room,
                             struct statistic_place *places)
{
    for (size_t i = 0; i < count; i++) {
        const double *row = &rows[i * values];
        places[i] = (struct statistic_place){.place = values > 0 && !isnan(row[0])};
        for (size_t j = 0; j < count && places[i].place; j++) {
            const double *other = &rows[j * values];
            if (j == i || isnan(other[0]))
                continue;
            int order = statistic_pair_order(row, other, values, room);
            places[i].place += order > 0;
            places[i].shared = places[i].shared || order == 0;
        }
    }
}
