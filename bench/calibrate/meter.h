/* One measured call at a time.
 *
 * 1. The device reports the time of a call to its observer, without waits for work. A sample is
 *    reduced by the cost that the rest since the last call of the kind added, or that carries over
 *    from the call before it, as far as the profile has it.
 * 2. For a busy card, short kernels are queued on a separate stream, as in training, until there is
 *    enough work for the call. They are topped up before every call.
 * 3. A figure is the mean of its samples, each limited to four medians: sums over many calls are
 *    right, and an interrupted call has little effect. There are SAMPLES_ENOUGH samples, or five if
 *    the time of the point or of all points is used up. With fewer the point is left out.
 * 4. The first failure is kept: later calls do nothing and return false. A lack of device memory is
 *    not a failure. */
#pragma once

#include "sim/device.h"
#include "sim/sim_device/profile.h"

#define METER_STREAM       0u /* of the calls that have one */
#define METER_BUSY_STREAM  1u /* where the card is kept busy */
#define SAMPLES_ENOUGH     40u
#define METER_SAMPLES_MOST 256u
#define SAMPLES_LEAST      3u

struct meter_samples {
    uint32_t count;
    uint64_t ns[METER_SAMPLES_MOST];
};

void meter_samples_add(struct meter_samples *self, uint64_t ns);
/* The median, the lower of two middle ones; 0 without samples. Sorts them. */
uint64_t meter_samples_median(struct meter_samples *self);
/* The figure of rule 3; sorts them. */
uint64_t meter_samples_usual(struct meter_samples *self);

struct meter {
    struct ar_device *device;
    struct ar_backing *backing;
    struct ar_device_observer observer; /* of the caller, restored at close */
    uint64_t ns, waited_ns;             /* of the last counted call */
    uint64_t rest_ns, rested_ns;        /* the rest before it (UINT64_MAX: none) and its cost */
    enum sim_cost kind;                 /* its kind, for rests */
    const struct sim_profile *profile;
    uint64_t ended_ns[SIM_COST_COUNT];   /* of the last call of a kind, + 1; 0: none */
    uint64_t carried_ns[SIM_COST_COUNT]; /* added to it by rests, as far as known */
    uint64_t begun_ns,
        begun_bytes;           /* of the current call: its start, and the physical bytes then */
    uint64_t free_bytes;       /* of the device when it was opened */
    uint64_t cleaned_per_us;   /* bytes that the device cleans; 0: immediately or unknown */
    struct cache_flush *flush; /* NULL: the host's caches stay warm */
    bool busy;
    uint64_t busy_until_ns;
    uint64_t longest_ns;               /* of the calls of this point */
    uint64_t point_until_ns, until_ns; /* ends of the time for the point and for all points */
    struct meter_samples looks;        /* times of reading the host's clock */
    enum ar_status status;             /* the first failure */
    const char *call;                  /* the call that failed */
};

/* `profile` provides the cost of rests and may be filled meanwhile. `cold`: see calibrate.h. False:
 * no host memory. */
bool meter_open(struct meter *self, struct ar_device *device, const struct sim_profile *profile,
                bool cold);
void meter_close(struct meter *self);

/* The device's clock. */
uint64_t meter_now(const struct meter *self);

/* Measures the reading time of the host's clock. A simulated device has none. */
void meter_look_at_host(struct meter *self);
/* The reading time in 10^-12 s: the mean of the middle half of the measurements, because some take
 * ten times as long. 0: no measurements. */
uint64_t meter_host_clock_ps(struct meter *self);

/* Begins a point and its time. */
void meter_point(struct meter *self);
/* Whether to take more samples. */
bool meter_goes_on(const struct meter *self, const struct meter_samples *samples);

/* The number of blocks of that size that may be live at once, at most `most`. */
uint32_t meter_room(const struct meter *self, uint64_t bytes, uint32_t most);

/* The host idles for this time. */
void meter_pause(struct meter *self, uint64_t ns);
/* Waits until freed memory of that size is cleaned. */
void meter_rest(struct meter *self, uint64_t bytes);
/* Waits for all work. */
void meter_sync(struct meter *self);
/* Queues work of this length on the busy stream. */
void meter_kernel_op(struct meter *self, uint64_t ns);

