/* Bytes by owner at the ends of phases: rows are phases, columns are owners. Owners that do not fit
 * one table follow in another one. Owners with the same bytes in all rows have no column. */
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
    uint64_t most_bytes, least_bytes;
    size_t rows;                            /* in which it has bytes */
    bool is_constant;                       /* the same in all rows */
    char title[NAME_ROOM], unit[NAME_ROOM]; /* "actor", "weights" */
};

struct owners {
    const struct twin_page *page;
    unsigned card;
    uint64_t cycles;              /* the last one that ran */
    struct owner_column *columns; /* the largest first */
    size_t count;
    uint64_t others_most; /* of the owners that have no column and change */
    bool has_others;      /* they have a column */
};

/* Whether the row of a phase is shown: of the cycles, the first and the last. */
static bool is_shown(const struct owners *self, const struct twin_phase *phase)
{
    return phase->stage != TWIN_CYCLE || phase->cycle == 1 || phase->cycle == self->cycles;
}

static int by_bytes(const void *left, const void *right)
{
    const struct owner_column *a = left, *b = right;
    if (a->is_constant != b->is_constant)
        return a->is_constant ? 1 : -1;
    return a->most_bytes != b->most_bytes ? (a->most_bytes < b->most_bytes ? 1 : -1)
                                          : (a->owner > b->owner) - (a->owner < b->owner);
}

static void find_columns(struct owners *self)
{
    const struct twin_result *result = self->page->result;
    size_t rows = 0;
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
        if (!is_shown(self, &result->phases[phase]))
            continue;
        rows++;
        for (size_t i = 0; i < amounts.count; i++) {
            const struct twin_amount *amount = &result->amounts[amounts.first + i];
            struct owner_column *column = &self->columns[amount->owner];
            if (!column->rows++ || amount->bytes < column->least_bytes)
                column->least_bytes = amount->bytes;
            if (amount->bytes > column->most_bytes)
                column->most_bytes = amount->bytes;
        }
    }
    for (size_t i = 0; i < result->owner_count; i++) {
        struct owner_column *column = &self->columns[i];
        column->is_constant = rows > 1 && column->rows == rows && column->most_bytes &&
                              column->least_bytes == column->most_bytes;
    }
    qsort(self->columns, result->owner_count, sizeof *self->columns, by_bytes);
    const uint64_t least = twin_answer_peak(result).bytes / COLUMN_LEAST;
    while (self->count < result->owner_count && self->count < COLUMNS_MOST &&
           !self->columns[self->count].is_constant && self->columns[self->count].most_bytes > least)
        self->count++;
}

static void mib(struct table *table, uint64_t bytes)
{
    table_number(table, bytes != 0, 1, (double)bytes / (double)AR_MIB);
}

/* The bytes of owners that have no column and change. */
static uint64_t others_at(const struct owners *self, size_t phase)
{
    const struct twin_result *result = self->page->result;
    const struct twin_card_state *state = twin_card_at(result, phase, self->card);
    uint64_t others = state->used_bytes;
    for (size_t i = 0; i < result->owner_count; i++)
        if (i < self->count || self->columns[i].is_constant)
            others -= twin_answer_amount(result, state->amounts, self->columns[i].owner);
    return others;
}

static void find_others(struct owners *self)
{
    const struct twin_result *result = self->page->result;
    for (size_t phase = 0; phase < result->phase_count; phase++)
        if (is_shown(self, &result->phases[phase])) {
            uint64_t others = others_at(self, phase);
            self->others_most = others > self->others_most ? others : self->others_most;
        }
    self->has_others = self->others_most > twin_answer_peak(result).bytes / COLUMN_LEAST;
}

static void add_row(const struct owners *self, struct table *table, size_t phase, size_t from,
                    size_t to)
{
    const struct twin_result *result = self->page->result;
    const struct twin_card_state *state = twin_card_at(result, phase, self->card);
    table_cell(table, "%s", result->phases[phase].text);
    if (!from)
        mib(table, state->used_bytes);
    for (size_t i = from; i < to; i++)
        mib(table, twin_answer_amount(result, state->amounts, self->columns[i].owner));
    if (to == self->count && self->has_others)
        mib(table, others_at(self, phase));
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
    if (to == self->count && self->has_others)
        columns[count++] = (struct table_column){"others", "", false, 0};
    struct table *table = table_create(columns, count);
    for (size_t phase = 0; phase < result->phase_count; phase++)
        if (is_shown(self, &result->phases[phase])) {
            add_heading(self, table, phase);
            add_row(self, table, phase, from, to);
        }
    fputc('\n', stream);
    return table_end(table, stream, TABLE_TEXT, error);
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

/* The owners that have no column: those whose bytes do not change, and the smallest. */
static void print_constant(const struct owners *self, FILE *stream)
{
    const struct twin_result *result = self->page->result;
    char line[900] = "In all rows:";
    size_t used = strlen(line), begin = used;
    for (size_t i = 0; i < result->owner_count && used < sizeof line - 160; i++)
        if (self->columns[i].is_constant)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s %.100s %.1f",
                                     used > begin ? "," : "",
                                     result->owners[self->columns[i].owner].name,
                                     twin_mib((double)self->columns[i].most_bytes));
    snprintf(line + used, sizeof line - used, ".");
    if (used > begin)
        sentence_print(stream, line);
    if (!self->has_others && self->others_most)
        sentence_format(stream, 2, "All other owners: at most %.1f MiB together.",
                        twin_mib((double)self->others_most));
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
    find_others(&self);
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
            size_t others =
                to + 1 == self.count && self.has_others ? cell_width("others", "", 0) : 0;
            if (to > from && width + others > SENTENCE_WIDTH)
                break;
        }
        status = print_part(&self, stream, from, to, error);
        from = to;
    } while (from < self.count && !status);
    print_constant(&self, stream);
    free(self.columns);
    return status;
}
