/* Alloc and free of the BFC family: rules 1 and 2 of bfc.h. The short path serves requests of one
 * end with the usual alignment without a call. The rest goes through two_ended.c. */
#include "allocators/policies/bfc/bfc.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Serves the request from free memory. False: no chunk is large enough. One record must be
 * spare. */
AR_INLINE bool take(struct bfc *self, const struct ar_policy_request *request,
                    struct ar_policy_block *out)
{
    uint64_t bytes = ar_size_round_up(request->bytes, BFC_ROUNDING_BYTES);
    struct ar_span *chunks = self->chunks.at;
    struct ar_span_place place;
    if (UNLIKELY(!ar_span_index_best(&self->index, chunks, bytes, &place)))
        return false;
    uint32_t chunk = *place.link;
    struct ar_span *found = &chunks[chunk];
    uint64_t slack = found->bytes - bytes;
    bool splits = slack >= bytes || slack >= self->split_bytes;
    if (bfc_is_region(found))
        self->base.totals.releasable_bytes -= found->bytes;
    ar_policy_free_replaced(&self->base, found->bytes, splits ? slack : 0);
    if (splits) {
        uint32_t rest = bfc_cut(self, chunk, bytes);
        ar_span_index_replace(&self->index, chunks, &place, rest);
    } else {
        ar_span_index_unlink(&self->index, chunks, &place);
    }
    bfc_hand_out(self, chunk, request, out);
    return true;
}

static enum ar_status attempt(struct bfc *self, const struct ar_policy_request *request,
                              struct ar_policy_block *out)
{
    AR_TRY_HOST(ar_spans_reserve(&self->chunks, self->host, 2));
    bool served = request->alignment >= self->general_alignment
                      ? bfc_take_general(self, request, out)
                      : take(self, request, out);
    return served ? AR_OK : AR_NO_MEMORY;
}

/* Obtains a region for the request and serves it there. */
static enum ar_status extend_and_attempt(struct bfc *self, const struct ar_policy_request *request,
                                         struct ar_policy_block *out)
{
    AR_TRY(bfc_regions_extend(self, ar_size_round_up(request->bytes, BFC_ROUNDING_BYTES)));
    return attempt(self, request, out);
}

/* All attempts for a request, in order. */
static __attribute__((noinline)) enum ar_status
alloc_slowly(struct bfc *self, const struct ar_policy_request *request, struct ar_policy_block *out)
{
    enum ar_status status = attempt(self, request, out);
    if (status != AR_NO_MEMORY)
        return status;
    status = extend_and_attempt(self, request, out);
    if (status != AR_NO_MEMORY)
        return status;
    bool released;
    AR_TRY(
        bfc_regions_collect(self, ar_size_round_up(request->bytes, BFC_ROUNDING_BYTES), &released));
    status = AR_NO_MEMORY;
    if (released) {
        self->tally.count.retries++;
        status = extend_and_attempt(self, request, out);
    }
    if (status == AR_NO_MEMORY)
        self->tally.count.failures++;
    return status;
}

enum ar_status bfc_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                         struct ar_policy_block *out)
{
    struct bfc *self = (struct bfc *)base;
    if (UNLIKELY(request->alignment >= self->general_alignment || self->chunks.spare_count == 0 ||
                 !take(self, request, out)))
        return alloc_slowly(self, request, out);
    return AR_OK;
}

/* Frees a used chunk in a pool of one end and merges it with its free neighbours. One of them keeps
 * its place in the index if possible. */
static inline void put_back(struct bfc *self, uint32_t chunk)
{
    struct ar_span *chunks = self->chunks.at;
    uint32_t next = chunks[chunk].next;
    uint32_t previous = chunks[chunk].previous;
    bool next_used = chunks[next].used;
    uint64_t bytes = chunks[chunk].bytes;
    uint32_t into = chunk;
    uint32_t from = next;
    if (!chunks[previous].used) {
        into = previous;
        from = previous;
        if (!next_used) {
            ar_span_index_remove(&self->index, chunks, next);
            ar_policy_free_removed(&self->base, chunks[next].bytes);
            bytes += chunks[next].bytes;
        }
    } else if (next_used) {
        ar_span_index_insert(&self->index, chunks, chunk);
        bfc_account_added(self, &chunks[chunk]);
        return;
    }
    bytes += chunks[from].bytes;
    ar_policy_free_replaced(&self->base, chunks[from].bytes, bytes);
    ar_span_index_move(&self->index, chunks, from, into, bytes);
    if (!next_used)
        bfc_join(self, chunk, next);
    if (into != chunk)
        bfc_join(self, into, chunk);
    if (bfc_is_region(&chunks[into]))
        self->base.totals.releasable_bytes += bytes;
}

enum ar_status bfc_free(struct ar_policy *base, const struct ar_policy_block *block,
                        uint32_t stream AR_UNUSED)
{
    struct bfc *self = (struct bfc *)base;
    uint32_t chunk = (uint32_t)block->cookie;
    struct ar_span *freed = &self->chunks.at[chunk];
    freed->used = 0;
    ar_policy_ungrant(base, freed->requested_bytes, freed->bytes);
    if (UNLIKELY(self->upper != NULL)) {
        bfc_return_to_gap(self, chunk);
        bfc_free_block_add(self, bfc_merge(self, chunk));
    } else {
        put_back(self, chunk);
    }
    return AR_OK;
}

