/* Three programs, each in three ways (enum check_mode):
 *
 * 1. Driver allocations of log-uniform sizes in 64 places; a full place is freed.
 * 2. A reserved range that grows by runs of pages and shrinks from its end, like an arena.
 * 3. The stream-ordered pool, like the first program, after a first use.
 *
 * Kernels run on a separate stream and use no block, so a call waits for work only if the driver
 * always waits. */
#include "bench/calibrate/calibrate.h"

#include "allocators/base/array.h"
#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "bench/calibrate/meter.h"
#include "bench/report/table.h"

#define STEPS          400u
#define PLACES         64u
#define RUNS_MOST      64u
#define PAGES_IN_A_RUN 16u
#define LEAST_BYTES    512u
#define STREAM         0u
#define KERNELS_STREAM 1u
#define BESIDE_NS      UINT64_C(200) /* smaller differences are within the reading of a clock */

struct call {
    unsigned line; /* enum ar_device_call or check_line */
    uint64_t ns;
};

struct calls {
    uint64_t page_bytes;
    struct call *calls;
    size_t count, room;
    bool lost;
};

/* One program on one device. */
struct program {
    struct ar_device *device;
    struct ar_backing *backing;
    struct ar_rng rng;
    bool busy;
    struct cache_flush *flush; /* NULL: the host's caches stay warm */
    uint64_t most_bytes;       /* of a block */
    uint64_t arena_bytes;      /* of program 2 */
};

static void on_call(void *argument, enum ar_device_call call, uint64_t bytes, uint64_t ns,
                    uint64_t waited_ns AR_UNUSED, bool refused AR_UNUSED)
{
    struct calls *self = argument;
    bool small = bytes < self->page_bytes;
    if (!ar_array_make_room(&self->calls, self->count, &self->room, sizeof *self->calls)) {
        self->lost = true;
        return;
    }
    unsigned line = small && call == AR_DEVICE_CALL_alloc  ? (unsigned)CHECK_SMALL_ALLOC
                    : small && call == AR_DEVICE_CALL_free ? (unsigned)CHECK_SMALL_FREE
                                                           : (unsigned)call;
    self->calls[self->count++] = (struct call){.line = line, .ns = ns};
}

/* What a program does between two calls. */
static void compute(struct program *self)
{
    uint64_t kernels = ar_rng_below(&self->rng, 9);
    for (uint64_t i = 0; i < kernels; i++) {
        uint64_t ns = ar_rng_log_uniform(&self->rng, 10000, 300000);
        if (self->busy)
            self->device->ops->kernel(self->device, KERNELS_STREAM, ns);
    }
    cache_flush_run(self->flush);
}

static enum ar_status block_make(struct program *self, bool pool, uint64_t bytes, uint64_t *address)
{
    return pool ? self->backing->ops->pool_alloc(self->backing, bytes, STREAM, address)
                : ar_backing_segment_alloc(self->backing, bytes, address);
}

static enum ar_status block_free(struct program *self, bool pool, uint64_t address)
{
    return pool ? self->backing->ops->pool_free(self->backing, address, STREAM)
                : ar_backing_segment_free(self->backing, address);
}

/* Programs 1 and 3. A block that does not fit is not made. */
static enum ar_status blocks_go(struct program *self, bool pool)
{
    uint64_t places[PLACES];
    bool full[PLACES] = {false}; /* 0 is an address too */
    enum ar_status status = AR_OK;
    for (uint32_t step = 0; step < STEPS && status == AR_OK; step++) {
        uint64_t at = ar_rng_below(&self->rng, PLACES);
        uint64_t bytes = ar_rng_log_uniform(&self->rng, LEAST_BYTES, self->most_bytes);
        compute(self);
        if (full[at]) {
            status = block_free(self, pool, places[at]);
            full[at] = false;
        } else {
            status = block_make(self, pool, bytes, &places[at]);
            full[at] = status == AR_OK;
            if (status == AR_REFUSED)
                status = AR_OK;
        }
    }
    for (uint32_t i = 0; i < PLACES && status == AR_OK; i++)
        if (full[i])
            status = block_free(self, pool, places[i]);
    if (!pool || status != AR_OK)
        return status;
    self->device->ops->sync(self->device, UINT32_MAX);
    return self->backing->ops->pool_trim(self->backing, 0);
}

