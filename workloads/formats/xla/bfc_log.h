/* What the BFC allocator of TensorFlow and XLA prints when it runs out of memory. Fields that the
 * log does not have are 0. */
#pragma once

#include "workloads/io/file.h"

/* XLA's list "Peak buffers" of a program's buffers, printed if one of them cannot be allocated. */

#define XLA_LABEL_LIMIT  64
#define XLA_BUFFER_LIMIT 100000 /* XLA lists a few dozen */

struct xla_buffer {
    uint64_t bytes;
    uint64_t line;
    bool parameter; /* it was there before the program ran */
    char label[XLA_LABEL_LIMIT];
};

/* A zeroed struct is empty. */
struct xla_buffers {
    struct xla_buffer *items; /* of the last list */
    size_t count, capacity;
    bool listing; /* the list continues */
    bool inside;  /* the description of the last item continues */
};

#define BFC_TAG_LIMIT 128

struct bfc_chunk {
    uint64_t address;
    uint64_t bytes;
    uint64_t line;
    uint32_t copies; /* in a summary the number of chunks of that size, else 1 */
    char *tag;       /* the operation that requested it; NULL: unknown */
    bool used;
};

struct bfc_region {
    uint64_t bytes;
    size_t first; /* of its chunks */
};

/* A request that failed. */
struct bfc_request {
    uint64_t bytes;         /* exactly */
    uint64_t rounded_bytes; /* to the allocator's 256 */
    uint64_t about_bytes;   /* as printed with a unit: "3.72GiB" */
    uint64_t about_slack;   /* the error of that */
    char operation[BFC_TAG_LIMIT];
    bool failed;
};

/* One dump: a failed request, and the chunks that there were. */
struct bfc_dump {
    struct bfc_chunk *chunks; /* in the order of the log */
    size_t chunk_count, chunk_capacity;
    uint64_t copies; /* of all chunks */
    struct bfc_region *regions;
    size_t region_count, region_capacity;
    struct bfc_request request;
    char allocator[64]; /* "GPU_0_bfc" */
    uint64_t limit_bytes, in_use_bytes, pool_bytes;
    bool has_limit, has_in_use, has_pool;
    bool from_summary; /* the chunks come from the summary by size: no addresses */
};

struct bfc_log {
    struct xla_buffers buffers;      /* the last list, if no dump followed it */
    struct bfc_request list_request; /* the failed request above that list */
    struct bfc_dump last;            /* the last dump with chunks */
    uint64_t dumps;                  /* with chunks */
    uint64_t soft_failures;          /* requests that were allowed to fail, and did */
    bool later_failure;              /* a request failed after it, without a dump */
    char card[128];                  /* of the first device that the log names; or "" */
};

/* Reads all of the log. IO, FORMAT or HOST_MEMORY. The caller closes `out`, also after a
 * failure. */
enum ar_status bfc_log_read(struct trace_input *input, struct bfc_log *out, struct ar_error *error);
void bfc_log_close(struct bfc_log *log);

/* Bytes of a size as these logs print it: "1.25GiB", "29.9KiB", "512B"; 0 if it is none.
 * `*slack`: half a unit of its last digit. */
uint64_t bfc_human_bytes(const char *text, uint64_t *slack);
/* The elements of a shape "[4,2048]"; 0 if it is none. */
uint64_t bfc_elements(const char *shape);
/* The bytes of an element of a type as TensorFlow ("float") or XLA ("f32") calls it; 0: unknown. */
uint64_t bfc_type_bytes(const char *type, size_t length);
