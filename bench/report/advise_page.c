#include "bench/report/pages.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "bench/report/data_writer.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "sim/sim_device/profile.h"
#include "workloads/formats/import_report.h"

#define OWN_MOST      14 /* rows of own settings; the recorded one and the default always */
#define OTHERS_MOST   8
#define SETTINGS_MOST 5 /* texts to set */
#define HOLDERS_SHOWN 4

bool advise_page_is_default(const struct advise_row *row)
{
    return strcmp(row->setting, "PYTORCH_CUDA_ALLOC_CONF=backend:native") == 0;
}

const char *advise_page_setting(const struct advise_row *row)
{
    return advise_page_is_default(row) ? "the default settings of PyTorch"
           : row->setting[0]           ? row->setting
                                       : row->candidate.spec;
}

const char *advise_page_brief(const struct advise_row *row)
{
    const char *setting = advise_page_setting(row); /* indented, and with a mark after it */
    return strlen(setting) + 3 > SENTENCE_WIDTH ? row->candidate.spec : setting;
}

static void add_holders(char *line, size_t line_bytes, const struct holders *holders)
{
    for (size_t i = 0; i < holders->count && i < HOLDERS_SHOWN; i++) {
        const struct holder *holder = &holders->at[i];
        if (holder->tag[0])
            text_add(line, line_bytes, "%s%s (%s)", i ? ", " : "", holder->tag,
                     AR_SIZE(holder->bytes));
        else
            text_add(line, line_bytes, "%s%" PRIu64 " block%s of %s", i ? ", " : "", holder->blocks,
                     holder->blocks == 1 ? "" : "s", AR_SIZE(holder->block_bytes));
    }
}

const char *advise_page_probed(const struct holders *peak, char text[64])
{
    text[0] = '\0';
    if (peak->probed_bytes > peak->bytes)
        snprintf(text, 64, " (%s with requests that may fail)", AR_SIZE(peak->probed_bytes));
    return text;
}

static void print_peak(FILE *stream, const struct holders *peak, const char *begin)
{
    char line[1024], step[48] = "", probed[64];
    if (peak->steps && peak->step <= peak->steps)
        snprintf(step, sizeof step, "in step %" PRIu64 " of %" PRIu64 ", ", peak->step,
                 peak->steps);
    snprintf(line, sizeof line, "%s %s%s, %sat event %" PRIu64 ", held by ", begin,
             AR_SIZE(peak->bytes), advise_page_probed(peak, probed), step, peak->event);
    add_holders(line, sizeof line, peak);
    text_add(line, sizeof line, ".");
    say(stream, "%s", line);
}

static void print_held(FILE *stream, const struct advise_page *page)
{
    const struct advise_result *result = page->result;
    char line[1024];
    if (import_lacks_history(page->source->report)) {
        say(stream, "%s", IMPORT_NO_HISTORY_ANSWER);
        return;
    }
    switch (result->fidelity) {
    case ADVISE_AGREES:
        snprintf(line, sizeof line,
                 "Recorded with %s. Replayed under %s every address, segment and statistic agrees.",
                 page->recorder, result->given);
        break;
    case ADVISE_DIFFERS:
        snprintf(line, sizeof line,
                 "Recorded with %s. Replayed under %s it DIFFERS from event %" PRIu64
                 " on (`allocrig fidelity` shows more).",
                 page->recorder, result->given, result->difference.event);
        break;
    case ADVISE_NOT_COMPARED:
        if (page->traced)
            snprintf(line, sizeof line,
                     "Traced for %s without a GPU, so there are no addresses of a card to compare "
                     "with; a memory snapshot of a run on one has them.",
                     page->recorder);
        else
            snprintf(line, sizeof line, "Recorded with %s, but it cannot be compared with %s: %s.",
                     page->recorder, result->given, result->fidelity_why);
        break;
    default:
        snprintf(line, sizeof line,
                 "No policy imitates the allocator under which this was recorded, so there is no "
                 "setting of it to advise: only policies are compared.");
    }
    say(stream, "%s", line);
}

static void print_pressure(FILE *stream, const struct pressure *pressure)
{
    char most[48] = "";
    if (!pressure->least_bytes)
        return;
    if (pressure->most_bytes > pressure->least_bytes + 2 * AR_MIB)
        snprintf(most, sizeof most, " to %s", AR_SIZE(pressure->most_bytes));
    say(stream,
        "It released memory as under a limit, or on a card, of %s%s, which the recording does not "
        "mention.",
        AR_SIZE(pressure->least_bytes), most);
}

