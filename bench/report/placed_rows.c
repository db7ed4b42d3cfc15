#include "bench/report/placed_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/draw_pairs.h"

enum ar_status placed_rows_open(struct placed_rows *self, size_t records, struct ar_error *error)
{
    size_t room = records ? records : 1;
    *self = (struct placed_rows){
        .items = calloc(room, sizeof *self->items),
        .values = calloc(room, sizeof *self->values),
        .drawn = calloc(room, sizeof *self->drawn),
        .by = calloc(room, sizeof *self->by),
        .places = calloc(room, sizeof *self->places),
        .shared = calloc(room, sizeof *self->shared),
    };
    if (self->items && self->values && self->drawn && self->by && self->places && self->shared)
        return AR_OK;
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the table");
}

void placed_rows_close(struct placed_rows *self)
{
    free(self->items);
    free(self->values);
    free(self->drawn);
    free(self->by);
    free(self->places);
    free(self->shared);
    *self = (struct placed_rows){0};
}

void placed_rows_add(struct placed_rows *self, struct placed_row row)
{
    struct placed_row *items = self->items;
    size_t at = self->count++;
    for (; at > 0 && row.by.count &&
           (!items[at - 1].by.count || row.by.median < items[at - 1].by.median);
         at--)
        items[at] = items[at - 1];
    items[at] = row;
}

static void keep_places(struct placed_rows *self)
{
    for (size_t i = 0; i < self->count; i++) {
        self->items[i].place = self->places[i];
        self->items[i].shared = self->shared[i];
    }
}

void placed_rows_place(struct placed_rows *self)
{
    for (size_t i = 0; i < self->count; i++)
        self->by[i] = self->items[i].by;
    statistic_places(self->by, self->count, self->places, self->shared);
    keep_places(self);
}

/* The metric in each draw of a row, in the order of the draws of `model`. */
static void drawn_of(const struct placed_row *row, const struct placed_row *model,
                     const struct run_record *end, enum metric metric, double *drawn)
{
    const struct run_record *at = model->first;
    for (size_t i = 0; i < model->runs; at++) {
        if (strcmp(at->policy_spec, model->first->policy_spec) != 0)
            continue;
        const struct run_record *draw = draw_of(row->first, end, at->seed);
        drawn[i++] = draw ? metric_number(&draw->metrics, metric, NAN) : NAN;
    }
}

void placed_rows_place_paired(struct placed_rows *self, const struct run_record *end,
                              enum metric metric)
{
    size_t draws = self->count ? self->items[0].runs : 0;
    for (size_t i = 0; i < self->count; i++) {
        double *drawn = &self->drawn[i * draws];
        drawn_of(&self->items[i], &self->items[0], end, metric, drawn);
        if (self->items[i].by.count < draws)
            drawn[0] = NAN;
    }
    statistic_places_paired(self->drawn, self->count, draws, self->values, self->places,
                            self->shared);
    keep_places(self);
}

void placed_row_cell(struct table *table, const struct placed_row *row)
{
    if (row->place)
        table_cell(table, "%zu%s", row->place, row->shared ? "=" : "");
    else
        table_cell(table, "-");
}
