/* The simulated device: opening, hooks of one step, and the charging and counting of all calls. The
 * other files have the parts; README.md here says what the device models. */
#include "sim/device.h"

#include <stdatomic.h>

#include "allocators/base/size.h"
#include "sim/sim_device/state.h"
#include "sim/sim_device/kernel_limits.h"

struct sim_options {
    const char *profile;
    uint64_t capacity_bytes, others_bytes;
    const char *addresses, *ranges;
    uint64_t seed, launch_queue, host_clock_ns, host_bytes;
};

static const struct ar_option sim_options[] = {
    {"profile", AR_OPTION_TEXT, offsetof(struct sim_options, profile), SIM_PROFILE_DEFAULT, 0, 0,
     NULL, "the card: a profile by its name, or a profile's file"},
    {"capacity", AR_OPTION_BYTES, offsetof(struct sim_options, capacity_bytes), NULL, 0, 0, NULL,
     "bytes that the process may have, also more than the card has; without it all that the card "
     "has for one"},
    {"others", AR_OPTION_BYTES, offsetof(struct sim_options, others_bytes), "0", 0, 0, NULL,
     "bytes of it that others hold all the time"},
    {"host", AR_OPTION_BYTES, offsetof(struct sim_options, host_bytes), "0", 0, 0, NULL,
     "bytes of host memory that can be pinned; 0: no limit"},
    {"addresses", AR_OPTION_TEXT, offsetof(struct sim_options, addresses), NULL, 0, 0, NULL,
     "a file (CSV ordinal,bytes,address), `driver` (as a card places them) or `random`; without it "
     "each above the last"},
    {"ranges", AR_OPTION_TEXT, offsetof(struct sim_options, ranges), NULL, 0, 0, NULL,
     "a file of the same form for reserved ranges; without it each above the last"},
    {"seed", AR_OPTION_COUNT, offsetof(struct sim_options, seed), "1", 0, 0, NULL,
     "of addresses=random"},
    {"launch_queue", AR_OPTION_COUNT, offsetof(struct sim_options, launch_queue), "1024", 1,
     1048576, NULL, "launches that the host may be ahead of a stream"},
    {"host_clock_ns", AR_OPTION_COUNT, offsetof(struct sim_options, host_clock_ns), NULL, 1,
     1000000, NULL,
     "the host: what reading its clock takes (metric clock_ns); without it the profile's"},
    {NULL, AR_OPTION_BOOL, 0, NULL, 0, 0, NULL, NULL},
};

static struct sim_device *sim_of(struct ar_device *device)
{
    return (struct sim_device *)device;
}

enum ar_status sim_misuse(struct sim_device *self, const char *format, ...)
{
    AR_PRINT(self->problem, sizeof self->problem, format);
    return AR_INVALID;
}

enum ar_status sim_check_complete(struct sim_device *self)
{
    if (self->clock.beyond)
        return sim_misuse(self,
                          "a stream beyond %u was named; streams are numbered from 0 without gaps",
                          SIM_STREAMS_MOST - 1);
    return self->clock.failed || self->memory.lost ? AR_HOST_MEMORY : AR_OK;
}

/* A run that reaches the end of time did not finish, and a sum of times that reaches it is
 * wrong. */
void sim_time_ends(struct sim_device *self)
{
    if (!self->base.failed)
        (void)sim_misuse(self,
                         "the simulated time reaches its end, 2^62 ns (146 years); the trace's "
                         "times or the costs of profile %s are too large",
                         self->profile->name);
    self->base.failed = true;
}

void sim_stream_stalls(struct sim_device *self, uint64_t ns)
{
    uint64_t *stall_ns = &self->base.counters.stall_ns;
    *stall_ns = sim_time_plus(*stall_ns, ns);
    if (*stall_ns == SIM_TIME_END_NS)
        sim_time_ends(self);
}

uint64_t sim_cost_now(struct sim_device *self, enum sim_cost cost, uint64_t bytes)
{
    bool busy = sim_clock_busy(&self->clock);
    struct sim_recent *last = &self->costs[cost][busy];
    if (last->size != bytes || !bytes) {
        last->size = bytes;
        last->ns = sim_profile_cost(self->profile, cost, bytes, busy);
    }
    return last->ns;
}

static void count(struct sim_device *self, enum ar_device_call call, uint64_t bytes, uint64_t ns,
                  bool refused)
{
    ns = sim_pass(self, ns);
    ar_device_count(&self->base, call, bytes, ns, self->waited_ns, refused);
    self->waited_ns = 0;
}

