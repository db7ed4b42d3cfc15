#include "bench/report/pages.h"

#include <ctype.h>
#include <math.h>

#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "sim/search/search.h"
#include "workloads/formats/import_report.h"

#define SHOWN_MOST 8 /* re-runs of each kind */

/* Why free memory that was enough did not serve the request. */
static const char *fragmentation_sentence(const struct explain_result *result)
{
    if (result->largest_same_bytes >= result->bytes)
        return "enough was free, and one free range is large enough, but a rule of the policy "
               "keeps this request from it (a size class, rounding up, or a limit of splits)";
    if (result->ladder.same_bytes >= result->bytes)
        return result->ladder.obtainable_bytes ? "enough was free, but in several pieces: in the "
                                                 "policy's free ranges and on the device"
                                               : "enough was free, but in several ranges";
    if (result->largest_other_bytes >= result->bytes)
        return "enough was free, but in pools and streams that the request could not use";
    return "enough was free, but in several ranges, of which some belong to pools and streams that "
           "the request could not use";
}

static const char *cause_sentence(const struct explain_result *result)
{
    switch (result->cause) {
    case REPLAY_CAUSE_RETURNED:
        return "a block came back while the request waited, and the policy did not look at it "
               "again before it gave up: trying again serves it";
    case REPLAY_CAUSE_FRAGMENTATION:
        return fragmentation_sentence(result);
    case REPLAY_CAUSE_CACHE:
        return "the pool's cache stood in the way: the pool held enough free memory, which the "
               "driver cannot take";
    case REPLAY_CAUSE_PENDING:
        return "freed blocks would have served it, but other streams still used them";
    case REPLAY_CAUSE_TENANT:
        return "without the memory of other processes it would have been served";
    case REPLAY_CAUSE_OUTSIDE:
        return "without the program's memory outside of the pool it would have been served";
    case REPLAY_CAUSE_DRIVER:
        return "the driver failed for another reason than lack of memory";
    default:
        if (result->kind == EXPLAIN_BESIDE)
            return "the program's live blocks leave less than this at this capacity";
        if (result->ladder.barred)
            return "the device has enough free memory, but a rule of the policy keeps it from "
                   "obtaining it (a limit, memory left to the system, rounding up, or a least "
                   "segment)";
        if (result->limit_bytes && result->device_free_bytes >= result->bytes)
            return "the policy's limit leaves less than this, and the device has enough free "
                   "memory: no arrangement of blocks would have served it within the limit";
        return "the program's live blocks are too large for this capacity: no arrangement of "
               "blocks would have served it";
    }
}

static void print_bytes(FILE *stream, const char *what, uint64_t bytes, const char *remark)
{
    if (bytes == UINT64_MAX)
        fprintf(stream, "  %-40s %12s%s%s\n", what, "no limit", *remark ? "  " : "", remark);
    else
        fprintf(stream, "  %-40s %12s%s%s\n", what, AR_SIZE(bytes), *remark ? "  " : "", remark);
}

static void print_request(FILE *stream, const struct explain_page *page)
{
    const struct explain_result *result = page->result;
    char what[192], step[64] = "";
    if (result->steps && result->step > result->steps)
        snprintf(step, sizeof step, ", after the last step");
    else if (result->steps)
        snprintf(step, sizeof step, ", in step %" PRIu64 " of %" PRIu64, result->step,
                 result->steps);
    const char *text = AR_SIZE(result->bytes);
    if (result->kind == EXPLAIN_REQUEST)
        snprintf(what, sizeof what, "requests %s (block %" PRIu64 ", stream %" PRIu32 "%s%s)", text,
                 result->id, result->stream, result->tag[0] ? ", " : "", result->tag);
    else
        snprintf(what, sizeof what, "requests %s beside the pool", text);
    say(stream, "%s with %s: event %" PRIu64 "%s %s and fails%s.", page->workload, page->policy,
        result->event, step, what, page->caught ? "; the program caught that and went on" : "");
    say(stream, "%s: %s.", replay_cause_name(result->cause), cause_sentence(result));
    if (result->problem[0])
        say(stream, "%s", result->problem);
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
    fputs("\nThe largest request served from the memory that the policy holds:\n", stream);
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
        print_bytes(stream, efforts[effort], result->servable_bytes[effort], "");
}

