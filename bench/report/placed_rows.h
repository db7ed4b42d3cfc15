/* The policies of a group as rows of a table that are placed by one figure: in the order of its medians,
 * with a place where intervals tell them apart (statistics.h). */
#ifndef BENCH_REPORT_PLACED_ROWS_H
#define BENCH_REPORT_PLACED_ROWS_H

#include "bench/report/statistics.h"
#include "bench/report/table.h"

struct placed_row {
    const struct run_record *first; /* run of the policy */
    size_t runs, passed;
    struct statistic by; /* count 0: stands last */
    size_t place;        /* 0: none */
    bool shared;         /* with others whose intervals touch its own */
};

struct placed_rows {
    struct placed_row *items; /* of the group at hand */
    size_t count;
    double *values; /* for statistics: room for all records */
    struct statistic *by;
    size_t *places;
    bool *shared;
};

/* With room for a group of all records. HOST_MEMORY. The caller closes it in any case. */
enum status placed_rows_open(struct placed_rows *self, size_t records,
                             struct error *error) STATUS_CHECKED;
void placed_rows_close(struct placed_rows *self);

/* Puts a row behind those whose median is no larger. A new group begins with `count` set to 0. */
void placed_rows_add(struct placed_rows *self, struct placed_row row);
/* Once all rows of the group are there. */
void placed_rows_place(struct placed_rows *self);

/* The cell of its place: "2", "2=" where it is shared, "-". */
void placed_row_cell(struct table *table, const struct placed_row *row);

#endif