/* What the recording does not contain, and what is assumed instead. */
static void print_not_told(FILE *stream, const struct advise_page *page)
{
    const struct advise_result *result = page->result;
    if (result->start_blocks && !import_lacks_history(page->source->report)) {
        say(stream,
            "The recording begins in the middle of the program: %zu block%s existed. Under other "
            "settings they are requested first, one after the other; the free ranges between them "
            "are not known there.",
            result->start_blocks, result->start_blocks == 1 ? "" : "s");
    }
    if (result->capacity_from != ADVISE_FROM_DRIVER) /* which says what the card had */
        print_pressure(stream, &result->pressure);
    if (page->frees == REPLAY_RECORDED)
        say(stream, "Blocks that other streams used are assumed to be free again when they were in "
                    "the recording; under another setting that may be sooner or later. If memory "
                    "is short, a request waits for them, as in the recorded allocator; `run` and "
                    "`capacity` do not wait under --frees recorded, and may need more.");
    if (!result->timed) {
        say(stream,
            "%s no kernels, so the slowdown is not known: flushes of the cache and retries "
            "indicate it.",
            strcmp(page->format, "snapshot") == 0 ? "A memory snapshot holds"
                                                  : "The recording holds");
    }
}

/* Equal fits are chosen by address, and the driver had other gaps than a simulated device has. */
static bool print_peak_apart(FILE *stream, const struct advise_page *page)
{
    const struct advise_result *result = page->result;
    const struct advise_row *given = advise_given(result);
    uint64_t recorded = result->recorded_peak_reserved_bytes;
    if (result->fidelity != ADVISE_AGREES || !result->complete || !recorded || !given ||
        result->pressure.least_bytes || page->source->info.limit_bytes ||
        !given->alone.peak_reserved_bytes || given->alone.peak_reserved_bytes == recorded)
        return false;
    double apart = ((double)given->alone.peak_reserved_bytes / (double)recorded - 1) * 100;
    say(stream,
        "Replayed without the recorded addresses the recorded setting takes %s in place of %s "
        "(%+.2f %%).",
        AR_SIZE(given->alone.peak_reserved_bytes), AR_SIZE(recorded), apart);
    return true;
}

void advise_page_sure(FILE *stream, const struct advise_page *page)
{
    const struct advise_result *result = page->result;
    print_held(stream, page);
    const bool apart = print_peak_apart(stream, page);
    print_not_told(stream, page);
    if (result->releases)
        say(stream,
            "The program released its cache %zu time%s by itself; it does so here under every "
            "setting.",
            result->releases, result->releases == 1 ? "" : "s");
    if (page->traced)
        advise_page_other_card(stream, &page->source->info, result);
    /* One word on all of it. */
    if (import_lacks_history(page->source->report) || result->fidelity == ADVISE_NOT_RECORDED)
        return;
    if (result->fidelity == ADVISE_AGREES && !apart && !result->start_blocks && !result->survived)
        say(stream, "So the answer is exact if the program makes the same requests.");
    else if (apart)
        say(stream, "So the answer is an estimate, to within %.2f %% at best.",
            100 * result->uncertainty);
    else
        say(stream, "So the answer is an estimate.");
}

void advise_page_other_card(FILE *stream, const struct trace_info *info,
                            const struct advise_result *result)
{
    const char *traced_for = sim_profile_of_card(info->card);
    struct sim_profile asked;
    if (!result->profile[0] ||
        sim_profile_read(sim_profile_builtin(result->profile), result->profile, &asked, NULL))
        return;
    const char *answered = sim_profile_of_card(asked.card);
    if (traced_for && answered && strcmp(traced_for, answered) != 0)
        say(stream,
            "Traced for %s, and the answer is about %s: workspaces of libraries, such as cuBLAS's, "
            "and some kernels are those of %s. Trace again with --card %s.",
            info->card, result->profile, traced_for, result->profile);
}

static void print_incomplete(FILE *stream, const struct advise_result *result)
{
    if (result->complete)
        return;
    if (result->has_failed_request)
        say(stream,
            "The trace ends with a request of %s (event %" PRIu64
            ") that was not served: it proves only the program's beginning. A setting that "
            "fits here serves the request that failed; what would follow is not in the trace.",
            AR_SIZE(result->failed_bytes), result->failed_event);
    else
        say(stream, "The program died before its end: the trace proves only its beginning. The "
                    "request that failed, and what would follow, is not in it.");
    if (result->step.steps)
        print_peak(stream, &result->step, "The largest completed step needed at least");
    else
        say(stream, "No step of it was completed, as far as the trace marks steps.");
}

