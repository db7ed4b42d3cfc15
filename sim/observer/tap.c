#include "sim/observer/tap.h"

#include <stdlib.h>

#include "allocators/base/array.h"

static void on_driver_call(void *argument, enum ar_device_call call, uint64_t bytes, uint64_t ns,
                           uint64_t waited_ns, bool refused)
{
    const struct tap *self = argument;
    const struct observer_driver_call made = {self->event, call, bytes, ns, waited_ns, refused};
    observer_driver_call(self->observers, &made);
}

enum ar_status tap_open(struct tap **out, const struct observer *observers,
                        struct ar_device *device, struct ar_error *error)
{
    struct observer_wants wants = observer_wants(observers);
    *out = NULL;
    if (!wants.driver_calls && !wants.memory)
        return AR_OK;
    struct tap *self = calloc(1, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to observe a run");
    self->observers = observers;
    self->wants = wants;
    self->device = device;
    self->segments.more_words = self->blocks.more_words = TAP_WORDS - 1;
    if (wants.driver_calls)
        device->observer = (struct ar_device_observer){on_driver_call, self};
    if (wants.memory)
        tap_backing_open(self);
    *out = self;
    return AR_OK;
}

void tap_close(struct tap *self)
{
    if (!self)
        return;
    self->device->observer = (struct ar_device_observer){0};
    free(self->changes);
    free(self->ranges);
    free(self->pending);
    ar_map_close(&self->segments);
    ar_map_close(&self->blocks);
    free(self);
}

struct ar_backing *tap_backing(struct tap *self)
{
    return self->wants.memory ? &self->relay.base : self->device->backing;
}

void tap_set_policy(struct tap *self, const struct ar_policy *policy)
{
    self->policy = policy;
    self->totals = policy->totals;
}

void tap_at_event(struct tap *self, uint64_t event)
{
    self->event = event;
    self->totals = self->policy->totals;
}

void tap_mark(struct tap *self, const char *label, const char *keys)
{
    if (self->wants.memory)
        tap_report(self,
                   (struct observer_event){
                       .kind = OBSERVER_MARK, .tag = label, .keys = keys, .now_ns = tap_now(self)});
}

enum ar_status tap_end(struct tap *self, struct ar_error *error)
{
    if (self->wants.memory && !self->status) {
        self->totals = self->policy->totals;
        tap_report_completed(self);
        tap_report_changes(self, NULL);
    }
    self->over = true;
    self->device->observer = (struct ar_device_observer){0};
    return self->status ? ar_error_set(error, self->status, "%s", self->error.text) : AR_OK;
}

void tap_no_memory(struct tap *self)
{
    if (!self->status)
        self->status =
            ar_error_set(&self->error, AR_HOST_MEMORY, "no host memory to observe a run");
}

bool tap_grow(struct tap *self, void **items, size_t count, size_t *room, size_t bytes)
{
    void *grown = ar_array_grow(*items, count, room, bytes);
    if (!grown) {
        tap_no_memory(self);
        return false;
    }
    *items = grown;
    return true;
}

void tap_add(struct tap *self, struct ar_map *map, const struct tap_area *area)
{
    uint64_t *words = ar_map_add(map, area->address);
    if (!words) {
        tap_no_memory(self);
        return;
    }
    words[TAP_BYTES] = area->bytes;
    words[TAP_STREAM_AND_POOL] = (uint64_t)area->pool << 32 | area->stream;
    words[TAP_FREE_REQUESTED] = area->free_requested;
}

bool tap_find(const struct ar_map *map, uint64_t address, struct tap_area *out)
{
    const uint64_t *words = ar_map_find(map, address);
    if (!words)
        return false;
    *out = (struct tap_area){
        .address = address,
        .bytes = words[TAP_BYTES],
        .stream = (uint32_t)words[TAP_STREAM_AND_POOL],
        .pool = (uint32_t)(words[TAP_STREAM_AND_POOL] >> 32),
        .free_requested = words[TAP_FREE_REQUESTED],
    };
    return true;
}

bool tap_take(struct ar_map *map, uint64_t address, struct tap_area *out)
{
    return tap_find(map, address, out) && ar_map_remove(map, address);
}

void tap_report(struct tap *self, struct observer_event event)
{
    if (self->over || self->status)
        return;
    event.totals = &self->totals;
    event.physical_bytes = self->device->counters.physical_bytes;
    event.event = self->event;
    self->status = observer_memory(self->observers, &event, &self->error);
}
