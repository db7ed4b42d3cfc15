#include "bench/report/twin_page.h"

#include <math.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"

#define PEAK_ROWS   10
#define WHATIF_ROWS 12
#define LINES_MOST  12

const char *twin_owner_kind_name(enum twin_owner_kind kind)
{
    static const char *const names[] = {
        [TWIN_OWNER_PART] = "part",       [TWIN_OWNER_OUTSIDE] = "outside",
        [TWIN_OWNER_CONTEXT] = "context", [TWIN_OWNER_ROUNDING] = "rounding",
        [TWIN_OWNER_PENDING] = "pending", [TWIN_OWNER_CACHED] = "cached",
        [TWIN_OWNER_PAGES] = "pages",
    };
    return names[kind];
}

/* ---- does it fit ---------------------------------------------------------------------------- */

static void print_head(FILE *stream, const struct twin_page *page)
{
    const struct twin_scenario *scenario = page->scenario;
    const uint64_t cycles = twin_answer_cycles(page->result);
    char of[40] = "";
    if (scenario->cycles > cycles && scenario->cycle[0])
        snprintf(of, sizeof of, " of %" PRIu64, scenario->cycles);
    say(stream, "%s: %zu process%s, %zu part%s on %u card%s of %s (%s), %" PRIu64 "%s cycle%s.",
        page->name, scenario->process_count, scenario->process_count == 1 ? "" : "es",
        scenario->part_count, twin_plural(scenario->part_count), page->result->card_count,
        twin_plural(page->result->card_count), scenario->device ? scenario->device : "sim",
        AR_SIZE(page->result->total_bytes), cycles, of,
        twin_plural(of[0] ? scenario->cycles : cycles));
}

static void print_outcome(FILE *stream, const struct twin_page *page)
{
    const struct twin_result *result = page->result;
    const struct twin_peak peak = twin_answer_peak(result);
    char bytes[32], spare[32], place[160], why[400];
    if (result->outcome == TWIN_PASSED && peak.phase != SIZE_MAX) {
        const struct twin_card_state *state = twin_card_at(result, peak.phase, peak.card);
        uint64_t usable = state->used_bytes + state->free_bytes;
        ar_size_print(peak.bytes, bytes, sizeof bytes);
        ar_size_print(usable > peak.bytes ? usable - peak.bytes : 0, spare, sizeof spare);
        say(stream, "It fits%s. The peak is %s, in %s; %s are to spare.",
            page->scenario->cycles ? "" : " without a cycle", bytes,
            twin_answer_place(result, peak.phase, place, sizeof place), spare);
        return;
    }
    twin_answer_failure(page->scenario, result, why, sizeof why);
    if (result->failure.phase < result->phase_count)
        twin_answer_place(result, result->failure.phase, place, sizeof place);
    else
        snprintf(place, sizeof place, "start");
    say(stream, "%s In %s: %s.",
        result->outcome == TWIN_REFUSED ? "It is refused." : "It does not fit.", place, why);
}

/* The peak of each card, if they differ: "0: 57.7, 1-7: 40.2". */
static void print_cards(FILE *stream, const struct twin_page *page)
{
    const struct twin_result *result = page->result;
    uint64_t peaks[TWIN_CARDS] = {0};
    char line[1200] = "";
    for (size_t phase = 0; phase < result->phase_count; phase++)
        for (unsigned card = 0; card < result->card_count; card++) {
            const struct twin_card_state *state = twin_card_at(result, phase, card);
            AR_RAISE(peaks[card], state->used_bytes);
            AR_RAISE(peaks[card], state->peak_bytes);
        }
    for (unsigned card = 0, next; card < result->card_count; card = next) {
        for (next = card + 1; next < result->card_count && peaks[next] == peaks[card];)
            next++;
        text_add(line, sizeof line, "%s%u", card ? ", " : "", card);
        if (next > card + 1)
            text_add(line, sizeof line, "-%u", next - 1);
        text_add(line, sizeof line, ": %.1f", twin_mib((double)peaks[card]));
    }
    if (result->card_count > 1)
        say(stream,
            "Peaks of the cards (MiB): %s. The tables are of card %u; --series and --json have "
            "all.",
            line, twin_answer_peak(result).card);
}

