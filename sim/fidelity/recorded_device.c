/* The calls of a policy to the recorded device, and their answers:
 *
 * 1. Memory that the policy releases is collected. At the next request for memory, or at the end of
 *    the step, it must equal the memory that the recording releases there, in any order: a release
 *    walks pools and streams in the order of pointers, which is not recorded.
 * 2. Memory is granted if the recording made memory of the same size here, at its address.
 * 3. A request for memory is refused in three cases: the recording releases more before it makes
 *    memory, and the group's cause is a refusal; the request waited for completions and nothing was
 *    released; the request failed and no action is left. The policy then acts as when memory is
 *    short.
 * 4. Pages are created one by one and become accessible as a run; the run is recorded. A range is
 *    reserved at the address of the first recorded page outside of all ranges. It ends at the next
 *    range, because ranges may be adjacent and the real card may be smaller than the assumed one.
 * 5. After the first difference everything is granted at unused addresses. The replay continues,
 *    but nothing is compared. */
#include "sim/fidelity/recording.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"

#define RANGE_BOUNDARY_BYTES (32 * AR_MIB)
/* The driver's pages: segments begin at a page; smaller ones share a page. */
#define DRIVER_PAGE_BYTES (2 * AR_MIB)
#define GRANULE_BYTES     UINT64_C(512)

static struct recorded_device *of(struct ar_backing *backing)
{
    return (struct recorded_device *)((char *)backing - offsetof(struct recorded_device, backing));
}

static struct recorded_device *of_device(struct ar_device *device)
{
    return (struct recorded_device *)device;
}

bool recorded_diverged(const struct recorded_device *self)
{
    return self->result->difference.found;
}

void recorded_device_differs_at(struct recorded_device *self, uint64_t event, const char *policy,
                                const char *recording)
{
    struct fidelity_difference *difference = &self->result->difference;
    if (difference->found)
        return;
    difference->found = true;
    difference->event = event;
    snprintf(difference->policy, sizeof difference->policy, "%s", policy);
    snprintf(difference->recording, sizeof difference->recording, "%s", recording);
}

void recorded_device_differs(struct recorded_device *self, const char *policy,
                             const char *recording)
{
    recorded_device_differs_at(self, self->event, policy, recording);
}

/* Places by address. */

static size_t place_above(const struct recorded_device *self, uint64_t address)
{
    return ar_array_above(self->places, self->place_count, sizeof *self->places,
                          offsetof(struct recorded_place, address), address);
}

/* NULL: none. */
struct recorded_place *recorded_place_at(const struct recorded_device *self, uint64_t address)
{
    size_t above = place_above(self, address);
    struct recorded_place *place = above ? &self->places[above - 1] : NULL;
    return place && address - place->address < place->bytes ? place : NULL;
}

/* The range for pages at an address. A policy may go beyond the end that the recording implies:
 * that is a difference. NULL: none. */
static struct recorded_place *range_below(const struct recorded_device *self, uint64_t address)
{
    size_t above = place_above(self, address);
    struct recorded_place *place = above ? &self->places[above - 1] : NULL;
    return place && place->range ? place : NULL;
}

enum ar_status recorded_place_add(struct recorded_device *self, struct recorded_place place)
{
    AR_TRY_HOST(ar_array_make_room(&self->places, self->place_count, &self->place_room,
                                   sizeof *self->places));
    size_t at = place_above(self, place.address);
    AR_ARRAY_INSERT(self->places, self->place_count, at, place);
    return AR_OK;
}

static void place_remove(struct recorded_device *self, struct recorded_place *place)
{
    AR_ARRAY_REMOVE(self->places, self->place_count, (size_t)(place - self->places));
}

/* Addresses that nothing recorded uses. */
static uint64_t own_address(struct recorded_device *self, uint64_t bytes)
{
    uint64_t address = self->unused_address;
    self->unused_address = ar_size_round_up(address + bytes, RANGE_BOUNDARY_BYTES);
    return address;
}

enum answer { GRANT, REFUSE, DIVERGE };

/* Whether the request was refused memory, and waited, before the recording makes this memory. */
static bool is_refused_here(const struct recorded_device *self,
                            const struct recorded_action *action)
{
    const struct recorded_request *request = self->request;
    if (!request || !request->refused || !request->waited || self->refused_once)
        return false;
    size_t first = request->first_completion + request->completions - request->waited;
    return action->event > self->recording->completions[first];
}

/* Whether a request for memory is refused, by the device or by a limit of the program. */
static bool refuses(struct recorded_device *self, enum recorded_balance state)
{
    if (state == LESS)
        return self->group && self->group->cause == CAUSE_REFUSED;
    const struct recorded_action *action = state == BALANCED ? recorded_next_action(self) : NULL;
    if (action && is_refused_here(self, action)) {
        self->refused_once = true;
        return true;
    }
    return state == BALANCED && !action && self->request && self->request->known &&
           self->request->failed;
}

