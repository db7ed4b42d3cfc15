/* Where a row of figures, one for each commit, changes.
 *
 * Exact figures: wherever a value differs from the one before.
 *
 * Counts (instructions): where a value is further than `effect` from the first one since the last
 * change. A slow drift is seen once it adds up to that.
 *
 * Times, of which each value is a little off:
 * 1. Every place with at least CHANGE_LEAST values on both sides is looked at, through a window of
 *    at most CHANGE_WINDOW values to each side. The place with the greatest standardised rank sum
 *    (Mann, Whitney) between the two sides is the candidate.
 * 2. Its exact p-value (rank_test.h), times the number of places, must be at most `alpha`: however
 *    the candidate was chosen, the chance that any of n places has a p-value of a is at most n a.
 *    Nothing is drawn, nothing is assumed of the noise but that values of one level could have come
 *    in any order.
 * 3. Where it holds both parts are searched in the same way (binary segmentation).
 * 4. Ranks see that there is a step, but not well where: beside an end they like the middle better.
 *    So each is put where the two levels fit best: the distances of all values from the median of
 *    their side, summed, are least.
 * 5. Each is tested once more between its neighbours, which were not known when it was found; those whose shift (Hodges and Lehmann) is less than `effect`, or that are no
 *    longer sure, are dropped, the weakest first.
 *
 * Sources: Scott and Knott 1974, Vostrikova 1981 (binary segmentation); Pettitt 1979 (rank sums over
 * places); Matteson and James 2014, Daly and others 2020, and Fleming and others 2023 (Hunter) for
 * change points in the results of benchmarks, from where the tests between neighbours are. */
#ifndef BENCH_STATISTICS_CHANGE_POINTS_H
#define BENCH_STATISTICS_CHANGE_POINTS_H

#include <stddef.h>

#include "allocators/base/status.h"

#define CHANGE_LEAST  5  /* values on each side of a change of a time */
#define CHANGE_WINDOW 30 /* that the test looks at; twice that is tested exactly */

enum change_kind { CHANGE_EXACT, CHANGE_COUNT, CHANGE_TIMED };

struct change_rules {
    double effect; /* the least change that counts, as a fraction; not used for exact figures */
    double alpha;  /* chance of a false alarm in this row; times only */
};

struct change_point {
    size_t at;            /* the first value of the new level; at least 1 */
    double before, after; /* the two values; of times the medians of the two levels */
    double p;             /* of times, all places counted; else 0 */
};

/* Finds them in their order; `points` has room for `count`. Times must be above 0. INVALID,
 * HOST_MEMORY. */
enum ar_status change_points_find(const double *values, size_t count, enum change_kind kind,
                                  const struct change_rules *rules, struct change_point *points,
                                  size_t *found, struct ar_error *error) AR_STATUS_CHECKED;

/* After how many values of a new level a clear change of a time is seen, where `before` stand
 * before it; 0: not with as many as the window holds. */
size_t change_points_delay(size_t before, double alpha);

#endif