/* As programs name themselves. */
static const char *framework_name(const char *recorder)
{
    static const char *const names[][2] = {{"torch", "PyTorch"}, {"tensorflow", "TensorFlow"},
                                           {"xla", "JAX"},       {"jax", "JAX"},
                                           {"cupy", "CuPy"},     {"rmm", "RMM"}};
    for (size_t i = 0; recorder && i < AR_COUNT(names); i++)
        if (strncmp(recorder, names[i][0], strlen(names[i][0])) == 0)
            return names[i][1];
    return "the recorder";
}

/* The setting that needs least of those that run; `allocators`: another allocator counts too. NULL:
 * there is none. Rows are in the order of ranks, not of bytes. */
static const struct advise_row *least_of(const struct advise_result *result, bool allocators)
{
    const struct advise_row *least = NULL;
    for (size_t i = 0; i < result->own_count; i++) {
        const struct advise_row *row = &result->rows[i];
        if (row->safe_bytes && row->at.sensitivity != TRIAL_UNTIMED &&
            (allocators || !row->candidate.text[0]) &&
            (!least || row->safe_bytes < least->safe_bytes))
            least = row;
    }
    return least;
}

/* Whether an own setting is uncertain for that reason. */
static bool has_sensitivity(const struct advise_result *result, enum trial_sensitivity sensitivity)
{
    for (size_t i = 0; i < result->own_count; i++)
        if (result->rows[i].at.begun && result->rows[i].at.sensitivity == sensitivity)
            return true;
    return false;
}

static void print_tries(FILE *stream, const struct advise_result *result, const char *capacity)
{
    say(stream,
        "Whether it fits in %s cannot be told: that depends on %" PRIu64
        " requests of up to %s, made one after another and freed at once, as libraries do "
        "that try out algorithms. If the program continues when such a request fails, as with "
        "cuDNN and cuBLASLt, the settings with ? fit; else no setting does.",
        capacity, result->tries, AR_SIZE(result->tries_most_bytes));
    print_peak(stream, &result->peak, "The live peak with them is");
}

#define FITTING_SHOWN 4

/* Whether add_others names the row. */
static bool is_named(const struct advise_result *result, const struct advise_row *row)
{
    size_t before = 0;
    if (row->candidate.own || advise_fits(row) != ADVISE_FITS)
        return false;
    for (const struct advise_row *at = result->rows + result->own_count; at < row; at++)
        before += advise_fits(at) == ADVISE_FITS;
    return before < FITTING_SHOWN;
}

/* "Other policies that fit: vmm, mosaic", and how a program gets them. */
static void add_others(char *line, size_t line_bytes, const struct advise_page *page)
{
    const struct advise_result *result = page->result;
    const char *framework = framework_name(result->framework);
    size_t shown = 0;
    for (size_t i = result->own_count; i < result->count; i++)
        if (is_named(result, &result->rows[i]))
            text_add(line, line_bytes, "%s%s",
                     shown++   ? ", "
                     : line[0] ? " Other policies that fit: "
                               : "Other policies that fit: ",
                     result->rows[i].candidate.spec);
    if (shown && (strcmp(framework, "PyTorch") == 0 || strcmp(framework, "CuPy") == 0))
        text_add(line, line_bytes,
                 " (inside %s by allocrig.%s.use(\"NAME\") of the plug-in, bench/plugin)",
                 framework, framework[0] == 'P' ? "torch" : "cupy");
    if (shown)
        text_add(line, line_bytes, ".");
}

/* The first of the own settings for which it cannot be told; NULL: none. */
static const struct advise_row *first_unsure(const struct advise_result *result)
{
    for (size_t i = 0; i < result->own_count; i++)
        if (advise_fits(&result->rows[i]) == ADVISE_UNSURE)
            return &result->rows[i];
    return NULL;
}

/* If it is uncertain whether any setting fits, says so and returns true. */
static bool print_sensitivity(FILE *stream, const struct advise_page *page, const char *capacity)
{
    const struct advise_result *result = page->result;
    const struct advise_row *unsure = first_unsure(result);
    char line[1024];
    if (!unsure)
        return false;
    if (has_sensitivity(result, TRIAL_TRIES)) {
        print_tries(stream, result, capacity);
        return true;
    }
    if (unsure->at.sensitivity == TRIAL_UNTIMED) /* it comes last: all others fail */
        snprintf(line, sizeof line,
                 "No setting fits in %s, except perhaps %s, of which it cannot be told (? below).",
                 capacity, advise_page_brief(unsure));
    else
        snprintf(line, sizeof line, "Whether it fits in %s cannot be told, see ? below.", capacity);
    add_others(line, sizeof line, page);
    say(stream, "%s", line);
    print_peak(stream, &result->peak, "The live peak is");
    return true;
}

