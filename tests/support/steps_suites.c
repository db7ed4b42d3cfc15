/* What runs a policy several times, in steps: several processes, advice, comparisons of driver
 * calls, a fixed stream of requests (steps.h). */
#include "allocators/base/fnv.h"
#include "bench/report/model.h"
#include "bench/suite/tenants_suite.h"
#include "sim/advise/advise.h"
#include "sim/advise/fits.h"
#include "sim/sim_device/profile.h"
#include "tests/support/op_script.h"
#include "tests/support/steps_state.h"
#include "tests/support/tiny_trace.h"
#include "workloads/formats/formats.h"

/* ---- several processes ----------------------------------------------------------------------- */

enum { MOST_TENANTS = 4 };
static struct tenant_result tenants[MOST_TENANTS];
static size_t tenant_count;

/* Runs it twice: the same seed gives the same bytes. */
static enum ar_status run_suite(struct steps *s, const struct tenants_suite *suite)
{
    struct tenant_result again[MOST_TENANTS] = {0};
    const struct tenants all = {.cards = suite->cards,
                                .card_count = suite->card_count,
                                .setups = suite->setups,
                                .count = suite->count,
                                .free = suite->free,
                                .seed = suite->seed,
                                .turn_events = suite->turn_events,
                                .host_bytes = suite->host_bytes};
    assert_true(suite->count <= MOST_TENANTS);
    tenant_count = suite->count;
    memset(tenants, 0, sizeof tenants);
    AR_TRY(tenants_run(&all, again, &test_error));
    AR_TRY(tenants_run(&all, tenants, &test_error));
    if (memcmp(tenants, again, sizeof again) != 0)
        steps_wrong(s, "the same run has other figures");
    return AR_OK;
}

static void run_tenants(struct steps *s)
{
    static struct tenants_suite suite;
    char path[LINE];
    steps_word(s, path, sizeof path);
    enum ar_status status = tenants_suite_read(path, &suite, &test_error);
    if (status == AR_OK)
        status = run_suite(s, &suite);
    tenants_suite_close(&suite);
    steps_ended(s, status, test_error.text);
}

/* `tenant N outcome|cause|why TEXT`. */
static void tenant_text(struct steps *s)
{
    static const char *const outcomes[] = {"passed", "refused settings", "no room", "failed",
                                           "crashed"};
    const struct tenant_result *one = &tenants[steps_value(s) % MOST_TENANTS];
    if (steps_take(s, "outcome"))
        steps_is_text(s, outcomes[one->outcome], true);
    else if (steps_take(s, "cause"))
        steps_is_text(s, replay_cause_name(one->cause), true);
    else if (steps_take(s, "why"))
        steps_is_text(s, one->why, false);
    else
        steps_wrong(s, "outcome, cause or why?");
}

static const struct steps_field of_tenants[] = {
#define F(name) FIELD(tenant_result, name),
    F(steps) F(peak_reserved_bytes) F(refused_by) F(refused_bytes) F(failed_step) F(retries_waited)
        F(end_physical_bytes)
#undef F
};

/* ---- advice ---------------------------------------------------------------------------------- */

static struct {
    struct ar_spec device;
    struct advise_result result;
    bool there;
} advice;

static void close_advice(void)
{
    if (advice.there) {
        advise_result_close(&advice.result);
        ar_spec_close(&advice.device);
    }
    advice.there = false;
}

/* The rows of the same kind before this one that have a place of their own: not those that are the
 * same as the recorded one. */
static size_t counted_before(const struct advise_result *result, const struct advise_row *row)
{
    const struct advise_row *given = advise_given(result);
    size_t count = 0;
    for (const struct advise_row *other = result->rows; other < row; other++)
        count += other->candidate.own == row->candidate.own &&
                 (!given || !advise_does_as_recorded(other, given));
    return count;
}

/* Ranks never decrease, needs of one rank are within the uncertainty, those of the next are not,
 * the defaults are first in theirs, nothing that takes 10 % more than another comes before it, and
 * of two policies that take the same memory the faster one comes first. */
