/* The contract of an allocator policy: it decides where a request goes. One policy is one file in
 * policies/ and one line in policies.def; allocators/README.md shows how to write one.
 *
 * A policy knows no device, clock, trace, file, thread or global variable, and never prints. It
 * takes device memory from a backing (backing.h) and all of its metadata from a host (base/host.h).
 * Addresses are numbers. The same calls always lead to the same addresses.
 *
 * An instance is used by one thread at a time. Requests have 0 < bytes < 2^60. */
#ifndef ALLOCATORS_POLICY_H
#define ALLOCATORS_POLICY_H

#include "allocators/backing.h"
#include "allocators/base/host.h"
#include "allocators/options.h"

AR_BEGIN_DECLS

#define AR_POLICY_ABI 1u

struct ar_policy;

/* One allocation that the program asks for. */
struct ar_policy_request {
    uint64_t bytes;
    uint64_t alignment; /* a power of two; 0: any that the policy gives */
    uint32_t stream;    /* counted from 0, the default stream */
    uint32_t pool;      /* the id of a private pool; 0: the common pool */
    uint8_t upper_end;  /* 1: place it at the upper end of a two-ended arena */
    uint8_t may_fail;   /* 1: a probe; the program goes on if it fails */
    uint8_t mempool;    /* AR_MEMPOOL_x: the pool is a torch.cuda.MemPool; 0: not known */
};

/* Bits of `mempool`. Each request of a pool has the same. */
#define AR_MEMPOOL_PLAIN      0x1u
#define AR_MEMPOOL_USE_ON_OOM 0x2u /* other requests may take its free memory when there is none */
#define AR_MEMPOOL_NO_SPLIT   0x4u /* its free blocks are handed out whole */
#define AR_MEMPOOL_ALLOCATOR                                                                       \
    0x8u /* MemPool(allocator=..): its segments come from another allocator */
#define AR_MEMPOOL_CAPTURED 0x10u /* of a capture: a request releases no cache in any release */

/* What the policy returns for a request. The caller keeps it and passes it back unchanged. */
struct ar_policy_block {
    uint64_t address;
    uint64_t granted_bytes;   /* at least the requested bytes */
    uint64_t requested_bytes; /* filled in by ar_policy_alloc */
    uint64_t cookie;          /* for the policy: an index of or a pointer to its record */
};

/* The policy keeps these up to date in its base struct. Callers may read them between calls. */
struct ar_policy_totals {
    uint64_t live_bytes;       /* requested, and the free not yet requested */
    uint64_t granted_bytes;    /* of the blocks for these requests */
    uint64_t reserved_bytes;   /* obtained from the backing, as the imitated allocator counts */
    uint64_t pending_bytes;    /* free requested, but other streams may still use them */
    uint64_t releasable_bytes; /* free, in segments or whole pages with no live or pending byte */
    uint64_t live_blocks;
    uint64_t overhead_bytes; /* of headers that the policy keeps in reserved memory */
};

/* Free bytes are reserved, and neither granted nor pending nor headers. */
static inline uint64_t ar_policy_free_bytes(const struct ar_policy_totals *totals)
{
    return totals->reserved_bytes - totals->granted_bytes - totals->pending_bytes -
           totals->overhead_bytes;
}

/* allocators/README.md, "Counters", says when to count. */
#define AR_POLICY_COUNTERS(X)                                                                      \
    X(splits, "a free range was divided to serve a request")                                       \
    X(merges, "two free ranges became one")                                                        \
    X(segments_made, "ranges obtained from the backing")                                           \
    X(segments_freed, "ranges released to the backing")                                            \
    X(flushes, "times that all cached memory was to be released to serve a request")               \
    X(retries, "requests that were tried again after memory was released")                         \
    X(failures, "requests that could not be served")                                               \
    X(remapped_bytes, "bytes of pages unmapped at one place and mapped at another")

/* The full statistics, in O(1). */
struct ar_policy_stats {
    struct ar_policy_totals totals;
    uint64_t largest_free_block_bytes, stranded_by_stream_bytes; /* as in ar_policy_room */
    struct {
#define X(name, help) uint64_t name;
        AR_POLICY_COUNTERS(X)
#undef X
    } count;
};

