/* Requests are compared as a bag of sizes: workspaces that a library tries out (autotuning) come and
 * go anywhere, and one more of them must not make all that follow look different. */
#include "sim/advise/whatif.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "sim/advise/prepare.h"

struct sizes {
    uint64_t *at;
    size_t count, room;
};

static enum ar_status add(struct sizes *self, uint64_t bytes, struct ar_error *error)
{
    uint64_t *at = ar_array_grow(self->at, self->count, &self->room, sizeof *at);
    if (!at)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu sizes", self->count);
    self->at = at;
    self->at[self->count++] = bytes;
    return AR_OK;
}

static enum ar_status collect(struct trace_source *source, struct sizes *out,
                              struct ar_error *error)
{
    const struct trace_event *events;
    size_t count = 1;
    enum ar_status status = trace_rewind(source, error);
    while (!status && count) {
        status = trace_next(source, &events, &count, error);
        for (size_t i = 0; !status && i < count; i++)
            if (events[i].kind == TRACE_ALLOC || events[i].kind == TRACE_PROBE)
                status = add(out, events[i].value, error);
    }
    if (!status && out->count)
        ar_array_sort(out->at, out->count);
    return status;
}

static enum ar_status compare_requests(struct trace_source *from, struct trace_source *to,
                                       struct whatif *out, struct ar_error *error)
{
    struct sizes a = {0}, b = {0};
    enum ar_status status = collect(from, &a, error);
    if (!status)
        status = collect(to, &b, error);
    size_t i = 0, j = 0;
    while (!status && (i < a.count || j < b.count)) {
        if (j == b.count || (i < a.count && a.at[i] < b.at[j])) {
            out->only_from++;
            i++;
        } else if (i == a.count || b.at[j] < a.at[i]) {
            out->only_to++;
            j++;
        } else {
            i++;
            j++;
        }
    }
    out->requests_from = a.count;
    out->requests_to = b.count;
    free(a.at);
    free(b.at);
    return status;
}

/* What the other recording itself says: its peak, and whether it came to its end. */
static enum ar_status look_up(const struct advise_config *config, struct trace_source *to,
                              struct whatif *out, struct ar_error *error)
{
    struct ar_spec policy;
    struct prepared whole;
    struct fidelity_result held = {0};
    enum ar_status status = ar_spec_parse(out->spec, &policy, error);
    if (status)
        return status;
    const struct fidelity fidelity = {.policy = &policy, .source = to, .seed = config->seed};
    status = fidelity_run(&fidelity, &held, error);
    ar_spec_close(&policy);
    out->has_peak = !status;
    out->recorded_peak_reserved_bytes = held.recorded_peak_reserved_bytes;
    fidelity_result_close(&held);
    if (status)
        return status;
    status = prepare_trace(to, NULL, 0, &whole, error);
    if (status)
        return status;
    out->recorded_passed = to->info.complete && !whole.has_failed_request;
    trace_close(whole.trace);
    return AR_OK;
}

enum ar_status whatif_predict(const struct advise_config *config, struct trace_source *to,
                              struct whatif *out, struct ar_error *error)
{
    memset(out, 0, sizeof *out);
    enum ar_status status = fidelity_default_spec(&to->info, out->spec, sizeof out->spec, error);
    if (!status)
        status = compare_requests(config->source, to, out, error);
    if (!status)
        status = look_up(config, to, out, error);
    if (!status)
        status = advise_predict(config, out->spec, 0, &out->predicted, error);
    return status;
}
