/* The parts of a calibration. Each measures one size, with the meter set to an idle or a busy card,
 * and adds points to the profile. Sizes come in rising order. */
#ifndef BENCH_CALIBRATE_PARTS_H
#define BENCH_CALIBRATE_PARTS_H

#include "bench/calibrate/meter.h"
#include "sim/sim_device/profile.h"

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

#endif
