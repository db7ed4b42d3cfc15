/* Advice over several traces: the ranks of one program, and two batch sizes of it. */
#include "bench/report/advise_page.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"

static const struct advise_row *find_row(const struct advise_result *result, const char *spec)
{
    for (size_t i = 0; i < result->tried; i++)
        if (strcmp(result->rows[i].candidate.spec, spec) == 0)
            return &result->rows[i];
    return NULL;
}

/* Of traces that are not whole only the beginning was compared. */
static size_t print_cut(FILE *stream, const struct advise_page *pages, size_t count)
{
    size_t cut = 0;
    char line[256];
    for (size_t i = 0; i < count; i++)
        cut += !pages[i].result->complete;
    if (!cut)
        return 0;
    snprintf(line, sizeof line,
             "%zu of the %zu %s a failure, or the program died: of %s only the beginning is there, "
             "and the whole may need more.",
             cut, count, cut == 1 ? "ends in" : "end in", cut == 1 ? "it" : "these");
    sentence_print(stream, line);
    return cut;
}

/* What a setting needs for all ranks, 0 where that was not looked for in one of them or is not to be
 * had; and whether all fit at the capacity in question. */
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

/* What is looked for among the settings of the first rank, which has them in its own order. */
struct choice {
    const struct advise_row *least;   /* that needs the least, where that is known */
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
    char line[768], capacity[32], text[32];
    bool cut = print_cut(stream, pages, count) > 0;
    size_print(pages[0].result->capacity_bytes, capacity, sizeof capacity);
    for (size_t i = 1; i < count; i++)
        if (pages[i].result->capacity_bytes != pages[0].result->capacity_bytes)
            snprintf(capacity, sizeof capacity, "the memory of each");
    if (choice->fitting)
        snprintf(line, sizeof line, "%s in %s with %s%s.",
                 cut ? "What is recorded of all of them fits" : "All of them fit", capacity,
                 choice->fitting->candidate.spec,
                 choice->fitting->candidate.given ? ", as they are" : "");
    else
        snprintf(line, sizeof line, "No setting lets all of them fit in %s.", capacity);
    sentence_print(stream, line);
    if (!choice->least)
        return;
    snprintf(line, sizeof line, "The least that serves %s is %s, with %s.",
             cut ? "what is recorded of them" : "all of them",
             size_print(choice->needs.safe_bytes, text, sizeof text),
             choice->least->candidate.spec);
    sentence_print(stream, line);
}

enum status advise_page_ranks(FILE *stream, const struct advise_page *pages, size_t count,
                              struct error *error)
{
    static const struct table_column columns[] = {
        {"setting", "", true, 56},
        {"needs", "MiB", false, 0},
        {"most in", "", true, 0},
        {"fits", "", true, 0},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory for the table");
    const struct advise_result *first = pages[0].result;
    struct choice choice = {0};
    for (size_t i = 0; i < first->tried; i++) {
        const struct advise_row *row = &first->rows[i];
        struct worst worst = worst_of(pages, count, row->candidate.spec);
        consider(&choice, row, &worst);
        if (!worst.safe_bytes || !row->candidate.own)
            continue;
        table_cell(table, "%s%s", row->candidate.spec, row->candidate.given ? " (recorded)" : "");
        table_cell(table, "%.1f", (double)worst.safe_bytes / (double)MIB);
        table_cell(table, "%s", pages[worst.rank].name);
        table_cell(table, "%s", advise_page_fit(worst.fits));
    }
    fprintf(stream, "\nAll %zu traces together: a setting needs what the worst of them needs.\n",
            count);
    enum status status = table_print(table, stream, TABLE_TEXT, error);
    table_close(table);
    if (!status)
        print_choice(stream, pages, count, &choice);
    return status;
}

enum status advise_page_batches(FILE *stream, const struct advise_page *pages,
                                const uint64_t batches[2], struct error *error)
{
    const struct advise_result *first = pages[0].result;
    double capacity = (double)first->capacity_bytes;
    double apart = (double)batches[1] - (double)batches[0];
    char line[512], text[32];
    size_t shown = 0;
    fprintf(stream,
            "\nLargest batch in %s, on the straight line through batches %" PRIu64 " and %" PRIu64
            ":\n",
            size_print(first->capacity_bytes, text, sizeof text), batches[0], batches[1]);
    for (size_t i = 0; i < first->own_count; i++) { /* those that are listed */
        const struct advise_row *a = &first->rows[i];
        const struct advise_row *b = find_row(pages[1].result, a->candidate.spec);
        if (!a->safe_bytes || !b || !b->safe_bytes)
            continue;
        double each = ((double)b->safe_bytes - (double)a->safe_bytes) / apart;
        double fixed = (double)a->safe_bytes - each * (double)batches[0];
        if (!(each > 0))
            continue;
        double largest = floor((capacity - fixed) / each);
        shown++;
        fprintf(stream, "  %6.0f  %s (%.1f MiB and %.1f MiB for each)\n", largest > 0 ? largest : 0,
                a->candidate.spec, fixed / (double)MIB, each / (double)MIB);
    }
    if (!shown)
        return error_set(
            error, STATUS_INVALID,
            "no setting needs more for the larger batch: are the traces of one program "
            "with different batches, in the order of --batches?");
    snprintf(line, sizeof line,
             "An estimate: between and beyond the two batches the libraries may choose other "
             "workspaces, and requests need not grow in a straight line.");
    sentence_print(stream, line);
    (void)print_cut(stream, pages, 2);
    return STATUS_OK;
}
