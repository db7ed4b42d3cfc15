/* Which slowdown the runs of a group are held against each other by: that of their steady steps
 * where the program has such, else that of the whole run. On a card a program's first step waits
 * for what its libraries load, which takes longer than most policies do and is not theirs. */
#ifndef BENCH_REPORT_SLOWDOWN_METRIC_H
#define BENCH_REPORT_SLOWDOWN_METRIC_H

#include "bench/report/run_record.h"

/* METRIC_steady_slowdown where all runs from `begin` to before `end` that passed have it and two
 * steps or more; METRIC_slowdown otherwise, and where none passed. */
enum metric slowdown_metric_of(const struct run_record *begin, const struct run_record *end);

#endif
