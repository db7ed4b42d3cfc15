/* Bounds and plans of a trace, from the surest to the best: see bounds.h. */
#include "sim/bounds/bounds.h"

#include <stdlib.h>

#include "allocators/base/size.h"

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
    /* In an arena without an end the hole at the end has no size that could be the tightest fit. */
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
