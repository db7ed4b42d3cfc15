/* The outcomes of several processes on one machine, as tables and as CSV. */
#ifndef BENCH_REPORT_TENANTS_PAGE_H
#define BENCH_REPORT_TENANTS_PAGE_H

#include <stdio.h>

#include "sim/tenants/tenants.h"

struct tenants_page {
    const char *title;
    const struct tenant_setup *setups;
    size_t count;
    size_t replicates;
    const struct tenant_result *results; /* replicates x count, one replicate after the other */
    bool real;                           /* on a card */
    bool wide;                           /* with columns that do not fit 80 letters */
    const struct tenant_result *alone;   /* each process run alone; NULL: not known */
};

/* One replicate: a row for each process. Several: the number of times of each outcome, and
 * ranges. */
enum ar_status tenants_page_print(FILE *stream, const struct tenants_page *page,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* The names of the columns, and the rows of one replicate: one for each process. */
void tenants_csv_head(FILE *stream);
void tenants_csv_replicate(FILE *stream, const struct tenants_page *page, size_t replicate);

/* The outcomes of all in one replicate: "A passed; B failed at step 3: tenant". */
void tenants_outcome_text(const struct tenants_page *page, size_t replicate, char *text,
                          size_t room);

#endif