/* Answers a request for memory. GRANT: `*action` is the recorded action. */
static enum answer ask(struct recorded_device *self, enum recorded_kind kind, uint64_t bytes,
                       const struct recorded_action **action)
{
    char did[128];
    if (recorded_diverged(self))
        return DIVERGE;
    enum recorded_balance state = recorded_balance(self);
    if (refuses(self, state))
        return REFUSE;
    if (state != BALANCED) {
        recorded_differ_in_spans(self, recorded_run(self));
        return DIVERGE;
    }
    *action = recorded_next_action(self);
    if (*action && (*action)->kind == kind)
        return GRANT;
    snprintf(did, sizeof did, "asks the device for %" PRIu64 " bytes%s", bytes,
             kind == RECORDED_MAPPED ? " of pages" : "");
    recorded_device_differs(self, did,
                            *action ? "makes memory in the other way, by segments or by pages"
                                    : "asks the device for nothing more here");
    return DIVERGE;
}

static uint32_t pool_in_hand(const struct recorded_device *self)
{
    return self->request ? self->request->request.pool : 0;
}

/* Whether an address can come from the driver. */
static bool is_aligned(uint64_t address, uint64_t bytes)
{
    return address % (bytes < DRIVER_PAGE_BYTES ? GRANULE_BYTES : DRIVER_PAGE_BYTES) == 0;
}

static enum ar_status device_segment_alloc(struct ar_backing *backing, uint64_t bytes,
                                           uint64_t *address)
{
    struct recorded_device *self = of(backing);
    const struct recorded_action *action = NULL;
    enum answer answer =
        self->step == STEP_START ? DIVERGE : ask(self, RECORDED_MADE, bytes, &action);
    if (answer == REFUSE)
        return AR_REFUSED;
    if (answer == GRANT) {
        char did[128], said[224];
        const char *why = !is_aligned(action->address, bytes)
                              ? ", where no segment of the driver's can begin"
                          : recorded_place_at(self, action->address) ? ", where one is already"
                                                                     : "";
        snprintf(did, sizeof did, "makes a segment of %" PRIu64 " bytes", bytes);
        snprintf(said, sizeof said, "makes one of %" PRIu64 " bytes at %" PRIu64 "%s",
                 action->bytes, action->address, why);
        if (action->bytes != bytes || why[0]) {
            recorded_device_differs_at(self, action->event, did, said);
        } else {
            self->cursor++;
            self->result->made_met++;
        }
    }
    *address = action && !recorded_diverged(self) ? action->address : own_address(self, bytes);
    return recorded_place_add(
        self, (struct recorded_place){.address = *address,
                                      .bytes = bytes,
                                      .pool = pool_in_hand(self),
                                      .ordinal = self->base.counters.segments_made++});
}

/* A call that no policy makes on a device that did what the recording says. */
static enum ar_status misused(struct recorded_device *self)
{
    self->misused = true;
    return AR_INVALID;
}

static enum ar_status device_segment_free(struct ar_backing *backing, uint64_t address)
{
    struct recorded_device *self = of(backing);
    struct recorded_place *place = recorded_place_at(self, address);
    if (!place || place->range || place->address != address)
        return misused(self);
    recorded_give_back(self, address, place->bytes);
    place_remove(self, place);
    return AR_OK;
}

/* A range is reserved where its first pages are mapped, which is the next recorded action. A
 * request that is refused memory reserves none here: the address of a range without pages is not
 * recorded. */
static enum ar_status device_reserve(struct ar_backing *backing, uint64_t bytes, uint64_t *address)
{
    struct recorded_device *self = of(backing);
    const struct recorded_action *action = NULL;
    enum answer answer = self->step != STEP_REQUEST
                             ? DIVERGE
                             : ask(self, RECORDED_MAPPED,
                                   self->request ? self->request->request.bytes : bytes, &action);
    if (answer == REFUSE)
        return AR_REFUSED;
    if (answer == GRANT && !recorded_place_at(self, action->address) &&
        is_aligned(action->address, action->bytes)) {
        *address = action->address;
        bytes =
            recorded_range_bytes(self->recording, self->cursor, *address, *address, 0, 1, bytes);
    } else
        *address = own_address(self, bytes);
    return recorded_place_add(self, (struct recorded_place){.address = *address,
                                                            .bytes = bytes,
                                                            .pool = pool_in_hand(self),
                                                            .ordinal = UINT64_MAX,
                                                            .range = true});
}

static enum ar_status device_release(struct ar_backing *backing, uint64_t address)
{
    struct recorded_device *self = of(backing);
    struct recorded_place *place = recorded_place_at(self, address);
    if (!place || !place->range || place->address != address || place->mapped_bytes)
        return misused(self);
    place_remove(self, place);
    return AR_OK;
}

