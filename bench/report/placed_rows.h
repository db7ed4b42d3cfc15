/* The policies of a group as rows of a table that are placed by one figure: in the order of its medians,
 * with a place where intervals tell them apart, their own or those of pairs of draws (statistics.h). */
#ifndef BENCH_REPORT_PLACED_ROWS_H
#define BENCH_REPORT_PLACED_ROWS_H

#include "bench/statistics/statistics.h"
#include "bench/report/table.h"

struct placed_row {
    const struct run_record *first; /* run of the policy */
    size_t runs, passed;
    struct statistic by; /* count 0: stands last */
    size_t place;        /* 0: none */
    bool shared;         /* with others that it is not told apart from */
};

struct placed_rows {
    struct placed_row *items; /* of the group at hand */
    size_t count;
    double *values; /* for statistics: room for all records */
    double *drawn;  /* for places by pairs: the same */
    struct statistic *by;
    size_t *places;
    bool *shared;
};

/* With room for a group of all records. HOST_MEMORY. The caller closes it in any case. */
enum ar_status placed_rows_open(struct placed_rows *self, size_t records,
                                struct ar_error *error) AR_STATUS_CHECKED;
void placed_rows_close(struct placed_rows *self);

/* Puts a row behind those whose median is no larger. A new group begins with `count` set to 0. */
void placed_rows_add(struct placed_rows *self, struct placed_row row);
/* Once all rows of the group are there. */
void placed_rows_place(struct placed_rows *self);
/* The same, by `metric` in the draws of the group, whose last record is before `end` and which has
 * no repetitions: policies are told apart by their pairs. */
void placed_rows_place_paired(struct placed_rows *self, const struct run_record *end,
                              enum metric metric);

/* The cell of its place: "2", "2=" where it is shared, "-". */
void placed_row_cell(struct table *table, const struct placed_row *row);

#endif
