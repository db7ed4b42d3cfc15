/* A histogram as HdrHistogram's percentile text: what its plotter and gnuplot read. */
#ifndef BENCH_REPORT_HDR_PERCENTILES_H
#define BENCH_REPORT_HDR_PERCENTILES_H

#include <stdio.h>

#include "allocators/base/hist.h"

/* Values are as they were added, unscaled. */
void hdr_percentiles_write(FILE *stream, const struct ar_hist *hist);

#endif
