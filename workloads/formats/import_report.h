/* What a reader of another program's file found that a trace cannot hold. The counts that follow
 * from the trace itself (live at start and end, never freed by size) are not kept here. */
#ifndef WORKLOADS_FORMATS_IMPORT_REPORT_H
#define WORKLOADS_FORMATS_IMPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/trace/source.h"

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

/* What an import report says beside what its reader found: counted in the trace. */

#define IMPORT_SIZES 10 /* sizes of blocks never freed that are told apart */

struct import_size {
    uint64_t bytes, blocks; /* of one block; how many */
};

struct import_counts {
    uint64_t start_blocks, start_bytes; /* live before the first event */
    uint64_t end_blocks, end_bytes;     /* never let go */
    uint64_t end_start_blocks;          /* of these, live before the first event */
    uint64_t peak_bytes, peak_event;    /* live; the first event at which it is reached */
    uint64_t held_peak_bytes;           /* by the recorded allocator; 0: not told */
    /* Of the blocks never let go, by all bytes of a size, the most first. */
    struct import_size sizes[IMPORT_SIZES];
    size_t size_count;
    uint64_t other_sizes, other_bytes; /* that found no place there */
};

/* Pulls all of `source` from its first event, where it stands again then. HOST_MEMORY, or what the
 * source says. */
enum ar_status import_count(struct trace_source *source, struct import_counts *out,
                            struct ar_error *error) AR_STATUS_CHECKED;

#endif
