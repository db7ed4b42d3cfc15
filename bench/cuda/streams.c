#include "allocators/base/array.h"
#include "bench/cuda/state.h"

#define EVENTS_AT_OPEN 64u
/* With this many fences in a queue, each new one searches for done ones. */
#define FENCES_MANY 512u
/* The least number of the program's events before any is dropped. */
#define PROGRAM_EVENTS_LEAST 1024u

struct program_event {
    struct range range; /* start is the event's number */
    uint64_t sequence;
    uint32_t stream;
};

/* ---- the store of events -------------------------------------------------------------------- */

static bool events_make(struct cuda_device *device, struct cuda_event_store *store, uint32_t count)
{
    if (store->made + count > store->room) {
        uint32_t room =
            2 * store->room > store->made + count ? 2 * store->room : store->made + count;
        CUevent *grown = realloc(store->events, room * sizeof *grown);
        if (!grown) {
            device->out_of_host_memory = true;
            return false;
        }
        store->events = grown;
        store->room = room;
    }
    for (uint32_t i = 0; i < count; i++) {
        CUresult result = device->api.event_create(&store->events[store->count], store->flags);
        if (!cuda_worked(device, result, "cuEventCreate"))
            return false;
        store->count++;
        store->made++;
    }
    return true;
}

static bool cuda_events_open(struct cuda_device *device, struct cuda_event_store *store,
                             unsigned flags, uint32_t count)
{
    *store = (struct cuda_event_store){.flags = flags};
    return events_make(device, store, count);
}

static void cuda_events_close(struct cuda_device *device, struct cuda_event_store *store)
{
    for (uint32_t i = 0; i < store->count; i++)
        (void)device->api.event_destroy(store->events[i]);
    free(store->events);
    *store = (struct cuda_event_store){0};
}

/* NULL: the device has failed. */
static CUevent cuda_events_take(struct cuda_device *device, struct cuda_event_store *store)
{
    if (!store->count && !events_make(device, store, store->made ? store->made : 1))
        return NULL;
    return store->events[--store->count];
}

static void cuda_events_give(struct cuda_event_store *store, CUevent event)
{
    store->events[store->count++] = event;
}

/* ---- streams -------------------------------------------------------------------------------- */

bool cuda_streams_open(struct cuda_device *device)
{
    struct cuda_streams *self = &device->streams;
    *self = (struct cuda_streams){.program_events_bound = PROGRAM_EVENTS_LEAST};
    return cuda_events_open(device, &self->events, CU_EVENT_DISABLE_TIMING, EVENTS_AT_OPEN);
}

/* Notes that the stream is done up to a point and returns the events of its fences. */
static void stream_learn(struct cuda_streams *self, struct cuda_stream *stream, uint64_t sequence)
{
    AR_RAISE(stream->known, sequence);
    while (stream->fence_count && stream->fences[stream->fence_first].sequence <= stream->known) {
        cuda_events_give(&self->events, stream->fences[stream->fence_first].event);
        stream->fence_first++;
        stream->fence_count--;
    }
}

void cuda_streams_close(struct cuda_device *device)
{
    struct cuda_streams *self = &device->streams;
    for (uint32_t i = 0; i < self->count; i++) {
        struct cuda_stream *stream = &self->streams[i];
        stream_learn(self, stream, UINT64_MAX);
        if (stream->handle && !stream->adopted)
            (void)device->api.stream_destroy(stream->handle);
        free(stream->fences);
        free(stream->after);
    }
    free(self->streams);
    while (self->program_events.root) {
        struct range *range = self->program_events.root;
        ranges_remove(&self->program_events, range);
        free(range);
    }
    cuda_events_close(device, &self->events);
    *self = (struct cuda_streams){0};
}

/* Makes an array hold at least `count` elements, the new ones zero. */
static bool widen(void **array, uint32_t *have, uint32_t count, size_t size)
{
    if (*have >= count)
        return true;
    char *grown = realloc(*array, count * size);
    if (!grown)
        return false;
    memset(grown + *have * size, 0, (count - *have) * size);
    *array = grown;
    *have = count;
    return true;
}

