/* The reported figures of a scenario beside those of its twin. */
#ifndef BENCH_SUITE_TWIN_COMPARE_H
#define BENCH_SUITE_TWIN_COMPARE_H

#include "bench/report/twin_page.h"
#include "bench/suite/twin_setup.h"

/* `out` has room for all of text->reported. */
void twin_compare(const struct scenario *text, const struct twin_setup *setup,
                  const struct twin_result *result, struct twin_page_reported *out);

/* Checks that the steps of reported figures are in the schedule. FORMAT names the line. */
enum ar_status twin_compare_check(const struct scenario *text,
                                  struct ar_error *error) AR_STATUS_CHECKED;

#endif