static void check_ranks(const struct advise_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct advise_row *row = &result->rows[i], *first = row;
        size_t place = i < result->own_count ? i : i - result->own_count;
        assert_true(row->rank >= 1 && row->rank <= place + 1);
        while (first > result->rows && first[-1].candidate.own == row->candidate.own &&
               first[-1].rank == row->rank)
            first--;
        assert_int_equal(row->rank, counted_before(result, first) + 1);
        for (const struct advise_row *other = first; other < row; other++) {
            uint64_t least =
                other->safe_bytes < row->safe_bytes ? other->safe_bytes : row->safe_bytes;
            uint64_t most = other->safe_bytes + row->safe_bytes - least;
            assert_true(most - least <= advise_uncertain_bytes(result, least));
            if (!row->candidate.own && other->safe_bytes == row->safe_bytes &&
                other->alone.peak_reserved_bytes == row->alone.peak_reserved_bytes &&
                other->wasteful == row->wasteful)
                assert_true(other->safe_slowdown <= row->safe_slowdown);
            if (row->candidate.own && !row->candidate.text[0]) {
                assert_true(row->candidate.keys > 0 || other->candidate.keys == 0);
                assert_true(other->candidate.keys == 0 || !other->wasteful || row->wasteful);
            }
        }
    }
}

/* `advise [capacity=BYTES] [limit=BYTES] [recorder=NAME-VERSION] [cut] [recorded] of events ..`, or
 * of a recording; `predict POLICY of RECORDING`. */
static void advise(struct steps *s, const char *policy)
{
    char recorder[LINE] = "", path[LINE];
    uint64_t limit = 0;
    struct advise_config config = {
        .device = &advice.device, .frees = REPLAY_ORDERED, .seed = 1, .jobs = 2};
    bool cut = false;
    close_advice();
    while (!steps_take(s, "of"))
        if (steps_take(s, "capacity="))
            config.capacity_bytes = steps_value(s);
        else if (steps_take(s, "limit="))
            limit = steps_value(s);
        else if (steps_take(s, "recorder="))
            steps_word(s, recorder, sizeof recorder);
        else if (steps_take(s, "cut"))
            cut = true;
        else if (steps_take(s, "recorded"))
            config.frees = REPLAY_RECORDED;
        else
            steps_wrong(s, "no such word of advice: %s", s->at);
    CLOSED(close_trace) struct trace_source *source = NULL;
    if (steps_take(s, "events")) {
        source = tiny_trace(steps_at_end(s) ? steps_events() : steps_rest(s));
    } else {
        steps_word(s, path, sizeof path);
        assert_ok(trace_open_recording(path, &source, &test_error));
    }
    if (recorder[0]) {
        *strchr(recorder, '-') = ' ';
        (void)snprintf(source->info.recorder, sizeof source->info.recorder, "%.30s", recorder);
    }
    source->info.limit_bytes = limit ? limit : source->info.limit_bytes;
    source->info.complete &= !cut;
    config.source = source;
    assert_ok(ar_spec_parse("sim", &advice.device, &test_error));
    advice.there = true;
    advice.result = (struct advise_result){0};
    if (policy) {
        struct trial trial;
        assert_ok(advise_predict(&config, policy, 0, &trial, &test_error));
        assert_true(trial.passed);
        steps_make(s, "predicted")->value = (long double)trial.peak_reserved_bytes;
        return;
    }
    assert_ok(advise_run(&config, &advice.result, &test_error));
    check_ranks(&advice.result);
}

static void predict(struct steps *s)
{
    char policy[LINE];
    steps_word(s, policy, sizeof policy);
    advise(s, policy);
}

/* `best SPEC`; `best` alone: there is none. */
static void best(struct steps *s)
{
    const struct advise_row *row = advise_best(&advice.result);
    steps_is_text(s, row ? row->candidate.spec : "", true);
}

static bool figure_of_row(struct steps *s, const char *name, long double *value)
{
    static const struct steps_field of_rows[] = {
        FIELD(advise_row, safe_bytes),
        FIELD(advise_row, rank),
        FIELD(advise_row, wasteful),
        STEPS_FIELD("fits", advise_row, at.passed),
        STEPS_FIELD("flushes", advise_row, at.flushes),
        STEPS_FIELD("peak", advise_row, alone.peak_reserved_bytes)};
    char spec[LINE];
    size_t length = strcspn(++s->at, ")");
    snprintf(spec, sizeof spec, "%.*s", (int)length, s->at);
    s->at += length + 1;
    for (size_t i = 0; i < advice.result.tried; i++)
        if (strcmp(advice.result.rows[i].candidate.spec, spec) == 0)
            return STEPS_GET(name, of_rows, &advice.result.rows[i], value);
    steps_wrong(s, "no row %s", spec);
}

