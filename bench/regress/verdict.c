#include "bench/regress/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "bench/regress/contradiction.h"

struct work {
    struct verdicts *out;
    const struct side *old, *new_;
    const struct verdict_rules *rules;
    bool one_machine;
    struct ar_error *error;
};

struct pair {
    const struct side_cell *old, *new_;
};

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[VERDICT_COUNT] = {"SAME", "BETTER", "WORSE", "AMBIGUOUS",
                                                     "NO-DATA"};
    return names[verdict];
}

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the comparison");
}

static enum ar_status add_row(struct work *work, const struct verdict_row *row)
{
    struct verdicts *out = work->out;
    struct verdict_row *rows = ar_array_grow(out->rows, out->count, &out->room, sizeof *rows);
    if (!rows)
        return no_memory(work->error);
    out->rows = rows;
    out->rows[out->count++] = *row;
    return AR_OK;
}

static struct verdict_row row_of(const struct side_cell *cell, const char *figure,
                                 enum verdict verdict)
{
    return (struct verdict_row){
        .verdict = verdict,
        .policy = cell->policy,
        .workload = cell->workload,
        .workload_name = cell->workload_name,
        .where = cell->device,
        .figure = figure,
        .old = "-",
        .new_ = "-",
        .change = -1,
    };
}

/* ---- the outcome ---------------------------------------------------------------------------- */

static void outcome_text(const struct side_run *run, char text[40])
{
    if (run->passed)
        snprintf(text, 40, "passed");
    else if (run->played)
        snprintf(text, 40, "DNF @ %" PRIu64 " (%.13s)", run->first_failed_event,
                 run->cause ? run->cause : "?");
    else
        snprintf(text, 40, "%.39s", run->cause ? run->cause : "no run");
}

/* How far it got: no run, to an event, to the end. */
static int compare_far(const struct side_run *old, const struct side_run *new_)
{
    int place_old = old->passed ? 2 : old->played;
    int place_new = new_->passed ? 2 : new_->played;
    if (place_old != place_new || place_old != 1)
        return (place_new > place_old) - (place_new < place_old);
    return (new_->first_failed_event > old->first_failed_event) -
           (new_->first_failed_event < old->first_failed_event);
}

