#include "allocators/base/size.h"
#include "bench/report/data_writer.h"
#include "bench/report/pages.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "sim/sim_device/profile.h"
#include "workloads/formats/import_report.h"

#define NAMES_MOST 4  /* operators in a sentence */
#define TAG_WIDE   28 /* columns next to a line of 24 */

static const char *const searched[FITS_SETTINGS] = {
    "the program's own setting", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"};

void fits_spread_add(struct fits_spread *self, uint64_t reserved_bytes)
{
    if (!self->seeds++ || reserved_bytes < self->least_bytes)
        self->least_bytes = reserved_bytes;
    AR_RAISE(self->most_bytes, reserved_bytes);
}

/* Of all seeds, with what one kernel may take. */
static uint64_t most_reserved(const struct fits_page *page)
{
    return page->spread.most_bytes + ar_size_round_up(page->notes->more_bytes, 2 * AR_MIB);
}

bool fits_page_fits(const struct fits_page *page)
{
    const struct advise_row *rows[FITS_ROWS_MOST];
    size_t count = fits_rows(page->advice, rows);
    for (size_t i = 0; i < count; i++)
        if (fits_row_fit(page->advice, rows[i]) != ADVISE_FITS_NOT)
            return true;
    return false;
}

/* What the page says in words: the program's own setting, and another one. */
struct answer {
    const struct advise_row *own;
    enum advise_fit own_fit, best_fit;
    const struct advise_row *best; /* to set: the first that fits; else the first for which that
                                      cannot be told; else the one that needs least. NULL: none is
                                      better than the program's own */
};

static struct answer answer_of(const struct fits_page *page)
{
    const struct advise_row *rows[FITS_ROWS_MOST];
    size_t count = fits_rows(page->advice, rows);
    struct answer answer = {.own = rows[0],
                            .own_fit = fits_row_fit(page->advice, rows[0]),
                            .best_fit = ADVISE_FITS_NOT};
    for (size_t i = 1; i < count; i++) {
        enum advise_fit fit = fits_row_fit(page->advice, rows[i]);
        const struct advise_row *best = answer.best;
        if (rows[i]->candidate.keys &&
            (!best || (fit == ADVISE_FITS_NOT && answer.best_fit == ADVISE_FITS_NOT &&
                       rows[i]->safe_bytes < best->safe_bytes))) {
            answer.best = rows[i];
            answer.best_fit = fit;
        }
    }
    return answer;
}

/* "needs 24.38 GiB, and the card has 23.00 GiB" */
static const char *shortage(const struct fits_page *page, const struct advise_row *row,
                            char text[96])
{
    if (row->safe_bytes)
        snprintf(text, 96, "needs %s", AR_SIZE_UP(row->safe_bytes));
    else
        snprintf(text, 96, "needs more than %s", AR_SIZE(page->advice->peak.bytes));
    text_add(text, 96, ", and the card has %s", AR_SIZE(page->advice->capacity_bytes));
    return text;
}

static void print_verdict(FILE *stream, const struct fits_page *page)
{
    const struct answer answer = answer_of(page);
    const char *card = page->advice->profile[0] ? page->advice->profile : "the card";
    const char *fits = import_lacks_history(page->source->report) ? "The blocks at its end fit"
                       : page->info->complete                     ? "Fits"
                                                                  : "The part before its end fits";
    const char *setting = answer.best ? advise_page_brief(answer.best) : "";
    char lack[96];
    if (answer.own_fit == ADVISE_FITS)
        say(stream, "%s on %s %s%s.", fits, card,
            answer.own->candidate.given ? "as it is" : "under ",
            answer.own->candidate.given ? "" : advise_page_brief(answer.own));
    else if (answer.best_fit == ADVISE_FITS)
        say(stream, "%s on %s with %s; as it is it %s.", fits, card, setting,
            answer.own_fit == ADVISE_UNSURE ? "may or may not, see ? below"
                                            : shortage(page, answer.own, lack));
    else if (answer.own_fit == ADVISE_UNSURE)
        say(stream, "Whether it fits on %s cannot be told, see ? below.", card);
    else if (answer.best_fit == ADVISE_UNSURE)
        say(stream, "Does not fit on %s as it is: it %s. With %s it may or may not, see ? below.",
            card, shortage(page, answer.own, lack), setting);
    else
        say(stream, "Does not fit on %s under any setting of the allocator: %s%s%sit %s.", card,
            answer.best ? "with " : "", setting, answer.best ? " " : "",
            shortage(page, answer.best ? answer.best : answer.own, lack));
}

/* A request that no card of this size serves, whatever the allocator does. */
static void print_too_large(FILE *stream, const struct fits_page *page)
{
    const struct fits_notes *notes = page->notes;
    if (strncmp(notes->versions, "torch", 5) != 0 ||
        notes->largest_bytes <= page->advice->capacity_bytes)
        return;
    say(stream,
        "One request alone, of %s%s%s, is larger than the card: there PyTorch raises "
        "torch.OutOfMemoryError. If the program is to catch it and to go on, let its handler name "
        "that error: the trace then follows it.",
        AR_SIZE(notes->largest_bytes), notes->largest[0] ? " at " : "", notes->largest);
}

static void print_head(FILE *stream, const struct fits_page *page)
{
    const struct trace_info *info = page->info;
    char value[96] = "", step[64] = "";
    if (page->vary->name[0])
        snprintf(value, sizeof value, " with %s=%" PRIu64, page->vary->name, page->vary->value);
    if (info->steps && page->advice->peak.step > info->steps)
        snprintf(step, sizeof step, ", after the last step");
    else if (info->steps)
        snprintf(step, sizeof step, ", in step %" PRIu64 " of %" PRIu64, page->advice->peak.step,
                 info->steps);
    say(stream, "%s%s, %s for %s, %s: %" PRIu64 " request%s.", info->name, value,
        page->notes->traced ? "traced" : "recorded",
        info->card[0] ? info->card : "a card that is not known",
        info->recorder[0] ? info->recorder : "allocator not known", info->allocs,
        info->allocs == 1 ? "" : "s");
    print_verdict(stream, page);
    print_too_large(stream, page);
    if (!info->complete)
        say(stream, "The program ended early: this is about the part before that.");
    bool driver = page->notes->driver.took_bytes ||
                  page->notes->driver.local_most > page->notes->driver.local_first;
    char probed[64];
    say(stream, "Live peak %s%s%s. Usable memory of %s: %s%s.", AR_SIZE(page->advice->peak.bytes),
        advise_page_probed(&page->advice->peak, probed), step,
        page->advice->profile[0] ? page->advice->profile : "the card",
        AR_SIZE(page->advice->capacity_bytes),
        driver && page->advice->capacity_from == ADVISE_FROM_CONFIG
            ? " without the driver's own for the kernels"
            : "");
}

static void bytes_cell(struct table *table, uint64_t bytes)
{
    table_number(table, bytes != 0, 1, (double)bytes / (double)AR_MIB);
}

/* The setting to copy. */
static void print_setting(FILE *stream, const struct fits_page *page)
{
    const struct answer answer = answer_of(page);
    const double uncertain = 100 * page->advice->uncertainty;
    if (answer.best) {
        sentence_copied(stream,
                        answer.own_fit == ADVISE_FITS      ? "To need less (it fits as it is): "
                        : answer.best_fit == ADVISE_FITS   ? "Suggested: "
                        : answer.best_fit == ADVISE_UNSURE ? "To try (see ? above): "
                                                           : "Least memory, not enough here: ",
                        advise_page_setting(answer.best));
        if (answer.best->needs.major)
            say(stream, "It needs PyTorch %u.%u.", answer.best->needs.major,
                answer.best->needs.minor);
        say(stream,
            "Needs within %.2f %% count as equal: of these, the setting with the fewest keys is "
            "first.",
            uncertain);
    } else if (answer.own->candidate.own)
        say(stream,
            "No other setting of the allocator needs less, by more than the uncertainty of %.2f "
            "%%.",
            uncertain);
}

/* Why rows need more than they reserve with all of the card, if some do. */
static void print_above(FILE *stream, const struct fits_page *page, const struct advise_row **rows,
                        size_t count)
{
    bool above = false, pages = true;
    for (size_t i = 0; i < count; i++) {
        const struct trial *alone = &rows[i]->alone;
        if (!alone->passed || rows[i]->safe_bytes <= alone->peak_reserved_bytes)
            continue;
        above = true;
        pages &= rows[i]->safe_bytes <= ar_size_round_up(alone->peak_physical_bytes, 2 * AR_MIB);
    }
    if (page->advice->has_outside)
        say(stream,
            "safe also counts memory outside of the allocator, such as NCCL's; reserved does not.");
    else if (above)
        say(stream, "safe is above reserved where %s.",
            pages ? "segments do not fill the pages of 2 MiB that a card gives"
                  : "with less memory the allocator releases what it cached, and blocks then lie "
                    "elsewhere and need more");
}

static enum ar_status print_rows(FILE *stream, const struct fits_page *page, struct ar_error *error)
{
    struct table *table = table_of("reserved|MiB; safe|MiB; fits<; smallest|card<; setting<");
    const struct advise_row *rows[FITS_ROWS_MOST];
    size_t count = fits_rows(page->advice, rows);
    struct sim_profile card;
    char name[400];
    for (size_t i = 0; i < count; i++) {
        bool set = rows[i]->candidate.keys || !rows[i]->candidate.own;
        advise_page_name(rows[i], name, sizeof name);
        bytes_cell(table, rows[i]->alone.passed ? rows[i]->alone.peak_reserved_bytes : 0);
        bytes_cell(table, rows[i]->safe_bytes);
        table_cell(table, "%s", advise_page_fit(fits_row_fit(page->advice, rows[i])));
        table_cell(table, "%s",
                   fits_smallest_card(rows[i]->safe_bytes, page->notes, &card) ? card.name
                                                                               : "none");
        table_cell(table, "%s", set ? name : advise_page_setting(rows[i]));
    }
    fputc('\n', stream);
    enum ar_status status = table_end(table, stream, TABLE_TEXT, error);
    say(stream,
        "reserved: the peak with all of the card; safe: the least capacity from which on "
        "it runs to its end; smallest card: of `list devices`, the smallest whose memory without "
        "the context of a process (531 MiB) and what the driver takes for kernels is at least "
        "`safe`.");
    advise_page_unsure(stream, page->advice);
    print_above(stream, page, rows, count);
    print_setting(stream, page);
    return status;
}

/* What was tried, and where the range leaves the answer open. */
static void print_tried(FILE *stream, const struct fits_vary *vary)
{
    bool none = !vary->fits[0] || (vary->settings > 1 && !vary->fits[1]);
    if (vary->runs == 1 && none)
        say(stream, "Tried: %" PRIu64 ". A value is taken not to fit if a smaller one does not.",
            vary->low);
    else
        say(stream,
            "Tried: %" PRIu64 " value%s of %" PRIu64 " to %" PRIu64
            ". A value is taken to fit if a larger one fits.",
            vary->runs, vary->runs == 1 ? "" : "s", vary->low, vary->high);
    if (none && vary->low > 1)
        say(stream,
            "Values below %" PRIu64 " were not tried and may fit: --vary %s=1..%" PRIu64
            " tries them.",
            vary->low, vary->name, vary->low - 1);
}

static void print_vary(FILE *stream, const struct fits_vary *vary)
{
    if (!vary->name[0])
        return;
    fputc('\n', stream);
    if (vary->has_no_effect)
        say(stream, "%" PRIu64 " and %" PRIu64 " take the same memory: %s", vary->low, vary->high,
            vary->is_argument ? "the value changes nothing."
                              : "perhaps the value changes nothing.");
    if (!vary->is_argument && (vary->has_no_effect || !vary->fits[0]))
        say(stream,
            "Does the program read %s from its environment? For an argument, write {%s} in the "
            "command.",
            vary->name, vary->name);
    for (size_t i = 0; i < vary->settings; i++) {
        char value[64];
        snprintf(value, sizeof value, "none of %" PRIu64 " to %" PRIu64, vary->low, vary->high);
        if (vary->fits[i])
            snprintf(value, sizeof value, "%" PRIu64, vary->fits[i]);
        say(stream, "Largest %s that fits: %s%s, with %s.", vary->name, value,
            vary->fits[i] == vary->high ? " (the most asked for)" : "", searched[i]);
    }
    print_tried(stream, vary);
}

void fits_page_ended(FILE *stream, const struct fits_vary *vary)
{
    if (!vary->runs)
        return;
    say(stream,
        "The command ended before its page. What is known of %s after %" PRIu64
        " trace%s of values from %" PRIu64 " to %" PRIu64 ":",
        vary->name, vary->runs, vary->runs == 1 ? "" : "s", vary->low, vary->high);
    for (size_t i = 0; i < vary->settings; i++) {
        char fits[32] = "", fails[48] = "";
        if (vary->fits[i])
            snprintf(fits, sizeof fits, "%" PRIu64 " fits", vary->fits[i]);
        if (vary->fails[i] <= vary->high)
            snprintf(fails, sizeof fails, "%s%" PRIu64 " does not%s", *fits ? ", " : "",
                     vary->fails[i], *fits ? "" : " fit");
        say(stream, "%s%s, with %s.", fits, fails, searched[i]);
    }
}

void page_tag_cell(struct table *table, const char *tag)
{
    const char *colon = strrchr(tag, ':');
    if (!colon || strlen(tag) <= TAG_WIDE) {
        table_cell(table, "%s", *tag ? tag : "-");
        return;
    }
    int module = (int)(colon - tag);
    bool cut = module + 1 > TAG_WIDE, cut_after = strlen(colon + 1) > TAG_WIDE;
    const char *from = cut ? colon - (TAG_WIDE - 3) : tag;
    table_cell(table, "%s%.*s: %.*s%s", cut ? ".." : "", (int)(colon - from), from,
               cut_after ? TAG_WIDE - 2 : TAG_WIDE, colon + 1, cut_after ? ".." : "");
}

/* The line of a program and what ran there. A memory snapshot has both in the tag,
 * FILE:LINE:FUNCTION. Blocks without a name are told apart by their size. */
static void holder_cells(struct table *table, const struct holder *holder)
{
    const char *line = strchr(holder->tag, ':');
    size_t digits = line ? strspn(line + 1, "0123456789") : 0;
    if (holder->at[0])
        table_cell(table, "%s", holder->at);
    else if (digits && line[1 + digits] == ':') {
        table_cell(table, "%.*s", (int)(line - holder->tag + 1 + (ptrdiff_t)digits), holder->tag);
        page_tag_cell(table, line + digits + 2);
        return;
    } else
        table_cell(table, "-");
    if (!holder->at[0] && !holder->tag[0] && holder->block_bytes)
        table_cell(table, "blocks of %s", AR_SIZE(holder->block_bytes));
    else
        page_tag_cell(table, holder->tag);
}

static enum ar_status print_peak(FILE *stream, const struct holders *peak, struct ar_error *error)
{
    struct table *table = table_of("MiB; share|%%; blocks; line<24; module:operator<");
    struct holder rest = {.tag = "all others", .bytes = peak->bytes, .blocks = peak->blocks};
    for (size_t i = 0; i <= peak->count; i++) {
        const struct holder *holder = i < peak->count ? &peak->at[i] : &rest;
        if (!holder->blocks)
            continue;
        bytes_cell(table, holder->bytes);
        table_cell(table, "%.1f", 100 * (double)holder->bytes / (double)peak->bytes);
        table_cell(table, "%" PRIu64, holder->blocks);
        holder_cells(table, holder);
        rest.bytes -= holder->bytes;
        rest.blocks -= holder->blocks;
    }
    fputs("\nThe blocks at the peak\n", stream);
    return table_end(table, stream, TABLE_TEXT, error);
}

/* "BEGIN A (count, bytes), B .. and N more END" for the notes of one kind; nothing without them. */
static void print_notes(FILE *stream, const struct fits_notes *notes, enum fits_note_kind kind,
                        const char *begin, const char *end)
{
    char line[900];
    size_t shown = 0;
    snprintf(line, sizeof line, "%s", begin);
    for (size_t i = 0; i < notes->count; i++) {
        const struct fits_note *note = &notes->at[i];
        if (note->kind != kind || shown++ >= NAMES_MOST)
            continue;
        uint64_t bytes = note->more_bytes ? note->more_bytes : note->bytes;
        text_add(line, sizeof line, "%s%.100s (%" PRIu64 "%s%s)", shown > 1 ? ", " : " ",
                 note->name, note->count, bytes ? ", " : "", bytes ? AR_SIZE(bytes) : "");
    }
    if (shown > NAMES_MOST)
        text_add(line, sizeof line, ", %zu more", shown - NAMES_MOST);
    text_add(line, sizeof line, "%s", end);
    if (shown)
        say(stream, "%s", line);
}

/* With the same words as `advise`, which gives the same answer if the assumptions are the same. */
static void print_assumed(FILE *stream, const struct fits_page *page)
{
    const struct advise_page same = {.name = page->info->name,
                                     .recorder = page->info->recorder,
                                     .format = page->info->format,
                                     .frees = page->frees,
                                     .result = page->advice,
                                     .source = page->source};
    if (page->notes->traced) /* the manual says what is assumed of all of these */
        return;
    advise_page_sure(stream, &same);
    say(stream, "Assumed: frees %s, host %s. `advise --host %s` assumes the same.",
        replay_frees_name(page->frees), replay_host_name(page->host), replay_host_name(page->host));
}

static void print_sure(FILE *stream, const struct fits_page *page)
{
    static const char *const begins[FITS_NOTE_KINDS] = {
        [FITS_DRAWN] = "Values drawn with the seed, on which sizes may depend (calls):",
        [FITS_OUTSIDE_TABLE] = ("Operators whose own memory was not measured, taken to need at "
                                "most as much as their outputs (calls, bytes):"),
        [FITS_UNSURE] = "Operators whose own memory is known within bounds (calls, bytes apart):",
        [FITS_RULE] = "By rule (times, bytes):",
        [FITS_RAISED] = ("Errors that the program got and caught; with other memory or settings it "
                         "makes other requests (times):"),
    };
    char seeds[64];
    const struct fits_spread *spread = &page->spread;
    fputs("\nHow sure\n", stream);
    print_assumed(stream, page);
    if (!page->notes->traced)
        return;
    advise_page_other_card(stream, page->info, page->advice);
    if (page->notes->measured[0])
        say(stream,
            "The memory that kernels take for themselves was measured with %s and may differ with "
            "%s.",
            page->notes->measured, page->notes->versions);
    snprintf(seeds, sizeof seeds, "; seeds: %" PRIu64 "%s.", spread->seeds,
             spread->seeds == 1 ? " (--seeds 5 shows the spread)" : "");
    for (int kind = 0; kind < FITS_NOTE_KINDS; kind++)
        print_notes(stream, page->notes, (enum fits_note_kind)kind, begins[kind],
                    kind == FITS_DRAWN ? seeds : ".");
    if (most_reserved(page) == spread->least_bytes)
        say(stream, "No other operator takes memory that is not known.");
    else
        say(stream, "So the reserved bytes in the first line are between %s and %s.",
            AR_SIZE(spread->least_bytes), AR_SIZE_UP(most_reserved(page)));
}

enum ar_status fits_page_print(FILE *stream, const struct fits_page *page, struct ar_error *error)
{
    print_head(stream, page);
    AR_TRY(print_rows(stream, page, error));
    print_vary(stream, page->vary);
    AR_TRY(print_peak(stream, &page->advice->peak, error));
    print_sure(stream, page);
    return AR_OK;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void write_rows(struct json_writer *json, const struct fits_page *page)
{
    const struct advise_row *rows[FITS_ROWS_MOST];
    struct sim_profile card;
    size_t count = fits_rows(page->advice, rows);
    json_begin_array(json, "rows");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(json, NULL);
        json_put_text(json, "policy", rows[i]->candidate.spec);
        json_put_text(json, "setting", advise_page_setting(rows[i]));
        json_put_some(json, "peak_reserved_bytes",
                      rows[i]->alone.passed ? rows[i]->alone.peak_reserved_bytes : 0);
        json_put_some(json, "safe_bytes", rows[i]->safe_bytes);
        json_put_bool(json, "fits", fits_row_fit(page->advice, rows[i]) == ADVISE_FITS);
        json_put_bool(json, "certain", fits_row_fit(page->advice, rows[i]) != ADVISE_UNSURE);
        json_put_text(json, "smallest_card",
                      fits_smallest_card(rows[i]->safe_bytes, page->notes, &card) ? card.name
                                                                                  : NULL);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_vary(struct json_writer *json, const struct fits_vary *vary)
{
    static const char *const names[FITS_SETTINGS] = {"largest", "largest_expandable"};
    if (!vary->name[0])
        return;
    json_begin_object(json, "vary");
    JSON_PUT(json, vary, name, low, high, value, has_no_effect);
    for (size_t i = 0; i < FITS_SETTINGS; i++)
        json_put_some(json, names[i], vary->fits[i]);
    json_put_integer(json, "runs", vary->runs);
    json_end_object(json);
}

static void write_peak(struct json_writer *json, const struct holders *peak)
{
    json_put_integer(json, "live_peak_bytes", peak->bytes);
    json_put_integer(json, "live_peak_step", peak->step);
    json_begin_array(json, "peak");
    for (size_t i = 0; i < peak->count; i++) {
        json_begin_object(json, NULL);
        JSON_PUT(json, &peak->at[i], tag, at, bytes, blocks);
        json_end_object(json);
    }
    json_end_array(json);
}

void fits_json_write(struct json_writer *json, const struct fits_page *page)
{
    json_begin_object(json, NULL);
    JSON_PUT(json, page->info, name, recorder);
    json_put_text(json, "card", page->advice->profile);
    json_put_integer(json, "capacity_bytes", page->advice->capacity_bytes);
    json_put_bool(json, "traced", page->notes->traced);
    json_put_text(json, "measured_with", page->notes->measured[0] ? page->notes->measured : NULL);
    JSON_PUT(json, page->info, complete, steps);
    write_peak(json, &page->advice->peak);
    write_rows(json, page);
    write_vary(json, page->vary);
    json_put_integer(json, "seeds", page->spread.seeds);
    json_put_integer(json, "peak_reserved_least_bytes", page->spread.least_bytes);
    json_put_integer(json, "peak_reserved_most_bytes", most_reserved(page));
    json_begin_array(json, "notes");
    for (size_t i = 0; i < page->notes->count; i++) {
        const struct fits_note *note = &page->notes->at[i];
        json_begin_object(json, NULL);
        json_put_text(json, "kind", fits_note_name(note->kind));
        JSON_PUT(json, note, name, count, bytes, more_bytes);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}