void sim_call(struct sim_device *self, enum ar_device_call call, enum sim_cost cost, uint64_t bytes,
              uint64_t ns)
{
    enum sim_cost kind = sim_cost_rested(cost);
    uint64_t *ended_ns = &self->ended_ns[kind], *carried_ns = &self->carried_ns[kind];
    uint64_t rest_ns = *ended_ns ? self->clock.now_ns - (*ended_ns - 1) : UINT64_MAX;
    *carried_ns = sim_profile_added(self->profile, kind, rest_ns, *carried_ns);
    count(self, call, bytes, ns + *carried_ns, false);
    *ended_ns = self->clock.now_ns + 1;
}

enum ar_status sim_refuse(struct sim_device *self, enum ar_device_call call, enum sim_cost cost,
                          uint64_t bytes)
{
    count(self, call, bytes, sim_profile_least(self->profile, cost), true);
    return AR_REFUSED;
}

void sim_await_work(struct sim_device *self, enum sim_cost call)
{
    if (self->profile->waits >> call & 1)
        self->waited_ns += sim_clock_sync(&self->clock, SIM_ALL_STREAMS);
}

void sim_charge(struct sim_device *self, enum ar_device_call call, enum sim_cost waits,
                enum sim_cost cost, uint64_t bytes, uint64_t cost_bytes)
{
    uint64_t ns = sim_cost_now(self, cost, cost_bytes);
    sim_await_work(self, waits);
    sim_call(self, call, cost, bytes, ns);
}

void sim_await_cleaning(struct sim_device *self, uint64_t unit_bytes, enum sim_cost cost)
{
    uint64_t wait_ns = sim_ledger_cleaning_ns(
        &self->ledger, unit_bytes, self->profile->cleaning_wait_bytes[cost], self->clock.now_ns);
    self->waited_ns += sim_pass(self, wait_ns);
}

void sim_show_memory(struct sim_device *self)
{
    struct ar_device_counters *counters = &self->base.counters;
    counters->physical_bytes = self->ledger.physical_bytes;
    counters->peak_physical_bytes = self->ledger.peak_physical_bytes;
    counters->outside_bytes = self->ledger.outside_bytes;
    counters->others_bytes = self->ledger.others_bytes;
}

/* Frees every node of a tree, whose structs begin with their range. */
static void free_all(struct ranges *ranges)
{
    while (ranges->root) {
        struct range *range = ranges->root;
        ranges_remove(ranges, range);
        free(range);
    }
}

static void sim_close(struct ar_device *device)
{
    struct sim_device *self = sim_of(device);
    sim_pool_close(self->pool);
    sim_pinned_close(self);
    free_all(&self->memory.mappings);
    free_all(&self->memory.physicals);
    free_all(&self->memory.segments);
    free_all(&self->small.pages);
    device_memory_close(&self->memory);
    sim_addresses_close(&self->addresses);
    sim_addresses_close(&self->ranges);
    sim_clock_close(&self->clock);
    free(self->own_profile);
    free(self);
}

static enum ar_status sim_others(struct ar_device *device, uint64_t bytes)
{
    struct sim_device *self = sim_of(device);
    if (!sim_ledger_others(&self->ledger, bytes))
        return AR_REFUSED;
    sim_show_memory(self);
    return AR_OK;
}

static void sim_driver(struct ar_device *device, bool is_local, uint64_t bytes)
{
    struct sim_device *self = sim_of(device);
    const struct sim_profile *profile = self->profile;
    if (self->addresses.form != SIM_ADDRESSES_DRIVER || strcmp(profile->compute, "9.0") != 0)
        return; /* measured on an H200, and as recorded on an H100 */
    if (is_local)
        address_space_local(&self->addresses.space, profile->processors * profile->threads * bytes);
    else
        address_space_taken(&self->addresses.space, bytes);
}

static enum ar_status sim_outside(struct ar_device *device, uint64_t bytes)
{
    struct sim_device *self = sim_of(device);
    if (!sim_ledger_outside(&self->ledger, bytes))
        return AR_REFUSED;
    sim_show_memory(self);
    return AR_OK;
}

/* The host spends time on the program's own actions. */
static inline void program_takes(struct sim_device *self, uint64_t ns)
{
    self->program_ns += sim_pass(self, ns);
}

/* Recorded gaps contain the time of the program's own actions, such as launches. What exceeds the
 * next gap is subtracted from later ones. */
static void sim_advance(struct ar_device *device, uint64_t nanoseconds)
{
    struct sim_device *self = sim_of(device);
    uint64_t program_ns = self->program_ns < nanoseconds ? self->program_ns : nanoseconds;
    (void)sim_pass(self, nanoseconds - program_ns);
    self->program_ns -= program_ns;
}

static uint64_t sim_now(struct ar_device *device)
{
    return sim_of(device)->clock.now_ns;
}

