/* What a section of the micro-benchmarks found, as a table: rows and columns, one benchmark in a
 * cell. Shown is the least of the repetitions, where noise can only add, or their median, where it
 * may as well take away, as from contention. */
#ifndef BENCH_MICRO_GRID_H
#define BENCH_MICRO_GRID_H

#include "allocators/base/status.h"
#include "allocators/policy.h"
#include "bench/micro/micro.h"
#include "bench/micro/ops.h"
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

/* On the heap; the caller frees it. NULL: no host memory. */
struct grid *grid_make(const char *title, const char *corner, const char *counter);

/* Adds a row or a column and returns its index; GRID_ROWS or
 * GRID_COLUMNS: there is no room, and no cell may be named there. */
size_t grid_row(struct grid *grid, const char *name);
size_t grid_column(struct grid *grid, const char *name);

/* Says which benchmark belongs in the cell. Returns its name as kept, which stays the grid's. */
const char *grid_name(struct grid *grid, size_t row, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Enters a report into the cell of its name. False: it belongs to none of these. */
bool grid_take(struct grid *grid, const struct micro_report *report);

/* To standard output; nothing where no benchmark of the grid ran. */
void grid_print(const struct grid *grid);

/* A number of a report, 0 where it has none of that name. */
double micro_report_value(const struct micro_report *report, const char *name);

/* Times of single calls, for benchmarks that measure themselves: as many samples as fit into a
 * budget of wall time, and of those the median and the tail. The median of one repetition is what
 * Google Benchmark gets as its time, since an interrupt moves a mean. */
enum { SAMPLES_MOST = 4096 };

struct samples {
    uint64_t begun_ns, budget_ns;
    size_t count, least;
    uint64_t ns[SAMPLES_MOST];
};

/* At least `least` samples are taken, also where they take longer than the budget. */
void samples_begin(struct samples *samples, uint64_t budget_ns, size_t least);
/* Whether another one is to be taken. */
bool samples_more(const struct samples *samples);
/* Adds one, less the cost of the clock. */
void samples_add(struct samples *samples, uint64_t ns, uint64_t clock_ns);

/* Ends the round: its time is the median; ns_per_op that over `operations`; and p50_ns, p99_ns,
 * p999_ns, samples. Sorts the samples, which are at least one. */
void samples_report(struct samples *samples, struct micro_state *state, uint64_t operations);

/* The sections of the micro-benchmarks: each registers its benchmarks and enters them in grids.
 * What a benchmark needs to know stays in the section until sections_close. */
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
