#include "bench/report/twin_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    char size[32], of[40] = "";
    if (scenario->cycles > cycles && scenario->cycle[0])
        snprintf(of, sizeof of, " of %" PRIu64, scenario->cycles);
    sentence_format(
        stream, 2, "%s: %zu process%s, %zu part%s on %u card%s of %s (%s), %" PRIu64 "%s cycle%s.",
        page->name, scenario->process_count, scenario->process_count == 1 ? "" : "es",
        scenario->part_count, twin_plural(scenario->part_count), page->result->card_count,
        twin_plural(page->result->card_count), scenario->device ? scenario->device : "sim",
        ar_size_print(page->result->total_bytes, size, sizeof size), cycles, of,
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
        sentence_format(stream, 2, "It fits. The peak is %s, in %s; %s are to spare.", bytes,
                        twin_answer_place(result, peak.phase, place, sizeof place), spare);
        return;
    }
    twin_answer_failure(page->scenario, result, why, sizeof why);
    if (result->failure.phase < result->phase_count)
        twin_answer_place(result, result->failure.phase, place, sizeof place);
    else
        snprintf(place, sizeof place, "start");
    sentence_format(stream, 2, "%s In %s: %s.",
                    result->outcome == TWIN_REFUSED ? "It is refused." : "It does not fit.", place,
                    why);
}

/* The peak of each card, if they differ: "0: 57.7, 1-7: 40.2". */
static void print_cards(FILE *stream, const struct twin_page *page)
{
    const struct twin_result *result = page->result;
    uint64_t peaks[TWIN_CARDS] = {0};
    char line[1200];
    size_t used = 0;
    for (size_t phase = 0; phase < result->phase_count; phase++)
        for (unsigned card = 0; card < result->card_count; card++) {
            const struct twin_card_state *state = twin_card_at(result, phase, card);
            uint64_t most =
                state->used_bytes > state->peak_bytes ? state->used_bytes : state->peak_bytes;
            peaks[card] = most > peaks[card] ? most : peaks[card];
        }
    for (unsigned card = 0, next; card < result->card_count; card = next) {
        for (next = card + 1; next < result->card_count && peaks[next] == peaks[card];)
            next++;
        if (!card && next == result->card_count)
            return;
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%u", card ? ", " : "", card);
        if (next > card + 1)
            used += (size_t)snprintf(line + used, sizeof line - used, "-%u", next - 1);
        used += (size_t)snprintf(line + used, sizeof line - used, ": %.1f",
                                 twin_mib((double)peaks[card]));
    }
    if (result->card_count > 1)
        sentence_format(stream, 2, "Peaks of the cards (MiB): %s. The tables are of card %u.", line,
                        twin_answer_peak(result).card);
}

/* ---- the peak ------------------------------------------------------------------------------- */

static enum ar_status print_peak(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"MiB", "", false, 0}, {"share", "%", false, 0}, {"owner", "", true, 0}};
    const struct twin_result *result = page->result;
    const struct twin_peak peak = twin_answer_peak(result);
    char place[160];
    const struct twin_amounts amounts = peak.amounts;
    struct twin_share *shares = calloc(amounts.count + 1, sizeof *shares);
    if (!shares)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the table of the peak");
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[amounts.first + i];
        shares[i] = (struct twin_share){amount->bytes, result->owners[amount->owner].name};
    }
    qsort(shares, amounts.count, sizeof *shares, twin_by_share);
    struct table *table = table_create(columns, 3);
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
    sentence_format(stream, 2, "The peak, in %s, on card %u",
                    twin_answer_place(result, peak.phase, place, sizeof place), peak.card);
    enum ar_status status = table_end(table, stream, TABLE_TEXT, error);
    free(shares);
    return status;
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
    char more[160] = "", size[32], now[32], safe[32], next[32];
    size_t used = 0;
    cache_value(cache, cache->now, now, sizeof now);
    cache_value(cache, cache->safe, safe, sizeof safe);
    cache_value(cache, cache->tried, next, sizeof next);
    if (cache->safe <= 0) {
        sentence_format(stream, 2,
                        "With no value of %s of %s does the schedule pass. It comes furthest with "
                        "%s: %s.",
                        cache->option, name, next, cache->why);
        return;
    }
    if (cache->blocks > 0)
        used += (size_t)snprintf(more + used, sizeof more - used, ", %.0f blocks", cache->blocks);
    if (cache->tokens > 0)
        used += (size_t)snprintf(more + used, sizeof more - used, ", %.0f tokens", cache->tokens);
    if (cache->bytes > 0)
        snprintf(more + used, sizeof more - used, ", %s",
                 ar_size_print((uint64_t)cache->bytes, size, sizeof size));
    sentence_format(stream, 2, "Largest safe key-value cache of %s: %s = %s (now %s)%s.", name,
                    cache->option, safe, cache->now > 0 ? now : "by its default", more);
    if (cache->tried <= cache->safe)
        sentence_format(stream, 2, "A larger value than %s was not tried.", safe);
    else
        sentence_format(stream, 2, "With %s: %s.", next, cache->why);
    more[0] = '\0';
    if (cycles)
        snprintf(more, sizeof more, " of %" PRIu64 " cycles", cycles);
    sentence_format(stream, 2, "Safe: the whole schedule%s passes. Tried by %u run%s.", more,
                    cache->runs, twin_plural(cache->runs));
}

static void print_caches(FILE *stream, const struct twin_page *page)
{
    for (size_t i = 0; i < page->cache_count; i++) {
        fputc('\n', stream);
        print_cache(stream, page->scenario->parts[page->caches[i].part].name, &page->caches[i],
                    page->whatif_cycles);
    }
}

