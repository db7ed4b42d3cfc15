#include "bench/report/pages.h"

#include "allocators/base/size.h"
#include "bench/report/data_writer.h"
#include "bench/report/sentence.h"
#include "workloads/formats/import_report.h"

#define BAR_WIDTH   32
#define STEPS_SHOWN 8u

static void line(FILE *stream, const char *label, const char *text)
{
    if (text[0])
        fprintf(stream, "%-12s %.67s\n", label, text);
}

static void size_line(FILE *stream, const char *label, uint64_t bytes)
{
    if (bytes)
        line(stream, label, AR_SIZE(bytes));
}

static void print_origin(FILE *stream, const struct trace_info *info)
{
    char sha256[2 * sizeof info->sha256 + 1];
    line(stream, "name", info->name);
    line(stream, "format", info->format);
    line(stream, "recorder", info->recorder);
    line(stream, "settings", info->conf);
    line(stream, "card", info->card);
    size_line(stream, "capacity", info->capacity_bytes);
    size_line(stream, "limit", info->limit_bytes);
    line(stream, "complete", info->complete ? "yes" : "no: the program died");
    line(stream, "sha256", hex_print(info->sha256, sizeof info->sha256, sha256));
}

static void print_kinds(FILE *stream, const struct trace_info *info, const struct inspect *inspect)
{
    static const char *const names[TRACE_KIND_LAST + 1] = {
        [TRACE_ALLOC] = "a alloc",
        [TRACE_PROBE] = "p probe",
        [TRACE_FREE_REQUESTED] = "r free requested",
        [TRACE_FREE_COMPLETED] = "f free completed",
        [TRACE_USE] = "u use",
        [TRACE_KERNEL] = "k kernel",
        [TRACE_RECORD] = "e record",
        [TRACE_WAIT] = "w wait",
        [TRACE_SYNC] = "s sync",
        [TRACE_TRIM] = "c release cache",
        [TRACE_OUTSIDE] = "o outside",
        [TRACE_MARK] = "m mark",
        [TRACE_TIME] = "t time",
        [TRACE_NOTE] = "! recorded note",
    };
    fprintf(stream, "\nevents       %" PRIu64 ", of these\n", info->events);
    for (int kind = 1; kind <= TRACE_KIND_LAST; kind++)
        if (inspect->by_kind[kind])
            fprintf(stream, "  %-16s %12" PRIu64 "\n", names[kind], inspect->by_kind[kind]);
    for (unsigned i = 0; i < INSPECT_KEYS; i++)
        if (inspect->keys[i])
            fprintf(stream, "  with %-11s %12" PRIu64 "\n", inspect_key_name(i), inspect->keys[i]);
}

static void print_memory(FILE *stream, const struct trace_info *info, const struct inspect *inspect)
{
    fprintf(stream, "\nlive peak    %s at event %" PRIu64 "; at most %" PRIu64 " blocks at once\n",
            AR_SIZE(inspect->peak_live_bytes), inspect->peak_event, inspect->peak_live_blocks);
    if (info->probes)
        fprintf(stream, "             with all probes, which are requests that may fail\n");
    if (inspect->peak_pinned_bytes)
        fprintf(stream,
                "pinned       at most %s live in pinned host memory, not on the card; it\n"
                "             is in all requests and bytes below, and not in live peaks\n",
                AR_SIZE(inspect->peak_pinned_bytes));
    fprintf(stream, "requested    %s in %" PRIu64 " requests, the largest %s\n",
            AR_SIZE(info->allocated_bytes), info->allocs + info->probes,
            AR_SIZE(inspect->largest_bytes));
    fprintf(stream, "never freed  %" PRIu64 " blocks, %s", inspect->kept_blocks,
            AR_SIZE(inspect->kept_bytes));
    if (inspect->kept_pinned_bytes)
        fprintf(stream, ", of these %s pinned", AR_SIZE(inspect->kept_pinned_bytes));
    fputc('\n', stream);
    if (inspect->pending_blocks)
        fprintf(stream, "pending      %" PRIu64 " blocks freed but not completed at the end\n",
                inspect->pending_blocks);
    if (inspect->by_kind[TRACE_KERNEL])
        fprintf(stream, "kernels      %.6f s in all\n", (double)inspect->kernel_ns / 1e9);
    if (inspect->duration_ns)
        fprintf(stream, "recorded     over %.6f s\n", (double)inspect->duration_ns / 1e9);
    if (info->has_split_frees)
        fprintf(stream, "frees        requested and completed are apart%s\n",
                info->has_uses ? ", with uses between them" : "; uses between them are not known");
}

