/* JSON and CSV of `twin`. */

#include "bench/report/data_writer.h"
#include "bench/report/twin_page.h"

static const char *const stages[] = {
    [TWIN_START] = "start", [TWIN_CYCLE] = "cycle", [TWIN_END] = "end"};

static void write_amounts(struct json_writer *json, const char *key,
                          const struct twin_result *result, struct twin_amounts amounts)
{
    json_begin_object(json, key);
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[amounts.first + i];
        if (amount->bytes)
            json_put_integer(json, result->owners[amount->owner].name, amount->bytes);
    }
    json_end_object(json);
}

static void write_rank(struct json_writer *json, const struct twin_page *page, size_t phase,
                       size_t rank)
{
    const struct twin_rank_state *state = twin_rank_at(page->result, phase, rank);
    const struct twin_rank *at = &page->result->ranks[rank];
    json_begin_object(json, NULL);
    json_put_text(json, "process", page->scenario->processes[at->process].name);
    json_put_integer(json, "card", at->card);
    JSON_PUT(json, state, allocated_bytes, reserved_bytes, physical_bytes, asleep_bytes,
             outside_bytes, context_bytes);
    json_put_integer(json, "residue_bytes", twin_residue(state));
    JSON_PUT(json, state, pinned_bytes, peak_allocated_bytes, peak_reserved_bytes, ns);
    json_end_object(json);
}

static void write_phase(struct json_writer *json, const struct twin_page *page, size_t phase)
{
    const struct twin_result *result = page->result;
    const struct twin_phase *at = &result->phases[phase];
    size_t process;
    json_begin_object(json, NULL);
    json_put_text(json, "step", at->text);
    json_put_text(json, "stage", stages[at->stage]);
    json_put_integer(json, "cycle", at->cycle);
    json_put_bool(json, "releases", twin_answer_sleeps(page->scenario, at->text, &process));
    json_begin_array(json, "cards");
    for (unsigned card = 0; card < result->card_count; card++) {
        const struct twin_card_state *state = twin_card_at(result, phase, card);
        json_begin_object(json, NULL);
        JSON_PUT(json, state, used_bytes, free_bytes);
        write_amounts(json, "owners", result, state->amounts);
        json_put_integer(json, "peak_bytes", state->peak_bytes);
        write_amounts(json, "peak_owners", result, state->peak_amounts);
        json_end_object(json);
    }
    json_end_array(json);
    json_begin_array(json, "ranks");
    for (size_t rank = 0; rank < result->rank_count; rank++)
        write_rank(json, page, phase, rank);
    json_end_array(json);
    json_end_object(json);
}

static void write_drift(struct json_writer *json, const struct twin_result *result)
{
    json_begin_array(json, "drift");
    for (size_t phase = 0; phase < result->phase_count; phase++) {
        const struct twin_phase *at = &result->phases[phase];
        for (unsigned card = 0; card < result->card_count; card++) {
            double bytes;
            if (at->stage != TWIN_CYCLE || at->cycle != 1 ||
                !twin_drift(result, at->place, card, TWIN_WARM_CYCLES, &bytes))
                continue;
            json_begin_object(json, NULL);
            json_put_text(json, "step", at->text);
            json_put_integer(json, "card", card);
            json_put_real(json, "bytes_per_cycle", bytes);
            json_end_object(json);
        }
    }
    json_end_array(json);
}

