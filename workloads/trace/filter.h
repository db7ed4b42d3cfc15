/* Parts of a trace, and several traces as one, for `convert`. */
#pragma once

#include "workloads/trace/source.h"

/* A zeroed struct keeps everything. If any option but `kinds` and steps is set, notes are left out,
 * because the result is not the input of the recorded allocator. A part of a recording begins with
 * the state of the recorded allocator. */
struct trace_filter_options {
    /* Steps first_step to last_step, numbered from 1, each with its mark; 0, 0: all. The requests
     * of earlier blocks that are still live come first, with the key initial=yes. */
    uint64_t first_step, last_step;
    /* Only blocks and events of these streams; count 0: all. */
    const uint32_t *streams;
    size_t stream_count;
    const uint32_t *device; /* only blocks and events of that device; NULL: all */
    uint64_t min_bytes;     /* only blocks of at least this size */
    uint32_t kinds;         /* a bit 1 << enum trace_kind for each kind to keep; 0: all */
    bool at_once;           /* frees complete when they are requested */
    /* The number of repetitions; the remaining blocks are freed in between. 0 is 1. */
    uint64_t repeat;
};

/* The kinds in "a,f" or "afpr", letter by letter, for `kinds`. INVALID for other letters. */
enum ar_status trace_filter_kinds(const char *letters, uint32_t *kinds, struct ar_error *error);

/* The steps of "A-B", "A-" or "A". */
enum ar_status trace_filter_steps(const char *text, struct trace_filter_options *options,
                                  struct ar_error *error);

/* A source over `source`. It takes ownership of `source`, also if it fails. INVALID if no event is
 * kept. Copy an adaptive source to memory first: it would get no results here. */
enum ar_status trace_filter(struct trace_source *source, const struct trace_filter_options *options,
                            struct trace_source **out, struct ar_error *error);

/* Several traces at the same time: by recorded time if all have it, else so that all end together.
 * Streams of different traces differ, and every event has the number of its trace as `tenant`.
 * INVALID if one has a note that changes the allocator (trace_is_change). Takes ownership of the
 * sources, also if it fails; the array still belongs to the caller. */
enum ar_status trace_merge(struct trace_source *const *sources, size_t count,
                           struct trace_source **out, struct ar_error *error);