static uint64_t most_bytes(const struct inspect_bin *bins)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < INSPECT_BINS; i++)
        AR_RAISE(most, bins[i].bytes);
    return most;
}

/* A histogram; `from` writes the first column of a bin. */
static void print_bins(FILE *stream, const struct inspect_bin *bins,
                       const char *from(unsigned bin, char *text, size_t text_bytes))
{
    uint64_t most = most_bytes(bins);
    for (unsigned i = 0; i < INSPECT_BINS; i++) {
        char begin[32];
        if (bins[i].blocks == 0)
            continue;
        int bar = most ? (int)((double)bins[i].bytes / (double)most * BAR_WIDTH + 0.5) : 0;
        fprintf(stream, "%12s %12" PRIu64 " %12s%s", from(i, begin, sizeof begin), bins[i].blocks,
                AR_SIZE(bins[i].bytes), bar ? "  " : "");
        for (int j = 0; j < bar; j++)
            fputc('#', stream);
        fputc('\n', stream);
    }
}

static const char *size_from(unsigned bin, char *text, size_t text_bytes)
{
    return ar_size_print(inspect_bin_from(bin), text, text_bytes);
}

static const char *count_from(unsigned bin, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%" PRIu64, inspect_bin_from(bin));
    return text;
}

static void print_streams(FILE *stream, const struct inspect *inspect)
{
    fprintf(stream, "\n%12s %12s %12s %12s %12s %12s\n", "stream", "blocks", "bytes", "used here",
            "kernels", "kernel s");
    for (uint32_t i = 0; i < inspect->stream_count; i++) {
        const struct inspect_stream *one = &inspect->streams[i];
        if (one->blocks == 0 && one->uses == 0 && one->kernels == 0)
            continue;
        fprintf(stream, "%12" PRIu32 " %12" PRIu64 " %12s %12" PRIu64 " %12" PRIu64 " %12.6f\n", i,
                one->blocks, AR_SIZE(one->bytes), one->uses, one->kernels,
                (double)one->kernel_ns / 1e9);
    }
}

static void print_steps(FILE *stream, const struct inspect *inspect)
{
    if (inspect->step_count == 0)
        return;
    fprintf(stream, "\n%12s %12s %12s %12s %12s\n", "step", "requests", "bytes", "live peak",
            "live at end");
    for (size_t i = 0; i < inspect->step_count; i++) {
        const struct inspect_step *one = &inspect->steps[i];
        /* The first steps and the last show how it settles. */
        if (i >= STEPS_SHOWN && i + 1 < inspect->step_count) {
            if (i == STEPS_SHOWN)
                fprintf(stream, "%12s\n", "...");
            continue;
        }
        fprintf(stream, "%12zu %12" PRIu64 " %12s %12s %12s\n", i + 1, one->requests,
                AR_SIZE(one->bytes), AR_SIZE(one->peak_live_bytes), AR_SIZE(one->live_bytes));
    }
}

void trace_page_print(FILE *stream, const struct trace_info *info, const struct inspect *inspect)
{
    print_origin(stream, info);
    print_kinds(stream, info, inspect);
    print_memory(stream, info, inspect);
    fprintf(stream, "\n%12s %12s %12s\n", "size from", "blocks", "bytes");
    print_bins(stream, inspect->sizes, size_from);
    if (inspect->free_requested_blocks) {
        fprintf(stream, "\n%12s %12s %12s\n", "requests", "blocks", "bytes");
        fprintf(stream, "%12s\n", "until freed");
        print_bins(stream, inspect->lifetimes, count_from);
    }
    print_streams(stream, inspect);
    print_steps(stream, inspect);
}

