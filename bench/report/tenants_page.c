#include "bench/report/pages.h"

#include "allocators/base/size.h"
#include "bench/report/data_writer.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"

#define OUTCOME_ROOM 4096

/* "passed", "failed", "no room", "refused". */
static const char *tenant_outcome_name(enum tenant_outcome outcome)
{
    static const char *const names[] = {
        [TENANT_PASSED] = "passed",   [TENANT_REFUSED_SETTINGS] = "refused",
        [TENANT_NO_ROOM] = "no room", [TENANT_FAILED] = "failed",
        [TENANT_CRASHED] = "crashed",
    };
    return names[outcome];
}

static const struct tenant_result *result_of(const struct tenants_page *page, size_t replicate,
                                             size_t i)
{
    return &page->results[replicate * page->count + i];
}

static void outcome_of_one(const struct tenant_result *result, char *text, size_t room)
{
    if (result->outcome == TENANT_FAILED)
        snprintf(text, room, "failed at step %" PRIu64 ": %s%s", result->failed_step,
                 replay_cause_name(result->cause), result->failed_pinned ? " (pinned)" : "");
    else
        snprintf(text, room, "%s", tenant_outcome_name(result->outcome));
}

void tenants_outcome_text(const struct tenants_page *page, size_t replicate, char *text,
                          size_t room)
{
    text[0] = '\0';
    for (size_t i = 0; i < page->count; i++) {
        char one[128];
        outcome_of_one(result_of(page, replicate, i), one, sizeof one);
        text_add(text, room, "%s%s %s", i ? "; " : "", page->setups[i].name, one);
    }
}

static void mib(struct table *table, bool shown, uint64_t bytes)
{
    if (shown)
        table_cell(table, "%.1f", (double)bytes / (double)AR_MIB);
}

/* 0: not known, or it does not pass alone. */
static uint64_t alone_ns(const struct tenants_page *page, size_t i)
{
    return page->alone && page->alone[i].outcome == TENANT_PASSED ? page->alone[i].own_ns : 0;
}

/* Of a process that has done all of its work. */
static void slowdown(struct table *table, const struct tenants_page *page, size_t i,
                     const struct tenant_result *result)
{
    uint64_t ns = alone_ns(page, i);
    table_known(table,
                ns && result->outcome == TENANT_PASSED && result->steps == page->alone[i].steps,
                "%.3f", (double)result->own_ns / (double)ns);
}

/* What a row does not show: settings that were refused, and the process with the memory. */
static void print_reasons(FILE *stream, const struct tenants_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct tenant_result *result = result_of(page, 0, i);
        if (result->warned[0])
            say(stream, "%s: warning: %s", page->setups[i].name, result->warned);
        if (result->why[0])
            say(stream, "%s: %s", page->setups[i].name, result->why);
        if (result->refused_by < page->count && result->failed_pinned)
            say(stream, "%s: %s of pinned memory refused; %s holds most of the host's",
                page->setups[i].name, AR_SIZE(result->refused_bytes),
                page->setups[result->refused_by].name);
        else if (result->refused_by == i)
            say(stream, "%s: %s refused; its other pools hold most of card %" PRIu32,
                page->setups[i].name, AR_SIZE(result->refused_bytes), result->card);
        else if (result->refused_by < page->count)
            say(stream, "%s: %s refused; %s holds most of card %" PRIu32 " besides",
                page->setups[i].name, AR_SIZE(result->refused_bytes),
                page->setups[result->refused_by].name, result->card);
    }
}

static enum ar_status print_one(FILE *stream, const struct tenants_page *page,
                                struct ar_error *error)
{
    struct table *table =
        page->wide
            ? table_of("process<20; card; steps; live|MiB; reserved|MiB; physical|MiB; used|MiB; "
                       "at end|MiB; stall|ms; slow; outcome<")
            : table_of(
                  "process<20; card; steps; physical|MiB; used|MiB; at end|MiB; slow; outcome<");
    for (size_t i = 0; i < page->count; i++) {
        const struct tenant_result *result = result_of(page, 0, i);
        char outcome[128];
        outcome_of_one(result, outcome, sizeof outcome);
        table_cell(table, "%s", page->setups[i].name);
        table_cell(table, "%" PRIu32, result->card);
        table_cell(table, "%" PRIu64, result->steps);
        mib(table, page->wide, result->peak_live_bytes);
        mib(table, page->wide, result->peak_reserved_bytes);
        mib(table, true, result->peak_physical_bytes);
        mib(table, true, result->peak_card_bytes);
        mib(table, true, result->end_physical_bytes);
        if (page->wide)
            table_cell(table, "%.3f", (double)result->stall_ns / 1e6);
        slowdown(table, page, i, result);
        table_cell(table, "%s", outcome);
    }
    enum ar_status status =
        table_end(table, stream, page->wide ? TABLE_TEXT_WIDE : TABLE_TEXT, error);
    print_reasons(stream, page);
    fprintf(stream,
            "\nPeaks of bytes; used: with the context, after a step; at end: what it has when\n"
            "its work has ended, until it leaves. slow: its time divided by that when it\n"
            "runs alone%s.\n",
            page->real ? "" : "; kernels of several processes do not slow each other here");
    return status;
}