static void write_pins(struct json_writer *json, const struct twin_result *result)
{
    json_begin_array(json, "pinning_blocks");
    for (size_t i = 0; i < result->pin_count; i++) {
        const struct twin_pin *pin = &result->pins[i];
        json_begin_object(json, NULL);
        json_put_integer(json, "phase", pin->phase);
        json_put_integer(json, "card", result->ranks[pin->rank].card);
        JSON_PUT(json, pin, keeps_bytes, bytes, segment_bytes);
        json_put_text(json, "owner", result->owners[pin->owner].name);
        json_put_text(json, "tag", pin->tag);
        size_t born = pin->born.text ? twin_phase_find(result, pin->born.stage, pin->born.cycle,
                                                       pin->born.place)
                                     : SIZE_MAX;
        json_put_known(json, "born_phase", born != SIZE_MAX, born);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_figures(struct json_writer *json, const struct twin_page *page)
{
    const struct twin_result *result = page->result;
    json_begin_array(json, "figures");
    for (size_t i = 0; i < result->figure_count; i++) {
        const struct twin_figure *figure = &result->figures[i];
        json_begin_object(json, NULL);
        json_put_text(json, "part", page->scenario->parts[figure->part].name);
        JSON_PUT(json, figure, rank, name, value, phase);
        json_end_object(json);
    }
    json_end_array(json);
    json_begin_array(json, "lines");
    for (size_t i = 0; i < result->line_count; i++) {
        json_begin_object(json, NULL);
        json_put_text(json, "part", page->scenario->parts[result->lines[i].part].name);
        JSON_PUT(json, &result->lines[i], rank, phase, text);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_caches(struct json_writer *json, const struct twin_page *page)
{
    json_begin_array(json, "caches");
    for (size_t i = 0; i < page->cache_count; i++) {
        const struct twin_page_cache *cache = &page->caches[i];
        json_begin_object(json, NULL);
        json_put_text(json, "part", page->scenario->parts[cache->part].name);
        JSON_PUT(json, cache, option, now, safe);
        json_put_real(json, "kv_blocks", cache->blocks);
        json_put_real(json, "kv_tokens", cache->tokens);
        json_put_real(json, "bytes", cache->bytes);
        json_put_text(json, "next", cache->why[0] ? cache->why : NULL);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_reported(struct json_writer *json, const struct twin_page *page)
{
    JSON_PUT(json, page, source, tolerance);
    json_begin_array(json, "reported");
    for (size_t i = 0; i < page->reported_count; i++) {
        const struct twin_page_reported *one = &page->reported[i];
        json_begin_object(json, NULL);
        json_put_text(json, "figure", one->text);
        JSON_PUT(json, one, given, value);
        json_put_known_real(json, "twin", one->known, one->our_value);
        json_put_bool(json, "agrees", one->known && one->agrees);
        if (page->range_count) {
            json_put_known_real(json, "least", one->has_range, one->least);
            json_put_known_real(json, "most", one->has_range, one->most);
            json_put_bool(json, "in_range", one->in_range);
            json_put_text(json, "nearest", one->nearest[0] ? one->nearest : NULL);
        }
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_unknown(struct json_writer *json, const struct twin_page *page)
{
    if (!page->range_count)
        return;
    json_begin_object(json, "unknown");
    json_put_integer(json, "combinations", page->range_count);
    json_put_integer(json, "fit", page->range_fits);
    json_put_known(json, "least_peak_bytes", page->range_fits, page->range_least_peak_bytes);
    json_put_known(json, "most_peak_bytes", page->range_fits, page->range_most_peak_bytes);
    json_end_object(json);
}

static void write_whatifs(struct json_writer *json, const struct twin_page *page)
{
    json_begin_array(json, "what_ifs");
    for (size_t i = 0; i < page->whatif_count; i++) {
        const struct twin_page_whatif *one = &page->whatifs[i];
        json_begin_object(json, NULL);
        JSON_PUT(json, one, text, runs, passes, refused, now_fits);
        json_put_real(json, "peak_saved_bytes", one->peak_saved);
        json_put_known_real(json, "residue_saved_bytes", one->has_residue, one->residue_saved);
        json_put_text(json, "why", one->why[0] ? one->why : NULL);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_outcome(struct json_writer *json, const struct twin_page *page)
{
    static const char *const outcomes[] = {
        [TWIN_PASSED] = "fits", [TWIN_OUT_OF_MEMORY] = "out of memory", [TWIN_REFUSED] = "refused"};
    const struct twin_result *result = page->result;
    char why[400];
    json_put_text(json, "outcome", outcomes[result->outcome]);
    json_put_integer(json, "card_bytes", result->total_bytes);
    if (result->outcome == TWIN_PASSED)
        return;
    twin_answer_failure(page->scenario, result, why, sizeof why);
    json_begin_object(json, "failure");
    json_put_text(json, "why", why);
    json_put_known(json, "phase", result->failure.phase < result->phase_count,
                   result->failure.phase);
    JSON_PUT(json, &result->failure, action, bytes);
    json_put_text(json, "cause", replay_cause_name(result->failure.cause));
    json_end_object(json);
}

static void write_peak(struct json_writer *json, const struct twin_page *page)
{
    const struct twin_peak peak = twin_answer_peak(page->result);
    size_t phase, process;
    if (peak.phase == SIZE_MAX)
        return;
    json_begin_object(json, "peak");
    JSON_PUT(json, &peak, bytes, phase, card);
    json_end_object(json);
    if (!twin_answer_last_sleep(page->scenario, page->result, &phase, &process))
        return;
    json_begin_object(json, "residue");
    json_put_integer(json, "bytes", twin_answer_residue(page->result, phase, process));
    json_put_integer(json, "phase", phase);
    json_put_text(json, "process", page->scenario->processes[process].name);
    json_end_object(json);
}

void twin_json_write(FILE *stream, const struct twin_page *page)
{
    struct json_writer writer = {.stream = stream}, *json = &writer;
    json_begin_object(json, NULL);
    json_put_text(json, "schema", "allocrig.twin/1");
    json_put_text(json, "name", page->name);
    json_put_text(json, "device", page->scenario->device ? page->scenario->device : "sim");
    json_put_integer(json, "cards", page->result->card_count);
    json_put_integer(json, "cycles", twin_answer_cycles(page->result));
    json_put_integer(json, "events", page->result->events);
    write_outcome(json, page);
    write_peak(json, page);
    json_begin_array(json, "phases");
    for (size_t phase = 0; phase < page->result->phase_count; phase++)
        write_phase(json, page, phase);
    json_end_array(json);
    write_drift(json, page->result);
    write_pins(json, page->result);
    write_figures(json, page);
    write_caches(json, page);
    write_reported(json, page);
    write_unknown(json, page);
    write_whatifs(json, page);
    json_end_object(json);
}

static void begin_row(FILE *stream, const struct twin_page *page, size_t phase, unsigned card,
                      const char *moment)
{
    const struct twin_phase *at = &page->result->phases[phase];
    fprintf(stream, "%zu,%s,%" PRIu64 ",", phase, stages[at->stage], at->cycle);
    csv_text(stream, at->text);
    fprintf(stream, ",%u,%s,", card, moment);
}

static void write_rows(FILE *stream, const struct twin_page *page, size_t phase, unsigned card,
                       const char *moment, struct twin_amounts amounts)
{
    const struct twin_result *result = page->result;
    for (size_t i = 0; i < amounts.count; i++) {
        const struct twin_amount *amount = &result->amounts[amounts.first + i];
        begin_row(stream, page, phase, card, moment);
        csv_text(stream, result->owners[amount->owner].name);
        fprintf(stream, ",%s,%" PRIu64 ",%" PRIu64 "\n",
                twin_owner_kind_name(result->owners[amount->owner].kind), amount->bytes,
                amount->asleep_bytes);
    }
}

void twin_series_write(FILE *stream, const struct twin_page *page)
{
    fputs("phase,stage,cycle,step,card,moment,owner,kind,bytes,asleep_bytes\n", stream);
    for (size_t phase = 0; phase < page->result->phase_count; phase++)
        for (unsigned card = 0; card < page->result->card_count; card++) {
            const struct twin_card_state *state = twin_card_at(page->result, phase, card);
            write_rows(stream, page, phase, card, "peak", state->peak_amounts);
            write_rows(stream, page, phase, card, "end", state->amounts);
            begin_row(stream, page, phase, card, "end");
            fprintf(stream, "free,free,%" PRIu64 ",0\n", state->free_bytes);
        }
}
