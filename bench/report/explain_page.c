#include "bench/report/explain_page.h"

#include <inttypes.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/card_sentence.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"

#define SHOWN_MOST 8 /* re-runs of each kind */

static const char *cause_sentence(enum replay_cause cause)
{
    switch (cause) {
    case REPLAY_CAUSE_FRAGMENTATION:
        return "enough was free, but in several ranges, or in pools and streams that the request "
               "could not use";
    case REPLAY_CAUSE_PENDING:
        return "freed blocks would have served it, but other streams still used them";
    case REPLAY_CAUSE_TENANT:
        return "without the memory of other processes it would have been served";
    case REPLAY_CAUSE_OUTSIDE:
        return "without the program's memory outside of the pool it would have been served";
    case REPLAY_CAUSE_DRIVER:
        return "the driver failed for another reason than lack of memory";
    default:
        return "the program's live blocks are too large for this capacity: no arrangement of "
               "blocks "
               "would have served it";
    }
}

static void print_bytes(FILE *stream, const char *what, uint64_t bytes, const char *remark)
{
    char text[32];
    if (bytes == UINT64_MAX)
        fprintf(stream, "  %-40s %12s%s%s\n", what, "no limit", *remark ? "  " : "", remark);
    else
        fprintf(stream, "  %-40s %12s%s%s\n", what, ar_size_print(bytes, text, sizeof text),
                *remark ? "  " : "", remark);
}

static void print_request(FILE *stream, const struct explain_page *page)
{
    const struct explain_result *result = page->result;
    char text[32], line[512], step[64] = "";
    if (result->steps && result->step > result->steps)
        snprintf(step, sizeof step, ", after the last step");
    else if (result->steps)
        snprintf(step, sizeof step, ", in step %" PRIu64 " of %" PRIu64, result->step,
                 result->steps);
    snprintf(line, sizeof line,
             "%s with %s: event %" PRIu64 "%s requests %s (block %" PRIu64 ", stream %" PRIu32
             "%s%s) and fails.",
             page->workload, page->policy, result->event, step,
             ar_size_print(result->bytes, text, sizeof text), result->id, result->stream,
             result->tag[0] ? ", " : "", result->tag);
    sentence_print(stream, line);
    snprintf(line, sizeof line, "%s: %s.", replay_cause_name(result->cause),
             cause_sentence(result->cause));
    sentence_print(stream, line);
    if (result->problem[0])
        sentence_print(stream, result->problem);
}

static void print_state(FILE *stream, const struct explain_result *result)
{
    const struct ar_policy_totals *totals = &result->totals;
    static const char *const efforts[] = {"without a driver call", "with mapping only",
                                          "after waiting for pending work",
                                          "after releasing all cached memory"};
    fputs("\nAt that moment:\n", stream);
    print_bytes(stream, "capacity", result->capacity_bytes, "");
    if (result->limit_bytes)
        print_bytes(stream, "the policy's limit", result->limit_bytes, "");
    print_bytes(stream, "live, as requested", totals->live_bytes, "");
    print_bytes(stream, "granted for it", totals->granted_bytes, "");
    print_bytes(stream, "reserved by the policy", totals->reserved_bytes, "");
    print_bytes(stream, "free on the device", result->device_free_bytes, "");
    print_bytes(stream, "free within the policy", ar_policy_free_bytes(totals), "");
    if (totals->pending_bytes)
        print_bytes(stream, "freed, still in use by other streams", totals->pending_bytes, "");
    if (result->others_bytes)
        print_bytes(stream, "of other processes", result->others_bytes, "");
    if (result->outside_bytes)
        print_bytes(stream, "outside of the pool", result->outside_bytes, "");
    if (result->opaque) {
        fputs("\nThe blocks of this policy are not visible.\n", stream);
        return;
    }
    fputs("\nThe largest request that the policy could have served:\n", stream);
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
        print_bytes(stream, efforts[effort], result->servable_bytes[effort], "");
}

