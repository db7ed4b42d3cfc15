#include "bench/regress/verdict.h"

#include <math.h>

#include "allocators/base/array.h"
#include "bench/regress/change_table.h"
#include "workloads/io/fields.h"

struct work {
    struct verdicts *out;
    const struct result_set *old, *new;
    const struct verdict_rules *rules;
    bool one_machine;
    struct ar_error *error;
};

struct pair {
    const struct result_row *old, *new;
};

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[VERDICT_COUNT] = {"SAME", "BETTER", "WORSE", "AMBIGUOUS",
                                                     "NO-DATA"};
    return names[verdict];
}

static enum ar_status add_row(struct work *work, const struct verdict_row *row)
{
    struct verdicts *out = work->out;
    out->lost += row->lost;
    return AR_APPEND(out->rows, out->count, out->room, *row, work->error, "the comparison");
}

static struct verdict_row row_of(const struct result_row *run, const char *figure,
                                 enum verdict verdict)
{
    return (struct verdict_row){
        .verdict = verdict,
        .policy = run->policy,
        .workload = run->workload,
        .workload_name = run->workload_name,
        .where = run->device,
        .device = run->resolved_device,
        .frees = run->frees,
        .host = run->host,
        .seed = run->seed,
        .figure = figure,
        .old = "-",
        .new = "-",
        .change = -1,
        .difference = -1,
    };
}

/* ---- contradictions ------------------------------------------------------------------------- */

/* Timed figures differ from repetition to repetition; all others must be the same in all
 * repetitions of a run. The messages name the first repetition and the first that differs from
 * it. */

/* Names two places of one result set: "the results of OLD contradict each other: runs 1 and 3 of
 * b.json". */
static void say_contradiction(struct verdict_row *row, bool in_old, const char *what,
                              const char *file, size_t number, const char *other_file,
                              size_t other_number)
{
    const char *set = in_old ? "OLD" : "NEW";
    if (file == other_file)
        snprintf(row->note, sizeof row->note,
                 "the results of %s contradict each other: %ss %zu and %zu of %.100s", set, what,
                 number, other_number, field_file_name(file));
    else
        snprintf(row->note, sizeof row->note,
                 "the results of %s contradict each other: %s %zu of %.90s and %zu of %.90s", set,
                 what, number, field_file_name(file), other_number, field_file_name(other_file));
}

static void say_runs(struct verdict_row *row, bool in_old, const struct result_run *run,
                     const struct result_run *other)
{
    say_contradiction(row, in_old, "run", run->file, run->number, other->file, other->number);
}

static bool contradiction_of_ends(const struct result_row *old, const struct result_row *new,
                                  struct verdict_row *row)
{
    const struct result_run *apart = result_row_ends_apart(old);
    const struct result_run *new_apart = result_row_ends_apart(new);
    if (apart)
        say_runs(row, true, &old->runs[0], apart);
    else if (new_apart)
        say_runs(row, false, &new->runs[0], new_apart);
    return apart || new_apart;
}

/* Both values of a result set that has two, otherwise the one. */
static void values_text(const struct result_row *run, const struct result_run *differs,
                        enum metric metric, char text[CHANGE_VALUE_ROOM])
{
    char one[40], other[40] = "";
    result_value_text(&run->runs[0].metrics.at[metric], one);
    if (differs)
        result_value_text(&differs->metrics.at[metric], other);
    snprintf(text, CHANGE_VALUE_ROOM, "%s%s%s", one, differs ? " and " : "", other);
}

static bool contradiction_of_metric(const struct result_row *old_row,
                                    const struct result_row *new_row, enum metric metric,
                                    struct verdict_row *row)
{
    const struct result_run *old = result_row_differs(old_row, metric);
    const struct result_run *new = result_row_differs(new_row, metric);
    if (result_row_is_timed(new_row, metric) || (!old && !new))
        return false;
    values_text(old_row, old, metric, row->old);
    values_text(new_row, new, metric, row->new);
    if (old)
        say_runs(row, true, &old_row->runs[0], old);
    else
        say_runs(row, false, &new_row->runs[0], new);
    row->lost = new != NULL;
    return true;
}

