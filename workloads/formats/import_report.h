/* What a reader of another program's file found that a trace cannot hold. The counts that follow
 * from the trace itself (live at start and end, never freed by size) are not kept here. */
#ifndef WORKLOADS_FORMATS_IMPORT_REPORT_H
#define WORKLOADS_FORMATS_IMPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMPORT_GUESSES 16

struct import_report {
    uint64_t records;          /* of the file, before any was joined or left out */
    uint64_t unmatched_frees;  /* of blocks that were never made: taken for live at the start */
    uint64_t double_frees;     /* left out */
    uint64_t left_out;         /* records that say nothing of memory, or cannot be used */
    uint64_t failures;         /* requests that failed */
    bool ends_in_failure;      /* the last request failed, and nothing follows */
    bool begins_in_the_middle; /* the head of the recording is missing */
    unsigned guess_count;
    char guesses[IMPORT_GUESSES][160]; /* sentences: what was assumed, and how often */
};

/* Adds a sentence, once; past the last place it is dropped. */
void import_guess(struct import_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