struct rung {
    const char *what;
    uint64_t bytes;
};

#define RUNGS 5

static void list_rungs(const struct cause_ladder *ladder, struct rung rungs[RUNGS])
{
    const struct rung beside[RUNGS] = {
        {"free on the device", ladder->obtainable_bytes},
        {"and whole segments free in the pool", ladder->cached_bytes},
        {"and free between the pool's live blocks", ladder->other_bytes},
        {"and freed, but not completed", ladder->pending_bytes},
        {"and of other processes", ladder->tenant_bytes},
    };
    const struct rung inside[RUNGS] = {
        {"free for this pool and stream, merged", ladder->same_bytes},
        {"and free for other pools and streams", ladder->other_bytes},
        {"and freed, but not completed", ladder->pending_bytes},
        {"and of other processes", ladder->tenant_bytes},
        {"and outside of the pool", ladder->outside_bytes},
    };
    memcpy(rungs, ladder->beside ? beside : inside, sizeof inside);
}

static void print_ladder(FILE *stream, const struct explain_result *result)
{
    struct rung rungs[RUNGS];
    list_rungs(&result->ladder, rungs);
    fprintf(stream, "\nWhat would have been available%s:\n",
            result->ladder.beside   ? ""
            : result->ladder.barred ? ", without the free memory of the device"
                                    : ", with the free memory of the device");
    if (result->ladder.again)
        fputs("  a block that serves it, if it is tried again     <- enough\n", stream);
    bool reached = result->ladder.again;
    for (size_t i = 0; i < RUNGS; i++) {
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
    char line[256];
    snprintf(line, sizeof line,
             "%" PRIu64 " free range%s, %s in all, the largest %s, between live blocks.",
             result->free_blocks, result->free_blocks == 1 ? "" : "s",
             AR_SIZE(result->free_block_bytes), AR_SIZE(result->largest_free_block_bytes));
    fputc('\n', stream);
    say(stream, "%s", line);
    snprintf(line, sizeof line,
             "External fragmentation %.3f%s; for this request the unusable free index is %.3f",
             indices->external,
             result->ladder.obtainable_bytes ? ", the free memory of the device included" : "",
             indices->unusable);
    if (indices->fragmentation < 0)
        text_add(line, sizeof line, "; one of the ranges is large enough.");
    else
        text_add(line, sizeof line,
                 ", the fragmentation index %.3f (0: lack of memory, 1: fragmentation).",
                 indices->fragmentation);
    say(stream, "%s", line);
}

/* A stretch without live blocks did not serve the request. */
static const char *empty_stretch(const struct explain_result *result)
{
    if (result->cause == REPLAY_CAUSE_RETURNED)
        return "A free range is as large as the request: it serves it when it is tried again.";
    if (result->largest_same_bytes >= result->bytes)
        return "A free range is as large as the request, but the policy's rules keep the request "
               "from it.";
    if (result->largest_other_bytes >= result->bytes)
        return "A free range of another pool or stream is as large as the request.";
    return "A stretch as large as the request holds no live block, but not all of it is free for "
           "this request: parts are pending, or belong to other pools and streams.";
}

/* The blocks that are in the way; and whether there is free memory elsewhere for them. */
static void print_stretch(FILE *stream, const struct explain_result *result)
{
    char line[384];
    uint64_t there = result->ladder.other_bytes;
    if (!result->stretch_bytes) {
        say(stream, "No segment of the policy is as large as the request.");
        return;
    }
    if (!result->stretch_blocks) {
        say(stream, "%s", empty_stretch(result));
        return;
    }
    const char *bytes = AR_SIZE(result->stretch_live_bytes);
    snprintf(line, sizeof line,
             "The emptiest stretch as large as the request holds %zu live block%s of %s",
             result->stretch_blocks, result->stretch_blocks == 1 ? "" : "s", bytes);
    if (there >= result->bytes)
        say(stream, "%s: without %s, the request would fit.", line,
            result->stretch_blocks == 1 ? "it" : "them");
    else
        say(stream,
            "%s, for which there is no free memory elsewhere: all that is free%s is %s less than "
            "the request.",
            line, result->ladder.barred ? " in the policy" : "", AR_SIZE(result->bytes - there));
}

/* How a program releases the cache of its framework, and limits it to a part of the card. */
struct cache_calls {
    const char *framework, *release;
    const char *limit; /* a format with the fraction, or with bytes */
    bool in_bytes;
};

static const struct cache_calls *cache_calls_of(const char *framework)
{
    static const struct cache_calls calls[] = {
        {"torch", "torch.cuda.empty_cache()", "torch.cuda.set_per_process_memory_fraction(%.3f)",
         false},
        {"cupy", "cupy.get_default_memory_pool().free_all_blocks()",
         "cupy.get_default_memory_pool().set_limit(size=%.0f)", true},
        {"rmm", NULL, "PoolMemoryResource(maximum_pool_size=%.0f)", true},
        {"tensorflow", NULL, "gpu_options.per_process_gpu_memory_fraction = %.3f", false},
        {"xla", NULL, "XLA_PYTHON_CLIENT_MEM_FRACTION=%.3f", false},
        {"", NULL, "limit=%.0f", true},
    };
    size_t i = 0;
    while (i + 1 < AR_COUNT(calls) && strcmp(calls[i].framework, framework) != 0)
        i++;
    return &calls[i];
}

static void add_limit(char *text, size_t room, const struct explain_result *result,
                      const struct cache_calls *calls)
{
    char limit[160];
    double value =
        calls->in_bytes
            ? (double)result->pool_limit_bytes
            : floor((double)result->pool_limit_bytes / (double)result->capacity_bytes * 1000) /
                  1000;
    const char *bytes = AR_SIZE(result->pool_limit_bytes);
    const char *at = strchr(calls->limit, '%'); /* "%.3f" or "%.0f" */
    snprintf(limit, sizeof limit, "%.*s%.*f%s", (int)(at - calls->limit), calls->limit,
             calls->in_bytes ? 0 : 3, value, at + 4);
    if (result->pool_limit_passes)
        text_add(text, room, " Or limit the pool to %s: `%s` passes with this capacity.", bytes,
                 limit);
    else
        text_add(text, room,
                 " A limit of the pool of %s (`%s`) leaves room for it, but the pool needs more "
                 "than that at this capacity.",
                 bytes, limit);
}

/* What to do about causes that no setting of the policy answers: sentences, or "". */
static void explain_page_advice(const struct explain_result *result, char *text, size_t room)
{
    const struct cache_calls *calls = cache_calls_of(result->framework);
    text[0] = '\0';
    if (result->cause == REPLAY_CAUSE_RETURNED)
        text_add(text, room,
                 "Catch the error and make the same request again: it is served from a block that "
                 "is free now. Or wait for the other streams before the request.%s",
                 strcmp(result->framework, "torch") == 0
                     ? " PyTorch waits for pending blocks when memory is short, but does not look "
                       "for a free one again before it reports the error (pytorch/pytorch#189504)."
                     : "");
    if (result->cause != REPLAY_CAUSE_CACHE)
        return;
    uint64_t releasable_bytes = result->ladder.cached_bytes - result->device_free_bytes;
    const char *bytes = AR_SIZE(releasable_bytes);
    if (result->can_trim && result->ladder.cached_bytes >= result->bytes)
        text_add(text, room, "Release the cache before it%s%s%s: that gives %s to the device.",
                 calls->release ? " (`" : "", calls->release ? calls->release : "",
                 calls->release ? "`)" : "", bytes);
    else if (result->can_trim)
        text_add(text, room,
                 "A release of the cache gives only %s to the device: the rest is free between "
                 "live blocks.",
                 bytes);
    else
        text_add(text, room, "This policy does not release its cache.");
    if (result->pool_limit_bytes)
        add_limit(text, room, result, calls);
    text_add(text, room, " Or leave room for it: a larger capacity, or a smaller pool.");
}

static enum ar_status print_pins(FILE *stream, const struct explain_result *result,
                                 struct ar_error *error)
{
    if (result->opaque || !result->pinning_block_count || result->kind != EXPLAIN_REQUEST)
        return AR_OK;
    print_free_blocks(stream, result);
    print_stretch(stream, result);
    struct table *table = table_of("block<; tag<9; adjacent|free MiB; made|event; age|events; "
                                   "asked|since, MiB; step; stream; in the|stretch<");
    for (size_t i = 0; i < result->pinning_block_count; i++) {
        const struct explain_pinning_block *pin = &result->pinning_blocks[i];
        table_cell(table, "%s", AR_SIZE(pin->bytes));
        table_cell(table, "%s", pin->tag[0] ? pin->tag : "-");
        table_cell(table, "%.1f", (double)pin->free_bytes / (double)AR_MIB);
        table_cell(table, "%" PRIu64, pin->event);
        table_cell(table, "%" PRIu64, pin->age_events);
        table_cell(table, "%.1f", (double)pin->age_bytes / (double)AR_MIB);
        table_known(table, result->steps, "%" PRIu64, pin->step);
        table_cell(table, "%" PRIu32, pin->stream);
        table_cell(table, "%s", pin->in_stretch ? "yes" : "no");
    }
    enum ar_status status = table_end(table, stream, TABLE_TEXT, error);
    say(stream,
        "made: the event of its request; age, asked since: events, and memory requested, from then "
        "to the failure%s.",
        result->stretch_blocks ? "; in the stretch: of the blocks in the emptiest stretch, above"
                               : "");
    return status;
}

/* Another allocator also has its cost in words. */
static void print_rerun(FILE *stream, const struct explain_rerun *run, struct torch_release release)
{
    char slow[32] = "", setting[640];
    candidate_setting(&run->candidate, release, run->trial.setting, setting, sizeof setting);
    struct torch_release needs = candidate_needs(setting);
    if (run->trial.slowdown > 0)
        snprintf(slow, sizeof slow, ", slowdown %.3f", run->trial.slowdown);
    sentence_format(stream, 6, "  %s: peak %s, %" PRIu64 " flush%s%s", run->candidate.spec,
                    AR_SIZE(run->trial.peak_physical_bytes), run->trial.flushes,
                    run->trial.flushes == 1 ? "" : "es", slow);
    if (run->candidate.own && setting[0])
        sentence_copied(stream, "      ", setting);
    if (run->candidate.own && !run->candidate.given && needs.major && !release.major)
        fprintf(stream, "      Needs PyTorch %u.%u.\n", needs.major, needs.minor);
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
        print_rerun(stream, &result->reruns[i], result->release);
    }
    if (more)
        fprintf(stream, "  and %zu more\n", more);
}