/* Another count of the same operation that differs by more than VERDICT_INSTRUCTIONS; NULL if
 * there is none. */
static const struct instruction_count *find_other(const struct result_set *set,
                                                  const struct instruction_count *count)
{
    for (size_t i = 0; i < set->count_count; i++)
        if (instruction_count_same(&set->counts[i], count) &&
            strcmp(set->counts[i].compiler, count->compiler) == 0 &&
            fabs(set->counts[i].value / count->value - 1) > VERDICT_INSTRUCTIONS)
            return &set->counts[i];
    return NULL;
}

static bool contradiction_of_count(const struct result_set *set, bool in_old,
                                   const struct instruction_count *count, struct verdict_row *row)
{
    const struct instruction_count *other = find_other(set, count);
    if (!other)
        return false;
    const struct instruction_count *first = count < other ? count : other;
    other = count < other ? other : count;
    snprintf(in_old ? row->old : row->new, sizeof row->old, "%.1f and %.1f", first->value,
             other->value);
    row->lost = !in_old;
    say_contradiction(row, in_old, "row", first->file, first->number, other->file, other->number);
    return true;
}

/* ---- the outcome ---------------------------------------------------------------------------- */

static void outcome_text(const struct result_run *run, char text[40])
{
    if (run->passed)
        snprintf(text, 40, "passed");
    else if (run->played)
        snprintf(text, 40, "DNF @ %" PRIu64 " (%.13s)", run->first_failed_event,
                 run->cause ? run->cause : "?");
    else
        snprintf(text, 40, "%.39s", run->cause ? run->cause : "no run");
}

/* Compares how far two runs got: no run, up to an event, to the end. */
static int compare_far(const struct result_run *old, const struct result_run *new)
{
    int place_old = old->passed ? 2 : old->played;
    int place_new = new->passed ? 2 : new->played;
    if (place_old != place_new || place_old != 1)
        return (place_new > place_old) - (place_new < place_old);
    return (new->first_failed_event > old->first_failed_event) -
           (new->first_failed_event < old->first_failed_event);
}

/* Sets `*comparable` if both runs got equally far. */
static enum ar_status judge_outcome(struct work *work, const struct pair *pair, bool *comparable)
{
    const struct result_run *old = result_row_least_far(pair->old);
    const struct result_run *new = result_row_least_far(pair->new);
    int order = compare_far(old, new);
    struct verdict_row row =
        row_of(pair->new, "outcome", order > 0 ? VERDICT_BETTER : VERDICT_WORSE);
    outcome_text(old, row.old);
    outcome_text(new, row.new);
    *comparable = order == 0 && (old->passed || old->played);
    if (order == 0) {
        bool same_cause = !old->cause || !new->cause || strcmp(old->cause, new->cause) == 0;
        row.verdict = same_cause ? VERDICT_SAME : VERDICT_AMBIGUOUS;
        snprintf(row.note, sizeof row.note, "it fails for another cause");
    } else if (order < 0) {
        snprintf(row.note, sizeof row.note, "%s",
                 old->passed ? "finished before" : "fails earlier than before");
    } else {
        snprintf(row.note, sizeof row.note, "%s", new->passed ? "finishes now" : "fails later");
    }
    work->out->figures[row.verdict]++;
    AR_TRY(row.verdict == VERDICT_SAME ? AR_OK : add_row(work, &row));
    if (order == 0)
        return AR_OK;
    row = row_of(pair->new, "all others", VERDICT_NO_DATA);
    if (!contradiction_of_ends(pair->old, pair->new, &row))
        snprintf(row.note, sizeof row.note, "the two runs did not get equally far");
    work->out->figures[VERDICT_NO_DATA]++;
    return add_row(work, &row);
}

/* ---- exact ---------------------------------------------------------------------------------- */

static double number_of(const struct metric_value *value)
{
    return value->kind == METRIC_INTEGER ? (double)value->integer : value->real;
}