/* The driver work that is allowed to serve a request. Each step includes those before it. */
enum ar_policy_effort {
    AR_POLICY_EFFORT_NONE, /* no call to the backing */
    AR_POLICY_EFFORT_MAP,  /* map calls, for memory that is already reserved */
    AR_POLICY_EFFORT_WAIT, /* waits for pending frees */
    AR_POLICY_EFFORT_TRIM, /* release of all cached memory, to obtain it again as one segment */
    AR_POLICY_EFFORT_COUNT
};

/* What the policy can serve now, and for the stream of the last request. */
struct ar_policy_room {
    uint64_t largest_free_block_bytes; /* the largest free range that could be handed out */
    uint64_t stranded_by_stream_bytes; /* free, but not for the stream of the last request */
    uint64_t servable_bytes[AR_POLICY_EFFORT_COUNT]; /* the largest request that can be served */
};

enum ar_policy_range_state {
    AR_POLICY_RANGE_USED,
    AR_POLICY_RANGE_FREE,     /* a free block */
    AR_POLICY_RANGE_PENDING,  /* free requested, not completed */
    AR_POLICY_RANGE_UNMAPPED, /* address space without memory; not in reserved_bytes */
    AR_POLICY_RANGE_OVERHEAD, /* a header of the policy */
};

struct ar_policy_range {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes; /* of a USED range; of a PENDING range if still known */
    uint64_t segment_address; /* the start of its segment */
    uint32_t stream;
    uint32_t pool;
    uint32_t part; /* blocks of one part do not depend on other parts' while memory suffices */
    enum ar_policy_range_state state;
};

/* Returns false to stop the walk. */
typedef bool ar_policy_visit(void *argument, const struct ar_policy_range *range);

/* For offline policies: the lifetime of a block, in events of the trace, half-open. */
struct ar_policy_lifetime {
    uint64_t bytes;
    uint64_t born, dies;
};

enum ar_policy_capability {
    AR_POLICY_STREAM_ORDERED = 1u << 0,    /* keeps a block until no other stream uses it */
    AR_POLICY_OPAQUE = 1u << 1,            /* its free blocks are unknown: their metrics are null */
    AR_POLICY_OFFLINE = 1u << 2,           /* needs plan() before the first request */
    AR_POLICY_NEEDS_MAPPING = 1u << 3,     /* needs virtual memory in the backing */
    AR_POLICY_WATCHES_FREE = 1u << 4,      /* reports free blocks: ar_policy_free_added, _removed */
    AR_POLICY_HONOURS_ALIGNMENT = 1u << 5, /* serves any power-of-two alignment; without it
                                              `alignment` is ignored */
    AR_POLICY_UNRANKED = 1u << 6,          /* a check or a bound: shown, never ranked */
    AR_POLICY_OVERLAPS = 1u << 7,          /* hands out addresses without memory: `null` only */
    AR_POLICY_PINNED = 1u << 8,            /* for pinned host memory; not in `-p all` */
    AR_POLICY_TRIM_KEEPS = 1u << 9,        /* trim(0) leaves releasable bytes */
};

/* The arguments of `create`. The caller owns backing and host, which outlive the policy. */
struct ar_policy_context {
    struct ar_backing *backing;
    struct ar_host *host;
    uint64_t seed;  /* for policies that use random numbers */
    bool unguarded; /* the caller measures times: no checks around a policy of a shared object */
};

/* Every policy has these options. Its struct of values starts with this struct. */
struct ar_policy_common {
    uint64_t limit_bytes; /* maximum of reserved_bytes; 0: no limit */
};

#define AR_POLICY_COMMON_OPTIONS                                                                   \
    {                                                                                              \
        "limit", AR_OPTION_BYTES, offsetof(struct ar_policy_common, limit_bytes), "0", 0, 0, NULL, \
            "maximum of reserved bytes; 0: no limit but the device"                                \
    }

struct ar_policy_ops {
    uint32_t abi;                    /* AR_POLICY_ABI */
    uint32_t ops_bytes;              /* sizeof(struct ar_policy_ops), for shared objects */
    const char *name;                /* short, unique, used on the command line */
    const char *summary;             /* one line */
    const char *reference;           /* what it imitates, with the version; or the paper */
    const char *const *recorders;    /* recorders whose traces it reproduces; ends with NULL */
    uint32_t capabilities;           /* enum ar_policy_capability */
    const struct ar_option *options; /* ends with a NULL name */
    size_t values_bytes;             /* size of the struct of values */

