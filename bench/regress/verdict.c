#include "bench/regress/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"

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
    if (!AR_ARRAY_ADD(out->rows, out->count, out->room, *row))
        return no_memory(work->error);
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

/* Texts become numbers first, so that counting a candidate's rows is one pass over the rows. */

enum text { POLICY, WORKLOAD, FIGURE, TEXTS };

/* One call of groups_make. Arrays have room for all rows. */
struct grouping {
    const struct group_item *items;
    size_t count;
    size_t *ids[TEXTS]; /* of each row: the first row with the same text */
    size_t *tally;      /* of such ids */
    bool *done;
    struct groups *out;
};

static const char *text_of(const struct group_item *item, enum text text)
{
    return text == POLICY ? item->policy : text == WORKLOAD ? item->workload : item->figure;
}

/* There are few different texts: each row is compared with the first rows of those. */
static void number_texts(struct grouping *self, enum text text)
{
    size_t *firsts = self->tally;
    size_t known = 0;
    for (size_t i = 0; i < self->count; i++) {
        size_t at = 0;
        while (at < known &&
               strcmp(text_of(&self->items[firsts[at]], text), text_of(&self->items[i], text)) != 0)
            at++;
        if (at == known)
            firsts[known++] = i;
        self->ids[text][i] = firsts[at];
    }
}

/* The rows that are left of a kind, counted by one text: the id with the most. */
static size_t most_frequent(struct grouping *self, size_t kind, enum text text, size_t *best)
{
    size_t most = 0;
    memset(self->tally, 0, self->count * sizeof *self->tally);
    for (size_t i = 0; i < self->count; i++)
        if (!self->done[i] && self->items[i].kind == kind)
            self->tally[self->ids[text][i]]++;
    for (size_t i = 0; i < self->count; i++)
        if (self->tally[i] > most) {
            most = self->tally[i];
            *best = i;
        }
    return most;
}

static bool is_worse(const struct group_item *a, const struct group_item *b)
{
    return b->change >= 0 && (a->change < 0 || a->change > b->change);
}

/* Different texts among the rows of a group, whose ids are `id`. */
static size_t different(struct grouping *self, size_t kind, enum text by, size_t id, enum text text)
{
    size_t count = 0;
    memset(self->tally, 0, self->count * sizeof *self->tally);
    for (size_t i = 0; i < self->count; i++)
        if (!self->done[i] && self->items[i].kind == kind && self->ids[by][i] == id)
            count += self->tally[self->ids[text][i]]++ == 0;
    return count;
}

static void add_group(struct grouping *self, size_t kind, enum text by, size_t id, size_t count)
{
    struct group group = {.by = by == POLICY ? GROUP_OF_POLICY : GROUP_OF_FIGURE,
                          .worst = SIZE_MAX,
                          .count = count,
                          .policies = different(self, kind, by, id, POLICY),
                          .workloads = different(self, kind, by, id, WORKLOAD),
                          .figures = different(self, kind, by, id, FIGURE)};
    for (size_t i = 0; i < self->count; i++) {
        if (self->done[i] || self->items[i].kind != kind || self->ids[by][i] != id)
            continue;
        self->done[i] = true;
        if (group.worst == SIZE_MAX || is_worse(&self->items[i], &self->items[group.worst]))
            group.worst = i;
    }
    self->out->items[self->out->count++] = group;
    self->out->folded += count;
}

/* All groups of a kind, then its other rows. */
static void make_kind(struct grouping *self, size_t kind)
{
    for (;;) {
        size_t policy = 0;
        size_t figure = 0;
        size_t of_policy = most_frequent(self, kind, POLICY, &policy);
        size_t of_figure = most_frequent(self, kind, FIGURE, &figure);
        bool by_policy = of_policy >= of_figure;
        size_t count = by_policy ? of_policy : of_figure;
        if (count <= GROUPS_LISTED)
            break;
        add_group(self, kind, by_policy ? POLICY : FIGURE, by_policy ? policy : figure, count);
    }
    for (size_t i = 0; i < self->count; i++) {
        if (self->done[i] || self->items[i].kind != kind)
            continue;
        self->done[i] = true;
        self->out->items[self->out->count++] = (struct group){
            .by = GROUP_ROW, .worst = i, .count = 1, .policies = 1, .workloads = 1, .figures = 1};
    }
}

enum ar_status groups_make(struct groups *self, const struct group_item *items, size_t count,
                           struct ar_error *error)
{
    struct grouping work = {.items = items, .count = count, .out = self};
    size_t room = count ? count : 1;
    bool complete = true;
    *self = (struct groups){.items = calloc(room, sizeof *self->items)};
    work.tally = calloc(room, sizeof *work.tally);
    work.done = calloc(room, sizeof *work.done);
    for (int text = 0; text < TEXTS; text++) {
        work.ids[text] = calloc(room, sizeof *work.ids[text]);
        complete = complete && work.ids[text];
    }
    complete = complete && self->items && work.tally && work.done;
    if (complete) {
        for (int text = 0; text < TEXTS; text++)
            number_texts(&work, (enum text)text);
        for (size_t i = 0; i < count; i++)
            if (!work.done[i])
                make_kind(&work, items[i].kind);
    }
    for (int text = 0; text < TEXTS; text++)
        free(work.ids[text]);
    free(work.tally);
    free(work.done);
    if (complete)
        return AR_OK;
    groups_close(self);
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left to group %zu rows", count);
}