static int compare_values(const struct metric_value *a, const struct metric_value *b)
{
    if (a->kind == METRIC_INTEGER && b->kind == METRIC_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    double left = number_of(a);
    double right = number_of(b);
    return (left > right) - (left < right);
}

static enum ar_status judge_exactly(struct work *work, const struct pair *pair, enum metric metric)
{
    const struct metric_info *info = metric_info(metric);
    const struct metric_value *old = &pair->old->runs[0].metrics.at[metric];
    const struct metric_value *new = &pair->new->runs[0].metrics.at[metric];
    if (result_value_same(old, new)) {
        work->out->figures[VERDICT_SAME]++;
        return AR_OK;
    }
    struct verdict_row row = row_of(pair->new, info->name, VERDICT_AMBIGUOUS);
    result_value_text(old, row.old);
    result_value_text(new, row.new);
    if (old->kind == METRIC_NULL || new->kind == METRIC_NULL) {
        row.lost = new->kind == METRIC_NULL;
        snprintf(row.note, sizeof row.note, "only one of the two has a value");
    } else if (info->better == METRIC_NEITHER) {
        snprintf(row.note, sizeof row.note, "neither direction is the better one");
    } else {
        bool more = compare_values(new, old) > 0;
        bool better = more == (info->better == METRIC_HIGHER);
        row.verdict = better ? VERDICT_BETTER : VERDICT_WORSE;
        const double was = number_of(old);
        row.change = was != 0 ? fabs(number_of(new) / was - 1) : -1;
        if (change_is_share(info->unit, was, number_of(new)))
            row.difference = fabs(number_of(new) - was);
    }
    work->out->figures[row.verdict]++;
    return add_row(work, &row);
}

/* ---- timed ---------------------------------------------------------------------------------- */

static bool is_timed(const struct pair *pair, enum metric metric)
{
    return result_row_is_timed(pair->new, metric) || result_row_differs(pair->old, metric) ||
           result_row_differs(pair->new, metric);
}

/* Collects the values that are not null and returns their number; SIZE_MAX if one is not above 0,
 * because a ratio needs values above 0. */
static size_t gather(const struct result_row *run, enum metric metric, double *values)
{
    size_t count = 0;
    bool bad = false;
    for (size_t i = 0; i < run->run_count; i++) {
        const struct metric_value *value = &run->runs[i].metrics.at[metric];
        if (value->kind == METRIC_NULL)
            continue;
        values[count++] = number_of(value);
        bad = bad || !(number_of(value) > 0);
    }
    return bad ? SIZE_MAX : count;
}

static enum ar_status test(struct work *work, const struct pair *pair, enum metric metric,
                           struct verdict_row *row, double *values)
{
    double *more = values + pair->old->run_count;
    size_t old = gather(pair->old, metric, values);
    size_t new = gather(pair->new, metric, more);
    row->lost = old && !new;
    bool possible = old != SIZE_MAX && new != SIZE_MAX &&
                    work->one_machine &&old >= RANK_TEST_LEAST &&new >= RANK_TEST_LEAST;
    if (!possible && contradiction_of_metric(pair->old, pair->new, metric, row))
        return AR_OK;
    if (old == SIZE_MAX || new == SIZE_MAX) {
        snprintf(row->note, sizeof row->note, "a repetition has the value 0");
        return AR_OK;
    }
    if (!work->one_machine) {
        snprintf(row->note, sizeof row->note, "times of different machines are not compared");
        return AR_OK;
    }
    if (old < RANK_TEST_LEAST || new < RANK_TEST_LEAST) {
        snprintf(row->note, sizeof row->note, "%zu and %zu repetitions; each needs at least %d",
                 old, new, RANK_TEST_LEAST);
        return AR_OK;
    }
    row->timed = true;
    return rank_test(values, old, more, new, &row->test, work->error);
}

static enum ar_status judge_timed(struct work *work, const struct pair *pair, enum metric metric)
{
    const struct metric_info *info = metric_info(metric);
    struct verdict_row row = row_of(pair->new, info->name, VERDICT_NO_DATA);
    size_t room = pair->old->run_count + pair->new->run_count;
    AR_FREED double *values = calloc(room, sizeof *values);
    AR_TRY_MEMORY(values, work->error, "the comparison");
    bool any = gather(pair->old, metric, values) || gather(pair->new, metric, values);
    if (any && info->better != METRIC_NEITHER) {
        AR_TRY(test(work, pair, metric, &row, values));
        work->out->figures[VERDICT_NO_DATA] += !row.timed;
        AR_TRY(add_row(work, &row));
    }
    return AR_OK;
}

/* Sets the verdict of a timed figure; `p` is corrected for the number of tests. */
static void conclude(struct work *work, struct verdict_row *row, double p)
{
    const struct verdict_rules *rules = work->rules;
    const struct rank_test *test = &row->test;
    bool lower = true;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metric_info((enum metric)i)->name, row->figure) == 0)
            lower = metric_info((enum metric)i)->better == METRIC_LOWER;
    bool sure = p <= rules->alpha;
    double size = fabs(test->ratio - 1);
    bool within = test->low >= 1 - rules->effect && test->high <= 1 + rules->effect;
    if (sure && size >= rules->effect)
        row->verdict = (test->ratio < 1) == lower ? VERDICT_BETTER : VERDICT_WORSE;
    else
        row->verdict = within || sure ? VERDICT_SAME : VERDICT_AMBIGUOUS;
    row->change = size;
    row->p = p;
    snprintf(row->old, sizeof row->old, "1");
    snprintf(row->new, sizeof row->new, "%.4f", test->ratio);
    snprintf(row->note, sizeof row->note,
             "x %.3f, 95 %% from %.3f to %.3f; delta %+.2f; p %.2g of all tests; sees %.1f %%",
             test->ratio, test->low, test->high, test->delta, p, 100 * test->sees);
}