static enum ar_status device_create(struct ar_backing *backing, uint64_t bytes,
                                    ar_backing_handle *handle)
{
    struct recorded_device *self = of(backing);
    const struct recorded_action *action = NULL;
    if (!self->created_bytes && self->step != STEP_START &&
        ask(self, RECORDED_MAPPED, bytes, &action) == REFUSE)
        return AR_REFUSED;
    if (!self->created_bytes)
        self->run_handle = self->next_handle + 1;
    self->created_bytes += bytes;
    self->handle_bytes = bytes;
    *handle = ++self->next_handle;
    return AR_OK;
}

/* A destroyed handle of an incomplete run no longer counts. */
static enum ar_status device_destroy(struct ar_backing *backing, ar_backing_handle handle)
{
    struct recorded_device *self = of(backing);
    if (self->created_bytes && handle >= self->run_handle)
        self->created_bytes -= self->handle_bytes;
    return AR_OK;
}

static enum ar_status device_map(struct ar_backing *backing, uint64_t address,
                                 ar_backing_handle handle AR_UNUSED)
{
    struct recorded_device *self = of(backing);
    return range_below(self, address) ? AR_OK : misused(self);
}

/* A run of pages is complete. */
static enum ar_status device_access(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct recorded_device *self = of(backing);
    struct recorded_place *place = range_below(self, address);
    if (!place)
        return misused(self);
    const struct recorded_action *action =
        recorded_diverged(self) || self->step == STEP_START ? NULL : recorded_next_action(self);
    if (action && (action->address != address || action->bytes != bytes)) {
        char did[128], said[128];
        const struct recorded_span mine = {.address = address, .bytes = bytes};
        const struct recorded_span theirs = {.address = action->address, .bytes = action->bytes};
        recorded_describe(&mine, "maps", did, sizeof did);
        recorded_describe(&theirs, "maps", said, sizeof said);
        recorded_device_differs_at(self, action->event, did, said);
    } else if (action) {
        self->cursor++;
        self->result->made_met++;
    }
    self->created_bytes = 0;
    if (!place->mapped_bytes)
        place->ordinal = self->base.counters.segments_made++;
    place->mapped_bytes += bytes;
    return AR_OK;
}

static enum ar_status device_unmap(struct ar_backing *backing, uint64_t address, uint64_t bytes)
{
    struct recorded_device *self = of(backing);
    struct recorded_place *place = range_below(self, address);
    if (!place)
        return misused(self);
    if (self->created_bytes) /* of an incomplete run */
        return AR_OK;
    recorded_give_back(self, address, bytes);
    place->mapped_bytes -= bytes;
    return AR_OK;
}

/* Time does not pass on this device, because completions are recorded. */

bool recorded_pending_add(struct recorded_device *self, const struct ar_policy_block *block,
                          uint32_t *stream)
{
    size_t at = 0;
    while (at < self->pending_count && self->pending[at].used)
        at++;
    if (!AR_ARRAY_REACH(self->pending, self->pending_count, at))
        return false;
    self->pending[at] = (struct recorded_pending){.block = *block, .used = true};
    *stream = self->first_stream + (uint32_t)at;
    return true;
}

/* A block may have the address of one that waited: the policy has seen that one complete then. */
static bool is_same(const struct ar_policy_block *one, const struct ar_policy_block *other)
{
    return one->address == other->address && one->cookie == other->cookie &&
           one->granted_bytes == other->granted_bytes &&
           one->requested_bytes == other->requested_bytes;
}

bool recorded_pending_end(struct recorded_device *self, const struct ar_policy_block *block)
{
    for (size_t i = 0; i < self->pending_count; i++) {
        struct recorded_pending *pending = &self->pending[i];
        if (pending->used && !pending->ended && is_same(&pending->block, block)) {
            pending->ended = true;
            pending->used = !pending->done;
            return true;
        }
    }
    return false;
}

static struct ar_backing_ticket device_fence(struct ar_backing *backing AR_UNUSED, uint32_t stream)
{
    return (struct ar_backing_ticket){.stream = stream};
}

/* The record of a ticket. NULL: a stream of the program, whose work is always done. */
static struct recorded_pending *pending_of(struct recorded_device *self,
                                           struct ar_backing_ticket ticket)
{
    size_t at = ticket.stream - (size_t)self->first_stream;
    return ticket.stream >= self->first_stream && at < self->pending_count ? &self->pending[at]
                                                                           : NULL;
}

/* The policy has seen the completion. */
static void pending_seen(struct recorded_pending *pending)
{
    pending->done = true;
    pending->used = !pending->ended;
}

static bool device_done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct recorded_device *self = of(backing);
    struct recorded_pending *pending = pending_of(self, ticket);
    if (!pending)
        return true;
    if (!pending->ended || self->holds)
        return false;
    pending_seen(pending);
    return true;
}

