/* The defaults of optional hooks, the check of a policy's ops, and what the code of policies
 * shares. */
#include "allocators/policy.h"

void ar_policy_stats(const struct ar_policy *self, struct ar_policy_stats *out)
{
    struct ar_policy_room room;
    ar_policy_room(self, &room);
    self->ops->stats(self, out);
    out->largest_free_block_bytes = room.largest_free_block_bytes;
    out->stranded_by_stream_bytes = room.stranded_by_stream_bytes;
}

uint64_t ar_policy_servable(const struct ar_policy *self, enum ar_policy_effort effort)
{
    struct ar_policy_room room;
    ar_policy_room(self, &room);
    uint64_t free_bytes = ar_policy_free_bytes(&self->totals), bytes = room.servable_bytes[effort];
    return effort == AR_POLICY_EFFORT_NONE && bytes > free_bytes ? free_bytes : bytes;
}

enum ar_status ar_policy_use(struct ar_policy *self, const struct ar_policy_block *block,
                             uint32_t stream)
{
    return self->ops->use ? self->ops->use(self, block, stream) : AR_OK;
}

void ar_policy_retire(struct ar_policy *self, const struct ar_policy_block *block)
{
    if (self->ops->retire)
        self->ops->retire(self, block);
}

void ar_policy_progress(struct ar_policy *self)
{
    if (self->ops->progress)
        self->ops->progress(self);
}

enum ar_status ar_policy_trim(struct ar_policy *self, uint64_t keep_bytes)
{
    return self->ops->trim ? self->ops->trim(self, keep_bytes) : AR_OK;
}

const char *ar_policy_problem(const struct ar_policy *self)
{
    return self->ops->problem ? self->ops->problem(self) : "";
}

bool ar_policy_would_release(struct ar_policy *self, const struct ar_policy_request *request)
{
    return self->ops->would_release && self->ops->would_release(self, request);
}

bool ar_policy_would_fit(struct ar_policy *self, const struct ar_policy_request *request)
{
    return self->ops->would_fit && self->ops->would_fit(self, request);
}

enum ar_status ar_policy_delete_pool(struct ar_policy *self, uint32_t pool)
{
    return self->ops->delete_pool ? self->ops->delete_pool(self, pool) : AR_OK;
}

enum ar_status ar_policy_change(struct ar_policy *self, const char *change, struct ar_error *error)
{
    return self->ops->change ? self->ops->change(self, change, error) : AR_OK;
}

void ar_policy_end_pool(struct ar_policy *self, uint32_t pool)
{
    if (self->ops->end_pool)
        self->ops->end_pool(self, pool);
}

void ar_policy_reset_peaks(struct ar_policy *self)
{
    if (self->ops->reset_peaks)
        self->ops->reset_peaks(self);
}

bool ar_policy_report(const struct ar_policy *self, size_t index, char *name, size_t name_bytes,
                      uint64_t *value)
{
    return self->ops->report && self->ops->report(self, index, name, name_bytes, value);
}

static const char *missing_hook(const struct ar_policy_ops *ops)
{
    return !ops->create     ? "create"
           : !ops->destroy  ? "destroy"
           : !ops->alloc    ? "alloc"
           : !ops->free     ? "free"
           : !ops->stats    ? "stats"
           : !ops->walk     ? "walk"
           : !ops->validate ? "validate"
                            : NULL;
}

enum ar_status ar_policy_check(const struct ar_policy_ops *ops, struct ar_error *error)
{
    static const struct ar_option common[] = {AR_POLICY_COMMON_OPTIONS};
    if (ops->abi != AR_POLICY_ABI)
        return ar_invalid(error,
                          "the policy was built for version %u of the contract, and this is "
                          "version %u; compile it again with this policy.h",
                          ops->abi, AR_POLICY_ABI);
    if (ops->ops_bytes != sizeof *ops)
        return ar_invalid(error,
                          "the policy's ops have %u bytes, and here they have %zu; set ops_bytes "
                          "to sizeof(struct ar_policy_ops) and compile it again with this policy.h",
                          ops->ops_bytes, sizeof *ops);
    if (!ops->name || !ops->name[0])
        return ar_invalid(error, "the policy has no name; set it in its ops");
    const char *hook = missing_hook(ops);
    if (hook)
        return ar_invalid(error, "policy %s lacks the required hook %s", ops->name, hook);
    if (!ops->summary || !ops->reference)
        return ar_invalid(error, "policy %s has no %s; set it in its ops", ops->name,
                          ops->summary ? "reference" : "summary");
    const struct ar_option *first = ops->options;
    if (!first || !first->name || strcmp(first->name, common[0].name) != 0 ||
        first->type != common[0].type || first->offset != common[0].offset ||
        ops->values_bytes < sizeof(struct ar_policy_common))
        return ar_invalid(error,
                          "the options of policy %s do not begin with AR_POLICY_COMMON_OPTIONS, "
                          "filled into a struct that begins with struct ar_policy_common",
                          ops->name);
    return AR_OK;
}