    /* Required. `values` is valid during the call only. If it fails, it frees all that it took, and
     * the whole command ends with that error. A policy that needs memory from the backing takes it
     * at the first request, where a refusal is an outcome of the run. */
    enum ar_status (*create)(const struct ar_policy_context *context, const void *values,
                             struct ar_policy **out, struct ar_error *error);

    /* Required. Releases and frees everything, also if blocks are live or pending. The device has
     * no pending work. Never fails. */
    void (*destroy)(struct ar_policy *self);

    /* Required. OK; NO_MEMORY if the request cannot be served; another status stops the run. Fills
     * address, granted_bytes and cookie and updates the totals. */
    enum ar_status (*alloc)(struct ar_policy *self, const struct ar_policy_request *request,
                            struct ar_policy_block *out);

    /* Required. The program frees the block on `stream`. The block is one that alloc returned and
     * that is not freed yet; the decorator `checked` finds callers that break this. */
    enum ar_status (*free)(struct ar_policy *self, const struct ar_policy_block *block,
                           uint32_t stream);

    /* Required, O(1). Totals and counters; ar_policy_stats adds what `room` says. */
    void (*stats)(const struct ar_policy *self, struct ar_policy_stats *out);

    /* Required. Visits every range in the order of addresses, without gaps in a segment. */
    void (*walk)(const struct ar_policy *self, ar_policy_visit *visit, void *argument);

    /* Required. Checks every invariant. CORRUPT: a sentence says which one is broken, and where. */
    enum ar_status (*validate)(const struct ar_policy *self, struct ar_error *error);

    /* What can be served with each effort, and the two figures of free blocks. NULL: the policy
     * never has a free block. The conformance test requests so many bytes, and more. The answers
     * change only by calls to the policy, not with time.
     *
     * EFFORT_TRIM: let F be the free bytes that can be released, and R what the limit still allows
     * (ar_policy_rest). The answer is F, or the largest free block if that is more. A request of
     * so many bytes must be served, and one of more than the answer + R must end with NO_MEMORY.
     * Over mapped pages a request may be larger by the free parts of pages in use that the block
     * can reuse; in vmm a part of each handle that is cut. With classes of sizes the answer is the
     * smaller one of F and the largest class within F + R. Where a small request needs a larger
     * segment than a large one (torch, gmlake), the limit may allow only the latter. */
    void (*room)(const struct ar_policy *self, struct ar_policy_room *out);

    /* All hooks below are optional. */

    /* The block is used on another stream too. */
    enum ar_status (*use)(struct ar_policy *self, const struct ar_policy_block *block,
                          uint32_t stream);

    /* The program requests the free. The hook `free` follows when it is completed. */
    void (*retire)(struct ar_policy *self, const struct ar_policy_block *block);

    /* Before the first request: start from ranges that exist already, for a trace that begins in
     * the middle of a program. Ranges come in the order of addresses. Those of a segment (the same
     * segment_address) follow each other without gaps; UNMAPPED ranges stand between the pages of a
     * segment that grows by pages. The backing has this memory; its pages have the handle 0. A USED
     * range may be shorter than the block that the policy makes for such a request, if only the
     * requested bytes are known; a FREE range follows then. The block of the k-th USED range is
     * written to blocks[k], from 0. INVALID: the policy cannot reach this state. After a failure
     * the policy can only be destroyed. */
    enum ar_status (*adopt)(struct ar_policy *self, const struct ar_policy_range *ranges,
                            size_t count, struct ar_policy_block *blocks);

    /* Time has passed, or a stream has finished: poll pending frees. */
    void (*progress)(struct ar_policy *self);

    /* Release whole free segments or pages until at most `keep_bytes` of free bytes are left; a
     * policy may release all of them, if the imitated allocator does. With 0 no releasable bytes
     * are left, unless the policy has AR_POLICY_TRIM_KEEPS. */
    enum ar_status (*trim)(struct ar_policy *self, uint64_t keep_bytes);

    /* Offline: all lifetimes of the trace, before the first request. */
    enum ar_status (*plan)(struct ar_policy *self, const struct ar_policy_lifetime *lifetimes,
                           size_t count);

    /* The text that a user sets to get this policy: an environment variable or a line of code.
     * False: there is none. */
    bool (*setting)(const struct ar_policy *self, char *text, size_t text_bytes);

