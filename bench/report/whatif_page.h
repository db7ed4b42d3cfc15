/* Predicted against recorded, as rows of a Markdown table. */
#ifndef BENCH_REPORT_WHATIF_PAGE_H
#define BENCH_REPORT_WHATIF_PAGE_H

#include <stdio.h>

#include "sim/advise/advise.h"

struct whatif_line {
    const char *program, *from, *to; /* the settings' names */
    const struct whatif *whatif;
    bool has_retries;
    uint64_t recorded_retries;
};

void whatif_page_head(FILE *stream);
void whatif_page_line(FILE *stream, const struct whatif_line *line);

#endif