static bool figure_of_advice(const char *name, long double *value)
{
    static const struct steps_field of_advice[] = {
#define F(name) FIELD(advise_result, name),
        F(fidelity) F(recorded_peak_reserved_bytes) F(complete) F(has_failed_request)
            F(failed_event) F(failed_bytes) F(own_count) F(uncertainty) F(peak.bytes) F(peak.count)
                F(step.bytes) F(pressure.least_bytes)
#undef F
                    STEPS_FIELD("largest", advise_result, peak.at[0].bytes)};
    if (strcmp(name, "none_fits") == 0)
        return *value = advise_none_fits(&advice.result), true;
    return STEPS_GET(name, of_advice, &advice.result, value);
}

/* ---- what `fits` reads ----------------------------------------------------------------------- */

static struct fits_notes notes;
static struct holders holders;
static char recorder[64];

/* `notes [recorder=NAME-VERSION] of events ..`: those of the tracer. */
static void read_notes(struct steps *s)
{
    char named[LINE] = "";
    if (steps_take(s, "recorder="))
        steps_word(s, named, sizeof named);
    if (!steps_take(s, "of") || !steps_take(s, "events"))
        steps_wrong(s, "of which events?");
    CLOSED(close_trace)
    struct trace_source *source = tiny_trace(steps_at_end(s) ? steps_events() : steps_rest(s));
    (void)snprintf(source->info.recorder, sizeof source->info.recorder, "%.30s", named);
    fits_notes_close(&notes);
    assert_ok(fits_notes_read(source, &notes, &test_error));
    (void)snprintf(recorder, sizeof recorder, "%s", source->info.recorder);
}

/* `holders of events ..`: the blocks at the peak, by tag. */
static void find_holders(struct steps *s)
{
    if (!steps_take(s, "of") || !steps_take(s, "events"))
        steps_wrong(s, "of which events?");
    CLOSED(close_trace)
    struct trace_source *source = tiny_trace(steps_at_end(s) ? steps_events() : steps_rest(s));
    assert_ok(holders_find(source, UINT64_MAX, &holders, &test_error));
}

/* `smallest_card BYTES NAME`; without a name none has so many. */
static void smallest_card(struct steps *s)
{
    struct sim_profile card = {.name = ""};
    uint64_t bytes = steps_value(s);
    bool found = fits_smallest_card(bytes, &notes, &card);
    steps_make(s, "usable")->value = (long double)card.usable_bytes;
    steps_is_text(s, found ? card.name : "", true);
}

/* `note N TEXT`, `note versions|refusal|measured|recorder TEXT`, `holder N tag|at TEXT`. */
static void note_text(struct steps *s)
{
    const char *text = steps_take(s, "versions")   ? notes.versions
                       : steps_take(s, "refusal")  ? notes.refusal
                       : steps_take(s, "measured") ? notes.measured
                       : steps_take(s, "recorder") ? recorder
                                                   : notes.at[steps_value(s)].name;
    steps_is_text(s, text, true);
}

static void holder_text(struct steps *s)
{
    const struct holder *one = &holders.at[steps_value(s) % HOLDERS_ROOM];
    const char *text = steps_take(s, "tag") ? one->tag : steps_take(s, "at") ? one->at : "?";
    steps_is_text(s, text, true);
}

/* notes.FIELD, notes.N.FIELD; holders.count, holders.N.FIELD. */
static bool figure_of_notes(const char *name, long double *value)
{
    static const struct steps_field of_notes[] = {
        FIELD(fits_notes, traced), FIELD(fits_notes, count), FIELD(fits_notes, more_bytes)};
    static const struct steps_field of_note[] = {FIELD(fits_note, kind), FIELD(fits_note, count),
                                                 FIELD(fits_note, bytes),
                                                 FIELD(fits_note, more_bytes)};
    static const struct steps_field of_holders[] = {FIELD(holders, count)};
    static const struct steps_field of_holder[] = {FIELD(holder, bytes), FIELD(holder, blocks)};
    bool noted = strncmp(name, "notes.", 6) == 0;
    if (!noted && strncmp(name, "holders.", 8) != 0)
        return false;
    const char *field = strchr(name, '.') + 1;
    char *dot;
    size_t number = strtoul(field, &dot, 10);
    if (*dot != '.')
        return noted ? STEPS_GET(field, of_notes, &notes, value)
                     : STEPS_GET(field, of_holders, &holders, value);
    return noted ? number < notes.count && STEPS_GET(dot + 1, of_note, &notes.at[number], value)
                 : STEPS_GET(dot + 1, of_holder, &holders.at[number % HOLDERS_ROOM], value);
}

