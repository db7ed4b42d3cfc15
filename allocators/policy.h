/* The contract of an allocator policy: decide where a request goes. One policy is one file
 * in policies/ and one line in policies.def; allocators/README.md shows how to write one.
 *
 * A policy knows no device, clock, trace, file, thread or global, and never prints. It takes
 * device memory from a backing (backing.h) and all of its metadata from a host (base/host.h).
 * Addresses are numbers. The same calls always lead to the same addresses.
 *
 * An instance is used by one thread at a time. Requests have 0 < bytes < 2^60. */
#ifndef ALLOCATORS_POLICY_H
#define ALLOCATORS_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/backing.h"
#include "allocators/base/api.h"
#include "allocators/base/host.h"
#include "allocators/base/status.h"
#include "allocators/options.h"

AR_BEGIN_DECLS

#define AR_POLICY_ABI 1u

struct ar_policy;

/* One allocation asked for. */
struct ar_policy_request {
    uint64_t bytes;
    uint64_t alignment; /* a power of two, or 0: whatever the policy gives */
    uint32_t stream;    /* dense ordinals, 0 is the default stream */
    uint32_t pool;      /* a private pool's id; 0: the common one */
    uint8_t upper_end;  /* 1: the program asks for the upper end of a two-ended arena */
    uint8_t may_fail;   /* 1: a probe; the program goes on without it */
};

/* What the policy gave for it. The caller keeps it and hands it back unchanged. */
struct ar_policy_block {
    uint64_t address;
    uint64_t granted_bytes;   /* at least the requested */
    uint64_t requested_bytes; /* filled in by ar_policy_alloc */
    uint64_t cookie;          /* the policy's own: an index or a pointer to its record */
};

/* Kept up to date by the policy in its base struct; anybody may read it between calls. */
struct ar_policy_totals {
    uint64_t live_bytes;       /* requested and not let go */
    uint64_t granted_bytes;    /* of the blocks given for them */
    uint64_t reserved_bytes;   /* held from the backing, as the imitated allocator counts */
    uint64_t pending_bytes;    /* let go, but other streams may still use them */
    uint64_t releasable_bytes; /* free, and in segments or whole pages without a live byte */
    uint64_t live_blocks;
    uint64_t overhead_bytes; /* the policy's own headers inside of what it holds */
};

/* Free bytes are what is reserved and neither granted nor pending nor headers. */
static inline uint64_t ar_policy_free_bytes(const struct ar_policy_totals *totals)
{
    return totals->reserved_bytes - totals->granted_bytes - totals->pending_bytes -
           totals->overhead_bytes;
}

#define AR_POLICY_COUNTERS(X)                                                                      \
    X(splits, "a free range was divided to serve a request")                                       \
    X(merges, "two free ranges became one")                                                        \
    X(segments_made, "ranges obtained from the backing")                                           \
    X(segments_freed, "ranges given back to the backing")                                          \
    X(flushes, "all cached memory was given back, or tried to, to serve a request")                \
    X(retries, "requests that were tried again after memory had been given back")                  \
    X(failures, "requests that could not be served")                                               \
    X(remapped_bytes, "bytes of pages unmapped at one place and mapped at another")

/* The full report, O(1) to make. */
struct ar_policy_stats {
    struct ar_policy_totals totals;
    uint64_t largest_free_block_bytes; /* the largest free range that could be handed out */
    uint64_t stranded_by_stream_bytes; /* free, but only for streams other than the last one
                                          that asked */
    struct {
#define X(name, help) uint64_t name;
        AR_POLICY_COUNTERS(X)
#undef X
    } count;
};

/* What serving a request may cost, each step including those before it. */
enum ar_policy_effort {
    AR_POLICY_EFFORT_NONE, /* no call to the backing at all */
    AR_POLICY_EFFORT_MAP,  /* map calls only, of memory already held */
    AR_POLICY_EFFORT_WAIT, /* and waiting for pending frees */
    AR_POLICY_EFFORT_TRIM, /* and giving back all cached memory, to get it again as one piece */
    AR_POLICY_EFFORT_COUNT
};

