/* A policy's own statistics as JSON: one object, names and values. */
#ifndef BENCH_REPORT_POLICY_FIGURES_H
#define BENCH_REPORT_POLICY_FIGURES_H

#include <stdio.h>

#include "allocators/policy.h"

/* Under the names that the imitated allocator gives them, where the policy knows such (torch: the
 * keys of torch.cuda.memory_stats); else the totals and counters that every policy keeps. Errors
 * show in the stream. */
void policy_figures_write(FILE *stream, const struct ar_policy *policy);

#endif