static void print_nothing_fits(FILE *stream, const struct advise_page *page, const char *capacity)
{
    char line[1024] = "";
    const struct advise_result *result = page->result;
    const struct advise_row *least = least_of(result, false);
    const struct advise_row *allocator = least_of(result, true);
    if (print_sensitivity(stream, page, capacity))
        return;
    if (result->peak.bytes > result->capacity_bytes) {
        snprintf(line, sizeof line, "No setting helps in %s: the live peak alone is", capacity);
        print_peak(stream, &result->peak, line);
        return;
    }
    if (least)
        snprintf(line, sizeof line, "No setting fits in %s: the least is %s, with %s.", capacity,
                 AR_SIZE_UP(least->safe_bytes), advise_page_brief(least));
    if (least && allocator != least)
        text_add(line, sizeof line, " With %s it is %s.", advise_page_brief(allocator),
                 AR_SIZE_UP(allocator->safe_bytes));
    if (!least && result->own_count)
        snprintf(line, sizeof line, "No setting fits in %s.", capacity);
    add_others(line, sizeof line, page);
    if (!line[0])
        snprintf(line, sizeof line, "No policy fits in %s.", capacity);
    say(stream, "%s", line);
    print_peak(stream, &result->peak, "The live peak is");
}

/* If less is left than the need is uncertain by. */
static void print_room(FILE *stream, const struct advise_result *result,
                       const struct advise_row *best)
{
    const uint64_t left = result->capacity_bytes - best->safe_bytes;
    if (result->capacity_bytes < best->safe_bytes)
        say(stream, "It passes at this capacity, but not at all above it: leave room.");
    else if (best->safe_bytes && result->fidelity != ADVISE_AGREES &&
             left < advise_uncertain_bytes(result, best->safe_bytes))
        say(stream,
            "It leaves %s (%.2f %%), less than the uncertainty of this estimate (%.2f %% and 2 MiB "
            "at least): it may not fit.",
            AR_SIZE(left), 100 * (double)left / (double)result->capacity_bytes,
            100 * result->uncertainty);
}

/* Whether rows of a better rank fit too: pairs of settings, or slower ones. */
static bool is_passed_over(const struct advise_result *result, const struct advise_row *best)
{
    for (const struct advise_row *row = result->rows; row < best && best->candidate.own; row++)
        if (row->rank < best->rank && advise_fits(row) == ADVISE_FITS)
            return best != advise_given(result) && !candidate_is_pair(&best->candidate);
    return false;
}

static void print_verdict(FILE *stream, const struct advise_page *page)
{
    char slow[64] = "";
    const struct advise_result *result = page->result;
    const struct advise_row *best = advise_best(result);
    const struct advise_row *given = advise_given(result);
    const char *capacity = AR_SIZE(result->capacity_bytes);
    if (!best) {
        print_nothing_fits(stream, page, capacity);
        return;
    }
    if (best->at.slowdown > 0)
        snprintf(slow, sizeof slow, ", %.1f %% slower than with an allocator that costs nothing",
                 100 * (best->at.slowdown - 1));
    const char *fits = import_lacks_history(page->source->report) ? "The blocks at its end fit"
                       : result->complete                         ? "Fits"
                       : page->traced                             ? "What was traced fits"
                                                                  : "What is recorded fits";
    if (best == given)
        say(stream, "%s in %s as it is (%s)%s.", fits, capacity, advise_page_brief(best), slow);
    else
        say(stream, "%s in %s with %s%s; as %s it %s.", fits, capacity, advise_page_brief(best),
            slow, page->traced ? "it is" : "recorded",
            given && advise_fits(given) == ADVISE_UNSURE ? "may or may not, see ? below"
                                                         : "does not");
    if (result->survived) {
        const char *it = result->survived == 1 ? "it" : "them";
        say(stream,
            "%" PRIu64 " request%s not served, and the program continued: what fits here need not "
            "serve %s, and a setting that does may lead the program another way. `explain` has "
            "settings that serve %s.",
            result->survived, result->survived == 1 ? " was" : "s were", it, it);
    }
    if (import_lacks_history(page->source->report))
        say(stream, "Whether the program does is not known: the snapshot has no history.");
    if (is_passed_over(result, best))
        say(stream, "It is the best ranked single setting that fits%s.",
            result->timed ? " and is at most 1 % slower than the fastest of them" : "");
    if (best != given && best->candidate.cost)
        say(stream, "What it costs: %s", best->candidate.cost);
    if (best->needs.major) {
        say(stream, "It needs PyTorch %u.%u; the recording does not say which release it is from.",
            best->needs.major, best->needs.minor);
    }
    const struct advise_row *least = least_of(result, false);
    if (least && least->rank != best->rank && best->safe_bytes > least->safe_bytes) {
        say(stream, "Least memory%s: %s, with %s.", result->complete ? "" : " for what is recorded",
            AR_SIZE_UP(least->safe_bytes), advise_page_brief(least));
    }
    print_room(stream, result, best);
    if (result->complete || result->step.bytes != result->peak.bytes) /* else it is below */
        print_peak(stream, &result->peak, "The live peak is");
}

