/* One measured call at a time.
 *
 * 1. A call's time is what the device tells its observer: its own, without waiting for work. A
 *    sample is less what the rest since the last call of the kind added, or the one before it left
 *    to pay again, as far as the profile knows that.
 * 2. For a busy card, short kernels are queued on a stream that nothing else uses, as in training,
 *    until there is enough ahead for the call; and topped up before every call.
 * 3. A figure is the mean of its samples, each counted as four medians at most: so many calls of
 *    it together take what so many figures do, and one that was interrupted does not show. There
 *    are SAMPLES_ENOUGH of them, or five where the time of the point, or that of all points, is
 *    spent. With too few the point is left out.
 * 4. The first failure stays: calls after it do nothing and say false. That the device has no
 *    memory is no failure. */
#ifndef BENCH_CALIBRATE_METER_H
#define BENCH_CALIBRATE_METER_H

#include <stdbool.h>
#include <stdint.h>

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
/* The median, the lower of two; sorts them. 0 of none. */
uint64_t meter_samples_median(struct meter_samples *self);
/* The figure of rule 3; sorts them. */
uint64_t meter_samples_usual(struct meter_samples *self);

struct meter {
    struct ar_device *device;
    struct ar_backing *backing;
    struct ar_device_observer observer; /* that was there before */
    uint64_t ns, waited_ns;             /* of the last counted call */
    uint64_t rest_ns, rested_ns; /* before it, UINT64_MAX: it is the first; what that added */
    enum sim_cost kind;          /* it, as rests are kept by */
    const struct sim_profile *profile;
    uint64_t ended_ns[SIM_COST_COUNT];   /* of the last of a kind, + 1; 0: there was none */
    uint64_t carried_ns[SIM_COST_COUNT]; /* that rests added to it, as far as that is known */
    uint64_t begun_ns, begun_bytes; /* of the call that is made: when, and physical bytes then */
    uint64_t free_bytes;            /* of the device when it was opened */
    uint64_t cleaned_per_us;        /* bytes that the device cleans; 0: at once, or not known */
    struct dirt *dirt;              /* NULL: the host's caches stay warm */
    bool busy;
    uint64_t busy_until_ns;
    uint64_t longest_ns;               /* of the calls of this point */
    uint64_t point_until_ns, until_ns; /* when the point's time is spent, and that of all */
    struct meter_samples looks;        /* what reading the host's clock took */
    enum ar_status status;             /* the first failure */
    const char *call;                  /* and of which call */
};

/* `profile` is read for what rests add, and may be filled meanwhile; `cold`: see calibrate.h.
 * False: the host has no memory. */
bool meter_open(struct meter *self, struct ar_device *device, const struct sim_profile *profile,
                bool cold);
void meter_close(struct meter *self);

/* The device's clock. */
uint64_t meter_now(const struct meter *self);

/* How fast the host is now, by what reading its clock takes. A simulated device has none. */
void meter_look_at_host(struct meter *self);
/* What all looks together say of it, in 10^-12 s: the mean of their middle half. 0: there were
 * none. Some looks take ten times as long, while the host does something else. */
uint64_t meter_host_clock_ps(struct meter *self);

/* A point begins: its time is counted from here. */
void meter_point(struct meter *self);
/* Whether more samples are wanted. */
bool meter_goes_on(const struct meter *self, const struct meter_samples *samples);

/* How many blocks of that size may be held at once, at most `most`; 0: not one. */
uint32_t meter_room(const struct meter *self, uint64_t bytes, uint32_t most);

/* The host does nothing for so long. */
void meter_pause(struct meter *self, uint64_t ns);
/* Freed memory of that size is given the time to be cleaned. */
void meter_rest(struct meter *self, uint64_t bytes);
/* Waits for all work. */
void meter_sync(struct meter *self);
/* Work for so long on the busy stream, from now on. */
void meter_kernel_op(struct meter *self, uint64_t ns);

/* The calls. Each puts its time into `into`, where that is not NULL, and says whether it worked. */
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
/* `kind` is event, or event_known where the stream's work is known to be done. */
bool meter_fence(struct meter *self, uint32_t stream, enum sim_cost kind,
                 struct ar_backing_ticket *ticket, struct meter_samples *into);
/* A poll; whether the work is done does not matter. */
bool meter_done(struct meter *self, struct ar_backing_ticket ticket, struct meter_samples *into);

/* Of the last call, with what it waited and without what its rest added. */
static inline uint64_t meter_whole_ns(const struct meter *self)
{
    return self->ns - self->rested_ns + self->waited_ns;
}

/* What a program does between two calls of the driver, as far as the host's caches can tell: it
 * goes over more memory than a core has caches of its own. A simulated device knows no host: there
 * is nothing to do for it. */
struct dirt;

/* NULL in `*out`: the device needs none. False: the host has no memory. */
bool dirt_open(struct dirt **out, const struct ar_device *device);
void dirt_close(struct dirt *self);
/* Leaves the caches cold; nothing where `self` is NULL. */
void dirt_spread(struct dirt *self);

#endif
