/* The stream-ordered pool of the driver (cuMemAllocAsync): every request goes to the backing. On a
 * card this is the real pool; on `sim` it is a model in the device, which sim/sim_device/ASYNC.md
 * describes.
 *
 * 1. Requests are passed on unchanged. Reserved bytes are those that the pool reports.
 * 2. A block that other streams used, or that another stream frees, is freed on its own stream as
 *    soon as their work is seen done. (The backend of PyTorch frees it on a stream that waits for
 *    all of them, which is the same moment.)
 * 3. A limit is the maximum size of the pool. With `retry`, a request that fails waits for the
 *    streams and is tried once more, as TensorFlow and CuPy do.
 * 4. A trim waits for the streams and releases free memory, as empty_cache of PyTorch does. */

#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/deferred.h"
#include "allocators/policy.h"

struct async_values {
    struct ar_policy_common common;
    const char *release_threshold;
    bool follow_events, opportunistic, internal, retry;
};

struct async {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    /* `extra`: the stream; `next`: 1 if the free is requested; a node without bytes is no block.
     * They are in no tree: only a walk needs their order. */
    struct ar_range_pool blocks;
    struct deferred deferred;
    bool keeps_all, retry;
    uint32_t streams;     /* above all streams seen so far */
    enum ar_status fault; /* of a deferred free */
    uint64_t retries, failures;
};

static const struct ar_option async_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"release_threshold", AR_OPTION_TEXT, offsetof(struct async_values, release_threshold), "0", 0,
     0, NULL, "bytes that the pool keeps at a synchronisation; max: all"},
    {"follow_events", AR_OPTION_BOOL, offsetof(struct async_values, follow_events), "true", 0, 0,
     NULL, "reuse memory that another stream freed if events order it"},
    {"opportunistic", AR_OPTION_BOOL, offsetof(struct async_values, opportunistic), "true", 0, 0,
     NULL, "reuse memory that another stream freed if its work is found done"},
    {"internal", AR_OPTION_BOOL, offsetof(struct async_values, internal), "true", 0, 0, NULL,
     "if memory is short, let a stream wait for memory that another freed"},
    {"retry", AR_OPTION_BOOL, offsetof(struct async_values, retry), "false", 0, 0, NULL,
     "wait for the streams and try a failed request once more"},
    {0},
};

static void note(struct async *self, uint32_t stream)
{
    if (stream >= self->streams && stream != UINT32_MAX)
        self->streams = stream + 1;
}

static void read_totals(struct async *self)
{
    uint64_t used_bytes;
    self->backing->ops->pool_memory(self->backing, &used_bytes, &self->base.totals.reserved_bytes);
}

static void wait_for_streams(struct async *self)
{
    deferred_wait_all(&self->deferred);
    ar_backing_wait_streams(self->backing, self->streams);
}

static enum ar_status ask(struct async *self, const struct ar_policy_request *request,
                          uint64_t *address)
{
    struct ar_backing *backing = self->backing;
    enum ar_status status =
        backing->ops->pool_alloc(backing, request->bytes, request->stream, address);
    if (status != AR_REFUSED || !self->retry)
        return status;
    self->retries++;
    wait_for_streams(self);
    return backing->ops->pool_alloc(backing, request->bytes, request->stream, address);
}

static enum ar_status async_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct async *self = (struct async *)base;
    uint64_t address;
    deferred_poll(&self->deferred);
    if (self->fault != AR_OK)
        return self->fault;
    AR_TRY_HOST(ar_range_pool_reserve(&self->blocks, 1));
    note(self, request->stream);
    enum ar_status status = ask(self, request, &address);
    read_totals(self);
    if (status != AR_OK) {
        self->failures += status == AR_REFUSED;
        return status == AR_REFUSED ? AR_NO_MEMORY : status;
    }
    uint32_t index = ar_range_pool_take(&self->blocks);
    struct ar_range_node *block = &self->blocks.nodes[index];
    block->address = address;
    block->bytes = request->bytes;
    block->extra = request->stream;
    ar_policy_grant(base, out, address, request->bytes, index);
    return AR_OK;
}