static bool is_of_graphs(const char *owner)
{
    return strstr(owner, "graph") != NULL;
}

static enum ar_status print_graphs(FILE *stream, const struct twin_page *page,
                                   struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"MiB", "", false, 0}, {"", "", true, 0}, {"owner", "", true, 0}};
    const struct twin_result *result = page->result;
    const unsigned card = twin_answer_peak(result).card;
    struct table *table = table_create(columns, 3);
    double total = 0;
    for (size_t owner = 0; owner < result->owner_count; owner++) {
        if (!is_of_graphs(result->owners[owner].name))
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
    enum ar_status status = AR_OK;
    if (total > 0) {
        fputc('\n', stream);
        sentence_format(stream, 2, "Memory of graphs, at most: %.1f MiB", twin_mib(total));
        status = table_print(table, stream, TABLE_TEXT, error);
    }
    table_close(table);
    return status;
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
        sentence_format(stream, 2, "  and %zu more (--json has them)", more);
}

/* ---- reported figures and what-ifs ---------------------------------------------------------- */

static enum ar_status print_reported(FILE *stream, const struct twin_page *page,
                                     struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"reported", "", false, 0}, {"twin", "", false, 0},  {"differs", "%", false, 0},
        {"", "", true, 0},          {"figure", "", true, 0},
    };
    if (!page->reported_count)
        return AR_OK;
    struct table *table = table_of(columns);
    size_t agree = 0;
    for (size_t i = 0; i < page->reported_count; i++) {
        const struct twin_page_reported *one = &page->reported[i];
        table_cell(table, "%s", one->given);
        table_cell(table, "%s", one->known ? one->ours : "-");
        if (one->has_part && fabs(one->part) < 10)
            table_cell(table, "%+.1f", 100 * one->part);
        else
            table_cell(table, "-");
        table_cell(table, "%s", !one->known ? "unknown" : one->agrees ? "ok" : "off");
        table_cell(table, "%s", one->text);
        agree += one->known && one->agrees;
    }
    fputc('\n', stream);
    fprintf(stream, "Reported figures: %zu of %zu agree within %g %%\n", agree,
            page->reported_count, 100 * page->tolerance);
    if (page->source)
        sentence_copied(stream, "  ", page->source);
    return table_end(table, stream, TABLE_TEXT, error);
}

static void saved_cell(struct table *table, bool known, double bytes)
{
    if (known && fabs(bytes) < 0.05 * (double)AR_MIB)
        table_cell(table, "0");
    else
        table_number(table, known, 1, twin_mib(bytes));
}

static enum ar_status print_whatifs(FILE *stream, const struct twin_page *page,
                                    struct ar_error *error)
{
    static const struct table_column columns[] = {{"peak", "MiB less", false, 0},
                                                  {"residue", "MiB less", false, 0},
                                                  {"what if", "", true, 0}};
    size_t rows = 0, less = 0, without = 0;
    char few[48] = "";
    if (page->whatif_cycles)
        snprintf(few, sizeof few, " (in %" PRIu64 " cycles)", page->whatif_cycles);
    if (!page->has_whatifs)
        return AR_OK;
    struct table *table = table_create(columns, 3);
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
        saved_cell(table, one->has_residue, one->residue_saved);
        table_cell(table, "%s%s", one->text, one->now_fits ? " (then it fits)" : "");
        rows++;
    }
    fprintf(stream, "\nWhat if%s\n", few);
    enum ar_status status = rows ? table_print(table, stream, TABLE_TEXT, error) : AR_OK;
    table_close(table);
    if (less)
        sentence_format(stream, 2, "%zu more save less (--json has them).", less);
    if (without)
        sentence_format(stream, 2, "%zu %schange%s %s nothing.", without, rows ? "other " : "",
                        twin_plural(without), without == 1 ? "saves" : "save");
    if (!page->whatif_count)
        sentence_print(stream, "No part and no policy of this scenario offers a change.");
    bool fits = page->result->outcome == TWIN_PASSED, begun = false;
    for (size_t i = 0; i < page->whatif_count; i++) {
        const struct twin_page_whatif *one = &page->whatifs[i];
        if (one->runs && !one->passes && !fits) {
            fputs(begun ? "" : "It does not fit with these either:\n", stream);
            sentence_format(stream, 4, "  %s", one->text);
            begun = true;
        }
    }
    for (size_t i = 0; i < page->whatif_count; i++) {
        const struct twin_page_whatif *one = &page->whatifs[i];
        if (!one->runs || (!one->passes && fits))
            sentence_format(stream, 2, "%s: %s%s.", one->text,
                            one->runs ? "" : "cannot run: ", one->why);
    }
    return status;
}

enum ar_status twin_page_print(FILE *stream, const struct twin_page *page, struct ar_error *error)
{
    print_head(stream, page);
    print_outcome(stream, page);
    print_cards(stream, page);
    if (!page->result->phase_count)
        return AR_OK;
    fputs("\nBytes by owner at the end of each phase (MiB)\n", stream);
    enum ar_status status = twin_owners_print(stream, page, error);
    if (!status)
        status = print_peak(stream, page, error);
    if (!status)
        status = twin_residue_print(stream, page, error);
    if (!status)
        status = twin_left_print(stream, page, error);
    if (!status)
        status = twin_pins_print(stream, page, error);
    print_caches(stream, page);
    if (!status)
        status = print_graphs(stream, page, error);
    print_lines(stream, page);
    if (!status)
        status = print_reported(stream, page, error);
    if (!status)
        status = print_whatifs(stream, page, error);
    return status;
}