/* The outcomes of the replicates, the most frequent first; equally frequent ones in their order. */
static enum ar_status print_outcomes(FILE *stream, const struct tenants_page *page,
                                     struct ar_error *error)
{
    AR_FREED char(*texts)[OUTCOME_ROOM] = malloc(page->replicates * sizeof *texts);
    AR_FREED size_t *counts = calloc(page->replicates, sizeof *counts);
    size_t kinds = 0;
    AR_TRY_MEMORY(texts && counts, error, "%zu replicates", page->replicates);
    for (size_t replicate = 0; replicate < page->replicates; replicate++) {
        size_t kind = 0;
        tenants_outcome_text(page, replicate, texts[kinds], OUTCOME_ROOM);
        while (strcmp(texts[kind], texts[kinds]) != 0)
            kind++;
        kinds += kind == kinds;
        counts[kind]++;
    }
    fprintf(stream, "%zu replicates, %zu outcome%s:\n", page->replicates, kinds,
            kinds == 1 ? "" : "s");
    for (size_t most = page->replicates; most; most--)
        for (size_t kind = 0; kind < kinds; kind++)
            if (counts[kind] == most)
                sentence_format(stream, 8, "%6zu  %s", most, texts[kind]);
    return AR_OK;
}

/* The least and the most over the replicates. */
static void range(struct table *table, const struct tenants_page *page, size_t i, size_t offset)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t replicate = 0; replicate < page->replicates; replicate++) {
        uint64_t bytes;
        memcpy(&bytes, (const char *)result_of(page, replicate, i) + offset, sizeof bytes);
        AR_LOWER(least, bytes);
        AR_RAISE(most, bytes);
    }
    if (least == most)
        table_cell(table, "%.1f", (double)most / (double)AR_MIB);
    else
        table_cell(table, "%.1f to %.1f", (double)least / (double)AR_MIB,
                   (double)most / (double)AR_MIB);
}

static enum ar_status print_many(FILE *stream, const struct tenants_page *page,
                                 struct ar_error *error)
{
    AR_TRY(print_outcomes(stream, page, error));
    struct table *table =
        table_of("process<20; passed; reserved|MiB; physical|MiB; at the end|MiB");
    for (size_t i = 0; i < page->count; i++) {
        size_t passed = 0;
        for (size_t replicate = 0; replicate < page->replicates; replicate++)
            passed += result_of(page, replicate, i)->outcome == TENANT_PASSED;
        table_cell(table, "%s", page->setups[i].name);
        table_cell(table, "%zu of %zu", passed, page->replicates);
        range(table, page, i, offsetof(struct tenant_result, peak_reserved_bytes));
        range(table, page, i, offsetof(struct tenant_result, peak_physical_bytes));
        range(table, page, i, offsetof(struct tenant_result, end_physical_bytes));
    }
    fputc('\n', stream);
    return table_end(table, stream, TABLE_TEXT, error);
}

enum ar_status tenants_page_print(FILE *stream, const struct tenants_page *page,
                                  struct ar_error *error)
{
    fprintf(stream, "%s\n\n", page->title);
    return page->replicates == 1 ? print_one(stream, page, error) : print_many(stream, page, error);
}

void tenants_csv_head(FILE *stream)
{
    fputs("draw,process,outcome,card,arrived,steps,failed_step,failed_event,failed_bytes,cause,"
          "refused_bytes,refused_by,retries_waited,peak_live_bytes,peak_reserved_bytes,peak_"
          "physical_bytes,end_reserved_bytes,end_physical_bytes,peak_card_bytes,stall_ns,own_ns,"
          "alone_ns,driver_calls,failed_space,peak_pinned_live_bytes,peak_pinned_reserved_bytes\n",
          stream);
}

void tenants_csv_replicate(FILE *stream, const struct tenants_page *page, size_t replicate)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct tenant_result *result = result_of(page, replicate, i);
        bool failed = result->outcome == TENANT_FAILED;
        fprintf(stream, "%zu,", replicate);
        csv_text(stream, page->setups[i].name);
        fprintf(stream, ",%s,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",",
                tenant_outcome_name(result->outcome), result->card, result->arrived, result->steps);
        if (failed)
            fprintf(stream, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,", result->failed_step,
                    result->failed_event, result->failed_bytes, replay_cause_name(result->cause));
        else
            fputs(",,,,", stream);
        fprintf(stream, "%" PRIu64 ",", result->refused_bytes);
        csv_text(stream,
                 result->refused_by < page->count ? page->setups[result->refused_by].name : "");
        fprintf(stream,
                ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 "\n",
                result->retries_waited, result->peak_live_bytes, result->peak_reserved_bytes,
                result->peak_physical_bytes, result->end_reserved_bytes, result->end_physical_bytes,
                result->peak_card_bytes, result->stall_ns, result->own_ns, alone_ns(page, i),
                result->driver_calls,
                !failed                 ? ""
                : result->failed_pinned ? "pinned"
                                        : "device",
                result->peak_pinned_live_bytes, result->peak_pinned_reserved_bytes);
    }
}