void advise_page_name(const struct advise_row *row, char *out, size_t room)
{
    const char *from = row->candidate.spec;
    bool quoted = false;
    size_t used = 0;
    if (row->candidate.own && strncmp(from, "torch:", 6) == 0)
        from += 6;
    for (; *from && used + 3 < room; from++) {
        quoted ^= *from == '\'';
        out[used++] = *from;
        bool ends = (*from == ',' && !quoted) || (*from == '=' && from[1] == '\'');
        if (ends)
            out[used++] = ' ';
    }
    out[used] = '\0';
    text_add(out, room, "%s", row->candidate.given ? " (recorded)" : "");
}

const char *advise_page_fit(enum advise_fit fit)
{
    static const char *const words[] = {
        [ADVISE_FITS] = "yes", [ADVISE_FITS_NOT] = "no", [ADVISE_UNSURE] = "?"};
    return words[fit];
}

static void add_row(struct table *table, const struct advise_result *result,
                    const struct advise_row *row)
{
    char name[400];
    bool fits = advise_fits(row) == ADVISE_FITS;
    advise_page_name(row, name, sizeof name);
    table_cell(table, "%s%zu", row == advise_best(result) ? "->" : "", row->rank);
    if (row->at.sensitivity == TRIAL_UNTIMED)
        table_cell(table, "?");
    else if (row->safe_bytes)
        table_cell(table, "%.1f", (double)row->safe_bytes / (double)AR_MIB);
    else
        table_cell(table, row->alone.begun ? "none" : "-");
    if (result->timed)
        table_known(table, row->safe_slowdown > 0, "%.3f", row->safe_slowdown);
    if (row->at.sensitivity == TRIAL_UNTIMED)
        table_cell(table, "?");
    else if (row->alone.begun)
        table_cell(table, "%.1f", (double)row->alone.peak_reserved_bytes / (double)AR_MIB);
    else
        table_cell(table, "-");
    table_cell(table, "%s", advise_page_fit(advise_fits(row)));
    if (result->timed)
        table_known(table, fits && row->at.slowdown > 0, "%.3f", row->at.slowdown);
    table_known(table, fits, "%" PRIu64, row->at.flushes);
    if (!result->timed)
        table_known(table, fits, "%" PRIu64, row->at.retries);
    if (row->alone.begun)
        table_cell(table, "%s", name);
    else
        table_cell(table, "%s: cannot begin: %.120s", name, row->alone.why);
}

/* Whether the user named the row. */
static bool is_wanted(const struct advise_page *page, const struct advise_row *row)
{
    for (size_t i = 0; i < page->wanted_count; i++)
        if (strcmp(page->wanted[i], row->candidate.spec) == 0)
            return true;
    return false;
}

/* Whether the table has the row in any case: the recorded one, the advice, the default, what the
 * user named. */
static bool is_always(const struct advise_page *page, const struct advise_row *row)
{
    return row == advise_given(page->result) || row == advise_best(page->result) ||
           strcmp(row->candidate.spec, "torch") == 0 || is_wanted(page, row);
}

/* Whether a sentence has the row in place of the table. */
static bool is_as_recorded(const struct advise_page *page, const struct advise_row *row)
{
    const struct advise_row *given = advise_given(page->result);
    return given && advise_does_as_recorded(row, given) && !is_always(page, row);
}

