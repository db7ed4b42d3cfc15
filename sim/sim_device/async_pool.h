/* The driver's stream-ordered pool (cuMemAllocAsync), as a model: what it knows and what it does
 * not is told in sim/README.md. */
#ifndef SIM_SIM_DEVICE_ASYNC_POOL_H
#define SIM_SIM_DEVICE_ASYNC_POOL_H

struct sim_device;
struct sim_pool;

/* The host has synchronised: what it knows to be done is free, and what is above the threshold
 * goes back to the device. Does nothing where the pool was never opened. */
void sim_pool_settle(struct sim_device *device);

void sim_pool_close(struct sim_pool *self);

#endif