/* Sets `*go_on` where both got equally far. */
static enum ar_status judge_outcome(struct work *work, const struct pair *pair, bool *go_on)
{
    const struct side_run *old = side_least_far(pair->old);
    const struct side_run *new_ = side_least_far(pair->new_);
    int order = compare_far(old, new_);
    struct verdict_row row =
        row_of(pair->new_, "outcome", order > 0 ? VERDICT_BETTER : VERDICT_WORSE);
    outcome_text(old, row.old);
    outcome_text(new_, row.new_);
    *go_on = order == 0 && (old->passed || old->played);
    if (order == 0) {
        bool same_cause = !old->cause || !new_->cause || strcmp(old->cause, new_->cause) == 0;
        row.verdict = same_cause ? VERDICT_SAME : VERDICT_AMBIGUOUS;
        snprintf(row.note, sizeof row.note, "the cause is another");
    } else if (order < 0) {
        snprintf(row.note, sizeof row.note, "%s",
                 old->passed ? "finished before" : "fails earlier than before");
    } else {
        snprintf(row.note, sizeof row.note, "%s", new_->passed ? "finishes now" : "fails later");
    }
    work->out->figures[row.verdict]++;
    enum ar_status status = row.verdict == VERDICT_SAME ? AR_OK : add_row(work, &row);
    if (status || order == 0)
        return status;
    row = row_of(pair->new_, "all others", VERDICT_NO_DATA);
    if (!contradiction_of_ends(pair->old, pair->new_, &row))
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

/* How much worse, as a fraction of the old value. */
static double fraction_worse(double old, double new_)
{
    return old != 0 ? fabs(new_ / old - 1) : -1;
}

static enum ar_status judge_exactly(struct work *work, const struct pair *pair, enum metric metric)
{
    const struct metric_info *info = metric_info(metric);
    const struct metric_value *old = &pair->old->runs[0].metrics.at[metric];
    const struct metric_value *new_ = &pair->new_->runs[0].metrics.at[metric];
    if (side_same_value(old, new_)) {
        work->out->figures[VERDICT_SAME]++;
        return AR_OK;
    }
    struct verdict_row row = row_of(pair->new_, info->name, VERDICT_AMBIGUOUS);
    side_value_text(old, row.old);
    side_value_text(new_, row.new_);
    if (old->kind == METRIC_NULL || new_->kind == METRIC_NULL) {
        snprintf(row.note, sizeof row.note, "a value on one side only");
    } else if (info->better == METRIC_NEITHER) {
        snprintf(row.note, sizeof row.note, "neither direction is the better one");
    } else {
        bool more = compare_values(new_, old) > 0;
        bool better = more == (info->better == METRIC_HIGHER);
        row.verdict = better ? VERDICT_BETTER : VERDICT_WORSE;
        row.change = fraction_worse(number_of(old), number_of(new_));
    }
    work->out->figures[row.verdict]++;
    return add_row(work, &row);
}

/* ---- timed ---------------------------------------------------------------------------------- */

static bool is_timed(const struct pair *pair, enum metric metric)
{
    return side_is_timed(pair->new_, metric) || side_differs(pair->old, metric) ||
           side_differs(pair->new_, metric);
}

/* The values that are there; returns how many, SIZE_MAX for one that no factor can be of. */
static size_t gather(const struct side_cell *cell, enum metric metric, double *values)
{
    size_t count = 0;
    bool bad = false;
    for (size_t i = 0; i < cell->run_count; i++) {
        const struct metric_value *value = &cell->runs[i].metrics.at[metric];
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
    size_t new_ = gather(pair->new_, metric, more);
    bool possible = old != SIZE_MAX && new_ != SIZE_MAX && work->one_machine &&
                    old >= RANK_TEST_LEAST && new_ >= RANK_TEST_LEAST;
    if (!possible && contradiction_of_metric(pair->old, pair->new_, metric, row))
        return AR_OK;
    if (old == SIZE_MAX || new_ == SIZE_MAX) {
        snprintf(row->note, sizeof row->note, "a value of 0 among the repetitions");
        return AR_OK;
    }
    if (!work->one_machine) {
        snprintf(row->note, sizeof row->note, "times of different machines are not compared");
        return AR_OK;
    }
    if (old < RANK_TEST_LEAST || new_ < RANK_TEST_LEAST) {
        snprintf(row->note, sizeof row->note,
                 "%zu and %zu repetitions; at least %d a side are needed", old, new_,
                 RANK_TEST_LEAST);
        return AR_OK;
    }
    row->timed = true;
    return rank_test(values, old, more, new_, &row->test, work->error);
}

static enum ar_status judge_timed(struct work *work, const struct pair *pair, enum metric metric)
{
    const struct metric_info *info = metric_info(metric);
    struct verdict_row row = row_of(pair->new_, info->name, VERDICT_NO_DATA);
    size_t room = pair->old->run_count + pair->new_->run_count;
    double *values = calloc(room, sizeof *values);
    if (!values)
        return no_memory(work->error);
    bool any = gather(pair->old, metric, values) || gather(pair->new_, metric, values);
    enum ar_status status = AR_OK;
    if (any && info->better != METRIC_NEITHER) {
        status = test(work, pair, metric, &row, values);
        work->out->figures[VERDICT_NO_DATA] += !row.timed;
        if (!status)
            status = add_row(work, &row);
    }
    free(values);
    return status;
}

/* What the rank tests say, once all were made. */
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
    snprintf(row->old, sizeof row->old, "1");
    snprintf(row->new_, sizeof row->new_, "%.4f", test->ratio);
    snprintf(row->note, sizeof row->note,
             "x %.3f, 95 %% from %.3f to %.3f; delta %+.2f; p %.2g of all tests; sees %.1f %%",
             test->ratio, test->low, test->high, test->delta, p, 100 * test->sees);
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static enum ar_status conclude_all(struct work *work)
{
    struct verdicts *out = work->out;
    double *p = calloc(out->count ? out->count : 1, sizeof *p);
    size_t count = 0;
    if (!p)
        return no_memory(work->error);
    for (size_t i = 0; i < out->count; i++)
        if (out->rows[i].timed)
            p[count++] = out->rows[i].test.p;
    enum ar_status status = rank_test_holm(p, count, work->error);
    for (size_t i = 0, at = 0; i < out->count && !status; i++)
        if (out->rows[i].timed)
            conclude(work, &out->rows[i], p[at++]);
    out->timed = count;
    count = 0;
    for (size_t i = 0; i < out->count; i++)
        if (out->rows[i].timed)
            p[count++] = out->rows[i].test.sees;
    if (count) {
        qsort(p, count, sizeof *p, compare_doubles);
        out->sees_median = p[(count - 1) / 2];
        out->sees_most = p[count - 1];
    }
    free(p);
    return status;
}

/* ---- cells and counts ----------------------------------------------------------------------- */

static enum ar_status judge_cell(struct work *work, const struct pair *pair)
{
    bool go_on = false;
    if (strcmp(pair->old->sha256, pair->new_->sha256) != 0) {
        struct verdict_row row = row_of(pair->new_, "all", VERDICT_NO_DATA);
        snprintf(row.note, sizeof row.note, "the workload is another than before");
        work->out->figures[VERDICT_NO_DATA]++;
        return add_row(work, &row);
    }
    enum ar_status status = judge_outcome(work, pair, &go_on);
    for (int i = 0; i < METRIC_COUNT && go_on && !status; i++) {
        enum metric metric = (enum metric)i;
        if (metric == METRIC_first_failed_event)
            continue; /* the outcome */
        if (!pair->old->runs[0].there[i] || !pair->new_->runs[0].there[i]) {
            struct verdict_row row = row_of(pair->new_, metric_info(metric)->name, VERDICT_NO_DATA);
            snprintf(row.note, sizeof row.note, "one side does not know this metric");
            work->out->figures[VERDICT_NO_DATA]++;
            status = add_row(work, &row);
        } else if (is_timed(pair, metric)) {
            status = judge_timed(work, pair, metric);
        } else {
            status = judge_exactly(work, pair, metric);
        }
    }
    return status;
}

static const struct side_cell *find_cell(const struct side *side, const struct side_cell *like,
                                         size_t near)
{
    /* Both sides mostly have the same order. */
    if (near < side->cell_count && side_same_cell(&side->cells[near], like))
        return &side->cells[near];
    for (size_t i = 0; i < side->cell_count; i++)
        if (side_same_cell(&side->cells[i], like))
            return &side->cells[i];
    return NULL;
}

static enum ar_status say_alone(struct work *work, const struct side_cell *cell, bool in_old)
{
    struct verdict_row row = row_of(cell, "all", VERDICT_NO_DATA);
    row.missing = in_old;
    work->out->missing += in_old;
    snprintf(row.note, sizeof row.note, "%s",
             in_old ? "missing: the new side has no such run"
                    : "new: the old side has no such run");
    work->out->figures[VERDICT_NO_DATA]++;
    return add_row(work, &row);
}

static enum ar_status judge_cells(struct work *work)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < work->new_->cell_count && !status; i++) {
        const struct side_cell *cell = &work->new_->cells[i];
        struct pair pair = {find_cell(work->old, cell, i), cell};
        work->out->cells += pair.old != NULL;
        status = pair.old ? judge_cell(work, &pair) : say_alone(work, cell, false);
    }
    for (size_t i = 0; i < work->old->cell_count && !status; i++)
        if (!find_cell(work->new_, &work->old->cells[i], i))
            status = say_alone(work, &work->old->cells[i], true);
    return status;
}

