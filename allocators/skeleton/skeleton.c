/* A policy to start from: it compiles, works, and passes the conformance tests. What it does:
 * 1. A request is rounded up to a power of two, its class.
 * 2. Of the segments kept for that class the one freed last is handed out.
 * 3. Where none is kept, the driver is asked for one; when it has no memory either, all that is
 *    kept is given back and it is asked once more.
 * 4. A freed segment is kept for its class.
 *
 * To make yours: copy this file, rename `skeleton`, and replace the rules. Each hook below says
 * whether it is required. As a shared object:
 *     cc -std=c11 -shared -fPIC -I. -o mine.so mine.c
 *     allocrig run -p ./mine.so:least=4KiB -w order_flip
 * As part of the program: put it into allocators/policies/, leave out the last function, and add
 * the line POLICY(skeleton_policy) to allocators/policies.def. */
#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"

#define CLASSES 64

extern const struct ar_policy_ops skeleton_policy;
const struct ar_policy_ops *allocrig_policy(void);

/* Options: this struct is filled from the table below before create is called. The common ones
 * come first, in both. Required. */
struct skeleton_values {
    struct ar_policy_common common;
    uint64_t least_bytes;
};

static const struct ar_option skeleton_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"least", AR_OPTION_BYTES, offsetof(struct skeleton_values, least_bytes), "512", 1, 1073741824,
     NULL, "bytes of the smallest class; rounded up to a power of two"},
    {0},
};

/* The instance. The base comes first: callers know only that. All memory for metadata comes from
 * the host of the context, so that it is measured. */
struct skeleton {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_range_pool segments; /* extra: bytes asked for; 0: kept, not in use */
    uint32_t by_address;           /* the tree of all of them, for walk */
    uint32_t kept[CLASSES];        /* per class, linked by `next`; 0: none */
    uint64_t kept_classes;         /* bit c: kept[c] is not empty */
    uint64_t least_bytes, limit_bytes;
    struct ar_policy_stats counted; /* its counters only */
};

static unsigned class_of(const struct skeleton *self, uint64_t bytes)
{
    if (bytes < self->least_bytes)
        bytes = self->least_bytes;
    return bytes == 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);
}

/* Required. Copies what it needs of the context and the values; on failure nothing is left. */
static enum ar_status skeleton_create(const struct ar_policy_context *context, const void *values,
                                      struct ar_policy **out, struct ar_error *error)
{
    const struct skeleton_values *given = values;
    struct skeleton *self = ar_host_alloc(context->host, sizeof *self); /* zeroed */
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for policy skeleton");
    self->base.ops = &skeleton_policy;
    self->backing = context->backing;
    self->least_bytes = given->least_bytes;
    self->limit_bytes = given->common.limit_bytes ? given->common.limit_bytes : UINT64_MAX;
    ar_range_pool_open(&self->segments, context->host);
    *out = &self->base;
    return AR_OK;
}

/* Gives one kept segment of a class back to the driver. */
static enum ar_status give_back(struct skeleton *self, unsigned class)
{
    uint32_t index = self->kept[class];
    struct ar_range_node *segment = &self->segments.nodes[index];
    enum ar_status status = ar_backing_segment_free(self->backing, segment->address);
    if (status)
        return status;
    ar_policy_free_removed(&self->base, segment->bytes);
    self->base.totals.reserved_bytes -= segment->bytes;
    self->base.totals.releasable_bytes -= segment->bytes;
    self->counted.count.segments_freed++;
    self->kept[class] = segment->next;
    if (!self->kept[class])
        self->kept_classes &= ~(UINT64_C(1) << class);
    ar_range_tree_remove(&self->segments, &self->by_address, AR_RANGE_BY_ADDRESS, index);
    ar_range_pool_give(&self->segments, index);
    return AR_OK;
}

/* Not required. Gives back what is cached until at most `keep_bytes` of it are left. */
static enum ar_status skeleton_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct skeleton *self = (struct skeleton *)base;
    while (self->kept_classes && ar_policy_free_bytes(&base->totals) > keep_bytes) {
        enum ar_status status = give_back(self, (unsigned)__builtin_ctzll(self->kept_classes));
        if (status)
            return status;
    }
    return AR_OK;
}

