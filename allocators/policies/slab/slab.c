#include "allocators/policies/slab/slab.h"

static const struct option slab_options[] = {
    POLICY_COMMON_OPTIONS,
    {"largest_class", OPTION_BYTES, offsetof(struct slab_values, largest_class_bytes), "256KiB",
     4096, 16777216, NULL, "bytes of the largest size class; larger requests are cut to measure"},
    {"keep", OPTION_COUNT, offsetof(struct slab_values, keep), "1", 0, 1000000, NULL,
     "empty slabs that each class keeps, so that one block that comes and goes costs nothing"},
    {"slack", OPTION_FRACTION, offsetof(struct slab_values, slack), "0.125", 0, 1000000, NULL,
     "empty segments are given back before more memory than the greatest use and this part of "
     "it is held"},
    {"virtual", OPTION_BOOL, offsetof(struct slab_values, virtual), "false", 0, 0, NULL,
     "segments are mapped pages, and those of empty segments move to where they are needed"},
    {NULL, OPTION_BYTES, 0, NULL, 0, 0, NULL, NULL},
};

static enum status slab_alloc(struct policy *base, const struct policy_request *request,
                              struct policy_block *out)
{
    struct slab_policy *self = slab_of(base);
    slab_note_stream(self, request->stream);
    return request->bytes <= self->largest_class_bytes ? slab_take(self, request->bytes, out)
                                                       : slab_take_large(self, request->bytes, out);
}

static enum status slab_free(struct policy *base, const struct policy_block *block, uint32_t stream)
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
    return STATUS_OK;
}

static enum status slab_use(struct policy *base, const struct policy_block *block, uint32_t stream)
{
    struct slab_policy *self = slab_of(base);
    (void)block;
    slab_note_stream(self, stream);
    return STATUS_OK;
}

static enum status slab_trim(struct policy *base, uint64_t keep_bytes)
{
    struct slab_policy *self = slab_of(base);
    slab_return_empty(self);
    uint64_t cached = self->heap.lists[SLAB_EMPTY]->free_bytes;
    enum status status = cached > keep_bytes ? slab_release(self, cached - keep_bytes) : STATUS_OK;
    if (self->pages)
        slab_pages_drain(self->pages);
    return status;
}

static const char *slab_problem(const struct policy *base)
{
    return backing_problem(((const struct slab_policy *)base)->heap.backing);
}

static void slab_destroy(struct policy *base)
{
    struct slab_policy *self = slab_of(base);
    struct host *host = self->heap.host;
    slab_close_classes(self);
    heap_close(&self->heap);
    slab_pages_close(self->pages);
    host_free(host, self, sizeof *self);
}

static enum status slab_create(const struct policy_context *context, const void *given,
                               struct policy **out, struct error *error)
{
    extern const struct policy_ops slab_policy;
    const struct slab_values *values = given;
    struct slab_policy *self = host_alloc(context->host, sizeof *self);
    if (!self)
        return error_set(error, STATUS_HOST_MEMORY, "policy slab: the host has no memory left");
    self->base.ops = &slab_policy;
    self->limit_bytes = values->common.limit_bytes ? values->common.limit_bytes : UINT64_MAX;
    self->largest_class_bytes = slab_class_bytes(slab_class_of(values->largest_class_bytes));
    self->keep = (uint32_t)values->keep;
    self->slack = values->slack;
    heap_open(&self->heap, &self->base, context);
    enum status status = STATUS_OK;
    if (values->virtual)
        status = slab_pages_open(context, &self->last_stream, &self->pages);
    if (self->pages)
        self->heap.backing = slab_pages_backing(self->pages);
    for (uint32_t list = 0; status == STATUS_OK && list < SLAB_LISTS; list++)
        status = heap_reserve(&self->heap, 0, list);
    if (status != STATUS_OK) {
        slab_destroy(&self->base);
        return status == STATUS_UNSUPPORTED
                   ? error_set(error, status,
                               "policy slab: virtual=true, but this device has no "
                               "virtual memory; leave it out")
                   : error_set(error, status, "policy slab: the host has no memory left");
    }
    *out = &self->base;
    return STATUS_OK;
}

const struct policy_ops slab_policy = {
    .abi = POLICY_ABI,
    .ops_bytes = sizeof(struct policy_ops),
    .name = "slab",
    .summary = "size classes in slabs, the fullest first; large requests best fit beside them",
    .reference = "Bonwick 1994, with size classes as in mimalloc, eight to a doubling",
    .capabilities = POLICY_WATCHES_FREE,
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