static enum ar_status conclude_all(struct work *work)
{
    struct verdicts *out = work->out;
    AR_FREED double *p = calloc(out->count ? out->count : 1, sizeof *p);
    size_t count = 0;
    AR_TRY_MEMORY(p, work->error, "the comparison");
    for (size_t i = 0; i < out->count; i++)
        if (out->rows[i].timed)
            p[count++] = out->rows[i].test.p;
    AR_TRY(rank_test_holm(p, count, work->error));
    for (size_t i = 0, at = 0; i < out->count; i++)
        if (out->rows[i].timed)
            conclude(work, &out->rows[i], p[at++]);
    out->timed = count;
    count = 0;
    for (size_t i = 0; i < out->count; i++)
        if (out->rows[i].timed)
            p[count++] = out->rows[i].test.sees;
    if (count) {
        statistic_sort(p, count);
        out->sees_median = p[(count - 1) / 2];
        out->sees_most = p[count - 1];
    }
    return AR_OK;
}

/* ---- runs and counts ------------------------------------------------------------------------ */

static enum ar_status judge_run(struct work *work, const struct pair *pair)
{
    bool comparable = false;
    if (strcmp(pair->old->sha256, pair->new->sha256) != 0) {
        struct verdict_row row = row_of(pair->new, "all", VERDICT_NO_DATA);
        snprintf(row.note, sizeof row.note, "the workload has changed");
        work->out->figures[VERDICT_NO_DATA]++;
        return add_row(work, &row);
    }
    AR_TRY(judge_outcome(work, pair, &comparable));
    for (int i = 0; i < METRIC_COUNT && comparable; i++) {
        enum metric metric = (enum metric)i;
        if (metric == METRIC_first_failed_event)
            continue; /* the outcome */
        if (i >= METRIC_FIRST_OPTIONAL && !pair->old->runs[0].there[i] &&
            !pair->new->runs[0].there[i])
            continue;
        if (!pair->old->runs[0].there[i] || !pair->new->runs[0].there[i]) {
            struct verdict_row row = row_of(pair->new, metric_info(metric)->name, VERDICT_NO_DATA);
            row.lost = pair->old->runs[0].there[i];
            snprintf(row.note, sizeof row.note, "only one of the two has this metric");
            work->out->figures[VERDICT_NO_DATA]++;
            AR_TRY(add_row(work, &row));
        } else {
            AR_TRY(is_timed(pair, metric) ? judge_timed(work, pair, metric)
                                          : judge_exactly(work, pair, metric));
        }
    }
    return AR_OK;
}