/* The entry of the stream, made or not. NULL: the device has failed. */
static struct cuda_stream *stream_place(struct cuda_device *device, uint32_t ordinal)
{
    struct cuda_streams *self = &device->streams;
    if (device->base.failed)
        return NULL;
    if (ordinal >= CUDA_STREAMS_MOST) {
        (void)cuda_misuse(device,
                          "stream %u was named, and there are at most %u here; streams are "
                          "numbered from 0 without gaps",
                          ordinal, CUDA_STREAMS_MOST);
        device->base.failed = true;
        return NULL;
    }
    void *streams = self->streams;
    bool grown = widen(&streams, &self->count, ordinal + 1, sizeof *self->streams);
    self->streams = streams;
    if (!grown) {
        device->out_of_host_memory = true;
        return NULL;
    }
    return &self->streams[ordinal];
}

struct cuda_stream *cuda_stream(struct cuda_device *device, uint32_t ordinal)
{
    struct cuda_streams *self = &device->streams;
    if (ordinal < self->count && (self->streams[ordinal].handle || self->streams[ordinal].adopted))
        return &self->streams[ordinal];
    struct cuda_stream *stream = stream_place(device, ordinal);
    if (!stream)
        return NULL;
    CUresult result = device->api.stream_create(&stream->handle, CU_STREAM_NON_BLOCKING);
    if (cuda_worked(device, result, "cuStreamCreate"))
        return stream;
    stream->handle = NULL;
    return NULL;
}

bool cuda_device_adopt_stream(struct ar_device *device, uint32_t ordinal, void *handle)
{
    struct cuda_stream *stream = stream_place(cuda_of(device), ordinal);
    if (!stream)
        return false;
    stream->handle = handle;
    stream->adopted = true;
    return true;
}

/* Whether a stream of the program is being captured. If the driver cannot tell, as for the default
 * stream while another is captured, no work may be queued on it either. */
static bool is_captured(const struct cuda_device *device, const struct cuda_stream *stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!stream->adopted || !device->api.stream_is_capturing)
        return false;
    CUresult result = device->api.stream_is_capturing(stream->handle, &status);
    return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* ---- fences --------------------------------------------------------------------------------- */

/* Makes space for one more at the end of a queue of `count` items that starts at item `*first`: by
 * a move to the front if half of the space is free there, else by growing. */
static bool queue_make_room(void *items, size_t *first, size_t count, size_t *room, size_t bytes)
{
    if (*first && *first >= count && *first + count >= *room) {
        char *at;
        memcpy(&at, items, sizeof at);
        memcpy(at, at + *first * bytes, count * bytes);
        *first = 0;
    }
    return ar_array_make_room(items, *first + count, room, bytes);
}

/* Whether the event's work is done; an error counts as done, because a wait would be useless. */
static bool event_done(struct cuda_device *device, CUevent event)
{
    CUresult result = device->api.event_query(event);
    if (result == CUDA_ERROR_NOT_READY)
        return false;
    (void)cuda_worked(device, result, "cuEventQuery");
    return true;
}

/* The oldest fence at or after the point, or NULL. */
static struct cuda_fence *fence_for(struct cuda_stream *stream, uint64_t sequence)
{
    struct cuda_fence *fences = stream->fences + stream->fence_first;
    size_t at = ar_array_from(fences, stream->fence_count, sizeof *fences,
                              offsetof(struct cuda_fence, sequence), sequence);
    return at < stream->fence_count ? &fences[at] : NULL;
}

/* Records an event after all queued work, for the stream's latest point. */
static void fence_record(struct cuda_device *device, struct cuda_stream *stream)
{
    while (stream->fence_count >= FENCES_MANY &&
           event_done(device, stream->fences[stream->fence_first].event))
        stream_learn(&device->streams, stream, stream->fences[stream->fence_first].sequence);
    bool room = queue_make_room(&stream->fences, &stream->fence_first, stream->fence_count,
                                &stream->fence_room, sizeof *stream->fences);
    CUevent event = room ? cuda_events_take(device, &device->streams.events) : NULL;
    if (!event) {
        device->out_of_host_memory = device->out_of_host_memory || !device->base.failed;
        return;
    }
    stream->fences[stream->fence_first + stream->fence_count++] =
        (struct cuda_fence){.sequence = stream->sequence, .event = event};
    (void)cuda_worked(device, device->api.event_record(event, stream->handle), "cuEventRecord");
}