static uint64_t sim_idle_at(struct ar_device *device)
{
    return sim_clock_idle_at(&sim_of(device)->clock);
}

/* A mark is its time: the end of queued work is known. */
static uint64_t sim_mark(struct ar_device *device)
{
    struct sim_device *self = sim_of(device);
    uint64_t host_ns = sim_now(device), idle_ns = sim_idle_at(device);
    program_takes(self, self->mark_ns);
    return idle_ns > host_ns ? idle_ns : host_ns;
}

static uint64_t sim_mark_ns(struct ar_device *device AR_UNUSED, uint64_t mark)
{
    return mark;
}

static void sim_kernel(struct ar_device *device, uint32_t stream, uint64_t nanoseconds)
{
    struct sim_device *self = sim_of(device);
    if (self->charges_launches) {
        uint64_t ns = sim_clock_busy(&self->clock) ? self->launch_busy_ns : self->launch_ns;
        uint64_t least_ns = self->profile->kernel_least_ns ? self->profile->kernel_least_ns : ns;
        self->owed_ns += nanoseconds;
        if (self->owed_ns >= least_ns) { /* shorter ones join the next, as on the CUDA device */
            self->owed_ns = 0;
            program_takes(self, ns);
        }
    }
    if (__builtin_expect(!sim_clock_launch(&self->clock, stream, nanoseconds), 0))
        sim_clock_kernel(&self->clock, stream, nanoseconds);
    if (__builtin_expect(self->clock.latest_ns == SIM_TIME_END_NS, 0))
        sim_time_ends(self);
}

/* A library of matrix products loads with the first product, and its kernels with the first product
 * of each type and order of lengths. */
static void sim_prepare(struct ar_device *device, const struct ar_kernel_op *op)
{
    struct sim_device *self = sim_of(device);
    unsigned order = (unsigned)(op->m >= op->n) + 2 * (unsigned)(op->n >= op->k) +
                     4 * (unsigned)(op->m >= op->k);
    uint64_t bit = UINT64_C(1) << (8 * (unsigned)op->type + order);
    if (op->kind != AR_KERNEL_OP_matmul || self->products_seen & bit)
        return;
    enum sim_cost cost = self->products_seen ? SIM_COST_product_new : SIM_COST_product_first;
    uint64_t ns = sim_cost_now(self, cost, 1);
    self->products_seen |= bit;
    program_takes(self, ns);
}

static void sim_requested(struct ar_device *device)
{
    struct sim_device *self = sim_of(device);
    program_takes(self, self->request_ns);
}

static uint64_t sim_device_kernel_op_ns(struct ar_device *device, const struct ar_kernel_op *op)
{
    struct sim_device *self = sim_of(device);
    return sim_kernel_op_ns(self->profile, op, self->kernel_ops);
}

static void sim_event_record(struct ar_device *device, uint64_t event, uint32_t stream)
{
    struct sim_device *self = sim_of(device);
    program_takes(self, self->record_ns);
    sim_clock_event_record(&self->clock, event, stream);
    sim_pool_event(self, stream);
}

static void sim_stream_wait(struct ar_device *device, uint32_t stream, uint64_t event)
{
    struct sim_device *self = sim_of(device);
    program_takes(self, self->wait_ns);
    sim_clock_stream_wait(&self->clock, stream, event);
    sim_pool_stream_waits(self, stream);
}

static void sim_sync(struct ar_device *device, uint32_t stream)
{
    struct sim_device *self = sim_of(device);
    (void)sim_clock_sync(&self->clock, stream);
    sim_pool_settle(self, stream);
}

static const char *sim_race_text(struct ar_device *device)
{
    return sim_of(device)->race;
}

static bool sim_segment_of(struct ar_device *device, uint64_t address,
                           struct ar_device_segment *out)
{
    const struct memory_segment *segment = memory_segment_find(&sim_of(device)->memory, address);
    if (!segment)
        return false;
    *out = (struct ar_device_segment){
        .ordinal = segment->ordinal, .address = segment->range.start, .bytes = segment->bytes};
    return true;
}

static const char *sim_problem(struct ar_device *device)
{
    return sim_of(device)->problem;
}

/* If the host knows already, there is no driver call: it is only counted. */
static struct ar_backing_ticket sim_fence(struct ar_backing *backing, uint32_t stream)
{
    struct sim_device *self = sim_of_backing(backing);
    enum sim_cost cost =
        sim_clock_fence_is_new(&self->clock, stream) ? SIM_COST_event : SIM_COST_event_known;
    sim_call(self, AR_DEVICE_CALL_event, cost, 0, sim_cost_now(self, cost, 1));
    return sim_clock_fence(&self->clock, stream);
}

