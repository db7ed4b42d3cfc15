/* Where and how results were made: `context` of results.json, and the card for people. */
#include "bench/report/result_writers.h"

#include <unistd.h>

#include "allocators/base/size.h"
#include "bench/report/sentence.h"

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static void put_known(struct json_writer *json, const char *key, int64_t number)
{
    json_put_known(json, key, number >= 0, (uint64_t)number);
}

static void put_mode(struct json_writer *json, const char *key, int mode)
{
    if (mode < 0)
        json_put_null(json, key);
    else
        json_put_bool(json, key, mode > 0);
}

/* How memory is allocated depends on these variables, so a result holds them. */
static void write_variables(struct json_writer *json)
{
    json_begin_object(json, "variables");
    for (char **at = environ; at && *at; at++) {
        char name[128];
        if (!environment_is_allocator_variable(*at))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        json_put_text(json, name, strchr(*at, '=') + 1);
    }
    json_end_object(json);
}

static void write_state(struct json_writer *json, const char *key, const struct nvml_state *state)
{
    json_begin_object(json, key);
    put_known(json, "sm_clock_mhz", state->sm_clock_mhz);
    put_known(json, "memory_clock_mhz", state->memory_clock_mhz);
    put_known(json, "throttle_reasons", state->throttle_reasons);
    put_known(json, "power_limited_ns", state->power_limited_ns);
    put_known(json, "heat_limited_ns", state->heat_limited_ns);
    put_known(json, "temperature_c", state->temperature_c);
    put_known(json, "power_mw", state->power_mw);
    put_known(json, "used_bytes", state->used_bytes);
    json_begin_array(json, "other_processes");
    for (int64_t i = 0; i < state->process_count && i < NVML_PROCESSES_MOST; i++) {
        json_begin_object(json, NULL);
        json_put_integer(json, "process", state->processes[i].process);
        put_known(json, "bytes", state->processes[i].bytes);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void write_card(struct json_writer *json, const struct nvml_card *card)
{
    if (!card->present) {
        json_put_null(json, "card");
        return;
    }
    json_begin_object(json, "card");
    json_put_text(json, "name", or_null(card->name));
    json_put_text(json, "uuid", or_null(card->uuid));
    json_put_text(json, "driver", or_null(card->driver));
    json_put_text(json, "cuda", or_null(card->cuda));
    json_put_text(json, "bus", or_null(card->bus));
    put_known(json, "numa_node", card->numa_node);
    put_known(json, "sm_clock_max_mhz", card->sm_clock_max_mhz);
    put_known(json, "memory_clock_max_mhz", card->memory_clock_max_mhz);
    put_known(json, "sm_clock_set_mhz", card->sm_clock_set_mhz);
    put_known(json, "memory_clock_set_mhz", card->memory_clock_set_mhz);
    put_known(json, "power_limit_mw", card->power_limit_mw);
    put_mode(json, "ecc", card->ecc);
    put_mode(json, "mig", card->mig);
    put_mode(json, "persistence", card->persistence);
    put_known(json, "virtualisation", card->virtualised);
    write_state(json, "before", &card->before);
    write_state(json, "after", &card->after);
    json_end_object(json);
}

void context_json_write(struct json_writer *json, const struct environment *environment)
{
    json_begin_object(json, "context");
    json_put_text(json, "version", environment->build->version);
    JSON_PUT(json, environment, time, host, kernel, cpu, cpus);
    json_put_text(json, "governor", or_null(environment->governor));
    json_put_text(json, "hypervisor", or_null(environment->hypervisor));
    json_put_text(json, "machine", or_null(environment->machine));
    json_put_text(json, "numa_nodes", or_null(environment->numa_nodes));
    JSON_PUT(json, environment->build, compiler, flags, variant, commit, dirty);
    json_put_integer(json, "seed", environment->seed);
    write_variables(json);
    write_card(json, &environment->card);
    json_begin_array(json, "argv");
    json_put_text(json, NULL, "allocrig");
    for (int i = 0; i < environment->argc; i++)
        json_put_text(json, NULL, environment->argv[i]);
    json_end_array(json);
    json_end_object(json);
}

static const char *mode_text(int mode)
{
    return mode < 0 ? "unknown" : mode ? "on" : "off";
}

/* "1980 MHz", or "?" */
static const char *number_text(int64_t number, const char *unit, char text[32])
{
    if (number < 0)
        return "?";
    snprintf(text, 32, "%" PRId64 "%s%s", number, unit[0] ? " " : "", unit);
    return text;
}

static void warn_of_throttling(FILE *stream, const struct nvml_card *card)
{
    char reasons[160];
    const struct nvml_state *before = &card->before;
    const struct nvml_state *after = &card->after;
    nvml_throttle_text((before->throttle_reasons > 0 ? before->throttle_reasons : 0) |
                           (after->throttle_reasons > 0 ? after->throttle_reasons : 0),
                       reasons, sizeof reasons);
    bool power =
        before->power_limited_ns >= 0 && after->power_limited_ns > before->power_limited_ns;
    bool heat = before->heat_limited_ns >= 0 && after->heat_limited_ns > before->heat_limited_ns;
    if (!reasons[0] && !power && !heat)
        return;
    say(stream,
        "Warning: the card's clocks were reduced (%s%s%s%s%s); times of these runs are those of a "
        "slower card.",
        reasons, reasons[0] && (power || heat) ? "; during the runs: " : "",
        power ? "power limit" : "", power && heat ? ", " : "", heat ? "heat" : "");
}

static void warn_of_others(FILE *stream, const char *when, const struct nvml_state *state)
{
    int64_t bytes = 0;
    if (state->process_count <= 0)
        return;
    for (int64_t i = 0; i < state->process_count && i < NVML_PROCESSES_MOST; i++)
        bytes += state->processes[i].bytes > 0 ? state->processes[i].bytes : 0;
    say(stream,
        "Warning: %s the runs %" PRId64 " other process%s used %s of the card's memory; that can "
        "change times and free memory.",
        when, state->process_count, state->process_count == 1 ? "" : "es",
        AR_SIZE((uint64_t)bytes));
}

void context_card_print(FILE *stream, const struct environment *environment)
{
    const struct nvml_card *card = &environment->card;
    const struct nvml_state *after = &card->after;
    char clock[32], most[32], heat[32], power[32];
    if (!card->present)
        return;
    say(stream,
        "Card: %s, driver %s, CUDA %s; clock %s of at most %s, %s, %s after the runs; ECC %s, MIG "
        "%s, persistence %s%s%s%s.",
        card->name[0] ? card->name : "unknown", card->driver[0] ? card->driver : "unknown",
        card->cuda[0] ? card->cuda : "unknown", number_text(after->sm_clock_mhz, "", clock),
        number_text(card->sm_clock_max_mhz, "MHz", most),
        number_text(after->temperature_c, "C", heat),
        number_text(after->power_mw < 0 ? -1 : after->power_mw / 1000, "W", power),
        mode_text(card->ecc), mode_text(card->mig), mode_text(card->persistence),
        environment->hypervisor[0] ? "; in a virtual machine (" : "", environment->hypervisor,
        environment->hypervisor[0] ? ")" : "");
    warn_of_throttling(stream, card);
    warn_of_others(stream, "before", &card->before);
    warn_of_others(stream, "after", after);
}
