/* The sections of the micro-benchmarks: each registers its benchmarks and enters them in grids.
 * What a benchmark needs to know stays in the section until sections_close. */
#ifndef BENCH_MICRO_SECTIONS_H
#define BENCH_MICRO_SECTIONS_H

#include "allocators/base/status.h"
#include "allocators/policy.h"
#include "bench/micro/grid.h"
#include "bench/micro/ops.h"
#include "sim/device.h"

enum { SECTION_GRIDS = 32, SECTION_CELLS = 2048 };

struct sections {
    struct grid *grids[SECTION_GRIDS];
    size_t grid_count;
    void *cells[SECTION_CELLS]; /* on the heap, freed with the sections */
    size_t cell_count;
    bool all;                   /* every policy and number of threads, also where that takes long */
    struct ar_device *device;   /* of the card's sections; NULL: there is none */
    unsigned char *cold_buffer; /* host_pool.c's */
    bool full;                  /* no room or no host memory: what is there is not complete */
};

/* A new grid, and memory for what one benchmark is to know (a copy of `bytes` at `cell`). NULL,
 * and `full` is set, where there is no room. */
struct grid *sections_grid(struct sections *sections, const char *title, const char *corner,
                           const char *counter);
void *sections_cell(struct sections *sections, const void *cell, size_t bytes);
void sections_close(struct sections *sections);

/* Policies that can be measured here: all but the offline ones, which need a plan. NULL past the
 * last. */
const struct ar_policy_ops *sections_policy(size_t index);

/* bookkeeping.c: the policy alone. The traces outlive the sections. */
void bookkeeping_register(struct sections *sections, const struct micro_ops *traces, size_t count);
/* host_pool.c: alloc and free through a lock and a map of addresses, warm and with cold caches. */
void host_pool_register(struct sections *sections);
/* thread_rows.c: several threads, also on the device. */
void thread_rows_register(struct sections *sections);
/* card_policies.c, card_calls.c: on a device that takes time: policies; driver calls alone. */
void card_policies_register(struct sections *sections);
void card_calls_register(struct sections *sections);

#endif