enum ar_policy_range_state {
    AR_POLICY_RANGE_USED,
    AR_POLICY_RANGE_FREE,     /* free, can be handed out */
    AR_POLICY_RANGE_PENDING,  /* let go, not yet complete */
    AR_POLICY_RANGE_UNMAPPED, /* address space without memory behind it; not reserved bytes */
    AR_POLICY_RANGE_OVERHEAD, /* a header of the policy's own */
};

struct ar_policy_range {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes; /* USED; PENDING where the policy knows it still */
    uint64_t segment_address; /* first byte of the segment that it lies in */
    uint32_t stream;
    uint32_t pool;
    enum ar_policy_range_state state;
};

/* Returns false to stop the walk. */
typedef bool ar_policy_visit(void *argument, const struct ar_policy_range *range);

/* For offline policies: one block's life, in events of the trace, half-open. */
struct ar_policy_lifetime {
    uint64_t bytes;
    uint64_t born, dies;
};

enum ar_policy_capability {
    AR_POLICY_STREAM_ORDERED = 1u << 0, /* keeps a block from another stream until that is safe */
    AR_POLICY_OPAQUE = 1u << 1,         /* its inside cannot be seen: hole metrics are null */
    AR_POLICY_OFFLINE = 1u << 2,        /* wants plan() before the first request */
    AR_POLICY_NEEDS_MAPPING = 1u << 3,  /* cannot work without virtual memory in the backing */
    AR_POLICY_WATCHES_FREE = 1u << 4, /* reports each hole through ar_policy_free_added/_removed */
    AR_POLICY_HONOURS_ALIGNMENT = 1u << 5, /* serves any power-of-two alignment */
    AR_POLICY_UNRANKED = 1u << 6,          /* a harness check or a bound, shown but never ranked */
    AR_POLICY_OVERLAPS = 1u << 7,          /* hands out memory it never takes back: `null` only */
};

/* What a policy gets at birth. All three stay the caller's and outlive the policy. */
struct ar_policy_context {
    struct ar_backing *backing;
    struct ar_host *host;
    uint64_t seed; /* for policies that draw; most do not */
};

/* Every policy has these options; its struct of values starts with this one. */
struct ar_policy_common {
    uint64_t limit_bytes; /* the most that it lets itself hold; 0: no limit */
};

#define AR_POLICY_COMMON_OPTIONS                                                                   \
    {                                                                                              \
        "limit", AR_OPTION_BYTES, offsetof(struct ar_policy_common, limit_bytes), "0", 0, 0, NULL, \
            "bytes that the policy lets itself hold; 0: all that the device has"                   \
    }

struct ar_policy_ops {
    uint32_t abi;                 /* AR_POLICY_ABI */
    uint32_t ops_bytes;           /* sizeof(struct ar_policy_ops), for shared objects */
    const char *name;             /* short, unique, used on the command line */
    const char *summary;          /* one line */
    const char *reference;        /* what it imitates, which version; or the paper */
    const char *const *recorders; /* names of recorders that it answers to; NULL-ended, or NULL */
    uint32_t capabilities;        /* enum ar_policy_capability */
    const struct ar_option *options; /* ends with a NULL name */
    size_t values_bytes;             /* of the struct that the options fill */

    /* Required. `values` is valid during the call only. A policy may ask the backing for
     * memory here, or at the first request. On failure nothing is left behind. */
    enum ar_status (*create)(const struct ar_policy_context *context, const void *values,
                             struct ar_policy **out, struct ar_error *error);

    /* Required. Gives everything back, also with blocks live or pending; the device has no work
     * left by then. Never fails. */
    void (*destroy)(struct ar_policy *self);

    /* Required. OK, or NO_MEMORY where the request cannot be served, or CORRUPT. Fills
     * address, granted_bytes and cookie. Updates the totals, live_bytes among them. */
    enum ar_status (*alloc)(struct ar_policy *self, const struct ar_policy_request *request,
                            struct ar_policy_block *out);