static void print_ladder(FILE *stream, const struct explain_result *result)
{
    const struct cause_ladder *ladder = &result->ladder;
    const struct {
        const char *what;
        uint64_t bytes;
    } rungs[] = {
        {"free for this pool and stream, merged", ladder->same_bytes},
        {"and free for other pools and streams", ladder->other_bytes},
        {"and freed, but not completed", ladder->pending_bytes},
        {"and of other processes", ladder->tenant_bytes},
        {"and outside of the pool", ladder->outside_bytes},
    };
    fputs("\nWhat would have been available, with the free memory of the device:\n", stream);
    bool reached = false;
    for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++) {
        bool first = !reached && rungs[i].bytes >= result->bytes;
        print_bytes(stream, rungs[i].what, rungs[i].bytes, first ? "<- enough" : "");
        reached |= first;
    }
    if (!reached)
        fputs("  never enough\n", stream);
}

static void print_free_blocks(FILE *stream, const struct explain_result *result)
{
    const struct explain_indices *indices = &result->indices;
    char line[256], a[32], b[32];
    snprintf(line, sizeof line,
             "%" PRIu64 " free range%s, %s in all, the largest %s, between live blocks.",
             result->free_blocks, result->free_blocks == 1 ? "" : "s",
             ar_size_print(result->free_block_bytes, a, sizeof a),
             ar_size_print(result->largest_free_block_bytes, b, sizeof b));
    fputc('\n', stream);
    sentence_print(stream, line);
    snprintf(line, sizeof line,
             "External fragmentation %.3f; for this request the unusable free index is %.3f",
             indices->external, indices->unusable);
    size_t used = strlen(line);
    if (indices->fragmentation < 0)
        snprintf(line + used, sizeof line - used, "; one of the ranges would be large enough.");
    else
        snprintf(line + used, sizeof line - used,
                 ", the fragmentation index %.3f (0: lack of memory, 1: fragmentation).",
                 indices->fragmentation);
    sentence_print(stream, line);
}

/* The blocks that are in the way; and whether there is free memory elsewhere for them. */
static void print_stretch(FILE *stream, const struct explain_result *result)
{
    char line[384], bytes[32], lacking[32];
    uint64_t there = result->ladder.other_bytes;
    if (!result->stretch_bytes) {
        sentence_print(stream, "No segment of the policy is as large as the request.");
        return;
    }
    int used = snprintf(line, sizeof line,
                        "The emptiest stretch as large as the request holds %zu live block%s of "
                        "%s",
                        result->stretch_blocks, result->stretch_blocks == 1 ? "" : "s",
                        ar_size_print(result->stretch_live_bytes, bytes, sizeof bytes));
    if (there >= result->bytes)
        snprintf(line + used, sizeof line - (size_t)used, ": without them it would fit.");
    else
        snprintf(
            line + used, sizeof line - (size_t)used,
            ", for which there is no free memory elsewhere: all that is free is %s less than the "
            "request.",
            ar_size_print(result->bytes - there, lacking, sizeof lacking));
    sentence_print(stream, line);
}

static enum ar_status print_pins(FILE *stream, const struct explain_result *result,
                                 struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"block", "", true, 0},
        {"adjacent", "free MiB", false, 0},
        {"made", "event", false, 0},
        {"age", "events", false, 0},
        {"asked", "since, MiB", false, 0},
        {"step", "", false, 0},
        {"stream", "", false, 0},
        {"in the", "stretch", true, 0},
        {"tag", "", true, 0},
    };
    char a[32];
    if (result->opaque || !result->pinning_block_count)
        return AR_OK;
    print_free_blocks(stream, result);
    print_stretch(stream, result);
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    if (!table)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the table");
    for (size_t i = 0; i < result->pinning_block_count; i++) {
        const struct explain_pinning_block *pin = &result->pinning_blocks[i];
        table_cell(table, "%s", ar_size_print(pin->bytes, a, sizeof a));
        table_cell(table, "%.1f", (double)pin->free_bytes / (double)AR_MIB);
        table_cell(table, "%" PRIu64, pin->event);
        table_cell(table, "%" PRIu64, pin->age_events);
        table_cell(table, "%.1f", (double)pin->age_bytes / (double)AR_MIB);
        if (result->steps)
            table_cell(table, "%" PRIu64, pin->step);
        else
            table_cell(table, "-");
        table_cell(table, "%" PRIu32, pin->stream);
        table_cell(table, "%s", pin->in_stretch ? "yes" : "");
        table_cell(table, "%s", pin->tag[0] ? pin->tag : "-");
    }
    enum ar_status status = table_print(table, stream, TABLE_TEXT, error);
    table_close(table);
    return status;
}