static const struct side_count *find_count(const struct side *side, const struct side_count *like)
{
    for (size_t i = 0; i < side->count_count; i++)
        if (side_same_count(&side->counts[i], like))
            return &side->counts[i];
    return NULL;
}

static struct verdict_row row_of_count(const struct side_count *count)
{
    return (struct verdict_row){
        .verdict = VERDICT_NO_DATA,
        .policy = count->policy,
        .workload = count->trace,
        .workload_name = count->trace,
        .where = count->kind,
        .figure = strcmp(count->measure, "exact") == 0 ? "instructions_exact" : "instructions",
        .old = "-",
        .new_ = "-",
        .change = -1,
    };
}

static enum ar_status judge_count(struct work *work, const struct side_count *old,
                                  const struct side_count *new_)
{
    struct verdict_row row = row_of_count(new_);
    if (!old) {
        snprintf(row.note, sizeof row.note, "new: the old side has no such count");
    } else if (strcmp(old->compiler, new_->compiler) != 0) {
        snprintf(row.note, sizeof row.note, "made by %.80s before, now by %.80s", old->compiler,
                 new_->compiler);
    } else if (!contradiction_of_count(work->old, true, old, &row) &&
               !contradiction_of_count(work->new_, false, new_, &row)) {
        double ratio = new_->value / old->value;
        row.verdict = ratio > 1 + VERDICT_INSTRUCTIONS   ? VERDICT_WORSE
                      : ratio < 1 - VERDICT_INSTRUCTIONS ? VERDICT_BETTER
                                                         : VERDICT_SAME;
        row.change = fabs(ratio - 1);
        snprintf(row.old, sizeof row.old, "%.1f", old->value);
        snprintf(row.new_, sizeof row.new_, "%.1f", new_->value);
    }
    work->out->cells += old != NULL;
    work->out->figures[row.verdict]++;
    return row.verdict == VERDICT_SAME ? AR_OK : add_row(work, &row);
}

