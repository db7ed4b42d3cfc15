#include "bench/micro/grid.h"

#include "allocators/base/array.h"
#include "allocators/registry.h"
#include "sim/replay/timing.h"

/* On the heap; the caller frees it. NULL: no host memory. */
static struct grid *grid_make(const char *title, const char *corner, const char *counter)
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
    char *name = grid->cell[row][column].name;
    AR_PRINT(name, GRID_NAME, format);
    return name;
}

/* A value of a report, 0 if it has none with that name. */
static double micro_report_value(const struct micro_report *report, const char *name)
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
        for (size_t column = 0; column < grid->columns; column++)
            if (grid->cell[row][column].failed || !grid->cell[row][column].count)
                printf(" %*s", width(grid, column),
                       grid->cell[row][column].failed ? "failed" : "-");
            else
                printf(" %*.1f", width(grid, column), shown(grid, row, column));
        printf("\n");
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

void samples_begin(struct samples *samples, uint64_t budget_ns, size_t least)
{
    samples->begun_ns = latency_clock_ns();
    samples->budget_ns = budget_ns;
    samples->least = least;
    samples->count = 0;
}

bool samples_more(const struct samples *samples)
{
    if (samples->count < samples->least)
        return true;
    return samples->count < SAMPLES_MOST &&
           latency_clock_ns() - samples->begun_ns < samples->budget_ns;
}

void samples_add(struct samples *samples, uint64_t ns, uint64_t clock_ns)
{
    samples->ns[samples->count++] = ns > clock_ns ? ns - clock_ns : 0;
}

/* The smallest that at least the fraction of all do not exceed. */
static double quantile(const struct samples *samples, double fraction)
{
    size_t rank = (size_t)(fraction * (double)samples->count);
    return (double)samples->ns[rank < samples->count ? rank : samples->count - 1];
}

void samples_report(struct samples *samples, struct micro_state *state, uint64_t operations)
{
    ar_array_sort(samples->ns, samples->count);
    double median_ns = quantile(samples, 0.5);
    micro_time(state, median_ns);
    micro_counter(state, "ns_per_op", median_ns / (double)operations);
    micro_counter(state, "p50_ns", median_ns);
    micro_counter(state, "p99_ns", quantile(samples, 0.99));
    micro_counter(state, "p999_ns", quantile(samples, 0.999));
    micro_counter(state, "samples", (double)samples->count);
}

/* ---- sections -------------------------------------------------------------------------------- */

struct grid *sections_grid(struct sections *sections, const char *title, const char *corner,
                           const char *counter)
{
    struct grid *grid =
        sections->grid_count < SECTION_GRIDS ? grid_make(title, corner, counter) : NULL;
    if (grid)
        sections->grids[sections->grid_count++] = grid;
    else
        sections->full = true;
    return grid;
}

void *sections_cell(struct sections *sections, const void *cell, size_t bytes)
{
    void *copy = sections->cell_count < SECTION_CELLS ? malloc(bytes) : NULL;
    if (!copy) {
        sections->full = true;
        return NULL;
    }
    memcpy(copy, cell, bytes);
    sections->cells[sections->cell_count++] = copy;
    return copy;
}

void sections_close(struct sections *sections)
{
    for (size_t i = 0; i < sections->grid_count; i++)
        free(sections->grids[i]);
    for (size_t i = 0; i < sections->cell_count; i++)
        free(sections->cells[i]);
    free(sections->cold_buffer);
    ar_device_close(sections->device);
    *sections = (struct sections){0};
}

const struct ar_policy_ops *sections_policy(size_t index)
{
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)); i++)
        if (!(ops->capabilities & (AR_POLICY_OFFLINE | AR_POLICY_PINNED)) && index-- == 0)
            return ops;
    return NULL;
}