/* ---- the import of another program's file --------------------------------------------------- */

static void count_line(FILE *stream, const char *label, uint64_t count, const char *meaning)
{
    fprintf(stream, "  %-18s %10" PRIu64 "%s%s\n", label, count, *meaning ? "  " : "", meaning);
}

static void bytes_line(FILE *stream, const char *label, uint64_t blocks, uint64_t bytes)
{
    fprintf(stream, "  %-18s %10" PRIu64 "  blocks, %s\n", label, blocks, AR_SIZE(bytes));
}

static void print_sizes(FILE *stream, const struct import_counts *counts)
{
    if (!counts->size_count)
        return;
    fprintf(stream, "  %-18s %10s  %12s  %12s\n", "never freed", "blocks", "of", "together");
    for (size_t i = 0; i < counts->size_count; i++)
        fprintf(stream, "  %-18s %10" PRIu64 "  %12s  %12s\n", "", counts->sizes[i].blocks,
                AR_SIZE(counts->sizes[i].bytes),
                AR_SIZE(counts->sizes[i].bytes * counts->sizes[i].blocks));
    if (counts->other_sizes)
        fprintf(stream, "  %-18s %10s  %6" PRIu64 " sizes  %12s\n", "", "others",
                counts->other_sizes, AR_SIZE(counts->other_bytes));
}

/* Whether the live peak, and what the allocator reserved for it, fits the card. */
static void print_fit(FILE *stream, const struct trace_info *info,
                      const struct import_counts *counts)
{
    char text[320];
    const char *live = AR_SIZE(counts->peak_bytes);
    const char *held = AR_SIZE(counts->held_peak_bytes);
    const char *capacity = AR_SIZE(info->capacity_bytes);
    snprintf(text, sizeof text, "At most %s were live, at event %" PRIu64, live,
             counts->peak_event);
    if (counts->held_peak_bytes)
        text_add(text, sizeof text,
                 counts->held_peak_bytes < counts->peak_bytes
                     ? "; the segments in the file have only %s, so some are missing"
                     : "; the allocator reserved up to %s",
                 held);
    if (!info->capacity_bytes)
        text_add(text, sizeof text,
                 ". The file does not state the capacity of the card, so whether that fits is not "
                 "known.");
    else if (counts->peak_bytes > info->capacity_bytes)
        text_add(
            text, sizeof text,
            ". That does not fit the %s of the card: frees are missing, or it is several cards.",
            capacity);
    else
        text_add(text, sizeof text, ". That fits the %s of the card%s.", capacity,
                 counts->held_peak_bytes > info->capacity_bytes ? "; what was reserved does not"
                                                                : "");
    sentence_wrap(stream, text, 0, 0, SENTENCE_WIDTH);
}

static void print_end(FILE *stream, const struct import_report *report)
{
    say(stream, "%s",
        report->ends_in_failure ? "It ends in a failure: the last request failed."
                                : "It does not end in a failure.");
    if (report->lacks_history)
        say(stream, "%s", IMPORT_NO_HISTORY);
    else if (report->begins_in_the_middle)
        say(stream, "It begins in the middle of a program.");
}

static void print_guesses(FILE *stream, const struct import_report *report)
{
    fputs(report->guess_count ? "Guessed:\n" : "Nothing was guessed.\n", stream);
    for (unsigned i = 0; i < report->guess_count; i++) {
        fputs("  - ", stream);
        sentence_wrap(stream, report->guesses[i], 4, 4, SENTENCE_WIDTH);
    }
}