static void device_wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct recorded_pending *pending = pending_of(of(backing), ticket);
    if (pending)
        pending_seen(pending);
}

static void device_memory(struct ar_backing *backing, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *free_bytes = *total_bytes = of(backing)->base.props.total_bytes;
}

/* A limit refuses a request also if the policy has the memory for it: a range that grows may need
 * no more pages. */
static bool device_limits(struct ar_backing *backing, uint64_t bytes AR_UNUSED)
{
    struct recorded_device *self = of(backing);
    return !recorded_diverged(self) && self->step == STEP_REQUEST &&
           refuses(self, recorded_balance(self));
}

static const char *backing_text(struct ar_backing *backing)
{
    return of(backing)->out_of_host_memory ? "no host memory for the recorded device" : "";
}

static void device_nothing(struct ar_device *device AR_UNUSED)
{
}

static enum ar_status device_outside(struct ar_device *device, uint64_t bytes)
{
    (void)device, (void)bytes;
    return AR_OK;
}

static void device_number(struct ar_device *device, uint64_t number)
{
    (void)device, (void)number;
}

static uint64_t device_no_time(struct ar_device *device AR_UNUSED)
{
    return 0;
}

static uint64_t device_no_mark(struct ar_device *device, uint64_t mark)
{
    (void)device, (void)mark;
    return 0;
}

static void device_on_stream(struct ar_device *device, uint32_t stream, uint64_t number)
{
    (void)device, (void)stream, (void)number;
}

static void device_event(struct ar_device *device, uint64_t event, uint32_t stream)
{
    (void)device, (void)event, (void)stream;
}

static void device_sync(struct ar_device *device, uint32_t stream)
{
    (void)device, (void)stream;
}

static void device_used(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t stream,
                        uint64_t event)
{
    (void)device, (void)address, (void)bytes, (void)stream, (void)event;
}

static uint64_t device_handed_out(struct ar_device *device, uint64_t address, uint64_t bytes,
                                  uint32_t stream, bool order, uint64_t event)
{
    (void)device, (void)address, (void)bytes, (void)stream, (void)order, (void)event;
    return 0;
}

static const char *device_text(struct ar_device *device)
{
    return backing_text(&of_device(device)->backing);
}

static const char *device_no_text(struct ar_device *device AR_UNUSED)
{
    return "";
}

static bool device_segment_of(struct ar_device *device, uint64_t address,
                              struct ar_device_segment *out)
{
    const struct recorded_place *place = recorded_place_at(of_device(device), address);
    if (place)
        *out = (struct ar_device_segment){place->ordinal, place->address, place->bytes};
    return place != NULL;
}

static const struct ar_backing_ops recorded_backing = {
    .segment_alloc = device_segment_alloc,
    .segment_free = device_segment_free,
    .reserve = device_reserve,
    .release = device_release,
    .create = device_create,
    .destroy = device_destroy,
    .map = device_map,
    .access = device_access,
    .unmap = device_unmap,
    .fence = device_fence,
    .done = device_done,
    .wait = device_wait,
    .memory = device_memory,
    .problem = backing_text,
    .limits = device_limits,
};

static const struct ar_device_ops recorded_ops = {
    .close = device_nothing,
    .outside = device_outside,
    .advance = device_number,
    .now = device_no_time,
    .idle_at = device_no_time,
    .mark = device_no_time,
    .mark_ns = device_no_mark,
    .kernel = device_on_stream,
    .event_record = device_event,
    .stream_wait = device_on_stream,
    .sync = device_sync,
    .used = device_used,
    .handed_out = device_handed_out,
    .race_text = device_no_text,
    .segment_of = device_segment_of,
    .problem = device_text,
};

void recorded_device_open(struct recorded_device *self, const struct recording *recording,
                          uint64_t total_bytes, uint32_t streams, struct fidelity_result *result)
{
    *self = (struct recorded_device){
        .base = {.ops = &recorded_ops,
                 .props = {.kind = "sim",
                           .profile = "recorded",
                           .capacity_bytes = total_bytes,
                           .total_bytes = total_bytes,
                           .has_virtual_memory = true}},
        .backing = {.ops = &recorded_backing,
                    .granule_bytes = GRANULE_BYTES,
                    .page_bytes = DRIVER_PAGE_BYTES},
        .recording = recording,
        .result = result,
        .until_event = UINT64_MAX,
        .first_stream = streams,
        .unused_address =
            ar_size_round_up(recording->highest_address + 1024 * AR_GIB, RANGE_BOUNDARY_BYTES),
    };
    self->base.backing = &self->backing;
}

void recorded_device_close(struct recorded_device *self)
{
    free(self->places);
    free(self->given_back);
    free(self->expected);
    free(self->pending);
}
