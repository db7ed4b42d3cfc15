#include "allocators/policies/slab/slab.h"

static const struct ar_option slab_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"largest_class", AR_OPTION_BYTES, offsetof(struct slab_values, largest_class_bytes), "256KiB",
     4096, 16777216, NULL, "bytes of the largest size class; larger requests are cut to measure"},
    {"keep", AR_OPTION_COUNT, offsetof(struct slab_values, keep), "1", 0, 1000000, NULL,
     "empty slabs that each class keeps, so that one block that comes and goes costs nothing"},
    {"slack", AR_OPTION_FRACTION, offsetof(struct slab_values, slack), "0.125", 0, 1000000, NULL,
     "empty segments are given back before more memory than the greatest use and this part of "
     "it is held"},
    {"virtual", AR_OPTION_BOOL, offsetof(struct slab_values, virtual), "false", 0, 0, NULL,
     "segments are mapped pages, and those of empty segments move to where they are needed"},
    {NULL, AR_OPTION_BYTES, 0, NULL, 0, 0, NULL, NULL},
};

static enum ar_status slab_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    struct slab_policy *self = slab_of(base);
    slab_note_stream(self, request->stream);
    return request->bytes <= self->largest_class_bytes ? slab_take(self, request->bytes, out)
                                                       : slab_take_large(self, request->bytes, out);
}

static enum ar_status slab_free(struct ar_policy *base, const struct ar_policy_block *block,
                                uint32_t stream)
{
    struct slab_policy *self = slab_of(base);
    slab_note_stream(self, stream);
    base->totals.live_bytes -= block->requested_bytes;
    base->totals.granted_bytes -= block->granted_bytes;
    base->totals.live_blocks--;
    if (block->requested_bytes <= self->largest_class_bytes)
        slab_give(self, block);
    else
        slab_restore(self, (uint32_t)block->cookie);
    return AR_OK;
}

static enum ar_status slab_use(struct ar_policy *base, const struct ar_policy_block *block,
                               uint32_t stream)
{
    struct slab_policy *self = slab_of(base);
    (void)block;
    slab_note_stream(self, stream);
    return AR_OK;
}

static enum ar_status slab_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct slab_policy *self = slab_of(base);
    slab_return_empty(self);
    uint64_t cached = self->heap.lists[SLAB_EMPTY]->free_bytes;
    enum ar_status status = cached > keep_bytes ? slab_release(self, cached - keep_bytes) : AR_OK;
    if (self->pages)
        slab_pages_drain(self->pages);
    return status;
}

static const char *slab_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct slab_policy *)base)->heap.backing);
}

static void slab_destroy(struct ar_policy *base)
{
    struct slab_policy *self = slab_of(base);
    struct ar_host *host = self->heap.host;
    slab_close_classes(self);
    heap_close(&self->heap);
    slab_pages_close(self->pages);
    ar_host_free(host, self, sizeof *self);
}

static enum ar_status slab_create(const struct ar_policy_context *context, const void *given,
                                  struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops slab_policy;
    const struct slab_values *values = given;
    struct slab_policy *self = ar_host_alloc(context->host, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "policy slab: the host has no memory left");
    self->base.ops = &slab_policy;
    self->limit_bytes = values->common.limit_bytes ? values->common.limit_bytes : UINT64_MAX;
    self->largest_class_bytes = slab_class_bytes(slab_class_of(values->largest_class_bytes));
    self->keep = (uint32_t)values->keep;
    self->slack = values->slack;
    heap_open(&self->heap, &self->base, context);
    enum ar_status status = AR_OK;
    if (values->virtual)
        status = slab_pages_open(context, &self->last_stream, &self->pages);
    if (self->pages)
        self->heap.backing = slab_pages_backing(self->pages);
    for (uint32_t list = 0; status == AR_OK && list < SLAB_LISTS; list++)
        status = heap_reserve(&self->heap, 0, list);
    if (status != AR_OK) {
        slab_destroy(&self->base);
        return status == AR_UNSUPPORTED
                   ? ar_error_set(error, status,
                                  "policy slab: virtual=true, but this device has no "
                                  "virtual memory; leave it out")
                   : ar_error_set(error, status, "policy slab: the host has no memory left");
    }
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops slab_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "slab",
    .summary = "size classes in slabs, the fullest first; large requests best fit beside them",
    .reference = "Bonwick 1994, with size classes as in mimalloc, eight to a doubling",
    .capabilities = AR_POLICY_WATCHES_FREE,
    .options = slab_options,
    .values_bytes = sizeof(struct slab_values),
    .create = slab_create,
    .destroy = slab_destroy,
    .alloc = slab_alloc,
    .free = slab_free,
    .stats = slab_stats,
    .walk = slab_walk,
    .validate = slab_validate,
    .servable = slab_servable,
    .use = slab_use,
    .trim = slab_trim,
    .problem = slab_problem,
};