/* The first setting that passes, and the capacity: details are at the end of the page. */
static void print_brief(FILE *stream, const struct explain_result *result)
{
    char mib[32] = "", capacity[96] = "", setting[640] = "";
    const struct explain_rerun *run = result->reruns; /* the framework's own are first */
    const uint64_t bytes = result->more_capacity_bytes;
    if (result->rerun_count && run->candidate.own) {
        candidate_setting(&run->candidate, result->release, run->trial.setting, setting,
                          sizeof setting);
        if (!setting[0])
            snprintf(setting, sizeof setting, "%s", run->candidate.spec);
    }
    if (bytes >= AR_GIB) /* other commands print MiB */
        snprintf(mib, sizeof mib, " (%.1f MiB)", (double)bytes / (double)AR_MIB);
    if (bytes)
        snprintf(capacity, sizeof capacity, "%sfrom %s%s on",
                 result->limit_bytes ? "without its limit " : "", AR_SIZE_UP(bytes), mib);
    if (setting[0])
        say(stream, "Passes with %s (%sbelow)%s%s.", setting,
            strcmp(run->candidate.spec, "direct") == 0 ? "slow, " : "", bytes ? ", or " : "",
            capacity);
    else if (bytes)
        say(stream, "Passes %s.", capacity);
}