/* Lists such settings in a sentence, values of one key together: "a=1, 2; b=true". */
static void print_same(FILE *stream, const struct advise_page *page)
{
    const struct advise_result *result = page->result;
    size_t count = 0;
    char line[2048] = "", name[400], key[400] = "";
    for (size_t i = 0; i < result->own_count; i++)
        count += is_as_recorded(page, &result->rows[i]);
    snprintf(line, sizeof line,
             "No different from what was recorded (%zu, not counted above): ", count);
    for (size_t i = 0; i < result->own_count; i++) {
        if (!is_as_recorded(page, &result->rows[i]))
            continue;
        advise_page_name(&result->rows[i], name, sizeof name);
        char *blank = strstr(name, "= '"); /* which breaks a line of a table */
        if (blank)
            memmove(blank + 1, blank + 2, strlen(blank + 1));
        size_t length = strcspn(name, "=");
        bool again = name[length] && !strchr(name, ',') && strncmp(key, name, length + 1) == 0;
        text_add(line, sizeof line, "%s%s",
                 again    ? ", "
                 : key[0] ? "; "
                          : "",
                 again ? name + length + 1 : name);
        snprintf(key, sizeof key, "%s", name);
    }
    if (!count)
        return;
    fputc('\n', stream);
    text_add(line, sizeof line, ".");
    say(stream, "%s", line);
}

/* Rows of the table, [0] of other policies and [1] of the recorder's settings. */
struct row_counts {
    size_t shown[2], all[2];
};

/* The order of the table: by rank, then by need. */
static int compare_shown(const struct advise_row *a, const struct advise_row *b)
{
    AR_ORDER(b->candidate.own, a->candidate.own);
    AR_ORDER(a->rank, b->rank);
    AR_ORDER(a->safe_bytes, b->safe_bytes); /* of one rank none or all are 0 */
    AR_ORDER(a, b);
    return 0;
}

/* The row of the table after `last` (NULL: the first); NULL after the last one. */
static const struct advise_row *row_after(const struct advise_result *result,
                                          const struct advise_row *last)
{
    const struct advise_row *next = NULL;
    for (size_t i = 0; i < result->count; i++) {
        const struct advise_row *row = &result->rows[i];
        if ((!last || compare_shown(last, row) < 0) && (!next || compare_shown(row, next) < 0))
            next = row;
    }
    return next;
}

static struct row_counts add_rows(struct table *table, const struct advise_page *page)
{
    const struct advise_result *result = page->result;
    struct row_counts counts = {{0}, {0}};
    const struct advise_row *row = NULL;
    for (size_t i = 0; (row = row_after(result, row)); i++) {
        bool own = row->candidate.own;
        if (i == 0 && own)
            table_heading(table, "settings of %s", framework_name(result->framework));
        if (i == result->own_count)
            table_heading(table, "other policies");
        if (is_as_recorded(page, row))
            continue;
        if (counts.all[own]++ < (own ? OWN_MOST : OTHERS_MOST) || is_always(page, row) ||
            is_named(result, row)) {
            add_row(table, result, row);
            counts.shown[own]++;
        }
    }
    return counts;
}

static void print_counts(FILE *stream, const struct row_counts *counts)
{
    char own[64] = "";
    if (counts->shown[0] == counts->all[0] && counts->shown[1] == counts->all[1])
        return;
    if (counts->all[1])
        snprintf(own, sizeof own, "%zu of %zu settings and ", counts->shown[1], counts->all[1]);
    fputc('\n', stream);
    say(stream, "The table has %s%zu of %zu other policies; `--json -` has all.", own,
        counts->shown[0], counts->all[0]);
}

/* How the row of the verdict is chosen (advise_best). */
static void print_choice(FILE *stream, const struct advise_result *result, const char *capacity)
{
    if (!advise_best(result))
        return;
    say(stream,
        "->: the advice above. If the recorded setting fits in %s, it is the advice. Else: of the "
        "single settings that fit%s, the best ranked. A pair only if no single setting fits.",
        capacity, result->timed ? " and are at most 1 % slower than the fastest of them" : "");
}

void advise_page_unsure(FILE *stream, const struct advise_result *result)
{
    char line[320], room[96] = "";
    if (result->peak.late_bytes)
        snprintf(room, sizeof room, ", or with memory for one of %s more or less,",
                 AR_SIZE(result->peak.late_bytes));
    snprintf(line, sizeof line,
             "?: with blocks of other streams free at once%s the answer is the opposite, and the "
             "recording does not show when they are free under another setting.",
             room);
    if (has_sensitivity(result, TRIAL_LATE))
        say(stream, "%s", line);
    if (has_sensitivity(result, TRIAL_RELEASES))
        say(stream, "?: without the releases of the cache that are assumed to be the program's own "
                    "the answer is the opposite; they may be the allocator's, because the recorded "
                    "setting differs here.");
    if (has_sensitivity(result, TRIAL_UNTIMED))
        say(stream, "?: the need of the driver's own pool depends on when kernels end and when the "
                    "program waits, which is not recorded.");
}

