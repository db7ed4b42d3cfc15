/* Scenarios of `twin` in steps: their results, and what the study of one finds (steps.h). */
#include "bench/report/twin_page.h"
#include "bench/suite/twin_study.h"
#include "tests/support/steps_state.h"
#include "tests/support/writing.h"

/* The last scenario, and where `at` is in its result. */
static struct {
    struct scenario text;
    struct twin_setup setup;
    struct twin_result result;
    struct twin_study study;
    bool has_text, has_setup, has_study;
    size_t phase, rank;
    unsigned card;
} last;

static void close_setup(void)
{
    if (last.has_study)
        twin_study_close(&last.study, false);
    else if (last.has_setup)
        twin_setup_close(&last.setup);
    if (!last.has_study)
        twin_result_close(&last.result);
    last.result = (struct twin_result){0};
    last.has_study = last.has_setup = false;
}

void steps_twin_begin(void)
{
    close_setup();
    if (last.has_text)
        scenario_close(&last.text);
    memset(&last, 0, sizeof last);
}

/* ---- operations ------------------------------------------------------------------------------ */

static enum ar_status read_text(const char *path, struct ar_error *error)
{
    const char *kinds[TWIN_KINDS_MOST];
    steps_twin_begin();
    AR_TRY(scenario_read(path, kinds, twin_setup_kinds(kinds, COUNT(kinds)), &last.text, error));
    last.has_text = true;
    return AR_OK;
}

/* Reads `PATH`, if the line has one; without it the scenario is that of before, with its edits. */
static enum ar_status take_text(struct steps *s)
{
    char path[LINE];
    steps_word(s, path, sizeof path);
    test_error.text[0] = '\0';
    if (strchr(path, '/'))
        return read_text(path, &test_error);
    s->at -= strlen(path);
    if (!last.has_text)
        steps_wrong(s, "there is no scenario; give its path");
    close_setup();
    return AR_OK;
}

/* What owners have is what is used, at the end of each phase and at its peak. */
static void check_sums(struct steps *s)
{
    for (size_t phase = 0; phase < last.result.phase_count; phase++)
        for (unsigned card = 0; card < last.result.card_count; card++) {
            const struct twin_card_state *state = twin_card_at(&last.result, phase, card);
            uint64_t sum = 0, peak = 0;
            for (size_t i = 0; i < state->amounts.count; i++)
                sum += last.result.amounts[state->amounts.first + i].bytes;
            for (size_t i = 0; i < state->peak_amounts.count; i++)
                peak += last.result.amounts[state->peak_amounts.first + i].bytes;
            if (sum != state->used_bytes || peak != state->peak_bytes || peak < sum)
                steps_wrong(s, "phase %zu, card %u: the owners' bytes are not those in use", phase,
                            card);
        }
}

static void run(struct steps *s)
{
    char schedule[4 * LINE];
    uint64_t kept = 0, seed = 0;
    const char *start = NULL;
    enum ar_status status = take_text(s);
    if (steps_take(s, "kept="))
        kept = steps_value(s);
    if (steps_take(s, "seed="))
        seed = steps_value(s);
    if (steps_take(s, "start=")) {
        steps_until_arrow(s, schedule, sizeof schedule);
        start = schedule;
    }
    if (status == AR_OK)
        status = twin_setup_make(&last.text, &last.setup, &test_error);
    last.has_setup = status == AR_OK;
    if (status == AR_OK) {
        last.setup.scenario.cycles_kept = kept;
        last.setup.scenario.seed = seed;
        last.setup.scenario.start = start ? start : last.setup.scenario.start;
        status = twin_run(&last.setup.scenario, &last.result, &test_error);
    }
    if (status == AR_OK)
        check_sums(s);
    last.phase = last.rank = last.card = 0;
    steps_ended(s, status, test_error.text);
}

static void study(struct steps *s)
{
    enum ar_status status = take_text(s);
    if (status == AR_OK)
        status =
            twin_study_run(&last.text, !steps_take(s, "plain"), NULL, &last.study, &test_error);
    last.has_study = status == AR_OK;
    if (last.has_study)
        last.result = last.study.result;
    steps_ended(s, status, test_error.text);
}

static void at(struct steps *s)
{
    last.card = 0;
    last.rank = 0;
    last.phase = (size_t)steps_value(s);
    if (steps_take(s, "card"))
        last.card = (unsigned)steps_value(s);
    if (steps_take(s, "rank"))
        last.rank = (size_t)steps_value(s);
    if (last.phase >= last.result.phase_count || last.card >= last.result.card_count ||
        last.rank >= last.result.rank_count)
        steps_wrong(s, "it has %zu phases, %u cards and %zu ranks", last.result.phase_count,
                    last.result.card_count, last.result.rank_count);
}