static void print_helpers(FILE *stream, const struct explain_result *result)
{
    char line[256], advice[1024];
    if (result->cause == REPLAY_CAUSE_DRIVER)
        return;
    explain_page_advice(result, advice, sizeof advice);
    if (advice[0]) {
        fputc('\n', stream);
        say(stream, "%s", advice);
    }
    print_kind(stream, result, true,
               "With the same capacity these settings pass (pairs only if neither half does):");
    print_kind(stream, result, false, "With the same capacity these other policies pass:");
    if (!result->rerun_count) {
        snprintf(line, sizeof line, "None of %zu settings and policies passes with this capacity.",
                 result->rerun_tried);
        fputc('\n', stream);
        say(stream, "%s", line);
    }
    fputc('\n', stream);
    if (result->more_capacity_bytes)
        snprintf(line, sizeof line, "The same policy%s passes with a capacity of %s and above",
                 result->limit_bytes ? " without its limit" : "",
                 AR_SIZE_UP(result->more_capacity_bytes));
    else if (result->capacity_bytes < capacity_grid_end(result->live_peak_bytes))
        snprintf(line, sizeof line, "The same policy does not pass with a capacity of %s either",
                 AR_SIZE(capacity_grid_end(result->live_peak_bytes)));
    else
        snprintf(line, sizeof line, "Larger capacities were not tried");
    text_add(line, sizeof line, "; the live peak of the whole trace is %s.",
             AR_SIZE(result->live_peak_bytes));
    say(stream, "%s", line);
}