/* What other values of what is unknown would change. */
static void print_unknown(FILE *stream, const struct twin_page *page)
{
    if (!page->range_count)
        return;
    if (!page->range_fits)
        say(stream, "It fits with none of the %zu combinations of [unknown].", page->range_count);
    else
        say(stream,
            "It fits with %zu of the %zu combinations of [unknown], with peaks of %s to %s.",
            page->range_fits, page->range_count, AR_SIZE(page->range_least_peak_bytes),
            AR_SIZE(page->range_most_peak_bytes));
}

/* ---- the peak ------------------------------------------------------------------------------- */

static enum ar_status print_peak(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    const struct twin_result *result = page->result;
    const struct twin_peak peak = twin_answer_peak(result);
    char place[160];
    const struct twin_amounts amounts = peak.amounts;
    AR_FREED struct twin_share *shares = calloc(amounts.count + 1, sizeof *shares);
    AR_TRY_MEMORY(shares, error, "the table of the peak");
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[amounts.first + i];
        shares[i] = (struct twin_share){amount->bytes, result->owners[amount->owner].name};
    }
    qsort(shares, amounts.count, sizeof *shares, twin_by_share);
    struct table *table = table_of("MiB; share|%%; owner<");
    uint64_t rest = peak.bytes;
    for (size_t i = 0; i < amounts.count && i < PEAK_ROWS && shares[i].bytes; i++) {
        table_cell(table, "%.1f", twin_mib((double)shares[i].bytes));
        table_cell(table, "%.1f", 100 * (double)shares[i].bytes / (double)peak.bytes);
        table_cell(table, "%s", shares[i].name);
        rest -= shares[i].bytes;
    }
    if (rest) {
        table_cell(table, "%.1f", twin_mib((double)rest));
        table_cell(table, "%.1f", 100 * (double)rest / (double)peak.bytes);
        table_cell(table, "all others");
    }
    fputc('\n', stream);
    say(stream, "The peak, in %s, on card %u",
        twin_answer_place(result, peak.phase, place, sizeof place), peak.card);
    return table_end(table, stream, TABLE_TEXT, error);
}

/* ---- caches, graphs, lines ------------------------------------------------------------------ */

static const char *cache_value(const struct twin_page_cache *cache, double value, char *text,
                               size_t room)
{
    if (cache->is_bytes)
        return ar_size_print_exact((uint64_t)value, text, room);
    snprintf(text, room, "%.12g", value);
    return text;
}

static void print_cache(FILE *stream, const char *name, const struct twin_page_cache *cache,
                        uint64_t cycles)
{
    char more[160] = "", now[32], safe[32], next[32];
    cache_value(cache, cache->now, now, sizeof now);
    cache_value(cache, cache->safe, safe, sizeof safe);
    cache_value(cache, cache->tried, next, sizeof next);
    if (cache->safe <= 0) {
        say(stream,
            "With no value of %s of %s does the schedule pass. It comes furthest with %s: %s.",
            cache->option, name, next, cache->why);
        return;
    }
    if (cache->blocks > 0)
        text_add(more, sizeof more, ", %.0f blocks", cache->blocks);
    if (cache->tokens > 0)
        text_add(more, sizeof more, ", %.0f tokens", cache->tokens);
    if (cache->bytes > 0)
        text_add(more, sizeof more, ", %s", AR_SIZE((uint64_t)cache->bytes));
    say(stream, "Largest safe key-value cache of %s: %s = %s (now %s)%s.", name, cache->option,
        safe, cache->now > 0 ? now : "by its default", more);
    if (cache->tried <= cache->safe)
        say(stream, "A larger value than %s was not tried.", safe);
    else
        say(stream, "With %s: %s.", next, cache->why);
    more[0] = '\0';
    if (cycles)
        snprintf(more, sizeof more, " of %" PRIu64 " cycles", cycles);
    say(stream, "Safe: the whole schedule%s passes. Tried by %u run%s.", more, cache->runs,
        twin_plural(cache->runs));
}

static void print_caches(FILE *stream, const struct twin_page *page)
{
    for (size_t i = 0; i < page->cache_count; i++) {
        fputc('\n', stream);
        print_cache(stream, page->scenario->parts[page->caches[i].part].name, &page->caches[i],
                    page->whatif_cycles);
    }
}