/* Whether a row has a lower need than one before it, because it is slow. */
static bool has_slow_ones(const struct advise_result *result)
{
    for (size_t i = 1; i < result->count; i++) {
        const struct advise_row *row = &result->rows[i], *before = row - 1;
        if (row->candidate.own == before->candidate.own && row->rank != before->rank &&
            row->safe_bytes && row->safe_bytes < before->safe_bytes)
            return true;
    }
    return false;
}

static void print_none(FILE *stream, const struct advise_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        if (!result->rows[i].safe_bytes && result->rows[i].alone.begun &&
            result->rows[i].at.sensitivity != TRIAL_UNTIMED) {
            say(stream, "none: it fails with the most that was tried, which is four times the live "
                        "peak and at least 256 MiB.");
            return;
        }
}

static enum ar_status print_table(FILE *stream, const struct advise_page *page,
                                  struct ar_error *error)
{
    const struct advise_result *result = page->result;
    char at[32];
    const bool large = result->capacity_bytes >= AR_GIB;
    const double size = (double)result->capacity_bytes / (double)(large ? AR_GIB : AR_MIB);
    const char *capacity = AR_SIZE(result->capacity_bytes);
    snprintf(at, sizeof at, size < 100 ? "%.3g %s" : "%.0f %s", size, large ? "GiB" : "MiB");
    struct table *table =
        result->timed
            ? table_of("#; needs|MiB; slow|at need; takes|MiB; fits<; slow at|%s; flush; setting<",
                       at)
            : table_of("#; needs|MiB; takes|MiB; fits<; flush; retry; setting<");
    const struct row_counts counts = add_rows(table, page);
    fputc('\n', stream);
    AR_TRY(table_end(table, stream, TABLE_TEXT, error));
    print_counts(stream, &counts);
    print_same(stream, page);
    fputc('\n', stream);
    print_choice(stream, result, capacity);
    say(stream,
        "needs: the least capacity from which on it passes%s; takes: reserved with all of the "
        "card; %sfits, flush%s: at %s.",
        result->all_tried ? "" : " (in steps of 2 %; `capacity` tries more)",
        result->timed ? "slow: the time, 1 with an allocator that costs nothing; " : "",
        result->timed ? "" : ", retry", capacity);
    say(stream,
        "Needs within %.2f %% count as equal and have the same rank: of these, the setting with "
        "the fewest keys is advised first, then what is recommended.%s",
        100 * result->uncertainty,
        !has_slow_ones(result) ? ""
        : result->timed        ? " What takes more than twice the time comes last."
                               : " As times are not known, direct and async come last.");
    print_none(stream, result);
    advise_page_unsure(stream, result);
    return AR_OK;
}

static void print_setting(FILE *stream, const struct advise_row *row)
{
    char label[32];
    snprintf(label, sizeof label, " %2zu  ", row->rank);
    sentence_copied(stream, label, advise_page_setting(row));
    if (row->needs.major)
        fprintf(stream, "     Needs PyTorch %u.%u.\n", row->needs.major, row->needs.minor);
    if (row->candidate.cost) {
        fputs("     ", stream);
        sentence_wrap(stream, row->candidate.cost, 5, 5, SENTENCE_WIDTH);
    }
}

static void print_left_out(FILE *stream, const struct advise_result *result)
{
    char line[768];
    if (!result->left_out_count)
        return;
    snprintf(line, sizeof line,
             "Not offered, because PyTorch %u.%u does not accept %s: ", result->release.major,
             result->release.minor, result->left_out_count == 1 ? "it" : "them");
    for (size_t i = 0; i < result->left_out_count; i++) {
        const struct torch_conf_key *key = result->left_out[i];
        text_add(line, sizeof line, "%s%s%s%s%s (needs PyTorch %u.%u)", i ? ", " : "", key->name,
                 key->value ? ":" : "", key->value ? key->value : "",
                 key->value && *key->value == '[' ? "..]" : "", key->first.major, key->first.minor);
    }
    text_add(line, sizeof line, ".");
    say(stream, "%s", line);
}

/* The texts to set: that of the verdict, then those of the first rows that fit, or of which it
 * cannot be told; if all fail, those of the first rows. */