/* The pinning block with that number of the phase; NULL: it has fewer. */
static const struct twin_pin *pin_at(uint64_t number)
{
    for (size_t i = 0; i < last.result.pin_count; i++)
        if (last.result.pins[i].phase == last.phase && number-- == 0)
            return &last.result.pins[i];
    return NULL;
}

/* ---- texts of the result --------------------------------------------------------------------- */

static const char *owner_name(size_t owner)
{
    return owner < last.result.owner_count ? last.result.owners[owner].name : "";
}

static const char *text_of_pin(struct steps *s, const struct twin_pin *pin)
{
    if (!pin)
        steps_wrong(s, "there is no such block");
    return steps_take(s, "owner")  ? owner_name(pin->owner)
           : steps_take(s, "tag")  ? pin->tag
           : steps_take(s, "born") ? pin->born.text
                                   : "owner, tag or born";
}

static bool text_operation(struct steps *s)
{
    static const char *const outcomes[] = {"passed", "out of memory", "refused"};
    const struct twin_failure *failure = &last.result.failure;
    if (steps_take(s, "outcome"))
        steps_is_text(s, outcomes[last.result.outcome], true);
    else if (steps_take(s, "why"))
        steps_is_text(s, failure->why, false);
    else if (steps_take(s, "failed_action"))
        steps_is_text(s, failure->action, true);
    else if (steps_take(s, "failed_owner"))
        steps_is_text(s, owner_name(failure->owner), true);
    else if (steps_take(s, "failed_cause"))
        steps_is_text(s, replay_cause_name(failure->cause), true);
    else if (steps_take(s, "phase_text"))
        steps_is_text(s, last.result.phases[last.phase].text, true);
    else if (steps_take(s, "pin_text"))
        steps_is_text(s, text_of_pin(s, pin_at(steps_value(s))), true);
    else if (steps_take(s, "change_text"))
        steps_is_text(s, last.study.page.whatifs[steps_value(s)].text, true);
    else if (steps_take(s, "cache_why"))
        steps_is_text(s, last.study.page.caches[0].why, false);
    else if (steps_take(s, "cache_option"))
        steps_is_text(s, last.study.page.caches[0].option, true);
    else if (steps_take(s, "reported_text"))
        steps_is_text(s, last.study.page.reported[steps_value(s)].ours, true);
    else
        return false;
    return true;
}

/* `printed TEXT`: the page of the study has it; "\n" is a line end. */
static void printed(struct steps *s)
{
    struct capture capture;
    char wanted[4 * LINE], *to = wanted;
    assert_ok(twin_page_print(capture_begin(&capture), &last.study.page, &test_error));
    FREED char *text = capture_end(&capture);
    for (const char *from = steps_rest(s); *from; from++) {
        bool line_end = from[0] == '\\' && from[1] == 'n';
        *to++ = line_end ? '\n' : *from;
        from += line_end;
    }
    *to = '\0';
    if (!strstr(text, wanted))
        steps_wrong(s, "%.400s", text);
}

bool steps_twin_operation(struct steps *s)
{
    if (steps_take(s, "scenario"))
        steps_ended(s, take_text(s), test_error.text);
    else if (steps_take(s, "twin"))
        run(s);
    else if (steps_take(s, "study"))
        study(s);
    else if (!last.has_text)
        return false;
    else if (steps_take(s, "edit"))
        assert_ok(scenario_set_text(&last.text, steps_rest(s), &test_error));
    else if (steps_take(s, "tolerance"))
        last.text.tolerance = (double)steps_real(s);
    else if (steps_take(s, "at"))
        at(s);
    else if (steps_take(s, "printed"))
        printed(s);
    else
        return text_operation(s);
    return true;
}

/* ---- figures --------------------------------------------------------------------------------- */

