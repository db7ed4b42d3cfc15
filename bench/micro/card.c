/* A device whose calls take time, for the card's sections of the micro-benchmarks. Times are of the
 * device's clock: the host's on a card, modelled on a simulated device.
 *
 * `busy`: a kernel runs on stream CARD_BUSY_STREAM whenever a call is timed. When it has ended, the
 * next is queued outside of the timed part. A call that waits for the device therefore waits up to
 * CARD_KERNEL_NS, which is part of its time and reported separately as wait_ns. */

#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/micro/grid.h"
#include "sim/device.h"
#include "sim/replay/timing.h"
#include "workloads/trace/event.h"

enum { CARD_STREAM = 0, CARD_BUSY_STREAM = 1, CARD_OTHER_STREAM = 2 };
#define CARD_KERNEL_NS UINT64_C(2000000)
#define CARD_BUDGET_NS (20 * UINT64_C(1000000))
#define CARD_LEAST     5u

struct timed_card {
    struct ar_device *device;
    bool busy;
    bool queued; /* `kernel` is a fence after the last kernel */
    struct ar_backing_ticket kernel;
    uint64_t clock_ns; /* of reading the device's clock twice */
    uint64_t begun_ns; /* of the timed call */
    /* Of the device's counters: at timed_card_start, what the last timed call added, and all of
     * them. */
    struct card_sums {
        uint64_t driver_ns, stall_ns, calls;
    } before, last, all;
};

enum { CLOCK_TRIALS = 101 };

static struct card_sums sums_of(const struct ar_device *device)
{
    return (struct card_sums){.driver_ns = device->counters.driver_ns,
                              .stall_ns = device->counters.stall_ns,
                              .calls = steps_driver_calls(device)};
}

/* The least of many, because an interrupt only adds. */
static uint64_t clock_cost(struct ar_device *device)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < CLOCK_TRIALS; i++) {
        uint64_t begun_ns = device->ops->now(device);
        uint64_t passed_ns = device->ops->now(device) - begun_ns;
        AR_LOWER(least_ns, passed_ns);
    }
    return least_ns;
}

/* Prepares one benchmark. No work may be pending on the device. */
static void timed_card_begin(struct timed_card *card, struct ar_device *device, bool busy)
{
    device->ops->sync(device, TRACE_NO_STREAM);
    *card = (struct timed_card){.device = device, .busy = busy, .clock_ns = clock_cost(device)};
}

/* Before each call: queues a kernel if one must run, and starts the time. */
static void timed_card_start(struct timed_card *card)
{
    struct ar_device *device = card->device;
    if (card->busy && (!card->queued || ar_backing_done(device->backing, card->kernel))) {
        device->ops->kernel(device, CARD_BUSY_STREAM, CARD_KERNEL_NS);
        card->kernel = ar_backing_fence(device->backing, CARD_BUSY_STREAM);
        card->queued = true;
    }
    card->before = sums_of(device);
    card->begun_ns = device->ops->now(device);
}

/* After it: returns the time since timed_card_start, less the clock's. `last` has the device's own
 * counts of the driver calls in between, without its bookkeeping. */
static uint64_t timed_card_stop(struct timed_card *card)
{
    uint64_t passed_ns = card->device->ops->now(card->device) - card->begun_ns;
    struct card_sums after = sums_of(card->device);
    card->last = (struct card_sums){.driver_ns = after.driver_ns - card->before.driver_ns,
                                    .stall_ns = after.stall_ns - card->before.stall_ns,
                                    .calls = after.calls - card->before.calls};
    card->all.driver_ns += card->last.driver_ns;
    card->all.stall_ns += card->last.stall_ns;
    card->all.calls += card->last.calls;
    return passed_ns > card->clock_ns ? passed_ns - card->clock_ns : 0;
}

/* Waits for the device and reports the samples, each of `operations`, with driver_ns, wait_ns and
 * driver_calls of a sample. */
static void timed_card_report(struct timed_card *card, struct samples *samples,
                              struct micro_state *state, uint64_t operations)
{
    struct ar_device *device = card->device;
    double count = (double)samples->count;
    device->ops->sync(device, TRACE_NO_STREAM);
    samples_report(samples, state, operations);
    micro_counter(state, "driver_ns", (double)card->all.driver_ns / count);
    micro_counter(state, "wait_ns", (double)card->all.stall_ns / count);
    micro_counter(state, "driver_calls", (double)card->all.calls / count);
}

