/* Advice over several traces: the ranks of one program, and two batch sizes of it. */
#include "bench/report/pages.h"

#include <math.h>

#include "allocators/base/size.h"
#include "bench/report/data_writer.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "sim/advise/advise.h"

static const struct advise_row *find_row(const struct advise_result *result, const char *spec)
{
    for (size_t i = 0; i < result->tried; i++)
        if (strcmp(result->rows[i].candidate.spec, spec) == 0)
            return &result->rows[i];
    return NULL;
}

/* Of traces that are not complete only the beginning was compared. */
static size_t print_cut(FILE *stream, const struct advise_page *pages, size_t count)
{
    size_t cut = 0;
    for (size_t i = 0; i < count; i++)
        cut += !pages[i].result->complete;
    if (!cut)
        return 0;
    say(stream,
        "%zu of the %zu %s a failure, or the program died: of %s only the beginning is there, and "
        "the whole may need more.",
        cut, count, cut == 1 ? "ends in" : "end in", cut == 1 ? "it" : "these");
    return cut;
}

/* The memory that a setting needs for all ranks (0 if it was not searched for in one of them, or
 * does not exist), and whether all fit at the capacity in question. */
struct worst {
    uint64_t safe_bytes;
    size_t rank;
    enum advise_fit fits;
};

static struct worst worst_of(const struct advise_page *pages, size_t count, const char *spec)
{
    struct worst worst = {.fits = ADVISE_FITS};
    bool known = true;
    for (size_t i = 0; i < count; i++) {
        const struct advise_row *row = find_row(pages[i].result, spec);
        enum advise_fit fits = row ? advise_fits(row) : ADVISE_FITS_NOT;
        if (worst.fits == ADVISE_FITS || fits == ADVISE_FITS_NOT)
            worst.fits = fits;
        if (!row || !row->safe_bytes)
            known = false;
        else if (row->safe_bytes > worst.safe_bytes) {
            worst.safe_bytes = row->safe_bytes;
            worst.rank = i;
        }
    }
    if (!known)
        worst.safe_bytes = 0;
    return worst;
}

/* A choice among the settings of the first rank, in its order. */
struct choice {
    const struct advise_row *least;   /* that needs the least, if known */
    const struct advise_row *fitting; /* the recorded one if all fit with it, else the first */
    struct worst needs;               /* of the least */
};

static void consider(struct choice *self, const struct advise_row *row, const struct worst *worst)
{
    if (worst->safe_bytes && row->candidate.own &&
        (!self->least || worst->safe_bytes < self->needs.safe_bytes)) {
        self->least = row;
        self->needs = *worst;
    }
    if (worst->fits == ADVISE_FITS && row->candidate.own &&
        (!self->fitting || row->candidate.given))
        self->fitting = row;
}

static void print_choice(FILE *stream, const struct advise_page *pages, size_t count,
                         const struct choice *choice)
{
    char capacity[32];
    bool cut = print_cut(stream, pages, count) > 0;
    ar_size_print(pages[0].result->capacity_bytes, capacity, sizeof capacity);
    for (size_t i = 1; i < count; i++)
        if (pages[i].result->capacity_bytes != pages[0].result->capacity_bytes)
            snprintf(capacity, sizeof capacity, "the memory of each");
    if (choice->fitting)
        say(stream, "%s in %s with %s%s.",
            cut ? "What is recorded of all of them fits" : "All of them fit", capacity,
            advise_page_setting(choice->fitting),
            choice->fitting->candidate.given ? ", as they are" : "");
    else
        say(stream, "No setting lets all of them fit in %s.", capacity);
    if (!choice->least)
        return;
    say(stream, "The least that serves %s is %s, with %s.",
        cut ? "what is recorded of them" : "all of them", AR_SIZE_UP(choice->needs.safe_bytes),
        advise_page_setting(choice->least));
}

#define MOST_WIDE_NAME 24