static const struct steps_field
    of_ranks[] = {FIELD(twin_rank_state, live_bytes),
                  FIELD(twin_rank_state, allocated_bytes),
                  FIELD(twin_rank_state, reserved_bytes),
                  FIELD(twin_rank_state, peak_allocated_bytes),
                  FIELD(twin_rank_state, peak_reserved_bytes),
                  FIELD(twin_rank_state, physical_bytes),
                  FIELD(twin_rank_state, asleep_bytes),
                  FIELD(twin_rank_state, pinned_bytes),
                  FIELD(twin_rank_state, pinned_live_bytes),
                  FIELD(twin_rank_state, ns),
                  FIELD(twin_rank_state, events)},
    of_cards[] = {FIELD(twin_card_state, used_bytes), FIELD(twin_card_state, peak_bytes)},
    of_pins[] = {FIELD(twin_pin, bytes),       FIELD(twin_pin, segment_bytes),
                 FIELD(twin_pin, keeps_bytes), FIELD(twin_pin, born.cycle),
                 FIELD(twin_pin, born.place),  FIELD(twin_pin, born.stage)},
    of_failures[] = {FIELD(twin_failure, phase), FIELD(twin_failure, part),
                     FIELD(twin_failure, bytes), FIELD(twin_failure, pinned)},
    of_ranks_place[] = {FIELD(twin_rank, process), FIELD(twin_rank, rank), FIELD(twin_rank, card)},
    of_results[] = {FIELD(twin_result, phase_count), FIELD(twin_result, card_count),
                    FIELD(twin_result, rank_count),  FIELD(twin_result, total_bytes),
                    FIELD(twin_result, events),      FIELD(twin_result, pin_count)},
    of_caches[] = {FIELD(twin_page_cache, is_bytes)},
    of_reported[] = {FIELD(twin_page_reported, known), FIELD(twin_page_reported, agrees)};

/* Reads what stands between "(" or "," and the next of `ends` that is in no "(" of its own. */
static const char *argument_to(struct steps *s, const char *ends)
{
    static char text[LINE];
    size_t length = 0;
    if (!steps_take(s, "(") && !steps_take(s, ","))
        steps_wrong(s, "an argument is missing");
    (void)steps_at_end(s);
    for (unsigned depth = 0; s->at[length]; length++) {
        char c = s->at[length];
        if (!depth && strchr(ends, c))
            break;
        depth += c == '(';
        depth -= c == ')';
    }
    snprintf(text, sizeof text, "%.*s", (int)length, s->at);
    s->at += length + (s->at[length] == ')');
    return text;
}

static const char *argument(struct steps *s)
{
    return argument_to(s, ",)");
}

static uint64_t bytes_of(const char *owner)
{
    const struct twin_card_state *state = twin_card_at(&last.result, last.phase, last.card);
    for (size_t i = 0; i < state->amounts.count; i++) {
        const struct twin_amount *amount = &last.result.amounts[state->amounts.first + i];
        if (strcmp(owner_name(amount->owner), owner) == 0)
            return amount->bytes;
    }
    return 0;
}

/* figure(NAME) or figure(NAME, PHASE): the last value that a part reported, or the last one up to
 * the end of that phase. False: it reported none. */
static bool reported(struct steps *s, long double *value)
{
    char name[LINE];
    snprintf(name, sizeof name, "%s", argument(s));
    size_t most = *s->at == ',' ? strtoul(argument(s), NULL, 10) : SIZE_MAX;
    bool found = false;
    for (size_t i = 0; i < last.result.figure_count; i++)
        if (strcmp(last.result.figures[i].name, name) == 0 &&
            last.result.figures[i].phase <= most) {
            *value = last.result.figures[i].value;
            found = true;
        }
    return found;
}

/* Of a change that the study tried, the first whose text has the argument. */
static bool change(const char *words, long double *saved)
{
    for (size_t i = 0; i < last.study.page.whatif_count; i++)
        if (strstr(last.study.page.whatifs[i].text, words))
            return *saved = last.study.page.whatifs[i].peak_saved, true;
    return false;
}

/* The kind of an owner, as a number of enum twin_owner_kind; false: there is none. */
static bool kind_of(const char *owner, long double *value)
{
    for (size_t i = 0; i < last.result.owner_count; i++)
        if (strcmp(owner_name(i), owner) == 0)
            return *value = last.result.owners[i].kind, true;
    return false;
}

/* The pinning blocks of an owner at the end of the phase. */
static uint64_t pinned_by(const char *owner)
{
    uint64_t count = 0;
    const struct twin_pin *pin;
    for (uint64_t i = 0; (pin = pin_at(i)) != NULL; i++)
        count += strcmp(owner_name(pin->owner), owner) == 0;
    return count;
}

static long double drift(struct steps *s)
{
    size_t place = strtoul(argument(s), NULL, 10);
    uint64_t warm = strtoul(argument(s), NULL, 10);
    double bytes;
    if (!twin_drift(&last.result, place, last.card, warm, &bytes))
        steps_wrong(s, "there are fewer than two such cycles");
    return bytes;
}

