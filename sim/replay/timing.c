/* Steps, pauses, the memory that a card reports, and the host time of single calls (timing.h). */
#include "sim/replay/timing.h"

#include <time.h>

#include "allocators/base/array.h"

/* ---- steps ---------------------------------------------------------------------------------- */

uint64_t steps_driver_calls(const struct ar_device *device)
{
    uint64_t calls = 0;
    for (int i = 0; i < AR_DEVICE_CALL_COUNT; i++)
        if (i != AR_DEVICE_CALL_event && i != AR_DEVICE_CALL_pinned_alloc &&
            i != AR_DEVICE_CALL_pinned_free)
            calls += device->counters.calls[i];
    return calls;
}

uint64_t steps_now_ns(struct ar_device *device)
{
    return device->ops->mark_ns(device, device->ops->mark(device));
}

void steps_begin(struct steps *steps, struct ar_device *device)
{
    *steps = (struct steps){.begun_mark = device->ops->mark(device)};
}

void steps_close(struct steps *steps)
{
    free(steps->end_marks);
    free(steps->end_ns);
    free(steps->driver_calls);
    free(steps->pause_ns);
    *steps = (struct steps){0};
}

static bool grow(uint64_t **array, uint64_t room)
{
    uint64_t *grown = realloc(*array, room * sizeof *grown);
    if (grown)
        *array = grown;
    return grown;
}

enum ar_status steps_end_one(struct steps *steps, struct ar_device *device, uint64_t pause_ns,
                             struct ar_error *error)
{
    if (steps->count == steps->room) {
        uint64_t room = steps->room ? steps->room * 2 : 64;
        AR_TRY_MEMORY(grow(&steps->end_marks, room) && grow(&steps->end_ns, room) &&
                          grow(&steps->driver_calls, room) && grow(&steps->pause_ns, room),
                      error, "%llu steps", (unsigned long long)room);
        steps->room = room;
    }
    steps->end_marks[steps->count] = device->ops->mark(device);
    steps->driver_calls[steps->count] = steps_driver_calls(device);
    steps->pause_ns[steps->count] = pause_ns;
    steps->count++;
    return AR_OK;
}

void steps_settle(struct steps *steps, struct ar_device *device)
{
    steps->begun_ns = device->ops->mark_ns(device, steps->begun_mark);
    for (uint64_t i = 0; i < steps->count; i++)
        steps->end_ns[i] = device->ops->mark_ns(device, steps->end_marks[i]);
}

uint64_t steps_steady_ns(const uint64_t *end_ns, uint64_t count, uint64_t begun_ns)
{
    if (!count)
        return 0;
    return end_ns[count - 1] - (count / 2 ? end_ns[count / 2 - 1] : begun_ns);
}

/* The median of the values of steady steps, the lower one of two. */
static void report_median(uint64_t *values, uint64_t count, struct metric_values *metrics,
                          enum metric metric)
{
    ar_array_sort(values, count);
    metric_set(metrics, metric, values[(count - 1) / 2]);
}

static enum ar_status report_steady(const struct steps *steps, bool with_pauses,
                                    struct metric_values *metrics, struct ar_error *error)
{
    uint64_t first = steps->count / 2, count = steps->count - first;
    uint64_t *values = malloc(count * sizeof *values);
    AR_TRY_MEMORY(values, error, "the times of steps");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t step = first + i;
        values[i] = steps->end_ns[step] - (step ? steps->end_ns[step - 1] : steps->begun_ns);
    }
    report_median(values, count, metrics, METRIC_steady_step_ns);
    if (with_pauses) {
        memcpy(values, steps->pause_ns + first, count * sizeof *values);
        report_median(values, count, metrics, METRIC_steady_pause_ns);
    }
    free(values);
    return AR_OK;
}

enum ar_status steps_report(struct steps *steps, struct ar_device *device, bool with_pauses,
                            struct metric_values *metrics, struct ar_error *error)
{
    steps_settle(steps, device);
    uint64_t time_ns = steps_now_ns(device) - steps->begun_ns;
    metric_set(metrics, METRIC_device_time_ns, time_ns);
    if (!steps->count)
        return AR_OK;
    uint64_t last = steps->count - 1, half = steps->count / 2;
    metric_set_ratio(metrics, METRIC_steps_per_s, (double)steps->count * 1e9, (double)time_ns);
    metric_set(metrics, METRIC_first_step_ns, steps->end_ns[0] - steps->begun_ns);
    metric_set(metrics, METRIC_first_driver_calls, steps->driver_calls[0]);
    metric_set(metrics, METRIC_steady_driver_calls,
               steps->driver_calls[last] - (half ? steps->driver_calls[half - 1] : 0));
    return report_steady(steps, with_pauses, metrics, error);
}

/* ---- pauses --------------------------------------------------------------------------------- */

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
    pauses->now_ns = device->ops->now(device);
}

uint64_t pauses_end(struct pauses *pauses, struct ar_device *device)
{
    uint64_t begun_ns = pauses->now_ns;
    pauses_begin(pauses, device);
    uint64_t pause_ns = pauses->now_ns - begun_ns;
    AR_RAISE(pauses->step_ns, pause_ns);
    AR_RAISE(pauses->longest_ns, pause_ns);
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
    for (unsigned i = 0; i < AR_COUNT(figures); i++)
        metric_set(metrics, figures[i].metric,
                   ar_hist_quantile(pauses->responses, figures[i].fraction));
}

/* ---- memory of the card --------------------------------------------------------------------- */

#define STEPS_ALWAYS 4u

