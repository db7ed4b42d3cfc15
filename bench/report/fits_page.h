/* The answer of `fits` as one page for a reader, and as JSON. */
#ifndef BENCH_REPORT_FITS_PAGE_H
#define BENCH_REPORT_FITS_PAGE_H

#include <stdio.h>

#include "sim/advise/fits.h"

/* The reserved bytes under the first row's setting, of all seeds. */
struct fits_spread {
    uint64_t seeds, least_bytes, most_bytes;
};
void fits_spread_add(struct fits_spread *self, uint64_t reserved_bytes);

/* The search for the largest value of a parameter, under the program's own setting and under
 * expandable segments. */
#define FITS_SETTINGS 2
struct fits_vary {
    char name[64]; /* "": there was no search */
    uint64_t low, high, runs;
    uint64_t value;               /* of the page */
    bool has_no_effect;           /* low and high take the same memory */
    size_t settings;              /* that were searched */
    uint64_t fits[FITS_SETTINGS]; /* the largest that fits; 0: none */
};

struct fits_page {
    const struct trace_info *info;
    const struct advise_result *advice;
    const struct fits_notes *notes;
    struct fits_spread spread;
    const struct fits_vary *vary;
};

/* Whether a row fits at the capacity in question. */
bool fits_page_fits(const struct fits_page *page);

enum ar_status fits_page_print(FILE *stream, const struct fits_page *page,
                               struct ar_error *error) AR_STATUS_CHECKED;

/* One of the answers in a document of the schema allocrig.fits/1. */
struct json_writer;
void fits_json_write(struct json_writer *json, const struct fits_page *page);

#endif
