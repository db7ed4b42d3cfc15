/* The base of filters and merges: a source whose events are made from those of other sources. It
 * has its own keys and texts, gives slots, and pulls everything once when it is opened, so that its
 * counts are known. Memory is that of the blocks live at once. */
#pragma once

#include "workloads/trace/check.h"

struct trace_rewrite;

struct trace_rewrite_ops {
    /* Emits the next events; none at the end. */
    enum ar_status (*fill)(struct trace_rewrite *self, struct ar_error *error);
    /* Back to the first event. */
    enum ar_status (*restart)(struct trace_rewrite *self, struct ar_error *error);
    /* Closes all but the base. */
    void (*close)(struct trace_rewrite *self);
};

/* The first member of the filter's or merge's struct, which malloc made. */
struct trace_rewrite {
    struct trace_source base;
    const struct trace_rewrite_ops *ops;
    struct trace_tables tables;
    struct trace_check check;
    bool free_requested_final, opened;
    struct trace_event *span;
    size_t count, capacity;
};

/* Emits an event with an id of the new trace; keys and texts are those of `source`, or `attributes`
 * unless it is NULL. */
enum ar_status trace_rewrite_emit(struct trace_rewrite *self, struct trace_source *source,
                                  struct trace_event event,
                                  const struct trace_attributes *attributes,
                                  struct ar_error *error);

/* Emits a note of its own text. */
enum ar_status trace_rewrite_note(struct trace_rewrite *self, const char *text,
                                  struct ar_error *error);

/* The new id of a block of the old trace. False: it is not in the new one. */
typedef bool trace_rewrite_lookup(const void *argument, uint64_t id, uint64_t *new_id);

/* The same for a kernel: the blocks in its keys get their new names, or, if one is not in the new
 * trace, these keys are dropped. `next_id` and `new_next_id` are the ids of the next request in
 * both traces. */
struct trace_rewrite_names {
    trace_rewrite_lookup *lookup;
    const void *argument;
    uint64_t next_id, new_next_id;
};
enum ar_status trace_rewrite_kernel(struct trace_rewrite *self, struct trace_source *source,
                                    struct trace_event event,
                                    const struct trace_attributes *attributes,
                                    const struct trace_rewrite_names *names,
                                    struct ar_error *error);

/* Runs the first pass and rewinds. `self` has its ops and the fields of info that are not counted.
 * A failure closes it. */
enum ar_status trace_rewrite_open(struct trace_rewrite *self, struct ar_error *error);