/* Another allocator also has its cost in words. */
static void print_rerun(FILE *stream, const struct explain_rerun *run)
{
    char text[32], slow[32] = "";
    const char *setting = run->candidate.text[0] ? run->candidate.text : run->trial.setting;
    if (run->trial.slowdown > 0)
        snprintf(slow, sizeof slow, ", slowdown %.3f", run->trial.slowdown);
    sentence_format(stream, 6, "  %s: peak %s, %" PRIu64 " flush%s%s", run->candidate.spec,
                    ar_size_print(run->trial.peak_physical_bytes, text, sizeof text),
                    run->trial.flushes, run->trial.flushes == 1 ? "" : "es", slow);
    if (run->candidate.own && setting[0])
        sentence_copied(stream, "      ", setting);
    if (run->candidate.own && run->candidate.text[0] && run->candidate.cost)
        sentence_format(stream, 6, "      %s", run->candidate.cost);
}

static void print_kind(FILE *stream, const struct explain_result *result, bool own,
                       const char *title)
{
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < result->rerun_count; i++) {
        if (result->reruns[i].candidate.own != own)
            continue;
        if (!shown && !more)
            fprintf(stream, "\n%s\n", title);
        if (shown == SHOWN_MOST) {
            more++;
            continue;
        }
        shown++;
        print_rerun(stream, &result->reruns[i]);
    }
    if (more)
        fprintf(stream, "  and %zu more\n", more);
}

static void print_helpers(FILE *stream, const struct explain_result *result)
{
    char line[256], text[32];
    if (result->cause == REPLAY_CAUSE_DRIVER)
        return;
    print_kind(stream, result, true, "With the same capacity these settings pass:");
    print_kind(stream, result, false, "With the same capacity these other policies pass:");
    if (!result->rerun_count) {
        snprintf(line, sizeof line, "None of %zu settings and policies passes with this capacity.",
                 result->rerun_tried);
        fputc('\n', stream);
        sentence_print(stream, line);
    }
    fputc('\n', stream);
    if (result->more_capacity_bytes)
        snprintf(line, sizeof line, "The same policy passes with a capacity of %s and above",
                 ar_size_print(result->more_capacity_bytes, text, sizeof text));
    else
        snprintf(line, sizeof line,
                 "The same policy does not pass with four times the live peak either");
    size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, "; the live peak of the whole trace is %s.",
             ar_size_print(result->live_peak_bytes, text, sizeof text));
    sentence_print(stream, line);
}

enum ar_status explain_page_print(FILE *stream, const struct explain_page *page,
                                  struct ar_error *error)
{
    const struct explain_result *result = page->result;
    if (result->passed) {
        char line[512];
        snprintf(line, sizeof line, "%s with %s, frees %s: every request was served.",
                 page->workload, page->policy, replay_frees_name(page->frees));
        sentence_print(stream, line);
        card_sentence_print(stream, page->card, result->profile);
        return AR_OK;
    }
    print_request(stream, page);
    card_sentence_print(stream, page->card, result->profile);
    card_costs_print(stream, result->costs_of);
    print_state(stream, result);
    print_ladder(stream, result);
    enum ar_status status = print_pins(stream, result, error);
    if (!status)
        print_helpers(stream, result);
    return status;
}