uint64_t cuda_stream_fence(struct cuda_device *device, uint32_t ordinal)
{
    struct cuda_stream *stream = cuda_stream(device, ordinal);
    if (!stream || device->base.failed)
        return 0;
    uint64_t sequence = stream->adopted ? ++stream->sequence : stream->sequence;
    if (sequence > stream->known && !fence_for(stream, sequence) && !is_captured(device, stream))
        fence_record(device, stream);
    return sequence;
}

/* The fence at or after a point, or NULL. A fence that could not be recorded while its stream was
 * captured is recorded now. */
static const struct cuda_fence *fence_find(struct cuda_device *device, struct cuda_stream *stream,
                                           uint64_t sequence)
{
    const struct cuda_fence *fence = fence_for(stream, sequence);
    if (fence || !stream->adopted || is_captured(device, stream))
        return fence;
    fence_record(device, stream);
    return fence_for(stream, sequence);
}

bool cuda_stream_done(struct cuda_device *device, uint32_t ordinal, uint64_t sequence)
{
    struct cuda_streams *self = &device->streams;
    if (ordinal >= self->count || sequence <= self->streams[ordinal].known || device->base.failed)
        return true;
    struct cuda_stream *stream = &self->streams[ordinal];
    const struct cuda_fence *fence = fence_find(device, stream, sequence);
    if (!fence)
        return false; /* no event: only a synchronisation can tell */
    if (!event_done(device, fence->event))
        return false;
    stream_learn(self, stream, fence->sequence);
    return true;
}

void cuda_stream_await(struct cuda_device *device, uint32_t ordinal, uint64_t sequence)
{
    struct cuda_streams *self = &device->streams;
    if (ordinal >= self->count || sequence <= self->streams[ordinal].known || device->base.failed)
        return;
    struct cuda_stream *stream = &self->streams[ordinal];
    const struct cuda_fence *fence = fence_find(device, stream, sequence);
    if (!fence) {
        (void)cuda_stream_sync(device, ordinal);
        return;
    }
    device->pool.changed = true;
    if (cuda_worked(device, device->api.event_synchronize(fence->event), "cuEventSynchronize"))
        stream_learn(self, stream, fence->sequence);
}

void cuda_stream_order(struct cuda_device *device, uint32_t earlier, uint64_t sequence,
                       uint32_t later)
{
    struct cuda_streams *self = &device->streams;
    if (earlier == later || earlier >= self->count || sequence <= self->streams[earlier].known)
        return;
    struct cuda_stream *stream = cuda_stream(device, later); /* may move the array */
    if (!stream || device->base.failed)
        return;
    if (earlier < stream->after_count && sequence <= stream->after[earlier])
        return;
    const struct cuda_fence *fence = fence_find(device, &self->streams[earlier], sequence);
    if (is_captured(device, stream)) {
        cuda_stream_await(device, earlier, sequence);
        return;
    }
    void *after = stream->after;
    if (!fence || !widen(&after, &stream->after_count, earlier + 1, sizeof *stream->after)) {
        (void)cuda_stream_sync(device, earlier);
        return;
    }
    stream->after = after;
    CUresult result = device->api.stream_wait_event(stream->handle, fence->event, 0);
    if (!cuda_worked(device, result, "cuStreamWaitEvent"))
        return;
    stream->after[earlier] = fence->sequence;
    stream->sequence++; /* the wait is work: a later point needs its own fence */
}

/* Synchronises the program's streams one by one: while one is captured the context cannot be waited
 * for, and the captured one runs nothing. */
static uint64_t adopted_sync(struct cuda_device *device, uint32_t first, uint32_t end)
{
    struct cuda_streams *self = &device->streams;
    uint64_t begun_ns = cuda_clock_ns(device);
    device->pool.changed = true;
    for (uint32_t i = first; i < end; i++) {
        struct cuda_stream *stream = &self->streams[i];
        if (is_captured(device, stream))
            continue;
        CUresult result = device->api.stream_synchronize(stream->handle);
        if (!cuda_worked(device, result, "cuStreamSynchronize"))
            break;
        stream_learn(self, stream, stream->sequence);
    }
    return cuda_clock_ns(device) - begun_ns;
}

