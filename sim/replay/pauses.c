#include "sim/replay/pauses.h"

#include <stdlib.h>

enum ar_status pauses_open(struct pauses *pauses, struct ar_device *device, bool open)
{
    *pauses = (struct pauses){0};
    if (open && !(pauses->responses = calloc(1, sizeof *pauses->responses)))
        return AR_HOST_MEMORY;
    pauses_begin(pauses, device);
    return AR_OK;
}

void pauses_close(struct pauses *pauses)
{
    free(pauses->responses);
    pauses->responses = NULL;
}

void pauses_begin(struct pauses *pauses, struct ar_device *device)
{
    pauses->seen_ns = pauses_spent_ns(device);
    pauses->now_ns = device->ops->now(device);
}

uint64_t pauses_end(struct pauses *pauses, struct ar_device *device)
{
    uint64_t begun_ns = pauses->now_ns;
    pauses_begin(pauses, device);
    uint64_t pause_ns = pauses->now_ns - begun_ns;
    if (pause_ns > pauses->step_ns)
        pauses->step_ns = pause_ns;
    if (pause_ns > pauses->longest_ns)
        pauses->longest_ns = pause_ns;
    return pause_ns;
}

void pauses_respond(struct pauses *pauses, struct ar_device *device, uint64_t wanted_ns)
{
    uint64_t now_ns = device->ops->now(device);
    ar_hist_add(pauses->responses, now_ns > wanted_ns ? now_ns - wanted_ns : 0, 1);
}

uint64_t pauses_end_step(struct pauses *pauses)
{
    uint64_t step_ns = pauses->step_ns;
    pauses->step_ns = 0;
    return step_ns;
}

void pauses_report(const struct pauses *pauses, struct metric_values *metrics)
{
    static const struct {
        enum metric metric;
        double fraction;
    } figures[] = {
        {METRIC_alloc_response_ns_p50, 0.5},
        {METRIC_alloc_response_ns_p99, 0.99},
        {METRIC_alloc_response_ns_p999, 0.999},
        {METRIC_alloc_response_ns_max, 1},
    };
    metric_set(metrics, METRIC_longest_pause_ns, pauses->longest_ns);
    if (!pauses->responses || !pauses->responses->total)
        return;
    for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++)
        metric_set(metrics, figures[i].metric,
                   ar_hist_quantile(pauses->responses, figures[i].fraction));
}