/* Ends the benchmark with a sentence: that of the device, of the policy, or what the status
 * means. */
static void timed_card_fail(struct timed_card *card, struct micro_state *state,
                            enum ar_status status, const char *sentence)
{
    char text[320];
    if (!sentence || !*sentence)
        sentence = card->device->ops->problem(card->device);
    snprintf(text, sizeof text, "%s%s%s", ar_status_meaning(status), *sentence ? ": " : "",
             sentence);
    card->device->ops->sync(card->device, TRACE_NO_STREAM);
    micro_fail(state, text);
}

/* The driver's own calls, through the device's backing, with no policy.
 *
 * 1. Plain and virtual memory: a round allocates, uses and releases one piece of memory with all
 *    calls in order. Each benchmark times one kind of call. A round leaves nothing, even if a call
 *    fails.
 * 2. The stream-ordered pool, which keeps all its memory (no release threshold). `one`: alloc and
 *    free on one stream, idle, and with a kernel running on that stream. `two`: a block is freed on
 *    a stream that a kernel keeps busy, then alloc and free of the same size on another stream
 *    are timed; `reused` is the share of rounds that got the same address.
 * 3. The time is that of the driver's function alone, without the device's bookkeeping, which also
 *    calls the driver. */

enum pool_use { POOL_ONE, POOL_TWO };

struct call_cell {
    struct ar_device *device;
    enum ar_device_call call; /* of plain and virtual memory */
    enum pool_use use;        /* of the pool */
    uint64_t bytes;
    bool busy;
};

/* ---- plain and virtual memory ---------------------------------------------------------------- */

struct piece {
    uint64_t address;
    ar_backing_handle handle;
    bool held, created, reserved, mapped;
};

static enum ar_status call_once(struct ar_backing *backing, enum ar_device_call call,
                                uint64_t bytes, struct piece *piece)
{
    enum ar_status status = AR_UNSUPPORTED;
    bool *changes = NULL, to = false;
    switch (call) {
    case AR_DEVICE_CALL_alloc:
        status = ar_backing_segment_alloc(backing, bytes, &piece->address);
        changes = &piece->held, to = true;
        break;
    case AR_DEVICE_CALL_free:
        status = ar_backing_segment_free(backing, piece->address);
        changes = &piece->held;
        break;
    case AR_DEVICE_CALL_create:
        status = ar_backing_create(backing, bytes, &piece->handle);
        changes = &piece->created, to = true;
        break;
    case AR_DEVICE_CALL_reserve:
        status = ar_backing_reserve(backing, bytes, &piece->address);
        changes = &piece->reserved, to = true;
        break;
    case AR_DEVICE_CALL_map:
        status = ar_backing_map(backing, piece->address, piece->handle);
        changes = &piece->mapped, to = true;
        break;
    case AR_DEVICE_CALL_access:
        return ar_backing_access(backing, piece->address, bytes);
    case AR_DEVICE_CALL_unmap:
        status = ar_backing_unmap(backing, piece->address, bytes);
        changes = &piece->mapped;
        break;
    case AR_DEVICE_CALL_release:
        status = ar_backing_release(backing, piece->address);
        changes = &piece->reserved;
        break;
    case AR_DEVICE_CALL_destroy:
        status = ar_backing_destroy(backing, piece->handle);
        changes = &piece->created;
        break;
    default:
        break;
    }
    if (status == AR_OK && changes)
        *changes = to;
    return status;
}

/* Releases everything after a failure. */
static void put_back(struct ar_backing *backing, uint64_t bytes, struct piece *piece)
{
    if (piece->mapped)
        (void)call_once(backing, AR_DEVICE_CALL_unmap, bytes, piece);
    if (piece->reserved)
        (void)call_once(backing, AR_DEVICE_CALL_release, bytes, piece);
    if (piece->created)
        (void)call_once(backing, AR_DEVICE_CALL_destroy, bytes, piece);
    if (piece->held)
        (void)call_once(backing, AR_DEVICE_CALL_free, bytes, piece);
}