/* ---- driver calls ---------------------------------------------------------------------------- */

static struct model_cell calls;
static struct call_list lists[5]; /* those of the card, whose first one gets medians */

static void close_calls(void)
{
    model_cell_close(&calls);
    for (size_t i = 0; i < COUNT(lists); i++)
        call_list_close(&lists[i]);
    memset(lists, 0, sizeof lists);
    calls = (struct model_cell){0};
}

/* `compare_calls [repeated] SIMULATED CARD..`: files of --calls. */
static void compare_calls(struct steps *s)
{
    char path[LINE];
    struct call_list simulated = {0};
    size_t count = 0;
    close_calls();
    bool repeated = steps_take(s, "repeated");
    steps_word(s, path, sizeof path);
    enum ar_status status = calls_csv_read(path, &simulated, &test_error);
    for (steps_word(s, path, sizeof path); status == AR_OK && path[0];
         steps_word(s, path, sizeof path)) {
        assert_true(count < COUNT(lists));
        status = calls_csv_read(path, &lists[count++], &test_error);
    }
    if (status == AR_OK)
        status = repeated ? model_repeat_compare(&calls, lists, count, &simulated, &test_error)
                          : model_compare(&calls, &lists[0], &simulated, &test_error);
    call_list_close(&simulated);
    steps_ended(s, status, test_error.text);
}

/* model.FIELD; model.KIND.FIELD of alloc, free, all, again.N; call.N.FIELD of the first list. */
static bool figure_of_calls(const char *name, long double *value)
{
    static const struct steps_field of_cells[] = {
        FIELD(model_cell, same_calls), FIELD(model_cell, large_count), FIELD(model_cell, runs),
        FIELD(model_cell, again_count)};
    static const struct steps_field of_kinds[] = {
#define F(name) FIELD(model_kind, name),
        F(count) F(small) F(met) F(card_ns) F(sim_ns) F(card_waited_ns)
#undef F
    };
    static const struct steps_field of_calls[] = {
#define F(name) FIELD(driver_call, name),
        F(event) F(bytes) F(ns) F(waited_ns) F(refused)
#undef F
    };
    const char *dot = strrchr(name, '.');
    if (strncmp(name, "call.", 5) == 0)
        return STEPS_GET(dot + 1, of_calls, &lists[0].items[strtoul(name + 5, NULL, 10)], value);
    if (strncmp(name, "large.", 6) == 0)
        return STEPS_GET(dot + 1, of_calls, &calls.large[strtoul(name + 6, NULL, 10)].card, value);
    if (strncmp(name, "model.", 6) != 0)
        return false;
    name += 6;
    const struct model_kind *kind =
        strncmp(name, "alloc.", 6) == 0   ? &calls.kinds[AR_DEVICE_CALL_alloc]
        : strncmp(name, "free.", 5) == 0  ? &calls.kinds[AR_DEVICE_CALL_free]
        : strncmp(name, "all.", 4) == 0   ? &calls.all
        : strncmp(name, "again.", 6) == 0 ? &calls.again[strtoul(name + 6, NULL, 10)]
                                          : NULL;
    return kind ? STEPS_GET(dot + 1, of_kinds, kind, value)
                : STEPS_GET(name, of_cells, &calls, value);
}

/* ---- a stream of requests -------------------------------------------------------------------- */

enum { STREAM_STEPS = 2000, STREAM_LIVE = 64 };

static struct {
    uint32_t x;
    struct ar_policy_block live[STREAM_LIVE];
    unsigned count;
    uint64_t hash, live_bytes, fails, peak_granted_bytes;
} stream;

static uint32_t draw(void)
{
    stream.x = (1103515245u * stream.x + 12345u) & 0x7fffffffu;
    return stream.x >> 8;
}

