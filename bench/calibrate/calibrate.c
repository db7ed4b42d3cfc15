#include "bench/calibrate/calibrate.h"

#include "allocators/base/size.h"
#include "bench/calibrate/meter.h"

/* The first address of the simulated device; any address works. */
#define FIRST_ADDRESS (UINT64_C(1) << 40)

#define FREE_LEAST (256 * AR_MIB)

/* The measured sizes; each part begins at its least. 20 MiB is for sizes that are not powers of
 * two. */
static const uint64_t sizes[] = {
    256,        4 * AR_KIB,  64 * AR_KIB, 512 * AR_KIB, AR_MIB,       2 * AR_MIB,   4 * AR_MIB,
    8 * AR_MIB, 20 * AR_MIB, 32 * AR_MIB, 64 * AR_MIB,  128 * AR_MIB, 256 * AR_MIB, 512 * AR_MIB,
    AR_GIB,     2 * AR_GIB,  4 * AR_GIB,  8 * AR_GIB,   20 * AR_GIB,  64 * AR_GIB,  512 * AR_GIB,
};

#define SIZE_COUNT AR_COUNT(sizes)

struct part {
    const char *name;
    void (*measure)(struct meter *meter, struct sim_profile *out, uint64_t bytes);
    uint64_t least_bytes, most_bytes;
    bool idle, busy;   /* measured on an idle or busy card */
    bool mapped, pool; /* needs virtual memory, the pool */
};

/* In this order, because later parts use points of earlier ones and wait for the cleaning time that
 * the first found. A part without sizes has the size 1. */
static const struct part parts[] = {
    {"pool, first use", parts_pool_first, 1, 1, true, false, false, true},
    {"calls after a rest", parts_rested, 1, 1, true, false, false, false},
    {"cleaning", parts_cleaning, 1, 1, true, false, false, false},
    {"driver allocations, churned", parts_churned, 256, 20 * AR_GIB, true, true, false, false},
    {"driver allocations, held", parts_held, 256, 20 * AR_GIB, true, true, false, false},
    {"driver allocations, sharing a page", parts_shared, 256, AR_MIB, true, true, false, false},
    {"address ranges", parts_ranges, 2 * AR_MIB, 512 * AR_GIB, true, true, true, false},
    {"physical memory and mappings", parts_mapped, 2 * AR_MIB, 8 * AR_GIB, true, true, true, false},
    {"runs of mappings", parts_runs, 2 * AR_MIB, AR_GIB, true, true, true, false},
    {"events", parts_events, 1, 1, true, true, false, false},
    {"launches", parts_launches, 1, 1, true, true, false, false},
    {"pool, warm", parts_pool_warm, 256, AR_GIB, true, true, false, true},
    {"pool, growing and trimmed", parts_pool_growth, 32 * AR_MIB, AR_GIB, true, true, false, true},
    {"pool, other streams' frees", parts_pool_pending, 2 * AR_MIB, 2 * AR_MIB, false, true, false,
     true},
    {"which calls wait", parts_waits, 1, 1, true, false, false, false},
    {"the program's own part", parts_program, 1, 1, true, false, false, false},
    {"matrix products, first ones", parts_products, 1, 1, true, false, false, false},
    {"times of kernel ops", parts_kernel_ops, 1, 1, true, false, false, false},
};

/* The sizes of a part; returns how many. */
static size_t part_sizes(const struct part *part, uint64_t out[SIZE_COUNT])
{
    size_t count = 0;
    if (part->least_bytes == 1)
        out[count++] = 1;
    for (size_t i = 0; i < SIZE_COUNT; i++)
        if (sizes[i] >= part->least_bytes && sizes[i] <= part->most_bytes)
            out[count++] = sizes[i];
    return count;
}

size_t calibrate_steps(void)
{
    size_t count = 0;
    uint64_t unused[SIZE_COUNT];
    for (size_t i = 0; i < AR_COUNT(parts); i++)
        count += part_sizes(&parts[i], unused) * ((size_t)parts[i].idle + (size_t)parts[i].busy);
    return count;
}

void parts_figure(const struct meter *meter, struct sim_profile *out, enum sim_cost cost,
                  uint64_t bytes, uint64_t ns)
{
    struct sim_curve *curve = meter->busy ? &out->busy_costs[cost] : &out->costs[cost];
    if (meter->status == AR_OK)
        (void)sim_curve_add(curve, bytes, ns);
}

void parts_point(const struct meter *meter, struct sim_profile *out, enum sim_cost cost,
                 uint64_t bytes, struct meter_samples *samples)
{
    if (samples->count >= SAMPLES_LEAST)
        parts_figure(meter, out, cost, bytes, meter_samples_usual(samples));
}

static bool curve_is_free(const struct sim_curve *curve)
{
    for (uint32_t i = 0; i < curve->count; i++)
        if (curve->ns[i])
            return false;
    return true;
}

