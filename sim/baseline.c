#include "sim/baseline.h"

#include "sim/replay/steps.h"

struct timeline {
    struct device *device;
    enum replay_host host;
    uint64_t time_ns, opened_ns;
    struct steps steps;
};

static enum status pass(struct timeline *timeline, const struct trace_event *event,
                        struct error *error)
{
    struct device *device = timeline->device;
    switch (event->kind) {
    case TRACE_KERNEL:
        device->ops->kernel(device, event->stream, event->value);
        break;
    case TRACE_RECORD:
        device->ops->event_record(device, event->value, event->stream);
        break;
    case TRACE_WAIT:
        device->ops->stream_wait(device, event->stream, event->value);
        break;
    case TRACE_SYNC:
        device->ops->sync(device, event->stream);
        break;
    case TRACE_TIME:
        if (timeline->host == REPLAY_HOST_RECORDED && event->value > timeline->time_ns)
            device->ops->advance(device, event->value - timeline->time_ns);
        if (event->value > timeline->time_ns)
            timeline->time_ns = event->value;
        if (timeline->host == REPLAY_HOST_OPEN)
            replay_wait_until(device, timeline->opened_ns + timeline->time_ns);
        break;
    case TRACE_MARK:
        if (event->flags & TRACE_STEP)
            return steps_end_one(&timeline->steps, device, 0, error);
        break;
    default:
        break;
    }
    return STATUS_OK;
}

static enum status pass_all(struct timeline *timeline, struct trace_source *source,
                            struct error *error)
{
    enum status status = trace_rewind(source, error);
    while (status == STATUS_OK) {
        const struct trace_event *events;
        size_t count;
        status = trace_next(source, &events, &count, error);
        if (status != STATUS_OK || !count)
            return status;
        for (size_t i = 0; i < count && status == STATUS_OK; i++)
            status = pass(timeline, &events[i], error);
    }
    return status;
}

enum status baseline_run(const struct spec *device, struct trace_source *source,
                         enum replay_host host, struct baseline *out, struct error *error)
{
    struct timeline timeline = {.host = host};
    enum status status = device_open(device, &timeline.device, error);
    if (status != STATUS_OK)
        return status;
    timeline.opened_ns = timeline.device->ops->now(timeline.device);
    steps_begin(&timeline.steps, timeline.device);
    status = pass_all(&timeline, source, error);
    const struct steps *steps = &timeline.steps;
    steps_settle(&timeline.steps, timeline.device);
    *out = (struct baseline){
        .time_ns = steps_now_ns(timeline.device) - steps->begun_ns,
        .steady_ns = steps_steady_ns(steps->end_ns, steps->count, steps->begun_ns),
        .steps = steps->count,
    };
    steps_close(&timeline.steps);
    device_close(timeline.device);
    return status;
}

void baseline_report(const struct baseline *baseline, struct replay_result *result)
{
    struct metric_values *metrics = &result->metrics;
    metric_set_ratio(metrics, METRIC_slowdown, metric_number(metrics, METRIC_device_time_ns, 0),
                     (double)baseline->time_ns);
    if (baseline->steps && baseline->steps == result->steps)
        metric_set_ratio(
            metrics, METRIC_steady_slowdown,
            (double)steps_steady_ns(result->step_end_ns, result->steps, result->begun_ns),
            (double)baseline->steady_ns);
}