    /* The sentence for the last status that stops a run; "": there is none. Owned by the policy. */
    const char *(*problem)(const struct ar_policy *self);

    /* Whether the request would now release cached memory to the backing before it is served. A dry
     * run: it polls pending frees if the request would do so, and changes nothing else. */
    bool (*would_release)(struct ar_policy *self, const struct ar_policy_request *request);

    /* Figures under the names of the imitated allocator, by index from 0. False: there are no
     * more. */
    bool (*report)(const struct ar_policy *self, size_t index, char *name, size_t name_bytes,
                   uint64_t *value);

    /* The program has ended a private pool. Its free memory may be released with other cached
     * memory from now on. */
    void (*end_pool)(struct ar_policy *self, uint32_t pool);

    /* Whether the request would now be served from reserved memory, without a call to the backing
     * for memory. A dry run, as would_release. */
    bool (*would_fit)(struct ar_policy *self, const struct ar_policy_request *request);

    /* Resets the peaks of `report` to the present values. */
    void (*reset_peaks)(struct ar_policy *self);

    /* The program has deleted a private pool: its free memory is released now, and that of no other
     * pool. What is live in it is released with other cached memory later. */
    enum ar_status (*delete_pool)(struct ar_policy *self, uint32_t pool);

    /* The program changes the imitated allocator: "settings,CONF" or "limit,BYTES", as the notes of
     * a trace. The change holds from the next call on. INVALID, UNSUPPORTED: with a sentence. */
    enum ar_status (*change)(struct ar_policy *self, const char *change, struct ar_error *error);

    /* Called after the watch was set or removed. A policy with two copies of alloc and free, with
     * and without reports to the watch, points `ops` to the one to use. Callers that keep hooks
     * read them again then; so no other call of the policy changes `ops`. */
    void (*watched)(struct ar_policy *self);
};

/* Policies with AR_POLICY_WATCHES_FREE keep the bytes that can serve requests of `unit_bytes`: the
 * sum of floor(bytes / unit) * unit over all free blocks. */
struct ar_policy_free_watch {
    uint64_t unit_bytes;
    uint64_t usable_bytes;
};

