/* One replay of a cell, with what is compared kept in memory; and the comparison: placements and
 * the driver's calls (kind, size, refused) event by event, then outcome, peaks and counts. Polls of
 * events are left out, since they depend on time. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiment/session.h"
#include "sim/observer.h"
#include "tests/gpu/cells.h"

/* Makes room for one more of `size` bytes each. */
static bool has_room(void **items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return true;
    size_t more = *room ? 2 * *room : 1024;
    void *grown = realloc(*items, more * size);
    if (!grown)
        return false;
    *items = grown;
    *room = more;
    return true;
}

static enum ar_status keep_row(void *argument, const struct replay_row *row, struct ar_error *error)
{
    struct cell_tape *tape = argument;
    void *rows = tape->rows;
    AR_TRY_MEMORY(has_room(&rows, tape->row_count, &tape->row_room, sizeof *tape->rows), error,
                  "the placements");
    tape->rows = rows;
    tape->rows[tape->row_count++] = *row;
    return AR_OK;
}

/* A call that finds no room is counted, so that the comparison finds it missing. */
static void keep_call(void *argument, const struct observer_driver_call *made)
{
    struct cell_tape *tape = argument;
    void *calls = tape->calls;
    if (made->call == AR_DEVICE_CALL_event)
        return;
    if (has_room(&calls, tape->call_count, &tape->call_room, sizeof *tape->calls)) {
        tape->calls = calls;
        tape->calls[tape->call_count++] =
            (struct cell_call){made->event, made->bytes, made->call, made->refused};
    }
}

static enum ar_status replay(struct session *session, struct trace_source *trace,
                             enum replay_frees frees, bool verify, const struct observer *observer,
                             struct cell_tape *tape, struct ar_error *error)
{
    const struct replay_config config = {
        .policy = session->policy,
        .device = session->device,
        .source = trace,
        .frees = frees,
        .policy_host = &session->host,
        .limit_bytes = session->limit_bytes,
        .verify = verify,
        .observer = observer,
        .tap = session->tap,
    };
    enum ar_status status = session_plan(session, trace, frees, error);
    if (!status)
        status = trace_rewind(trace, error);
    return status ? status : replay_run(&config, &tape->result, error);
}

enum ar_status cell_play(const char *policy, const char *device, struct trace_source *trace,
                         enum replay_frees frees, bool verify, bool keep, struct cell_tape *tape,
                         struct ar_error *error)
{
    struct ar_spec policy_spec, device_spec;
    struct session session;
    const struct observer observer = {.row = keep_row, .driver_call = keep_call, .argument = tape};
    *tape = (struct cell_tape){0};
    enum ar_status status = ar_spec_parse(policy, &policy_spec, error);
    if (status)
        return status;
    status = ar_spec_parse(device, &device_spec, error);
    if (!status) {
        status =
            session_open(&session, &policy_spec, &device_spec, 1, keep ? &observer : NULL, error);
        if (!status) {
            status = replay(&session, trace, frees, verify, keep ? &observer : NULL, tape, error);
            if (!status && session.tap)
                status = tap_end(session.tap, error);
            session_close(&session);
        }
        ar_spec_close(&device_spec);
    }
    ar_spec_close(&policy_spec);
    return status;
}

void cell_tape_close(struct cell_tape *tape)
{
    replay_result_close(&tape->result);
    free(tape->rows);
    free(tape->calls);
    *tape = (struct cell_tape){0};
}

/* ---- comparing ------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void say(char *text, size_t text_bytes,
                                                      const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, text_bytes - used, format, arguments);
    va_end(arguments);
}

static bool same_row(const struct replay_row *a, const struct replay_row *b)
{
    return a->event == b->event && a->op == b->op && a->id == b->id &&
           a->requested_bytes == b->requested_bytes && a->granted_bytes == b->granted_bytes &&
           a->segment == b->segment && a->offset == b->offset &&
           a->granted_total_bytes == b->granted_total_bytes &&
           a->reserved_bytes == b->reserved_bytes;
}

static void compare_rows(const struct cell_tape *card, const struct cell_tape *sim, char *text,
                         size_t text_bytes)
{
    size_t i = 0;
    while (i < card->row_count && i < sim->row_count && same_row(&card->rows[i], &sim->rows[i]))
        i++;
    if (i < card->row_count && i < sim->row_count)
        say(text, text_bytes, " placements from event %" PRIu64 " on;", card->rows[i].event);
    else if (card->row_count != sim->row_count)
        say(text, text_bytes, " %zu placements on the card, %zu on sim;", card->row_count,
            sim->row_count);
}

static void compare_calls(const struct cell_tape *card, const struct cell_tape *sim, char *text,
                          size_t text_bytes)
{
    size_t i = 0;
    for (; i < card->call_count && i < sim->call_count; i++) {
        const struct cell_call *a = &card->calls[i], *b = &sim->calls[i];
        if (a->event != b->event || a->call != b->call || a->bytes != b->bytes ||
            a->refused != b->refused)
            break;
    }
    if (i == card->call_count && i == sim->call_count)
        return;
    say(text, text_bytes, " calls (%zu on the card, %zu on sim", card->call_count, sim->call_count);
    if (i < card->call_count)
        say(text, text_bytes, ", first on the card at event %" PRIu64 ": %s %" PRIu64 "%s",
            card->calls[i].event, ar_device_call_name(card->calls[i].call), card->calls[i].bytes,
            card->calls[i].refused ? " refused" : "");
    say(text, text_bytes, ");");
}

static void compare_metrics(const struct cell_tape *card, const struct cell_tape *sim, char *text,
                            size_t text_bytes)
{
    static const enum metric exact[] = {
        METRIC_events,
        METRIC_allocs,
        METRIC_frees,
        METRIC_failed_allocs,
        METRIC_failed_probes,
        METRIC_first_failed_event,
        METRIC_failed_by_fragmentation,
        METRIC_failed_by_pending,
        METRIC_failed_by_tenant,
        METRIC_failed_by_outside,
        METRIC_failed_by_capacity,
        METRIC_peak_live_bytes,
        METRIC_peak_granted_bytes,
        METRIC_peak_reserved_bytes,
        METRIC_end_reserved_bytes,
        METRIC_retries,
        METRIC_flushes,
        METRIC_remapped_bytes,
    };
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++) {
        const struct metric_value *a = &card->result.metrics.at[exact[i]];
        const struct metric_value *b = &sim->result.metrics.at[exact[i]];
        if (a->kind != b->kind || a->integer != b->integer)
            say(text, text_bytes, " %s %" PRIu64 " on the card, %" PRIu64 " on sim;",
                metric_info(exact[i])->name, a->integer, b->integer);
    }
    if (card->result.passed != sim->result.passed || card->result.cause != sim->result.cause)
        say(text, text_bytes, " %s on the card, %s on sim;",
            card->result.passed ? "finished" : replay_cause_name(card->result.cause),
            sim->result.passed ? "finished" : replay_cause_name(sim->result.cause));
}

void cell_compare(const struct cell_tape *card, const struct cell_tape *sim, char *text,
                  size_t text_bytes)
{
    text[0] = '\0';
    compare_rows(card, sim, text, text_bytes);
    compare_calls(card, sim, text, text_bytes);
    compare_metrics(card, sim, text, text_bytes);
    if (!text[0] && !card->row_count)
        say(text, text_bytes, " no placement was seen;");
}