enum ar_status import_page_print(FILE *stream, const char *path, struct trace_source *source,
                                 struct ar_error *error)
{
    const struct import_report *report = source->report;
    struct import_counts counts;
    if (!report)
        return AR_OK;
    AR_TRY(import_count(source, &counts, error));
    char title[400];
    snprintf(title, sizeof title, "import of %.360s, read as %s", path, source->info.format);
    sentence_wrap(stream, title, 0, 2, SENTENCE_WIDTH);
    count_line(stream, "records", report->records, "in the file");
    count_line(stream, "events", source->info.events, "in the trace");
    if (report->left_out)
        count_line(stream, "left out", report->left_out, "records without memory operations");
    bytes_line(stream, "live at the start", counts.start_blocks, counts.start_bytes);
    bytes_line(stream, "live at the end", counts.end_blocks, counts.end_bytes);
    if (counts.end_start_blocks)
        count_line(stream, "since the start", counts.end_start_blocks, "of these");
    count_line(stream, "unmatched frees", report->unmatched_frees,
               report->unmatched_frees ? "of blocks that must have existed before" : "");
    count_line(stream, "double frees", report->double_frees,
               report->double_frees ? "left out" : "");
    count_line(stream, "failures", report->failures,
               report->failures ? "requests that failed" : "");
    print_sizes(stream, &counts);
    print_fit(stream, &source->info, &counts);
    print_end(stream, report);
    print_guesses(stream, report);
    return AR_OK;
}

const char *card_source_name(enum recorded_card_source source)
{
    static const char *const names[] = {
        [RECORDED_CARD_ASKED] = "asked",   [RECORDED_CARD_LIMIT] = "limit",
        [RECORDED_CARD_DRIVER] = "driver", [RECORDED_CARD_TOTAL] = "total",
        [RECORDED_CARD_NAME] = "name",     [RECORDED_CARD_UNKNOWN] = "unknown",
    };
    return names[source];
}

static void print_capacity_from(FILE *stream, const struct recorded_card *card, const char *profile)
{
    const char *name = card->name[0] ? card->name : "the recorded card";
    switch (card->source) {
    case RECORDED_CARD_DRIVER:
        say(stream,
            "Capacity: as recorded; the bytes that were reserved when event %" PRIu64
            " failed, and those that the driver said were free.%s",
            card->event,
            card->full ? ""
                       : " They were enough for the request: it failed because of a limit of the "
                         "program, or for another reason.");
        return;
    case RECORDED_CARD_LIMIT:
        say(stream, "Capacity: the recorded limit of the allocator.");
        return;
    case RECORDED_CARD_TOTAL:
        say(stream, "Capacity: the recorded memory of %s, %s the context of a process.", name,
            card->whole ? "all of it: it is too small to take off what the profile keeps for"
                        : "without");
        return;
    case RECORDED_CARD_NAME:
        say(stream, "Capacity: that of %s, the recorded card, by the profile %s.", name, profile);
        return;
    case RECORDED_CARD_UNKNOWN:
        if (card->name[0])
            say(stream,
                "Card unknown: there is no profile of %s, so the capacity is that of the profile "
                "%s; give -d sim:capacity=BYTES or -d sim:profile=NAME (`advise`: --capacity).",
                name, profile);
        else
            say(stream,
                "Card unknown: none is recorded, so the capacity is that of the profile %s; give "
                "-d sim:capacity=BYTES or -d sim:profile=NAME (`advise`: --capacity).",
                profile);
        return;
    default:
        if (card->driver_bytes)
            say(stream, "Capacity: that of %s, without the context of a process.", profile);
        return;
    }
}

void card_sentence_print(FILE *stream, const struct recorded_card *card, const char *profile)
{
    print_capacity_from(stream, card, profile);
    if (card->driver_bytes)
        say(stream, "Also without %s that the driver takes for the kernels of the program.",
            AR_SIZE(card->driver_bytes));
}

void card_costs_print(FILE *stream, const char *costs_of)
{
    if (costs_of[0])
        say(stream, "Costs of driver calls: those of the profile %s.", costs_of);
}
