/* A policy to start from. It compiles, works, and passes the conformance tests.
 * 1. A request is rounded up to a power of two, its class.
 * 2. It takes the segment of that class that was freed last.
 * 3. If there is none, a segment is obtained from the driver. If the driver has no memory, all
 *    cached segments are released and it is asked once more.
 * 4. A freed segment is cached for its class.
 *
 * In a copy of this file this comment lists the rules of the copy, with the source of each.
 * allocators/README.md shows each step. */
#include "allocators/base/range_tree.h"
#include "allocators/policy.h"

#define CLASSES 64

extern const struct ar_policy_ops skeleton_policy;
const struct ar_policy_ops *allocrig_policy(void);

/* The options. This struct is filled in from the table below before create is called. Both must
 * begin with the common options. */
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

/* The instance. It begins with the base, the only part that callers know. All memory for metadata
 * comes from the host of the context, so that it is measured. */
struct skeleton {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_range_pool segments; /* `extra`: requested bytes; 0: cached */
    uint32_t by_address;           /* a tree of all segments, for walk */
    uint32_t cached[CLASSES];      /* a list for each class, linked by `next`; 0: empty */
    uint64_t cached_classes;       /* bit c: cached[c] is not empty */
    uint64_t least_bytes, limit_bytes;
    struct ar_policy_stats counted; /* its counters only */
};

/* Rule 1, in three functions: the bytes of a class, the class of a request, and the largest class
 * of at most `bytes` (1 or more). */
static uint64_t class_bytes(unsigned class)
{
    return UINT64_C(1) << class;
}

static unsigned class_of(const struct skeleton *self, uint64_t bytes)
{
    if (bytes < self->least_bytes)
        bytes = self->least_bytes;
    return bytes == 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);
}

static unsigned class_within(uint64_t bytes)
{
    return 63 - (unsigned)__builtin_clzll(bytes);
}

/* ---- the list of a class --------------------------------------------------------------------- */

/* These two keep the totals and the watch of free blocks. */
static void push(struct skeleton *self, unsigned class, uint32_t index)
{
    struct ar_range_node *segment = &self->segments.nodes[index];
    segment->extra = 0;
    segment->next = self->cached[class];
    self->cached[class] = index;
    self->cached_classes |= UINT64_C(1) << class;
    self->base.totals.releasable_bytes += segment->bytes;
    ar_policy_free_added(&self->base, segment->bytes);
}

static uint32_t pop(struct skeleton *self, unsigned class)
{
    uint32_t index = self->cached[class];
    const struct ar_range_node *segment = &self->segments.nodes[index];
    self->cached[class] = segment->next;
    if (!self->cached[class])
        self->cached_classes &= ~(UINT64_C(1) << class);
    self->base.totals.releasable_bytes -= segment->bytes;
    ar_policy_free_removed(&self->base, segment->bytes);
    return index;
}

/* ---- memory from the backing ----------------------------------------------------------------- */

/* Optional. Releases cached segments until at most `keep_bytes` of free bytes are left. */
static enum ar_status skeleton_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct skeleton *self = (struct skeleton *)base;
    while (base->totals.releasable_bytes && ar_policy_free_bytes(&base->totals) > keep_bytes) {
        uint32_t index = pop(self, (unsigned)__builtin_ctzll(self->cached_classes));
        const struct ar_range_node *segment = &self->segments.nodes[index];
        AR_TRY(ar_backing_segment_free(self->backing, segment->address));
        base->totals.reserved_bytes -= segment->bytes;
        self->counted.count.segments_freed++;
        ar_range_tree_remove(&self->segments, &self->by_address, AR_RANGE_BY_ADDRESS, index);
        ar_range_pool_give(&self->segments, index);
    }
    return AR_OK;
}

/* Rule 3. REFUSED: there is no memory, also after all cached segments are released. */
static enum ar_status obtain(struct skeleton *self, uint64_t bytes, uint64_t *address)
{
    for (int tries = 0; tries < 2; tries++) {
        enum ar_status status = AR_REFUSED;
        if (bytes <= self->limit_bytes - self->base.totals.reserved_bytes)
            status = ar_backing_segment_alloc(self->backing, bytes, address);
        if (status != AR_REFUSED || tries == 1 || !self->base.totals.releasable_bytes)
            return status;
        self->counted.count.flushes++;
        self->counted.count.retries++;
        status = skeleton_trim(&self->base, 0);
        if (status)
            return status;
    }
    return AR_REFUSED;
}

/* Adds a segment to the list of a class. */
static enum ar_status fill_class(struct skeleton *self, unsigned class)
{
    uint64_t bytes = class_bytes(class);
    uint64_t address;
    if (!ar_range_pool_reserve(&self->segments, 1))
        return AR_HOST_MEMORY; /* before anything has changed */
    AR_TRY(obtain(self, bytes, &address));
    uint32_t index = ar_range_pool_take(&self->segments);
    self->segments.nodes[index].address = address;
    self->segments.nodes[index].bytes = bytes;
    ar_range_tree_insert(&self->segments, &self->by_address, AR_RANGE_BY_ADDRESS, index);
    self->base.totals.reserved_bytes += bytes;
    self->counted.count.segments_made++;
    push(self, class, index);
    return AR_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Required. NO_MEMORY is an outcome: it changes no live or granted byte. */
static enum ar_status skeleton_alloc(struct ar_policy *base,
                                     const struct ar_policy_request *request,
                                     struct ar_policy_block *out)
{
    struct skeleton *self = (struct skeleton *)base;
    unsigned class = class_of(self, request->bytes);
    if (!self->cached[class]) {
        enum ar_status status = fill_class(self, class);
        if (status) {
            self->counted.count.failures += status == AR_REFUSED;
            return status == AR_REFUSED ? AR_NO_MEMORY : status;
        }
    }
    uint32_t index = pop(self, class);
    struct ar_range_node *segment = &self->segments.nodes[index];
    segment->extra = request->bytes;
    ar_policy_grant(base, out, segment->address, segment->bytes, index); /* index: the cookie */
    return AR_OK;
}

/* Required. Without AR_POLICY_STREAM_ORDERED no other stream uses the block when this is called. */
static enum ar_status skeleton_free(struct ar_policy *base, const struct ar_policy_block *block,
                                    uint32_t stream)
{
    (void)stream;
    struct skeleton *self = (struct skeleton *)base;
    uint32_t index = (uint32_t)block->cookie;
    const struct ar_range_node *segment = &self->segments.nodes[index];
    ar_policy_ungrant(base, segment->extra, segment->bytes);
    push(self, class_of(self, segment->bytes), index);
    return AR_OK;
}

/* ---- inspection ------------------------------------------------------------------------------ */

/* Required, O(1). */
static void skeleton_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    *out = ((const struct skeleton *)base)->counted;
    out->totals = base->totals;
}