void groups_close(struct groups *self)
{
    free(self->items);
    *self = (struct groups){0};
}

static void several(char *text, size_t room, size_t count, const char *one, const char *name)
{
    if (count == 1)
        snprintf(text, room, "%.160s", one);
    else
        snprintf(text, room, "%zu %s", count, name);
}

const char *group_text(const struct group *group, const struct group_item *worst, char *text,
                       size_t room)
{
    char what[168];
    char where[168];
    several(where, sizeof where, group->workloads, worst->workload, "workloads");
    if (group->by == GROUP_OF_POLICY) {
        several(what, sizeof what, group->figures, worst->figure, "figures");
        snprintf(text, room, "policy %.160s, %s in %s; largest: %s of %.160s", worst->policy, what,
                 where, worst->figure, worst->workload);
    } else if (group->by == GROUP_OF_FIGURE) {
        several(what, sizeof what, group->policies, worst->policy, "policies");
        snprintf(text, room, "figure %s, %s in %s; largest: %.160s on %.160s", worst->figure, what,
                 where, worst->policy, worst->workload);
    } else {
        snprintf(text, room, "%s of %.160s with policy %.160s", worst->figure, worst->workload,
                 worst->policy);
    }
    return text;
}

struct table *groups_table(void)
{
    static const struct table_column columns[] = {
        {"verdict", "", true, 0}, {"rows", "", false, 0}, {"what", "", true, 0}};
    return table_create(columns, sizeof columns / sizeof columns[0]);
}

void groups_note(size_t folded, FILE *stream)
{
    if (folded)
        fputs("\nOne line for what shares a policy or a figure; --all lists every row.\n", stream);
}

/* 1. What is timed differs from run to run; what is not must be the same in all repetitions of a
 *    cell.
 * 2. Of those that differ the first is named, and the first that differs from it. */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Two places of one side: "the old side contradicts itself: runs 1 and 3 of b.json". */
static void say_contradiction(struct verdict_row *row, bool in_old, const char *what,
                              const char *file, size_t number, const char *other_file,
                              size_t other_number)
{
    const char *side = in_old ? "old" : "new";
    if (file == other_file)
        snprintf(row->note, sizeof row->note,
                 "the %s side contradicts itself: %ss %zu and %zu of %.100s", side, what, number,
                 other_number, base_of(file));
    else
        snprintf(row->note, sizeof row->note,
                 "the %s side contradicts itself: %s %zu of %.90s and %zu of %.90s", side, what,
                 number, base_of(file), other_number, base_of(other_file));
}

static void say_runs(struct verdict_row *row, bool in_old, const struct side_run *run,
                     const struct side_run *other)
{
    say_contradiction(row, in_old, "run", run->file, run->number, other->file, other->number);
}

bool contradiction_of_ends(const struct side_cell *old, const struct side_cell *new_,
                           struct verdict_row *row)
{
    const struct side_run *apart = side_ends_apart(old);
    const struct side_run *new_apart = side_ends_apart(new_);
    if (apart)
        say_runs(row, true, &old->runs[0], apart);
    else if (new_apart)
        say_runs(row, false, &new_->runs[0], new_apart);
    return apart || new_apart;
}

/* Both values of a side that has two, else the one. */
static void values_text(const struct side_cell *cell, const struct side_run *differs,
                        enum metric metric, char text[40])
{
    char one[40], other[40];
    side_value_text(&cell->runs[0].metrics.at[metric], one);
    if (differs)
        side_value_text(&differs->metrics.at[metric], other);
    snprintf(text, 40, "%.17s%s%.17s", one, differs ? " and " : "", differs ? other : "");
}

bool contradiction_of_metric(const struct side_cell *old_cell, const struct side_cell *new_cell,
                             enum metric metric, struct verdict_row *row)
{
    const struct side_run *old = side_differs(old_cell, metric);
    const struct side_run *new_ = side_differs(new_cell, metric);
    if (side_is_timed(new_cell, metric) || (!old && !new_))
        return false;
    values_text(old_cell, old, metric, row->old);
    values_text(new_cell, new_, metric, row->new_);
    if (old)
        say_runs(row, true, &old_cell->runs[0], old);
    else
        say_runs(row, false, &new_cell->runs[0], new_);
    return true;
}

/* Another count of the same that is further off than counts are compared; NULL: there is none. */
static const struct side_count *find_other(const struct side *side, const struct side_count *count)
{
    for (size_t i = 0; i < side->count_count; i++)
        if (side_same_count(&side->counts[i], count) &&
            strcmp(side->counts[i].compiler, count->compiler) == 0 &&
            fabs(side->counts[i].value / count->value - 1) > VERDICT_INSTRUCTIONS)
            return &side->counts[i];
    return NULL;
}

bool contradiction_of_count(const struct side *side, bool in_old, const struct side_count *count,
                            struct verdict_row *row)
{
    const struct side_count *other = find_other(side, count);
    if (!other)
        return false;
    const struct side_count *first = count < other ? count : other;
    other = count < other ? other : count;
    snprintf(in_old ? row->old : row->new_, sizeof row->old, "%.1f and %.1f", first->value,
             other->value);
    say_contradiction(row, in_old, "row", first->file, first->number, other->file, other->number);
    return true;
}