/* Frees the block in the pool. */
static void complete(void *argument, uint32_t index)
{
    struct async *self = argument;
    struct ar_range_node *block = &self->blocks.nodes[index];
    enum ar_status status =
        self->backing->ops->pool_free(self->backing, block->address, (uint32_t)block->extra);
    if (status != AR_OK)
        self->fault = status;
    self->base.totals.pending_bytes -= block->bytes;
    block->bytes = 0;
    ar_range_pool_give(&self->blocks, index);
    read_totals(self);
}

static void async_retire(struct ar_policy *base, const struct ar_policy_block *given)
{
    struct ar_range_node *block = &((struct async *)base)->blocks.nodes[given->cookie];
    if (block->next)
        return;
    block->next = 1;
    base->totals.pending_bytes += block->bytes;
    ar_policy_ungrant(base, block->bytes, block->bytes);
}

static enum ar_status async_use(struct ar_policy *base, const struct ar_policy_block *block,
                                uint32_t stream)
{
    struct async *self = (struct async *)base;
    uint32_t own = (uint32_t)self->blocks.nodes[block->cookie].extra;
    note(self, stream);
    return deferred_use(&self->deferred, (uint32_t)block->cookie, own, stream) ? AR_OK
                                                                               : AR_HOST_MEMORY;
}

static enum ar_status async_free(struct ar_policy *base, const struct ar_policy_block *given,
                                 uint32_t stream)
{
    struct async *self = (struct async *)base;
    uint32_t index = (uint32_t)given->cookie;
    bool retired = self->blocks.nodes[index].next; /* then the free is completed now */
    AR_TRY(retired ? AR_OK : async_use(base, given, stream));
    async_retire(base, given);
    if (retired)
        deferred_forget(&self->deferred, index);
    else if (deferred_free(&self->deferred, index))
        return AR_OK;
    complete(self, index);
    return self->fault;
}

static void async_progress(struct ar_policy *base)
{
    struct async *self = (struct async *)base;
    deferred_poll(&self->deferred);
    read_totals(self);
}

/* Rule 4. */
static enum ar_status async_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct async *self = (struct async *)base;
    wait_for_streams(self);
    uint64_t kept = base->totals.granted_bytes + base->totals.pending_bytes;
    keep_bytes = keep_bytes < UINT64_MAX - kept ? keep_bytes + kept : UINT64_MAX;
    enum ar_status status = self->backing->ops->pool_trim(self->backing, keep_bytes);
    read_totals(self);
    return status != AR_OK ? status : self->fault;
}

static void async_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct async *self = (const struct async *)base;
    *out = (struct ar_policy_stats){.totals = base->totals};
    out->count.retries = self->retries;
    out->count.failures = self->failures;
}

/* Only the blocks, each as a segment of its own. What lies between them is not known. */
static void async_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    struct ar_range_pool blocks = ((const struct async *)base)->blocks;
    uint32_t by_address = 0;
    for (uint32_t index = 1; index < blocks.made; index++)
        if (blocks.nodes[index].bytes)
            ar_range_tree_insert(&blocks, &by_address, AR_RANGE_BY_ADDRESS, index);
    for (uint32_t at = 0; (at = ar_range_tree_next(&blocks, by_address, at)) != 0;) {
        const struct ar_range_node *block = &blocks.nodes[at];
        const struct ar_policy_range range = {
            .address = block->address,
            .bytes = block->bytes,
            .requested_bytes = block->next ? 0 : block->bytes,
            .segment_address = block->address,
            .stream = (uint32_t)block->extra,
            .state = block->next ? AR_POLICY_RANGE_PENDING : AR_POLICY_RANGE_USED,
        };
        if (!visit(argument, &range))
            return;
    }
}

static enum ar_status async_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct async *self = (const struct async *)base;
    uint64_t bytes = 0, used_bytes, reserved_bytes;
    for (uint32_t index = 1; index < self->blocks.made; index++)
        bytes += self->blocks.nodes[index].bytes;
    if (bytes != base->totals.granted_bytes + base->totals.pending_bytes)
        return ar_policy_broken(base, "the blocks do not add up", bytes, error);
    self->backing->ops->pool_memory(self->backing, &used_bytes, &reserved_bytes);
    if (used_bytes > reserved_bytes)
        return ar_error_set(error, AR_CORRUPT,
                            "policy async: the pool has %" PRIu64 " bytes in use and %" PRIu64
                            " reserved",
                            used_bytes, reserved_bytes);
    return ar_policy_check_totals(base, 0, error);
}

