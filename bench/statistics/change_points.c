#include <math.h>

#include "allocators/base/array.h"
#include "bench/statistics/statistics.h"

_Static_assert(2 * CHANGE_WINDOW <= RANK_TEST_EXACT, "the test of a window is exact");

struct search {
    const double *values;
    const struct change_rules *rules;
    bool *changes; /* the new level begins here */
    struct ar_error *error;
};

/* The distance of the rank sum from its mean, in standard deviations, without correction for ties:
 * only the greatest distance matters. */
static double distance_at(const double *values, size_t from, size_t at, size_t end)
{
    size_t left = ar_least(at - from, CHANGE_WINDOW);
    size_t right = ar_least(end - at, CHANGE_WINDOW);
    double more = 0;
    for (size_t i = at - left; i < at; i++)
        for (size_t j = at; j < at + right; j++)
            more += (double)((values[j] > values[i]) - (values[j] < values[i]));
    double m = (double)left;
    double n = (double)right;
    return fabs(more / 2) / sqrt(m * n * (m + n + 1) / 12);
}

/* Tests one place, with correction for the number of places. */
static enum ar_status test_at(const struct search *self, size_t from, size_t at, size_t end,
                              struct rank_test *test)
{
    size_t left = ar_least(at - from, CHANGE_WINDOW);
    size_t right = ar_least(end - at, CHANGE_WINDOW);
    size_t places = end - from - 2 * CHANGE_LEAST + 1;
    AR_TRY(rank_test(self->values + at - left, left, self->values + at, right, test, self->error));
    test->p = fmin(1, test->p * (double)places);
    return AR_OK;
}

/* Rules 1 to 3, for the values from `from` to before `end`. */
static enum ar_status search(const struct search *self, size_t from, size_t end)
{
    struct rank_test test = {0};
    size_t best = 0;
    double most = 0;
    for (size_t at = from + CHANGE_LEAST; at + CHANGE_LEAST <= end; at++) {
        double distance = distance_at(self->values, from, at, end);
        if (distance > most) {
            most = distance;
            best = at;
        }
    }
    if (!best)
        return AR_OK;
    AR_TRY(test_at(self, from, best, end, &test));
    if (test.p > self->rules->alpha)
        return AR_OK;
    self->changes[best] = true;
    AR_TRY(search(self, from, best));
    return search(self, best, end);
}

static enum ar_status median(const double *values, size_t count, double *out,
                             struct ar_error *error)
{
    double *sorted = malloc(count * sizeof *sorted);
    AR_TRY_MEMORY(sorted, error, "a median");
    memcpy(sorted, values, count * sizeof *sorted);
    statistic_sort(sorted, count);
    *out = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    free(sorted);
    return AR_OK;
}

/* The sum of the distances of values from their median. */
static enum ar_status spread(const double *values, size_t count, double *out,
                             struct ar_error *error)
{
    double middle = 0;
    enum ar_status status = median(values, count, &middle, error);
    for (size_t i = 0; i < count; i++)
        *out += fabs(values[i] - middle);
    return status;
}

/* Rule 4: moves a change to the place between its neighbours where the two levels fit best. */
static enum ar_status place(const struct search *self, size_t from, size_t *at, size_t end)
{
    double least = INFINITY;
    from = *at - ar_least(*at - from, CHANGE_WINDOW);
    end = *at + ar_least(end - *at, CHANGE_WINDOW);
    for (size_t i = from + CHANGE_LEAST; i + CHANGE_LEAST <= end; i++) {
        double cost = 0;
        AR_TRY(spread(self->values + from, i - from, &cost, self->error));
        AR_TRY(spread(self->values + i, end - i, &cost, self->error));
        if (cost < least) {
            least = cost;
            *at = i;
        }
    }
    return AR_OK;
}

/* Rules 4 and 5: places and tests each change between its neighbours. `*weakest` is the index of
 * the change to drop; SIZE_MAX if all hold. */
static enum ar_status test_all(const struct search *self, size_t count, struct change_point *points,
                               size_t found, size_t *weakest)
{
    double least = INFINITY;
    *weakest = SIZE_MAX;
    for (size_t i = 0; i < found; i++) {
        size_t from = i ? points[i - 1].at : 0;
        size_t end = i + 1 < found ? points[i + 1].at : count;
        struct rank_test test = {0};
        AR_TRY(place(self, from, &points[i].at, end));
        AR_TRY(test_at(self, from, points[i].at, end, &test));
        AR_TRY(median(self->values + from, points[i].at - from, &points[i].before, self->error));
        AR_TRY(
            median(self->values + points[i].at, end - points[i].at, &points[i].after, self->error));
        points[i].p = test.p;
        double size = fabs(log(test.ratio));
        bool holds = test.p <= self->rules->alpha && fabs(test.ratio - 1) >= self->rules->effect;
        if (!holds && size < least) {
            least = size;
            *weakest = i;
        }
    }
    return AR_OK;
}

static enum ar_status find_timed(const struct search *self, size_t count,
                                 struct change_point *points, size_t *found)
{
    size_t weakest = 0;
    AR_TRY(search(self, 0, count));
    for (size_t i = 0; i < count; i++)
        if (self->changes[i])
            points[(*found)++].at = i;
    for (;;) {
        AR_TRY(test_all(self, count, points, *found, &weakest));
        if (weakest == SIZE_MAX)
            return AR_OK;
        AR_ARRAY_REMOVE(points, *found, weakest);
    }
}

/* Every step away from `level` by more than `effect`; 0: any step. */
static void find_steps(const double *values, size_t count, double effect,
                       struct change_point *points, size_t *found)
{
    double level = count ? values[0] : 0;
    for (size_t i = 1; i < count; i++) {
        bool changed =
            effect > 0 && level > 0 ? fabs(values[i] / level - 1) > effect : values[i] != level;
        if (!changed)
            continue;
        points[(*found)++] = (struct change_point){.at = i, .before = level, .after = values[i]};
        level = values[i];
    }
}

enum ar_status change_points_find(const double *values, size_t count, enum change_kind kind,
                                  const struct change_rules *rules, struct change_point *points,
                                  size_t *found, struct ar_error *error)
{
    *found = 0;
    if (kind != CHANGE_TIMED) {
        find_steps(values, count, kind == CHANGE_COUNT ? rules->effect : 0, points, found);
        return AR_OK;
    }
    for (size_t i = 0; i < count; i++)
        if (!(values[i] > 0) || isinf(values[i]))
            return ar_invalid(error, "times must be above 0 to look for changes");
    struct search self = {values, rules, calloc(count + 1, sizeof(bool)), error};
    AR_TRY_MEMORY(self.changes, error, "a search for changes");
    enum ar_status status = find_timed(&self, count, points, found);
    free(self.changes);
    return status;
}

size_t change_points_delay(size_t before, double alpha)
{
    size_t left = ar_least(before, CHANGE_WINDOW);
    for (size_t after = CHANGE_LEAST; left >= CHANGE_LEAST && after <= CHANGE_WINDOW; after++) {
        double p = 2; /* two-sided */
        for (size_t i = 1; i <= after; i++)
            p *= (double)i / (double)(left + i);
        if (p * (double)(before + after - 2 * CHANGE_LEAST + 1) <= alpha)
            return after;
    }
    return 0;
}
