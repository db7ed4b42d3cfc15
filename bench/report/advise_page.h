/* Advice as pages for a reader, and as JSON. */
#ifndef BENCH_REPORT_ADVISE_PAGE_H
#define BENCH_REPORT_ADVISE_PAGE_H

#include <stdio.h>

#include "sim/advise/advise.h"

/* One trace. */
struct advise_page {
    const char *name, *path;
    const char *recorder, *format;
    enum replay_frees frees;
    const struct advise_result *result;
    struct trace_source *source;
};

enum ar_status advise_page_print(FILE *stream, const struct advise_page *page,
                                 struct ar_error *error) AR_STATUS_CHECKED;

/* yes, no or ?: the text in a table. */
const char *advise_page_fit(enum advise_fit fit);

/* What a user sets for a row: an environment variable, or "the default settings of PyTorch". */
const char *advise_page_setting(const struct advise_row *row);
/* Its spec with blanks at which a line can be broken; PyTorch's settings without its name. */
void advise_page_name(const struct advise_row *row, char *out, size_t room);

/* Several traces of one program: its ranks. Each setting needs what the worst of them needs. */
enum ar_status advise_page_ranks(FILE *stream, const struct advise_page *pages, size_t count,
                                 struct ar_error *error) AR_STATUS_CHECKED;

/* Two traces of one program with these batch sizes: the largest batch at the capacity in question,
 * by a curve through both (sim/advise/peak.h). INVALID if nothing grows. */
enum ar_status advise_page_batches(FILE *stream, const struct advise_page *pages,
                                   const uint64_t batches[2],
                                   struct ar_error *error) AR_STATUS_CHECKED;

/* One object of the schema allocrig.advise/1. */
void advise_json_write(FILE *stream, const struct advise_page *pages, size_t count);

/* `advise --what-if`: a prediction and the recording of the same setting, as a row of a Markdown
 * table. */
struct whatif_line {
    const char *program, *from, *to; /* the settings' names */
    const struct whatif *whatif;
    bool has_retries;
    uint64_t recorded_retries;
};

void whatif_page_head(FILE *stream);
void whatif_page_line(FILE *stream, const struct whatif_line *line);

#endif
