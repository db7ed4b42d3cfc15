/* Advice as JSON. */
#include <string.h>

#include "bench/report/advise_page.h"
#include "bench/report/json_writer.h"

static void put_ratio(struct json_writer *json, const char *name, double ratio)
{
    if (ratio > 0)
        json_put_real(json, name, ratio);
    else
        json_put_null(json, name);
}

static void put_trial(struct json_writer *json, const char *name, const struct trial *trial)
{
    json_begin_object(json, name);
    json_put_bool(json, "passed", trial->begun && trial->passed);
    json_put_bool(json, "certain", !trial->sensitivity);
    if (!trial->begun)
        json_put_text(json, "why", trial->why);
    if (trial->begun && !trial->passed) {
        json_put_integer(json, "first_failed_event", trial->event);
        json_put_text(json, "cause", replay_cause_name(trial->cause));
    }
    json_put_some(json, "peak_reserved_bytes", trial->peak_reserved_bytes);
    json_put_integer(json, "peak_physical_bytes", trial->peak_physical_bytes);
    json_put_integer(json, "retries", trial->retries);
    json_put_integer(json, "flushes", trial->flushes);
    put_ratio(json, "slowdown", trial->slowdown);
    json_end_object(json);
}

static void put_release(struct json_writer *json, const char *name, struct torch_release release)
{
    char text[32];
    snprintf(text, sizeof text, "%u.%u", release.major, release.minor);
    json_put_text(json, name, release.major ? text : NULL);
}

static void put_row(struct json_writer *json, const struct advise_row *row)
{
    json_begin_object(json, NULL);
    json_put_text(json, "policy", row->candidate.spec);
    if (row->candidate.own && row->setting[0])
        json_put_text(json, "setting", row->setting);
    put_release(json, "needs_pytorch", row->needs);
    json_put_some(json, "rank", row->listed ? row->rank : 0);
    if (row->candidate.cost)
        json_put_text(json, "cost", row->candidate.cost);
    json_put_bool(json, "own", row->candidate.own);
    json_put_bool(json, "recorded", row->candidate.given);
    json_put_bool(json, "listed", row->listed);
    json_put_some(json, "safe_bytes", row->safe_bytes);
    put_ratio(json, "safe_slowdown", row->safe_slowdown);
    if (row->listed)
        put_trial(json, "alone", &row->alone);
    put_trial(json, "at_capacity", &row->at);
    json_end_object(json);
}

static void put_page(struct json_writer *json, const struct advise_page *page)
{
    static const char *const fidelities[] = {"not recorded", "agrees", "differs", "not held"};
    static const char *const capacities[] = {
        [ADVISE_FROM_CONFIG] = "asked",    [ADVISE_FROM_LIMIT] = "limit",
        [ADVISE_FROM_DRIVER] = "driver",   [ADVISE_FROM_PRESSURE] = "pressure",
        [ADVISE_FROM_TOTAL] = "total",     [ADVISE_FROM_NAME] = "name",
        [ADVISE_FROM_DEFAULT] = "unknown",
    };
    const struct advise_result *result = page->result;
    const struct advise_row *best = advise_best(result);
    json_begin_object(json, NULL);
    json_put_text(json, "trace", page->path);
    json_put_text(json, "recorder", page->recorder);
    json_put_text(json, "frees", replay_frees_name(page->frees));
    json_put_text(json, "fidelity", fidelities[result->fidelity]);
    json_put_integer(json, "releases", result->releases);
    json_put_some(json, "pressure_bytes", result->pressure.least_bytes);
    json_put_bool(json, "complete", result->complete);
    json_put_integer(json, "live_peak_bytes", result->peak.bytes);
    json_put_integer(json, "live_peak_event", result->peak.event);
    json_put_some(json, "completed_steps_live_peak_bytes", result->step.bytes);
    json_put_some(json, "recorded_peak_reserved_bytes", result->recorded_peak_reserved_bytes);
    json_put_integer(json, "capacity_bytes", result->capacity_bytes);
    json_put_bool(json, "capacity_is_limit", result->as_limit);
    json_put_text(json, "card", result->profile);
    json_put_text(json, "capacity_from", capacities[result->capacity_from]);
    if (result->costs_of[0])
        json_put_text(json, "costs_of", result->costs_of);
    if (best)
        json_put_text(json, "best", best->candidate.spec);
    else
        json_put_null(json, "best");
    json_put_real(json, "uncertainty", result->uncertainty);
    put_release(json, "pytorch", result->release);
    json_begin_array(json, "left_out");
    for (size_t i = 0; i < result->left_out_count; i++) {
        json_begin_object(json, NULL);
        json_put_text(json, "key", result->left_out[i]->name);
        put_release(json, "needs_pytorch", result->left_out[i]->first);
        json_end_object(json);
    }
    json_end_array(json);
    json_begin_array(json, "rows");
    for (size_t i = 0; i < result->tried; i++)
        put_row(json, &result->rows[i]);
    json_end_array(json);
    json_end_object(json);
}

void advise_json_write(FILE *stream, const struct advise_page *pages, size_t count)
{
    struct json_writer json = {.stream = stream};
    json_begin_object(&json, NULL);
    json_put_text(&json, "schema", "allocrig.advise/1");
    json_begin_array(&json, "traces");
    for (size_t i = 0; i < count; i++)
        put_page(&json, &pages[i]);
    json_end_array(&json);
    json_end_object(&json);
}