static bool sim_done(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct sim_device *self = sim_of_backing(backing);
    self->base.counters.polls++;
    if (sim_clock_is_open(&self->clock, ticket))
        sim_call(self, AR_DEVICE_CALL_event, SIM_COST_event_poll, 0,
                 sim_cost_now(self, SIM_COST_event_poll, 1));
    else
        count(self, AR_DEVICE_CALL_event, 0, 0, false);
    return sim_clock_done(&self->clock, ticket);
}

/* All of it is a wait, also the time of the call. */
static void sim_wait(struct ar_backing *backing, struct ar_backing_ticket ticket)
{
    struct sim_device *self = sim_of_backing(backing);
    uint64_t asked_ns =
        sim_clock_is_open(&self->clock, ticket) ? sim_cost_now(self, SIM_COST_event_poll, 1) : 0;
    self->waited_ns += sim_pass(self, asked_ns);
    self->waited_ns += sim_clock_wait(&self->clock, ticket);
    count(self, AR_DEVICE_CALL_event, 0, 0, false);
    sim_pool_settle(self, ticket.stream);
}

/* The time of a fence of a stream about which the host knows all, if it is always the same. */
static bool known_fence_ns(const struct sim_device *self, uint64_t *ns)
{
    const struct sim_profile *profile = self->profile;
    enum sim_cost kind = SIM_COST_event_known;
    *ns = sim_profile_least(profile, kind);
    return !profile->busy_costs[kind].count && profile->busy_percent[kind] <= 100 &&
           !profile->rest_costs[kind].count && *ns < UINT64_C(1) << 40;
}

/* Bytes for a nanosecond: on a card if the profile has no kernel ops, and over PCIe 5 with pageable
 * host memory. */
#define COPY_BYTES_PER_NS 1000
#define HOST_BYTES_PER_NS 10

/* The time of a copy is a wait, counted as a call about an event. */
static enum ar_status copied(struct sim_device *self, uint64_t ns)
{
    self->waited_ns += sim_clock_sync(&self->clock, SIM_ALL_STREAMS);
    self->waited_ns += sim_pass(self, self->launch_ns + ns);
    count(self, AR_DEVICE_CALL_event, 0, 0, false);
    sim_pool_settle(self, SIM_ALL_STREAMS);
    return AR_OK;
}

static enum ar_status sim_copy(struct ar_backing *backing, uint64_t to, uint64_t from,
                               uint64_t bytes)
{
    struct sim_device *self = sim_of_backing(backing);
    AR_TRY(memory_check_usable(&self->memory, "a copy", from, bytes));
    AR_TRY(memory_check_usable(&self->memory, "a copy", to, bytes));
    uint64_t ns = sim_profile_kernel_op(self->profile, SIM_KERNEL_OP_copy, 2 * bytes);
    return copied(self, ns ? ns : bytes / COPY_BYTES_PER_NS);
}

static enum ar_status sim_copy_out(struct ar_backing *backing, void *to AR_UNUSED, uint64_t from,
                                   uint64_t bytes)
{
    struct sim_device *self = sim_of_backing(backing);
    AR_TRY(memory_check_usable(&self->memory, "a copy", from, bytes));
    return copied(self, bytes / HOST_BYTES_PER_NS);
}

static enum ar_status sim_copy_in(struct ar_backing *backing, uint64_t to, const void *from,
                                  uint64_t bytes)
{
    return sim_copy_out(backing, (void *)from, to, bytes);
}

/* The host knows all about `count` streams: each fence and its wait is counted. */
static void sim_wait_known(struct sim_device *self, uint64_t count, uint64_t fence_ns)
{
    struct ar_device_counters *counters = &self->base.counters;
    uint64_t ns = sim_pass(self, count * fence_ns);
    counters->calls[AR_DEVICE_CALL_event] += 2 * count;
    counters->call_ns[AR_DEVICE_CALL_event] += ns;
    counters->driver_ns += ns;
}

/* Looks only at the streams about which the host does not know all. */
static void sim_wait_streams(struct ar_backing *backing, uint32_t count)
{
    struct sim_device *self = sim_of_backing(backing);
    uint64_t fence_ns;
    bool skips = known_fence_ns(self, &fence_ns) && !self->pool && !self->base.observer.call;
    for (uint32_t stream = 0; stream < count; stream++) {
        uint32_t open = skips ? sim_clock_next_open(&self->clock, stream) : stream;
        if (open >= count)
            open = count - 1; /* the last one may be new */
        sim_wait_known(self, open - stream, fence_ns);
        stream = open;
        if (sim_clock_fence_is_nothing(&self->clock, stream)) {
            sim_call(self, AR_DEVICE_CALL_event, SIM_COST_event_known, 0,
                     sim_cost_now(self, SIM_COST_event_known, 1));
            sim_wait(backing, (struct ar_backing_ticket){.stream = stream});
        } else {
            sim_wait(backing, sim_fence(backing, stream));
        }
    }
}