enum ar_status advise_page_ranks(FILE *stream, const struct advise_page *pages, size_t count,
                                 struct ar_error *error)
{
    struct table *table = table_of("setting<56; needs|MiB; most in<; fits<");
    const struct advise_result *first = pages[0].result;
    struct choice choice = {0};
    bool by_number = false; /* names that leave no room for the table */
    for (size_t i = 0; i < count; i++)
        by_number |= strlen(pages[i].name) > MOST_WIDE_NAME;
    for (size_t i = 0; i < first->tried; i++) {
        const struct advise_row *row = &first->rows[i];
        struct worst worst = worst_of(pages, count, row->candidate.spec);
        consider(&choice, row, &worst);
        if (!worst.safe_bytes || !row->candidate.own)
            continue;
        table_cell(table, "%s%s", row->candidate.spec, row->candidate.given ? " (recorded)" : "");
        table_cell(table, "%.1f", (double)worst.safe_bytes / (double)AR_MIB);
        if (by_number)
            table_cell(table, "trace %zu", worst.rank + 1);
        else
            table_cell(table, "%s", pages[worst.rank].name);
        table_cell(table, "%s", advise_page_fit(worst.fits));
    }
    fprintf(stream, "All %zu traces together: a setting needs what the worst of them needs.\n",
            count);
    for (size_t i = 0; by_number && i < count; i++)
        say(stream, "Trace %zu: %s", i + 1, pages[i].name);
    print_choice(stream, pages, count, &choice);
    fputc('\n', stream);
    return table_end(table, stream, TABLE_TEXT, error);
}

#define BATCHES_MOST 16 /* rows of settings */

/* The largest batch with one setting. */
struct batch_row {
    const struct advise_row *row;
    double over; /* what it needs over the live peak, in the worse of both traces */
    double largest;
};

static int compare_batches(const void *left, const void *right)
{
    const struct batch_row *a = left, *b = right;
    double whole_a = floor(a->largest), whole_b = floor(b->largest);
    if (whole_a < whole_b || whole_a > whole_b)
        return whole_a < whole_b ? 1 : -1;
    return a->row < b->row ? -1 : 1; /* in the order of ranks */
}

/* The largest batches of two traces. */
struct batches {
    struct batch_curve curve;
    struct batch_row *rows;
    size_t count;
    double by_live_peak;
};

static void batches_close(struct batches *self)
{
    batch_curve_close(&self->curve);
    free(self->rows);
}

static void find_rows(const struct advise_page *pages, struct batches *out)
{
    const struct advise_result *first = pages[0].result, *second = pages[1].result;
    for (size_t i = 0; i < first->own_count; i++) { /* those that are listed */
        const struct advise_row *a = &first->rows[i];
        const struct advise_row *b = find_row(second, a->candidate.spec);
        if (!a->safe_bytes || !b || !b->safe_bytes || a->at.sensitivity == TRIAL_UNTIMED)
            continue;
        double over_a = (double)a->safe_bytes / (double)first->peak.bytes;
        double over_b = (double)b->safe_bytes / (double)second->peak.bytes;
        double over = over_a > over_b ? over_a : over_b;
        out->rows[out->count++] = (struct batch_row){
            a, over, batch_curve_largest(&out->curve, over, (double)first->capacity_bytes)};
    }
    qsort(out->rows, out->count, sizeof *out->rows, compare_batches);
}

static enum ar_status find_batches(const struct advise_page *pages, const uint64_t batches[2],
                                   struct batches *out, struct ar_error *error)
{
    struct trace_source *const traces[2] = {pages[0].source, pages[1].source};
    const struct advise_result *first = pages[0].result, *second = pages[1].result;
    const struct advise_result *small = batches[0] < batches[1] ? first : second;
    AR_TRY(batch_curve_find(traces, batches, &out->curve, error));
    out->by_live_peak = batch_curve_largest(&out->curve, 1, (double)first->capacity_bytes);
    if (isinf(out->by_live_peak) ||
        small->peak.bytes > (small == first ? second : first)->peak.bytes)
        return ar_invalid(error, "the larger batch needs no more memory: are the traces of one "
                                 "program with different batches, in the order of --batches?");
    out->rows = calloc(first->own_count + 1, sizeof *out->rows);
    AR_TRY_MEMORY(out->rows, error, "the batches");
    find_rows(pages, out);
    return AR_OK;
}

static void print_batches(FILE *stream, const struct batches *found)
{
    fprintf(stream, "  %6.0f  by the live peak alone: no setting serves more\n",
            found->by_live_peak);
    for (size_t i = 0; i < found->count; i++)
        if (i < BATCHES_MOST || found->rows[i].row->candidate.given)
            sentence_format(stream, 10, "  %6.0f  %s (%.3f)", found->rows[i].largest,
                            found->rows[i].row->candidate.spec, found->rows[i].over);
}

