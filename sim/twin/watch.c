#include "sim/twin/run.h"

#include "allocators/decorators/forward.h"

struct watching {
    struct forward forward;
    struct watch *watch;
};

static struct watch *of(struct ar_policy *base)
{
    return ((struct watching *)base)->watch;
}

static void look(struct watch *self, const struct ar_policy_totals *totals)
{
    AR_RAISE(self->phase_allocated_bytes, totals->granted_bytes);
    AR_RAISE(self->phase_reserved_bytes, totals->reserved_bytes);
    AR_RAISE(self->allocated_bytes, totals->granted_bytes);
    AR_RAISE(self->reserved_bytes, totals->reserved_bytes);
    if (watch_used(self) > self->high_bytes)
        self->higher(self->argument);
}

static enum ar_status watch_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                  struct ar_policy_block *out)
{
    struct watch *self = of(base);
    struct feed_block *block = feed_called(self->feed);
    regions_route(self->regions, request->pool);
    enum ar_status status = forward_alloc(base, request, out);
    if (status != AR_OK) {
        block->state = FEED_FAILED;
        AR_RAISE(self->phase_reserved_bytes, base->totals.reserved_bytes);
        AR_RAISE(self->reserved_bytes, base->totals.reserved_bytes);
        return status;
    }
    struct account *account = &self->accounts[block->account];
    block->state = FEED_LIVE;
    block->address = out->address;
    block->granted_bytes = out->granted_bytes;
    block->asleep = false;
    account->live_bytes += block->bytes;
    if (regions_asleep(self->regions, out->address))
        self->sleeper_used = true;
    look(self, &base->totals);
    return AR_OK;
}

static enum ar_status watch_free(struct ar_policy *base, const struct ar_policy_block *block,
                                 uint32_t stream)
{
    struct watch *self = of(base);
    struct feed_block *known = feed_called(self->feed);
    struct account *account = &self->accounts[known->account];
    account->live_bytes -= known->bytes;
    if (known->asleep) {
        account->asleep_live_bytes -= known->bytes;
        account->asleep_granted_bytes -= known->granted_bytes;
    }
    known->state = FEED_UNUSED;
    return forward_free(base, block, stream);
}

enum ar_status watch_open(struct watch *watch, struct ar_host *host, struct ar_policy *inner,
                          struct ar_policy **out, struct ar_error *error)
{
    struct watching *self = forward_create(host, sizeof *self, "twin", inner, error);
    AR_TRY_HOST(self);
    self->watch = watch;
    self->forward.ops.alloc = watch_alloc;
    self->forward.ops.free = watch_free;
    self->forward.ops.name = inner->ops->name;
    *out = &self->forward.base;
    return AR_OK;
}

struct ar_policy *watch_inside(const struct ar_policy *outer)
{
    return ((const struct forward *)outer)->inner;
}