/* The stream waits. The host's call takes as long as recording an event. */
static void sim_order(struct ar_backing *backing, uint32_t stream, struct ar_backing_ticket ticket)
{
    struct sim_device *self = sim_of_backing(backing);
    bool asked = ticket.stream != stream && sim_clock_is_open(&self->clock, ticket);
    enum sim_cost cost = asked ? SIM_COST_event : SIM_COST_event_known;
    sim_call(self, AR_DEVICE_CALL_event, cost, 0, sim_cost_now(self, cost, 1));
    sim_stream_stalls(self, sim_clock_stream_wait_ticket(&self->clock, stream, ticket));
    sim_pool_stream_waits(self, stream);
}

static void sim_memory(struct ar_backing *backing, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct sim_device *self = sim_of_backing(backing);
    *free_bytes = sim_ledger_free(&self->ledger);
    *total_bytes = self->base.props.total_bytes;
}

static const char *sim_backing_problem(struct ar_backing *backing)
{
    return sim_problem(&sim_of_backing(backing)->base);
}

static enum ar_status sim_used_up(const struct ar_device *device, struct ar_error *error)
{
    const struct sim_device *self = (const struct sim_device *)device;
    AR_TRY(sim_addresses_used_up(&self->addresses, error));
    return sim_addresses_used_up(&self->ranges, error);
}

static const struct ar_device_ops sim_ops = {
    .close = sim_close,
    .used_up = sim_used_up,
    .outside = sim_outside,
    .driver = sim_driver,
    .others = sim_others,
    .advance = sim_advance,
    .now = sim_now,
    .idle_at = sim_idle_at,
    .kernel = sim_kernel,
    .event_record = sim_event_record,
    .stream_wait = sim_stream_wait,
    .sync = sim_sync,
    .used = sim_used,
    .handed_out = sim_handed_out,
    .race_text = sim_race_text,
    .segment_of = sim_segment_of,
    .problem = sim_problem,
    .mark = sim_mark,
    .mark_ns = sim_mark_ns,
    .prepare = sim_prepare,
    .requested = sim_requested,
    .kernel_op_ns = sim_device_kernel_op_ns,
};

#define SIM_BACKING_COMMON                                                                         \
    .segment_alloc = sim_segment_alloc, .segment_free = sim_segment_free, .fence = sim_fence,      \
    .done = sim_done, .wait = sim_wait, .order = sim_order, .memory = sim_memory,                  \
    .problem = sim_backing_problem

static const struct ar_backing_ops sim_plain_ops = {SIM_BACKING_COMMON};

static const struct ar_backing_ops sim_virtual_ops = {
    SIM_BACKING_COMMON,
    .reserve = sim_reserve,
    .release = sim_release,
    .create = sim_create,
    .destroy = sim_destroy,
    .map = sim_map,
    .access = sim_access,
    .unmap = sim_unmap,
    .copy = sim_copy,
    .copy_out = sim_copy_out,
    .copy_in = sim_copy_in,
    .wait_streams = sim_wait_streams,
    .pool_open = sim_pool_open,
    .pool_alloc = sim_pool_alloc,
    .pool_free = sim_pool_free,
    .pool_trim = sim_pool_trim,
    .pool_memory = sim_pool_memory,
};

/* A profile of this device alone, a copy of `from` if that is given; NULL: no host memory. */
static struct sim_profile *profile_own(struct sim_device *self, const struct sim_profile *from,
                                       struct ar_error *error)
{
    self->own_profile = malloc(sizeof *self->own_profile);
    self->profile = self->own_profile;
    if (!self->own_profile)
        (void)ar_error_set(error, AR_HOST_MEMORY, "no memory for a simulated device");
    else if (from)
        *self->own_profile = *from;
    return self->own_profile;
}

/* Reads a built-in profile. Most processes create many devices of one profile: the first that is
 * read is kept, written once and then only read, so that threads and forks need no lock. */
static enum ar_status builtin_open(struct sim_device *self, const char *const *lines,
                                   const char *name, struct ar_error *error)
{
    enum { EMPTY, BEING_WRITTEN, READY };
    static struct sim_profile first;
    static const char *const *first_lines;
    static atomic_int state;
    if (atomic_load(&state) == READY && first_lines == lines) {
        self->profile = &first;
        return AR_OK;
    }
    struct sim_profile *own = profile_own(self, NULL, error);
    AR_TRY(own ? sim_profile_read(lines, name, own, error) : AR_HOST_MEMORY);
    int empty = EMPTY;
    if (atomic_compare_exchange_strong(&state, &empty, BEING_WRITTEN)) {
        first = *own;
        first_lines = lines;
        atomic_store(&state, READY);
    }
    return AR_OK;
}