enum ar_status bfc_new(const struct ar_policy_ops *ops, const struct ar_policy_context *context,
                       const struct bfc_values *values, struct bfc **out, struct ar_error *error)
{
    AR_TRY(bfc_values_check(values, context->backing, error));
    struct bfc *self = ar_policy_new(context, ops, sizeof *self, error);
    AR_TRY_HOST(self);
    if (values->two_ended)
        self->upper = ar_host_alloc(context->host, sizeof *self->upper);
    if (values->two_ended && !self->upper) {
        ar_host_free(context->host, self, sizeof *self);
        return ar_no_memory(error, "policy %s", ops->name);
    }
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(context->backing, &free_bytes, &total_bytes);
    uint64_t limit = bfc_limit(values, free_bytes, total_bytes);
    self->host = context->host;
    self->values = *values;
    self->values.common.limit_bytes = limit;
    self->limit_given = values->common.limit_bytes != 0;
    self->total_bytes = total_bytes;
    self->split_bytes = bfc_split_bytes(values, limit);
    self->collects = bfc_collects(values);
    self->general_alignment = values->two_ended ? 0 : BFC_ROUNDING_BYTES + 1;
    if (self->upper) {
        self->index.address_flip = values->lower_order ? ~UINT64_C(0) : 0;
        self->upper->address_flip = values->upper_order ? ~UINT64_C(0) : 0;
    }
    bfc_regions_open(self, context->backing, limit);
    *out = self;
    return AR_OK;
}

static enum ar_status create_as(const struct ar_policy_ops *ops,
                                const struct ar_policy_context *context,
                                const struct bfc_values *values, struct ar_policy **out,
                                struct ar_error *error)
{
    struct bfc *self;
    AR_TRY(bfc_new(ops, context, values, &self, error));
    *out = &self->base;
    return AR_OK;
}

void bfc_destroy(struct ar_policy *base)
{
    struct bfc *self = (struct bfc *)base;
    struct ar_host *host = self->host;
    bfc_regions_close(self);
    ar_spans_close(&self->chunks, host);
    ar_host_free(host, self->upper, sizeof *self->upper);
    ar_host_free(host, self, sizeof *self);
}

/* ---- the three policies ---------------------------------------------------------------------- */

#define BFC_OPS                                                                                    \
    AR_POLICY_HOOKS(bfc), .recorders = recorders, .values_bytes = sizeof(struct bfc_values),       \
                          .capabilities = AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT,    \
                          .room = bfc_room, .setting = bfc_setting

static const char *const recorders[] = {"xla", "tensorflow", NULL};

/* greedy: the default of TensorFlow and JAX. The first request obtains the whole limit. */
static const struct ar_option greedy_options[] = {BFC_OPTIONS, BFC_TWO_ENDED_OPTIONS, {0}};

extern const struct ar_policy_ops greedy_policy;

static enum ar_status greedy_create(const struct ar_policy_context *context, const void *values,
                                    struct ar_policy **out, struct ar_error *error)
{
    struct bfc_values mine = *(const struct bfc_values *)values;
    mine.growth = false;
    return create_as(&greedy_policy, context, &mine, out, error);
}

const struct ar_policy_ops greedy_policy = {
    BFC_OPS,
    .name = "greedy",
    .summary =
        "TensorFlow's default: all of the limit at the first request, best fit with coalescing",
    .reference = "openxla/xla bfc_allocator.cc, August 2026; preallocating",
    .options = greedy_options,
    .create = greedy_create,
};

/* growth: set_memory_growth of TensorFlow, XLA_PYTHON_CLIENT_PREALLOCATE=false of JAX. */
static const struct ar_option growth_options[] = {BFC_OPTIONS, BFC_GROWTH_OPTIONS, {0}};

extern const struct ar_policy_ops growth_policy;

static enum ar_status growth_create(const struct ar_policy_context *context, const void *values,
                                    struct ar_policy **out, struct ar_error *error)
{
    struct bfc_values mine = *(const struct bfc_values *)values;
    mine.growth = true;
    return create_as(&growth_policy, context, &mine, out, error);
}

const struct ar_policy_ops growth_policy = {
    BFC_OPS,
    .name = "growth",
    .summary =
        "TensorFlow's set_memory_growth: regions by doubling, best fit with coalescing inside each",
    .reference = "openxla/xla bfc_allocator.cc, August 2026; growing",
    .options = growth_options,
    .create = growth_create,
};

/* bfc: every option, for experiments. */
static const struct ar_option bfc_options[] = {
    BFC_OPTIONS,
    BFC_OPTION("growth", BOOL, growth, "false", 0, 0, NULL,
               "regions by doubling instead of the whole limit at the first request"),
    BFC_GROWTH_OPTIONS,
    BFC_TWO_ENDED_OPTIONS,
    {0},
};

extern const struct ar_policy_ops bfc_policy;

static enum ar_status bfc_create(const struct ar_policy_context *context, const void *values,
                                 struct ar_policy **out, struct ar_error *error)
{
    return create_as(&bfc_policy, context, values, out, error);
}

const struct ar_policy_ops bfc_policy = {
    BFC_OPS,
    .name = "bfc",
    .summary = "the allocator of TensorFlow, XLA and JAX with every option",
    .reference = "openxla/xla bfc_allocator.cc, August 2026",
    .options = bfc_options,
    .create = bfc_create,
};
