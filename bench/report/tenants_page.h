/* What became of several processes on one machine, as tables and as comma-separated values. */
#ifndef BENCH_REPORT_TENANTS_PAGE_H
#define BENCH_REPORT_TENANTS_PAGE_H

#include <stdio.h>

#include "sim/tenants/tenants.h"

struct tenants_page {
    const char *title;
    const struct tenant_setup *setups;
    size_t count;
    size_t draws;
    const struct tenant_result *results; /* draws x count, one draw behind the other */
    bool real;                           /* on a card */
    bool wide;                           /* with columns that have no room in 80 letters */
    const struct tenant_result *alone;   /* of each when it runs alone; NULL: not known */
};

/* One draw: a row for each process. Several: how often each outcome was seen, and ranges. */
enum ar_status tenants_page_print(FILE *stream, const struct tenants_page *page,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* The names of the columns, and the rows of one draw: one for each process. */
void tenants_csv_head(FILE *stream);
void tenants_csv_draw(FILE *stream, const struct tenants_page *page, size_t draw);

/* "passed", "failed", "no room", "refused". */
const char *tenant_outcome_name(enum tenant_outcome outcome);

/* What became of all in one draw: "A passed; B failed at step 3: tenant". */
void tenants_outcome_text(const struct tenants_page *page, size_t draw, char *text, size_t room);

#endif
