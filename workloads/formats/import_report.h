/* What a reader of another program's file found that a trace cannot hold, and the counts that an
 * import report adds from the trace itself. */
#pragma once

#include "workloads/trace/source.h"

#define IMPORT_GUESSES 16
/* What is said of a snapshot without a history, and what to do. */
#define IMPORT_NO_HISTORY                                                                          \
    "It has no history, only the blocks at its end. To record one, call "                          \
    "torch.cuda.memory._record_memory_history before the first step."
/* The same for an answer from a replay. */
#define IMPORT_NO_HISTORY_ANSWER                                                                   \
    IMPORT_NO_HISTORY                                                                              \
    " The answer is about these blocks alone, requested one after the other."

#define IMPORT_SIZES 10 /* sizes of blocks never freed that are listed */

struct import_report {
    uint64_t records;          /* of the file, before any is joined or omitted */
    uint64_t unmatched_frees;  /* of blocks without a request: taken for live at the start */
    uint64_t double_frees;     /* omitted */
    uint64_t left_out;         /* records that do not concern memory or cannot be used */
    uint64_t failures;         /* requests that failed */
    bool ends_in_failure;      /* the last request failed, and nothing follows */
    bool begins_in_the_middle; /* the head of the recording is missing */
    bool lacks_history;        /* only the blocks at one moment: recording was off */
    unsigned guess_count;
    char guesses[IMPORT_GUESSES][160]; /* sentences: assumptions, and how often each was made */
};

/* Whether a source is a snapshot without a history; `report` may be NULL. */
static inline bool import_lacks_history(const struct import_report *report)
{
    return report && report->lacks_history;
}

/* Adds a sentence once; after the last place it is dropped. */
void import_guess(struct import_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The sentence "COUNT text", unless the count is 0. */
void import_guess_count(struct import_report *report, uint64_t count, const char *text);

struct import_size {
    uint64_t bytes, blocks; /* of one block; their number */
};

struct import_counts {
    uint64_t start_blocks, start_bytes; /* live before the first event */
    uint64_t end_blocks, end_bytes;     /* never freed */
    uint64_t end_start_blocks;          /* of these, live before the first event */
    uint64_t peak_bytes, peak_event;    /* live; the first event at which the peak is reached */
    uint64_t held_peak_bytes;           /* reserved by the recorded allocator; 0: unknown */
    /* Of the blocks never freed, by the sum of the bytes of a size, the largest first. */
    struct import_size sizes[IMPORT_SIZES];
    size_t size_count;
    uint64_t other_sizes, other_bytes; /* not listed there */
};

/* Reads all of `source` from its first event, and rewinds it. HOST_MEMORY, or the error of the
 * source. */
enum ar_status import_count(struct trace_source *source, struct import_counts *out,
                            struct ar_error *error);