static void read_card(struct card_memory *card, struct ar_device *device)
{
    uint64_t card_bytes = device->ops->card_bytes(device);
    uint64_t charged_bytes = device->counters.physical_bytes;
    uint64_t outside_bytes = card_bytes > charged_bytes ? card_bytes - charged_bytes : 0;
    card->seen_bytes = device->counters.peak_physical_bytes;
    AR_RAISE(card->peak_bytes, card_bytes);
    AR_RAISE(card->peak_outside_bytes, outside_bytes);
}

void card_memory_end_step(struct card_memory *card, struct ar_device *device)
{
    if (!device->ops->card_bytes || device->failed)
        return;
    if (card->steps++ < STEPS_ALWAYS || device->counters.peak_physical_bytes > card->seen_bytes)
        read_card(card, device);
}

void card_memory_report(struct card_memory *card, struct ar_device *device,
                        struct metric_values *metrics)
{
    if (!device->ops->card_bytes || device->failed)
        return;
    read_card(card, device);
    metric_set(metrics, METRIC_peak_card_bytes, card->peak_bytes);
    metric_set(metrics, METRIC_peak_outside_bytes, card->peak_outside_bytes);
}

/* ---- latencies ------------------------------------------------------------------------------ */

#define CLOCK_TRIALS 4096u

uint64_t latency_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t latency_clock_cost_ns(void)
{
    uint64_t trials[CLOCK_TRIALS];
    for (unsigned i = 0; i < CLOCK_TRIALS; i++) {
        uint64_t begun_ns = latency_clock_ns();
        trials[i] = latency_clock_ns() - begun_ns;
    }
    ar_array_sort(trials, CLOCK_TRIALS);
    return trials[CLOCK_TRIALS / 2];
}

struct latency *latency_open(const struct ar_device *device)
{
    struct latency *latency = calloc(1, sizeof *latency);
    if (!latency)
        return NULL;
    latency->clock_ns = latency_clock_cost_ns();
    latency->modelled = device->clock_ns != NULL;
    return latency;
}

void latency_close(struct latency *latency)
{
    free(latency);
}

void latency_begin(struct latency *latency, const struct ar_device *device)
{
    if (!latency)
        return;
    latency->begun_spent_ns = pauses_spent_ns(device);
    latency->begun_readings = device->counters.clock_readings;
    latency->begun_ns = latency_clock_ns();
}

void latency_end(struct latency *latency)
{
    if (!latency)
        return;
    uint64_t passed_ns = latency_clock_ns() - latency->begun_ns;
    latency->passed_ns = passed_ns > latency->clock_ns ? passed_ns - latency->clock_ns : 0;
}

/* The policy's own time in the call, and the time of the call. */
static void add(const struct latency *latency, const struct ar_device *device, uint64_t pause_ns,
                struct ar_hist *own, struct ar_hist *total, uint64_t *total_ns)
{
    uint64_t own_ns = latency->passed_ns;
    *total_ns = own_ns;
    if (latency->modelled) {
        *total_ns += pause_ns;
    } else {
        /* Of two readings of the clock in the device, one is outside of the time that it
         * measured. */
        uint64_t pairs = (device->counters.clock_readings - latency->begun_readings) / 2;
        uint64_t spent_ns =
            pauses_spent_ns(device) - latency->begun_spent_ns + pairs * latency->clock_ns;
        own_ns = own_ns > spent_ns ? own_ns - spent_ns : 0;
    }
    ar_hist_add(own, own_ns, 1);
    ar_hist_add(total, *total_ns, 1);
}

void latency_add_alloc(struct latency *latency, const struct ar_device *device, uint64_t pause_ns,
                       struct latency_place place)
{
    uint64_t total_ns;
    if (!latency)
        return;
    add(latency, device, pause_ns, &latency->alloc, &latency->alloc_total, &total_ns);
    if (place.first)
        ar_hist_add(&latency->first_total, total_ns, 1);
    if (place.steady)
        ar_hist_add(&latency->steady_total, total_ns, 1);
}

void latency_add_free(struct latency *latency, const struct ar_device *device, uint64_t pause_ns)
{
    uint64_t total_ns;
    if (latency)
        add(latency, device, pause_ns, &latency->free, &latency->free_total, &total_ns);
}

static void report(struct metric_values *metrics, const struct ar_hist *hist, enum metric first)
{
    static const double fractions[] = {0.5, 0.9, 0.99, 0.999, 1};
    if (!hist->total)
        return;
    for (unsigned i = 0; i < AR_COUNT(fractions); i++)
        metric_set(metrics, (enum metric)(first + i), ar_hist_quantile(hist, fractions[i]));
}

static void report_steps(struct metric_values *metrics, const struct ar_hist *hist, enum metric p50,
                         enum metric p999)
{
    if (!hist->total)
        return;
    metric_set(metrics, p50, ar_hist_quantile(hist, 0.5));
    metric_set(metrics, p999, ar_hist_quantile(hist, 0.999));
}

void latency_report(const struct latency *latency, struct metric_values *metrics)
{
    /* The five figures of each are neighbours in metrics.def. */
    report(metrics, &latency->alloc, METRIC_alloc_ns_p50);
    report(metrics, &latency->free, METRIC_free_ns_p50);
    report(metrics, &latency->alloc_total, METRIC_alloc_total_ns_p50);
    report(metrics, &latency->free_total, METRIC_free_total_ns_p50);
    report_steps(metrics, &latency->first_total, METRIC_first_alloc_total_ns_p50,
                 METRIC_first_alloc_total_ns_p999);
    report_steps(metrics, &latency->steady_total, METRIC_steady_alloc_total_ns_p50,
                 METRIC_steady_alloc_total_ns_p999);
    metric_set(metrics, METRIC_clock_ns, latency->clock_ns);
}