static enum ar_status judge_counts(struct work *work)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < work->new_->count_count && !status; i++)
        status = judge_count(work, find_count(work->old, &work->new_->counts[i]),
                             &work->new_->counts[i]);
    for (size_t i = 0; i < work->old->count_count && !status; i++) {
        if (find_count(work->new_, &work->old->counts[i]))
            continue;
        struct verdict_row row = row_of_count(&work->old->counts[i]);
        snprintf(row.note, sizeof row.note, "missing: the new side has no such count");
        row.missing = true;
        work->out->missing++;
        work->out->figures[VERDICT_NO_DATA]++;
        status = add_row(work, &row);
    }
    return status;
}

static void look_for_waivers(struct work *work, struct waivers *waivers)
{
    for (size_t i = 0; i < work->out->count; i++) {
        struct verdict_row *row = &work->out->rows[i];
        if (row->verdict != VERDICT_WORSE || !waivers)
            continue;
        const struct waiver_case of = {row->figure,        row->policy,        row->workload,
                                       row->workload_name, work->new_->commit, row->change};
        row->waiver = waivers_find(waivers, &of);
        work->out->waived += row->waiver && !row->waiver->expired;
    }
}

enum ar_status verdicts_make(struct verdicts *self, const struct side *old, const struct side *new_,
                             const struct verdict_rules *rules, struct waivers *waivers,
                             struct ar_error *error)
{
    *self = (struct verdicts){0};
    struct work work = {self, old, new_, rules, false, error};
    work.one_machine = old->machine && new_->machine && old->machine[0] &&
                       strcmp(old->machine, new_->machine) == 0;
    enum ar_status status = judge_cells(&work);
    if (!status)
        status = judge_counts(&work);
    if (!status && self->cells == 0)
        status = ar_error_set(error, AR_INVALID,
                              "the two have no run in common, so nothing can be compared; are they "
                              "of the same suite?");
    if (!status)
        status = conclude_all(&work);
    /* The others were counted as they came; these have their verdicts only now. */
    for (size_t i = 0; i < self->count && !status; i++)
        self->figures[self->rows[i].verdict] += self->rows[i].timed;
    if (!status)
        look_for_waivers(&work, waivers);
    if (status)
        verdicts_close(self);
    return status;
}

void verdicts_close(struct verdicts *self)
{
    free(self->rows);
    *self = (struct verdicts){0};
}