/* The calls. Each adds its time to `into`, unless NULL, and returns whether it succeeded. */
bool meter_alloc(struct meter *self, uint64_t bytes, uint64_t *address, struct meter_samples *into);
bool meter_free(struct meter *self, uint64_t address, struct meter_samples *into);
bool meter_reserve(struct meter *self, uint64_t bytes, uint64_t *address,
                   struct meter_samples *into);
bool meter_release(struct meter *self, uint64_t address, struct meter_samples *into);
bool meter_create(struct meter *self, uint64_t bytes, ar_backing_handle *handle,
                  struct meter_samples *into);
bool meter_destroy(struct meter *self, ar_backing_handle handle, struct meter_samples *into);
bool meter_map(struct meter *self, uint64_t address, ar_backing_handle handle,
               struct meter_samples *into);
bool meter_access(struct meter *self, uint64_t address, uint64_t bytes, struct meter_samples *into);
bool meter_unmap(struct meter *self, uint64_t address, uint64_t bytes, struct meter_samples *into);
bool meter_pool_alloc(struct meter *self, uint64_t bytes, uint32_t stream, uint64_t *address,
                      struct meter_samples *into);
bool meter_pool_free(struct meter *self, uint64_t address, uint32_t stream,
                     struct meter_samples *into);
bool meter_pool_trim(struct meter *self, struct meter_samples *into);
/* `kind` is event, or event_known if the stream's work is known to be done. */
bool meter_fence(struct meter *self, uint32_t stream, enum sim_cost kind,
                 struct ar_backing_ticket *ticket, struct meter_samples *into);
/* A poll, whatever its answer. */
bool meter_done(struct meter *self, struct ar_backing_ticket ticket, struct meter_samples *into);

/* The time of the last call with its waits, without the cost of its rest. */
static inline uint64_t meter_whole_ns(const struct meter *self)
{
    return self->ns - self->rested_ns + self->waited_ns;
}

/* Opens the stream-ordered pool; it keeps its memory until it is trimmed. */
enum ar_status meter_pool_open(struct ar_backing *backing);

/* Leaves the host's caches cold, as a program does between two driver calls: it reads more memory
 * than the caches of a core hold. A simulated device has no host and needs none of this. */
struct cache_flush;

/* NULL in `*out`: the device needs none. False: no host memory. */
bool cache_flush_open(struct cache_flush **out, const struct ar_device *device);
void cache_flush_close(struct cache_flush *self);
/* Leaves the caches cold. NULL does nothing. */
void cache_flush_run(struct cache_flush *self);

/* ---- the parts of a calibration ------------------------------------------------------------ */

/* The parts of a calibration. Each measures one size, with the meter set to an idle or a busy card,
 * and adds points to the profile. Sizes come in rising order. */

/* Adds the figure of the samples as a point of the idle or busy curve, unless there are too few. */
void parts_point(const struct meter *meter, struct sim_profile *out, enum sim_cost cost,
                 uint64_t bytes, struct meter_samples *samples);
/* The same with a given figure. */
void parts_figure(const struct meter *meter, struct sim_profile *out, enum sim_cost cost,
                  uint64_t bytes, uint64_t ns);

/* Opens the pool, which keeps its memory. False: there is none. stream_costs.c */
bool parts_pool_open(struct meter *meter);

/* rest_costs.c: the cost of a rest for all kinds. Runs first: other samples are reduced by it. */
void parts_rested(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* memory_costs.c: driver allocations. */
void parts_churned(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_held(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_shared(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* memory_costs.c: virtual memory. */
void parts_ranges(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_mapped(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_runs(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* stream_costs.c: calls in stream order. */
void parts_events(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_launches(struct meter *meter, struct sim_profile *out, uint64_t bytes);
/* Runs before all others that use the pool. */
void parts_pool_first(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_pool_warm(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_pool_growth(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_pool_pending(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* wait_costs.c: waits for work and for the cleaning of memory. */
void parts_waits(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_cleaning(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* kernel_costs.c: the host time of the program around the allocator. */
void parts_program(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* kernel_costs.c: the host's preparation of the first products. Their library keeps memory
 * afterwards. */
void parts_products(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* kernel_costs.c: the times of kernel ops. Runs last, after the products. */
void parts_kernel_ops(struct meter *meter, struct sim_profile *out, uint64_t bytes);
