/* Draws compared in pairs: each draw of a policy with the same draw of another one. Both had the
 * same requests and addresses, so what the draw alone does to both is not taken for a difference. */
#ifndef BENCH_REPORT_DRAW_PAIRS_H
#define BENCH_REPORT_DRAW_PAIRS_H

#include <stdio.h>

#include "bench/statistics/statistics.h"
#include "bench/report/table.h"

struct draw_pairs {
    struct statistic difference; /* the policy's figure less that of the other; count: the pairs */
    struct statistic ratio;      /* one by the other, of pairs in which the other is not 0 */
    size_t less, equal, more;    /* pairs in which the policy has less than the other, ... */
};

/* The draw with this seed of the policy of `first`, among the runs from there to before `end`;
 * NULL: none. */
const struct run_record *draw_of(const struct run_record *first, const struct run_record *end,
                                 uint64_t seed);

/* Pairs one metric of the policy of `first` with that of `base`, over the runs from each of them to
 * before `end`, all of one group and without repetitions. Draws that only one of them finished make
 * no pair. `values` has room for as many as there are runs. */
struct draw_pairs draw_pairs_of(const struct run_record *first, const struct run_record *base,
                                const struct run_record *end, enum metric metric, double *values);

/* Calls `visit` for every policy and the first one of its group, where a group has several draws of
 * both. The records are without repetitions; a group's stand next to each other, and in it a
 * policy's. */
typedef void draw_pairs_visit(void *argument, const struct run_record *first,
                              const struct run_record *base, const struct run_record *end);
void draw_pairs_each(const struct run_record *records, size_t count, draw_pairs_visit *visit,
                     void *argument);

/* True where a group has several draws of several policies. */
bool draw_pairs_any(const struct run_record *records, size_t count);

/* Every policy against the first one of its group: peak reserved bytes, the slowdown where it is
 * known, and that of the steady steps where all runs of the group have such. Runs of a group stand next to each other in `records`. */
enum ar_status draw_pairs_print(const struct run_record *records, size_t count, FILE *stream,
                                enum table_form form, struct ar_error *error) AR_STATUS_CHECKED;

#endif
