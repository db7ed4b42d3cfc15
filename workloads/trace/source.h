/* A source of events: a file of any format, a generator, a filter over another source. Events are
 * pulled in spans, and can be pulled again after a rewind. */
#pragma once

#include "workloads/trace/event.h"
#include "workloads/trace/header.h"

/* The description of a trace. File readers read and check the whole file when they are opened, so
 * all fields are set then. A generator sets the first part, and the counts when it has reached its
 * end (it then sets `counted`). */
struct trace_info {
    /* Known when the source is opened: */
    char name[128];    /* in tables: "gpt2_train", "random:seed=3" */
    char recorder[64]; /* "" if it is not a recording */
    char conf[512];    /* the settings of the recorded allocator, in its own syntax */
    char card[128];
    char format[16];         /* text binary csv oracle generator */
    uint64_t limit_bytes;    /* of the recorded allocator; 0: none */
    uint64_t capacity_bytes; /* of the recorded card; 0: unknown */
    bool complete;           /* false if a part is missing: the program died */
    bool adaptive;  /* requests depend on what is served (trace_answer); spans of one event */
    uint32_t slots; /* the maximum number of blocks at once; of a generator a bound, or 0: unknown,
                         the caller's array must grow */
    uint32_t streams; /* 1 + the highest stream ordinal */
    bool has_times;   /* t events, or recorded times */
    /* Known if `counted`, but for what a generator says before: */
    bool counted;
    uint64_t events, allocs, probes, frees, kernels;
    uint64_t steps; /* also of the generator `learned` before it is counted */
    uint64_t zero_allocs;
    uint64_t peak_live_bytes; /* requested bytes, from the request to the free request */
    uint64_t peak_card_bytes; /* the same without pinned host memory, after the last event */
    uint64_t allocated_bytes; /* the sum of all requests */
    bool has_uses;            /* u events */
    bool one_block_stream;    /* all requests, uses and free requests are on one stream */
    bool has_split_frees;     /* some frees complete later than they are requested */
    uint64_t gpus;            /* a bit for each GPU that has requests, by its number below 64 */
    bool has_far_gpu;         /* there are requests of a GPU with a number from 64 up */
    uint8_t sha256[32];       /* of the records, labels and keys: the same for text and binary */
};

/* Whether requests, uses or free requests are on several streams, or may be. */
static inline bool trace_uses_streams(const struct trace_info *info)
{
    return info->streams > 1 && !info->one_block_stream;
}

struct trace_source;
struct trace_tables;
struct import_report; /* workloads/formats/import_report.h */

struct trace_source_ops {
    /* The next span: `*count` events at `*events`, valid until the next call. OK with count
     * 0 is the end. Errors name file and line or event. */
    enum ar_status (*next)(struct trace_source *self, const struct trace_event **events,
                           size_t *count, struct ar_error *error);
    /* Only for adaptive sources. Called after each ALLOC and PROBE with its result. NULL: `over`
     * is told. */
    void (*served)(struct trace_source *self, const struct trace_event *event,
                   const struct trace_served *served);
    /* Back to the first event; the same events follow (given the same results). */
    enum ar_status (*rewind)(struct trace_source *self, struct ar_error *error);
    /* The keys and texts of events already pulled; valid until close. NULL: those of `tables`, or
     * of `over`. */
    const struct trace_attributes *(*attributes)(struct trace_source *self, uint32_t index);
    const char *(*text)(struct trace_source *self, uint64_t index);
    void (*close)(struct trace_source *self);
    /* The line of the file that event number `event` comes from; 0: none. NULL: that of `over`. */
    uint64_t (*line)(struct trace_source *self, uint64_t event);
};

/* The base of every source: the first member of its own struct. */
struct trace_source {
    const struct trace_source_ops *ops;
    struct trace_info info;
    const struct trace_tables *tables; /* NULL: those of `over`, or by the ops */
    struct trace_source *over; /* passes on the events of this source, which has keys and texts */
    struct import_report *report; /* of the reader of a foreign file; freed at close; or NULL */
    struct trace_stats stats;     /* of a recording: the final statistics of its allocator */
};

static inline enum ar_status trace_next(struct trace_source *self,
                                        const struct trace_event **events, size_t *count,
                                        struct ar_error *error)
{
    return self->ops->next(self, events, count, error);
}

static inline enum ar_status trace_rewind(struct trace_source *self, struct ar_error *error)
{
    return self->ops->rewind(self, error);
}

/* Reads a source event by event, from where it is: {.source = source}. */
struct trace_cursor {
    struct trace_source *source;
    const struct trace_event *at, *end; /* the rest of the span */
    uint64_t next;                      /* the number of the next event, from 0 */
};

/* Pulls a span if none is left. False: the source is at its end, or `*status` says what failed. */
bool trace_cursor_fill(struct trace_cursor *self, enum ar_status *status, struct ar_error *error);

/* The next event, valid until the next call. NULL at the end, after a failure, and if `*status` is
 * one already. */
static inline const struct trace_event *trace_read(struct trace_cursor *self,
                                                   enum ar_status *status, struct ar_error *error)
{
    if (*status || (self->at == self->end && !trace_cursor_fill(self, status, error)))
        return NULL;
    self->next++;
    return self->at++;
}

/* Index 0: no keys. */
const struct trace_attributes *trace_attributes_of(struct trace_source *self, uint32_t index);
const char *trace_text_of(struct trace_source *self, uint64_t index);

/* 0 if the source does not know it. */
uint64_t trace_line_of(struct trace_source *self, uint64_t event);

/* Tells an adaptive source the result of an ALLOC or PROBE. */
static inline void trace_answer(struct trace_source *self, const struct trace_event *event,
                                const struct trace_served *served)
{
    while (!self->ops->served)
        self = self->over;
    self->ops->served(self, event, served);
}

static inline void trace_close(struct trace_source *self)
{
    if (self) {
        free(self->report);
        trace_stats_close(&self->stats);
        self->ops->close(self);
    }
}
AR_CLOSER(struct trace_source *, trace_close)
