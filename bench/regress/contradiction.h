/* A side that contradicts itself: two runs of one cell, or two counts of the same, that cannot both be
 * right. Each of these says so in the row's note, with both places, and returns true; else it leaves
 * the row as it was. */
#ifndef BENCH_REGRESS_CONTRADICTION_H
#define BENCH_REGRESS_CONTRADICTION_H

#include "bench/regress/verdict.h"

/* Repetitions that end in different ways, or at different events. */
bool contradiction_of_ends(const struct side_cell *old, const struct side_cell *new_,
                           struct verdict_row *row);

/* A metric that nothing times and that is not the same in all repetitions; both values are written
 * into the row. */
bool contradiction_of_metric(const struct side_cell *old, const struct side_cell *new_,
                             enum metric metric, struct verdict_row *row);

/* Two counts of the same on one side that are further apart than VERDICT_INSTRUCTIONS. */
bool contradiction_of_count(const struct side *side, bool in_old, const struct side_count *count,
                            struct verdict_row *row);

#endif
