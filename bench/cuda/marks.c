#include "bench/cuda/marks.h"

#include <stdlib.h>
#include <string.h>

#include "bench/cuda/state.h"

#define EVENTS_AT_OPEN   32u
#define TRIES            16
#define REFERENCE_FAR_NS UINT64_C(4000000000)
#define WAITING_MANY     256u

/* One pair of readings around an event; false: the driver failed. */
static bool reference_try(struct cuda_device *device, CUevent event, CUstream stream,
                          uint64_t *from_ns, uint64_t *to_ns)
{
    const struct cuda_api *api = &device->api;
    *from_ns = cuda_now(device);
    bool worked = cuda_worked(device, api->event_record(event, stream), "cuEventRecord") &&
                  cuda_worked(device, api->event_synchronize(event), "cuEventSynchronize");
    *to_ns = cuda_now(device);
    return worked;
}

/* Rule 2. */
static bool reference_find(struct cuda_device *device, CUstream stream)
{
    struct cuda_marks *self = &device->marks;
    CUevent spare = cuda_events_take(device, &self->events);
    self->reference = cuda_events_take(device, &self->events);
    self->uncertain_ns = UINT64_MAX;
    bool worked = spare && self->reference;
    for (int i = 0; worked && i < TRIES; i++) {
        uint64_t from_ns, to_ns;
        worked = reference_try(device, spare, stream, &from_ns, &to_ns);
        if (!worked || (to_ns - from_ns) / 2 >= self->uncertain_ns)
            continue;
        CUevent worse = self->reference;
        self->reference = spare;
        spare = worse;
        self->uncertain_ns = (to_ns - from_ns) / 2;
        self->reference_ns = from_ns + self->uncertain_ns;
    }
    if (spare)
        cuda_events_give(&self->events, spare);
    return worked;
}

bool cuda_marks_open(struct cuda_device *device)
{
    struct cuda_marks *self = &device->marks;
    CUstream stream;
    *self = (struct cuda_marks){0};
    if (!cuda_events_open(device, &self->events, CU_EVENT_DEFAULT, EVENTS_AT_OPEN))
        return false;
    CUresult result = device->api.stream_create(&stream, CU_STREAM_NON_BLOCKING);
    if (!cuda_worked(device, result, "cuStreamCreate"))
        return false;
    bool found = reference_find(device, stream);
    return cuda_worked(device, device->api.stream_destroy(stream), "cuStreamDestroy") && found;
}

void cuda_marks_close(struct cuda_device *device)
{
    struct cuda_marks *self = &device->marks;
    for (uint64_t i = 0; i < self->waiting_count; i++)
        cuda_events_give(&self->events, self->waiting[self->waiting_first + i].event);
    if (self->reference)
        cuda_events_give(&self->events, self->reference);
    cuda_events_close(device, &self->events);
    free(self->times_ns);
    free(self->waiting);
    *self = (struct cuda_marks){0};
}

/* Makes room for one more event that waits. */
static bool waiting_room(struct cuda_marks *self)
{
    if (self->waiting_first + self->waiting_count < self->waiting_room)
        return true;
    if (self->waiting_first && self->waiting_first >= self->waiting_count) {
        if (self->waiting_count)
            memcpy(self->waiting, self->waiting + self->waiting_first,
                   self->waiting_count * sizeof *self->waiting);
        self->waiting_first = 0;
        return true;
    }
    uint64_t room = self->waiting_room ? 2 * self->waiting_room : 64;
    struct cuda_mark_event *grown = realloc(self->waiting, room * sizeof *grown);
    if (!grown)
        return false;
    self->waiting = grown;
    self->waiting_room = room;
    return true;
}

static void mark_stream(struct cuda_device *device, struct cuda_stream *stream, uint64_t mark)
{
    struct cuda_marks *self = &device->marks;
    if (stream->sequence <= stream->known || stream->sequence == stream->marked)
        return;
    CUevent event = waiting_room(self) ? cuda_events_take(device, &self->events) : NULL;
    if (!event) {
        device->out_of_host_memory = device->out_of_host_memory || !device->base.failed;
        return;
    }
    self->waiting[self->waiting_first + self->waiting_count++] =
        (struct cuda_mark_event){.mark = mark, .event = event};
    stream->marked = stream->sequence;
    (void)cuda_worked(device, device->api.event_record(event, stream->handle), "cuEventRecord");
}

/* The event is done: when it was. It is given back, or becomes the reference. */
static void event_settle(struct cuda_device *device, CUevent event)
{
    struct cuda_marks *self = &device->marks;
    float ms = 0;
    CUresult result = device->api.event_elapsed_time(&ms, self->reference, event);
    if (cuda_worked(device, result, "cuEventElapsedTime") && ms > 0) {
        uint64_t since_ns = (uint64_t)((double)ms * 1e6);
        uint64_t time_ns = self->reference_ns + since_ns;
        if (time_ns > self->device_ns)
            self->device_ns = time_ns;
        if (since_ns >= REFERENCE_FAR_NS) {
            CUevent old = self->reference;
            self->reference = event;
            self->reference_ns = time_ns;
            event = old;
        }
    }
    cuda_events_give(&self->events, event);
}

/* Settles the next mark, if its work is done; with `wait`, once it is. */
static bool settle_next(struct cuda_device *device, bool wait)
{
    struct cuda_marks *self = &device->marks;
    const struct cuda_api *api = &device->api;
    while (self->waiting_count && self->waiting[self->waiting_first].mark <= self->settled) {
        CUevent event = self->waiting[self->waiting_first].event;
        CUresult result = device->base.failed ? CUDA_SUCCESS
                          : wait              ? api->event_synchronize(event)
                                              : api->event_query(event);
        if (result == CUDA_ERROR_NOT_READY)
            return false;
        device->pool.changed = device->pool.changed || wait;
        self->waiting_first++;
        self->waiting_count--;
        if (!device->base.failed &&
            cuda_worked(device, result, wait ? "cuEventSynchronize" : "cuEventQuery"))
            event_settle(device, event);
        else
            cuda_events_give(&self->events, event);
    }
    uint64_t *time_ns = &self->times_ns[self->settled++];
    if (self->device_ns > *time_ns)
        *time_ns = self->device_ns;
    return true;
}

uint64_t cuda_mark(struct ar_device *base)
{
    struct cuda_device *device = cuda_of(base);
    struct cuda_marks *self = &device->marks;
    if (self->count == self->room) {
        uint64_t room = self->room ? 2 * self->room : 64;
        uint64_t *grown = realloc(self->times_ns, room * sizeof *grown);
        if (!grown) {
            device->out_of_host_memory = true;
            return self->count - 1; /* of 0 marks: none, which mark_ns knows */
        }
        self->times_ns = grown;
        self->room = room;
    }
    uint64_t mark = self->count++;
    self->times_ns[mark] = cuda_now(device);
    for (uint32_t i = 0; i < device->streams.count && !device->base.failed; i++)
        mark_stream(device, &device->streams.streams[i], mark);
    while (self->waiting_count > WAITING_MANY && self->settled < mark && settle_next(device, false))
        ;
    return mark;
}

uint64_t cuda_mark_ns(struct ar_device *base, uint64_t mark)
{
    struct cuda_device *device = cuda_of(base);
    struct cuda_marks *self = &device->marks;
    if (mark >= self->count)
        return cuda_now(device);
    while (self->settled <= mark)
        (void)settle_next(device, true);
    return self->times_ns[mark];
}
