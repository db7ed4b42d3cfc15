/* The answer of `twin` as a page for a person, as JSON (schema allocrig.twin/1), and the bytes by
 * owner as rows of CSV. */
#ifndef BENCH_REPORT_TWIN_PAGE_H
#define BENCH_REPORT_TWIN_PAGE_H

#include <stdio.h>

#include "bench/report/twin_answers.h"

/* A reported figure, and the twin's. */
struct twin_page_reported {
    const char *text; /* "rollout.sleep 1: card used" */
    const char *given;
    char ours[64];
    bool known;    /* the twin has such a figure */
    bool agrees;   /* within the tolerance */
    bool has_part; /* `part` is of numbers */
    double part;   /* ours / given - 1 */
    double value, our_value;
};

/* The search for the largest key-value cache of a part. */
struct twin_page_cache {
    size_t part;
    const char *option;
    bool is_bytes;    /* the option is of bytes */
    double now, safe; /* the option's value; now 0: its default; safe 0: none passes */
    /* The least value above `safe` that fails, for which `why` is; or none. If none passes, the one
     * with which the schedule comes furthest. */
    double tried;
    double blocks, tokens; /* at `safe`; 0: not known */
    double bytes;
    unsigned runs;
    char why[400];
};

struct twin_page_whatif {
    const char *text;
    bool runs; /* else `why` says why not */
    bool passes;
    bool now_fits;                    /* it passes and the scenario does not */
    double peak_saved, residue_saved; /* bytes; negative: it needs more */
    bool has_residue;
    char why[400];
};

struct twin_page {
    const char *name, *source; /* source NULL: none */
    const struct twin_scenario *scenario;
    const struct twin_result *result;
    const struct twin_page_reported *reported;
    size_t reported_count;
    double tolerance;
    const struct twin_page_cache *caches;
    size_t cache_count;
    const struct twin_page_whatif *whatifs; /* the best first */
    size_t whatif_count;
    bool has_whatifs;       /* they were tried */
    uint64_t whatif_cycles; /* the runs with changes have fewer cycles; 0: as many */
};

enum ar_status twin_page_print(FILE *stream, const struct twin_page *page,
                               struct ar_error *error) AR_STATUS_CHECKED;
void twin_json_write(FILE *stream, const struct twin_page *page);
/* A row for each card, owner and end of a phase, and for the moment of the peak in it. The
 * free bytes of the card at an end are a row too, so that the rows of an end are the card. */
void twin_series_write(FILE *stream, const struct twin_page *page);

static inline double twin_mib(double bytes)
{
    return bytes / 1048576;
}

static inline const char *twin_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *twin_owner_kind_name(enum twin_owner_kind kind);

#endif