    /* Required. The program lets the block go on `stream`. Exactly a block that alloc gave
     * and that was not freed; the `checked` decorator finds those who break that. */
    enum ar_status (*free)(struct ar_policy *self, const struct ar_policy_block *block,
                           uint32_t stream);

    /* Required, O(1). */
    void (*stats)(const struct ar_policy *self, struct ar_policy_stats *out);

    /* Required. Every range in address order, without gaps inside a segment. */
    void (*walk)(const struct ar_policy *self, ar_policy_visit *visit, void *argument);

    /* Required. Checks every invariant; CORRUPT with the first broken one as a sentence. */
    enum ar_status (*validate)(const struct ar_policy *self, struct ar_error *error);

    /* Required where it is not the largest hole: the largest request that could be served
     * at that price. NULL: the largest hole, at every price. */
    uint64_t (*servable)(const struct ar_policy *self, enum ar_policy_effort effort);

    /* All below optional. */

    /* The block is used on another stream too. */
    enum ar_status (*use)(struct ar_policy *self, const struct ar_policy_block *block,
                          uint32_t stream);

    /* The program let go of the block; free follows when it is complete. */
    void (*retire)(struct ar_policy *self, const struct ar_policy_block *block);

    /* Start from ranges that are there already, before the first request: a trace that begins in
     * the middle. They come by address, those of a segment (one segment_address) next to each
     * other and without gaps; UNMAPPED ones stand between the pages of a segment that grows by
     * them. The backing holds what is there; pages have the handle 0. USED ranges may be shorter
     * than the blocks that the policy gives for such requests, where only what was asked for is
     * known; what follows is a HOLE then. The block of the k-th USED range is written to
     * blocks[k], k from 0. INVALID: the policy can never have come to this state. After a failure
     * it can only be destroyed. */
    enum ar_status (*adopt)(struct ar_policy *self, const struct ar_policy_range *ranges,
                            size_t count, struct ar_policy_block *blocks);

    /* Time passed, or a stream came to its end: poll what is pending. */
    void (*progress)(struct ar_policy *self);

    /* Give back what is cached until at most `keep_bytes` of it are left. */
    enum ar_status (*trim)(struct ar_policy *self, uint64_t keep_bytes);

    /* Offline: every lifetime of the trace, before the first request. */
    enum ar_status (*plan)(struct ar_policy *self, const struct ar_policy_lifetime *lifetimes,
                           size_t count);

    /* The text that a user would set to get this policy: an environment variable, a line of
     * code. Returns false where there is none. */
    bool (*setting)(const struct ar_policy *self, char *text, size_t text_bytes);

    /* The sentence behind the last CORRUPT or other status that stops a run; "" where there
     * was none. It stays the policy's. */
    const char *(*problem)(const struct ar_policy *self);

    /* Whether serving the request now would first give cached memory back to the backing. A dry
     * run: it polls what is pending, where serving the request would begin with that, and
     * changes nothing else. */
    bool (*would_release)(struct ar_policy *self, const struct ar_policy_request *request);

    /* Figures under the names that the imitated allocator gives them, by index from 0. Writes
     * both and returns true; false past the last one. */
    bool (*report)(const struct ar_policy *self, size_t index, char *name, size_t name_bytes,
                   uint64_t *value);

    /* The program has given a private pool up: what is free in it, now or later, may go back to
     * the backing when cached memory does. */
    void (*end_pool)(struct ar_policy *self, uint32_t pool);

    /* Whether the request would now be served from what the policy holds, with no call to the
     * backing for memory. A dry run, as would_release. */
    bool (*would_fit)(struct ar_policy *self, const struct ar_policy_request *request);

    /* The peaks that `report` gives start again from what is there now. */
    void (*reset_peaks)(struct ar_policy *self);
};

