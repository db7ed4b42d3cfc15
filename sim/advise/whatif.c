/* Whether one recorded setting is predicted well from another. */
#include "sim/advise/advise.h"

#include "allocators/base/array.h"

/* Requests are compared as a multiset of sizes. Workspaces of autotuning may be requested at any
 * place, and one more of them must not make all later requests look different. */

struct sizes {
    uint64_t *at;
    size_t count, room;
};

static enum ar_status collect(struct trace_source *source, struct sizes *out,
                              struct ar_error *error)
{
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        if (trace_requests(event) && !AR_ARRAY_ADD(out->at, out->count, out->room, event->value))
            status = ar_no_memory(error, "%zu sizes", out->count);
    if (!status && out->count)
        ar_array_sort(out->at, out->count);
    return status;
}

static enum ar_status compare_requests(struct trace_source *from, struct trace_source *to,
                                       struct whatif *out, struct ar_error *error)
{
    struct sizes a = {0}, b = {0};
    enum ar_status status = collect(from, &a, error);
    AR_THEN(status, collect(to, &b, error));
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

/* Finds the peak of the other recording and whether it completed. */
static enum ar_status read_outcome(const struct advise_config *config, struct trace_source *to,
                                   struct whatif *out, struct ar_error *error)
{
    AR_CLOSED(ar_spec_close) struct ar_spec policy = {0};
    AR_CLOSED(fidelity_result_close) struct fidelity_result compared = {0};
    struct prepared other;
    AR_TRY(ar_spec_parse(out->spec, &policy, error));
    const struct fidelity fidelity = {.policy = &policy, .source = to, .seed = config->seed};
    AR_TRY(fidelity_run(&fidelity, &compared, error));
    out->has_peak = true;
    out->recorded_peak_reserved_bytes = compared.recorded_peak_reserved_bytes;
    AR_TRY(prepare_trace(to, NULL, 0, &other, error));
    out->recorded_passed = to->info.complete && !other.has_failed_request;
    trace_close(other.trace);
    return AR_OK;
}

enum ar_status whatif_predict(const struct advise_config *config, struct trace_source *to,
                              struct whatif *out, struct ar_error *error)
{
    memset(out, 0, sizeof *out);
    AR_TRY(fidelity_default_spec(&to->info, out->spec, sizeof out->spec, error));
    AR_TRY(compare_requests(config->source, to, out, error));
    AR_TRY(read_outcome(config, to, out, error));
    return advise_predict(config, out->spec, 0, &out->predicted, error);
}