static bool free_segment(void *argument, const struct ar_range_node *segment)
{
    struct skeleton *self = argument;
    (void)ar_backing_segment_free(self->backing, segment->address);
    return true;
}

/* Required. Gives everything back, also with blocks live. */
static void skeleton_destroy(struct ar_policy *base)
{
    struct skeleton *self = (struct skeleton *)base;
    struct ar_host *host = self->segments.host;
    ar_range_tree_walk(&self->segments, self->by_address, free_segment, self);
    ar_range_pool_close(&self->segments);
    ar_host_free(host, self, sizeof *self);
}

/* Rule 3. REFUSED: no memory even after all that was kept is given back. */
static enum ar_status new_segment(struct skeleton *self, uint64_t bytes, uint64_t *address)
{
    for (int tries = 0; tries < 2; tries++) {
        enum ar_status status = AR_REFUSED;
        if (bytes <= self->limit_bytes - self->base.totals.reserved_bytes)
            status = ar_backing_segment_alloc(self->backing, bytes, address);
        if (status != AR_REFUSED)
            return status;
        if (tries == 1 || !self->kept_classes)
            break;
        self->counted.count.flushes++;
        self->counted.count.retries++;
        status = skeleton_trim(&self->base, 0);
        if (status)
            return status;
    }
    return AR_REFUSED;
}

/* Puts a new segment of the class in front of those kept. */
static enum ar_status fill_class(struct skeleton *self, unsigned class)
{
    uint64_t bytes = UINT64_C(1) << class;
    uint64_t address;
    if (!ar_range_pool_reserve(&self->segments, 1))
        return AR_HOST_MEMORY;
    enum ar_status status = new_segment(self, bytes, &address);
    if (status)
        return status;
    uint32_t index = ar_range_pool_take(&self->segments);
    self->segments.nodes[index].address = address;
    self->segments.nodes[index].bytes = bytes;
    ar_range_tree_insert(&self->segments, &self->by_address, AR_RANGE_BY_ADDRESS, index);
    self->kept[class] = index;
    self->kept_classes |= UINT64_C(1) << class;
    self->base.totals.reserved_bytes += bytes;
    self->base.totals.releasable_bytes += bytes;
    self->counted.count.segments_made++;
    ar_policy_free_added(&self->base, bytes);
    return AR_OK;
}

/* Required. NO_MEMORY is an outcome and changes no live or granted byte. */
static enum ar_status skeleton_alloc(struct ar_policy *base,
                                     const struct ar_policy_request *request,
                                     struct ar_policy_block *out)
{
    struct skeleton *self = (struct skeleton *)base;
    unsigned class = class_of(self, request->bytes);
    if (!self->kept[class]) {
        enum ar_status status = fill_class(self, class);
        if (status) {
            self->counted.count.failures += status == AR_REFUSED;
            return status == AR_REFUSED ? AR_NO_MEMORY : status;
        }
    }
    uint32_t index = self->kept[class];
    struct ar_range_node *segment = &self->segments.nodes[index];
    self->kept[class] = segment->next;
    if (!self->kept[class])
        self->kept_classes &= ~(UINT64_C(1) << class);
    segment->extra = request->bytes;
    ar_policy_free_removed(base, segment->bytes);
    out->address = segment->address;
    out->granted_bytes = segment->bytes;
    out->cookie = index;
    base->totals.releasable_bytes -= segment->bytes;
    base->totals.granted_bytes += segment->bytes;
    base->totals.live_bytes += request->bytes;
    base->totals.live_blocks++;
    return AR_OK;
}

/* Required. Without AR_POLICY_STREAM_ORDERED the caller has seen to it that no other stream uses
 * the block any more. */
static enum ar_status skeleton_free(struct ar_policy *base, const struct ar_policy_block *block,
                                    uint32_t stream)
{
    (void)stream;
    struct skeleton *self = (struct skeleton *)base;
    uint32_t index = (uint32_t)block->cookie;
    struct ar_range_node *segment = &self->segments.nodes[index];
    unsigned class = class_of(self, segment->bytes);
    base->totals.live_bytes -= segment->extra;
    base->totals.granted_bytes -= segment->bytes;
    base->totals.releasable_bytes += segment->bytes;
    base->totals.live_blocks--;
    ar_policy_free_added(base, segment->bytes);
    segment->extra = 0;
    segment->next = self->kept[class];
    self->kept[class] = index;
    self->kept_classes |= UINT64_C(1) << class;
    return AR_OK;
}