static enum ar_status profile_open(struct sim_device *self, const char *name,
                                   struct ar_error *error)
{
    const char *const *lines = sim_profile_builtin(name);
    if (lines)
        return builtin_open(self, lines, name, error);
    if (strchr(name, '/') || strchr(name, '.'))
        return profile_own(self, NULL, error) ? sim_profile_load(name, self->own_profile, error)
                                              : AR_HOST_MEMORY;
    const char *names[SIM_PROFILES_MOST];
    size_t count = sim_profile_names(names, SIM_PROFILES_MOST);
    char all[512] = "";
    for (size_t i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
                 i == 0           ? ""
                 : i == count - 1 ? " and "
                                  : ", ",
                 names[i]);
    const char *near = ar_nearest_name(name, names, count);
    size_t length = strlen(name);
    for (size_t i = count; i-- > 0 && length >= 3 && !(near && !strncmp(near, name, length));)
        if (strncmp(names[i], name, length) == 0)
            near = names[i]; /* "a100" is the beginning of a100-80, and no misspelt h100 */
    return ar_invalid(error,
                      "device sim has no profile \"%s\"%s%s%s. There are %s, and a profile's file "
                      "is given with its path, as in profile=./mine.profile",
                      name, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "",
                      all);
}

/* Checks a capacity in the spec. */
static enum ar_status capacity_check(const struct sim_profile *profile, uint64_t capacity_bytes,
                                     uint64_t unit_bytes, struct ar_error *error)
{
    if (profile->page_bytes && capacity_bytes / profile->page_bytes > SIM_PAGES_MOST)
        return ar_invalid(error,
                          "device sim: capacity=%" PRIu64 " is more than 2^26 pages of %" PRIu64
                          " bytes, which no card has; ask for less, or leave it out",
                          capacity_bytes, profile->page_bytes);
    if (capacity_bytes && capacity_bytes < 1024 && capacity_bytes < unit_bytes)
        return ar_invalid(error,
                          "device sim: capacity=%" PRIu64 " is less than one page of %" PRIu64
                          " bytes; did you mean capacity=%" PRIu64 "GiB?",
                          capacity_bytes, unit_bytes, capacity_bytes);
    if (capacity_bytes < unit_bytes)
        return ar_invalid(error,
                          "device sim: capacity=%" PRIu64 " is less than one page of %" PRIu64
                          " bytes, so nothing could be allocated; ask for more, or leave it out",
                          capacity_bytes, unit_bytes);
    return AR_OK;
}

/* The capacity in the spec, and the memory of other processes, in whole units. */
static enum ar_status ledger_open(struct sim_device *self, const struct sim_options *options,
                                  bool given, struct ar_error *error)
{
    const struct sim_profile *profile = self->profile;
    struct sim_ledger *ledger = &self->ledger;
    uint64_t unit_bytes = profile->page_bytes ? profile->page_bytes : profile->granule_bytes;
    uint64_t capacity_bytes = options->capacity_bytes;
    ledger->unit_bytes = unit_bytes;
    ledger->cleaning_bytes_per_us = profile->cleaning_bytes_per_us;
    if (given)
        AR_TRY(capacity_check(profile, capacity_bytes, unit_bytes, error));
    if (!given)
        capacity_bytes = profile->total_bytes ? profile->usable_bytes : UINT64_MAX;
    /* A capacity in the spec means a card of that size. */
    self->base.props.total_bytes =
        given || !profile->total_bytes ? capacity_bytes : profile->total_bytes;
    self->base.props.capacity_bytes = capacity_bytes;
    self->base.props.most_bytes =
        profile->page_bytes ? SIM_PAGES_MOST * profile->page_bytes : UINT64_MAX;
    snprintf(self->base.props.costs_of, sizeof self->base.props.costs_of, "%s",
             profile->costs_of[0]                                            ? profile->costs_of
             : profile->total_bytes && capacity_bytes > profile->total_bytes ? profile->name
                                                                             : "");
    ledger->capacity_bytes =
        capacity_bytes == UINT64_MAX ? UINT64_MAX : ar_size_round_down(capacity_bytes, unit_bytes);
    ledger->others_bytes = sim_ledger_units(ledger, options->others_bytes);
    if (ledger->others_bytes >= ledger->capacity_bytes)
        return ar_invalid(error,
                          "device sim: others=%" PRIu64
                          " leaves nothing of the capacity of %" PRIu64
                          " bytes; let others hold less",
                          options->others_bytes, ledger->capacity_bytes);
    return AR_OK;
}

