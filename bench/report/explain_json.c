#include "bench/report/explain_page.h"

#include "bench/report/card_sentence.h"

#include <ctype.h>

#define SCHEMA "allocrig.explain/1"

static void put_request(struct json_writer *json, const struct explain_result *result)
{
    static const char *const kinds[] = {"block", "beside", "launch"};
    json_begin_object(json, "request");
    json_put_text(json, "kind", kinds[result->kind]);
    json_put_integer(json, "event", result->event);
    json_put_integer(json, "id", result->id);
    json_put_integer(json, "bytes", result->bytes);
    json_put_integer(json, "stream", result->stream);
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
    json_put_integer(json, "live_bytes", totals->live_bytes);
    json_put_integer(json, "granted_bytes", totals->granted_bytes);
    json_put_integer(json, "reserved_bytes", totals->reserved_bytes);
    json_put_bounded(json, "device_free_bytes", result->device_free_bytes);
    json_put_integer(json, "policy_free_bytes", ar_policy_free_bytes(totals));
    json_put_integer(json, "pending_bytes", totals->pending_bytes);
    json_put_integer(json, "others_bytes", result->others_bytes);
    json_put_integer(json, "outside_bytes", result->outside_bytes);
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
    if (result->kind == EXPLAIN_REQUEST)
        json_put_real(json, name, index);
    else
        json_put_null(json, name);
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
    json_put_integer(json, "stretch_blocks", result->stretch_blocks);
    json_put_integer(json, "stretch_live_bytes", result->stretch_live_bytes);
    json_end_object(json);
    json_begin_array(json, "pins");
    for (size_t i = 0; i < result->pinning_block_count; i++) {
        const struct explain_pinning_block *pin = &result->pinning_blocks[i];
        json_begin_object(json, NULL);
        json_put_integer(json, "address", pin->address);
        json_put_integer(json, "bytes", pin->bytes);
        json_put_integer(json, "free_beside_bytes", pin->free_bytes);
        json_put_integer(json, "event", pin->event);
        json_put_integer(json, "age_events", pin->age_events);
        json_put_integer(json, "age_bytes", pin->age_bytes);
        json_put_some(json, "step", pin->step);
        json_put_integer(json, "stream", pin->stream);
        json_put_bool(json, "in_stretch", pin->in_stretch);
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
        json_put_integer(json, "peak_physical_bytes", trial->peak_physical_bytes);
        json_put_integer(json, "retries", trial->retries);
        json_put_integer(json, "flushes", trial->flushes);
        if (trial->slowdown > 0)
            json_put_real(json, "slowdown", trial->slowdown);
        else
            json_put_null(json, "slowdown");
        json_end_object(json);
    }
    json_end_array(json);
    json_put_integer(json, "tried", result->rerun_tried);
    json_put_some(json, "more_capacity_bytes", result->more_capacity_bytes);
    json_put_integer(json, "live_peak_bytes", result->live_peak_bytes);
    json_put_integer(json, "live_peak_event", result->live_peak_event);
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
    json_put_text(json, "workload", page->workload);
    json_put_text(json, "policy", page->policy);
    json_put_text(json, "frees", replay_frees_name(page->frees));
    json_put_text(json, "capacity_from", card_source_name(page->card->source));
    json_put_bool(json, "passed", result->passed);
    if (!result->passed) {
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
    json_put_text(&json, "meaning", message_cause_meaning(message->cause));
    json_put_text(&json, "confidence", message_confidence_name(message->confidence));
    json_put_text(&json, "framework", message_framework_name(message->framework));
    json_put_text(&json, "device", message->device[0] ? message->device : NULL);
    json_put_text(&json, "allocator", message->allocator[0] ? message->allocator : NULL);
    put_figures(&json, message);
    put_reservations(&json, message);
    json_put_integer(&json, "messages", message->count);
    json_put_integer(&json, "taken", message->taken);
    json_put_bool(&json, "segment_asked", message->segment_asked);
    json_put_bool(&json, "may_fail", message->may_fail);
    json_put_bool(&json, "type_assumed", message->type_assumed);
    json_put_bool(&json, "whole_limit_assumed", message->whole_limit);
    json_put_bool(&json, "process_figures_left_out", message->no_figures_taken);
    json_put_bool(&json, "process_guessed", message->process_guessed);
    json_put_bool(&json, "host_memory", message->host);
    json_put_bool(&json, "close", message->close);
    json_put_text(&json, "advice", message_page_advice(message, advice, sizeof advice));
    json_end_object(&json);
    json_end_object(&json);
}