void *ar_policy_new(const struct ar_policy_context *context, const struct ar_policy_ops *ops,
                    size_t bytes, struct ar_error *error)
{
    struct ar_policy *self = ar_host_alloc(context->host, bytes);
    if (self)
        self->ops = ops;
    else
        (void)ar_no_memory(error, "policy %s", ops->name);
    return self;
}

enum ar_status ar_policy_broken(const struct ar_policy *self, const char *what, uint64_t address,
                                struct ar_error *error)
{
    return ar_error_set(error, AR_CORRUPT, "policy %s: %s, at %" PRIu64, self->ops->name, what,
                        address);
}

/* Sums over a walk. */
struct sums {
    uint64_t unit_bytes; /* of the watch */
    struct ar_policy_totals totals;
    uint64_t usable_bytes, end;
    bool disordered; /* a range is empty or starts before `end` */
};

static bool add_range(void *argument, const struct ar_policy_range *range)
{
    struct sums *sums = argument;
    struct ar_policy_totals *totals = &sums->totals;
    uint64_t bytes = range->bytes;
    if (bytes == 0 || range->address < sums->end) {
        sums->disordered = true;
        return false;
    }
    sums->end = range->address + bytes;
    totals->reserved_bytes += range->state == AR_POLICY_RANGE_UNMAPPED ? 0 : bytes;
    totals->pending_bytes += range->state == AR_POLICY_RANGE_PENDING ? bytes : 0;
    totals->overhead_bytes += range->state == AR_POLICY_RANGE_OVERHEAD ? bytes : 0;
    if (range->state == AR_POLICY_RANGE_FREE)
        sums->usable_bytes += bytes - bytes % sums->unit_bytes;
    if (range->state == AR_POLICY_RANGE_USED) {
        totals->live_blocks++;
        totals->live_bytes += range->requested_bytes;
        totals->granted_bytes += bytes;
    }
    return true;
}

enum ar_status ar_policy_check_totals(const struct ar_policy *self, uint64_t releasable_bytes,
                                      struct ar_error *error)
{
    struct sums sums = {.unit_bytes = self->watch ? self->watch->unit_bytes : 1};
    ar_policy_walk(self, add_range, &sums);
    if (sums.disordered)
        return ar_policy_broken(self, "a range of the walk is empty or overlaps the one before it",
                                sums.end, error);
    const struct ar_policy_totals *told = &self->totals, *found = &sums.totals;
    bool opaque = self->ops->capabilities & AR_POLICY_OPAQUE;
    const struct {
        const char *name;
        uint64_t told, found;
    } pairs[] = {
        {"live_bytes", told->live_bytes, found->live_bytes},
        {"granted_bytes", told->granted_bytes, found->granted_bytes},
        {"reserved_bytes", told->reserved_bytes,
         opaque ? told->reserved_bytes : found->reserved_bytes},
        {"pending_bytes", told->pending_bytes, found->pending_bytes},
        {"releasable_bytes", told->releasable_bytes, releasable_bytes},
        {"live_blocks", told->live_blocks, found->live_blocks},
        {"overhead_bytes", told->overhead_bytes, found->overhead_bytes},
        {"usable_bytes of the watch", self->watch ? self->watch->usable_bytes : 0,
         self->watch ? sums.usable_bytes : 0},
    };
    for (size_t i = 0; i < AR_COUNT(pairs); i++)
        if (pairs[i].told != pairs[i].found)
            return ar_error_set(error, AR_CORRUPT,
                                "policy %s: %s is %" PRIu64 ", a new count gives %" PRIu64,
                                self->ops->name, pairs[i].name, pairs[i].told, pairs[i].found);
    return AR_OK;
}
