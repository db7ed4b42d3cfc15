/* The parts of a calibration. Each measures for one size, with the meter set to an idle or a busy
 * card, and adds points to the profile. Sizes come in rising order. */
#ifndef BENCH_CALIBRATE_PARTS_H
#define BENCH_CALIBRATE_PARTS_H

#include "bench/calibrate/meter.h"
#include "sim/sim_device/profile.h"

/* The median becomes a point of the idle or busy curve, unless there are too few samples. */
void parts_point(const struct meter *meter, struct sim_profile *out, enum sim_cost cost,
                 uint64_t bytes, struct meter_samples *samples);
/* The same with a figure. */
void parts_figure(const struct meter *meter, struct sim_profile *out, enum sim_cost cost,
                  uint64_t bytes, uint64_t ns);

/* Opens the pool, which then keeps what it gets. False: there is none. stream_costs.c */
bool parts_pool_open(struct meter *meter);

/* rest_costs.c: what a rest adds, of all kinds. First of all: samples of others are less what their
 * rest added. */
void parts_rested(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* memory_costs.c: driver allocations. */
void parts_churned(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_held(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_shared(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* memory_costs.c: virtual memory. */
void parts_ranges(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_mapped(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_runs(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* stream_costs.c: what is done in a stream's order. */
void parts_events(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_launches(struct meter *meter, struct sim_profile *out, uint64_t bytes);
/* Before all others that use the pool. */
void parts_pool_first(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_pool_warm(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_pool_growth(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_pool_pending(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* wait_costs.c: what waits for work, and for memory to be cleaned. */
void parts_waits(struct meter *meter, struct sim_profile *out, uint64_t bytes);
void parts_cleaning(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* kernel_costs.c: what the program around the allocator takes of the host. */
void parts_program(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* kernel_costs.c: what the host prepares for the first products. From there on their library keeps
 * memory. */
void parts_products(struct meter *meter, struct sim_profile *out, uint64_t bytes);

/* kernel_costs.c: how long works on memory take. Last of all, behind the products. */
void parts_kernel_ops(struct meter *meter, struct sim_profile *out, uint64_t bytes);

#endif
