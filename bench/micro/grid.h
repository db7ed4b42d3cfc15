/* The results of a section of the micro-benchmarks as a table with one benchmark in each cell. A
 * cell shows the least of the repetitions if noise can only add, else their median (for example
 * under contention). */
#pragma once

#include "allocators/policy.h"
#include "bench/micro/micro.h"
#include "bench/micro/rig.h"
#include "sim/device.h"

enum { GRID_ROWS = 64, GRID_COLUMNS = 12, GRID_NAME = 160, GRID_VALUES = 32 };

struct grid {
    const char *title;   /* what is shown and in which unit */
    const char *corner;  /* what the rows are */
    const char *counter; /* of the report that is shown */
    double scale;        /* shown is the counter times this */
    bool median;         /* of up to GRID_VALUES repetitions; else the least */
    size_t rows, columns;
    char row[GRID_ROWS][32], column[GRID_COLUMNS][32];
    struct {
        char name[GRID_NAME];       /* of the benchmark; "": none */
        double values[GRID_VALUES]; /* in order of size */
        size_t count;
        bool failed;
    } cell[GRID_ROWS][GRID_COLUMNS];
};

/* Adds a row or a column and returns its index; GRID_ROWS or
 * GRID_COLUMNS: the grid is full, and no cell may be named there. */
size_t grid_row(struct grid *grid, const char *name);
size_t grid_column(struct grid *grid, const char *name);

/* Sets the benchmark of the cell. Returns the grid's copy of its name. */
const char *grid_name(struct grid *grid, size_t row, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Enters a report into the cell of its name. False: no cell has that name. */
bool grid_take(struct grid *grid, const struct micro_report *report);

/* Prints the grid to standard output, or nothing if none of its benchmarks ran. */
void grid_print(const struct grid *grid);

/* Times of single calls, for benchmarks that measure themselves: as many samples as fit into a
 * budget of wall time, with median and tail. Google Benchmark gets the median of one repetition as
 * its time, because an interrupt would move a mean. */
enum { SAMPLES_MOST = 4096 };

struct samples {
    uint64_t begun_ns, budget_ns;
    size_t count, least;
    uint64_t ns[SAMPLES_MOST];
};

/* Takes at least `least` samples, even if they exceed the budget. */
void samples_begin(struct samples *samples, uint64_t budget_ns, size_t least);
/* Whether to take another sample. */
bool samples_more(const struct samples *samples);
/* Adds one, less the cost of the clock. */
void samples_add(struct samples *samples, uint64_t ns, uint64_t clock_ns);

/* Ends the round. Reports the median as its time, ns_per_op (the median over `operations`), p50_ns,
 * p99_ns, p999_ns and samples. Sorts the samples; there must be at least one. */
void samples_report(struct samples *samples, struct micro_state *state, uint64_t operations);

/* The sections of the micro-benchmarks: each registers its benchmarks and enters them in grids.
 * The argument of a benchmark stays in the section until sections_close. */
enum { SECTION_GRIDS = 32, SECTION_CELLS = 2048 };

struct sections {
    struct grid *grids[SECTION_GRIDS];
    size_t grid_count;
    void *cells[SECTION_CELLS]; /* on the heap, freed with the sections */
    size_t cell_count;
    bool all;                   /* every policy and number of threads, also slow ones */
    struct ar_device *device;   /* of the card's sections, or NULL */
    unsigned char *cold_buffer; /* host_pool.c's */
    bool full;                  /* out of room or host memory: the sections are incomplete */
};

/* A new grid, and a copy of the `bytes` at `cell` as the argument of a benchmark. NULL and `full`
 * set if there is no room. */
struct grid *sections_grid(struct sections *sections, const char *title, const char *corner,
                           const char *counter);
void *sections_cell(struct sections *sections, const void *cell, size_t bytes);
void sections_close(struct sections *sections);

/* The policies that can be measured: all except offline ones, which need a plan. NULL after the
 * last. */
const struct ar_policy_ops *sections_policy(size_t index);

/* bookkeeping.c: the policy alone. The traces outlive the sections. */
void bookkeeping_register(struct sections *sections, const struct micro_ops *traces, size_t count);
/* host_pool.c: alloc and free through a lock and a map of addresses, warm and with cold caches. */
void host_pool_register(struct sections *sections);
/* thread_rows.c: several threads, also on the device. */
void thread_rows_register(struct sections *sections);
/* card.c, on a device that takes time: policies, and driver calls alone. */
void card_policies_register(struct sections *sections);
void card_calls_register(struct sections *sections);
