/* Where a series of figures, one for each commit, changes.
 *
 * Exact figures: wherever a value differs from the previous one.
 *
 * Counts (instructions): where a value differs by more than `effect` from the first one since the
 * last change. A slow drift is found when it adds up to that.
 *
 * Times, whose values vary:
 * 1. Every place with at least CHANGE_LEAST values on both sides is tested, in a window of at most
 *    CHANGE_WINDOW values to each side. The candidate is the place with the greatest standardised
 *    rank sum (Mann, Whitney) between the two sides.
 * 2. Its exact p-value (statistics.h), multiplied by the number of places, must be at most `alpha`:
 *    the chance that any of n places has a p-value of a is at most n a, however the candidate is
 *    chosen. The only assumption on the noise is that values of one level may come in any order.
 * 3. If it holds, both parts are searched in the same way (binary segmentation).
 * 4. Ranks detect that there is a step, but locate it badly: close to an end they prefer the
 *    middle. So each change moves to the place where the two levels fit best: the sum of the
 *    distances of all values from the median of their side is least.
 * 5. Each change is tested again between its neighbours, which were not known when it was found.
 *    Changes whose shift (Hodges and Lehmann) is less than `effect`, or that are no longer
 *    significant, are dropped, the weakest first.
 *
 * Sources: Scott and Knott 1974, Vostrikova 1981 (binary segmentation); Pettitt 1979 (rank sums
 * over places); Matteson and James 2014, Daly and others 2020, and Fleming and others 2023 (Hunter)
 * for change points in the results of benchmarks and for the tests between neighbours. */
#ifndef BENCH_STATISTICS_CHANGE_POINTS_H
#define BENCH_STATISTICS_CHANGE_POINTS_H

#include <stddef.h>

#include "allocators/base/status.h"

#define CHANGE_LEAST  5  /* values on each side of a change of a time */
#define CHANGE_WINDOW 30 /* values on each side that the test uses; twice that is tested exactly */

enum change_kind { CHANGE_EXACT, CHANGE_COUNT, CHANGE_TIMED };

struct change_rules {
    double effect; /* the least change, as a fraction; not used for exact figures */
    double alpha;  /* chance of a false alarm in this series; times only */
};

struct change_point {
    size_t at;            /* the first value of the new level; at least 1 */
    double before, after; /* the two values; of times the medians of the two levels */
    double p;             /* of times, corrected for all places; else 0 */
};

/* Finds the changes in order; `points` has room for `count`. Times must be above 0. INVALID,
 * HOST_MEMORY. */
enum ar_status change_points_find(const double *values, size_t count, enum change_kind kind,
                                  const struct change_rules *rules, struct change_point *points,
                                  size_t *found, struct ar_error *error) AR_STATUS_CHECKED;

/* The number of values of a new level after which a clear change of a time is found, with `before`
 * values before it; 0: not within the window. */
size_t change_points_delay(size_t before, double alpha);

#endif
