#include "bench/micro/grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct grid *grid_make(const char *title, const char *corner, const char *counter)
{
    struct grid *grid = calloc(1, sizeof *grid);
    if (!grid)
        return NULL;
    grid->title = title;
    grid->corner = corner;
    grid->counter = counter;
    grid->scale = 1;
    return grid;
}

size_t grid_row(struct grid *grid, const char *name)
{
    if (grid->rows == GRID_ROWS)
        return GRID_ROWS;
    snprintf(grid->row[grid->rows], sizeof grid->row[0], "%s", name);
    return grid->rows++;
}

size_t grid_column(struct grid *grid, const char *name)
{
    if (grid->columns == GRID_COLUMNS)
        return GRID_COLUMNS;
    snprintf(grid->column[grid->columns], sizeof grid->column[0], "%s", name);
    return grid->columns++;
}

const char *grid_name(struct grid *grid, size_t row, size_t column, const char *format, ...)
{
    va_list arguments;
    char *name = grid->cell[row][column].name;
    va_start(arguments, format);
    vsnprintf(name, GRID_NAME, format, arguments);
    va_end(arguments);
    return name;
}

double micro_report_value(const struct micro_report *report, const char *name)
{
    for (size_t i = 0; i < report->value_count; i++)
        if (strcmp(report->values[i].name, name) == 0)
            return report->values[i].value;
    return 0;
}

/* Without room the largest goes: the least stays exact. */
static void insert(double *values, size_t *count, double value)
{
    size_t place = *count;
    if (*count == GRID_VALUES && value >= values[--place])
        return;
    for (; place > 0 && values[place - 1] > value; place--)
        values[place] = values[place - 1];
    values[place] = value;
    *count += *count < GRID_VALUES;
}

static void enter(struct grid *grid, size_t row, size_t column, const struct micro_report *report)
{
    if (!report->problem) {
        insert(grid->cell[row][column].values, &grid->cell[row][column].count,
               micro_report_value(report, grid->counter) * grid->scale);
        return;
    }
    if (!grid->cell[row][column].failed)
        fprintf(stderr, "%s: %s\n", report->name, report->problem);
    grid->cell[row][column].failed = true;
}

bool grid_take(struct grid *grid, const struct micro_report *report)
{
    for (size_t row = 0; row < grid->rows; row++) {
        for (size_t column = 0; column < grid->columns; column++) {
            if (strcmp(grid->cell[row][column].name, report->name) != 0)
                continue;
            enter(grid, row, column, report);
            return true;
        }
    }
    return false;
}

static bool any_ran(const struct grid *grid)
{
    for (size_t row = 0; row < grid->rows; row++)
        for (size_t column = 0; column < grid->columns; column++)
            if (grid->cell[row][column].count || grid->cell[row][column].failed)
                return true;
    return false;
}

static int width(const struct grid *grid, size_t column)
{
    int letters = (int)strlen(grid->column[column]);
    return letters < 10 ? 10 : letters;
}

static double shown(const struct grid *grid, size_t row, size_t column)
{
    const double *values = grid->cell[row][column].values;
    size_t count = grid->cell[row][column].count;
    return grid->median ? (values[(count - 1) / 2] + values[count / 2]) / 2 : values[0];
}

void grid_print(const struct grid *grid)
{
    if (!any_ran(grid))
        return;
    printf("\n%s; %s of the repetitions\n%-22s", grid->title, grid->median ? "median" : "least",
           grid->corner);
    for (size_t column = 0; column < grid->columns; column++)
        printf(" %*s", width(grid, column), grid->column[column]);
    printf("\n");
    for (size_t row = 0; row < grid->rows; row++) {
        printf("%-22s", grid->row[row]);
        for (size_t column = 0; column < grid->columns; column++) {
            if (grid->cell[row][column].failed || !grid->cell[row][column].count)
                printf(" %*s", width(grid, column),
                       grid->cell[row][column].failed ? "failed" : "-");
            else
                printf(" %*.1f", width(grid, column), shown(grid, row, column));
        }
        printf("\n");
    }
}