enum ar_status explain_page_print(FILE *stream, const struct explain_page *page,
                                  struct ar_error *error)
{
    const struct explain_result *result = page->result;
    if (result->passed) {
        char recorded[96] = "every request was";
        if (page->lacks_history)
            snprintf(recorded, sizeof recorded, "the requests for the blocks at its end were");
        else if (page->card->source == RECORDED_CARD_DRIVER)
            snprintf(recorded, sizeof recorded,
                     "in the recording event %" PRIu64 " failed; here every request is",
                     page->card->event);
        say(stream,
            "%s with %s, at %s, frees %s: %s served. `capacity` finds the least capacity that "
            "serves them.",
            page->workload, page->policy, AR_SIZE(result->capacity_bytes),
            replay_frees_name(page->frees), recorded);
    } else {
        print_request(stream, page);
        print_brief(stream, result);
    }
    if (page->lacks_history)
        say(stream, "%s", IMPORT_NO_HISTORY_ANSWER);
    card_sentence_print(stream, page->card, result->profile);
    if (result->passed)
        return AR_OK;
    card_costs_print(stream, result->costs_of);
    print_state(stream, result);
    print_ladder(stream, result);
    AR_TRY(print_pins(stream, result, error));
    print_helpers(stream, result);
    if (page->as_driver && result->cause != REPLAY_CAUSE_DRIVER)
        say(stream, "Segments lie where the driver of a card puts them, as in `advise`; in `run` "
                    "and `capacity` they do with -d sim:addresses=driver.");
    return AR_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

#define SCHEMA "allocrig.explain/1"

static void put_request(struct json_writer *json, const struct explain_result *result)
{
    static const char *const kinds[] = {"block", "beside"};
    json_begin_object(json, "request");
    json_put_text(json, "kind", kinds[result->kind]);
    JSON_PUT(json, result, event, id, bytes, stream);
    json_put_text(json, "tag", result->tag[0] ? result->tag : NULL);
    json_put_some(json, "step", result->step <= result->steps ? result->step : 0);
    json_put_some(json, "steps", result->steps);
    json_end_object(json);
}

static void put_state(struct json_writer *json, const struct explain_result *result)
{
    static const char *const efforts[] = {"no_call_bytes", "map_bytes", "wait_bytes", "trim_bytes"};
    const struct ar_policy_totals *totals = &result->totals;
    json_begin_object(json, "state");
    json_put_bounded(json, "capacity_bytes", result->capacity_bytes);
    json_put_text(json, "profile", result->profile);
    if (result->costs_of[0])
        json_put_text(json, "costs_of", result->costs_of);
    json_put_some(json, "limit_bytes", result->limit_bytes);
    JSON_PUT(json, totals, live_bytes, granted_bytes, reserved_bytes);
    json_put_bounded(json, "device_free_bytes", result->device_free_bytes);
    json_put_integer(json, "policy_free_bytes", ar_policy_free_bytes(totals));
    json_put_integer(json, "pending_bytes", totals->pending_bytes);
    JSON_PUT(json, result, others_bytes, outside_bytes);
    json_end_object(json);
    if (result->opaque) {
        json_put_null(json, "servable");
        return;
    }
    json_begin_object(json, "servable");
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++)
        json_put_bounded(json, efforts[effort], result->servable_bytes[effort]);
    json_end_object(json);
}