static uint64_t draw_bytes(void)
{
    uint32_t kind = draw() % 10;
    if (kind < 5)
        return 1 + draw() % 65536;
    if (kind < 8)
        return 1 + draw() % 4194304;
    return 1 + (kind == 8 ? 4 : 16) * (uint64_t)draw();
}

static void stream_step(struct ar_policy *policy)
{
    uint32_t a = draw();
    if (stream.count == STREAM_LIVE || (stream.count > 0 && a % 100 < 40)) {
        unsigned j = draw() % stream.count;
        stream.live_bytes -= stream.live[j].requested_bytes;
        assert_int_equal(ar_policy_free(policy, &stream.live[j], 0), AR_OK);
        stream.live[j] = stream.live[--stream.count];
        return;
    }
    struct ar_policy_request request = {.bytes = draw_bytes()};
    struct ar_policy_block *block = &stream.live[stream.count];
    if (ar_policy_alloc(policy, &request, block) == AR_OK) {
        op_script_hash(&stream.hash, block->address);
        stream.live_bytes += request.bytes;
        stream.count++;
        if (policy->totals.granted_bytes > stream.peak_granted_bytes)
            stream.peak_granted_bytes = policy->totals.granted_bytes;
    } else {
        op_script_hash(&stream.hash, UINT64_MAX);
        stream.fails++;
    }
}

/* `request_stream`: 2000 requests and frees, always the same ones. */
static void request_stream(struct steps *s)
{
    steps_need_policy(s);
    memset(&stream, 0, sizeof stream);
    stream.x = 12345;
    stream.hash = AR_FNV64_SEED;
    for (unsigned i = 0; i < STREAM_STEPS; i++) {
        stream_step(s->policy);
        if (ar_policy_validate(s->policy, &test_error) != AR_OK)
            steps_wrong(s, "step %u: %s", i, test_error.text);
    }
    steps_is_equal(s, s->policy->totals.live_bytes, stream.live_bytes);
    steps_is_equal(s, s->policy->totals.live_blocks, stream.count);
}

/* ---- operations and figures ------------------------------------------------------------------ */

bool steps_suites_operation(struct steps *s)
{
    if (steps_take(s, "tenants"))
        run_tenants(s);
    else if (steps_take(s, "tenant"))
        tenant_text(s);
    else if (steps_take(s, "advise"))
        advise(s, NULL);
    else if (steps_take(s, "predict"))
        predict(s);
    else if (steps_take(s, "best"))
        best(s);
    else if (steps_take(s, "holder_tag"))
        steps_is_text(s, advice.result.peak.at[steps_value(s)].tag, true);
    else if (steps_take(s, "first_row_lacks"))
        assert_null(strstr(advice.result.rows[0].candidate.spec, steps_rest(s)));
    else if (steps_take(s, "notes"))
        read_notes(s);
    else if (steps_take(s, "note"))
        note_text(s);
    else if (steps_take(s, "holders"))
        find_holders(s);
    else if (steps_take(s, "holder"))
        holder_text(s);
    else if (steps_take(s, "smallest_card"))
        smallest_card(s);
    else if (steps_take(s, "compare_calls"))
        compare_calls(s);
    else if (steps_take(s, "request_stream"))
        request_stream(s);
    else
        return false;
    return true;
}

bool steps_suites_figure(struct steps *s, const char *name, long double *value)
{
    char *dot;
    size_t number = strncmp(name, "tenant.", 7) == 0 ? strtoul(name + 7, &dot, 10) : SIZE_MAX;
    if (number < tenant_count && *dot == '.')
        return STEPS_GET(dot + 1, of_tenants, &tenants[number], value);
    if (advice.there && *s->at == '(')
        return figure_of_row(s, name, value);
    if (advice.there && strncmp(name, "advice.", 7) == 0)
        return figure_of_advice(name + 7, value);
    if (strcmp(name, "stream.hash") == 0)
        return *value = (long double)stream.hash, true;
    if (strcmp(name, "stream.peak_granted") == 0)
        return *value = (long double)stream.peak_granted_bytes, true;
    return figure_of_notes(name, value) || (calls.all.count && figure_of_calls(name, value));
}

void steps_suites_begin(void)
{
    close_advice();
    close_calls();
    fits_notes_close(&notes);
    notes = (struct fits_notes){0};
    tenant_count = 0;
}
