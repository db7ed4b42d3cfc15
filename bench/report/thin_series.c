#include "bench/report/thin_series.h"

static void merge(struct thin_bucket *into, const struct thin_bucket *from)
{
    if (from->least_live.live_bytes < into->least_live.live_bytes)
        into->least_live = from->least_live;
    if (from->most_live.live_bytes > into->most_live.live_bytes)
        into->most_live = from->most_live;
    if (from->most_physical.physical_bytes > into->most_physical.physical_bytes)
        into->most_physical = from->most_physical;
}

static void halve(struct thin_series *self)
{
    for (size_t i = 0; i < THIN_BUCKETS / 2; i++) {
        struct thin_bucket pair = self->buckets[2 * i];
        merge(&pair, &self->buckets[2 * i + 1]);
        self->buckets[i] = pair;
    }
    self->count = THIN_BUCKETS / 2;
    self->width *= 2;
    self->in_last = self->width;
}

enum ar_status thin_series_add(void *argument, const struct replay_sample *sample,
                               struct ar_error *error)
{
    struct thin_series *self = argument;
    const struct thin_bucket one = {*sample, *sample, *sample};
    (void)error;
    if (self->width == 0) {
        self->width = 1;
        self->in_last = 1;
    }
    if (self->in_last == self->width && self->count == THIN_BUCKETS)
        halve(self);
    if (self->count == 0 || self->in_last == self->width) {
        self->buckets[self->count++] = one;
        self->in_last = 0;
    } else {
        merge(&self->buckets[self->count - 1], &one);
    }
    self->in_last++;
    self->last = *sample;
    return AR_OK;
}

void thin_series_each(const struct thin_series *self, thin_series_take *take, void *argument)
{
    uint64_t taken = UINT64_MAX; /* the event taken last */
    for (size_t i = 0; i < self->count; i++) {
        const struct thin_bucket *bucket = &self->buckets[i];
        const struct replay_sample *order[] = {&bucket->least_live, &bucket->most_live,
                                               &bucket->most_physical};
        for (int a = 1; a < 3; a++) {
            for (int b = a; b > 0 && order[b]->event < order[b - 1]->event; b--) {
                const struct replay_sample *swap = order[b];
                order[b] = order[b - 1];
                order[b - 1] = swap;
            }
        }
        for (int a = 0; a < 3; a++) {
            if (order[a]->event != taken)
                take(argument, order[a]);
            taken = order[a]->event;
        }
    }
    if (self->count && self->last.event != taken)
        take(argument, &self->last);
}