static void print_settings(FILE *stream, const struct advise_result *result)
{
    const struct advise_row *given = advise_given(result), *best = advise_best(result);
    const struct advise_row *unsure = first_unsure(result);
    const struct advise_row *first = best ? best : unsure ? unsure : least_of(result, false);
    const char *heading = best && best == given ? "To need less (it fits as it is):"
                          : best                ? "To set:"
                          : unsure              ? "To set (see ? above):"
                                                : "Least memory, not enough here:";
    size_t shown = 0, left_out = 0;
    if (!result->own_count)
        return;
    if (first && !(best && best == given) && first->candidate.own) {
        fprintf(stream, "\n%s\n", heading);
        print_setting(stream, first);
        shown++;
    }
    for (size_t i = 0; i < result->own_count; i++) {
        const struct advise_row *row = &result->rows[i];
        if (row == first || !row->safe_bytes || (given && advise_does_as_recorded(row, given)) ||
            ((best || unsure) && advise_fits(row) == ADVISE_FITS_NOT) ||
            (best && best == given &&
             (row->rank == best->rank || row->safe_bytes >= best->safe_bytes)))
            continue;
        if (shown < SETTINGS_MOST) {
            if (!shown)
                fprintf(stream, "\n%s\n", heading);
            print_setting(stream, row);
            shown++;
        } else {
            left_out++;
        }
    }
    if (left_out)
        sentence_format(stream, 5, "     Left out here: %zu more%s; `--json -` has their texts.",
                        left_out,
                        best && best == given ? " that would need less"
                        : best                ? " that would fit"
                                              : "");
}

static void print_tried(FILE *stream, const struct advise_result *result)
{
    size_t settings = 0, pairs = 0;
    for (size_t i = 0; i < result->tried; i++) {
        const struct candidate *candidate = &result->rows[i].candidate;
        pairs += candidate_is_pair(candidate);
        settings += candidate->own && !candidate_is_pair(candidate);
    }
    fputc('\n', stream);
    say(stream,
        "Tried: %zu setting%s, %zu pairs of settings (of different keys), and %zu other policies. "
        "A pair is listed if it needs 1 %% less than both halves, or if only pairs fit.",
        settings, settings == 1 ? "" : "s", pairs, result->tried - settings - pairs);
}

enum ar_status advise_page_print(FILE *stream, const struct advise_page *page,
                                 struct ar_error *error)
{
    const struct advise_result *result = page->result;
    say(stream, "%s, at %s%s, frees %s", page->name, AR_SIZE(result->capacity_bytes),
        result->as_limit ? " as the program's own limit" : "", replay_frees_name(page->frees));
    print_verdict(stream, page);
    if (result->capacity_from >= ADVISE_FROM_TOTAL || result->capacity_from == ADVISE_FROM_DRIVER ||
        (result->card.source == RECORDED_CARD_ASKED && result->card.driver_bytes))
        card_sentence_print(stream, &result->card, result->profile);
    print_incomplete(stream, result);
    AR_TRY(print_table(stream, page, error));
    print_settings(stream, result);
    print_left_out(stream, result);
    print_tried(stream, result);
    fputs("\nHow sure\n", stream);
    card_costs_print(stream, result->costs_of);
    advise_page_sure(stream, page);
    return AR_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Advice as JSON. */

static void put_ratio(struct json_writer *json, const char *name, double ratio)
{
    json_put_known_real(json, name, ratio > 0, ratio);
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
    JSON_PUT(json, trial, peak_physical_bytes, retries, flushes);
    put_ratio(json, "slowdown", trial->slowdown);
    json_end_object(json);
}

static void put_release(struct json_writer *json, const char *name, struct torch_release release)
{
    char text[32];
    snprintf(text, sizeof text, "%u.%u", release.major, release.minor);
    json_put_text(json, name, release.major ? text : NULL);
}

static void put_row(struct json_writer *json, const struct advise_row *row,
                    const struct advise_row *given)
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
    json_put_bool(json, "same_as_recorded", given && advise_does_as_recorded(row, given));
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
        put_row(json, &result->rows[i], advise_given(result));
    json_end_array(json);
    json_end_object(json);
}

enum ar_status advise_json_write(FILE *stream, const struct advise_page *pages, size_t count,
                                 const uint64_t *batches, struct ar_error *error)
{
    struct json_writer json = {.stream = stream};
    json_begin_object(&json, NULL);
    json_put_text(&json, "schema", "allocrig.advise/1");
    json_begin_array(&json, "traces");
    for (size_t i = 0; i < count; i++)
        put_page(&json, &pages[i]);
    json_end_array(&json);
    if (batches)
        AR_TRY(advise_json_batches(&json, pages, batches, error));
    json_end_object(&json);
    return AR_OK;
}
