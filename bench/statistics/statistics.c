#include "bench/statistics/statistics.h"

#include <math.h>

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

/* ---- rank test of two samples -------------------------------------------------------------- */

#define LEVEL 0.95

/* Twice the mean rank of `value`: an integer also with ties. */
static size_t double_rank(const double *sorted, size_t count, double value)
{
    size_t below = 0;
    size_t equal = 0;
    for (size_t i = 0; i < count; i++) {
        below += sorted[i] < value;
        equal += sorted[i] == value;
    }
    return 2 * below + equal + 1;
}

/* ways[k * (most + 1) + s]: the number of ways in which k of the ranks have the sum s, for k ==
 * `chosen` (fewer only as far as they lead there). `most` is the sum of all ranks. */
static double *count_ways(const size_t *ranks, size_t count, size_t chosen, size_t most)
{
    double *ways = calloc((chosen + 1) * (most + 1), sizeof *ways);
    if (!ways)
        return NULL;
    ways[0] = 1;
    for (size_t i = 0, reach = 0; i < count; i++) {
        size_t least = chosen + i + 1 > count ? chosen + i + 1 - count : 1;
        reach += ranks[i];
        for (size_t k = chosen < i + 1 ? chosen : i + 1; k >= least; k--)
            for (size_t s = reach; s >= ranks[i]; s--)
                ways[k * (most + 1) + s] += ways[(k - 1) * (most + 1) + s - ranks[i]];
    }
    return ways;
}

/* P(a sum at least as far from its mean as `sum`), exactly. Negative: no host memory. */
static double exact_p(const size_t *ranks, size_t count, size_t chosen, size_t sum)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most += ranks[i];
    double *ways = count_ways(ranks, count, chosen, most);
    if (!ways)
        return -1;
    const double *row = ways + chosen * (most + 1);
    double mean = (double)(chosen * (count + 1)); /* of doubled ranks */
    double far = fabs((double)sum - mean);
    double all = 0;
    double beyond = 0;
    for (size_t s = 0; s <= most; s++) {
        all += row[s];
        if (fabs((double)s - mean) >= far)
            beyond += row[s];
    }
    free(ways);
    return beyond / all;
}

static double normal_p(const double *sorted, size_t count, size_t chosen, size_t sum)
{
    double n = (double)count;
    double m = (double)chosen;
    double ties = 0;
    for (size_t i = 0, end; i < count; i = end) {
        end = i + 1;
        while (end < count && sorted[end] == sorted[i])
            end++;
        double t = (double)(end - i);
        ties += t * t * t - t;
    }
    double variance = m * (n - m) / 12 * ((n + 1) - ties / (n * (n - 1)));
    double distance = fabs((double)sum / 2 - m * (n + 1) / 2) - 0.5;
    if (variance <= 0 || distance <= 0)
        return 1;
    return erfc(distance / sqrt(variance) / sqrt(2.0));
}

/* The number of sorted quotients that the interval leaves out at each end: the greatest k with
 * 2 P(U < k) at most 1 - LEVEL, U without ties. SIZE_MAX: no host memory. */
static size_t quotients_left_out(size_t old_count, size_t new_count)
{
    size_t all = old_count + new_count;
    double m = (double)old_count;
    double n = (double)new_count;
    if (all > RANK_TEST_EXACT) {
        double k = m * n / 2 - 1.959964 * sqrt(m * n * (m + n + 1) / 12);
        return k > 0 ? (size_t)k : 0;
    }
    size_t *ranks = calloc(all, sizeof *ranks);
    if (!ranks)
        return SIZE_MAX;
    for (size_t i = 0; i < all; i++)
        ranks[i] = i + 1;
    size_t most = all * (all + 1) / 2;
    size_t least = new_count * (new_count + 1) / 2; /* the sum at U = 0 */
    double *ways = count_ways(ranks, all, new_count, most);
    free(ranks);
    if (!ways)
        return SIZE_MAX;
    const double *row = ways + new_count * (most + 1);
    double total = 0;
    for (size_t s = 0; s <= most; s++)
        total += row[s];
    double below = 0;
    size_t k = 0;
    for (; k < old_count * new_count / 2; k++) {
        below += row[least + k];
        if (2 * below / total > 1 - LEVEL)
            break;
    }
    free(ways);
    return k;
}