static enum ar_status print_graphs(FILE *stream, const struct twin_page *page,
                                   struct ar_error *error)
{
    const struct twin_result *result = page->result;
    const unsigned card = twin_answer_peak(result).card;
    AR_CLOSED(table_close_at) struct table *table = table_of("MiB; <; owner<");
    double total = 0;
    for (size_t owner = 0; owner < result->owner_count; owner++) {
        if (!strstr(result->owners[owner].name, "graph"))
            continue;
        uint64_t most = 0;
        for (size_t phase = 0; phase < result->phase_count; phase++) {
            const struct twin_amounts amounts = twin_card_at(result, phase, card)->amounts;
            uint64_t bytes = twin_answer_amount(result, amounts, (uint32_t)owner);
            most = bytes > most ? bytes : most;
        }
        if (!most)
            continue;
        total += (double)most;
        table_cell(table, "%.1f", twin_mib((double)most));
        bool outside = result->owners[owner].kind == TWIN_OWNER_OUTSIDE ||
                       strstr(result->owners[owner].name, "driver");
        table_cell(table, "%s", outside ? "driver" : "pool");
        table_cell(table, "%s", result->owners[owner].name);
    }
    if (total > 0) {
        fputc('\n', stream);
        say(stream, "Memory of graphs, at most: %.1f MiB", twin_mib(total));
        AR_TRY(table_print(table, stream, TABLE_TEXT, error));
    }
    return AR_OK;
}

/* What the programs would log, each line once. */
static void print_lines(FILE *stream, const struct twin_page *page)
{
    const struct twin_result *result = page->result;
    const struct twin_line *shown[LINES_MOST];
    size_t count = 0, more = 0;
    for (size_t i = 0; i < result->line_count; i++) {
        const struct twin_line *line = &result->lines[i];
        bool again = line->rank != 0;
        for (size_t k = 0; k < count && !again; k++)
            again = shown[k]->part == line->part && !strcmp(shown[k]->text, line->text);
        if (!again && count < LINES_MOST)
            shown[count++] = line;
        else
            more += !again;
    }
    if (count)
        fputs("\nWhat the programs say\n", stream);
    for (size_t i = 0; i < count; i++)
        sentence_format(stream, 4, "  %s: %s", page->scenario->parts[shown[i]->part].name,
                        shown[i]->text);
    if (more)
        say(stream, "  and %zu more (--json has them)", more);
}

/* ---- reported figures and what-ifs ---------------------------------------------------------- */

static enum ar_status print_reported(FILE *stream, const struct twin_page *page,
                                     struct ar_error *error)
{
    if (!page->reported_count)
        return AR_OK;
    const bool ranges = page->range_count != 0;
    struct table *table = table_of(ranges ? "reported; twin; differs|%%; least; most; <; figure<"
                                          : "reported; twin; differs|%%; <; figure<");
    size_t agree = 0, within = 0;
    for (size_t i = 0; i < page->reported_count; i++) {
        const struct twin_page_reported *one = &page->reported[i];
        table_cell(table, "%s", one->given);
        table_cell(table, "%s", one->known ? one->ours : "-");
        table_known(table, one->has_part && fabs(one->part) < 10, "%+.1f", 100 * one->part);
        for (int most = 0; most < 2 && ranges; most++)
            table_cell(table, "%s",
                       !one->has_range ? "-"
                       : most          ? one->most_text
                                       : one->least_text);
        bool agrees = one->known && one->agrees;
        table_cell(table, "%s",
                   agrees                            ? "ok"
                   : one->has_range && one->in_range ? "in range"
                   : one->known                      ? "off"
                                                     : "unknown");
        table_cell(table, "%s", one->text);
        agree += agrees;
        within += !agrees && one->has_range && one->in_range;
    }
    fputc('\n', stream);
    fprintf(stream, "Reported figures: %zu of %zu agree within %g %%", agree, page->reported_count,
            100 * page->tolerance);
    if (within)
        fprintf(stream, ", %zu %s in range", within, within == 1 ? "is" : "are");
    fputc('\n', stream);
    if (page->source)
        sentence_copied(stream, "  ", page->source);
    AR_TRY(table_end(table, stream, TABLE_TEXT, error));
    for (size_t i = 0; i < page->reported_count; i++)
        if (!page->reported[i].agrees && page->reported[i].nearest[0])
            say(stream, "Nearest to %s: %s", page->reported[i].text, page->reported[i].nearest);
    return AR_OK;
}

