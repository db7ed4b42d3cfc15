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

static void enter(struct grid *grid, size_t row, size_t column, const struct micro_report *report)
{
    double value = micro_report_value(report, grid->counter) * grid->scale;
    if (report->problem) {
        if (!grid->cell[row][column].failed)
            fprintf(stderr, "%s: %s\n", report->name, report->problem);
        grid->cell[row][column].failed = true;
        return;
    }
    double best = grid->cell[row][column].value;
    if (!grid->cell[row][column].ran || (grid->more_is_better ? value > best : value < best))
        grid->cell[row][column].value = value;
    grid->cell[row][column].ran = true;
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
            if (grid->cell[row][column].ran || grid->cell[row][column].failed)
                return true;
    return false;
}

static int width(const struct grid *grid, size_t column)
{
    int letters = (int)strlen(grid->column[column]);
    return letters < 10 ? 10 : letters;
}

void grid_print(const struct grid *grid)
{
    if (!any_ran(grid))
        return;
    printf("\n%s\n%-22s", grid->title, grid->corner);
    for (size_t column = 0; column < grid->columns; column++)
        printf(" %*s", width(grid, column), grid->column[column]);
    printf("\n");
    for (size_t row = 0; row < grid->rows; row++) {
        printf("%-22s", grid->row[row]);
        for (size_t column = 0; column < grid->columns; column++) {
            if (grid->cell[row][column].failed || !grid->cell[row][column].ran)
                printf(" %*s", width(grid, column),
                       grid->cell[row][column].failed ? "failed" : "-");
            else
                printf(" %*.1f", width(grid, column), grid->cell[row][column].value);
        }
        printf("\n");
    }
}