/* Kinds that cost nothing have no points; what exists only on a busy card costs the same on an
 * idle one. */
static void settle(struct sim_profile *out)
{
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        struct sim_curve *idle = &out->costs[kind], *busy = &out->busy_costs[kind];
        if (curve_is_free(idle) && curve_is_free(busy))
            idle->count = busy->count = 0;
        else if (!idle->count)
            *idle = *busy;
        if (curve_is_free(&out->rest_costs[kind]))
            out->rest_costs[kind].count = 0;
        if (!out->rest_costs[kind].count)
            out->rest_again_percent[kind] = 0;
    }
}

static void part_go(const struct part *part, struct meter *meter, struct sim_profile *out,
                    const struct calibrate_options *options)
{
    uint64_t wanted[SIZE_COUNT];
    size_t count = part_sizes(part, wanted);
    const struct ar_device_props *props = &meter->device->props;
    bool there = (!part->mapped || props->has_virtual_memory) && (!part->pool || props->has_pool);
    for (int busy = 0; busy < 2; busy++) {
        if (!(busy ? part->busy : part->idle))
            continue;
        for (size_t i = 0; i < count; i++) {
            char label[96], text[32] = "";
            if (wanted[i] > 1)
                ar_size_print_exact(wanted[i], text, sizeof text);
            snprintf(label, sizeof label, "%s %s%s", part->name, text, busy ? ", busy card" : "");
            if (options->step)
                options->step(options->argument, label);
            meter->busy = busy;
            if (there && meter->status == AR_OK) {
                meter_look_at_host(meter);
                part->measure(meter, out, wanted[i]);
            }
        }
        meter->busy = false;
        meter_sync(meter);
    }
}

/* The properties of the device, before anything is allocated. */
static void describe(const struct meter *meter, struct sim_profile *out)
{
    struct ar_device *device = meter->device;
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    out->total_bytes = total_bytes;
    out->usable_bytes = free_bytes;
    out->page_bytes = device->backing->page_bytes;
    out->granule_bytes = device->backing->granule_bytes;
    out->first_address = FIRST_ADDRESS;
    out->kernel_least_ns = device->props.kernel_least_ns;
    if (device->ops->card_bytes)
        out->context_bytes = device->ops->card_bytes(device);
}

enum ar_status calibrate(struct ar_device *device, const struct calibrate_options *options,
                         struct sim_profile *out, struct ar_error *error)
{
    struct meter meter;
    memset(out, 0, sizeof *out);
    if (!device->backing->page_bytes || device->props.total_bytes == UINT64_MAX)
        return ar_invalid(error,
                          "the device %s has no pages and no end: there is nothing to measure",
                          device->props.profile);
    AR_TRY_MEMORY(meter_open(&meter, device, out, options->cold), error, "calibrating");
    if (meter.free_bytes < FREE_LEAST) {
        meter_close(&meter);
        return ar_invalid(error,
                          "the device %s has %" PRIu64 " bytes free, and calibrating needs 256 MiB",
                          device->props.profile, meter.free_bytes);
    }
    describe(&meter, out);
    for (size_t i = 0; i < AR_COUNT(parts); i++)
        part_go(&parts[i], &meter, out, options);
    meter_close(&meter);
    if (meter.status != AR_OK || device->failed)
        return ar_error_set(error, device->failed ? AR_MISSING : meter.status,
                            "calibrating: %s failed: %s", meter.call ? meter.call : "a kernel",
                            meter.status == AR_OK || meter.status == AR_INVALID
                                ? ar_backing_problem(device->backing)
                                : ar_status_meaning(meter.status));
    settle(out);
    out->host_clock_ps = meter_host_clock_ps(&meter);
    return AR_OK;
}

/* ---- machine --------------------------------------------------------------------------------- */

void machine_describe(const struct ar_device *device, const struct environment *environment,
                      bool cold, struct sim_profile *out)
{
    const char *hypervisor = environment->hypervisor, *machine = environment->machine;
    bool real = strcmp(device->props.kind, "sim") != 0;
    if (real) {
        snprintf(out->card, sizeof out->card, "%s", device->props.profile);
        snprintf(out->driver, sizeof out->driver, "%s", environment->card.driver);
        if (!out->driver[0]) /* the management library does not tell: the kernel's module does */
            environment_line("/sys/module/nvidia/version", out->driver, sizeof out->driver);
        snprintf(out->hypervisor, sizeof out->hypervisor, "%s%s%s",
                 hypervisor[0] ? hypervisor : "none", machine[0] ? ", " : "", machine);
    }
    snprintf(out->source, sizeof out->source,
             "allocrig %.32s calibrate%s of device %s%s%.63s; means, bench/calibrate/README.md",
             environment->build->version, cold ? " --cold" : "", device->props.kind,
             real ? ", " : ", profile ", real ? environment->time : device->props.profile);
}