/* What can be served: with each effort the largest class that is cached. Because of rule 3, a
 * request that the cache cannot serve releases all of it. With EFFORT_TRIM it is served if its
 * class is within the free bytes and the rest of the limit. */
static void skeleton_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct skeleton *self = (const struct skeleton *)base;
    uint64_t free_bytes = ar_policy_free_bytes(&base->totals), largest = 0, together = 0;
    if (free_bytes) {
        largest = class_bytes(63 - (unsigned)__builtin_clzll(self->cached_classes));
        together = class_bytes(class_within(free_bytes + ar_policy_rest(base, self->limit_bytes)));
    }
    ar_policy_room_fill(out, largest, 0, together < free_bytes ? together : free_bytes);
}

/* Required. Every reserved range, in the order of addresses. */
static void skeleton_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct skeleton *self = (const struct skeleton *)base;
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->segments, self->by_address, at)) != 0;) {
        const struct ar_range_node *segment = &self->segments.nodes[at];
        const struct ar_policy_range range = {
            .address = segment->address,
            .bytes = segment->bytes,
            .requested_bytes = segment->extra,
            .segment_address = segment->address,
            .state = segment->extra ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
        };
        if (!visit(argument, &range))
            return;
    }
}

/* Required. Checks every invariant of the policy. ar_policy_check_totals then compares the totals
 * with the walk. */
static enum ar_status skeleton_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct skeleton *self = (const struct skeleton *)base;
    uint64_t count, cached_bytes = 0;
    if (!ar_range_tree_check(&self->segments, self->by_address, AR_RANGE_BY_ADDRESS, &count))
        return ar_policy_broken(base, "the tree of segments is broken", count, error);
    for (unsigned class = 0; class < CLASSES; class ++) {
        if ((self->cached[class] != 0) != (self->cached_classes >> class & 1))
            return ar_policy_broken(base, "the bit of a class is wrong", class, error);
        for (uint32_t at = self->cached[class]; at; at = self->segments.nodes[at].next) {
            const struct ar_range_node *segment = &self->segments.nodes[at];
            if (segment->extra || segment->bytes != class_bytes(class))
                return ar_policy_broken(base, "a cached segment is used or of another class",
                                        segment->address, error);
            cached_bytes += segment->bytes;
        }
    }
    return ar_policy_check_totals(base, cached_bytes, error);
}

/* Optional: the sentence for a status that stops the run. */
static const char *skeleton_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct skeleton *)base)->backing);
}

/* ---- create and destroy ---------------------------------------------------------------------- */

/* Required. Copies what it needs of the context and the values. */
static enum ar_status skeleton_create(const struct ar_policy_context *context, const void *values,
                                      struct ar_policy **out, struct ar_error *error)
{
    const struct skeleton_values *given = values;
    struct skeleton *self = ar_policy_new(context, &skeleton_policy, sizeof *self, error);
    if (!self)
        return AR_HOST_MEMORY;
    self->backing = context->backing;
    self->least_bytes = given->least_bytes;
    self->limit_bytes = ar_policy_limit(&given->common);
    ar_range_pool_open(&self->segments, context->host);
    *out = &self->base;
    return AR_OK;
}

/* Required. Releases and frees everything, also if blocks are live. */
static void skeleton_destroy(struct ar_policy *base)
{
    struct skeleton *self = (struct skeleton *)base;
    struct ar_host *host = self->segments.host;
    for (uint32_t at = 0; (at = ar_range_tree_next(&self->segments, self->by_address, at)) != 0;)
        (void)ar_backing_segment_free(self->backing, self->segments.nodes[at].address);
    ar_range_pool_close(&self->segments);
    ar_host_free(host, self, sizeof *self);
}

/* Optional hooks that this policy does not need: use, retire, adopt, progress, plan, setting, and
 * others. */
const struct ar_policy_ops skeleton_policy = {
    .name = "skeleton",
    .summary = "powers of two, cached for their class: a policy to start from",
    .reference = "none", /* the allocator that it imitates, with version; or the paper */
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = skeleton_options,
    .values_bytes = sizeof(struct skeleton_values),
    .create = skeleton_create,
    AR_POLICY_HOOKS(skeleton),
    .room = skeleton_room,
    .trim = skeleton_trim,
    .problem = skeleton_problem,
};

/* The entry point of a shared object. A policy that is part of the program has neither it nor its
 * prototype above. */
const struct ar_policy_ops *allocrig_policy(void)
{
    return &skeleton_policy;
}