static enum ar_status shift(const double *old, size_t old_count, const double *new_,
                            size_t new_count, struct rank_test *out, struct ar_error *error)
{
    size_t count = old_count * new_count;
    size_t left_out = quotients_left_out(old_count, new_count);
    AR_FREED double *quotients = malloc(count * sizeof *quotients);
    AR_TRY_MEMORY(quotients && left_out != SIZE_MAX, error, "a rank test");
    double more = 0;
    for (size_t i = 0; i < old_count; i++) {
        for (size_t j = 0; j < new_count; j++) {
            quotients[i * new_count + j] = new_[j] / old[i];
            more += (double)((new_[j] > old[i]) - (new_[j] < old[i]));
        }
    }
    statistic_sort(quotients, count);
    out->delta = more / (double)count;
    out->ratio = (quotients[(count - 1) / 2] + quotients[count / 2]) / 2;
    /* If none is left out, the interval is unbounded: too few values. */
    out->low = left_out ? quotients[left_out - 1] : 0;
    out->high = left_out ? quotients[count - left_out] : (double)INFINITY;
    double up = out->high / out->ratio;
    double down = out->low > 0 ? out->ratio / out->low : (double)INFINITY;
    out->sees = (up > down ? up : down) - 1;
    return AR_OK;
}

static enum ar_status test_ranks(const double *old, size_t old_count, const double *new_,
                                 size_t new_count, struct rank_test *out, struct ar_error *error)
{
    size_t count = old_count + new_count;
    AR_FREED double *sorted = malloc(count * sizeof *sorted);
    AR_FREED size_t *ranks = calloc(count, sizeof *ranks);
    AR_TRY_MEMORY(sorted && ranks, error, "a rank test");
    memcpy(sorted, old, old_count * sizeof *sorted);
    memcpy(sorted + old_count, new_, new_count * sizeof *sorted);
    statistic_sort(sorted, count);
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        ranks[i] = double_rank(sorted, count, sorted[i]);
    for (size_t i = 0; i < new_count; i++)
        sum += double_rank(sorted, count, new_[i]);
    out->p = count <= RANK_TEST_EXACT ? exact_p(ranks, count, new_count, sum)
                                      : normal_p(sorted, count, new_count, sum);
    if (out->p < 0)
        return ar_no_memory(error, "a rank test");
    return AR_OK;
}

enum ar_status rank_test(const double *old, size_t old_count, const double *new_, size_t new_count,
                         struct rank_test *out, struct ar_error *error)
{
    for (size_t i = 0; i < old_count + new_count; i++) {
        double value = i < old_count ? old[i] : new_[i - old_count];
        if (!(value > 0) || isinf(value))
            return ar_invalid(error, "a rank test of factors needs numbers above 0");
    }
    if (!old_count || !new_count)
        return ar_invalid(error, "a rank test needs values on both sides");
    AR_TRY(test_ranks(old, old_count, new_, new_count, out, error));
    return shift(old, old_count, new_, new_count, out, error);
}

struct place {
    double p;
    size_t index;
};

static int by_p(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    return (a->p > b->p) - (a->p < b->p);
}

enum ar_status rank_test_holm(double *p, size_t count, struct ar_error *error)
{
    struct place *order = calloc(count ? count : 1, sizeof *order);
    AR_TRY_MEMORY(order, error, "a rank test");
    for (size_t i = 0; i < count; i++)
        order[i] = (struct place){p[i], i};
    qsort(order, count, sizeof *order, by_p);
    double least = 0;
    for (size_t i = 0; i < count; i++) {
        AR_RAISE(least, order[i].p * (double)(count - i));
        p[order[i].index] = least < 1 ? least : 1;
    }
    free(order);
    return AR_OK;
}