static const struct result_row *find_run(const struct result_set *set,
                                         const struct result_row *like, size_t near)
{
    /* Both result sets mostly have the same order. */
    if (near < set->row_count && result_row_same(&set->rows[near], like))
        return &set->rows[near];
    for (size_t i = 0; i < set->row_count; i++)
        if (result_row_same(&set->rows[i], like))
            return &set->rows[i];
    return NULL;
}

static enum ar_status add_unmatched(struct work *work, const struct result_row *run, bool in_old)
{
    struct verdict_row row = row_of(run, "all", VERDICT_NO_DATA);
    row.missing = in_old;
    row.added = !in_old;
    work->out->missing += in_old;
    snprintf(row.note, sizeof row.note, "%s",
             in_old ? "missing: NEW has no such run" : "new: OLD has no such run");
    work->out->figures[VERDICT_NO_DATA]++;
    return add_row(work, &row);
}

static enum ar_status judge_runs(struct work *work)
{
    for (size_t i = 0; i < work->new->row_count; i++) {
        const struct result_row *run = &work->new->rows[i];
        struct pair pair = {find_run(work->old, run, i), run};
        work->out->runs += pair.old != NULL;
        AR_TRY(pair.old ? judge_run(work, &pair) : add_unmatched(work, run, false));
    }
    for (size_t i = 0; i < work->old->row_count; i++)
        if (!find_run(work->new, &work->old->rows[i], i))
            AR_TRY(add_unmatched(work, &work->old->rows[i], true));
    return AR_OK;
}

static const struct instruction_count *find_count(const struct result_set *set,
                                                  const struct instruction_count *like)
{
    for (size_t i = 0; i < set->count_count; i++)
        if (instruction_count_same(&set->counts[i], like))
            return &set->counts[i];
    return NULL;
}

static struct verdict_row row_of_count(const struct instruction_count *count)
{
    const struct result_row run = {.policy = count->policy,
                                   .workload = count->trace,
                                   .workload_name = count->trace,
                                   .device = count->kind};
    bool is_exact = strcmp(count->measure, "exact") == 0;
    return row_of(&run, is_exact ? "instructions_exact" : "instructions", VERDICT_NO_DATA);
}

static enum ar_status judge_count(struct work *work, const struct instruction_count *old,
                                  const struct instruction_count *new)
{
    struct verdict_row row = row_of_count(new);
    if (!old) {
        snprintf(row.note, sizeof row.note, "new: OLD has no such count");
    } else if (strcmp(old->compiler, new->compiler) != 0) {
        snprintf(row.note, sizeof row.note, "made by %.80s before, now by %.80s", old->compiler,
                 new->compiler);
    } else if (!contradiction_of_count(work->old, true, old, &row) &&
               !contradiction_of_count(work->new, false, new, &row)) {
        double ratio = new->value / old->value;
        row.verdict = ratio > 1 + VERDICT_INSTRUCTIONS   ? VERDICT_WORSE
                      : ratio < 1 - VERDICT_INSTRUCTIONS ? VERDICT_BETTER
                                                         : VERDICT_SAME;
        row.change = fabs(ratio - 1);
        snprintf(row.old, sizeof row.old, "%.1f", old->value);
        snprintf(row.new, sizeof row.new, "%.1f", new->value);
    }
    work->out->counts += old != NULL;
    work->out->figures[row.verdict]++;
    return row.verdict == VERDICT_SAME ? AR_OK : add_row(work, &row);
}