/* Required, O(1). */
static void skeleton_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct skeleton *self = (const struct skeleton *)base;
    *out = self->counted;
    out->totals = base->totals;
    if (self->kept_classes)
        out->largest_free_block_bytes = UINT64_C(1) << (63 - __builtin_clzll(self->kept_classes));
}

struct walker {
    ar_policy_visit *visit;
    void *argument;
};

static bool show(void *argument, const struct ar_range_node *segment)
{
    const struct walker *walker = argument;
    const struct ar_policy_range range = {
        .address = segment->address,
        .bytes = segment->bytes,
        .requested_bytes = segment->extra,
        .segment_address = segment->address,
        .state = segment->extra ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
    };
    return walker->visit(walker->argument, &range);
}

/* Required. Every range that is held, in address order. */
static void skeleton_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct skeleton *self = (const struct skeleton *)base;
    struct walker walker = {visit, argument};
    ar_range_tree_walk(&self->segments, self->by_address, show, &walker);
}

struct sums {
    uint64_t live, granted, held;
};

static bool add_up(void *argument, const struct ar_range_node *segment)
{
    struct sums *sums = argument;
    sums->live += segment->extra;
    sums->granted += segment->extra ? segment->bytes : 0;
    sums->held += segment->bytes;
    return segment->extra <= segment->bytes;
}

/* Required. Whatever must always hold, checked; the first that does not as a sentence. */
static enum ar_status skeleton_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct skeleton *self = (const struct skeleton *)base;
    struct sums sums = {0};
    uint64_t count;
    if (!ar_range_tree_check(&self->segments, self->by_address, AR_RANGE_BY_ADDRESS, &count) ||
        !ar_range_tree_walk(&self->segments, self->by_address, add_up, &sums))
        return ar_error_set(error, AR_CORRUPT, "policy skeleton: the tree of segments is broken");
    if (sums.live != base->totals.live_bytes || sums.granted != base->totals.granted_bytes ||
        sums.held != base->totals.reserved_bytes)
        return ar_error_set(error, AR_CORRUPT,
                            "policy skeleton: the totals are not those of the segments");
    for (unsigned class = 0; class < CLASSES; class ++) {
        if ((self->kept[class] != 0) != ((self->kept_classes >> class & 1) != 0))
            return ar_error_set(error, AR_CORRUPT, "policy skeleton: the bit of class %u is wrong",
                                class);
        for (uint32_t at = self->kept[class]; at; at = self->segments.nodes[at].next)
            if (self->segments.nodes[at].extra || self->segments.nodes[at].bytes != UINT64_C(1)
                                                                                        << class)
                return ar_error_set(error, AR_CORRUPT,
                                    "policy skeleton: a segment kept for class %u is in use or of "
                                    "another size",
                                    class);
    }
    return AR_OK;
}

/* Not required: the sentence behind a status that stops the run. */
static const char *skeleton_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct skeleton *)base)->backing);
}

/* Hooks that are not required and not needed here: servable (where a request of the size of the
 * largest hole might not be served from it), use, retire, adopt, progress, plan, setting. */
const struct ar_policy_ops skeleton_policy = {
    .abi = AR_POLICY_ABI,                                                     /* required */
    .ops_bytes = sizeof(struct ar_policy_ops),                                /* required */
    .name = "skeleton",                                                       /* required */
    .summary = "powers of two, kept for their class: a policy to start from", /* required */
    .reference = "none; the template of allocators/skeleton",                 /* required */
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = skeleton_options,                    /* required */
    .values_bytes = sizeof(struct skeleton_values), /* required */
    .create = skeleton_create,
    .destroy = skeleton_destroy,
    .alloc = skeleton_alloc,
    .free = skeleton_free,
    .stats = skeleton_stats,
    .walk = skeleton_walk,
    .validate = skeleton_validate,
    .trim = skeleton_trim,
    .problem = skeleton_problem,
};

/* Required in a shared object, and only there. */
const struct ar_policy_ops *allocrig_policy(void)
{
    return &skeleton_policy;
}