struct run {
    uint64_t address, bytes;
    uint32_t pages;
    ar_backing_handle handles[PAGES_IN_A_RUN];
};

static enum ar_status run_make(struct program *self, struct run *run, uint64_t address)
{
    uint64_t page_bytes = self->backing->page_bytes;
    uint64_t wanted = ar_rng_between(&self->rng, 1, PAGES_IN_A_RUN);
    enum ar_status status = AR_OK;
    *run = (struct run){.address = address};
    while (run->pages < wanted && status == AR_OK) {
        status = ar_backing_create(self->backing, page_bytes, &run->handles[run->pages]);
        AR_THEN(status,
                ar_backing_map(self->backing, address + run->bytes, run->handles[run->pages]));
        run->bytes += page_bytes;
        run->pages++;
    }
    return status == AR_OK ? ar_backing_access(self->backing, address, run->bytes) : status;
}

static enum ar_status run_free(struct program *self, const struct run *run)
{
    AR_TRY(ar_backing_unmap(self->backing, run->address, run->bytes));
    for (uint32_t i = 0; i < run->pages; i++)
        AR_TRY(ar_backing_destroy(self->backing, run->handles[i]));
    return AR_OK;
}

/* Program 2. */
static enum ar_status arena_go(struct program *self)
{
    struct run runs[RUNS_MOST];
    uint32_t count = 0;
    uint64_t address, end;
    uint64_t run_bytes = PAGES_IN_A_RUN * self->backing->page_bytes;
    enum ar_status status = ar_backing_reserve(self->backing, self->arena_bytes, &address);
    end = address;
    for (uint32_t step = 0; step < STEPS / 4 && status == AR_OK; step++) {
        bool grows = ar_rng_below(&self->rng, 8) < 5;
        compute(self);
        bool fits = count < RUNS_MOST && end - address + run_bytes <= self->arena_bytes;
        if (fits && (grows || !count)) {
            status = run_make(self, &runs[count], end);
            end += runs[count++].bytes;
        } else {
            status = run_free(self, &runs[--count]);
            end -= runs[count].bytes;
        }
    }
    while (count && status == AR_OK)
        status = run_free(self, &runs[--count]);
    return status == AR_OK ? ar_backing_release(self->backing, address) : status;
}

/* The first use of the pool in a process costs as much as thousands of others. Both devices have it
 * before the timed calls. */
static enum ar_status pool_use_once(struct program *self)
{
    uint64_t address;
    AR_TRY(meter_pool_open(self->backing));
    AR_TRY(block_make(self, true, LEAST_BYTES, &address));
    AR_TRY(block_free(self, true, address));
    self->device->ops->sync(self->device, UINT32_MAX);
    return self->backing->ops->pool_trim(self->backing, 0);
}

static enum ar_status programs_go(struct program *self)
{
    const struct ar_device_props *props = &self->device->props;
    enum ar_status status = blocks_go(self, false);
    if (status == AR_OK && props->has_virtual_memory)
        status = arena_go(self);
    if (status == AR_OK && props->has_pool)
        status = blocks_go(self, true);
    self->device->ops->sync(self->device, UINT32_MAX);
    return status;
}

static enum ar_status device_go(struct ar_device *device, enum check_mode mode, uint64_t most_bytes,
                                struct calls *calls, struct ar_error *error)
{
    struct ar_device_observer before = device->observer;
    struct program program = {.device = device,
                              .backing = device->backing,
                              .busy = mode != CHECK_IDLE,
                              .most_bytes = most_bytes,
                              .arena_bytes = ar_size_round_up(4 * most_bytes, AR_MIB * 64)};
    if (mode == CHECK_SPARSE && !cache_flush_open(&program.flush, device))
        return ar_no_memory(error, "checking the profile");
    ar_rng_seed(&program.rng, 1);
    calls->page_bytes = device->backing->page_bytes;
    enum ar_status status = device->props.has_pool ? pool_use_once(&program) : AR_OK;
    device->observer = (struct ar_device_observer){.call = on_call, .argument = calls};
    AR_THEN(status, programs_go(&program));
    device->observer = before;
    cache_flush_close(program.flush);
    if (calls->lost)
        status = AR_HOST_MEMORY;
    if (status == AR_OK)
        return AR_OK;
    return ar_error_set(error, device->failed ? AR_MISSING : status,
                        "checking the profile on %s: %s", device->props.kind,
                        status == AR_INVALID ? ar_backing_problem(device->backing)
                                             : ar_status_meaning(status));
}