static enum ar_status judge_counts(struct work *work)
{
    for (size_t i = 0; i < work->new->count_count; i++)
        AR_TRY(
            judge_count(work, find_count(work->old, &work->new->counts[i]), &work->new->counts[i]));
    for (size_t i = 0; i < work->old->count_count; i++) {
        if (find_count(work->new, &work->old->counts[i]))
            continue;
        struct verdict_row row = row_of_count(&work->old->counts[i]);
        snprintf(row.note, sizeof row.note, "missing: NEW has no such count");
        row.missing = true;
        work->out->missing++;
        work->out->figures[VERDICT_NO_DATA]++;
        AR_TRY(add_row(work, &row));
    }
    return AR_OK;
}

static void look_for_waivers(struct work *work, struct waivers *waivers)
{
    for (size_t i = 0; i < work->out->count; i++) {
        struct verdict_row *row = &work->out->rows[i];
        if (row->verdict != VERDICT_WORSE || !waivers)
            continue;
        const struct waiver_case of = {row->figure,        row->policy,       row->workload,
                                       row->workload_name, work->new->commit, row->change};
        row->waiver = waivers_find(waivers, &of);
        work->out->waived += row->waiver && !row->waiver->expired;
    }
}

/* What identifies a run; see result_row_same. */
#define PARTS 6

static void parts_of(const struct result_row *row, const char *parts[PARTS], char seed[24])
{
    snprintf(seed, 24, "%" PRIu64, row->seed);
    parts[0] = row->workload;
    parts[1] = row->policy;
    parts[2] = row->resolved_device;
    parts[3] = row->frees;
    parts[4] = row->host;
    parts[5] = seed;
}

/* Names the first part in which the two runs differ that are most alike. */
static enum ar_status no_run_in_common(const struct result_set *old, const struct result_set *new,
                                       struct ar_error *error)
{
    static const char *const names[PARTS] = {"workload",    "policy",    "device",
                                             "way to free", "host time", "seed"};
    const char *a[PARTS], *b[PARTS];
    char seed_a[24], seed_b[24], differs[400] = "";
    int most = -1;
    for (size_t i = 0; i < old->row_count; i++)
        for (size_t j = 0; j < new->row_count; j++) {
            int same = 0, first = PARTS;
            parts_of(&old->rows[i], a, seed_a);
            parts_of(&new->rows[j], b, seed_b);
            for (int k = 0; k < PARTS; k++)
                if (strcmp(a[k], b[k]) == 0)
                    same++;
                else if (first == PARTS)
                    first = k;
            if (same <= most || first == PARTS)
                continue;
            most = same;
            snprintf(differs, sizeof differs,
                     "the %s: %.120s in OLD, %.120s in NEW; make both runs with the same",
                     names[first], a[first], b[first]);
        }
    return ar_invalid(error, "OLD and NEW have no run in common, so nothing can be compared; %s%s",
                      differs[0] ? "the runs that are most alike differ in " : "one has no runs",
                      differs);
}

enum ar_status verdicts_make(struct verdicts *self, const struct result_set *old,
                             const struct result_set *new, const struct verdict_rules *rules,
                             struct waivers *waivers, struct ar_error *error)
{
    *self = (struct verdicts){.old = old, .new = new, .require_all = rules->require_all};
    struct work work = {self, old, new, rules, false, error};
    work.one_machine =
        old->machine && new->machine && old->machine[0] && strcmp(old->machine, new->machine) == 0;
    AR_TRY(judge_runs(&work));
    AR_TRY(judge_counts(&work));
    if (self->runs + self->counts == 0)
        return no_run_in_common(old, new, error);
    AR_TRY(conclude_all(&work));
    /* The other figures were counted when they were compared; timed ones have a verdict only
     * now. */
    for (size_t i = 0; i < self->count; i++)
        self->figures[self->rows[i].verdict] += self->rows[i].timed;
    look_for_waivers(&work, waivers);
    return AR_OK;
}

void verdicts_close(struct verdicts *self)
{
    free(self->rows);
    *self = (struct verdicts){0};
}
