/* The inside of a table, for those who print it. */
#ifndef BENCH_REPORT_TABLE_ROWS_H
#define BENCH_REPORT_TABLE_ROWS_H

#include "bench/report/table.h"

enum table_row_kind { TABLE_ROW_CELLS, TABLE_ROW_HEADING };

struct table_row {
    enum table_row_kind kind;
    size_t cell_count; /* given so far; the heading is cells[0] */
    bool rest;         /* the last cell given runs over the columns after it */
    char *cells[];
};

struct table {
    const struct table_column *columns;
    size_t column_count;
    struct table_row **rows;
    size_t row_count, row_room;
    const char *label; /* for LaTeX; NULL: none */
    bool lost;         /* host memory ran out */
};

/* For LaTeX with the package booktabs: one `table` for each group, its heading as the caption. Not
 * wide: in small letters with little space, and long cells above the rest of their row. */
void table_print_latex(const struct table *self, FILE *stream, bool wide);

#endif