static bool is_within(uint64_t measured_ns, uint64_t modelled_ns)
{
    uint64_t low = measured_ns < modelled_ns ? measured_ns : modelled_ns;
    uint64_t high = measured_ns < modelled_ns ? modelled_ns : measured_ns;
    return high <= 2 * low || high - low <= BESIDE_NS;
}

static void row_add(struct check_row *row, uint64_t measured_ns, uint64_t modelled_ns)
{
    row->calls++;
    row->measured_ns += measured_ns;
    row->modelled_ns += modelled_ns;
    row->within += is_within(measured_ns, modelled_ns);
}

static enum ar_status compare(const struct calls *measured, const struct calls *modelled,
                              struct check_row rows[CHECK_LINES], struct ar_error *error)
{
    size_t count = measured->count < modelled->count ? measured->count : modelled->count;
    bool same = measured->count == modelled->count;
    for (size_t i = 0; i < count && same; i++) {
        const struct call *one = &measured->calls[i], *other = &modelled->calls[i];
        same = one->line == other->line;
        row_add(&rows[one->line], one->ns, other->ns);
        row_add(&rows[CHECK_ALL], one->ns, other->ns);
    }
    if (same)
        return AR_OK;
    return ar_invalid(error,
                      "checking the profile: the card and its model did not make the same calls");
}

static void close_calls(struct calls *self)
{
    free(self->calls);
}

enum ar_status check_devices(struct ar_device *measured, struct ar_device *modelled,
                             struct check *out, struct ar_error *error)
{
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(measured->backing, &free_bytes, &total_bytes);
    uint64_t most_bytes = free_bytes / 160 < 512 * AR_MIB ? free_bytes / 160 : 512 * AR_MIB;
    *out = (struct check){0};
    for (int mode = 0; mode < CHECK_MODES; mode++) {
        AR_CLOSED(close_calls) struct calls real = {0}, model = {0};
        AR_TRY(device_go(measured, (enum check_mode)mode, most_bytes, &real, error));
        AR_TRY(device_go(modelled, (enum check_mode)mode, most_bytes, &model, error));
        AR_TRY(compare(&real, &model, out->rows[mode], error));
    }
    return AR_OK;
}

static void print_row(struct table *table, const char *name, const struct check_row *row)
{
    double calls = (double)row->calls;
    if (!row->calls)
        return;
    table_cell(table, "%s", name);
    table_cell(table, "%.0f", calls);
    table_cell(table, "%.2f", (double)row->measured_ns / calls / 1000);
    table_cell(table, "%.2f", (double)row->modelled_ns / calls / 1000);
    table_known(table, row->measured_ns, "%.2f",
                (double)row->modelled_ns / (double)row->measured_ns);
    table_cell(table, "%.0f", 100 * (double)row->within / calls);
}

enum ar_status check_print(const struct check *self, FILE *stream, struct ar_error *error)
{
    static const char *const modes[CHECK_MODES] = {
        "Mixed calls, idle card", "Mixed calls between kernels",
        "Mixed calls between kernels, the host's caches cold"};
    struct table *table =
        table_of("call<; calls; measured|us; model|us; model/measured; within 2x|%%");
    for (int mode = 0; mode < CHECK_MODES; mode++) {
        const struct check_row *rows = self->rows[mode];
        table_heading(table, "%s", modes[mode]);
        print_row(table, "alloc, small", &rows[CHECK_SMALL_ALLOC]);
        print_row(table, "free, small", &rows[CHECK_SMALL_FREE]);
        for (int call = 0; call < AR_DEVICE_CALL_COUNT; call++)
            print_row(table, ar_device_call_name((enum ar_device_call)call), &rows[call]);
        print_row(table, "all", &rows[CHECK_ALL]);
    }
    return table_end(table, stream, TABLE_TEXT, error);
}
