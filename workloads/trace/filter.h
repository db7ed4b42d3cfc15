/* Parts of a trace, several traces as one: what `convert` does beside translating. */
#ifndef WORKLOADS_TRACE_FILTER_H
#define WORKLOADS_TRACE_FILTER_H

#include "workloads/trace/source.h"

/* A zeroed struct keeps everything. Where anything but `kinds` and steps is given, notes are left
 * out: the result is no longer what the recorded allocator saw. A part of a recording begins with
 * the state that the recorded allocator was in. */
struct trace_filter_options {
    /* Steps first_step to last_step, numbered from 1, each with its mark; 0, 0: all. Blocks made
     * before and not let go come first, with the key initial=yes. */
    uint64_t first_step, last_step;
    /* Only blocks and events of these streams; count 0: all. */
    const uint32_t *streams;
    size_t stream_count;
    const uint32_t *device; /* only blocks and events of that device; NULL: all */
    uint64_t min_bytes;     /* only blocks of at least so many bytes */
    uint32_t kinds;         /* a bit 1 << enum trace_kind for each kind to keep; 0: all */
    bool at_once;           /* blocks are complete when they are let go */
    /* So many times one behind the other; what is left over is freed in between. 0 is 1. */
    uint64_t repeat;
};

/* The kinds that "a,f" or "afpr" names, letter by letter, for `kinds`. INVALID for others. */
enum ar_status trace_filter_kinds(const char *letters, uint32_t *kinds,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* The steps of "A-B", "A-" or "A". */
enum ar_status trace_filter_steps(const char *text, struct trace_filter_options *options,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* A source over `source`, which it takes over and closes, also where it fails. INVALID where
 * nothing is left to keep. An adaptive source is written down first: it would hear no answers. */
enum ar_status trace_filter(struct trace_source *source, const struct trace_filter_options *options,
                            struct trace_source **out, struct ar_error *error) AR_STATUS_CHECKED;

/* Several traces at the same time: by recorded time where all have it, else so that all end
 * together. Streams are set apart, and every event has its trace's number as `tenant`. Takes the
 * sources over, also where it fails; the array stays the caller's. */
enum ar_status trace_merge(struct trace_source *const *sources, size_t count,
                           struct trace_source **out, struct ar_error *error) AR_STATUS_CHECKED;

#endif