static void print_curve(FILE *stream, const struct advise_page *pages, const uint64_t batches[2],
                        const struct batch_curve *curve)
{
    char line[640];
    snprintf(line, sizeof line,
             "Largest batch in %s: %s batches %" PRIu64 " and %" PRIu64
             ", times what the setting needs over the live peak in the worse of both:",
             AR_SIZE(pages[0].result->capacity_bytes),
             curve->aligned ? "both traces ask in the same order, and bytes live at each event go "
                              "on in a straight line through"
                            : "the traces ask in different order, so the straight line goes "
                              "through the live peaks of",
             batches[0], batches[1]);
    say(stream, "%s", line);
}

enum ar_status advise_page_batches(FILE *stream, const struct advise_page *pages,
                                   const uint64_t batches[2], struct ar_error *error)
{
    AR_CLOSED(batches_close) struct batches found = {0};
    AR_TRY(find_batches(pages, batches, &found, error));
    print_curve(stream, pages, batches, &found.curve);
    print_batches(stream, &found);
    say(stream, "An estimate: between and beyond the two batches the libraries may choose other "
                "workspaces, requests need not grow in a straight line, and what is lost to "
                "fragmentation varies; record near the limit.");
    (void)print_cut(stream, pages, 2);
    return AR_OK;
}

enum ar_status advise_json_batches(struct json_writer *json, const struct advise_page *pages,
                                   const uint64_t batches[2], struct ar_error *error)
{
    AR_CLOSED(batches_close) struct batches found = {0};
    AR_TRY(find_batches(pages, batches, &found, error));
    json_begin_object(json, "batches");
    json_put_integer(json, "first", batches[0]);
    json_put_integer(json, "second", batches[1]);
    json_put_integer(json, "capacity_bytes", pages[0].result->capacity_bytes);
    json_put_bool(json, "same_order", found.curve.aligned);
    json_put_integer(json, "largest_by_live_peak", (uint64_t)found.by_live_peak);
    json_begin_array(json, "rows");
    for (size_t i = 0; i < found.count; i++) {
        const struct batch_row *row = &found.rows[i];
        json_begin_object(json, NULL);
        json_put_text(json, "policy", row->row->candidate.spec);
        json_put_bool(json, "recorded", row->row->candidate.given);
        json_put_integer(json, "largest", (uint64_t)row->largest);
        json_put_real(json, "over_live_peak", row->over);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
    return AR_OK;
}

/* ---- predictions compared with recordings --------------------------------------------------- */

void whatif_page_head(FILE *stream)
{
    fputs("| program | recorded | asked of it | requests | only in one | peak reserved, predicted "
          "| recorded | error | retries | passes |\n"
          "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
          stream);
}

static void print_error(FILE *stream, const struct whatif *whatif)
{
    double recorded = (double)whatif->recorded_peak_reserved_bytes;
    double predicted = (double)whatif->predicted.peak_reserved_bytes;
    if (!whatif->has_peak || !whatif->predicted.begun)
        fputs(" - |", stream);
    else if (whatif->predicted.peak_reserved_bytes == whatif->recorded_peak_reserved_bytes)
        fputs(" none |", stream);
    else
        fprintf(stream, " %+.2f %% |", 100 * (predicted / recorded - 1));
}

void whatif_page_line(FILE *stream, const struct whatif_line *line)
{
    const struct whatif *whatif = line->whatif;
    const struct trial *predicted = &whatif->predicted;
    const char *as_predicted = predicted->begun && predicted->passed ? "yes" : "no";
    const char *const texts[] = {"| `", line->program, "` | ", line->from, " | ", line->to};
    for (size_t i = 0; i < AR_COUNT(texts); i += 2) {
        fputs(texts[i], stream);
        markdown_text(stream, texts[i + 1]);
    }
    fprintf(stream, " | %" PRIu64 " | %" PRIu64 " | ", whatif->requests_from,
            whatif->only_from + whatif->only_to);
    if (predicted->begun)
        fprintf(stream, "%" PRIu64 " | ", predicted->peak_reserved_bytes);
    else
        fputs("- | ", stream);
    if (whatif->has_peak)
        fprintf(stream, "%" PRIu64 " |", whatif->recorded_peak_reserved_bytes);
    else
        fputs("- |", stream);
    print_error(stream, whatif);
    fprintf(stream, " %" PRIu64 " of ", predicted->retries);
    if (line->has_retries)
        fprintf(stream, "%" PRIu64 " | ", line->recorded_retries);
    else
        fputs("- | ", stream);
    fprintf(stream, "%s, %s |\n", as_predicted, whatif->recorded_passed ? "yes" : "no");
}