static bool is_plain(enum ar_device_call call)
{
    return call == AR_DEVICE_CALL_alloc || call == AR_DEVICE_CALL_free;
}

static const enum ar_device_call plain_calls[] = {AR_DEVICE_CALL_alloc, AR_DEVICE_CALL_free};
static const enum ar_device_call virtual_calls[] = {
    AR_DEVICE_CALL_create, AR_DEVICE_CALL_reserve, AR_DEVICE_CALL_map,    AR_DEVICE_CALL_access,
    AR_DEVICE_CALL_unmap,  AR_DEVICE_CALL_release, AR_DEVICE_CALL_destroy};
enum { PLAIN_CALLS = AR_COUNT(plain_calls), VIRTUAL_CALLS = AR_COUNT(virtual_calls) };

/* Rule 1. */
static enum ar_status round_of_calls(struct timed_card *card, const struct call_cell *cell,
                                     uint64_t *ns)
{
    struct ar_backing *backing = cell->device->backing;
    const enum ar_device_call *calls = is_plain(cell->call) ? plain_calls : virtual_calls;
    size_t count = is_plain(cell->call) ? PLAIN_CALLS : VIRTUAL_CALLS;
    struct piece piece = {0};
    for (size_t i = 0; i < count; i++) {
        bool timed = calls[i] == cell->call;
        if (timed)
            timed_card_start(card);
        enum ar_status status = call_once(backing, calls[i], cell->bytes, &piece);
        if (timed) {
            (void)timed_card_stop(card);
            *ns = card->last.driver_ns + card->last.stall_ns;
        }
        if (status != AR_OK) {
            put_back(backing, cell->bytes, &piece);
            return status;
        }
    }
    return AR_OK;
}

/* ---- the pool -------------------------------------------------------------------------------- */

static enum ar_status pool_pair(struct ar_backing *backing, uint64_t bytes, uint32_t stream,
                                uint64_t *address)
{
    AR_TRY(backing->ops->pool_alloc(backing, bytes, stream, address));
    return backing->ops->pool_free(backing, *address, stream);
}

/* Rule 2. */
static enum ar_status round_of_pool(struct timed_card *card, const struct call_cell *cell,
                                    uint64_t *ns, uint64_t *reused)
{
    struct ar_backing *backing = cell->device->backing;
    uint64_t first = 0, second = 0;
    uint32_t stream = cell->use == POOL_TWO ? CARD_OTHER_STREAM
                      : cell->busy          ? CARD_BUSY_STREAM
                                            : CARD_STREAM;
    if (cell->use == POOL_TWO) {
        timed_card_start(card); /* queues the kernel before the free */
        AR_TRY(pool_pair(backing, cell->bytes, CARD_BUSY_STREAM, &first));
    }
    timed_card_start(card);
    enum ar_status status = pool_pair(backing, cell->bytes, stream, &second);
    (void)timed_card_stop(card);
    *ns = card->last.driver_ns;
    *reused += cell->use == POOL_TWO && first == second;
    return status;
}

static enum ar_status pool_ready(struct ar_device *device)
{
    static const struct ar_backing_pool settings = {.release_threshold_bytes = UINT64_MAX,
                                                    .follow_events = true,
                                                    .opportunistic = true,
                                                    .internal = true};
    const struct ar_backing_ops *ops = device->backing->ops;
    return ops->pool_open ? ops->pool_open(device->backing, &settings) : AR_OK;
}

/* ---- benchmarks ------------------------------------------------------------------------------ */

static void run_call(struct micro_state *state, void *argument)
{
    const struct call_cell *cell = argument;
    struct timed_card card;
    struct samples samples;
    enum ar_status status = AR_OK;
    while (micro_next(state)) {
        timed_card_begin(&card, cell->device, cell->busy);
        samples_begin(&samples, CARD_BUDGET_NS, CARD_LEAST);
        while (status == AR_OK && samples_more(&samples)) {
            uint64_t ns = 0;
            status = round_of_calls(&card, cell, &ns);
            samples_add(&samples, ns, 0);
        }
        if (status != AR_OK) {
            timed_card_fail(&card, state, status, "");
            return;
        }
        timed_card_report(&card, &samples, state, 1);
    }
}

