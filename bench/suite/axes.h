/* The [grid] section of a suite: a list of values for each key, and every combination of them.
 *
 *     [grid]
 *     max_split_size_mb = 32 64 128       each spec that has such an option
 *     growth:limit = 4GiB 8GiB            those of that name only
 *     workloads:seed = 1 2 3              those of that section only: policies, workloads, devices
 *
 * 1. Blanks or commas stand between values; one that holds either stands in quotes.
 * 2. Keys are applied in the order in which they stand. Each spec that a key reaches becomes one for
 *    each value; one without such an option stays one spec.
 * 3. A spec that has the key already, in its own line or from an earlier key, keeps its value.
 * 4. A key that reaches nothing is refused, and so is one without a name before it that would reach
 *    specs of two sections, such as a seed of workloads and of devices. */
#ifndef BENCH_SUITE_AXES_H
#define BENCH_SUITE_AXES_H

#include "bench/suite/suite.h"

/* Adds `[TARGET:]KEY = VALUES` of the line `number` to the suite's grid. INVALID for a list that is
 * empty or a quote that does not end. */
enum ar_status axes_add(struct suite *suite, const char *key, const char *values, unsigned number,
                        struct ar_error *error) AR_STATUS_CHECKED;
void axes_close(struct suite *suite);

/* Puts the specs of every combination into the suite's lists; the grid is empty then. `path` is that
 * of the suite, for errors. INVALID as rule 4 says, for specs that cannot be read, and for too many. */
enum ar_status axes_apply(struct suite *suite, const char *path,
                          struct ar_error *error) AR_STATUS_CHECKED;

#endif
