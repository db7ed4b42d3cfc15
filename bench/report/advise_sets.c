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
    for (size_t i = 0; i < result->count; i++)
        if (strcmp(result->rows[i].candidate.spec, spec) == 0)
            return &result->rows[i];
    return NULL;
}

/* What a setting needs for all ranks: 0 where one of them does not know it or never passes. */
struct worst {
    uint64_t safe_bytes;
    size_t rank;
    bool fits;
};

static struct worst worst_of(const struct advise_page *pages, size_t count, const char *spec)
{
    struct worst worst = {.fits = true};
    for (size_t i = 0; i < count; i++) {
        const struct advise_row *row = find_row(pages[i].result, spec);
        if (!row || !row->safe_bytes)
            return (struct worst){0};
        worst.fits &= row->at.begun && row->at.passed;
        if (row->safe_bytes > worst.safe_bytes) {
            worst.safe_bytes = row->safe_bytes;
            worst.rank = i;
        }
    }
    return worst;
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
    const struct advise_row *best = NULL;
    struct worst best_needs = {0};
    for (size_t i = 0; i < first->own_count; i++) {
        const struct advise_row *row = &first->rows[i];
        struct worst worst = worst_of(pages, count, row->candidate.spec);
        if (!worst.safe_bytes)
            continue;
        if (!best || worst.safe_bytes < best_needs.safe_bytes) {
            best = row;
            best_needs = worst;
        }
        table_cell(table, "%s%s", row->candidate.spec, row->candidate.given ? "  <- recorded" : "");
        table_cell(table, "%.1f", (double)worst.safe_bytes / (double)MIB);
        table_cell(table, "%s", pages[worst.rank].name);
        table_cell(table, "%s", worst.fits ? "yes" : "no");
    }
    fprintf(stream, "\nAll %zu traces together: a setting needs what the worst of them needs.\n",
            count);
    enum status status = table_print(table, stream, TABLE_TEXT, error);
    table_close(table);
    if (!status && best) {
        char line[512], text[32];
        snprintf(line, sizeof line, "All of them fit from %s on, with %s.",
                 size_print(best_needs.safe_bytes, text, sizeof text), best->candidate.spec);
        sentence_print(stream, line);
    }
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
    for (size_t i = 0; i < first->own_count; i++) {
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
    return STATUS_OK;
}