/* phase(CYCLE, PLACE): max if the result does not have it. */
static long double phase_of(struct steps *s)
{
    uint64_t cycle = strtoul(argument(s), NULL, 10);
    size_t place = strtoul(argument(s), NULL, 10);
    size_t phase = twin_phase_find(&last.result, TWIN_CYCLE, cycle, place);
    return phase == SIZE_MAX ? (long double)UINT64_MAX : (long double)phase;
}

/* Figures with arguments. */
static bool function(struct steps *s, const char *name, long double *value)
{
    if (strcmp(name, "bytes") == 0)
        *value = (long double)bytes_of(argument(s));
    else if (strcmp(name, "drift") == 0)
        *value = drift(s);
    else if (strcmp(name, "phase") == 0)
        *value = phase_of(s);
    else if (strcmp(name, "has") == 0)
        *value = reported(s, value);
    else if (strcmp(name, "kind_of") == 0)
        return kind_of(argument(s), value);
    else if (strcmp(name, "pinned_by") == 0)
        *value = (long double)pinned_by(argument(s));
    else if (strcmp(name, "offers") == 0)
        *value = change(argument_to(s, ")"), value);
    else if (strcmp(name, "saved") == 0)
        return change(argument_to(s, ")"), value);
    else if (strcmp(name, "figure") == 0)
        return reported(s, value);
    else
        return false;
    return true;
}

static bool figure_of_pin(const char *name, long double *value)
{
    char *dot;
    const struct twin_pin *pin = pin_at(strtoul(name, &dot, 10));
    if (!pin || *dot != '.')
        return false;
    if (strcmp(dot, ".born") == 0)
        *value = (long double)twin_phase_find(&last.result, pin->born.stage, pin->born.cycle,
                                              pin->born.place);
    else
        return STEPS_GET(dot + 1, of_pins, pin, value);
    return true;
}

static bool figure_of_study(const char *name, long double *value)
{
    const struct twin_page *page = &last.study.page;
    char *dot;
    *value = 0;
    size_t number = strtoul(name, &dot, 10);
    if (*dot == '.' && number < page->reported_count)
        return strcmp(dot, ".part") == 0
               ? *value = page->reported[number].part,
                 true : STEPS_GET(dot + 1, of_reported, &page->reported[number], value);
    if (strcmp(name, "caches") == 0)
        *value = (long double)page->cache_count;
    else if (strcmp(name, "changes") == 0)
        *value = (long double)page->whatif_count;
    else if (strcmp(name, "passing_changes") == 0)
        for (size_t i = 0; i < page->whatif_count; i++)
            *value += page->whatifs[i].passes;
    else
        return false;
    return true;
}

static bool figure_of_cache(const char *name, long double *value)
{
    const struct twin_page_cache *cache = &last.study.page.caches[0];
    if (strcmp(name, "safe") == 0)
        *value = cache->safe;
    else if (strcmp(name, "tried") == 0)
        *value = cache->tried;
    else if (strcmp(name, "blocks") == 0)
        *value = cache->blocks;
    else if (strcmp(name, "tokens") == 0)
        *value = cache->tokens;
    else
        return STEPS_GET(name, of_caches, cache, value);
    return true;
}

static uint64_t pins_here(void)
{
    uint64_t count = 0;
    while (pin_at(count))
        count++;
    return count;
}

bool steps_twin_figure(struct steps *s, const char *name, long double *value)
{
    if (!last.has_text)
        return false;
    if (*s->at == '(')
        return function(s, name, value);
    if (last.has_study && strncmp(name, "study.", 6) == 0)
        return figure_of_study(name + 6, value);
    if (last.has_study && strncmp(name, "cache.", 6) == 0)
        return figure_of_cache(name + 6, value);
    if (strncmp(name, "twin.", 5) == 0)
        return STEPS_GET(name + 5, of_results, &last.result, value);
    if (strncmp(name, "failed.", 7) == 0)
        return STEPS_GET(name + 7, of_failures, &last.result.failure, value);
    if (last.phase >= last.result.phase_count)
        return false;
    const struct twin_rank_state *rank = twin_rank_at(&last.result, last.phase, last.rank);
    if (strcmp(name, "residue") == 0)
        return *value = (long double)twin_residue(rank), true;
    if (strcmp(name, "pins") == 0)
        return *value = (long double)pins_here(), true;
    if (strncmp(name, "pin.", 4) == 0)
        return figure_of_pin(name + 4, value);
    return STEPS_GET(name, of_ranks, rank, value) ||
           STEPS_GET(name, of_cards, twin_card_at(&last.result, last.phase, last.card), value) ||
           STEPS_GET(name, of_ranks_place, &last.result.ranks[last.rank], value);
}