static void run_pool(struct micro_state *state, void *argument)
{
    const struct call_cell *cell = argument;
    struct timed_card card;
    struct samples samples;
    uint64_t address;
    enum ar_status status = pool_ready(cell->device);
    AR_THEN(status, pool_pair(cell->device->backing, cell->bytes, CARD_STREAM, &address));
    while (micro_next(state)) {
        uint64_t reused = 0;
        timed_card_begin(&card, cell->device, cell->busy);
        samples_begin(&samples, CARD_BUDGET_NS, CARD_LEAST);
        while (status == AR_OK && samples_more(&samples)) {
            uint64_t ns = 0;
            status = round_of_pool(&card, cell, &ns, &reused);
            samples_add(&samples, ns, 0);
        }
        if (status != AR_OK) {
            timed_card_fail(&card, state, status, "");
            return;
        }
        double count = (double)samples.count;
        timed_card_report(&card, &samples, state, 2);
        if (cell->use == POOL_TWO)
            micro_counter(state, "reused", (double)reused / count);
        (void)cell->device->backing->ops->pool_trim(cell->device->backing, 0);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const uint64_t call_sizes[] = {2 * AR_MIB, 64 * AR_MIB, AR_GIB};
static const uint64_t pool_sizes[] = {512, 64 * AR_KIB, 4 * AR_MIB, 64 * AR_MIB};

static void add_columns(struct grid *grid, const uint64_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        grid_column(grid, AR_SIZE_EXACT(sizes[i]));
}

/* One row: `what` at each size. `way`: its name between the device's kind and the size. */
static void add_row(struct sections *sections, struct grid *grid, const char *row_name,
                    const char *way, struct call_cell what, const uint64_t *sizes,
                    micro_function *function)
{
    size_t row = grid_row(grid, row_name);
    for (size_t i = 0; row < GRID_ROWS && i < grid->columns; i++) {
        what.bytes = sizes[i];
        void *cell = sections_cell(sections, &what, sizeof what);
        if (!cell)
            return;
        micro_register_timed(
            grid_name(grid, row, i, "%s/%s/%s", what.device->props.kind, way, grid->column[i]),
            function, cell);
    }
}

static void add_calls(struct sections *sections, struct grid *grid,
                      const enum ar_device_call *calls, size_t count)
{
    for (size_t i = 0; i < 2 * count; i++) {
        struct call_cell what = {
            .device = sections->device, .call = calls[i / 2], .busy = i % 2 != 0};
        char row[32], way[48];
        const char *call = ar_device_call_name(what.call), *load = what.busy ? "busy" : "idle";
        snprintf(row, sizeof row, "%s %s", call, load);
        snprintf(way, sizeof way, "call/%s/%s", call, load);
        add_row(sections, grid, row, way, what, call_sizes, run_call);
    }
}

void card_calls_register(struct sections *sections)
{
    struct ar_device *device = sections->device;
    struct grid *calls = sections_grid(sections, "nanoseconds of one driver call, waiting included",
                                       "call", "ns_per_op");
    if (!calls)
        return;
    calls->median = true;
    add_columns(calls, call_sizes, AR_COUNT(call_sizes));
    add_calls(sections, calls, plain_calls, PLAIN_CALLS);
    if (device->props.has_virtual_memory)
        add_calls(sections, calls, virtual_calls, VIRTUAL_CALLS);
    if (!device->props.has_pool)
        return;
    struct grid *pool =
        sections_grid(sections, "nanoseconds per operation of the driver's stream-ordered pool",
                      "streams", "ns_per_op");
    if (!pool)
        return;
    pool->median = true;
    add_columns(pool, pool_sizes, AR_COUNT(pool_sizes));
    struct call_cell what = {.device = device, .use = POOL_ONE};
    add_row(sections, pool, "one, idle", "pool/one/idle", what, pool_sizes, run_pool);
    what.busy = true;
    add_row(sections, pool, "one, busy", "pool/one/busy", what, pool_sizes, run_pool);
    what.use = POOL_TWO;
    add_row(sections, pool, "two, the first busy", "pool/two/busy", what, pool_sizes, run_pool);
}

/* Alloc and free of each policy on a card, with the card idle and with a kernel running on another
 * stream. A sample is one pair; the policy is warm: the pair was made once before. The time is that
 * of the host for the whole pair, including the device's bookkeeping of driver calls. driver_ns and
 * wait_ns are the driver's part of it. */

/* The limit of policies: enough for all pairs, and small for policies that take their whole limit
 * at once. */
#define LIMIT "4GiB"

struct policy_cell {
    struct ar_device *device;
    const struct ar_policy_ops *policy;
    uint64_t bytes;
    bool busy;
};

static enum ar_status pair(struct ar_policy *policy, uint64_t bytes)
{
    struct ar_policy_request request = {.bytes = bytes};
    struct ar_policy_block block;
    AR_TRY(ar_policy_alloc(policy, &request, &block));
    return ar_policy_free(policy, &block, CARD_STREAM);
}

static enum ar_status sample(struct timed_card *card, struct samples *samples,
                             struct ar_policy *policy, uint64_t bytes)
{
    enum ar_status status = AR_OK;
    samples_begin(samples, CARD_BUDGET_NS, CARD_LEAST);
    while (status == AR_OK && samples_more(samples)) {
        timed_card_start(card);
        status = pair(policy, bytes);
        samples_add(samples, timed_card_stop(card), 0);
    }
    return status;
}

static void measure(struct micro_state *state, const struct policy_cell *cell,
                    struct ar_policy *policy)
{
    struct timed_card card;
    struct samples samples;
    enum ar_status status = pair(policy, cell->bytes);
    timed_card_begin(&card, cell->device, cell->busy);
    AR_THEN(status, sample(&card, &samples, policy, cell->bytes));
    if (status == AR_OK)
        timed_card_report(&card, &samples, state, 2);
    else
        timed_card_fail(&card, state, status, ar_policy_problem(policy));
}

static void run(struct micro_state *state, void *argument)
{
    const struct policy_cell *cell = argument;
    while (micro_next(state)) {
        struct ar_host host = {0};
        struct ar_policy_context context = {
            .backing = cell->device->backing, .host = &host, .unguarded = true};
        struct ar_policy *policy = NULL;
        struct ar_error error = {{0}};
        AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
        char text[64];
        snprintf(text, sizeof text, "%s%s", cell->policy->name,
                 cell->policy->capabilities & AR_POLICY_OVERLAPS ? "" : ":limit=" LIMIT);
        enum ar_status status = ar_spec_parse(text, &spec, &error);
        AR_THEN(status, registry_create(&spec, &context, &policy, &error));
        if (status != AR_OK) {
            micro_fail(state, error.text);
            return;
        }
        measure(state, cell, policy);
        ar_policy_destroy(policy);
    }
}

void card_policies_register(struct sections *sections)
{
    static const uint64_t sizes[] = {512, 64 * AR_KIB, 4 * AR_MIB};
    enum { SIZES = AR_COUNT(sizes) };
    struct grid *grid = sections_grid(
        sections, "nanoseconds per operation on the card, idle and with a kernel on another stream",
        "policy", "ns_per_op");
    const char *kind = sections->device->props.kind;
    char size[24], name[32];
    if (!grid)
        return;
    grid->median = true;
    for (size_t i = 0; i < 2 * SIZES; i++) {
        snprintf(name, sizeof name, "%s %s", AR_SIZE_EXACT(sizes[i % SIZES]),
                 i < SIZES ? "idle" : "busy");
        grid_column(grid, name);
    }
    const struct ar_policy_ops *policy;
    for (size_t p = 0; (policy = sections_policy(p)); p++) {
        size_t row = grid_row(grid, policy->name);
        for (size_t i = 0; row < GRID_ROWS && i < 2 * SIZES; i++) {
            struct policy_cell what = {.device = sections->device,
                                       .policy = policy,
                                       .bytes = sizes[i % SIZES],
                                       .busy = i >= SIZES};
            void *cell = sections_cell(sections, &what, sizeof what);
            if (!cell)
                return;
            ar_size_print_exact(what.bytes, size, sizeof size);
            micro_register_timed(grid_name(grid, row, i, "%s/policy/%s/%s/%s", kind, size,
                                           what.busy ? "busy" : "idle", policy->name),
                                 run, cell);
        }
    }
}