static void put_ladder(struct json_writer *json, const struct cause_ladder *ladder)
{
    json_begin_object(json, "ladder");
    json_put_bool(json, "again", ladder->again);
    if (ladder->beside) {
        json_put_bounded(json, "cached_bytes", ladder->cached_bytes);
        json_put_null(json, "same_bytes");
    } else {
        json_put_null(json, "cached_bytes");
        json_put_bounded(json, "same_bytes", ladder->same_bytes);
    }
    json_put_bounded(json, "other_bytes", ladder->other_bytes);
    json_put_bounded(json, "pending_bytes", ladder->pending_bytes);
    json_put_bounded(json, "tenant_bytes", ladder->tenant_bytes);
    json_put_bounded(json, "outside_bytes", ladder->outside_bytes);
    json_end_object(json);
}

static void put_index(struct json_writer *json, const char *name,
                      const struct explain_result *result, double index)
{
    json_put_known_real(json, name, result->kind == EXPLAIN_REQUEST, index);
}

static void put_pins(struct json_writer *json, const struct explain_result *result)
{
    if (result->opaque) {
        json_put_null(json, "holes");
        json_put_null(json, "pins");
        return;
    }
    json_begin_object(json, "holes");
    json_put_integer(json, "count", result->free_blocks);
    json_put_integer(json, "bytes", result->free_block_bytes);
    json_put_integer(json, "largest_bytes", result->largest_free_block_bytes);
    put_index(json, "external_fragmentation", result, result->indices.external);
    put_index(json, "unusable_free_index", result, result->indices.unusable);
    if (result->indices.fragmentation < 0 || result->kind != EXPLAIN_REQUEST) /* it is served */
        json_put_null(json, "fragmentation_index");
    else
        json_put_real(json, "fragmentation_index", result->indices.fragmentation);
    json_put_some(json, "stretch_bytes", result->stretch_bytes);
    JSON_PUT(json, result, stretch_blocks, stretch_live_bytes);
    json_end_object(json);
    json_begin_array(json, "pins");
    for (size_t i = 0; i < result->pinning_block_count; i++) {
        const struct explain_pinning_block *pin = &result->pinning_blocks[i];
        json_begin_object(json, NULL);
        JSON_PUT(json, pin, address, bytes);
        json_put_integer(json, "free_beside_bytes", pin->free_bytes);
        JSON_PUT(json, pin, event, age_events, age_bytes);
        json_put_some(json, "step", pin->step);
        JSON_PUT(json, pin, stream, in_stretch);
        json_put_text(json, "tag", pin->tag[0] ? pin->tag : NULL);
        json_end_object(json);
    }
    json_end_array(json);
}

static void put_helpers(struct json_writer *json, const struct explain_result *result)
{
    char advice[1024];
    explain_page_advice(result, advice, sizeof advice);
    json_put_text(json, "advice", advice[0] ? advice : NULL);
    json_begin_array(json, "helps");
    for (size_t i = 0; i < result->rerun_count; i++) {
        const struct candidate *candidate = &result->reruns[i].candidate;
        const struct trial *trial = &result->reruns[i].trial;
        char setting[640];
        candidate_setting(candidate, result->release, trial->setting, setting, sizeof setting);
        json_begin_object(json, NULL);
        json_put_text(json, "policy", candidate->spec);
        json_put_bool(json, "own", candidate->own);
        json_put_text(json, "setting", candidate->own && setting[0] ? setting : NULL);
        json_put_text(json, "cost", candidate->cost);
        JSON_PUT(json, trial, peak_physical_bytes, retries, flushes);
        json_put_known_real(json, "slowdown", trial->slowdown > 0, trial->slowdown);
        json_end_object(json);
    }
    json_end_array(json);
    json_put_integer(json, "tried", result->rerun_tried);
    json_put_some(json, "more_capacity_bytes", result->more_capacity_bytes);
    JSON_PUT(json, result, live_peak_bytes, live_peak_event);
}

void explain_json_begin(struct json_writer *json, FILE *stream)
{
    *json = (struct json_writer){.stream = stream};
    json_begin_object(json, NULL);
    json_put_text(json, "schema", SCHEMA);
    json_begin_array(json, "runs");
}

