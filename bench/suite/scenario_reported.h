/* The section [reported] of a scenario file. */
#ifndef BENCH_SUITE_SCENARIO_REPORTED_H
#define BENCH_SUITE_SCENARIO_REPORTED_H

#include "bench/suite/ini.h"
#include "bench/suite/scenario.h"

enum ar_status scenario_reported_line(struct scenario *self, const struct ini_line *line,
                                      struct ar_error *error) AR_STATUS_CHECKED;

/* A copy of a text that the file owns; NULL: no host memory. */
const char *scenario_text(struct scenario *self, const char *text, size_t length);

/* Reads a size with or without a blank before its unit: "5.6 GiB". */
enum ar_status scenario_bytes_parse(const char *text, uint64_t *bytes,
                                    struct ar_error *error) AR_STATUS_CHECKED;

#endif
