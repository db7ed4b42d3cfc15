/* Bytes by owner at the ends of phases: rows are phases, columns are owners. Owners that do not fit
 * one table follow in another one. */
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "bench/report/twin_page.h"

#define NAME_ROOM    64
#define COLUMNS_MOST 12  /* owners that have a column */
#define COLUMN_LEAST 200 /* a smaller part of the peak is among the others */
#define LABEL_WIDE   24

struct owner_column {
    uint32_t owner;
    uint64_t most_bytes;
    char title[NAME_ROOM], unit[NAME_ROOM]; /* "actor", "weights" */
};

struct owners {
    const struct twin_page *page;
    unsigned card;
    uint64_t cycles;              /* the last one that ran */
    struct owner_column *columns; /* the largest first */
    size_t count;
};

/* Whether the row of a phase is shown: of the cycles, the first and the last. */
static bool is_shown(const struct owners *self, const struct twin_phase *phase)
{
    return phase->stage != TWIN_CYCLE || phase->cycle == 1 || phase->cycle == self->cycles;
}

static int by_bytes(const void *left, const void *right)
{
    const struct owner_column *a = left, *b = right;
    return a->most_bytes != b->most_bytes ? (a->most_bytes < b->most_bytes ? 1 : -1)
                                          : (a->owner > b->owner) - (a->owner < b->owner);
}

static void find_columns(struct owners *self)
{
    const struct twin_result *result = self->page->result;
    for (size_t i = 0; i < result->owner_count; i++) {
        struct owner_column *column = &self->columns[i];
        const char *name = result->owners[i].name, *slash = strchr(name, '/');
        int first = slash ? (int)(slash - name) : (int)strlen(name);
        column->owner = (uint32_t)i;
        snprintf(column->title, NAME_ROOM, "%.*s", first, name);
        snprintf(column->unit, NAME_ROOM, "%.*s", NAME_ROOM - 1, slash ? slash + 1 : "");
    }
    for (size_t phase = 0; phase < result->phase_count; phase++) {
        const struct twin_amounts amounts = twin_card_at(result, phase, self->card)->amounts;
        for (size_t i = 0; i < amounts.count && is_shown(self, &result->phases[phase]); i++) {
            const struct twin_amount *amount = &result->amounts[amounts.first + i];
            if (amount->bytes > self->columns[amount->owner].most_bytes)
                self->columns[amount->owner].most_bytes = amount->bytes;
        }
    }
    qsort(self->columns, result->owner_count, sizeof *self->columns, by_bytes);
    const uint64_t least = twin_answer_peak(result).bytes / COLUMN_LEAST;
    while (self->count < result->owner_count && self->count < COLUMNS_MOST &&
           self->columns[self->count].most_bytes > least)
        self->count++;
}

static void mib(struct table *table, uint64_t bytes)
{
    table_number(table, bytes != 0, 1, (double)bytes / (double)AR_MIB);
}

static void add_row(const struct owners *self, struct table *table, size_t phase, size_t from,
                    size_t to)
{
    const struct twin_result *result = self->page->result;
    const struct twin_card_state *state = twin_card_at(result, phase, self->card);
    uint64_t others = state->used_bytes;
    table_cell(table, "%s", result->phases[phase].text);
    if (!from)
        mib(table, state->used_bytes);
    for (size_t i = from; i < to; i++)
        mib(table, twin_answer_amount(result, state->amounts, self->columns[i].owner));
    for (size_t i = 0; i < self->count; i++)
        others -= twin_answer_amount(result, state->amounts, self->columns[i].owner);
    if (to == self->count)
        mib(table, others);
}

static void add_heading(const struct owners *self, struct table *table, size_t phase)
{
    const struct twin_phase *at = &self->page->result->phases[phase];
    if (phase && at[-1].stage == at->stage && at[-1].cycle == at->cycle)
        return;
    if (at->stage == TWIN_CYCLE)
        table_heading(table, "cycle %llu", (unsigned long long)at->cycle);
    else
        table_heading(table, "%s", at->stage == TWIN_START ? "start" : "end");
}

static enum ar_status print_part(const struct owners *self, FILE *stream, size_t from, size_t to,
                                 struct ar_error *error)
{
    struct table_column columns[COLUMNS_MOST + 3] = {{"at the end of", "", true, LABEL_WIDE}};
    const struct twin_result *result = self->page->result;
    size_t count = 1;
    if (!from)
        columns[count++] = (struct table_column){"used", "", false, 0};
    for (size_t i = from; i < to; i++)
        columns[count++] =
            (struct table_column){self->columns[i].title, self->columns[i].unit, false, 0};
    if (to == self->count)
        columns[count++] = (struct table_column){"others", "", false, 0};
    struct table *table = table_create(columns, count);
    for (size_t phase = 0; phase < result->phase_count; phase++)
        if (is_shown(self, &result->phases[phase])) {
            add_heading(self, table, phase);
            add_row(self, table, phase, from, to);
        }
    fputc('\n', stream);
    enum ar_status status = table_print(table, stream, TABLE_TEXT, error);
    table_close(table);
    return status;
}

/* The width of a column with the blanks before it: of its title, or of its largest number. */
static size_t cell_width(const char *title, const char *unit, uint64_t most_bytes)
{
    char number[32];
    size_t widest =
        (size_t)snprintf(number, sizeof number, "%.1f", (double)most_bytes / (double)AR_MIB);
    widest = strlen(title) > widest ? strlen(title) : widest;
    return 2 + (strlen(unit) > widest ? strlen(unit) : widest);
}

enum ar_status twin_owners_print(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    const struct twin_result *result = page->result;
    struct owners self = {
        .page = page,
        .card = twin_answer_peak(result).card,
        .cycles = twin_answer_cycles(result),
        .columns = calloc(result->owner_count + 1, sizeof *self.columns),
    };
    if (!self.columns)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the table of owners");
    find_columns(&self);
    enum ar_status status = AR_OK;
    size_t label = strlen("at the end of"), from = 0;
    for (size_t phase = 0; phase < result->phase_count; phase++) {
        size_t length = strlen(result->phases[phase].text);
        if (length > label && length <= LABEL_WIDE && is_shown(&self, &result->phases[phase]))
            label = length;
    }
    do {
        size_t to = from;
        size_t width = label + (from ? 0 : cell_width("used", "", twin_answer_peak(result).bytes));
        for (; to < self.count; to++) {
            const struct owner_column *column = &self.columns[to];
            width += cell_width(column->title, column->unit, column->most_bytes);
            size_t others = to + 1 == self.count ? cell_width("others", "", 0) : 0;
            if (to > from && width + others > SENTENCE_WIDTH)
                break;
        }
        status = print_part(&self, stream, from, to, error);
        from = to;
    } while (from < self.count && !status);
    free(self.columns);
    return status;
}
