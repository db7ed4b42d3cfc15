/* How little memory a trace could run in: lower bounds that hold for every policy, and offline
 * plans, which know the whole trace in advance. */
#pragma once

#include "allocators/base/status.h"
#include "allocators/planning/packing.h"
#include "sim/replay.h"

/* ---- the requests of a trace as an offline placement problem: blocks with lifetimes ---- */

/* One request with bytes of device memory, as the trace names it. */
struct bound_request {
    uint64_t id;
    const char *tag;      /* replaces the id if another program gave the lifetime, else NULL;
                             owned by the source */
    int64_t lower, upper; /* lifetime as in plans: see below */
    bool foreign;         /* the lifetime comes from another program */
    uint64_t bytes;       /* requested */
};

struct bound_options {
    enum replay_frees
        frees; /* RECORDED: blocks live until free completed; else until free requested */
    uint64_t granule_bytes; /* sizes and offsets are multiples of it; a power of two; 0: 1 */
    /* A probe counts only if live bytes stay within this: no card serves more. */
    uint64_t card_bytes;
};

/* Requests in the order of the trace. Lifetimes are counted in events, [born, dies). `lower` and
 * `upper` are the same numbers unless the trace has keys of those names with the lifetimes of
 * another program. Consecutive requests that begin at the same moment of those lifetimes are born
 * at the event of the first. Blocks that are never freed die after the last event. */
struct bound_blocks {
    struct ar_host host;
    struct packing_block *blocks; /* sizes rounded up to the granule */
    struct bound_request *requests;
    size_t count, room;
    struct packing packing; /* of `blocks` */
    uint64_t granule_bytes;
    uint64_t live_peak_bytes; /* of requested bytes */
    uint64_t live_peak_event; /* the first event with that many live bytes */
};

/* Rewinds the source and reads it to its end. The source must outlive the blocks, and `self` must
 * not move. INVALID for an adaptive source, whose requests depend on the policy. */
enum ar_status bound_blocks_open(struct bound_blocks *self, struct trace_source *source,
                                 const struct bound_options *options, struct ar_error *error);
void bound_blocks_close(struct bound_blocks *self);

/* Writes the name of the request in plans. Returns `text`. */
const char *bound_request_name(const struct bound_request *request, char *text, size_t text_bytes);

#define BOUND_PAGE_BYTES (UINT64_C(2) << 20)

struct bounds {
    uint64_t live_peak_bytes; /* requested bytes: no policy holds less */
    uint64_t live_peak_event;
    uint64_t pages_bytes; /* the same in whole pages, for policies that hold pages */
    uint64_t least_bytes; /* live peak with sizes in granules: no plan has a lower top */
    uint64_t
        best_fit_bytes; /* extent of one unbounded arena under the textbook fits, which do not */
    uint64_t first_fit_bytes; /* know later requests */
    struct packing_best orders;
    uint64_t *offsets;  /* of the lowest plan so far; bounds_close */
    uint64_t top_bytes; /* of that plan */
    bool searched;      /* bounds_search was called; then `exact` is valid */
    struct packing_exact exact;
};

/* Everything except the exact search. Returns INVALID or HOST_MEMORY on failure. On success the
 * caller closes the bounds. */
enum ar_status bounds_find(const struct bound_blocks *blocks, struct bounds *out,
                           struct ar_error *error);
/* Improves the plan by exact search within the limits of `options`. HOST_MEMORY. */
enum ar_status bounds_search(const struct bound_blocks *blocks,
                             const struct packing_exact_options *options, struct bounds *self,
                             struct ar_error *error);
void bounds_close(struct bounds *self);

/* A plan as a file in the format of google/minimalloc (CSV `id,lower,upper,size,offset`, one row
 * per block), and the check of a plan. */

struct plan_row {
    char *name; /* the id, as text */
    int64_t lower, upper, size, offset;
    uint64_t line;
};

struct plan_file {
    struct plan_row *rows;
    size_t count, room;
};

/* Reads a plan. The first line names the columns, in any order; other columns are skipped. INVALID,
 * FORMAT or IO with file and line. The caller closes the plan. */
enum ar_status plan_file_read(struct plan_file *self, const char *path, struct ar_error *error);
void plan_file_close(struct plan_file *self);

/* Writes the blocks with their offsets. Write errors stay in `stream`. */
void plan_file_write(FILE *stream, const struct bound_blocks *blocks, const uint64_t *offsets);

#define BOUND_FAULTS_MOST 20 /* that have a sentence; all are counted */
#define BOUND_FAULT_TEXT  256

struct bound_verdict {
    uint64_t faults;
    char texts[BOUND_FAULTS_MOST][BOUND_FAULT_TEXT]; /* a sentence each */
    uint64_t top_bytes;                              /* the greatest end of a block */
};

/* Checks a plan against the blocks of a trace, without sharing code with the planners: each block
 * has one row with its lifetime and size; there are no other rows; offsets are not negative and are
 * multiples of the requested alignment; no block ends beyond `capacity_bytes` (0: no limit); no two
 * blocks that live at the same time overlap. Faults of the plan are in the verdict. HOST_MEMORY. */
enum ar_status bound_check(const struct bound_blocks *blocks, const struct plan_file *plan,
                           uint64_t capacity_bytes, struct bound_verdict *verdict,
                           struct ar_error *error);
