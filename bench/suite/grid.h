/* The texts of specs: one key changed, lists within values expanded, and the [grid] section of a
 * suite.
 *
 * A list within a spec: `torch:max_split_size_mb=32|64|128,limit=4GiB|8GiB` stands for six specs. A
 * bar within quotes is part of a value.
 *
 * A [grid] section has a list of values for each key, and stands for every combination of them:
 *
 *     [grid] max_split_size_mb = 32 64 128       each spec that has such an option growth:limit =
 *     4GiB 8GiB            only those of that name workloads:seed = 1 2 3              only those
 *     of that section: policies, workloads, devices
 *
 * 1. Values are separated by blanks or commas; a value that contains either is quoted.
 * 2. Keys are applied in their order. Each spec that a key reaches becomes one spec for each value;
 *    a spec without such an option does not change.
 * 3. A spec that has the key already, in its own line or from an earlier key, keeps its value.
 * 4. A key that reaches no spec is refused, and so is a key without a name before it that would
 *    reach specs of two sections, such as a seed of workloads and of devices. */
#ifndef BENCH_SUITE_GRID_H
#define BENCH_SUITE_GRID_H

#include "allocators/spec.h"
#include "bench/suite/suite.h"

/* The spec `text` with `key=value` in its last link, in place of an existing value or at the end:
 * "sim:profile=h100" and capacity=1GiB give "sim:profile=h100,capacity=1GiB". The caller frees
 * `*out`. */
enum ar_status spec_text_with(const char *text, const char *key, const char *value, char **out,
                              struct ar_error *error) AR_STATUS_CHECKED;

/* Replaces each spec of the list by those that it stands for; the first value varies slowest.
 * INVALID for a bar outside of a value, and for too many specs. */
enum ar_status grid_expand(struct text_list *list, struct ar_error *error) AR_STATUS_CHECKED;

/* Adds `[TARGET:]KEY = VALUES` of line `number` to the suite's grid. INVALID for an empty list or a
 * quote that does not end. */
enum ar_status axes_add(struct suite *suite, const char *key, const char *values, unsigned number,
                        struct ar_error *error) AR_STATUS_CHECKED;
void axes_close(struct suite *suite);

/* Puts the specs of every combination into the lists of the suite and empties the grid. `path` is
 * that of the suite, for errors. INVALID by rule 4, for specs that cannot be read, and for too many
 * specs. */
enum ar_status axes_apply(struct suite *suite, const char *path,
                          struct ar_error *error) AR_STATUS_CHECKED;

#endif