/* The base of every instance: the first member of the struct of the policy. */
struct ar_policy {
    const struct ar_policy_ops *ops;
    struct ar_policy_totals totals;
    struct ar_policy_free_watch *watch; /* NULL: none. Set by ar_policy_watch before the first
                                         * request, with the free blocks that `create` made counted
                                         * by a walk */
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

/* A free block takes the place of another: one look at the watch. */
static inline void ar_policy_free_replaced(struct ar_policy *self, uint64_t removed_bytes,
                                           uint64_t added_bytes)
{
    if (__builtin_expect(self->watch != NULL, 0)) {
        ar_policy_free_removed(self, removed_bytes);
        ar_policy_free_added(self, added_bytes);
    }
}

static inline void ar_policy_watch(struct ar_policy *self, struct ar_policy_free_watch *watch)
{
    self->watch = watch;
    if (self->ops->watched)
        self->ops->watched(self);
}

/* Callers use these functions. Only the loops of sim/replay (engine.c, exact.c) call hooks
 * directly, to save loads and tests for NULL. */
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

AR_API void ar_policy_stats(const struct ar_policy *self, struct ar_policy_stats *out);

/* Without the hook: room and servable are 0, problem is "", would_release, would_fit and report
 * false; the others do nothing and return OK. Servable with EFFORT_NONE is at most the free
 * bytes. */
static inline void ar_policy_room(const struct ar_policy *self, struct ar_policy_room *out)
{
    if (self->ops->room)
        self->ops->room(self, out);
    else
        memset(out, 0, sizeof *out); /* the literal would be no C++ */
}

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
AR_API enum ar_status ar_policy_delete_pool(struct ar_policy *self, uint32_t pool);
AR_API enum ar_status ar_policy_change(struct ar_policy *self, const char *change,
                                       struct ar_error *error);
AR_API void ar_policy_reset_peaks(struct ar_policy *self);
AR_API bool ar_policy_report(const struct ar_policy *self, size_t index, char *name,
                             size_t name_bytes, uint64_t *value);

/* Checks what every policy must have: the right versions, the required hooks, a name, a summary,
 * and a table of options that begins with the common ones. INVALID says what is missing. */
AR_API enum ar_status ar_policy_check(const struct ar_policy_ops *ops, struct ar_error *error);

/* ---- For the code of policies ---------------------------------------------------------------- */

/* A zeroed instance of `bytes` with its ops set, in host memory. NULL: no host memory, with a
 * sentence. */
AR_API void *ar_policy_new(const struct ar_policy_context *context, const struct ar_policy_ops *ops,
                           size_t bytes, struct ar_error *error);

/* The option `limit`; UINT64_MAX if it is not set. */
static inline uint64_t ar_policy_limit(const struct ar_policy_common *values)
{
    return values->limit_bytes ? values->limit_bytes : UINT64_MAX;
}

/* In `room`: each effort serves the largest free block, and EFFORT_TRIM `released_bytes` if that is
 * more. */
static inline void ar_policy_room_fill(struct ar_policy_room *out, uint64_t largest_bytes,
                                       uint64_t stranded_bytes, uint64_t released_bytes)
{
    out->largest_free_block_bytes = largest_bytes;
    out->stranded_by_stream_bytes = stranded_bytes;
    out->servable_bytes[AR_POLICY_EFFORT_NONE] = largest_bytes;
    out->servable_bytes[AR_POLICY_EFFORT_MAP] = largest_bytes;
    out->servable_bytes[AR_POLICY_EFFORT_WAIT] = largest_bytes;
    out->servable_bytes[AR_POLICY_EFFORT_TRIM] =
        released_bytes > largest_bytes ? released_bytes : largest_bytes;
}

/* What the limit still allows the policy to obtain, for `room`; 0 if there is no limit. */
static inline uint64_t ar_policy_rest(const struct ar_policy *self, uint64_t limit_bytes)
{
    bool limited = limit_bytes != UINT64_MAX && limit_bytes > self->totals.reserved_bytes;
    return limited ? limit_bytes - self->totals.reserved_bytes : 0;
}

/* At the end of alloc: fills in the block and counts it. */
static inline void ar_policy_grant(struct ar_policy *self, struct ar_policy_block *out,
                                   uint64_t address, uint64_t bytes, uint64_t cookie)
{
    out->address = address;
    out->granted_bytes = bytes;
    out->cookie = cookie;
    self->totals.live_bytes += out->requested_bytes;
    self->totals.granted_bytes += bytes;
    self->totals.live_blocks++;
}

/* In free, or in retire: the block is no longer live. */
static inline void ar_policy_ungrant(struct ar_policy *self, uint64_t requested_bytes,
                                     uint64_t granted_bytes)
{
    self->totals.live_bytes -= requested_bytes;
    self->totals.granted_bytes -= granted_bytes;
    self->totals.live_blocks--;
}

/* In validate: compares the totals and the watch with the sums over the policy's own walk, which
 * must be in the order of addresses. `releasable_bytes` is recounted by the policy: the free bytes
 * of segments or pages without a live or pending byte. CORRUPT says which number differs. */
AR_API enum ar_status ar_policy_check_totals(const struct ar_policy *self,
                                             uint64_t releasable_bytes, struct ar_error *error);

/* In validate: CORRUPT with the sentence "policy NAME: WHAT, at ADDRESS". */
AR_API enum ar_status ar_policy_broken(const struct ar_policy *self, const char *what,
                                       uint64_t address, struct ar_error *error);

/* In the ops: the version, and all required hooks but `create`: NAME_destroy, NAME_alloc and so
 * on. */
#define AR_POLICY_HOOKS(name) AR_POLICY_HOOKS_WITH(name, name##_alloc, name##_free)

/* The same with other names of the two hooks that are called most. */
#define AR_POLICY_HOOKS_WITH(name, alloc_hook, free_hook)                                          \
    .abi = AR_POLICY_ABI, .ops_bytes = sizeof(struct ar_policy_ops), .destroy = name##_destroy,    \
    .alloc = (alloc_hook), .free = (free_hook), .stats = name##_stats, .walk = name##_walk,        \
    .validate = name##_validate

/* The entry point of a shared object: `const struct ar_policy_ops *allocrig_policy(void)`. */
typedef const struct ar_policy_ops *ar_policy_entry(void);
#define AR_POLICY_ENTRY_NAME "allocrig_policy"

AR_END_DECLS

#endif
