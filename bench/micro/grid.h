/* What a section of the micro-benchmarks found, as a table: rows and columns, one benchmark in a
 * cell. Shown is the least of the repetitions, where noise can only add, or their median, where it
 * may as well take away, as from contention. */
#ifndef BENCH_MICRO_GRID_H
#define BENCH_MICRO_GRID_H

#include "bench/micro/micro.h"

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

#endif
