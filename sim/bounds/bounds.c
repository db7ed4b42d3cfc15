/* Bounds and plans of a trace, and the textbook fits without foresight: see bounds.h. */
#include "sim/bounds/bounds.h"

#include <inttypes.h>
#include <stdlib.h>

#include "allocators/base/size.h"
#include "sim/experiment/session.h"

#define ONLINE_DEVICE "sim:profile=bump"

/* At each event blocks end first, then others begin. Of blocks that begin at the same moment
 * (lifetimes of another program) the largest comes first, then the order of the trace decides. */
struct moment { /* 2 * event + 1 for a birth: ends come first */
    uint64_t when;
    uint64_t bytes;
    size_t block;
};

static int compare(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->when != b->when)
        return a->when < b->when ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

static enum ar_status serve(const struct bound_blocks *blocks, const struct moment *moments,
                            struct ar_policy_block *placed, struct ar_policy *policy,
                            uint64_t *extent_bytes, struct ar_error *error)
{
    *extent_bytes = 0;
    for (size_t i = 0; i < 2 * blocks->count; i++) {
        const struct packing_block *block = &blocks->blocks[moments[i].block];
        struct ar_policy_block *place = &placed[moments[i].block];
        enum ar_status status;
        if (moments[i].when & 1) {
            const struct ar_policy_request request = {.bytes = block->bytes,
                                                      .alignment = block->alignment};
            status = ar_policy_alloc(policy, &request, place);
            if (!status && place->address + place->granted_bytes > *extent_bytes)
                *extent_bytes = place->address + place->granted_bytes;
        } else {
            status = ar_policy_free(policy, place, 0);
        }
        if (status)
            return ar_error_set(error, status,
                                "block %" PRIu64 " of %" PRIu64 " bytes: %s in an arena without a "
                                "bound; the blocks that live with it leave too few addresses",
                                blocks->requests[moments[i].block].id, block->bytes,
                                ar_status_meaning(status));
    }
    return AR_OK;
}

static enum ar_status serve_all(const struct bound_blocks *blocks, struct ar_policy *policy,
                                uint64_t *extent_bytes, struct ar_error *error)
{
    struct moment *moments = malloc((2 * blocks->count + 1) * sizeof *moments);
    struct ar_policy_block *placed = malloc((blocks->count + 1) * sizeof *placed);
    enum ar_status status = AR_OK;
    if (!moments || !placed) {
        status =
            ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu blocks", blocks->count);
    } else {
        for (size_t i = 0; i < blocks->count; i++) {
            const struct packing_block *block = &blocks->blocks[i];
            moments[2 * i] = (struct moment){2 * block->born + 1, block->bytes, i};
            moments[2 * i + 1] = (struct moment){2 * block->dies, block->bytes, i};
        }
        qsort(moments, 2 * blocks->count, sizeof *moments, compare);
        status = serve(blocks, moments, placed, policy, extent_bytes, error);
    }
    free(moments);
    free(placed);
    return status;
}

enum ar_status bound_online(const struct bound_blocks *blocks, const char *policy,
                            uint64_t *extent_bytes, struct ar_error *error)
{
    struct ar_spec policy_spec, device_spec;
    struct session session;
    AR_TRY(ar_spec_parse(policy, &policy_spec, error));
    enum ar_status status = ar_spec_parse(ONLINE_DEVICE, &device_spec, error);
    if (!status) {
        status = session_open(&session, &policy_spec, &device_spec, 0, NULL, error);
        if (!status) {
            status = serve_all(blocks, session.policy, extent_bytes, error);
            session_close(&session);
        }
        ar_spec_close(&device_spec);
    }
    ar_spec_close(&policy_spec);
    return status;
}

enum ar_status bounds_find(const struct bound_blocks *blocks, struct bounds *out,
                           struct ar_error *error)
{
    *out = (struct bounds){
        .live_peak_bytes = blocks->live_peak_bytes,
        .live_peak_event = blocks->live_peak_event,
        .pages_bytes = ar_size_round_up(blocks->live_peak_bytes, BOUND_PAGE_BYTES),
        .least_bytes = blocks->packing.peak_bytes,
        .offsets = calloc(blocks->count + 1, sizeof *out->offsets),
    };
    if (!out->offsets)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a plan");
    /* In an unbounded arena the free block at its end has no size, so it is never the tightest
     * fit. */
    enum ar_status status =
        bound_online(blocks, "best-fit:granule=1,wilderness=yes", &out->best_fit_bytes, error);
    if (!status)
        status = bound_online(blocks, "first-fit:granule=1", &out->first_fit_bytes, error);
    if (!status) {
        status = packing_best_order(&blocks->packing, out->offsets, &out->orders);
        if (status)
            ar_error_set(error, status, "no plan was found: %s", ar_status_meaning(status));
        out->top_bytes = out->orders.top_bytes;
    }
    if (status)
        bounds_close(out);
    return status;
}

enum ar_status bounds_search(const struct bound_blocks *blocks,
                             const struct packing_exact_options *options, struct bounds *self,
                             struct ar_error *error)
{
    self->exact.top_bytes = self->top_bytes;
    enum ar_status status = packing_exact(&blocks->packing, options, self->offsets, &self->exact);
    if (status)
        return ar_error_set(error, status, "the exact search ended early: %s",
                            ar_status_meaning(status));
    self->searched = true;
    self->top_bytes = self->exact.top_bytes;
    return AR_OK;
}

void bounds_close(struct bounds *self)
{
    free(self->offsets);
    self->offsets = NULL;
}