void explain_json_run(struct json_writer *json, const struct explain_page *page)
{
    const struct explain_result *result = page->result;
    json_begin_object(json, NULL);
    JSON_PUT(json, page, workload, policy);
    json_put_text(json, "frees", replay_frees_name(page->frees));
    json_put_text(json, "capacity_from", card_source_name(page->card->source));
    json_put_bool(json, "passed", result->passed);
    if (!result->passed) {
        json_put_bool(json, "caught", page->caught);
        json_put_text(json, "cause", replay_cause_name(result->cause));
        json_put_text(json, "problem", result->problem[0] ? result->problem : NULL);
        put_request(json, result);
        put_state(json, result);
        put_ladder(json, &result->ladder);
        put_pins(json, result);
        put_helpers(json, result);
    }
    json_end_object(json);
}

void explain_json_end(struct json_writer *json)
{
    json_end_array(json);
    json_end_object(json);
}

/* ---- a message ------------------------------------------------------------------------------ */

static const char *figure_key(enum message_figure_name name, char text[32])
{
    static const char *const names[MESSAGE_FIGURE_COUNT] = {
#define X(name, text) #name,
        MESSAGE_FIGURES(X)
#undef X
    };
    size_t i = 0;
    for (; names[name][i] && i < 31; i++)
        text[i] = (char)tolower((unsigned char)names[name][i]);
    text[i] = '\0';
    return text;
}

static void put_figures(struct json_writer *json, const struct message *message)
{
    char key[32];
    json_begin_object(json, "figures");
    for (enum message_figure_name i = 0; i < MESSAGE_FIGURE_COUNT; i++) {
        const struct message_figure *figure = &message->figures[i];
        if (!figure->known)
            continue;
        json_begin_object(json, figure_key(i, key));
        json_put_integer(json, "bytes", figure->bytes);
        if (figure->or_more)
            json_put_bool(json, "or_more", true);
        json_put_integer(json, "rounded_by_bytes", figure->coarse_bytes);
        json_put_bool(json, "computed", figure->derived);
        json_end_object(json);
    }
    json_end_object(json);
    json_begin_array(json, "missing");
    for (enum message_figure_name i = 0; i < MESSAGE_FIGURE_COUNT; i++)
        if (message_missing(message, i))
            json_put_text(json, NULL, figure_key(i, key));
    json_end_array(json);
}

/* Why the cause is not sure, and the figures that contradict each other. */
static void put_reservations(struct json_writer *json, const struct message *message)
{
    json_begin_array(json, "because");
    for (enum message_reason i = 0; i < MESSAGE_REASON_COUNT; i++)
        if (message->reasons & (1u << i))
            json_put_text(json, NULL, message_reason_text(i));
    json_end_array(json);
    json_begin_array(json, "contradictions");
    for (enum message_contradiction i = 0; i < MESSAGE_CONTRADICTION_COUNT; i++)
        if (message->contradictions & (1u << i))
            json_put_text(json, NULL, message_contradiction_text(i));
    json_end_array(json);
}

void explain_json_message(FILE *stream, const struct message *message)
{
    char advice[1024];
    struct json_writer json = {.stream = stream};
    json_begin_object(&json, NULL);
    json_put_text(&json, "schema", SCHEMA);
    json_begin_object(&json, "message");
    json_put_text(&json, "cause", message_cause_name(message->cause));
    json_put_text(&json, "meaning", message_page_meaning(message));
    json_put_text(&json, "confidence", message_confidence_name(message->confidence));
    json_put_text(&json, "framework", message_framework_name(message->framework));
    json_put_text(&json, "device", message->device[0] ? message->device : NULL);
    json_put_text(&json, "allocator", message->allocator[0] ? message->allocator : NULL);
    put_figures(&json, message);
    put_reservations(&json, message);
    json_put_integer(&json, "messages", message->count);
    JSON_PUT(&json, message, taken, segment_asked, may_fail, type_assumed);
    json_put_bool(&json, "whole_limit_assumed", message->whole_limit);
    json_put_bool(&json, "process_figures_left_out", message->no_figures_taken);
    json_put_bool(&json, "process_guessed", message->process_guessed);
    json_put_bool(&json, "host_memory", message->host);
    json_put_bool(&json, "process_killed", message->killed);
    json_put_bool(&json, "close", message->close);
    json_put_text(&json, "advice", message_page_advice(message, advice, sizeof advice));
    json_end_object(&json);
    json_end_object(&json);
}