static bool async_setting(const struct ar_policy *base, char *text, size_t text_bytes)
{
    if (!((const struct async *)base)->keeps_all)
        return false;
    snprintf(text, text_bytes, "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync");
    return true;
}

static const char *async_problem(const struct ar_policy *base)
{
    return ar_backing_problem(((const struct async *)base)->backing);
}

static void async_destroy(struct ar_policy *base)
{
    struct async *self = (struct async *)base;
    wait_for_streams(self);
    for (uint32_t index = 1; index < self->blocks.made; index++) {
        const struct ar_range_node *block = &self->blocks.nodes[index];
        if (block->bytes)
            (void)self->backing->ops->pool_free(self->backing, block->address,
                                                (uint32_t)block->extra);
    }
    wait_for_streams(self); /* a trim keeps memory whose free is not done */
    (void)self->backing->ops->pool_trim(self->backing, 0);
    deferred_close(&self->deferred);
    ar_range_pool_close(&self->blocks);
    ar_host_free(self->host, self, sizeof *self);
}

static enum ar_status read_settings(const struct async_values *values,
                                    struct ar_backing_pool *settings, struct ar_error *error)
{
    *settings = (struct ar_backing_pool){.most_bytes = values->common.limit_bytes,
                                         .follow_events = values->follow_events,
                                         .opportunistic = values->opportunistic,
                                         .internal = values->internal};
    settings->release_threshold_bytes = UINT64_MAX;
    if (strcmp(values->release_threshold, "max") == 0 ||
        ar_size_parse(values->release_threshold, &settings->release_threshold_bytes, NULL) == AR_OK)
        return AR_OK;
    return ar_invalid(error,
                      "policy async, option release_threshold: \"%s\" is neither a size nor max",
                      values->release_threshold);
}

static enum ar_status async_create(const struct ar_policy_context *context, const void *given,
                                   struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops async_policy;
    const struct async_values *values = given;
    const struct ar_backing_ops *ops = context->backing->ops;
    struct ar_backing_pool settings;
    AR_TRY(read_settings(values, &settings, error));
    if (!ops->pool_open || !ops->pool_alloc || !ops->pool_free || !ops->pool_trim ||
        !ops->pool_memory)
        return ar_error_set(error, AR_UNSUPPORTED,
                            "policy async is the driver's stream-ordered pool, and this device has "
                            "none; run it on a card, or on sim with the profile of a card");
    struct async *self = ar_policy_new(context, &async_policy, sizeof *self, error);
    AR_TRY_HOST(self);
    enum ar_status status = ops->pool_open(context->backing, &settings);
    if (status != AR_OK) {
        const char *problem = ar_backing_problem(context->backing);
        ar_host_free(context->host, self, sizeof *self);
        return ar_error_set(error, status, "policy async: the device cannot open a pool%s%s",
                            *problem ? ": " : "", problem);
    }
    self->backing = context->backing;
    self->host = context->host;
    self->keeps_all = settings.release_threshold_bytes == UINT64_MAX;
    self->retry = values->retry;
    ar_range_pool_open(&self->blocks, context->host);
    deferred_open(&self->deferred, context->backing, context->host, complete, self);
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops async_policy = {
    .name = "async",
    .summary = "the driver's stream-ordered pool; on sim a model of it",
    .reference = "cuMemAllocAsync, driver 580; on sim inferred from recordings",
    .recorders = (const char *const[]){"async", NULL},
    .capabilities = AR_POLICY_STREAM_ORDERED | AR_POLICY_OPAQUE,
    .options = async_options,
    .values_bytes = sizeof(struct async_values),
    .create = async_create,
    AR_POLICY_HOOKS(async),
    .use = async_use,
    .retire = async_retire,
    .progress = async_progress,
    .trim = async_trim,
    .setting = async_setting,
    .problem = async_problem,
};