static void saved_cell(struct table *table, bool known, double bytes)
{
    if (known && fabs(bytes) < 0.05 * (double)AR_MIB)
        table_cell(table, "0");
    else
        table_number(table, known, 1, twin_mib(bytes));
}

/* The values of caches with which the scenario fits. */
static void print_safe_caches(FILE *stream, const struct twin_page *page)
{
    char safe[32];
    for (size_t i = 0; i < page->cache_count && page->result->outcome != TWIN_PASSED; i++) {
        const struct twin_page_cache *cache = &page->caches[i];
        if (cache->safe > 0)
            say(stream, "It fits with %s.%s=%s.", page->scenario->parts[cache->part].name,
                cache->option, cache_value(cache, cache->safe, safe, sizeof safe));
    }
}

static enum ar_status print_whatifs(FILE *stream, const struct twin_page *page,
                                    struct ar_error *error)
{
    size_t rows = 0, less = 0, without = 0;
    char few[48] = "";
    if (page->whatif_cycles)
        snprintf(few, sizeof few, " (in %" PRIu64 " cycles)", page->whatif_cycles);
    if (!page->has_whatifs)
        return AR_OK;
    struct table *table = table_of("peak|MiB less; residue|MiB less; what if<");
    for (size_t i = 0; i < page->whatif_count; i++) {
        const struct twin_page_whatif *one = &page->whatifs[i];
        bool saves = one->now_fits || one->peak_saved >= (double)AR_MIB / 20 ||
                     (one->has_residue && one->residue_saved >= (double)AR_MIB / 20);
        if (!one->runs || !one->passes)
            continue;
        if (!saves || rows == WHATIF_ROWS) {
            *(saves ? &less : &without) += 1;
            continue;
        }
        saved_cell(table, !one->now_fits, one->peak_saved);
        /* Without a run that passes now, there is nothing to compare with. */
        saved_cell(table, one->has_residue && !one->now_fits, one->residue_saved);
        table_cell(table, "%s%s", one->text, one->now_fits ? " (then it fits)" : "");
        rows++;
    }
    fprintf(stream, "\nWhat if%s\n", few);
    print_safe_caches(stream, page);
    enum ar_status status = rows ? table_print(table, stream, TABLE_TEXT, error) : AR_OK;
    table_close(table);
    if (less)
        say(stream, "%zu more save less (--json has them).", less);
    if (without)
        say(stream, "%zu %schange%s %s nothing.", without, rows ? "other " : "",
            twin_plural(without), without == 1 ? "saves" : "save");
    if (!page->whatif_count)
        say(stream, "No part and no policy of this scenario offers a change.");
    bool fits = page->result->outcome == TWIN_PASSED, begun = false;
    for (size_t i = 0; i < page->whatif_count; i++) {
        const struct twin_page_whatif *one = &page->whatifs[i];
        if (one->runs && !one->passes && !one->refused && !fits) {
            fputs(begun ? "" : "It does not fit with these either:\n", stream);
            sentence_format(stream, 4, "  %s", one->text);
            begun = true;
        }
    }
    for (size_t i = 0; i < page->whatif_count; i++) {
        const struct twin_page_whatif *one = &page->whatifs[i];
        if (!one->runs || one->refused || (!one->passes && fits))
            say(stream, "%s: %s%s.", one->text, one->runs ? "" : "cannot run: ", one->why);
    }
    return status;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* Bytes by owner at the ends of phases: rows are phases, columns are owners. Owners that do not fit
 * one table follow in another one. Owners with the same bytes in all rows have no column. */

#define NAME_ROOM    64
#define COLUMNS_MOST 12  /* owners that have a column */
#define COLUMN_LEAST 200 /* a smaller part of the peak is among the others */
#define LABEL_WIDE   24
#define FAILED       " (failed)"

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
    AR_ORDER(a->is_constant, b->is_constant);
    AR_ORDER(b->most_bytes, a->most_bytes);
    return (a->owner > b->owner) - (a->owner < b->owner);
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
            AR_RAISE(column->most_bytes, amount->bytes);
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

/* In the phase that failed the bytes are those at that moment. */
static const char *failed_text(const struct twin_result *result, size_t phase)
{
    return phase == result->failure.phase ? FAILED : "";
}

static void add_row(const struct owners *self, struct table *table, size_t phase, size_t from,
                    size_t to)
{
    const struct twin_result *result = self->page->result;
    const struct twin_card_state *state = twin_card_at(result, phase, self->card);
    table_cell(table, "%s%s", result->phases[phase].text, failed_text(result, phase));
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
    size_t shown = 0;
    for (size_t i = 0; i < result->owner_count && strlen(line) < sizeof line - 160; i++)
        if (self->columns[i].is_constant)
            text_add(line, sizeof line, "%s %.100s %.1f", shown++ ? "," : "",
                     result->owners[self->columns[i].owner].name,
                     twin_mib((double)self->columns[i].most_bytes));
    text_add(line, sizeof line, ".");
    if (shown)
        say(stream, "%s", line);
    if (!self->has_others && self->others_most)
        say(stream, "All other owners: at most %.1f MiB together.",
            twin_mib((double)self->others_most));
}

static enum ar_status print_owners(FILE *stream, const struct twin_page *page,
                                   struct ar_error *error)
{
    const struct twin_result *result = page->result;
    struct owners self = {
        .page = page,
        .card = twin_answer_peak(result).card,
        .cycles = twin_answer_cycles(result),
        .columns = calloc(result->owner_count + 1, sizeof *self.columns),
    };
    AR_TRY_MEMORY(self.columns, error, "the table of owners");
    find_columns(&self);
    find_others(&self);
    enum ar_status status = AR_OK;
    size_t label = strlen("at the end of"), from = 0;
    for (size_t phase = 0; phase < result->phase_count; phase++) {
        size_t length = strlen(result->phases[phase].text) + strlen(failed_text(result, phase));
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
    if (result->failure.phase < result->phase_count)
        say(stream, "failed: the bytes are those at the request that failed.");
    free(self.columns);
    return status;
}

/* ---- residue, drift, pinning blocks ---------------------------------------------------------- */

/* Residue, drift and pinning blocks, as parts of the page of `twin`. */

#define PIN_ROWS  8
#define LEFT_MOST 6 /* owners of what remains that are named */

static void signed_mib(struct table *table, bool known, double bytes)
{
    if (!known)
        table_cell(table, "-");
    else if (bytes == 0)
        table_cell(table, "0");
    else
        table_cell(table, "%+.3f", twin_mib(bytes));
}

/* The drift on the card where it is greatest. */
static bool most_drift(const struct twin_result *result, size_t place, double *most)
{
    bool known = false;
    for (unsigned card = 0; card < result->card_count; card++) {
        double bytes;
        if (twin_drift(result, place, card, TWIN_WARM_CYCLES, &bytes) &&
            (!known || fabs(bytes) > fabs(*most))) {
            *most = bytes;
            known = true;
        }
    }
    return known;
}

/* Bytes at the end of a phase in the first and the last cycle. */
static void pair_cells(struct table *table, bool known, bool ended, uint64_t first, uint64_t last)
{
    table_number(table, known, 1, twin_mib((double)first));
    table_number(table, known && ended, 1, twin_mib((double)last));
}

static void residue_row(struct table *table, const struct twin_page *page, size_t phase,
                        bool with_residue)
{
    const struct twin_result *result = page->result;
    const struct twin_phase *at = &result->phases[phase];
    const unsigned card = twin_answer_peak(result).card;
    size_t last = twin_phase_find(result, TWIN_CYCLE, twin_answer_cycles(result), at->place);
    size_t process = 0, there = last == SIZE_MAX ? phase : last;
    double drift = 0;
    bool sleeps = twin_answer_sleeps(page->scenario, at->text, &process);
    const char *failed = failed_text(result, phase);
    table_cell(table, "%s%s", at->text, *failed ? failed : failed_text(result, there));
    if (with_residue)
        pair_cells(table, sleeps, last != SIZE_MAX, twin_answer_residue(result, phase, process),
                   twin_answer_residue(result, there, process));
    pair_cells(table, true, last != SIZE_MAX, twin_card_at(result, phase, card)->used_bytes,
               twin_card_at(result, there, card)->used_bytes);
    signed_mib(table, most_drift(result, at->place, &drift), drift);
}

static enum ar_status print_residue(FILE *stream, const struct twin_page *page,
                                    struct ar_error *error)
{
    const struct twin_result *result = page->result;
    bool sleeps = false;
    size_t rows = 0, process;
    for (size_t phase = 0; phase < result->phase_count; phase++) {
        const struct twin_phase *at = &result->phases[phase];
        sleeps |= at->stage == TWIN_CYCLE && twin_answer_sleeps(page->scenario, at->text, &process);
        rows += at->stage == TWIN_CYCLE;
    }
    if (!rows)
        return AR_OK;
    struct table *table =
        sleeps
            ? table_of("at the end of<28; residue|first; |last; used|first; |last; drift|a cycle")
            : table_of("at the end of<28; used|first; |last; drift|a cycle");
    for (size_t phase = 0; phase < result->phase_count; phase++)
        if (result->phases[phase].stage == TWIN_CYCLE && result->phases[phase].cycle == 1)
            residue_row(table, page, phase, sleeps);
    fprintf(stream, "\n%s (MiB; first and last cycle)\n", sleeps ? "Residue and drift" : "Drift");
    enum ar_status status = table_end(table, stream, TABLE_TEXT, error);
    say(stream, "%sdrift: the change of used bytes from cycle to cycle, without the first one.",
        sleeps ? "residue: what the process of the step uses of the card beyond its context, after "
                 "memory was released. "
               : "");
    return status;
}

/* Blocks that are alike share a row. */
struct pin_group {
    struct twin_pin first;
    uint64_t keeps_bytes, blocks;
};

static int by_kept(const void *left, const void *right)
{
    const struct pin_group *a = left, *b = right;
    AR_ORDER(b->keeps_bytes, a->keeps_bytes);
    return (a->first.address > b->first.address) - (a->first.address < b->first.address);
}

static bool are_alike(const struct twin_pin *a, const struct twin_pin *b)
{
    return a->owner == b->owner && a->bytes == b->bytes && a->born.text == b->born.text &&
           a->born.stage == b->born.stage && a->born.cycle == b->born.cycle &&
           a->born.place == b->born.place && !strcmp(a->tag ? a->tag : "", b->tag ? b->tag : "");
}

static void add_pin(struct pin_group *groups, size_t *count, const struct twin_pin *pin)
{
    size_t i = 0;
    while (i < *count && !are_alike(&groups[i].first, pin))
        i++;
    if (i == *count)
        groups[(*count)++] = (struct pin_group){.first = *pin};
    groups[i].keeps_bytes += pin->keeps_bytes;
    groups[i].blocks++;
}

/* The phase whose pinning blocks are shown: the last that releases memory, or where it failed. */
static size_t pin_phase(const struct twin_page *page)
{
    size_t phase = SIZE_MAX, process;
    if (page->result->outcome != TWIN_PASSED)
        return page->result->failure.phase;
    return twin_answer_last_sleep(page->scenario, page->result, &phase, &process) ? phase
                                                                                  : SIZE_MAX;
}

/* Who has the residue after the last phase that releases memory, on the rank that has most. */
static enum ar_status print_left(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    const struct twin_result *result = page->result;
    size_t phase, process, most = SIZE_MAX, count = 0;
    char place[160], line[800];
    if (!twin_answer_last_sleep(page->scenario, result, &phase, &process))
        return AR_OK;
    const uint64_t residue = twin_answer_residue(result, phase, process);
    for (size_t rank = result->rank_count; rank-- > 0;)
        if (result->ranks[rank].process == process &&
            twin_residue(twin_rank_at(result, phase, rank)) == residue)
            most = rank;
    if (!residue || most == SIZE_MAX)
        return AR_OK;
    const struct twin_amounts amounts =
        twin_card_at(result, phase, result->ranks[most].card)->amounts;
    struct twin_share *shares = calloc(amounts.count + 1, sizeof *shares);
    AR_TRY_MEMORY(shares, error, "the residue");
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[amounts.first + i];
        const struct twin_owner *owner = &result->owners[amount->owner];
        if (owner->process == process && owner->kind != TWIN_OWNER_CONTEXT && amount->bytes)
            shares[count++] = (struct twin_share){amount->bytes, owner->name};
    }
    qsort(shares, count, sizeof *shares, twin_by_share);
    snprintf(line, sizeof line, "%.1f MiB remain after %s:", twin_mib((double)residue),
             twin_answer_place(result, phase, place, sizeof place));
    for (size_t i = 0; i < count && i < LEFT_MOST && strlen(line) < sizeof line - 120; i++)
        text_add(line, sizeof line, "%s %.80s %.1f", i ? "," : "", shares[i].name,
                 twin_mib((double)shares[i].bytes));
    text_add(line, sizeof line, "%s.", count > LEFT_MOST ? " and others" : "");
    say(stream, "%s", line);
    free(shares);
    return AR_OK;
}

static enum ar_status print_pins(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    const struct twin_result *result = page->result;
    const size_t phase = pin_phase(page);
    AR_FREED struct pin_group *groups = calloc(result->pin_count + 1, sizeof *groups);
    char place[160], on[32] = "";
    size_t count = 0, blocks = 0;
    uint64_t kept = 0;
    uint32_t card = UINT32_MAX; /* the first with such blocks; others have their own */
    AR_TRY_MEMORY(groups, error, "the pinning blocks");
    for (size_t i = 0; i < result->pin_count; i++)
        if (result->pins[i].phase == phase && result->pins[i].keeps_bytes)
            AR_LOWER(card, result->ranks[result->pins[i].rank].card);
    for (size_t i = 0; i < result->pin_count; i++)
        if (result->pins[i].phase == phase && result->pins[i].keeps_bytes &&
            result->ranks[result->pins[i].rank].card == card) {
            kept += result->pins[i].keeps_bytes;
            blocks++;
            add_pin(groups, &count, &result->pins[i]);
        }
    if (!count)
        return AR_OK;
    qsort(groups, count, sizeof *groups, by_kept);
    struct table *table = table_of("keep|MiB; blocks; each|MiB; owner<20; born in<30; tag<");
    for (size_t i = 0; i < count && i < PIN_ROWS; i++) {
        const struct twin_pin *pin = &groups[i].first;
        table_cell(table, "%.1f", twin_mib((double)groups[i].keeps_bytes));
        table_cell(table, "%" PRIu64, groups[i].blocks);
        const double each = twin_mib((double)pin->bytes);
        table_cell(table, "%.*f", each < 10 ? 3 : 1, each);
        table_cell(table, "%s", result->owners[pin->owner].name);
        table_cell(table, "%s",
                   pin->born.text ? twin_answer_phase(&pin->born, place, sizeof place) : "-");
        table_cell(table, "%s", pin->tag && pin->tag[0] ? pin->tag : "-");
    }
    if (result->card_count > 1)
        snprintf(on, sizeof on, " on card %" PRIu32, card);
    fputc('\n', stream);
    say(stream,
        "Pinning blocks after %s%s: %zu live block%s keep%s %.1f MiB of free memory from being "
        "released%s",
        twin_answer_place(result, phase, place, sizeof place), on, blocks, twin_plural(blocks),
        blocks == 1 ? "s" : "", twin_mib((double)kept),
        count > PIN_ROWS ? "; those that keep most" : "");
    return table_end(table, stream, TABLE_TEXT, error);
}

/* ---- the page ------------------------------------------------------------------------------ */

enum ar_status twin_page_print(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    print_head(stream, page);
    print_outcome(stream, page);
    print_unknown(stream, page);
    print_cards(stream, page);
    if (!page->result->phase_count)
        return AR_OK;
    fputs("\nBytes by owner at the end of each phase (MiB)\n", stream);
    AR_TRY(print_owners(stream, page, error));
    AR_TRY(print_peak(stream, page, error));
    AR_TRY(print_residue(stream, page, error));
    AR_TRY(print_left(stream, page, error));
    AR_TRY(print_pins(stream, page, error));
    print_caches(stream, page);
    AR_TRY(print_graphs(stream, page, error));
    print_lines(stream, page);
    AR_TRY(print_reported(stream, page, error));
    return print_whatifs(stream, page, error);
}