/* The costs of the program's own actions, which have no size. */
static void program_open(struct sim_device *self)
{
    self->launch_ns = sim_profile_cost(self->profile, SIM_COST_launch, 1, false);
    self->launch_busy_ns = sim_profile_cost(self->profile, SIM_COST_launch, 1, true);
    self->charges_launches =
        self->launch_ns || self->launch_busy_ns || self->profile->kernel_least_ns;
    self->request_ns = sim_profile_cost(self->profile, SIM_COST_request, 1, false);
    self->mark_ns = sim_profile_cost(self->profile, SIM_COST_mark, 1, false);
    self->record_ns = sim_profile_cost(self->profile, SIM_COST_record, 1, false);
    self->wait_ns = sim_profile_cost(self->profile, SIM_COST_wait, 1, false);
}

static void sim_describe(struct sim_device *self)
{
    const struct sim_profile *profile = self->profile;
    struct ar_device_props *props = &self->base.props;
    snprintf(props->kind, sizeof props->kind, "sim");
    snprintf(props->profile, sizeof props->profile, "%s", profile->name);
    props->has_virtual_memory = profile->page_bytes != 0;
    props->has_pool = profile->page_bytes != 0;
    props->has_timing = true;
    props->kernel_least_ns = profile->kernel_least_ns;
    self->ops = sim_ops;
    if (!profile->costs[SIM_COST_product_first].count &&
        !profile->costs[SIM_COST_product_new].count)
        self->ops.prepare = NULL;
    if (!profile->costs[SIM_COST_request].count)
        self->ops.requested = NULL;
    if (!sim_profile_has_kernel_ops(profile))
        self->ops.kernel_op_ns = NULL;
    self->base.ops = &self->ops;
    self->base.clock_ns = &self->clock.now_ns;
    self->base.backing = &self->backing;
    self->backing = (struct ar_backing){
        .ops = profile->page_bytes ? &sim_virtual_ops : &sim_plain_ops,
        .granule_bytes = profile->granule_bytes,
        .page_bytes = profile->page_bytes,
        /* On a card, neighbouring addresses are a coincidence: shipped TensorFlow does not merge
         * such segments. If memory is charged to the byte, they are the rule. */
        .adjacent = profile->page_bytes == 0,
    };
    self->small.granule_bytes = profile->granule_bytes;
    self->small.page_bytes = profile->page_bytes;
    program_open(self);
    sim_show_memory(self);
}

/* A host other than that of the profile. */
static enum ar_status host_open(struct sim_device *self, const struct sim_options *options,
                                bool given, struct ar_error *error)
{
    if (!given)
        return AR_OK;
    if (!self->profile->host_clock_ps)
        return ar_invalid(
            error,
            "device sim, option host_clock_ns: the profile %s has no line host_clock_ps, so its "
            "costs cannot be brought to another host; leave the option out, calibrate again, or "
            "take the profile h100-rested, which has one",
            self->profile->name);
    struct sim_profile *own =
        self->own_profile ? self->own_profile : profile_own(self, self->profile, error);
    AR_TRY_HOST(own);
    enum ar_status status =
        sim_profile_at_host(own, 1000 * options->host_clock_ns, own->name, error);
    /* Results show which host it is. */
    size_t used = strlen(own->name);
    snprintf(own->name + used, sizeof own->name - used, "@%" PRIu64 "ns", options->host_clock_ns);
    return ar_error_prefix(error, status, "device sim, option host_clock_ns");
}

/* The list of reserved ranges, if there is one. They are whole pages. */
static enum ar_status ranges_open(struct sim_device *self, const char *path, struct ar_error *error)
{
    if (!path)
        return AR_OK;
    if (self->addresses.form == SIM_ADDRESSES_DRIVER)
        return ar_invalid(error, "device sim, option ranges: addresses=driver places the reserved "
                                 "ranges too; leave out one of the two");
    return sim_addresses_open(&self->ranges, path, 0, self->ledger.unit_bytes,
                              self->ledger.unit_bytes, 0, error);
}

static enum ar_status sim_open(const struct ar_spec_link *link, struct ar_device **out,
                               struct ar_error *error)
{
    struct sim_options options = {0};
    AR_TRY(ar_options_read(sim_options, link, "device sim", &options, error));
    struct sim_device *self = calloc(1, sizeof *self);
    AR_TRY_MEMORY(self, error, "a simulated device");
    device_memory_open(&self->memory, self->problem, sizeof self->problem);
    sim_clock_open(&self->clock, (uint32_t)options.launch_queue);
    enum ar_status status = profile_open(self, options.profile, error);
    AR_THEN(status,
            host_open(self, &options, ar_spec_link_value(link, "host_clock_ns") != NULL, error));
    if (status == AR_OK)
        self->memory.page_bytes = self->profile->page_bytes;
    AR_THEN(status,
            ledger_open(self, &options, ar_spec_link_value(link, "capacity") != NULL, error));
    AR_THEN(status, sim_addresses_open(&self->addresses, options.addresses,
                                       self->profile->first_address, self->ledger.unit_bytes,
                                       self->profile->granule_bytes, options.seed, error));
    AR_THEN(status, ranges_open(self, options.ranges, error));
    if (status != AR_OK) {
        sim_close(&self->base);
        return status;
    }
    sim_describe(self);
    sim_pinned_open(self, options.host_bytes);
    *out = &self->base;
    return AR_OK;
}