/* Kept by policies with AR_POLICY_WATCHES_FREE: how many bytes could serve requests of
 * `unit_bytes`, that is the sum over all holes of floor(hole / unit) * unit. */
struct ar_policy_free_watch {
    uint64_t unit_bytes;
    uint64_t usable_bytes;
};

/* The base of every instance: the first member of the policy's own struct. */
struct ar_policy {
    const struct ar_policy_ops *ops;
    struct ar_policy_totals totals;
    struct ar_policy_free_watch *watch; /* NULL: nobody watches. Set it before the first request */
};

static inline void ar_policy_free_added(struct ar_policy *self, uint64_t bytes)
{
    if (__builtin_expect(self->watch != NULL, 0))
        self->watch->usable_bytes += bytes - bytes % self->watch->unit_bytes;
}

static inline void ar_policy_free_removed(struct ar_policy *self, uint64_t bytes)
{
    if (__builtin_expect(self->watch != NULL, 0))
        self->watch->usable_bytes -= bytes - bytes % self->watch->unit_bytes;
}

/* Callers use these, never the hooks. */
static inline enum ar_status ar_policy_alloc(struct ar_policy *self,
                                             const struct ar_policy_request *request,
                                             struct ar_policy_block *out)
{
    out->requested_bytes = request->bytes;
    return self->ops->alloc(self, request, out);
}

static inline enum ar_status ar_policy_free(struct ar_policy *self,
                                            const struct ar_policy_block *block, uint32_t stream)
{
    return self->ops->free(self, block, stream);
}

static inline void ar_policy_stats(const struct ar_policy *self, struct ar_policy_stats *out)
{
    self->ops->stats(self, out);
}

static inline void ar_policy_walk(const struct ar_policy *self, ar_policy_visit *visit,
                                  void *argument)
{
    self->ops->walk(self, visit, argument);
}

static inline enum ar_status ar_policy_validate(const struct ar_policy *self,
                                                struct ar_error *error)
{
    return self->ops->validate(self, error);
}

static inline void ar_policy_destroy(struct ar_policy *self)
{
    if (self)
        self->ops->destroy(self);
}

/* As the hook; the default where there is none: servable answers with the largest hole, problem
 * with "", would_release, would_fit and report with false, the others do nothing and return OK. Servable is never more than the free bytes for
 * NONE. */
AR_API uint64_t ar_policy_servable(const struct ar_policy *self, enum ar_policy_effort effort);
AR_API enum ar_status ar_policy_use(struct ar_policy *self, const struct ar_policy_block *block,
                                    uint32_t stream);
AR_API void ar_policy_retire(struct ar_policy *self, const struct ar_policy_block *block);
AR_API void ar_policy_progress(struct ar_policy *self);
AR_API enum ar_status ar_policy_trim(struct ar_policy *self, uint64_t keep_bytes);
AR_API const char *ar_policy_problem(const struct ar_policy *self);
AR_API bool ar_policy_would_release(struct ar_policy *self,
                                    const struct ar_policy_request *request);
AR_API bool ar_policy_would_fit(struct ar_policy *self, const struct ar_policy_request *request);
AR_API void ar_policy_end_pool(struct ar_policy *self, uint32_t pool);
AR_API void ar_policy_reset_peaks(struct ar_policy *self);
AR_API bool ar_policy_report(const struct ar_policy *self, size_t index, char *name,
                             size_t name_bytes, uint64_t *value);

/* What every policy must bring: versions that fit, the required hooks, a name, a summary, and a
 * table of options that begins with the common ones. INVALID names what is missing. */
AR_API enum ar_status ar_policy_check(const struct ar_policy_ops *ops,
                                      struct ar_error *error) AR_STATUS_CHECKED;

/* The entry point of a shared object: `const struct ar_policy_ops *allocrig_policy(void)`. */
typedef const struct ar_policy_ops *ar_policy_entry(void);
#define AR_POLICY_ENTRY_NAME "allocrig_policy"

AR_END_DECLS

#endif
