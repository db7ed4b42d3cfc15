#include "bench/report/import_page.h"

#include <inttypes.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "workloads/formats/import_report.h"

static void count_line(FILE *stream, const char *label, uint64_t count, const char *meaning)
{
    fprintf(stream, "  %-18s %10" PRIu64 "%s%s\n", label, count, *meaning ? "  " : "", meaning);
}

static void bytes_line(FILE *stream, const char *label, uint64_t blocks, uint64_t bytes)
{
    char size[32];
    fprintf(stream, "  %-18s %10" PRIu64 "  blocks, %s\n", label, blocks,
            ar_size_print(bytes, size, sizeof size));
}

static void print_sizes(FILE *stream, const struct import_counts *counts)
{
    char size[32], all[32];
    if (!counts->size_count)
        return;
    fprintf(stream, "  %-18s %10s  %12s  %12s\n", "never freed", "blocks", "of", "together");
    for (size_t i = 0; i < counts->size_count; i++)
        fprintf(stream, "  %-18s %10" PRIu64 "  %12s  %12s\n", "", counts->sizes[i].blocks,
                ar_size_print(counts->sizes[i].bytes, size, sizeof size),
                ar_size_print(counts->sizes[i].bytes * counts->sizes[i].blocks, all, sizeof all));
    if (counts->other_sizes)
        fprintf(stream, "  %-18s %10s  %6" PRIu64 " sizes  %12s\n", "", "others",
                counts->other_sizes, ar_size_print(counts->other_bytes, all, sizeof all));
}

/* Does what was live at once fit the card, and what the allocator held for it? */
static void print_fit(FILE *stream, const struct trace_info *info,
                      const struct import_counts *counts)
{
    char live[32], held[32], capacity[32], text[320];
    ar_size_print(counts->peak_bytes, live, sizeof live);
    ar_size_print(counts->held_peak_bytes, held, sizeof held);
    ar_size_print(info->capacity_bytes, capacity, sizeof capacity);
    int used = snprintf(text, sizeof text, "At most %s were live, at event %" PRIu64, live,
                        counts->peak_event);
    size_t at = (size_t)used;
    if (counts->held_peak_bytes)
        at += (size_t)snprintf(text + at, sizeof text - at, "; the allocator held up to %s", held);
    if (!info->capacity_bytes)
        snprintf(text + at, sizeof text - at,
                 ". The file does not say what the card has, so whether that fits is not known.");
    else if (counts->peak_bytes > info->capacity_bytes)
        snprintf(text + at, sizeof text - at,
                 ". That does not fit the %s of the card: frees are missing, or it is several "
                 "cards.",
                 capacity);
    else
        snprintf(text + at, sizeof text - at, ". That fits the %s of the card%s.", capacity,
                 counts->held_peak_bytes > info->capacity_bytes ? "; what was held does not" : "");
    sentence_wrap(stream, text, 0, 0, SENTENCE_WIDTH);
}

static void print_end(FILE *stream, const struct import_report *report)
{
    if (report->ends_in_failure)
        sentence_wrap(stream, "It ends in a failure: the last request was not served.", 0, 2,
                      SENTENCE_WIDTH);
    else
        sentence_wrap(stream, "It does not end in a failure.", 0, 2, SENTENCE_WIDTH);
    if (report->begins_in_the_middle)
        sentence_wrap(stream, "It begins in the middle of a program.", 0, 2, SENTENCE_WIDTH);
}

static void print_guesses(FILE *stream, const struct import_report *report)
{
    char text[sizeof report->guesses[0] + 8];
    fputs(report->guess_count ? "Guessed:\n" : "Nothing was guessed.\n", stream);
    for (unsigned i = 0; i < report->guess_count; i++) {
        fputs("  - ", stream);
        snprintf(text, sizeof text, "%s", report->guesses[i]);
        sentence_wrap(stream, text, 4, 4, SENTENCE_WIDTH);
    }
}

enum ar_status import_page_print(FILE *stream, const char *path, struct trace_source *source,
                                 struct ar_error *error)
{
    const struct import_report *report = source->report;
    struct import_counts counts;
    if (!report)
        return AR_OK;
    enum ar_status status = import_count(source, &counts, error);
    if (status)
        return status;
    char title[400];
    snprintf(title, sizeof title, "import of %.360s, read as %s", path, source->info.format);
    sentence_wrap(stream, title, 0, 2, SENTENCE_WIDTH);
    count_line(stream, "records", report->records, "in the file");
    count_line(stream, "events", source->info.events, "in the trace");
    if (report->left_out)
        count_line(stream, "left out", report->left_out, "records that say nothing of memory");
    bytes_line(stream, "live at the start", counts.start_blocks, counts.start_bytes);
    bytes_line(stream, "live at the end", counts.end_blocks, counts.end_bytes);
    if (counts.end_start_blocks)
        count_line(stream, "since the start", counts.end_start_blocks, "of these");
    count_line(stream, "unmatched frees", report->unmatched_frees,
               report->unmatched_frees ? "of blocks that must have been there before" : "");
    count_line(stream, "double frees", report->double_frees,
               report->double_frees ? "left out" : "");
    count_line(stream, "failures", report->failures, report->failures ? "requests not served" : "");
    print_sizes(stream, &counts);
    print_fit(stream, &source->info, &counts);
    print_end(stream, report);
    print_guesses(stream, report);
    return AR_OK;
}