static bool sim_available(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "on every machine");
    return true;
}

const struct ar_device_kind sim_device_kind = {
    .name = "sim",
    .summary = "a simulated GPU with a virtual clock; what a card's profile says, exactly",
    .options = sim_options,
    .open = sim_open,
    .available = sim_available,
};

/* Uses of memory by streams, and races.
 *
 * 1. `used` records the stream's work so far as a use of the memory behind a range.
 * 2. `handed_out` checks all such uses by other streams. A use is harmless if it comes before all
 *    future work of the new owner: through events and waits, or because the host knows that it is
 *    done. That its time has passed is not enough: on a slower card it would not have.
 * 3. For other uses the new owner waits, or there is a race. Either way the old uses are removed:
 *    the use of the new owner comes after them.
 * 4. A stream that owns a block counts as using it even without a kernel: recordings do not contain
 *    copies, and some contain no kernels at all. */

void sim_used(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t stream,
              uint64_t event)
{
    struct sim_device *self = (struct sim_device *)device;
    struct sim_moment here = sim_clock_here(&self->clock, stream);
    if (here.sequence == 0)
        here.sequence = sim_clock_touch(&self->clock, stream);
    memory_use(
        &self->memory, address, bytes,
        (struct sim_use){
            .sequence = here.sequence, .time_ns = here.time_ns, .event = event, .stream = stream});
}

struct hand_out {
    struct sim_device *self;
    uint64_t address; /* of the block */
    uint64_t event;
    uint64_t stall_ns;
    uint32_t stream;
    bool order, raced;
};

static void report_race(struct hand_out *hand_out, const struct sim_use *use, uint64_t bytes)
{
    struct sim_device *self = hand_out->self;
    if (!self->race[0])
        snprintf(self->race, sizeof self->race,
                 "event %" PRIu64 ": the block at %" PRIu64 " on stream %" PRIu32 " got %" PRIu64
                 " bytes that stream %" PRIu32 " may still use: they were freed at event %" PRIu64
                 " and nothing since makes stream %" PRIu32 " wait for it",
                 hand_out->event, hand_out->address, hand_out->stream, bytes, use->stream,
                 use->event, hand_out->stream);
    hand_out->raced = true;
}

static bool hand_out_visit(void *argument, const struct sim_use *use, uint64_t start, uint64_t end)
{
    struct hand_out *hand_out = argument;
    struct sim_clock *clock = &hand_out->self->clock;
    if (sim_clock_ordered(clock, use->stream, use->sequence, hand_out->stream))
        return true;
    if (hand_out->order)
        hand_out->stall_ns +=
            sim_clock_order(clock, use->stream, use->sequence, use->time_ns, hand_out->stream);
    else
        report_race(hand_out, use, end - start);
    return true;
}

static void report_unusable(struct hand_out *hand_out, uint64_t address, bool mapped)
{
    struct sim_device *self = hand_out->self;
    if (!self->race[0])
        snprintf(self->race, sizeof self->race,
                 "event %" PRIu64 ": the block at %" PRIu64 " on stream %" PRIu32
                 " got memory at %" PRIu64 " that %s",
                 hand_out->event, hand_out->address, hand_out->stream, address,
                 mapped ? "is mapped without access" : "is not mapped");
    hand_out->raced = true;
}

uint64_t sim_handed_out(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t stream,
                        bool order, uint64_t event)
{
    struct sim_device *self = (struct sim_device *)device;
    struct hand_out hand_out = {
        .self = self, .address = address, .event = event, .stream = stream, .order = order};
    while (bytes) {
        struct memory_piece piece = memory_piece_at(&self->memory, address, bytes);
        if (!piece.usable)
            report_unusable(&hand_out, address, piece.mapping != 0);
        memory_pass_on(&self->memory, &piece, hand_out_visit, &hand_out);
        address += piece.length;
        bytes -= piece.length;
    }
    (void)sim_clock_touch(&self->clock, stream);
    self->base.counters.races += hand_out.raced;
    sim_stream_stalls(self, hand_out.stall_ns);
    return hand_out.stall_ns;
}