uint64_t cuda_stream_sync(struct cuda_device *device, uint32_t ordinal)
{
    struct cuda_streams *self = &device->streams;
    bool all = ordinal == CUDA_ALL_STREAMS, pending = false;
    uint32_t first = all ? 0 : ordinal, end = all ? self->count : ordinal + 1;
    if (end > self->count || device->base.failed)
        return 0;
    if (self->embedded)
        return adopted_sync(device, first, end);
    for (uint32_t i = first; i < end; i++)
        pending = pending || self->streams[i].sequence > self->streams[i].known;
    if (!pending)
        return 0;
    uint64_t begun_ns = cuda_clock_ns(device);
    CUresult result = all ? device->api.ctx_synchronize()
                          : device->api.stream_synchronize(self->streams[ordinal].handle);
    uint64_t waited_ns = cuda_clock_ns(device) - begun_ns;
    device->pool.changed = true;
    if (!cuda_worked(device, result, all ? "cuCtxSynchronize" : "cuStreamSynchronize"))
        return waited_ns;
    for (uint32_t i = first; i < end; i++)
        stream_learn(self, &self->streams[i], self->streams[i].sequence);
    return waited_ns;
}

/* ---- the program's events ------------------------------------------------------------------- */

/* Drops events that are known to be done: they order nothing. */
static void program_events_bound(struct cuda_streams *self)
{
    if (self->program_events.count < self->program_events_bound)
        return;
    struct range *range = ranges_from(&self->program_events, 0);
    while (range) {
        struct program_event *event = (struct program_event *)range;
        range = ranges_from(&self->program_events, range->end);
        if (event->sequence <= self->streams[event->stream].known) {
            ranges_remove(&self->program_events, &event->range);
            free(event);
        }
    }
    self->program_events_bound = PROGRAM_EVENTS_LEAST + 2 * self->program_events.count;
}

void cuda_stream_event_record(struct cuda_device *device, uint64_t number, uint32_t ordinal)
{
    struct cuda_streams *self = &device->streams;
    if (!cuda_stream(device, ordinal) || number == UINT64_MAX)
        return;
    struct program_event *event =
        (struct program_event *)ranges_find(&self->program_events, number);
    if (!event) {
        program_events_bound(self);
        event = calloc(1, sizeof *event);
        if (!event) {
            device->out_of_host_memory = true;
            return;
        }
        event->range.start = number;
        event->range.end = number + 1;
        ranges_insert(&self->program_events, &event->range);
    }
    event->stream = ordinal;
    event->sequence = cuda_stream_fence(device, ordinal);
}

void cuda_stream_event_wait(struct cuda_device *device, uint32_t ordinal, uint64_t number)
{
    const struct program_event *event =
        (struct program_event *)ranges_find(&device->streams.program_events, number);
    if (event)
        cuda_stream_order(device, event->stream, event->sequence, ordinal);
}

/* ---- marks ----------------------------------------------------------------------------------- */

#define MARKS_AT_OPEN    32u
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
    if (!cuda_events_open(device, &self->events, CU_EVENT_DEFAULT, MARKS_AT_OPEN))
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

static bool waiting_room(struct cuda_marks *self)
{
    return queue_make_room(&self->waiting, &self->waiting_first, self->waiting_count,
                           &self->waiting_room, sizeof *self->waiting);
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

/* Notes the time of a done event, which is returned or becomes the reference. */
static void event_settle(struct cuda_device *device, CUevent event)
{
    struct cuda_marks *self = &device->marks;
    float ms = 0;
    CUresult result = device->api.event_elapsed_time(&ms, self->reference, event);
    if (cuda_worked(device, result, "cuEventElapsedTime") && ms > 0) {
        uint64_t since_ns = (uint64_t)((double)ms * 1e6);
        uint64_t time_ns = self->reference_ns + since_ns;
        AR_RAISE(self->device_ns, time_ns);
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
    AR_RAISE(*time_ns, self->device_ns);
    return true;
}

uint64_t cuda_mark(struct ar_device *base)
{
    struct cuda_device *device = cuda_of(base);
    struct cuda_marks *self = &device->marks;
    uint64_t mark = self->count;
    if (!AR_ARRAY_ADD(self->times_ns, self->count, self->room, cuda_now(device))) {
        device->out_of_host_memory = true;
        return self->count - 1; /* of 0 marks: none, which mark_ns knows */
    }
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
